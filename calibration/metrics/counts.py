"""Runs counted by what is equal in them: all that the rates, trends and comparisons need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from calibration.metrics.score import DEFAULT_CREDIT, FloatArray, cost_penalties, outcome_shares
from calibration.records import OUTCOMES

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

COMPLETE, ABANDONED = OUTCOMES.index("complete"), OUTCOMES.index("abandoned")
NEEDED = ("stratum", "weight", "outcome", "cost_known", "penalty_step", "n", "penalty", "score")
OTHER_SCORE = "score_"
BY = ("week", "workflow", "model")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels:
    """What each row belongs to: the names in order, and the place of a row's name, -1 for none."""

    names: tuple[str, ...]
    codes: IntArray

    def of(self, name: str) -> BoolArray:
        """Return which rows have a name."""
        found: BoolArray = self.codes == self.names.index(name)
        return found

    @property
    def seen(self) -> tuple[str, ...]:
        """The names that occur."""
        rows = np.bincount(self.codes + 1, minlength=len(self.names) + 1)[1:]
        return tuple(name for name, count in zip(self.names, rows, strict=True) if count)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunCounts:
    """Cells of runs that are equal, or equal but for the last digits of their penalty.

    Build one with `count_runs` from rows or with `counts_of_frame` from counts. With tasks a row is
    a cell of one task (or of one of several equal tasks), else a cell of the whole.

    Parameters
    ----------
    shares : float array, shape (n_mixes, n_classes)
        The mixes of classes that occur; a class itself where reviewers agree.
    mix, stratum : int array, shape (n_rows,)
        Row of `shares`, and design stratum, of a cell.
    runs, like : int array, shape (n_rows,)
        Runs of the cell in one task; tasks that are like it (1 without tasks).
    known : bool array, shape (n_rows,)
        Whether the cost is known.
    weight : float array, shape (n_rows,)
        Inverse inclusion probability of a run.
    penalty, score, abandoned_score : float array, shape (n_rows,)
        Sums over the `runs`; the last is what abandoned runs add to `score`.
    other_scores : mapping of str to float array
        Sums of the score under further credit tables.
    credit : float array, shape (n_classes,)
        Credit of each class.
    task : array, shape (n_rows,), optional
        Task of a row. None: runs are independent.
    by : mapping of str to Labels
        The ``week``, ``workflow`` and ``model`` of the rows.
    cost, cost_squared : float array, shape (n_rows,), optional
        Sums of known costs and of their squares.
    rounded : bool
        Whether the rows hold runs whose penalties differ by up to 1/1024.
    """

    shares: FloatArray
    mix: IntArray
    stratum: IntArray
    runs: IntArray
    like: IntArray
    known: BoolArray
    weight: FloatArray
    penalty: FloatArray
    score: FloatArray
    abandoned_score: FloatArray
    credit: FloatArray
    other_scores: Mapping[str, FloatArray] = field(default_factory=dict)
    task: NDArray[np.generic] | None = None
    by: Mapping[str, Labels] = field(default_factory=dict)
    cost: FloatArray | None = None
    cost_squared: FloatArray | None = None
    rounded: bool = False

    @property
    def n(self) -> int:
        """Number of runs."""
        return int(self.runs @ self.like)

    @property
    def n_tasks(self) -> int:
        """Number of tasks; of runs without tasks."""
        if self.task is None:
            return self.n
        return int(self.like[np.unique(self.task, return_index=True)[1]].sum())

    @property
    def repeats(self) -> bool:
        """Whether some task was run more than once."""
        return self.task is not None and self.n_tasks < self.n

    def where(self, rows: BoolArray | IntArray) -> "RunCounts":
        """Return the counts of some rows only."""

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
            score=self.score[rows],
            abandoned_score=self.abandoned_score[rows],
            other_scores={name: sums[rows] for name, sums in self.other_scores.items()},
            task=None if self.task is None else self.task[rows],
            by={
                name: Labels(names=labels.names, codes=labels.codes[rows])
                for name, labels in self.by.items()
            },
            cost=kept(self.cost),
            cost_squared=kept(self.cost_squared),
        )

    def labels(self, by: str) -> Labels:
        """Return the workflows, models or weeks of the rows.

        Raises
        ------
        ValueError
            If the runs were not counted by it.
        """
        if by not in self.by:
            raise ValueError(f"by must be one of {sorted(self.by)!r}, got {by!r}")
        return self.by[by]


def counts_of_frame(
    frame: pd.DataFrame, *, credit: ArrayLike = DEFAULT_CREDIT, rounded: bool = True
) -> RunCounts:
    """Read counts from a frame with one row a cell.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns stratum, weight, outcome (position in OUTCOMES), cost_known, penalty_step (0: no
        penalty), n (runs), penalty and score (sums over them); optional: week, workflow, model,
        score_NAME for further credit tables, cost and cost_squared (sums over known costs), and
        for repeated tasks `task` and `tasks`: n and the sums are then of one task, and `tasks`
        says how many are like it.
    credit : array-like of float, shape (n_classes,)
        The credit that `score` was made with.
    rounded : bool, default True
        Whether a row holds penalties that differ within their step of 1/1024.

    Returns
    -------
    RunCounts
        The runs of the frame.

    Raises
    ------
    ValueError
        If a column is missing, there is no row, a count is below 1, a weight is not positive, an
        outcome is unknown, or sums are impossible.

    Examples
    --------
    Three complete runs, one of them with a penalty of .5, and an abandoned one:

    >>> frame = pd.DataFrame(
    ...     {
    ...         "stratum": "all", "weight": 1.0, "outcome": [0, 0, 4], "cost_known": True,
    ...         "penalty_step": [0, 512, 0], "n": [2, 1, 1],
    ...         "penalty": [0.0, 0.5, 0.0], "score": [2.0, 0.5, 0.0],
    ...     }
    ... )
    >>> counts = counts_of_frame(frame)
    >>> counts.n, float(counts.score.sum())
    (4, 2.5)
    """
    missing = [name for name in NEEDED if name not in frame]
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
    return _checked(
        RunCounts(
            shares=np.eye(len(OUTCOMES)),
            mix=outcome,
            stratum=_labels(frame["stratum"]).codes,
            runs=frame["n"].to_numpy(dtype=np.int64),
            like=frame["tasks"].to_numpy(dtype=np.int64) if tasks else _ones(len(frame)),
            known=frame["cost_known"].to_numpy(dtype=np.bool_),
            weight=frame["weight"].to_numpy(dtype=np.float64),
            # A step that is not zero has a penalty, however small the sum of it may print.
            penalty=np.where(
                frame["penalty_step"] > 0, np.maximum(frame["penalty"], np.finfo(float).tiny), 0.0
            ),
            score=score,
            abandoned_score=np.where(outcome == ABANDONED, score, 0.0),
            credit=checked_credit(credit),
            other_scores={
                name.removeprefix(OTHER_SCORE): frame[name].to_numpy(dtype=np.float64)
                for name in others
            },
            task=frame["task"].to_numpy() if tasks else None,
            by={name: _labels(frame[name]) for name in BY if name in frame},
            cost=frame["cost"].to_numpy(dtype=np.float64) if "cost" in frame else None,
            cost_squared=(
                frame["cost_squared"].to_numpy(dtype=np.float64)
                if "cost_squared" in frame
                else None
            ),
            rounded=rounded,
        )
    )


def count_runs(
    outcomes: ArrayLike,
    *,
    costs: ArrayLike | None = None,
    ceilings: ArrayLike | None = None,
    units: ArrayLike | None = None,
    credit: ArrayLike = DEFAULT_CREDIT,
    other_credit: Mapping[str, Sequence[float]] | None = None,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    by: Mapping[str, ArrayLike] | None = None,
) -> RunCounts:
    """Count runs that are given one by one; parameters as in `agent_success_rate`.

    Parameters
    ----------
    outcomes : array-like, shape (n,) of int or (n, n_classes) of float
        Class codes, or class shares when reviewers differ.
    costs, ceilings, units, weights, clusters, strata : array-like, shape (n,), optional
        Cost (NaN: not known), ceiling per unit, units, inverse inclusion probability, task and
        design stratum of each run.
    credit : array-like of float, shape (n_classes,)
        Credit of each class.
    other_credit : mapping of str to sequence of float, optional
        Further credit tables to score the runs with.
    by : mapping of str to array-like, optional
        ``week``, ``workflow``, ``model`` of each run, None where there is none.

    Raises
    ------
    ValueError
        If `outcomes` is empty, shapes differ, a value is out of its range, or `costs` come without
        `ceilings`.

    Examples
    --------
    >>> count_runs([0, 0, 4], costs=[1.0, 3.0, 1.0], ceilings=2.0).score.tolist()
    [1.0, 0.5, 0.0]
    """
    worth = checked_credit(credit)
    rows = outcome_shares(outcomes, n_classes=worth.size)
    n = rows.shape[0]
    known, penalty = _penalties(costs, ceilings, units, n)
    shares, mix = _mixes(rows)
    weight = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    arrays = {"weights": weight, "clusters": clusters, "strata": strata, **(by or {})}
    for name, array in arrays.items():
        if array is not None and np.shape(array) != (n,):
            raise ValueError(f"{name} must have shape ({n},), got {np.shape(array)!r}")
    cost = None if costs is None else np.nan_to_num(np.asarray(costs, dtype=np.float64))
    of_abandoned = np.maximum(0.0, worth[ABANDONED] - penalty)
    return _checked(
        RunCounts(
            shares=shares,
            mix=mix,
            stratum=np.zeros(n, dtype=np.int64) if strata is None else _labels(strata).codes,
            runs=_ones(n),
            like=_ones(n),
            known=known,
            weight=weight,
            penalty=penalty,
            score=_kept(rows, penalty, worth),
            abandoned_score=rows[:, ABANDONED] * of_abandoned,
            credit=worth,
            other_scores={
                name: _kept(rows, penalty, checked_credit(table))
                for name, table in (other_credit or {}).items()
            },
            task=None if clusters is None else np.asarray(clusters),
            by={name: _labels(labels) for name, labels in (by or {}).items()},
            cost=cost,
            cost_squared=None if cost is None else cost**2,
        )
    )


def checked_credit(credit: ArrayLike) -> FloatArray:
    """Return the credit of each class.

    Raises
    ------
    ValueError
        If there is not one in [0, 1] for every class.
    """
    worth = np.asarray(credit, dtype=np.float64)
    if worth.shape != (len(OUTCOMES),) or not (worth.min() >= 0 and worth.max() <= 1):
        raise ValueError(f"credit must be in [0, 1] for {len(OUTCOMES)} classes, got {credit!r}")
    return worth


def _kept(rows: FloatArray, penalty: FloatArray, worth: FloatArray) -> FloatArray:
    kept: FloatArray = (rows * np.maximum(0.0, worth - penalty[:, None])).sum(axis=1)
    return kept


def _mixes(rows: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct class mixes and which one each run has."""
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


def _labels(values: ArrayLike | pd.Series) -> Labels:
    found = pd.Categorical(values if isinstance(values, pd.Series) else pd.Series(values))
    return Labels(
        names=tuple(map(str, found.categories)), codes=np.asarray(found.codes, dtype=np.int64)
    )


def _ones(n: int) -> IntArray:
    return np.ones(n, dtype=np.int64)


def _checked(counts: RunCounts) -> RunCounts:
    if not (np.isfinite(counts.weight) & (counts.weight > 0)).all():
        raise ValueError(f"weights must be positive and finite, got {counts.weight.min()!r}")
    if counts.runs.min() < 1 or counts.like.min() < 1:
        raise ValueError("n and tasks must be 1 or more in every row, got a smaller count")
    if counts.mix.min() < 0 or counts.mix.max() >= counts.shares.shape[0]:
        raise ValueError(f"outcome must be in [0, {len(OUTCOMES)}), got {counts.mix.max()!r}")
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
