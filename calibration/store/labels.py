"""Label events: appended, never changed; drafts, flags, undo, import and exposure."""

import hashlib
import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pyarrow as pa

from calibration.errors import InputError, LabelRefusedError, TaxonomyError
from calibration.records import (
    CONFIDENCES,
    MAX_CONSTRAINT,
    MAX_TAG,
    MAX_TAGS,
    MAX_VIOLATIONS,
    SEVERITIES,
    SUB_GOAL_STATES,
    SYSTEM_ROLES,
    Evidence,
    Label,
    LabelDraft,
    TraceForReview,
    Violation,
)
from calibration.store.batches import SUFFIX, batch_of, both, give_back
from calibration.store.database import (
    IMPORTED,
    Cursor,
    Database,
    event_of_token,
    put_setting,
    record_audit,
    rows,
    setting,
    token_refused,
    utc_now,
)
from calibration.store.leases import (
    DeskWork,
    Seat,
    StoreProgress,
    check_may_skip,
    check_not_ended,
    check_offered,
    claim,
    end_lease,
    is_exam,
)
from calibration.store.people import (
    ADMIN,
    LEAD,
    REVIEWER,
    open_to,
    put_reviewer,
    reviewer_id_of,
)
from calibration.store.traces import ImportResult, TraceStore, parts_directory, read_tasks
from calibration.taxonomy import Taxonomy

MAX_TEXT = 4_000
MAX_QUOTES = 20
MAX_SUB_GOALS, MAX_ID = 200, 200
MAX_REASON = 300
VIOLATIONS = "violations"  # the setting

# Fields of a label or draft other than trace, reviewer and batch.
PARTS = frozenset(
    {
        "answers",
        "rationale",
        "evidence",
        "confidence",
        "tags",
        "sub_goals",
        "seconds_active",
        "violations",
    }
)

_COLUMNS = (
    "l.event_id, l.trace_id, l.reviewer_id, l.batch_id, l.outcome, l.answers, l.rationale, "
    "l.evidence, l.confidence, l.tags, l.sub_goals, l.seconds_active, l.violations, l.simulated, "
    "l.created_at, "
    "NOT EXISTS (SELECT 1 FROM exposure e WHERE e.reviewer_id = l.reviewer_id "
    "AND e.trace_id = l.trace_id AND e.seq < l.seq) AS blind"
)

FIRST_WORDS = 120


def _stands(item: Evidence, texts: list[str]) -> bool:
    """Whether a span occurs literally; line ends, which a browser rewrites, may differ."""
    quote = item.quote.replace("\r\n", "\n")
    return any(quote in text.replace("\r\n", "\n") for text in texts)


def _texts(shown: list[TraceForReview], item: Evidence) -> list[str]:
    if not shown:
        return []
    if item.step_id == "response":
        return [shown[0].response or ""]
    return [
        text
        for step in shown[0].steps
        if step.step_id == item.step_id
        for text in (step.content, step.arguments, step.result)
        if text
    ]


def _of_the_run(shown: list[TraceForReview], item: Evidence) -> bool:
    """Whether a span is of what happened, not of the instructions of the agent."""
    roles = {step.step_id: step.role for trace in shown for step in trace.steps}
    return roles.get(item.step_id) not in SYSTEM_ROLES


def check_confidence(confidence: int | None) -> None:
    """Require 1, 2, 3 or None."""
    if confidence is not None and confidence not in CONFIDENCES:
        raise LabelRefusedError(f"confidence must be 1, 2 or 3, got {confidence!r:.80}")


def check_sub_goals(sub_goals: Mapping[str, str], known: Iterable[str]) -> None:
    """Require known sub-goals, each done, not_done or unclear."""
    for goal, state in sub_goals.items():
        if goal not in known:
            raise LabelRefusedError(f"the trace has no sub-goal {goal!r:.80}")
        if state not in SUB_GOAL_STATES:
            raise LabelRefusedError(
                f"sub-goal {goal!r:.80} must be one of {', '.join(SUB_GOAL_STATES)}, "
                f"got {state!r:.80}"
            )


def check_violations(violations: Sequence[Violation], steps: Container[str] | None = None) -> None:
    """Require few violations, each of a short constraint and known severity, in one of the steps.

    A step may be missing; without `steps` any will do.
    """
    if len(violations) > MAX_VIOLATIONS:
        raise LabelRefusedError(
            f"a label has at most {MAX_VIOLATIONS} violations, got {len(violations)}"
        )
    for found in violations:
        fits = 1 <= len(found.constraint.strip()) <= MAX_CONSTRAINT
        if not fits or not _is_line(found.constraint):
            raise LabelRefusedError(
                f"a constraint has 1 to {MAX_CONSTRAINT} characters on one line, "
                f"got {found.constraint!r:.80}"
            )
        if found.severity not in SEVERITIES:
            raise LabelRefusedError(
                f"severity must be one of {', '.join(SEVERITIES)}, got {found.severity!r:.80}"
            )
        if found.step is not None and steps is not None and found.step not in steps:
            raise LabelRefusedError(f"the trace has no step {found.step!r:.80}")


def _is_line(text: str) -> bool:
    return text.isprintable() and text.encode(errors="replace").decode() == text


def _violations_text(violations: Sequence[Violation] | None) -> str | None:
    """Return violations as they are stored; None where nobody asked for any."""
    return None if violations is None else json.dumps([asdict(v) for v in violations])


def marked_violations(stored: str | None) -> tuple[Violation, ...] | None:
    """Return violations from their stored text; None where nobody asked for any."""
    if not isinstance(stored, str):
        return None
    return tuple(Violation(**one) for one in json.loads(stored))


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags as stored: white space collapsed, split at semicolons as in files, each once."""
    found: dict[str, str] = {}
    for text in tags:
        for part in text.split(";"):
            tag = " ".join(part.encode(errors="replace").decode().split())
            if len(tag) > MAX_TAG:
                raise LabelRefusedError(f"a tag has at most {MAX_TAG} characters, got {tag!r:.60}")
            if tag:
                found.setdefault(tag.casefold(), tag)
    if len(found) > MAX_TAGS:
        raise LabelRefusedError(f"a label has at most {MAX_TAGS} tags, got {len(found)}")
    return tuple(found.values())


def bounded(text: str | None, most: int = MAX_TEXT) -> str | None:
    """Cut a text to the stored length and drop what UTF-8 cannot encode."""
    if text is None:
        return None
    return text.strip()[:most].encode(errors="replace").decode().strip() or None


def duration(seconds: float | None) -> float | None:
    """Drop an impossible duration; a label is not refused for it."""
    return seconds if seconds is not None and 0 <= seconds < float("inf") else None


def keep(cursor: Cursor, draft: LabelDraft) -> None:
    """Write a draft within a transaction."""
    body = {name: value for name, value in asdict(draft).items() if name in PARTS}
    cursor.execute(
        "INSERT INTO draft VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (batch_id, trace_id, reviewer_id) "
        "DO UPDATE SET body = excluded.body, updated_at = excluded.updated_at",
        [draft.batch_id, draft.trace_id, draft.reviewer_id, json.dumps(body), utc_now()],
    )


def drop(cursor: Cursor, trace_id: str, reviewer_id: str, batch_id: str) -> None:
    """Remove the draft of a decided trace."""
    cursor.execute(
        "DELETE FROM draft WHERE batch_id = ? AND trace_id = ? AND reviewer_id = ?",
        [batch_id, trace_id, reviewer_id],
    )


def drafts(cursor: Cursor, reviewer_id: str, under: Mapping[str, str]) -> dict[str, LabelDraft]:
    """Return a reviewer's drafts by trace; `under` has the batch of each."""
    # Never the companion: its name would reveal a hidden item.
    found = cursor.execute(
        "SELECT batch_id, trace_id, body FROM draft WHERE reviewer_id = ? "
        "AND list_contains(?::VARCHAR[], trace_id)",
        [reviewer_id, list(under)],
    ).fetchall()
    return {
        trace_id: LabelDraft(
            trace_id=trace_id, reviewer_id=reviewer_id, batch_id=batch_id.removesuffix(SUFFIX),
            **_read_parts(json.loads(body)),
        )
        for batch_id, trace_id, body in found
        if under[trace_id] == batch_id
    }  # fmt: skip


def _read_parts(body: dict[str, Any]) -> dict[str, Any]:
    evidence = tuple(Evidence(**item) for item in body["evidence"])
    marked = body.get("violations")  # a draft of before has none
    violations = None if marked is None else tuple(Violation(**one) for one in marked)
    return body | {"evidence": evidence, "tags": tuple(body["tags"]), "violations": violations}


def read_labels(cursor: Cursor, found: str, values: list[Any] | dict[str, Any]) -> list[Label]:
    """Return the labels of a query, given from FROM on; their events have the alias `l`."""
    labels = []
    for row in rows(cursor, f"SELECT {_COLUMNS} {found}", values):
        empty = {"answers": "{}", "evidence": "[]", "tags": "[]", "sub_goals": "{}"}
        row |= {name: json.loads(row[name] or none) for name, none in empty.items()}
        row["violations"] = json.loads(row["violations"] or "null")
        labels.append(Label(**_read_parts(row) | {"event_id": str(row["event_id"])}))
    return labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that a label or an adjudication is stored; `duplicate`: it already was."""

    event_id: str
    outcome: str
    duplicate: bool


def _led(cursor: Cursor, taxonomy: Taxonomy, draft: LabelDraft) -> LabelDraft:
    """Return a label with the batch under which it is stored."""
    named = draft.trace_id, draft.reviewer_id, draft.batch_id
    return replace(draft, batch_id=batch_of(cursor, *named, taxonomy.version))


def _receipt(cursor: Cursor, draft: LabelDraft) -> Receipt | None:
    event = _known(
        cursor, draft.client_token, [draft.batch_id], kind="label",
        reviewer_id=draft.reviewer_id, trace_id=draft.trace_id,
    )  # fmt: skip
    if event is None:
        return None
    return Receipt(event_id=str(event["event_id"]), outcome=event["outcome"], duplicate=True)


def _known(
    cursor: Cursor, token: str, batch_ids: Sequence[str], **meant: str
) -> dict[str, Any] | None:
    """Return the event (label, skip or undo) stored under a token."""
    event = event_of_token(cursor, "label_event", token, **meant)
    if event is not None and event["batch_id"] not in batch_ids:
        raise token_refused(token)
    return event


def append(cursor: Cursor, taxonomy: Taxonomy, **values: Any) -> str:
    """Append one event, ordered by a sequence number: clocks go backwards."""
    values |= {"taxonomy_version": taxonomy.version, "created_at": utc_now()}
    names = ", ".join(values)
    marks = ", ".join("?" * len(values))
    stored = cursor.execute(
        f"INSERT INTO label_event (seq, simulated, {names}) "
        f"SELECT nextval('event_seq'), r.simulated OR t.simulated, {marks} "
        "FROM reviewer r, trace t WHERE r.reviewer_id = ? AND t.trace_id = ? RETURNING event_id",
        [*values.values(), values["reviewer_id"], values["trace_id"]],
    ).fetchone()
    if stored is None:
        raise LabelRefusedError(
            f"no reviewer {values['reviewer_id']!r} or no trace {values['trace_id']!r} in the store"
        )
    return str(stored[0])


def _as_draft(label: Label) -> LabelDraft:
    """Return a label that was taken back as a new draft."""
    named = ("trace_id", "reviewer_id", "batch_id", *(PARTS - {"seconds_active"}))
    return LabelDraft(**{name: getattr(label, name) for name in named})


def import_token(
    batch_id: str,
    taxonomy_version: str,
    reviewer_id: str,
    trace_id: str,
    outcome: str,
    given_at: datetime | None = None,
) -> str:
    """Return the client token of an imported label: equal rows are one label."""
    parts = [batch_id, taxonomy_version, reviewer_id, trace_id, outcome]
    key = json.dumps(parts + ([] if given_at is None else [given_at.isoformat()]))
    return IMPORTED + hashlib.sha256(key.encode()).hexdigest()[:24]


def _column(cursor: Cursor, sql: str, values: list[str]) -> set[str]:
    return {row[0] for row in cursor.execute(sql, values).fetchall()}


def _given_at(draft: LabelDraft) -> datetime:
    """Return when a label was given, without a zone as stored, never in the future."""
    now = utc_now()
    if draft.given_at is None:
        return now
    return min(draft.given_at.astimezone(UTC).replace(tzinfo=None), now)


def _is_later(draft: LabelDraft, stored_at: datetime) -> bool:
    """Return whether a label says of itself that it was given after a stored one."""
    return draft.given_at is not None and _given_at(draft) > stored_at


def insert_labels(
    cursor: Cursor,
    taxonomy: Taxonomy,
    batch_id: str,
    fresh: list[tuple[LabelDraft, str]],
    simulated: list[bool],
) -> None:
    """Append labels, each with its own time, or with the present."""
    if not fresh:
        return
    drafts = [draft for draft, _ in fresh]
    text = pa.string()
    table = pa.table(
        {
            "client_token": [draft.client_token for draft in drafts],
            "trace_id": [draft.trace_id for draft in drafts],
            "reviewer_id": [draft.reviewer_id for draft in drafts],
            "answers": [json.dumps(draft.answers) for draft in drafts],
            "outcome": [outcome for _, outcome in fresh],
            "rationale": pa.array([draft.rationale for draft in drafts], text),
            "evidence": [json.dumps([asdict(e) for e in draft.evidence]) for draft in drafts],
            "confidence": pa.array([draft.confidence for draft in drafts], pa.int32()),
            "tags": [json.dumps(clean_tags(draft.tags)) for draft in drafts],
            "sub_goals": [json.dumps(draft.sub_goals) for draft in drafts],
            "violations": pa.array([_violations_text(d.violations) for d in drafts], text),
            "seconds_active": pa.array([d.seconds_active for d in drafts], pa.float64()),
            "simulated": simulated,
            "created_at": pa.array([_given_at(draft) for draft in drafts], pa.timestamp("us")),
        }
    )
    cursor.register("incoming", table)
    cursor.execute(
        "INSERT INTO label_event BY NAME SELECT *, nextval('event_seq') AS seq, 'label' AS kind, "
        "?::VARCHAR AS batch_id, ?::VARCHAR AS taxonomy_version FROM incoming",
        [batch_id, taxonomy.version],
    )
    cursor.unregister("incoming")


def _expose(cursor: Cursor, seen: Sequence[tuple[str, str]], what: str) -> None:
    """Record that people saw what others made of traces; `seen` has trace and reviewer."""
    cursor.execute(
        "INSERT INTO exposure SELECT unnest(?::VARCHAR[]), unnest(?::VARCHAR[]), ?, "
        "nextval('event_seq'), ? ON CONFLICT (reviewer_id, trace_id, what) DO NOTHING",
        [[by for _, by in seen], [trace_id for trace_id, _ in seen], what, utc_now()],
    )


def marks_violations(db: Database, cursor: Cursor) -> bool:
    """Return whether the store asks for safety violations; off by default."""
    return bool(db.kept(VIOLATIONS, lambda: setting(cursor, VIOLATIONS)))


class LabelStore(TraceStore):
    """Labels, skips, drafts and flags."""

    def _check(self, taxonomy: Taxonomy, draft: LabelDraft) -> None:
        """Require evidence where the tree asks for it, and only sub-goals of the trace."""
        check_confidence(draft.confidence)
        needed = [
            node.id
            for node in taxonomy.path(draft.answers)
            if node.evidence_on == draft.answers[node.id]
        ]
        if needed and not draft.evidence:
            raise LabelRefusedError(
                f"the answer to {needed[0]!r} needs a step and a quoted span as evidence"
            )
        if len(draft.evidence) > MAX_QUOTES:
            raise LabelRefusedError(
                f"a label has at most {MAX_QUOTES} quotes, got {len(draft.evidence)}"
            )
        if not draft.evidence and not draft.sub_goals and not draft.violations:
            return
        shown = self._unbound().for_review([draft.trace_id])
        for item in draft.evidence:
            if not item.quote.strip() or not _stands(item, _texts(shown, item)):
                raise LabelRefusedError(
                    f"the quote is not in step {item.step_id!r}; copy the words exactly"
                )
        if needed and not any(_of_the_run(shown, item) for item in draft.evidence):
            raise LabelRefusedError(
                f"the answer to {needed[0]!r} needs words of the agent: the system prompt invents "
                "nothing"
            )
        check_sub_goals(draft.sub_goals, {goal.id for trace in shown for goal in trace.sub_goals})
        steps = {step.step_id for trace in shown for step in trace.steps}
        check_violations(draft.violations or (), {*steps, "response"})

    def _check_open(self, cursor: Cursor, reviewer_id: str, batch_id: str, trace_id: str) -> None:
        """Require a trace that the reviewer was given and has not decided."""
        check_offered(cursor, trace_id, reviewer_id, batch_id)
        progress = self._db.held(StoreProgress).of(cursor, batch_id, self._rules().version)
        if trace_id in progress.own[reviewer_id].decided:
            raise LabelRefusedError(
                f"trace {trace_id} already has your label or skip; undo it before labelling again"
            )

    def _take_back(self, cursor: Cursor, token: str, event: Mapping[str, Any], **more: Any) -> str:
        """Append the undo of an event; its label becomes the draft."""
        taxonomy = self._rules()
        named = {name: event[name] for name in ("trace_id", "reviewer_id", "batch_id")}
        append(
            cursor, taxonomy, kind="undo", client_token=token, supersedes=event["event_id"],
            **named, **more,
        )  # fmt: skip
        if event["kind"] == "label":
            found = "FROM label_event l WHERE event_id = ?"
            (label,) = read_labels(cursor, found, [event["event_id"]])
            # An undo asks the questions again; with a reason only the last one is asked again.
            keep(cursor, _as_draft(label if more else replace(label, answers={})))
        claim(cursor, event["batch_id"], [event["trace_id"]], event["reviewer_id"])
        if not event["batch_id"].endswith(SUFFIX):
            give_back(cursor, **named, taxonomy_version=taxonomy.version)
            # The trace can be no repeat any more.
            seat = Seat(event["reviewer_id"], event["batch_id"], taxonomy.version)
            self._db.held(StoreProgress).pools.pop(seat, None)
        return str(event["trace_id"])

    @open_to(REVIEWER, oneself="draft.reviewer_id")
    def record_label(self, draft: LabelDraft) -> Receipt:
        """Store a label; sending it again changes nothing."""
        taxonomy = self._rules()
        try:
            outcome = taxonomy.outcome(draft.answers)
            self._check(taxonomy, draft)
            tags = clean_tags(draft.tags)
        except (LabelRefusedError, TaxonomyError) as error:
            # A stored label stays, even if the tree has changed since.
            with self._db.read() as cursor:
                stored = _receipt(cursor, _led(cursor, taxonomy, draft))
            if stored is not None:
                return stored
            if isinstance(error, LabelRefusedError):
                raise
            raise LabelRefusedError(f"the answers do not reach a class: {error}") from error
        with self._db.write() as cursor:
            draft = _led(cursor, taxonomy, draft)
            stored = _receipt(cursor, draft)
            if stored is not None:
                return stored
            self._check_open(cursor, draft.reviewer_id, draft.batch_id, draft.trace_id)
            event_id = append(
                cursor,
                taxonomy,
                kind="label",
                client_token=draft.client_token,
                trace_id=draft.trace_id,
                reviewer_id=draft.reviewer_id,
                batch_id=draft.batch_id,
                answers=json.dumps(draft.answers),
                outcome=outcome,
                rationale=bounded(draft.rationale),
                evidence=json.dumps([asdict(e) for e in draft.evidence]),
                confidence=draft.confidence,
                tags=json.dumps(tags),
                sub_goals=json.dumps(draft.sub_goals),
                violations=_violations_text(draft.violations),
                seconds_active=duration(draft.seconds_active),
            )
            drop(cursor, draft.trace_id, draft.reviewer_id, draft.batch_id)
            end_lease(cursor, draft.batch_id, draft.trace_id, draft.reviewer_id)
        return Receipt(event_id=event_id, outcome=outcome, duplicate=False)

    @open_to(LEAD)
    def marks_violations(self) -> bool:
        """Return whether reviewers of production batches are asked for safety violations."""
        with self._db.read() as cursor:
            return marks_violations(self._db, cursor)

    @open_to(LEAD)
    def set_violation_marking(self, on: bool) -> None:
        """Ask for safety violations beside the class from now on, or no more; it is audited."""
        with self._db.write() as cursor:
            put_setting(cursor, VIOLATIONS, on, by=self._by())
            self._db.forget(VIOLATIONS)

    @open_to(ADMIN)
    def import_labels(
        self,
        batch_id: str,
        drafts: Sequence[LabelDraft],
        *,
        names: Sequence[str] = (),
        exposed: bool = False,
        replacing: bool = False,
    ) -> ImportResult[tuple[str, str]]:
        """Store labels from elsewhere once each, without lease or evidence.

        A label that was given later than the stored one, or any other one if `replacing`, is a new
        event; the stored one stays in the log. Reviewers of these names are added where a label of
        theirs is stored. `exposed` labels were not given blind, as far as anybody knows: they are
        stored as such.
        """
        taxonomy = self._rules()
        new = {reviewer_id_of(name): name for name in names}
        with self._db.write() as cursor:
            if is_exam(cursor, batch_id):
                raise InputError(
                    f"batch {batch_id!r} is an examination: nothing is imported into it"
                )
            items = _column(
                cursor, "SELECT trace_id FROM batch_item WHERE batch_id = ?", [batch_id]
            )
            tokens = _column(
                cursor, "SELECT client_token FROM label_event WHERE batch_id = ?", [batch_id]
            )
            people = dict(cursor.execute("SELECT reviewer_id, simulated FROM reviewer").fetchall())
            traces = dict(cursor.execute("SELECT trace_id, simulated FROM trace").fetchall())
            current = {
                (trace_id, reviewer_id): (outcome, created_at, event_id)
                for trace_id, reviewer_id, outcome, created_at, event_id in cursor.execute(
                    "SELECT trace_id, reviewer_id, outcome, created_at, event_id "
                    "FROM label_current "
                    "WHERE batch_id = ? AND taxonomy_version = ? AND kind = 'label'",
                    [batch_id, taxonomy.version],
                ).fetchall()
            }
            fresh: dict[tuple[str, str], tuple[LabelDraft, str]] = {}
            already, changed, missing, replaced = [], [], [], []
            for draft in drafts:
                key = (draft.trace_id, draft.reviewer_id)
                outcome = taxonomy.outcome(draft.answers)
                stored = fresh[key][1] if key in fresh else current.get(key, (None,))[0]
                if draft.trace_id not in items:
                    missing.append(draft.trace_id)
                elif draft.reviewer_id not in people.keys() | new.keys():
                    raise InputError(
                        f"reviewer {draft.reviewer_id!r} is not in the store; add them"
                    )
                # Also a withdrawn label: importing it again does not undo the withdrawal.
                elif stored is None and draft.client_token in tokens:
                    already.append(key)
                elif stored is None:
                    fresh[key] = (draft, outcome)
                elif stored == outcome:
                    already.append(key)
                elif key not in fresh and (replacing or _is_later(draft, current[key][1])):
                    token = draft.client_token
                    if token in tokens:  # the same label, given again after another one
                        token = f"{token}-{current[key][2]}"
                    fresh[key] = (replace(draft, client_token=token), outcome)
                    replaced.append(key)
                else:
                    changed.append(key)
            for reviewer_id in dict.fromkeys(d.reviewer_id for d, _ in fresh.values()):
                if reviewer_id not in people:
                    put_reviewer(cursor, new[reviewer_id], role="reviewer", simulated=False)
                    people[reviewer_id] = False
            simulated = [people[d.reviewer_id] or traces[d.trace_id] for d, _ in fresh.values()]
            if exposed:
                _expose(cursor, list(fresh), "labels")
            insert_labels(cursor, taxonomy, batch_id, list(fresh.values()), simulated)
            if fresh:
                record_audit(cursor, "labels imported", batch_id=batch_id, stored=len(fresh))
        return ImportResult(
            imported=tuple(key for key in fresh if key not in replaced),
            already_there=tuple(already),
            changed=tuple(changed),
            unknown=tuple(dict.fromkeys(missing)),
            replaced=tuple(replaced),
        )

    @open_to(REVIEWER, oneself="reviewer_id")
    def record_skip(
        self, *, client_token: str, trace_id: str, reviewer_id: str, batch_id: str, reason: str
    ) -> None:
        """Skip a trace: non-response, not a label. The draft stays, for an undo."""
        taxonomy = self._rules()
        if not reason.strip():
            raise LabelRefusedError("a skip needs a reason")
        with self._db.write() as cursor:
            batch_id = batch_of(cursor, trace_id, reviewer_id, batch_id, taxonomy.version)
            meant = {"kind": "skip", "reviewer_id": reviewer_id, "trace_id": trace_id}
            if _known(cursor, client_token, [batch_id], **meant):
                return
            check_may_skip(cursor, batch_id)
            self._check_open(cursor, reviewer_id, batch_id, trace_id)
            append(
                cursor,
                taxonomy,
                kind="skip",
                client_token=client_token,
                trace_id=trace_id,
                reviewer_id=reviewer_id,
                batch_id=batch_id,
                reason=bounded(reason),
            )
            end_lease(cursor, batch_id, trace_id, reviewer_id)

    @open_to(REVIEWER, oneself="reviewer_id")
    def record_undo(self, *, client_token: str, reviewer_id: str, batch_id: str) -> str | None:
        """Append the undo of the latest label (now a draft) or skip; return its trace if any."""
        taxonomy = self._rules()
        with self._db.write() as cursor:
            batches = both(batch_id)
            done = _known(cursor, client_token, batches, kind="undo", reviewer_id=reviewer_id)
            if done is not None:
                return str(done["trace_id"])
            check_not_ended(cursor, reviewer_id, batch_id, taxonomy.version)
            progress = self._db.held(StoreProgress)
            latest = DeskWork(
                *(progress.of(cursor, of, taxonomy.version).own[reviewer_id] for of in batches)
            ).latest()
            if latest is None:
                return None
            trace_id, decided, put_in = latest
            event = {
                "event_id": decided.event_id, "kind": decided.kind, "trace_id": trace_id,
                "reviewer_id": reviewer_id, "batch_id": batches[put_in],
            }  # fmt: skip
            return self._take_back(cursor, client_token, event)

    @open_to(REVIEWER, oneself="reviewer_id")
    def last_label(self, reviewer_id: str, batch_id: str) -> tuple[str, str | None] | None:
        """Return trace and class (None: a skip) of the decision that one undo would take back."""
        taxonomy = self._rules()
        with self._db.read() as cursor:
            return cursor.execute(
                "SELECT trace_id, outcome FROM label_current WHERE reviewer_id = ? "
                "AND batch_id IN (?, ?) AND taxonomy_version = ? ORDER BY seq DESC LIMIT 1",
                [reviewer_id, *both(batch_id), taxonomy.version],
            ).fetchone()

    @open_to(REVIEWER, oneself="reviewer_id")
    def reopen(
        self, *, client_token: str, trace_id: str, reviewer_id: str, batch_id: str, reason: str
    ) -> None:
        """Take back one's label (now the draft) or skip of a trace, which comes first again."""
        taxonomy = self._rules()
        if not reason.strip():
            raise LabelRefusedError("reopening a label needs a reason")
        with self._db.write() as cursor:
            meant = {"kind": "undo", "reviewer_id": reviewer_id, "trace_id": trace_id}
            if _known(cursor, client_token, both(batch_id), **meant):
                return
            check_not_ended(cursor, reviewer_id, batch_id, taxonomy.version)
            found = rows(
                cursor,
                "SELECT event_id, kind, trace_id, reviewer_id, batch_id FROM label_current "
                "WHERE reviewer_id = ? AND batch_id IN (?, ?) AND trace_id = ? "
                "AND taxonomy_version = ? ORDER BY seq DESC LIMIT 1",
                [reviewer_id, *both(batch_id), trace_id, taxonomy.version],
            )
            if not found:
                raise LabelRefusedError(f"trace {trace_id!r:.80} has no label and no skip of yours")
            self._take_back(cursor, client_token, found[0], reason=bounded(reason))

    @open_to(REVIEWER, oneself="draft.reviewer_id")
    def save_draft(self, draft: LabelDraft) -> None:
        """Store an unfinished label, so that a reload resumes at the same question."""
        check_confidence(draft.confidence)
        check_violations(draft.violations or ())
        kept = replace(
            draft,
            rationale=bounded(draft.rationale),
            evidence=tuple(
                Evidence(step_id=item.step_id[:MAX_ID], quote=bounded(item.quote) or "")
                for item in draft.evidence[:MAX_QUOTES]
            ),
            tags=clean_tags(draft.tags),
            sub_goals={
                goal[:MAX_ID]: state
                for goal, state in list(draft.sub_goals.items())[:MAX_SUB_GOALS]
                if state in SUB_GOAL_STATES
            },
            seconds_active=duration(draft.seconds_active),
        )
        with self._db.write() as cursor:
            kept = _led(cursor, self._rules(), kept)
            check_offered(cursor, kept.trace_id, kept.reviewer_id, kept.batch_id)
            keep(cursor, kept)

    @open_to(REVIEWER, oneself="reviewer_id")
    def record_flag(
        self,
        *,
        client_token: str,
        trace_id: str,
        reviewer_id: str,
        batch_id: str,
        flagged: bool,
        reason: str | None = None,
    ) -> None:
        """Raise or lower a reviewer's flag on a trace, once; a label is not needed."""
        taxonomy_version = self._rules().version
        kind = "flag" if flagged else "unflag"
        with self._db.write() as cursor:
            batch_id = batch_of(cursor, trace_id, reviewer_id, batch_id, taxonomy_version)
            if event_of_token(cursor, "label_event", client_token) is not None:
                raise token_refused(client_token)
            meant = {"trace_id": trace_id, "reviewer_id": reviewer_id, "batch_id": batch_id}
            if event_of_token(cursor, "flag_event", client_token, kind=kind, **meant):
                return
            check_offered(cursor, trace_id, reviewer_id, batch_id)
            cursor.execute(
                "INSERT INTO flag_event (seq, client_token, kind, trace_id, reviewer_id, batch_id, "
                "reason, simulated, created_at) SELECT nextval('event_seq'), ?, ?, trace_id, "
                "reviewer_id, ?, ?, r.simulated OR t.simulated, ? "
                "FROM reviewer r, trace t WHERE reviewer_id = ? AND trace_id = ?",
                [
                    client_token, kind, batch_id, bounded(reason, MAX_REASON) if flagged else None,
                    utc_now(), reviewer_id, trace_id,
                ],
            )  # fmt: skip

    @open_to(LEAD)
    def flag_frame(self, batch_id: str) -> pd.DataFrame:
        """Return the raised flags of a batch, oldest first; reason is missing if none was given."""
        return self._frame(
            "SELECT trace_id, reviewer_id, reason, simulated, created_at FROM flag_current "
            "WHERE batch_id = ? ORDER BY seq",
            [batch_id],
        )

    @open_to(REVIEWER, oneself="reviewer_id")
    def own_flags(
        self, reviewer_id: str, batch_id: str, trace_ids: Sequence[str]
    ) -> dict[str, str]:
        """Return the reviewer's flags on these traces with reasons, empty if none was given."""
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT trace_id, batch_id, kind, coalesce(reason, '') FROM flag_event "
                "WHERE reviewer_id = ? AND batch_id IN (?, ?) "
                "AND list_contains(?::VARCHAR[], trace_id) ORDER BY seq",
                [reviewer_id, *both(batch_id), list(trace_ids)],
            ).fetchall()
        # Runs with every label, and few are flagged: the view of current ones costs twice as much.
        standing: dict[tuple[str, str], str] = {}
        for trace_id, of, kind, reason in found:
            standing.pop((trace_id, of), None)
            if kind == "flag":
                standing[trace_id, of] = reason
        return {trace_id: reason for (trace_id, _), reason in standing.items()}

    @open_to(REVIEWER, oneself="reviewer_id")
    def own_labels(
        self, reviewer_id: str, batch_id: str, *, limit: int = 200
    ) -> list[tuple[Label, str]]:
        """Return the current labels of a reviewer with the start of each task, newest first."""
        # A repeat item is listed once, with its newest label, under this batch.
        taxonomy = self._rules()
        with self._db.read() as cursor:
            labels = read_labels(
                cursor,
                "FROM label_current l WHERE reviewer_id = ? AND batch_id IN (?, ?) "
                "AND taxonomy_version = ? AND kind = 'label' "
                "QUALIFY row_number() OVER (PARTITION BY l.trace_id ORDER BY l.seq DESC) = 1 "
                "ORDER BY l.seq DESC LIMIT ?",
                [reviewer_id, *both(batch_id), taxonomy.version, limit],
            )
            tasks = self._first_words(cursor, [label.trace_id for label in labels])
        return [(replace(label, batch_id=batch_id), tasks[label.trace_id]) for label in labels]

    @open_to(REVIEWER, oneself="reviewer_id")
    def own_skips(
        self, reviewer_id: str, batch_id: str, *, limit: int = 200
    ) -> list[tuple[str, datetime, str]]:
        """Return the traces that a reviewer has skipped, when, and the start of each task."""
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT trace_id, created_at FROM label_current WHERE reviewer_id = ? "
                "AND batch_id IN (?, ?) AND taxonomy_version = ? AND kind = 'skip' "
                "ORDER BY seq DESC LIMIT ?",
                [reviewer_id, *both(batch_id), self._rules().version, limit],
            ).fetchall()
            tasks = self._first_words(cursor, [trace_id for trace_id, _ in found])
        return [(trace_id, at, tasks[trace_id]) for trace_id, at in found]

    def _first_words(self, cursor: Cursor, trace_ids: Sequence[str]) -> dict[str, str]:
        """Return the start of the task of each trace."""
        found = cursor.execute(
            "SELECT part, list(trace_id) FROM trace "
            "WHERE list_contains(?::VARCHAR[], trace_id) GROUP BY part",
            [list(trace_ids)],
        ).fetchall()
        tasks: dict[str, str] = {}
        for part, ids in found:
            path = parts_directory(self._db.path) / part
            tasks |= read_tasks(cursor, path, ids, 4 * FIRST_WORDS)
        return {t: " ".join(tasks.get(t, "").split())[:FIRST_WORDS] for t in trace_ids}

    @open_to(REVIEWER, oneself="reviewer_id")
    def acknowledged(self, reviewer_id: str, batch_id: str, tokens: Sequence[str]) -> set[str]:
        """Return which of a reviewer's client tokens are stored."""
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT client_token FROM label_event WHERE reviewer_id = $1 "
                "AND batch_id IN ($2, $3) AND list_contains($4::VARCHAR[], client_token) "
                "UNION ALL SELECT client_token FROM flag_event WHERE reviewer_id = $1 "
                "AND batch_id IN ($2, $3) AND list_contains($4::VARCHAR[], client_token)",
                [reviewer_id, *both(batch_id), list(tokens)],
            ).fetchall()
        return {row[0] for row in found}

    @open_to(LEAD)
    def label_frame(self, batch_id: str, trace_id: str | None = None) -> pd.DataFrame:
        """Return the current labels and skips of a batch, or of one of its traces.

        Columns: trace_id, reviewer_id, kind, outcome, answers (JSON text), rationale, evidence
        (JSON text), confidence (1 to 3; missing: NA), tags, sub_goals and violations (JSON text;
        missing: nobody asked for any), seconds_active, reason, simulated, created_at, exposed (the
        reviewer had seen labels or verdicts of the trace).
        """
        return self._frame(
            "SELECT trace_id, reviewer_id, kind, outcome, answers, rationale, evidence, "
            "confidence, tags, sub_goals, violations, seconds_active, reason, simulated, "
            "created_at, "
            "EXISTS (SELECT 1 FROM exposure e WHERE e.reviewer_id = l.reviewer_id "
            "AND e.trace_id = l.trace_id AND e.seq < l.seq) AS exposed FROM label_current l "
            "WHERE batch_id = ? AND taxonomy_version = ? AND (? IS NULL OR trace_id = ?) "
            "ORDER BY seq",
            [batch_id, self._rules().version, trace_id, trace_id],
        )

    @open_to(LEAD)
    def consensus_frame(self) -> pd.DataFrame:
        """Return trace_id, outcome and simulated of every adjudicated trace."""
        return self._frame(
            "SELECT trace_id, outcome, simulated FROM consensus WHERE taxonomy_version = ?",
            [self._rules().version],
        )

    @open_to(LEAD)
    def label_state(self) -> tuple[int, int]:
        """Return numbers that change with every label, skip, undo and adjudication."""
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT (SELECT coalesce(max(seq), 0) FROM label_event), "
                "(SELECT coalesce(max(seq), 0) FROM adjudication_event)"
            ).fetchone()
        return (0, 0) if found is None else (int(found[0]), int(found[1]))

    @open_to(LEAD)
    def result_state(self) -> tuple[int, int, int]:
        """Return numbers that change with everything that a corrected rate depends on."""
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT coalesce(max(seq), 0) FROM audit "
                "WHERE what IN ('import', 'verdicts', 'workflow')"
            ).fetchone()
        return (*self.label_state(), 0 if found is None else int(found[0]))

    @open_to(REVIEWER, oneself="reviewer_id")
    def record_exposure(self, reviewer_id: str, trace_ids: Sequence[str], what: str) -> None:
        """Record the first exposure to labels, verdicts or canonical labels: it ends blindness."""
        asked = list(dict.fromkeys(trace_ids))
        with self._db.read() as cursor:
            known = cursor.execute(
                "SELECT trace_id FROM exposure WHERE reviewer_id = ? AND what = ? "
                "AND list_contains(?::VARCHAR[], trace_id)",
                [reviewer_id, what, asked],
            ).fetchall()
        new = sorted(set(asked) - {row[0] for row in known})
        if new:
            with self._db.write() as cursor:
                _expose(cursor, [(trace_id, reviewer_id) for trace_id in new], what)

    @open_to(LEAD)
    def exposure_frame(self) -> pd.DataFrame:
        """Return every exposure, oldest first."""
        return self._frame(
            "SELECT reviewer_id, trace_id, what, created_at FROM exposure ORDER BY seq"
        )
