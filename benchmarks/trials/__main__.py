"""Measure pass@k and pass^k of 100,000 tasks; add a section to docs/benchmarks/trials.md."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.agreement.peers import Environment, environment
from benchmarks.report import add_section, run_head, table
from calibration.success_rate.pass_at_k import (
    Trials,
    count_trials,
    kinds_of,
    pass_of_tasks,
    pass_over_tasks,
    shares_at,
    shares_hat,
)

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "trials.md"
CALLS = Path(__file__).with_name("peer_calls.py")
SCORIO = "scorio==0.2.3"
SAME = 1e-9

HEAD = """# Repeated trials, measured

`make bench-trials` measures and adds a section here, newest first. Times are in seconds and depend
on the machine and its load: compare the ratios, which are of the shortest times of one run. A time
is from the trials in memory to pass@k or pass^k at every k, as the mean over tasks. The loop is the
estimator of human-eval, task by task. scorio is installed into an environment that is thrown away.
Values must equal theirs to 1e-9, or the run stops. `benchmarks/trials/` holds the code.
"""

Results = NDArray[np.int64]


def timed(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the shortest time of a call, and what it returned."""
    shortest, found = np.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        found = call()
        shortest = min(shortest, time.perf_counter() - start)
    return float(shortest), found


def loop(results: Results) -> list[float]:
    """Return pass@k at every k with the estimator of human-eval, one task after the other."""

    def of_task(n: int, c: int, k: int) -> float:
        if n - c < k:
            return 1.0
        return float(1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))

    n = results.shape[1]
    passed = results.sum(axis=1).tolist()
    return [float(np.mean([of_task(n, c, k) for c in passed])) for k in range(1, n + 1)]


def values(results: Results, share: Callable[..., Any]) -> list[float]:
    """Return our means at every k: tasks with equal counts are computed once, as in a report."""
    c = results.sum(axis=1)
    tasks = Trials(tasks=np.arange(c.size), n=np.full(c.size, results.shape[1]), c=c)
    kinds, like = kinds_of(tasks)
    weight = like / like.sum()
    return [float(share(kinds.n, kinds.c, k) @ weight) for k in range(1, results.shape[1] + 1)]


def with_intervals(tasks: Results, passed: NDArray[np.bool_], most: int) -> list[Any]:
    """Return our figures with their intervals at every k, from one row per trial."""
    kinds, like = kinds_of(count_trials(tasks, passed))
    rng = np.random.default_rng(1)
    return [pass_over_tasks(kinds, k, rng=rng, like=like) for k in range(1, most + 1)]


def of_scorio(where: Environment, file: Path, most: int, repeats: int) -> dict[str, Any]:
    """Return what scorio measured."""
    done = subprocess.run(
        [str(where.python), str(CALLS), str(file), str(most), str(repeats)],
        capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"scorio: {done.stderr.strip()[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check_same(name: str, mine: list[float], theirs: list[float]) -> float:
    """Return how far apart values are; stop if they are not the same."""
    apart = float(np.abs(np.array(mine) - np.array(theirs)).max())
    if not apart <= SAME:
        raise RuntimeError(f"{name}: {mine!r} here, {theirs!r} there")
    return apart


@click.command()
@click.option("--tasks", "n_tasks", default=100_000, show_default=True)
@click.option("--trials", "n_trials", default=10, show_default=True)
@click.option("--repeats", default=5, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(n_tasks: int, n_trials: int, repeats: int, seed: int) -> None:
    """Measure ours, the loop and scorio on the same trials."""
    load = os.getloadavg()[0]
    rng = np.random.default_rng(seed)
    chance = rng.beta(2, 1, n_tasks)
    results = (rng.random((n_tasks, n_trials)) < chance[:, None]).astype(np.int64)
    ours = {
        name: timed(partial(values, results, share), repeats)
        for name, share in (("pass@k", shares_at), ("pass^k", shares_hat))
    }
    seconds, plain = timed(lambda: loop(results), 1)
    rows: list[list[object]] = [
        ["loop of human-eval", "pass@k", seconds, ours["pass@k"][0], seconds / ours["pass@k"][0],
         f"{check_same('loop', ours['pass@k'][1], plain):.0e}"]
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        where = environment(Path(folder) / "scorio", (SCORIO,))
        peer = f"scorio was not installed: {where.refused}" if where.refused else ""
        if not where.refused:
            file = Path(folder) / "trials.npy"
            np.save(file, results)
            found = of_scorio(where, file, n_trials, repeats)
            peer = ", ".join(f"{name} {v}" for name, v in found["versions"].items())
            for name, call in found["calls"].items():
                theirs, mine = min(call["seconds"]), ours[name]
                apart = check_same(f"scorio, {name}", mine[1], call["values"])
                rows.append(["scorio", name, theirs, mine[0], theirs / mine[0], f"{apart:.0e}"])
    names, passed = np.repeat(np.arange(n_tasks), n_trials), results.astype(np.bool_).ravel()
    whole, _ = timed(lambda: with_intervals(names, passed, n_trials), repeats)
    counted = count_trials(names, passed)
    hierarchy, _ = timed(lambda: pass_of_tasks(counted, 3, each_task=False), repeats)
    section = (
        run_head(("asr-calibration", "numpy", "scipy"), load=load, seed=seed)
        + f"### {n_tasks:,} tasks x {n_trials} trials, k = 1 to {n_trials}\n\n"
        + "Both figures with their intervals at every k (1,000 draws of weights), from one row "
        f"per trial: **{whole:.2f} s**. The hierarchy of all tasks, one k: {hierarchy:.3f} s. "
        f"{peer}.\n\n"
        + table(["peer", "figure", "s", "ours, s", "peer / ours", "values differ by"], rows)
    )
    add_section(PAGE, section, head=HEAD)
    click.echo(section)


if __name__ == "__main__":
    main()
