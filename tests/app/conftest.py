"""The app on a small store of its own."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from app import session
from calibration.store import Store, sign_in
from tests.analyses.worlds import World, make_world
from tests.stores import copy_store

MAIN = Path(__file__).parents[2] / "app" / "main.py"
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
def demo_store(built_demo: Path, store_file: Path) -> Path:
    """Put the demo with a lead and a reviewer where the app looks."""
    copy_store(built_demo, store_file)
    with Store.open(store_file) as store:
        store.add_reviewer("Lea", role="lead")
        store.add_reviewer("Rea")
    return store_file


@pytest.fixture
def open_app(store_file: Path) -> OpenApp:
    def open_app(page: str = "", **query: str) -> AppTest:
        app = AppTest.from_file(MAIN, default_timeout=90)
        for name, value in query.items():
            app.query_params[name] = value
        return go_to(app, page) if page else shown(app.run())

    return open_app


def go_to(app: AppTest, page: str) -> AppTest:
    """Show the page at an address, without a run of the first page before it."""
    app._page_hash = calc_hash(page)
    return shown(app.run())


def shown(app: AppTest) -> AppTest:
    assert not app.exception
    return app


def texts(app: AppTest) -> str:
    return "\n".join(e.value for e in [*app.header, *app.subheader, *app.text, *app.code])


def cell(row: int, column: str) -> dict[str, dict[str, list[object]]]:
    return {"selection": {"rows": [], "columns": [], "cells": [(row, column)]}}


def opened(app: AppTest, *sections: str) -> AppTest:
    """Open sections of a page, as a click on their headings does."""
    for key in sections:
        app.session_state[key] = True
    return shown(app.run())


def choose(app: AppTest, table: str, row: int, column: str) -> AppTest:
    """Choose a cell of a table, as the browser reports it."""
    app.session_state[table] = cell(row, column)
    return shown(app.run())


def table(app: AppTest, column: str) -> list[object]:
    """Return the cells of a column of the one table that has it."""
    (found,) = [frame.value for frame in app.dataframe if column in frame.value.columns]
    return list(found[column])


def chip(app: AppTest, page: str) -> str | None:
    """Return what the list of a page is narrowed to."""
    if not [b for b in app.button if b.key == f"{page}_show_all"]:
        return None
    return next(t.value for t in app.text if re.match(r"[\d,]+ traces? ", t.value))


def figures(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def press(app: AppTest, key: str) -> AppTest:
    return shown(app.button(key=key).click().run())


@pytest.fixture
def world(store_file: Path) -> NewStore:
    """Put a small store with a lead where the app looks."""

    def make(fill: Callable[[World], Any], **options: Any) -> None:
        made = make_world(store_file, **options)
        made.store.add_reviewer("Lea", role="lead")
        fill(made)
        made.store.close()

    return make
