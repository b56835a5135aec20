"""Practice by keyboard: one's own label first, then the canonical one and its evidence."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from calibration.records import Trace
from calibration.store import Store
from reference_dataset.loader import ReferenceSet, load_reference
from reference_dataset.records import CanonicalLabel
from tests.browser.conftest import Server
from tests.browser.desk import KEYS, QUIET_S, Desk, Traffic, labels, read_back
from tests.browser.samples import sample_trace, store_of

pytestmark = [pytest.mark.browser, pytest.mark.long]

TITLES = {
    "complete": "Completed",
    "partial_plus": "Partial-correct",
    "partial_minus": "Partial-incorrect",
    "hallucinated": "Hallucinated",
    "abandoned": "Abandoned",
}


def practice_store(path: Path, traces: Sequence[Trace]) -> str:
    """Create a store with a practice batch of these traces and nothing else."""
    batch: dict[str, Any] = {"labels_wanted": 1000, "design": {}, "inclusion_probability": None}
    return store_of(path, traces, purpose="practice", **batch)


def three(dataset: ReferenceSet) -> list[Trace]:
    """Return a hallucinated, a complete and a partial trace."""
    known = dataset.labels.items()
    return [
        dataset.traces[next(i for i, label in known if label.outcome == outcome)]
        for outcome in ("hallucinated", "complete", "partial_minus")
    ]


def needles(label: CanonicalLabel) -> list[bytes]:
    """Return runs of plain characters of the rationale: they look the same however encoded."""
    return [run.encode() for run in re.findall(r"[A-Za-z0-9 ,.]{24,}", label.rationale)]


def tells(traffic: Traffic, label: CanonicalLabel) -> bool:
    found = needles(label)
    assert found, label.trace_id
    return any(needle in frame for needle in found for frame in traffic.frames)


class Practice(Desk):
    """The desk on a practice batch."""

    def open(self, name: str = "Anna B.") -> None:
        self.page.goto(self.url)
        self.page.get_by_label("name").fill(name)
        self.page.get_by_role("button", name="Start labelling").click()
        expect(self.page.get_by_role("heading", name=f"Welcome, {name}")).to_be_visible()
        self.page.get_by_role("button", name="Start practising").press("Enter")
        self.wait_painted("")

    def answer(self, outcome: str, quote: str = "") -> None:
        """Give the answers that lead to a class, without waiting for what follows."""
        self.press(KEYS[outcome])
        if outcome == "hallucinated":
            self.page.keyboard.type(quote)
            self.page.keyboard.press("Enter")

    def wait_lesson(self) -> None:
        expect(self.page.locator(".verdict")).to_be_visible(timeout=30_000)
        assert (self.get("state"), self.get("unsaved")) == ("lesson", "0")
        time.sleep(QUIET_S)

    def marks(self) -> list[str]:
        return self.page.locator(".trace mark").all_text_contents()


def check_lesson(desk: Practice, label: CanonicalLabel, mine: str) -> None:
    """Check that the page shows both answers, the reason, and every quote marked in place."""
    page = desk.page
    verdict = page.locator(".verdict")
    expect(verdict.locator(".question")).to_contain_text(TITLES[label.outcome])
    expect(verdict.locator(".rule")).to_have_text(label.rationale)
    same = "Correct"
    expected = same if mine == label.outcome else re.compile(f"Your answer: .*{TITLES[mine]}")
    expect(verdict.locator(".eyebrow")).to_have_text(expected)
    if mine != label.outcome:
        other = page.locator(".crumbs.lesson li.other b")
        assert other.count() > 0
        for text in other.all_text_contents():
            assert re.fullmatch(r"you (Yes|No|not asked),\ncanonical (Yes|No|not asked)", text)
    expect(page.get_by_text(label.why_not)).to_be_visible()
    shown = desk.marks()
    assert set(shown) == {item.quote for item in label.evidence}
    for item in label.evidence:
        if re.fullmatch(r"s\d+|response", item.step_id):
            place = page.locator(f"[data-step={item.step_id}] mark")
            assert item.quote in place.all_text_contents()
    expect(page.locator(".trace mark").first).to_be_in_viewport()


def test_practice_by_keyboard(server: Server, page: Page) -> None:
    dataset = load_reference()
    batch = practice_store(server.store, [*three(dataset), sample_trace(1)])
    server.start()
    traffic = Traffic(page)
    desk = Practice(page, server.url)
    desk.open()

    expect(page.locator(".purpose")).to_have_text("Practice")
    # The first trace, labelled wrongly: nothing canonical is on its way before the last answer.
    first = desk.get("trace")
    canonical = dataset.labels[first]
    wrong = "partial_plus"
    assert canonical.outcome != wrong
    desk.press(KEYS[wrong][:-1])
    time.sleep(0.5)  # the draft is saved
    assert len(traffic.frames) > 5
    assert not any(tells(traffic, label) for label in dataset.labels.values())
    assert desk.marks() == []
    desk.press(KEYS[wrong][-1])
    desk.wait_lesson()
    check_lesson(desk, canonical, wrong)
    expect(page.locator(".purpose .score")).to_have_text("0 of 1 right")
    assert tells(traffic, canonical)
    assert [i for i in dataset.labels if tells(traffic, dataset.labels[i])] == [first]

    # Y, N, S and U do nothing here; H opens the handbook, in which Enter does not go on.
    desk.press("ynsu")
    assert (desk.get("state"), desk.get("trace")) == ("lesson", first)
    desk.press("h")
    expect(page.locator(".handbook")).to_contain_text("Worked examples")
    desk.press("yn")
    page.keyboard.press("Enter")
    assert (desk.get("state"), desk.get("trace")) == ("lesson", first)
    desk.press("h")
    expect(page.locator(".handbook")).to_have_count(0)
    expect(page.locator(".verdict")).to_be_visible()

    # Enter goes on; U at the first question opens the trace again, without its marks.
    page.keyboard.press("Enter")
    second = desk.wait_painted(first)
    assert second in dataset.traces
    assert desk.marks() == []
    expect(page.locator(".verdict")).to_have_count(0)
    desk.press("u")
    assert desk.wait_painted(second) == first
    assert desk.marks() == []
    expect(page.locator(".question-box")).to_have_attribute("data-node", "output")
    quote = next((e.quote for e in canonical.evidence if e.key), "")
    desk.answer(canonical.outcome, quote)
    desk.wait_lesson()
    check_lesson(desk, canonical, canonical.outcome)
    desk.shown[first] = canonical.outcome

    # Reload in a lesson: the label is stored, the page goes on with the next trace.
    page.reload()
    assert desk.wait_painted(first) == second
    assert desk.marks() == []
    desk.answer("abandoned")
    desk.shown[second] = "abandoned"
    desk.wait_lesson()
    check_lesson(desk, dataset.labels[second], "abandoned")
    page.keyboard.press("Enter")
    third = desk.wait_painted(second)
    assert not tells(traffic, dataset.labels[third])

    # H during a question speaks of that question and labels nothing.
    desk.press("yh")
    expect(page.locator(".help-box h2")).to_contain_text("invented")
    expect(page.locator(".handbook")).to_contain_text("Worked examples: invented, or mistaken?")
    desk.press("nnn")
    page.keyboard.press("Escape")
    expect(page.locator(".handbook")).to_have_count(0)
    expect(page.locator(".question-box")).to_have_attribute("data-node", "fabrication")
    desk.press("u")
    desk.answer("abandoned")
    desk.shown[third] = "abandoned"
    desk.wait_lesson()
    check_lesson(desk, dataset.labels[third], "abandoned")
    page.keyboard.press("Enter")

    # A trace that the dataset does not know has no lesson and does not hold the desk.
    desk.wait_painted(third)
    desk.label("abandoned")
    expect(page.get_by_text("All done")).to_be_visible()
    expect(page.get_by_text("You labelled 4 traces. ")).to_contain_text("of 3 were right")
    expect(page.get_by_text("take the examination")).to_be_visible()
    server.stop()

    stored = read_back(server.store, batch)
    assert labels(stored) == desk.shown
    kinds = [kind for kind, _ in stored["events"]]
    assert (kinds.count("label"), kinds.count("undo"), kinds.count("skip")) == (5, 1, 0)


def test_no_lesson_before_the_label_is_stored(server: Server, page: Page) -> None:
    dataset = load_reference()
    batch = practice_store(server.store, three(dataset)[1:])
    server.start()
    held: list[tuple[WebSocketRoute, str | bytes]] = []
    closed = [False]

    def connect(route: WebSocketRoute) -> None:
        onward = route.connect_to_server()

        def pass_on(message: str | bytes) -> None:
            if closed[0]:
                held.append((onward, message))
            else:
                onward.send(message)

        route.on_message(pass_on)

    page.route_web_socket(re.compile("_stcore/stream"), connect)
    desk = Practice(page, server.url)
    desk.open()
    first = desk.get("trace")
    closed[0] = True  # what the page sends is on its way, and takes long
    desk.answer("abandoned")
    page.wait_for_timeout(1000)
    expect(page.get_by_text("Saving your label")).to_be_visible()
    page.keyboard.press("Enter")
    assert held
    assert (desk.get("state"), desk.get("trace"), desk.get("unsaved")) == ("lesson", first, "1")
    assert page.locator(".verdict, .trace mark").count() == 0

    closed[0] = False
    for onward, message in held:
        onward.send(message)
    desk.wait_lesson()
    check_lesson(desk, dataset.labels[first], "abandoned")
    server.stop()
    assert labels(read_back(server.store, batch)) == {first: "abandoned"}


def test_a_practice_label_is_flagged_and_opened_again(server: Server, page: Page) -> None:
    practice_store(server.store, three(load_reference()))
    server.start()
    desk = Practice(page, server.url)
    desk.open()
    first = desk.get("trace")
    desk.answer("partial_plus")
    desk.wait_lesson()
    desk.press("f")
    page.keyboard.press("Enter")
    desk.wait_saved()
    assert desk.get("state") == "lesson"
    desk.press("l")
    expect(page.locator(".own-list .tag")).to_have_text("flagged")
    page.keyboard.press("Enter")
    page.keyboard.type("I see it now")
    page.keyboard.press("Enter")
    desk.wait("d.trace === arg && d.state === 'answer' && d.ready === 'true'", first)
    time.sleep(QUIET_S)
    expect(page.locator(".answer.no")).to_contain_text("before")
    expect(page.locator(".flag-note")).to_have_text("Flagged for the lead")
    desk.press("y")
    desk.wait_lesson()
    server.stop()
    with Store.open(server.store) as store:
        frame = store.label_frame("practice-001")
        assert store.flag_frame("practice-001")["trace_id"].tolist() == [first]
    assert frame[["trace_id", "outcome"]].to_numpy().tolist() == [[first, "partial_minus"]]
