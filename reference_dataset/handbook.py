"""The reviewer handbook, by question."""

import re
from functools import cache
from pathlib import Path

from reference_dataset.loader import published


@cache
def handbook(folder: Path | None = None) -> dict[str, str]:
    """Return what the handbook says on each question, by the id of its node.

    A section of a question starts with a heading that ends in the id in backticks.
    """
    path = (folder or published()) / "HANDBOOK.md"
    sections: dict[str, str] = {}
    for part in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        node = re.search(r"`(\w+)`\s*$", head)
        if node:
            sections[node[1]] = _plain(body.strip())
    return sections


def _plain(markdown: str) -> str:
    """Drop the marks and line breaks of Markdown: the page shows the handbook as text."""
    text = re.sub(r"^### (.*)$", r"\1\n", markdown, flags=re.MULTILINE)
    text = re.sub(r"(?<=\S)\n(?=[^\S\n]*(?!\d+\. )[^\s])[^\S\n]*", " ", text)
    text = re.sub(r"(\*{1,2})([^*\s][^*]*)\1", r"\2", text)
    return text.replace("`", "")
