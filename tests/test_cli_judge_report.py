"""The full report on a judge: its order and its parts."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from calibration.cli import main
from calibration.records import Verdict
from tests.analyses.worlds import World, make_world
from tests.classes import OUTCOMES
from tests.cli_runs import FIXTURES, Run, data

pytestmark = pytest.mark.usefixtures("few_draws")
C, P, M, H, A = OUTCOMES
TAU = ["--human", FIXTURES / "tau_labels.csv", "--verdicts", FIXTURES / "tau_verdicts.csv"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return 80 labels of two classes, and a judge with one verdict."""
    made = make_world(tmp_path / "w.duckdb", n=120, n_drawn=80)
    made.label("Ann", {name: (C, P)[k % 2] for k, name in enumerate(made.drawn)})
    made.judge({"r000": C}, "lone")
    return made


@pytest.mark.long
def test_what_cannot_be_computed_hides_no_calibration(world: World, calibrate: Run) -> None:
    made = world.store
    made.add_verdicts([Verdict(judge_id="v3", trace_id="r001", outcome=C)])
    words = ["--store", made.path, "--judge", "lone", "--against", "v3"]
    made.close()
    found = data(calibrate(*words, "--json"))
    assert found["estimates"]["post_stratified"]["value"] is not None
    assert found["drift"]["status"].startswith("not_estimable: judges 'v3' and 'lone' have no")
    assert "no judge 'x'" in calibrate(*words[:-1], "x", code=2).stderr


# Forty real runs of tau-bench and tau2-bench, drawn from 334, and the grades of the benchmarks


def test_the_example_of_the_docs(
    calibrate: Run, monkeypatch: pytest.MonkeyPatch, full_draws: None
) -> None:
    """All but the last line: the fingerprint goes with the version."""
    root = Path(__file__).parents[1]
    monkeypatch.chdir(root)
    docs = (root / "docs" / "methods" / "example-calibration.md").read_text(encoding="utf-8")
    files = [w.relative_to(root) if isinstance(w, Path) else w for w in TAU]
    shown = calibrate(*files, "--full").stdout
    given = docs.split("```\n")[1]
    assert given.splitlines() == shown.splitlines()[:-2]


def test_the_forty_real_runs(calibrate: Run) -> None:
    found = data(calibrate(*TAU, "--judge-family", "gpt", "--json"))
    of = found["diagnostics"]
    # 32 of 40 pairs of reviewers agree, alpha as in test_tau_labels; the grade agrees with one of
    # the two on 18 of 40: 7 + 11 in the table below, of which a trace has half a label each.
    ceiling = of["ceiling"]
    assert ceiling["percent_agreement"]["humans"]["value"] == pytest.approx(0.8)
    assert ceiling["percent_agreement"]["judge"]["value"] == pytest.approx(18 / 40)
    assert ceiling["krippendorff_alpha"]["humans"]["value"] == pytest.approx(1 - 79 * 16 / 4798)
    assert ceiling["krippendorff_alpha"]["within_human_disagreement"] is False
    assert found["confusion"]["counts"] == [
        [7, 0, 2, 0, 0], [1.5, 0, 2, 0, 0], [3.5, 0, 11, 0, 0], [0, 0, 4, 0, 0], [3, 0, 6, 0, 0],
    ]  # fmt: skip
    assert found["judge"]["accuracy"]["value"] == pytest.approx(18 / 40)
    # kappa = (18/40 - sum of margins) / (1 - sum): 9 x 15 and 14.5 x 25 of 40 x 40.
    chance = (9 * 15 + 14.5 * 25) / 1600
    assert found["judge"]["kappa"]["value"] == pytest.approx((0.45 - chance) / (1 - chance))
    # The benchmarks know no output that is none and nothing made up.
    begin = {name: node["errors_begin"] for name, node in of["per_node"].items()}
    assert begin == {"output": 9, "fabrication": 4, "all_subgoals": 7, "material_error": 2}
    assert len(of["disagreements"]) == 25
    top = of["disagreements"][0]
    assert (top["verdict"], top["credit_difference"]) == (C, 1.0)
    assert top["labels"][0]["rationale"]
    assert top["reason"].startswith("reward 1")
    # 150 of 334 were graded complete, and 15 of those are labelled.
    assert top["moves"] == pytest.approx(150 / 334 / 15)
    # (15 - 9 - .4 x 3.5) / 40
    assert of["leniency"]["value"] == pytest.approx((15 - 9 - 0.4 * 3.5) / 40)
    assert found["headline"] == "post_stratified"
    rate = found["estimates"]["post_stratified"]
    # .449 of complete: (7 + .4 x 1.5) / 15; .551 of partial_minus: (2 + .4 x 2) / 25
    assert rate["value"] == pytest.approx((150 * 7.6 / 15 + 184 * 2.8 / 25) / 334)
    status = "provisional: 8 open disagreements: reviewer error is not in the interval"
    assert rate["status"] == status
    assert found["estimates"]["judge_raw"]["value"] == pytest.approx(150 / 334)
    assert found["estimates"]["inversion"]["value"] is None


def test_grades_as_classes_of_a_file(calibrate: Run, tmp_path: Path) -> None:
    """Of 50 traces 30 have the same grade, 15 one above, 5 are two above."""
    human = [1 + k % 3 for k in range(50)]
    above = [0] * 30 + [1] * 15 + [2] * 5
    rows = [f"t{k},{h}" for k, h in enumerate(human)]
    said = [f"t{k},{h + up}" for k, (h, up) in enumerate(zip(human, above, strict=True))]
    (tmp_path / "h.csv").write_text("\n".join(["trace_id,outcome", *rows]))
    (tmp_path / "v.csv").write_text("\n".join(["trace_id,outcome", *said]))
    words = [
        "--human", tmp_path / "h.csv", "--verdicts", tmp_path / "v.csv", "--classes", "1,2,3,4,5",
        "--credit", "1=0,2=0,3=0,4=.4,5=1",
    ]  # fmt: skip
    found = data(calibrate(*words, "--json"))["diagnostics"]["grades"]
    assert found["exact"]["value"] == pytest.approx(0.6)
    assert found["within_one"]["value"] == pytest.approx(0.9)
    assert found["bias"] == pytest.approx((15 + 2 * 5) / 50)
    assert found["scale"] == ["1", "2", "3", "4", "5"]


def test_grades_that_came_with_the_traces(calibrate: Run, tmp_path: Path) -> None:
    """The store keeps them, and compares them on the steps that a class tells apart."""
    store = tmp_path / "w.duckdb"
    given = {"a": 5, "b": 4, "c": 3, "d": 1, "e": 5, "f": 7}
    lines = [
        json.dumps(
            {
                "trace_id": name, "task_id": name, "workflow": "faq",
                "messages": [
                    {"role": "user", "content": f"ask {name}"},
                    {"role": "assistant", "content": f"say {name}"},
                ],
                "grading": {"grade": grade, "reason": "so"},
            }
        )
        for name, grade in given.items()
    ]  # fmt: skip
    (tmp_path / "t.jsonl").write_text("\n".join(lines) + "\n")
    said = {"a": C, "b": C, "c": H, "d": C, "e": P, "f": C}
    (tmp_path / "h.csv").write_text(
        "\n".join(["trace_id,reviewer,outcome", *(f"{n},Ann,{o}" for n, o in said.items())])
    )
    for words in (
        ["import", tmp_path / "t.jsonl", "--yes"],
        ["sample", "--n", 6, "--seed", 1],
        ["labels", "import", tmp_path / "h.csv", "--batch", "production-001"],
    ):
        done = CliRunner().invoke(main, [*map(str, words), "--store", str(store)])
        assert done.exit_code == 0, done.output
    found = data(calibrate("--store", store, "--json", code=1))
    grades = found["diagnostics"]["grades"]
    # Steps (human, judge): a 5 5, b 5 4, c 3- 3-, d 5 3-, e 4 5, f 5 and no grade.
    assert grades["scale"] == ["3 or less", "4", "5"]
    assert grades["exact"]["value"] == pytest.approx(2 / 6)
    assert grades["within_one"]["value"] == pytest.approx(4 / 6)
    assert grades["bias"] == pytest.approx((-1 - 2 + 1) / 5)
    assert found["confusion"]["columns_verdict"][-1] == "no_verdict"


def test_what_a_judge_quotes_comes_in_with_its_verdicts(
    world: World, calibrate: Run, tmp_path: Path
) -> None:
    wrong = [H if k % 2 else A for k in range(40)]
    rows = [f"{n},{o},because,s1,Booked {n},2" for n, o in zip(world.drawn, wrong, strict=False)]
    (tmp_path / "v.csv").write_text(
        "\n".join(["trace_id,outcome,reason,evidence_step,evidence_quote,grade", *rows])
    )
    listed = {
        "trace_id": world.drawn[50], "outcome": A,
        "evidence": [{"step_id": "s1", "quote": "one"}, {"step_id": "s2", "quote": "two"}],
    }  # fmt: skip
    (tmp_path / "v.jsonl").write_text(json.dumps(listed) + "\n")
    (tmp_path / "bad.jsonl").write_text(json.dumps(listed | {"evidence": ["one"]}) + "\n")
    (tmp_path / "bad.csv").write_text(f"trace_id,outcome,grade\n{world.drawn[0]},{A},6\n")
    world.store.close()

    def bring(name: str) -> Result:
        judged = ["verdicts", "import", tmp_path / name, "--judge", "quoting"]
        words = [*judged, "--store", world.store.path]
        return CliRunner().invoke(main, [*map(str, words)])

    assert "line 1, field 'evidence': must be a list of objects" in bring("bad.jsonl").stderr
    assert "line 2, field 'grade': must be a whole number from 1 to 5" in bring("bad.csv").stderr
    assert (bring("v.csv").exit_code, bring("v.jsonl").exit_code) == (0, 0)
    found = data(calibrate("--store", world.store.path, "--judge", "quoting", "--json"))[
        "diagnostics"
    ]
    quoted = {d["trace_id"]: d["evidence"] for d in found["disagreements"] if d["evidence"]}
    assert quoted[world.drawn[50]] == listed["evidence"]
    first = next(n for n in world.drawn[:40] if n in quoted)
    assert quoted[first] == [{"step_id": "s1", "quote": f"Booked {first}"}]
    assert found["grades"]["exact"]["n"] == 80
