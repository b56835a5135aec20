"""The difference of a ratio between two sides: interval, p-value, what could have been seen."""

from dataclasses import dataclass
from math import hypot, sqrt

import numpy as np

from calibration.estimates import OK, Estimate, not_estimable
from calibration.metrics.arrays import FloatArray
from calibration.metrics.joint import AFTER, BEFORE
from calibration.metrics.laws import normal_chance, normal_quantile, t_chance, t_quantile
from calibration.metrics.resampling import (
    BOOTSTRAP_UNITS,
    MINIMUM_UNITS,
    NO_VARIANCE,
    NO_VARIATION,
    UNDEFINED_DRAWS,
    Resampled,
)
from calibration.metrics.units import Units
from calibration.metrics.variances import (
    linearised_variance,
    satterthwaite,
    stratum_variances,
)

POWER = 0.80


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a rate gained, after minus before.

    Parameters
    ----------
    estimate : Estimate
        The difference as a fraction, in [-1, 1]; the reports print percentage points.
    p_value : float or None
        Two-sided, for a difference of `null`: the level at which the interval would just reach it.
    one_sided : tuple of float or None
        The limits that the true difference exceeds, or stays below, each with
        `estimate.confidence_level`.
    minimum_detectable : float or None
        The smallest true difference that samples like these show with `power`.
    power : float
        Usually .8.
    null : float
        The difference that is tested; 0: none.
    """

    estimate: Estimate
    p_value: float | None
    one_sided: tuple[float, float] | None
    minimum_detectable: float | None
    power: float = POWER
    null: float = 0.0

    @property
    def p_below(self) -> float | None:
        """One-sided p-value of "the true difference is not below `null`"; None without one."""
        if self.p_value is None or self.estimate.value is None:
            return None
        below = self.estimate.value < self.null
        return self.p_value / 2 if below else 1 - self.p_value / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    interval: tuple[float, float]
    one_sided: tuple[float, float]
    p_value: float
    minimum_detectable: float


def difference_of(
    found: Resampled, top: str, bottom: str = "runs", *, power: float = POWER, null: float = 0.0
) -> Difference:
    """Estimate what a ratio gained from one side to the other.

    The bootstrap when both sides have 20 units or more; with 5 to 19 on a side, t with
    Satterthwaite's degrees of freedom; none below. Where one side shows no variation its exact
    bound is combined with the other's interval, by the square-and-add rule. Where all tasks are on
    both sides and all changed alike, the exact bound on the share of tasks that may differ.

    Parameters
    ----------
    found : Resampled
        Resamples of units from `side_by_side`.
    top, bottom : str
        The features of the ratio.
    power : float, default 0.80
        Power of the minimum detectable difference, in (0, 1).
    null : float, default 0
        Difference that the p-value is for.

    References
    ----------
    Zou and Donner (2008), Stat. Med. 27. https://doi.org/10.1002/sim.3095
    Satterthwaite (1946), Biometrics Bulletin 2. https://doi.org/10.2307/3002019
    """
    units = found.units
    one, other = (found.ratio(side + top, side + bottom) for side in (BEFORE, AFTER))
    fewest = min(int(units.entering[units.column(s + bottom)]) for s in (BEFORE, AFTER))
    if one.value is None or other.value is None:
        why = "no run enters this rate on one side: add runs"
        nothing = not_estimable(why, method="difference", confidence_level=found.confidence_level)
        return Difference(
            estimate=nothing, p_value=None, one_sided=None, minimum_detectable=None, power=power,
            null=null,
        )  # fmt: skip
    value = other.value - one.value
    influence = found.influence(AFTER + top, AFTER + bottom) - found.influence(
        BEFORE + top, BEFORE + bottom
    )
    se, status = sqrt(linearised_variance(influence, units)), OK
    method, limits = f"difference, {found.method(fewest)}", None
    draws = _gains(found, top, bottom)
    if fewest < MINIMUM_UNITS:
        status = (
            f"not_estimable: no interval from {fewest} {units.noun} on a side, "
            f"at least {MINIMUM_UNITS} are needed"
        )
    elif se**2 < NO_VARIANCE and _all_paired(units, bottom):
        method, status = f"difference, exact bound over {fewest:,} {units.noun}", NO_VARIATION
        limits = _alike(value, fewest, found.confidence_level, power, null)
    elif NO_VARIATION in (one.status, other.status):
        method, status = "difference, exact bound where all runs score the same", NO_VARIATION
        limits = _added(one, other, value, found.confidence_level, power, null)
    elif fewest < BOOTSTRAP_UNITS or draws is None:
        limits = _by_t(
            value,
            se,
            satterthwaite(*stratum_variances(influence, units)),
            found.confidence_level,
            power,
            null,
        )
    elif np.isnan(draws).any():
        status = UNDEFINED_DRAWS
    else:
        limits = _by_draws(found, draws, value, influence, se, power, null)
    return Difference(
        estimate=Estimate(
            value=value,
            interval=None if limits is None else limits.interval,
            n=units.n,
            method=method,
            confidence_level=found.confidence_level,
            status=status,
            se=se if status == OK and limits is not None else None,
        ),
        p_value=None if limits is None else limits.p_value,
        one_sided=None if limits is None else limits.one_sided,
        minimum_detectable=None if limits is None else limits.minimum_detectable,
        power=power,
        null=null,
    )


def _all_paired(units: Units, bottom: str) -> bool:
    """Return whether every unit that enters is on both sides."""
    here, there = (units.sums[:, units.column(side + bottom)] > 0 for side in (BEFORE, AFTER))
    return bool((here == there).all())


def _gains(found: Resampled, top: str, bottom: str) -> FloatArray | None:
    after = found.ratio_draws(AFTER + top, AFTER + bottom)
    before = found.ratio_draws(BEFORE + top, BEFORE + bottom)
    return None if after is None or before is None else after - before


def _clipped(low: float, high: float) -> tuple[float, float]:
    return max(-1.0, low), min(1.0, high)


def _alike(value: float, n: int, level: float, power: float, null: float) -> _Limits:
    """Bound the share of units that may differ from the others, by anything in [-1, 1]."""
    share = 1 - ((1 - level) / 2) ** (1 / n)
    one_sided = 1 - (1 - level) ** (1 / n)
    p_value = 1.0
    if null != value:
        needed = (null - value) / ((1 if null > value else -1) - value)
        p_value = min(1.0, 2 * float((1 - needed) ** n))
    seen = 1 - (1 - power) ** (1 / n)
    return _Limits(
        interval=(value * (1 - share) - share, value * (1 - share) + share),
        one_sided=(value * (1 - one_sided) - one_sided, value * (1 - one_sided) + one_sided),
        p_value=p_value,
        minimum_detectable=min(1.0, share + seen),
    )


def _by_t(
    value: float, se: float, freedom: float, level: float, power: float, null: float
) -> _Limits:
    reach, one_sided = t_quantile((1 + level) / 2, freedom) * se, t_quantile(level, freedom) * se
    return _Limits(
        interval=_clipped(value - reach, value + reach),
        one_sided=_clipped(value - one_sided, value + one_sided),
        p_value=2 * t_chance(-abs(value - null) / se, freedom) if se > 0 else float(value == null),
        minimum_detectable=reach + t_quantile(power, freedom) * se,
    )


def _by_draws(
    found: Resampled,
    draws: FloatArray,
    value: float,
    influence: FloatArray,
    se: float,
    power: float,
    null: float,
) -> _Limits:
    level = found.confidence_level
    short = found.shortness(influence)
    ends = (1 + level) / 2, power
    if short is None:
        z = sum(map(normal_quantile, ends))
    else:
        z = sum(t_quantile(end, short.freedom) for end in ends)
    return _Limits(
        interval=found.between(draws, value, influence),
        one_sided=found.between(draws, value, influence, tail=1 - level),
        p_value=found.p_value(null, draws, value, influence),
        minimum_detectable=z * se,
    )


def _added(
    one: Estimate, other: Estimate, value: float, level: float, power: float, null: float
) -> _Limits | None:
    if one.interval is None or other.interval is None or one.value is None or other.value is None:
        return None
    down = hypot(other.value - other.interval[0], one.interval[1] - one.value)
    up = hypot(other.interval[1] - other.value, one.value - one.interval[0])
    z, one_sided = normal_quantile((1 + level) / 2), normal_quantile(level)
    toward = down if value > null else up
    return _Limits(
        interval=_clipped(value - down, value + up),
        one_sided=_clipped(value - down * one_sided / z, value + up * one_sided / z),
        p_value=2 * normal_chance(-z * abs(value - null) / toward) if toward > 0 else 1.0,
        minimum_detectable=(1 + normal_quantile(power) / z) * max(down, up),
    )
