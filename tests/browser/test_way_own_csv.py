"""The way of a newcomer with a CSV of their own: from an empty store and from the demo."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.desk import Desk, choose
from tests.browser.test_way_set_up import N, draw, go_on, import_in_set_up, runs
from tests.stores import copy_store

OWN = {f"a-{k}" for k in range(N)}
pytestmark = [pytest.mark.browser, pytest.mark.long]


def test_a_newcomer_labels_a_trace_of_their_own(server: Server, page: Page, tmp_path: Path) -> None:
    Store.open(server.store, create=True).close()
    server.start()
    page.goto(server.url)
    page.get_by_role("link", name="Import traces").click()
    import_in_set_up(page, runs(tmp_path))
    go_on(page, "add people")
    page.get_by_label("Name", exact=True).fill("Nora New")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("Nora New is added, as reviewer.")).to_be_visible()
    page.get_by_role("button", name="4. Draw the first batch").click()
    draw(page)
    page.get_by_role("button", name="Open the Label page").click()
    page.get_by_role("button", name="Nora New").click()
    desk = Desk(page, server.url)
    desk.wait_painted("")
    trace = desk.label("abandoned")
    desk.wait_saved()
    server.stop()
    with Store.open(server.store) as store:
        assert list(store.label_frame("production-001")["trace_id"]) == [trace]
        assert trace in OWN


def test_the_demo_takes_a_file_of_ones_own(
    server: Server, page: Page, tmp_path: Path, built_demo: Path
) -> None:
    copy_store(built_demo, server.store)
    with Store.open(server.store) as store:
        before = {batch.batch_id for batch in store.batches()}
        store.add_reviewer("Nora New", role="lead")
    server.start()
    page.goto(f"{server.url}/start?step=traces&reviewer=nora-new")
    page.locator("input[type=file]").set_input_files(runs(tmp_path))
    page.get_by_role("button", name="Read the files").click()
    page.get_by_role("button", name=f"Import {N} traces").click()
    expect(page.get_by_role("heading", name="Imported", exact=True)).to_be_visible()
    page.get_by_role("button", name="4. Draw the first batch").click()
    # Of the new workflow alone.
    choose(page, "From", "support", exact=True)
    expect(page.get_by_label("Traces", exact=True)).to_have_value(str(N))
    page.get_by_role("button", name="Draw the batch").click()
    expect(page.get_by_text(f"is drawn: {N} traces.")).to_be_visible()
    page.get_by_role("button", name="Open the Label page").click()
    page.get_by_role("button", name="Skip practice").click()
    desk = Desk(page, server.url)
    desk.wait_painted("")
    assert desk.label("abandoned") in OWN
    desk.wait_saved()
    server.stop()
    with Store.open(server.store) as store:
        (drawn,) = {batch.batch_id for batch in store.batches()} - before
        assert len(store.label_frame(drawn)) == 1
