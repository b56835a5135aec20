"""The Reliability page: of a store, of a file, and of nothing; who sees it."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from calibration.store import Store
from tests.analyses.test_reliability_runs import many
from tests.analyses.worlds import World, repeated_world
from tests.app.conftest import (
    NewStore,
    OpenApp,
    choose,
    figures,
    opened,
    press,
    shown,
    table,
    texts,
)

SECTIONS = ("passes", "bayesian", "listing", *(f"s{n}" for n in range(7)), "command")


@pytest.fixture
def repeated(store_file: Path) -> Path:
    made = repeated_world(store_file)
    made.store.add_reviewer("Lea", role="lead")
    made.store.add_reviewer("Rea")
    made.settle("t01-0", "abandoned")
    made.store.close()
    return store_file


def charts(app: AppTest) -> list[str]:
    return [chart.proto.alt for chart in app.get("vega_lite_chart")]


def test_the_answer_of_a_store_comes_first_and_every_section_opens(
    repeated: Path, open_app: OpenApp
) -> None:
    app = open_app("reliability", reviewer="lea")
    said = texts(app)
    assert "Reliability is 0." in said
    assert "Success from labels: 1 adjudicated, 83 undisputed." in said
    assert "Run each task 1 more time" in said
    found = figures(app)
    assert list(found) == [
        "Consistency", "Predictability", "Robustness", "Safety (beside it)",
    ]  # fmt: skip
    assert not [*app.dataframe, *charts(app)]
    store = session.open_store(repeated)
    assert store.exposure_frame().empty
    opened(app, *(f"reliability_{name}" for name in SECTIONS))
    every = "\n".join(charts(app))
    for part in (
        "Success of k runs of a task: pass@k: at least one of k runs succeeds: 1 ",
        "Calibration: how often runs succeed", "Risk and coverage", "no perturbation",
        "Violations by constraint and severity: no PII exposure",
    ):  # fmt: skip
        assert part in every
    # The least consistent first; its runs open as traces.
    assert table(app, "consistency") == sorted(map(str, table(app, "consistency")))
    assert set(store.exposure_frame()["what"]) == {"labels"}
    choose(app, "reliability_tasks", 0, "task")
    task = str(table(app, "task")[0]).removeprefix("test/task ")
    assert [str(trace)[:3] for trace in table(app, "trace")] == [f"t{task}"] * 7
    assert "asr reliability --model model-x --store" in texts(app)


def test_a_file_is_measured_and_not_stored(repeated: Path, open_app: OpenApp) -> None:
    rows = many(8, runs=2)
    lists = {name: rows[name].map(json.dumps) for name in ("actions", "violations")}
    content = rows.assign(**lists).to_csv(index=False).encode()
    app = opened(open_app("reliability", reviewer="lea"), "reliability_other")
    press_measure(app)
    assert "Choose a file of runs first." in texts(app)
    hand_in(app, "runs", b"task_id,run\na,1\n")
    assert "Nothing was measured: runs.csv: no column holds the outcome" in texts(app)
    app.file_uploader(key="reliability_tasks_upload").set_value(
        ("tasks.csv", b"task_id,tier\ntask 1,edge\ntask 2,core\n", "text/csv")
    )
    hand_in(app, "runs", content)
    said = texts(app)
    assert "Measured on a file; nothing of it is stored." in said
    assert "Success from column success of runs.csv." in said
    opened(app, "reliability_listing", "reliability_command")
    assert "asr reliability runs.csv" in texts(app)
    assert "task 1" in table(app, "task")
    assert session.open_store(repeated).exposure_frame().empty
    opened(app, "reliability_passes", "reliability_tier")
    assert table(app, "tier") == ["core"] * 2 + ["edge"] * 2  # k of 1 and 2
    press(app, "reliability_back")
    assert "83 undisputed" in texts(app)


def hand_in(app: AppTest, what: str, content: bytes) -> None:
    uploader = app.file_uploader(key=f"reliability_{what}_upload")
    uploader.set_value((f"{what}.csv", content, "text/csv"))
    press_measure(app)


def press_measure(app: AppTest) -> None:
    (button,) = [b for b in app.button if b.label == "Measure"]
    shown(button.click().run())


def test_a_store_without_repeated_tasks_says_what_to_do(world: NewStore, open_app: OpenApp) -> None:
    def fill(made: World) -> None:
        made.label("Ann", dict.fromkeys(made.drawn, "complete"))

    world(fill)
    app = open_app("reliability", reviewer="lea")
    said = texts(app)
    assert "No repeated runs with labels yet." in said
    assert "6 labelled runs of 6 tasks: no task was run twice." in said
    assert "asr reliability --store" in said
    assert app.file_uploader(key="reliability_runs_upload")


def test_agents_are_chosen_and_reviewers_do_not_see_the_page(
    store_file: Path, open_app: OpenApp
) -> None:
    made = repeated_world(store_file, agents=("model-x", "model-y"))
    made.store.set_identities("open")
    made.store.add_reviewer("Lea", role="lead")
    made.store.add_reviewer("Rea")
    made.store.close()
    app = open_app("reliability", reviewer="rea")
    assert "This page is for leads." in texts(app)
    assert not [*app.metric, *app.get("file_uploader")]
    app = open_app("reliability", reviewer="lea")
    # Labels of a trace that the lead could adjudicate blind are on the page.
    assert "You have 1 trace to adjudicate blind" in texts(app)
    assert not app.metric
    press(app, "open_anyway")
    assert app.selectbox(key="reliability_agent").options == ["model-x", "model-y"]
    before = figures(app)
    shown(app.selectbox(key="reliability_agent").set_value("model-y").run())
    assert figures(app) != before


def test_an_empty_store_has_the_upload(store_file: Path, open_app: OpenApp) -> None:
    Store.open(store_file, create=True).close()
    app = open_app("reliability")
    assert "No run of a task is labelled yet." in texts(app)
    assert app.file_uploader(key="reliability_runs_upload")
