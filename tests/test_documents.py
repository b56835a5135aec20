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


def test_every_path_named_in_the_threats_exists_and_each_threat_has_code_and_tests() -> None:
    text = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
    threats, _, out_of_scope = text.partition("## Out of scope")
    assert "`" not in out_of_scope
    path = r"`((?:\.?[a-z_]+/)[\w./-]+)`"
    rows = [line.strip("|").split("|") for line in threats.splitlines() if line.count("|") == 6]
    rows = [row for row in rows if row[0].strip() not in ("threat", "---")]
    assert len(rows) >= 40
    for threat, _, code, tests, _ in rows:
        for named in (code, tests):
            paths = re.findall(path, named)
            assert paths, threat
            assert named.count("`") == 2 * len(paths), threat
            assert [each for each in paths if not (ROOT / each).is_file()] == []
        assert "tests/" in tests, threat


def test_every_link_to_a_file_leads_to_one() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    links = [
        (document, link)
        for document in documents
        for link in re.findall(r"\]\(([^)\s#]+)", document.read_text(encoding="utf-8"))
        if "://" not in link
    ]
    assert len(links) >= 60
    assert [(d.name, link) for d, link in links if not (d.parent / link).exists()] == []


def test_every_screenshot_is_shown_by_a_document_and_there_are_few() -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = "".join(document.read_text(encoding="utf-8") for document in documents)
    kept = {picture.name for picture in (ROOT / "docs" / "screens").iterdir()}
    assert kept == set(re.findall(r"screens/([\w-]+\.png)", texts))
    assert len(kept) <= 12
