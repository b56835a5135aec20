"""Counts of runs: the input of rates, trends and comparisons.

`outcomes` are class codes, shape (n,), or class shares where reviewers differ, shape
(n, n_classes). `credit` has one value in [0, 1] per class; None: that of the taxonomy, which may
differ by workflow.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from calibration.statistics.estimate import BoolArray, FloatArray, IntArray
from calibration.taxonomy import CreditTable, Taxonomy


def cost_penalties(
    costs: ArrayLike, ceilings: ArrayLike, units: ArrayLike | None = None
) -> FloatArray:
    """Return the penalty of each run: the share by which it exceeds its ceiling, at most 1.

    min(1, max(0, (cost - ceiling) / ceiling)) with ceiling = ceiling per unit x units, in the
    currency of the costs. Units are the tickets or documents that the run handled, 1 when None. An
    unknown cost, NaN, gives no penalty. ValueError if a cost is negative, or a ceiling or a number
    of units is not positive.

    Examples
    --------
    >>> cost_penalties([1.0, 3.0, 10.0, np.nan], 2.0).tolist()
    [0.0, 0.5, 1.0, 0.0]
    """
    cost = np.asarray(costs, dtype=np.float64)
    if cost.ndim != 1 or np.isinf(cost).any() or (cost < 0).any():
        raise ValueError(f"costs must be finite, not negative, of shape (n,), got {costs!r}")
    ceiling = np.broadcast_to(np.asarray(ceilings, dtype=np.float64), cost.shape)
    count = np.broadcast_to(np.asarray(1.0 if units is None else units, np.float64), cost.shape)
    for name, array in (("ceilings", ceiling), ("units", count)):
        if not (np.isfinite(array) & (array > 0)).all():
            raise ValueError(f"{name} must be positive and finite, got {array.min()!r}")
    allowed = ceiling * count
    excess = np.where(np.isnan(cost), 0.0, (cost - allowed) / allowed)
    penalties: FloatArray = np.clip(excess, 0.0, 1.0)
    return penalties


def outcome_shares(outcomes: ArrayLike, *, n_classes: int) -> FloatArray:
    """Return the class shares of each run, from class codes or class shares.

    ValueError if `outcomes` is empty, a code is outside [0, n_classes), or a row does not sum to
    one.
    """
    array = np.asarray(outcomes)
    if array.size == 0:
        raise ValueError("outcomes must not be empty, got no runs")
    if array.ndim == 1 and np.issubdtype(array.dtype, np.integer):
        if array.min() < 0 or array.max() >= n_classes:
            raise ValueError(
                f"outcomes must be in [0, {n_classes}), got {array.min()} to {array.max()}"
            )
        rows: FloatArray = np.eye(n_classes)[array]
        return rows
    if array.ndim != 2 or array.shape[1] != n_classes:
        raise ValueError(
            f"outcomes must be integer codes of shape (n,) or shares of shape (n, {n_classes}), "
            f"got dtype {array.dtype!s} and shape {array.shape!r}"
        )
    shares = array.astype(np.float64)
    if not (shares.min() >= 0 and np.abs(shares.sum(axis=1) - 1).max() <= 1e-6):
        raise ValueError("outcomes rows must be shares that sum to 1")
    return shares


def scores(outcomes: ArrayLike, penalties: ArrayLike, *, credit: ArrayLike) -> FloatArray:
    """Return the score of each run: its credit less its penalty, never below zero.

    The floor is per run. Without it a failed run over its ceiling would count less than zero, and
    the rate could leave [0, 1]. `credit` is of the classes, or of those of each run, shape
    (n, n_classes). ValueError as `outcome_shares`, or if the lengths differ.

    Examples
    --------
    >>> scores([0, 0, 1, 3], [0.0, 0.5, 0.5, 1.0], credit=[1, 0.4, 0, 0]).tolist()
    [1.0, 0.5, 0.0, 0.0]
    """
    worth = np.asarray(credit, dtype=np.float64)
    shares = outcome_shares(outcomes, n_classes=worth.shape[-1])
    penalty = np.asarray(penalties, dtype=np.float64)
    if penalty.shape != (shares.shape[0],):
        raise ValueError(f"penalties must have shape ({shares.shape[0]},), got {penalty.shape!r}")
    kept: FloatArray = (shares * np.maximum(0.0, worth - penalty[:, None])).sum(axis=1)
    return kept


NEEDED = ("stratum", "weight", "outcome", "cost_known", "penalty_step", "n", "penalty", "score")
OTHER_SCORE = "score_"
GROSS = "gross"
BY = ("week", "workflow", "model", "agent_version")

# Keys up to this number are counted in an array, larger ones are sorted.
DENSE = 8_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels:
    """The group of each row: the names in order, and the place of the row's name, -1 for none."""

    names: tuple[str, ...]
    codes: IntArray

    def of(self, name: str) -> BoolArray:
        """Return which rows have a name."""
        found: BoolArray = self.codes == self.names.index(name)
        return found

    def where(self, rows: BoolArray | IntArray) -> "Labels":
        """Return the labels of some rows."""
        return replace(self, codes=self.codes[rows])

    @property
    def seen(self) -> tuple[str, ...]:
        """The names that occur."""
        rows = np.bincount(self.codes + 1, minlength=len(self.names) + 1)[1:]
        return tuple(name for name, count in zip(self.names, rows, strict=True) if count)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunCounts:
    """Counts of cells: runs that are equal, or equal but for penalties between the same credits.

    Made by `count_runs` from rows or by `counts_of_frame` from counts. With tasks a row is a cell
    of one task (or of one of several equal tasks), else of the whole.

    `shares`, shape (n_mixes, n_classes) : class mixes that occur; `mix` : the mix of each row.
    `runs`, `like` : runs of the cell in one task, and the number of equal tasks (1 without tasks).
    `known` : whether the cost is known. `weight` : inverse inclusion probability of a run.
    `penalty`, `penalty_squared`, `gross`, `score`, `abandoned_score` : sums over the `runs` of
    penalties, their squares, credits, scores, and scores of abandoned runs.
    `other_scores` : sums of scores by further credit table. `own_credit` : credit by workflow.
    `task` : task of a row; None: runs are independent.
    `by` : ``week``, ``workflow`` and ``model`` of the rows.
    `cost`, `cost_squared` : sums of the known costs and of their squares.
    `grouped_tasks` : number of tasks where a `task` is a random group of them.
    """

    taxonomy: Taxonomy
    shares: FloatArray
    mix: IntArray
    stratum: IntArray
    runs: IntArray
    like: IntArray
    known: BoolArray
    weight: FloatArray
    penalty: FloatArray
    penalty_squared: FloatArray
    gross: FloatArray
    score: FloatArray
    abandoned_score: FloatArray
    credit: FloatArray
    own_credit: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    other_scores: Mapping[str, FloatArray] = field(default_factory=dict)
    task: NDArray[np.generic] | None = None
    by: Mapping[str, Labels] = field(default_factory=dict)
    cost: FloatArray | None = None
    cost_squared: FloatArray | None = None
    grouped_tasks: int | None = None

    @property
    def n(self) -> int:
        """Number of runs."""
        return int(self.runs @ self.like)

    @property
    def credit_table(self) -> CreditTable:
        """The credit that the runs are scored with."""
        return CreditTable(
            credit=tuple(self.credit.tolist()), by_workflow=dict(self.own_credit)
        ).mapped(tuple)

    @property
    def n_tasks(self) -> int:
        """Number of tasks; without tasks, of runs."""
        if self.task is None:
            return self.n
        if self.grouped_tasks is not None:
            return self.grouped_tasks
        return int(self.like[np.unique(self.task, return_index=True)[1]].sum())

    @property
    def repeats(self) -> bool:
        """Whether some task was run more than once."""
        return self.task is not None and self.n_tasks < self.n

    @property
    def success(self) -> FloatArray:
        """Share of the success class in each row."""
        taxonomy = self.taxonomy
        found: FloatArray = self.shares[self.mix, taxonomy.place(taxonomy.success)]
        return found

    @property
    def absent(self) -> FloatArray:
        """Share of the class without output in each row; 0 where the taxonomy has none."""
        found: FloatArray = self.shares[:, absent_places(self.taxonomy)].sum(axis=1)[self.mix]
        return found

    def where(self, rows: BoolArray | IntArray) -> "RunCounts":
        """Return the counts of some rows; random groups of tasks then count as tasks."""

        def kept(array: FloatArray | None) -> FloatArray | None:
            return None if array is None else array[rows]

        return replace(
            self,
            mix=self.mix[rows],
            stratum=self.stratum[rows],
            runs=self.runs[rows],
            like=self.like[rows],
            known=self.known[rows],
            weight=self.weight[rows],
            penalty=self.penalty[rows],
            penalty_squared=self.penalty_squared[rows],
            gross=self.gross[rows],
            score=self.score[rows],
            abandoned_score=self.abandoned_score[rows],
            other_scores={name: sums[rows] for name, sums in self.other_scores.items()},
            task=None if self.task is None else self.task[rows],
            by={name: labels.where(rows) for name, labels in self.by.items()},
            cost=kept(self.cost),
            cost_squared=kept(self.cost_squared),
            grouped_tasks=None,
        )

    def recoded(self, taxonomy: Taxonomy) -> "RunCounts":
        """Return the same runs under a taxonomy with the same classes, else ValueError."""
        own, names = self.taxonomy.names, taxonomy.names
        if own == names:
            return self
        if set(own) != set(names):
            raise ValueError(f"classes must be {', '.join(own)}, got {', '.join(names)}")
        place = [own.index(name) for name in names]
        return replace(
            self,
            taxonomy=taxonomy,
            shares=self.shares[:, place],
            credit=self.credit[place],
            own_credit={
                name: tuple(table[k] for k in place) for name, table in self.own_credit.items()
            },
        )

    def restated(self, name: str, *, credit: ArrayLike) -> "RunCounts":
        """Return the same runs scored with a further credit table that they were counted with."""
        if name not in self.other_scores:
            raise ValueError(f"name must be one of {sorted(self.other_scores)!r}, got {name!r}")
        worth, score = checked_credit(credit, self.taxonomy), self.other_scores[name]
        of_absent = worth[absent_places(self.taxonomy)].sum()
        kept = np.maximum(0.0, of_absent - self.penalty / self.runs) * self.runs
        return replace(
            self,
            gross=(self.shares @ worth)[self.mix] * self.runs,
            score=score,
            abandoned_score=np.where(self.absent == 1, score, self.absent * kept),
            credit=worth,
            own_credit={},
        )

    def labels(self, by: str) -> Labels:
        """Return the workflows, models or weeks of the rows; ValueError if not counted by it."""
        if by not in self.by:
            raise ValueError(f"by must be one of {sorted(self.by)!r}, got {by!r}")
        return self.by[by]


def absent_places(taxonomy: Taxonomy) -> list[int]:
    """Return the code of the class without output; empty where the taxonomy has none."""
    return [k for k, name in enumerate(taxonomy.names) if name == taxonomy.without_output]


def checked_credit(credit: ArrayLike | None, taxonomy: Taxonomy) -> FloatArray:
    """Return the credit of each class; ValueError unless every class has one in [0, 1]."""
    worth = np.asarray(taxonomy.credits if credit is None else credit, dtype=np.float64)
    n = len(taxonomy.names)
    if worth.shape != (n,) or not (worth.min() >= 0 and worth.max() <= 1):
        raise ValueError(f"credit must be in [0, 1] for {n} classes, got {credit!r}")
    return worth


def credit_rows(table: CreditTable, workflows: Iterable[str | None] | None) -> FloatArray:
    """Return the credit of the classes, or that of each run where workflows have their own.

    Examples
    --------
    >>> table = CreditTable(credit=(1.0, 0.4), by_workflow={"research": (1.0, 0.3)})
    >>> credit_rows(table, ["research", None]).tolist()
    [[1.0, 0.3], [1.0, 0.4]]
    """
    if workflows is None or not table.by_workflow:
        return np.array(table.credit, dtype=np.float64)
    names = [None, *table.by_workflow]
    code = {name: place for place, name in enumerate(names)}
    tables = np.array([table.of(name) for name in names], dtype=np.float64)
    rows: FloatArray = tables[[code.get(name, 0) for name in workflows]]
    return rows


def gross_scores(shares: FloatArray, credit: FloatArray) -> FloatArray:
    """Return the scores of runs without cost; `credit` is of the classes, or of those of each run.

    Examples
    --------
    >>> gross_scores(np.eye(2), np.array([[1.0, 0.4], [1.0, 0.3]])).tolist()
    [1.0, 0.3]
    """
    found: FloatArray = shares @ credit if credit.ndim == 1 else (shares * credit).sum(axis=1)
    return found


def class_credit(credit: FloatArray, codes: IntArray) -> FloatArray:
    """Return the credit of the class of each run; `credit` as in `gross_scores`."""
    found: FloatArray = credit[codes] if credit.ndim == 1 else credit[np.arange(codes.size), codes]
    return found


def labels_of(values: ArrayLike | Sequence[str | None] | pd.Series) -> Labels:
    """Return the names that occur and their rows; None and NaN are no name."""
    found = pd.Categorical(values if isinstance(values, pd.Series) else pd.Series(values))
    return Labels(
        names=tuple(map(str, found.categories)), codes=np.asarray(found.codes, dtype=np.int64)
    )


def checked(counts: RunCounts) -> RunCounts:
    """Return the counts; ValueError if they contradict each other.

    That is if a weight is not positive, a count is below 1, an outcome is unknown, a sum is
    impossible, or a task lies in two strata.
    """
    if not (np.isfinite(counts.weight) & (counts.weight > 0)).all():
        raise ValueError(f"weights must be positive and finite, got {counts.weight.min()!r}")
    if counts.runs.min() < 1 or counts.like.min() < 1:
        raise ValueError("n and tasks must be 1 or more in every row, got a smaller count")
    if counts.mix.min() < 0 or counts.mix.max() >= counts.shares.shape[0]:
        n = len(counts.taxonomy.names)
        raise ValueError(f"outcome must be in [0, {n}), got {counts.mix.max()!r}")
    slack = 1e-9 * counts.runs
    for name, sums in (("score", counts.score), ("penalty", counts.penalty)):
        if not ((sums >= -slack) & (sums <= counts.runs + slack)).all():
            raise ValueError(f"{name} must be a sum over the runs of values in [0, 1]")
    if counts.task is not None:
        _, first, task = np.unique(counts.task, return_index=True, return_inverse=True)
        if (counts.stratum[first][task] != counts.stratum).any():
            raise ValueError("clusters must each lie in one stratum, got one in two strata")
        if (counts.like[first][task] != counts.like).any():
            raise ValueError("tasks must each have one number of tasks like it, got two")
    return counts


def counts_of_frame(
    frame: pd.DataFrame,
    *,
    taxonomy: Taxonomy,
    credit: ArrayLike | None = None,
    own_credit: Mapping[str, ArrayLike] | None = None,
    grouped_tasks: int | None = None,
) -> RunCounts:
    """Read counts from a frame with one row per cell.

    `credit` is that which `score` was made with, `own_credit` that of workflows with their own;
    None for both: those of the taxonomy.
    `grouped_tasks` is the number of tasks, where `task` names random groups of tasks. Groups must
    mix tasks of all kinds: the variance between groups of one kind each is far too large.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns stratum, weight, outcome (class code), cost_known, penalty_step (0: no penalty), n
        (runs), penalty and score (sums over them); optional: penalty_squared (its sum, where the
        penalties of a row differ), week, workflow, model, score_NAME for further credit tables,
        cost and cost_squared (sums over known costs), gross (sum of credits, needed where workflows
        have their own and the frame has no workflow). For repeated tasks `task` and `tasks`: n and
        the sums are then per task, and `tasks` counts equal tasks.

    Raises
    ------
    ValueError
        If a column is missing, there is no row, or as `checked`.
    """
    missing = [name for name in NEEDED if name not in frame]
    if credit is None and own_credit is None:
        own_credit = taxonomy.credit_table.by_workflow
    if own_credit and GROSS not in frame and "workflow" not in frame:
        missing = [*missing, "workflow"]
    if missing:
        raise ValueError(f"frame must have the columns {NEEDED!r}, {missing!r} are missing")
    if frame.empty:
        raise ValueError("frame must not be empty, got no cells")
    outcome = frame["outcome"].to_numpy(dtype=np.int64)
    score = frame["score"].to_numpy(dtype=np.float64)
    others = [
        name for name in map(str, frame.columns) if name.startswith(OTHER_SCORE) and len(name) > 6
    ]
    tasks = "task" in frame
    worth = checked_credit(credit, taxonomy)
    own = {name: checked_credit(table, taxonomy) for name, table in (own_credit or {}).items()}
    runs = frame["n"].to_numpy(dtype=np.int64)
    # A step above zero has a penalty, however small its sum.
    penalty = np.where(
        frame["penalty_step"] > 0, np.maximum(frame["penalty"], np.finfo(float).tiny), 0.0
    )
    gross = (
        frame[GROSS].to_numpy(dtype=np.float64)
        if GROSS in frame
        else _gross(frame, outcome, worth, own)
    )
    return checked(
        RunCounts(
            taxonomy=taxonomy,
            shares=np.eye(worth.size),
            mix=outcome,
            stratum=labels_of(frame["stratum"]).codes + 1,
            runs=runs,
            like=frame["tasks"].to_numpy(dtype=np.int64)
            if tasks
            else np.ones(len(frame), dtype=np.int64),
            known=frame["cost_known"].to_numpy(dtype=np.bool_),
            weight=frame["weight"].to_numpy(dtype=np.float64),
            penalty=penalty,
            penalty_squared=frame["penalty_squared"].to_numpy(dtype=np.float64)
            if "penalty_squared" in frame
            else penalty**2 / np.maximum(runs, 1),
            gross=gross,
            score=score,
            abandoned_score=np.where(np.isin(outcome, absent_places(taxonomy)), score, 0.0),
            credit=worth,
            own_credit={name: tuple(table.tolist()) for name, table in own.items()},
            other_scores={
                name.removeprefix(OTHER_SCORE): frame[name].to_numpy(dtype=np.float64)
                for name in others
            },
            task=frame["task"].to_numpy() if tasks else None,
            by={name: labels_of(frame[name]) for name in BY if name in frame},
            cost=frame["cost"].to_numpy(dtype=np.float64) if "cost" in frame else None,
            cost_squared=(
                frame["cost_squared"].to_numpy(dtype=np.float64)
                if "cost_squared" in frame
                else None
            ),
            grouped_tasks=grouped_tasks,
        )
    )


def with_further_runs(counts: RunCounts, further: RunCounts) -> RunCounts:
    """Return counts with further runs of the first stratum, each a task of its own.

    Groups and scores by other credit tables are left out.

    Examples
    --------
    >>> from calibration.taxonomy import default_taxonomy
    >>> runs = [count_runs([0] * n, taxonomy=default_taxonomy()) for n in (3, 2)]
    >>> with_further_runs(*runs).n
    5
    """
    n = further.runs.astype(np.float64)

    def joined(name: str, *, each: bool = False) -> Any:
        first, second = getattr(counts, name), getattr(further, name)
        return np.concatenate([first, second / n if each else second])

    n_rows = further.runs.size
    if counts.task is None:
        task = None
    else:
        codes = np.unique(counts.task, return_inverse=True)[1]
        task = np.concatenate([codes, codes.max() + 1 + np.arange(n_rows)])
    by_task = task is not None
    sums = ("penalty", "penalty_squared", "gross", "score", "abandoned_score")
    first = np.full(n_rows, counts.stratum.min(), dtype=np.int64)
    own = np.ones(n_rows, dtype=np.int64)
    return checked(
        replace(
            counts,
            shares=counts.shares,
            mix=np.concatenate([counts.mix, _mix_among(counts.shares, further)]),
            stratum=np.concatenate([counts.stratum, first]),
            runs=np.concatenate([counts.runs, own if by_task else further.runs]),
            like=np.concatenate([counts.like, further.runs if by_task else own]),
            known=joined("known"),
            weight=joined("weight"),
            **{name: joined(name, each=by_task) for name in sums},
            other_scores={},
            task=task,
            by={},
            cost=None,
            cost_squared=None,
            grouped_tasks=(
                None if counts.grouped_tasks is None else counts.grouped_tasks + further.n
            ),
        )
    )


def _mix_among(shares: FloatArray, further: RunCounts) -> IntArray:
    """Return the place of each row's class mix among the mixes of other counts with its classes."""
    if np.array_equal(shares, further.shares):
        return further.mix
    places = [int(np.flatnonzero((shares == mix).all(axis=1))[0]) for mix in further.shares]
    return np.array(places, dtype=np.int64)[further.mix]


def _gross(
    frame: pd.DataFrame, outcome: IntArray, worth: FloatArray, own: Mapping[str, FloatArray]
) -> FloatArray:
    known = np.clip(outcome, 0, worth.size - 1)
    each = worth[known]
    for name, table in own.items():
        each = np.where((frame["workflow"] == name).to_numpy(), table[known], each)
    gross: FloatArray = each * frame["n"].to_numpy(dtype=np.float64)
    return gross


Names = Sequence[str | None] | NDArray[np.generic]


def runs_of_tasks(
    passes: FloatArray,
    *,
    taxonomy: Taxonomy,
    weights: ArrayLike | None = None,
    tasks: ArrayLike | None = None,
) -> RunCounts:
    """Count one run per task: a success by its share of passes, a failed check by the rest.

    `weights` and `tasks` as `weights` and `clusters` of `count_runs`, which says what is raised.

    Examples
    --------
    >>> from calibration.taxonomy import default_taxonomy
    >>> runs_of_tasks(np.array([1.0, 0.25]), taxonomy=default_taxonomy()).success.tolist()
    [1.0, 0.25]
    """
    rows = np.zeros((passes.size, len(taxonomy.names)))
    rows[:, taxonomy.place(taxonomy.success)] = passes
    rows[:, taxonomy.place(taxonomy.failed_check)] = 1 - passes
    return count_runs(rows, taxonomy=taxonomy, weights=weights, clusters=tasks)


def count_runs(
    outcomes: ArrayLike,
    *,
    taxonomy: Taxonomy,
    costs: ArrayLike | None = None,
    ceilings: ArrayLike | None = None,
    units: ArrayLike | None = None,
    credit: ArrayLike | CreditTable | None = None,
    other_credit: Mapping[str, Sequence[float] | CreditTable] | None = None,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    by: Mapping[str, Names] | None = None,
) -> RunCounts:
    """Count runs given one by one.

    `costs`, `ceilings` and `units` are as in `cost_penalties`; `weights` are inverse inclusion
    probabilities, `clusters` tasks, `strata` design strata; `other_credit` are further credit
    tables to score the runs with; `by` has the ``week``, ``workflow`` and ``model`` of each run,
    None where there is none; a workflow may have its own credit. ValueError if `outcomes` is empty,
    shapes differ, a value is out of its range, or `costs` come without `ceilings`.

    Examples
    --------
    >>> from calibration.taxonomy import default_taxonomy
    >>> counts = count_runs([0, 0, 4], taxonomy=default_taxonomy(), costs=[1, 3, 1], ceilings=2.0)
    >>> counts.score.tolist()
    [1.0, 0.5, 0.0]
    """
    table, absent = _table(credit, taxonomy), absent_places(taxonomy)
    rows = outcome_shares(outcomes, n_classes=len(table.credit))
    n = rows.shape[0]
    known, penalty = _penalties(costs, ceilings, units, n)
    shares, mix = _mixes(rows)
    weight = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    arrays: dict[str, Any] = {
        "weights": weight,
        "clusters": clusters,
        "strata": strata,
        **(by or {}),
    }
    for name, array in arrays.items():
        if array is not None and np.shape(array) != (n,):
            raise ValueError(f"{name} must have shape ({n},), got {np.shape(array)!r}")
    cost = None if costs is None else np.nan_to_num(np.asarray(costs, dtype=np.float64))
    workflows = (by or {}).get("workflow")
    worth = credit_rows(table, workflows)
    of_absent = np.maximum(0.0, worth[..., absent].sum(axis=-1) - penalty)
    return checked(
        RunCounts(
            taxonomy=taxonomy,
            shares=shares,
            mix=mix,
            stratum=np.zeros(n, dtype=np.int64) if strata is None else labels_of(strata).codes + 1,
            runs=_ones(n),
            like=_ones(n),
            known=known,
            weight=weight,
            penalty=penalty,
            penalty_squared=penalty**2,
            gross=gross_scores(rows, worth),
            score=scores(rows, penalty, credit=worth),
            abandoned_score=rows[:, absent].sum(axis=1) * of_absent,
            credit=np.array(table.credit, dtype=np.float64),
            own_credit=dict(table.by_workflow) if workflows is not None else {},
            other_scores={
                name: scores(rows, penalty, credit=credit_rows(_table(other, taxonomy), workflows))
                for name, other in (other_credit or {}).items()
            },
            task=None if clusters is None else np.asarray(clusters),
            by={name: labels_of(labels) for name, labels in (by or {}).items()},
            cost=cost,
            cost_squared=None if cost is None else cost**2,
        )
    )


def _table(credit: ArrayLike | CreditTable | None, taxonomy: Taxonomy) -> CreditTable:
    if credit is None:
        return taxonomy.credit_table
    if isinstance(credit, CreditTable):
        return credit
    return CreditTable(credit=tuple(checked_credit(credit, taxonomy).tolist()))


def _mixes(rows: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct class mixes, and the mix of each run."""
    if (rows.max(axis=1) == 1).all():
        return np.eye(rows.shape[1]), rows.argmax(axis=1).astype(np.int64)
    shares, mix = np.unique(rows, axis=0, return_inverse=True)
    return shares, mix.ravel().astype(np.int64)


def _penalties(
    costs: ArrayLike | None, ceilings: ArrayLike | None, units: ArrayLike | None, n: int
) -> tuple[BoolArray, FloatArray]:
    """Return which costs are known, and the penalties."""
    if costs is None:
        return np.zeros(n, dtype=np.bool_), np.zeros(n)
    if ceilings is None:
        raise ValueError("ceilings must be given with costs, got None")
    cost = np.asarray(costs, dtype=np.float64)
    if cost.shape != (n,):
        raise ValueError(f"costs must have shape ({n},), got {cost.shape!r}")
    return ~np.isnan(cost), cost_penalties(cost, ceilings, units)


def _ones(n: int) -> IntArray:
    return np.ones(n, dtype=np.int64)


def condensed(counts: RunCounts, *, by: str | None = None, kinds: bool = False) -> RunCounts:
    """Merge the cells that a rate cannot tell apart, across tasks.

    Cells stay apart that differ in class, weight, stratum, group of `by`, known cost or mean
    penalty. Where no credit is left, only the presence of a penalty counts. With `kinds`, cells of
    one class are merged whose penalties lie between the same credits: their sums of penalties and
    of squares keep mean and variance of every score. The order of rows does not depend on that of
    `counts`.
    """
    mean = counts.penalty / counts.runs
    every = (counts.score, *counts.other_scores.values())
    pays = np.logical_or.reduce([sums > 0 for sums in every])
    labels = None if by is None else counts.labels(by)
    step = np.unique(np.round(mean, 12), return_inverse=True)[1].astype(np.int64)
    step = np.where(mean > 0, step + 1, 0)
    key, space = np.zeros(mean.size, dtype=np.int64), 1
    parts = [
        counts.stratum,
        counts.mix,
        counts.known.astype(np.int64),
        _laws(counts, every, step) if kinds else np.where(pays, step + 2, np.minimum(step, 1)),
        *([] if labels is None else [labels.codes + 1]),
    ]
    if (counts.weight != counts.weight[0]).any():
        parts.append(np.unique(counts.weight, return_inverse=True)[1].astype(np.int64))
    for part in parts:
        size = int(part.max()) + 1
        key, space = key * size + part, space * size
    first, index = _numbered(key, space)

    def summed(sums: FloatArray) -> FloatArray:
        return np.bincount(index, weights=sums * counts.like).astype(np.float64)

    return replace(
        counts.where(first),
        runs=np.bincount(index, weights=counts.runs * counts.like).astype(np.int64),
        like=np.ones(first.size, dtype=np.int64),
        penalty=summed(counts.penalty),
        penalty_squared=summed(counts.penalty_squared),
        gross=summed(counts.gross),
        score=summed(counts.score),
        abandoned_score=summed(counts.abandoned_score),
        other_scores={name: summed(sums) for name, sums in counts.other_scores.items()},
        task=None,
        by={} if by is None or labels is None else {by: labels.where(first)},
        cost=None if counts.cost is None else summed(counts.cost),
        cost_squared=None if counts.cost_squared is None else summed(counts.cost_squared),
    )


def _laws(counts: RunCounts, every: Sequence[FloatArray], step: IntArray) -> IntArray:
    """Return a number for each way in which scores follow from the penalty of a run."""
    mean = counts.penalty / counts.runs
    law = np.minimum(step, 1)
    for sums in every:
        # A run that keeps credit has credit less penalty; the others have none.
        credit = np.where(sums > 0, np.round(sums / counts.runs + mean, 9), 0.0)
        place = np.unique(credit, return_inverse=True)[1].astype(np.int64)
        law = np.unique(law * (int(place.max()) + 1) + place, return_inverse=True)[1].astype(
            np.int64
        )
    # Where reviewers differ a score has several slopes: each penalty is its own kind.
    pure = (counts.shares.max(axis=1) == 1)[counts.mix]
    found: IntArray = np.where(pure, law, int(law.max()) + 1 + step)
    return found


def _numbered(key: IntArray, space: int) -> tuple[IntArray, IntArray]:
    """Return one row of each distinct key, sorted by key, and the place of each row's key."""
    if space > DENSE:
        _, first, index = np.unique(key, return_index=True, return_inverse=True)
        return first.astype(np.int64), index.astype(np.int64)
    a_row = np.full(space, -1, dtype=np.int64)
    a_row[key] = np.arange(key.size)
    occupied = np.flatnonzero(a_row >= 0)
    place = np.zeros(space, dtype=np.int64)
    place[occupied] = np.arange(occupied.size)
    return a_row[occupied], place[key]
