"""When somebody may sit an examination: attempts, waiting, practice, a lead's decision."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

START, GO_ON, WAIT, PRACTISE, LEAD, CERTIFIED = (
    "start", "go_on", "wait", "practise", "lead", "certified",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRule:
    """How often and how soon; times in UTC.

    Parameters
    ----------
    attempts : int
        On one taxonomy version, before a lead has to decide.
    apart : timedelta
        From the end of one attempt to the next; a practice round must lie between them, too.
    valid : timedelta
        How long a certificate holds.
    renewal : timedelta
        How long before its end a certificate may be renewed.
    """

    attempts: int = 2
    apart: timedelta = timedelta(hours=24)
    valid: timedelta = timedelta(days=90)
    renewal: timedelta = timedelta(days=14)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt under the taxonomy in force; `ended_at` is None while it goes on."""

    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NextAttempt:
    """Whether an examination may be started, and if not, what has to happen first.

    `step` is ``start``, ``go_on`` (one is open), ``certified`` (none is needed), ``wait``,
    ``practise`` or ``lead``; `at` is the earliest time, where one is known. `own_form` asks for a
    form made of the team's own adjudicated traces. `used` counts the attempts since `counted_from`
    (None: all of them).
    """

    step: str
    why: str
    at: datetime | None = None
    own_form: bool = False
    used: int = 0
    counted_from: datetime | None = None

    @property
    def may(self) -> bool:
        """Whether an examination may be started now."""
        return self.step == START


def next_attempt(
    now: datetime,
    attempts: Sequence[Attempt],
    *,
    rounds: Sequence[datetime] = (),
    allowed: Sequence[datetime] = (),
    certified_until: datetime | None = None,
    rule: AttemptRule | None = None,
) -> NextAttempt:
    """Say whether somebody may start an examination now.

    Parameters
    ----------
    now : datetime
    attempts : sequence of Attempt
        Under the taxonomy version in force, in order.
    rounds : sequence of datetime
        When practice rounds were finished: every trace labelled.
    allowed : sequence of datetime
        When a lead allowed one attempt more.
    certified_until : datetime or None
        End of the last certificate under this version, past or to come.
    rule : AttemptRule, optional

    Returns
    -------
    NextAttempt

    Examples
    --------
    >>> noon = datetime(2026, 1, 1, 12)
    >>> one = Attempt(started_at=noon, ended_at=noon)
    >>> next_attempt(noon, []).may, next_attempt(noon, [one]).step
    (True, 'wait')
    >>> later = noon + timedelta(hours=24)
    >>> next_attempt(later, [one]).step, next_attempt(later, [one], rounds=[later]).may
    ('practise', True)
    >>> next_attempt(later, [one, one], rounds=[later]).step
    'lead'
    """
    rule = rule or AttemptRule()
    since = None
    if certified_until is not None and now >= certified_until - rule.renewal:
        since = certified_until - rule.renewal
    counted = [a for a in attempts if since is None or a.started_at >= since]
    used = len(counted)
    if any(attempt.ended_at is None for attempt in attempts):
        return NextAttempt(
            step=GO_ON, why="an examination is open: finish it", used=used, counted_from=since
        )
    started = [a.started_at for a in attempts]
    # A decision is used up by the attempt that follows it.
    lead_says = any(not started or at > max(started) for at in allowed)
    if certified_until is not None and since is None and not lead_says:
        return NextAttempt(
            step=CERTIFIED, at=certified_until - rule.renewal, used=used,
            why=f"the certificate holds; it may be renewed {_days(rule.renewal)} before its end",
        )  # fmt: skip
    own_form = used >= rule.attempts
    if own_form and not lead_says:
        return NextAttempt(
            step=LEAD, used=used, counted_from=since, own_form=True,
            why=f"all {rule.attempts} attempts on this decision tree are used: a lead has to "
            "allow another one, on traces that this team has adjudicated",
        )  # fmt: skip
    return _after_a_while(now, counted, rounds, rule, own_form=own_form, since=since)


def _after_a_while(
    now: datetime,
    counted: Sequence[Attempt],
    rounds: Sequence[datetime],
    rule: AttemptRule,
    *,
    own_form: bool,
    since: datetime | None,
) -> NextAttempt:
    used, step, why = len(counted), START, "an examination may be started"
    at = None
    last = max((a.ended_at for a in counted if a.ended_at is not None), default=None)
    if last is not None:
        practised = any(finished > last for finished in rounds)
        if now < last + rule.apart:
            step, at = WAIT, last + rule.apart
            hours = rule.apart / timedelta(hours=1)
            why = f"{hours:g} hours must pass between two attempts"
            why += "" if practised else ", and a practice round must be finished"
        elif not practised:
            step = PRACTISE
            why = "a practice round must be finished between two attempts: every trace labelled"
    return NextAttempt(step=step, why=why, at=at, own_form=own_form, used=used, counted_from=since)


def _days(time: timedelta) -> str:
    return f"{time / timedelta(days=1):g} days"
