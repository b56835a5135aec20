"""Which columns of a source of runs have which role, and what its outcomes, numbers and times say.

Roles and conventions are decided by the first rows; outcomes by all values that occur, together
over every table of a command.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from calibration.errors import InputError
from calibration.records import HARNESS, VERSION
from calibration.runs.engines import DuckDB, Query, kind_of, quoted
from calibration.runs.results import ProductionCounts, SetAsideRows
from calibration.runs.sources import Source
from calibration.tables import words
from calibration.tables.columns import (
    ALIASES,
    ARMS,
    FURTHER,
    LOOKED,
    MILLISECONDS,
    Columns,
    Sample,
    find_columns,
    never_outcome,
    normalised,
)
from calibration.tables.reading import FirstRow, LeftOut, Reading, ReadingOptions, left_out
from calibration.tables.reading import reading_of as reading_of_columns
from calibration.tables.scales import OutcomeColumn, OutcomeWords, read_outcomes
from calibration.taxonomy import Taxonomy

# Named in the JSON of every command, with null where no column has the role.
ROLES = (
    "trace_id",
    "task_id",
    "trial",
    "outcome",
    "cost_usd",
    "workflow",
    "started_at",
    "latency_s",
)
NUMBERS = (
    "cost_usd",
    "units",
    "weight",
    "latency_s",
    "tool_calls",
    "tool_errors",
    "n_steps",
    "total_tokens",
    "context_tokens",
    "context_window",
)
RUN_NUMBER = "asr_run_number"
MOST_DISTINCT = 10_000  # different outcomes; more are no outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How runs are read.

    `is_named` : whether the rubric was chosen by the user or the store. `since`, `until` : the
    window, in UTC. `further` : columns that only some commands read.
    """

    taxonomy: Taxonomy
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    is_named: bool = False
    known_workflows_only: bool = False
    timezone: str = "UTC"
    since: datetime | None = None
    until: datetime | None = None
    further: tuple[str, ...] = ()

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that are read under their own name alone."""
        unread = {"category", "data_corruption"} - set(self.further)
        return tuple(name for name in FURTHER if name not in unread)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunColumns:
    """A source with the roles of its columns.

    `source` : the source, without the rows that --where leaves out. `used` : the column by role.
    `decimals` : the decimal sign of columns of texts whose numbers are not plain. `clock` : how
    times are written. `n_not_chosen` : rows that --where leaves out. `is_numbered` : whether runs
    have no id and are numbered. `clean` : roles whose texts are all clean, so that they need not be
    cleaned row by row; `whole` : roles of which each row holds a clean one. `names` : the
    different texts of roles that have few.
    """

    source: Source
    columns: Columns
    used: Mapping[str, str]
    decimals: Mapping[str, words.Decimal]
    clock: words.Clock
    n_not_chosen: int
    is_numbered: bool
    notes: tuple[str, ...]
    clean: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def milliseconds(self) -> bool:
        """Whether latencies are in milliseconds."""
        return normalised(self.used.get("latency_s", "")) in MILLISECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """How the rows of a source are read: its columns, and what the outcomes are taken as."""

    columns: RunColumns
    outcomes: OutcomeWords
    options: RunOptions


def columns_of(source: Source) -> tuple[str, ...]:
    """Return the original column names of the source."""
    return tuple(c for c in source.columns if c not in (source.file, source.row, RUN_NUMBER))


def recognise_columns(source: Source, options: RunOptions) -> RunColumns:
    """Return the roles of the columns of a source.

    Raises
    ------
    InputError
        If no column holds the outcome, or two may, or numbers or times can be read in two ways.
    """
    reading, header = options.reading, columns_of(source)
    n_not_chosen = 0
    if reading.where:
        source, n_not_chosen = _chosen(source, reading.where)
    sample = _sample(source, header, reading)
    try:
        columns = _roles(source, header, sample, options)
    except InputError:
        # The question names the columns that may hold the outcome: look at all of them.
        sample = _first_rows(source, header)
        columns = _roles(source, header, sample, options)
    used, notes, is_numbered = dict(columns.by_role), [], False
    older = used.pop("loop", None)
    if older is not None:
        used.setdefault("loops", older)
    if "trace_id" not in used:
        source, is_numbered = _numbered(source), True
        used["trace_id"] = RUN_NUMBER
        notes.append("No column names the runs: each row is one, by its number.")
    clock = _clock(source, used, sample, options)
    return RunColumns(
        source=source,
        columns=columns,
        used=used,
        decimals=dict(_decimals(source, used, sample, reading)),
        clock=clock,
        n_not_chosen=n_not_chosen,
        is_numbered=is_numbered,
        notes=(*notes, *_arm_notes(columns, sample), *_clock_notes(clock, used)),
    )


def _roles(source: Source, header: Sequence[str], sample: Sample, options: RunOptions) -> Columns:
    return find_columns(
        header,
        sample,
        place=source.name,
        chosen=options.reading.columns,
        further=options.roles,
        mapped=options.reading.mapped,
    )


def _sample(source: Source, header: Sequence[str], reading: ReadingOptions) -> Sample:
    """Return the first rows of the columns that may have a role."""
    known = {alias for aliases in ALIASES.values() for alias in aliases}
    known |= {*FURTHER, *ARMS}
    chosen = set(reading.columns.values())
    kept = [
        name
        for name in header
        if name in chosen
        or normalised(name) in known
        or normalised(name).endswith("_id")
        or never_outcome(name)
    ]
    return _first_rows(source, kept)


def _first_rows(source: Source, names: Sequence[str]) -> Sample:
    if not names:
        return Sample({})
    listed = ",\n  ".join(
        f'CAST({quoted(name)} AS VARCHAR) AS "c{k}"' for k, name in enumerate(names)
    )
    text = f'SELECT\n  {listed}\nFROM "source"\nLIMIT {LOOKED}'
    first = source.engine.first(Query("first_rows", text, {}, {"source": source.table}))
    texts: dict[str, Sequence[str]] = {}
    for name, values in zip(names, first, strict=True):
        written = [text or "" for text in values]
        # Numbers and times are clean as the engine writes them.
        is_clean = kind_of(source.columns[name]) in ("number", "moment")
        texts[name] = written if is_clean else list(map(words.clean, written))
    return Sample(texts)


def _chosen(source: Source, where: Sequence[tuple[str, str]]) -> tuple[Source, int]:
    """Return the source with the rows that --where chooses alone, and how many it leaves out."""
    from calibration.text import names_there

    conditions, values = [], {}
    for k, (name, value) in enumerate(where):
        if name not in columns_of(source):
            raise InputError(
                f"--where: {source.name} has no column {name!r:.80}; "
                f"{names_there(name, columns_of(source))}"
            )
        conditions.append(f"clean_of(CAST({quoted(name)} AS VARCHAR)) = $where_{k}")
        values[f"where_{k}"] = words.clean(value)
    condition = " AND ".join(conditions)
    (counts,) = source.engine.rows(
        Query(
            "chosen_rows",
            f'SELECT count(*) AS "n", sum(ones_of({condition})) AS "chosen" FROM "source"',
            values,
            {"source": source.table},
        )
    )
    n, n_chosen = int(counts["n"]), int(counts["chosen"] or 0)
    if not n_chosen:
        raise InputError(f"--where: no row of {source.name} is chosen")
    text = f'SELECT *\nFROM "source"\nWHERE {condition}'
    table = Query("where", text, values, {"source": source.table})
    # Rows are no longer lines of the file.
    return replace(source, table=table, first_row=source.first_row), n - n_chosen


def _numbered(source: Source) -> Source:
    """Return the source with a number as the id of each run."""
    if not isinstance(source.engine, DuckDB):
        raise InputError(
            f"{source.name}: no column names the runs; name it with --column trace_id=NAME"
        )
    text = f'SELECT *, CAST(row_number() OVER () AS VARCHAR) AS {quoted(RUN_NUMBER)}\nFROM "source"'
    return replace(
        source,
        table=Query("numbered", text, {}, {"source": source.table}),
        columns={**source.columns, RUN_NUMBER: "VARCHAR"},
    )


def _decimals(
    source: Source, used: Mapping[str, str], sample: Sample, reading: ReadingOptions
) -> "Collection[tuple[str, words.Decimal]]":
    """Return the decimal sign of the columns of texts whose numbers are not plain."""
    decimals: list[tuple[str, words.Decimal]] = []
    for role in NUMBERS:
        column = used.get(role)
        if column is None or kind_of(source.columns[column]) != "text":
            continue
        values = sample.values(column)
        if role == "cost_usd":
            _refuse_currency(source.name, column, values)
        place = f"{source.name}: {column}"
        decimal = words.decimal_of(values, place=place, chosen=reading.decimal)
        if decimal is not None:
            decimals.append((role, decimal))
    return decimals


def _refuse_currency(place: str, column: str, values: Sequence[str]) -> None:
    for value in values:
        code = None if words.is_plain(value) else words.currency_of(value)
        if code is not None:
            raise InputError(
                f"{place}: costs are read in US dollars, and {column} holds {code}: "
                "--column cost_usd= leaves them out"
            )


def _clock(
    source: Source, used: Mapping[str, str], sample: Sample, options: RunOptions
) -> words.Clock:
    """Return how times are written; refuse what cannot be told where a window needs it."""
    column = used.get("started_at")
    if column is None:
        return "iso"
    kind = kind_of(source.columns[column])
    if kind not in ("text", "number"):
        return "iso"
    clock = words.clock_of(sample.values(column), chosen=options.reading.dates)
    if clock == "unclear" and (options.since is not None or options.until is not None):
        example = sample.values(column)[0]
        raise InputError(
            f"{source.name}: {column}: {example!r:.40} may have the day or the month first: "
            "--dates dmy or --dates mdy"
        )
    return clock


def _clock_notes(clock: words.Clock, used: Mapping[str, str]) -> tuple[str, ...]:
    if clock != "unclear":
        return ()
    return (
        f"Times in {used['started_at']} were not read: day and month cannot be told apart "
        "(--dates dmy or --dates mdy).",
    )


def _arm_notes(columns: Columns, sample: Sample) -> list[str]:
    """Say which columns tell agents apart that are pooled here."""
    grouped = {columns.by_role.get(role) for role in ("model", VERSION, HARNESS)}
    return [
        f"The rate is over {len(set(sample.values(name))):,} values of {name}; "
        f"--where {name}=NAME reads one."
        for name in columns.arms
        if name not in grouped
    ]


def outcome_values(columns: RunColumns, table: Source | None = None) -> OutcomeColumn:
    """Return the values of the outcome and their rows, from another form of the source if given."""
    source = table or columns.source
    name = columns.used["outcome"]
    text = (
        f'SELECT text_of(CAST({quoted(name)} AS VARCHAR)) AS "value", count(*) AS "n"\n'
        f'FROM "source"\nGROUP BY 1\nORDER BY 2 DESC\nLIMIT {MOST_DISTINCT}'
    )
    rows = source.engine.rows(Query("outcome_values", text, {}, {"source": source.table}))
    counts = {row["value"] or "": int(row["n"]) for row in rows}
    return OutcomeColumn(place=source.name, name=name, role_name=normalised(name), counts=counts)


def outcomes_of(values: Sequence[OutcomeColumn], options: RunOptions) -> OutcomeWords:
    """Return what the outcomes of all tables of a command are taken as."""
    return read_outcomes(
        values,
        taxonomy=options.taxonomy,
        options=options.reading.outcomes(is_named=options.is_named),
    )


def recognise(source: Source, options: RunOptions) -> Recognised:
    """Return how the rows of one source are read; raises as `recognise_columns`."""
    columns = recognise_columns(source, options)
    outcomes = outcomes_of([outcome_values(columns)], options)
    return Recognised(columns=columns, outcomes=outcomes, options=options)


def reading_of_runs(counts: ProductionCounts) -> Reading:
    """Return what was read of a source, and what was left out."""
    return reading_of_rows(
        counts.recognised, counts.set_aside, n_read=counts.n_read, n_kept=counts.n_kept
    )


def reading_of_rows(
    recognised: Recognised, set_aside: Sequence[SetAsideRows], *, n_read: int, n_kept: int
) -> Reading:
    """Return the same of rows that were counted in another way."""
    columns, outcomes, options = recognised.columns, recognised.outcomes, recognised.options
    rows_left_out = [_left_out(rows, columns) for rows in set_aside]
    if columns.n_not_chosen:
        rows_left_out.append(left_out("where", columns.n_not_chosen))
    shown = {role: columns.columns.by_role.get(role) for role in columns.columns.by_role}
    return reading_of_columns(
        columns.columns,
        roles=tuple(dict.fromkeys((*ROLES, *shown))),
        left_out=rows_left_out,
        place=columns.source.name,
        rows=n_read + columns.n_not_chosen,
        used=n_kept,
        words={"outcome": outcomes.words} if outcomes.words else {},
        missing_words=outcomes.missing,
        rubric="two_class" if outcomes.is_two_class else outcomes.taxonomy.version,
        scale=outcomes.scale,
        max_left_out=options.reading.limit,
        notes=(*columns.notes, *outcomes.notes),
    )


def _left_out(rows: SetAsideRows, columns: RunColumns) -> LeftOut:
    """Return rows that do not count, with the line of the first in a text file."""
    first = None
    if rows.examples:
        example = rows.examples[0]
        header = 1 if columns.source.rejects and rows.reason != "unreadable_row" else 0
        is_line = example.row is not None and not columns.n_not_chosen
        # Runs of a store are no lines.
        is_line = is_line and (columns.source.file is not None or not columns.source.results)
        first = FirstRow(
            line=example.row + header if is_line and example.row is not None else None,
            value=example.value,
            file=example.file,
        )
    return left_out(rows.reason, rows.n, first, runs=rows.runs)
