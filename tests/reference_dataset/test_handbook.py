import re
from pathlib import Path

import pytest

from calibration.taxonomy import default_taxonomy
from reference_dataset.handbook import handbook

NODES = [node.id for node in default_taxonomy().nodes]


def test_every_question_has_a_section_and_nothing_else_has() -> None:
    assert sorted(handbook()) == sorted(NODES)


@pytest.mark.parametrize("node", NODES)
def test_a_section_has_its_rule_and_three_worked_examples(node: str) -> None:
    text = handbook()[node]
    assert text.startswith("Rule. ")
    assert "Worked examples" in text
    examples = re.findall(r"^(\d)\. .*?\b(Yes|No)\..*$", text, flags=re.MULTILINE)
    assert [number for number, _ in examples] == ["1", "2", "3"]
    assert {answer for _, answer in examples} == {"Yes", "No"}, "a boundary has two sides"


def test_sections_are_text_without_marks(tmp_path: Path) -> None:
    (tmp_path / "HANDBOOK.md").write_text(
        "# Title\n\nIntro.\n\n## One? `one`\n\n**Rule.** A *fair* sum of\n2 lines, 3 * 4 * 5.\n\n"
        "### Worked examples: a, or b?\n1. First\n   goes on. **No.**\n2. Second.\n\n"
        "## No question\n\nLeft out.\n\n## Two? `two`\n\nShort.\n",
        encoding="utf-8",
    )
    assert handbook(tmp_path) == {
        "one": (
            "Rule. A fair sum of 2 lines, 3 * 4 * 5.\n\n"
            "Worked examples: a, or b?\n\n1. First goes on. No.\n2. Second."
        ),
        "two": "Short.",
    }
