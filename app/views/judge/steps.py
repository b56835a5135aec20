"""What to do next, the batches that ask for it, and the files to export."""

import json
import shlex
from collections.abc import Callable
from functools import partial

import streamlit as st

from app import session
from app.components.sections import folded
from app.components.tables import JUDGE
from app.views.judge import data, draw
from app.views.judge.data import Found
from calibration.analyses.agreement.recommendations import Recommendation
from calibration.analyses.judge.calibration import calibrated_labels
from calibration.reporting import to_json
from calibration.reporting.csv_exports import labels_csv
from calibration.store import Store

Written = Callable[[Store, Found], str]


FIRST = 4
FORMS = {"allocate": "draw", "escalate": "escalate"}


def show(store: Store, found: Found) -> None:
    """Draw the first steps: what to do with its button, the reason one click below."""
    st.subheader("Do next", anchor="steps")
    for place, step in enumerate(found.steps[:FIRST], 1):
        _step(store, found, step, place)
    if more := len(found.steps) - FIRST if len(found.steps) > FIRST else 0:
        folded(
            JUDGE.key("more"), "More to do", f"{more} step{'s' * (more > 1)}",
            partial(_others, store, found),
        )  # fmt: skip


def _others(store: Store, found: Found) -> None:
    for place, step in enumerate(found.steps[FIRST:], FIRST + 1):
        _step(store, found, step, place)


def _step(store: Store, found: Found, step: Recommendation, place: int) -> None:
    with (
        st.container(key=JUDGE.key(f"step_{place}")),
        st.container(horizontal=True, vertical_alignment="center"),
    ):
        st.text(f"{place}. {step.what}", width="content")
        _traces(step, place)
        if step.kind == "settle":
            st.page_link("views/adjudicate/page.py", label="Adjudicate")
        if step.kind in FORMS:
            st.button(
                "Open the form", key=JUDGE.key(f"step_form_{place}"), on_click=_open,
                args=(JUDGE.key(FORMS[step.kind]),),
            )  # fmt: skip
        with st.popover(f"Why {place}?", type="tertiary"):
            st.text(step.why)
            if step.kind == "labels" and step.half_width is not None:
                _how_many(store, found, step.half_width)
            if step.command is not None:
                st.code(session.command(step.command), language=None, wrap_lines=True)


def _open(section: str) -> None:
    st.session_state[section] = True


def forms(store: Store, found: Found) -> None:
    """Draw the batches that the steps ask for, folded."""
    for step in found.steps:
        if step.kind == "allocate":
            folded(
                JUDGE.key("draw"), "Draw a batch", "labels where they narrow the interval most",
                partial(draw.allocation, store, found, step),
            )  # fmt: skip
        if step.kind == "escalate":
            folded(
                JUDGE.key("escalate"), "Send uncertain verdicts to people", "with an audit",
                partial(draw.escalation, store, found, step),
            )  # fmt: skip


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
    points = st.number_input(
        "Half-width, points", min_value=0.5, max_value=20.0, value=100 * half_width, step=0.5,
        format="%.1f", key=JUDGE.key("half_width"), width=200,
    )  # fmt: skip
    wanted = points / 100
    if points == 100 * half_width:
        return
    plan = data.planned(found.asked, float(wanted), store)
    if plan is None or plan.needed is None:
        st.text("It is not known how many labels that takes.")
        return
    lines = [
        f"{'no number of labels is enough' if n is None else f'{n:,} labelled traces'} {how}"
        for n, how in ((plan.needed.with_judge, "with the judge"),
                       (plan.needed.without_judge, "without it"))
    ]  # fmt: skip
    have = found.result.calibration.n_labels
    st.text(f"\u00b1{points:g} points: {'; '.join(lines)}. There are {have:,}.")


def export(store: Store, found: Found) -> None:
    """Draw the files to export, and where the result comes from."""
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
        "The JSON is that of `asr calibrate --json`. Calibrated labels give the probable class of "
        "every production trace, to choose traces by: their mean is not the rate."
    )
    result, asked = found.result, found.asked
    st.text(
        f"Judge {asked.judge_id}, batch {asked.batch_id}, {result.calibration.n_labels:,} labels, "
        f"{asked.design} design, seed {result.seed}, fingerprint {result.fingerprint[:16]}. "
        "On the command line:"
    )
    st.code(
        session.command(f"calibrate --judge {shlex.quote(asked.judge_id)}"), language=None,
        wrap_lines=True,
    )  # fmt: skip


def as_json(_: Store, found: Found) -> str:
    """Return the calibration as ``asr calibrate --json`` prints it."""
    return json.dumps(to_json.data(found.result), indent=2, ensure_ascii=False, allow_nan=False)


def labels(store: Store, found: Found) -> str:
    """Return the calibrated labels as ``asr export probabilities`` writes them."""
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
