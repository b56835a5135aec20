"""Batches over strata of verdict x workflow: how they are drawn, and that they are weighed."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from calibration.analyses.agreement.analysis import analyse_agreement
from calibration.analyses.evidence.from_store import load_batch
from calibration.analyses.judge.calibration import analyse_judge
from calibration.analyses.sampling.draw import SamplingDesign, draw_within
from calibration.analyses.sampling.planning import plan_batch
from calibration.analyses.sampling.stratified import draw_allocated, verdict_strata
from calibration.analyses.success_rate.from_store import rates_of_store
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import CalibrationError, InputError
from calibration.reporting import to_json
from calibration.reporting.document import text_lines
from calibration.reporting.sections import agreement as reporting
from calibration.store import Batch
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids
from tests.classes import TAXONOMY

N = 400

# Of 400 traces 300 have the verdict complete, of which 15 failed, and 100 hallucinated, of which
# 50 succeeded: 335 successes.
VERDICT = dict(zip(ids(N), ["complete"] * 300 + ["hallucinated"] * 100, strict=True))

TRUTH = dict(
    zip(
        ids(N),
        ["complete"] * 285 + ["abandoned"] * 15 + ["complete"] * 50 + ["abandoned"] * 50,
        strict=True,
    )
)

RATE = 335 / 400

HOTELS = {name: {"workflow": "hotels"} for name in ids(N)[::4]}


@pytest.fixture
def judged(new_world: NewWorld) -> World:
    """Return 400 judged traces in two workflows, of which 80 are labelled."""
    world = new_world(n=N, n_drawn=80, traces=HOTELS)
    world.judge(VERDICT)
    world.label("Ann", {name: TRUTH[name] for name in world.drawn})
    return world


def of(world: World, batch: Batch) -> World:
    drawn = tuple(world.store.batch_items(batch.batch_id)["trace_id"])
    return World(store=world.store, batch_id=batch.batch_id, drawn=drawn)


def test_the_design_and_the_probability_of_each_trace_are_recorded(judged: World) -> None:
    batch = draw_allocated(judged.store, SamplingDesign(seed=3), n=80, allocation="neyman")
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
    batch = draw_allocated(judged.store, SamplingDesign(seed=3), n=80, allocation="proportional")
    assert [s["n"] for s in batch.design["strata"]] == [45, 15, 15, 5]
    assert load_batch(judged.store, batch.batch_id).weights is None
    again = draw_allocated(
        judged.store, SamplingDesign(seed=3, once=True), n=80, allocation="proportional"
    )
    same = draw_allocated(
        judged.store, SamplingDesign(seed=3, once=True), n=80, allocation="proportional"
    )
    assert again == same
    assert again.batch_id != batch.batch_id
    assert of(judged, again).drawn == of(judged, batch).drawn


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


@pytest.mark.long
def test_the_unweighted_mean_of_a_neyman_batch_is_off_and_the_weighted_ones_are_not(
    judged: World,
) -> None:
    found: dict[str, list[float]] = {"plain": [], "human_only": [], "corrected": [], "share": []}
    covered = {"human_only": 0, "corrected": 0}
    repeats = 8
    for seed in range(repeats):
        batch = draw_allocated(
            judged.store,
            SamplingDesign(seed=seed),
            n=100,
            allocation="neyman",
            basis_batch=judged.batch_id,
        )
        world = of(judged, batch)
        world.label("Ann", {name: TRUTH[name] for name in world.drawn})
        result = rates_of_store(
            judged.store,
            ReportOptions(batch_id=batch.batch_id, judge_id="judge-1", n_resamples=200),
        )
        plain = [TRUTH[name] == "complete" for name in world.drawn]
        found["plain"].append(sum(plain) / len(plain))
        found["share"].append(result.human.class_shares[4].value or 0)
        for name, estimate in (
            ("human_only", result.human.asr),
            ("corrected", result.corrected),
        ):
            assert estimate.value is not None
            assert estimate.interval is not None
            found[name].append(estimate.value)
            covered[name] += estimate.interval[0] <= RATE <= estimate.interval[1]
        judge = analyse_judge(judged.store, batch.batch_id).calibration
        assert judge.estimates["human_only"].net.value == pytest.approx(found["human_only"][-1])
    assert np.mean(found["plain"]) < RATE - 0.06
    for name, truth in (("human_only", RATE), ("corrected", RATE), ("share", 1 - RATE)):
        error = np.std(found[name]) / np.sqrt(repeats)
        assert abs(np.mean(found[name]) - truth) < 4 * error, name
    # Coverage is simulated in tests/simulation/test_coverage_unequal_draws.py.
    assert min(covered.values()) >= 6


def test_weights_are_those_of_the_labelled_traces(judged: World) -> None:
    batch = draw_allocated(judged.store, SamplingDesign(seed=3), n=80, allocation="neyman")
    world = of(judged, batch)
    world.label("Ann", {name: TRUTH[name] for name in world.drawn[:10]})
    loaded = load_batch(judged.store, batch.batch_id)
    assert loaded.weights == pytest.approx(1 / loaded.labelled["inclusion_probability"])
    # A plan made from such a batch speaks about production and not about the batch.
    world.label("Ann", {name: TRUTH[name] for name in world.drawn[10:]})
    plan = plan_batch(judged.store, n=100, batch_id=batch.batch_id)
    assert plan.human_only == pytest.approx(stats.t.ppf(0.975, 99) * 0.0369, rel=0.15)


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
    empty.judge(dict.fromkeys(ids(60), "complete"))
    with pytest.raises(CalibrationError, match=r"0 labelled traces .* `--allocate proportional`"):
        few(empty, n=20)
    assert few(empty, n=20, allocation="proportional").n_items == 20


def test_traces_without_a_verdict_are_a_stratum_of_their_own(new_world: NewWorld) -> None:
    world = new_world(n=60)
    world.judge(dict.fromkeys(ids(60)[:50], "complete"))
    batch = few(world, n=30, allocation="proportional")
    assert [(s["verdict"], s["n"]) for s in batch.design["strata"]] == [
        ("complete", 25),
        ("no_verdict", 5),
    ]


def test_workflows_too_small_to_stand_alone_stand_together() -> None:
    workflow = np.array(["a"] * 50 + ["b"] * 3 + ["c"] * 2 + ["d"] * 45)
    verdict = np.array([0] * 55 + [3] * 45)
    strata = verdict_strata(verdict, workflow, TAXONOMY, n=20)
    assert strata.names == (
        ("complete", "a"),
        ("complete", "other workflows"),
        ("hallucinated", "d"),
    )
    assert strata.counts.tolist() == [50, 5, 45]
    assert strata.parent.tolist() == [0, 0, 1]


def test_agreement_is_given_for_the_batch_and_weighted_to_production(judged: World) -> None:
    batch = draw_allocated(judged.store, SamplingDesign(seed=3), n=80, allocation="neyman")
    world = of(judged, batch)
    # The two reviewers differ on every second trace that the judge calls hallucinated.
    doubtful = [name for name in world.drawn if VERDICT[name] == "hallucinated"]
    other = dict.fromkeys(doubtful[::2], "partial_plus")
    world.label("Ann", {name: TRUTH[name] for name in world.drawn})
    world.label("Ben", {name: TRUTH[name] for name in world.drawn} | other)
    result = analyse_agreement(judged.store, batch.batch_id)
    of_batch = result.study.coefficients["percent_agreement"].value
    weighted = result.weighted["percent_agreement"]
    assert of_batch == pytest.approx(1 - len(other) / 80)
    # A quarter of production has that verdict, and the draw is denser there.
    assert weighted.value == pytest.approx(1 - 0.25 * len(other) / len(doubtful), abs=0.03)
    assert weighted.value is not None
    assert of_batch is not None
    assert weighted.value > of_batch + 0.05
    assert result.weighted["krippendorff_alpha"].interval is not None
    assert any("weighted to production" in line for line in text_lines(reporting.agreement(result)))
    assert to_json.data(result)["weighted_to_production"]["gwet_ac"]["value"]
    plain = draw_allocated(judged.store, SamplingDesign(seed=4), n=80, allocation="proportional")
    of(judged, plain).label("Ann", {name: TRUTH[name] for name in of(judged, plain).drawn})
    assert analyse_agreement(judged.store, plain.batch_id).weighted == {}
