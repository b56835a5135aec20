"""The aggregation: checks, duplicates, then counts, all in the engine that holds the traces."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import ibis
import pandas as pd

from calibration.production.cells import (
    GRID,
    MOST_EXACT,
    count_cells,
    in_order,
    keep_exact,
    price,
)
from calibration.production.checks import check, one_of
from calibration.production.columns import OF_GATES, checked_zone, mapped, ones
from calibration.production.duplicates import deduplicate
from calibration.production.engines import Engine, week_names
from calibration.production.gate_results import GateQuery
from calibration.production.gating import gate_tables
from calibration.production.listing import within
from calibration.production.refused import (
    duplicates_set_aside,
    rows_set_aside,
    unreadable_lines,
)
from calibration.production.results import CreditTable, Notes, ProductionCounts, SetAsideRows
from calibration.production.signals import count_signals
from calibration.production.sources import Source
from calibration.production.spread import cost_sums, latency_sums, spread
from calibration.production.tasks import MOST_TASKS, count_tasks
from calibration.taxonomy import Taxonomy

MOST_STATUSES, MAX_STATUS = 50, 40
SCORE = "score"
FACTS = (
    "n", "naive_times", "no_time", "no_cost", "no_units", "no_latency", "bad_latency", "no_task",
)  # fmt: skip


def production_counts(
    source: Source,
    *,
    taxonomy: Taxonomy,
    columns: Mapping[str, str | None] | None = None,
    credit: CreditTable | None = None,
    further: Mapping[str, CreditTable] | None = None,
    known_workflows_only: bool = True,
    timezone: str = "UTC",
    since: datetime | None = None,
    until: datetime | None = None,
    most_exact: int = MOST_EXACT,
    most_tasks: int = MOST_TASKS,
    named_tasks: bool = False,
    gates: GateQuery | None = None,
) -> ProductionCounts:
    """Count the traces of a source.

    Parameters
    ----------
    source : Source
        From `open_files`, `open_frame`, `open_postgres` or `open_spark`.
    taxonomy : Taxonomy
        Its workflows with their ceilings, and its credits.
    columns : Mapping of str to str or None, optional
        The column of the source for each of ours: trace_id, workflow, outcome, cost_usd, and
        units, started_at, task_id, trial, weight, stratum, latency_s, model, status and those of
        `signals` if there; by default those of the same name. None leaves a column out.
    credit : CreditTable, optional
        Instead of the taxonomy's credits, where workflows have their own.
    further : Mapping of str to CreditTable, optional
        More tables; NAME gives the column ``score_NAME``.
    known_workflows_only : bool, default True
        Set traces of workflows aside that the taxonomy does not list; else they have no ceiling.
    timezone : str, default "UTC"
        Zone of times without one.
    since, until : datetime, optional
        Count the traces from `since` to before `until`, in UTC; those without a time are then left
        out.
    most_exact, most_tasks : int, default 20,000
        Distinct penalties, and tasks, up to which they are kept one by one.
    named_tasks : bool, default False
        Keep totals by task, with names that other sources share, also where no task repeats.
    gates : GateQuery, optional
        Bring back what gates need beside the counts.

    Returns
    -------
    ProductionCounts

    Raises
    ------
    InputError
        If a column is missing or of the wrong kind, or the zone is unknown.
    """
    zone = checked_zone(timezone)
    engine = source.engine
    own = tuple(c for c in source.table.columns if c not in (source.file, source.row))
    extra = OF_GATES if gates is not None else ()
    used = mapped(columns, own, source.name, further=extra)
    ceilings = {w.name: w.ceiling_usd for w in taxonomy.workflows}
    credits = {SCORE: credit or CreditTable.from_taxonomy(taxonomy)}
    credits |= {f"{SCORE}_{name}": table for name, table in (further or {}).items()}
    workflows = ceilings if known_workflows_only else None
    rows = check(source, used, workflows=workflows, zone=zone, further=extra)
    if gates is not None and gates.model is not None:
        rows = rows.filter((rows.model == gates.model).fill_null(False) | (rows.reason != 0))
    if source.texts:
        rows = engine.keep(rows, "checked", numbered=True)
    else:
        rows = engine.view(rows, "checked")
    rows = within(rows, since, until)
    kept, facts, set_aside = _kept(rows, source)
    priced = engine.view(price(kept, ceilings, engine), "priced")
    costs, latencies = cost_sums(priced, engine), latency_sums(priced, engine)
    exact = keep_exact(priced, engine, most_exact)
    tasks = None
    if "task_id" in used:
        tasks = count_tasks(
            priced, engine, credits, n=facts["n"], no_task=facts["no_task"], most_tasks=most_tasks,
            named=named_tasks,
        )  # fmt: skip
    return ProductionCounts(
        cells=count_cells(priced, engine, credits, exact=exact),
        tasks=tasks.table if tasks else None,
        n_tasks=tasks.n if tasks else None,
        tasks_grouped=tasks.grouped if tasks else False,
        exact=exact,
        rounding=0.0 if exact else 1 / GRID,
        cost=spread(costs, "workflow", costs=True),
        cost_weekly=spread(costs, "week", costs=True),
        latency=spread(latencies, "workflow", costs=False),
        latency_weekly=spread(latencies, "week", costs=False),
        statuses=_statuses(priced, engine) if "status" in used else _no_statuses(),
        signals=count_signals(kept, engine, used, n=facts["n"], n_tasks=tasks.n if tasks else None),
        set_aside=tuple(set_aside),
        notes=_notes(facts, costs, ceilings, used, zone),
        n_read=facts["n"] + sum(rows.n for rows in set_aside),
        n_kept=facts["n"],
        first=_utc(facts["first"]),
        last=_utc(facts["last"]),
        for_gates=(
            gate_tables(priced, engine, used, gates) if gates is not None and facts["n"] else None
        ),
    )


def _kept(rows: Any, source: Source) -> tuple[Any, dict[str, Any], list[SetAsideRows]]:
    """Return the rows that count, facts about them, and the others."""
    engine = source.engine
    counts, facts = _facts(rows, engine)
    set_aside = unreadable_lines(source)
    if set(counts) - {0}:
        set_aside += rows_set_aside(rows, source, counts)
        rows = rows.filter(rows.reason == 0)
    found = deduplicate(rows, engine, n=facts["n"])
    if found is not None:
        set_aside += duplicates_set_aside(found, source, rows)
        rows = engine.keep(found.rows, "kept")
        _, facts = _facts(rows, engine)
    return rows, facts, set_aside


def _facts(rows: Any, engine: Engine) -> tuple[dict[int, int], dict[str, Any]]:
    """Count the rows by reason, and what has to be said of those that count, in one pass."""
    found = engine.run(
        rows.group_by("reason").aggregate(
            n=rows.count(),
            naive_times=ones(rows.naive).sum(),
            timed=rows.at.count(),
            costed=rows.cost.count(),
            no_units=ones(rows.no_units).sum(),
            clocked=rows.latency.count(),
            bad_latency=ones(rows.bad_latency).sum(),
            tasked=rows.task.count(),
            first=rows.at.min(),
            last=rows.at.max(),
        )
    )
    counts = {int(k): int(n) for k, n in zip(found["reason"], found["n"], strict=True)}
    good = found[found["reason"] == 0]
    if good.empty:
        return counts, dict.fromkeys(FACTS, 0) | {"first": None, "last": None}
    row = good.iloc[0]
    n = int(row["n"])
    facts = {name: int(row[name]) for name in ("n", "naive_times", "no_units", "bad_latency")}
    facts |= {
        "no_time": n - int(row["timed"]),
        "no_cost": n - int(row["costed"]),
        "no_latency": n - int(row["clocked"]) - facts["bad_latency"],
        "no_task": n - int(row["tasked"]),
    }
    return counts, facts | {"first": row["first"], "last": row["last"]}


def _utc(at: Any) -> datetime | None:
    if pd.isna(at):
        return None
    moment: datetime = pd.Timestamp(at).to_pydatetime()
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _notes(
    facts: Mapping[str, Any],
    costs: pd.DataFrame,
    ceilings: Mapping[str, float | None],
    used: Mapping[str, str],
    zone: str,
) -> Notes:
    counted = costs.groupby("workflow", observed=True)["n"].sum()
    said = {name: int(facts[name]) for name in FACTS if name != "n"}
    # A column that is not there at all is no note on single traces.
    if "task_id" not in used:
        said["no_task"] = 0
    return Notes(
        **said,
        timezone=zone,
        no_ceiling={str(k): int(v) for k, v in counted.items() if ceilings.get(str(k)) is None},
        columns=dict(used),
    )


def _statuses(priced: Any, engine: Engine) -> pd.DataFrame:
    """Count statuses by week: the most frequent ones by name, the rest as ``other``."""
    status = priced.status.fill_null("").left(MAX_STATUS)
    by_status = priced.group_by(status=status).aggregate(n=priced.count())
    most = by_status.order_by(ibis.desc("n"), "status").limit(MOST_STATUSES + 1)
    names = engine.run(most)["status"].tolist()
    if not names:
        return _no_statuses()
    many = len(names) > MOST_STATUSES
    named = ibis.ifelse(one_of(status, names[:-1]), status, "other") if many else status
    found = engine.run(priced.group_by(week=priced.week, status=named).aggregate(n=priced.count()))
    found["week"] = week_names(found["week"])
    found["status"] = found["status"].replace("", None)
    return in_order(found.assign(status=found["status"].astype("category")), ["week", "status"])


def _no_statuses() -> pd.DataFrame:
    return pd.DataFrame({"week": [], "status": [], "n": []})
