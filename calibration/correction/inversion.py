"""ASR and class shares from a reference set, by inverting the judge's confusion matrix."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from calibration.correction.class_shares import with_enough_labels
from calibration.correction.confusion import confusion_from_table
from calibration.correction.intervals import (
    NO_VARIANCE,
    FloatArray,
    check_confidence_level,
    clipped,
    two_sided_z,
)
from calibration.correction.production import ProductionSums
from calibration.correction.rates import right_inverse, verdict_rates
from calibration.estimates import OK, Estimate, not_estimable

METHOD = "confusion matrix inverted, delta"
NO_ERROR_SEEN = "no interval: no judge error seen in the reference set; use a pseudo-count"
OUTSIDE = (
    "the interval lies outside [0, 1]: the judge's error rates do not carry over; label production"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inversion:
    """Inverted estimate and what it was made of.

    Parameters
    ----------
    estimate : Estimate
        The corrected mean score.
    unclipped : float or None
        The value before it was cut to [0, 1].
    prevalence, prevalence_clipped : tuple of float, length n_classes
        Class shares of production as inverted, and with negative ones set to zero and the rest
        rescaled to one.
    shares : tuple of Estimate, length n_classes
        The class shares with their intervals, cut to [0, 1].
    rates : tuple of tuple of float, shape (n_classes, n_verdicts)
        P(verdict | human class), with the pseudo-counts.
    verdict_weights : tuple of float, length n_verdicts
        What a trace with each verdict and no penalty contributes.
    level_weights : tuple of tuple of float, shape (n_verdicts, n_levels)
        What it contributes for each unit of max(0, level - penalty).
    sigma_min : float
        Smallest singular value of `rates`; near zero the judge cannot tell some classes apart.
    variance_reference, variance_production : float
        The two parts of the squared standard error.
    """

    estimate: Estimate
    unclipped: float | None
    prevalence: tuple[float, ...]
    prevalence_clipped: tuple[float, ...]
    shares: tuple[Estimate, ...]
    rates: tuple[tuple[float, ...], ...]
    verdict_weights: tuple[float, ...]
    level_weights: tuple[tuple[float, ...], ...]
    sigma_min: float
    variance_reference: float
    variance_production: float


def invert(
    table: ArrayLike,
    production: ProductionSums,
    *,
    pseudo_count: float = 0.5,
    minimum_labels: int = 10,
    confidence_level: float = 0.95,
) -> Inversion:
    """Estimate the mean score and the class shares of production from verdicts alone.

    The multi-class Rogan-Gladen estimator. Assumed: the judge's error rates given the human class
    are the same in the reference set and in production, and do not depend on cost given that
    class. The class mix may differ. If the errors shift, the interval does not cover.

    Parameters
    ----------
    table : array-like of float, shape (n_classes, n_verdicts)
        Reference traces by human class and verdict; may have more verdicts than classes.
    production : ProductionSums
        Verdicts and penalties of production.
    pseudo_count : float, default 0.5
        Added to each row in total, `pseudo_count` / n_verdicts a cell; 0 is plain inversion.
    minimum_labels : int, default 10
        A class with fewer reference traces gets no interval for its own share.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Inversion
        Estimate with a normal interval from the closed-form delta variance (both sources), class
        shares, and the diagnostics that `inversion_refusals` looks at. ``not_estimable`` without
        production or with a singular matrix.

    Raises
    ------
    ValueError
        If the shapes do not fit or a count is negative.

    Notes
    -----
    A class without any reference trace has no error rates; it is left out, which assumes that
    production has none, and `inversion_refusals` refuses if the class counts. With t_s[k] the sum
    of max(0, s - penalty) over production traces with verdict k, C the rates and e_s the classes
    of credit s: theta = sum_s t_s . C^-1 e_s / N. With M = sum_s (C^-T t_s / N)(C^-1 e_s)^T the
    reference part of the variance is sum_j Var_{C_j}(M_j.) / n_j. With more verdicts than classes
    C^-1 is `right_inverse`: any right inverse is unbiased and has this variance to first order.

    References
    ----------
    Rogan and Gladen (1978), Am. J. Epidemiol. 107.
    https://doi.org/10.1093/oxfordjournals.aje.a112510

    Examples
    --------
    Sensitivity .8, specificity .9, 45 % passed: (.45 + .9 - 1) / (.8 + .9 - 1).

    >>> from calibration.correction.production import production_sums_from_counts
    >>> production = production_sums_from_counts([450, 550], credit=[1.0, 0.0])
    >>> invert([[80, 20], [10, 90]], production, pseudo_count=0).estimate.value
    0.5
    """
    check_confidence_level(confidence_level)
    cells = confusion_from_table(table).table
    n_classes, n_verdicts = cells.shape
    if (n_classes, n_verdicts) != (production.credit.size, production.counts.size):
        raise ValueError(
            f"table must have shape {(production.credit.size, production.counts.size)!r}, "
            f"got {cells.shape!r}"
        )
    known = cells.sum(axis=1) > 0
    rates = np.zeros_like(cells)
    rates[known] = verdict_rates(cells[known], pseudo_count=pseudo_count)
    singular = np.linalg.svd(rates[known], compute_uv=False)
    sigma_min = float(singular[-1]) if singular.size else 0.0
    if production.n == 0 or sigma_min < 1e-9:
        return _refused(production.n, rates, sigma_min, confidence_level)
    # shape (n_verdicts, n_classes), a column of zeros for a class that is left out
    inverse = np.zeros((n_verdicts, n_classes))
    inverse[:, known] = right_inverse(rates[known])
    sizes = np.where(known, cells.sum(axis=1) + pseudo_count, 1.0)
    share = production.counts / production.n
    prevalence = inverse.T @ share
    level_weights = inverse @ (production.credit[:, None] == production.levels)
    value, reference, sampling = _score(rates, inverse, level_weights, sizes, production)
    z = two_sided_z(confidence_level)
    estimate = _estimate(value, reference + sampling, production.n, z, confidence_level)
    if reference < NO_VARIANCE:
        estimate = replace(estimate, interval=None, se=None, status=NO_ERROR_SEEN)
    row_totals = cells.sum(axis=1)
    variances = _share_variances(rates, inverse, sizes, production)
    shares = tuple(
        _share(
            float(prevalence[k]),
            float(variances[k]),
            float(row_totals[k]),
            estimate,
            z,
            minimum_labels,
        )
        for k in range(n_classes)
    )
    kept = np.maximum(0.0, prevalence)
    return Inversion(
        estimate=estimate,
        unclipped=value,
        prevalence=tuple(prevalence.tolist()),
        prevalence_clipped=tuple((kept / kept.sum()).tolist()),
        shares=shares,
        rates=tuple(tuple(row) for row in rates.tolist()),
        verdict_weights=tuple((level_weights @ production.levels).tolist()),
        level_weights=tuple(tuple(row) for row in level_weights.tolist()),
        sigma_min=sigma_min,
        variance_reference=reference,
        variance_production=sampling,
    )


def _score(
    rates: FloatArray,
    inverse: FloatArray,
    level_weights: FloatArray,
    sizes: FloatArray,
    production: ProductionSums,
) -> tuple[float, float, float]:
    """Return the corrected mean score and the two parts of its variance."""
    n = production.n
    value = float((production.sums * level_weights.T).sum() / n)
    mixed = inverse.T @ (production.sums.T / n) @ level_weights.T
    row_variance = (rates * mixed**2).sum(axis=1) - (rates * mixed).sum(axis=1) ** 2
    reference = float((row_variance / sizes).sum())
    squares = np.einsum("suk,ks,ku->", production.products, level_weights, level_weights)
    return value, reference, max(0.0, float(squares / n - value**2)) / n


def _estimate(value: float, variance: float, n: int, z: float, confidence_level: float) -> Estimate:
    se = float(np.sqrt(max(0.0, variance)))  # rounding can leave -1e-18 where it is zero
    lower, upper = value - z * se, value + z * se
    if lower >= 1 or upper <= 0:
        return not_estimable(OUTSIDE, method=METHOD, n=n, confidence_level=confidence_level)
    return Estimate(
        value=min(1.0, max(0.0, value)),
        interval=clipped(lower, upper),
        n=n,
        method=METHOD,
        confidence_level=confidence_level,
        status=OK,
        se=se,
    )


def _share_variances(
    rates: FloatArray, inverse: FloatArray, sizes: FloatArray, production: ProductionSums
) -> FloatArray:
    """Return the variance of each class share: the score variance with credit 1 for that class."""
    share = production.counts / production.n
    prevalence = inverse.T @ share
    row_variance = rates @ inverse**2 - (rates @ inverse) ** 2
    of_production = np.maximum(0.0, share @ inverse**2 - prevalence**2) / production.n
    variance: FloatArray = (prevalence**2 / sizes) @ row_variance + of_production
    return variance


def _share(
    value: float, variance: float, labels: float, score: Estimate, z: float, minimum_labels: int
) -> Estimate:
    level = score.confidence_level
    if labels <= 0:
        why = "no reference trace of this class: label some"
        return not_estimable(why, method=METHOD, n=score.n, confidence_level=level)
    return with_enough_labels(_estimate(value, variance, score.n, z, level), labels, minimum_labels)


def _refused(n: int, rates: FloatArray, sigma_min: float, confidence_level: float) -> Inversion:
    why = (
        "no production verdicts: run the judge on production"
        if n == 0
        else "the judge cannot tell some classes apart: improve it or merge the classes"
    )
    refused = not_estimable(why, method=METHOD, n=n, confidence_level=confidence_level)
    return Inversion(
        estimate=refused,
        unclipped=None,
        prevalence=(),
        prevalence_clipped=(),
        shares=(refused,) * len(rates),
        rates=tuple(tuple(row) for row in rates.tolist()),
        verdict_weights=(),
        level_weights=(),
        sigma_min=sigma_min,
        variance_reference=0.0,
        variance_production=0.0,
    )
