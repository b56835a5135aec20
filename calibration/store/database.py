"""One DuckDB file: lock, transactions, settings.

One connection per process, one cursor per operation: a connection shared by threads returns wrong
answers. Writes take one in-process lock, in explicit transactions.
"""

import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import duckdb
import pyarrow as pa

from calibration.errors import InputError, LabelRefusedError, StoreError, StoreLockedError
from calibration.store.files import make_private, owner_only
from calibration.store.schema import check_schema, create_schema, is_empty

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
SECRET = frozenset({"credential", "provider_link", "session", "sign_in"})

# One lock a file, not an object: DuckDB lets one process open a file twice.
_write_locks: dict[Path, threading.Lock] = {}

# Changes that this process has made to the cached values of a file.
_changed: Counter[tuple[Path, str]] = Counter()

# Calls that show or lend something, have a table of their own, or record what they change.
PASSING = frozenset({
    "queue", "save_draft", "clear_draft", "has_open_items", "of_session", "record_exposure",
    "settlement", "verify_sign_in", "sign_in_by_provider", "set_workflow", "set_identities",
    "set_certificate_demand", "set_role", "link", "release_leases", "add_reviewer", "import_labels",
})  # fmt: skip

# Arguments that the audit trail keeps: names, never text, answers or secrets.
NAMED = (
    "trace_id", "batch_id", "reviewer_id", "adjudicator", "judge_id", "name", "role", "wanted",
    "purpose", "form", "proposal_id", "folder",
)  # fmt: skip

# Tokens of imported labels begin so: whoever sent one first would keep that label out.
IMPORTED, MAX_TOKEN = "import-", 200

T = TypeVar("T")


@dataclass(kw_only=True)
class Act:
    """A call under way: who makes it, from where, and what it is about."""

    call: str
    actor: str | None
    origin: str | None
    about: Callable[[], dict[str, object]]
    recorded: bool = False


ACT: ContextVar[Act | None] = ContextVar("act", default=None)


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
        with ExitStack() as undo:
            undo.enter_context(owner_only())
            connection = connect(path)
            undo.callback(_close, connection)
            self._hold(path, connection)
            self._check_or_create()
            for kept in (path, commits_path(path)):
                make_private(kept)
            self._release = undo.pop_all()

    def _check_or_create(self) -> None:
        with self.read() as cursor:
            if not is_empty(cursor):
                # What is refused is left as it is: closing would write its log into the file.
                cursor.execute("PRAGMA disable_checkpoint_on_shutdown")
                check_schema(self.path, cursor)
                _check_complete(self.path, cursor)
                cursor.execute("PRAGMA enable_checkpoint_on_shutdown")
                return
        with self.write() as cursor:
            create_schema(cursor)

    @classmethod
    def on_snapshot(cls, path: Path, connection: Cursor) -> Self:
        """Return a database over a connection for reading alone, to a snapshot or a backup."""
        db = cls.over(path, connection)
        with db.read() as cursor:
            check_schema(path, cursor)
        return db

    @classmethod
    def over(cls, path: Path, connection: Cursor) -> Self:
        """Return a database over an open connection, whatever its schema."""
        db = cls.__new__(cls)
        db._hold(path, connection)
        db._release.callback(_close, connection)
        return db

    def _hold(self, path: Path, connection: Cursor) -> None:
        self.path = path
        self._release = ExitStack()
        self._held: dict[type[object], object] = {}
        self._kept: dict[str, tuple[int, object]] = {}
        self.importing = threading.Lock()
        self._file = _identity(path)
        self.changes = 0
        self._write_lock = _write_locks.setdefault(path.resolve(), threading.Lock())
        self._connection = connection

    def close(self) -> None:
        """Write everything to the main file and release it."""
        with self._write_lock:
            self._release.close()

    @contextmanager
    def read(self) -> Iterator[Cursor]:
        """Open a cursor for one reading operation."""
        with self._connection.cursor() as cursor:
            try:
                yield cursor
            except duckdb.Error as error:
                mend = _mend(self.path) if _is_damage(error) else ""
                raise StoreError(
                    f"{self.path}: cannot be read ({_first_line(error)}){mend}"
                ) from error

    @contextmanager
    def write(self) -> Iterator[Cursor]:
        """Open a cursor for one transaction; an exception inside rolls it back."""
        with self._write_lock, self._connection.cursor() as cursor:
            self._check_in_place()
            cursor.begin()
            try:
                yield cursor
                act = ACT.get()
                if act is not None and not act.recorded and act.call not in PASSING:
                    record_audit(cursor, act.call, **act.about())
                count = cursor.execute(
                    "UPDATE store_state SET commits = commits + 1 RETURNING store_id, commits"
                ).fetchone()
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
            if count is not None:
                _note_commits(self.path, *count)

    def _check_in_place(self) -> None:
        """Refuse to write to a file that was replaced or removed since it was opened."""
        if self._file not in {None, _identity(self.path)}:
            raise StoreError(
                f"{self.path}: the file was replaced, moved or removed while this process had it "
                "open; nothing was stored. Put it back, or stop this process and start it again"
            )

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

    def copy_to(self, path: Path, *, secrets: bool = False) -> None:
        """Copy every table to a new file, as of one moment; the secret ones only if asked."""
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
                left_out = frozenset[str]() if secrets else SECRET
                for table in sorted({row[0] for row in found} - left_out):
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


def commits_path(store: Path) -> Path:
    """Return the file that holds the number of the last change of a store."""
    return store.with_suffix(".commits")


def _note_commits(store: Path, store_id: object, commits: int) -> None:
    """Write down the number of the last change; a label is kept even if that fails."""
    with suppress(OSError):
        # One write of a fixed length, never an empty file: the process may end at any moment.
        handle = os.open(commits_path(store), os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.write(handle, f"{store_id} {commits:020d}\n".encode("ascii"))
        finally:
            os.close(handle)


def missing_commits(path: Path, cursor: Cursor) -> int:
    """Return how many acknowledged changes a store lacks, as far as the file beside it says."""
    # The file first: another thread may commit between the two, and nothing is missing then.
    try:
        noted, number = commits_path(path).read_text(encoding="ascii").split()
        last = int(number)
    except (OSError, ValueError):
        return 0
    (store_id, commits) = cursor.execute("SELECT * FROM store_state").fetchone() or (None, 0)
    return max(0, last - commits) if noted == str(store_id) else 0


def _check_complete(path: Path, cursor: Cursor) -> None:
    """Refuse a store that lacks changes which were acknowledged."""
    if missing := missing_commits(path, cursor):
        raise StoreError(
            f"{path}: the last {missing:,} changes are missing: its log {path.name}.wal was "
            "removed, or the file is an older copy. Put the log back, or `asr restore BACKUP "
            f"--store {path} --replace`; `asr doctor --store {path} --repair` goes on without them"
        )


def _identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file; None if it is gone."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _make_directory(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be created ({error.strerror})") from error


def _close(connection: Cursor, patience_s: float = 10.0) -> None:
    """Close a connection; DuckDB refuses while a cursor is at work, so wait for it."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        with suppress(duckdb.ResourceInUseException):
            connection.close()
            return
        time.sleep(0.02)
    connection.close()


def connect(path: Path, *, read_only: bool = False) -> Cursor:
    """Connect to a file; `StoreLockedError` if another process has it."""
    try:
        # Absolute: a name like ":memory:" or "md:team" is not a file to DuckDB.
        connection = duckdb.connect(str(path.absolute()), read_only=read_only, config=CONFIG)
    except duckdb.IOException as error:
        if any(sign in str(error) for sign in _LOCKED):
            holder = re.search(r"PID (\d+)", str(error))
            who = f" (process {holder[1]})" if holder else ""
            raise StoreLockedError(
                f"{path}: another process{who} has the store open, probably the app; stop it first"
            ) from error
        mend = _mend(path) if _is_damage(error) else ""
        raise StoreError(
            f"{path}: cannot be opened as a store ({_first_line(error)}){mend}"
        ) from error
    except duckdb.Error as error:
        mend = _mend(path) if _is_damage(error) else ""
        raise StoreError(
            f"{path}: cannot be opened as a store ({_first_line(error)}){mend}"
        ) from error
    # DuckDB opens CSV, JSON and Parquet files too, as views in memory that end with it.
    in_files = connection.execute("SELECT path FROM duckdb_databases() WHERE NOT internal")
    if in_files.fetchall() == [(None,)]:
        connection.close()
        raise StoreError(f"{path}: cannot be opened as a store (it is a file of data)")
    return connection


# Messages of DuckDB on a file that was cut or of which a block was changed.
_DAMAGE = ("Corrupt database file", "Could not read enough bytes", "Serialization Error")


def _is_damage(error: Exception) -> bool:
    return any(sign in str(error) for sign in _DAMAGE)


def _mend(path: Path) -> str:
    return (
        f": the file is damaged; `asr doctor --store {path}` says how far, `asr restore BACKUP "
        f"--store {path} --replace` puts a backup in its place"
    )


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
    _check_token(token)
    # The sender of another event's token must not see its class or take its receipt.
    found = rows(cursor, f"SELECT * FROM {table} WHERE client_token = ?", [token])
    if found and any(found[0][name] != value for name, value in meant.items()):
        raise token_refused(token)
    act = ACT.get()
    if found and act is not None:
        act.recorded = True  # sent again: nothing changes
    return found[0] if found else None


def _check_token(token: str) -> None:
    """Require a token that a page may choose: short, and of no label that may be imported."""
    storable = token.encode(errors="replace").decode() == token
    if not (0 < len(token) <= MAX_TOKEN and storable) or token.startswith(IMPORTED):
        raise LabelRefusedError(f"{token!r:.80} is no token of a page")


def token_refused(token: str) -> LabelRefusedError:
    """Return the error for a token of another event."""
    return LabelRefusedError(f"the token {token!r:.80} already belongs to another request")


def insert_table(cursor: Cursor, name: str, table: pa.Table) -> None:
    """Append the rows of an Arrow table to a table of the store, column by name."""
    # DuckDB holds what is registered until the transaction ends: of a reader nothing is left then.
    reader = pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches()))
    cursor.register("incoming", reader)
    cursor.execute(f"INSERT INTO {name} BY NAME SELECT * FROM incoming")
    cursor.unregister("incoming")


def record_audit(cursor: Cursor, what: str, **detail: object) -> None:
    """Record who did what and from where; without this `Database.write` records the call."""
    act = ACT.get()
    actor, origin = (None, None) if act is None else (act.actor, act.origin)
    if act is not None:
        act.recorded = True
    cursor.execute(
        "INSERT INTO audit (what, detail, created_at, actor, origin) VALUES (?, ?, ?, ?, ?)",
        [what, json.dumps(detail, default=str), utc_now(), actor, origin],
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
