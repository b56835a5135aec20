"""What a report on production can be asked for, and times and columns given as text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from calibration.errors import InputError
from calibration.metrics.resampling import Interval

PREVIOUS = "previous"
# What the settings of a report on a store do not have.
OF_FILES_ALONE: Mapping[str, Any] = {
    "columns": {},
    "ceilings": {},
    "any_workflow": False,
    "stratify": False,
    "force": False,
}
# Settings that say where things lie; a report is the same wherever they do.
PLACES = ("files", "postgres", "table", "spark", "taxonomy")
_WEEK = re.compile(r"\d{4}-W\d{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """How production files are read and reported.

    Parameters
    ----------
    since, until : str or None
        First and last day (``2026-11-02``) or ISO week (``2026-W45``) of the report; a moment
        (``2026-11-02T09:00``) counts as it is. In `timezone`.
    timezone : str
        Zone of times without one.
    columns : mapping of str to str or None
        The column that stands for each of ours; None leaves one out.
    compare_to : str or None
        ``"previous"``, a file, or None for no comparison.
    ceilings : mapping of str to float
        Ceilings per unit in USD instead of those of the taxonomy.
    any_workflow : bool
        Keep workflows that the taxonomy does not list, without a ceiling.
    strict_cost : bool
        Refuse runs without a cost.
    stratify : bool
        Resample within workflows.
    pooled : bool
        Weigh weeks by their runs in the rolling mean.
    targets : mapping of str to float
        The share of a class that is aimed at.
    force : bool
        Report on traces of the reference set, with a mark.
    seed, n_resamples, confidence_level, interval
        Of the resamples.
    """

    since: str | None = None
    until: str | None = None
    timezone: str = "UTC"
    columns: Mapping[str, str | None] = field(default_factory=dict)
    compare_to: str | None = PREVIOUS
    ceilings: Mapping[str, float] = field(default_factory=dict)
    any_workflow: bool = False
    strict_cost: bool = False
    stratify: bool = False
    pooled: bool = False
    targets: Mapping[str, float] = field(default_factory=dict)
    force: bool = False
    seed: int = 0
    n_resamples: int = 1000
    confidence_level: float = 0.95
    interval: Interval = "percentile"

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"seed must be 0 or more, got {self.seed}")
        if self.n_resamples < 100:
            raise InputError(f"resamples must be 100 or more, got {self.n_resamples}")
        if not 0 < self.confidence_level < 1:
            raise InputError(f"confidence level must be in (0, 1), got {self.confidence_level}")

    @property
    def window(self) -> tuple[datetime | None, datetime | None]:
        """The first moment, and the one just after the last, in UTC.

        Raises
        ------
        InputError
            If a time cannot be read, or the end is not after the start.
        """
        zone = _zone(self.timezone)
        since = None if self.since is None else _moments(self.since, "--from", zone)[0]
        until = None if self.until is None else _moments(self.until, "--to", zone)[1]
        if since is not None and until is not None and since >= until:
            raise InputError(f"--from {self.since} is not before --to {self.until}")
        return since, until

    @property
    def window_words(self) -> str:
        """The runs that are asked for, in words."""
        if self.since is None and self.until is None:
            return "these runs"
        if self.since == self.until:
            return str(self.since)
        return f"{self.since or 'the start'} to {self.until or 'the end'}"

    def resampling(self, part: int) -> dict[str, Any]:
        """Return how to resample one part of a report; parts draw apart, so none moves another."""
        return {
            "rng": np.random.default_rng([self.seed, part]),
            "n_resamples": self.n_resamples,
            "confidence_level": self.confidence_level,
            "interval": self.interval,
        }

    def settings(self, place: Mapping[str, Any], taxonomy: Path | None) -> dict[str, Any]:
        """Return everything it takes to ask for the same report, as plain data.

        `place` says what was read.
        """
        return {
            **place,
            "taxonomy": None if taxonomy is None else str(taxonomy),
            "from": self.since,
            "to": self.until,
            "timezone": self.timezone,
            "columns": dict(self.columns),
            "compare_to": self.compare_to,
            "ceilings": dict(self.ceilings),
            "any_workflow": self.any_workflow,
            "strict_cost": self.strict_cost,
            "stratify": self.stratify,
            "pooled": self.pooled,
            "targets": dict(self.targets),
            "force": self.force,
            "seed": self.seed,
            "resamples": self.n_resamples,
            "confidence_level": self.confidence_level,
            "interval": self.interval,
        }


def options_of(settings: Mapping[str, Any]) -> ReportOptions:
    """Return the options that a report was made with.

    Raises
    ------
    InputError
        If the settings are not those of a report.
    """
    try:
        return ReportOptions(
            since=settings["from"],
            until=settings["to"],
            timezone=settings["timezone"],
            columns=settings["columns"],
            compare_to=settings["compare_to"],
            ceilings=settings["ceilings"],
            any_workflow=settings["any_workflow"],
            strict_cost=settings["strict_cost"],
            stratify=settings["stratify"],
            pooled=settings["pooled"],
            targets=settings["targets"],
            force=settings["force"],
            seed=settings["seed"],
            n_resamples=settings["resamples"],
            confidence_level=settings["confidence_level"],
            interval=settings["interval"],
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"the settings of the report lack {error}") from error


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(f"--timezone: {name!r:.80} is no zone such as Europe/Berlin") from error


def _moments(text: str, option: str, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return the first moment of what a text names, and the one after its last."""
    try:
        if _WEEK.fullmatch(text):
            day, days = date.fromisoformat(f"{text}-1"), 7
        elif len(text) == len("2026-11-02"):
            day, days = date.fromisoformat(text), 1
        else:
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=zone)
            return moment.astimezone(UTC), moment.astimezone(UTC)
        first, after = (
            datetime.combine(d, time(), tzinfo=zone).astimezone(UTC)
            for d in (day, day + timedelta(days=days))
        )
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{option}: {text!r:.80} is no day (2026-11-02), ISO week (2026-W45) or time"
        ) from error
    return first, after
