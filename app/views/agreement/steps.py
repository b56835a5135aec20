"""What to do next, and the files to export."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import streamlit as st

from app import session
from app.components.tables import AGREEMENT
from calibration.analyses.agreement.analysis import AgreementAnalysis
from calibration.analyses.agreement.recommendations import Recommendation, WantedInterval
from calibration.analyses.agreement.sample_size import (
    PlannedAgreement,
    plan_agreement,
    shares_of_batch,
)
from calibration.analyses.agreement.traces import shared_traces
from calibration.errors import CalibrationError
from calibration.reporting import csv_exports, to_json
from calibration.store import Store
from calibration.text import sentence

Written = Callable[[AgreementAnalysis], str]


def show(store: Store, result: AgreementAnalysis, steps: Sequence[Recommendation]) -> None:
    """Draw the steps: what to do with its button, the reason one click below."""
    st.subheader("Do next", anchor="steps")
    for place, step in enumerate(steps, 1):
        with (
            st.container(key=AGREEMENT.key(f"step_{place}")),
            st.container(horizontal=True, vertical_alignment="center"),
        ):
            st.text(f"{place}. {step.what}", width="content")
            if step.traces is not None:
                n = len(step.traces.trace_ids)
                st.button(
                    f"List the {n:,} traces" if n > 1 else "List the trace",
                    key=AGREEMENT.key(f"step_traces_{place}"),
                    on_click=AGREEMENT.choose, args=(step.traces,),
                )  # fmt: skip
            if step.kind == "settle":
                st.page_link("views/adjudicate/page.py", label="Adjudicate")
            with st.popover(f"Why {place}?", type="tertiary"):
                st.text(step.why)
                if step.plan is not None:
                    _how_many(store, result, step.plan)
                if step.command is not None:
                    st.code(session.command(step.command), language=None, wrap_lines=True)


def _how_many(store: Store, result: AgreementAnalysis, wanted: WantedInterval) -> None:
    """Offer to plan at once: it takes some seconds, so only when it is asked for."""
    if not st.button("How many traces?", key=AGREEMENT.key("how_many")):
        return
    try:
        plan = _planned(result.fingerprint, wanted, result.batch_id, store).plan
    except CalibrationError as error:
        st.text(sentence(str(error)))
        return
    if plan.assured.n is None:
        st.text(plan.assured.status.replace("_", " ", 1))
        return
    st.text(
        f"{plan.assured.n:,} traces in all, with {plan.n_raters} labels each, are enough nine "
        f"times in ten; {result.study.n_items:,} have two or more labels already."
    )


@st.cache_resource(show_spinner="Simulating samples", max_entries=8)
def _planned(
    fingerprint: str, wanted: WantedInterval, batch_id: str, _store: Store
) -> PlannedAgreement:
    return plan_agreement(
        shares_of_batch(_store, batch_id),
        alpha=wanted.alpha, n_raters=wanted.n_raters, half_width=wanted.half_width,
    )  # fmt: skip


def export(store: Store, result: AgreementAnalysis) -> None:
    """Draw the files to export, and where the result comes from."""
    reviewer = session.chosen_reviewer(store)
    who = None if reviewer is None else reviewer.reviewer_id
    files: Mapping[str, tuple[str, str, Written]] = {
        "Result as JSON": ("agreement.json", "application/json", as_json),
        "Every estimate as CSV": ("agreement.csv", "text/csv", csv_exports.estimates),
        "Ratings as CSV": ("ratings.csv", "text/csv", csv_exports.ratings),
    }
    with st.container(horizontal=True):
        for label, (name, mime, make) in files.items():
            st.download_button(
                label, data=partial(written, store, result, who, make), file_name=name,
                mime=mime, on_click="ignore", key=AGREEMENT.key(name),
            )  # fmt: skip
    st.caption(
        "The JSON is that of `asr agreement --json`. Every number here comes from the ratings "
        "(item, rater, label); `asr agreement FILE` and other tools read them."
    )
    st.text(
        f"Batch {result.batch_id}, taxonomy {result.taxonomy_version}, fingerprint "
        f"{result.fingerprint[:16]}. On the command line:"
    )
    st.code(session.command("agreement"), language=None, wrap_lines=True)


def as_json(result: AgreementAnalysis) -> str:
    """Return the result as ``asr agreement --json`` prints it."""
    return json.dumps(to_json.data(result), indent=2, ensure_ascii=False, allow_nan=False)


def written(store: Store, result: AgreementAnalysis, who: str | None, make: Written) -> str:
    """Return a file that holds labels, after writing down who takes it."""
    if who is not None:
        store.record_exposure(who, shared_traces(result).trace_ids, "labels")
    return make(result)
