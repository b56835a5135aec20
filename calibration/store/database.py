"""One DuckDB file: lock, migrations, settings.

One connection per process, one cursor per operation: a connection shared by threads returns wrong
answers. Writes take one in-process lock, in explicit transactions.
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import duckdb
import pyarrow as pa

from calibration.errors import InputError, LabelRefusedError, StoreError, StoreLockedError

# Messages of DuckDB on Unix and on Windows when another process has the file open.
_LOCKED = ("Could not set lock", "being used by another process")

Cursor = duckdb.DuckDBPyConnection

# Files stay readable by DuckDB 1.5, and a Python variable never replaces a missing table.
# Many people send short statements: handing each out to several threads takes longer than it
# saves, and one long statement must not take every core.
CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "storage_compatibility_version": "v1.5.0",
    "python_enable_replacements": False,
    "threads": 1,
}

# Only the process that has the store reads these tables.
SECRET = frozenset({"credential", "session", "sign_in"})

# One lock a file, not an object: DuckDB lets one process open a file twice.
_write_locks: dict[Path, threading.Lock] = {}

# Changes that this process has made to the cached values of a file.
_changed: Counter[tuple[Path, str]] = Counter()

T = TypeVar("T")


def utc_now() -> datetime:
    """Return the current time in UTC, without a zone, as stored."""
    return datetime.now(UTC).replace(tzinfo=None)


class Database:
    """A store file held open by this process; `InputError` if missing and not to be created."""

    def __init__(self, path: Path, *, create: bool) -> None:
        # DuckDB would read the rest as parameters and look for its log in another directory.
        if "?" in str(path):
            raise InputError(f"{path}: the path of a store cannot hold a question mark")
        if not create and not path.exists():
            raise InputError(
                f"{path}: there is no store here; `asr import FILES --store {path}` creates one, "
                "`asr demo` shows one"
            )
        if create:
            _make_directory(path)
        self._hold(path, _connect(path))
        try:
            self._migrate()
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def on_snapshot(cls, path: Path, connection: Cursor) -> Self:
        """Return a database over a connection to a snapshot of a store."""
        db = cls.__new__(cls)
        db._hold(path, connection)
        with db.read() as cursor:
            db._missing_migrations(cursor)
        return db

    def _hold(self, path: Path, connection: Cursor) -> None:
        self.path = path
        self._held: dict[type[object], object] = {}
        self._kept: dict[str, tuple[int, object]] = {}
        self.importing = threading.Lock()
        self.changes = 0
        self._write_lock = _write_locks.setdefault(path.resolve(), threading.Lock())
        self._connection = connection

    def close(self) -> None:
        """Write everything to the main file and release it."""
        with self._write_lock:
            self._connection.close()

    @contextmanager
    def read(self) -> Iterator[Cursor]:
        """Open a cursor for one reading operation."""
        with self._connection.cursor() as cursor:
            try:
                yield cursor
            except duckdb.Error as error:
                raise StoreError(f"{self.path}: cannot be read ({_first_line(error)})") from error

    @contextmanager
    def write(self) -> Iterator[Cursor]:
        """Open a cursor for one transaction; an exception inside rolls it back."""
        with self._write_lock, self._connection.cursor() as cursor:
            cursor.begin()
            try:
                yield cursor
                cursor.commit()
                self.changes += 1
            except BaseException as error:  # Streamlit aborts a callback with one
                # A commit that failed has already ended the transaction.
                with suppress(duckdb.TransactionException):
                    cursor.rollback()
                if isinstance(error, duckdb.Error):
                    raise StoreError(
                        f"{self.path}: nothing was stored ({_first_line(error)})"
                    ) from error
                raise

    def kept(self, name: str, read: Callable[[], T]) -> T:
        """Return a cached value: read with every label, almost never changed."""
        changed = _changed[self.path.resolve(), name]
        found = self._kept.get(name)
        if found is None or found[0] != changed:
            found = self._kept[name] = changed, read()
        return cast("T", found[1])

    def forget(self, name: str) -> None:
        """Drop a cached value in every `Database` of this file."""
        _changed[self.path.resolve(), name] += 1

    def held(self, kind: type[T]) -> T:
        """Return the one object of a kind that lives as long as this database is open."""
        return cast("T", self._held.get(kind) or self._held.setdefault(kind, kind()))

    def copy_to(self, path: Path) -> None:
        """Copy every table but the secret ones to a new file, as of one moment."""
        with self._connection.cursor() as cursor:
            (name,) = cursor.execute("SELECT current_database()").fetchone() or ("",)
            place = str(path.absolute()).replace("'", "''")
            version = CONFIG["storage_compatibility_version"]
            cursor.execute(f"ATTACH '{place}' AS snapshot (STORAGE_VERSION '{version}')")
            try:
                quoted = name.replace('"', '""')
                # Rows copied and then deleted would remain in the file.
                cursor.begin()
                cursor.execute(f'COPY FROM DATABASE "{quoted}" TO snapshot (SCHEMA)')
                found = cursor.execute(
                    "SELECT table_name FROM duckdb_tables() WHERE database_name = ?", [name]
                ).fetchall()
                for table in sorted({row[0] for row in found} - SECRET):
                    cursor.execute(
                        f'INSERT INTO snapshot."{table}" SELECT * FROM "{quoted}"."{table}"'
                    )
                cursor.commit()
            except BaseException:
                with suppress(duckdb.TransactionException):
                    cursor.rollback()
                raise
            finally:
                cursor.execute("DETACH snapshot")

    def _migrate(self) -> None:
        with self.write() as cursor:
            found = cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall()
            tables = {row[0] for row in found}
            if tables and "schema_migration" not in tables:
                raise StoreError(f"{self.path}: is a DuckDB file but no store; choose another path")
            cursor.execute(
                "CREATE TABLE IF NOT EXISTS schema_migration "
                "(version INTEGER PRIMARY KEY, name VARCHAR, applied_at TIMESTAMP)"
            )
            missing = self._missing_migrations(cursor)
        for version, name, script in missing:
            with self.write() as cursor:
                cursor.execute(script)
                cursor.execute(
                    "INSERT INTO schema_migration VALUES (?, ?, ?)", [version, name, utc_now()]
                )

    def _missing_migrations(self, cursor: Cursor) -> list[tuple[int, str, str]]:
        """Return the migrations that a store lacks; refuse a store with an unknown one."""
        applied = cursor.execute("SELECT version FROM schema_migration").fetchall()
        done = {row[0] for row in applied}
        steps = migrations()
        unknown = done - {version for version, _, _ in steps}
        if unknown:
            raise StoreError(
                f"{self.path}: was written by a newer version (schema {max(unknown)}); "
                "update asr-calibration to open it"
            )
        return [step for step in steps if step[0] not in done]


def migrations() -> list[tuple[int, str, str]]:
    """Return number, name and script of every migration, in order."""
    found = []
    for entry in files("calibration.store").joinpath("migrations").iterdir():
        match = re.fullmatch(r"(\d{4})_(\w+)\.sql", entry.name)
        if match:
            found.append((int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    return sorted(found)


def _make_directory(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be created ({error.strerror})") from error


def _connect(path: Path) -> Cursor:
    try:
        # Absolute: a name like ":memory:" or "md:team" is not a file to DuckDB.
        connection = duckdb.connect(str(path.absolute()), config=CONFIG)
    except duckdb.IOException as error:
        if any(sign in str(error) for sign in _LOCKED):
            holder = re.search(r"PID (\d+)", str(error))
            who = f" (process {holder[1]})" if holder else ""
            raise StoreLockedError(
                f"{path}: another process{who} holds the store, probably the app; stop it first"
            ) from error
        raise StoreError(f"{path}: cannot be opened as a store ({_first_line(error)})") from error
    except duckdb.Error as error:
        raise StoreError(f"{path}: cannot be opened as a store ({_first_line(error)})") from error
    # DuckDB opens CSV, JSON and Parquet files too, as views in memory that end with it.
    in_files = connection.execute("SELECT path FROM duckdb_databases() WHERE NOT internal")
    if in_files.fetchall() == [(None,)]:
        connection.close()
        raise StoreError(f"{path}: cannot be opened as a store (it is a file of data)")
    return connection


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def rows(
    cursor: Cursor, sql: str, values: list[Any] | dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Run a query and return its rows by column name."""
    result = cursor.execute(sql, values or [])
    names = [column[0] for column in result.description or []]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def event_of_token(cursor: Cursor, table: str, token: str, **meant: str) -> dict[str, Any] | None:
    """Return the event stored under a client token, None if there is none."""
    # The sender of another event's token must not see its class or take its receipt.
    found = rows(cursor, f"SELECT * FROM {table} WHERE client_token = ?", [token])
    if found and any(found[0][name] != value for name, value in meant.items()):
        raise token_refused(token)
    return found[0] if found else None


def token_refused(token: str) -> LabelRefusedError:
    """Return the error for a token of another event."""
    return LabelRefusedError(f"the token {token!r:.80} already stands for something else")


def insert_table(cursor: Cursor, name: str, table: pa.Table) -> None:
    """Append the rows of an Arrow table to a table of the store, column by name."""
    cursor.register("incoming", table)
    cursor.execute(f"INSERT INTO {name} BY NAME SELECT * FROM incoming")
    cursor.unregister("incoming")


def record_audit(cursor: Cursor, what: str, **detail: object) -> None:
    """Record an act other than a label: an import, a draw, a changed ceiling."""
    cursor.execute(
        "INSERT INTO audit (what, detail, created_at) VALUES (?, ?, ?)",
        [what, json.dumps(detail, default=str), utc_now()],
    )


def setting(cursor: Cursor, name: str) -> Any:
    """Return the value of a setting, None if it was never set."""
    row = cursor.execute(
        "SELECT value FROM setting WHERE name = ? ORDER BY seq DESC LIMIT 1", [name]
    ).fetchone()
    return None if row is None else json.loads(row[0])


def put_setting(cursor: Cursor, name: str, value: Any, *, by: str | None) -> None:
    """Set a value and record who did; None: the process that holds the file."""
    before = setting(cursor, name)
    if before == value:
        return
    cursor.execute(
        "INSERT INTO setting (name, value, created_at) VALUES (?, ?, ?)",
        [name, json.dumps(value), utc_now()],
    )
    record_audit(cursor, "setting", name=name, before=before, after=value, by=by)
