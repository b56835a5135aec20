"""A real server on a free port, a real browser, and a loud line when there is none."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from calibration.errors import CalibrationError
from calibration.store import Store

APP = Path(__file__).parents[2] / "app" / "asgi.py"
NOT_RUN = "NOT RUN: browser (no chromium)"

# Patience for a machine that does other things as well; nothing here tests how fast it is.
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)

CHROMIUM_ARGS = """
--no-sandbox --disable-gpu --disable-background-networking --disable-component-update
--disable-sync --no-first-run""".split()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    yield
    # From the reports, which also come in from the processes that share the tests out.
    skipped = terminalreporter.stats.get("skipped", [])
    n = sum(NOT_RUN in str(report.longrepr) for report in skipped)
    if n:
        terminalreporter.write_line(f"{NOT_RUN}: {n} tests", red=True, bold=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser | None]:
    found = shutil.which("chromium")
    if found is None:
        yield None
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=CHROMIUM_ARGS)
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser | None) -> Iterator[BrowserContext]:
    if browser is None:
        pytest.skip(NOT_RUN)
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


class Server:
    """The app in a process of its own, on one port, so that it can be stopped and started.

    `identities` is how people of the store say who they are; None leaves it as it is.
    """

    def __init__(self, store: Path, identities: str | None = "open") -> None:
        self.store, self.identities = store, identities
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self.identities is not None and self.store.exists():
            with suppress(CalibrationError), Store.open(self.store) as store:
                store.set_identities(self.identities)
        with self.store.with_suffix(".log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable, "-m", "streamlit", "run", str(APP),
                    f"--server.port={self.port}", "--server.address=127.0.0.1",
                ],
                env=os.environ | {"ASR_STORE": str(self.store), "PYTHONFAULTHANDLER": "1"},
                cwd=self.store.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/healthz", timeout=2) as answer:
                    if answer.read() == b"ok":
                        return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"no server after 30 s: {self.store.with_suffix('.log').read_text()}")

    @property
    def pid(self) -> int:
        assert self.process is not None, "start it first"
        return self.process.pid

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGABRT)  # writes where every thread is
                self.process.wait(timeout=15)
                log = self.store.with_suffix(".log").read_text()
                raise RuntimeError(f"the server does not stop:\n{log[-8_000:]}") from None
            finally:
                self.process = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(timeout=15)
            self.process = None


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "store.duckdb")
    yield server
    server.stop()
