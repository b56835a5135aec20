"""axe-core on every page, light and dark: no serious violation."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from calibration.store import Store
from tests.browser.conftest import NOT_RUN, Server
from tests.browser.desk import settle
from tests.browser.test_data_page import runs
from tests.browser.test_practice import Practice
from tests.stores import copy_store

pytestmark = [pytest.mark.browser, pytest.mark.long]
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]

PAGES = {
    "agreement": "Where disagreements start",
    "judge": "Where the width of the interval comes from",
    "asr": "Agent success rate",
    "reliability": "No repeated runs with labels yet.",
    "start": "Import traces",
    # The first page of a lead has an address like the others.
    "overview?reviewer=lea": "Do next",
    "data?q=class:hallucinated": "class:hallucinated",
    "trace?id=run-0002": "Verdicts",
    "certify?reviewer=lea": "For leads: who is certified",
    "adjudicate?reviewer=lea": "open disagreements",
    "reviewers": "Least agreement with others",
}


@pytest.fixture(scope="module")
def demo(built_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = copy_store(built_demo, tmp_path_factory.mktemp("axe") / "demo.duckdb")
    with Store.open(path) as store:
        store.add_reviewer("Lea", role="lead")
    return path


def violations(page: Page) -> list[str]:
    """Return what axe calls serious or critical, with the element it is about."""
    page.evaluate(AXE)
    found: dict[str, Any] = page.evaluate("(rules) => axe.run({runOnly: rules})", RULES)
    return [
        f"{rule['id']}: {node['html'][:120]}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_violation(
    browser: Browser | None, demo: Path, tmp_path: Path, scheme: Any
) -> None:
    if browser is None:
        pytest.skip(NOT_RUN)
    server = Server(demo)
    server.start()
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
    try:
        page = context.new_page()
        found: dict[str, list[str]] = {}
        for name, waits_for in PAGES.items():
            page.goto(f"{server.url}/{name}")
            page.get_by_text(waits_for).first.wait_for()
            settle(page)
            found[name] = violations(page)
        page.goto(f"{server.url}/data")
        page.get_by_text("Import files").click()
        page.locator("input[type=file]").set_input_files(runs(tmp_path / "runs.jsonl"))
        page.get_by_role("button", name="Read the files").click()
        page.get_by_text("Contents of the files").wait_for()
        page.get_by_label("Ceiling, USD per unit").fill("0.5")
        page.get_by_label("Ceiling, USD per unit").press("Enter")
        expect(page.get_by_role("button", name="Import 3 traces")).to_be_enabled()
        settle(page)
        found["import"] = violations(page)
        page.goto(server.url)
        page.get_by_label("name").wait_for()
        found["who"] = violations(page)
        page.goto(f"{server.url}/label?reviewer=lea")
        page.get_by_role("button", name="Start practising").wait_for()
        settle(page)
        found["welcome"] = violations(page)
        desk = Practice(page, server.url)
        desk.open(f"Anna {scheme}")
        found["desk"] = violations(page)
        desk.press("?")
        found["help"] = violations(page)
        assert {name: said for name, said in found.items() if said} == {}
    finally:
        context.close()
        server.stop()


def test_a_violation_would_be_found(page: Page) -> None:
    """A search that finds nothing anywhere would prove nothing."""
    page.set_content("<img src=x><p style='color: #ddd; background: #fff'>faint</p>")
    assert {"image-alt", "color-contrast"} <= {said.split(":")[0] for said in violations(page)}
