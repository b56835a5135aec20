"""Gates on a store: what its labels, verdicts, steps and tags give, and what is skipped."""

from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.gates.run import GateAnalysis, gate_store
from calibration.analyses.reference_traces import published_set
from calibration.analyses.reviewers.examinations import add_practice
from calibration.analyses.success_rate.from_store import report_on_store
from calibration.errors import InputError
from calibration.gates.evaluate import GateResult
from calibration.records import LabelDraft, Step, Workflow
from tests.analyses.conftest import NewWorld
from tests.analyses.test_signals import FIND, calls
from tests.analyses.worlds import World, ids, make_trace


def gated(world: World, tmp_path: Path, text: str = "", **options: Any) -> GateAnalysis:
    gates = tmp_path / "gates.toml"
    gates.write_text(text, encoding="utf-8")
    return gate_store(world.store, gates, **options)


def of(found: GateAnalysis, name: str) -> GateResult:
    return next(gate for gate in found.report.gates if gate.name == name)


def labelled(new_world: NewWorld, n_bad: int = 3, **options: Any) -> World:
    """Return 60 traces, 30 of them labelled; the first `n_bad` of those were abandoned."""
    world = new_world(n=60, n_drawn=30, **options)
    world.label("ann", {t: "abandoned" if k < n_bad else "complete"
                        for k, t in enumerate(world.drawn)})  # fmt: skip
    return world


def test_human_labels_without_a_judge(new_world: NewWorld, tmp_path: Path) -> None:
    world = labelled(new_world, ceiling=0.5)
    found = gated(world, tmp_path)
    assert found.asr == report_on_store(world.store).asr
    assert (found.calibrated, found.n_runs) == (False, 60)
    first = of(found, "pass_at_1[core]")
    assert (first.status, first.value, first.n) == ("pass", 0.9, 30)
    assert first.method.startswith("share of complete runs, of the labelled sample")
    review = of(found, "human_review")
    assert (review.status, review.value, review.n) == ("pass", 0.9, 30)
    skipped = {g.name: g.why for g in found.report.gates if g.status == "skipped"}
    assert set(skipped) == {
        "pass_hat_3[core]", "pass_at_1[edge]", "loops", "data_corruption", "judge", "trend",
        "non_inferior", "regression", "latency_p95", "cost",
    }  # fmt: skip
    assert all(skipped.values())
    assert {g.name for g in found.report.blocking} == {
        "pass_hat_3[core]", "loops", "data_corruption", "regression", "cost",
    }  # fmt: skip
    assert gated(world, tmp_path, "allow_skipped = true").report.exit_code == 0


def test_rules_of_order_are_gated_by_the_steps(new_world: NewWorld, tmp_path: Path) -> None:
    def run(*tools: str) -> dict[str, Any]:
        steps = (
            Step(step_id=f"s{k}", role="assistant", tool=tool, arguments="{}")
            for k, tool in enumerate(tools)
        )
        return {"steps": tuple(steps)}

    runs = {"r000": run("find", "book"), "r001": run("book", "find"), "r002": run("find")}
    world = labelled(new_world, traces=runs)
    rules = 'before = [["find", "book"], ["ask", "write:*"]]\n'
    order = of(gated(world, tmp_path, rules), "order")
    assert (order.status, order.value, order.n, order.level) == ("fail", 0.5, 2, "must")
    assert order.interval is not None
    assert order.why == "failed: find before book"
    broken, unused = order.parts
    assert broken.why.startswith("1 of 2 runs")
    assert broken.why.endswith("first: r001")
    assert (unused.status, unused.why) == ("skipped", "applies to no run")
    lenient = gated(world, tmp_path, rules + "[gates.order]\nthreshold = 0.5\nlevel = 'should'")
    assert (of(lenient, "order").status, of(lenient, "order").level) == ("pass", "should")
    nothing = of(gated(world, tmp_path, 'before = [["a", "b"]]'), "order")
    assert (nothing.status, nothing.value, nothing.blocks) == ("skipped", None, True)
    with pytest.raises(InputError, match="names one tool twice"):
        gated(world, tmp_path, 'before = [["a", "a"]]')


def test_the_corrected_rate_is_gated_with_the_judge(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world(n=400, n_drawn=200)
    bad = set(ids(400)[::4])
    world.label("ann", {t: "abandoned" if t in bad else "complete" for t in world.drawn})
    world.judge({t: "abandoned" if t in bad else "complete" for t in ids(400)})
    found = gated(world, tmp_path)
    report = report_on_store(world.store)
    assert (found.calibrated, found.asr) == (True, report.asr)
    first = of(found, "pass_at_1[core]")
    assert (first.value, first.interval) == (report.pass_rate.value, report.pass_rate.interval)
    assert "corrected" in first.method
    judge = of(found, "judge")
    assert (judge.status, judge.value, judge.n) == ("pass", 1.0, 200)
    assert "corrected for judge error; batch" in found.kind


def test_loops_are_counted_over_traces_with_steps(new_world: NewWorld, tmp_path: Path) -> None:
    traces: dict[str, Any] = {t: {"steps": calls(FIND)} for t in ids(40)}
    traces["r003"] = {"steps": calls(FIND, FIND)}
    world = labelled(new_world, traces=traces)
    loops = of(gated(world, tmp_path), "loops")
    assert loops.status == "pass"
    assert loops.interval == pytest.approx((0, 1 - 0.05 ** (1 / 40)))
    looping = make_trace("r003", steps=calls(FIND, FIND, FIND))
    assert world.store.ingest([looping], take_changed=True).replaced
    loops = of(gated(world, tmp_path), "loops")
    assert (loops.status, loops.value, loops.n) == ("fail", 1 / 40, 40)


def test_corruption_is_read_from_the_tags_of_labels(new_world: NewWorld, tmp_path: Path) -> None:
    world = labelled(new_world)
    gate = of(gated(world, tmp_path), "data_corruption")
    assert (gate.status, gate.why) == (
        "skipped", "no label of the batch has a tag, so nobody looked",
    )  # fmt: skip
    ben = world.store.add_reviewer("ben")
    for n, (trace_id, tag) in enumerate(
        zip(world.drawn, ("slow", "Data_Corruption"), strict=False)
    ):
        draft = LabelDraft(
            client_token=tag, trace_id=trace_id, reviewer_id=ben.reviewer_id,
            batch_id=world.batch_id, answers=world.store.taxonomy().answers_for("abandoned"),
            tags=(tag,),
        )  # fmt: skip
        world.store.import_labels(world.batch_id, [draft])
        gate = of(gated(world, tmp_path), "data_corruption")
        assert (gate.status, gate.value, gate.n) == (("pass", "fail")[n], n / 30, 30)


def test_cost_and_latency_of_all_traces_by_task(new_world: NewWorld, tmp_path: Path) -> None:
    traces = {
        t: {"cost_usd": 0.3 + 0.01 * (k % 5), "latency_s": 1.0 + k, "task_key": f"test/{k // 3}",
            "trial": k % 3}
        for k, t in enumerate(ids(60))
    }  # fmt: skip
    world = labelled(new_world, ceiling=0.5, traces=traces)
    found = gated(world, tmp_path)
    assert found.n_tasks == 20
    cost = of(found, "cost")
    assert (cost.status, cost.value, cost.parts[1].n) == ("pass", 0, 20)
    assert cost.parts[1].value == pytest.approx(0.32)
    late = of(found, "latency_p95")
    assert (late.status, late.value) == ("fail", 57.0)
    world.store.set_workflow(Workflow(name="flights", ceiling_usd=0.31, unit="seat"))
    dear = of(gated(world, tmp_path), "cost")
    assert dear.status == "fail"
    assert dear.value == pytest.approx(0.6)


def test_what_a_store_cannot_be_asked(new_world: NewWorld, tmp_path: Path) -> None:
    world = labelled(new_world)
    with pytest.raises(InputError, match=r"\[ceilings\] are for files"):
        gated(world, tmp_path, "[ceilings]\nflights = 1")
    gate = of(gated(world, tmp_path, "partial_plus_passes = true"), "pass_at_1[core]")
    assert gate.status == "skipped"
    assert "partial_plus_passes" in gate.why
    # Reference traces are never gated.
    add_practice(world.store, published_set())
    found = gated(world, tmp_path)
    assert (found.n_runs, found.asr) == (60, report_on_store(world.store).asr)
    with pytest.raises(InputError, match="is for practice"):
        gated(world, tmp_path, batch_id=world.store.batches()[0].batch_id)
