"""The judge page: its four questions, what a click lists, the batches it makes, and its files."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import judge_data, judge_list, judge_steps, session
from app.components.charts import figure
from app.judge_data import Asked, Found
from calibration.analyses import judge_traces as traces
from calibration.analyses.agreement_traces import TraceSet
from calibration.analyses.demo import JUDGE
from calibration.analyses.sampling import SELECTION
from calibration.records import Evidence, LabelDraft, Verdict
from calibration.reporting import judge_csv
from calibration.reporting.calibration import use
from calibration.reporting.text import number
from calibration.store import Store
from tests.analyses.worlds import World, ids, make_world
from tests.app.conftest import OpenApp
from tests.app.test_agreement_page import cell, table
from tests.app.test_result_pages import page, texts
from tests.stores import copy_store

MIX = ("complete", "partial_plus", "partial_minus", "hallucinated", "abandoned")
NewStore = Callable[..., None]


@pytest.fixture(scope="module")
def demo_store(built_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = copy_store(built_demo, tmp_path_factory.mktemp("demo") / "demo.duckdb")
    with Store.open(path) as store:
        store.add_reviewer("Lea", role="lead")
        store.add_reviewer("Rea")
    return path


@pytest.fixture
def demo(demo_store: Path, store_file: Path) -> Found:
    copy_store(demo_store, store_file)
    with Store.open(store_file) as store:
        return found_in(store, JUDGE)


@pytest.fixture
def world(store_file: Path) -> NewStore:
    """Put a small store where the app looks."""

    def make(fill: Callable[[World], None], **options: Any) -> None:
        made = make_world(store_file, **options)
        fill(made)
        made.store.close()

    return make


def found_in(store: Store, judge_id: str) -> Found:
    asked = Asked(
        path=str(store.path), batch_id="production-001", judge_id=judge_id, design="production",
        state=(*store.result_state(), store.taxonomy().fingerprint, "here"),
    )  # fmt: skip
    return judge_data.analysed(asked, store)


def judged(made: World) -> None:
    """Twenty labelled by two who agree; the judge misses all partial_plus and says why."""
    truth = {t: MIX[k % 5] for k, t in enumerate(made.drawn)}
    made.label("Ann", truth)
    made.label("Ben", truth)
    said = dict.fromkeys(ids(24), "complete") | truth
    made.store.add_verdicts(
        [
            Verdict(
                judge_id="judge-1",
                trace_id=trace_id,
                outcome="complete" if outcome == "partial_plus" else outcome,
                reason=f"=1+1 looks {outcome}",
                evidence=(Evidence(step_id="response", quote=f"Booked {trace_id}"),),
            )
            for trace_id, outcome in said.items()
        ]
    )


def click(app: AppTest, name: str, row: int, column: str) -> AppTest:
    app.session_state[f"judge_{name}"] = cell(row, column)
    app.run()
    assert not app.exception
    return app


def listed(app: AppTest) -> list[str]:
    (shown,) = [frame.value for frame in app.dataframe if "moves" in frame.value.columns]
    return list(shown["trace"])


def chip(app: AppTest) -> str | None:
    found = [b for b in app.button if b.key == "judge_show_all"]
    said = [t.value for t in app.text if re.match(r"[\d,]+ traces? ", t.value)]
    return said[0] if found else None


def described(app: AppTest) -> str:
    return " ".join(chart.proto.alt for chart in app.get("vega_lite_chart"))


# The four questions


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
        groups = judge_data.grouped(demo.asked, "week", store)
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


def test_a_click_works_nothing_out_again(
    demo: Found, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page(open_app(), "judge")

    def never(*_: object, **__: object) -> None:
        raise AssertionError("worked out again")

    for name in ("analyse_judge", "diagnose_judge", "judged_traces", "analyse_groups"):
        monkeypatch.setattr(judge_data, name, never)
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


# Batches made from the page


@pytest.mark.long
def test_a_lead_draws_an_allocation_once_and_the_page_stays(
    demo: Found, store_file: Path, open_app: OpenApp
) -> None:
    app = page(open_app(reviewer="lea"), "judge")
    app.number_input(key="judge_allocated_n").set_value(80)
    for _ in range(2):
        app.button(key="judge_allocated_submit").click().run()
        assert not app.exception
    store = session.open_store(store_file)
    made = [b for b in store.batches() if b.batch_id != "production-001" and b.n_items == 80]
    (batch,) = made
    assert batch.design["judge"] == JUDGE
    said = texts(app)
    assert f"{batch.batch_id} is made; reviewers find it on the Label page." in said
    assert f"{batch.batch_id}: 80 of 2000 traces, drawn with probabilities from" in said
    assert app.selectbox(key="batch of Judge").value == "production-001"
    assert "For the rate: yes" in said


@pytest.mark.long
def test_an_escalation_is_made_and_says_how_to_audit_it(demo: Found, open_app: OpenApp) -> None:
    app = page(open_app(reviewer="lea"), "judge")
    app.number_input(key="judge_escalated_most").set_value(30)
    app.button(key="judge_escalated_submit").click().run()
    assert not app.exception
    said = texts(app)
    assert "production-003 is made; reviewers find it on the Label page." in said
    assert "escalated" in said
    assert "asr audit --batch production-003" in said


@pytest.mark.long
def test_a_batch_that_cannot_be_drawn_says_why(demo: Found, open_app: OpenApp) -> None:
    app = page(open_app(reviewer="lea"), "judge")
    app.number_input(key="judge_allocated_n").set_value(3)
    app.button(key="judge_allocated_submit").click().run()
    assert not app.exception
    assert "3 traces are too few for" in texts(app)
    assert "is made" not in texts(app)


# Empty states


def test_without_verdicts_the_page_says_how_to_bring_them_in(
    world: NewStore, open_app: OpenApp
) -> None:
    world(lambda made: made.label("Ann", dict.fromkeys(made.drawn, "complete")))
    said = texts(page(open_app(), "judge"))
    assert "No judge has given a verdict yet" in said
    assert "asr verdicts FILE --judge NAME" in said
    assert "asr import FILES" in said


def test_without_labels_the_page_sends_to_the_label_page(
    world: NewStore, open_app: OpenApp
) -> None:
    world(lambda made: made.judge(dict.fromkeys(ids(12), "complete")))
    app = page(open_app(), "judge")
    assert "has no labels yet; label it on the Label page." in texts(app)
    assert not app.metric


def test_a_simulated_judge_is_not_held_to_real_labels(world: NewStore, open_app: OpenApp) -> None:
    def fill(made: World) -> None:
        made.label("Ann", dict.fromkeys(made.drawn, "complete"))
        made.judge(dict.fromkeys(ids(12), "complete"), simulated=True)

    world(fill)
    assert "must be both simulated or both real" in texts(page(open_app(), "judge"))


def test_a_refused_rate_leaves_everything_else_that_can_be_known(
    world: NewStore, open_app: OpenApp
) -> None:
    def fill(made: World) -> None:
        made.label("Ann", dict.fromkeys(made.drawn, "abandoned"))
        made.judge(dict.fromkeys(ids(24), "complete") | dict.fromkeys(made.drawn[:15], "abandoned"))

    world(fill, n=24, n_drawn=20)
    app = page(open_app(), "judge")
    said = texts(app)
    assert "For the rate: no, because 20 labels, fewer than 30." in said
    assert "Refused: post_stratified, ppi_plus_plus" in said
    assert {m.label: m.value for m in app.metric}["Corrected rate"] == "refused"
    assert "The share of no class can be given" in said
    # Recall of the failures: 15 of 20.
    assert str(table(app, "recall")[4]).startswith("0.750 [")
    assert len(listed(app)) == 5
    assert "1. Label more traces drawn at random from production." in said
    buttons: list[Any] = list(app.get("download_button"))
    assert "Calibrated labels as CSV" not in [button.label for button in buttons]


def test_chosen_traces_show_what_the_judge_does_on_them_and_no_rate(
    world: NewStore, open_app: OpenApp
) -> None:
    def fill(made: World) -> None:
        picked = ids(24)[:20]
        batch = made.store.add_batch(
            purpose="production", trace_ids=picked, design={"kind": SELECTION}, labels_wanted=1
        )
        chosen = World(store=made.store, batch_id=batch.batch_id, drawn=tuple(picked))
        chosen.label("Ann", dict.fromkeys(picked, "abandoned"))
        made.judge(dict.fromkeys(ids(24), "complete") | dict.fromkeys(picked[:15], "abandoned"))

    world(fill, n=24, n_drawn=20)
    # The batch that has labels is shown, and not the one that was drawn and has none.
    app = page(open_app(), "judge")
    said = texts(app)
    assert "For the rate: no, because the labelled traces were chosen and not drawn" in said
    assert "20 labelled traces (chosen, not drawn)" in said
    assert str(table(app, "recall")[4]).startswith("0.750 [")
    assert not app.segmented_control
    assert len(listed(app)) == 5


# What can be taken away


def test_the_files_parse_guard_formulas_and_write_down_who_takes_them(
    world: NewStore, store_file: Path
) -> None:
    world(judged, n=24, n_drawn=20)
    with Store.open(store_file) as store:
        store.add_reviewer("Lea", role="lead")
        found = found_in(store, "judge-1")
        data = json.loads(judge_steps.written(store, found, "lea", judge_steps.as_json))
        assert data["judge_id"] == "judge-1"
        assert data["confusion"]["counts"][1][0] == 4
        seen = store.exposure_frame()
        assert set(seen["what"]) == {"labels", "verdicts"}
        chosen = traces.differing(found.traces)
        rows = list(csv.DictReader(io.StringIO(judge_csv.traces(found.traces, chosen))))
        assert [row["trace_id"] for row in rows] == list(chosen.trace_ids)
        assert {row["judge_reason"] for row in rows} == {"'=1+1 looks partial_plus"}
        assert rows[0]["class of ann"] == "partial_plus"
        assert judge_list._csv(store, found, chosen, None) == judge_csv.traces(found.traces, chosen)


def test_calibrated_labels_are_of_every_trace(demo: Found, store_file: Path) -> None:
    with Store.open(store_file) as store:
        rows = list(csv.DictReader(io.StringIO(judge_steps.labels(store, demo))))
    assert len(rows) == 2_000
    assert float(rows[0]["complete"]) > 0


# Who may see what


def test_what_a_person_is_shown_is_written_down_and_no_more(
    demo: Found, store_file: Path, open_app: OpenApp
) -> None:
    page(open_app(), "judge")
    page(open_app(reviewer="lea"), "judge")
    store = session.open_store(store_file)
    seen = store.exposure_frame()
    assert set(seen["reviewer_id"]) == {"lea"}
    assert set(seen["what"]) == {"labels", "verdicts"}
    assert set(seen["trace_id"]) == {of.trace_id for of in demo.diagnosed.disagreements}


def test_what_judge_and_traces_say_is_shown_as_it_is(world: NewStore, open_app: OpenApp) -> None:
    evil = "![x](http://evil.test/x.png) **trace**"

    def fill(made: World) -> None:
        made.label("Ann", dict.fromkeys(made.drawn, "complete"))
        made.store.add_verdicts(
            [
                Verdict(judge_id=evil, trace_id=t, outcome="abandoned", reason=evil)
                for t in made.drawn
            ]
        )

    world(fill, traces={t: {"workflow": evil, "model": evil} for t in ids(12)})
    app = click(page(open_app(), "judge"), "trace", 0, "trace")
    assert f"{evil}: abandoned" in texts(app)
    for element in [*app.markdown, *app.caption]:
        assert "![x](http://evil" not in element.value
