"""The difference of two groups: from their own labels, or synthetic with one calibration."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from calibration.correction.confusion import confusion_from_table
from calibration.correction.groups import Group, Kind, estimate_group, synthetic_estimate
from calibration.correction.intervals import FloatArray, check_confidence_level, two_sided_z
from calibration.correction.production import ProductionSums
from calibration.correction.rates import right_inverse, verdict_rates
from calibration.correction.results import Design
from calibration.estimates import OK, Estimate, not_estimable

DIRECT_DIFFERENCE = "both post-stratified on their own labels, limits combined (MOVER)"
SYNTHETIC_DIFFERENCE = "both inverted with the same error rates, delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The difference of two groups.

    Parameters
    ----------
    first, second : str
    kind : str
        ``direct`` when both are estimated from their own labels, else ``synthetic``: then both
        sides are, and the difference may neither pass nor fail a gate.
    sides : tuple of Estimate, length 2
        What it is the difference of; of a synthetic comparison both are, also where a group has an
        estimate of its own.
    difference : Estimate
        First less second.
    flip_chance : float or None
        Chance that the true difference has the other sign, were the error rates the same in both;
        None without a standard error, and for a direct difference.
    flips_at : float or None
        Of a synthetic difference: if the judge gives the best verdict instead of the worst to this
        share more of one group's traces than it would to the other's, the ranking turns around.
    """

    first: str
    second: str
    kind: Kind
    sides: tuple[Estimate, Estimate]
    difference: Estimate
    flip_chance: float | None = None
    flips_at: float | None = None

    @property
    def may_gate(self) -> bool:
        """Whether the difference may pass or fail a gate."""
        return self.kind == "direct" and self.difference.interval is not None


def compare_groups(
    first: Group,
    second: Group,
    table: ArrayLike,
    *,
    names: Sequence[str],
    design: Design = "production",
    pseudo_count: float = 0.5,
    confidence_level: float = 0.95,
) -> Comparison:
    """Estimate the difference of two groups, directly if both have labels enough.

    Parameters
    ----------
    first, second : Group
        They share no traces.
    table, names, design, pseudo_count, confidence_level
        As in `estimate_group`.

    Returns
    -------
    Comparison
        Direct: the limits of the two intervals combined, which takes them for independent; where
        both ran the same tasks the interval is rather too wide. Synthetic: one calibration for
        both sides, so that what is uncertain about the judge mostly cancels.

    Notes
    -----
    With M = sum_s (C^-T t_s / N)(C^-1 e_s)^T of each side (see `invert`), the synthetic variance is
    the sum of the two production parts plus sum_j Var_{C_j}(M_a,j. - M_b,j.) / n_j. Without cost it
    is sum_j (pi_a,j - pi_b,j)^2 Var_{C_j}(a) / n_j. Adding the two variances of the sides instead
    would count the calibration twice.

    References
    ----------
    Zou and Donner (2008), "Construction of confidence limits about effect measures", Stat. Med. 27.
    https://doi.org/10.1002/sim.3095
    Fiedler (2026), on comparisons that share one calibration.
    https://doi.org/10.48550/arXiv.2605.06939
    """
    check_confidence_level(confidence_level)
    sides = [
        estimate_group(
            group, table, names=names, design=design, pseudo_count=pseudo_count,
            confidence_level=confidence_level,
        )
        for group in (first, second)
    ]  # fmt: skip
    if all(side.kind == "direct" for side in sides):
        one, other = sides[0].estimate, sides[1].estimate
        return Comparison(
            first=first.name,
            second=second.name,
            kind="direct",
            sides=(one, other),
            difference=independent_difference(one, other, method=DIRECT_DIFFERENCE),
        )
    one, other = (
        synthetic_estimate(group, table, names, pseudo_count, confidence_level)
        for group in (first, second)
    )
    result = Comparison(
        first=first.name,
        second=second.name,
        kind="synthetic",
        sides=(one, other),
        difference=replace(other if one.ok else one, method=SYNTHETIC_DIFFERENCE),
    )
    if not (one.ok and other.ok):
        return result
    return _synthetic_difference(result, first, second, table, pseudo_count, confidence_level)


def independent_difference(
    first: Estimate, second: Estimate, *, method: str, furthest: float = 1.0
) -> Estimate:
    """Estimate the difference of two independent estimates from their limits.

    Parameters
    ----------
    first, second : Estimate
        The difference is `first` less `second`.
    method : str
    furthest : float, default 1
        What the difference can be at most; the interval is cut there.

    Returns
    -------
    Estimate
        The interval combines the distances from value to limit, so those that are not the same on
        both sides, or are exact bounds, stay so; without one of the intervals there is none.

    Examples
    --------
    >>> first = Estimate(value=0.8, interval=(0.5, 0.9), n=10, method="")
    >>> second = Estimate(value=0.5, interval=(0.4, 0.9), n=10, method="")
    >>> independent_difference(first, second, method="").interval
    (-0.2, 0.44142)
    """
    n, level = first.n + second.n, first.confidence_level
    if first.value is None or second.value is None:
        why = "one of the two has no estimate: label more of its traces"
        return not_estimable(why, method=method, n=n, confidence_level=level)
    value = first.value - second.value
    status, interval, se = OK, None, None
    if first.interval is None or second.interval is None:
        status = "no interval: one of the two has none; label more of its traces"
    else:
        down = np.hypot(first.value - first.interval[0], second.interval[1] - second.value)
        up = np.hypot(first.interval[1] - first.value, second.value - second.interval[0])
        interval = max(-furthest, float(value - down)), min(furthest, float(value + up))
        if first.se is not None and second.se is not None:
            se = float(np.hypot(first.se, second.se))
    return Estimate(
        value=value, interval=interval, n=n, method=method, confidence_level=level,
        status=status, se=se,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Side:
    """One side of a synthetic difference: value, M, production variance, reach of a verdict."""

    value: float
    mixed: FloatArray
    sampling: float
    reach: float


def _side(rates_inverse: FloatArray, production: ProductionSums) -> _Side:
    n = production.n
    weights = rates_inverse @ (production.credit[:, None] == production.levels)
    value = float((production.sums * weights.T).sum() / n)
    squares = float(np.einsum("suk,ks,ku->", production.products, weights, weights))
    a = weights @ production.levels
    return _Side(
        value=value,
        mixed=rates_inverse.T @ (production.sums.T / n) @ weights.T,
        sampling=max(0.0, squares / n - value**2) / n,
        reach=float(np.ptp(a[: production.credit.size])),
    )


def _synthetic_difference(
    compared: Comparison,
    first: Group,
    second: Group,
    table: ArrayLike,
    pseudo_count: float,
    confidence_level: float,
) -> Comparison:
    cells = confusion_from_table(table).table
    known = cells.sum(axis=1) > 0
    rates, inverse = np.zeros_like(cells), np.zeros(cells.shape[::-1])
    rates[known] = verdict_rates(cells[known], pseudo_count=pseudo_count)
    inverse[:, known] = right_inverse(rates[known])
    sizes = np.where(known, cells.sum(axis=1) + pseudo_count, 1.0)
    one, other = _side(inverse, first.production), _side(inverse, second.production)
    apart = one.mixed - other.mixed
    by_row = (rates * apart**2).sum(axis=1) - (rates * apart).sum(axis=1) ** 2
    variance = one.sampling + other.sampling + float((by_row / sizes).sum())
    value, se = one.value - other.value, float(np.sqrt(max(0.0, variance)))
    reach = two_sided_z(confidence_level) * se
    difference = Estimate(
        value=min(1.0, max(-1.0, value)),
        interval=(max(-1.0, min(1.0, value - reach)), min(1.0, max(-1.0, value + reach))),
        n=first.production.n + second.production.n,
        method=SYNTHETIC_DIFFERENCE,
        confidence_level=confidence_level,
        se=se,
    )
    return replace(
        compared,
        difference=difference,
        flip_chance=float(stats.norm.sf(abs(value) / se)) if se > 0 else None,
        flips_at=abs(value) / one.reach if one.reach > 0 else None,
    )
