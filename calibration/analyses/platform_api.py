"""The public HTTP APIs of Langfuse, LangSmith and Phoenix: what is asked, and in which shape.

Answers are kept as they come, for the importers to read. Key and address are those that the SDK of
each platform takes from the environment. The shapes are those of the documentation in autumn 2026;
docs/coming-from.md names the pages.
"""

import asyncio
import base64
import logging
import random
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import quote

from calibration.errors import InputError, PlatformError
from calibration.files import parse_json
from calibration.judging.pace import Pace, Rates, RunClock
from calibration.judging.requests import Reply
from calibration.judging.transport import (
    HIDDEN,
    IN_DOUBT,
    SHORTEST_HIDDEN,
    THROTTLED,
    TRANSIENT,
    NoReply,
    Ruling,
    classify,
    error_text,
)
from calibration.trace_formats.spans import time_of

INSTALL = "pip install 'asr-calibration[platforms]'"
DEADLINE_S, CONNECT_S = 60.0, 10.0
MOST_ANSWER = 64_000_000  # bytes
MOST_FAILURES = 6  # of one request, in a row
MOST_WAIT_S = 600.0
PER_MINUTE = 600.0
LISTED, DETAILED, NAMED = 1_000, 100, 50  # rows of a page, and traces named in a request
BEFORE = timedelta(days=1)  # clocks of machines differ, so that a part may begin before the trace
NOT_THERE = (404, 405, 410, 501)
TOO_LARGE = 413

Env = Mapping[str, str]
Told = Callable[[str], None]
Page = tuple[list[Any], str | None]
Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformAccess:
    """Where a platform is and what opens it; `secrets` are shown nowhere.

    `keys` and `hosts` name the variables of the environment, for messages; `owner` tells apart
    what several keys open at one address.
    """

    title: str
    base: str
    headers: Mapping[str, str]
    secrets: tuple[str, ...] = field(repr=False)
    keys: str
    hosts: str
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The traces that are wanted: begun since, and before `until` (UTC)."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Traces that began in a window, by id with their start; `facts` are of the platform."""

    traces: Mapping[str, datetime]
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRows:
    """One sort of rows of the chosen traces, `batch` ids a request.

    `page` returns the rows of a page and the cursor of the next one; `wrap` puts rows into the
    shape that the importer reads. With `of_spans` the ids are those of spans that were read before.
    """

    batch: int
    page: Callable[["PlatformClient", Sequence[str], str | None, int], Awaitable[Page]]
    wrap: Callable[[list[Any]], Any]
    of_spans: bool = False


class PlatformClient:
    """Requests to one platform, one after the other; an asynchronous context manager.

    What is throttled or fails in passing is asked again, with the wait that the platform asks for.

    Raises
    ------
    PlatformError
        If the extra is not installed, or the key or the address cannot be sent.
    """

    def __init__(
        self,
        access: PlatformAccess,
        *,
        clock: RunClock | None = None,
        rng: random.Random | None = None,
        told: Told = lambda words: None,
    ) -> None:
        try:
            import httpx2
        except ImportError as error:
            raise PlatformError(f"{access.title} needs the extra: {INSTALL}") from error
        if not all(s.isascii() and s.isprintable() for s in access.secrets):
            raise PlatformError(f"{access.keys} holds characters that no key has")
        if not re.match(r"https?://[^/\s]+", access.base):
            raise PlatformError(f"{access.hosts} must begin with https:// or http://")
        logging.getLogger("httpcore2").setLevel(logging.INFO)
        self.access, self._told = access, told
        self._httpx = httpx2
        self._clock, self._rng = clock or RunClock(), rng or random.Random()
        self._per_minute = 0.0
        self.limit(PER_MINUTE)
        self._http = httpx2.AsyncClient(
            headers=dict(access.headers),
            timeout=httpx2.Timeout(DEADLINE_S, connect=CONNECT_S),
            follow_redirects=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    def limit(self, per_minute: float) -> None:
        """Send no more than so many requests a minute."""
        if per_minute == self._per_minute:
            return
        self._per_minute = per_minute
        rates = Rates(requests_per_minute=per_minute, start=1, most=1)
        self._pace = Pace(rates, self._clock, self._rng)

    async def ask(
        self,
        method: str,
        path: str,
        params: Sequence[tuple[str, str]] = (),
        body: object = None,
        *,
        final: Collection[int] = (),
    ) -> Any:
        """Return the answer to a request as data; `final` statuses are not asked again.

        Raises
        ------
        PlatformError
            If the answer is an error, with its status; 413 if it is too large.
        """
        failures = 0
        while True:
            await self._pace.enter(0.0)
            try:
                reply = await self._send(method, path, params, body)
            finally:
                self._pace.leave()
            if isinstance(reply, Reply) and 200 <= reply.status < 300:
                return self._read(reply)
            ruling = classify(reply, self._clock.wall())
            failures += 1
            again = ruling.kind in (THROTTLED, TRANSIENT, IN_DOUBT) and (
                isinstance(reply, NoReply) or reply.status not in final
            )
            if not again or failures > MOST_FAILURES or (ruling.wait_s or 0.0) > MOST_WAIT_S:
                raise self._error(reply, ruling, failures, path)
            wait = self._pace.backoff(failures)
            if ruling.wait_s is not None:
                wait = self._pace.jitter(ruling.wait_s)
            self._told(f"{self.access.title} is busy, waiting {wait:.0f} s")
            await self._pace.rest(wait)

    async def _send(
        self, method: str, path: str, params: Sequence[tuple[str, str]], body: object
    ) -> Reply | NoReply:
        httpx2 = self._httpx
        unsent = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
        content = bytearray()
        try:
            async with (
                asyncio.timeout(DEADLINE_S),
                self._http.stream(
                    method, self.access.base + path, params=list(params), json=body
                ) as response,
            ):
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > MOST_ANSWER:
                        raise self._failed(
                            f"answered more than {MOST_ANSWER:,} bytes", status=TOO_LARGE
                        )
        except TimeoutError:
            return NoReply(cause=f"no answer within {DEADLINE_S:.0f} s", sent=True)
        except httpx2.TransportError as error:
            cause = f"{type(error).__name__}: {self._hide(str(error))}"[:200]
            return NoReply(cause=cause, sent=not isinstance(error, unsent))
        except (httpx2.InvalidURL, httpx2.RequestError, UnicodeError) as error:
            raise self._failed(f"cannot be asked: {self._hide(str(error)):.200}") from error
        return Reply(
            key="",
            status=response.status_code,
            headers=dict(response.headers),
            body=self._hide(content.decode("utf-8", errors="replace")),
            latency_s=0.0,
        )

    def _read(self, reply: Reply) -> Any:
        if not reply.body.strip():
            return None
        try:
            return parse_json(reply.body)
        except InputError as error:
            why = f"its answer {error}; is {self.access.hosts} the address of the API?"
            raise self._failed(why, status=reply.status) from error

    def _hide(self, text: str) -> str:
        for secret in self.access.secrets:
            if len(secret) >= SHORTEST_HIDDEN:
                text = text.replace(secret, HIDDEN)
        return text

    def _failed(self, why: str, *, status: int | None = None) -> PlatformError:
        error = PlatformError(f"{self.access.title} at {self.access.base}: {why}")
        error.status = status
        return error

    def _error(
        self, reply: Reply | NoReply, ruling: Ruling, failures: int, path: str
    ) -> PlatformError:
        """Return what is wrong and what helps, by the status of an answer."""
        access = self.access
        if isinstance(reply, NoReply):
            return self._failed(f"cannot be reached ({reply.cause}); is {access.hosts} right?")
        status, words = reply.status, error_text(reply.body)[:200]
        told = f" ({words})" if words else ""
        if status == 401:
            why = f"the key is not accepted{told}; check {access.keys}"
        elif status == 403:
            why = f"the key does not permit this{told}; check its rights, and {access.keys}"
        elif status in NOT_THERE:
            why = f"there is no {path.partition('?')[0]}{told}; is {access.hosts} right?"
        elif 300 <= status < 400:
            why = f"it redirects; set {access.hosts} to the address that it redirects to"
        elif status == 429 or ruling.kind == THROTTLED:
            wait = f", asks to wait {ruling.wait_s:.0f} s" if ruling.wait_s else ""
            why = f"too many requests{wait}; run the same command later: it goes on from here"
        elif status >= 500:
            why = f"failed {failures} times{told}; run the same command later: it goes on from here"
        else:
            why = f"the request is refused{told}"
        return self._failed(f"{status}: {why}", status=status)


class Platform(Protocol):
    """One platform: its key and address, what is read, and where scores go.

    `projects` is the variable that names the project where no option does; empty without one.
    """

    name: str
    title: str
    projects: str

    def access(self, env: Env) -> PlatformAccess:
        """Return where it is and what opens it, as the environment says; else InputError."""
        ...

    async def list(
        self, client: PlatformClient, window: Window, project: str | None, enough: int,
        known: Collection[str],
    ) -> Listed:  # fmt: skip
        """Return traces of a window that are not known; `enough` where the newest come first."""
        ...

    def parts(self, facts: Facts, window: Window) -> tuple[TraceRows, ...]:
        """Return what is read of the chosen traces, in this order."""
        ...

    async def send(self, client: PlatformClient, payload: Mapping[str, Any]) -> None:
        """Send one score; the same one again changes nothing."""
        ...


def _needed(env: Env, *names: str) -> tuple[str, ...]:
    missing = [name for name in names if not env.get(name, "").strip()]
    if missing:
        raise InputError(f"set {' and '.join(missing)} in the environment")
    return tuple(env[name].strip() for name in names)


def _first(env: Env, names: Sequence[str], default: str) -> str:
    found = next((env[name].strip() for name in names if env.get(name, "").strip()), default)
    return found.rstrip("/")


def _rows(answer: object, name: str | None) -> list[Any]:
    """Return the rows of an answer: a list, or the one under this name."""
    found = answer if name is None else answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(found, list):
        raise PlatformError(f"an answer of the platform has no list{f' {name!r}' if name else ''}")
    return found


def _next(answer: object, *path: str) -> str | None:
    for name in path:
        answer = answer.get(name) if isinstance(answer, dict) else None
    return None if answer in (None, "") else str(answer)


def _took(found: dict[str, datetime], trace: object, started: object, window: Window) -> None:
    """Add a trace with its first start, if it began in the window."""
    at = time_of(started, "start_time")
    if isinstance(trace, str) and trace and at is not None and window.since <= at < window.until:
        found[trace] = min(at, found.get(trace, at))


def _as_data(rows: list[Any]) -> Any:
    return {"data": rows, "meta": {}}


class Langfuse:
    """Langfuse: observations (v4), on servers of v3 traces with all that belongs to them."""

    name, title, projects = "langfuse", "Langfuse", ""

    def access(self, env: Env) -> PlatformAccess:
        """Return the access by LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY."""
        names = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
        public, secret = _needed(env, *names)
        token = base64.b64encode(f"{public}:{secret}".encode()).decode()
        hosts = ("LANGFUSE_BASE_URL", "LANGFUSE_HOST")
        return PlatformAccess(
            title=self.title,
            base=_first(env, hosts, "https://cloud.langfuse.com"),
            headers={"Authorization": f"Basic {token}"},
            secrets=(secret, token),
            keys=" and ".join(names),
            hosts="LANGFUSE_BASE_URL",
            owner=public,
        )

    async def list(
        self, client: PlatformClient, window: Window, project: str | None, enough: int,
        known: Collection[str],
    ) -> Listed:  # fmt: skip
        """Return traces, newest first in both versions."""
        if project is not None:
            raise InputError("a key of Langfuse is of one project: leave --project out")
        try:
            return await self._observations(client, window, enough, known)
        except PlatformError as error:
            if error.status not in NOT_THERE:
                raise
        return await self._traces(client, window, enough, known)

    async def _observations(
        self, client: PlatformClient, window: Window, enough: int, known: Collection[str]
    ) -> Listed:
        found: dict[str, datetime] = {}
        cursor: str | None = None
        while True:
            params = [
                ("fields", "core"),
                ("isRootObservation", "true"),
                ("fromStartTime", window.since.isoformat()),
                ("toStartTime", window.until.isoformat()),
                ("limit", str(LISTED)),
                *([] if cursor is None else [("cursor", cursor)]),
            ]
            answer = await client.ask("GET", "/api/public/v2/observations", params)
            for row in _rows(answer, "data"):
                if row.get("traceId") not in known:
                    _took(found, row.get("traceId"), row.get("startTime"), window)
            cursor = _next(answer, "meta", "cursor")
            if cursor is None or len(found) > enough:
                return Listed(traces=found, facts={"version": 4})

    async def _traces(
        self, client: PlatformClient, window: Window, enough: int, known: Collection[str]
    ) -> Listed:
        found: dict[str, datetime] = {}
        page = 1
        while True:
            params = [
                ("page", str(page)),
                ("limit", str(DETAILED)),
                ("orderBy", "timestamp.desc"),
                ("fromTimestamp", window.since.isoformat()),
                ("toTimestamp", window.until.isoformat()),
            ]
            answer = await client.ask("GET", "/api/public/traces", params)
            rows = _rows(answer, "data")
            for row in rows:
                if row.get("id") not in known:
                    _took(found, row.get("id"), row.get("timestamp"), window)
            if page >= int(_next(answer, "meta", "totalPages") or 0) or len(found) > enough:
                return Listed(traces=found, facts={"version": 3})
            page += 1

    def parts(self, facts: Facts, window: Window) -> tuple[TraceRows, ...]:
        """Return observations and scores, or the traces with both."""
        if facts["version"] == 3:
            return (TraceRows(batch=1, page=self._trace, wrap=list),)
        since = (window.since - BEFORE).isoformat()

        async def observations(
            client: PlatformClient, ids: Sequence[str], cursor: str | None, size: int
        ) -> Page:
            params = [
                ("traceId", ids[0]),
                ("fields", "core,basic,io,metadata,model,usage,metrics,trace_context"),
                ("fromStartTime", since),
                ("limit", str(size)),
                *([] if cursor is None else [("cursor", cursor)]),
            ]
            answer = await client.ask("GET", "/api/public/v2/observations", params)
            return _rows(answer, "data"), _next(answer, "meta", "cursor")

        return (
            TraceRows(batch=1, page=observations, wrap=_as_data),
            TraceRows(batch=NAMED, page=self._scores, wrap=_as_data),
        )

    @staticmethod
    async def _trace(
        client: PlatformClient, ids: Sequence[str], cursor: str | None, size: int
    ) -> Page:
        return [await client.ask("GET", f"/api/public/traces/{quote(ids[0], safe='')}")], None

    @staticmethod
    async def _scores(
        client: PlatformClient, ids: Sequence[str], cursor: str | None, size: int
    ) -> Page:
        params = [
            ("traceId", ",".join(ids)),
            ("fields", "details,subject,annotation"),
            ("limit", str(size)),
            *([] if cursor is None else [("cursor", cursor)]),
        ]
        answer = await client.ask("GET", "/api/public/v3/scores", params)
        return _rows(answer, "data"), _next(answer, "meta", "cursor")

    async def send(self, client: PlatformClient, payload: Mapping[str, Any]) -> None:
        """Send a score; one with its id is replaced."""
        await client.ask("POST", "/api/public/scores", body=payload)


class LangSmith:
    """LangSmith: runs by the second version of its API, else by the first one."""

    name, title, projects = "langsmith", "LangSmith", "LANGSMITH_PROJECT"
    _FIELDS = (
        "id", "name", "run_type", "status", "start_time", "end_time", "error", "extra", "inputs",
        "outputs", "trace_id", "dotted_order", "reference_example_id", "total_tokens",
        "prompt_tokens", "completion_tokens", "total_cost", "tags", "app_path", "feedback_stats",
    )  # fmt: skip

    def access(self, env: Env) -> PlatformAccess:
        """Return the access by LANGSMITH_API_KEY."""
        (key,) = _needed(env, "LANGSMITH_API_KEY")
        base = _first(env, ("LANGSMITH_ENDPOINT",), "https://api.smith.langchain.com")
        headers = {"x-api-key": key}
        if workspace := env.get("LANGSMITH_WORKSPACE_ID", "").strip():
            headers["X-Tenant-Id"] = workspace
        return PlatformAccess(
            title=self.title,
            base=re.sub(r"(/api)?(/v[12])?$", "", base),
            headers=headers,
            secrets=(key,),
            keys="LANGSMITH_API_KEY",
            hosts="LANGSMITH_ENDPOINT",
            owner=headers.get("X-Tenant-Id", ""),
        )

    async def list(
        self, client: PlatformClient, window: Window, project: str | None, enough: int,
        known: Collection[str],
    ) -> Listed:  # fmt: skip
        """Return the traces of a project; all of them, as no order is promised."""
        wanted = project or "default"
        params = [("name", wanted), ("limit", "1")]
        sessions = _rows(await client.ask("GET", "/api/v1/sessions", params), None)
        if not sessions:
            raise InputError(f"LangSmith has no project {wanted!r}; name one with --project")
        facts = {"project": str(sessions[0].get("id")), "version": 2}
        try:
            found = await self._roots(client, window, facts, known)
        except PlatformError as error:
            if error.status not in NOT_THERE:
                raise
            facts["version"] = 1
            found = await self._roots(client, window, facts, known)
        return Listed(traces=found, facts=facts)

    async def _roots(
        self, client: PlatformClient, window: Window, facts: Facts, known: Collection[str]
    ) -> dict[str, datetime]:
        found: dict[str, datetime] = {}
        cursor: str | None = None
        fields = ("id", "trace_id", "start_time")
        while True:
            about = self._query(facts, window.since, fields, cursor, LISTED)
            answer = await self._runs(client, facts, about | {"is_root": True})
            for row in answer[0]:
                trace = row.get("trace_id") or row.get("id")
                if trace not in known:
                    _took(found, trace, row.get("start_time"), window)
            cursor = answer[1]
            if cursor is None:
                return found

    @staticmethod
    def _query(
        facts: Facts, since: datetime, fields: Sequence[str], cursor: str | None, size: int
    ) -> dict[str, Any]:
        """Return a query on the runs of a project."""
        paged = {} if cursor is None else {"cursor": cursor}
        if facts["version"] == 1:
            return {
                "session": [facts["project"]],
                "start_time": since.isoformat(),
                "select": list(fields),
                "limit": min(size, DETAILED),
            } | paged
        return {
            "project_ids": [facts["project"]],
            "min_start_time": since.isoformat(),
            "selects": [name.upper() for name in fields],
            "page_size": size,
        } | paged

    @staticmethod
    async def _runs(client: PlatformClient, facts: Facts, query: Mapping[str, Any]) -> Page:
        if facts["version"] == 1:
            client.limit(50)  # its own limit is ten in ten seconds
            answer = await client.ask("POST", "/api/v1/runs/query", body=query)
            return _rows(answer, "runs"), _next(answer, "cursors", "next")
        answer = await client.ask("POST", "/api/v2/runs/query", body=query)
        return _rows(answer, "items"), _next(answer, "next_cursor")

    def parts(self, facts: Facts, window: Window) -> tuple[TraceRows, ...]:
        """Return runs, and feedback on the first ones."""
        first = facts["version"] == 1
        fields = (*self._FIELDS, *(("parent_run_id", "session_id") if first else _SECOND))

        async def runs(
            client: PlatformClient, ids: Sequence[str], cursor: str | None, size: int
        ) -> Page:
            query = self._query(facts, window.since - BEFORE, fields, cursor, size)
            return await self._runs(
                client, facts, query | {"trace" if first else "trace_id": ids[0]}
            )

        async def feedback(
            client: PlatformClient, ids: Sequence[str], cursor: str | None, size: int
        ) -> Page:
            params = [
                *(("run", run) for run in ids),
                ("limit", str(size)),
                ("offset", cursor or "0"),
            ]
            rows = _rows(await client.ask("GET", "/api/v1/feedback", params), None)
            more = len(rows) >= size
            return rows, str(int(cursor or 0) + len(rows)) if more else None

        return (
            TraceRows(batch=1, page=runs, wrap=lambda rows: {"runs": rows}),
            TraceRows(batch=NAMED, page=feedback, wrap=list),
        )

    async def send(self, client: PlatformClient, payload: Mapping[str, Any]) -> None:
        """Send feedback; one with its id is changed."""
        try:
            await client.ask("POST", "/api/v1/feedback", body=payload, final=(409,))
        except PlatformError as error:
            if error.status != 409:
                raise
            path = f"/api/v1/feedback/{payload['id']}"
            changed = {name: payload[name] for name in ("score", "value")}
            await client.ask("PATCH", path, body=changed)


_SECOND = ("parent_run_ids", "project_id", "metadata")


class Phoenix:
    """Phoenix 13.15 or later: spans with their annotations, and those of traces."""

    name, title, projects = "phoenix", "Phoenix", "PHOENIX_PROJECT_NAME"

    def access(self, env: Env) -> PlatformAccess:
        """Return the access by PHOENIX_API_KEY, if there is one."""
        key = env.get("PHOENIX_API_KEY", "").strip()
        host, port = env.get("PHOENIX_HOST", "").strip(), env.get("PHOENIX_PORT", "").strip()
        own = host.replace("0.0.0.0", "127.0.0.1") or "127.0.0.1"
        if "://" not in own:
            own = f"http://{own}:{port or '6006'}"
        base = _first(env, ("PHOENIX_COLLECTOR_ENDPOINT",), own)
        return PlatformAccess(
            title=self.title,
            base=base.removesuffix("/v1/traces"),
            headers={"Authorization": f"Bearer {key}"} if key else {},
            secrets=(key,) if key else (),
            keys="PHOENIX_API_KEY",
            hosts="PHOENIX_COLLECTOR_ENDPOINT",
        )

    async def list(
        self, client: PlatformClient, window: Window, project: str | None, enough: int,
        known: Collection[str],
    ) -> Listed:  # fmt: skip
        """Return the traces of a project, newest first."""
        wanted = quote(project or "default", safe="")
        try:
            await client.ask("GET", f"/v1/projects/{wanted}")
        except PlatformError as error:
            if error.status != 404:
                raise
            raise InputError(
                f"Phoenix has no project {project or 'default'!r}; name one with --project"
            ) from error
        found: dict[str, datetime] = {}
        cursor: str | None = None
        while True:
            params = [
                ("start_time", window.since.isoformat()),
                ("end_time", window.until.isoformat()),
                ("sort", "start_time"),
                ("order", "desc"),
                ("limit", str(LISTED)),
                *([] if cursor is None else [("cursor", cursor)]),
            ]
            try:
                answer = await client.ask("GET", f"/v1/projects/{wanted}/traces", params)
            except PlatformError as error:
                if error.status not in NOT_THERE:
                    raise
                raise PlatformError(
                    "this Phoenix does not list traces: 13.15 or later does; until then export "
                    "spans as docs/coming-from.md says"
                ) from error
            for row in _rows(answer, "data"):
                if row.get("trace_id") not in known:
                    _took(found, row.get("trace_id"), row.get("start_time"), window)
            cursor = _next(answer, "next_cursor")
            if cursor is None or len(found) > enough:
                return Listed(traces=found, facts={"project": wanted})

    def parts(self, facts: Facts, window: Window) -> tuple[TraceRows, ...]:
        """Return spans, their annotations, and those of the traces."""
        under = f"/v1/projects/{facts['project']}"

        def of(path: str, name: str) -> Callable[..., Awaitable[Page]]:
            async def page(
                client: PlatformClient, ids: Sequence[str], cursor: str | None, size: int
            ) -> Page:
                params = [
                    *((name, own) for own in ids),
                    ("limit", str(size)),
                    *([] if cursor is None else [("cursor", cursor)]),
                ]
                answer = await client.ask("GET", f"{under}/{path}", params)
                return _rows(answer, "data"), _next(answer, "next_cursor")

            return page

        def wrap(rows: list[Any]) -> Any:
            return {"data": rows, "next_cursor": None}

        return (
            TraceRows(batch=10, page=of("spans", "trace_id"), wrap=wrap),
            TraceRows(batch=NAMED, page=of("trace_annotations", "trace_ids"), wrap=wrap),
            TraceRows(
                batch=2 * NAMED, page=of("span_annotations", "span_ids"), wrap=wrap, of_spans=True
            ),
        )

    async def send(self, client: PlatformClient, payload: Mapping[str, Any]) -> None:
        """Send an annotation of a trace; one with its name and identifier is replaced."""
        body = {"data": [payload]}
        await client.ask("POST", "/v1/trace_annotations", [("sync", "true")], body)


PLATFORMS: Mapping[str, Platform] = {p.name: p for p in (Langfuse(), LangSmith(), Phoenix())}
