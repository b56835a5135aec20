"""What the runner sends and receives, and what a judge makes of it: no network, no file."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from calibration.records import TraceForReview

StructuredMode = Literal["json_schema", "tool", "json_object", "plain"]
QuoteState = Literal["verified", "moved", "unverified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an endpoint was found to do; `context` is in tokens, None if it does not say."""

    structured: StructuredMode = "plain"
    token_parameter: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    seed: bool = True
    usage: bool = True
    model_returned: str = ""
    context: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of chat completions: `body` holds its arguments.

    `call` counts the calls of one sample (a plan may need several), `reask` the repeats of a call.
    """

    trace_id: str
    content_hash: str
    sample: int
    call: int = 0
    reask: int = 0
    body: Mapping[str, Any]
    output_limit: int

    def key(self, judge_id: str) -> str:
        """Return the key by which the answer is found again, in any run of this judge.

        Examples
        --------
        >>> one = Request(trace_id="t", content_hash="c", sample=0, body={}, output_limit=9)
        >>> len(one.key("judge")), one.key("judge") == one.key("another")
        (64, False)
        """
        parts = [judge_id, self.content_hash, self.sample, self.call, self.reask]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def input_bytes(self) -> int:
        """UTF-8 bytes of the body: an upper bound of the tokens needs no tokenizer."""
        return len(json.dumps(self.body, ensure_ascii=False).encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One final answer of the endpoint, as it came; `body` is the raw text."""

    key: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    latency_s: float = 0.0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedEvidence:
    """A quote of the judge, checked against the step that it names."""

    step_id: str
    quote: str
    state: QuoteState


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleVerdict:
    """What one sample of a judge came to.

    `outcome` is a class or ``no_verdict``, which has a `cause`. `answer` is the answer as read.
    `replies` are the keys of the answers it was made from.
    """

    trace_id: str
    content_hash: str
    sample: int
    outcome: str
    cause: str | None = None
    reason: str | None = None
    evidence: tuple[QuotedEvidence, ...] = ()
    answer: Mapping[str, Any] | None = None
    flags: tuple[str, ...] = ()
    cut_characters: int = 0
    replies: tuple[str, ...] = ()
    cost_usd: float | None = None
    latency_s: float | None = None


class Judge(Protocol):
    """A judge as the runner knows it."""

    @property
    def judge_id(self) -> str:
        """The identity: everything that can change an answer is in it."""

    def next_step(
        self, trace: TraceForReview, content_hash: str, sample: int, replies: Sequence[Reply]
    ) -> Request | SampleVerdict:
        """Return the next request, or the verdict; a pure function of its arguments."""
