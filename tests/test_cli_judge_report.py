"""The full report on a judge: its order and its parts."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from calibration.cli import main
from calibration.records import Verdict
from tests.analyses.worlds import World, ids, make_world
from tests.classes import OUTCOMES
from tests.cli_runs import FIXTURES, Run, data

pytestmark = pytest.mark.usefixtures("few_draws")
C, P, M, H, A = OUTCOMES
TAU = ["--human", FIXTURES / "tau_labels.csv", "--verdicts", FIXTURES / "tau_verdicts.csv"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two reviewers, two versions of a judge, one of them asked again, two models."""
    rng = np.random.default_rng(3)
    traces = {
        name: {"model": "gpt-9" if k % 2 else "other", "response": "x" * (1 + 7 * k)}
        for k, name in enumerate(ids(120))
    }
    made = make_world(tmp_path / "w.duckdb", n=120, n_drawn=80, traces=traces)
    truth = dict(zip(ids(120), rng.choice(5, 120, p=[0.4, 0.2, 0.2, 0.1, 0.1]), strict=True))

    def said(share_wrong: float) -> dict[str, str]:
        return {
            name: OUTCOMES[int(rng.integers(5)) if rng.random() < share_wrong else k]
            for name, k in truth.items()
        }

    for reviewer in ("Ann", "Ben"):
        heard = said(0.1)
        made.label(reviewer, {name: heard[name] for name in made.drawn})
    made.judge(said(0.2), "v2")
    made.judge(said(0.3), "v1")
    again = [Verdict(judge_id="v2", trace_id=name, outcome=C, sample=1) for name in made.drawn[:30]]
    made.store.add_verdicts(again)
    made.judge({"r000": C}, "lone")
    return made


def in_store(world: World, *more: object) -> list[object]:
    world.store.close()
    return ["--store", world.store.path, "--judge", "v2", *more]


def test_brief_leaves_three_parts_out_and_changes_no_other(world: World, calibrate: Run) -> None:
    words = in_store(world)
    brief = data(calibrate(*words, "--brief", "--json"))
    full = data(calibrate(*words, "--against", "v1", "--by", "model", "--json"))
    parts = ("diagnostics", "groups", "drift")
    assert [brief.pop(name) for name in parts] == [None] * 3
    diagnostics, groups, _ = (full.pop(name) for name in parts)
    assert full == brief
    assert len(diagnostics["disagreements"]) == len(full["disagreements"])
    assert diagnostics["retest"]["changed"]["n"] == 30
    assert set(diagnostics["leniency_by"]) == {"agent", "workflow"}
    assert [g["n_production"] for g in groups["groups"].values()] == [60, 60]


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


def test_another_verdict_file_to_compare_with(calibrate: Run, tmp_path: Path) -> None:
    rows = [f"t{k},{'ab'[k % 2]}" for k in range(60)]
    moved = [f"t{k},{'ab'[k % 2 or k < 10]}" for k in range(40)]
    for name, of in (("new.csv", rows), ("old.csv", moved), ("h.csv", rows[:40])):
        (tmp_path / name).write_text("\n".join(["trace_id,outcome", *of]), encoding="utf-8")
    words = [
        "--human", tmp_path / "h.csv", "--verdicts", tmp_path / "new.csv", "--credit", "a=1,b=0",
        "--against", tmp_path / "old.csv", "--json",
    ]  # fmt: skip
    found = data(calibrate(*words))["drift"]
    # Of 40 common traces the old one calls the even ones below 10, five, b instead of a.
    assert found["n"] == 40
    assert found["classes"]["a"]["only_after"] == 5
    assert found["credit_change"]["value"] == pytest.approx(5 / 40)
    assert found["against_humans"]["accuracy_change"]["value"] == pytest.approx(5 / 40)


def test_labels_of_failures_only(calibrate: Run, tmp_path: Path) -> None:
    """As AgentRx: 27 of 100 runs failed by their reward, and humans looked at those only."""
    said = [f"t{k},{'failure' if k < 27 else 'success'},retail" for k in range(100)]
    (tmp_path / "v.csv").write_text("\n".join(["trace_id,outcome,workflow", *said]))
    labels = [f"t{k},failure" for k in range(27)]
    (tmp_path / "h.csv").write_text("\n".join(["trace_id,outcome", *labels]))
    words = [
        "--human", tmp_path / "h.csv", "--verdicts", tmp_path / "v.csv",
        "--credit", "success=1,failure=0", "--by", "workflow",
    ]  # fmt: skip
    found = data(calibrate(*words, "--json", code=1))
    assert found["headline"] is None
    recall = found["judge"]["per_class"]["failure"]["recall"]
    assert (recall["value"], recall["n"]) == (1.0, 27)
    assert recall["interval"] == pytest.approx([0.875, 1.0], abs=1e-3)
    # What averages over classes is known of one class only.
    assert found["diagnostics"]["leniency"]["value"] is None
    assert found["diagnostics"]["leniency_by"] == {}
    assert found["groups"]["status"].startswith("not_estimable: all 27 labelled traces are of the")


# Forty real runs of tau-bench and tau2-bench, drawn from 334, and the grades of the benchmarks


def test_the_example_of_the_docs(
    calibrate: Run, monkeypatch: pytest.MonkeyPatch, full_draws: None
) -> None:
    """All but the last line: the fingerprint goes with the version."""
    root = Path(__file__).parents[1]
    monkeypatch.chdir(root)
    docs = (root / "docs" / "methods" / "example-calibration.md").read_text(encoding="utf-8")
    shown = calibrate(*[w.relative_to(root) if isinstance(w, Path) else w for w in TAU]).stdout
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
    assert rate["status"] == "provisional: 8 open disagreements"
    assert found["estimates"]["judge_raw"]["value"] == pytest.approx(150 / 334)
    assert found["estimates"]["inversion"]["value"] is None


# Grades from 1 to 5


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


def test_grades_of_a_table_go_by_value(calibrate: Run, tmp_path: Path) -> None:
    table = [[4, 0, 0], [1, 5, 0], [2, 0, 6]]
    (tmp_path / "t.json").write_text(
        json.dumps(
            {
                "design": "reference", "classes": ["3", "2", "1"], "credit": [1, 0, 0],
                "confusion": table, "production_judge_counts": [10, 10, 10],
            }
        )
    )  # fmt: skip
    done = CliRunner().invoke(main, ["calibrate", "--counts", str(tmp_path / "t.json"), "--json"])
    found = data(done)["diagnostics"]["grades"]
    # Human 2 judged 3 once, human 1 judged 3 twice.
    assert found["bias"] == pytest.approx((1 + 2 * 2) / 18)
    assert found["within_one"]["value"] == pytest.approx(16 / 18)


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
        words = ["verdicts", tmp_path / name, "--judge", "quoting", "--store", world.store.path]
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
