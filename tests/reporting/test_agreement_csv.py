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
from calibration.tables.rows import unguard
from tests.analyses.worlds import make_world

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
    again = agreement_on(read_ratings(path, classes=list(result.classes)))
    for name, value in result.study.coefficients.items():
        other = again.study.coefficients[name]
        assert other.value == pytest.approx(value.value, abs=1e-12)
        assert other.interval == pytest.approx(value.interval, abs=1e-12)
    assert EVIL in again.ratings.items
    assert result.study.alpha.value is not None


def test_no_cell_of_an_export_is_a_formula(result: AgreementAnalysis) -> None:
    found = disputed_traces(result)
    assert EVIL in found.trace_ids
    listed = csv_exports.agreement_traces_csv(result, found)
    assert [unguard(row["trace_id"]) for row in cells(listed)] == [
        of.trace_id for of in result.disputed
    ]
    for written in (csv_exports.ratings(result), listed):
        ids = [row.get("item") or row["trace_id"] for row in cells(written)]
        assert f"'{EVIL}" in ids
        assert EVIL not in ids


def test_every_estimate_of_the_json_is_a_row_of_the_csv(result: AgreementAnalysis) -> None:
    rows = {row["what"]: row for row in cells(csv_exports.estimates(result))}
    written = json.loads(json.dumps(to_json.data(result), allow_nan=False))
    alpha = written["coefficients"]["krippendorff_alpha"]
    row = rows["coefficients/krippendorff_alpha"]
    assert float(row["value"]) == alpha["value"]
    assert [float(row["lower"]), float(row["upper"])] == alpha["interval"]
    assert "equal_use_of_classes/differences/ann+complete/difference" in rows
    # No two rows are about the same.
    assert len(rows) == csv_exports.estimates(result).count("\n") - 1
