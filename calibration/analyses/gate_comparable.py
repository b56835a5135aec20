"""The part of a run that a later run is compared with."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.errors import InputError
from calibration.metrics.counting import count_runs
from calibration.metrics.counts import RunCounts
from calibration.records import OUTCOMES
from calibration.taxonomy import Taxonomy

COMPLETE, PARTIAL_MINUS = OUTCOMES.index("complete"), OUTCOMES.index("partial_minus")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskRates:
    """Trials of tasks and those that passed, a row a task or a kind of equal tasks.

    Parameters
    ----------
    names : array of str, optional
        Names that other runs share, a row a task; None where a row stands for several tasks.
    categories : array of str, shape (n_rows,)
    n, passed, like : int array, shape (n_rows,)
        Trials and successes of one task, and how many tasks are like it.
    weights : float array, shape (n_rows,)
        Mean weight of the trials.
    """

    names: NDArray[np.str_] | None
    categories: NDArray[np.str_]
    n: NDArray[np.int64]
    passed: NDArray[np.int64]
    like: NDArray[np.int64]
    weights: NDArray[np.float64]

    def counts(self) -> RunCounts:
        """Return one run a task that is complete by its share of successes.

        Raises
        ------
        InputError
            If a count is impossible.
        """
        share = self.passed / self.n
        rows = np.zeros((share.size, len(OUTCOMES)))
        rows[:, COMPLETE], rows[:, PARTIAL_MINUS] = share, 1 - share
        if self.names is not None:
            return count_runs(rows, weights=self.weights, clusters=self.names)
        return count_runs(
            np.repeat(rows, self.like, axis=0), weights=np.repeat(self.weights, self.like)
        )

    def where(self, rows: NDArray[np.bool_]) -> "TaskRates":
        """Return some of the tasks."""
        return replace(
            self,
            names=None if self.names is None else self.names[rows],
            categories=self.categories[rows],
            n=self.n[rows],
            passed=self.passed[rows],
            like=self.like[rows],
            weights=self.weights[rows],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparable:
    """Everything of a run that another run can be compared with.

    Parameters
    ----------
    taxonomy, tree : str
        Fingerprints of the whole taxonomy, and of the questions alone.
    ceilings : mapping of str to float or None
        Per unit, of the workflows that occur.
    partial_plus_passes : bool
        Whether partial_plus runs pass.
    runs : RunCounts
        With task names where these are few enough to be paired.
    tasks : TaskRates or str
        For pass@1, or why there is none.
    failed : tuple of str
        Gates that blocked the run.
    """

    taxonomy: str
    tree: str
    ceilings: Mapping[str, float | None]
    partial_plus_passes: bool
    runs: RunCounts
    tasks: TaskRates | str
    failed: tuple[str, ...] = ()


def tree_fingerprint(taxonomy: Taxonomy) -> str:
    """Return the SHA-256 over what decides a class: weights and ceilings do not."""
    classes = [(c.name, c.meaning) for c in taxonomy.classes]
    text = json.dumps([classes, [asdict(node) for node in taxonomy.nodes]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def checked_rates(rates: TaskRates) -> TaskRates:
    """Return rates that make sense.

    Raises
    ------
    InputError
        If a count is impossible, or a task is there twice.
    """
    if (rates.n < 1).any() or (rates.passed < 0).any() or (rates.passed > rates.n).any():
        raise InputError("'tasks': more trials passed than there are, or none is there")
    if (rates.like < 1).any() or not (np.isfinite(rates.weights) & (rates.weights > 0)).all():
        raise InputError("'tasks': a count is below 1, or a weight is not above 0")
    if rates.names is not None and np.unique(rates.names).size < rates.names.size:
        raise InputError("'tasks': a task is there twice")
    return rates
