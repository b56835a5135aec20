"""The public names of the packages, wherever they stand: modules may be merged, names stay."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.snapshot_files import SNAPSHOTS, WRITE

ROOT = Path(__file__).parents[1]
PACKAGES = ("calibration", "app", "reference_dataset")
KEPT = SNAPSHOTS / "public_names.txt"


def public_names(source: str) -> list[str]:
    """Return each function and class that a module defines for others, with its kind."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            if not node.name.startswith("_"):
                found.append(f"{node.name} {kind}")
    return found


def names_of_packages() -> list[str]:
    """Return the public names of all packages, sorted; one that stands twice is there twice."""
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return sorted(name for path in files for name in public_names(path.read_text("utf-8")))


def test_no_public_name_is_lost_or_new() -> None:
    now = names_of_packages()
    if WRITE:
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        KEPT.write_text("\n".join(now) + "\n", "utf-8")
    kept = KEPT.read_text("utf-8").splitlines() if KEPT.exists() else []
    removed, added = Counter(kept) - Counter(now), Counter(now) - Counter(kept)
    if removed or added:
        lines = [f"- {name}" for name in sorted(removed.elements())]
        lines += [f"+ {name}" for name in sorted(added.elements())]
        pytest.fail("public names (ASR_SNAPSHOTS=write keeps them):\n" + "\n".join(lines), False)
    assert kept == now
