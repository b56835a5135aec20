"""Can I trust these labels? The verdict with four figures, and how sure it is."""

import math

import pandas as pd
import streamlit as st

from app.components.charts import (
    figure,
    interval_chart,
    limits_in_percent,
    share_bar,
    trend_chart,
)
from app.components.sections import verdict
from app.components.tables import AGREEMENT, Table
from calibration.agreement.coefficients import PERCENT_AGREEMENT
from calibration.agreement.ratings import RELY, TENTATIVE
from calibration.analyses.agreement.analysis import AgreementAnalysis
from calibration.analyses.agreement.traces import in_week, open_traces
from calibration.reporting.document import CHOSEN, exposed, percent, percent_figure
from calibration.reporting.sections.agreement import COEFFICIENTS, benchmark, chance
from calibration.statistics.estimate import OK, Estimate
from calibration.text import arms_left_out, sentence

THRESHOLDS = [("usable with care from .667", TENTATIVE), ("reliable from .8", RELY)]
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
                "same class": [percent_figure(group.percent_agreement) for _, group in groups],
            }
        ),
        behind=lambda row, _: in_week(result, groups[row][0]),
        alt="Agreement by the week of the last label of a trace",
        estimates=[(name, group.alpha) for name, group in groups],
    )


def show(result: AgreementAnalysis) -> None:
    """Draw the verdict and the figures."""
    words = benchmark(result.study.alpha)
    chosen = () if result.is_sample else (CHOSEN.strip(),)
    verdict(AGREEMENT.key("verdict"), sentence(words), *chosen)
    _figures(result)


def answer(result: AgreementAnalysis) -> str:
    """Return in a few words how sure the verdict is."""
    found = [e.value for e in result.study.coefficients.values() if e.value is not None]
    if not found:
        return "no coefficient can be given"
    weeks = len(result.study.groups)
    return (
        f"{len(found)} coefficients from {min(found):.2f} to {max(found):.2f}"
        + f", {weeks} weeks" * (weeks > 1)
    )


def details(result: AgreementAnalysis, weeks: Table) -> None:
    """Draw every coefficient, the class mix, the weeks and the reservations."""
    coefficients = result.study.coefficients
    _reaches(result)
    _coefficients(coefficients)
    titles = result.taxonomy.titles
    share_bar(
        [
            (titles[name], share)
            for name, share in zip(result.classes, result.study.class_shares, strict=True)
        ],
        title="Class mix of the labels",
    )
    _weeks(result, weeks)
    _reservations(result, result.study.alpha)


def _weeks(result: AgreementAnalysis, weeks: Table) -> None:
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
    study = result.study
    alpha, same = study.alpha, study.coefficients[PERCENT_AGREEMENT.name]
    cells = [
        ("Agreement (alpha)", "-" if alpha.value is None else f"{alpha.value:.2f}",
         None if alpha.interval is None else _interval(alpha)),
        ("Same class given", percent(same.value),
         None if same.interval is None else limits_in_percent(same)),
        ("Open disagreements", f"{len(open_traces(result).trace_ids):,}",
         f"of {len(result.disputed):,} disagreements"),
        ("Traces labelled twice", f"{study.n_items:,}",
         f"{study.n_ratings:,} labels, {study.n_raters} reviewers"),
    ]  # fmt: skip
    for column, (label, value, about) in zip(st.columns(4), cells, strict=True):
        column.metric(label, value, about, delta_color="off", delta_arrow="off", border=True)


def _interval(of: Estimate) -> str:
    low, high = of.interval or (0.0, 0.0)
    return f"{100 * of.confidence_level:g} %: {low:.2f} to {high:.2f}"


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
            f"Intervals: {'; '.join(methods)}. They hold for other traces like these, labelled "
            "by the same reviewers. Dashed lines: Krippendorff's bounds, for alpha and not for AC1."
        )


def _reservations(result: AgreementAnalysis, alpha: Estimate) -> None:
    """Say everything else that a reader of the number must know."""
    use, lines = result.study.prevalence, []
    if use.status not in (OK, alpha.status) and use.gap.ok:
        titles = result.taxonomy.titles
        rare = ", ".join(titles[result.classes[k]] for k in use.rare_classes)
        lines.append(
            f"Alpha differs from AC1 by {figure(use.gap)}: {use.status}"
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
            f"{result.unplanned:,} traces left out: planned "
            "for one label; the second came through a flag or late."
        )
    if result.perturbed:
        lines.append(arms_left_out(result.perturbed) + ".")
    if result.exposed:
        lines.append(exposed(result.exposed) + ".")
    for line in lines:
        st.text(line)
