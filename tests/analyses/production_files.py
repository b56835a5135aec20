"""Small production files in which every number can be worked out by hand."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibration.taxonomy import Taxonomy, default_taxonomy

# The fixture of the methodology: ASR .49 with the floor for each run, .28 as printed.
MIXED10 = (
    *[("complete", cost) for cost in (1.0, 1.0, 1.0, 1.0, 3.0, 10.0)],
    *[("partial_plus", 1.0), ("partial_plus", 3.0), ("hallucinated", 5.0), ("abandoned", 8.0)],
)

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "![x](http://evil.example/a.png)",
    "[a](javascript:alert(1))",
    "`code` | cell",
    "a\x1b[31mred",
    "\u202eevil",
    "line\nbreak",
    "=cmd|' /C calc'!A0",
    "@everyone https://evil.example",
    "${7*7}{{7*7}}",
    "x" * 5_000,
)


def runs(rows: Sequence[tuple[str, float | None]], **every: Any) -> list[dict[str, Any]]:
    """Return runs of research, whose ceiling is 2.00, from outcome and cost."""
    return [
        {"trace_id": f"t{k:03d}", "workflow": "research", "outcome": outcome, "cost_usd": cost}
        | every
        for k, (outcome, cost) in enumerate(rows)
    ]


def alike(prefix: str, counts: Mapping[str, int], **every: Any) -> list[dict[str, Any]]:
    """Return so many runs of each class at half their ceiling."""
    outcomes = [outcome for outcome, n in counts.items() for _ in range(n)]
    return [
        {"trace_id": f"{prefix}{k:03d}", "workflow": "research", "outcome": outcome, "cost_usd": 1}
        | every
        for k, outcome in enumerate(outcomes)
    ]


def fork(**credit: float) -> Taxonomy:
    """Return the default taxonomy with other credit."""
    own = default_taxonomy()
    classes = tuple(replace(c, credit=credit.get(c.name, c.credit)) for c in own.classes)
    return replace(own, version="fork", classes=classes)


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return str(path)
