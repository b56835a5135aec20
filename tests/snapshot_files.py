"""Texts kept in files: compared byte by byte, and written anew with ``ASR_SNAPSHOTS=write``."""

import os
from collections.abc import Callable, Collection
from difflib import unified_diff
from itertools import islice
from pathlib import Path

import pytest

SNAPSHOTS = Path(__file__).parent / "snapshots"
WRITE = os.environ.get("ASR_SNAPSHOTS") == "write"
MOST_LINES = 60


def hold(path: Path, text: str, alike: Callable[[str, str], bool] | None = None) -> None:
    """Compare a text with the one kept, or keep it; a failure shows where they differ.

    Lines that are alike count as the same.
    """
    if WRITE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return
    if not path.exists():
        pytest.fail(f"{path} is missing: `make snapshots` writes it", pytrace=False)
    kept = path.read_bytes().decode()
    if kept == text:
        return
    old, new = kept.splitlines(), text.splitlines()
    if alike is not None and len(old) == len(new):
        new = [o if alike(o, n) else n for o, n in zip(old, new, strict=True)]
        if old == new:
            return
    lines = unified_diff(old, new, "kept", "now", n=2, lineterm="")
    shown = [line[:400] for line in islice(lines, MOST_LINES + 1)]
    if len(shown) > MOST_LINES:
        shown[MOST_LINES:] = ["... and more"]
    told = "\n".join(shown) or "only the ends of lines differ"
    pytest.fail(f"{path.name} has changed:\n{told}", pytrace=False)


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
