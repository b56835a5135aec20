"""Backups hold every acknowledged label, say when they are damaged, and come back whole."""

import json
import multiprocessing
import os
import subprocess
import threading
from pathlib import Path

import pytest

from calibration.errors import InputError, StoreError
from calibration.store import Keeper, Store
from calibration.store.backup import MANIFEST, backups, restore_backup, verify_backup
from calibration.store.store import snapshot_path
from calibration.store.traces import parts_directory
from tests.cli_runs import ASR
from tests.store.builders import Desk, make_desk
from tests.store.stores_of_before import fill, rows_of
from tests.store.test_keeper import remote, until


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "a").mkdir()
    desk = make_desk(tmp_path / "a" / "asr.duckdb")
    (tmp_path / "a" / "asr.reference" / "sets").mkdir(parents=True)
    (tmp_path / "a" / "asr.reference" / "overrides.jsonl").write_text("{}\n")
    return desk


def labels_of(path: Path) -> list[str]:
    return sorted(row["client_token"] for row in rows_of(path)["label_event"])


def test_labels_that_lie_in_the_log_alone_are_in_the_backup(desk: Desk, tmp_path: Path) -> None:
    given = desk.queue(limit=3)
    for trace_id in given:
        desk.label(trace_id)
    log = desk.store.path.with_name("asr.duckdb.wal")
    assert log.stat().st_size > 0
    made = desk.store.write_backup(tmp_path / "backups")
    labelled = {row["trace_id"] for row in rows_of(made.folder / "store.duckdb")["label_event"]}
    assert labelled == set(given)
    assert (made.folder / "store.reference" / "overrides.jsonl").read_text() == "{}\n"
    assert verify_backup(made.folder).n_files == made.n_files


def test_a_backup_holds_what_people_sign_in_with_and_is_private(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.duckdb", create=True) as store:
        fill(store)
        made = store.write_backup(tmp_path / "backups")
        assert len(rows_of(made.folder / "store.duckdb")["credential"]) == 1
    own = [made.folder, *made.folder.rglob("*")]
    linked = {p for p in own if p.suffix == ".parquet"}
    assert linked
    assert {p.stat().st_mode & 0o077 for p in own} == {0}


def test_a_backup_is_made_by_the_app_while_people_label(desk: Desk, tmp_path: Path) -> None:
    keeper = desk.store.keeper()
    keeper.start()
    until(lambda: snapshot_path(desk.store.path).exists())
    acknowledged: list[str] = []
    stop = threading.Event()

    def label() -> None:
        while not stop.is_set() and (due := desk.queue(limit=1)):
            desk.label(due[0], client_token=f"w-{len(acknowledged)}")
            acknowledged.append(f"w-{len(acknowledged)}")

    writer = threading.Thread(target=label)
    writer.start()
    until(lambda: len(acknowledged) > 1)
    before = list(acknowledged)
    made = remote(desk.store).write_backup(tmp_path / "backups", None)
    stop.set()
    writer.join()
    keeper.stop()
    assert set(before) <= set(labels_of(made.folder / "store.duckdb"))


def test_a_restored_store_is_the_store_of_the_backup(desk: Desk, tmp_path: Path) -> None:
    first, second = desk.queue(limit=2)
    desk.label(first)
    made = desk.store.write_backup(tmp_path / "backups")
    desk.label(second)
    desk.store.close()
    path = desk.store.path
    with pytest.raises(InputError, match="exists already; --replace"):
        restore_backup(made.folder, path)
    aside = restore_backup(made.folder, path, replace=True)
    assert aside is not None
    with Store.open(path) as store:
        assert store.label_frame(desk.batch)["trace_id"].tolist() == [first]
        assert len(store.for_review([first, second])) == 2
    assert (path.with_suffix(".reference") / "overrides.jsonl").exists()
    # What was there before is all in the folder that the answer names.
    with Store.open(aside / path.name) as store:
        assert len(store.label_frame(desk.batch)) == 2


def test_a_backup_is_restored_under_another_name(desk: Desk, tmp_path: Path) -> None:
    made = desk.store.write_backup(tmp_path / "backups")
    elsewhere = tmp_path / "new" / "team.db"
    assert restore_backup(made.folder, elsewhere) is None
    with Store.open(elsewhere) as store:
        assert len(store.for_review(desk.traces)) == len(desk.traces)


def test_no_backup_is_restored_over_a_store_that_is_open(desk: Desk, tmp_path: Path) -> None:
    made = desk.store.write_backup(tmp_path / "backups")
    words = [*ASR, "restore", str(made.folder), "--store", str(desk.store.path), "--replace"]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 1
    assert "a process has the store open; stop the app" in answer.stderr
    assert desk.queue(limit=1)


@pytest.mark.parametrize("name", ["store.duckdb", "store.traces", "manifest"])
@pytest.mark.parametrize("harm", ["flip", "cut", "remove"])
def test_a_damaged_backup_is_named_and_not_restored(
    desk: Desk, tmp_path: Path, name: str, harm: str
) -> None:
    made = desk.store.write_backup(tmp_path / "backups")
    desk.store.close()
    (file,) = [p for p in made.folder.rglob("*") if p.is_file() and name in str(p)]
    content = file.read_bytes()
    file.unlink()
    if harm == "flip":
        place = len(content) // 2
        file.write_bytes(content[:place] + bytes([content[place] ^ 8]) + content[place + 1 :])
    elif harm == "cut":
        file.write_bytes(content[: len(content) // 2])
    rows = rows_of(desk.store.path)
    with pytest.raises(StoreError, match=r"is not a backup|missing or changed|newer version"):
        restore_backup(made.folder, desk.store.path, replace=True)
    assert rows_of(desk.store.path) == rows


def test_a_manifest_names_no_file_outside_of_the_backup(desk: Desk, tmp_path: Path) -> None:
    made = desk.store.write_backup(tmp_path / "backups")
    manifest = json.loads((made.folder / MANIFEST).read_text())
    manifest["files"]["../../a/asr.duckdb"] = manifest["files"]["store.duckdb"]
    (made.folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(StoreError, match="missing or changed"):
        restore_backup(made.folder, tmp_path / "new.duckdb")


def test_rotation_keeps_the_newest_of_this_store_alone(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    with Store.open(tmp_path / "other.duckdb", create=True) as other:
        other.write_backup(folder)
    (folder / "notes").mkdir()
    made = [desk.store.write_backup(folder, keep=2).folder for _ in range(4)]
    own = [b.folder for b in backups(folder) if b.folder.name.startswith("asr-")]
    assert own == made[2:]
    assert len(backups(folder)) == 3
    assert (folder / "notes").is_dir()


def test_a_backup_that_lacks_a_part_is_refused_and_leaves_nothing(
    desk: Desk, tmp_path: Path
) -> None:
    (part,) = parts_directory(desk.store.path).iterdir()
    part.unlink()
    with pytest.raises(StoreError, match=r"1 of 1 parts are missing"):
        desk.store.write_backup(tmp_path / "backups")
    assert list((tmp_path / "backups").iterdir()) == []


def test_a_backup_that_cannot_be_written_leaves_nothing(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("calibration.store.backup.put", full)
    with pytest.raises(InputError, match=r"not written \(No space left on device\)"):
        desk.store.write_backup(tmp_path / "backups")
    assert list((tmp_path / "backups").iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="was not written"):
        desk.store.write_backup(tmp_path / "file")


def read_as_nobody(store: Path) -> str:
    if os.getuid() == 0:
        os.setuid(65534)
    opened, age = Store.open_to_read(store)
    with opened:
        return f"{len(opened.trace_frame())} {age}"


@pytest.mark.skipif(os.name != "posix", reason="rights of files")
def test_a_backup_on_a_disk_that_is_read_only_can_be_read(desk: Desk, tmp_path: Path) -> None:
    made = desk.store.write_backup(tmp_path / "backups")
    for path in [made.folder, *made.folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    for path in [made.folder.parent, *made.folder.parents]:
        if str(path).startswith(("/tmp/", str(tmp_path.parents[1]))):
            path.chmod(path.stat().st_mode | 0o555)
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        answer = pool.apply(read_as_nobody, (made.folder / "store.duckdb",))
    assert answer == "5 None"


def test_a_keeper_answers_with_the_backup(desk: Desk, tmp_path: Path) -> None:
    keeper: Keeper = desk.store.keeper()
    keeper.start()
    until(lambda: snapshot_path(desk.store.path).exists())
    made = [remote(desk.store).write_backup(tmp_path / "b", 1) for _ in range(2)]
    keeper.stop()
    assert made[1].removed == (made[0].folder,)
    assert verify_backup(made[1].folder) == backups(tmp_path / "b")[0]
