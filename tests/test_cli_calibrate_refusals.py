"""`asr calibrate --counts` on tables that are malformed or too small for an answer."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from calibration.cli import main
from tests.cli_tables import FIXTURES, TABLES, Run, check, content, counted, data, run, three

__all__ = ["run"]

pytestmark = pytest.mark.usefixtures("few_draws")


ROW = [1, 2, 3, 4, 5]

BAD: list[tuple[object, str]] = [
    ("", "is not JSON"),
    ("{", "is not JSON"),
    ("[1]", "must hold one JSON object"),
    ("[" * 100_000, "nested too deeply"),
    ('{"design": NaN}', "field 'classes' is missing"),
    (content(design=None), "field 'design' is missing"),
    (content(classes=None), "field 'classes' is missing"),
    (content(credit=None), "field 'credit' is missing"),
    (content(confusion=None), "field 'confusion' is missing"),
    (content(production_judge_counts=None), "field 'production_judge_counts' is missing"),
    (content(design="random"), "field 'design': must be one of production, reference"),
    (content(design=1), "field 'design': must be one of"),
    (content(classes=["a"]), "field 'classes': must be a list of 2"),
    (content(classes="abcde"), "field 'classes': must be a list"),
    (content(classes=["a", "b", "c", "d", 5]), "field 'classes': must be a list"),
    (content(classes=["a", "b", "c", "d", " "]), "field 'classes': must be a list"),
    (content(classes=["a", "b", "c", "d", "a"]), "field 'classes': must be a list of 2 to 200"),
    (content(credit=[1, 0]), "field 'credit': must be a list of 5"),
    (content(credit=[1, 0, 0, 0, 1.5]), "field 'credit': must be at most 1, got 1.5"),
    (content(credit=[1, 0, 0, 0, -1]), "field 'credit': must be a number >= 0"),
    (content(credit=[1, 0, 0, 0, True]), "field 'credit': must be a number"),
    (content(credit=[1, 0, 0, 0, None]), "field 'credit': that of 'abandoned' is missing"),
    (content(credit="1,0,0,0,0"), "field 'credit': must be a list"),
    (content(confusion=[ROW] * 4), "field 'confusion': must be a list of 5, one a class of the h"),
    (
        content(confusion=[ROW] * 4 + [[1]]),
        "field 'confusion': must be a list of 5, one a class of",
    ),
    (content(confusion=[ROW] * 4 + [3]), "field 'confusion': must be a list of 5"),
    (content(confusion=[ROW] * 4 + [[1, 2, 3, 4, -5]]), "field 'confusion': must be a number >= 0"),
    (content(confusion=[ROW] * 4 + [[1, 2, 3, 4, 0.5]]), "field 'confusion': must be a whole"),
    (content(confusion=[ROW] * 4 + [[1, 2, 3, 4, "5"]]), "field 'confusion': must be a number"),
    (content(confusion=[ROW] * 4 + [[1, 2, 3, 4, None]]), "field 'confusion': the count of"),
    (content(confusion=[ROW] * 4 + [[1, 2, 3, 4, 10**9]]), "must sum to at most 10,000,000 labels"),
    (content(production_judge_counts=[1, 2, 3, 4]), "field 'production_judge_counts': must be a"),
    (content(production_judge_counts=[9e99] * 5), "field 'production_judge_counts': must be at"),
    (content(production_judge_counts=[10**30] * 5), "field 'production_judge_counts': must be at"),
    (content(production_judge_counts={"a": 1}), "'a' is no class of the judge"),
    (
        content(production_judge_counts=[5980, 1820, 930, 900, 6]),
        "field 'production_judge_counts': for design 'production' it includes the labelled traces, "
        "but 'abandoned' has 6 and 7 are labelled",
    ),
    (content(judge_classes=[*TABLES["classes"][:4], "x"]), "'abandoned' is not there"),
    (content(judge_classes=[*TABLES["classes"], "x"]), "field 'confusion': must be a list of 6"),
    (content(judge_classes=3), "field 'judge_classes': must be a list"),
    (
        json.dumps(content()).replace("5980", "NaN"),
        "field 'production_judge_counts': must be a num",
    ),
    (json.dumps(content()).replace("5980", "Infinity"), "field 'production_judge_counts'"),
]


@pytest.mark.parametrize(("fields", "says"), BAD, ids=lambda v: str(v)[:60])
def test_a_malformed_table_names_file_and_field(run: Run, fields: object, says: str) -> None:
    stderr = run("--counts", counted(fields), code=2).stderr
    assert stderr.startswith("error: tables.json: ")
    assert says in stderr
    assert stderr.count("\n") == 1


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


def test_labels_of_failures_only_show_recall_and_no_rate(run: Run) -> None:
    words = [
        "--human", FIXTURES / "failures_only_labels.csv",
        "--verdicts", FIXTURES / "failures_only_verdicts.csv", "--credit", "success=1,failure=0",
    ]  # fmt: skip
    found = data(run(*words, "--json", code=1))
    assert found["headline"] is None
    assert {"one_class_only", "not_a_sample"} <= {n["code"] for n in found["refusals"]}
    assert {n for n, e in found["estimates"].items() if e["value"] is not None} == {"judge_raw"}
    assert three(found["judge"]["per_class"]["failure"]["recall"])[1] == pytest.approx(
        0.757, abs=1e-3
    )
    assert found["label_worth"]["value"] is None
    assert "of the human class failure" in found["label_worth"]["status"]
    assert len(found["set_aside"]) == 2
    shown = run(*words, code=1)
    for line in (
        "for the rate: no",
        "only known of failure: 1.000 [0.758, 1.000]",
        "all 12 labelled traces are of the human class failure",
        "if they were chosen by their verdict, recall is 1 or 0 by construction",
        "line 14, 15: the trace has no row in the verdict file",
    ):
        assert line in shown.stdout
    assert (
        shown.stderr == "error: no corrected rate can be given; the refusals say what would help\n"
    )
