"""The sections of a report as Streamlit draws them: the blocks that its HTML is made of, no more.

Every text is text or the cell of a table, never markup: names come with the data.
"""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app.components.charts import mark_chart, series_chart
from calibration.reporting.document import Block, Facts, Listing, Section, Table, Trend, Words
from calibration.text import shown

# Tables that say little more than their chart does are folded away below it.
SAID_BY_CHART = 4

LONGEST_CELL = 400
MOST_OPEN = 30
AXES = {
    "%": "share of the runs",
    "pp": "change in percentage points",
    "x": "multiple of ceiling",
    "variance": "share of the variance",
}


def section(of: Section, *, anchor: str) -> None:
    """Draw a section with its heading."""
    st.subheader(of.title, anchor=anchor)
    blocks(of.blocks, key=anchor)


def blocks(of: Sequence[Block], *, key: str) -> None:
    """Draw blocks one after the other."""
    for number, block in enumerate(of):
        _block(block, f"{key}_{number}")


def _block(block: Block, key: str) -> None:
    if isinstance(block, Table):
        table(block, key)
    elif isinstance(block, Trend):
        st.markdown(f"##### {_heading(block.title)}")
        series_chart(block, axis="ASR")
        table(block.table, key)
    elif isinstance(block, Words):
        _words(block, key)
    elif isinstance(block, Listing):
        st.text("\n".join(f"\u2022 {shown(item, most=600)}" for item in block.items))
    elif isinstance(block, Facts):
        st.text("\n".join(f"{name}: {shown(value, most=600)}" for name, value in block.items))
    else:
        st.text("\n".join(shown(item, most=1_000) for item in block.items))


def _words(block: Words, key: str) -> None:
    text = shown(block.text, most=1_000)
    if block.kind == "text":
        st.text(text)
        return
    with st.container(key=f"report_{block.kind}_{key}"):
        st.text(text)


def table(of: Table, key: str) -> None:
    """Draw a table, with its marks above it where it has some."""
    drawn = of.scale is not None and any(row.mark is not None for row in of.rows)
    if not of.folded:
        st.markdown(f"##### {_heading(of.title)}")
    if not of.rows:
        st.text(of.empty)
        return
    if drawn:
        unit = of.scale_labels[1].rpartition(" ")[2]
        mark_chart(of, axis=AXES.get(unit, "ASR"))
    if of.folded or (drawn and len(of.head) <= SAID_BY_CHART):
        with st.expander(_heading(of.title) if of.folded else "The numbers as a table"):
            _cells(of)
    else:
        _cells(of)
    if of.notes:
        with st.container(key=f"report_small_{key}_notes"):
            st.text("\n".join(shown(note, most=600) for note in of.notes))


def _heading(title: str) -> str:
    """Return a title as a heading, in which nothing is markdown."""
    return "".join(c if c.isalnum() or c in " .,:;()-/" else f"\\{c}" for c in title)


def _cells(of: Table) -> None:
    frame = pd.DataFrame(
        [[shown(cell, most=LONGEST_CELL) or "-" for cell in row.cells] for row in of.rows],
        columns=[name or " " for name in of.head],
    )
    st.dataframe(
        frame, hide_index=True, alt=shown(of.title), width="stretch",
        height="content" if len(frame) <= MOST_OPEN else "auto",
    )  # fmt: skip
