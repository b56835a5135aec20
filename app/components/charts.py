"""Charts: estimates with intervals, series over weeks, confusion, cost.

What a colour means is also shown by a shape or a word. Names from the data are drawn, never markup.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import altair as alt
import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from calibration.analyses.reviewers.drift import Checks
from calibration.reporting.document import Table, Trend, percent_figure
from calibration.reporting.sections.judge import points_of
from calibration.statistics.estimate import Estimate
from calibration.text import shown

# Of a row, and of the axis below all rows.
ROW_HEIGHT, AXIS_HEIGHT = 34, 56
SMALL = 150
BLUE, ORANGE, GREY = "#4a8abf", "#d0743f", "#7d8590"

# Of parts of a whole, in order; apart from each other for the colour-blind too.
PARTS = ("#4a8abf", "#8fc1e3", "#d0743f", "#8a5fa8", "#7d8590")

LONGEST, LONGEST_ALT = 44, 2_000
LETTERS = 12
PERCENT, POINTS, TIMES = ".0%", "+.0f", ".1f"

# Points of a curve that are drawn as such.
MOST_DOTS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Shares over numbers, with `limits` where they are known; `dashed` is there to compare."""

    name: str
    points: Sequence[tuple[float, float]]
    limits: Sequence[tuple[float, float] | None] = ()
    dashed: bool = False


def interval_chart(
    rows: Sequence[tuple[str, Estimate]],
    *,
    title: str,
    thresholds: Sequence[tuple[str, float]] = (),
    hollow: Sequence[str] = (),
    domain: tuple[float, float] | None = None,
    figures: bool = False,
    percents: bool = False,
) -> None:
    """Draw one point with its interval a row; rows without a value are named below.

    `hollow` names rows that are diagnostics and not to be relied on; `figures` writes the
    numbers beside the names, as `percents` where they are shares.
    """
    written = percent_figure if percents else figure
    shown = [(name, e) for name, e in rows if e.value is not None]
    if shown:
        names = [f"{name}   {written(e)}" if figures else name for name, e in shown]
        frame = _frame("name", list(zip(names, (e for _, e in shown), strict=True)))
        frame.insert(4, "hollow", [name in hollow for name, _ in shown])
        st.altair_chart(
            _intervals(frame, thresholds, domain, title, percents=percents),
            width="stretch",
            alt=title + ": " + "; ".join(f"{name} {written(e)}" for name, e in shown),
        )
    for name, missing in rows:
        if missing.value is None:
            # As text: the name may come from a trace.
            st.text(f"{name}: {missing.status.replace('_', ' ', 1)}")


def _frame(by: str, rows: Sequence[tuple[str, Estimate]]) -> pd.DataFrame:
    """Return estimates that have a value, a row each, with the limits at which a bar ends."""
    return pd.DataFrame(
        {
            by: [name for name, _ in rows],
            "value": [e.value for _, e in rows],
            "low": [e.value if e.interval is None else e.interval[0] for _, e in rows],
            "high": [e.value if e.interval is None else e.interval[1] for _, e in rows],
            "text": [figure(e) for _, e in rows],
        }
    )


def _across(
    base: alt.Chart,
    y: alt.Y,
    limits: alt.X,
    value: alt.X,
    tooltip: list[alt.Tooltip],
    *,
    opacity: float,
) -> list[alt.Chart]:
    """Return the bar and the dot of a value with its limits, from left to right."""
    return [
        base.mark_rule(strokeWidth=2.5, color=BLUE, opacity=opacity).encode(
            y=y, x=limits, x2="high:Q"
        ),
        base.mark_point(size=90, strokeWidth=2, opacity=1).encode(
            y=y,
            x=value,
            fill=alt.condition("datum.hollow", alt.value("transparent"), alt.value(BLUE)),
            stroke=alt.value(BLUE),
            tooltip=tooltip,
        ),
    ]


def _upright(
    base: alt.Chart, dots: alt.Chart, y: alt.Y, tooltip: list[alt.Tooltip]
) -> list[alt.Chart]:
    """Return the bar and the dot of a value with its limits, from bottom to top."""
    return [
        base.mark_rule(strokeWidth=2.5, color=BLUE, opacity=0.6).encode(y=y, y2="high:Q"),
        dots.encode(y="value:Q", tooltip=tooltip),
    ]


def _intervals(
    frame: pd.DataFrame,
    thresholds: Sequence[tuple[str, float]],
    domain: tuple[float, float] | None,
    title: str,
    *,
    percents: bool = False,
) -> alt.LayerChart | alt.FacetChart:
    order = list(frame["name"])
    scale = alt.Scale(domain=list(domain), clamp=True) if domain else alt.Scale(zero=False)
    axis = alt.Axis(
        labelLimit=320, labelPadding=8, labelFlush=False, labelColor=ink(), ticks=False,
        domain=False,
    )  # fmt: skip
    y = alt.Y("name:N", sort=order, title=None, axis=axis)
    x = alt.X("low:Q", scale=scale, title=title, axis=_axis(PERCENT if percents else ".2f"))
    base = alt.Chart(frame)
    tooltip = [alt.Tooltip("name:N", title=" "), alt.Tooltip("text:N", title="value")]
    layers = _across(base, y, x, alt.X("value:Q"), tooltip, opacity=0.6)
    if thresholds:
        layers += _thresholds(thresholds, along="x")
    return alt.layer(*layers).properties(height=_height(frame))


def _height(frame: pd.DataFrame) -> int:
    """Return the height of a chart with a row each; a step a row cannot be fitted to a width."""
    return ROW_HEIGHT * len(frame) + AXIS_HEIGHT


def _thresholds(thresholds: Sequence[tuple[str, float]], *, along: str) -> list[alt.Chart]:
    """Return dashed lines with what they mean beside them."""
    base = alt.Chart(pd.DataFrame(thresholds, columns=["threshold", "at"]))
    tooltip = ["threshold:N", "at:Q"]
    rule = base.mark_rule(strokeDash=[4, 4], color=GREY)
    if along == "y":
        return [rule.encode(y="at:Q", tooltip=tooltip)]
    text = base.mark_text(align="left", dx=4, dy=-6, fontSize=11, color=ink())
    return [
        rule.encode(x="at:Q", tooltip=tooltip),
        text.encode(x="at:Q", y=alt.value(0), text="threshold:N"),
    ]


def ink() -> str:
    """Return the colour of letters on a chart."""
    return "#e4e6e9" if st.context.theme.type == "dark" else "#1f2328"


def trend_chart(
    rows: Sequence[tuple[str, Estimate]],
    *,
    title: str,
    thresholds: Sequence[tuple[str, float]] = (),
    key: str,
) -> None:
    """Draw one point with its interval a period; a click on one reports its `period` as a mark."""
    shown = [(name, e) for name, e in rows if e.value is not None]
    if not shown:
        return
    frame = _frame("period", shown)
    bottom = min(0.0, max(-1.0, float(frame["low"].min())))
    base = alt.Chart(frame).encode(
        x=alt.X("period:O", title=None, axis=alt.Axis(labelAngle=0, labelOverlap=True))
    )
    y = alt.Y(
        "low:Q", title=None, scale=alt.Scale(domain=[bottom, 1.0], clamp=True),
        axis=alt.Axis(tickCount=5),
    )  # fmt: skip
    mark = alt.selection_point(name="mark", fields=["period"])
    tooltip = [alt.Tooltip("period:N", title=" "), alt.Tooltip("text:N", title="value")]
    dots = base.mark_point(size=110, strokeWidth=2, filled=True, opacity=1, color=BLUE)
    bars, dots = _upright(base, dots, y, tooltip)
    layers = [bars, dots.add_params(mark), *_thresholds(thresholds, along="y")]
    st.caption(title)
    st.altair_chart(
        alt.layer(*layers).properties(height=170),
        width="stretch", key=key, on_select="rerun", selection_mode="mark",
        alt=title + ": " + "; ".join(f"{name} {figure(e)}" for name, e in shown),
    )  # fmt: skip


def share_bar(shares: Sequence[tuple[str, float]], *, title: str) -> None:
    """Draw shares of one whole as one bar in parts, with the names and percentages under it."""
    frame = pd.DataFrame(
        {
            "name": [f"{name} {100 * share:.1f} %" for name, share in shares],
            "share": [share for _, share in shares],
            "place": range(len(shares)),
        }
    )
    bar = (
        alt.Chart(frame)
        .mark_bar(stroke="white", strokeWidth=1, height=22)
        .encode(
            x=alt.X("share:Q", stack="zero", title=None, axis=None,
                    scale=alt.Scale(domain=[0, 1])),
            order="place:Q",
            color=alt.Color(
                "name:N",
                sort=list(frame["name"]),
                scale=alt.Scale(domain=list(frame["name"]), range=list(PARTS[: len(frame)])),
                legend=alt.Legend(
                    orient="bottom", title=None, columns=len(frame), labelLimit=220, offset=4,
                    labelColor=ink(), symbolStrokeWidth=0,
                ),
            ),
            tooltip=[alt.Tooltip("name:N", title=" ")],
        )
        .properties(height=64)
    )  # fmt: skip
    st.caption(title)
    st.altair_chart(bar, width="stretch", alt=f"{title}: {', '.join(frame['name'])}")


def counts_in_colour(counts: pd.DataFrame) -> Styler:
    """Return a two-way table of counts with its cells shaded: blue where both say the same."""
    high = float(counts.to_numpy().max()) or 1.0

    def shade(column: pd.Series) -> list[str]:
        return [
            f"background-color: rgba({'74, 138, 191' if row == column.name else '208, 116, 63'}, "
            f"{0.65 * (count / high) ** 0.5:.2f})"
            if count
            else ""
            for row, count in column.items()
        ]

    return counts.style.apply(shade, axis=0)


def day_chart(days: Sequence[tuple[date, int]], *, title: str, most: int = 30) -> None:
    """Draw a count for each of the last `most` days; days without any are zero."""
    if not days:
        return
    found = dict(days)
    last = max(found)
    first = max(min(found), last - timedelta(days=most - 1))
    shown = [first + timedelta(days=k) for k in range((last - first).days + 1)]
    frame = pd.DataFrame(
        {
            "day": [f"{day:%d %b}" for day in shown],
            "count": [found.get(day, 0) for day in shown],
        }
    )
    bars = (
        alt.Chart(frame)
        .mark_bar(color=BLUE, opacity=0.85, cornerRadiusEnd=2, size=min(28, 600 // len(shown)))
        .encode(
            x=alt.X(
                "day:O",
                sort=list(frame["day"]),
                title=None,
                axis=alt.Axis(labelAngle=0, labelOverlap=True, ticks=False),
            ),
            y=alt.Y("count:Q", title=None, axis=alt.Axis(tickMinStep=1, tickCount=3)),
            tooltip=["day:N", "count:Q"],
        )
    )
    listed = "; ".join(f"{day:%d %b} {found[day]}" for day in shown if day in found)
    st.caption(title)
    st.altair_chart(bars.properties(height=110), width="stretch", alt=f"{title}: {listed}")


def figure(estimate: Estimate, digits: int = 3) -> str:
    """Return value and interval as the pages print them."""
    if estimate.value is None:
        return "not estimable"
    # Rounding may leave a minus before zero.
    ends = [round(x, digits) + 0.0 for x in (estimate.value, *(estimate.interval or ()))]
    value, *limits = (f"{x:.{digits}f}" for x in ends)
    return f"{value} [{', '.join(limits)}]" if limits else value


def points(estimate: Estimate) -> str:
    """Return a difference in percentage points with its limits, as the pages print it."""
    return points_of(estimate).removesuffix(" +")


def steps_chart(steps: Sequence[tuple[str, float, float]], *, title: str) -> None:
    """Draw how a half-width builds up, a bar a source: filled where it adds, hollow where it takes.

    `steps` are a name with the half-width before and after it.
    """
    frame = pd.DataFrame(
        [
            {
                "name": name, "from": 100 * min(start, end), "to": 100 * max(start, end),
                "text": f"{100 * (end - start) + 0.0:+.1f}", "takes": end < start,
            }
            for name, start, end in steps
        ]
    )  # fmt: skip
    whole = 100 * steps[-1][2]
    total = pd.DataFrame({"at": [whole], "text": [f"\u00b1 {whole:.1f} points"]})
    top = max(frame["to"].max(), whole) * 1.12
    x = alt.X(
        "from:Q", title="half-width of the interval, percentage points", axis=_axis(".0f"),
        scale=alt.Scale(domain=[0, top], nice=False),
    )  # fmt: skip
    y = alt.Y(
        "name:N", sort=list(frame["name"]), title=None,
        axis=alt.Axis(labelLimit=320, labelPadding=8, labelColor=ink(), labelFontSize=LETTERS,
                      ticks=False, domain=False),
    )  # fmt: skip
    base = alt.Chart(frame)
    bars = base.mark_bar(height=18, stroke=BLUE, strokeWidth=2).encode(
        x=x, x2="to:Q", y=y,
        fill=alt.condition("datum.takes", alt.value("transparent"), alt.value(BLUE)),
        tooltip=[alt.Tooltip("name:N", title=" "), alt.Tooltip("text:N", title="points")],
    )  # fmt: skip
    written = base.mark_text(align="left", dx=6, color=ink(), fontSize=LETTERS).encode(
        x="to:Q", y=y, text="text:N"
    )
    line = alt.Chart(total)
    rule = line.mark_rule(strokeDash=[4, 4], color=GREY).encode(x="at:Q")
    said = line.mark_text(align="left", dx=5, dy=-5, color=ink(), fontSize=11).encode(
        x="at:Q", y=alt.value(0), text="text:N"
    )
    listed = "; ".join(f"{n} {t}" for n, t in zip(frame["name"], frame["text"], strict=True))
    st.caption(title)
    st.altair_chart(
        alt.layer(bars, written, rule, said).properties(height=_height(frame) + 12),
        width="stretch", alt=f"{title}: {listed}; all together \u00b1 {whole:.1f} points",
    )  # fmt: skip


def limits_in_percent(of: Estimate) -> str:
    """Return the interval of a share in words."""
    if of.interval is None:
        return "no interval"
    low, high = (100 * end for end in of.interval)
    return f"{100 * of.confidence_level:g} %: {low:.1f} to {high:.1f} %"


def checks_chart(checks: Checks, *, title: str) -> None:
    """Draw the share of hits by block of checks with intervals, and the sum below it."""
    shown = [(first, last, e) for first, last, e in checks.blocks if e.value is not None]
    if not shown:
        st.text(f"{title}: no checks yet.")
        return
    drift = checks.drift
    scale = alt.Scale(domain=[0, max(10, drift.n) + 1], nice=False)
    listed = "; ".join(f"checks {first} to {last} {figure(e)}" for first, last, e in shown)
    st.caption(title)
    frame = _frame("checks", [(f"{first} to {last}", e) for first, last, e in shown])
    frame.insert(0, "middle", [(first + last) / 2 for first, last, _ in shown])
    st.altair_chart(_blocks(frame, scale), width="stretch", alt=f"{title}: {listed}")
    if drift.limit is not None:
        at = "not marked" if drift.marked_at is None else f"marked at check {drift.marked_at}"
        st.altair_chart(_sums(checks, scale), width="stretch", alt=f"{title}, sum: {at}")


def _blocks(frame: pd.DataFrame, scale: alt.Scale) -> alt.LayerChart | alt.FacetChart:
    x = alt.X("middle:Q", scale=scale, title=None, axis=alt.Axis(labels=False, ticks=False))
    y = alt.Y(
        "low:Q", title="share of hits", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5)
    )
    base = alt.Chart(frame).encode(x=x)
    tooltip = [
        alt.Tooltip("checks:N", title="checks"), alt.Tooltip("text:N", title="share of hits"),
    ]  # fmt: skip
    dots = base.mark_point(size=90, filled=True, opacity=1, color=BLUE)
    return alt.layer(*_upright(base, dots, y, tooltip)).properties(height=170)


def _sums(checks: Checks, scale: alt.Scale) -> alt.LayerChart | alt.FacetChart:
    drift = checks.drift
    limit = drift.limit or 0.0
    frame = pd.DataFrame(
        {
            "check": range(drift.baseline, drift.baseline + len(drift.path) + 1),
            "sum": [0.0, *drift.path],
        }
    )
    top = max(limit, *frame["sum"]) * 1.15
    x = alt.X("check:Q", scale=scale, title="check", axis=alt.Axis(tickMinStep=1, grid=False))
    y = alt.Y(
        "sum:Q", title="sum", scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(tickCount=3),
    )  # fmt: skip
    line = pd.DataFrame({"limit": [limit], "text": [f"limit {limit:.1f}"]})
    rule = alt.Chart(line)
    parts: list[alt.Chart] = [
        alt.Chart(frame)
        .mark_line(color=BLUE, strokeWidth=2, interpolate="step-after")
        .encode(x=x, y=y, tooltip=["check:Q", alt.Tooltip("sum:Q", format=".2f")]),
        rule.mark_rule(strokeDash=[4, 4], color=GREY).encode(y="limit:Q"),
        rule.mark_text(align="left", dx=4, dy=-7, fontSize=11, color=ink()).encode(
            x=alt.value(0), y="limit:Q", text="text:N"
        ),
    ]
    if drift.marked_at is not None:
        at = pd.DataFrame(
            {
                "check": [drift.marked_at],
                "sum": [drift.path[drift.marked_at - drift.baseline - 1]],
                "text": [f"marked at check {drift.marked_at}"],
            }
        )
        mark = alt.Chart(at).encode(x="check:Q", y="sum:Q")
        parts += [
            mark.mark_point(size=130, shape="triangle-up", filled=True, color=ORANGE, opacity=1)
            .encode(tooltip=["text:N"]),
            mark.mark_text(align="right", dx=-10, fontSize=11, color=ink()).encode(text="text:N"),
        ]  # fmt: skip
    return alt.layer(*parts).properties(height=170)


def mark_chart(table: Table, *, axis: str) -> None:
    """Draw the marks of a table, a row each, with name and value beside them."""
    drawn = [(row, row.mark) for row in table.rows if row.mark is not None]
    if not drawn or table.scale is None:
        return
    unit = table.scale_labels[1].rpartition(" ")[2]
    by = 100.0 if unit == "pp" else 1.0
    frame = pd.DataFrame(
        [
            {
                "name": _label(row.cells, flagged=row.flagged),
                "text": ", ".join(f"{h} {c}" for h, c in zip(table.head, row.cells, strict=True)),
                "value": by * mark.value,
                "low": by * (mark.value if mark.low is None else mark.low),
                "high": by * (mark.value if mark.high is None else mark.high),
                "target": None if mark.target is None else by * mark.target,
                "zero": 0.0,
                "hollow": mark.hollow,
            }
            for row, mark in drawn
        ]
    )
    reach = (by * table.scale[0], by * table.scale[1])
    number = {"%": PERCENT, "pp": POINTS, "x": TIMES}.get(unit, ".2f")
    st.altair_chart(
        _marks(frame, reach, axis, number, bars=table.bars),
        width="stretch",
        alt=f"{table.title}: " * bool(table.title)
        + "; ".join(_words(row.cells) for row, _ in drawn),
    )


def _label(cells: Sequence[str], *, flagged: bool) -> str:
    name = shown(cells[0], most=LONGEST)
    value = cells[1] if len(cells) < 6 else ""
    # An em space: a chart makes one blank of several.
    return "\u2003".join(part for part in (name, value, "(moved)" if flagged else "") if part)


def _words(cells: Sequence[str]) -> str:
    return " ".join(shown(cell, most=120) for cell in cells[:2])


def _marks(
    frame: pd.DataFrame, reach: tuple[float, float], axis: str, number: str, *, bars: bool
) -> alt.LayerChart | alt.FacetChart:
    base = alt.Chart(frame)
    y = alt.Y(
        "name:N", sort=list(frame["name"]), title=None,
        axis=alt.Axis(labelLimit=470, labelPadding=8, labelFlush=False, labelColor=ink(),
                      labelFontSize=LETTERS, ticks=False, domain=False),
    )  # fmt: skip
    scale = alt.Scale(domain=list(reach), clamp=True, nice=False)
    look = _axis(number)
    x = alt.X("low:Q", scale=scale, title=axis, axis=look)
    tooltip = [alt.Tooltip("text:N", title=" ")]
    layers = []
    if bars:
        layers.append(
            base.mark_bar(color=BLUE, opacity=0.35, height=14).encode(
                y=y, x=alt.X("zero:Q", scale=scale, title=axis, axis=look), x2="value:Q",
                tooltip=tooltip,
            )
        )  # fmt: skip
    value = alt.X("value:Q", scale=scale, title=axis, axis=look)
    layers += _across(base, y, x, value, tooltip, opacity=0.7)
    if frame["target"].notna().any():
        aims = base.transform_filter("isValid(datum.target)")
        layers.append(
            aims.mark_tick(color=GREY, thickness=2, size=24).encode(
                y=y, x=alt.X("target:Q", scale=scale, title=axis, axis=look)
            )
        )
    return alt.layer(*layers).properties(height=_height(frame))


def _axis(number: str) -> alt.Axis:
    return alt.Axis(
        tickCount=6, format=number, labelColor=ink(), titleColor=ink(), labelFontSize=LETTERS
    )


def series_chart(trend: Trend, *, axis: str, small: bool = False) -> None:
    """Draw a value with its limits each week, the smooth line, and the anomalies.

    A `small` chart is in per cent, has no axis titles and does not say what its marks are.
    """
    frame = pd.DataFrame(
        [
            {"week": p.label, "value": p.value, "low": p.low, "high": p.high, "smooth": p.smooth,
             "marked": p.marked, "word": "anomaly" if p.marked else ""}
            for p in trend.points
        ]
    )  # fmt: skip
    if frame["value"].isna().all():
        return
    chart = alt.layer(*_series(frame, axis, trend.smooth_name, small=small))
    st.altair_chart(
        chart.properties(height=SMALL if small else 280), width="stretch", alt=trend.describes
    )
    if small:
        return
    texts = [f"Dot with bar: {trend.value_name}."]
    if (frame["value"].notna() & frame["low"].isna()).any():
        texts.append("Hollow: too few runs for an interval.")
    if frame["smooth"].notna().any():
        texts.append(f"Dashed line: {trend.smooth_name}.")
    if frame["marked"].any():
        texts.append(f"Ring and the word anomaly: {trend.mark_name}.")
    st.text(" ".join(texts))


def _series(frame: pd.DataFrame, axis: str, smooth: str, *, small: bool = False) -> list[alt.Chart]:
    """Return the layers of a series, those alone that have a mark: else an image has no name."""
    base = alt.Chart(frame)
    x = alt.X(
        "week:O", title=None if small else "ISO week (UTC)", sort=list(frame["week"]),
        axis=alt.Axis(
            labelAngle=0, labelOverlap=True, labelFlush=False, labelColor=ink(),
            titleColor=ink(), labelFontSize=LETTERS,
        ),
    )  # fmt: skip
    look = _axis(PERCENT)
    look.tickCount = 3 if small else 6

    def y(field: str) -> alt.Y:
        return alt.Y(
            field, title=None if small else axis, axis=look, scale=alt.Scale(zero=False, nice=True)
        )

    tooltip = [
        alt.Tooltip("week:N"), alt.Tooltip("value:Q", format=".1%"),
        alt.Tooltip("low:Q", format=".1%"), alt.Tooltip("high:Q", format=".1%"),
        alt.Tooltip("smooth:Q", format=".1%", title=smooth),
    ]  # fmt: skip
    layers = []
    if frame["low"].notna().any():
        layers.append(
            base.transform_filter("isValid(datum.low)")
            .mark_rule(strokeWidth=2.5, color=BLUE, opacity=0.6)
            .encode(x=x, y=y("low:Q"), y2="high:Q")
        )
    if frame["smooth"].notna().any():
        layers.append(
            base.transform_filter("isValid(datum.smooth)")
            .mark_line(color=ORANGE, strokeWidth=2.5, strokeDash=[6, 3])
            .encode(x=x, y=y("smooth:Q"))
        )
    layers.append(
        base.transform_filter("isValid(datum.value)")
        .mark_point(size=80, strokeWidth=2, opacity=1)
        .encode(
            x=x, y=y("value:Q"), tooltip=tooltip, stroke=alt.value(BLUE),
            fill=alt.condition("isValid(datum.low)", alt.value(BLUE), alt.value("transparent")),
        )
    )  # fmt: skip
    if frame["marked"].any():
        odd = base.transform_filter("datum.marked").encode(x=x, y=y("value:Q"))
        layers += [
            odd.mark_point(size=330, strokeWidth=2.5, color=ORANGE, filled=False),
            odd.mark_text(align="right", dx=-16, color=ink(), fontWeight="bold").encode(
                text="word:N"
            ),
        ]
    return layers


def curves_chart(
    curves: Sequence[Curve], *, title: str, x: str, y: str, counts: bool = False
) -> None:
    """Draw curves of shares, each in a colour, shape and dash of its own, over shares or `counts`.

    `x` and `y` say what the axes are.
    """
    rows = [
        {"name": of.name, "x": at, "y": value, "low": limits and limits[0],
         "high": limits and limits[1], "dots": not of.dashed and len(of.points) <= MOST_DOTS,
         "text": f"{100 * value:.1f} %" + (
             f" [{100 * limits[0]:.1f}, {100 * limits[1]:.1f}]" if limits else "")}
        for of in curves
        for (at, value), limits in zip(
            of.points, of.limits or [None] * len(of.points), strict=True
        )
    ]  # fmt: skip
    if not rows:
        return
    said = "; ".join(
        f"{of.name}: " + ", ".join(
            f"{row['x'] if counts else format(row['x'], PERCENT)} {row['text']}"
            for row in rows if row["name"] == of.name
        )
        for of in curves if not of.dashed
    )  # fmt: skip
    st.caption(title)
    st.altair_chart(
        alt.layer(*_curves(pd.DataFrame(rows), curves, x, y, counts=counts)).properties(height=280),
        width="stretch", alt=f"{title}: {said}"[:LONGEST_ALT],
    )  # fmt: skip


def _curves(
    frame: pd.DataFrame, curves: Sequence[Curve], x: str, y: str, *, counts: bool
) -> list[alt.Chart]:
    names = [of.name for of in curves]
    colours, dots = iter((BLUE, ORANGE)), iter(("circle", "diamond"))
    legend = alt.Legend(
        orient="top", title=None, labelColor=ink(), labelFontSize=LETTERS, labelLimit=320,
        symbolSize=90, symbolOpacity=1,
    )  # fmt: skip
    look = _axis("d" if counts else PERCENT)
    if counts:
        look.values = sorted({int(at) for at in frame["x"]})
    base = alt.Chart(frame).encode(
        x=alt.X(
            "x:Q", title=x, axis=look,
            scale=alt.Scale(nice=False) if counts else alt.Scale(domain=[0, 1]),
        ),
        color=alt.Color(
            "name:N", legend=legend,
            scale=alt.Scale(
                domain=names, range=[GREY if of.dashed else next(colours) for of in curves]
            ),
        ),
    )  # fmt: skip
    up = alt.Y("y:Q", title=y, axis=_axis(PERCENT), scale=alt.Scale(domain=[0, 1], clamp=True))
    layers = []
    if frame["low"].notna().any():
        layers.append(
            base.transform_filter("isValid(datum.low)")
            .mark_area(opacity=0.2)
            .encode(y=alt.Y("low:Q", title=y), y2="high:Q")
        )
    dash = alt.StrokeDash(
        "name:N", legend=legend,
        scale=alt.Scale(domain=names, range=[[6, 4] if of.dashed else [1, 0] for of in curves]),
    )  # fmt: skip
    layers.append(base.mark_line(strokeWidth=2.5).encode(y=up, strokeDash=dash))
    if frame["dots"].any():
        shapes = alt.Shape(
            "name:N", legend=legend,
            scale=alt.Scale(
                domain=names,
                range=["stroke" if of.dashed else next(dots) for of in curves],
            ),
        )  # fmt: skip
        tooltip = [
            alt.Tooltip("name:N", title=" "), alt.Tooltip("x:Q", title=x, format=look.format),
            alt.Tooltip("text:N", title=y),
        ]  # fmt: skip
        layers.append(
            base.transform_filter("datum.dots")
            .mark_point(size=80, filled=True, opacity=1)
            .encode(y=up, shape=shapes, tooltip=tooltip)
        )
    return layers


def parts_chart(rows: Sequence[tuple[str, Mapping[str, int]]], *, title: str, x: str) -> None:
    """Draw counts as a bar a row in coloured parts, in their order; the names hold the numbers."""
    parts = list(rows[0][1]) if rows else []
    names = [
        "\u2003".join(
            (shown(name, most=LONGEST), ", ".join(f"{n:,} {part}" for part, n in of.items() if n))
        )
        for name, of in rows
    ]  # fmt: skip
    frame = pd.DataFrame(
        [
            {"name": name, "part": part, "place": place, "count": n}
            for name, (_, of) in zip(names, rows, strict=True)
            for place, (part, n) in enumerate(of.items())
        ]
    )
    if frame.empty:
        return
    bars = (
        alt.Chart(frame)
        .mark_bar(height=18)
        .encode(
            x=alt.X("sum(count):Q", title=x, axis=_whole_numbers()),
            y=alt.Y(
                "name:N", sort=names, title=None,
                axis=alt.Axis(labelLimit=470, labelPadding=8, labelColor=ink(),
                              labelFontSize=LETTERS, ticks=False, domain=False),
            ),
            order="place:Q",
            color=alt.Color(
                "part:N", sort=parts,
                scale=alt.Scale(domain=parts, range=list(PARTS[1 : len(parts) + 1])),
                legend=alt.Legend(orient="top", title=None, labelColor=ink(),
                                  labelFontSize=LETTERS),
            ),
            tooltip=["name:N", "part:N", "count:Q"],
        )
        .properties(height=ROW_HEIGHT * len(names) + 2 * AXIS_HEIGHT)
    )  # fmt: skip
    st.caption(title)
    st.altair_chart(bars, width="stretch", alt=f"{title}: {'; '.join(names)}"[:LONGEST_ALT])


def _whole_numbers() -> alt.Axis:
    look = _axis("d")
    look.tickMinStep = 1
    return look
