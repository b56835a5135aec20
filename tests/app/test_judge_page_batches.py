"""The judge page: its batches, its empty states, its files, and who sees what."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from app import session
from app.views.judge import listing, steps
from app.views.judge.data import Found
from calibration.analyses.demo import JUDGE
from calibration.analyses.judge import diagnostics as traces
from calibration.records import Verdict
from calibration.reporting import csv_exports
from calibration.store import Store
from calibration.store.batches import SELECTION
from tests.analyses.worlds import World, ids
from tests.app.conftest import NewStore, OpenApp, texts
from tests.app.judge_pages import click, demo, found_in, judged, listed
from tests.app.test_agreement_page import table

__all__ = ["demo"]


@pytest.mark.long
def test_a_lead_draws_an_allocation_once_and_the_page_stays(
    demo: Found, store_file: Path, open_app: OpenApp
) -> None:
    app = open_app("judge", reviewer="lea")
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
    app = open_app("judge", reviewer="lea")
    app.number_input(key="judge_escalated_most").set_value(30)
    app.button(key="judge_escalated_submit").click().run()
    assert not app.exception
    said = texts(app)
    assert "production-003 is made; reviewers find it on the Label page." in said
    assert "escalated" in said
    assert "asr audit --batch production-003" in said


@pytest.mark.long
def test_a_batch_that_cannot_be_drawn_says_why(demo: Found, open_app: OpenApp) -> None:
    app = open_app("judge", reviewer="lea")
    app.number_input(key="judge_allocated_n").set_value(3)
    app.button(key="judge_allocated_submit").click().run()
    assert not app.exception
    assert "3 traces are too few for" in texts(app)
    assert "is made" not in texts(app)


# Empty states


def test_without_labels_the_page_sends_to_the_label_page(
    world: NewStore, open_app: OpenApp
) -> None:
    world(lambda made: made.judge(dict.fromkeys(ids(12), "complete")))
    app = open_app("judge")
    assert "has no labels yet; label it on the Label page." in texts(app)
    assert not app.metric


def test_a_simulated_judge_is_not_held_to_real_labels(world: NewStore, open_app: OpenApp) -> None:
    def fill(made: World) -> None:
        made.label("Ann", dict.fromkeys(made.drawn, "complete"))
        made.judge(dict.fromkeys(ids(12), "complete"), simulated=True)

    world(fill)
    assert "must be both simulated or both real" in texts(open_app("judge"))


def test_a_refused_rate_leaves_everything_else_that_can_be_known(
    world: NewStore, open_app: OpenApp
) -> None:
    def fill(made: World) -> None:
        made.label("Ann", dict.fromkeys(made.drawn, "abandoned"))
        made.judge(dict.fromkeys(ids(24), "complete") | dict.fromkeys(made.drawn[:15], "abandoned"))

    world(fill, n=24, n_drawn=20)
    app = open_app("judge")
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
    app = open_app("judge")
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


def test_calibrated_labels_are_of_every_trace(demo: Found, store_file: Path) -> None:
    with Store.open(store_file) as store:
        rows = list(csv.DictReader(io.StringIO(steps.labels(store, demo))))
    assert len(rows) == 2_000
    assert float(rows[0]["complete"]) > 0


# Who may see what


@pytest.mark.long
def test_what_a_person_is_shown_is_written_down_and_no_more(
    demo: Found, store_file: Path, open_app: OpenApp
) -> None:
    open_app("judge")
    open_app("judge", reviewer="lea")
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
    app = click(open_app("judge"), "trace", 0, "trace")
    assert f"{evil}: abandoned" in texts(app)
    for element in [*app.markdown, *app.caption]:
        assert "![x](http://evil" not in element.value
