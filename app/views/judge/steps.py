"""What would make it better? The steps, the batches they ask for, and everything to take away."""

import json
from collections.abc import Callable
from functools import partial

import streamlit as st

from app import session
from app.components.tables import JUDGE
from app.views.judge import data, draw
from app.views.judge.data import Found
from calibration.analyses.agreement.recommendations import Recommendation
from calibration.analyses.judge.calibration import calibrated_labels
from calibration.reporting import to_json
from calibration.reporting.csv_exports import labels_csv
from calibration.store import Store

Written = Callable[[Store, Found], str]


def show(store: Store, found: Found) -> None:
    """Draw the section."""
    st.subheader("What would make it better?", anchor="steps")
    for place, step in enumerate(found.steps, 1):
        with st.container(border=True, key=JUDGE.key(f"step_{place}")):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.text(f"{place}. {step.what}")
                _traces(step, place)
            st.text(step.why)
            if step.kind == "labels" and step.half_width is not None:
                _how_many(store, found, step.half_width)
            if step.kind == "allocate":
                draw.allocation(store, found, step)
            if step.kind == "escalate":
                draw.escalation(store, found, step)
            if step.command is not None:
                st.code(session.command(step.command), language=None, wrap_lines=True)


def _traces(step: Recommendation, place: int) -> None:
    if step.traces is None:
        return
    n = len(step.traces.trace_ids)
    st.button(
        f"List the {n:,} traces" if n != 1 else "List the trace",
        key=JUDGE.key(f"step_traces_{place}"), on_click=JUDGE.choose, args=(step.traces,),
    )  # fmt: skip


def _how_many(store: Store, found: Found, half_width: float) -> None:
    """Say what another half-width takes."""
    wanted = st.number_input(
        "Half-width", min_value=0.005, max_value=0.2, value=half_width, step=0.005, format="%.3f",
        key=JUDGE.key("half_width"), width=200,
    )  # fmt: skip
    if wanted == half_width:
        return
    plan = data.planned(found.asked, float(wanted), store)
    if plan is None or plan.needed is None:
        st.text("Nothing tells how many labels that takes.")
        return
    lines = [
        f"{'no number of labels gives it' if n is None else f'{n:,} labelled traces'} {how}"
        for n, how in ((plan.needed.with_judge, "with the judge"),
                       (plan.needed.without_judge, "without it"))
    ]  # fmt: skip
    have = found.result.calibration.n_labels
    st.text(f"\u00b1{wanted:g}: {'; '.join(lines)}. There are {have:,}.")


def export(store: Store, found: Found) -> None:
    """Draw the buttons to take the result away."""
    st.markdown("#### Take it away")
    reviewer = session.chosen_reviewer(store)
    who = None if reviewer is None else reviewer.reviewer_id
    files: dict[str, tuple[str, str, Written]] = {
        "Calibration as JSON": ("calibration.json", "application/json", as_json)
    }
    if found.result.calibration.headline is not None:
        files["Calibrated labels as CSV"] = ("calibrated-labels.csv", "text/csv", labels)
    with st.container(horizontal=True):
        for label, (name, mime, make) in files.items():
            st.download_button(
                label, data=partial(written, store, found, who, make), file_name=name,
                mime=mime, on_click="ignore", key=JUDGE.key(name),
            )  # fmt: skip
    st.caption(
        "The JSON is that of `asr calibrate --json`. Calibrated labels say of every production "
        "trace what its verdict probably means, to look and to sample by: their mean is not the "
        "rate."
    )


def as_json(_: Store, found: Found) -> str:
    """Return the calibration as ``asr calibrate --json`` prints it."""
    return json.dumps(to_json.data(found.result), indent=2, ensure_ascii=False, allow_nan=False)


def labels(store: Store, found: Found) -> str:
    """Return the calibrated labels as ``asr labels calibrated`` writes them."""
    asked = found.asked
    return labels_csv(calibrated_labels(store, asked.batch_id, judge_id=asked.judge_id))


def written(store: Store, found: Found, who: str | None, make: Written) -> str:
    """Return a file that holds labels and verdicts, after writing down who takes it.

    Of the traces that somebody may still be asked to label: those of the batches.
    """
    if who is not None:
        mine = [of.trace_id for of in found.traces.labelled]
        asked = [
            trace_id
            for batch in store.batches()
            if batch.purpose == "production"
            for trace_id in store.batch_items(batch.batch_id)["trace_id"]
        ]
        store.record_exposure(who, mine, "labels")
        store.record_exposure(who, asked, "verdicts")
    return make(store, found)
