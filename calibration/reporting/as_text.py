"""A document as lines for a terminal."""

from collections.abc import Iterator

from calibration.reporting.document import (
    Block,
    Document,
    Facts,
    Listing,
    Table,
    Trend,
    Words,
)
from calibration.reporting.plain import shown
from calibration.reporting.text import table


def lines(document: Document) -> Iterator[str]:
    """Yield the lines of a document."""
    for banner in document.banners:
        yield shown(banner)
    head = document.headline
    limits = f" {head.limits}" if head.limits else ""
    half = f" ({head.half_width})" if head.half_width else ""
    yield f"{head.name} {head.value}{limits}{half}  {head.kind}"
    yield f"  {head.how}"
    for name, value in head.beside:
        yield f"  {shown(name)}: {shown(value)}"
    for line in document.about:
        yield f"  {shown(line, most=600)}"
    for section in document.sections:
        yield ""
        yield section.title
        for block in section.blocks:
            yield from _block(block)
    yield ""
    yield document.footer


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
