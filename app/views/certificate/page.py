"""Certificate: where I stand, practice aimed at what I get wrong, the examination, its result."""

from collections.abc import Callable

import streamlit as st

from app import session
from app.views.certificate import data, rest, result
from calibration.analyses.reviewers.examinations import (
    NO_SET,
    Examiner,
    Standing,
    no_form,
    settle,
    standing,
    start_exam,
    start_practice,
    weak_nodes,
)
from calibration.errors import CalibrationError
from calibration.records import Reviewer
from calibration.reviewers.certification import AttemptRule, PassRule
from calibration.store import Store
from calibration.store.batches import PracticeRound
from calibration.store.certification import Certificate, Exam
from calibration.text import sentence

TITLE = "Certificate"

# What the Label page reads its batch from.
BATCH = "label_batch"
STARTED = "certificate_started"

PUBLIC = (
    "It was earned on a public form: the traces and their answers come "
    "with this tool, so anybody could have read them before."
)

FULL_FORM = 40


def _page() -> None:
    store = session.require_store()
    st.header(TITLE, anchor=False)
    reviewer = session.chosen_reviewer(store)
    if reviewer is None:
        st.text("A certificate belongs to a person: choose your name on the Label page first.")
        st.page_link("views/label.py", label="Go to the Label page")
        return
    by = data.by(store)
    if not any(by.dataset.forms.values()):
        st.text(NO_SET)
        return
    if st.session_state.pop(STARTED, False):
        _go(lambda: start_exam(store, by, reviewer.reviewer_id, now=data.now()))
    try:
        settle(store, by, reviewer.reviewer_id)
    except CalibrationError as error:
        st.text(f"The last examination could not be scored: {error}")
    stands = standing(store, reviewer.reviewer_id, now=data.now())
    title, lines = _where(stands)
    st.subheader(title, anchor=False)
    # Once nothing else keeps them, whether there are traces for it is told before they press.
    due = stands.exam is None and stands.next.step != "certified"
    lacks = no_form(store, by, reviewer.reviewer_id, stands) if due else ""
    for line in [*lines, *([sentence(lacks)] if lacks else [])]:
        st.text(line)
    if stands.certificate is not None and stands.exam is None:
        _to_work(store, reviewer)
    lead = session.is_lead(store)
    others = rest.others(store) if lead else []
    rest.who_waits(others, reviewer)
    left, right = st.columns(2, gap="large")
    with left:
        _practice(store, reviewer, stands)
    with right:
        _examination(store, by, reviewer, stands, lacks=lacks)
    st.markdown("#### Chance to pass")
    rest.chance(data.curve(store, by))
    if stands.last is not None:
        _result(store, stands.last)
    if lead:
        rest.for_leads(store, by, reviewer, others)


def _to_work(store: Store, reviewer: Reviewer) -> None:
    """Offer the first production batch that has traces for a certified reviewer."""
    open_to_all = (
        b for b in store.batches() if b.purpose == "production" and b.reviewer_id is None
    )
    mine = (b for b in open_to_all if b.is_for(reviewer.reviewer_id))
    work = next((b for b in mine if store.has_open_items(reviewer.reviewer_id, b.batch_id)), None)
    if work is not None and st.button(
        "Label production traces", key="certificate_label", type="primary"
    ):
        st.session_state[BATCH] = work.batch_id
        st.switch_page("views/label.py", query_params={"batch": work.batch_id})


def _where(stands: Standing) -> tuple[str, list[str]]:
    """Return where somebody stands, and what there is to say of it."""
    lines = [] if stands.certificate is None else _held(stands, stands.certificate)
    if stands.exam is not None:
        title = "Further traces are open" if stands.exam.tops_up else "Your examination is open"
        return title, [*_open(stands.exam), *lines]
    enough = stands.certificate is not None and (
        stands.certificate.private or not stands.private_demanded
    )
    if enough and stands.next.step != "certified":
        lines.append(
            "A lead allows you another examination. Until then this certificate stays valid."
            if stands.next.counted_from is None
            else "You can renew it now: take an examination."
        )
        lines += _next(stands)
    if enough:
        return "You are certified", lines
    if stands.certificate is not None:
        title = "Your certificate is not enough here"
    elif stands.last is None:
        title = "You have not been examined yet"
    elif stands.last.status == "passed":
        title = "Your certificate has expired"
    else:
        title = "You did not pass yet"
    if stands.private_demanded and stands.certificate is None:
        lines.append(
            "This team asks for a certificate on a private form: traces of its own, whose answers "
            "did not come with this tool."
        )
    if stands.practice is not None:
        lines.append(
            f"A practice round is open: {stands.practice.labelled} of {stands.practice.n} labelled."
        )
    if stands.next.own_form and stands.next.step != "lead":
        lines.append("A lead has allowed you another attempt.")
    return title, [*lines, *_next(stands)]


def _next(stands: Standing) -> list[str]:
    """Return what has to happen before an examination, and from when on; nothing: it may be."""
    lines = [] if stands.next.may else [f"Next: {stands.next.why}."]
    if stands.next.at is not None:
        lines.append(f"From {stands.next.at:%d %B %Y, %H:%M} UTC on.")
    return lines


def _held(stands: Standing, held: Certificate) -> list[str]:
    lines = [f"Passed on {held.issued_at:%d %B %Y}. Valid until {held.expires_at:%d %B %Y}."]
    lines.append("It was earned on a private form." if held.private else PUBLIC)
    if stands.private_demanded and not held.private:
        lines.append("This team asks for a private form: here it opens no batch.")
    if stands.next.at is not None and stands.next.step == "certified":
        lines.append(f"You can renew it from {stands.next.at:%d %B %Y} on.")
    return lines


def _open(exam: Exam) -> list[str]:
    left = f"{exam.labelled} of {exam.n} traces labelled."
    if exam.tops_up is None:
        return [f"{left} The result comes after the last one."]
    return [
        f"The agreement is there, but not every class has been shown on the form. {left}",
        "The further traces are of several classes. The result comes after the last one.",
    ]


def _practice(store: Store, reviewer: Reviewer, stands: Standing) -> None:
    st.markdown("#### Practise")
    if stands.exam is not None:
        st.text("While an examination is open, practice shows no canonical labels.")
        return
    st.text(
        "12 traces, focused on what you get wrong most. After each label you see the canonical "
        "label with its reasons."
    )
    dataset = session.reference_set(store)
    weak = [w for w in weak_nodes(store, dataset, reviewer.reviewer_id) if w.n]
    if weak:
        told = (f"{w.node.replace('_', ' ')} {w.errors} of {w.n} wrong" for w in weak)
        st.text("So far: " + "; ".join(told) + ".")
    if st.button(
        "Continue practising" if stands.practice else "Start a practice round",
        key="certificate_practise",
    ):
        _go(lambda: start_practice(store, dataset, reviewer.reviewer_id))


def _examination(
    store: Store, by: Examiner, reviewer: Reviewer, stands: Standing, *, lacks: str
) -> None:
    st.markdown("#### Examination")
    often = AttemptRule()
    n = data.form_size(by.dataset) if stands.exam is None else stands.exam.n
    st.text(
        f"About {n} traces. You can stop and continue at any time. There is no feedback and no "
        "skipping; your last label can be undone until the last trace is labelled."
        if n >= FULL_FORM
        else f"{n} further traces; no feedback, no skipping."
    )
    st.text(
        f"{data.pass_rule(store, by.dataset)} You have {often.attempts} attempts, "
        f"{often.apart.days * 24} hours and a practice round apart."
    )
    with st.expander("The exact rule"):
        rule = PassRule()
        st.text(
            f"The lower limit of AC1 against the canonical labels is {rule.ac1:.2f} or more, and "
            f"with a probability of {rule.chance:.0%} or more you recognise at least "
            f"{rule.recall:.0%} of each class. The attempts are counted by decision tree."
        )
    if (going_on := stands.exam) is not None:
        if st.button("Continue the examination", key="certificate_exam"):
            _go(lambda: going_on)
    elif stands.next.may and not lacks:
        if st.button("Start the examination", key="certificate_exam"):
            _confirm(store, by, reviewer, stands, n=n)
    else:
        st.text("You cannot start yet: see above what comes first.")


@st.dialog("Start the examination?")
def _confirm(store: Store, by: Examiner, reviewer: Reviewer, stands: Standing, *, n: int) -> None:
    pace = data.pace(store, reviewer.reviewer_id)
    minutes = "" if pace is None else f" At your pace they take about {n * pace / 60:.0f} minutes."
    st.text(f"{n} traces, one after the other.{minutes} {data.pass_rule(store, by.dataset)}")
    often = AttemptRule().attempts
    attempt = stands.next.used + 1
    st.text(
        (f"This is attempt {attempt} of {often}. " if attempt <= often else "")
        + "The attempt counts from the moment you start, and you can pause it."
    )
    st.button(
        "Start now", key="certificate_start", type="primary", shortcut="Enter", on_click=_start
    )  # fmt: skip
    if STARTED in st.session_state:
        st.rerun()


def _start() -> None:
    # The page that is drawn next starts it: a dialog cannot open another page.
    st.session_state[STARTED] = True


def _go(start: Callable[[], Exam | PracticeRound]) -> None:
    """Open the Label page on a batch, which is started now or is open."""
    try:
        batch_id = start().batch_id
    except CalibrationError as error:
        st.text(sentence(str(error)))
        return
    st.session_state[BATCH] = batch_id
    st.switch_page("views/label.py", query_params={"batch": batch_id})


def _result(store: Store, last: Exam) -> None:
    try:
        result.show(store, last)
    except CalibrationError as error:
        st.text(sentence(str(error)))


with st.container(key="page"):
    _page()
