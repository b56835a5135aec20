"""The endpoint: sends one request, and says of what comes back whether it is an answer.

A thin layer over the package `openai`, whose own retries are off: they would be in no journal. The
answer is taken as text and never parsed here. The key of the endpoint appears in nothing that
leaves this module.
"""

import asyncio
import json
import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from calibration.errors import JudgeRunError
from calibration.judging.answers import FILTERED, TOO_LONG
from calibration.judging.requests import Reply

DEADLINE_S = 120.0  # of a request as a whole; time-outs of a client count per read
CONNECT_S = 10.0
INSTALL = "pip install 'asr-calibration[judge]'"
HIDDEN = "[key]"
SHORTEST_HIDDEN = 4  # characters; a shorter key is none, and would hide ordinary text
MOST_CAUSE = 200  # characters of the words of an endpoint in a cause
KEPT_HEADERS = re.compile(
    r"(x-)?request-id|cf-ray|retry-after(-ms)?|x-should-retry|date|content-type|openai-processing-ms|"
    r"(x|anthropic)-ratelimit-[a-z0-9-]+|ratelimit-[a-z0-9-]+"
)

ANSWER = "answer"
THROTTLED = "throttled"
TRANSIENT = "transient"
IN_DOUBT = "in_doubt"
REFUSED = "refused"
STOP = "stop"

_NO_MONEY = re.compile(
    r"insufficient_quota|insufficient quota|insufficient.{0,10}(balance|credit|funds)|"
    r"billing_(hard_limit|not_active)|billing hard limit|payment required"
)
_NO_MODEL = re.compile(r"model_not_found|model.{0,80}(does not exist|not found|not exist)")
_PARAMETER = re.compile(
    r"unsupported_(parameter|value)|unknown_parameter|unsupported (parameter|value)|"
    r"unrecognized|unknown (parameter|field|argument|name)|not supported|unsupported|"
    r"extra inputs are not permitted|extra_forbidden|response_format|temperature|"
    r"max_completion_tokens|max_tokens|tool_choice|reasoning_effort|\bseed\b"
)
_RATE = re.compile(r"rate.?limit|too many requests|overloaded|throttl")
_HTML = re.compile(r"\s*<(!doctype|html|head|body|\?xml)", re.IGNORECASE)
_PART = re.compile(r"([0-9.]+)(ms|h|m|s)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReply:
    """Nothing came back, for this cause; `sent` unless the request certainly never left."""

    cause: str
    sent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What is to be done about what came back.

    `kind` is `answer` (the judge reads it), `throttled`, `transient`, `in_doubt`, `refused` (this
    request will not be answered) or `stop` (none will). `wait_s` is what the endpoint asked for,
    `possible` whether it may be on the bill, `again` False if the endpoint advises against it.
    """

    kind: str
    cause: str = ""
    wait_s: float | None = None
    possible: bool = False
    again: bool = True


class Transport:
    """Connections to one endpoint; close it with `aclose`.

    Parameters
    ----------
    base_url : str
        The address up to `/v1`.
    api_key : str
        The key; empty for an endpoint that wants none.
    deadline_s : float, optional
        The time for one request, from the first connection to the last byte.

    Raises
    ------
    JudgeRunError
        If the extra is not installed, or the key or the address cannot be sent.
    """

    def __init__(self, base_url: str, api_key: str, *, deadline_s: float = DEADLINE_S) -> None:
        try:
            import httpx2
            import openai
        except ImportError as error:
            raise JudgeRunError(f"a judge needs the extra: {INSTALL}") from error
        self._key = api_key.strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise JudgeRunError("the key of the endpoint holds characters that no key has")
        if not re.match(r"https?://[^/\s]+", base_url):
            raise JudgeRunError("the address of the endpoint must begin with https:// or http://")
        # In detail it logs the headers of answers, in which an endpoint may repeat the key.
        logging.getLogger("httpcore2").setLevel(logging.INFO)
        self._openai = openai
        self._deadline_s = deadline_s
        self._unsent = (
            *(httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout),
            *(httpx2.ProxyError, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError),
        )
        timeout = openai.Timeout(deadline_s, connect=min(CONNECT_S, deadline_s))
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=self._key or "none",
            max_retries=0,
            timeout=timeout,
            http_client=openai.DefaultAsyncHttpx2Client(timeout=timeout, follow_redirects=False),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def send(self, key: str, body: Mapping[str, object]) -> Reply | NoReply:
        """Send the arguments of `chat.completions.create` and return what came back, as text."""
        started = time.monotonic()
        names = ("model", "messages")
        rest = {name: value for name, value in body.items() if name not in names}
        create = self._client.chat.completions.with_raw_response.create
        openai = self._openai
        try:
            async with asyncio.timeout(self._deadline_s):
                raw = await create(
                    **{name: body[name] for name in names},
                    extra_body=rest,
                    extra_headers={"Idempotency-Key": key, "X-Request-Key": key},
                )
            response = raw.http_response
        except TimeoutError:
            return NoReply(cause="deadline", sent=True)
        except openai.APIConnectionError as error:  # also its time-outs
            cause = error.__cause__
            return NoReply(
                cause=f"{type(cause).__name__}: {self._hide(str(cause))}"[:MOST_CAUSE],
                sent=not isinstance(cause, self._unsent),
            )
        except openai.APIStatusError as error:
            response = error.response
        return Reply(
            key=key,
            status=response.status_code,
            headers={
                name: self._hide(value)
                for name, value in response.headers.items()
                if KEPT_HEADERS.fullmatch(name)
            },
            body=self._hide(response.content.decode("utf-8", errors="replace")),
            latency_s=round(time.monotonic() - started, 3),
        )

    async def models(self) -> str:
        """Return the text in which the endpoint lists its models, empty if it lists none."""
        try:
            async with asyncio.timeout(self._deadline_s):
                raw = await self._client.models.with_raw_response.list()
        except (TimeoutError, self._openai.OpenAIError):
            return ""
        return self._hide(raw.http_response.content.decode("utf-8", errors="replace"))

    def _hide(self, text: str) -> str:
        return text.replace(self._key, HIDDEN) if len(self._key) >= SHORTEST_HIDDEN else text


def classify(reply: Reply | NoReply, now: float | None = None) -> Ruling:
    """Return what is to be done about what came back; `now` is in seconds since 1970.

    Examples
    --------
    >>> def ruling(status, body, **headers):
    ...     reply = Reply(key="k", status=status, headers=headers, body=body, latency_s=1.0)
    ...     return classify(reply).kind
    >>> ruling(200, '{"choices": []}'), ruling(429, "{}"), ruling(503, "Loading model")
    ('answer', 'throttled', 'transient')
    >>> ruling(400, '{"error": {"code": "context_length_exceeded"}}'), ruling(401, "{}")
    ('answer', 'stop')
    >>> classify(NoReply(cause="deadline", sent=True)).kind
    'in_doubt'
    """
    if isinstance(reply, NoReply):
        if reply.sent:
            return Ruling(kind=IN_DOUBT, cause=reply.cause, possible=True)
        return Ruling(kind=TRANSIENT, cause=reply.cause)
    if 200 <= reply.status < 300:
        return _of_success(reply, now)
    return _of_error(reply.status, error_text(reply.body), reply.headers, now)


def _of_success(reply: Reply, now: float | None) -> Ruling:
    """Return the ruling on a 200, which may hold an error, or the page of a proxy."""
    if _HTML.match(reply.body) or not reply.body.strip():
        return Ruling(kind=TRANSIENT, cause="200 without an answer", possible=True)
    try:
        data = json.loads(reply.body)
    except (ValueError, RecursionError):
        return Ruling(kind=ANSWER)
    if not isinstance(data, dict) or not data.get("error") or data.get("choices"):
        return Ruling(kind=ANSWER)
    error = data["error"]
    code = error.get("code") if isinstance(error, dict) else None
    status = int(str(code)) if re.fullmatch("[45][0-9][0-9]", str(code)) else 500
    text = error_text(reply.body)
    if status == 500 and _RATE.search(text):
        status = 429
    found = _of_error(status, text, reply.headers, now)
    return Ruling(
        kind=found.kind,
        cause=f"200 with an error: {found.cause}",
        wait_s=found.wait_s,
        possible=True,
        again=found.again,
    )


def _of_error(status: int, text: str, headers: Mapping[str, str], now: float | None) -> Ruling:
    """Return the ruling on an error status with the words that came with it."""
    cause = f"{status} {text}".strip()[:MOST_CAUSE]
    wait_s = asked_wait(headers, now)
    again = headers.get("x-should-retry") != "false"
    if status in (400, 413, 422, 429) and TOO_LONG.search(text):
        return Ruling(kind=ANSWER, cause=cause)
    if status in (400, 403, 422) and FILTERED.search(text):
        return Ruling(kind=ANSWER, cause=cause)
    if _NO_MONEY.search(text) and status in (400, 402, 403, 429):
        return Ruling(kind=STOP, cause=cause)
    if status in (429, 529):
        kind = THROTTLED if again else TRANSIENT
        return Ruling(kind=kind, cause=cause, wait_s=wait_s, again=again)
    if status in (408, 409) or status >= 500 or headers.get("x-should-retry") == "true":
        # A gateway that gave up says nothing about the server behind it.
        possible = status in (408, 502, 504) or status > 511
        return Ruling(kind=TRANSIENT, cause=cause, wait_s=wait_s, possible=possible, again=again)
    if status == 413:
        return Ruling(kind=ANSWER, cause=cause)
    if status in (400, 422) and not (_PARAMETER.search(text) or _NO_MODEL.search(text)):
        return Ruling(kind=REFUSED, cause=cause)
    return Ruling(kind=STOP, cause=cause)


def error_text(body: str) -> str:
    """Return the words of an error, in lower case, from the forms that endpoints give it.

    Examples
    --------
    >>> error_text('{"error": {"message": "No such model", "code": "model_not_found"}}')
    'model_not_found no such model'
    >>> error_text('{"detail": "Not here"}'), error_text('{"error": "Too long"}')
    ('not here', 'too long')
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return "" if _HTML.match(body) else " ".join(body[:1000].split()).lower()
    words: list[str] = []
    _collect(data, words, depth=0)
    return " ".join(" ".join(words).split()).lower()


def _collect(data: object, words: list[str], depth: int) -> None:
    """Collect the texts of an error, codes first."""
    if isinstance(data, str):
        words.append(data[:1000])
    elif isinstance(data, list):
        for each in data[:5]:
            _collect(each, words, depth + 1)
    elif isinstance(data, dict) and depth < 6:
        names = ("code", "type", "param", "error", "message", "detail", "msg", "loc", "innererror")
        for name in names:
            if isinstance(data.get(name), str | list | dict):
                _collect(data[name], words, depth + 1)
        if isinstance(data.get("metadata"), dict):
            _collect(data["metadata"].get("raw"), words, depth + 1)


def asked_wait(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return how many seconds an endpoint asks to wait, None if it does not say or says nonsense.

    Examples
    --------
    >>> asked_wait({"retry-after-ms": "250", "retry-after": "1"}), asked_wait({"retry-after": "-1"})
    (0.25, None)
    >>> asked_wait({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, now=40.0)
    60.0
    >>> asked_wait({"x-ratelimit-reset-tokens": "1m0.5s", "x-ratelimit-remaining-tokens": "0"})
    60.5
    """
    now = time.time() if now is None else now
    milliseconds = _seconds(headers.get("retry-after-ms"), now)
    if milliseconds is not None:
        return milliseconds / 1000
    wait = _seconds(headers.get("retry-after"), now)
    if wait is not None:
        return wait
    waits = []
    for name, value in headers.items():
        if "ratelimit" in name and "reset" in name:
            wait = _seconds(value, now)
            if wait is not None and headers.get(name.replace("reset", "remaining"), "0") == "0":
                waits.append(wait)
    return max(waits) if waits else None


def _seconds(text: str | None, now: float) -> float | None:
    """Return the wait that a header states as a number, duration, date or time."""
    if text is None:
        return None
    text = text.strip()
    try:
        parts = _PART.findall(text)
        if parts and "".join(number + unit for number, unit in parts) == text:
            return sum(float(number) * _UNITS[unit] for number, unit in parts)
        wait = float(text)
        if wait > 1e11:  # milliseconds since 1970
            wait /= 1000
        if wait > 1e9:  # seconds since 1970
            wait -= now
    except ValueError:
        moment = _moment(text)
        wait = -1.0 if moment is None else moment.timestamp() - now
    return wait if 0 <= wait < float("inf") else None


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, IndexError):
            return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
