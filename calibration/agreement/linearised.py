"""Errors from linearisation, and Gwet's intervals with them: what irrCAC and AgreeStat give."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from calibration.agreement.by_rater import (
    CONGER_KAPPA,
    conger_features,
    conger_kappa,
    distinct_rows,
)
from calibration.agreement.chance_corrected import (
    KRIPPENDORFF_ALPHA,
    PERCENT_AGREEMENT,
    Coefficient,
    distances_of,
    estimate,
    table_of,
)
from calibration.agreement.counts import CountPatterns
from calibration.agreement.intervals import FloatArray
from calibration.estimates import Estimate

GWET = "Gwet's t interval"


def linearised_se(
    coefficient: Coefficient, patterns: CountPatterns, *, weights: ArrayLike | None = None
) -> float:
    """Return the standard error from the influence of each item, the infinitesimal jackknife.

    Notes
    -----
    The derivative of the coefficient in each sum is taken along the imaginary axis, which is
    exact to rounding (the coefficients are rational functions of the sums).

    References
    ----------
    Squire and Trapp (1998), SIAM Review 40. https://doi.org/10.1137/S003614459631241X

    Examples
    --------
    The mean of 1, 1, 0 over three items: influences 1/3, 1/3, -2/3, so sqrt((6/9) / (3 * 2)):

    >>> from calibration.agreement.chance_corrected import PERCENT_AGREEMENT
    >>> from calibration.agreement.counts import count_patterns
    >>> linearised_se(PERCENT_AGREEMENT, count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2))
    0.33333
    """
    counts, items, distances = table_of(coefficient, patterns, weights)
    influence = _influence(coefficient, coefficient.features(counts, distances), items, distances)
    return _se(influence, items)


def _influence(
    coefficient: Coefficient,
    features: FloatArray,
    items: NDArray[np.int64],
    distances: FloatArray,
) -> FloatArray:
    """Return what an item of each pattern moves the coefficient by, times n; the mean is 0."""
    totals = items @ features
    steps = totals + 1e-30j * np.eye(totals.size)
    observed, expected = coefficient.disagreement(steps, distances)
    gradient = np.imag(1 - observed / expected) / 1e-30
    n = int(items.sum())
    influence = n * (features @ gradient)
    return np.asarray(influence - items @ influence / n)


def _se(influence: FloatArray, items: NDArray[np.int64]) -> float:
    n = int(items.sum())
    return float(np.sqrt(items @ influence**2 / (n * (n - 1))))


def gwet_interval(
    coefficient: Coefficient,
    patterns: CountPatterns,
    *,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate a coefficient with Gwet's interval: value -+ t SE, cut at -1 and 1.

    The error is that of irrCAC and AgreeStat, for comparison with them. It treats the number of
    items rated twice as fixed, which overstates it where many items are rated once.

    Parameters
    ----------
    coefficient, patterns, weights, confidence_level
        As in `estimate`.

    Returns
    -------
    Estimate
        With t of n - 1 degrees of freedom, n = items with a rating; where the default interval
        is exact or missing, that one.

    References
    ----------
    Gwet (2008), Brit. J. Math. Stat. Psychol. 61. https://doi.org/10.1348/000711006X126600

    Examples
    --------
    Every item is rated twice, so this is the linearised error:

    >>> from calibration.agreement.chance_corrected import PERCENT_AGREEMENT
    >>> from calibration.agreement.counts import count_patterns
    >>> seen = count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2)
    >>> gwet_interval(PERCENT_AGREEMENT, seen).se
    0.33333
    """
    seen = estimate(coefficient, patterns, weights=weights, confidence_level=confidence_level)
    if seen.value is None or seen.se is None:
        return seen
    as_gwet = _AS_GWET.get(coefficient.name, coefficient)
    counts, items, distances = table_of(as_gwet, patterns, weights)
    return _with_gwets(
        seen, as_gwet, as_gwet.features(counts, distances), items, distances,
        twice=counts.sum(axis=1) >= 2, confidence_level=confidence_level,
    )  # fmt: skip


def gwet_conger(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate Conger's kappa with Gwet's interval.

    Parameters
    ----------
    codes, n_classes, weights, confidence_level
        As in `conger_kappa`.

    Returns
    -------
    Estimate
        As `gwet_interval`.

    Examples
    --------
    >>> gwet_conger([[0, 0], [1, 0], [1, 1], [0, 0]], n_classes=2).value
    0.5
    """
    seen = conger_kappa(
        codes, n_classes=n_classes, weights=weights, confidence_level=confidence_level
    )
    if seen.value is None or seen.se is None:
        return seen
    rows, distances = distinct_rows(codes, n_classes=n_classes), distances_of(weights, n_classes)
    return _with_gwets(
        seen, CONGER_KAPPA, conger_features(rows, distances), rows.items, distances,
        twice=rows.given.sum(axis=(1, 2)) >= 2, confidence_level=confidence_level,
    )  # fmt: skip


def _with_gwets(
    seen: Estimate,
    coefficient: Coefficient,
    features: FloatArray,
    items: NDArray[np.int64],
    distances: FloatArray,
    *,
    twice: NDArray[np.bool_],
    confidence_level: float,
) -> Estimate:
    value, n = seen.value or 0.0, int(items.sum())
    # kappa = (p_a - p_e) / (1 - p_e) moves with the items rated twice as if they were given.
    fixed = value * (twice / (items[twice].sum() / n) - 1)
    se = _se(_influence(coefficient, features, items, distances) + fixed, items)
    reach = float(special.stdtrit(n - 1, (1 + confidence_level) / 2)) * se
    low = max(coefficient.lowest, value - reach)
    return replace(seen, interval=(low, min(1.0, value + reach)), se=se, method=GWET)


def _alpha_of_many(totals: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Leave out what corrects the expected disagreement for few ratings, as irrCAC's error does."""
    shares = totals[..., 2:] / totals[..., 1:2]
    return totals[..., 0] / totals[..., 1], ((shares @ distances) * shares).sum(axis=-1)


# What irrCAC linearises where it is not the coefficient itself.
_AS_GWET = {
    KRIPPENDORFF_ALPHA.name: replace(KRIPPENDORFF_ALPHA, disagreement=_alpha_of_many),
    PERCENT_AGREEMENT.name: replace(PERCENT_AGREEMENT, pairable_only=False),
}
