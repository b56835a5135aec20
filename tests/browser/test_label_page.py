import time
from itertools import cycle

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.desk import KEYS, Desk, labels, read_back
from tests.browser.samples import build_store

pytestmark = [pytest.mark.browser, pytest.mark.long]


def test_thirty_traces_by_keyboard_are_thirty_labels(server: Server, page: Page) -> None:
    batch = build_store(server.store, 36)
    server.start()
    desk = Desk(page, server.url)
    desk.open()
    outcomes = cycle(KEYS)
    for _ in range(5):
        desk.label(next(outcomes))

    # Undo: the last trace comes back at once, and its second answer counts.
    last = list(desk.shown)[-1]
    desk.press("u")
    desk.wait("d.trace === arg", last)
    assert desk.wait_painted("") == last
    assert desk.label("partial_plus") == last

    # Skip with a listed reason, and with a typed one in which letters are only letters.
    skipped = [desk.get("trace")]
    desk.press("s2")
    skipped.append(desk.wait_painted(skipped[0]))
    desk.press("s4")
    page.keyboard.type("nyu: not sure")
    page.keyboard.press("Enter")
    desk.wait_painted(skipped[1])

    # A rationale full of our keys answers nothing; Escape leaves the field.
    here = desk.get("trace")
    desk.press("w")
    page.keyboard.type("yny crude?")
    page.keyboard.press("Escape")
    assert (desk.get("trace"), desk.get("state")) == (here, "answer")
    desk.label("complete")

    # Reload in the middle of the tree: same trace, same question, labels as before.
    here = desk.get("trace")
    desk.press("yn")
    page.reload()
    assert desk.wait_painted("") == here
    before_reload = set(desk.shown)
    expect(page.locator(".question-box")).to_have_attribute("data-node", "all_subgoals")
    desk.press("y")
    desk.shown[here] = "complete"
    desk.wait_painted(here)

    # A key that is held labels at most the trace on which it went down.
    here = desk.get("trace")
    for _ in range(25):
        page.keyboard.down("n")
        time.sleep(0.03)
    page.keyboard.up("n")
    desk.shown[here] = "abandoned"
    following = desk.wait_painted(here)
    page.evaluate(
        """() => { for (let i = 0; i < 20; i++) document.body.dispatchEvent(new KeyboardEvent(
          'keydown', {key: 'n', code: 'KeyN', repeat: true, bubbles: true, composed: true})) }"""
    )
    time.sleep(0.3)
    assert desk.get("trace") == following

    # Bursts: the first press counts, the rest was never meant for a trace not yet seen.
    kept_pace = [desk.burst(gap) for gap in (0.0, 0.01, 0.03, 0.06)]
    assert any(kept_pace), "the machine was too slow to judge"

    while len(desk.shown) < 30:
        desk.label(next(outcomes))
    desk.wait_saved()
    expect(page.locator(".done")).to_contain_text("33 of 36")
    # The list of painted traces starts anew with the reload.
    painted, labelled_after_reload = set(desk.painted), set(desk.shown) - before_reload
    server.stop()

    stored = read_back(server.store, batch)
    assert labels(stored) == desk.shown
    assert sorted(t for t, _, kind, _ in stored["current"] if kind == "skip") == sorted(skipped)
    kinds = [kind for kind, _ in stored["events"]]
    assert (kinds.count("label"), kinds.count("undo"), kinds.count("skip")) == (31, 1, 2)
    assert labelled_after_reload <= painted


def place_of_buttons(page: Page) -> list[tuple[float, float]]:
    boxes = [page.locator(f".answer.{answer}").bounding_box() for answer in ("yes", "no")]
    return [(box["x"], box["y"]) for box in boxes if box]


@pytest.mark.parametrize("width", [1440, 1024])
def test_yes_and_no_never_move(server: Server, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    build_store(server.store, 3)
    server.start()
    desk = Desk(page, server.url)
    desk.open()
    places = [place_of_buttons(page)]
    for key in "ynn":
        desk.press(key)
        places.append(place_of_buttons(page))
    assert len(places[0]) == 2
    assert places == [places[0]] * 4
    trace = desk.get("trace")
    desk.press("n")
    desk.wait_painted(trace)
    assert place_of_buttons(page) == places[0]
    # Nor when a sub-goal that is not done is held against "all done", or an answer is taken back.
    desk.press("g")
    desk.press("n")
    desk.press("g")
    desk.press("yny")
    asked = page.locator(".question-box")
    expect(asked).to_contain_text("You ticked a sub-goal as not done. Still Yes?")
    expect(asked).to_contain_text("Find order W1001")
    assert place_of_buttons(page) == places[0]
    desk.press("u")
    expect(asked).to_contain_text("Are all sub-goals satisfied")
    assert place_of_buttons(page) == places[0]


def test_not_done_against_all_done_is_asked_back_once(server: Server, page: Page) -> None:
    batch = build_store(server.store, 3)
    server.start()
    desk = Desk(page, server.url)
    desk.open()
    asked = page.locator(".question-box[data-asked]")

    def tick(*states: str) -> str:
        desk.press("g")
        desk.press("".join(states))
        desk.press("g")
        return desk.get("trace")

    # The second press of a double press confirms nothing.
    first = tick("y", "n")
    desk.press("yn")
    page.evaluate(
        """() => { for (let i = 0; i < 2; i++) document.body.dispatchEvent(new KeyboardEvent(
          'keydown', {key: 'y', code: 'KeyY', bubbles: true, composed: true})) }"""
    )
    expect(asked).to_have_attribute("data-asked", "2")
    time.sleep(0.4)
    desk.press("y")
    desk.wait_painted(first)
    # No answers the question with no; then it was asked once, and is not asked again.
    second = tick("n")
    desk.press("yny")
    expect(asked).to_have_count(1)
    time.sleep(0.4)
    desk.press("n")
    expect(page.locator(".question-box")).to_have_attribute("data-node", "material_error")
    desk.press("u")
    desk.press("y")
    desk.wait_painted(second)
    # Unclear is no contradiction.
    tick("u")
    desk.press("yny")
    desk.wait_saved()
    server.stop()
    stored = labels(read_back(server.store, batch))
    assert sorted(stored.values()) == ["complete"] * 3


def test_the_classes_fold_away_after_ten_labels(server: Server, page: Page) -> None:
    build_store(server.store, 12)
    server.start()
    desk = Desk(page, server.url)
    desk.open()
    meaning = page.locator(".legend dd").first
    for _ in range(10):
        expect(meaning).to_be_visible()
        desk.label("abandoned")
    expect(meaning).to_be_hidden()
    # Opened by hand they stay open, and the keys go on.
    page.locator(".legend-box summary").click()
    expect(meaning).to_be_visible()
    desk.label("abandoned")
    expect(meaning).to_be_visible()


def test_a_killed_server_loses_no_acknowledged_label(server: Server, page: Page) -> None:
    batch = build_store(server.store, 14)
    server.start()
    desk = Desk(page, server.url)
    desk.open()
    for _ in range(5):
        desk.label("complete")
    desk.wait_saved()
    acknowledged = dict(desk.shown)
    desk.press("n", gap=0.0)  # on its way while the server dies
    server.kill()
    stored = labels(read_back(server.store, batch))
    assert acknowledged.items() <= stored.items()

    # The page goes on with the next server: nothing lost, nothing doubled.
    unsure = next(t for t in desk.painted if t not in acknowledged)
    desk.shown[unsure] = "abandoned"
    server.start()
    # It is back when it has confirmed what was on its way; keys before that wait, as in the field.
    desk.wait("d.unsaved === '0'", timeout=60_000)
    page.wait_for_timeout(2500)
    desk.wait_painted(unsure)
    desk.label("partial_minus")
    desk.wait_saved()
    server.stop()
    assert labels(read_back(server.store, batch)) == desk.shown


def test_hostile_trace_text_stays_text(server: Server, page: Page) -> None:
    hostile = (
        '<img src=http://evil.test/a.png onerror="window.pwned=1"> '
        "![m](http://evil.test/b.png) <script>window.pwned=2</script> "
        "[x](javascript:window.pwned=3) <iframe src=http://evil.test/c></iframe>"
    )
    build_store(server.store, 3, text=hostile)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    server.start()
    desk = Desk(page, server.url)
    desk.open("<img src=http://evil.test/n.png>")
    expect(page.locator(".response")).to_contain_text("<script>window.pwned=2</script>")
    desk.label("complete")
    page.goto(f"{server.url}/?reviewer=img-src-http-evil-test-n-png&plain=true")
    expect(page.get_by_text("Final response")).to_be_visible()
    time.sleep(0.5)
    outside = [url for url in requests if not url.startswith((server.url, "blob:", "data:"))]
    assert outside == []
    assert page.evaluate("window.pwned") is None
