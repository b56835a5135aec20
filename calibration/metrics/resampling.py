"""Resamples of units, and ratios of sums on them: bootstrap, t when few, what to do when equal."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from calibration.estimates import OK, Estimate, not_estimable
from calibration.metrics.arrays import FloatArray, IntArray
from calibration.metrics.laws import normal_chance, normal_quantile, t_chance, t_quantile
from calibration.metrics.units import RUNS, Units
from calibration.metrics.variances import (
    linearised_variance,
    satterthwaite,
    stratum_means,
    stratum_variances,
)

Interval = Literal["percentile", "bca"]

MINIMUM_UNITS = 5
BOOTSTRAP_UNITS = 20
NO_VARIATION = "no variation seen"
UNDEFINED_DRAWS = "no interval: some resamples hold no run of this kind; add runs"
# A variance this small is rounding error of sums, not variation between runs.
NO_VARIANCE = 1e-20
# Resamples are drawn in blocks of about this many counts, to bound memory.
BLOCK = 4_000_000
# A multinomial costs per cell what an index costs per unit, times this.
INDEXED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortness:
    """What the standard error of the draws is too small by, and its degrees of freedom."""

    factor: float
    freedom: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resampled:
    """Sums of the features on one set of resamples, which every figure is taken from.

    Parameters
    ----------
    units : Units
        What was resampled.
    draws : float array, shape (n_resamples, n_features), optional
        Sums on each resample; None with fewer units than a bootstrap needs.
    n_resamples : int
        Resamples.
    confidence_level : float
        Target coverage.
    interval : str
        ``"percentile"`` or ``"bca"``.
    """

    units: Units
    draws: FloatArray | None
    n_resamples: int
    confidence_level: float
    interval: Interval

    def totals(self, name: str) -> float:
        """Return the sum of a feature over all units."""
        units = self.units
        return float(units.multiplicity @ units.sums[:, units.column(name)])

    def influence(self, top: str, bottom: str) -> FloatArray:
        """Return what one unit more of each kind adds to a ratio, to first order."""
        units = self.units
        value = self.totals(top) / self.totals(bottom)
        residuals = units.sums[:, units.column(top)] - value * units.sums[:, units.column(bottom)]
        found: FloatArray = residuals / self.totals(bottom)
        return found

    def ratio_draws(self, top: str, bottom: str) -> FloatArray | None:
        """Return a ratio on each resample, NaN where nothing enters it; None without draws."""
        if self.draws is None:
            return None
        above = self.draws[:, self.units.column(top)]
        below = self.draws[:, self.units.column(bottom)]
        ratios: FloatArray = np.divide(
            above, below, out=np.full(below.size, np.nan), where=below > 0
        )
        return ratios

    def ratio(self, top: str, bottom: str = "runs") -> Estimate:
        """Estimate a ratio of two features that lies in [0, 1].

        With 20 or more units that enter it the bootstrap. With 5 to 19 the linearised ratio
        estimator and t, since the percentile interval is too short there. With fewer than 5 the
        value stays, being an exact mean over the runs given, but there is no interval. Where all
        units (of a stratum) show the same ratio every resample would too, so the interval is the
        exact bound on the share of units that may differ.
        """
        units, level = self.units, self.confidence_level
        entering = int(units.entering[units.column(bottom)])
        if entering == 0:
            why = "no run enters this rate: add runs"
            return not_estimable(why, method="ratio", confidence_level=level)
        value = self.totals(top) / self.totals(bottom)
        influence = self.influence(top, bottom)
        variance = linearised_variance(influence, units)
        method, status, se = self.method(entering), OK, None
        limits: tuple[float, float] | None = None
        draws = self.ratio_draws(top, bottom)
        if entering < MINIMUM_UNITS:
            status = (
                f"not_estimable: no interval from {entering} {units.noun}, "
                f"at least {MINIMUM_UNITS} are needed"
            )
        elif variance < NO_VARIANCE:
            status, method = NO_VARIATION, f"exact bound over {entering:,} {units.noun}"
            limits = _unanimous(value, entering * units.effective_share, level)
        elif entering < BOOTSTRAP_UNITS or draws is None:
            se = float(np.sqrt(variance))
            freedom = max(1, entering - np.unique(units.stratum).size)
            reach = t_quantile((1 + level) / 2, freedom) * se
            limits = max(0.0, value - reach), min(1.0, value + reach)
        elif np.isnan(draws).any():
            status = UNDEFINED_DRAWS
        else:
            se = float(np.sqrt(variance))
            limits = self.between(draws, value, influence)
        return Estimate(
            value=value,
            interval=limits,
            n=units.n,
            method=method,
            confidence_level=level,
            status=status,
            se=se,
        )

    def method(self, entering: int) -> str:
        """Return the words for an interval over that many units."""
        units = self.units
        if entering < BOOTSTRAP_UNITS:
            return f"ratio of totals over {entering} {units.noun}, t"
        whole = "" if units.noun == RUNS else ", whole tasks"
        kind = "BCa bootstrap" if self.interval == "bca" else "bootstrap"
        return f"{kind}, {self.n_resamples:,} resamples{whole}"

    def between(
        self,
        draws: FloatArray,
        value: float,
        influence: FloatArray,
        tail: float | None = None,
    ) -> tuple[float, float]:
        """Return the limits of the interval asked for, with a chance of `tail` beyond each."""
        tail = (1 - self.confidence_level) / 2 if tail is None else tail
        short = self.shortness(influence)
        if short is not None:
            tail = normal_chance(short.factor * t_quantile(tail, short.freedom))
        ends: FloatArray = np.array([tail, 1 - tail])
        if self.interval == "bca":
            shift, skew = self._bca(draws, value, influence)
            z = shift + special.ndtri(ends)
            ends = special.ndtr(shift + z / (1 - skew * z))
        low, high = np.quantile(draws, ends)
        return float(low), float(high)

    def p_value(self, null: float, draws: FloatArray, value: float, influence: FloatArray) -> float:
        """Return the two-sided level at which the interval would just reach `null`."""
        # One draw more on either side: no number of resamples shows that the chance is zero.
        ties = np.isclose(draws, null, rtol=0, atol=1e-12)
        fewer = float(np.sum((draws < null) & ~ties) + np.sum(ties) / 2)
        below = (fewer + 0.5) / (draws.size + 1)
        if self.interval == "bca":
            shift, skew = self._bca(draws, value, influence)
            z = normal_quantile(below) - shift
            below = normal_chance(z / (1 + skew * z) - shift)
        short = self.shortness(influence)
        if short is not None:
            below = t_chance(normal_quantile(below) / short.factor, short.freedom)
        return min(1.0, 2 * min(below, 1 - below))

    def shortness(self, influence: FloatArray) -> "Shortness | None":
        """Return by how much draws spread too little; None where it is not made up for.

        Draws of n units have (n - 1) / n of the variance, and a normal tail instead of that of t:
        with 20 tasks the plain percentile interval covers .92. For independent runs in strata of
        20 or more the plain interval is kept.
        """
        parts, sizes = stratum_variances(influence, self.units)
        smallest = sizes[sizes > 0].min()
        total = float(parts.sum())
        if total <= 0 or (self.units.noun == RUNS and smallest >= BOOTSTRAP_UNITS):
            return None
        spread = float((parts * (sizes - 1) / np.maximum(sizes, 1)).sum())
        return Shortness(factor=float(np.sqrt(total / spread)), freedom=satterthwaite(parts, sizes))

    def _bca(self, draws: FloatArray, value: float, influence: FloatArray) -> tuple[float, float]:
        """Return the bias correction and the acceleration."""
        # Draws equal to the value up to rounding of sums count as ties.
        ties = np.isclose(draws, value, rtol=0, atol=1e-12)
        below = np.mean((draws < value) & ~ties) + np.mean(ties) / 2
        shift = normal_quantile(float(np.clip(below, 1 / draws.size, 1 - 1 / draws.size)))
        centred = influence - stratum_means(influence, self.units)
        multiplicity = self.units.multiplicity
        second, third = float(multiplicity @ centred**2), float(multiplicity @ centred**3)
        return shift, third / (6 * second**1.5)


def resample(
    units: Units,
    *,
    rng: np.random.Generator,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    interval: Interval = "percentile",
) -> Resampled:
    """Draw units with replacement, within their strata.

    Equal units are one cell and a resample is a multinomial draw over cells, so the cost does not
    grow with their number.

    Parameters
    ----------
    units : Units
        From `units_of`.
    rng : numpy.random.Generator
        Source of the draws.
    n_resamples : int, default 1000
        Resamples.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.
    interval : str, default "percentile"
        ``"bca"`` corrects for bias and skewness; it wants 2,000 resamples or more.

    Raises
    ------
    ValueError
        If `n_resamples` is below 1, `confidence_level` is outside (0, 1), or `interval` is unknown.

    References
    ----------
    Efron (1979), Ann. Statist. 7. https://doi.org/10.1214/aos/1176344552
    Efron (1987), J. Am. Stat. Assoc. 82. https://doi.org/10.1080/01621459.1987.10478410
    Hesterberg (2015), "What teachers should know about the bootstrap", Am. Stat. 69.
    https://doi.org/10.1080/00031305.2015.1089789
    Cameron, Gelbach and Miller (2008), "Bootstrap-based improvements for inference with clustered
    errors", Rev. Econ. Stat. 90. https://doi.org/10.1162/rest.90.3.414

    Examples
    --------
    >>> from calibration.metrics.counting import count_runs
    >>> from calibration.metrics.units import units_of
    >>> rng = np.random.default_rng(1)
    >>> resample(units_of(count_runs([0] * 30), rng=rng), rng=rng).ratio("score").interval
    (0.88430, 1.0)
    """
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1), got {confidence_level!r}")
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1, got {n_resamples!r}")
    if interval not in ("percentile", "bca"):
        raise ValueError(f"interval must be 'percentile' or 'bca', got {interval!r}")
    enough = bool((units.entering >= BOOTSTRAP_UNITS).any())
    return Resampled(
        units=units,
        draws=_drawn(units, n_resamples, rng) if enough else None,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        interval=interval,
    )


def _drawn(units: Units, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    sums = np.zeros((n_resamples, units.sums.shape[1]))
    for stratum in np.unique(units.stratum).tolist():
        rows = np.flatnonzero(units.stratum == stratum)
        multiplicity = units.multiplicity[rows]
        size = int(multiplicity.sum())
        indexed = size <= INDEXED * rows.size
        owner = np.repeat(np.arange(rows.size), multiplicity) if indexed else None
        block = max(1, BLOCK // (size if indexed else rows.size))
        for start in range(0, n_resamples, block):
            stop = min(n_resamples, start + block)
            if owner is not None:
                counts = _counted(owner, rows.size, stop - start, rng)
            else:
                counts = rng.multinomial(size, multiplicity / size, size=stop - start)
            sums[start:stop] += counts.astype(np.float64) @ units.sums[rows]
    return sums


def _counted(owner: IntArray, n_units: int, n_resamples: int, rng: np.random.Generator) -> IntArray:
    """Return multinomial counts drawn one by one: faster where few units are equal."""
    drawn = rng.integers(0, owner.size, size=(n_resamples, owner.size))
    place = owner[drawn] + np.arange(n_resamples)[:, None] * n_units
    counts = np.bincount(place.ravel(), minlength=n_resamples * n_units)
    return counts.reshape(n_resamples, n_units).astype(np.int64)


def _unanimous(value: float, n: float, confidence_level: float) -> tuple[float, float]:
    """Return the exact bound: at most this share of units can differ, lying anywhere in [0, 1]."""
    share = 1 - ((1 - confidence_level) / 2) ** (1 / n)
    return max(0.0, value * (1 - share)), min(1.0, value * (1 - share) + share)
