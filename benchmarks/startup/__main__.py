"""Measure how quickly commands answer and add a section to docs/benchmarks/startup.md."""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import click
import duckdb
import numpy as np

from benchmarks.report import add_section, run_head, table
from calibration.taxonomy import default_taxonomy

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "startup.md"

HEAD = """# From a command to its answer

`make bench-startup` measures and adds a section here, newest first. Times depend on the machine and
its load: compare the ratios, which are measured in one run, in turns. The files are small: 500
runs, 300 ratings, 150 labels with 500 verdicts. Each command is a process of its own, with compiled
modules. CPU seconds are those of all threads; a busy machine disturbs them less than seconds.
`tests/test_startup.py` says which packages a command may load; `benchmarks/startup/` holds the
code.
"""

CLI = ("-m", "calibration.cli")
PYTHON, PACKAGES = "python -c pass", "python -c 'import numpy, duckdb'"
YARDSTICKS = {PYTHON: ("-c", "pass"), PACKAGES: ("-c", "import numpy, duckdb")}
COMMANDS: dict[str, tuple[str, Sequence[str]]] = {
    "asr --help": (PYTHON, (*CLI, "--help")),
    "asr report": (PACKAGES, (*CLI, "report", "runs.csv")),
    "asr agreement": (PACKAGES, (*CLI, "agreement", "ratings.csv")),
    "asr calibrate": (
        PACKAGES, (*CLI, "calibrate", "--human", "labels.csv", "--verdicts", "verdicts.csv"),
    ),
}  # fmt: skip
# A million runs, looked at whole, beside what has to be done at least.
MILLION = """
SELECT 'run-' || i AS id, CASE WHEN hash(i) % 100 < 65 THEN 'TRUE' WHEN hash(i) % 100 < 99
THEN 'FALSE' ELSE 'NA' END AS passed, round((hash(i * 7) % 200) / 100.0 + 0.01, 2) AS cost,
CASE WHEN i % 3 = 0 THEN 'support' ELSE 'research' END AS workflow,
'2026-10-' || lpad(CAST(1 + i % 28 AS VARCHAR), 2, '0') || 'T10:00:00Z' AS started_at,
'model-' || i % 3 AS model, 'a comment ' || hash(i) AS comment FROM range(1000000) AS t(i)
"""
SCAN = """
import duckdb, sys
read = duckdb.read_parquet if sys.argv[1] == "parquet" else duckdb.read_csv
rows = read(f"million.{sys.argv[1]}", **({} if sys.argv[1] == "parquet" else {"all_varchar": True}))
listed = ", ".join(f'max(hash("{name}"))' for name in rows.columns)
rows.aggregate(f"count(*), {listed}").fetchall()
"""
IMPORT = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \|\s+(\S+)")


def write_files(folder: Path, seed: int) -> None:
    """Write the small files that the commands read."""
    rng = np.random.default_rng(seed)
    names, works = default_taxonomy().names, [w.name for w in default_taxonomy().workflows]

    def near(name: str) -> str:
        return name if rng.random() < 0.8 else str(rng.choice(names))

    true = [str(rng.choice(names)) for _ in range(500)]
    costs = rng.lognormal(-1, 0.5, 500).round(3)
    days = [f"2026-10-{1 + k % 28:02d}T10:00:00Z" for k in range(500)]
    files = {
        "runs.csv": ["trace_id,workflow,outcome,cost_usd,started_at"]
        + [f"t{k},{works[k % len(works)]},{true[k]},{costs[k]},{days[k]}" for k in range(500)],
        "ratings.csv": ["item,rater,label"]
        + [f"t{k},{who},{near(true[k])}" for k in range(100) for who in "abc"],
        "labels.csv": ["trace_id,outcome"] + [f"t{k},{true[k]}" for k in range(150)],
        "verdicts.csv": ["trace_id,outcome,workflow,cost_usd"]
        + [f"t{k},{near(true[k])},{works[k % len(works)]},{costs[k]}" for k in range(500)],
    }
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def timed(words: Sequence[str], folder: Path) -> tuple[float, float]:
    """Run Python with these words; return seconds and CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run([sys.executable, *words], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    took = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ratios_part(folder: Path, turns: int) -> str:
    """Time the commands and the yardsticks in turns."""
    every = YARDSTICKS | {name: words for name, (_, words) in COMMANDS.items()}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in every}
    for turn in range(turns + 1):
        for name, words in every.items():
            took = timed(words, folder)
            if turn:  # the first one compiles
                found[name].append(took)
    seconds, cpu = (
        {name: median(one[k] for one in times) for name, times in found.items()} for k in (0, 1)
    )
    rows: list[list[object]] = [
        [f"`{name}`", f"{seconds[name]:.3f}", f"{cpu[name]:.3f}", "", "", ""] for name in YARDSTICKS
    ]
    for name, (base, _) in COMMANDS.items():
        of_seconds, of_cpu = seconds[name] / seconds[base], cpu[name] / cpu[base]
        rows.append([
            f"`{name}`", f"{seconds[name]:.3f}", f"{cpu[name]:.3f}", f"`{base}`",
            f"{of_seconds:.1f}", f"{of_cpu:.1f}",
        ])  # fmt: skip
    columns = ["command", "s", "CPU s", "beside", "x, s", "x, CPU s"]
    return f"### Ratios\n\n{table(columns, rows)}\nMedians of {turns} turns.\n"


def look_part(folder: Path, turns: int) -> str:
    """Time `asr look` on a million runs, an import of DuckDB and a scan of all columns in turns."""
    for kind in ("csv", "parquet"):
        duckdb.sql(f"COPY ({MILLION}) TO '{folder / f'million.{kind}'}'")
    rows: list[list[object]] = []
    for kind in ("csv", "parquet"):
        every = {
            "import": ("-c", "import duckdb"),
            "scan": ("-c", SCAN, kind),
            "look": (*CLI, "look", f"million.{kind}"),
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in every}
        for _ in range(turns):
            for name, words in every.items():
                times[name].append(timed(words, folder))
        seconds, cpu = (
            {name: median(one[k] for one in found) for name, found in times.items()} for k in (0, 1)
        )
        over = seconds["look"] - seconds["import"]
        scan = seconds["scan"] - seconds["import"]
        rows.append([
            kind, *(f"{part[name]:.2f}" for part in (seconds, cpu) for name in every),
            f"{over:.2f}", f"{over / scan:.1f}",
        ])  # fmt: skip
    measured = [f"{name}, {unit}" for unit in ("s", "CPU s") for name in ("import", "scan", "look")]
    columns = ["file", *measured, "look over import, s", "x of the scan"]
    return f"### A million runs, `asr look`\n\n{table(columns, rows)}\nMedians of {turns} turns.\n"


def imports_part(folder: Path) -> str:
    """List the ten modules that take longest to load in each command, with what they load."""
    parts = []
    for name, (_, words) in COMMANDS.items():
        done = subprocess.run(
            [sys.executable, "-X", "importtime", *words],
            cwd=folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
        found = [(int(whole), int(own), of) for own, whole, of in IMPORT.findall(done.stderr)]
        rows = [
            [f"`{of}`", f"{whole / 1000:.0f}", f"{own / 1000:.1f}"]
            for whole, own, of in sorted(found, reverse=True)[:10]
        ]
        all_own = sum(own for _, own, _ in found) / 1000
        parts.append(
            f"#### `{name}`\n\n{table(['module', 'cumulative, ms', 'own, ms'], rows)}\n"
            f"{len(found):,} modules, {all_own:.0f} ms together.\n"
        )
    return "### What is loaded\n\nThe ten heaviest by `-X importtime`.\n\n" + "\n".join(parts)


@click.command()
@click.option("--turns", default=11, show_default=True, help="Turns over commands and yardsticks.")
@click.option("--seed", default=0, show_default=True)
@click.option("--only-look", is_flag=True, help="Measure asr look on a million runs alone.")
@click.option("--output", type=click.Path(path_type=Path), default=PAGE, show_default=False)
def main(turns: int, seed: int, only_look: bool, output: Path) -> None:
    """Measure and write the page."""
    busy = os.getloadavg()[0]
    # Users have compiled modules.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        write_files(folder, seed)
        parts = [] if only_look else [ratios_part(folder, turns), imports_part(folder)]
        found = [*parts, look_part(folder, min(turns, 5))]
    head = run_head(["asr-calibration", "numpy", "duckdb", "pandas", "scipy"], load=busy, seed=seed)
    section = head + "\n".join(found) + f"\nLoad at the end {os.getloadavg()[0]:.1f}.\n"
    add_section(output, section, head=HEAD)
    click.echo(section)


if __name__ == "__main__":
    main()
