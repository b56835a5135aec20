"""Sample size for an interval for agreement of a given width, by simulation."""

from dataclasses import dataclass, field
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from calibration.agreement.coefficients import KRIPPENDORFF_ALPHA, Coefficient, estimate
from calibration.agreement.ratings import CountPatterns
from calibration.statistics.estimate import OK, FloatArray, IntArray, check_confidence_level
from calibration.statistics.intervals import METHOD

MOST_ITEMS = 100_000
FEWEST_ITEMS = 4

# Largest number of rows of class counts: the table of their probabilities grows with it.
MOST_PATTERNS = 300_000

# The search ends when the bracket is this narrow: Monte Carlo error is about as large.
NARROW = 0.01

TYPICAL, ASSURED = 0.5, 0.9

# Repetitions of the steps towards the bracket, which need only the order of magnitude.
ROUGH = 100

MONTE_CARLO_LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsNeeded:
    """The smallest number of items at which a share of all samples meets the target.

    `assurance` : that share, 0.5 for the median, 0.9 for nine samples in ten
    `n` : items, to about 1 %; None beyond the bound
    `half_width` : quantile of the simulated half-widths at `n`, at or below the target
    `half_width_interval` : its 95 % Monte Carlo interval, from order statistics; None when so many
        samples have no interval for agreement that there is no upper end
    `repetitions` : simulated samples at `n`
    """

    assurance: float
    n: int | None
    half_width: float | None
    half_width_interval: tuple[float, float] | None
    repetitions: int
    status: str = OK


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementPlan:
    """Number of items for agreement, for the median sample and for nine in ten."""

    coefficient: str
    alpha: float
    class_shares: tuple[float, ...]
    n_raters: int
    missing: float
    target: float
    confidence_level: float
    typical: ItemsNeeded
    assured: ItemsNeeded
    method: str


def plan_items(
    class_shares: ArrayLike,
    *,
    alpha: float,
    n_raters: int,
    half_width: float,
    rng: np.random.Generator,
    missing: float = 0.0,
    confidence_level: float = 0.95,
    coefficient: Coefficient = KRIPPENDORFF_ALPHA,
    repetitions: int = 1_000,
) -> AgreementPlan:
    """Estimate the number of items for an interval of alpha, or of AC1, of a given half-width.

    Each rater knows the class of an item with probability sqrt(alpha), else names a class drawn
    from the shares, independently of the others; ratings are missing at random. Alpha is then the
    population value for all shares. Raters who share their errors need more items.

    The interval is the reported one (`estimate`), so the plan also holds at high agreement and in
    small samples, where a normal approximation is too narrow. A sample is a multinomial draw of
    patterns with exact probabilities. The search brackets n by half-width ~ 1 / sqrt(n) and
    bisects. A part that needs more than 100,000 items has no `n`, and its status says so.

    Parameters
    ----------
    class_shares : array-like of float, shape (n_classes,)
        Share of each declared class, used or not; sums to 1 within .01.
    alpha : float
        Expected alpha, in [0, 1].
    n_raters : int
        Raters who are given each item, at least 2.
    half_width : float, in (0, 1)
    missing : float, default 0.0
        Share of the ratings that will not be made, in [0, 1).
    coefficient : Coefficient, default `KRIPPENDORFF_ALPHA`
    repetitions : int, default 1000
        Simulated samples of each number of items tried, at least 100.

    Raises
    ------
    ValueError
        If an argument is outside its range, fewer than two classes have a share, or the ratings
        have more than 300,000 patterns (many raters and classes).

    Examples
    --------
    Two raters agree on .9 of the items where chance is .5: the standard error of alpha is about
    .3 / .5 / sqrt(n), so by a normal approximation (1.96 x .6 / .1)^2 = 138 items.

    >>> rng, given = np.random.default_rng(1), {"alpha": 0.8, "n_raters": 2, "half_width": 0.1}
    >>> plan = plan_items([0.5, 0.5], rng=rng, repetitions=200, **given)
    >>> 138 <= plan.typical.n < 150 <= plan.assured.n
    True
    """
    shares = _validated_shares(class_shares)
    _check(alpha, n_raters, half_width, missing, repetitions)
    check_confidence_level(confidence_level)
    patterns, probabilities = _pattern_probabilities(shares, alpha, n_raters, missing)
    simulation = _Simulation(
        patterns, probabilities, coefficient, confidence_level, repetitions, rng
    )
    return AgreementPlan(
        coefficient=coefficient.name,
        alpha=alpha,
        class_shares=tuple(shares.tolist()),
        n_raters=n_raters,
        missing=missing,
        target=half_width,
        confidence_level=confidence_level,
        typical=_needed(simulation, TYPICAL, half_width),
        assured=_needed(simulation, ASSURED, half_width),
        method=f"simulated samples, {METHOD}",
    )


def _validated_shares(class_shares: ArrayLike) -> FloatArray:
    shares = np.asarray(class_shares, dtype=np.float64)
    if shares.ndim != 1 or not np.isfinite(shares).all() or (shares < 0).any():
        raise ValueError(f"class_shares must be a list of shares from 0 up, got {class_shares!r}")
    if (shares > 0).sum() < 2:
        raise ValueError("class_shares must give two classes or more a share")
    if abs(shares.sum() - 1) > 0.01:
        raise ValueError(f"class_shares must sum to 1, got {shares.sum():.4g}")
    scaled: FloatArray = shares / shares.sum()
    return scaled


def _check(
    alpha: float, n_raters: int, half_width: float, missing: float, repetitions: int
) -> None:
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha must be in [0, 1], got {alpha!r}")
    if n_raters < 2:
        raise ValueError(f"n_raters must be at least 2, got {n_raters!r}")
    if not 0 < half_width < 1:
        raise ValueError(f"half_width must be in (0, 1), got {half_width!r}")
    if not 0 <= missing < 1:
        raise ValueError(f"missing must be in [0, 1), got {missing!r}")
    if repetitions < ROUGH:
        raise ValueError(f"repetitions must be at least {ROUGH}, got {repetitions!r}")


def _pattern_probabilities(
    shares: FloatArray, alpha: float, n_raters: int, missing: float
) -> tuple[IntArray, FloatArray]:
    """Return every row of class counts, (n_patterns, n_classes), and its probability.

    Given the class of an item, its ratings and missing ratings are multinomial.
    """
    used = np.flatnonzero(shares)
    n_kinds = used.size + (missing > 0)
    if comb(n_raters + n_kinds - 1, n_raters) > MOST_PATTERNS:
        raise ValueError(
            f"{n_raters} raters and {used.size} classes have more than {MOST_PATTERNS:,} patterns "
            "of ratings; plan with fewer of either"
        )
    kinds = _compositions(n_raters, n_kinds)
    knows = np.sqrt(alpha)
    given = (1 - knows) * shares[used] + knows * np.eye(used.size)
    if missing > 0:
        given = np.column_stack([(1 - missing) * given, np.full(used.size, missing)])
    ways = special.gammaln(n_raters + 1) - special.gammaln(kinds + 1).sum(axis=1)
    logs = special.xlogy(kinds[None], (given / given.sum(axis=1, keepdims=True))[:, None])
    probabilities = shares[used] @ np.exp(ways + logs.sum(axis=2))
    patterns = np.zeros((kinds.shape[0], shares.size), dtype=np.int64)
    patterns[:, used] = kinds[:, : used.size]
    return patterns, np.asarray(probabilities / probabilities.sum())


def _compositions(total: int, parts: int) -> IntArray:
    """Return every division of `total` ratings into `parts` kinds: stars and bars."""
    bars = np.array(list(combinations(range(total + parts - 1), parts - 1)), dtype=np.int64)
    edges = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), total + parts - 1)])
    return np.diff(edges, axis=1) - 1


@dataclass(slots=True)
class _Simulation:
    """Half-widths of simulated samples, drawn once for each number of items."""

    patterns: IntArray
    probabilities: FloatArray
    coefficient: Coefficient
    confidence_level: float
    repetitions: int
    rng: np.random.Generator
    _drawn: dict[tuple[int, int], FloatArray] = field(default_factory=dict)

    def half_widths(self, n: int, repetitions: int) -> FloatArray:
        """Return the half-widths of samples of `n` items, sorted; infinite without interval."""
        if (n, repetitions) not in self._drawn:
            drawn = np.array([self._half_width(n) for _ in range(repetitions)])
            self._drawn[n, repetitions] = np.sort(drawn)
        return self._drawn[n, repetitions]

    def quantile(self, n: int, assurance: float, *, rough: bool = False) -> float:
        """Return the half-width that a share `assurance` of the samples does not exceed."""
        repetitions = ROUGH if rough else self.repetitions
        rank = int(np.ceil(assurance * repetitions - 1e-9))
        return float(self.half_widths(n, repetitions)[rank - 1])

    def _half_width(self, n: int) -> float:
        multiplicity = self.rng.multinomial(n, self.probabilities)
        seen = np.flatnonzero(multiplicity)
        counts, multiplicity = self.patterns[seen], multiplicity[seen]
        sample = CountPatterns(
            counts=counts,
            multiplicity=multiplicity,
            n_items=n,
            n_ratings=int(multiplicity @ counts.sum(axis=1)),
        )
        found = estimate(self.coefficient, sample, confidence_level=self.confidence_level)
        return np.inf if found.half_width is None else found.half_width


def _needed(simulation: _Simulation, assurance: float, target: float) -> ItemsNeeded:
    """Search for the smallest number of items whose quantile is at most the target."""
    n = _near(simulation, assurance, target)

    def enough(n: int) -> bool:
        return simulation.quantile(n, assurance) <= target

    low, high = n, n
    factor = 1 + 2 * NARROW
    while high < MOST_ITEMS and not enough(high):
        low, high = high, min(MOST_ITEMS, max(high + 1, round(high * factor)))
        factor **= 2
    while low == high and enough(high) and low > FEWEST_ITEMS:
        low = max(FEWEST_ITEMS, min(high - 1, round(high / factor)))
        if enough(low):
            high, factor = low, factor**2
    while high - low > max(1, NARROW * high):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    if not enough(high):
        return ItemsNeeded(
            assurance=assurance, n=None, half_width=None, half_width_interval=None,
            repetitions=simulation.repetitions,
            status=f"not_estimable: more than {MOST_ITEMS:,} items; take a wider interval or more "
            "raters",
        )  # fmt: skip
    return ItemsNeeded(
        assurance=assurance,
        n=high,
        half_width=simulation.quantile(high, assurance),
        half_width_interval=_monte_carlo(
            simulation.half_widths(high, simulation.repetitions), assurance
        ),
        repetitions=simulation.repetitions,
    )


def _near(simulation: _Simulation, assurance: float, target: float) -> int:
    """Return the approximate number of items: half-width ~ 1 / sqrt(n), from few repetitions."""
    n, rough = 100, True
    for _ in range(12):
        found = simulation.quantile(n, assurance, rough=rough)
        scaled = 4 * n if np.isinf(found) else n * (found / target) ** 2
        after = int(np.clip(round(scaled), FEWEST_ITEMS, MOST_ITEMS))
        settled = abs(after - n) <= max(1, 0.1 * n)
        n = after
        if settled and not rough:
            break
        rough = rough and not settled
    return n


def _monte_carlo(half_widths: FloatArray, assurance: float) -> tuple[float, float] | None:
    """Return the order statistics between which the quantile lies."""
    size = half_widths.size
    tail = (1 - MONTE_CARLO_LEVEL) / 2
    below = special.bdtr(np.arange(size + 1), size, assurance)
    low = max(1, int(np.searchsorted(below, tail)))
    high = min(size, int(np.searchsorted(below, 1 - tail)) + 1)
    ends = float(half_widths[low - 1]), float(half_widths[high - 1])
    return None if np.isinf(ends[1]) else ends
