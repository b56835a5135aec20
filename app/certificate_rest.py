"""Beside one's own standing: the chance to pass, and what leads decide on others."""

from uuid import uuid4

import altair as alt
import pandas as pd
import streamlit as st

from app import certificate_data, session
from app.components.charts import BLUE, ORANGE, ink
from calibration.analyses.examining import standing
from calibration.analyses.operating_curve import OperatingPoint
from calibration.errors import CalibrationError
from calibration.records import Reviewer
from calibration.store import Store

WHOLE, TWICE = "one examination", "within two attempts"
WHO, REASON, TOKEN, SAID = (f"certificate_{name}" for name in ("who", "reason", "token", "said"))


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
    said = "; ".join(f"{p.accuracy:.0%} right: {p.whole:.0%}" for p in points)
    st.altair_chart(chart, width="stretch", alt=f"Chance to pass one examination: {said}")
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
            "equally often in every class and errs at any question of the path alike."
        )


def for_leads(store: Store, lead: Reviewer) -> None:
    """Draw who is certified, and let a lead allow another attempt."""
    st.subheader("Others", anchor=False)
    st.caption("For leads: who is certified, and who has used up their attempts.")
    names = session.reviewer_names(store)
    people = [r for r in store.reviewers() if not r.simulated]
    stands = {
        r.reviewer_id: standing(store, r.reviewer_id, now=certificate_data.now()) for r in people
    }
    rows = [
        (names[who], s.certificate, s.next.used, s.next.why) for who, s in sorted(stands.items())
    ]
    st.dataframe(
        pd.DataFrame(
            {
                "reviewer": [name for name, *_ in rows],
                "certificate": [
                    "none" if c is None else f"until {c.expires_at:%d %b %Y}" for _, c, *_ in rows
                ],
                "form": [
                    "" if c is None else "private" if c.private else "public" for _, c, *_ in rows
                ],
                "attempts": [used for _, _, used, _ in rows],
                "next": [why for *_, why in rows],
            }
        ),
        hide_index=True, alt="Certificates of all reviewers",
    )  # fmt: skip
    stuck = [who for who, s in stands.items() if s.next.step == "lead" and who != lead.reviewer_id]
    if said := st.session_state.pop(SAID, ""):
        st.text(said)
    if not stuck:
        st.text("Nobody waits for a lead to allow another attempt.")
        return
    st.session_state.setdefault(TOKEN, uuid4().hex)
    with st.form("certificate_allow", border=True):
        st.selectbox(
            "Allow another attempt, on traces this team has adjudicated", stuck, key=WHO,
            format_func=lambda who: names[who],
        )  # fmt: skip
        st.text_input("Why", key=REASON, max_chars=500)
        st.form_submit_button(
            "Allow it", key="certificate_allow_it", on_click=_allow, args=(store, lead)
        )


def _allow(store: Store, lead: Reviewer) -> None:
    state = st.session_state
    who, reason, token = state[WHO], state[REASON], state[TOKEN]
    try:
        store.allow_attempt(client_token=token, reviewer_id=who, by=lead.reviewer_id, reason=reason)
    except CalibrationError as error:
        state[SAID] = f"Not allowed yet: {error}."
    else:
        state[SAID] = "Another attempt is allowed."
        state.pop(TOKEN, None)
