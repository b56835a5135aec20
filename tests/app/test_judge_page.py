"""The judge page: its questions, what a click lists, its batches and files, and who sees what."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.views.judge import data, listing, steps
from app.views.judge.data import Asked, Found
from calibration.analyses.agreement.traces import TraceSet
from calibration.analyses.demo import JUDGE
from calibration.analyses.judge import diagnostics as traces
from calibration.records import Evidence, LabelDraft, Verdict
from calibration.reporting import csv_exports
from calibration.store import Store
from tests.analyses.worlds import World, ids
from tests.app.conftest import (
    NewStore,
    OpenApp,
    chip,
    choose,
    figures,
    opened,
    press,
    shown,
    table,
    texts,
)

MIX = ("complete", "partial_plus", "partial_minus", "hallucinated", "abandoned")


@pytest.fixture
def demo(demo_store: Path) -> Found:
    with Store.open(demo_store) as store:
        return found_in(store, JUDGE)


def found_in(store: Store, judge_id: str) -> Found:
    asked = Asked(
        path=str(store.path), batch_id="production-001", judge_id=judge_id, design="production",
        state=(*store.result_state(), store.taxonomy().fingerprint, "here"),
    )  # fmt: skip
    return data.analysed(asked, store)


def judged(made: World) -> None:
    """Twenty labelled by two who agree; the judge misses all partial_plus and says why."""
    truth = {t: MIX[k % 5] for k, t in enumerate(made.drawn)}
    made.label("Ann", truth)
    made.label("Ben", truth)
    said = dict.fromkeys(ids(24), "complete") | truth
    made.store.add_verdicts(
        [
            Verdict(
                judge_id="judge-1", trace_id=trace_id, reason=f"=1+1 looks {outcome}",
                outcome="complete" if outcome == "partial_plus" else outcome,
                evidence=(Evidence(step_id="response", quote=f"Booked {trace_id}"),),
            )
            for trace_id, outcome in said.items()
        ]
    )  # fmt: skip


def click(app: AppTest, name: str, row: int, column: str) -> AppTest:
    return choose(app, f"judge_{name}", row, column)


def listed(app: AppTest) -> list[str]:
    return [str(trace) for trace in moving(app)["trace"]]


def moving(app: AppTest) -> pd.DataFrame:
    """Return the list of traces."""
    (found,) = [frame.value for frame in app.dataframe if "effect" in frame.value.columns]
    return found


def test_a_second_judge_is_compared_and_weeks_can_be(demo: Found, open_app: OpenApp) -> None:
    with Store.open(session.store_path()) as store:
        groups = data.grouped(demo.asked, "week", store)
        rows = list(csv.DictReader(io.StringIO(steps.labels(store, demo))))
        all_complete = dict.fromkeys(store.verdict_frame(JUDGE)["trace_id"], "complete")
        World(store, "production-001", ()).judge(all_complete, "older", simulated=True)
    # The calibrated labels are of every trace.
    assert len(rows) == 2_000
    assert float(rows[0]["complete"]) > 0
    app = open_app("judge", reviewer="lea")
    opened(app, "judge_groups", "judge_compare", "judge_more")
    app.segmented_control(key="judge_by").set_value("week")
    shown(app.selectbox(key="judge_other").set_value("older").run())
    assert table(app, "week") == [of.name for of in groups.groups]
    assert table(app, "before")[0] == "100.0 %"
    said = texts(app)
    assert "On 2,000 traces with a verdict of both they agree on" in said
    question = [step.kind for step in demo.steps].index("question") + 1
    press(app, f"judge_step_traces_{question}")
    assert listed(app) == list(traces.parting_at(demo.traces, "all_subgoals").trace_ids)
    app.number_input(key="judge_half_width").set_value(2.5).run()
    assert "labelled traces with the judge; " in texts(app)


def test_the_verdict_comes_first_and_closed_sections_work_nothing_out(
    demo: Found, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("nobody has opened that")

    monkeypatch.setattr(data, "analyse_groups", never)
    app = open_app("judge")
    said = texts(app)
    assert "For the rate: yes, corrected it is 56.6 % [53.0, 60.1]." in said
    assert "For single traces: no, the judge agrees less with the reviewers" in said
    assert figures(app) == {
        "Corrected rate": "56.6 %", "Uncorrected judge": "61.1 %",
        "The judge saves, of labelling": "58.9 %", "Labelled traces": "300",
    }  # fmt: skip
    (picture,) = app.get("vega_lite_chart")
    assert "human sampling +5.1; judge -1.9; production sampling +0.4" in str(picture.proto)
    # The numbers of the picture, in four rows that add up.
    (numbers,) = app.dataframe
    shares = [float(cell.removesuffix(" %")) for cell in numbers.value["share of the variance"]]
    assert len(shares) == 4
    assert sum(shares) == pytest.approx(100, abs=0.2)


CLICKS: list[tuple[str, int, str, Callable[[traces.JudgedTraces], TraceSet]]] = [
    ("two_way", 3, "Completed", lambda t: traces.in_cell(t, "hallucinated", "complete")),
    ("two_way", 0, "Completed", lambda t: traces.in_cell(t, "complete", "complete")),
    ("classes", 3, "recall", lambda t: traces.missed(t, "hallucinated")),
    ("classes", 0, "precision", lambda t: traces.wrongly(t, "complete")),
    ("classes", 4, "labels", lambda t: traces.of_class(t, "abandoned")),
    ("classes", 4, "verdicts", lambda t: traces.with_verdict(t, "abandoned")),
    ("questions", 1, "accuracy", lambda t: traces.parting_at(t, "fabrication")),
    ("leniency_workflow", 0, "labels", lambda t: traces.in_group(t, "workflow", "code_review")),
    (
        "groups_workflow",
        1,
        "before cost penalty",
        lambda t: traces.in_group(t, "workflow", "research"),
    ),
]


@pytest.mark.long
def test_a_click_lists_the_traces_behind_a_number_and_works_nothing_out_again(
    demo: Found, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened(open_app("judge"), "judge_groups")

    def never(*_: object, **__: object) -> None:
        raise AssertionError("worked out again")

    analyses = ("load_batch", "judged_of", "calibrate_judge", "diagnose", "judged_traces")
    for name in (*analyses, "analyse_groups"):
        monkeypatch.setattr(data, name, never)
    for name, row, column, behind in CLICKS:
        expected = behind(demo.traces)
        assert expected.trace_ids
        click(app, name, row, column)
        assert listed(app) == list(expected.trace_ids)
        assert chip(app, "judge") == f"{len(expected.trace_ids)} traces {expected.what}"
        press(app, "judge_show_all")
        assert chip(app, "judge") is None
        assert len(listed(app)) == 54


def test_a_trace_opens_with_the_reasons_of_both(world: NewStore, open_app: OpenApp) -> None:
    def fill(made: World) -> None:
        judged(made)
        person = made.store.add_reviewer("Cem").reviewer_id
        answers = made.store.taxonomy().answers_for("partial_plus")
        draft = LabelDraft(
            client_token="cem", trace_id=made.drawn[1], reviewer_id=person,
            batch_id=made.batch_id, answers=answers, rationale="one seat is missing",
        )  # fmt: skip
        made.store.import_labels(made.batch_id, [draft])

    world(fill, n=24, n_drawn=20)
    app = opened(open_app("judge"), "judge_listing")
    (row,) = (k for k, who in enumerate(moving(app)["reviewers' reasons"]) if "Cem" in who)
    click(app, "trace", row, "effect")
    said = texts(app)
    for part in (
        "judge-1: Completed", "Reason: =1+1 looks partial_plus", "Evidence in response:",
        "Cem: Partial-correct", "Rationale: one seat is missing",
    ):  # fmt: skip
        assert part in said


@pytest.mark.long
@pytest.mark.parametrize("change", ["label", "verdict"])
def test_new_data_drop_the_choice(
    world: NewStore, store_file: Path, open_app: OpenApp, change: str
) -> None:
    world(judged, n=40, n_drawn=20)
    app = opened(open_app("judge"), "judge_off", "judge_groups")
    click(app, "classes", 1, "recall")
    assert chip(app, "judge") is not None
    before = table(app, "recall") + table(app, "before cost penalty") + [texts(app)]
    store = session.open_store(store_file)
    made = World(store=store, batch_id="production-001", drawn=())
    if change == "label":
        made.label("Cem", dict.fromkeys(listed(app), "complete"))
    else:
        unjudged = [t for t in ids(40) if t not in set(store.verdict_frame("judge-1")["trace_id"])]
        made.judge(dict.fromkeys(unjudged, "abandoned"))
    shown(app.run())
    assert table(app, "recall") + table(app, "before cost penalty") + [texts(app)] != before
    assert chip(app, "judge") is None


@pytest.mark.long
def test_batches_are_drawn_once_or_refused(
    demo: Found, store_file: Path, open_app: OpenApp
) -> None:
    app = opened(open_app("judge", reviewer="lea"), "judge_draw", "judge_escalate")
    app.number_input(key="judge_allocated_n").set_value(3)
    press(app, "judge_allocated_submit")
    assert "3 traces are too few for" in texts(app)
    assert "is drawn" not in texts(app)
    app.number_input(key="judge_allocated_n").set_value(80)
    for _ in range(2):
        press(app, "judge_allocated_submit")
    store = session.open_store(store_file)
    (batch,) = (b for b in store.batches() if b.n_items == 80)
    assert (batch.design["judge"], batch.design["allocation"]) == (JUDGE, "neyman")
    assert f"{batch.batch_id} is drawn; reviewers find it on the Label page." in texts(app)
    assert app.selectbox(key="batch").value == "production-001"
    app.number_input(key="judge_escalated_most").set_value(30)
    press(app, "judge_escalated_submit")
    newest = store.batches()[0].batch_id
    assert newest != batch.batch_id
    assert f"asr audit --batch {newest}" in texts(app)


def test_a_simulated_judge_is_not_held_to_real_labels(world: NewStore, open_app: OpenApp) -> None:
    def fill(made: World) -> None:
        made.label("Ann", dict.fromkeys(made.drawn, "complete"))
        made.judge(dict.fromkeys(ids(12), "complete"), simulated=True)

    world(fill)
    assert "must be both simulated or both real" in texts(open_app("judge"))


def test_a_refused_rate_leaves_what_can_be_known(world: NewStore, open_app: OpenApp) -> None:
    def fill(made: World) -> None:
        made.label("Ann", dict.fromkeys(made.drawn, "abandoned"))
        made.judge(dict.fromkeys(ids(24), "complete") | dict.fromkeys(made.drawn[:15], "abandoned"))

    world(fill, n=24, n_drawn=20)
    app = opened(
        open_app("judge"), "judge_estimates", "judge_outcomes", "judge_off", "judge_listing",
        "judge_export",
    )  # fmt: skip
    said = texts(app)
    assert "For the rate: no, because 20 labels, fewer than 30." in said
    assert "Refused: post_stratified, ppi_plus_plus" in said
    assert figures(app)["Corrected rate"] == "refused"
    assert "Without a corrected rate there are no corrected shares." in said
    # Recall of the failures: 15 of 20.
    assert str(table(app, "recall")[4]).startswith("75.0 % [")
    assert len(listed(app)) == 5
    buttons: list[Any] = list(app.get("download_button"))
    assert "Calibrated labels as CSV" not in [button.label for button in buttons]


def test_the_files_parse_guard_formulas_and_are_noted(world: NewStore, store_file: Path) -> None:
    world(judged, n=24, n_drawn=20)
    with Store.open(store_file) as store:
        store.add_reviewer("Lea", role="lead")
        found = found_in(store, "judge-1")
        data = json.loads(steps.written(store, found, "lea", steps.as_json))
        assert data["judge_id"] == "judge-1"
        assert data["confusion"]["counts"][1][0] == 4
        seen = store.exposure_frame()
        assert set(seen["what"]) == {"labels", "verdicts"}
        chosen = traces.differing(found.traces)
        rows = list(csv.DictReader(io.StringIO(csv_exports.judge_traces_csv(found.traces, chosen))))
        assert [row["trace_id"] for row in rows] == list(chosen.trace_ids)
        assert {row["judge_reason"] for row in rows} == {"'=1+1 looks partial_plus"}
        assert rows[0]["class of ann"] == "partial_plus"
        assert listing._csv(store, found, chosen, None) == csv_exports.judge_traces_csv(
            found.traces, chosen
        )


@pytest.mark.long
def test_what_is_shown_is_noted_and_no_more(
    demo: Found, store_file: Path, open_app: OpenApp
) -> None:
    opened(open_app("judge"), "judge_listing")
    opened(open_app("judge", reviewer="lea"), "judge_listing")
    store = session.open_store(store_file)
    seen = store.exposure_frame()
    assert set(seen["reviewer_id"]) == {"lea"}
    assert set(seen["what"]) == {"labels", "verdicts"}
    assert set(seen["trace_id"]) == {of.trace_id for of in demo.diagnosed.disagreements}


def test_what_judge_and_traces_say_is_shown_as_it_is(world: NewStore, open_app: OpenApp) -> None:
    evil = "![x](http://evil.test/x.png) **trace**"

    def fill(made: World) -> None:
        made.label("Ann", dict.fromkeys(made.drawn, "complete"))
        said: dict[str, Any] = {"judge_id": evil, "outcome": "abandoned", "reason": evil}
        made.store.add_verdicts([Verdict(trace_id=t, **said) for t in made.drawn])

    world(fill, traces={t: {"workflow": evil, "model": evil} for t in ids(12)})
    app = opened(open_app("judge"), "judge_listing", "judge_groups", "judge_export")
    click(app, "trace", 0, "trace")
    assert f"{evil}: Abandoned" in texts(app)
    for element in [*app.markdown, *app.caption]:
        assert "![x](http://evil" not in element.value
    for block in app.expander:
        assert "![x](http://evil" not in block.label
