"""Overview: how the batch is getting on, when it is enough, and what a next one would give."""

from datetime import UTC, datetime

import pandas as pd
import streamlit as st

from app import frame, session
from app.components import document
from app.components.charts import day_chart, figure
from calibration.analyses.evidence.from_store import TOGETHER, rated_with
from calibration.analyses.reviewers.progress import (
    Lease,
    Progress,
    Remark,
    Results,
    batch_progress,
    batch_results,
)
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.analyses.sampling.planning import Plan, plan_batch
from calibration.errors import CalibrationError
from calibration.records import SOURCE_JUDGE
from calibration.reporting.sections.plans import (
    enough,
    half_width,
    hours,
    stop_words,
    with_reviewers,
)
from calibration.store import Store

TITLE = "Overview"
MOST_ROWS = 200
JUDGE = "overview_judge"
HANDED = "overview_handed_over"
DRAWN = "overview_drawn"


def _ago(at: datetime, now: datetime) -> str:
    """Say how long ago something was; the store keeps UTC."""
    minutes = int((now - at).total_seconds() // 60)
    if minutes < 1:
        return "now"
    if minutes < 60:
        return f"{minutes} min ago"
    return f"{minutes // 60} h ago" if minutes < 48 * 60 else f"{at:%d %b %Y}"


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def _figures(progress: Progress, results: Results | None) -> None:
    cells = [
        ("Traces done", f"{progress.n_items - progress.items_open:,} of {progress.n_items:,}"),
        ("Labels left", f"{progress.labels_left:,}"),
        ("Reviewer time left", "none" if not progress.labels_left else hours(progress.hours_left)),
    ]
    if results is not None:
        alpha = results.alpha
        # Rounding may leave a minus before zero.
        value = "too few" if alpha.value is None else f"{round(alpha.value, 2) + 0.0:.2f}"
        cells.append(("Agreement (alpha)", value))
    for column, (label, value) in zip(st.columns(len(cells)), cells, strict=True):
        column.metric(label, value, border=True)
    if progress.seconds_per_label is None and progress.labels_left:
        st.caption("The time left is known once the first label has been timed on the desk.")
    elif progress.seconds_per_label is not None:
        st.caption(
            f"A label takes {progress.seconds_per_label:.0f} s of active time (median). "
            "The time left is for all reviewers together."
        )
    if results is not None:
        _agreement(results)


def _agreement(results: Results) -> None:
    alpha, agreed = results.alpha, results.agreement
    if alpha.status != "ok" or agreed is None:
        st.text("Agreement: " + alpha.status.replace("_", " ", 1))
    else:
        st.caption(
            f"Krippendorff's alpha {figure(alpha, 2)} on {agreed.n_items:,} traces with two or "
            "more labels; more on the Agreement page."
        )


def _enough(results: Results, rated: str) -> None:
    st.subheader("When it is enough", anchor=False)
    if len(together := rated.split(TOGETHER)) > 1:
        st.text(f"All random batches together: {', '.join(together)}.")
    head = results.headline
    if head.value is None:
        st.text(head.status.replace("_", " ", 1))
        return
    kind = "corrected for judge error" if results.calibrated else "from human labels only"
    st.text(f"Agent success rate {kind}: {figure(head)}")
    st.text(f"Half-width of its interval: {enough(results)}")
    st.text(stop_words(results.stopping))
    if results.further:
        st.caption(
            "More means further labelled traces, this batch first; expected from how scores have "
            "varied so far."
        )


def _people(progress: Progress, names: dict[str, str]) -> None:
    st.subheader("Who labelled what", anchor=False)
    if not progress.reviewers:
        st.text("Nobody has opened this batch yet. Reviewers start on the Label page.")
        return
    now = _now()
    st.table(
        pd.DataFrame(
            {
                "reviewer": [names[r.reviewer_id] for r in progress.reviewers],
                "labels": [f"{r.labels:,}" for r in progress.reviewers],
                "skips": [f"{r.skips:,}" for r in progress.reviewers],
                "minutes a label (median)": [
                    "-" if r.median_seconds is None else f"{r.median_seconds / 60:.1f}"
                    for r in progress.reviewers
                ],
                "last active": [
                    "-" if r.last_active is None else _ago(r.last_active, now)
                    for r in progress.reviewers
                ],
                "holds now": [f"{r.holds:,}" for r in progress.reviewers],
            }
        ),
        hide_index=True,
        alt="What each reviewer has done in this batch",
    )
    day_chart(progress.days, title="Labels a day (UTC)")


def _hand_over(store: Store, batch_id: str, reviewer_id: str, by: str) -> None:
    # Session state first, the store last: Streamlit may abandon a callback at session state.
    st.session_state[HANDED] = reviewer_id
    store.release_leases(batch_id=batch_id, reviewer_id=reviewer_id, by=by)


def _leases(store: Store, progress: Progress, names: dict[str, str]) -> None:
    st.subheader(f"Held right now ({len(progress.leases)})", anchor=False)
    handed = st.session_state.pop(HANDED, None)
    if handed is not None:
        st.text(f"What {names.get(handed, handed)} held is free for the others now.")
    if not progress.leases:
        st.text("Nobody holds a trace; whoever opens the Label page gets the next ones.")
        return
    held: dict[str, list[Lease]] = {}
    for lease in progress.leases:
        held.setdefault(lease.reviewer_id, []).append(lease)
    now = _now()
    me = session.chosen_reviewer(store)
    for reviewer_id, leases in held.items():
        minutes = max(0, int((leases[-1].expires_at - now).total_seconds() // 60))
        ids = ", ".join(lease.trace_id for lease in leases[:5])
        more = f" and {len(leases) - 5} more" if len(leases) > 5 else ""
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(
                f"{names[reviewer_id]}: {ids}{more}, until {leases[-1].expires_at:%H:%M} UTC "
                f"({minutes} min)"
            )
            if me is not None and me.reviewer_id != reviewer_id:
                st.button(
                    f"Hand over from {frame.plain(names[reviewer_id])}",
                    key=f"hand_over_{reviewer_id}",
                    on_click=_hand_over,
                    args=(store, progress.batch_id, reviewer_id, me.reviewer_id),
                )
    if me is None:
        st.caption(
            "A lead can hand over what somebody who is away holds. A lead is added with: "
            f"{session.command('reviewer NAME --role lead')}"
        )
    else:
        st.caption(
            "Handing over frees traces for the others at once. Drafts stay, and a label that "
            "comes late is kept."
        )


def _remarks(what: str, remarks: tuple[Remark, ...], names: dict[str, str]) -> None:
    st.subheader(f"{what} ({len(remarks)})", anchor=False)
    if not remarks:
        st.text(f"Nothing was {what.lower()}.")
        return
    st.dataframe(
        pd.DataFrame(
            [
                {"trace": r.trace_id, "reviewer": names[r.reviewer_id], "reason": r.reason}
                for r in remarks[-MOST_ROWS:]
            ]
        ),
        hide_index=True,
        alt=f"{what} traces with the reasons given",
    )
    if len(remarks) > MOST_ROWS:
        st.caption(f"The last {MOST_ROWS} are shown.")


def _choose_judge(store: Store) -> str | None:
    """Return the judge, chosen where there are several that have nothing to do with each other."""
    known = [str(j) for j in store.judge_frame()["judge_id"]]
    if all(j.startswith(SOURCE_JUDGE) for j in known):
        return SOURCE_JUDGE if known else None
    if len(known) == 1:
        return known[0]
    chosen: str = st.selectbox("Judge", known, key=JUDGE)
    return chosen


def _planner(store: Store, judge_id: str | None) -> None:
    st.subheader("Plan a batch", anchor=False)
    with st.form("plan", border=True):
        left, middle, right = st.columns(3, vertical_alignment="bottom")
        n = left.number_input("Traces", min_value=2, value=100, step=10, key="plan_n")
        wanted = middle.number_input(
            "Labels a trace", min_value=1, max_value=20, value=2, key="plan_labels"
        )
        overlap = right.number_input(
            "on this share of them (%)", min_value=0, max_value=100, value=100, key="plan_overlap"
        )
        left, right = st.columns([1, 2], vertical_alignment="bottom")
        seed = left.number_input("Seed of the draw", min_value=0, value=1, key="plan_seed")
        evenly = right.checkbox(
            "Give every workflow its share of the draw", value=True, key="plan_evenly"
        )
        st.form_submit_button("Plan", key="plan_submit")
    try:
        plan = plan_batch(
            store, n=int(n), labels_wanted=int(wanted), overlap=overlap / 100, judge_id=judge_id
        )
    except CalibrationError as error:
        st.text(str(error))
        return
    _plan(plan)
    _draw(store, plan, int(seed), evenly)


def _draw(store: Store, plan: Plan, seed: int, evenly: bool) -> None:
    """Offer a lead to draw what was planned, and everybody the command that does it."""
    me = session.chosen_reviewer(store)
    if me is not None:
        st.button(
            f"Draw {plan.n} traces now",
            key="draw",
            on_click=_draw_now,
            args=(store, plan, seed, evenly),
        )
    if message := st.session_state.pop(DRAWN, ""):
        st.text(message)
    words = f"sample --n {plan.n} --seed {seed} --labels-wanted {plan.labels_wanted}"
    if plan.labels_wanted > 1 and plan.overlap < 1:
        words += f" --overlap {plan.overlap:g}"
    if evenly:
        words += " --by-workflow"
    st.caption("The same on the command line:")
    st.code(session.command(words), language=None, wrap_lines=True)


def _draw_now(store: Store, plan: Plan, seed: int, evenly: bool) -> None:
    # Asked for twice, the draw is stored once; if this run is abandoned only the sentence is lost.
    try:
        batch = draw_batch(
            store,
            SamplingDesign(
                seed=seed, labels_wanted=plan.labels_wanted, overlap=plan.overlap, once=True
            ),
            n=plan.n,
            by_workflow=evenly,
        )
    except CalibrationError as error:
        st.session_state[DRAWN] = str(error)
    else:
        st.session_state[DRAWN] = f"{batch.batch_id} is drawn; reviewers find it on the Label page."


def _plan(plan: Plan) -> None:
    corrected = "no judge" if plan.corrected is None else half_width(plan.corrected)
    cells = [
        ("Human-only rate", half_width(plan.human_only)),
        ("Corrected rate", corrected),
        ("Labels to make", f"{plan.n_labels:,}"),
        ("Reviewer time", hours(plan.hours)),
    ]
    for column, (label, value) in zip(st.columns(len(cells)), cells, strict=True):
        column.metric(label, value, border=True)
    if plan.with_reviewers:
        document.table(with_reviewers(plan), "plan_reviewers")
    st.text("\n".join(f"- {note}." for note in plan.notes))
    st.caption(f"Expected half-widths at {100 * plan.confidence_level:g} %.")


def _page() -> None:
    store = session.require_store()
    batches = [b.batch_id for b in store.batches() if b.purpose == "production"]
    if not batches:
        frame.no_batch(TITLE)
        if not store.trace_frame().empty:
            _planner(store, _choose_judge(store))
        return
    st.header(TITLE, anchor=False)
    batch_id = batches[0]
    if len(batches) > 1:
        batch_id = st.selectbox("Batch", batches, key=f"batch of {TITLE}")
    names = {r.reviewer_id: r.name for r in store.reviewers()}
    progress = batch_progress(store, batch_id)
    try:
        judge_id = _choose_judge(store)
        rated = rated_with(store, batch_id)
        results = batch_results(store, rated, judge_id=judge_id)
    except CalibrationError as error:
        _figures(progress, None)
        st.text(str(error))
        return
    _figures(progress, results)
    _enough(results, rated)
    _people(progress, names)
    _leases(store, progress, names)
    _remarks("Flagged", progress.flags, names)
    _remarks("Skipped", progress.skips, names)
    _planner(store, judge_id)


with st.container(key="page"):
    _page()
