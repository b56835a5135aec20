"""`asr gate`: exit codes, and what it writes, through the command."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.gates.runs import HOSTILE, Run, by_name, csv_of, data, labels_of, rows


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


def test_ceilings_of_the_gate_file(run: Run) -> None:
    gates = "defaults = false\n[gates.cost]\n[ceilings]\nsupport_triage = 0.04"
    done = run(csv_of(rows()), "--json", code=1, gates=gates)
    cost = by_name(done)["cost"]
    assert cost["why"] == "failed: runs above their ceiling, support_triage"
    assert run(csv_of(rows(units=2)), gates=gates)


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
    assert text.startswith("before\n# Gates\n\n> **`GATES FAILED: ")
    # A code span shows what it holds: nothing in it is obeyed.
    text = re.sub(r"(`+).+?\1", "(name)", text)
    for active in ("<img", "](", "`", "\x1b", "http:", "www.", "@all", "\n# h"):
        assert active not in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 11
    assert {line.count("|") for line in table} == {6}


def test_names_do_not_steer_the_terminal(run: Run) -> None:
    hostile = csv_of([row | {"workflow": HOSTILE} for row in rows()])
    shown = run(hostile, "--any-workflow", code=1).stdout
    assert "\x1b" not in shown
    assert "\\x1b[2J" in shown
