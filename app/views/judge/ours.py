"""Judges that we run: which there are, which one results take, and how another one is made."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from app import frame
from app.components import document
from app.components.sections import folded
from app.components.tables import JUDGE
from app.views.judge import exams, runs
from calibration.analyses.judging.runs import run_states
from calibration.analyses.judging.versions import (
    ADDRESSES,
    KEY,
    JudgeEntry,
    check_permitted,
    endpoint_key,
    entry_of,
    make_judge,
    permitted_addresses,
)
from calibration.errors import CalibrationError, InputError
from calibration.judging.budget import Prices
from calibration.judging.versions import DEFAULT_ROLE, MOST_SAMPLES, MOST_TEXT, PLANS, THOUGHTS
from calibration.reporting.sections import judging as shown
from calibration.store import Store
from calibration.text import counted, one_line, sentence

SECTION, VIEW, MADE = JUDGE.key("own"), JUDGE.key("own_view"), JUDGE.key("own_made")
JUDGES, NEW, RUN, COMPARE, CERTIFICATE = "Judges", "New judge", "Run", "Compare", "Certificate"
NOTHING = "nothing"
MOST_ROWS = 50
WORDS = {
    "one_call": "all questions at once", "per_node": "each question alone",
    "plan_first": "first what is expected, then all questions",
    "shown": "shown to the judge", "withheld": "not shown",
}  # fmt: skip


@st.fragment
def section(store: Store, *, first: bool = False) -> None:
    """Draw all about the judges that we run, folded; `first` opens it for who has not closed it."""
    if first:
        st.session_state.setdefault(SECTION, True)
    folded(SECTION, "Judges that we run", _answer(store), partial(_show, store))


def _answer(store: Store) -> str:
    states = run_states(store.path)
    if states:
        return shown.brief(states)
    n = len(store.judges())
    return counted(n, "judge") if n else "ask a model at an endpoint of yours"


def _show(store: Store) -> None:
    entries = [entry_of(stored) for stored in store.judges()]
    frame.said()
    if not entries:
        st.text(
            "A judge is a model that reads a trace and answers the reviewers' questions about it. "
            "Make one, run it on exam A, and see how well it agrees."
        )
        _make(store, entries)
        return
    state = st.session_state
    # The widget of a closed section is forgotten.
    at_work = any(each.is_working for each in run_states(store.path))
    state.setdefault(VIEW, RUN if at_work else JUDGES)
    view = st.segmented_control(
        "Judges that we run", [JUDGES, NEW, RUN, COMPARE, CERTIFICATE], key=VIEW, required=True,
        label_visibility="collapsed",
    )  # fmt: skip
    if view == JUDGES:
        _list(store, entries)
    elif view == NEW:
        _make(store, entries)
    elif view == RUN:
        runs.show(store, entries)
    elif view == COMPARE:
        exams.compare(store)
    else:
        exams.certificate(store)


def _go(view: str) -> None:
    st.session_state[VIEW] = view
    st.session_state.pop(MADE, None)


# Those that are there


def _list(store: Store, entries: list[JudgeEntry]) -> None:
    """Draw the judges, the newest first."""
    counts = store.judge_frame().set_index("judge_id")["n"]
    in_use = store.judge_in_use()
    widths = [3, 3, 1, 1, 2]
    head = ("Judge", "Model", "Samples", "Verdicts", "Results use")
    for column, name in zip(st.columns(widths), head, strict=True):
        column.caption(name)
    for number, entry in enumerate(reversed(entries[-MOST_ROWS:])):
        n = int(counts.get(entry.name, 0))
        judge, model, samples, verdicts, use = st.columns(widths, vertical_alignment="center")
        judge.text(entry.name)
        model.text(one_line(entry.version.model, most=60))
        samples.text(f"{entry.version.samples}")
        verdicts.text(f"{n:,}")
        if entry.name == in_use:
            use.text("in use")
        elif n:
            use.button(
                "Use for results", key=JUDGE.key(f"own_use_{number}"), on_click=frame.attempt,
                args=(partial(_use, store, entry.name),),
            )  # fmt: skip
        else:
            use.text("no verdict yet")
    if len(entries) > MOST_ROWS:
        st.text(f"The newest {MOST_ROWS} are shown; `asr judge list` has all.")


def _use(store: Store, name: str) -> str:
    store.use_judge(name)
    return f"Results take judge {name} where none is named."


# Another one


def _make(store: Store, entries: list[JudgeEntry]) -> None:
    """Draw the form of a new judge, or the one that was just made."""
    made = next((entry for entry in entries if entry.name == st.session_state.get(MADE)), None)
    if made is not None:
        st.text(f"Judge {made.name} is made. The endpoint was found to be like this:")
        st.session_state.setdefault(JUDGE.key("own_about_0"), True)
        document.whole(shown.made(made), key=JUDGE.key("own_about"))
        with st.container(horizontal=True):
            st.button("Run it", key=JUDGE.key("own_go_run"), type="primary",
                      on_click=_go, args=(RUN,))  # fmt: skip
            st.button("Make another", key=JUDGE.key("own_again"), on_click=_go, args=(NEW,))
        return
    if not permitted_addresses():
        st.text(
            f"{ADDRESSES} is not set where the app runs. Set it to the address of the endpoint and "
            "start the app again; several are separated by commas."
        )
        frame.command_line("judge new NAME --model MODEL --url ADDRESS")
        return
    if endpoint_key():
        st.text(f"{KEY} is set where the app runs. Its value is never shown or stored.")
    else:
        st.text(
            f"{KEY} is not set where the app runs. If the endpoint wants a key, set it there and "
            "start the app again."
        )
    parent: JudgeEntry | None = None
    if entries:
        known = {entry.name: entry for entry in reversed(entries)}
        chosen = st.selectbox(
            "Start from", [NOTHING, *known], key=JUDGE.key("own_parent"),
            help="What is left empty below is taken from this judge; both are of one line.",
        )  # fmt: skip
        parent = known.get(chosen)
    with st.form(JUDGE.key("own_new"), border=False):
        given = _fields(parent)
        pressed = st.form_submit_button("Make this judge", type="primary")
    st.caption("Making it sends about five tiny calls to the endpoint, to find out what it can do.")
    if pressed:
        _made(store, given)


def _fields(parent: JudgeEntry | None) -> dict[str, Any]:
    """Draw the fields of a judge; what is empty is that of the parent, or the usual."""
    before, permitted = None if parent is None else parent.version, permitted_addresses()
    # Another judge to start from is another form.
    suffix = "" if parent is None else f"_{parent.name}"

    def key(name: str) -> str:
        return JUDGE.key(f"own_new_{name}{suffix}")

    left, middle, right = st.columns([2, 2, 3])
    given: dict[str, Any] = {
        "name": left.text_input("Name", max_chars=64, key=key("name"), placeholder="strict"),
        "model": middle.text_input(
            "Model", max_chars=200, key=key("model"), help="As the endpoint names it.",
            placeholder="gpt-x" if before is None else before.model,
        ),
        "address": right.selectbox(
            "Address of the endpoint", permitted, key=key("address"), help=f"From {ADDRESSES}.",
            index=0 if parent is None or parent.address not in permitted
            else permitted.index(parent.address),
        ),
    }  # fmt: skip
    prices = None if parent is None else parent.prices
    for column, (name, label, usual) in zip(
        st.columns(4),
        (("samples", "Samples", 3 if before is None else before.samples),
         ("per_class", "Examples per class", None),
         ("price_in", "USD per M input", None if prices is None else prices.input),
         ("price_out", "USD per M output", None if prices is None else prices.output)),
        strict=True,
    ):  # fmt: skip
        bounds: dict[str, Any] = {"min_value": 0.0, "format": "%g"}
        if name in ("samples", "per_class"):
            bounds = {"min_value": 1, "max_value": MOST_SAMPLES} if name == "samples" else {
                "min_value": 0, "max_value": 10}  # fmt: skip
        given[name] = column.number_input(
            label, value=None, key=key(name), help=HELP[name], **bounds,
            placeholder=USUAL[name] if usual is None else f"{usual:g}",
        )  # fmt: skip
    with st.expander("More settings", key=key("more")):
        given |= _more(parent, key)
    return given | {"parent": None if parent is None else parent.name}


def _more(parent: JudgeEntry | None, key: Callable[[str], str]) -> dict[str, Any]:
    """Draw what is seldom changed."""
    before = None if parent is None else parent.version
    cached = None if parent is None or parent.prices is None else parent.prices.cached
    given: dict[str, Any] = {}
    plan, thoughts, price = st.columns([2, 2, 1])
    for column, name, label, values in (
        (plan, "plan", "How it is asked", PLANS),
        (thoughts, "thoughts", "The agent's own words between its calls", THOUGHTS),
    ):
        now = values[0] if before is None else getattr(before, name)
        given[name] = column.selectbox(
            label, values, index=values.index(now), format_func=WORDS.__getitem__, key=key(name)
        )
    given["price_cached"] = price.number_input(
        "USD per M cached", min_value=0.0, value=None, format="%g", key=key("price_cached"),
        help="If input that the endpoint has stored is cheaper.",
        placeholder="as input" if cached is None else f"{cached:g}",
    )  # fmt: skip
    role = DEFAULT_ROLE if before is None else before.role
    given["role"] = st.text_area(
        "What the judge is told to be", role, max_chars=MOST_TEXT, key=key("role")
    )
    return given


HELP = {
    "samples": "How often each trace is asked; the class with most samples is the verdict.",
    "per_class": "Practice traces with their answers, shown to the judge before the trace.",
    "price_in": "For a cap and an estimate in money; leave empty to cap in tokens.",
    "price_out": "For a cap and an estimate in money; leave empty to cap in tokens.",
}
USUAL = {"per_class": "0", "price_in": "none", "price_out": "none"}


def _made(store: Store, given: dict[str, Any]) -> None:
    """Make the judge, and draw the page again; or say why not."""
    try:
        with st.spinner("Asking the endpoint what it can do"):
            check_permitted(given["address"])
            entry = make_judge(
                store, given["name"].strip(), model=given["model"].strip(),
                address=given["address"], parent=given["parent"], prices=_prices(given),
                per_class=given["per_class"], role=given["role"].strip() or None,
                settings={name: given[name] for name in ("samples", "plan", "thoughts")},
            )  # fmt: skip
    except CalibrationError as error:
        st.text(f"No judge was made. {sentence(str(error))}")
        return
    st.session_state[MADE] = entry.name
    st.session_state[VIEW] = NEW
    st.rerun()


def _prices(given: dict[str, Any]) -> Prices | None:
    if given["price_in"] is None and given["price_out"] is None:
        return None
    if given["price_in"] is None or given["price_out"] is None:
        raise InputError("give the prices of both input and output")
    return Prices(input=given["price_in"], output=given["price_out"], cached=given["price_cached"])
