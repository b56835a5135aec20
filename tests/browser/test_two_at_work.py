"""Two reviewers at work at the same time, and one who comes back after a long break."""

from itertools import cycle
from pathlib import Path

import duckdb
import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.conftest import Server
from tests.browser.desk import Desk
from tests.browser.samples import build_store
from tests.browser.test_label_page import read_back

pytestmark = pytest.mark.browser

N = 40


def test_two_reviewers_label_forty_traces_by_keyboard(
    server: Server, context: BrowserContext
) -> None:
    batch = build_store(server.store, N)
    server.start()
    desks = {name: Desk(context.new_page(), server.url) for name in ("Anna", "Ben")}
    for name, desk in desks.items():
        desk.open(name)
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


def expire_leases(store: Path) -> None:
    with duckdb.connect(str(store)) as connection:
        connection.execute("UPDATE lease SET expires_at = expires_at - INTERVAL 1 DAY")


def test_a_label_after_the_lease_expired_is_kept(server: Server, context: BrowserContext) -> None:
    """Anna goes away with a trace open; Ben and Cleo finish the batch; she answers then."""
    batch = build_store(server.store, 1)
    server.start()
    anna = Desk(context.new_page(), server.url)
    anna.open("Anna")
    kept = anna.get("trace")
    server.stop()
    expire_leases(server.store)
    server.start()
    for name in ("Ben", "Cleo"):
        other = Desk(context.new_page(), server.url)
        other.open(name)
        other.label("abandoned")
        other.wait_saved()
    expect(anna.page.locator("[data-testid=stConnectionStatus]")).to_have_count(0)
    anna.label("complete")
    anna.wait_saved()
    server.stop()
    current = read_back(server.store, batch)["current"]
    assert sorted((by, outcome) for trace, by, _, outcome in current if trace == kept) == [
        ("anna", "complete"),
        ("ben", "abandoned"),
        ("cleo", "abandoned"),
    ]
