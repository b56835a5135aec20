"""What the judge favours, whether it says the same twice, and whether it has moved."""

import pandas as pd
import streamlit as st

from app.components.charts import figure
from app.components.tables import JUDGE, Table
from app.views.judge import data
from app.views.judge.data import Found
from calibration.analyses.agreement.traces import TraceSet
from calibration.analyses.judge.diagnostics import Leniency, changed, in_group
from calibration.analyses.judge.drift import JudgeDrift
from calibration.errors import CalibrationError
from calibration.records import SOURCE_JUDGE
from calibration.reporting.document import number, percent
from calibration.reporting.sections.judge import over_time
from calibration.statistics.means import MeanAgainstZero
from calibration.store import Store

OTHER = JUDGE.key("other")
NOBODY = "nobody"

SLOPES = {
    "response": "for each doubling of the length of the response",
    "steps": "for each doubling of the number of steps",
}


def leniency_tables(found: Found) -> tuple[Table, ...]:
    """Return leniency by agent and by workflow."""
    by = found.diagnosed.leniency_by
    return tuple(_leniency(found, kind, rows) for kind, rows in by.items() if len(rows) > 1)


def _leniency(found: Found, by: str, rows: tuple[Leniency, ...]) -> Table:
    def behind(row: int, _: str) -> TraceSet:
        return in_group(found.traces, by, rows[row].group)

    return Table(
        key=JUDGE.key(f"leniency_{by}"),
        cells=pd.DataFrame(
            {
                by: [f"{of.group:.60}" for of in rows],
                "labels": [of.gap.estimate.n for of in rows],
                "judge gives": [f"{of.verdict_credit:.3f}" for of in rows],
                "humans give": [f"{of.human_credit:.3f}" for of in rows],
                "lenient by": [figure(of.gap.estimate) for of in rows],
                "p (Holm)": ["-" if of.p_holm is None else f"{of.p_holm:.2g}" for of in rows],
            }
        ),
        behind=behind,
        alt=f"How lenient the judge is by {by}",
        estimates=[(f"{of.group:.60}", of.gap.estimate) for of in rows],
    )


def show(store: Store, found: Found, leniency: tuple[Table, ...]) -> None:
    """Draw the second part of the section."""
    _favours(found, leniency)
    _again(found)
    if found.diagnosed.over_time is not None:
        st.markdown("#### Do the labels still hold?")
        st.text(over_time(found.diagnosed.over_time))
    _moved(store, found)


def _favours(found: Found, leniency: tuple[Table, ...]) -> None:
    st.markdown("#### Leniency: mean credit of the verdict less that of the humans")
    overall = found.diagnosed.leniency
    st.text(f"Over all labelled traces {_tested(overall)}; above 0 the judge is lenient.")
    for table in leniency:
        table.show()
    st.markdown("#### What else its verdicts follow, human class held fixed")
    slopes = found.diagnosed.slopes.items()
    st.text("\n".join(f"Credit {SLOPES[name]}: {_tested(of)}." for name, of in slopes))
    st.caption("A difference from 0 is credit that goes by form and not by what humans saw.")


def _again(found: Found) -> None:
    again = found.diagnosed.retest
    st.markdown("#### Asked again")
    if not again.changed.ok:
        st.text(f"{again.changed.status.removeprefix('not_estimable: ').capitalize()}.")
        return
    lines = [
        f"Asked up to {again.most_asked} times, it changes its verdict on {figure(again.changed)} "
        "of the traces.",
        f"Chance that two verdicts on a trace differ: {figure(again.differ)}.",
    ]
    lines += [
        f"First {name}: {figure(share)} change."
        for name, share in zip(found.diagnosed.verdict_names, again.per_verdict, strict=False)
        if share.ok
    ]
    st.text("\n".join(lines))
    flipped = changed(found.traces)
    if flipped.trace_ids:
        st.button(
            f"List the {len(flipped.trace_ids):,} labelled ones", key=JUDGE.key("flipped"),
            on_click=JUDGE.choose, args=(flipped,),
        )  # fmt: skip


def _moved(store: Store, found: Found) -> None:
    """Draw the drift between two judges, once the store holds another one."""
    here = found.asked.judge_id
    others = [name for name in found.judges if name != here]
    if not others or here == SOURCE_JUDGE:
        return
    st.markdown("#### Beside another judge, or another version of it")
    before = st.selectbox("Compare with", [NOBODY, *others], key=OTHER)
    if before == NOBODY:
        return
    try:
        drift = data.compared(found.asked, before, store)
    except CalibrationError as error:
        st.text(str(error))
        return
    _drift(drift)


def _drift(drift: JudgeDrift) -> None:
    st.text(
        f"On {drift.n:,} traces with a verdict of both they agree on {figure(drift.same)}, alpha "
        f"{figure(drift.alpha)}.\nMean credit, {drift.after} less {drift.before}: "
        f"{_tested(drift.credit_change)}."
    )
    # A judge may be called like a column; a place cannot.
    st.dataframe(
        pd.DataFrame(
            {
                "verdict": [of.name for of in drift.classes],
                "before": [percent(of.before) for of in drift.classes],
                "after": [percent(of.after) for of in drift.classes],
                "only_before": [of.only_before for of in drift.classes],
                "only_after": [of.only_after for of in drift.classes],
                "p": [_p(of.test.p_value) for of in drift.classes],
                "p (Holm)": [_p(of.p_holm) for of in drift.classes],
            }
        ),
        hide_index=True, alt="How often each of the two gives a verdict",
        column_config={
            "before": f"{drift.before:.40}",
            "after": f"{drift.after:.40}",
            "only_before": f"only {drift.before:.40}",
            "only_after": f"only {drift.after:.40}",
        },
    )  # fmt: skip
    humans = drift.against_humans
    if humans is None:
        st.text("Whether the error changed is not known: label traces that both judged.")
        return
    st.text(
        "\n".join(
            [
                f"Against the humans, on {humans.n:,} labelled traces:",
                f"accuracy of {drift.before} {figure(humans.accuracy_before.estimate)}, of "
                f"{drift.after} {figure(humans.accuracy_after.estimate)}; change "
                f"{_tested(humans.accuracy_change)}.",
                f"Change of leniency {_tested(humans.leniency_change)}; of the distance between "
                f"the credits {_tested(humans.error_change)}.",
            ]
        )
    )
    st.caption("McNemar's test for each verdict, on the same traces. What changed needs labels.")


def _tested(of: MeanAgainstZero) -> str:
    return number(of.estimate) + ("" if of.p_value is None else f", p = {of.p_value:.2g}")


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"
