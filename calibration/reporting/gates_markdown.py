"""Gates as Markdown for the summary of a CI job; names in it are data, never markup."""

import re
from collections.abc import Iterator

from calibration.analyses.gate_analysis import GateAnalysis
from calibration.gates.results import GateResult
from calibration.reporting.gates import IN_POINTS, figure, verdict

MAX_CELL = 300
MAX_PARTS = 20
MARKS = {"pass": "pass", "fail": "FAIL", "skipped": "skipped", "not_estimable": "not estimable"}
# As entities these are text to every Markdown parser. A word joiner keeps @name from being a
# mention, and the dot of www from being a link.
_ACTIVE = re.compile(r"[\\`*_{}\[\]()#+!|<>&~:$^=\"']")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")
_WWW = re.compile(r"(?i)(www)\.")


def plain(text: str) -> str:
    r"""Return text that Markdown shows as it is, on one line, bounded.

    Examples
    --------
    >>> plain("a|b <img>\n@all")
    'a&#124;b &#60;img&#62; @\u2060all'
    """
    line = _CONTROL.sub(" ", text).strip()
    if len(line) > MAX_CELL:
        line = line[: MAX_CELL - 1] + "…"
    escaped = _ACTIVE.sub(lambda found: f"&#{ord(found[0])};", line)
    return _WWW.sub(r"\1&#46;", escaped).replace("@", "@\u2060")


def markdown(result: GateAnalysis) -> Iterator[str]:
    """Yield the summary, line by line."""
    yield f"## {plain(verdict(result))}"
    yield ""
    for mark in result.marks:
        yield f"**{plain(mark)}**"
        yield ""
    asr = result.asr
    limits = "" if asr.interval is None else f"[{asr.interval[0]:.3f}, {asr.interval[1]:.3f}]"
    if asr.value is not None:
        yield (
            f"ASR {asr.value:.3f} {plain(limits)}, {result.n_runs:,} runs of {result.n_tasks:,} "
            f"tasks; {plain(result.kind)}."
        )
    yield ""
    yield "| gate | level | result | value | wanted | n | why |"
    yield "|---|---|---|---|---|---|---|"
    for gate in result.report.gates:
        yield _row(gate)
    for gate in result.report.gates:
        yield from _parts(gate)
    for note in result.notes:
        yield ""
        yield plain(note)
    for row in result.set_aside:
        yield ""
        yield f"Set aside: {row.n:,} rows, {plain(row.reason)}"
    yield ""
    yield (
        f"Taxonomy {plain(result.taxonomy_version)} ({result.taxonomy_fingerprint[:12]}), seed "
        f"{result.seed}, fingerprint {result.fingerprint[:16]}."
    )
    yield ""


def _row(gate: GateResult) -> str:
    result = f"**{MARKS[gate.status]}**" if gate.blocks else MARKS[gate.status]
    cells = (
        plain(gate.name), gate.level, result, plain(figure(gate)), plain(gate.rule),
        f"{gate.n:,}", plain(gate.why),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _parts(gate: GateResult) -> Iterator[str]:
    missed = [part for part in gate.parts if part.status != "pass"]
    if not missed:
        return
    yield ""
    yield f"{plain(gate.name)}:"
    yield ""
    for part in missed[:MAX_PARTS]:
        shown = figure(part, points=gate.name in IN_POINTS)
        why = f" ({plain(part.why)})" if part.why else ""
        yield (
            f"* {MARKS[part.status]}, {plain(part.name)}, {plain(shown)}, wanted "
            f"{plain(part.rule)}, n = {part.n:,}{why}"
        )
    if len(missed) > MAX_PARTS:
        yield f"* and {len(missed) - MAX_PARTS} more"
