"""`asr reliability`: the answer, JSON, and exit codes."""

import json
from pathlib import Path

import jsonschema

from calibration.reporting import to_json
from tests.analyses.test_reliability_runs import many
from tests.cli_runs import run


def written(folder: Path) -> Path:
    rows = many(25)
    lists = {name: rows[name].map(json.dumps) for name in ("actions", "violations")}
    rows.assign(**lists).to_csv(folder / "runs.csv", index=False)
    names = sorted(set(rows["task_id"]))
    lines = [f"{name},{'easy' if k % 2 else 'hard'},core" for k, name in enumerate(names)]
    (folder / "tasks.csv").write_text("\n".join(["task_id,difficulty,tier", *lines]), "utf-8")
    return folder / "runs.csv"


def test_the_answer_comes_first(tmp_path: Path) -> None:
    said = run("reliability", written(tmp_path), "--resamples", 200).stdout
    assert said.startswith("Reliability is 0.")
    assert "runs a task without perturbation: 4" in said
    assert "--full" in said


def test_json_keeps_its_schema_and_the_seed_repeats_it(tmp_path: Path) -> None:
    words = (
        "reliability", written(tmp_path), "--tasks", tmp_path / "tasks.csv", "--json",
        "--resamples", 200, "--confidence", 0.9,
    )  # fmt: skip
    said = run(*words).stdout
    found = json.loads(said)
    jsonschema.validate(found, to_json.schema("reliability"))
    assert found["confidence_level"] == 0.9
    assert found["by"]["difficulty"].keys() == {"easy", "hard"}
    assert run(*words).stdout == said
    other = json.loads(run(*words, "--seed", 2).stdout)
    assert other["overall"]["value"] == found["overall"]["value"]
    assert other["overall"]["interval"] != found["overall"]["interval"]
    less = json.loads(run(*words, "--divergence").stdout)["consistency"]
    assert (
        less["trajectory_distribution"]["value"]
        > (found["consistency"]["trajectory_distribution"]["value"])
    )


def test_data_that_allow_nothing_exit_with_1_and_bad_input_with_2(tmp_path: Path) -> None:
    one = tmp_path / "one.csv"
    one.write_text("task_id,run,success\na,1,yes\n", encoding="utf-8")
    assert "no score can be computed" in run("reliability", one, code=1).stderr
    assert "column 'success' is missing" in run("reliability", broken(tmp_path), code=2).stderr
    run("reliability", tmp_path / "none.csv", code=2)


def broken(folder: Path) -> Path:
    path = folder / "broken.csv"
    path.write_text("task_id,run\na,1\n", encoding="utf-8")
    return path
