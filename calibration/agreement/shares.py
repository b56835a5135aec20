"""Where disagreement comes from: exact shares by question of the tree, or by pair of classes."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.agreement.chance_corrected import distances_of
from calibration.agreement.counts import CountPatterns
from calibration.agreement.intervals import (
    EXACT,
    LOGIT,
    NO_SPREAD,
    NO_VARIATION,
    FloatArray,
    check_confidence_level,
    jackknife_se,
    logit_interval,
    unanimous_interval,
)
from calibration.agreement.refusals import too_little
from calibration.estimates import Estimate, not_estimable

NONE_SEEN = "no disagreement seen: there is nothing to share out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One part of all disagreement.

    Parameters
    ----------
    observed : Estimate
        Share of the disagreement seen, n = items that show any.
    expected : float or None
        Share of the disagreement that chance would give; None without any.
    lift : float or None
        Disagreement of the part against what chance would give it: 1 as often, 0 never; None
        where chance gives none.
    n_items : int
        Items that show disagreement of this part.
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
    """Split all disagreement into parts, exactly.

    Every two ratings that differ belong to one part, by their two classes, so the observed
    disagreement of Krippendorff's alpha is the sum over the parts, and so is the expected one.

    Parameters
    ----------
    patterns : CountPatterns
        From `count_patterns`.
    part : array-like of int, shape (n_classes, n_classes)
        Symmetric; the part of each pair of classes. The diagonal is not read.
    n_parts : int
        Number of parts.
    weights : array-like of float, shape (n_classes, n_classes), optional
        Agreement weights, 1 on the diagonal; default: classes agree or do not.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    tuple of Share, length n_parts
        Shares of the observed disagreement with jackknife intervals on the logit scale, over the
        items that show any; a part that holds all or nothing of every item has the exact bound.

    Raises
    ------
    ValueError
        If `part` is not symmetric or names none of the parts, or as `estimate`.

    Examples
    --------
    Classes 0 and 1 part at question 0, class 2 parts from both at question 1. One item of three
    splits at each of 0 and 1, so each holds half of the disagreement:

    >>> from calibration.agreement.counts import count_patterns
    >>> seen = count_patterns([[0, 0], [0, 1], [1, 2]], n_classes=3)
    >>> found = disagreement_shares(seen, [[-1, 0, 1], [0, -1, 1], [1, 1, -1]], n_parts=2)
    >>> [share.observed.value for share in found]
    [0.5, 0.5]
    """
    check_confidence_level(confidence_level)
    q = patterns.counts.shape[1]
    parts = _checked_parts(part, q, n_parts)
    refused = too_little(patterns, confidence_level)
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
            method=EXACT, confidence_level=level, status=NO_VARIATION,
        )  # fmt: skip
    left_out = (items @ of_part - of_part) / (items @ of_item - of_item)
    se = jackknife_se(left_out, items)
    interval = logit_interval(value, se, df=n - 1, confidence_level=level)
    return Estimate(
        value=value, interval=interval, n=n, method=LOGIT, confidence_level=level, se=se
    )


def class_pairs(n_classes: int) -> tuple[tuple[tuple[int, int], ...], NDArray[np.int64]]:
    """Return every pair of classes, and the matrix that makes each pair a part of its own.

    Examples
    --------
    >>> pairs, part = class_pairs(3)
    >>> pairs, part.tolist()
    (((0, 1), (0, 2), (1, 2)), [[-1, 0, 1], [0, -1, 2], [1, 2, -1]])
    """
    pairs = tuple(combinations(range(n_classes), 2))
    part = np.full((n_classes, n_classes), -1, dtype=np.int64)
    for k, (first, second) in enumerate(pairs):
        part[first, second] = part[second, first] = k
    return pairs, part
