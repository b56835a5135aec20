"""The sections of a report as Streamlit draws them: the blocks that its HTML is made of, no more.

Every text is text or the cell of a table, never markup: names come with the data.
"""

from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st

from app.components.charts import mark_chart, series_chart
from app.components.sections import as_table, folded
from calibration.reporting.document import (
    Block,
    Document,
    Facts,
    Listing,
    Section,
    Table,
    Trend,
    Words,
)
from calibration.text import shown

# Tables that say little more than their chart does are folded away below it.
SAID_BY_CHART = 4

LONGEST_CELL = 400
MOST_OPEN = 30
AXES = {
    "1": "on a scale from 0 to 1",
    "%": "share of the runs",
    "pp": "change in percentage points",
    "x": "multiple of ceiling",
    "variance": "share of the variance",
}


def whole(of: Document, *, key: str) -> None:
    """Draw a short document inside a section: what it says, then its parts, titled ones folded."""
    st.text("\n".join(shown(line, most=1_000) for line in of.about))
    for number, part in enumerate(of.sections):
        inside = partial(blocks, part.blocks, key=f"{key}_{number}")
        if part.title:
            folded(f"{key}_{number}", part.title, part.answer, inside, small=True)
        else:
            inside()


def read_first(report: Document) -> None:
    """Draw what stands before the estimates: how a table was read, and what was left out."""
    for line in report.reading:
        st.text(shown(line, most=600))


def section(of: Section, *, key: str) -> None:
    """Draw a section folded behind its title and answer."""
    folded(key, of.title, of.answer, partial(blocks, of.blocks, key=key))


def blocks(of: Sequence[Block], *, key: str) -> None:
    """Draw blocks one after the other."""
    for number, block in enumerate(of):
        _block(block, f"{key}_{number}")


def _block(block: Block, key: str) -> None:
    if isinstance(block, Table):
        table(block, key)
    elif isinstance(block, Trend):
        trend(block, key)
    elif isinstance(block, Words):
        _words(block, key)
    elif isinstance(block, Listing):
        st.text("\n".join(f"\u2022 {shown(item, most=600)}" for item in block.items))
    elif isinstance(block, Facts):
        st.text("\n".join(f"{name}: {shown(value, most=600)}" for name, value in block.items))
    else:
        st.text("\n".join(shown(item, most=1_000) for item in block.items))


def trend(of: Trend, key: str) -> None:
    """Draw a series with its numbers one key away."""
    st.markdown(f"##### {_heading(of.title)}")
    series_chart(of, axis="ASR")
    table(of.table, key)


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
    if of.title and not of.folded:
        st.markdown(f"##### {_heading(of.title)}")
    if not of.rows:
        st.text(of.empty)
        return
    if drawn:
        unit = of.scale_labels[1].rpartition(" ")[2]
        mark_chart(of, axis=AXES.get(unit, "ASR"))
    if of.folded:
        folded(f"{key}_folded", of.title, "", partial(_cells, of), small=True)
    elif drawn and len(of.head) <= SAID_BY_CHART:
        as_table(cells_of(of), alt=_name(of))
    else:
        _cells(of)
    if of.notes:
        with st.container(key=f"report_small_{key}_notes"):
            st.text("\n".join(shown(note, most=600) for note in of.notes))


def _heading(title: str) -> str:
    """Return a title as a heading, in which nothing is markdown."""
    return "".join(c if c.isalnum() or c in " .,:;()-/" else f"\\{c}" for c in title)


def cells_of(of: Table) -> pd.DataFrame:
    """Return the cells of a table."""
    return pd.DataFrame(
        [[shown(cell, most=LONGEST_CELL) or "-" for cell in row.cells] for row in of.rows],
        columns=[name or " " for name in of.head],
    )


def _name(of: Table) -> str:
    """Return what a table is called, for screen readers: without a title, by its columns."""
    return shown(of.title) or ", ".join(filter(None, of.head))


def _cells(of: Table) -> None:
    frame = cells_of(of)
    st.dataframe(
        frame, hide_index=True, alt=_name(of), width="stretch",
        height="content" if len(frame) <= MOST_OPEN else "auto",
    )  # fmt: skip
