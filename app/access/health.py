"""What watches the server: alive, ready, figures for Prometheus, and a log of who asked for what.

No answer here names a path or a person, and no line of the log holds a secret or text of a trace.
"""

import json
import logging
import os
import resource
import secrets
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.access.door import CALLBACK, HEALTH, METRICS, READY, SIGN_IN, opened_store
from app.access.sockets import Bounded
from app.access.uploads import held_bytes
from app.session import store_path
from calibration.errors import CalibrationError
from calibration.store import Store, TraceFilter

METRICS_TOKEN, LOG_FORMAT, LOG_LEVEL = "ASR_METRICS_TOKEN", "ASR_LOG_FORMAT", "ASR_LOG_LEVEL"
LITTLE_DISK = 100 * 1024 * 1024
SLOW_S = 2.0
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
LOG = logging.getLogger("asr.server")

_files: dict[Path, tuple[Store, tuple[int, int]]] = {}


def is_in_place(store: Store | None) -> bool:
    """Return whether the store's file is the one that this server first found there."""
    path = store_path()
    try:
        found = path.stat()
    except OSError:
        return path not in _files  # none yet, as before the first import
    if store is None:
        return True
    if path not in _files or _files[path][0] is not store:
        _files[path] = store, (found.st_dev, found.st_ino)
    return _files[path][1] == (found.st_dev, found.st_ino)


def troubles() -> list[str]:
    """Return why nothing can be stored now; nothing while all is well or there is no store yet."""
    path = store_path()
    if not path.exists():
        return ["store: the file was replaced or removed"] * (path in _files)
    store = opened_store()
    if store is None:
        return ["store: cannot be opened (in use, damaged or of another version)"]
    found = []
    if not is_in_place(store):
        found.append("store: the file was replaced or removed")
    try:
        store.identities()
    except CalibrationError:
        found.append("store: cannot be read")
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        found.append("store: cannot be written")
    if shutil.disk_usage(path.parent).free < LITTLE_DISK:
        found.append("disk: less than 100 MB are free")
    return found


async def healthz(_request: Request) -> PlainTextResponse:
    """Answer ok while the server runs on its own store; Streamlit answers 200 on any path."""
    fine = await run_in_threadpool(lambda: is_in_place(opened_store()))
    return PlainTextResponse("ok" if fine else "the store was replaced", 200 if fine else 503)


async def readyz(_request: Request) -> PlainTextResponse:
    """Answer ok while labels can be stored."""
    found = await run_in_threadpool(troubles)
    return PlainTextResponse("\n".join(found) or "ok", 503 if found else 200)


async def metrics(request: Request) -> Response:
    """Answer with figures in the text format of Prometheus, for whoever has the token."""
    token = os.environ.get(METRICS_TOKEN, "")
    if not token:
        return PlainTextResponse(f"{METRICS_TOKEN} is not set.\n", 404)
    sent = request.headers.get("authorization", "").removeprefix("Bearer ")
    if not secrets.compare_digest(sent.encode(), token.encode()):
        return PlainTextResponse("Wrong token.\n", 401, headers={"www-authenticate": "Bearer"})
    text = await run_in_threadpool(MEASURED.text)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


ROUTES = (Route(HEALTH, healthz), Route(READY, readyz), Route(METRICS, metrics))


class Measured:
    """Counts since the start of the server."""

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()
        self.within: Counter[float] = Counter()
        self.seconds = 0.0
        self.refused_sign_ins = 0
        self.sockets = 0

    def add(self, status: int, seconds: float) -> None:
        """Count one answer."""
        self.answers[f"{status // 100}xx"] += 1
        self.seconds += seconds
        for limit in BUCKETS:
            self.within[limit] += seconds <= limit

    def text(self) -> str:
        """Return the figures, those of the store among them."""
        total = self.answers.total()
        lines = [f'asr_http_responses_total{{status="{s}"}} {n}' for s, n in self.answers.items()]
        name = "asr_http_response_seconds"
        lines += [f'{name}_bucket{{le="{limit}"}} {self.within[limit]}' for limit in BUCKETS]
        lines += [f'{name}_bucket{{le="+Inf"}} {total}', f"{name}_sum {self.seconds:.6f}",
                  f"{name}_count {total}"]  # fmt: skip
        figures = {
            "asr_sign_ins_refused_total": self.refused_sign_ins,
            "asr_open_websockets": self.sockets,
            "asr_upload_bytes": held_bytes().total(),
            "asr_resident_memory_bytes": _memory(),
            "asr_ready": int(not troubles()),
        }
        store = opened_store()
        if store is not None:
            queue = list(store_path().with_suffix(".inbox").glob("*.json"))
            figures |= {
                "asr_traces": store.count_traces(TraceFilter()),
                "asr_labels": sum(len(store.label_frame(b.batch_id)) for b in store.batches()),
                "asr_requests_waiting": len(queue),
                "asr_disk_free_bytes": shutil.disk_usage(store_path().parent).free,
            }
        return "\n".join([*lines, *(f"{name} {value}" for name, value in figures.items()), ""])


MEASURED = Measured()


def _memory() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:  # no Linux: the most it ever was
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * resource.getpagesize()


class Watch:
    """Counts every answer, and writes down sign-ins, refusals, failures and slow answers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and look at what becomes of it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        started = time.monotonic()
        status: int = 0

        async def looked_at(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
            elif message["type"] == "websocket.accept":
                status = 101
            elif message["type"] == "websocket.close" and not status:
                status = 403
            await send(message)

        is_socket = scope["type"] == "websocket"
        MEASURED.sockets += is_socket
        try:
            await self.app(scope, receive, looked_at)
        except Exception:
            status = 500
            raise
        finally:
            MEASURED.sockets -= is_socket
            seconds = time.monotonic() - started
            if not is_socket:
                MEASURED.add(status or 500, seconds)
            _write_down(scope, status, seconds)


def _write_down(scope: Scope, status: int, seconds: float) -> None:
    method, path = scope.get("method", "WEBSOCKET"), scope["path"]
    signs_in = (method == "POST" and path == SIGN_IN) or path == CALLBACK
    MEASURED.refused_sign_ins += signs_in and status in (403, 429)
    if signs_in:
        done = status == (200 if path == CALLBACK else 303)
        what, level = ("signed in" if done else "sign-in refused"), logging.INFO
    elif status >= 500:
        what, level = "failed", logging.ERROR
    elif status in (403, 411, 413):
        what, level = "refused", logging.WARNING
    elif method != "WEBSOCKET" and seconds > SLOW_S:
        what, level = "slow", logging.WARNING
    else:
        return
    client = scope["client"][0] if scope.get("client") else "unknown"
    told = {"method": method, "path": path.encode("unicode_escape").decode()[:80]}
    LOG.log(
        level,
        what,
        extra={"told": told | {"status": status, "s": round(seconds, 3), "from": client}},
    )


class Lines(logging.Formatter):
    """One line a record: text for people, or JSON for machines."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self.as_json = as_json
        self.converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line."""
        at = self.formatTime(record, "%Y-%m-%dT%H:%M:%SZ")
        told = {"at": at, "level": record.levelname.lower(), "what": record.getMessage()}
        told |= getattr(record, "told", {})
        if self.as_json:
            return json.dumps(told)
        return " ".join([at, told.pop("level"), told.pop("what"),
                         *(f"{k}={v}" for k, v in told.items() if k != "at")])  # fmt: skip


def set_up_log() -> None:
    """Write the log of the server to standard error, as the settings ask for."""
    if LOG.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(as_json=os.environ.get(LOG_FORMAT) == "json"))
    LOG.addHandler(handler)
    LOG.addFilter(Bounded())
    LOG.setLevel((os.environ.get(LOG_LEVEL) or "info").upper())
    LOG.propagate = False
