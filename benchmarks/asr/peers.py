"""What one would write without us, each in a process of its own.

`python -m benchmarks.asr.peers plain|scipy|pandas FILE SEED RESAMPLES` prints one JSON object.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.taxonomy import default_taxonomy

COLUMNS = ["workflow", "outcome", "cost_usd"]


def scored(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with penalty and score of each run."""
    taxonomy = default_taxonomy()
    ceiling = frame["workflow"].map({w.name: w.ceiling_usd for w in taxonomy.workflows})
    penalty = ((frame["cost_usd"] - ceiling) / ceiling).clip(0, 1).fillna(0)
    credit = frame["outcome"].map(taxonomy.credit)
    return frame.assign(penalty=penalty, score=(credit - penalty).clip(lower=0))


def bootstrap(
    scores: NDArray[np.float64], seed: int, resamples: int
) -> tuple[list[float], list[float]]:
    """Draw the scores again and average, so many times; return the means, and seconds of each."""
    rng, n = np.random.default_rng(seed), scores.size
    means, seconds = [], []
    for _ in range(resamples):
        began = time.perf_counter()
        means.append(float(scores[rng.integers(n, size=n)].mean()))
        seconds.append(time.perf_counter() - began)
    return means, seconds


def plain(path: Path, seed: int, resamples: int) -> dict[str, Any]:
    """Time a plain bootstrap of the scores alone; reading and scoring are not timed."""
    scores = scored(pd.read_parquet(path, columns=COLUMNS))["score"].to_numpy()
    means, seconds = bootstrap(scores, seed, resamples)
    return {"value": float(scores.mean()), "sd": float(np.std(means, ddof=1)), "seconds": seconds}


def with_scipy(path: Path, seed: int, resamples: int) -> dict[str, Any]:
    """Time `scipy.stats.bootstrap` of the scores alone, percentile, a few resamples at a time."""
    from scipy import stats

    scores = scored(pd.read_parquet(path, columns=COLUMNS))["score"].to_numpy()
    began = time.perf_counter()
    stats.bootstrap(
        (scores,), np.mean, n_resamples=resamples, batch=4, method="percentile",
        rng=np.random.default_rng(seed), vectorized=True,
    )  # fmt: skip
    took = time.perf_counter() - began
    return {"value": float(scores.mean()), "seconds": [took / resamples]}


def with_pandas(path: Path, seed: int, resamples: int) -> dict[str, Any]:
    """Time the tables of the report in pandas, and resamples of the rate alone on all runs.

    Class shares, cost, weeks, workflows, models: values without intervals. Trace ids are looked
    through for duplicates, as they are by us.
    """
    began = time.perf_counter()
    frame = pd.read_parquet(path)
    frame = scored(frame.drop_duplicates("trace_id", keep=False))
    week = frame["started_at"].dt.strftime("%G-W%V")
    levels = np.array([0.5, 0.9, 0.99])
    tables = [
        frame["outcome"].value_counts(normalize=True),
        frame.groupby(week)["score"].agg(["mean", "size"]),
        frame.groupby("workflow")["score"].agg(["mean", "size"]),
        frame.groupby("workflow")["cost_usd"].quantile(levels),
        frame.groupby(week)["cost_usd"].quantile(levels[:2]),
        frame.groupby("workflow")["latency_s"].quantile(levels),
        frame.groupby(week)["latency_s"].quantile(levels[:2]),
        frame.groupby("model")["score"].agg(["mean", "size"]),
    ]
    read = time.perf_counter() - began
    _, seconds = bootstrap(frame["score"].to_numpy(), seed, resamples)
    return {
        "value": float(frame["score"].mean()), "tables": len(tables), "read": read,
        "seconds": seconds,
    }  # fmt: skip


PEERS = {"plain": plain, "scipy": with_scipy, "pandas": with_pandas}


def main() -> None:
    """Run one of them."""
    name, path, seed, resamples = sys.argv[1:]
    sys.stdout.write(json.dumps(PEERS[name](Path(path), int(seed), int(resamples))) + "\n")


if __name__ == "__main__":
    main()
