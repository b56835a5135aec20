"""`asr gate`: exit codes, what it writes, baselines, and refusals, through the command."""

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from calibration.analyses.gate_baseline import PART, baseline_data, read_baseline
from calibration.cli import main
from calibration.errors import InputError
from reference_dataset.loader import load_reference

Run = Callable[..., Result]
COLUMNS = (
    "trace_id", "workflow", "outcome", "cost_usd", "units", "task_id", "trial", "latency_s",
    "model", "tier", "category", "loops", "data_corruption",
)  # fmt: skip
HOSTILE = "a|b <img src=x> `x` [y](http://evil) @all www.evil.example\x1b[2J\n# h"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `asr gate` in a directory of its own; an exception is a failed test."""
    monkeypatch.chdir(tmp_path)
    Path("gates.toml").write_text("", encoding="utf-8")

    def called(*words: object, code: int = 0, gates: str | None = None) -> Result:
        if gates is not None:
            Path("gates.toml").write_text(gates, encoding="utf-8")
        done = CliRunner().invoke(main, ["gate", *map(str, words), "--gates", "gates.toml"])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == code, done.output
        if code == 2:
            assert done.stderr.splitlines()[-1].startswith("error: "), done.stderr
        return done

    return called


def rows(
    n_tasks: int = 40, trials: int = 5, failing: int = 4, **changes: Any
) -> list[dict[str, Any]]:
    """Return runs of tasks: all trials of the last tasks fail, so pass@1 = pass^k."""
    found = []
    for task in range(n_tasks):
        for trial in range(trials):
            row = {
                "trace_id": f"t{task}-{trial}", "workflow": "support_triage",
                "outcome": "partial_minus" if task >= n_tasks - failing else "complete",
                "cost_usd": 0.05, "units": 1, "task_id": f"task {task}", "trial": trial,
                "latency_s": 5 + task / 10, "model": "m", "tier": "edge" if task < 6 else "core",
                "category": ("refund", "other")[task % 2], "loops": 0, "data_corruption": "no",
            }  # fmt: skip
            found.append(row | changes)
    return found


def csv_of(found: Sequence[dict[str, Any]], name: str = "runs.csv") -> str:
    with Path(name).open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    return name


def labels_of(found: Sequence[dict[str, Any]], every: int = 4, **changes: str) -> str:
    chosen = [
        {"trace_id": r["trace_id"], "outcome": r["outcome"]} | changes for r in found[::every]
    ]
    return csv_of(chosen, "labels.csv")


def data(done: Result) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(done.stdout, parse_constant=refuse)


def by_name(done: Result) -> dict[str, dict[str, Any]]:
    return {gate["name"]: gate for gate in data(done)["gates"]}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a baseline of 40 tasks of which four fail."""
    folder = tmp_path_factory.mktemp("saved")
    (folder / "gates.toml").write_text("", encoding="utf-8")
    words = [csv_of(rows(), str(folder / "runs.csv")), "--gates", str(folder / "gates.toml")]
    done = CliRunner().invoke(main, ["gate", *words, "--write-baseline", str(folder / "b.json")])
    assert done.exit_code == 1, done.output
    return (folder / "b.json").read_text(encoding="utf-8")


@pytest.fixture
def baseline(run: Run, saved: str) -> str:
    Path("base.json").write_text(saved, encoding="utf-8")
    return "base.json"


def test_a_run_that_passes_everything(run: Run) -> None:
    """Sixty tasks: when none changed, 1 - .05^(1/58) leaves room for 5.03 pp and 59 do not."""
    found = rows(n_tasks=60, failing=6)
    run(csv_of(found), "--write-baseline", "b.json", code=1)
    done = run("runs.csv", "--baseline", "b.json", "--labels", labels_of(found), "--json")
    result = data(done)
    assert (result["passed"], result["exit_code"], result["calibrated"]) == (True, 0, False)
    gates = by_name(done)
    assert {gate["status"] for gate in gates.values()} == {"pass"}
    core = gates["pass_at_1[core]"]
    assert core["value"] == pytest.approx(48 / 54)
    assert (core["n"], core["threshold"], core["level"]) == (54, 0.8, "must")
    assert "resamples of tasks" in core["method"]
    assert gates["pass_hat_3[core]"]["value"] == pytest.approx(48 / 54)
    assert gates["loops"]["interval"] == pytest.approx([0, 1 - 0.05 ** (1 / 300)])
    assert gates["human_review"]["n"] == 75
    assert gates["regression"]["value"] == 0
    assert gates["cost"]["parts"][1]["value"] == pytest.approx(0.05)
    assert result["rates"]["asr"]["value"] == pytest.approx(0.9)


def test_a_must_gate_that_fails_ends_in_one(run: Run) -> None:
    done = run(csv_of(rows(failing=20)), code=1)
    assert done.stdout.startswith("GATES FAILED: pass_at_1[core], pass_hat_3[core]")
    assert "a must gate without a result fails" in done.stdout


def test_a_should_gate_that_fails_ends_in_zero(run: Run) -> None:
    gates = "defaults = false\n[gates.asr]\nthreshold = 0.99\nlevel = 'should'"
    done = run(csv_of(rows()), "--json", gates=gates)
    assert by_name(done)["asr"]["status"] == "fail"
    assert not by_name(done)["asr"]["blocks"]


def test_what_was_not_recorded_is_skipped_and_blocks_until_that_is_allowed(run: Run) -> None:
    bare = [{name: row[name] for name in ("trace_id", "workflow", "outcome")} for row in rows()]
    words = (csv_of(bare), "--column", "cost_usd=")
    gates = by_name(run(*words, "--json", code=1))
    assert gates["pass_at_1[core]"]["status"] == "pass"
    assert gates["pass_hat_3[core]"]["status"] == "not_estimable"
    assert gates["pass_hat_3[core]"]["why"] == (
        "no task has 3 trials: run each task 3 times or more"
    )
    for name in ("loops", "data_corruption", "human_review", "regression", "cost", "latency_p95"):
        assert gates[name]["status"] == "skipped"
        assert gates[name]["why"]
    assert gates["pass_at_1[edge]"]["why"] == "no column 'tier': all tasks are core"
    run(*words, gates="allow_skipped = true")


def test_formats_give_the_same(run: Run) -> None:
    found = rows()
    prints = set()
    frame = pd.DataFrame(found).astype({"trial": str})
    frame.to_parquet("runs.parquet")
    Path("runs.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in found), encoding="utf-8"
    )
    for name in (csv_of(found), "runs.parquet", "runs.jsonl"):
        prints.add(data(run(name, "--json", code=1))["fingerprint"])
    assert len(prints) == 1


def test_a_drop_against_the_baseline_blocks(run: Run, baseline: str) -> None:
    done = run(csv_of(rows(failing=8)), "--baseline", baseline, "--json", code=1)
    regression = by_name(done)["regression"]
    assert (regression["status"], regression["value"]) == ("fail", pytest.approx(-0.1))
    assert regression["method"] == "difference, bootstrap, 1,000 resamples, whole tasks"
    assert regression["why"].endswith("paired by task")
    assert by_name(done)["non_inferior"]["status"] == "fail"
    shown = run("runs.csv", "--baseline", baseline, code=1).stdout
    assert "-10.0 [" in shown
    assert " pp" in shown


def test_a_drop_in_one_category_blocks(run: Run, baseline: str) -> None:
    found = rows()
    for row in found:
        if row["category"] == "refund" and int(row["task_id"].split()[1]) < 16:
            row["outcome"] = "abandoned"
    gates = "interval_aware = true\n[gates.regression]\nmax_drop_pp = 30"
    done = run(csv_of(found), "--baseline", baseline, "--json", code=1, gates=gates)
    regression = by_name(done)["regression"]
    assert regression["value"] > -0.3
    assert [(p["name"], p["status"]) for p in regression["parts"]] == [
        ("other", "pass"), ("refund", "pass"),
    ]  # fmt: skip
    gates = "interval_aware = true\n[gates.regression]\nmax_drop_pp = 10"
    done = run("runs.csv", "--baseline", baseline, "--json", code=1, gates=gates)
    regression = by_name(done)["regression"]
    assert regression["status"] == "fail"
    assert "category refund (Holm)" in regression["why"]


def test_tasks_that_came_and_went_are_counted(run: Run, baseline: str) -> None:
    more = rows(n_tasks=44, failing=8)
    done = run(csv_of(more[5:]), "--baseline", baseline, "--json", code=1)
    assert (
        "over the 39 tasks that both have; 4 are new and 1 are gone"
        in (by_name(done)["regression"]["why"])
    )


def test_without_tasks_in_common_the_samples_are_compared(run: Run, baseline: str) -> None:
    others = [row | {"task_id": "other " + row["task_id"]} for row in rows()]
    done = run(csv_of(others), "--baseline", baseline, "--json", code=1)
    regression = by_name(done)["regression"]
    assert regression["why"].endswith("no task is in both: taken as two samples")
    assert regression["value"] == 0
    paired = by_name(run(csv_of(rows()), "--baseline", baseline, "--json", code=1))["regression"]
    assert paired["interval"][1] - paired["interval"][0] < (
        regression["interval"][1] - regression["interval"][0]
    )


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
    assert baseline_data(read_baseline(Path("b.json"))) == saved[PART]
    done = run("runs.csv", "--baseline", "b.json", "--write-baseline", "b.json", "--json", code=1)
    assert by_name(done)["regression"]["status"] == "pass"
    assert by_name(done)["regression"]["interval"][0] < 0, "no change seen is no proof of none"


def test_what_json_printed_is_no_baseline(run: Run) -> None:
    Path("printed.json").write_text(run(csv_of(rows()), "--json", code=1).stdout, encoding="utf-8")
    error = run("runs.csv", "--baseline", "printed.json", code=2).stderr
    assert "is what --json printed, which holds no runs" in error
    assert "asr gate --write-baseline" in error


def test_the_same_task_id_in_two_workflows_is_two_tasks(run: Run) -> None:
    two = [row | {"workflow": name, "trace_id": name + row["trace_id"], "category": name}
           for name in ("scheduling", "support_triage") for row in rows(20, 3, 2)]  # fmt: skip
    result = data(run(csv_of(two), "--json", "--write-baseline", "b.json", code=1))
    assert (result["n_tasks"], result["n_runs"]) == (40, 120)
    done = run("runs.csv", "--baseline", "b.json", "--json", code=1)
    assert by_name(done)["regression"]["n"] == 40
    assert [part["n"] for part in by_name(done)["regression"]["parts"]] == [20, 20]


def test_a_baseline_of_other_weights_is_restated_and_of_other_questions_refused(
    run: Run, baseline: str
) -> None:
    ours = Path("taxonomy.toml")
    text = (Path(__file__).parents[1] / "calibration" / "taxonomy.toml").read_text("utf-8")
    ours.write_text(text.replace("credit = 0.4", "credit = 0.9"), encoding="utf-8")
    found = [row | {"outcome": "partial_plus"} if row["tier"] == "edge" else row for row in rows()]
    words = (csv_of(found), "--baseline", baseline, "--taxonomy", ours, "--json")
    gates = by_name(run(*words, code=1))
    assert gates["non_inferior"]["value"] == pytest.approx(-0.6 * 6 / 40)
    assert "both restated under the default ones" in gates["non_inferior"]["why"]
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


def test_ceilings_of_the_gate_file(run: Run) -> None:
    gates = "defaults = false\n[gates.cost]\n[ceilings]\nsupport_triage = 0.04"
    done = run(csv_of(rows()), "--json", code=1, gates=gates)
    cost = by_name(done)["cost"]
    assert cost["why"] == "failed: runs above their ceiling, support_triage"
    assert run(csv_of(rows(units=2)), gates=gates)


def test_labels_that_were_chosen_are_no_review(run: Run) -> None:
    found = rows()
    words = (csv_of(found), "--labels", labels_of(found), "--design", "reference", "--json")
    gates = by_name(run(*words, code=1))
    assert gates["human_review"]["status"] == "skipped"
    assert "chosen, not drawn at random" in gates["human_review"]["why"]
    assert gates["judge"]["status"] == "pass"


def test_models_are_never_pooled(run: Run) -> None:
    found = rows()
    two = found + [row | {"trace_id": "x" + row["trace_id"], "model": "n"} for row in found]
    gates = by_name(run(csv_of(two), "--json", code=1))
    assert gates["pass_at_1[core]"]["status"] == "not_estimable"
    assert "of several models" in gates["pass_at_1[core]"]["why"]
    assert by_name(run("runs.csv", "--model", "n", "--json", code=1))["pass_at_1[core]"]["n"] == 34
    assert "there are m, n" in run("runs.csv", "--model", "z", code=2).stderr


def test_partial_plus_passes_when_the_file_says_so(run: Run) -> None:
    found = rows(outcome="partial_plus")
    gates = 'defaults = false\n[gates."pass_at_1"]\nthreshold = 1.0\n'
    assert by_name(run(csv_of(found), "--json", gates=gates, code=1))["pass_at_1"]["value"] == 0
    generous = "partial_plus_passes = true\n" + gates
    found_ = by_name(run("runs.csv", "--json", gates=generous))["pass_at_1"]
    assert found_["value"] == 1
    assert found_["interval"] == pytest.approx([0.025 ** (1 / 40), 1])


def test_the_same_seed_gives_the_same_and_another_another(run: Run) -> None:
    csv_of(rows())
    one, same = (run("runs.csv", "--json", code=1).stdout for _ in range(2))
    assert one == same
    other = data(run("runs.csv", "--json", "--seed", 1, code=1))
    assert other["fingerprint"] != json.loads(one)["fingerprint"]


def test_too_many_categories_are_not_compared_and_that_is_said(run: Run) -> None:
    found = [row | {"category": row["task_id"]} for row in rows(n_tasks=201, trials=1)]
    run(csv_of(found), "--write-baseline", "b.json", code=1)
    done = run("runs.csv", "--baseline", "b.json", "--json", code=1)
    assert by_name(done)["regression"]["parts"] == []
    assert any("more than 200 categories" in note for note in data(done)["notes"])


# What is written


def test_junit_is_a_suite_that_parsers_take(run: Run) -> None:
    found = [row | {"category": HOSTILE, "workflow": HOSTILE} for row in rows()]
    run(csv_of(found), "--any-workflow", "--junit", "gates.xml", code=1)
    root = ET.parse("gates.xml").getroot()
    (suite,) = root
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    cases = suite.findall("testcase")
    failures, skipped = suite.findall("testcase/failure"), suite.findall("testcase/skipped")
    assert suite.attrib["tests"] == str(len(cases)) == "11"
    assert suite.attrib["failures"] == str(len(failures)) == "3"
    assert suite.attrib["skipped"] == str(len(skipped)) == "2"
    # Order of the common schema: properties, cases, system-out, system-err.
    assert [child.tag for child in suite if child.tag != "testcase"] == [
        "properties", "system-out", "system-err",
    ]  # fmt: skip
    for case in cases:
        assert {"name", "classname", "time"} == set(case.attrib)
        assert len(list(case)) <= 1
    by = {case.attrib["name"]: case for case in cases}
    failure = by["cost"].find("failure")
    assert failure is not None
    assert failure.attrib["type"] == "not_estimable"
    assert "<img src=x>" in (failure.attrib["message"] + (failure.text or ""))
    assert "\x1b" not in Path("gates.xml").read_text(encoding="utf-8")
    assert by["judge"].find("skipped") is not None


def test_the_summary_is_added_and_holds_no_markup_of_names(run: Run) -> None:
    found = [row | {"workflow": HOSTILE} for row in rows()]
    Path("summary.md").write_text("before\n", encoding="utf-8")
    run(csv_of(found), "--any-workflow", "--summary", "summary.md", code=1)
    text = Path("summary.md").read_text(encoding="utf-8")
    assert text.startswith("before\n## GATES FAILED&#58; ")
    for active in ("<img", "](", "`", "\x1b", "http:", "www.", "@all", "\n# h"):
        assert active not in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 11
    assert {line.count("|") for line in table} == {8}
    assert "evil" in text


def test_names_do_not_steer_the_terminal(run: Run) -> None:
    hostile = csv_of([row | {"workflow": HOSTILE} for row in rows()])
    shown = run(hostile, "--any-workflow", code=1).stdout
    assert "\x1b" not in shown
    assert "\\x1b[2J" in shown


def test_a_baseline_that_failed_its_own_gates_is_named(run: Run) -> None:
    run(csv_of(rows(failing=30)), "--write-baseline", "bad.json", code=1)
    done = run(csv_of(rows(failing=30)), "--baseline", "bad.json", "--json", code=1)
    assert any("did not pass its own gates" in note for note in data(done)["notes"])


# Refusals


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"loops": "maybe"}, "column 'loops': 1 rows hold neither yes, no nor a number from 0 up"),
        ({"data_corruption": "-1"}, "column 'data_corruption': 1 rows hold neither"),
        ({"trial": 0}, "column 'trial': trial '0' of task 'task 0' is there 2 times"),
        ({"tier": "core"}, "column 'tier': task 'task 0' is both 'core' and 'edge'"),
        ({"category": "x"}, "column 'category': task 'task 0' is both"),
    ],
)
def test_a_column_that_cannot_be_gated_is_named(
    run: Run, change: dict[str, Any], match: str
) -> None:
    found = rows()
    found[1] |= change
    assert match in run(csv_of(found), code=2).stderr


def test_rows_that_do_not_count_are_set_aside_as_in_the_report(run: Run) -> None:
    found = rows()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"outcome": ""}, "outcome is missing"),
        ({"outcome": "won"}, "outcome is none of complete, partial_plus"),
        ({"workflow": "cooking"}, "the workflow is none of the taxonomy"),
        ({"cost_usd": -1}, "cost_usd is negative"),
        ({"cost_usd": "nan"}, "cost_usd is not finite"),
        ({"units": 0}, "units is no number above 0"),
        ({"trace_id": ""}, "trace_id is missing"),
    ]
    for k, (change, _) in enumerate(wrong):
        found[k] |= change
    result = data(run(csv_of(found), "--json", code=1))
    reported = CliRunner().invoke(main, ["report", "runs.csv", "--json"])
    assert result["set_aside"] == json.loads(reported.stdout)["set_aside"]
    assert (result["n_runs"], len(result["set_aside"])) == (193, 7)
    shown = run("runs.csv", code=1).stdout
    for k, (_, reason) in enumerate(wrong):
        (aside,) = (row for row in result["set_aside"] if row["reason"].startswith(reason))
        assert (aside["n"], f"row {k + 1}" in aside["examples"][0]) == (1, True)
        assert f"set aside: 1 rows, {reason}" in shown


def test_traces_that_are_there_twice(run: Run) -> None:
    found = rows()
    same = run(csv_of([*found, found[0]]), "--json", code=1)
    assert (data(same)["n_runs"], data(same)["set_aside"][0]["n"]) == (200, 1)
    other = run(csv_of([*found, found[0] | {"loops": 1}]), "--json", code=1)
    assert (data(other)["n_runs"], data(other)["set_aside"][0]["n"]) == (199, 2)


def test_a_file_of_which_too_much_does_not_count_is_refused(run: Run) -> None:
    found = [row | ({"outcome": ""} if n % 10 == 0 else {}) for n, row in enumerate(rows())]
    error = run(csv_of(found), code=2).stderr
    assert (
        "20 of 200 rows were set aside (20: outcome is missing; the first: runs.csv row 1" in error
    )
    assert "max_set_aside in the gate file allows 5 %" in error
    run("runs.csv", code=1, gates="max_set_aside = 0.1")
    twice = rows() * 2
    run(csv_of(twice), code=1, gates="")


def test_the_rate_is_that_of_the_report_with_the_same_options(run: Run) -> None:
    found = [
        row | {"cost_usd": 0.05 + 0.002 * n, "started_at": f"2026-11-{2 + n % 14:02d}T10:00"}
        for n, row in enumerate(rows(failing=9))
    ]
    renamed = [{"price" if k == "cost_usd" else k: v for k, v in row.items()} for row in found]
    options = (
        "--column", "cost_usd=price", "--from", "2026-11-03", "--to", "2026-11-10", "--seed", "3",
        "--timezone", "Asia/Tokyo", "--ceiling", "support_triage=0.2", "--resamples", "400",
    )  # fmt: skip
    result = data(run(csv_of(renamed), *options, "--json", code=1))
    done = CliRunner().invoke(main, ["report", "runs.csv", *options, "--json"])
    assert done.exit_code == 0, done.output
    reported = json.loads(done.stdout)
    assert result["asr"] == reported["asr"]
    assert result["rates"]["class_shares"] == reported["class_shares"]
    assert result["n_runs"] == reported["n"] < 200
    assert any("times without a zone were read as Asia/Tokyo" in note for note in result["notes"])
    shown = run("runs.csv", *options[:2], "--from", "2027-01-01", code=2).stderr
    assert "runs.csv: no run is left (none lies in the window)" in shown


def test_reference_traces_are_refused_unless_forced_and_then_marked_everywhere(run: Run) -> None:
    trace_id = next(iter(load_reference().traces))
    own = trace_id.rpartition("-")[0]
    found = rows()
    found[3] |= {"trace_id": trace_id, "workflow": own}
    found = [row | {"workflow": own} for row in found]
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
    for text in (run("runs.csv", "--force", "--json", code=1).stdout, Path("b.json").read_text()):
        assert json.loads(text)["marks"][0].startswith("REFERENCE SET: 1 of these traces")


def test_corruption_is_read_from_tags_where_there_are_any(run: Run) -> None:
    said = (
        "data_corruption", "late; Data_Corruption |x", '["late", "data_corruption"]',
        "no data_corruption", "data_corruption_checked", "late",
    )  # fmt: skip
    found = [row | {"data_corruption": "", "tags": ""} for row in rows()]
    for row, tags in zip(found, said, strict=False):
        row["tags"] = tags
    found[6] |= {"data_corruption": "no", "tags": "data_corruption"}
    gate = by_name(run(csv_of(found), "--json", code=1))["data_corruption"]
    assert (gate["n"], gate["value"]) == (7, pytest.approx(3 / 7))


def test_lists_and_truth_values_of_parquet(run: Run) -> None:
    found = [row | {"loops": n == 0, "tags": [["a", "data_corruption"], []][n % 2]}
             for n, row in enumerate(rows())]  # fmt: skip
    frame = pd.DataFrame(found).drop(columns="data_corruption").astype({"trial": str})
    frame.to_parquet("runs.parquet")
    gates = by_name(run("runs.parquet", "--json", code=1))
    assert gates["loops"]["value"] == 1 / 200
    assert (gates["data_corruption"]["value"], gates["data_corruption"]["n"]) == (0.5, 200)


def test_more_tasks_than_are_told_apart_by_name(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    found = rows(failing=9)
    named = by_name(run(csv_of(found), "--json", "--write-baseline", "n.json", code=1))
    monkeypatch.setattr("calibration.production.gating.MOST_NAMED", 10)
    counted = by_name(run("runs.csv", "--json", "--write-baseline", "b.json", code=1))
    for name in ("pass_at_1[core]", "pass_hat_3[core]", "loops", "latency_p95", "cost"):
        assert counted[name] == named[name]
    for baseline in ("b.json", "n.json"):
        done = run("runs.csv", "--baseline", baseline, "--json", code=1)
        assert by_name(done)["regression"]["value"] == 0
        assert "paired" not in by_name(done)["regression"]["why"]


def test_some_weights_are_refused_and_all_are_used(run: Run) -> None:
    found = rows()
    some = csv_of([found[0] | {"weight": 2}] + [row | {"weight": ""} for row in found[1:]])
    assert "weight is missing, or no number" in run(some, code=2).stderr
    heavy = [row | {"weight": 9 if row["outcome"] == "complete" else 1} for row in found]
    gates = "defaults = false\n[gates.asr]\nthreshold = 0.9\n[gates.pass_at_1]\nthreshold = 0.9"
    found_ = by_name(run(csv_of(heavy), "--json", gates=gates))
    assert found_["asr"]["value"] == pytest.approx(324 / 328)
    assert found_["pass_at_1"]["value"] == pytest.approx(324 / 328)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is no baseline"),
        ('{"for_comparison": {"format": "asr-gate-baseline/1"}}', "'partial_plus_passes' is"),
        ('{"for_comparison": {"format": "asr-gate-baseline/0"}}', "is no baseline"),
        ('{"a": NaN}', "is not JSON"),
    ],
)
def test_a_file_that_is_no_baseline(tmp_path: Path, content: str, match: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=match):
        read_baseline(path)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("runs", "n"), "many"),
        (("runs", "n"), [1]),
        (("runs", "score"), -1),
        (("runs",), {}),
        (("runs",), 3),
        (("credit",), [1, 2]),
        (("tree",), 3),
        (("ceilings",), {"support_triage": "much"}),
        (("tasks",), 7),
        (("tasks", "n"), [2]),
        (("tasks", "passed"), 9),
        (("tasks", "n"), 0.5),
        (("tasks", "weights"), 0),
        (("tasks", "names"), "t"),
        (("partial_plus_passes",), "no"),
    ],
)
def test_a_damaged_baseline_is_refused(
    saved: str, tmp_path: Path, place: tuple[str, ...], value: Any
) -> None:
    whole = json.loads(saved)
    part = whole["for_comparison"]
    for key in place[:-1]:
        part = part[key]
    column = part[place[-1]]
    each = isinstance(column, list) and not isinstance(value, list)
    part[place[-1]] = [value] * len(column) if each else value
    path = tmp_path / "base.json"
    path.write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(InputError, match=r"base.json, field 'for_comparison'.*baseline again"):
        read_baseline(path)


def test_labels_of_other_runs_are_refused(run: Run) -> None:
    found = rows()
    others = labels_of([row | {"trace_id": "x" + row["trace_id"]} for row in found])
    assert (
        "no labelled trace is among the runs"
        in run(csv_of(found), "--labels", others, code=2).stderr
    )
    assert (
        "is none of complete"
        in run("runs.csv", "--labels", labels_of(found, outcome="good"), code=2).stderr
    )


def test_what_is_wrong_with_a_file_is_said_with_what_helps(run: Run) -> None:
    header = csv_of(rows())
    Path("header.csv").write_text(Path(header).read_text("utf-8").splitlines()[0] + "\n", "utf-8")
    assert "no run is left (the file holds no rows)" in run("header.csv", code=2).stderr
    Path("empty.csv").write_text("", encoding="utf-8")
    assert "the file is empty; it needs a header or a trace" in run("empty.csv", code=2).stderr
    csv_of([row | {"workflow": "airline"} for row in rows()])
    error = run("runs.csv", code=2).stderr
    assert "--any-workflow keeps them, --ceiling NAME=USD makes a workflow known" in error
    csv_of([{k: v for k, v in row.items() if k != "outcome"} for row in rows()])
    assert (
        "name the one that stands for it: --column outcome=NAME" in run("runs.csv", code=2).stderr
    )
    for option, match in (
        (("--strict-cost", "--column", "cost_usd="), "200 of 200 runs have no cost"),
        (("--batch", "b"), "--batch is for the store; leave out the FILE"),
        (("--junit", "runs.csv"), "runs.csv: is one of the files that are read"),
        (("--write-baseline", "gates.toml"), "gates.toml: is one of the files that are read"),
    ):
        assert match in run(csv_of(rows()), *option, code=2).stderr
    assert Path("gates.toml").read_text(encoding="utf-8") == ""


def test_a_run_that_passes_without_results_says_how_many(run: Run) -> None:
    shown = run(csv_of(rows()), gates="allow_skipped = true").stdout
    assert shown.startswith("GATES PASSED: 5 of 7 that must; 2 had no result, as allow_skipped")
    gates = "defaults = false\n[gates.loops]"
    assert run("runs.csv", gates=gates).stdout.startswith("GATES PASSED: all 1 that must")


def test_places_that_cannot_be_written_or_read(run: Run) -> None:
    csv_of(rows())
    error = run("runs.csv", "--junit", "no/such/place.xml", code=2).stderr
    assert "no/such/place.xml: cannot be written" in error
    assert "missing.csv: there is no such file" in run("missing.csv", code=2).stderr
    assert "unknown key" in run("runs.csv", gates="speed = 1", code=2).stderr
