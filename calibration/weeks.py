"""ISO weeks: Monday to Sunday, in UTC, named like ``2026-W07``."""

from datetime import date, timedelta

import pandas as pd


def week_of(day: date) -> str:
    """Return the week of a day or moment.

    Examples
    --------
    >>> week_of(date(2027, 1, 3))
    '2026-W53'
    """
    year, week, _ = day.isocalendar()
    return f"{year:04d}-W{week:02d}"


def weeks_of(times: "pd.Series[pd.Timestamp]") -> "pd.Series[str]":
    """Return the week of each moment, missing for a missing one or a year beyond 9999.

    Examples
    --------
    >>> weeks_of(pd.Series(pd.to_datetime(["2026-11-04", None]))).tolist()
    ['2026-W45', nan]
    """
    iso = times.dt.isocalendar()
    parts = zip(iso["year"], iso["week"], strict=True)
    names = [None if pd.isna(year) else f"{year:04d}-W{week:02d}" for year, week in parts]
    return pd.Series(names, index=times.index, dtype="str")


def first_day(week: str) -> date:
    """Return the Monday of a week; raise ValueError if it is no ISO week.

    Examples
    --------
    >>> first_day("2026-W45")
    datetime.date(2026, 11, 2)
    """
    try:
        return date.fromisoformat(f"{week}-1")
    except ValueError as error:
        raise ValueError(f"weeks must be ISO weeks like '2026-W07', got {week!r}") from error


def calendar(first: str, last: str) -> tuple[str, ...]:
    """Return the weeks from one to another; raises as `first_day`.

    Examples
    --------
    >>> calendar("2026-W52", "2027-W01")
    ('2026-W52', '2026-W53', '2027-W01')
    """
    monday, end = first_day(first), first_day(last)
    n_weeks = (end - monday).days // 7 + 1
    return tuple(week_of(monday + timedelta(weeks=n)) for n in range(n_weeks))
