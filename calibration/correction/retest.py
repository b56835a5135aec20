"""Whether a judge says the same of a trace when it is asked again."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration.correction.intervals import IntArray, check_confidence_level
from calibration.correction.means import mean_against_zero, wilson_share
from calibration.estimates import Estimate

MISSING = -1
NOT_ASKED_TWICE = "no trace has two verdicts of this judge: let it judge some traces twice or more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retest:
    """How often a judge changes its mind.

    Parameters
    ----------
    changed : Estimate
        Share of the traces asked about twice or more on which not all verdicts are the same. It
        grows with the number of times a judge is asked.
    differ : Estimate
        Chance that two verdicts on the same trace differ: the mean over traces of the share of
        pairs that do. It does not depend on how often the judge was asked.
    per_verdict : tuple of Estimate, length n_verdicts
        `changed` among the traces whose first verdict was this one.
    most_asked : int
        Most verdicts that a trace has.
    """

    changed: Estimate
    differ: Estimate
    per_verdict: tuple[Estimate, ...]
    most_asked: int


def retest(samples: ArrayLike, *, n_verdicts: int, confidence_level: float = 0.95) -> Retest:
    """Estimate how often the verdict on a trace changes when the judge is asked again.

    Traces are independent and a random sample of those the judge could be asked about again.

    Parameters
    ----------
    samples : array-like of int, shape (n, n_samples)
        Verdict codes of each trace, in the order they were asked for; -1 where it was not asked.
    n_verdicts : int
        Number of verdict codes.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Retest
        Shares of traces with Wilson intervals; `differ` with a t interval over traces.
        ``not_estimable`` when no trace has two verdicts.

    Raises
    ------
    ValueError
        If the codes are not two-dimensional integers from -1 to n_verdicts - 1.

    Examples
    --------
    One of three traces changes, in two of its three pairs; the fourth was asked about once:

    >>> found = retest([[0, 0, 0], [0, 1, 0], [1, 1, 1], [1, -1, -1]], n_verdicts=2)
    >>> found.changed.value, found.differ.value, found.per_verdict[0].value
    (0.33333, 0.22222, 0.5)
    """
    check_confidence_level(confidence_level)
    codes = np.asarray(samples)
    if codes.ndim != 2 or (codes.size and not np.issubdtype(codes.dtype, np.integer)):
        raise ValueError(
            f"samples must be integers of shape (n, n_samples), got dtype {codes.dtype!s} and "
            f"shape {codes.shape!r}"
        )
    if codes.size and (codes.min() < MISSING or codes.max() >= n_verdicts):
        raise ValueError(
            f"samples must be in [-1, {n_verdicts - 1}], got {codes.min()} to {codes.max()}"
        )
    asked = (codes != MISSING).sum(axis=1)
    again = codes[asked >= 2].astype(np.int64)
    times = asked[asked >= 2]
    counts = (again[:, :, None] == np.arange(n_verdicts)).sum(axis=1)
    pairs = times * (times - 1)
    differing = 1 - (counts * (counts - 1)).sum(axis=1) / pairs
    changed, first = counts.max(axis=1, initial=0) < times, _first(again)

    def share(hits: float, n: float, nothing: str) -> Estimate:
        return wilson_share(hits, n, nothing=nothing, confidence_level=confidence_level)

    nothing = "no trace with this verdict was judged twice: let the judge judge some again"
    return Retest(
        changed=share(float(changed.sum()), float(changed.size), NOT_ASKED_TWICE),
        differ=mean_against_zero(
            differing, nothing=NOT_ASKED_TWICE, lowest=0.0, confidence_level=confidence_level
        ).estimate,
        per_verdict=tuple(
            share(float(changed[first == k].sum()), float((first == k).sum()), nothing)
            for k in range(n_verdicts)
        ),
        most_asked=int(asked.max(initial=0)),
    )


def _first(codes: IntArray) -> IntArray:
    """Return the first verdict of each trace."""
    if not codes.size:
        return np.zeros(0, dtype=np.int64)
    first: IntArray = codes[np.arange(len(codes)), (codes != MISSING).argmax(axis=1)]
    return first
