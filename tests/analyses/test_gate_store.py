"""Gates on a store: what its labels, verdicts, steps and tags give, and what is skipped."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from calibration.analyses.gates.run import GateAnalysis, gate_store
from calibration.analyses.reviewers.examinations import add_practice
from calibration.analyses.success_rate.from_store import report_on_store
from calibration.cli import main
from calibration.errors import CalibrationError, InputError
from calibration.gates.evaluate import GateResult
from calibration.records import LabelDraft, Step
from calibration.store import Store
from reference_dataset.loader import load_reference
from tests.analyses.worlds import World, drawn_ids, ids

NewWorld = Callable[..., World]

CALL = Step(step_id="c", role="tool", tool="find", arguments='{"q": 1}')


def steps(*calls: tuple[str, str | None] | None) -> tuple[Step, ...]:
    """Return calls of (tool, arguments), and words for None."""
    return tuple(
        Step(step_id=f"s{k}", role="assistant", content="let me see")
        if call is None
        else Step(step_id=f"s{k}", role="tool", tool=call[0], arguments=call[1])
        for k, call in enumerate(calls)
    )


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
        "pass_hat_3[core]", "pass_at_1[edge]", "loops", "data_corruption", "judge",
        "non_inferior", "regression", "latency_p95", "cost",
    }  # fmt: skip
    assert all(skipped.values())
    assert {g.name for g in found.report.blocking} == {
        "pass_hat_3[core]", "loops", "data_corruption", "regression", "cost",
    }  # fmt: skip
    assert gated(world, tmp_path, "allow_skipped = true").report.exit_code == 0


def test_the_rate_corrected_for_the_judge_is_gated_with_the_judge(
    new_world: NewWorld, tmp_path: Path
) -> None:
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


def test_a_judge_that_always_passes_fails_the_gate(new_world: NewWorld, tmp_path: Path) -> None:
    world = labelled(new_world, n_bad=5)
    world.judge(dict.fromkeys(ids(60), "complete"))
    assert of(gated(world, tmp_path), "judge").status == "fail"


def test_twenty_reviewed_transcripts_are_needed(new_world: NewWorld, tmp_path: Path) -> None:
    world = new_world(n=60, n_drawn=19)
    world.label("ann", dict.fromkeys(world.drawn, "complete"))
    review = of(gated(world, tmp_path), "human_review")
    assert (review.status, review.n) == ("not_estimable", 19)
    assert "20 are needed" in review.why


def looping(store: Store) -> list[str]:
    frame = store.operation_frame()
    return list(frame["trace_id"][frame["loop"] == 1])


@pytest.mark.parametrize(
    ("calls", "loops"),
    [
        ([("find", "1"), ("find", "1"), ("find", "1")], True),
        ([("find", "1"), None, ("find", "1"), None, ("find", "1")], True),
        ([("x", None), ("find", None), ("find", None), ("find", None)], True),
        ([("find", "1"), ("find", "1"), ("open", "1"), ("find", "1")], False),
        ([("find", "1"), ("find", "2"), ("find", "1"), ("find", "2")], False),
        ([("find", "1"), ("find", "1")], False),
        ([None, None, None], False),
    ],
)
def test_loops_are_equal_calls_in_a_row(
    new_world: NewWorld, calls: Sequence[tuple[str, str | None] | None], loops: bool
) -> None:
    world = new_world(n=6, n_drawn=3, traces={"r001": {"steps": steps(*calls)}})
    assert looping(world.store) == (["r001"] if loops else [])


def test_answers_to_three_calls_in_one_turn_are_no_loop(new_world: NewWorld) -> None:
    calls = [
        Step(step_id=f"a{k}", role="assistant", tool="find", arguments=f'{{"q": {k}}}')
        for k in range(3)
    ]
    answers = [Step(step_id=f"t{k}", role="tool", tool="find", result="[]") for k in range(3)]
    same = [Step(step_id=f"b{k}", role="assistant", tool="find", arguments="{}") for k in range(3)]
    between = [step for pair in zip(same, answers, strict=True) for step in pair]
    traces = {"r001": {"steps": (*calls, *answers)}, "r002": {"steps": tuple(between)}}
    assert looping(new_world(traces=traces).store) == ["r002"]


def test_loops_are_counted_over_the_traces_that_have_steps(
    new_world: NewWorld, tmp_path: Path
) -> None:
    traces: dict[str, Any] = {t: {"steps": (CALL,)} for t in ids(40)}
    traces["r003"] = {"steps": (CALL, CALL, CALL)}
    world = labelled(new_world, traces=traces)
    loops = of(gated(world, tmp_path), "loops")
    assert (loops.status, loops.value, loops.n) == ("fail", 1 / 40, 40)
    traces["r003"] = {"steps": (CALL, CALL)}
    loops = of(gated(labelled(new_world, traces=traces), tmp_path), "loops")
    assert loops.status == "pass"
    assert loops.interval == pytest.approx((0, 1 - 0.05 ** (1 / 40)))


@pytest.mark.parametrize(
    ("tags", "status", "count"),
    [((), "skipped", None), (("slow",), "pass", 0), (("Data_Corruption",), "fail", 1)],
)
def test_corruption_is_read_from_the_tags_of_labels(
    new_world: NewWorld, tmp_path: Path, tags: tuple[str, ...], status: str, count: int | None
) -> None:
    world = labelled(new_world)
    ben = world.store.add_reviewer("ben")
    draft = LabelDraft(
        client_token="tagged", trace_id=world.drawn[0], reviewer_id=ben.reviewer_id,
        batch_id=world.batch_id, answers=world.store.taxonomy().answers_for("abandoned"),
        tags=tags,
    )  # fmt: skip
    world.store.import_labels(world.batch_id, [draft])
    gate = of(gated(world, tmp_path), "data_corruption")
    assert gate.status == status
    if count is None:
        assert gate.why == "no label of the batch has a tag, so nobody looked"
    else:
        assert (gate.value, gate.n) == (count / 30, 30)


def test_cost_and_latency_of_all_traces_by_task(new_world: NewWorld, tmp_path: Path) -> None:
    traces = {
        t: {"cost_usd": 0.3 + 0.01 * (k % 5), "latency_s": 1.0 + k, "task_key": f"test/{k // 3}",
            "trial": k % 3}
        for k, t in enumerate(ids(60))
    }  # fmt: skip
    found = gated(labelled(new_world, ceiling=0.5, traces=traces), tmp_path)
    assert found.n_tasks == 20
    cost = of(found, "cost")
    assert (cost.status, cost.value, cost.parts[1].n) == ("pass", 0, 20)
    assert cost.parts[1].value == pytest.approx(0.32)
    late = of(found, "latency_p95")
    assert (late.status, late.value) == ("fail", 57.0)
    dear = gated(labelled(new_world, ceiling=0.31, traces=traces), tmp_path)
    assert of(dear, "cost").status == "fail"
    assert of(dear, "cost").value == pytest.approx(0.6)


def test_what_a_store_cannot_be_asked(new_world: NewWorld, tmp_path: Path) -> None:
    world = labelled(new_world)
    with pytest.raises(InputError, match=r"\[ceilings\] are for files"):
        gated(world, tmp_path, "[ceilings]\nflights = 1")
    gate = of(gated(world, tmp_path, "partial_plus_passes = true"), "pass_at_1[core]")
    assert gate.status == "skipped"
    assert "partial_plus_passes" in gate.why
    with pytest.raises(CalibrationError, match="has no labels yet"):
        gated(new_world(), tmp_path)


def test_reference_traces_of_a_store_are_never_gated(new_world: NewWorld, tmp_path: Path) -> None:
    world = labelled(new_world)
    before = gated(world, tmp_path)
    add_practice(world.store, load_reference())
    after = gated(world, tmp_path)
    assert after.n_runs == before.n_runs == 60
    assert after.asr == before.asr
    with pytest.raises(InputError, match="is for practice"):
        gated(world, tmp_path, batch_id=world.store.batches()[0].batch_id)


def test_the_command_gates_a_store(new_world: NewWorld, tmp_path: Path) -> None:
    drawn = drawn_ids(60, 30)
    world = labelled(new_world)
    assert world.drawn == tuple(drawn)
    world.store.close()
    path = next(tmp_path.glob("*.duckdb"))
    gates = tmp_path / "gates.toml"
    gates.write_text("allow_skipped = true", encoding="utf-8")

    def run(*words: object) -> Any:
        asked = ["gate", "--store", str(path), "--gates", str(gates), *map(str, words)]
        return CliRunner().invoke(main, asked)

    done = run("--json", "--junit", tmp_path / "g.xml", "--summary", tmp_path / "g.md")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["asr"]["value"] == 0.9
    assert "labelled sample" in (tmp_path / "g.xml").read_text() + done.stdout
    assert "batch" in (tmp_path / "g.md").read_text()
    for words, match in (
        (("--baseline", "b.json"), "--baseline is for files; name one"),
        (("--from", "2026-11-02"), "--from is for files; name one"),
        (("--model", "m"), "--model is for files; name one"),
        (("--batch", "none"), "no batch 'none'"),
    ):
        done = run(*words)
        assert (done.exit_code, match in done.stderr) == (2, True), done.output
