"""A lead settles disagreements with the keyboard alone, and sees no answer before their own."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from calibration.records import Evidence, LabelDraft, Trace
from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.desk import KEYS, QUIET_S, QUOTE, Desk, Traffic

pytestmark = [pytest.mark.browser, pytest.mark.long]
NAMES = ("Xnameannx", "Xnamebobx")

# At each question of the tree: what the two say, what Lea says blind, and what she makes of it.
BORN = {
    "output": ("complete", "abandoned", "complete"),
    "fabrication": ("hallucinated", "complete", "hallucinated"),
    "all_subgoals": ("complete", "partial_plus", "partial_plus"),
    "material_error": ("partial_plus", "partial_minus", "partial_minus"),
}


def trace_id(question: str) -> str:
    return f"t-{question.replace('_', '-')}"


def marks(question: str) -> list[str]:
    """Return what was planted in the labels and the flag of a trace."""
    return [f"Xwhy{n}{question}x" for n in (0, 1)] + [f"Xquote{question}x", f"Xflag{question}x"]


def build(path: Path) -> str:
    """Create a store in which one disagreement was born at each question."""
    with Store.open(path, create=True) as store:
        store.ingest(
            [
                Trace(
                    trace_id=trace_id(question), source="test", source_id=question,
                    workflow="parcels", task_id=question, task_key=question, trial=0,
                    prompt=f"When does the parcel of {question} come?",
                    response=f"It {QUOTE}.",
                )
                for question in BORN
            ]
        )  # fmt: skip
        ids = [trace_id(question) for question in BORN]
        batch = store.add_batch(purpose="production", trace_ids=ids, labels_wanted=2).batch_id
        people = [store.add_reviewer(name).reviewer_id for name in NAMES]
        store.add_reviewer("Lea", role="lead")
        for place, person in enumerate(people):
            store.queue(person, batch, limit=len(ids))
            drafts = [
                LabelDraft(
                    client_token=f"{person}-{question}", trace_id=trace_id(question),
                    reviewer_id=person, batch_id=batch,
                    answers=store.taxonomy().answers_for(said[place]),
                    rationale=f"Xwhy{place}{question}x",
                    evidence=(Evidence(step_id="response", quote=f"Xquote{question}x"),),
                )
                for question, said in BORN.items()
            ]  # fmt: skip
            store.import_labels(batch, drafts)
        for question in BORN:
            store.record_flag(
                client_token=f"flag-{question}", trace_id=trace_id(question),
                reviewer_id=people[0], batch_id=batch, flagged=True,
                reason=f"Xflag{question}x",
            )  # fmt: skip
    return batch


@dataclass
class Bench(Desk):
    """The desk of an adjudicator, and everything the server sent to it."""

    def __post_init__(self) -> None:
        self.traffic = Traffic(self.page)

    def open(self, name: str = "lea") -> None:
        self.page.goto(f"{self.url}/adjudicate?reviewer={name}")

    def heard(self) -> str:
        return self.traffic.heard()

    def decide(self, outcome: str) -> None:
        """Give the answers that lead to a class, and wait for what the reviewers said."""
        self.press(KEYS[outcome])
        if outcome == "hallucinated":
            self.page.keyboard.type(QUOTE)
            self.page.keyboard.press("Enter")
        self.wait_settle()

    def wait_settle(self) -> None:
        expect(self.page.locator(".final")).to_be_visible(timeout=30_000)
        assert self.get("state") == "settle"
        time.sleep(QUIET_S)

    def wait_state(self, state: str) -> None:
        self.wait("d.state === arg && d.unsaved === '0'", state)
        time.sleep(QUIET_S)


@pytest.fixture
def bench(page: Page, server: Server) -> Bench:
    build(server.store)
    server.start()
    opened = Bench(page, server.url)
    opened.open()
    opened.wait_painted("")
    return opened


def settled(server: Server) -> dict[str, dict[str, object]]:
    server.stop()
    with Store.open(server.store) as store:
        rows = store.adjudication_frame("production-001").to_dict("records")
    return {str(row["trace_id"]): {str(k): v for k, v in row.items()} for row in rows}


def test_disagreements_at_each_question_are_settled_by_keys(bench: Bench, server: Server) -> None:
    waiting = {trace_id(question): question for question in BORN}
    before = ""
    for number in range(4):
        question = waiting.pop(bench.wait_painted(before))
        before = trace_id(question)
        # Until this trace is decided, nothing of it nor of those after it has been sent.
        sent = bench.heard()
        for hidden in (question, *waiting.values()):
            assert [mark for mark in marks(hidden) if mark in sent] == []
        assert [name for name in NAMES if name in sent or name.lower() in sent] == []
        if number == 0:
            assert re.search(r'"given"\s*:', sent) is None
        bench.decide(BORN[question][2])
        sent = bench.heard()
        assert [mark for mark in marks(question) if mark not in sent] == []
        assert re.search(r'"given"\s*:', sent) is not None  # what was looked for above
        expect(bench.page.locator(".parting .crumbs li")).to_have_count(3)
        asked = bench.page.locator(".parting .asked").inner_text()
        with_marks = bench.page.locator(".panel").inner_text()
        assert f"Xflag{question}x" in with_marks
        assert asked in with_marks
        bench.press(f"{number + 1}", gap=0.2)
        bench.page.keyboard.press("Enter")
        if waiting:
            bench.wait_painted(before)
    bench.wait_state("finished")
    expect(bench.page.get_by_text("0 open disagreements")).to_be_visible()
    assert [name for name in NAMES if name.lower() in bench.heard().lower()] == []
    # The last one is taken back from there, and settled again as it was.
    bench.press("u")
    bench.wait_settle()
    assert bench.get("trace") == before
    bench.page.keyboard.press("Enter")
    bench.wait_state("finished")
    found = settled(server)
    assert len(found) == 4
    for question, said in BORN.items():
        row = found[trace_id(question)]
        assert (row["question"], row["outcome"], row["blind_outcome"]) == (
            question, said[2], said[2],
        )  # fmt: skip
        assert row["blind"]
    causes = {str(row["cause"]) for row in found.values()}
    assert causes == {"trace_unclear", "rubric_unclear", "slip", "real_judgement"}


def test_what_is_to_be_done_is_in_sight_on_a_small_screen(bench: Bench) -> None:
    bench.page.set_viewport_size({"width": 1024, "height": 768})
    bench.decide("complete")
    panel = bench.page.locator(".panel")
    assert panel.evaluate("e => e.scrollHeight > e.clientHeight")  # there is more than fits
    seen = ["Trace unclear", "Rubric unclear", "Slip", "Real judgement", "Save as final"]
    for name in seen:
        assert on_top(bench.page.locator(".dock").get_by_role("button", name=name))
    bench.press("w", gap=0.3)
    assert on_top(bench.page.locator("#settle-rationale"))
    bench.page.keyboard.press("Escape")
    bench.press("u", gap=0.3)
    assert on_top(bench.page.locator(".final .question"))


def on_top(found: Locator) -> bool:
    """Return whether the whole of an element can be seen: nothing lies over its corners."""
    return bool(
        found.evaluate(
            """e => {
              const box = e.getBoundingClientRect();
              const ys = [box.top + 4, box.bottom - 4], x = box.left + box.width / 2;
              const root = e.getRootNode();
              return ys.every((y) => y < innerHeight && e.contains(root.elementFromPoint(x, y)));
            }"""
        )
    )


def test_after_a_skip_and_a_reload_who_changes_their_mind_writes_why(
    bench: Bench, server: Server
) -> None:
    trace = bench.get("trace")
    bench.press("s", gap=0.2)
    bench.press("1")
    bench.wait_painted(trace)
    bench.wait_saved()
    bench.press("u")
    bench.wait("d.trace === arg && d.ready === 'true'", trace)
    time.sleep(QUIET_S)
    bench.decide("complete")
    bench.press("2", gap=0.2)
    bench.page.reload()
    bench.wait_settle()
    assert bench.get("trace") == trace
    expect(bench.page.locator(".causes .chosen")).to_contain_text("Rubric unclear")
    bench.press("uuun", gap=0.2)  # all answers back, and abandoned instead
    expect(bench.page.locator(".final .question")).to_have_text("Abandoned")
    bench.page.keyboard.press("Enter")
    expect(bench.page.locator(".missing")).to_have_text(re.compile("write why"))
    bench.page.keyboard.type("It only says sorry")
    bench.page.keyboard.press("Enter")  # leaves the field
    time.sleep(QUIET_S)
    bench.page.keyboard.press("Enter")
    bench.wait_painted(trace)
    bench.wait_saved()
    row = settled(server)[trace]
    assert (row["blind_outcome"], row["outcome"]) == ("complete", "abandoned")
    assert (row["cause"], row["rationale"]) == ("rubric_unclear", "It only says sorry")
