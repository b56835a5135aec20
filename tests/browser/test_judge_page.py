"""The judge page in a real browser: from a cell to its traces to one trace, and a batch made."""

import csv
import io
import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from calibration.analyses.judge.diagnostics import (
    JudgedTraces,
    diagnose_judge,
    in_cell,
    judged_traces,
)
from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.test_accessibility import settle, violations
from tests.browser.test_agreement_page import SLOW_MS, click_cell, grid
from tests.stores import copy_store

pytestmark = pytest.mark.browser


@pytest.fixture
def traces(server: Server, built_demo: Path) -> JudgedTraces:
    with Store.open(copy_store(built_demo, server.store)) as store:
        store.add_reviewer("Lea", role="lead")
        of = diagnose_judge(store).provenance
        return judged_traces(store, of.batch_id, of.judge_id)


@pytest.mark.long
def test_from_a_cell_to_its_traces_and_one_of_them(
    server: Server, page: Page, traces: JudgedTraces
) -> None:
    expected = in_cell(traces, "partial_plus", "complete").trace_ids
    server.start()
    page.goto(f"{server.url}/judge?reviewer=lea")
    expect(page.get_by_role("heading", name="What would make it better?")).to_be_visible(
        timeout=SLOW_MS
    )
    page.wait_for_timeout(1500)

    # The first column holds the names of the rows.
    click_cell(page, grid(page, "Human class in rows"), 160, 1)
    said = f"{len(expected)} traces that a human calls partial_plus and the judge complete"
    shown = page.locator(".st-key-judge_chip")
    expect(shown.get_by_text(said)).to_be_visible()
    expect(shown).to_be_in_viewport()
    page.get_by_role("link", name="See them").click()
    listed = grid(page, "Traces that a human calls")
    expect(listed).to_be_in_viewport()
    page.wait_for_timeout(500)

    click_cell(page, listed, 40, 1)
    opened = page.locator(".st-key-judge_opened")
    expect(opened.get_by_text(f"{expected[1]} (2 of {len(expected)})")).to_be_visible()
    expect(opened.get_by_text("demo-judge: complete")).to_be_visible()
    opened.get_by_role("button", name="Next trace").click()
    expect(opened.get_by_text(f"{expected[2]} (3 of {len(expected)})")).to_be_visible()
    settle(page)
    assert violations(page) == []

    with page.expect_download() as export:
        page.get_by_role("button", name=f"Download these {len(expected)} as CSV").click()
    rows = list(csv.DictReader(io.StringIO(export.value.path().read_text(), newline="")))
    assert [row["trace_id"] for row in rows] == list(expected)
    assert {row["verdict"] for row in rows} == {"complete"}
    with page.expect_download() as export:
        page.get_by_role("button", name="Calibration as JSON").click()
    assert json.loads(export.value.path().read_text())["judge_id"] == "demo-judge"

    page.get_by_role("button", name="Show all").click()
    expect(shown).to_have_count(0)
    expect(page.get_by_text("54 traces on which a human and the judge differ")).to_be_visible()


@pytest.mark.long
def test_an_allocation_is_drawn_and_its_strata_are_shown(
    server: Server, page: Page, traces: JudgedTraces
) -> None:
    assert traces.labelled
    server.start()
    page.goto(f"{server.url}/judge?reviewer=lea")
    draw = page.get_by_role("button", name="Draw this batch")
    expect(draw).to_be_visible(timeout=SLOW_MS)
    settle(page)
    draw.click()
    done = page.locator(".st-key-judge_allocated_done")
    expect(done.get_by_text("reviewers find it on the Label page")).to_be_visible()
    expect(done.get_by_text("complete x code_review")).to_be_visible()
    # The page stays with the batch it is about, also when it is drawn anew.
    page.get_by_role("link", name="ASR").click()
    expect(page.get_by_role("heading", name="Agent success rate").first).to_be_visible()
    # The file itself: what a running app shows to others is some seconds old.
    server.stop()
    with Store.open(server.store) as store:
        assert [b.design.get("allocation") for b in store.batches()].count("neyman") == 1
