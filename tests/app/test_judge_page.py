"""The judge page: its four questions, and what a click lists."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.views.judge import data
from app.views.judge.data import Found
from calibration.analyses.agreement.traces import TraceSet
from calibration.analyses.demo import JUDGE
from calibration.analyses.judge import diagnostics as traces
from calibration.records import LabelDraft, Verdict
from calibration.store import Store
from tests.analyses.worlds import World, ids
from tests.app.conftest import NewStore, OpenApp, texts
from tests.app.judge_pages import chip, click, demo, judged, listed
from tests.app.test_agreement_page import table

__all__ = ["demo"]


def test_the_rate_of_parts_can_be_by_week(demo: Found, open_app: OpenApp) -> None:
    app = open_app("judge")
    with Store.open(session.store_path()) as store:
        groups = data.grouped(demo.asked, "week", store)
    app.segmented_control(key="judge_by").set_value("week").run()
    assert not app.exception
    assert table(app, "week") == [of.name for of in groups.groups]
    assert table(app, "from") == ["common error rates"] * 8


@pytest.mark.long
def test_what_would_make_it_better(demo: Found, open_app: OpenApp) -> None:
    app = open_app("judge", reviewer="lea")
    question = [step.kind for step in demo.steps].index("question") + 1
    app.button(key=f"judge_step_traces_{question}").click().run()
    assert not app.exception
    assert listed(app) == list(traces.parting_at(demo.traces, "all_subgoals").trace_ids)
    app.number_input(key="judge_half_width").set_value(0.025).run()
    assert "labelled traces with the judge; " in texts(app)


def test_two_judges_are_compared_on_the_same_traces(demo: Found, open_app: OpenApp) -> None:
    with Store.open(session.store_path()) as store:
        verdicts = store.verdict_frame(JUDGE)
        store.add_verdicts(
            [
                Verdict(judge_id="older", trace_id=t, outcome="complete", simulated=True)
                for t in verdicts["trace_id"]
            ]
        )
    app = open_app("judge")
    assert "Compare with" in [box.label for box in app.selectbox]
    app.selectbox(key="judge_other").set_value("older").run()
    assert not app.exception
    assert table(app, "before")[0] == "100.0 %"
    said = texts(app)
    assert "On 2,000 traces with a verdict of both they agree on" in said
    assert "Against the humans, on 300 labelled traces:" in said


# What a click lists


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "row", "column", "behind"),
    [
        ("two_way", 3, "complete", lambda t: traces.in_cell(t, "hallucinated", "complete")),
        ("two_way", 0, "complete", lambda t: traces.in_cell(t, "complete", "complete")),
        ("classes", 3, "recall", lambda t: traces.missed(t, "hallucinated")),
        ("classes", 0, "precision", lambda t: traces.wrongly(t, "complete")),
        ("classes", 4, "labels", lambda t: traces.of_class(t, "abandoned")),
        ("classes", 4, "verdicts", lambda t: traces.with_verdict(t, "abandoned")),
        ("questions", 1, "accuracy", lambda t: traces.parting_at(t, "fabrication")),
        ("leniency_workflow", 0, "labels", lambda t: traces.in_group(t, "workflow", "code_review")),
        ("groups_workflow", 1, "gross", lambda t: traces.in_group(t, "workflow", "research")),
    ],
)
def test_a_click_lists_the_traces_behind_a_number(
    demo: Found,
    open_app: OpenApp,
    name: str,
    row: int,
    column: str,
    behind: Callable[[traces.JudgedTraces], TraceSet],
) -> None:
    expected = behind(demo.traces)
    assert expected.trace_ids
    app = click(open_app("judge"), name, row, column)
    assert listed(app) == list(expected.trace_ids)
    assert chip(app) == f"{len(expected.trace_ids)} traces {expected.what}"
    app.button(key="judge_show_all").click().run()
    assert chip(app) is None
    assert len(listed(app)) == 54


@pytest.mark.long
def test_a_click_works_nothing_out_again(
    demo: Found, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app("judge")

    def never(*_: object, **__: object) -> None:
        raise AssertionError("worked out again")

    for name in ("analyse_judge", "diagnose_judge", "judged_traces", "analyse_groups"):
        monkeypatch.setattr(data, name, never)
    click(app, "two_way", 0, "partial_plus")
    click(app, "questions", 0, "accuracy")


def test_a_trace_opens_with_the_reasons_of_both(world: NewStore, open_app: OpenApp) -> None:
    def fill(made: World) -> None:
        judged(made)
        person = made.store.add_reviewer("Cem").reviewer_id
        answers = made.store.taxonomy().answers_for("partial_plus")
        made.store.import_labels(
            made.batch_id,
            [
                LabelDraft(
                    client_token="cem", trace_id=made.drawn[1], reviewer_id=person,
                    batch_id=made.batch_id, answers=answers, rationale="one seat is missing",
                )
            ],
        )  # fmt: skip

    world(fill, n=24, n_drawn=20)
    app = open_app("judge")
    row = listed(app).index(next(t for t in listed(app) if "Cem" in said_of(app, t)))
    click(app, "trace", row, "moves")
    said = texts(app)
    assert "judge-1: complete" in said
    assert "Reason: =1+1 looks partial_plus" in said
    assert "Evidence in response:" in said
    assert "Cem: partial_plus" in said
    assert "Rationale: one seat is missing" in said


def said_of(app: AppTest, trace_id: str) -> str:
    (shown,) = [frame.value for frame in app.dataframe if "moves" in frame.value.columns]
    return str(shown.loc[shown["trace"] == trace_id, "humans say"].iloc[0])


@pytest.mark.long
@pytest.mark.parametrize("change", ["label", "verdict"])
def test_what_comes_in_is_counted_and_drops_the_choice(
    world: NewStore, store_file: Path, open_app: OpenApp, change: str
) -> None:
    def fill(made: World) -> None:
        judged(made)

    world(fill, n=40, n_drawn=20)
    app = click(open_app("judge"), "classes", 1, "recall")
    assert chip(app) is not None
    before = table(app, "recall") + table(app, "gross") + [texts(app)]
    store = session.open_store(store_file)
    made = World(store=store, batch_id="production-001", drawn=())
    if change == "label":
        made.label("Cem", dict.fromkeys(listed(app), "complete"))
    else:
        unjudged = [t for t in ids(40) if t not in set(store.verdict_frame("judge-1")["trace_id"])]
        made.judge(dict.fromkeys(unjudged, "abandoned"))
    app.run()
    assert not app.exception
    assert table(app, "recall") + table(app, "gross") + [texts(app)] != before
    assert chip(app) is None
