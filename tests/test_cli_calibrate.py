"""`asr calibrate` on tables, files and the store: outside values, the contract, and refusals."""

import numpy as np
import pytest

from tests.cli_tables import (
    CASE_A,
    CASE_B,
    HERE,
    TABLES,
    Run,
    content,
    counted,
    data,
    labelled_files,
    run,
    three,
    written,
)

__all__ = ["run"]

pytestmark = pytest.mark.usefixtures("few_draws")


def test_a_reference_set(run: Run) -> None:
    path = counted(content("a"))
    plain = data(run("--counts", path, "--pseudo-count", 0, "--json"))
    expected = [CASE_A["theta_plain"], *CASE_A["ci95_plain_delta"]]
    assert three(plain["estimates"]["inversion"]) == pytest.approx(expected, abs=1e-6)
    shares = [share["value"] for share in plain["class_shares"]["inversion"].values()]
    assert shares == pytest.approx(CASE_A["prevalence_plain_inversion"], abs=1e-6)
    smoothed = data(run("--counts", path, "--json"))
    assert smoothed["headline"] == "inversion"
    assert three(smoothed["estimates"]["inversion"]) == pytest.approx(
        CASE_A["smoothed_half_delta"], abs=1e-6
    )
    assert smoothed["estimates"]["judge_raw"]["value"] == pytest.approx(CASE_A["naive"][0])
    assert smoothed["estimates"]["judge_raw"]["interval"] is None
    assert smoothed["estimates"]["post_stratified"]["value"] is None
    assert smoothed["label_worth"] is None


def test_a_sample_of_production(run: Run) -> None:
    found = data(run("--counts", counted(content("b")), "--json"))
    assert found["headline"] == "post_stratified"
    for name, key in (("post_stratified", "poststrat_t"), ("human_only", "human_only_t")):
        assert three(found["estimates"][name]) == pytest.approx(CASE_B[key], abs=1e-6)
    shares = [share["value"] for share in found["class_shares"]["post_stratified"].values()]
    assert shares == pytest.approx(CASE_B["prevalence_poststrat"], abs=1e-6)
    assert found["judge"]["kappa"]["value"] == pytest.approx(CASE_B["kappa"], abs=1e-6)
    assert found["judge"]["accuracy"]["value"] == pytest.approx(CASE_B["accuracy"], abs=1e-6)
    # About (width without the judge / width with it) squared.
    widths = [np.ptp(found["estimates"][n]["interval"]) for n in ("human_only", "post_stratified")]
    worth, low, high = three(found["label_worth"])
    assert low < worth < high
    assert worth == pytest.approx((widths[0] / widths[1]) ** 2, rel=0.05)


def test_two_classes(run: Run) -> None:
    """A published course: 2,056 of 2,400 pass, sensitivity 31/34, specificity 10/12."""
    fields = {
        "design": "reference", "classes": ["fail", "pass"], "credit": [0, 1],
        "confusion": [[10, 2], [3, 31]], "production_judge_counts": [344, 2056],
    }  # fmt: skip
    found = data(run("--counts", counted(fields), "--pseudo-count", 0, "--json"))
    assert found["estimates"]["inversion"]["value"] == pytest.approx(0.9260526315789472, abs=1e-6)
    assert found["judge"]["kappa"]["value"] == pytest.approx(0.7255369928400954, abs=1e-6)
    recall = found["judge"]["per_class"]["pass"]["recall"]
    assert three(recall) == pytest.approx([31 / 34, 0.7703951343719113, 0.9695340563253514])


def test_real_agent_traces(run: Run) -> None:
    """222 of 1,106 runs of web agents labelled at random; reference values made with ppi_py."""
    fields = {
        "design": "production", "classes": ["0", "1"], "credit": [0, 1],
        "confusion": [[148, 15], [15, 44]], "production_judge_counts": [821, 285],
    }  # fmt: skip
    found = data(run("--counts", counted(fields), "--json"))
    assert three(found["estimates"]["post_stratified"]) == pytest.approx(
        [0.26048329124829994, 0.21321796852372393, 0.30774861397287595], abs=1e-6
    )
    assert three(found["estimates"]["human_only"]) == pytest.approx(
        [0.26576576576576577, 0.2072054224986167, 0.3243261090329148], abs=1e-6
    )
    assert found["judge"]["kappa"]["value"] == pytest.approx(0.6537381719871062, abs=1e-6)


def test_columns_go_by_name(run: Run) -> None:
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
    one, other = (data(run("--counts", counted(fields), "--json")) for fields in (inner, outer))
    assert one["n_production"] == 10_420
    assert one["estimates"]["inversion"]["value"] is not None
    assert one["confusion"]["columns_verdict"] == names
    assert other == one


def test_objects_by_name_are_tables_too(run: Run) -> None:
    classes = TABLES["classes"]
    plain = content("b")
    named = plain | {
        "credit": dict(zip(classes, plain["credit"], strict=True)),
        "confusion": {
            name: dict(reversed(list(zip(classes, row, strict=True))))
            for name, row in zip(classes, plain["confusion"], strict=True)
        },
        "production_judge_counts": dict(
            zip(classes, plain["production_judge_counts"], strict=True)
        ),
    }
    one, other = (data(run("--counts", counted(fields), "--json")) for fields in (plain, named))
    assert one == other


def test_confidence_seed_and_a_field_that_means_nothing(run: Run) -> None:
    path = counted(content("b", source="x"))
    found = data(run("--counts", path, "--confidence", 0.8, "--seed", 7, "--json"))
    wide = data(run("--counts", path, "--json"))
    assert found["seed"] == 7
    assert found["estimates"]["post_stratified"]["confidence_level"] == 0.8
    low, high = found["estimates"]["post_stratified"]["interval"]
    assert low > wide["estimates"]["post_stratified"]["interval"][0]
    assert found["judge"]["kappa"]["interval"][0] > wide["judge"]["kappa"]["interval"][0]
    assert high - low > 0
    assert "fields that mean nothing here: source" in found["notes"]


def test_ceilings_by_option_and_by_file(run: Run) -> None:
    words = labelled_files()
    ceilings = written("c.csv", "workflow,ceiling_usd", "x,0.2", "y,0.2")

    def net(*more: object) -> float:
        found = data(run(*words, *more, "--json"))
        return float(found["estimates"]["judge_raw"]["value"])

    gross = net()
    assert gross == pytest.approx(0.7)
    # Half of the credit of a, and nothing is left of b.
    assert net("--ceiling", 0.2) == pytest.approx(0.25)
    assert net("--ceilings", ceilings) == pytest.approx(0.25)
    of_y = net("--ceiling", 0.2, "--workflow", "y")
    assert 0.25 < of_y < gross
    assert net("--ceilings", ceilings, "--ceiling", 1, "--workflow", "x") == pytest.approx(of_y)
    assert "nothing is penalised" in run(*words).stdout
    assert "nothing is penalised" not in run(*words, "--ceiling", 0.2).stdout


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--credit", "a=2,b=0"], "must be CLASS=NUMBER from 0 to 1"),
        (["--credit", "a"], "must be CLASS=NUMBER from 0 to 1"),
        (["--credit", "a=nan,b=0"], "must be CLASS=NUMBER from 0 to 1"),
        (["--credit", "a=1,a=0"], "names 'a' twice"),
        (["--credit", "a=1"], "that of 'b' is missing"),
        (["--classes", "a,c"], "'b' is none of a, c"),
        (["--ceiling", "nan"], "must be a number"),
        (["--ceiling", "0"], "not in the range"),
        (["--pseudo-count", "nan"], "must be a number"),
        (["--pseudo-count", "-1"], "not in the range"),
        (["--confidence", "1"], "not in the range"),
        (["--confidence", "nan"], "must be a number"),
        (["--seed", "-1"], "not in the range"),
        (["--design", "x"], "is not one of"),
        (["--workflow", "x"], "--workflow is the workflow that --ceiling is for"),
        (["--judge", "x"], "v.csv: no judge 'x'; there are none named"),
        (["--against", "x"], "v.csv: no judge 'x'"),
        (["--by", "x"], "is not one of"),
        (["--batch", "x"], "--batch is for the store, not for files"),
        (["--ceilings", "none.csv"], "cannot be read"),
        (["--verdicts", "none.csv"], "cannot be read"),
    ],
)
def test_options_that_do_not_fit_are_usage_errors(run: Run, more: list[str], says: str) -> None:
    assert says in run(*labelled_files(), *more, code=2).stderr


def test_the_three_ways_do_not_mix(run: Run) -> None:
    words = labelled_files()
    assert "needed together" in run(*words[:2], code=2).stderr
    assert "needed together" in run(*words[2:], code=2).stderr
    tables = ["--counts", counted(content())]
    for more in (
        words[:2], ["--design", "production"], ["--judge", "x"], ["--classes", "a,b"],
        ["--by", "workflow"], ["--against", "x"], ["--judge-family", "x"],
    ):  # fmt: skip
        assert "not for --counts" in run(*tables, *more, code=2).stderr
    assert "not for the store" in run("--ceiling", 1, code=2).stderr


def test_the_worked_example_of_the_docs(run: Run, full_draws: None) -> None:
    docs = (HERE.parent / "docs" / "methods" / "calibration.md").read_text(encoding="utf-8")
    block = docs.split("```json\n")[1].split("```")[0]
    shown = run("--counts", counted(block)).stdout
    given = docs.split("`asr calibrate --counts tables.json` gives ")[1].split(", where")[0]
    assert f"for the rate: yes, corrected it is {given}" in shown
    raw = docs.split("where the judge as it is says ")[1].split(".\n")[0]
    assert f"taken as it is the judge says {raw}" in shown
    labels = docs.split("```csv\n")[1].split("```")[0]
    human = written("labels.csv", *labels.splitlines())
    verdicts = written(
        "verdicts.csv", "trace_id,outcome,workflow,cost_usd", "run-001,complete,refunds,0.031",
        "run-002,,refunds,", "run-003,split,refunds,0.018",
    )  # fmt: skip
    found = data(run("--human", human, "--verdicts", verdicts, "--json", code=1))
    assert found["human"]["n_adjudicated"] == 1
    assert found["skipped"] == 1
    assert found["confusion"]["columns_verdict"][-2:] == ["no_verdict", "split"]
