"""Can I use this judge? The verdict with four figures, the width, and alternative estimates."""

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.components.charts import interval_chart, limits_in_percent, steps_chart
from app.components.document import cells_of, table
from app.components.sections import as_table, verdict
from app.components.tables import JUDGE
from app.views.judge.data import Found
from calibration.analyses.judge.calibration import JudgeCalibration, audited, odd_verdicts
from calibration.judge_calibration.samples import HEADLINE, Notice
from calibration.reporting.document import percent, percent_figure
from calibration.reporting.sections import judge as words
from calibration.statistics.estimate import OK
from calibration.text import sentence

RAW = "judge_raw"

NAMES = {
    RAW: "uncorrected judge, every verdict taken as true",
    "human_only": "human labels alone",
}


def show(found: Found) -> None:
    """Draw the verdict and the figures."""
    result = found.result
    alpha = found.diagnosed.ceiling["krippendorff_alpha"]
    odd = odd_verdicts(result)
    verdict(
        JUDGE.key("verdict"), words.in_a_sentence(result), words.for_the_rate(result),
        *([] if odd is None else [odd]), words.for_single_traces(result, alpha),
    )  # fmt: skip
    _figures(found)


def _figures(found: Found) -> None:
    result = found.result
    calibration = result.calibration
    head, raw = calibration.headline_estimate, calibration.estimates[RAW].net
    rate, uncorrected, worth, basis = st.columns(4)
    if head is None:
        metric(rate, "Corrected rate", "refused", "see Alternative estimates")
    else:
        metric(rate, "Corrected rate", percent(head.net.value), limits_in_percent(head.net))
    metric(uncorrected, "Uncorrected judge", percent(raw.value), "no interval of its errors")
    gain = calibration.gain
    if gain is None or gain.value is None:
        metric(worth, "The judge saves", "not known", "more labels will tell")
    else:
        saved = words.saved_share(gain)
        value = percent(saved.value) if gain.value > 1 else "nothing"
        metric(worth, "The judge saves, of labelling", value, limits_in_percent(saved))
    metric(
        basis, "Labelled traces", f"{calibration.n_labels:,}",
        f"of {calibration.n_production:,} {'in production' if found.is_sample else 'chosen ones'}",
    )  # fmt: skip


def picture(found: Found) -> None:
    """Draw what the width of the interval is made of."""
    steps = words.width_steps(found.result.calibration)
    width = words.width_table(found.result.calibration)
    if not steps or width is None:
        return
    steps_chart(
        [(words.WIDTH[of.source][0], of.start, of.end) for of in steps],
        title="Where the width of the interval comes from",
    )
    as_table(cells_of(width), alt=width.title)
    with st.container(key="report_small_width"):
        st.text("\n".join(width.notes))


def metric(column: DeltaGenerator, label: str, value: str, about: str) -> None:
    """Draw a number with what there is to say about it."""
    column.metric(label, value, about, delta_color="off", delta_arrow="off", border=True)


def answer(found: Found) -> str:
    """Return the rates that are not the headline."""
    estimates = found.result.calibration.estimates
    return (
        f"labels alone {percent(estimates['human_only'].net.value)}, "
        f"judge alone {percent(estimates[RAW].net.value)}"
    )


def details(found: Found, names: Mapping[str, str]) -> None:
    """Draw every estimate, and what else to know of the number."""
    _about(found.result)
    _rates(found.result)
    _reviewers(found.result, names)
    st.text(words.ELSEWHERE)
    _reservations(found.result)


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
        lines.append(sentence(off))
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
    interval_chart(
        rows,
        title="Agent success rate, net of cost",
        percents=True,
        hollow=[NAMES[RAW]],
        figures=True,
    )
    refusals = _refused(calibration.refusals, HEADLINE[result.design])
    if refusals:
        st.text("\n".join(refusals))
    st.caption(
        "The uncorrected rate has no interval: one would show the sampling of traces and not the "
        "errors of the judge."
        + (
            ""
            if calibration.headline_estimate is None
            else " The estimators below the corrected one are checks with assumptions of their own."
            " Before the cost penalty the corrected rate is "
            f"{percent_figure(calibration.headline_estimate.gross)}."
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


def _reviewers(result: JudgeCalibration, names: Mapping[str, str]) -> None:
    """Draw how far reviewers differ from the final labels."""
    effects = words.reviewer_effects({
        names.get(who, who): one for who, one in result.reviewers.items()
    })  # fmt: skip
    if effects is not None:
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
    st.markdown(f"#### Notes on this number ({len(lines)})")
    for line in lines:
        st.text(line.strip())
