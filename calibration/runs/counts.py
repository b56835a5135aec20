"""Count runs in the engine that holds them, and list single runs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd

from calibration.errors import InputError
from calibration.records import HARNESS, MAX_TAG, VERSION
from calibration.runs.cells import (
    LABELLED,
    MOST_EXACT,
    MOST_TASKS,
    SCORE,
    SHOWN_BY,
    Cells,
    Coding,
    Counted,
    Counting,
    Tasks,
    at_ceiling,
    binned,
    coding,
    count_cells,
    count_tasks,
    price,
    spread,
)
from calibration.runs.columns import (
    APART,
    CODE,
    EXAMPLES,
    OF_GATES,
    REASONS,
    SHOWN,
    Deduplicated,
    RunTable,
    at_utc,
    check,
    chosen,
    deduplicate,
    given,
    latest,
    unreadable_lines,
)
from calibration.runs.engines import Engine, Query, Relation, kind_of, query, week_names
from calibration.runs.recognition import (
    Recognised,
    outcomes_of,
)
from calibration.runs.results import (
    BAD,
    CORE,
    FAILED,
    GROUPS,
    LENGTHS,
    MOST_UNITS,
    P95,
    TIMED_OUT,
    VERDICT,
    AtCeiling,
    Example,
    GateQuery,
    GateTables,
    Latencies,
    LengthSums,
    Notes,
    ProductionCounts,
    SetAsideRows,
    SignalSums,
    UnitCosts,
    verdict_names,
)
from calibration.runs.results import SIGNAL_COLUMNS as SIGNALS
from calibration.runs.sources import Source
from calibration.statistics.intervals import Events
from calibration.statistics.means import SquareSums, edges_of_bins
from calibration.tables.reading import DEPENDS
from calibration.tables.scales import OutcomeWords
from calibration.taxonomy import CreditTable, Taxonomy

# Up to this number, tasks keep their names, for pairing with a baseline, and are resampled singly.
MOST_NAMED = 20_000

# Above this number, latencies are rounded up to 1/4096 of a factor e.
MOST_LATENCIES, BINS = 1_000_000, 4096.0

_CORRUPTED = r"""(^|[,;|\["'])\s*data_corruption\s*($|[,;|\]"'])"""
EVENTS = ("loops", "loops_in_a_row", "data_corruption")
REFUSED = ("loops", "data_corruption")
TEXTS = ("tier", "category", "model")

FACTS = (
    "n", "naive_times", "no_time", "no_cost", "no_units", "no_latency", "bad_latency",
    "bad_lengths", "no_task", "bad_cost", "bad_time",
)  # fmt: skip

# Of a bin of lengths.
SUMMED = ("of", "hits", "total", "low", "high")


def count_signals(
    rows: Relation,
    engine: Engine,
    used: Mapping[str, str],
    *,
    verdicts: Sequence[str],
    n: int,
    n_tasks: int | None,
) -> SignalSums | None:
    """Sum the operational signals of the `n` rows that count; None where no column holds any."""
    keys = _signal_keys(used, verdicts)
    if not keys or not n:
        return None
    units = n if n_tasks is None else n_tasks
    groups = {"groups": GROUPS} if units > MOST_UNITS else {}
    found = engine.run(
        query(
            "signals",
            rows=rows,
            keys=[{"key": key} for key in keys],
            wrong=[{"bad": name} for name in BAD],
            verdicts=[{"verdict": name} for name in verdicts],
            failed=FAILED,
            late=TIMED_OUT,
            stratum="stratum" in used,
            tasks=n_tasks is not None,
            **groups,
        )
    )
    bad = {name: int(found[f"bad_{name}"].sum()) for name in BAD}
    return SignalSums(
        table=_signal_table(found, keys),
        recorded=keys,
        bad={
            BAD[name].format(verdicts=", ".join(verdicts)): count
            for name, count in bad.items()
            if count
        },
        n_units=units,
        by_task=n_tasks is not None,
    )


def _signal_keys(used: Mapping[str, str], verdicts: Sequence[str]) -> tuple[str, ...]:
    """Return the signals that the columns of a source record."""
    told = (
        ("status" in used, ("errors", "timeouts")),
        ("tool_calls" in used and "tool_errors" in used, ("tool_errors",)),
        ("loops" in used or "max_repeats" in used, ("loops",)),
        ("loops_in_a_row" in used, ("loops_in_a_row",)),
        ("escalated" in used, ("escalated",)),
        ("feedback" in used, ("feedback_given", "feedback", "feedback_negative")),
        ("verdict" in used, tuple(VERDICT + name for name in verdicts)),
    )
    return tuple(key for there, keys in told if there for key in keys)


def _signal_table(found: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return the sums, with units and strata numbered."""
    strata = ["stratum"] if "stratum" in found else []
    # A group of units lies within one stratum.
    unit = found.groupby([*strata, "unit"], sort=True, dropna=False).ngroup()
    columns: dict[str, Any] = {
        "week": week_names(found["week"]),
        "unit": unit.to_numpy(np.int64),
        "stratum": pd.factorize(found["stratum"], sort=True)[0] if strata else 0,
        "n": found["n"].to_numpy(np.int64),
    }
    for name in (name for key in keys for name in (f"n_{key}", f"of_{key}", key)):
        columns[name] = found[name].to_numpy(np.float64)
    table = pd.DataFrame(columns)
    return table.sort_values(["week", "unit"], ignore_index=True)


def count_lengths(
    coded: Relation, engine: Engine, coding: Coding, *, n: int, n_tasks: int | None
) -> tuple[LengthSums, ...]:
    """Count success by bins of each recorded length; bins hold about equal numbers of runs."""
    units, found = n if n_tasks is None else n_tasks, []
    groups = {"groups": GROUPS} if units > MOST_UNITS else {}
    for column, key in SHOWN_BY.items():
        if column not in coding.used or not n:
            continue
        bins = binned(coded, key, engine, coding, by_workflow=False).frame().groupby("bin")
        narrowest = bins.agg(n=("n", "sum"), low=("low", "min"), high=("high", "max"))
        if narrowest.empty:
            continue
        edges = edges_of_bins(narrowest.to_numpy(np.float64))
        table = engine.run(
            query(
                "lengths",
                coded=coded,
                column=key,
                edges=[{"edge": edge, "edge_place": k} for k, edge in enumerate(edges)],
                last=len(edges),
                success=coding.taxonomy.place(coding.taxonomy.success),
                tasks=n_tasks is not None,
                **groups,
                **coding.flags(),
                **coding.keys("stratum"),
            )
        )
        table["stratum"] = coding.labels(table, "stratum").codes
        table = table.astype({"place": "int64", "n": "int64"} | dict.fromkeys(SUMMED, "float64"))
        unit = pd.factorize(table["unit"])[0]
        found.append(
            LengthSums(
                key=key,
                table=table.assign(unit=unit).sort_values(["place", "unit"]),
                n_units=units,
                by_task=n_tasks is not None,
            )
        )
    return tuple(found)


_EVENTS, _TEXTS = [{"event": name} for name in EVENTS], [{"text": name} for name in TEXTS]


def gate_tables(
    kept: Relation, engine: Engine, used: Mapping[str, str], taxonomy: Taxonomy, asked: GateQuery
) -> GateTables:
    """Return the tables for gates; raise where columns of one task contradict each other."""
    rows = query("gate_rows", rows=kept, core=CORE, corrupted=_CORRUPTED)
    _readable(rows, engine, used)
    repeated = "task_id" in used
    if repeated and "trial" in used:
        _trials_once(rows, engine)
    tasks = engine.keep(
        query(
            "gate_tasks" if repeated else "gate_single_tasks", rows=rows, text=_TEXTS,
            events=_EVENTS, success=taxonomy.success,
            partial=[{"partial_class": name} for name in taxonomy.acceptable[1:]],
        ),
        "gate_tasks",
    )  # fmt: skip
    found = engine.run(query("gate_facts", tasks=tasks, text=_TEXTS, events=_EVENTS))
    facts = found.iloc[0].fillna(0).astype("int64").to_dict()
    for name in ("tier", "category"):
        if facts[f"differing_{name}"]:
            unit, one, other = _differing(tasks, engine, name)
            raise InputError(
                f"column {name!r}: task {unit!r:.80} is both {one!r:.60} and {other!r:.60}"
            )
    named = repeated and facts["tasks"] <= MOST_NAMED
    return GateTables(
        tasks=_task_table(tasks, engine, named=named),
        named=named,
        n_tasks=facts["tasks"],
        repeat=facts["tasks"] < facts["n"],
        mixed=_differing(tasks, engine, "model")[0] if facts["differing_model"] else None,
        has_tier="tier" in used,
        has_category="category" in used,
        events={
            name: Events(
                count=facts[name], n=facts[f"looked_{name}"], n_tasks=facts[f"tasks_{name}"]
            )
            for name in EVENTS
            if facts[f"looked_{name}"]
        },
        cost=_gate_costs(tasks, engine),
        latency=_latencies(rows, engine, n=facts["n"], clustered=repeated or "weight" in used),
        outcomes=_outcomes(rows, engine, asked.trace_ids),
    )


def _readable(rows: Relation, engine: Engine, used: Mapping[str, str]) -> None:
    """Refuse unreadable marks: a run with an unreadable mark is not one without it."""
    if not any(name in used for name in (*REFUSED, "max_repeats")):
        return
    found = engine.run(query("unreadable_marks", rows=rows)).iloc[0].fillna(0)
    for name in REFUSED:
        if int(found[name]):
            shown = name if name in used else "max_repeats"
            raise InputError(
                f"column {shown!r}: {int(found[name]):,} rows hold neither yes, no nor a number "
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
    """Return the first task whose traces contradict each other, and two of the values."""
    unit, one, other = engine.run(query("differing", tasks=tasks, text=name)).iloc[0].tolist()
    return unit[1:].split(APART)[-1], one, other


def _task_table(tasks: Relation, engine: Engine, *, named: bool) -> pd.DataFrame:
    found = engine.run(query("gate_table", tasks=tasks, named=named))
    if named:
        found = found.sort_values(["task", "workflow"])
    else:
        equal = ["workflow", "tier", "category", "n", "successes", "partial", "weight"]
        found = found.sort_values(equal).assign(task=None)
    whole = dict.fromkeys(("n", "successes", "partial", "like"), "int64")
    return found.astype(whole).reset_index(drop=True)


def _read_squares(row: "pd.Series[Any]") -> SquareSums:
    return SquareSums(
        n=int(row["tasks"]), top=float(row["top"]), bottom=float(row["bottom"]),
        top_squared=float(row["top_squared"]), product=float(row["product"]),
        bottom_squared=float(row["bottom_squared"]),
    )  # fmt: skip


def _gate_costs(tasks: Relation, engine: Engine) -> dict[str, tuple[int, int, SquareSums]]:
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


def rows_set_aside(rows: Relation, source: Source, counts: Mapping[int, int]) -> list[SetAsideRows]:
    """Return the number of rows with each reason, in the order of the reasons."""
    examples = _examples(query("set_aside", rows=rows), source, _firsts(rows, source))
    return [
        SetAsideRows(
            reason=REASONS[code - 1], n=counts[code], runs=counts[code], examples=examples[code]
        )
        for code in sorted(counts)
        if code
    ]


def duplicates_set_aside(found: Deduplicated, source: Source, rows: Relation) -> list[SetAsideRows]:
    """Count the rows dropped because another row has their trace_id."""
    set_aside = []
    firsts = _firsts(rows, source)
    for reason, gone in (
        ("identical_duplicate", found.identical),
        ("conflicting_duplicate", found.conflicting),
    ):
        counted = source.engine.run(query("how_many", rows=gone))
        n, traces = (int(v) for v in counted[["n", "traces"]].iloc[0])
        if n:
            # One of the identical rows of a trace is kept; of contradicting ones none is.
            kept = traces if reason == "identical_duplicate" else 0
            runs = n - kept if kept else traces
            examples = _examples(gone, source, firsts)[0]
            set_aside.append(SetAsideRows(reason=reason, n=n - kept, runs=runs, examples=examples))
    return set_aside


def _firsts(rows: Relation, source: Source) -> dict[str, int]:
    """Return the number of the first row of each file, where rows are numbered across files."""
    if not source.texts:
        return {}
    found = source.engine.run(query("firsts", rows=rows))
    return dict(zip(found["file"].tolist(), found["first"].tolist(), strict=True))


def _examples(
    bad: Relation, source: Source, firsts: dict[str, int]
) -> dict[int, tuple[Example, ...]]:
    frame = source.engine.run(query("examples", bad=bad, most=EXAMPLES))
    found: dict[int, list[Example]] = {}
    for reason, trace_id, file, row, value in frame[
        ["reason", "trace_id", "file", "row", "value"]
    ].itertuples(index=False):
        found.setdefault(int(reason), []).append(
            Example(
                trace_id=None if pd.isna(trace_id) else str(trace_id)[:SHOWN],
                file=None if pd.isna(file) else str(file),
                row=None if pd.isna(row) else int(row) + 1 - firsts.get(file, source.first_row),
                value=None if pd.isna(value) else str(value),
            )
        )
    return {reason: tuple(examples) for reason, examples in found.items()}


class CountOptions(TypedDict, total=False):
    """What is counted beside the runs.

    Attributes
    ----------
    credit : CreditTable
        Replaces the credits of the taxonomy.
    further : Mapping of str to CreditTable
        More tables of credits; NAME gives the column ``score_NAME``.
    most_exact, most_tasks : int, default 20,000
        Number of runs up to which each distinct penalty, and of tasks up to which each, is kept.
    named_tasks : bool
        Keep totals by task, under names shared between sources, even where no task repeats.
    gates : GateQuery
        Also return the tables for gates.
    watch : collection of str
        Trace ids to look out for.
    listed : collection of str
        Classes whose first `n_listed` runs are wanted.
    lengths : bool
        Also count success by steps, tokens and share of the context window.
    context_window : int
        Tokens that the context of a run may hold, for runs that state none.
    ceiling_factors : sequence of float
        Also count the cells with every ceiling multiplied by each of these.
    unit_costs : sequence of str
        Classes of the runs whose costs per unit are wanted.
    """

    credit: CreditTable | None
    further: Mapping[str, CreditTable]
    most_exact: int
    most_tasks: int
    named_tasks: bool
    gates: GateQuery | None
    watch: Collection[str]
    listed: Collection[str]
    n_listed: int
    lengths: bool
    context_window: int | None
    ceiling_factors: Sequence[float]
    unit_costs: Sequence[str]


def production_counts(
    table: RunTable, outcomes: OutcomeWords | None = None, **asked: Unpack[CountOptions]
) -> ProductionCounts:
    """Count the runs of a table, by type first, and as texts where a row needs a closer look.

    Parameters
    ----------
    table : RunTable
        Made by `open_runs`.
    outcomes : OutcomeWords, optional
        What the values of the outcomes are taken as; by those of this table alone when None.
    asked : CountOptions
        What else is counted.

    Returns
    -------
    ProductionCounts
        Of all runs that count, with the rows that do not.
    """
    outcomes = outcomes or outcomes_of([table.outcomes], table.options)
    recognised = Recognised(columns=table.columns, outcomes=outcomes, options=table.options)
    if table.typed is not None:
        try:
            counts = _count(replace(recognised, columns=table.typed), asked)
        except InputError:  # which names the place of a row on the second way
            pass
        else:
            if counts.plain:
                return replace(counts, by_type=True, recognised=recognised)
    return _count(recognised, asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Counts that other counts are made of."""

    counting: Counting
    kept: "_Kept"
    cells: Cells
    tasks: Tasks | None
    most_tasks: int


def _count(recognised: Recognised, asked: CountOptions) -> ProductionCounts:
    """Count the runs of a table whose rows are read in one way."""
    taxonomy, used = recognised.outcomes.taxonomy, recognised.columns.used
    credits = _credits(taxonomy, asked)
    rows, codes = _rows_in_code(recognised, asked)
    watch, most_exact = asked.get("watch", ()), asked.get("most_exact", MOST_EXACT)
    ceilings = {w.name: w.ceiling_usd for w in taxonomy.workflows}
    kept = _kept(rows, recognised, ceilings, codes, credits, watch, most_exact)
    facts, engine = kept.facts, recognised.columns.source.engine
    if "difficulty" in used:
        levels = query("names", rows=kept.coded, column="difficulty", most=facts["n"])
        facts["levels"] = len(engine.run(levels)) or None
    cells = kept.counted.cells()
    counting = Counting(
        rows=kept.rows,
        coded=kept.coded,
        engine=engine,
        coding=codes,
        credits=credits,
        n=facts["n"],
        no_task=facts["no_task"],
        n_strata=np.unique(cells.stratum.codes).size,
    )
    most_tasks, tasks = asked.get("most_tasks", MOST_TASKS), None
    if "task_id" in used:
        named = asked.get("named_tasks", False)
        tasks = count_tasks(counting, most_tasks=most_tasks, named=named)
    basis = _Counted(counting=counting, kept=kept, cells=cells, tasks=tasks, most_tasks=most_tasks)
    return _assembled(recognised, asked, basis)


def _credits(taxonomy: Taxonomy, asked: CountOptions) -> dict[str, CreditTable]:
    credit, further = asked.get("credit"), asked.get("further", {})
    for table in (credit, *further.values()):
        if table is not None and len(table.credit) != len(taxonomy.names):
            raise ValueError(f"credit must be {len(taxonomy.names)} numbers, got {table.credit!r}")
    credits = {SCORE: credit or taxonomy.credit_table}
    return credits | {f"{SCORE}_{name}": table for name, table in further.items()}


def _rows_in_code(recognised: Recognised, asked: CountOptions) -> tuple[Relation, Coding]:
    """Return the checked rows of the window, and how their texts are coded as numbers."""
    options, source = recognised.options, recognised.columns.source
    gates, taxonomy = asked.get("gates"), recognised.outcomes.taxonomy
    checked = check(
        recognised,
        further=OF_GATES if gates is not None else (),
        context_window=asked.get("context_window"),
    )
    rows = source.engine.keep(checked, "checked", numbered=True) if source.texts else checked
    rows = chosen(
        rows, model=gates.model if gates else None, since=options.since, until=options.until
    )
    only_known = options.known_workflows_only and not source.results
    known = tuple(one.name for one in taxonomy.workflows) if only_known else None
    factors = tuple(asked.get("ceiling_factors", ()))
    used, names = recognised.columns.used, recognised.columns.names
    return rows, coding(rows, source.engine, used, taxonomy, known, factors, names)


def _assembled(recognised: Recognised, asked: CountOptions, basis: _Counted) -> ProductionCounts:
    """Return all that was asked for."""
    kept, counting, tasks = basis.kept, basis.counting, basis.tasks
    engine, codes, facts = counting.engine, counting.coding, kept.facts
    used, taxonomy = recognised.columns.used, recognised.outcomes.taxonomy
    n, n_tasks = facts["n"], tasks.n if tasks else None
    timed = "latency" if "latency_s" in used else None
    latencies = binned(kept.coded, timed, engine, codes, by_workflow=False)
    listed, gates = asked.get("listed", ()), asked.get("gates")
    unit_costs, factors = asked.get("unit_costs", ()), asked.get("ceiling_factors", ())
    unknown = facts["n"] - latencies.known - facts["bad_latency"]
    return ProductionCounts(
        recognised=recognised,
        cells=basis.cells.frame(),
        tasks=tasks.table if tasks else None,
        tasks_by=tasks.by if tasks else {},
        n_tasks=n_tasks,
        tasks_grouped=tasks.grouped if tasks else False,
        cost=spread(binned(kept.coded, "cost", engine, codes), basis.cells),
        latency=spread(latencies),
        signals=count_signals(
            kept.rows, engine, used, verdicts=verdict_names(taxonomy), n=n, n_tasks=n_tasks
        ),
        lengths=(
            count_lengths(kept.coded, engine, codes, n=n, n_tasks=n_tasks)
            if asked.get("lengths")
            else ()
        ),
        set_aside=tuple(kept.set_aside),
        notes=_notes(facts | {"no_latency": unknown}, basis.cells, recognised),
        watched=kept.watched,
        listed=(
            _first_runs(
                kept.rows,
                engine,
                kept.counted.found,
                {name: taxonomy.place(name) for name in listed},
                asked.get("n_listed", 20),
            )
            if listed
            else None
        ),
        n_read=n + sum(rows.n for rows in kept.set_aside),
        n_kept=n,
        first=_utc(facts["first"]),
        last=_utc(facts["last"]),
        for_gates=(
            gate_tables(kept.rows, engine, used, taxonomy, gates)
            if gates is not None and n
            else None
        ),
        at_ceilings={
            factor: _at_ceiling(counting, kept.counted, factor, basis.most_tasks, tasks)
            for factor in factors
        },
        unit_costs=_unit_costs(counting, unit_costs) if unit_costs else None,
        bounds=kept.bounds,
    )


def _at_ceiling(
    counting: Counting, counted: Counted, factor: float, most_tasks: int, known: Tasks | None
) -> AtCeiling:
    """Return cells, and tasks where they are known, with every ceiling multiplied."""
    tasks = None
    if known is not None:
        coded = at_ceiling(counting.coded, counting.coding, factor)
        moved = replace(counting, coded=coded, credits={SCORE: counting.credits[SCORE]})
        tasks = count_tasks(moved, most_tasks=most_tasks, by=["workflow"], distinct=known.n)
    return AtCeiling(
        cells=counted.cells(factor, by_workflow=True).frame(),
        tasks=tasks.table if tasks else None,
        tasks_by=tasks.by if tasks else {},
    )


def _unit_costs(counting: Counting, outcomes: Sequence[str]) -> UnitCosts:
    """Count what a unit of the runs of some classes cost, by workflow."""
    accepted = [{"accepted": name} for name in outcomes]
    table = counting.engine.run(query("unit_costs", rows=counting.rows, outcomes=accepted))
    if "task_id" not in counting.coding.used:
        return UnitCosts(table=table, n_tasks=None)
    tasks = counting.engine.run(query("unit_tasks", rows=counting.rows, outcomes=accepted))
    return UnitCosts(table=table, n_tasks=dict(zip(tasks["workflow"], tasks["n"], strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """The rows that count, as checked, coded and counted, facts about them, and those set aside.

    `watched` is whether a watched trace may be among them; `bounds` the cells of the runs left out
    for a reason that may depend on the outcome, as failed and as passed.
    """

    rows: Relation
    coded: Relation
    counted: Counted
    facts: dict[str, Any]
    set_aside: list[SetAsideRows]
    watched: bool
    bounds: tuple[pd.DataFrame, pd.DataFrame] | None


def _kept(
    rows: Relation,
    recognised: Recognised,
    ceilings: Mapping[str, float | None],
    codes: Coding,
    credits: Mapping[str, CreditTable],
    watch: Collection[str],
    most_exact: int,
) -> _Kept:
    """Count the rows and set aside those that do not count, with the reason, and duplicates."""
    source = recognised.columns.source
    engine = source.engine

    def in_numbers(checked: Relation) -> Relation:
        coded = codes.code(price(checked, ceilings, codes.factors))
        # Few rows cost less than planning the statement anew, and many statements read tasks.
        often = "task_id" in codes.used or not {*SHOWN_BY}.isdisjoint(codes.used)
        return engine.keep(coded, "coded") if often or not source.large else coded

    def counted(coded: Relation, *, exact: bool) -> Counted:
        return count_cells(coded, engine, credits, codes, exact=exact)

    set_aside = unreadable_lines(source)
    if recognised.options.reading.latest:
        rows, superseded = _latest(rows, engine)
        set_aside += superseded
    coded = in_numbers(rows)
    every = counted(coded, exact=False)
    gone = every.found[every.found["reason"].isin(DEPENDING)]
    by_reason = every.found.groupby("reason")["n"].sum()
    counts = {int(reason): int(n) for reason, n in zip(by_reason.index, by_reason, strict=True)}
    if set(counts) - {0}:
        set_aside += rows_set_aside(rows, source, counts)
        rows, coded = query("counting", rows=rows), query("counting", rows=coded)
    n = counts.get(0, 0)
    distinct, watched = engine.distinct(coded, "id", n, watch)
    if distinct != n:
        found = deduplicate(rows, engine)
        set_aside += duplicates_set_aside(found, source, rows)
        rows = engine.keep(found.rows, "kept")
        coded = in_numbers(rows)
        every = counted(coded, exact=False)
        n = int(every.good.found["n"].sum())
    if n <= most_exact:
        every = counted(coded, exact=True)
    return _Kept(
        rows=rows,
        coded=coded,
        counted=every.good,
        facts=_facts(every.good.found, n),
        set_aside=set_aside,
        watched=watched,
        bounds=_bounds(every, gone, set_aside),
    )


def _latest(rows: Relation, engine: Engine) -> tuple[Relation, list[SetAsideRows]]:
    """Return the rows without those of a run that has a later one, and how many those are."""
    later = latest(rows)
    n, n_later = (int(engine.run(query("how_many", rows=one))["n"][0]) for one in (rows, later))
    n_gone = n - n_later
    if not n_gone:
        return rows, []
    return later, [SetAsideRows(reason="superseded", n=n_gone, runs=n_gone)]


# Codes of the reasons that may depend on the outcome.
DEPENDING = frozenset(CODE[reason] for reason in DEPENDS if reason in CODE)


def _bounds(
    every: Counted, gone: pd.DataFrame, set_aside: Sequence[SetAsideRows]
) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Return the cells of the runs left out, as failed and without credit, and as passed.

    Their own costs are kept; runs whose rows contradict each other or cannot be read have none.
    """
    taxonomy = every.coding.taxonomy
    depending = [rows for rows in set_aside if rows.reason in DEPENDS]
    n_gone = sum(rows.runs for rows in depending)
    if not n_gone:
        return None
    bare = n_gone - int(gone["n"].sum())
    frames = []
    for outcome in (taxonomy.failed_check, taxonomy.success):
        place = taxonomy.place(outcome)
        cells = replace(every, found=gone.assign(outcome=place)).cells().frame()
        if bare > 0:
            blank: dict[Any, Any] = {name: 0 for name in cells if name not in LABELLED}
            blank |= {"weight": 1.0, "outcome": place, "cost_known": False, "n": bare}
            blank |= {SCORE: bare * taxonomy.credits[place]}
            cells = pd.concat([cells, pd.DataFrame([blank])], ignore_index=True)
        if outcome != taxonomy.success:
            cells = cells.assign(**{SCORE: 0.0})
        # A run whose weight cannot be read weighs as one.
        cells["weight"] = cells["weight"].where(cells["weight"] > 0, 1.0)
        frames.append(cells)
    return frames[0], frames[1]


def _facts(found: pd.DataFrame, n: int) -> dict[str, Any]:
    """Add up the facts about the rows that count."""
    facts: dict[str, Any] = dict.fromkeys(FACTS, 0) | {"n": n, "first": None, "last": None}
    facts |= {name: int(found[name].sum()) for name in FACTS if name in found}
    facts |= {
        "no_time": int(found.loc[found["week"].isna(), "n"].sum()),
        "no_cost": n - int(found["n_costed"].sum()),
        "no_task": n - int(found["tasked"].sum() if "tasked" in found else 0),
    }
    if "first" in found and n:
        facts |= {"first": found["first"].min(), "last": found["last"].max()}
    tiered = int(found["tiered"].sum()) if "tiered" in found else 0
    return facts | {"edge": int(found["edge"].sum()) / tiered if tiered else None}


def _first_runs(
    rows: Relation, engine: Engine, found: pd.DataFrame, places: Mapping[str, int], n: int
) -> pd.DataFrame:
    """Return the first `n` runs of each class, given with its place, in the columns of `LISTED`."""
    ends = [_reached(found[found["outcome"] == place], n) for place in places.values()]
    known = [end for end in ends if end is not None]
    if len(known) == len(places):
        # The runs up to the last of these times hold them all: few rows to sort.
        rows = query("listed", rows=rows, latest=at_utc(max(known)))
        return _in_time(rows, engine, tuple(places), several=True, first=n)
    # One query per class: the engine keeps the first rows without sorting them all.
    rows = query("listed", rows=rows)
    lists = [_in_time(rows, engine, (name,), single=True, first=n) for name in places]
    return pd.concat(lists, ignore_index=True)


def _reached(cells: pd.DataFrame, n: int) -> datetime | None:
    """Return a time by which `n` runs of these cells began; None where so many have no time.

    Of each cell one run began at its first time, and all by its last.
    """
    if "first" not in cells:
        return None
    cells = cells.dropna(subset="first")
    ends = pd.concat([cells["first"], cells["last"]], ignore_index=True)
    began = np.concatenate([np.ones(len(cells)), cells["n"] - 1])
    order = ends.argsort(kind="stable").to_numpy()
    place = int(np.searchsorted(began[order].cumsum(), n))
    return _utc(ends.iloc[order[place]]) if place < order.size else None


def _in_time(
    rows: Relation, engine: Engine, outcomes: Collection[str], **some: Any
) -> pd.DataFrame:
    """Return runs of some classes, each class in order of time."""
    classes = [{"outcome": name} for name in outcomes]
    found = engine.run(query("first_runs", rows=rows, classes=classes, **some))
    return found.assign(week=week_names(found["week"]).astype(object))


def _utc(at: Any) -> datetime | None:
    if pd.isna(at):
        return None
    moment: datetime = pd.Timestamp(at).to_pydatetime()
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _notes(facts: Mapping[str, Any], cells: Cells, recognised: Recognised) -> Notes:
    taxonomy, used = recognised.outcomes.taxonomy, recognised.columns.used
    counted = np.bincount(cells.workflow.codes, weights=cells.sums["n"])
    ceilings = {w.name: w.ceiling_usd for w in taxonomy.workflows}
    named = {name: int(facts[name]) for name in FACTS if name != "n"}
    # A missing column is no note on single traces.
    if "task_id" not in used:
        named["no_task"] = 0
    return Notes(
        **named,
        timezone=recognised.options.timezone,
        no_ceiling={
            name: int(n)
            for name, n in zip(cells.workflow.names, counted, strict=True)
            if ceilings.get(name) is None
        },
        columns=dict(used),
        levels=facts.get("levels"),
        edge=facts.get("edge"),
    )


LISTED = ("outcome", "trace_id", "workflow", "model", "task", "week", "at", "cost", "latency")
MOST_TAGS = 50

TAG, RUN = "asr_tag", "asr_run"


def list_runs(table: RunTable, outcomes: OutcomeWords, *, classes: Collection[str]) -> pd.DataFrame:
    """Return all runs of some classes, each class in order of time, with the columns of `LISTED`.

    Runs without a time come last; duplicates are kept. The source of `table` must be freshly
    opened: a reader keeps the rows that it has read.
    """
    if not classes:
        return pd.DataFrame(columns=LISTED)
    recognised = Recognised(columns=table.columns, outcomes=outcomes, options=table.options)
    options = table.options
    rows = chosen(check(recognised), model=None, since=options.since, until=options.until)
    return _in_time(query("listed", rows=rows), table.columns.source.engine, classes)


def count_named(table: RunTable, names: Collection[tuple[str, str]]) -> int:
    """Return the number of rows with one of these (workflow, trace_id)."""
    columns = table.columns
    if not names or "workflow" not in columns.used:
        return 0
    own = {role: columns.used[role] for role in ("workflow", "trace_id", "outcome")}
    rows = given(replace(columns, used=own), zone="UTC")
    pairs = sorted(APART.join(pair) for pair in names)
    named = query("named", given=rows, apart=APART, pairs=pairs)
    return int(columns.source.engine.run(named)["n"][0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """A table with one row per run and tag, its tags as models; `left_out` counts the others."""

    table: RunTable
    left_out: int


def laid_out(table: RunTable, *, conflicts: bool, most: int = MOST_TAGS) -> Tagged | None:
    """Return the runs of a table once per tag; None without a column of tags.

    Tags are a list, a JSON list as text, or a text separated by ``;`` or ``,``; the `most` frequent
    are kept, of those that are not too long. With `conflicts`, runs that share a trace_id but not
    their values are left out.
    """
    source, used = table.columns.source, table.columns.used
    if "tags" not in used:
        return None
    kind = source.columns[used["tags"]]
    if kind_of(kind) not in ("text", "texts"):
        raise InputError(f"{source.name}: column 'tags' holds {kind}, not texts or lists of texts")
    twice = {"conflicts": _conflicts(source.table, used)} if conflicts else {}
    rows = query(
        "tagged",
        rows=source.table,
        apart=APART,
        trace_id=used["trace_id"],
        tags=used["tags"],
        listed=kind_of(kind) == "texts",
        **twice,
    )
    counted = source.engine.run(query("tags", rows=rows))
    frequent = [tag for tag in counted[TAG].tolist() if len(tag) <= MAX_TAG][:most]
    unread = ("tags", "tier", "difficulty", VERSION, HARNESS, *LENGTHS, *SIGNALS)
    columns = replace(
        table.columns,
        source=replace(
            source,
            table=query("of_tags", rows=rows, tags=[{"tag": tag} for tag in frequent]),
            columns={**source.columns, RUN: "VARCHAR", TAG: "VARCHAR"},
            rejects=False,
            null_is_unreadable=False,
        ),
        used={role: name for role, name in used.items() if role not in unread}
        | {"trace_id": RUN, "model": TAG},
    )
    return Tagged(
        table=replace(table, columns=columns, typed=None), left_out=len(counted) - len(frequent)
    )


def _conflicts(table: Relation, used: Mapping[str, str]) -> Query:
    """Return the ids of runs with contradictory rows under one trace_id."""
    others = [theirs for ours, theirs in used.items() if ours not in ("trace_id", "tags")]
    return query(
        "conflicts",
        rows=table,
        trace_id=used["trace_id"],
        others=[{"other": name} for name in others],
    )
