"""Langfuse, LangSmith and Phoenix as one server on loopback, with the shapes that they document.

`rule` says for each request, by its number from 1, path and attempt, what it meets instead of its
answer: a status with headers and a body, or None.
"""

import base64
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import NAMESPACE_URL, uuid5

PUBLIC, SECRET = "pk-lf-open", "sk-lf-marked-77"
KEY, PROJECT = "key-marked-31", "5b0c3f5e-0000-4000-8000-000000000001"
BEGUN = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
NOW = datetime(2026, 11, 26, 9, 0, tzinfo=UTC)
Rule = Callable[[int, str, int], tuple[int, Mapping[str, str], str] | None]
VARIABLES = (
    "LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY", "LANGFUSE_BASE_URL", "LANGFUSE_HOST",
    "LANGSMITH_API_KEY", "LANGSMITH_ENDPOINT", "LANGSMITH_WORKSPACE_ID", "LANGSMITH_PROJECT",
    "PHOENIX_API_KEY", "PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_HOST", "PHOENIX_PORT",
    "PHOENIX_PROJECT_NAME",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A run of an agent: question, call of a tool, answer."""

    number: int
    begun: datetime

    @property
    def uuid(self) -> str:
        return str(uuid5(NAMESPACE_URL, f"run-{self.number}"))

    @property
    def hex(self) -> str:
        return self.uuid.replace("-", "")

    def at(self, seconds: float) -> str:
        return (self.begun + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")

    @property
    def question(self) -> str:
        return f"Refund order {self.number}, please."

    @property
    def answer(self) -> str:
        return f"Order {self.number} is refunded."


def runs(n: int, *, begun: datetime = BEGUN, apart: timedelta = timedelta(minutes=1)) -> list[Run]:
    return [Run(number, begun + number * apart) for number in range(n)]


@dataclass
class Received:
    """What arrived."""

    requests: list[tuple[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: Counter[str] = field(default_factory=Counter)
    bodies: list[Any] = field(default_factory=list)
    scores: dict[str, Any] = field(default_factory=dict)
    changed: int = 0


class PlatformServer:
    """The server, in a thread; a context manager.

    `page` is the most rows of an answer, whatever is asked for; `old` makes the versions of the
    APIs before this year's, `scored` the runs that have scores there.
    """

    def __init__(
        self,
        found: list[Run],
        *,
        page: int = 1_000,
        old: bool = False,
        rule: Rule = lambda number, path, attempt: None,
        scored: tuple[int, ...] = (),
    ) -> None:
        self.runs, self.page, self.old, self.rule, self.scored = found, page, old, rule, scored
        self.received = Received()
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one piece: a second one waits for 40 ms
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                outer._answer(self)

            do_POST = do_PATCH = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, args=(0.005,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def env(self) -> dict[str, str]:
        """The variables that lead here."""
        return {
            "LANGFUSE_PUBLIC_KEY": PUBLIC, "LANGFUSE_SECRET_KEY": SECRET,
            "LANGFUSE_BASE_URL": self.url, "LANGSMITH_API_KEY": KEY,
            "LANGSMITH_ENDPOINT": f"{self.url}/api/v1", "LANGSMITH_PROJECT": "shop",
            "PHOENIX_API_KEY": KEY, "PHOENIX_COLLECTOR_ENDPOINT": f"{self.url}/v1/traces",
            "PHOENIX_PROJECT_NAME": "the shop",
        }  # fmt: skip

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        split = urlsplit(handler.path)
        path, query = unquote(split.path), parse_qs(split.query, keep_blank_values=True)
        raw = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        body = json.loads(raw) if raw else None
        with self._lock:
            known = self.received
            known.requests.append((handler.command, handler.path))
            known.headers.append({k.lower(): v for k, v in handler.headers.items()})
            known.bodies.append(body)
            # What is asked, with its page: the same request again is another attempt.
            known.paths[f"{handler.path} {body}"] += 1
            met = self.rule(len(known.requests), path, known.paths[f"{handler.path} {body}"])
            status, headers, text = met or self._found(handler, path, query, body)
        content = text.encode()
        handler.send_response(status)
        named = {"content-type": "application/json", **headers}
        for name, value in named.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
        handler.wfile.flush()

    def _found(
        self, handler: BaseHTTPRequestHandler, path: str, query: dict[str, list[str]], body: Any
    ) -> tuple[int, Mapping[str, str], str]:
        token = base64.b64encode(f"{PUBLIC}:{SECRET}".encode()).decode()
        by_header = {
            "/api/public": ("authorization", f"Basic {token}"),
            "/api/v": ("x-api-key", KEY),
            "/v1/": ("authorization", f"Bearer {KEY}"),
        }
        name, wanted = next(v for k, v in by_header.items() if path.startswith(k))
        given = handler.headers.get(name, "")
        if given != wanted:
            return 401, {}, json.dumps({"message": f"Invalid credentials {given}"})
        one = {name: values[-1] for name, values in query.items()}
        answers: dict[tuple[str, str], Callable[[], Any]] = {
            ("GET", "/api/public/v2/observations"): lambda: self._observations(one),
            ("GET", "/api/public/v3/scores"): lambda: self._scores(one),
            ("GET", "/api/public/traces"): lambda: self._traces(one),
            ("POST", "/api/public/scores"): lambda: self._keep(body["id"], body),
            ("GET", "/api/v1/sessions"): lambda: self._sessions(one),
            ("POST", "/api/v2/runs/query"): lambda: self._second(body),
            ("POST", "/api/v1/runs/query"): lambda: self._first(body),
            ("GET", "/api/v1/feedback"): lambda: self._feedback(query),
            ("POST", "/api/v1/feedback"): lambda: self._once(body),
            ("GET", "/v1/projects/the shop"): lambda: {"data": {"name": "the shop"}},
            ("GET", "/v1/projects/the shop/traces"): lambda: self._phoenix(query, "traces"),
            ("GET", "/v1/projects/the shop/spans"): lambda: self._phoenix(query, "spans"),
            ("GET", "/v1/projects/the shop/trace_annotations"): lambda: self._phoenix(
                query, "trace_annotations"
            ),
            ("GET", "/v1/projects/the shop/span_annotations"): lambda: self._phoenix(
                query, "span_annotations"
            ),
            ("POST", "/v1/trace_annotations"): lambda: self._annotate(body),
        }
        if path.startswith("/api/public/traces/"):
            answer: Any = self._trace(path.rpartition("/")[2])
        elif path.startswith("/api/v1/feedback/") and handler.command == "PATCH":
            answer = self._keep(path.rpartition("/")[2], body)
        else:
            made = answers.get((handler.command, path))
            answer = None if made is None else made()
        if isinstance(answer, int):
            return answer, {}, json.dumps({"detail": "refused"})
        return (
            (404, {}, '{"error": "Not found"}') if answer is None else (200, {}, json.dumps(answer))
        )

    def _keep(self, own: str, payload: Any) -> Any:
        before = self.received.scores.get(own)
        self.received.scores[own] = {**(before or {}), **payload}
        self.received.changed += self.received.scores[own] != before
        return {"id": own}

    def _once(self, payload: Any) -> Any:
        return 409 if payload["id"] in self.received.scores else self._keep(payload["id"], payload)

    def _annotate(self, body: Any) -> Any:
        (payload,) = body["data"]
        if payload["trace_id"] not in {run.hex for run in self.runs}:
            return None
        self._keep(payload["identifier"], payload)
        return {"data": [{"id": "a"}]}

    def _cut(self, rows: list[Any], start: int, limit: int) -> tuple[list[Any], str | None]:
        size = min(limit, self.page)
        return rows[start : start + size], str(start + size) if start + size < len(rows) else None

    def _within(self, since: str | None, until: str | None) -> list[Run]:
        low = datetime.fromisoformat(since) if since else datetime.min.replace(tzinfo=UTC)
        high = datetime.fromisoformat(until) if until else datetime.max.replace(tzinfo=UTC)
        return sorted(
            (run for run in self.runs if low <= run.begun < high),
            key=lambda run: run.begun,
            reverse=True,
        )

    # Langfuse

    def _observations(self, one: Mapping[str, str]) -> Any:
        if self.old:
            return None
        of = self._within(one.get("fromStartTime"), one.get("toStartTime"))
        rows = [row for run in of for row in self._of_langfuse(run)]
        if "traceId" in one:
            rows = [row for row in rows if row["traceId"] == one["traceId"]]
        if one.get("isRootObservation") == "true":
            rows = [row for row in rows if row["parentObservationId"] is None]
        groups = one.get("fields", "core,basic").split(",")
        kept = {"id", "traceId", "startTime", "endTime", "parentObservationId", "type"}
        if "io" in groups:
            kept = set(rows[0]) if rows else kept
        page, cursor = self._cut(rows, int(one.get("cursor", 0)), int(one["limit"]))
        return {
            "data": [{k: v for k, v in row.items() if k in kept} for row in page],
            "meta": {"cursor": cursor} if cursor else {},
        }

    def _of_langfuse(self, run: Run) -> list[dict[str, Any]]:
        shared: dict[str, Any] = {
            "traceId": run.hex, "traceName": "refunds", "level": "DEFAULT", "version": "1.2",
            "metadata": {}, "usageDetails": {}, "totalCost": 0, "userId": "", "sessionId": "s",
            "providedModelName": None, "tags": [], "release": None,
        }  # fmt: skip
        root, call = f"{run.hex[:15]}0", f"{run.hex[:15]}1"
        return [
            shared | {
                "id": root, "parentObservationId": None, "type": "AGENT", "name": "refunds",
                "startTime": run.at(0), "endTime": run.at(4), "input": run.question,
                "output": run.answer, "metadata": {"task_id": f"refund-{run.number}"},
            },
            shared | {
                "id": call, "parentObservationId": root, "type": "GENERATION", "name": "answer",
                "startTime": run.at(1), "endTime": run.at(3), "providedModelName": "m-1",
                "input": json.dumps([{"role": "user", "content": run.question}]),
                "output": json.dumps({"role": "assistant", "content": run.answer}),
                "usageDetails": {"input": 100, "output": 20}, "totalCost": 0.002,
            },
        ]  # fmt: skip

    def _scores(self, one: Mapping[str, str]) -> Any:
        wanted = one["traceId"].split(",")
        rows = [
            {
                "id": f"score-{run.number}", "name": "success", "dataType": "BOOLEAN",
                "value": True, "source": "EVAL", "comment": "judged",
                "subject": {"kind": "trace", "id": run.hex}, "timestamp": run.at(9),
            }
            for run in self.runs
            if run.hex in wanted and run.number in self.scored
        ]  # fmt: skip
        page, cursor = self._cut(rows, int(one.get("cursor", 0)), int(one["limit"]))
        return {"data": page, "meta": {"limit": 100, **({"cursor": cursor} if cursor else {})}}

    def _traces(self, one: Mapping[str, str]) -> Any:
        of = self._within(one.get("fromTimestamp"), one.get("toTimestamp"))
        size = min(int(one["limit"]), self.page)
        start = (int(one["page"]) - 1) * size
        rows = [
            {"id": r.hex, "timestamp": r.at(0), "name": "refunds", "observations": [], "scores": []}
            for r in of[start : start + size]
        ]
        pages = -(-len(of) // size)
        return {"data": rows, "meta": {"page": int(one["page"]), "totalPages": pages}}

    def _trace(self, own: str) -> Any:
        for run in self.runs:
            if run.hex == own:
                first = self._of_langfuse(run)[0]
                return {
                    "id": own, "timestamp": run.at(0), "name": "refunds", "htmlPath": "/t",
                    "input": run.question, "output": run.answer, "metadata": first["metadata"],
                    "latency": 4.0, "totalCost": 0.002, "version": "1.2", "scores": [],
                    "observations": self._of_langfuse(run),
                }  # fmt: skip
        return None

    # LangSmith

    def _sessions(self, one: Mapping[str, str]) -> Any:
        return [{"id": PROJECT, "name": "shop"}] if one["name"] == "shop" else []

    def _of_langsmith(self, run: Run) -> list[dict[str, Any]]:
        child = str(uuid5(NAMESPACE_URL, f"{run.uuid}-call"))
        messages = [{"type": "human", "content": run.question}]
        shared: dict[str, Any] = {
            "trace_id": run.uuid, "status": "success", "error": None, "project_id": PROJECT,
            "session_id": PROJECT, "tags": [], "feedback_stats": {},
        }  # fmt: skip
        return [
            shared | {
                "id": run.uuid, "name": "refunds", "run_type": "chain", "parent_run_ids": [],
                "parent_run_id": None, "start_time": run.at(0), "end_time": run.at(4),
                "inputs": {"messages": messages},
                "outputs": {"messages": [*messages, {"type": "ai", "content": run.answer}]},
                "total_tokens": 120, "total_cost": 0.002, "dotted_order": f"1Z{run.uuid}",
                "extra": {"metadata": {"task_id": f"refund-{run.number}"}},
            },
            shared | {
                "id": child, "name": "model", "run_type": "llm", "parent_run_ids": [run.uuid],
                "parent_run_id": run.uuid, "start_time": run.at(1), "end_time": run.at(3),
                "inputs": {"messages": messages}, "prompt_tokens": 100, "completion_tokens": 20,
                "outputs": {"messages": [{"type": "ai", "content": run.answer}]},
                "total_cost": 0.002, "dotted_order": f"1Z{run.uuid}.2Z{child}",
                "extra": {"metadata": {"ls_model_name": "m-1"}},
            },
        ]  # fmt: skip

    def _query(
        self, body: Mapping[str, Any], since: str, trace: str | None, fields: list[str], limit: int
    ) -> tuple[list[Any], str | None]:
        # In no order: none is promised.
        of = sorted(self._within(since, None), key=lambda run: run.hex)
        rows = [row for run in of for row in self._of_langsmith(run)]
        if trace is not None:
            rows = [row for row in rows if row["trace_id"] == trace]
        if body.get("is_root"):
            rows = [row for row in rows if row["parent_run_id"] is None]
        page, cursor = self._cut(rows, int(body.get("cursor", 0)), limit)
        return [{name: row.get(name) for name in fields} for row in page], cursor

    def _second(self, body: Mapping[str, Any]) -> Any:
        if self.old:
            return None
        if body["project_ids"] != [PROJECT] or not 1 <= body["page_size"] <= 1_000:
            return 422
        fields = [name.lower() for name in body["selects"]]
        rows, cursor = self._query(
            body, body["min_start_time"], body.get("trace_id"), fields, body["page_size"]
        )
        for row in rows:
            for name in ("run_type", "status"):
                if name in row:
                    row[name] = row[name].upper()
            if "metadata" in row:
                row["metadata"] = row["extra"]["metadata"]
        return {"items": rows, "next_cursor": cursor}

    def _first(self, body: Mapping[str, Any]) -> Any:
        if body["session"] != [PROJECT] or not 1 <= body["limit"] <= 100:
            return 422
        rows, cursor = self._query(
            body, body["start_time"], body.get("trace"), body["select"], body["limit"]
        )
        return {"runs": rows, "cursors": {"next": cursor}}

    def _feedback(self, query: Mapping[str, list[str]]) -> Any:
        rows = [
            {
                "id": f"f-{run.number}", "run_id": run.uuid, "trace_id": run.uuid,
                "key": "success", "score": 1, "value": None, "comment": None,
                "feedback_source": {"type": "model"},
            }
            for run in self.runs
            if run.uuid in query["run"] and run.number in self.scored
        ]  # fmt: skip
        start, limit = int(query["offset"][0]), int(query["limit"][0])
        return rows[start : start + limit]

    # Phoenix

    def _of_phoenix(self, run: Run) -> list[dict[str, Any]]:
        root, call = f"{run.hex[:15]}0", f"{run.hex[:15]}1"
        said = "llm.input_messages.0.message."
        return [
            {
                "id": "U1", "name": "refunds", "span_kind": "AGENT", "parent_id": None,
                "context": {"trace_id": run.hex, "span_id": root}, "status_code": "OK",
                "start_time": run.at(0), "end_time": run.at(4), "events": [],
                "attributes": {
                    "input.value": run.question, "output.value": run.answer,
                    "metadata": json.dumps({"task_id": f"refund-{run.number}"}),
                },
            },
            {
                "id": "U2", "name": "model", "span_kind": "LLM", "parent_id": root,
                "context": {"trace_id": run.hex, "span_id": call}, "status_code": "OK",
                "start_time": run.at(1), "end_time": run.at(3), "events": [],
                "attributes": {
                    f"{said}role": "user", f"{said}content": run.question,
                    "llm.output_messages.0.message.role": "assistant",
                    "llm.output_messages.0.message.content": run.answer,
                    "llm.model_name": "m-1", "llm.token_count.prompt": 100,
                    "llm.token_count.completion": 20, "llm.cost.total": 0.002,
                },
            },
        ]  # fmt: skip

    def _phoenix(self, query: Mapping[str, list[str]], what: str) -> Any:
        first = {name: values[0] for name, values in query.items()}
        if what == "traces":
            if self.old:
                return None
            of = self._within(first["start_time"], first["end_time"])
            rows: list[dict[str, Any]] = [
                {"id": "T", "trace_id": r.hex, "start_time": r.at(0)} for r in of
            ]
        elif what == "spans":
            rows = [
                row
                for run in self.runs
                if run.hex in query["trace_id"]
                for row in self._of_phoenix(run)
            ]
        else:
            name = "trace_id" if what == "trace_annotations" else "span_id"
            rows = [
                {
                    "id": "A", "name": "success" if name == "span_id" else "tone",
                    "annotator_kind": "LLM", "identifier": "", name: own,
                    "result": {"label": None, "score": 1, "explanation": None},
                }
                for run in self.runs
                for own in [run.hex if name == "trace_id" else f"{run.hex[:15]}0"]
                if run.number in self.scored and own in query[f"{name}s"]
            ]  # fmt: skip
        page, cursor = self._cut(rows, int(first.get("cursor", 0)), int(first["limit"]))
        return {"data": page, "next_cursor": cursor}
