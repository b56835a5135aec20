from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from calibration.store import Store
from tests.app.conftest import SCRIPTS, OpenApp
from tests.browser.samples import build_store


def page(app: AppTest, name: str) -> AppTest:
    app.switch_page(SCRIPTS[name]).run()
    assert not app.exception
    return app


def texts(app: AppTest) -> str:
    return "\n".join(e.value for e in [*app.header, *app.subheader, *app.text, *app.code])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("agreement", "Nobody has labelled it yet."),
        ("asr", "has no labels yet"),
        ("judge", "No judge has given a verdict yet"),
        ("reviewers", "Nobody has labelled a production batch yet."),
    ],
)
def test_without_labels_the_page_says_so(
    store_file: Path, open_app: OpenApp, name: str, says: str
) -> None:
    build_store(store_file, 3)
    with Store.open(store_file) as store:
        store.add_reviewer("Lea", role="lead")
    assert says in texts(page(open_app(reviewer="lea"), name))
