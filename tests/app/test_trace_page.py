import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.components import trace_links
from app.components.trace_links import TraceList
from calibration.analyses.judging.runs import verdicts_of
from calibration.judging.requests import QuotedEvidence, SampleVerdict
from calibration.records import REFERENCE_SOURCE, Evidence, Verdict
from calibration.store import Store
from tests.app.conftest import OpenApp, opened, press, texts
from tests.store.builders import ABANDONED, COMPLETE, HALLUCINATED, Desk, make_trace

HIDDEN = "XHIDDENX"
HOSTILE = "![x](http://evil.test/x.png) <img src=http://evil.test/y>"
IDS = tuple(make_trace(k).trace_id for k in range(4))


@pytest.fixture
def team(store_file: Path) -> Path:
    """Return a batch in which reviewers agree on trace 0, differ on 1, and have 2 to label."""
    with Store.open(store_file, create=True) as store:
        hidden = {
            "model": f"{HIDDEN}-model", "cost_usd": 0.25, "success_criteria": f"{HIDDEN} criteria",
            "metadata": {"team": HIDDEN}, "prompt": f"Buy {HOSTILE}",
        }  # fmt: skip
        store.ingest([make_trace(k, **hidden) for k in range(4)])
        store.ingest([make_trace(9, source=REFERENCE_SOURCE)])
        for name in ("Ann", "Bob"):
            store.add_reviewer(name)
        store.add_reviewer("Lea", role="lead")
        batch = store.add_batch(purpose="production", trace_ids=IDS[:3], labels_wanted=2)
        desk = Desk(store=store, batch=batch.batch_id, traces=IDS)
        for who in ("ann", "bob"):
            desk.queue(who)
        quote = Evidence(step_id="response", quote="The answer is 0")
        desk.label(
            IDS[0], "ann", answers=HALLUCINATED, evidence=(quote,), rationale=f"{HIDDEN} made up",
            confidence=3, tags=("numbers",),
        )  # fmt: skip
        desk.label(IDS[0], "bob", answers=HALLUCINATED, evidence=(quote,))
        desk.label(IDS[1], "ann", rationale=f"{HIDDEN} all there")
        desk.label(IDS[1], "bob", answers=ABANDONED)
        store.add_verdicts(
            [Verdict(judge_id=f"{HIDDEN}-judge", trace_id=t, outcome="abandoned") for t in IDS]
        )
    return store_file


def everything(app: AppTest) -> str:
    """Return all that the page gives to the browser."""
    found = [repr(element) for element in app.main]
    return "\n".join([*found, *(str(frame.value.to_dict()) for frame in app.dataframe)])


def exposures(path: Path) -> list[tuple[str, str, str]]:
    frame = session.open_store(path).exposure_frame()
    return sorted(frame[["reviewer_id", "trace_id", "what"]].itertuples(index=False, name=None))


def test_a_lead_reads_all_that_is_known_of_a_trace(team: Path, open_app: OpenApp) -> None:
    app = open_app("trace", reviewer="lea", id=IDS[0])
    shown = texts(app)
    assert "research · task 0 · completed · $0.25 · 2.5 s · 2 steps · 1 tool call" in shown
    for words in (
        "Ann: Hallucinated", "Bob: Hallucinated", f"Rationale: {HIDDEN} made up",
        "The answer is 0", "Confidence: high", "Tags: numbers", f"{HIDDEN}-judge: Abandoned",
        f"Model: {HIDDEN}-model", "Id in its source: 0", f"{HIDDEN} criteria", "I look up 0.",
    ):  # fmt: skip
        assert words in shown
    (history,) = [frame.value for frame in app.dataframe if "what" in frame.value]
    assert history["what"].tolist() == ["imported", "labelled", "labelled", "verdict"]
    assert exposures(team) == [("lea", IDS[0], "labels"), ("lea", IDS[0], "verdicts")]
    for element in [*app.markdown, *app.caption]:
        assert "evil.test" not in element.value


@pytest.mark.parametrize("number", [1, 2])
def test_what_can_still_be_decided_blind_is_shown_on_request(
    team: Path, open_app: OpenApp, number: int
) -> None:
    app = open_app("trace", reviewer="lea", id=IDS[number])
    assert "Labels and verdicts are hidden" in texts(app)
    assert f"I look up {number}." in texts(app)
    assert HIDDEN not in everything(app)
    assert "0.25" not in everything(app)
    assert exposures(team) == []
    press(app, "trace_show")
    assert f"{HIDDEN}-judge: Abandoned" in texts(app)
    assert ("lea", IDS[number], "verdicts") in exposures(team)
    again = open_app("trace", reviewer="lea", id=IDS[number])
    assert f"{HIDDEN}-judge: Abandoned" in texts(again)


def test_an_adjudicated_trace_shows_the_decision(team: Path, open_app: OpenApp) -> None:
    with Store.open(team) as store:
        store.adjudicate(
            trace_id=IDS[1], answers=COMPLETE, adjudicator="lea", cause="slip",
            rationale="All of it is there.",
        )  # fmt: skip
    shown = texts(open_app("trace", reviewer="lea", id=IDS[1]))
    assert "Adjudicated label" in shown
    assert "Completed, decided by Lea" in shown
    assert "Cause: slip" in shown
    assert "Rationale: All of it is there." in shown
    assert "Ann: Completed" in shown


def test_a_trace_that_nobody_has_judged_says_so(store_file: Path, open_app: OpenApp) -> None:
    with Store.open(store_file, create=True) as store:
        store.ingest([make_trace(0)])
        store.add_reviewer("Lea", role="lead")
    shown = texts(open_app("trace", reviewer="lea", id=IDS[0]))
    assert "This trace is in no batch, so nobody has labelled it." in shown
    assert "No judge has given a verdict on this trace." in shown
    assert exposures(store_file) == []


def test_an_address_may_name_the_id_of_the_source(team: Path, open_app: OpenApp) -> None:
    assert app_title(open_app("trace", reviewer="lea", source_id="3")) == IDS[3]
    session.close_stores()
    with Store.open(team) as store:
        store.ingest([make_trace(k, trace_id=f"again-{k}", source_id="3") for k in (20, 21)])
    app = open_app("trace", reviewer="lea", source_id="3")
    assert "3 traces have the source id 3. Choose one:" in texts(app)


def app_title(app: AppTest) -> str:
    return app.header[0].value.replace("\\", "")


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ({}, "The address names no trace."),
        ({"id": HOSTILE}, f"There is no trace {HOSTILE} in this store."),
        ({"source_id": "none"}, "There is no trace none in this store."),
        ({"id": make_trace(9).trace_id}, "This trace belongs to the reference set"),
    ],
)
def test_an_address_without_a_trace_says_why(
    team: Path, open_app: OpenApp, query: dict[str, str], answer: str
) -> None:
    app = open_app("trace", reviewer="lea", **query)
    assert answer in texts(app)
    assert "evil.test" not in json.dumps([m.value for m in [*app.markdown, *app.caption]])


def test_reviewers_have_no_trace_page(team: Path, open_app: OpenApp) -> None:
    app = open_app("trace", reviewer="ann", id=IDS[0])
    assert "This page is for leads." in texts(app)
    assert HIDDEN not in everything(app)


def test_a_trace_knows_its_neighbours_in_the_list(team: Path, open_app: OpenApp) -> None:
    listed = TraceList(page="data", title="Traces", query={"reviewer": "lea"}, trace_ids=IDS)
    name = trace_links.keep(listed)
    app = open_app("trace", reviewer="lea", id=IDS[0], list=name)
    assert "1 of 4" in texts(app)
    buttons = {button.key: button.disabled for button in app.button}
    assert (buttons["trace_P"], buttons["trace_N"]) == (True, False)
    app.button(key="trace_N").click().run()
    assert (app.query_params["id"], app.query_params["list"]) == (IDS[1], name)
    alone = open_app("trace", reviewer="lea", id=IDS[0], list="gone")
    assert "trace_N" not in {button.key for button in alone.button}


def test_lists_that_nobody_uses_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_links, "MOST_LISTS", 2)
    first, second, third = (
        TraceList(page="data", title=str(k), query={}, trace_ids=()) for k in range(3)
    )
    names = [trace_links.keep(first), trace_links.keep(second)]
    assert trace_links.keep(first) == names[0]
    trace_links.keep(third)
    assert trace_links.kept(names[0]) == first
    assert trace_links.kept(names[1]) is None


def sample(number: int, outcome: str, **about: object) -> SampleVerdict:
    return SampleVerdict(trace_id=IDS[0], sample=number, outcome=outcome, **about)  # type: ignore[arg-type]


def test_a_verdict_of_a_judge_that_we_run_shows_its_proof(team: Path, open_app: OpenApp) -> None:
    """Answers with reasons, quotes by what became of them, samples, cost, run and requests."""
    answers: dict[str, dict[str, Any]] = {
        node: {"answer": given, "reason": f"because {HOSTILE}", "evidence": []}
        for node, given in ABANDONED.items()
    }
    first = next(iter(answers))
    answers[first]["evidence"] = [
        {"step": "S1", "quote": quote} for quote in ("The answer", "I look up", "never there")
    ]
    quotes = tuple(
        QuotedEvidence(step=step, quote=quote, state=state)
        for step, quote, state in (
            ("response", "The answer", "verified"), ("S1", "I look up", "moved"),
            ("S1", "never there", "unverified"), ("S9", f"goal {HOSTILE}", "unverified"),
        )
    )  # fmt: skip
    samples = [
        sample(0, "abandoned", answer=answers, evidence=quotes, reason="none of it",
               flags=("unsupported_answer",), replies=("key-1", "key-2"), cost_usd=0.25,
               latency_s=2.0),
        sample(1, "abandoned", answer=answers, replies=("key-3",), cost_usd=0.25, latency_s=1.5),
        sample(2, "no_verdict", cause="length", replies=("key-4",)),
    ]  # fmt: skip
    with Store.open(team) as store:
        store.add_verdicts(verdicts_of("strict", "strict-001", samples))
    app = open_app("trace", reviewer="lea", id=IDS[0])
    said = texts(app)
    for words in (
        "strict: Abandoned", "Reason: none of it",
        "Samples: Abandoned; Abandoned; No verdict: the answer was cut at the token limit",
        f"because {HOSTILE}", "Verified quote from response:", "Moved quote: it is in S1",
        "Unverified quote, not found in the trace:", f"goal {HOSTILE}",
        "Note: an answer lacks the quote from the response that it needs.",
        "Cost $0.50, answered in 3.5 s, run strict-001",
    ):  # fmt: skip
        assert words in said
    assert said.count("Unverified quote") == 2
    assert "key-1" not in said
    opened(app, "trace_proof_1_journal", "trace_proof_1_3")
    assert "key-1\nkey-2\nkey-3\nkey-4" in texts(app)
    assert "There is no answer that could be read." in texts(app)
    for element in [*app.markdown, *app.caption]:
        assert "evil.test" not in element.value


@pytest.mark.parametrize("detail", ["[]", '{"quotes": 3}', '{"answer": [1]}'])
def test_a_detail_of_another_form_breaks_no_page(
    team: Path, open_app: OpenApp, detail: str
) -> None:
    with Store.open(team) as store:
        verdict = Verdict(judge_id="odd", trace_id=IDS[0], outcome="complete", detail=detail)
        store.add_verdicts([verdict])
    assert "odd: Completed" in texts(open_app("trace", reviewer="lea", id=IDS[0]))
