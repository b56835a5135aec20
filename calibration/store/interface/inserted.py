"""What was put between the traces of reviewers, for leads."""

from collections.abc import Sequence

import pandas as pd

from calibration.records import LabelDraft
from calibration.store import insert_frames, insert_import
from calibration.store.interface.base import Calls
from calibration.store.interface.roles import LEAD, open_to


class InsertedCalls(Calls):
    """What was put between the traces of reviewers, for leads."""

    @open_to(LEAD)
    def insert_frame(self) -> pd.DataFrame:
        """Return every silent gold and own repeat that was decided, against what it is held."""
        return insert_frames.insert_frame(self._db, self._rules().version)

    @open_to(LEAD)
    def insert_pools(self, batch_id: str) -> pd.DataFrame:
        """Return what could be put in, by reviewer and workflow of a batch."""
        return insert_frames.insert_pools(self._db, self._rules().version, batch_id)

    @open_to(LEAD)
    def import_inserts(self, batch_id: str, drafts: Sequence[LabelDraft]) -> int:
        """Store checks of reviewers that were made elsewhere; return how many are new."""
        return insert_import.import_inserts(self._db, self._rules(), batch_id, drafts)
