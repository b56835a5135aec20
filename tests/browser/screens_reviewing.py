"""The screens of how reviewers are calibrated: sign-in, certificates, adjudication, checks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from calibration.analyses.exam_forms import Examiner
from calibration.store import Store
from calibration.store.database import utc_now
from reference_dataset.loader import load_reference
from tests.analyses.examinees import Examinee
from tests.browser.conftest import Server
from tests.browser.desk import KEYS
from tests.browser.test_adjudicate import build as build_disputes
from tests.store.builders import Clock

PHRASE = "correct horse battery"
Take = Callable[..., None]
TakeState = Callable[[Browser, str, Callable[[Page], None]], None]


def take_sign_in(browser: Browser, folder: Path, take: Take, take_state: TakeState) -> None:
    """Photograph the forms at the door, and what an admin does behind it."""
    server = Server(folder / "door.duckdb", identities=None)
    Store.open(server.store, create=True).close()

    def go(page: Page) -> None:
        page.goto(f"{server.url}/sign-in")
        page.get_by_label("Name").wait_for()

    server.start()
    take_state(browser, "sign-in-first", go)
    server.stop()
    with Store.open(server.store) as store:
        for name, role in (("Ada", "admin"), ("Lea", "lead"), ("Rea", "reviewer")):
            store.set_passphrase(store.add_reviewer(name, role=role).reviewer_id, PHRASE)
        store.add_reviewer("Ben")
    server.start()

    def wrong(page: Page) -> None:
        enter(page, "Ada", "not this passphrase")

    def people(page: Page) -> None:
        enter(page, "Ada", PHRASE)
        page.get_by_role("link", name="People").click()
        expect(page.get_by_role("heading", name="People", exact=True)).to_be_visible()
        page.wait_for_timeout(2_000)

    def enter(page: Page, name: str, phrase: str) -> None:
        go(page)
        page.get_by_label("Name").fill(name)
        page.get_by_label("Passphrase").fill(phrase)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_timeout(1_500)

    take_state(browser, "sign-in-wrong", wrong)
    take_state(browser, "people", people)
    server.stop()


def take_certificates(browser: Browser, folder: Path, take: Take, take_state: TakeState) -> None:
    """Photograph the Certificate page in the states that somebody can be in."""
    server = Server(folder / "certificates.duckdb")
    with Store.open(server.store, create=True) as store:
        by = Examiner(dataset=load_reference(), private=frozenset())
        clock = Clock()
        clock.now = utc_now()
        fay = Examinee(store, by, clock, who="fay")
        for name in ("New", "Fay", "Pat", "Open", "Tia"):
            store.add_reviewer(name)
        store.add_reviewer("Lea", role="lead")
        fay.fail()
        pat, tia = replace(fay, who="pat"), replace(fay, who="tia")
        exam = pat.start()
        pat.sit(exam, pat.wrong(exam, "partial_plus", "partial_minus", 3))
        further = tia.start()
        tia.sit(further, tia.wrong(further, "abandoned", "partial_plus", 3))
        replace(fay, who="open").start()
        some = next(iter(by.dataset.traces.values()))
        ids = store.ingest([replace(some, trace_id="own", source="own", source_id="own")]).imported
        store.add_batch(purpose="production", trace_ids=ids, certificate="any")
    server.start()
    for who in ("new", "fay", "pat", "open", "tia", "lea"):
        take(browser, server, f"certificate-{who}", f"certify?reviewer={who}", whole=True)
    take(browser, server, "label-certificate-first", "label?reviewer=new", whole=False)
    server.stop()


def take_adjudication(browser: Browser, folder: Path, take: Take, take_state: TakeState) -> None:
    """Photograph the blind decision, what follows it, and what is settled."""
    server = Server(folder / "disputes.duckdb")
    build_disputes(server.store)
    server.start()

    def blind(page: Page) -> None:
        page.goto(f"{server.url}/adjudicate?reviewer=lea")
        page.locator(".desk[data-ready=true]").wait_for()
        page.wait_for_timeout(1_000)

    def settle(page: Page) -> None:
        blind(page)
        for key in KEYS["complete"]:
            page.keyboard.press(key)
            page.wait_for_timeout(150)
        expect(page.locator(".final")).to_be_visible(timeout=30_000)
        page.wait_for_timeout(500)

    take_state(browser, "adjudicate-blind", blind)
    take_state(browser, "adjudicate-answers", settle)

    def next_one(page: Page) -> None:
        settle(page)
        for key in ("3", "Enter"):
            page.keyboard.press(key)
            page.wait_for_timeout(400)
        expect(page.locator(".final")).to_have_count(0, timeout=30_000)
        page.wait_for_timeout(2_000)

    take_state(browser, "adjudicate-next", next_one)
    for view in ("Settled", "Handbook"):

        def show(page: Page, view: str = view) -> None:
            page.goto(f"{server.url}/adjudicate?reviewer=lea")
            page.get_by_role("radio", name=view).or_(page.get_by_role("button", name=view)).click()
            page.wait_for_timeout(2_000)

        take_state(browser, f"adjudicate-{view.lower()}", show)
    server.stop()
