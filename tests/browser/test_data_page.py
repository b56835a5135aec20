"""The Data page in a real browser: files in, traces found, a batch and a CSV out."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Download, Page, expect

from calibration.store import Store, TraceFilter
from tests.browser.conftest import Server
from tests.browser.desk import settle
from tests.store.builders import make_trace

pytestmark = [pytest.mark.browser, pytest.mark.long]

# The first page of a server is slow on a busy machine.
SLOW_MS = 30_000

EVIL = "=1+1 ![x](http://evil.test/x.png) <img src='http://evil.test/y.png'>"


def runs(path: Path) -> Path:
    """Write three trials of one task: one pays, one fails to pay, one does neither."""
    rows = []
    for trial, calls in enumerate(([False], [False, True], [])):
        steps = [{"role": "tool", "tool": "pay", "result": "x", "error": e} for e in calls]
        rows.append(
            {"trace_id": f"r{trial}", "workflow": EVIL, "task_id": "7", "trial": trial,
             "prompt": f"{EVIL} {trial}", "steps": steps, "status": "failed",
             "model": "marker-model", "cost_usd": 7654.25}
        )  # fmt: skip
    rows.append({"trace_id": "broken", "cost_usd": EVIL})
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def search(page: Page, line: str, heading: str) -> None:
    """Type into the search line as a person does, and wait for what it finds."""
    settle(page)  # a run of the page that ends while somebody types takes the line anew
    box = page.get_by_role("combobox", name="Search")
    box.press_sequentially(line)
    box.press("Enter")
    box.press("Escape")
    expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible(timeout=SLOW_MS)


def click_row(page: Page, row: int) -> None:
    """Click the id of a trace in the table, which is drawn on a canvas."""
    table = page.get_by_test_id("stDataFrame").first
    expect(table.locator("canvas").first).to_be_visible(timeout=SLOW_MS)
    table.locator(".dvn-scroller").click(position={"x": 50, "y": 35 + 35 * row + 17})


def cells(download: Download) -> list[list[str]]:
    text = download.path().read_bytes().decode()
    return list(csv.reader(io.StringIO(text, newline="")))


def test_files_become_a_batch(server: Server, page: Page, tmp_path: Path) -> None:
    with Store.open(server.store, create=True) as store:
        store.add_reviewer("Lea", role="lead")
    server.start()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{server.url}/data?reviewer=lea")
    page.locator("input[type=file]").set_input_files(runs(tmp_path / "marker-file.jsonl"))
    page.get_by_role("button", name="Read the files").click()
    expect(page.get_by_text("Contents of the files")).to_be_visible(timeout=SLOW_MS)
    with page.expect_download() as aside:
        page.get_by_role("button", name="Download the skipped rows").click()
    name, line, reason = cells(aside.value)[1]
    assert (name, line) == ("marker-file.jsonl", "4")
    assert reason
    page.get_by_label("Ceiling, USD per unit").fill("0.5")
    page.get_by_label("Ceiling, USD per unit").press("Enter")
    page.get_by_role("button", name="Import 3 traces").click()
    expect(page.get_by_role("heading", name="Imported", exact=True)).to_be_visible(timeout=SLOW_MS)

    expect(page.get_by_role("heading", name="3 traces")).to_be_visible(timeout=SLOW_MS)
    search(page, "tool:pay", "2 traces")
    search(page, "error:yes", "1 trace")
    # The table's own download would not guard its cells.
    expect(page.get_by_role("button", name="Download as CSV")).to_have_count(0)
    page.get_by_text("Make a batch of these").click()
    with page.expect_download() as export:
        page.get_by_role("button", name="Export all 1 as CSV").click()
    head, values = cells(export.value)
    row = dict(zip(head, values, strict=True))
    assert row["trace_id"] == "r1"
    assert row["task"].startswith("'=1+1")
    page.get_by_role("button", name="Create the batch").dblclick()
    expect(page.get_by_text("production-001: 1 traces, ready on the Label page.")).to_be_visible(
        timeout=SLOW_MS
    )
    server.stop()
    assert [url for url in asked if "evil.test" in url] == []
    with Store.open(server.store) as store:
        (batch,) = store.batches()
        assert list(store.batch_items(batch.batch_id)["trace_id"]) == ["r1"]
        assert TraceFilter.from_dict(batch.design["filters"]).tool_ended == "error"
        assert store.workflows()[EVIL].ceiling_usd == 0.5


def test_a_trace_is_opened_from_the_list_and_left_again(server: Server, page: Page) -> None:
    with Store.open(server.store, create=True) as store:
        store.add_reviewer("Lea", role="lead")
        store.ingest([make_trace(k, trace_id=f"run-{k}") for k in range(4)])
        store.ingest([make_trace(9, workflow="hotels")])
    server.start()
    page.goto(f"{server.url}/data?reviewer=lea")
    expect(page.get_by_role("heading", name="5 traces")).to_be_visible(timeout=SLOW_MS)
    search(page, "workflow:research", "4 traces")
    listed = f"{server.url}/data?q=workflow%3Aresearch&reviewer=lea"
    expect(page).to_have_url(re.compile(re.escape("q=workflow%3Aresearch")))
    click_row(page, 1)
    expect(page.get_by_role("heading", name="run-1", exact=True)).to_be_visible(timeout=SLOW_MS)
    expect(page).to_have_url(re.compile(r"/trace\?id=run-1&list=\w+&reviewer=lea$"))
    page.keyboard.press("n")
    expect(page.get_by_text("3 of 4")).to_be_visible(timeout=SLOW_MS)
    expect(page.get_by_role("heading", name="run-2", exact=True)).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="run-1", exact=True)).to_be_visible(timeout=SLOW_MS)
    page.reload()
    expect(page.get_by_text("2 of 4")).to_be_visible(timeout=SLOW_MS)
    # Back to the list, by the browser and by the link, with what was searched.
    page.go_back()
    expect(page.get_by_role("heading", name="4 traces")).to_be_visible(timeout=SLOW_MS)
    assert sorted(page.url.split("?")[1].split("&")) == sorted(listed.split("?")[1].split("&"))
    page.go_forward()
    expect(page.get_by_text("2 of 4")).to_be_visible(timeout=SLOW_MS)
    page.get_by_role("link", name="Back to Data").click()
    expect(page.get_by_role("heading", name="4 traces")).to_be_visible(timeout=SLOW_MS)
    page.reload()
    expect(page.get_by_role("heading", name="4 traces")).to_be_visible(timeout=SLOW_MS)
