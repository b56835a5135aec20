"""What `asr gate` reads as `asr report` does, what it sets aside, and what it refuses."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from reference_dataset.loader import load_reference
from tests.cli_runs import data
from tests.gates.runs import Run, by_name, csv_of, gates_of, labels_of, rows


def test_what_was_not_recorded_is_skipped_and_blocks_until_that_is_allowed(run: Run) -> None:
    bare = [{name: row[name] for name in ("trace_id", "workflow", "outcome")} for row in rows()]
    words = (csv_of(bare), "--column", "cost_usd=")
    gates = gates_of(run, *words, code=1)
    assert gates["pass_at_1[core]"]["status"] == "pass"
    assert gates["pass_hat_3[core]"]["status"] == "not_estimable"
    for name in ("loops", "data_corruption", "human_review", "regression", "cost", "latency_p95"):
        assert gates[name]["status"] == "skipped"
        assert gates[name]["why"]
    assert gates["pass_at_1[edge]"]["why"] == "no column 'tier': all tasks are core"
    shown = run(*words, gates="allow_skipped = true").stdout
    assert shown.startswith("GATES PASSED: 1 of 7 must gates; 6 had no result, as allow_skipped")


def test_labels_that_were_chosen_are_no_review(run: Run) -> None:
    found = rows()
    words = (csv_of(found), "--labels", labels_of(found), "--design", "reference", "--json")
    gates = by_name(run(*words, code=1))
    assert gates["human_review"]["status"] == "skipped"
    assert "chosen, not drawn at random" in gates["human_review"]["why"]
    assert gates["judge"]["status"] == "pass"
    others = labels_of([row | {"trace_id": "x" + row["trace_id"]} for row in found])
    error = run("runs.csv", "--labels", others, code=2).stderr
    assert "no labelled trace is among the runs" in error
    error = run("runs.csv", "--labels", labels_of(found, outcome="good"), code=2).stderr
    assert "as one of complete" in error


def test_labels_that_repeat_a_row_are_left_out_and_counted(run: Run) -> None:
    found = rows()
    twice = labels_of([*found[::4], *found[:8:4]], every=1)
    shown = data(run(csv_of(found), "--labels", twice, "--json", code=1))
    (repeated,) = [rows for rows in shown["set_aside"] if rows["reason"] == "labels repeated"]
    assert repeated["examples"] == [f"labels.csv line {len(found[::4]) + 2}"]
    assert repeated["n"] == 2


def test_models_are_never_pooled(run: Run) -> None:
    found = rows()
    two = found + [row | {"trace_id": "x" + row["trace_id"], "model": "n"} for row in found]
    gates = gates_of(run, csv_of(two), code=1)
    assert gates["pass_at_1[core]"]["status"] == "not_estimable"
    assert "of several models" in gates["pass_at_1[core]"]["why"]
    assert gates_of(run, "runs.csv", "--model", "n", code=1)["pass_at_1[core]"]["n"] == 34
    assert "there are m, n" in run("runs.csv", "--model", "z", code=2).stderr


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"loops": "maybe"}, "column 'loops': 1 rows hold neither yes, no nor a number from 0 up"),
        ({"trial": 0}, "column 'trial': trial '0' of task 'task 0' is there 2 times"),
        ({"tier": "core"}, "column 'tier': task 'task 0' is both 'core' and 'edge'"),
        ({"category": "x"}, "column 'category': task 'task 0' is both"),
    ],
)
def test_a_column_that_is_not_gated_is_named(run: Run, change: dict[str, Any], match: str) -> None:
    found = rows()
    found[1] |= change
    assert match in run(csv_of(found), code=2).stderr


def test_a_file_of_which_too_much_does_not_count_is_refused(run: Run) -> None:
    found = [row | ({"outcome": ""} if n % 10 == 0 else {}) for n, row in enumerate(rows())]
    error = run(csv_of(found), code=1).stderr
    assert "left out 20 of 200 rows for a reason that may depend on the outcome" in error
    assert "more than 2.0%: 20 without an outcome (first: line 2)" in error
    withheld = json.loads(run("runs.csv", "--json", code=1).stdout)
    assert withheld["asr"] is None
    assert withheld["reading"]["left_out_share"] == 0.1
    assert run("runs.csv", code=1, gates="max_left_out = 0.1").stdout.startswith("GATES FAILED")
    run(csv_of(rows() * 2), code=1, gates="")


def test_reference_traces_are_refused_unless_forced_and_then_marked_everywhere(run: Run) -> None:
    trace_id = next(iter(load_reference().traces))
    own = trace_id.rpartition("-")[0]
    found = [row | {"workflow": own} for row in rows()]
    found[3] |= {"trace_id": trace_id}
    error = run(csv_of(found), "--ceiling", f"{own}=1", code=2).stderr
    assert "1 traces are of the reference set" in error
    assert "--force" in error
    written = ("--junit", "g.xml", "--summary", "g.md", "--write-baseline", "b.json")
    shown = run("runs.csv", "--force", *written, code=1).stdout
    assert shown.startswith("REFERENCE SET: 1 of these traces")
    assert "REFERENCE SET" in Path("g.md").read_text(encoding="utf-8")
    suite = ET.parse("g.xml").getroot()[0]
    assert "REFERENCE SET" in str(suite.findtext("system-out"))
    assert suite.find("properties/property[@name='mark']") is not None
    saved = json.loads(Path("b.json").read_text("utf-8"))
    assert saved["marks"][0].startswith("REFERENCE SET: 1 of these traces")


def test_corruption_is_read_from_tags_where_there_are_any(run: Run) -> None:
    said = (
        "data_corruption", "late; Data_Corruption |x", '["late", "data_corruption"]',
        "no data_corruption", "data_corruption_checked", "late",
    )  # fmt: skip
    found = [row | {"data_corruption": "", "tags": ""} for row in rows()]
    for row, tags in zip(found, said, strict=False):
        row["tags"] = tags
    found[6] |= {"data_corruption": "no", "tags": "data_corruption"}
    gate = gates_of(run, csv_of(found), code=1)["data_corruption"]
    assert (gate["n"], gate["value"]) == (7, pytest.approx(3 / 7))
    # Parquet has lists and truth values.
    typed = [row | {"loops": n == 0, "tags": [["a", "data_corruption"], []][n % 2]}
             for n, row in enumerate(rows())]  # fmt: skip
    frame = pd.DataFrame(typed).drop(columns="data_corruption").astype({"trial": str})
    frame.to_parquet("runs.parquet")
    gates = gates_of(run, "runs.parquet", code=1)
    assert gates["loops"]["value"] == 1 / 200
    assert (gates["data_corruption"]["value"], gates["data_corruption"]["n"]) == (0.5, 200)


def test_some_weights_are_refused_and_all_are_used(run: Run) -> None:
    found = rows()
    some = csv_of([found[0] | {"weight": 2}] + [row | {"weight": ""} for row in found[1:]])
    assert "weight unreadable" in run(some, code=1).stderr
    heavy = [row | {"weight": 9 if row["outcome"] == "complete" else 1} for row in found]
    gates = "defaults = false\n[gates.asr]\nthreshold = 0.9\n[gates.pass_at_1]\nthreshold = 0.9"
    found_ = by_name(run(csv_of(heavy), "--json", gates=gates))
    assert found_["asr"]["value"] == pytest.approx(324 / 328)
    assert found_["pass_at_1"]["value"] == pytest.approx(324 / 328)


def test_what_is_wrong_with_a_file_is_said_with_what_helps(run: Run) -> None:
    """Most of it is told as `asr report` tells it."""
    csv_of([row | {"workflow": "airline"} for row in rows()])
    error = run("runs.csv", "--only-known-workflows", code=2).stderr
    assert "no run is left (Left out: 200 of 200 rows (200 of a workflow that the rubric" in error
    csv_of(rows())
    for option, match in (
        (("--strict-cost", "--column", "cost_usd="), "200 of 200 runs have no cost"),
        (("--from", "2027-01-01"), "runs.csv: no run is left"),
        (("--batch", "b"), "--batch is for the store; name no runs"),
        (("--junit", "runs.csv"), "runs.csv: is one of the files that are read"),
        (("--write-baseline", "gates.toml"), "gates.toml: is one of the files that are read"),
        (("--junit", "no/such/place.xml"), "no/such/place.xml: cannot be written"),
    ):
        assert match in run("runs.csv", *option, code=2).stderr
    assert Path("gates.toml").read_text(encoding="utf-8") == ""


def test_labels_are_read_in_any_words_and_columns(run: Run) -> None:
    found = rows()
    words = (csv_of(found), "--design", "reference", "--json")
    ours = run(*words, "--labels", labels_of(found), code=None)
    listed = [
        {"run_id": row["trace_id"], "human_label": f" {row['outcome'].title()} ", "who": "Ann"}
        for row in found[::4]
    ]
    named = ("--column", "reviewer=who", "--labels", csv_of(listed, "labels.csv"))
    theirs = run(*words, *named, code=None)
    assert by_name(theirs) == by_name(ours)
    good = ("--labels", labels_of(found, outcome="good"))
    assert "--map good=CLASS" in run(*words, *good, code=2).stderr
    assert by_name(run(*words, *good, "--map", "good=complete", code=None))["judge"]["n"]
    assert "no 'best'" in run(*words, *good, "--map", "best=complete", code=2).stderr
