"""Render a document as one offline HTML file with inline SVG charts.

Horizontal positions are in percent: a chart fits any page width, and text and dots keep their
size.
"""

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import pairwise
from math import floor, log10

from calibration.reporting.document import (
    Block,
    Document,
    Facts,
    Headline,
    Listing,
    Mark,
    Name,
    Point,
    Section,
    Table,
    Trend,
    Words,
)
from calibration.text import shown

HEIGHT, TOP, BOTTOM = 260, 14, 30
LEFT, RIGHT = 7.0, 1.5
ROW_HEIGHT, MIDDLE = 22, 11
MOST_TICKS = 5

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)

LONGEST_NUMBER = 26


def nice_scale(low: float, high: float) -> list[float]:
    """Return about five round numbers that span a range."""
    span = max(high - low, 1e-6)
    power = 10 ** floor(log10(span / 4))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if span / (power * m) <= 4.5)
    first = floor(low / step)
    last = max(-floor(-high / step), first + 1)
    return [round(k * step, 10) for k in range(first, last + 1)]


def range_row(mark: Mark | None, scale: tuple[float, float], words: str, *, bar: bool) -> str:
    """Return the drawing of one value with its limits, for one table cell."""
    if mark is None:
        return ""
    parts = []
    if mark.target is not None:
        x = _across(mark.target, scale)
        parts.append(f'<line class="target" x1="{x}" x2="{x}" y1="2" y2="{ROW_HEIGHT - 2}"/>')
    at = _across(mark.value, scale)
    if bar:
        start = _across(max(0.0, scale[0]), scale)
        width = f"{max(0.0, float(at[:-1]) - float(start[:-1])):.2f}%"
        parts.append(f'<rect class="bar" x="{start}" width="{width}" y="5" height="12"/>')
    if mark.low is not None and mark.high is not None:
        low, high = _across(mark.low, scale), _across(mark.high, scale)
        parts.append(f'<line class="whisker" x1="{low}" x2="{high}" y1="{MIDDLE}" y2="{MIDDLE}"/>')
    if not bar:
        kind = "dot hollow" if mark.hollow else "dot"
        parts.append(f'<circle class="{kind}" cx="{at}" cy="{MIDDLE}" r="4"/>')
    return (
        f'<svg class="range" width="100%" height="{ROW_HEIGHT}" role="img" '
        f'aria-label="{escape(words)}">{"".join(parts)}</svg>'
    )


def trend(chart: Trend, key: str) -> str:
    """Return the drawing of a series over weeks; `key` is unique on the page."""
    ends = [
        limit
        for p in chart.points
        for limit in (p.value, p.low, p.high, p.smooth)
        if limit is not None
    ]
    if not ends:
        return ""
    ticks = nice_scale(min(ends), max(ends))
    scale = ticks[0], ticks[-1]
    parts = [
        f'<svg class="trend" width="100%" height="{HEIGHT}" role="img" '
        f'aria-labelledby="{key}-t {key}-d">',
        f'<title id="{key}-t">{escape(chart.title)}</title>',
        f'<desc id="{key}-d">{escape(chart.describes)}</desc>',
        *_grid(ticks, scale),
        *_weeks(chart.points),
        *_smooth(chart.points, scale),
        *_points(chart.points, scale),
        "</svg>",
    ]
    return "".join(parts)


def _across(value: float, scale: tuple[float, float]) -> str:
    share = (value - scale[0]) / (scale[1] - scale[0])
    return f"{100 * min(1.0, max(0.0, share)):.2f}%"


def _x(place: int, n: int) -> float:
    if n == 1:
        return (LEFT + 100 - RIGHT) / 2
    return LEFT + 2 + (100 - LEFT - RIGHT - 4) * place / (n - 1)


def _y(value: float, scale: tuple[float, float]) -> float:
    share = (value - scale[0]) / (scale[1] - scale[0])
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 2)


def _grid(ticks: Sequence[float], scale: tuple[float, float]) -> Iterator[str]:
    digits = 2 if ticks[1] - ticks[0] >= 0.0099 else 3
    for tick in ticks:
        y = _y(tick, scale)
        yield f'<line class="grid" x1="{LEFT}%" x2="{100 - RIGHT}%" y1="{y}" y2="{y}"/>'
        yield (
            f'<text class="tick" x="{LEFT - 1}%" y="{y}" text-anchor="end" dy=".32em">'
            f"{tick:.{digits}f}</text>"
        )


def _weeks(points: Sequence[Point]) -> Iterator[str]:
    n = len(points)
    every = -(-n // MOST_TICKS)
    for place in range(0, n, every):
        anchor = (
            "start" if place == 0 and n > 1 else "end" if place == n - 1 and n > 1 else "middle"
        )
        yield (
            f'<text class="tick" x="{_x(place, n):.2f}%" y="{HEIGHT - 8}" '
            f'text-anchor="{anchor}">{escape(points[place].label)}</text>'
        )


def _smooth(points: Sequence[Point], scale: tuple[float, float]) -> Iterator[str]:
    n = len(points)
    for (a, one), (b, other) in pairwise(enumerate(points)):
        if one.smooth is not None and other.smooth is not None:
            yield (
                f'<line class="smooth" x1="{_x(a, n):.2f}%" x2="{_x(b, n):.2f}%" '
                f'y1="{_y(one.smooth, scale)}" y2="{_y(other.smooth, scale)}"/>'
            )


def _points(points: Sequence[Point], scale: tuple[float, float]) -> Iterator[str]:
    n = len(points)
    radius = 4 if n <= 30 else 2.5
    for place, point in enumerate(points):
        if point.value is None:
            continue
        x, y = f"{_x(place, n):.2f}%", _y(point.value, scale)
        if point.low is not None and point.high is not None:
            low, high = _y(point.low, scale), _y(point.high, scale)
            yield f'<line class="whisker" x1="{x}" x2="{x}" y1="{low}" y2="{high}"/>'
        yield f'<circle class="dot" cx="{x}" cy="{y}" r="{radius}"/>'
        if point.marked:
            yield f'<circle class="ring" cx="{x}" cy="{y}" r="{radius + 5}"/>'


def html(document: Document) -> str:
    """Return a document as one HTML page.

    Every text from the data is escaped, and the content policy of the page forbids scripts and
    requests. The page follows the reader's light or dark setting and prints on A4.
    """
    style = files("calibration.reporting").joinpath("report.css").read_text(encoding="utf-8")
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{_text(document.title)}</title>\n<style>\n{style}</style>\n</head>\n"
    )
    body = "\n".join(_body(document))
    return f"{head}<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"


def _text(text: str, *, most: int = 600) -> str:
    safe = escape(shown(text, most=most))
    # A name in another script must not turn the words around it.
    return f"<bdi>{safe}</bdi>" if isinstance(text, Name) else safe


def _body(document: Document) -> Iterator[str]:
    for banner in document.banners:
        yield f'<p class="banner" role="note">{_text(banner)}</p>'
    yield "<header>"
    yield f"<h1>{_text(document.title)}</h1>"
    for line in document.reading:
        yield f'<p class="lead">{_text(line)}</p>'
    if document.headline is not None:
        yield from _headline(document.headline)
    for line in filter(None, (document.source, *document.about)):
        yield f'<p class="lead">{_text(line)}</p>'
    yield "</header>"
    for number, section in enumerate(document.sections):
        yield from _section(section, f"s{number}")
    yield f"<footer>{_text(document.footer)}</footer>"


def _headline(head: Headline) -> Iterator[str]:
    words = " words" if not head.limits and len(head.value) > 6 else ""
    half = f" <small>{_text(head.half_width)}</small>" if head.half_width else ""
    if head.sentence:
        yield f'<p class="lead">{_text(head.sentence)}</p>'
    yield f'<p class="name">{_text(head.name)}</p>'
    yield '<div class="hero">'
    yield f'<div class="figure{words}">{_text(head.value)}</div>'
    yield f'<div class="limits">{_text(head.limits)}{half}</div>'
    yield "</div>"
    yield f'<p class="kind">{_text(head.kind)}</p>'
    yield f'<p class="small">{_text(head.how)}</p>'
    if head.beside:
        yield '<dl class="beside">'
        yield from (
            f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>"
            for name, value in head.beside
        )
        yield "</dl>"


def _section(section: Section, key: str) -> Iterator[str]:
    yield f'<section aria-labelledby="{key}">'
    if section.title:
        yield f'<h2 id="{key}">{_text(section.title)}</h2>'
    for number, block in enumerate(section.blocks):
        yield from _block(block, f"{key}-{number}")
    yield "</section>"


def _block(block: Block, key: str) -> Iterator[str]:
    if isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Trend):
        yield from _trend(block, key)
    elif isinstance(block, Words):
        kind = "" if block.kind == "text" else f' class="{block.kind}"'
        yield f"<p{kind}>{_text(block.text)}</p>"
    elif isinstance(block, Listing):
        yield '<ul class="list">'
        yield from (f"<li>{_text(item)}</li>" for item in block.items)
        yield "</ul>"
    elif isinstance(block, Facts):
        yield "<dl>"
        yield from (f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in block.items)
        yield "</dl>"
    else:
        yield from (f"<p>{_text(item, most=1_000)}</p>" for item in block.items)


def _trend(block: Trend, key: str) -> Iterator[str]:
    drawn = trend(block, key)
    if drawn:
        yield '<div class="plot">'
        yield f"<h3>{_text(block.title)}</h3>"
        yield drawn
        yield from _legend(block)
        yield "</div>"
    yield from _table(block.table)


def _legend(block: Trend) -> Iterator[str]:
    signs = [
        (
            block.value_name,
            '<line class="whisker" x1="10" x2="10" y1="1" y2="15"/>'
            '<circle class="dot" cx="10" cy="8" r="4"/>',
        )
    ]
    if any(point.smooth is not None for point in block.points):
        signs.append((block.smooth_name, '<line class="smooth" x1="0" x2="20" y1="8" y2="8"/>'))
    if any(point.marked for point in block.points):
        signs.append((block.mark_name, '<circle class="ring" cx="10" cy="8" r="6"/>'))
    yield '<ul class="legend">'
    for name, sign in signs:
        drawn = f'<svg width="20" height="16" aria-hidden="true">{sign}</svg>'
        yield f"<li>{drawn}{_text(name)}</li>"
    yield "</ul>"


def _table(block: Table) -> Iterator[str]:
    if not block.rows:
        yield f'<p class="small">{_text(block.empty)}</p>'
        return
    if block.folded:
        yield f"<details><summary>{_text(block.title)}</summary>"
    keep = ' class="keep"' if len(block.rows) <= 12 else ""
    yield f'<table role="table"{keep}>'
    if block.title and not block.folded:
        yield f"<caption>{_text(block.title)}</caption>"
    drawn = block.scale is not None and any(row.mark is not None for row in block.rows)
    first, *others = block.head
    cells = [f'<th role="columnheader" scope="col">{_text(first)}</th>']
    if drawn:
        ends = "".join(f"<span>{_text(label)}</span>" for label in block.scale_labels)
        cells.append(
            '<th role="columnheader" scope="col" class="drawn" aria-label="drawn">'
            f'<span class="ends">{ends}</span></th>'
        )
    cells += [f'<th role="columnheader" scope="col">{_text(name)}</th>' for name in others]
    yield f'<thead role="rowgroup"><tr role="row">{"".join(cells)}</tr></thead>'
    yield '<tbody role="rowgroup">'
    for row in block.rows:
        flagged = ' class="flagged"' if row.flagged else ""
        cells = [f'<th role="rowheader" scope="row">{_text(row.cells[0], most=120)}</th>']
        if drawn and block.scale is not None:
            cells.append(f'<td role="cell" class="drawn">{_drawn(row.mark, block, row.cells)}</td>')
        cells += [
            f'<td role="cell"{_wide(cell)} data-head="{escape(shown(name))}">'
            f"{_text(cell, most=200)}</td>"
            for name, cell in zip(others, row.cells[1:], strict=True)
        ]
        yield f'<tr role="row"{flagged}>{"".join(cells)}</tr>'
    yield "</tbody>"
    yield "</table>"
    for note in block.notes:
        yield f'<p class="note">{_text(note)}</p>'
    if block.folded:
        yield "</details>"


def _wide(cell: str) -> str:
    """Mark long texts, which may wrap; numbers may not."""
    return ' class="long"' if len(cell) > LONGEST_NUMBER or isinstance(cell, Name) else ""


def _drawn(mark: Mark | None, block: Table, cells: tuple[str, ...]) -> str:
    if block.scale is None:
        return ""
    words = f"{shown(cells[0], most=120)}: {shown(cells[1])}"
    return range_row(mark, block.scale, words, bar=block.bars)
