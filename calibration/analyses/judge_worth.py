"""What a judge saves: traces, labels, hours and money."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.correction.effective_size import Gain
from calibration.correction.planning import Spread
from calibration.correction.traces_needed import traces_needed
from calibration.estimates import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """Traces to label for a half-width; None where no number gives it or there is no judge."""

    half_width: float
    without_judge: int | None
    with_judge: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeWorth:
    """What the verdicts of a judge save.

    Parameters
    ----------
    multiplier : Estimate
        A labelled trace with the judge is worth as many without: 1 / (1 - R^2).
    r_squared : float or None
        Share of the variance of the score that the verdicts explain.
    equivalent : float or None
        Traces that would have to be labelled without the judge for what the planned ones give.
    saved, saved_labels, saved_hours, saved_cost : float or None
        What that is more in traces, labels, hours and money; below 0 where the judge costs.
    """

    multiplier: Estimate
    r_squared: float | None
    equivalent: float | None
    saved: float | None
    saved_labels: float | None
    saved_hours: float | None
    saved_cost: float | None


def needed_for(
    half_width: float,
    spread: Spread,
    production_counts: NDArray[np.int64] | None,
    verdict_values: NDArray[np.float64],
    confidence_level: float,
) -> Needed:
    """Return how many traces a half-width needs; without counts there is no judge."""
    with_judge = None
    if production_counts is not None:
        with_judge = traces_needed(
            half_width,
            spread,
            production_counts,
            verdict_values=verdict_values,
            confidence_level=confidence_level,
        )
    return Needed(
        half_width=half_width,
        without_judge=traces_needed(half_width, spread, confidence_level=confidence_level),
        with_judge=with_judge,
    )


def judge_worth(
    gain: Gain, n: int, n_labels: int, seconds: float | None, hourly_rate: float | None
) -> JudgeWorth:
    """Return what a judge saves on `n` traces with as many labels each as are planned."""
    times = gain.multiplier.value
    saved = None if times is None else n * (times - 1)
    labels = None if saved is None else saved * n_labels / n
    hours = None if labels is None or seconds is None else labels * seconds / 3600
    return JudgeWorth(
        multiplier=gain.multiplier,
        r_squared=gain.r_squared,
        equivalent=None if times is None else n * times,
        saved=saved,
        saved_labels=labels,
        saved_hours=hours,
        saved_cost=None if hours is None or hourly_rate is None else hours * hourly_rate,
    )
