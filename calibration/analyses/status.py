"""Status of a store: the rate with its trend, progress, and what to do next, most urgent first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from calibration.analyses.evidence.from_store import pooled_id
from calibration.analyses.reviewers.adjudication import OpenTraces, open_traces
from calibration.analyses.reviewers.drift import (
    ReviewerChecks,
    held_certificates,
    reviewer_checks,
)
from calibration.analyses.reviewers.progress import (
    Lease,
    Progress,
    Results,
    batch_progress,
    batch_results,
)
from calibration.errors import CalibrationError
from calibration.statistics.estimate import Estimate, not_estimable
from calibration.store import Batch, Store, TraceFilter
from calibration.store.database import utc_now
from calibration.store.leases import LEASE, PRIVATE
from calibration.text import TOGETHER, counted, hours, points, sentence, shown

# A lease is renewed with every answer: one that was not for so long belongs to somebody away.
AWAY = timedelta(minutes=5)

# Whose certificate ended longer ago may have left.
LATELY = timedelta(days=30)

# Labels that a first batch is drawn with, and the narrowest gain that is worth more labels.
FIRST_BATCH, FEWEST_POINTS = 40, 0.001

MOST_NAMED, LONGEST_NAME = 3, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class NextAction:
    """One thing for a lead to do.

    `kind` : ``import``, ``people``, ``draw``, ``trend``, ``settle``, ``flags``, ``reopened``,
        ``sign_in``, ``drift``, ``certificate``, ``away``, ``verdicts``, ``judge``, ``label`` or
        ``precision``
    `what`, `why` : the action in the imperative; its reason with the numbers
    `page` : the address of the page on which it is done
    `n` : traces, people or labels that it is about
    `batch_id`, `reviewer_id` : the batch and the person that it is about, if it is about one
    """

    kind: str
    what: str
    why: str
    page: str
    n: int
    batch_id: str | None = None
    reviewer_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowParts:
    """What the status takes seconds to work out; it changes with `Store.result_state` only.

    `rated` : the batches of the rate, None without a random batch; `no_rate` : why `results` is
    None, empty without a batch
    """

    rated: str | None
    results: Results | None
    no_rate: str
    reviewers: tuple[ReviewerChecks, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """How the work on a store is getting on; the rate is that of the report on the store."""

    n_traces: int
    rated: str | None
    results: Results | None
    no_rate: str
    progress: tuple[Progress, ...]  # of production batches, newest first
    next: tuple[NextAction, ...]
    simulated: bool

    @property
    def rate(self) -> Estimate:
        """The rate, or the reason why there is none."""
        if self.results is not None:
            return self.results.headline
        return not_estimable(self.no_rate or "no batch has been drawn", method="none")


def production_batches(store: Store) -> list[Batch]:
    """Return the batches of production that reviewers label, newest first."""
    return [b for b in store.batches() if b.purpose == "production" and not b.is_audit]


def slow_parts(store: Store, judge_id: str | None = None) -> SlowParts:
    """Return the rate of all random batches with labels, and how every reviewer does."""
    results, rated, why = None, None, ""
    if production_batches(store):
        try:
            rated = pooled_id(store)
            results = batch_results(store, rated, judge_id=judge_id)
        except CalibrationError as error:
            why = str(error)
    checks = reviewer_checks(store, certificates=held_certificates(store))
    return SlowParts(rated=rated, results=results, no_rate=why, reviewers=checks)


def store_status(store: Store, *, judge_id: str | None = None) -> StoreStatus:
    """Return the status of a store; `judge_id` is needed where several judges gave verdicts."""
    return status_from(store, slow_parts(store, judge_id))


def status_from(store: Store, slow: SlowParts) -> StoreStatus:
    """Return the status, given what takes long."""
    batches = production_batches(store)
    progress = tuple(batch_progress(store, batch.batch_id) for batch in batches)
    n_traces = store.count_traces(TraceFilter())
    names = {r.reviewer_id: shown(r.name, most=LONGEST_NAME) for r in store.reviewers()}
    found = [*_start(store, batches, progress, n_traces)]
    if batches:
        found += _trend(slow.results)
        found += _decisions([open_traces(store, b.batch_id) for b in batches], slow.rated)
        found += _sign_in(store, progress)
        found += _drift(slow.reviewers)
        found += _certificates(store, batches, progress, names)
        found += _away(store, progress, names)
        found += _judge(store, slow.results)
        found += _labels(progress, slow)
    return StoreStatus(
        n_traces=n_traces,
        rated=slow.rated,
        results=slow.results,
        no_rate=slow.no_rate,
        progress=progress,
        next=tuple(found),
        simulated=store.is_simulated(),
    )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _start(
    store: Store, batches: Sequence[Batch], progress: Sequence[Progress], n_traces: int
) -> Iterator[NextAction]:
    """Yield what a store lacks before anybody can label."""
    if not n_traces:
        yield NextAction(
            kind="import", what="Import traces", page="start", n=0,
            why="There are none in the store yet.",
        )  # fmt: skip
        return
    if not any(r.role == "reviewer" for r in store.reviewers()) and not any(
        of.labels for of in progress
    ):
        yield NextAction(
            kind="people", what="Add reviewers", page="start", n=0,
            why="Two people label the same traces, so that you see how far they agree.",
        )  # fmt: skip
    if not batches:
        yield NextAction(
            kind="draw", what="Draw a batch", page="overview", n=min(FIRST_BATCH, n_traces),
            why=f"{counted(n_traces, 'trace')} imported, none drawn for labelling.",
        )  # fmt: skip


def _trend(results: Results | None) -> Iterator[NextAction]:
    drop = None if results is None or results.weekly is None else results.weekly.drop
    if drop is not None and drop.since is not None and drop.baseline is not None:
        yield NextAction(
            kind="trend", what="Find out why the rate fell", page="asr", n=drop.n_weeks,
            why=f"Below its baseline of {100 * drop.baseline:.1f} % since {drop.since} (CUSUM).",
        )  # fmt: skip


def _decisions(waiting: Sequence[OpenTraces], rated: str | None) -> Iterator[NextAction]:
    """Yield what waits on the Adjudicate page, batch by batch."""
    several = len(waiting) > 1
    for kind, what, again, noun, why in (
        ("settle", "Adjudicate", "", "disagreement", "Reviewers gave different classes"),
        ("flags", "Look at", "flagged ", "trace", "A reviewer asked for a second look"),
        ("reopened", "Decide", "settled ", "trace", "Labels have changed since the decision"),
    ):
        for of in waiting:
            ids = {"settle": of.disputed, "flags": of.flagged - of.disputed}
            n = len(ids.get(kind, of.reopened))
            if n:
                rate = kind == "settle" and of.batch_id in (rated or "").split(TOGETHER)
                yield NextAction(
                    kind=kind,
                    what=f"{what} {counted(n, again + noun)}{' again' * (kind == 'reopened')}",
                    why=f"{why}{f' in {of.batch_id}' if several else ''}."
                    + " Until then the rate is provisional." * rate,
                    page="adjudicate",
                    n=n,
                    batch_id=of.batch_id,
                )


def _sign_in(store: Store, progress: Sequence[Progress]) -> Iterator[NextAction]:
    # Labels of people who never signed in were imported.
    imported = {r.reviewer_id for of in progress for r in of.reviewers}
    people = [p for p in store.without_sign_in() if p.reviewer_id not in imported]
    if not people:
        return
    names = [shown(person.name, most=LONGEST_NAME) for person in people]
    lack = "link to the identity provider" if store.identities() == "oidc" else "passphrase"
    whom = names[0] if len(names) == 1 else f"{len(names):,} people"
    yield NextAction(
        kind="sign_in", what=f"Let {whom} sign in", page="people", n=len(names),
        why=f"No {lack} yet{'' if len(names) == 1 else f': {_listed(names)}'}.",
    )  # fmt: skip


def _drift(reviewers: Sequence[ReviewerChecks]) -> Iterator[NextAction]:
    for of in reviewers:
        if of.recertify:
            began = [d for d in (of.gold.fell_from, of.repeats.fell_from) if d is not None]
            since = f" Probably since {min(began):%d %b %Y}." if began else ""
            yield NextAction(
                kind="drift",
                what=f"Examine {shown(of.name, most=LONGEST_NAME)} again",
                why=f"{of.recertify[0].partition(';')[0]}.{since}",
                page="reviewers",
                n=1,
                reviewer_id=of.reviewer_id,
            )


def _certificates(
    store: Store,
    batches: Sequence[Batch],
    progress: Sequence[Progress],
    names: Mapping[str, str],
) -> Iterator[NextAction]:
    """Yield who labelled in an open batch that asks for a certificate, and has none any more."""
    demand, now = store.certificate_demand(), utc_now()
    ended = {who: until for who, (_, until) in held_certificates(store).items()}
    told: set[str] = set()
    for batch, of in zip(batches, progress, strict=True):
        if not of.labels_left or not (batch.certificate or demand.every_batch):
            continue
        private = PRIVATE in (batch.certificate, demand.form)
        lately = {who for who, until in ended.items() if now - LATELY < until}
        for who in sorted({r.reviewer_id for r in of.reviewers} | lately):
            if who in told or store.certificate_of(who, private=private) is not None:
                continue
            told.add(who)
            past = ended.get(who)
            when = (
                f" expired on {past:%d %b %Y}"
                if past is not None and past <= now
                else " is missing"
            )
            yield NextAction(
                kind="certificate", what=f"Have {names[who]} examined", page="certify", n=1,
                why=f"{batch.batch_id} asks for a certificate, and theirs{when}.",
                batch_id=batch.batch_id, reviewer_id=who,
            )  # fmt: skip


def away(leases: Sequence[Lease], now: datetime) -> dict[str, list[Lease]]:
    """Return the leases of people who have answered nothing for five minutes, by person."""
    held: dict[str, list[Lease]] = {}
    for lease in leases:
        held.setdefault(lease.reviewer_id, []).append(lease)
    return {
        who: of
        for who, of in held.items()
        if max(lease.expires_at for lease in of) - now < LEASE - AWAY
    }


def _away(
    store: Store, progress: Sequence[Progress], names: Mapping[str, str]
) -> Iterator[NextAction]:
    now = utc_now()
    me = store.actor.reviewer_id if store.actor is not None else ""
    for of in progress:
        for who, leases in away(of.leases, now).items():
            if who == me:
                continue
            idle = (LEASE - (max(one.expires_at for one in leases) - now)).total_seconds() // 60
            yield NextAction(
                kind="away",
                what=f"Release {counted(len(leases), 'trace')} that {names[who]} has claimed",
                why=f"In progress in {of.batch_id} and without an answer for {idle:.0f} min.",
                page="overview",
                n=len(leases),
                batch_id=of.batch_id,
                reviewer_id=who,
            )


def _judge(store: Store, results: Results | None) -> Iterator[NextAction]:
    if results is None or results.agreement is None:
        return
    if store.judge_frame().empty:
        yield NextAction(
            kind="verdicts", what="Import the verdicts of a judge", page="judge", n=0,
            why="The rate rests on human labels alone; verdicts on all traces make its interval "
            "narrower.",
        )  # fmt: skip
    elif results.judge_id is not None and not results.calibrated:
        why = results.correction.removeprefix("not_estimable: ")
        yield NextAction(
            kind="judge", what="See why the rate is not corrected for judge error", page="judge",
            n=1, why=sentence(why) if why else "The judge cannot be used.",
        )  # fmt: skip


def _labels(progress: Sequence[Progress], slow: SlowParts) -> Iterator[NextAction]:
    """Yield the labels that are missing, else what more of them would give."""
    for of in progress:
        if of.labels_left:
            time = "" if of.hours_left is None else f", about {hours(of.hours_left)} of work"
            yield NextAction(
                kind="label", what=f"Label {counted(of.items_open, 'more trace')}", page="label",
                n=of.items_open, batch_id=of.batch_id,
                why=f"{counted(of.labels_left, 'label')} missing in {of.batch_id}{time}.",
            )  # fmt: skip
    results = slow.results
    if results is None or any(of.labels_left for of in progress) or results.stopping.may_stop:
        return
    now = results.headline.half_width
    if now is None or not results.further or now - results.further[0].half_width < FEWEST_POINTS:
        return
    step = results.further[0]
    yield NextAction(
        kind="precision", what=f"Draw and label {counted(step.more, 'more trace')}",
        page="overview", n=step.more,
        why=f"They narrow the interval from {points(now)} to about {points(step.half_width)}.",
    )  # fmt: skip
