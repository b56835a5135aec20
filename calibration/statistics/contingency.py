"""Two-way tables of two raters: kappa, shares, and tests of equal margins.

Every table holds items by the class of one rater (rows) and of the other (columns). Functions raise
ValueError if it is not square or holds anything but counts, if the weights do not fit it, or if
`confidence_level` is outside (0, 1).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from calibration.statistics.estimate import (
    OK,
    Estimate,
    FloatArray,
    check_confidence_level,
    not_estimable,
)
from calibration.statistics.intervals import (
    BELOW_THE_SCALE,
    EXACT,
    NO_DISAGREEMENT,
    NO_ITEM_VARIATION,
    NO_SPREAD,
    fisher_z_interval,
    two_sided_z,
    wilson_share,
    zero_event_upper_bound,
)

EXACT_BELOW = 25

# Sums of shares this close to 1 are 1.
WHOLE = 1 - 1e-12

PAIRED = "difference within items, Bonett-Price"
KAPPA = "Fleiss-Cohen-Everitt, Fisher z"
ONE_CLASS = "undefined without variation: both name one class only; add items of others"
Name = TypeVar("Name")


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """A test: its statistic, degrees of freedom and p-value; None where undefined.

    Parameters
    ----------
    statistic, p_value : float or None
        None when the data have nothing to test; `status` says what.
    df : int
        Degrees of freedom; 0 when there is nothing to test, or the test is exact.
    n : int
        Items in the table.
    method : str
    status : str, default "ok"
    """

    statistic: float | None
    p_value: float | None
    df: int
    n: int
    method: str
    status: str = OK


def stuart_maxwell(table: ArrayLike) -> TestResult:
    """Test that two raters use every class equally often.

    Chi-square with df the rank of the covariance: a class without differing items adds none.

    Parameters
    ----------
    table : array-like of int, shape (n_classes, n_classes)

    References
    ----------
    Stuart (1955), Biometrika 42. https://doi.org/10.1093/biomet/42.3-4.412
    Maxwell (1970), Brit. J. Psychiatry 116. https://doi.org/10.1192/bjp.116.535.651

    Examples
    --------
    With two classes it is McNemar's (b - c)^2 / (b + c), here 16 / 8:

    >>> stuart_maxwell([[10, 6], [2, 10]]).statistic
    2.0
    """
    counts = _checked(table)
    differing = counts.sum(axis=1) - counts.sum(axis=0)
    covariance = -(counts + counts.T).astype(np.float64)
    np.fill_diagonal(covariance, counts.sum(axis=1) + counts.sum(axis=0) - 2 * np.diag(counts))
    rank = int(np.linalg.matrix_rank(covariance))
    method = "Stuart-Maxwell chi-square"
    if rank == 0:
        return _nothing(counts, method)
    statistic = float(differing @ np.linalg.pinv(covariance, hermitian=True) @ differing)
    return _chi_square(statistic, rank, counts, method)


def bhapkar(table: ArrayLike) -> TestResult:
    """Test that two raters use every class equally often; with more power than `stuart_maxwell`.

    No statistic when the two never agree and never balance: it would be infinite.

    References
    ----------
    Bhapkar (1966), J. Amer. Statist. Assoc. 61. https://doi.org/10.1080/01621459.1966.10502021

    Examples
    --------
    Stuart-Maxwell gives 2 on 28 items: 2 / (1 - 2 / 28):

    >>> bhapkar([[10, 6], [2, 10]]).statistic
    2.15385
    """
    counts = _checked(table)
    base = stuart_maxwell(counts)
    method = "Bhapkar chi-square"
    if base.statistic is None:
        return _nothing(counts, method)
    room = 1 - base.statistic / base.n
    if room <= 1e-12:
        why = "undefined: the raters never agree; the difference needs no test"
        return TestResult(
            statistic=None, p_value=None, df=base.df, n=base.n, method=method, status=why
        )
    return _chi_square(base.statistic / room, base.df, counts, method)


def mcnemar(table: ArrayLike, *, exact: bool | None = None, corrected: bool = False) -> TestResult:
    """Test that two raters say yes equally often.

    Parameters
    ----------
    table : array-like of int, shape (2, 2)
    exact : bool, optional
        Exact binomial test, or chi-square; default: exact below 25 differing items.
    corrected : bool, default False
        Apply Edwards' continuity correction to chi-square, which makes it conservative.

    References
    ----------
    McNemar (1947), Psychometrika 12. https://doi.org/10.1007/BF02295996

    Examples
    --------
    Of 8 differing items 6 go one way: twice (1 + 8 + 28) / 256:

    >>> mcnemar([[10, 6], [2, 10]]).p_value
    0.28906
    """
    counts = _checked(table)
    if counts.shape != (2, 2):
        raise ValueError(f"table must have shape (2, 2), got {counts.shape!r}")
    b, c = int(counts[0, 1]), int(counts[1, 0])
    if b + c == 0:
        return _nothing(counts, "exact McNemar")
    if not (b + c < EXACT_BELOW if exact is None else exact):
        apart = max(0, abs(b - c) - 1) if corrected else b - c
        method = "McNemar chi-square" + (", corrected" if corrected else "")
        return _chi_square(apart**2 / (b + c), 1, counts, method)
    p_value = min(1.0, 2 * float(special.bdtr(min(b, c), b + c, 0.5)))
    return TestResult(
        statistic=float(min(b, c)), p_value=p_value, df=0, n=int(counts.sum()),
        method="exact McNemar",
    )  # fmt: skip


def paired_centre(
    total: FloatArray, squares: FloatArray, n: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return centre and standard error of a mean difference within items, in [-1, 1].

    Bonett and Price (2012), J. Educ. Behav. Stat. 37: one item with the difference 1 and one with
    -1 are added, so that the limits hold for few items and few differences too.
    https://doi.org/10.3102/1076998611411915

    Parameters
    ----------
    total, squares, n : float array
        Sum of the differences, sum of their squares, and number of items.

    Examples
    --------
    Of 70 items 10 differ up and 2 down: 8 / 72, and sqrt(12 + 2 - 72 x (8 / 72)^2) / 72.

    >>> centre, se = paired_centre(np.array(8.0), np.array(12.0), np.array(70.0))
    >>> round(float(centre), 4), round(float(se), 4)
    (0.1111, 0.0503)
    """
    added = n + 2
    centre = total / added
    return centre, np.sqrt((squares + 2 - added * centre**2) / added**2)


def paired_difference(
    first_only: int, second_only: int, n: int, *, nothing: str, confidence_level: float = 0.95
) -> Estimate:
    """Estimate the difference of two shares of the same items, first less second.

    Items are a random sample and independent. The limits are those of `paired_centre`.

    Parameters
    ----------
    first_only, second_only : int
        Items in which the first and not the second has the property, and the other way round.
    nothing : str
        Status when `n` is 0: why, and what would help.

    Examples
    --------
    .1111 -+ 1.96 x .0503, about the difference 8 / 70:

    >>> print(paired_difference(10, 2, 70, nothing=""))
    0.114 [0.013, 0.210] (95% difference within items, Bonett-Price, n=70)
    """
    check_confidence_level(confidence_level)
    if min(first_only, second_only) < 0 or first_only + second_only > n:
        raise ValueError(
            f"counts must be 0 or more and not above n, got {(first_only, second_only, n)!r}"
        )
    if n == 0:
        return not_estimable(nothing, method=PAIRED, confidence_level=confidence_level)
    total, squares = np.array(float(first_only - second_only)), np.array(1.0 * first_only)
    centre, se = paired_centre(total, squares + second_only, np.array(float(n)))
    reach = two_sided_z(confidence_level) * float(se)
    return Estimate(
        value=(first_only - second_only) / n,
        interval=(max(-1.0, float(centre) - reach), min(1.0, float(centre) + reach)),
        n=n, method=PAIRED, confidence_level=confidence_level, se=float(se),
    )  # fmt: skip


def holm(p_values: Mapping[Name, float]) -> dict[Name, float]:
    """Return p-values adjusted for their number: the familywise error rate is that of one test.

    Holm (1979), Scand. J. Statist. 6, 65-70. https://www.jstor.org/stable/4615733

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'c': 0.06, 'b': 0.06}
    """
    adjusted, least = {}, 0.0
    for rank, (name, p_value) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_value))
        adjusted[name] = least
    return adjusted


def rank_limits(
    names: Sequence[Name], better: Collection[tuple[Name, Name]]
) -> dict[Name, tuple[int, int]]:
    """Return the smallest and the largest rank that each may have, 1 being the best.

    `better` are the pairs of which the first is shown to be better than the second. Where these
    claims hold all at once with a probability, as after Holm over all pairs, so do the ranks.

    Mogstad, Romano, Shaikh and Wilhelm (2024), "Inference for ranks", Rev. Econ. Stud. 91.
    https://doi.org/10.1093/restud/rdad006

    The first is better than both others, which are not told apart:

    >>> rank_limits("abc", [("a", "b"), ("a", "c")])
    {'a': (1, 1), 'b': (2, 3), 'c': (2, 3)}
    """
    above = Counter(loser for _, loser in better)
    below = Counter(winner for winner, _ in better)
    return {name: (1 + above[name], len(names) - below[name]) for name in names}


def _checked(table: ArrayLike) -> NDArray[np.int64]:
    counts = np.asarray(table)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or counts.shape[0] < 2:
        raise ValueError(f"table must be square, two classes or more, got shape {counts.shape!r}")
    if not np.issubdtype(counts.dtype, np.integer) or counts.min() < 0:
        raise ValueError("table must hold counts of items, whole numbers from 0 up")
    return counts.astype(np.int64)


def _chi_square(statistic: float, df: int, counts: NDArray[np.int64], method: str) -> TestResult:
    return TestResult(
        statistic=statistic, p_value=float(special.chdtrc(df, statistic)), df=df,
        n=int(counts.sum()), method=method,
    )  # fmt: skip


def _nothing(counts: NDArray[np.int64], method: str) -> TestResult:
    return TestResult(
        statistic=None, p_value=None, df=0, n=int(counts.sum()), method=method,
        status="undefined: the raters never differ",
    )  # fmt: skip


def kappa_of_table(
    table: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    n: int | None = None,
    nothing: str = "no item has two ratings: give some items to two or more reviewers",
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate Cohen's kappa of two raters, or of a judge and the humans, from their table.

    Items are a random sample and independent, and both margins are estimated from them.

    The interval is on the Fisher z scale with the standard error of Fleiss, Cohen and Everitt; the
    df of t are the sum of the table less 1. Without any disagreement it is the exact bound on the
    share of items that disagree, put through kappa. No interval where one of the two used a single
    class; ``not_estimable`` where both used the same one. With 20 to 200 items the interval covers
    at least .943; value -+ z SE covers .904 at worst.

    Parameters
    ----------
    table : array-like of float, shape (n_classes, n_classes)
        Counts may be fractional (effective).
    weights : array-like of float, shape (n_classes, n_classes), optional
        Agreement weights, 1 on the diagonal; default: classes agree or do not.
    n : int, optional
        Items behind the table, where its sum is the effective number of them.
    nothing : str
        Status for an empty table: why, and what would help.

    References
    ----------
    Cohen (1968), "Weighted kappa", Psychol. Bull. 70. https://doi.org/10.1037/h0026256
    Fleiss, Cohen and Everitt (1969), "Large sample standard errors of kappa and weighted kappa",
    Psychol. Bull. 72. https://doi.org/10.1037/h0028106

    Examples
    --------
    Agreement 41/46; chance agreement (12 x 13 + 34 x 33) / 46^2:

    >>> found = kappa_of_table([[10, 2], [3, 31]])
    >>> found.value, found.se
    (0.7255, 0.1147)
    """
    check_confidence_level(confidence_level)
    counts = np.asarray(table, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ValueError(f"table must be square, got shape {counts.shape!r}")
    if not (counts >= 0).all():
        raise ValueError(f"table must hold counts from 0 up, got {counts.min()!r}")
    matrix = np.eye(counts.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    if matrix.shape != counts.shape:
        raise ValueError(f"weights must have shape {counts.shape!r}, got {matrix.shape!r}")
    total = float(counts.sum())
    n = round(total) if n is None else n
    if total <= 0:
        return not_estimable(nothing, method=KAPPA, confidence_level=confidence_level)
    observed, expected, value, spread = _kappa(counts / total, matrix, total)
    if expected >= WHOLE:
        return not_estimable(ONE_CLASS, method=KAPPA, n=n, confidence_level=confidence_level)
    se, interval, status, method = None, None, OK, KAPPA
    one_class = max(counts.sum(axis=0).max(), counts.sum(axis=1).max()) >= WHOLE * total
    if total <= 1:
        status = "no interval: one item with two or more ratings, at least two are needed"
    elif observed < WHOLE and one_class:
        status = "no interval: one of the two used a single class; add items of others"
    elif value <= -1 + NO_SPREAD:
        status = BELOW_THE_SCALE
    elif observed >= WHOLE or spread < NO_SPREAD:
        share = zero_event_upper_bound(total, confidence_level=confidence_level)
        kept, by_chance = (1 - observed) * (1 - share), 1 - expected
        interval = max(-1.0, 1 - (kept + share) / by_chance), min(1.0, 1 - kept / by_chance)
        method, status = EXACT, NO_DISAGREEMENT if observed >= WHOLE else NO_ITEM_VARIATION
    else:
        se = spread
        interval = fisher_z_interval(value, se, df=total - 1, confidence_level=confidence_level)
    return Estimate(
        value=value, interval=interval, n=n, method=method, confidence_level=confidence_level,
        status=status, se=se,
    )  # fmt: skip


def kappas_of_tables(tables: FloatArray) -> FloatArray:
    """Return Cohen's kappa of many tables at once, shape (..., n_classes, n_classes) -> (...).

    NaN where `kappa_of_table` has no value: in an empty table, or if both name one class only.

    >>> kappas_of_tables(np.array([[[10.0, 2], [3, 31]], [[7, 0], [0, 0]]]))
    array([0.7255, nan])
    """
    total = tables.sum(axis=(-2, -1), keepdims=True)
    shares = tables / np.where(total > 0, total, 1.0)
    observed, expected = _seen_and_by_chance(shares, np.eye(tables.shape[-1]))
    defined = (expected < WHOLE) & (total[..., 0, 0] > 0)
    room = np.where(defined, 1 - expected, 1.0)
    return np.where(defined, (observed - expected) / room, np.nan)


def _seen_and_by_chance(shares: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean agreement weight and chance agreement of tables of shares."""
    rows, columns = shares.sum(axis=-1), shares.sum(axis=-2)
    return (weights * shares).sum(axis=(-2, -1)), (rows @ weights * columns).sum(axis=-1)


def _kappa(
    shares: NDArray[np.float64], weights: NDArray[np.float64], total: float
) -> tuple[float, float, float, float]:
    """Return mean agreement weight, chance agreement, kappa and its standard error."""
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    observed, expected = map(float, _seen_and_by_chance(shares, weights))
    if expected >= WHOLE:
        return observed, expected, 0.0, 0.0
    kappa = (observed - expected) / (1 - expected)
    by_chance = (weights @ columns)[:, None] + (weights.T @ rows)[None, :]
    spread = weights - (1 - kappa) * by_chance
    variance = float((shares * spread**2).sum()) - (kappa - expected * (1 - kappa)) ** 2
    return observed, expected, kappa, float(np.sqrt(max(0.0, variance) / total) / (1 - expected))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassAgainstKey:
    """How well one class is found.

    Parameters
    ----------
    recall : Estimate
        Share of the items of this class in the key to which it was given.
    precision : Estimate
        Share of the items to which this class was given that have it in the key; unlike recall it
        depends on the class mix of the key.
    n_key, n_given : float
        Items of this class in the key, and items to which it was given.
    """

    recall: Estimate
    precision: Estimate
    n_key: float
    n_given: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityAgainstKey:
    """A rater or a judge against a key: accuracy, Cohen's kappa, and each class of the key."""

    accuracy: Estimate
    kappa: Estimate
    per_class: tuple[ClassAgainstKey, ...]
    n: int


def quality_against_key(
    table: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    n: int | None = None,
    squares: NDArray[np.float64] | None = None,
    nothing: str = "no item has a key and a rating: rate some items of the key",
    no_key: str = "no item of this class in the key: add some",
    not_given: str = "no item of the key was given this class: add items",
    confidence_level: float = 0.95,
) -> QualityAgainstKey:
    """Estimate accuracy, kappa, and recall and precision of every class of the key.

    Items are a random sample and independent, and the key is taken as true. Shares have the
    interval of `wilson_interval`; kappa that of `kappa_of_table`.

    Parameters
    ----------
    table : array-like of float, shape (n_classes, n_given)
        Items by their class in the key (rows) and the class given (columns); columns from
        n_classes up are answers that are no class, and count as wrong.
    weights, n, nothing
        As in `kappa_of_table`; weights have the shape (n_given, n_given).
    squares : float array, shape (n_classes, n_given), optional
        Where items are weighted, the table of their squared weights: each share then has its own
        effective number of items, share (1 - share) / variance, and (sum w)^2 / sum w^2 at 0 and 1
        (Korn and Graubard 1998, Survey Methodology 24).
    no_key, not_given : str
        Status for a class without items in the key, and for one that was never given.

    Examples
    --------
    >>> found = quality_against_key([[8, 2], [1, 9]])
    >>> found.accuracy.value, found.per_class[0].recall.value, found.per_class[1].precision.value
    (0.85, 0.8, 0.81818)
    """
    check_confidence_level(confidence_level)
    counts = np.asarray(table, dtype=np.float64)
    in_key, given = counts.sum(axis=1), counts.sum(axis=0)
    square = np.zeros((given.size, given.size))
    square[: in_key.size] = counts

    squared = counts if squares is None else squares
    diagonal = np.eye(*counts.shape)
    n_key, n_given = (
        np.divide(whole**2, of, out=np.zeros(whole.size), where=of > 0)
        for whole, of in ((in_key, squared.sum(axis=1)), (given, squared.sum(axis=0)))
    )

    def share(cells: Any, why: str) -> Estimate:
        """Return the share of some cells that is right."""
        (of, right), (of_squares, right_squares) = (
            (float(part[cells].sum()), float((part * diagonal)[cells].sum()))
            for part in (counts, squared)
        )
        if squares is None or of <= 0:
            return wilson_share(right, of, nothing=why, confidence_level=confidence_level)
        p, effective = right / of, of**2 / of_squares
        if 0 < p < 1:
            variance = (right_squares * (1 - p) ** 2 + (of_squares - right_squares) * p**2) / of**2
            effective = p * (1 - p) / variance
        return wilson_share(
            p * effective, effective, nothing=why, confidence_level=confidence_level
        )

    return QualityAgainstKey(
        accuracy=share(np.s_[:, :], nothing),
        kappa=kappa_of_table(
            square, weights=weights, n=n, nothing=nothing, confidence_level=confidence_level
        ),
        per_class=tuple(
            ClassAgainstKey(
                recall=share(np.s_[k], no_key),
                precision=share(np.s_[:, k], not_given),
                n_key=float(n_key[k]),
                n_given=float(n_given[k]),
            )
            for k in range(in_key.size)
        ),
        n=round(float(counts.sum())) if n is None else n,
    )
