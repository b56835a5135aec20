"""Names of people hold Markdown: every page shows it as it is, and renders none of it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from streamlit.testing.v1 import AppTest

from app import frame, session
from calibration.store import Store
from tests.app.conftest import OpenApp, opened, press
from tests.test_page_snapshots import SECTIONS

PAGES = """
label certify overview agreement adjudicate reviewers judge asr reliability data start
people""".split()
# A name as it is, not a heading of a section.
BOLD = re.compile(r"(?<!\\)\*\*[\w-]+\*\* \[z\]")
NAME = "'**' || reviewer_id || '** [z](https://evil.test) ![i](https://evil.test/i.png) $x$'"

# What Streamlit shows as text, whatever it holds; everything else may render Markdown.
AS_TEXT = {
    ("text", "body"), ("code", "codeText"), ("html", "body"), ("selectbox", "options"),
    ("multiselect", "options"), ("text_input", "value"), ("text_input", "default"),
    ("bidi_component", "json"), ("dataframe", "alt"), ("dataframe", "columns"),
    ("vega_lite_chart", "alt"), ("vega_lite_chart", "spec"),
}  # fmt: skip


def texts(found: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every text of a message with the names of the fields that lead to it."""
    if isinstance(found, dict):
        for name, value in found.items():
            yield from texts(value, (*path, name))
    elif isinstance(found, list):
        for value in found:
            yield from texts(value, path)
    elif isinstance(found, str):
        yield path, found


def elements(node: Any) -> Iterator[Any]:
    yield node
    for child in getattr(node, "children", {}).values():
        yield from elements(child)


def rendered(app: AppTest) -> list[tuple[str, ...]]:
    """Return the texts with a name that Streamlit takes for Markdown."""
    return [
        (node.type, *path, text)
        for node in (*elements(app.main), *elements(app.sidebar))
        if node.proto is not None
        for path, text in texts(MessageToDict(node.proto))
        if BOLD.search(text) and (node.type, path[0]) not in AS_TEXT
    ]


def buttons(app: AppTest) -> str:
    return "\n".join(button.label for button in app.button)


@pytest.mark.long
def test_no_page_renders_markdown_in_a_name(
    demo_store: Path, open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(demo_store) as store:
        store.add_reviewer("Adam", role="admin")
    with duckdb.connect(str(demo_store)) as connection:
        connection.execute(f"UPDATE reviewer SET name = {NAME}")
    apps = {page: open_app(page, reviewer="adam") for page in PAGES}
    for page, sections in SECTIONS.items():
        opened(apps[page], *(f"{page}_{section}" for section in sections))
    assert {page: rendered(app) for page, app in apps.items()} == {page: [] for page in PAGES}
    assert r"Generate passphrase for \*\*ada" in buttons(apps["people"])

    # Somebody holds traces of a batch that is not finished.
    store = session.open_store(demo_store)
    ids = store.batch_items(store.batches()[-1].batch_id)["trace_id"].tolist()
    batch = store.add_batch(
        trace_ids=ids[:5], purpose="production", inclusion_probability=5 / len(ids),
        design={"n": 5, "population": len(ids), "last_seq": len(ids)},
    )  # fmt: skip
    store.queue("rea", batch.batch_id, limit=1)
    overview = open_app("overview", reviewer="adam")
    assert r"Release the traces of \*\*rea\*\*" in buttons(overview)
    assert rendered(overview) == []

    # What the page says after an act names the person too.
    people = apps["people"]
    people.text_input(key="people_name").input("**Eve** [z](https://evil.test)")
    press(people, "people_add_now")
    assert rendered(people) == []
    assert "**Eve** [z](https://evil.test) is added" in "\n".join(t.value for t in people.text)

    # The test sees what it looks for.
    monkeypatch.setattr(frame, "plain", str)
    assert "button" in {kind for kind, *_ in rendered(open_app("people", reviewer="adam"))}
