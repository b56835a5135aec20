"""The transcript side of the desk: 200 steps, long results, JSON, diffs, search, hostile text."""

import json
import re
import time
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from calibration.records import Step, Trace
from tests.browser.conftest import Server
from tests.browser.desk import Desk, read_back
from tests.browser.samples import sample_trace, store_of

pytestmark = pytest.mark.browser
DIFF = "diff --git a/x b/x\n@@ -1,3 +1,3 @@\n kept\n-old line\n+new line\n last\n- no diff line"

# Spaced unlike any formatter would, with a number that a parser would round.
RAW = '{"order":{"id":12345678901234567890,"note":"first\\nsecond"},"items":[],"tags":["a","b"]}'

LINES = "\n".join(f"row {i} of the long result" for i in range(1, 213))
ERRORS = (60, 150)


def long_trace() -> Trace:
    """Return 200 steps: s10 is long, s12 is JSON, s14 a diff, two fail, s190 holds a needle."""
    steps = list(sample_trace(0, steps=200).steps)
    for number in range(1, 201):
        steps[number - 1] = replace(steps[number - 1], error=number in ERRORS, tokens_in=None)
    changes: dict[int, dict[str, object]] = {
        10: {"result": LINES},
        12: {"result": RAW},
        14: {"result": DIFF},
        3: {"tokens_in": 1200, "tokens_out": 34},
        5: {"tokens_in": 1300, "tokens_out": 56},
        190: {"result": "\n".join(["filler"] * 300 + ["the Zebra needle", "end"])},
    }
    for number, change in changes.items():
        steps[number - 1] = replace(steps[number - 1], **change)  # type: ignore[arg-type]
    return replace(sample_trace(0), steps=tuple(steps), latency_s=83.0, cost_usd=0.7512)


def opened(server: Server, page: Page, *traces: Trace) -> Desk:
    store_of(server.store, traces)
    server.start()
    desk = Desk(page, server.url)
    desk.open()
    return desk


def here(page: Page) -> str:
    return page.locator(".tick[aria-current]").get_attribute("data-mark") or ""


def select(page: Page, step: str, first: str, last: str) -> None:
    """Select from the first to the last of two texts in the result of a step."""
    page.locator(f"[data-step={step}] .code").last.evaluate(
        """(body, [first, last]) => {
          const leaf = document.createTreeWalker(body, NodeFilter.SHOW_TEXT).nextNode();
          const start = leaf.data.indexOf(first), end = leaf.data.indexOf(last) + last.length;
          getSelection().setBaseAndExtent(leaf, start, leaf, end);
        }""",
        [first, last],
    )


@pytest.mark.long
def test_figures_minimap_and_errors_of_two_hundred_steps(server: Server, page: Page) -> None:
    desk = opened(server, page, long_trace())
    facts = page.locator(".facts")
    for text in ("200 steps", "1 min 23 s", "2,500 tokens in", "90 out", "100 tool calls",
                 "2 tool errors", "completed"):  # fmt: skip
        expect(facts).to_contain_text(text)
    assert "0.75" not in page.locator(".desk").inner_text()
    marks = page.locator(".minimap .tick")
    expect(marks).to_have_count(200)
    assert marks.nth(59).get_attribute("title") == (
        "Step 60, tool, get_order_details, error, +1 min 42 s, took 1.7 s"
    )
    marks.nth(119).click()
    expect(page.locator("[data-step=s120] header")).to_be_in_viewport()
    assert here(page) == "120"
    page.keyboard.press("Home")
    time.sleep(0.4)
    page.locator(".trace").hover()
    page.mouse.wheel(0, 3000)
    page.wait_for_function(
        "() => +document.querySelector('[data-testid=stBidiComponentIsolated]').shadowRoot"
        ".querySelector('.tick[aria-current]')?.dataset.mark > 2"
    )
    expect(marks.first).to_be_in_viewport()
    assert desk.get("state") == "answer"
    marks.nth(9).click()
    page.locator("[data-step=s10] .expand:visible").click()
    expect(page.locator("[data-step=s10]")).to_contain_text("row 212 of")


@pytest.mark.long
def test_steps_are_painted_when_they_are_needed(server: Server, page: Page) -> None:
    page.add_init_script("window.requestIdleCallback = () => 0")  # never idle
    desk = opened(server, page, long_trace())
    unpainted = page.locator(".stop.unpainted")
    assert unpainted.count() > 150
    page.locator(".tick").nth(119).click()
    expect(page.locator("[data-step=s120] header")).to_be_in_viewport()
    assert unpainted.count() > 100
    # Evidence in a step that is not painted is found all the same.
    desk.press("yy")
    page.locator("#quote").fill("the Zebra needle")
    expect(page.locator("#quote-found")).to_have_text("Found in step s190.")
    assert page.locator("[data-step=s190].unpainted").count() == 1


@pytest.mark.long
@pytest.mark.parametrize("with_highlights", [True, False])
def test_search_opens_what_it_finds(server: Server, page: Page, with_highlights: bool) -> None:
    page.add_init_script("window.requestIdleCallback = () => 0")
    if not with_highlights:
        page.add_init_script("Object.defineProperty(CSS, 'highlights', {value: undefined})")
    desk = opened(server, page, long_trace())
    page.keyboard.press("/")
    page.keyboard.type("zebra NEEDLE")
    said = page.locator(".search .said")
    expect(said).to_have_text("1 of 1")
    step = page.locator("[data-step=s190]")
    expect(step).to_contain_text("the Zebra needle")
    expect(step).to_be_in_viewport()
    if with_highlights:
        assert page.evaluate("[...CSS.highlights.get('asr-hit-now')].join()") == "Zebra needle"
    else:
        expect(step.locator("mark.hit.now")).to_have_text("Zebra needle")
    field = page.get_by_label("Find in this trace")
    field.fill("row 21")
    expect(said).to_have_text("1 of 4")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(said).to_have_text("3 of 4")
    page.keyboard.press("Shift+Enter")
    expect(said).to_have_text("2 of 4")
    expect(page.locator("[data-step=s10]")).to_contain_text("row 212 of")
    assert here(page) == "10"
    field.fill("(no such text")
    expect(said).to_have_text("No match")
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    assert page.locator("mark.hit").count() == 0
    # The letters of a search answered nothing; after it, keys count again.
    expect(page.locator(".question-box")).to_have_attribute("data-node", "output")
    desk.press("y")
    expect(page.locator(".question-box")).to_have_attribute("data-node", "fabrication")


@pytest.mark.long
def test_a_quote_from_indented_json_is_literal(server: Server, page: Page) -> None:
    desk = opened(server, page, long_trace())
    page.locator(".tick").nth(11).click()
    body = page.locator("[data-step=s12] .code").last
    assert body.inner_text() == (
        '{\n  "order": {\n    "id": 12345678901234567890,\n    "note": "first\\n\n      second"\n'
        '  },\n  "items": [],\n  "tags": [\n    "a",\n    "b"\n  ]\n}'
    )
    switch = page.locator("[data-step=s12] .form:visible").last
    switch.click()
    assert body.inner_text() == RAW
    switch.click()
    desk.press("y")
    select(page, "s12", '"id"', '"items"')
    desk.press("y")
    quote = '"id":12345678901234567890,"note":"first\\nsecond"},"items"'
    expect(page.locator("#quote")).to_have_value(quote)
    expect(page.locator("#quote-found")).to_have_text("Found in step s12.")
    page.keyboard.press("Enter")
    expect(page.get_by_text("All done")).to_be_visible()
    desk.wait_saved()
    server.stop()
    assert [row[3] for row in read_back(server.store)["current"]] == ["hallucinated"]


@pytest.mark.long
def test_diff_lines_and_step_ids(server: Server, page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    desk = opened(server, page, long_trace())
    page.locator(".tick").nth(13).click()
    step = page.locator("[data-step=s14]")
    assert step.locator(".diff.added").all_text_contents() == ["+new line\n"]
    assert step.locator(".diff.removed").all_text_contents() == ["-old line\n"]
    step.locator(".step-id").click()
    page.wait_for_timeout(200)
    assert page.evaluate("navigator.clipboard.readText()") == "s14"
    # Into the rationale, while it is being written.
    desk.press("w")
    page.keyboard.type("see ")
    step.locator(".step-id").click()
    expect(page.locator("#rationale")).to_have_value("see s14")
    page.keyboard.press("Escape")
    # In the evidence box the id says which of several places is meant.
    desk.press("yy")
    page.locator("#quote").fill("The customer asked")
    expect(page.locator("#quote-found")).to_contain_text(re.compile("Found in step s2 and"))
    page.locator("[data-step=s16] .step-id").click()
    expect(page.locator("#quote-found")).to_contain_text("Found in step s16 and")


@pytest.mark.long
def test_hostile_texts_are_shown_indented_and_searched_as_text(server: Server, page: Page) -> None:
    evil = '<img src=http://evil.test/a.png onerror="window.pwned=1">'
    hostile = replace(
        sample_trace(1),
        steps=(
            Step(step_id="s1", role="tool", tool=evil, arguments=json.dumps({evil: [evil]}),
                 result="[" * 5000 + "]" * 5000),
            Step(step_id='"><b>x', role="<b>", content=evil, at=float("1e300"), seconds=1e300),
            Step(step_id="s3", role="tool", tool="t", result=f"@@ -1 +1 @@\n-{evil}\n+{evil}"),
            Step(step_id="s4", role="tool", tool="t", arguments='{"a": "\\', result='{"\\\\n":1}'),
        ),
    )  # fmt: skip
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    opened(server, page, hostile)
    expect(page.locator(".diff.added")).to_have_text(f"+{evil}")
    page.keyboard.press("/")
    page.keyboard.type("onerror=")
    expect(page.locator(".search .said")).to_have_text(re.compile(r"1 of \d+"))
    for _ in range(6):
        page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    for _ in range(5):
        page.keyboard.press("j")
        page.keyboard.press("Enter")
    assert page.locator(".trace img, .trace b:not(.figure b)").count() == 0
    assert page.evaluate("window.pwned") is None
    assert [u for u in requests if not u.startswith((server.url, "blob:", "data:"))] == []
    assert problems == []
