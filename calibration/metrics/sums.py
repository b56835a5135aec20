"""A ratio of sums from sums and sums of squares alone, however many units they are over."""

from dataclasses import dataclass
from math import exp, sqrt

import numpy as np

from calibration.estimates import OK, Estimate, not_estimable
from calibration.metrics.arrays import FloatArray
from calibration.metrics.laws import t_quantile
from calibration.metrics.resampling import MINIMUM_UNITS, NO_VARIATION

# A variance below this share of its terms is rounding error of the sums.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareSums:
    """Sums over independent units of a top and a bottom: all that a ratio and its error need.

    Parameters
    ----------
    n : int
        Units with a bottom above zero.
    top, bottom, top_squared, product, bottom_squared : float
        Sums of y, x, y^2, xy and x^2; neither y nor x is negative.
    """

    n: int
    top: float
    bottom: float
    top_squared: float
    product: float
    bottom_squared: float

    @property
    def ratio(self) -> float:
        """The ratio of the sums."""
        return self.top / self.bottom

    @property
    def variance(self) -> float:
        """Linearised variance of the ratio, 0 where all units have the same one.

        Examples
        --------
        Tops 1, 2, 3 over 1 each: the variance of their mean is 1/3.

        >>> square_sums(np.array([1.0, 2.0, 3.0]), np.ones(3)).variance
        0.33333
        """
        value = self.ratio
        terms = self.top_squared, 2 * value * self.product, value**2 * self.bottom_squared
        left = terms[0] - terms[1] + terms[2]
        if self.n < 2 or left <= ROUNDING * sum(terms):
            return 0.0
        return self.n / (self.n - 1) * left / self.bottom**2


def square_sums(tops: FloatArray, bottoms: FloatArray) -> SquareSums:
    """Return the sums of units that are given one by one."""
    return SquareSums(
        n=int(np.count_nonzero(bottoms > 0)),
        top=float(tops.sum()),
        bottom=float(bottoms.sum()),
        top_squared=float(tops @ tops),
        product=float(tops @ bottoms),
        bottom_squared=float(bottoms @ bottoms),
    )


def ratio_of_totals(sums: SquareSums, *, confidence_level: float = 0.95) -> Estimate:
    """Estimate a ratio of sums that is not negative and has no upper bound, such as a mean cost.

    Units are independent; what is inside a unit may depend on each other.

    Parameters
    ----------
    sums : SquareSums
        Over the units, weighted by their inverse inclusion probabilities.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        Linearised on the log scale, t with units - 1 degrees of freedom: the interval is
        multiplicative, since costs are skewed. With fewer than 5 units ``not_estimable``. Without
        variation no interval: equal costs bound no cost that was not seen.

    Raises
    ------
    ValueError
        If `confidence_level` is outside (0, 1).

    References
    ----------
    Cochran (1977), "Sampling techniques", section 6.4. ISBN 978-0-471-16240-7

    Examples
    --------
    Six runs at 1.00 and 2.00 in turn: the mean is 1.50.

    >>> found = ratio_of_totals(square_sums(np.array([1.0, 2.0] * 3), np.ones(6)))
    >>> found.value, found.interval
    (1.5, (1.02252, 2.20046))
    """
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1), got {confidence_level!r}")
    method = "ratio of totals, linearised on the log scale, t"
    if sums.n == 0:
        why = "nothing is known: record it"
        return not_estimable(why, method=method, confidence_level=confidence_level)
    value, se, status = sums.ratio, None, OK
    interval: tuple[float, float] | None = None
    if sums.n < MINIMUM_UNITS:
        status = (
            f"not_estimable: no interval from {sums.n} runs or tasks, at least {MINIMUM_UNITS} "
            "are needed"
        )
    elif sums.variance == 0:
        status = NO_VARIATION
    else:
        se = sqrt(sums.variance)
        reach = t_quantile((1 + confidence_level) / 2, sums.n - 1) * se / value
        interval = value * exp(-reach), value * exp(reach)
    return Estimate(
        value=value,
        interval=interval,
        n=sums.n,
        method=method,
        confidence_level=confidence_level,
        status=status,
        se=se,
    )
