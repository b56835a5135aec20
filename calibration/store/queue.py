"""The queue: which trace a reviewer is given next."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from calibration.records import LabelDraft, TraceForReview
from calibration.store.batches import companion, inserts_of
from calibration.store.database import Cursor, utc_now
from calibration.store.labels import drafts as drafts_of
from calibration.store.leases import Leases, check_admitted, claim, due_leases
from calibration.store.permissions import REVIEWER, open_to
from calibration.store.progress import BatchPlan, BatchProgress, DeskWork
from calibration.store.quality_checks import PutIn
from calibration.store.traces import TraceStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """What one reviewer is given now: the current trace first, then the ones after it.

    `state` is ``open``, ``waiting`` (others hold what is left; it may come back) or
    ``finished`` (nothing is left for this reviewer). `last` is trace and class (None: a skip) of
    what one undo would take back, `tags` are the reviewer's own, the most used first, and
    `pace_s` is the median active time of their last labels.
    """

    items: tuple[TraceForReview, ...]
    drafts: dict[str, LabelDraft]
    done: int
    skipped: int
    total: int
    state: str
    purpose: str
    last: tuple[str, str | None] | None
    tags: list[str]
    pace_s: float | None


def _left(left: Mapping[str, None], put_in: Mapping[str, int]) -> Mapping[str, None]:
    """Return what is left of a batch without what is put in."""
    if left.keys().isdisjoint(put_in):
        return left
    return {t: None for t in left if t not in put_in}


def _taken(progress: BatchProgress, plan: BatchPlan, others: Sequence[tuple[str, str]]) -> set[str]:
    """Return the traces that get all the labels they want from those who hold them."""
    holders = Counter(t for who, t in others if t not in progress.own[who].decided)
    labels, wanted = progress.labels, plan.wanted
    return {t for t, n in holders.items() if labels.get(t, 0) + n >= wanted.get(t, 0)}


class QueueStore(TraceStore):
    """The queue of each reviewer in a batch."""

    def _admitted_plan(
        self, cursor: Cursor, reviewer_id: str, batch_id: str, version: str, *, to_label: bool
    ) -> BatchPlan:
        """Return the plan of a batch that a reviewer is let into."""
        self._db.progress.check_reviewer(cursor, reviewer_id)
        plan = self._db.progress.plan(cursor, batch_id)
        check_admitted(
            self._db, cursor, plan, reviewer_id=reviewer_id, batch_id=batch_id,
            taxonomy_version=version, to_label=to_label,
        )  # fmt: skip
        return plan

    @open_to(REVIEWER, oneself="reviewer_id")
    def queue(self, reviewer_id: str, batch_id: str, *, limit: int = 3) -> Queue:
        """Claim the next traces for a reviewer and return them.

        A trace that was undone comes first, then what the reviewer already holds, then the order
        of the batch. What other reviewers hold counts as taken until their lease expires.

        Raises
        ------
        InputError
            If the batch or the reviewer is not in the store.
        NotAllowedError, UncertifiedReviewerError
            If the batch is served to somebody else, or asks for a certificate (`check_admitted`).
        """
        version = self._rules().version
        if limit < 1:
            raise ValueError(f"limit must be at least 1, got {limit}")
        now = utc_now()
        with self._db.write() as cursor:
            plan = self._admitted_plan(cursor, reviewer_id, batch_id, version, to_label=True)
            progress = self._db.progress.of(cursor, batch_id, version)
            own = progress.own[reviewer_id]
            leases = Leases.read(
                cursor,
                self._db.progress,
                batch_id=batch_id,
                companion_id=companion(batch_id),
                reviewer_id=reviewer_id,
                now=now,
            )
            put_in = PutIn.read(
                cursor,
                self._db.progress,
                leases,
                batch_id=batch_id,
                reviewer_id=reviewer_id,
                taxonomy_version=version,
                now=now,
            )
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
        )

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def has_open_items(self, reviewer_id: str, batch_id: str) -> bool:
        """Return whether this reviewer still has traces of the batch to label.

        Somebody without the certificate that a batch asks for still has them: what others say of
        the batch stays hidden.

        Raises
        ------
        NotAllowedError
            If the batch is served to somebody else.
        """
        version = self._rules().version
        with self._db.write() as cursor:
            plan = self._admitted_plan(cursor, reviewer_id, batch_id, version, to_label=False)
            progress = self._db.progress.of(cursor, batch_id, version)
            slots, pending = inserts_of(cursor, self._db.progress, reviewer_id, batch_id, version)
            left = _left(progress.left(plan.wanted, reviewer_id), slots)
        return bool(left or pending)
