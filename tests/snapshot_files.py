"""Texts kept in files: compared byte by byte, and written anew with ``ASR_SNAPSHOTS=write``."""

import os
from collections.abc import Collection
from difflib import unified_diff
from itertools import islice
from pathlib import Path

import pytest

SNAPSHOTS = Path(__file__).parent / "snapshots"
WRITE = os.environ.get("ASR_SNAPSHOTS") == "write"
MOST_LINES = 60


def hold(path: Path, text: str) -> None:
    """Compare a text with the one kept, or keep it; a failure shows where they differ."""
    if WRITE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return
    if not path.exists():
        pytest.fail(f"{path} is missing: ASR_SNAPSHOTS=write writes it", pytrace=False)
    kept = path.read_bytes().decode()
    if kept != text:
        pytest.fail(f"{path.name} has changed:\n{difference(kept, text)}", pytrace=False)


def difference(kept: str, text: str) -> str:
    """Return the first lines of a unified diff."""
    lines = unified_diff(kept.splitlines(), text.splitlines(), "kept", "now", n=2, lineterm="")
    shown = list(islice(lines, MOST_LINES + 1))
    if not shown:
        return "only the ends of lines differ"
    if len(shown) > MOST_LINES:
        shown[MOST_LINES:] = ["... and more"]
    return "\n".join(shown)


def hold_names(folder: Path, names: Collection[str]) -> None:
    """Ask for exactly these files in a folder; superfluous ones are removed when writing."""
    there = {path.name for path in folder.glob("*.txt")}
    if WRITE:
        for name in there - set(names):
            (folder / name).unlink()
        return
    missing, superfluous = sorted(set(names) - there), sorted(there - set(names))
    assert not missing, f"missing in {folder}: {missing}"
    assert not superfluous, f"superfluous in {folder}: {superfluous}"
