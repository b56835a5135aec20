"""Measure the judge and add a section to docs/benchmarks/judge.md."""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import click

from benchmarks.agreement.ours import Times
from benchmarks.asr.child import run
from benchmarks.judge.child import CONCURRENCY, items
from benchmarks.report import add_section, run_head, table
from calibration.judging.journal import JOURNAL_FILE
from tests.judging.makers import replied, text_of
from tests.judging.reference_model import (
    ReferenceModel,
    first_request,
    reference_items,
    reference_judge,
)
from tests.judging.scripted_server import Asked, ScriptedServer

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "judge.md"

HEAD = """# Judging, measured

`make bench-judge` measures and adds a section here, newest first. Times depend on the machine and
its load: compare the ratios, which are measured in one run, in turns. The judge is the real one,
with a worked example of each class, one sample and one call a trace; the traces are those of the
reference dataset. The endpoint is the scripted server of the tests on the same machine; each worker
is a process of its own. `benchmarks/judge/` holds the code.
"""

WHAT = {
    "client": "AsyncOpenAI alone, requests built beforehand",
    "runner": "runner, requests built beforehand, answers not read",
    "judge": "runner with the real judge",
}


def prompts_part(repeats: int) -> str:
    """Time the texts of all reference traces, and the reading of their answers."""
    judge, traces = reference_judge(samples=1), reference_items()
    model = ReferenceModel(judge, traces)
    requests = [first_request(judge, item) for item in traces]
    replies = [
        [replied(json.dumps(model(Asked("", 1, "", 0, dict(request.body), 0))))]
        for request in requests
    ]

    def build() -> None:
        for item in traces:
            judge.next_step(*item, 0, [])

    def encode() -> None:
        for request in requests:
            json.dumps(request.body, ensure_ascii=False).encode()

    def read() -> None:
        for item, of_item in zip(traces, replies, strict=True):
            judge.next_step(*item, 0, of_item)

    calls: dict[str, Callable[[], None]] = {
        "request to JSON, as the client does": encode,
        "prompt built": build,
        "verdict from an answer": read,
    }
    times = {name: Times() for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].seconds += Times.of(call, repeats=1).seconds
    base = next(iter(times.values())).median
    rows = [
        [name, 1000 * len(traces) / took.median, took.median / len(traces), took.median / base]
        for name, took in times.items()
    ]
    length = sum(len(text_of(request)) for request in requests) / len(requests)
    return (
        "### Prompts\n\n" + table(["what", "a second", "ms each", "x JSON"], rows)
        + f"\nMedians of {repeats} turns over {len(traces)} traces; a prompt has {length:,.0f} "
        "characters on average.\n"
    )  # fmt: skip


def work(way: str, folder: Path, server: ScriptedServer, calls: int) -> tuple[float, float]:
    """Run a worker to its end; return the seconds of its calls and its memory in MB."""
    words = [sys.executable, "-m", "benchmarks.judge.child", way, str(folder), server.url]
    done = run([*words, str(calls)])
    click.echo(f"{way} {calls} {done}", err=True)
    seconds, megabytes = map(float, done.output.split())
    return seconds, megabytes


def _after(seconds: float, _: Asked) -> float:
    return seconds


def sync_ms(folder: Path, times: int = 200) -> float:
    """Return the median of what a line of the journal and its sync take on the disk."""
    found = []
    with (folder / "synced").open("wb", buffering=0) as file:
        for _ in range(times):
            began = time.perf_counter()
            file.write(b"x" * 2_000)
            os.fsync(file)
            found.append(1000 * (time.perf_counter() - began))
    return median(found)


def overhead_part(folder: Path, calls: int, rounds: int, latencies: tuple[float, ...]) -> str:
    """Time a bare client and runs at the same server, in turns."""
    model = ReferenceModel(reference_judge(samples=1), list(items(calls)))
    rows: list[list[object]] = []
    for seconds in latencies:
        found: dict[str, list[float]] = {way: [] for way in WHAT}
        with ScriptedServer(model, latency=partial(_after, seconds)) as server:
            for turn in range(rounds):
                for way in WHAT:
                    store = folder / f"{seconds}-{turn}-{way}.judge"
                    took, _ = work(way, store / "run", server, calls)
                    found[way].append(1000 * took / calls)
        base = median(found["client"])
        for way, what in WHAT.items():
            ms = median(found[way])
            spread = f"{min(found[way]):.2f} to {max(found[way]):.2f}"
            more = "" if way == "client" else f"{ms - base:.2f}"
            rows.append(
                [f"{1000 * seconds:.0f}", what, f"{ms:.2f}", spread, more, f"{ms / base:.2f}"]
            )
    columns = ["answers after, ms", "what", "ms a call", "range", "more, ms", "x client"]
    return (
        "### What a call takes\n\n" + table(columns, rows)
        + f"\nMedians of {rounds} turns of {calls:,} calls, {CONCURRENCY} at a time: the time from "
        "the first call, which is not timed, to the last answer, divided by the calls. The runner "
        "syncs its journal to the disk before and after each call; one sync took "
        f"{sync_ms(folder):.2f} ms.\n"
    )  # fmt: skip


def memory_part(folder: Path, sizes: tuple[int, ...]) -> str:
    """Measure the memory of runs of growing size, and of resuming them when they are done."""
    rows: list[list[object]] = []
    model = ReferenceModel(reference_judge(samples=1), list(items(max(sizes))))
    last: dict[str, tuple[int, float]] = {}
    for calls in sizes:
        store = folder / f"{calls}.judge" / "run"
        with ScriptedServer(model) as server:
            for what in ("run", "resumed when done"):
                took, megabytes = work("judge", store, server, calls)
                before, size = last.get(what, (0, 0.0))
                grown = 1000 * (megabytes - size) / (calls - before)
                rows.append([
                    f"{calls:,}", what, f"{took:.1f}", f"{megabytes:.0f}",
                    f"{grown:.2f}" if before else "",
                    f"{(store / JOURNAL_FILE).stat().st_size / 1e6:.1f}",
                ])  # fmt: skip
                last[what] = calls, megabytes
    columns = ["traces", "what", "s", "most memory, MB", "growth, kB a trace", "journal, MB"]
    return (
        "### Memory by number of traces\n\n" + table(columns, rows)
        + "\nThe largest resident size of the worker, Python and libraries with it. Traces are "
        "made as they are asked for, and verdicts are not kept.\n"
    )  # fmt: skip


@click.command()
@click.option("--calls", default=600, show_default=True, help="Calls of a turn.")
@click.option("--rounds", default=5, show_default=True, help="Turns of client and runs.")
@click.option("--repeats", default=9, show_default=True, help="Turns over the prompts.")
@click.option("--latency", "latencies", multiple=True, type=float, default=(0.0, 0.1),
              show_default=True, help="Seconds before an answer.")  # fmt: skip
@click.option("--traces", "sizes", multiple=True, type=int, default=(1_000, 10_000),
              show_default=True, help="Sizes of runs whose memory is measured.")  # fmt: skip
@click.option("--output", type=click.Path(path_type=Path), default=PAGE, show_default=False)
def main(
    calls: int, rounds: int, repeats: int, latencies: tuple[float, ...], sizes: tuple[int, ...],
    output: Path,
) -> None:  # fmt: skip
    """Measure and write the page."""
    busy = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        found = [
            prompts_part(repeats),
            overhead_part(folder, calls, rounds, latencies),
            memory_part(folder, sizes),
        ]
    head = run_head(["asr-calibration", "openai", "httpx2"], load=busy, seed=0)
    section = head + "\n".join(found) + f"\nLoad at the end {os.getloadavg()[0]:.1f}.\n"
    add_section(output, section, head=HEAD)
    click.echo(section)


if __name__ == "__main__":
    main()
