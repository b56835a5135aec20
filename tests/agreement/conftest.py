"""Keep count of the comparisons with a peer and, when asked, write them down."""

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest

HEAD = """# Agreement against the krippendorff package, on random tables

Written by `make fuzz`, newest first: alpha of random tables (1 to 200 items, 2 to 7 raters, 2 to 6
classes, from full to almost empty) by this library and by the PyPI package `krippendorff`, which
may differ by 1e-10. "Refused" are tables on which neither gives a number. A run is repeated by
`make fuzz SEED=...`.

| date | seed | asr-calibration | krippendorff | metric | compared | refused | largest difference |
|---|---|---|---|---|---|---|---|
"""


@dataclass
class Comparisons:
    """How many values of one metric were compared, and how far apart they were at most."""

    compared: int = 0
    refused: int = 0
    largest: float = 0.0

    def note(self, difference: float) -> None:
        """Count one comparison."""
        self.compared += 1
        self.largest = max(self.largest, difference)


Tally = defaultdict[str, Comparisons]


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Iterator[Tally]:
    """Return what the tests count in; `ASR_FUZZ_TABLE` says where the rows go."""
    counted = Tally(Comparisons)
    yield counted
    target = os.environ.get("ASR_FUZZ_TABLE")
    if target and counted:
        seed = pytestconfig.getoption("--hypothesis-seed")
        rows = [
            f"| {datetime.now(UTC):%Y-%m-%d} | {seed} | {version('asr-calibration')} | "
            f"{version('krippendorff')} | {name} | {c.compared:,} | {c.refused:,} | "
            f"{c.largest:.1e} |\n"
            for name, c in sorted(counted.items())
        ]
        add_rows(Path(target), rows)


def add_rows(path: Path, rows: list[str]) -> None:
    """Put rows in front of those of earlier runs."""
    earlier = path.read_text(encoding="utf-8").rpartition("|---|\n")[2] if path.exists() else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + "".join(rows) + earlier, encoding="utf-8")
