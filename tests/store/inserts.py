"""A store in which traces that are settled or labelled long ago may be put in."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from calibration.records import LabelDraft
from calibration.store import Store, queue
from tests.store.builders import COMPLETE, Desk, empty_store, make_trace, query, token

N_GOLD, N_OWN, N_NEW = 40, 40, 40


@dataclass
class World:
    """Gold of Bob and Cy, old labels of Ann, and a new batch."""

    store: Store
    gold: tuple[str, ...]
    own: tuple[str, ...]
    new: tuple[str, ...]
    gold_batch: str
    own_batch: str
    desk: Desk

    def frame(self) -> Any:
        return self.store.hidden_item_frame()

    def put_in(self, reviewer: str = "ann") -> dict[str, str]:
        """Return the kind of everything that was put in for a reviewer."""
        found = query(
            self.store,
            "SELECT trace_id, kind FROM inserted WHERE reviewer_id = ? AND batch_id = ?",
            [reviewer, self.desk.batch],
        )
        return dict(found)

    def work(self, reviewer: str = "ann", answers: dict[str, str] = COMPLETE) -> list[str]:
        """Label the whole batch and return the traces in the order they came."""
        served = []
        while given := self.desk.queue(reviewer):
            served.append(given[0])
            self.desk.label(given[0], reviewer, answers=answers)
        return served


def label_all(store: Store, batch: str, traces: tuple[str, ...], *reviewers: str) -> None:
    drafts = [
        LabelDraft(
            client_token=token(), trace_id=trace, reviewer_id=who, batch_id=batch, answers=COMPLETE
        )
        for trace in traces
        for who in reviewers
    ]
    assert len(store.import_labels(batch, drafts).imported) == len(drafts)


def settle(store: Store, traces: tuple[str, ...], by: str = "lea") -> None:
    for trace in traces:
        store.adjudicate(trace_id=trace, answers=COMPLETE, adjudicator=by)


def age(store: Store, batch: str, days: float) -> None:
    """Make everything in a batch older."""
    with store._db.write() as cursor:
        for table, column in (("label_event", "created_at"), ("lease", "expires_at")):
            cursor.execute(
                f"UPDATE {table} SET {column} = {column} - to_minutes(?) WHERE batch_id = ?",
                [int(1440 * days), batch],
            )


def make_world(path: Path, *, days: float = 8, settled: int = N_GOLD) -> World:
    store = empty_store(path)
    traces = store.ingest([make_trace(k) for k in range(N_GOLD + N_OWN + N_NEW)]).imported
    for name in ("Ann", "Bob", "Cy"):
        store.add_reviewer(name)
    store.add_reviewer("Lea", role="lead")
    parts = traces[:N_GOLD], traces[N_GOLD : N_GOLD + N_OWN], traces[N_GOLD + N_OWN :]
    gold, own, new = (
        store.add_batch(purpose="production", trace_ids=part, labels_wanted=wanted).batch_id
        for part, wanted in zip(parts, (2, 1, 1), strict=True)
    )
    label_all(store, gold, parts[0], "bob", "cy")
    settle(store, parts[0][:settled])
    label_all(store, own, parts[1], "ann")
    age(store, own, days)
    desk = Desk(store=store, batch=new, traces=parts[2])
    return World(store, *parts, gold_batch=gold, own_batch=own, desk=desk)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put something in at every second slot or so."""
    monkeypatch.setattr(queue, "GOLD_RATE", 0.25)
    monkeypatch.setattr(queue, "REPEAT_RATE", 0.25)


@pytest.fixture(scope="module")
def first_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return a world that is closed again: the others are copies of its files."""
    made = make_world(tmp_path_factory.mktemp("world") / "world.duckdb")
    made.store.close()
    return made


@pytest.fixture
def world(first_world: World, tmp_path: Path, often: None) -> Iterator[World]:
    source = first_world.store.path
    shutil.copytree(source.parent, tmp_path, dirs_exist_ok=True)
    with Store.open(tmp_path / source.name) as store:
        desk = replace(first_world.desk, store=store)
        yield replace(first_world, store=store, desk=desk)


def first_insert(world: World) -> str:
    """Label up to the first insert and return it."""
    while (given := world.desk.queue()[0]) not in world.put_in():
        world.desk.label(given)
    return given
