"""An endpoint that misbehaves as told: loopback, real sockets, nothing but the standard library.

A rule says for each request, by trace, sample and attempt, which of `KINDS` it meets. The ledger
counts what was received, answered and written to its end for every request key, and bills it.
"""

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import Any, Self

MARK = re.compile(r"\[\[(\S+) (\d+)\]\]")
DOLLARS_IN, DOLLARS_OUT = 2.0, 8.0  # for a million tokens
TOKENS_PER_BYTE = 0.27
CHARACTERS_PER_TOKEN = 4
PARAMETERS = ("temperature", "max_tokens", "response_format", "tools", "seed")


@dataclass(frozen=True)
class Asked:
    """A request as it arrived; `attempt` counts those of its key, from 1."""

    key: str
    attempt: int
    trace: str
    sample: int
    body: dict[str, Any]
    size: int

    @property
    def limit(self) -> int:
        found = self.body.get("max_completion_tokens", self.body.get("max_tokens", 256))
        return int(found)


@dataclass
class Entry:
    """What happened to one request key."""

    received: int = 0
    answered: int = 0
    written: int = 0
    bill: float = 0.0


@dataclass
class Ledger:
    """What happened to all of them."""

    entries: dict[str, Entry] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    headers: list[dict[str, str]] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)

    @property
    def bill(self) -> float:
        return sum(entry.bill for entry in self.entries.values())

    def total(self, name: str) -> int:
        return sum(getattr(entry, name) for entry in self.entries.values())


@dataclass(frozen=True)
class Response:
    """What is written; `tokens` (input, output) is what is billed, None is nothing.

    `style` is `whole`, `drip` (one byte each 5 seconds), `short` (half of the body), `reset`
    (closed before a byte) or `silence`.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    tokens: tuple[int, int] | None = None
    delay_s: float = 0.0
    style: str = "whole"


Content = Callable[[Asked], dict[str, Any]]
Kind = Callable[[Asked, dict[str, Any]], Response]
Rule = Callable[[Asked], str]


def completion(
    asked: Asked,
    text: str | None,
    *,
    message: Mapping[str, Any] | None = None,
    finish: str = "stop",
    output: int | None = None,
    **changes: Any,
) -> Response:
    """Return an answer with this text, and the changes to its outermost fields; None drops one."""
    tokens_in = round(asked.size * TOKENS_PER_BYTE)
    written = len(text or json.dumps(message)) // CHARACTERS_PER_TOKEN + 1
    tokens_out = min(asked.limit, written) if output is None else output
    data: dict[str, Any] = {
        "id": f"chatcmpl-{asked.key[:8]}-{asked.attempt}",
        "object": "chat.completion",
        "model": asked.body["model"],
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": text, **(message or {})},
            }
        ],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        },
        **changes,
    }
    body = json.dumps({name: value for name, value in data.items() if value is not DROPPED})
    return Response(body=body, tokens=(tokens_in, tokens_out))


DROPPED = object()


def good(asked: Asked, content: dict[str, Any]) -> Response:
    """Return the answer as it was asked for."""
    if "tools" in asked.body:
        return _tool(asked, json.dumps(content))
    return completion(asked, json.dumps(content))


def _tool(asked: Asked, arguments: object) -> Response:
    name = "verdict"
    with suppress(KeyError, IndexError, TypeError):
        name = asked.body["tools"][0]["function"]["name"]
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
    return completion(asked, None, message={"tool_calls": [call]}, finish="tool_calls")


def error(status: int, code: str, message: str, **headers: str) -> Kind:
    """Return a kind that refuses with an error object."""
    body = json.dumps({"error": {"message": message, "type": "error", "code": code}})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda asked, content: Response(status=status, body=body, headers=named)


def plain(status: int, body: str, **headers: str) -> Kind:
    """Return a kind that answers with this text."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda asked, content: Response(status=status, body=body, headers=named)


def styled(style: str, delay_s: float = 0.0) -> Kind:
    """Return a kind whose good and billed answer comes in a bad way."""
    return lambda asked, content: replace(good(asked, content), style=style, delay_s=delay_s)


def _dated(asked: Asked, content: dict[str, Any]) -> Response:
    headers = {"retry-after": formatdate(time.time() + 2, usegmt=True)}
    return Response(status=429, body="{}", headers=headers)


def text_of(change: Callable[[str], str]) -> Kind:
    """Return a kind whose answer is a changed text of the good one."""
    return lambda asked, content: completion(asked, change(json.dumps(content)))


def changed(change: Callable[[dict[str, Any]], object]) -> Kind:
    """Return a kind whose answer has a changed content."""

    def kind(asked: Asked, content: dict[str, Any]) -> Response:
        copy = json.loads(json.dumps(content))
        change(copy)
        return good(asked, copy)

    return kind


def with_fields(**changes: Any) -> Kind:
    """Return a kind whose answer has changed outermost fields."""
    return lambda asked, content: completion(asked, json.dumps(content), **changes)


def with_message(finish: str = "stop", **message: Any) -> Kind:
    """Return a kind whose answer has these fields of its message and no text."""
    return lambda asked, content: completion(asked, None, message=message, finish=finish)


def unless(name: str, refusal: Kind) -> Kind:
    """Return a kind that refuses a request only if it has a parameter."""
    return lambda asked, content: (refusal if name in asked.body else good)(asked, content)


def _questions(content: dict[str, Any]) -> list[str]:
    return [n for n, part in content.items() if isinstance(part, dict) and "answer" in part]


def _question(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = content[_questions(content)[0]]
    return found


def _requote(change: Callable[[dict[str, Any]], object]) -> Kind:
    return changed(lambda content: [change(each) for each in _question(content)["evidence"]])


def _length(asked: Asked, content: dict[str, Any]) -> Response:
    text = json.dumps(content)
    return completion(asked, text[: len(text) // 2], finish="length", output=asked.limit)


def _endless(asked: Asked, content: dict[str, Any]) -> Response:
    return completion(asked, '{"head":' + " " * 4000, finish="length", output=asked.limit)


def _tool_object(asked: Asked, content: dict[str, Any]) -> Response:
    return _tool(asked, content)


def _reasoned(asked: Asked, content: dict[str, Any]) -> Response:
    return completion(asked, None, message={"reasoning": json.dumps(content)})


def _ignored(asked: Asked, content: dict[str, Any]) -> Response:
    if "response_format" in asked.body or "tools" in asked.body:
        return completion(asked, "It went well, I would say.")
    return good(asked, content)


def _cut(asked: Asked, content: dict[str, Any]) -> Response:
    """Return an answer to half of the prompt, as the server counts it and bills it."""
    whole = good(asked, content)
    data = json.loads(whole.body)
    read, written = round(asked.size * TOKENS_PER_BYTE / 2), data["usage"]["completion_tokens"]
    data["usage"] = {"prompt_tokens": read, "completion_tokens": written}
    return replace(whole, body=json.dumps(data), tokens=(read, written))


CONTEXT = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"
FILTER = {"error": {"code": "content_filter", "message": "The response was filtered",
                    "innererror": {"code": "ResponsibleAIPolicyViolation"}}}  # fmt: skip
LONG_LLAMA = {"error": {"code": 400, "type": "exceed_context_size_error", "n_ctx": 8192,
                        "message": "the request exceeds the available context size"}}  # fmt: skip
HTML = "<html><head><title>502 Bad Gateway</title></head></html>"

KINDS: dict[str, Kind] = {
    "good": good,
    # load
    "429": error(429, "rate_limit_exceeded", "Rate limit reached", retry_after="2"),
    "429 bare": error(429, "rate_limit_exceeded", "Rate limit reached"),
    "429 ms": error(429, "rate_limit_exceeded", "Rate limit reached", retry_after_ms="700"),
    "429 date": _dated,
    "429 600 s": error(429, "rate_limit_exceeded", "Rate limit reached", retry_after="600"),
    "429 reset": plain(429, "{}", x_ratelimit_reset_requests="1.5s",
                       x_ratelimit_remaining_requests="0"),
    "429 negative": error(429, "rate_limit_exceeded", "Rate limit reached", retry_after="-1"),
    "429 quota": error(429, "insufficient_quota", "You exceeded your current quota"),
    "429 too large": error(429, "rate_limit_exceeded", "Request too large for model: limit 9000"),
    "402": error(402, "payment_required", "Payment required"),
    "500": error(500, "server_error", "The server had an error"),
    "502 html": plain(502, HTML, content_type="text/html"),
    "503 loading": error(503, "unavailable_error", "Loading model"),
    "529": error(529, "overloaded_error", "Overloaded"),
    "should retry": error(400, "odd", "Odd", x_should_retry="true"),
    "should not retry": error(500, "odd", "Odd", x_should_retry="false"),
    "200 html": plain(200, HTML, content_type="text/html"),
    # time
    "silence": styled("silence"),
    "drip": styled("drip"),
    "short": styled("short"),
    "reset": styled("reset"),
    "slow": styled("whole", 30.0),
    # end
    "length": _length,
    "reasoning only": with_message(reasoning="I think it went well."),
    "endless spaces": _endless,
    "content_filter": with_message("content_filter"),
    "filter as 400": plain(400, json.dumps(FILTER)),
    "refusal": with_message(refusal="I cannot help with that."),
    "refusal in prose": text_of(lambda text: "I'm sorry, but I can't assist with that."),
    # form
    "fences": text_of(lambda text: f"```json\n{text}\n```"),
    "prose": text_of(lambda text: f"Here is my verdict:\n{text}\nI hope it helps."),
    "two objects": text_of(lambda text: '{"output": {"answer": "yes"}}\n' + text),
    "bad escape": text_of(lambda text: text.replace('"reason": "', '"reason": "\\x', 1)),
    "bom": text_of(lambda text: "\ufeff" + text),
    "parts": lambda asked, content: completion(
        asked, None, message={"content": [{"type": "text", "text": json.dumps(content)}]}
    ),
    "think": text_of(lambda text: '<think>{"output": 1}</think>' + text),
    "tool": lambda asked, content: _tool(asked, json.dumps(content)),
    "tool object": _tool_object,
    "in reasoning": _reasoned,
    "unknown node": changed(lambda content: content.update(mood=_question(content))),
    "missing node": changed(lambda content: content.pop(_questions(content)[0])),
    "third answer": changed(lambda content: _question(content).update(answer="maybe")),
    "wrong code word": changed(lambda content: content.update(head="0000")),
    "invented quote": _requote(lambda each: each.update(quote="never said by anybody here")),
    "spaced quote": _requote(lambda each: each.update(quote=each["quote"].replace(" ", "  "))),
    "moved quote": _requote(lambda each: each.update(step="S1")),
    # protocol
    "usage absent": with_fields(usage=DROPPED),
    "usage null": with_fields(usage=None),
    "usage zero": with_fields(usage={"prompt_tokens": 0, "completion_tokens": 0}),
    "usage half": with_fields(usage={"prompt_tokens": 7}),
    "usage cut": _cut,
    "same id": with_fields(id="chatcmpl-1"),
    "other model": with_fields(model="another-model"),
    "no choices": with_fields(choices=[]),
    "error in 200": plain(200, json.dumps({"error": {"code": 502, "message": "Provider error"}})),
    "finish error": with_message("error"),
    # refusals
    "401": error(401, "invalid_api_key", "Incorrect API key provided"),
    "403": error(403, "forbidden", "Not allowed"),
    "404 model": error(404, "model_not_found", "The model does not exist"),
    "context openai": error(400, "context_length_exceeded", CONTEXT),
    "context vllm": plain(400, json.dumps({"object": "error", "message": CONTEXT, "code": 400})),
    "context llama": plain(400, json.dumps(LONG_LLAMA)),
    "context other": error(413, "request_too_large", "prompt is too long: 9000 tokens > 8192"),
    "no temperature": error(400, "unsupported_value", "'temperature' does not support 0"),
    "no max_tokens": unless("max_tokens", error(
        400, "unsupported_parameter", "Use 'max_completion_tokens' instead of 'max_tokens'")),
    "no response_format": unless("response_format", error(
        400, "invalid_request_error", "response_format is not supported")),
    "no response_format, text": unless("response_format", plain(
        400, json.dumps({"error": "response_format is not supported by this model"}))),
    "response_format ignored": _ignored,
    "detail": plain(400, json.dumps({"detail": "Unknown argument: response_format"})),
    "odd 400": error(400, "invalid_value", "Something in this prompt is not right"),
}  # fmt: skip


class ScriptedServer:
    """The endpoint, in a thread; a context manager.

    Parameters
    ----------
    content : callable
        The good answer to a request, as data.
    rule : callable, optional
        The kind that a request meets.
    scale : float, optional
        How much faster the time of delays passes.
    latency : callable, optional
        Real seconds before an answer.
    api_key : str, optional
        The key that is wanted; another one is repeated in a 401.
    per_second : float, optional
        Requests permitted a (real) second; others meet a 429 that says how long to wait.
    models : mapping, optional
        What `/models` lists.
    """

    def __init__(
        self,
        content: Content,
        rule: Rule = lambda asked: "good",
        *,
        scale: float = 1.0,
        latency: Callable[[Asked], float] = lambda asked: 0.0,
        api_key: str = "",
        per_second: float | None = None,
        models: Mapping[str, Any] | None = None,
    ) -> None:
        self.content, self.rule, self.scale, self.latency = content, rule, scale, latency
        self.api_key, self.per_second, self.models = api_key, per_second, models
        self.ledger = Ledger()
        self._level, self._at = per_second or 0.0, time.monotonic()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._run())
        self._loop.close()

    async def _run(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        self.ledger.headers.append(headers)
        if head[0].startswith("GET"):
            found = Response(body=json.dumps(self.models)) if self.models else Response(status=404)
            return await self._write(writer, found)
        asked = self._asked(headers, json.loads(raw), len(raw))
        entry = self.ledger.entries[asked.key]
        response = self._response(asked, headers)
        if response.tokens is not None:
            entry.answered += 1
            tokens_in, tokens_out = response.tokens
            entry.bill += (tokens_in * DOLLARS_IN + tokens_out * DOLLARS_OUT) / 1e6
        latency = self.latency(asked) if response.status < 400 else 0.0
        await asyncio.sleep(latency + response.delay_s / self.scale)
        open_still = await self._write(writer, response)
        if response.style in ("whole", "drip"):
            entry.written += 1
        return open_still

    def _asked(self, headers: dict[str, str], body: dict[str, Any], size: int) -> Asked:
        key = headers.get("x-request-key", "")
        assert headers.get("idempotency-key", "") == key
        entry = self.ledger.entries.setdefault(key, Entry())
        entry.received += 1
        self.ledger.arrivals.append(time.monotonic())
        mark = MARK.search(json.dumps(body["messages"]))
        trace, sample = (mark[1], int(mark[2])) if mark else ("", 0)
        return Asked(key, entry.received, trace, sample, body, size)

    def _response(self, asked: Asked, headers: dict[str, str]) -> Response:
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if self.api_key and given != self.api_key:
            return error(401, "invalid_api_key", f"Incorrect API key: {given}", odd=given)(
                asked, {}
            )
        wait = self._over()
        if wait:
            kind = error(429, "rate_limit_exceeded", "Slow down",
                         retry_after_ms=str(wait * self.scale * 1000))  # fmt: skip
            self._met("limited")
            return kind(asked, {})
        name = self.rule(asked)
        self._met(name)
        return KINDS[name](asked, self.content(asked))

    def _met(self, name: str) -> None:
        self.ledger.kinds[name] = self.ledger.kinds.get(name, 0) + 1

    def _over(self) -> float:
        """Return the real seconds until another request is permitted."""
        if self.per_second is None:
            return 0.0
        now = time.monotonic()
        most = max(1.0, self.per_second / 4)
        self._level = min(most, self._level + (now - self._at) * self.per_second)
        self._at = now
        if self._level >= 1:
            self._level -= 1
            return 0.0
        return (1 - self._level) / self.per_second

    async def _write(self, writer: asyncio.StreamWriter, response: Response) -> bool:
        body = response.body.encode()
        lines = [f"HTTP/1.1 {response.status} Some", f"content-length: {len(body)}"]
        named = {"content-type": "application/json", "x-request-id": "r", **response.headers}
        lines += [f"{name}: {value}" for name, value in named.items()]
        head = "\r\n".join([*lines, "", ""]).encode()
        if response.style == "silence":
            await asyncio.sleep(3600)
        elif response.style == "reset":
            writer.transport.abort()
            return False
        elif response.style == "short":
            writer.write(head + body[: len(body) // 2])
            await writer.drain()
            return False
        elif response.style == "drip":
            writer.write(head)
            for k in range(len(body)):
                writer.write(body[k : k + 1])
                await writer.drain()
                await asyncio.sleep(5.0 / self.scale)
        else:
            writer.write(head + body)
            await writer.drain()
        return True
