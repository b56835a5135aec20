"""Agent success rate: the number, how far to trust it, what moved, and whose work is next."""

from datetime import date
from functools import partial

import streamlit as st

from app import frame, session
from app.components import document
from app.components.charts import figure
from app.components.tables import ASR
from app.views.success_rate import data, work
from app.views.success_rate.data import Asked, Found
from calibration.analyses.evidence.from_store import TOGETHER
from calibration.analyses.success_rate.from_store import ReportChoices
from calibration.errors import CalibrationError
from calibration.reporting.document import Section
from calibration.store import Store

TITLE = "Agent success rate"
WEEK, MONTH, ALL, DAYS = "Last week", "Last 4 weeks", "All", "From - to"
EVERY = "All workflows"
WORK = "Work lists"

FILES = (("HTML", "html", "text/html"), ("Markdown", "md", "text/markdown"),
         ("JSON", "json", "application/json"))  # fmt: skip


def _window(choices: ReportChoices) -> tuple[str | None, str | None]:
    """Let the window be chosen; return its first and last day or week."""
    if choices.first is None or choices.last is None:
        st.text("No trace says when it was started, so there are no weeks to choose from.")
        return None, None
    kind = st.segmented_control(
        "Window (by start, UTC)", [ALL, MONTH, WEEK, DAYS], key=ASR.key("window"), default=ALL,
        required=True,
    )  # fmt: skip
    if kind in (MONTH, WEEK):
        return choices.last_weeks(4 if kind == MONTH else 1) or (None, None)
    if kind == DAYS:
        return _days(choices.first, choices.last)
    return None, None


def _days(first: date, last: date) -> tuple[str | None, str | None]:
    left, right = st.columns(2)
    since = left.date_input("From", first, key=ASR.key("from"))
    until = right.date_input("To", last, key=ASR.key("to"))
    return since.isoformat(), until.isoformat()


def _choose(store: Store, batch_id: str) -> Asked:
    state = (*store.result_state(), store.taxonomy().fingerprint)
    choices = data.choices((str(store.path), batch_id, *state), batch_id, store)
    judge_id = frame.choose_judge(store, ASR.key("judge"))
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        since, until = _window(choices)
    workflow = EVERY
    if len(choices.workflows) > 1:
        workflow = right.selectbox("Workflow", [EVERY, *choices.workflows], key=ASR.key("workflow"))
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


def _no_labels(batch_id: str) -> None:
    _nothing(f"batch {batch_id!r} has no labels yet; label it on the Label page")
    st.text("Or bring in labels that were made elsewhere (trace_id, reviewer, outcome):")
    st.code(session.command("labels import FILE"), language=None, wrap_lines=True)


def _nothing(reason: str) -> None:
    """Say why there is no rate, and where the next step is taken."""
    st.subheader("No rate yet", anchor=False)
    st.text(f"{reason[0].upper()}{reason[1:]}.")
    with st.container(horizontal=True):
        st.page_link("views/label.py", label="Go to the Label page")
        st.page_link("views/overview.py", label="Go to the Overview, to draw a batch")


def _headline(found: Found) -> None:
    report, head = found.made.report, found.document.headline
    if head is None:
        return
    with st.container(key=ASR.key("sentence")):
        st.text(head.sentence)
    number, about = st.columns([2, 3], vertical_alignment="center")
    half = (
        f"{head.half_width}, n = {report.asr.n:,}" if head.half_width else f"n = {report.asr.n:,}"
    )
    number.metric(
        f"{TITLE}, {report.kind}", figure(report.asr), half, delta_color="off", delta_arrow="off",
        border=True,
    )  # fmt: skip
    with about:
        st.text(report.target)
        st.text(f"{head.how}. {report.origin.sampling}.")
    with st.container(horizontal=True, key=ASR.key("beside")):
        for name, value in head.beside:
            main, bracket, limits = value.removesuffix(" +").partition(" [")
            st.metric(
                name, main, (bracket.strip() + limits or "no interval")
                + (", see below" if value.endswith("+") else ""),
                delta_color="off", delta_arrow="off", border=True, height="stretch",
            )  # fmt: skip


def _judge(store: Store, found: Found) -> None:
    judge_id = found.asked.judge_id
    if judge_id is None:
        st.text(
            "No judge has given a verdict: the rate rests on the labels alone. With verdicts on "
            "all traces it is corrected for judge error, and its interval gets shorter:"
        )
        st.code(session.command("verdicts FILE --judge NAME"), language=None, wrap_lines=True)
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(f"How far judge {judge_id} is off, and what would mend it:")
        st.page_link("views/judge/page.py", label="Judge against humans")


def _files(store: Store, found: Found) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text("This report as a file:")
        for name, kind, mime in FILES:
            st.download_button(
                name, data=partial(_written, store, found, session.reviewer_id(store), kind),
                file_name=f"asr-report.{kind}", mime=mime, on_click="ignore", key=ASR.key(kind),
            )  # fmt: skip


def _written(store: Store, found: Found, who: str | None, kind: str) -> str:
    """Return the report as a file, after recording the labels that it shows."""
    if who is not None:
        listed = [item.trace_id for of in found.made.report.work_lists for item in of.first]
        store.record_exposure(who, listed, "labels")
    return found.file(kind)


@st.fragment
def _work(store: Store, found: Found, section: Section) -> None:
    """Draw the work lists: a fragment, so that opening a trace draws nothing else again."""
    st.subheader(section.title, anchor="traces")
    document.blocks(section.blocks[:1], key="work")
    work.show(store, found, session.reviewer_names(store))


def _page() -> None:
    store = session.require_store()
    batch_id = frame.results_batch(store, TITLE, together=True)
    if batch_id is None:
        return
    if all(store.label_frame(name).empty for name in batch_id.split(TOGETHER)):
        _no_labels(batch_id)
        return
    try:
        found = data.reported(_choose(store, batch_id), store)
    except CalibrationError as error:
        _nothing(str(error))
        return
    _headline(found)
    _files(store, found)
    for number, section in enumerate(found.document.sections):
        if section.title == WORK:
            _work(store, found, section)
        else:
            document.section(section, anchor=f"s{number}")
        if number == 0:
            _judge(store, found)
    st.text("The same on the command line, with --html FILE, --markdown or --json:")
    st.code(session.command(found.asked.words), language=None, wrap_lines=True)


with st.container(key="page"):
    _page()
