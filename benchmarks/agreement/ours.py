"""What we do with ratings, timed: from the codes to coefficients with their intervals."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from benchmarks.agreement.data import CLASSES, Codes
from calibration.agreement.coefficients import (
    BRENNAN_PREDIGER,
    FLEISS_KAPPA,
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    Coefficient,
    estimate,
)
from calibration.agreement.ratings import CountPatterns, count_patterns, patterns_from_counts

FOUR = {
    "alpha": KRIPPENDORFF_ALPHA,
    "AC1": GWET_AC,
    "Fleiss' kappa": FLEISS_KAPPA,
    "Brennan-Prediger": BRENNAN_PREDIGER,
}


@dataclass(slots=True)
class Times:
    """Seconds of one call, run after run."""

    seconds: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, call: Callable[[], object], *, repeats: int) -> Self:
        """Time a call; the first run, which warms up, does not count."""
        call()
        times = cls()
        for _ in range(repeats):
            began = time.perf_counter()
            call()
            times.seconds.append(time.perf_counter() - began)
        return times

    @property
    def median(self) -> float:
        """Median in milliseconds."""
        return 1000 * float(np.median(self.seconds))

    @property
    def spread(self) -> str:
        """Shortest and longest in milliseconds."""
        low, high = 1000 * min(self.seconds), 1000 * max(self.seconds)
        return f"{low:,.3g} to {high:,.3g}" if high < 100 else f"{low:,.0f} to {high:,.0f}"


def values(patterns: CountPatterns, *coefficients: Coefficient) -> list[float]:
    """Return coefficients, each with its interval."""
    found = [estimate(c, patterns) for c in coefficients]
    if any(e.interval is None for e in found):
        raise RuntimeError("a coefficient without an interval is not what is timed")
    return [e.value or 0.0 for e in found]


def four(codes: Codes) -> list[float]:
    """Return the four coefficients from the ratings."""
    return values(count_patterns(codes, n_classes=CLASSES), *FOUR.values())


def calls(codes: Codes) -> dict[str, Callable[[], list[float]]]:
    """Return what answers the calls of a peer: from the ratings, or from counts where it does."""
    counts = np.stack([(codes == k).sum(axis=1) for k in range(CLASSES)], axis=1)

    def one(name: str) -> Callable[[], list[float]]:
        return lambda: values(count_patterns(codes, n_classes=CLASSES), FOUR[name])

    return {name: one(name) for name in FOUR} | {
        "alpha of value_counts": lambda: values(patterns_from_counts(counts), KRIPPENDORFF_ALPHA),
        "all four": lambda: four(codes),
    }
