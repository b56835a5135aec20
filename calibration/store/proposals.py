"""What keeps coming back in adjudication, as sentences for the handbook: accepted or declined."""

from collections.abc import Sequence

import pandas as pd

from calibration.errors import InputError, LabelRefusedError
from calibration.store.database import Database, rows, utc_now
from calibration.store.label_checks import bounded
from calibration.taxonomy import Taxonomy

DECISIONS = ("accepted", "declined")
MAX_TEXT = 600


def decide_proposal(
    db: Database,
    taxonomy: Taxonomy,
    *,
    client_token: str,
    proposal_id: str,
    question: str,
    text: str,
    trace_ids: Sequence[str],
    status: str,
    decided_by: str,
    reason: str | None = None,
) -> None:
    """Append what a lead decided about a proposal, once; the newest decision counts.

    Raises
    ------
    InputError
        If `status` is no decision, or the question is not in the tree.
    LabelRefusedError
        If an accepted one has no text, a declined one no reason, or the token stands for
        something else.
    """
    text, reason = bounded(text, MAX_TEXT) or "", bounded(reason, MAX_TEXT)
    if status not in DECISIONS:
        raise InputError(f"status must be one of {', '.join(DECISIONS)}, got {status!r:.40}")
    if question not in {node.id for node in taxonomy.nodes}:
        raise InputError(f"question {question!r:.40} is not in the tree")
    if status == "accepted" and not text:
        raise LabelRefusedError("an accepted proposal needs its sentence")
    if status == "declined" and reason is None:
        raise LabelRefusedError("declining a proposal needs a reason")
    with db.write() as cursor:
        known = rows(
            cursor,
            "SELECT proposal_id, status, reviewer_id FROM proposal_event WHERE client_token = ?",
            [client_token],
        )
        if known:
            if tuple(known[0].values()) != (proposal_id, status, decided_by):
                raise LabelRefusedError("the token already stands for something else")
            return
        cursor.execute(
            "INSERT INTO proposal_event "
            "VALUES (nextval('event_seq'), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                client_token, proposal_id, taxonomy.version, question, text, list(trace_ids),
                status, reason, decided_by, utc_now(),
            ],
        )  # fmt: skip


def proposal_frame(db: Database, version: str) -> pd.DataFrame:
    """Return the newest decision on each proposal, newest first.

    Columns: proposal_id, question, text, trace_ids, status, reason, decided_by, created_at.
    """
    with db.read() as cursor:
        return cursor.execute(
            "SELECT proposal_id, question, text, trace_ids, status, reason, "
            "reviewer_id AS decided_by, created_at FROM proposal_event WHERE taxonomy_version = ? "
            "QUALIFY row_number() OVER (PARTITION BY proposal_id ORDER BY seq DESC) = 1 "
            "ORDER BY seq DESC",
            [version],
        ).df()


def handbook_additions(db: Database, version: str) -> dict[str, list[str]]:
    """Return the accepted sentences by question, the one accepted first at the start."""
    with db.read() as cursor:
        found = cursor.execute(
            "SELECT proposal_id, status, question, text FROM proposal_event "
            "WHERE taxonomy_version = ? ORDER BY seq",
            [version],
        ).fetchall()
    # Every label asks: ranking them in the query costs twice as much.
    accepted: dict[str, tuple[str, str]] = {}
    for proposal_id, status, question, text in found:
        accepted.pop(proposal_id, None)
        if status == "accepted":
            accepted[proposal_id] = question, text
    additions: dict[str, list[str]] = {}
    for question, text in accepted.values():
        additions.setdefault(question, []).append(text)
    return additions
