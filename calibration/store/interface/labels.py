"""What reviewers decide, and what they may see again of it."""

from collections.abc import Sequence

import pandas as pd

from calibration.records import Draft, LabelDraft
from calibration.store import (
    drafts,
    exposure,
    flags,
    frames,
    label_import,
    labels,
    own_labels,
    undo,
)
from calibration.store.interface.base import Calls
from calibration.store.interface.roles import LEAD, REVIEWER, open_to
from calibration.store.label_import import LabelsStored


class LabelCalls(Calls):
    """What reviewers decide, and what they may see again of it."""

    @open_to(REVIEWER, oneself="draft.reviewer_id")
    def record_label(self, draft: LabelDraft) -> labels.LabelReceipt:
        """Store a label once, however often it is sent."""
        return labels.record_label(self._db, self._rules(), draft)

    @open_to(LEAD)
    def import_labels(self, batch_id: str, drafts: Sequence[LabelDraft]) -> LabelsStored:
        """Store labels that were made elsewhere; none is ever overwritten."""
        return label_import.import_labels(self._db, self._rules(), batch_id, drafts)

    @open_to(REVIEWER, oneself="reviewer_id")
    def record_skip(
        self, *, client_token: str, trace_id: str, reviewer_id: str, batch_id: str, reason: str
    ) -> None:
        """Pass over a trace, with the reason."""
        labels.record_skip(
            self._db,
            self._rules(),
            client_token=client_token,
            trace_id=trace_id,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            reason=reason,
        )

    @open_to(REVIEWER, oneself="reviewer_id")
    def record_undo(self, *, client_token: str, reviewer_id: str, batch_id: str) -> str | None:
        """Take back the reviewer's latest label or skip; return its trace."""
        return undo.record_undo(
            self._db,
            self._rules(),
            client_token=client_token,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
        )

    @open_to(REVIEWER, oneself="reviewer_id")
    def last_label(self, reviewer_id: str, batch_id: str) -> tuple[str, str | None] | None:
        """Return trace and class of what one undo would take back."""
        return undo.last_label(self._db, self._rules(), reviewer_id, batch_id)

    @open_to(REVIEWER, oneself="reviewer_id")
    def reopen(
        self, *, client_token: str, trace_id: str, reviewer_id: str, batch_id: str, reason: str
    ) -> None:
        """Take back one's label of a trace, with the reason; what it held is the draft then."""
        undo.reopen(
            self._db,
            self._rules(),
            client_token=client_token,
            trace_id=trace_id,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            reason=reason,
        )

    @open_to(REVIEWER, oneself="reviewer_id")
    def save_draft(self, *, reviewer_id: str, trace_id: str, batch_id: str, draft: Draft) -> None:
        """Keep what was decided so far."""
        drafts.save_draft(
            self._db,
            reviewer_id=reviewer_id,
            trace_id=trace_id,
            batch_id=batch_id,
            taxonomy_version=self._rules().version,
            draft=draft,
        )

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
        """Raise or lower a reviewer's flag on a trace once, however often it is sent."""
        flags.record_flag(
            self._db,
            client_token=client_token,
            trace_id=trace_id,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            taxonomy_version=self._rules().version,
            flagged=flagged,
            reason=reason,
        )

    @open_to(LEAD)
    def flag_frame(self, batch_id: str) -> pd.DataFrame:
        """Return the flags of a batch that stand, for the lead."""
        return frames.flags(self._db, batch_id)

    @open_to(REVIEWER, oneself="reviewer_id")
    def own_flags(
        self, reviewer_id: str, batch_id: str, trace_ids: Sequence[str]
    ) -> dict[str, str]:
        """Return which of these traces a reviewer has flagged, and why."""
        return flags.own_flags(self._db, reviewer_id, batch_id, trace_ids)

    @open_to(REVIEWER, oneself="reviewer_id")
    def own_labels(
        self, reviewer_id: str, batch_id: str, *, limit: int = 200
    ) -> list[own_labels.OwnLabel]:
        """Return the reviewer's own current labels of a batch, newest first."""
        return own_labels.own_labels(self._db, self._rules(), reviewer_id, batch_id, limit)

    @open_to(REVIEWER, oneself="reviewer_id")
    def acknowledged(self, reviewer_id: str, batch_id: str, tokens: Sequence[str]) -> set[str]:
        """Return which of these client tokens of a reviewer the store holds."""
        return labels.acknowledged(self._db, reviewer_id, batch_id, tokens)

    @open_to(LEAD)
    def label_frame(self, batch_id: str, trace_id: str | None = None) -> pd.DataFrame:
        """Return the current labels and skips of a batch, or of one of its traces."""
        return frames.labels(self._db, batch_id, self._rules().version, trace_id)

    @open_to(LEAD)
    def label_state(self) -> tuple[int, int]:
        """Return what stays the same as long as no label and no consensus comes or goes."""
        return frames.label_state(self._db)

    @open_to(LEAD)
    def result_state(self) -> tuple[int, int, int]:
        """Return what changes with everything that a corrected rate depends on."""
        return frames.result_state(self._db)

    @open_to(REVIEWER, oneself="reviewer_id")
    def record_exposure(self, reviewer_id: str, trace_ids: Sequence[str], what: str) -> None:
        """Write down that a reviewer is shown what others said of these traces."""
        exposure.record_exposure(self._db, reviewer_id, trace_ids, what)

    @open_to(LEAD)
    def exposure_frame(self) -> pd.DataFrame:
        """Return who was shown what of which trace."""
        return exposure.exposures(self._db)
