"""The decision tree as a picture: how much of something starts at each question."""

from collections.abc import Mapping
from dataclasses import dataclass

import altair as alt
import pandas as pd
import streamlit as st

from app.components.charts import BLUE, GREY, LETTERS, ink
from calibration.reporting.document import percent
from calibration.taxonomy import Taxonomy
from calibration.text import shown

STEP, WIDEST, SMALLEST, LARGEST = 42, 40, 60, 1_400


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a question or a class lies; `parent` and `answer` lead to it."""

    name: str
    depth: int
    row: float
    is_question: bool
    parent: str | None
    answer: str


def _places(taxonomy: Taxonomy) -> list[_Place]:
    """Lay the tree out from left to right: a class a row, a question between its two ends."""
    questions = {node.id: node for node in taxonomy.nodes}
    found: list[_Place] = []
    rows = 0

    def place(name: str, depth: int, parent: str | None, answer: str) -> float:
        nonlocal rows
        node = questions.get(name)
        if node is None:
            row = float(rows)
            rows += 1
        else:
            ends = [place(node.target(a), depth + 1, name, a) for a in ("yes", "no")]
            row = sum(ends) / 2
        found.append(
            _Place(
                name=name, depth=depth, row=row, is_question=node is not None, parent=parent,
                answer=answer,
            )
        )  # fmt: skip
        return row

    place(taxonomy.root.id, 0, None, "")
    return found


def tree_chart(
    taxonomy: Taxonomy, shares: Mapping[str, float], *, title: str, key: str | None = None
) -> None:
    """Draw the tree with a share at each question; a click on one reports its `question` as a mark.

    Parameters
    ----------
    taxonomy : Taxonomy
    shares : mapping of str to float
        By question; the larger a dot, the larger its share, which is also written.
    title : str
    key : str, optional
        Of the chart, where a click on a question counts.
    """
    places = _places(taxonomy)
    by_name = {of.name: of for of in places}
    edges = pd.DataFrame(
        [
            {
                "x": by_name[of.parent].depth, "y": by_name[of.parent].row, "x2": of.depth,
                "y2": of.row, "answer": of.answer,
                "middle": by_name[of.parent].depth + 0.5,
                "height": (by_name[of.parent].row + of.row) / 2,
            }
            for of in places if of.parent is not None
        ]
    )  # fmt: skip
    dots = pd.DataFrame(
        [
            {
                "x": of.depth, "y": of.row, "question": of.name, "share": shares.get(of.name, 0.0),
                "text": percent(shares.get(of.name, 0.0)),
                "name": shown(taxonomy.question_name(of.name), most=WIDEST),
                "asked": taxonomy.node(of.name).question,
            }
            for of in places if of.is_question
        ]
    )  # fmt: skip
    ends = pd.DataFrame(
        [
            {"x": of.depth, "y": of.row, "title": shown(taxonomy.titles[of.name], most=WIDEST)}
            for of in places if not of.is_question
        ]
    )  # fmt: skip
    deepest = max(of.depth for of in places)
    chart = alt.layer(
        *_lines(edges, deepest, len(ends)), *_ends(ends), *_dots(dots, clicked=key is not None)
    ).properties(height=STEP * len(ends) + 40)
    said = "; ".join(f"{n} {t}" for n, t in zip(dots["name"], dots["text"], strict=True))
    st.caption(title)
    options = {} if key is None else {"key": key, "on_select": "rerun", "selection_mode": "mark"}
    st.altair_chart(chart, width="stretch", alt=f"{title}: {said}", **options)  # type: ignore[call-overload]


def _scales(deepest: int, rows: int) -> tuple[alt.Scale, alt.Scale]:
    return (
        alt.Scale(domain=[-0.35, deepest + 0.75], nice=False, zero=False),
        alt.Scale(domain=[rows - 0.3, -0.9], nice=False, zero=False),
    )


def _lines(edges: pd.DataFrame, deepest: int, rows: int) -> list[alt.Chart]:
    across, down = _scales(deepest, rows)
    base = alt.Chart(edges)
    return [
        base.mark_rule(color=GREY, strokeWidth=1.5).encode(
            x=alt.X("x:Q", scale=across, axis=None), y=alt.Y("y:Q", scale=down, axis=None),
            x2="x2:Q", y2="y2:Q",
        ),
        base.mark_text(color=ink(), fontSize=11, fontStyle="italic", dy=-7).encode(
            x="middle:Q", y="height:Q", text="answer:N"
        ),
    ]  # fmt: skip


def _ends(ends: pd.DataFrame) -> list[alt.Chart]:
    base = alt.Chart(ends).encode(x="x:Q", y="y:Q")
    return [
        base.mark_point(shape="square", size=60, filled=True, color=GREY, opacity=1),
        base.mark_text(align="left", dx=9, color=ink(), fontSize=LETTERS).encode(text="title:N"),
    ]


def _dots(dots: pd.DataFrame, *, clicked: bool) -> list[alt.Chart]:
    base = alt.Chart(dots).encode(x="x:Q", y="y:Q")
    most = max(0.01, float(dots["share"].max()))
    marks = base.mark_circle(color=BLUE, opacity=1, stroke="white", strokeWidth=1).encode(
        size=alt.Size(
            "share:Q", legend=None, scale=alt.Scale(domain=[0, most], range=[SMALLEST, LARGEST])
        ),
        tooltip=[alt.Tooltip("asked:N", title=" "), alt.Tooltip("text:N", title="share")],
    )
    if clicked:
        marks = marks.add_params(alt.selection_point(name="mark", fields=["question"]))
    return [
        marks,
        base.mark_text(dy=-26, color=ink(), fontSize=15, fontWeight="bold").encode(text="text:N"),
        base.mark_text(dy=28, color=ink(), fontSize=LETTERS).encode(text="name:N"),
    ]
