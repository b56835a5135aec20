"""A small judge for the tests of the runner: it reads plain JSON, and re-asks once."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calibration.judging.requests import Reply, Request, SampleVerdict
from calibration.records import TraceForReview
from tests.judging.scripted_server import MODEL

OUTCOMES = ("yes", "partly", "no")


def traces(n: int, *, size: int = 200) -> list[tuple[TraceForReview, str]]:
    """Return traces with the hash of their content."""
    return [
        (
            TraceForReview(
                trace_id=f"t-{i:04d}", workflow="w", prompt=f"task {i} " + "x" * size, inputs=(),
                sub_goals=(), steps=(), response=None, status=None, agent="a", latency_s=None,
            ),
            f"content-{i:04d}",
        )
        for i in range(n)
    ]  # fmt: skip


def answer(body: dict[str, Any]) -> str:
    """Return what a good model answers: a class that depends on the trace only."""
    text = body["messages"][1]["content"]
    number = int(text.split()[1])
    node = {"reason": "because", "evidence": [{"step": "S1", "quote": "x" * 12}], "answer": "yes"}
    return json.dumps({"head": "h", "verdict": OUTCOMES[number % 3], "output": node, "tail": "t"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeJudge:
    """Asks once, again after a form error or a cut answer, and reads `verdict`."""

    judge_id: str = "fake-judge"
    output_limit: int = 200
    calls: int = 1
    static: str = "You judge."

    def next_step(
        self, trace: TraceForReview, content_hash: str, sample: int, replies: Sequence[Reply]
    ) -> Request | SampleVerdict:
        call = reask = 0
        found: str | None = None
        cause: str | None = None
        for reply in replies:
            found, cause = read(reply)
            if cause is not None and reask == 0 and cause != "context_overflow":
                reask = 1
            elif cause is not None:
                break
            else:
                call, reask = call + 1, 0
        done = (cause is not None and (reask == 0 or len(replies) > call + 1)) or call >= self.calls
        if done:
            return SampleVerdict(
                trace_id=trace.trace_id,
                content_hash=content_hash,
                sample=sample,
                outcome="no_verdict" if cause else str(found),
                cause=cause,
                replies=tuple(reply.key for reply in replies),
            )
        return Request(
            trace_id=trace.trace_id,
            content_hash=content_hash,
            sample=sample,
            call=call,
            reask=reask,
            body=self.body(trace, sample),
            output_limit=self.output_limit,
        )

    def body(self, trace: TraceForReview, sample: int) -> dict[str, Any]:
        return {
            "model": MODEL,
            "max_tokens": self.output_limit,
            "messages": [
                {"role": "system", "content": self.static},
                {"role": "user", "content": trace.prompt},
            ],
        }


def read(reply: Reply) -> tuple[str | None, str | None]:
    """Return the verdict of an answer, or the cause why there is none."""
    if reply.status != 200:
        filtered = "content_filter" in reply.body
        return None, "content_filter" if filtered else "context_overflow"
    try:
        choice = json.loads(reply.body.removeprefix("\ufeff"))["choices"][0]
        if choice["finish_reason"] != "stop":
            return None, str(choice["finish_reason"])
        found = json.loads(choice["message"]["content"])
        if found["head"] != "h" or found["output"]["answer"] not in ("yes", "no"):
            return None, "form"
        return str(found["verdict"]), None
    except (ValueError, KeyError, TypeError, IndexError):
        return None, "form"
