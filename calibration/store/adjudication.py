"""Adjudication events: the lead's batch, settled traces, handbook proposals.

No class ever becomes consensus by majority. A consensus stands until a later adjudication or a
withdrawal, also when labels that it settled have changed since: then it is marked `reopened`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pandas as pd

from calibration.errors import InputError, LabelRefusedError
from calibration.records import CAUSES, Evidence
from calibration.store.batches import Batch, add_batch, batches
from calibration.store.database import Cursor, Database, record_audit, rows, utc_now
from calibration.store.labels import bounded
from calibration.taxonomy import Taxonomy

# Labels that count: a label given after its reviewer was shown what others said settles nothing.
COUNTED = (
    "(SELECT * FROM label_current l WHERE l.batch_id = $batch AND l.taxonomy_version = $version "
    "AND l.kind = 'label' AND NOT EXISTS (SELECT 1 FROM exposure e "
    "WHERE e.reviewer_id = l.reviewer_id AND e.trace_id = l.trace_id AND e.seq < l.seq))"
)

# Whether the labels that a consensus settled are others by now.
REOPENED = (
    "coalesce(c.batch_id = $batch AND list_sort(c.label_events) IS DISTINCT FROM coalesce("
    "(SELECT list_sort(list(n.event_id)) FROM counted n WHERE n.trace_id = c.trace_id), "
    "[]::UUID[]), FALSE)"
)


DECISIONS = ("accepted", "declined")

MAX_TEXT = 600


_COLUMNS = (
    "event_id::VARCHAR AS event_id, kind, taxonomy_version, batch_id, adjudicator, blind_outcome, "
    "blind, outcome, question, cause, rationale, own_label, (SELECT to_json(list("
    "{'reviewer_id': e.reviewer_id, 'outcome': e.outcome} ORDER BY e.seq)) FROM label_event e "
    "WHERE list_contains(c.label_events, e.event_id)) AS labels, simulated, created_at"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjudicationReceipt:
    """Proof that an adjudication is stored; `duplicate` when it already was."""

    event_id: str
    outcome: str
    duplicate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """What the adjudicator decided before the answers were shown; `blind` False: after."""

    outcome: str
    answers: dict[str, str]
    rationale: str | None
    blind: bool


def adjudicate(
    db: Database,
    taxonomy: Taxonomy,
    *,
    trace_id: str,
    answers: dict[str, str],
    adjudicator: str,
    batch_id: str | None = None,
    cause: str | None = None,
    rationale: str | None = None,
    label_events: Sequence[str] | None = None,
    supersedes: str | None = None,
    simulated: bool = False,
    client_token: str | None = None,
) -> AdjudicationReceipt:
    """Append a consensus event; the class is derived from the answers.

    `batch_id` names the production batch whose labels it settles: the adjudicator must have
    decided the trace blind in their own batch of it. Without one it came from elsewhere, and has
    no provenance but its adjudicator. `label_events` and `supersedes` are the labels and the
    consensus that the adjudicator was shown: it is refused when they are others by now.

    Raises
    ------
    InputError
        If the trace or the batch is not in the store, or `cause` is none.
    LabelRefusedError
        If there is no decision from before the answers were shown, a cause or rationale is
        missing, something changed since, or the token stands for something else.
    TaxonomyError
        If the answers do not lead to a class.
    """
    token, outcome = client_token or str(uuid4()), taxonomy.outcome(answers)
    if cause is not None and cause not in CAUSES:
        raise InputError(f"cause must be one of {', '.join(CAUSES)}, got {cause!r:.40}")
    event: dict[str, Any] = {
        "trace_id": trace_id, "answers": json.dumps(answers), "outcome": outcome,
        "adjudicator": adjudicator, "cause": cause, "rationale": bounded(rationale),
    }  # fmt: skip
    with db.write() as cursor:
        stored = _known(cursor, token, "consensus", trace_id, adjudicator)
        if stored is not None:
            return stored
        if not cursor.execute("SELECT 1 FROM trace WHERE trace_id = ?", [trace_id]).fetchall():
            raise InputError(f"trace {trace_id!r} is not in the store")
        if batch_id is None:
            event["simulated"] = simulated
        else:
            labels = counted_labels(cursor, taxonomy.version, batch_id, trace_id)
            _check_unchanged(cursor, taxonomy.version, trace_id, labels, label_events, supersedes)
            event |= _provenance(cursor, taxonomy, event, batch_id, labels)
        event_id = _append(cursor, taxonomy.version, "consensus", token, event)
    return AdjudicationReceipt(event_id=event_id, outcome=outcome, duplicate=False)


def _provenance(
    cursor: Cursor,
    taxonomy: Taxonomy,
    event: dict[str, Any],
    batch_id: str,
    labels: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return where a consensus comes from, once its reasons are complete."""
    trace_id, adjudicator, outcome = event["trace_id"], event["adjudicator"], event["outcome"]
    check_item(cursor, batch_id, [trace_id])
    blind = blind_decision(cursor, taxonomy.version, adjudicator, batch_id, trace_id)
    if blind is None:
        raise LabelRefusedError(
            f"trace {trace_id!r:.80} must be decided blind before its labels are settled"
        )
    classes = [label["outcome"] for label in labels]
    if event["cause"] is None and len(set(classes)) > 1:
        raise LabelRefusedError("where reviewers differ, an adjudication needs a cause")
    if event["rationale"] is None and outcome not in classes:
        raise LabelRefusedError("a class that no reviewer gave needs a rationale")
    if event["rationale"] is None and outcome != blind.outcome:
        raise LabelRefusedError(
            "you decided otherwise before you saw the answers: that needs a rationale"
        )
    (simulated,) = cursor.execute(
        "SELECT t.simulated OR coalesce(r.simulated, FALSE) FROM trace t LEFT JOIN reviewer r "
        "ON r.reviewer_id = ? WHERE t.trace_id = ?",
        [adjudicator, trace_id],
    ).fetchone() or (False,)
    return {
        "batch_id": batch_id,
        "label_events": [str(label["event_id"]) for label in labels],
        # Where reviewers agree: at which question the final class leaves theirs.
        "question": taxonomy.first_parting(classes) or taxonomy.first_parting([*classes, outcome]),
        "blind_outcome": blind.outcome,
        "blind": blind.blind,
        "own_label": adjudicator in {label["reviewer_id"] for label in labels},
        "simulated": simulated,
    }


def withdraw_consensus(
    db: Database,
    taxonomy: Taxonomy,
    *,
    client_token: str,
    trace_id: str,
    adjudicator: str,
    reason: str | None = None,
) -> None:
    """Take the consensus of a trace back, once; the trace is open again.

    Raises
    ------
    LabelRefusedError
        If the trace has no consensus, or the token stands for something else.
    """
    with db.write() as cursor:
        if _known(cursor, client_token, "withdrawal", trace_id, adjudicator) is not None:
            return
        standing = standing_consensus(cursor, taxonomy.version, trace_id)
        if standing is None:
            raise LabelRefusedError(f"trace {trace_id!r:.80} has no consensus to withdraw")
        event = {name: standing[name] for name in ("trace_id", "batch_id", "simulated")}
        event |= {"adjudicator": adjudicator, "rationale": bounded(reason)}
        _append(cursor, taxonomy.version, "withdrawal", client_token, event)


def counted_labels(
    cursor: Cursor, version: str, batch_id: str, trace_id: str
) -> list[dict[str, Any]]:
    """Return the labels of a trace that count in a batch, in the order given."""
    return _named(
        cursor, f"FROM {COUNTED} WHERE trace_id = $trace ORDER BY seq", batch_id, version,
        trace=trace_id,
    )  # fmt: skip


def standing_consensus(cursor: Cursor, version: str, trace_id: str) -> dict[str, Any] | None:
    """Return the consensus of a trace that stands."""
    found = rows(
        cursor,
        "SELECT event_id, trace_id, batch_id, outcome, adjudicator, cause, rationale, simulated "
        "FROM consensus WHERE trace_id = ? AND taxonomy_version = ?",
        [trace_id, version],
    )
    return found[0] if found else None


def blind_decision(
    cursor: Cursor, version: str, adjudicator: str, batch_id: str, trace_id: str
) -> Blind | None:
    """Return what the adjudicator decided in their own batch; None while nothing stands there.

    The last decision from before anything was shown counts, whatever came after it.
    """
    given = rows(
        cursor,
        "SELECT outcome, answers, rationale, NOT EXISTS (SELECT 1 FROM exposure e "
        "WHERE e.reviewer_id = l.reviewer_id AND e.trace_id = l.trace_id AND e.seq < l.seq) "
        "AS blind FROM label_event l JOIN batch b USING (batch_id) WHERE b.token = $1 "
        "AND l.trace_id = $2 AND l.reviewer_id = $3 AND l.taxonomy_version = $4 "
        "AND l.kind = 'label' AND EXISTS (SELECT 1 FROM label_current c WHERE "
        "c.batch_id = l.batch_id AND c.trace_id = l.trace_id AND c.reviewer_id = l.reviewer_id "
        "AND c.taxonomy_version = $4 AND c.kind = 'label') ORDER BY blind DESC, l.seq DESC LIMIT 1",
        [batch_token(batch_id, adjudicator), trace_id, adjudicator, version],
    )
    return Blind(**given[0] | {"answers": json.loads(given[0]["answers"])}) if given else None


def batch_token(batch_id: str, adjudicator: str) -> str:
    """Return the token of the batch in which an adjudicator decides the traces of another one."""
    return json.dumps(["adjudication", batch_id, adjudicator])


def check_item(cursor: Cursor, batch_id: str, trace_ids: Sequence[str]) -> None:
    """Require traces of a production batch."""
    found = cursor.execute(
        "SELECT trace_id FROM batch_item JOIN batch USING (batch_id) "
        "WHERE batch_id = ? AND purpose = 'production'",
        [batch_id],
    ).fetchall()
    if not found:
        raise InputError(f"there is no production batch {batch_id!r:.80}")
    if missing := sorted(set(trace_ids) - {row[0] for row in found}):
        raise InputError(f"trace {missing[0]!r:.80} is not in batch {batch_id!r}")


def _check_unchanged(
    cursor: Cursor,
    version: str,
    trace_id: str,
    labels: list[dict[str, Any]],
    shown: Sequence[str] | None,
    supersedes: str | None,
) -> None:
    if shown is not None and set(shown) != {str(label["event_id"]) for label in labels}:
        raise LabelRefusedError("its labels have changed since they were shown; look again")
    standing = standing_consensus(cursor, version, trace_id)
    if standing is not None and str(standing["event_id"]) != supersedes:
        raise LabelRefusedError("somebody has settled this trace meanwhile; look again")


def _known(
    cursor: Cursor, token: str, kind: str, trace_id: str, adjudicator: str
) -> AdjudicationReceipt | None:
    found = rows(
        cursor,
        "SELECT event_id, kind, trace_id, adjudicator, outcome FROM adjudication_event "
        "WHERE client_token = ?",
        [token],
    )
    if not found:
        return None
    event = found[0]
    if (event["kind"], event["trace_id"], event["adjudicator"]) != (kind, trace_id, adjudicator):
        raise LabelRefusedError(f"the token {token!r:.80} already stands for something else")
    return AdjudicationReceipt(
        event_id=str(event["event_id"]), outcome=event["outcome"] or "", duplicate=True
    )


def _append(cursor: Cursor, version: str, kind: str, token: str, event: dict[str, Any]) -> str:
    values = event | {
        "kind": kind, "client_token": token, "taxonomy_version": version, "created_at": utc_now(),
    }  # fmt: skip
    (event_id,) = cursor.execute(
        f"INSERT INTO adjudication_event (seq, {', '.join(values)}) VALUES "
        f"(nextval('event_seq'), {', '.join('?' * len(values))}) RETURNING event_id",
        list(values.values()),
    ).fetchone() or ("",)
    return str(event_id)


def _named(
    cursor: Cursor, sql: str, batch_id: str, version: str, **values: str
) -> list[dict[str, Any]]:
    result = cursor.execute(sql, {"batch": batch_id, "version": version} | values)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledLabel:
    """One of the labels to settle."""

    event_id: str
    reviewer_id: str
    outcome: str
    answers: dict[str, str]
    rationale: str | None
    evidence: tuple[Evidence, ...]
    confidence: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """A trace that its adjudicator has decided blind, and what the reviewers said of it.

    `question` is where the labels part first, None where they agree; `flags` are the reasons of
    its flags, empty where none was given. `supersedes` is the consensus that stands (`standing`,
    its class) and was reopened, because labels changed since.
    """

    trace_id: str
    blind: Blind
    question: str | None
    labels: tuple[SettledLabel, ...]
    flags: tuple[str, ...]
    supersedes: str | None
    standing: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastStep:
    """What one undo would take back: an adjudication, or a skip (`outcome` None)."""

    trace_id: str
    outcome: str | None


def adjudication_batch(db: Database, adjudicator: str, batch_id: str) -> Batch | None:
    """Return the batch in which this person decides the traces of a production batch."""
    with db.read() as cursor:
        found = cursor.execute(
            "SELECT batch_id FROM batch WHERE token = ?", [batch_token(batch_id, adjudicator)]
        ).fetchone()
    if found is None:
        return None
    return next(b for b in batches(db) if b.batch_id == found[0])


def serve_adjudication(
    db: Database, version: str, *, adjudicator: str, batch_id: str, trace_ids: Sequence[str]
) -> Batch | None:
    """Put these traces before an adjudicator, in this order; return the batch that holds them.

    What they have decided stays in it, everything else in it is replaced. Without traces and
    without an earlier call there is no batch.

    Raises
    ------
    InputError
        If a trace is not in the production batch, or the adjudicator is no lead.
    """
    wanted = list(dict.fromkeys(trace_ids))
    with db.read() as cursor:
        check_item(cursor, batch_id, wanted)
        _check_lead(cursor, adjudicator)
    batch = adjudication_batch(db, adjudicator, batch_id)
    if batch is None:
        if not wanted:
            return None
        return add_batch(
            db, purpose="adjudication", trace_ids=wanted, inclusion_probability=None,
            labels_wanted=1, design={"kind": "adjudication", "of": batch_id},
            token=batch_token(batch_id, adjudicator), reviewer_id=adjudicator,
        )  # fmt: skip
    with db.write() as cursor:
        items = _column(
            cursor, "SELECT trace_id FROM batch_item WHERE batch_id = ? ORDER BY position",
            [batch.batch_id],
        )  # fmt: skip
        decided = set(
            _column(
                cursor,
                "SELECT trace_id FROM label_current WHERE batch_id = ? AND taxonomy_version = ?",
                [batch.batch_id, version],
            )
        )
        waiting = [t for t in wanted if t not in decided]
        if [t for t in items if t not in decided] != waiting:
            _replace(cursor, batch.batch_id, [t for t in items if t in decided] + waiting)
            db.progress.forget_plan(batch.batch_id)
    return adjudication_batch(db, adjudicator, batch_id)


def _replace(cursor: Cursor, batch_id: str, trace_ids: list[str]) -> None:
    cursor.execute(
        "DELETE FROM batch_item WHERE batch_id = ? AND NOT list_contains(?::VARCHAR[], trace_id)",
        [batch_id, trace_ids],
    )
    if trace_ids:
        cursor.execute(
            "INSERT INTO batch_item SELECT ?, unnest(?::VARCHAR[]), unnest(range(?)), NULL, 1, "
            "NULL ON CONFLICT (batch_id, trace_id) DO UPDATE SET position = excluded.position",
            [batch_id, trace_ids, len(trace_ids)],
        )
    record_audit(cursor, "adjudication batch", batch_id=batch_id, n=len(trace_ids))


def _check_lead(cursor: Cursor, adjudicator: str) -> None:
    lead = cursor.execute(
        "SELECT 1 FROM reviewer WHERE reviewer_id = ? AND role IN ('lead', 'admin')", [adjudicator]
    ).fetchone()
    if lead is None:
        raise InputError(f"{adjudicator!r:.80} is no lead of this store")


def _column(cursor: Cursor, sql: str, values: list[Any]) -> list[Any]:
    return [row[0] for row in cursor.execute(sql, values).fetchall()]


def settlement(
    db: Database, taxonomy: Taxonomy, *, adjudicator: str, batch_id: str
) -> Settlement | None:
    """Return the trace that this adjudicator has decided blind and not settled yet.

    Of several the one that was touched last. It is written down that they are shown its labels.
    """
    version = taxonomy.version
    with db.write() as cursor:
        trace_id = _unsettled(cursor, version, adjudicator, batch_id)
        blind = trace_id and blind_decision(cursor, version, adjudicator, batch_id, trace_id)
        if not trace_id or not blind:
            return None
        cursor.execute(
            "INSERT INTO exposure VALUES (?, ?, 'labels', nextval('event_seq'), ?) "
            "ON CONFLICT (reviewer_id, trace_id, what) DO NOTHING",
            [adjudicator, trace_id, utc_now()],
        )
        labels = counted_labels(cursor, version, batch_id, trace_id)
        standing = standing_consensus(cursor, version, trace_id)
        flags = _column(
            cursor,
            "SELECT coalesce(reason, '') FROM flag_current WHERE batch_id = ? AND trace_id = ? "
            "ORDER BY seq",
            [batch_id, trace_id],
        )
    return Settlement(
        trace_id=trace_id,
        blind=blind,
        question=taxonomy.first_parting(label["outcome"] for label in labels),
        labels=tuple(_label(label) for label in labels),
        flags=tuple(flags),
        supersedes=None if standing is None else str(standing["event_id"]),
        standing=None if standing is None else standing["outcome"],
    )


def _unsettled(cursor: Cursor, version: str, adjudicator: str, batch_id: str) -> str | None:
    found = cursor.execute(
        f"WITH counted AS {COUNTED} SELECT l.trace_id FROM label_current l "
        "JOIN batch b ON b.batch_id = l.batch_id AND b.token = $token "
        "LEFT JOIN consensus c ON c.trace_id = l.trace_id AND c.taxonomy_version = $version "
        "WHERE l.reviewer_id = $adjudicator AND l.kind = 'label' "
        f"AND l.taxonomy_version = $version AND (c.event_id IS NULL OR {REOPENED}) "
        "ORDER BY greatest(l.seq, coalesce((SELECT max(a.seq) FROM adjudication_event a "
        "WHERE a.trace_id = l.trace_id), 0)) DESC LIMIT 1",
        {
            "batch": batch_id, "version": version, "adjudicator": adjudicator,
            "token": batch_token(batch_id, adjudicator),
        },
    ).fetchone()  # fmt: skip
    return None if found is None else str(found[0])


def _label(row: dict[str, Any]) -> SettledLabel:
    return SettledLabel(
        event_id=str(row["event_id"]),
        reviewer_id=row["reviewer_id"],
        outcome=row["outcome"],
        answers=json.loads(row["answers"] or "{}"),
        rationale=row["rationale"],
        evidence=tuple(Evidence(**part) for part in json.loads(row["evidence"] or "[]")),
        confidence=row["confidence"],
    )


def last_adjudication(
    db: Database, taxonomy: Taxonomy, *, adjudicator: str, batch_id: str
) -> LastStep | None:
    """Return what one undo would take back: the last adjudication that stands, or a later skip."""
    with db.read() as cursor:
        found = rows(
            cursor,
            "SELECT trace_id, outcome FROM (SELECT seq, trace_id, outcome FROM consensus "
            "WHERE adjudicator = $1 AND batch_id = $2 AND taxonomy_version = $3 UNION ALL "
            "SELECT seq, trace_id, NULL FROM label_current JOIN batch b USING (batch_id) "
            "WHERE b.token = $4 AND label_current.reviewer_id = $1 AND taxonomy_version = $3 "
            "AND kind = 'skip') ORDER BY seq DESC LIMIT 1",
            [adjudicator, batch_id, taxonomy.version, batch_token(batch_id, adjudicator)],
        )
    return LastStep(**found[0]) if found else None


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


def consensus_history(db: Database, trace_id: str) -> pd.DataFrame:
    """Return every adjudication and withdrawal of a trace, oldest first.

    Columns: event_id, kind, taxonomy_version, batch_id, adjudicator, blind_outcome, blind,
    outcome, question, cause, rationale, own_label, labels (JSON text: reviewer_id and outcome of
    the settled labels, as they stood), simulated, created_at.
    """
    with db.read() as cursor:
        return cursor.execute(
            f"SELECT {_COLUMNS} FROM adjudication_event c WHERE trace_id = ? ORDER BY seq",
            [trace_id],
        ).df()


def adjudication_frame(db: Database, version: str, batch_id: str) -> pd.DataFrame:
    """Return the consensus that stands of each trace of a batch, newest first.

    Columns: trace_id, those of `consensus_history`, and reopened: the labels that it settled are
    others by now. It stays consensus until the lead decides again.
    """
    with db.read() as cursor:
        return cursor.execute(
            f"WITH counted AS {COUNTED} SELECT trace_id, {_COLUMNS}, {REOPENED} AS reopened "
            "FROM consensus c WHERE taxonomy_version = $version AND trace_id IN "
            "(SELECT trace_id FROM batch_item WHERE batch_id = $batch) ORDER BY seq DESC",
            {"batch": batch_id, "version": version},
        ).df()
