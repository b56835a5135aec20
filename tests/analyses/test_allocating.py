"""Batches over strata of verdict x workflow: how they are drawn, and that they are weighed."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from calibration.analyses.agreement.analysis import analyse_agreement
from calibration.analyses.evidence.data import MISSING
from calibration.analyses.evidence.from_store import load_batch
from calibration.analyses.judge.calibration import analyse_judge
from calibration.analyses.judge.diagnostics import WEIGHED
from calibration.analyses.judge.drift import compare_judges
from calibration.analyses.judge.groups import analyse_groups
from calibration.analyses.sampling.draw import SamplingDesign, draw_within
from calibration.analyses.sampling.escalation import escalate
from calibration.analyses.sampling.planning import plan_batch
from calibration.analyses.sampling.stratified import draw_allocated, verdict_strata
from calibration.analyses.success_rate.from_store import rates_of_store
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import CalibrationError, InputError
from calibration.reporting.document import text_lines
from calibration.reporting.sections import agreement as reporting
from calibration.reporting.sections.judge import of_what
from calibration.store import Batch
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, diagnose_judge, ids, known
from tests.classes import TAXONOMY

N = 400
C, A = "complete", "abandoned"

# Of 400 traces 300 have the verdict complete, of which 15 failed, and 100 hallucinated, of which
# 50 succeeded: 335 successes.
VERDICT = dict(zip(ids(N), [C] * 300 + ["hallucinated"] * 100, strict=True))
TRUTH = dict(zip(ids(N), [C] * 285 + [A] * 15 + [C] * 50 + [A] * 50, strict=True))
HOTELS = {name: {"workflow": "hotels"} for name in ids(N)[::4]}


@pytest.fixture
def judged(new_world: NewWorld) -> World:
    """Return 400 judged traces in two workflows, of which 80 are labelled."""
    world = new_world(n=N, n_drawn=80, traces=HOTELS)
    world.judge(VERDICT)
    world.label("Ann", {name: TRUTH[name] for name in world.drawn})
    return world


def drawn(judged: World, allocation: Any = "neyman", seed: int = 3) -> tuple[Batch, World]:
    design = SamplingDesign(seed=seed)
    batch = draw_allocated(judged.store, design, n=80, allocation=allocation)
    items = judged.store.batch_items(batch.batch_id)["trace_id"]
    return batch, World(store=judged.store, batch_id=batch.batch_id, drawn=tuple(items))


def test_the_design_and_the_probability_of_each_trace_are_recorded(judged: World) -> None:
    batch, _ = drawn(judged)
    items = judged.store.batch_items(batch.batch_id)
    assert len(items) == items["trace_id"].nunique() == 80
    design = batch.design
    assert (design["allocation"], design["judge"], design["seed"]) == ("neyman", "judge-1", 3)
    assert design["basis"] == judged.batch_id
    workflow = {name: "hotels" if name in HOTELS else "flights" for name in ids(N)}
    for trace_id, probability, number in zip(
        items["trace_id"], items["inclusion_probability"], items["stratum"], strict=True
    ):
        stratum = design["strata"][number]
        assert (stratum["verdict"], stratum["workflow"]) == (VERDICT[trace_id], workflow[trace_id])
        assert probability == stratum["n"] / stratum["population"] > 0
    assert [s["population"] for s in design["strata"]] == [225, 75, 75, 25]
    assert sum(s["n"] for s in design["strata"]) == 80
    # The uncertain verdict varies more and is drawn more densely than its share.
    assert sum(s["n"] for s in design["strata"][2:]) > 25


def test_a_proportional_draw_gives_every_stratum_its_share(judged: World) -> None:
    batch, _ = drawn(judged, "proportional")
    assert [s["n"] for s in batch.design["strata"]] == [45, 15, 15, 5]
    assert load_batch(judged.store, batch.batch_id).weights is None
    one, same = (
        draw_allocated(
            judged.store, SamplingDesign(seed=3, once=True), n=80, allocation="proportional"
        )
        for _ in range(2)
    )
    assert one == same
    assert one.batch_id != batch.batch_id
    items = [list(judged.store.batch_items(b.batch_id)["trace_id"]) for b in (one, batch)]
    assert items[0] == items[1]


def test_every_trace_of_a_stratum_is_drawn_equally_often_and_in_every_place() -> None:
    """Whoever stops early has, of each stratum, its share of what was drawn."""
    repeats, stratum, sizes = 2000, np.repeat([0, 1, 2], [12, 6, 2]), np.array([3, 4, 1])
    drawn = np.array([draw_within(stratum, sizes, seed=seed) for seed in range(repeats)])
    assert all(len(set(row)) == 8 for row in drawn.tolist())
    for name, number in enumerate(stratum):
        p = sizes[number] / np.bincount(stratum)[number]
        for places, chance in ((8, p), (1, p / 8), (3, p * 3 / 8)):
            found = int((drawn[:, :places] == name).sum())
            assert stats.binomtest(found, repeats, chance).pvalue > 0.001 / 60


def test_labels_are_compared_with_production_within_the_strata_of_the_draw(
    judged: World, new_world: NewWorld
) -> None:
    """The draw takes three of four uncertain verdicts; that is no skew of its labels."""
    batch, world = drawn(judged)
    strata = known(load_batch(judged.store, batch.batch_id).strata)
    assert np.bincount(strata).tolist() == [s["population"] for s in batch.design["strata"]]
    world.label("Ann", {name: TRUTH[name] for name in world.drawn})
    found = known(analyse_judge(judged.store, batch.batch_id).composition)
    assert (found.checked, found.strata, found.warned) == (True, 4, ())
    # Verdict and workflow are what was stratified by: there is nothing to compare.
    assert not {"verdict", "workflow"} & set(found.p)
    # Of an escalation all that was not drawn is of the part that was audited.
    escalated = escalate(
        judged.store, SamplingDesign(seed=2), signal="probability", basis_batch=judged.batch_id
    )
    sizes = np.bincount(known(load_batch(judged.store, escalated.batch_id).strata))
    assert sizes.tolist() == [s["population"] for s in escalated.design["strata"]]
    # Verdicts that came after the draw: the strata of what was not drawn are not known any longer.
    other = new_world(n=N, n_drawn=80)
    other.label("Ann", {name: TRUTH[name] for name in other.drawn})
    other.judge(dict(list(VERDICT.items())[:390]))
    late, _ = drawn(other)
    assert MISSING not in known(load_batch(other.store, late.batch_id).strata)
    other.judge(dict(list(VERDICT.items())[390:]))
    strata = known(load_batch(other.store, late.batch_id).strata)
    assert (strata != MISSING).sum() == 80
    in_late = World(other.store, late.batch_id, tuple(ids(N)))
    in_late.label("Ann", {t: TRUTH[t] for t in other.store.batch_items(late.batch_id)["trace_id"]})
    unknown = known(analyse_judge(other.store, late.batch_id).composition)
    assert (unknown.checked, unknown.p, unknown.refused) == (False, {}, ())


def test_without_strata_an_agent_whom_nobody_was_asked_about_is_refused(
    new_world: NewWorld,
) -> None:
    """A fifth of the traces is of an agent whose reviewers gave no label."""
    agents = {name: {"agent_version": "second"} for name in ids(N)[::5]}
    world = new_world(n=N, n_drawn=80, traces=agents)
    world.label("Ann", {name: TRUTH[name] for name in world.drawn})
    world.judge(dict(list(VERDICT.items())[:390]))
    batch, _ = drawn(world)
    world.judge(dict(list(VERDICT.items())[390:]))
    items = list(world.store.batch_items(batch.batch_id)["trace_id"])
    of_batch = World(world.store, batch.batch_id, tuple(items))
    of_batch.label("Ann", {name: TRUTH[name] for name in items if name not in agents})
    found = analyse_judge(world.store, batch.batch_id)
    composed = known(found.composition)
    assert (composed.checked, composed.refused) == (False, (("agent", "unknown second"),))
    assert found.calibration.headline is None
    said = " ".join(of_what(found))
    assert "a group with 5 % of production was left out of the labels, see below" in said
    assert "not checked whether the labels look like production otherwise" in said


def test_weights_are_those_of_the_labelled_traces(judged: World) -> None:
    batch, world = drawn(judged)
    world.label("Ann", {name: TRUTH[name] for name in world.drawn[:10]})
    loaded = load_batch(judged.store, batch.batch_id)
    assert loaded.weights == pytest.approx(1 / loaded.labelled["inclusion_probability"])
    # A plan made from such a batch speaks about production and not about the batch.
    world.label("Ann", {name: TRUTH[name] for name in world.drawn[10:]})
    plan = plan_batch(judged.store, n=100, batch_id=batch.batch_id)
    assert plan.human_only == pytest.approx(stats.t.ppf(0.975, 99) * 0.0369, rel=0.15)
    # So do the rates. Coverage is simulated in tests/simulation/test_coverage_unequal_draws.py.
    items = judged.store.batch_items(batch.batch_id).set_index("trace_id")
    weights = (1 / items.loc[list(world.drawn), "inclusion_probability"]).to_numpy()
    succeeded = np.array([TRUTH[name] == C for name in world.drawn])
    by_hand = pytest.approx(weights @ succeeded / weights.sum())
    options = ReportOptions(batch_id=batch.batch_id, n_resamples=100)
    rates = rates_of_store(judged.store, options)
    assert rates.human.asr.value == by_hand
    assert rates.human.class_shares[4].value == pytest.approx(1 - (rates.human.asr.value or 0))
    judge = analyse_judge(judged.store, batch.batch_id).calibration
    human = judge.estimates["human_only"].net
    assert human.value == by_hand
    assert human.method == "human labels only, stratified logit t"
    assert (human.interval, human.df) == (rates.human.asr.interval, rates.human.asr.df)
    assert succeeded.mean() < (rates.human.asr.value or 0) - 0.05
    assert rates.corrected.value == pytest.approx(335 / N, abs=0.08)


def few(world: World, **changes: Any) -> Batch:
    arguments: dict[str, Any] = {"n": 80, "allocation": "neyman"} | changes
    return draw_allocated(world.store, SamplingDesign(seed=1), **arguments)


def test_what_cannot_be_drawn_is_refused(judged: World, new_world: NewWorld) -> None:
    with pytest.raises(InputError, match="must be one of proportional, neyman, got 'equal'"):
        few(judged, allocation="equal")
    with pytest.raises(CalibrationError, match="3 traces are too few for 2 strata"):
        few(judged, n=3)
    with pytest.raises(CalibrationError, match="401 traces were asked for and there are 400"):
        few(judged, n=401)
    with pytest.raises(InputError, match="no judge 'nobody'"):
        few(judged, judge_id="nobody")
    empty = new_world(n=60)
    with pytest.raises(CalibrationError, match="the store holds no verdicts"):
        few(empty, n=20)
    empty.judge(dict.fromkeys(ids(60)[:50], C))
    with pytest.raises(CalibrationError, match=r"0 labelled traces .* `--allocate proportional`"):
        few(empty, n=20)
    # Traces without a verdict are a stratum of their own.
    batch = few(empty, n=30, allocation="proportional")
    strata = [(s["verdict"], s["n"]) for s in batch.design["strata"]]
    assert strata == [("complete", 25), ("no_verdict", 5)]


def test_workflows_too_small_to_stand_alone_stand_together() -> None:
    workflow = np.array(["a"] * 50 + ["b"] * 3 + ["c"] * 2 + ["d"] * 45)
    verdict = np.array([0] * 55 + [3] * 45)
    strata = verdict_strata(verdict, workflow, TAXONOMY, n=20)
    assert strata.names == ((C, "a"), (C, "other workflows"), ("hallucinated", "d"))
    assert strata.counts.tolist() == [50, 5, 45]
    assert strata.parent.tolist() == [0, 0, 1]


def test_agreement_is_given_for_the_batch_and_weighted_to_production(judged: World) -> None:
    batch, world = drawn(judged)
    # The two reviewers differ on every second trace that the judge calls hallucinated.
    doubtful = [name for name in world.drawn if VERDICT[name] == "hallucinated"]
    other = dict.fromkeys(doubtful[::2], "partial_plus")
    world.label("Ann", {name: TRUTH[name] for name in world.drawn})
    world.label("Ben", {name: TRUTH[name] for name in world.drawn} | other)
    result = analyse_agreement(judged.store, batch.batch_id)
    of_batch = result.study.coefficients["percent_agreement"].value
    weighted = result.weighted["percent_agreement"].value
    assert of_batch == pytest.approx(1 - len(other) / 80)
    # A quarter of production has that verdict, and the draw is denser there.
    assert weighted == pytest.approx(1 - 0.25 * len(other) / len(doubtful), abs=0.03)
    assert (weighted or 0) > (of_batch or 1) + 0.05
    assert result.weighted["krippendorff_alpha"].interval is not None
    assert any("weighted to production" in line for line in text_lines(reporting.agreement(result)))
    plain, world = drawn(judged, "proportional", seed=4)
    world.label("Ann", {name: TRUTH[name] for name in world.drawn})
    assert analyse_agreement(judged.store, plain.batch_id).weighted == {}


# Diagnostics of such a batch speak about production, not the batch.


# The judge passes 300 of 400 traces, of which 15 failed; of the 100 others 50 succeeded.
GAP = {t: float(VERDICT[t] == "complete") - float(TRUTH[t] == "complete") for t in VERDICT}
LENIENCY = (15 - 50) / N


@pytest.fixture
def world(new_world: NewWorld) -> World:
    """Label a batch that holds the uncertain verdict far more often than production does."""
    traces = {name: {"model": "one" if k % 2 else "two"} for k, name in enumerate(ids(N))}
    made = new_world(n=N, n_drawn=80, traces=traces)
    made.judge(VERDICT)
    made.label("Ann", {name: TRUTH[name] for name in made.drawn})
    batch = draw_allocated(made.store, SamplingDesign(seed=2), n=120, allocation="neyman")
    drawn = tuple(made.store.batch_items(batch.batch_id)["trace_id"])
    found = World(store=made.store, batch_id=batch.batch_id, drawn=drawn)
    found.label("Ann", {name: TRUTH[name] for name in drawn})
    return found


def weights(world: World) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    items = world.store.batch_items(world.batch_id).set_index("trace_id")
    drawn = items.loc[list(world.drawn), "inclusion_probability"]
    return np.asarray(1 / drawn.to_numpy(dtype=np.float64))


def test_leniency_is_that_of_production(world: World) -> None:
    found = diagnose_judge(world.store, world.batch_id)
    gaps = np.array([GAP[name] for name in world.drawn])
    weight = weights(world)
    by_hand = float(weight @ gaps / weight.sum())
    assert found.leniency.estimate.value == pytest.approx(by_hand)
    assert abs(by_hand - LENIENCY) < 0.02
    # The plain mean over the batch is more than twice as far down.
    assert gaps.mean() < 2 * LENIENCY
    assert found.notes == (WEIGHED,)
    (of_one,) = (row for row in found.leniency_by["agent"] if row.group == "one")
    one = np.array([int(name[1:]) % 2 == 1 for name in world.drawn])
    expected = pytest.approx(weight[one] @ gaps[one] / weight[one].sum())
    assert of_one.gap.estimate.value == expected
    assert of_one.verdict_credit - of_one.human_credit == expected


def test_disagreements_weigh_what_they_stand_for(world: World) -> None:
    found = diagnose_judge(world.store, world.batch_id).disagreements
    # 15 passed that failed, 50 failed that passed, and 50 hallucinated that were abandoned.
    assert sum(d.weight for d in found) == pytest.approx(115 / N, abs=0.03)
    assert sum(d.moves or 0.0 for d in found) == pytest.approx(65 / N, abs=0.03)
    assert len(found) / len(world.drawn) > 115 / N + 0.1


def test_groups_and_drift_are_weighed(world: World) -> None:
    groups = {g.name: g for g in analyse_groups(world.store, world.batch_id, by="model").groups}
    share = sum(TRUTH[name] == "complete" for name in ids(N)[1::2]) / (N / 2)
    one = groups["one"]
    assert one.net.kind == "direct"
    assert one.net.estimate.value == pytest.approx(share, abs=0.05)
    assert one.leniency.estimate.value == pytest.approx(LENIENCY, abs=0.04)
    world.judge(dict.fromkeys(ids(N), "complete"), "always")
    drift = compare_judges(world.store, "judge-1", "always", batch_id=world.batch_id)
    humans = known(drift.against_humans)
    assert humans.accuracy_before.estimate.value == pytest.approx(285 / N, abs=0.03)
    assert humans.accuracy_after.estimate.value == pytest.approx(335 / N, abs=0.03)
    right = np.array([TRUTH[name] == "complete" for name in world.drawn])
    assert abs(right.mean() - 335 / N) > 0.08
