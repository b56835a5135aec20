"""Who is shown which page, whether identities are open or people sign in."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app import frame, session
from calibration.analyses.sampling.draw import SamplingDesign, batch_of, draw_batch
from calibration.store import UNLABELLED, Store, TraceFilter, sign_in
from tests.analyses.worlds import World
from tests.app.conftest import NewStore, OpenApp, go_to, press, texts
from tests.browser.samples import build_store
from tests.stores import hashing_quickly

LEADS = "overview agreement judge asr reliability data start adjudicate reviewers trace".split()
GOOD = "correct horse battery"
SignIn = Callable[[str], str]


@pytest.fixture
def team(store_file: Path) -> Path:
    build_store(store_file, 3)
    with Store.open(store_file) as store:
        for name, role in (("Rea", "reviewer"), ("Lea", "lead"), ("Ada", "admin")):
            store.add_reviewer(name, role=role)
    return store_file


@pytest.fixture
def signed_in(team: Path, monkeypatch: pytest.MonkeyPatch) -> SignIn:
    """Let people of the team sign in; the cookie of the browser is the last one's."""
    monkeypatch.setattr(sign_in, "DEFAULT", sign_in.PASSPHRASE)
    monkeypatch.setattr(session, "_token", lambda: "")

    def signed_in(name: str) -> str:
        store = hashing_quickly(session.open_store(team))
        store.set_passphrase(name.lower(), GOOD)
        token = store.verify_sign_in(name, GOOD, "127.0.0.1")
        monkeypatch.setattr(session, "_token", lambda: token)
        return token

    return signed_in


@pytest.mark.parametrize("how", ["picked", "signed in"])
def test_a_reviewer_has_the_label_page_only(
    team: Path, open_app: OpenApp, signed_in: SignIn, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "signed in":
        signed_in("Rea")
        app = open_app("overview")
    else:
        monkeypatch.setattr(sign_in, "DEFAULT", sign_in.OPEN)
        app = open_app("overview", reviewer="rea")
    for name in [*LEADS, "people"]:
        assert "This page is for " in texts(go_to(app, name))
        assert not [*app.metric, *app.dataframe, *app.table, *app.code]


@pytest.mark.long
@pytest.mark.parametrize(("name", "closed"), [("Lea", ["people"]), ("Ada", [])])
def test_leads_have_every_page_with_results_and_admins_every_page(
    team: Path, open_app: OpenApp, signed_in: SignIn, name: str, closed: list[str]
) -> None:
    signed_in(name)
    app = open_app()
    assert "Home" in texts(app)
    pages = [*LEADS, "people", "label", "certify"]
    assert [page for page in pages if "This page is for" in texts(go_to(app, page))] == closed
    assert set(frame.SCRIPTS) == {
        *LEADS,
        "people",
    }  # a new page is listed here, with who may see it


def test_without_labels_the_page_says_so(team: Path, open_app: OpenApp) -> None:
    for name, says in (
        ("asr", "has no labels yet"), ("judge", "No judge has given a verdict yet"),
        ("reliability", "No run of a task is labelled yet."),
        ("reviewers", "Nobody has labelled a trace yet."),
        ("adjudicate", "Nobody has labelled a trace twice"),
    ):  # fmt: skip
        app = open_app(name, reviewer="lea")
        assert says in "\n".join([texts(app), *(caption.value for caption in app.caption)])


def test_nobody_is_shown_anything_before_they_sign_in(
    team: Path, open_app: OpenApp, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Create the first admin" in texts(open_app())
    signed_in("Ada")
    monkeypatch.setattr(session, "_token", lambda: "no such token")
    for app in (open_app(), open_app(reviewer="lea")):
        assert "You are signed out" in texts(app)
        assert not [*app.metric, *app.button, *app.sidebar.text]


def test_nobody_is_or_adds_somebody_else(team: Path, open_app: OpenApp, signed_in: SignIn) -> None:
    signed_in("Rea")
    app = open_app(reviewer="ada", plain="true")
    assert not [w for w in app.text_input if w.key == "label_new_name"]
    assert not [b for b in app.button if b.key == "switch"]
    assert "Rea (reviewer)" in [t.value for t in app.text]
    app.session_state[session.REVIEWER_KEY] = "ada"
    app.run()
    assert "Rea (reviewer)" in [t.value for t in app.text]
    app.button(key="answer_no").click().run()
    store = session.open_store(team)
    assert set(store.label_frame("production-001")["reviewer_id"]) == {"rea"}


def test_a_click_after_the_session_is_nothing(
    team: Path, open_app: OpenApp, signed_in: SignIn
) -> None:
    token = signed_in("Rea")
    app = open_app(plain="true")
    session.open_store(team).end_session(token)
    app.button(key="answer_no").click().run()
    assert session.open_store(team).label_frame("production-001").empty


def test_another_sign_in_clears_the_tab(team: Path, open_app: OpenApp, signed_in: SignIn) -> None:
    signed_in("Lea")
    app = open_app()
    app.session_state["kept"] = "of Lea"
    signed_in("Rea")
    app.run()
    assert "kept" not in app.session_state
    assert "Rea (reviewer)" in [t.value for t in app.text]


def test_results_open_with_a_sample_that_has_labels_not_with_chosen_traces(
    world: NewStore, open_app: OpenApp
) -> None:
    def fill(made: World) -> None:
        made.label("Ann", {made.drawn[0]: "complete"})
        chosen = TraceFilter(classes=(UNLABELLED,))
        batch = batch_of(made.store, chosen, SamplingDesign(seed=1), n=2)
        newer = replace(made, batch_id=batch.batch_id)
        traces = made.store.batch_items(batch.batch_id)["trace_id"]
        newer.label("Ann", dict.fromkeys(traces, "complete"))
        draw_batch(made.store, SamplingDesign(seed=2), n=3)

    world(fill)
    app = open_app("agreement")
    assert app.selectbox(key="batch").value == "production-001"
    assert app.selectbox(key="batch").options[:2] == [
        "production-003", "production-002",
    ]  # fmt: skip


def test_a_batch_of_chosen_traces_does_not_hide_the_rate(
    demo_store: Path, open_app: OpenApp
) -> None:
    with Store.open(demo_store) as store:
        chosen = TraceFilter(classes=(UNLABELLED,))
        batch = batch_of(store, chosen, SamplingDesign(seed=1), n=2).batch_id
    app = open_app("asr", reviewer="lea", batch=batch)
    assert "Of runs like these" in texts(app)
    app = open_app("agreement", reviewer="lea", batch=batch)
    assert app.selectbox(key=frame.BATCH).value == batch


def test_a_lead_who_names_themselves_starts_at_home(demo_store: Path, open_app: OpenApp) -> None:
    app = press(open_app(), "person_lea")
    assert "Do next" in texts(app)
