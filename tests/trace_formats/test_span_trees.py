"""Trees of spans whatever their order: circles, missing parents, repeats, bounds, and messages."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.trace_files import read_files
from calibration.errors import TraceFormatError
from calibration.trace_formats import ImportSettings, Parsed, read_traces, span_shelf, span_trees
from calibration.trace_formats.fields import FieldError
from calibration.trace_formats.message_shapes import plain_text, read_said
from calibration.trace_formats.said import canonical
from calibration.trace_formats.spans import count, price, time_of
from tests.trace_formats.conftest import Split, runs_of

Write = Callable[[str, Any], Path]


def run(own: str, parent: str | None = None, **changes: Any) -> dict[str, Any]:
    return {
        "id": own, "trace_id": "t", "parent_run_id": parent, "run_type": "chain", "name": own,
        "start_time": "2026-03-01T09:00:00", "end_time": "2026-03-01T09:00:01",
        "inputs": {"input": "Hi?"}, "outputs": {"output": "Hi."},
    } | changes  # fmt: skip


def lines(*rows: Any) -> str:
    return "\n".join(json.dumps(row) for row in rows)


def test_circles_and_missing_parents_are_first_spans(write: Write, split: Split) -> None:
    rows = [run("a", "b"), run("b", "a"), run("c", "c"), run("d", "gone")]
    (item,), aside = split(write("runs.jsonl", lines(*rows)))
    assert not aside
    told = item.trace.metadata
    assert (told["circles_of_spans"], told["spans_without_parent"], told["spans"]) == (2, 1, 4)
    unnamed = [{**row, "trace_id": None} for row in rows[:2]]
    assert split(write("circle.jsonl", lines(*unnamed)))[0][0].trace.source_id == "a"


def test_a_chain_of_spans_has_no_depth_that_matters(write: Write, split: Split) -> None:
    rows = [run(f"s{k}", f"s{k - 1}" if k else None, trace_id=None) for k in range(1_500)]
    (item,), _ = split(write("chain.jsonl", lines(*reversed(rows))))
    assert (item.trace.source_id, item.trace.metadata["spans"]) == ("s0", 1_500)


def test_the_order_of_spans_changes_nothing(fixtures: Path, write: Write, split: Split) -> None:
    rows = (fixtures / "langsmith" / "runs.jsonl").read_text().splitlines()
    found = {
        split(write("runs.jsonl", "\n".join(order)))[0][0].trace.content_hash()
        for order in (rows, rows[::-1], rows + rows, [rows[2], rows[0], rows[3], rows[1]])
    }
    assert len(found) == 1


def test_a_file_with_nothing_new_is_set_aside_and_a_broken_one_leaves_nothing(
    write: Write,
) -> None:
    one = write("one.jsonl", lines(run("a"), run("b", "a")))
    two = write("two.jsonl", lines(run("b", "a"), run("a")))
    other = write("other.json", json.dumps([run("c", "a"), run("d", trace_id="u")])[:-1])
    read = read_files([one, two, other], ImportSettings())
    (item,) = runs_of(read)
    assert item.trace.metadata["spans"] == 2
    reasons = [row.reason for row in read.set_aside]
    assert reasons[0].startswith("not read: line 1: the list is not closed")
    assert reasons[1].startswith(f"the same run as in {one}, line 1")
    assert [(file.traces, file.set_aside) for file in read.files] == [(1, 0), (0, 1), (0, 1)]


def test_repeated_spans_are_one_and_later_values_replace_earlier(
    write: Write, split: Split
) -> None:
    rows = [run("a", outputs=None), run("a", outputs={"output": "Late."}), run("a", outputs={})]
    (item,), _ = split(write("runs.jsonl", lines(*rows)))
    assert (item.trace.response, item.trace.metadata["spans"]) == ("Late.", 1)


def test_bounds(write: Write, split: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_shelf, "MAX_PARTS_OF_RUN", 2)
    rows = [run("a"), run("b", "a"), run("c", "a"), run("z", trace_id="z")]
    taken, aside = split(write("runs.jsonl", lines(*rows)))
    assert [item.trace.source_id for item in taken] == ["z"]
    assert "has 3 spans" in aside[0].reason
    monkeypatch.setattr(span_shelf, "MAX_BYTES_OF_RUN", 100)
    taken, aside = split(write("runs.jsonl", lines(run("a"))))
    assert not taken
    assert "longer than" in aside[0].reason
    monkeypatch.undo()
    monkeypatch.setattr(span_trees, "_MAX_ENTRIES", 1)
    tools = [run("root"), run("x", "root", run_type="tool"), run("y", "root", run_type="tool")]
    assert "has more than 1 messages" in split(write("runs.jsonl", lines(*tools)))[1][0].reason


HOSTILE: dict[str, tuple[str, str]] = {
    "deep": ('{"id": "b", "run_type": "llm", "inputs": ' + "[" * 10**5 + "]" * 10**5 + "}", "deep"),
    "nested": ('{"id": "b", "run_type": "llm", "inputs": ' + "[" * 900 + "]" * 900 + "}", "deep"),
    "infinity": ('{"id": "b", "run_type": "llm", "total_cost": Infinity}', "total_cost"),
    "nan": ('{"id": "b", "run_type": "llm", "total_cost": NaN}', "total_cost"),
    "cost": ('{"id": "b", "run_type": "llm", "total_cost": "dear"}', "must be a number"),
    "year": ('{"id": "b", "run_type": "llm", "start_time": "0000-01-01T00:00:00Z"}', "start_time"),
    "late": ('{"id": "b", "run_type": "llm", "start_time": 1e19}', "start_time"),
    "control": ('{"id": "b\\u001b[31m", "run_type": "llm"}', "control characters"),
    "repeated": ('{"id": "b", "id": "c", "run_type": "llm"}', "twice"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_rows_are_set_aside_with_the_reason(name: str, write: Write, split: Split) -> None:
    row, why = HOSTILE[name]
    taken, aside = split(write("runs.jsonl", lines(run("a")) + "\n" + row + "\n"))
    assert [item.trace.source_id for item in taken] == ["t"]
    assert [(item.line, why in item.reason) for item in aside] == [(2, True)]


def test_bytes_that_are_no_text_and_marks_that_turn_it(write: Write, split: Split) -> None:
    turned = run("a", inputs={"input": "\u202eHi\x1b[31m\ud800\x00"})
    content = lines(turned).encode() + b'\n{"id": "\xff", "run_type": "llm"}\n'
    (item,), aside = split(write("runs.jsonl", content))
    assert "UTF-8" in aside[0].reason
    assert "\ud800" not in item.trace.prompt
    assert item.trace.content_hash()


def test_json_text_deep_within_json_is_text(write: Write, split: Split) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    (item,), _ = split(write("runs.jsonl", lines(run("a", inputs={"messages": deep}), run("a"))))
    assert item.trace.response == "Hi."


def test_many_turns_are_read_once_each(write: Write, split: Split) -> None:
    said: list[dict[str, Any]] = []
    rows = [run("root", inputs=None, outputs=None)]
    for k in range(40):
        said.append({"role": "user", "content": "More." if k % 2 else f"Question {k}"})
        answer = {"role": "assistant", "content": "Yes."}
        rows.append(
            run(f"l{k}", "root", run_type="llm", inputs={"messages": list(said)},
                outputs={"message": answer}, start_time=f"2026-03-01T09:00:{k:02}")
        )  # fmt: skip
        said.append(answer)
    (item,), _ = split(write("runs.jsonl", lines(*rows)))
    assert [(s.role, s.content) for s in item.trace.steps] == [
        (message["role"], message["content"]) for message in said
    ]


def test_a_span_of_a_tool_shows_a_call_that_no_message_mentions(write: Write, split: Split) -> None:
    model = run("m", "root", run_type="llm", inputs={"messages": []}, outputs={"output": "Done."},
                start_time="2026-03-01T09:00:02", end_time="2026-03-01T09:00:03")  # fmt: skip
    tool = run("look up", "root", run_type="tool", inputs={"q": 1}, outputs={"output": {"n": 2}})
    tools = [tool, {**tool, "id": "x", "start_time": None, "end_time": None, "outputs": None}]
    (item,), _ = split(write("runs.jsonl", lines(run("root"), model, *tools)))
    assert [(s.role, s.tool, s.result, s.call) for s in item.trace.steps] == [
        ("assistant", "look up", None, None),
        ("assistant", "look up", None, None),
        ("tool", "look up", '{"n": 2}', "s2"),
        ("assistant", None, None, None),
    ]


def test_a_tool_within_the_span_of_its_model_is_one_call(write: Write, split: Split) -> None:
    call = {"name": "find", "args": {"q": 1}, "id": "k"}
    said = {"role": "ai", "content": "I look.", "tool_calls": [call]}
    model = run("m", "root", run_type="llm", end_time="2026-03-01T09:00:09",
                outputs={"message": said})  # fmt: skip
    tool = run("find", "m", run_type="tool", inputs={"q": 1}, outputs={"output": "two"},
               start_time="2026-03-01T09:00:01", end_time="2026-03-01T09:00:02")  # fmt: skip
    reply = run("n", "root", run_type="llm", start_time="2026-03-01T09:00:10",
                inputs="user: Hi?\nassistant: None\ntool: 2 (two)",
                outputs={"output": "Two."})  # fmt: skip
    (item,), _ = split(write("runs.jsonl", lines(run("root"), model, tool, reply)))
    assert [(s.role, s.tool, s.content, s.result) for s in item.trace.steps] == [
        ("user", None, "Hi?", None),
        ("assistant", "find", "I look.", None),
        ("tool", "find", None, "two"),
        ("assistant", None, "Two.", None),
    ]
    early = {**tool, "parent_run_id": "root", "start_time": "2026-03-01T08:59:59"}
    (item,), _ = split(write("early.jsonl", lines(run("root"), model, early)))
    assert [s.tool for s in item.trace.steps if s.arguments] == ["find"]


SHAPES: list[tuple[object, list[tuple[str, str, str | None]]]] = [
    ("user: Hi?\nassistant: Hi.", [("text", "user", "Hi?"), ("text", "assistant", "Hi.")]),
    ("no role: x", []),
    (["human", "Hi?"], [("text", "user", "Hi?")]),
    ({"lc": 1, "type": "constructor", "id": ["x", "AIMessage"], "kwargs": {"content": "Hi."}},
     [("text", "assistant", "Hi.")]),
    ({"lc": 1, "type": "constructor", "id": [], "kwargs": {}}, []),
    ({"generations": [[{"text": "Hi."}]]}, [("text", "assistant", "Hi.")]),
    ({"choices": []}, []),
    ({"candidates": [{"content": {"role": "model", "parts": [
        {"text": "I look."}, {"text": "hm", "thought": True}, {"functionCall": {"name": "f"}}]}}]},
     [("text", "assistant", "I look."), ("call", "assistant", None)]),
    ({"contents": [{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": 3}}]}],
      "config": {"system_instruction": "Be kind."}},
     [("text", "system", "Be kind."), ("result", "tool", "3")]),
    ({"object": "response", "instructions": "Be kind.", "output": [
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "k"},
        {"type": "function_call_output", "call_id": "k", "output": "b"}]},
     [("text", "assistant", "a"), ("call", "assistant", None), ("result", "tool", "b")]),
    ({"instructions": "Be kind.", "input": [{"role": "developer", "content": "Hi?"}]},
     [("text", "system", "Be kind."), ("text", "system", "Hi?")]),
    ({"prompt": "Hi?", "system": "Be kind."},
     [("text", "system", "Be kind."), ("text", "user", "Hi?")]),
    ({"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "?"}]},
     [("text", "user", "[picture 1: not shown here]\n?")]),
    ({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
     [("call", "assistant", None)]),
    ([{"role": "tool", "content": [{"type": "tool-result", "toolCallId": "k", "toolName": "f",
       "output": {"type": "text", "value": "12"}}]}], [("result", "tool", "12")]),
    ([{"role": "tool", "content": {"type": "function", "function": {"parameters": {}}}}], []),
    ([{"role": "user", "parts": [{"type": "tool_call_response", "id": "k", "response": {"a": 1}}]}],
     [("result", "tool", '{"a": 1}')]),
    ({"message": {"type": "ai", "data": {"content": {"parts": [{"content": "x"}]}}}},
     [("text", "assistant", "x")]),
    ({"role": "tool", "content": [{"a": 1}]}, [("result", "tool", '{"a": 1}')]),
    ([{"role": "tool", "content": [
        {"type": "function", "id": "k", "function": {"name": "f", "arguments": {}}}]}],
     [("call", "assistant", None)]),
    ([3, None, "x"], []),
]  # fmt: skip


@pytest.mark.parametrize(("value", "said"), SHAPES)
def test_shapes_of_messages(value: object, said: list[tuple[str, str, str | None]]) -> None:
    for written in (value, json.dumps(value), json.dumps(json.dumps(value))):
        assert [(s.kind, s.role, s.text) for s in read_said(written)] == said


def test_texts_that_are_no_message() -> None:
    assert plain_text({"input": "Hi?"}, answer=False) == "Hi?"
    assert plain_text([{"answer": "Hi."}], answer=True) == "Hi."
    assert plain_text("None", answer=True) is None
    assert plain_text({"a": 1}, answer=True) is None
    assert canonical('{"b": 1, "a":2}') == canonical('{"a": 2, "b": 1}')
    assert canonical(" x ") == "x"
    assert canonical(None) == ""


def test_times_prices_and_counts() -> None:
    at = time_of("2026-03-01T09:00:00Z", "t")
    seconds = 1772355600
    for value in (seconds, seconds * 1000, str(seconds * 10**6), seconds * 10**9, [seconds, 0]):
        assert time_of(value, "t") == at
    assert time_of("0", "t") is None
    assert time_of(None, "t") is None
    assert price("0.5", "c") == 0.5
    assert price(0, "c") is None
    assert price(None, "c") is None
    assert count("12", "n") == 12
    assert count(None, "n") is None
    for bad in (True, [1, 2, 3], ["x", 1], [1e11, 0], "soon", -5, float("inf")):
        with pytest.raises(FieldError):
            time_of(bad, "t")


def test_a_file_alone_gives_its_runs_and_a_row_alone_its_reason(write: Write) -> None:
    items = list(read_traces(write("one.json", run("a", dotted_order="xZa"))))
    assert [isinstance(item, Parsed) for item in items] == [True]
    with pytest.raises(TraceFormatError, match="without a span or a run"):
        list(read_traces(write("none.json", {"runs": []})))
