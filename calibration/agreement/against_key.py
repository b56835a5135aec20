"""Each rater against a key: where they err, and whether that is good enough."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration.agreement.chance_corrected import GWET_AC, estimate
from calibration.agreement.counts import MISSING, IntArray, count_patterns, validated_codes
from calibration.agreement.intervals import (
    METHOD,
    check_confidence_level,
)
from calibration.agreement.two_raters import cohen_kappa_of_table
from calibration.agreement.weights import checked_weights
from calibration.estimates import Estimate, not_estimable
from calibration.two_way import wilson_interval

WILSON = "Wilson"
FLEISS_COHEN_EVERITT = "Fleiss-Cohen-Everitt, Fisher z"
NO_KEY = "this rater rated no item of the key: give some of them to this rater"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassAgainstKey:
    """How well one rater finds one class.

    Parameters
    ----------
    class_code : int
        Position of the class.
    recall : Estimate
        Share of the items of this class in the key to which the rater gave it.
    precision : Estimate
        Share of the items to which the rater gave this class that have it in the key; other than
        recall it depends on the class mix of the key.
    """

    class_code: int
    recall: Estimate
    precision: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstKey:
    """One rater against the key.

    Parameters
    ----------
    rater : int
        Column of the ratings.
    n : int
        Items with a rating and a key.
    table : tuple of tuple of int, shape (n_classes, n_classes)
        Items by their class in the key (rows) and the class that the rater gave (columns).
    accuracy : Estimate
        Share of items with the key's class, with or without weights.
    cohen_kappa, gwet_ac : Estimate
        Agreement beyond chance, weighted where weights are given; AC1 (or AC2) is the figure to
        pass by.
    per_class : tuple of ClassAgainstKey, length n_classes
    """

    rater: int
    n: int
    table: tuple[tuple[int, ...], ...]
    accuracy: Estimate
    cohen_kappa: Estimate
    gwet_ac: Estimate
    per_class: tuple[ClassAgainstKey, ...]


def against_key(
    codes: ArrayLike,
    key: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> tuple[AgainstKey, ...]:
    """Compare each rater with a key: canonical or adjudicated classes.

    Items are a random sample and independent, and the key is taken as true: errors in it count
    as the rater's. A key that was made from these ratings flatters those who made it.

    Parameters
    ----------
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    key : array-like of int, shape (n_items,)
        The true class of each item, -1 where it is not known.
    n_classes : int
        Declared number of classes, used or not.
    weights : array-like of float, shape (n_classes, n_classes), optional
        Agreement weights, 1 on the diagonal; default: classes agree or do not.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    tuple of AgainstKey
        One entry a rater. Shares have Wilson intervals; kappa a Fisher-z interval from the
        Fleiss-Cohen-Everitt standard error, t with n - 1 df; AC1 that of `gwet_ac1`. Where the
        two never differ kappa's lower limit is the exact bound; where one of them uses a single
        class kappa has no interval. ``not_estimable`` where there is nothing to compare.

    Raises
    ------
    ValueError
        As `count_patterns`, if the key has another length or holds no codes, if the weights are
        none, or `confidence_level` is outside (0, 1).

    Notes
    -----
    With 30 to 100 items the normal interval kappa -+ 1.96 SE covers .88 to .94, on the Fisher
    scale .93 to .97.

    References
    ----------
    Fleiss, Cohen and Everitt (1969), Psychol. Bull. 72. https://doi.org/10.1037/h0028106
    Wilson (1927), J. Amer. Statist. Assoc. 22. https://doi.org/10.2307/2276774

    Examples
    --------
    Of three items of class 0 the rater finds two, and gives class 0 to three items:

    >>> codes = [[0], [0], [1], [1], [0], [1]]
    >>> found, = against_key(codes, [0, 0, 0, 1, 1, -1], n_classes=2)
    >>> found.table, found.n, found.accuracy.value
    (((2, 1), (1, 1)), 5, 0.6)
    >>> found.per_class[0].recall.value, found.per_class[1].precision.value
    (0.66667, 0.5)
    """
    check_confidence_level(confidence_level)
    array = validated_codes(codes, n_classes=n_classes)
    truth = np.asarray(key)
    if truth.shape != array.shape[:1]:
        raise ValueError(f"key must have shape ({array.shape[0]},), got {truth.shape!r}")
    truth = validated_codes(truth[:, None], n_classes=n_classes)[:, 0]
    matrix = None if weights is None else checked_weights(weights, n_classes=n_classes)
    return tuple(
        _against(rater, truth, array[:, rater], n_classes, matrix, confidence_level)
        for rater in range(array.shape[1])
    )


def _against(
    rater: int,
    truth: IntArray,
    given: IntArray,
    n_classes: int,
    weights: ArrayLike | None,
    confidence_level: float,
) -> AgainstKey:
    both = np.column_stack([truth, given])[(truth != MISSING) & (given != MISSING)]
    cells = both[:, 0] * n_classes + both[:, 1]
    table = np.bincount(cells, minlength=n_classes**2).reshape(n_classes, n_classes)
    patterns = count_patterns(both, n_classes=n_classes)
    ac = kappa = not_estimable(NO_KEY, method=METHOD, confidence_level=confidence_level)
    if len(both):
        ac = estimate(GWET_AC, patterns, weights=weights, confidence_level=confidence_level)
        kappa = cohen_kappa_of_table(table, weights=weights, confidence_level=confidence_level)
    return AgainstKey(
        rater=rater,
        n=len(both),
        table=tuple(tuple(row) for row in table.tolist()),
        accuracy=_share(int(np.trace(table)), len(both), confidence_level, NO_KEY),
        cohen_kappa=kappa,
        gwet_ac=ac,
        per_class=tuple(_of_class(table, k, confidence_level) for k in range(n_classes)),
    )


def _of_class(table: IntArray, k: int, confidence_level: float) -> ClassAgainstKey:
    hits, in_key, given = int(table[k, k]), int(table[k].sum()), int(table[:, k].sum())
    no_key = "no item of this class in the key that the rater rated: add some"
    not_given = "the rater gave this class to no item of the key: add items"
    return ClassAgainstKey(
        class_code=k,
        recall=_share(hits, in_key, confidence_level, no_key),
        precision=_share(hits, given, confidence_level, not_given),
    )


def _share(hits: int, n: int, confidence_level: float, nothing: str) -> Estimate:
    if n == 0:
        return not_estimable(nothing, method=WILSON, confidence_level=confidence_level)
    return Estimate(
        value=hits / n,
        interval=wilson_interval(hits, n, confidence_level=confidence_level),
        n=n,
        method=WILSON,
        confidence_level=confidence_level,
    )
