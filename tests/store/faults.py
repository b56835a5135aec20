"""What becomes of acknowledged work under faults: `make faults` prints every cell.

An operation runs in a process of its own and prints what it was told is stored. The fault strikes,
then the store is opened as anybody would, and what is there is compared with what was stored before
and what was acknowledged. A cell is ``kept`` (all of it is there), ``named`` (opening says what is
missing or damaged, and how it is mended), ``refused`` (nothing was begun) or ``LOST`` (something is
missing and nobody says so).
"""

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from calibration.errors import CalibrationError, StoreLockedError
from calibration.records import LabelDraft, Verdict
from calibration.store import RemoteStore, Store
from calibration.store.backup import restore_backup, upgrade, verify_backup
from calibration.store.doctor import examine
from tests.store.builders import COMPLETE, make_desk, make_trace, token
from tests.store.stores_of_before import unpack

SEED, NAME, SERVE, BEGUN = 20400, "store.duckdb", "serve", "begun"
N = 12


def said(what: str) -> None:
    """Print what was acknowledged, at once: the process may end at any moment."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def label(path: Path, batch: str) -> None:
    with Store.open(path) as store:
        while items := store.queue("ann", batch, limit=1).items:
            draft = {"client_token": token(), "batch_id": batch, "answers": COMPLETE}
            store.record_label(
                LabelDraft(trace_id=items[0].trace_id, reviewer_id="ann", **draft)  # type: ignore[arg-type]
            )
            said(f"label ann {items[0].trace_id}")


def bring_in(path: Path, _batch: str) -> None:
    with Store.open(path) as store:
        for number in range(1_000, 1_000 + N):
            (trace_id,) = store.ingest([make_trace(number)]).imported
            said(f"trace {trace_id}")


def hand_over(path: Path, _batch: str) -> None:
    """Bring traces in beside a server that has the store (`serve`)."""
    locked = StoreLockedError(f"{path}: another process has the store open")
    with RemoteStore(path, locked, waiting=lambda _: None) as store:
        for number in range(1_000, 1_003):
            trace = make_trace(number)
            verdict = Verdict(judge_id="source:x", trace_id=trace.trace_id, outcome="complete")
            store.ingest([trace], grades=[verdict])
            said(f"trace {trace.trace_id}")
            said(f"verdict source:x {trace.trace_id}")


def serve(path: Path, _batch: str) -> None:
    """Have the store, and carry out what others hand over."""
    with Store.open(path) as store:
        keeper = store.keeper()
        keeper.round()
        keeper.start()
        said("ready")
        keeper.join()


def adjudicate(path: Path, batch: str) -> None:
    with Store.open(path) as store:
        for trace_id in store.batch_items(batch)["trace_id"]:
            store.adjudicate(trace_id=trace_id, answers=COMPLETE, adjudicator="lea",
                             client_token=f"settles {trace_id}")  # fmt: skip
            said(f"consensus {trace_id}")


def back_up(path: Path, _batch: str) -> None:
    with Store.open(path) as store:
        for _ in range(3):
            said(f"backup {store.write_backup(path.parent / 'backups').folder}")


def upgraded(path: Path, _batch: str) -> None:
    said(BEGUN)
    said(f"upgrade {upgrade(path)[1]}")


def restored(path: Path, _batch: str) -> None:
    (backup,) = (path.parent / "kept").iterdir()
    said(BEGUN)
    restore_backup(backup, path, replace=True)
    said("restore")


OPERATIONS: dict[str, Callable[[Path, str], None]] = {
    "import": bring_in, "label": label, "adjudicate": adjudicate, "hand-over": hand_over,
    "backup": back_up, "upgrade": upgraded, "restore": restored,
}  # fmt: skip


def prepared(folder: Path, operation: str) -> tuple[Path, str]:
    """Make the store of an operation; return it and its batch."""
    if operation == "upgrade":
        return unpack("schema-1", folder), "production-001"
    desk = make_desk(folder / NAME, N, labels_wanted=2)
    desk.store.add_reviewer("Lea", role="lead")
    # Work of yesterday: no fault of today may take it.
    for item in desk.store.queue("bob", desk.batch, limit=3).items:
        draft = {
            "client_token": f"bob {item.trace_id}",
            "batch_id": desk.batch,
            "answers": COMPLETE,
        }
        desk.store.record_label(
            LabelDraft(trace_id=item.trace_id, reviewer_id="bob", **draft)  # type: ignore[arg-type]
        )
    if operation == "restore":
        desk.store.write_backup(folder / "kept")
    desk.store.close()
    return folder / NAME, desk.batch


def run_here(operation: str, path: Path, batch: str, fault: str) -> None:
    """Carry an operation out in this process, with the faults that strike from within."""
    if fault == "full disk":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        sizes = [p.stat().st_size for p in path.parent.rglob("*") if p.is_file()]
        most = max(sizes) // 2 if operation in ("backup", "upgrade", "restore") else 3_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    elif fault == "read-only":
        for place in [path.parent, *path.parent.rglob("*")]:
            place.chmod(0o555 if place.is_dir() else 0o444)
        if os.getuid() == 0:
            os.setuid(65534)
    elif fault == "clock back":
        from calibration.store import adjudication, labels, traces

        def earlier() -> datetime:
            return datetime(2020, 1, 1, tzinfo=UTC).replace(tzinfo=None) - timedelta(
                seconds=next(_ticks)
            )

        for module in (adjudication, labels, traces):
            module.utc_now = earlier  # type: ignore[attr-defined]
    (serve if operation == SERVE else OPERATIONS[operation])(path, batch)


_ticks = iter(range(10**6))


@dataclass(frozen=True)
class Cell:
    """What a fault did to an operation."""

    fault: str
    operation: str
    outcome: str
    acknowledged: int
    there: int
    says: str


def strike(fault: str, operation: str, folder: Path, rng: random.Random) -> Cell:
    """Run an operation under a fault, and look at what is there."""
    path, batch = prepared(folder, operation)
    before = _stored(path)
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o777 if place.is_dir() else 0o666)
    holder = _holder(path, batch, fault, operation)
    process = _started(operation, path, batch, fault)
    struck = process if holder is None else holder
    if fault in ("kill", "removed log"):
        _wait_for_lines(process, {"upgrade": 1, "restore": 1, "hand-over": 2}.get(operation, 3))
        time.sleep(rng.random() * (0.3 if operation in ("upgrade", "restore") else 0.05))
        struck.kill()
    elif fault == "replaced store":
        _wait_for_lines(process, 1 if operation in ("upgrade", "restore") else 2)
        shutil.copy(path, folder / "other")
        os.replace(folder / "other", path)
    printed, error = process.communicate(timeout=120)
    if holder is not None:
        holder.kill()
        holder.communicate()
    lines = [*_read.pop(process.pid, []), *printed.splitlines()]
    lines = [line for line in lines if line != BEGUN]
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o700 if place.is_dir() else 0o600)
    _harm(fault, path, rng)
    missing, says = _missing(path, before, lines)
    refused = error.strip().splitlines()[-1] if error.strip() else ""
    outcome = "LOST" if missing else "kept" if lines or not refused else "refused"
    if says:
        outcome = "named" if "asr restore" in says else "LOST"
    return Cell(fault, operation, outcome, len(lines), len(lines) - len(missing), says or refused)


def _started(operation: str, path: Path, batch: str, fault: str) -> "subprocess.Popen[str]":
    words = [sys.executable, "-m", "tests.store.faults", operation, str(path), batch, fault]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _holder(path: Path, batch: str, fault: str, operation: str) -> "subprocess.Popen[str] | None":
    """Start the server of a hand-over, or another process that has the store; both for two."""
    if fault == "two servers":
        script = (
            "import sys, duckdb; c = duckdb.connect(sys.argv[1]); "
            "print('held', flush=True); sys.stdin.read()"
        )
        holder = subprocess.Popen(
            [sys.executable, "-c", script, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    elif operation == "hand-over":
        holder = _started(SERVE, path, batch, fault)
    else:
        return None
    assert holder.stdout is not None
    holder.stdout.readline()
    return holder


_read: dict[int, list[str]] = {}


def _wait_for_lines(process: "subprocess.Popen[str]", n: int) -> None:
    """Read the first lines that a process prints; they are kept for the comparison."""
    assert process.stdout is not None
    found = _read.setdefault(process.pid, [])
    for _ in range(n):
        line = process.stdout.readline()
        if not line:
            return
        found.append(line.strip())


def _harm(fault: str, path: Path, rng: random.Random) -> None:
    """Damage a closed store."""
    log = path.with_name(path.name + ".wal")
    if fault == "removed log":
        log.unlink(missing_ok=True)
    elif fault in ("cut file", "flipped bit"):
        content = path.read_bytes()
        if fault == "cut file":
            path.write_bytes(content[: len(content) * 2 // 3])
        else:
            # A block that is used: a bit in a free one harms nobody.
            with contextlib.suppress(duckdb.Error), duckdb.connect(str(path)) as connection:
                connection.execute("CHECKPOINT")
            content = path.read_bytes()
            at = rng.randrange(3 * 4096, len(content))
            flipped = bytes([content[at] ^ 1 << rng.randrange(8)])
            path.write_bytes(content[:at] + flipped + content[at + 1 :])


def _stored(path: Path) -> set[str]:
    """Return what lies in a closed store, of any schema, as operations acknowledge it."""
    of_table = {
        "label_event": "'label ' || reviewer_id || ' ' || trace_id",
        "trace": "'trace ' || trace_id",
        "consensus": "'consensus ' || trace_id",
        "verdict": "'verdict ' || judge_id || ' ' || trace_id",
    }
    with duckdb.connect(str(path), read_only=True) as connection:
        query = " UNION ".join(f"SELECT {row} FROM {table}" for table, row in of_table.items())
        return {line for (line,) in connection.execute(query).fetchall()}


def _missing(path: Path, before: set[str], lines: list[str]) -> tuple[list[str], str]:
    """Return what was stored or acknowledged and is not there, and what opening the store says."""
    try:
        with Store.open(path) as store:
            store.for_review(store.trace_frame()["trace_id"].tolist())
    except CalibrationError as error:
        if "asr upgrade" not in str(error):
            return [], str(error)
    wrong = [one for one in examine(path).findings if one.status == "problem"]
    if wrong and not any(one.check == "schema" for one in wrong):
        return [], "; ".join(f"{one.found}: {one.mend}" for one in wrong)
    there = _stored(path)
    missing = sorted(before - there)
    for line in lines:
        what, _, which = line.partition(" ")
        if what == "backup":
            try:
                verify_backup(Path(which))
            except CalibrationError:
                missing.append(line)
        elif what not in ("upgrade", "restore") and line not in there:
            missing.append(line)
    return missing, ""


FAULTS = (
    "none", "kill", "full disk", "read-only", "cut file", "flipped bit", "removed log",
    "clock back", "replaced store", "two servers",
)  # fmt: skip


def matrix(repetitions: int) -> list[Cell]:
    """Strike every operation with every fault."""
    cells = []
    for fault in FAULTS:
        for operation in OPERATIONS:
            for k in range(repetitions):
                rng = random.Random(f"{SEED} {fault} {operation} {k}")
                with TemporaryDirectory() as folder:
                    cells.append(strike(fault, operation, Path(folder), rng))
    return cells


def main() -> None:
    """Print the matrix; exit 1 if anything was lost without a word."""
    if len(sys.argv) == 5:
        operation, path, batch, fault = sys.argv[1:]
        try:
            run_here(operation, Path(path), batch, fault)
        except CalibrationError as error:
            sys.exit(f"error: {error}")
        return
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    cells = matrix(repetitions)
    lines = [
        f"Seed {SEED}, {repetitions} of each: what was acknowledged, and how much of it is there.",
        "",
        "| fault | " + " | ".join(OPERATIONS) + " |",
        "|---" * (1 + len(OPERATIONS)) + "|",
    ]
    for fault in FAULTS:
        row = []
        for operation in OPERATIONS:
            own = [c for c in cells if (c.fault, c.operation) == (fault, operation)]
            outcomes = ", ".join(sorted({c.outcome for c in own}))
            known = [c for c in own if c.outcome in ("kept", "LOST")]
            of = sum(c.acknowledged for c in known)
            row.append(outcomes + (f" {sum(c.there for c in known)}/{of}" if of else ""))
        lines.append(f"| {fault} | " + " | ".join(row) + " |")
    sys.stdout.write("\n".join(lines) + "\n")
    for cell in cells:
        if cell.says:
            sys.stderr.write(f"{cell.fault}, {cell.operation}: {cell.outcome}: {cell.says}\n")
    if any(cell.outcome == "LOST" for cell in cells):
        sys.exit(1)


if __name__ == "__main__":
    main()
