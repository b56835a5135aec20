"""The whole way of a new reviewer: sign in, practise, fail, practise, pass, label; by keyboard."""

from pathlib import Path

import duckdb
import pytest
from playwright.sync_api import Page, expect

from calibration.analyses.reviewers.examinations import add_practice
from calibration.store import Store
from reference_dataset.loader import ReferenceSet, load_reference
from tests.browser.conftest import Server
from tests.browser.desk import Traffic
from tests.browser.test_blind_traffic import build, enter, found_signs, team
from tests.browser.test_practice import Practice, tells

pytestmark = [pytest.mark.browser, pytest.mark.long]


class Way(Practice):
    """One person at one keyboard, from page to page."""

    dataset: ReferenceSet

    def go(self, address: str) -> None:
        self.page.goto(f"{self.url}/{address}")

    def certificate(self, button: str = "") -> None:
        self.page.get_by_role("link", name="Certificate", exact=True).first.click()
        expect(self.page.get_by_role("heading", name="Certificate", exact=True)).to_be_visible()
        if button:
            self.page.get_by_role("button", name=button).click()
            if "examination" in button:
                expect(self.page.get_by_text("counts from the moment you start")).to_be_visible()
                self.page.get_by_role("button", name="Start now").press("Enter")
            self.wait_painted("")

    def may_not_start(self) -> None:
        self.says("You cannot start yet: see above what comes first.")
        # It would stand above that line.
        expect(self.page.get_by_role("button", name="Start the examination")).to_have_count(0)

    def right(self, trace_id: str) -> tuple[str, str]:
        """Return the canonical class of a trace, and a quote that stands in it."""
        label = self.dataset.labels[trace_id]
        return label.outcome, next((e.quote for e in label.evidence if e.key), "")

    def practise(self) -> list[str]:
        """Label a practice round, each trace rightly, and read each lesson."""
        done = []
        while self.get("state") != "finished":
            trace = self.get("trace")
            self.answer(*self.right(trace))
            self.wait_lesson()
            done.append(trace)
            self.page.keyboard.press("Enter")
            self.wait_next(trace)
        return done

    def examine(self, *, well: bool) -> list[str]:
        """Answer every trace of an examination and return them."""
        expect(self.page.locator(".keys")).not_to_contain_text("skip")
        self.press("s")
        expect(self.page.get_by_text("Why skip this trace?")).to_have_count(0)
        done = []
        while self.get("state") != "finished":
            trace = self.get("trace")
            self.answer(*(self.right(trace) if well else ("abandoned", "")))
            done.append(trace)
            self.wait_next(trace)
        self.wait_saved()
        return done

    def says(self, text: str) -> None:
        expect(self.page.get_by_text(text).first).to_be_visible(timeout=60_000)


def a_day_later(store: Path) -> None:
    """Let everything that was labelled have been labelled 25 hours earlier."""
    with duckdb.connect(str(store)) as connection:
        for table in ("exam", "exam_result", "label_event"):
            connection.execute(f"UPDATE {table} SET created_at = created_at - INTERVAL 25 HOUR")


def test_from_sign_in_to_a_certified_batch(server: Server, page: Page, tmp_path: Path) -> None:
    build(server.store, tmp_path)
    team(server.store)
    with Store.open(server.store) as store:
        # For the certified, of traces that others have labelled, judged and settled.
        ids = list(store.trace_frame()["trace_id"])
        batch = store.add_batch(purpose="production", trace_ids=ids, certificate="any").batch_id
        add_practice(store, load_reference())
    server.identities = None
    server.start()
    traffic = Traffic(page)
    enter(page, server.url, "Rea", traffic)
    way = Way(page, server.url)
    way.dataset = load_reference()
    # The welcome says what comes; the batch says what it asks for.
    expect(page.get_by_role("heading", name="Welcome, Rea")).to_be_visible()
    way.says("Production: real runs.")
    page.get_by_role("button", name="Start practising").press("Enter")
    way.wait_painted("")
    first = way.get("trace")
    way.answer(*way.right(first))
    way.wait_lesson()
    page.keyboard.press("Enter")
    way.wait_next(first)

    way.certificate("Start a practice round")
    assert len(way.practise()) == 12

    way.certificate("Start the examination")
    exam = way.examine(well=False)
    # All answers are given, and nothing canonical of any of them has been on the wire.
    assert len(exam) == 70
    assert [i for i in exam if tells(traffic, way.dataset.labels[i])] == []
    way.certificate()
    way.says("You did not pass yet")
    way.says("24 hours must pass between two attempts, and a practice round must be finished.")
    way.may_not_start()

    # A day alone is not enough, and neither is a practice round alone: both are needed.
    server.stop()
    a_day_later(server.store)
    server.start()
    way.certificate()
    way.says("a practice round must be finished between two attempts")
    way.may_not_start()
    way.certificate("Start a practice round")
    assert len(way.practise()) == 12

    way.certificate("Start the examination")
    again = way.examine(well=True)
    assert not set(exam) & set(again)
    assert [i for i in again if tells(traffic, way.dataset.labels[i])] == []
    way.certificate()
    way.says("You are certified")
    way.says("It was earned on a public form")

    page.get_by_role("button", name="Label production traces").click()
    way.wait_painted("")
    assert f"batch={batch}" in page.url
    trace = way.label("complete")
    way.wait_saved()
    text = b"\n".join(traffic.frames).decode("utf-8", "replace")
    assert found_signs(text, "Leandra", "Adelheid", "$argon2") == []
    server.stop()
    with Store.open(server.store) as store:
        frame = store.label_frame(batch, trace)
        (rea,) = frame[frame["reviewer_id"] == "rea"].to_dict("records")
        assert rea["outcome"] == "complete"
        held = store.certificate_of("rea")
        assert held is not None
        assert not held.private
