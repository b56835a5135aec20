"""The public names of the packages, wherever they stand: modules may be merged, names stay."""

import ast
from pathlib import Path

from tests.snapshot_files import SNAPSHOTS, hold

ROOT = Path(__file__).parents[1]
PACKAGES = ("calibration", "app", "reference_dataset")


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
    hold(SNAPSHOTS / "public_names.txt", "\n".join(names_of_packages()) + "\n")
