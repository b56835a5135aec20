import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibration.errors import TraceFormatError
from calibration.trace_formats import ImportSettings, detect, read_traces
from calibration.trace_formats.base import MAX_FIELD_BYTES, MAX_STEPS, MAX_TRACE_BYTES
from tests.trace_formats.conftest import verdict_of

ROW = '{"trace_id": "a", "workflow": "w", "prompt": "p"}'


def test_every_field_of_a_record(fixtures: Path, split: Any) -> None:
    (record, least), aside = split(fixtures / "records.jsonl")
    trace = record.trace
    assert (record.line, aside) == (2, [])
    assert (trace.trace_id, trace.source, trace.source_id) == ("inv-1", "records", "inv-1")
    assert (trace.workflow, trace.task_id, trace.trial) == ("invoice_check", "42", 1)
    assert trace.task_key == "records/invoice_check/42"
    assert [(a.name, a.text) for a in trace.inputs] == [("Order 77", "12 desks")]
    assert [(g.id, g.text, g.matters) for g in trace.sub_goals] == [("1", "Compare", False)]
    step = trace.steps[0]
    shown = (step.step_id, step.role, step.content, step.tool)
    assert shown == ("a", "assistant", "Looking.", "read")
    assert (step.arguments, step.result, step.error) == ('{"id": "é"}', "12 desks", True)
    assert (step.tokens_in, step.tokens_out, step.seconds, step.at) == (10, 2, 0.5, 1.0)
    assert trace.response == '{"match": true}'
    assert (trace.status, trace.model, trace.agent_version) == ("completed", "maker/model-x", "v3")
    assert (trace.cost_usd, trace.latency_s, trace.units) == (0.0, 4.2, 2.0)
    assert (trace.total_tokens, trace.success_criteria) == (12, "They match.")
    assert trace.started_at == datetime(2026, 3, 29, 9, 15, tzinfo=UTC)
    assert trace.simulated is True
    assert trace.metadata == {"region": "eu", "agent": "agent-a", "shift": "night"}
    # Cleaned of blanks and terminal escapes.
    verdict = verdict_of(record)
    assert (verdict.judge_id, verdict.outcome) == ("judge-1", "partial_plus")
    assert (verdict.reason, verdict.simulated) == ("short of a total", True)
    trace = least.trace
    assert (trace.task_id, trace.trial, trace.units) == ("inv-2", 0, 1.0)
    assert (trace.cost_usd, trace.response, trace.started_at) == (None, None, None)
    # 29 March 2026 is the day on which summer time begins in Berlin: UTC+2 at 9:15.
    taken, _ = split(fixtures / "records.jsonl", ImportSettings(timezone="Europe/Berlin"))
    assert taken[0].trace.started_at == datetime(2026, 3, 29, 7, 15, tzinfo=UTC)


BAD_FIELDS = [
    ("cost_usd", "0.1", "field 'cost_usd': must be a number >= 0, got '0.1'"),
    ("cost_usd", -1, "field 'cost_usd': must be a number >= 0, got -1"),
    ("cost_usd", True, "field 'cost_usd': must be a number >= 0, got True"),
    ("cost_usd", float("nan"), "field 'cost_usd': must be a number >= 0, got nan"),
    ("cost_usd", 1_000_001, "field 'cost_usd': must be at most 1,000,000, got 1000001"),
    ("cost_usd", 10**400, "field 'cost_usd': must be at most 1,000,000, got 1000"),
    ("latency_s", [], "field 'latency_s': must be a number >= 0, got a list"),
    ("units", 0, "field 'units': must be a number > 0, got 0"),
    ("total_tokens", 1.5, "field 'total_tokens': must be a whole number, got 1.5"),
    ("trial", "one", "field 'trial': must be a number >= 0, got 'one'"),
    ("prompt", None, "field 'prompt': is missing"),
    ("prompt", "  ", "field 'prompt': must not be empty"),
    ("trace_id", None, "field 'trace_id': is missing"),
    ("trace_id", "é" * 2049, "field 'trace_id': must be 1 to 4,096 bytes without control"),
    ("trace_id", "a\u001b[2J", "field 'trace_id': must be 1 to 4,096 bytes without control"),
    ("trace_id", 1.5, "field 'trace_id': must be 1 to 4,096 bytes without control"),
    ("workflow", None, "field 'workflow': is missing; add it to the file or give --workflow"),
    ("started_at", 1767999600, "field 'started_at': must be an ISO 8601 time"),
    ("started_at", "0001-01-01T00:00:00+14:00", "field 'started_at': must be an ISO 8601 time"),
    ("simulated", "yes", "field 'simulated': must be true or false, got 'yes'"),
    ("metadata", [], "field 'metadata': must be an object, got a list"),
    ("inputs", {}, "field 'inputs': must be a list, got an object"),
    ("inputs", [{"name": "n"}], "field 'inputs[1].text': is missing"),
    ("sub_goals", [{"text": ""}], "field 'sub_goals[1].text': must not be empty"),
    ("sub_goals", [{"id": 1, "text": "a"}, {"id": "1", "text": "b"}], "field 'sub_goals': id '1'"),
    ("steps", [{}], "field 'steps[1].role': is missing"),
    ("steps", [{"role": "user", "seconds": -1}], "field 'steps[1].seconds': must be a number"),
    ("steps", [{"step_id": "s2", "role": "a"}, {"role": "b"}], "field 'steps': step_id 's2'"),
    ("steps", [{"role": "tool", "call": "s1"}], "field 'steps[1].call': must be the step_id of an"),
    ("steps", [{"role": "user"}] * (MAX_STEPS + 1), "has 2,001 steps; at most 2,000"),
    ("response", "x" * (MAX_FIELD_BYTES + 1), "field 'response': has 2.0 MB; at most 2 MB"),
    ("response", "é" * (MAX_FIELD_BYTES // 2 + 1), "field 'response': has 2.0 MB; at most 2 MB"),
    ("verdict", {"judge": "j"}, "field 'verdict.outcome': must be one of complete, partial_plus"),
    ("verdict", 1, "field 'verdict': must be an object, got 1"),
]


def test_a_result_names_an_earlier_step(write: Any, split: Any) -> None:
    steps = [{"role": "assistant", "tool": "f"}, {"role": "tool", "tool": "f", "call": "s1"}]
    taken, aside = split(write("r.jsonl", json.loads(ROW) | {"steps": steps}))
    assert aside == []
    assert [step.call for step in taken[0].trace.steps] == [None, "s1"]


@pytest.mark.parametrize(("field", "value", "why"), BAD_FIELDS)
def test_a_bad_field_is_named(reason: Any, field: str, value: Any, why: str) -> None:
    assert reason(**{field: value}).startswith(why)


def test_many_fields_below_the_limit_may_still_be_too_much(reason: Any) -> None:
    part = {"role": "tool", "content": "x" * (MAX_FIELD_BYTES - 1)}
    assert reason(steps=[part] * 11) == "is longer than 20 MB"


def test_an_overlong_line_and_a_duplicate_do_not_stop_the_file(write: Any, split: Any) -> None:
    long = '{"trace_id": "b", "prompt": "' + "x" * (MAX_TRACE_BYTES + 10) + '"}'
    third = ROW.replace('"a"', '"c"')
    taken, aside = split(write("a.jsonl", f"{ROW}\n{long}\n{ROW}\n{third}\n"))
    assert [item.line for item in taken] == [1, 4]
    assert [item.line for item in aside] == [2, 3]
    assert aside[1].reason == "the same run as on line 1 (trace_id 'a')"


BAD_LINES = [
    (b"not json", "is not JSON: Expecting value at column 1"),
    (b'{"trace_id": "b", "pro', "is not JSON: it ends in the middle"),
    (b'{"trace_id": "b\xff"}', "is not UTF-8 (byte 16 of the line)"),
    (b"[1, 2]", "is not a record: an object was expected, got a list"),
    (b"null", "is not a record: an object was expected, got nothing"),
    (b"[" * 100_000, "is not usable JSON: nested too deeply"),
    (b'{"trace_id": ' + b"1" * 5_000 + b"}", "is not usable JSON: a number has too many digits"),
    (b'{"version": 2}', "field 'trace_id': is missing"),
]


@pytest.mark.parametrize(("line", "why"), BAD_LINES)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_bad_line_is_set_aside(write: Any, split: Any, line: bytes, why: str, end: bytes) -> None:
    path = write("a.jsonl", end.join([ROW.encode(), b"", line, b""]))
    taken, aside = split(path)
    assert len(taken) == 1
    assert [(item.line, item.reason) for item in aside] == [(3, why)]


def test_what_stands_before_the_first_record_does_not_hide_the_format(
    write: Any, split: Any
) -> None:
    for first in ("oops", "{", '{"trace_id": "b", "pro', '{"trace_id": "b",'):
        taken, aside = split(write("a.jsonl", f"{first}\n{ROW}\n"))
        assert (len(taken), aside[0].line) == (1, 1)
    for start in (b"\xef\xbb\xbf", b"\r\n\r\n", b"\xef\xbb\xbf\n  "):
        assert len(split(write("a.jsonl", start + ROW.encode() + b"\r\n"))[0]) == 1
    with pytest.raises(TraceFormatError, match="not recognised"):
        detect(write("a.jsonl", '{"canary": "x"}\n'))


def test_characters_that_cannot_be_stored_are_replaced(write: Any, split: Any) -> None:
    row = ROW.replace('"p"', r'"\ud83d\ude00 \ud800 \u0000", "k\udc00": 1')
    trace = split(write("a.jsonl", f"{row}\n{ROW.replace('a', 'b', 2)}"))[0][0].trace
    assert trace.prompt == "\U0001f600 \ufffd \ufffd"
    assert trace.metadata == {"k\ufffd": 1}
    assert len(trace.content_hash()) == 64


def test_metadata_is_bounded_and_plain(write: Any, split: Any) -> None:
    row = json.loads(ROW) | {
        "big": ["x" * 3_000] * 40, "long": "y" * 10_000, "nan": float("nan"), "huge": 2**80,
        "deep": [[[[[[[[[[1]]]]]]]]]], "none": None, "agent": "agent-b",
    }  # fmt: skip
    trace = split(write("a.jsonl", row))[0][0].trace
    metadata = trace.metadata
    assert metadata["fields_not_kept"] == 1
    assert len(str(metadata["long"])) == 4_001
    assert (metadata["nan"], metadata["huge"]) == ("nan", str(2**80))
    assert "none" not in metadata
    json.dumps(metadata, allow_nan=False)
    # The agent stands for a missing model.
    assert (trace.model, "agent" in metadata) == ("agent-b", False)


def test_settings_name_workflows(write: Any, split: Any) -> None:
    for row in (ROW, ROW.replace('"workflow": "w", ', "")):
        taken, _ = split(write("a.jsonl", row), ImportSettings(workflow="other"))
        assert taken[0].trace.workflow == "other"


def test_a_json_list_and_one_pretty_object(write: Any, split: Any) -> None:
    rows = [json.loads(ROW), json.loads(ROW) | {"trace_id": "b"}]
    text = json.dumps(rows, indent=2)
    taken, _ = split(write("a.json", text))
    assert [item.line for item in taken] == [2, 7]
    with pytest.raises(TraceFormatError, match=r"line 7: .*not written to the end"):
        list(read_traces(write("a.json", text[:-15])))
    taken, _ = split(write("b.json", "\n" + json.dumps(rows[0], indent=2)))
    assert [item.line for item in taken] == [2]


def test_csv(fixtures: Path, split: Any) -> None:
    taken, aside = split(fixtures / "records.csv")
    assert aside == []
    first, second = (item.trace for item in taken)
    assert [item.line for item in taken] == [2, 4]
    assert (first.prompt, first.response) == ("When are\nyou open?", "Monday, 9 to 17.")
    assert (first.cost_usd, first.units) == (0.002, 1.0)
    assert [(s.role, s.content) for s in first.steps] == [("assistant", "9 to 17")]
    assert (second.cost_usd, second.response, second.units) == (None, None, 0.5)
    assert second.simulated is False


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_with_the_least_columns(write: Any, split: Any, delimiter: str) -> None:
    rows = [["trace_id", "workflow", "prompt", "response"], ["007", "w", "p", "12"]]
    text = "\ufeff" + "\r\n".join(delimiter.join(row) for row in rows) + "\r\n\r\n"
    path = write("a.txt", text)
    assert detect(path).name == "records"
    trace = split(path)[0][0].trace
    assert (trace.trace_id, trace.prompt, trace.response) == ("007", "p", "12")


BAD_CSV = [
    ("a,w,p,1_000", "field 'cost_usd': must be a number >= 0, got '1_000'"),
    ("a,w,p", "has 3 cells, the header has 4"),
    ("a,w,p,1,2", "has 5 cells, the header has 4"),
    ('a,w,"p"x,1', "is not CSV"),
    (",w,p,1", "field 'trace_id': is missing"),
]


@pytest.mark.parametrize(("row", "why"), BAD_CSV)
def test_a_bad_row_of_csv_is_set_aside(write: Any, split: Any, row: str, why: str) -> None:
    path = write("a.csv", f"trace_id,workflow,prompt,cost_usd\n{row}\nb,w,p,1\n")
    taken, aside = split(path)
    assert [item.trace.trace_id for item in taken] == ["b"]
    assert aside[0].line == 2
    assert aside[0].reason.startswith(why)


def test_csv_cells_that_are_not_utf8_or_json(write: Any, split: Any) -> None:
    head = b"trace_id,workflow,prompt,steps\n"
    _, aside = split(write("a.csv", head + b"a,w,p\xff,\nb,w,p,[{]\nc,w,p,text\n"))
    assert [item.reason for item in aside] == [
        "field 'prompt': is not UTF-8",
        "field 'steps': is not JSON: Expecting property name enclosed in double quotes at column 3",
        "field 'steps': must be a list, got 'text'",
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('trace_id,workflow,prompt\na,w,p\nb,w,"half\n', "line 3: .*not written to the end"),
        ("trace_id,prompt,prompt\na,b,c\n", "line 1: column 'prompt' occurs twice"),
    ],
)
def test_a_broken_csv_is_refused(write: Any, text: str, why: str) -> None:
    with pytest.raises(TraceFormatError, match=why):
        list(read_traces(write("a.csv", text)))
