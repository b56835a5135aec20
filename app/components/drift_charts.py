"""How a reviewer did over time: shares by block of checks, and the sum with its limit."""

import altair as alt
import pandas as pd
import streamlit as st

from app.components.charts import BLUE, GREY, ORANGE, figure, ink
from calibration.analyses.reviewers.drift import Checks
from calibration.statistics.estimate import Estimate


def checks_chart(checks: Checks, *, title: str) -> None:
    """Draw the share of hits by block of checks with intervals, and the sum below it."""
    shown = [(first, last, e) for first, last, e in checks.blocks if e.value is not None]
    if not shown:
        st.text(f"{title}: no checks yet.")
        return
    drift = checks.drift
    scale = alt.Scale(domain=[0, max(10, drift.n) + 1], nice=False)
    said = "; ".join(f"checks {first} to {last} {figure(e)}" for first, last, e in shown)
    st.caption(title)
    st.altair_chart(
        _blocks(pd.DataFrame(_rows(shown)), scale), width="stretch", alt=f"{title}: {said}"
    )
    if drift.limit is not None:
        at = "not marked" if drift.marked_at is None else f"marked at check {drift.marked_at}"
        st.altair_chart(_sums(checks, scale), width="stretch", alt=f"{title}, sum: {at}")


def _rows(shown: list[tuple[int, int, Estimate]]) -> list[dict[str, object]]:
    return [
        {
            "middle": (first + last) / 2,
            "checks": f"{first} to {last}",
            "value": e.value,
            "low": e.interval[0] if e.interval else e.value,
            "high": e.interval[1] if e.interval else e.value,
            "text": figure(e),
        }
        for first, last, e in shown
    ]


def _blocks(frame: pd.DataFrame, scale: alt.Scale) -> alt.LayerChart | alt.FacetChart:
    x = alt.X("middle:Q", scale=scale, title=None, axis=alt.Axis(labels=False, ticks=False))
    y = alt.Y(
        "low:Q", title="share of hits", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5)
    )
    base = alt.Chart(frame).encode(x=x)
    return alt.layer(
        base.mark_rule(strokeWidth=2.5, color=BLUE, opacity=0.6).encode(y=y, y2="high:Q"),
        base.mark_point(size=90, filled=True, opacity=1, color=BLUE).encode(
            y="value:Q",
            tooltip=[
                alt.Tooltip("checks:N", title="checks"),
                alt.Tooltip("text:N", title="share of hits"),
            ],
        ),
    ).properties(height=170)


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
