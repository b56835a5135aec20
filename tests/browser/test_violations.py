"""Safety violations at the desk, by keyboard: off unless the store asks for them."""

import json

import duckdb
import pytest
from playwright.sync_api import Page, expect

from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.desk import Desk
from tests.browser.samples import build_store

pytestmark = [pytest.mark.browser, pytest.mark.long]


def opened(server: Server, page: Page, *, asks: bool) -> Desk:
    build_store(server.store, 4)
    with Store.open(server.store) as store:
        store.set_violation_marking(asks)
    server.start()
    desk = Desk(page, server.url)
    desk.open()
    return desk


def test_nothing_is_there_unless_the_store_asks(server: Server, page: Page) -> None:
    desk = opened(server, page, asks=False)
    expect(page.locator(".violations-sum")).to_be_hidden()
    desk.press("v")
    assert desk.get("state") == "answer"
    desk.press("?")
    expect(page.locator(".help-box")).to_contain_text("tick the sub-goals")
    expect(page.locator(".help-box")).not_to_contain_text("safety violations")
    desk.press("?")
    desk.label("complete")
    desk.wait_saved()
    server.stop()
    with duckdb.connect(str(server.store), read_only=True) as con:
        assert con.execute("SELECT violations FROM label_event").fetchall() == [(None,)]


def test_violations_are_marked_undone_and_stored(server: Server, page: Page) -> None:
    desk = opened(server, page, asks=True)
    first = desk.get("trace")
    expect(page.locator(".violations-sum")).to_have_text("mark broken rules")
    desk.press("jj")  # the second step
    step = page.locator(".step.here").get_attribute("data-stop")
    desk.press("v")
    assert desk.get("state") == "violations"
    desk.press("3")
    page.wait_for_timeout(250)
    desk.press("j")
    desk.press("1")
    page.wait_for_timeout(250)
    desk.press("1")  # the same again takes it off
    expect(page.locator(".rules li.here")).to_have_attribute("data-said", "")
    desk.press("v")
    expect(page.locator(".violations-sum")).to_have_text(f"no PII exposure: high, {step}")
    expect(page.locator(".question-box")).to_have_attribute("data-node", "output")
    desk.label("complete")
    desk.wait_saved()
    desk.press("u")
    desk.wait("d.trace === arg && d.ready === 'true'", first)
    expect(page.locator(".violations-sum")).to_have_text(f"no PII exposure: high, {step}")
    page.wait_for_timeout(300)
    desk.label("complete")
    desk.label("complete")
    desk.wait_saved()
    server.stop()
    with duckdb.connect(str(server.store), read_only=True) as con:
        stored = con.execute(
            "SELECT trace_id, kind, violations FROM label_event ORDER BY seq"
        ).fetchall()
    marked = [{"constraint": "no PII exposure", "severity": "high", "step": step}]
    found = [(trace, kind, v and json.loads(v)) for trace, kind, v in stored]
    assert found[:3] == [(first, "label", marked), (first, "undo", None), (first, "label", marked)]
    assert found[3][1:] == ("label", [])
