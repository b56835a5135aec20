"""Two production files against each other, with differences that can be worked out by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.success_rate.comparison import ProductionComparison, compare_files
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import InputError
from calibration.reporting import to_json
from calibration.reporting.document import text_lines
from calibration.reporting.sections.success_rate import comparison_document
from calibration.taxonomy import default_taxonomy
from tests.analyses.production_files import alike, fork, write


def compare(a: str, b: str, **asked: Any) -> ProductionComparison:
    return compare_files(a, b, options=ReportOptions(n_resamples=300, compare_to=None), **asked)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    return (
        write(tmp_path / "a.csv", alike("a", {"complete": 70, "abandoned": 30})),
        write(tmp_path / "b.csv", alike("b", {"complete": 90, "abandoned": 10})),
    )


def test_twenty_points_more(pair: tuple[str, str]) -> None:
    data = to_json.data(compare(*pair))
    difference = data["difference"]
    assert difference["value_pp"] == pytest.approx(20.0)
    low, high = difference["interval"]
    # sqrt(.7 x .3 / 100 + .9 x .1 / 100) = .0548; 1.96 of them: 10.7.
    assert (low, high) == pytest.approx((9.3, 30.7), abs=2.0)
    assert difference["p"] < 0.01
    assert (difference["paired"], difference["n_pairs"]) == (False, 0)
    assert difference["mde_pp"] == pytest.approx(2.8 * 5.48, abs=0.6)
    assert data["verdict"] == "better"
    assert data["a"]["asr"]["value"] == pytest.approx(0.7)
    assert data["class_shares"]["abandoned"]["flagged"] is True
    assert to_json.data(compare(*pair[::-1]))["verdict"] == "worse"


def tasks(prefix: str, completed: int) -> list[dict[str, Any]]:
    """Return 40 tasks once each, the first of them complete."""
    return [
        row | {"task_id": f"k{k}", "outcome": "complete" if k < completed else "abandoned"}
        for k, row in enumerate(alike(prefix, {"complete": 40}))
    ]


def test_tasks_of_both_files_are_paired_though_none_repeats(tmp_path: Path) -> None:
    a = write(tmp_path / "a.csv", tasks("a", 20))
    b = write(tmp_path / "b.csv", tasks("b", 24))
    paired, apart = compare(a, b), compare(a, b, paired=False)
    assert (paired.found.paired, paired.found.n_pairs) == (True, 40)
    assert paired.found.asr.estimate.value == pytest.approx(0.1)
    # Four of forty tasks differ: se = sqrt(.1 x .9 / 40) = .047 against .11 for independent sides.
    assert paired.found.asr.estimate.se == pytest.approx(0.047, abs=0.002)
    assert apart.found.asr.estimate.se == pytest.approx(0.111, abs=0.003)
    assert not apart.found.paired
    # A task missing on some runs still pairs the others.
    some = write(tmp_path / "a.csv", [row | {"task_id": row["task_id"] if k else ""}
                                      for k, row in enumerate(tasks("a", 20))])  # fmt: skip
    found = compare(some, b)
    assert (found.found.n_pairs, found.found.n_alone) == (39, (1, 1))
    lines = "\n".join(text_lines(comparison_document(found)))
    assert "paired by 39 tasks; 1 only in the first, 1 only in the second" in lines
    assert "Over the 39 tasks of both alone: +10.3 pp [" in lines
    assert paired.found.paired_only is None


def test_other_weights_are_restated_under_the_default_ones(tmp_path: Path) -> None:
    a = write(tmp_path / "a.csv", alike("a", {"partial_plus": 30, "abandoned": 10}))
    b = write(tmp_path / "b.csv", alike("b", {"partial_plus": 30, "abandoned": 10}))
    found = compare(a, b, taxonomies=(None, fork(partial_plus=0.8)))
    assert found.found.asr.estimate.value == pytest.approx(0.0)
    assert found.found.after.asr.value == pytest.approx(0.3)  # .75 x .4, not x .8
    assert found.restated is not None
    assert found.restated in found.warnings
    assert found.found.after.asr_gross.value == pytest.approx(0.3)
    same = compare(a, b, taxonomies=(fork(partial_plus=0.8), fork(partial_plus=0.8)))
    assert same.restated is None
    assert same.found.after.asr.value == pytest.approx(0.6)


def test_other_ceilings_and_pairs_without_tasks_are_refused(pair: tuple[str, str]) -> None:
    own = default_taxonomy()
    dear = replace(own, workflows=tuple(replace(w, ceiling_usd=9.0) for w in own.workflows))
    with pytest.raises(InputError, match=r"ceilings of the two sides differ .*research 2.0 and 9"):
        compare(*pair, taxonomies=(None, dear))
    with pytest.raises(InputError, match="needs a column task_id"):
        compare(*pair, paired=True)
