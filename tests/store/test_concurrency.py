import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest

from calibration.errors import LabelRefusedError, StoreError
from calibration.store import Store, database
from tests.store.builders import Clock, Desk, make_desk, query


def at_once(work: Callable[[Any], object], items: Iterable[Any]) -> list[Any]:
    """Run `work` on every item, one thread each, all started at the same moment."""
    items = list(items)
    start = threading.Barrier(len(items))

    def run(item: Any) -> object:
        start.wait()
        return work(item)

    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(run, items))


@pytest.mark.long
def test_twenty_threads_with_the_same_hundred_tokens_store_a_hundred_labels(tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "s.duckdb", 100)
    with desk.store:
        desk.queue("ann", limit=100)

        def send(_: int) -> int:
            receipts = [desk.label(t, client_token=f"same-{t}") for t in desk.traces]
            return sum(not receipt.duplicate for receipt in receipts)

        new = at_once(send, range(20))
        assert sum(new) == 100
        assert len(desk.events()) == len(desk.labelled()) == 100


def test_a_store_that_is_read_from_waits_before_it_is_closed(tmp_path: Path) -> None:
    for attempt in range(20):
        desk = make_desk(tmp_path / f"{attempt}.duckdb", 1)
        reading = threading.Barrier(3)

        def read(store: Store = desk.store, reading: threading.Barrier = reading) -> None:
            store.judges()
            reading.wait()
            with suppress(duckdb.ConnectionException, duckdb.InterruptException, StoreError):
                while True:
                    store.judges()

        with ThreadPoolExecutor(2) as pool:
            readers = [pool.submit(read) for _ in range(2)]
            reading.wait()
            desk.store.close()
            assert [reader.result(timeout=10) for reader in readers] == [None, None]


def test_a_store_opened_while_another_thread_writes_lacks_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.duckdb"
    with Store.open(path, create=True) as writing:
        names = iter(["Ann"])  # once: writing asks for the path too
        path_of_commits = database.commits_path

        def write_between(store: Path) -> Path:
            # A change lands after the one number of changes was read and before the other.
            name = next(names, None)
            if name is not None:
                writing.add_reviewer(name)
            return path_of_commits(store)

        monkeypatch.setattr(database, "commits_path", write_between)
        with Store.open(path) as reading:
            assert len(reading.reviewers()) == 1


def test_one_reviewer_in_many_windows_labels_each_trace_once(desk: Desk) -> None:
    desk.queue(limit=5)

    def send(window: int) -> None:
        for trace in desk.traces:
            with suppress(LabelRefusedError):
                desk.label(trace, client_token=f"{window}-{trace}")

    at_once(send, range(8))
    assert len(desk.labelled()) == len(desk.events()) == 5
    taken = at_once(lambda _: desk.undo(client_token="once"), range(8))
    assert len(set(taken)) == 1
    assert len(desk.labelled()) == 4


def test_reviewers_at_work_together_give_each_trace_the_labels_it_wants(tmp_path: Path) -> None:
    names = [f"reviewer-{k}" for k in range(8)]
    desk = make_desk(tmp_path / "s.duckdb", 16, labels_wanted=3, reviewers=names)

    def work(reviewer: str) -> int:
        # Somebody else's lease never expires here: who waits is done when the others are.
        for _ in range(2000):
            queue = desk.store.queue(reviewer, desk.batch, limit=2)
            if queue.state == "finished":
                return queue.done
            for trace in queue.items[:1]:
                desk.label(trace.trace_id, reviewer)
        raise AssertionError("the queue never came to an end")

    with desk.store:
        done = at_once(work, names)
        labelled = desk.labelled()
        assert sum(done) == len(desk.events()) == len(labelled) == 16 * 3
        assert Counter(trace for trace, _ in labelled) == dict.fromkeys(desk.traces, 3)


def test_labels_after_expired_leases_are_extras_and_none_is_doubled(
    tmp_path: Path, clock: Clock
) -> None:
    names = [f"reviewer-{k}" for k in range(4)]
    desk = make_desk(tmp_path / "s.duckdb", 6, reviewers=names)
    given = {}
    for name in names:
        given[name] = desk.queue(name, limit=6)
        clock.forward(hours=1)
    with desk.store:
        at_once(lambda name: [desk.label(trace, name) for trace in given[name]], names)
        assert len(desk.labelled()) == len(desk.events()) == 24
        assert {desk.state(reviewer) for reviewer in names} == {"finished"}


def test_reading_goes_on_while_labels_are_stored(tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "s.duckdb", 12)
    ended = threading.Event()

    def write(_: int) -> int:
        try:
            for _trace in desk.traces:
                desk.label(desk.queue(limit=1)[0])
        finally:
            ended.set()
        return 0

    def read(_: int) -> int:
        seen, rounds = 0, 0
        while not ended.is_set():
            frame = desk.store.label_frame(desk.batch)
            assert len(frame) >= seen
            assert frame["outcome"].tolist() == ["complete"] * len(frame)
            assert len(desk.store.for_review(desk.traces[:3])) == 3
            assert desk.store.taxonomy().version == "1.0"
            assert len(desk.store.trace_frame()) == 12
            seen, rounds = len(frame), rounds + 1
        return rounds

    with desk.store:
        rounds = at_once(lambda k: (write if k == 0 else read)(k), range(3))
        assert min(rounds[1:]) >= 1
        assert len(desk.labelled()) == 12


def test_threads_adding_the_same_names_and_batches_get_one_each(desk: Desk) -> None:
    people = at_once(lambda k: desk.store.add_reviewer(f"New {k % 2}"), range(8))
    assert {p.reviewer_id for p in people} == {"new-0", "new-1"}
    batches = at_once(
        lambda _: desk.store.add_batch(purpose="exam", trace_ids=desk.traces), range(6)
    )
    assert len({b.batch_id for b in batches}) == 6
    assert query(desk.store, "SELECT count(*) FROM batch_item") == [(5 * 7,)]
