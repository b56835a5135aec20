"""Drift and leniency of a reviewer: whether hits become rarer, and how labels shift the rate.

`hits` are checks in order of time, True where the reviewer gave the expected class.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from calibration.statistics.estimate import BoolArray, Estimate, FloatArray, IntArray, not_estimable
from calibration.statistics.intervals import independent_difference, t_interval, wilson_share

BASELINE, RECENT, BLOCK = 30, 30, 10
FALL, HORIZON = 0.15, 100

# Two kinds of checks: together at most .05. The limit aims lower: it holds on average over the
# accuracies compatible with a baseline, not for each of them (docs/methods/drift.md).
FALSE_ALARMS, AIMED_AT = 0.025, 0.02

# Bounds of p; the lower one is raised by `fall`.
LOWEST, HIGHEST = 0.10, 0.97

N_SIMULATIONS = 4_000
STEADY, MARKED = "steady", "marked"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerDrift:
    """Drift of one reviewer on one kind of check."""

    n: int
    n_hits: int
    baseline: int  # first checks, from which p is estimated
    path: tuple[float, ...]  # CUSUM after each check that follows the baseline
    limit: float | None  # a sum above it marks the reviewer; None: baseline incomplete
    marked_at: int | None  # check, from 1, at which the sum first exceeded the limit
    since: int | None  # check with which the fall most likely began; None: not marked
    overall: Estimate  # share of hits among all checks
    before: Estimate  # among those before the recent ones
    recent: Estimate  # among the last 30, at most all after the baseline
    change: Estimate  # recent less before
    status: str  # "steady", "marked" or "not_estimable: needs N more checks"


def drift(
    hits: ArrayLike,
    *,
    rng: np.random.Generator,
    baseline: int = BASELINE,
    fall: float = FALL,
    false_alarms: float = AIMED_AT,
    horizon: int = HORIZON,
    confidence_level: float = 0.95,
    n_simulations: int = N_SIMULATIONS,
) -> ReviewerDrift:
    """Test after every check whether the share of hits has fallen.

    Checks are independent, and a steady reviewer hits each with one unknown probability. The sum
    is a Bernoulli CUSUM: a miss adds log((1 - p + fall) / (1 - p)), a hit subtracts
    log(p / (p - fall)), and it never falls below zero. p = (hits + .5) / (checks + 1), kept within
    [.10 + fall, .97], over all checks up to the last one at which the sum was zero: the baseline
    grows as long as nothing indicates a fall.

    Parameters
    ----------
    hits : array-like of bool, shape (n,)
    rng : Generator
        For the limit.
    baseline : int, default 30
        Checks before the test begins, at least 20.
    fall : float, default 0.15
        The fall to detect soonest, as a fraction in (0, 0.5).
    false_alarms : float, default 0.02
        Probability that a steady reviewer is marked within `horizon` checks, averaged over the
        posterior of the hit probability given the baseline (Jeffreys prior).
    horizon : int, default 100
    confidence_level : float, default 0.95
        Of the intervals: Wilson; for the change Newcombe's, from two of Wilson's.
    n_simulations : int, default 4000
        Steady reviewers simulated for the limit.

    Raises
    ------
    ValueError
        If `baseline` is below 20, or `fall` or `false_alarms` outside (0, 0.5).

    References
    ----------
    Reynolds and Stoumbos (1999), J. Qual. Technol. 31.
    https://doi.org/10.1080/00224065.1999.11979900
    Newcombe (1998), Stat. Med. 17.
    https://doi.org/10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I

    Examples
    --------
    After 27 hits of 30 checks p = 27.5 / 31, so a miss adds log(.2629 / .1129) = .845:

    >>> checks = [True] * 27 + [False] * 4
    >>> found = drift(checks, rng=np.random.default_rng(1))
    >>> found.path, found.status, found.overall.value
    ((0.845,), 'steady', 0.871)
    >>> drift(checks[:12], rng=np.random.default_rng(1)).status
    'not_estimable: needs 18 more checks'
    """
    _check(baseline, fall, false_alarms)
    array = np.asarray(hits, dtype=bool).ravel()
    n, n_hits = array.size, int(array.sum())
    overall = _hits(array, confidence_level)
    if n < baseline:
        needed = baseline - n
        none = not_estimable(
            f"needs {needed} more check{'s' * (needed != 1)}", method="Wilson", n=n
        )
        return ReviewerDrift(
            n=n, n_hits=n_hits, baseline=baseline, path=(), limit=None, marked_at=None,
            since=None, overall=overall, before=overall, recent=none, change=none,
            status=none.status,
        )  # fmt: skip
    begin = int(array[:baseline].sum())
    path = sums(array[None, baseline:], np.array([begin]), baseline, fall=fall)[0]
    limit = alarm_limit(
        begin, baseline, rng=rng, fall=fall, false_alarms=false_alarms, horizon=horizon,
        n_simulations=n_simulations,
    )  # fmt: skip
    above = np.flatnonzero(path > limit)
    marked = int(above[0]) if above.size else None
    since = None if marked is None else _began(array)
    n_recent = min(RECENT, n - baseline)
    before = _hits(array[: n - n_recent], confidence_level)
    recent = _hits(array[n - n_recent :], confidence_level)
    return ReviewerDrift(
        n=n,
        n_hits=n_hits,
        baseline=baseline,
        path=tuple(path.tolist()),
        limit=limit,
        marked_at=None if marked is None else baseline + marked + 1,
        since=since,
        overall=overall,
        before=before,
        recent=recent,
        change=independent_difference(
            recent, before, method="Newcombe", nothing="no checks after the baseline yet"
        ),
        status=STEADY if marked is None else MARKED,
    )


def _began(hits: BoolArray) -> int | None:
    """Return the check where two shares of hits, the second lower, fit best; None if none does."""
    n = np.arange(1, hits.size)
    before = np.cumsum(hits)[:-1]
    after, rest = hits.sum() - before, hits.size - n
    fell = before / n > after / rest
    if not fell.any():
        return None
    likely = sum(
        special.xlogy(k, k / of) + special.xlogy(of - k, 1 - k / of)
        for k, of in ((before, n), (after, rest))
    )
    return int(np.where(fell, likely, -np.inf).argmax()) + 2


def _check(baseline: int, fall: float, false_alarms: float) -> None:
    if baseline < 20:
        raise ValueError(f"baseline must be at least 20 checks, got {baseline}")
    for name, value in (("fall", fall), ("false_alarms", false_alarms)):
        if not 0 < value < 0.5:
            raise ValueError(f"{name} must be in (0, 0.5), got {value}")


def sums(hits: BoolArray, begin: IntArray, baseline: int, *, fall: float = FALL) -> FloatArray:
    """Return the CUSUM after each check that follows the baseline, for many reviewers at once.

    Parameters
    ----------
    hits : bool array, shape (n_reviewers, n_checks)
        Those after the baseline.
    begin : int array, shape (n_reviewers,)
        Hits within the baseline of `baseline` checks.

    Examples
    --------
    A hit subtracts less than a miss adds, and the sum does not fall below zero:

    >>> sums(np.array([[True, False, True]]), np.array([27]), 30).round(3).tolist()
    [[0.0, 0.863, 0.679]]
    """
    n_reviewers, n_checks = hits.shape
    known, of = begin.astype(float), np.full(n_reviewers, float(baseline))
    seen = known.copy()
    current, path = np.zeros(n_reviewers), np.zeros(hits.shape)
    for check in range(n_checks):
        p = np.clip((known + 0.5) / (of + 1), LOWEST + fall, HIGHEST)
        step = np.where(hits[:, check], np.log1p(-fall / p), np.log1p(fall / (1 - p)))
        current = np.maximum(0.0, current + step)
        path[:, check] = current
        seen += hits[:, check]
        at_zero = current == 0
        known = np.where(at_zero, seen, known)
        of = np.where(at_zero, baseline + check + 1.0, of)
    return path


def alarm_limit(
    begin: int,
    baseline: int,
    *,
    rng: np.random.Generator,
    fall: float = FALL,
    false_alarms: float = AIMED_AT,
    horizon: int = HORIZON,
    n_simulations: int = N_SIMULATIONS,
) -> float:
    """Return the 1 - `false_alarms` quantile of the maximum of steady reviewers, see `drift`."""
    p = rng.beta(begin + 0.5, baseline - begin + 0.5, n_simulations)
    hits = rng.random((n_simulations, horizon)) < p[:, None]
    path = sums(hits, np.full(n_simulations, begin), baseline, fall=fall)
    return float(np.quantile(path.max(axis=1), 1 - false_alarms))


def blocks(
    hits: Sequence[bool], *, size: int = BLOCK, confidence_level: float = 0.95
) -> tuple[tuple[int, int, Estimate], ...]:
    """Return first check, last check and share of hits of each block; the last may be shorter.

    Examples
    --------
    >>> [(first, last, e.value) for first, last, e in blocks([True] * 10 + [False] * 3)]
    [(1, 10, 1.0), (11, 13, 0.0)]
    """
    return tuple(
        (
            start + 1,
            start + len(part),
            _hits(np.array(part), confidence_level),
        )
        for start in range(0, len(hits), size)
        for part in [list(hits[start : start + size])]
    )


def _hits(hits: BoolArray, confidence_level: float) -> Estimate:
    return wilson_share(
        int(hits.sum()), hits.size, nothing="no checks yet", confidence_level=confidence_level
    )


POINTS = 100.0
METHOD, BY_CLASS = "mean, t", "mean by class, Welch-Satterthwaite t"
NO_DIFFERENCE = "provisional: every credit is the canonical one, so there is no spread to judge by"


def leniency(
    given: Sequence[float], due: Sequence[float], *, confidence_level: float = 0.95
) -> Estimate:
    """Estimate a reviewer's leniency on this class mix, in ASR points (100 x mean credit error).

    Traces are independent, and the canonical labels are taken as true. It is the bias of a rate,
    not the quality of labels: opposite errors cancel. The interval is t with n - 1 df. Without any
    difference the value is 0, without an interval; below two traces it is ``not_estimable``.

    Parameters
    ----------
    given, due : sequence of float, shape (n,)
        Credit in [0, 1] of the class that the reviewer gave, and of the canonical class.
    confidence_level : float, default 0.95

    Raises
    ------
    ValueError
        If the lengths differ.

    Examples
    --------
    One of four partial answers (credit .4) is called complete: 60 / 4 points, and with
    s = 30 a standard error of 15: 15 -+ 3.182 x 15.

    >>> print(leniency([1.0, 0.4, 0.4, 0.4], [0.4] * 4))
    15.000 [-32.737, 62.737] (95% mean, t, n=4)
    """
    if len(given) != len(due):
        raise ValueError(f"given and due must have one length, got {len(given)} and {len(due)}")
    points = POINTS * (np.asarray(given, dtype=float) - np.asarray(due, dtype=float))
    n = len(points)
    if n < 2:
        return not_estimable(
            "two traces or more are needed", method=METHOD, n=n, confidence_level=confidence_level
        )
    se = float(points.std(ddof=1) / np.sqrt(n))
    return _around(float(points.mean()), se, n - 1, n, METHOD, confidence_level)


def leniency_on_mix(
    given: Sequence[float],
    due: Sequence[float],
    classes: Sequence[str],
    mix: Mapping[str, float],
    *,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate `leniency` on another class mix, such as that of production.

    The means of the classes, weighted by the mix, with an interval by Welch and Satterthwaite.
    Within a class the traces of the examination represent those of the mix, which is taken as
    known. ``not_estimable`` if a class of the mix has fewer than two traces.

    Parameters
    ----------
    given, due : sequence of float, shape (n,)
        As for `leniency`.
    classes : sequence of str, shape (n,)
        Canonical class of each trace.
    mix : mapping of str to float
        Share of each class, 1 in total; a missing class has share 0.
    confidence_level : float, default 0.95

    Raises
    ------
    ValueError
        If the lengths differ or the mix does not sum to 1.

    Examples
    --------
    Partial answers get 60 points too many every other time, complete ones none. In a mix that is
    half partial that is .5 x 30 + .5 x 0:

    >>> kinds = ["partial_plus"] * 2 + ["complete"] * 2
    >>> half = {"partial_plus": 0.5, "complete": 0.5}
    >>> leniency_on_mix([1.0, 0.4, 1.0, 1.0], [0.4, 0.4, 1.0, 1.0], kinds, half).value
    15.0
    """
    if not len(given) == len(due) == len(classes):
        raise ValueError("given, due and classes must have one length")
    if abs(sum(mix.values()) - 1) > 1e-6:
        raise ValueError(f"mix must sum to 1, got {sum(mix.values())!r}")
    points = POINTS * (np.asarray(given, dtype=float) - np.asarray(due, dtype=float))
    of, n = np.asarray(classes), len(points)
    value, parts, freedom = 0.0, 0.0, 0.0
    for name, share in mix.items():
        mine = points[of == name]
        if share > 0 and len(mine) < 2:
            return not_estimable(
                f"class {name} of the mix has {len(mine)} traces here; two or more are needed",
                method=BY_CLASS, n=n, confidence_level=confidence_level,
            )  # fmt: skip
        if share > 0:
            part = share**2 * float(mine.var(ddof=1)) / len(mine)
            value, parts = value + share * float(mine.mean()), parts + part
            freedom += part**2 / (len(mine) - 1)
    df = parts**2 / freedom if freedom > 0 else 1.0
    return _around(value, float(np.sqrt(parts)), df, n, BY_CLASS, confidence_level)


def _around(
    value: float, se: float, df: float, n: int, method: str, confidence_level: float
) -> Estimate:
    if se == 0:
        return Estimate(
            value=value, interval=None, n=n, method=method, confidence_level=confidence_level,
            status=NO_DIFFERENCE,
        )  # fmt: skip
    return Estimate(
        value=value, interval=t_interval(value, se, df=df, confidence_level=confidence_level),
        n=n, method=method, confidence_level=confidence_level, se=se,
    )  # fmt: skip
