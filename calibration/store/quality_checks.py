"""Hidden quality-control items: gold and repeats in a reviewer's production batch.

What is said of an insert is stored under the companion of the batch.
"""

import json
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.errors import InputError
from calibration.records import REFERENCE_SOURCE, LabelDraft
from calibration.reviewers.quality_checks import (
    GOLD,
    GOLD_REVIEWERS,
    REPEAT,
    REPEAT_AFTER,
    Pool,
    draws,
    expected,
    kind_at,
    pick,
)
from calibration.store.batches import SUFFIX, add_companion, companion
from calibration.store.database import Cursor, record_audit, rows, setting, utc_now
from calibration.store.labels import insert_labels
from calibration.store.leases import Leases, claim, due_leases
from calibration.store.permissions import LEAD, StorePart, open_to
from calibration.store.progress import BatchPlan, OwnProgress, StoreProgress
from calibration.weeks import weeks_of

# Nobody is put a trace in that they know, or that will come to them by itself.
_OPEN_TO = """
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


# What an insert is held against: the own label of the batch, else the consensus.
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
AND c.trace_id NOT IN ({_OPEN_TO})
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
AND l.trace_id NOT IN ({_OPEN_TO})
QUALIFY row_number() OVER (PARTITION BY l.trace_id ORDER BY l.seq DESC) = 1
"""

_CANDIDATES = {GOLD: _GOLD, REPEAT: _REPEAT}


def candidates(
    cursor: Cursor,
    kind: str,
    *,
    reviewer: str,
    version: str,
    batch: str,
    workflows: list[str],
    now: datetime,
) -> list[dict[str, Any]]:
    """Return trace_id, workflow, against, outcome and here of what may be put in."""
    named: Any = {"reviewer": reviewer, "version": version, "workflows": workflows}
    if kind == REPEAT:
        named |= {"batch": batch, "cutoff": now - REPEAT_AFTER}
    return rows(cursor, _CANDIDATES[kind], named)


# Pools are counted anew now and then: progress must not move with what the reviewer does.
COUNTED_EVERY = timedelta(minutes=10)


@dataclass(slots=True)
class PutIn:
    """What is put between the traces of one reviewer in one batch, as the queue serves it.

    `slots` has every insert, `pending` those not decided yet. No insert comes before one of the
    batch's own traces that was ever given to the reviewer.
    """

    cursor: Cursor
    progress: StoreProgress
    plan: BatchPlan
    batch_id: str
    reviewer_id: str
    taxonomy_version: str
    apart: OwnProgress
    leases: Leases
    now: datetime
    slots: dict[str, int] = field(default_factory=dict)
    used: list[tuple[str, str]] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    pool: Pool = field(default_factory=dict)
    next_slot: int = 0

    @classmethod
    def read(
        cls,
        cursor: Cursor,
        progress: StoreProgress,
        leases: Leases,
        *,
        batch_id: str,
        reviewer_id: str,
        taxonomy_version: str,
        now: datetime,
    ) -> "PutIn":
        """Read what was put in so far; batches of other purposes have nothing.

        `progress` must have been read before.
        """
        plan = progress.plan(cursor, batch_id)
        apart = progress.at(companion(batch_id), taxonomy_version).own[reviewer_id]
        put_in = cls(
            cursor, progress, plan, batch_id, reviewer_id, taxonomy_version, apart, leases, now
        )
        if plan.purpose != "production":
            return put_in
        found = cursor.execute(
            "SELECT trace_id, slot, kind FROM inserted "
            "WHERE batch_id = ? AND reviewer_id = ? AND taxonomy_version = ? ORDER BY slot",
            [batch_id, reviewer_id, taxonomy_version],
        ).fetchall()
        workflows = progress.workflows_of(cursor, [trace_id for trace_id, _, _ in found])
        put_in.slots = {trace_id: slot for trace_id, slot, _ in found}
        put_in.used = [(kind, workflows[trace_id]) for trace_id, _, kind in found]
        put_in.pending = [t for t in put_in.slots if t not in apart.decided]
        put_in.pool = put_in._count()
        return put_in

    def _count(self) -> Pool:
        key = self.batch_id, self.reviewer_id, self.taxonomy_version
        at, pool = self.progress.pools.get(key, (None, {}))
        if at is None or not timedelta(0) <= self.now - at < COUNTED_EVERY:
            workflows = set(self.plan.workflows.values())
            pool = Counter(self.used)
            for kind in (GOLD, REPEAT):
                pool.update((kind, c["workflow"]) for c in self._candidates(kind, workflows))
            self.progress.pools[key] = self.now, pool
        return pool

    def in_order(
        self,
        left: Mapping[str, None],
        taken: Set[str],
        undone: Mapping[str, int],
        decided: int,
    ) -> Iterator[str]:
        """Put the traces undone last first, then those held, and keep the order of the batch.

        An insert comes at its slot, and is made when its place is reached.
        """
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
        """Put a trace in at the next slot, where one is due and there is one."""
        if not self.pool or self.next_slot in self.slots.values():
            return None
        secret = self._secret()
        number = float(self._draws(self.next_slot + 1)[self.next_slot])
        kind = kind_at(number, workflow, self.pool)
        if kind is None:
            return None
        found = self._candidates(kind, {workflow})
        # The list of own labels shows the first label of a trace of this batch: rather another.
        found = [c for c in found if not c["here"]] or found
        by_id = {candidate["trace_id"]: candidate for candidate in found}
        chosen = pick(secret, self.batch_id, self.reviewer_id, self.next_slot, list(by_id))
        if chosen is None:
            return None
        self._store(by_id[chosen], kind)
        self.slots[chosen] = self.next_slot
        self.used.append((kind, workflow))
        self.pending.append(chosen)
        self.next_slot += 1
        return chosen

    def _store(self, chosen: dict[str, Any], kind: str) -> None:
        add_companion(self.cursor, self.batch_id, self.now)
        self.cursor.execute(
            "INSERT INTO inserted (batch_id, reviewer_id, trace_id, taxonomy_version, kind, slot, "
            "against, outcome, seq, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, nextval('event_seq'), ?)",
            [
                self.batch_id, self.reviewer_id, chosen["trace_id"], self.taxonomy_version, kind,
                self.next_slot, chosen["against"], chosen["outcome"], self.now,
            ],
        )  # fmt: skip

    def claim(self, offered: list[str]) -> None:
        """Give the inserts among the traces offered to the reviewer, or renew them."""
        inserts = [t for t in offered if t in self.slots]
        due = due_leases(inserts, self.leases.apart, self.now)
        claim(self.cursor, companion(self.batch_id), due, self.reviewer_id)

    def to_come(self, left: Mapping[str, None], taken: Set[str], offered: Sequence[str]) -> int:
        """Return how many inserts are pending, or will be put in before the traces left."""
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
        return len(self.pending) + expected(numbers, self.next_slot, fresh, self.pool, self.used)

    def _draws(self, n: int) -> NDArray[np.float64]:
        """Return the numbers of the first `n` slots, drawn once."""
        key = self.batch_id, self.reviewer_id
        drawn = self.progress.drawn.get(key)
        if drawn is None or len(drawn) < n:
            drawn = draws(self._secret(), *key, 2 * n)
            if self.progress.secret is not None:
                self.progress.drawn[key] = drawn
        return drawn[:n]

    def _secret(self) -> str:
        """Return what makes the slots of this store unlike those of every other one."""
        if self.progress.secret is None:
            found = setting(self.cursor, SECRET)
            if found is None:
                # Not kept in memory before it is stored: a rollback could not be followed.
                return set_secret(self.cursor, secrets.token_hex(16))
            self.progress.secret = str(found)
        return self.progress.secret

    def _candidates(self, kind: str, workflows: set[str]) -> list[dict[str, Any]]:
        return candidates(
            self.cursor,
            kind,
            reviewer=self.reviewer_id,
            version=self.taxonomy_version,
            batch=self.batch_id,
            workflows=sorted(workflows),
            now=self.now,
        )


def set_secret(cursor: Cursor, secret: str) -> str:
    """Store the secret that the slots are drawn from."""
    cursor.execute(
        "INSERT INTO setting (name, value, created_at) VALUES (?, ?, ?)",
        [SECRET, json.dumps(secret), utc_now()],
    )
    return secret


def _insert(cursor: Cursor, version: str, batch_id: str, draft: LabelDraft, slot: int) -> None:
    named = {
        "batch": batch_id,
        "reviewer": draft.reviewer_id,
        "trace": draft.trace_id,
        "version": version,
    }
    found = {kind: rest for kind, *rest in cursor.execute(_AGAINST, named).fetchall()}
    kind = REPEAT if REPEAT in found else GOLD
    if kind not in found:
        raise InputError(
            f"trace {draft.trace_id!r} has no consensus, and no label of {draft.reviewer_id!r} in "
            f"batch {batch_id!r}: there is nothing to hold a check against"
        )
    cursor.execute(
        "INSERT INTO inserted (batch_id, reviewer_id, trace_id, taxonomy_version, kind, slot, "
        "against, outcome, seq, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, nextval('event_seq'), ?)",
        [
            batch_id, draft.reviewer_id, draft.trace_id, version, kind, slot, *found[kind],
            utc_now(),
        ],
    )  # fmt: skip


class QualityCheckStore(StorePart):
    """Hidden gold and repeat items, for leads."""

    @open_to(LEAD)
    def insert_frame(self) -> pd.DataFrame:
        """Return every insert that was decided, in the order of the decisions.

        Columns: reviewer_id, trace_id, workflow, batch_id, kind (gold or repeat), slot, against
        (class of the consensus, or of the first label), given (class; missing: a skip), blind
        (nobody showed the reviewer meanwhile what others said), flag (reason or an empty text;
        missing: not flagged), simulated, at, week (ISO, for instance 2026-W07).
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
    def insert_pools(self, batch_id: str) -> pd.DataFrame:
        """Return what could be put in, by reviewer and workflow of a batch.

        Columns: reviewer_id, workflow, gold, repeats (traces) and repeats_from (when the first own
        label is old enough; missing: there is none).
        """
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
                by_kind = {
                    kind: candidates(
                        cursor, kind, reviewer=reviewer, version=taxonomy_version, batch=batch_id,
                        workflows=workflows, now=now,
                    )
                    for kind in (GOLD, REPEAT)
                }  # fmt: skip
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
    def import_inserts(self, batch_id: str, drafts: Sequence[LabelDraft]) -> int:
        """Store checks of a batch once each, in their order; return how many are new.

        A trace that carries the reviewer's label of the batch is a repeat of it, one with a
        consensus is gold. The labels count nowhere but for drift and self-agreement.

        Raises
        ------
        InputError
            If a trace carries neither.
        """
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
                _insert(cursor, taxonomy.version, batch_id, draft, slot)
                known[draft.reviewer_id, draft.trace_id] = slot
                fresh.append((draft, taxonomy.outcome(draft.answers)))
            if fresh:
                add_companion(cursor, batch_id, utc_now())
                simulated = [people[d.reviewer_id] or traces[d.trace_id] for d, _ in fresh]
                insert_labels(cursor, taxonomy, companion(batch_id), fresh, simulated)
                record_audit(cursor, "checks imported", batch_id=batch_id, stored=len(fresh))
        return len(fresh)
