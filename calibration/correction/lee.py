"""Two classes: the corrected rate with the interval of Lee et al."""

import numpy as np
from numpy.typing import ArrayLike

from calibration.correction.confusion import confusion_from_table
from calibration.correction.intervals import check_confidence_level, clipped, two_sided_z
from calibration.correction.inversion import OUTSIDE
from calibration.correction.production import ProductionSums
from calibration.estimates import Estimate, not_estimable

METHOD = "Rogan-Gladen, interval of Lee et al."


def lee(
    table: ArrayLike, production: ProductionSums, *, confidence_level: float = 0.95
) -> Estimate:
    """Estimate the mean score of production when there are two classes and no costs.

    The judge's error rates given the human class must be the same in the reference set and in
    production; the class mix may differ. A verdict that is no class counts as one for the class
    with less credit.

    Parameters
    ----------
    table : array-like of float, shape (2, n_verdicts)
        Reference traces by human class and verdict.
    production : ProductionSums
        Verdicts of production, without penalties.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        The Rogan-Gladen value and the interval, both cut to [0, 1]. ``not_estimable`` with costs,
        without labels of both classes or production, for a judge no better than guessing, and when
        both classes have the same credit.

    Raises
    ------
    ValueError
        If there are not two classes or the shapes do not fit.

    Notes
    -----
    With p the share of good verdicts among n, q1 and q0 the shares of right verdicts among m1 good
    and m0 bad reference traces: p' = (n p + z^2 / 2) / (n + z^2), q' = (m q + 1) / (m + 2),
    n' = n + z^2, m' = m + 2, theta' = (p' + q0' - 1) / (q0' + q1' - 1),
    v0 = (1 - theta')^2 q0' (1 - q0') / m0' and v1 = theta'^2 q1' (1 - q1') / m1'. The interval is
    theta' + 2 z^2 (v1 / theta' - v0 / (1 - theta')) +- z sqrt(p' (1 - p') / n' + v0 + v1) /
    (q0' + q1' - 1). A score with credits a > b is b + (a - b) theta.

    References
    ----------
    Lee, Zeng, Jeong, Sohn and Lee (2026), "How to Correctly Report LLM-as-a-Judge Evaluations".
    https://doi.org/10.48550/arXiv.2511.21140

    Examples
    --------
    Sensitivity .8, specificity .9, 45 % passed: (.45 + .9 - 1) / (.8 + .9 - 1).

    >>> from calibration.correction.production import production_sums_from_counts
    >>> production = production_sums_from_counts([450, 550], credit=[1.0, 0.0])
    >>> lee([[80, 20], [10, 90]], production).value
    0.5
    """
    check_confidence_level(confidence_level)
    cells = confusion_from_table(table).table
    if cells.shape[0] != 2 or cells.shape[1] != production.counts.size:
        raise ValueError(
            f"table must have shape (2, {production.counts.size}), got {cells.shape!r}"
        )
    good = int(np.argmax(production.credit))
    high, low = float(production.credit[good]), float(production.credit[1 - good])
    n, m1, m0 = float(production.counts.sum()), cells[good].sum(), cells[1 - good].sum()
    why = ""
    if production.has_costs:
        why = "made for shares, not for scores with costs: read inversion"
    elif high == low:
        why = "both classes have the same credit"
    elif min(n, m1, m0) <= 0:
        why = "needs production verdicts and reference labels of both classes"
    else:
        p = float(production.counts[good]) / n
        q1 = float(cells[good, good] / m1)
        q0 = 1 - float(cells[1 - good, good] / m0)
        z = two_sided_z(confidence_level)
        smooth1, smooth0 = (m1 * q1 + 1) / (m1 + 2), (m0 * q0 + 1) / (m0 + 2)
        if min(q0 + q1, smooth0 + smooth1) <= 1:
            why = "the judge is no better than guessing: improve it"
    if why:
        return not_estimable(why, method=METHOD, n=production.n, confidence_level=confidence_level)
    smooth = (n * p + z**2 / 2) / (n + z**2)
    youden = smooth0 + smooth1 - 1
    theta = (smooth + smooth0 - 1) / youden
    error1 = smooth1 * (1 - smooth1) / (m1 + 2)
    error0 = smooth0 * (1 - smooth0) / (m0 + 2)
    variance = smooth * (1 - smooth) / (n + z**2) + theta**2 * error1 + (1 - theta) ** 2 * error0
    centre = theta + 2 * z**2 * (theta * error1 - (1 - theta) * error0)
    reach = z * float(np.sqrt(variance)) / youden
    if centre - reach >= 1 or centre + reach <= 0:
        return not_estimable(
            OUTSIDE, method=METHOD, n=production.n, confidence_level=confidence_level
        )
    lower, upper = clipped(centre - reach, centre + reach)
    value = min(1.0, max(0.0, (p + q0 - 1) / (q0 + q1 - 1)))
    return Estimate(
        value=low + (high - low) * value,
        interval=(low + (high - low) * lower, low + (high - low) * upper),
        n=production.n,
        method=METHOD,
        confidence_level=confidence_level,
        se=(high - low) * reach / z,
    )
