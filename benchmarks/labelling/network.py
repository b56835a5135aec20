"""The desk over a slow line: every connection of a page goes through a relay with a delay."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser

from app.desk.data import trace_for_page
from benchmarks.labelling.keys import DESK_SHOWN, TIMER, timed_press
from benchmarks.labelling.report import Times
from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.desk import Desk
from tests.browser.samples import build_store

ROUND_TRIP_S, BYTES_PER_S = 0.15, 125_000.0  # 1 Mbit/s
CHUNK = 4_096


class Direction:
    """One way of a line, which all connections share: a chunk waits for those before it."""

    def __init__(self) -> None:
        self.free_at = 0.0
        self.n_bytes = 0

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what comes, late and no faster than the line."""
        sent: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due, chunk = await sent.get()
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                if not chunk:
                    writer.close()
                    return
                writer.write(chunk)

        delivering = asyncio.create_task(deliver())
        with suppress(ConnectionError):
            while chunk := await reader.read(CHUNK):
                self.n_bytes += len(chunk)
                start = max(time.monotonic(), self.free_at)
                self.free_at = start + len(chunk) / BYTES_PER_S
                sent.put_nowait((self.free_at + ROUND_TRIP_S / 2, chunk))
                # The sender feels a full line, as it would feel a full socket.
                await asyncio.sleep(max(0.0, start - time.monotonic()))
        sent.put_nowait((time.monotonic() + ROUND_TRIP_S / 2, b""))
        with suppress(ConnectionError):
            await delivering


@contextmanager
def slow_line(port: int) -> Iterator[tuple[int, Direction]]:
    """Relay to a port of this machine; gives the port of the relay and the way to the page."""
    up, down = Direction(), Direction()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(up.carry(reader, back), down.carry(there, writer))

    loop = asyncio.new_event_loop()
    # The loop of Playwright runs in this thread.
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    serving = asyncio.run_coroutine_threadsafe(
        asyncio.start_server(connect, "127.0.0.1", 0), loop
    ).result()
    try:
        yield serving.sockets[0].getsockname()[1], down
    finally:
        asyncio.run_coroutine_threadsafe(_hang_up(serving), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _hang_up(serving: asyncio.Server) -> None:
    """End what is still being carried."""
    serving.close()
    carrying = asyncio.all_tasks() - {asyncio.current_task()}
    for task in carrying:
        task.cancel()
    await asyncio.gather(*carrying, return_exceptions=True)


@dataclass(frozen=True)
class SlowDesk:
    """What a reviewer waits for on a slow line, and what comes over it.

    `bytes_a_label` : with the next trace; `bytes_a_trace` : the texts of that trace alone.
    """

    first_s: float
    first_bytes: int
    next_trace: Times
    confirmed: Times
    bytes_a_label: float
    bytes_a_trace: float


def slow_desk(browser: Browser, folder: Path, *, n: int) -> SlowDesk:
    """Open the desk on a slow line and label `n` traces of 20 steps, one every two seconds."""
    server = Server(folder / "slow.duckdb")
    build_store(server.store, n + 5, steps=20, evenly=True)
    with Store.open(server.store) as store:
        (as_shown,) = store.for_review(["t-001"])
    server.start()
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        with slow_line(server.port) as (port, down):
            page = context.new_page()
            page.set_default_timeout(120_000)
            page.add_init_script(TIMER % DESK_SHOWN)
            desk = Desk(page, f"http://127.0.0.1:{port}")
            start = time.monotonic()
            page.goto(desk.url)
            page.get_by_label("name").wait_for()
            first_s, first_bytes = time.monotonic() - start, down.n_bytes
            desk.open()
            desk.wait_saved()
            page.wait_for_timeout(2_000)
            passed, confirmed = [], []
            before = down.n_bytes
            for _ in range(n):
                here, pressed = desk.get("trace"), time.monotonic()
                passed.append(timed_press(page))
                desk.wait_saved()
                confirmed.append(1000 * (time.monotonic() - pressed))
                desk.wait_painted(here)
                page.wait_for_timeout(max(0.0, 2_000 - 1000 * (time.monotonic() - pressed)))
            carried = (down.n_bytes - before) / n
    finally:
        context.close()
        server.stop()
    return SlowDesk(
        first_s=first_s,
        first_bytes=first_bytes,
        next_trace=Times.of("key to next trace", passed),
        confirmed=Times.of("key to confirmed", confirmed),
        bytes_a_label=carried,
        bytes_a_trace=len(json.dumps(trace_for_page(as_shown)).encode()),
    )
