"""Where disagreement arises: prevalence, pairs of classes, nodes of the decision tree.

Arguments, assumptions and errors are those of `calibration.agreement.coefficients`.
"""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.agreement.coefficients import (
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    distances_of,
    estimate,
    sums_of,
)
from calibration.agreement.inference import DIFFERENCE, difference
from calibration.agreement.ratings import (
    CountPatterns,
    count_patterns,
    too_little,
    validated_codes,
)
from calibration.statistics.estimate import (
    OK,
    Estimate,
    FloatArray,
    check_confidence_level,
    not_estimable,
)
from calibration.statistics.intervals import (
    EXACT,
    LOGIT,
    NO_DISAGREEMENT,
    NO_ITEM_VARIATION,
    NO_SPREAD,
    jackknife_se,
    logit_interval,
    unanimous_interval,
)

PARADOX_FROM = 0.15
BY_PREVALENCE = "low alpha is driven by prevalence; the rare classes decide"
BY_UNUSED = "high AC1 is driven by declared classes that nobody used; alpha decides"
NONE_SEEN = "no disagreement seen: there is nothing to share out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prevalence:
    """Whether alpha is low for the classes being used unevenly, and which classes then decide.

    Parameters
    ----------
    status : str
        ``"ok"``; `BY_PREVALENCE` or `BY_UNUSED` when alpha lies more than .15 below AC1;
        ``"not_estimable: ..."`` when one of them is.
    gap : Estimate
        Krippendorff's alpha less Gwet's AC1, with an interval for the difference on the same items.
    prevalence_index : float or None
        0 when the classes are used equally often, 1 when one has all: (largest share - 1/q) /
        (1 - 1/q). With two classes Byrt's |a - d| / n. None without ratings.
    rare_classes, unused_classes : tuple of int
        Classes used, but less often than the mean of those used; and never.
    """

    status: str
    gap: Estimate
    prevalence_index: float | None
    rare_classes: tuple[int, ...]
    unused_classes: tuple[int, ...]


def prevalence(codes: ArrayLike, *, n_classes: int, confidence_level: float = 0.95) -> Prevalence:
    """Describe the effect of class prevalence on alpha and AC1.

    With the same share of disagreeing pairs D, alpha is 1 - D / (1 - sum of p_k^2) and AC1 is
    1 - D (q - 1) / (q - 2 + sum of p_k^2), in large samples: they differ only through D and the
    inequality of the shares p_k, and alpha is never the higher one. A gap therefore *is*
    prevalence, or declared classes that nobody used; AC1 over the used classes alone separates
    the two. Indices describe these ratings and have no interval.

    References
    ----------
    Feinstein and Cicchetti (1990), J. Clin. Epidemiol. 43.
    https://doi.org/10.1016/0895-4356(90)90158-L
    Byrt, Bishop and Carlin (1993), J. Clin. Epidemiol. 46.
    https://doi.org/10.1016/0895-4356(93)90018-V

    Examples
    --------
    The second paradox table, [[80, 10], [5, 5]]: index (80 - 5) / 100.

    >>> codes = [[0, 0]] * 80 + [[0, 1]] * 10 + [[1, 0]] * 5 + [[1, 1]] * 5
    >>> found = prevalence(codes, n_classes=2)
    >>> found.prevalence_index, found.rare_classes
    (0.75, (1,))
    >>> found.status
    'low alpha is driven by prevalence; the rare classes decide'
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
        gap=gap,
        prevalence_index=_prevalence_index(shares) if used.any() else None,
        rare_classes=tuple(np.flatnonzero(rare).tolist()),
        unused_classes=tuple(np.flatnonzero(~used).tolist()),
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
    of_used = replace(patterns, counts=patterns.counts[:, used])
    alpha, ac1 = (sums_of(c, of_used).value() for c in (KRIPPENDORFF_ALPHA, GWET_AC))
    return BY_PREVALENCE if ac1 - alpha > PARADOX_FROM else BY_UNUSED


def _gap(patterns: CountPatterns, alpha: Estimate, ac1: Estimate) -> Estimate:
    n, level = alpha.n, alpha.confidence_level
    if alpha.value is None or ac1.value is None:
        why = (alpha if alpha.value is None else ac1).status.removeprefix("not_estimable: ")
        return not_estimable(why, method=DIFFERENCE, n=n, confidence_level=level)
    status = None
    if alpha.status == NO_DISAGREEMENT:
        status = NO_DISAGREEMENT
    elif alpha.interval is None or ac1.interval is None:
        status = (alpha if alpha.interval is None else ac1).status
    if status is not None:
        return Estimate(
            value=alpha.value - ac1.value, interval=None, n=n, method=DIFFERENCE,
            confidence_level=level, status=status,
        )  # fmt: skip
    return difference(
        sums_of(KRIPPENDORFF_ALPHA, patterns), sums_of(GWET_AC, patterns), confidence_level=level,
        unchanged="no interval: no variation between items seen; rate more items",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One part of all disagreement.

    `observed` : share of the disagreement seen, n = items that show any
    `expected` : share of the disagreement that chance would give; None without any
    `lift` : disagreement of the part relative to chance, 1 as often, 0 never; None where chance
        gives none
    `n_items` : items that show disagreement of this part
    """

    observed: Estimate
    expected: float | None
    lift: float | None
    n_items: int

    @property
    def alpha(self) -> float | None:
        """Alpha of the part: 1 - lift. Weighted by `expected` the parts add up to alpha."""
        return None if self.lift is None else 1 - self.lift


def disagreement_shares(
    patterns: CountPatterns,
    part: ArrayLike,
    *,
    n_parts: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> tuple[Share, ...]:
    """Split all disagreement exactly into parts.

    Every two ratings that differ belong to one part, by their two classes, so the observed
    disagreement of Krippendorff's alpha is the sum over the parts, and so is the expected one.
    Shares of the observed disagreement have jackknife intervals on the logit scale, over the items
    that show any; a part that holds all or nothing of every item has the exact bound.

    Parameters
    ----------
    part : array-like of int, shape (n_classes, n_classes)
        The part of each pair of classes, 0 to `n_parts` - 1; the diagonal is ignored. ValueError
        unless symmetric.

    Examples
    --------
    Classes 0 and 1 part at question 0, class 2 parts from both at question 1. One item of three
    splits at each of 0 and 1, so each holds half of the disagreement:

    >>> seen = count_patterns([[0, 0], [0, 1], [1, 2]], n_classes=3)
    >>> found = disagreement_shares(seen, [[-1, 0, 1], [0, -1, 1], [1, 1, -1]], n_parts=2)
    >>> [share.observed.value for share in found]
    [0.5, 0.5]
    """
    check_confidence_level(confidence_level)
    q = patterns.counts.shape[1]
    parts = _checked_parts(part, q, n_parts)
    refused = too_little(patterns.counts.sum(axis=1), confidence_level)
    if refused is not None:
        return (Share(observed=refused, expected=None, lift=None, n_items=0),) * n_parts
    pairable = patterns.pairable()
    counts = pairable.counts.astype(np.float64)
    of_pair = np.array([distances_of(weights, q) * (parts == k) for k in range(n_parts)])
    # An item's disagreement of each part, as alpha weighs items: by its number of ratings.
    seen = np.einsum("ic,kcd,id->ik", counts, of_pair, counts)
    seen /= (counts.sum(axis=1) - 1)[:, None]
    of_class = pairable.multiplicity @ counts
    chance = np.einsum("c,kcd,d->k", of_class, of_pair, of_class) / (of_class.sum() - 1)
    shares = _shares_of(seen, pairable.multiplicity, confidence_level)
    observed = pairable.multiplicity @ seen
    expected = chance / chance.sum() if chance.sum() > 0 else None
    return tuple(
        Share(
            observed=shares[k],
            expected=None if expected is None else float(expected[k]),
            lift=float(observed[k] / chance[k]) if chance[k] > 0 else None,
            n_items=int(pairable.multiplicity[seen[:, k] > 0].sum()),
        )
        for k in range(n_parts)
    )


def _checked_parts(part: ArrayLike, q: int, n_parts: int) -> NDArray[np.int64]:
    parts = np.array(part)
    if parts.shape != (q, q) or not np.issubdtype(parts.dtype, np.integer):
        raise ValueError(f"part must be integers of shape ({q}, {q}), got {parts.shape!r}")
    np.fill_diagonal(parts, -1)
    apart = parts[~np.eye(q, dtype=bool)]
    if (parts != parts.T).any() or apart.min() < 0 or apart.max() >= n_parts:
        raise ValueError(f"part must be symmetric with entries from 0 to {n_parts - 1}")
    return parts.astype(np.int64)


def _shares_of(
    seen: FloatArray, items: NDArray[np.int64], confidence_level: float
) -> list[Estimate]:
    """Return the share of each part in all disagreement, over the items that show any."""
    differ = seen.sum(axis=1) > 0
    if not differ.any():
        nothing = not_estimable(NONE_SEEN, method=LOGIT, confidence_level=confidence_level)
        return [nothing] * seen.shape[1]
    some, n = seen[differ], int(items[differ].sum())
    return [_share_of(of_part, some.sum(axis=1), items[differ], n, confidence_level)
            for of_part in some.T]  # fmt: skip


def _share_of(
    of_part: FloatArray, of_item: FloatArray, items: NDArray[np.int64], n: int, level: float
) -> Estimate:
    value = float(items @ of_part / (items @ of_item))
    if np.ptp(of_part / of_item) < NO_SPREAD:
        return Estimate(
            value=value, interval=unanimous_interval(value, n, confidence_level=level), n=n,
            method=EXACT, confidence_level=level, status=NO_ITEM_VARIATION,
        )  # fmt: skip
    left_out = (items @ of_part - of_part) / (items @ of_item - of_item)
    se = jackknife_se(left_out, items)
    interval = logit_interval(value, se, df=n - 1, confidence_level=level)
    return Estimate(
        value=value, interval=interval, n=n, method=LOGIT, confidence_level=level, se=se
    )


def class_pairs(n_classes: int) -> tuple[tuple[tuple[int, int], ...], NDArray[np.int64]]:
    """Return every pair of classes, and the matrix in which each pair is a part of its own.

    >>> pairs, part = class_pairs(3)
    >>> pairs, part.tolist()
    (((0, 1), (0, 2), (1, 2)), [[-1, 0, 1], [0, -1, 2], [1, 2, -1]])
    """
    pairs = tuple(combinations(range(n_classes), 2))
    part = np.full((n_classes, n_classes), -1, dtype=np.int64)
    for k, (first, second) in enumerate(pairs):
        part[first, second] = part[second, first] = k
    return pairs, part
