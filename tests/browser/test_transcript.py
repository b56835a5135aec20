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

pytestmark = [pytest.mark.browser, pytest.mark.long]
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
    """Select from the first of two texts to the last one in what a step ends with."""
    page.locator(f"[data-step={step}] .text > div").last.evaluate(
        """(body, [first, last]) => {
          const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
          const leaves = [];
          while (walker.nextNode()) leaves.push(walker.currentNode);
          const from = leaves.find((leaf) => leaf.data.includes(first));
          const to = leaves.findLast((leaf) => leaf.data.includes(last));
          const end = to.data.lastIndexOf(last) + last.length;
          getSelection().setBaseAndExtent(from, from.data.indexOf(first), to, end);
        }""",
        [first, last],
    )


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


def test_a_quote_from_indented_json_is_literal(server: Server, page: Page) -> None:
    desk = opened(server, page, long_trace())
    page.locator(".tick").nth(11).click()
    body = page.locator("[data-step=s12] .code").last
    switch = page.locator("[data-step=s12] .form:visible").last
    assert body.inner_text() == (
        'order: {id: 12345678901234567890, note: "first\\nsecond"}  ·  items: []'
        '  ·  tags: ["a", "b"]'
    )
    switch.click()
    assert body.inner_text() == (
        '{\n  "order": {\n    "id": 12345678901234567890,\n    "note": "first\\n\n      second"\n'
        '  },\n  "items": [],\n  "tags": [\n    "a",\n    "b"\n  ]\n}'
    )
    switch.click()
    assert body.inner_text() == RAW
    switch.click()
    # R does the same for the step at hand.
    desk.press("r")
    assert body.inner_text() == RAW
    desk.press("r")
    desk.press("y")
    select(page, "s12", "id", "items")
    desk.press("y")
    quote = '"id":12345678901234567890,"note":"first\\nsecond"},"items"'
    expect(page.locator("#quote")).to_have_value(quote)
    expect(page.locator("#quote-found")).to_have_text("Found in step s12.")
    page.keyboard.press("Enter")
    expect(page.get_by_text("All done")).to_be_visible()
    desk.wait_saved()
    server.stop()
    assert [row[3] for row in read_back(server.store)["current"]] == ["hallucinated"]


MARKDOWN = """# Report for **Anna**

Your *order* has shipped: [track it](http://evil.test/t "Now") ![a map](http://evil.test/m.png)

| Item | Qty | Price |
|---|:-:|--:|
| Desk |  | `180` |

3. First
   with a second line
4. Second
   - nested

```python
def total():
```
> a quote
> of two lines

Line one
line two \\*escaped\\* ~~old~~ <b>no html</b>

[ref]: http://evil.test/hidden
"""


def chosen(page: Page, first: str, last: str) -> None:
    """Select from the first of two texts to the last one in the final response."""
    select(page, "response", first, last)


def test_markdown_is_shown_in_elements_and_quoted_as_it_came(server: Server, page: Page) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    desk = opened(server, page, replace(sample_trace(0), response=MARKDOWN))
    body = page.locator(".response .rendered")
    assert body.locator("[role=heading]").inner_text() == "Report for Anna"
    assert body.locator("strong, em, s, p code").all_inner_texts() == ["Anna", "order", "old"]
    assert body.locator("tr").all_inner_texts() == ["Item\tQty\tPrice", "Desk\t\t180"]
    assert [li.get_attribute("value") for li in body.locator("ol > li").all()] == ["3", "4"]
    assert body.locator("ol > li").first.inner_text() == "First\nwith a second line"
    assert body.locator("li li").inner_text() == "nested"
    assert body.locator("pre").inner_text() == "def total():"
    assert body.locator(".language").inner_text() == "python"
    assert body.locator("blockquote").inner_text() == "a quote\nof two lines"
    assert body.locator("p", has_text="Line one").inner_text() == (
        "Line one\nline two *escaped* old <b>no html</b>"
    )
    # Nothing loads, and every address is there to be read.
    assert body.locator("a, img, b, script").count() == 0
    assert body.locator(".address").all_inner_texts() == [
        '(http://evil.test/t "Now")',
        "(http://evil.test/m.png)",
    ]
    assert "[ref]: http://evil.test/hidden" in body.inner_text()
    button = page.locator(".response .form")
    button.click()
    assert page.locator(".response .prose").inner_text() == MARKDOWN
    button.click()
    page.keyboard.press("End")
    desk.press("r")
    assert page.locator(".response .prose").inner_text() == MARKDOWN
    desk.press("r")
    # What is found only in the text as it came is shown in it.
    page.keyboard.press("/")
    page.keyboard.type("has shipped: track")
    expect(page.locator(".search .said")).to_have_text("1 of 1")
    page.get_by_label("Find in this trace").fill("**anna**")
    expect(page.locator(".search .said")).to_have_text("1 of 1")
    assert page.locator(".response .prose").inner_text() == MARKDOWN
    page.keyboard.press("Escape")
    desk.press("r")
    desk.press("y")
    chosen(page, "Your", "shipped")
    desk.press("y")
    expect(page.locator("#quote")).to_have_value("Your *order* has shipped")
    expect(page.locator("#quote-found")).to_have_text("Found in the final response.")
    page.keyboard.press("Escape")
    chosen(page, "order", "order")
    page.keyboard.press("e")
    expect(page.locator("#quote")).to_have_value("order")
    page.keyboard.press("Escape")
    chosen(page, "Item", "180")
    desk.press("y")
    table = MARKDOWN[MARKDOWN.index("Item") : MARKDOWN.index("180") + 3]
    expect(page.locator("#quote")).to_have_value(table)
    page.keyboard.press("Enter")
    desk.wait_saved()
    server.stop()
    assert [row[3] for row in read_back(server.store)["current"]] == ["hallucinated"]
    assert [u for u in requests if not u.startswith((server.url, "blob:", "data:"))] == []


def test_hostile_markdown_is_bounded(server: Server, page: Page) -> None:
    evil = [
        "> " * 9000,
        "- " * 40 + "deep",
        "[a](" * 4900,
        "**a" * 6500,
        "|a" * 9000,
        "*a_`" * 5000,
    ]
    steps = [Step(step_id=f"s{i}", role="assistant", content=t) for i, t in enumerate(evil, 1)]
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    opened(server, page, replace(sample_trace(1), steps=tuple(steps), response="*x* " * 6000))
    for number, text in enumerate(evil, 1):
        card = page.locator(f"[data-step=s{number}]")
        if card.locator(".expand:visible").count():
            card.locator(".expand:visible").click()
        if number in (1, 2):  # nested too deeply: as it came
            assert card.locator(".prose").text_content() == text
    assert page.locator(".response .rendered").count() == 0  # too long
    assert (
        page.evaluate(
            """() => {
          const root = document.querySelector('[data-testid=stBidiComponentIsolated]').shadowRoot;
          const depth = (node) => Math.max(0, ...[...node.children].map((c) => 1 + depth(c)));
          return depth(root.querySelector('.trace'));
        }"""
        )
        < 30
    )
    assert problems == []


def tool_trace(*, ids: bool) -> Trace:
    """Return two calls at once, answered in the other order, and one after words."""
    steps = (
        Step(step_id="s1", role="system", content="Never refund more than 500 EUR. " * 20),
        Step(step_id="s2", role="assistant", content="I look.", tool="get", arguments='{"id": 1}'),
        Step(step_id="s3", role="assistant", tool="get", arguments='{"id": 2}'),
        Step(step_id="s4", role="tool", tool="get", result='{"item": "two"}', error=True,
             call="s3" if ids else None),
        Step(step_id="s5", role="tool", tool="get", result='{"item": "one"}',
             call="s2" if ids else None),
        Step(step_id="s6", role="assistant", tool="late", arguments="{}"),
        Step(step_id="s7", role="user", content="Are you there?"),
        Step(step_id="s8", role="tool", tool="late", result="at last"),
    )  # fmt: skip
    return replace(sample_trace(0), steps=steps)


@pytest.mark.parametrize("ids", [True, False])
def test_a_call_and_its_result_share_a_card(server: Server, page: Page, ids: bool) -> None:
    desk = opened(server, page, tool_trace(ids=ids))
    cards = page.locator(".stop.step")
    assert [card.get_attribute("data-stop") for card in cards.all()] == [
        "s1", "s2", "s3", "s6", "s7", "s8",
    ]  # fmt: skip
    # Without ids a result answers the oldest open call of its tool.
    assert "item: one" in cards.nth(1 if ids else 2).inner_text()
    assert "item: two" in cards.nth(2 if ids else 1).inner_text()
    failed = page.locator(".stop.failed")
    assert failed.get_attribute("data-stop") == ("s3" if ids else "s2")
    desk.press("x")
    expect(failed).to_have_class(re.compile("here"))
    here = [m.get_attribute("data-mark") for m in page.locator(".tick[aria-current]").all()]
    assert here == (["3", "4"] if ids else ["2", "4"])
    desk.press("j")
    page.locator(".tick").nth(4).click()
    assert "item: one" in page.locator(".stop.here").inner_text()
    # Both steps can be quoted and named.
    desk.press("yy")
    page.locator("#quote").fill('"item": "one"')
    expect(page.locator("#quote-found")).to_have_text("Found in step s5.")
    page.keyboard.press("Escape")
    select(page, "s5", "item", "one")
    desk.press("y")
    expect(page.locator("#quote")).to_have_value('"item": "one"')
    # What instructs the agent is folded, named, and none of its inventions.
    prompt = page.locator("[data-step=s1]")
    expect(prompt).to_contain_text("System prompt")
    expect(prompt.locator(".expand")).to_be_visible()
    page.locator("#quote").fill("Never refund more than 500 EUR.")
    expect(page.locator("#quote-found")).to_have_text(
        "These words are in the system prompt: the agent did not invent them."
    )
    page.keyboard.press("Escape")
    desk.press("e")
    page.locator("#quote").fill("Never refund more than 500 EUR.")
    expect(page.locator("#quote-found")).to_have_text("Found in step s1.")


def test_a_run_of_36_steps_is_four_screens_high(server: Server, page: Page) -> None:
    record = json.dumps({f"field_{i}": f"value {i}" for i in range(20)} | {"rows": [{"a": 1}] * 30})
    steps = [
        Step(step_id="s1", role="user", content="**Hello.** " + "I want to change a trip. " * 30)
    ]
    for number in range(2, 34, 2):
        steps += [
            Step(step_id=f"s{number}", role="assistant", tool="get_trip", arguments='{"id": "M1"}'),
            Step(step_id=f"s{number + 1}", role="tool", tool="get_trip", result=record),
        ]
    said = "\n".join(f"- **M{i}**: a trip from here to there" for i in range(30))
    steps += [
        Step(step_id=f"s{number}", role=role, content=said)
        for number, role in zip(range(34, 37), ("assistant", "user", "assistant"), strict=True)
    ]
    opened(server, page, replace(sample_trace(0), steps=tuple(steps), response="Done."))
    page.wait_for_function(
        "() => !document.querySelector('[data-testid=stBidiComponentIsolated]').shadowRoot"
        ".querySelector('.unpainted')"
    )
    boxes = [stop.bounding_box() for stop in page.locator(".stop").all()]
    height = sum(box["height"] + 5 for box in boxes if box)
    # 10,600 before calls and results shared cards.
    assert height < 3500
    # Open, all of it is there.
    page.locator("[data-step=s2] .expand:visible").click()
    assert '"field_19": "value 19"' in page.locator("[data-step=s3]").inner_text()


def drag(page: Page, first: str, last: str) -> None:
    """Select with the mouse from the first to the last of two words of the final response."""
    places = page.locator(".response .text > div").evaluate(
        """(body, words) => {
          const leaf = document.createTreeWalker(body, NodeFilter.SHOW_TEXT).nextNode();
          return words.map((word, i) => {
            const range = document.createRange();
            range.setStart(leaf, leaf.data.indexOf(word));
            range.setEnd(leaf, leaf.data.indexOf(word) + word.length);
            const box = range.getBoundingClientRect();
            return [i ? box.right - 1 : box.left + 1, box.top + box.height / 2];
          });
        }""",
        [first, last],
    )
    page.mouse.move(*places[0])
    page.mouse.down()
    page.mouse.move(*places[1], steps=4)
    page.mouse.up()


def test_a_selection_fills_the_open_quote_box_and_keys_stay_alive(
    server: Server, page: Page
) -> None:
    desk = opened(server, page, sample_trace(0), sample_trace(1))
    page.keyboard.press("End")
    time.sleep(1)
    quote = page.locator("#quote")
    # With no box open the keys are those of the desk.
    drag(page, "order", "shipped")
    desk.press("yy")
    expect(quote).to_have_value("order W1000 has shipped")
    drag(page, "arrives", "Tuesday")
    expect(quote).to_have_value("arrives on Tuesday")
    expect(page.locator("#quote-found")).to_have_text("Found in the final response.")
    expect(quote).to_be_focused()
    # A click in the trace, or beside it, does not take the letters away.
    page.locator(".response h2").click()
    page.keyboard.press("End")
    page.keyboard.type("x")
    expect(quote).to_have_value("arrives on Tuesdayx")
    page.locator(".panel .foot-line").click()
    page.keyboard.type("y")
    expect(quote).to_have_value("arrives on Tuesdayxy")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    first = desk.get("trace")
    page.keyboard.press("Enter")
    desk.wait_painted(first)
    desk.press("s4")
    page.locator(".facts").click()
    page.keyboard.type("no idea")
    expect(page.locator("#note")).to_have_value("no idea")
    desk.wait_saved()
    server.stop()
    assert [row[3] for row in read_back(server.store)["current"]] == ["hallucinated"]


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
