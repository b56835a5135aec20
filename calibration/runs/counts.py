"""Count runs in the engine that holds them, and list single runs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import numpy as np
import pandas as pd

from calibration.errors import InputError
from calibration.records import HARNESS, MAX_TAG, PERTURBATIONS, VERSION
from calibration.runs.cells import (
    LENGTHS,
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
    OF_GATES,
    REASONS,
    SHOWN,
    WHY,
    Deduplicated,
    at_utc,
    by_type,
    check,
    checked_zone,
    chosen,
    class_of_word,
    deduplicate,
    given,
    mapped,
)
from calibration.runs.engines import DuckDB, Engine, Query, Relation, kind_of, query, week_names
from calibration.runs.results import (
    BAD,
    CORE,
    FAILED,
    GROUPS,
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
from calibration.taxonomy import CreditTable, Taxonomy

# Up to this number, tasks keep their names, for pairing with a baseline, and are resampled singly.
MOST_NAMED = 20_000

# Above this number, latencies are rounded up to 1/4096 of a factor e.
MOST_LATENCIES, BINS = 1_000_000, 4096.0

_CORRUPTED = r"""(^|[,;|\["'])\s*data_corruption\s*($|[,;|\]"'])"""
EVENTS = ("loops", "loops_in_a_row", "data_corruption")
REFUSED = ("loops", "data_corruption")
TEXTS = ("tier", "category", "model")
EXAMPLES = 5

FACTS = (
    "n", "naive_times", "no_time", "no_cost", "no_units", "no_latency", "bad_latency",
    "bad_lengths", "no_task", "in_words",
)  # fmt: skip

P = ParamSpec("P")

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


def rows_set_aside(
    rows: Relation, source: Source, counts: Mapping[int, int], taxonomy: Taxonomy
) -> list[SetAsideRows]:
    """Return the number of rows with each reason, in the order of the reasons."""
    examples = _examples(query("set_aside", rows=rows), source, _firsts(rows, source))
    return [
        _rows_with(REASONS[code - 1], counts[code], examples[code], taxonomy)
        for code in sorted(counts)
        if code
    ]


def duplicates_set_aside(found: Deduplicated, source: Source, rows: Relation) -> list[SetAsideRows]:
    """Count the rows dropped because another row has their trace_id."""
    set_aside = []
    firsts = _firsts(rows, source)
    for reason, gone in (
        ("identical_duplicate", found.identical), ("conflicting_duplicate", found.conflicting),
    ):  # fmt: skip
        counted = source.engine.run(query("how_many", rows=gone))
        n, traces = (int(v) for v in counted[["n", "traces"]].iloc[0])
        if n:
            examples = _examples(gone, source, firsts)[0]
            # One of the identical rows of a trace is kept.
            set_aside.append(
                _rows_with(reason, n - traces * (reason == "identical_duplicate"), examples)
            )
    return set_aside


def unreadable_lines(source: Source) -> list[SetAsideRows]:
    """Count the lines that the reader of the file refused."""
    if not source.rejects or not isinstance(source.engine, DuckDB):
        return []
    lines = source.engine.rejected_lines()
    if lines.empty:
        return []
    examples = tuple(
        Example(file=str(file), row=int(line), value=str(text)[:SHOWN])
        for file, line, text in lines.head(EXAMPLES).to_numpy().tolist()
    )
    return [_rows_with("unreadable_row", len(lines), examples)]


def _rows_with(
    reason: str, n: int, examples: tuple[Example, ...], taxonomy: Taxonomy | None = None
) -> SetAsideRows:
    classes = ", ".join(taxonomy.names if taxonomy else ())
    return SetAsideRows(
        reason=reason,
        why=WHY[reason].format(classes=classes, perturbations=", ".join(PERTURBATIONS)),
        n=int(n),
        examples=examples,
    )


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


def _by_type_first(
    count: Callable[Concatenate[Source, P], ProductionCounts],
) -> Callable[Concatenate[Source, P], ProductionCounts]:
    """Count many texts as numbers and times first, and as texts where a row needs a closer look.

    Reading texts by type is several times faster, but does not tell why a value is bad, nor where.
    """

    @wraps(count)
    def counted(source: Source, /, *args: P.args, **options: P.kwargs) -> ProductionCounts:
        plain = _typed(source, options) if source.texts and source.large else None
        if plain is not None:
            try:
                found = count(plain, *args, **options)
            except InputError:  # which names the place of a row on the second way
                found = None
            if found is not None and found.plain:
                return replace(found, by_type=True)
        return count(source, *args, **options)

    return counted


def _typed(source: Source, options: Mapping[str, Any]) -> Source | None:
    """Return a source of texts with its used columns in a table by type, if all are plain."""
    engine = source.engine
    if not isinstance(engine, DuckDB):
        return None
    further = OF_GATES if options.get("gates") is not None else ()
    used = mapped(options.get("columns"), columns_of(source), source.name, further=further)
    plain = by_type(source, used)
    table = engine.keep_plain(plain.table, "by_type")
    if table is None or (source.rejects and len(engine.rejected_lines())):
        return None
    return replace(plain, table=table)


@_by_type_first
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
    watch: Collection[str] = (),
    listed: Collection[str] = (),
    n_listed: int = 20,
    lengths: bool = False,
    context_window: int | None = None,
    ceiling_factors: Sequence[float] = (),
    unit_costs: Sequence[str] = (),
) -> ProductionCounts:
    """Count the traces of a source.

    Parameters
    ----------
    source : Source
    taxonomy : Taxonomy
    columns : Mapping of str to str or None, optional
        Column of the source for each of ours: trace_id, workflow, outcome, cost_usd, and optionally
        units, started_at, task_id, trial, weight, stratum, latency_s, model, status and those of
        `signals`. Default: the column of the same name. None leaves a column out.
    credit : CreditTable, optional
        Replaces the credits of the taxonomy.
    further : Mapping of str to CreditTable, optional
        More tables of credits; NAME gives the column ``score_NAME``.
    known_workflows_only : bool, default True
        Set aside traces of workflows outside the taxonomy; otherwise they have no ceiling.
    timezone : str, default "UTC"
        Zone of times without an offset.
    since, until : datetime, optional
        Count the traces from `since` to before `until`, in UTC, and none without a time.
    most_exact, most_tasks : int, default 20,000
        Number of runs up to which each distinct penalty, and of tasks up to which each, is kept.
    named_tasks : bool, default False
        Keep totals by task, under names shared between sources, even where no task repeats.
    gates : GateQuery, optional
        Also return the tables for gates.
    watch : collection of str, optional
        Trace ids to look out for.
    listed : collection of str, optional
        Classes whose first `n_listed` traces are wanted.
    lengths : bool, default False
        Also count success by steps, tokens and share of the context window.
    context_window : int, optional
        Tokens that the context of a run may hold, for runs that state none.
    ceiling_factors : sequence of float, optional
        Also count the cells with every ceiling multiplied by each of these.
    unit_costs : sequence of str, optional
        Classes of the runs whose costs per unit are wanted.

    Raises
    ------
    InputError
        If a column is missing or of the wrong kind, or the zone is unknown.
    """
    for table in (credit, *(further or {}).values()):
        if table is not None and len(table.credit) != len(taxonomy.names):
            raise ValueError(f"credit must be {len(taxonomy.names)} numbers, got {table.credit!r}")
    zone = checked_zone(timezone)
    engine = source.engine
    own = tuple(c for c in source.columns if c not in (source.file, source.row))
    extra = OF_GATES if gates is not None else ()
    used = mapped(columns, own, source.name, further=extra)
    ceilings = {w.name: w.ceiling_usd for w in taxonomy.workflows}
    credits = {SCORE: credit or taxonomy.credit_table}
    credits |= {f"{SCORE}_{name}": table for name, table in (further or {}).items()}
    workflows = ceilings if known_workflows_only and not source.results else None
    checked = check(
        source, used, taxonomy=taxonomy, workflows=workflows, zone=zone, further=extra,
        context_window=context_window,
    )  # fmt: skip
    rows = engine.keep(checked, "checked", numbered=True) if source.texts else checked
    rows = chosen(rows, model=gates.model if gates else None, since=since, until=until)
    codes = coding(
        rows, engine, used, taxonomy, None if workflows is None else tuple(workflows),
        tuple(ceiling_factors),
    )  # fmt: skip
    kept = _kept(rows, source, ceilings, codes, credits, watch, most_exact)
    facts, coded, set_aside = kept.facts, kept.coded, kept.set_aside
    if "difficulty" in used:
        levels = query("names", rows=coded, column="difficulty", most=facts["n"])
        facts["levels"] = len(engine.run(levels)) or None
    cells = kept.counted.cells()
    costs = binned(coded, "cost", engine, codes)
    timed = "latency" if "latency_s" in used else None
    latencies = binned(coded, timed, engine, codes, by_workflow=False)
    counting = Counting(
        rows=kept.rows, coded=coded, engine=engine, coding=codes, credits=credits,
        n=facts["n"], no_task=facts["no_task"], n_strata=np.unique(cells.stratum.codes).size,
    )  # fmt: skip
    tasks = None
    if "task_id" in used:
        tasks = count_tasks(counting, most_tasks=most_tasks, named=named_tasks)
    return ProductionCounts(
        cells=cells.frame(),
        tasks=tasks.table if tasks else None,
        tasks_by=tasks.by if tasks else {},
        n_tasks=tasks.n if tasks else None,
        tasks_grouped=tasks.grouped if tasks else False,
        cost=spread(costs, cells),
        latency=spread(latencies),
        signals=count_signals(
            kept.rows,
            engine,
            used,
            verdicts=verdict_names(taxonomy),
            n=facts["n"],
            n_tasks=tasks.n if tasks else None,
        ),
        lengths=count_lengths(
            coded, engine, codes, n=facts["n"], n_tasks=tasks.n if tasks else None
        )
        if lengths
        else (),
        set_aside=tuple(set_aside),
        notes=_notes(
            facts | {"no_latency": facts["n"] - latencies.known - facts["bad_latency"]},
            cells,
            taxonomy,
            used,
            zone,
        ),
        watched=kept.watched,
        listed=(
            _first_runs(
                kept.rows,
                engine,
                kept.counted.found,
                {name: taxonomy.place(name) for name in listed},
                n_listed,
            )
            if listed
            else None
        ),
        n_read=facts["n"] + sum(rows.n for rows in set_aside),
        n_kept=facts["n"],
        first=_utc(facts["first"]),
        last=_utc(facts["last"]),
        for_gates=(
            gate_tables(kept.rows, engine, used, taxonomy, gates)
            if gates is not None and facts["n"]
            else None
        ),
        at_ceilings={
            factor: _at_ceiling(counting, kept.counted, factor, most_tasks, tasks)
            for factor in ceiling_factors
        },
        unit_costs=_unit_costs(counting, unit_costs) if unit_costs else None,
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

    `watched` is whether a watched trace may be among them.
    """

    rows: Relation
    coded: Relation
    counted: Counted
    facts: dict[str, Any]
    set_aside: list[SetAsideRows]
    watched: bool


def _kept(
    rows: Relation,
    source: Source,
    ceilings: Mapping[str, float | None],
    codes: Coding,
    credits: Mapping[str, CreditTable],
    watch: Collection[str],
    most_exact: int,
) -> _Kept:
    """Count the rows and set aside those that do not count, with the reason, and duplicates."""
    engine = source.engine

    def in_numbers(checked: Relation) -> Relation:
        coded = codes.code(price(checked, ceilings, codes.factors))
        # Few rows cost less than planning the statement anew, and many statements read tasks.
        often = "task_id" in codes.used or not {*SHOWN_BY}.isdisjoint(codes.used)
        return engine.keep(coded, "coded") if often or not source.large else coded

    def counted(coded: Relation, *, exact: bool) -> Counted:
        return count_cells(coded, engine, credits, codes, exact=exact)

    coded = in_numbers(rows)
    every = counted(coded, exact=False)
    set_aside = unreadable_lines(source)
    by_reason = every.found.groupby("reason")["n"].sum()
    counts = {int(reason): int(n) for reason, n in zip(by_reason.index, by_reason, strict=True)}
    if set(counts) - {0}:
        set_aside += rows_set_aside(rows, source, counts, codes.taxonomy)
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
        rows=rows, coded=coded, counted=every.good, facts=_facts(every.good.found, n),
        set_aside=set_aside, watched=watched,
    )  # fmt: skip


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


def _notes(
    facts: Mapping[str, Any],
    cells: Cells,
    taxonomy: Taxonomy,
    used: Mapping[str, str],
    zone: str,
) -> Notes:
    counted = np.bincount(cells.workflow.codes, weights=cells.sums["n"])
    ceilings = {w.name: w.ceiling_usd for w in taxonomy.workflows}
    named = {name: int(facts[name]) for name in FACTS if name != "n"}
    # A missing column is no note on single traces.
    if "task_id" not in used:
        named["no_task"] = 0
    return Notes(
        **named,
        words=class_of_word(taxonomy),
        timezone=zone,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the rows of a source are read: arguments of `production_counts`."""

    taxonomy: Taxonomy
    columns: Mapping[str, str | None] | None = None
    known_workflows_only: bool = True
    timezone: str = "UTC"
    since: datetime | None = None
    until: datetime | None = None
    further: tuple[str, ...] = ()


def list_runs(source: Source, reading: Reading, *, outcomes: Collection[str]) -> pd.DataFrame:
    """Return all runs of some classes, each class in order of time, with the columns of `LISTED`.

    Runs without a time come last; duplicates are kept. `source` must be freshly opened: a reader
    keeps the rows that it has read.
    """
    if not outcomes:
        return pd.DataFrame(columns=LISTED)
    return _in_time(query("listed", rows=_rows(source, reading)), source.engine, outcomes)


def count_named(source: Source, reading: Reading, names: Collection[tuple[str, str]]) -> int:
    """Return the number of rows with one of these (workflow, trace_id)."""
    if not names:
        return 0
    used = mapped(reading.columns, columns_of(source), source.name, further=reading.further)
    own = {ours: used[ours] for ours in ("workflow", "trace_id")}
    rows = given(source, own, zone="UTC")
    pairs = sorted(APART.join(pair) for pair in names)
    return int(source.engine.run(query("named", given=rows, apart=APART, pairs=pairs))["n"][0])


def columns_of(source: Source) -> tuple[str, ...]:
    """Return the original column names of the source."""
    return tuple(c for c in source.columns if c not in (source.file, source.row))


def _rows(source: Source, reading: Reading) -> Relation:
    used = mapped(reading.columns, columns_of(source), source.name, further=reading.further)
    workflows = [w.name for w in reading.taxonomy.workflows]
    rows = check(
        source, used, taxonomy=reading.taxonomy,
        workflows=workflows if reading.known_workflows_only and not source.results else None,
        zone=checked_zone(reading.timezone),
    )  # fmt: skip
    return chosen(rows, model=None, since=reading.since, until=reading.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """A source with one row per run and tag, its tags as models; `left_out` counts the others."""

    source: Source
    columns: Mapping[str, str | None]
    left_out: int


def laid_out(
    source: Source, columns: Mapping[str, str | None], *, conflicts: bool, most: int = MOST_TAGS
) -> Tagged | None:
    """Return the runs of a source once per tag; None without a column of tags.

    Tags are a list, a JSON list as text, or a text separated by ``;`` or ``,``; the `most` frequent
    are kept, of those that are not too long. With `conflicts`, runs that share a trace_id but not
    their values are left out.
    """
    used = mapped(columns, columns_of(source), source.name)
    if "tags" not in used:
        return None
    kind = source.columns[used["tags"]]
    if kind_of(kind) not in ("text", "texts"):
        raise InputError(f"{source.name}: column 'tags' holds {kind}, not texts or lists of texts")
    twice = {"conflicts": _conflicts(source.table, used)} if conflicts else {}
    rows = query(
        "tagged", rows=source.table, apart=APART, trace_id=used["trace_id"], tags=used["tags"],
        listed=kind_of(kind) == "texts", **twice,
    )  # fmt: skip
    counted = source.engine.run(query("tags", rows=rows))
    found = [tag for tag in counted[TAG].tolist() if len(tag) <= MAX_TAG][:most]
    return Tagged(
        source=replace(
            source,
            table=query("of_tags", rows=rows, tags=[{"tag": tag} for tag in found]),
            columns={**source.columns, RUN: "VARCHAR", TAG: "VARCHAR"},
            rejects=False,
            null_is_unreadable=False,
        ),
        columns={
            **columns,
            **dict.fromkeys(("tags", "tier", "difficulty", VERSION, HARNESS, *LENGTHS, *SIGNALS)),
            "trace_id": RUN,
            "model": TAG,
        },
        left_out=len(counted) - len(found),
    )


def _conflicts(table: Relation, used: Mapping[str, str]) -> Query:
    """Return the ids of runs with contradictory rows under one trace_id."""
    others = [theirs for ours, theirs in used.items() if ours not in ("trace_id", "tags")]
    return query(
        "conflicts", rows=table, trace_id=used["trace_id"],
        others=[{"other": name} for name in others],
    )  # fmt: skip
