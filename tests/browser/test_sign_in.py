"""People sign in: the first admin, whom they add, and what a reviewer is then shown."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import NOT_RUN, Server
from tests.browser.desk import Desk, choose
from tests.browser.samples import build_store
from tests.browser.test_accessibility import violations

pytestmark = [pytest.mark.browser, pytest.mark.long]
GOOD, OTHER = "correct horse battery", "another good phrase"


@pytest.fixture
def closed(server: Server) -> Server:
    """Return a server on a new store, as it is for somebody's own traces."""
    build_store(server.store, 3)
    server.identities = None
    server.start()
    return server


def first_form(server: Server) -> str:
    """Return the address with the token that the server printed when it was started."""
    printed = server.store.with_suffix(".log").read_text()
    return f"{server.url}/sign-in?token={printed.rpartition('/sign-in?token=')[2].split()[0]}"


def make_first_admin(page: Page, server: Server) -> None:
    page.goto(first_form(server))
    page.get_by_label("Name").fill("Ada")
    page.get_by_label("Passphrase, 12 characters or more").fill(GOOD)
    page.get_by_label("Repeat the passphrase").fill(GOOD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Home")).to_be_visible()


def sign_in(page: Page, url: str, name: str, passphrase: str) -> None:
    page.goto(url)
    expect(page).to_have_url(re.compile("/sign-in"))
    page.get_by_label("Name").fill(name)
    page.get_by_label("Passphrase").fill(passphrase)
    page.keyboard.press("Enter")


def pages(page: Page) -> list[str]:
    """Return what the navigation offers."""
    shown = page.get_by_test_id("stTopNavLink")
    return [text.strip() for text in shown.all_inner_texts()]


def add(page: Page, name: str, role: str) -> str:
    """Add somebody and return the passphrase that was generated for them."""
    page.get_by_label("Name", exact=True).fill(name)
    choose(page, "Role", role)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text(f"{name} is added, as {role}.")).to_be_visible()
    handed = page.get_by_test_id("stCode").filter(has_text=f"Name: {name}")
    return handed.inner_text().rpartition("Passphrase: ")[2].strip()


def sign_out(page: Page) -> None:
    page.locator(".st-key-who").get_by_role("button").first.click()
    expect(page.get_by_role("link", name="Change passphrase")).to_have_attribute(
        "href", "/passphrase"
    )
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()


def test_the_first_admin_adds_people_and_each_sees_what_is_theirs(
    closed: Server, browser: Browser | None, page: Page
) -> None:
    if browser is None:
        pytest.skip(NOT_RUN)
    make_first_admin(page, closed)
    assert pages(page)[-1] == "People"
    page.get_by_role("link", name="People").click()
    lead_phrase = add(page, "Lea", "lead")
    reviewer_phrase = add(page, "Rea", "reviewer")

    desk_page = other(browser)
    sign_in(desk_page, closed.url, "rea", reviewer_phrase)
    desk = Desk(desk_page, closed.url)
    desk.wait_painted("")
    assert pages(desk_page) == ["Label", "Certificate"]
    desk.label("abandoned")
    desk.wait_saved()
    for name in ("overview", "agreement", "people"):
        desk_page.goto(f"{closed.url}/{name}")
        desk_page.get_by_text("This page is for ").wait_for()
    desk_page.goto(f"{closed.url}/label?reviewer=ada")
    desk.wait_painted("")
    sign_out(desk_page)
    desk_page.reload()
    expect(desk_page).to_have_url(re.compile("/sign-in"))

    lead_page = other(browser)
    sign_in(lead_page, f"{closed.url}/agreement", "Lea", lead_phrase)
    expect(lead_page.get_by_role("heading", name="Agreement").first).to_be_visible()
    assert "People" not in pages(lead_page)


def other(browser: Browser) -> Page:
    return browser.new_context(viewport={"width": 1440, "height": 900}).new_page()


def test_an_open_tab_ends_with_the_session(
    closed: Server, browser: Browser | None, page: Page, context: BrowserContext
) -> None:
    make_first_admin(page, closed)
    page.get_by_role("link", name="Label", exact=True).click()
    desk = Desk(page, closed.url)
    desk.wait_painted("")
    second = context.new_page()
    second.goto(f"{closed.url}/people")
    second.get_by_role("heading", name="People", exact=True).wait_for()
    sign_out(second)
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()
    # The cookie stayed, and is worth nothing.
    page.goto(closed.url)
    expect(page).to_have_url(re.compile("/sign-in"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_has_no_barriers_and_fits_a_phone(
    closed: Server, browser: Browser | None, scheme: str, tmp_path: Path
) -> None:
    if browser is None:
        pytest.skip(NOT_RUN)
    page = browser.new_context(
        viewport={"width": 390, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
        java_script_enabled=True,
    ).new_page()
    page.goto(first_form(closed))
    for _ in range(2):
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.get_by_label("Name").fill("Ada")
        page.get_by_label("Passphrase, 12 characters or more").fill(GOOD)
        page.get_by_label("Repeat the passphrase").fill(OTHER)
        page.get_by_role("button").click()
        page.get_by_role("alert").wait_for()
