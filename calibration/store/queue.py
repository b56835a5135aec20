"""The queue: the next trace of a reviewer, and the hidden quality-control items in it.

A slot is one decision of a reviewer in a batch, from 0. Its number in [0, 1) never changes and
cannot be computed without the secret of the store: low numbers ask for gold, high ones for a
repeat.
"""

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.errors import InputError
from calibration.records import CONSTRAINTS, REFERENCE_SOURCE, LabelDraft, TraceForReview
from calibration.store.batches import SUFFIX, add_companion, companion, hidden_items_of
from calibration.store.database import Cursor, record_audit, rows, setting, utc_now
from calibration.store.labels import drafts as drafts_of
from calibration.store.labels import insert_labels, marks_violations
from calibration.store.leases import (
    BatchPlan,
    BatchProgress,
    DeskWork,
    Leases,
    OwnProgress,
    Pool,
    Seat,
    StoreProgress,
    check_admitted,
    claim,
    due_leases,
)
from calibration.store.people import LEAD, REVIEWER, open_to
from calibration.store.traces import TraceStore
from calibration.text import weeks_of

GOLD, REPEAT = "gold", "repeat"
GOLD_RATE = REPEAT_RATE = 0.05
FULL_POOL = 30
REPEAT_AFTER = timedelta(days=7)

# Labels by this many reviewers make the consensus of a trace usable as gold.
GOLD_REVIEWERS = 2


def gold_rate(pool: int) -> float:
    """Return the share of slots with gold: lower for a pool that would soon be used up."""
    return GOLD_RATE * min(1.0, pool / FULL_POOL)


def draws(secret: str, batch_id: str, reviewer_id: str, n: int) -> NDArray[np.float64]:
    """Return the numbers of the first `n` slots; they do not depend on `n`."""
    key = _key(secret, batch_id, reviewer_id)
    numbers = np.frombuffer(hashlib.shake_256(key).digest(4 * n), dtype=">u4")
    return numbers.astype(np.float64) / 2.0**32


def kind_at(draw: float, workflow: str, pool: Pool) -> str | None:
    """Return the kind of item in the slot with this number before a trace of a workflow, if any."""
    # `pool` includes used items, so that using one does not change later slots.
    if draw < gold_rate(pool.get((GOLD, workflow), 0)):
        return GOLD
    if draw >= 1 - REPEAT_RATE and pool.get((REPEAT, workflow), 0):
        return REPEAT
    return None


def expected(
    numbers: NDArray[np.float64],
    slot: int,
    workflows: Sequence[str],  # of the traces left, in order
    pool: Pool,  # used items included
    used: Iterable[tuple[str, str]],
    filled: Set[int] = frozenset(),  # slots that have had their item
) -> int:
    """Return how many items will come between the traces left, from slot `slot` on."""
    # Progress counts them from the start, so that it does not move when one is served.
    free = Counter(dict(pool))
    free.subtract(Counter(used))
    unused = sum(n for n in free.values() if n > 0)
    put_in = 0
    calls = (numbers[slot:] < GOLD_RATE) | (numbers[slot:] >= 1 - REPEAT_RATE)
    calls[[at - slot for at in filled if slot <= at < len(numbers)]] = False
    for ahead in np.flatnonzero(calls).tolist():
        place = ahead - put_in
        if place >= len(workflows) or put_in == unused:
            break
        kind = kind_at(float(numbers[slot + ahead]), workflows[place], pool)
        if kind is not None and free[kind, workflows[place]] > 0:
            free[kind, workflows[place]] -= 1
            put_in += 1
    return put_in


def pick(
    secret: str, batch_id: str, reviewer_id: str, slot: int, trace_ids: Sequence[str]
) -> str | None:
    """Return the trace for a slot, None if there is none; their order does not matter."""

    def place(trace_id: str) -> bytes:
        return hashlib.sha256(_key(secret, batch_id, reviewer_id, str(slot), trace_id)).digest()

    return min(trace_ids, key=place, default=None)


def _key(*parts: str) -> bytes:
    # Lengths first: no two lists of parts give one key.
    return b"".join(f"{len(part)}:{part}".encode() for part in parts)


# No item is a trace that its reviewer knows or will be given anyway.
OPEN_TO = """
  SELECT i.trace_id FROM batch_item i JOIN batch b USING (batch_id)
  LEFT JOIN (
    SELECT batch_id, trace_id, count(*) AS labels, bool_or(reviewer_id = $reviewer) AS mine
    FROM label_current WHERE taxonomy_version = $version AND kind = 'label'
    GROUP BY batch_id, trace_id
  ) AS l ON l.batch_id = i.batch_id AND l.trace_id = i.trace_id
  WHERE b.purpose = 'production' AND coalesce(labels, 0) < i.labels_wanted
  AND NOT coalesce(mine, false)
"""

_JUDGED_BY = """
  SELECT trace_id FROM exposure WHERE reviewer_id = $reviewer
  UNION ALL SELECT trace_id FROM adjudication_event WHERE adjudicator = $reviewer
  UNION ALL SELECT trace_id FROM flag_event WHERE reviewer_id = $reviewer
"""

SECRET = "insert_secret"

# The expected class of an item: the own label of the batch, else the consensus.
_AGAINST = """
SELECT 'repeat', event_id, outcome FROM label_current WHERE batch_id = $batch
AND reviewer_id = $reviewer AND trace_id = $trace AND taxonomy_version = $version
AND kind = 'label'
UNION ALL SELECT 'gold', event_id, outcome FROM consensus
WHERE trace_id = $trace AND taxonomy_version = $version
"""

_GOLD = f"""
SELECT c.trace_id, t.workflow, c.event_id AS against, c.outcome, false AS here
FROM consensus c JOIN trace t USING (trace_id) JOIN (
  SELECT trace_id FROM label_current SEMI JOIN (FROM batch WHERE purpose = 'production')
    USING (batch_id)
  WHERE kind = 'label' AND taxonomy_version = $version
  GROUP BY trace_id HAVING count(DISTINCT reviewer_id) >= {GOLD_REVIEWERS}
) USING (trace_id)
WHERE c.taxonomy_version = $version AND t.source <> '{REFERENCE_SOURCE}'
AND list_contains($workflows::VARCHAR[], t.workflow)
AND c.trace_id NOT IN (
  SELECT trace_id FROM label_event WHERE reviewer_id = $reviewer
  UNION ALL SELECT trace_id FROM lease WHERE reviewer_id = $reviewer
  -- Put in a moment ago for the same answer, and so not claimed yet.
  UNION ALL SELECT trace_id FROM inserted WHERE reviewer_id = $reviewer
  UNION ALL {_JUDGED_BY}
)
AND c.trace_id NOT IN ({OPEN_TO})
"""

_REPEAT = f"""
SELECT l.trace_id, t.workflow, l.event_id AS against, l.outcome, l.batch_id = $batch AS here
FROM label_current l SEMI JOIN (FROM batch WHERE purpose = 'production') USING (batch_id)
JOIN trace t USING (trace_id)
WHERE l.reviewer_id = $reviewer AND l.kind = 'label' AND l.taxonomy_version = $version
AND t.source <> '{REFERENCE_SOURCE}' AND list_contains($workflows::VARCHAR[], t.workflow)
AND l.trace_id NOT IN (
  SELECT trace_id FROM label_event WHERE reviewer_id = $reviewer AND created_at > $cutoff
  UNION ALL SELECT trace_id FROM lease WHERE reviewer_id = $reviewer AND expires_at > $cutoff
  UNION ALL SELECT trace_id FROM inserted WHERE reviewer_id = $reviewer
  UNION ALL {_JUDGED_BY}
)
AND l.trace_id NOT IN ({OPEN_TO})
QUALIFY row_number() OVER (PARTITION BY l.trace_id ORDER BY l.seq DESC) = 1
"""

_CANDIDATES = {GOLD: _GOLD, REPEAT: _REPEAT}


def candidates(
    cursor: Cursor,
    kind: str,
    seat: Seat,
    workflows: Iterable[str],
    now: datetime,
) -> list[dict[str, Any]]:
    """Return trace_id, workflow, against, outcome and here of the possible items."""
    named: Any = {
        "reviewer": seat.reviewer_id, "version": seat.version, "workflows": sorted(workflows),
    }  # fmt: skip
    if kind == REPEAT:
        named |= {"batch": seat.batch_id, "cutoff": now - REPEAT_AFTER}
    return rows(cursor, _CANDIDATES[kind], named)


# Pools are recounted at intervals: progress must not react to what the reviewer does.
COUNTED_EVERY = timedelta(minutes=10)


@dataclass(slots=True)
class HiddenItems:
    """Hidden items in the queue of one reviewer; none comes before a trace shown to them."""

    cursor: Cursor
    progress: StoreProgress
    plan: BatchPlan
    seat: Seat
    apart: OwnProgress
    leases: Leases
    now: datetime
    slots: dict[str, int] = field(default_factory=dict)  # of every item
    used: list[tuple[str, str]] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)  # items to be decided
    pool: Pool = field(default_factory=dict)
    next_slot: int = 0

    @classmethod
    def read(
        cls,
        cursor: Cursor,
        progress: StoreProgress,
        leases: Leases,
        seat: Seat,
        now: datetime,
    ) -> "HiddenItems":
        """Read the items so far; only production has any. `progress` must have been read before."""
        plan = progress.plan(cursor, seat.batch_id)
        apart = progress.at(companion(seat.batch_id), seat.version).own[seat.reviewer_id]
        put_in = cls(cursor, progress, plan, seat, apart, leases, now)
        if plan.purpose != "production":
            return put_in
        found = cursor.execute(
            "SELECT trace_id, slot, kind FROM inserted "
            "WHERE batch_id = ? AND reviewer_id = ? AND taxonomy_version = ? ORDER BY slot",
            [seat.batch_id, seat.reviewer_id, seat.version],
        ).fetchall()
        workflows = progress.workflows_of(cursor, [trace_id for trace_id, _, _ in found])
        put_in.slots = {trace_id: slot for trace_id, slot, _ in found}
        put_in.used = [(kind, workflows[trace_id]) for trace_id, _, kind in found]
        put_in.pending = [t for t in put_in.slots if t not in apart.decided]
        put_in.pool = put_in._count()
        return put_in

    def _count(self) -> Pool:
        at, pool = self.progress.pools.get(self.seat, (None, {}))
        if at is None or not timedelta(0) <= self.now - at < COUNTED_EVERY:
            workflows = set(self.plan.workflows.values())
            pool = Counter(self.used)
            for kind in (GOLD, REPEAT):
                found = candidates(self.cursor, kind, self.seat, workflows, self.now)
                pool.update((kind, candidate["workflow"]) for candidate in found)
            self.progress.pools[self.seat] = self.now, pool
        return pool

    def in_order(
        self,
        left: Mapping[str, None],
        taken: Set[str],
        undone: Mapping[str, int],
        decided: int,
    ) -> Iterator[str]:
        """Yield undone traces (last undone first), held ones, then the others; items at slots."""
        held, shown = self.leases.held, self.leases.shown
        back = {t: seq for t, seq in undone.items() if t in left and t not in taken}
        back |= {t: self.apart.undone[t] for t in self.pending if t in self.apart.undone}
        self.next_slot = decided + len(self.pending) + len(left.keys() & shown)
        yield from sorted(back, key=lambda t: -back[t])
        place = decided + len(back)
        waiting = [t for t in self.pending if t not in back]
        ahead = [t for t in held if t in left and t not in taken and t not in back]
        ahead.sort(key=self.plan.places.__getitem__)
        rest = (t for t in left if t not in held and t not in taken and t not in back)
        for trace_id in chain(ahead, rest):
            while waiting and (
                self.slots[waiting[0]] <= place
                or (waiting[0] in self.leases.apart and trace_id not in held)
            ):
                yield waiting.pop(0)
                place += 1
            if trace_id not in shown:
                while (new := self._make(self.plan.workflows[trace_id])) is not None:
                    yield new
                    place += 1
                self.next_slot += 1
            yield trace_id
            place += 1
        yield from waiting

    def _make(self, workflow: str) -> str | None:
        """Create the item of the next slot if one is due and a trace is available."""
        if not self.pool or self.next_slot in self.slots.values():
            return None
        secret = self._secret()
        number = float(self._draws(self.next_slot + 1)[self.next_slot])
        kind = kind_at(number, workflow, self.pool)
        if kind is None:
            return None
        found = candidates(self.cursor, kind, self.seat, [workflow], self.now)
        # Own labels of this batch are listed on the page: prefer another batch.
        found = [c for c in found if not c["here"]] or found
        by_id = {candidate["trace_id"]: candidate for candidate in found}
        batch_id, reviewer_id = self.seat.batch_id, self.seat.reviewer_id
        chosen = pick(secret, batch_id, reviewer_id, self.next_slot, list(by_id))
        if chosen is None:
            return None
        add_companion(self.cursor, batch_id, self.now)
        key = by_id[chosen]["against"], by_id[chosen]["outcome"]
        _insert_item(
            self.cursor, batch_id, reviewer_id, chosen, self.seat.version, kind, self.next_slot,
            *key, self.now,
        )  # fmt: skip
        self.slots[chosen] = self.next_slot
        self.used.append((kind, workflow))
        self.pending.append(chosen)
        self.next_slot += 1
        return chosen

    def claim(self, offered: list[str]) -> None:
        """Lease the items among the traces offered, or renew their leases."""
        inserts = [t for t in offered if t in self.slots]
        due = due_leases(inserts, self.leases.apart, self.now)
        claim(self.cursor, companion(self.seat.batch_id), due, self.seat.reviewer_id)

    def to_come(self, left: Mapping[str, None], taken: Set[str], offered: Sequence[str]) -> int:
        """Return the number of items pending or to come between the traces left."""
        if not self.pool:
            return len(self.pending)
        # What others hold comes last.
        shown = (left.keys() & self.leases.shown).union(offered)
        last = (taken & left.keys()) - shown
        known = shown | last
        workflows = self.plan.workflows
        fresh = [workflows[t] for t in left if t not in known]
        fresh += [workflows[t] for t in sorted(last, key=self.plan.places.__getitem__)]
        longest = self.next_slot + len(fresh) + max(0, sum(self.pool.values()) - len(self.used))
        numbers = self._draws(longest)
        return len(self.pending) + expected(
            numbers, self.next_slot, fresh, self.pool, self.used, set(self.slots.values())
        )

    def _draws(self, n: int) -> NDArray[np.float64]:
        """Return the numbers of the first `n` slots, cached."""
        key = self.seat.batch_id, self.seat.reviewer_id
        drawn = self.progress.drawn.get(key)
        if drawn is None or len(drawn) < n:
            drawn = draws(self._secret(), *key, 2 * n)
            if self.progress.secret is not None:
                self.progress.drawn[key] = drawn
        return drawn[:n]

    def _secret(self) -> str:
        if self.progress.secret is None:
            found = setting(self.cursor, SECRET)
            if found is None:
                # Not cached before it is stored: a rollback could not be followed.
                return set_secret(self.cursor, secrets.token_hex(16))
            self.progress.secret = str(found)
        return self.progress.secret


def set_secret(cursor: Cursor, secret: str) -> str:
    """Store the secret of the slots."""
    cursor.execute(
        "INSERT INTO setting (name, value, created_at) VALUES (?, ?, ?)",
        [SECRET, json.dumps(secret), utc_now()],
    )
    return secret


def _insert_item(cursor: Cursor, *values: object) -> None:
    cursor.execute(
        "INSERT INTO inserted (batch_id, reviewer_id, trace_id, taxonomy_version, kind, slot, "
        "against, outcome, seq, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, nextval('event_seq'), ?)",
        list(values),
    )


def _import_item(cursor: Cursor, version: str, batch_id: str, draft: LabelDraft, slot: int) -> None:
    named = {
        "batch": batch_id, "reviewer": draft.reviewer_id, "trace": draft.trace_id,
        "version": version,
    }  # fmt: skip
    found = {kind: rest for kind, *rest in cursor.execute(_AGAINST, named).fetchall()}
    kind = REPEAT if REPEAT in found else GOLD
    if kind not in found:
        raise InputError(
            f"trace {draft.trace_id!r} has no consensus, and no label of {draft.reviewer_id!r} in "
            f"batch {batch_id!r}: there is nothing to compare a check with"
        )
    _insert_item(
        cursor, batch_id, draft.reviewer_id, draft.trace_id, version, kind, slot, *found[kind],
        utc_now(),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """What one reviewer is given now: the current trace first, then the next ones."""

    items: tuple[TraceForReview, ...]
    drafts: dict[str, LabelDraft]
    done: int
    skipped: int
    total: int
    state: str  # open; waiting: others hold the rest; finished
    purpose: str
    last: tuple[str, str | None] | None  # trace and class (None: a skip) that one undo takes back
    tags: list[str]  # the reviewer's own, by use
    pace_s: float | None  # median active time of the last labels
    constraints: tuple[str, ...] = ()  # whose violations are asked for


def _left(left: Mapping[str, None], put_in: Mapping[str, int]) -> Mapping[str, None]:
    """Return the open traces of a batch without the hidden items."""
    if left.keys().isdisjoint(put_in):
        return left
    return {t: None for t in left if t not in put_in}


def _taken(progress: BatchProgress, plan: BatchPlan, others: Sequence[tuple[str, str]]) -> set[str]:
    """Return the traces whose leases would complete their labels."""
    holders = Counter(t for who, t in others if t not in progress.own[who].decided)
    labels, wanted = progress.labels, plan.wanted
    return {t for t, n in holders.items() if labels.get(t, 0) + n >= wanted.get(t, 0)}


class QueueStore(TraceStore):
    """The queue of each reviewer in a batch; for leads, its hidden items."""

    def _admitted_plan(self, cursor: Cursor, seat: Seat, *, to_label: bool) -> BatchPlan:
        """Return the plan of a batch to which a reviewer is admitted."""
        progress = self._db.held(StoreProgress)
        progress.check_reviewer(cursor, seat.reviewer_id)
        plan = progress.plan(cursor, seat.batch_id)
        check_admitted(self._db, cursor, plan, seat, to_label=to_label)
        return plan

    @open_to(REVIEWER, oneself="reviewer_id")
    def queue(self, reviewer_id: str, batch_id: str, *, limit: int = 3) -> Queue:
        """Lease the next traces to a reviewer; those leased to others count as taken meanwhile."""
        seat = Seat(reviewer_id, batch_id, self._rules().version)
        if limit < 1:
            raise ValueError(f"limit must be at least 1, got {limit}")
        now, store = utc_now(), self._db.held(StoreProgress)
        with self._db.write() as cursor:
            plan = self._admitted_plan(cursor, seat, to_label=True)
            progress = store.of(cursor, batch_id, seat.version)
            own = progress.own[reviewer_id]
            leases = Leases.read(cursor, store, seat, companion_id=companion(batch_id), now=now)
            put_in = HiddenItems.read(cursor, store, leases, seat, now)
            work = DeskWork(own, put_in.apart)
            left = _left(progress.left(plan.wanted, reviewer_id), put_in.slots)
            taken = _taken(progress, plan, leases.others)
            counts = work.kinds
            decided = counts.total()
            in_order = put_in.in_order(left, taken, own.undone, decided)
            offered = list(islice(in_order, limit))
            due = due_leases([t for t in offered if t not in put_in.slots], leases.held, now)
            claim(cursor, batch_id, due, reviewer_id)
            put_in.claim(offered)
            last, tags, pace_s = work.latest(), work.own_tags(), work.pace()
            total = decided + len(left) + put_in.to_come(left, taken, offered)
        with self._db.read() as cursor:
            asks = plan.purpose == "production" and marks_violations(self._db, cursor)
            under = {t: companion(batch_id) if t in put_in.slots else batch_id for t in offered}
            drafts = drafts_of(cursor, reviewer_id, under)
        return Queue(
            items=tuple(self._unbound().for_review(offered)),
            drafts=drafts,
            done=counts["label"],
            skipped=counts["skip"],
            total=total,
            state="open" if offered else "waiting" if left else "finished",
            purpose=plan.purpose,
            last=None if last is None else (last[0], last[1].outcome),
            tags=tags,
            pace_s=pace_s,
            constraints=CONSTRAINTS if asks else (),
        )

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def has_open_items(self, reviewer_id: str, batch_id: str) -> bool:
        """Return whether this reviewer, certified or not, has traces of the batch left to label."""
        # While they have, the labels of others stay hidden from them.
        seat = Seat(reviewer_id, batch_id, self._rules().version)
        store = self._db.held(StoreProgress)
        with self._db.write() as cursor:
            plan = self._admitted_plan(cursor, seat, to_label=False)
            progress = store.of(cursor, batch_id, seat.version)
            slots, pending = hidden_items_of(cursor, store, seat)
            left = _left(progress.left(plan.wanted, reviewer_id), slots)
        return bool(left or pending)

    @open_to(LEAD)
    def hidden_item_frame(self) -> pd.DataFrame:
        """Return every decided hidden item, in the order of the decisions.

        Columns: reviewer_id, trace_id, workflow, batch_id, kind (gold or repeat), slot, against
        (class of the consensus, or of the first label), given (class; missing: a skip), blind (not
        exposed since to what others gave), flag (reason or an empty text; missing: not flagged),
        simulated, at, week (ISO).
        """
        found = self._frame(
            "SELECT i.reviewer_id, i.trace_id, t.workflow, i.batch_id, i.kind, i.slot, "
            "i.outcome AS against, l.outcome AS given, NOT EXISTS (SELECT 1 FROM exposure e "
            "WHERE e.reviewer_id = i.reviewer_id AND e.trace_id = i.trace_id AND e.seq < l.seq) "
            "AS blind, CASE WHEN f.seq IS NOT NULL THEN coalesce(f.reason, '') END AS flag, "
            "l.simulated, l.created_at AS at "
            "FROM inserted i JOIN trace t USING (trace_id) JOIN label_current l "
            "ON l.batch_id = i.batch_id || ? AND l.reviewer_id = i.reviewer_id "
            "AND l.trace_id = i.trace_id AND l.taxonomy_version = i.taxonomy_version "
            "LEFT JOIN flag_current f ON f.batch_id = l.batch_id "
            "AND f.reviewer_id = l.reviewer_id AND f.trace_id = l.trace_id "
            "WHERE i.taxonomy_version = ? ORDER BY l.seq",
            [SUFFIX, self._rules().version],
        )
        return found.assign(week=weeks_of(found["at"]))

    @open_to(LEAD)
    def hidden_item_pools(self, batch_id: str) -> pd.DataFrame:
        """Return the hidden items available, by reviewer and workflow of a batch."""
        # `repeats_from`: when the first own label is old enough; missing without a label.
        taxonomy_version = self._rules().version
        now, found = utc_now(), []
        with self._db.read() as cursor:
            named = cursor.execute(
                "SELECT DISTINCT t.workflow FROM batch_item JOIN trace t USING (trace_id) "
                "WHERE batch_id = ? ORDER BY 1",
                [batch_id],
            ).fetchall()
            first = cursor.execute(
                "SELECT reviewer_id, workflow, min(l.created_at) FROM label_current l "
                "SEMI JOIN (FROM batch WHERE purpose = 'production') USING (batch_id) "
                "JOIN trace t USING (trace_id) WHERE kind = 'label' AND taxonomy_version = ? "
                "GROUP BY ALL",
                [taxonomy_version],
            ).fetchall()
            begun = {(who, workflow): at + REPEAT_AFTER for who, workflow, at in first}
            workflows = [row[0] for row in named]
            people = cursor.execute("SELECT reviewer_id FROM reviewer ORDER BY 1").fetchall()
            for (reviewer,) in people:
                seat = Seat(reviewer, batch_id, taxonomy_version)
                by_kind = {
                    kind: candidates(cursor, kind, seat, workflows, now) for kind in (GOLD, REPEAT)
                }
                found += [
                    {
                        "reviewer_id": reviewer,
                        "workflow": name,
                        "gold": sum(c["workflow"] == name for c in by_kind[GOLD]),
                        "repeats": sum(c["workflow"] == name for c in by_kind[REPEAT]),
                        "repeats_from": begun.get((reviewer, name)),
                    }
                    for name in workflows
                ]
        columns = ["reviewer_id", "workflow", "gold", "repeats", "repeats_from"]
        return pd.DataFrame(found, columns=columns)

    @open_to(LEAD)
    def import_hidden_items(self, batch_id: str, drafts: Sequence[LabelDraft]) -> int:
        """Store checks of a batch once each, in order; return how many are new."""
        # They count for drift and self-agreement only.
        taxonomy = self._rules()
        with self._db.write() as cursor:
            people = dict(cursor.execute("SELECT reviewer_id, simulated FROM reviewer").fetchall())
            traces = dict(cursor.execute("SELECT trace_id, simulated FROM trace").fetchall())
            known = {
                (reviewer_id, trace_id): slot
                for reviewer_id, trace_id, slot in cursor.execute(
                    "SELECT reviewer_id, trace_id, slot FROM inserted WHERE batch_id = ? "
                    "AND taxonomy_version = ?",
                    [batch_id, taxonomy.version],
                ).fetchall()
            }
            fresh = []
            for draft in drafts:
                if draft.reviewer_id not in people or draft.trace_id not in traces:
                    raise InputError(
                        f"no reviewer {draft.reviewer_id!r} or no trace {draft.trace_id!r} "
                        "in the store"
                    )
                if (draft.reviewer_id, draft.trace_id) in known:
                    continue
                own = [slot for (who, _), slot in known.items() if who == draft.reviewer_id]
                slot = max(own, default=-1) + 1
                _import_item(cursor, taxonomy.version, batch_id, draft, slot)
                known[draft.reviewer_id, draft.trace_id] = slot
                fresh.append((draft, taxonomy.outcome(draft.answers)))
            if fresh:
                add_companion(cursor, batch_id, utc_now())
                simulated = [people[d.reviewer_id] or traces[d.trace_id] for d, _ in fresh]
                insert_labels(cursor, taxonomy, companion(batch_id), fresh, simulated)
                record_audit(cursor, "checks imported", batch_id=batch_id, stored=len(fresh))
        return len(fresh)
