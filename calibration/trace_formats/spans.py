"""Spans, the units of work of a run as platforms record them, and the tree that they form.

A span whose parent is missing, or whose parents run in a circle, is one of the first of the run.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

from calibration.trace_formats.base import MAX_COST_USD
from calibration.trace_formats.fields import moment, number, whole, wrong

Kind = Literal["model", "tool", "agent", "grader", "embedding", "other"]

# A larger number of one unit is a time in the next one: seconds, milli-, micro- and nanoseconds.
_UNITS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (float("inf"), 1e9))
DOUBLED = "doubled_cost"  # in the metadata of a run
SINCE = datetime(1970, 1, 1, tzinfo=UTC)

# Names of scores that `asr push` and exports gave to a platform begin with this. When a trace is
# read again they are no scores of its source: our labels would return as the verdicts of a judge.
OWN_SCORES = "asr-calibration/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One unit of work of a run, with what it was given and what it returned.

    `given` and `returned` are JSON values, of a call of a model its messages. `cost_usd` of a span
    may include that of the spans within it.
    """

    span_id: str
    parent_id: str | None
    kind: Kind
    name: str
    given: object = None
    returned: object = None
    started: datetime | None = None
    ended: datetime | None = None
    model: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    failed: bool = False
    call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceScore:
    """A score in the file; nobody who labels sees it.

    `human` where a person gave it; `scale` : the lowest and the highest number, where the file
    states them.
    """

    name: str
    value: object
    comment: str | None = None
    human: bool = False
    author: str | None = None
    scale: tuple[float | None, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What a platform says of a run as a whole; missing is None, an unknown cost too.

    `costs_add_up` is False where only the total of the platform is a cost of the run.
    """

    source_id: str
    name: str | None = None
    given: object = None
    returned: object = None
    started: datetime | None = None
    latency_s: float | None = None
    cost_usd: float | None = None
    costs_add_up: bool = True
    total_tokens: int | None = None
    status: str | None = None
    version: str | None = None
    task_id: str | None = None
    trial: int = 0
    scores: tuple[SourceScore, ...] = ()
    metadata: tuple[tuple[str, object], ...] = ()


def time_of(value: object, name: str, zone: tzinfo = UTC) -> datetime | None:
    """Return a time given as ISO 8601, a number since 1970, or a pair of seconds and nanoseconds.

    Examples
    --------
    >>> time_of(1728803138291, "start_time") == time_of("1728803138291000000", "start_time")
    True
    """
    if isinstance(value, list) and len(value) == 2:
        whole_s, nanos = (number(v, name, maximum=1e12) for v in value)
        return _since_1970((whole_s or 0) + (nanos or 0) / 1e9, name, value)
    if isinstance(value, str) and value.strip().isdecimal() and len(value) <= 20:
        value = int(value)
    if value in (None, "", 0):
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        given = number(value, name, maximum=1e20) or 0.0
        scale = next(scale for most, scale in _UNITS if given < most)
        return _since_1970(given / scale, name, value)
    return moment(value, name, zone)


def _since_1970(seconds: float, name: str, value: object) -> datetime | None:
    try:
        at = SINCE + timedelta(seconds=seconds)
    except OverflowError as error:
        raise wrong(name, "must be a time", value) from error
    return moment(at.isoformat(), name, UTC)


def price(value: object, name: str) -> float | None:
    """Return a cost in USD, also written as text; 0 is an unknown price."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError as error:
            raise wrong(name, "must be a number", value) from error
    return number(value, name, maximum=MAX_COST_USD) or None


def count(value: object, name: str) -> int | None:
    """Return a number of tokens, also written as text."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 16:
        value = int(value)
    return whole(value, name)


class SpanTree:
    """The spans of a run in order of time, each with its parent."""

    def __init__(self, spans: Sequence[Span]) -> None:
        known = {span.span_id for span in spans}
        self.missing = sum(s.parent_id is not None and s.parent_id not in known for s in spans)
        parents: dict[str, str | None] = {
            s.span_id: s.parent_id for s in spans if s.parent_id in known
        }
        self.circles = _cut_circles(parents)
        # Not by their order in the file, but where they have no time.
        self.spans = sorted(
            spans, key=lambda s: (s.started or SINCE, (s.started and s.span_id) or "")
        )
        self.parent = {s.span_id: parents.get(s.span_id) for s in self.spans}
        self.children: dict[str | None, list[Span]] = defaultdict(list)
        for span in self.spans:
            self.children[self.parent[span.span_id]].append(span)
        self.roots = self.children[None]
        self.fronts = [span for span in self.roots if span.kind not in ("tool", "grader")]
        self._down = list(self._walk())

    def _walk(self) -> Iterator[Span]:
        """Yield every span after its parent."""
        waiting = list(reversed(self.roots))
        while waiting:
            span = waiting.pop()
            yield span
            waiting += reversed(self.children[span.span_id])

    def holding(self, chosen: set[str]) -> set[str]:
        """Return the spans with a chosen span below them."""
        above: set[str] = set()
        for span in reversed(self._down):
            parent = self.parent[span.span_id]
            if parent is not None and (span.span_id in chosen or span.span_id in above):
                above.add(parent)
        return above

    def within(self, chosen: set[str]) -> set[str]:
        """Return the spans with a chosen span above them."""
        below: set[str] = set()
        for span in self._down:
            parent = self.parent[span.span_id]
            if parent is not None and (parent in chosen or parent in below):
                below.add(span.span_id)
        return below

    def cost(self) -> float | None:
        """Return the sum over spans with a cost and no span with a cost below them."""
        priced = {span.span_id for span in self.spans if span.cost_usd is not None}
        leaves = priced - self.holding(priced)
        costs = [s.cost_usd for s in self.spans if s.span_id in leaves and s.cost_usd is not None]
        return number(math.fsum(costs), "cost", maximum=MAX_COST_USD) if costs else None

    def is_doubled(self, total: float) -> bool:
        """Return whether a total is that of all spans with a cost, though some hold others."""
        priced = {span.span_id for span in self.spans if span.cost_usd is not None}
        every = math.fsum(s.cost_usd for s in self.spans if s.cost_usd is not None)
        nested = bool(priced & self.holding(priced))
        return nested and math.isclose(total, every, rel_tol=1e-6, abs_tol=1e-9)

    def unpriced(self) -> int:
        """Return the number of model calls with counted tokens and no cost, theirs or around."""
        priced = {span.span_id for span in self.spans if span.cost_usd is not None}
        about = priced | self.holding(priced) | self.within(priced)
        return sum(s.span_id not in about and bool(s.tokens_in) for s in self.calls())

    def tokens(self) -> int | None:
        """Return the tokens of all calls of a model; None where one has no count."""
        total = 0
        for span in self.calls():
            if span.tokens_in is None or span.tokens_out is None:
                return None
            total += span.tokens_in + span.tokens_out
        return total or None

    def calls(self) -> list[Span]:
        """Return the calls of a model, the inner one where two spans hold the same call."""
        models = {span.span_id for span in self.spans if span.kind == "model"}
        outer = self.holding(models)
        return [s for s in self.spans if s.kind == "model" and s.span_id not in outer]

    def latency(self) -> float | None:
        """Return the seconds from the start of the first span to the end of the last."""
        starts = [span.started for span in self.spans if span.started is not None]
        ends = [span.ended for span in self.spans if span.ended is not None]
        if not starts or not ends or max(ends) < min(starts):
            return None
        return number((max(ends) - min(starts)).total_seconds(), "latency")


def _cut_circles(parents: dict[str, str | None]) -> int:
    """Take the parent of one span of each circle away; return how many circles there were."""
    done: set[str] = set()
    circles = 0
    for first in list(parents):
        path: list[str] = []
        on_path: set[str] = set()
        here: str | None = first
        while here is not None and here not in done:
            if here in on_path:
                circles += 1
                parents[path[path.index(here)]] = None
                break
            path.append(here)
            on_path.add(here)
            here = parents.get(here)
        done.update(path)
    return circles
