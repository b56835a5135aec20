"""Render results and documents as text; percentages and rounding appear only here."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from calibration.reporting.document import (
    Block,
    Document,
    Facts,
    Headline,
    Lines,
    Listing,
    Table,
    Trend,
    Words,
)
from calibration.statistics.estimate import OK, Estimate
from calibration.taxonomy import Taxonomy
from calibration.text import shown

if TYPE_CHECKING:
    from calibration.analyses.imports import FilesRead, ImportReport
    from calibration.analyses.sampling.draw import TracePage


SIMULATED = "SIMULATED DATA: labels, verdicts and production runs are drawn at random."

CHOSEN = "  These traces were chosen, not drawn at random: this holds for them only."


def figure(result: Estimate, digits: int = 3) -> str:
    """Return value and interval of an estimate; its status goes elsewhere."""
    if result.value is None:
        return "not estimable"
    text = f"{result.value:.{digits}f}"
    if result.interval is not None:
        text += f" [{result.interval[0]:.{digits}f}, {result.interval[1]:.{digits}f}]"
    return text if result.status == OK else f"{text} +"


def number(result: Estimate, digits: int = 3) -> str:
    """Return value and interval of an estimate with its status, or why there is none."""
    if result.value is None:
        return result.status.replace("_", " ", 1)
    text = figure(result, digits).removesuffix(" +")
    return text if result.status == OK else f"{text}  ({result.status})"


def notes(named: Iterable[tuple[str, Estimate]]) -> Iterator[str]:
    """Yield what the `+` of a table stands for, each status once with the names it holds for."""
    by_status: dict[str, list[str]] = {}
    for name, result in named:
        if result.status != OK:
            by_status.setdefault(result.status.replace("_", " ", 1), []).append(name)
    for status, names in by_status.items():
        yield f"  + {', '.join(dict.fromkeys(names))}: {status}"


def percent(share: float | None) -> str:
    """Return a share as percent."""
    return "-" if share is None else f"{100 * share:.1f} %"


def usd(amount: float | None) -> str:
    """Return an amount of money."""
    return "-" if amount is None else f"${amount:.4f}" if amount < 0.1 else f"${amount:.2f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; the first column is left-aligned, the others right."""
    cells = [list(head), *[list(row) for row in rows]]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    for row in cells:
        padded = [row[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  " + "  ".join(padded).rstrip()


def preview(read: "FilesRead") -> Iterator[str]:
    """Yield what an import would bring in."""
    found = read.preview
    formats = ", ".join(f"{n} {name}" for name, n in found.formats.items()) or "none"
    yield f"Traces        {found.n_traces} in {len(read.paths)} files ({formats})"
    yield f"Tasks         {found.n_tasks}"
    yield "Workflows     " + ", ".join(f"{name} ({n})" for name, n in found.workflows.items())
    yield f"Costs known   {found.costs_known} of {found.n_traces}"
    yield f"Grades        {found.n_verdicts} (kept as verdicts, hidden from reviewers)"
    missing = [f"{f.field} ({f.of - f.found} of {f.of})" for f in found.fields if f.found < f.of]
    yield "Complete      " + ", ".join(f.field for f in found.fields if f.found == f.of)
    yield "Missing       " + (", ".join(missing) or "nothing")
    yield f"Set aside     {found.n_set_aside}"
    if found.first is not None:
        first = found.first
        yield f"First trace   {first.trace_id}, {first.n_steps} steps: {first.prompt}"


def trace_list(found: "TracePage") -> Iterator[str]:
    """Yield one page of a list of traces."""
    yield f"{found.n} traces, page {found.page} of {found.pages}"
    if not found.n:
        return
    from calibration.analyses.sampling.draw import plain_rows

    head = ("trace", "workflow", "task", "trial", "status", "started", "class", "tools", "errors")
    names = (
        "trace_id", "workflow", "task_key", "trial", "status", "started_at", "class",
        "tool_calls", "tool_errors",
    )  # fmt: skip
    rows = []
    for row in plain_rows(found.traces):
        rows.append(
            [
                "-"
                if row[name] is None
                else f"{row[name]:.60}"
                if isinstance(row[name], str)
                else str(row[name])
                for name in names
            ]
        )
    yield from table(head, rows)


def import_report(report: "ImportReport") -> Iterator[str]:
    """Yield what an import did."""
    yield (
        f"{report.imported} imported, {report.already_there} already there, {report.changed} "
        f"changed, {len(report.set_aside)} set aside, {report.verdicts} grades kept"
    )
    if report.possible_duplicates:
        yield f"{report.possible_duplicates} have the content of another trace, kept and marked"
    for row in report.set_aside:
        place = row.file if row.line is None else f"{row.file}, line {row.line}"
        yield f"  set aside: {place}: {row.reason}"


def exposed(n: int) -> str:
    """Say that labels were left out because they were not blind."""
    return f"{n:,} label{'s' * (n > 1)} left out: given after seeing what others said of the trace"


def confusion(
    row_names: Sequence[str], column_names: Sequence[str], counts: Sequence[Sequence[float]]
) -> Iterator[str]:
    """Yield a two-way table of counts; a trace whose reviewers differ counts in parts."""
    yield from table(
        ["", *column_names],
        [[name, *[f"{c:g}" for c in row]] for name, row in zip(row_names, counts, strict=True)],
    )


def taxonomy(shown: Taxonomy) -> Iterator[str]:
    """Yield classes and questions of a taxonomy."""
    yield f"taxonomy {shown.version} ({shown.fingerprint[:12]})"
    for item in shown.classes:
        yield f"  {item.name:<14} credit {item.credit:g}  {item.meaning}"
    for node in shown.nodes:
        yield f"  {node.id}: {node.question}  yes -> {node.yes}, no -> {node.no}"


def lines(document: Document) -> Iterator[str]:
    """Yield the lines of a document."""
    for banner in document.banners:
        yield shown(banner, most=600)
    if document.headline is None:
        yield document.title
    else:
        yield from _headline(document.headline)
    for line in document.about:
        yield f"  {shown(line, most=600)}"
    for section in document.sections:
        yield ""
        if section.title:
            yield section.title
        for block in section.blocks:
            yield from _block(block)
    if document.footer:
        yield ""
        yield document.footer


def _headline(head: Headline) -> Iterator[str]:
    limits = f" {head.limits}" if head.limits else ""
    half = f" ({head.half_width})" if head.half_width else ""
    yield f"{head.name} {head.value}{limits}{half}  {head.kind}"
    if head.how:
        yield f"  {head.how}"
    for name, value in head.beside:
        yield f"  {shown(name)}: {shown(value)}"


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Trend):
        yield from _table(block.table)
    elif isinstance(block, Words):
        yield f"  {'! ' * (block.kind == 'warning')}{shown(block.text, most=600)}"
    elif isinstance(block, Listing):
        for item in block.items:
            yield f"  - {shown(item, most=600)}"
    elif isinstance(block, Lines):
        yield from (shown(item, most=1_000) for item in block.items)
    else:
        yield from _facts(block)


def _facts(block: Facts) -> Iterator[str]:
    width = max((len(name) for name, _ in block.items), default=0)
    for name, value in block.items:
        yield f"  {name.ljust(width)}  {shown(value, most=600)}"


def _table(block: Table) -> Iterator[str]:
    if not block.rows:
        yield f"  {block.empty}"
        return
    if block.most_in_text == 0:
        yield f"  {shown(block.title)}: in --json, --markdown and --html"
        return
    if block.title:
        yield f"  {shown(block.title)}"
    rows = [
        ["! " * row.flagged + shown(row.cells[0], most=60), *(shown(c) for c in row.cells[1:])]
        for row in block.rows[: block.most_in_text]
    ]
    yield from table(block.head, rows)
    if len(rows) < len(block.rows):
        yield f"  ... {len(block.rows) - len(rows)} more in --json, --markdown and --html"
    for note in block.notes:
        yield f"  {shown(note, most=600)}"
