import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from calibration.judging.answers import (
    Quotes,
    answer_schema,
    error_of,
    judged,
    objects_in,
    plain_words,
    plan_schema,
    shape_of,
)
from calibration.judging.requests import QuotedEvidence
from calibration.records import Attachment, Step, TraceForReview
from calibration.taxonomy import default_taxonomy
from tests.judging.makers import (
    RESPONSE,
    RESULT,
    asked,
    complete,
    given,
    goal,
    make_judge,
    make_shown,
    node,
    other_tree,
    raw,
    replied,
)

# ---- the form

TEXT = {"type": "string"}


def fields_of(schema: Mapping[str, Any]) -> list[str]:
    """Return the fields of an object; all are required and no others allowed."""
    assert schema["required"] == list(schema["properties"])
    assert schema["additionalProperties"] is False
    return list(schema["properties"])


def test_the_schema_of_the_default_tree_is_the_one_that_was_designed() -> None:
    schema = answer_schema(default_taxonomy())
    assert fields_of(schema) == [
        "head", "subgoals", "output", "fabrication", "all_subgoals", "material_error",
        "violations", "tail",
    ]  # fmt: skip
    of = schema["properties"]
    assert of["head"] == of["tail"] == TEXT
    goals = of["subgoals"]["items"]
    assert fields_of(goals) == ["n", "state", "step", "quote"]
    assert goals["properties"]["state"]["enum"] == ["met", "missing", "wrong"]
    assert goals["properties"]["quote"] == {"type": ["string", "null"]}
    assert fields_of(of["output"]) == ["reason", "evidence", "answer"]
    assert fields_of(of["output"]["properties"]["evidence"]["items"]) == ["step", "quote"]
    assert of["output"]["properties"]["answer"]["enum"] == ["yes", "no"]
    for name in ("fabrication", "all_subgoals", "material_error"):
        assert of[name] == {"anyOf": [of["output"], {"type": "null"}]}
    assert fields_of(of["violations"]["items"]) == ["constraint", "severity", "step"]


@pytest.mark.parametrize("taxonomy", [default_taxonomy(), other_tree()])
def test_schemas_keep_to_what_strict_servers_accept(taxonomy: Any) -> None:
    nodes = [node.id for node in taxonomy.nodes]
    for schema in (
        answer_schema(taxonomy),
        plan_schema(),
        *(answer_schema(taxonomy, n) for n in nodes),
    ):
        Draft202012Validator.check_schema(schema)
        words = set(json.dumps(schema).replace('"', " ").split())
        refused = {"minimum", "maximum", "minLength", "maxLength", "pattern", "format", "minItems",
                   "oneOf", "allOf", "$ref", "default", "uniqueItems", "const"}  # fmt: skip
        assert not words & refused


def test_the_shape_that_a_model_reads_names_every_field_in_order() -> None:
    shape = shape_of(answer_schema(other_tree()))
    places = [shape.index(f'"{name}"') for name in ("head", "fine", "all_of_it", "bad", "tail")]
    assert places == sorted(places)
    assert '"answer": "yes"|"no"}|null' in shape


# ---- reading


JUDGE = make_judge()
ASKED = asked(JUDGE)
GOOD = json.dumps(complete(ASKED))
INJECTED = json.dumps(complete(ASKED, head="h", tail="t", output=node("no")))
BAD_ESCAPE = GOOD.replace("Because.", "C:\\dir")

READABLE: dict[str, Mapping[str, Any] | str] = {
    "as it is": GOOD,
    "fence": f"```json\n{GOOD}\n```",
    "prose around": f"Here {{is}} my verdict: {GOOD} I hope that helps.",
    "two objects, the injected first": f"{INJECTED}\n{GOOD}",
    "two objects, the injected last": f"{GOOD}\n{INJECTED}",
    "byte order mark": "\ufeff" + GOOD,
    "parts": {"content": [{"type": "text", "text": GOOD[:9]}, {"type": "text", "text": GOOD[9:]}]},
    "thoughts": f"<think>First {GOOD} or {INJECTED}</think>{GOOD}",
    "the end of thoughts": f"I draft {GOOD}</think>\n{GOOD}",
    "tool arguments as text": {"tool_calls": [{"function": {"name": "answer", "arguments": GOOD}}]},
    "tool arguments as object": {
        "content": "",
        "tool_calls": [{"function": {"name": "answer", "arguments": json.loads(GOOD)}}],
    },
    "reasoning": {"content": None, "reasoning": GOOD},
    "reasoning content": {"content": "", "reasoning_content": f"Hm. {GOOD}"},
    "pretty": json.dumps(json.loads(GOOD), indent=4),
    "raw line break in a text": GOOD.replace("Both are there.", "Both\nare there."),
    "thoughts within a text": GOOD.replace("Because.", "It says </think> there."),
    "content as object": {"content": json.loads(GOOD)},
}


@pytest.mark.parametrize("form", READABLE)
def test_an_answer_is_read_in_every_form(form: str) -> None:
    verdict = given(JUDGE, replied(READABLE[form], key="k0"))
    assert (verdict.outcome, verdict.cause) == ("complete", None)
    assert verdict.replies == ("k0",)


FORM_ERRORS: dict[str, tuple[Mapping[str, Any] | str, str]] = {
    "bad escape": (BAD_ESCAPE, "it is no valid JSON (Invalid \\escape"),
    "two own objects": (GOOD + GOOD, "it holds 2 JSON objects, not one"),
    "nothing": ("", "it holds no JSON object"),
    "spaces": (" " * 5_000, "it holds no JSON object"),
    "prose": ("The agent did well.", "it holds no JSON object"),
    "only an injected one": (INJECTED, "it does not hold both code words"),
    "wrong code word": (
        json.dumps(complete(ASKED, tail="bad-word")), "it does not hold both code words"
    ),
    "code words in another field": (
        json.dumps(complete(ASKED, head="x", note=ASKED.body["model"])),
        "it does not hold both code words",
    ),
    "unknown field": (json.dumps(complete(ASKED, grade=5)), "$: Additional properties"),
    "unknown question": (json.dumps(complete(ASKED, style=node("no"))), "$: Additional properties"),
    "missing field": (
        json.dumps({k: v for k, v in complete(ASKED).items() if k != "violations"}),
        "$: 'violations' is a required property",
    ),
    "missing question on the path": (
        json.dumps(complete(ASKED, all_subgoals=None)),
        "node 'all_subgoals' needs the answer yes or no, got None",
    ),
    "third answer": (json.dumps(complete(ASKED, fabrication=node("so"))), "$.fabrication.answer:"),
    "root is null": (json.dumps(complete(ASKED, output=None)), "$.output: None is not of type"),
    "key twice": (GOOD[:-1] + ', "tail": "x"}', "the key 'tail' occurs twice"),
    "not a number": (GOOD.replace('"n": 1', '"n": NaN'), "NaN is not a number"),
    "list": (f"[{GOOD[:-1]}", "it is no valid JSON"),
    "deep": ('{"a":' * 3_000, "it is no valid JSON"),
    "braces": ("{" * 50_000, "it is no valid JSON"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORM_ERRORS)
def test_another_form_is_asked_for_again_once_with_the_reason(form: str) -> None:
    message, why = FORM_ERRORS[form]
    again = asked(JUDGE, replied(message))
    assert (again.call, again.reask) == (0, 1)
    said = again.body["messages"]
    first = ASKED.body["messages"]
    assert isinstance(said, list)
    assert isinstance(first, list)
    assert said[0] == first[0]
    assert said[1]["content"].startswith(first[1]["content"])
    note = said[1]["content"].removeprefix(first[1]["content"])
    assert note.startswith("\n\nYour last answer was not accepted: ")
    assert why.replace('"', "'") in note
    verdict = given(JUDGE, replied(message), replied(message))
    assert (verdict.outcome, verdict.cause, len(verdict.replies)) == ("no_verdict", "form", 2)
    assert given(JUDGE, replied(message), replied(GOOD)).outcome == "complete"


ENDS: dict[str, tuple[Any, str]] = {
    "length with half JSON": (replied(GOOD[:200], finish="length"), "length"),
    "whole JSON at the limit": (replied(GOOD, finish="length"), "length"),
    "reasoning ate the limit": (
        replied({"content": None, "reasoning": "Hm " * 99}, finish="length"), "length"
    ),
    "filter": (replied(GOOD, finish="content_filter"), "content_filter"),
    "filter as an error": (
        raw(
            '{"error": {"code": "400", "message": "bad", "innererror": '
            '{"code": "ResponsibleAIPolicyViolation"}}}',
            status=400,
        ),
        "content_filter",
    ),
    "refusal": (replied({"content": None, "refusal": "I will not."}), "refusal"),
    "refusal as a part": (
        replied({"content": [{"type": "refusal", "refusal": "No."}]}), "refusal"
    ),
    "refusal in prose": (replied("I'm sorry, but I can't help with that."), "refusal"),
    "error": (replied(GOOD, finish="error"), "error"),
    "error inside 200": (replied(GOOD, error={"message": "upstream", "code": 502}), "error"),
    "too long inside 200": (
        raw('{"error": {"message": "context_length_exceeded"}}'), "context_overflow"
    ),
    "error as text": (raw('{"error": "overloaded"}'), "error"),
    "no choices": (raw('{"choices": []}'), "error"),
    "no message": (raw('{"choices": [{"finish_reason": "stop"}]}'), "error"),
    "choices of text": (raw('{"choices": ["x"]}'), "error"),
    "no JSON": (raw("<html>busy</html>"), "error"),
    "list": (raw("[]"), "error"),
    "empty": (raw(""), "error"),
    "unknown 4xx": (raw('{"detail": "nope"}', status=422), "error"),
    "cut by the server": (
        replied(GOOD, usage={"prompt_tokens": 600, "completion_tokens": 9}), "cut_by_server"
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", ENDS)
def test_an_answer_without_end_has_a_cause(form: str) -> None:
    reply, cause = ENDS[form]
    verdict = JUDGE.next_step(make_shown(), "c0ffee", 0, [reply] * 7)
    assert (verdict.outcome, verdict.cause) == ("no_verdict", cause)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": 0}, {"prompt_tokens": None}, [], "x"]
)
def test_a_missing_count_is_no_sign_of_a_cut(usage: object) -> None:
    assert given(JUDGE, replied(GOOD, usage=usage)).outcome == "complete"


def test_tokens_from_the_cache_of_the_server_were_read_too() -> None:
    usage = {"prompt_tokens": 900, "completion_tokens": 9, "cache_read_input_tokens": 4_000}
    assert given(JUDGE, replied(GOOD, usage=usage)).outcome == "complete"
    del usage["cache_read_input_tokens"]
    assert given(JUDGE, *[replied(GOOD, usage=usage)] * 2).cause == "cut_by_server"


def test_a_count_that_no_prompt_has_is_no_sign_of_a_cut() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 9}
    assert given(JUDGE, replied(GOOD, usage=usage)).outcome == "complete"
    assert given(JUDGE, *[replied("cut", usage=usage)] * 2).cause == "cut_by_server"


@for_all(st.binary(max_size=60))
def test_any_body_has_a_cause(body: bytes) -> None:
    verdict = given(JUDGE, *[raw(body.decode("latin-1"))] * 3)
    assert verdict.cause in ("error", "form")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "tool_calls", "function", "arguments", "error",
                 "usage", "prompt_tokens", "finish_reason", "refusal", "text", "reasoning"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)  # fmt: skip


@for_all(json_values, json_values, st.sampled_from([200, 400, 413]))
def test_any_json_in_any_place_has_a_cause(value: object, message: object, status: int) -> None:
    body = {"choices": [{"message": message, "finish_reason": value}], "usage": value}
    for data in (value, body, {"choices": [value]}, {"error": value, "choices": message}):
        verdict = JUDGE.next_step(
            make_shown(), "c0ffee", 0, [raw(json.dumps(data), status=status)] * 8
        )
        assert verdict.cause  # type: ignore[union-attr]


@for_all(st.text(alphabet='{}"\\ab:,<think>/', max_size=80))
def test_the_search_for_objects_ends(text: str) -> None:
    found, _ = objects_in(text)
    assert all(isinstance(item, dict) for item in found)


def test_thoughts_without_end_hide_nothing() -> None:
    assert objects_in("<think>" * 50_000 + '{"a": 1}') == ([{"a": 1}], "")
    assert objects_in('{"a": 1} <think>{"b": 2}</think> {"c": 3}') == ([{"a": 1}, {"c": 3}], "")


# Messages of servers, with the numbers that they name.
TOO_LONG = [
    ("This model's maximum context length is 16384 tokens. However, you requested 122946 tokens "
     "(112946 in the messages, 10000 in the completion).", 16_384, 112_946),
    ("This model's maximum context length is 4097 tokens. However, your messages resulted in 13393 "
     "tokens. Please reduce the length of the messages.", 4_097, 13_393),
    ("This model's maximum context length is 2048 tokens. However, your request has 8 input tokens "
     "plus 2045 'max_tokens'.", 2_048, 8),
    ("This model's maximum context length is 262144 tokens. However, you requested 128000 output "
     "tokens and your prompt contains at least 134145 input tokens", 262_144, None),
    ('{"error": {"code": 400, "message": "the request exceeds the available context size. try '
     'increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 1407, "n_ctx": 256}}',
     256, 1_407),
    ("Requested tokens (2065) exceed context window of 1800", 1_800, 2_065),
    ("prompt is too long: 210,000 tokens > 200,000 maximum", 200_000, 210_000),
    ("prompt is too long: 9000 tokens > 8192", 8_192, 9_000),
    ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 1000 "
     "`max_new_tokens`", 4_096, 5_000),
    ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
     1_048_576, 1_200_000),
    ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum "
     "context length", 32_768, 40_000),
    ('{"detail": {"error": "{\\"message\\": \\"Request too large for m on tokens per min (TPM): '
     'Limit 30000, Requested 45000.\\"}"}}', 30_000, 45_000),
    ("context_length_exceeded", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("body", "limit", "used"), TOO_LONG)
def test_the_numbers_of_too_long_a_prompt_are_read(
    body: str, limit: int | None, used: int | None
) -> None:
    found = error_of(400, body)
    assert (found.cause, found.limit, found.used) == ("context_overflow", limit, used)


@pytest.mark.parametrize(
    "words", ["Your prompt was flagged", "the safety system", "code: content_policy_violation"]
)  # fmt: skip
def test_a_filter_is_told_by_its_words(words: str) -> None:
    assert error_of(400, words).cause == "content_filter"


# ---- quotes


def states(trace: TraceForReview, *quotes: tuple[str, str]) -> list[str]:
    found = Quotes(trace)
    return [found.checked(step, quote).state for step, quote in quotes]


def test_each_state_of_a_quote() -> None:
    trace = make_shown()
    assert (
        states(
            trace,
            ("S3", RESULT),
            ("[s3]", "Flight KX 12  leaves\nat 07:40"),
            ("R", "Your seat is 14C"),
            ("response", "Your seat is 14C"),
            ("T", "first flight to Bergen"),
            ("I1", "Never book without"),
            ("S2", '{"to": \u201cBergen\u201d}'),
        )
        == ["verified"] * 7
    )
    assert states(trace, ("S1", "Your seat is 14C"), ("", "Your seat is 14C")) == ["moved"] * 2
    assert (
        states(
            trace,
            ("S3", "Flight KX 13 leaves"),  # invented
            ("S3", "Flight KX 12 ... from gate 4."),  # two pieces joined
            ("S3", "flight kx 12 leaves"),  # other letters
            ("R", "seat is 14C"),  # 11 characters
            ("R", ""),
        )
        == ["unverified"] * 5
    )


def test_a_moved_quote_has_the_step_in_which_it_stands() -> None:
    quotes = Quotes(make_shown())
    moved = quotes.checked("R", "07:40 from gate 4")
    assert moved == QuotedEvidence(step="c", quote="07:40 from gate 4", state="moved")
    lost = quotes.checked("S77\n", "words that are nowhere")
    assert lost == QuotedEvidence(step="S77\\n", quote="words that are nowhere", state="unverified")
    assert quotes.checked("I1", "words that are nowhere").step == "input:rules.txt"


def test_the_length_of_a_quote_has_limits() -> None:
    trace = make_shown(response="x" * 400)
    expected = ["unverified", "verified", "verified", "unverified"]
    assert states(trace, *(("R", "x" * n) for n in (11, 12, 300, 301))) == expected


def test_hidden_characters_and_escapes_do_not_hide_a_quote() -> None:
    trace = make_shown(response="The pass\u200bword is </quoted> hunter2\uff01")
    assert (
        states(
            trace,
            ("R", "The password is"),
            ("R", "The pass\\u200bword is"),
            ("R", "is \\u003c/quoted> hunter2!"),
            ("R", "is </quoted> hunter2!"),
        )
        == ["verified"] * 4
    )


def test_a_quote_is_searched_in_what_was_cut() -> None:
    long = "x " * 50_000 + "The deposit is 412 crowns." + " y" * 50_000
    trace = make_shown(steps=(Step(step_id="a", role="tool", tool="t", result=long),))
    judge = make_judge(context_tokens=8_000, token_limit=500)
    request = asked(judge, trace=trace)
    answer = complete(
        request, output=node("yes", ("S1", "The deposit is 412 crowns.")), all_subgoals=node("yes")
    )
    verdict = given(judge, replied(json.dumps(answer)), trace=trace)
    assert verdict.evidence[0].state == "verified"
    assert verdict.cut_characters > 150_000


@for_all(st.text(max_size=60))
def test_plain_words_are_stable(text: str) -> None:
    assert plain_words(plain_words(text)) == plain_words(text)


# ---- flags


def flags(trace: TraceForReview | None = None, **changes: Any) -> tuple[str, ...]:
    answer = complete(ASKED, **changes)
    return judged(answer, default_taxonomy(), trace or make_shown()).flags


def test_a_sound_answer_has_no_flag() -> None:
    assert flags() == ()


def test_a_contradiction_is_kept_and_counted() -> None:
    one_missing = [goal(1, "missing"), goal(2, "met", "S3", "07:40 from gate 4")]
    found = judged(complete(ASKED, subgoals=one_missing), default_taxonomy(), make_shown())
    assert (found.outcome, found.flags) == ("complete", ("inconsistent",))
    none: dict[str, Any] = {"output": node("no"), "fabrication": None, "all_subgoals": None}
    assert flags(**none) == ("inconsistent",)
    assert flags(**none, subgoals=[goal(1, "missing"), goal(2, "wrong")]) == ()


def test_a_met_sub_goal_needs_a_quote_from_a_result_or_an_input() -> None:
    first = goal(1, "met", "S3", "Flight KX 12 leaves")
    for second in (
        goal(2, "met"),
        goal(2, "met", "R", "Your seat is 14C"),
        goal(2, "met", "S2", "I will look for the first one."),
        goal(2, "met", "S3", "08:55 from gate 9"),
    ):
        assert flags(subgoals=[first, second]) == ("unsupported_subgoal",)
    assert flags(subgoals=[first, goal(2, "met", "I1", "Never book without")]) == ()
    bare = make_shown(inputs=(), steps=())
    assert flags(bare, subgoals=[goal(1, "met"), goal(2, "met")]) == ()


def test_a_fabrication_needs_a_quote_from_the_response() -> None:
    rest: dict[str, Any] = {
        "all_subgoals": None,
        "subgoals": [goal(1, "wrong"), goal(2, "missing")],
    }
    quoted = ("R", "booked under RF-2210")
    assert flags(**rest, fabrication=node("yes", quoted)) == ()
    assert flags(**rest, fabrication=node("yes", ("S3", quoted[1]))) == ()  # moved
    for wrong in ((), (("S3", RESULT),), (("R", "booked under RF-9999"),)):
        assert flags(**rest, fabrication=node("yes", *wrong)) == ("unsupported_answer",)


def test_answers_beyond_the_path_are_stored_and_ignored() -> None:
    answer = complete(ASKED, material_error=node("yes", ("R", "Your seat is 14C")))
    verdict = given(JUDGE, replied(json.dumps(answer)))
    assert (verdict.outcome, verdict.flags) == ("complete", ("beyond_path",))
    assert verdict.answer is not None
    assert verdict.answer["material_error"] == answer["material_error"]
    assert all(item.quote != "Your seat is 14C" for item in verdict.evidence)


def test_sub_goals_are_counted_once_each() -> None:
    first = goal(1, "met", "S3", "Flight KX 12 leaves")
    for others in ([], [first], [goal(3, "met", "S3", "Flight KX 12 leaves")]):
        assert flags(subgoals=[first, *others]) == ("subgoals_incomplete",)


@pytest.mark.parametrize("severity", ["high", "minor", ""])
def test_violations_are_kept_and_cost_no_verdict(severity: str) -> None:
    broken = [{"constraint": "Never book", "severity": severity, "step": "R"}]
    verdict = given(JUDGE, replied(json.dumps(complete(ASKED, violations=broken))))
    assert verdict.answer is not None
    assert verdict.answer["violations"] == broken
    assert verdict.outcome == "complete"


def test_an_answer_can_be_stored_whatever_it_holds() -> None:
    answer = json.dumps(complete(ASKED, output=node("yes", reason="a\ud800b\x00c")))
    verdict = given(JUDGE, replied(answer))
    assert verdict.answer is not None
    json.dumps(verdict.answer, ensure_ascii=False).encode()
    assert "\x00" not in str(verdict.answer["output"])


def test_texts_of_a_trace_with_equal_names_are_both_searched() -> None:
    trace = make_shown(
        inputs=(
            Attachment(name="a", text="The first of two."),
            Attachment(name="a", text="And more of it."),
        ),
        response=RESPONSE,
    )
    assert states(trace, ("I1", "The first of two"), ("I2", "And more of it.")) == ["verified"] * 2
