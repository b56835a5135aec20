"""Production files of any size, as an export would hold them: a million rows at a time."""

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from calibration.taxonomy import default_taxonomy

BLOCK = 1_000_000
MIX = (0.55, 0.18, 0.09, 0.12, 0.06)
MODELS = ("m-large", "m-small", "m-next")
WEEKS = 26
FIRST = np.datetime64("2026-01-05", "s")


def write_runs(path: Path, n: int, *, tasks: int | None, seed: int) -> Path:
    """Write n runs of 26 weeks as Parquet, 1 % without a cost; `tasks` of them repeat."""
    writer = None
    for start in range(0, n, BLOCK):
        block = _block(start, min(BLOCK, n - start), tasks, np.random.default_rng([seed, start]))
        writer = writer or parquet.ParquetWriter(path, block.schema)
        writer.write_table(block)
    if writer is None:
        raise ValueError(f"n must be at least 1, got {n!r}")
    writer.close()
    return path


def _block(start: int, n: int, tasks: int | None, rng: np.random.Generator) -> pa.Table:
    workflows = default_taxonomy().workflows
    workflow = rng.integers(0, len(workflows), n)
    ceiling = np.array([w.ceiling_usd or 1.0 for w in workflows])[workflow]
    seconds = rng.integers(0, WEEKS * 7 * 86_400, n)
    columns = {
        "trace_id": pa.array([f"tr-{start + k:012x}" for k in range(n)]),
        "workflow": _named(workflow, tuple(w.name for w in workflows)),
        "outcome": _named(rng.choice(len(MIX), n, p=MIX), default_taxonomy().names),
        "cost_usd": pa.array(ceiling * rng.lognormal(-0.6, 0.6, n), mask=rng.random(n) < 0.01),
        "started_at": pa.array(FIRST + seconds).cast(pa.timestamp("us", "UTC")),
        "latency_s": pa.array(rng.lognormal(2, 1, n)),
        "model": _named(rng.integers(0, len(MODELS), n), MODELS),
    }
    if tasks is not None:
        columns["task_id"] = pa.array([f"task-{k}" for k in rng.integers(0, tasks, n)])
    return pa.table(columns)


def _named(codes: np.ndarray, names: tuple[str, ...]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8)), names).cast(pa.string())
