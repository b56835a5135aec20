"""What CONTRIBUTING says of the layout is true."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_path_named_in_contributing_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    # FAMILY.jsonl is a pattern, not a path.
    named = [p for p in re.findall(r"[(`]((?:[a-z_]+/)+[\w.]*)[)`]", text) if "FAMILY" not in p]
    assert len(named) >= 20
    assert [path for path in named if not (ROOT / path).exists()] == []
