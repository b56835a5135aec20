"""Intervals: quantiles, Wilson, Newcombe, jackknife, bootstrap, exact bounds.

`scipy.stats` has the quantiles too, but takes longer to load than a report takes to make.
"""

from dataclasses import dataclass
from math import hypot, inf

import numpy as np
from numpy.typing import NDArray
from scipy import special

from calibration.statistics.estimate import OK, Estimate, FloatArray, IntArray, not_estimable

MINIMUM_UNITS = 5

# Counts that are drawn at once, so that a million units do not fill the memory.
CELLS = 4_000_000

# A variance this small is rounding error of sums, not variation between traces.
NO_VARIANCE = 1e-20

NO_VARIATION = "no variation seen"
METHOD = "delete-one jackknife, Fisher z"
LOGIT = "delete-one jackknife, logit"
EXACT = "exact bound"
NO_DISAGREEMENT = "no disagreement seen"

BELOW_THE_SCALE = (
    "no interval: a value of -1 or less has no place on the Fisher scale; rate more items"
)

NO_ITEM_VARIATION = "no variation between items seen"

# A spread this small is rounding error of sums, not variation between items.
NO_SPREAD = 1e-10

WILSON = "Wilson"
# Sizes for which a plan must hold in a row, and the largest that is looked at.
IN_A_ROW, MOST_TASKS = 20, 20_000


def normal_quantile(share: float) -> float:
    """Return the standard normal quantile at a probability."""
    return float(special.ndtri(share))


def normal_chance(point: float) -> float:
    """Return the standard normal probability below a point."""
    return float(special.ndtr(point))


def t_quantile(share: float, freedom: float) -> float:
    """Return the quantile of Student's t at a probability."""
    return float(special.stdtrit(freedom, share))


def t_chance(point: float, freedom: float) -> float:
    """Return the probability of Student's t below a point."""
    return float(special.stdtr(freedom, point))


def beta_quantile(share: float, a: float, b: float) -> float:
    """Return the quantile of the beta distribution at a probability."""
    return float(special.betaincinv(a, b, share))


def f_chance_above(point: float, above: float, below: float) -> float:
    """Return the probability of F above a point, from the df of numerator and denominator."""
    return float(special.fdtrc(above, below, point))


def expanded_tail(tail: float, *, factor: float, freedom: float) -> float:
    """Return the share of the draws to leave beyond each limit of a percentile interval.

    `factor` is by how much the standard deviation of the draws is too small: sqrt(n / (n - 1)) for
    resamples of n units, whose tail is that of a normal and not of t with `freedom`. For 20 units,
    the normal probability below -2.093 sqrt(20 / 19):

    >>> expanded_tail(0.025, factor=(20 / 19) ** 0.5, freedom=19)
    0.01588
    """
    return normal_chance(factor * t_quantile(tail, freedom))


def two_sided_z(confidence_level: float) -> float:
    """Return the standard normal quantile of a two-sided interval."""
    return float(special.ndtri((1 + confidence_level) / 2))


def two_sided_t(confidence_level: float, df: float) -> float:
    """Return the t quantile of a two-sided interval with `df` degrees of freedom."""
    return float(special.stdtrit(df, (1 + confidence_level) / 2))


def clipped(lower: float, upper: float) -> tuple[float, float]:
    """Cut an interval for a rate to [0, 1]."""
    return min(1.0, max(0.0, float(lower))), max(0.0, min(1.0, float(upper)))


def zero_event_upper_bound(n: float, *, confidence_level: float) -> float:
    """Return the upper Clopper-Pearson limit for a share when 0 of `n` were seen.

    >>> zero_event_upper_bound(20, confidence_level=0.95)
    0.16843
    """
    return float(1 - ((1 - confidence_level) / 2) ** (1 / n))


def unanimous_interval(
    value: float, n: float, *, confidence_level: float, lowest: float = 0.0, highest: float = 1.0
) -> tuple[float, float]:
    """Return the exact bounds of a mean in [lowest, highest] when all `n` units are equal.

    >>> unanimous_interval(0.0, 20, confidence_level=0.95)
    (0.0, 0.16843)
    """
    share = zero_event_upper_bound(n, confidence_level=confidence_level)
    kept = value * (1 - share)
    return max(lowest, kept + lowest * share), min(highest, kept + highest * share)


def unseen_reach(shares: FloatArray, *, confidence_level: float) -> float:
    """Return the largest mean of errors of which no unit shows one, where units count unequally.

    Unit i has the share h_i of the mean. The mean sum h_i q_i is the largest for which no unit is
    wrong with probability alpha/2: q_i = max(0, 1 - x/h_i), with x from prod (1 - q_i) = alpha/2.
    With equal shares it is the Clopper-Pearson limit of `zero_event_upper_bound`.

    Parameters
    ----------
    shares : float array, shape (n,)
        Positive, summing to 1.

    Examples
    --------
    >>> unseen_reach(np.full(20, 0.05), confidence_level=0.95)
    0.16843
    >>> unseen_reach(np.array([0.9, 0.1]), confidence_level=0.95)
    0.90513
    """
    largest = np.sort(shares)[::-1]
    logs = np.log(largest)
    # The first m units are the ones that may be wrong; x lies between the m-th and the next.
    x = (np.log((1 - confidence_level) / 2) + np.cumsum(logs)) / np.arange(1, logs.size + 1)
    m = int(np.argmax(x >= np.append(logs[1:], -inf)))
    return float((largest[: m + 1] - np.exp(x[m])).sum())


def unseen_share(population: int, sample: int, *, confidence_level: float) -> float:
    """Return the largest share of a population of which a sample shows none.

    The largest M of N that a random sample of n misses with probability alpha/2 or more.

    >>> unseen_share(400, 40, confidence_level=0.95)
    0.0825
    """
    tail = float(np.log((1 - confidence_level) / 2))
    wrong = np.arange(max(0, population - sample) + 1)
    right = population - wrong
    missed = (
        special.gammaln(right + 1.0) - special.gammaln(right - sample + 1.0)
        - special.gammaln(population + 1.0) + special.gammaln(population - sample + 1.0)
    )  # fmt: skip
    return float(wrong[missed >= tail - 1e-12].max(initial=0) / population)


def jackknife_se(left_out: FloatArray, multiplicity: NDArray[np.int64]) -> float:
    """Return the delete-one standard error from the values with one item of each pattern left out.

    It is the square root of (n - 1)/n times the sum over items of the squared deviations.

    Parameters
    ----------
    left_out : float array, shape (n_patterns,)
        The coefficient without one item of the pattern.
    multiplicity : int array, shape (n_patterns,)
        Items that show the pattern.

    Examples
    --------
    The mean of 0, 0, 3 without each item is 1.5, 1.5, 0, and s / sqrt(n) = sqrt(3) / sqrt(3):

    >>> jackknife_se(np.array([1.5, 0.0]), np.array([2, 1]))
    1.0
    """
    n = multiplicity.sum()
    centred = left_out - multiplicity @ left_out / n
    return float(np.sqrt((n - 1) / n * (multiplicity @ centred**2)))


def fisher_z_interval(
    value: float, se: float, *, df: float, confidence_level: float, lowest: float = -1.0
) -> tuple[float, float]:
    """Return tanh(atanh(value) -+ t SE / (1 - value^2)), cut at `lowest` for a share.

    Moss (2024), "Measures of agreement with multiple raters: Frechet variances and inference",
    Psychometrika 89. https://doi.org/10.1007/s11336-023-09945-2

    >>> fisher_z_interval(0.5, 0.1, df=10**9, confidence_level=0.95)
    (0.280, 0.670)
    """
    centre = np.arctanh(value)
    reach = two_sided_t(confidence_level, df) * se / (1 - value**2)
    return max(lowest, float(np.tanh(centre - reach))), float(np.tanh(centre + reach))


def t_interval(
    value: float,
    se: float,
    *,
    df: float,
    confidence_level: float,
    lowest: float = -inf,
    highest: float = inf,
) -> tuple[float, float]:
    """Return value -+ t SE, cut to [lowest, highest].

    With s = .57735 and t(3 df) = 3.18245:

    >>> t_interval(0.5, 0.57735 / 2, df=3, confidence_level=0.95)
    (-0.41869, 1.41869)
    """
    reach = two_sided_t(confidence_level, df) * se
    return max(lowest, value - reach), min(highest, value + reach)


def logit_interval(
    share: float, se: float, *, df: float, confidence_level: float
) -> tuple[float, float]:
    """Return the limits logit(share) -+ t SE / (share (1 - share)), back as shares.

    The logit of 1/2 is 0 and .1 there is .4: 1 / (1 + exp(+-1.96 x .4)):

    >>> logit_interval(0.5, 0.1, df=10**9, confidence_level=0.95)
    (0.31346, 0.68654)
    """
    centre = special.logit(share)
    reach = two_sided_t(confidence_level, df) * se / (share * (1 - share))
    return float(special.expit(centre - reach)), float(special.expit(centre + reach))


def chance_at_least(found: Estimate, target: float) -> float | None:
    """Return the chance beyond a target that the interval of a rate implies; None without one.

    The side of the interval that faces the target is taken as that of t with the degrees of freedom
    of the estimate (normal without them), on the logit scale where value and limit lie in (0, 1):
    beyond each limit is half of what the interval leaves out. It is a reference distribution, not a
    probability of the true rate.

    Parameters
    ----------
    found : Estimate
    target : float
        Any number.

    Examples
    --------
    An upper limit of .6 leaves .025 above it, the value itself a half:

    >>> rate = Estimate(value=0.5, interval=(0.35, 0.6), n=90, method="logit, normal")
    >>> chance_at_least(rate, 0.6), chance_at_least(rate, 0.5), chance_at_least(rate, 0.35)
    (0.025, 0.5, 0.975)
    """
    if found.value is None or found.interval is None:
        return None
    limit, centre, wanted = found.interval[1 if target > found.value else 0], found.value, target
    if all(0 < end < 1 for end in (limit, centre, wanted)):
        limit, centre, wanted = map(float, special.logit((limit, centre, wanted)))
    if limit == centre:
        return None
    tail, freedom = (1 - found.confidence_level) / 2, found.df or inf
    reach = t_quantile(1 - tail, freedom) if freedom < inf else normal_quantile(1 - tail)
    place = reach * (centre - wanted) / abs(limit - centre)
    return t_chance(place, freedom) if freedom < inf else normal_chance(place)


def wilson_interval(successes: float, n: float, *, confidence_level: float) -> tuple[float, float]:
    """Return the Wilson score interval for a share; counts may be fractional (effective).

    Wilson (1927), J. Amer. Statist. Assoc. 22. https://doi.org/10.2307/2276774

    None of 20: the upper limit is z^2 / (20 + z^2) = 3.8415 / 23.8415.

    >>> wilson_interval(0, 20, confidence_level=0.95)
    (0.0, 0.16113)
    """
    z = two_sided_z(confidence_level)
    share = successes / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(max(0.0, share * (1 - share)) / n + z**2 / (4 * n**2))
    # At 0 and 1 the limit equals the share exactly, which rounding would miss.
    lower = 0.0 if share <= 0 else float(centre - reach)
    upper = 1.0 if share >= 1 else float(centre + reach)
    return min(1.0, max(0.0, lower)), max(0.0, min(1.0, upper))


def wilson_share(
    successes: float,
    n: float,
    *,
    nothing: str,
    count: int | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate a share with its Wilson interval; counts may be fractional (effective).

    Parameters
    ----------
    nothing : str
        Status when `n` is 0: why, and what would help.
    count : int, optional
        Traces behind the share, where `n` is the effective number of them.

    Examples
    --------
    >>> print(wilson_share(8, 10, nothing="no traces: label some"))
    0.800 [0.490, 0.943] (95% Wilson, n=10)
    """
    if n <= 0:
        return not_estimable(nothing, method=WILSON, confidence_level=confidence_level)
    return Estimate(
        value=float(successes / n),
        interval=wilson_interval(successes, n, confidence_level=confidence_level),
        n=round(n) if count is None else count,
        method=WILSON,
        confidence_level=confidence_level,
    )


def exact_limits(share: float, n: float, confidence_level: float) -> tuple[float, float]:
    """Return the exact limits of a share of `n` trials; `n` need not be a whole number.

    Clopper and Pearson (1934), Biometrika 26. https://doi.org/10.1093/biomet/26.4.404

    >>> exact_limits(0.5, 10, 0.95)
    (0.18709, 0.81291)
    """
    tail = (1 - confidence_level) / 2
    low = 0.0 if share <= 0 else beta_quantile(tail, n * share, n * (1 - share) + 1)
    high = 1.0 if share >= 1 else beta_quantile(1 - tail, n * share + 1, n * (1 - share))
    return low, high


def chance_to_pass(
    n: int, true: float, threshold: float, *, rule: str, tail: float = 0.05
) -> float:
    """Return the probability that `n` runs of one task each do not fail a gate, exact binomial.

    Parameters
    ----------
    n : int
        Tasks, independent, each with one run that succeeds or fails.
    true : float
        Probability that a run succeeds.
    threshold : float
        In (0, 1).
    rule : {"value", "shown_good", "not_shown_bad"}
        The share reaches the threshold; its one-sided lower limit does (Clopper and Pearson); or
        its one-sided upper limit does, where the gate passes or is open.
    tail : float, default 0.05
        Error of the one-sided limit.

    Examples
    --------
    Two of two are needed, .5 x .5, and no share of two shows .8:

    >>> chance_to_pass(2, 0.5, 0.8, rule="value"), chance_to_pass(2, 0.5, 0.8, rule="shown_good")
    (0.25, 0.0)
    """
    counts = np.arange(n + 1)
    if rule == "value":
        passes = counts / n >= threshold - 1e-9
    elif rule == "shown_good":
        # P(X >= x) at the threshold is at most the tail: the lower limit is above it.
        passes = special.bdtrc(counts - 1.0, n, threshold) <= tail
        passes[0] = False
    else:
        passes = special.bdtr(counts.astype(np.float64), n, threshold) >= tail
    if not passes.any():
        return 0.0
    least = int(np.argmax(passes))
    return 1.0 if least == 0 else float(special.bdtrc(least - 1.0, n, true))


def tasks_to_show(threshold: float, true: float, *, power: float = 0.8) -> int | None:
    """Return how many tasks show a rate above a threshold; None where `MOST_TASKS` do not.

    The smallest n from which, for 20 sizes in a row, the exact one-sided 95 % lower limit reaches
    the threshold with probability `power` or more when each task succeeds with probability `true`:
    the probability is no steady function of n.

    Examples
    --------
    >>> tasks_to_show(0.8, 0.9), tasks_to_show(0.9, 0.95)
    (94, 203)
    """
    if not 0 < threshold < true <= 1:
        return None
    least, row = 1, 0
    for n in range(1, MOST_TASKS + 1):
        # The fewest successes that show it never become fewer.
        while least <= n and special.bdtrc(least - 1.0, n, threshold) > 0.05:
            least += 1
        reached = least <= n and special.bdtrc(least - 1.0, n, true) >= power
        row = row + 1 if reached else 0
        if row == IN_A_ROW:
            return n - IN_A_ROW + 1
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Runs in which an event was looked for (`n`, of `n_tasks` tasks), and those that have it."""

    count: int
    n: int
    n_tasks: int

    def interval(self, confidence_level: float) -> tuple[float, float]:
        """Return the exact interval of the share; without events its one-sided upper bound.

        Runs are independent. None of 500: 1 - .05^(1/500).

        >>> Events(count=0, n=500, n_tasks=500).interval(0.95)
        (0.0, 0.0059736)
        """
        if self.count == 0:
            return 0.0, 1 - (1 - confidence_level) ** (1 / self.n)
        return exact_limits(self.count / self.n, self.n, confidence_level)

    def bound_by_task(self, confidence_level: float) -> float:
        """Return the upper bound without events when the runs of a task count as one."""
        return float(1 - (1 - confidence_level) ** (1 / self.n_tasks))


def added_reach(first: Estimate, second: Estimate) -> tuple[float, float] | None:
    """Return how far the limits of first - second lie below and above it (MOVER).

    The distances from value to limit are added in squares, which keeps asymmetric intervals and
    exact bounds as they are. None where one of the two has no interval.

    Newcombe (1998), Stat. Med. 17, method 10, for two shares.
    https://doi.org/10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I
    Zou and Donner (2008), "Construction of confidence limits about effect measures", Stat. Med. 27.
    https://doi.org/10.1002/sim.3095
    """
    if first.value is None or second.value is None:
        return None
    if first.interval is None or second.interval is None:
        return None
    down = hypot(first.value - first.interval[0], second.interval[1] - second.value)
    up = hypot(first.interval[1] - first.value, second.value - second.interval[0])
    return down, up


def independent_difference(
    first: Estimate,
    second: Estimate,
    *,
    method: str,
    nothing: str = "one of the two has no estimate: label more of its traces",
    furthest: float = 1.0,
) -> Estimate:
    """Estimate the difference of two independent estimates, with the interval of `added_reach`.

    Parameters
    ----------
    first, second : Estimate
        The difference is `first` less `second`; without one of their intervals it has none.
    nothing : str
        Status where one of the two has no value: why, and what would help.
    furthest : float, default 1
        Largest possible difference; the interval is cut there.

    Examples
    --------
    Newcombe's example of 56/70 and 48/80 has the limits .0524 and .3339:

    >>> first, second = (wilson_share(k, n, nothing="") for k, n in ((56, 70), (48, 80)))
    >>> independent_difference(first, second, method="Newcombe").interval
    (0.0524, 0.3339)
    """
    n, level = first.n + second.n, first.confidence_level
    if first.value is None or second.value is None:
        return not_estimable(nothing, method=method, n=n, confidence_level=level)
    value, reach = first.value - second.value, added_reach(first, second)
    status, interval, se = OK, None, None
    if reach is None:
        status = "no interval: one of the two has none; label more of its traces"
    else:
        interval = max(-furthest, value - reach[0]), min(furthest, value + reach[1])
        exact = NO_VARIATION in (first.status, second.status)
        if first.se is not None and second.se is not None and not exact:
            se = hypot(first.se, second.se)
    return Estimate(
        value=value, interval=interval, n=n, method=method, confidence_level=level,
        status=status, se=se,
    )  # fmt: skip


def resampled_sums(
    sums: FloatArray,
    multiplicity: IntArray,
    *,
    n_resamples: int,
    rng: np.random.Generator,
    one_by_one: bool = False,
) -> FloatArray:
    """Return the sums of units drawn with replacement, shape (n_resamples, n_features).

    Without units there are no rows.

    Parameters
    ----------
    sums : float array, shape (n_cells, n_features)
        What a unit of each cell adds.
    multiplicity : int array, shape (n_cells,)
        Equal units in the cell: a resample is a multinomial draw over cells.
    one_by_one : bool, default False
        Draw every unit by itself, which is faster where few are equal.

    Examples
    --------
    Any two of two equal units sum to two:

    >>> rng = np.random.default_rng(1)
    >>> resampled_sums(np.ones((1, 1)), np.array([2]), n_resamples=3, rng=rng).tolist()
    [[2.0], [2.0], [2.0]]
    """
    size, n_cells = int(multiplicity.sum()), len(sums)
    if size == 0:
        return np.zeros((0, sums.shape[1]))
    found = np.zeros((n_resamples, sums.shape[1]))
    owner = np.repeat(np.arange(n_cells), multiplicity) if one_by_one else None
    block = max(1, CELLS // (size if one_by_one else n_cells))
    for start in range(0, n_resamples, block):
        n = min(block, n_resamples - start)
        if owner is None:
            counts = rng.multinomial(size, multiplicity / size, size=n)
        else:
            place = owner[rng.integers(0, size, size=(n, size))] + np.arange(n)[:, None] * n_cells
            counts = np.bincount(place.ravel(), minlength=n * n_cells).reshape(n, n_cells)
        found[start : start + n] = counts.astype(np.float64) @ sums
    return found


def bias_shift(draws: FloatArray, value: float) -> float:
    """Return the bias correction of a percentile interval: by how much the draws lie below.

    Three of four draws are below the value, which is normal with .674 beyond the median:

    >>> round(bias_shift(np.array([1.0, 2.0, 3.0, 5.0]), 4.0), 3)
    0.674
    """
    # Draws equal to the value up to rounding of sums count as ties.
    ties = np.isclose(draws, value, rtol=0, atol=1e-12)
    below = np.mean((draws < value) & ~ties) + np.mean(ties) / 2
    return normal_quantile(float(np.clip(below, 1 / draws.size, 1 - 1 / draws.size)))


def bias_and_skew(
    draws: FloatArray, value: float, influence: FloatArray, multiplicity: IntArray
) -> tuple[float, float]:
    """Return the bias correction and the acceleration of a BCa interval.

    `influence`, shape (n_cells,), is what a unit of each cell moves the value by, centred.

    Efron (1987), J. Am. Stat. Assoc. 82. https://doi.org/10.1080/01621459.1987.10478410

    The value is the median of the draws, and the influence is symmetric:

    >>> bias_and_skew(np.array([1.0, 3.0]), 2.0, np.array([-1.0, 1.0]), np.array([1, 1]))
    (0.0, 0.0)
    """
    second, third = float(multiplicity @ influence**2), float(multiplicity @ influence**3)
    return bias_shift(draws, value), third / (6 * second**1.5)


def bca_shares(shares: FloatArray, shift: float, skew: float) -> FloatArray:
    """Return the shares of the draws at which BCa puts the limits.

    >>> bca_shares(np.array([0.025, 0.975]), 0.0, 0.0)
    array([0.025, 0.975])
    """
    z = shift + special.ndtri(shares)
    return np.asarray(special.ndtr(shift + z / (1 - skew * z)), dtype=np.float64)


def percentile_estimate(
    value: float, draws: FloatArray, n: int, method: str, confidence_level: float, status: str
) -> Estimate:
    """Return a value with the percentile interval of its resamples, cut to [0, 1].

    No interval when `status` gives a reason against one.
    """
    tails = [(1 - confidence_level) / 2, (1 + confidence_level) / 2]
    kept = draws.clip(0.0, 1.0)
    lower, upper = np.quantile(kept, tails)
    return Estimate(
        value=min(1.0, max(0.0, value)),
        interval=clipped(lower, upper) if status == OK else None,
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=status,
        se=float(kept.std(ddof=1)) if status == OK else None,
    )
