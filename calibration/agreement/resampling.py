"""Bootstrap of items or clusters: every coefficient on the same resamples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from calibration.agreement.by_rater import (
    CONGER_KAPPA,
    conger_features,
    conger_kappa,
    distinct_rows,
)
from calibration.agreement.chance_corrected import (
    Coefficient,
    distances_of,
    estimate,
)
from calibration.agreement.clusters import estimate_by_cluster
from calibration.agreement.counts import CountPatterns
from calibration.agreement.influence import unit_features
from calibration.agreement.intervals import FloatArray, check_confidence_level
from calibration.estimates import Estimate

PERCENTILE, BCA = "percentile bootstrap", "BCa bootstrap"
# Draws held at once, so that a million clusters do not fill the memory.
CELLS = 4_000_000
# Resamples without a value may be left out as long as they are this rare.
MAX_UNDEFINED = 0.05
TOO_MANY_UNDEFINED = (
    "no interval: one class alone is left in {share:.0%} of the resamples; rate more items"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resampled:
    """A coefficient on resamples, beside its value on the ratings as they are.

    Parameters
    ----------
    seen : Estimate
        With the default interval, the jackknife's on the Fisher z scale, over the same units.
    draws : float array, shape (n_resamples,)
        NaN where a resample holds one class only.
    left_out : float array, shape (n_units,)
        The coefficient without one of the units drawn: items of one pattern, or a cluster.
    multiplicity : int array, shape (n_units,)
        Units like it.
    unit : str
        ``"items"`` or ``"clusters"``.
    """

    seen: Estimate
    draws: FloatArray
    left_out: FloatArray
    multiplicity: NDArray[np.int64]
    unit: str

    def percentile(self) -> Estimate:
        """Return the interval between quantiles of the draws."""
        tail = (1 - self.seen.confidence_level) / 2
        return self._between(tail, 1 - tail, PERCENTILE)

    def bca(self) -> Estimate:
        """Return the bias-corrected and accelerated interval.

        References
        ----------
        Efron (1987), J. Am. Stat. Assoc. 82. https://doi.org/10.1080/01621459.1987.10478410
        """
        if self.seen.value is None or self.seen.se is None:
            return self.seen
        known = self.draws[~np.isnan(self.draws)]
        below = np.mean(known < self.seen.value) + np.mean(known == self.seen.value) / 2
        shift = float(stats.norm.ppf(np.clip(below, 1 / known.size, 1 - 1 / known.size)))
        n = self.multiplicity.sum()
        centred = self.multiplicity @ self.left_out / n - self.left_out
        third, second = self.multiplicity @ centred**3, self.multiplicity @ centred**2
        skew = float(third / (6 * second**1.5))
        reach = float(stats.norm.ppf((1 + self.seen.confidence_level) / 2))
        ends = (shift + z for z in (-reach, reach))
        low, high = (stats.norm.cdf(shift + z / (1 - skew * z)) for z in ends)
        return self._between(float(low), float(high), BCA)

    def at_least(self, threshold: float) -> float | None:
        """Return the share of draws that reach a threshold; None where draws say nothing.

        Without any disagreement every draw agrees, which is no evidence about those unseen.
        """
        if self.seen.se is None:
            return None
        known = self.draws[~np.isnan(self.draws)]
        return float(np.mean(known >= threshold))

    def _between(self, low: float, high: float, name: str) -> Estimate:
        if self.seen.value is None or self.seen.se is None:
            return self.seen
        undefined = float(np.isnan(self.draws).mean())
        known = self.draws[~np.isnan(self.draws)]
        method = f"{name} of {self.unit}, {self.draws.size:,} resamples"
        if undefined > MAX_UNDEFINED:
            status = TOO_MANY_UNDEFINED.format(share=undefined).replace("%", " %")
            return replace(self.seen, interval=None, method=method, status=status)
        ends = np.quantile(known, [low, high])
        return replace(
            self.seen,
            interval=(float(ends[0]), float(ends[1])),
            method=method,
            se=float(np.std(known, ddof=1)),
        )


def resample(
    coefficients: Sequence[Coefficient],
    patterns: CountPatterns,
    *,
    rng: np.random.Generator,
    n_resamples: int = 2000,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> tuple[Resampled, ...]:
    """Draw items, or clusters of items, with replacement and compute every coefficient.

    All coefficients see the same resamples, so what holds between two of them can be read off.
    Items (or clusters) are a random sample and independent; raters are fixed.

    Parameters
    ----------
    coefficients : sequence of Coefficient
        For instance ``[KRIPPENDORFF_ALPHA, GWET_AC]``.
    patterns : CountPatterns
        From `count_patterns`; with `clusters` from `patterns_of_items`.
    rng : numpy.random.Generator
        Source of the draws.
    n_resamples : int, default 2000
        Number of resamples.
    weights : array-like of float, shape (n_classes, n_classes), optional
        Agreement weights, 1 on the diagonal; default: classes agree or do not.
    clusters : array-like of int, shape (n_clusters, n_patterns), optional
        How many items of each pattern a cluster holds, from `clusters_of`.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    tuple of Resampled
        In the order of `coefficients`.

    Raises
    ------
    ValueError
        If `n_resamples` is below 100, the clusters are not those of the patterns, or as
        `estimate`.

    Notes
    -----
    A resample is a multinomial draw of patterns and a coefficient is a function of sums over
    them, so the cost follows the patterns and not the items.

    Examples
    --------
    >>> from calibration.agreement.chance_corrected import PERCENT_AGREEMENT
    >>> from calibration.agreement.counts import count_patterns
    >>> seen = count_patterns([[0, 0]] * 60 + [[0, 1]] * 40, n_classes=2)
    >>> found, = resample([PERCENT_AGREEMENT], seen, rng=np.random.default_rng(1))
    >>> round(float(np.mean(found.draws)), 2), round(found.percentile().se, 2)
    (0.6, 0.05)
    """
    check_confidence_level(confidence_level)
    if n_resamples < 100:
        raise ValueError(f"n_resamples must be at least 100, got {n_resamples!r}")
    units = None if clusters is None else np.asarray(clusters, dtype=np.float64)
    if units is not None and (units.ndim != 2 or units.shape[1] != len(patterns.counts)):
        raise ValueError(
            f"clusters must have {len(patterns.counts)} columns, got shape {units.shape!r}"
        )
    distances = distances_of(weights, patterns.counts.shape[1])
    each = [unit_features(c, patterns, weights)[0] for c in coefficients]
    if units is not None:
        each = [units @ features for features in each]
        seen = [
            estimate_by_cluster(
                c, patterns, units, weights=weights, confidence_level=confidence_level
            )
            for c in coefficients
        ]
        multiplicity = np.ones(len(units), dtype=np.int64)
    else:
        seen = [
            estimate(c, patterns, weights=weights, confidence_level=confidence_level)
            for c in coefficients
        ]
        multiplicity = patterns.multiplicity
    return _resampled(
        list(zip(coefficients, each, seen, strict=True)),
        multiplicity,
        distances,
        unit="items" if units is None else "clusters",
        n_resamples=n_resamples,
        rng=rng,
    )


def resample_conger(
    codes: ArrayLike,
    *,
    n_classes: int,
    rng: np.random.Generator,
    n_resamples: int = 2000,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Resampled:
    """Draw items with replacement and compute Conger's kappa; with two raters it is Cohen's.

    Parameters
    ----------
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    n_classes, rng, n_resamples, weights, confidence_level
        As in `resample`.

    Raises
    ------
    ValueError
        As `resample` and `conger_kappa`.

    Examples
    --------
    >>> found = resample_conger(
    ...     [[0, 0], [1, 0], [1, 1]] * 20, n_classes=2, rng=np.random.default_rng(1)
    ... )
    >>> found.seen.value
    0.4
    """
    if n_resamples < 100:
        raise ValueError(f"n_resamples must be at least 100, got {n_resamples!r}")
    seen = conger_kappa(
        codes, n_classes=n_classes, weights=weights, confidence_level=confidence_level
    )
    if seen.se is None:
        nothing = np.full(n_resamples, np.nan)
        alone = np.ones(1, dtype=np.int64)
        return Resampled(
            seen=seen, draws=nothing, left_out=nothing[:1], multiplicity=alone, unit="items"
        )
    rows = distinct_rows(codes, n_classes=n_classes)
    distances = distances_of(weights, n_classes)
    parts = [(CONGER_KAPPA, conger_features(rows, distances), seen)]
    (found,) = _resampled(
        parts, rows.items, distances, unit="items", n_resamples=n_resamples, rng=rng
    )
    return found


def _resampled(
    parts: Sequence[tuple[Coefficient, FloatArray, Estimate]],
    multiplicity: NDArray[np.int64],
    distances: FloatArray,
    *,
    unit: str,
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[Resampled, ...]:
    """Draw units once for all coefficients; a part is a coefficient, its features, its value."""
    edges = np.cumsum([0, *(features.shape[1] for _, features, _ in parts)])
    features = np.hstack([np.zeros((len(multiplicity), 0)), *(f for _, f, _ in parts)])
    chunks = [chunk @ features for chunk in _draws(multiplicity, n_resamples, rng)]
    totals = np.vstack([np.zeros((0, features.shape[1])), *chunks])
    return tuple(
        Resampled(
            seen=seen,
            draws=coefficient.value(totals[:, start:end], distances),
            left_out=coefficient.value(multiplicity @ of_unit - of_unit, distances),
            multiplicity=multiplicity,
            unit=unit,
        )
        for (coefficient, of_unit, seen), start, end in zip(parts, edges, edges[1:], strict=False)
    )


def _draws(
    multiplicity: NDArray[np.int64], n_resamples: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield how often each unit is in each resample, some resamples at a time."""
    n = int(multiplicity.sum())
    if n == 0:
        return
    step = max(1, CELLS // multiplicity.size)
    for start in range(0, n_resamples, step):
        size = min(step, n_resamples - start)
        yield rng.multinomial(n, multiplicity / n, size=size).astype(np.float64)
