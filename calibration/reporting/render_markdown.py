"""Render documents and gate results as Markdown; names in it are data, never markup."""

import re
from collections.abc import Iterator

from calibration.analyses.gates.run import GateAnalysis
from calibration.gates.evaluate import GateResult
from calibration.reporting.document import (
    Block,
    Document,
    Facts,
    Listing,
    Name,
    Table,
    Trend,
    Words,
)
from calibration.reporting.sections.gates import IN_POINTS, figure, verdict
from calibration.text import shown

MAX_CELL = 300

MAX_PARTS = 20

MARKS = {"pass": "pass", "fail": "FAIL", "skipped": "skipped", "not_estimable": "not estimable"}


# What Markdown would obey in our own words; a bracket only where a link could begin.
_SIGNS = re.compile(r"([\\`*<>|~]|(?<!\w)_|_(?!\w)|&(?=[\w#])|\](?=[(\[:]))")


def markdown(document: Document) -> str:
    """Return a document as Markdown.

    Names are code spans: no link, picture, mention, HTML or table cell of theirs comes to life.
    """
    return "\n".join(_lines(document)) + "\n"


def escaped(text: str, *, most: int = 600) -> str:
    r"""Return a text that Markdown shows as it is.

    Examples
    --------
    >>> escaped("a|b *c*"), escaped(Name("![x](http://y)|`z"))
    ('a\\|b \\*c\\*', '``![x](http://y)\\|`z``')
    """
    safe = shown(text, most=most)
    if not isinstance(text, Name):
        return _SIGNS.sub(r"\\\1", safe)
    if not safe.strip():
        return "(empty)" if not safe else "(blank)"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", safe)), default=0))
    room = " " if safe[0] == "`" or safe[-1] == "`" else ""
    # A table ends its cell at a bar even inside a code span.
    return f"{fence}{room}{safe}{room}{fence}".replace("|", "\\|")


def _lines(document: Document) -> Iterator[str]:
    head = document.headline
    yield f"# {escaped(document.title)}"
    yield ""
    for banner in document.banners:
        yield f"> **{escaped(banner)}**"
        yield ""
    half = f" ({head.half_width})" if head.half_width else ""
    yield f"**{escaped(head.name)} {escaped(head.value)}** {escaped(head.limits)}{half}"
    yield ""
    yield f"*{escaped(head.kind)}.* {escaped(head.how)}"
    yield ""
    for name, value in head.beside:
        yield f"- {escaped(name)}: {escaped(value)}"
    for line in document.about:
        yield ""
        yield escaped(line)
    for section in document.sections:
        yield ""
        yield f"## {escaped(section.title)}"
        for block in section.blocks:
            yield ""
            yield from _block(block)
    yield ""
    yield "---"
    yield ""
    yield escaped(document.footer)


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Trend):
        yield escaped(block.describes)
        yield ""
        yield from _table(block.table)
    elif isinstance(block, Words):
        yield f"> {escaped(block.text)}" if block.kind == "warning" else escaped(block.text)
    elif isinstance(block, Listing):
        for item in block.items:
            yield f"- {escaped(item)}"
    elif isinstance(block, Facts):
        for name, value in block.items:
            yield f"- {escaped(name)}: {escaped(value)}"


def _table(block: Table) -> Iterator[str]:
    if not block.rows:
        yield escaped(block.empty)
        return
    yield f"**{escaped(block.title)}**"
    yield ""
    yield "| " + " | ".join(escaped(name) for name in block.head) + " |"
    yield "| :--- |" + " ---: |" * (len(block.head) - 1)
    for row in block.rows:
        first, *others = (escaped(cell, most=200) for cell in row.cells)
        yield "| " + " | ".join([f"**{first}**" if row.flagged else first, *others]) + " |"
    for note in block.notes:
        yield ""
        yield escaped(note)


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


def gates_markdown(result: GateAnalysis) -> Iterator[str]:
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
