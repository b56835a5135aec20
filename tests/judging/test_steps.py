import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from calibration.errors import InputError
from calibration.judging.answers import answer_schema
from calibration.judging.requests import Judge, QuotedEvidence, Reply, Request, SampleVerdict
from calibration.judging.steps import TreeJudge, combine
from calibration.judging.versions import READER, RENDERER
from calibration.records import Step, TraceForReview
from calibration.taxonomy import default_taxonomy
from tests.judging.makers import (
    HASH,
    RESPONSE,
    RESULT,
    asked,
    complete,
    given,
    goal,
    make_judge,
    make_shown,
    messages_of,
    node,
    other_tree,
    practice_example,
    raw,
    reference,
    replied,
    scripted,
    shown,
    text_of,
    words_of,
)


def answered(
    judge: TreeJudge, trace: TraceForReview, outcome: str, sample: int = 0
) -> SampleVerdict:
    """Return the verdict when a model gives the answers that lead to a class."""
    replies: list[Reply] = []
    found = judge.next_step(trace, HASH, sample, replies)
    while isinstance(found, Request):
        replies.append(replied(json.dumps(scripted(judge, found, trace, outcome))))
        found = judge.next_step(trace, HASH, sample, replies)
    return found


# ---- requests


def test_a_judge_is_what_the_runner_wants() -> None:
    judge: Judge = make_judge()
    assert judge.samples == 3
    assert judge.judge_id == make_judge().judge_id


def test_a_request_holds_what_the_version_asks_for_and_no_more() -> None:
    body = asked(make_judge(structured="plain")).body
    assert set(body) == {"model", "messages", "max_tokens"}
    judge = make_judge(
        structured="plain",
        temperature=0.5,
        seed=11,
        token_limit=900,
        reasoning_effort="low",
        capabilities={"token_parameter": "max_completion_tokens"},
    )
    request = judge.next_step(make_shown(), HASH, 2, [])
    assert isinstance(request, Request)
    assert request.output_limit == 900
    assert {k: v for k, v in request.body.items() if k != "messages"} == {
        "model": "m", "max_completion_tokens": 900, "temperature": 0.5, "seed": 13,
        "reasoning_effort": "low",
    }  # fmt: skip


def test_each_structured_mode_asks_for_the_same_schema() -> None:
    schema = answer_schema(default_taxonomy())
    strict = asked(make_judge()).body["response_format"]
    assert strict == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": schema},
    }
    tool = asked(make_judge(structured="tool")).body
    assert tool["tool_choice"] == {"type": "function", "function": {"name": "answer"}}
    assert tool["tools"][0]["function"]["parameters"] == schema  # type: ignore[index]
    loose = asked(make_judge(structured="json_object"))
    assert loose.body["response_format"] == {"type": "json_object"}
    for mode in ("json_schema", "tool", "json_object", "plain"):
        text = text_of(asked(make_judge(structured=mode)))
        assert '"material_error": {"reason": string' in text  # a server may ignore the mode
        assert "JSON" in text


@pytest.mark.parametrize("mode", ["json_schema", "tool", "json_object", "plain"])
def test_an_answer_in_another_mode_than_asked_for_is_read(mode: str) -> None:
    judge = make_judge(structured=mode)
    good = json.dumps(complete(asked(judge)))
    tool = {"content": None, "tool_calls": [{"function": {"name": "answer", "arguments": good}}]}
    for message in (good, tool):
        assert given(judge, replied(message)).outcome == "complete"


# ---- re-asks


def test_the_length_is_doubled_once() -> None:
    judge = make_judge(token_limit=700)
    cut = replied("{", finish="length")
    again = asked(judge, cut)
    assert (again.output_limit, again.body["max_tokens"], again.reask) == (1_400, 1_400, 1)
    assert again.body["messages"] == asked(judge).body["messages"]
    assert given(judge, cut, cut).cause == "length"
    assert given(judge, cut, replied(json.dumps(complete(again)))).outcome == "complete"


def test_a_doubled_length_that_leaves_no_room_is_a_length() -> None:
    judge = make_judge(token_limit=1_500, context_tokens=4_000)
    assert asked(judge).output_limit == 1_500
    verdict = judge.next_step(make_shown(), HASH, 0, [replied("{", finish="length")])
    assert isinstance(verdict, SampleVerdict)
    assert verdict.cause == "length"


def test_filter_and_refusal_share_one_attempt() -> None:
    judge = make_judge()
    filtered, refused = replied("", finish="content_filter"), replied("I'm sorry, I cannot.")
    assert asked(judge, filtered).body == asked(judge).body
    assert given(judge, filtered, refused).cause == "refusal"
    assert given(judge, refused, filtered).cause == "content_filter"


def test_each_kind_of_error_has_its_own_attempt() -> None:
    judge = make_judge()
    errors = [
        replied("no JSON"),
        replied("{", finish="length"),
        replied("", finish="content_filter"),
        replied("", finish="error"),
    ]
    request = asked(judge, *errors)
    assert (request.reask, request.output_limit) == (4, 8_000)
    verdict = given(judge, *errors, replied(json.dumps(complete(request)), key="last"))
    assert verdict.outcome == "complete"
    assert verdict.replies == ("k", "k", "k", "k", "last")


def long_trace(size: int = 60_000) -> TraceForReview:
    step = Step(step_id="z", role="tool", tool="read", result="Many words. " * (size // 12))
    return make_shown(steps=(*make_shown().steps, step))


def test_too_long_a_prompt_is_cut_to_the_numbers_of_the_message() -> None:
    judge, trace = make_judge(token_limit=1_000), long_trace()
    first = asked(judge, trace=trace)
    characters = len(text_of(first)) - 1
    used = characters // 4
    refused = raw(
        f"This model's maximum context length is 8192 tokens. However, you requested {used + 1000} "
        f"tokens ({used} in the messages, 1000 in the completion).",
        status=400,
    )
    again = asked(judge, refused, trace=trace)
    room = 0.9 * (8_192 - 1_000) * 4
    assert 0.85 * room < len(text_of(again)) <= room + 1
    assert RESPONSE in text_of(again)
    verdict = given(judge, refused, replied(json.dumps(complete(again))), trace=trace)
    assert verdict.outcome == "complete"
    assert verdict.cut_characters > 30_000
    assert given(judge, refused, refused, trace=trace).cause == "context_overflow"


@pytest.mark.parametrize(
    "message",
    [
        "context_length_exceeded",  # no number
        "maximum context length is 1200 tokens",  # not even the rules fit
    ],
)
def test_a_prompt_that_cannot_fit_is_an_overflow(message: str) -> None:
    judge = make_judge(token_limit=500)
    refused = raw(message, status=400)
    verdict = judge.next_step(long_trace(), HASH, 0, [refused])
    assert isinstance(verdict, SampleVerdict)
    assert (verdict.cause, verdict.replies) == ("context_overflow", ("k",))


def test_a_server_that_names_only_its_limit_gets_fewer_characters() -> None:
    judge, trace = make_judge(token_limit=1_000), long_trace()
    refused = raw("maximum context length is 16384 tokens, at least 99 input", status=400)
    assert len(text_of(asked(judge, refused, trace=trace))) <= 0.9 * 2 * (16_384 - 1_000)


def test_what_does_not_fit_from_the_start_is_never_asked() -> None:
    judge = make_judge(context_tokens=2_000, token_limit=500)
    verdict = judge.next_step(long_trace(), HASH, 0, [])
    assert isinstance(verdict, SampleVerdict)
    assert (verdict.cause, verdict.replies) == ("context_overflow", ())
    huge = make_shown(prompt="x" * 100_000)
    again = make_judge(context_tokens=16_000).next_step(huge, HASH, 0, [])
    assert isinstance(again, SampleVerdict)
    assert again.cause == "context_overflow"


def test_a_prompt_that_the_server_cut_is_asked_again_as_long_as_it_read() -> None:
    judge, trace = make_judge(token_limit=1_000), long_trace()
    first = asked(judge, trace=trace)
    cut = replied(json.dumps(complete(first)), usage={"prompt_tokens": 8_000})
    again = asked(judge, cut, trace=trace)
    assert len(text_of(again)) <= 0.9 * 2 * 8_000 + 1
    read = replied(json.dumps(complete(again)), usage={"prompt_tokens": 4_500})
    assert given(judge, cut, read, trace=trace).outcome == "complete"
    assert given(judge, cut, cut, cut, trace=trace).outcome == "complete"  # now it read all
    less = replied("", usage={"prompt_tokens": 9})
    assert given(judge, cut, less, trace=trace).cause == "cut_by_server"


def test_content_is_never_asked_for_again() -> None:
    judge = make_judge()
    answer = complete(asked(judge), output=node("yes", ("S3", "invented words, not there")))
    verdict = given(judge, replied(json.dumps(answer)))
    assert verdict.outcome == "complete"
    assert verdict.evidence[0] == QuotedEvidence(
        step="c", quote="invented words, not there", state="unverified"
    )


# ---- plans


def test_plan_first_shows_what_the_agent_said_after_the_plan() -> None:
    judge = make_judge(plan="plan_first")
    first = asked(judge)
    assert RESULT in text_of(first)
    for words in (RESPONSE, "I will look for the first one.", "has the status"):
        assert words not in text_of(first)
    plan = {
        "head": words_of(first)["head"],
        "expected": [{"n": 1, "result": "KX 12"}, {"n": 2, "result": "gate 4"}],
        "tail": words_of(first)["tail"],
    }
    planned = replied(json.dumps(plan), key="k1")
    second = asked(judge, planned)
    assert (second.call, second.reask) == (1, 0)
    said = messages_of(second)
    assert said[:2] == messages_of(first)
    assert [m["role"] for m in said] == ["system", "user", "assistant", "user"]
    assert json.loads(said[2]["content"]) == plan
    assert RESPONSE in said[3]["content"]
    verdict = given(judge, planned, replied(json.dumps(complete(second)), key="k2"))
    assert (verdict.outcome, verdict.replies) == ("complete", ("k1", "k2"))
    assert verdict.answer is not None
    assert verdict.answer["expected"] == plan["expected"]


def test_an_answer_with_the_code_word_of_another_call_is_none() -> None:
    judge = make_judge(plan="plan_first")
    first = asked(judge)
    plan = replied(json.dumps({**words_of(first), "expected": []}))
    second = asked(judge, plan)
    stale = complete(second, tail=words_of(first)["tail"])
    assert asked(judge, plan, replied(json.dumps(stale))).reask == 1


def test_per_node_asks_along_the_path_and_no_further() -> None:
    judge = make_judge(plan="per_node")
    first = asked(judge)
    words = words_of(first)
    answer = {
        "head": words["head"],
        "subgoals": [goal(1, "missing"), goal(2, "missing")],
        "output": node("yes"),
        "violations": [],
        "tail": words["tail"],
    }
    begun = replied(json.dumps(answer))
    second = asked(judge, begun)
    assert second.call == 1
    assert "the question of the field 'fabrication'" in text_of(second)
    prefix = text_of(first).split("Code word at the tail")[0]
    assert text_of(second).startswith(prefix)
    invented = {**words_of(second), "fabrication": node("yes", ("R", "booked under RF-2210"))}
    verdict = given(judge, begun, replied(json.dumps(invented)))
    assert (verdict.outcome, verdict.flags) == ("hallucinated", ())
    assert verdict.answer is not None
    assert list(verdict.answer) == ["subgoals", "violations", "output", "fabrication"]


@pytest.mark.parametrize("plan", ["one_call", "per_node", "plan_first"])
@pytest.mark.parametrize("tree", ["default", "other"])
def test_every_class_of_every_tree_is_reached_in_every_plan(plan: str, tree: str) -> None:
    taxonomy = default_taxonomy() if tree == "default" else other_tree()
    judge = make_judge(plan=plan, taxonomy=taxonomy)
    for outcome in taxonomy.names:
        assert answered(judge, make_shown(), outcome).outcome == outcome
    for schema in judge._schemas.values():
        Draft202012Validator.check_schema(schema)


def test_every_reference_trace_ends_in_the_class_that_is_answered() -> None:
    judge = make_judge(few_shots=[practice_example()], context_tokens=16_000, token_limit=1_000)
    labels = reference().labels
    for trace_id, trace in reference().traces.items():
        assert answered(judge, shown(trace), labels[trace_id].outcome).outcome == (
            labels[trace_id].outcome
        )


# ---- purity

SCRIPTS = [
    replied("no JSON"), replied("{", finish="length"), replied("", finish="content_filter"),
    replied("I cannot."), raw("", status=500), replied("", error="x"),
    raw("maximum context length is 9000 tokens", status=400),
    replied("{}", usage={"prompt_tokens": 3}), replied('{"head": 1}'),
]  # fmt: skip


@for_all(
    st.lists(st.sampled_from(SCRIPTS), max_size=9),
    st.sampled_from(["one_call", "per_node", "plan_first"]),
)
def test_the_same_replies_lead_to_the_same_verdict(replies: list[Reply], plan: str) -> None:
    judge = make_judge(plan=plan)
    found = judge.next_step(make_shown(), HASH, 0, replies)
    assert found == make_judge(plan=plan).next_step(make_shown(), HASH, 0, list(replies))
    if isinstance(found, Request):
        assert found.reask == len(replies) <= 6
    else:
        assert len(found.replies) <= len(replies)


def test_keys_of_requests_are_all_different() -> None:
    judge, keys = make_judge(plan="per_node"), set()
    for sample in range(3):
        replies: list[Reply] = []
        found = judge.next_step(make_shown(), HASH, sample, replies)
        while isinstance(found, Request):
            key = found.key(judge.judge_id)
            assert key not in keys
            keys.add(key)
            bad = replied("{", finish="length")
            good = replied(json.dumps(scripted(judge, found, make_shown(), "partial_plus")))
            replies.append(bad if found.reask == 0 else good)
            found = judge.next_step(make_shown(), HASH, sample, replies)
    assert len(keys) == 3 * 4 * 2


def test_another_model_than_the_probe_found_is_flagged() -> None:
    judge = make_judge(capabilities={"model_returned": "m-2025"})
    good = json.dumps(complete(asked(judge)))
    assert given(judge, replied(good, model="m-2026")).flags == ("other_model",)
    for same in ("m-2025", "", None):
        assert given(judge, replied(good, model=same)).flags == ()


def test_a_corrected_reader_reads_the_same_paid_answers() -> None:
    version = make_judge().version
    other = replace(version, reader="9")
    assert other.judge_id != version.judge_id
    assert other.prompt_id == version.prompt_id
    with pytest.raises(
        InputError,
        match=f"of texts {RENDERER} and reader 9, this release has {RENDERER} and {READER}",
    ):
        TreeJudge(
            version=other, taxonomy=default_taxonomy(), capabilities=make_judge().capabilities
        )


# ---- what does not belong to a version


def test_a_version_is_used_with_its_own_taxonomy_examples_and_endpoint() -> None:
    judge, example = make_judge(), practice_example()
    fits: dict[str, Any] = {
        "version": judge.version,
        "taxonomy": judge.taxonomy,
        "capabilities": judge.capabilities,
    }
    with pytest.raises(InputError, match="which are not those of taxonomy fork-2 at hand"):
        TreeJudge(**fits | {"taxonomy": other_tree()})
    with pytest.raises(InputError, match=r"has the worked examples none, got code_review-003"):
        TreeJudge(**fits, few_shots=[example])
    shot = make_judge(few_shots=[example])
    with pytest.raises(InputError, match="were changed since it was made"):
        TreeJudge(
            **fits | {"version": shot.version}, few_shots=[replace(example, reason="Another one.")]
        )
    with pytest.raises(InputError, match="the probe found plain; use a version with structured"):
        make_judge(capabilities={"structured": "plain"})


# ---- samples


def votes(*outcomes: str) -> list[SampleVerdict]:
    """Return samples with these classes; ``no_verdict:cause`` has none."""
    return [
        SampleVerdict(
            trace_id="t",
            sample=k,
            outcome=vote.split(":")[0],
            cause=vote.partition(":")[2] or None,
            reason=f"reason {k}",
            flags=("inconsistent",) if k == 1 else (),
            cut_characters=k,
        )
        for k, vote in enumerate(outcomes)
    ]


@pytest.mark.parametrize(
    ("outcomes", "outcome", "cause"),
    [
        (["complete"], "complete", None),
        (["complete", "abandoned", "complete"], "complete", None),
        (["complete", "abandoned"], "no_verdict", "split"),
        (["complete", "abandoned", "hallucinated"], "no_verdict", "split"),
        (["complete", "complete", "abandoned", "abandoned", "hallucinated"], "no_verdict", "split"),
        (["complete", "no_verdict:form"], "complete", None),
        (["complete", "no_verdict:form", "no_verdict:length"], "no_verdict", "form"),
        (["no_verdict:length", "no_verdict:form", "no_verdict:length"], "no_verdict", "length"),
        (["no_verdict:refusal"], "no_verdict", "refusal"),
    ],
)
def test_the_plurality_of_valid_samples_decides(
    outcomes: list[str], outcome: str, cause: str | None
) -> None:
    verdict = combine(votes(*outcomes))
    assert (verdict.outcome, verdict.cause) == (outcome, cause)


def test_shares_are_those_of_the_valid_votes() -> None:
    samples = votes("no_verdict:form", "complete", "complete", "abandoned")
    verdict = combine(samples)
    assert verdict.shares == {"abandoned": pytest.approx(1 / 3), "complete": pytest.approx(2 / 3)}
    assert (verdict.n_samples, verdict.n_valid, verdict.causes) == (4, 3, {"form": 1})
    assert (verdict.reason, verdict.flags, verdict.cut_characters) == (
        "reason 1", ("inconsistent",), 3,
    )  # fmt: skip
    assert combine(samples[::-1]) == verdict


@for_all(
    st.lists(
        st.sampled_from(["complete", "abandoned", "no_verdict:form", "no_verdict:refusal"]),
        min_size=1,
        max_size=7,
    )
)
def test_a_trace_has_a_class_or_a_cause(outcomes: list[str]) -> None:
    verdict = combine(votes(*outcomes))
    assert (verdict.cause is None) == (verdict.outcome != "no_verdict")
    assert sum(verdict.shares.values()) == pytest.approx(1) or not verdict.shares
    if verdict.cause is None:
        assert verdict.shares[verdict.outcome] == max(verdict.shares.values())


def test_samples_of_two_traces_are_refused() -> None:
    with pytest.raises(ValueError, match="of one trace"):
        combine([*votes("complete"), replace(votes("complete")[0], trace_id="u")])
    with pytest.raises(ValueError, match="at least one"):
        combine([])
