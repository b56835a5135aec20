"""How often labels that are a random sample are called none: .01 at most."""

import numpy as np
import pytest

from calibration.judge_calibration.samples import composition
from tests.simulation.judged import Judge

pytestmark = [pytest.mark.slow, pytest.mark.long]

SEED, REPETITIONS, N = 20261123, 2000, 1200

# Traces asked about, by verdict: of an even draw, and of one that is stratified by verdict.
EVEN, BY_VERDICT = [0.2] * 5, [0.1, 0.6, 0.35, 1.0, 0.2]


@pytest.mark.parametrize("rates", [EVEN, BY_VERDICT])
def test_false_warnings(judge: Judge, rates: list[float]) -> None:
    rng = np.random.default_rng(SEED)
    verdict = rng.choice(5, N, p=[0.5, 0.2, 0.15, 0.05, 0.1])
    # Agent, workflow and week go with the verdict: without the strata each would differ.
    agent = rng.integers(4, size=N) * (rng.random(N) < 0.5) + verdict % 4 * (rng.random(N) < 0.3)
    columns = {
        "verdict": verdict, "agent": agent, "workflow": (agent + verdict) % 2,
        "week": (verdict * 2 + rng.integers(6, size=N)) % 10,
    }  # fmt: skip
    levels = {name: of.astype(str) for name, of in columns.items()}
    strata = None if rates == EVEN else verdict
    drawn = [
        (np.flatnonzero(verdict == k), round(rate * float((verdict == k).sum())))
        for k, rate in enumerate(rates)
    ]
    warned = refused = unstratified = 0
    for _ in range(REPETITIONS):
        asked = np.zeros(N, dtype=bool)
        if strata is None:
            asked[rng.permutation(N)[: N // 5]] = True
        else:
            for rows, n in drawn:
                asked[rng.choice(rows, size=n, replace=False)] = True
        found = composition(levels, asked, strata)
        warned += bool(found.warned)
        refused += bool(found.refused)
        unstratified += bool(composition(levels, asked).warned)
    drawn_as = "an even draw" if strata is None else "a draw stratified by verdict"
    judge(
        "composition, false warnings", f"{N:,} traces, {drawn_as}, 4 columns (Holm)",
        covered=warned, repetitions=REPETITIONS, seed=SEED, half_width=0.0, band=(0.0, 0.01),
    )  # fmt: skip
    # No test that hardly ever warns: a share of .01, less what discrete counts and Holm take.
    assert warned > 0
    assert refused == 0
    assert (unstratified > REPETITIONS / 2) == (strata is not None)
