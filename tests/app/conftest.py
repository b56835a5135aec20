"""The app on a small store of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app import session
from calibration.store import sign_in
from tests.analyses.worlds import World, make_world

MAIN = Path(__file__).parents[2] / "app" / "main.py"
SCRIPTS = {
    name: f"views/{folder}/page.py" if folder else f"views/{name}.py"
    for name, folder in {
        **dict.fromkeys(("overview", "label", "start", "people"), ""),
        **{page: page for page in ("agreement", "adjudicate", "reviewers", "judge", "data")},
        "asr": "success_rate",
        "certify": "certificate",
    }.items()
}

OpenApp = Callable[..., AppTest]

NewStore = Callable[..., None]


@pytest.fixture
def store_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_draws: None) -> Iterator[Path]:
    path = tmp_path / "store.duckdb"
    monkeypatch.setenv("ASR_STORE", str(path))
    monkeypatch.setattr(sign_in, "DEFAULT", sign_in.OPEN)
    yield path
    session.close_stores()
    st.cache_resource.clear()


@pytest.fixture
def open_app(store_file: Path) -> OpenApp:
    def open_app(**query: str) -> AppTest:
        app = AppTest.from_file(MAIN, default_timeout=20)
        for name, value in query.items():
            app.query_params[name] = value
        app.run()
        assert not app.exception
        return app

    return open_app


@pytest.fixture
def world(store_file: Path) -> NewStore:
    """Put a small store where the app looks."""

    def make(fill: Callable[[World], None], **options: Any) -> None:
        made = make_world(store_file, **options)
        fill(made)
        made.store.close()

    return make
