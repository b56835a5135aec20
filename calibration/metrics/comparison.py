"""Two sets of runs: the difference of their rates, what it could have shown, and a verdict."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibration.metrics.asr import AgentSuccessRate, rate_of_counts
from calibration.metrics.class_changes import ClassChange, class_changes
from calibration.metrics.counts import RunCounts
from calibration.metrics.differences import Difference, difference_of
from calibration.metrics.joint import side_by_side
from calibration.metrics.resampling import Interval, resample

Verdict = Literal["better", "worse", "equivalent", "inconclusive"]
Rule = Literal["difference", "separate intervals"]

# The margin of the default gate, as a fraction.
MARGIN = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two Agent Success Rates and what became of the first.

    Parameters
    ----------
    before, after : AgentSuccessRate
        Each side on its own.
    asr, asr_gross, pass_rate : Difference
        After minus before.
    paired : bool
        Whether tasks of both sides were resampled together.
    n_pairs : int
        Tasks that both sides have; 0 when not paired.
    class_changes : tuple of ClassChange
        Shares that moved, with flags.
    margin : float
        Margin of equivalence and of non-inferiority, as a fraction.
    non_inferior : bool or None
        Whether the one-sided limit excludes a loss of `margin` or more; None without a limit.
    verdict : str
        ``"better"``, ``"worse"``, ``"equivalent"`` or ``"inconclusive"``, of `after`.
    rule : str
        How the verdict was reached, in words.
    """

    before: AgentSuccessRate
    after: AgentSuccessRate
    asr: Difference
    asr_gross: Difference
    pass_rate: Difference
    paired: bool
    n_pairs: int
    class_changes: tuple[ClassChange, ...]
    margin: float
    non_inferior: bool | None
    verdict: Verdict
    rule: str


def compare_runs(
    before: RunCounts,
    after: RunCounts,
    *,
    rng: np.random.Generator,
    paired: bool = False,
    margin: float = MARGIN,
    rule: Rule = "difference",
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    interval: Interval = "percentile",
) -> Comparison:
    """Compare the Agent Success Rates of two sets of runs.

    The sides are independent samples, or share tasks when `paired`: tasks that both have are then
    resampled with their runs on both sides, the others as in an unpaired comparison, and no run is
    left out. Outcomes are taken as given; labels corrected with one shared calibration are compared
    in `calibration.correction`.

    Parameters
    ----------
    before, after : RunCounts
        Scored with the same credit.
    rng : numpy.random.Generator
        Source of the resamples.
    paired : bool, default False
        Whether tasks with one name are one task.
    margin : float, default 0.05
        Smallest loss that matters, as a fraction in (0, 1).
    rule : str, default "difference"
        ``"separate intervals"`` asks that the intervals of the two rates do not overlap: stricter
        than a test of the difference, and no test.
    n_resamples, confidence_level, interval
        As in `agent_success_rate`.

    Returns
    -------
    Comparison
        Everything from one set of resamples of the difference.

    Raises
    ------
    ValueError
        If the sides were scored with different credit, `margin` is outside (0, 1), `paired` without
        tasks, or an option is unknown.

    Notes
    -----
    Better and worse come first: with many runs a difference may be real and still lie within the
    margin. Equivalence is two one-sided tests at 1 - `confidence_level`.

    References
    ----------
    Schuirmann (1987), J. Pharmacokinet. Biopharm. 15. https://doi.org/10.1007/BF01068419

    Examples
    --------
    70 of 100 and 90 of 100 complete runs:

    >>> from calibration.metrics.counting import count_runs
    >>> found = compare_runs(
    ...     count_runs([0] * 70 + [2] * 30), count_runs([0] * 90 + [2] * 10),
    ...     rng=np.random.default_rng(1),
    ... )
    >>> found.asr.estimate.value, found.verdict
    (0.2, 'better')
    """
    tables = [(side.credit.tolist(), dict(side.own_credit)) for side in (before, after)]
    if tables[0] != tables[1]:
        raise ValueError(
            "both sides must be scored with the same credit (RunCounts.restated), "
            f"got {tables[0]!r} and {tables[1]!r}"
        )
    if not 0 < margin < 1:
        raise ValueError(f"margin must be in (0, 1), got {margin!r}")
    if rule not in ("difference", "separate intervals"):
        raise ValueError(f"rule must be 'difference' or 'separate intervals', got {rule!r}")
    joint = side_by_side(before, after, paired=paired, rng=rng)
    found = resample(
        joint.units,
        rng=rng,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        interval=interval,
    )
    asr = difference_of(found, "score")
    one, other = (
        rate_of_counts(
            side,
            rng=rng,
            n_resamples=n_resamples,
            confidence_level=confidence_level,
            interval=interval,
        )
        for side in (before, after)
    )
    verdict, words = _verdict(asr, one, other, margin, rule)
    return Comparison(
        before=one,
        after=other,
        asr=asr,
        asr_gross=difference_of(found, "gross"),
        pass_rate=difference_of(found, "share:complete"),
        paired=joint.n_pairs > 0,
        n_pairs=joint.n_pairs,
        class_changes=class_changes(found),
        margin=margin,
        non_inferior=None if asr.one_sided is None else asr.one_sided[0] > -margin,
        verdict=verdict,
        rule=words,
    )


def difference_between(
    before: RunCounts,
    after: RunCounts,
    top: str = "score",
    *,
    rng: np.random.Generator,
    paired: bool = False,
    null: float = 0.0,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    interval: Interval = "percentile",
) -> Difference:
    """Estimate the difference of one rate between two sets of runs; as `compare_runs` does.

    Parameters
    ----------
    before, after : RunCounts
        Scored with the same credit.
    top : str, default "score"
        ``"score"``: the Agent Success Rate; ``"share:complete"``: the share of a class.
    rng : numpy.random.Generator
        Source of the resamples.
    paired : bool, default False
        Whether tasks with one name are one task.
    null : float, default 0
        Difference that the p-value is for.
    n_resamples, confidence_level, interval
        As in `agent_success_rate`.

    Examples
    --------
    >>> from calibration.metrics.counting import count_runs
    >>> found = difference_between(
    ...     count_runs([0] * 80 + [2] * 20), count_runs([0] * 60 + [2] * 40),
    ...     "share:complete", null=-0.05, rng=np.random.default_rng(1),
    ... )
    >>> found.estimate.value, found.p_below
    (-0.2, 0.01)
    """
    found = resample(
        side_by_side(before, after, paired=paired, rng=rng).units,
        rng=rng,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        interval=interval,
    )
    return difference_of(found, top, null=null)


def _verdict(
    asr: Difference, one: AgentSuccessRate, other: AgentSuccessRate, margin: float, rule: Rule
) -> tuple[Verdict, str]:
    level = f"{100 * asr.estimate.confidence_level:g} %"
    if rule == "difference":
        decisive, what = asr.estimate.interval, f"the {level} interval of the difference excludes 0"
    else:
        decisive, what = _gap(one, other), f"the two {level} intervals do not overlap"
    inner = f"{200 * asr.estimate.confidence_level - 100:g} %"
    words = (
        f"better or worse: {what}; equivalent: the {inner} interval of the difference lies within "
        f"{100 * margin:g} pp of 0; otherwise inconclusive"
    )
    if decisive is not None and decisive[0] > 0:
        return "better", words
    if decisive is not None and decisive[1] < 0:
        return "worse", words
    if asr.one_sided is not None and -margin < asr.one_sided[0] and asr.one_sided[1] < margin:
        return "equivalent", words
    return "inconclusive", words


def _gap(one: AgentSuccessRate, other: AgentSuccessRate) -> tuple[float, float] | None:
    """Return limits that exclude zero just when the two intervals do not overlap."""
    if one.asr.interval is None or other.asr.interval is None:
        return None
    return other.asr.interval[0] - one.asr.interval[1], other.asr.interval[1] - one.asr.interval[0]
