"""From a key that goes down to the next trace painted, as the browser's own clock has it."""

import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.labelling.report import Times
from tests.browser.conftest import CHROMIUM_ARGS, Server
from tests.browser.desk import QUIET_S, Desk
from tests.browser.samples import build_store

PAGE = Path(__file__).with_name("fragment_page.py")

# Installed before any script of the page, so that the key is timed before anybody handles it.
# What is shown is looked at in every frame; once it is new, the first task after the frame
# that shows it ends the measurement: by then that frame has been handed over for painting.
TIMER = """
(() => {
  const SHOWN = %s;
  window.addEventListener('keydown', () => {
    const start = performance.now();
    const before = SHOWN();
    window.__passed = null;
    const look = () => {
      const now = SHOWN();
      if (!now || now === before) { requestAnimationFrame(look); return; }
      requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => { window.__passed = performance.now() - start; };
        channel.port2.postMessage(0);
      });
    };
    requestAnimationFrame(look);
  }, {capture: true});
})()
"""

DESK_SHOWN = """() => document.querySelector('[data-testid=stBidiComponentIsolated]')
  ?.shadowRoot?.querySelector('.desk')?.dataset.trace"""

PAGE_SHOWN = """() => [...document.querySelectorAll('[data-testid=stText]')]
  .map((e) => e.textContent).find((t) => t.startsWith('pressed'))"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a headless Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=CHROMIUM_ARGS
        )
        yield browser
        browser.close()


def timed_press(page: Page) -> float:
    """Press the key that ends a trace; return the milliseconds until the next one is painted."""
    page.evaluate("() => { window.__passed = null }")
    page.keyboard.press("n")
    page.wait_for_function("() => window.__passed !== null", timeout=30_000)
    return float(page.evaluate("() => window.__passed"))


def desk_times(browser: Browser, folder: Path, *, steps: int, n: int) -> Times:
    """Label `n` traces of this many steps by one key each."""
    server = Server(folder / f"steps-{steps}.duckdb")
    build_store(server.store, n + 5, steps=steps, evenly=True)
    server.start()
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        page = context.new_page()
        page.add_init_script(TIMER % DESK_SHOWN)
        desk = Desk(page, server.url)
        desk.open()
        passed = []
        for _ in range(n):
            here = desk.get("trace")
            passed.append(timed_press(page))
            desk.wait_painted(here)
        desk.wait_saved()
    finally:
        context.close()
        server.stop()
    return Times.of(f"desk, {steps} steps", passed)


def fragment_times(browser: Browser, port: int, *, n: int) -> Times:
    """Press the one button of a page that does nothing else."""
    process = subprocess.Popen(
        [
            sys.executable, "-m", "streamlit", "run", str(PAGE), f"--server.port={port}",
            "--server.address=127.0.0.1", "--server.headless=true",
            "--browser.gatherUsageStats=false", "--server.fileWatcherType=none",
        ],
        env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        _wait_for(f"http://127.0.0.1:{port}/_stcore/health")
        page = context.new_page()
        page.add_init_script(TIMER % PAGE_SHOWN)
        page.goto(f"http://127.0.0.1:{port}")
        page.get_by_text("pressed 0").wait_for()
        passed = []
        for _ in range(n):
            time.sleep(QUIET_S)
            passed.append(timed_press(page))
    finally:
        context.close()
        process.terminate()
        process.wait(timeout=15)
    return Times.of("empty fragment rerun", passed)


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"no server at {url} after 30 s")
