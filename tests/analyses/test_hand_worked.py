"""Numbers that can be worked out on paper, from the store to the report."""

import math

import numpy as np
import pytest
from scipy import stats

from calibration.analyses.evidence.from_store import known_costs, trace_penalties
from calibration.analyses.judge.calibration import analyse_judge
from calibration.analyses.sampling.planning import plan_batch
from calibration.analyses.success_rate.from_store import rates_of_store, report_on_store
from calibration.reporting.sections.judge import width_steps
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import drawn_ids, ids, known
from tests.judge_calibration.test_golden_peers import on_logit_scale

N, N_DRAWN = 60, 30


def test_the_corrected_rate_is_the_one_worked_out_by_hand(new_world: NewWorld) -> None:
    # Production: 60 traces, 45 with verdict complete and 15 with verdict partial_minus; 30 are
    # drawn, 20 of the former and 10 of the latter. Ceiling 1 USD.
    #
    # verdict complete, 20 labelled:  10 complete at 0.50        score 1
    #                                  5 complete at 1.50        score 1 - 0.5 = 0.5
    #                                  5 partial_minus at 0.50   score 0
    # verdict partial_minus, 10:       2 partial_plus, one without a cost   score 0.4
    #                                  8 partial_minus at 3.00   score 0 (floor, not -1)
    #
    # Promised       45 complete, 5 of them at half score: (40 + 2.5) / 60 = 0.708333...
    # Score less it  d1 = -5 / 20 = -0.25    d2 = 0.8 / 10 = 0.08
    # Corrected      0.708333... - 45/60 x 0.25 + 15/60 x 0.08 = 0.540833...
    # Gross          45/60 x 15/20 + 15/60 x 0.08 = 0.5625 + 0.02 = 0.5825
    # Human only     (12.5 + 0.8) / 30 = 0.443333...
    # Raw            what is promised
    drawn, rest = drawn_ids(N, N_DRAWN), sorted(set(ids(N)) - set(drawn_ids(N, N_DRAWN)))
    said = dict.fromkeys([*drawn[:20], *rest[:25]], "complete")
    said |= dict.fromkeys([*drawn[20:], *rest[25:]], "partial_minus")
    human = dict.fromkeys(drawn[:15], "complete") | dict.fromkeys(drawn[15:20], "partial_minus")
    human |= dict.fromkeys(drawn[20:22], "partial_plus")
    human |= dict.fromkeys(drawn[22:], "partial_minus")
    costs: dict[str, float | None] = dict.fromkeys(ids(N), 0.5)
    costs |= dict.fromkeys(drawn[10:15], 1.5) | dict.fromkeys(drawn[22:], 3.0) | {drawn[20]: None}
    traces = {name: {"cost_usd": cost} for name, cost in costs.items()}
    world = new_world(n=N, n_drawn=N_DRAWN, ceiling=1.0, traces=traces)
    assert list(world.drawn) == drawn
    world.label("Ann", human)
    world.judge(said)

    result = rates_of_store(world.store)
    theta = 42.5 / 60 - 0.1875 + 0.02
    assert result.corrected.value == pytest.approx(theta, abs=1e-12)
    assert result.corrected_gross.value == pytest.approx(0.5825, abs=1e-12)
    assert result.human.asr.value == pytest.approx(13.3 / 30, abs=1e-12)
    assert known(result.raw).interval is None
    assert known(result.raw).value == pytest.approx(42.5 / 60, abs=1e-12)
    assert result.headline is result.corrected
    assert result.calibrated
    shares = [share.value for share in result.class_shares]
    # complete: 0.75 x 15/20; partial_plus: 0.25 x 2/10; partial_minus: the rest
    assert shares == pytest.approx([0.5625, 0.05, 0.75 * 0.25 + 0.25 * 0.8, 0, 0], abs=0.02)

    # Standard error: n_k v_k are the sums of squares within the strata,
    #   stratum 1: 15 x .25^2 + 5 x .75^2 = 3.75
    #   stratum 2: 2 x .32^2 + 8 x .08^2 = 0.256
    #   V_w = 4.006 / (30 - 2); variance of a mean: (n_k v_k + V_w) / n_k^2; plus the variance of
    #   promise and d over 60 traces: 40 at .75, 5 at .25, 15 at .08. Satterthwaite's df.
    pooled = (3.75 + 0.256) / 28
    parts = [0.75**2 * (3.75 + pooled) / 20**2, 0.25**2 * (0.256 + pooled) / 10**2]
    of_runs = np.repeat([0.75, 0.25, 0.08], [40, 5, 15])
    between = ((of_runs - theta) ** 2).sum() / 60**2
    se = math.sqrt(sum(parts) + between)
    df = sum(parts) ** 2 / (parts[0] ** 2 / 19 + parts[1] ** 2 / 9)
    reach = stats.t.ppf(0.975, df) * se
    assert result.corrected.se == pytest.approx(se, rel=1e-9)
    limits = on_logit_scale([theta, theta - reach, theta + reach])[1:]
    assert result.corrected.interval == pytest.approx(limits, rel=1e-9)

    # At partial credit 0.3 the second d is .06; at 0.5 it is .1.
    report = report_on_store(world.store)
    others = {row.name: row.asr.value for row in report.sensitivity}
    assert others["corrected, partial credit 0.3"] == pytest.approx(theta - 0.25 * 0.02)
    assert others["corrected, partial credit 0.5"] == pytest.approx(theta + 0.25 * 0.02)
    assert others["human-only, partial credit 0.3"] == pytest.approx((12.5 + 0.6) / 30)

    # 59 costs: 46 at 0.5, 5 at 1.5, 8 at 3; the missing one is no zero.
    cost = report.cost
    assert (cost.n, cost.n_known) == (60, 59)
    assert cost.mean == pytest.approx((46 * 0.5 + 5 * 1.5 + 8 * 3) / 59)
    assert known(cost.share_above_ceiling).value == pytest.approx(13 / 59)
    # Labelled: 10 and 5 complete at 0.5 and 1.5, 5 + 1 others at 0.5, 8 at 3, one not known.
    assert cost.per_success.value == pytest.approx((16 * 0.5 + 5 * 1.5 + 8 * 3) / 15)
    assert result.human.cost_coverage == pytest.approx(29 / 30)


def test_a_reviewer_without_a_second_one_leaves_the_rate_provisional(new_world: NewWorld) -> None:
    world = new_world(n=70, n_drawn=60)
    world.judge(dict.fromkeys(ids(70), "complete"))
    world.label("Ann", dict.fromkeys(world.drawn[:30], "complete"))
    world.label("Ben", dict.fromkeys(world.drawn[30:], "partial_plus"))
    result = analyse_judge(world.store)
    head = known(result.calibration.headline_estimate)
    why = "no trace is known to have two labels: reviewer error is not in the interval"
    assert (result.calibration.headline, head.net.status) == (
        "post_stratified", f"provisional: {why}",
    )  # fmt: skip
    assert (result.reviewers, result.noise_ceiling) == ({}, None)


def test_a_random_overlap_makes_the_two_phase_rate_the_headline(new_world: NewWorld) -> None:
    """Ann and Ben share 60 traces and part on 6; the lead calls these failures."""
    world = new_world(n=80, n_drawn=60)
    world.judge(dict.fromkeys(ids(80), "complete"))
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    apart = world.drawn[:6]
    world.label("Ben", {t: "hallucinated" if t in apart else "complete" for t in world.drawn})
    for trace_id in apart:
        world.settle(trace_id, "hallucinated")
    result = analyse_judge(world.store)
    found = result.calibration
    assert (found.headline, found.includes_reviewers) == ("two_phase", True)
    assert known(found.headline_estimate).net.value == pytest.approx(54 / 60)
    # With full overlap nothing is left of the errors of reviewers.
    assert known(found.variance_parts)["reviewers"] == 0
    # Its width builds up from the labels alone to the whole, step by step.
    steps = width_steps(found)
    assert [of.source for of in steps] == ["human_sampling", "judge", "production", "reviewers"]
    assert [of.start for of in steps[1:]] == [of.end for of in steps[:-1]]
    assert steps[-1].end == pytest.approx(known(known(found.headline_estimate).net.half_width))
    assert sum(of.share for of in steps) == pytest.approx(1)
    assert known(found.two_phase).correction == pytest.approx(-3 / 60)
    effects = {who: known(one.value) for who, one in result.reviewers.items()}
    assert effects == pytest.approx({"ann": 6 / 60, "ben": 0})
    # Corrections of -.5 on 6 of 60 traces: their variance is (6 x .25 - 60 x .05^2) / 59.
    plan = plan_batch(world.store, n=60, overlap=0.75)
    half, three_quarters, every = plan.with_reviewers  # a quarter of 60 is too few
    assert (half.twice, half.n_labels) == (30, 90)
    assert half.adjudicated == pytest.approx(3)
    corrected = known(plan.corrected)
    variance = (corrected / stats.t.ppf(0.975, 59)) ** 2 + 1.35 / 59 * (1 / 30 - 1 / 60)
    assert half.half_width == pytest.approx(stats.t.ppf(0.975, 29) * variance**0.5)
    assert half.half_width > three_quarters.half_width > every.half_width
    assert every.half_width == pytest.approx(corrected)
    ceiling = known(result.noise_ceiling)
    assert [ceiling.reviewer.value, ceiling.judge.value] == pytest.approx([114 / 120, 1])


def test_without_a_ceiling_nothing_is_penalised_and_it_is_counted(new_world: NewWorld) -> None:
    costs = {name: {"cost_usd": 9.0} for name in ids(12)}
    world = new_world(traces={**costs, "r011": {"cost_usd": 0.2, "workflow": "research"}})
    frame = world.store.trace_frame().sort_values("trace_id").reset_index(drop=True)
    assert trace_penalties(frame).tolist() == [0.0] * 12
    assert known_costs(frame)[:11].tolist() == pytest.approx([math.nan] * 11, nan_ok=True)
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    cost = report_on_store(world.store).cost
    assert (cost.n, cost.n_known, cost.n_without_ceiling) == (12, 12, 11)
    share = known(cost.share_above_ceiling)
    assert (share.value, share.n) == (0.0, 1)  # of the one run that is held to a ceiling
    # Units raise the ceiling.
    world = new_world(ceiling=0.1, traces={"r000": {"cost_usd": 5.0, "units": 50.0}})
    frame = world.store.trace_frame().query("trace_id == 'r000'")
    assert trace_penalties(frame).tolist() == [0.0]
