"""`asr calibrate` on tables and files: outside values, names of columns, ceilings, refusals."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from calibration.cli import main
from tests.cli_runs import (
    CASE_A,
    TABLES,
    Run,
    check,
    content,
    counted,
    data,
    write_csv,
    write_labelled,
)

pytestmark = pytest.mark.usefixtures("few_draws")


def test_rows_and_columns_go_by_name(calibrate: Run) -> None:
    """Two more verdicts than classes: in the order of the classes, in another one, as objects."""
    table = [[*row, n, 1] for n, row in enumerate(CASE_A["reference_confusion_true_x_judge"])]
    counts, classes = [*CASE_A["production_judge_counts"], 300, 120], TABLES["classes"]
    names = [*classes, "no_verdict", "split"]
    inner = content("a", confusion=table, production_judge_counts=counts, judge_classes=names)
    order = [6, 2, 0, 5, 4, 1, 3]
    outer = content(
        "a",
        confusion=[[row[k] for k in order] for row in table],
        production_judge_counts=[counts[k] for k in order],
        judge_classes=[names[k] for k in order],
    )

    def named(keys: list[str], values: list[Any]) -> dict[str, Any]:
        return dict(reversed(list(zip(keys, values, strict=True))))

    objects = inner | {
        "credit": named(classes, inner["credit"]),
        "confusion": named(classes, [named(names, row) for row in table]),
        "production_judge_counts": named(names, counts),
    }
    one, *others = (
        data(calibrate("--counts", counted(of), "--json")) for of in (inner, outer, objects)
    )
    assert one["n_production"] == 10_420
    assert one["estimates"]["inversion"]["value"] is not None
    assert one["confusion"]["columns_verdict"] == names
    assert others == [one, one]


def judged(name: str, *rows: str, column: str = "") -> list[object]:
    """Write 40 labels, half of them pass, and rows of verdicts; return the options for both."""
    labels = [f"t{k},{'pass' if k % 2 else 'fail'}" for k in range(40)]
    human = write_csv("human.csv", "trace_id,outcome", *labels)
    verdicts = write_csv(name, f"trace_id,outcome{column}", *rows)
    return ["--human", human, "--verdicts", verdicts, "--credit", "pass=1,fail=0", "--brief"]


def test_a_table_whose_judge_is_not_named_takes_the_name_that_is_given(calibrate: Run) -> None:
    rows = [f"t{k},{'pass' if k % 3 else 'fail'}" for k in range(60)]
    unnamed = data(calibrate(*judged("v.csv", *rows), "--json"))
    named = data(calibrate(*judged("v.csv", *rows), "--judge", "strict", "--json"))
    assert ("judge_id" in unnamed, named["judge_id"]) == (False, "strict")
    assert named["estimates"] == unnamed["estimates"]
    blank = data(
        calibrate(
            *judged("b.csv", *(f"{row}," for row in rows), column=",judge"), "--judge", "strict",
            "--json",
        )
    )  # fmt: skip
    assert (blank["judge_id"], blank["estimates"]) == ("strict", unnamed["estimates"])
    table = write_csv("t.csv", "trace_id,human,verdict", *(
        f"{row},{('fail', 'pass')[k % 2]}" for k, row in enumerate(rows[:40])
    ))  # fmt: skip
    options = ["--table", table, "--credit", "pass=1,fail=0", "--brief",
               "--column", "human=verdict", "--column", "verdict=human"]  # fmt: skip
    assert data(calibrate(*options, "--json"))["judge_id"] == "human"
    assert data(calibrate(*options, "--judge", "gpt 4", "--json"))["judge_id"] == "gpt 4"
    # Another judge of a table without names is none of its judges.
    refused = calibrate(*judged("v.csv", *rows), "--judge", "a", "--against", "b", code=2)
    assert "v.csv: no judge 'b'; there are none named" in refused.stderr


def test_several_judges_without_a_choice_are_a_question_in_words(calibrate: Run) -> None:
    together = [f"t{k},pass,{judge}" for judge in ("b", "gpt 4", "a") for k in range(60)]
    # Judges of different traces are as little one judge.
    apart = [f"t{k},pass,{'ab'[k % 2]}" for k in range(60)]
    some = [f"t{k},pass,{'' if k % 2 else 'strict one'}" for k in range(60)]
    many = [f"t{k},pass,judge {k % 9}" for k in range(60)]
    for rows, says in (
        (together, "3 judges (b, gpt 4, a): --judge b"),
        (apart, "2 judges (a, b): --judge a"),
        (some, "2 judges (strict one, one without a name): --judge 'strict one'"),
        (many, "9 judges (judge 0, judge 1, judge 2, judge 3, judge 4, judge 5, 3 more): "
               "--judge 'judge 0'"),
    ):  # fmt: skip
        options = judged("verdicts.csv", *rows, column=",judge")
        stderr = calibrate(*options, code=2).stderr
        assert stderr == f"error: verdicts.csv holds verdicts of {says}\n"
    assert "no judge 'c'" in calibrate(*options, "--judge", "c", code=2).stderr


@pytest.mark.parametrize(
    ("wrong_of_ten", "says"),
    [
        (8, "The verdicts look reversed: kappa -0.60 ["),
        (10, "The verdicts look reversed: kappa -1.00."),
        (5, None),  # a judge that guesses
        (2, None),
    ],
)
def test_verdicts_that_look_reversed_are_said_first(
    calibrate: Run, wrong_of_ten: int, says: str | None
) -> None:
    words = ("fail", "pass")
    rows = [
        f"t{k},{words[(k % 2) ^ (k // 2 % 10 < wrong_of_ten)]}" for k in range(40)
    ] + [f"u{k},pass" for k in range(10)]  # fmt: skip
    options = judged("v.csv", *rows)
    _title, first, rate, *_ = calibrate(*options).stdout.splitlines()
    notes = data(calibrate(*options, "--json"))["notes"]
    if says is None:
        assert "succeed" in first
        assert not any("reversed" in note for note in notes)
        return
    assert first.strip().startswith(says)
    assert first.endswith("The rate is still valid; check which word is a pass.")
    assert "succeed" in rate
    assert notes[0] == first.strip()


def test_a_judge_that_says_one_thing_only_is_said_first(calibrate: Run) -> None:
    for other in ("", "no_verdict"):
        rows = [f"t{k},{'pass' if k % 5 else other or 'pass'}" for k in range(60)]
        lines = calibrate(*judged("v.csv", *rows)).stdout.splitlines()
        assert (
            lines[1].strip().startswith("The judge gives one verdict only: pass. It tells no run")
        )
    rows[0] = "t0,fail"
    assert "one verdict only" not in calibrate(*judged("v.csv", *rows)).stdout


def test_ceilings_by_option_and_by_file(calibrate: Run) -> None:
    words = write_labelled()
    ceilings = write_csv("c.csv", "workflow,ceiling_usd", "x,0.2", "y,0.2")

    def net(*more: object) -> float:
        found = data(calibrate(*words, *more, "--json"))
        return float(found["estimates"]["judge_raw"]["value"])

    gross = net()
    assert gross == pytest.approx(0.7)
    # Half of the credit of a, and nothing is left of b.
    assert net("--ceiling", 0.2) == pytest.approx(0.25)
    assert net("--ceilings", ceilings) == pytest.approx(0.25)
    of_y = net("--ceiling", 0.2, "--workflow", "y")
    assert 0.25 < of_y < gross
    assert net("--ceilings", ceilings, "--ceiling", 1, "--workflow", "x") == pytest.approx(of_y)


def test_the_worked_example_of_the_docs(calibrate: Run, full_draws: None) -> None:
    root = Path(__file__).parents[1]
    docs = (root / "docs" / "methods" / "calibration.md").read_text(encoding="utf-8")
    block = docs.split("```json\n")[1].split("```")[0]
    shown = calibrate("--counts", counted(block)).stdout
    given = docs.split("`asr calibrate --counts tables.json` gives ")[1].split(", where")[0]
    assert f"For the rate: yes, corrected it is {given}" in shown
    raw = docs.split("where the uncorrected rate is ")[1].split(".\n")[0]
    assert f"Uncorrected, the judge gives {raw}" in shown
    labels = docs.split("```csv\n")[1].split("```")[0]
    human = write_csv("labels.csv", *labels.splitlines())
    verdicts = write_csv(
        "verdicts.csv", "trace_id,outcome,workflow,cost_usd", "run-001,complete,refunds,0.031",
        "run-002,,refunds,", "run-003,split,refunds,0.018",
    )  # fmt: skip
    found = data(calibrate("--human", human, "--verdicts", verdicts, "--json", code=1))
    assert found["human"]["n_adjudicated"] == 1
    assert found["skipped"] == 1
    assert found["confusion"]["columns_verdict"][-2:] == ["no_verdict", "split"]


# Field, what stands there instead (null: nothing), and why not; ROWS are four good ones.
MALFORMED = """
    design | null | is missing
    design | "random" | must be one of production, reference
    classes | ["a"] | must be a list of 2
    classes | ["a", "b", "c", "d", " "] | must be a list
    classes | ["a", "b", "c", "d", "a"] | must be a list of 2 to 200
    credit | null | is missing
    credit | [1, 0] | must be a list of 5
    credit | [1, 0, 0, 0, -1] | must be a number >= 0
    credit | [1, 0, 0, 0, null] | that of 'abandoned' is missing
    confusion | [ROWS] | must be a list of 5, one a class of the h
    confusion | [ROWS, [1]] | must be a list of 5, one a class of
    confusion | [ROWS, [1, 2, 3, 4, 0.5]] | must be a whole
    confusion | [ROWS, [1, 2, 3, 4, 1000000000]] | must sum to at most 10,000,000 labels
    production_judge_counts | [9e99, 1, 1, 1, 1] | must be at
    production_judge_counts | {"a": 1} | 'a' is not a class of the judge
    production_judge_counts | [5980, 1820, 930, 900, 6] | for design 'production' it includes the
    judge_classes | ["x", "y"] | must hold all classes
"""


def test_a_malformed_table_names_file_and_field(calibrate: Run) -> None:
    bad: list[tuple[object, str]] = [
        ("{", "is not JSON"), ("[1]", "must hold one JSON object"), ("[" * 100_000, "too deeply"),
    ]  # fmt: skip
    rows = ", ".join(["[1, 2, 3, 4, 5]"] * 4)
    for line in MALFORMED.strip().splitlines():
        field, value, why = (part.strip() for part in line.replace("ROWS", rows).split("|"))
        colon = "" if why == "is missing" else ":"
        bad.append((content(**{field: json.loads(value)}), f"field '{field}'{colon} {why}"))
    for fields, says in bad:
        stderr = calibrate("--counts", counted(fields), code=2).stderr
        assert stderr.startswith("error: tables.json: ")
        assert says in stderr
        assert stderr.count("\n") == 1


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
    calibrate: Run, design: str, confusion: list[list[int]], counts: list[int]
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
    codes = {n["code"] for n in found["refusals"]}
    chosen = design == "reference" or "not_a_sample" in codes
    assert ("one_class_only" in codes) == (one_class and chosen)
    # A random sample of one class has an exact bound, from 30 labels on.
    if one_class:
        enough = sum(labelled) >= 30 and not chosen
        assert (found["headline"] is not None) == enough
