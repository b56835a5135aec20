"""The Data page in a real browser: files in, traces found, a batch and a CSV out."""

import csv
import io
import json
from pathlib import Path

import pytest
from playwright.sync_api import Download, Page, expect

from calibration.store import Store, TraceFilter
from tests.browser.conftest import Server

pytestmark = pytest.mark.browser

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


def cells(download: Download) -> list[list[str]]:
    text = download.path().read_bytes().decode()
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.long
def test_files_become_a_batch(server: Server, page: Page, tmp_path: Path) -> None:
    with Store.open(server.store, create=True) as store:
        store.add_reviewer("Lea", role="lead")
    server.start()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{server.url}/data?reviewer=lea")
    expect(page.get_by_role("tab", name="Import files")).to_have_attribute(
        "aria-selected", "true", timeout=SLOW_MS
    )
    page.locator("input[type=file]").set_input_files(runs(tmp_path / "marker-file.jsonl"))
    page.get_by_role("button", name="Read the files").click()
    expect(page.get_by_text("What the files hold")).to_be_visible(timeout=SLOW_MS)
    with page.expect_download() as aside:
        page.get_by_role("button", name="Download what was set aside").click()
    name, line, reason = cells(aside.value)[1]
    assert (name, line) == ("marker-file.jsonl", "4")
    assert reason
    page.get_by_label("Ceiling, USD a unit").fill("0.5")
    page.get_by_label("Ceiling, USD a unit").press("Enter")
    page.get_by_role("button", name="Import 3 traces").click()
    expect(page.get_by_role("heading", name="Imported", exact=True)).to_be_visible(timeout=SLOW_MS)

    page.get_by_role("tab", name="Traces").click()
    expect(page.get_by_role("heading", name="3 traces")).to_be_visible(timeout=SLOW_MS)
    page.get_by_role("combobox", name="Tool called").click()
    page.get_by_role("option", name="pay").click()
    expect(page.get_by_role("heading", name="2 traces")).to_be_visible(timeout=SLOW_MS)
    page.get_by_role("combobox", name="How its calls ended").click()
    page.get_by_role("option", name="a call ended in an error").click()
    expect(page.get_by_role("heading", name="1 traces")).to_be_visible(timeout=SLOW_MS)
    # The table's own download would not guard its cells.
    expect(page.get_by_role("button", name="Download as CSV")).to_have_count(0)
    with page.expect_download() as export:
        page.get_by_role("button", name="Export all 1 as CSV").click()
    head, values = cells(export.value)
    row = dict(zip(head, values, strict=True))
    assert row["trace_id"] == "r1"
    assert row["task"].startswith("'=1+1")
    page.get_by_role("button", name="Make the batch").dblclick()
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
