"""Traces: what they are, and which a filter finds."""

from collections.abc import Sequence

import pandas as pd

from calibration.records import Trace, TraceForReview
from calibration.store import (
    frames,
    operation,
    review,
    saved_queries,
    selection,
    tools,
    traces,
)
from calibration.store.interface.base import Calls
from calibration.store.interface.roles import LEAD, REVIEWER, open_to
from calibration.store.selection import TraceFacets
from calibration.store.trace_filter import TraceFilter


class TraceCalls(Calls):
    """Traces: what they are, and which a filter finds."""

    @open_to(LEAD)
    def ingest(self, new: Sequence[Trace], *, take_changed: bool = False) -> traces.IngestResult:
        """Store the traces that are new."""
        return traces.ingest(self._db, new, take_changed=take_changed)

    @open_to(LEAD)
    def for_review(self, trace_ids: Sequence[str]) -> list[TraceForReview]:
        """Return what a labelling reviewer may see of these traces."""
        return review.for_review(self._db, trace_ids)

    @open_to(LEAD)
    def trace_frame(self) -> pd.DataFrame:
        """Return the index of all traces."""
        return frames.traces(self._db)

    @open_to(LEAD)
    def looping_ids(self) -> frozenset[str]:
        """Return the traces that made the same tool call three times in a row or more."""
        return tools.looping(self._db)

    @open_to(LEAD)
    def operation_frame(self) -> pd.DataFrame:
        """Return what every trace says of tools, loops, escalation and feedback."""
        return operation.operation(self._db)

    @open_to(LEAD)
    def trace_facets(self) -> TraceFacets:
        """Return the workflows, statuses, models and tools to filter traces by."""
        return selection.facets(self._db)

    @open_to(LEAD)
    def count_traces(self, chosen: TraceFilter) -> int:
        """Return how many traces a filter finds."""
        return selection.count(self._db, chosen, self._rules().version)

    @open_to(LEAD)
    def selected_ids(self, chosen: TraceFilter) -> list[str]:
        """Return the ids of the traces that a filter finds, in order of id."""
        return selection.ids(self._db, chosen, self._rules().version)

    @open_to(LEAD)
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
            self._rules().version,
            for_leads=for_leads,
            sort=sort,
            descending=descending,
            limit=limit,
            offset=offset,
        )

    @open_to(LEAD)
    def saved_queries(self) -> dict[str, TraceFilter]:
        """Return the filters that were saved, by name."""
        return saved_queries.saved_queries(self._db)

    @open_to(LEAD)
    def save_query(self, name: str, chosen: TraceFilter) -> str:
        """Keep filters under a name."""
        return saved_queries.save_query(self._db, name, chosen)

    @open_to(LEAD)
    def forget_query(self, name: str) -> None:
        """Take a saved name back."""
        saved_queries.forget_query(self._db, name)

    @open_to(REVIEWER)
    def is_simulated(self) -> bool:
        """Return whether any trace of the store is simulated."""
        with self._db.read() as cursor:
            found = cursor.execute("SELECT 1 FROM trace WHERE simulated LIMIT 1").fetchone()
        return found is not None
