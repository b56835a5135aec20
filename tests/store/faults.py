"""What becomes of acknowledged work under faults: `make faults` prints every cell.

An operation runs in a process of its own and prints what it was told is stored. The fault strikes,
then the store is opened as anybody would, and what is there is compared with what was said.
A cell is ``kept`` (all of it is there), ``named`` (opening says what is missing or damaged, and how
it is mended) or ``LOST`` (something is missing and nobody says so).
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

from calibration.errors import CalibrationError
from calibration.records import LabelDraft
from calibration.store import Store
from calibration.store.backup import restore_backup, upgrade, verify_backup
from calibration.store.doctor import examine
from tests.store.builders import COMPLETE, make_desk, make_trace, token
from tests.store.stores_of_before import rows_of, unpack

SEED, NAME = 20400, "store.duckdb"
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
            said(f"label {items[0].trace_id}")


def bring_in(path: Path, _batch: str) -> None:
    with Store.open(path) as store:
        for number in range(1_000, 1_000 + N):
            (trace_id,) = store.ingest([make_trace(number)]).imported
            said(f"trace {trace_id}")


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
    said(f"upgrade {upgrade(path)[1]}")


def restored(path: Path, _batch: str) -> None:
    (backup,) = (path.parent / "kept").iterdir()
    restore_backup(backup, path, replace=True)
    said("restore")


OPERATIONS: dict[str, Callable[[Path, str], None]] = {
    "import": bring_in, "label": label, "adjudicate": adjudicate, "backup": back_up,
    "upgrade": upgraded, "restore": restored,
}  # fmt: skip


def prepared(folder: Path, operation: str) -> tuple[Path, str]:
    """Make the store of an operation; return it and its batch."""
    if operation == "upgrade":
        return unpack("schema-1", folder), "production-001"
    desk = make_desk(folder / NAME, N)
    desk.store.add_reviewer("Lea", role="lead")
    if operation == "restore":
        desk.store.write_backup(folder / "kept")
    desk.store.close()
    return folder / NAME, desk.batch


def run_here(operation: str, path: Path, batch: str, fault: str) -> None:
    """Carry an operation out in this process, with the faults that strike from within."""
    if fault == "full disk":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        sizes = [p.stat().st_size for p in path.parent.rglob("*") if p.is_file()]
        most = 3_000 if operation in ("label", "adjudicate", "import") else max(sizes) // 2
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
    OPERATIONS[operation](path, batch)


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
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o777 if place.is_dir() else 0o666)
    words = [sys.executable, "-m", "tests.store.faults", operation, str(path), batch, fault]
    holder = None
    if fault == "two servers":
        holder = subprocess.Popen(
            [sys.executable, "-c", "import sys, duckdb; c = duckdb.connect(sys.argv[1]); "
             "print('held', flush=True); sys.stdin.read()", str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert holder.stdout is not None
        holder.stdout.readline()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if fault in ("kill", "removed log"):
        _wait_for_lines(process, rng.randrange(3) if operation in ("upgrade", "restore") else 3)
        time.sleep(rng.random() * 0.05)
        process.kill()
    elif fault == "replaced store":
        _wait_for_lines(process, 0 if operation in ("upgrade", "restore") else 2)
        shutil.copy(path, folder / "other")
        os.replace(folder / "other", path)
    printed, error = process.communicate(timeout=120)
    if holder is not None:
        holder.communicate("")
    lines = [*_read.pop(process.pid, []), *printed.splitlines()]
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o700 if place.is_dir() else 0o600)
    _harm(fault, path, rng)
    missing, says = _missing(path, batch, lines)
    refused = error.strip().splitlines()[-1] if error.strip() else ""
    outcome = "kept" if not missing else "LOST"
    if says:
        outcome = "named"
    elif not lines and refused:
        outcome = "refused"
    return Cell(fault, operation, outcome, len(lines), len(lines) - len(missing), says or refused)


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


def _missing(path: Path, batch: str, lines: list[str]) -> tuple[list[str], str]:
    """Return what was acknowledged and is not there, and what opening the store says."""
    try:
        with Store.open(path) as store:
            there = {f"label {t}" for t in store.label_frame(batch)["trace_id"]}
            there |= {f"trace {t}" for t in store.trace_frame()["trace_id"]}
            there |= {f"consensus {t}" for t in store.consensus_frame()["trace_id"]}
            store.for_review(store.trace_frame()["trace_id"].tolist())
    except CalibrationError as error:
        if "asr upgrade" not in str(error):
            return [], str(error)
        there = set()
    wrong = [one.found for one in examine(path).findings if one.status == "problem"]
    if wrong and not any("schema" in one for one in wrong):
        return [], "; ".join(wrong)
    missing = []
    for line in lines:
        what, _, which = line.partition(" ")
        if what == "backup":
            with contextlib.suppress(CalibrationError):
                verify_backup(Path(which))
                continue
        elif what in ("upgrade", "restore"):
            if rows_of(path):
                continue
        elif line in there:
            continue
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
            row.append(f"{outcomes} {sum(c.there for c in own)}/{sum(c.acknowledged for c in own)}")
        lines.append(f"| {fault} | " + " | ".join(row) + " |")
    sys.stdout.write("\n".join(lines) + "\n")
    for cell in cells:
        if cell.says:
            sys.stderr.write(f"{cell.fault}, {cell.operation}: {cell.outcome}: {cell.says}\n")
    if any(cell.outcome == "LOST" for cell in cells):
        sys.exit(1)


if __name__ == "__main__":
    main()
