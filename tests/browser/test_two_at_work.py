"""Two reviewers at work at the same time."""

from itertools import cycle

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.conftest import Server
from tests.browser.desk import Desk, read_back
from tests.browser.samples import build_store

pytestmark = [pytest.mark.browser, pytest.mark.long]
N = 40


def test_two_reviewers_label_forty_traces_by_key(server: Server, context: BrowserContext) -> None:
    batch = build_store(server.store, N)
    server.start()
    desks = {name: Desk(context.new_page(), server.url) for name in ("Anna", "Ben")}
    for name, desk in desks.items():
        desk.open(name)
        expect(desk.page.locator(".last")).to_have_text("Nothing labelled yet")
    # Short ways down the tree, other ones for each: what one says must not reach the other.
    ways = {"Anna": cycle(["abandoned", "complete"]), "Ben": cycle(["complete", "complete"])}
    for _ in range(N):
        for name, desk in desks.items():
            desk.label(next(ways[name]))
    for desk in desks.values():
        desk.wait_saved()
        assert desk.get("state") == "finished"
    server.stop()
    stored = read_back(server.store, batch)
    assert [kind for kind, _ in stored["events"]] == ["label"] * (2 * N)
    for name, desk in desks.items():
        mine = {t: outcome for t, by, _, outcome in stored["current"] if by == name.lower()}
        assert mine == desk.shown
        assert len(mine) == N
