"""Render documents as Markdown; names in it are data, never markup."""

import re
from collections.abc import Iterator

from calibration.reporting.document import (
    Block,
    Document,
    Facts,
    Headline,
    Listing,
    Name,
    Table,
    Trend,
    Words,
)
from calibration.text import shown

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
    yield f"# {escaped(document.title)}"
    yield ""
    for banner in document.banners:
        yield f"> **{escaped(banner)}**"
        yield ""
    if document.headline is not None:
        yield from _headline(document.headline)
    for line in document.about:
        yield ""
        yield escaped(line)
    for section in document.sections:
        if section.title:
            yield ""
            yield f"## {escaped(section.title)}"
        for block in section.blocks:
            yield ""
            yield from _block(block)
    if document.footer:
        yield from ("", "---", "", escaped(document.footer))


def _headline(head: Headline) -> Iterator[str]:
    half = f" ({head.half_width})" if head.half_width else ""
    yield f"**{escaped(head.name)} {escaped(head.value)}** {escaped(head.limits)}{half}".rstrip()
    yield ""
    yield f"*{escaped(head.kind)}.* {escaped(head.how)}".rstrip()
    yield ""
    for name, value in head.beside:
        yield f"- {escaped(name)}: {escaped(value)}"


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
    else:
        for item in block.items:
            # Nested below the line it belongs to, if there is one.
            inner = item.startswith("    ") and item is not block.items[0]
            yield f"{'  ' * inner}- {escaped(Name(item.strip()), most=1_000)}"


def _table(block: Table) -> Iterator[str]:
    if not block.rows:
        yield escaped(block.empty)
        return
    if block.title:
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
