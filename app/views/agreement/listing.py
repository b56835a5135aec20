"""The list of traces, in the order to adjudicate, and one trace with its labels."""

from collections.abc import Mapping
from functools import partial

import pandas as pd
import streamlit as st

from app.components import traces
from app.components.tables import AGREEMENT
from calibration.analyses.agreement.analysis import AgreementAnalysis
from calibration.analyses.agreement.traces import (
    TraceSet,
    disputed_traces,
    rated_traces,
)
from calibration.reporting import csv_exports
from calibration.store import Store

MOST_WITHOUT_SCROLLING = 5


def answer(result: AgreementAnalysis) -> str:
    """Return what the list holds."""
    found = AGREEMENT.active() or disputed_traces(result)
    return f"{traces.counted(found)} {found.what}"


def show(store: Store, result: AgreementAnalysis, names: Mapping[str, str]) -> None:
    """Draw the section."""
    found = AGREEMENT.active() or disputed_traces(result)
    if not found.trace_ids:
        st.text(f"No trace {found.what}. Click a number above to list its traces.")
        return
    st.subheader("Least certain class first", anchor="traces")
    traces.log(AGREEMENT, store, found, "labels")
    _table(result, found, names)
    st.caption(
        "Uncertainty of the class given all labels (Dawid-Skene): 0 bits is certain, 1 is two "
        "classes at even odds. Effect on alpha: alpha without the trace minus alpha with it."
    )
    st.download_button(
        f"Download these {len(found.trace_ids):,} as CSV",
        data=partial(csv_exports.agreement_traces_csv, result, found),
        file_name="agreement-traces.csv", mime="text/csv", on_click="ignore",
        key=AGREEMENT.key("traces_csv"),
    )  # fmt: skip
    traces.opened(AGREEMENT, store, result.batch_id, found, names)


def _table(result: AgreementAnalysis, found: TraceSet, names: Mapping[str, str]) -> None:
    rated = rated_traces(result, found)
    titles, name_of = result.taxonomy.titles, result.taxonomy.question_name
    columns: dict[str, list[object]] = {
        "trace": [of.trace_id for of in rated],
        "first difference": [name_of(of.question) if of.question else "-" for of in rated],
        "entropy": [of.entropy for of in rated],
        "cost": [of.cost for of in rated],
        "final label": [titles[of.consensus] if of.consensus else "-" for of in rated],
    }
    # A reviewer may be called like a column; a place cannot.
    for place, who in enumerate(result.reviewers):
        columns[f"r{place}"] = [
            titles.get(given, given) for given in (of.classes.get(who, "") for of in rated)
        ]
    st.dataframe(
        pd.DataFrame(columns), key=AGREEMENT.trace, hide_index=True, on_select="rerun",
        selection_mode="single-cell", alt=f"Traces {found.what}", placeholder="-",
        column_config={
            "trace": st.column_config.TextColumn(
                pinned=len(result.reviewers) > MOST_WITHOUT_SCROLLING
            ),
            "entropy": st.column_config.NumberColumn("uncertainty, bits", format="%.2f"),
            "cost": st.column_config.NumberColumn("effect on alpha", format="%.4f"),
            **{f"r{place}": names[who] for place, who in enumerate(result.reviewers)},
        },
    )  # fmt: skip
