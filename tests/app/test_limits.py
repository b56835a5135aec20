"""What one visitor may take of the server: uploads, sockets, lines of the log."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from app import session
from app.access import sockets, uploads
from app.access.door import Door
from calibration.store import Store, sign_in
from tests.app import test_sign_in
from tests.app.test_sign_in import GOOD, ask
from tests.stores import hashing_quickly

pytestmark = pytest.mark.long  # a server of its own, with its waits

UPLOAD = f"{uploads.PATH}tab/file"


async def taken(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


@pytest.fixture
def tokens(store_file: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return a session of each role, on a server that takes uploads."""
    app = Starlette(
        routes=[Route("/{path:path}", taken, methods=["PUT", "GET"])],
        middleware=[Middleware(Door), Middleware(uploads.Uploads)],
    )
    monkeypatch.setattr(test_sign_in, "APP", app)
    monkeypatch.setattr(sign_in, "DEFAULT", sign_in.PASSPHRASE)
    Store.open(store_file, create=True).close()
    store = hashing_quickly(session.open_store(store_file))
    for name, role in (("Ada", "admin"), ("Lea", "lead"), ("Rea", "reviewer")):
        store.add_reviewer(name, role=role)
        store.set_passphrase(name.lower(), GOOD)
    return {n: store.verify_sign_in(n, GOOD, "127.0.0.1") for n in ("Ada", "Lea", "Rea")}


def put(token: str, n: int | str) -> int:
    return ask("PUT", UPLOAD, b"x" * 10, cookie=token, content_length=str(n)).status


def test_leads_and_admins_upload_and_reviewers_do_not(tokens: dict[str, str]) -> None:
    assert {name: put(token, 10) for name, token in tokens.items()} == {
        "Ada": 200, "Lea": 200, "Rea": 403,
    }  # fmt: skip


def test_a_tab_and_the_server_have_room_for_so_much(
    tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lea, tab, whole = tokens["Lea"], uploads.MOST_OF_SESSION, uploads.MOST_OF_SERVER
    assert put(lea, tab) == 200
    assert put(lea, tab + 1) == 413
    # What has been taken and freed does not count.
    assert [put(lea, tab) for _ in range(3)] == [200] * 3
    monkeypatch.setattr(uploads, "held_bytes", lambda: Counter({"tab": tab - 5}))
    assert (put(lea, 5), put(lea, 6)) == (200, 413)
    monkeypatch.setattr(uploads, "held_bytes", lambda: Counter({"other": whole - 5}))
    assert (put(lea, 5), put(lea, 6)) == (200, 503)
    assert [put(lea, n) for n in ("-1", "x", "1e3", "")] == [411] * 4


def test_a_file_of_a_closed_tab_is_freed(
    tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[str] = []

    class Manager:
        remove_session_files = staticmethod(freed.append)

    class Runtime:
        uploaded_file_mgr = Manager
        is_active_session = staticmethod(lambda tab: tab == "open")

    monkeypatch.setattr("streamlit.runtime.exists", lambda: True)
    monkeypatch.setattr("streamlit.runtime.get_instance", lambda: Runtime)
    put(tokens["Lea"], 10)
    assert freed == ["tab"]
    ask("PUT", f"{uploads.PATH}open/file", b"x", cookie=tokens["Lea"], content_length="1")
    assert freed == ["tab"]


@asynccontextmanager
async def _serving() -> AsyncIterator[int]:
    """A server with the limits, as its port; told to stop and waited for at the end."""

    class Limited(H11Protocol):
        pass

    sockets.limit_sockets(Limited)
    app = Starlette(routes=[Route("/", taken, methods=["GET", "PUT"])])
    server = uvicorn.Server(uvicorn.Config(app, port=0, http=Limited, log_config=None))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await serving


async def _idle(*parts: bytes, n: int = 1) -> list[float]:
    """Connect n times, send parts, and return the seconds until the server hangs up."""

    async def one(port: int) -> float:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        started = time.perf_counter()
        with suppress(ConnectionError):
            for part in parts:
                writer.write(part)
                await asyncio.sleep(0.05)
            await asyncio.wait_for(reader.read(), 4)
        writer.close()
        return time.perf_counter() - started

    async with _serving() as port:
        return await asyncio.gather(*(one(port) for _ in range(n)))


WHOLE = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize("parts", [[], [WHOLE[:-2], b"X-A: b\r\n"] * 2, [WHOLE, WHOLE[:-2]]])
def test_a_socket_without_a_whole_request_is_cut(
    parts: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "HEADERS_S", 0.5)
    (seconds,) = asyncio.run(_idle(*parts))
    assert 0.4 < seconds < 2  # uvicorn alone waits for ever


BODY = b"PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 200000\r\n\r\n"


@pytest.mark.parametrize(
    ("parts", "least", "most"),
    [
        ([BODY], 0.4, 1.5),
        ([BODY, *[b"x" * 9] * 20], 0.4, 1.5),  # byte by byte
        ([BODY, *[b"x" * 1_000] * 20], 1.3, 3.0),  # fast enough for a second, and then silent
    ],
)
def test_a_body_that_comes_too_slowly_is_cut(
    parts: list[bytes], least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "BODY_S", 0.5)
    monkeypatch.setattr(sockets, "LEAST_BYTES_A_SECOND", 5_000)
    (seconds,) = asyncio.run(_idle(*parts))
    assert least < seconds < most  # uvicorn alone waits for ever


def test_a_body_that_the_app_does_not_take_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "BODY_S", 0.5)
    answered = []

    async def busy(request: Request) -> PlainTextResponse:
        await asyncio.sleep(1)  # meanwhile 64 kB wait, and no more is read
        answered.append(len(await request.body()))
        return PlainTextResponse("taken")

    monkeypatch.setitem(globals(), "taken", busy)
    asyncio.run(_idle(BODY + b"x" * 200_000))
    assert answered == [200_000]


def test_more_connections_than_the_limit_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "MOST_CONNECTIONS", 5)
    monkeypatch.setattr(sockets, "HEADERS_S", 1.5)
    seconds = asyncio.run(_idle(b"GET", n=20))
    assert (sum(s < 1 for s in seconds), sum(s > 1 for s in seconds)) == (15, 5)


async def _stop(*parts: bytes) -> float:
    """Connect, send parts, and return the seconds that the server then takes to stop."""
    async with _serving() as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.writelines(parts)
        await asyncio.sleep(0.1)
        told = time.perf_counter()
    writer.close()
    return time.perf_counter() - told


def test_a_server_told_to_stop_does_not_wait_for_a_silent_visitor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sockets, "STOP_S", 0.5)
    assert asyncio.run(_stop(BODY)) < 3  # a body of which nothing comes is cut after 15


def test_a_burst_of_one_text_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    bounded = sockets.Bounded()

    def written(text: str) -> logging.LogRecord | None:
        record = logging.LogRecord("a", logging.WARNING, "f", 1, text, None, None)
        return record if bounded.filter(record) else None

    assert sum(written("Invalid request") is not None for _ in range(500)) == sockets.MOST_RECORDS
    assert written("Another text") is not None
    clock[0] = sockets.SPAN_S + 1
    later = written("Invalid request")
    assert later is not None
    assert later.msg == "Invalid request (480 more were not written)"
