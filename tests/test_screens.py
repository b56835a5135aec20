"""The screenshots that are kept are those that a document shows."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_screenshot_is_shown_by_a_document_and_there_are_few() -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = "".join(document.read_text(encoding="utf-8") for document in documents)
    kept = {picture.name for picture in (ROOT / "docs" / "screens").iterdir()}
    assert kept == set(re.findall(r"screens/([\w-]+\.png)", texts))
    assert len(kept) <= 12
