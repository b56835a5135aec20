"""Two calibrations of one production: whether the judge's error rates carry over to it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibration.correction.intervals import two_sided_t, two_sided_z
from calibration.correction.inversion import Inversion
from calibration.correction.post_stratified import PostStratified
from calibration.correction.production import ProductionSums
from calibration.correction.results import Calibration, NetGross
from calibration.estimates import Estimate, not_estimable

METHOD = "inversion less post-stratification"
PRODUCTION_LABELS_LEAD = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportGap:
    """The reference estimate less the one from production labels.

    Parameters
    ----------
    gap : NetGross
        The difference with its interval; zero inside it does not show that the rates carry over,
        the interval says how large a failure the labels would have missed.
    headline : {"production", "reference"}
        Which of the two leads: production labels from 100 on. The other is shown beside it and
        never decides silently.
    """

    gap: NetGross
    headline: Literal["production", "reference"]


def transport_gap(by_reference: Calibration, by_production: Calibration) -> TransportGap:
    """Estimate how far the reference set is off for this production.

    Both calibrations must be of the same production with the same judge; the two sets of labelled
    traces must share no trace. Under the assumption of the inversion, that the judge's error rates
    given the class are the same in the reference set and in production, the gap is zero.

    Parameters
    ----------
    by_reference : Calibration
        Made with design ``"reference"``. The labelled production traces are part of its production.
    by_production : Calibration
        Made with design ``"production"``.

    Returns
    -------
    TransportGap
        Net and gross gap and which design leads. A gap is ``not_estimable`` where one of the two
        estimates has no standard error; an inversion that is refused still has a gap, wide as it
        is.

    Raises
    ------
    ValueError
        If the designs are not as named, or the productions differ.

    Notes
    -----
    Reference labels, production labels and verdicts of production are independent samples, and the
    verdicts enter both estimates: Var = Var_reference + Var_labels + Var(a_p[verdict] -
    m[verdict]) / N, with a_p the inverted score and m the mean labelled score of the verdict. The
    half-width adds the squared half-widths, normal for the first and last and t for the labels.

    References
    ----------
    Fiedler (2026), "Bias and Uncertainty in LLM-as-a-Judge Estimation".
    https://doi.org/10.48550/arXiv.2605.06939

    Examples
    --------
    >>> from calibration.correction.calibrate import calibrate_tables
    >>> table, credit = [[80, 20], [10, 90]], [1.0, 0.0]
    >>> by_reference = calibrate_tables(
    ...     table, [450, 550], credit=credit, design="reference", pseudo_count=0,
    ...     estimators=["inversion"],
    ... )
    >>> by_production = calibrate_tables(
    ...     [[40, 8], [5, 47]], [450, 550], credit=credit, design="production",
    ...     estimators=["post_stratified"],
    ... )
    >>> found = transport_gap(by_reference, by_production)
    >>> found.gap.net.value, found.headline
    (0.02, 'production')
    """
    if (by_reference.design, by_production.design) != ("reference", "production"):
        raise ValueError(
            "by_reference and by_production must have these designs, got "
            f"{by_reference.design!r} and {by_production.design!r}"
        )
    if not np.array_equal(by_reference.production.counts, by_production.production.counts):
        raise ValueError(
            "both calibrations must be of one production, got verdict counts "
            f"{by_reference.production.counts.tolist()!r} and "
            f"{by_production.production.counts.tolist()!r}"
        )
    level = by_production.confidence_level
    return TransportGap(
        gap=NetGross(
            net=_gap(
                by_reference.inversion,
                by_production.post_stratification,
                by_production.production,
                level,
            ),
            gross=_gap(
                by_reference.inversion_gross,
                by_production.post_stratification_gross,
                by_production.production_gross,
                level,
            ),
        ),
        headline="production" if by_production.n_labels >= PRODUCTION_LABELS_LEAD else "reference",
    )


def _gap(
    inverted: Inversion,
    stratified: PostStratified,
    production: ProductionSums,
    confidence_level: float,
) -> Estimate:
    direct = stratified.estimate
    if inverted.unclipped is None or direct.value is None:
        why = "one of the two estimates has no value: label production and a reference set"
        return not_estimable(why, method=METHOD, confidence_level=confidence_level)
    value = inverted.unclipped - direct.value
    if stratified.variance_labels is None or stratified.df is None:
        why = "the production labels do not vary within the verdicts: label more"
        return not_estimable(why, method=METHOD, confidence_level=confidence_level)
    weights = np.array(inverted.level_weights).T
    means = np.array([0.0 if mean is None else mean for mean in stratified.stratum_means])
    squares = (
        np.einsum("sk,uk,suk->", weights, weights, production.products)
        - 2 * float(((weights * production.sums).sum(axis=0) * means).sum())
        + float(production.counts @ means**2)
    )
    n = float(production.counts.sum())
    shared = max(0.0, float(squares) / n - value**2) / n
    z, t = two_sided_z(confidence_level), two_sided_t(confidence_level, stratified.df)
    from_labels = stratified.variance_labels
    normal = inverted.variance_reference + shared
    reach = float(np.sqrt(z**2 * normal + t**2 * from_labels))
    return Estimate(
        value=value,
        interval=(max(-1.0, value - reach), min(1.0, value + reach)),
        n=direct.n,
        method=METHOD,
        confidence_level=confidence_level,
        se=float(np.sqrt(normal + from_labels)),
    )
