"""Measure the report on files and add a section to docs/benchmarks/asr.md."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.asr.child import Run, floor, peer, report
from benchmarks.asr.data import write_runs
from benchmarks.asr.floors import FLOORS
from benchmarks.report import add_section, run_head, table

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "asr.md"

HEAD = """# The report on production files, measured

`make bench-asr` measures and adds a section here, newest first. A time is that of the whole
command `asr report FILE --json`, from the start of Python to the printed report: all tables with
their intervals, 1,000 resamples. Wall time depends on the load of the machine; processor
time (user and system) depends on it less. `benchmarks/asr/` holds the code.
"""

RESAMPLES = 1_000

# The aims of the project, in seconds and GB on two cores.
AIMS = {10_000_000: (3.0, 1.5), 100_000_000: (20.0, None)}

COMPARED, TIMES_FASTER = 2_000_000, 5.0
TASKS = 4
SAME = 1e-6


def best(path: Path, repeats: int) -> tuple[Run, Run]:
    """Return the report of the shortest wall time, and that of the least processor time."""
    return _least([report(path, resamples=RESAMPLES) for _ in range(repeats)])


def _least(runs: list[Run]) -> tuple[Run, Run]:
    return min(runs, key=lambda r: r.wall), min(runs, key=lambda r: r.cpu)


def floor_rows(path: Path, n: int, repeats: int, ours: tuple[Run, Run]) -> list[list[object]]:
    """Time the least that the machine needs for a file, and ours as a multiple of it.

    Raises
    ------
    RuntimeError
        If one of them has not seen every row.
    """
    rows: list[list[object]] = []
    for name, (what, _) in FLOORS.items():
        runs = [floor(name, path) for _ in range(repeats)]
        for done in runs:
            if json.loads(done.output).get("rows", n) != n:
                raise RuntimeError(f"{name}: {done.output.strip()} of {n} rows")
        shortest, least = _least(runs)
        rows.append([
            f"{n:,}", what, f"{shortest.wall:.2f}", f"{least.cpu:.2f}",
            f"{ours[0].wall / shortest.wall:.1f}", f"{ours[1].cpu / least.cpu:.1f}",
        ])  # fmt: skip
        click.echo(rows[-1], err=True)
    return rows


def growth_part(folder: Path, sizes: list[int], repeats: int, seed: int) -> str:
    """Time the report on files of growing size, with tasks of four runs each and without."""
    rows: list[list[object]] = []
    floors: list[list[object]] = []
    for n in sizes:
        for tasks in (None, n // TASKS):
            path = write_runs(folder / "runs.parquet", n, tasks=tasks, seed=seed)
            often = repeats if n <= 10_000_000 else 1
            shortest, least = best(path, often)
            seconds, memory = AIMS.get(n, (None, None)) if tasks is None else (None, None)
            rows.append([
                f"{n:,}", "none" if tasks is None else f"{tasks:,}",
                f"{path.stat().st_size / 1e6:,.0f}",
                f"{shortest.wall:.2f}", f"{least.cpu:.2f}", f"{shortest.memory:.2f}", often,
                *_against(shortest, seconds, memory),
            ])  # fmt: skip
            click.echo(rows[-1], err=True)
            if tasks is None:
                floors += floor_rows(path, n, often, (shortest, least))
            path.unlink()
    columns = [
        "rows", "tasks", "file, MB", "wall, s", "processors, s", "most memory, GB", "runs", "aim",
        "reached",
    ]  # fmt: skip
    return (
        "### The whole command by number of rows\n\n" + table(columns, rows)
        + "\nShortest wall time and least processor time of the runs, on a shared machine.\n"
        + "\n### The least that the machine needs\n\n" + table(
            ["rows", "what", "wall, s", "processors, s", "ours / wall", "ours / processors"], floors
        )
        + "\nOn the files without tasks, as often as ours and right after it, each in a process of "
        "its own. The report cannot take less than the first and the second together on this "
        "machine. `benchmarks/asr/floors.py` has the statements.\n"
    )  # fmt: skip


def _against(found: Run, seconds: float | None, memory: float | None) -> tuple[str, str]:
    if seconds is None:
        return "none", ""
    aim = f"{seconds:g} s" + ("" if memory is None else f", {memory:g} GB")
    held = found.wall <= seconds and (memory is None or found.memory <= memory)
    return aim, "yes" if held else "no"


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
    default=(100_000, 1_000_000, 2_000_000, 10_000_000),
    show_default=True,
    help="Sizes of files; 100,000,000 takes 4 GB of disk and minutes.",
)
@click.option("--peer-rows", multiple=True, type=int, default=(COMPARED, 10_000_000),
              show_default=True, help="Sizes that peers are run on.")  # fmt: skip
@click.option("--repeats", default=5, show_default=True, help="Runs of our command.")
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
        found = [peers_part(folder, n, rounds, drawn, seed) for n in peer_rows]
        found.append(growth_part(folder, list(sizes), repeats, seed))
    packages = ["asr-calibration", "duckdb", "numpy", "pandas", "scipy"]
    head = run_head(packages, load=busy, seed=seed)
    section = head + "\n".join(found) + f"\nLoad at the end {os.getloadavg()[0]:.1f}.\n"
    add_section(output, section, head=HEAD)
    click.echo(section)


if __name__ == "__main__":
    main()
