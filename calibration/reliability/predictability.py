"""Predictability: whether an agent's confidence says which of its runs succeed.

`brier`, `calibration_error`, `auroc`, `risk_coverage` and `brier_skill` are the definitions on
given runs; `predictability` estimates them over tasks, all from the same resamples.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from calibration.statistics.estimate import BoolArray, FloatArray, IntArray
from calibration.statistics.intervals import CELLS
from calibration.statistics.resampling import Statistic, TaskEstimate, TaskResamples, ratio

BINS = 10
DIGITS = 9

# Points of the curve that are kept.
POINTS = 100

NO_CONFIDENCE = "no run without perturbation has a confidence: record the agent's confidence"
ONE_CLASS = "all runs with a confidence succeed, or all fail: add runs"
ALIKE = "all runs with a confidence succeed, or all fail, and no order is wrong: add runs"

# A resample of runs moves the bins by chance once more, as much as the data have moved already.
NO_LIMITS = "provisional: no interval: resamples read calibration too low, most with few runs a bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationBin:
    """Runs whose confidence lies in [low, high), the last bin closed; means None without runs."""

    low: float
    high: float
    n: int
    confidence: float | None
    success_rate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskPoint:
    """Share of failures (`risk`) among the share of runs (`coverage`) with the most confidence."""

    coverage: float
    risk: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictability:
    """Predictability over tasks, with the curves of the runs given.

    `score` : 1 - Brier score
    `calibration` : 1 - expected calibration error
    `bins` and `curve` are empty without a run that has a confidence.
    """

    score: TaskEstimate
    calibration: TaskEstimate
    auroc: TaskEstimate
    risk_coverage: TaskEstimate
    brier_skill: TaskEstimate
    n_runs: int
    bins: tuple[CalibrationBin, ...]
    curve: tuple[RiskPoint, ...]


def brier(confidence: ArrayLike, success: ArrayLike) -> float | None:
    """Return the Brier score, the mean of (confidence - success)^2; None without runs.

    Always .5 scores .25 however hard the tasks are: 1 - Brier is at least .75 then.

    Brier (1950), "Verification of forecasts expressed in terms of probability", Monthly Weather
    Review 78.

    >>> brier([0.5, 0.5], [1, 0])
    0.25
    """
    return _value(lambda c, y: ((c - y) ** 2).mean(), confidence, success)


def brier_skill(confidence: ArrayLike, success: ArrayLike) -> float | None:
    """Return 1 - Brier / (r (1 - r)), r being the success rate; None where all runs are alike.

    0 for an agent that always gives the success rate, 1 for a perfect one, negative below that.

    >>> brier_skill([0.5, 0.5], [1, 0]), brier_skill([1, 1], [1, 1])
    (0.0, None)
    """
    return _value(
        lambda c, y: 1 - ratio(((c - y) ** 2).mean(), y.mean() * (1 - y.mean())),
        confidence,
        success,
    )


def calibration_error(confidence: ArrayLike, success: ArrayLike) -> float | None:
    """Return the expected calibration error in ten bins of equal width; None without runs.

    The mean over runs of |mean confidence - success rate| of their bin. Bins are [0, .1), [.1, .2),
    ..., [.9, 1]; confidences are rounded to nine digits first, so that .3 lies in [.3, .4).

    Guo et al. (2017), "On calibration of modern neural networks".
    https://doi.org/10.48550/arXiv.1706.04599

    The bins of .25 and of .3, .3, .35 are off by .75 and by .0167: (.75 + 3 x .0167) / 4.

    >>> calibration_error([0.3, 0.3, 0.35, 0.25], [0, 1, 0, 1])
    0.2
    """
    return _value(lambda c, y: _bin_error(_bin_sums(c, y)[None]), confidence, success)


def auroc(confidence: ArrayLike, success: ArrayLike) -> float | None:
    """Return the chance that a success has more confidence than a failure; None with one class.

    A tie counts as half.

    Hanley and McNeil (1982), "The meaning and use of the area under a receiver operating
    characteristic (ROC) curve", Radiology 143. https://doi.org/10.1148/radiology.143.1.7063747

    >>> auroc([0.9, 0.5, 0.5], [1, 1, 0])
    0.75
    """
    return _value(lambda c, y: _auroc(*_by_value(c, y)), confidence, success)


def risk_coverage(confidence: ArrayLike, success: ArrayLike) -> float | None:
    """Return 1 - E-AURC / E-AURC of a random order, cut to [0, 1]; None where all runs are alike.

    AURC is the mean over k of the failures among the k runs with the most confidence; E-AURC is
    its excess over that of the best order. Runs with the same confidence are taken in a random
    order (their expectation). A random order is no worst case: the reverse of the best one gives
    a negative value before it is cut.

    Geifman, Uziel and El-Yaniv (2019), "Bias-reduced uncertainty estimation for deep neural
    classifiers". https://doi.org/10.48550/arXiv.1805.08206

    AURC is (0 + 1/2 + 1/3 + 2/4) / 4 = 1/3, the best (0 + 0 + 1/3 + 2/4) / 4, random 1/2:

    >>> risk_coverage([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0])
    0.57143
    """
    found = _value(lambda c, y: _risk(*_by_value(c, y)), confidence, success)
    return None if found is None else min(1.0, max(0.0, found))


def predictability(
    task: IntArray,
    success: BoolArray,
    confidence: FloatArray,
    resamples: TaskResamples,
) -> Predictability:
    """Estimate predictability from runs without perturbation, over tasks like these.

    Every run with a confidence counts once; tasks are resampled with all of their runs.

    Parameters
    ----------
    task : int array, shape (n_runs,)
        Number of the task of each run, as in `resamples`.
    success : bool array, shape (n_runs,)
    confidence : float array, shape (n_runs,)
        In [0, 1], NaN where there is none.
    """
    there = np.isfinite(confidence)
    task, y, c = task[there], success[there].astype(np.float64), confidence[there]
    entering = np.bincount(task, minlength=resamples.unit.size) > 0
    squares = _of_units(resamples, task, [np.ones(y.size), y, (c - y) ** 2])
    binned = _of_units(resamples, task, list(_bin_columns(c, y).T))
    by_value = _ValueCounts(resamples.unit[task], c, y, resamples.n_units)
    take = resamples.estimate

    def calibrated(weights: FloatArray) -> FloatArray:
        return 1 - _bin_error(weights @ binned)

    return Predictability(
        score=score(task, success[there], c, resamples),
        calibration=_without_interval(take(calibrated, entering, nothing=NO_CONFIDENCE)),
        auroc=take(by_value.statistic(_auroc), entering, nothing=ONE_CLASS),
        risk_coverage=take(by_value.statistic(_risk), entering, nothing=ALIKE),
        brier_skill=take(
            lambda w: _skill(w @ squares), entering, nothing=ONE_CLASS, lowest=-np.inf
        ),
        n_runs=int(y.size),
        bins=_bins(c, y),
        curve=_curve(c, y),
    )


def score(
    task: IntArray, success: BoolArray, confidence: FloatArray, resamples: TaskResamples
) -> TaskEstimate:
    """Estimate 1 - Brier over tasks, as `predictability`."""
    there = np.isfinite(confidence)
    entering = np.bincount(task[there], minlength=resamples.unit.size) > 0
    statistic = score_statistic(task, success, confidence, resamples)
    return resamples.estimate(statistic, entering, nothing=NO_CONFIDENCE)


def score_statistic(
    task: IntArray, success: BoolArray, confidence: FloatArray, resamples: TaskResamples
) -> Statistic:
    """Return 1 - Brier as a statistic."""
    there = np.isfinite(confidence)
    errors = (confidence[there] - success[there]) ** 2
    sums = _of_units(resamples, task[there], [errors, np.ones(errors.size)])
    return lambda weights: 1 - ratio(*(weights @ sums).T)


def _value(
    measure: Callable[[FloatArray, FloatArray], FloatArray | float],
    confidence: ArrayLike,
    success: ArrayLike,
) -> float | None:
    c, y = (np.asarray(of, dtype=np.float64) for of in (confidence, success))
    if c.shape != y.shape or c.ndim != 1:
        raise ValueError(
            f"confidence and success must have one shape (n,), got {c.shape!r} and {y.shape!r}"
        )
    if c.size and not (c.min() >= 0 and c.max() <= 1 and np.isin(y, (0, 1)).all()):
        raise ValueError("confidence must be in [0, 1] and success 0 or 1")
    found = float(np.squeeze(measure(c, y))) if c.size else np.nan
    return found if np.isfinite(found) else None


def _without_interval(found: TaskEstimate) -> TaskEstimate:
    """Return a figure whose resamples are biased, without limits."""
    if found.interval is None:
        return found
    return replace(found, interval=None, status=NO_LIMITS)


def _of_units(resamples: TaskResamples, task: IntArray, columns: list[FloatArray]) -> FloatArray:
    """Return the sums of columns of runs in each unit."""
    unit = resamples.unit[task]
    sums = [np.bincount(unit, weights=c, minlength=resamples.n_units) for c in columns]
    return np.stack(sums, axis=1)


def _skill(sums: FloatArray) -> FloatArray:
    rate = ratio(sums[:, 1], sums[:, 0])
    return 1 - ratio(ratio(sums[:, 2], sums[:, 0]), np.nan_to_num(rate * (1 - rate)))


def _bin_of(confidence: FloatArray) -> IntArray:
    place = np.floor(np.round(confidence * BINS, DIGITS)).astype(np.int64)
    return np.minimum(place, BINS - 1)


def _bin_columns(confidence: FloatArray, success: FloatArray) -> FloatArray:
    """Return, for each run, confidence less success in the column of its bin, and a last 1."""
    columns = np.zeros((confidence.size, BINS + 1))
    columns[np.arange(confidence.size), _bin_of(confidence)] = confidence - success
    columns[:, BINS] = 1.0
    return columns


def _bin_sums(confidence: FloatArray, success: FloatArray) -> FloatArray:
    found: FloatArray = _bin_columns(confidence, success).sum(axis=0)
    return found


def _bin_error(sums: FloatArray) -> FloatArray:
    return ratio(np.abs(sums[:, :BINS]).sum(axis=1), sums[:, BINS])


def _by_value(confidence: FloatArray, success: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return failures and successes at each different confidence, lowest first, as one row."""
    values, place = np.unique(confidence, return_inverse=True)
    n = np.bincount(place, minlength=values.size)
    good = np.bincount(place, weights=success, minlength=values.size)
    return (n - good)[None].astype(np.float64), good[None].astype(np.float64)


class _ValueCounts:
    """Failures and successes at each different confidence, in each unit."""

    def __init__(self, unit: IntArray, c: FloatArray, y: FloatArray, n_units: int) -> None:
        values, place = np.unique(c, return_inverse=True)
        self.n_values = values.size
        cells = (np.ones(y.size), (place.ravel() + values.size * (y > 0), unit))
        # Transposed: sparse times dense is what scipy does fast.
        self.counts = sparse.csr_array(cells, shape=(2 * values.size, n_units))

    def statistic(self, measure: Callable[[FloatArray, FloatArray], FloatArray]) -> Statistic:
        """Return a measure of failures and successes by value as a statistic."""

        def of(weights: FloatArray) -> FloatArray:
            found = np.empty(len(weights))
            block = max(1, CELLS // max(1, 2 * self.n_values))
            for start in range(0, len(weights), block):
                rows = slice(start, start + block)
                counts = np.asarray(self.counts @ weights[rows].T).T
                found[rows] = measure(counts[:, : self.n_values], counts[:, self.n_values :])
            return found

        return of


def _auroc(bad: FloatArray, good: FloatArray) -> FloatArray:
    below = np.cumsum(bad, axis=1) - bad / 2
    return ratio((good * below).sum(axis=1), good.sum(axis=1) * bad.sum(axis=1))


def _risk(bad: FloatArray, good: FloatArray) -> FloatArray:
    """Return 1 - E-AURC / E-AURC of a random order, not cut."""
    bad, runs = bad[:, ::-1], (bad + good)[:, ::-1]
    failures, total = bad.sum(axis=1), runs.sum(axis=1)
    harmonic = _harmonic(total)
    area = _area(bad, runs, harmonic)
    oracle = np.stack([total - failures, failures], axis=1)
    best = _area(np.stack([np.zeros_like(failures), failures], axis=1), oracle, harmonic)
    mixed = (failures > 0) & (failures < total)
    # Random order has the failure rate at every coverage, so that is its area times the total.
    return 1 - ratio(area - best, np.where(mixed, failures - best, 0.0))


def _harmonic(total: FloatArray) -> FloatArray:
    """Return 1 + 1/2 + ... + 1/n for n from 0 to the largest total."""
    most = int(total.max(initial=0))
    return np.concatenate([[0.0], np.cumsum(1 / np.arange(1, most + 1))])


def _area(bad: FloatArray, runs: FloatArray, harmonic: FloatArray) -> FloatArray:
    """Return the sum over k of the failures among the first k runs over k.

    Groups come in order, each in random order within: with N runs and E failures before a group of
    share r, run k has (E + (k - N) r) / k, whose sum needs harmonic numbers only.
    """
    ends = np.cumsum(runs, axis=1)
    before, failed = ends - runs, np.cumsum(bad, axis=1) - bad
    share = np.nan_to_num(ratio(bad, runs))
    reach = harmonic[ends.astype(np.int64)] - harmonic[before.astype(np.int64)]
    found: FloatArray = (bad + (failed - share * before) * reach).sum(axis=1)
    return found


def _bins(confidence: FloatArray, success: FloatArray) -> tuple[CalibrationBin, ...]:
    if not confidence.size:
        return ()
    place = _bin_of(confidence)
    n = np.bincount(place, minlength=BINS)
    sums = [np.bincount(place, weights=of, minlength=BINS) for of in (confidence, success)]
    return tuple(
        CalibrationBin(
            low=k / BINS,
            high=(k + 1) / BINS,
            n=int(n[k]),
            confidence=float(sums[0][k] / n[k]) if n[k] else None,
            success_rate=float(sums[1][k] / n[k]) if n[k] else None,
        )
        for k in range(BINS)
    )


def _curve(confidence: FloatArray, success: FloatArray) -> tuple[RiskPoint, ...]:
    """Return the risk at up to a hundred coverages."""
    if not confidence.size:
        return ()
    bad, good = (of[0, ::-1] for of in _by_value(confidence, success))
    ends = np.concatenate([[0.0], np.cumsum(bad + good)])
    failures = np.concatenate([[0.0], np.cumsum(bad)])
    k = np.unique(np.ceil(np.linspace(0, 1, min(POINTS, confidence.size) + 1)[1:] * ends[-1]))
    risks = np.interp(k, ends, failures) / k
    pairs = zip((k / ends[-1]).tolist(), risks.tolist(), strict=True)
    return tuple(RiskPoint(coverage=x, risk=y) for x, y in pairs)
