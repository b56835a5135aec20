"""No text for users has a word that the glossary retires."""

import re
from pathlib import Path

from tests.sentences import ROOT, sentences

GLOSSARY = ROOT / "docs" / "glossary.md"


def retired() -> list[tuple[str, str]]:
    """Return the retired wordings and what to write instead."""
    section = GLOSSARY.read_text(encoding="utf-8").split("## Retired wording")[1]
    rows = re.findall(r"^\| (?!retired|---)(.+?) \| (.+?) \|$", section, flags=re.MULTILINE)
    assert len(rows) > 15
    return rows


def test_no_text_for_users_has_a_retired_wording() -> None:
    told = [(file, line, text, " ".join(text.split()).lower()) for file, line, text in sentences()]
    assert len(told) > 2_000
    found = [
        f"{file}:{line}: {old!r}: write {new!r} in {text[:80]!r}"
        for old, new in retired()
        for file, line, text, plain in told
        if old.lower() in plain
    ]
    assert found == []


def test_help_pages_and_scripts_are_among_the_texts() -> None:
    texts = {(Path(file).suffix, " ".join(text.split())) for file, _, text in sentences()}
    assert (".js", "All saved") in texts
    assert any(kind == ".py" and "asr reference practise" in text for kind, text in texts)
    assert not any("Return the retired" in text for _, text in texts)
