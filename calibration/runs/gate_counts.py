"""What gates need of production traces beside the counts: tasks, events, cost and latency."""

from collections.abc import Mapping, Sequence
from typing import Any

import ibis
import numpy as np
import pandas as pd

from calibration.errors import InputError
from calibration.runs.columns import APART, ones
from calibration.runs.engines import Engine
from calibration.runs.results import GateQuery, GateTables, Happened, Latencies
from calibration.runs.rows import one_of
from calibration.statistics.means import SquareSums

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

SAID = ("tier", "category", "model")


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
    rows = engine.view(_marked(priced, used), "gate_rows")
    _readable(rows, engine, used)
    repeated = "task_id" in used
    if repeated and "trial" in used:
        _trials_once(rows, engine)
    tasks = engine.keep(_by_task(rows, repeated=repeated), "gate_tasks")
    facts = engine.run(tasks.aggregate(**_facts(tasks))).iloc[0].fillna(0).astype("int64").to_dict()
    for name in ("tier", "category"):
        if facts[f"differing_{name}"]:
            unit, one, other = _differing(tasks, engine, name)
            raise InputError(
                f"column {name!r}: task {unit!r:.80} is both {one!r:.60} and {other!r:.60}"
            )
    named = repeated and facts["tasks"] <= MOST_NAMED
    return GateTables(
        tasks=_table(tasks, engine, named=named),
        named=named,
        n_tasks=facts["tasks"],
        repeat=facts["tasks"] < facts["n"],
        mixed=_differing(tasks, engine, "model")[0] if facts["differing_model"] else None,
        has_tier="tier" in used,
        has_category="category" in used,
        events={
            name: Happened(
                count=facts[name], n=facts[f"{name}_looked"], n_tasks=facts[f"{name}_tasks"]
            )
            for name in EVENTS
            if facts[f"{name}_looked"]
        },
        cost=_costs(tasks, engine),
        latency=_latencies(rows, engine, n=facts["n"], clustered=repeated or "weight" in used),
        outcomes=_outcomes(rows, engine, query.trace_ids),
    )


def _marked(priced: Any, used: Mapping[str, str]) -> Any:
    """Add the unit, and a mark for each event: 1, 0, or null where nobody looked."""
    tagged = ibis.ifelse(
        priced.tags.isnull(), ibis.null("int16"),
        ones(priced.tags.lower().re_search(_CORRUPTED)),
    )  # fmt: skip
    unit = "r" + priced.trace_id
    if "task_id" in used:
        unit = ibis.ifelse(priced.task.isnull(), unit, "t" + priced.task)
    return priced.select(
        "trace_id", "workflow", "task", "trial", "outcome", "weight", "cost", "units", "latency",
        *EVENTS,
        unit=unit,
        tier=priced.tier.fill_null(CORE),
        category=priced.category.fill_null(""),
        model=priced.model.fill_null(""),
        marked_loops=_happened(priced.loops),
        marked_data_corruption=ibis.coalesce(_happened(priced.data_corruption), tagged),
        said_data_corruption=_happened(priced.data_corruption),
    )  # fmt: skip


def _happened(column: Any) -> Any:
    said = column.strip().lower()
    number = ibis.ifelse(said.re_search(_COUNT), said, ibis.null("string")).try_cast("float64")
    return ibis.cases(
        (one_of(said, _YES), ibis.literal(1, "int16")),
        (one_of(said, _NO), ibis.literal(0, "int16")),
        (number.notnull(), ones(number > 0)),
        else_=ibis.null("int16"),
    )


def _readable(rows: Any, engine: Engine, used: Mapping[str, str]) -> None:
    """Refuse marks that are neither: a run whose mark cannot be read is not one without it."""
    read = {"loops": rows.marked_loops, "data_corruption": rows.said_data_corruption}
    counted = {}
    for name in (name for name in EVENTS if name in used):
        bad = (rows[name].strip() != "") & read[name].isnull()
        counted[name] = ones(bad).sum()
        counted[f"{name}_first"] = ibis.ifelse(bad, rows[name], ibis.null("string")).min()
    if not counted:
        return
    found = engine.run(rows.aggregate(**counted)).iloc[0]
    for name in (name for name in EVENTS if name in used):
        if int(found[name]):
            raise InputError(
                f"column {name!r}: {int(found[name]):,} rows hold neither yes, no nor a number "
                f"from 0 up, for instance {found[f'{name}_first']!r:.60}"
            )


def _trials_once(rows: Any, engine: Engine) -> None:
    named = rows.filter(rows.task.notnull() & rows.trial.notnull())
    counted = named.group_by("workflow", "task", "model", "trial").aggregate(times=named.count())
    twice = counted.filter(counted.times > 1).order_by("workflow", "task", "model", "trial")
    found = engine.run(twice.limit(1))
    if len(found):
        row = found.iloc[0]
        raise InputError(
            f"column 'trial': trial {row['trial']!r:.40} of task "
            f"{row['task'].split(APART)[-1]!r:.80} is there {int(row['times'])} times"
        )


def _by_task(rows: Any, *, repeated: bool) -> Any:
    known = rows.cost.notnull()
    each = {
        "complete": ones(rows.outcome == "complete"),
        "partial_plus": ones(rows.outcome == "partial_plus"),
        "loops": rows.marked_loops,
        "loops_looked": ones(rows.marked_loops.notnull()),
        "data_corruption": rows.marked_data_corruption,
        "data_corruption_looked": ones(rows.marked_data_corruption.notnull()),
        "cost": ibis.ifelse(known, rows.weight * rows.cost, 0.0),
        "units": ibis.ifelse(known, rows.weight * rows.units, 0.0),
        "n_known": ones(known),
    }
    said = {name: rows[name] for name in SAID}
    if not repeated:
        last = {f"{name}_last": value for name, value in said.items()}
        one = ibis.literal(1, "int64")
        return rows.select("workflow", "unit", "weight", n=one, **said, **last, **each)
    return rows.group_by("workflow", "unit").aggregate(
        weight=rows.weight.mean(),
        n=rows.count(),
        **{name: value.min() for name, value in said.items()},
        **{f"{name}_last": value.max() for name, value in said.items()},
        **{name: value.sum() for name, value in each.items()},
    )


def _facts(tasks: Any) -> dict[str, Any]:
    found = {"tasks": tasks.count(), "n": tasks.n.sum()}
    for name in SAID:
        found[f"differing_{name}"] = ones(tasks[name] != tasks[f"{name}_last"]).sum()
    for name in EVENTS:
        looked = tasks[f"{name}_looked"]
        found[name], found[f"{name}_looked"] = tasks[name].sum(), looked.sum()
        found[f"{name}_tasks"] = ones(looked > 0).sum()
    return found


def _differing(tasks: Any, engine: Engine, name: str) -> tuple[str, str, str]:
    """Return the first task whose traces differ in what they say of it, and two things said."""
    last = f"{name}_last"
    differing = tasks.filter(tasks[name] != tasks[last]).order_by("workflow", "unit").limit(1)
    unit, one, other = engine.run(differing.select("unit", name, last)).iloc[0].tolist()
    return unit[1:].split(APART)[-1], one, other


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


def _squares(top: Any, bottom: Any) -> dict[str, Any]:
    return {
        "tasks": ones(bottom > 0).sum(), "top": top.sum(), "bottom": bottom.sum(),
        "top_squared": (top * top).sum(), "product": (top * bottom).sum(),
        "bottom_squared": (bottom * bottom).sum(),
    }  # fmt: skip


def _read_squares(row: "pd.Series[Any]") -> SquareSums:
    return SquareSums(
        n=int(row["tasks"]), top=float(row["top"]), bottom=float(row["bottom"]),
        top_squared=float(row["top_squared"]), product=float(row["product"]),
        bottom_squared=float(row["bottom_squared"]),
    )  # fmt: skip


def _costs(tasks: Any, engine: Engine) -> dict[str, tuple[int, int, SquareSums]]:
    found = engine.run(
        tasks.group_by("workflow").aggregate(
            runs=tasks.n.sum(), known=tasks.n_known.sum(), **_squares(tasks.cost, tasks.units)
        )
    ).sort_values("workflow")
    return {
        str(row["workflow"]): (int(row["runs"]), int(row["known"]), _read_squares(row))
        for _, row in found.iterrows()
    }


def _latencies(rows: Any, engine: Engine, *, n: int, clustered: bool) -> Latencies | None:
    known = rows.filter(rows.latency.notnull())
    rounded = n > MOST_LATENCIES
    if rounded:
        positive = ibis.ifelse(known.latency > 0, known.latency, ibis.null("float64"))
        up = ((positive.ln() * BINS).ceil() / BINS).exp()
        known = known.mutate(latency=ibis.coalesce(up, 0.0))
    table = engine.run(
        known.group_by("latency").aggregate(weight=known.weight.sum(), n=known.count())
    ).sort_values("latency", ignore_index=True)
    if table.empty:
        return None
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
    return Latencies(table=table, n=int(table["n"].sum()), below=below, rounded=rounded)


def _outcomes(rows: Any, engine: Engine, trace_ids: Sequence[str]) -> dict[str, str]:
    if not trace_ids:
        return {}
    found = engine.run(
        rows.filter(rows.trace_id.isin(tuple(sorted(trace_ids)))).select("trace_id", "outcome")
    )
    return dict(zip(found["trace_id"].tolist(), found["outcome"].tolist(), strict=True))
