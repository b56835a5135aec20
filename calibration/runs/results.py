"""Results of the counting: cells, percentiles, signals, rows set aside, tables for gates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from calibration.records import NO_VERDICT
from calibration.taxonomy import Taxonomy

if TYPE_CHECKING:
    # `asr look` goes without them: they take longer to load than it takes to read a file.
    import pandas as pd

    from calibration.runs.recognition import Recognised
    from calibration.statistics.intervals import Events
    from calibration.statistics.means import SquareSums

SIGNAL_COLUMNS = (
    "tool_calls", "tool_errors", "loops", "loop", "max_repeats", "loops_in_a_row", "escalated",
    "feedback", "verdict",
)  # fmt: skip

MOST_UNITS, GROUPS = 5_000, 2_000

# The default tier of tasks, and the latency percentile of gates.
CORE, P95 = "core", 0.95

FAILED = "error|fail|exception|crash"
TIMED_OUT = "time.?out|timed.?out|deadline"
VERDICT = "verdict_"

# The lengths of a run, and the workflow of one that has none.
LENGTHS = ("n_steps", "total_tokens", "context_tokens", "context_window")
NO_WORKFLOW = "(none)"

# The reason of rows that are sound, but were disturbed on purpose.
PERTURBED = "perturbed_arm"

BAD: dict[str, str] = {
    "tools": "tool_calls or tool_errors are not whole numbers from 0 up, or there are more "
    "errors than calls",
    "loops": "loops, loops_in_a_row or max_repeats is neither true nor false nor a whole number "
    "from 0 up",
    "escalated": "escalated is neither true nor false nor a whole number from 0 up",
    "feedback": "feedback is neither a number from -1 to 1 nor up, down or neutral",
    "verdict": "verdict is not one of {verdicts}",
}


def verdict_names(taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return the possible verdicts: the classes and none."""
    return (*taxonomy.names, NO_VERDICT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SignalSums:
    """Sums of operational signals by week and unit (task, or run where no task is known).

    `table` has week (category, missing without a time), unit, stratum (int64), n, and for each
    recorded KEY ``n_KEY`` (runs or calls with a value), ``of_KEY`` (the same, weighted) and ``KEY``
    (weighted hits or scores). `bad` counts invalid values by a reason of `BAD`; each is missing.
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
        """Number of tasks or runs per unit of the table."""
        return self.n_units / max(1, self.table["unit"].nunique())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LengthSums:
    """Runs and successes by bin of a length and unit, as `success_by_length` reads them."""

    key: str
    table: pd.DataFrame
    n_units: int
    by_task: bool

    @property
    def each(self) -> float:
        """Number of tasks or runs per unit of the table."""
        return self.n_units / max(1, self.table["unit"].nunique())


@dataclass(frozen=True, slots=True, kw_only=True)
class GateQuery:
    """The traces wanted for gates: those of one model (None: all), and outcomes of some traces."""

    model: str | None = None
    trace_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Latencies:
    """Distribution of latencies, in seconds.

    `table` has latency, weight and n (sums over the traces with that latency), sorted by latency.
    `below` sums the traces at or below the overall 95th percentile; None where traces are
    independent and of equal weight. `rounded` latencies are rounded up by less than 1/4096.
    """

    table: pd.DataFrame
    n: int
    below: SquareSums | None
    rounded: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GateTables:
    """Tables of the kept traces for gates.

    A task is identified by workflow and task id; a trace without one is a task of its own. `tasks`
    has one row per task, or per kind of equal tasks: task (a name shared between sources, None
    where the row stands for several), workflow, tier, category, n, successes, partial (traces of
    one task), weight (their mean), like (number of tasks in the row). `mixed` names a task whose
    traces are of several models; `cost` has runs, runs with a known cost, and cost over units, by
    workflow.
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
class Example:
    """One row that was set aside; `row` counts from 1, for an unreadable line it is its number."""

    trace_id: str | None = None
    file: str | None = None
    row: int | None = None
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAsideRows:
    """Number of rows set aside for one reason, and of runs, with up to five examples."""

    reason: str
    n: int
    runs: int = 0
    why: str = ""
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """Counts of kept traces with something missing or replaced.

    `bad_latency` and `bad_lengths` count values of latency, and runs with values of steps, tokens
    or context, that are not numbers from 0 up; they are missing. `levels` is the number of
    difficulties, `edge` the share of edge cases among the runs with a tier; None without any.
    `naive_times` were read in `timezone`. A trace without a cost or ceiling has no penalty, without
    units one unit, without a task (where others have one) a task of its own. `bad_cost` counts
    costs, or units, that cannot be read and `bad_time` times; both are missing. `columns` maps our
    columns to the source's.
    """

    naive_times: int
    timezone: str
    no_time: int
    no_cost: int
    no_units: int
    no_latency: int
    bad_latency: int
    bad_lengths: int
    no_task: int
    bad_cost: int
    bad_time: int
    no_ceiling: Mapping[str, int]
    columns: Mapping[str, str]
    levels: int | None = None
    edge: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """Cost or latency by workflow: mean and percentiles.

    `table` is indexed by workflow (``None`` in the first row: all): n, n_known, mean, p50, p90,
    p95, p99 (of known values, NaN without any) and, for costs, n_held (cost and ceiling known),
    share_over_ceiling, cost_per_unit, cost_per_success (cost of the runs with a known cost over the
    complete runs among them). `error` bounds the relative error of the percentiles, 0 where exact.
    `sums` counts runs with a known amount by week, workflow and narrow bin, with its range.
    """

    table: pd.DataFrame
    error: float
    sums: pd.DataFrame


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AtCeiling:
    """Cells and tasks of `ProductionCounts` by workflow, at a multiple of each ceiling."""

    cells: pd.DataFrame
    tasks: pd.DataFrame | None
    tasks_by: Mapping[str, pd.DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitCosts:
    """What a unit of the runs of some classes cost: workflow, amount in USD and number of runs.

    `n_tasks` : tasks with such runs, by workflow; None where tasks are not known.
    """

    table: pd.DataFrame
    n_tasks: Mapping[str, int] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductionCounts:
    """Counts of production traces; the columns are described in `calibration.runs`.

    `watched` is true if a trace to look out for may be among the rows. `listed` are the first
    traces of some classes, if asked for. `n_tasks` is None without a column of tasks. `first` and
    `last` are in UTC. `n_read` includes the rows set aside. `at_ceilings` and `unit_costs` are
    there if asked for. `by_type` is true if all texts of a file were plain numbers and times.
    `bounds` are the cells of the runs left out for a reason that may depend on the outcome, as
    failed and as passed; None without any. `recognised` is how the rows were read.
    """

    recognised: Recognised

    cells: pd.DataFrame
    tasks: pd.DataFrame | None
    tasks_by: Mapping[str, pd.DataFrame]
    n_tasks: int | None
    tasks_grouped: bool
    cost: Spread
    latency: Spread
    signals: SignalSums | None
    lengths: tuple[LengthSums, ...]
    set_aside: tuple[SetAsideRows, ...]
    notes: Notes
    watched: bool
    listed: pd.DataFrame | None
    n_read: int
    n_kept: int
    first: datetime | None
    last: datetime | None
    for_gates: GateTables | None = None
    at_ceilings: Mapping[float, AtCeiling] = field(default_factory=dict)
    unit_costs: UnitCosts | None = None
    by_type: bool = False
    bounds: tuple[pd.DataFrame, pd.DataFrame] | None = None

    @property
    def plain(self) -> bool:
        """Whether every row counts and every value could be read."""
        bad = self.notes.bad_latency + self.notes.bad_lengths + self.notes.bad_cost
        bad += self.notes.bad_time
        return bool(
            self.n_kept
            and not self.set_aside
            and not bad
            and not (self.signals and self.signals.bad)
        )

    def at_ceiling(self, factor: float) -> ProductionCounts:
        """Return the counts with every ceiling multiplied; costs and signals stay as they are."""
        found = self.at_ceilings[factor]
        return replace(self, cells=found.cells, tasks=found.tasks, tasks_by=found.tasks_by)

    @property
    def n_set_aside(self) -> int:
        """Number of rows that were read and not kept."""
        return sum(rows.n for rows in self.set_aside)

    @property
    def n_perturbed(self) -> int:
        """Number of sound rows that are left out because their arm was perturbed."""
        return sum(rows.n for rows in self.set_aside if rows.reason == PERTURBED)
