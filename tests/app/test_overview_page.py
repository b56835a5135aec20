from pathlib import Path

import pytest

from app import session
from calibration.store import Store
from tests.app.conftest import OpenApp, figures, press, texts
from tests.browser.samples import build_store, sample_trace


@pytest.fixture
def team(store_file: Path) -> Path:
    """Give Anna three of eight traces, and let the team have a lead with a name full of markup."""
    batch = build_store(store_file, 8)
    with Store.open(store_file) as store:
        store.add_reviewer("Anna")
        store.add_reviewer("Ben")
        store.add_reviewer("Lea ![x](http://evil.test/a.png)", role="lead")
        store.queue("anna", batch, limit=3)
        store.record_skip(
            client_token="skip", trace_id="t-000", reviewer_id="anna", batch_id=batch,
            reason="cannot read ![it](http://evil.test/b.png)",
        )  # fmt: skip
        store.record_flag(
            client_token="flag", trace_id="t-001", reviewer_id="anna", batch_id=batch,
            flagged=True, reason="look ![here](http://evil.test/c.png)",
        )  # fmt: skip
    return store_file


LEAD = "lea-x-http-evil-test-a-png"


def test_without_a_batch_the_page_plans_one(store_file: Path, open_app: OpenApp) -> None:
    with Store.open(store_file, create=True) as store:
        store.ingest([sample_trace(k) for k in range(120)])
    app = open_app("overview")
    shown = texts(app)
    assert "asr sample --n 40 --seed 1" in shown
    assert "0 labelled traces are too few to measure how scores vary" in shown
    # The worst case with 100 labels: t with 99 df x 0.5 / 10.
    assert figures(app)["Human-only rate"] == "±.098"
    assert figures(app)["Corrected rate"] == "no judge"


def test_a_lead_sees_it_first_and_hands_over_from_the_absent(team: Path, open_app: OpenApp) -> None:
    app = open_app(reviewer=LEAD)
    assert app.header[0].value == "Overview"
    assert figures(app)["Labels left"] == "16"
    for said in ("Flagged (1)", "Held right now (2)", "Anna: t-001, t-002, until"):
        assert said in texts(app)
    for element in [*app.markdown, *app.caption]:
        assert "evil.test" not in element.value
    press(app, "hand_over_anna")
    assert "Held right now (0)" in texts(app)
    assert "What Anna held is free for the others now." in texts(app)
    assert [frame.value["reason"].tolist() for frame in app.dataframe[:2]] == [
        ["look ![here](http://evil.test/c.png)"], ["cannot read ![it](http://evil.test/b.png)"],
    ]  # fmt: skip
    assert not any(h.value == "Overview" for h in open_app(reviewer="anna").header)


def test_nobody_but_a_lead_can_hand_over(team: Path, open_app: OpenApp) -> None:
    app = open_app("overview")
    assert "Held right now (2)" in texts(app)
    assert not [b for b in app.button if b.key and b.key.startswith("hand_over")]


def test_the_planner_follows_what_is_asked(demo_store: Path, open_app: OpenApp) -> None:
    app = open_app("overview")
    wide = figures(app)
    app.number_input("plan_n").set_value(400)
    app.number_input("plan_overlap").set_value(25)
    app.button("plan_submit").click().run()
    narrow = figures(app)
    assert narrow["Labels to make"] == "500"
    assert narrow["Human-only rate"] < wide["Human-only rate"]
    assert narrow["Corrected rate"] < narrow["Human-only rate"]
    assert "--n 400 --seed 1 --labels-wanted 2 --overlap 0.25 --by-workflow" in texts(app)
    app.number_input("plan_n").set_value(2001)
    app.button("plan_submit").click().run()
    assert "2001 traces were asked for and there are 2000" in texts(app)


def test_a_lead_draws_what_was_planned_once(team: Path, open_app: OpenApp) -> None:
    app = open_app(reviewer=LEAD)
    app.number_input("plan_n").set_value(4)
    app.number_input("plan_overlap").set_value(50)
    app.button("plan_submit").click().run()
    for _ in range(2):
        press(app, "draw")
        assert "production-002 is drawn" in texts(app)
    session.close_stores()
    with Store.open(team) as store:
        newest, oldest = store.batches()
        wanted = store.batch_items(newest.batch_id)["labels_wanted"]
    assert (newest.n_items, oldest.batch_id) == (4, "production-001")
    assert sorted(wanted) == [1, 1, 2, 2]
