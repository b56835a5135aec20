"""Certification: admission to examinations, the pass rule, and traces for practice."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import comb

import numpy as np

from calibration.errors import InputError
from calibration.taxonomy import Taxonomy

PASSED, TOP_UP, FAILED = "passed", "top_up", "failed"

START, GO_ON, WAIT, PRACTISE, LEAD, CERTIFIED = (
    "start", "go_on", "wait", "practise", "lead", "certified",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRule:
    """What a reviewer has to show."""

    ac1: float = 0.70  # at least this lower limit of AC1 against the canonical labels
    confidence_level: float = 0.95  # two-sided, of that limit
    recall: float = 0.6  # a class is shown if its recall is this or more
    chance: float = 0.8  # with at least this probability
    top_up: int = 8  # further traces of a class not shown, before it fails

    def __post_init__(self) -> None:
        for name in ("ac1", "confidence_level", "recall", "chance"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise ValueError(f"{name} must be in (0, 1), got {value!r}")
        if self.top_up < 1:
            raise ValueError(f"top_up must be at least 1, got {self.top_up!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCount:
    """Traces of a class, and those the reviewer gave that class."""

    outcome: str
    hits: int
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassShown:
    """One class of the form; `chance` is P(recall >= that of the rule | hits, n)."""

    outcome: str
    hits: int
    n: int
    chance: float
    shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamDecision:
    """Decision on an examination: ``passed``, ``top_up`` or ``failed``."""

    status: str
    classes: tuple[ClassShown, ...]
    short: tuple[str, ...]  # classes not shown
    reasons: tuple[str, ...]  # sentences


def recall_chance(hits: int, n: int, *, recall: float) -> float:
    """Return the posterior probability that a recall is at least `recall`, after `hits` of `n`.

    Traces are independent; the prior is uniform, Beta(1, 1). The tail of Beta(1 + hits,
    1 + n - hits) is a binomial sum, P(X <= hits) with X ~ Bin(n + 1, recall), and so exact.

    Raises
    ------
    ValueError
        Unless 0 <= hits <= n and 0 < recall < 1.

    Examples
    --------
    Both of two leave Beta(3, 1), whose tail is 1 - .6^3:

    >>> recall_chance(2, 2, recall=0.6)
    0.784
    """
    if not 0 <= hits <= n:
        raise ValueError(f"hits must be in [0, {n}], got {hits!r}")
    if not 0 < recall < 1:
        raise ValueError(f"recall must be in (0, 1), got {recall!r}")
    return sum(comb(n + 1, k) * recall**k * (1 - recall) ** (n + 1 - k) for k in range(hits + 1))


def hits_needed(n: int, rule: PassRule) -> int:
    """Return the fewest hits that show a class of `n` traces; n + 1 if not even `n` do.

    Examples
    --------
    Of seven traces: P(Bin(8, .6) <= 5) = .685, P(<= 6) = .894.

    >>> hits_needed(7, PassRule())
    6
    """
    for hits in range(n + 1):
        if recall_chance(hits, n, recall=rule.recall) >= rule.chance:
            return hits
    return n + 1


def decide(
    ac1_limit: float | None,
    counts: Sequence[ClassCount],
    *,
    topped_up: Collection[str] = (),
    rule: PassRule | None = None,
) -> ExamDecision:
    """Decide on an examination.

    Agreement on the whole form comes first: without it no further trace helps. A class that is not
    shown is topped up once, and fails if it is not shown on all its traces then either.

    Parameters
    ----------
    ac1_limit : float or None
        Lower limit of AC1 on the form, without further traces; None: not estimable.
    counts : sequence of ClassCount
        One per class of the key, further traces included.
    topped_up : collection of str
        Classes whose further traces are in `counts`.
    rule : PassRule, optional

    Examples
    --------
    >>> weak = [ClassCount(outcome="a", hits=9, n=10), ClassCount(outcome="b", hits=4, n=7)]
    >>> decide(0.75, weak).short, decide(0.75, weak).status, decide(0.69, weak).status
    (('b',), 'top_up', 'failed')
    >>> decide(0.75, weak, topped_up={"b"}).status
    'failed'
    """
    rule = rule or PassRule()
    classes = tuple(_shown(count, rule) for count in counts)
    short = tuple(c.outcome for c in classes if not c.shown)
    if ac1_limit is None or ac1_limit < rule.ac1:
        limit = "not estimable" if ac1_limit is None else f"{ac1_limit:.3f}"
        why = f"the lower limit of AC1 is {limit}; {rule.ac1:.2f} is asked for"
        return ExamDecision(status=FAILED, classes=classes, short=short, reasons=(why,))
    reasons = tuple(_not_shown(c, rule) for c in classes if not c.shown)
    if not short:
        done = f"the lower limit of AC1 is {ac1_limit:.3f}, and every class is shown"
        return ExamDecision(status=PASSED, classes=classes, short=(), reasons=(done,))
    settled = any(outcome in topped_up for outcome in short)
    return ExamDecision(
        status=FAILED if settled else TOP_UP, classes=classes, short=short, reasons=reasons
    )


def _shown(count: ClassCount, rule: PassRule) -> ClassShown:
    chance = recall_chance(count.hits, count.n, recall=rule.recall)
    return ClassShown(
        outcome=count.outcome, hits=count.hits, n=count.n, chance=chance,
        shown=chance >= rule.chance,
    )  # fmt: skip


def _not_shown(found: ClassShown, rule: PassRule) -> str:
    needed = hits_needed(found.n, rule)
    asked = f"{needed} are asked for" if needed <= found.n else "too few to show it by"
    return (
        f"{found.outcome} is not shown: {found.hits} of {found.n} found, {asked} "
        f"(chance of a recall of {rule.recall:g} or more: {found.chance:.2f})"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRule:
    """Number and timing of attempts."""

    attempts: int = 2  # on one taxonomy version, before a lead has to decide
    apart: timedelta = timedelta(hours=24)  # from end to start, with a practice round between
    valid: timedelta = timedelta(days=90)  # life of a certificate
    renewal: timedelta = timedelta(days=14)  # before its end, when it may be renewed


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt under the taxonomy in force, UTC; `ended_at` is None while it is open."""

    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NextAttempt:
    """Whether an examination may be started, and if not, the next step."""

    step: str  # start, go_on (one is open), certified, wait, practise or lead
    why: str
    at: datetime | None = None  # earliest time, if known
    own_form: bool = False  # of the team's own adjudicated traces
    used: int = 0  # attempts since `counted_from` (None: all)
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
    """Return whether a reviewer may start an examination now, and if not, the next step.

    Parameters
    ----------
    now : datetime
        UTC, as all times here.
    attempts : sequence of Attempt
        Under the taxonomy version in force, in order.
    rounds, allowed : sequence of datetime
        When practice rounds were finished, and when a lead allowed a further attempt.
    certified_until : datetime or None
        End of the last certificate under this version, past or future.
    rule : AttemptRule, optional

    Examples
    --------
    >>> noon = datetime(2026, 1, 1, 12)
    >>> one, later = Attempt(started_at=noon, ended_at=noon), noon + timedelta(hours=24)
    >>> next_attempt(noon, []).may, next_attempt(noon, [one]).step, next_attempt(later, [one]).step
    (True, 'wait', 'practise')
    >>> next_attempt(later, [one], rounds=[later]).may
    True
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
    # An attempt uses up the permission before it.
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


ROUND = 12
AIMED = 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWeakness:
    """A reviewer's errors at one question."""

    node: str
    errors: int  # labels that left the canonical path there
    n: int  # labels that reached the question, as their canonical path did
    weakness: float  # (errors + 1) / (n + 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PracticeTrace:
    """A trace for practice."""

    trace_id: str
    outcome: str
    nearest_wrong: str
    seen: float | None = None  # last labelled or read by the reviewer, in any unit; None: never


def weaknesses(taxonomy: Taxonomy, labelled: Sequence[tuple[str, str]]) -> tuple[NodeWeakness, ...]:
    """Return a reviewer's weakness at each question, the weakest first.

    A wrong class counts as one error, at the first question answered otherwise than the canonical
    label. Weakness is the mean of Beta(1 + errors, 1 + n - errors): a question that was met once
    or never counts as doubtful, not as mastered.

    Parameters
    ----------
    taxonomy : Taxonomy
    labelled : sequence of (str, str)
        Canonical class and given class of each label.

    Examples
    --------
    Both came to the first two questions and parted at the second: 1 error of 1, (1 + 1)/(1 + 2).

    >>> from calibration.taxonomy import default_taxonomy
    >>> found = weaknesses(default_taxonomy(), [("complete", "hallucinated")])
    >>> [(w.node, w.errors, w.n, round(w.weakness, 2)) for w in found[:2]]
    [('fabrication', 1, 1, 0.67), ('all_subgoals', 0, 0, 0.5)]
    """
    met = dict.fromkeys((node.id for node in taxonomy.nodes), 0)
    wrong = dict(met)
    for canonical, given in labelled:
        theirs = taxonomy.answers_for(given)
        for node, answer in taxonomy.answers_for(canonical).items():
            met[node] += 1
            if theirs[node] != answer:
                wrong[node] += 1
                break
    found = [
        NodeWeakness(node=k, errors=wrong[k], n=met[k], weakness=(wrong[k] + 1) / (met[k] + 2))
        for k in met
    ]
    return tuple(sorted(found, key=lambda w: -w.weakness))


def exercised(taxonomy: Taxonomy, outcome: str, nearest_wrong: str) -> str:
    """Return the question at which the class of a trace and the nearest wrong one part.

    A team's own set need not name a nearest wrong class: then the last question on the way.
    """
    other = taxonomy.answers_for(nearest_wrong) if nearest_wrong in taxonomy.credit else {}
    path = taxonomy.answers_for(outcome)
    if not other:
        return list(path)[-1]
    return next((n for n, answer in path.items() if other.get(n) != answer), list(path)[-1])


def practice_round(
    taxonomy: Taxonomy,
    pool: Sequence[PracticeTrace],
    labelled: Sequence[tuple[str, str]],
    *,
    rng: np.random.Generator,
    size: int = ROUND,
) -> tuple[str, ...]:
    """Choose the traces of a practice round, in order; `labelled` as for `weaknesses`.

    About two thirds exercise the weakest questions in proportion to their weakness; the rest is
    spread over the classes. Traces never seen come first, then those seen longest ago; `rng` breaks
    ties and orders the round. Raises InputError if the pool is empty.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size!r}")
    if not pool:
        raise InputError(
            "there is no trace to practise on: `asr reference add FOLDER --name NAME` adds some"
        )
    shuffled = [pool[k] for k in rng.permutation(len(pool))]
    new = [t for t in shuffled if t.seen is None]
    again = sorted((t for t in shuffled if t.seen is not None), key=lambda t: t.seen or 0.0)
    wanted = _shares(weaknesses(taxonomy, labelled), round(size * AIMED))
    chosen: list[PracticeTrace] = []
    # New traces come before seen ones.
    for group in (new, again):
        _take(taxonomy, group, chosen, wanted, size)
    return tuple(chosen[k].trace_id for k in rng.permutation(len(chosen)))


def _take(
    taxonomy: Taxonomy,
    group: list[PracticeTrace],
    chosen: list[PracticeTrace],
    wanted: dict[str, int],
    size: int,
) -> None:
    """Move traces from a group to the chosen ones, first those wanted for each question."""
    for trace in list(group):
        node = exercised(taxonomy, trace.outcome, trace.nearest_wrong)
        if wanted.get(node, 0) > 0 and len(chosen) < size:
            wanted[node] -= 1
            chosen.append(trace)
            group.remove(trace)
    while group and len(chosen) < size:
        counts = {name: sum(t.outcome == name for t in chosen) for name in taxonomy.credit}
        rarest = min(group, key=lambda t: counts[t.outcome])
        chosen.append(rarest)
        group.remove(rarest)


def _shares(weak: Sequence[NodeWeakness], n: int) -> dict[str, int]:
    """Allocate `n` traces to the weaker half of the questions, in proportion to weakness."""
    chosen = weak[: max(1, (len(weak) + 1) // 2)]
    total = sum(w.weakness for w in chosen)
    exact = {w.node: n * w.weakness / total for w in chosen}
    shares = {node: int(share) for node, share in exact.items()}
    by_rest = sorted(exact, key=lambda node: shares[node] - exact[node])
    for node in by_rest[: n - sum(shares.values())]:
        shares[node] += 1
    return shares
