"""The folder of a run of a judge: a journal that survives a kill at any moment, and small files.

A line of the journal is on the disk before what it announces happens: ``sent`` before the socket,
``answered`` before the answer is read. What was paid for is therefore never asked for again.
"""

import asyncio
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from calibration.errors import CalibrationError, InputError
from calibration.files import read_text
from calibration.judging.requests import Reply

ORDERS = ("pause", "resume", "stop")
DEAD_AFTER_S = 30.0

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MOST_BYTES = 50_000_000  # of a small file
_LINES = ("sent", "answered", "failed", "in_doubt", "control")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a journal holds an answer: only the asked ones are read back into memory."""

    path: Path
    offset: int
    length: int


@dataclass(slots=True)
class Replay:
    """What journals say: the state of each request key, and what was spent.

    `spent` is in the unit of the run's cap. `lines` are the answers without their bodies: figures
    are learned from them.
    """

    answers: dict[str, _Place] = field(default_factory=dict)
    doubts: dict[str, int] = field(default_factory=dict)
    open: dict[str, dict[str, Any]] = field(default_factory=dict)
    lines: list[dict[str, Any]] = field(default_factory=list)
    spent: int = 0

    def take(self, line: dict[str, Any], place: _Place | None) -> None:
        """Add one line."""
        key = line.get("key", "")
        if line["line"] == "sent":
            self.open[key] = line
        elif line["line"] != "control":
            sent = self.open.pop(key, {})
            self.spent += line["spent"]
            if line["line"] == "in_doubt":
                self.doubts[key] = self.doubts.get(key, 0) + 1
            if line["line"] == "answered":
                if place is not None:
                    self.answers[key] = place
                self.lines.append({**sent, **{k: v for k, v in line.items() if k != "body"}})

    def reply(self, key: str) -> Reply | None:
        """Return the journaled answer to a request, None if there is none."""
        place = self.answers.get(key)
        if place is None:
            return None
        with place.path.open("rb") as file:
            file.seek(place.offset)
            line = json.loads(file.read(place.length))
        return reply_of(line)


def reply_of(line: Mapping[str, Any]) -> Reply:
    """Return the answer that a line of the journal holds.

    Examples
    --------
    >>> reply_of({"key": "k", "status": 200, "headers": {}, "body": "{}", "latency_s": 1.5}).body
    '{}'
    """
    return Reply(
        key=line["key"],
        status=line["status"],
        headers=line["headers"],
        body=line["body"],
        latency_s=line["latency_s"],
        cost_usd=line.get("cost_usd"),
    )


class Journal:
    """Lines that are on the disk when `append` returns; many that come at once share one fsync."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.replay = Replay()
        _cut_torn_line(path)
        for line, place in _read(path):
            self.replay.take(line, place)
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._file: IO[bytes] = os.fdopen(number, "ab", buffering=0)
        self._end = os.fstat(number).st_size
        self._waiting: list[bytes] = []
        self._taken = self._written = 0
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "journal")
        self._doubt_what_was_open()

    def _doubt_what_was_open(self) -> None:
        """Count requests that were in flight at the end of the last process at their worst case."""
        for key, sent in list(self.replay.open.items()):
            line = in_doubt(key, spent=sent["reserved"], problem="the process ended in flight")
            self._write([self._encoded(line)])

    async def append(self, line: dict[str, Any]) -> None:
        """Write a line and return when it is on the disk; CalibrationError if it cannot be."""
        self._waiting.append(self._encoded(line))
        self._taken += 1
        mine = self._taken
        async with self._turn:
            if self._written >= mine:
                return
            batch, self._waiting = self._waiting, []
            # One thread: a batch whose caller was cancelled is still written before the next.
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._thread, self._write, batch)
            self._written += len(batch)

    def _encoded(self, line: dict[str, Any]) -> bytes:
        """Return the bytes of a line, and take what it says."""
        data = json.dumps({**line, "at": round(time.time(), 3)}).encode() + b"\n"
        self.replay.take(line, _Place(self.path, self._end, len(data)))
        self._end += len(data)
        return data

    def _write(self, batch: list[bytes]) -> None:
        data = b"".join(batch)
        try:
            while data:
                data = data[self._file.write(data) :]
            os.fsync(self._file.fileno())
        except (OSError, ValueError) as error:
            # Nothing may follow a torn line: the next process cuts it off.
            self._file.close()
            raise CalibrationError(
                f"{self.path}: the journal cannot be written ({error}); what was answered "
                "until now is kept, start the run again when there is room"
            ) from error

    def close(self) -> None:
        """Close the file when everything is written."""
        self._thread.shutdown()
        # Of callers that were cancelled before their turn.
        if self._waiting and not self._file.closed:
            self._write(self._waiting)
        self._file.close()


def in_doubt(key: str, *, spent: int, problem: str) -> dict[str, Any]:
    """Return the line of a request of which nobody knows whether it was answered.

    Examples
    --------
    >>> in_doubt("k", spent=7, problem="no answer in 120 s")["spent"]
    7
    """
    return {"line": "in_doubt", "key": key, "spent": spent, "problem": problem}


def _cut_torn_line(path: Path) -> None:
    """Cut off what stands after the last line break: its fsync never returned."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        start = end
        while start:
            step = min(start, 1 << 16)
            file.seek(start - step)
            found = file.read(step).rfind(b"\n")
            if found >= 0:
                start += found + 1 - step
                break
            start -= step
        if start < end:
            file.truncate(start)
            os.fsync(file.fileno())


def _read(path: Path) -> Iterator[tuple[dict[str, Any], _Place]]:
    """Yield the whole lines of a journal; one that is still being written is left out."""
    if not path.exists():
        return
    offset = 0
    with path.open("rb") as file:
        for number, data in enumerate(file, 1):
            if not data.endswith(b"\n"):
                return
            try:
                line = json.loads(data)
                known = line["line"] in _LINES
            except (ValueError, KeyError, TypeError):
                known = False
            if not known:
                raise InputError(
                    f"{path}: line {number} is no line of a journal; restore the file from a copy"
                )
            yield line, _Place(path, offset, len(data))
            offset += len(data)


class RunFolder:
    """The files of one run under ``STORE.judge``; nobody but their owner may read them.

    Parameters
    ----------
    root
        The folder of all runs of a store.
    run
        The name of the run.

    Raises
    ------
    InputError
        If the name is not one to 64 letters, digits, dots, dashes or underscores.
    """

    def __init__(self, root: Path, run: str) -> None:
        if not _NAME.fullmatch(run):
            raise InputError(
                f"run {run!r:.80}: a name of a run has at most 64 letters, digits, '.', '-' and '_'"
            )
        self.root, self.run, self.path = root, run, root / run

    def plan(self) -> dict[str, Any]:
        """Return the frozen plan; raise InputError if there is no such run."""
        if not (self.path / "run.json").exists():
            raise InputError(f"there is no run {self.run!r} in {self.root}")
        return self._json("run.json")

    def begin(self, plan: Mapping[str, Any]) -> None:
        """Freeze the plan of a new run; of one that exists it must be the same.

        Its `judge_id` and `model` say from which other runs figures are learned.

        Raises
        ------
        InputError
            If the run was planned otherwise; the message names the first difference.
        """
        plan = json.loads(json.dumps(plan))
        for folder in (self.root, self.path):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        if not (self.path / "run.json").exists():
            self._replace("run.json", plan)
            return
        known = self._json("run.json")
        for name in sorted({*known, *plan}):
            if known.get(name) != plan.get(name):
                raise InputError(
                    f"run {self.run!r} was planned with another {name}; give the new run another "
                    "name: answers of the same judge are reused, and cost nothing"
                )

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run: a second worker is refused with CalibrationError. A kill frees it."""
        number = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                holder = os.read(number, 20).decode(errors="replace").strip()
                raise CalibrationError(
                    f"run {self.run!r} is under way in process {holder or 'unknown'}: "
                    "one worker a run"
                ) from error
            os.ftruncate(number, 0)
            os.pwrite(number, f"{os.getpid()}\n".encode(), 0)
            yield
        finally:
            os.close(number)

    def journal(self) -> Journal:
        """Open the journal, with the answers and doubts of the other runs beside its own.

        Keys hold the judge and not the run, so answers of another judge are never found.
        """
        journal = Journal(self.path / "journal.jsonl")
        for other in self.others():
            theirs = Replay()
            for line, place in _read(other / "journal.jsonl"):
                theirs.take(line, place)
            for key, place in theirs.answers.items():
                journal.replay.answers.setdefault(key, place)
            for key in (*theirs.doubts, *theirs.open):
                known = theirs.doubts.get(key, 0) + (key in theirs.open)
                journal.replay.doubts[key] = max(known, journal.replay.doubts.get(key, 0))
            journal.replay.lines[:0] = self._lessons(other, theirs.lines)
        return journal

    def _lessons(self, other: Path, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what another run teaches: tokens of the same model, calls of the same judge."""
        mine, theirs = self.plan(), RunFolder(self.root, other.name).plan()
        if mine.get("model") != theirs.get("model"):
            return []
        if mine.get("judge_id") == theirs.get("judge_id"):
            return lines
        return [{k: v for k, v in line.items() if k != "content"} for line in lines]

    def others(self) -> list[Path]:
        """Return the folders of the other runs, by name."""
        found = (path.parent for path in self.root.glob("*/journal.jsonl"))
        return sorted(p for p in found if p != self.path and (p / "run.json").exists())

    def order(self, what: str) -> None:
        """Tell the worker to pause, resume or stop; raises ValueError for anything else."""
        if what not in ORDERS:
            raise ValueError(f"order must be one of {', '.join(ORDERS)}, got {what!r}")
        self._replace("control", {"order": what, "at": time.time()})

    def take_order(self) -> str | None:
        """Return the order that was given since the last look, and remove it."""
        try:
            found = self._json("control").get("order")
            (self.path / "control").unlink()
        except (InputError, FileNotFoundError):
            return None
        return found if found in ORDERS else None

    def write_progress(self, progress: Mapping[str, Any]) -> None:
        """Replace the progress at once, with the time as heartbeat."""
        self._replace("progress.json", {**progress, "heartbeat": time.time()})

    def progress(self) -> dict[str, Any] | None:
        """Return the last progress with `alive`: False without a heartbeat for 30 seconds."""
        try:
            found = self._json("progress.json")
        except InputError:
            return None
        quiet = time.time() - float(found.get("heartbeat", 0.0))
        return {**found, "alive": not found.get("ended") and quiet < DEAD_AFTER_S}

    def _json(self, name: str) -> dict[str, Any]:
        text = read_text(self.path / name, most=_MOST_BYTES)
        try:
            found = json.loads(text)
        except ValueError as error:
            raise InputError(f"{self.path / name}: is not JSON ({error})") from error
        if not isinstance(found, dict):
            raise InputError(f"{self.path / name}: holds no object")
        return found

    def _replace(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a file that is seen whole or not at all."""
        part = self.path / f".{name}.{os.getpid()}"
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, sort_keys=True)
            file.flush()
            if name == "run.json":
                os.fsync(file.fileno())
        part.replace(self.path / name)
