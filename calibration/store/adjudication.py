"""Adjudications: who settled a trace, how, and why; appended, and the only way to a consensus.

No class ever becomes consensus by majority. A consensus stands until a later adjudication or a
withdrawal, also when labels that it settled have changed since: then it is marked `reopened`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from calibration.errors import InputError, LabelRefusedError
from calibration.records import CAUSES
from calibration.store.database import Cursor, Database, rows, utc_now
from calibration.store.label_checks import bounded
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
