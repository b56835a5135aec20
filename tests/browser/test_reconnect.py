"""A page that stays open while the server behind it dies and comes back."""

import os
import signal
import time

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.desk import QUOTE, Desk, labels, read_back
from tests.browser.samples import build_store

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.mark.parametrize("labelled_before", [0, 2])
def test_an_idle_page_saves_again_after_the_server_was_restarted(
    server: Server, page: Page, labelled_before: int
) -> None:
    batch = build_store(server.store, 8)
    server.start()
    desk = Desk(page, server.url)
    desk.open()
    for _ in range(labelled_before):
        desk.label("complete")
    desk.wait_saved()
    server.kill()
    server.start()
    page.wait_for_timeout(4000)  # connected again; the page has nothing to send

    desk.label("abandoned")
    unfinished = desk.get("trace")
    desk.press("yn")  # a draft, which must outlive a reload too
    desk.wait_saved()
    assert desk.wait_painted("") == unfinished
    expect(page.locator(".question-box")).to_have_attribute("data-node", "all_subgoals")
    desk.press("y")
    desk.shown[unfinished] = "complete"
    desk.wait_painted(unfinished)
    desk.wait_saved()
    server.stop()
    stored = read_back(server.store, batch)
    assert labels(stored) == desk.shown
    assert len(stored["events"]) == len(desk.shown)


def test_no_page_is_reloaded_under_words_being_typed(server: Server, page: Page) -> None:
    batch = build_store(server.store, 4)
    server.start()
    desk = Desk(page, server.url)
    desk.open()
    server.kill()
    server.start()
    page.wait_for_timeout(4000)
    page.evaluate("window.before = true")
    first = desk.label("abandoned")
    desk.press("yy")
    page.keyboard.type(QUOTE)
    page.wait_for_timeout(10_000)
    assert page.evaluate("window.before")
    expect(page.locator(".quote")).to_have_value(QUOTE)
    second = desk.get("trace")
    page.keyboard.press("Enter")
    page.wait_for_function("() => !window.before", timeout=20_000)
    desk.wait_painted("")
    desk.wait_saved()
    server.stop()
    assert labels(read_back(server.store, batch)) == {first: "abandoned", second: "hallucinated"}


def test_a_server_that_does_not_answer_is_asked_ever_more_rarely(
    server: Server, page: Page
) -> None:
    batch = build_store(server.store, 4)
    server.start()
    sent: list[float] = []

    def count(_: object) -> None:
        sent.append(time.monotonic())

    page.on("websocket", lambda socket: socket.on("framesent", count))
    desk = Desk(page, server.url)
    desk.open()
    desk.label("complete")
    desk.wait_saved()
    os.kill(server.pid, signal.SIGSTOP)
    try:
        before = len(sent)
        desk.label("abandoned")
        page.wait_for_timeout(14_000)
        # At about 0, 1.5, 4.5 and 10.5 seconds; without growing waits there were nine or ten.
        assert 3 <= len(sent) - before <= 5
    finally:
        os.kill(server.pid, signal.SIGCONT)
    desk.wait_saved()
    desk.label("complete")
    desk.wait_saved()
    server.stop()
    assert labels(read_back(server.store, batch)) == desk.shown
