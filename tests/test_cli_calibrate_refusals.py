"""`asr calibrate --counts` on tables that are malformed or too small for an answer."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from calibration.analyses.evidence.from_tables import read_tables
from calibration.cli import main
from calibration.errors import InputError
from tests.cli_tables import TABLES, Run, check, content, counted, data, run

__all__ = ["run"]

pytestmark = pytest.mark.usefixtures("few_draws")


ROW = [1, 2, 3, 4, 5]

BAD: list[tuple[object, str]] = [
    ("", "is not JSON"),
    ("[1]", "must hold one JSON object"),
    ("[" * 100_000, "nested too deeply"),
    (content(design=None), "field 'design' is missing"),
    (content(design="random"), "field 'design': must be one of production, reference"),
    (content(classes=["a", "b", "c", "d", 5]), "field 'classes': must be a list"),
    (content(classes=["a", "b", "c", "d", "a"]), "field 'classes': must be a list of 2 to 200"),
    (content(credit=[1, 0]), "field 'credit': must be a list of 5"),
    (content(credit=[1, 0, 0, 0, 1.5]), "field 'credit': must be at most 1, got 1.5"),
    (content(credit=[1, 0, 0, 0, None]), "field 'credit': that of 'abandoned' is missing"),
    (
        content(confusion=[ROW] * 4 + [[1]]),
        "field 'confusion': must be a list of 5, one a class of",
    ),
    (content(confusion=[ROW] * 4 + [[1, 2, 3, 4, -5]]), "field 'confusion': must be a number >= 0"),
    (content(confusion=[ROW] * 4 + [[1, 2, 3, 4, 0.5]]), "field 'confusion': must be a whole"),
    (content(confusion=[ROW] * 4 + [[1, 2, 3, 4, 10**9]]), "must sum to at most 10,000,000 labels"),
    (content(production_judge_counts=[10**30] * 5), "field 'production_judge_counts': must be at"),
    (content(production_judge_counts={"a": 1}), "'a' is no class of the judge"),
    (
        content(production_judge_counts=[5980, 1820, 930, 900, 6]),
        "field 'production_judge_counts': for design 'production' it includes the labelled traces, "
        "but 'abandoned' has 6 and 7 are labelled",
    ),
    (content(judge_classes=[*TABLES["classes"][:4], "x"]), "'abandoned' is not there"),
    (json.dumps(content()).replace("5980", "NaN"), "field 'production_judge_counts': must be a"),
]


@pytest.mark.parametrize(("fields", "says"), BAD, ids=lambda v: str(v)[:60])
def test_a_malformed_table_names_file_and_field(fields: object, says: str, run: Run) -> None:
    with pytest.raises(InputError) as refused:
        read_tables(counted(fields))
    assert str(refused.value).startswith("tables.json: ")
    assert says in str(refused.value)


def test_a_table_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    assert "cannot be read" in run("--counts", "none.json", code=2).stderr
    assert "cannot be read" in run("--counts", tmp_path, code=2).stderr
    Path("binary").write_bytes(bytes(range(256)))
    assert "is not UTF-8" in run("--counts", "binary", code=2).stderr


# What the data do not allow


@pytest.mark.parametrize("design", ["production", "reference"])
@pytest.mark.parametrize(
    "confusion",
    [
        [[0, 0], [0, 0]],
        [[1, 0], [0, 0]],
        [[0, 0], [10, 20]],
        [[40, 0], [0, 0]],
        [[20, 20], [20, 20]],
        [[0, 30], [30, 0]],
        [[50, 0], [0, 50]],
    ],
)
@pytest.mark.parametrize("counts", [[0, 0], [50, 60], [10**9, 10**9]])
@pytest.mark.long
def test_every_small_table_has_an_answer(
    run: Run, design: str, confusion: list[list[int]], counts: list[int]
) -> None:
    labelled = [sum(column) for column in zip(*confusion, strict=True)]
    if design == "production":
        counts = [max(pair) for pair in zip(counts, labelled, strict=True)]
    fields = {
        "design": design, "classes": ["pass", "fail"], "credit": [1, 0], "confusion": confusion,
        "production_judge_counts": counts,
    }  # fmt: skip
    path = str(counted(fields))
    done = CliRunner().invoke(main, ["calibrate", "--counts", path, "--json"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    found = data(done)
    check(found)
    assert done.exit_code == (1 if found["headline"] is None else 0)
    if counts[0] == 50:
        shown = CliRunner().invoke(main, ["calibrate", "--counts", path])
        assert shown.exit_code == done.exit_code
        assert "nan" not in shown.stdout.lower().split()
    one_class = sum(map(any, confusion)) == 1
    assert ("one_class_only" in {n["code"] for n in found["refusals"]}) == one_class
    if one_class:
        assert found["headline"] is None
