"""Can I use this judge? The verdict, the rate corrected and not, and what the judge is worth."""

import streamlit as st

from app.components.charts import figure, interval_chart
from app.judge_data import Found
from calibration.analyses.judge import JudgeAnalysis
from calibration.estimates import OK, Estimate
from calibration.reporting import calibration as words
from calibration.reporting import judge_verdict

RAW = "judge_raw"
NAMES = {
    RAW: "judge-raw, every verdict taken as true",
    "human_only": "human-only, the labels alone",
}


def show(found: Found) -> None:
    """Draw the section."""
    result = found.result
    st.subheader("Can I use this judge?", anchor="use")
    with st.container(key="judge_verdict"):
        st.text(judge_verdict.for_the_rate(result))
    alpha = found.diagnosed.ceiling["krippendorff_alpha"]
    st.text(judge_verdict.for_single_traces(result, alpha))
    st.text(judge_verdict.ELSEWHERE)
    _figures(found)
    _about(result)
    _rates(result)
    _reservations(result)


def _figures(found: Found) -> None:
    result = found.result
    calibration = result.calibration
    head, raw = calibration.headline_estimate, calibration.estimates[RAW].net
    rate, as_it_is, worth, basis = st.columns(4)
    if head is None:
        _metric(rate, "Corrected rate", "refused", "see why below")
    else:
        _metric(rate, "Corrected rate", figure(head.net).split(" [")[0], _interval(head.net))
    _metric(as_it_is, "Judge as it is", figure(raw), "no interval of its own error")
    gain = None if found.plan is None or found.plan.worth is None else found.plan.worth.multiplier
    if gain is None or gain.value is None or result.design != "production":
        _metric(worth, "A label with the judge is worth", "not known", "labels without it")
    else:
        low, high = gain.interval or (gain.value, gain.value)
        said = f"labels without; {100 * gain.confidence_level:g} %: {low:.2f} to {high:.2f}"
        _metric(worth, "A label with the judge is worth", f"{gain.value:.2f}", said)
    _metric(
        basis, "Labelled traces", f"{calibration.n_labels:,}",
        f"of {calibration.n_production:,} in production",
    )  # fmt: skip


def _metric(column: st.delta_generator.DeltaGenerator, label: str, value: str, about: str) -> None:
    column.metric(label, value, about, delta_color="off", delta_arrow="off", border=True)


def _interval(of: Estimate) -> str:
    if of.interval is None:
        return "no interval"
    return f"{100 * of.confidence_level:g} %: {of.interval[0]:.3f} to {of.interval[1]:.3f}"


def _about(result: JudgeAnalysis) -> None:
    calibration, head = result.calibration, result.calibration.headline_estimate
    lines = [
        f"{calibration.n_labels:,} labelled traces ({words.SAMPLE[result.design]}), "
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


def _rates(result: JudgeAnalysis) -> None:
    calibration = result.calibration
    first = [RAW, "human_only", *([calibration.headline] if calibration.headline else [])]
    order = [*first, *(name for name in calibration.estimates if name not in first)]
    called = {
        **NAMES,
        **({calibration.headline: f"corrected, {calibration.headline}"}
           if calibration.headline else {}),
    }  # fmt: skip
    refused = {notice.estimator for notice in calibration.refusals}
    rows = [
        (
            called.get(name, name if name not in refused else f"{name}, refused"),
            calibration.estimates[name].net,
        )
        for name in order
    ]
    interval_chart(rows, title="Agent success rate, net of cost", hollow=[NAMES[RAW]], figures=True)
    head = calibration.headline_estimate
    st.caption(
        "Judge-raw has no interval: what would be drawn is the sampling of traces, and not the "
        "errors of the judge. The estimators below the corrected one are checks with assumptions "
        "of their own."
        + ("" if head is None else f" Gross of cost the corrected rate is {figure(head.gross)}.")
    )


def _reservations(result: JudgeAnalysis) -> None:
    """Say everything else that a reader of the number must know."""
    calibration = result.calibration
    lines = [*words.human_side(result.human)] if result.human is not None else []
    left_out = [
        f"without {who}: {'not estimable' if value is None else f'{value:.3f}'}"
        for who, value in result.without_reviewer.items()
    ]
    if left_out:
        lines.append(
            "reviewer error is not in the interval; with one reviewer left out: "
            + "; ".join(left_out)
        )
    if result.if_skipped is not None:
        low, high = result.if_skipped
        lines.append(
            f"{result.skipped} skipped traces could move the rate to [{low:.3f}, {high:.3f}]"
        )
    lines += words.notices("refused", calibration.refusals)
    lines += words.notices("warning", calibration.warnings)
    with st.expander(f"What else to know of this number ({len(lines)})"):
        for line in lines:
            st.text(line.strip())
