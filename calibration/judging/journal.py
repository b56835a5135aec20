"""The journal of a run: what was sent and answered, on the disk before anything is made of it.

One folder a run, `STORE.judge/<run>/`:

* `run.json`: the frozen plan with its judge, prices, cap and estimate;
* `journal.jsonl`: one line an event, each synced: `sent` before the socket, `answered` before the
  answer is read, `failed`, `in_doubt` and `control`;
* `progress.json`, replaced each second; `control`, a word for the worker; `lock`.

A request with a journaled answer is never sent again, in this run or another one of the same
judge. A request that was in flight when the worker was killed is in doubt: it counts at its worst
case and is asked again once.
"""

import asyncio
import contextlib
import inspect
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self, TypeVar

from calibration.errors import InputError, JudgeRunError
from calibration.files import hold, private_folder, put, read_text
from calibration.judging.requests import Reply, Request

RUN_FILE = "run.json"
JOURNAL_FILE = "journal.jsonl"
PROGRESS_FILE = "progress.json"
CONTROL_FILE = "control"
LOCK_FILE = "lock"
CONTROLS = ("pause", "resume", "stop")
WORKING = ("running", "paused", "stopping")
DEAD_AFTER_S = 30.0  # without a heartbeat
MOST_IN_DOUBT = 2  # times that the endpoint may leave one request in doubt
MOST_FILE_BYTES = 10_000_000
MOST_ERROR_TEXT = 20_000  # characters of the body of an error
CUT_OFF = "cut off by the worker"  # no fault of the endpoint
T = TypeVar("T")

_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of one answer; `output` includes reasoning, `cached` and `written` are of the input.

    `written` are tokens that the provider stored for later requests, at a price of their own.
    """

    input: int
    output: int
    cached: int = 0
    written: int = 0

    @property
    def total(self) -> int:
        """Input and output."""
        return self.input + self.output


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """An attempt at a request: its size and what was reserved for it."""

    key: str
    trace_id: str
    sample: int
    attempt: int
    input_bytes: int
    input_characters: int
    output_limit: int
    reserved_tokens: int
    reserved_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an attempt has ended: `answered`, `failed` or `in_doubt`, and what it cost.

    `tokens` is None where nothing counted them. If the attempt is `possible` on the bill all the
    same, what was reserved counts as spent.
    """

    sent: Sent
    kind: str
    possible: bool = False
    tokens: Tokens | None = None
    cost_usd: float | None = None


def _ignore(_: Ended, __: bool) -> None:
    """Take no notice."""


class Answers:
    """The answers that the journals of a judge hold, over all its runs; for reading.

    Parameters
    ----------
    note : callable, optional
        Called with every attempt that has ended, and whether it was one of this run: first those
        of earlier workers and of other runs of the judge, then each new one.
    """

    def __init__(self, note: Callable[[Ended, bool], None] = _ignore) -> None:
        self._note = note
        self._answers: dict[str, tuple[Path, int]] = {}
        self._doubts: Counter[str] = Counter()
        self._open: dict[str, Sent] = {}

    def read_runs(self, runs: Path, judge_id: str, *, without: Path | None = None) -> None:
        """Read the journals of all runs of a judge but one; JudgeRunError if one is damaged."""
        for folder in sorted(runs.iterdir()) if runs.exists() else ():
            if folder != without and _judge_of(folder) == judge_id:
                self._replay(folder / JOURNAL_FILE, own=False)

    def _replay(self, path: Path, *, own: bool) -> int:
        """Read a journal and return where its last whole line ends."""
        whole, sent = 0, {}
        for start, end, data in _lines(path):
            whole = end
            try:
                if data["kind"] == "sent":
                    sent[data["key"]] = _record(Sent, data)
                elif data["kind"] != "control":
                    self._take(sent.pop(data["key"]), data, path, start, own=own)
            except (KeyError, TypeError) as error:
                raise _damaged(path, start) from error
        if own:
            self._open = sent
        return whole

    def _take(self, sent: Sent, data: Mapping[str, Any], path: Path, at: int, *, own: bool) -> None:
        """Take in the line that ends an attempt."""
        if data["kind"] == "answered":
            self._answers[sent.key] = (path, at)
        elif data["kind"] == "in_doubt" and data["cause"] != CUT_OFF:
            self._doubts[sent.key] += 1
        tokens = data.get("tokens")
        ended = Ended(
            sent=sent,
            kind=data["kind"],
            possible=data["possible"],
            tokens=None if tokens is None else Tokens(**tokens),
            cost_usd=data.get("cost_usd"),
        )
        self._note(ended, own)

    def answer(self, key: str) -> Reply | None:
        """Return the journaled answer to a request, of this run or another of the same judge."""
        if key not in self._answers:
            return None
        path, at = self._answers[key]
        with path.open("rb") as file:
            file.seek(at)
            return _record(Reply, json.loads(file.readline()))

    @property
    def answered(self) -> int:
        """How many requests have an answer."""
        return len(self._answers)


class Journal(Answers):
    """The journal of one run, held by its only worker as a context manager.

    Parameters
    ----------
    folder : Path
        The folder that `create_run` made.
    note : callable, optional
        As of `Answers`.

    Raises
    ------
    JudgeRunError
        If another worker holds the run or its judge, or a journal is damaged.
    """

    def __init__(self, folder: Path, note: Callable[[Ended, bool], None] = _ignore) -> None:
        super().__init__(note)
        self.folder = folder
        self.judge_id = str(read_plan(folder)["judge_id"])
        self._path = folder / JOURNAL_FILE
        self._waiting: list[tuple[bytes, asyncio.Future[int]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._locks: list[int] = []
        self._end = 0

    def __enter__(self) -> Self:
        try:
            self._locks.append(_lock(self.folder / LOCK_FILE, f"run {self.folder.name}"))
            of_judge = self.folder.parent / f".{self.judge_id}.lock"
            self._locks.append(_lock(of_judge, f"judge {self.judge_id}"))
            self.read_runs(self.folder.parent, self.judge_id, without=self.folder)
            self._end = self._replay(self._path, own=True)
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.ftruncate(self._file, self._end)
            os.lseek(self._file, self._end, os.SEEK_SET)
            self._locks.append(self._file)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        while self._locks:
            os.close(self._locks.pop())

    def may_ask(self, key: str) -> bool:
        """Return whether a request may be sent: once more after the endpoint left it in doubt."""
        return key not in self._answers and self._doubts[key] < MOST_IN_DOUBT

    async def mark_killed(self) -> int:
        """Note as in doubt what an earlier worker left in flight; return how many requests."""
        killed = list(self._open)
        for key in killed:
            await self.in_doubt(key, CUT_OFF)
        return len(killed)

    async def sent(self, request: Request, sent: Sent) -> None:
        """Note an attempt that is about to be made."""
        self._open[sent.key] = sent
        about = {"call": request.call, "reask": request.reask}
        await self._append({"kind": "sent", **asdict(sent), **about})

    async def answer_came(self, reply: Reply, tokens: Tokens | None) -> None:
        """Note an answer as it came; a refusal is free, an answer that counts nothing is not."""
        counted = None if tokens is None else asdict(tokens)
        paid = {"tokens": counted, "possible": reply.status < 300}
        await self._finish({"kind": "answered", **_reply_fields(reply), **paid})

    async def failed(self, reply: Reply, cause: str, *, possible: bool) -> None:
        """Note an error that is no answer; it is `possible` that it is on the bill."""
        about = {**_reply_fields(reply), "body": reply.body[:MOST_ERROR_TEXT]}
        await self._finish({"kind": "failed", **about, "cause": cause, "possible": possible})

    async def in_doubt(self, key: str, cause: str) -> None:
        """Note an attempt of which nobody knows whether it was answered."""
        await self._finish({"kind": "in_doubt", "key": key, "cause": cause, "possible": True})

    async def control(self, what: str, **about: object) -> None:
        """Note that the run started, was paused or resumed, or ended."""
        await self._append({"kind": "control", "what": what, **about})

    async def drain(self) -> None:
        """Wait until all lines are on the disk: before the journal is closed."""
        while self._writer is not None:
            await asyncio.shield(self._writer)

    async def _finish(self, data: dict[str, Any]) -> None:
        at = await self._append(data)
        self._take(self._open.pop(data["key"]), data, self._path, at, own=True)

    async def _append(self, data: dict[str, Any]) -> int:
        """Return the place of a line once it is on the disk; lines that wait share one sync."""
        data = {"at": round(time.time(), 3), **data}
        line = json.dumps(data, separators=(",", ":")).encode() + b"\n"
        written: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((line, written))
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_waiting())
        return await asyncio.shield(written)

    async def _write_waiting(self) -> None:
        while self._waiting:
            lines, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._write, b"".join(line for line, _ in lines))
            except OSError as error:
                refusal = f"{self._path}: cannot be written ({error.strerror}); make room, resume"
                for _, written in lines:
                    written.set_exception(JudgeRunError(refusal))
                continue
            for line, written in lines:
                written.set_result(self._end)
                self._end += len(line)
        self._writer = None

    def _write(self, content: bytes) -> None:
        try:
            left = memoryview(content)
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._end)
                os.lseek(self._file, self._end, os.SEEK_SET)
            raise


def create_run(runs: Path, name: str, plan: Mapping[str, object]) -> Path:
    """Make the folder of a run with its frozen plan, and return it.

    Parameters
    ----------
    runs : Path
        `STORE.judge`; made if it is missing, for its owner only.
    name : str
        The name of the run: letters, digits, `-` and `_`.
    plan : mapping
        JSON data; `judge_id` is needed.

    Raises
    ------
    JudgeRunError
        If the name does not fit or is taken.
    """
    if not _RUN_NAME.fullmatch(name):
        raise JudgeRunError(f"{name!r:.80}: a run is named by 1 to 64 of a-z, A-Z, 0-9, - and _")
    folder = private_folder(runs) / name
    if (folder / RUN_FILE).exists():
        raise JudgeRunError(f"run {name} exists already; resume it, or choose another name")
    text = json.dumps({"judge_id": plan["judge_id"], **plan}, indent=1) + "\n"
    put(private_folder(folder) / RUN_FILE, text.encode())
    return folder


def read_plan(folder: Path) -> dict[str, Any]:
    """Return the frozen plan of a run; JudgeRunError if there is none."""
    try:
        plan = json.loads(read_text(folder / RUN_FILE, most=MOST_FILE_BYTES))
    except (InputError, ValueError) as error:
        raise JudgeRunError(f"{folder}: holds no run that can be read ({error})") from error
    if not isinstance(plan, dict) or not isinstance(plan.get("judge_id"), str):
        raise JudgeRunError(f"{folder / RUN_FILE}: names no judge")
    return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How far a run is; times are seconds since 1970, `total` and `eta_s` None if unknown.

    `verdicts` counts samples that are done, `pending` those that are not; `asked` and `reused`
    count answers that this worker received and found in a journal, `in_doubt` attempts of all
    workers. `causes` counts failures of attempts, `no_verdict` final causes.
    `spent` is certain; `possible` is what requests without a countable answer cost at most.
    """

    state: str
    reason: str = ""
    total: int | None = None
    verdicts: int = 0
    pending: int | None = None
    asked: int = 0
    reused: int = 0
    in_flight: int = 0
    in_doubt: int = 0
    causes: dict[str, int] = field(default_factory=dict)
    no_verdict: dict[str, int] = field(default_factory=dict)
    spent_tokens: int = 0
    possible_tokens: int = 0
    spent_usd: float | None = None
    possible_usd: float | None = None
    concurrency: int = 0
    samples_per_minute: float | None = None
    eta_s: float | None = None
    last_answer_at: float | None = None
    heartbeat: float = 0.0
    pid: int = 0


def write_progress(folder: Path, progress: RunProgress) -> None:
    """Replace the progress of a run."""
    put(folder / PROGRESS_FILE, json.dumps(asdict(progress)).encode())


def read_progress(folder: Path, now: float | None = None) -> RunProgress | None:
    """Return the progress of a run, None if it never started.

    The state of a worker that has shown no sign of life for 30 seconds is `dead`: resume its run.
    """
    try:
        data = json.loads(read_text(folder / PROGRESS_FILE, most=MOST_FILE_BYTES))
        progress = _record(RunProgress, data)
    except (InputError, ValueError, TypeError, KeyError):
        return None
    age = (time.time() if now is None else now) - progress.heartbeat
    if progress.state in WORKING and age > DEAD_AFTER_S:
        return _record(RunProgress, {**asdict(progress), "state": "dead"})
    return progress


def write_control(folder: Path, word: str) -> None:
    """Ask the worker of a run to pause, resume or stop."""
    if word not in CONTROLS:
        raise JudgeRunError(f"{word!r:.80}: a run understands {', '.join(CONTROLS)}")
    put(folder / CONTROL_FILE, word.encode())


def take_control(folder: Path) -> str | None:
    """Return what the worker was asked to do since the last call."""
    path = folder / CONTROL_FILE
    try:
        word = path.read_text(encoding="utf-8", errors="replace").strip()
        path.unlink()
    except OSError:
        return None
    return word if word in CONTROLS else None


def _lines(path: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield start, end and content of the whole lines of a journal; a torn last one is left out."""
    if not path.exists():
        return
    with path.open("rb") as file:
        start, bad = 0, None
        for line in file:
            if bad is not None:
                raise _damaged(path, bad)
            end = start + len(line)
            try:
                data = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                data = None
            if isinstance(data, dict):
                yield start, end, data
            else:
                bad = start
            start = end


def _damaged(path: Path, at: int) -> JudgeRunError:
    return JudgeRunError(
        f"{path}: damaged at byte {at:,}. Move the run away and start another one: it asks "
        "again what no other journal answers"
    )


def _judge_of(folder: Path) -> str | None:
    """Return whose run a folder holds, None if it holds none."""
    try:
        return str(read_plan(folder)["judge_id"])
    except JudgeRunError:
        return None


def _reply_fields(reply: Reply) -> dict[str, Any]:
    return {f.name: getattr(reply, f.name) for f in fields(Reply)}


def _record(kind: Callable[..., T], data: Mapping[str, Any]) -> T:
    """Build a record from the fields of a line that it knows."""
    return kind(**{name: data[name] for name in inspect.signature(kind).parameters})


def _lock(path: Path, what: str) -> int:
    """Hold a file until the process ends; JudgeRunError if another one holds it."""
    number = hold(path)
    if number is None:
        raise JudgeRunError(f"another worker is at {what}; pause or stop it, or wait")
    return number
