"""Why alpha and AC1 part: how unevenly the classes are used, as a whole and by every two raters."""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.agreement.chance_corrected import (
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    ONE_CLASS_LEFT,
    estimate,
)
from calibration.agreement.counts import (
    MISSING,
    CountPatterns,
    count_patterns,
    validated_codes,
)
from calibration.agreement.differences import DIFFERENCE, jackknife_difference
from calibration.agreement.intervals import (
    NO_DISAGREEMENT,
    FloatArray,
    check_confidence_level,
)
from calibration.agreement.specific import specific_agreement
from calibration.estimates import OK, Estimate, not_estimable

PARADOX_FROM = 0.15
BY_PREVALENCE = "low alpha is driven by prevalence; the rare classes decide"
BY_UNUSED = "high AC1 is driven by declared classes that nobody used; alpha decides"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPrevalence:
    """How differently two raters use the classes on their shared items.

    Parameters
    ----------
    first, second : int
        Columns of the ratings, ``first < second``.
    n_shared : int
        Items that both rated.
    bias_index : float or None
        Half the sum of the absolute differences of their class shares: the share of items that
        one of them would have to move. With two classes Byrt's |b - c| / n. None without items.
    kappa_max : float or None
        The highest kappa that their class shares allow; None where both use one class, the same.
    """

    first: int
    second: int
    n_shared: int
    bias_index: float | None
    kappa_max: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prevalence:
    """Whether alpha is low for the classes being used unevenly, and which classes then decide.

    Parameters
    ----------
    status : str
        ``"ok"``; `BY_PREVALENCE` or `BY_UNUSED` when alpha lies more than .15 below AC1;
        ``"not_estimable: ..."`` when one of them is.
    alpha, ac1 : Estimate
        Krippendorff's alpha and Gwet's AC1.
    gap : Estimate
        Alpha less AC1, with an interval for the difference on the same items.
    class_shares : tuple of float
        Share of all ratings that each class received; zeros when nothing was rated.
    specific : tuple of Estimate
        Specific agreement of each class.
    prevalence_index : float or None
        0 when the classes are used equally often, 1 when one has all: (largest share - 1/q) /
        (1 - 1/q). With two classes Byrt's |a - d| / n. None without ratings.
    rare_classes, unused_classes : tuple of int
        Classes used, but less often than the mean of those used; and never.
    pairs : tuple of PairPrevalence
        In the order (0, 1), (0, 2), ...
    """

    status: str
    alpha: Estimate
    ac1: Estimate
    gap: Estimate
    class_shares: tuple[float, ...]
    specific: tuple[Estimate, ...]
    prevalence_index: float | None
    rare_classes: tuple[int, ...]
    unused_classes: tuple[int, ...]
    pairs: tuple[PairPrevalence, ...]


def prevalence(codes: ArrayLike, *, n_classes: int, confidence_level: float = 0.95) -> Prevalence:
    """Describe what the use of the classes does to alpha and AC1.

    With the same share of disagreeing pairs D, alpha is 1 - D / (1 - sum of p_k^2) and AC1 is
    1 - D (q - 1) / (q - 2 + sum of p_k^2), in large samples: they part only by D and by how
    unequal the shares p_k are, and alpha is never the higher one. A gap therefore *is*
    prevalence, or classes that were declared and never used; which of the two, AC1 over the used
    classes alone tells.

    Parameters
    ----------
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    n_classes : int
        Declared number of classes, used or not.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Prevalence
        Indices describe the ratings at hand and have no interval.

    Raises
    ------
    ValueError
        As `count_patterns`, or if `confidence_level` is outside (0, 1).

    References
    ----------
    Feinstein and Cicchetti (1990), J. Clin. Epidemiol. 43.
    https://doi.org/10.1016/0895-4356(90)90158-L
    Byrt, Bishop and Carlin (1993), J. Clin. Epidemiol. 46.
    https://doi.org/10.1016/0895-4356(93)90018-V

    Examples
    --------
    The second paradox table, [[80, 10], [5, 5]]: index (80 - 5) / 100, bias (10 - 5) / 100; the
    margins .90 and .85 allow agreement .95 where .78 is chance, so kappa to (.95 - .78) / .22:

    >>> codes = [[0, 0]] * 80 + [[0, 1]] * 10 + [[1, 0]] * 5 + [[1, 1]] * 5
    >>> found = prevalence(codes, n_classes=2)
    >>> found.prevalence_index, found.pairs[0].bias_index, found.pairs[0].kappa_max
    (0.75, 0.05, 0.772727)
    >>> found.status, found.rare_classes
    ('low alpha is driven by prevalence; the rare classes decide', (1,))
    """
    check_confidence_level(confidence_level)
    array = validated_codes(codes, n_classes=n_classes)
    patterns = count_patterns(array, n_classes=n_classes)
    alpha = estimate(KRIPPENDORFF_ALPHA, patterns, confidence_level=confidence_level)
    ac1 = estimate(GWET_AC, patterns, confidence_level=confidence_level)
    totals = patterns.multiplicity @ patterns.counts
    used = totals > 0
    shares = totals / max(1, totals.sum())
    rare = used & (shares < shares.sum() / max(1, used.sum()) * (1 - 1e-12))
    gap = _gap(patterns, alpha, ac1)
    return Prevalence(
        status=_status(gap, patterns),
        alpha=alpha,
        ac1=ac1,
        gap=gap,
        class_shares=tuple(shares.tolist()),
        specific=specific_agreement(patterns, confidence_level=confidence_level),
        prevalence_index=_prevalence_index(shares) if used.any() else None,
        rare_classes=tuple(np.flatnonzero(rare).tolist()),
        unused_classes=tuple(np.flatnonzero(~used).tolist()),
        pairs=_pairs(array, n_classes),
    )


def _prevalence_index(shares: FloatArray) -> float:
    even = 1 / len(shares)
    return float((shares.max() - even) / (1 - even))


def _status(gap: Estimate, patterns: CountPatterns) -> str:
    if gap.value is None:
        return gap.status
    if gap.value >= -PARADOX_FROM:
        return OK
    used = (patterns.multiplicity @ patterns.counts) > 0
    (alpha, ac1), _, _ = _both(replace(patterns, counts=patterns.counts[:, used]))
    return BY_PREVALENCE if ac1 - alpha > PARADOX_FROM else BY_UNUSED


def _gap(patterns: CountPatterns, alpha: Estimate, ac1: Estimate) -> Estimate:
    n, level = alpha.n, alpha.confidence_level
    for part in (alpha, ac1):
        if part.value is None:
            why = part.status.removeprefix("not_estimable: ")
            return not_estimable(why, method=DIFFERENCE, n=n, confidence_level=level)
    values, left_out, items = _both(patterns)
    value = float(values[0] - values[1])
    status = None
    if alpha.status == NO_DISAGREEMENT:
        status = NO_DISAGREEMENT
    elif alpha.interval is None or ac1.interval is None:
        status = (alpha if alpha.interval is None else ac1).status
    if status is not None:
        return Estimate(
            value=value, interval=None, n=n, method=DIFFERENCE, confidence_level=level,
            status=status,
        )  # fmt: skip
    return jackknife_difference(
        value,
        left_out[:, 0] - left_out[:, 1],
        items,
        n=n,
        confidence_level=level,
        one_class=ONE_CLASS_LEFT,
        unchanged="no interval: no variation between items seen; rate more items",
    )


def _both(patterns: CountPatterns) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
    """Return alpha and AC1, the two without an item of each pattern, and the items of each."""
    distances = 1 - np.eye(patterns.counts.shape[1])
    ratings = patterns.counts.sum(axis=1)
    values, left_out = [], []
    for coefficient in (KRIPPENDORFF_ALPHA, GWET_AC):
        keep = ratings >= (2 if coefficient.pairable_only else 1)
        part = coefficient.features(patterns.counts[keep].astype(np.float64), distances)
        features = np.zeros((len(ratings), part.shape[1]))
        features[keep] = part
        totals = patterns.multiplicity @ features
        values.append(coefficient.value(totals, distances))
        left_out.append(coefficient.value(totals - features, distances))
    rated = ratings > 0
    return np.array(values), np.column_stack(left_out)[rated], patterns.multiplicity[rated]


def _pairs(array: NDArray[np.int64], n_classes: int) -> tuple[PairPrevalence, ...]:
    return tuple(
        _pair(first, second, array[:, first], array[:, second], n_classes)
        for first, second in combinations(range(array.shape[1]), 2)
    )


def _pair(
    first: int,
    second: int,
    of_first: NDArray[np.int64],
    of_second: NDArray[np.int64],
    n_classes: int,
) -> PairPrevalence:
    shared = (of_first != MISSING) & (of_second != MISSING)
    n = int(shared.sum())
    if n == 0:
        return PairPrevalence(
            first=first, second=second, n_shared=0, bias_index=None, kappa_max=None
        )
    one = np.bincount(of_first[shared], minlength=n_classes) / n
    other = np.bincount(of_second[shared], minlength=n_classes) / n
    most, chance = float(np.minimum(one, other).sum()), float(one @ other)
    return PairPrevalence(
        first=first,
        second=second,
        n_shared=n,
        bias_index=float(np.abs(one - other).sum() / 2),
        kappa_max=None if chance >= 1 - 1e-12 else (most - chance) / (1 - chance),
    )
