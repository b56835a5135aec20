"""The lead's overview beside a reviewer's desk, in a real browser."""

import json

import pytest
from playwright.sync_api import BrowserContext, expect

from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.desk import Desk
from tests.browser.samples import build_store
from tests.store.builders import query


@pytest.mark.long
def test_a_lead_hands_over_what_an_absent_reviewer_holds(
    server: Server, context: BrowserContext
) -> None:
    batch = build_store(server.store, 6)
    with Store.open(server.store) as store:
        store.add_reviewer("Lea", role="lead")
    server.start()
    absent = Desk(context.new_page(), server.url)
    absent.open("Anna")
    labelled = absent.label("abandoned")
    absent.wait_saved()
    absent.page.close()

    page = context.new_page()
    page.goto(f"{server.url}/?reviewer=lea")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page.get_by_role("heading", name="Held right now (3)")).to_be_visible()
    # What the chart shows is there to be read as well.
    expect(page.locator("[aria-label*='Labels a day']").first).to_be_attached()
    page.get_by_role("button", name="Hand over from Anna").click()
    expect(page.get_by_text("What Anna held is free for the others now.")).to_be_visible()
    expect(page.get_by_role("heading", name="Held right now (0)")).to_be_visible()

    page.get_by_label("Traces", exact=True).fill("4")
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.get_by_text("asr sample --n 4 --seed 1")).to_be_visible()

    # The lead can label as well: the desk is one page further.
    page.get_by_role("link", name="Label").click()
    expect(page.locator(".desk")).to_be_visible()
    server.stop()
    with Store.open(server.store) as store:
        ((text,),) = query(store, "SELECT detail FROM audit WHERE what = 'leases released'")
        stored = store.label_frame(batch)
    released = json.loads(text)
    assert (released["reviewer_id"], released["by"]) == ("anna", "lea")
    assert len(released["trace_ids"]) == 3
    assert labelled not in released["trace_ids"]
    assert stored["trace_id"].tolist() == [labelled]


@pytest.mark.long
@pytest.mark.parametrize("reviewer", ["lea", "anna"])
def test_every_page_can_be_opened_by_its_address(
    server: Server, context: BrowserContext, reviewer: str
) -> None:
    """The first page differs for leads and has no address of its own; the others keep theirs."""
    build_store(server.store, 2)
    with Store.open(server.store) as store:
        store.add_reviewer("Lea", role="lead")
        store.add_reviewer("Anna")
    server.start()
    page = context.new_page()
    for path, sign in (("overview", "Overview"), ("label", ".desk"), ("", None)):
        page.goto(f"{server.url}/{path}?reviewer={reviewer}")
        if sign is None:
            sign = "Overview" if reviewer == "lea" else ".desk"
        if sign == ".desk":
            expect(page.locator(".desk")).to_be_visible(timeout=30_000)
        else:
            expect(page.get_by_role("heading", name=sign)).to_be_visible(timeout=30_000)
            closed = page.get_by_text("This page is for leads.")
            expect(closed).to_have_count(0 if reviewer == "lea" else 1)
        expect(page.get_by_text("Page not found")).to_have_count(0)
