"""Gates as JUnit XML, for the test report of a CI job."""

import re
from collections.abc import Iterable
from datetime import datetime
from xml.etree import ElementTree as ET

from calibration.analyses.gates.run import GateAnalysis
from calibration.gates.evaluate import GateResult
from calibration.reporting.sections.gates import figure, verdict
from calibration.text import visible

SUITE = "asr gate"

# What XML 1.0 cannot hold, not even escaped.
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

MAX_TEXT = 4_000


def junit(result: GateAnalysis, *, at: datetime) -> str:
    """Return one test suite with a case a gate.

    A gate that fails the run is a failure. A should gate that failed, and every gate without a
    result that need not have one, is skipped: a runner turns red on failures, and the command
    exits with 0 there.

    Parameters
    ----------
    result : GateAnalysis
        The gates.
    at : datetime
        When; written in UTC without an offset, as the schema asks.
    """
    report = result.report
    skipped = sum(not gate.blocks and gate.status != "pass" for gate in report.gates)
    counts = {
        "tests": str(len(report.gates)),
        "failures": str(len(report.blocking)),
        "errors": "0",
        "time": "0",
    }
    # The schema of Jenkins knows no `skipped` of all suites.
    root = ET.Element("testsuites", {"name": SUITE, **counts})
    suite = ET.SubElement(
        root,
        "testsuite",
        {
            "name": SUITE, "id": "0", "package": "asr", "hostname": "localhost",
            "timestamp": at.strftime("%Y-%m-%dT%H:%M:%S"), "skipped": str(skipped), **counts,
        },
    )  # fmt: skip
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("fingerprint", result.fingerprint),
        ("taxonomy", result.taxonomy_fingerprint),
        ("seed", str(result.seed)),
        ("runs", str(result.n_runs)),
        *(("mark", mark) for mark in result.marks),
    ):
        ET.SubElement(properties, "property", {"name": name, "value": _fit(value)})
    for gate in report.gates:
        _case(suite, gate)
    ET.SubElement(suite, "system-out").text = _lines([*result.marks, verdict(result)])
    ET.SubElement(suite, "system-err").text = ""
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def _case(suite: ET.Element, gate: GateResult) -> None:
    case = ET.SubElement(
        suite, "testcase", {"name": _fit(gate.name), "classname": f"asr.{gate.level}", "time": "0"}
    )
    if gate.status == "pass":
        return
    message = f"{gate.status.replace('_', ' ')}: {figure(gate)}, wanted {gate.rule}"
    if gate.why:
        message += f" ({gate.why})"
    if not gate.blocks:
        ET.SubElement(case, "skipped", {"message": _fit(f"{gate.level}: {message}")})
        return
    failure = ET.SubElement(case, "failure", {"type": gate.status, "message": _fit(message)})
    lines = [f"{gate.method}, n = {gate.n:,}"]
    lines += [f"{p.status}: {p.name} {p.rule}, n = {p.n:,} {p.why}" for p in gate.parts]
    failure.text = _lines(lines)


def _lines(lines: Iterable[str]) -> str:
    return _bounded("\n".join(map(_fit, lines)))


def _fit(text: str) -> str:
    """Return one line that XML can hold and that steers no viewer, bounded."""
    return _bounded(_UNFIT.sub("\ufffd", visible(text)))


def _bounded(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
