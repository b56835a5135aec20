"""The published set keeps every rule, and each rule notices when it alone is broken."""

import shutil
from pathlib import Path

import pytest

from reference_dataset.loader import LABELS
from reference_dataset.records import Problem
from reference_dataset.set_rules import SET_RULES
from reference_dataset.trace_rules import TRACE_RULES
from reference_dataset.validator import validate
from reference_dataset.words import RUN
from tests.reference_dataset import breaks_of_form, breaks_of_sets, breaks_of_traces
from tests.reference_dataset.breaks_of_sets import borrowed
from tests.reference_dataset.broken import Broken, outcome_is
from tests.reference_dataset.copies import Copy, plain

# A second reading quotes the text and is held against the class, so it breaks when they do.
AGAIN = {"second-pass", "settlements"}

BREAKS = {**breaks_of_form.BREAKS, **breaks_of_traces.BREAKS, **breaks_of_sets.BREAKS}


def test_the_published_set_keeps_every_rule() -> None:
    assert [str(problem) for problem in validate()] == []


def test_a_copy_keeps_every_rule(copy: Copy) -> None:
    copy.seal()
    assert validate(copy.folder) == []


def test_a_copy_written_again_keeps_every_rule(copy: Copy) -> None:
    """What the tests below write is broken by the test, not by the writing."""
    for file in (LABELS, *(f"{name}.jsonl" for name in copy.families)):
        copy.write(file, copy.read(file))
    copy.write_forms(copy.forms())
    copy.seal()
    assert validate(copy.folder) == []


@pytest.mark.parametrize(("outcome", "n_words"), [("complete", 150), ("abandoned", 80)])
def test_just_long_enough(copy: Copy, outcome: str, n_words: int) -> None:
    trace, label = copy.find(outcome_is(outcome))
    plain(trace, label, n_words=n_words)
    copy.put_label(label)
    copy.put_trace(trace)
    copy.seal()
    assert "length" not in {problem.rule for problem in validate(copy.folder)}


def test_eleven_words_may_be_shared(copy: Copy) -> None:
    for part in ("response", "prompt"):
        copy.put_trace(borrowed(copy, part, RUN - 1)[1])
    copy.seal()
    assert validate(copy.folder) == []


@pytest.mark.parametrize("name", BREAKS)
def test_breaking_one_rule_names_it(copy: Copy, name: str) -> None:
    expected = BREAKS[name](copy)
    if expected.seal:
        copy.seal()
    found = validate(copy.folder)
    assert any(is_named(problem, expected) for problem in found), "\n".join(map(str, found))
    others = {problem.rule for problem in found} - {expected.rule, *expected.also} - AGAIN
    assert not others, "\n".join(map(str, found))


def is_named(problem: Problem, expected: Broken) -> bool:
    return (problem.rule, problem.file, problem.line) == (
        expected.rule,
        expected.file,
        expected.line,
    ) and expected.says in problem.message


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
