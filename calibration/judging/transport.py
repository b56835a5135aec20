"""The line to an OpenAI-compatible endpoint: one request, one answer as it came, and its kind.

The client's own retries are off and nothing is parsed: every attempt is the runner's, and an answer
that was paid for is kept whatever it holds. The key of the endpoint is in no answer and no error.
"""

import asyncio
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, Protocol

from calibration.errors import CalibrationError, InputError

Kind = Literal["answer", "throttled", "transient", "in_doubt", "refused", "stop"]

_KEPT_HEADERS = re.compile(
    r"x-request-id|request-id|x-should-retry|openai-processing-ms|x?-?ratelimit-.*|retry-after.*"
    r"|anthropic-ratelimit-.*"
)
_QUOTA = re.compile(r"insufficient_quota|billing|credit balance|exceeded your current quota", re.I)
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|context window"
    r"|context size|too many tokens|request too large|prompt is too long|max_new_tokens"
    r"|input (is )?too long|longer than the model",
    re.I,
)
_FILTER = re.compile(r"content_filter|content management policy|ResponsibleAI|moderation", re.I)
_PARAMETER = re.compile(
    r"unsupported|not supported|unrecognized|unknown (parameter|field|argument)|not permitted"
    r"|extra inputs|does not support|invalid_parameter|model_not_found|invalid model",
    re.I,
)
_LONGEST_WAIT_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What came of one attempt; `wait_s` is how long the server asks to wait, None if unsaid."""

    kind: Kind
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    latency_s: float = 0.0
    problem: str = ""
    wait_s: float | None = None


class Transport(Protocol):
    """A line to an endpoint."""

    async def send(self, body: Mapping[str, Any], key: str) -> Exchange:
        """Send one request under its key and return what came of it; raises nothing of its own."""

    async def close(self) -> None:
        """Close the connections."""


def classify(status: int, body: str, headers: Mapping[str, str] | None = None) -> Kind:
    """Return what an answer of a server means for the run.

    ``answer``: final, also a prompt that is too long or filtered. ``refused``: this request, and
    maybe no other. ``stop``: no request of this run can succeed.

    Examples
    --------
    >>> classify(429, '{"error": {"code": "rate_limit_exceeded"}}')
    'throttled'
    >>> classify(429, '{"error": {"code": "insufficient_quota"}}')
    'stop'
    >>> classify(400, '{"error": {"message": "maximum context length is 8192 tokens"}}')
    'answer'
    """
    if 200 <= status < 300:
        return _of_success(body)
    if _TOO_LONG.search(body) and status in (400, 413, 422, 429, 500):
        return "answer"
    if status == 429:
        return "stop" if _QUOTA.search(body) else "throttled"
    if status == 529:
        return "throttled"
    if status in (401, 402, 403, 404):
        return "stop"
    if status in (408, 409) or status >= 500 or (headers or {}).get("x-should-retry") == "true":
        return "transient"
    if _FILTER.search(body):
        return "answer"
    return "stop" if _PARAMETER.search(body) or _names_parameter(body) else "refused"


def _of_success(body: str) -> Kind:
    """Return the kind of a 2xx: some servers put an error into it, and proxies a page."""
    found = _object(body)
    if found is None:
        return "transient"
    error = found.get("error")
    if not error or found.get("choices"):
        return "answer"
    code = error.get("code") if isinstance(error, dict) else None
    status = int(str(code)) if re.fullmatch("[45][0-9][0-9]", str(code)) else 502
    return classify(status, json.dumps(error))


def _object(body: str) -> dict[str, Any] | None:
    try:
        found = json.loads(body.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _names_parameter(body: str) -> bool:
    """Return whether an error names a parameter other than the messages."""
    error = (_object(body) or {}).get("error")
    named = error.get("param") if isinstance(error, dict) else None
    return isinstance(named, str) and bool(named) and not named.startswith("messages")


def wait_asked(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that a server asks to wait, at most an hour; None if it does not say.

    Examples
    --------
    >>> wait_asked({"retry-after-ms": "1500"}), wait_asked({"retry-after": "-1"})
    (1.5, None)
    >>> wait_asked({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0.5s"})
    360.5
    """
    after = headers.get("retry-after", "")
    found = _number(headers.get("retry-after-ms", ""))
    if found is not None:
        found /= 1000
    elif _number(after) is not None:
        found = _number(after)
    elif after:
        found = _until(after, now or datetime.now(UTC))
    else:
        resets = {
            what: _duration(headers.get(f"x-ratelimit-reset-{what}", ""))
            for what in ("requests", "tokens")
        }
        spent = [
            s for what, s in resets.items() if headers.get(f"x-ratelimit-remaining-{what}") == "0"
        ]
        known = [s for s in (spent or resets.values()) if s is not None]
        found = max(known) if known else None
    return None if found is None or found < 0 else min(found, _LONGEST_WAIT_S)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"-?\d{1,12}(\.\d{1,12})?", text.strip()) else None


def _until(text: str, now: datetime) -> float | None:
    try:
        return max(0.0, (parsedate_to_datetime(text) - now).total_seconds())
    except (ValueError, TypeError):
        return None


def _duration(text: str) -> float | None:
    """Return the seconds of a text such as 6m0s, 20ms or 1.5."""
    if _number(text) is not None:
        return _number(text)
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text)
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    return sum(float(n) * units[unit] for n, unit in parts) if parts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a judge is asked; the key is never shown.

    Examples
    --------
    >>> Endpoint(base_url="http://127.0.0.1:8080/v1", key="secret")
    Endpoint(base_url='http://127.0.0.1:8080/v1', deadline_s=120.0)
    """

    base_url: str
    key: str = field(repr=False)
    deadline_s: float = 120.0

    def __post_init__(self) -> None:
        # Anything else would come back within the error of an illegal header.
        if not re.fullmatch(r"[!-~]+", self.key):
            raise InputError(
                "the key of the endpoint has blanks, line breaks or letters beyond ASCII, or is "
                "empty; set it again without them"
            )
        if not re.fullmatch(r"https?://[^\s/@?#]+(/[^\s@?#]*)?", self.base_url):
            raise InputError(
                "the address of the endpoint must be like https://host/v1, without a name, "
                "password or query"
            )


class OpenAITransport:
    """The `openai` client as a bare line.

    Parameters
    ----------
    endpoint
        Address, key and the deadline of one request, from sending to its last byte.

    Raises
    ------
    CalibrationError
        If the extra is not installed; the message names the command.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        try:
            import openai
        except ImportError as error:
            raise CalibrationError(
                "an LLM judge needs the openai package: pip install 'asr-calibration[judge]'"
            ) from error
        self._errors = openai
        self._deadline_s = endpoint.deadline_s
        key = endpoint.key
        self._secrets = sorted({key, json.dumps(key)[1:-1], key.replace("/", "\\/")}, key=len)[::-1]
        self._client = openai.AsyncOpenAI(
            api_key=key,
            base_url=endpoint.base_url,
            max_retries=0,
            timeout=None,
        )
        # Of the environment, and meant for another endpoint.
        self._client.organization = self._client.project = None

    async def send(self, body: Mapping[str, Any], key: str) -> Exchange:
        """Send one request under its key and return what came of it."""
        start = time.monotonic()
        try:
            async with asyncio.timeout(self._deadline_s):
                raw = await self._client.chat.completions.with_raw_response.create(
                    **body, extra_headers={"Idempotency-Key": key, "X-Request-Key": key}
                )
                response = raw.http_response
        except TimeoutError:
            problem = f"no whole answer in {self._deadline_s:g} s"
            return Exchange(kind="in_doubt", problem=problem, latency_s=time.monotonic() - start)
        except self._errors.APIStatusError as error:
            response = error.response
        except self._errors.APIConnectionError as error:
            name = type(error.__cause__).__name__
            sent = name not in ("ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError")
            kind: Kind = "in_doubt" if sent else "transient"
            return Exchange(kind=kind, problem=name, latency_s=time.monotonic() - start)
        except (self._errors.OpenAIError, TypeError, ValueError) as error:
            # The client refused it before the socket, as an argument it does not know.
            problem = f"{type(error).__name__}: {self._clean(str(error))[:300]}"
            return Exchange(kind="stop", problem=problem)
        return self._exchange(
            response.status_code, response.headers, response.text, time.monotonic() - start
        )

    def _exchange(
        self, status: int, headers: Mapping[str, str], body: str, latency_s: float
    ) -> Exchange:
        body = self._clean(body)
        kept = {
            name.lower(): self._clean(value)
            for name, value in headers.items()
            if _KEPT_HEADERS.fullmatch(name.lower())
        }
        kind = classify(status, body, kept)
        problem = "" if kind == "answer" else f"HTTP {status}: {' '.join(body[:300].split())}"
        return Exchange(
            kind=kind,
            status=status,
            headers=kept,
            body=body,
            latency_s=latency_s,
            problem=problem,
            wait_s=wait_asked(kept),
        )

    def _clean(self, text: str) -> str:
        """Return a text without the key, which some servers send back."""
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        return text

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
