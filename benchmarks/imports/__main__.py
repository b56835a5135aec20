"""Measure the import of trace files and add a section to docs/benchmarks/imports.md."""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TypeVar

import click

from benchmarks.asr.child import run
from benchmarks.imports.data import write_lines, write_tau2
from benchmarks.report import add_section, run_head, table
from calibration.store import PreparedTraces, Store
from calibration.trace_formats import Parsed, read_traces
from calibration.trace_formats.json_scanner import JsonText

T = TypeVar("T")
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "imports.md"

HEAD = """# Importing, measured

`make bench-import` measures and adds a section here, newest first. Times depend on the machine and
its load: compare the ratios, which are measured in one run, in turns. The files are made up: runs
of 20 messages with tool calls, in the shape of tau2-bench results (one JSON object) and as JSON
lines. `asr import` reads a file to its end, checks it, and stores it in one transaction with its
text, index, grades and content hashes; `json.load` and `pandas.read_json` only read. Each way is a
process of its own. CPU seconds are those of all threads, without the start of Python; a busy
machine disturbs them less than seconds. `benchmarks/imports/` holds the code.
"""

WHAT = {
    "read": "`asr import`, reading alone",
    "import": "`asr import`, whole",
    "json.load": "`json.load`",
    "pandas.read_json": "`pandas.read_json(lines=True)`",
}


def part(file: Path, title: str, ways: list[str], turns: int) -> str:
    """Time the ways to read a file, in turns."""
    size = file.stat().st_size / 1e6
    found: dict[str, list[tuple[float, ...]]] = {way: [] for way in ways}
    for _ in range(turns):
        for way in ways:
            done = run([sys.executable, "-m", "benchmarks.imports.child", way, str(file)])
            click.echo(f"{title} {way} {done}", err=True)
            found[way].append(tuple(map(float, done.output.split())))
    rows: list[list[object]] = []
    for way, times in found.items():
        seconds, cpu, memory, n = (median(column) for column in zip(*times, strict=True))
        rows.append([
            WHAT[way], f"{n:,.0f}", f"{seconds:.1f}", f"{cpu:.1f}", f"{size / seconds:.1f}",
            f"{size / cpu:.1f}", f"{memory:,.0f}", f"{memory / size:.2f}",
        ])  # fmt: skip
    columns = [
        "what", "runs", "s", "CPU s", "MB/s", "MB a CPU s", "most memory, MB", "MB a MB of file",
    ]  # fmt: skip
    return f"### {title}, {size:,.0f} MB\n\n{table(columns, rows)}\nMedians of {turns} turns.\n"


def stages_part(file: Path) -> str:
    """Say where the time of an import goes, in CPU seconds of one process."""
    seconds: dict[str, float] = {}

    def timed(what: str, work: Callable[[], T]) -> T:
        began = time.process_time()
        found = work()
        seconds[what] = time.process_time() - began
        return found

    def decoded() -> int:
        source = JsonText(file)
        return sum(
            1
            for key, at in source.members(source.start)
            if key == "simulations"
            for _ in source.elements(at)
        )

    def prepared() -> PreparedTraces:
        return PreparedTraces(run.trace for run in runs)

    def hashed() -> list[str]:
        return [run.trace.content_hash() for run in runs]

    timed("decoded", decoded)
    items = timed("read", lambda: list(read_traces(file)))
    runs = [item for item in items if isinstance(item, Parsed)]
    timed("content hashes", hashed)
    ready = timed("prepared", prepared)
    with (
        tempfile.TemporaryDirectory(dir=file.parent) as folder,
        Store.open(Path(folder) / "asr.duckdb", create=True) as store,
    ):
        timed("stored: Parquet, DuckDB", lambda: store.ingest(ready))
    whole = seconds["read"] + seconds["prepared"] + seconds["stored: Parquet, DuckDB"]
    rows: list[tuple[str, float]] = [
        ("format found, JSON decoded and its keys checked, runs built", seconds["read"]),
        ("text as JSON, tools counted, written to a file without a name",
         seconds["prepared"] - seconds["content hashes"]),
        ("content hashes", seconds["content hashes"]),
        ("text to Parquet, index to DuckDB, one transaction", seconds["stored: Parquet, DuckDB"]),
    ]  # fmt: skip
    size = file.stat().st_size / 1e6
    cells = [[what, f"{of:.2f}", f"{of / whole:.0%}", f"{size / of:.0f}"] for what, of in rows]
    return (
        f"### Where the time goes, {size:,.0f} MB of tau2-bench results\n\n"
        + table(["what", "CPU s", "share", "MB a CPU s"], cells)
        + f"\nTogether {size / whole:.1f} MB a CPU second. To decode the same file alone, keys "
        f"checked, takes {seconds['decoded']:.2f} CPU s.\n"
    )


@click.command()
@click.option("--tau2", "of_tau2", default=300.0, show_default=True, help="MB of one JSON object.")
@click.option("--lines", "of_lines", default=1_000.0, show_default=True, help="MB of JSON lines.")
@click.option("--turns", default=3, show_default=True, help="Turns over the ways.")
@click.option("--seed", default=0, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=PAGE, show_default=False)
def main(of_tau2: float, of_lines: float, turns: int, seed: int, output: Path) -> None:
    """Measure and write the page."""
    busy = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        tau2 = write_tau2(folder / "tau2.json", of_tau2, seed)
        found = [part(tau2, "tau2-bench results", ["read", "import", "json.load"], turns)]
        tau2.unlink()
        found.append(stages_part(write_tau2(folder / "small.json", min(of_tau2, 30.0), seed)))
        lines = write_lines(folder / "runs.jsonl", of_lines, seed)
        found.append(part(lines, "JSON lines", ["read", "import", "pandas.read_json"], turns))
    head = run_head(["asr-calibration", "duckdb", "pyarrow", "pandas"], load=busy, seed=seed)
    section = head + "\n".join(found) + f"\nLoad at the end {os.getloadavg()[0]:.1f}.\n"
    add_section(output, section, head=HEAD)
    click.echo(section)


if __name__ == "__main__":
    main()
