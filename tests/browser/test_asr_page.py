"""The ASR page in a real browser: narrowed, taken away as a file, and a trace opened from it."""

import csv
import io
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from calibration.analyses.demo import JUDGE
from calibration.analyses.success_rate.from_store import StoreReport, report_with_work
from calibration.analyses.success_rate.report import ReportOptions
from calibration.reporting.render_html import html
from calibration.reporting.sections.success_rate import document
from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.desk import choose, settle
from tests.browser.test_accessibility import violations
from tests.browser.test_agreement_page import SLOW_MS, click_cell, grid, height
from tests.stores import copy_store

pytestmark = [pytest.mark.browser, pytest.mark.long]

WINDOW = ReportOptions(
    batch_id="production-001", judge_id=JUDGE, workflow="research",
    since="2026-W32", until="2026-W35",
)  # fmt: skip


@pytest.fixture
def expected(server: Server, built_demo: Path) -> StoreReport:
    with Store.open(copy_store(built_demo, server.store)) as store:
        store.add_reviewer("Lea", role="lead")
        return report_with_work(store, WINDOW)


def test_narrowed_saved_and_a_trace_opened(
    server: Server, page: Page, expected: StoreReport
) -> None:
    server.start()
    page.goto(f"{server.url}/asr?reviewer=lea")
    page.get_by_text("runs like the 2,000 production traces").wait_for(timeout=SLOW_MS)

    assert height(page) <= 2_400
    page.get_by_role("radio", name="Last 4 weeks").click()
    page.get_by_text("(2026-W32 to 2026-W35)").first.wait_for(timeout=SLOW_MS)
    choose(page, "Workflow", "research")
    expect(page.get_by_text(expected.report.target)).to_be_visible(timeout=SLOW_MS)
    settle(page)
    assert violations(page) == []

    # The file is the one that the command line writes, and it opens by itself.
    with page.expect_download() as taken:
        page.get_by_role("button", name="HTML").click()
    written = taken.value.path().read_text("utf-8")
    assert written == html(document(expected.report))
    alone = page.context.new_page()
    alone.set_content(written)
    expect(alone.get_by_role("heading", name="Agent Success Rate report")).to_be_visible()
    alone.close()

    items = expected.work["partial_minus"]
    page.get_by_role("button", name="Open the review queue").click()
    listed = grid(page, "Traces labelled Partial-incorrect")
    listed.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    click_cell(page, listed, 40, 1)
    opened = page.locator(".st-key-asr_opened")
    expect(opened.get_by_text(f"{items[1].trace_id} (2 of {len(items)})")).to_be_visible()
    expect(opened.get_by_text("Partial-incorrect").first).to_be_visible()

    with page.expect_download() as taken:
        page.get_by_role("button", name=f"Download these {len(items)} as CSV").click()
    rows = csv.DictReader(io.StringIO(taken.value.path().read_text(), newline=""))
    assert [row["trace_id"] for row in rows] == [item.trace_id for item in items]
