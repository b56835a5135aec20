"""Every key that the key list of the desk names, and each does what the list says."""

import json
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from calibration.records import Trace
from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.desk import QUOTE, Desk
from tests.browser.samples import sample_trace
from tests.browser.test_transcript import LINES, here, opened

pytestmark = [pytest.mark.browser, pytest.mark.long]
Check = Callable[[Desk], None]
CHECKS: dict[str, Check] = {}
ERRORS = (4, 12)


def key(*names: str) -> Callable[[Check], Check]:
    """Say which keys of the list a check presses; each starts and ends at the first question."""

    def enter(check: Check) -> Check:
        CHECKS.update(dict.fromkeys(names, check))
        return check

    return enter


def at_question(desk: Desk, node: str) -> None:
    expect(desk.page.locator(".question-box")).to_have_attribute("data-node", node)


def back_to_the_first(desk: Desk, answers: int) -> None:
    desk.press("u" * answers, gap=0.15)
    at_question(desk, "output")


@key("Y", "N", "U")
def answers(desk: Desk) -> None:
    desk.press("yn", gap=0.15)
    at_question(desk, "all_subgoals")
    back_to_the_first(desk, 2)
    trace = desk.get("trace")
    desk.press("n")
    other = desk.wait_painted(trace)
    desk.wait_saved()
    desk.press("u")  # on the first question: the label is taken back
    assert desk.wait_painted(other) == trace
    back_to_the_first(desk, 0)


@key("⇧1 … ⇧9")
def back_to_a_question(desk: Desk) -> None:
    crumbs = desk.page.locator(".crumbs.path li")
    desk.press("ynn", gap=0.15)
    at_question(desk, "material_error")
    expect(crumbs).to_have_count(3)
    expect(crumbs.nth(2)).to_be_in_viewport()
    desk.page.locator(".panel").evaluate("panel => panel.scrollTo(0, 9999)")
    expect(crumbs.nth(0)).to_be_in_viewport()
    desk.page.keyboard.press("Shift+Digit2")
    at_question(desk, "fabrication")
    desk.page.keyboard.press("Shift+Digit1")
    at_question(desk, "output")
    time.sleep(0.1)
    desk.press("y")
    crumbs.nth(0).locator("button").click()
    at_question(desk, "output")
    expect(desk.page.locator(".crumbs.path")).to_be_hidden()


@key("1", "2", "3")
def confidence(desk: Desk) -> None:
    chosen = desk.page.locator(".choice[aria-pressed=true]")
    for digit, text in (("1", "low"), ("2", "middle"), ("3", "high")):
        desk.press(digit)
        expect(chosen).to_contain_text(text)
    desk.press("3")
    expect(chosen).to_have_count(0)


@key("E")
def evidence(desk: Desk) -> None:
    page, quotes = desk.page, desk.page.locator(".quotes .chip")
    desk.press("e")
    expect(page.locator("#quote")).to_be_focused()
    page.keyboard.type("words that stand nowhere")
    expect(page.locator(".found")).to_have_text(
        "Not found: copy the words exactly from a step or from the final response."
    )
    page.keyboard.press("Enter")
    assert desk.get("state") == "evidence"
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(QUOTE)
    page.keyboard.press("Enter")
    expect(quotes).to_have_count(1)
    expect(quotes).to_contain_text(QUOTE)
    desk.press("e")
    page.keyboard.type(QUOTE)  # the same words once more are no second quote
    page.keyboard.press("Enter")
    expect(quotes).to_have_count(1)
    desk.press("e")
    page.keyboard.press("Backspace")
    page.keyboard.press("Escape")
    expect(quotes).to_have_count(0)
    at_question(desk, "output")


@key("T")
def tags(desk: Desk) -> None:
    page = desk.page
    desk.press("t")
    expect(page.locator("#tag")).to_be_focused()
    page.keyboard.type("late")
    page.keyboard.press("Enter")
    expect(page.locator(".chips .chip")).to_contain_text("late")
    page.keyboard.press("Backspace")
    expect(page.locator(".chips .chip")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator("#tag")).not_to_be_focused()


@key("G")
def sub_goals(desk: Desk) -> None:
    desk.press("g")
    assert desk.get("state") == "goals"
    desk.press("ynu", gap=0.15)
    if desk.get("state") == "goals":
        desk.press("g")
    expect(desk.page.locator(".goals-sum")).to_have_text("1 done, 1 not done, 1 unclear")
    at_question(desk, "output")


@key("F")
def flag(desk: Desk) -> None:
    note = desk.page.locator(".flag-note")
    desk.press("f")
    desk.page.keyboard.type("odd, y n s")
    desk.page.keyboard.press("Enter")
    expect(note).to_have_text("Flagged for the lead: odd, y n s")
    desk.press("f")
    expect(note).to_be_hidden()


@key("L")
def own_labels(desk: Desk) -> None:
    dialog = desk.page.locator(".help-box[aria-label='Your last labels']")
    desk.press("l")
    expect(dialog).to_contain_text("You have labelled nothing in this batch yet.")
    desk.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


@key("W")
def rationale(desk: Desk) -> None:
    field = desk.page.locator("#rationale")
    for leave in ("Escape", "Enter", "Control+Enter"):
        desk.press("w")
        expect(field).to_be_focused()
        desk.page.keyboard.press(leave)
        expect(field).not_to_be_focused()


@key("J", "K", "Home", "End")
def move(desk: Desk) -> None:
    page = desk.page
    page.keyboard.press("Home")
    for pressed, step in (("j", "1"), ("j", "2"), ("ArrowDown", "3"), ("k", "2"), ("ArrowUp", "1")):
        page.keyboard.press(pressed)
        assert here(page) == step, pressed
    page.keyboard.press("End")
    expect(page.locator(".response")).to_be_in_viewport()
    page.keyboard.press("Home")
    expect(page.get_by_role("heading", name="Task support_triage")).to_be_in_viewport()


@key("X", "Shift+X")
def errors(desk: Desk) -> None:
    desk.page.keyboard.press("Home")
    for pressed, number in (("x", 0), ("x", 1), ("Shift+X", 0), ("Shift+X", 1)):
        desk.page.keyboard.press(pressed)
        assert here(desk.page) == str(ERRORS[number])


@key("/")
def search(desk: Desk) -> None:
    page, said = desk.page, desk.page.locator(".search .said")
    page.keyboard.press("Home")  # the first match is sought from the step at hand
    desk.press("/")
    page.keyboard.type("shipped")
    expect(said).to_contain_text("1 of ")
    page.keyboard.press("Enter")
    expect(said).to_contain_text("2 of ")
    page.keyboard.press("Shift+Enter")
    expect(said).to_contain_text("1 of ")
    page.keyboard.press("Escape")
    expect(page.locator(".search")).to_be_hidden()


@key("Enter")
def long_texts(desk: Desk) -> None:
    page = desk.page
    page.keyboard.press("Home")
    desk.press("jj")
    step = page.locator("section[data-step=s2]")
    button = step.locator("button:visible", has_text="Show all")
    for _ in range(2):
        expect(button).to_have_text("Show all: 212 lines, 5.6 kB")
        expect(step).not_to_contain_text("row 212 of")
        page.keyboard.press("Enter")
        expect(button).to_have_count(0)
        expect(step).to_contain_text("row 212 of")
        page.keyboard.press("Enter")
    expect(button).to_have_count(1)


@key("R")
def as_it_came(desk: Desk) -> None:
    desk.page.keyboard.press("Home")
    desk.press("jj")
    arguments = desk.page.locator("section[data-step=s2] .arguments")
    for shown in ("order_id: W1000  ·  part: 2", '{"order_id": "W1000", "part": 2}') * 2:
        expect(arguments).to_have_text(shown)
        desk.press("r")


@key("S")
def skip(desk: Desk) -> None:
    desk.press("s")
    assert desk.get("state") == "skip"
    desk.page.keyboard.press("Escape")
    assert desk.get("state") == "answer"
    trace = desk.get("trace")
    desk.press("s1", gap=0.3)
    other = desk.wait_painted(trace)
    desk.wait_saved()
    desk.press("u")
    assert desk.wait_painted(other) == trace


@key("H", "?", "Escape")
def overlays(desk: Desk) -> None:
    box = desk.page.locator(".help-box")
    for pressed in "h?":
        for leave in (pressed, "Escape"):
            desk.press(pressed)
            expect(box).to_have_count(1)
            desk.page.keyboard.press(leave)
            expect(box).to_have_count(0)


def trace_for_every_key(number: int) -> Trace:
    """Return a trace with two tool errors and a long result at s2."""
    trace = sample_trace(number, steps=12)
    steps = [replace(s, error=int(s.step_id[1:]) in ERRORS) for s in trace.steps]
    steps[1] = replace(steps[1], result=LINES)
    return replace(trace, steps=tuple(steps))


def keys_listed(desk: Desk) -> set[str]:
    desk.press("?")
    listed = desk.page.locator(".help-box dt kbd").all_inner_texts()
    desk.press("?")
    return set(listed)


def test_every_key_of_the_list_does_what_it_says(server: Server, page: Page) -> None:
    desk = opened(server, page, *map(trace_for_every_key, range(3)))
    assert keys_listed(desk) == set(CHECKS), "a key of the list is not checked, or the reverse"
    first = desk.get("trace")
    # Own labels are looked at before there is one; a skip and its undo leave none.
    for check in dict.fromkeys([own_labels, *CHECKS.values()]):
        at_question(desk, "output")
        assert desk.get("trace") == first, check
        check(desk)
    # What was ticked stays with the label; a quote goes with any class.
    desk.press("e")
    page.keyboard.type(QUOTE)
    page.keyboard.press("Enter")
    desk.press("yny", gap=0.15)
    # One is ticked as not done: that is asked back, and the same key confirms.
    expect(page.locator(".question-box")).to_have_attribute("data-asked", "2")
    time.sleep(0.3)
    desk.press("y")
    desk.wait_painted(first)
    desk.wait_saved()
    server.stop()
    with Store.open(server.store) as store:
        (label,) = store.label_frame("production-001").to_dict("records")
    assert (label["trace_id"], label["outcome"]) == (first, "complete")
    assert json.loads(label["evidence"]) == [{"step_id": "response", "quote": QUOTE}]
    assert sorted(json.loads(label["sub_goals"]).values()) == ["done", "not_done", "unclear"]
