"""A tab that is closed while the server is away: its labels are saved on the next visit."""

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.desk import Desk, labels, read_back
from tests.browser.samples import build_store, sample_trace, store_of

pytestmark = [pytest.mark.browser, pytest.mark.long]

KEPT = "Object.keys(localStorage).filter((key) => key.startsWith('asr-outbox:'))"


@pytest.fixture
def tab(page: Page) -> Callable[[], Page]:
    """Return a function that opens a tab of the same browser profile."""
    return page.context.new_page


def come_back(tab: Callable[[], Page], server: Server, name: str, batch: str = "") -> Desk:
    page = tab()
    page.goto(f"{server.url}/label?reviewer={name}{batch and f'&batch={batch}'}")
    desk = Desk(page, server.url)
    desk.wait_painted("")
    desk.wait_saved()
    return desk


def test_labels_of_a_closed_tab_are_saved_on_the_next_visit_and_by_nobody_else(
    server: Server, page: Page, tab: Callable[[], Page]
) -> None:
    batch = build_store(server.store, 30)
    server.start()
    desk = Desk(page, server.url)
    desk.open()
    desk.label("complete")
    desk.wait_saved()
    server.kill()
    for _ in range(2):  # what the desk has in advance
        desk.label("abandoned")
    assert desk.get("unsaved") == "2"
    page.close()
    server.start()

    other = tab()
    theirs = Desk(other, server.url)
    theirs.open("Ben")
    theirs.wait_saved()
    assert len(other.evaluate(KEPT)) == 1

    back = come_back(tab, server, "anna-b")
    assert back.get("trace") not in desk.shown
    assert back.page.evaluate(KEPT) == []
    back.label("complete")
    back.wait_saved()
    server.stop()
    stored = read_back(server.store, batch)
    assert labels(stored) == desk.shown | back.shown
    assert len(stored["events"]) == 4


def test_of_twenty_labels_none_is_lost_with_the_server_killed_and_the_tabs_closed(
    server: Server, page: Page, tab: Callable[[], Page]
) -> None:
    people = [f"Reviewer {k}" for k in range(20)]
    traces = [sample_trace(k) for k in range(4)]
    batch = store_of(server.store, traces, people, labels_wanted=20)
    server.start()
    names = [name.lower().replace(" ", "-") for name in people]
    desks = {name: come_back(tab, server, name) for name in names}
    for number, desk in enumerate(desks.values()):
        if number == 10:  # half of the labels are stored or on the way, half cannot be
            os.kill(server.pid, signal.SIGSTOP)
        desk.page.keyboard.press("n")
    server.kill()
    shown = {}
    for name, desk in desks.items():
        before = desk.painted[0]
        desk.wait("d.trace !== arg", before)
        shown[before, name] = "abandoned"
        desk.page.close()
    server.start()
    for name in names:
        come_back(tab, server, name).page.close()
    server.stop()
    stored = read_back(server.store, batch)
    assert {(trace, who): outcome for trace, who, _, outcome in stored["current"]} == shown
    assert len(stored["events"]) == 20


def test_what_a_closed_tab_left_of_another_batch_is_saved_too(
    server: Server, page: Page, tab: Callable[[], Page]
) -> None:
    first = build_store(server.store, 12)
    with Store.open(server.store) as store:
        traces = list(store.trace_frame()["trace_id"])[:4]
        drawn: dict[str, Any] = {"trace_ids": traces, "inclusion_probability": 1 / 3}
        drawn["design"] = {"n": 4, "population": 12, "last_seq": 12}
        second = store.add_batch(purpose="production", **drawn).batch_id
    server.start()
    desk = Desk(page, server.url)
    desk.open()
    here = desk.page.evaluate("new URL(location.href).searchParams.get('batch')")
    there = second if here == first else first
    server.kill()
    desk.label("abandoned")
    desk.page.close()
    server.start()
    back = come_back(tab, server, "anna-b", there)
    assert back.page.evaluate(KEPT) == []
    server.stop()
    assert labels(read_back(server.store, here)) == desk.shown
    assert labels(read_back(server.store, there)) == {}


def test_what_the_store_refuses_is_named_with_its_batch_and_nothing_unreadable_stops_a_desk(
    server: Server, page: Page, tab: Callable[[], Page]
) -> None:
    batch = build_store(server.store, 4)
    server.start()
    desk = Desk(page, server.url)
    desk.open()
    desk.label("complete")
    desk.wait_saved()
    with Store.open_to_read(server.store)[0] as store:
        name = store.store_id()
    event = {"token": "t", "kind": "label", "trace_id": "gone", "answers": {}, "batch": "other"}
    for key, value in (("a", json.dumps([event])), ("b", "{cut")):
        page.evaluate(
            "([key, value]) => localStorage.setItem(key, value)",
            [f"asr-outbox:{name}:label:anna-b:{key}", value],
        )
    page.close()
    back = come_back(tab, server, "anna-b")
    assert back.page.get_by_text("A label of other was not stored").is_visible()
    back.label("complete")
    back.wait_saved()
    server.stop()
    assert labels(read_back(server.store, batch)) == desk.shown | back.shown
