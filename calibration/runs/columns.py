"""Columns of a source, read by type (see `sql/functions.sql`), and the rows that count."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from calibration.errors import InputError
from calibration.records import (
    AT,
    HARNESS,
    LOOP,
    NO_VERDICT,
    NOT_PERTURBED,
    PERTURBATIONS,
    VERSION,
    YEARS,
)
from calibration.runs.benchmark_results import ERROR, NOT_PASSED, PASSED
from calibration.runs.cells import LENGTHS
from calibration.runs.engines import Engine, Kind, Query, Relation, kind_of, query, quoted
from calibration.runs.results import PERTURBED, verdict_names
from calibration.runs.sources import Source
from calibration.taxonomy import Taxonomy
from calibration.text import names_there

REQUIRED = ("trace_id", "workflow", "outcome", "cost_usd")

OPTIONAL = (
    "units", "started_at", "task_id", "trial", "weight", "stratum", "latency_s", "model",
    "agent_version", "harness", "status", "tags", "tool_calls", "tool_errors", "loops", "loop",
    "max_repeats", "loops_in_a_row", "escalated", "feedback", "verdict", "perturbation", "tier",
    "difficulty", "n_steps", "total_tokens", "context_tokens", "context_window",
)  # fmt: skip

OF_GATES = ("tier", "category", "loops", "data_corruption", "tags")

# Separator in joined names: workflow and task, run and tag.
APART = "\x1f"

_TEXTS = (
    "trace_id", "workflow", "outcome", "stratum", "model", "task_id", "trial", "status", "verdict",
    "perturbation",
)  # fmt: skip

_SHOWN = ("workflow", "outcome", "cost_usd", "units", "weight", "started_at")
_NO_TEXT, _NO_NUMBER = "CAST(NULL AS VARCHAR)", "CAST(NULL AS DOUBLE)"
# Words of a check, as `truth_of_word` of the statements reads them too.
TRUE, FALSE = ("true", "t", "yes", "y"), ("false", "f", "no", "n")
MAX_USD = 1e6
MAX_UNITS = MAX_WEIGHT = 1e9
SHOWN = 80
KNOWN = (*REQUIRED, *OPTIONAL)


def mapped(
    given: Mapping[str, str | None] | None,
    present: tuple[str, ...],
    where: str,
    *,
    further: tuple[str, ...] = (),
) -> dict[str, str]:
    """Return the source's column for each of ours that exists, and of `further` ones."""
    given = given or {}
    known = tuple(dict.fromkeys((*KNOWN, *further)))
    for ours in given:
        if ours not in known:
            raise InputError(f"--column: no name {ours!r:.80} is read; {names_there(ours, known)}")
    found: dict[str, str] = {}
    for ours in known:
        theirs = given.get(ours, ours)
        if theirs is None:
            if ours in REQUIRED and ours != "cost_usd":
                raise InputError(f"column {ours!r} cannot be left out")
            continue
        if theirs in present:
            found[ours] = theirs
        elif ours in given:
            raise InputError(
                f"{where}: column {theirs!r:.80} (for {ours}) is not there; "
                f"{names_there(theirs, present)}"
            )
        elif ours in REQUIRED:
            without = " or cost_usd= where no cost is known" if ours == "cost_usd" else ""
            raise InputError(
                f"{where}: column {ours!r} is missing; {names_there(ours, present)}; name "
                f"the column to use: --column {ours}=NAME{without}"
            )
    older = found.pop("loop", None)
    if older is not None and given.get("loops", older) is not None:
        found.setdefault("loops", older)
    return found


def given(
    source: "Source", used: Mapping[str, str], *, zone: str, further: Collection[str] = ()
) -> Query:
    """Return the rows of a source under our own names, each column read by its type.

    A column of numbers adds ``_unreadable`` and ``_endless``; times are ``at`` with ``naive`` and
    ``time_unreadable``; columns quoted when bad add ``given_``. Missing columns are null. Of the
    columns of gates the `further` ones are read.
    """
    reads = _Reads(source, used, zone)
    columns = {name: reads.text(name) for name in _TEXTS}
    columns[VERSION] = version_of(reads)
    if not {"tool_calls", "tool_errors"} <= used.keys():
        reads = _Reads(source, {k: v for k, v in used.items() if not k.startswith("tool_")}, zone)
    columns |= reads.number("cost_usd", "cost", "cost") | reads.number(
        "units", "units_read", "units"
    )
    # Always a decimal: stored fingerprints of gates depend on the type of its sums.
    columns |= reads.number("weight", "weight", "weight", absent="1.0")
    columns |= reads.number("latency_s", "latency", "latency")
    columns |= reads.moment()
    for ours in ("tool_calls", "tool_errors", "max_repeats", *LENGTHS):
        columns |= reads.number(ours, f"{ours}_read", ours)
    for ours in ("loops", "loops_in_a_row", "escalated"):
        columns |= reads.happened(ours)
    columns |= reads.feedback()
    columns |= {name: reads.any_text(name if name in further else "") for name in OF_GATES}
    columns |= {name: reads.any_text(name) for name in ("tier", "difficulty")}
    if "loops" in further and "loops" not in used:
        columns["loops"] = reads.any_text("max_repeats")
    columns |= {f"given_{ours}": reads.column(ours) or _NO_TEXT for ours in _SHOWN}
    nothing = [f"{quoted(name)} IS NULL" for name in sorted(set(used.values()))]
    columns |= {
        "nothing": " AND ".join(nothing) if source.null_is_unreadable else "FALSE",
        "row": f"CAST({quoted(source.row)} AS BIGINT)" if source.row else "CAST(NULL AS BIGINT)",
        "file": quoted(source.file) if source.file else _NO_TEXT,
    }
    listed = ",\n  ".join(f"{value} AS {quoted(name)}" for name, value in columns.items())
    bound = {"zone": zone} if "$zone" in listed else {}
    return Query("given", f'SELECT\n  {listed}\nFROM "source"', bound, {"source": source.table})


# What a file of texts may hold as plain numbers; other columns also take words.
_NUMBERS = ("cost_usd", "units", "weight", "latency_s", "tool_calls", "tool_errors", *LENGTHS)


def by_type(source: "Source", used: Mapping[str, str]) -> "Source":
    """Return the used columns of a source of texts, numbers and times read as such.

    Reading it fails where a text is no plain number, or no time with a zone.
    """
    shared = Counter(used.values())
    types = dict.fromkeys(_NUMBERS, ("plain_number", "DOUBLE"))
    types["started_at"] = ("plain_moment", "TIMESTAMP WITH TIME ZONE")
    columns, listed = {theirs: source.columns[theirs] for theirs in shared}, []
    for ours, theirs in used.items():
        if ours in types and shared[theirs] == 1:
            read, columns[theirs] = types[ours]
            listed.append(f"{read}({quoted(theirs)}) AS {quoted(theirs)}")
    listed += [quoted(theirs) for theirs in columns if columns[theirs] == source.columns[theirs]]
    text = "SELECT\n  " + ",\n  ".join(listed) + '\nFROM "source"'
    return replace(
        source, table=Query("by_type", text, {}, {"source": source.table}), columns=columns,
        texts=False, file=None, row=None, rejects=False, null_is_unreadable=False,
    )  # fmt: skip


def version_of(reads: "_Reads") -> str:
    """Read the agent version; with a column of harnesses, as ``harness@version``."""
    version, harness = reads.text(VERSION), reads.text(HARNESS)
    if HARNESS not in reads.used:
        return version
    return f"coalesce({harness} || '{AT}' || coalesce({version}, ''), {version})"


class _Reads:
    """SQL that reads each column of a source, by its alias."""

    def __init__(self, source: "Source", used: Mapping[str, str], zone: str) -> None:
        self.source, self.used, self.zone = source, used, zone

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
        """Read a column of any type as text; lists are written out."""
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
            return _number_of_text(name, marks, self.text(ours))
        if kind != "number":
            raise self.refused(ours, ", not numbers")
        value = f"CAST({column} AS DOUBLE)"
        return _number(name, marks, value, endless=f"endless_number({value})")

    def moment(self) -> dict[str, str]:
        """Read a time as a moment; one without an offset is in the given zone."""
        ours = "started_at"
        column, kind = self.column(ours), self.kind(ours)
        naive = unreadable = "FALSE"
        if column is None or kind == "nothing":
            at = "CAST(NULL AS TIMESTAMPTZ)"
        elif kind == "moment":
            at = column
        elif kind == "naive":
            at, naive = f"CAST({column} AS TIMESTAMP)", f"{column} IS NOT NULL"
            if self.zone != "UTC":
                at = f"localised({at}, $zone)"
        elif kind == "text":
            text = self.text(ours)
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


WHY: dict[str, str] = {
    "unreadable_row": "the line cannot be read, or holds none of the columns",
    "missing_trace_id": "trace_id is missing",
    "missing_workflow": "workflow is missing",
    "unknown_workflow": "the workflow is not in the taxonomy",
    "missing_outcome": "outcome is missing",
    "no_verdict": "the outcome is no_verdict: no class follows from what was given",
    "unknown_class": "outcome is not one of {classes}",
    "unreadable_cost": "cost_usd is not a number",
    "not_finite_cost": "cost_usd is not finite",
    "negative_cost": "cost_usd is negative",
    "bad_units": "units is not a number above 0 and up to 1e9",
    "absurd_cost": "cost_usd is above 1,000,000 USD a unit",
    "bad_weight": "weight is missing, or no number above 0 and up to 1e9",
    "unreadable_time": "started_at is not a time",
    "absurd_time": "started_at is not of the years 1990 to 2100",
    "unknown_perturbation": "perturbation is not one of {perturbations}",
    PERTURBED: "the run is of a perturbed arm",
    "identical_duplicate": "the same trace_id with the same values; one of the rows is kept",
    "conflicting_duplicate": "the same trace_id with other values; none of the rows is kept",
}

REASONS = tuple(WHY)
CODE = {reason: k for k, reason in enumerate(REASONS, 1)}


def class_of_word(taxonomy: Taxonomy) -> dict[str, str]:
    """Return the class that an outcome of true, false or error is taken as.

    How a run failed is not known where only its failing is: it counts as a failed check.
    """
    return {
        PASSED: taxonomy.success,
        NOT_PASSED: taxonomy.failed_check,
        ERROR: taxonomy.without_output or taxonomy.failed_check,
    }


def check(
    source: Source,
    columns: Mapping[str, str],
    *,
    taxonomy: Taxonomy,
    workflows: Collection[str] | None,
    zone: str,
    further: Collection[str] = (),
    context_window: int | None = None,
) -> Query:
    """Return the rows under our names, with `reason` (0: the row counts) and the bad `value`.

    Only `workflows` count, any when None; of the columns of gates the `further` ones are read.
    `context_window` is that of runs that state none.
    """
    passed, failed, ended = (class_of_word(taxonomy)[word] for word in (PASSED, NOT_PASSED, ERROR))
    words = dict.fromkeys(TRUE, passed) | dict.fromkeys(FALSE, failed) | {ERROR: ended}
    own_window = {} if context_window is None else {"window": float(context_window)}
    return query(
        "checked",
        given=given(source, columns, zone=zone, further=further),
        apart=APART,
        shown=SHOWN,
        known=[{"known": name} for name in workflows or ()],
        any_workflow=workflows is None,
        classes=[{"class": name} for name in taxonomy.names],
        passed_class=passed,
        failed_class=failed,
        ended_class=ended,
        passed_place=taxonomy.place(passed),
        failed_place=taxonomy.place(failed),
        ended_place=taxonomy.place(ended),
        words=[{"word": word, "place": taxonomy.place(name)} for word, name in words.items()],
        not_told=NO_VERDICT,
        verdicts=[{"verdict": name} for name in verdict_names(taxonomy)],
        arms=[{"arm": name} for name in PERTURBATIONS],
        not_perturbed=NOT_PERTURBED,
        loop_from=LOOP,
        max_usd=MAX_USD,
        max_units=MAX_UNITS,
        max_weight=MAX_WEIGHT,
        first_day=f"{YEARS[0]}-01-01",
        day_after=f"{YEARS[-1] + 1}-01-01",
        **own_window,
        **CODE,
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
