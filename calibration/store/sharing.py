"""Sharing one store between processes: hand-over of writes, inbox, snapshot.

A request is one Parquet file in ``STORE.inbox/``: a row each for what there may be many of,
the call and its other arguments in the metadata, and the SHA-256 of the content in the name.
Whoever holds the store takes requests in, oldest first, and answers each in a file beside it.
Every call is idempotent, so a request that is taken in twice is stored once.

DuckDB lets no other process open a file that one writes. The text of the traces lies in
Parquet parts that everybody can read; the other tables are small and are copied beside the
store, under a temporary name and then in one rename.
"""

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, get_type_hints

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from cattrs.errors import BaseValidationError
from cattrs.preconf.json import make_converter

from calibration import errors
from calibration.errors import CalibrationError, StoreError, StoreLockedError
from calibration.store.database import CONFIG, Database
from calibration.store.permissions import StorePart

# A server looks into its inbox every second; one that was silent for this long is gone.
SILENT = 15.0

YIELDING = 19

REPLY, REQUEST, SERVER = ".reply.json", ".parquet", "server"


EVERY, SNAPSHOT_EVERY = 1.0, 5.0


# The calls of the store that may be handed over. Of a passphrase only the hash is written down,
# of traces only the index: their text lies in the parts already.
HANDED_OVER = (
    "set_taxonomy", "set_workflow", "add_reviewer", "store_hash", "set_identities", "set_role",
    "ingest_written", "add_batch", "import_labels", "set_certificate_demand", "add_verdicts",
)  # fmt: skip

_convert = make_converter()
# Calls without an answer are handed over too, and cattrs refuses to read None back as None.
_convert.register_structure_hook(type(None), lambda answer, _: answer)

log = logging.getLogger(__name__)


def inbox(store: Path) -> Path:
    """Return the folder in which requests to the holder of a store are left."""
    return store.with_suffix(".inbox")


def beat(store: Path) -> None:
    """Show that this process takes requests in."""
    folder = inbox(store)
    folder.mkdir(exist_ok=True)
    (folder / SERVER).write_text(str(os.getpid()), encoding="utf-8")


def is_attended(store: Path) -> bool:
    """Return whether a process takes requests of this store in."""
    try:
        return time.time() - (inbox(store) / SERVER).stat().st_mtime < SILENT
    except OSError:
        return False


def make_way(store: Path) -> None:
    """Let the app of a store go first while this process works for it.

    An import keeps one core busy for as long as it reads; reviewers must not feel it.
    """
    if is_attended(store) and hasattr(os, "nice"):
        holder = (inbox(store) / SERVER).read_text(encoding="utf-8").strip()
        if holder != str(os.getpid()):
            os.nice(YIELDING)
            pa.set_cpu_count(1)  # Parquet is otherwise compressed on every core


def hand_over(
    store: Path,
    call: Callable[..., Any],
    arguments: dict[str, Any],
    *,
    waiting: Callable[[float], None],
) -> Any:
    """Leave a request for a call of the store, wait until it is taken in, and return its result.

    `waiting` is called about once a second with the seconds that have passed.

    Raises
    ------
    StoreLockedError
        If whoever holds the store stops taking requests in; the request stays and is taken
        in when the app runs again.
    CalibrationError
        What the holder of the store raised.
    """
    path = _write_request(store, call.__name__, arguments)
    reply = path.with_name(path.name + REPLY)
    started, told = time.monotonic(), 0.0
    while not reply.exists():
        passed = time.monotonic() - started
        if not is_attended(store):
            raise StoreLockedError(
                f"{store}: another process holds the store and does not answer; what you asked "
                f"for lies in {path} and is taken in when the app runs again"
            )
        if passed - told >= 1:
            told = passed
            waiting(passed)
        time.sleep(0.05)
    answer = json.loads(reply.read_text(encoding="utf-8"))
    reply.unlink()
    if "error" in answer:
        kind = getattr(errors, answer["error"], StoreError)
        raise kind(answer["message"])
    return _convert.structure(answer["result"], get_type_hints(call)["return"])


def _write_request(store: Path, call: str, arguments: dict[str, Any]) -> Path:
    plain = _convert.unstructure(arguments)
    rows = next((name for name, value in plain.items() if isinstance(value, list | tuple)), "")
    records = plain.pop(rows, [])
    table = pa.table({"record": pa.array([json.dumps(r) for r in records], pa.string())})
    said = {"call": call, "rows": rows, "arguments": json.dumps(plain)}
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(said), sink, compression="zstd")
    content = sink.getvalue().to_pybytes()
    folder = inbox(store)
    folder.mkdir(exist_ok=True)
    # Names sort by time, so that a workflow is set before the traces that name it.
    name = f"{time.time_ns():020d}-{hashlib.sha256(content).hexdigest()}{REQUEST}"
    _put(folder / name, content)
    return folder / name


def _read_request(path: Path, store: StorePart) -> tuple[str, dict[str, Any]]:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() not in path.name:
        raise StoreError(f"{path}: is damaged (its checksum is another); run the command again")
    try:
        table = pq.read_table(pa.BufferReader(content))
        said = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
        call = said["call"]
        if call not in HANDED_OVER:
            raise KeyError(call)
        arguments = json.loads(said["arguments"])
        if said["rows"]:
            arguments[said["rows"]] = [json.loads(r) for r in table["record"].to_pylist()]
        types = get_type_hints(getattr(store, call))
        return call, {n: _convert.structure(value, types[n]) for n, value in arguments.items()}
    except (pa.ArrowException, BaseValidationError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path}: is no request of this version ({error!r:.200})") from error


def _put(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees a part of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())
    temporary.replace(path)


def snapshot_path(store: Path) -> Path:
    """Return where the snapshot of a store lies."""
    return store.with_suffix(".snapshot.duckdb")


def publish(db: Database) -> Path:
    """Copy the tables of a store as they are now and put the copy in place."""
    target = snapshot_path(db.path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    db.copy_to(temporary)
    with temporary.open("rb") as handle:
        os.fsync(handle.fileno())
    temporary.replace(target)
    return target


def age(store: Path) -> float:
    """Return the seconds since the snapshot of a store was written."""
    return max(0.0, time.time() - snapshot_path(store).stat().st_mtime)


def open_snapshot(store: Path, locked: StoreLockedError) -> Database:
    """Open the snapshot of a store that another process holds, to read.

    Raises
    ------
    StoreLockedError
        `locked`, if there is no snapshot.
    StoreError
        If the snapshot cannot be read.
    """
    path = snapshot_path(store)
    if not path.exists():
        raise locked
    try:
        connection = duckdb.connect(str(path.absolute()), read_only=True, config=CONFIG)
    except duckdb.Error as error:
        raise StoreError(
            f"{path}: the snapshot cannot be opened; the app writes a new one after the next label"
        ) from error
    return Database.on_snapshot(store, connection)


class Keeper(threading.Thread):
    """Takes in what other processes hand over, and keeps a snapshot for them to read.

    A snapshot is written after changes, at most every five seconds, and at once after a
    request: whoever handed it over reads next.
    """

    def __init__(self, store: StorePart) -> None:
        super().__init__(name="store-keeper", daemon=True)
        self._store, self._db = store, store._db
        self._stopping = threading.Event()
        self._published, self._published_at = -1, -SNAPSHOT_EVERY

    def run(self) -> None:
        """Work until `stop`."""
        # On its own: an import may take longer than a command waits for a sign of life.
        threading.Thread(target=self._beat, name="store-heart", daemon=True).start()
        while not self._stopping.is_set():
            try:
                self.round()
            except Exception:
                # The keeper outlives a full disk: it tries again, and the log says why.
                log.exception("%s: snapshot or inbox failed", self._db.path)
            self._stopping.wait(EVERY)

    def round(self) -> None:
        """Show that requests are taken in, take them in, and write a snapshot if it is due."""
        beat(self._db.path)
        taken = self._take_in()
        due = time.monotonic() - self._published_at >= SNAPSHOT_EVERY
        if due and not taken and self._db.changes != self._published:
            self._publish()

    def stop(self) -> None:
        """Stop after the round that is under way, and leave a snapshot of the last state."""
        self._stopping.set()
        if self.is_alive():
            self.join()

    def _beat(self) -> None:
        while not self._stopping.is_set():
            with suppress(OSError):
                beat(self._db.path)
            self._stopping.wait(EVERY)

    def _publish(self) -> None:
        changes = self._db.changes
        publish(self._db)
        self._published, self._published_at = changes, time.monotonic()

    def _take_in(self) -> int:
        """Carry out every request that lies in the inbox, oldest first; return how many.

        A request that cannot be read is answered with why, like one that is refused; the file is
        put aside, never dropped.
        """
        folder = inbox(self._db.path)
        waiting = sorted(folder.glob(f"*{REQUEST}")) if folder.exists() else []
        for path in waiting:
            reply: dict[str, Any]
            try:
                call, arguments = _read_request(path, self._store)
                reply = {"result": _convert.unstructure(self._carry_out(call, arguments))}
                self._publish()
            except CalibrationError as error:
                reply = {"error": type(error).__name__, "message": str(error)}
            except Exception as error:
                # Whoever waits must hear of a fault of ours too, and the next request must come up.
                log.exception("%s: failed", path)
                reply = {"error": "StoreError", "message": f"the app failed on it: {error!r:.300}"}
            _put(path.with_name(path.name + REPLY), json.dumps(reply).encode())
            if "error" in reply:
                (folder / "refused").mkdir(exist_ok=True)
                path.replace(folder / "refused" / path.name)
            else:
                path.unlink()
        return len(waiting)

    def _carry_out(self, call: str, arguments: dict[str, Any]) -> Any:
        return getattr(self._store, call)(**arguments)
