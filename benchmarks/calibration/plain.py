"""The two-source bootstrap as one would write it: draw the traces again, compute, repeat."""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration.data import CREDIT, Traces


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """Draws of a plain loop, and seconds of each."""

    draws: NDArray[np.float64]
    seconds: list[float]


def _inverted(labelled: Traces, production: Traces) -> float:
    table = np.zeros((5, 5))
    np.add.at(table, (labelled.human, labelled.verdicts), 1.0)
    table += 0.1
    inverse = np.linalg.inv(table / table.sum(axis=1, keepdims=True))
    kept = np.maximum(0.0, CREDIT - production.penalties[:, None])
    return float((inverse[production.verdicts] * kept).sum(axis=1).mean())


def _post_stratified(labelled: Traces, production: Traces) -> float:
    scores = labelled.scores()
    share = np.bincount(production.verdicts, minlength=5) / production.verdicts.size
    return float(
        sum(share[k] * scores[labelled.verdicts == k].mean() for k in range(5) if share[k] > 0)
    )


def _again(traces: Traces, rng: np.random.Generator) -> Traces:
    rows = rng.integers(0, traces.human.size, traces.human.size)
    return Traces(traces.human[rows], traces.verdicts[rows], traces.penalties[rows])


def plain_loop(
    design: str, labelled: Traces, production: Traces, *, iterations: int, seed: int
) -> Loop:
    """Resample labels and production trace by trace."""
    rng, found, seconds = np.random.default_rng(seed), [], []
    statistic = _inverted if design == "reference" else _post_stratified
    for _ in range(iterations):
        began = time.perf_counter()
        found.append(statistic(_again(labelled, rng), _again(production, rng)))
        seconds.append(time.perf_counter() - began)
    return Loop(np.array(found), seconds)
