"""Take screenshots of every page, full and empty, in every look.

Run with `make screens`; look at what comes out in .screens. Those that README or a page under docs
shows are kept in docs/screens. Some of them only:
`SCREENS=/tmp/looked-at python -m benchmarks.screens certificates reviewers`.
"""

import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.screens.reviewing import STATES
from calibration.analyses.demo import build_demo
from calibration.store import Store
from reference_dataset.loader import load_reference
from tests.analyses.worlds import repeated_world
from tests.browser.conftest import CHROMIUM_ARGS, Server

ROOT = Path(__file__).parents[2]
OUT = Path(os.environ.get("SCREENS") or ROOT / ".screens")
SHOWN = ROOT / "docs" / "screens"
SIZES = {"1440": (1440, 900), "1024": (1024, 768)}
SCHEMES = ("light", "dark")
MOST_HEIGHT, SHOWN_HEIGHT = 8_000, 1_600
PAGES = "pages"

EMPTY = (
    "agreement", "adjudicate", "reviewers", "judge", "asr", "reliability", "overview", "data",
    "start",
)  # fmt: skip


def take(browser: Browser, server: Server, name: str, path: str, *, whole: bool) -> None:
    """Photograph one page in every size and scheme."""
    for width, (x, y) in SIZES.items():
        for scheme in SCHEMES:
            page = _page(browser, x, y, scheme)
            page.goto(f"{server.url}/{path}")
            _settle(page)
            if whole:
                height = page.locator("[data-testid=stMain]").evaluate("e => e.scrollHeight")
                page.set_viewport_size({"width": x, "height": min(max(y, height), MOST_HEIGHT)})
                _settle(page)
            page.screenshot(path=OUT / f"{name}-{width}-{scheme}.png")
            page.context.close()


def take_desk(browser: Browser, server: Server, name: str, act: Callable[[Page], None]) -> None:
    """Photograph one state of the desk, once wide and light and once narrow and dark."""
    for width, scheme in (("1440", "light"), ("1024", "dark")):
        page = _sign_in(browser, server, width, scheme, name)
        act(page)
        page.wait_for_timeout(700)
        page.screenshot(path=OUT / f"{name}-{width}-{scheme}.png")
        page.context.close()


def take_state(browser: Browser, name: str, act: Callable[[Page], None]) -> None:
    """Photograph what an act leads to, once wide and light and once narrow and dark."""
    for width, scheme in (("1440", "light"), ("1024", "dark")):
        page = _page(browser, *SIZES[width], scheme)
        act(page)
        page.screenshot(path=OUT / f"{name}-{width}-{scheme}.png")
        page.context.close()


def _page(browser: Browser, width: int, height: int, scheme: str) -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    return context.new_page()


def _sign_in(browser: Browser, server: Server, width: str, scheme: str, name: str) -> Page:
    page = _page(browser, *SIZES[width], scheme)
    page.goto(server.url)
    page.get_by_label("name").fill(f"Mara {width} {name}")
    page.get_by_role("button", name="Start labelling").click()
    page.get_by_role("button", name="Start practising").click()
    page.locator(".desk[data-ready=true]").wait_for()
    _settle(page)
    return page


def _settle(page: Page) -> None:
    page.wait_for_selector("[data-testid=stMain]")
    page.wait_for_timeout(2_500)
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    page.wait_for_timeout(1_500)


def press(*keys: str) -> Callable[[Page], None]:
    """Return an act that presses keys one after the other."""

    def act(page: Page) -> None:
        for key in keys:
            page.keyboard.press(key)
            page.wait_for_timeout(150)

    return act


def _practise(page: Page) -> bool:
    """Label the trace at hand and go on to the next; False when there is none."""
    press("n")(page)
    page.wait_for_timeout(900)
    press("Enter")(page)
    page.wait_for_timeout(700)
    return page.locator(".desk").get_attribute("data-state") != "finished"


def _finish(page: Page) -> None:
    while _practise(page):
        pass


def _lesson(page: Page) -> None:
    """Go on to the first fabrication of the practice form, and label it."""
    labels = load_reference().labels
    while labels[page.locator(".desk").get_attribute("data-trace") or ""].outcome != "hallucinated":
        _practise(page)
    press("y", "n", "y")(page)
    page.wait_for_timeout(1_500)


def take_repeated(browser: Browser, folder: Path) -> None:
    """Photograph the Reliability page of tasks that were run repeatedly."""
    server = Server(folder / "repeated.duckdb")
    repeated_world(server.store).store.close()
    server.start()
    take(browser, server, "reliability", "reliability", whole=True)
    server.stop()


def take_pages(browser: Browser, folder: Path) -> None:
    """Photograph every page of an empty and of a demo store, and the states of the desk."""
    empty = Server(folder / "empty.duckdb")
    Store.open(empty.store, create=True).close()
    demo = Server(folder / "demo.duckdb")
    with Store.open(demo.store, create=True) as store:
        build_demo(store, seed=1)
        store.add_reviewer("Lea", role="lead")
    unfinished = Server(folder / "unfinished.duckdb")
    with Store.open(unfinished.store, create=True) as store:
        build_demo(store, seed=1, unfinished=True)
    empty.start()
    for name in ("label", *EMPTY):
        take(browser, empty, f"{name}-empty", name if name != "label" else "", whole=False)
    empty.stop()
    unfinished.start()
    take(browser, unfinished, "overview", "overview?reviewer=demo-lead", whole=True)
    unfinished.stop()
    demo.start()
    take(browser, demo, "label-who", "", whole=False)
    take(browser, demo, "data", "data?reviewer=lea", whole=False)
    take(browser, demo, "agreement", "agreement?reviewer=lea", whole=True)
    take(browser, demo, "judge", "judge?reviewer=lea", whole=True)
    take(browser, demo, "asr", "asr?reviewer=lea", whole=True)
    take_repeated(browser, folder)
    take_desk(browser, demo, "label-help", press("?"))
    take_desk(browser, demo, "practice-handbook", press("y", "h"))
    take_desk(browser, demo, "practice-fabrication", _lesson)
    take_desk(browser, demo, "label-skip", press("s"))
    take_desk(browser, demo, "label-sub-goals", press("y", "g"))
    take_desk(browser, demo, "label-search", press("/", "t", "h", "e", "Enter"))
    take_desk(browser, demo, "label-own", press("n", "Enter", "l"))
    take_desk(browser, demo, "label-evidence", press("y", "y"))
    take_desk(browser, demo, "label-finished", _finish)
    for width, scheme in ((w, s) for w in SIZES for s in SCHEMES):
        page = _sign_in(browser, demo, width, scheme, scheme)
        press("y", "n")(page)
        page.wait_for_timeout(900)
        page.screenshot(path=OUT / f"label-{width}-{scheme}.png")
        page.context.close()
    demo.stop()


def keep_shown() -> None:
    """Put the top of the screenshots that a document shows in docs/screens, and no others."""
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = "".join(document.read_text(encoding="utf-8") for document in documents)
    shown = set(re.findall(r"screens/([\w-]+\.png)", texts))
    for old in SHOWN.glob("*.png"):
        if old.name not in shown:
            old.unlink()
    for name in shown:
        if (OUT / name).exists():
            with Image.open(OUT / name) as taken:
                top = (0, 0, taken.width, min(taken.height, SHOWN_HEIGHT))
                taken.crop(top).save(SHOWN / name, optimize=True)


def main(wanted: list[str]) -> None:
    """Photograph the app in its states, or in those that are `wanted`."""
    if unknown := set(wanted) - {PAGES, *STATES}:
        sys.exit(
            f"no screens of {', '.join(sorted(unknown))}; there are {', '.join([PAGES, *STATES])}"
        )
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=CHROMIUM_ARGS
        )
        if not wanted or PAGES in wanted:
            take_pages(browser, Path(folder))
        for name, state in STATES.items():
            if not wanted or name in wanted:
                state(browser, Path(folder), take, take_state)
        browser.close()
    keep_shown()


if __name__ == "__main__":
    main(sys.argv[1:])
