"""Agreement: whether these labels can be trusted, and where reviewers differ."""

import pandas as pd
import streamlit as st

from app import session
from app.components.charts import figure, interval_chart, two_way_table
from app.views import frame
from calibration.analyses.agreement import AgreementAnalysis, analyse_agreement
from calibration.errors import CalibrationError
from calibration.estimates import Estimate
from calibration.reporting.text import exposed
from calibration.store import Store

RELY, TENTATIVE = 0.8, 0.667


def _verdict(alpha: Estimate) -> str:
    """Say what the lower limit of alpha allows (Krippendorff's bounds)."""
    if alpha.value is None or alpha.interval is None:
        return "There is not enough overlap to say how far reviewers agree."
    low = alpha.interval[0]
    if low >= RELY:
        return "Reviewers agree well enough to rely on these labels."
    if low >= TENTATIVE:
        return "Good enough for tentative conclusions; settle the disputed traces first."
    return (
        "Not good enough yet: the lower limit of alpha is below .667. Settle the disputed traces."
    )


def _headline(result: AgreementAnalysis) -> None:
    overall = result.overall
    st.subheader(_verdict(overall.alpha), anchor=False)
    left, middle, right = st.columns(3)
    left.metric("Krippendorff's alpha", figure(overall.alpha), border=True)
    middle.metric("Percent agreement", figure(overall.percent_agreement), border=True)
    right.metric("Traces with two or more labels", f"{overall.n_items:,}", border=True)
    interval_chart(
        [("alpha", overall.alpha), ("percent agreement", overall.percent_agreement)],
        title="Agreement",
        thresholds=[("tentative conclusions from here", TENTATIVE), ("rely from here", RELY)],
        domain=(0.0, 1.0),
    )
    if overall.alpha.status != "ok":
        st.text(overall.alpha.status.replace("_", " ", 1))
    st.caption(
        f"95 % {overall.alpha.method}. Inference is to traces like these; reviewers are taken as "
        "they are. Dashed lines: .667 tentative, .8 rely."
    )


def _per_class(result: AgreementAnalysis) -> None:
    st.subheader("Per class", anchor=False)
    st.caption("If one reviewer gives this class, how likely does another give it too?")
    interval_chart(
        list(zip(result.classes, result.overall.specific, strict=True)),
        title="Specific agreement",
        domain=(0.0, 1.0),
    )


def _pairs(result: AgreementAnalysis, names: dict[str, str]) -> None:
    st.subheader("Reviewer by reviewer", anchor=False)
    pairs = [pair for pair in result.pairs if pair.n_shared]
    if not pairs:
        st.text("No two reviewers share a trace.")
        return
    label = [
        f"{names[result.reviewers[p.first]]} x {names[result.reviewers[p.second]]}" for p in pairs
    ]
    st.table(
        pd.DataFrame(
            {
                "pair": label,
                "shared traces": [p.n_shared for p in pairs],
                "alpha": [figure(p.alpha) for p in pairs],
                "agreement": [figure(p.percent_agreement) for p in pairs],
            }
        ),
        hide_index=True,
        alt="Agreement of each pair of reviewers",
    )
    chosen = st.selectbox("Two-way table of", range(len(pairs)), format_func=lambda k: label[k])
    pair = pairs[chosen]
    two_way_table(
        result.classes,
        result.classes,
        pair.table,
        rows=names[result.reviewers[pair.first]],
        columns=names[result.reviewers[pair.second]],
    )


def _disputed(store: Store, result: AgreementAnalysis, names: dict[str, str]) -> None:
    st.subheader(f"Disputed traces ({len(result.disputed)})", anchor=False)
    if not result.disputed:
        st.text("None: every trace with two labels has the same class twice.")
        return
    rows = [
        {"trace": item["trace_id"]} | {names[r]: c for r, c in item["labels"].items()}
        for item in result.disputed
    ]
    session.log_exposure(store, [item["trace_id"] for item in result.disputed], "labels")
    st.dataframe(
        pd.DataFrame(rows).fillna(""), hide_index=True, alt="Traces on which reviewers differ"
    )


def _page() -> None:
    store = session.require_store()
    batch_id = frame.results_batch(store, "Agreement")
    if batch_id is None:
        return
    try:
        result = analyse_agreement(store, batch_id)
    except CalibrationError as error:
        st.text(str(error))
        return
    if result.overall.n_ratings == 0:
        st.text("Nobody has labelled this batch yet. Start on the Label page.")
        return
    if not result.is_sample:
        st.text("These traces were chosen, not drawn at random: what follows holds for them only.")
    names = {r.reviewer_id: r.name for r in store.reviewers()}
    _headline(result)
    _per_class(result)
    _pairs(result, names)
    _disputed(store, result, names)
    if result.exposed:
        st.text(exposed(result.exposed))
    st.caption(
        f"Batch {batch_id}, taxonomy {result.taxonomy_version}, fingerprint "
        f"{result.fingerprint[:16]}. The same on the command line: asr agreement"
    )


with st.container(key="page"):
    _page()
