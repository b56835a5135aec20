"""Batches drawn with unequal probabilities: what covers, and what must not be used."""

import numpy as np
import pytest

from calibration.agreement.coefficients import GWET_AC, KRIPPENDORFF_ALPHA, Coefficient, estimate
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
from calibration.judge_calibration.post_stratification import class_shares, post_stratified
from calibration.judge_calibration.samples import (
    confusion,
    judge_quality,
    production_sums_from_counts,
)
from calibration.judge_calibration.strata import effective_gain, verdict_strata
from calibration.statistics.means import human_only, mean_against_zero
from tests.simulation.judged import (
    CREDIT,
    NAMES,
    PRODUCTION,
    TRUE_SCORE,
    Array,
    Judge,
    Tally,
    give_all,
    labels,
    lenient_judge,
    say,
)

pytestmark = pytest.mark.slow
SEED, REPETITIONS, N = 20291, 2000, 20_000


def production(rng: np.random.Generator, accuracy: float) -> tuple[Array, Array]:
    """Return class and verdict of every trace."""
    truth = rng.choice(5, N, p=PRODUCTION)
    return truth, say(rng, truth, lenient_judge(accuracy))


@pytest.mark.parametrize(("accuracy", "n"), [(0.70, 200), (0.85, 200), (0.85, 400), (0.95, 200)])
def test_weighted_estimates_of_a_neyman_draw_cover(judge: Judge, accuracy: float, n: int) -> None:
    """Standard deviations come from a pilot of 80 labels drawn anew each time."""
    rng = np.random.default_rng([SEED, n, round(100 * accuracy)])
    bands = {
        "weighted post-stratified": (0.935, 0.975),
        "human only, stratified by the draw": (0.935, 0.975),
        "human only, strata not known": (0.935, 1.0),
        "unweighted mean (must not cover)": (0.0, 0.85),
    }
    tallies = {name: Tally(TRUE_SCORE) for name in bands}
    of_shares = [Tally(share) for share in PRODUCTION.tolist()]
    for _ in range(REPETITIONS):
        truth, verdicts = production(rng, accuracy)
        counts = np.bincount(verdicts, minlength=5)
        pilot = rng.choice(N, 80, replace=False)
        sds = stratum_sds(CREDIT[truth[pilot]], verdicts[pilot], np.arange(5))
        drawn = allocate(counts, n, sds=sds)
        at = draw_within(verdicts, drawn, seed=int(rng.integers(2**31)))
        weights = (counts / drawn)[verdicts[at]]
        scores = CREDIT[truth[at]]
        sample = labels(truth[at], verdicts[at], weights=weights)
        judged = production_sums_from_counts(counts, credit=CREDIT)
        fitted = post_stratified(sample, judged).estimate
        of_strata = human_only(scores, weights=weights, strata=verdicts[at])
        found = (fitted, of_strata, human_only(scores, weights=weights), human_only(scores))
        for tally, value in zip(tallies.values(), found, strict=True):
            tally.add_sure(value)
        for tally, share in zip(of_shares, class_shares(sample, judged), strict=True):
            assert share.interval is not None
            tally.count(share.interval[0] <= tally.truth <= share.interval[1])
    setting = f"judge {accuracy:.2f}, Neyman draw of {n} of {N:,}"
    for name, band in bands.items():
        tallies[name].give(judge, name, setting, seed=SEED, band=band)
    worst, name = min(of_shares, key=lambda of: of.covered), "weighted class share, worst of five"
    worst.give(judge, name, setting, seed=SEED, band=(0.92, 0.98))


@pytest.mark.parametrize(("accuracy", "n"), [(0.70, 400), (0.85, 200), (0.85, 400)])
def test_recall_and_precision_of_a_neyman_draw_cover(judge: Judge, accuracy: float, n: int) -> None:
    """Recall and precision of complete and of hallucinated: weights differ by verdict."""
    rng = np.random.default_rng([SEED, n, round(100 * accuracy), 5])
    rates = lenient_judge(accuracy)
    behind = PRODUCTION[:, None] * rates
    right = (behind / behind.sum(axis=0)).diagonal()
    recalls, precisions = (
        {k: Tally(float(of[k])) for k in (0, 3)} for of in (rates.diagonal(), right)
    )
    plain = Tally(float(rates[3, 3]))
    for _ in range(REPETITIONS):
        truth, verdicts = production(rng, accuracy)
        counts = np.bincount(verdicts, minlength=5)
        drawn = allocate(counts, n, sds=np.array([0.2, 0.4, 0.4, 0.5, 0.4]))
        at = draw_within(verdicts, drawn, seed=int(rng.integers(2**31)))
        weights = (counts / drawn)[verdicts[at]]
        human = np.eye(5)[truth[at]]
        found = judge_quality(confusion(human, verdicts[at], n_verdicts=5, weights=weights))
        for k in (0, 3):
            recalls[k].add_sure(found.per_class[k].recall)
            precisions[k].add_sure(found.per_class[k].precision)
        plain.add_sure(judge_quality(confusion(human, verdicts[at])).per_class[3].recall)
    setting = f"judge {accuracy:.2f}, draw of {n} uneven by verdict"
    # The strata are not used: wider than need be where most weight is on the right answers.
    rows = [(plain, "recall, unweighted (must not cover)", setting, (0.0, 0.9))]
    for k in (0, 3):
        rows.append((recalls[k], f"recall of {NAMES[k]}, weighted", setting, (0.935, 1.0)))
        rows.append((precisions[k], f"precision of {NAMES[k]}, weighted", setting, (0.92, 0.975)))
    give_all(judge, SEED, *rows)


@pytest.mark.parametrize("coefficient", [KRIPPENDORFF_ALPHA, GWET_AC])
@pytest.mark.parametrize("n", [100, 300])
def test_weighted_agreement_of_a_neyman_draw_covers(
    judge: Judge, coefficient: Coefficient, n: int
) -> None:
    """Reviewers err more where the judge says hallucinated, and such traces are drawn densely."""
    rng = np.random.default_rng([SEED, n, 7])
    truth, verdicts = production(rng, 0.85)
    knows = np.array([0.95, 0.7, 0.6, 0.6, 0.8])[verdicts]
    known = rng.random((N, 2)) < knows[:, None]
    codes = np.where(known, truth[:, None], rng.integers(0, 5, (N, 2)))
    target = estimate(coefficient, count_patterns(codes, n_classes=5)).value
    assert target is not None
    counts = np.bincount(verdicts, minlength=5)
    drawn = allocate(counts, n, sds=np.array([0.1, 0.4, 0.4, 0.5, 0.4]))
    weighted, plain = Tally(target), Tally(target)
    for _ in range(REPETITIONS):
        at = draw_within(verdicts, drawn, seed=int(rng.integers(2**31)))
        weights = (counts / drawn)[verdicts[at]]
        weighted.add_sure(estimate_weighted(coefficient, codes[at], weights, n_classes=5))
        plain.add_sure(estimate(coefficient, count_patterns(codes[at], n_classes=5)))
    setting = f"Neyman draw of {n}, reviewers err where the judge doubts"
    name, plain.widths = coefficient.name, 0.0
    weighted.give(judge, f"weighted {name}", setting, seed=SEED, band=(0.93, 0.985))
    plain.give(judge, f"unweighted {name} (must not cover)", setting, seed=SEED, band=(0.0, 0.85))


@pytest.mark.parametrize("half_width", [0.05, 0.1])
def test_an_escalation_with_its_audit_covers(judge: Judge, half_width: float) -> None:
    """Three votes of a .80 judge; those that differ go to people, and errors repeat in part."""
    size = 4_000
    rng = np.random.default_rng([SEED, round(100 * half_width)])
    rates = lenient_judge(0.80)
    audited, without, errors = Tally(TRUE_SCORE), Tally(TRUE_SCORE), Tally(np.nan)
    for _ in range(REPETITIONS):
        truth = rng.choice(5, size, p=PRODUCTION)
        first = say(rng, truth, rates)
        again = say(rng, np.stack([truth, truth]), rates)
        votes = np.where(rng.random((2, size)) < 0.7, first, again)
        accepted = (votes == first).all(axis=0)
        of_trace = accepted.astype(np.int64)
        sizes = np.bincount(of_trace, minlength=2)
        drawn = np.array([sizes[0], min(sizes[1], audit_size(half_width, error=0.3))])
        at = draw_within(of_trace, drawn, seed=int(rng.integers(2**31)))
        sample = labels(truth[at], first[at], weights=(sizes / drawn)[of_trace[at]])
        judged = production_sums_from_counts(np.bincount(first, minlength=5), credit=CREDIT)
        found = post_stratified(sample, judged).estimate
        audited.add_sure(found)
        plain = np.where(accepted, CREDIT[first], CREDIT[truth])
        near = abs(plain.mean() - TRUE_SCORE) <= 1.959964 * plain.std() / np.sqrt(size)
        without.count(near, found.half_width or 0)
        wrong = (truth != first)[at][accepted[at]]
        limits = error_rate(float(wrong.sum()), wrong.size).interval
        assert limits is not None
        share = float((truth != first)[accepted].mean())
        errors.count(limits[0] <= share <= limits[1], half_width)
    setting = f"three votes of a .80 judge on {size:,}, audit to {half_width}"
    name = "escalation with audit, post-stratified"
    audited.give(judge, name, setting, seed=SEED, band=(0.935, 0.985))
    errors.give(judge, "error rate of the accepted part", setting, seed=SEED, band=(0.935, 0.98))
    name = "accepted as they are, people on the rest (must not cover)"
    without.give(judge, name, setting, seed=SEED, band=(0.0, 0.85))


@pytest.mark.parametrize(("accuracy", "n"), [(0.70, 200), (0.85, 100), (0.85, 400)])
def test_what_a_judge_is_worth_covers(judge: Judge, accuracy: float, n: int) -> None:
    rng = np.random.default_rng([SEED, 3, n])
    given = PRODUCTION[:, None] * lenient_judge(accuracy)
    verdict = given.sum(axis=0)
    mean = CREDIT @ given / verdict
    whole = PRODUCTION @ CREDIT**2 - (PRODUCTION @ CREDIT) ** 2
    target = whole / float(PRODUCTION @ CREDIT**2 - verdict @ mean**2)
    tally, name = Tally(float(target)), "what a label gains by the judge, 1 / (1 - R squared)"
    for _ in range(REPETITIONS):
        truth, verdicts = production(rng, accuracy)
        at = rng.choice(N, n, replace=False)
        counts = np.bincount(verdicts, minlength=5).astype(np.float64)
        strata = verdict_strata(verdicts[at], counts, CREDIT, otherwise=0.0)
        tally.add_sure(effective_gain(CREDIT[truth[at]], verdicts[at], strata=strata).multiplier)
    setting = f"judge {accuracy:.2f}, {n} labels, true {target:.2f}"
    tally.give(judge, name, setting, seed=SEED, band=(0.92, 0.98))


@pytest.mark.parametrize("n", [200, 400])
def test_leniency_and_its_slope_of_a_neyman_draw_cover(judge: Judge, n: int) -> None:
    """The judge passes long failures more often; traces it doubts are drawn densely."""
    rng = np.random.default_rng([SEED, n, 11])
    truth, verdicts = production(rng, 0.85)
    size = rng.normal(5 + 0.3 * truth, 1.0)
    lenient = (CREDIT[truth] < 1) & (rng.random(N) < np.clip(0.06 * (size - 4), 0, 1))
    verdicts = np.where(lenient, 0, verdicts)
    gaps, human = CREDIT[verdicts] - CREDIT[truth], np.eye(5)[truth]
    design = np.column_stack([human, size])
    slope, mean = Tally(float(np.linalg.lstsq(design, gaps, rcond=None)[0][-1])), Tally(gaps.mean())
    counts = np.bincount(verdicts, minlength=5)
    drawn = allocate(counts, n, sds=np.array([0.2, 0.4, 0.4, 0.5, 0.4]))
    plain = Tally(mean.truth)
    for _ in range(REPETITIONS):
        at = draw_within(verdicts, drawn, seed=int(rng.integers(2**31)))
        weights = (counts / drawn)[verdicts[at]]
        slope.add_sure(slope_within_class(gaps[at], human[at], size[at], weights=weights).estimate)
        mean.add_sure(mean_against_zero(gaps[at], nothing="label some", weights=weights).estimate)
        plain.add_sure(mean_against_zero(gaps[at], nothing="label some").estimate)
    setting, plain.widths = f"judge 0.85, Neyman draw of {n} of {N:,}", 0.0
    name = "slope of the judge's gap, weighted, HC3"
    slope.give(judge, name, setting, seed=SEED, band=(0.935, 0.975))
    # The strata are not used: wider than need be.
    name = "mean gap (leniency), weighted, t"
    mean.give(judge, name, setting, seed=SEED, band=(0.935, 0.995))
    name = "mean gap, unweighted (must not cover)"
    plain.give(judge, name, setting, seed=SEED, band=(0.0, 0.85))
