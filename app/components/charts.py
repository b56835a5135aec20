"""Charts that several pages share. Text from traces never enters one as markup."""

from collections.abc import Sequence
from datetime import date, timedelta

import altair as alt
import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from calibration.statistics.estimate import Estimate

ROW_HEIGHT = 34

BLUE, ORANGE, GREY = "#4a8abf", "#d0743f", "#7d8590"

# Of parts of a whole, in order; apart from each other for the colour-blind too.
PARTS = ("#4a8abf", "#8fc1e3", "#d0743f", "#8a5fa8", "#7d8590")


def interval_chart(
    rows: Sequence[tuple[str, Estimate]],
    *,
    title: str,
    thresholds: Sequence[tuple[str, float]] = (),
    hollow: Sequence[str] = (),
    domain: tuple[float, float] | None = None,
    figures: bool = False,
) -> None:
    """Draw one point with its interval a row; rows without a value are named below.

    `hollow` names rows that are diagnostics and not to be relied on; `figures` writes the
    numbers beside the names.
    """
    shown = [(name, e) for name, e in rows if e.value is not None]
    if shown:
        frame = pd.DataFrame(
            {
                "name": [f"{name}   {figure(e)}" if figures else name for name, e in shown],
                "value": [e.value for _, e in shown],
                "low": [e.value if e.interval is None else e.interval[0] for _, e in shown],
                "high": [e.value if e.interval is None else e.interval[1] for _, e in shown],
                "hollow": [name in hollow for name, _ in shown],
                "text": [figure(e) for _, e in shown],
            }
        )
        st.altair_chart(
            _intervals(frame, thresholds, domain, title),
            width="stretch",
            alt=title + ": " + "; ".join(f"{name} {figure(e)}" for name, e in shown),
        )
    for name, missing in rows:
        if missing.value is None:
            # As text: the name may come from a trace.
            st.text(f"{name}: {missing.status.replace('_', ' ', 1)}")


def _intervals(
    frame: pd.DataFrame,
    thresholds: Sequence[tuple[str, float]],
    domain: tuple[float, float] | None,
    title: str,
) -> alt.LayerChart | alt.FacetChart:
    order = list(frame["name"])
    scale = alt.Scale(domain=list(domain), clamp=True) if domain else alt.Scale(zero=False)
    axis = alt.Axis(
        labelLimit=320, labelPadding=8, labelFlush=False, labelColor=ink(), ticks=False,
        domain=False,
    )  # fmt: skip
    y = alt.Y("name:N", sort=order, title=None, axis=axis)
    x = alt.X("low:Q", scale=scale, title=title, axis=alt.Axis(tickCount=6))
    base = alt.Chart(frame)
    layers: list[alt.Chart] = [
        base.mark_rule(strokeWidth=2.5, color=BLUE, opacity=0.6).encode(y=y, x=x, x2="high:Q"),
        base.mark_point(size=90, strokeWidth=2, opacity=1).encode(
            y=y,
            x="value:Q",
            fill=alt.condition("datum.hollow", alt.value("transparent"), alt.value(BLUE)),
            stroke=alt.value(BLUE),
            tooltip=[alt.Tooltip("name:N", title=" "), alt.Tooltip("text:N", title="value")],
        ),
    ]
    if thresholds:
        layers += _thresholds(thresholds, along="x")
    return alt.layer(*layers).properties(height=alt.Step(ROW_HEIGHT))


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
    frame = pd.DataFrame(
        {
            "period": [name for name, _ in shown],
            "value": [e.value for _, e in shown],
            "low": [e.value if e.interval is None else e.interval[0] for _, e in shown],
            "high": [e.value if e.interval is None else e.interval[1] for _, e in shown],
            "text": [figure(e) for _, e in shown],
        }
    )
    bottom = min(0.0, max(-1.0, float(frame["low"].min())))
    base = alt.Chart(frame).encode(
        x=alt.X("period:O", title=None, axis=alt.Axis(labelAngle=0, labelOverlap=True))
    )
    y = alt.Y(
        "low:Q", title=None, scale=alt.Scale(domain=[bottom, 1.0], clamp=True),
        axis=alt.Axis(tickCount=5),
    )  # fmt: skip
    mark = alt.selection_point(name="mark", fields=["period"])
    layers = [
        base.mark_rule(strokeWidth=2.5, color=BLUE, opacity=0.6).encode(y=y, y2="high:Q"),
        base.mark_point(size=110, strokeWidth=2, filled=True, opacity=1, color=BLUE)
        .encode(
            y="value:Q",
            tooltip=[alt.Tooltip("period:N", title=" "), alt.Tooltip("text:N", title="value")],
        )
        .add_params(mark),
        *_thresholds(thresholds, along="y"),
    ]
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
    """Draw a count for each of the last `most` days; days without any stand at zero."""
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
