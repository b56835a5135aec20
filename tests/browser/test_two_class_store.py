"""A store with one question, from import to gate: two reviewers, agreement, judge, rate."""

import csv
import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from calibration.store import Store
from calibration.taxonomy import load_taxonomy, ready_rubrics
from tests.browser.conftest import Server
from tests.browser.desk import QUIET_S, Desk, settle
from tests.browser.test_agreement_page import SLOW_MS
from tests.browser.test_way_set_up import N, draw, import_in_set_up, runs
from tests.cli_runs import run

pytestmark = [pytest.mark.browser, pytest.mark.long]

RUBRIC = ready_rubrics()["two_class"]
OF_OTHERS = re.compile(r"Partial-|Hallucinated|Abandoned|partial_|hallucinated|abandoned")


def label_all(page: Page, server: Server, name: str, *, fails: int) -> dict[str, str]:
    """Label every trace by one key each: the first `fails` as failures."""
    page.goto(f"{server.url}/label?reviewer={name}")
    desk = Desk(page, server.url)
    desk.wait_painted("")
    given: dict[str, str] = {}
    while desk.get("state") != "finished":
        trace = desk.get("trace")
        given[trace] = "failure" if len(given) < fails else "success"
        desk.press("n" if len(given) <= fails else "y")
        desk.wait_next(trace)
        time.sleep(QUIET_S)
    desk.wait_saved()
    return given


def test_a_store_with_one_question_from_import_to_gate(
    server: Server, page: Page, tmp_path: Path
) -> None:
    with Store.open(server.store, create=True, taxonomy=load_taxonomy(RUBRIC)) as store:
        for name, role in (("Lea", "lead"), ("Ann", "reviewer"), ("Bob", "reviewer")):
            store.add_reviewer(name, role=role)
    server.start()
    page.goto(f"{server.url}/start?reviewer=lea")
    import_in_set_up(page, runs(tmp_path))
    page.get_by_role("button", name="3. Offer practice").click()
    expect(page.get_by_text("asr reference add").first).to_be_visible()
    settle(page)
    page.get_by_role("button", name="4. Draw the first batch").click()
    draw(page)

    labels = {name: label_all(page, server, name, fails=4) for name in ("ann", "bob")}
    assert {*labels["ann"]} == {*labels["bob"]}
    both = sum(labels["ann"][trace] == labels["bob"][trace] for trace in labels["ann"])

    verdicts = tmp_path / "verdicts.csv"
    with verdicts.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([["trace_id", "outcome"], *labels["ann"].items()])
    imported = run("verdicts", "import", verdicts, "--judge", "strict", "--store", server.store)
    assert f"{N}" in imported.output

    seen = {}
    for path, waits_for in (
        ("overview", "Do next"), ("agreement", "Agreement"), ("judge", "strict"),
        ("asr", "succeed"), ("certify", "asr reference add"), ("data", "Data"),
    ):  # fmt: skip
        page.goto(f"{server.url}/{path}?reviewer=lea")
        page.get_by_text(waits_for).first.wait_for(timeout=SLOW_MS)
        settle(page)
        expect(page.locator("[data-testid=stException]")).to_have_count(0)
        seen[path] = page.locator("[data-testid=stMain]").inner_text()
        found = OF_OTHERS.search(seen[path])
        assert found is None, f"{path}: {found and found.group()}"
    server.stop()

    gates = tmp_path / "gates.toml"
    gates.write_text("defaults = true\n", "utf-8")
    gated = run("gate", "--gates", gates, "--store", server.store, code=1).output
    assert "human_review" in gated
    assert OF_OTHERS.search(gated) is None
    report = run("report", "--store", server.store, "--json")
    assert '"success"' in report.output
    assert OF_OTHERS.search(run("report", "--store", server.store).output) is None
    with Store.open(server.store) as store:
        frame = store.label_frame("production-001")
        assert set(frame["outcome"]) == {"success", "failure"}
        assert len(frame) == 2 * N
    assert 0 < both <= N
