"""Charts of a report: values with their limits on one scale, and a series over weeks.

What a colour says is also said by a shape or a word. Names from the data are drawn, never markup.
"""

from collections.abc import Sequence

import altair as alt
import pandas as pd
import streamlit as st

from app.components.charts import BLUE, GREY, ORANGE, ROW_HEIGHT, ink
from calibration.reporting.document import Table, Trend
from calibration.text import shown

LONGEST = 44

LETTERS = 12

PERCENT, POINTS, TIMES = ".0%", "+.0f", ".1f"


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
        alt=f"{table.title}: " + "; ".join(_words(row.cells) for row, _ in drawn),
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
    layers += [
        base.mark_rule(strokeWidth=2.5, color=BLUE, opacity=0.7).encode(y=y, x=x, x2="high:Q"),
        base.mark_point(size=90, strokeWidth=2, opacity=1).encode(
            y=y, x=alt.X("value:Q", scale=scale, title=axis, axis=look),
            fill=alt.condition("datum.hollow", alt.value("transparent"), alt.value(BLUE)),
            stroke=alt.value(BLUE), tooltip=tooltip,
        ),
    ]  # fmt: skip
    if frame["target"].notna().any():
        aims = base.transform_filter("isValid(datum.target)")
        layers.append(
            aims.mark_tick(color=GREY, thickness=2, size=24).encode(
                y=y, x=alt.X("target:Q", scale=scale, title=axis, axis=look)
            )
        )
    return alt.layer(*layers).properties(height=alt.Step(ROW_HEIGHT))


def _axis(number: str) -> alt.Axis:
    return alt.Axis(
        tickCount=6, format=number, labelColor=ink(), titleColor=ink(), labelFontSize=LETTERS
    )


def series_chart(trend: Trend, *, axis: str) -> None:
    """Draw a value with its limits each week, the smooth line, and the weeks that stand out."""
    frame = pd.DataFrame(
        [
            {"week": p.label, "value": p.value, "low": p.low, "high": p.high, "smooth": p.smooth,
             "marked": p.marked, "word": "anomaly" if p.marked else ""}
            for p in trend.points
        ]
    )  # fmt: skip
    if frame["value"].isna().all():
        return
    chart = alt.layer(*_series(frame, axis, trend.smooth_name))
    st.altair_chart(chart.properties(height=280), width="stretch", alt=trend.describes)
    said = [f"Dot with bar: {trend.value_name}."]
    if (frame["value"].notna() & frame["low"].isna()).any():
        said.append("Hollow: too few runs for an interval.")
    if frame["smooth"].notna().any():
        said.append(f"Dashed line: {trend.smooth_name}.")
    if frame["marked"].any():
        said.append(f"Ring and the word anomaly: {trend.mark_name}.")
    st.text(" ".join(said))


def _series(frame: pd.DataFrame, axis: str, smooth: str) -> list[alt.Chart]:
    """Return the layers of a series, those alone that have a mark: else an image has no name."""
    base = alt.Chart(frame)
    x = alt.X(
        "week:O", title="ISO week (UTC)", sort=list(frame["week"]),
        axis=alt.Axis(
            labelAngle=0, labelOverlap=True, labelFlush=False, labelColor=ink(),
            titleColor=ink(), labelFontSize=LETTERS,
        ),
    )  # fmt: skip
    look = _axis(".2f")

    def y(field: str) -> alt.Y:
        return alt.Y(field, title=axis, axis=look, scale=alt.Scale(zero=False, nice=True))

    tooltip = [
        alt.Tooltip("week:N"), alt.Tooltip("value:Q", format=".3f"),
        alt.Tooltip("low:Q", format=".3f"), alt.Tooltip("high:Q", format=".3f"),
        alt.Tooltip("smooth:Q", format=".3f", title=smooth),
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
