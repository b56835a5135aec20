"""How many reviewers one server bears, and what it takes over time: `make load`."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random

import click

from benchmarks.labelling.report import Times
from benchmarks.report import add_section, run_head, table
from tests.browser.conftest import Server
from tests.load.crash import build_team_store, doubled, look, lost
from tests.load.reviewers import Reviewer, team

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "load.md"
HEAD = """# Reviewers at work at the same time

`make load` measures on a quiet machine and adds a section here, newest first; `make load PART=soak`
measures one part of `steady`, `limit`, `soak` and `judge`. The simulated reviewers speak the
protocol of the Label page over WebSockets to a real server on the same machine. They think for a
log-normal time before each label, and send a draft halfway for three of four. Every trace has 100
steps. A label is timed from sending it to the answer that the store holds it. Memory is what the
server's process holds (RSS) at the start of the measurement, halfway and at the end.
`benchmarks/load.py` holds the code.
"""

PARTS = ("steady", "limit", "soak", "judge")
JUDGED, AT_ONCE, ANSWER_S = 500, 4, 0.5  # traces, requests in flight, seconds for an answer
AIM_S, SLOW_S = 0.25, 1.0
COLUMNS = (
    "reviewers", "minutes", "labels", "labels/s", "p50, ms", "p95, ms", "lost", "doubled",
    "refused", "memory, MB", "cores, server", "cores, reviewers",
)  # fmt: skip


@dataclass(frozen=True)
class Stretch:
    """What people who work at the same time came to; `times` are in milliseconds."""

    people: int
    seconds: float
    times: Times
    lost: int
    doubled: int
    refused: int
    megabytes: tuple[float, float, float]
    server_cores: float
    people_cores: float

    def row(self) -> list[object]:
        """Return the row of the table."""
        return [
            self.people, f"{self.seconds / 60:.1f}", self.times.n,
            f"{self.times.n / self.seconds:.1f}", self.times.p50, self.times.p95, self.lost,
            self.doubled, self.refused, ", ".join(f"{mb:.0f}" for mb in self.megabytes),
            f"{self.server_cores:.2f}", f"{self.people_cores:.2f}",
        ]  # fmt: skip


def _memory_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _arrive(person: Reviewer, until: asyncio.Event, after_s: float) -> None:
    await asyncio.sleep(after_s)
    await person.work(until)


async def _work(
    pid: int, people: Sequence[Reviewer], seconds: float, rng: Random
) -> tuple[float, float, tuple[float, float, float], float, float]:
    """Let people work; return begin, end, memory and the cores of server and people."""
    until = asyncio.Event()
    work = [
        asyncio.create_task(_arrive(p, until, rng.uniform(0, 2 * p.think_s + len(people) / 2)))
        for p in people
    ]
    while any(not person.labels for person in people):  # opening the page is not measured
        await asyncio.sleep(0.1)
        if failed := [task for task in work if task.done()]:
            failed[0].result()
    began, server_s, people_s = time.monotonic(), _processor_s(pid), time.process_time()
    memory = [_memory_mb(pid)]
    for _ in range(2):
        await asyncio.sleep(seconds / 2)
        memory.append(_memory_mb(pid))
    ended = time.monotonic()
    server_cores = (_processor_s(pid) - server_s) / (ended - began)
    people_cores = (time.process_time() - people_s) / (ended - began)
    until.set()
    await asyncio.wait_for(asyncio.gather(*work), timeout=120)
    return began, ended, (memory[0], memory[1], memory[2]), server_cores, people_cores


def alone(_: Path) -> AbstractContextManager[None]:
    """Let nothing else work on a store."""
    return nullcontext()


@contextmanager
def judging(store: Path) -> Iterator[None]:
    """Let a worker judge 500 traces of a store that a server holds, at a scripted endpoint."""
    asr = [sys.executable, "-c", "from calibration.cli import main; main()", "judge"]
    own = ["--store", str(store)]
    serve = [sys.executable, "-m", "tests.judging.small_model", str(ANSWER_S)]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as endpoint:
        url = next(iter(endpoint.stdout or ())).strip()
        new = [*asr, "new", "load", "--model", "m", "--url", url, "--samples", "1", *own]
        subprocess.run(new, check=True, stdout=subprocess.DEVNULL)
        cap = ["--cap-tokens", str(10**9), "--at-once", str(AT_ONCE), "--limit", str(JUDGED)]
        with subprocess.Popen([*asr, "run", "load", *cap, *own], stdout=subprocess.PIPE) as worker:
            yield
            worker.communicate(timeout=300)
        if worker.returncode:
            raise RuntimeError("the worker has not judged all traces")
        endpoint.terminate()


def stretch(
    folder: Path,
    n_people: int,
    *,
    seconds: float,
    think_s: float,
    steps: int,
    seed: int,
    beside: Callable[[Path], AbstractContextManager[None]] = alone,
) -> Stretch:
    """Measure people who label a batch of their own store for a time, with something beside."""
    server = Server(folder / f"load-{n_people}-{seconds:.0f}.duckdb")
    n_traces = max(JUDGED, int(n_people * (10 + 1.2 * (seconds + 60) / think_s)))
    batch, names = build_team_store(server.store, n_people, n_traces, steps=steps)
    people = team(server.port, names, batch, think_s=think_s, seed=seed)
    server.start()
    try:
        with beside(server.store):
            began, ended, memory, server_cores, people_cores = asyncio.run(
                _work(server.pid, people, seconds, Random(seed))
            )
    finally:
        server.stop()
    held = look(server.store)
    labels = [taken for person in people for taken in person.labels]
    # By the time of sending: a slow server must not push its slowest answers out of the table.
    within = [1000 * taken.seconds for taken in labels if began <= taken.sent < ended]
    return Stretch(
        people=n_people,
        seconds=ended - began,
        times=Times.of("sent to confirmed", within),
        lost=len(lost(held, people)),
        doubled=doubled(held),
        refused=sum(len(person.refused) for person in people),
        megabytes=memory,
        server_cores=server_cores,
        people_cores=people_cores,
    )


@click.command()
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS))
@click.option("--seed", default=1, show_default=True)
@click.option("--think", "think_s", default=8.0, show_default=True, help="Mean seconds a label.")
@click.option("--steps", default=100, show_default=True, help="Of a trace.")
@click.option("--people", default=50, show_default=True, help="Of the steady part.")
@click.option("--seconds", default=300.0, show_default=True, help="Of the steady part.")
@click.option("--soak-people", default=20, show_default=True)
@click.option("--soak-seconds", default=1800.0, show_default=True)
@click.option("--judge-seconds", default=90.0, show_default=True, help="With and without.")
@click.option("--limit-seconds", default=60.0, show_default=True, help="A number of reviewers.")
@click.option("--more", default=25, show_default=True, help="Reviewers from one row to the next.")
@click.option("--most", default=500, show_default=True, help="Reviewers at which to stop.")
@click.option("--output", type=click.Path(path_type=Path), default=PAGE, show_default=False)
def main(
    parts: tuple[str, ...], seed: int, think_s: float, steps: int, people: int, seconds: float,
    soak_people: int, soak_seconds: float, judge_seconds: float, limit_seconds: float, more: int,
    most: int, output: Path,
) -> None:  # fmt: skip
    """Measure and write the page."""
    chosen, busy = parts or PARTS, os.getloadavg()[0]
    found = []

    def measure(
        n: int,
        seconds: float,
        beside: Callable[[Path], AbstractContextManager[None]] = alone,
    ) -> Stretch:
        with tempfile.TemporaryDirectory() as directory:
            done = stretch(
                Path(directory), n, seconds=seconds, think_s=think_s, steps=steps, seed=seed,
                beside=beside,
            )  # fmt: skip
        click.echo(f"{done}", err=True)
        return done

    if "steady" in chosen:
        done = measure(people, seconds)
        reached = "reached" if done.times.p95 <= 1000 * AIM_S else "missed"
        found.append(
            f"### Steady\n\nThe aim, a p95 of {AIM_S} s or less, is {reached}.\n\n"
            + table(COLUMNS, [done.row()])
        )
    if "limit" in chosen:
        levels: list[Stretch] = []
        for n in range(people, most + 1, more):
            levels.append(measure(n, limit_seconds))
            if levels[-1].times.p95 > 1000 * SLOW_S:
                break
        last = levels[-1]
        passed = last.times.p95 > 1000 * SLOW_S
        words = (
            f"The p95 passes {SLOW_S:.0f} s at {last.people} reviewers."
            if passed
            else f"The p95 is below {SLOW_S:.0f} s up to {last.people} reviewers, the most tried."
        )
        found.append(f"### Limit\n\n{words}\n\n" + table(COLUMNS, [one.row() for one in levels]))
    if "soak" in chosen:
        done = measure(soak_people, soak_seconds)
        found.append("### Soak\n\n" + table(COLUMNS, [done.row()]))
    if "judge" in chosen:
        idle, busy_one = (measure(5, judge_seconds, each) for each in (alone, judging))
        ratio = busy_one.times.p95 / idle.times.p95
        found.append(
            f"### Beside a judge\n\nWhile {JUDGED} traces are judged, {AT_ONCE} at once, an answer "
            f"each {ANSWER_S} s, the p95 is {ratio:.2f} times that without (second row).\n\n"
            + table(COLUMNS, [busy_one.row(), idle.row()])
        )
    head = run_head(["asr-calibration", "streamlit", "duckdb"], load=busy, seed=seed)
    about = f"Mean think time {think_s:g} s, {steps} steps a trace.\n\n"
    section = head + about + "\n".join(found)
    add_section(output, section, head=HEAD)
    click.echo(section)


if __name__ == "__main__":
    main()
