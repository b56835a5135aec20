"""A lead who still has traces to decide blind is asked before a page shows labels of them."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from calibration.analyses.reviewers.adjudication import blind_work
from calibration.store import Store
from calibration.store.leases import claim
from tests.analyses.worlds import World, make_world
from tests.app.conftest import NewStore, OpenApp, press, texts
from tests.classes import OUTCOMES

C, P, M, H, A = OUTCOMES
ASKED = "You have 2 traces to adjudicate blind in production-001."
PAGES = ("agreement", "judge", "asr")  # and reliability, where tasks repeat


def disputed(world: World) -> None:
    world.store.set_identities("open")
    world.label("Ann", dict.fromkeys(world.drawn, C))
    world.label("Ben", {t: A if k < 2 else C for k, t in enumerate(world.drawn)})
    world.judge(dict.fromkeys(world.drawn, C))


@pytest.fixture
def world_of_two(world: NewStore) -> None:
    world(disputed, n=30, n_drawn=20)


def asks(app: AppTest) -> bool:
    return any(button.key == "open_anyway" for button in app.button)


def test_every_page_with_labels_asks_a_lead_and_nobody_else(
    world_of_two: None, open_app: OpenApp
) -> None:
    for page in PAGES:
        app = open_app(page, reviewer="lea")
        assert asks(app)
        assert ASKED in texts(app)
        assert "A decision after that is marked as not blind." in texts(app)
        assert not [*app.dataframe, *app.metric]
        assert not asks(open_app(page))
    assert session.open_store(session.store_path()).exposure_frame().empty


def test_the_answer_holds_for_these_traces(world_of_two: None, open_app: OpenApp) -> None:
    app = open_app("asr", reviewer="lea")
    press(app, "open_anyway")
    assert not asks(app)
    assert app.metric
    assert not asks(app.run())
    store = session.open_store(session.store_path())
    more = store.batch_items("production-001")["trace_id"].iloc[5]
    with store._db.write() as cursor:
        claim(cursor, "production-001", [more], "ann")
    store.record_flag(
        client_token="flag", trace_id=more, reviewer_id="ann", batch_id="production-001",
        flagged=True,
    )  # fmt: skip
    assert asks(app.run())
    assert "You have 3 traces to adjudicate blind" in texts(app)


def test_what_is_decided_or_was_seen_is_not_asked_about(
    world_of_two: None, open_app: OpenApp
) -> None:
    store = session.open_store(session.store_path())
    first, second = store.batch_items("production-001")["trace_id"].iloc[:2]
    store.adjudicate(trace_id=first, answers=store.taxonomy().answers_for(C), adjudicator="lea")
    assert "You have 1 trace to adjudicate blind" in texts(open_app("judge", reviewer="lea"))
    store.record_exposure("lea", [second], "labels")
    assert not asks(open_app("judge", reviewer="lea"))


def test_a_lead_who_labels_in_the_batch_is_asked_about_what_is_left(tmp_path: Path) -> None:
    made = make_world(tmp_path / "store.duckdb", n=12, n_drawn=6)
    made.store.add_reviewer("Lea", role="lead")
    made.store.add_reviewer("Max", role="lead")
    made.label("Ann", dict.fromkeys(made.drawn[:3], C))
    of = blind_work(made.store, "lea", made.batch_id)
    assert not of.traces
    made.store.queue("lea", made.batch_id, limit=2)
    of = blind_work(made.store, "lea", made.batch_id)
    assert of.to_label == set(made.drawn)
    made.label("Lea", {made.drawn[0]: A})
    of = blind_work(made.store, "lea", made.batch_id)
    # Their own label makes a disagreement, which is somebody's to decide.
    assert of.to_label == set(made.drawn[1:])
    assert of.to_adjudicate == {made.drawn[0]}
    # Another lead does not label here.
    of = blind_work(made.store, "max", made.batch_id)
    assert of.to_adjudicate == of.traces == {made.drawn[0]}
    made.store.close()


def test_the_question_names_what_there_is_to_label(store_file: Path, open_app: OpenApp) -> None:
    made = make_world(store_file, n=12, n_drawn=6)
    made.store.set_identities("open")
    made.store.add_reviewer("Lea", role="lead")
    made.label("Ann", dict.fromkeys(made.drawn, C))
    made.label("Lea", dict.fromkeys(made.drawn[:2], C))
    made.store.close()
    app = open_app("agreement", reviewer="lea")
    assert "You have 4 traces to label blind in production-001." in texts(app)
    assert "A label after that does not count." in texts(app)
    assert "marked as not blind" not in texts(app)
    with Store.open_to_read(store_file)[0] as store:
        assert store.exposure_frame().empty
