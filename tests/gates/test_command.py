"""`asr gate`: exit codes, and what it writes, through the command."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.cli_runs import data
from tests.gates.runs import HOSTILE, Run, by_name, csv_of, labels_of, rows


def test_a_run_that_passes_everything(run: Run) -> None:
    """Sixty tasks: when none changed, 1 - .05^(1/58) leaves room for 5.03 pp and 59 do not."""
    found = rows(n_tasks=60, failing=6)
    run(csv_of(found), "--write-baseline", "b.json", code=1)
    done = run("runs.csv", "--baseline", "b.json", "--labels", labels_of(found), "--json")
    result = data(done)
    assert (result["passed"], result["exit_code"], result["calibrated"]) == (True, 0, False)
    gates = by_name(done)
    # These runs have no time.
    assert {name for name, gate in gates.items() if gate["status"] != "pass"} == {"trend"}
    assert gates["trend"]["why"] == "no column 'started_at': record when each run was started"
    core = gates["pass_at_1[core]"]
    assert core["value"] == pytest.approx(48 / 54)
    assert (core["n"], core["threshold"], core["level"]) == (54, 0.8, "must")
    assert core["method"] == "Gaffke's limits over tasks"
    assert gates["pass_hat_3[core]"]["value"] == pytest.approx(48 / 54)
    assert gates["loops"]["interval"] == pytest.approx([0, 1 - 0.05 ** (1 / 300)])
    assert gates["human_review"]["n"] == 75
    assert gates["regression"]["value"] == 0
    assert gates["cost"]["parts"][1]["value"] == pytest.approx(0.05)
    assert result["rates"]["asr"]["value"] == pytest.approx(0.9)


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


def test_names_do_not_steer_the_terminal_and_a_summary_goes_on(run: Run) -> None:
    """What names are in JUnit and Markdown is proved in tests/reporting/test_gates.py."""
    found = [row | {"category": HOSTILE, "workflow": HOSTILE} for row in rows()]
    Path("summary.md").write_text("before\n", encoding="utf-8")
    written = ("--junit", "gates.xml", "--summary", "summary.md")
    shown = run(csv_of(found), *written, code=1).stdout
    assert "\\x1b[2J" in shown
    text = Path("summary.md").read_text(encoding="utf-8")
    assert text.startswith("before\n# Gates\n\n> **`GATES FAILED: ")
    assert "\x1b" not in shown + text + Path("gates.xml").read_text(encoding="utf-8")


def test_a_lasting_drop_of_the_weekly_rate_fails_the_run(run: Run) -> None:
    """Ten weeks of 40 runs at .9, then three at .7: .2 is 2.4 standard errors of a week.

    On the logit scale half a run is added to both sides: (36 + .5) / 41 = .890.
    """
    gates = 'defaults = false\n[gates.trend]\nlevel = "must"'
    found = [
        row | {"started_at": f"{monday}T10:00:00Z", "trace_id": f"{week}-{number}", "task_id": ""}
        for week in range(13)
        for monday in [date(2026, 6, 1) + timedelta(weeks=week)]
        for number, row in enumerate(rows(40, trials=1, failing=12 if week > 9 else 4))
    ]
    done = run(csv_of(found), "--json", code=1, gates=gates)
    trend = by_name(done)["trend"]
    assert (trend["status"], trend["n"], trend["threshold"]) == ("fail", 5, 4.3)
    assert trend["why"] == "below its baseline of 0.890 since 2026-W33"
    kept = [row for row in found if row["started_at"] < "2026-07-20"]
    done = run(csv_of(kept), "--json", code=1, gates=gates)
    trend = by_name(done)["trend"]
    assert trend["why"] == "9 weeks with an interval are needed, there are 7"
