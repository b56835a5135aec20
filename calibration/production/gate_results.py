"""What the engine brings back for gates."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class GateQuery:
    """What to bring back: the traces of one model (None: all), and the outcomes of some traces."""

    model: str | None = None
    trace_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """Traces with an event, traces in which it was looked for, and the tasks of those."""

    count: int
    n: int
    n_tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Squares:
    """Sums over independent tasks of weighted tops and bottoms, of their squares and products."""

    n: int
    top: float
    bottom: float
    top_squared: float
    product: float
    bottom_squared: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Latencies:
    """How latencies are spread.

    Parameters
    ----------
    table : pandas.DataFrame
        latency, weight (sum over the traces with it), n (those), sorted by latency.
    n : int
        Traces with a latency.
    below : Squares or None
        Of the traces at or below the 95th percentile over all of them; None where traces are
        independent and weigh the same.
    rounded : bool
        Latencies are rounded up, by less than 1/4096.
    """

    table: pd.DataFrame
    n: int
    below: Squares | None
    rounded: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GateTables:
    """What gates need of the kept traces.

    A task is known by workflow and task id; a trace without one is a task of its own.

    Parameters
    ----------
    tasks : pandas.DataFrame
        One row a task, or a kind of equal tasks: task (a name that other sources share, None where
        it stands for several), workflow, tier, category, n, complete, partial_plus (traces of one
        task), weight (their mean), like (tasks that it stands for).
    named : bool
        Rows are single tasks.
    n_tasks : int
    repeat : bool
        Some task has several traces.
    mixed : str or None
        A task whose traces are of several models.
    has_tier, has_category : bool
        Whether the columns are there.
    events : Mapping of str to Happened
        ``loops`` and ``data_corruption``, where somebody looked.
    cost : Mapping of str to tuple of (int, int, Squares)
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
    events: Mapping[str, Happened]
    cost: Mapping[str, tuple[int, int, Squares]]
    latency: Latencies | None
    outcomes: Mapping[str, str]
