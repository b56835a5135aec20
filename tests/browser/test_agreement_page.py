"""The agreement page in a real browser: from a number to its traces to one trace, and back."""

import csv
import io
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from calibration.analyses.agreement.analysis import AgreementAnalysis, analyse_agreement
from calibration.analyses.agreement.traces import confused
from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.test_accessibility import violations
from tests.stores import copy_store

pytestmark = [pytest.mark.browser, pytest.mark.long]

# The first page of a server is slow on a busy machine.
SLOW_MS = 60_000


@pytest.fixture
def result(server: Server, built_demo: Path) -> AgreementAnalysis:
    with Store.open(copy_store(built_demo, server.store)) as store:
        store.add_reviewer("Lea", role="lead")
        return analyse_agreement(store)


def grid(page: Page, name: str) -> Locator:
    """Return the table of this accessible name."""
    return page.locator("[data-testid=stDataFrame]").filter(
        has=page.locator(f"[aria-label*='{name}']")
    )


def click_cell(page: Page, table: Locator, across: int, row: int) -> None:
    """Click into a row of a table: it is drawn on a canvas, so by place."""
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    assert box is not None
    x, y = box["x"] + across, box["y"] + 34 * (row + 1) + 17
    # The table follows the mouse: a click out of nowhere is none.
    page.mouse.move(x, y + 3)
    page.mouse.move(x, y)
    page.wait_for_timeout(300)
    page.mouse.click(x, y, delay=40)


def open_section(page: Page, key: str) -> None:
    """Open a section by its heading, with the keyboard."""
    heading = page.locator(f".st-key-{key}_section summary")
    heading.focus()
    page.keyboard.press("Enter")
    expect(page.locator(f".st-key-{key}_section details")).to_have_attribute("open", "")
    page.wait_for_timeout(500)


def height(page: Page) -> float:
    """Return how high a page is, whatever the window shows of it."""
    box = page.locator("[data-testid=stMainBlockContainer]").bounding_box()
    assert box is not None
    return box["height"]


def test_from_a_number_to_its_traces(server: Server, page: Page, result: AgreementAnalysis) -> None:
    expected = confused(result, 0, 2).trace_ids
    server.start()
    page.goto(f"{server.url}/agreement?reviewer=lea")
    expect(page.get_by_role("heading", name="Do next")).to_be_visible(timeout=SLOW_MS)
    assert height(page) <= 2_400
    open_section(page, "agreement_confused")
    open_section(page, "agreement_export")
    expect(page.get_by_role("button", name="Download as CSV")).to_have_count(0)
    page.wait_for_timeout(1500)

    click_cell(page, grid(page, "Pairs of classes"), 300, 0)
    said = f"{len(expected)} traces where Completed and Partial-incorrect are confused"
    shown = page.locator(".st-key-agreement_chip")
    expect(shown.get_by_text(said)).to_be_visible()
    expect(shown).to_be_in_viewport()
    expect(page.get_by_role("heading", name="Least certain class first")).to_be_visible()
    page.get_by_role("link", name="See the traces").click()
    traces = grid(page, "Traces where Completed")
    expect(traces).to_be_in_viewport()
    page.wait_for_timeout(500)

    click_cell(page, traces, 40, 1)
    opened = page.locator(".st-key-agreement_opened")
    expect(opened.get_by_text(f"{expected[1]} (2 of {len(expected)})")).to_be_visible()
    # The keyboard goes on from there.
    page.keyboard.press("ArrowDown")
    expect(opened.get_by_text(f"{expected[2]} (3 of {len(expected)})")).to_be_visible()
    third = next(of for of in result.disputed if of.trace_id == expected[2])
    for outcome in third.classes.values():
        title = result.taxonomy.titles[outcome]
        expect(opened.get_by_text(f"(simulated): {title}")).to_be_visible()
    opened.get_by_role("button", name="Previous trace").click()
    expect(opened.get_by_text(f"{expected[1]} (2 of {len(expected)})")).to_be_visible()
    assert violations(page) == []

    with page.expect_download() as export:
        page.get_by_role("button", name=f"Download these {len(expected)} as CSV").click()
    rows = list(csv.DictReader(io.StringIO(export.value.path().read_text(), newline="")))
    assert [row["trace_id"] for row in rows] == list(expected)
    with page.expect_download() as export:
        page.get_by_role("button", name="Ratings as CSV").click()
    assert len(Path(export.value.path()).read_text().splitlines()) == 601

    page.get_by_role("button", name="Show all").click()
    expect(shown).to_have_count(0)
    expect(page.get_by_text("36 traces on which reviewers differ")).to_be_visible()
    # What is open stays open.
    expect(grid(page, "Traces on which")).to_be_visible()
    # What was clicked before is clicked again: it counts again.
    click_cell(page, grid(page, "Pairs of classes"), 300, 1)
    expect(shown.get_by_text("6 traces where Completed and Partial-correct")).to_be_visible()
