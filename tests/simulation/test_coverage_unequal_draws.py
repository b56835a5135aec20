"""Batches drawn with unequal probabilities: what covers, and what must not be used."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.agreement.coefficients import GWET_AC, KRIPPENDORFF_ALPHA, estimate
from calibration.agreement.inference import estimate_weighted
from calibration.agreement.ratings import count_patterns
from calibration.analyses.sampling.draw import draw_within
from calibration.judge_calibration.bias import slope_within_class
from calibration.judge_calibration.label_planning import (
    allocate,
    audit_size,
    error_rate,
    stratum_sds,
)
from calibration.judge_calibration.post_stratification import (
    effective_gain,
    post_stratified,
    post_stratified_shares,
)
from calibration.statistics.means import human_only, mean_against_zero
from tests.simulation.judged import CREDIT, PRODUCTION, lenient_judge

pytestmark = pytest.mark.slow


N, SEED = 20_000, 20291

Array = NDArray[np.int64]


def production(rng: np.random.Generator, accuracy: float) -> tuple[Array, Array]:
    """Return class and verdict of every trace."""
    truth = rng.choice(5, N, p=PRODUCTION)
    rates = lenient_judge(accuracy).cumsum(axis=1)
    verdicts = (rng.random(N)[:, None] > rates[truth]).sum(axis=1).clip(0, 4)
    return truth, verdicts


def covers(interval: tuple[float, float] | None, truth: float) -> bool:
    assert interval is not None
    return interval[0] <= truth <= interval[1]


@pytest.mark.parametrize(("accuracy", "n"), [(0.70, 200), (0.85, 200), (0.85, 400), (0.95, 200)])
def test_weighted_estimates_of_a_neyman_draw_cover(
    judge: Callable[..., None], accuracy: float, n: int
) -> None:
    """Standard deviations come from a pilot of 80 labels drawn anew each time."""
    repetitions, target = 2000, float(PRODUCTION @ CREDIT)
    rng = np.random.default_rng([SEED, n, round(100 * accuracy)])
    names = ("weighted post-stratified", "weighted human only", "unweighted mean (must not cover)")
    covered, half = dict.fromkeys(names, 0), dict.fromkeys(names, 0.0)
    shares = np.zeros(5)
    for _ in range(repetitions):
        truth, verdicts = production(rng, accuracy)
        counts = np.bincount(verdicts, minlength=5)
        pilot = rng.choice(N, 80, replace=False)
        sds = stratum_sds(CREDIT[truth[pilot]], verdicts[pilot], np.arange(5))
        drawn = allocate(counts, n, sds=sds)
        at = draw_within(verdicts, drawn, seed=int(rng.integers(2**31)))
        weights = (counts / drawn)[verdicts[at]]
        scores = CREDIT[truth[at]]
        fitted = post_stratified(
            scores, verdicts[at], counts, verdict_values=CREDIT, weights=weights
        )
        found = (fitted.estimate, human_only(scores, weights=weights), human_only(scores))
        for name, value in zip(names, found, strict=True):
            covered[name] += covers(value.interval, target)
            half[name] += value.half_width or 0
        for k, share in enumerate(
            post_stratified_shares(
                np.eye(5)[truth[at]], verdicts[at], counts, strata=fitted.strata, weights=weights,
                minimum_labels=0,
            )
        ):  # fmt: skip
            shares[k] += covers(share.interval, PRODUCTION[k])
    setting = f"judge {accuracy:.2f}, Neyman draw of {n} of {N:,}"
    bands = {names[0]: (0.935, 0.975), names[1]: (0.935, 1.0), names[2]: (0.0, 0.85)}
    for name in names:
        judge(
            name,
            setting,
            covered=covered[name],
            repetitions=repetitions,
            seed=SEED,
            half_width=half[name] / repetitions,
            band=bands[name],
        )
    judge(
        "weighted class share, worst of five",
        setting,
        covered=int(shares.min()),
        repetitions=repetitions,
        seed=SEED,
        half_width=0.0,
        band=(0.92, 0.98),
    )


@pytest.mark.parametrize("coefficient", [KRIPPENDORFF_ALPHA, GWET_AC])
@pytest.mark.parametrize("n", [100, 300])
def test_weighted_agreement_of_a_neyman_draw_covers(
    judge: Callable[..., None], coefficient: object, n: int
) -> None:
    """Reviewers err more where the judge says hallucinated, and such traces are drawn densely."""
    repetitions = 2000
    rng = np.random.default_rng([SEED, n, 7])
    truth, verdicts = production(rng, 0.85)
    knows = np.array([0.95, 0.7, 0.6, 0.6, 0.8])[verdicts]
    codes = np.where(
        rng.random((N, 2)) < knows[:, None], truth[:, None], rng.integers(0, 5, (N, 2))
    )
    target = estimate(coefficient, count_patterns(codes, n_classes=5)).value  # type: ignore[arg-type]
    assert target is not None
    counts = np.bincount(verdicts, minlength=5)
    drawn = allocate(counts, n, sds=np.array([0.1, 0.4, 0.4, 0.5, 0.4]))
    weighted, plain, half = 0, 0, 0.0
    for _ in range(repetitions):
        at = draw_within(verdicts, drawn, seed=int(rng.integers(2**31)))
        found = estimate_weighted(
            coefficient,  # type: ignore[arg-type]
            codes[at],
            (counts / drawn)[verdicts[at]],
            n_classes=5,
        )
        weighted += covers(found.interval, target)
        half += found.half_width or 0
        unweighted = estimate(coefficient, count_patterns(codes[at], n_classes=5))  # type: ignore[arg-type]
        plain += covers(unweighted.interval, target)
    setting = f"Neyman draw of {n}, reviewers err where the judge doubts"
    name = coefficient.name  # type: ignore[attr-defined]
    judge(
        f"weighted {name}", setting, covered=weighted, repetitions=repetitions, seed=SEED,
        half_width=half / repetitions, band=(0.93, 0.985),
    )  # fmt: skip
    judge(
        f"unweighted {name} (must not cover)", setting, covered=plain, repetitions=repetitions,
        seed=SEED, half_width=0.0, band=(0.0, 0.85),
    )  # fmt: skip


@pytest.mark.parametrize("half_width", [0.05, 0.1])
def test_an_escalation_with_its_audit_covers(judge: Callable[..., None], half_width: float) -> None:
    """Three votes of a .80 judge; those that differ go to people, and errors repeat in part."""
    repetitions, target, size = 2000, float(PRODUCTION @ CREDIT), 4_000
    rng = np.random.default_rng([SEED, round(100 * half_width)])
    rates = lenient_judge(0.80).cumsum(axis=1)
    covered, half, without, errors = 0, 0.0, 0, 0
    for _ in range(repetitions):
        truth = rng.choice(5, size, p=PRODUCTION)
        first = (rng.random(size)[:, None] > rates[truth]).sum(axis=1).clip(0, 4)
        again = (rng.random((2, size))[..., None] > rates[truth]).sum(axis=2).clip(0, 4)
        votes = np.where(rng.random((2, size)) < 0.7, first, again)
        accepted = (votes == first).all(axis=0)
        of_trace = accepted.astype(np.int64)
        sizes = np.bincount(of_trace, minlength=2)
        drawn = np.array([sizes[0], min(sizes[1], audit_size(half_width, error=0.3))])
        at = draw_within(of_trace, drawn, seed=int(rng.integers(2**31)))
        scores, weights = CREDIT[truth[at]], (sizes / drawn)[of_trace[at]]
        counts = np.bincount(first, minlength=5)
        found = post_stratified(
            scores, first[at], counts, verdict_values=CREDIT, weights=weights
        ).estimate
        covered += covers(found.interval, target)
        half += found.half_width or 0
        plain = np.where(accepted, CREDIT[first], CREDIT[truth])
        without += abs(plain.mean() - target) <= 1.959964 * plain.std() / np.sqrt(size)
        wrong = (truth != first)[at][accepted[at]]
        limits = error_rate(float(wrong.sum()), wrong.size).interval
        errors += covers(limits, float((truth != first)[accepted].mean()))
    setting = f"three votes of a .80 judge on {size:,}, audit to {half_width}"
    judge(
        "escalation with audit, post-stratified", setting, covered=covered,
        repetitions=repetitions, seed=SEED, half_width=half / repetitions, band=(0.935, 0.985),
    )  # fmt: skip
    judge(
        "error rate of the accepted part", setting, covered=errors, repetitions=repetitions,
        seed=SEED, half_width=half_width, band=(0.935, 0.98),
    )  # fmt: skip
    judge(
        "accepted as they are, people on the rest (must not cover)", setting, covered=without,
        repetitions=repetitions, seed=SEED, half_width=half / repetitions, band=(0.0, 0.85),
    )  # fmt: skip


@pytest.mark.parametrize(("accuracy", "n"), [(0.70, 200), (0.85, 100), (0.85, 400)])
def test_what_a_judge_is_worth_covers(judge: Callable[..., None], accuracy: float, n: int) -> None:
    repetitions = 2000
    rng = np.random.default_rng([SEED, 3, n])
    given = PRODUCTION[:, None] * lenient_judge(accuracy)
    verdict = given.sum(axis=0)
    mean = CREDIT @ given / verdict
    whole = PRODUCTION @ CREDIT**2 - (PRODUCTION @ CREDIT) ** 2
    target = whole / float(PRODUCTION @ CREDIT**2 - verdict @ mean**2)
    covered, half = 0, 0.0
    for _ in range(repetitions):
        truth, verdicts = production(rng, accuracy)
        at = rng.choice(N, n, replace=False)
        counts = np.bincount(verdicts, minlength=5)
        strata = post_stratified(
            CREDIT[truth[at]], verdicts[at], counts, verdict_values=CREDIT
        ).strata
        found = effective_gain(CREDIT[truth[at]], verdicts[at], strata=strata).multiplier
        covered += covers(found.interval, float(target))
        half += found.half_width or 0
    judge(
        "what a label gains by the judge, 1 / (1 - R squared)",
        f"judge {accuracy:.2f}, {n} labels, true {target:.2f}",
        covered=covered, repetitions=repetitions, seed=SEED, half_width=half / repetitions,
        band=(0.92, 0.98),
    )  # fmt: skip


@pytest.mark.parametrize("n", [200, 400])
def test_leniency_and_its_slope_of_a_neyman_draw_cover(judge: Callable[..., None], n: int) -> None:
    """The judge passes long failures more often; traces it doubts are drawn densely."""
    repetitions = 2000
    rng = np.random.default_rng([SEED, n, 11])
    truth, verdicts = production(rng, 0.85)
    size = rng.normal(5 + 0.3 * truth, 1.0)
    lenient = (CREDIT[truth] < 1) & (rng.random(N) < np.clip(0.06 * (size - 4), 0, 1))
    verdicts = np.where(lenient, 0, verdicts)
    gaps, human = CREDIT[verdicts] - CREDIT[truth], np.eye(5)[truth]
    design = np.column_stack([human, size])
    targets = (float(np.linalg.lstsq(design, gaps, rcond=None)[0][-1]), float(gaps.mean()))
    counts = np.bincount(verdicts, minlength=5)
    drawn = allocate(counts, n, sds=np.array([0.2, 0.4, 0.4, 0.5, 0.4]))
    names = ("slope of the judge's gap, weighted, HC3", "mean gap (leniency), weighted, t")
    covered, half, unweighted = [0, 0], [0.0, 0.0], 0
    for _ in range(repetitions):
        at = draw_within(verdicts, drawn, seed=int(rng.integers(2**31)))
        weights = (counts / drawn)[verdicts[at]]
        found = (
            slope_within_class(gaps[at], human[at], size[at], weights=weights).estimate,
            mean_against_zero(gaps[at], nothing="label some", weights=weights).estimate,
        )
        for k, (one, target) in enumerate(zip(found, targets, strict=True)):
            covered[k] += covers(one.interval, target)
            half[k] += one.half_width or 0
        plain = mean_against_zero(gaps[at], nothing="label some").estimate
        unweighted += covers(plain.interval, targets[1])
    setting = f"judge 0.85, Neyman draw of {n} of {N:,}"
    for k, name in enumerate(names):
        judge(
            name,
            setting,
            covered=covered[k],
            repetitions=repetitions,
            seed=SEED,
            half_width=half[k] / repetitions,
            # The strata are not used: wider than need be.
            band=(0.935, 0.995) if k else (0.935, 0.975),
        )
    judge(
        "mean gap, unweighted (must not cover)",
        setting,
        covered=unweighted,
        repetitions=repetitions,
        seed=SEED,
        half_width=0.0,
        band=(0.0, 0.85),
    )
