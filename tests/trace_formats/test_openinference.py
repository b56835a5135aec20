"""Spans of Phoenix and OpenTelemetry: flattened messages, old and new names, several files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.trace_files import read_files
from calibration.errors import TraceFormatError
from calibration.taxonomy import default_taxonomy
from calibration.trace_formats import ImportSettings, detect
from tests.trace_formats.conftest import Split, runs_of, verdict_of

Write = Callable[[str, Any], Path]

REFUND = [
    ("user", None, "Refund order 51, please.", None, False),
    ("assistant", "refund", None, None, False),
    ("tool", "refund", None, "ok", True),
    ("assistant", None, "Order 51 is refunded.", None, False),
]


def steps(item: Any) -> list[tuple[Any, ...]]:
    return [(s.role, s.tool, s.content, s.result, s.error) for s in item.trace.steps]


def span(attributes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "name": "span", "spanContext": {"traceId": "t", "spanId": "s"}, "attributes": attributes,
        "startTime": [1772355600, 0], "endTime": [1772355601, 500_000_000], "status": {"code": 0},
    } | changes  # fmt: skip


def test_spans_and_annotations_of_phoenix(fixtures: Path) -> None:
    folder = fixtures / "phoenix"
    assert detect(folder / "spans.json").title == "a Phoenix export"
    read = read_files([folder], ImportSettings())
    (item,) = runs_of(read)
    found = item.trace
    assert steps(item) == REFUND
    assert (found.workflow, found.task_id, found.status) == ("turn", "refund-51", "completed")
    assert (found.cost_usd, found.latency_s, found.total_tokens) == (0.003, 5.0, 280)
    assert found.metadata["session"] == "s1"
    assert found.source == "phoenix"
    assert verdict_of(item) is not None
    assert verdict_of(item).outcome == default_taxonomy().success
    assert verdict_of(item).reason is not None
    assert "tone" not in verdict_of(item).reason


def test_a_trace_of_otlp_over_two_files(fixtures: Path) -> None:
    folder = fixtures / "otel"
    assert detect(folder / "day-1.jsonl").title == "OpenTelemetry spans"
    read = read_files([folder / "day-1.jsonl", folder / "day-2.jsonl"], ImportSettings())
    (item,) = runs_of(read)
    found = item.trace
    assert steps(item) == [("system", None, "Help customers.", None, False), *REFUND]
    assert (found.workflow, found.agent_version, found.cost_usd) == ("shop", "1.2", None)
    assert (found.latency_s, found.total_tokens, found.model) == (5.0, 280, "m-1")
    # The second day alone lacks the first spans, and says so.
    (item,) = runs_of(read_files([folder / "day-2.jsonl"], ImportSettings()))
    assert item.trace.metadata["spans_without_parent"] == 2


MESSAGES = '[{"role": "user", "content": "Hi?"}]'
SPOKEN = [
    {"gen_ai.prompt": MESSAGES, "gen_ai.completion": '{"text": "Hi.", "finish_reason": "stop"}'},
    {"input.value": MESSAGES, "output.value": "Hi.", "openinference.span.kind": "LLM"},
    {
        "llm.input_messages": [{"message.role": "user", "message.content": "Hi?"}],
        "llm.output_messages": [{"message.role": "assistant", "message.content": "Hi."}],
    },
    {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.prompt.messages": '[{"role": "user", "content": [{"type": "text", "text": "Hi?"}]}]',
        "ai.response.text": "Hi.",
    },
    {
        "gen_ai.input.messages": '[{"role": "user", "parts": [{"content": "Hi?"}]}]',
        "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"content": "Hi."}]}]',
    },
]


@pytest.mark.parametrize("attributes", SPOKEN)
def test_every_way_to_write_a_message(
    attributes: dict[str, Any], write: Write, split: Split
) -> None:
    (item,), _ = split(write("spans.json", [span({"gen_ai.request.model": "m"} | attributes)]))
    assert [(s.role, s.content) for s in item.trace.steps] == [
        ("user", "Hi?"),
        ("assistant", "Hi."),
    ]
    assert (item.trace.prompt, item.trace.response) == ("Hi?", "Hi.")
    assert item.trace.latency_s == 1.5
    # The attributes alone are a span too; its id follows from them.
    (alone,), _ = split(write("span.json", {"gen_ai.request.model": "m"} | attributes))
    assert (alone.trace.prompt, alone.trace.latency_s) == ("Hi?", None)


def test_messages_in_events(write: Write, split: Split) -> None:
    events = [
        {"name": "gen_ai.system.message", "attributes": {"content": "Be kind."}},
        {"name": "gen_ai.user.message", "attributes": {"content": "Hi?"}},
        {"name": "gen_ai.choice", "attributes": {"message": '{"content": "Hi."}'}},
    ]
    old = span({"gen_ai.system": "x"}, name="chat m", events=events)
    (item,), _ = split(write("spans.json", [old]))
    assert [s.content for s in item.trace.steps] == ["Be kind.", "Hi?", "Hi."]
    details = [{"name": "gen_ai.content.prompt", "attributes": {"gen_ai.prompt": MESSAGES}}]
    (item,), _ = split(
        write("old.json", [span({"gen_ai.system": "x"}, name="chat", events=details)])
    )
    assert [s.content for s in item.trace.steps] == ["Hi?"]


def test_the_ai_sdk(write: Write, split: Split) -> None:
    call = '[{"toolCallId": "k", "toolName": "find", "input": "{}"}]'
    outer = span(
        {"ai.operationId": "ai.generateText", "ai.prompt": '{"prompt": "Desks?"}',
         "ai.telemetry.functionId": "shop", "ai.response.text": "12."},
    )  # fmt: skip
    inner = span(
        {"ai.operationId": "ai.generateText.doGenerate", "ai.response.toolCalls": call,
         "ai.prompt.messages": '[{"role": "user", "content": "Desks?"}]',
         "ai.usage.inputTokens": 9, "ai.usage.outputTokens": "3", "ai.response.model": "m"},
        spanContext={"traceId": "t", "spanId": "i"}, parentSpanContext={"spanId": "s"},
    )  # fmt: skip
    tool = span(
        {"ai.operationId": "ai.toolCall", "ai.toolCall.id": "k", "ai.toolCall.name": "find",
         "ai.toolCall.args": "{}", "ai.toolCall.result": '{"n": 12}'},
        spanContext={"traceId": "t", "spanId": "k"}, parentSpanId="s", status={"code": 2},
        startTime=[1772355602, 0], endTime=[1772355603, 0],
    )  # fmt: skip
    (item,), _ = split(write("sdk.json", [tool, inner, outer]))
    assert steps(item) == [
        ("user", None, "Desks?", None, False),
        ("assistant", "find", None, None, False),
        ("tool", "find", None, '{"n": 12}', True),
    ]
    assert (item.trace.workflow, item.trace.response) == ("shop", "12.")
    assert item.trace.total_tokens == 12


def test_other_shapes_of_a_span(write: Write, split: Split) -> None:
    console = {
        "name": "chat m", "context": {"trace_id": "0xaf", "span_id": "0x1"}, "parent_id": None,
        "kind": "SpanKind.CLIENT", "start_time": "2026-03-01T09:00:00Z",
        "end_time": "2026-03-01T09:00:01Z", "status": {"status_code": "ERROR"},
        "attributes": {"gen_ai.prompt": MESSAGES, "gen_ai.response.model": "m"},
        "resource": {"attributes": {"service.name": "unknown_service"}},
    }  # fmt: skip
    (item,), _ = split(write("console.json", [console]))
    assert (item.trace.source_id, item.trace.status, item.trace.workflow) == ("af", "error", "chat")
    table = {
        "name": "llm", "span_kind": "LLM", "parent_id": None, "context.trace_id": "t",
        "context.span_id": "s", "start_time": "2026-03-01T09:00:00Z", "status_code": "OK",
        "attributes.input.value": "Hi?", "attributes.output.value": "Hi.",
        "attributes.llm.cost.total": 0.5,
    }  # fmt: skip
    (item,), _ = split(write("frame.json", [table]))
    assert (item.trace.cost_usd, item.trace.response) == (0.5, "Hi.")
    snake = {"resource_spans": [{"scope_spans": [{"spans": [{
        "trace_id": "t", "span_id": "s", "name": "ask", "start_time_unix_nano": 1772355600 * 10**9,
        "attributes": [{"key": "input.value", "value": {"string_value": "Hi?"}},
                       {"key": "output.value", "value": {"string_value": "Hi."}}],
    }]}]}]}  # fmt: skip
    (item,), _ = split(write("snake.json", snake))
    assert (item.trace.prompt, item.trace.response, item.trace.workflow) == ("Hi?", "Hi.", "ask")


def test_retrievers_are_tools_and_graders_are_not_shown(write: Write, split: Split) -> None:
    def child(own: str, kind: str, **attributes: Any) -> dict[str, Any]:
        about = {"openinference.span.kind": kind, **attributes}
        context = {"traceId": "t", "spanId": own}
        return span(about, name=own, spanContext=context, parentSpanId="s")

    documents = {"retrieval.documents.0.document.content": "A desk costs 180."}
    rows = [
        span({"openinference.span.kind": "CHAIN", "input.value": "Price?", "output.value": "180."}),
        child("search", "RETRIEVER", **{"input.value": "desk", **documents}),
        child("judge", "EVALUATOR", **{"output.value": "correct"}),
        child("model of the judge", "LLM", **{"output.value": "correct"})
        | {"parentSpanId": "judge"},
    ]
    (item,), _ = split(write("rag.json", rows))
    assert steps(item)[1:] == [
        ("assistant", "search", None, None, False),
        ("tool", "search", None, '[{"document": {"content": "A desk costs 180."}}]', False),
    ]
    assert "correct" not in repr(item.trace.for_review())


def test_what_is_no_run_is_set_aside(write: Write, split: Split) -> None:
    lone = [span({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "x"})]
    assert "(kinds: tool)" in split(write("tool.json", lone))[1][0].reason
    hurt = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t"}]}]}, 3]}
    _, aside = split(write("hurt.json", hurt))
    assert "without 'traceId' and 'spanId'" in aside[0].reason
    assert "got 3" in aside[1].reason
    zero = span({}, spanContext={"traceId": "0000", "spanId": "s"})
    assert "'trace_id': is missing" in split(write("zero.json", [zero]))[1][0].reason
    with pytest.raises(TraceFormatError, match="a Phoenix export as a table"):
        split(write("spans.csv", "context.trace_id,context.span_id\nt,s\n"))
    line = json.dumps({"resourceSpans": []})
    with pytest.raises(TraceFormatError, match="without a span"):
        split(write("empty.jsonl", line))
