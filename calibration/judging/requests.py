"""What passes between a judge and the runner: requests, replies and the verdict of a sample."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from calibration.records import TraceForReview

STRUCTURED_MODES = ("json_schema", "tool", "json_object", "plain")
TOKEN_PARAMETERS = ("max_tokens", "max_completion_tokens")
QUOTE_STATES = ("verified", "moved", "unverified")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an endpoint can do, found by reading its answers to five tiny calls.

    Servers ignore fields in silence, so `structured` is the strictest mode whose answer had the
    form that was asked for. `usage` says whether answers count their tokens, `cached` and
    `reasoning` whether they count those apart. `context` is in tokens, None if unknown.
    """

    structured: str = "plain"
    token_parameter: str = "max_tokens"
    temperature: bool = True
    seed: bool = False
    usage: bool = False
    cached: bool = False
    reasoning: bool = False
    model_returned: str = ""
    context: int | None = None


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call: the arguments of `chat.completions.create`, and what it is about.

    `call` numbers the calls of a plan within a sample, `reask` the attempts at a usable answer.
    `output_limit` is the most tokens that the answer can have, as `body` asks for it.

    Examples
    --------
    >>> request = Request(
    ...     trace_id="t1", content_hash="c", sample=0, output_limit=500,
    ...     body={"model": "m", "messages": [{"role": "user", "content": "é?"}]},
    ... )
    >>> request.input_bytes
    35
    >>> request.key("judge") == request.key("judge"), request.key("judge") == request.key("other")
    (True, False)
    """

    trace_id: str
    content_hash: str
    sample: int
    output_limit: int
    call: int = 0
    reask: int = 0
    body: Mapping[str, object] = field(default_factory=dict)

    def key(self, judge_id: str) -> str:
        """Return the identity of the request, the same in every run of the same judge."""
        parts = [judge_id, self.content_hash, self.sample, self.call, self.reask]
        return hashlib.sha256(_canonical(parts).encode()).hexdigest()

    @property
    def input_bytes(self) -> int:
        """UTF-8 bytes of all that becomes input tokens: messages, tools and schema."""
        return self._sizes[0]

    @property
    def input_characters(self) -> int:
        """Characters of all that becomes input tokens."""
        return self._sizes[1]

    @cached_property  # asked for several times a call, and a prompt is long
    def _sizes(self) -> tuple[int, int]:
        names = ("messages", "tools", "response_format")
        text = _canonical([self.body[name] for name in names if name in self.body])
        return len(text.encode(errors="surrogatepass")), len(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A final reply to a request: an answer, or a refusal that repeating would not change.

    `body` is the text as it came. `cost_usd` is None without prices or without usage.
    """

    key: str
    status: int
    headers: Mapping[str, str]
    body: str
    latency_s: float
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedEvidence:
    """A quote that a judge gave, and whether it stands in the step that it named."""

    step: str
    quote: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleVerdict:
    """What one sample of a judge says about a trace; `outcome` is a class or `no_verdict`.

    `cause` says why there is no verdict; `answer` is the checked answer, `replies` the keys of the
    requests that it was read from, in order. What these cost and how long they took the runner
    adds: `cost_usd` is None without prices or without usage.
    """

    trace_id: str
    sample: int
    outcome: str
    cause: str | None = None
    answer: Mapping[str, object] | None = None
    reason: str | None = None
    evidence: tuple[QuotedEvidence, ...] = ()
    flags: tuple[str, ...] = ()
    cut_characters: int = 0
    replies: tuple[str, ...] = ()
    cost_usd: float | None = None
    latency_s: float | None = None


class Judge(Protocol):
    """A judge: immutable, and a pure function of the replies so far."""

    @property
    def judge_id(self) -> str:
        """The identity of everything that can change an answer."""
        ...

    @property
    def samples(self) -> int:
        """How many samples are taken of each trace."""
        ...

    def next_step(
        self, trace: TraceForReview, content_hash: str, sample: int, replies: Sequence[Reply]
    ) -> Request | SampleVerdict:
        """Return the next request about a sample, or its verdict.

        `replies` are all final replies of this trace and sample, in the order of the requests. With
        the same arguments it returns the same.
        """
        ...


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
