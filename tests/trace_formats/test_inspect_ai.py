import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibration.errors import TraceFormatError
from calibration.trace_formats import Parsed, detect, read_traces
from tests.trace_formats.archives import ZSTANDARD, eval_archive, packed
from tests.trace_formats.conftest import rules_of, verdict_of, verdicts_of


@pytest.fixture
def log(fixtures: Path) -> Any:
    return json.loads((fixtures / "inspect.json").read_text())


@pytest.fixture
def runs(fixtures: Path, split: Any) -> list[Parsed]:
    return list(split(fixtures / "inspect.json")[0])


def test_every_field_of_a_sample(runs: list[Parsed]) -> None:
    trace = runs[0].trace
    assert (trace.source, trace.source_id, trace.trial) == ("inspect-ai", "u-a-1", 1)
    assert (trace.workflow, trace.task_key) == ("kiosk", "inspect-ai/kiosk/a")
    assert (trace.prompt, trace.response) == ("Is a snack there?", "No.")
    assert (trace.model, trace.agent_version) == ("maker/model-x", "0123456789ab")
    assert (trace.cost_usd, trace.total_tokens, trace.latency_s) == (0.5, 120, 2.5)
    assert trace.started_at == datetime(2026, 1, 10, 8, tzinfo=UTC)
    assert trace.success_criteria == "Target: no"
    assert trace.metadata["shelf"] == 3
    # Long texts are in the sample once, and steps hold them.
    assert trace.steps[0].content == "Sell tickets only. " * 8
    shown = [(s.role, s.tool, s.arguments, s.result, s.error) for s in trace.steps[2:]]
    assert shown == [
        ("assistant", "stock", '{"item": "snack"}', None, False),
        ("tool", "stock", None, "too slow", True),
        ("assistant", None, None, None, False),
    ]
    assert trace.steps[3].call == trace.steps[2].step_id
    assert trace.steps[2].content == "I look."


def test_epochs_are_trials_and_scores_are_verdicts(runs: list[Parsed]) -> None:
    assert [(r.trace.task_id, r.trace.trial) for r in runs] == [
        ("a", 1), ("a", 2), ("b", 1), ("b", 2)
    ]  # fmt: skip
    verdicts = [verdict_of(run) for run in runs]
    assert [v and (v.judge_id, v.outcome, v.proposed) for v in verdicts] == [
        ("source:inspect-ai", "complete", True),
        ("source:inspect-ai", "abandoned", True),
        ("source:inspect-ai", "partial_minus", True),
        ("source:inspect-ai", "abandoned", True),
    ]
    assert verdicts[0] is not None
    assert verdicts[0].reason == "match 'C'; As the target."
    assert [run.trace.status for run in runs] == [None, "message limit", None, "error"]
    # A usage without a price is no cost.
    assert (runs[3].trace.cost_usd, runs[3].trace.total_tokens) == (None, 7)
    # The scorer's own value is the verdict; what a person made of it is a human score.
    (other,) = verdicts_of(runs[2])[1:]
    assert (other.judge_id, other.outcome) == ("source:inspect-ai/grade", "no_verdict")
    (human,) = runs[2].grades.human
    assert (human.reviewer, rules_of(runs).outcome(human.score), human.comment) == (
        "Ann Lee",
        "complete",
        "Same meaning.",
    )


@pytest.mark.parametrize("method", [8, ZSTANDARD])
def test_an_archive_has_the_same_runs(
    log: Any, runs: list[Parsed], write: Any, method: int
) -> None:
    path = write("log.eval", eval_archive(log, method=method))
    assert detect(path).title == "an Inspect AI log"
    found = [item for item in read_traces(path) if isinstance(item, Parsed)]
    assert [r.trace for r in found] == [r.trace for r in runs]
    assert found[0].file == str(path / "samples/a_epoch_1.json")


def _sample(log: Any, split: Any, write: Any, **changes: Any) -> Parsed:
    changed = {**log["samples"][0], **changes}
    (taken,), aside = split(write("log.json", {**log, "samples": [changed]}))
    assert not aside
    return taken  # type: ignore[no-any-return]


def test_scores_of_other_kinds(log: Any, split: Any, write: Any) -> None:
    for value, outcome in {
        "P": "no_verdict", "N": "partial_minus", True: "complete", 0: "partial_minus",
        "yes": "complete", "so-so": "no_verdict", 0.25: "no_verdict",
    }.items():  # fmt: skip
        run = _sample(log, split, write, scores={"s": {"value": value}})
        assert verdict_of(run) is not None
        assert verdict_of(run).outcome == outcome, value
    none: list[Any] = [{}, None, {"s": {"value": math.nan}}, {"s": None}, []]
    for scores in none:
        assert verdict_of(_sample(log, split, write, scores=scores)) is None
    assert verdict_of(_sample(log, split, write, scores={"s": {"value": {"a": 1}}})) is not None
    # Logs of 2024 have a score without a name.
    old = _sample(log, split, write, scores=None, score={"value": "C"})
    assert verdict_of(old) is not None
    assert verdict_of(old).outcome == "complete"


def test_costs_choices_and_inputs(log: Any, split: Any, write: Any) -> None:
    usage = {"m": {"total_cost": 0.5, "total_tokens": 3}, "judge": {"total_cost": 0.25}}
    roles = {"grader": {"total_cost": 0.25}}
    run = _sample(
        log, split, write, model_usage=usage, role_usage=roles, choices=["yes", "no"],
        input=[{"role": "user", "content": "Which?"}], target=["A", "B"], started_at=None,
        messages=[], uuid=None,
    )  # fmt: skip
    assert run.trace.cost_usd == 0.5
    assert run.trace.total_tokens is None
    assert run.trace.inputs[0].text == "A) yes\nB) no"
    assert (run.trace.prompt, run.trace.response) == ("Which?", "No.")
    assert run.trace.success_criteria == "Target: A\nB"
    assert run.trace.started_at == datetime(2026, 1, 10, 8, 59, tzinfo=UTC)
    assert run.trace.source_id == "run-1/a"
    free = {"m": {"total_cost": 0, "total_tokens": 3}}
    assert _sample(log, split, write, model_usage=free).trace.cost_usd is None


def test_bad_samples_are_set_aside(log: Any, split: Any, write: Any) -> None:
    good, *_ = log["samples"]
    said = [{"role": "user", "content": "attachment://" + "a" * 32}] * 20
    bomb = {"id": 9, "epoch": 1, "messages": said, "attachments": {"a" * 32: "x" * 1_500_000}}
    bad = [
        {},
        3,
        {"id": 1, "epoch": -1},
        {**good, "messages": "said"},
        {**good, "messages": [1]},
        bomb,
    ]
    taken, aside = split(write("log.json", {**log, "samples": [good, *bad]}))
    assert len(taken) == 1
    assert [row.reason.split(":")[0] for row in aside] == [
        "field 'id'", "is not a sample", "field 'epoch'", "field 'messages'", "field 'messages'",
        "has more than 20 MB of text",
    ]  # fmt: skip
    entries = {"header.json": json.dumps({**log, "samples": []}), "samples/1.json": "{",
               "samples/2.json": "[]", "samples/3.json": json.dumps(good)}  # fmt: skip
    taken, aside = split(write("log.eval", packed(entries)))
    assert (len(taken), len(aside)) == (1, 2)
    assert "ends in the middle" in aside[0].reason or "not JSON" in aside[0].reason


def test_a_log_that_cannot_be_read_says_what_to_do(log: Any, write: Any) -> None:
    for name, content, words in (
        ("a.json", {k: v for k, v in log.items() if k != "samples"}, "--no-log-samples"),
        ("b.json", log | {"samples": None}, "--no-log-samples"),
        ("c.eval", packed({"header.json": "{}"}), "without samples"),
        (
            "d.eval",
            packed({"samples/a_epoch_1/sample.json": "{}"}),
            "inspect log convert --to json",
        ),
    ):
        with pytest.raises(TraceFormatError, match=words):
            list(read_traces(write(name, content)))
    # Samples before the eval are read as well; a broken-off run has only the start of its journal.
    turned = {"samples": log["samples"], **{k: v for k, v in log.items() if k != "samples"}}
    assert len(list(read_traces(write("e.json", turned)))) == 4
    entries = {"_journal/start.json": json.dumps({"eval": log["eval"]}),
               "samples/a_epoch_1.json": json.dumps(log["samples"][0])}  # fmt: skip
    assert len(list(read_traces(write("f.eval", packed(entries))))) == 1
