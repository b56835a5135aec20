"""Charts as inline SVG: no script, no font, no address; colours come from the page's style.

Positions across are in percent, so that a chart fits a page of any width while its text and its
dots keep their size.
"""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from math import floor, log10

from calibration.reporting.document import Mark, Point, Trend

HEIGHT, TOP, BOTTOM = 260, 14, 30
LEFT, RIGHT = 7.0, 1.5
ROW_HEIGHT, MIDDLE = 22, 11
MOST_TICKS = 5


def nice_scale(low: float, high: float) -> list[float]:
    """Return about five round numbers that span a range.

    Examples
    --------
    >>> nice_scale(0.52, 0.68)
    [0.5, 0.55, 0.6, 0.65, 0.7]
    """
    span = max(high - low, 1e-6)
    power = 10 ** floor(log10(span / 4))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if span / (power * m) <= 4.5)
    first = floor(low / step)
    last = max(-floor(-high / step), first + 1)
    return [round(k * step, 10) for k in range(first, last + 1)]


def range_row(mark: Mark | None, scale: tuple[float, float], words: str, *, bar: bool) -> str:
    """Return the drawing of one value with its limits, for one cell of a table."""
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
