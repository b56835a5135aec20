"""Adjudication events: the lead's batch, consensus, handbook proposals.

No consensus comes from a majority. It holds until a later adjudication or a withdrawal; when the
labels behind it change, it is marked `reopened`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pandas as pd

from calibration.errors import InputError, LabelRefusedError
from calibration.records import CAUSES, Label, LabelDraft
from calibration.store.batches import Batch, BatchStore
from calibration.store.database import Cursor, event_of_token, record_audit, rows, utc_now
from calibration.store.labels import Receipt, bounded, read_labels
from calibration.store.leases import StoreProgress
from calibration.store.people import ADMIN, LEAD, REVIEWER, check_lead, open_to
from calibration.store.traces import ImportResult
from calibration.taxonomy import Taxonomy

# Labels that count: blind ones.
COUNTED = (
    "(SELECT * FROM label_current l WHERE l.batch_id = $batch AND l.taxonomy_version = $version "
    "AND l.kind = 'label' AND NOT EXISTS (SELECT 1 FROM exposure e "
    "WHERE e.reviewer_id = l.reviewer_id AND e.trace_id = l.trace_id AND e.seq < l.seq))"
)

# Whether the labels behind a consensus have changed.
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


def _provenance(
    cursor: Cursor,
    taxonomy: Taxonomy,
    event: dict[str, Any],
    batch_id: str,
    labels: list[Label],
) -> dict[str, Any]:
    """Check the reasons of a consensus and return its provenance."""
    trace_id, adjudicator, outcome = event["trace_id"], event["adjudicator"], event["outcome"]
    check_item(cursor, batch_id, [trace_id])
    blind = blind_decision(cursor, taxonomy.version, adjudicator, batch_id, trace_id)
    if blind is None:
        raise LabelRefusedError(
            f"trace {trace_id!r:.80} must be decided blind before it gets a final label"
        )
    classes = [label.outcome for label in labels]
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
        "label_events": [label.event_id for label in labels],
        # Where reviewers agree: the question at which the final class departs from theirs.
        "question": taxonomy.first_parting(classes) or taxonomy.first_parting([*classes, outcome]),
        "blind_outcome": blind.outcome,
        "blind": blind.blind,
        "own_label": adjudicator in {label.reviewer_id for label in labels},
        "simulated": simulated,
    }


def counted_labels(cursor: Cursor, version: str, batch_id: str, trace_id: str) -> list[Label]:
    """Return the labels of a trace that count in a batch, oldest first."""
    return read_labels(
        cursor,
        f"FROM {COUNTED} AS l WHERE l.trace_id = $trace ORDER BY l.seq",
        {"batch": batch_id, "version": version, "trace": trace_id},
    )


def standing_consensus(cursor: Cursor, version: str, trace_id: str) -> dict[str, Any] | None:
    """Return the consensus of a trace that is in force."""
    found = rows(
        cursor,
        "SELECT event_id, trace_id, batch_id, outcome, adjudicator, cause, rationale, simulated "
        "FROM consensus WHERE trace_id = ? AND taxonomy_version = ?",
        [trace_id, version],
    )
    return found[0] if found else None


def blind_decision(
    cursor: Cursor, version: str, adjudicator: str, batch_id: str, trace_id: str
) -> Label | None:
    """Return the adjudicator's own decision, the last blind one if any; None while open."""
    given = read_labels(
        cursor,
        "FROM label_event l JOIN batch b ON b.batch_id = l.batch_id WHERE b.token = $1 "
        "AND l.trace_id = $2 AND l.reviewer_id = $3 AND l.taxonomy_version = $4 "
        "AND l.kind = 'label' AND EXISTS (SELECT 1 FROM label_current c WHERE "
        "c.batch_id = l.batch_id AND c.trace_id = l.trace_id AND c.reviewer_id = l.reviewer_id "
        "AND c.taxonomy_version = $4 AND c.kind = 'label') ORDER BY blind DESC, l.seq DESC LIMIT 1",
        [batch_token(batch_id, adjudicator), trace_id, adjudicator, version],
    )
    return given[0] if given else None


def batch_token(batch_id: str, adjudicator: str) -> str:
    """Return the token of an adjudicator's own batch for the traces of a production batch."""
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
    labels: list[Label],
    shown: Sequence[str] | None,
    supersedes: str | None,
) -> None:
    if shown is not None and set(shown) != {label.event_id for label in labels}:
        raise LabelRefusedError(
            "its labels have changed since they were shown: reload and read them again"
        )
    standing = standing_consensus(cursor, version, trace_id)
    if standing is not None and str(standing["event_id"]) != supersedes:
        raise LabelRefusedError(
            "somebody else has adjudicated this trace meanwhile: reload and read its labels again"
        )


def _known(
    cursor: Cursor, token: str, kind: str, trace_id: str, adjudicator: str
) -> Receipt | None:
    meant = {"kind": kind, "trace_id": trace_id, "adjudicator": adjudicator}
    event = event_of_token(cursor, "adjudication_event", token, **meant)
    if event is None:
        return None
    outcome = event["outcome"] or ""
    return Receipt(event_id=str(event["event_id"]), outcome=outcome, duplicate=True)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """A trace that its adjudicator has decided blind, and its labels."""

    trace_id: str
    blind: Label
    question: str | None  # the first on which the labels differ; None: they agree
    labels: tuple[Label, ...]
    flags: tuple[str, ...]  # reasons, empty texts where none was given
    supersedes: str | None  # the reopened consensus
    standing: str | None  # its class


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


def _column(cursor: Cursor, sql: str, values: list[Any]) -> list[Any]:
    return [row[0] for row in cursor.execute(sql, values).fetchall()]


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


class AdjudicationStore(BatchStore):
    """Adjudications with their causes, and proposals for the handbook."""

    @open_to(LEAD, oneself="adjudicator")
    def adjudicate(
        self,
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
    ) -> Receipt:
        """Append a consensus event; the class is derived from the answers.

        The adjudicator must have decided the trace blind in their own batch of `batch_id`. Without
        a batch the only provenance is the adjudicator. `label_events` and `supersedes` are what the
        adjudicator was shown; the event is refused when they have changed.
        """
        taxonomy = self._rules()
        token, outcome = client_token or str(uuid4()), taxonomy.outcome(answers)
        if cause is not None and cause not in CAUSES:
            raise InputError(f"cause must be one of {', '.join(CAUSES)}, got {cause!r:.40}")
        event: dict[str, Any] = {
            "trace_id": trace_id, "answers": json.dumps(answers), "outcome": outcome,
            "adjudicator": adjudicator, "cause": cause, "rationale": bounded(rationale),
        }  # fmt: skip
        with self._db.write() as cursor:
            stored = _known(cursor, token, "consensus", trace_id, adjudicator)
            if stored is not None:
                return stored
            if not cursor.execute("SELECT 1 FROM trace WHERE trace_id = ?", [trace_id]).fetchall():
                raise InputError(f"trace {trace_id!r} is not in the store")
            if batch_id is None:
                event["simulated"] = simulated
            else:
                labels = counted_labels(cursor, taxonomy.version, batch_id, trace_id)
                _check_unchanged(
                    cursor, taxonomy.version, trace_id, labels, label_events, supersedes
                )
                event |= _provenance(cursor, taxonomy, event, batch_id, labels)
            event_id = _append(cursor, taxonomy.version, "consensus", token, event)
        return Receipt(event_id=event_id, outcome=outcome, duplicate=False)

    @open_to(ADMIN)
    def import_consensus(self, batch_id: str, decisions: Sequence[LabelDraft]) -> ImportResult[str]:
        """Store the classes that adjudication elsewhere gave traces of a batch, once each.

        The `reviewer_id` of a decision is its adjudicator. None overrides a consensus in force or
        one that was withdrawn.
        """
        taxonomy = self._rules()
        version = taxonomy.version
        found: dict[str, list[str]] = {"imported": [], "already_there": [], "changed": []}
        with self._db.write() as cursor:
            here = _column(cursor, "SELECT trace_id FROM batch_item JOIN batch USING (batch_id) "
                           "WHERE batch_id = ? AND purpose = 'production'", [batch_id])  # fmt: skip
            simulated = dict(cursor.execute("SELECT trace_id, simulated FROM trace").fetchall())
            tokens = set(_column(cursor, "SELECT client_token FROM adjudication_event", []))
            missing = {d.trace_id for d in decisions} - set(here)
            for draft in decisions:
                if draft.trace_id in missing:
                    continue
                outcome = taxonomy.outcome(draft.answers)
                standing = standing_consensus(cursor, version, draft.trace_id)
                event = {
                    "trace_id": draft.trace_id, "answers": json.dumps(draft.answers),
                    "outcome": outcome, "adjudicator": draft.reviewer_id,
                    "rationale": bounded(draft.rationale),
                    "simulated": simulated[draft.trace_id],
                }  # fmt: skip
                if standing is not None:
                    same = standing["outcome"] == outcome
                    found["already_there" if same else "changed"].append(draft.trace_id)
                elif draft.client_token in tokens:
                    found["already_there"].append(draft.trace_id)
                else:
                    _append(cursor, version, "consensus", draft.client_token, event)
                    found["imported"].append(draft.trace_id)
            if found["imported"]:
                n = len(found["imported"])
                record_audit(cursor, "consensus imported", batch_id=batch_id, stored=n)
        return ImportResult(
            imported=tuple(found["imported"]),
            already_there=tuple(found["already_there"]),
            changed=tuple(found["changed"]),
            unknown=tuple(sorted(missing)),
        )

    @open_to(LEAD, oneself="adjudicator")
    def withdraw_consensus(
        self, *, client_token: str, trace_id: str, adjudicator: str, reason: str | None = None
    ) -> None:
        """Withdraw the final label of a trace, once; the trace is open again."""
        taxonomy = self._rules()
        with self._db.write() as cursor:
            if _known(cursor, client_token, "withdrawal", trace_id, adjudicator) is not None:
                return
            standing = standing_consensus(cursor, taxonomy.version, trace_id)
            if standing is None:
                raise LabelRefusedError(f"trace {trace_id!r:.80} has no final label to withdraw")
            event = {name: standing[name] for name in ("trace_id", "batch_id", "simulated")}
            event |= {"adjudicator": adjudicator, "rationale": bounded(reason)}
            _append(cursor, taxonomy.version, "withdrawal", client_token, event)

    @open_to(LEAD)
    def consensus_history(self, trace_id: str) -> pd.DataFrame:
        """Return every adjudication and withdrawal of a trace with its labels then, by time."""
        return self._frame(
            f"SELECT {_COLUMNS} FROM adjudication_event c WHERE trace_id = ? ORDER BY seq",
            [trace_id],
        )

    @open_to(LEAD)
    def adjudication_frame(self, batch_id: str) -> pd.DataFrame:
        """Return the consensus in force of each trace of a batch, newest first."""
        # Reopened ones hold until the lead decides again.
        return self._frame(
            f"WITH counted AS {COUNTED} SELECT trace_id, {_COLUMNS}, {REOPENED} AS reopened "
            "FROM consensus c WHERE taxonomy_version = $version AND trace_id IN "
            "(SELECT trace_id FROM batch_item WHERE batch_id = $batch) ORDER BY seq DESC",
            {"batch": batch_id, "version": self._rules().version},
        )

    @open_to(LEAD, oneself="adjudicator")
    def serve_adjudication(
        self, *, adjudicator: str, batch_id: str, trace_ids: Sequence[str]
    ) -> Batch | None:
        """Give an adjudicator these traces, after those they have decided; return their batch."""
        wanted = list(dict.fromkeys(trace_ids))
        with self._db.read() as cursor:
            check_item(cursor, batch_id, wanted)
            check_lead(cursor, adjudicator)
        batch = self.adjudication_batch(adjudicator, batch_id)
        if batch is None:
            if not wanted:
                return None
            return self.add_batch(
                purpose="adjudication", trace_ids=wanted, labels_wanted=1,
                design={"kind": "adjudication", "of": batch_id},
                token=batch_token(batch_id, adjudicator), reviewer_id=adjudicator,
            )  # fmt: skip
        with self._db.write() as cursor:
            items = _column(
                cursor, "SELECT trace_id FROM batch_item WHERE batch_id = ? ORDER BY position",
                [batch.batch_id],
            )  # fmt: skip
            own = "SELECT trace_id FROM label_current WHERE batch_id = ? AND taxonomy_version = ?"
            decided = set(_column(cursor, own, [batch.batch_id, self._rules().version]))
            waiting = [t for t in wanted if t not in decided]
            if [t for t in items if t not in decided] != waiting:
                _replace(cursor, batch.batch_id, [t for t in items if t in decided] + waiting)
                self._db.held(StoreProgress).forget_plan(batch.batch_id)
        return self.adjudication_batch(adjudicator, batch_id)

    @open_to(LEAD, oneself="adjudicator")
    def adjudication_batch(self, adjudicator: str, batch_id: str) -> Batch | None:
        """Return the batch in which this person adjudicates a production batch."""
        with self._db.read() as cursor:
            token = [batch_token(batch_id, adjudicator)]
            found = _column(cursor, "SELECT batch_id FROM batch WHERE token = ?", token)
        return next((b for b in self.batches() if b.batch_id in found), None)

    @open_to(LEAD, oneself="adjudicator")
    def settlement(self, adjudicator: str, batch_id: str) -> Settlement | None:
        """Return the trace last decided blind and not adjudicated yet; record the exposure."""
        taxonomy = self._rules()
        version = taxonomy.version
        with self._db.write() as cursor:
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
            question=taxonomy.first_parting(label.outcome for label in labels),
            labels=tuple(labels),
            flags=tuple(flags),
            supersedes=None if standing is None else str(standing["event_id"]),
            standing=None if standing is None else standing["outcome"],
        )

    @open_to(LEAD, oneself="adjudicator")
    def last_adjudication(self, adjudicator: str, batch_id: str) -> tuple[str, str | None] | None:
        """Return trace and class (None: a skip) of the decision that one undo would take back."""
        with self._db.read() as cursor:
            return cursor.execute(
                "SELECT trace_id, outcome FROM (SELECT seq, trace_id, outcome FROM consensus "
                "WHERE adjudicator = $1 AND batch_id = $2 AND taxonomy_version = $3 UNION ALL "
                "SELECT seq, trace_id, NULL FROM label_current JOIN batch b USING (batch_id) "
                "WHERE b.token = $4 AND label_current.reviewer_id = $1 AND taxonomy_version = $3 "
                "AND kind = 'skip') ORDER BY seq DESC LIMIT 1",
                [adjudicator, batch_id, self._rules().version, batch_token(batch_id, adjudicator)],
            ).fetchone()

    @open_to(LEAD, oneself="decided_by")
    def decide_proposal(
        self,
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
        """Append a lead's decision on a proposal, once; the newest decision counts."""
        taxonomy = self._rules()
        text, reason = bounded(text, MAX_TEXT) or "", bounded(reason, MAX_TEXT)
        if status not in DECISIONS:
            raise InputError(f"status must be one of {', '.join(DECISIONS)}, got {status!r:.40}")
        if question not in {node.id for node in taxonomy.nodes}:
            raise InputError(f"question {question!r:.40} is not in the tree")
        if status == "accepted" and not text:
            raise LabelRefusedError("an accepted proposal needs its sentence")
        if status == "declined" and reason is None:
            raise LabelRefusedError("declining a proposal needs a reason")
        with self._db.write() as cursor:
            meant = {"proposal_id": proposal_id, "status": status, "reviewer_id": decided_by}
            if event_of_token(cursor, "proposal_event", client_token, **meant):
                return
            cursor.execute(
                "INSERT INTO proposal_event "
                "VALUES (nextval('event_seq'), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    client_token, proposal_id, taxonomy.version, question, text, list(trace_ids),
                    status, reason, decided_by, utc_now(),
                ],
            )  # fmt: skip

    @open_to(LEAD)
    def proposal_frame(self) -> pd.DataFrame:
        """Return the newest decision on each proposal, newest first."""
        return self._frame(
            "SELECT proposal_id, question, text, trace_ids, status, reason, "
            "reviewer_id AS decided_by, created_at FROM proposal_event WHERE taxonomy_version = ? "
            "QUALIFY row_number() OVER (PARTITION BY proposal_id ORDER BY seq DESC) = 1 "
            "ORDER BY seq DESC",
            [self._rules().version],
        )

    @open_to(REVIEWER)
    def handbook_additions(self) -> dict[str, list[str]]:
        """Return the accepted sentences by question, in order of acceptance."""
        version = self._rules().version
        with self._db.read() as cursor:
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
