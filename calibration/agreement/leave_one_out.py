"""Each rater beside the others: how often they agree, and what alpha would be without them.

A vote of the others would be a moving target, and the closer to a rater the more of them there
are of the same mind; so each pair of ratings is compared by itself.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from calibration.agreement.chance_corrected import (
    KRIPPENDORFF_ALPHA,
    ONE_CLASS_LEFT,
    Coefficient,
    estimate,
    from_features,
)
from calibration.agreement.counts import (
    MISSING,
    CountPatterns,
    IntArray,
    patterns_from_counts,
    validated_codes,
)
from calibration.agreement.differences import DIFFERENCE, jackknife_difference
from calibration.agreement.intervals import (
    METHOD,
    NO_SPREAD,
    FloatArray,
    check_confidence_level,
)
from calibration.agreement.margins import holm
from calibration.agreement.weights import checked_weights
from calibration.estimates import Estimate, not_estimable

SHARED_NOTHING = "this rater shared no item with another: give some of the same items to both"
UNCHANGED = "no interval: no item changes alpha by this rater; rate more items"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """One rater beside the others.

    Parameters
    ----------
    rater : int
        Column of the ratings.
    agreement_with_others : Estimate
        Mean over the items that the rater shared with others of the share of the others who gave
        the same class (of the agreement weight, where weights are given).
    alpha_without : Estimate
        Krippendorff's alpha of the other raters.
    change : Estimate
        `alpha_without` less alpha of all: above 0 where agreement is better without the rater.
    p_holm : float or None
        Two-sided p-value that there is no change, adjusted for all raters; None without an error.
    """

    rater: int
    agreement_with_others: Estimate
    alpha_without: Estimate
    change: Estimate
    p_holm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveOneOut:
    """Alpha of all raters, and each of them beside the others."""

    alpha: Estimate
    raters: tuple[LeftOut, ...]


def leave_one_out(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> LeaveOneOut:
    """Estimate each rater's agreement with the others, and alpha without each rater.

    Items are a random sample and independent, raters fixed, ratings missing at random. One who
    differs from the others may be wrong or right: only a key tells.

    Parameters
    ----------
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    n_classes : int
        Declared number of classes, used or not.
    weights : array-like of float, shape (n_classes, n_classes), optional
        Agreement weights, 1 on the diagonal; default: classes agree or do not.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    LeaveOneOut
        Agreement and alpha with jackknife Fisher-z intervals; the change with a jackknife t
        interval over the same items, n = items with two or more ratings. ``not_estimable`` for
        a rater who shared nothing, and without two others who share an item.

    Raises
    ------
    ValueError
        As `count_patterns`, if the weights are none, or `confidence_level` is outside (0, 1).

    References
    ----------
    Gwet (2016), "Testing the difference of correlated agreement coefficients", Educ. Psychol.
    Meas. 76. https://doi.org/10.1177/0013164415596420

    Examples
    --------
    The third differs from both others on one of four items; they never differ. With 5 and 7 of
    12 ratings of the two classes alpha of all is 1 - (2/12) / (70/132), without the third it is 1:

    >>> found = leave_one_out([[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 1]], n_classes=2)
    >>> third = found.raters[2]
    >>> third.agreement_with_others.value, third.alpha_without.value
    (0.75, 1.0)
    >>> third.change.value
    0.314286
    """
    check_confidence_level(confidence_level)
    array = validated_codes(codes, n_classes=n_classes)
    similar = np.eye(n_classes)
    if weights is not None:
        similar = checked_weights(weights, n_classes=n_classes)
    counts = (array[:, :, None] == np.arange(n_classes)).sum(axis=1)
    alpha = estimate(
        KRIPPENDORFF_ALPHA, patterns_from_counts(counts),
        weights=similar, confidence_level=confidence_level,
    )  # fmt: skip
    raters = [
        _beside_others(rater, array[:, rater], counts, similar, alpha)
        for rater in range(array.shape[1])
    ]
    adjusted = holm({of.rater: p for of in raters if (p := _p_value(of.change)) is not None})
    return LeaveOneOut(
        alpha=alpha,
        raters=tuple(replace(of, p_holm=adjusted.get(of.rater)) for of in raters),
    )


def _p_value(change: Estimate) -> float | None:
    if change.value is None or change.se is None:
        return None
    return float(2 * stats.t.sf(abs(change.value) / change.se, change.n - 1))


def _beside_others(
    rater: int, given: IntArray, counts: IntArray, similar: FloatArray, alpha: Estimate
) -> LeftOut:
    # Items alike in the counts of all and in this rater's class are one pattern.
    alike = patterns_from_counts(np.column_stack([counts, given + 1]))
    items, own, of_all = alike.multiplicity, alike.counts[:, -1] - 1, alike.counts[:, :-1]
    others = of_all - (own[:, None] == np.arange(len(similar)))
    shared = (own != MISSING) & (others.sum(axis=1) > 0)
    rest = CountPatterns(
        counts=others, multiplicity=items, n_items=alike.n_items,
        n_ratings=int(items @ others.sum(axis=1)),
    )  # fmt: skip
    level = alpha.confidence_level
    without = estimate(KRIPPENDORFF_ALPHA, rest, weights=similar, confidence_level=level)
    if shared.any():
        change = _change(alpha, without, of_all, others, items, 1 - similar)
    else:
        change = not_estimable(SHARED_NOTHING, method=DIFFERENCE, n=alpha.n, confidence_level=level)
    return LeftOut(
        rater=rater,
        agreement_with_others=_with_others(
            own[shared], others[shared], items[shared], similar, level
        ),
        alpha_without=without,
        change=change,
        p_holm=None,
    )


_WITH_OTHERS = Coefficient(
    "agreement_with_others",
    0.0,
    lambda counts, _distances: counts,  # made from the rater's own ratings instead
    lambda totals, _distances: (totals[..., 1] / totals[..., 0], np.ones_like(totals[..., 0])),
    pairable_only=True,
)


def _with_others(
    own: IntArray,
    others: IntArray,
    items: IntArray,
    similar: FloatArray,
    confidence_level: float,
) -> Estimate:
    if not len(own):
        return not_estimable(SHARED_NOTHING, method=METHOD, confidence_level=confidence_level)
    differing = 1 - (similar[own] * others).sum(axis=1) / others.sum(axis=1)
    return from_features(
        _WITH_OTHERS,
        np.column_stack([np.ones_like(differing), differing]),
        items,
        1 - similar,
        n=int(items.sum()),
        alike=bool(np.ptp(differing) < NO_SPREAD),
        confidence_level=confidence_level,
    )


def _change(
    alpha: Estimate,
    without: Estimate,
    of_all: IntArray,
    others: IntArray,
    items: IntArray,
    distances: FloatArray,
) -> Estimate:
    n, level = alpha.n, alpha.confidence_level
    if alpha.value is None or without.value is None:
        why = (alpha if alpha.value is None else without).status
        why = "without this rater: " * (alpha.value is not None) + why
        why = why.replace("not_estimable: ", "")
        return not_estimable(why, method=DIFFERENCE, n=n, confidence_level=level)
    value = without.value - alpha.value
    if without.n == 1:
        return Estimate(
            value=value, interval=None, n=n, method=DIFFERENCE, confidence_level=level,
            status="no interval: without this rater one item with two or more ratings is left",
        )  # fmt: skip
    twice = of_all.sum(axis=1) >= 2
    of_all, others, items = of_all[twice], others[twice], items[twice]
    return jackknife_difference(
        value,
        _left_out(others, items, distances) - _left_out(of_all, items, distances),
        items,
        n=n,
        confidence_level=level,
        one_class=ONE_CLASS_LEFT,
        unchanged=UNCHANGED,
    )


def _left_out(counts: IntArray, items: IntArray, distances: FloatArray) -> FloatArray:
    """Return alpha without an item of each pattern; items rated once or never leave it be."""
    keep = counts.sum(axis=1) >= 2
    part = KRIPPENDORFF_ALPHA.features(counts[keep].astype(np.float64), distances)
    features = np.zeros((len(counts), part.shape[1]))
    features[keep] = part
    return KRIPPENDORFF_ALPHA.value(items @ features - features, distances)
