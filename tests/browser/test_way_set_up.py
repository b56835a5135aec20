"""The way from an empty store to two people who label: every step in the browser."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from calibration.store import Store
from tests.browser.conftest import NOT_RUN, Server
from tests.browser.desk import Desk, settle
from tests.browser.test_sign_in import add, make_first_admin, other, sign_in

pytestmark = [pytest.mark.browser, pytest.mark.long]

# Three desks claim three traces ahead each.
N = 12


def runs(folder: Path) -> Path:
    path = folder / "my-runs.csv"
    rows = ["trace_id,workflow,task_id,prompt,response,status,cost_usd"]
    rows += [f"a-{k},support,{k},Where is order {k}?,On its way.,completed,0.02" for k in range(N)]
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def import_in_set_up(page: Page, path: Path) -> None:
    """Import a file in Set up and see what became of it."""
    expect(page.get_by_role("heading", name="1. Import traces")).to_be_visible()
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_role("button", name="Read the files").click()
    expect(page.get_by_text("Contents of the files")).to_be_visible()
    page.get_by_role("button", name=f"Import {N} traces").click()
    expect(page.get_by_role("heading", name="Imported", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name=f"✓ 1. Import traces: {N} traces")).to_be_visible()


def go_on(page: Page, step: str) -> None:
    page.get_by_role("button", name=f"Continue: {step}").click()


def draw(page: Page) -> None:
    page.get_by_role("button", name="Draw the batch").click()
    expect(page.get_by_text(f"production-001 is drawn: {N} traces.")).to_be_visible()
    expect(page.get_by_role("heading", name="5. Start labelling")).to_be_visible()


def test_from_an_empty_store_to_two_people_who_label(
    server: Server, browser: Browser | None, page: Page, tmp_path: Path
) -> None:
    if browser is None:
        pytest.skip(NOT_RUN)
    Store.open(server.store, create=True).close()
    server.identities = None
    server.start()
    make_first_admin(page, server)

    page.get_by_role("link", name="Import traces").click()
    import_in_set_up(page, runs(tmp_path))
    go_on(page, "add people")
    phrases = {name: add(page, name, "reviewer") for name in ("Mara Lind", "Jon Ek")}
    page.get_by_role("button", name="Hide passphrase").click()
    expect(page.get_by_text("Passphrase:")).to_have_count(0)
    # A reload keeps the place.
    page.reload()
    expect(page.get_by_role("heading", name="✓ 2. Add people: 3 people")).to_be_visible()
    go_on(page, "offer practice")
    go_on(page, "draw the first batch")
    draw(page)
    address = page.get_by_test_id("stCode").first.inner_text().strip()
    assert address == f"{server.url}/label"
    page.get_by_role("button", name="Open the Label page").click()
    Desk(page, server.url).wait_painted("")
    expect(page).to_have_url(re.compile("/label"))

    traces = set()
    for name, phrase in phrases.items():
        own = other(browser)
        sign_in(own, address, name, phrase)
        desk = Desk(own, server.url)
        desk.wait_painted("")
        expect(own.get_by_role("button", name=name)).to_be_visible()
        expect(own.get_by_role("button", name="Sign out")).to_be_visible()
        traces.add(desk.label("complete"))
        desk.wait_saved()
    server.stop()
    with Store.open(server.store) as store:
        found = store.label_frame("production-001")
        assert set(found["reviewer_id"]) == {"mara-lind", "jon-ek"}
        assert set(found["trace_id"]) == traces
        assert set(found["outcome"]) == {"complete"}


def test_a_lead_names_a_batch_and_gives_it_to_one_of_two(
    server: Server, browser: Browser | None, page: Page, tmp_path: Path
) -> None:
    if browser is None:
        pytest.skip(NOT_RUN)
    with Store.open(server.store, create=True) as store:
        for name, role in (("Lea", "lead"), ("Ann", "reviewer"), ("Bob", "reviewer")):
            store.add_reviewer(name, role=role)
    server.start()
    page.goto(f"{server.url}/start?reviewer=lea")
    import_in_set_up(page, runs(tmp_path))
    page.get_by_role("button", name="4. Draw the first batch").click()
    draw(page)
    page.get_by_role("button", name=re.compile("4. Draw the first batch")).click()
    page.get_by_text("Name a batch, or assign it to people").click()
    settle(page)
    page.get_by_label("Name", exact=True).fill("First week")
    who = page.get_by_role("combobox", name="Who labels it")
    who.press_sequentially("Ann")
    expect(page.get_by_role("option", name="Bob")).to_have_count(0)
    page.get_by_role("option", name="Ann").click()
    expect(page.get_by_test_id("stMultiSelect")).to_contain_text("Ann")
    who.press("Escape")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("First week (production-001) is for Ann.")).to_be_visible()
    for name, has_it in (("ann", True), ("bob", False)):
        own = other(browser)
        own.goto(f"{server.url}/label?reviewer={name}")
        if has_it:
            Desk(own, server.url).wait_painted("")
        else:
            expect(own.get_by_role("heading", name="No batch to label")).to_be_visible()
            expect(own.get_by_role("button", name="Look again")).to_be_visible()
