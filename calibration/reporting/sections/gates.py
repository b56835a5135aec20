"""Gates as a document and as JUnit XML, for the test report of a CI job."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from xml.etree import ElementTree as ET

from calibration.analyses.gates.run import GateAnalysis
from calibration.gates.evaluate import Condition, GateResult
from calibration.reporting.document import (
    Document,
    Headline,
    Lines,
    Name,
    Row,
    Section,
    Table,
    percent_number,
    reading_lines,
)
from calibration.text import visible

IN_POINTS = ("non_inferior", "regression")
SHOWN_PARTS = 40


def document(result: GateAnalysis) -> Document:
    """Return the report on all gates."""
    gates = result.report.gates
    return Document(
        title="Gates",
        banners=(*map(Name, result.marks), Name(verdict(result))),
        headline=Headline(
            name="Agent success rate (ASR)",
            value=percent_number(result.asr),
            limits="",
            half_width="",
            kind=Name(result.kind),
            how="",
        ),
        about=(),
        sections=(
            Section(title="", blocks=(_table(gates),)),
            Section(title="", blocks=(Lines(items=tuple(_details(gates))),)),
            Section(title="", blocks=(Lines(items=tuple(_made(result))),)),
        ),
        brief=(
            _table(gates),
            Lines(items=tuple(_details([gate for gate in gates if gate.status != "pass"]))),
        ),
        reading=reading_lines(result.reading),
    )


def _table(gates: Sequence[GateResult]) -> Table:
    return Table(
        title="",
        head=("gate", "level", "result", "value", "n"),
        rows=tuple(
            Row(cells=(Name(g.name), g.level, word(g), figure(g), f"{g.n:,}")) for g in gates
        ),
    )


def _made(result: GateAnalysis) -> Iterator[str]:
    for note in result.notes:
        yield f"  {note}"
    for row in result.set_aside:
        first = f" (the first: {row.examples[0]:.160})" if row.examples else ""
        yield f"  skipped: {row.n:,} rows, {row.reason}{first}"
    level = 100 * result.report.confidence_level
    yield (
        f"{result.n_runs:,} runs of {result.n_tasks:,} tasks; {level:g} % intervals; taxonomy "
        f"{result.taxonomy_version} ({result.taxonomy_fingerprint[:12]}); seed {result.seed}; "
        f"fingerprint {result.fingerprint[:16]}"
    )


def verdict(result: GateAnalysis) -> str:
    """Return the first line: whether the run passes, and which gates failed it."""
    blocking = result.report.blocking
    musts = [gate.status for gate in result.report.gates if gate.level == "must"]
    risks = "".join(f"; {of.name}: {risk(of)}" for of in result.report.gates if of.accepted)
    if blocking:
        return f"GATES FAILED: {', '.join(gate.name for gate in blocking)}{risks}"
    if not musts:
        return f"GATES PASSED: none of them is required{risks}"
    undecided = [of for of in result.report.gates if of.level == "must" and of.status == "open"]
    if undecided:
        named = ", ".join(f"{of.name} {of.why}" for of in undecided)
        return f"GATES OPEN: {len(undecided)} of {len(musts)} must gates open: {named}{risks}"
    passed = musts.count("pass")
    if passed == len(musts):
        return f"GATES PASSED: all {passed} must gates{risks}"
    without = len(musts) - passed
    return (
        f"GATES PASSED: {passed} of {len(musts)} must gates; {without} had no result, as "
        f"allow_skipped permits{risks}"
    )


def risk(gate: GateResult) -> str:
    """Return a decision to ship in spite of a gate, without its reason; empty without one."""
    found = gate.accepted
    if found is None:
        return ""
    if found.status == "expired":
        return f"acceptance by {found.by} EXPIRED on {found.until}, it does not count"
    if found.status == "not_needed":
        return f"passed, acceptance by {found.by} is not needed"
    return f"accepted by {found.by} until {found.until}"


def word(gate: GateResult) -> str:
    """Return the displayed status, marked where it fails the run."""
    shown = gate.status.replace("_", " ").upper() if gate.blocks else gate.status.replace("_", " ")
    return f"{shown} !" if gate.blocks else shown


def figure(gate: GateResult | Condition, *, points: bool | None = None) -> str:
    """Return value and interval; changes in percentage points."""
    if gate.value is None:
        return "-"
    in_points = gate.name in IN_POINTS if points is None else points
    scale, sign, unit = (100, "+", " pp") if in_points else (1, "", "")
    digits = 1 if in_points else 3
    text = f"{scale * gate.value:{sign}.{digits}f}"
    if gate.interval is not None:
        low, high = (scale * limit for limit in gate.interval)
        text += f" [{low:{sign}.{digits}f}, {high:{sign}.{digits}f}]"
    return text + unit


def _details(gates: Sequence[GateResult]) -> Iterator[str]:
    for gate in gates:
        yield from _detail(gate)


def _detail(gate: GateResult) -> Iterator[str]:
    why = f": {gate.why}" if gate.why else ""
    yield f"{gate.name}, {gate.rule}: {word(gate)}{why}"
    if gate.method:
        yield f"    {gate.method}, n = {gate.n:,}"
    if gate.blocks and gate.status in ("skipped", "not_estimable"):
        yield (
            f"    a must gate without a result fails: fix it, or set allow_skipped = true under "
            f'[gates."{gate.name}"]'
        )
    if gate.accepted is not None:
        yield f"    {risk(gate)}: {gate.accepted.why}"
    for part in gate.parts[:SHOWN_PARTS]:
        reason = f"  ({part.why})" if part.why else ""
        shown = figure(part, points=gate.name in IN_POINTS)
        yield (
            f"    {part.status.replace('_', ' '):<14}{part.name} {shown} {part.rule}, "
            f"n = {part.n:,}{reason}"
        )
    if len(gate.parts) > SHOWN_PARTS:
        yield f"    and {len(gate.parts) - SHOWN_PARTS} more, all in --json"


SUITE = "asr gate"

# Characters that XML 1.0 forbids, even escaped.
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

MAX_TEXT = 4_000


def junit(result: GateAnalysis, *, at: datetime) -> str:
    """Return one test suite with one case per gate; `at` is written in UTC, as the schema requires.

    A gate that fails the run is a failure. A failed should gate, an open gate and an optional gate
    without a result are skipped: CI marks failures red although the command exits with 0.
    """
    report = result.report
    skipped = sum(not gate.blocks and gate.status != "pass" for gate in report.gates)
    counts = {
        "tests": str(len(report.gates)),
        "failures": str(len(report.blocking)),
        "errors": "0",
        "time": "0",
    }
    # The Jenkins schema has no `skipped` for all suites.
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
        *(
            (f"accepted {of.name}", f"{risk(of)}: {of.accepted.why}")
            for of in report.gates
            if of.accepted is not None
        ),
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
    if gate.accepted is not None:
        message += f"; {risk(gate)}: {gate.accepted.why}"
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
    """Return one bounded line that is valid in XML and has no control characters."""
    return _bounded(_UNFIT.sub("\ufffd", visible(text)))


def _bounded(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
