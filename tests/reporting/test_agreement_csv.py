"""What the exports of agreement hold, and that another tool could recompute it."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from calibration.analyses.agreement.analysis import AgreementAnalysis, analyse_agreement
from calibration.analyses.agreement.ratings import agreement_on, read_ratings
from calibration.analyses.agreement.traces import disputed_traces
from calibration.reporting import csv_exports, to_json
from calibration.reporting.document import text_lines
from calibration.reporting.sections import agreement as text
from calibration.tables.rows import unguard
from tests.analyses.worlds import make_trace, make_world

MIX = ("complete", "partial_plus", "partial_minus", "hallucinated", "abandoned")

EVIL = "=1+1"


@pytest.fixture
def result(tmp_path: Path) -> Iterator[AgreementAnalysis]:
    world = make_world(tmp_path / "w.duckdb", n=20, n_drawn=20, order=[EVIL, *map(str, range(19))],
                       traces={EVIL: {}})  # fmt: skip
    said = {t: MIX[k % 5] for k, t in enumerate(sorted(world.drawn))}
    world.label("Ann", said)
    world.label("Ben", said | {EVIL: "complete", "3": "complete", "5": "complete"})
    world.label("Cem", dict(list(said.items())[:12]))
    yield analyse_agreement(world.store)
    world.store.close()


def cells(written: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(written, newline="")))


def test_the_ratings_give_the_same_alpha_when_they_are_read_again(
    result: AgreementAnalysis, tmp_path: Path
) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(csv_exports.ratings(result), encoding="utf-8", newline="")
    again = agreement_on(read_ratings(path, layout="long", classes=list(result.classes)))
    for name, value in result.study.coefficients.items():
        other = again.study.coefficients[name]
        assert other.value == pytest.approx(value.value, abs=1e-12)
        assert other.interval == pytest.approx(value.interval, abs=1e-12)
    assert EVIL in again.ratings.items
    assert result.study.alpha.value is not None


def test_no_cell_of_an_export_is_a_formula(result: AgreementAnalysis) -> None:
    found = disputed_traces(result)
    assert EVIL in found.trace_ids
    for written in (csv_exports.ratings(result), csv_exports.agreement_traces_csv(result, found)):
        ids = [row.get("item") or row["trace_id"] for row in cells(written)]
        assert f"'{EVIL}" in ids
        assert EVIL not in ids


def test_the_traces_are_those_of_the_list_in_its_order(result: AgreementAnalysis) -> None:
    rows = cells(csv_exports.agreement_traces_csv(result, disputed_traces(result)))
    assert [unguard(row["trace_id"]) for row in rows] == [of.trace_id for of in result.disputed]
    (row,) = [row for row in rows if row["trace_id"] == f"'{EVIL}"]
    assert row["class by ben"] == "complete"
    assert float(row["entropy_bits"]) > 0


def test_every_estimate_of_the_json_is_a_row_of_the_csv(result: AgreementAnalysis) -> None:
    rows = {row["what"]: row for row in cells(csv_exports.estimates(result))}
    written = json.loads(json.dumps(to_json.data(result), allow_nan=False))
    alpha = written["coefficients"]["krippendorff_alpha"]
    row = rows["coefficients/krippendorff_alpha"]
    assert float(row["value"]) == alpha["value"]
    assert [float(row["lower"]), float(row["upper"])] == alpha["interval"]
    assert "pairwise/ann+ben/krippendorff_alpha" in rows
    assert "per_reviewer/cem/change_without" in rows
    assert "per_node/output/disagreement/share" in rows
    assert "equal_use_of_classes/differences/ann+complete/difference" in rows
    # No two rows are about the same.
    assert len(rows) == csv_exports.estimates(result).count("\n") - 1


def test_text_and_json_say_the_same_next_steps(result: AgreementAnalysis) -> None:
    lines = list(text_lines(text.agreement(result)))
    steps = to_json.data(result)["next_steps"]
    assert steps[0]["kind"] == "settle"
    assert f"  1. {steps[0]['what']}" in lines
    assert f"     {steps[-1]['why']}" in lines
    assert steps[0]["traces"] == [of.trace_id for of in result.disputed]
    assert make_trace(EVIL).trace_id in steps[0]["traces"]
