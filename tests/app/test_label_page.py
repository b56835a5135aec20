import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from calibration.analyses.reviewers.examinations import add_practice
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.errors import StoreError
from calibration.store import Store
from reference_dataset.loader import load_reference
from tests.app.conftest import OpenApp, press, texts
from tests.browser.samples import build_store


def current_labels(store_file: Path) -> list[tuple[str, str, str | None]]:
    session.close_stores()
    with Store.open(store_file) as store:
        rows = store.label_frame("production-001").to_dict("records")
    return sorted(
        (r["trace_id"], r["kind"], r["outcome"] if r["kind"] == "label" else None) for r in rows
    )


@pytest.fixture
def plain(store_file: Path, open_app: OpenApp) -> AppTest:
    build_store(store_file, 3)
    with Store.open(store_file) as store:
        store.add_reviewer("Anna")
    return open_app(reviewer="anna", plain="true")


def test_a_store_that_is_no_store_is_explained(store_file: Path, open_app: OpenApp) -> None:
    store_file.write_text("not a database")
    assert "cannot be opened" in texts(open_app())


def test_one_comes_in_under_a_new_or_a_known_name(store_file: Path, open_app: OpenApp) -> None:
    build_store(store_file, 2)
    app = open_app()
    press(app, "person_new")
    assert "Reviewer name must have" in texts(app)
    app.text_input(key="label_new_name").input("Zoë B.")
    press(app, "person_new")
    assert app.query_params["reviewer"] == "zoe-b"
    assert "Zoë B. (reviewer)" in texts(app)
    press(app, "switch")
    assert "Who is labelling?" in texts(app)
    press(app, "person_zoe-b")
    assert app.query_params["reviewer"] == "zoe-b"


def test_a_new_reviewer_is_welcomed_once_where_there_is_practice(
    store_file: Path, open_app: OpenApp
) -> None:
    build_store(store_file, 2)
    with Store.open(store_file) as store:
        for name in ("Anna", "Ben"):
            store.add_reviewer(name)
        practice = add_practice(store, load_reference())
    app = open_app(reviewer="anna", plain="true")
    assert "Welcome, Anna" in texts(app)
    assert "Practice: 60 traces" in texts(app)
    assert "You pass with about 61 of 70 right" in texts(app)
    press(app, "welcome_practise")
    assert app.selectbox(key="label_batch").value == practice.batch_id
    assert "0 of 60 labelled" in texts(app)
    app = open_app(reviewer="ben", plain="true")
    press(app, "welcome_work")
    assert "0 of 2 labelled" in texts(app)
    press(app, "answer_no")
    assert "Welcome" not in texts(open_app(reviewer="ben", plain="true"))


def test_the_batch_can_be_chosen_of_several(store_file: Path, open_app: OpenApp) -> None:
    build_store(store_file, 3)
    with Store.open(store_file) as store:
        store.add_reviewer("Anna")
        second = draw_batch(store, SamplingDesign(seed=1), n=1)
        (last,) = store.batch_items(second.batch_id)["trace_id"]
    app = open_app(reviewer="anna", plain="true")
    assert "0 of 1 labelled" in texts(app)
    assert f"customer {int(last[2:])} " in texts(app)
    app.selectbox(key="label_batch").select("production-001").run()
    assert "0 of 3 labelled" in texts(app)


def test_the_plain_view_takes_violations_where_the_store_asks(
    store_file: Path, open_app: OpenApp
) -> None:
    build_store(store_file, 2)
    with Store.open(store_file) as store:
        store.add_reviewer("Anna")
        first = store.queue("anna", "production-001", limit=1).items[0].trace_id
        store.set_violation_marking(True)
    app = open_app(reviewer="anna", plain="true")
    assert app.selectbox(key=f"plain_severity_0_{first}").label == "no PII exposure"
    app.selectbox(key=f"plain_severity_0_{first}").select("high").run()
    app.selectbox(key=f"plain_step_0_{first}").select("s1").run()
    press(app, "answer_no")
    session.close_stores()
    with Store.open(store_file) as store:
        (row,) = store.label_frame("production-001").to_dict("records")
    assert json.loads(row["violations"]) == [
        {"constraint": "no PII exposure", "severity": "high", "step": "s1"}
    ]


def test_the_plain_view_labels_undoes_and_skips(plain: AppTest, store_file: Path) -> None:
    assert plain.button(key="answer_yes").proto.shortcut.lower() == "y"
    assert plain.button(key="answer_no").proto.shortcut.lower() == "n"
    for answer in ("yes", "no", "yes"):
        press(plain, f"answer_{answer}")
    assert "customer 1 " in texts(plain)
    press(plain, "undo")
    assert "customer 0 " in texts(plain)
    press(plain, "answer_no")
    press(plain, "skip")
    press(plain, "answer_yes")
    press(plain, "undo")
    press(plain, "answer_no")
    assert "All done" in texts(plain)
    assert current_labels(store_file) == [
        ("t-000", "label", "abandoned"),
        ("t-001", "skip", None),
        ("t-002", "label", "abandoned"),
    ]


@pytest.mark.parametrize(
    ("call", "button", "what"),
    [
        ("save_draft", "answer_yes", "answer"), ("record_label", "answer_no", "label"),
        ("record_undo", "undo", "undo"), ("record_skip", "skip", "skip"),
    ],
)  # fmt: skip
def test_the_plain_view_says_what_the_store_refused(
    plain: AppTest, monkeypatch: pytest.MonkeyPatch, call: str, button: str, what: str
) -> None:
    def full(*_args: object, **_options: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(Store, call, full)
    press(plain, button)
    assert f"The {what} was not stored: the disk is full" in texts(plain)
    assert "customer 0 " in texts(plain)


def test_a_fabrication_needs_a_quote_that_stands_in_the_trace(plain: AppTest) -> None:
    press(plain, "answer_yes")
    press(plain, "answer_yes")
    assert "exactly as they are in a step" in texts(plain)
    plain.text_input(key="plain_quote_t-000").input("arrives on Tuesday").run()
    press(plain, "answer_yes")
    assert "customer 1 " in texts(plain)
