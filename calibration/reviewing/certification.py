"""When an examination is passed: the agreement as a whole, then every class by itself."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import comb

PASSED, TOP_UP, FAILED = "passed", "top_up", "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRule:
    """What a reviewer has to show.

    Parameters
    ----------
    ac1 : float
        The lower limit of AC1 against the canonical labels must reach this.
    confidence_level : float
        Of that limit, two-sided.
    recall, chance : float
        A class is shown when its recall is at least `recall` with at least this chance.
    top_up : int
        Further traces of a class that is not shown, before it fails.
    """

    ac1: float = 0.70
    confidence_level: float = 0.95
    recall: float = 0.6
    chance: float = 0.8
    top_up: int = 8

    def __post_init__(self) -> None:
        for name in ("ac1", "confidence_level", "recall", "chance"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise ValueError(f"{name} must be in (0, 1), got {value!r}")
        if self.top_up < 1:
            raise ValueError(f"top_up must be at least 1, got {self.top_up!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCount:
    """How many of the traces of a class the reviewer gave this class to."""

    outcome: str
    hits: int
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassShown:
    """One class and whether it is shown; `chance` is P(recall >= the rule's | hits, n)."""

    outcome: str
    hits: int
    n: int
    chance: float
    shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """How an examination stands: ``passed``, ``top_up`` (of which classes) or ``failed``, and why.

    `reasons` says it in words, `short` names the classes that are not shown.
    """

    status: str
    classes: tuple[ClassShown, ...]
    short: tuple[str, ...]
    reasons: tuple[str, ...]


def recall_chance(hits: int, n: int, *, recall: float) -> float:
    """Return the chance that a recall is at least so high, after `hits` of `n`.

    Every recall is taken as equally likely before: Beta(1, 1). The tail of Beta(1 + hits,
    1 + n - hits) is a binomial sum, P(X <= hits) with X ~ Bin(n + 1, recall), and so exact.

    Parameters
    ----------
    hits, n : int
        Traces of the class that were given it, and all of them; 0 <= hits <= n.
    recall : float
        In (0, 1).

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the counts are none or `recall` is outside (0, 1).

    Examples
    --------
    Both of two leave Beta(3, 1), whose tail is 1 - .6^3:

    >>> recall_chance(2, 2, recall=0.6)
    0.784

    Nothing seen leaves the uniform: P(recall >= .6) = .4.

    >>> recall_chance(0, 0, recall=0.6)
    0.4
    """
    if not 0 <= hits <= n:
        raise ValueError(f"hits must be in [0, {n}], got {hits!r}")
    if not 0 < recall < 1:
        raise ValueError(f"recall must be in (0, 1), got {recall!r}")
    return sum(comb(n + 1, k) * recall**k * (1 - recall) ** (n + 1 - k) for k in range(hits + 1))


def hits_needed(n: int, rule: PassRule) -> int:
    """Return the fewest hits that show a class of `n` traces; n + 1 when not even all do.

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
) -> Decision:
    """Decide on an examination.

    The agreement as a whole comes first: without it no further trace helps. A class that is not
    shown is topped up once, and fails only if it is not shown on all its traces then either.

    Parameters
    ----------
    ac1_limit : float or None
        Lower limit of AC1 on the form, without what topped it up; None: not estimable.
    counts : sequence of ClassCount
        One entry a class of the key, the further traces of classes topped up among them.
    topped_up : collection of str
        The classes whose further traces are in.
    rule : PassRule, optional

    Returns
    -------
    Decision

    Examples
    --------
    >>> even = [ClassCount(outcome=c, hits=9, n=10) for c in "ab"]
    >>> decide(0.75, even).status, decide(0.69, even).status
    ('passed', 'failed')
    >>> weak = [*even, ClassCount(outcome="c", hits=4, n=7)]
    >>> decide(0.75, weak).short, decide(0.75, weak).status
    (('c',), 'top_up')
    >>> decide(0.75, weak, topped_up={"c"}).status
    'failed'
    """
    rule = rule or PassRule()
    classes = tuple(_shown(count, rule) for count in counts)
    short = tuple(c.outcome for c in classes if not c.shown)
    if ac1_limit is None or ac1_limit < rule.ac1:
        limit = "not estimable" if ac1_limit is None else f"{ac1_limit:.3f}"
        why = f"the lower limit of AC1 is {limit}; {rule.ac1:.2f} is asked for"
        return Decision(status=FAILED, classes=classes, short=short, reasons=(why,))
    reasons = tuple(_not_shown(c, rule) for c in classes if not c.shown)
    if not short:
        done = f"the lower limit of AC1 is {ac1_limit:.3f}, and every class is shown"
        return Decision(status=PASSED, classes=classes, short=(), reasons=(done,))
    settled = any(outcome in topped_up for outcome in short)
    return Decision(
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
