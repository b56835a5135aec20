from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from calibration.store import Store
from tests.app.conftest import SCRIPTS, OpenApp
from tests.browser.samples import build_store, sample_trace


def page(app: AppTest, name: str) -> AppTest:
    app.switch_page(SCRIPTS[name]).run()
    assert not app.exception
    return app


def texts(app: AppTest) -> str:
    return "\n".join(e.value for e in [*app.header, *app.subheader, *app.text, *app.code])


@pytest.mark.parametrize("name", ["agreement", "asr", "judge"])
def test_without_a_batch_the_page_says_what_to_do(
    store_file: Path, open_app: OpenApp, name: str
) -> None:
    with Store.open(store_file, create=True) as store:
        store.ingest([sample_trace(0)])
    shown = texts(page(open_app(), name))
    assert "asr sample --n 40 --seed 1" in shown
    assert "asr import FILES" in shown


@pytest.mark.parametrize("name", ["agreement", "asr", "judge"])
def test_without_labels_the_page_says_so(store_file: Path, open_app: OpenApp, name: str) -> None:
    build_store(store_file, 3)
    assert "label" in texts(page(open_app(), name)).lower()
