"""The verdict of a judge that we run, with all that it rests on: samples, answers, quotes, cost.

All of it comes from a model or a trace, so it is text and bounded, whatever its form.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app.components.sections import folded
from app.desk.data import bounded_text
from calibration.judging.requests import QUOTE_STATES
from calibration.records import NO_VERDICT
from calibration.reporting.document import usd
from calibration.reporting.sections.judging import cause_words, flag_words
from calibration.taxonomy import Taxonomy
from calibration.text import one_line

MOST_QUOTES, MOST_ANSWERS, MOST_SAMPLES, MOST_KEYS = 20, 200, 25, 20
VERIFIED, MOVED, UNVERIFIED = QUOTE_STATES

Row = Mapping[str, Any]


def rows_of(verdicts: pd.DataFrame) -> dict[str, list[Row]]:
    """Return the verdicts of each judge on a trace, the one of all samples first."""
    found: dict[str, list[Row]] = {}
    for row in verdicts.astype(object).where(verdicts.notna(), None).to_dict("records"):
        found.setdefault(row["judge_id"], []).append({str(k): v for k, v in row.items()})
    return found


def detail_of(row: Row) -> dict[str, Any]:
    """Return what a run kept beside a verdict; empty for an imported one."""
    found = json.loads(row["detail"] or "{}")
    return found if isinstance(found, dict) else {}


def _list(detail: Mapping[str, Any], name: str, most: int = MOST_QUOTES) -> list[Any]:
    found = detail.get(name)
    return found[:most] if isinstance(found, list) else []


def title(row: Row, taxonomy: Taxonomy) -> str:
    """Return a verdict in words, with the cause if there is none."""
    if row["outcome"] != NO_VERDICT:
        return taxonomy.titles.get(row["outcome"], str(row["outcome"]))
    return "No verdict" + (f": {cause_words(row['cause'])}" if row["cause"] else "")


def show(rows: Sequence[Row], taxonomy: Taxonomy, *, key: str) -> None:
    """Draw what the verdict of a judge that we run rests on, below its class and reason.

    Parameters
    ----------
    rows : sequence of mapping
        The verdict of all samples and those of single ones, as `rows_of` returns them.
    taxonomy : Taxonomy
    key : str
    """
    first, *samples = rows[: MOST_SAMPLES + 1]
    if samples:
        st.text(f"Samples: {'; '.join(title(row, taxonomy) for row in samples)}")
    # The reason of the verdict is that of the first sample of its class.
    chosen = next((row for row in samples if row["outcome"] == first["outcome"]), first)
    _answers(chosen, taxonomy)
    _cost(first, samples or [first])
    for number, row in enumerate(samples, 1):
        if row is not chosen:
            folded(
                f"{key}_{number}", f"Sample {number}", title(row, taxonomy),
                partial(_sample, row, taxonomy), small=True,
            )  # fmt: skip
    folded(
        f"{key}_journal", "Journal", "", partial(_journal, first, samples or [first]), small=True
    )


def _sample(row: Row, taxonomy: Taxonomy) -> None:
    if not detail_of(row).get("answer"):
        st.text("There is no answer that could be read.")
    _answers(row, taxonomy)


def _answers(row: Row, taxonomy: Taxonomy) -> None:
    """Draw the answers that led to a verdict, with reasons and quotes, then the other quotes."""
    detail = detail_of(row)
    answer, quotes = detail.get("answer"), _quotes(detail)
    on_way = [node.id for node in taxonomy.nodes]
    if row["outcome"] in taxonomy.names:
        on_way = list(taxonomy.answers_for(row["outcome"]))
    drawn = set()
    for node in on_way:
        given = answer.get(node) if isinstance(answer, dict) else None
        if not isinstance(given, dict):
            continue
        name = taxonomy.question_name(node)
        st.text(f"{name.capitalize()}: {one_line(str(given.get('answer')), most=20)}")
        st.text(bounded_text(str(given.get("reason") or "No reason given.")))
        for part in _list(given, "evidence"):
            if isinstance(part, dict):
                quote = str(part.get("quote"))
                _quote(quotes.get(quote, (str(part.get("step")), "")), quote)
                drawn.add(quote)
    for quote, where in list(quotes.items())[:MOST_QUOTES]:
        if quote not in drawn:
            _quote(where, quote)
    for flag in _list(detail, "flags"):
        st.text(f"Note: {one_line(flag_words(str(flag)), most=200)}.")
    cut = detail.get("cut_characters")
    if isinstance(cut, int) and cut:
        st.text(f"The judge read the trace without {cut:,} of its characters: it was too long.")


def _quotes(detail: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return step and state of each quote."""
    return {
        str(part.get("quote")): (str(part.get("step")), str(part.get("state")))
        for part in _list(detail, "quotes", MOST_ANSWERS)
        if isinstance(part, dict)
    }


def _quote(where: tuple[str, str], quote: str) -> None:
    step, state = where
    step = one_line(step, most=80)
    words = {
        VERIFIED: f"Verified quote from {step}",
        MOVED: f"Moved quote: it is in {step}, the judge named another step",
        UNVERIFIED: "Unverified quote, not found in the trace",
    }.get(state, f"Quote from {step}")
    st.text(f"{words}:")
    st.code(bounded_text(quote), language=None, wrap_lines=True)


def _cost(first: Row, samples: Sequence[Row]) -> None:
    times = [detail_of(row).get("latency_s") for row in samples]
    seconds = [time for time in times if isinstance(time, int | float)]
    parts = [
        "Cost not known" if first["cost_usd"] is None else f"Cost {usd(first['cost_usd'])}",
        f"answered in {sum(seconds):,.1f} s" if seconds else "",
        f"run {one_line(str(detail_of(first).get('run') or 'not known'), most=80)}",
    ]
    st.text(", ".join(part for part in parts if part))


def _journal(first: Row, samples: Sequence[Row]) -> None:
    """Draw where the paid answers are: the keys of their requests."""
    run = one_line(str(detail_of(first).get("run") or "not known"), most=80)
    st.text(f"The answers are in journal.jsonl of run {run}, under these keys:")
    keys = [
        one_line(str(key), most=80)
        for row in samples
        for key in _list(detail_of(row), "replies", MOST_KEYS)
    ]
    st.code("\n".join(keys) or "none", language=None, wrap_lines=True)
