"""Measure every page that a lead opens: height, words, serious accessibility errors, seconds.

Run with `make bench-pages`; the table goes into docs/benchmarks/pages.md. The store is the demo,
the window 1440 x 900 px, light, with nothing unfolded. Cold is the first visit after the server
started, warm the median of three later ones, each in a new tab, until no part of the page is stale.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from benchmarks.report import add_section, run_head, table
from calibration.analyses.demo import build_demo
from calibration.store import Store
from tests.browser.conftest import CHROMIUM_ARGS, Server
from tests.browser.test_accessibility import violations

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "pages.md"
MOST_HEIGHT = 2_400
SEED = 1
ADDRESSES = {
    "Home": "overview", "Agreement": "agreement", "Adjudicate": "adjudicate", "Judge": "judge",
    "ASR": "asr", "Reviewers": "reviewers", "Certificate": "certify", "Data": "data",
    "Trace": "trace?id=run-0002", "Set up": "start", "Label": "label",
}  # fmt: skip
DONE = """() => {
  const app = document.querySelector('[data-testid=stApp]');
  return app?.dataset.testScriptState === 'notRunning'
    && document.querySelector('[data-testid=stMain] [data-testid=stElementContainer]')
    && !document.querySelector('[data-stale="true"], [data-testid=stSkeleton]');
}"""
HEIGHT = """() => Math.max(...[...document.querySelectorAll('[data-testid=stMainBlockContainer]')]
  .map((e) => Math.ceil(e.getBoundingClientRect().height)))"""


def visit(browser: Browser, address: str) -> tuple[float, int, int, int]:
    """Open a page; return seconds, height in px, words and serious violations."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    try:
        page = context.new_page()
        began = time.perf_counter()
        page.goto(address)
        page.wait_for_function(DONE, timeout=120_000)
        took = time.perf_counter() - began
        page.wait_for_timeout(2_500)  # what fades in is measured in full
        page.wait_for_function(DONE, timeout=120_000)
        words = len(page.locator("[data-testid=stMain]").inner_text().split())
        return took, int(page.evaluate(HEIGHT)), words, len(violations(page))
    finally:
        context.close()


def measure(server: Server, browser: Browser, address: str) -> list[object]:
    """Return the row of a page: the server is started anew for the cold visit."""
    server.start()
    url = f"{server.url}/{address}{'&' if '?' in address else '?'}reviewer=lea"
    cold, *_ = visit(browser, url)
    later = [visit(browser, url) for _ in range(3)]
    server.stop()
    _, height, words, serious = later[-1]
    warm = statistics.median(took for took, *_ in later)
    return [f"{height:,}", words, serious, f"{cold:.2f}", f"{warm:.2f}"]


def main() -> None:
    """Measure all pages and write the table."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=CHROMIUM_ARGS
        )
        server = Server(Path(folder) / "demo.duckdb")
        with Store.open(server.store, create=True) as store:
            build_demo(store, seed=SEED)
            store.add_reviewer("Lea", role="lead")
        rows = [[name, *measure(server, browser, at)] for name, at in ADDRESSES.items()]
        browser.close()
    columns = ["page", "height, px", "words", "serious", "cold, s", "warm, s"]
    section = run_head(["streamlit", "playwright"], load=load, seed=SEED) + table(columns, rows)
    doc = (__doc__ or "").partition("\n")[2].strip()
    add_section(PAGE, section, head=f"# Pages\n\n{doc}\n\nThe aim: at most {MOST_HEIGHT:,} px.\n")


if __name__ == "__main__":
    main()
