"""People sign in with an identity provider on another site: there, back, to their page, and out."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.desk import Desk
from tests.browser.samples import build_store
from tests.browser.test_accessibility import violations
from tests.browser.test_sign_in import pages
from tests.identity_provider import CLIENT_SECRET, COOKIE_SECRET, IdentityProvider, running_provider

pytestmark = [pytest.mark.browser, pytest.mark.long]
REA = {"sub": "r-1", "name": "Rea", "groups": ["asr-reviewers"]}
LEA = {"sub": "l-1", "name": "Lea", "groups": ["asr-leads"]}


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    # To a browser localhost is another site than the 127.0.0.1 of the app.
    with running_provider("localhost") as provider:
        yield provider


@pytest.fixture
def served(
    server: Server, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    """Return a server whose people have the roles that the claim `groups` gives them."""
    build_store(server.store, 3)
    monkeypatch.setenv("ASR_OIDC_NAME", "Example Login")
    monkeypatch.setenv("ASR_OIDC_ROLE_CLAIM", "groups")
    for role in ("admins", "leads", "reviewers"):
        monkeypatch.setenv(f"ASR_OIDC_{role.upper()}", f"asr-{role}")
    with Store.open(server.store) as store:
        store.set_identities("oidc", admins_by_claim=True)
    folder = server.store.parent / ".streamlit"
    folder.mkdir()
    secrets = provider.secrets_file(f"{server.url}/oauth2callback")
    (folder / "secrets.toml").write_text(secrets, encoding="utf-8")
    server.identities = None
    server.start()
    yield server
    log = server.store.with_suffix(".log").read_text()
    assert CLIENT_SECRET not in log
    assert COOKIE_SECRET not in log


def sign_in(page: Page, address: str) -> None:
    page.goto(address)
    expect(page).to_have_url(re.compile("/sign-in"))
    page.get_by_role("button", name="Sign in with Example Login").click()
    page.get_by_role("link", name="Continue").click()


def test_a_reviewer_goes_to_the_provider_labels_a_trace_and_signs_out(
    served: Server, provider: IdentityProvider, page: Page
) -> None:
    refused: list[str] = []
    page.on("console", lambda line: refused.append(line.text) if line.type == "error" else None)
    provider.person = dict(REA)
    page.goto(served.url)
    expect(page.get_by_role("button")).to_have_text("Sign in with Example Login")
    expect(page.get_by_label("Passphrase")).to_have_count(0)
    assert violations(page) == []
    sign_in(page, served.url)
    desk = Desk(page, served.url)
    desk.wait_painted("")
    assert pages(page) == ["Label", "Certificate"]
    desk.label("abandoned")
    desk.wait_saved()
    assert [line for line in refused if "form-action" in line] == []
    page.get_by_test_id("stExpandSidebarButton").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    expect(page.get_by_role("link", name="Change passphrase")).to_have_count(0)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()
    page.reload()
    expect(page).to_have_url(re.compile("/sign-in"))


def test_a_lead_comes_to_the_page_they_asked_for_and_without_a_role_to_none(
    served: Server, provider: IdentityProvider, page: Page
) -> None:
    provider.person = dict(LEA)
    sign_in(page, f"{served.url}/agreement")
    expect(page.get_by_role("heading", name="Agreement").first).to_be_visible()
    assert "People" not in pages(page)
    provider.person = LEA | {"groups": ["staff"]}
    other = page.context.browser
    assert other is not None
    second = other.new_page()
    sign_in(second, served.url)
    expect(second.get_by_role("alert")).to_have_text(
        "None of your groups has a role here. Ask an admin which group you need."
    )
    assert violations(second) == []
    second.get_by_role("link", name="Back to sign-in").click()
    expect(second.get_by_role("button", name="Sign in with Example Login")).to_be_visible()
    # The provider has taken the role away: what was open is closed too.
    page.goto(f"{served.url}/agreement")
    expect(page).to_have_url(re.compile("/sign-in"))


def test_a_forged_callback_opens_nothing(
    served: Server, provider: IdentityProvider, page: Page
) -> None:
    provider.person = dict(LEA)
    page.goto(f"{served.url}/oauth2callback?code=made-up&state=made-up")
    expect(page.get_by_role("alert")).to_contain_text("was started in another browser")
    page.goto(f"{served.url}/sign-in")
    page.get_by_role("button").click()
    back = page.get_by_role("link", name="Continue").get_attribute("href")
    assert back is not None
    page.goto(re.sub("code=[^&]+", "code=made-up", back))
    expect(page.get_by_role("alert")).to_contain_text("could not be verified")
    page.goto(back)
    expect(page.get_by_role("alert")).to_contain_text("was started in another browser")
    page.goto(f"{served.url}/label")
    expect(page).to_have_url(re.compile("/sign-in"))
