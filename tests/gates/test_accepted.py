"""A should gate that failed and is accepted: on record in every output, and until its day."""

from datetime import date
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from calibration.errors import InputError
from calibration.gates.evaluate import Measurements, evaluate
from calibration.gates.gate_file import GateFile, acceptance, parse_gates, setting, with_accepted
from calibration.statistics.estimate import Estimate
from tests.gates.runs import Run, by_name, csv_of, rows

GATES = 'defaults = false\n[gates.latency_p95]\nthreshold = 1\n[gates.cost]\nlevel = "must"\n'
BY = ("--by", "Mara Lind", "--why", "Night jobs only.")
ON_FILE = """
[[accepted]]
gate = "latency_p95"
by = "Ole Berg"
why = "Moved in May."
until = {}
"""


def test_it_is_on_record_in_every_output(run: Run) -> None:
    words = (csv_of(rows(8)), "--accept", "latency_p95", *BY, "--until", "2999-12-31")
    done = run(*words, "--json", "--junit", "g.xml", "--summary", "s.md", gates=GATES)
    found = by_name(done)
    assert found["latency_p95"]["accepted"] == {
        "status": "accepted", "by": "Mara Lind", "why": "Night jobs only.", "until": "2999-12-31",
    }  # fmt: skip
    assert (found["latency_p95"]["status"], found["cost"]["accepted"]) == ("fail", None)
    risk = "accepted by Mara Lind until 2999-12-31"
    summary = Path("s.md").read_text(encoding="utf-8")
    assert f"GATES PASSED: all 1 must gates; latency_p95: {risk}" in summary
    assert f"{risk}: Night jobs only." in summary
    suite = ET.parse("g.xml").getroot()[0]
    told = {of.get("name"): of.get("value") for of in suite.iter("property")}
    assert told["accepted latency_p95"] == f"{risk}: Night jobs only."
    assert "Night jobs only." in next(suite.iter("skipped")).get("message", "")


def test_the_gate_file_may_hold_it_and_the_command_line_goes_first(run: Run) -> None:
    csv_of(rows(8))
    shown = run("runs.csv", gates=GATES + ON_FILE.format("2020-01-31")).stdout
    assert "acceptance by Ole Berg EXPIRED on 2020-01-31, it does not count: Moved" in shown
    done = run("runs.csv", "--json", "--accept", "latency_p95", *BY, "--until", "2999-01-01")
    assert by_name(done)["latency_p95"]["accepted"]["by"] == "Mara Lind"


@pytest.mark.parametrize(("day", "status"), [(30, "accepted"), (31, "accepted"), (1, "expired")])
def test_it_counts_up_to_and_including_its_day(day: int, status: str) -> None:
    gates = GateFile(gates=(setting("latency_p95", "should", {"threshold": 1}),))
    gates = with_accepted(gates, [acceptance("latency_p95", "m", "w", "2026-12-31")])
    slow = Estimate(value=2.0, interval=(1.5, 2.5), n=9, method="m")
    measured = Measurements(rates={"latency_p95": slow})
    today = date(2027, 1, 1) if day == 1 else date(2026, 12, day)
    (found,) = evaluate(measured, gates, today=today).gates
    assert (found.status, found.blocks) == ("fail", False)
    assert found.accepted is not None
    assert found.accepted.status == status
    quick = Measurements(rates={"latency_p95": Estimate(value=0.2, interval=None, n=9, method="m")})
    (passed,) = evaluate(quick, gates, today=today).gates
    assert passed.accepted is not None
    assert passed.accepted.status == "not_needed"


def test_what_nobody_can_accept_is_refused(run: Run) -> None:
    csv_of(rows())
    until = ("--until", "2999-01-01")
    for words, says in (
        (
            ("--accept", "cost", *BY, *until),
            "'cost' is required (level must), so that nobody can accept",
        ),
        (("--accept", "trend", *BY, *until), "no gate 'trend'; the gates are latency_p95, cost"),
        (("--accept", "latency_p95", *BY), "each --accept needs one --by"),
        (("--accept", "latency_p95", *BY, "--until", "soon"), "'until' must be a day"),
        (("--accept", "latency_p95", "--by", "a\x1b[2J", "--why", "w", *until), "'by' must be 1"),
        (("--accept", "latency_p95", "--by", "a", "--why", "w" * 501, *until), "'why' must be 1"),
        (("--accept", "latency_p95", "--by", "a", "--why", "one\ntwo", *until), "on one line"),
        (("--accept", "latency_p95", *BY, *until) * 2, "accepted twice"),
    ):
        assert says in run("runs.csv", *words, gates=GATES, code=2).stderr, words


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("accepted = 3", r"written \[\[accepted\]\]"),
        ('[[accepted]]\ngate = "judge"', "must have gate, by, why, until and nothing else"),
        (ON_FILE.format("3"), r"\[\[accepted\]\] 1: 'until' must be a day"),
        (ON_FILE.format("2026-12-31T10:00:00"), "'until' must be a day"),
        (ON_FILE.format("2026-12-31") * 2, "accepted twice"),
        (ON_FILE.format("2026-12-31").replace('"latency_p95"', "[1]"), "'gate' must be 1"),
    ],
)
def test_a_table_that_is_wrong_is_named(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse_gates(text)
