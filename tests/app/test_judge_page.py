"""The judge page: its four questions, and what a click lists."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.components.charts import figure
from app.views.judge import data
from app.views.judge.data import Found
from calibration.analyses.agreement.traces import TraceSet
from calibration.analyses.demo import JUDGE
from calibration.analyses.judge import traces
from calibration.records import LabelDraft, Verdict
from calibration.reporting.render_text import number
from calibration.reporting.sections.judge import use
from calibration.store import Store
from tests.analyses.worlds import World, ids
from tests.app.conftest import NewStore, OpenApp
from tests.app.judge_pages import MIX, chip, click, demo, demo_store, described, judged, listed
from tests.app.test_agreement_page import table
from tests.app.test_result_pages import page, texts

__all__ = ["demo", "demo_store"]


def test_can_i_use_this_judge(demo: Found, open_app: OpenApp) -> None:
    app = page(open_app(), "judge")
    said = texts(app)
    estimates = demo.result.calibration.estimates
    corrected = estimates["post_stratified"].net
    assert f"For the rate: yes, corrected it is {figure(corrected)}." in said
    assert "For single traces: no, the judge agrees less with the humans than they with" in said
    assert "another version of the judge: not without labels of theirs." in said
    assert "300 labelled traces (taken as a random sample of production), 2,000 judged." in said
    assert "too high, outside that interval." in said
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["Corrected rate"] == f"{corrected.value:.3f}"
    assert shown["Judge as it is"] == f"{estimates['judge_raw'].net.value:.3f}"
    gain = demo.result.calibration.gain
    assert gain is not None
    assert shown["A label with the judge is worth"] == f"{gain.value:.2f}"
    # The plan and the text of the command line name the same worth.
    assert demo.plan is not None
    assert demo.plan.worth is not None
    assert demo.plan.worth.multiplier.value == pytest.approx(gain.value)
    assert f"one label with it is worth this many without: {number(gain, 2)}" in "\n".join(
        use(demo.result)
    )
    drawn = described(app)
    for name in ("judge-raw, every", "human-only, the", "corrected, post_stratified", "bayesian"):
        assert name in drawn
    # No interval of its own error is drawn for the judge as it is.
    raw = f"judge-raw, every verdict taken as true {figure(estimates['judge_raw'].net)};"
    assert raw in drawn.replace("   ", " ") or raw.replace("true ", "true   ") in drawn
    assert "Simulated data" in said


def test_for_what(demo: Found, open_app: OpenApp) -> None:
    app = page(open_app(), "judge")
    with Store.open(session.store_path()) as store:
        groups = data.grouped(demo.asked, "week", store)
    assert "Share of production traces, corrected" in described(app)
    assert table(app, "from").count("own labels") == 3
    said = texts(app)
    assert "cannot gate." in said
    assert "Does the judge err alike? chi-square 59.6 on 55 df" in said
    assert table(app, "may gate").count("yes") == 3
    app.segmented_control(key="judge_by").set_value("week").run()
    assert not app.exception
    assert table(app, "week") == [of.name for of in groups.groups]
    assert table(app, "from") == ["common error rates"] * 8


def test_how_far_off_is_it(demo: Found, open_app: OpenApp) -> None:
    app = page(open_app(), "judge")
    quality = demo.result.calibration.judge
    assert table(app, "recall") == [figure(of.recall) for of in quality.per_class]
    assert table(app, "precision") == [figure(of.precision) for of in quality.per_class]
    assert "Gwet's AC1, judge with human" in described(app)
    total = sum(demo.diagnosed.errors.values())
    assert table(app, "errors begin here") == [
        pytest.approx(100 * demo.diagnosed.errors.get(name, 0) / total)
        for name in demo.diagnosed.nodes
    ]
    two_way = [f.value for f in app.dataframe if list(f.value.columns) == list(MIX)]
    assert two_way[0].to_numpy().tolist() == demo.result.calibration.confusion.table.tolist()
    assert table(app, "lenient by") == [
        figure(of.gap.estimate) for of in demo.diagnosed.leniency_by["workflow"]
    ]
    said = texts(app)
    assert "Credit for each doubling of the number of steps: 0.002 [-0.052, 0.057], p = " in said
    assert "No trace has two verdicts of this judge" in said
    assert listed(app) == [of.trace_id for of in demo.diagnosed.disagreements]


@pytest.mark.long
def test_what_would_make_it_better(demo: Found, open_app: OpenApp) -> None:
    app = page(open_app(reviewer="lea"), "judge")
    said = texts(app)
    for place, step in enumerate(demo.steps, 1):
        assert f"{place}. {step.what}" in said
        assert step.why in said
        assert step.command is None or f"asr {step.command} --store" in said
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
    app = page(open_app(), "judge")
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
    app = click(page(open_app(), "judge"), name, row, column)
    assert listed(app) == list(expected.trace_ids)
    assert chip(app) == f"{len(expected.trace_ids)} traces {expected.what}"
    app.button(key="judge_show_all").click().run()
    assert chip(app) is None
    assert len(listed(app)) == 54


@pytest.mark.long
def test_a_click_works_nothing_out_again(
    demo: Found, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page(open_app(), "judge")

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
    app = page(open_app(), "judge")
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
    app = click(page(open_app(), "judge"), "classes", 1, "recall")
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
