"""Silent gold and own repeats: what is put between a reviewer's traces of a production batch.

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
from numpy.typing import NDArray

from calibration.reviewing.inserts import (
    GOLD,
    REPEAT,
    Pool,
    draws,
    expected,
    kind_at,
    pick,
)
from calibration.store.companions import add_companion, companion
from calibration.store.database import Cursor, utc_now
from calibration.store.insert_candidates import candidates
from calibration.store.leases import Leases, claim, due_leases
from calibration.store.progress import OwnProgress, Plan, Progress

SECRET = "insert_secret"
# Pools are counted anew now and then: progress must not move with what the reviewer does.
COUNTED_EVERY = timedelta(minutes=10)


@dataclass(slots=True)
class PutIn:
    """What is put between the traces of one reviewer in one batch, as the queue serves it.

    `slots` has every insert, `pending` those not decided yet. No insert comes before one of the
    batch's own traces that was ever given to the reviewer.
    """

    cursor: Cursor
    progress: Progress
    plan: Plan
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
        progress: Progress,
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
            found = self.cursor.execute(
                "SELECT value FROM setting WHERE name = ? ORDER BY seq DESC LIMIT 1", [SECRET]
            ).fetchone()
            if found is None:
                # Not kept in memory before it is stored: a rollback could not be followed.
                return set_secret(self.cursor, secrets.token_hex(16))
            self.progress.secret = str(json.loads(found[0]))
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
