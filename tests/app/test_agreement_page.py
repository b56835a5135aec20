"""The agreement page: its five questions, what a click lists, and what can be taken away."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.views.agreement import steps
from calibration.analyses.agreement import traces
from calibration.analyses.agreement.analysis import AgreementAnalysis, analyse_agreement
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.store import Store, database
from tests.analyses.worlds import World
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
from tests.cli_runs import data, run

MIX = ("complete", "partial_plus", "partial_minus", "hallucinated", "abandoned")


@pytest.fixture
def demo(demo_store: Path) -> AgreementAnalysis:
    with Store.open(demo_store) as store:
        return analyse_agreement(store)


def click(app: AppTest, table: str, row: int, column: str) -> AppTest:
    return choose(app, f"agreement_{table}", row, column)


def listed(app: AppTest) -> list[str]:
    """Return the traces of the list, in its order."""
    (shown,) = [f.value for f in app.dataframe if "effect on alpha" in str(f.proto.columns)]
    return list(shown["trace"])


def test_commands_and_pages_measure_the_same_batches(demo_store: Path, open_app: OpenApp) -> None:
    with Store.open(demo_store) as store:
        (random,) = [b.batch_id for b in store.batches() if b.is_sample and not b.is_audit]
        before = analyse_agreement(store, random).study.alpha.value
        few = sorted(store.production_traces()["trace_id"])[:6]
        chosen = store.add_batch(purpose="production", trace_ids=few, design={"kind": "chosen"})
        picked = World(store=store, batch_id=chosen.batch_id, drawn=tuple(few))
        for name, outcome in (("Rea", "complete"), ("Moe", "abandoned")):
            picked.label(name, dict.fromkeys(few, outcome), simulated=True)
        newest = draw_batch(store, SamplingDesign(seed=5), n=4)
        assert [b.batch_id for b in store.batches()][:2] == [newest.batch_id, chosen.batch_id]
    command = data(run("agreement", "--json", "--store", demo_store))
    assert command["batch_id"] == random
    assert command["coefficients"]["krippendorff_alpha"]["value"] == before
    rate = data(run("report", "--json", "--store", demo_store))
    assert rate["origin"]["settings"]["batch"] == random
    judged = data(run("calibrate", "--brief", "--json", "--store", demo_store))
    assert judged["batch_id"] == random
    assert (
        data(run("plan", "labels", "--n", 40, "--json", "--store", demo_store))["basis"] == random
    )
    for page in ("agreement", "judge", "asr"):
        app = open_app(page)
        assert app.selectbox(key="batch").value == random, page
    for words in ("agreement", "report", "calibrate --brief", "status", "plan labels --n 40"):
        _banner, first, *_ = run(*words.split(), "--store", demo_store).stdout.splitlines()
        assert random in first, words


def test_the_last_click_counts(demo: AgreementAnalysis, open_app: OpenApp) -> None:
    app = click(opened(open_app("agreement"), "agreement_listing"), "trace", 1, "entropy")
    second = demo.disputed[1]
    with Store.open(session.store_path()) as store:
        (trace,) = store.for_review([second.trace_id])
    assert f"{second.trace_id} (2 of 36)" in texts(app)
    assert trace.prompt[:60] in texts(app)
    # Another list has other traces at the same place: it opens none.
    click(opened(app, "agreement_who"), "pairs", 2, "alpha")
    assert "#### Labels" not in [m.value for m in app.markdown]
    assert "Rows: Ben (simulated). Columns: Cleo (simulated)." in texts(app)
    app.selectbox(key="agreement_pair").set_value(1).run()
    assert "Rows: Ada (simulated). Columns: Cleo (simulated)." in texts(app)
    press(app, "agreement_step_traces_2")
    assert listed(app) == list(traces.confused(demo, 0, 2).trace_ids)
    click(app, "questions", 0, "alpha")
    click(app, "confusions", 1, "traces")
    assert listed(app) == list(traces.confused(demo, 0, 1).trace_ids)
    assert not app.session_state["agreement_questions"]["selection"]["cells"]
    app.run()
    assert listed(app) == list(traces.confused(demo, 0, 1).trace_ids)
    none: dict[str, list[object]] = {"rows": [], "columns": [], "cells": []}
    app.session_state["agreement_confusions"] = {"selection": none}
    assert chip(shown(app.run()), "agreement") is None
    press(app, "agreement_how_many")
    (said,) = [text.value for text in app.text if "nine times in ten" in text.value]
    assert int(said.split()[0].replace(",", "")) > 1_000


SECTIONS = ("where", "confused", "who", "sure", "listing", "export")


def test_closed_sections_work_nothing_out_and_stay_as_they_are(
    demo: AgreementAnalysis, open_app: OpenApp
) -> None:
    app = open_app("agreement")
    assert "Usable with care: agreement is 0.83 and could be as low as 0.77" in texts(app)
    assert len(app.metric) == 4
    # The table below the picture is all there is.
    assert len(app.dataframe) == 1
    labels = {block.label for block in app.expander}
    assert any("question 3, all subgoals" in label for label in labels)
    opened(app, "agreement_where")
    closed = len(app.dataframe)
    assert closed == 2
    click(app, "questions", 2, "disagreements start here")
    # The choice opens the list, and outlives the section that it was made in.
    assert app.session_state["agreement_listing"]
    app.session_state["agreement_where"] = False
    shown(app.run())
    shown(app.run())
    assert listed(app) == list(traces.parting_at(demo, "all_subgoals").trace_ids)


CLICKS: list[tuple[str, int, str, Callable[[AgreementAnalysis], traces.TraceSet]]] = [
    ("questions", 2, "disagreements start here", lambda r: traces.parting_at(r, "all_subgoals")),
    ("questions", 3, "traces with two answers", lambda r: traces.reaching(r, "material_error")),
    ("classes", 4, "specific agreement", lambda r: traces.contested(r, 4)),
    ("classes", 4, "share of labels", lambda r: traces.with_class(r, 4)),
    ("confusions", 0, "lift", lambda r: traces.confused(r, 0, 2)),
    ("reviewers", 1, "labels", lambda r: traces.labelled_by(r, 1, "Ben (simulated)")),
    ("reviewers", 1, "change", lambda r: traces.apart_from_others(r, 1, "Ben (simulated)")),
    ("settled", 2, "AC1", lambda r: traces.apart_from_settled(r, 2, "Cleo (simulated)")),
    ("two_way_0_1", 0, "Completed",
     lambda r: traces.in_cell(r, (0, 1), (0, 0), ("Ada (simulated)", "Ben (simulated)"))),
]  # fmt: skip


@pytest.mark.long
def test_a_click_lists_traces_behind_it(demo: AgreementAnalysis, open_app: OpenApp) -> None:
    app = open_app("agreement")
    for name, row, column, behind in CLICKS:
        expected = behind(demo)
        click(app, name, row, column)
        assert listed(app) == list(expected.trace_ids)
        assert chip(app, "agreement") == f"{len(expected.trace_ids)} traces {expected.what}"
        press(app, "agreement_show_all")
        assert chip(app, "agreement") is None
        assert listed(app) == [of.trace_id for of in demo.disputed]


def test_new_labels_drop_the_choice(world: NewStore, store_file: Path, open_app: OpenApp) -> None:
    def fill(made: World) -> None:
        for name, said in (("Ann", MIX), ("Ben", ("complete", *MIX[:4]))):
            made.label(name, dict(zip(made.drawn, said, strict=False)))

    world(fill, n=12, n_drawn=6)
    app = click(open_app("agreement"), "questions", 0, "alpha")
    assert chip(app, "agreement") is not None
    before = figures(app)["Agreement (alpha)"]
    store = session.open_store(store_file)
    drawn = store.batch_items("production-001")["trace_id"]
    World(store, "production-001", ()).label("Cem", dict.fromkeys(drawn, "complete"))
    assert chip(shown(app.run()), "agreement") is None
    assert figures(app)["Agreement (alpha)"] != before


def test_two_weeks_compared(
    world: NewStore, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(made: World) -> None:
        for days, drawn in ((0, made.drawn[:10]), (14, made.drawn[10:])):
            now = database.utc_now() - timedelta(days=days)
            with monkeypatch.context() as earlier:
                earlier.setattr("calibration.store.labels.utc_now", lambda now=now: now)
                for name, shift in (("Ann", 0), ("Ben", 1)):
                    made.label(
                        name, {t: MIX[(k + shift * (k < 3)) % 5] for k, t in enumerate(drawn)}
                    )

    world(fill, n=24, n_drawn=20)
    app = opened(open_app("agreement"), "agreement_sure")
    weeks = table(app, "week")
    assert len(weeks) == 2
    # The tree, the coefficients, the mix of classes and the weeks.
    assert len(app.get("vega_lite_chart")) == 4
    click(app, "weeks", 0, "alpha")
    assert len(listed(app)) == 10
    assert chip(app, "agreement") == f"10 traces with two labels, the last in {weeks[0]}"


def test_nothing_to_compare_yet(world: NewStore, open_app: OpenApp) -> None:
    world(lambda made: made.label("Ann", dict.fromkeys(made.drawn[:3], MIX[0])))
    app = open_app("agreement")
    for said in ("Nothing to compare yet", "Only Ann has labelled, 3 traces", "a second reviewer"):
        assert said in texts(app)
    assert not app.metric


@pytest.mark.parametrize("classes", [MIX, ("complete",)])
def test_without_a_disagreement(
    world: NewStore, open_app: OpenApp, classes: tuple[str, ...]
) -> None:
    def fill(made: World) -> None:
        for name in ("Ann", "Ben"):
            made.label(name, {t: classes[k % len(classes)] for k, t in enumerate(made.drawn)})

    world(fill, n=24, n_drawn=20)
    app = opened(open_app("agreement"), "agreement_listing", "agreement_sure")
    said = texts(app)
    assert "No disagreement yet: every trace with two labels has the same class twice." in said
    assert "No trace on which reviewers differ. Click a number" in said
    assert ("no disagreement seen" if len(classes) > 1 else "Not known yet") in said
    assert "1. " in said
    click(opened(app, "agreement_who"), "two_way_0_1", 0, "Completed")
    assert listed(app)


def test_what_is_shown_is_noted(
    demo: AgreementAnalysis, store_file: Path, open_app: OpenApp
) -> None:
    opened(open_app("agreement"), "agreement_listing")
    app = open_app("agreement", reviewer="lea")
    store = session.open_store(store_file)
    # Nobody is exposed to a list that is closed.
    assert store.exposure_frame().empty
    opened(app, "agreement_listing")
    seen = store.exposure_frame()
    assert set(seen["reviewer_id"]) == {"lea"}
    assert set(seen["what"]) == {"labels"}
    assert set(seen["trace_id"]) == {of.trace_id for of in demo.disputed}
    click(app, "reviewers", 0, "labels")
    assert len(store.exposure_frame()) > len(seen)
    steps.written(store, demo, "lea", steps.as_json)
    assert len(store.exposure_frame()) == 300


def test_what_reviewers_write_is_shown_as_it_is(world: NewStore, open_app: OpenApp) -> None:
    evil = "![x](http://evil.test/x.png) **trace**"

    def fill(made: World) -> None:
        made.label(evil, dict.fromkeys(made.drawn, "complete"))
        made.label("trace", dict.fromkeys(made.drawn, "partial_plus"))

    world(fill)
    app = opened(open_app("agreement"), "agreement_who", "agreement_listing")
    click(app, "trace", 0, "trace")
    assert f"{evil}: Completed" in texts(app)
    labels = [block.label for block in app.expander]
    assert len(labels) == len(SECTIONS)
    for text in [*(element.value for element in [*app.markdown, *app.caption]), *labels]:
        assert "![x](" not in text
