"""The overview beside the desk: each page has an address, in a real browser."""

import pytest
from playwright.sync_api import BrowserContext, expect

from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.samples import build_store


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
