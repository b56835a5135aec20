"""What gates need of production traces beside the counts: tasks, events, cost and latency."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np
import pandas as pd

from calibration.errors import InputError
from calibration.production.columns import ones
from calibration.production.engines import Engine

CORE = "core"
# So many tasks are told apart by name, to be paired with those of a baseline; as many as are
# resampled one by one.
MOST_NAMED = 20_000
# Beyond so many latencies they are rounded up to 1/4096 of a factor e.
MOST_LATENCIES, BINS = 1_000_000, 4096.0
P95 = 0.95

_YES, _NO = ("true", "yes"), ("false", "no")
_COUNT = r"^[0-9]{1,9}(\.[0-9]{1,9})?$"
_CORRUPTED = r"""(^|[,;|\["'])\s*data_corruption\s*($|[,;|\]"'])"""
EVENTS = ("loops", "data_corruption")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateQuery:
    """What to bring back: the traces of one model (None: all), and the outcomes of some traces."""

    model: str | None = None
    trace_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """Traces with an event, traces in which it was looked for, and the tasks of those."""

    count: int
    n: int
    n_tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Squares:
    """Sums over independent tasks of weighted tops and bottoms, of their squares and products."""

    n: int
    top: float
    bottom: float
    top_squared: float
    product: float
    bottom_squared: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Latencies:
    """How latencies are spread.

    Parameters
    ----------
    table : pandas.DataFrame
        latency, weight (sum over the traces with it), sorted by latency.
    n : int
        Traces with a latency.
    below : Squares or None
        Of the traces at or below the 95th percentile over all of them; None where traces are
        independent and weigh the same.
    rounded : bool
        Latencies are rounded up, by less than 1/4096.
    """

    table: pd.DataFrame
    n: int
    below: Squares | None
    rounded: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GateTables:
    """What gates need of the kept traces.

    A task is known by workflow and task id; a trace without one is a task of its own.

    Parameters
    ----------
    tasks : pandas.DataFrame
        One row a task, or a kind of equal tasks: task (a name that other sources share, None where
        it stands for several), workflow, tier, category, n, complete, partial_plus (traces of one
        task), weight (their mean), like (tasks that it stands for).
    named : bool
        Rows are single tasks.
    n_tasks : int
    repeat : bool
        Some task has several traces.
    mixed : str or None
        A task whose traces are of several models.
    has_tier, has_category : bool
        Whether the columns are there.
    events : Mapping of str to Happened
        ``loops`` and ``data_corruption``, where somebody looked.
    cost : Mapping of str to tuple of (int, int, Squares)
        By workflow: traces, those with a known cost, and cost over units by task.
    latency : Latencies or None
    outcomes : Mapping of str to str
        Class of each trace that was asked for and is there.
    """

    tasks: pd.DataFrame
    named: bool
    n_tasks: int
    repeat: bool
    mixed: str | None
    has_tier: bool
    has_category: bool
    events: Mapping[str, Happened]
    cost: Mapping[str, tuple[int, int, Squares]]
    latency: Latencies | None
    outcomes: Mapping[str, str]


def gate_tables(
    priced: Any, engine: Engine, used: Mapping[str, str], query: GateQuery
) -> GateTables:
    """Return what gates need of the kept traces.

    Raises
    ------
    InputError
        If a mark is neither yes nor no, a trial is there twice, or traces of one task differ in
        tier or category.
    """
    rows = _marked(priced, engine, used)
    repeated = "task_id" in used
    if repeated and "trial" in used:
        _trials_once(rows, engine)
    tasks = engine.keep(_by_task(rows, repeated=repeated), "gate_tasks")
    facts = engine.run(tasks.aggregate(tasks=tasks.count(), n=tasks.n.sum()))
    n_tasks, n = int(facts["tasks"][0]), int(facts["n"][0])
    for name in ("tier", "category"):
        if name in used and repeated:
            _same(tasks, engine, name)
    named = repeated and n_tasks <= MOST_NAMED
    return GateTables(
        tasks=_table(tasks, engine, named=named),
        named=named,
        n_tasks=n_tasks,
        repeat=n_tasks < n,
        mixed=_mixed(tasks, engine) if repeated and "model" in used else None,
        has_tier="tier" in used,
        has_category="category" in used,
        events=_events(tasks, engine),
        cost=_costs(tasks, engine),
        latency=_latencies(rows, engine, clustered=repeated or "weight" in used),
        outcomes=_outcomes(rows, engine, query.trace_ids),
    )


def _marked(priced: Any, engine: Engine, used: Mapping[str, str]) -> Any:
    """Add `looped` and `corrupted`: 1, 0, or null where nobody looked."""
    looped, corrupted = (_happened(priced[name]) for name in EVENTS)
    for name, value in zip(EVENTS, (looped, corrupted), strict=True):
        if name in used:
            _readable(priced, engine, name, value)
    tagged = ibis.ifelse(
        priced.tags.isnull(), ibis.null("int16"),
        ones(priced.tags.lower().re_search(_CORRUPTED)),
    )  # fmt: skip
    unit = "r" + priced.trace_id
    if "task_id" in used:
        unit = ibis.ifelse(priced.task.isnull(), unit, "t" + priced.task)
    return priced.mutate(unit=unit, looped=looped, corrupted=ibis.coalesce(corrupted, tagged))


def _happened(column: Any) -> Any:
    said = column.strip().lower()
    number = ibis.ifelse(said.re_search(_COUNT), said, ibis.null("string")).try_cast("float64")
    return ibis.cases(
        (said.isin(_YES), ibis.literal(1, "int16")),
        (said.isin(_NO), ibis.literal(0, "int16")),
        (number.notnull(), ones(number > 0)),
        else_=ibis.null("int16"),
    )


def _readable(priced: Any, engine: Engine, name: str, value: Any) -> None:
    bad = priced.filter((priced[name].strip() != "") & value.isnull())
    found = engine.run(bad.aggregate(n=bad.count(), first=bad[name].min()))
    if int(found["n"][0]):
        raise InputError(
            f"column {name!r}: {int(found['n'][0]):,} rows hold neither yes, no nor a number from "
            f"0 up, for instance {found['first'][0]!r:.60}"
        )


def _trials_once(rows: Any, engine: Engine) -> None:
    named = rows.filter(rows.task.notnull() & rows.trial.notnull())
    counted = named.group_by("workflow", "task", "model", "trial").aggregate(times=named.count())
    twice = counted.filter(counted.times > 1).order_by("workflow", "task", "model", "trial")
    found = engine.run(twice.limit(1))
    if len(found):
        row = found.iloc[0]
        raise InputError(
            f"column 'trial': trial {row['trial']!r:.40} of task {row['task']!r:.80} is there "
            f"{int(row['times'])} times"
        )


def _by_task(rows: Any, *, repeated: bool) -> Any:
    tier, category = rows.tier.fill_null(CORE), rows.category.fill_null("")
    model = rows.model.fill_null("")
    complete, partial = ones(rows.outcome == "complete"), ones(rows.outcome == "partial_plus")
    known = rows.cost.notnull()
    cost = ibis.ifelse(known, rows.weight * rows.cost, 0.0)
    units = ibis.ifelse(known, rows.weight * rows.units, 0.0)
    if not repeated:
        return rows.select(
            "workflow", "unit", "weight", tier=tier, tier_last=tier, category=category,
            category_last=category, model=model, model_last=model,
            n=ibis.literal(1, "int64"), complete=complete, partial_plus=partial,
            looped=rows.looped, looked_loops=ones(rows.looped.notnull()),
            corrupted=rows.corrupted, looked_corrupted=ones(rows.corrupted.notnull()),
            cost=cost, units=units, n_known=ones(known),
        )  # fmt: skip
    return rows.group_by("workflow", "unit").aggregate(
        weight=rows.weight.mean(), tier=tier.min(), tier_last=tier.max(),
        category=category.min(), category_last=category.max(),
        model=model.min(), model_last=model.max(),
        n=rows.count(), complete=complete.sum(), partial_plus=partial.sum(),
        looped=rows.looped.sum(), looked_loops=rows.looped.count(),
        corrupted=rows.corrupted.sum(), looked_corrupted=rows.corrupted.count(),
        cost=cost.sum(), units=units.sum(), n_known=rows.cost.count(),
    )  # fmt: skip


def _same(tasks: Any, engine: Engine, name: str) -> None:
    """Refuse traces of one task that differ in what they say of it."""
    last = f"{name}_last"
    differing = tasks.filter(tasks[name] != tasks[last]).order_by("workflow", "unit").limit(1)
    found = engine.run(differing.select("unit", name, last))
    if len(found):
        unit, one, other = found.iloc[0].tolist()
        raise InputError(
            f"column {name!r}: task {unit[1:]!r:.80} is both {one!r:.60} and {other!r:.60}"
        )


def _mixed(tasks: Any, engine: Engine) -> str | None:
    differing = tasks.filter(tasks.model != tasks.model_last).order_by("workflow", "unit")
    found = engine.run(differing.limit(1).select("unit"))
    return str(found["unit"][0])[1:] if len(found) else None


def _table(tasks: Any, engine: Engine, *, named: bool) -> pd.DataFrame:
    equal = ("workflow", "tier", "category", "n", "complete", "partial_plus", "weight")
    if named:
        found = engine.run(tasks.select(*equal, task=tasks.unit, like=ibis.literal(1, "int64")))
        found = found.sort_values(["task", "workflow"])
    else:
        found = engine.run(tasks.group_by(equal).aggregate(like=tasks.count()))
        found = found.sort_values(list(equal)).assign(task=None)
    whole = dict.fromkeys(("n", "complete", "partial_plus", "like"), "int64")
    return found.astype(whole).reset_index(drop=True)


def _events(tasks: Any, engine: Engine) -> dict[str, Happened]:
    found = {}
    for name, what in zip(EVENTS, ("loops", "corrupted"), strict=True):
        happened, looked = tasks["looped" if what == "loops" else what], tasks[f"looked_{what}"]
        row = engine.run(
            tasks.aggregate(count=happened.sum(), n=looked.sum(), tasks=ones(looked > 0).sum())
        ).iloc[0]
        if int(row["n"]):
            found[name] = Happened(
                count=int(row["count"]), n=int(row["n"]), n_tasks=int(row["tasks"])
            )
    return found


def _squares(top: Any, bottom: Any) -> dict[str, Any]:
    return {
        "tasks": ones(bottom > 0).sum(), "top": top.sum(), "bottom": bottom.sum(),
        "top_squared": (top * top).sum(), "product": (top * bottom).sum(),
        "bottom_squared": (bottom * bottom).sum(),
    }  # fmt: skip


def _read_squares(row: "pd.Series[Any]") -> Squares:
    return Squares(
        n=int(row["tasks"]), top=float(row["top"]), bottom=float(row["bottom"]),
        top_squared=float(row["top_squared"]), product=float(row["product"]),
        bottom_squared=float(row["bottom_squared"]),
    )  # fmt: skip


def _costs(tasks: Any, engine: Engine) -> dict[str, tuple[int, int, Squares]]:
    found = engine.run(
        tasks.group_by("workflow").aggregate(
            runs=tasks.n.sum(), known=tasks.n_known.sum(), **_squares(tasks.cost, tasks.units)
        )
    ).sort_values("workflow")
    return {
        str(row["workflow"]): (int(row["runs"]), int(row["known"]), _read_squares(row))
        for _, row in found.iterrows()
    }


def _latencies(rows: Any, engine: Engine, *, clustered: bool) -> Latencies | None:
    known = rows.filter(rows.latency.notnull()).select("workflow", "unit", "weight", "latency")
    n = int(engine.run(known.aggregate(n=known.count()))["n"][0])
    if not n:
        return None
    rounded = n > MOST_LATENCIES
    if rounded:
        positive = ibis.ifelse(known.latency > 0, known.latency, ibis.null("float64"))
        up = ((positive.ln() * BINS).ceil() / BINS).exp()
        known = known.mutate(latency=ibis.coalesce(up, 0.0))
    table = engine.run(
        known.group_by("latency").aggregate(weight=known.weight.sum())
    ).sort_values("latency", ignore_index=True)
    below = None
    if clustered:
        reached = np.cumsum(table["weight"].to_numpy()) / table["weight"].sum()
        p95 = float(table["latency"][int(np.searchsorted(reached, P95 - 1e-12))])
        inside = ibis.ifelse(known.latency <= p95, known.weight, 0.0)
        by_task = known.group_by("workflow", "unit").aggregate(
            top=inside.sum(), bottom=known.weight.sum()
        )
        row = engine.run(by_task.aggregate(**_squares(by_task.top, by_task.bottom))).iloc[0]
        below = _read_squares(row)
    return Latencies(table=table, n=n, below=below, rounded=rounded)


def _outcomes(rows: Any, engine: Engine, trace_ids: Sequence[str]) -> dict[str, str]:
    if not trace_ids:
        return {}
    found = engine.run(
        rows.filter(rows.trace_id.isin(tuple(sorted(trace_ids)))).select("trace_id", "outcome")
    )
    return dict(zip(found["trace_id"].tolist(), found["outcome"].tolist(), strict=True))
