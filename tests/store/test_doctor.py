"""What the doctor finds, what it mends, and that damage is named before it does harm."""

import json
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import duckdb
import pytest

from calibration.errors import StoreError
from calibration.store import Store
from calibration.store.database import commits_path
from calibration.store.doctor import examine
from calibration.store.store import Keeper, inbox, snapshot_path
from calibration.store.traces import part_is_whole, parts_directory
from tests.cli_runs import ASR
from tests.store.builders import Desk, make_desk, make_trace, make_traces
from tests.store.stores_of_before import unpack
from tests.store.test_keeper import left_by_a_command_that_was_killed, until


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return make_desk(tmp_path / "asr.duckdb")


def of(store: Path, *, repair: bool = False) -> dict[str, str]:
    return {one.check: one.status for one in examine(store, repair=repair).findings}


def found(store: Path, check: str) -> tuple[str, str, str]:
    (one,) = [one for one in examine(store).findings if one.check == check]
    return one.status, one.found, one.mend


def flipped(content: bytes, bit: int) -> bytes:
    place = bit // 8
    return content[:place] + bytes([content[place] ^ 1 << bit % 8]) + content[place + 1 :]


def without_log(desk: Desk) -> Path:
    """Label, end as a killed process does, and remove the log; return the store."""
    path = desk.store.path
    desk.store._db._connection.execute("CHECKPOINT")
    desk.label(desk.queue(limit=1)[0])
    log = path.with_name(path.name + ".wal")
    kept = path.read_bytes()
    assert log.stat().st_size
    desk.store.close()
    path.write_bytes(kept)
    log.unlink(missing_ok=True)
    return path


def test_a_store_in_order_is_sound(desk: Desk) -> None:
    desk.label(desk.queue(limit=1)[0])
    desk.store.close()
    examined = examine(desk.store.path)
    assert examined.sound
    assert {one.status for one in examined.findings} == {"ok"}


def test_a_store_that_lost_its_log_is_refused_and_named(desk: Desk) -> None:
    path = without_log(desk)
    with pytest.raises(StoreError, match=r"the last \d+ changes are missing: .*asr restore"):
        Store.open(path)
    status, what, mend = found(path, "changes")
    assert (status, "missing" in what, "asr restore" in mend) == ("problem", True, True)
    assert of(path, repair=True)["changes"] == "repaired"
    with Store.open(path) as store:
        assert len(store.label_frame(desk.batch)) == 0


def test_an_older_copy_in_the_place_of_the_store_is_noticed(desk: Desk, tmp_path: Path) -> None:
    path = desk.store.path
    desk.store._db._connection.execute("CHECKPOINT")
    shutil.copy(path, tmp_path / "copy")
    desk.label(desk.queue(limit=1)[0])
    desk.store.close()
    shutil.copy(tmp_path / "copy", path)
    with pytest.raises(StoreError, match="or the file is an older copy"):
        Store.open(path)


def test_another_store_in_its_place_is_no_older_copy(desk: Desk, tmp_path: Path) -> None:
    desk.label(desk.queue(limit=1)[0])
    desk.store.close()
    Store.open(tmp_path / "new.duckdb", create=True).close()
    shutil.copy(tmp_path / "new.duckdb", desk.store.path)
    Store.open(desk.store.path).close()


def test_a_store_that_was_replaced_while_it_is_open_takes_no_label(desk: Desk) -> None:
    path = desk.store.path
    first, second = desk.queue(limit=2)
    desk.label(first)
    path.rename(path.with_name("moved.duckdb"))
    for there in (False, True):
        if there:
            shutil.copy(path.with_name("moved.duckdb"), path)
        with pytest.raises(StoreError, match=r"replaced, moved .* nothing was stored"):
            desk.label(second)
    path.with_name("moved.duckdb").replace(path)
    desk.label(second)


def test_what_unfinished_writes_left_is_removed_on_request(desk: Desk) -> None:
    desk.store.close()
    path = desk.store.path
    left = [parts_directory(path) / ".part.parquet.77", path.with_name(".asr.snapshot.duckdb.77")]
    for file in left:
        file.write_bytes(b"half")
        os.utime(file, (0, 0))
    assert of(path)["leftovers"] == "warning"
    assert of(path, repair=True)["leftovers"] == "repaired"
    assert not any(file.exists() for file in left)
    assert of(path)["leftovers"] == "ok"


@pytest.mark.skipif(os.name != "posix", reason="rights of files")
def test_files_that_others_may_read_are_reported_and_made_private(desk: Desk) -> None:
    keeper = Keeper(desk.store)
    keeper.round()
    desk.label(desk.queue(limit=1)[0])
    path = desk.store.path
    beside = [
        path, path.with_name(path.name + ".wal"), snapshot_path(path), commits_path(path),
        inbox(path), parts_directory(path),
    ]  # fmt: skip
    (part,) = parts_directory(path).iterdir()
    left_by_a_command_that_was_killed(path, "Mara")
    (request,) = inbox(path).glob("*.parquet")
    made = [*beside[1:5], request]
    assert [oct(p.stat().st_mode & 0o077) for p in made] == ["0o0"] * len(made)
    assert path.stat().st_mode & 0o077 == 0
    desk.store.close()
    part.chmod(0o644)
    path.chmod(0o640)
    assert of(path)["rights"] == "warning"
    assert of(path, repair=True)["rights"] == "repaired"
    assert of(path)["rights"] == "ok"


def test_the_usual_rights_come_back_when_the_last_store_is_closed(tmp_path: Path) -> None:
    usual = os.umask(0o022)
    try:
        with Store.open(tmp_path / "a.duckdb", create=True):
            Store.open(tmp_path / "b.duckdb", create=True).close()
            (tmp_path / "inside").write_text("")
        (tmp_path / "after").write_text("")
        rights = [(tmp_path / name).stat().st_mode & 0o777 for name in ("inside", "after")]
        assert rights == [0o600, 0o644]
    finally:
        os.umask(usual)


def test_a_request_that_nobody_takes_in_is_reported(desk: Desk) -> None:
    desk.store.close()
    request = left_by_a_command_that_was_killed(desk.store.path, "Mara")
    os.utime(request, (0, 0))
    status, what, _ = found(desk.store.path, "inbox")
    assert (status, what[:16]) == ("warning", "1 requests wait,")


def test_the_doctor_looks_at_a_store_that_the_app_holds(desk: Desk) -> None:
    keeper = desk.store.keeper()
    keeper.start()
    until(lambda: snapshot_path(desk.store.path).exists())
    words = [*ASR, "doctor", "--store", str(desk.store.path), "--json"]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    keeper.stop()
    checks = {one["check"]: one for one in json.loads(answer.stdout)["checks"]}
    assert (answer.returncode, checks["traces"]["status"]) == (0, "ok")
    assert checks["lock"]["found"] == "the app has the store open"


@pytest.mark.parametrize("harm", ["cut", "empty", "text"])
def test_a_store_that_cannot_be_opened_names_the_way_back(desk: Desk, harm: str) -> None:
    desk.store.close()
    path = desk.store.path
    content = path.read_bytes()
    harmed = {"cut": content[: len(content) // 3], "empty": b"", "text": b"hello"}
    path.write_bytes(harmed[harm])
    examined = examine(path)
    assert not examined.sound
    assert any("asr restore" in one.mend for one in examined.findings)


def test_an_older_schema_and_a_missing_store_are_problems(tmp_path: Path) -> None:
    path = unpack("schema-1", tmp_path)
    status, what, mend = found(path, "schema")
    assert (status, what) == ("problem", "schema 1 of 7")
    assert "asr upgrade" in mend
    assert found(tmp_path / "none.duckdb", "store")[0] == "problem"


def test_a_damaged_part_is_named_and_written_anew_by_another_import(desk: Desk) -> None:
    store, path = desk.store, desk.store.path
    (part,) = parts_directory(path).iterdir()
    part.write_bytes(part.read_bytes()[:-40])
    store.close()
    status, what, mend = found(path, "traces")
    assert status == "problem"
    assert "the text of 5 traces cannot be trusted" in what
    assert "import the files" in mend
    store = Store.open(path)
    with pytest.raises(StoreError, match="import the files of these runs again"):
        store.for_review(desk.traces)
    done = store.ingest(make_traces(5))
    assert sorted(done.restored) == sorted(desk.traces)
    assert (done.imported, done.already_there) == ((), ())
    assert len(store.for_review(desk.traces)) == 5
    store.close()
    assert found(path, "traces")[0] == "ok"
    store = Store.open(path)
    # An import of one run brings back the text of that run alone.
    (part,) = parts_directory(path).iterdir()
    part.unlink()
    assert store.ingest([make_trace(2)]).restored == (make_trace(2).trace_id,)
    assert store.for_review([make_trace(2).trace_id])[0].prompt == "Task 2"
    store.close()


@pytest.mark.long  # 150 damaged parts
def test_a_flipped_bit_in_a_part_is_without_effect_or_named(tmp_path: Path) -> None:
    texts = random.Random(1)
    traces = [make_trace(k, prompt=texts.randbytes(400).hex()) for k in range(150)]
    with Store.open(tmp_path / "store.duckdb", create=True) as store:
        store.ingest(traces)
        ids = [trace.trace_id for trace in traces]
        expected = store.for_review(ids)
    (part,) = parts_directory(tmp_path / "store.duckdb").iterdir()
    whole = part.read_bytes()
    bits = 8 * len(whole)
    silent = named = unnoticed = 0
    for k in range(150):
        part.write_bytes(flipped(whole, (k * bits) // 150 + k % 8))
        os.utime(part, (k, k))
        with Store.open(tmp_path / "store.duckdb") as store:
            try:
                silent += store.for_review(ids) != expected
            except StoreError:
                named += 1
        unnoticed += part_is_whole(part)
    # A flip that nobody meets while a trace is read is one that the doctor finds.
    assert silent == 0
    assert named > 50
    assert unnoticed < 40


def test_a_flipped_bit_in_the_database_is_named_by_the_doctor(desk: Desk) -> None:
    desk.store.close()
    path = desk.store.path
    whole = path.read_bytes()
    with duckdb.connect(str(path), read_only=True) as connection:
        used = connection.execute("SELECT used_blocks, block_size FROM pragma_database_size()")
        (blocks, size) = used.fetchone() or (0, 0)
    before = of(path)
    unnoticed = []
    for k in range(20):
        block = 3 * 4096 + (k * blocks // 20) * size + 8 * (k + 1)
        path.write_bytes(flipped(whole, 8 * block))
        started = time.monotonic()
        statuses = of(path)
        assert time.monotonic() - started < 60
        if statuses == before:
            unnoticed.append(k)
    path.write_bytes(whole)
    assert of(path) == before
    assert len(unnoticed) < 20


def test_the_number_of_changes_is_never_an_empty_file(desk: Desk) -> None:
    """It is written over in place: a process that ends while it writes leaves the one before."""
    noted = commits_path(desk.store.path)
    first, *others = desk.queue(limit=3)
    desk.label(first)
    sizes, before = set(), noted.stat().st_ino
    for trace_id in others:
        desk.label(trace_id)
        sizes.add(noted.stat().st_size)
    assert (sizes, noted.stat().st_ino) == ({58}, before)
