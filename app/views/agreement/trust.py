"""Can I trust these labels? The verdict, every coefficient, and what else the number holds."""

import math

import pandas as pd
import streamlit as st

from app.components.charts import figure, interval_chart, share_bar, trend_chart
from app.components.tables import AGREEMENT, Table
from calibration.agreement.coefficients import GWET_AC, KRIPPENDORFF_ALPHA, PERCENT_AGREEMENT
from calibration.agreement.study import RELY, TENTATIVE
from calibration.analyses.agreement.analysis import AgreementAnalysis
from calibration.analyses.agreement.traces import in_week
from calibration.reporting.document import exposed
from calibration.reporting.sections.agreement import COEFFICIENTS, benchmark, chance
from calibration.statistics.estimate import OK, Estimate

THRESHOLDS = [("tentative from .667", TENTATIVE), ("rely from .8", RELY)]
WEEKS = "weeks"


def weeks_table(result: AgreementAnalysis) -> Table:
    """Return agreement week by week."""
    groups = list(result.study.groups.items())
    return Table(
        key=AGREEMENT.key(WEEKS),
        cells=pd.DataFrame(
            {
                "week": [name for name, _ in groups],
                "traces": [group.n_items for _, group in groups],
                "alpha": [figure(group.alpha) for _, group in groups],
                "AC1": [figure(group.ac1) for _, group in groups],
                "percent agreement": [figure(group.percent_agreement) for _, group in groups],
            }
        ),
        behind=lambda row, _: in_week(result, groups[row][0]),
        alt="Agreement by the week of the last label of a trace",
        estimates=[(name, group.alpha) for name, group in groups],
    )


def show(result: AgreementAnalysis) -> None:
    """Draw the section, without the weeks."""
    st.subheader("Can I trust these labels?", anchor="trust")
    coefficients = result.study.coefficients
    alpha = coefficients[KRIPPENDORFF_ALPHA.name]
    with st.container(key="agreement_verdict"):
        words = benchmark(alpha)
        st.text(words[0].upper() + words[1:] + ".")
        if not result.is_sample:
            st.text("These traces were chosen, not drawn at random: this holds for them only.")
    _figures(result)
    _reaches(result)
    share_bar(
        list(zip(result.classes, result.study.class_shares, strict=True)),
        title="Class mix of the labels",
    )
    _coefficients(coefficients)
    _reservations(result, alpha)


def show_weeks(result: AgreementAnalysis, weeks: Table) -> None:
    """Draw alpha week by week, once there are two."""
    if len(result.study.groups) >= 2:
        trend_chart(
            [(name, group.alpha) for name, group in result.study.groups.items()],
            title="Alpha by week (of the last label of a trace)",
            thresholds=THRESHOLDS,
            key=AGREEMENT.chart_key(WEEKS),
        )
        weeks.show()


def _figures(result: AgreementAnalysis) -> None:
    study, coefficients = result.study, result.study.coefficients
    cells = [
        ("Krippendorff's alpha", coefficients[KRIPPENDORFF_ALPHA.name]),
        ("Percent agreement", coefficients[PERCENT_AGREEMENT.name]),
        ("Gwet's AC1", coefficients[GWET_AC.name]),
    ]
    columns = st.columns(4)
    for column, (label, value) in zip(columns, cells, strict=False):
        column.metric(
            label,
            "-" if value.value is None else f"{value.value:.3f}",
            None if value.interval is None else _interval(value),
            delta_color="off", delta_arrow="off", border=True,
        )  # fmt: skip
    columns[3].metric(
        "Traces with two or more labels",
        f"{study.n_items:,}",
        f"{study.n_ratings:,} labels, {study.n_raters} reviewers",
        delta_color="off", delta_arrow="off", border=True,
    )  # fmt: skip


def _interval(of: Estimate) -> str:
    low, high = of.interval or (0.0, 0.0)
    return f"{100 * of.confidence_level:g} %: {low:.3f} to {high:.3f}"


def _reaches(result: AgreementAnalysis) -> None:
    bootstrap = result.study.bootstrap
    words = [
        f"P(alpha \u2265 {bound:g}) {chance(share, bootstrap.n_resamples)}"
        for bound, share in bootstrap.reaches.items()
        if share is not None
    ]
    if words:
        st.text(f"{',  '.join(words)}, over {bootstrap.n_resamples:,} resamples of the traces.")


def _coefficients(coefficients: dict[str, Estimate]) -> None:
    shown = [(COEFFICIENTS[name], value) for name, value in coefficients.items()]
    lowest = min(
        (v.interval[0] if v.interval else v.value for _, v in shown if v.value is not None),
        default=0.0,
    )
    interval_chart(
        shown,
        title="Agreement",
        thresholds=THRESHOLDS,
        domain=(min(0.5, max(-1.0, math.floor(10 * lowest) / 10)), 1.0),
        figures=True,
    )
    methods = dict.fromkeys(v.method for _, v in shown if v.interval is not None)
    if methods:
        st.caption(
            f"Intervals: {'; '.join(methods)}. Inference is to traces like these; reviewers are "
            "taken as they are. Dashed lines: Krippendorff's bounds, for alpha and not for AC1."
        )


def _reservations(result: AgreementAnalysis, alpha: Estimate) -> None:
    """Say everything else that a reader of the number must know."""
    use, lines = result.study.prevalence, []
    if use.status not in (OK, alpha.status) and use.gap.ok:
        rare = ", ".join(result.classes[k] for k in use.rare_classes)
        lines.append(
            f"Alpha lies {figure(use.gap)} from AC1: {use.status}"
            + (f" ({rare})." if rare else ".")
        )
    if alpha.ok and alpha.status != OK:
        lines.append(f"Alpha: {alpha.status}.")
    if result.near_misses.ok:
        lines.append(
            f"Near misses: with classes of close credit counted as close alpha is "
            f"{figure(result.near)}, a difference of {figure(result.near_misses)}; above 0 where "
            "reviewers differ by little."
        )
    if result.by_task is not None:
        lines.append(f"Tasks repeat; with the task as the unit alpha is {figure(result.by_task)}.")
    if result.unplanned:
        lines.append(
            f"{result.unplanned:,} traces left out: planned for one label, a second came by a flag "
            "or late."
        )
    if result.exposed:
        lines.append(exposed(result.exposed) + ".")
    for line in lines:
        st.text(line)
