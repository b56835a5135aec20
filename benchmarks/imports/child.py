"""A way to read a file, in a process of its own: `python -m benchmarks.imports.child WAY FILE`.

The ways are `import` into a new store, `read` for its preview alone, `json.load`, and
`pandas.read_json` of lines. Prints the seconds, the CPU seconds, the most memory in MB and the
number of runs.
"""

import gc
import json
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from benchmarks.judge.child import most_memory


def imported(file: Path, *, store: bool) -> int:
    """Import a file as `asr import` does, or read it only."""
    from calibration.analyses.trace_files import read_files, store_files
    from calibration.store import Store
    from calibration.trace_formats import ImportSettings

    gc.set_threshold(100_000, *gc.get_threshold()[1:])  # as the command does
    settings = ImportSettings()
    if not store:
        return read_files([file], settings).preview.n_traces
    with (
        tempfile.TemporaryDirectory(dir=file.parent) as folder,
        Store.open(Path(folder) / "asr.duckdb", create=True) as made,
    ):
        done = store_files(made, read_files([file], settings), settings)
        if done.set_aside:
            raise RuntimeError(f"not all was imported: {done.set_aside[0]}")
        return done.imported


def with_pandas(file: Path) -> int:
    """Read JSON lines with pandas."""
    import pandas as pd

    return len(pd.read_json(file, lines=True))


def with_json(file: Path) -> int:
    """Read one JSON document with the standard library."""
    with file.open(encoding="utf-8") as opened:
        return len(json.load(opened)["simulations"])


WAYS = {
    "import": lambda file: imported(file, store=True),
    "read": lambda file: imported(file, store=False),
    "json.load": with_json,
    "pandas.read_json": with_pandas,
}

if __name__ == "__main__":
    way, name = sys.argv[1:]
    if way != "json.load":
        import_module("pandas" if way == "pandas.read_json" else "calibration.api")
    began, cpu = time.perf_counter(), time.process_time()
    n = WAYS[way](Path(name))
    took = time.perf_counter() - began, time.process_time() - cpu
    sys.stdout.write(f"{took[0]} {took[1]} {most_memory()} {n}\n")
