"""Sections of one run, and the page in docs/ that they are added to."""

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table; numbers are rounded for reading."""
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    if isinstance(value, float):
        if np.isnan(value):
            return "none"
        return f"{value:,.0f}" if value >= 20 else f"{value:.2g}"
    return str(value)


def run_head(packages: Sequence[str], *, load: float, seed: int) -> str:
    """Return the title of a section: when, with which versions, on what."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return (
        f"## {datetime.now(UTC):%Y-%m-%d %H:%M} UTC\n\n{versions}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores ({platform.machine()}), "
        f"{memory / 1e9:.0f} GB of memory, load {load:.1f} before the start, seed {seed}.\n\n"
    )


def add_section(path: Path, section: str, *, head: str) -> None:
    """Put a section in front of those of earlier runs."""
    earlier = ""
    if path.exists():
        _, mark, rest = path.read_text(encoding="utf-8").partition("\n## ")
        earlier = mark + rest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{head}\n{section.rstrip()}\n{earlier}", encoding="utf-8")
