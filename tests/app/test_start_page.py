"""First run: from no store to a batch that waits on the Label page."""

from pathlib import Path

from app import session
from calibration.store import Store
from tests.app.conftest import OpenApp, press, texts
from tests.browser.samples import sample_trace


def test_every_screen_can_be_skipped_and_has_a_command(store_file: Path, open_app: OpenApp) -> None:
    app = open_app()
    assert "There is no store yet" in texts(app)
    commands = []
    for _ in range(4):
        commands += [code.value for code in app.code]
        press(app, "start_next")
    said = "\n".join([*commands, *(code.value for code in app.code)])
    for words in ("asr import", "asr reviewer", "asr sample --n 40 --seed 1"):
        assert words in said
    press(app, "start_back")
    assert "Make the store first" in texts(app)
    assert not store_file.exists()
    press(app := open_app(), "start_make")
    assert "The store is made." in texts(app)
    assert session.open_store(store_file).workflows()["research"].ceiling_usd == 2.0
    assert "no traces to draw from yet" in texts(open_app("start", step="5"))


def test_a_step_that_is_none_is_the_first(store_file: Path, open_app: OpenApp) -> None:
    for step in ("0", "99", "-1", "x", "²"):
        app = open_app(step=step)
        assert app.subheader[0].value in ("Store and ceilings", "First batch")


def test_people_are_added_unless_the_name_is_bad(store_file: Path, open_app: OpenApp) -> None:
    Store.open(store_file, create=True).close()
    app = open_app("start", step="3")
    app.text_input(key="start_name").input("Mara Lind")
    app.checkbox(key="start_lead").check()
    press(app, "start_add")
    app.text_input(key="start_name").input("!!!")
    press(app, "start_add")
    assert "reviewer name must have" in texts(app)
    assert [(p.name, p.role) for p in session.open_store(store_file).reviewers()] == [
        ("Mara Lind", "lead")
    ]


def test_practice_is_put_into_the_store_once(store_file: Path, open_app: OpenApp) -> None:
    Store.open(store_file, create=True).close()
    app = press(open_app("start", step="4"), "start_practise")
    assert "60 traces to practise on" in texts(app)
    assert app.button(key="start_practise").disabled
    assert [b.purpose for b in session.open_store(store_file).batches()] == ["practice"]


def test_the_first_batch_is_drawn_as_the_command_would(store_file: Path, open_app: OpenApp) -> None:
    with Store.open(store_file, create=True) as store:
        store.ingest([sample_trace(k) for k in range(12)])
    app = open_app("start", step="5")
    app.number_input(key="start_n").set_value(5)
    app.number_input(key="start_seed").set_value(7).run()
    assert "asr sample --n 5 --seed 7 --labels-wanted 2" in texts(app)
    press(app, "start_draw")
    (batch,) = session.open_store(store_file).batches()
    assert (batch.n_items, batch.design["seed"], batch.design["population"]) == (5, 7, 12)
    assert f"Batch {batch.batch_id}: 5 traces" in texts(app)
