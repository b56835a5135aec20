"""What gates need of production traces beside the counts: tasks, events, cost and latency."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from calibration.errors import InputError
from calibration.runs.columns import APART
from calibration.runs.engines import Engine
from calibration.runs.queries import Relation, query
from calibration.runs.results import GateQuery, GateTables, Happened, Latencies
from calibration.statistics.means import SquareSums

CORE = "core"

# So many tasks are told apart by name, to be paired with those of a baseline; as many as are
# resampled one by one.
MOST_NAMED = 20_000

# Beyond so many latencies they are rounded up to 1/4096 of a factor e.
MOST_LATENCIES, BINS = 1_000_000, 4096.0

P95 = 0.95


_CORRUPTED = r"""(^|[,;|\["'])\s*data_corruption\s*($|[,;|\]"'])"""

EVENTS = ("loops", "data_corruption")

SAID = ("tier", "category", "model")

COUNTED = ("complete", "partial_plus")

_EVENTS, _SAID = [{"event": name} for name in EVENTS], [{"said": name} for name in SAID]


def gate_tables(
    kept: Relation, engine: Engine, used: Mapping[str, str], asked: GateQuery
) -> GateTables:
    """Return what gates need of the kept traces.

    Raises
    ------
    InputError
        If a mark is neither yes nor no, a trial is there twice, or traces of one task differ in
        tier or category.
    """
    rows = query("gate_rows", rows=kept, core=CORE, corrupted=_CORRUPTED)
    _readable(rows, engine, used)
    repeated = "task_id" in used
    if repeated and "trial" in used:
        _trials_once(rows, engine)
    tasks = engine.keep(
        query(
            "gate_tasks" if repeated else "gate_single_tasks", rows=rows, said=_SAID,
            events=_EVENTS, counted=[{"counted_class": name} for name in COUNTED],
        ),
        "gate_tasks",
    )  # fmt: skip
    found = engine.run(query("gate_facts", tasks=tasks, said=_SAID, events=_EVENTS))
    facts = found.iloc[0].fillna(0).astype("int64").to_dict()
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
                count=facts[name], n=facts[f"looked_{name}"], n_tasks=facts[f"tasks_{name}"]
            )
            for name in EVENTS
            if facts[f"looked_{name}"]
        },
        cost=_costs(tasks, engine),
        latency=_latencies(rows, engine, n=facts["n"], clustered=repeated or "weight" in used),
        outcomes=_outcomes(rows, engine, asked.trace_ids),
    )


def _readable(rows: Relation, engine: Engine, used: Mapping[str, str]) -> None:
    """Refuse marks that are neither: a run whose mark cannot be read is not one without it."""
    if not any(name in used for name in EVENTS):
        return
    found = engine.run(query("unreadable_marks", rows=rows)).iloc[0].fillna(0)
    for name in (name for name in EVENTS if name in used):
        if int(found[name]):
            raise InputError(
                f"column {name!r}: {int(found[name]):,} rows hold neither yes, no nor a number "
                f"from 0 up, for instance {found[f'first_{name}']!r:.60}"
            )


def _trials_once(rows: Relation, engine: Engine) -> None:
    found = engine.run(query("trials_twice", rows=rows))
    if len(found):
        row = found.iloc[0]
        raise InputError(
            f"column 'trial': trial {row['trial']!r:.40} of task "
            f"{row['task'].split(APART)[-1]!r:.80} is there {int(row['times'])} times"
        )


def _differing(tasks: Relation, engine: Engine, name: str) -> tuple[str, str, str]:
    """Return the first task whose traces differ in what they say of it, and two things said."""
    unit, one, other = engine.run(query("differing", tasks=tasks, said=name)).iloc[0].tolist()
    return unit[1:].split(APART)[-1], one, other


def _table(tasks: Relation, engine: Engine, *, named: bool) -> pd.DataFrame:
    found = engine.run(query("gate_table", tasks=tasks, named=named))
    if named:
        found = found.sort_values(["task", "workflow"])
    else:
        equal = ["workflow", "tier", "category", "n", "complete", "partial_plus", "weight"]
        found = found.sort_values(equal).assign(task=None)
    whole = dict.fromkeys(("n", "complete", "partial_plus", "like"), "int64")
    return found.astype(whole).reset_index(drop=True)


def _read_squares(row: "pd.Series[Any]") -> SquareSums:
    return SquareSums(
        n=int(row["tasks"]), top=float(row["top"]), bottom=float(row["bottom"]),
        top_squared=float(row["top_squared"]), product=float(row["product"]),
        bottom_squared=float(row["bottom_squared"]),
    )  # fmt: skip


def _costs(tasks: Relation, engine: Engine) -> dict[str, tuple[int, int, SquareSums]]:
    found = engine.run(query("gate_costs", tasks=tasks)).sort_values("workflow")
    return {
        str(row["workflow"]): (int(row["runs"]), int(row["known"]), _read_squares(row))
        for _, row in found.iterrows()
    }


def _latencies(rows: Relation, engine: Engine, *, n: int, clustered: bool) -> Latencies | None:
    rounded = n > MOST_LATENCIES
    clocked = query("clocked", rows=rows, **({"bins": BINS} if rounded else {}))
    table = engine.run(query("latencies", clocked=clocked))
    if table.empty:
        return None
    below = None
    if clustered:
        reached = np.cumsum(table["weight"].to_numpy()) / table["weight"].sum()
        p95 = float(table["latency"][int(np.searchsorted(reached, P95 - 1e-12))])
        row = engine.run(query("below", clocked=clocked, limit=p95)).iloc[0]
        below = _read_squares(row)
    return Latencies(table=table, n=int(table["n"].sum()), below=below, rounded=rounded)


def _outcomes(rows: Relation, engine: Engine, trace_ids: Sequence[str]) -> dict[str, str]:
    if not trace_ids:
        return {}
    found = engine.run(query("outcomes", rows=rows, trace_ids=sorted(trace_ids)))
    return dict(zip(found["trace_id"].tolist(), found["outcome"].tolist(), strict=True))
