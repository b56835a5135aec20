"""What reviewers and judges see of what an agent said, for all readers of traces."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calibration.records import Trace
from calibration.trace_formats.json_scanner import cut_json
from calibration.trace_formats.message_shapes import read_said
from calibration.trace_formats.said import Unseen, split_thoughts, unseen_in

Write = Callable[[str, Any], Path]
Split = Callable[..., Any]
PNG = "iVBORw0KGgo="  # 8 bytes
SECRET = "They want X"
USER = {"role": "user", "content": "Help me"}


def shown(trace: Trace) -> str:
    """Return all that a reviewer and a judge are given of a trace."""
    return str(trace.for_review())


def chat(*messages: object) -> str:
    return json.dumps({"id": "c", "messages": [USER, *messages]}) + "\n"


def langfuse(output: object) -> dict[str, object]:
    model = {
        "id": "o", "traceId": "t", "type": "GENERATION", "name": "chat", "input": [USER],
        "startTime": "2026-03-02T09:00:01Z", "endTime": "2026-03-02T09:00:03Z", "output": output,
    }  # fmt: skip
    return {
        "id": "t", "name": "n", "timestamp": "2026-03-02T09:00:00Z", "input": [USER],
        "output": output, "observations": [model], "scores": [],
    }  # fmt: skip


def otel(output: object) -> dict[str, object]:
    attributes = {
        "gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([USER]),
        "gen_ai.output.messages": output if isinstance(output, str) else json.dumps(output),
    }  # fmt: skip
    listed = [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()]
    span = {
        "traceId": "a" * 32, "spanId": "b" * 16, "name": "chat", "attributes": listed,
        "startTimeUnixNano": "1772355600000000000", "endTimeUnixNano": "1772355601000000000",
    }  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def test_the_parts_of_chats(fixtures: Path, split: Split) -> None:
    (first, second, third), aside = split(fixtures / "parts.jsonl")
    assert aside == []
    mark = "[picture 1, image/png, 8 bytes: not shown here]"
    assert first.trace.prompt == f"What is on the shelf?\n{mark}"
    assert [(s.role, s.content, s.tool, s.result, s.error, s.call) for s in first.trace.steps] == [
        ("user", f"What is on the shelf?\n{mark}", None, None, False, None),
        ("assistant", "I look.", "shelf", None, False, None),
        ("tool", None, "shelf", f"dark\n{mark}", True, "s2"),
        ("assistant", "It is dark.", None, None, False, None),
    ]
    metadata = first.trace.metadata
    assert set(metadata["thoughts"]) == {"They want a list.", "Say so.", "I give up."}
    assert metadata["media_not_shown"] == 1
    (medium,) = metadata["media"]
    assert (medium["size"], medium["first_bytes"], len(medium["sha256"])) == (8, PNG, 64)
    assert [(s.role, s.tool, s.call) for s in second.trace.steps] == [
        ("user", None, None), ("assistant", "till", None), ("tool", "till", "s2"),
        ("assistant", None, None),
    ]  # fmt: skip
    assert second.trace.response == "I cannot open it.\n[part of kind sparkle: not shown here]"
    assert second.trace.metadata["refused"] is True
    assert second.trace.metadata["thoughts"] == ["Not allowed."]
    assert third.trace.steps[1].content == "I call.\n[sound 1, 3 bytes: not shown here]"
    assert third.trace.response == "[cut at 49 characters]"
    assert dict(unseen_in(third.trace.metadata)) == {"sound": 1, "cut message": 1}


REFUSALS: list[object] = [
    {"role": "assistant", "content": None, "refusal": "No."},
    {"role": "assistant", "content": "", "refusal": "No."},
    {"role": "assistant", "refusal": "No."},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
]
OUTPUTS: list[object] = [
    {"content": None, "refusal": "No."},
    {"choices": [{"message": REFUSALS[0]}]},
    [{"type": "refusal", "refusal": "No."}],
    {"output": [{"type": "message", "role": "assistant", "content": [
        {"type": "refusal", "refusal": "No."}]}]},
    [{"role": "assistant", "parts": [{"type": "refusal", "content": "No."}]}],
    {"type": "ai", "data": {"content": "", "additional_kwargs": {"refusal": "No."}}},
]  # fmt: skip


@pytest.mark.parametrize("message", REFUSALS)
def test_a_refusal_is_the_answer(message: object, write: Write, split: Split) -> None:
    for name, content in (
        ("chat.jsonl", chat(message)),
        ("langfuse.json", langfuse(message)),
        ("otel.json", otel([message])),
    ):
        (item,), _ = split(write(name, content))
        assert (item.trace.response, item.trace.metadata["refused"]) == ("No.", True), name


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_refusal_in_an_output_of_a_span(output: object, write: Write, split: Split) -> None:
    for written in (output, json.dumps(output)):
        (item,), _ = split(write("langfuse.json", langfuse(written)))
        assert (item.trace.response, item.trace.metadata["refused"]) == ("No.", True)
    (item,), _ = split(write("otel.json", otel(output)))
    assert (item.trace.response, item.trace.metadata["refused"]) == ("No.", True)


THOUGHTS: list[object] = [
    {"role": "assistant", "content": f"<think>{SECRET}</think>\nDone."},
    {"role": "assistant", "content": f"{SECRET}</think>Done."},
    {"role": "assistant", "content": "Done.", "reasoning_content": SECRET},
    {"role": "assistant", "content": "Done.", "reasoning": SECRET},
    {"role": "assistant", "content": "Done.", "thinking": SECRET},
    {"role": "assistant", "content": [
        {"type": "thinking", "thinking": SECRET}, {"type": "text", "text": "Done."}]},
    {"role": "assistant", "content": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": SECRET}]},
        {"type": "output_text", "text": "Done."}]},
    {"role": "assistant", "content": "Done.", "reasoning_details": [
        {"type": "reasoning.text", "text": SECRET}]},
    {"role": "assistant", "content": [
        {"reasoningContent": {"reasoningText": {"text": SECRET}}}, {"text": "Done."}]},
    {"role": "model", "parts": [{"text": SECRET, "thought": True}, {"text": "Done."}]},
]  # fmt: skip


@pytest.mark.parametrize("message", THOUGHTS)
def test_thoughts_are_in_no_step(message: Any, write: Write, split: Split) -> None:
    spoken = {**message, "role": "assistant"}
    record = {
        "trace_id": "r", "workflow": "w", "prompt": "Help me", "response": spoken,
        "steps": [spoken],
    }  # fmt: skip
    tau = {"task_id": 1, "trial": 0, "reward": 1, "info": {}, "traj": [USER, spoken]}
    for name, content in (
        ("chat.jsonl", chat(spoken)),
        ("langfuse.json", langfuse(message)),
        ("otel.json", otel([message])),
        ("records.jsonl", json.dumps(record) + "\n"),
        ("tau.json", [tau]),
    ):
        (item,), _ = split(write(name, content))
        assert item.trace.response == "Done.", name
        assert SECRET not in shown(item.trace), name
        assert item.trace.metadata["thoughts"] == [SECRET], name


def test_thoughts_in_text() -> None:
    assert split_thoughts("a <think>b</think> c <think>d</think> e") == ("e", "a b\n c d")
    assert split_thoughts("Hello.\n<think>cut off") == ("Hello.", "cut off")
    assert split_thoughts("<think>cut off") == ("", "cut off")
    assert split_thoughts("Write `</think>` at the end.") == ("Write `</think>` at the end.", "")
    assert split_thoughts("The <think> tag.") == ("The <think> tag.", "")
    # The words of users and tools are theirs.
    assert Unseen().text("<think>x</think>y", "user") == "<think>x</think>y"


MEDIA: list[tuple[object, str]] = [
    ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
     "picture 1, image/png, 8 bytes"),
    ({"type": "image_url", "image_url": "https://x.example/a.jpg"}, "picture 1, image/jpeg"),
    ({"type": "input_image", "file_id": "file-1"}, "picture 1"),
    ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
     "picture 1, image/png, 8 bytes"),
    ({"type": "image", "image": f"data:image/png;base64,{PNG}"}, "picture 1, image/png, 8 bytes"),
    ({"type": "image", "image": {"image": {"url": "https://x.example/a.png"}}},
     "picture 1, image/png"),
    ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
     "sound 1, audio/wav, 3 bytes"),
    ({"type": "audio", "base64": "AAAA", "mime_type": "audio/mpeg"},
     "sound 1, audio/mpeg, 3 bytes"),
    ({"type": "file", "file": {"filename": "a", "file_data": "data:application/pdf;base64,AAAA"}},
     "file 1, application/pdf, 3 bytes"),
    ({"type": "file", "mediaType": "image/png", "data": PNG}, "picture 1, image/png, 8 bytes"),
    ({"type": "document", "source": {"type": "url", "url": "https://x.example/a.pdf"}},
     "file 1, application/pdf"),
    ({"type": "blob", "mime_type": "image/png", "modality": "image", "content": PNG},
     "picture 1, image/png, 8 bytes"),
    ({"type": "uri", "modality": "video", "uri": "gs://x/a.mp4"}, "video 1, video/mp4"),
    ({"inlineData": {"mimeType": "image/png", "data": PNG}}, "picture 1, image/png, 8 bytes"),
    ({"image": {"format": "png", "source": {"bytes": PNG}}}, "picture 1, image/png, 8 bytes"),
    ({"type": "image_url", "image_url": {
        "url": "@@@langfuseMedia:type=image/jpeg|id=m|source=base64_data_uri@@@"}},
     "picture 1, image/jpeg"),
]  # fmt: skip


@pytest.mark.parametrize(("item", "mark"), MEDIA)
def test_pictures_sounds_and_files_leave_a_mark(item: object, mark: str) -> None:
    for role in ("user", "assistant"):
        unseen = Unseen()
        text = unseen.text([{"type": "text", "text": "See"}, item, item], role)
        assert text == f"See\n[{mark}: not shown here]\n[{mark}: not shown here]"
        fields = unseen.fields()
        assert (fields["media_not_shown"], unseen_in(fields).total()) == (1, 1)
        assert PNG not in str(text)


def test_large_media_and_those_within_text() -> None:
    unseen = Unseen()
    text = unseen.text(f"![a](data:image/png;base64,{'A' * 3_200_000}) b")
    assert text == "![a]([picture 1, image/png, 2.4 MB: not shown here]) b"
    assert len(json.dumps(unseen.fields())) < 1_000
    many = [
        {"type": "image_url", "image_url": {"url": f"https://x.example/{k}"}} for k in range(90)
    ]
    unseen.text(many)
    assert unseen_in(unseen.metadata([])) == {"picture": 91}
    # What is said of a document may be read.
    plain = {"type": "document", "source": {"type": "text", "data": "Words."}}
    assert Unseen().text([plain]) == "Words."


def test_data_of_tools_are_no_parts() -> None:
    listing = [{"type": "file", "name": "a.txt"}, {"type": "dir", "name": "b"}]
    unseen = Unseen()
    assert unseen.returned(listing) == json.dumps(listing)
    assert unseen.fields() == {}
    assert unseen.returned([{"type": "image", "data": PNG, "mimeType": "image/png"}]) == (
        "[picture 1, image/png, 8 bytes: not shown here]"
    )


def test_json_that_ends_early_shows_nothing_of_a_thought() -> None:
    parts = [
        {"type": "reasoning", "content": f"{SECRET}, I think"},
        {"type": "text", "text": "Done."},
    ]
    for order in (parts, [dict(sorted(p.items())) for p in parts]):
        whole = json.dumps([USER, {"role": "assistant", "parts": order}])
        for end in range(1, len(whole)):
            unseen = Unseen()
            said = read_said(whole[:end], "assistant", unseen)
            assert SECRET[:6] not in str(said), whole[:end]
            if '"role"' in whole[:end]:
                assert f"[cut at {end} characters]" in str(said), whole[:end]
                assert unseen.fields()["cut_texts"] == [whole[:end]]
    text = json.dumps([{"role": "assistant", "content": "Done, it is booked."}])
    (last,) = read_said(text[:50], "assistant")
    assert (last.role, last.text) == ("assistant", "Done, it is boo [cut at 50 characters]")


def test_a_message_that_was_cut_in_an_export(write: Write, split: Split) -> None:
    raw = json.dumps([{"role": "assistant", "parts": [{"content": SECRET, "type": "reasoning"}]}])
    for name, content in (("l.json", langfuse(raw[:60])), ("o.json", otel(raw[:60]))):
        (item,), _ = split(write(name, content))
        assert item.trace.response == "[cut at 60 characters]"
        assert SECRET not in shown(item.trace)
        assert item.trace.metadata["cut_messages"] == 1
    # An answer that is JSON of its own is no message, and a tool may cut its result.
    for answer in ('{"sum": 12, "cur', "{name} is here", "[1] See"):
        (item,), _ = split(write("c.jsonl", chat({"role": "assistant", "content": answer})))
        assert item.trace.response == answer


def test_cut_json() -> None:
    assert cut_json('{"a": [1, 2') == ({"a": [1]}, 2, False)
    assert cut_json('{"a": "x\\') == ({"a": "x"}, 1, True)
    assert cut_json('{"a": "x\\ud83d') == ({"a": "x"}, 1, True)
    assert cut_json('{"a": "b", "c...') == ({"a": "b"}, 1, False)
    assert cut_json('{"a": tru') == ({}, 1, False)
    for text in ("[1]", "", "word", "[x", '{"a" 1', "[1}", "[" * 200, "[1] [", '{"a": 1} {'):
        assert cut_json(text) is None, text


def test_results_go_to_the_oldest_call_of_their_id(write: Write, split: Split) -> None:
    def call(*arguments: str) -> dict[str, object]:
        function = [{"id": "c", "function": {"name": "f", "arguments": a}} for a in arguments]
        return {"role": "assistant", "content": None, "tool_calls": function}

    def result(text: str) -> dict[str, object]:
        return {"role": "tool", "tool_call_id": "c", "content": text}

    talk = [call("1"), result("one"), call("2", "3"), result("two"), result("three")]
    wanted = {"one": "1", "two": "2", "three": "3"}
    end = {"role": "assistant", "content": "Done."}
    (item,), _ = split(write("c.jsonl", chat(*talk, end)))
    traces = [item.trace]
    page = langfuse(end)
    page["observations"] = [
        {
            "id": f"o{k}", "traceId": "t", "type": "GENERATION", "input": [USER, *talk[:given]],
            "startTime": f"2026-03-02T09:00:0{k}Z", "endTime": f"2026-03-02T09:00:0{k}Z",
            "output": output,
        }
        for k, (given, output) in enumerate([(0, talk[0]), (2, talk[2]), (5, end)])
    ]  # fmt: skip
    (item,), _ = split(write("l.json", page))
    traces.append(item.trace)
    for trace in traces:
        steps = {step.step_id: step for step in trace.steps}
        answers = {s.result: steps[s.call].arguments for s in trace.steps if s.result and s.call}
        assert answers == wanted, trace.source


def test_a_total_that_holds_costs_twice(write: Write, split: Split) -> None:
    def run(total: float, outer: float | None) -> Trace:
        page = langfuse("Done.")
        agent = {"id": "a", "traceId": "t", "type": "AGENT", "totalCost": outer,
                 "startTime": "2026-03-02T09:00:00Z"}  # fmt: skip
        calls = [
            {"id": f"g{k}", "traceId": "t", "type": "GENERATION", "totalCost": cost,
             "parentObservationId": "a", "startTime": "2026-03-02T09:00:01Z", "input": [USER]}
            for k, cost in enumerate((0.03, 0.06))
        ]  # fmt: skip
        (item,), _ = split(
            write("l.json", page | {"totalCost": total, "observations": [agent, *calls]})
        )
        trace: Trace = item.trace
        return trace

    doubled = run(0.18, 0.09)
    assert doubled.cost_usd == pytest.approx(0.09)
    assert doubled.metadata["doubled_cost"] is True
    assert "0.18 USD" in str(doubled.metadata["cost_note"])
    assert "0.09 USD" in str(doubled.metadata["cost_note"])
    for total, outer in ((0.09, 0.09), (0.09, None), (0.2, 0.09)):
        trace = run(total, outer)
        assert (trace.cost_usd, trace.metadata.get("doubled_cost")) == (total, None)


def test_retries_of_a_model_that_failed_leave_no_step(write: Write, split: Split) -> None:
    def call(k: int, output: object, **more: object) -> dict[str, object]:
        return {
            "id": f"g{k}", "traceId": "t", "type": "GENERATION", "input": [USER], "output": output,
            "startTime": f"2026-03-02T09:00:0{k}Z", "endTime": f"2026-03-02T09:00:0{k}Z", **more,
        }  # fmt: skip

    failed = {"level": "ERROR"}
    page = langfuse("Done.")
    page["observations"] = [
        call(1, "Rate li", **failed),
        call(2, "Overlo", **failed),
        call(3, "Done."),
    ]
    (item,), _ = split(write("l.json", page))
    assert [s.content for s in item.trace.steps] == ["Help me", "Done."]
    # The last of them is what the run ended with.
    page["observations"] = [call(1, "Rate li", **failed), call(2, "Overloaded", **failed)]
    (item,), _ = split(write("l.json", page))
    assert [s.content for s in item.trace.steps] == ["Help me", "Overloaded"]


def test_of_spans_with_one_id_the_one_that_ended_counts(write: Write, split: Split) -> None:
    def version(output: str, end: int | None) -> dict[str, object]:
        ended = None if end is None else f"2026-03-02T09:00:0{end}Z"
        return {"id": "g", "traceId": "t", "type": "GENERATION", "input": [USER], "output": output,
                "startTime": "2026-03-02T09:00:01Z", "endTime": ended,
                "parentObservationId": None}  # fmt: skip

    whole, part, short = version("Done.", 5), version("Do", None), version("Don", 3)
    for versions in (
        [whole, part],
        [part, whole],
        [whole, short],
        [short, whole],
        [part, short, whole],
    ):
        page = langfuse("x") | {"output": None, "observations": versions}
        (item,), _ = split(write("l.json", page))
        assert item.trace.response == "Done.", versions
        lines = "".join(json.dumps(v) + "\n" for v in versions)
        (item,), _ = split(write("l.jsonl", lines))
        assert item.trace.response == "Done.", versions
