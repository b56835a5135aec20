"""What was read of a table: columns, words, rows left out, and the limit of these.

One `Reading` serves the command line, the app and the library: its fields are its JSON, `lines` are
what people read before the estimates, `check_limit` refuses a rate from too few of the rows.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from calibration.errors import InputError, LeftOutError
from calibration.tables.columns import Columns
from calibration.tables.scales import OutcomeOptions, Scale, scale_from
from calibration.tables.words import Dates, Decimal
from calibration.text import shown

if TYPE_CHECKING:
    import pandas as pd

MAX_LEFT_OUT = 0.02
MOST_REASONS, MOST_VALUE = 5, 40

# Why rows are left out, in words that follow a number; those that may depend on the outcome first.
DEPENDS: dict[str, str] = {
    "missing_outcome": "without an outcome",
    "not_run": "not finished",
    "unknown_outcome": "outcome unknown",
    "no_verdict": "without a verdict",
    "off_scale": "off the scale",
    "partial_score": "partial score",
    "unreadable_row": "unreadable",
    "missing_trace_id": "without a trace_id",
    "missing_task": "without a task",
    "missing_trial": "without a trial",
    "missing_item": "without an item",
    "missing_rater": "without a rater",
    "conflicting_duplicate": "contradicting each other",
    "unreadable_time": "time unreadable",
    "bad_weight": "weight unreadable",
    "bad_value": "with an unreadable value",
    "unknown_perturbation": "perturbation unknown",
}
HARMLESS: dict[str, str] = {
    "identical_duplicate": "repeated",
    "perturbed_arm": "of a perturbed arm",
    "where": "not chosen by --where",
    "unknown_workflow": "of a workflow that the rubric does not list",
    "superseded": "replaced by a later one",
    "total_row": "a total",
    "not_blind": "not blind",
    "skipped": "of a skipped trace",
}
REASONS = {**DEPENDS, **HARMLESS}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """What the user said of a table: the options of the group "Reading the file".

    Parameters
    ----------
    columns : mapping of str to (str or None)
        The column by role; None leaves a role out.
    mapped : mapping of str to str
        What words are taken as: a class, pass, fail, or (empty) missing.
    where : tuple of (str, str)
        Columns and the value that rows must have there.
    scale : Scale, optional
        The lowest and the highest number that a grader may give.
    pass_at : float, optional
        The lowest score that is a pass.
    max_left_out : float, optional
        The largest share of rows left out from which a rate is given; `MAX_LEFT_OUT` when None.
    decimal : {"point", "comma"}, optional
        The decimal sign of numbers.
    dates : {"dmy", "mdy"}, optional
        The order of day and month in dates such as 03/04/2026.
    encoding : str, optional
        The encoding of a text file; UTF-8, or UTF-16 by its mark, when None.
    raters : tuple of str
        The columns that hold the labels of one person each.
    latest : bool
        Whether the latest of contradicting rows counts, by a column of times.
    elsewhere : frozenset of str
        Words of `mapped` that another table of the command holds: this one need not.
    """

    columns: Mapping[str, str | None] = field(default_factory=dict)
    mapped: Mapping[str, str] = field(default_factory=dict)
    where: tuple[tuple[str, str], ...] = ()
    scale: Scale | None = None
    pass_at: float | None = None
    max_left_out: float | None = None
    decimal: Decimal | None = None
    dates: Dates | None = None
    encoding: str | None = None
    raters: tuple[str, ...] = ()
    latest: bool = False
    elsewhere: frozenset[str] = frozenset()

    @property
    def limit(self) -> float:
        """The largest share of rows left out from which a rate is given."""
        return MAX_LEFT_OUT if self.max_left_out is None else self.max_left_out

    def settings(self) -> dict[str, object]:
        """Return as plain data what was given; the columns always."""
        options: dict[str, object] = {
            "map": dict(self.mapped),
            "where": [list(pair) for pair in self.where],
            "scale": None if self.scale is None else str(self.scale),
            "pass_at": self.pass_at,
            "max_left_out": self.max_left_out,
            "decimal": self.decimal,
            "dates": self.dates,
            "encoding": self.encoding,
            "latest": self.latest,
        }
        return {"columns": dict(self.columns)} | {
            name: value
            for name, value in options.items()
            if value or (value == 0 and value is not False)
        }

    @property
    def given(self) -> dict[str, object]:
        """The options that were given, by their name in commands."""
        empty = ReadingOptions()
        options = {
            "--column": "columns",
            "--map": "mapped",
            "--where": "where",
            "--scale": "scale",
            "--pass-at": "pass_at",
            "--max-left-out": "max_left_out",
            "--decimal": "decimal",
            "--dates": "dates",
            "--encoding": "encoding",
            "--raters": "raters",
            "--latest": "latest",
        }
        return {
            option: value
            for option, name in options.items()
            if (value := getattr(self, name)) != getattr(empty, name)
        }

    def outcomes(self, *, is_named: bool = False) -> OutcomeOptions:
        """Return what was said of outcomes; `is_named` if the rubric was chosen."""
        return OutcomeOptions(
            mapped=self.mapped,
            scale=self.scale,
            pass_at=self.pass_at,
            is_named=is_named,
            elsewhere=self.elsewhere,
        )


def reading_from_settings(settings: Mapping[str, Any]) -> ReadingOptions:
    """Return the options that `ReadingOptions.settings` wrote.

    >>> options = ReadingOptions(mapped={"done": "pass"}, pass_at=0.5)
    >>> reading_from_settings(options.settings()) == options
    True
    """
    scale = settings.get("scale")
    return ReadingOptions(
        columns=dict(settings["columns"]),
        mapped=dict(settings.get("map", {})),
        where=tuple((str(name), str(value)) for name, value in settings.get("where", ())),
        scale=None if scale is None else scale_from(str(scale)),
        pass_at=settings.get("pass_at"),
        max_left_out=settings.get("max_left_out"),
        decimal=settings.get("decimal"),
        dates=settings.get("dates"),
        encoding=settings.get("encoding"),
        latest=bool(settings.get("latest")),
    )


def columns_only(options: ReadingOptions) -> ReadingOptions:
    """Return what the user said, for a further table that is only looked up: its columns."""
    return ReadingOptions(columns=options.columns, encoding=options.encoding)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRow:
    """Where the first row of a reason is: its line, the value that is the reason, and the file."""

    line: int | None = None
    value: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        value = "" if self.value is None else f"'{shown(self.value, most=MOST_VALUE)}'"
        if self.line is None:
            return f"first: {value}" if value else ""
        return f"first line {self.line:,}" + (f": {value}" if value else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Rows that are left out for one reason; `runs` of them where several rows are of one run."""

    code: str
    rows: int
    first: FirstRow | None = None
    depends_on_outcome: bool = True
    runs: int = 0

    def __str__(self) -> str:
        first = "" if self.first is None else str(self.first)
        return f"{self.rows:,} {REASONS[self.code]}" + (f", {first}" if first else "")


def left_out(
    code: str, rows: int, first: FirstRow | None = None, *, runs: int | None = None
) -> LeftOut:
    """Return rows that are left out for a reason of `REASONS`."""
    return LeftOut(
        code=code,
        rows=rows,
        first=first,
        depends_on_outcome=code in DEPENDS,
        runs=rows if runs is None else runs,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingOutcome:
    """What a rate is if all runs left out failed (`low`), and if all passed (`high`).

    `share` : of the runs, those left out. `limits` : from the lower limit of the low rate to the
    upper limit of the high one.
    """

    share: float
    low: float
    high: float
    limits: tuple[float, float] | None = None


@dataclass(slots=True)
class LeftOutCounter:
    """Count rows that are left out, by reason, with the first of each."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, FirstRow] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)

    def add(self, code: str, line: int | None = None, value: str | None = None) -> None:
        """Leave a row out."""
        self.counts[code] = self.counts.get(code, 0) + 1
        if code not in self.first:
            self.first[code] = FirstRow(line=line, value=value)

    def listed(self) -> tuple[LeftOut, ...]:
        """Return the reasons, those that may depend on the outcome first."""
        return tuple(
            left_out(code, self.counts[code], self.first.get(code), runs=self.runs.get(code))
            for code in REASONS
            if self.counts.get(code)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was read of one table, or of several that are read as one.

    Parameters
    ----------
    place : str
        The name of the table.
    rows, used : int
        Rows of the table, and those that count.
    layout : {"runs", "long", "wide", "annotations"}
        How the rows are laid out.
    columns : mapping of str to (str or None)
        The column of each role.
    item : tuple of str
        The columns that name the item of a rating.
    raters : tuple of str
        The columns of raters in a wide table.
    arms : tuple of str
        Columns that tell agents apart and have several values.
    not_read : tuple of str
        Columns without a role.
    words : mapping of str to mapping of str to str
        What words were taken as, by role, where they are not our own.
    missing_words : mapping of str to int
        Rows of each word that was taken as missing.
    rubric : str or None
        The version of the rubric that the outcomes are classes of.
    scale : str or None
        The scale that numbers were read on.
    left_out : tuple of LeftOut
        Rows that do not count, by reason.
    left_out_share : float
        Of the runs left after the harmless exclusions, those that are left out.
    max_left_out : float or None
        The largest share from which a rate is given; None where there is no limit.
    bounds : (float, float) or None
        The headline figure if all runs that are left out failed, and if all passed.
    notes : tuple of str
        What else a reader must know, in sentences.
    """

    place: str
    rows: int
    used: int
    layout: str = "runs"
    columns: Mapping[str, str | None] = field(default_factory=dict)
    item: tuple[str, ...] = ()
    raters: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    not_read: tuple[str, ...] = ()
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    missing_words: Mapping[str, int] = field(default_factory=dict)
    rubric: str | None = None
    scale: str | None = None
    left_out: tuple[LeftOut, ...] = ()
    left_out_share: float = 0.0
    max_left_out: float | None = MAX_LEFT_OUT
    bounds: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()

    @property
    def read_as(self) -> str:
        """How columns of other names were read, in one line; empty if there are none."""
        renamed = [
            f"{column} as {role}"
            for role, column in self.columns.items()
            if column is not None and column != role and role != "arm"
        ]
        return f"Read {', '.join(renamed)}." if renamed else ""

    @property
    def unread(self) -> str:
        """At most eight columns that were not read, then their number."""
        return Columns(by_role={}, not_read=self.not_read).unread

    @property
    def depending(self) -> tuple[LeftOut, ...]:
        """The rows left out for a reason that may depend on the outcome."""
        return tuple(rows for rows in self.left_out if rows.depends_on_outcome)

    @property
    def harmless(self) -> tuple[LeftOut, ...]:
        """The other rows that are left out."""
        return tuple(rows for rows in self.left_out if not rows.depends_on_outcome)

    @property
    def left_out_runs(self) -> int:
        """Runs left out for a reason that may depend on the outcome."""
        return sum(rows.runs for rows in self.depending)

    @property
    def is_over_limit(self) -> bool:
        """Whether more is left out than the limit allows; one run never is."""
        total = self.used + self.left_out_runs
        return (
            self.max_left_out is not None
            and self.left_out_runs > 1
            and self.left_out_runs > self.max_left_out * total + 1e-9
        )

    @property
    def left_out_line(self) -> str:
        """The rows left out, for the lines before the estimates; empty if none are."""
        return _line(self.depending, self.rows, self.left_out_runs, self.used)

    @property
    def folded_line(self) -> str:
        """The rows whose exclusion is harmless, for the details; empty if none are."""
        return _line(self.harmless, self.rows, 0, 0)

    @property
    def bounds_line(self) -> str:
        """What the rate is at least and at most, whatever the runs left out were."""
        n = self.left_out_runs
        if self.bounds is None or not n:
            return ""
        runs = "the 1 run left out" if n == 1 else f"the {n:,} runs left out"
        low, high = self.bounds
        return f"{low:.1%} to {high:.1%} if {runs} failed or passed."

    @property
    def lines(self) -> tuple[str, ...]:
        """What stands before the estimates: names and words that are not our own, rows left out."""
        limit = self.max_left_out
        raised = (
            f"The limit for rows left out was set to {limit:.3g}."
            if limit is not None and limit != MAX_LEFT_OUT and self.left_out_runs
            else ""
        )
        lines = (self.read_as, *self.notes, self.left_out_line, self.bounds_line, raised)
        return tuple(line for line in lines if line)

    def check_limit(self, *figures: str, missing_outcome: MissingOutcome | None = None) -> None:
        """Raise LeftOutError, without `figures`, if more is left out than the limit allows."""
        if self.is_over_limit:
            raise LeftOutError(
                self.refusal, reading=self, figures=figures, missing_outcome=missing_outcome
            )

    @property
    def refusal(self) -> str:
        """Why there is no rate, and what helps."""
        n, total = self.left_out_runs, self.used + self.left_out_runs
        rows = sum(rows.rows for rows in self.depending)
        what = (
            f"{n:,} of {total:,} rows" if rows == n else f"{n:,} of {total:,} runs ({rows:,} rows)"
        )
        reasons = "; ".join(_reason(rows) for rows in self.depending[:MOST_REASONS])
        limit = f"{self.max_left_out or 0:.3g}"
        lies = (
            ""
            if self.bounds is None
            else f" The rate is between {self.bounds[0]:.1%} and {self.bounds[1]:.1%}."
        )
        unknown = next(
            (
                rows.first.value
                for rows in self.depending
                if rows.code == "unknown_outcome" and rows.first and rows.first.value
            ),
            None,
        )
        mapping = "" if unknown is None else f"--map {shown(unknown, most=40)}=CLASS reads them; "
        if any(rows.code == "partial_score" for rows in self.depending):
            mapping = "--pass-at 1 reads partial scores as failed; " + mapping
        enough = math.ceil(100 * n / total) / 100
        return (
            f"{self.place}: left out {what} for a reason that may depend on the outcome, more than "
            f"{float(limit):.1%}: {reasons}.{lies} {mapping}--max-left-out {enough:g} reports "
            "without them"
        )


def _reason(rows: LeftOut) -> str:
    first = "" if rows.first is None else str(rows.first).replace("first line", "first: line")
    first = first.replace(": '", " '") if first.startswith("first: line") else first
    return f"{rows.rows:,} {REASONS[rows.code]}" + (f" ({first})" if first else "")


def _line(listed: Sequence[LeftOut], rows: int, runs: int, used: int) -> str:
    """Return rows left out in one line; `runs` where several rows are of one of them."""
    if not listed:
        return ""
    total = sum(one.rows for one in listed)
    reasons = "; ".join(map(str, listed[:MOST_REASONS]))
    more = len(listed) - MOST_REASONS
    reasons += f"; {more} more reasons" if more > 0 else ""
    if runs and runs != total:
        return f"Left out: {runs:,} of {used + runs:,} runs ({total:,} rows: {reasons})"
    return f"Left out: {total:,} of {rows:,} rows ({reasons})"


def to_pandas(frame: object) -> "pd.DataFrame":
    """Return a frame of pandas, polars or Arrow as one of pandas, which is returned as it is.

    Whole numbers stay whole where some are missing.

    Raises
    ------
    InputError
        If it is no such frame, or a column occurs twice.

    Examples
    --------
    >>> import pyarrow as pa
    >>> to_pandas(pa.table({"n": [9007199254740993, None]}))["n"].tolist()
    [9007199254740993, None]
    """
    import narwhals
    import pandas as pd

    if isinstance(frame, pd.DataFrame):
        found = frame
    else:
        try:
            given: Any = narwhals.from_native(cast("Any", frame), eager_only=True)
            found = given.to_arrow().to_pandas(integer_object_nulls=True)
        except narwhals.exceptions.DuplicateError as error:
            raise InputError("the frame: a column occurs twice; rename one of them") from error
        except (TypeError, ValueError, narwhals.exceptions.NarwhalsError) as error:
            lazy = "; call its collect() first" if hasattr(frame, "collect") else ""
            kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
            raise InputError(
                f"a table must be a frame of pandas, polars or pyarrow, got {kind}{lazy}"
            ) from error
    names = [str(name) for name in found.columns]
    twice = next((name for name, n in Counter(names).items() if n > 1), None)
    if twice is not None:
        raise InputError(f"the frame: column {twice!r:.80} occurs twice; rename one of them")
    return found


def reading_of(
    columns: Columns, *, roles: Iterable[str], left_out: Sequence[LeftOut], **known: object
) -> Reading:
    """Return a reading with the roles of a command, each with its column or None.

    `known` are further fields of `Reading`.
    """
    by_role: dict[str, str | None] = {role: columns.by_role.get(role) for role in roles}
    by_role["arm"] = columns.arms[0] if columns.arms else None
    reading = Reading(
        columns=by_role,
        arms=columns.arms,
        not_read=columns.not_read,
        left_out=tuple(left_out),
        **known,  # type: ignore[arg-type]
    )
    total = reading.used + reading.left_out_runs
    return replace(reading, left_out_share=reading.left_out_runs / total if total else 0.0)
