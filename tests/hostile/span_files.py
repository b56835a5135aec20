"""Exports of platforms whose runs are trees of spans, with wrong spans, trees and messages."""

import json
from typing import Any

from tests.hostile.case import add, lines, nested, raw

HIGH, BIDI = "\x1b]0;x\x07\x1b[31m", "\u202e\u2066x"


def run(own: object = "good", /, **changes: Any) -> dict[str, Any]:
    """Return a run of LangSmith that is a trace by itself."""
    row = {"id": own, "trace_id": own, "parent_run_id": None, "run_type": "llm", "name": "chat"}
    said = {"inputs": {"messages": [["user", "Refund."]]}, "outputs": {"output": "Done."}}
    return row | said | {"start_time": "2026-03-01T09:00:00"} | changes


def observation(own: object = "good", /, **changes: Any) -> dict[str, Any]:
    """Return an observation of Langfuse."""
    row = {"id": own, "traceId": own, "parentObservationId": None, "type": "GENERATION"}
    return row | {"input": "Refund.", "output": "Done.", "totalCost": 0.1} | changes


def span(own: object = "good", /, **changes: Any) -> dict[str, Any]:
    """Return a span of Phoenix."""
    row = {"context": {"trace_id": own, "span_id": own}, "span_kind": "LLM", "parent_id": None}
    said = {"input.value": "Refund.", "output.value": "Done."}
    return row | {"name": "llm", "attributes": said, "start_time": "2026-03-01T09:00:00Z"} | changes


WRONG_RUNS: dict[str, dict[str, Any]] = {
    "run-id-list": {"id": ["a"]},
    "run-id-control": {"id": HIGH},
    "run-id-long": {"id": "x" * 5_000, "trace_id": None},
    "run-parent-self": {"parent_run_id": "run-parent-self"},
    "run-parent-gone": {"parent_run_id": "gone"},
    "run-inputs-str": {"inputs": "user: Refund.\nassistant: None"},
    "run-messages-nums": {"inputs": {"messages": [1, [2], None]}},
    "run-calls": {"outputs": {"role": "assistant", "tool_calls": [None, 3, {"id": [[]]}]}},
    "run-bidi": {"outputs": {"output": BIDI + HIGH}},
    "run-cost-neg": {"total_cost": -1},
    "run-cost-text": {"total_cost": "1e999"},
    "run-cost-huge": {"total_cost": 10**400},
    "run-tokens": {"prompt_tokens": 10**30},
    "run-year-0": {"start_time": "0000-01-01T00:00:00"},
    "run-year-9999": {"end_time": "9999-12-31T23:59:59"},
    "run-time-huge": {"start_time": 10**40},
    "run-ends-before": {"end_time": "2026-02-01T09:00:00"},
    "run-children": {"child_runs": [3, {}, {"id": "odd"}]},
    "run-stats": {"feedback_stats": {"x": 3, "y": {"avg": "z"}}},
    "run-extra": {"extra": {"metadata": [1]}},
}
# One file for all: each row is a run of its own, taken or set aside.
ODD_RUNS = [run(kind, **changes) for kind, changes in WRONG_RUNS.items()]
add("import", "span-runs", lines(run(), *ODD_RUNS), name="runs.jsonl")

WRONG_OBSERVATIONS: dict[str, dict[str, Any]] = {
    "observation-trace-obj": {"traceId": {}},
    "observation-type-list": {"type": ["TOOL"]},
    "observation-usage": {"usageDetails": [1], "inputUsage": "many"},
    "observation-cost-deep": {"totalCost": None, "costDetails": '{"total": {"a": 1}}'},
    "observation-json-deep": {"input": nested(900), "output": nested(100_000)},
    "observation-text-cut": {"input": '{"messages": [{"role": "user"'},
    "observation-metadata": {"metadata": "[" * 50},
}
ODD_OBSERVATIONS = [observation(kind, **row) for kind, row in WRONG_OBSERVATIONS.items()]
add("import", "span-observations", lines(observation(), *ODD_OBSERVATIONS), name="o.jsonl")

WRONG_SPANS: dict[str, dict[str, Any]] = {
    "span-context-list": {"context": [1]},
    "span-attributes-str": {"attributes": "x"},
    "span-flat-deep": {"attributes": {"llm.input_messages" + ".0" * 3_000: "x"}},
    "span-flat-clash": {"attributes": {"llm.input_messages.0": 1, "llm.input_messages.0.x": 2}},
    "span-flat-huge": {"attributes": {"llm.input_messages.99999999999.message.role": "user"}},
    "span-status": {"status_code": {"a": 1}},
    "span-events": {"events": [None, {"name": 3, "attributes": [1]}]},
    "span-model": {"attributes": {"llm.model_name": "(" * 300, "output.value": "x"}},
}
ODD_SPANS = [span(kind, **changes) for kind, changes in WRONG_SPANS.items()]
add("import", "span-spans", json.dumps([span(), *ODD_SPANS]), name="spans.json")

RING = [run(f"r{k}", trace_id=None, parent_run_id=f"r{(k + 1) % 300}") for k in range(300)]
CHAIN = [run(f"c{k}", trace_id="t", parent_run_id=f"c{k - 1}") for k in range(500)]
MANY = [run(f"m{k}", trace_id="t", run_type="tool", name="f") for k in range(4_100)]
OTLP: dict[str, Any] = {"resourceSpans": [None, {"scopeSpans": [{"spans": [1, {"traceId": "a"}]}]}]}
add("import", "span-ring", lines(run(), *RING), name="runs.jsonl")
add("import", "span-chain", lines(run(), *reversed(CHAIN)), name="runs.jsonl")
add("import", "span-4100-tools", lines(run(), *MANY), name="runs.jsonl")
add("import", "span-twice", lines(run(), run(), run(outputs={"output": "x"})), name="runs.jsonl")
add("import", "span-otlp-odd", json.dumps(OTLP), name="otlp.json")
add("import", "span-deep", lines(run(), raw(run("odd"), "inputs", nested(100_000))), name="r.jsonl")
add("import", "span-21MB", lambda: lines(run(), run("odd", name="x" * 21_000_000)), name="r.jsonl")
add("import", "span-cut", lambda: json.dumps([span(), span("odd")])[:-40], name="spans.json")
FOLDER = {"a.jsonl": lines(run()), "b.jsonl": lines(run()), "c.json": "[" + json.dumps(run("c"))}
add("import", "span-folder", FOLDER, name="exports")
