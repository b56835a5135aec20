"""`asr compare` of several files, or of the groups of one: names, refusals, one page for all."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.success_rate.comparison import (
    compare_files,
    compare_groups_of,
    compare_several,
)
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import InputError
from calibration.reporting import to_json
from calibration.reporting.document import markdown, text_lines
from calibration.reporting.render_html import html
from calibration.reporting.sections.ranking import document
from tests.analyses.production_files import alike, fork, write
from tests.cli_runs import Run

OPTIONS = ReportOptions(n_resamples=100, compare_to=None)
PAGE = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
FEW = ("--resamples", 100)


def tried(name: str, done: int) -> list[dict[str, Any]]:
    """Return two trials of each of 60 tasks, so many of 50 of them complete."""
    return [
        {
            "trace_id": f"{name}{task}-{trial}", "workflow": "research", "cost_usd": 1,
            "outcome": "complete"
            if (task * 7 + trial * 13 + 3 * task * trial) % 50 < done
            else "partial_minus",
            "task_id": f"k{task}", "trial": trial, "agent_version": name,
        }
        for task in range(60)
        for trial in range(2)
    ]  # fmt: skip


def three() -> None:
    for name, done in (("old", 25), ("new", 34), ("other", 27)):
        write(Path(f"{name}.csv"), tried(name, done))


def test_the_example_of_the_documents(asr: Run) -> None:
    three()
    ((words, shown),) = re.findall(r"```console\n\$ asr (compare .*)\n([^`]*)```", PAGE)
    assert asr(*words.split()).stdout == shown


def test_every_output_has_one_page_and_groups_are_as_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    three()
    files = ("other.csv", "old.csv", "new.csv")
    found = compare_several(files, options=OPTIONS)
    json = to_json.data(found)
    assert (json["format"], json["baseline"]) == ("asr-ranking/1", "other")
    ranks = {n: tuple(of["rank"]) for n, of in json["runs"].items()}
    assert ranks == {"new": (1, 1), "other": (2, 3), "old": (2, 3)}
    alone = compare_files(*files[:2], options=OPTIONS).found
    pair = found.found.pairs[0]
    assert (pair.difference, pair.n_pairs) == (alone.asr, alone.n_pairs)
    page = document(found)
    for shown in (markdown(page), html(page), "\n".join(text_lines(page))):
        assert "new has the highest rate: it is shown to be above all others." in shown
        assert "All pairs" in shown
        assert "+18.3 pp" in shown
    whole = [row for n, d in (("old", 25), ("new", 34), ("other", 27)) for row in tried(n, d)]
    every = write(Path("all.csv"), [*whole, whole[0] | {"trace_id": "x", "agent_version": ""}])
    groups = compare_groups_of(every, "agent_version", baseline="other", options=OPTIONS)
    assert [(of.name, of.rate.asr.value, of.rank) for of in groups.found.runs] == [
        (of.name, of.rate.asr.value, of.rank) for of in found.found.runs
    ]
    assert [of.n_pairs for of in groups.found.pairs] == [60, 60, 60]
    assert groups.warnings == ("1 runs have no agent_version and are in no group.",)


def test_names_and_numbers_of_runs_are_checked(asr: Run) -> None:
    three()
    files = ("old.csv", "new.csv", "other.csv")
    Path("again").mkdir()
    again = write(Path("again/old.csv"), tried("old", 20))
    for words, says in (
        ((*files, again), "two sets of runs are called 'old'"),
        ((*files, "--name", "a", "--name", "b"), "one for each of 3 sets of runs, got 2"),
        ((*files, "--name", "a", "--name", "a", "--name", "b"), "called 'a'"),
        ((*files, "--name", "a", "--name", "b\x1b[31m", "--name", "c"), "control characters"),
        ((*files, "--baseline", "none"), "there is no 'none'; there are old, new, other"),
        ((files[0],), "2 to 20 sets of runs are compared, got 1"),
        ((*files[:1] * 21,), "2 to 20 sets of runs are compared, got 21: leave some out"),
        ((files[0], "--by", "trace_id"), "2 to 20 groups by 'trace_id' are compared, got 120"),
        ((*files, "--by", "model"), "--by compares the groups of one input"),
        ((*files, "--margin", "2"), "--margin is for two sets of runs"),
        ((*files, "--taxonomy", "a.toml", "--taxonomy", "b.toml"), "a.toml"),
        ((*files, "--paired", "--column", "task_id="), "needs a column task_id in every set"),
    ):
        refused = asr("compare", *words, *FEW, code=2)
        assert says in refused.stderr, words
    named = ("--name", "before", "--name", "after", *FEW)
    assert "before" in asr("compare", again, "old.csv", *named).stdout


def test_other_weights_are_restated_and_other_ceilings_refused(tmp_path: Path) -> None:
    mix = {"partial_plus": 30, "abandoned": 10}
    files = [write(tmp_path / f"{n}.csv", alike(n, mix)) for n in "abc"]
    found = compare_several(files, options=OPTIONS, taxonomies=(None, fork(partial_plus=0.8), None))
    assert [of.rate.asr.value for of in found.found.runs] == pytest.approx([0.3, 0.3, 0.3])
    assert found.restated is not None
    assert found.warnings == (found.restated,)
    own = compare_several(files, options=OPTIONS, taxonomies=(fork(partial_plus=0.8),))
    assert own.restated is None
    assert own.found.runs[0].rate.asr.value == pytest.approx(0.6)
    dear = fork()
    dear = replace(dear, workflows=tuple(replace(w, ceiling_usd=9.0) for w in dear.workflows))
    with pytest.raises(InputError, match=r"ceilings of 'a' and 'c' differ \(research 2.0 and 9"):
        compare_several(files, options=OPTIONS, taxonomies=(None, None, dear))
