"""Measure every page that a lead opens: height, words, serious accessibility errors, seconds.

Run with `make bench-pages`; the tables go into docs/benchmarks/pages.md. The store is the demo,
the window 1440 x 900 px, light, with nothing unfolded. Cold is the first visit after the server
started, warm the median of three later ones, each in a new tab, until no part of the page is stale.

Then the pages that calculate, on a store a hundred times as large: cold, and another choice in an
open page, which calculates anew. Only this part: `make bench-pages PART=large`.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from benchmarks.report import add_section, run_head, table
from calibration.analyses.demo import N_LABELLED, N_PRODUCTION, build_demo
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
# Pages that calculate, with a choice in them that calculates anew.
CHOICES = {"ASR": "Workflow", "Judge": "The labelled traces are"}
LARGE_PRODUCTION, LARGE_LABELLED = 200_000, 2_000
MOST_TIMES = 2
RUNNING = "() => document.querySelector('[data-test-script-state=running]')"
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


def chosen(browser: Browser, address: str, choice: str) -> tuple[float, float]:
    """Open a page and choose the second entry of a choice; return the seconds of both."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    try:
        began = time.perf_counter()
        page.goto(address)
        page.wait_for_function(DONE, timeout=300_000)
        cold = time.perf_counter() - began
        page.get_by_role("combobox", name=choice).click()
        began = time.perf_counter()
        page.get_by_role("option").nth(1).click()
        page.wait_for_function(RUNNING, timeout=10_000)
        page.wait_for_function(DONE, timeout=300_000)
        return cold, time.perf_counter() - began
    finally:
        page.close()


def compare(browser: Browser, demo: Server, large: Server) -> list[list[object]]:
    """Return the seconds on both stores and their ratio, the least of three, in turns."""
    rows: list[list[object]] = []
    for name, choice in CHOICES.items():
        found: dict[Server, list[tuple[float, float]]] = {demo: [], large: []}
        for _ in range(3):
            for server, times in found.items():
                server.start()
                url = f"{server.url}/{ADDRESSES[name]}?reviewer=lea"
                times.append(chosen(browser, url, choice))
                server.stop()
        for place, what in enumerate(("cold", f"another choice of {choice!r}")):
            small, big = (min(times[place] for times in of) for of in found.values())
            reached = "yes" if big <= MOST_TIMES * small else "no"
            rows.append([name, what, f"{small:.2f}", f"{big:.2f}", f"{big / small:.1f}", reached])
    return rows


def main(part: str = "") -> None:
    """Measure the pages and write the tables; of the `large` store alone if asked."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=CHROMIUM_ARGS
        )
        server, large = (Server(Path(folder) / f"{name}.duckdb") for name in ("demo", "large"))
        for made, n, m in (
            (server, N_PRODUCTION, N_LABELLED),
            (large, LARGE_PRODUCTION, LARGE_LABELLED),
        ):
            with Store.open(made.store, create=True) as store:
                build_demo(store, seed=SEED, n_production=n, n_labelled=m)
                store.add_reviewer("Lea", role="lead")
        pages = {} if part == "large" else ADDRESSES
        rows = [[name, *measure(server, browser, at)] for name, at in pages.items()]
        larger = compare(browser, server, large)
        browser.close()
    section = run_head(["streamlit", "playwright"], load=load, seed=SEED)
    if rows:
        columns = ["page", "height, px", "words", "serious", "cold, s", "warm, s"]
        section += table(columns, rows) + "\n"
    section += f"### {LARGE_PRODUCTION:,} traces, {LARGE_LABELLED:,} labelled\n\n" + table(
        ["page", "what", "demo, s", "large, s", "x", f"at most {MOST_TIMES}"], larger
    )
    doc = (__doc__ or "").partition("\n")[2].strip()
    add_section(PAGE, section, head=f"# Pages\n\n{doc}\n\nThe aim: at most {MOST_HEIGHT:,} px.\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
