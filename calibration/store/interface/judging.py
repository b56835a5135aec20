"""Verdicts of judges."""

from collections.abc import Sequence

import pandas as pd

from calibration.records import Verdict
from calibration.store import frames, verdicts
from calibration.store.interface.base import Calls
from calibration.store.interface.roles import LEAD, open_to


class JudgingCalls(Calls):
    """Verdicts of judges."""

    @open_to(LEAD)
    def add_verdicts(self, new: Sequence[Verdict]) -> verdicts.VerdictsStored:
        """Store verdicts; none is ever overwritten."""
        return verdicts.add_verdicts(self._db, new)

    @open_to(LEAD)
    def verdict_samples(self, judge_id: str) -> pd.DataFrame:
        """Return every verdict of a judge, with reasons and with those given when asked again."""
        return frames.verdict_samples(self._db, judge_id)

    @open_to(LEAD)
    def verdict_frame(self, judge_id: str) -> pd.DataFrame:
        """Return the verdicts of a judge."""
        return frames.verdicts(self._db, judge_id)

    @open_to(LEAD)
    def judge_frame(self) -> pd.DataFrame:
        """Return all judges with the number of their verdicts."""
        return frames.judges(self._db)
