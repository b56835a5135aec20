"""Partial credit fitted to how useful runs were: a monotone regression over the classes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from calibration.statistics.estimate import BoolArray, FloatArray, IntArray
from calibration.statistics.resampling import (
    Statistic,
    TaskEstimate,
    TaskResamples,
    ratio,
    resample_tasks,
)
from calibration.taxonomy import Taxonomy

FITTED, PARTIAL = "fitted", (0.3, 0.4, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassUsefulness:
    """How useful the runs of a class were, on the scale given: their mean, and the monotone fit."""

    outcome: str
    n: int
    mean: float | None
    fitted: TaskEstimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RateAtCredit:
    """The mean credit of the runs at one partial credit; None where it is not known."""

    name: str
    credit: float | None
    asr: TaskEstimate


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCredit:
    """Partial credit as the runs were useful.

    `partial` : the classes that it is of; `credit` : its value, 0 to 1.
    `classes` : usefulness by class. `rates` : mean credit of these runs at the fitted credit and at
    .3, .4 and .5, without costs.
    """

    partial: tuple[str, ...]
    credit: TaskEstimate
    classes: tuple[ClassUsefulness, ...]
    rates: tuple[RateAtCredit, ...]
    n: int
    n_tasks: int


def class_order(taxonomy: Taxonomy) -> BoolArray:
    """Return which class (row) is above which (column): success, what is acceptable, the rest.

    The rest cannot be compared with each other.

    Examples
    --------
    >>> from calibration.taxonomy import default_taxonomy
    >>> class_order(default_taxonomy()).sum(axis=1).tolist()
    [4, 3, 0, 0, 0]
    """
    rank = np.array(
        [
            2 if name == taxonomy.success else 1 if name in taxonomy.acceptable else 0
            for name in taxonomy.names
        ]
    )
    above: BoolArray = rank[:, None] > rank
    return above


def monotone_means(counts: FloatArray, sums: FloatArray, above: BoolArray) -> FloatArray:
    """Return the least-squares means of classes under a partial order, NaN for one without runs.

    The isotonic regression by its max-min formula: of each class, the largest over the upper sets
    that hold it of the smallest over the lower sets that hold it of the mean of all runs in both.

    Parameters
    ----------
    counts, sums : float array, shape (n_rows, n_classes)
        Runs of each class and the sum of their values; each row is fitted by itself.
    above : bool array, shape (n_classes, n_classes)
        Whether a class (row) is above another (column); transitive.

    References
    ----------
    Robertson, Wright and Dykstra (1988), Order Restricted Statistical Inference, theorem 1.4.4.

    Examples
    --------
    The second of three classes in order is above the first: both get their common mean.

    >>> order = np.triu(np.ones((3, 3), dtype=bool), 1)
    >>> monotone_means(np.ones((1, 3)), np.array([[0.5, 0.7, 0.1]]), order).round(9).tolist()
    [[0.6, 0.6, 0.1]]
    """
    uppers, lowers = (np.array(list(_closed(order))) for order in (above.T, above))
    both = (uppers[:, None] & lowers).reshape(-1, above.shape[0]).T.astype(np.float64)
    shape = (len(counts), len(uppers), len(lowers))
    n, total = (of @ both for of in (counts, sums))
    # Sets without runs are never the smallest: every set of a class with runs has some.
    mean = np.divide(total, n, out=np.full(n.shape, np.inf), where=n > 0).reshape(shape)
    found = np.stack(
        [
            mean[:, upper][:, :, lower].min(axis=2).max(axis=1)
            for upper, lower in zip(uppers.T, lowers.T, strict=True)
        ],
        axis=1,
    )
    return np.where(counts > 0, found, np.nan)


def _closed(below: BoolArray) -> Iterator[NDArray[np.bool_]]:
    """Yield the sets that hold with a class all that `below` (row: class) has."""
    for chosen in product([False, True], repeat=len(below)):
        some = np.array(chosen)
        if some.any() and not (below[some].any(axis=0) & ~some).any():
            yield some


def fit_credit(
    outcomes: IntArray,
    usefulness: FloatArray,
    *,
    taxonomy: Taxonomy,
    rng: np.random.Generator,
    tasks: IntArray | None = None,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
) -> FittedCredit:
    """Fit the credit of partly right runs to how useful runs of each class were.

    The usefulness of a class is its mean under the order of the classes (`monotone_means`). The
    scale has two fixed points: success is 1, and 0 is the mean of the fitted values over the runs
    of all classes that are not acceptable, which earn nothing in the rate. The credit is where the
    partly right runs lie between them. With it, and with the mix of the classes that earn nothing
    unchanged, mean usefulness is a straight line of the rate: one point of the rate is worth the
    same whether it comes from partly right runs or from complete ones. Usefulness in other units,
    or of another zero, gives the same credit.

    Parameters
    ----------
    outcomes : int array, shape (n,)
        Class codes.
    usefulness : float array, shape (n,)
        How useful each run was, for instance 0 to 100, or 0 and 1.
    tasks : int array, shape (n,), optional
        Codes from 0 of the task of each run: runs of one task are resampled together. None: runs
        are independent.

    Returns
    -------
    FittedCredit
        Limits by `TaskResamples`, `n` being the tasks of the rarest of the three kinds of class:
        the bootstrap from 20 on, t from 5, none below. They are those of the means without the
        order, cut to [0, 1] and widened to hold the fit: the order lifts partly right runs where
        classes are alike, and resamples would lift them twice. ``not_estimable`` without runs of
        one of the kinds, or where success was of no more use than what earns nothing.

    Raises
    ------
    ValueError
        If shapes differ, a code is no class, or a value is not finite.

    References
    ----------
    Barlow, Bartholomew, Bremner and Brunk (1972), Statistical Inference under Order Restrictions.

    Examples
    --------
    Complete runs are worth 90, partly right ones 50, failed ones 10: (50 - 10) / (90 - 10).

    >>> from calibration.taxonomy import default_taxonomy
    >>> codes, values = np.repeat([0, 1, 2], 30), np.repeat([90.0, 50.0, 10.0], 30)
    >>> fit_credit(
    ...     codes, values, taxonomy=default_taxonomy(), rng=np.random.default_rng(1)
    ... ).credit.value
    0.5
    """
    fit = _ByTask.of(outcomes, usefulness, tasks, taxonomy, rng, n_resamples, confidence_level)
    known = fit.fitted_credit
    credit = _holding(fit.estimate(fit.credit, *fit.kinds), known)
    rates = [
        RateAtCredit(name=f"{worth:g}", credit=worth, asr=fit.estimate(fit.rate_at(worth)))
        for worth in PARTIAL
    ]
    fitted = fit.estimate(
        lambda weights: fit.rate(weights, np.clip(fit.credit(weights), 0, 1)), *fit.kinds
    )
    every = np.ones((1, fit.drawn.n_units))
    return FittedCredit(
        partial=tuple(taxonomy.acceptable[1:]),
        credit=credit,
        classes=tuple(fit.classes()),
        rates=(
            RateAtCredit(
                name=FITTED,
                credit=credit.value,
                asr=_holding(fitted, float(fit.rate(every, known)[0])),
            ),
            *rates,
        ),
        n=outcomes.size,
        n_tasks=fit.tasks.shape[0],
    )


def _holding(found: TaskEstimate, value: float) -> TaskEstimate:
    """Return an estimate without the order of classes with the value of the monotone fit."""
    if found.value is None or not np.isfinite(value):
        return found
    limits = found.interval
    if limits is not None:
        limits = min(limits[0], value), max(limits[1], value)
    return replace(found, value=value, interval=limits)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ByTask:
    """Runs and sums of usefulness by task (row) and class, and their resamples by unit.

    `fitted` : monotone mean of each class, NaN for one without runs.
    `tops`, `parts`, `lows` : which classes are success, partly right, and worth nothing.
    """

    taxonomy: Taxonomy
    above: BoolArray
    drawn: TaskResamples
    tasks: FloatArray
    units: FloatArray
    totals: FloatArray
    fitted: FloatArray
    highest: float
    lowest: float
    tops: BoolArray
    parts: BoolArray
    lows: BoolArray

    @classmethod
    def of(
        cls,
        outcomes: IntArray,
        usefulness: FloatArray,
        tasks: IntArray | None,
        taxonomy: Taxonomy,
        rng: np.random.Generator,
        n_resamples: int,
        confidence_level: float,
    ) -> "_ByTask":
        n, n_classes = outcomes.size, len(taxonomy.names)
        if not n or usefulness.shape != (n,) or not np.isfinite(usefulness).all():
            raise ValueError(f"usefulness must be {n} finite numbers, one a run, and one or more")
        if outcomes.min() < 0 or outcomes.max() >= n_classes:
            raise ValueError(f"outcomes must be in [0, {n_classes}), got {outcomes.max()!r}")
        task = np.arange(n) if tasks is None else np.unique(tasks, return_inverse=True)[1].ravel()
        if task.shape != (n,):
            raise ValueError(f"tasks must have shape ({n},), got {task.shape!r}")
        n_tasks = int(task.max()) + 1
        cells = task * n_classes + outcomes
        counts, sums = (
            np.bincount(cells, weights=values, minlength=n_tasks * n_classes)
            .reshape(n_tasks, n_classes)
            .astype(np.float64)
            for values in (None, usefulness)
        )
        drawn = resample_tasks(
            n_tasks, rng=rng, n_resamples=n_resamples, confidence_level=confidence_level
        )
        above = class_order(taxonomy)
        rank = above.sum(axis=1)
        units, totals = (drawn.sums(list(of.T)) for of in (counts, sums))
        return cls(
            taxonomy=taxonomy,
            above=above,
            drawn=drawn,
            tasks=counts,
            units=units,
            totals=totals,
            fitted=monotone_means(
                counts.sum(axis=0, keepdims=True), sums.sum(axis=0, keepdims=True), above
            )[0],
            highest=float(usefulness.max()),
            lowest=float(usefulness.min()),
            tops=rank == rank.max(),
            parts=(rank < rank.max()) & (rank > 0),
            lows=rank == 0,
        )

    @property
    def kinds(self) -> tuple[BoolArray, ...]:
        """Success, partly right, and what earns nothing."""
        return self.tops, self.parts, self.lows

    def estimate(
        self, statistic: Statistic, *kinds: BoolArray, lowest: float = 0.0, highest: float = 1.0
    ) -> TaskEstimate:
        """Estimate a number over tasks that needs runs of each of some kinds of class."""
        entering = [int((self.tasks[:, kind].sum(axis=1) > 0).sum()) for kind in kinds]
        names = np.array(self.taxonomy.names)
        lacking = [names[kind] for kind, n in zip(kinds, entering, strict=True) if not n]
        nothing = "success was of no more use than runs of the classes that earn nothing"
        if lacking:
            nothing = f"no run of {' or '.join(lacking[0])}: add some"
        return self.drawn.estimate(
            statistic,
            np.ones(len(self.tasks), dtype=np.bool_),
            nothing=nothing,
            lowest=lowest,
            highest=highest,
            fewest=min(entering, default=len(self.tasks)),
        )

    @property
    def fitted_credit(self) -> float:
        """The partial credit by the monotone means; NaN where it is not known."""
        n = self.units.sum(axis=0)
        return float(self._between(n[None], (n * np.nan_to_num(self.fitted))[None])[0])

    def credit(self, weights: FloatArray) -> FloatArray:
        """Return the partial credit on rows of weights, by means that need not be in order."""
        return self._between(weights @ self.units, weights @ self.totals)

    def _between(self, counts: FloatArray, sums: FloatArray) -> FloatArray:
        """Return where partly right runs lie between those that earn nothing and success."""
        top, part, low = (
            ratio(sums[:, kind].sum(axis=1), counts[:, kind].sum(axis=1)) for kind in self.kinds
        )
        return ratio(part - low, top - low)

    def rate(self, weights: FloatArray, credit: FloatArray | float) -> FloatArray:
        """Return the mean credit of the runs on rows of weights, at a partial credit."""
        counts = weights @ self.units
        known = counts @ np.where(self.parts, 0.0, self.taxonomy.credits)
        return ratio(known + credit * counts[:, self.parts].sum(axis=1), counts.sum(axis=1))

    def rate_at(self, credit: float) -> Statistic:
        """Return the mean credit at a given partial credit as a statistic."""
        return lambda weights: self.rate(weights, credit)

    def classes(self) -> Iterator[ClassUsefulness]:
        """Yield the usefulness of each class."""
        n, total = self.units.sum(axis=0), self.totals.sum(axis=0)
        for place, name in enumerate(self.taxonomy.names):
            own = np.arange(n.size) == place
            yield ClassUsefulness(
                outcome=name,
                n=int(n[place]),
                mean=float(total[place] / n[place]) if n[place] else None,
                fitted=_holding(
                    self.estimate(self._mean(place), own, lowest=self.lowest, highest=self.highest),
                    float(self.fitted[place]),
                ),
            )

    def _mean(self, place: int) -> Statistic:
        return lambda weights: ratio(*(weights @ of[:, place] for of in (self.totals, self.units)))
