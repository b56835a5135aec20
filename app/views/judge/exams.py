"""What labels say of judges: two side by side, all on exam A, and the look at exam B."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import frame, session
from app.components import document, trace_links
from app.components.sections import folded
from app.components.tables import JUDGE
from calibration.analyses.judging import exams
from calibration.analyses.judging.exams import CertifiedJudge, Compared, Flip, Scores
from calibration.analyses.judging.runs import Chosen, choose_traces
from calibration.analyses.judging.versions import EXAM_B
from calibration.errors import CalibrationError
from calibration.judging.baseline import NAME as BASELINE
from calibration.judging.selection import AGREEMENT, KAPPA
from calibration.reporting.sections import judging as shown
from calibration.store import Store
from calibration.text import one_line, sentence

ON_EXAM_A = "exam A"
REASON = 300
MOST_ROWS = 1_000
LOOKED = JUDGE.key("own_looked")


# Two judges


def compare(store: Store) -> None:
    """Draw two judges on the same labelled traces, and the scores of all on exam A."""
    judges = [str(name) for name in store.judge_frame()["judge_id"]]
    if not judges:
        st.text("No judge has given a verdict yet. Run one on exam A first.")
        return
    if len(judges) > 1:
        _pair(store, judges)
    else:
        st.text("One judge has verdicts. Run another one on the same traces to compare the two.")
    folded(JUDGE.key("own_scores"), "All judges on exam A", "", partial(_scores, store), small=True)


def _pair(store: Store, judges: Sequence[str]) -> None:
    batches = [b.batch_id for b in store.batches() if b.purpose == "production"]
    left, right, on = st.columns(3)
    first = left.selectbox("Judge", judges, index=len(judges) - 1, key=JUDGE.key("own_first"))
    others = [name for name in judges if name != first]
    second = right.selectbox(
        "Compared with", others, index=len(others) - 1, key=JUDGE.key("own_second")
    )
    where = on.selectbox("On the labels of", [ON_EXAM_A, *batches], key=JUDGE.key("own_on"))
    batch = None if where == ON_EXAM_A else where
    if batch is not None and (
        frame.asks_first(store, batch) or _kept_back(store, batch, first, second)
    ):
        return
    try:
        found = _compared(str(store.path), first, second, batch, _state(store), store)
    except CalibrationError as error:
        st.text(sentence(str(error)))
        return
    told = shown.compared(found)
    # The last part is the list of traces, which has both reasons here.
    document.whole(replace(told, sections=told.sections[:-1]), key=JUDGE.key("own_pair"))
    _flips(store, found, batch)


def _kept_back(store: Store, batch: str, *judges: str) -> bool:
    """Ask before labels of a batch are spent; True while they are not."""
    if all(batch in store.spent_batches(judge) for judge in judges):
        return False
    st.text(
        f"The labels of three tasks in ten of {batch} can compare the two. Labels that chose a "
        "version read too high for it: afterwards these no longer enter the corrected rate of "
        "either judge. Exam A costs none."
    )
    return not st.button("Compare on these labels", key=JUDGE.key("own_spend"))


def _state(store: Store) -> tuple[object, ...]:
    return (*store.result_state(), store.taxonomy().fingerprint)


@st.cache_resource(show_spinner="Comparing the two judges", max_entries=16)
def _compared(
    path: str, first: str, second: str, batch: str | None, state: tuple[object, ...], _store: Store
) -> Compared:
    return exams.compare(_store, first, second, batch_id=batch)


def _flips(store: Store, found: Compared, batch: str | None) -> None:
    """Draw the traces on which the two differ, with both reasons, after noting who sees them."""
    if not found.flips:
        st.text("They give the same verdict on every one of these traces.")
        return
    flips = found.flips[:MOST_ROWS]
    ids = [flip.trace_id for flip in flips]
    for kind in ("verdicts", "labels" if batch is not None else "canonical"):
        session.log_exposure(store, ids, kind)
    title = "Traces on which they differ"
    st.markdown(f"##### {title}")
    cells = pd.DataFrame([_row(store, flip) for flip in flips])
    # Judges may be called like a column; a place cannot.
    config: dict[str, Any] = {
        "first": f"{found.first:.40}", "second": f"{found.second:.40}",
        "first_reason": st.column_config.TextColumn(f"reason of {found.first:.40}", width="medium"),
        "second_reason": st.column_config.TextColumn(
            f"reason of {found.second:.40}", width="medium"),
    }  # fmt: skip
    key = JUDGE.key("own_flips")
    if batch is None:
        st.dataframe(cells, key=key, hide_index=True, alt=title, column_config=config)
    else:
        trace_links.table(cells, key=key, page="judge", title=title, config=config)


def _row(store: Store, flip: Flip) -> dict[str, str]:
    taxonomy = store.taxonomy()
    question = "-" if flip.question is None else taxonomy.question_name(flip.question)
    return {
        "trace": flip.trace_id,
        "humans": taxonomy.titles.get(flip.human, flip.human),
        "first": taxonomy.titles.get(flip.first, "No verdict"),
        "second": taxonomy.titles.get(flip.second, "No verdict"),
        "first different answer": question,
        "first_reason": one_line(flip.first_reason or "-", most=REASON),
        "second_reason": one_line(flip.second_reason or "-", most=REASON),
    }


def _scores(store: Store) -> None:
    try:
        found = _scored(str(store.path), _state(store), store)
    except CalibrationError as error:
        st.text(sentence(str(error)))
        return
    document.whole(shown.scored(found), key=JUDGE.key("own_scored"))


@st.cache_resource(show_spinner="Scoring the judges", max_entries=4)
def _scored(path: str, state: tuple[object, ...], _store: Store) -> Scores:
    return exams.scores(_store, rng=np.random.default_rng(0))


# The look at locked labels


def certificate(store: Store) -> None:
    """Draw what is demanded, the looks so far, and the button that looks."""
    labelled = exams.labelled_form(store, EXAM_B)
    half = len(labelled.trace_ids) // 2
    judged = exams.judges_with(store, labelled, fewest=max(1, half))
    floor = [name for name in judged if name.startswith(f"{BASELINE}-")]
    judges = [name for name in judged if name not in floor]
    if not judges:
        st.text(f"Exam B is {len(labelled.trace_ids)} locked reference traces. Run a judge on it.")
        return
    if not floor:
        _floor(store)
        return
    judge = st.selectbox("Judge", judges, index=len(judges) - 1, key=JUDGE.key("own_certified"))
    left, right, _ = st.columns([1, 1, 2])
    minimum = left.number_input(
        "The lower limit must reach", min_value=0.01, max_value=0.99, value=None, step=0.01,
        placeholder="0.70", key=JUDGE.key("own_minimum"),
    )  # fmt: skip
    measure = right.selectbox("Of", [AGREEMENT, KAPPA], key=JUDGE.key("own_measure"))
    n = len(exams.looks(store, judge))
    with st.container(horizontal=True, vertical_alignment="center"):
        pressed = st.button(
            "Look at exam B", key=JUDGE.key("own_look"), disabled=minimum is None,
            help=None if minimum is not None else "State first what you demand.",
        )  # fmt: skip
        st.text(shown.looks_words(n))
    if pressed and minimum is not None:
        _look(store, judge, float(minimum), measure)
    looked: CertifiedJudge | None = st.session_state.get(LOOKED)
    if looked is not None and looked.judge == judge:
        document.whole(shown.certified(looked), key=JUDGE.key("own_certificate"))


def _look(store: Store, judge: str, minimum: float, measure: str) -> None:
    st.session_state.pop(LOOKED, None)
    try:
        found = exams.certify(store, judge, minimum=minimum, measure=measure)
    except CalibrationError as error:
        st.text(sentence(str(error)))
        return
    st.session_state[LOOKED] = found
    st.rerun()


def _floor(store: Store) -> None:
    """Offer to judge exam B with the baseline, without which nothing is certified."""
    st.text(
        "The baseline has not judged exam B yet. It is a regression on the practice traces and "
        "costs nothing: a judge that is no better has not read the traces."
    )
    if not st.button("Judge exam B with the baseline", key=JUDGE.key("own_floor")):
        return
    try:
        with st.spinner("Judging exam B"):
            ids = choose_traces(store, None, Chosen(form=EXAM_B))
            exams.run_baseline(store, ids, write=lambda: nullcontext(store))
    except CalibrationError as error:
        st.text(sentence(str(error)))
        return
    st.rerun()
