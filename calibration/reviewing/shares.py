"""Shares of hits among the checks of a reviewer, and how two of them differ."""

from collections.abc import Sequence

import numpy as np

from calibration.estimates import Estimate, not_estimable
from calibration.two_way import wilson_interval

BLOCK = 10


def share(hits: int, n: int, confidence_level: float = 0.95) -> Estimate:
    """Return a share of hits with its Wilson interval.

    Examples
    --------
    >>> share(0, 20).interval
    (0.0, 0.16113)
    """
    if n == 0:
        return not_estimable("no checks yet", method="Wilson")
    return Estimate(
        value=hits / n,
        interval=wilson_interval(hits, n, confidence_level=confidence_level),
        n=n,
        method="Wilson",
        confidence_level=confidence_level,
    )


def difference(before: Estimate, recent: Estimate) -> Estimate:
    """Return recent less before, two independent shares, with Newcombe's interval.

    Examples
    --------
    Newcombe's example of 56/70 and 48/80 has the limits .0524 and .3339:

    >>> difference(share(48, 80), share(56, 70)).interval
    (0.0524, 0.3339)
    """
    if not (before.value is not None and recent.value is not None) or not (
        before.interval and recent.interval
    ):
        return not_estimable("no checks after the baseline yet", method="Newcombe")
    change = recent.value - before.value
    down = np.hypot(recent.value - recent.interval[0], before.interval[1] - before.value)
    up = np.hypot(recent.interval[1] - recent.value, before.value - before.interval[0])
    return Estimate(
        value=change,
        interval=(change - float(down), change + float(up)),
        n=before.n + recent.n,
        method="Newcombe",
        confidence_level=before.confidence_level,
    )


def blocks(
    hits: Sequence[bool], *, size: int = BLOCK, confidence_level: float = 0.95
) -> tuple[tuple[int, int, Estimate], ...]:
    """Return first and last check and share of hits of each block; the last may be shorter.

    Examples
    --------
    >>> [(first, last, e.value) for first, last, e in blocks([True] * 10 + [False] * 3)]
    [(1, 10, 1.0), (11, 13, 0.0)]
    """
    return tuple(
        (
            start + 1,
            start + len(part),
            share(sum(part), len(part), confidence_level),
        )
        for start in range(0, len(hits), size)
        for part in [list(hits[start : start + size])]
    )
