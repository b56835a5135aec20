"""Success by the length of a run: its steps, its tokens, the share of the context that it fills."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from calibration.statistics.estimate import Estimate
from calibration.statistics.means import clustered_share
from calibration.success_rate.trials import compounded, step_rate

# The length that chances compound over.
STEPS = "n_steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthBin:
    """The runs of some lengths: the shortest and longest, the mean, and the share that succeeds.

    `compounded` is what the share would be if every step of every run had the same chance.
    """

    low: float
    high: float
    mean: float
    n: int
    success: Estimate
    compounded: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessByLength:
    """Success by bins of equal numbers of runs; `step_rate` is the chance a step that all imply."""

    key: str
    bins: tuple[LengthBin, ...]
    step_rate: float | None = None


def success_by_length(
    key: str,
    sums: pd.DataFrame,
    *,
    each: float = 1.0,
    noun: str = "runs",
    confidence_level: float = 0.95,
) -> SuccessByLength:
    """Estimate the share of successes in each bin of lengths, with the compounding of steps beside.

    The limits are those of `clustered_share`: tasks are independent, their runs need not be. The
    step rate is that of a run of the mean number of steps which succeeds as often as all runs do,
    p^(1 / steps), and a bin's `compounded` is it to the power of its mean number of steps. Longer
    tasks are often harder: neither is a causal effect of length.

    Parameters
    ----------
    sums : pandas.DataFrame
        One row per bin and unit: place (of the bin), unit, stratum, n (runs), of and hits (weights
        of the runs, and of those that succeed), total (sum of lengths), low, high.

    Examples
    --------
    Two runs of one step, both complete, two of three steps, one complete: .75^(1/2) a step.

    >>> sums = pd.DataFrame({"place": [0, 1], "unit": [0, 1], "stratum": 0, "n": 2, "of": 2.0,
    ...     "hits": [2.0, 1.0], "total": [2.0, 6.0], "low": [1.0, 3.0], "high": [1.0, 3.0]})
    >>> found = success_by_length("n_steps", sums)
    >>> found.step_rate, [b.success.value for b in found.bins], [b.compounded for b in found.bins]
    (0.86603, [1.0, 0.5], [0.86603, 0.64952])
    """
    n, of = sums["n"].sum(), sums["of"].sum()
    rate = None
    if key == STEPS and of and sums["total"].sum() >= n:
        rate = step_rate(float(sums["hits"].sum() / of), round(sums["total"].sum() / n))
    bins = []
    for _, rows in sums.groupby("place", sort=True):
        mean = float(rows["total"].sum() / rows["n"].sum())
        bins.append(
            LengthBin(
                low=float(rows["low"].min()),
                high=float(rows["high"].max()),
                mean=mean,
                n=int(rows["n"].sum()),
                success=clustered_share(
                    rows["hits"].to_numpy(np.float64),
                    rows["of"].to_numpy(np.float64),
                    n=int(rows["n"].sum()),
                    stratum=rows["stratum"].to_numpy(np.int64),
                    each=each,
                    noun=noun,
                    confidence_level=confidence_level,
                ),
                compounded=None if rate is None else compounded(rate, round(mean)),
            )
        )
    return SuccessByLength(key=key, bins=tuple(bins), step_rate=rate)
