"""Agent success rate: the number, what to do with it, the weeks, and how it was made."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import partial

import streamlit as st

from app import frame, session
from app.components import document
from app.components.charts import interval_chart, limits_in_percent, points
from app.components.file_import import label_file, told
from app.components.sections import folded, verdict
from app.components.tables import ASR
from app.views.success_rate import data, work
from app.views.success_rate.data import Asked, Found
from calibration.analyses.evidence.from_store import labelled_traces, source_judges
from calibration.analyses.success_rate.from_store import ReportChoices
from calibration.errors import CalibrationError
from calibration.records import SOURCE_JUDGE
from calibration.reporting.document import Block, Section, Trend, percent
from calibration.reporting.sections.success_rate import QUEUE, WEEKS, money
from calibration.store import Store
from calibration.text import TOGETHER, sentence

TITLE = "Agent success rate"
WEEK, MONTH, ALL, DAYS = "Last week", "Last 4 weeks", "All", "From - to"
EVERY = "All workflows"
STEPS = {"batch": "Draw a batch", "label": "Start labelling"}

FILES = (("HTML", "html", "text/html"), ("Markdown", "md", "text/markdown"),
         ("JSON", "json", "application/json"))  # fmt: skip


def _window(choices: ReportChoices) -> tuple[str | None, str | None]:
    """Let the window be chosen; return its first and last day or week."""
    if choices.first is None or choices.last is None:
        st.text("The traces have no start times, so there are no weeks to choose from.")
        return None, None
    kind = st.segmented_control(
        "Window (by start, UTC)", [ALL, MONTH, WEEK, DAYS], key=ASR.key("window"), default=ALL,
        required=True, bind="query-params",
    )  # fmt: skip
    if kind in (MONTH, WEEK):
        return choices.last_weeks(4 if kind == MONTH else 1) or (None, None)
    if kind == DAYS:
        return _days(choices.first, choices.last)
    return None, None


def _days(first: date, last: date) -> tuple[str | None, str | None]:
    left, right = st.columns(2)
    since = left.date_input("From", first, key=ASR.key("from"), bind="query-params")
    until = right.date_input("To", last, key=ASR.key("to"), bind="query-params")
    return since.isoformat(), until.isoformat()


def _choose(store: Store, batch_id: str, judges: Sequence[str] = ()) -> Asked:
    """Let the report be narrowed; `judges` are those whose outcomes are taken as given."""
    state = (*store.result_state(), store.taxonomy().fingerprint)
    choices = data.choices((str(store.path), state), batch_id, store)
    judge_id = _source(judges) if judges else frame.choose_judge(store)
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        since, until = _window(choices)
    workflow = EVERY
    if len(choices.workflows) > 1:
        workflow = right.selectbox(
            "Workflow",
            [EVERY, *choices.workflows],
            key=ASR.key("workflow"),
            bind="query-params",
        )
    return Asked(
        path=str(store.path),
        batch_id=batch_id,
        judge_id=judge_id,
        since=since,
        until=until,
        workflow=None if workflow == EVERY else workflow,
        models=True,
        state=state,
    )


def _source(judges: Sequence[str]) -> str:
    """Let the source of the outcomes be chosen where runs came from several."""
    if len(judges) == 1:
        return judges[0]
    chosen: str = st.selectbox(
        "Outcomes", [SOURCE_JUDGE, *judges], key=ASR.key("source"), format_func=frame.judge_name,
        bind="query-params",
    )  # fmt: skip
    return chosen


def _no_labels(store: Store, batch_id: str) -> None:
    _nothing(f"batch {batch_id!r} has no labels yet")
    if session.is_admin(store):
        label_file(store, batch_id)
    else:
        st.text("Labels that were made elsewhere can be imported here by an admin.")


def _nothing(reason: str, step: str = "label") -> None:
    """Say why there is no rate, and where the next step is taken."""
    st.subheader("No rate yet", anchor=False)
    st.text(sentence(reason))
    st.page_link("views/start.py", label=STEPS[step], query_params={"step": step})


def _headline(found: Found) -> None:
    report, head = found.report, found.document.headline
    document.read_first(found.document)
    if head is None:
        return
    kind = sentence(report.kind)
    verdict(ASR.key("verdict"), head.sentence, f"{kind} {report.target}")
    number, *others = st.columns(4)
    half = report.asr.half_width
    number.metric(
        f"{TITLE}, as given" if report.given_by else TITLE, percent(report.asr.value),
        f"n = {report.asr.n:,}" if half is None
        else f"\u00b1 {100 * half:.1f} points, n = {report.asr.n:,}",
        delta_color="off", delta_arrow="off", border=True, height="stretch",
    )  # fmt: skip
    for column, (name, value, about) in zip(others, _beside(found), strict=False):
        column.metric(
            name, value, about, delta_color="off", delta_arrow="off", border=True, height="stretch"
        )


def _beside(found: Found) -> Iterator[tuple[str, str, str]]:
    """Yield at most three further figures; a change that may be none is not a number."""
    report = found.report
    if report.change is not None:
        moved = report.change.asr.estimate
        clear = moved.interval is not None and not moved.interval[0] <= 0 <= moved.interval[1]
        about = f"{points(moved)}, n = {moved.n:,}"
        value = points(moved).split(" [")[0] + " points" if clear else "not clear"
        yield f"Change, {report.change.later}", value, about if moved.ok else "too few labels"
    yield "Pass rate", percent(report.pass_rate.value), limits_in_percent(report.pass_rate)
    cost = report.cost.per_success
    if cost.value is not None:
        main, _, limits = money(cost).partition(" [")
        limits = limits.removesuffix("]").replace(", ", " to ")
        yield "Cost of a completed run", main, f"95 %: {limits}" if limits else "no interval"


def _save(store: Store, found: Found) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text("Save this report:")
        for name, kind, mime in FILES:
            st.download_button(
                name, data=partial(_written, store, found, session.reviewer_id(store), kind),
                file_name=f"asr-report.{kind}", mime=mime, on_click="ignore", key=ASR.key(kind),
            )  # fmt: skip


def _next_given(store: Store, found: Found, batch_id: str | None) -> None:
    """Draw what makes outcomes that are taken as given a number that can be defended."""
    st.subheader("Do next", anchor="steps")
    step = "batch" if batch_id is None else "label"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(
            "No reviewer has checked these outcomes. Label a random sample of the runs, and the "
            "rate is corrected for their errors:"
        )
        st.page_link("views/start.py", label=STEPS[step], query_params={"step": step})
    _save(store, found)
    _review(found)
    if batch_id is not None and session.is_admin(store):
        label_file(store, batch_id)


def _next(store: Store, found: Found) -> None:
    """Draw what to do with the number."""
    st.subheader("Do next", anchor="steps")
    _save(store, found)
    judge_id = found.asked.judge_id
    if judge_id is None:
        st.text(
            "No judge has given a verdict: the rate is that of the labels alone. Import verdicts "
            "on all traces, and the rate is corrected for judge error, with a shorter interval."
        )
        st.page_link("views/judge/page.py", label="Import verdicts")
    else:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"See how far {frame.judge_name(judge_id)} is off, and how to improve it:")
            st.page_link("views/judge/page.py", label="Judge")
    _review(found)


def _review(found: Found) -> None:
    """Offer the runs that somebody has to look at."""
    waiting = sum(item.n for item in found.report.work_lists)
    runs = "labelled runs" if found.made is not None else "runs"
    if waiting:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"Review the {waiting:,} {runs} that somebody has to look at:")
            st.button("Open the review queue", key=ASR.key("open"), on_click=_open_queue)


def _open_queue() -> None:
    st.session_state[ASR.listing] = True


def _picture(found: Found) -> None:
    """Draw the weeks, or the classes where no run says when it was started."""
    for section in found.document.sections:
        for block in section.blocks:
            if isinstance(block, Trend):
                document.trend(block, ASR.key("weeks_table"))
                return
    st.caption("Share of the runs by outcome")
    outcomes = [(c.title, c.share) for c in found.report.classes]
    interval_chart(outcomes, title="share of the runs", figures=True, percents=True)


def _written(store: Store, found: Found, who: str | None, kind: str) -> str:
    """Return the report as a file, after recording the labels that it shows."""
    if who is not None:
        listed = [item.trace_id for of in found.report.work_lists for item in of.first]
        store.record_exposure(who, listed, "verdicts" if found.made is None else "labels")
    return found.file(kind)


@st.fragment
def _sections(store: Store, found: Found) -> None:
    """Draw the sections: a fragment, so that opening one draws nothing else again."""
    for number, section in enumerate(found.document.sections):
        if section.title == QUEUE:
            folded(
                ASR.listing, section.title, section.answer, partial(_work, store, found, section)
            )
            continue
        if section.title == WEEKS:
            section = replace(section, blocks=_without_trend(section.blocks))
        document.section(section, key=ASR.key(f"s{number}"))
    folded(ASR.key("command"), "On the command line", "", partial(_command, found))


def _without_trend(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Leave out what is the picture of the page."""
    return tuple(block for block in blocks if not isinstance(block, Trend))


def _work(store: Store, found: Found, section: Section) -> None:
    document.blocks(section.blocks[:1], key="work")
    if found.made is None:
        work.given(store, found)
    else:
        work.show(store, found, found.made, session.reviewer_names(store))


def _command(found: Found) -> None:
    st.text("The same report, with --html FILE, --markdown or --json:")
    st.code(session.command(found.asked.words), language=None, wrap_lines=True)


def _draw(store: Store, found: Found, next_steps: Callable[[Store, Found], None]) -> None:
    _headline(found)
    for warning in found.report.warnings:
        with st.container(key=f"report_warning_{abs(hash(warning))}"):
            st.text(warning)
    next_steps(store, found)
    _picture(found)
    _sections(store, found)


def _given(store: Store, judges: Sequence[str]) -> None:
    """Draw the rate by the outcomes that came with the runs: nobody has labelled one yet."""
    st.header(TITLE, anchor=False)
    batches = [b.batch_id for b in store.batches() if b.purpose == "production" and not b.is_audit]
    batch_id = batches[0] if batches else None
    try:
        found = data.reported(_choose(store, "", judges), store)
    except CalibrationError as error:
        _nothing(str(error), "batch" if batch_id is None else "label")
        return
    _draw(store, found, partial(_next_given, batch_id=batch_id))


def _page() -> None:
    store = session.require_store()
    told()
    judges = source_judges(store)
    if judges and not labelled_traces(store):
        _given(store, judges)
        return
    batch_id = frame.results_batch(store, TITLE, together=True, samples=True)
    if batch_id is None:
        return
    if all(store.label_frame(name).empty for name in batch_id.split(TOGETHER)):
        _no_labels(store, batch_id)
        return
    try:
        found = data.reported(_choose(store, batch_id), store)
    except CalibrationError as error:
        _nothing(str(error))
        return
    _draw(store, found, _next)


with st.container(key="page"):
    _page()
