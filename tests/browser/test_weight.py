"""What a page of the desk weighs: its script comes once, and an answer holds data only."""

import pytest
from playwright.sync_api import Page, Response

from app.desk.module import PATH
from tests.browser.conftest import Server
from tests.browser.desk import Desk, Traffic
from tests.browser.samples import build_store

pytestmark = [pytest.mark.browser, pytest.mark.long]
MOST_BYTES, MOST_AT_FIRST = 15_000, 1_500_000


def test_a_first_visit_is_small(server: Server, page: Page) -> None:
    build_store(server.store, 12)
    server.start()
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    sizes: list[int] = []
    network.on("Network.loadingFinished", lambda e: sizes.append(e["encodedDataLength"]))
    traffic = Traffic(page)
    blocked: list[str] = []
    page.on("console", lambda m: blocked.append(m.text) if "Security Policy" in m.text else None)
    Desk(page, server.url).open()
    page.wait_for_load_state("networkidle")
    assert blocked == []
    assert len(sizes) > 50
    # Streamlit alone sends 3.1 MB.
    assert sum(sizes) + sum(map(len, traffic.frames)) < MOST_AT_FIRST


def test_the_script_comes_once_and_an_answer_to_a_label_is_small(
    server: Server, page: Page
) -> None:
    build_store(server.store, 12)
    server.start()
    scripts: list[Response] = []
    page.on("response", lambda answer: scripts.append(answer) if PATH in answer.url else None)
    traffic = Traffic(page)
    desk = Desk(page, server.url)
    desk.open()
    desk.label("complete")
    desk.wait_saved()
    (script,) = scripts
    assert script.header_value("content-encoding") == "gzip"
    assert "immutable" in (script.header_value("cache-control") or "")

    traffic.frames.clear()
    for _ in range(5):  # a draft and an answer each, at a person's pace
        trace = desk.get("trace")
        desk.press("yn")
        page.wait_for_timeout(700)
        desk.press("nn")
        desk.wait_painted(trace)
        desk.wait_saved()
        page.wait_for_timeout(700)
    # With script and style inside every one of them it was 140 kB an answer.
    assert sum(map(len, traffic.frames)) / 5 < MOST_BYTES
    page.reload()
    desk.wait_painted("")
    assert len(scripts) <= 2
    assert all(answer.from_service_worker or answer.status == 200 for answer in scripts)
