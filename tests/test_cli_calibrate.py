"""`asr calibrate` on tables, files and the store: outside values, the contract, and refusals."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from calibration.cli import main

pytestmark = pytest.mark.usefixtures("few_draws")

HERE = Path(__file__).parent
TABLES = json.loads((HERE / "golden" / "judge_tables.json").read_text(encoding="utf-8"))
CASE_A, CASE_B = TABLES["case_a"], TABLES["case_b"]
FIXTURES = HERE / "fixtures"

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `asr calibrate` in a directory of its own; an exception is a failed test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASR_STORE", raising=False)

    def called(*words: object, code: int = 0) -> Result:
        done = CliRunner().invoke(main, ["calibrate", *map(str, words)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == code, done.output
        if code:
            assert done.stderr.splitlines()[-1].lower().startswith("error: "), done.stderr
        return done

    return called


def data(done: Result) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(done.stdout, parse_constant=refuse)


def content(case: str = "b", **changes: Any) -> dict[str, Any]:
    """Return a five-class table as the file of tables has it; None takes a field away."""
    of_a = case == "a"
    fields = {
        "design": "reference" if of_a else "production",
        "classes": TABLES["classes"],
        "credit": TABLES["credit"],
        "confusion": CASE_A["reference_confusion_true_x_judge"]
        if of_a
        else CASE_B["production_labelled_true_x_judge"],
        "production_judge_counts": CASE_A["production_judge_counts"]
        if of_a
        else CASE_B["production_judge_counts_all_incl_labelled"],
    } | changes
    return {name: value for name, value in fields.items() if value is not None}


def counted(fields: object, name: str = "tables.json") -> Path:
    path = Path(name)
    path.write_text(fields if isinstance(fields, str) else json.dumps(fields), encoding="utf-8")
    return path


def three(estimate: dict[str, Any]) -> list[float]:
    return [estimate["value"], *estimate["interval"]]


# Outside values


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


# The contract


def check(item: object) -> int:
    """Count the estimates; each is null with a status, or a value inside its interval."""
    if isinstance(item, list):
        return sum(map(check, item))
    if not isinstance(item, dict):
        return 0
    if {"value", "status"} <= item.keys():
        assert {"value", "interval", "se", "method", "status"} <= item.keys()
        if item["value"] is None:
            assert item["interval"] is None
            assert item["se"] is None
            assert item["status"].startswith("not_estimable: ")
        elif item["interval"] is not None:
            low, high = item["interval"]
            assert low - 1e-12 <= item["value"] <= high + 1e-12
        return 1
    return sum(map(check, item.values()))


@pytest.mark.parametrize("case", ["a", "b"])
def test_the_json_has_every_part(run: Run, case: str) -> None:
    found = data(run("--counts", counted(content(case)), "--json"))
    classes = TABLES["classes"]
    names = {"post_stratified", "inversion", "human_only", "judge_raw"}
    assert found.keys() >= {
        "estimates", "estimates_gross", "class_shares", "judge", "headline", "refusals", "warnings",
    }  # fmt: skip
    assert found["estimates"].keys() >= names
    assert found["estimates_gross"] == found["estimates"]  # no costs
    for shares in found["class_shares"].values():
        assert list(shares) == classes
    assert found["judge"].keys() == {"kappa", "alpha", "accuracy", "per_class"}
    assert list(found["judge"]["per_class"]) == classes
    assert found["judge"]["alpha"]["interval"] is not None
    assert found["refusals"]
    for notice in found["refusals"] + found["warnings"]:
        assert notice.keys() == {"code", "estimator", "why", "mend"}
        assert all(isinstance(text, str) and text for text in notice.values())
    assert check(found) >= 2 * len(names) + 2 * 5 + 3 + 2 * 5
    again = data(run("--counts", counted(content(case)), "--json"))
    assert again == found


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


# Malformed tables


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


# Files through the command


def written(name: str, *lines: str) -> Path:
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Path(name)


def labelled_files() -> list[object]:
    """Write 50 labelled and 60 other traces of two workflows, each run at 0.30 USD."""
    said = [f"t{k},{'ab'[k % 2]},{['x', 'y'][k % 3 == 0]},0.3" for k in range(110)]
    labels = [f"t{k},{'ab'[(k + (k % 7 == 0)) % 2]}" for k in range(50)]
    human = written("h.csv", "trace_id,outcome", *labels)
    verdicts = written("v.csv", "trace_id,outcome,workflow,cost_usd", *said)
    return ["--human", human, "--verdicts", verdicts, "--credit", "a=1,b=.4"]


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


def test_the_text_answers_the_questions(run: Run) -> None:
    shown = run(*labelled_files(), "--design", "reference").stdout
    for line in (
        "The verdicts of v.csv against the labels of h.csv",
        "reference only: assumes that the judge errs there as in production",
        "Can this judge be used?",
        "for the rate: yes",
        "How far off is it?",
        "What would make it better?",
        "refused: post_stratified",
        "* headline; confusion matrix inverted, delta",
    ):
        assert line in shown


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
