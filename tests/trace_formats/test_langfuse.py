"""Exports of Langfuse in three shapes: transcript, cost, and scores that stay hidden."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.trace_files import read_files
from calibration.errors import TraceFormatError
from calibration.records import NO_VERDICT
from calibration.tables.scales import UNIT
from calibration.taxonomy import default_taxonomy
from calibration.trace_formats import ImportSettings, detect
from tests.trace_formats.conftest import Split, rules_of, runs_of, verdict_of, verdicts_of

Write = Callable[[str, Any], Path]


def observation(own: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": own, "traceId": "t", "parentObservationId": None, "type": "GENERATION", "name": own,
        "startTime": "2026-03-01T09:00:00Z", "endTime": "2026-03-01T09:00:01Z",
        "input": "Hi?", "output": "Hi.", "model": "m", "usageDetails": {"input": 5, "output": 2},
    } | changes  # fmt: skip


def trace(**changes: Any) -> dict[str, Any]:
    return {
        "id": "t", "timestamp": "2026-03-01T09:00:00Z", "name": "chat", "htmlPath": "/t",
        "input": "Hi?", "output": "Hi.", "observations": [], "scores": [],
    } | changes  # fmt: skip


def test_a_page_becomes_one_run_with_each_message_once(fixtures: Path, split: Split) -> None:
    path = fixtures / "langfuse" / "trace-page.json"
    assert detect(path).title == "a Langfuse export"
    (item,), aside = split(path)
    assert not aside
    found = item.trace
    assert (found.source, found.source_id, found.workflow) == ("langfuse", "lf-1", "refund-agent")
    assert (found.task_id, found.trial, found.agent_version) == ("refund-51", 1, "1.2")
    assert (found.prompt, found.response) == ("Refund order 51, please.", "Order 51 is refunded.")
    assert (found.cost_usd, found.latency_s, found.total_tokens) == (0.003, 4.5, 280)
    assert found.model == "m-1"
    assert found.started_at is not None
    assert [(s.role, s.tool, s.content, s.result) for s in found.steps] == [
        ("system", None, "Help customers.", None),
        ("user", None, "Refund order 51, please.", None),
        ("assistant", "refund", "I look it up.", None),
        ("tool", "refund", None, "timeout, retried: ok"),
        ("assistant", None, "Order 51 is refunded.", None),
    ]
    call, result = found.steps[2:4]
    assert call.arguments is not None
    assert json.loads(call.arguments) == {"order": 51}
    assert (call.tokens_in, call.tokens_out, call.at) == (100, 20, 0.1)
    assert (result.call, result.error, result.seconds) == (call.step_id, True, 1.0)


def test_scores_become_a_hidden_verdict_and_those_of_people_do_not(
    fixtures: Path, split: Split
) -> None:
    taken, _ = split(fixtures / "langfuse" / "trace-page.json")
    # The only value is 1, which may be the lowest grade of five.
    alone = verdict_of(taken[0])
    assert alone is not None
    assert alone.outcome == NO_VERDICT
    verdict = verdict_of(taken[0], correctness=UNIT)
    assert verdict is not None
    assert verdict.judge_id == "source:langfuse"
    assert (verdict.outcome, verdict.proposed) == (default_taxonomy().success, True)
    assert verdict.reason is not None
    assert "toxicity 0.1" in verdict.reason
    assert "review" not in verdict.reason
    shown = repr(taken[0].trace.for_review())
    assert "toxicity" not in shown
    assert "too short" not in shown
    assert "PASS" not in shown
    scores = taken[0].trace.metadata["scores"]
    assert isinstance(scores, list)
    assert [(s["name"], s["human"], s["author"]) for s in scores][-1] == ("review", True, "mo")
    # They become labels on request only.
    human = [
        (s.reviewer, s.score.name, rules_of(taken).outcome(s.score), s.comment)
        for s in taken[0].grades.human
    ]
    assert human == [("mo", "review", None, "too short")]


@pytest.mark.parametrize(
    ("score", "outcome"),
    [
        ({"name": "toxicity", "value": 0, "dataType": "NUMERIC", "source": "EVAL"}, NO_VERDICT),
        ({"name": "Success", "value": 0.5, "dataType": "NUMERIC", "source": "API"}, NO_VERDICT),
        ({"name": "success", "value": 0, "dataType": "BOOLEAN", "source": "API"}, "failed"),
        ({"name": "x", "stringValue": "SUCCESS", "dataType": "CATEGORICAL", "value": 1}, "class"),
        ({"name": "ok", "value": 1, "dataType": "NUMERIC", "source": "ANNOTATION"}, None),
        ({"name": "output", "value": 0, "dataType": "CORRECTION", "longStringValue": "x"}, None),
    ],
)
def test_what_a_score_says(
    score: dict[str, Any], outcome: str | None, write: Write, split: Split
) -> None:
    taxonomy = default_taxonomy()
    if outcome == "class":
        score, outcome = score | {"stringValue": taxonomy.success}, taxonomy.success
    names = {"failed": taxonomy.failed_check}
    score["traceId"] = "t"
    taken, _ = split(write("t.json", trace(scores=[score], observations=[observation("o")])))
    verdict = verdict_of(taken[0])
    assert (verdict.outcome if verdict else None) == names.get(str(outcome), outcome)


@pytest.mark.parametrize(
    ("total", "costs", "known"),
    [
        (0.5, [0.1, 0.2], 0.5),  # what the trace says
        (None, [0.1, 0.2], 0.3),
        (0, [0.1, 0.2], 0.3),
        (0, [0, 0], None),  # 0 is an unknown price
        (None, [None, "0.25"], 0.25),
    ],
)
def test_cost(
    total: float | None, costs: list[Any], known: float | None, write: Write, split: Split
) -> None:
    spans = [observation(f"o{k}", totalCost=cost) for k, cost in enumerate(costs)]
    taken, _ = split(write("t.json", trace(totalCost=total, observations=spans)))
    assert taken[0].trace.cost_usd == pytest.approx(known)


def test_one_call_in_two_spans_counts_once(write: Write, split: Split) -> None:
    # The outer span is the framework's, the inner one the provider's; both are priced.
    call = {"function": {"name": "find", "arguments": "{}"}, "id": "k"}
    inner = observation("in", parentObservationId="out", totalCost=0.1, output="None")
    outer = observation(
        "out", totalCost=0.1, input={"messages": ["text"]},
        output={"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]},
    )  # fmt: skip
    inner["input"] = "system: Be kind.\nuser: Find it."
    costless = observation("plain", totalCost=None)
    taken, _ = split(write("t.json", trace(observations=[outer, inner, costless])))
    found = taken[0].trace
    assert found.cost_usd == 0.1
    assert found.total_tokens == 14
    assert [s.content for s in found.steps][:2] == ["Be kind.", "Find it."]
    assert [s.tool for s in found.steps if s.tool] == ["find"]
    assert "price not known" in str(found.metadata["cost_note"])


def test_the_rows_of_a_blob_export_are_joined_over_its_files(fixtures: Path) -> None:
    read = read_files([fixtures / "langfuse"], ImportSettings())
    found = {item.trace.source_id: item for item in runs_of(read)}
    assert sorted(found) == ["lf-1", "lf-2", "lf-3"]
    assert (found["lf-2"].trace.cost_usd, found["lf-2"].trace.latency_s) == (0.0005, 3.5)
    assert found["lf-3"].trace.cost_usd is None
    verdict = verdict_of(found["lf-2"])
    assert verdict is not None
    assert verdict.outcome == default_taxonomy().failed_check
    reasons = [row.reason for row in read.set_aside]
    assert any("session" in reason for reason in reasons)
    assert any("'lf-gone'" in reason for reason in reasons)
    assert len(reasons) == 2
    formats = {file.path.name: (file.traces, file.format) for file in read.files}
    assert formats["observations.jsonl"] == (2, "a Langfuse export")
    assert formats["traces.jsonl"] == (0, "a Langfuse export, parts of runs in other files")


def test_enriched_observations_name_their_trace(write: Write, split: Split) -> None:
    row = {
        "id": "o", "trace_id": "t", "trace_name": "shop", "session_id": "s", "type": "GENERATION",
        "parent_observation_id": "", "start_time": "2026-03-01 09:00:00.000000",
        "end_time": "2026-03-01 09:00:02.000000", "input": '{"question": "Open?"}',
        "output": '{"answer": "Yes."}', "cost_details": '{"total": 0.2}', "total_cost": None,
    }  # fmt: skip
    lines = "\n".join(json.dumps(row | {"id": own}) for own in ("o", "p"))
    taken, _ = split(write("observations_v2.jsonl", lines))
    found = taken[0].trace
    assert (found.workflow, found.cost_usd, found.metadata["sessionId"]) == ("shop", 0.4, "s")
    assert (found.prompt, found.response, found.latency_s) == ("Open?", "Yes.", 2.0)


def test_pages_of_the_api(write: Write, split: Split) -> None:
    page = {"data": [trace(observations=["o1"], scores=["s1"], totalCost=0.7)], "meta": {"page": 1}}
    (item,), _ = split(write("page.json", page))
    assert (item.trace.cost_usd, item.trace.response) == (0.7, "Hi.")
    rows: list[object] = [observation("o1"), {"id": "x"}, 3]
    listed: dict[str, object] = {"data": rows, "meta": {"page": 1}}
    taken, aside = split(write("observations.json", listed))
    assert len(taken) == 1
    assert [row.reason[:30] for row in aside] == ["is no span, run or score of a "] * 2
    table = [trace(scores={"success": 1}, sessionId=None, observations=None)]
    (item,), _ = split(write("table.json", table))
    assert verdict_of(item) is not None
    assert item.trace.cost_usd is None


def test_runs_without_anything_to_read_are_set_aside(write: Write, split: Split) -> None:
    rows = [trace(id="empty", output=None, sessionId=None), trace(id="bare", sessionId=None)]
    taken, aside = split(write("traces.json", rows))
    assert [item.trace.source_id for item in taken] == ["bare"]
    assert "neither spans nor an answer" in aside[0].reason
    only_embedding = trace(output=None, observations=[observation("o", type="EMBEDDING")])
    _, aside = split(write("embedding.json", only_embedding))
    assert "(kinds: embedding)" in aside[0].reason
    _, aside = split(write("no-id.json", [observation("o") | {"traceId": None}]))
    assert aside[0].reason == "field 'traceId': is missing"


def test_a_table_of_langfuse_says_how_to_export(write: Write, split: Split) -> None:
    header = "id,trace_id,parent_observation_id,type,start_time\no,t,,SPAN,2026-03-01 09:00:00\n"
    with pytest.raises(TraceFormatError, match=r"a Langfuse export as a table.*JSONL"):
        split(write("observations.csv", header))
    with pytest.raises(TraceFormatError, match="without a span or a run"):
        split(write("empty.json", {"data": [], "meta": {}}))


def test_reviewers_see_no_model_in_the_name_of_a_run(write: Write, split: Split) -> None:
    spans = [observation("o", model="m-9")]
    taken, _ = split(write("t.json", trace(name="chat m-9", observations=spans)))
    assert taken[0].trace.workflow == "chat"


def test_tools_that_are_plain_spans_and_ids_that_are_lists(write: Write, split: Split) -> None:
    own = ["run_1", "call_1"]
    given = {"at": "Rome"}
    call = {"role": "assistant", "parts": [
        {"type": "tool_call", "id": own, "name": "weather", "arguments": given}]}  # fmt: skip
    told = {"role": "tool", "parts": [
        {"type": "tool_call_response", "id": json.dumps(own), "response": "stormy"}]}  # fmt: skip
    said = {"role": "assistant", "parts": [{"type": "text", "content": "It is stormy."}]}
    about = {"attributes": {"gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "call_1"}}
    spans = [
        observation("a", input=[{"role": "user", "content": "Rome?"}], output=[call]),
        observation("b", type="SPAN", name="tool.weather", metadata=about, input={"at": "Rome"},
                    output="stormy", startTime="2026-03-01T09:00:02Z",
                    endTime="2026-03-01T09:00:03Z"),
        observation("c", input=[call, told], output=[call, told, said], usageDetails=None,
                    inputUsage=7, outputUsage=1, startTime="2026-03-01T09:00:04Z",
                    endTime="2026-03-01T09:00:05Z"),
    ]  # fmt: skip
    name = "invoke_agent 99981f6a-abd1-4d09-9fba-00e2ab172193"
    (item,), _ = split(write("t.json", trace(name=name, observations=spans, input=None)))
    assert [(s.tool, s.content, s.result) for s in item.trace.steps] == [
        (None, "Rome?", None),
        ("weather", None, None),
        ("weather", None, "stormy"),
        (None, "It is stormy.", None),
    ]
    assert (item.trace.workflow, item.trace.total_tokens) == ("invoke_agent", 15)


def test_further_scores_of_success_have_judges_of_their_own(write: Write, split: Split) -> None:
    taxonomy = default_taxonomy()
    given = [("reward", 0), ("quality", taxonomy.success), ("speed", 3), ("resolved", 1)]
    scores = [
        {"traceId": "t", "name": name, "value": value, "source": "EVAL"} for name, value in given
    ]
    (item,), _ = split(write("t.json", trace(scores=scores)))
    verdicts = verdicts_of(item)
    assert [(v.judge_id, v.outcome) for v in verdicts if v is not None] == [
        ("source:langfuse", taxonomy.failed_check),
        ("source:langfuse/quality", taxonomy.success),
        ("source:langfuse/resolved", taxonomy.success),
    ]
