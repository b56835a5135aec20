"""Columns of a source, read by type (see `sql/functions.sql`), and the rows that count."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from calibration.errors import InputError
from calibration.records import (
    AT,
    HARNESS,
    LOOP,
    NOT_PERTURBED,
    PERTURBATIONS,
    VERSION,
    YEARS,
)
from calibration.runs.engines import DuckDB, Engine, Kind, Query, Relation, kind_of, query, quoted
from calibration.runs.recognition import (
    NUMBERS,
    RUN_NUMBER,
    Recognised,
    RunColumns,
    RunOptions,
    outcome_values,
    recognise_columns,
)
from calibration.runs.results import (
    LENGTHS,
    NO_WORKFLOW,
    PERTURBED,
    Example,
    SetAsideRows,
    verdict_names,
)
from calibration.runs.sources import Source
from calibration.tables import words
from calibration.tables.reading import REASONS as WHY
from calibration.tables.scales import OutcomeColumn

OF_GATES = ("tier", "category", "loops", "data_corruption", "tags")

# Separator in joined names: workflow and task, run and tag.
APART = "\x1f"

_TEXTS = (
    "trace_id", "workflow", "outcome", "stratum", "model", "task_id", "trial", "status", "verdict",
    "perturbation",
)  # fmt: skip

IDS = ("trace_id", "task_id")
NAMED = ("workflow", "model", VERSION, "stratum")
# With more names than this, or unknown names, the texts themselves are keys.
MOST_NAMES = 127
_SHOWN = ("workflow", "outcome", "cost_usd", "units", "weight", "started_at")
_NO_TEXT, _NO_NUMBER = "CAST(NULL AS VARCHAR)", "CAST(NULL AS DOUBLE)"
# Up to about this number of different values, each is counted.
MOST_LISTED = 50
MAX_USD = 1e6
MAX_UNITS = MAX_WEIGHT = 1e9
SHOWN = 80
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Rows of a reason that are kept as examples.
EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTable:
    """A source that is open, with the roles of its columns, ready to be counted.

    `typed` : its used columns read by type, where all texts are plain; several times faster, but
    does not tell why a value is bad, nor where. `outcomes` : the values of its outcomes.
    """

    columns: RunColumns
    options: RunOptions
    typed: RunColumns | None
    outcomes: OutcomeColumn


def open_runs(source: Source, options: RunOptions) -> RunTable:
    """Recognise the columns of a source, and list the values of its outcomes.

    Raises
    ------
    InputError
        If the columns cannot be told, as `recognise_columns`.
    """
    columns = recognise_columns(source, options)
    typed = _typed(columns)
    if typed is None:
        columns = _with_texts(columns)
    else:
        typed = _with_texts(typed)
    values = outcome_values(columns, None if typed is None else typed.source)
    return RunTable(columns=columns, options=options, typed=typed, outcomes=values)


def _typed(columns: RunColumns) -> RunColumns | None:
    """Return a source of texts with its used columns in a table by type, if all are plain."""
    source, engine = columns.source, columns.source.engine
    if not (source.texts and source.large and isinstance(engine, DuckDB)):
        return None
    plain = by_type(columns)
    table = None if plain is None else engine.keep_plain(plain.source.table, "by_type")
    if plain is None or table is None or (source.rejects and len(engine.rejected_lines())):
        return None
    return replace(plain, source=replace(plain.source, table=table))


def _with_texts(columns: RunColumns) -> RunColumns:
    """Return the columns of a table in DuckDB with what is known of their texts.

    To clean a text takes three times as long as to read it, in each statement anew: names are few,
    and the ids of many rows are looked at once.
    """
    source, engine, used = columns.source, columns.source.engine, columns.used
    if source.texts or not isinstance(engine, DuckDB):
        return columns
    clean, whole, names = set(columns.clean), set(columns.whole), {}
    of_texts = {role for role in used if kind_of(source.columns[used[role]]) == "text"}
    for role in of_texts & {*NAMED}:
        texts = query("written_names", source=source.table, column=used[role], most=MOST_NAMES + 1)
        rows = engine.rows(texts)
        if len(rows) <= MOST_NAMES:
            names[role] = tuple(sorted({row["name"] for row in rows if row["name"] is not None}))
            if all(row["written"] in (row["name"], None, "") for row in rows):
                clean.add(role)
            if all(row["name"] is not None and row["written"] == row["name"] for row in rows):
                whole.add(role)
    ids = sorted(of_texts & {*IDS}) if source.large else []
    if ids:
        # True where each row holds a clean text.
        listed = []
        for role in ids:
            text = f"CAST({quoted(used[role])} AS VARCHAR)"
            same = f"{text} <> ''" if role in clean else f"present_of({text}) = {text}"
            listed.append(f"coalesce(bool_and(coalesce({same}, FALSE)), TRUE) AS {quoted(role)}")
        text = "SELECT\n  " + ",\n  ".join(listed) + '\nFROM "source"'
        (row,) = engine.rows(Query("whole_ids", text, {}, {"source": source.table}))
        whole |= {role for role in ids if row[role]}
    return replace(columns, clean=frozenset(clean | whole), whole=frozenset(whole), names=names)


def unreadable_lines(source: Source) -> list[SetAsideRows]:
    """Count the lines that the reader of the file refused."""
    if not source.rejects or not isinstance(source.engine, DuckDB):
        return []
    lines = source.engine.rejected_lines()
    if not lines:
        return []
    examples = tuple(
        Example(file=file, row=line, value=text[:SHOWN]) for file, line, text in lines[:EXAMPLES]
    )
    n = len(lines)
    return [SetAsideRows(reason="unreadable_row", n=n, runs=n, examples=examples)]


def given(columns: RunColumns, *, zone: str, further: Collection[str] = ()) -> Query:
    """Return the rows of a source under our own names, each column read by its type.

    A column of numbers adds ``_unreadable`` and ``_endless``; times are ``at`` with ``naive`` and
    ``time_unreadable``; columns quoted when bad add ``given_``. Missing columns are null. Of the
    columns of gates the `further` ones are read.
    """
    source, used = columns.source, columns.used
    reads = _Reads(columns, zone)
    listed = {name: reads.text(name) for name in _TEXTS}
    listed["outcome"] = reads.as_written("outcome")
    if "workflow" not in columns.whole:
        listed["workflow"] = f"coalesce({listed['workflow']}, '{NO_WORKFLOW}')"
    listed[VERSION] = version_of(reads)
    if not {"tool_calls", "tool_errors"} <= used.keys():
        few = {role: name for role, name in used.items() if not role.startswith("tool_")}
        reads = reads.of(few)
    listed |= reads.number("cost_usd", "cost_read", "cost") | reads.number(
        "units", "units_read", "units"
    )
    # Always a decimal: stored fingerprints of gates depend on the type of its sums.
    listed |= reads.number("weight", "weight", "weight", absent="1.0")
    listed |= reads.latency()
    listed |= reads.moment()
    for ours in ("tool_calls", "tool_errors", "max_repeats", *LENGTHS):
        listed |= reads.number(ours, f"{ours}_read", ours)
    for ours in ("loops", "loops_in_a_row", "escalated"):
        listed |= reads.happened(ours)
    listed |= reads.feedback()
    listed |= {name: reads.any_text(name if name in further else "") for name in OF_GATES}
    listed |= {name: reads.any_text(name) for name in ("tier", "difficulty")}
    if "loops" in further and "loops" not in used:
        listed["loops"] = reads.any_text("max_repeats")
    listed |= {f"given_{ours}": reads.column(ours) or _NO_TEXT for ours in _SHOWN}
    nothing = [f"{quoted(name)} IS NULL" for name in sorted(set(used.values()))]
    listed |= {
        "nothing": " AND ".join(nothing) if source.null_is_unreadable else "FALSE",
        "row": f"CAST({quoted(source.row)} AS BIGINT)" if source.row else "CAST(NULL AS BIGINT)",
        "file": quoted(source.file) if source.file else _NO_TEXT,
    }
    text = ",\n  ".join(f"{value} AS {quoted(name)}" for name, value in listed.items())
    bound = {"zone": zone} if "$zone" in text else {}
    rows = Query("given", f'SELECT\n  {text}\nFROM "texts"', bound, {})
    return replace(rows, reads={"texts": reads.clean_texts()})


def by_type(columns: RunColumns) -> RunColumns | None:
    """Return the used columns of a source of texts, numbers and times read as such.

    None where numbers or times are not plain. Reading the rows fails where a text is no plain
    number, or no time with a zone.
    """
    source, used = columns.source, columns.used
    if columns.decimals or columns.clock != "iso" or columns.is_numbered or columns.n_not_chosen:
        return None
    shared = Counter(used.values())
    types = dict.fromkeys(NUMBERS, ("plain_number", "DOUBLE"))
    types["started_at"] = ("plain_moment", "TIMESTAMP WITH TIME ZONE")
    types |= dict.fromkeys(IDS, ("present_of", "VARCHAR"))
    kinds = {theirs: source.columns[theirs] for theirs in shared}
    read = {theirs: quoted(theirs) for theirs in shared}
    for ours, theirs in used.items():
        if ours in types and shared[theirs] == 1 and kind_of(source.columns[theirs]) == "text":
            function, kinds[theirs] = types[ours]
            read[theirs] = f"{function}({quoted(theirs)})"
    listed = [f"{value} AS {quoted(theirs)}" for theirs, value in read.items()]
    text = "SELECT\n  " + ",\n  ".join(listed) + '\nFROM "source"'
    typed = replace(
        source,
        table=Query("by_type", text, {}, {"source": source.table}),
        columns=kinds,
        texts=False,
        file=None,
        row=None,
        rejects=False,
        null_is_unreadable=False,
    )
    clean = frozenset(
        role
        for role in IDS
        if role in used
        and shared[used[role]] == 1
        and kind_of(source.columns[used[role]]) == "text"
    )
    return replace(columns, source=typed, clean=clean)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldValues:
    """What a column of runs holds.

    `known` : rows with a value. `different` : how many different ones, of texts. `counts` : the
    rows of each, the most frequent first, where it is no id and there are few. `low`, `high` :
    the smallest and the largest number, or moment.
    """

    known: int
    different: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    low: float | datetime | None = None
    high: float | datetime | None = None


# The columns of `given` in which the values of a role are.
_RANGES = {"cost_usd": "cost_read", "latency_s": "latency", "started_at": "at"}
_QUICK: tuple[Kind, ...] = ("number", "text", "moment", "naive", "nothing")
_LISTED = ("trial", "workflow", "model", "agent_version")


def held_values(
    columns: RunColumns, engine: DuckDB, *, zone: str
) -> tuple[int, dict[str, HeldValues]]:
    """Return the number of rows, and what the columns of the main roles hold, but the outcome.

    A large text file is read once, its used columns are kept. Texts are counted as they are
    written: cleaning each of a million takes longer than reading them.
    """
    columns = _kept_columns(columns, engine)
    source, used = columns.source, columns.used
    ranges = [role for role in _RANGES if role in used]
    rows = _quick_ranges(columns, ranges) if source.large else None
    if rows is None:
        few = replace(columns, used={role: used[role] for role in ranges})
        listed = ",\n  ".join(['1 AS "one"', *(f'"{_RANGES[r]}" AS "{r}"' for r in ranges)])
        text = f'SELECT\n  {listed}\nFROM "given"'
        rows = Query("ranges", text, {}, {"given": given(few, zone=zone)})
    parts = ['count(*) AS "n"']
    for role in ranges:
        parts += [f'count("{role}") AS "known_{role}"']
        for end in ("min", "max"):
            value = f'{end}("{role}")'
            value = f"epoch_us({value})" if role == "started_at" else value
            parts.append(f'{value} AS "{end}_{role}"')
    text = "SELECT\n  " + ",\n  ".join(parts) + '\nFROM "ranges"'
    read = Query("held", text, {}, {"ranges": rows})
    (found,) = engine.rows(read)
    held = {
        role: HeldValues(
            known=int(found[f"known_{role}"]),
            low=_end(role, found[f"min_{role}"]),
            high=_end(role, found[f"max_{role}"]),
        )
        for role in ranges
    }
    for role in (*IDS, *_LISTED):
        if role in used and used[role] != RUN_NUMBER:
            held[role] = _held_texts(source, engine, used[role], is_id=role in IDS)
    return int(found["n"]), held


def _kept_columns(columns: RunColumns, engine: DuckDB) -> RunColumns:
    """Return the used columns of a large text file as a table; others as they are."""
    source = columns.source
    if not (source.texts and source.large):
        return columns
    names = ",\n  ".join(map(quoted, sorted(set(columns.used.values()))))
    rows = Query("used_columns", f'SELECT\n  {names}\nFROM "source"', {}, {"source": source.table})
    table = engine.keep(rows, "used_columns")
    return replace(columns, source=replace(source, table=table, file=None, row=None))


def _quick_ranges(columns: RunColumns, roles: Sequence[str]) -> Query | None:
    """Return numbers and times of many rows as the engine reads them; None where it cannot.

    A value that it does not read is not known here, a report may read it.
    """
    source, listed = columns.source, ['1 AS "one"']
    for role in roles:
        column, kind = quoted(columns.used[role]), kind_of(source.columns[columns.used[role]])
        if role in columns.decimals or columns.clock != "iso" or kind not in _QUICK:
            return None
        type_name = "TIMESTAMPTZ" if role == "started_at" else "DOUBLE"
        value = f"TRY_CAST({column} AS {type_name})"
        if role == "latency_s" and columns.milliseconds:
            value += " / 1000"
        if role != "started_at":
            value = f"CASE WHEN isfinite({value}) THEN {value} END"
        listed.append(f'{value} AS "{role}"')
    text = "SELECT\n  " + ",\n  ".join(listed) + '\nFROM "source"'
    return Query("ranges", text, {}, {"source": source.table})


def _held_texts(source: Source, engine: DuckDB, column: str, *, is_id: bool) -> HeldValues:
    missing = ", ".join(f"'{word}'" for word in sorted(words.MISSING))
    value = f"CAST({quoted(column)} AS VARCHAR)"
    text = (
        f'SELECT {value} AS "value" FROM "source" '
        f"WHERE {quoted(column)} IS NOT NULL AND {value} NOT IN ({missing})"
    )
    texts = Query("texts", text, {}, {"source": source.table})
    about = 'SELECT count(*) AS "n", approx_count_distinct("value") AS "about" FROM "texts"'
    (row,) = engine.rows(Query("about", about, {}, {"texts": texts}))
    known = int(row["n"])
    if is_id or int(row["about"]) > MOST_LISTED:
        ids = Query("ids", 'SELECT hash("value") AS "id" FROM "texts"', {}, {"texts": texts})
        different, _ = engine.distinct(ids, "id", known)
        return HeldValues(known=known, different=different)
    listed = engine.rows(
        Query(
            "values",
            'SELECT "value", count(*) AS "n" FROM "texts" GROUP BY 1 ORDER BY 2 DESC, 1',
            {},
            {"texts": texts},
        )
    )
    counts: Counter[str] = Counter()
    for row in listed:
        value = words.clean(row["value"])
        if not words.is_missing(value):
            counts[value] += int(row["n"])
    return HeldValues(known=counts.total(), different=len(counts), counts=counts)


def _end(role: str, value: float | None) -> float | datetime | None:
    """Return a number, or the moment in UTC of microseconds; None where there is none."""
    if value is None:
        return None
    return EPOCH + timedelta(microseconds=value) if role == "started_at" else float(value)


def version_of(reads: "_Reads") -> str:
    """Read the agent version; with a column of harnesses, as ``harness@version``."""
    version, harness = reads.text(VERSION), reads.text(HARNESS)
    if HARNESS not in reads.used:
        return version
    return f"coalesce({harness} || '{AT}' || coalesce({version}, ''), {version})"


class _Reads:
    """SQL that reads each column of a source, by its alias."""

    def __init__(self, columns: RunColumns, zone: str) -> None:
        self.columns, self.zone = columns, zone
        self.source, self.used = columns.source, columns.used
        self.texts: dict[str, str] = {}
        self.forms: dict[str, str] = {}

    def clean_texts(self) -> Query:
        """Return the rows of the source with the texts that are read, each made once."""
        texts = [f"{value} AS {quoted(name)}" for name, value in self.texts.items()]
        forms = [f"{value} AS {quoted(name)}" for name, value in self.forms.items()]
        inner = Query(
            "texts",
            "SELECT\n  "
            + ",\n  ".join(["*", *texts])
            + '\nFROM "source"'
            + self.source.engine.fence,
            {},
            {"source": self.source.table},
        )
        if not forms:
            return inner
        text = "SELECT\n  " + ",\n  ".join(["*", *forms]) + '\nFROM "clean"'
        return Query("forms", text, {}, {"clean": inner})

    def form(self, ours: str, macro: str) -> str:
        """Return the text of a column in the form that a function gives it."""
        name = f"asr form of {ours}"
        self.forms[name] = f"{macro}({self.text(ours)})"
        return quoted(name)

    def of(self, used: Mapping[str, str]) -> "_Reads":
        """Return the same for other columns, with the texts that were read."""
        reads = _Reads(replace(self.columns, used=used), self.zone)
        reads.texts, reads.forms = self.texts, self.forms
        return reads

    def column(self, ours: str) -> str | None:
        return quoted(self.used[ours]) if ours in self.used else None

    def kind(self, ours: str) -> Kind:
        return kind_of(self.source.columns[self.used[ours]]) if ours in self.used else "nothing"

    def refused(self, ours: str, needed: str) -> InputError:
        held = self.source.columns[self.used[ours]]
        return InputError(f"{self.source.name}: column {ours!r} holds {held:.80}{needed}")

    def text(self, ours: str) -> str:
        """Read a column as text; empty is missing."""
        if self.kind(ours) in ("texts", "nested"):
            raise self.refused(ours, ", not texts")
        return self.any_text(ours)

    def any_text(self, ours: str) -> str:
        """Read a column of any type as clean text; lists are written out."""
        column = self.column(ours)
        if column is None:
            return _NO_TEXT
        name = f"asr text of {ours}"
        read = "text_of" if ours in self.columns.clean else "present_of"
        self.texts[name] = f"{read}(CAST({column} AS VARCHAR))"
        return quoted(name)

    def as_written(self, ours: str) -> str:
        """Read a column as the text that is there; empty is missing."""
        column = self.column(ours)
        return _NO_TEXT if column is None else f"text_of(CAST({column} AS VARCHAR))"

    def number(
        self, ours: str, name: str, marks: str, *, absent: str = _NO_NUMBER
    ) -> dict[str, str]:
        """Read a column as a number; other texts are null and unreadable."""
        column, kind = self.column(ours), self.kind(ours)
        if column is None or kind == "nothing":
            return _number(name, marks, absent if column is None else _NO_NUMBER)
        if kind == "text":
            text = self.text(ours)
            decimal = self.columns.decimals.get(ours)
            plain = text if decimal is None else self.form(ours, f"plain_of_{decimal}")
            return _number_of_text(name, marks, plain)
        if kind != "number":
            raise self.refused(ours, ", not numbers")
        value = f"CAST({column} AS DOUBLE)"
        return _number(name, marks, value, endless=f"endless_number({value})")

    def latency(self) -> dict[str, str]:
        """Read the latency in seconds."""
        listed = self.number("latency_s", "latency", "latency")
        if self.columns.milliseconds:
            listed["latency"] = f"({listed['latency']}) / 1000"
        return listed

    def moment(self) -> dict[str, str]:
        """Read a time as a moment; one without an offset is in the given zone."""
        ours = "started_at"
        column, kind, clock = self.column(ours), self.kind(ours), self.columns.clock
        naive = unreadable = "FALSE"
        if column is None or kind == "nothing" or clock == "unclear":
            at = "CAST(NULL AS TIMESTAMPTZ)"
        elif clock in ("seconds", "milliseconds") and kind in ("number", "text"):
            text = self.text(ours)
            seconds = f"number_of_text({text}) / {1000 if clock == 'milliseconds' else 1}"
            at = f"moment_of_seconds({seconds})"
            unreadable = f"{text} IS NOT NULL AND {at} IS NULL"
        elif kind == "moment":
            at = column
        elif kind == "naive":
            at, naive = f"CAST({column} AS TIMESTAMP)", f"{column} IS NOT NULL"
            if self.zone != "UTC":
                at = f"localised({at}, $zone)"
        elif kind == "text":
            text = self.text(ours)
            if clock in ("dmy", "mdy"):
                text = self.form(ours, f"iso_of_{clock}")
            local = self.zone != "UTC"
            at = f"moment_in_zone({text}, $zone)" if local else f"moment_of_text({text})"
            naive = f"{at} IS NOT NULL AND NOT has_zone(time_of_text({text}))"
            unreadable = f"{text} IS NOT NULL AND {at} IS NULL"
        else:
            raise self.refused(ours, "; times are needed, such as 2026-11-02T09:30:00Z")
        return {"at": at, "naive": naive, "time_unreadable": unreadable}

    def happened(self, ours: str) -> dict[str, str]:
        """Read true or false from a truth value or a word; else a number that may be a count."""
        column, kind = self.column(ours), self.kind(ours)
        if column is not None and kind == "truth":
            return {f"{ours}_truth": column} | _number(f"{ours}_read", ours, _NO_NUMBER)
        if column is not None and kind == "text":
            text = self.text(ours)
            rest = f"CASE WHEN truth_of_word({text}) IS NULL THEN {text} END"
            truth = {f"{ours}_truth": f"truth_of_word({text})"}
            return truth | _number_of_text(f"{ours}_read", ours, rest)
        truth = {f"{ours}_truth": "CAST(NULL AS BOOLEAN)"}
        return truth | self.number(ours, f"{ours}_read", ours)

    def feedback(self) -> dict[str, str]:
        """Read the value of a thumb; otherwise a number that may be a score."""
        ours = "feedback"
        column, kind = self.column(ours), self.kind(ours)
        if column is not None and kind == "truth":
            worth = f"CAST(CASE WHEN {column} THEN 1 WHEN NOT {column} THEN -1 END AS DOUBLE)"
            return {"feedback_worth": worth} | _number(ours, ours, _NO_NUMBER)
        if column is not None and kind == "text":
            text = self.text(ours)
            rest = f"CASE WHEN worth_of_word({text}) IS NULL THEN {text} END"
            return {"feedback_worth": f"worth_of_word({text})"} | _number_of_text(ours, ours, rest)
        return {"feedback_worth": _NO_NUMBER} | self.number(ours, ours, ours)


def _number(name: str, marks: str, value: str, *, endless: str = "FALSE") -> dict[str, str]:
    return {name: value, f"{marks}_unreadable": "FALSE", f"{marks}_endless": endless}


def _number_of_text(name: str, marks: str, text: str) -> dict[str, str]:
    return {
        name: f"number_of_text({text})",
        f"{marks}_unreadable": f"no_number({text})",
        f"{marks}_endless": f"endless_text({text})",
    }


def checked_zone(zone: str) -> str:
    """Return the name of a time zone if it exists."""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(
            f"--timezone: {zone!r:.80} is not a time zone such as Europe/Berlin"
        ) from error
    return zone


REASONS = tuple(WHY)
CODE = {reason: k for k, reason in enumerate(REASONS, 1)}
# Those that a row has by itself.
CHECKED = (
    "unreadable_row",
    "missing_trace_id",
    "total_row",
    "unknown_workflow",
    "missing_outcome",
    "unknown_outcome",
    "not_run",
    "no_verdict",
    "off_scale",
    "partial_score",
    "bad_weight",
    "unreadable_time",
    "unknown_perturbation",
    PERTURBED,
)


def check(
    recognised: Recognised, *, further: Collection[str] = (), context_window: int | None = None
) -> Query:
    """Return the rows under our names, with `reason` (0: the row counts) and the bad `value`.

    Of the columns of gates the `further` ones are read. `context_window` is that of runs that state
    none.
    """
    options, outcomes = recognised.options, recognised.outcomes
    taxonomy, zone = outcomes.taxonomy, checked_zone(options.timezone)
    only_known = options.known_workflows_only and not recognised.columns.source.results
    own_window = {} if context_window is None else {"window": float(context_window)}
    classes = [{"class": name, "place": k} for k, name in enumerate(taxonomy.names)]
    return query(
        "checked",
        given=given(recognised.columns, zone=zone, further=further),
        without_ids="trace_id" not in recognised.columns.whole,
        apart=APART,
        shown=SHOWN,
        known=[{"known": one.name} for one in taxonomy.workflows if only_known],
        any_workflow=not only_known,
        classes=classes,
        words=[
            {"word": text, "word_place": taxonomy.place(name)}
            for text, name in outcomes.classes.items()
            if text not in taxonomy.names
        ],
        gone=[
            {"gone_word": text, "gone_code": CODE[reason]}
            for text, reason in outcomes.left_out.items()
            if text and text not in taxonomy.names
        ],
        verdicts=[{"verdict": name} for name in verdict_names(taxonomy)],
        arms=[{"arm": name} for name in PERTURBATIONS],
        not_perturbed=NOT_PERTURBED,
        loop_from=LOOP,
        max_usd=MAX_USD,
        max_units=MAX_UNITS,
        max_weight=MAX_WEIGHT,
        first_day=f"{YEARS[0]}-01-01",
        day_after=f"{YEARS[-1] + 1}-01-01",
        windowed=options.since is not None or options.until is not None,
        **own_window,
        **{reason: CODE[reason] for reason in CHECKED},
    )


def chosen(
    rows: Relation, *, model: str | None, since: datetime | None, until: datetime | None
) -> Relation:
    """Return the checked rows of a model, from `since` to before `until`, both in UTC.

    Rows without a time are in no window; unreadable ones remain, to be counted.
    """
    limits = {"model": model, "since": at_utc(since), "until": at_utc(until)}
    known = {name: value for name, value in limits.items() if value is not None}
    if not known:
        return rows
    return query("chosen", rows=rows, window=since is not None or until is not None, **known)


def at_utc(moment: datetime | None) -> datetime | None:
    """Return a time in UTC without its zone, comparable with both kinds of times in engines."""
    return None if moment is None else moment.replace(tzinfo=None)


def latest(rows: Relation) -> Query:
    """Return the rows without those of a trace that has a later one, by their time."""
    return query("latest", rows=rows, others=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deduplicated:
    """The rows kept and the duplicates dropped."""

    rows: Query
    identical: Relation
    conflicting: Relation


def deduplicate(rows: Relation, engine: Engine) -> Deduplicated:
    """Drop rows with the same trace_id, if any.

    Rows set aside for another reason are no duplicates. Two rows are identical when all columns
    that are read are equal.
    """
    repeated = engine.keep(query("repeated", rows=rows), "repeated")
    versions = query("versions", rows=rows, repeated=repeated)
    same = engine.keep(query("identical", versions=versions), "identical")
    return Deduplicated(
        rows=query("kept", rows=rows, repeated=repeated, versions=versions, identical=same),
        identical=query("duplicates", rows=rows, repeated=repeated, same=same, identical=True),
        conflicting=query("duplicates", rows=rows, repeated=repeated, same=same),
    )
