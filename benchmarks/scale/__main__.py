"""Measure what a run costs on DuckDB, PostgreSQL and Spark; add to docs/benchmarks/scale.md."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click
import duckdb

from benchmarks.asr.child import PEAK, REPORT
from benchmarks.asr.data import write_runs
from benchmarks.report import add_section, run_head, table
from tests.postgres_server import postgres_server, programs

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "scale.md"

HEAD = """# What a run costs on each engine

`make bench-scale` measures and adds a section here, newest first. The command is `asr report`, from
the start of Python to the printed report, on runs without tasks: all tables with their intervals,
1,000 resamples. Each engine reads a file or table of two sizes; the difference between the two
gives the cost of a run. Everything is on one machine: the PostgreSQL server and Spark share its
processors with the command. `benchmarks/scale/` holds the code.

**What breaks first**, by the statements that are run; no file or table of that size was read.

- DuckDB: the search for duplicates. It holds a hash of 8 bytes for each trace id, as many at a time
  as a 64th of the memory limit: 196 million with 12.6 GB. Beyond that the ids are read once for
  each part of the hashes, 6 times for 10^9 runs and 51 times for 10^10, so that time grows with the
  square of the runs; the figures in proportion leave this out. More memory, or one report for each
  month, is the remedy.
- DuckDB, runs with tasks: the rows are stored once more, in numbers, and lie on the disk where they
  do not fit into the memory limit. Room is needed in the directory for temporary files.
- PostgreSQL: five statements, each of which reads the whole table, in one transaction that only
  reads. At 10^9 runs it is open for more than an hour, and rows that others delete meanwhile stay
  on the disk. The distinct hashes of the ids are sorted or hashed beyond `work_mem` in temporary
  files.
- Spark: about twenty seconds pass before the first row is read, while statements are planned and
  compiled, whatever the size. Then the shuffle of the hashes of ids is the largest: 8 bytes a run.
  A cluster divides both; this machine does not.
"""

# Seconds between two looks: what a process uses after the last one is not seen.
EVERY = 0.05
POSTGRES, SPARK = "PostgreSQL", "Spark, on this machine"
LARGE = (10**9, 10**10)
DAY, HOUR, MINUTE = 86_400, 3_600, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Seconds, processor seconds and GB of memory of a command, its children and its server."""

    wall: float
    cpu: float
    memory: float


def main_arguments(*arguments: str) -> list[str]:
    """Return a command line of `asr report` in a Python of its own."""
    return [sys.executable, "-c", PEAK + REPORT, "report", *arguments, "--json"]


def measured(command: Sequence[str], n: int, *, server: int | None) -> Used:
    """Run a command on `n` runs and watch it and its server, a process with children."""
    seen = {pid: _cpu(pid) for pid in _family(server)}
    before = sum(seen.values())
    peaks: list[int] = []
    over = threading.Event()
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        roots = [process.pid, server]
        watcher = threading.Thread(target=_watch, args=(roots, seen, peaks, over))
        watcher.start()
        output, errors = process.communicate()
        over.set()
        watcher.join()
    wall = time.perf_counter() - began
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[3:])}: {errors.decode()[-800:]}")
    if (counted := json.loads(output)["n"]) != n:
        raise RuntimeError(f"{counted} of {n} runs were counted")
    used = sum(seen.values()) - before
    return Used(wall=wall, cpu=used, memory=max(peaks, default=0) / 1e9)


def _watch(
    roots: Sequence[int | None], seen: dict[int, float], peaks: list[int], over: threading.Event
) -> None:
    """Note the processor seconds of each process, and the memory of all, until it is over."""
    while not over.wait(EVERY):
        pids = [pid for root in roots for pid in _family(root)]
        seen.update({pid: max(_cpu(pid), seen.get(pid, 0.0)) for pid in pids})
        peaks.append(sum(map(_private, pids)))


def _family(root: int | None) -> Iterator[int]:
    """Yield a process and those below it."""
    if root is None:
        return
    yield root
    for task in Path(f"/proc/{root}/task").glob("*/children"):
        try:
            below = task.read_text(encoding="ascii").split()
        except OSError:
            continue
        for pid in below:
            yield from _family(int(pid))


def _private(pid: int) -> int:
    """Return the bytes of memory that a process has for itself: shared buffers count for nobody."""
    try:
        found = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return (int(found[1]) - int(found[2])) * os.sysconf("SC_PAGE_SIZE")


def _cpu(pid: int) -> float:
    """Return the processor seconds of a process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, stat[11:13])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _engine(name: str, path: Path) -> Iterator[tuple[list[str], int | None]]:
    """Yield the arguments that read a file by an engine, and the process of its server."""
    if name == POSTGRES and (found := programs()):
        with postgres_server(found) as (address, pid):
            _copy(path, address)
            yield ["--postgres", address, "--table", "runs"], pid
    else:
        yield ["--spark", str(path)] if name == SPARK else [str(path)], None


def _copy(path: Path, address: str) -> None:
    """Copy a file into a table of PostgreSQL, as its owner would have it."""
    import psycopg

    with psycopg.connect(address) as connection, duckdb.connect() as reader:
        connection.execute(
            "CREATE TABLE runs (trace_id text, workflow text, outcome text, cost_usd float8, "
            "started_at timestamptz, latency_s float8, model text)"
        )
        written = path.with_suffix(".csv")
        reader.execute("SET TimeZone = 'UTC'")
        reader.execute(f"COPY (FROM read_parquet('{path}')) TO '{written}' (HEADER false)")
        with (
            written.open("rb") as rows,
            connection.cursor().copy("COPY runs FROM STDIN (FORMAT csv)") as stream,
        ):
            while part := rows.read(1_000_000):
                stream.write(part)
        written.unlink()
        connection.commit()
        connection.autocommit = True
        connection.execute("VACUUM ANALYZE runs")


def part(name: str, sizes: tuple[int, int], repeats: int, seed: int, folder: Path) -> list[object]:
    """Return what the report costs at two sizes, and a run by the difference."""
    least: list[Used] = []
    for n in sizes:
        path = write_runs(folder / "runs.parquet", n, tasks=None, seed=seed)
        with _engine(name, path) as (arguments, server):
            turns = [measured(main_arguments(*arguments), n, server=server) for _ in range(repeats)]
        path.unlink()
        least.append(
            Used(
                wall=min(turn.wall for turn in turns),
                cpu=min(turn.cpu for turn in turns),
                memory=min(turn.memory for turn in turns),
            )
        )
        click.echo(f"{name} {n:,}: {least[-1]}", err=True)
    few, many = least
    more = sizes[1] - sizes[0]
    wall, cpu = (many.wall - few.wall) / more, (many.cpu - few.cpu) / more
    return [
        name, f"{sizes[0]:,} and {sizes[1]:,}", f"{few.wall:.1f} and {many.wall:.1f}",
        f"{few.cpu:.1f} and {many.cpu:.1f}", f"{few.memory:.2f} and {many.memory:.2f}",
        f"{1e6 * wall:.2f}", f"{1e6 * cpu:.2f}", *(_long(many.wall + wall * n) for n in LARGE),
    ]  # fmt: skip


def _long(seconds: float) -> str:
    for unit, name in ((DAY, "days"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


@click.command()
@click.option("--seed", default=1, show_default=True)
@click.option("--duckdb", "duckdb_rows", nargs=2, type=int, default=(2_000_000, 20_000_000))
@click.option("--servers", "server_rows", nargs=2, type=int, default=(500_000, 2_000_000))
@click.option("--repeats", default=2, show_default=True)
@click.option("--temporary", type=click.Path(path_type=Path), help="Where files are written.")
@click.option("--output", type=click.Path(path_type=Path), default=PAGE)
def main(
    seed: int,
    duckdb_rows: tuple[int, int],
    server_rows: tuple[int, int],
    repeats: int,
    temporary: Path | None,
    output: Path,
) -> None:
    """Measure and write the page."""
    busy = os.getloadavg()[0]
    rows, missing = [], []
    with tempfile.TemporaryDirectory(dir=temporary) as directory:
        folder = Path(directory)
        rows.append(part("DuckDB, Parquet", duckdb_rows, repeats, seed, folder))
        for name, module, there in (
            (POSTGRES, "psycopg", programs()),
            (SPARK, "pyspark", shutil.which("java")),
        ):
            if there and find_spec(module):
                rows.append(part(name, server_rows, repeats, seed, folder))
            else:
                missing.append(name)
    columns = [
        "engine", "runs", "s", "processor s", "memory, GB", "µs a run", "processor µs a run",
        *(f"{n:,} runs" for n in LARGE),
    ]  # fmt: skip
    section = run_head(["asr-calibration", "duckdb", "numpy"], load=busy, seed=seed)
    section += table(columns, rows)
    section += (
        f"\nThe least of {repeats} turns. Processor time and memory are those of the command and "
        "of the server together; memory leaves out what processes share. The last two columns are "
        "NOT measured: the time of the larger size and that of so many more runs, in proportion, "
        "on this machine.\n"
        + "".join(f"\nNot run: {name} is not installed.\n" for name in missing)
        + f"\nLoad at the end {os.getloadavg()[0]:.1f}.\n"
    )
    add_section(output, section, head=HEAD)
    click.echo(section)


if __name__ == "__main__":
    main()
