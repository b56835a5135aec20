"""Inversion with percentile intervals: reference set and production both resampled."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration.correction.bootstrap import percentile
from calibration.correction.intervals import NO_VARIANCE, FloatArray
from calibration.correction.inversion import invert
from calibration.correction.production import ProductionSums
from calibration.correction.rates import right_inverse, verdict_rates
from calibration.correction.resampled_costs import draw_sums
from calibration.estimates import OK, Estimate, not_estimable

METHOD = "confusion matrix inverted, two-source bootstrap"
# A resample whose error rates have a smaller singular value tells nothing.
SINGULAR = 1e-6
MOST_SINGULAR = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """Bootstrap of the mean score and of the class shares.

    Parameters
    ----------
    estimate : Estimate
        The plain estimate with its percentile interval.
    shares : tuple of Estimate, length n_classes
        The same for the class shares.
    singular : float
        Share of the resamples in which the error rates could not be inverted.
    """

    estimate: Estimate
    shares: tuple[Estimate, ...]
    singular: float


def bootstrap_inversion(
    table: ArrayLike,
    production: ProductionSums,
    *,
    rng: np.random.Generator,
    pseudo_count: float = 0.5,
    n_resamples: int = 2_000,
    confidence_level: float = 0.95,
) -> Bootstrap:
    """Bootstrap the inverted mean score and class shares.

    Assumes what `invert` assumes. Each class of the reference set is resampled by itself, so no
    resample loses a class, and production is resampled beside it: to keep either fixed would give
    an interval that is too short.

    Parameters
    ----------
    table : array-like of float, shape (n_classes, n_verdicts)
        Reference traces by human class and verdict.
    production : ProductionSums
        Verdicts and penalties of production.
    rng : numpy.random.Generator
        Source of the resamples; the same state gives the same result.
    pseudo_count : float, default 0.5
        As in `invert`, added in every resample.
    n_resamples : int, default 2,000
        Number of resamples.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Bootstrap
        The values of `invert` with percentile intervals; ``not_estimable`` where that is, or when
        more than 1 % of the resamples cannot be inverted.

    Raises
    ------
    ValueError
        As `invert`.

    Notes
    -----
    Cells are fractions when reviewers differ or labels are weighted; a row is then drawn with its
    rounded size. It is drawn from the smoothed rates: plain resamples of a row without an error
    never show one, and covered .89 for a judge of .95 with 200 labels. Costs are resampled by
    `draw_sums`.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
    https://doi.org/10.1201/9780429246593

    Examples
    --------
    >>> from calibration.correction.production import production_sums_from_counts
    >>> production = production_sums_from_counts([450, 550], credit=[1.0, 0.0])
    >>> bootstrap_inversion(
    ...     [[80, 20], [10, 90]], production, pseudo_count=0, rng=np.random.default_rng(0)
    ... ).estimate.value
    0.5
    """
    plain = invert(table, production, pseudo_count=pseudo_count, confidence_level=confidence_level)
    if plain.unclipped is None:
        refused = not_estimable(
            plain.estimate.status.removeprefix("not_estimable: "),
            method=METHOD,
            n=production.n,
            confidence_level=confidence_level,
        )
        return _refused(refused, production, 0.0)
    cells = np.asarray(table, dtype=np.float64)
    known = cells.sum(axis=1) > 0
    rates = _drawn_rates(cells[known], pseudo_count, n_resamples, rng)
    mix = rng.multinomial(
        production.n, production.counts / production.counts.sum(), size=n_resamples
    ) / max(1, production.n)
    usable = np.linalg.svd(rates, compute_uv=False)[:, -1] > SINGULAR
    singular = 1 - float(usable.mean())
    if singular > MOST_SINGULAR:
        why = (
            f"{singular:.1%} of the resamples cannot be inverted: label more reference traces, or "
            "improve the judge"
        )
        refused = not_estimable(
            why, method=METHOD, n=production.n, confidence_level=confidence_level
        )
        return _refused(refused, production, singular)
    inverse = right_inverse(rates[usable])
    sums = draw_sums(production, mix[usable], verdicts=np.arange(cells.shape[1]), rng=rng)
    level = production.credit[known][:, None] == production.levels
    scores = np.einsum("dsk,dks->d", sums, inverse @ level)
    prevalence = np.zeros((len(inverse), known.size))
    prevalence[:, known] = np.einsum("dk,dkj->dj", mix[usable], inverse)
    status = plain.estimate.status if plain.variance_reference < NO_VARIANCE else OK
    return Bootstrap(
        estimate=percentile(
            plain.unclipped, scores, production.n, METHOD, confidence_level, status
        ),
        shares=tuple(
            percentile(
                plain.prevalence[k],
                prevalence[:, k],
                production.n,
                METHOD,
                confidence_level,
                status if known[k] else "no interval: no reference trace of this class",
            )
            for k in range(known.size)
        ),
        singular=singular,
    )


def _drawn_rates(
    cells: FloatArray, pseudo_count: float, n_resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Return resampled error rates, shape (n_resamples, n_classes, n_verdicts)."""
    drawn = []
    for row in cells:
        size = max(1, round(float(row.sum())))
        # From the smoothed rates: an error that a few traces did not show can still come up.
        smoothed = row + pseudo_count / row.size
        again = rng.multinomial(size, smoothed / smoothed.sum(), size=n_resamples)
        drawn.append(again * (row.sum() / size))
    return verdict_rates(np.stack(drawn, axis=1), pseudo_count=pseudo_count)


def _refused(refused: Estimate, production: ProductionSums, singular: float) -> Bootstrap:
    shares = (refused,) * production.credit.size
    return Bootstrap(estimate=refused, shares=shares, singular=singular)
