"""Results of the counting: cells, percentiles, signals, rows set aside, tables for gates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pandas as pd

from calibration.records import NO_VERDICT
from calibration.statistics.intervals import Events
from calibration.statistics.means import SquareSums
from calibration.taxonomy import Taxonomy

SIGNAL_COLUMNS = (
    "tool_calls", "tool_errors", "loop", "max_repeats", "escalated", "feedback", "verdict",
)  # fmt: skip

# The same tool with the same arguments so often in a row is a loop.
LOOP = 3

MOST_UNITS, GROUPS = 5_000, 2_000

# The tier of tasks that name none, and the percentile of latency that gates look at.
CORE, P95 = "core", 0.95

FAILED = "error|fail|exception|crash"

TIMED_OUT = "time.?out|timed.?out|deadline"

VERDICT = "verdict_"

BAD: dict[str, str] = {
    "tools": "tool_calls or tool_errors are no whole number from 0 up, or more errors than calls",
    "loop": "loop or max_repeats is neither true or false nor a whole number from 0 up",
    "escalated": "escalated is neither true or false nor a whole number from 0 up",
    "feedback": "feedback is neither a number from -1 to 1 nor up, down or neutral",
    "verdict": "verdict is none of {verdicts}",
}


def verdict_names(taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return what a verdict may be: a class, or none."""
    return (*taxonomy.names, NO_VERDICT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SignalSums:
    """Sums by week and unit.

    Parameters
    ----------
    table : pandas.DataFrame
        week (category, missing without a time), unit, stratum (int64), n, and for each recorded
        KEY ``n_KEY`` (runs, or calls, that say so), ``of_KEY`` (the same, weighted) and ``KEY``
        (weighted hits, or scores).
    recorded : tuple of str
        The keys whose columns are there.
    bad : Mapping of str to int
        Values that are no value, by a reason of `BAD`; each counts as missing.
    n_units : int
        Tasks, or runs where no task is known.
    by_task : bool
        Units are tasks.
    """

    table: pd.DataFrame
    recorded: tuple[str, ...]
    bad: Mapping[str, int]
    n_units: int
    by_task: bool

    @property
    def verdicts(self) -> tuple[str, ...]:
        """The verdicts that were counted: the classes and none."""
        found = (key for key in self.recorded if key.startswith(VERDICT))
        return tuple(key.removeprefix(VERDICT) for key in found)

    @property
    def each(self) -> float:
        """How many tasks or runs a unit of the table stands for."""
        return self.n_units / max(1, self.table["unit"].nunique())


@dataclass(frozen=True, slots=True, kw_only=True)
class GateQuery:
    """What to bring back: the traces of one model (None: all), and the outcomes of some traces."""

    model: str | None = None
    trace_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Latencies:
    """How latencies are spread.

    Parameters
    ----------
    table : pandas.DataFrame
        latency, weight (sum over the traces with it), n (those), sorted by latency.
    n : int
        Traces with a latency.
    below : SquareSums or None
        Of the traces at or below the 95th percentile over all of them; None where traces are
        independent and weigh the same.
    rounded : bool
        Latencies are rounded up, by less than 1/4096.
    """

    table: pd.DataFrame
    n: int
    below: SquareSums | None
    rounded: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GateTables:
    """What gates need of the kept traces.

    A task is known by workflow and task id; a trace without one is a task of its own.

    Parameters
    ----------
    tasks : pandas.DataFrame
        One row a task, or a kind of equal tasks: task (a name that other sources share, None where
        it stands for several), workflow, tier, category, n, successes, partial (traces of one
        task), weight (their mean), like (tasks that it stands for).
    named : bool
        Rows are single tasks.
    repeat : bool
        Some task has several traces.
    mixed : str or None
        A task whose traces are of several models.
    events : Mapping of str to Events
        ``loops`` and ``data_corruption``, where somebody looked.
    cost : Mapping of str to tuple of (int, int, SquareSums)
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
    events: Mapping[str, Events]
    cost: Mapping[str, tuple[int, int, SquareSums]]
    latency: Latencies | None
    outcomes: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditTable:
    """Credit of the classes in their order, and that of workflows with their own.

    Raises
    ------
    ValueError
        If a table has other than one credit in [0, 1] for each class.

    Examples
    --------
    >>> table = CreditTable(credit=(1, 0.4, 0, 0, 0), by_workflow={"research": (1, 0.3, 0, 0, 0)})
    >>> table.of("research")[1], table.of("scheduling")[1]
    (0.3, 0.4)
    """

    credit: tuple[float, ...]
    by_workflow: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for table in (self.credit, *self.by_workflow.values()):
            n = len(self.credit)
            if len(table) != n or not all(0 <= c <= 1 for c in table):
                raise ValueError(f"credit must be {n} numbers in [0, 1], got {table!r}")

    def of(self, workflow: str) -> tuple[float, ...]:
        """Return the credits that hold for a workflow."""
        return self.by_workflow.get(workflow, self.credit)

    @classmethod
    def from_taxonomy(cls, taxonomy: Taxonomy) -> "CreditTable":
        """Return the credits of a taxonomy."""
        return cls(credit=taxonomy.credits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One row that was set aside: what the engine can say of where it stands and what it held.

    `row` counts the rows of the file from 1; for a line that cannot be read it is the line.
    """

    trace_id: str | None = None
    file: str | None = None
    row: int | None = None
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAsideRows:
    """How many rows were set aside for one reason, with up to five of them."""

    reason: str
    why: str
    n: int
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """What was kept but has to be said.

    Parameters
    ----------
    naive_times : int
        Times without a zone, read as `timezone`.
    no_time, no_cost, no_units : int
        Kept traces without a time; without a cost (no penalty); without units (taken as 1).
    no_latency, bad_latency : int
        Without a latency; with one that is no number from 0 up (taken as missing).
    no_task : int
        Without a task, though there are tasks: a task of its own each.
    no_ceiling : Mapping of str to int
        Traces of each workflow without a ceiling (no penalty).
    columns : Mapping of str to str
        The column of the source that was read for each of ours.
    """

    naive_times: int
    timezone: str
    no_time: int
    no_cost: int
    no_units: int
    no_latency: int
    bad_latency: int
    no_task: int
    no_ceiling: Mapping[str, int]
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """Cost or latency by workflow: mean and percentiles.

    Parameters
    ----------
    table : pandas.DataFrame
        Indexed by workflow (``None`` in a first row for all of them): n, n_known, mean,
        p50, p90, p95, p99 (of the known ones, NaN without any) and, for costs, n_held (cost and
        ceiling known), share_over_ceiling, cost_per_unit, cost_per_success (cost of the runs with
        a known cost over complete ones among them).
    error : float
        Bound of the relative error of the percentiles: 0 where they are exact.
    sums : pandas.DataFrame
        Runs with a known amount by week, workflow and narrow bin, its least and largest.
    """

    table: pd.DataFrame
    error: float
    sums: pd.DataFrame


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductionCounts:
    """Counts of production traces; the columns are described in `calibration.runs`.

    Parameters
    ----------
    tasks_by : Mapping of str to pandas.DataFrame
        Groups of tasks by ``week``, ``workflow`` and ``model``; empty without groups.
    n_tasks : int or None
        Distinct tasks; None without a column of tasks.
    tasks_grouped : bool
        Rows of `tasks` are groups of tasks.
    exact : bool
        Cells keep exact penalties.
    rounding : float
        What the cells may differ from a trace's own penalty: 0, or 1/1024.
    cost, latency : Spread
        By workflow.
    signals : SignalSums or None
        What runs say of operation; None where no column does.
    set_aside : tuple of SetAsideRows
    notes : Notes
    watched : bool
        Whether a trace that was to be looked out for may be among them.
    listed_until : Mapping of str to datetime
        Until when the first traces of a class began, for `list_runs`.
    n_read, n_kept : int
        n_read = n_kept + those set aside.
    first, last : datetime or None
        Of the kept traces, in UTC.
    for_gates : GateTables or None
        What gates need beside the counts, where it was asked for.
    """

    cells: pd.DataFrame
    tasks: pd.DataFrame | None
    tasks_by: Mapping[str, pd.DataFrame]
    n_tasks: int | None
    tasks_grouped: bool
    exact: bool
    rounding: float
    cost: Spread
    latency: Spread
    signals: SignalSums | None
    set_aside: tuple[SetAsideRows, ...]
    notes: Notes
    watched: bool
    listed_until: Mapping[str, datetime]
    n_read: int
    n_kept: int
    first: datetime | None
    last: datetime | None
    for_gates: GateTables | None = None

    @property
    def n_set_aside(self) -> int:
        """Rows that were read and not kept."""
        return sum(rows.n for rows in self.set_aside)
