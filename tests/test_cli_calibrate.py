"""`asr calibrate` on tables and files: outside values, names of columns, ceilings, refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import special

from calibration.cli import main
from tests.cli_runs import (
    CASE_A,
    TABLES,
    Run,
    check,
    content,
    counted,
    data,
    three,
    write_csv,
    write_labelled,
)

pytestmark = pytest.mark.usefixtures("few_draws")


def on_logit_scale(linear: list[float]) -> list[float]:
    """Return value and limits logit(v) -+ h / (v (1 - v)) of a linear interval v -+ h."""
    value, low, high = linear
    centre, reach = special.logit(value), (high - low) / 2 / (value * (1 - value))
    return [value, float(special.expit(centre - reach)), float(special.expit(centre + reach))]


def test_two_classes_of_a_reference(calibrate: Run) -> None:
    """A published course: 2,056 of 2,400 pass, sensitivity 31/34, specificity 10/12."""
    fields = {
        "design": "reference", "classes": ["fail", "pass"], "credit": [0, 1],
        "confusion": [[10, 2], [3, 31]], "production_judge_counts": [344, 2056],
    }  # fmt: skip
    found = data(calibrate("--counts", counted(fields), "--pseudo-count", 0, "--json"))
    assert found["estimates"]["inversion"]["value"] == pytest.approx(0.9260526315789472, abs=1e-6)
    assert found["judge"]["kappa"]["value"] == pytest.approx(0.7255369928400954, abs=1e-6)
    recall = found["judge"]["per_class"]["pass"]["recall"]
    assert three(recall) == pytest.approx([31 / 34, 0.7703951343719113, 0.9695340563253514])


def test_real_agent_traces_of_production(calibrate: Run) -> None:
    """222 of 1,106 runs of web agents labelled at random; reference values made with ppi_py."""
    fields = {
        "design": "production", "classes": ["0", "1"], "credit": [0, 1],
        "confusion": [[148, 15], [15, 44]], "production_judge_counts": [821, 285],
    }  # fmt: skip
    found = data(calibrate("--counts", counted(fields), "--json"))
    rates = found["estimates"]
    assert three(rates["post_stratified"]) == pytest.approx(
        [0.26048329124829994, 0.21321796852372393, 0.30774861397287595], abs=1e-6
    )
    assert three(rates["human_only"]) == pytest.approx(
        on_logit_scale([0.26576576576576577, 0.2072054224986167, 0.3243261090329148]), abs=1e-6
    )
    assert found["judge"]["kappa"]["value"] == pytest.approx(0.6537381719871062, abs=1e-6)
    assert found["estimates_gross"] == rates  # no costs


def test_what_a_label_is_worth(calibrate: Run) -> None:
    """About (width without the judge / width with it) squared."""
    found = data(calibrate("--counts", counted(content("b")), "--json"))
    widths = [np.ptp(found["estimates"][n]["interval"]) for n in ("human_only", "post_stratified")]
    worth, low, high = three(found["label_worth"])
    assert low < worth < high
    assert worth == pytest.approx((widths[0] / widths[1]) ** 2, rel=0.05)


def test_columns_go_by_name(calibrate: Run) -> None:
    """Two more verdicts than classes, in the order of the classes and in another one."""
    table = [[*row, n, 1] for n, row in enumerate(CASE_A["reference_confusion_true_x_judge"])]
    counts = [*CASE_A["production_judge_counts"], 300, 120]
    names = [*TABLES["classes"], "no_verdict", "split"]
    inner = content("a", confusion=table, production_judge_counts=counts, judge_classes=names)
    order = [6, 2, 0, 5, 4, 1, 3]
    outer = content(
        "a",
        confusion=[[row[k] for k in order] for row in table],
        production_judge_counts=[counts[k] for k in order],
        judge_classes=[names[k] for k in order],
    )
    one, other = (data(calibrate("--counts", counted(of), "--json")) for of in (inner, outer))
    assert one["n_production"] == 10_420
    assert one["estimates"]["inversion"]["value"] is not None
    assert one["confusion"]["columns_verdict"] == names
    assert other == one


def test_objects_by_name_are_tables_too(calibrate: Run) -> None:
    plain = content("b")

    def named(values: list[object]) -> dict[str, object]:
        return dict(reversed(list(zip(plain["classes"], values, strict=True))))

    fields = plain | {
        "credit": named(plain["credit"]),
        "confusion": named([named(row) for row in plain["confusion"]]),
        "production_judge_counts": named(plain["production_judge_counts"]),
    }
    one, other = (data(calibrate("--counts", counted(of), "--json")) for of in (plain, fields))
    assert one == other


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
    assert f"for the rate: yes, corrected it is {given}" in shown
    raw = docs.split("where the uncorrected rate is ")[1].split(".\n")[0]
    assert f"taken as it is the judge says {raw}" in shown
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
    classes | null | is missing
    classes | ["a"] | must be a list of 2
    classes | "abcde" | must be a list
    classes | ["a", "b", "c", "d", " "] | must be a list
    classes | ["a", "b", "c", "d", "a"] | must be a list of 2 to 200
    credit | null | is missing
    credit | [1, 0] | must be a list of 5
    credit | [1, 0, 0, 0, 1.5] | must be at most 1, got 1.5
    credit | [1, 0, 0, 0, -1] | must be a number >= 0
    credit | [1, 0, 0, 0, true] | must be a number
    credit | [1, 0, 0, 0, null] | that of 'abandoned' is missing
    confusion | null | is missing
    confusion | [ROWS] | must be a list of 5, one a class of the h
    confusion | [ROWS, [1]] | must be a list of 5, one a class of
    confusion | [ROWS, [1, 2, 3, 4, -5]] | must be a number >= 0
    confusion | [ROWS, [1, 2, 3, 4, 0.5]] | must be a whole
    confusion | [ROWS, [1, 2, 3, 4, null]] | the count of
    confusion | [ROWS, [1, 2, 3, 4, 1000000000]] | must sum to at most 10,000,000 labels
    production_judge_counts | null | is missing
    production_judge_counts | [1, 2, 3, 4] | must be a
    production_judge_counts | [9e99, 1, 1, 1, 1] | must be at
    production_judge_counts | [NaN, 1, 1, 1, 1] | must be a num
    production_judge_counts | {"a": 1} | 'a' is no class of the judge
    production_judge_counts | [5980, 1820, 930, 900, 6] | for design 'production' it includes the
    judge_classes | ["x", "y"] | must hold all classes
    judge_classes | 3 | must be a list
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


def test_a_table_that_cannot_be_read(calibrate: Run, tmp_path: Path) -> None:
    assert "cannot be read" in calibrate("--counts", "none.json", code=2).stderr
    assert "cannot be read" in calibrate("--counts", tmp_path, code=2).stderr
    Path("binary").write_bytes(bytes(range(256)))
    assert "is not UTF-8" in calibrate("--counts", "binary", code=2).stderr


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
    assert ("one_class_only" in {n["code"] for n in found["refusals"]}) == one_class
    if one_class:
        assert found["headline"] is None
