"""Two reviewers at work at the same time, and one who comes back after a long break."""

from itertools import cycle

import pytest
from playwright.sync_api import BrowserContext, expect

from calibration.store import Store
from tests.browser.conftest import Server
from tests.browser.desk import Desk, read_back
from tests.browser.samples import build_store

pytestmark = pytest.mark.browser
N = 40


@pytest.mark.long
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


@pytest.mark.long
def test_a_label_after_the_lease_expired_is_kept(server: Server, context: BrowserContext) -> None:
    """Anna goes away with a trace open and a lead ends her lease; she answers after the others."""
    batch = build_store(server.store, 1)
    with Store.open(server.store) as store:
        store.add_reviewer("Lea", role="lead")
    server.start()
    anna = Desk(context.new_page(), server.url)
    anna.open("Anna")
    kept = anna.get("trace")
    lead = context.new_page()
    lead.goto(f"{server.url}/?reviewer=lea")
    lead.get_by_role("button", name="Hand over from Anna").click()
    lead.get_by_text("What Anna held is free for the others now.").wait_for()
    for name in ("Ben", "Cleo"):
        other = Desk(context.new_page(), server.url)
        other.open(name)
        other.label("abandoned")
        other.wait_saved()
    anna.page.bring_to_front()
    anna.label("complete")
    anna.wait_saved()
    server.stop()
    current = read_back(server.store, batch)["current"]
    assert sorted((by, outcome) for trace, by, _, outcome in current if trace == kept) == [
        ("anna", "complete"),
        ("ben", "abandoned"),
        ("cleo", "abandoned"),
    ]
