"""Runs of judges that we run: a dry run, its start, and how far a run is."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import streamlit as st

from app import frame, session
from app.components import document
from app.components.sections import folded
from app.components.tables import JUDGE
from calibration.analyses.judging import runs
from calibration.analyses.judging.runs import Chosen, DryRun, RunState
from calibration.analyses.judging.versions import (
    EXAM_A,
    EXAM_B,
    PRACTICE,
    JudgeEntry,
    check_permitted,
)
from calibration.errors import CalibrationError, InputError, JudgeRunError
from calibration.files import read_text
from calibration.judging.budget import Cap
from calibration.judging.journal import RunProgress, read_plan, read_progress, write_control
from calibration.judging.pace import Rates
from calibration.judging.runner import FAILED, INCOMPLETE, STOPPED
from calibration.reporting.document import Facts, usd
from calibration.reporting.sections import judging as shown
from calibration.store import Store
from calibration.text import hours, one_line, sentence

EVERY_S = 2.0
DRY = JUDGE.key("own_dry")
# Where the worker has ended, and another one can go on.
RESUMED = ("dead", INCOMPLETE, STOPPED, FAILED)
LOG_FILE, MOST_LOG = "worker.log", 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What was asked of a dry run, and its answer."""

    entry: JudgeEntry
    chosen: Chosen
    rates: Rates
    run: DryRun


def show(store: Store, entries: Sequence[JudgeEntry]) -> None:
    """Draw how far the runs are, and a new one; of no run only the new one."""
    states = runs.run_states(store.path)
    if not states:
        _new(store, entries)
        return
    _watch(store, states)
    folded(JUDGE.key("own_another"), "Another run", "", partial(_new, store, entries), small=True)


# A new one


def _new(store: Store, entries: Sequence[JudgeEntry]) -> None:
    """Draw the choice of judge and traces, and what they would cost."""
    choices = _choices(store)
    names = {entry.name: entry for entry in reversed(entries)}
    with st.form(JUDGE.key("own_run"), border=False):
        judge, traces, limit, rate, button = st.columns(
            [2, 3, 1.3, 1.3, 1.1], vertical_alignment="bottom"
        )
        name = judge.selectbox("Judge", list(names), key=JUDGE.key("own_run_judge"))
        which = traces.selectbox("Traces", list(choices), key=JUDGE.key("own_run_traces"))
        most = limit.number_input(
            "At most", min_value=1, value=None, placeholder="all", key=JUDGE.key("own_run_limit"),
            help="So many of them, at random and the same each time.",
        )  # fmt: skip
        per_minute = rate.number_input(
            "Requests a minute", min_value=1, value=None, placeholder="no limit",
            key=JUDGE.key("own_run_rate"), help="The limit of the endpoint, if you know it.",
        )  # fmt: skip
        pressed = button.form_submit_button("Dry run")
    if pressed:
        chosen = Chosen(**choices[which], limit=most)
        rates = Rates(requests_per_minute=per_minute)
        _estimate(store, names[name], chosen, rates)
    dry: Offer | None = st.session_state.get(DRY)
    if dry is not None:
        _offer(store, dry)


def _choices(store: Store) -> dict[str, dict[str, str]]:
    """Return which traces can be judged, by how they are called."""
    found: dict[str, dict[str, str]] = {
        "exam A, to compare judges": {"form": EXAM_A},
        "exam B, for a certificate": {"form": EXAM_B},
        "practice form": {"form": PRACTICE},
    }
    frame_ = store.production_traces()
    if len(frame_):
        found[f"production, all {len(frame_):,} traces"] = {}
    for batch in store.batches():
        if batch.purpose == "production":
            found[f"batch {batch.batch_id}"] = {"batch": batch.batch_id}
    for workflow in sorted(frame_["workflow"].unique()):
        found[f"workflow {workflow}"] = {"workflow": str(workflow)}
    return found


def _estimate(store: Store, entry: JudgeEntry, chosen: Chosen, rates: Rates) -> None:
    st.session_state.pop(DRY, None)
    try:
        with st.spinner("Counting what would be sent"):
            run = runs.estimate_run(store, entry.name, chosen, rates=rates)
    except CalibrationError as error:
        st.text(sentence(str(error)))
        return
    st.session_state[DRY] = Offer(entry=entry, chosen=chosen, rates=rates, run=run)


def _offer(store: Store, dry: Offer) -> None:
    """Draw what a run would cost, with its cap and the button that starts it."""
    document.whole(shown.estimated((dry.entry, dry.run)), key=JUDGE.key("own_offer"))
    wanted = shown.cap_wanted(dry.run.cost)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if wanted is None:
            tokens = st.number_input(
                "Use at most so many tokens", min_value=1, value=shown.tokens_wanted(dry.run.cost),
                key=JUDGE.key("own_cap_tokens"), width=260,
            )  # fmt: skip
            cap = Cap(tokens=int(tokens))
        else:
            amount = st.number_input(
                "Spend at most, USD", min_value=0.01, value=wanted, format="%.2f",
                key=JUDGE.key("own_cap_usd"), width=260,
            )  # fmt: skip
            cap = Cap(usd=float(amount))
        pressed = st.button("Start", key=JUDGE.key("own_start"), type="primary")
    st.caption("The cap is hard: a request leaves only if all that it may cost stays under it.")
    if not pressed:
        return
    st.session_state.pop(DRY, None)
    try:
        with st.spinner("Starting"):
            _start(store, dry, cap)
    except CalibrationError as error:
        st.text(f"Nothing was started. {sentence(str(error))}")
        return
    st.session_state[JUDGE.key("own_another")] = False
    st.rerun()


def _start(store: Store, dry: Offer, cap: Cap) -> None:
    folder = runs.plan(store, dry.entry.name, dry.chosen, cap=cap, rates=dry.rates)
    session.publish(store)
    start_worker(store.path, folder)


CLOSES = (
    "Traces that the run could not judge get no verdict, cause: outage. For an endpoint that will "
    "not come back; they are pending otherwise."
)

# A worker of its own

_workers: dict[Path, tuple[subprocess.Popen[bytes], float]] = {}


def start_worker(path: Path, folder: Path) -> None:
    """Work on a run in a process of its own, as `asr judge resume` does.

    It outlives this process, and writes what it has to say into the folder of the run.

    Raises
    ------
    InputError
        If the pages of the app may not ask the endpoint of the run.
    JudgeRunError
        If a worker of this process is at the run already.
    """
    check_permitted(str(read_plan(folder)["address"]))
    if folder in _workers and _workers[folder][0].poll() is None:
        raise JudgeRunError(f"a worker is at run {folder.name} already")
    words = ["judge", "resume", folder.name, "--store", str(path)]
    log = os.open(folder / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "calibration.cli", *words], cwd=folder, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    finally:
        os.close(log)
    _workers[folder] = process, time.time()
    # A process that has ended is kept by the system until somebody has asked for its exit code.
    threading.Thread(target=process.wait, daemon=True).start()


def is_starting(folder: Path) -> bool:
    """Return whether a worker of this process runs that has shown no progress yet."""
    process, since = _workers.get(folder, (None, 0.0))
    if process is None or process.poll() is not None:
        return False
    progress = read_progress(folder)
    return progress is None or progress.heartbeat < since


def last_words(folder: Path) -> str:
    """Return the last line that a worker of a run wrote, empty if there is none."""
    try:
        lines = read_text(folder / LOG_FILE, most=MOST_LOG).split("\n")
    except InputError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


# Those that are there


def _watch(store: Store, states: Sequence[RunState]) -> None:
    """Draw one run; of several one is chosen. It is drawn again while a worker is at it."""
    latest = {state.name: state for state in reversed(states)}
    names = list(latest)
    at_work = [name for name in names if _at_work(store, latest[name])]
    name = (at_work or names)[0]
    if len(names) > 1:
        # A run that was just started is another list, and so another choice.
        key = JUDGE.key(f"own_watched_{len(names)}")
        name = st.selectbox("Run", names, index=names.index(name), key=key)
    now = _at_work(store, latest[name])
    st.fragment(_draw, run_every=EVERY_S if now else None)(store, name, now)


def _folder(store: Store, name: str) -> Path:
    return runs.runs_folder(store.path) / name


def _at_work(store: Store, state: RunState) -> str:
    """Return "starting" or "working" while a worker is at a run, or nothing."""
    if is_starting(_folder(store, state.name)):
        return "starting"
    return "working" if state.is_working else ""


def _draw(store: Store, name: str, before: str) -> None:
    folder = _folder(store, name)
    state = runs.run_state(folder)
    progress, at_work = state.progress, _at_work(store, state)
    if at_work != before:
        st.rerun()  # verdicts have come, or more will: the whole page is about them
    if at_work == "starting":
        st.text(f"Run {name} of judge {state.judge} is starting.")
        return
    st.text(shown.state_words(state))
    if progress is None:
        if words := last_words(folder):
            st.text(f"Its worker ended with: {one_line(words, most=600)}")
        _buttons(store, state)
        return
    st.progress(0.0 if not progress.total else min(1.0, progress.verdicts / progress.total))
    _figures(state, progress)
    for title, items in shown.causes(progress):
        if items:
            st.text(f"{title}: {', '.join(one_line(item, most=200) for item in items)}")
    for words in (shown.anchor_words(state), shown.advice(state)):
        if words:
            st.text(words)
    _buttons(store, state)
    facts = (Facts(items=shown.state_facts(progress)),)
    folded(
        JUDGE.key("own_facts"), "All numbers", "",
        partial(document.blocks, facts, key=JUDGE.key("own_all")), small=True,
    )  # fmt: skip


def _figures(state: RunState, progress: RunProgress) -> None:
    facts = dict(shown.state_facts(progress))
    cap = "-"
    if state.cap.usd is not None:
        cap = f"{usd(progress.spent_usd)} of {usd(state.cap.usd)}"
    elif state.cap.tokens is not None:
        cap = f"{progress.spent_tokens:,} of {state.cap.tokens:,} tokens"
    samples, spent, left, last = st.columns(4)
    samples.metric("Samples judged", facts["samples judged"])
    spent.metric("Spent, of the cap", cap)
    if state.is_working:
        left.metric("Time left", "-" if progress.eta_s is None else hours(progress.eta_s / 3600))
        last.metric("Last answer", facts.get("last answer", "none yet"))
    else:
        left.metric("Traces", f"{state.n_traces:,}")
        last.metric("In doubt", f"{progress.in_doubt:,}")


def _buttons(store: Store, state: RunState) -> None:
    """Draw what can be done with a run as it is."""
    now = None if state.progress is None else state.progress.state
    able: list[tuple[str, partial[str]]] = []
    if now == "running":
        able.append(("Pause", partial(_ask, store, state, "pause")))
    if now == "paused":
        able.append(("Resume", partial(_ask, store, state, "resume")))
    if now in ("running", "paused"):
        able.append(("Stop", partial(_ask, store, state, "stop")))
    if now is None or now in RESUMED:
        able.append(("Resume" if now else "Start", partial(_resume, store, state)))
    if now in RESUMED:
        able.append(("Close", partial(_close, store, state)))
    with st.container(horizontal=True):
        for label, act in able:
            st.button(
                label, key=JUDGE.key(f"own_{label.lower()}_{state.name}"), on_click=frame.attempt,
                args=(act,), help=CLOSES if act.func is _close else None,
            )  # fmt: skip
    frame.said()


def _close(store: Store, state: RunState) -> str:
    store.judge(state.judge)
    session.publish(store)
    me = session.chosen_reviewer(store)
    pending, n = runs.close(
        store.path, _folder(store, state.name), by="" if me is None else me.reviewer_id,
        write=lambda: nullcontext(store),
    )  # fmt: skip
    return f"{pending:,} of {n:,} traces have no verdict now, cause: outage."


def _ask(store: Store, state: RunState, word: str) -> str:
    store.judge(state.judge)  # who may not read it may not stop it
    write_control(_folder(store, state.name), word)
    return f"The worker was asked to {word}."


def _resume(store: Store, state: RunState) -> str:
    store.judge(state.judge)
    session.publish(store)
    start_worker(store.path, _folder(store, state.name))
    return ""
