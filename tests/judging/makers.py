"""Traces, judges and replies made by hand, and a model that answers as told."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any

from calibration.judging.prompt import FewShot, few_shots_digest
from calibration.judging.requests import Capabilities, Reply, Request, SampleVerdict
from calibration.judging.steps import TreeJudge
from calibration.judging.versions import new_version
from calibration.records import Attachment, Evidence, Step, SubGoal, Trace, TraceForReview
from calibration.taxonomy import Taxonomy, default_taxonomy, taxonomy_from_dict
from reference_dataset.loader import ReferenceSet, load_reference

HASH = "c0ffee"
RESULT = "Flight KX 12 leaves at 07:40 from gate 4."
RESPONSE = "You fly with KX 12 at 07:40. Your seat is 14C, booked under RF-2210."


def shown(trace: Trace) -> TraceForReview:
    """Return what reviewers see of a trace."""
    names = {f.name for f in fields(TraceForReview)} - {"agent", "simulated_user"}
    return TraceForReview(agent="A", **{name: getattr(trace, name) for name in names})


@cache
def reference() -> ReferenceSet:
    return load_reference()


def make_shown(**changes: Any) -> TraceForReview:
    """Return a small trace: a look-up, and a response with an invented booking."""
    trace = TraceForReview(
        trace_id="t1",
        workflow="scheduling",
        prompt="Find the first flight to Bergen and tell me the gate.",
        inputs=(Attachment(name="rules.txt", text="Never book without a written order."),),
        sub_goals=(SubGoal(id="g1", text="the flight"), SubGoal(id="g2", text="the gate")),
        steps=(
            Step(step_id="a", role="system", content="You look up flights."),
            Step(
                step_id="b",
                role="assistant",
                content="I will look for the first one.",
                tool="flights",
                arguments='{"to": "Bergen"}',
            ),
            Step(step_id="c", role="tool", tool="flights", result=RESULT),
        ),
        response=RESPONSE,
        status="completed",
        agent="A",
        latency_s=1.0,
    )
    return replace(trace, **changes)


def make_judge(
    *,
    taxonomy: Taxonomy | None = None,
    few_shots: Sequence[FewShot] = (),
    capabilities: Mapping[str, Any] | None = None,
    **settings: Any,
) -> TreeJudge:
    """Return a judge of a version with these settings."""
    tree = taxonomy or default_taxonomy()
    version = new_version(
        model="m",
        endpoint="scripted",
        taxonomy=tree,
        few_shots=[few_shot.trace.trace_id for few_shot in few_shots],
        few_shots_sha256=few_shots_digest(few_shots),
        **settings,
    )
    able: dict[str, Any] = {"structured": version.structured, "seed": True} | dict(
        capabilities or {}
    )
    return TreeJudge(
        version=version,
        taxonomy=tree,
        few_shots=few_shots,
        capabilities=Capabilities(**able),
    )


def practice_example(outcome: str | None = None) -> FewShot:
    """Return the first practice trace, or the first one of a class, with its label."""
    labels = [reference().labels[trace_id] for trace_id in reference().forms["practice"]]
    label = next(label for label in labels if outcome in (None, label.outcome))
    return FewShot(
        trace=shown(reference().traces[label.trace_id]),
        answers=label.answers,
        reason=label.rationale,
        evidence=tuple(Evidence(step_id=e.step_id, quote=e.quote) for e in label.evidence),
    )


def other_tree() -> Taxonomy:
    """Return the five classes under a tree of other questions, which splits at once."""
    ends = ("complete", "partial_plus", "partial_minus", "hallucinated", "abandoned")
    data = default_taxonomy().to_dict() | {
        "version": "fork-2",
        "nodes": [
            {"id": "fine", "question": "Is it fine?", "yes": "all_of_it", "no": "bad"},
            {"id": "all_of_it", "question": "All of it?", "yes": ends[0], "no": ends[1]},
            {"id": "bad", "question": "Is there anything?", "yes": "made_up", "no": ends[4]},
            {"id": "made_up", "question": "Made up?", "yes": ends[3], "no": ends[2]},
        ],
    }
    return taxonomy_from_dict(data)


def messages_of(request: Request) -> list[dict[str, str]]:
    messages = request.body["messages"]
    assert isinstance(messages, list)
    return messages


def text_of(request: Request) -> str:
    """Return all that a model reads."""
    return "\n".join(message["content"] for message in messages_of(request))


def words_of(request: Request) -> dict[str, str]:
    """Return the code words of a request."""
    return words_in(text_of(request))


def words_in(text: str) -> dict[str, str]:
    """Return the code words as a model finds them: at the head, and the last one at the tail."""
    (head,) = re.findall(r"^Code word at the head: (\S+)$", text, re.MULTILINE)
    tail = re.findall(r"^Code word at the tail: (\S+)$", text, re.MULTILINE)[-1]
    return {"head": head, "tail": tail}


def node(answer: str, *quotes: tuple[str, str], reason: str = "Because.") -> dict[str, Any]:
    evidence = [{"step": step, "quote": quote} for step, quote in quotes]
    return {"reason": reason, "evidence": evidence, "answer": answer}


def goal(n: int, state: str, step: str | None = None, quote: str | None = None) -> dict[str, Any]:
    return {"n": n, "state": state, "step": step, "quote": quote}


def complete(request: Request, **changes: Any) -> dict[str, Any]:
    """Return an answer that all is done, with quotes that hold."""
    answer = {
        "head": words_of(request)["head"],
        "subgoals": [
            goal(1, "met", "S3", "Flight KX 12 leaves"),
            goal(2, "met", "S3", "07:40 from gate 4"),
        ],
        "output": node("yes"),
        "fabrication": node("no"),
        "all_subgoals": node("yes", reason="Both are there."),
        "material_error": None,
        "violations": [],
        "tail": words_of(request)["tail"],
    }
    return answer | changes


def replied(
    message: Mapping[str, Any] | str,
    *,
    finish: str | None = "stop",
    status: int = 200,
    key: str = "k",
    **fields: Any,
) -> Reply:
    """Return the reply of a server with a message, or with a content."""
    said = {"role": "assistant", "content": message} if isinstance(message, str) else message
    body = {"model": "m", "choices": [{"index": 0, "finish_reason": finish, "message": said}]}
    return raw(json.dumps(body | fields), status=status, key=key)


def raw(body: str, *, status: int = 200, key: str = "k") -> Reply:
    return Reply(key=key, status=status, headers={}, body=body, latency_s=0.1)


def asked(judge: TreeJudge, *replies: Reply, trace: TraceForReview | None = None) -> Request:
    """Return the request after these replies."""
    found = judge.next_step(trace or make_shown(), HASH, 0, replies)
    assert isinstance(found, Request), found
    return found


def given(judge: TreeJudge, *replies: Reply, trace: TraceForReview | None = None) -> SampleVerdict:
    """Return the verdict after these replies."""
    found = judge.next_step(trace or make_shown(), HASH, 0, replies)
    assert isinstance(found, SampleVerdict), found
    return found


def scripted(
    judge: TreeJudge, request: Request, trace: TraceForReview, outcome: str
) -> dict[str, Any]:
    """Return the answer of a model to one request of any plan."""
    answers = judge.taxonomy.answers_for(outcome)
    text = messages_of(request)[-1]["content"]
    words = words_of(request)
    if '"expected": [' in text.split("The form of the answer, in JSON: ")[-1]:
        return {"head": words["head"], "expected": [], "tail": words["tail"]}
    form = text.split("The form of the answer, in JSON: ")[-1]
    answer: dict[str, Any] = {"head": words["head"], "tail": words["tail"]}
    for question in judge.taxonomy.nodes:
        if f'"{question.id}": ' in form:
            given_answer = answers.get(question.id)
            answer[question.id] = node(given_answer) if given_answer else None
    if '"subgoals"' in form:
        answer["subgoals"] = [goal(n, "missing") for n in range(1, len(trace.sub_goals) + 1)]
        answer["violations"] = []
    return answer
