"""What every page has around it: margins and the banner for simulated data."""

from string import punctuation

import streamlit as st

from app import session
from calibration.analyses.evidence.from_store import TOGETHER, named_batches, pooled_id
from calibration.records import SOURCE_JUDGE
from calibration.store import Store

SIMULATED = "Simulated data: people, labels and verdicts here are invented by the demo."

_STYLE = """<style>
[data-testid="stMainBlockContainer"] {
  padding: 3.9rem 1.5rem 1.25rem; max-width: none;
}
/* The table's own download does not guard cells against being run as formulas; ours do. */
button[kind="elementToolbar"][aria-label^="Download as CSV"] { display: none; }
[data-testid="stHtml"] a { color: light-dark(#2f5d8a, #86b4e0); }
.st-key-page { max-width: 62rem; margin: 1.5rem auto 0; }
/* Streamlit's own grey of captions is too faint for small letters. */
[data-testid="stCaptionContainer"] { opacity: 1; }
[data-testid="stCaptionContainer"], [data-testid="stCaptionContainer"] p {
  color: var(--st-text-color, inherit);
}
.st-key-agreement_verdict [data-testid="stText"],
.st-key-judge_verdict [data-testid="stText"],
.st-key-asr_sentence [data-testid="stText"] { font-size: 1.2rem; font-weight: 600; }
/* What the list of traces is narrowed to stays in sight, wherever on the page it was chosen. */
[data-testid="stLayoutWrapper"]:has(> .st-key-agreement_chip, > .st-key-judge_chip) {
  position: sticky; top: 4.1rem; z-index: 20;
}
[class*="st-key-report_small"] [data-testid="stText"] { font-size: .875rem; }
[class*="st-key-report_warning"] {
  border-left: 3px solid light-dark(#a15c00, #e0a34a); padding-left: .7rem;
}
.st-key-asr_beside > * { flex: 1 1 11rem; min-width: 11rem; }
.st-key-asr_beside [data-testid="stMetricLabel"] * { white-space: normal; overflow: visible; }
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


def no_batch(title: str) -> None:
    """Say what to do while there is no batch of production traces."""
    st.header(title, anchor=False)
    how_to_draw()


def how_to_draw() -> None:
    """Say how a batch comes about."""
    st.text("Traces are labelled in batches. Draw one, for example 40 traces at random:")
    st.code(session.command("sample --n 40 --seed 1"), language=None, wrap_lines=True)
    st.text("If there are no traces in the store yet, import them first:")
    st.code(session.command("import FILES"), language=None, wrap_lines=True)
    st.text("Both work while this app runs. Then reload this page.")


def results_batch(store: Store, title: str, *, together: bool = False) -> str | None:
    """Let the lead choose a batch of production traces; None when there is none.

    With `together`, the random batches that have labels are taken together unless one is chosen.
    """
    batches = [b.batch_id for b in store.batches() if b.purpose == "production" and not b.is_audit]
    if not batches:
        no_batch(title)
        return None
    st.header(title, anchor=False)
    batch_id = batches[0]
    if len(batches) > 1:
        # A batch that was just drawn has nothing to show yet.
        labelled = (k for k, b in enumerate(batches) if not store.label_frame(b).empty)
        first = next(labelled, 0)
        pooled = pooled_id(store) if together else batches[first]
        if pooled not in batches:
            batches, first = [pooled, *batches], 0
        batch_id = st.selectbox(
            "Batch",
            batches,
            index=first,
            key=f"batch of {title}",
            format_func=lambda name: (
                f"{named_batches(name)} together" if TOGETHER in name else name
            ),
        )
    return batch_id


def choose_judge(store: Store, key: str) -> str | None:
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
        key=key,
        format_func=lambda j: "grades of the files (all)" if j == SOURCE_JUDGE else j,
    )
    return chosen


def plain(name: str) -> str:
    """Return a name for a button: its label is markdown, and a name must stay a name."""
    # Before anything else a backslash would be shown.
    return "".join(f"\\{c}" if c in punctuation and c not in ".,'-" else c for c in name)


def tighten() -> None:
    """Give the page the width and height that Streamlit leaves empty."""
    st.html(_STYLE)


def who_is_here(store: Store) -> None:
    """Say in the sidebar who has signed in, with the way out; nothing where people pick a name."""
    person = session.chosen_reviewer(store)
    if person is None or not session.signs_in(store):
        return
    with st.sidebar:
        st.caption("Signed in as")
        st.text(f"{person.name} ({person.role})")
        st.button("Sign out", key="sign_out", on_click=session.sign_out, args=(store,))
        st.html('<a href="/passphrase" target="_self">Change passphrase</a>')


def banner(store: Store) -> None:
    """Say so when the store holds simulated data."""
    if store.is_simulated():
        with st.container(key="simulated"):
            st.text(SIMULATED)
