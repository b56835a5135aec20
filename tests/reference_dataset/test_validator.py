"""The published set keeps every rule, and each rule notices when it alone is broken."""

import shutil
from inspect import get_annotations, getmembers, isfunction
from pathlib import Path

import pytest

from reference_dataset.loader import LABELS
from reference_dataset.set_rules import SET_RULES
from reference_dataset.trace_rules import TRACE_RULES
from reference_dataset.validator import validate
from reference_dataset.words import RUN
from tests.reference_dataset import breaks_of_rows, breaks_of_sets
from tests.reference_dataset.breaks_of_rows import too_short
from tests.reference_dataset.breaks_of_sets import borrowed
from tests.reference_dataset.broken import Break, Broken
from tests.reference_dataset.copies import Copy

# A second reading quotes the text and is held against the class, so it breaks when they do.
AGAIN = {"second-pass", "settlements"}

BREAKS: dict[str, Break] = {**breaks_of_rows.BREAKS, **breaks_of_sets.BREAKS}

for module in (breaks_of_rows, breaks_of_sets):
    BREAKS |= {
        n: f
        for n, f in getmembers(module, isfunction)
        if get_annotations(f).get("return") is Broken
    }


def test_the_published_set_keeps_every_rule() -> None:
    assert [str(problem) for problem in validate()] == []


def test_a_copy_written_again_keeps_every_rule(copy: Copy) -> None:
    """What the tests below write is broken by the test, not by the writing."""
    for file in (LABELS, *(f"{name}.jsonl" for name in copy.families)):
        copy.write(file, copy.read(file))
    copy.write_forms(copy.forms())
    copy.seal()
    assert validate(copy.folder) == []


@pytest.mark.parametrize(("outcome", "n_words"), [("complete", 150), ("abandoned", 80)])
def test_just_long_enough(copy: Copy, outcome: str, n_words: int) -> None:
    too_short(outcome, n_words)(copy)
    copy.seal()
    assert "length" not in {problem.rule for problem in validate(copy.folder)}


def test_eleven_words_may_be_shared(copy: Copy) -> None:
    for part in ("response", "prompt"):
        copy.put_trace(borrowed(copy, part, RUN - 1))
    copy.seal()
    assert validate(copy.folder) == []


@pytest.mark.parametrize("name", BREAKS)
def test_breaking_one_rule_names_it(copy: Copy, name: str) -> None:
    expected = BREAKS[name](copy)
    if expected.rule not in ("checksums", "files"):
        copy.seal()
    found = validate(copy.folder)
    named = [p for p in found if (p.rule, p.file, p.line) == (expected.rule, *expected[1:3])]
    assert any(expected.says in p.message for p in named), "\n".join(map(str, found))
    others = {problem.rule for problem in found} - {expected.rule, *expected.also} - AGAIN
    assert not others, "\n".join(map(str, found))


def test_a_problem_reads_as_file_line_rule_message(copy: Copy) -> None:
    expected = BREAKS["a slower run"](copy)
    copy.seal()
    (shown,) = map(str, validate(copy.folder))
    assert shown.startswith(f"{expected.file}, line {expected.line}: latency: ")
    copy.path("SHA256SUMS").unlink()
    assert "SHA256SUMS: checksums: is missing" in map(str, validate(copy.folder))


def test_no_rule_goes_untested(base: Path, tmp_path: Path) -> None:
    broken = set()
    for test in BREAKS.values():
        folder = Path(shutil.copytree(base, tmp_path / "set"))
        broken.add(test(Copy(folder)).rule)
        shutil.rmtree(folder)
    # These have tests of their own, on rows made for them.
    tested = broken | {"composition"} | AGAIN
    assert tested == {*TRACE_RULES, *SET_RULES, "schema", "files", "checksums"}
