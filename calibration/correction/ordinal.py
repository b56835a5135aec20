"""The judge against the humans where the classes stand in an order, as grades from 1 to 5 do."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration.correction.confusion import confusion_from_table
from calibration.correction.intervals import (
    FloatArray,
    check_confidence_level,
    two_sided_z,
    unseen_share_bound,
)
from calibration.correction.means import wilson_share
from calibration.estimates import OK, Estimate, not_estimable
from calibration.two_way import WHOLE, table_kappa

NOTHING = "no labelled traces with a grade of the judge: label some"
METHOD = "quadratic weights, Fleiss-Cohen-Everitt, normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinalAgreement:
    """How close the judge's grades come.

    Parameters
    ----------
    exact : Estimate
        Share of traces with the same grade.
    within_one : Estimate
        Share of traces whose grades differ by at most one step.
    within_one_by_chance : float or None
        What `within_one` would be if the judge graded independently of the humans, with the grades
        that both use. On a scale of five it is easily above one half: read `within_one` beside it.
    kappa : Estimate
        Cohen's kappa with quadratic weights, over the traces that the judge graded.
    bias : float or None
        Mean of the judge's grade less the human one, in steps of the scale.
    """

    exact: Estimate
    within_one: Estimate
    within_one_by_chance: float | None
    kappa: Estimate
    bias: float | None


def ordinal_agreement(table: ArrayLike, *, confidence_level: float = 0.95) -> OrdinalAgreement:
    """Compare grades that stand in an order.

    Traces are independent. Only the *position* of a grade counts, so grades are taken as evenly
    spaced for kappa and bias.

    Parameters
    ----------
    table : array-like of float, shape (n_grades, n_verdicts)
        Labelled traces by human grade (rows, in order) and the judge's grade (columns, in the same
        order); further columns are verdicts that are no grade. Those are never within one step.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    OrdinalAgreement
        Shares with Wilson intervals.

    Raises
    ------
    ValueError
        If the table has fewer columns than rows, a negative entry, or fewer than two grades.

    References
    ----------
    Cohen (1968), "Weighted kappa", Psychol. Bull. 70. https://doi.org/10.1037/h0026256

    Examples
    --------
    Of ten traces six have the same grade, three are one step off and one two steps:

    >>> found = ordinal_agreement([[2, 1, 1], [0, 2, 1], [0, 1, 2]])
    >>> found.exact.value, found.within_one.value
    (0.6, 0.9)
    """
    check_confidence_level(confidence_level)
    cells = confusion_from_table(table).table
    k = cells.shape[0]
    if k < 2:
        raise ValueError(f"table must have at least two grades, got {k!r}")
    square, total = cells[:, :k], float(cells.sum())
    graded = float(square.sum())
    apart = np.arange(k) - np.arange(k)[:, None]
    near = np.abs(apart) <= 1
    by_chance = bias = None
    if graded > 0:
        rows, columns = square.sum(axis=1) / graded, square.sum(axis=0) / graded
        by_chance = float(rows @ near @ columns)
        bias = float((square * apart).sum() / graded)
    return OrdinalAgreement(
        exact=wilson_share(
            float(np.trace(square)), total, nothing=NOTHING, confidence_level=confidence_level
        ),
        within_one=wilson_share(
            float(square[near].sum()), total, nothing=NOTHING, confidence_level=confidence_level
        ),
        within_one_by_chance=by_chance,
        kappa=_quadratic_kappa(square, 1 - (apart / (k - 1)) ** 2, confidence_level),
        bias=bias,
    )


def _quadratic_kappa(table: FloatArray, weights: FloatArray, confidence_level: float) -> Estimate:
    total = float(table.sum())
    if total <= 0:
        return not_estimable(NOTHING, method=METHOD, confidence_level=confidence_level)
    n, found = round(total), table_kappa(table, weights)
    if found.value is None or found.se is None:
        why = "undefined without variation: humans and judge give one grade; label other traces"
        return not_estimable(why, method=METHOD, n=n, confidence_level=confidence_level)
    status, method, se, interval = OK, METHOD, None, None
    if found.observed >= WHOLE:
        status, method = "no disagreement seen", "exact bound"
        share = unseen_share_bound(total, confidence_level=confidence_level)
        interval = max(-1.0, 1 - share / (1 - found.expected)), 1.0
    elif max(table.sum(axis=0).max(), table.sum(axis=1).max()) >= WHOLE * total:
        status = "no interval: humans or judge used a single grade; label other traces"
    else:
        se = found.se
        reach = two_sided_z(confidence_level) * se
        interval = max(-1.0, found.value - reach), min(1.0, found.value + reach)
    return Estimate(
        value=found.value, interval=interval, n=n, method=method,
        confidence_level=confidence_level, status=status, se=se,
    )  # fmt: skip
