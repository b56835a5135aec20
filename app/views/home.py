"""Home of a lead: the rate, what to do next, and how the batches are getting on."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pandas as pd
import streamlit as st

from app import frame, session
from app.components import document, trace_links
from app.components.charts import day_chart, figure, series_chart
from calibration.analyses.reviewers.progress import Lease, Progress, Remark, Results
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.analyses.sampling.planning import Plan, plan_batch
from calibration.analyses.status import (
    NextAction,
    SlowParts,
    StoreStatus,
    slow_parts,
    status_from,
)
from calibration.errors import CalibrationError
from calibration.reporting.sections.plans import enough, stop_words, with_reviewers
from calibration.reporting.sections.status import NOTHING, basis_words, rate_words, trend_words
from calibration.reporting.sections.success_rate import left_out_line, weekly_trend
from calibration.store import Store
from calibration.text import TOGETHER, counted, hours, points, sentence, shown

TITLE = "Home"
MOST_ROWS, MOST_IDS, MOST_ACTIONS, LONGEST = 200, 5, 10, 60
DRAWN, PLAN = "home_drawn", "home_plan"

PAGES = frame.SCRIPTS | {"certify": "views/certificate/page.py", "label": "views/label.py"}

# Steps of Set up by the kind of action that is done there.
SET_UP = {"import": "traces", "people": "people"}

# Pages that take the batch from their address.
WITH_BATCH = ("adjudicate", "label")


@st.cache_resource(show_spinner="Calculating the rate", max_entries=8)
def _slow(path: str, judge_id: str | None, state: tuple[object, ...], _store: Store) -> SlowParts:
    """Return what takes long; everything but the store is what it depends on."""
    return slow_parts(_store, judge_id)


@st.cache_resource(show_spinner=False, max_entries=32)
def _planned(
    path: str,
    state: tuple[object, ...],
    judge_id: str | None,
    n: int,
    wanted: int,
    overlap: float,
    _store: Store,
) -> Plan:
    """Return a plan; raises CalibrationError as `plan_batch`."""
    return plan_batch(_store, n=n, labels_wanted=wanted, overlap=overlap, judge_id=judge_id)


def _state(store: Store) -> tuple[object, ...]:
    """Return what the rate and the checks of reviewers depend on."""
    return (
        *store.result_state(),
        store.taxonomy().fingerprint,
        tuple(batch.batch_id for batch in store.batches()),
        tuple((held.reviewer_id, held.issued_at) for held in store.certificates()),
    )


# The rate


def _rate(found: StoreStatus) -> None:
    weekly = None if found.results is None else found.results.weekly
    drawn = weekly is not None and bool(weekly.weeks)
    left, right = st.columns([3, 2], gap="large") if drawn else (st.container(), None)
    if found.results is not None:
        for line in left_out_line(found.results.left_out):
            left.text(line)
    with left, st.container(key="home_sentence"):
        st.text(rate_words(found.rate))
    if found.results is None or found.rate.value is None:
        return
    with left:
        st.text(basis_words(found.results))
        st.text(trend_words(weekly))
    if right is not None and weekly is not None:
        with right:
            trend = weekly_trend(weekly)
            series_chart(trend, axis="ASR", small=True)
            st.caption(f"By week, from human labels alone; dashed: {trend.smooth_name}")


# What to do next


def _next(store: Store, actions: Sequence[NextAction], names: Mapping[str, str]) -> None:
    st.subheader("Do next", anchor="next")
    frame.said()
    if not actions:
        st.text(NOTHING)
        return
    with st.container(key="home_next", gap="small"):
        for number, action in enumerate(actions[:MOST_ACTIONS]):
            left, right = st.columns([2, 3], vertical_alignment="center")
            with left:
                _action(store, action, number, names)
            right.text(action.why)
    if len(actions) > MOST_ACTIONS:
        st.text(f"{len(actions) - MOST_ACTIONS} more come when these are done.")


def _action(store: Store, action: NextAction, number: int, names: Mapping[str, str]) -> None:
    """Draw the link or button that does it."""
    label, key, me = frame.plain(action.what), f"home_next_{number}", session.reviewer_id(store)
    if action.kind == "away" and me is not None:
        whom = action.reviewer_id or ""
        st.button(
            label, key=key, type="tertiary", on_click=_hand_over,
            args=(store, action.batch_id, whom, me, names.get(whom, whom)),
        )  # fmt: skip
    elif action.kind in ("draw", "precision"):
        st.button(label, key=key, type="tertiary", on_click=_open_plan, args=(action.n,))
    elif action.page == "overview" or (action.page == "people" and not session.is_admin(store)):
        st.text(action.what + " (ask an admin)" * (action.page == "people"))
    else:
        asked = {"batch": action.batch_id} if action.batch_id and action.page in WITH_BATCH else {}
        if action.page == "start":
            asked = {"step": SET_UP[action.kind]}
        st.page_link(PAGES[action.page], label=label, query_params=asked, width="content")


def _open_plan(n: int) -> None:
    st.session_state[PLAN] = True
    st.session_state["plan_n"] = max(2, n)


def _hand_over(store: Store, batch_id: str, reviewer_id: str, by: str, name: str) -> None:
    def freed() -> str:
        store.release_leases(batch_id=batch_id, reviewer_id=reviewer_id, by=by)
        return f"The traces that {name} had claimed are released to the others."

    frame.attempt(freed)


# How a batch is getting on


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


def _precision(found: StoreStatus) -> None:
    results, half = found.results, found.rate.half_width
    answer = "not known yet" if half is None else points(half)
    with st.expander(f"How precise is the rate? {answer[0].upper()}{answer[1:]}"):
        if results is None:
            st.text(rate_words(found.rate))
            return
        if results.headline.value is not None:
            st.text(f"Half the width of its interval: {enough(results)}")
            st.text(stop_words(results.stopping))
            st.caption("The number of further traces is an estimate from the scores so far.")
        alpha, agreed = results.alpha, results.agreement
        if alpha.status != "ok" or agreed is None:
            st.text("Agreement: " + alpha.status.removeprefix("not_estimable: "))
        else:
            st.text(
                f"Agreement: Krippendorff's alpha is {figure(alpha, 2)} on "
                f"{counted(agreed.n_items, 'trace')} with two or more labels."
            )


def _people(progress: Progress, names: Mapping[str, str]) -> None:
    people = progress.reviewers
    who = (
        "nobody yet" if not people else "1 person" if len(people) == 1 else f"{len(people)} people"
    )
    answer = f"{who}, {counted(progress.labels, 'label')}" if people else who
    with st.expander(f"Who labelled what: {answer}"):
        if not people:
            st.text("Reviewers start on the Label page.")
            return
        now = datetime.now(UTC).replace(tzinfo=None)
        st.table(
            pd.DataFrame(
                {
                    "reviewer": [names[r.reviewer_id] for r in people],
                    "labels": [f"{r.labels:,}" for r in people],
                    "skips": [f"{r.skips:,}" for r in people],
                    "minutes a label (median)": [
                        "-" if r.median_seconds is None else f"{r.median_seconds / 60:.1f}"
                        for r in people
                    ],
                    "last active": [
                        "-" if r.last_active is None else _ago(r.last_active, now) for r in people
                    ],
                    "in progress": [f"{r.holds:,}" for r in people],
                }
            ),
            hide_index=True,
            alt="What each reviewer has done in this batch",
        )
        if progress.seconds_per_label is not None:
            st.caption(f"A label takes {progress.seconds_per_label:.0f} s of active time (median).")
        elif progress.labels_left:
            st.caption("The time left is known once the first label has been timed on the desk.")
        day_chart(progress.days, title="Labels a day (UTC)")


def _ago(at: datetime, now: datetime) -> str:
    """Say how long ago something was; the store keeps UTC."""
    minutes = int((now - at).total_seconds() // 60)
    if minutes < 1:
        return "now"
    if minutes < 60:
        return f"{minutes} min ago"
    return f"{minutes // 60} h ago" if minutes < 48 * 60 else f"{at:%d %b %Y}"


def _in_progress(store: Store, progress: Progress, names: Mapping[str, str]) -> None:
    held: dict[str, list[Lease]] = {}
    for lease in progress.leases:
        held.setdefault(lease.reviewer_id, []).append(lease)
    # Two people may have claimed the same trace.
    n = len({lease.trace_id for lease in progress.leases})
    answer = counted(n, "trace") if n else "none"
    with st.expander(f"In progress: {answer}"):
        if not held:
            st.text(
                "Nobody has claimed a trace. A reviewer on the Label page claims the next ones."
            )
            return
        me = session.reviewer_id(store)
        for reviewer_id, leases in held.items():
            ids = ", ".join(shown(lease.trace_id, most=LONGEST) for lease in leases[:MOST_IDS])
            more = len(leases) - MOST_IDS
            with st.container(horizontal=True, vertical_alignment="center"):
                st.text(
                    f"{names[reviewer_id]}: {ids}{f' and {more} more' if more > 0 else ''}, until "
                    f"{leases[-1].expires_at:%H:%M} UTC"
                )
                if me is not None and me != reviewer_id:
                    st.button(
                        f"Release the traces of {frame.plain(names[reviewer_id])}",
                        key=f"hand_over_{reviewer_id}",
                        on_click=_hand_over,
                        args=(store, progress.batch_id, reviewer_id, me, names[reviewer_id]),
                    )
        st.caption(
            "Released traces go to the others at once. Drafts stay, and a late label counts."
            if me is not None
            else "If somebody is away, a lead can release the traces that they have claimed."
        )


def _remarks(what: str, remarks: tuple[Remark, ...], names: Mapping[str, str]) -> None:
    n = len({remark.trace_id for remark in remarks})
    with st.expander(f"{what}: {counted(n, 'trace') if n else 'none'}"):
        if not remarks:
            st.text(f"No trace of this batch is {what.lower()}.")
            return
        trace_links.table(
            pd.DataFrame(
                [
                    {"trace": r.trace_id, "reviewer": names[r.reviewer_id], "reason": r.reason}
                    for r in remarks[-MOST_ROWS:]
                ]
            ),
            key=f"home_{what}", page="overview", title=f"{what} traces with the reasons given",
        )  # fmt: skip
        if len(remarks) > MOST_ROWS:
            st.caption(f"The last {MOST_ROWS} are shown.")


# The next batch


def _planner(store: Store, judge_id: str | None, *, opened: bool) -> None:
    state = st.session_state
    # The heading has the answer to what the form asks, and stands above it.
    n, wanted = int(state.get("plan_n", 100)), int(state.get("plan_labels", 2))
    overlap = int(state.get("plan_overlap", 100)) / 100
    plan, refusal = None, ""
    try:
        plan = _planned(str(store.path), _state(store), judge_id, n, wanted, overlap, store)
    except CalibrationError as error:
        refusal = str(error)
    answer = "" if plan is None else f": {counted(n, 'trace')}, {points(_best(plan))} expected"
    state.setdefault(PLAN, opened)
    with st.expander(f"Plan a batch{answer}", key=PLAN, on_change="rerun"):
        with st.form("plan", border=False):
            left, middle, right = st.columns(3, vertical_alignment="bottom")
            left.number_input("Traces", min_value=2, value=100, step=10, key="plan_n")
            middle.number_input(
                "Labels per trace", min_value=1, max_value=20, value=2, key="plan_labels"
            )
            right.number_input(
                "for this share of the traces (%)", min_value=0, max_value=100, value=100,
                key="plan_overlap",
            )  # fmt: skip
            left, middle, right = st.columns(3, vertical_alignment="bottom")
            seed = left.number_input("Seed of the draw", min_value=0, value=1, key="plan_seed")
            evenly = middle.checkbox(
                "Give every workflow its share of the draw", value=True, key="plan_evenly"
            )
            right.form_submit_button("Plan", key="plan_submit")
        if plan is None:
            st.text(sentence(refusal))
            return
        _plan(plan)
        _draw(store, plan, int(seed), evenly)


def _best(plan: Plan) -> float:
    return plan.human_only if plan.corrected is None else plan.corrected


def _plan(plan: Plan) -> None:
    cells = [
        ("Rate from labels alone", points(plan.human_only)),
        ("Corrected rate", "no judge" if plan.corrected is None else points(plan.corrected)),
        ("Labels to make", f"{plan.n_labels:,}"),
        ("Reviewer time", hours(plan.hours)),
    ]
    for column, (label, value) in zip(st.columns(len(cells)), cells, strict=True):
        column.metric(label, value, border=True)
    if plan.with_reviewers:
        document.table(with_reviewers(plan), "plan_reviewers")
    st.text("\n".join(f"\u2022 {sentence(note)}" for note in plan.notes))
    st.caption(f"Half the width of the {100 * plan.confidence_level:g} % interval, expected.")


def _draw(store: Store, plan: Plan, seed: int, evenly: bool) -> None:
    """Offer a lead to draw what was planned, and everybody the command that does it."""
    words = f"sample --n {plan.n} --seed {seed} --labels-wanted {plan.labels_wanted}"
    if plan.labels_wanted > 1 and plan.overlap < 1:
        words += f" --overlap {plan.overlap:g}"
    if evenly:
        words += " --by-workflow"
    with st.container(horizontal=True, vertical_alignment="center"):
        if session.chosen_reviewer(store) is not None:
            st.button(
                f"Draw {plan.n} traces now",
                key="draw",
                type="primary",
                on_click=_draw_now,
                args=(store, plan, seed, evenly),
            )
        with st.popover("On the command line", type="tertiary"):
            st.code(session.command(words), language=None, wrap_lines=True)
    if message := st.session_state.pop(DRAWN, ""):
        st.text(message)


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


def _page() -> None:
    store = session.require_store()
    st.header(TITLE, anchor=False)
    judge_id = frame.choose_judge(store)
    found = status_from(store, _slow(str(store.path), judge_id, _state(store), store))
    _rate(found)
    names = session.reviewer_names(store)
    _next(store, found.next, names)
    if found.progress:
        progress = _choose_batch(found.progress)
        frame.called(store, progress.batch_id)
        # Agreement is of the batches of the rate.
        rated = (found.rated or "").split(TOGETHER)
        _figures(progress, found.results if progress.batch_id in rated else None)
        _precision(found)
        _planner(store, judge_id, opened=False)
        _people(progress, names)
        _in_progress(store, progress, names)
        _remarks("Flagged", progress.flags, names)
        _remarks("Skipped", progress.skips, names)
    elif found.n_traces:
        _planner(store, judge_id, opened=True)


def _choose_batch(progress: Sequence[Progress]) -> Progress:
    """Let the lead choose whose progress is shown; the newest batch unless another is chosen."""
    by_id = {of.batch_id: of for of in progress}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.subheader("Progress", anchor=False)
        if len(by_id) == 1:
            return progress[0]
        chosen: str = st.selectbox(
            "Batch", list(by_id), key=frame.BATCH, width=260, bind="query-params"
        )
    return by_id[chosen]


with st.container(key="page"):
    _page()
