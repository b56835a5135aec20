"""The table of reviewers: certificate, agreement with the others, checks and drift."""

import pandas as pd
import streamlit as st

from app.views.certificate import data
from calibration.analyses.reviewers.drift import Checks, ReviewerChecks
from calibration.analyses.reviewers.examinations import exams_under_this_tree
from calibration.reporting.document import notes, percent_figure
from calibration.statistics.estimate import Estimate
from calibration.store import Store

NO_PART = (
    "no blind label on a trace that two reviewers share; let them label some of a batch with an "
    "overlap"
)


def show(store: Store, found: tuple[ReviewerChecks, ...], beside: dict[str, Estimate]) -> None:
    """Draw the table, and say what its agreement is."""
    _table(found, beside, _certificates(store, found))
    _about_agreement(found, beside)


def _about_agreement(found: tuple[ReviewerChecks, ...], beside: dict[str, Estimate]) -> None:
    """Say by which method, and why some have none."""
    known = [(of.name, beside[of.reviewer_id]) for of in found if of.reviewer_id in beside]
    lines = [line.removeprefix("+ ") for line in notes(known)]
    if without := [of.name for of in found if of.reviewer_id not in beside]:
        lines.append(f"{', '.join(without)}: {NO_PART}")
    if lines:
        st.text("Agreement with the others\n" + "\n".join(lines))
    method = next((value.method for _, value in known if value.interval is not None), "")
    st.caption(
        "Agrees with others: on each trace shared with others, the share of them who gave the same "
        "class; n is the shared traces of all production batches"
        + (f", 95 % intervals: {method}" if method else "")
        + ". Different is not wrong: check adjudicated traces."
    )
    st.page_link("views/agreement/page.py", label="Agreement, batch by batch")


def _certificates(store: Store, found: tuple[ReviewerChecks, ...]) -> list[str]:
    """Say in a few words what certificate each one has, and whether they are being examined."""
    now, tree = data.now(), store.taxonomy().version
    newest = {held.reviewer_id: held for held in store.certificates()}  # oldest first
    lines = []
    for of in found:
        held = newest.get(of.reviewer_id)
        words = "none"
        if held is not None and held.taxonomy_version != tree:
            words = "of an older taxonomy"
        elif held is not None:
            words = f"{'until' if held.expires_at > now else 'expired'} {held.expires_at:%d %b %Y}"
        if any(e.status is None for e in exams_under_this_tree(store, of.reviewer_id)):
            words = "being examined" if held is None else f"{words}; being examined"
        lines.append(words)
    return lines


def _table(
    found: tuple[ReviewerChecks, ...], beside: dict[str, Estimate], certificates: list[str]
) -> None:
    columns: dict[str, list[object]] = {
        "reviewer": [of.name for of in found],
        "certificate": [*certificates],
        "labels": [of.n_labels for of in found],
        "beside": [_agrees(beside.get(of.reviewer_id)) for of in found],
        "gold": [_hits(of.gold) for of in found],
        "gold_drift": [_drift(of.gold) for of in found],
        "repeats": [_hits(of.repeats) for of in found],
        "repeat_drift": [_drift(of.repeats) for of in found],
    }
    st.dataframe(
        pd.DataFrame(columns), hide_index=True, alt="Reviewers and their checks",
        column_config={
            "reviewer": st.column_config.TextColumn("reviewer", pinned=True),
            "beside": st.column_config.TextColumn(
                "agrees with others",
                help="Share of the others who gave the same class to a shared trace; 95 %",
            ),
            "gold": st.column_config.TextColumn(
                "accuracy on gold", help="Silent gold given the adjudicated class; 95 %, Wilson"
            ),
            "gold_drift": st.column_config.TextColumn(
                "drift", help="On gold; the test begins after 30 checks"
            ),
            "repeats": st.column_config.TextColumn(
                "self-agreement",
                help="Own repeats given the class of the first time; 95 %, Wilson",
            ),
            "repeat_drift": st.column_config.TextColumn(
                "drift ", help="On own repeats; the test begins after 30 checks"
            ),
        },
    )  # fmt: skip


def _agrees(beside: Estimate | None) -> str:
    if beside is None or not beside.ok:
        return "not estimable"
    return f"{percent_figure(beside)}, n = {beside.n:,}"


def _hits(checks: Checks) -> str:
    drift = checks.drift
    return (
        f"{percent_figure(drift.overall)}, {drift.n_hits}/{drift.n}" if drift.n else "no check yet"
    )


def _drift(checks: Checks) -> str:
    """Return in a word or two what a kind of checks shows."""
    drift = checks.drift
    if drift.marked_at is not None:
        return f"marked at {drift.marked_at}"
    return needs(drift.status).removesuffix(" checks")


def needs(status: str) -> str:
    """Return what a drift test still needs, without what every status begins with."""
    return status.removeprefix("not_estimable: ")
