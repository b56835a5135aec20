"""The schema of a store: numbered scripts that never change, and the check on opening.

A file is opened only if its tables are those that the scripts make: a store that an unnumbered
schema made would fail later, half written.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import duckdb

from calibration.errors import StoreError

Cursor = duckdb.DuckDBPyConnection

_OBJECTS = (
    "SELECT table_name, sql FROM duckdb_tables() WHERE {} "
    "UNION ALL SELECT view_name, sql FROM duckdb_views() WHERE {} "
    "UNION ALL SELECT sequence_name, NULL FROM duckdb_sequences() WHERE {} "
    "ORDER BY ALL"
).replace("{}", "NOT temporary AND database_name = current_database() AND schema_name = 'main'")

# SHA-256 of the tables of each schema as DuckDB prints them. Another version of DuckDB may print
# them otherwise: then the scripts are run in memory and compared.
DIGESTS = {
    1: "87f965d6d60c321f897caf71468ec6c92b409201f479c972b4de811ef7267e23",
    2: "fcf4682f8dcda01718c4c2903dbeb1485cf39670034f58d5315da3e241cd66a4",
    3: "9bf9e143bc1f7e094595c09b773695cd8083bbf1d28084d768125a5c8bcf2646",
    4: "5c15fc6f5593ee365c1ad59ecae213060c7d00897a07dd5d5f692d709f36be0a",
    5: "16787048ab5c9caa5476d7d0653ecc11ccae07960d3c1f3096db065adb12aef4",
    6: "a809d9d29e016a20b91d8a7442eeb5804c075411cc8a092e8de1c28db2cb821b",
    7: "7126e41a4e98cbce7ab8c9b000df7e70a1f29f9a947b4630a0df5dc0c3a4b590",
}


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered script; never edited once it was published."""

    version: int
    name: str
    script: str


@cache
def migrations() -> tuple[Migration, ...]:
    """Return every migration, in order."""
    found = []
    for entry in files("calibration.store").joinpath("migrations").iterdir():
        match = re.fullmatch(r"(\d{4})_(\w+)\.sql", entry.name)
        if match:
            found.append(Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    return tuple(sorted(found, key=lambda one: one.version))


def check_schema(path: Path, cursor: Cursor) -> None:
    """Refuse a store that this version cannot use; nothing is written.

    Raises
    ------
    StoreError
        If the file is no store, a newer version wrote it, its tables are not those of its schema,
        or it has to be upgraded first.
    """
    version = check_known(path, cursor)
    newest = migrations()[-1].version
    if version < newest:
        raise StoreError(
            f"{path}: has schema {version}, this version needs {newest}: "
            f"`asr upgrade --store {path}` makes a backup and upgrades it"
        )


def check_known(path: Path, cursor: Cursor) -> int:
    """Return the number of the schema of a store; `StoreError` unless its tables are of it."""
    try:
        found = _objects(cursor)
        if "schema_migration" not in found:
            raise StoreError(f"{path}: is a DuckDB file but no store; choose another path")
        applied = cursor.execute("SELECT version FROM schema_migration").fetchall()
    except duckdb.Error as error:
        raise StoreError(
            f"{path}: is damaged ({str(error).splitlines()[0]}); `asr restore BACKUP --store "
            f"{path} --replace` puts a backup in its place"
        ) from error
    done = {row[0] for row in applied}
    newer = done - {one.version for one in migrations()}
    if newer:
        raise StoreError(
            f"{path}: was written by a newer version (schema {max(newer)}); "
            "update asr-calibration to open it"
        )
    version = max(done, default=0)
    if digest(found) == DIGESTS.get(version):
        return version
    expected = _made_by_scripts(version)
    wrong = sorted(name for name, sql in expected.items() if found.get(name, "") != sql)
    if wrong or done != set(range(1, version + 1)):
        named = ", ".join(wrong[:3]) + (", ..." if len(wrong) > 3 else "")
        raise StoreError(
            f"{path}: an early version of asr-calibration made it, before schemas were numbered "
            f"(other tables: {named or 'schema_migration'}). Nothing was changed. With the version "
            "that made it write `asr labels export`, then import the runs and "
            "`asr labels import` into a new store"
        )
    return version


def create_schema(cursor: Cursor, *, after: int = 0) -> None:
    """Run the migrations after a version, within the transaction of the cursor."""
    cursor.execute(
        "CREATE TABLE IF NOT EXISTS schema_migration "
        "(version INTEGER PRIMARY KEY, name VARCHAR, applied_at TIMESTAMP)"
    )
    for one in migrations():
        if one.version > after:
            cursor.execute(one.script)
            now = datetime.now(UTC).replace(tzinfo=None)
            cursor.execute(
                "INSERT INTO schema_migration VALUES (?, ?, ?)", [one.version, one.name, now]
            )


def is_empty(cursor: Cursor) -> bool:
    """Return whether a database has no table."""
    return not _objects(cursor)


def digest(objects: dict[str, str | None]) -> str:
    """Return the SHA-256 of tables, views and sequences by name."""
    return sha256(repr(sorted(objects.items())).encode()).hexdigest()


def _objects(cursor: Cursor) -> dict[str, str | None]:
    return dict(cursor.execute(_OBJECTS).fetchall())


def _made_by_scripts(version: int) -> dict[str, str | None]:
    """Return the objects that the migrations up to a version make."""
    with duckdb.connect(":memory:") as connection:
        connection.execute(
            "CREATE TABLE schema_migration "
            "(version INTEGER PRIMARY KEY, name VARCHAR, applied_at TIMESTAMP)"
        )
        for one in migrations():
            if one.version <= version:
                connection.execute(one.script)
        return _objects(connection)
