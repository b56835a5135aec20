"""The rate of a store takes its random batches together: weights by hand, and what is left out."""

from dataclasses import replace

import pytest

from calibration.analyses.evidence.from_store import (
    load_batch,
    load_judged,
    pooled_id,
    rated_with,
)
from calibration.analyses.judge.calibration import analyse_judge
from calibration.analyses.reviewers.progress import batch_results
from calibration.analyses.sampling.draw import SamplingDesign, draw_audit, draw_batch
from calibration.analyses.sampling.stratified import draw_allocated
from calibration.analyses.success_rate.from_store import report_on_store
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import CalibrationError, InputError
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids, known, make_trace

BOTH = "production-001+production-002"


def second(world: World, n: int, **options: object) -> World:
    """Draw another batch from all traces of the store."""
    design = SamplingDesign(seed=7, labels_wanted=1, **options)  # type: ignore[arg-type]
    batch = draw_batch(world.store, design, n=n)
    drawn = tuple(world.store.batch_items(batch.batch_id)["trace_id"])
    return replace(world, batch_id=batch.batch_id, drawn=drawn)


def judged(new_world: NewWorld, n: int, n_drawn: int) -> World:
    world = new_world(n=n, n_drawn=n_drawn)
    world.judge(dict.fromkeys(ids(n), "complete"))
    return world


def test_two_batches_of_one_population_are_one_larger_sample(new_world: NewWorld) -> None:
    first = judged(new_world, 200, 80)
    truth = {t: "complete" if k % 4 else "abandoned" for k, t in enumerate(ids(200))}
    first.label("Ann", {t: truth[t] for t in first.drawn})
    more = second(first, 40)
    assert pooled_id(first.store) == "production-001"  # nobody has labelled the second yet
    more.label("Ben", {t: truth[t] for t in more.drawn})
    store = first.store
    data = load_judged(store, None, None)
    union = {*first.drawn, *more.drawn}
    assert set(data.labelled["trace_id"]) == union
    # Each trace has the chance 1 - (1 - .4)(1 - .2): no weights.
    assert data.labelled["inclusion_probability"].tolist() == pytest.approx([0.52] * len(union))
    assert (data.weights, data.provenance.batch_id) == (None, BOTH)
    share = sum(truth[t] == "complete" for t in union) / len(union)
    rate = analyse_judge(store).calibration.estimates["post_stratified"].net
    assert rate.value == pytest.approx(share)
    assert report_on_store(store).asr == rate
    alone = report_on_store(store, ReportOptions(batch_id="production-002"))
    assert alone.asr.n == 40
    assert "not used here" in " ".join(load_batch(store, "production-002").notes)


def test_a_later_population_weighs_its_new_traces_more(new_world: NewWorld) -> None:
    """100 traces, 50 drawn; then 100 more, and 60 of all 200: .5 + .5 x .3 and .3."""
    world = judged(new_world, 100, 50)
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    late = [f"s{k:03d}" for k in range(100)]
    world.store.ingest([make_trace(t) for t in late])
    world.judge(dict.fromkeys(late, "complete"))
    more = second(world, 60)
    more.label("Ann", {t: "abandoned" if t in late else "complete" for t in more.drawn})
    data = load_judged(world.store, None, None)
    chance = data.labelled.set_index("trace_id")["inclusion_probability"]
    early = [t for t in chance.index if t not in late]
    assert chance[early].tolist() == pytest.approx([0.65] * len(early))
    assert chance[[*set(more.drawn) & set(late)]].unique().tolist() == pytest.approx([0.3])
    weights = known(data.weights)
    assert weights == pytest.approx((1 / chance).to_numpy())
    # Hajek: without weights the rate would be that of the labels, mostly early ones.
    n_late = len(set(more.drawn) & set(late))
    expected = (len(early) / 0.65) / (len(early) / 0.65 + n_late / 0.3)
    found = analyse_judge(world.store).calibration
    assert found.estimates["post_stratified"].net.value == pytest.approx(expected)
    assert abs(expected - 0.5) < abs(len(early) / len(chance) - 0.5)


def test_only_what_was_asked_about_counts_as_drawn(new_world: NewWorld) -> None:
    world = judged(new_world, 100, 50)
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    more = second(world, 40)
    more.label("Ben", dict.fromkeys(more.drawn[:10], "complete"))
    chance = load_judged(world.store, None, None).labelled["inclusion_probability"]
    # Ten of the 40 so far: a chance of .4 x 10 / 40.
    assert chance.unique().tolist() == pytest.approx([1 - 0.5 * 0.9])


def test_a_trace_of_two_batches_has_the_later_label_of_a_reviewer(new_world: NewWorld) -> None:
    world = judged(new_world, 60, 60)
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    more = second(world, 60)
    more.label("Ann", dict.fromkeys(more.drawn[:30], "abandoned"))
    data = load_judged(world.store, None, None)
    assert len(data.labels) == 60
    assert data.labels["outcome"].value_counts().to_dict() == {"complete": 30, "abandoned": 30}


def test_a_draw_over_verdicts_is_pooled_by_its_strata(new_world: NewWorld) -> None:
    world = new_world(n=200, n_drawn=50)
    world.judge({t: "complete" if k < 160 else "abandoned" for k, t in enumerate(ids(200))})
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    design = SamplingDesign(seed=3, labels_wanted=1)
    batch = draw_allocated(world.store, design, n=40, allocation="proportional")
    drawn = tuple(world.store.batch_items(batch.batch_id)["trace_id"])
    more = replace(world, batch_id=batch.batch_id, drawn=drawn)
    more.label("Ann", dict.fromkeys(drawn, "complete"))
    data = load_judged(world.store, None, None)
    cells = {cell["verdict"]: cell["inclusion_probability"] for cell in batch.design["strata"]}
    verdicts = [data.verdict_names[data.verdicts[row]] for row in data.at]
    expected = [1 - 0.75 * (1 - cells[verdict]) for verdict in verdicts]
    assert data.labelled["inclusion_probability"].tolist() == pytest.approx(expected)


def test_batches_that_cannot_be_taken_together_are_refused_by_name(new_world: NewWorld) -> None:
    world = judged(new_world, 60, 40)
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    with pytest.raises(InputError, match="no batch 'production-009'"):
        load_batch(world.store, "production-001+production-009")
    chosen = world.store.add_batch(purpose="production", trace_ids=ids(5), labels_wanted=1)
    with pytest.raises(InputError, match=f"{chosen.batch_id}' cannot be taken together"):
        load_batch(world.store, f"production-001+{chosen.batch_id}")
    assert pooled_id(world.store) == "production-001"
    with pytest.raises(CalibrationError, match="does not say what it was drawn from"):
        load_batch(world.store, chosen.batch_id)


def test_an_audit_of_agreed_labels_tells_how_often_two_are_wrong_together(
    new_world: NewWorld,
) -> None:
    """Ann and Ben agree on 40 of 44 traces; of 20 of these Lena calls 3 abandoned."""
    world = judged(new_world, 60, 44)
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    apart = world.drawn[:4]
    world.label("Ben", {t: "abandoned" if t in apart else "complete" for t in world.drawn})
    for trace_id in apart:
        world.settle(trace_id, "abandoned")
    store = world.store
    assert analyse_judge(store).agreed_error is None
    lead = store.add_reviewer("Lena", role="lead")
    with pytest.raises(CalibrationError, match="41 agreed traces were asked for and there are 40"):
        draw_audit(store, n=41, seed=1, reviewer_id=lead.reviewer_id)
    batch = draw_audit(store, n=20, seed=1, reviewer_id=lead.reviewer_id)
    drawn = tuple(store.batch_items(batch.batch_id)["trace_id"])
    assert not set(apart) & set(drawn)
    before = analyse_judge(store)
    assert "waits for its lead" in known(before.agreed_error).status
    again = replace(world, batch_id=batch.batch_id, drawn=drawn)
    again.label("Lena", {t: "abandoned" if t in drawn[:3] else "complete" for t in drawn})
    found = analyse_judge(store)
    error = known(found.agreed_error)
    assert error.n == 20
    assert error.value == pytest.approx(3 / 20)
    # Clopper and Pearson (1934) for 3 of 20.
    assert error.interval == pytest.approx((0.0321, 0.3789), abs=1e-4)
    # The audit labels enter no rate, and the batch is none to report on.
    assert found.calibration.estimates == before.calibration.estimates
    assert pooled_id(store) == "production-001"
    assert any("3 of 20 another class, 15.0 %" in note for note in report_on_store(store).notes)


def test_home_and_the_stopping_rule_show_the_same_rate(new_world: NewWorld) -> None:
    first = judged(new_world, 200, 80)
    first.label("Ann", {t: "complete" if k % 3 else "abandoned" for k, t in enumerate(first.drawn)})
    more = second(first, 40)
    more.label("Ann", {t: "complete" if k % 5 else "abandoned" for k, t in enumerate(more.drawn)})
    rated = rated_with(first.store, "production-002")
    assert rated == BOTH
    shown = batch_results(first.store, rated)
    assert shown.headline == report_on_store(first.store).asr
    assert shown.stopping.batch_id == BOTH
    assert shown.stopping.n == len({*first.drawn, *more.drawn})
