"""Batches, the queue, and who holds what."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from calibration.store import batches, frames, leases, queue
from calibration.store.batches import Batch
from calibration.store.interface.base import Calls
from calibration.store.interface.roles import LEAD, REVIEWER, open_to, ranks
from calibration.store.queue import Queue


class BatchCalls(Calls):
    """Batches, the queue, and who holds what."""

    @open_to(REVIEWER)
    def batches(self) -> list[Batch]:
        """Return all batches, newest first; reviewers see none that is served to others only."""
        found, actor = batches.batches(self._db), self._actor
        if actor is None or ranks(actor, LEAD):
            return found
        return [b for b in found if b.reviewer_id in (None, actor.reviewer_id)]

    @open_to(LEAD)
    def add_batch(
        self,
        *,
        purpose: str,
        trace_ids: Sequence[str],
        inclusion_probability: float | None = None,
        labels_wanted: int = 2,
        design: dict[str, Any] | None = None,
        token: str | None = None,
        item_labels: Sequence[int] | None = None,
        item_probabilities: Sequence[float] | None = None,
        item_strata: Sequence[int] | None = None,
        reviewer_id: str | None = None,
        certificate: str | None = None,
    ) -> Batch:
        """Store a batch; traces are served in the order given. A repeated token adds nothing."""
        return batches.add_batch(
            self._db,
            purpose=purpose,
            trace_ids=trace_ids,
            inclusion_probability=inclusion_probability,
            labels_wanted=labels_wanted,
            design=design or {},
            token=token,
            item_labels=item_labels,
            item_probabilities=item_probabilities,
            item_strata=item_strata,
            reviewer_id=reviewer_id,
            certificate=certificate,
        )

    @open_to(LEAD)
    def batch_items(self, batch_id: str) -> pd.DataFrame:
        """Return the traces of a batch in order."""
        return frames.batch_items(self._db, batch_id)

    @open_to(REVIEWER, oneself="reviewer_id")
    def queue(self, reviewer_id: str, batch_id: str, *, limit: int = 3) -> Queue:
        """Claim and return the next traces for a reviewer."""
        return queue.queue(self._db, reviewer_id, batch_id, self._rules().version, limit)

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def has_open_items(self, reviewer_id: str, batch_id: str) -> bool:
        """Return whether this reviewer still has traces of the batch to label."""
        version = self._rules().version
        return queue.has_open_items(self._db, reviewer_id, batch_id, version)

    @open_to(LEAD)
    def lease_frame(self, batch_id: str) -> pd.DataFrame:
        """Return who holds which trace of a batch, and until when."""
        return leases.lease_frame(self._db, batch_id, self._rules().version)

    @open_to(LEAD, oneself="by")
    def release_leases(self, *, batch_id: str, reviewer_id: str, by: str) -> list[str]:
        """Hand what somebody holds over to the others; a lead may, and it is written down."""
        version = self._rules().version
        return leases.release_leases(
            self._db, batch_id=batch_id, reviewer_id=reviewer_id, by=by, taxonomy_version=version
        )
