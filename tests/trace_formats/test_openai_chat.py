import json
from pathlib import Path
from typing import Any

from calibration.trace_formats import detect
from tests.trace_formats.archives import parquet
from tests.trace_formats.conftest import verdict_of


def test_every_field_of_a_chat(fixtures: Path, split: Any) -> None:
    path = fixtures / "chats.jsonl"
    assert detect(path).title == "chats in OpenAI form"
    (first, second, third), (aside,) = split(path)
    trace, verdict = first.trace, verdict_of(first)
    assert (trace.task_key, trace.trial) == ("openai-chat/kiosk/snack", 2)
    assert (trace.cost_usd, trace.latency_s, trace.model) == (0.02, 1.5, "maker/model-x")
    assert trace.prompt == "A snack?\n[picture 1: not shown here]"
    assert trace.response == "None is left."
    assert verdict is not None
    assert (verdict.judge_id, verdict.outcome) == ("source:openai-chat", "complete")
    assert trace.metadata == {
        "media_not_shown": 1, "media_kinds": {"picture": 1},
        "media": [{"number": 1, "kind": "picture", "reference": "x"}],
        "shelf": 3, "parallel_tool_calls": False, "tools": ["stock"],
    }  # fmt: skip
    assert [(s.role, s.tool, s.call) for s in trace.steps[2:4]] == [
        ("assistant", "stock", None), ("tool", "stock", "s3")
    ]  # fmt: skip
    # Without ids a chat is named by what it says; nothing else is known of it.
    assert second.trace.prompt == "The file does not say what was asked."
    assert (second.trace.cost_usd, second.trace.latency_s, verdict_of(second)) == (None, None, None)
    assert second.trace.workflow == "unspecified"
    assert third.trace.source_id == "chat-3"
    assert third.trace.response == "I may not say."
    assert third.trace.steps[2].result == "3"
    assert (aside.line, "none is of the assistant" in aside.reason) == (4, True)


def test_lists_tables_and_single_chats(
    fixtures: Path, split: Any, write: Any, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in (fixtures / "chats.jsonl").read_text().splitlines()]
    expected = [run.trace for run in split(fixtures / "chats.jsonl")[0]]
    assert [run.trace for run in split(write("a.json", rows))[0]] == expected
    one = write("b.json", json.dumps(rows[0], indent=2))
    assert [run.trace for run in split(one)[0]] == expected[:1]
    texts = [{"messages": json.dumps(row["messages"]), "note": "x"} for row in rows[1:3]]
    found, _ = split(parquet(tmp_path / "c.parquet", texts))
    assert [run.trace.steps for run in found] == [trace.steps for trace in expected[1:3]]
    twice, aside = split(write("d.json", [rows[1], rows[1], 3]))
    assert (len(twice), len(aside)) == (1, 2)
