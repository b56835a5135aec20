"""`asr backup`, `restore`, `upgrade`, `doctor` and `audit-log`, also while the app runs."""

import json
from pathlib import Path

import pytest

from calibration.store import Store
from calibration.store.schema import migrations
from tests.cli_runs import Run
from tests.store.builders import make_desk
from tests.store.stores_of_before import unpack

SCHEMA = migrations()[-1].version


@pytest.fixture
def path(tmp_path: Path) -> Path:
    desk = make_desk(tmp_path / "asr.duckdb")
    desk.label(desk.queue(limit=1)[0])
    desk.store.close()
    return tmp_path / "asr.duckdb"


def test_a_backup_is_made_checked_and_restored(asr: Run, path: Path, tmp_path: Path) -> None:
    made = json.loads(asr("backup", tmp_path / "b", "--store", path, "--json").stdout)
    assert made["schema"] == SCHEMA
    assert made["removed"] == []
    checked = asr("restore", made["backup"], "--check", "--store", path).stdout
    assert f"{made['files']} files are as they were written" in checked
    assert (
        "--replace moves it away" in asr("restore", made["backup"], "--store", path, code=2).stderr
    )
    result = asr("restore", made["backup"], "--store", path, "--replace", "--json")
    restored = json.loads(result.stdout)
    assert Path(restored["put_aside"], "asr.duckdb").exists()
    with Store.open(path) as store:
        assert len(store.label_frame("production-001")) == 1
    again = asr("backup", tmp_path / "b", "--store", path, "--keep", 1).stdout.splitlines()
    assert again[1] == f"removed {made['backup']}"


def test_a_damaged_backup_is_no_input_error(asr: Run, path: Path, tmp_path: Path) -> None:
    made = json.loads(asr("backup", tmp_path / "b", "--store", path, "--json").stdout)
    (Path(made["backup"]) / "store.duckdb").write_bytes(b"")
    assert "1 of 2 files" in asr("restore", made["backup"], "--check", code=1).stderr
    assert "is not a backup" in asr("restore", tmp_path, "--check", code=1).stderr


def test_an_older_store_is_upgraded_once(asr: Run, tmp_path: Path) -> None:
    path = unpack("schema-1", tmp_path)
    assert "`asr upgrade --store" in asr("traces", "--store", path, code=1).stderr
    done = json.loads(asr("upgrade", "--store", path, "--json").stdout)
    assert (done["schema_before"], done["schema"]) == (1, SCHEMA)
    assert Path(done["backup"], "manifest.json").exists()
    assert f"has schema {SCHEMA} already" in asr("upgrade", "--store", path).stdout
    assert "10 traces" in asr("traces", "--store", path).stdout
    assert "no store here" in asr("upgrade", "--store", tmp_path / "none", code=2).stderr


def test_the_doctor_ends_with_1_where_something_is_wrong(asr: Run, path: Path) -> None:
    sound = json.loads(asr("doctor", "--store", path, "--json").stdout)
    assert sound["sound"] is True
    assert [c["check"] for c in sound["checks"]][:5] == [
        "versions", "lock", "schema", "tables", "changes"
    ]  # fmt: skip
    (part,) = path.with_suffix(".traces").iterdir()
    part.unlink()
    result = asr("doctor", "--store", path, code=1)
    assert "PROBLEM   traces     1 of 1 parts are missing" in result.stdout
    assert "problems with traces" in result.stderr


def test_the_audit_log_names_the_command(asr: Run, path: Path) -> None:
    asr("people", "add", "=Mara", "--store", path)
    newest = json.loads(asr("audit-log", "--store", path, "--limit", 1, "--json").stdout)
    assert newest[0]["what"] == "add_reviewer"
    assert newest[0]["origin"].startswith("asr people add (as ")
    assert newest[0]["detail"]["name"] == "=Mara"
    table = asr("audit-log", "--store", path, "--csv").stdout.splitlines()
    assert table[0] == "seq,created_at,actor,origin,what,detail"
