"""Reliability: the answer over repeated runs, what to do next, and what it is made of."""

from collections.abc import Iterator
from functools import partial

import streamlit as st

from app import frame, session
from app.components import document
from app.components.sections import folded, verdict
from app.components.table_reading import as_menus, reading_menus
from app.components.tables import RELIABILITY
from app.components.uploaded import TABLES
from app.views.reliability import data, draw
from app.views.reliability.data import Asked, Found
from calibration.analyses.look import TRIALS
from calibration.analyses.reliability.from_store import OPEN, LabelledAgent
from calibration.errors import CalibrationError
from calibration.reporting.document import figure
from calibration.reporting.sections.reliability import DIMENSIONS, advice
from calibration.statistics.estimate import OK
from calibration.store import Store
from calibration.taxonomy import default_taxonomy
from calibration.text import TOGETHER, counted, sentence, shown

# What was measured of a file; it lives until the tab is closed, and is never stored.
OF_FILE = RELIABILITY.key("of_file")
FILES = (("HTML", "html", "text/html"), ("Markdown", "md", "text/markdown"),
         ("JSON", "json", "application/json"))  # fmt: skip
COLUMNS = (
    "Columns: task_id, run, success; optional: confidence (0 to 1), actions (list of names), "
    "cost_usd, latency_s, api_calls, n_errors, perturbation (none, fault, structure, prompt), "
    "violations (list of objects with constraint and severity)"
)


def _choose(store: Store) -> LabelledAgent | None:
    """Let the agent be chosen: runs of several are never pooled; None when no run is labelled."""
    found = data.agents(str(store.path), store.result_state(), store)
    if len(found) < 2:
        return found[0] if found else None
    names = [agent.name for agent in found]
    chosen = st.selectbox(
        "Agent", names, key=RELIABILITY.key("agent"), bind="query-params",
        help="Reliability is that of one agent: a model and its version.",
    )  # fmt: skip
    return found[names.index(chosen)]


def _of_store(store: Store) -> Found | None:
    """Return what is known of the store; None after saying what it lacks."""
    agent = _choose(store)
    if agent is None:
        _lacks(store, "No run of a task is labelled yet.")
        return None
    asked = Asked(
        path=str(store.path),
        agent=agent,
        state=(*store.result_state(), store.taxonomy().fingerprint),
    )
    try:
        found = data.measured(asked, store)
    except CalibrationError as error:
        _lacks(store, sentence(str(error)), title="Reliability cannot be measured yet.")
        return None
    if found.tells:
        return found
    n, tasks = found.report.n_runs, found.report.n_tasks
    _lacks(
        store,
        f"{counted(n, 'labelled run')} of {counted(tasks, 'task')}: no task was run twice.",
    )
    return None


def _lacks(store: Store, why: str, title: str = "No repeated runs with labels yet.") -> None:
    """Say what the store lacks, and how it gets there."""
    verdict(
        RELIABILITY.key("verdict"), title, why,
        "Reliability shows whether an agent does the same again when a task is repeated.",
    )  # fmt: skip
    st.subheader("Do next", anchor="steps")
    for words, label, page, step in (
        ("1. Import runs that name their task and trial (task_id, trial), several of each task.",
         "Import traces", "start", "traces"),
        ("2. Draw a batch of them.", "Draw a batch", "start", "batch"),
        ("3. Label every run of the batch.", "Label", "", ""),
    ):  # fmt: skip
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(words)
            st.page_link(
                frame.SCRIPTS.get(page, "views/label.py"), label=label,
                query_params={"step": step} if step else None,
            )  # fmt: skip
    st.text("Or measure a table of runs, with what is a success:")
    _upload()
    frame.command_line("import FILE", "reliability")


@st.fragment
def _upload() -> None:
    """Offer to measure a file; nothing of it is stored."""
    left, right = st.columns(2)
    runs = left.file_uploader(
        "Runs (.csv, .jsonl, .parquet)", type=TABLES, key=RELIABILITY.key("runs_upload"),
        help=COLUMNS,
    )  # fmt: skip
    tasks = right.file_uploader(
        "Tasks, if you like (.csv, .jsonl, .parquet)", type=TABLES,
        key=RELIABILITY.key("tasks_upload"),
        help="Columns: task_id; optional: difficulty, category, tier (core or edge)",
    )  # fmt: skip
    options = reading_menus(RELIABILITY.key("runs"), runs, TRIALS, default_taxonomy())
    if not st.button("Measure", key=RELIABILITY.key("measure")):
        return
    if runs is None:
        st.text("Choose a file of runs first.")
        return
    try:
        st.session_state[OF_FILE] = data.of_files(runs, tasks, options)
    except CalibrationError as error:
        st.text(f"Nothing was measured: {shown(as_menus(str(error)), most=600)}")
        return
    st.rerun()


def _back() -> None:
    st.session_state.pop(OF_FILE, None)


def _headline(found: Found) -> None:
    head = found.document.headline
    document.read_first(found.document)
    if head is None:
        return
    source = shown(found.report.success_source, most=300)
    verdict(
        RELIABILITY.key("verdict"), head.sentence, sentence(head.kind.capitalize()),
        f"{head.basis}. Success from {source}.",
    )  # fmt: skip
    for column, (name, value, about) in zip(st.columns(4), _parts(found), strict=True):
        column.metric(
            name, value, about, delta_color="off", delta_arrow="off", border=True, height="stretch"
        )


def _parts(found: Found) -> Iterator[tuple[str, str, str]]:
    for name in DIMENSIONS:
        score = getattr(found.report, name).score
        title = name.capitalize() + " (beside it)" * (name == DIMENSIONS[-1])
        if score.value is None:
            yield title, "-", "not measured yet"
            continue
        value, _, limits = figure(score).removesuffix(" +").partition(" ")
        about = f"{limits or 'no interval'}, {counted(score.n, 'task')}"
        yield title, value, about + ", provisional" * (score.status != OK)


def _next(store: Store, found: Found) -> None:
    st.subheader("Do next", anchor="steps")
    for step in advice(found.report):
        st.text(f"\u2022 {step}")
    if any(row.reason == OPEN for row in found.report.set_aside):
        st.page_link(frame.SCRIPTS["adjudicate"], label="Adjudicate")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text("Save this report:")
        for name, kind, mime in FILES:
            st.download_button(
                name, data=partial(_written, store, found, session.reviewer_id(store), kind),
                file_name=f"reliability.{kind}", mime=mime, on_click="ignore",
                key=RELIABILITY.key(kind),
            )  # fmt: skip


def _written(store: Store, found: Found, who: str | None, kind: str) -> str:
    """Return the report as a file, after recording the labels that its tasks tell."""
    if who is not None and found.runs is not None:
        store.record_exposure(who, found.runs.run, "labels")
    return found.file(kind)


@st.fragment
def _sections(store: Store, found: Found) -> None:
    """Draw the sections: a fragment, so that opening one draws nothing else again."""
    draw.sections(store, found)
    folded(RELIABILITY.key("command"), "On the command line", "", partial(_command, found))


def _command(found: Found) -> None:
    st.text("The same report, with --html FILE, --markdown or --json:")
    words = found.words if found.runs is None else session.command(found.words)
    st.code(words if found.runs is not None else f"asr {words}", language=None, wrap_lines=True)


def _page() -> None:
    store = session.require_store()
    st.header(frame.title("reliability"), anchor=False)
    found: Found | None = st.session_state.get(OF_FILE)
    if found is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text("Measured on a file; nothing of it is stored.")
            st.button("Back to the store", key=RELIABILITY.key("back"), on_click=_back)
    else:
        found = _of_store(store)
        batches = [b.batch_id for b in store.batches() if b.purpose == "production"]
        if found is None or frame.asks_first(store, TOGETHER.join(batches)):
            return
    _headline(found)
    _next(store, found)
    _sections(store, found)
    if found.runs is not None:
        folded(RELIABILITY.key("other"), "Measure a file of runs", "", _upload)


with st.container(key="page"):
    _page()
