from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Element

from app import session
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.errors import StoreError
from calibration.records import Verdict
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


LEAD, NEXT = "lea-x-http-evil-test-a-png", "home_next_"


def folds(app: AppTest) -> list[str]:
    return [fold.label for fold in app.expander]


def links(app: AppTest) -> list[str]:
    """Return what the links and buttons of Do next say, in their order."""
    found = [e for e in app.main if isinstance(e, Element) and hasattr(e, "label")]
    named = [e for e in found if e.type == "page_link" or (e.key or "").startswith(NEXT)]
    return [str(e.label).replace("\\", "") for e in named]


def test_an_empty_store_leads_to_set_up(store_file: Path, open_app: OpenApp) -> None:
    Store.open(store_file, create=True).close()
    app = open_app("overview")
    assert "No rate yet: no batch has been drawn." in texts(app)
    assert links(app) == ["Import traces"]
    assert (folds(app), figures(app)) == ([], {})


def test_without_a_batch_the_page_plans_one(store_file: Path, open_app: OpenApp) -> None:
    with Store.open(store_file, create=True) as store:
        store.ingest([sample_trace(k) for k in range(120)])
    app = open_app("overview")
    assert links(app) == ["Add reviewers", "Draw a batch"]
    assert folds(app) == ["Plan a batch: 100 traces, \u00b19.8 points expected"]
    shown = texts(app)
    assert "0 labelled traces are too few to measure how scores vary" in shown
    # The worst case with 100 labels: t with 99 df x 0.5 / 10.
    assert figures(app)["Rate from labels alone"] == "\u00b19.8 points"
    assert figures(app)["Corrected rate"] == "no judge"
    press(app, "home_next_1")
    assert app.number_input("plan_n").value == 40
    assert "asr sample --n 40 --seed 1" in texts(app)


def test_a_button_that_the_store_refuses_says_so(
    team: Path, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object, **_options: object) -> None:
        raise StoreError("asr.duckdb: the disk is full")

    app = open_app(reviewer=LEAD)
    monkeypatch.setattr(Store, "release_leases", full)
    press(app, "hand_over_anna")
    assert "asr.duckdb: the disk is full" in texts(app)
    assert "The traces that Anna had claimed are released to the others." not in texts(app)
    data = open_app("data", reviewer=LEAD)
    data.text_input(key="data_save_as").input("mine").run()
    press(data, "data_save")
    monkeypatch.setattr(Store, "forget_view", full)
    press(data, "data_forget_0")
    assert "Not deleted: asr.duckdb: the disk is full." in texts(data)


def test_a_lead_sees_it_first_and_hands_over_from_the_absent(team: Path, open_app: OpenApp) -> None:
    app = open_app(reviewer=LEAD)
    assert app.header[0].value == "Home"
    assert figures(app)["Labels left"] == "16"
    for label in ("In progress: 2 traces", "Flagged: 1 trace", "Skipped: 1 trace",
                  "Who labelled what: 1 person, 0 labels"):  # fmt: skip
        assert label in folds(app)
    assert links(app)[:2] == ["Look at 1 flagged trace", "Label 8 more traces"]
    assert "Anna: t-001, t-002, until" in texts(app)
    for element in [*app.markdown, *app.caption]:
        assert "evil.test" not in element.value
    press(app, "hand_over_anna")
    assert "In progress: none" in folds(app)
    assert "The traces that Anna had claimed are released to the others." in texts(app)
    assert [frame.value["reason"].tolist() for frame in app.dataframe[:2]] == [
        ["look ![here](http://evil.test/c.png)"], ["cannot read ![it](http://evil.test/b.png)"],
    ]  # fmt: skip
    assert not any(h.value == "Home" for h in open_app(reviewer="anna").header)


def test_the_list_itself_frees_what_somebody_away_has_claimed(
    team: Path, open_app: OpenApp
) -> None:
    with Store.open(team) as store, store._db.write() as cursor:
        cursor.execute("UPDATE lease SET expires_at = expires_at - INTERVAL 9 MINUTE")
    app = open_app(reviewer=LEAD)
    (button,) = [b for b in app.button if (b.key or "").startswith(NEXT)]
    assert button.label == "Release 2 traces that Anna has claimed"
    button.click().run()
    assert "In progress: none" in folds(app)
    assert "Release 2 traces that Anna has claimed" not in links(app)


def test_nobody_but_a_lead_can_hand_over(team: Path, open_app: OpenApp) -> None:
    app = open_app("overview")
    assert "In progress: 2 traces" in folds(app)
    assert not [b for b in app.button if b.key and b.key.startswith("hand_over")]


def test_the_rate_is_that_of_the_asr_page(demo_store: Path, open_app: OpenApp) -> None:
    app = open_app("overview", reviewer="lea")
    sentence = "The agent success rate is 56.6 % (95 % interval: 53.0 % to 60.1 %)."
    assert sentence in texts(app)
    assert "corrected for the errors of judge demo-judge" in texts(app)
    assert "Too early to say whether the rate has fallen: 9 weeks" in texts(app)
    rate = open_app("asr", reviewer="lea").metric[0].value
    assert "0.566 [0.530, 0.601]" in rate or "56.6 %" in rate
    assert links(app) == ["Examine Cleo (simulated) again", "Draw and label 80 more traces"]
    press(app, "home_next_1")
    assert app.number_input("plan_n").value == 80
    assert app.session_state["home_plan"] is True


def test_the_planner_follows_what_is_asked(demo_store: Path, open_app: OpenApp) -> None:
    app = open_app("overview")
    wide = figures(app)
    app.number_input("plan_n").set_value(400)
    app.number_input("plan_overlap").set_value(25)
    app.button("plan_submit").click().run()
    narrow = figures(app)
    assert narrow["Labels to make"] == "500"
    assert narrow["Rate from labels alone"] < wide["Rate from labels alone"]
    assert narrow["Corrected rate"] < narrow["Rate from labels alone"]
    assert f"Plan a batch: 400 traces, {narrow['Corrected rate']} expected" in folds(app)
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


def test_an_address_names_batch_and_judge(team: Path, open_app: OpenApp) -> None:
    with Store.open(team) as store:
        store.add_batch(purpose="production", trace_ids=["t-007"], labels_wanted=3)
        for judge in ("judge-a", "judge-b"):
            store.add_verdicts([Verdict(judge_id=judge, trace_id="t-000", outcome="complete")])
    app = open_app("overview", reviewer=LEAD)
    chosen = {box.key: box.value for box in app.selectbox}
    assert (chosen["batch"], chosen["judge"]) == ("production-002", "judge-a")
    app = open_app("overview", reviewer=LEAD, batch="production-001", judge="judge-b")
    chosen = {box.key: box.value for box in app.selectbox}
    assert (chosen["batch"], chosen["judge"]) == ("production-001", "judge-b")
    app = open_app("overview", reviewer=LEAD, batch="none", judge="none")
    chosen = {box.key: box.value for box in app.selectbox}
    assert (chosen["batch"], chosen["judge"]) == ("production-002", "judge-a")


def test_agreement_is_shown_for_a_batch_of_the_rate_only(
    demo_store: Path, open_app: OpenApp
) -> None:
    with Store.open(demo_store) as store:
        draw_batch(store, SamplingDesign(seed=4), n=3)
    app = open_app("overview", reviewer="lea")
    newest, oldest = app.selectbox(key="batch").options
    assert "Agreement (alpha)" not in figures(app)
    app.selectbox(key="batch").set_value(oldest).run()
    assert figures(app)["Agreement (alpha)"] == "0.83"
    assert newest != oldest
