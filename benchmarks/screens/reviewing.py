"""The screens of how reviewers are calibrated: sign-in, certificates, adjudication, checks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from calibration.analyses.demo import build_demo
from calibration.analyses.reviewers.adjudication import handbook_proposals
from calibration.analyses.reviewers.examinations import Examiner
from calibration.records import LabelDraft
from calibration.store import Store
from calibration.store.database import utc_now
from calibration.store.leases import CertificateDemand
from reference_dataset.loader import load_reference
from tests.analyses.examinees import Examinee, set_clock
from tests.analyses.test_adjudication import settle as settle_as_lea
from tests.analyses.worlds import make_world
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
        page.wait_for_timeout(2_000)
        page.goto(f"{server.url}/people")  # a narrow bar hides the link
        expect(page.get_by_role("heading", name="People", exact=True)).to_be_visible()
        page.wait_for_timeout(2_000)

    def enter(page: Page, name: str, phrase: str) -> None:
        go(page)
        page.get_by_label("Name").fill(name)
        page.get_by_label("Passphrase").fill(phrase)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_timeout(1_500)

    take_state(browser, "sign-in-wrong", wrong)

    def own_role(page: Page) -> None:
        people(page)
        page.get_by_role("radiogroup").get_by_text("lead", exact=True).click()
        page.wait_for_timeout(1_500)
        page.get_by_text("This is your own role").scroll_into_view_if_needed()
        page.wait_for_timeout(1_000)

    take_state(browser, "people", people)
    take_state(browser, "people-own-role", own_role)
    server.stop()
    with Store.open(server.store) as store:
        store.add_reviewer(
            "A very long name, as long as a name in this store may be: eighty letters"
        )
        for number in range(55):
            store.add_reviewer(f"Reviewer {number + 1}")
    server.start()
    take_state(browser, "people-many", people)

    def long_name(page: Page) -> None:
        people(page)
        page.get_by_label("Who").fill("A very")
        page.keyboard.press("Enter")
        page.wait_for_timeout(2_500)
        page.get_by_role("button", name="Generate passphrase").scroll_into_view_if_needed()
        page.wait_for_timeout(1_000)

    take_state(browser, "people-long-name", long_name)
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


@contextmanager
def days_ago(days: float) -> Iterator[Clock]:
    """Let the store believe that it is so many days ago."""
    with pytest.MonkeyPatch.context() as patched:
        clock = set_clock(patched)
        clock.now = utc_now() - timedelta(days=days)
        yield clock


def examinee(store: Store, clock: Clock, who: str) -> Examinee:
    """Return somebody who is examined on the shipped forms."""
    return Examinee(store, Examiner(dataset=load_reference(), private=frozenset()), clock, who=who)


def take_third_attempt(browser: Browser, folder: Path, take: Take, take_state: TakeState) -> None:
    """Photograph who has used up both attempts, and the lead who decides on it."""
    server = Server(folder / "third.duckdb")
    with Store.open(server.store, create=True) as store:
        for name in ("Tom", "Una"):
            store.add_reviewer(name)
        store.add_reviewer("Lea", role="lead")
        with days_ago(5) as clock:
            for who in ("tom", "una"):
                person = examinee(store, clock, who)
                person.fail()
                person.later(hours=25)
                person.practise()
                person.fail()
                person.later(hours=25)
                person.practise()
    server.start()
    for who in ("tom", "lea"):
        take(browser, server, f"certificate-third-{who}", f"certify?reviewer={who}", whole=True)

    def allow(page: Page) -> None:
        page.goto(f"{server.url}/certify?reviewer=lea")
        page.get_by_label("Why").fill("Was ill that day.")
        page.get_by_role("button", name="Allow it to").click()
        page.wait_for_timeout(3_000)
        page.get_by_text("another attempt", exact=False).first.scroll_into_view_if_needed()

    take_state(browser, "certificate-third-allowed", allow)

    path = "certify?reviewer=tom"
    take(browser, server, "certificate-third-too-few", path, whole=False)
    server.stop()


def take_private_demand(browser: Browser, folder: Path, take: Take, take_state: TakeState) -> None:
    """Photograph a store that demands a private form and has none."""
    server = Server(folder / "private.duckdb")
    with Store.open(server.store, create=True) as store:
        for name in ("New", "Pat"):
            store.add_reviewer(name)
        store.add_reviewer("Lea", role="lead")
        with days_ago(5) as clock:
            pat = examinee(store, clock, "pat")
            pat.sit(pat.start())
            some = next(iter(pat.by.dataset.traces.values()))
        own = replace(some, trace_id="own", source="own", source_id="own")
        store.add_batch(
            purpose="production", trace_ids=store.ingest([own]).imported, certificate="any"
        )
        store.set_certificate_demand(CertificateDemand(form="private", every_batch=True), by="lea")
    server.start()
    for who in ("new", "pat", "lea"):
        take(browser, server, f"certificate-private-{who}", f"certify?reviewer={who}", whole=True)
    take(browser, server, "label-certificate-private", "label?reviewer=pat", whole=False)
    server.stop()


def take_proposals(browser: Browser, folder: Path, take: Take, take_state: TakeState) -> None:
    """Photograph what adjudication proposes for the handbook: open, accepted, declined."""
    server = Server(folder / "proposals.duckdb")
    world = make_world(server.store, n=24, n_drawn=24)
    store = world.store
    store.add_reviewer("Lea", role="lead")
    mixed = {
        ("complete", "partial_plus", "rubric_unclear"): 5,
        ("partial_plus", "partial_minus", "real_judgement"): 4,
        ("hallucinated", "complete", "rubric_unclear"): 3,
        ("abandoned", "complete", "slip"): 2,
    }
    due = [classes for classes, n in mixed.items() for _ in range(n)]
    for place, name in enumerate(("Ann", "Ben")):
        given = zip(world.drawn, due, strict=False)
        world.label(name, {trace_id: classes[place] for trace_id, classes in given})
    for trace_id, (_, final, cause) in zip(world.drawn, due, strict=False):
        settle_as_lea(world, trace_id, final, cause=cause)
    decided = [
        ("accepted", "A missing date is left out; a wrong one is a material error.", None),
        ("declined", "What no step shows is invented.", "The handbook says so on page 2."),
    ]
    for of, (status, text, reason) in zip(handbook_proposals(store)[1:], decided, strict=True):
        store.decide_proposal(
            client_token=status, proposal_id=of.proposal_id, question=of.question, text=text,
            trace_ids=of.trace_ids, status=status, decided_by="lea", reason=reason,
        )  # fmt: skip
    store.close()
    server.start()
    for view in ("Handbook", "Settled"):

        def show(page: Page, view: str = view) -> None:
            page.goto(f"{server.url}/adjudicate?reviewer=lea")
            page.get_by_role("radio", name=view).click()
            page.wait_for_timeout(3_000)
            page.set_viewport_size({"width": page.evaluate("innerWidth"), "height": 1_300})
            page.wait_for_timeout(3_000)

        take_state(browser, f"adjudicate-{view.lower()}-full", show)
    server.stop()


def take_reviewers(browser: Browser, folder: Path, take: Take, take_state: TakeState) -> None:
    """Photograph a drifting reviewer beside steady ones: certified, examined, and no more."""
    server = Server(folder / "reviewers.duckdb")
    with Store.open(server.store, create=True) as store:
        build_demo(store, seed=1)
        store.add_reviewer("Lea", role="lead")
        steady, ended, drifting = (
            r.reviewer_id for r in store.reviewers() if r.simulated and r.role == "reviewer"
        )
        examined = store.add_reviewer("Dora (simulated)", simulated=True).reviewer_id
        (batch,) = [b.batch_id for b in store.batches() if b.purpose == "production"]
        given = store.label_frame(batch)
        rows = given[given["reviewer_id"] == steady].head(15).to_dict("records")
        store.import_labels(
            batch,
            [
                LabelDraft(
                    client_token=f"dora-{row['trace_id']}", trace_id=row["trace_id"],
                    reviewer_id=examined, batch_id=batch,
                    answers=store.taxonomy().answers_for(row["outcome"]),
                )
                for row in rows
            ],
        )  # fmt: skip
        for who, days in ((ended, 100), (steady, 30), (drifting, 20)):
            with days_ago(days) as clock:
                person = examinee(store, clock, who)
                person.sit(person.start())
        with days_ago(1) as clock:
            examinee(store, clock, examined).start()
    server.start()
    take(browser, server, "reviewers", "reviewers?reviewer=lea", whole=True)
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
            page.get_by_role("radio", name=view).click()
            page.wait_for_timeout(2_000)

        take_state(browser, f"adjudicate-{view.lower()}", show)
    server.stop()


STATES: dict[str, Callable[[Browser, Path, Take, TakeState], None]] = {
    "sign-in": take_sign_in,
    "adjudication": take_adjudication,
    "proposals": take_proposals,
    "certificates": take_certificates,
    "third-attempt": take_third_attempt,
    "private-demand": take_private_demand,
    "reviewers": take_reviewers,
}
