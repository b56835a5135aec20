"""Set up: from no store to people who label, and the empty pages that lead there."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from calibration.store import Store, sign_in
from tests.app.conftest import OpenApp, go_to, press, texts
from tests.browser.samples import build_store, sample_trace
from tests.stores import hashing_quickly

GOOD = "correct horse battery"


@pytest.fixture
def empty(store_file: Path) -> Path:
    Store.open(store_file, create=True).close()
    return store_file


@pytest.fixture
def filled(store_file: Path) -> Path:
    with Store.open(store_file, create=True) as store:
        store.ingest([sample_trace(k) for k in range(12)])
    return store_file


def titles(app: AppTest) -> str:
    """Return the headings of the steps: of the open one, and of the folded ones."""
    return "\n".join([*(h.value for h in app.subheader), *(b.label for b in app.button)])


def links(app: AppTest) -> list[str]:
    return [node.proto.label for node in app.main if node.type == "page_link"]


def test_a_store_is_made_and_traces_come_next(store_file: Path, open_app: OpenApp) -> None:
    app = open_app()
    assert f"There is none yet at {store_file}" in texts(app)
    press(app, "start_make")
    assert app.subheader[0].value == "1. Import traces"
    assert session.open_store(store_file).workflows()["research"].ceiling_usd == 2.0
    assert app.button(key="import_read").disabled


def test_the_page_keeps_its_place(empty: Path, open_app: OpenApp) -> None:
    app = press(open_app("start"), "start_next")
    assert (app.query_params["step"], app.subheader[0].value) == ("people", "2. Add people")
    # From another page and back, whatever the address has lost.
    del app.query_params["step"]
    assert go_to(go_to(app, "data"), "start").subheader[0].value == "2. Add people"
    press(app, "start_open_practice")
    assert app.subheader[0].value == "3. Offer practice"
    for step in ("0", "-1", "x", "²"):
        assert open_app("start", step=step).subheader[0].value == "1. Import traces"


def test_what_is_done_is_ticked_and_the_rest_is_open(filled: Path, open_app: OpenApp) -> None:
    app = open_app("start")
    assert app.subheader[0].value == "2. Add people"
    assert r"✓ 1. Import traces\: 12 traces" in titles(app)
    for name in ("Ann", "Bob"):
        session.open_store(filled).add_reviewer(name)
    app = open_app("start")
    assert app.subheader[0].value == "4. Draw the first batch"


def test_people_are_added_unless_the_name_is_bad(empty: Path, open_app: OpenApp) -> None:
    app = open_app("start", step="people")
    app.text_input(key="people_name").input("Mara Lind")
    app.selectbox(key="people_role").select("lead")
    press(app, "people_add_now")
    assert "Mara Lind is added, as lead." in texts(app)
    app.text_input(key="people_name").input("!!!")
    press(app, "people_add_now")
    assert "reviewer name must have" in texts(app)
    assert [(p.name, p.role) for p in session.open_store(empty).reviewers()] == [
        ("Mara Lind", "lead")
    ]
    # Nobody signs in here: no passphrase.
    assert "passphrase of" not in texts(app)


@pytest.fixture
def admin(empty: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return a store in which people sign in, and here is its admin."""
    monkeypatch.setattr(sign_in, "DEFAULT", sign_in.PASSPHRASE)
    store = hashing_quickly(session.open_store(empty))
    token = store.make_first_admin("Ada", GOOD)
    monkeypatch.setattr(session, "_token", lambda: token)
    return store


def test_whoever_is_added_has_a_passphrase_that_is_shown_until_it_is_noted(
    admin: Store, open_app: OpenApp
) -> None:
    app = open_app("start", step="people")
    for name in ("Mara Lind", "Jon *Ek*"):
        app.text_input(key="people_name").input(name)
        press(app, "people_add_now")
    handed = {}
    for block in [c.value for c in app.code if "Passphrase: " in c.value]:
        _, name, passphrase = (line.partition(": ")[2] for line in block.splitlines())
        handed[name] = passphrase
        assert admin.verify_sign_in(name, passphrase, "127.0.0.1")
    assert list(handed) == ["Mara Lind", "Jon *Ek*"]
    assert "The passphrase of Mara Lind and Jon *Ek*, shown only once" in texts(app)
    # Who is there already keeps the passphrase they have.
    app.text_input(key="people_name").input("mara lind")
    press(app, "people_add_now")
    assert "Mara Lind is there already, as reviewer." in texts(app)
    assert admin.verify_sign_in("Mara Lind", handed["Mara Lind"], "127.0.0.1")
    press(app, "people_noted")
    assert not any(passphrase in texts(app) for passphrase in handed.values())


def test_a_lead_who_is_no_admin_is_told_who_adds_people(
    admin: Store, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.add_reviewer("Lea", role="lead")
    admin.set_passphrase("lea", GOOD)
    token = admin.verify_sign_in("Lea", GOOD, "127.0.0.1")
    monkeypatch.setattr(session, "_token", lambda: token)
    app = open_app("start", step="people")
    assert "An admin adds people." in texts(app)
    assert not [w for w in app.text_input if w.key == "people_name"]


def test_practice_is_put_into_the_store_once(empty: Path, open_app: OpenApp) -> None:
    app = press(open_app("start", step="practice"), "start_practise")
    assert "Reviewers can practise on 60 traces." in texts(app)
    assert app.button(key="start_practise").disabled
    assert [b.purpose for b in session.open_store(empty).batches()] == ["practice"]


def test_the_first_batch_is_drawn_as_the_command_would(filled: Path, open_app: OpenApp) -> None:
    app = open_app("start", step="batch")
    app.number_input(key="start_n").set_value(5)
    app.number_input(key="start_seed").set_value(7).run()
    assert "asr sample --n 5 --seed 7 --labels-wanted 2" in texts(app)
    press(app, "start_draw")
    (batch,) = session.open_store(filled).batches()
    assert (batch.n_items, batch.design["seed"], batch.design["population"]) == (5, 7, 12)
    # It ends at labelling.
    assert f"{batch.batch_id} is drawn: 5 traces." in texts(app)
    assert app.subheader[0].value == "5. Start labelling"
    assert "/label" in texts(app)
    assert app.button(key="start_label").label == "Open the Label page"


def test_a_batch_is_named_and_assigned(filled: Path, open_app: OpenApp) -> None:
    store = session.open_store(filled)
    for name, role in (("Ann", "reviewer"), ("Bob", "reviewer"), ("Lea", "lead")):
        store.add_reviewer(name, role=role)
    app = press(open_app("start", step="batch", reviewer="lea"), "start_draw")
    press(app, "start_open_batch")
    app.text_input(key="start_called_production-001").input("July *x*")
    app.multiselect(key="start_assigned_production-001").select("ann")
    press(app, "start_save")
    assert "July *x* (production-001) is for Ann." in texts(app)
    assert "No batch to label" in texts(open_app("label", reviewer="bob"))
    shown = open_app("label", reviewer="ann", plain="true")
    assert "July *x* (production-001)" in [t.value for t in shown.sidebar.text]


@pytest.mark.parametrize(
    "page", "overview label agreement judge asr reviewers adjudicate data".split()
)
def test_every_empty_page_leads_to_the_step_that_it_lacks(
    store_file: Path, open_app: OpenApp, page: str
) -> None:
    with Store.open(store_file, create=True) as store:
        store.add_reviewer("Lea", role="lead")
    assert "Import traces" in links(open_app(page, reviewer="lea"))
    store = session.open_store(store_file)
    store.ingest([sample_trace(k) for k in range(4)])
    app = open_app(page, reviewer="lea")
    if page == "overview":
        assert [b.label for b in app.button if b.label.startswith("Draw")]
    elif page != "data":
        assert "No batch of traces has been drawn yet." in texts(app)
        assert "Draw a batch" in links(app)
    assert "asr " not in "\n".join(c.value for c in app.code) or page == "overview"


@pytest.mark.parametrize("page", "agreement judge asr reviewers adjudicate".split())
def test_pages_without_labels_lead_to_labelling(
    store_file: Path, open_app: OpenApp, page: str
) -> None:
    build_store(store_file, 3)
    with Store.open(store_file) as store:
        store.add_reviewer("Lea", role="lead")
    found = links(open_app(page, reviewer="lea"))
    assert ("Import traces" if page == "judge" else "Start labelling") in found
    assert "Go to the Label page" not in found
