"""What the judge favours, whether it is consistent, and how it differs from another one."""

import pandas as pd
import streamlit as st

from app import frame
from app.components.charts import figure, points
from app.components.tables import JUDGE, Table
from app.views.judge import data
from app.views.judge.data import Found
from app.views.judge.use import LISTED
from calibration.analyses.agreement.traces import TraceSet
from calibration.analyses.judge.diagnostics import Leniency, changed, in_group
from calibration.analyses.judge.drift import JudgeDrift
from calibration.errors import CalibrationError
from calibration.records import SOURCE_JUDGE
from calibration.reporting.document import percent, percent_figure
from calibration.reporting.sections.judge import over_time
from calibration.statistics.means import MeanAgainstZero
from calibration.store import Store
from calibration.text import sentence

OTHER = JUDGE.key("other")
NOBODY = "nobody"

SLOPES = {
    "response": "for each doubling of the length of the response",
    "steps": "for each doubling of the number of steps",
}


def leniency_tables(found: Found) -> tuple[Table, ...]:
    """Return leniency by agent, workflow and prompt."""
    by = found.diagnosed.leniency_by
    return tuple(_leniency(found, kind, rows) for kind, rows in by.items() if len(rows) > 1)


def _leniency(found: Found, by: str, rows: tuple[Leniency, ...]) -> Table:
    def behind(row: int, _: str) -> TraceSet | None:
        return in_group(found.traces, by, rows[row].group) if by in LISTED else None

    return Table(
        key=JUDGE.key(f"leniency_{by}"),
        cells=pd.DataFrame(
            {
                by: [f"{of.group:.60}" for of in rows],
                "labels": [of.gap.estimate.n for of in rows],
                "judge gives": [percent(of.verdict_credit) for of in rows],
                "reviewers give": [percent(of.human_credit) for of in rows],
                "lenient by, points": [points(of.gap.estimate) for of in rows],
                "p (Holm)": ["-" if of.p_holm is None else f"{of.p_holm:.2g}" for of in rows],
            }
        ),
        behind=behind,
        alt=f"How lenient the judge is by {by}",
        estimates=[(f"{of.group:.60}", of.gap.estimate) for of in rows],
    )


def answer(found: Found) -> str:
    """Return how lenient the judge is."""
    overall = found.diagnosed.leniency.estimate
    if overall.value is None:
        return "not known"
    way = "lenient" if overall.value >= 0 else "strict"
    return f"{way} by {100 * abs(overall.value):.1f} points"


def show(found: Found, leniency: tuple[Table, ...]) -> None:
    """Draw what the judge favours, its consistency, and whether old labels still hold."""
    _favours(found, leniency)
    _again(found)
    if found.diagnosed.over_time is not None:
        st.markdown("#### Do the labels still hold?")
        st.text(over_time(found.diagnosed.over_time))


def _favours(found: Found, leniency: tuple[Table, ...]) -> None:
    st.markdown("#### Leniency: mean credit of the verdicts minus that of the labels")
    overall = found.diagnosed.leniency
    st.text(f"Over all labelled traces {_tested(overall)} points; above 0 the judge is lenient.")
    for table in leniency:
        table.show()
    st.markdown("#### Does it favour long responses or many steps? Traces of the same class")
    slopes = found.diagnosed.slopes.items()
    st.text("\n".join(f"{_tested(of)} points of credit {SLOPES[name]}." for name, of in slopes))
    st.caption("Different from 0: the judge rewards form, reviewers do not.")


def _again(found: Found) -> None:
    again = found.diagnosed.retest
    st.markdown("#### Asked again")
    if not again.changed.ok:
        st.text(f"{again.changed.status.removeprefix('not_estimable: ').capitalize()}.")
        return
    lines = [
        f"Asked up to {again.most_asked} times, it changes its verdict on {figure(again.changed)} "
        "of the traces.",
        f"Chance that two verdicts on a trace differ: {percent_figure(again.differ)}.",
    ]
    lines += [
        f"First {found.traces.title(name)}: {percent_figure(share)} change."
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


def others(found: Found) -> list[str]:
    """Return the judges that this one can be compared with."""
    here = found.asked.judge_id
    return [] if here == SOURCE_JUDGE else [name for name in found.judges if name != here]


def show_other(store: Store, found: Found) -> None:
    """Draw the difference between two judges, or two versions of one."""
    before = st.selectbox(
        "Compare with", [NOBODY, *others(found)], key=OTHER, format_func=frame.judge_name
    )
    if before == NOBODY:
        return
    try:
        drift = data.compared(found.asked, before, store)
    except CalibrationError as error:
        st.text(sentence(str(error)))
        return
    _drift(drift, found)


def _drift(drift: JudgeDrift, found: Found) -> None:
    first, second = frame.judge_name(drift.before), frame.judge_name(drift.after)
    st.text(
        f"On {drift.n:,} traces with a verdict of both they agree on {percent_figure(drift.same)}, "
        f"alpha {figure(drift.alpha, 2)}.\nMean credit, {second} minus {first}: "
        f"{_tested(drift.credit_change)} points."
    )
    # A judge may be called like a column; a place cannot.
    st.dataframe(
        pd.DataFrame(
            {
                "verdict": [found.traces.title(of.name) for of in drift.classes],
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
            "before": f"{first:.40}",
            "after": f"{second:.40}",
            "only_before": f"only {first:.40}",
            "only_after": f"only {second:.40}",
        },
    )  # fmt: skip
    humans = drift.against_humans
    if humans is None:
        st.text("It is not known whether its errors changed: label traces that both have judged.")
        return
    st.text(
        "\n".join(
            [
                f"Compared with the reviewers, on {humans.n:,} labelled traces:",
                f"accuracy of {first} {percent_figure(humans.accuracy_before.estimate)}, of "
                f"{second} {percent_figure(humans.accuracy_after.estimate)}; change "
                f"{_tested(humans.accuracy_change)} points.",
                f"Change of leniency {_tested(humans.leniency_change)} points; of the distance "
                f"between the credits {_tested(humans.error_change)} points.",
            ]
        )
    )
    st.caption("p: McNemar's test of each verdict, on the same traces.")


def _tested(of: MeanAgainstZero) -> str:
    return points(of.estimate) + ("" if of.p_value is None else f" (p = {of.p_value:.2g})")


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"
