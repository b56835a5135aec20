"""Numbers of one run, and the page in docs/ that they are written to."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

HEAD = """# The labelling desk, measured

`make bench` measures and adds a section here, newest first. Times are in milliseconds and depend
on the machine: compare the ratios, which are measured in one run. What is measured and how is said
in `benchmarks/labelling/`.
"""


@dataclass(frozen=True)
class Times:
    """How long something took, in milliseconds."""

    what: str
    n: int
    p50: float
    p95: float

    @classmethod
    def of(cls, what: str, milliseconds: Sequence[float]) -> Self:
        """Summarise single times; without any, both quantiles are NaN."""
        if not milliseconds:
            return cls(what, 0, float("nan"), float("nan"))
        p50, p95 = np.percentile(milliseconds, [50, 95])
        return cls(what, len(milliseconds), float(p50), float(p95))


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table; numbers are rounded for reading."""
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    if isinstance(value, float):
        if np.isnan(value):
            return "none"
        return f"{value:.0f}" if value >= 20 else f"{value:.2g}"
    return str(value)


def add_section(path: Path, section: str) -> None:
    """Put a section in front of those of earlier runs."""
    earlier = ""
    if path.exists():
        _, mark, rest = path.read_text(encoding="utf-8").partition("\n## ")
        earlier = mark + rest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{HEAD}\n{section.rstrip()}\n{earlier}", encoding="utf-8")
