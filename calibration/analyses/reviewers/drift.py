"""Each reviewer's hits on gold and repeat items over time."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pandas as pd

from calibration.agreement.annotators import against_key
from calibration.reviewers.quality import MARKED, ReviewerDrift, blocks, drift
from calibration.statistics.estimate import Estimate, not_estimable
from calibration.store import Store
from calibration.store.queue import GOLD, REPEAT, gold_rate

KINDS = (GOLD, REPEAT)
SEED = 1
PACE_LABELS, PACE_NEEDS = 20, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedCheck:
    """A hidden item that the reviewer gave a class other than the expected one."""

    trace_id: str
    workflow: str
    kind: str  # gold or repeat
    number: int  # of the check among its kind, from 1
    against: str  # expected class
    given: str
    at: datetime
    flag: str | None  # the reviewer's reason; None: not flagged


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """One reviewer's checks of one kind; skipped and non-blind ones do not count."""

    drift: ReviewerDrift
    blocks: tuple[tuple[int, int, Estimate], ...]  # first and last of ten checks, share of hits
    gwet_ac: Estimate  # with the expected classes, as kappa
    kappa: Estimate
    n_skipped: int
    n_not_blind: int  # shown the other labels meanwhile
    fell_from: datetime | None  # (UTC) of the check with which the fall began; None: not marked


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerChecks:
    """One reviewer: production labels without hidden items, and the results of the checks."""

    reviewer_id: str
    name: str
    n_labels: int
    pace_s: float | None  # median active seconds of the last 20 labels; None below five
    certificate_until: datetime | None
    checked_from: datetime | None  # earlier checks do not count: a new certificate restarts them
    gold: Checks
    repeats: Checks
    missed: tuple[MissedCheck, ...]  # newest first

    @property
    def recertify(self) -> tuple[str, ...]:
        """Why this reviewer should be examined again; empty if there is no reason."""
        return tuple(
            f"{what} fell from {100 * of.drift.before.value:.0f} % to "
            f"{100 * of.drift.recent.value:.0f} % in the last {of.drift.recent.n} checks; the "
            f"sum passed its limit at check {of.drift.marked_at}, and the fall probably began "
            f"about check {of.drift.since}"
            for what, of in (("Accuracy on gold", self.gold), ("Self-agreement", self.repeats))
            if of.drift.status == MARKED
            and of.drift.before.value is not None
            and of.drift.recent.value is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOfReviewer:
    """Hidden items available for one reviewer in one workflow of a batch."""

    reviewer_id: str
    workflow: str
    gold: int
    repeats: int
    gold_rate: float  # share of slots with gold that the pool allows
    repeats_from: datetime | None  # when the first own label is old enough; None: no label


def reviewer_checks(
    store: Store,
    *,
    certificates: Mapping[str, tuple[datetime, datetime]] | None = None,
    confidence_level: float = 0.95,
    seed: int = SEED,
) -> tuple[ReviewerChecks, ...]:
    """Return the checks of every reviewer in production, those to examine again first."""
    # Checks before the issue of the certificate (issue and end in UTC) do not count.
    frame, issued = store.hidden_item_frame(), certificates or {}
    labels, places = _production_labels(store), store.taxonomy().places
    found = []
    for person in store.reviewers():
        own = labels[labels["reviewer_id"] == person.reviewer_id]
        checks = frame[frame["reviewer_id"] == person.reviewer_id]
        since, until = issued.get(person.reviewer_id, (None, None))
        if since is not None:
            checks = checks[checks["at"] >= since]
        if own.empty and checks.empty:
            continue
        gold, repeats = (
            _checks(checks[checks["kind"] == kind], places, confidence_level, seed)
            for kind in KINDS
        )
        found.append(
            ReviewerChecks(
                reviewer_id=person.reviewer_id,
                name=person.name,
                n_labels=len(own),
                pace_s=_pace(own),
                certificate_until=until,
                checked_from=since,
                gold=gold,
                repeats=repeats,
                missed=_missed(checks),
            )
        )
    return tuple(sorted(found, key=lambda of: (not of.recertify, of.name)))


def held_certificates(store: Store) -> dict[str, tuple[datetime, datetime]]:
    """Return issue and end (UTC) of the newest certificate of each reviewer."""
    oldest_first = sorted(store.certificates(), key=lambda held: held.issued_at)
    return {held.reviewer_id: (held.issued_at, held.expires_at) for held in oldest_first}


def pools(store: Store, batch_id: str) -> tuple[PoolOfReviewer, ...]:
    """Return the hidden items available to each reviewer, by workflow of a batch."""
    return tuple(
        PoolOfReviewer(
            reviewer_id=row["reviewer_id"],
            workflow=row["workflow"],
            gold=int(row["gold"]),
            repeats=int(row["repeats"]),
            gold_rate=gold_rate(row["gold"]),
            repeats_from=(
                None if pd.isna(row["repeats_from"]) else row["repeats_from"].to_pydatetime()
            ),
        )
        for row in store.hidden_item_pools(batch_id).to_dict("records")
    )


def _production_labels(store: Store) -> pd.DataFrame:
    frames = [
        store.label_frame(batch.batch_id)
        for batch in store.batches()
        if batch.purpose == "production"
    ]
    if not frames:
        return pd.DataFrame(columns=["reviewer_id", "kind", "created_at", "seconds_active"])
    given = pd.concat([frame for frame in frames if not frame.empty] or frames[:1])
    return given[given["kind"] == "label"].sort_values("created_at", kind="stable")


def _pace(own: pd.DataFrame) -> float | None:
    seconds = own["seconds_active"].dropna().tail(PACE_LABELS)
    return float(seconds.median()) if len(seconds) >= PACE_NEEDS else None


def _counted(checks: pd.DataFrame) -> pd.DataFrame:
    return checks[checks["given"].notna() & checks["blind"]]


def _checks(
    found: pd.DataFrame, places: Mapping[str, int], confidence_level: float, seed: int
) -> Checks:
    counted = _counted(found)
    hits = (counted["given"] == counted["against"]).tolist()
    # One seed for all: reviewers with the same checks have the same limit.
    result = drift(hits, rng=np.random.default_rng(seed), confidence_level=confidence_level)
    none = not_estimable("no checks yet", method="Gwet AC1")
    agreement = none, none
    if len(counted):
        given = counted["given"].map(places).to_numpy(dtype=np.int64)
        key = counted["against"].map(places).to_numpy(dtype=np.int64)
        (of,) = against_key(
            given[:, None], key, n_classes=len(places), confidence_level=confidence_level
        )
        agreement = of.gwet_ac, of.cohen_kappa
    return Checks(
        drift=result,
        blocks=blocks(hits, confidence_level=confidence_level),
        gwet_ac=agreement[0],
        kappa=agreement[1],
        n_skipped=int(found["given"].isna().sum()),
        n_not_blind=int((found["given"].notna() & ~found["blind"].astype(bool)).sum()),
        fell_from=None
        if result.since is None
        else counted["at"].iloc[result.since - 1].to_pydatetime(),
    )


def _missed(checks: pd.DataFrame) -> tuple[MissedCheck, ...]:
    counted = _counted(checks)
    numbered = counted.assign(number=counted.groupby("kind").cumcount() + 1)
    missed = numbered[numbered["given"] != numbered["against"]]
    return tuple(
        MissedCheck(
            trace_id=row["trace_id"],
            workflow=row["workflow"],
            kind=row["kind"],
            number=int(row["number"]),
            against=row["against"],
            given=row["given"],
            at=row["at"].to_pydatetime(),
            flag=None if pd.isna(row["flag"]) else str(row["flag"]),
        )
        for row in missed.iloc[::-1].to_dict("records")
    )
