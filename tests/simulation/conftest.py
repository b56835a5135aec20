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

# Lines of the table by estimator and setting.
Rows = dict[tuple[str, str], str]
RULE = 10 * "|---" + "|\n"
COLUMNS = (
    "| estimator | setting | repetitions | seed | coverage | band | mean half-width | refused "
    "| inside | run |\n"
)
HEADER = """# Simulated coverage of the intervals

Written by `make simulate`; the last column names the day and the version of asr-calibration.
Nominal coverage is .95. A setting fails when its coverage lies significantly (binomial test at
.001) outside the band; the column before the last says whether the figure itself lies inside.
Every row can be repeated from its seed. Coverage is over all repetitions: of one that the product
refuses to show, the interval it would have had counts, and the share of those is given.

"""


@pytest.fixture(scope="session")
def judge() -> Iterator[Callable[..., None]]:
    """Return a function that judges one setting and keeps its row."""
    rows: Rows = {}
    run = f"{datetime.now(UTC).date().isoformat()}, {version('asr-calibration')}"

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
            f"{'' if refused is None else f'{refused:.1%}'} | {inside} | {run} |"
        )
        below = binomtest(covered, repetitions, band[0], alternative="less").pvalue
        above = binomtest(covered, repetitions, band[1], alternative="greater").pvalue
        assert below > LEVEL, f"{estimator}, {setting}: coverage {share:.3f} below {band[0]}"
        assert above > LEVEL, f"{estimator}, {setting}: coverage {share:.3f} above {band[1]}"

    yield judge_one
    target = os.environ.get("ASR_SIMULATION_TABLE")
    if target and rows:
        write(Path(target), rows)


def write(path: Path, rows: Rows) -> None:
    """Write the rows into a table; those of other settings stay, so that one file can be run."""
    if path.exists():
        rows = kept(path.read_text(encoding="utf-8")) | rows
    lines = [rows[key] for key in sorted(rows)]
    path.write_text(HEADER + COLUMNS + RULE + "\n".join(lines) + "\n", encoding="utf-8")


def kept(table: str) -> Rows:
    """Return the rows of a table."""
    rows = table.split(RULE)[1].splitlines() if RULE in table else []
    cells = [row.removeprefix("| ").split(" | ") for row in rows]
    return {
        (estimator, setting): row for (estimator, setting, *_), row in zip(cells, rows, strict=True)
    }
