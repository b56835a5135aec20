"""Other processes while one holds the store: they read a snapshot and hand writes over."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from calibration.errors import InputError, StoreError, StoreLockedError, TaxonomyError
from calibration.records import LabelDraft, Verdict, Workflow
from calibration.store import Keeper, RemoteStore, Store, make_way, traces
from calibration.store.store import (
    SILENT,
    _write_request,
    inbox,
    is_attended,
    open_snapshot,
    publish,
    snapshot_path,
)
from calibration.store.traces import parts_directory
from calibration.taxonomy import default_taxonomy, taxonomy_from_dict
from tests.store.builders import ABANDONED, empty_store, make_trace, make_traces

LOCKED = StoreLockedError("the app holds it")
IDS = [trace.trace_id for trace in make_traces(30)]


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Store]:
    """Return a store that an app holds, with ten traces."""
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        store.ingest(make_traces(10))
        yield store


@pytest.fixture
def keeper(held: Store) -> Iterator[Keeper]:
    running = held.keeper()
    running.start()
    until(lambda: snapshot_path(held.path).exists())
    yield running
    running.stop()


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def remote(store: Store) -> RemoteStore:
    return RemoteStore(store.path, LOCKED, waiting=lambda seconds: None)


def test_a_snapshot_answers_as_the_store_did(held: Store) -> None:
    batch = held.add_batch(purpose="production", trace_ids=IDS[1:3])
    publish(held._db)
    held.add_reviewer("Later")
    shown = Store(open_snapshot(held.path, LOCKED))
    assert shown.trace_frame().equals(held.trace_frame())
    assert shown.batches() == [batch]
    assert shown.reviewers() == []
    assert shown.for_review(IDS[:2]) == held.for_review(IDS[:2])
    with pytest.raises(StoreError, match="nothing was stored"):
        shown.add_reviewer("Mara")
    shown.close()


def test_without_a_good_snapshot_there_is_nothing_to_read(held: Store) -> None:
    for call in (lambda: open_snapshot(held.path, LOCKED), lambda: remote(held)):
        with pytest.raises(StoreLockedError, match="the app holds it"):
            call()
    snapshot_path(held.path).write_text("cut off", encoding="utf-8")
    with pytest.raises(StoreError, match="snapshot cannot be opened"):
        open_snapshot(held.path, LOCKED)


def test_another_process_reads_the_snapshot_and_is_told_its_age(held: Store) -> None:
    publish(held._db)
    script = (
        "import sys; from calibration.store import Store; "
        "store, age = Store.open_to_read(sys.argv[1]); "
        "print(len(store.trace_frame()), age is not None and age < 60)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(held.path)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "10 True\n", done.stderr
    held.close()  # a free store is read itself
    store, age = Store.open_to_read(held.path)
    assert age is None
    assert len(store.trace_frame()) == 10
    store.close()


def test_a_snapshot_is_written_after_changes_only(held: Store) -> None:
    keeper = held.keeper()
    keeper.round()
    first = snapshot_path(held.path).stat().st_mtime_ns
    keeper._published_at -= 60
    keeper.round()
    assert snapshot_path(held.path).stat().st_mtime_ns == first
    held.add_reviewer("Mara")
    keeper.round()
    assert snapshot_path(held.path).stat().st_mtime_ns > first


@pytest.mark.long
def test_every_write_of_a_command_is_carried_out(held: Store, keeper: Keeper) -> None:
    far = remote(held)
    far.set_workflow(Workflow(name="w", ceiling_usd=0.3, unit="ticket"))
    done = far.ingest(make_traces(12)[9:])
    assert (done.imported, done.already_there) == (tuple(IDS[10:12]), (IDS[9],))
    person = far.add_reviewer("Mara Lind", role="lead")
    batch = far.add_batch(purpose="production", trace_ids=IDS[10:12], design={"seed": 1})
    stored = far.add_verdicts([Verdict(judge_id="j", trace_id=IDS[10], outcome="complete")])
    forked = taxonomy_from_dict(default_taxonomy().to_dict() | {"version": "2"}, where="here")
    far.set_taxonomy(forked)
    # What it then reads is what it has written, and so does the holder.
    for store in (far, held):
        assert store.workflows()["w"].ceiling_usd == 0.3
        assert person in store.reviewers()
        assert store.batches() == [batch]
        assert store.for_review([IDS[11]])[0].prompt == "Task 11"
        assert store.taxonomy() == forked
    assert len(stored.imported) == 1
    draft = LabelDraft(
        client_token="label", trace_id=IDS[10], reviewer_id=person.reviewer_id,
        batch_id=batch.batch_id, answers=ABANDONED,
    )  # fmt: skip
    assert len(far.import_labels(batch.batch_id, [draft]).imported) == 1
    for store in (far, held):
        assert store.label_frame(batch.batch_id)["outcome"].tolist() == ["abandoned"]
    assert [p.name for p in inbox(held.path).iterdir()] == ["server"]
    far.close()


def test_a_trace_that_comes_twice_is_judged_as_in_the_store_itself(
    held: Store, keeper: Keeper
) -> None:
    twice = [make_trace(20), make_trace(20, prompt="Other"), make_trace(20)]
    done = remote(held).ingest(twice)
    assert (done.imported, done.changed, done.already_there) == ((IDS[20],),) * 3
    assert held.for_review([IDS[20]])[0].prompt == "Task 20"


def test_what_the_store_refuses_is_refused_in_its_own_words(held: Store, keeper: Keeper) -> None:
    far = remote(held)
    with pytest.raises(InputError, match="reviewer name"):
        far.add_reviewer("!!!")
    with pytest.raises(InputError, match="none"):
        far.add_batch(purpose="production", trace_ids=["none"])
    changed = default_taxonomy().to_dict() | {"workflows": {"x": {"ceiling_usd": 1.0}}}
    with pytest.raises(TaxonomyError, match="is taken by another"):
        far.set_taxonomy(taxonomy_from_dict(changed, where="here"))
    kept = (inbox(held.path) / "refused").iterdir()
    assert [path.suffix for path in kept] == [".parquet"] * 3


def test_a_request_that_is_damaged_or_on_which_the_app_fails_is_answered_and_kept(
    held: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, refused = held.keeper(), inbox(held.path) / "refused"
    keeper.round()
    path = inbox(held.path) / f"1-{'0' * 64}.parquet"
    path.write_bytes(b"PAR1")
    keeper.round()
    answer = json.loads(path.with_name(path.name + ".reply.json").read_text(encoding="utf-8"))
    assert "damaged" in answer["message"]
    assert (refused / path.name).exists()
    far = remote(held)

    def fail(*_: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(keeper, "_carry_out", fail)
    keeper.start()
    with pytest.raises(StoreError, match="a fault of ours"):
        far.add_reviewer("Mara")
    keeper.stop()
    assert [kept.suffix for kept in refused.iterdir()] == [".parquet"] * 2


def test_a_long_request_keeps_the_app_alive_in_the_eyes_of_others(
    held: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that takes longer than silence may last is not given up."""
    monkeypatch.setattr("calibration.store.store.SILENT", 2.0)
    keeper = held.keeper()
    keeper.round()
    far = remote(held)
    carry_out = keeper._carry_out

    def slowly(call: str, arguments: dict[str, Any], origin: str) -> Any:
        time.sleep(3.5)
        return carry_out(call, arguments, origin)

    monkeypatch.setattr(keeper, "_carry_out", slowly)
    keeper.start()
    assert far.add_reviewer("Mara").name == "Mara"
    keeper.stop()


def test_a_part_that_is_nowhere_is_refused(held: Store) -> None:
    folder = parts_directory(held.path)
    before = set(folder.iterdir())
    index = traces.write_index(held.path, [make_trace(25)])
    for part in set(folder.iterdir()) - before:
        part.unlink()
    with pytest.raises(InputError, match="is not there"):
        held.ingest_written(index)
    assert len(held.trace_frame()) == 10


def test_a_command_that_gives_up_takes_its_request_back(held: Store) -> None:
    keeper = held.keeper()
    keeper.round()
    far = remote(held)

    def fall_silent(seconds: float) -> None:
        past = time.time() - SILENT - 1
        os.utime(inbox(held.path) / "server", (past, past))

    far._waiting = fall_silent
    with pytest.raises(StoreLockedError, match=r"Run the command again: .* not done twice"):
        far.add_reviewer("Mara")
    assert not is_attended(held.path)
    with pytest.raises(StoreLockedError, match="the app holds it"):
        remote(held)
    keeper.round()
    assert held.reviewers() == []


def left_by_a_command_that_was_killed(store: Path, name: str) -> Path:
    """Return a request of which nobody waits for the answer."""
    return _write_request(store, "add_reviewer", {"name": name})


def test_a_request_that_was_left_is_carried_out_before_anything_newer(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    empty_store(path).close()
    _write_request(path, "set_workflow", {"workflow": Workflow(name="a", ceiling_usd=1.0)})
    with Store.open(path) as store:
        store.set_workflow(Workflow(name="a", ceiling_usd=2.0))
    with Store.open(path) as store:
        assert store.workflows()["a"].ceiling_usd == 2.0


def test_a_request_past_its_deadline_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.duckdb"
    empty_store(path).close()
    monkeypatch.setattr("calibration.store.store.DEADLINE", -1.0)
    request = left_by_a_command_that_was_killed(path, "Mara")
    with Store.open(path) as store:
        assert store.reviewers() == []
    assert (inbox(path) / "refused" / request.name).exists()
    reply = json.loads(request.with_name(request.name + ".reply.json").read_text("utf-8"))
    assert "too long ago" in reply["message"]


@pytest.mark.long
def test_a_command_lets_the_app_go_first_and_only_then(held: Store, keeper: Keeper) -> None:
    nice = "import os, sys; from calibration.store import make_way; from pathlib import Path; "
    nice += "make_way(Path(sys.argv[1])); print(os.nice(0))"
    mine = os.nice(0)

    def niceness(store: Path) -> int:
        command = [sys.executable, "-c", nice, str(store)]
        return int(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)

    assert niceness(held.path) > mine
    assert niceness(held.path.with_name("other.duckdb")) == mine
    make_way(held.path)
    assert os.nice(0) == mine
