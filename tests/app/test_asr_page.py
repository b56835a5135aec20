"""The ASR page: what it leads with, how it is narrowed, its work lists and its files."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from streamlit.testing.v1 import AppTest

from app.session import open_store
from app.views.success_rate import data, work
from app.views.success_rate.data import Asked, Found
from calibration.cli import main
from calibration.records import Verdict
from calibration.store import Store
from tests.analyses.worlds import ids, known, make_trace, make_world
from tests.app.conftest import OpenApp, choose, figures, opened, press, shown, texts

N = 60
MIX = ("complete", "complete", "partial_plus", "partial_minus", "hallucinated", "abandoned")
DAYS = (datetime(2026, 9, 29, 10, tzinfo=UTC), datetime(2026, 10, 6, 10, tzinfo=UTC))
HOSTILE = "**b** [x](http://e.example) <i>"
MakeStore = Callable[..., None]


@pytest.fixture
def filled(store_file: Path) -> MakeStore:
    """Put two weeks of two workflows where the app looks, labelled and, unless told not, judged."""

    def make(*, judge: bool = True, **traces: Any) -> None:
        changes = {
            name: {
                "started_at": DAYS[k // 30], "model": HOSTILE, "cost_usd": 0.2,
                "workflow": "hotels" if k % 3 else HOSTILE,
            } | traces
            for k, name in enumerate(ids(N))
        }  # fmt: skip
        made = make_world(store_file, n=N, n_drawn=48, traces=changes)
        truth = {name: MIX[k % len(MIX)] for k, name in enumerate(ids(N))}
        made.label("Ann", {name: truth[name] for name in made.drawn})
        if judge:
            made.judge(truth)
        made.store.add_reviewer("Lea", role="lead")
        made.store.close()

    return make


def found_in(path: Path, **asked: Any) -> Found:
    """Return what the page makes of the store, with the arguments of the command line."""
    with Store.open(path) as store:
        options = {"judge_id": "judge-1", "since": None, "until": None, "workflow": None}
        return data.reported(
            Asked(
                path=str(store.path), batch_id="production-001", models=True,
                state=(*store.result_state(), "here", *map(str, asked.values())),
                **(options | asked),
            ),
            store,
        )  # fmt: skip


def listed(app: AppTest) -> list[str]:
    (shown,) = [frame.value for frame in app.dataframe if "trace" in frame.value.columns]
    return list(shown["trace"])


def test_names_are_text_and_windows_can_be_wrong(filled: MakeStore, open_app: OpenApp) -> None:
    filled()
    app = opened(open_app("asr"), *(f"asr_s{n}" for n in range(11)), "asr_listing")
    for element in [*app.markdown, *app.caption]:
        assert "e.example" not in element.value
    assert any(HOSTILE in set(f.value.iloc[:, 0]) for f in app.dataframe)
    app.segmented_control(key="asr_window").set_value("From - to").run()
    shown(app.date_input(key="asr_from").set_value(datetime(2026, 10, 8, tzinfo=UTC).date()).run())
    assert "is not before" in texts(app)
    assert not app.metric


def test_the_verdict_comes_first_and_a_change_of_few_labels_is_no_number(
    filled: MakeStore, open_app: OpenApp
) -> None:
    filled()
    app = open_app("asr")
    assert len(app.metric) <= 4
    assert any(text.value.startswith("Of runs like these, ") for text in app.text)
    (change,) = (m for m in app.metric if m.label.startswith("Change"))
    assert change.value == "not clear"
    assert change.delta.endswith("n = 48")
    assert all(block.label.startswith("**") or "numbers" in block.label for block in app.expander)
    # The numbers of the picture are one key away; no other table is drawn.
    assert not app.dataframe
    # What is open stays open when the report is narrowed.
    opened(app, "asr_s3")
    shown(app.segmented_control(key="asr_window").set_value("Last week").run())
    assert "mean cost of a run" in texts(app)


@pytest.mark.long
def test_the_window_and_the_workflow_narrow_it(filled: MakeStore, open_app: OpenApp) -> None:
    filled()
    app = open_app("asr")
    before = figures(app)
    shown(app.segmented_control(key="asr_window").set_value("Last week").run())
    assert "The mean score of runs like the 30 production traces (2026-W41)" in texts(app)
    assert "--from 2026-W41 --to 2026-W41" in texts(opened(app, "asr_command"))
    app.segmented_control(key="asr_window").set_value("From - to").run()
    app.date_input(key="asr_to").set_value(DAYS[0].date()).run()
    assert "(2026-09-29 to 2026-09-29)" in texts(app) or "(2026-09-29)" in texts(app)
    app.segmented_control(key="asr_window").set_value("All").run()
    assert figures(app) == before
    shown(app.selectbox(key="asr_workflow").set_value("hotels").run())
    assert "of workflow hotels" in texts(app)


@pytest.mark.long
def test_a_work_list_opens_traces(filled: MakeStore, open_app: OpenApp, store_file: Path) -> None:
    filled()
    made = known(found_in(store_file).made)
    app = open_app("asr", reviewer="lea")
    press(app, "asr_open")
    expected = [item.trace_id for item in made.work["partial_minus"]]
    assert expected == listed(app) != []
    app.segmented_control(key="asr_class").set_value("hallucinated").run()
    expected = [item.trace_id for item in made.work["hallucinated"]]
    assert listed(app) == expected
    choose(app, "asr_trace", 1, "trace")
    assert f"{expected[1]} (2 of {len(expected)})" in texts(app)
    assert "Ann: Hallucinated" in texts(app)
    # Whoever sees these labels could repeat them: that is written down.
    app.segmented_control(key="asr_class").set_value("abandoned").run()
    assert "Click a trace" in texts(app)
    with Store.open(store_file) as store:
        seen = store.exposure_frame()
    assert set(expected) <= set(seen.loc[seen["reviewer_id"] == "lea", "trace_id"])


@pytest.mark.long
def test_the_files_are_those_of_the_command_line(filled: MakeStore, store_file: Path) -> None:
    filled()
    asked = {"since": "2026-W40", "until": "2026-W41", "workflow": "hotels"}
    found = found_in(store_file, **asked)
    run = [*found.asked.words.split(), "--store", str(store_file)]

    def printed(*options: str) -> str:
        result = CliRunner().invoke(main, [*run, *options])
        assert result.exit_code == 0, result.output
        return result.stdout

    assert printed("--json") == found.file("json")
    assert json.loads(found.file("json"))["n"] == 40
    assert printed("--markdown").strip() == found.file("md").strip()
    out = store_file.parent / "r.html"
    printed("--html", str(out))
    assert out.read_text("utf-8") == found.file("html")
    printed("--work", str(store_file.parent / "todo"))
    with Store.open(store_file) as store:
        shown = work._csv(store, found, known(found.made), "abandoned", "lea")
        assert set(store.exposure_frame()["reviewer_id"]) == {"lea"}
    assert (store_file.parent / "todo" / "abandoned.csv").read_text("utf-8") == shown.replace(
        "\r\n", "\n"
    )


def test_without_verdicts_labels_count(filled: MakeStore, open_app: OpenApp) -> None:
    filled(judge=False)
    app = open_app("asr")
    assert "Human labels only, not calibrated. The mean score" in texts(app)
    assert "Import verdicts on all traces, and the rate is corrected" in texts(app)


def test_without_times_there_are_no_weeks(filled: MakeStore, open_app: OpenApp) -> None:
    filled(started_at=None)
    app = open_app("asr")
    assert "The traces have no start times" in texts(app)
    assert "Corrected for judge error. The mean score" in texts(app)
    # The classes are the picture then.
    assert len(app.get("vega_lite_chart")) == 1


@pytest.mark.long
def test_new_labels_show_at_once(filled: MakeStore, open_app: OpenApp, store_file: Path) -> None:
    filled()
    before = figures(open_app("asr"))
    store = open_store(store_file)
    labelled = store.batch_items("production-001")["trace_id"].iloc[0]
    store.adjudicate(
        trace_id=labelled, answers=store.taxonomy().answers_for("abandoned"), adjudicator="lea"
    )
    assert figures(open_app("asr")) != before


def test_odd_weeks_and_moved_classes_have_words(store_file: Path, open_app: OpenApp) -> None:
    # Eight weeks of 10 runs, 7 or 8 complete; in the last one none is.
    def of_week(week: int, place: int) -> str:
        return "complete" if week < 7 and place < 7 + week % 2 else "hallucinated"

    traces = {
        name: {"started_at": DAYS[0] + timedelta(weeks=k // 10)} for k, name in enumerate(ids(80))
    }
    made = make_world(store_file, n=80, n_drawn=80, traces=traces)
    made.label("Ann", {name: of_week(k // 10, k % 10) for k, name in enumerate(ids(80))})
    made.store.close()
    app = opened(open_app("asr"), "asr_s1", "asr_weeks_table_folded")
    said = "Ring and the word anomaly: outside the range that the weeks before predict"
    assert said in texts(app)
    # A fall from 7.5 in 10 to none is clear, and its interval is beside it.
    (change,) = (m for m in app.metric if m.label.startswith("Change"))
    assert change.value.endswith(" points")
    assert change.delta.endswith("n = 20")
    (changes,) = [f.value for f in app.dataframe if "adjusted p" in f.value.columns]
    moved = changes[changes["flag"] == "moved"]
    assert set(moved["class"]) == {"Completed", "Hallucinated"}
    weekly = next(f.value for f in app.dataframe if "expected" in f.value.columns)
    assert list(weekly["flag"]) == ["-"] * 7 + ["anomaly"]


def test_an_address_names_window_and_judge(demo_store: Path, open_app: OpenApp) -> None:
    app = open_app("asr", asr_window="Last week", judge="none")
    assert app.segmented_control(key="asr_window").value == "Last week"
    app = open_app("asr", asr_window="Next year")
    assert app.segmented_control(key="asr_window").value == "All"


def test_without_labels_the_outcomes_that_came_with_the_runs_are_shown_as_such(
    store_file: Path, open_app: OpenApp
) -> None:
    with Store.open(store_file, create=True) as store:
        store.ingest([make_trace(name, source="bench", cost_usd=0.2) for name in ids(10)])
        store.add_reviewer("Lea", role="lead")
        store.add_verdicts([
            Verdict(judge_id="source:bench", trace_id=name, outcome=MIX[k % 2 and 3])
            for k, name in enumerate(ids(10))
        ])  # fmt: skip
    app = open_app("asr", reviewer="lea")
    said = texts(app)
    assert "Of runs like these, 50.0 % succeed" in said
    assert "Outcomes of source:bench, taken as given: no reviewer has checked them." in said
    assert app.metric[0].label == "Agent success rate, as given"
    assert "Label a random sample of the runs" in said
    assert "report --judge source:bench" in texts(opened(app, "asr_command"))
    app = press(app, "asr_open")
    assert listed(app) == [name for k, name in enumerate(ids(10)) if k % 2]
    with Store.open(store_file) as store:
        frame = store.exposure_frame()
    assert set(frame["what"]) == {"verdicts"}


@pytest.mark.parametrize(("page", "rate"), [("asr", "succeed"), ("overview", "success rate is")])
def test_what_was_left_out_stands_before_the_rate(
    filled: MakeStore, open_app: OpenApp, page: str, rate: str, store_file: Path
) -> None:
    filled(judge=False)
    with Store.open(store_file) as store:
        store.record_undo(client_token="u", reviewer_id="ann", batch_id="production-001")
    lines = texts(open_app(page, reviewer="lea")).splitlines()
    (at,) = [k for k, line in enumerate(lines) if line.startswith("Left out: ")]
    assert lines[at] == "Left out: 1 not labelled yet."
    assert at < next(k for k, line in enumerate(lines) if rate in line)
