"""What certification reads of labels, of what was seen, and of what the team has adjudicated."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from calibration.errors import InputError, NotAllowedError
from calibration.store.admission import open_traces
from calibration.store.database import Database, rows

MIX_NEEDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The first label that somebody gave to a trace in a batch; later ones know the answer."""

    batch_id: str
    purpose: str
    trace_id: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What the team decided on a trace."""

    outcome: str
    rationale: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassMix:
    """Shares of the classes in a production batch, by its human labels and sampling design."""

    batch_id: str
    n: int
    shares: dict[str, float]


def first_labels(db: Database, version: str, reviewer_id: str) -> list[Given]:
    """Return the first label of each trace of a person's practice and examinations, in order."""
    with db.read() as cursor:
        found = rows(
            cursor,
            "SELECT l.batch_id, b.purpose, l.trace_id, arg_min(l.outcome, l.seq) AS outcome "
            "FROM label_event l JOIN batch b USING (batch_id) WHERE l.reviewer_id = ? "
            "AND l.taxonomy_version = ? AND l.kind = 'label' AND b.purpose IN ('practice', 'exam') "
            "GROUP BY l.batch_id, b.purpose, l.trace_id ORDER BY min(l.seq)",
            [reviewer_id, version],
        )
    return [Given(**row) for row in found]


def exam_labels(db: Database, version: str, reviewer_id: str, batch_id: str) -> dict[str, str]:
    """Return the classes that a person gave in a batch, by trace, in the order served."""
    with db.read() as cursor:
        found = cursor.execute(
            "SELECT i.trace_id, c.outcome FROM batch_item i JOIN label_current c "
            "USING (batch_id, trace_id) WHERE i.batch_id = ? AND c.reviewer_id = ? "
            "AND c.taxonomy_version = ? AND c.kind = 'label' ORDER BY i.position",
            [batch_id, reviewer_id, version],
        ).fetchall()
    return dict(found)


def seen_traces(db: Database, reviewer_id: str) -> dict[str, datetime]:
    """Return when a person last labelled a trace, was examined on it or was shown its labels."""
    with db.read() as cursor:
        found = cursor.execute(
            "SELECT trace_id, max(moment) FROM ("
            "SELECT trace_id, created_at AS moment FROM label_event WHERE reviewer_id = $who "
            "UNION ALL SELECT trace_id, created_at FROM exposure WHERE reviewer_id = $who "
            "UNION ALL SELECT i.trace_id, e.created_at FROM exam e JOIN batch_item i "
            "USING (batch_id) WHERE e.reviewer_id = $who) GROUP BY trace_id",
            {"who": reviewer_id},
        ).fetchall()
    return dict(found)


def draw_own_form(
    db: Database, version: str, reviewer_id: str, wanted: Mapping[str, int], seed: int
) -> tuple[list[str], dict[str, int]]:
    """Draw adjudicated traces of this team that a person has neither labelled nor seen.

    Returns the traces in an order that says nothing of their classes, and how many of each class
    there are to draw from; never which trace has which class.
    """
    seen = set(seen_traces(db, reviewer_id))
    with db.read() as cursor:
        found = cursor.execute(
            "SELECT trace_id, outcome FROM consensus WHERE taxonomy_version = ? "
            "ORDER BY md5(concat(trace_id, '/', ?::VARCHAR))",
            [version, str(seed)],
        ).fetchall()
    drawn: list[str] = []
    there = dict.fromkeys(wanted, 0)
    for trace_id, outcome in found:
        if outcome in there and trace_id not in seen:
            if there[outcome] < wanted[outcome]:
                drawn.append(trace_id)
            there[outcome] += 1
    return drawn, there


def exam_key(db: Database, version: str, reviewer_id: str, batch_id: str) -> dict[str, Settled]:
    """Return what the team decided on the traces of an examination that has ended.

    Raises
    ------
    InputError
        If it is none of this person.
    NotAllowedError
        If traces of it are left.
    """
    with db.read() as cursor:
        if (
            cursor.execute(
                "SELECT 1 FROM exam WHERE batch_id = ? AND reviewer_id = ?", [batch_id, reviewer_id]
            ).fetchone()
            is None
        ):
            raise InputError(f"{batch_id!r:.80} is no examination of {reviewer_id!r:.80}")
        if open_traces(cursor, reviewer_id, batch_id, version):
            raise NotAllowedError(f"{batch_id!r} has not ended")
        found = cursor.execute(
            "SELECT trace_id, c.outcome, c.rationale FROM consensus c JOIN batch_item i "
            "USING (trace_id) WHERE i.batch_id = ? AND c.taxonomy_version = ?",
            [batch_id, version],
        ).fetchall()
    return {
        trace_id: Settled(outcome=outcome, rationale=rationale)
        for trace_id, outcome, rationale in found
    }


def production_mix(db: Database, version: str) -> ClassMix | None:
    """Return the class mix of the newest production batch with 30 labelled traces or more.

    Each trace counts by the inverse of its inclusion probability, and its labels share that.
    """
    with db.read() as cursor:
        found = cursor.execute(
            "WITH given AS (SELECT b.rowid AS place, l.batch_id, l.trace_id, l.outcome, "
            "1 / coalesce(i.inclusion_probability, 1) / "
            "count(*) OVER (PARTITION BY l.batch_id, l.trace_id) AS weight "
            "FROM label_current l JOIN batch b USING (batch_id) "
            "JOIN batch_item i USING (batch_id, trace_id) WHERE b.purpose = 'production' "
            "AND l.kind = 'label' AND l.taxonomy_version = $version), "
            "newest AS (SELECT batch_id, count(DISTINCT trace_id) AS n FROM given "
            "GROUP BY batch_id HAVING n >= $needs ORDER BY max(place) DESC LIMIT 1) "
            "SELECT batch_id, n, outcome, sum(weight) FROM given JOIN newest USING (batch_id) "
            "GROUP BY ALL ORDER BY outcome",
            {"version": version, "needs": MIX_NEEDS},
        ).fetchall()
    if not found:
        return None
    total = sum(weight for *_, weight in found)
    shares = {outcome: float(weight / total) for _, _, outcome, weight in found}
    return ClassMix(batch_id=found[0][0], n=found[0][1], shares=shares)
