"""Judge simulated coverage against its band and, when asked, write the table of all settings."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest
from scipy.stats import binomtest

# Chance of failing a setting whose true coverage lies on the edge of its band.
LEVEL = 0.001

HEADER = """# Simulated coverage of the intervals

Written by `make simulate` on {date} with asr-calibration {version}. Nominal coverage is .95. A
setting fails when its coverage lies significantly (binomial test at .001) outside the band; the
last column says whether the figure itself lies inside. Every row can be repeated from its seed.
Coverage is over all repetitions: of one that the product refuses to show, the interval it would
have had counts, and the share of those is given.

| estimator | setting | repetitions | seed | coverage | band | mean half-width | refused | inside |
|---|---|---|---|---|---|---|---|---|
"""


@pytest.fixture(scope="session")
def judge() -> Iterator[Callable[..., None]]:
    """Return a function that judges one setting and keeps its row."""
    rows: dict[tuple[str, str], str] = {}

    def judge_one(
        estimator: str,
        setting: str,
        *,
        covered: int,
        repetitions: int,
        seed: int,
        half_width: float,
        band: tuple[float, float] = (0.935, 0.975),
        refused: float | None = None,
    ) -> None:
        share = covered / repetitions
        inside = "yes" if band[0] <= share <= band[1] else "no"
        rows[estimator, setting] = (
            f"| {estimator} | {setting} | {repetitions:,} | {seed} | {share:.3f} | "
            f"{band[0]:.3f} to {band[1]:.3f} | {half_width:.3f} | "
            f"{'' if refused is None else f'{refused:.1%}'} | {inside} |"
        )
        below = binomtest(covered, repetitions, band[0], alternative="less").pvalue
        above = binomtest(covered, repetitions, band[1], alternative="greater").pvalue
        assert below > LEVEL, f"{estimator}, {setting}: coverage {share:.3f} below {band[0]}"
        assert above > LEVEL, f"{estimator}, {setting}: coverage {share:.3f} above {band[1]}"

    yield judge_one
    target = os.environ.get("ASR_SIMULATION_TABLE")
    if target and rows:
        head = HEADER.format(
            date=datetime.now(UTC).date().isoformat(), version=version("asr-calibration")
        )
        lines = [rows[key] for key in sorted(rows)]
        Path(target).write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
