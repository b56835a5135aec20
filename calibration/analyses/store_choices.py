"""What a report on a store can be asked for: its windows of time and its workflows."""

from dataclasses import dataclass
from datetime import date, timedelta

from calibration.analyses.labelled_batch import load_batch, started
from calibration.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportChoices:
    """What the traces that a batch was drawn from can be narrowed to.

    Parameters
    ----------
    first, last : date or None
        Days on which the first and the last trace was started, in UTC; None where none says.
    workflows : tuple of str
        Of the traces.
    undated : int
        Traces that do not say when they were started.
    """

    first: date | None
    last: date | None
    workflows: tuple[str, ...]
    undated: int

    def last_weeks(self, n: int) -> tuple[str, str] | None:
        """Return the first and the last of the last `n` ISO weeks; None where nothing is dated.

        Examples
        --------
        >>> day = date(2026, 11, 4)
        >>> ReportChoices(first=day, last=day, workflows=(), undated=0).last_weeks(4)
        ('2026-W42', '2026-W45')
        """
        if self.last is None:
            return None
        return _week(self.last - timedelta(weeks=n - 1)), _week(self.last)


def _week(day: date) -> str:
    year, week, _ = day.isocalendar()
    return f"{year:04d}-W{week:02d}"


def report_choices(store: Store, batch_id: str) -> ReportChoices:
    """Return what the traces of a batch can be narrowed to.

    Raises
    ------
    CalibrationError
        If the batch is no random sample.
    """
    traces = load_batch(store, batch_id).traces
    times = started(traces).dropna()
    return ReportChoices(
        first=None if times.empty else times.min().date(),
        last=None if times.empty else times.max().date(),
        workflows=tuple(sorted(traces["workflow"].unique())),
        undated=len(traces) - len(times),
    )
