"""Beside one's own standing: the chance to pass, and what leads decide on others."""

from datetime import datetime
from uuid import uuid4

import altair as alt
import pandas as pd
import streamlit as st

from app import session
from app.components.charts import BLUE, ORANGE, ink
from app.frame import plain
from app.views.certificate import data
from calibration.analyses.reviewers.drift import held_certificates
from calibration.analyses.reviewers.exam_report import OperatingPoint
from calibration.analyses.reviewers.examinations import Examiner, Standing, no_own_form, standing
from calibration.errors import CalibrationError
from calibration.records import Reviewer
from calibration.reviewers.certification import AttemptRule
from calibration.store import Store

Others = list[tuple[Reviewer, Standing]]
AGAIN = " (certified: would be examined again)"
TOO_FEW = "allowed; too few adjudicated traces"
WHOLE, TWICE = "one examination", "within two attempts"

WHO, REASON, TOKEN, MESSAGE = (
    f"certificate_{name}" for name in ("who", "reason", "token", "message")
)


def chance(points: tuple[OperatingPoint, ...]) -> None:
    """Draw the chance to pass by true accuracy, with its table."""
    frame = pd.DataFrame(
        [
            (100 * p.accuracy, 100 * chance, of)
            for p in points
            for of, chance in ((WHOLE, p.whole), (TWICE, p.twice))
        ],
        columns=["accuracy", "chance", "of"],
    )  # fmt: skip
    chart = (
        alt.Chart(frame)
        .mark_line(point=True)
        .encode(
            x=alt.X("accuracy:Q", title="right, of 100 traces", scale=alt.Scale(zero=False)),
            y=alt.Y("chance:Q", title="passes, %", scale=alt.Scale(domain=[0, 100])),
            color=alt.Color(
                "of:N", scale=alt.Scale(domain=[WHOLE, TWICE], range=[BLUE, ORANGE]),
                legend=alt.Legend(title=None, orient="bottom", labelColor=ink()),
            ),
            tooltip=[
                alt.Tooltip("of:N", title=" "), alt.Tooltip("accuracy:Q", title="right"),
                alt.Tooltip("chance:Q", title="passes, %", format=".1f"),
            ],
        )
        .properties(height=300)
    )  # fmt: skip
    chances = "; ".join(f"{p.accuracy:.0%} right: {p.whole:.0%}" for p in points)
    st.altair_chart(chart, width="stretch", alt=f"Chance to pass one examination: {chances}")
    with st.expander("The numbers as a table"):
        st.dataframe(
            pd.DataFrame(
                {
                    "right": [f"{p.accuracy:.0%}" for p in points],
                    "AC1 alone": [f"{p.agreement:.1%}" for p in points],
                    "AC1, recall of .6 seen": [f"{p.with_floor:.1%}" for p in points],
                    "whole rule": [f"{p.whole:.1%}" for p in points],
                    TWICE: [f"{p.twice:.1%}" for p in points],
                }
            ),
            hide_index=True, alt="Chance to pass by true accuracy", height="content",
        )  # fmt: skip
        st.caption(
            "Simulated on 70 traces in the mix of the shipped forms, for a reviewer who is right "
            "equally often in every class and is equally likely to be wrong at any question of "
            "the path."
        )


def others(store: Store) -> Others:
    """Return where everybody stands, by name; of the last minute, for it takes 40 ms a person."""
    minute = data.now().replace(second=0, microsecond=0)
    return _others(str(store.path), store.label_state(), minute, store)


@st.cache_resource(show_spinner=False, max_entries=4)
def _others(path: str, labels: tuple[int, ...], minute: datetime, _store: Store) -> Others:
    people = sorted((r for r in _store.reviewers() if not r.simulated), key=lambda r: r.name)
    now = data.now()
    return [(r, standing(_store, r.reviewer_id, now=now)) for r in people]


def _stuck(everybody: Others, lead: Reviewer) -> Others:
    """Return those who wait for a lead; nobody allows it to themselves."""
    return [
        (r, s) for r, s in everybody if s.next.step == "lead" and r.reviewer_id != lead.reviewer_id
    ]


def who_waits(everybody: Others, lead: Reviewer) -> None:
    """Say at the top of the page that somebody waits for a lead."""
    if stuck := _stuck(everybody, lead):
        who = (
            f"{stuck[0][0].name} has used up both attempts and waits"
            if len(stuck) == 1
            else f"{len(stuck)} people have used up both attempts and wait"
        )
        st.text(f"{who} for a lead's decision: see Others, at the end of this page.")


def for_leads(store: Store, by: Examiner, lead: Reviewer, everybody: Others) -> None:
    """Draw who is certified, and let a lead allow another attempt."""
    st.subheader("Others", anchor=False)
    st.caption("For leads: who is certified, and who has used up their attempts.")
    names = session.reviewer_names(store)
    ended = {who: until for who, (_, until) in held_certificates(store).items()}
    st.dataframe(
        pd.DataFrame(
            {
                "reviewer": [names[r.reviewer_id] for r, _ in everybody],
                "certificate": [_held(s, ended.get(r.reviewer_id)) for r, s in everybody],
                "attempts": [s.next.used for _, s in everybody],
                "next": [
                    TOO_FEW
                    if s.next.may and s.next.own_form and no_own_form(store, by, r.reviewer_id)
                    else _next(s)
                    for r, s in everybody
                ],
            }
        ),
        hide_index=True, alt="Certificates of all reviewers",
    )  # fmt: skip
    if message := st.session_state.pop(MESSAGE, ""):
        st.text(message)
    stuck = _stuck(everybody, lead)
    certified = [
        (r, s)
        for r, s in everybody
        if s.next.step == "certified" and r.reviewer_id != lead.reviewer_id
    ]
    if not stuck:
        st.text("Nobody is waiting for another attempt.")
    if stuck or certified:
        _decide(store, by, lead, [*stuck, *certified], waiting=bool(stuck))


def _decide(store: Store, by: Examiner, lead: Reviewer, of: Others, *, waiting: bool) -> None:
    """Let a lead allow another attempt: who is certified may be examined again, after drift say."""
    names, stands = session.reviewer_names(store), {r.reviewer_id: s for r, s in of}

    def called(who: str) -> str:
        return names[who] + (AGAIN if stands[who].next.step == "certified" else "")

    st.session_state.setdefault(TOKEN, uuid4().hex)
    with (
        st.container(border=True, key="certificate_allow")
        if waiting
        else st.expander("Examine a certified reviewer again")
    ):
        who = st.selectbox(
            "Allow another attempt to", list(stands), key=WHO, format_func=called,
            help="From the third attempt on, the traces are those that this team has adjudicated.",
        )  # fmt: skip
        own = stands[who].next.used >= AttemptRule().attempts
        if lacks := no_own_form(store, by, who) if own else "":
            st.text(
                f"{names[who]} could not start yet: {lacks}. You can allow it anyway; it "
                "holds until they start."
            )
        with st.form("certificate_why", border=False):
            st.text_input("Why", key=REASON, max_chars=500)
            st.form_submit_button(
                f"Allow {plain(names[who])} another attempt", key="certificate_allow_it",
                on_click=_allow, args=(store, lead, who, names[who]),
            )  # fmt: skip


def _held(stands: Standing, ended: datetime | None) -> str:
    held = stands.certificate
    if held is not None:
        form = "private form" if held.private else "public form"
        less = stands.private_demanded and not held.private
        return f"until {held.expires_at:%d %b %Y}, {form}{': not enough here' if less else ''}"
    if ended is None:
        return "none"
    if ended < data.now():
        return f"expired {ended:%d %b %Y}"
    return "expired: the decision tree has changed"


def _next(stands: Standing) -> str:
    """Say in a few words what comes next."""
    at = "" if stands.next.at is None else f"{stands.next.at:%d %b %Y, %H:%M} UTC"
    return {
        "start": "an examination",
        "go_on": "an examination is open",
        "certified": f"may renew it from {at}",
        "wait": f"waits until {at}",
        "practise": "a practice round first",
        "lead": "waits for a lead",
    }[stands.next.step]


def _allow(store: Store, lead: Reviewer, who: str, name: str) -> None:
    state = st.session_state
    reason, token = state[REASON], state[TOKEN]
    try:
        store.allow_attempt(client_token=token, reviewer_id=who, by=lead.reviewer_id, reason=reason)
    except CalibrationError as error:
        state[MESSAGE] = f"Not allowed yet: {error}."
    else:
        state[MESSAGE] = f"{name} is allowed another attempt. Their Certificate page says so."
        _others.clear()
        # The reason is about this one person.
        state[REASON] = ""
        state.pop(TOKEN, None)
