"""Measure the report on files and add a section to docs/benchmarks/asr.md."""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import duckdb
import numpy as np

from benchmarks.agreement.peers import environment
from benchmarks.asr.child import Run, floor, peer, polars, report
from benchmarks.asr.data import write_runs
from benchmarks.report import add_section, run_head, table
from calibration.taxonomy import default_taxonomy

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "asr.md"

HEAD = """# The report on production files, measured

`make bench-asr` measures and adds a section here, newest first. A time is that of the whole
command `asr report FILE --json`, from the start of Python to the printed report: all tables with
their intervals, 1,000 resamples. Wall time depends on the load of the machine; processor
time (user and system) depends on it less. `benchmarks/asr/` holds the code.
"""

RESAMPLES = 1_000

# Our processor time over that of reading every used column once, in the same turns: the aims of the
# project on Parquet, on CSV and with tasks that repeat; and GB of memory.
AIMS = {100_000: 6.0, 2_000_000: 5.0, 10_000_000: 5.5, 100_000_000: 6.0}
CSV_AIMS, TASK_AIMS = {2_000_000: 4.0}, {10_000_000: 12.0}
MEMORY = {10_000_000: 0.6, 100_000_000: 3.0}
CSV_SIZES = (2_000_000,)

COMPARED, TIMES_FASTER = 2_000_000, 5.0
# Of 10 million runs 7.3 million tasks.
TASKS, MOST_WITH_TASKS = 0.73, 10_000_000
SAME = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file of so many runs, what it is, and the floor and aim of the report on it."""

    path: Path
    n: int
    what: str
    floor: str
    aim: float | None


def files(folder: Path, sizes: list[int], seed: int) -> Iterator[File]:
    """Write one file at a time: Parquet, with tasks that repeat, and CSV for some sizes."""
    for n in sizes:
        path = write_runs(folder / "runs.parquet", n, tasks=None, seed=seed)
        yield File(path=path, n=n, what="Parquet", floor="read", aim=AIMS.get(n))
        if n in CSV_SIZES:
            written = folder / "runs.csv"
            with duckdb.connect() as connection:
                connection.execute("SET TimeZone = 'UTC'")
                connection.execute(f"COPY (FROM read_parquet('{path}')) TO '{written}' (HEADER)")
            yield File(path=written, n=n, what="CSV", floor="read", aim=CSV_AIMS.get(n))
            written.unlink()
        path.unlink()
        if n > MOST_WITH_TASKS:
            continue
        path = write_runs(folder / "tasks.parquet", n, tasks=round(TASKS * n), seed=seed)
        yield File(path=path, n=n, what=f"{round(TASKS * n):,} tasks", floor="tasks",
                   aim=TASK_AIMS.get(n))  # fmt: skip
        path.unlink()


def growth_part(folder: Path, sizes: list[int], repeats: int, seed: int) -> str:
    """Time the report in turns with the least that the machine needs, and with polars."""
    rows: list[list[object]] = []
    where = environment(folder / "polars", ("polars",))
    taxonomy = default_taxonomy()
    rubric = json.dumps({
        "credit": dict(taxonomy.credit),
        "ceilings": {w.name: w.ceiling_usd for w in taxonomy.workflows},
    })  # fmt: skip
    for file in files(folder, sizes, seed):
        turns: dict[str, list[Run]] = {"ours": [], "floor": [], "group": [], "polars": []}
        for _ in range(repeats):
            turns["floor"].append(floor(file.floor, file.path))
            turns["ours"].append(report(file.path, resamples=RESAMPLES))
            turns["group"].append(floor("group", file.path))
            if not where.refused and file.floor == "read":
                with suppress(MemoryError):
                    turns["polars"].append(polars(where.python, file.path, rubric))
        _checked(turns, file.n)
        least = {name: min((run.cpu for run in runs), default=np.nan)
                 for name, runs in turns.items()}  # fmt: skip
        memory = min(run.memory for run in turns["ours"])
        ratio, most = least["ours"] / least["floor"], MEMORY.get(file.n)
        rows.append([
            f"{file.n:,}", file.what, f"{file.path.stat().st_size / 1e6:,.0f}",
            f"{min(run.wall for run in turns['ours']):.2f}", f"{least['ours']:.2f}",
            f"{least['floor']:.2f}", f"{ratio:.1f}", "" if file.aim is None else f"{file.aim:g}",
            "" if file.aim is None else "yes" if ratio <= file.aim else "no",
            f"{least['group'] / least['floor']:.1f}", least["polars"] / least["floor"],
            f"{memory:.2f}" + ("" if most is None else f" (aim {most:g})"),
        ])  # fmt: skip
        click.echo(rows[-1], err=True)
    columns = [
        "rows", "file", "MB", "wall, s", "processors, s", "floor, s", "ours / floor", "aim",
        "reached", "group-by / floor", "polars / floor", "most memory, GB",
    ]  # fmt: skip
    return (
        "### The whole command as a multiple of reading the file\n\n" + table(columns, rows)
        + f"\nThe least processor time of {repeats} turns, each a process of its own. The floor is "
        "DuckDB that looks at every used column once (CSV: read by type; tasks: their ids are "
        "hashed too), the group-by one of week, workflow, model and class without any check. "
        "polars, in an environment of its own, makes the tables of values without intervals"
        + (f" (not installed: {where.refused})" if where.refused else "")
        + "; none: not run, or ended for lack of memory. Memory is VmHWM of the process. "
        "`benchmarks/asr/floors.py` has the statements.\n"
    )  # fmt: skip


def _checked(turns: Mapping[str, list[Run]], n: int) -> None:
    """Raise where one of them has not seen every row, or another rate."""
    ours = json.loads(turns["ours"][0].output)
    for name in ("floor", "group", "polars"):
        for run in turns[name]:
            found = json.loads(run.output)
            if found["rows"] != n or abs(found.get("value", ours["asr"]["value"])
                                         - ours["asr"]["value"]) > SAME:  # fmt: skip
                raise RuntimeError(f"{name}: {run.output.strip()} of {n} rows")


def peers_part(folder: Path, n: int, repeats: int, drawn: int, seed: int) -> str:
    """Time peers on one file, in turns with ours."""
    path = write_runs(folder / "runs.parquet", n, tasks=None, seed=seed)
    ours: list[Run] = []
    theirs: dict[str, list[dict[str, Any]]] = {name: [] for name in ("plain", "scipy", "pandas")}
    few = {"plain": drawn, "scipy": max(2, drawn // 5), "pandas": drawn}
    values: set[float] = set()
    for _ in range(repeats):
        ours.append(report(path, resamples=RESAMPLES))
        for name, found in theirs.items():
            done = peer(name, path, seed, few[name])
            found.append(json.loads(done.output) | {"memory": done.memory})
            values.add(round(found[-1]["value"], 9))
    rate = json.loads(ours[0].output)["asr"]["value"]
    if max(abs(rate - value) for value in values) > SAME:
        raise RuntimeError(f"{values} there, {rate} here")
    path.unlink()
    shortest = min(run.wall for run in ours)
    rows: list[list[object]] = []
    for name, what in (
        ("plain", "numpy: the scores drawn again and averaged"),
        ("scipy", "scipy.stats.bootstrap of the scores, percentile"),
        ("pandas", "pandas: read, score, tables, and the same draws of the rate alone"),
    ):
        took = min(_whole(found) for found in theirs[name])
        memory = max(found["memory"] for found in theirs[name])
        rows.append([what, few[name], took, f"{memory:.1f}", took / shortest])
    memory = max(run.memory for run in ours)
    lines = [
        f"### {n:,} rows beside peers\n",
        f"Ours, the whole command: **{shortest:.2f} s** and {memory:.2f} GB.\n",
        table(
            ["peer", "resamples run", "s for 1,000, extrapolated", "GB", "peer / ours"], rows
        ),
        f"The shortest of {repeats} runs, in turns. A peer ran the resamples of the second column; "
        "the time of 1,000 is the median of one, multiplied: a linear extrapolation. For numpy and "
        "scipy neither reading nor scoring is in the time, and no other table than the rate; for "
        "pandas both are, and tables without intervals.\n",
    ]  # fmt: skip
    if n == COMPARED:
        plain = rows[0][-1]
        held = isinstance(plain, float) and plain >= TIMES_FASTER
        lines.append(
            f"Aim: the whole command at least {TIMES_FASTER:g} times as fast as the plain "
            f"bootstrap of the scores alone: {'reached' if held else 'NOT reached'}.\n"
        )
    return "\n".join(lines)


def _whole(found: dict[str, Any]) -> float:
    return float(found.get("read", 0.0) + RESAMPLES * np.median(found["seconds"]))


@click.command()
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--rows",
    "sizes",
    multiple=True,
    type=int,
    default=(100_000, 2_000_000, 10_000_000),
    show_default=True,
    help="Sizes of files; 100,000,000 takes 4 GB of disk and minutes.",
)
@click.option("--peer-rows", multiple=True, type=int, default=(COMPARED, 10_000_000),
              show_default=True, help="Sizes that peers are run on, 0 for none.")  # fmt: skip
@click.option("--repeats", default=3, show_default=True, help="Turns with the floors.")
@click.option("--rounds", default=3, show_default=True, help="Turns with the peers.")
@click.option("--drawn", default=30, show_default=True, help="Resamples that peers run.")
@click.option("--temporary", type=click.Path(path_type=Path), help="Where files are written.")
@click.option("--output", type=click.Path(path_type=Path), default=PAGE, show_default=False)
def main(
    seed: int,
    sizes: tuple[int, ...],
    peer_rows: tuple[int, ...],
    repeats: int,
    rounds: int,
    drawn: int,
    temporary: Path | None,
    output: Path,
) -> None:
    """Measure and write the page."""
    busy = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=temporary) as directory:
        folder = Path(directory)
        found = [peers_part(folder, n, rounds, drawn, seed) for n in peer_rows if n]
        found.append(growth_part(folder, list(sizes), repeats, seed))
    packages = ["asr-calibration", "duckdb", "numpy", "pandas", "scipy"]
    head = run_head(packages, load=busy, seed=seed)
    section = head + "\n".join(found) + f"\nLoad at the end {os.getloadavg()[0]:.1f}.\n"
    add_section(output, section, head=HEAD)
    click.echo(section)


if __name__ == "__main__":
    main()
