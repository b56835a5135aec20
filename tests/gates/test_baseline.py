"""`asr gate` against a baseline: paired or not, restated, refused, written and read back."""

import json
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.gates.baseline import PART, baseline_data, read_baseline
from calibration.errors import InputError
from tests.classes import TAXONOMY
from tests.cli_runs import data
from tests.gates.runs import Run, by_name, csv_of, gates_of, rows


def test_a_drop_against_the_baseline_blocks(run: Run, baseline: str) -> None:
    done = run(csv_of(rows(failing=8)), "--baseline", baseline, "--json", code=1)
    regression = by_name(done)["regression"]
    assert (regression["status"], regression["value"]) == ("fail", pytest.approx(-0.1))
    assert regression["method"] == "difference, bootstrap, 1,000 resamples, whole tasks"
    assert regression["why"].endswith("paired by task")
    assert by_name(done)["non_inferior"]["status"] == "fail"


@pytest.mark.long
def test_a_drop_in_one_category_blocks(run: Run, baseline: str) -> None:
    found = rows()
    for row in found:
        if row["category"] == "refund" and int(row["task_id"].split()[1]) < 16:
            row["outcome"] = "abandoned"
    gates = "rule = 'not_shown_bad'\n[gates.regression]\nmax_drop_pp = 30"
    done = run(csv_of(found), "--baseline", baseline, "--json", code=1, gates=gates)
    regression = by_name(done)["regression"]
    assert regression["value"] > -0.3
    assert [(p["name"], p["status"]) for p in regression["parts"]] == [
        ("other", "pass"), ("refund", "pass"),
    ]  # fmt: skip
    gates = "rule = 'not_shown_bad'\n[gates.regression]\nmax_drop_pp = 10"
    done = run("runs.csv", "--baseline", baseline, "--json", code=1, gates=gates)
    regression = by_name(done)["regression"]
    assert regression["status"] == "fail"
    assert "category refund (Holm)" in regression["why"]


def test_tasks_that_came_and_went_are_counted(run: Run, baseline: str) -> None:
    more = csv_of(rows(n_tasks=44, failing=8)[5:])
    why = gates_of(run, more, "--baseline", baseline, code=1)["regression"]["why"]
    assert "over the 39 tasks that both have; 4 are new and 1 are gone" in why


def test_without_tasks_in_common_the_samples_are_compared(run: Run, baseline: str) -> None:
    others = [row | {"task_id": "other " + row["task_id"]} for row in rows()]
    done = run(csv_of(others), "--baseline", baseline, "--json", code=1)
    regression = by_name(done)["regression"]
    assert regression["why"].endswith("no task is in both: treated as two samples")
    assert regression["value"] == 0
    paired = gates_of(run, csv_of(rows()), "--baseline", baseline, code=1)["regression"]
    (low, high), (lower, higher) = paired["interval"], regression["interval"]
    assert high - low < higher - lower


def test_runs_without_tasks_are_compared_as_two_samples(run: Run) -> None:
    found = [{k: v for k, v in row.items() if k not in ("task_id", "trial")} for row in rows()]
    run(csv_of(found), "--write-baseline", "b.json", code=1)
    saved = json.loads(Path("b.json").read_text(encoding="utf-8"))["for_comparison"]
    assert saved["tasks"]["names"] is None
    assert sum(saved["tasks"]["like"]) == sum(saved["runs"]["n"]) == 200
    done = run("runs.csv", "--baseline", "b.json", "--json", code=1)
    assert (by_name(done)["regression"]["value"], by_name(done)["non_inferior"]["value"]) == (0, 0)


def test_a_baseline_comes_back_as_it_was_written(run: Run) -> None:
    found = [row | {"weight": 1 + n % 3, "stratum": row["tier"]} for n, row in enumerate(rows())]
    run(csv_of(found), "--write-baseline", "b.json", code=1)
    saved = json.loads(Path("b.json").read_text(encoding="utf-8"))
    assert baseline_data(read_baseline(Path("b.json"), TAXONOMY)) == saved[PART]
    done = run("runs.csv", "--baseline", "b.json", "--write-baseline", "b.json", "--json", code=1)
    assert by_name(done)["regression"]["status"] == "pass"
    assert by_name(done)["regression"]["interval"][0] < 0, "no change seen is no proof of none"


def test_the_same_task_id_in_two_workflows_is_two_tasks(run: Run) -> None:
    two = [row | {"workflow": name, "trace_id": name + row["trace_id"], "category": name}
           for name in ("scheduling", "support_triage") for row in rows(20, 3, 2)]  # fmt: skip
    result = data(run(csv_of(two), "--json", "--write-baseline", "b.json", code=1))
    assert (result["n_tasks"], result["n_runs"]) == (40, 120)
    done = run("runs.csv", "--baseline", "b.json", "--json", code=1)
    assert by_name(done)["regression"]["n"] == 40
    assert [part["n"] for part in by_name(done)["regression"]["parts"]] == [20, 20]


@pytest.mark.long
def test_other_weights_are_restated_and_other_questions_refused(run: Run, baseline: str) -> None:
    ours = Path("taxonomy.toml")
    text = (Path(__file__).parents[2] / "calibration" / "taxonomy.toml").read_text("utf-8")
    ours.write_text(text.replace("credit = 0.4", "credit = 0.9"), encoding="utf-8")
    found = [row | {"outcome": "partial_plus"} if row["tier"] == "edge" else row for row in rows()]
    words = (csv_of(found), "--baseline", baseline, "--taxonomy", ours, "--json")
    gates = by_name(run(*words, code=1))
    assert gates["non_inferior"]["value"] == pytest.approx(-0.6 * 6 / 40)
    assert "both restated under 1 / 0.4" in gates["non_inferior"]["why"]
    assert gates["regression"]["value"] == pytest.approx(-6 / 40)
    dear = text.replace("ceiling_usd = 0.10", "ceiling_usd = 0.20")
    ours.write_text(dear, encoding="utf-8")
    gates = by_name(run(*words, code=1))
    assert gates["non_inferior"]["status"] == "not_estimable"
    assert "support_triage 0.1 and 0.2" in gates["non_inferior"]["why"]
    assert gates["regression"]["value"] == pytest.approx(-6 / 40)
    ours.write_text(text.replace("deliver any output", "deliver"), encoding="utf-8")
    gates = by_name(run(*words, code=1))
    for name in ("non_inferior", "regression"):
        assert gates[name]["status"] == "not_estimable"
        assert "labelled with other questions" in gates[name]["why"]


@pytest.mark.long
def test_too_many_categories_are_not_compared_and_that_is_said(run: Run) -> None:
    found = [row | {"category": row["task_id"]} for row in rows(n_tasks=201, trials=1, failing=99)]
    run(csv_of(found), "--write-baseline", "b.json", code=1)
    done = run("runs.csv", "--baseline", "b.json", "--json", code=1)
    assert by_name(done)["regression"]["parts"] == []
    assert any("more than 200 categories" in note for note in data(done)["notes"])
    assert any("did not pass its own gates" in note for note in data(done)["notes"])


@pytest.mark.long
def test_more_tasks_than_are_told_apart_by_name(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    found = rows(failing=9)
    named = by_name(run(csv_of(found), "--json", "--write-baseline", "n.json", code=1))
    monkeypatch.setattr("calibration.runs.counts.MOST_NAMED", 10)
    counted = by_name(run("runs.csv", "--json", "--write-baseline", "b.json", code=1))
    for name in ("pass_at_1[core]", "pass_hat_3[core]", "loops", "latency_p95", "cost"):
        assert counted[name] == named[name]
    for baseline in ("b.json", "n.json"):
        done = run("runs.csv", "--baseline", baseline, "--json", code=1)
        assert by_name(done)["regression"]["value"] == 0
        assert "paired" not in by_name(done)["regression"]["why"]


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a baseline"),
        ('{"exit_code": 0}', "is what --json printed, which holds no runs"),
        ('{"for_comparison": {"format": "asr-gate-baseline/1"}}', "'partial_plus_passes' is"),
        ('{"for_comparison": {"format": "asr-gate-baseline/0"}}', "is not a baseline"),
        ('{"a": NaN}', "is not JSON"),
    ],
)
def test_a_file_that_is_no_baseline(tmp_path: Path, content: str, match: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=match):
        read_baseline(path, TAXONOMY)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("runs n", "many"), ("runs n", [1]), ("runs score", -1), ("runs", {}), ("runs", 3),
        ("credit", [1, 2]), ("tree", 3), ("ceilings", {"support_triage": "much"}), ("tasks", 7),
        ("tasks n", [2]), ("tasks passed", 9), ("tasks n", 0.5), ("tasks weights", 0),
        ("tasks names", "t"), ("partial_plus_passes", "no"),
    ],
)  # fmt: skip
def test_a_damaged_baseline_is_refused(saved: str, tmp_path: Path, place: str, value: Any) -> None:
    whole = json.loads(saved)
    *above, last = place.split()
    part = whole["for_comparison"]
    for key in above:
        part = part[key]
    each = isinstance(part[last], list) and not isinstance(value, list)
    part[last] = [value] * len(part[last]) if each else value
    path = tmp_path / "base.json"
    path.write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(InputError, match=r"base.json, field 'for_comparison'.*baseline again"):
        read_baseline(path, TAXONOMY)
