"""Can I use this judge? The verdict, the rate corrected and not, and what the judge is worth."""

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.components.charts import figure, interval_chart
from app.components.document import table
from app.views.judge.data import Found
from calibration.analyses.judge.calibration import JudgeCalibration, audited
from calibration.judge_calibration.samples import HEADLINE, Notice
from calibration.reporting.sections import judge
from calibration.reporting.sections import judge as words
from calibration.statistics.estimate import OK, Estimate

RAW = "judge_raw"

NAMES = {
    RAW: "judge-raw, every verdict taken as true",
    "human_only": "human-only, the labels alone",
}


def show(found: Found, names: Mapping[str, str]) -> None:
    """Draw the section."""
    result = found.result
    st.subheader("Can I use this judge?", anchor="use")
    with st.container(key="judge_verdict"):
        st.text(judge.in_a_sentence(result))
    st.text(judge.for_the_rate(result))
    alpha = found.diagnosed.ceiling["krippendorff_alpha"]
    st.text(judge.for_single_traces(result, alpha))
    st.text(judge.ELSEWHERE)
    _figures(found)
    _about(result)
    _rates(result)
    _derivation(result, names)
    _reservations(result)


def _figures(found: Found) -> None:
    result = found.result
    calibration = result.calibration
    head, raw = calibration.headline_estimate, calibration.estimates[RAW].net
    rate, as_it_is, worth, basis = st.columns(4)
    if head is None:
        metric(rate, "Corrected rate", "refused", "see why below")
    else:
        metric(rate, "Corrected rate", figure(head.net).split(" [")[0], limits(head.net))
    metric(as_it_is, "Judge as it is", figure(raw), "no interval of its own error")
    gain = calibration.gain
    if gain is None or gain.value is None:
        metric(worth, "A label with the judge is worth", "not known", "more labels will tell")
    else:
        low, high = gain.interval or (gain.value, gain.value)
        about = f"labels without; {100 * gain.confidence_level:g} %: {low:.2f} to {high:.2f}"
        metric(worth, "A label with the judge is worth", f"{gain.value:.2f}", about)
    metric(
        basis, "Labelled traces", f"{calibration.n_labels:,}",
        f"of {calibration.n_production:,} {'in production' if found.is_sample else 'chosen ones'}",
    )  # fmt: skip


def metric(column: DeltaGenerator, label: str, value: str, about: str) -> None:
    """Draw a number with what there is to say about it."""
    column.metric(label, value, about, delta_color="off", delta_arrow="off", border=True)


def limits(of: Estimate) -> str:
    """Return the interval of an estimate in words."""
    if of.interval is None:
        return "no interval"
    return f"{100 * of.confidence_level:g} %: {of.interval[0]:.3f} to {of.interval[1]:.3f}"


def _about(result: JudgeCalibration) -> None:
    calibration, head = result.calibration, result.calibration.headline_estimate
    lines = [
        f"{calibration.n_labels:,} labelled traces ({words.drawn(result)}), "
        f"{calibration.n_production:,} judged."
    ]
    if head is not None:
        net = head.net
        status = "" if net.status == OK else f"; {net.status.replace('_', ' ', 1)}"
        lines.insert(0, f"{100 * net.confidence_level:g} %, {net.method}{status}.")
    off = words.as_it_is(calibration)
    if off is not None:
        lines.append(f"{off[0].upper()}{off[1:]}.")
    st.text("\n".join(lines))


def _rates(result: JudgeCalibration) -> None:
    calibration = result.calibration
    head = calibration.headline
    called = NAMES | ({} if head is None else {head: f"corrected, {head}"})
    first = [name for name in (RAW, "human_only", head) if name is not None]
    order = [*first, *(name for name in calibration.estimates if name not in first)]
    refused = {notice.estimator for notice in calibration.refusals}
    rows = [
        (called.get(name, name), calibration.estimates[name].net)
        for name in order
        if calibration.estimates[name].net.ok or name not in refused
    ]
    interval_chart(rows, title="Agent success rate, net of cost", hollow=[NAMES[RAW]], figures=True)
    refusals = _refused(calibration.refusals, HEADLINE[result.design])
    if refusals:
        st.text("\n".join(refusals))
    st.caption(
        "Judge-raw has no interval: what would be drawn is the sampling of traces, and not the "
        "errors of the judge."
        + (
            ""
            if calibration.headline_estimate is None
            else " The estimators below the corrected one are checks with assumptions of their own."
            f" Gross of cost the corrected rate is {figure(calibration.headline_estimate.gross)}."
        )
    )


def _refused(notices: Sequence[Notice], headline: str) -> list[str]:
    """Say which estimators are refused, those for the same reasons together, and the first why."""
    whys: dict[str, list[str]] = {}
    for notice in notices:
        whys.setdefault(notice.estimator, []).append(notice.why)
    together: dict[tuple[str, ...], list[str]] = {}
    for name, reasons in whys.items():
        together.setdefault(tuple(reasons), []).append(name)
    return [
        f"Refused: {', '.join(names)}, because {reasons[0]}"
        + (f", and for {len(reasons) - 1} further reasons below." if len(reasons) > 1 else ".")
        for reasons, names in sorted(together.items(), key=lambda of: headline not in of[1])
    ]


def _derivation(result: JudgeCalibration, names: Mapping[str, str]) -> None:
    """Draw what the width of the interval is made of, and how far reviewers differ."""
    width = words.width_table(result.calibration)
    effects = words.reviewer_effects({
        names.get(who, who): one for who, one in result.reviewers.items()
    })  # fmt: skip
    if width is not None:
        with st.expander(width.title):
            table(width, "width")
    if effects is not None:
        with st.expander(effects.title):
            table(effects, "reviewers")


def _reservations(result: JudgeCalibration) -> None:
    """Say everything else that a reader of the number must know."""
    calibration = result.calibration
    lines = [*words.of_what(result)]
    lines += words.human_side(result.human) if result.human is not None else []
    lines += [audited(result.agreed_error)] if result.agreed_error is not None else []
    if result.if_skipped is not None and result.many_skipped:
        lines.append(words.moved_by_skips(result.skipped, result.if_skipped))
    corrected = calibration.two_phase
    if corrected is not None and corrected.correction is not None:
        lines.append(words.corrected_by(corrected, corrected.correction))
    lines += words.notices("refused", calibration.refusals)
    lines += words.notices("warning", calibration.warnings)
    with st.expander(f"What else to know of this number ({len(lines)})"):
        for line in lines:
            st.text(line.strip())
