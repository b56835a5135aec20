"""Ask an endpoint what it can do, before the first run of a judge.

Five tiny calls, two more where a parameter is refused. A capability is read off the answer and
never off the name of a model, because servers ignore what they do not know in silence.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from calibration.errors import JudgeRunError
from calibration.judging.budget import tokens_of
from calibration.judging.pace import RunClock
from calibration.judging.requests import Capabilities, Reply
from calibration.judging.transport import (
    ANSWER,
    REFUSED,
    STOP,
    NoReply,
    Transport,
    classify,
    error_text,
)

OUTPUT_LIMIT = 1000  # tokens; a model that reasons needs some before its first word
TRIES = 3  # of a call, while errors pass by themselves
MOST_WAIT_S = 60.0
NAME, WORD = "code", "violet-42"
SENTENCE = "Describe the sea at night in one short English sentence."
_PARAMETERS = ("max_completion_tokens", "max_tokens", "temperature", "seed")

_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {NAME: {"type": "string", "enum": [WORD]}},
    "required": [NAME],
    "additionalProperties": False,
}
# Each asks for a sentence: only a server that enforces the mode gives an object.
_MODES: dict[str, dict[str, object]] = {
    "json_schema": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "probe", "strict": True, "schema": _SCHEMA},
        }
    },
    "tool": {
        "tools": [{"type": "function", "function": {"name": "probe", "parameters": _SCHEMA}}],
        "tool_choice": {"type": "function", "function": {"name": "probe"}},
    },
    "json_object": {"response_format": {"type": "json_object"}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What a probe found; `to_dict` is what is stored beside the judge."""

    capabilities: Capabilities
    calls: int
    input_tokens: int
    output_tokens: int
    findings: tuple[str, ...]  # how the endpoint answered each call

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {**asdict(self), "findings": list(self.findings)}


async def probe(transport: Transport, model: str, *, clock: RunClock | None = None) -> Probe:
    """Find out what an endpoint can do with a model.

    Parameters
    ----------
    transport : Transport
    model : str
        As the endpoint names it.
    clock : RunClock, optional
        Time, for tests.

    Returns
    -------
    Probe
        Its `capabilities` become a part of the judge.

    Raises
    ------
    JudgeRunError
        If the endpoint refuses the key or the model, or cannot be reached.
    """
    return await _Asker(transport, model, clock or RunClock()).probe()


class _Asker:
    """The calls of one probe."""

    def __init__(self, transport: Transport, model: str, clock: RunClock) -> None:
        self.transport, self.model, self.clock = transport, model, clock
        self.limit = _PARAMETERS[1]
        self.replies: list[Reply] = []
        self.findings: list[str] = []
        self.calls = 0

    async def probe(self) -> Probe:
        plain = await self._plain()
        structured = await self._structured()
        temperature, seed = await self._parameters()
        counted = [tokens_of(reply.body) for reply in self.replies]
        known = [tokens for tokens in counted if tokens is not None]
        usage = _usage(plain)
        capabilities = Capabilities(
            structured=structured,
            token_parameter=self.limit,
            temperature=temperature,
            seed=seed,
            usage=all(tokens is not None for tokens in counted),
            cached="cached_tokens" in str(usage.get("prompt_tokens_details")),
            reasoning="reasoning_tokens" in str(usage.get("completion_tokens_details")),
            model_returned=str(_data(plain).get("model") or ""),
            context=_context(await self.transport.models(), self.model),
        )
        return Probe(
            capabilities=capabilities,
            calls=self.calls,
            input_tokens=sum(tokens.input for tokens in known),
            output_tokens=sum(tokens.output for tokens in known),
            findings=tuple(self.findings),
        )

    async def _plain(self) -> Reply:
        """Return the answer to a plain question, and learn how an answer is limited."""
        reply, refusal = await self._ask("plain", {})
        if reply is None and self.limit in refusal:
            self.limit = _PARAMETERS[0]
            reply, refusal = await self._ask("plain", {})
        if reply is None:
            raise JudgeRunError(f"the endpoint refuses: {refusal}")
        return reply

    async def _structured(self) -> str:
        """Return the strictest mode whose answer has the form that was asked for."""
        for mode, about in _MODES.items():
            reply, _ = await self._ask(mode, about)
            if reply is None:
                continue
            found = _object(_arguments(reply) if mode == "tool" else _text(reply))
            fits = isinstance(found, dict) and (mode == "json_object" or found.get(NAME) == WORD)
            if fits:
                return mode
            self.findings[-1] += ", ignored"
        return "plain"

    async def _parameters(self) -> tuple[bool, bool]:
        """Return whether temperature and seed are accepted."""
        both: dict[str, object] = {"temperature": 0, "seed": 1}
        reply, refusal = await self._ask("temperature and seed", both)
        if reply is not None:
            return True, True
        refused = "temperature" if "temperature" in refusal else "seed"
        (kept,) = set(both) - {refused}
        reply, _ = await self._ask(kept, {kept: both[kept]})
        accepted = reply is not None
        return accepted and kept == "temperature", accepted and kept == "seed"

    async def _ask(self, what: str, about: Mapping[str, object]) -> tuple[Reply | None, str]:
        """Return the answer to one call, or None and the words of its refusal."""
        # The word JSON has to stand in a request for the mode that is named after it.
        text = SENTENCE if "response_format" not in about else f"{SENTENCE} (The mode is JSON.)"
        messages = [{"role": "user", "content": text}]
        body = {"model": self.model, "messages": messages, self.limit: OUTPUT_LIMIT, **about}
        key = hashlib.sha256(json.dumps(["probe", self.calls, body]).encode()).hexdigest()
        for attempt in range(1, TRIES + 1):
            self.calls += 1
            reply = await self.transport.send(key, body)
            ruling = classify(reply, self.clock.wall())
            if ruling.kind in (STOP, REFUSED, ANSWER) or attempt == TRIES:
                break
            await self.clock.sleep(min(MOST_WAIT_S, ruling.wait_s or 2.0**attempt))
        if isinstance(reply, NoReply) or ruling.kind not in (STOP, REFUSED, ANSWER):
            raise JudgeRunError(f"the endpoint cannot be reached: {ruling.cause}; try again later")
        if reply.status in (401, 402, 403, 404):
            raise JudgeRunError(f"the endpoint refuses: {ruling.cause}")
        accepted = ruling.kind == ANSWER and reply.status < 300
        self.findings.append(f"{what}: {'accepted' if accepted else ruling.cause}")
        if not accepted:
            return None, error_text(reply.body)
        self.replies.append(reply)
        return reply, ""


def _data(reply: Reply) -> dict[str, Any]:
    found = _object(reply.body)
    return found if isinstance(found, dict) else {}


def _usage(reply: Reply) -> dict[str, Any]:
    usage = _data(reply).get("usage")
    return usage if isinstance(usage, dict) else {}


def _object(text: object) -> object:
    """Return what a text of JSON holds, or what is no text as it is."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _text(reply: Reply) -> object:
    try:
        return _data(reply)["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        return None


def _arguments(reply: Reply) -> object:
    try:
        call = _data(reply)["choices"][0]["message"]["tool_calls"][0]
        return call["function"]["arguments"]
    except (KeyError, IndexError, TypeError):
        return None


def _context(models: str, model: str) -> int | None:
    """Return the context that a list of models states for one, as some servers do.

    Examples
    --------
    >>> _context('{"data": [{"id": "m", "max_model_len": 8192}]}', "m")
    8192
    """
    listed = _object(models)
    each = listed.get("data") if isinstance(listed, dict) else None
    for found in each if isinstance(each, list) else ():
        if isinstance(found, dict) and found.get("id") == model:
            meta = found.get("meta") if isinstance(found.get("meta"), dict) else {}
            sizes = (
                *(found.get(name) for name in ("max_model_len", "context_length")),
                *((meta or {}).get(name) for name in ("n_ctx", "n_ctx_train")),
            )
            return next((size for size in sizes if isinstance(size, int) and size > 0), None)
    return None
