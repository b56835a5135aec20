"""What every page has around it: margins, who is here, what it lacks, simulated data."""

from collections.abc import Callable
from string import punctuation
from urllib.parse import urlsplit

import streamlit as st

from app import session
from calibration.analyses.evidence.from_store import (
    choose_batch,
    pooled_id,
)
from calibration.analyses.reviewers.adjudication import blind_work
from calibration.errors import CalibrationError
from calibration.records import SOURCE_JUDGE
from calibration.store import Store, TraceFilter
from calibration.text import TOGETHER, counted, named_batches

# Traces that this session was told it would not decide blind any more.
OPENED = "opened_anyway"

# What became of the last button.
SAID = "said"

ON_A_BUTTON = 28

# Names in the address.
BATCH, JUDGE = "batch", "judge"

SIMULATED = "Simulated data: people, labels and verdicts here are invented by the demo."

TITLES = {"asr": "ASR", "overview": "Home", "start": "Set up"}

# By address: links that people keep stay true wherever a script lies.
SCRIPTS = {
    "overview": "views/home.py",
    "agreement": "views/agreement/page.py",
    "adjudicate": "views/adjudicate/page.py",
    "reviewers": "views/reviewers/page.py",
    "judge": "views/judge/page.py",
    "asr": "views/success_rate/page.py",
    "reliability": "views/reliability/page.py",
    "data": "views/data/page.py",
    "trace": "views/trace.py",
    "start": "views/start.py",
    "people": "views/people.py",
}

_STYLE = """<style>
[data-testid="stMainBlockContainer"] {
  padding: 3.9rem 1.5rem 1.25rem; max-width: none;
}
/* The table's own download does not guard cells against being run as formulas; ours do. */
button[kind="elementToolbar"][aria-label^="Download as CSV"] { display: none; }
[data-testid="stHtml"] a { color: light-dark(#2f5d8a, #86b4e0); }
/* In the bar at the top, so that it takes no room from a trace and stays when the page scrolls. */
[data-testid="stLayoutWrapper"]:has(> .st-key-who) {
  position: fixed; top: 0; right: 1rem; height: 3.75rem; width: auto; z-index: 999991;
  display: flex; align-items: center;
}
.st-key-who { flex-wrap: nowrap; width: auto; }
.st-key-who button { min-height: 0; white-space: nowrap; }
.st-key-who button p { max-width: 8.5rem; overflow: hidden; text-overflow: ellipsis; }
.stApp:has(.st-key-who) .stAppToolbar { padding-right: 18rem; }
.st-key-page { max-width: 62rem; margin: 1.5rem auto 0; }
/* White on the light blue of the dark theme is too faint. */
button[data-testid^="stBaseButton-primary"]:not(:disabled) :is(p, kbd) {
  color: light-dark(#ffffff, #111418); opacity: 1;
}
button[data-testid^="stBaseButton-primary"] kbd { background: transparent; }
[data-testid="stMultiSelect"] span[title] { color: light-dark(#ffffff, #111418) !important; }
/* Streamlit's own grey of captions is too faint for small letters. */
[data-testid="stCaptionContainer"] { opacity: 1; }
[data-testid="stCaptionContainer"], [data-testid="stCaptionContainer"] p {
  color: var(--st-text-color, inherit);
}
/* The verdict: its first sentence. */
.st-key-home_sentence [data-testid="stText"],
[class*="st-key-"][class*="_verdict"] > :first-child [data-testid="stText"] {
  font-size: 1.2rem; font-weight: 600;
}
.st-key-home_next [data-testid="stPageLink"] a { padding-left: 0; background: none; }
.st-key-home_next button { min-height: 0; }
.st-key-asks_first [data-testid="stPageLink"] p,
.st-key-home_next :is([data-testid="stPageLink"], button) p {
  color: light-dark(#2f5d8a, #86b4e0); font-weight: 600; text-decoration: underline;
}
/* What the list of traces is narrowed to stays in sight, wherever on the page it was chosen. */
[data-testid="stLayoutWrapper"]:has(> .st-key-agreement_chip, > .st-key-judge_chip) {
  position: sticky; top: 4.1rem; z-index: 20;
}
[class*="st-key-report_small"] [data-testid="stText"] { font-size: .875rem; }
[class*="st-key-report_warning"] {
  border-left: 3px solid light-dark(#a15c00, #e0a34a); padding-left: .7rem;
}
[data-testid="stMain"] [data-testid="stPageLink"] a :is(p, span) {
  color: light-dark(#2f5d8a, #86b4e0); text-decoration: underline;
}
.st-key-page details summary, .st-key-page details summary * {
  color: var(--st-text-color, inherit); opacity: 1;
}
.st-key-agreement_chip, .st-key-judge_chip {
  background: light-dark(#f1f1ee, #1d2126); border: 1px solid light-dark(#2f5d8a, #86b4e0);
  border-radius: 6px; padding: .35rem .9rem;
}
.st-key-page h3#traces { scroll-margin-top: 8.5rem; }
[data-testid="stLayoutWrapper"]:has(> .st-key-agreement_labels, > .st-key-judge_labels) {
  position: sticky; top: 7.5rem;
}
[data-testid="stLayoutWrapper"]:has(> .st-key-asr_labels) { position: sticky; top: 4.5rem; }
.st-key-simulated {
  background: var(--asr-banner, rgba(214, 158, 46, .16));
  border-radius: 6px; padding: .3rem .8rem;
}
.st-key-simulated p, .st-key-simulated [data-testid="stText"] { font-size: .85rem; }
</style>"""


def title(name: str) -> str:
    """Return what the page at an address is called."""
    return TITLES.get(name, name.capitalize())


def attempt(act: Callable[[], str]) -> None:
    """Do what a button asks for; `said` tells on the next run what became of it."""
    try:
        st.session_state[SAID] = act()
    except CalibrationError as error:
        st.session_state[SAID] = str(error)


def said() -> None:
    """Tell what became of the last button."""
    if message := st.session_state.pop(SAID, ""):
        st.text(message)


def command_line(*words: str) -> None:
    """Offer the commands that do the same, folded away."""
    with st.expander("From the command line"):
        for each in words:
            st.code(session.command(each), language=None, wrap_lines=True)


def nothing_yet(store: Store) -> None:
    """Say in a sentence what a page lacks, with the link to the step of Set up that supplies it."""
    if not store.count_traces(TraceFilter()):
        lacks, step, label = "There are no traces yet.", "traces", "Import traces"
    elif not any(b.purpose == "production" and not b.is_audit for b in store.batches()):
        lacks, step, label = "No batch of traces has been drawn yet.", "batch", "Draw a batch"
    else:
        lacks, step, label = "Nobody has labelled a trace yet.", "label", "Start labelling"
    with st.container(horizontal=True, vertical_alignment="center", key="nothing_yet"):
        st.text(lacks)
        if session.is_lead(store):
            st.page_link(SCRIPTS["start"], label=label, query_params={"step": step})


def called(store: Store, batch_id: str) -> None:
    """Say what a batch is called; its address and its choice have the id, which never changes."""
    for batch in store.batches():
        if batch.batch_id == batch_id and batch.name:
            st.caption(plain(batch.name))


def results_batch(
    store: Store, title: str, *, together: bool = False, samples: bool = False
) -> str | None:
    """Let the lead choose a batch of production traces; None when there is none.

    None, too, while the lead has not said that the labels of the batch may be shown to them.
    With `together`, the random batches that have labels are taken together unless one is chosen.
    With `samples`, batches of chosen traces are offered only where there are no others.
    """
    every = [b for b in store.batches() if b.purpose == "production" and not b.is_audit]
    drawn = [b for b in every if b.is_sample] if samples else []
    batches = [b.batch_id for b in drawn or every]
    st.header(title, anchor=False)
    if not batches:
        nothing_yet(store)
        return None
    batch_id = batches[0]
    if len(batches) > 1:
        first = batches.index(choose_batch(store, None).batch_id)
        pooled = pooled_id(store) if together else batches[first]
        if pooled not in batches:
            batches, first = [pooled, *batches], 0
        batch_id = st.selectbox(
            "Batch",
            batches,
            index=first,
            key=BATCH,
            bind="query-params",
            format_func=lambda name: (
                f"{named_batches(name)} together" if TOGETHER in name else name
            ),
        )
    called(store, batch_id)
    return None if asks_first(store, batch_id) else batch_id


def asks_first(store: Store, batch_id: str) -> bool:
    """Ask before a page ends the blindness of a lead; True while it must not be drawn.

    The page shows labels of a batch, or of batches joined by name, in which the lead has traces
    left to decide blind. Who answers is asked again for other traces only.
    """
    me = session.chosen_reviewer(store)
    if me is None:
        return False
    known: set[str] = st.session_state.setdefault(OPENED, set())
    found = [blind_work(store, me.reviewer_id, name) for name in batch_id.split(TOGETHER)]
    asked = [work for work in found if work.traces - known]
    for work in asked:
        parts = [
            f"{counted(len(traces), 'trace')} to {verb}"
            for traces, verb in ((work.to_adjudicate, "adjudicate"), (work.to_label, "label"))
            if traces
        ]
        st.text(f"You have {' and '.join(parts)} blind in {work.batch_id}.")
    if not asked:
        return False
    adjudicate = any(work.to_adjudicate for work in asked)
    after = ["A decision after that is marked as not blind."] * adjudicate
    after += ["A label after that does not count."] * any(work.to_label for work in asked)
    st.text(f"This page shows how others labelled them. {' '.join(after)}")
    with st.container(horizontal=True, vertical_alignment="center", key="asks_first"):
        st.page_link(
            SCRIPTS["adjudicate"] if adjudicate else "views/label.py",
            label="Adjudicate first" if adjudicate else "Label first",
            query_params={"batch": asked[0].batch_id},
        )
        traces = frozenset[str]().union(*(work.traces for work in asked))
        st.button("Open anyway", key="open_anyway", on_click=known.update, args=(traces,))
    return True


def choose_judge(store: Store) -> str | None:
    """Let the lead choose a judge, or all grades of the files as one; None when there is none."""
    known = list(store.judge_frame()["judge_id"])
    if not known:
        return None
    pooled = sum(j.startswith(SOURCE_JUDGE) for j in known) > 1
    options = [SOURCE_JUDGE, *known] if pooled else known
    if len(options) == 1:
        return str(options[0])
    chosen: str = st.selectbox(
        "Judge",
        options,
        key=JUDGE,
        format_func=judge_name,
        bind="query-params",
    )
    return chosen


def judge_name(judge_id: str) -> str:
    """Return what a judge is called: the grades of the files have no judge of a name."""
    if not judge_id.startswith(SOURCE_JUDGE):
        return judge_id
    source = judge_id.removeprefix(SOURCE_JUDGE)
    return f"grades in the {source} files" if source else "grades of the files (all)"


def asked_page() -> str:
    """Return the page that the address names; empty at the address of the server itself."""
    return urlsplit(st.context.url or "").path.strip("/")


def plain(name: str) -> str:
    """Return a name for a button: its label is markdown, and a name must stay a name."""
    # Before anything else a backslash would be shown.
    return "".join(f"\\{c}" if c in punctuation and c not in ".,'-" else c for c in name)


def tighten() -> None:
    """Give the page the width and height that Streamlit leaves empty."""
    st.html(_STYLE)


def short(name: str) -> str:
    """Return a name that fits on a button; who is meant stands elsewhere in full."""
    return name if len(name) <= ON_A_BUTTON else f"{name[: ON_A_BUTTON - 1].rstrip()}…"


def who_is_here(store: Store) -> None:
    """Say in the bar at the top of every page who is here, with the way out."""
    person = session.chosen_reviewer(store)
    if person is None:
        return
    with st.container(key="who", horizontal=True, vertical_alignment="center", gap="xsmall"):
        with st.popover(plain(short(person.name)), type="tertiary"):
            st.text(f"{person.name} ({person.role})")
            if store.identities() == "passphrase":
                st.html('<a href="/passphrase" target="_self">Change passphrase</a>')
        if session.signs_in(store):
            st.button(
                "Sign out", key="sign_out", type="tertiary", on_click=session.sign_out,
                args=(store,),
            )  # fmt: skip
        elif st.button("Someone else", key="switch", type="tertiary"):
            session.choose_reviewer(None)
            st.switch_page("views/label.py")  # where names are chosen


def banner(store: Store) -> None:
    """Say so when the store holds simulated data."""
    if store.is_simulated():
        with st.container(key="simulated"):
            st.text(SIMULATED)
