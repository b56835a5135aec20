"""The ways of a lead and of who runs a judge, by clicks and keys alone, on the demo."""

import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from calibration.analyses.demo import LEAD, build_demo
from calibration.store import Store
from tests.analyses.worlds import ids, make_world
from tests.browser.conftest import Server
from tests.browser.desk import QUIET_S, choose, settle
from tests.browser.test_adjudicate import Bench
from tests.browser.test_agreement_page import SLOW_MS

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture
def demo(server: Server, page: Page) -> Server:
    """The demo as `make run` shows it, opened by its lead."""
    with Store.open(server.store, create=True) as store:
        build_demo(store, seed=1, unfinished=True)
    server.start()
    page.goto(server.url)
    page.get_by_role("button", name=LEAD).click()
    page.get_by_role("heading", name="Do next").wait_for(timeout=SLOW_MS)
    return server


def go(page: Page, name: str, waits_for: str) -> None:
    page.get_by_role("link", name=name, exact=True).first.click()
    page.get_by_text(waits_for).first.wait_for(timeout=SLOW_MS)
    settle(page)


def test_home_then_settle_then_report(demo: Server, page: Page) -> None:
    settle(page)
    page.get_by_role("link", name="Adjudicate 2 disagreements").click()
    bench = Bench(page, demo.url)
    trace = bench.wait_painted("")
    settled = 0
    while bench.get("state") != "finished":
        bench.decide("complete")
        bench.press("3", gap=0.2)
        page.keyboard.press("Enter")
        time.sleep(QUIET_S)
        if page.locator(".missing").count():  # neither reviewer gave this class
            page.keyboard.type("The rule says so")
            page.keyboard.press("Enter")
            time.sleep(QUIET_S)
            page.keyboard.press("Enter")
        bench.wait_next(trace)
        trace, settled = bench.get("trace"), settled + 1
    assert settled == 3  # two disagreements and a flag
    bench.wait_saved()

    go(page, "Home", "Do next")
    expect(page.get_by_role("link", name="Label 4 more traces")).to_be_visible(timeout=SLOW_MS)
    for done in ("disagreement", "Look at"):
        expect(page.get_by_role("link", name=done)).to_have_count(0)

    go(page, "ASR", "Of runs like these")
    with page.expect_download() as taken:
        page.get_by_role("button", name="HTML").click()
    written = Path(taken.value.path()).read_text("utf-8")
    said = page.get_by_text("Of runs like these").first.inner_text()
    assert said.split(" succeed")[0] in written
    alone = page.context.new_page()
    alone.set_content(written)
    expect(alone.get_by_role("heading", name="Agent Success Rate report")).to_be_visible()


MIX = ("complete", "partial_plus", "partial_minus", "abandoned")


def test_two_judges_are_brought_in_compared_and_a_batch_drawn(
    server: Server, page: Page, tmp_path: Path
) -> None:
    made = make_world(server.store, n=160, n_drawn=80)
    for who in ("Ann", "Ben"):
        made.label(who, {t: MIX[int(t[1:]) % 4] for t in made.drawn})
    made.store.add_reviewer("Lea", role="lead")
    made.store.close()
    files = []
    for number in (1, 2):
        # Each judge passes what it should not, the second one more often.
        rows = [f"{t},{'complete' if k % (9 - 4 * number) == 1 else MIX[k % 4]}"
                for k, t in enumerate(ids(160))]  # fmt: skip
        files.append(tmp_path / f"judge-{number}.csv")
        files[-1].write_text("\n".join(("trace_id,outcome", *rows)), encoding="utf-8")
    server.start()
    page.goto(server.url)
    page.get_by_role("button", name="Lea").click()
    page.get_by_role("heading", name="Do next").wait_for(timeout=SLOW_MS)

    go(page, "Judge", "No judge has given a verdict yet")
    for number, file in enumerate(files, 1):
        if number == 2:
            page.get_by_text("Import verdicts").click()
        page.locator("input[type=file]").set_input_files(file)
        page.get_by_label("Name of the judge, with its version").fill(f"judge-{number}")
        settle(page)
        page.get_by_role("button", name="Import verdicts").click()
        page.get_by_text("160 verdicts imported.").wait_for(timeout=SLOW_MS)
        page.get_by_text("For the rate:").wait_for(timeout=SLOW_MS)
        settle(page)

    page.get_by_text("Compared with another judge").click()
    page.get_by_role("combobox", name="Compare with").wait_for(timeout=SLOW_MS)
    settle(page)
    choose(page, "Compare with", "judge-")
    page.get_by_text("On 160 traces with a verdict of both they agree on").wait_for(timeout=SLOW_MS)
    page.get_by_role("button", name="Open the form").first.click()
    page.get_by_label("Traces", exact=True).first.fill("20")
    page.get_by_label("Traces", exact=True).first.press("Tab")
    page.get_by_role("button", name="Draw this batch").first.click()
    page.get_by_text("production-002 is drawn; reviewers find it on the Label page.").wait_for(
        timeout=SLOW_MS
    )
    server.stop()
    with Store.open(server.store) as store:
        assert store.batch_items("production-002")["inclusion_probability"].notna().all()
