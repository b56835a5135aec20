"""Confidence, tags, sub-goals, flags and one's own labels, by keyboard."""

import json

import pytest
from playwright.sync_api import Page, expect

from calibration.taxonomy import default_taxonomy
from tests.browser.conftest import Server
from tests.browser.desk import Desk, read_back
from tests.browser.samples import build_store

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture
def desk(server: Server, page: Page) -> Desk:
    build_store(server.store, 8)
    server.start()
    desk = Desk(page, server.url)
    desk.open()
    return desk


def wait_drafts_kept(page: Page) -> None:
    """Wait until the store has every draft: only then does this tab forget its events."""
    page.wait_for_function(
        """() => Object.entries(sessionStorage)
          .filter(([key]) => key.startsWith('asr-desk:'))
          .every(([, text]) => (JSON.parse(text).outbox || []).length === 0)"""
    )


def mark(desk: Desk) -> None:
    """Give the painted trace a confidence, two tags and a state for each sub-goal."""
    desk.press("3")
    desk.press("t")
    for tag in ("late  reply", "policy"):
        desk.page.keyboard.type(tag)
        desk.page.keyboard.press("Enter")
    desk.page.keyboard.press("Escape")
    desk.press("gynu")
    desk.press("g")


def expect_marked(page: Page) -> None:
    expect(page.locator(".choices [data-key='3']")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".chip span:first-child")).to_have_text(["late reply", "policy"])
    expect(page.locator(".goals-sum")).to_have_text("1 done, 1 not done, 1 unclear")


def test_marks_survive_a_killed_server_and_tab(desk: Desk, server: Server, page: Page) -> None:
    here = desk.get("trace")
    desk.press("y")
    mark(desk)
    desk.press("w")
    page.keyboard.type("so far")
    page.keyboard.press("Escape")
    expect_marked(page)
    assert (desk.get("state"), desk.get("trace")) == ("answer", here)
    page.wait_for_timeout(1200)
    wait_drafts_kept(page)
    server.kill()
    server.start()
    # Nothing of this tab is left either: what comes back is what the store kept.
    page.evaluate("sessionStorage.clear()")
    page.goto(f"{server.url}/?reviewer=anna-b")
    assert desk.wait_painted("") == here
    expect_marked(page)
    expect(page.locator(".question-box")).to_have_attribute("data-node", "fabrication")
    expect(page.locator("#rationale")).to_have_value("so far")
    desk.press("ny")
    # One sub-goal is ticked as not done: asked back once, and the same key confirms.
    expect(page.locator(".question-box")).to_have_attribute("data-asked", "2")
    page.wait_for_timeout(300)
    desk.press("y")
    desk.wait_painted(here)
    expect(page.locator(".chip")).to_have_count(0)

    # Tags of one's own are offered, then those of the catalogue, which says what they mean; the
    # arrow takes one. A confidence can be taken off.
    desk.press("t")
    catalogue = [pattern.tag for pattern in default_taxonomy().patterns[:4]]
    expect(page.locator(".tag-hint")).to_have_text(["late reply", "policy", *catalogue])
    expect(page.locator(".tag-meaning")).to_be_hidden()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(page.locator(".tag-meaning")).to_contain_text(default_taxonomy().patterns[0].test)
    for key in ("ArrowUp", "Enter", "Escape"):
        page.keyboard.press(key)
    second = desk.get("trace")
    desk.press("22")
    desk.press("n")
    desk.wait_painted(second)
    desk.wait_saved()
    server.stop()
    first_label, second_label = read_back(server.store)["labels"]
    assert first_label[:3] == [here, "complete", 3]
    assert json.loads(first_label[3]) == ["late reply", "policy"]
    assert json.loads(first_label[4]) == {"1": "done", "2": "not_done", "3": "unclear"}
    assert first_label[5] == "so far"
    assert second_label[:3] == [second, "abandoned", None]
    assert json.loads(second_label[3]) == ["policy"]


def test_a_label_is_reopened_from_the_list_and_why(desk: Desk, server: Server, page: Page) -> None:
    first = desk.get("trace")
    mark(desk)
    desk.label("partial_plus")
    second = desk.label("complete")
    here = desk.get("trace")
    desk.press("y")  # half an answer, to be found again
    desk.press("l")
    rows = page.locator(".own-list li")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text(second)
    expect(rows.nth(1)).to_contain_text("Help customer")
    desk.press("j")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # no reason yet: nothing happens
    expect(page.locator("#why")).to_be_focused()
    page.keyboard.type("misread the policy")
    page.keyboard.press("Enter")
    assert desk.wait_painted(here) == first
    expect_marked(page)
    expect(page.locator(".question-box")).to_have_attribute("data-node", "material_error")
    expect(page.locator(".answer.no")).to_contain_text("before")
    page.reload()
    assert desk.wait_painted("") == first
    expect(page.locator(".answer.no")).to_contain_text("before")
    desk.press("y")
    assert desk.wait_painted(first) == here
    expect(page.locator(".question-box")).to_have_attribute("data-node", "fabrication")
    desk.wait_saved()
    server.stop()
    stored = read_back(server.store)
    assert stored["undos"] == [[first, "misread the policy"]]
    assert [label[:3] for label in stored["labels"]] == [
        [second, "complete", None], [first, "partial_minus", 3],
    ]  # fmt: skip


def test_items_and_minutes_left_and_idle_time(desk: Desk, server: Server, page: Page) -> None:
    left = page.locator(".left")
    expect(left).to_have_text("8 left")
    page.wait_for_timeout(1500)
    for _ in range(5):
        desk.label("complete")
    desk.wait_saved()
    expect(left).to_contain_text("3 left, about 1 minute at your pace")
    server.stop()
    seconds = [row[0] for row in read_back(server.store)["seconds"]]
    assert seconds[0] >= 1
    assert max(seconds) < 30


def test_time_without_a_sign_of_life_is_not_counted(server: Server, page: Page) -> None:
    build_store(server.store, 2)
    server.start()
    page.clock.install()
    desk = Desk(page, server.url)
    desk.open()
    page.clock.run_for(300_000)
    desk.press("j")
    page.clock.run_for(5_000)
    desk.press("n")
    page.clock.run_for(3_000)
    desk.wait_saved()
    server.stop()
    ((seconds,),) = read_back(server.store)["seconds"]
    assert 25 <= seconds <= 45
