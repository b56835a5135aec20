"""Twenty reviewers at work at once: alone, while snapshots are written, during an import."""

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.labelling.report import Times
from calibration.store.store import snapshot_path
from tests.browser.conftest import Server
from tests.load.crash import build_team_store, doubled, look, lost
from tests.load.reviewers import Reviewer, Taken, team

Span = tuple[float, float]
COMMAND = [sys.executable, "-c", "from calibration.cli import main; main()"]


@dataclass(frozen=True)
class Load:
    """What two stretches of work with the same people came to."""

    people: int
    seconds: float
    alone: Times
    during_snapshot: Times
    during_import: Times
    per_second: float
    per_second_import: float
    import_s: float
    import_mb: float
    snapshots: int
    labels: int
    lost: int
    doubled: int
    refused: int
    output: str


def write_import(path: Path, megabytes: float, rng: Random) -> int:
    """Write traces of about 20 kB each; return how many."""
    words = [f"word{k}" for k in range(4000)]
    count = 0
    with path.open("w", encoding="utf-8") as handle:
        while handle.tell() < megabytes * 1e6:
            steps = [
                {
                    "step_id": f"s{k}", "role": "assistant", "tool": "search",
                    "arguments": '{"q": 1}', "result": " ".join(rng.choices(words, k=120)),
                }
                for k in range(20)
            ]  # fmt: skip
            row = {
                "trace_id": f"big-{count}", "workflow": "imported", "prompt": f"Task {count}",
                "steps": steps, "response": "Done.", "cost_usd": 0.1,
            }  # fmt: skip
            handle.write(json.dumps(row) + "\n")
            count += 1
    return count


async def _watch_snapshots(server: Server, spans: list[Span]) -> None:
    """Note when a snapshot is being written: its temporary file is there."""
    began: float | None = None
    pattern = f".{snapshot_path(server.store).name}.*"
    while True:
        there = any(server.store.parent.glob(pattern))
        now = time.monotonic()
        if there and began is None:
            began = now
        elif not there and began is not None:
            spans.append((began, now))
            began = None
        await asyncio.sleep(0.01)


async def _work(
    server: Server, people: list[Reviewer], seconds: float, file: Path
) -> tuple[list[Span], Span, Span, str]:
    until, spans = asyncio.Event(), list[Span]()
    watcher = asyncio.create_task(_watch_snapshots(server, spans))
    work = [asyncio.create_task(person.work(until)) for person in people]
    while any(not person.labels for person in people):  # opening the page is not measured
        await asyncio.sleep(0.1)
    began = time.monotonic()
    await asyncio.sleep(seconds)
    imported = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "import", str(file), "--store", str(server.store), "--yes",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    done = time.monotonic()
    until.set()
    await asyncio.wait_for(asyncio.gather(*work), timeout=120)
    watcher.cancel()
    if process.returncode:
        raise RuntimeError(output.decode())
    return spans, (began, imported), (imported, done), output.decode()


def _overlaps(taken: Taken, span: Span) -> bool:
    return taken.sent < span[1] and taken.sent + taken.seconds > span[0]


def _times(what: str, labels: list[Taken]) -> Times:
    return Times.of(what, [1000 * taken.seconds for taken in labels])


def load(
    folder: Path, *, n_people: int, seconds: float, megabytes: float, think_s: float, seed: int
) -> Load:
    """Let people work alone for a time, then for as long as an import takes."""
    server = Server(folder / "load.duckdb")
    n_traces = int(n_people * (seconds + 300) / think_s)
    batch, names = build_team_store(server.store, n_people, n_traces, steps=20)
    file = folder / "big.jsonl"
    write_import(file, megabytes, Random(seed))
    people = team(server.port, names, batch, think_s=think_s, seed=seed)
    server.start()
    try:
        spans, calm, importing, output = asyncio.run(_work(server, people, seconds, file))
    finally:
        server.stop()
    held = look(server.store)
    labels = [taken for person in people for taken in person.labels]
    first = [taken for taken in labels if _overlaps(taken, calm)]
    beside = [taken for taken in labels if _overlaps(taken, importing)]
    at_snapshot = [t for t in first if any(_overlaps(t, span) for span in spans)]
    rest = [t for t in first if t not in set(at_snapshot)]
    missing = lost(held, people)
    return Load(
        people=n_people,
        seconds=calm[1] - calm[0],
        alone=_times("no snapshot, no import", rest),
        during_snapshot=_times("while a snapshot is written", at_snapshot),
        during_import=_times("during the import", beside),
        per_second=len(first) / (calm[1] - calm[0]),
        per_second_import=len(beside) / (importing[1] - importing[0]),
        import_s=importing[1] - importing[0],
        import_mb=file.stat().st_size / 1e6,
        snapshots=sum(calm[0] <= began <= calm[1] for began, _ in spans),
        labels=len(labels),
        lost=len(missing),
        doubled=doubled(held),
        refused=sum(len(p.refused) for p in people),
        output=output.strip(),
    )
