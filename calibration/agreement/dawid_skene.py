"""Dawid-Skene: the probable class of each item and the confusion matrix of each rater."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.agreement.ratings import MISSING, validated_codes
from calibration.statistics.estimate import OK, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy import sparse

# Lower bound of a probability: its logarithm stays finite.
SMALLEST = 1e-300

# A smaller relative change of a sum is rounding.
ROUNDING = 1e-13

FEWEST_RATINGS = 3
NO_RATINGS = "not_estimable: no ratings; have three or more reviewers label the same items"
ONE_RATER = "one rater only, so nothing but the prior tells errors from the truth"
ONE_CLASS = "every rating names one class, so how others are confused is the prior"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirichletPrior:
    """Pseudo-counts of ratings and items: Dirichlet parameters less 1.

    `diagonal` is the number of right ratings added to each class of each rater (Dirichlet parameter
    3), `off_diagonal` that of each wrong class (1.25), `class_share` the items added to each class.
    With five classes an unknown rater names the right class with probability 2 / 3.
    """

    diagonal: float = 2.0
    off_diagonal: float = 0.25
    class_share: float = 1.0

    def __post_init__(self) -> None:
        for name in ("diagonal", "off_diagonal", "class_share"):
            value = getattr(self, name)
            if not 0 <= value < np.inf:
                raise ValueError(f"{name} must be in [0, inf), got {value!r}")

    @property
    def flat(self) -> bool:
        """Whether nothing is added, which gives the maximum likelihood estimate."""
        return self.diagonal == self.off_diagonal == self.class_share == 0


WEAK_PRIOR = DirichletPrior()
MAXIMUM_LIKELIHOOD = DirichletPrior(diagonal=0.0, off_diagonal=0.0, class_share=0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatingPatterns:
    """Distinct rows of ratings: cells (n_patterns, n_raters x n_classes) and the items of each."""

    cells: "sparse.csr_array[np.float64]"
    votes: FloatArray
    multiplicity: FloatArray
    known: IntArray
    of_item: NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EmState:
    """Parameters, the posterior of each pattern, and the likelihood."""

    shares: FloatArray
    confusion: FloatArray
    support: FloatArray
    posterior: FloatArray
    log_likelihood: float
    penalised: float


def rating_patterns(counts: NDArray[np.integer], known: IntArray) -> RatingPatterns:
    """Reduce items to distinct rows, sorted: the order of items then changes nothing."""
    n_items, n_raters, n_classes = counts.shape
    largest = max(int(counts.max(initial=0)), n_classes)
    rows = np.column_stack([counts.reshape(n_items, n_raters * n_classes), known + 1])
    rows = np.ascontiguousarray(rows, dtype=np.min_scalar_type(largest))
    # One byte string per row sorts several times faster than columns.
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, of_item, multiplicity = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    distinct = counts[first].astype(np.float64)
    from scipy import sparse

    return RatingPatterns(
        # Most cells are 0: a sparse product takes a tenth of the time and the memory.
        cells=sparse.csr_array(distinct.reshape(first.size, n_raters * n_classes)),
        votes=distinct.sum(axis=1),
        # Items that nobody rated would only slow the shares down.
        multiplicity=np.where(distinct.sum(axis=(1, 2)) > 0, multiplicity, 0).astype(np.float64),
        known=known[first],
        of_item=of_item,
    )


def starting_posterior(patterns: RatingPatterns) -> FloatArray:
    """Return the vote shares of each class, with known classes fixed."""
    ratings = patterns.votes.sum(axis=1, keepdims=True)
    n_classes = patterns.votes.shape[1]
    shares = np.where(ratings > 0, patterns.votes / np.maximum(ratings, 1), 1 / n_classes)
    gold = patterns.known != MISSING
    shares[gold] = np.eye(n_classes)[patterns.known[gold]]
    return np.asarray(shares)


def maximised(
    patterns: RatingPatterns, posterior: FloatArray, n_raters: int, prior: DirichletPrior
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return class shares, confusions and their support from expected classes: the M step."""
    q = posterior.shape[1]
    weighted = posterior * patterns.multiplicity[:, None]
    given = np.asarray(patterns.cells.T @ weighted).reshape(n_raters, q, q)
    support = given.sum(axis=1)
    rows = given.transpose(0, 2, 1) + _pseudo_ratings(q, prior)
    return _to_shares(weighted.sum(axis=0) + prior.class_share), _to_shares(rows), support


def _pseudo_ratings(n_classes: int, prior: DirichletPrior) -> FloatArray:
    return np.where(np.eye(n_classes) > 0, prior.diagonal, prior.off_diagonal)


def _to_shares(amounts: FloatArray) -> FloatArray:
    """Return amounts as shares of their last axis, uniform where the sum is 0."""
    total = amounts.sum(axis=-1, keepdims=True)
    shares: FloatArray = np.where(
        total > 0, amounts / np.where(total > 0, total, 1), 1 / amounts.shape[-1]
    )
    return shares


def expected(
    patterns: RatingPatterns,
    shares: FloatArray,
    confusion: FloatArray,
    support: FloatArray,
    prior: DirichletPrior,
) -> EmState:
    """Return the posterior of each pattern under the parameters, and the likelihood: the E step."""
    n_raters, q, _ = confusion.shape
    log_shares = np.log(np.maximum(shares, SMALLEST))
    log_confusion = np.log(np.maximum(confusion, SMALLEST))
    by_cell = log_confusion.transpose(0, 2, 1).reshape(n_raters * q, q)
    joint = np.asarray(patterns.cells @ by_cell) + log_shares
    gold = patterns.known != MISSING
    joint[gold] = np.where(np.eye(q)[patterns.known[gold]] > 0, joint[gold], -np.inf)
    highest = joint.max(axis=1, keepdims=True)
    relative = np.exp(joint - highest)
    total = relative.sum(axis=1, keepdims=True)
    fit = float(patterns.multiplicity @ (highest + np.log(total))[:, 0])
    penalty = (_pseudo_ratings(q, prior) * log_confusion).sum()
    penalty += prior.class_share * log_shares.sum()
    return EmState(
        shares=shares,
        confusion=confusion,
        support=support,
        posterior=relative / total,
        log_likelihood=fit,
        penalised=fit + float(penalty),
    )


FEW_RATINGS = (
    f"most items have fewer than {FEWEST_RATINGS} ratings, so the result leans on the prior and "
    "the start"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatentTruth:
    """Unobserved classes, estimated from the ratings and a model of their errors.

    Parameters
    ----------
    posterior : float array, shape (n_items, n_classes)
        The class shares for an item that nobody rated.
    confusion : float array, shape (n_raters, n_classes, n_classes)
        Probability that a rater gives a class (last axis) to an item of a class (middle axis).
    support : float array, shape (n_raters, n_classes)
        Expected ratings behind each row of `confusion`; where it is 0 the row is the prior's, or
        uniform without one.
    log_likelihood, penalised_log_likelihood : float
        In nats, without multinomial coefficients; the second adds the log prior, up to a constant,
        and never falls from one iteration to the next.
    entropy : float array, shape (n_items,)
        Of the posterior, in bits: 0 is certain, 1 is two classes at even odds.
    order : int array, shape (n_rated - n_known,)
        Rows to adjudicate, highest entropy first, ties in the order given; without items that
        nobody rated and items of known class.
    status : str, default "ok"
        ``"provisional: ..."`` when the result depends on the prior or has not converged,
        ``"not_estimable: ..."`` without ratings.
    """

    posterior: FloatArray
    class_shares: FloatArray
    confusion: FloatArray
    support: FloatArray
    log_likelihood: float
    penalised_log_likelihood: float
    iterations: int
    converged: bool
    entropy: FloatArray
    order: NDArray[np.intp]
    method: str
    status: str = OK


def dawid_skene(
    codes: ArrayLike,
    *,
    n_classes: int,
    known: ArrayLike | None = None,
    prior: DirichletPrior = WEAK_PRIOR,
    tolerance: float = 1e-8,
    max_iterations: int = 2_000,
) -> LatentTruth:
    """Estimate the class of each item and each rater's confusion of classes from ratings.

    Given its class, the ratings of an item are independent, and each rater errs in the same way
    on every item of a class. Ratings are missing at random.

    For the order of adjudication and for reviewer profiles, never a measure of reliability: the
    model assumes one right class and independent errors, so raters who share an error look right.
    Raters worse than chance can swap the names of classes (label switching); the starting values
    and the prior's diagonal prevent it, but not when most raters are worse than chance. The rows
    of a rater with fewer than about 50 items depend on the prior.

    `codes`, `n_classes` and their errors are as in `count_patterns`, the others as in
    `dawid_skene_from_counts`.

    References
    ----------
    Dawid and Skene (1979), J. Roy. Statist. Soc. C 28. https://doi.org/10.2307/2346806
    Paun et al. (2018), Trans. Assoc. Comput. Linguist. 6. https://doi.org/10.1162/tacl_a_00040

    Examples
    --------
    Two raters always agree; the third gives class 1 to one item of class 0, and is right in 2 of 3:

    >>> codes = [[0, 0, 0], [0, 0, 0], [0, 0, 1], [1, 1, 1]]
    >>> found = dawid_skene(codes, n_classes=2, prior=MAXIMUM_LIKELIHOOD)
    >>> found.confusion[2].round(3).tolist(), found.class_shares.round(3).tolist()
    ([[0.667, 0.333], [0.0, 1.0]], [0.75, 0.25])
    """
    array = validated_codes(codes, n_classes=n_classes)
    counts = (array[:, :, None] == np.arange(n_classes)).astype(np.uint8)
    return dawid_skene_from_counts(
        counts, known=known, prior=prior, tolerance=tolerance, max_iterations=max_iterations
    )


def dawid_skene_from_counts(
    counts: ArrayLike,
    *,
    known: ArrayLike | None = None,
    prior: DirichletPrior = WEAK_PRIOR,
    tolerance: float = 1e-8,
    max_iterations: int = 2_000,
) -> LatentTruth:
    """Estimate as `dawid_skene` where a rater may have rated an item several times.

    EM from the vote shares, in logarithms, over distinct rows of ratings.

    Parameters
    ----------
    counts : array-like of int, shape (n_items, n_raters, n_classes)
        Ratings of each class by item and rater.
    known : array-like of int, shape (n_items,), optional
        Class of items whose class is known, -1 elsewhere. They count in the class shares, so they
        should be drawn like the others.
    prior : DirichletPrior, default `WEAK_PRIOR`
        `MAXIMUM_LIKELIHOOD` for none.
    tolerance : float, default 1e-8
        Convergence is a change of the penalised log likelihood below this, or below 1e-13 of its
        size, where a change is rounding.

    Raises
    ------
    ValueError
        If the array is not three-dimensional, not of integers, holds a negative count or has
        fewer than two classes; if `known` does not fit it; if `tolerance` is not positive or
        `max_iterations` below 1.

    Examples
    --------
    The third item is the one on which the first rater varies and the second disagrees:

    >>> counts = [[[3, 0], [1, 0]], [[0, 3], [0, 1]], [[2, 1], [0, 1]]]
    >>> dawid_skene_from_counts(counts).order.tolist()[0]
    2
    """
    array = _validated_counts(counts)
    gold = _validated_known(known, array)
    if not tolerance > 0:
        raise ValueError(f"tolerance must be positive, got {tolerance!r}")
    if max_iterations < 1:
        raise ValueError(f"max_iterations must be at least 1, got {max_iterations!r}")
    patterns = rating_patterns(array, gold)
    n_raters = array.shape[1]
    posterior = starting_posterior(patterns)
    state = expected(patterns, *maximised(patterns, posterior, n_raters, prior), prior)
    iterations, converged = 1, False
    while not converged and iterations < max_iterations:
        before = state.penalised
        parameters = maximised(patterns, state.posterior, n_raters, prior)
        state = expected(patterns, *parameters, prior)
        iterations += 1
        least = max(tolerance, ROUNDING * abs(before))
        converged = bool(abs(state.penalised - before) < least)
    return _result(array, gold, patterns, state, prior, iterations, converged)


def _validated_counts(counts: ArrayLike) -> NDArray[np.integer]:
    array = np.asarray(counts)
    if array.ndim != 3 or array.shape[2] < 2:
        raise ValueError(
            "counts must have shape (n_items, n_raters, n_classes) with two classes or more, "
            f"got {array.shape!r}"
        )
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"counts must be integers, got dtype {array.dtype!s}")
    if array.size and array.min() < 0:
        raise ValueError(f"counts must not be negative, got {array.min()}")
    return array


def _validated_known(known: ArrayLike | None, counts: NDArray[np.integer]) -> IntArray:
    n_items, _, n_classes = counts.shape
    if known is None:
        return np.full(n_items, MISSING, dtype=np.int64)
    gold = np.asarray(known)
    if gold.shape != (n_items,):
        raise ValueError(f"known must have shape ({n_items},), got {gold.shape!r}")
    return validated_codes(gold[:, None], n_classes=n_classes)[:, 0]


def _result(
    counts: NDArray[np.integer],
    known: IntArray,
    patterns: RatingPatterns,
    state: EmState,
    prior: DirichletPrior,
    iterations: int,
    converged: bool,
) -> LatentTruth:
    posterior = state.posterior
    shown = np.where(posterior > 0, posterior, 1.0)
    entropy = np.abs((shown * np.log2(shown)).sum(axis=1))[patterns.of_item]
    ratings = counts.sum(axis=(1, 2))
    open_items = np.flatnonzero((ratings > 0) & (known == MISSING))
    # Equal odds from different sums differ by rounding, but are ties.
    by_entropy = np.argsort(-entropy[open_items].round(9), kind="stable")
    kind = "maximum likelihood" if prior.flat else "maximum a posteriori"
    return LatentTruth(
        posterior=posterior[patterns.of_item],
        class_shares=state.shares,
        confusion=state.confusion,
        support=state.support,
        log_likelihood=state.log_likelihood,
        penalised_log_likelihood=state.penalised,
        iterations=iterations,
        converged=converged,
        entropy=entropy,
        order=open_items[by_entropy],
        method=f"Dawid-Skene, {kind}, EM from vote shares",
        status=_status(counts, ratings[open_items], iterations, converged),
    )


def _status(
    counts: NDArray[np.integer], ratings: NDArray[np.integer], iterations: int, converged: bool
) -> str:
    if counts.sum() == 0:
        return NO_RATINGS
    reasons = []
    if not converged:
        reasons.append(f"not converged after {iterations:,} iterations; allow more")
    if (counts.sum(axis=(0, 2)) > 0).sum() == 1:
        reasons.append(ONE_RATER)
    elif ratings.size and (ratings < FEWEST_RATINGS).mean() > 0.5:
        reasons.append(FEW_RATINGS)
    if (counts.sum(axis=(0, 1)) > 0).sum() == 1:
        reasons.append(ONE_CLASS)
    return f"provisional: {'; '.join(reasons)}" if reasons else OK
