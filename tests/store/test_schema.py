"""Schemas are frozen: what is refused is not touched, what is older is upgraded after a backup."""

from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import duckdb
import pytest

from calibration.errors import StoreError
from calibration.store import Store
from calibration.store.backup import upgrade
from calibration.store.schema import DIGESTS, _made_by_scripts, check_known, digest, migrations
from tests.store.builders import empty_store, query
from tests.store.stores_of_before import kept_rows, rows_of, unpack

# A script that was published is never edited: a store that it made would be refused.
FROZEN = {
    "0001_initial.sql": "72f95549f11b71d27502c234cc29a3313c27871a6ad0d5c1f61cb78960d0b896",
    "0002_audit_trail.sql": "1fb2b64c47d29182f504c87c2fde01869c1d80c0464a8c88447dea03f6afe9d7",
    "0003_identity_provider.sql": (
        "b50fa3777564e5722758afc2ff1a890b1ffd4c8b669056e739f93e38cae156b0"
    ),
    "0004_batch_event.sql": "760eaffd2a643384e19524b6d6691ed97fd707d3a454feea3d80d53dc9fa5436",
    "0005_judge_versions.sql": "9ab6df4f37e5393dee8f5d33da6174eceb3c794704fea1fa60f4c36c82545170",
    "0006_reliability.sql": "81a922a7bd658d2a1c15fbb2294c4606a3a59e57846032e50185270e9b1ccd1e",
    "0007_any_rubric.sql": "30f6ff2decdd7b6ac9696ea17a05429b115ccdd610eb8d153afe2df6a33e9b22",
}


def state_of(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in found}


def test_published_scripts_are_frozen_and_numbered() -> None:
    scripts = files("calibration.store").joinpath("migrations")
    found = {e.name: sha256(e.read_bytes()).hexdigest() for e in scripts.iterdir()}
    assert {name: found[name] for name in FROZEN} == FROZEN
    assert sorted(found) == sorted(FROZEN), "freeze the new script here"


def test_every_schema_has_its_digest() -> None:
    assert list(DIGESTS) == [one.version for one in migrations()]
    for version, known in DIGESTS.items():
        assert digest(_made_by_scripts(version)) == known


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("  by_user BOOLEAN NOT NULL\n", "  by_user BOOLEAN\n"),
        ("    purpose IN ('practice', 'exam',", "    purpose IN ('exam',"),
        ("  seconds_active DOUBLE,\n", ""),
        ("'real_judgement'", "'judgement'"),
        ("WHERE recency = 1 AND kind <> 'undo'", "WHERE recency = 1"),
    ],
)
def test_a_store_of_an_unnumbered_schema_is_refused_before_any_write(
    tmp_path: Path, before: str, after: str
) -> None:
    path = tmp_path / "store.duckdb"
    script = migrations()[0].script
    assert before in script
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE schema_migration (version INTEGER PRIMARY KEY, "
                           "name VARCHAR, applied_at TIMESTAMP)")  # fmt: skip
        connection.execute(script.replace(before, after))
        connection.execute("INSERT INTO schema_migration VALUES (1, 'initial', now())")
    files_before = state_of(tmp_path)
    for opened in (Store.open, Store.open_to_read, upgrade):
        with pytest.raises(StoreError, match=r"before schemas were numbered .*Nothing was changed"):
            opened(path)
    assert state_of(tmp_path) == files_before


def test_an_older_schema_is_refused_with_the_command_that_upgrades_it(tmp_path: Path) -> None:
    path = unpack("schema-1", tmp_path)
    files_before = state_of(tmp_path)
    for opened in (Store.open, Store.open_to_read):
        with pytest.raises(StoreError, match=r"has schema 1, this version needs 7: `asr upgrade"):
            opened(path)
    assert state_of(tmp_path) == files_before


def test_a_refusal_leaves_the_log_of_a_store_where_it_is(tmp_path: Path) -> None:
    path = unpack("schema-1", tmp_path)
    connection = duckdb.connect(str(path))
    connection.execute("PRAGMA disable_checkpoint_on_shutdown")
    connection.execute("INSERT INTO setting (name, value, created_at) VALUES ('x', '1', now())")
    connection.close()
    assert path.with_name(path.name + ".wal").stat().st_size > 0
    files_before = state_of(tmp_path)
    with pytest.raises(StoreError, match="asr upgrade"):
        Store.open(path)
    assert state_of(tmp_path) == files_before
    upgrade(path)
    with Store.open(path) as store:
        assert query(store, "SELECT value FROM setting WHERE name = 'x'") == [("1",)]


def test_an_upgrade_keeps_every_row_and_a_backup_of_the_store_before(tmp_path: Path) -> None:
    path = unpack("schema-1", tmp_path)
    before, after, kept = upgrade(path)
    assert (before, after) == (1, len(migrations()))
    assert kept is not None
    assert rows_of(kept / "store.duckdb") == kept_rows("schema-1")
    assert upgrade(path) == (after, after, None)


def test_an_upgrade_that_fails_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unpack("schema-1", tmp_path)
    rows = rows_of(path)

    def cut(*_: object) -> None:
        raise RuntimeError("power cut")

    monkeypatch.setattr("calibration.store.backup.check_schema", cut)
    with pytest.raises(RuntimeError):
        upgrade(path)
    assert rows_of(path) == rows


def test_tables_of_ones_own_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    empty_store(path).close()
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE mine (note VARCHAR)")
        assert check_known(path, connection) == migrations()[-1].version
    Store.open(path).close()
