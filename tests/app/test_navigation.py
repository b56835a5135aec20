"""Who is shown which page, whether identities are open or people sign in."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app import session
from calibration.store import Store, sign_in
from tests.app.conftest import OpenApp, go_to, texts
from tests.browser.samples import build_store
from tests.stores import hashing_quickly

LEADS = ["overview", "agreement", "judge", "asr", "data", "start", "adjudicate", "reviewers"]
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
def test_a_lead_has_pages_with_results(team: Path, open_app: OpenApp, signed_in: SignIn) -> None:
    signed_in("Lea")
    app = open_app()
    assert "Overview" in texts(app)
    for name in LEADS:
        assert "This page is for" not in texts(go_to(app, name))
    assert "This page is for admins." in texts(go_to(app, "people"))


def test_without_labels_the_page_says_so(team: Path, open_app: OpenApp) -> None:
    for name, says in (
        ("asr", "has no labels yet"), ("judge", "No judge has given a verdict yet"),
        ("reviewers", "Nobody has labelled a production batch yet."),
        ("adjudicate", "Nobody has labelled a trace twice"),
    ):  # fmt: skip
        app = open_app(name, reviewer="lea")
        assert says in "\n".join([texts(app), *(caption.value for caption in app.caption)])


def test_nobody_is_shown_anything_before_they_sign_in(
    team: Path, open_app: OpenApp, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Make the first admin" in texts(open_app())
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
    assert "Rea (reviewer)" in [t.value for t in app.sidebar.text]
    app.session_state[session.REVIEWER_KEY] = "ada"
    app.run()
    assert "Rea (reviewer)" in [t.value for t in app.sidebar.text]
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
    assert "Rea (reviewer)" in [t.value for t in app.sidebar.text]
