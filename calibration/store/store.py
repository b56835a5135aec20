"""The store as the rest of the project sees it."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd

from calibration.errors import StoreLockedError
from calibration.records import (
    Draft,
    LabelDraft,
    Reviewer,
    Trace,
    TraceForReview,
    Verdict,
    Workflow,
)
from calibration.store import (
    batches,
    drafts,
    exposure,
    flags,
    frames,
    label_import,
    labels,
    leases,
    operation,
    own_labels,
    people,
    review,
    saved_queries,
    selection,
    snapshot,
    tools,
    traces,
    verdicts,
)
from calibration.store.batches import Batch, Queue
from calibration.store.database import Database
from calibration.store.keeper import Keeper
from calibration.store.label_import import LabelsStored
from calibration.store.selection import TraceFacets
from calibration.store.trace_filter import TraceFilter
from calibration.taxonomy import Taxonomy, default_taxonomy


class Store:
    """Traces, labels and verdicts of one team, in one DuckDB file.

    Every method opens its own cursor and may be called from any thread. Writes are
    idempotent: repeating one stores nothing twice.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    @classmethod
    def open(
        cls, path: str | Path, *, create: bool = False, taxonomy: Taxonomy | None = None
    ) -> Self:
        """Open a store; `create` makes a missing one with `taxonomy` or the default one."""
        db = Database(Path(path), create=create)
        try:
            if taxonomy is not None or not people.has_taxonomy(db):
                people.set_taxonomy(db, taxonomy or default_taxonomy())
        except BaseException:
            db.close()
            raise
        return cls(db)

    @classmethod
    def open_to_read(cls, path: str | Path) -> "tuple[Store, float | None]":
        """Open a store for questions only, or its snapshot while the app holds it.

        Returns
        -------
        Store
            Of a snapshot, every write is refused.
        float or None
            The age of the snapshot in seconds; None for the store itself.
        """
        path = Path(path)
        try:
            return cls.open(path), None
        except StoreLockedError as locked:
            return cls(snapshot.open_snapshot(path, locked)), snapshot.age(path)

    def keeper(self) -> Keeper:
        """Return the thread that serves other processes while this one holds the store."""
        return Keeper(self._db)

    def close(self) -> None:
        """Let the file go, so that another process can open it."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The DuckDB file."""
        return self._db.path

    # People and settings
    def taxonomy(self) -> Taxonomy:
        """Return the taxonomy in force."""
        return people.taxonomy(self._db)

    def set_taxonomy(self, taxonomy: Taxonomy) -> None:
        """Put a taxonomy in force."""
        people.set_taxonomy(self._db, taxonomy)

    def workflows(self) -> dict[str, Workflow]:
        """Return the workflows by name."""
        return people.workflows(self._db)

    def set_workflow(self, workflow: Workflow) -> None:
        """Set ceiling and unit of a workflow."""
        people.set_workflow(self._db, workflow)

    def reviewers(self) -> list[Reviewer]:
        """Return everybody who can label."""
        return people.reviewers(self._db)

    def add_reviewer(
        self, name: str, *, role: str = "reviewer", simulated: bool = False
    ) -> Reviewer:
        """Add a reviewer, or return the one who has this name."""
        return people.add_reviewer(self._db, name, role=role, simulated=simulated)

    # Traces
    def ingest(self, new: Sequence[Trace], *, take_changed: bool = False) -> traces.IngestResult:
        """Store the traces that are new."""
        return traces.ingest(self._db, new, take_changed=take_changed)

    def for_review(self, trace_ids: Sequence[str]) -> list[TraceForReview]:
        """Return what a labelling reviewer may see of these traces."""
        return review.for_review(self._db, trace_ids)

    def trace_frame(self) -> pd.DataFrame:
        """Return the index of all traces."""
        return frames.traces(self._db)

    def looping_ids(self) -> frozenset[str]:
        """Return the traces that made the same tool call three times in a row or more."""
        return tools.looping(self._db)

    def operation_frame(self) -> pd.DataFrame:
        """Return what every trace says of tools, loops, escalation and feedback."""
        return operation.operation(self._db)

    def trace_facets(self) -> TraceFacets:
        """Return the workflows, statuses, models and tools to filter traces by."""
        return selection.facets(self._db)

    def count_traces(self, chosen: TraceFilter) -> int:
        """Return how many traces a filter finds."""
        return selection.count(self._db, chosen, self.taxonomy().version)

    def selected_ids(self, chosen: TraceFilter) -> list[str]:
        """Return the ids of the traces that a filter finds, in order of id."""
        return selection.ids(self._db, chosen, self.taxonomy().version)

    def trace_list(
        self,
        chosen: TraceFilter,
        *,
        for_leads: bool,
        sort: str = "imported",
        descending: bool = False,
        limit: int | None = 100,
        offset: int = 0,
    ) -> pd.DataFrame:
        """Return the traces that a filter finds; classes, models and costs for leads only."""
        return selection.listed(
            self._db,
            chosen,
            self.taxonomy().version,
            for_leads=for_leads,
            sort=sort,
            descending=descending,
            limit=limit,
            offset=offset,
        )

    def saved_queries(self) -> dict[str, TraceFilter]:
        """Return the filters that were saved, by name."""
        return saved_queries.saved_queries(self._db)

    def save_query(self, name: str, chosen: TraceFilter) -> str:
        """Keep filters under a name."""
        return saved_queries.save_query(self._db, name, chosen)

    def forget_query(self, name: str) -> None:
        """Take a saved name back."""
        saved_queries.forget_query(self._db, name)

    def is_simulated(self) -> bool:
        """Return whether any trace of the store is simulated."""
        with self._db.read() as cursor:
            found = cursor.execute("SELECT 1 FROM trace WHERE simulated LIMIT 1").fetchone()
        return found is not None

    # Batches and labels
    def batches(self) -> list[Batch]:
        """Return all batches, newest first."""
        return batches.batches(self._db)

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
        )

    def batch_items(self, batch_id: str) -> pd.DataFrame:
        """Return the traces of a batch in order."""
        return frames.batch_items(self._db, batch_id)

    def queue(self, reviewer_id: str, batch_id: str, *, limit: int = 3) -> Queue:
        """Claim and return the next traces for a reviewer."""
        return batches.queue(self._db, reviewer_id, batch_id, self.taxonomy().version, limit)

    def has_open_items(self, reviewer_id: str, batch_id: str) -> bool:
        """Return whether this reviewer still has traces of the batch to label."""
        version = self.taxonomy().version
        return batches.has_open_items(self._db, reviewer_id, batch_id, version)

    def lease_frame(self, batch_id: str) -> pd.DataFrame:
        """Return who holds which trace of a batch, and until when."""
        return leases.lease_frame(self._db, batch_id, self.taxonomy().version)

    def release_leases(self, *, batch_id: str, reviewer_id: str, by: str) -> list[str]:
        """Hand what somebody holds over to the others; a lead may, and it is written down."""
        version = self.taxonomy().version
        return leases.release_leases(
            self._db, batch_id=batch_id, reviewer_id=reviewer_id, by=by, taxonomy_version=version
        )

    def record_label(self, draft: LabelDraft) -> labels.LabelReceipt:
        """Store a label once, however often it is sent."""
        return labels.record_label(self._db, self.taxonomy(), draft)

    def import_labels(self, batch_id: str, drafts: Sequence[LabelDraft]) -> LabelsStored:
        """Store labels that were made elsewhere; none is ever overwritten."""
        return label_import.import_labels(self._db, self.taxonomy(), batch_id, drafts)

    def record_skip(
        self, *, client_token: str, trace_id: str, reviewer_id: str, batch_id: str, reason: str
    ) -> None:
        """Pass over a trace, with the reason."""
        labels.record_skip(
            self._db,
            self.taxonomy(),
            client_token=client_token,
            trace_id=trace_id,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            reason=reason,
        )

    def record_undo(self, *, client_token: str, reviewer_id: str, batch_id: str) -> str | None:
        """Take back the reviewer's latest label or skip; return its trace."""
        return labels.record_undo(
            self._db,
            self.taxonomy(),
            client_token=client_token,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
        )

    def last_label(self, reviewer_id: str, batch_id: str) -> tuple[str, str | None] | None:
        """Return trace and class of what one undo would take back."""
        return labels.last_label(self._db, self.taxonomy(), reviewer_id, batch_id)

    def reopen(
        self, *, client_token: str, trace_id: str, reviewer_id: str, batch_id: str, reason: str
    ) -> None:
        """Take back one's label of a trace, with the reason; what it held is the draft then."""
        labels.reopen(
            self._db,
            self.taxonomy(),
            client_token=client_token,
            trace_id=trace_id,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            reason=reason,
        )

    def save_draft(self, *, reviewer_id: str, trace_id: str, batch_id: str, draft: Draft) -> None:
        """Keep what was decided so far."""
        drafts.save_draft(
            self._db, reviewer_id=reviewer_id, trace_id=trace_id, batch_id=batch_id, draft=draft
        )

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
        """Raise or lower a reviewer's flag on a trace once, however often it is sent."""
        flags.record_flag(
            self._db,
            client_token=client_token,
            trace_id=trace_id,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            flagged=flagged,
            reason=reason,
        )

    def flag_frame(self, batch_id: str) -> pd.DataFrame:
        """Return the flags of a batch that stand, for the lead."""
        return frames.flags(self._db, batch_id)

    def own_flags(
        self, reviewer_id: str, batch_id: str, trace_ids: Sequence[str]
    ) -> dict[str, str]:
        """Return which of these traces a reviewer has flagged, and why."""
        return flags.own_flags(self._db, reviewer_id, batch_id, trace_ids)

    def own_labels(
        self, reviewer_id: str, batch_id: str, *, limit: int = 200
    ) -> list[own_labels.OwnLabel]:
        """Return the reviewer's own current labels of a batch, newest first."""
        return own_labels.own_labels(self._db, self.taxonomy(), reviewer_id, batch_id, limit)

    def acknowledged(self, reviewer_id: str, batch_id: str, tokens: Sequence[str]) -> set[str]:
        """Return which of these client tokens of a reviewer the store holds."""
        return labels.acknowledged(self._db, reviewer_id, batch_id, tokens)

    def label_frame(self, batch_id: str, trace_id: str | None = None) -> pd.DataFrame:
        """Return the current labels and skips of a batch, or of one of its traces."""
        return frames.labels(self._db, batch_id, self.taxonomy().version, trace_id)

    def label_state(self) -> tuple[int, int]:
        """Return what stays the same as long as no label and no consensus comes or goes."""
        return frames.label_state(self._db)

    def result_state(self) -> tuple[int, int, int]:
        """Return what changes with everything that a corrected rate depends on."""
        return frames.result_state(self._db)

    def record_exposure(self, reviewer_id: str, trace_ids: Sequence[str], what: str) -> None:
        """Write down that a reviewer is shown what others said of these traces."""
        exposure.record_exposure(self._db, reviewer_id, trace_ids, what)

    def exposure_frame(self) -> pd.DataFrame:
        """Return who was shown what of which trace."""
        return exposure.exposures(self._db)

    # Judge and consensus
    def add_verdicts(self, new: Sequence[Verdict]) -> verdicts.VerdictsStored:
        """Store verdicts; none is ever overwritten."""
        return verdicts.add_verdicts(self._db, new)

    def verdict_samples(self, judge_id: str) -> pd.DataFrame:
        """Return every verdict of a judge, with reasons and with those given when asked again."""
        return frames.verdict_samples(self._db, judge_id)

    def verdict_frame(self, judge_id: str) -> pd.DataFrame:
        """Return the verdicts of a judge."""
        return frames.verdicts(self._db, judge_id)

    def judge_frame(self) -> pd.DataFrame:
        """Return all judges with the number of their verdicts."""
        return frames.judges(self._db)

    def add_consensus(
        self,
        *,
        trace_id: str,
        answers: dict[str, str],
        adjudicator: str,
        rationale: str | None = None,
        simulated: bool = False,
        client_token: str | None = None,
    ) -> None:
        """Record the adjudicated class of a trace; a repeated token stores nothing twice."""
        verdicts.add_consensus(
            self._db,
            self.taxonomy(),
            trace_id=trace_id,
            answers=answers,
            adjudicator=adjudicator,
            rationale=rationale,
            simulated=simulated,
            client_token=client_token,
        )

    def consensus_frame(self) -> pd.DataFrame:
        """Return every adjudicated trace."""
        return frames.consensus(self._db, self.taxonomy().version)
