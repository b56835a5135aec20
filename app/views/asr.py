"""Agent success rate: the number, how far to trust it, and what it is made of."""

import pandas as pd
import streamlit as st

from app import session
from app.components.charts import figure, interval_chart
from app.views import frame
from calibration.analyses.asr import AsrAnalysis, CostSummary, analyse_asr
from calibration.errors import CalibrationError
from calibration.records import OUTCOMES

JUDGE = "asr_judge"


def _headline(result: AsrAnalysis) -> None:
    head = result.headline
    kind = "corrected for judge error" if result.calibrated else "human labels only, not calibrated"
    number, about = st.columns([2, 3], vertical_alignment="center")
    number.metric(f"Agent success rate, {kind}", figure(head, 3), border=True)
    about.text(
        f"{100 * head.confidence_level:g} % {head.method}. {result.n_labelled:,} labelled traces, "
        f"drawn as a {result.design.get('kind', 'sample')} from {result.n_production:,} production "
        f"traces."
    )
    if head.status != "ok":
        about.text(head.status.replace("_", " ", 1))
    rows = [("human-only", result.human_only.asr), ("corrected", result.corrected)]
    if result.raw is not None:
        rows.insert(0, ("judge-raw", result.raw.asr))
    interval_chart(rows, title="Agent success rate, net of cost", hollow=["judge-raw"])
    st.caption(
        "Judge-raw takes every verdict as true; its interval carries only the sampling of traces, "
        "not the errors of the judge. Human-only uses the labelled sample alone. "
        f"Gross of cost the corrected rate is {figure(result.corrected_gross)}."
    )


def _classes(result: AsrAnalysis) -> None:
    source = "corrected" if result.calibrated else "labelled sample"
    st.subheader(f"Outcomes ({source})", anchor=False)
    interval_chart(
        list(zip(OUTCOMES, result.class_shares, strict=True)), title="Share of production traces"
    )


def _judge(result: AsrAnalysis) -> None:
    if result.judge is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(f"How far judge {result.judge_id} is off, and what would mend it:")
        st.page_link("views/judge.py", label="Judge against humans")


def _cost(result: AsrAnalysis) -> None:
    st.subheader("Cost per run", anchor=False)
    rows = [_cost_row("all", "", result.cost)]
    for workflow in result.workflows:
        limit = (
            "none set"
            if workflow.ceiling_usd is None
            else f"${workflow.ceiling_usd:.2f} a {workflow.unit}"
        )
        rows.append(_cost_row(workflow.name, limit, workflow.cost))
    st.table(pd.DataFrame(rows), hide_index=True, alt="What runs cost, by workflow")


def _cost_row(name: str, ceiling: str, cost: CostSummary) -> dict[str, str]:
    def money(x: float | None) -> str:
        return "-" if x is None else f"${x:.4f}" if x < 0.1 else f"${x:.2f}"

    over = cost.share_over_ceiling
    return {
        "workflow": name,
        "ceiling": ceiling,
        "P50": money(cost.p50),
        "P90": money(cost.p90),
        "P99": money(cost.p99),
        "mean": money(cost.mean),
        "cost known": f"{cost.n_known:,} of {cost.n:,}",
        "over ceiling": "-" if over is None else f"{100 * over:.1f} %",
    }


def _left_out(result: AsrAnalysis) -> None:
    missing = result.cost.n - result.cost.n_known
    low, high = result.human_only.asr_range
    lines = [
        (
            missing,
            f"{missing:,} runs have no known cost and carry no penalty. The labelled sample would "
            f"give {low:.3f} if those cost twice their ceiling, {high:.3f} if none went over.",
        ),
        (result.cost.n_without_ceiling, f"{result.cost.n_without_ceiling:,} runs have no ceiling."),
        (result.unlabelled, f"{result.unlabelled:,} traces of the batch are not labelled yet."),
        (result.skipped, f"{result.skipped:,} traces were skipped by everybody who saw them."),
        (result.open_disagreements, f"{result.open_disagreements:,} disagreements are open."),
        (result.exposed, f"{result.exposed:,} labels were given after seeing what others said."),
        (result.later_traces, f"{result.later_traces:,} traces came after the draw: not covered."),
    ]
    said = [text for count, text in lines if count]
    if said:
        st.subheader("What this number leaves out", anchor=False)
        for text in said:
            st.text(text)


def _page() -> None:
    store = session.require_store()
    batch_id = frame.results_batch(store, "Agent success rate")
    if batch_id is None:
        return
    judge_id = frame.choose_judge(store, JUDGE)
    try:
        with st.spinner("Resampling"):
            result = analyse_asr(store, batch_id, judge_id=judge_id)
    except CalibrationError as error:
        st.text(str(error))
        return
    _headline(result)
    _classes(result)
    _judge(result)
    _cost(result)
    _left_out(result)
    st.caption(
        f"Judge {result.judge_id or 'none'}, batch {batch_id}, taxonomy {result.taxonomy_version}, "
        f"seed {result.seed}, fingerprint {result.fingerprint[:16]}. "
        "The same on the command line: asr report"
    )


with st.container(key="page"):
    _page()
