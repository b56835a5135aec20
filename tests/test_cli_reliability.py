"""`asr reliability`: the answer, JSON, and exit codes."""

import json
from pathlib import Path

import jsonschema

from calibration.reporting import to_json
from tests.analyses.test_reliability_runs import many
from tests.analyses.worlds import make_world, repeated_world
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
    assert said.startswith("Read run as trial, success as outcome.\nReliability is 0.")
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
    assert "no column holds the outcome" in run("reliability", broken(tmp_path), code=2).stderr
    run("reliability", tmp_path / "none.csv", code=2)


def broken(folder: Path) -> Path:
    path = folder / "broken.csv"
    path.write_text("task_id,run\na,1\n", encoding="utf-8")
    return path


def test_a_store_is_measured_by_its_labels_and_says_what_is_left_out(tmp_path: Path) -> None:
    store = tmp_path / "asr.duckdb"
    made = repeated_world(store)
    made.settle("t02-0", "complete")
    made.store.close()
    said = run("reliability", "--store", store).stdout
    for part in (
        "success from labels: 1 adjudicated, 82 undisputed",
        "runs with a perturbation: fault 12, structure 12, prompt 12",
        "Left out: 2 runs (1: its labels differ and nobody has adjudicated; "
        "1: it has a verdict but no label, and judges err)",
        "next: Adjudicate 1 run: the labels differ.",
        "next: Run each task 1 more time",
    ):
        assert part in said
    found = json.loads(run("reliability", "--store", store, "--json").stdout)
    jsonschema.validate(found, to_json.schema("reliability"))
    assert found["success_source"] == "labels: 1 adjudicated, 82 undisputed"
    assert (found["n_runs"], found["n_tasks"]) == (83, 12)
    assert {row["reason"]: row["n"] for row in found["set_aside"]} == {
        "open_disagreement": 1, "verdict_only": 1,
    }  # fmt: skip
    assert (
        "there are 'model-x'"
        in run("reliability", "--store", store, "--model", "other", code=2).stderr
    )


def test_agents_of_a_store_are_chosen_and_no_store_is_said_clearly(tmp_path: Path) -> None:
    store = tmp_path / "asr.duckdb"
    repeated_world(store, agents=("model-x", "model-y")).store.close()
    assert "of 2 agents" in run("reliability", "--store", store, code=1).stderr
    said = run("reliability", "--store", store, "--model", "model-y").stdout
    assert "41 runs of 6 tasks" in said
    said = run("reliability", "--store", tmp_path / "none.duckdb", code=2).stderr
    assert "no RUNS, and there is no store" in said
    assert (
        "--where COLUMN=VALUE"
        in run("reliability", written(tmp_path), "--model", "x", code=2).stderr
    )
    plain = tmp_path / "plain.duckdb"
    made = make_world(plain)
    made.label("Ann", dict.fromkeys(made.drawn, "complete"))
    made.store.close()
    assert "no score can be computed" in run("reliability", "--store", plain, code=1).stderr
