"""What the documents say of the layout is true, and every screenshot that is kept is shown."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_path_named_in_contributing_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    # FAMILY.jsonl is a pattern, not a path.
    named = [p for p in re.findall(r"[(`]((?:[a-z_]+/)+[\w.]*)[)`]", text) if "FAMILY" not in p]
    assert len(named) >= 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_screenshot_is_shown_by_a_document_and_there_are_few() -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = "".join(document.read_text(encoding="utf-8") for document in documents)
    kept = {picture.name for picture in (ROOT / "docs" / "screens").iterdir()}
    assert kept == set(re.findall(r"screens/([\w-]+\.png)", texts))
    assert len(kept) <= 12
