"""A judge that asks one question, and what a willing endpoint answers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calibration.judging.requests import Reply, Request, SampleVerdict
from calibration.records import NO_VERDICT, TraceForReview
from tests.judging.scripted_server import Asked

LIMIT = 120
CODE_WORD = "amber"


def trace(name: str) -> TraceForReview:
    return TraceForReview(
        trace_id=name, workflow="w", prompt=f"Book flight {name}", inputs=(), sub_goals=(),
        steps=(), response="The flight is booked.", status=None, agent="a", latency_s=None,
    )  # fmt: skip


def traces(n: int) -> list[tuple[TraceForReview, str]]:
    return [(trace(f"t{k}"), f"hash-{k}") for k in range(n)]


def content(asked: Asked) -> dict[str, Any]:
    """Return the same good answer to the same question each time: no to every third trace."""
    number = int(asked.trace.removeprefix("t") or 0) + asked.sample
    evidence = [{"step": "R", "quote": "The flight is booked."}]
    answer = "no" if number % 3 == 0 else "yes"
    question = {"reason": f"because of {number}", "evidence": evidence, "answer": answer}
    return {"head": CODE_WORD, "output": question}


def is_answer(text: object) -> dict[str, Any] | None:
    """Return the content of an answer that has the form that was asked for."""
    try:
        data = json.loads(str(text))
        if data["head"] == CODE_WORD and data["output"]["answer"] in ("yes", "no"):
            return dict(data)
    except (ValueError, KeyError, TypeError):
        pass
    return None


@dataclass(frozen=True)
class FakeJudge:
    """Asks once, and once more after an answer that it cannot read or that was too long."""

    judge_id: str = "fake-judge"
    samples: int = 1
    padding: int = 600

    def next_step(
        self, trace: TraceForReview, content_hash: str, sample: int, replies: Sequence[Reply]
    ) -> Request | SampleVerdict:
        if not replies:
            return self._request(trace, content_hash, sample, 0, LIMIT)
        reply = replies[-1]
        keys = tuple(each.key for each in replies)
        cause, found, limit = self._read(reply)
        if found is None:
            if reply.status == 200 and len(replies) == 1:
                return self._request(trace, content_hash, sample, 1, limit)
            return SampleVerdict(
                trace_id=trace.trace_id,
                sample=sample,
                outcome=NO_VERDICT,
                cause=cause,
                replies=keys,
            )
        outcome = "complete" if found["output"]["answer"] == "yes" else "abandoned"
        return SampleVerdict(
            trace_id=trace.trace_id, sample=sample, outcome=outcome, answer=found,
            reason=found["output"]["reason"], replies=keys,
        )  # fmt: skip

    def _read(self, reply: Reply) -> tuple[str, dict[str, Any] | None, int]:
        if reply.status != 200:
            return "refused", None, LIMIT
        try:
            choice = json.loads(reply.body)["choices"][0]
            if choice["finish_reason"] == "length":
                return "length", None, 2 * LIMIT
            return "form", is_answer(choice["message"]["content"]), LIMIT
        except (ValueError, KeyError, TypeError, IndexError):
            return "form", None, LIMIT

    def _request(
        self, trace: TraceForReview, content_hash: str, sample: int, reask: int, limit: int
    ) -> Request:
        padding = "x" * (self.padding + len(trace.trace_id) * 7 % 50)
        text = f"[[{trace.trace_id} {sample}]] {trace.prompt} {trace.response} {padding}"
        return Request(
            trace_id=trace.trace_id, content_hash=content_hash, sample=sample, reask=reask,
            output_limit=limit,
            body={
                "model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": limit,
                "temperature": 0, "response_format": {"type": "json_object"},
            },
        )  # fmt: skip
