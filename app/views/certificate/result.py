"""The result of an examination: classes, questions, confusions, leniency, and its traces."""

import pandas as pd
import streamlit as st

from app.components.charts import figure, interval_chart
from app.components.traces import quotes
from app.desk.data import bounded_text
from app.desk.plain import trace_as_text
from app.views.certificate import data
from calibration.analyses.reviewers.exam_report import ExamReport, exam_report, examined_trace
from calibration.errors import CalibrationError
from calibration.reviewers.certification import PassRule
from calibration.statistics.estimate import Estimate
from calibration.store import Store
from calibration.store.certification import Exam
from calibration.taxonomy import Taxonomy
from calibration.text import sentence

CONFUSION, TRACE = "certificate_confusion", "certificate_trace"


def show(store: Store, exam: Exam) -> None:
    """Draw what an examination that is over says of its reviewer."""
    report = exam_report(store, data.by(store), exam.reviewer_id, exam.batch_id)
    taxonomy = store.taxonomy()
    st.subheader("Your last result", anchor="result")
    further = f" and {report.n_further} further ones" if report.n_further else ""
    st.text(
        f"{report.exam.status}: attempt {report.form.attempt}, form {report.form.form}, "
        f"{report.n} traces{further}.".capitalize()
    )
    for reason in (report.exam.body or {}).get("reasons", ()):
        st.text(sentence(reason))
    _figures(report)
    _classes(report, taxonomy)
    _questions(report)
    _confusions(store, report, taxonomy)
    _leniency(report)
    st.caption(f"Fingerprint {report.fingerprint[:16]}")


def _figures(report: ExamReport) -> None:
    rule = PassRule()
    with st.container(horizontal=True, key="certificate_figures"):
        for name, estimate, under in (
            ("AC1 against canonical", report.ac1, f"lower limit: {rule.ac1:.2f} asked for"),
            ("Same class", report.accuracy, f"95 % Wilson, n = {report.n}"),
            ("Leniency, ASR points", report.leniency, "above 0: too generous"),
        ):  # fmt: skip
            value, _, limits = figure(
                estimate, 3 if estimate is not report.leniency else 1
            ).partition(" ")
            st.metric(
                name, value, f"{limits + ', ' if limits else ''}{under}", delta_color="off",
                delta_arrow="off", border=True, height="stretch",
            )  # fmt: skip


def _classes(report: ExamReport, taxonomy: Taxonomy) -> None:
    rule = PassRule()
    titles = {c.name: c.title for c in taxonomy.classes}
    st.markdown("#### By class")
    interval_chart(
        [(titles[c.decision.outcome], c.recall) for c in report.classes],
        title="Recall: share of the traces of the class that you gave it to",
        thresholds=[(f"{rule.recall:g}", rule.recall)], domain=(0.0, 1.0),
    )  # fmt: skip
    st.dataframe(
        pd.DataFrame(
            {
                "class": [titles[c.decision.outcome] for c in report.classes],
                "found": [f"{c.decision.hits} of {c.decision.n}" for c in report.classes],
                "recall": [figure(c.recall, 2) for c in report.classes],
                f"chance of {rule.recall:g} or more": [
                    f"{c.decision.chance:.2f}" for c in report.classes
                ],
                "shown": ["yes" if c.decision.shown else "no" for c in report.classes],
                "topped up": ["yes" if c.topped_up else "" for c in report.classes],
            }
        ),
        hide_index=True, alt="Recall of each class",
    )  # fmt: skip
    st.caption(
        f"A class is shown when its recall is {rule.recall:g} or more with a chance of "
        f"{rule.chance:g} or more. Intervals are Wilson's, 95 %."
    )


def _questions(report: ExamReport) -> None:
    st.markdown("#### By question")
    st.dataframe(
        pd.DataFrame(
            {
                "question": [n.node for n in report.nodes],
                "same answer": [figure(n.agreement, 2) for n in report.nodes],
                "of traces": [n.agreement.n for n in report.nodes],
                "both yes": [n.table[0][0] for n in report.nodes],
                "yes, your answer no": [n.table[0][1] for n in report.nodes],
                "no, your answer yes": [n.table[1][0] for n in report.nodes],
                "both no": [n.table[1][1] for n in report.nodes],
            }
        ),
        hide_index=True, alt="Answers at each question against the canonical ones",
    )  # fmt: skip
    st.text("\n".join(f"{n.node}: {n.question}" for n in report.nodes))
    st.caption(
        "Traces of the form on which both your answers and the canonical ones reach the question. "
        "After an error at one question, the questions below it are not reached."
    )


def _confusions(store: Store, report: ExamReport, taxonomy: Taxonomy) -> None:
    st.markdown("#### Classes you confused")
    if not report.confusions:
        st.text("None: you gave every trace its canonical class.")
        return
    titles = {c.name: c.title for c in taxonomy.classes}
    kinds = {
        f"{titles[c.canonical]}, your answer {titles[c.given]}: {len(c.trace_ids)}": c
        for c in report.confusions
    }
    left, right = st.columns(2)
    chosen = left.selectbox("Canonical class, your class: traces", list(kinds), key=CONFUSION)
    trace_id = right.selectbox(
        "Trace", kinds[chosen].trace_ids, index=None, key=TRACE,
        placeholder="Choose one to read it with the reasons",
    )  # fmt: skip
    if trace_id is not None:
        try:
            _opened(store, report, trace_id, titles)
        except CalibrationError as error:
            st.text(sentence(str(error)))


def _opened(store: Store, report: ExamReport, trace_id: str, titles: dict[str, str]) -> None:
    found = examined_trace(
        store, data.by(store), report.form.reviewer_id, report.exam.batch_id, trace_id
    )
    with st.container(border=True, key="certificate_opened"):
        st.text(trace_id)
        left, right = st.columns([3, 2], gap="medium")
        with right:
            st.text(f"Your answer: {titles.get(found.given, found.given)}")
            st.text(f"Canonical: {titles.get(found.canonical, found.canonical)}")
            st.text(bounded_text(found.rationale or "No reason was written down."))
            if found.label is not None:
                quotes((e.step_id, e.quote) for e in found.label.evidence)
                nearest = titles.get(found.label.nearest_wrong, found.label.nearest_wrong)
                if nearest:  # a set of a team's own need not name one
                    st.text(f"Why not {nearest}: {bounded_text(found.label.why_not)}")
        with left:
            trace_as_text(found.trace)


def _leniency(report: ExamReport) -> None:
    st.markdown("#### Leniency")
    st.text(
        "By how many points of the agent success rate your labels would be too generous (above "
        "zero) or too strict (below)."
    )
    st.text(f"On the class mix of the form: {_points(report.leniency)}")
    st.text(
        f"On the class mix of production: {_points(report.leniency_in_production)}"
        + ("" if report.leniency_in_production.value is None else f". The mix is of {report.mix}.")
    )


def _points(estimate: Estimate) -> str:
    if estimate.value is None:
        return str(estimate)
    note = "" if estimate.status == "ok" else f" ({estimate.status})"
    return f"{figure(estimate, 1)}{note}"
