"""The store as other modules use it, and as another process sees it.

DuckDB lets no other process open a file that one writes. The text of the traces lies in Parquet
parts that every process can read; the other tables are small and are copied beside the store, by
an atomic rename.

A write is handed over as one Parquet file in ``STORE.inbox/``: one row per record of a list, the
call and its other arguments in the metadata, the SHA-256 of the content in the name. The process
that holds the store carries requests out, oldest first, and answers each in a file beside it. Every
call is idempotent, so a repeated request is stored once.
"""

import functools
import hashlib
import inspect
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, get_type_hints
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from cattrs.errors import BaseValidationError
from cattrs.preconf.json import make_converter

from calibration import errors
from calibration.errors import CalibrationError, StoreError, StoreLockedError
from calibration.files import private_folder, put, put_in_place
from calibration.records import Trace
from calibration.store.adjudication import AdjudicationStore
from calibration.store.backup import Backup, write_backup
from calibration.store.certification import CertificationStore
from calibration.store.database import Database, connect
from calibration.store.files import sync_file
from calibration.store.judges import JudgeStore
from calibration.store.labels import LabelStore
from calibration.store.leases import LeaseStore
from calibration.store.people import ADMIN, PeopleStore, StorePart, open_to
from calibration.store.provider_links import ProviderStore
from calibration.store.queue import QueueStore
from calibration.store.sign_in import SignInStore
from calibration.store.trace_record import TraceRecordStore
from calibration.store.trace_search import TraceSearch
from calibration.store.traces import ImportResult, PreparedTraces, write_index
from calibration.taxonomy import Taxonomy, default_taxonomy

# A server checks its inbox every second; one silent for this long is gone.
SILENT = 15.0

# A command withdraws its request when it gives up. If the command itself was ended, the request is
# carried out only as long as nobody has decided otherwise since.
DEADLINE, REPLIES_KEPT = 600.0, 3_600.0

YIELDING = 19
REPLY, REQUEST, SERVER = ".reply.json", ".parquet", "server"
EVERY, SNAPSHOT_EVERY = 1.0, 5.0

# The calls of the store that may be handed over. Of a passphrase only the hash is written down,
# of traces only the index: their text lies in the parts already.
HANDED_OVER = (
    "set_taxonomy", "set_workflow", "add_reviewer", "store_hash", "set_identities", "set_role",
    "link", "unlink",
    "ingest_written", "add_batch", "rename_batch", "assign_batch", "import_labels",
    "set_certificate_demand", "add_verdicts", "write_backup", "add_judge", "use_judge", "add_look",
    "set_violation_marking", "import_consensus", "spend_labels",
)  # fmt: skip

_convert = make_converter()
# Calls without an answer are handed over too, and cattrs refuses to read None back as None.
_convert.register_structure_hook(type(None), lambda answer, _: answer)

log = logging.getLogger(__name__)


def inbox(store: Path) -> Path:
    """Return the folder for requests to the holder of a store."""
    return store.with_suffix(".inbox")


def beat(store: Path) -> None:
    """Show that this process answers requests."""
    folder = private_folder(inbox(store))
    (folder / SERVER).write_text(str(os.getpid()), encoding="utf-8")


def is_attended(store: Path) -> bool:
    """Return whether a process answers requests to this store."""
    try:
        return time.time() - (inbox(store) / SERVER).stat().st_mtime < SILENT
    except OSError:
        return False


def make_way(store: Path) -> None:
    """Lower the priority of this process while the app serves: an import must not slow it down."""
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
    origin: str | None,
    waiting: Callable[[float], None],
) -> Any:
    """Leave a request and return the result; `waiting` is told the seconds about once a second."""
    path = _write_request(store, call.__name__, arguments, origin)
    reply = path.with_name(path.name + REPLY)
    started, told = time.monotonic(), 0.0
    while not reply.exists():
        passed = time.monotonic() - started
        if not is_attended(store) and not reply.exists():
            path.unlink(missing_ok=True)
            raise StoreLockedError(
                f"{store}: another process has the store open, and it ended or was cut off "
                "before it "
                "answered. Run the command again: what was done already is not done twice"
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


def _write_request(
    store: Path, call: str, arguments: dict[str, Any], origin: str | None = None
) -> Path:
    plain = _convert.unstructure(arguments)
    lists = {n: plain.pop(n) for n, value in arguments.items() if isinstance(value, list | tuple)}
    table = pa.table(
        {
            "argument": pa.array([n for n, items in lists.items() for _ in items], pa.string()),
            "record": pa.array([json.dumps(r) for v in lists.values() for r in v], pa.string()),
        }
    )
    until = str(time.time() + DEADLINE)
    header = {"call": call, "lists": json.dumps(list(lists)), "arguments": json.dumps(plain)}
    header["until"] = until
    header |= {} if origin is None else {"origin": origin}
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(header), sink, compression="zstd")
    content = sink.getvalue().to_pybytes()
    folder = private_folder(inbox(store))
    # Names sort by time, so that a workflow is set before the traces that name it.
    name = f"{time.time_ns():020d}-{hashlib.sha256(content).hexdigest()}{REQUEST}"
    put(folder / name, content)
    return folder / name


def _read_request(path: Path, store: StorePart) -> tuple[str, dict[str, Any], str]:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() not in path.name:
        raise StoreError(f"{path}: is damaged (its checksum is another); run the command again")
    try:
        table = pq.read_table(pa.BufferReader(content))
        header = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
        call = header["call"]
        if call not in HANDED_OVER:
            raise KeyError(call)
        if float(header["until"]) < time.time():
            raise StoreError(f"{path}: was left too long ago to be carried out; run it again")
        arguments = json.loads(header["arguments"])
        arguments |= {name: [] for name in json.loads(header["lists"])}
        for row in table.to_pylist():
            arguments[row["argument"]].append(json.loads(row["record"]))
        types = get_type_hints(getattr(store, call))
        given = {n: _convert.structure(value, types[n]) for n, value in arguments.items()}
        return call, given, header.get("origin", "inbox")
    except (pa.ArrowException, BaseValidationError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path}: is not a request of this version ({error!r:.200})") from error


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # fetched at this moment
        return time.time()


def snapshot_path(store: Path) -> Path:
    """Return the path of the snapshot of a store."""
    return store.with_suffix(".snapshot.duckdb")


def publish(db: Database) -> Path:
    """Copy the tables of a store and put the copy in place."""
    target = snapshot_path(db.path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    db.copy_to(temporary)
    sync_file(temporary)
    put_in_place(temporary, target)
    return target


def age(store: Path) -> float:
    """Return the age of the snapshot of a store in seconds."""
    return max(0.0, time.time() - snapshot_path(store).stat().st_mtime)


def open_snapshot(store: Path, locked: StoreLockedError) -> Database:
    """Open the snapshot of a store that another process holds, for reading."""
    path = snapshot_path(store)
    if not path.exists():
        raise locked
    try:
        connection = connect(path, read_only=True)
    except StoreError as error:
        raise StoreError(
            f"{path}: the snapshot cannot be opened; the app writes a new one after the next label"
        ) from error
    return Database.on_snapshot(store, connection)


class Keeper(threading.Thread):
    """Carries out the requests of other processes, and keeps a snapshot for them to read."""

    def __init__(self, store: StorePart) -> None:
        # Snapshots: at once after a request (the command reads next), else 5 s apart or more.
        super().__init__(name="store-keeper", daemon=True)
        self._store, self._db = store, store._db
        self._stopping, self._publishing = threading.Event(), threading.Lock()
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
        """Show that requests are answered, answer them, and write a snapshot if it is due."""
        beat(self._db.path)
        taken = self.take_in()
        due = time.monotonic() - self._published_at >= SNAPSHOT_EVERY
        if due and not taken and self._db.changes != self._published:
            self.publish()

    def stop(self) -> None:
        """Stop after the current round, and leave a snapshot of the last state."""
        self._stopping.set()
        if self.is_alive():
            self.join()

    def _beat(self) -> None:
        while not self._stopping.is_set():
            with suppress(OSError):
                beat(self._db.path)
            self._stopping.wait(EVERY)

    def publish(self) -> None:
        """Write a snapshot now: for another process that is started to read what was changed."""
        with self._publishing:
            changes = self._db.changes
            publish(self._db)
            self._published, self._published_at = changes, time.monotonic()

    def take_in(self) -> int:
        """Carry out all requests, oldest first, and put unreadable ones aside; return how many."""
        folder = inbox(self._db.path)
        waiting = sorted(folder.glob(f"*{REQUEST}")) if folder.exists() else []
        for path in waiting:
            reply: dict[str, Any]
            try:
                call, arguments, origin = _read_request(path, self._store)
                result = self._carry_out(call, arguments, origin)
                reply = {"result": _convert.unstructure(result)}
                self.publish()
            except CalibrationError as error:
                reply = {"error": type(error).__name__, "message": str(error)}
            except Exception as error:
                # A bug must reach the waiting command too, and must not block the next request.
                log.exception("%s: failed", path)
                reply = {"error": "StoreError", "message": f"the app failed on it: {error!r:.300}"}
            if "error" in reply:
                path.replace(private_folder(folder / "refused") / path.name)
            put(path.with_name(path.name + REPLY), json.dumps(reply).encode())
            # Carried out once more, should this process end here: every call is idempotent.
            path.unlink(missing_ok=True)
        for reply_path in folder.glob(f"*{REPLY}"):
            # Nobody has fetched it: the command was ended.
            if _written(reply_path) + REPLIES_KEPT < time.time():
                reply_path.unlink(missing_ok=True)
        return len(waiting)

    def _carry_out(self, call: str, arguments: dict[str, Any], origin: str) -> Any:
        return getattr(self._store.by_way_of(origin), call)(**arguments)


class Store(
    AdjudicationStore,
    CertificationStore,
    JudgeStore,
    LabelStore,
    LeaseStore,
    PeopleStore,
    ProviderStore,
    QueueStore,
    SignInStore,
    TraceRecordStore,
    TraceSearch,
):
    """Traces, labels and verdicts of one team, in one DuckDB file.

    Methods may be called from any thread. Writes are idempotent. The process that opens the file
    may do everything; `acting_as` returns the store with the rights of one person.
    """

    @classmethod
    def open(
        cls, path: str | Path, *, create: bool = False, taxonomy: Taxonomy | None = None
    ) -> Self:
        """Open a store; `create` makes a missing one with `taxonomy` or the default one."""
        store = cls(Database(Path(path), create=create))
        try:
            # One is missing if creating the store was cut off.
            Keeper(store).take_in()
            if taxonomy is not None or store._frame("SELECT 1 FROM taxonomy LIMIT 1").empty:
                store.by_way_of("opening").set_taxonomy(taxonomy or default_taxonomy())
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open_to_read(cls, path: str | Path) -> "tuple[Store, float | None]":
        """Open a store for reading (age None), or its snapshot, with its age in seconds."""
        path = Path(path)
        try:
            return cls.open(path), None
        except StoreLockedError as locked:
            return cls(open_snapshot(path, locked)), age(path)
        except StoreError:
            # A backup on a disk that nobody may write to can still be read.
            if not path.is_file() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
                raise
            return cls(Database.on_snapshot(path, connect(path, read_only=True))), None

    @open_to(ADMIN)
    def write_backup(self, folder: Path, keep: int | None = None) -> Backup:
        """Write a backup into a new folder below `folder`; keep the newest `keep` of this store."""
        return write_backup(self._db, folder, keep=keep)

    def keeper(self) -> Keeper:
        """Return the thread that serves other processes while this one holds the store."""
        return Keeper(self)

    def close(self) -> None:
        """Release the file, so that another process can open it."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The DuckDB file."""
        return self._db.path


class RemoteStore(Store):
    """The store as a command sees it while the app holds the file.

    Reads go to the snapshot, which is read again after a write; the calls of `HANDED_OVER` go to
    the inbox of the app. Other writes are refused: only the Label page makes them.
    """

    def __init__(
        self, path: Path, locked: StoreLockedError, *, waiting: Callable[[float], None]
    ) -> None:
        if not is_attended(path):
            raise locked
        self._locked, self._waiting = locked, waiting
        super().__init__(open_snapshot(path, locked))

    def ingest(self, new: Iterable[Trace] | PreparedTraces, **options: Any) -> ImportResult[str]:
        """Write the text of traces here; the rest of the import is one request to the app."""
        return self.ingest_written(write_index(self.path, new), **options)

    def _hand_over(self, call: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        result = hand_over(self.path, call, arguments, origin=self._origin, waiting=self._waiting)
        path = self.path
        self._db.close()
        self._db = open_snapshot(path, self._locked)
        return result


def _handed_over(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call of the store that goes to the inbox."""
    signature = inspect.signature(call)

    @functools.wraps(call)
    def hand_over(self: RemoteStore, *args: Any, **kwargs: Any) -> Any:
        _, *given = signature.bind(self, *args, **kwargs).arguments.items()
        arguments = dict(given)
        if "token" in signature.parameters:
            # A request may be carried out twice.
            arguments.setdefault("token", str(uuid4()))
        return self._hand_over(call, arguments)

    return hand_over


for _call in HANDED_OVER:
    setattr(RemoteStore, _call, _handed_over(getattr(Store, _call)))
