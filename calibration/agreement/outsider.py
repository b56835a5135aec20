"""One rater from outside a panel, for instance a judge, beside the raters of the panel."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.agreement.chance_corrected import (
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    PERCENT_AGREEMENT,
    Coefficient,
    distances_of,
    estimate,
    from_features,
)
from calibration.agreement.counts import CountPatterns, class_counts, patterns_from_counts
from calibration.agreement.differences import DIFFERENCE, difference_of_parts
from calibration.agreement.intervals import METHOD, NO_SPREAD, FloatArray, check_confidence_level
from calibration.estimates import Estimate, not_estimable

COEFFICIENTS = (PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA, GWET_AC)
NOTHING_SHARED = "no item has two ratings of the panel and one from outside: give some to two"


@dataclass(frozen=True, slots=True, kw_only=True)
class BesidePanel:
    """One coefficient, among the panel and of the outsider with it, on the same items.

    Parameters
    ----------
    panel : Estimate
        Of the panel among themselves: the ceiling.
    outsider : Estimate
        Of the outsider with one of them.
    difference : Estimate
        `outsider` less `panel`: below zero where the outsider agrees less with them than they do.
    """

    panel: Estimate
    outsider: Estimate
    difference: Estimate

    @property
    def within(self) -> bool | None:
        """Whether the outsider may agree as well as they do; None without an interval."""
        limits = self.difference.interval
        return None if limits is None else limits[1] >= 0


def outsider_beside_panel(
    codes: ArrayLike,
    outsider: ArrayLike,
    *,
    n_classes: int,
    confidence_level: float = 0.95,
) -> dict[str, BesidePanel]:
    """Compare the agreement of an outsider with the panel to that among the panel.

    Items are a random sample and independent, raters fixed, ratings missing at random. Only items
    with two or more ratings of the panel and one of the outsider enter, on both sides.

    Parameters
    ----------
    codes : array-like of int, shape (n_items, n_raters)
        Classes that the panel gave, -1 for none.
    outsider : array-like of int, shape (n_items,)
        Classes that the outsider gave, -1 for none.
    n_classes : int
        Declared classes, those of the outsider included.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    dict of str to BesidePanel
        ``percent_agreement``, ``krippendorff_alpha`` and ``gwet_ac``; the difference with a
        jackknife t interval over the items, so that one which is hard for all cancels.

    Raises
    ------
    ValueError
        As `count_patterns`, or if the two have different numbers of items.

    Notes
    -----
    The outsider's coefficient is that of the pairs (outsider, member): each item's part in the sums
    is the mean over its pairs for percent agreement and AC1, and half their sum for alpha, so that
    an item weighs on both sides the same, and with one class mix for all raters an outsider who
    rates as a member does has the panel's value. Agreeing with a panel is no more than being right
    as often as one of them is; where they err together an outsider who is right falls below.

    References
    ----------
    Gwet (2016), Educ. Psychol. Meas. 76. https://doi.org/10.1177/0013164415596420

    Examples
    --------
    Two members agree on three of four items, the outsider with the first on all four:

    >>> codes = [[0, 0], [1, 1], [0, 1], [1, 1]]
    >>> found = outsider_beside_panel(codes, [0, 1, 0, 1], n_classes=2)["percent_agreement"]
    >>> found.panel.value, found.outsider.value, found.difference.value
    (0.75, 0.875, 0.125)
    """
    check_confidence_level(confidence_level)
    counts = class_counts(codes, n_classes=n_classes)
    given = np.asarray(outsider)
    if given.shape != counts.shape[:1]:
        raise ValueError(f"outsider must have shape ({len(counts)},), got {given.shape!r}")
    other = class_counts(given[:, None], n_classes=n_classes)
    keep = (counts.sum(axis=1) >= 2) & (other.sum(axis=1) == 1)
    alike = patterns_from_counts(np.hstack([counts[keep], other[keep]]))
    panel = CountPatterns(
        counts=alike.counts[:, :n_classes],
        multiplicity=alike.multiplicity,
        n_items=alike.n_items,
        n_ratings=int(counts[keep].sum()),
    )
    own = alike.counts[:, n_classes:].argmax(axis=1)
    return {
        coefficient.name: _beside(coefficient, panel, own, confidence_level)
        for coefficient in COEFFICIENTS
    }


def _beside(
    coefficient: Coefficient,
    panel: CountPatterns,
    own: NDArray[np.int64],
    confidence_level: float,
) -> BesidePanel:
    if panel.n_items == 0:
        nothing = [
            not_estimable(NOTHING_SHARED, method=method, confidence_level=confidence_level)
            for method in (METHOD, METHOD, DIFFERENCE)
        ]
        return BesidePanel(panel=nothing[0], outsider=nothing[1], difference=nothing[2])
    n_classes = panel.counts.shape[1]
    distances = distances_of(None, n_classes)
    counts = panel.counts.astype(np.float64)
    of_panel = coefficient.features(counts, distances)
    of_outsider = _pair_features(coefficient, counts, own, distances)
    apart = 1 - counts[np.arange(len(own)), own] / counts.sum(axis=1)
    return BesidePanel(
        panel=estimate(coefficient, panel, confidence_level=confidence_level),
        outsider=from_features(
            coefficient, of_outsider, panel.multiplicity, distances, n=panel.n_items,
            alike=bool(np.ptp(apart) < NO_SPREAD), confidence_level=confidence_level,
        ),
        difference=difference_of_parts(
            ((coefficient, of_outsider, distances), (coefficient, of_panel, distances)),
            panel.multiplicity, panel.n_items, confidence_level,
        ),
    )  # fmt: skip


def _pair_features(
    coefficient: Coefficient,
    counts: FloatArray,
    own: NDArray[np.int64],
    distances: FloatArray,
) -> FloatArray:
    """Return each pattern's part in the sums over the pairs of the outsider and a member."""
    n_classes = counts.shape[1]
    one = np.eye(n_classes)
    pairs = (one[:, None] + one[None, :]).reshape(-1, n_classes)
    parts = coefficient.features(pairs, distances).reshape(n_classes, n_classes, -1)
    summed = np.einsum("pc,pcf->pf", counts, parts[own])
    scale = 0.5 if coefficient is KRIPPENDORFF_ALPHA else 1 / counts.sum(axis=1, keepdims=True)
    return np.asarray(summed * scale)
