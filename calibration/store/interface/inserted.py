"""What was put between the traces of reviewers, for leads."""

import pandas as pd

from calibration.store import inserted
from calibration.store.interface.base import Calls
from calibration.store.interface.roles import LEAD, open_to


class InsertedCalls(Calls):
    """What was put between the traces of reviewers, for leads."""

    @open_to(LEAD)
    def insert_frame(self) -> pd.DataFrame:
        """Return every silent gold and own repeat that was decided, against what it is held."""
        return inserted.insert_frame(self._db, self._rules().version)

    @open_to(LEAD)
    def insert_pools(self, batch_id: str) -> pd.DataFrame:
        """Return what could be put in, by reviewer and workflow of a batch."""
        return inserted.insert_pools(self._db, self._rules().version, batch_id)
