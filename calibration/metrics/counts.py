"""Runs counted by what is equal in them: all that the rates, trends and comparisons need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from calibration.metrics.arrays import BoolArray, FloatArray, IntArray
from calibration.records import OUTCOMES

COMPLETE, ABANDONED = OUTCOMES.index("complete"), OUTCOMES.index("abandoned")


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

    Build one with `counting.count_runs` from rows or with `frames.counts_of_frame` from counts.
    With tasks a row is a cell of one task (or of one of several equal tasks), else of the whole.

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
    penalty, gross, score, abandoned_score : float array, shape (n_rows,)
        Sums over the `runs`: of penalties, of credits, of what is left, and of what abandoned runs
        add to that.
    other_scores : mapping of str to float array
        Sums of the score under further credit tables.
    credit : float array, shape (n_classes,)
        Credit of each class.
    own_credit : mapping of str to tuple of float
        Credit tables of workflows with their own.
    task : array, shape (n_rows,), optional
        Task of a row. None: runs are independent.
    by : mapping of str to Labels
        The ``week``, ``workflow`` and ``model`` of the rows.
    cost, cost_squared : float array, shape (n_rows,), optional
        Sums of known costs and of their squares.
    rounded : bool
        Whether the rows hold runs whose penalties differ by up to 1/1024.
    grouped_tasks : int, optional
        Number of tasks where a `task` is a random group of them.
    """

    shares: FloatArray
    mix: IntArray
    stratum: IntArray
    runs: IntArray
    like: IntArray
    known: BoolArray
    weight: FloatArray
    penalty: FloatArray
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
    rounded: bool = False
    grouped_tasks: int | None = None

    @property
    def n(self) -> int:
        """Number of runs."""
        return int(self.runs @ self.like)

    @property
    def n_tasks(self) -> int:
        """Number of tasks; of runs without tasks."""
        if self.task is None:
            return self.n
        if self.grouped_tasks is not None:
            return self.grouped_tasks
        return int(self.like[np.unique(self.task, return_index=True)[1]].sum())

    @property
    def repeats(self) -> bool:
        """Whether some task was run more than once."""
        return self.task is not None and self.n_tasks < self.n

    def where(self, rows: BoolArray | IntArray) -> "RunCounts":
        """Return the counts of some rows only; random groups of tasks then count as tasks."""

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
            gross=self.gross[rows],
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
            grouped_tasks=None,
        )

    def restated(self, name: str, *, credit: ArrayLike) -> "RunCounts":
        """Return the same runs scored with a further credit table that they were counted with.

        Sides that were scored with different credit become comparable under one of them.

        Parameters
        ----------
        name : str
            Of the further table.
        credit : array-like of float, shape (n_classes,)
            That table.

        Raises
        ------
        ValueError
            If the runs were not counted with it.
        """
        if name not in self.other_scores:
            raise ValueError(f"name must be one of {sorted(self.other_scores)!r}, got {name!r}")
        worth, score = checked_credit(credit), self.other_scores[name]
        abandoned = self.shares[self.mix, ABANDONED]
        kept = np.maximum(0.0, worth[ABANDONED] - self.penalty / self.runs) * self.runs
        return replace(
            self,
            gross=(self.shares @ worth)[self.mix] * self.runs,
            score=score,
            abandoned_score=np.where(abandoned == 1, score, abandoned * kept),
            credit=worth,
            own_credit={},
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


def labels_of(values: ArrayLike | Sequence[str | None] | pd.Series) -> Labels:
    """Return the names that occur and where; None and NaN are no name."""
    found = pd.Categorical(values if isinstance(values, pd.Series) else pd.Series(values))
    return Labels(
        names=tuple(map(str, found.categories)), codes=np.asarray(found.codes, dtype=np.int64)
    )


def checked(counts: RunCounts) -> RunCounts:
    """Return counts that make sense.

    Raises
    ------
    ValueError
        If a weight is not positive, a count is below 1, an outcome is unknown, a sum is impossible,
        or a task lies in two strata.
    """
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
