"""An OpenAI-compatible endpoint on loopback that errs as told, and counts what it did and billed.

Standard library only, real sockets. What it does with a request is decided by a function of what it
received, so that a run can be repeated; the ledger counts each request key.
"""

import asyncio
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import TracebackType
from typing import Any, Literal, Self

from calibration.judging.budget import Prices, Usage

MODEL = "scripted-1"
PRICES = Prices(input=1.0, output=4.0, cached=0.5)

FAULTS = {
    "load": (
        "429_seconds 429_ms 429_date 429_600 429_reset 429_minus 429_quota 429_too_large 402 500 "
        "502_html 503_loading 529 should_retry"
    ).split(),
    "time": "silence drip short_body reset late".split(),
    "end": (
        "length_half null_content endless_spaces content_filter filter_400 refusal_field "
        "refusal_prose"
    ).split(),
    "form": (
        "fences prose two_objects bad_escape bom parts think tool_string tool_object "
        "reasoning_json unknown_node missing_node third_answer wrong_code_word invented_quote "
        "spaced_quote moved_quote"
    ).split(),
    "protocol": (
        "usage_absent usage_null usage_zero usage_half same_id other_model no_choices error_200 "
        "finish_error"
    ).split(),
    "refusals": (
        "401 403 404_model context_openai context_llama context_vllm context_tgi "
        "unsupported_temperature unsupported_max_tokens unsupported_format "
        "unsupported_format_plain format_ignored detail_wrapper"
    ).split(),
}  # fmt: skip
ALL_FAULTS = tuple(name for names in FAULTS.values() for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request as it came; `attempt` counts those of its key from 1."""

    key: str
    body: dict[str, Any]
    attempt: int
    headers: dict[str, str]

    def share(self, seed: int) -> float:
        """Return a number from 0 to 1 that depends on seed, key and attempt only."""
        text = f"{seed}|{self.key}|{self.attempt}"
        return int(hashlib.sha256(text.encode()).hexdigest()[:12], 16) / 16**12


@dataclass(slots=True)
class Entry:
    """What happened to one request key."""

    received: int = 0
    answered: int = 0
    written: int = 0
    times: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What is sent back, and how."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    billed: Usage | None = None
    how: Literal["whole", "silence", "drip", "short", "reset", "late"] = "whole"
    kind: str = "application/json"


def mixed(seed: int, share: float, names: tuple[str, ...] = ALL_FAULTS) -> "Decide":
    """Return a decision that lets a share of the requests, by seed and key, meet a fault."""

    def decide(received: Received) -> str:
        place = received.share(seed)
        return names[int(place / share * len(names))] if place < share else ""

    return decide


def usage_of(body: dict[str, Any], content: str) -> Usage:
    """Return the tokens of a call: one for 4 bytes, the first message cached from 1,024 on."""
    messages = [len(json.dumps(m, ensure_ascii=False).encode()) for m in body["messages"]]
    head = messages[0] // 4 if len(messages) > 1 else 0
    told = max(1, sum(messages) // 4)
    return Usage(
        input=told,
        cached=head if head >= 1024 else 0,
        output=max(1, min(len(content.encode()) // 4, limit_of(body))),
    )


def limit_of(body: dict[str, Any]) -> int:
    return int(body.get("max_completion_tokens") or body.get("max_tokens") or 10**6)


Decide = Callable[[Received], str]


class ScriptedServer:
    """The endpoint, in a thread of its own from entering to leaving.

    `decide` names the fault of a request, empty for none; `answer` returns the text of a good
    answer. With `rate`, more requests a second are refused until the next is due.
    """

    def __init__(
        self,
        answer: Callable[[dict[str, Any]], str],
        decide: Decide = lambda received: "",
        *,
        latency_s: float = 0.005,
        rate: float | None = None,
        burst: int = 1,
        drip_s: float = 5.0,
        late_s: float = 30.0,
        wait_s: float = 1.0,
    ) -> None:
        self.answer, self.decide = answer, decide
        self.latency_s, self.rate, self.burst = latency_s, rate, burst
        self.drip_s, self.late_s, self.wait_s = drip_s, late_s, wait_s
        self.ledger: dict[str, Entry] = {}
        self.billed = 0
        self.billed_tokens = 0
        self.most_at_once = 0
        self.met: Counter[str] = Counter()
        self._at_once = 0
        self._tokens, self._filled = float(burst), time.monotonic()
        self._due = 0.0
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._connections: set[asyncio.Task[Any]] = set()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=1 << 24)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        await self._over.wait()
        server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = head.split("\r\n")[1:]
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines) if k}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        key = headers.get("x-request-key", "")
        assert headers.get("idempotency-key") == key
        entry = self.ledger.setdefault(key, Entry())
        entry.received += 1
        entry.times.append(time.monotonic())
        received = Received(key=key, body=body, attempt=entry.received, headers=headers)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            response = self._response(received)
            if response.billed is not None:
                entry.answered += 1
                self.billed += PRICES.picos(response.billed)
                self.billed_tokens += response.billed.input + response.billed.output
            whole = await self._write(writer, response)
            entry.written += whole and response.billed is not None
        finally:
            self._at_once -= 1
        return whole

    def _response(self, received: Received) -> Response:
        wait = self._over_the_rate()
        if wait is not None:
            self.met["rate"] += 1
            return Response(
                status=429,
                headers={"retry-after-ms": f"{1000 * wait:.0f}"},
                body=error("Rate limit reached", "rate_limit_exceeded"),
            )
        fault = self.decide(received)
        if fault:
            self.met[fault] += 1
        return respond(fault, received, self)

    def _over_the_rate(self) -> float | None:
        if self.rate is None:
            return None
        now = time.monotonic()
        self._tokens = min(float(self.burst), self._tokens + (now - self._filled) * self.rate)
        self._filled = now
        if self._tokens >= 1:
            self._tokens -= 1
            return None
        return (1 - self._tokens) / self.rate

    async def _write(self, writer: asyncio.StreamWriter, response: Response) -> bool:
        """Write a response; return whether all of it was written."""
        how = response.how
        if how == "silence":
            await self._over.wait()
        await asyncio.sleep(self.late_s if how == "late" else self.latency_s)
        if how == "reset":
            writer.transport.abort()
            return False
        data = response.body.encode()
        fields = {"content-type": response.kind, "content-length": str(len(data))}
        head = "".join(f"{k}: {v}\r\n" for k, v in {**fields, **response.headers}.items())
        writer.write(f"HTTP/1.1 {response.status} X\r\n{head}\r\n".encode())
        if how == "drip":
            for n in range(len(data)):
                writer.write(data[n : n + 1])
                await writer.drain()
                await asyncio.sleep(self.drip_s)
        elif how == "short":
            writer.write(data[: len(data) // 2])
            await writer.drain()
            return False
        else:
            writer.write(data)
        await writer.drain()
        return True


def error(message: str, code: str | int | None = None, **fields: Any) -> str:
    return json.dumps({"error": {"message": message, "code": code, **fields}})


def completion(
    body: dict[str, Any],
    content: Any,
    *,
    finish: str = "stop",
    usage: Any = "true",
    **message: Any,
) -> Response:
    """Return a billed answer; `usage` replaces what is said of its tokens."""
    used = usage_of(body, content if isinstance(content, str) else json.dumps(content))
    said = {
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.input + used.output,
        "prompt_tokens_details": {"cached_tokens": used.cached},
    }
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": content, **message},
    }
    whole: dict[str, Any] = {
        "id": f"chat-{time.monotonic_ns()}",
        "object": "chat.completion",
        "model": MODEL,
        "choices": [choice],
        "usage": said if usage == "true" else usage,
    }
    if usage == "absent":
        del whole["usage"]
    return Response(body=json.dumps(whole), billed=used)


def changed(response: Response, **fields: Any) -> Response:
    whole = {**json.loads(response.body), **fields}
    return Response(body=json.dumps(whole), billed=response.billed)


def respond(fault: str, received: Received, server: ScriptedServer) -> Response:
    """Return what a server with this fault sends; without, a good answer."""
    body = received.body
    text = server.answer(body)
    found = _load(fault, server.wait_s) or _refusal(fault, received)
    if found is not None:
        return found
    good = completion(body, text)
    if fault in ("silence", "drip", "short_body", "reset", "late"):
        how: Any = {"short_body": "short"}.get(fault, fault)
        return Response(body=good.body, billed=good.billed, how=how)
    return _ended(fault, body, text) or _formed(fault, body, text) or _protocol(fault, body, good)


def _load(fault: str, wait_s: float) -> Response | None:
    limited = error("Rate limit reached", "rate_limit_exceeded")
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=wait_s + 1), usegmt=True)
    resets = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": f"{wait_s}s"}
    waits: dict[str, dict[str, str]] = {
        "429_seconds": {"retry-after": f"{wait_s:.0f}"},
        "429_ms": {"retry-after-ms": f"{1000 * wait_s:.0f}"},
        "429_date": {"retry-after": later},
        "429_600": {"retry-after": "600"},
        "429_reset": resets,
        "429_minus": {"retry-after": "-1"},
    }
    if fault in waits:
        return Response(status=429, body=limited, headers=waits[fault])
    loading = error("Loading model", 503, type="unavailable_error")
    large = error("Request too large for m on tokens per min: Limit 3, Requested 9", "tokens")
    others = {
        "429_quota": Response(status=429, body=error("No quota", "insufficient_quota")),
        "429_too_large": Response(status=429, body=large),
        "402": Response(status=402, body=error("Insufficient credits", 402)),
        "500": Response(status=500, body=error("The server had an error")),
        "502_html": Response(status=502, body="<html>Bad gateway</html>", kind="text/html"),
        "503_loading": Response(status=503, body=loading),
        "529": Response(status=529, body=error("Overloaded", type="overloaded_error")),
        "should_retry": Response(
            status=400, body=error("Try again"), headers={"x-should-retry": "true"}
        ),
    }
    return others.get(fault)


def _refusal(fault: str, received: Received) -> Response | None:
    body = received.body
    unsupported = "unsupported_parameter"
    parameters = {
        "unsupported_temperature": "temperature",
        "unsupported_max_tokens": "max_tokens",
        "unsupported_format": "response_format",
    }
    if fault in parameters:
        name = parameters[fault]
        message = f"Unsupported parameter: '{name}' is not supported with this model."
        return Response(status=400, body=error(message, unsupported, param=name))
    told = usage_of(body, "").input
    openai = f"This model's maximum context length is 9 tokens. However, you sent {told} tokens."
    llama = f"the request exceeds the available context size. try increasing it ({told} > 9)"
    vllm = json.dumps({"object": "error", "message": openai, "code": 400})
    tgi = f"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 9. Given: {told}"
    # Some send back what they were sent.
    wrong_key = f"Incorrect API key provided: {received.headers.get('authorization', '')}"
    inner = {"code": "ResponsibleAIPolicyViolation"}
    others = {
        "401": (401, error(wrong_key, "invalid_api_key")),
        "403": (403, error("No access")),
        "404_model": (404, error("The model does not exist", "model_not_found")),
        "context_openai": (400, error(openai, "context_length_exceeded", param="messages")),
        "context_llama": (400, error(llama, 400, type="exceed_context_size_error")),
        "context_vllm": (400, vllm),
        "context_tgi": (422, json.dumps({"error": tgi, "error_type": "validation"})),
        "unsupported_format_plain": (400, json.dumps({"error": "response_format unsupported"})),
        "detail_wrapper": (400, json.dumps({"detail": "Invalid input, no reason given"})),
        "filter_400": (400, error("Filtered", "content_filter", innererror=inner)),
    }
    if fault not in others:
        return None
    status, text = others[fault]
    return Response(status=status, body=text)


def _ended(fault: str, body: dict[str, Any], text: str) -> Response | None:
    if fault == "length_half":
        return completion(body, text[: len(text) // 2], finish="length")
    if fault == "null_content":
        return completion(body, None, finish="length", reasoning_content="Let me think. " * 40)
    if fault == "endless_spaces":
        return completion(body, " " * min(4000, 4 * limit_of(body)), finish="length")
    if fault == "content_filter":
        return completion(body, "", finish="content_filter")
    if fault == "refusal_field":
        return completion(body, None, refusal="I cannot help with that.")
    if fault == "refusal_prose":
        return completion(body, "I'm sorry, but I cannot help with that.")
    if fault == "finish_error":
        return completion(body, "", finish="error")
    return None


def _formed(fault: str, body: dict[str, Any], text: str) -> Response | None:
    call = {"id": "c", "type": "function", "function": {"name": "answer", "arguments": text}}
    whole = {**call, "function": {"name": "answer", "arguments": json.loads(text)}}
    injected = json.dumps({**json.loads(text), "head": "injected"})
    texts = {
        "fences": f"```json\n{text}\n```",
        "prose": f"Here is my answer:\n{text}\nI hope this helps.",
        "two_objects": f"{injected}\n{text}",
        "bad_escape": text.replace('"', '"\\x', 1),
        "think": f"<think>Is it {{}}? Or {injected}</think>{text}",
        "format_ignored": "The agent did well, so yes to all of it.",
    }
    if fault in texts:
        return completion(body, texts[fault])
    if fault == "bom":
        good = completion(body, text)
        return Response(body="\ufeff" + good.body, billed=good.billed)
    messages: dict[str, tuple[Any, dict[str, Any]]] = {
        "parts": ([{"type": "text", "text": text}], {}),
        "tool_string": (None, {"tool_calls": [call]}),
        "tool_object": (None, {"tool_calls": [whole]}),
        "reasoning_json": (None, {"reasoning": text}),
    }
    if fault in messages:
        content, fields = messages[fault]
        return completion(body, content, **fields)
    if fault in FAULTS["form"]:
        return completion(body, json.dumps(spoilt(json.loads(text), fault)))
    return None


def spoilt(answer: dict[str, Any], fault: str) -> dict[str, Any]:
    """Return an answer with one fault of its content."""
    nodes = [v for v in answer.values() if isinstance(v, dict) and "answer" in v]
    quotes = [e for node in nodes for e in node.get("evidence", [])]
    if fault == "unknown_node":
        return {**answer, "another": {"reason": "", "evidence": [], "answer": "yes"}}
    if fault == "missing_node":
        first = next(k for k, v in answer.items() if k not in ("head", "tail"))
        return {k: v for k, v in answer.items() if k != first}
    if fault == "third_answer" and nodes:
        nodes[0]["answer"] = "maybe"
    if fault == "wrong_code_word":
        return {**answer, "head": "wrong"}
    for quote in quotes[:1]:
        quote.update(
            {
                "invented_quote": {"quote": "words that nobody wrote anywhere"},
                "spaced_quote": {"quote": quote["quote"].replace(" ", "\n  ")},
                "moved_quote": {"step": "S1" if quote["step"] != "S1" else "S2"},
            }.get(fault, {})
        )
    return answer


def _protocol(fault: str, body: dict[str, Any], good: Response) -> Response:
    text = json.loads(good.body)["choices"][0]["message"]["content"]
    if fault.startswith("usage_"):
        half = usage_of(body, text)
        said = {
            "absent": "absent",
            "null": None,
            "zero": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
            "half": {"prompt_tokens": half.input // 2, "completion_tokens": half.output},
        }[fault.removeprefix("usage_")]
        cut = Usage(input=max(1, half.input // 2), output=half.output)
        found = completion(body, text, usage=said)
        billed = cut if fault == "usage_half" else found.billed
        return Response(body=found.body, billed=billed)
    if fault == "same_id":
        return changed(good, id="always-the-same")
    if fault == "other_model":
        return changed(good, model="another-model")
    if fault == "no_choices":
        return changed(good, choices=[])
    if fault == "error_200":
        return Response(body=error("Provider returned error", 502), billed=None)
    assert not fault, fault
    return good
