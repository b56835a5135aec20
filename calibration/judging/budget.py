"""What a run costs and may cost: prices, a hard cap by reservation, and an estimate beforehand.

A request is sent only if what is spent, what is reserved and its own worst case stay under the cap.
An answer replaces its reservation by the tokens that it counts; one that does not count them leaves
the reservation spent. Prices come from settings, never from the network.
"""

import json
import statistics
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from calibration.errors import JudgeRunError
from calibration.judging.journal import Ended, Sent, Tokens
from calibration.judging.requests import Request

MILLION = 1_000_000
BYTES_PER_TOKEN = 2  # at least, as long as few answers have been counted
ANSWERS_FOR_BOUND = 20
BOUND_MARGIN = 1.25
CHARACTERS_PER_TOKEN = 3.5  # of an estimate; Chinese text needs far more tokens
ANSWERS_LEARNED = 50
SHARE_OF_LIMIT = 0.25  # of the output limit that an answer uses, as long as none was counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """US dollars for a million tokens; cached and written input cost as other input if None."""

    input: float
    output: float
    cached: float | None = None
    written: float | None = None

    def __post_init__(self) -> None:
        for name, price in asdict(self).items():
            if price is not None and not 0 <= price < float("inf"):
                raise JudgeRunError(f"the price of {name} tokens must not be negative: {price!r}")

    def cost(self, tokens: Tokens) -> float:
        """Return the price of an answer in US dollars.

        Examples
        --------
        >>> prices = Prices(input=2.0, output=8.0, cached=0.5)
        >>> prices.cost(Tokens(input=1_000_000, output=500_000, cached=400_000))
        5.4
        """
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.written is None else self.written
        plain = tokens.input - tokens.cached - tokens.written
        paid = plain * self.input + tokens.cached * cached + tokens.written * written
        return (paid + tokens.output * self.output) / MILLION

    def worst(self, tokens_in: int, tokens_out: int) -> float:
        """Return the highest price of so many tokens."""
        dearest = max(p for p in (self.input, self.cached, self.written) if p is not None)
        return (tokens_in * dearest + tokens_out * self.output) / MILLION


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """The most that a run may cost; None is without a limit of this kind."""

    usd: float | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        for limit in (self.usd, self.tokens):
            if limit is not None and not 0 < limit < float("inf"):
                raise JudgeRunError(f"a cap must be positive: {limit!r}")


@dataclass(slots=True)
class _Amount:
    """A sum of tokens and of money."""

    tokens: int = 0
    usd: float = 0.0

    def add(self, tokens: int, usd: float | None, sign: int = 1) -> None:
        """Add an amount, or take it away."""
        self.tokens += sign * tokens
        self.usd += sign * (usd or 0.0)


class Budget:
    """What a run has spent, and whether it may send another request.

    `note` takes every attempt that has ended, as `journal.Journal` reports it: the budget is a
    function of the journal. Answers of other runs of the judge teach it how long answers are.

    Raises
    ------
    JudgeRunError
        For a cap in money without prices.

    Examples
    --------
    >>> budget = Budget(Cap(tokens=700))
    >>> request = Request(trace_id="t", content_hash="c", sample=0, output_limit=500)
    >>> sent = budget.reserve(request, "key", attempt=1)
    >>> sent.reserved_tokens
    502
    >>> budget.reserve(request, "other", attempt=1) is None
    True
    >>> tokens = Tokens(input=4, output=90)
    >>> budget.note(Ended(sent=sent, kind="answered", tokens=tokens), True)
    >>> budget.spent.tokens, budget.reserve(request, "other", attempt=1) is not None
    (94, True)
    """

    def __init__(self, cap: Cap, prices: Prices | None = None) -> None:
        if cap.usd is not None and prices is None:
            raise JudgeRunError(
                "a cap in money needs prices: give those of input and output tokens, or a cap in "
                "tokens"
            )
        self.cap = cap
        self.prices = prices
        self.learned = Learned()
        self.spent = _Amount()  # counted by answers
        self.possible = _Amount()  # the worst case of attempts that counted nothing
        self._reserved = _Amount()
        self._in_flight: set[str] = set()

    def reserve(self, request: Request, key: str, *, attempt: int) -> Sent | None:
        """Reserve the worst case of a request; None if the cap does not allow it."""
        tokens_in = self.learned.most_input(request.input_bytes)
        tokens = tokens_in + request.output_limit
        usd = None if self.prices is None else self.prices.worst(tokens_in, request.output_limit)
        cap, parts = self.cap, (self.spent, self.possible, self._reserved)
        if cap.tokens is not None and sum(p.tokens for p in parts) + tokens > cap.tokens:
            return None
        if cap.usd is not None and sum(p.usd for p in parts) + (usd or 0.0) > cap.usd:
            return None
        self._reserved.add(tokens, usd)
        self._in_flight.add(key)
        return Sent(
            key=key,
            trace_id=request.trace_id,
            sample=request.sample,
            attempt=attempt,
            input_bytes=request.input_bytes,
            input_characters=request.input_characters,
            output_limit=request.output_limit,
            reserved_tokens=tokens,
            reserved_usd=usd,
        )

    @property
    def waits(self) -> bool:
        """Whether attempts are in flight, whose end may free a part of what is reserved."""
        return bool(self._in_flight)

    def cost(self, tokens: Tokens | None) -> float | None:
        """Return the price of an answer, None without prices or without its tokens."""
        return None if tokens is None or self.prices is None else self.prices.cost(tokens)

    def note(self, ended: Ended, own: bool) -> None:
        """Take in how an attempt has ended, of this run if `own`."""
        self.learned.note(ended)
        if not own:
            return
        sent = ended.sent
        if sent.key in self._in_flight:
            self._in_flight.remove(sent.key)
            self._reserved.add(sent.reserved_tokens, sent.reserved_usd, -1)
        if ended.tokens is not None:
            self.spent.add(ended.tokens.total, self.cost(ended.tokens))
        elif ended.possible:
            self.possible.add(sent.reserved_tokens, sent.reserved_usd)


class Learned:
    """What answers that counted their tokens say about the next ones; ratios of the last 50."""

    def __init__(self) -> None:
        self._counted = 0
        self._written = 0  # output tokens of all answers
        self._most_per_byte = 0.0
        self._recent: deque[tuple[Sent, Tokens]] = deque(maxlen=ANSWERS_LEARNED)

    def note(self, ended: Ended) -> None:
        """Learn from an attempt that has ended."""
        if ended.tokens is None or not ended.sent.input_bytes:
            return
        self._counted += 1
        self._written += ended.tokens.output
        share = ended.tokens.input / ended.sent.input_bytes
        self._most_per_byte = max(self._most_per_byte, share)
        self._recent.append((ended.sent, ended.tokens))

    def most_input(self, input_bytes: int) -> int:
        """Return the most input tokens that a request of so many bytes can have."""
        per_byte = 1 / BYTES_PER_TOKEN
        if self._counted >= ANSWERS_FOR_BOUND:
            per_byte = BOUND_MARGIN * self._most_per_byte
        return int(input_bytes * per_byte) + 1

    @property
    def tokens_per_character(self) -> float:
        """Input tokens per character."""
        ratios = [t.input / s.input_characters for s, t in self._recent if s.input_characters]
        return statistics.median(ratios) if ratios else 1 / CHARACTERS_PER_TOKEN

    @property
    def cached_share(self) -> float:
        """The part of the input that the provider had stored."""
        shares = [tokens.cached / tokens.input for _, tokens in self._recent]
        return statistics.median(shares) if shares else 0.0

    def output(self, limit: int) -> float:
        """Return how many tokens an answer of at most `limit` has on average."""
        if not self._counted:
            return limit * SHARE_OF_LIMIT
        return min(float(limit), self._written / self._counted)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """What the rest of a run is expected to need; `usd` fields are None without prices.

    `answered` requests are journaled already and cost nothing. `cached` tokens are part of
    `input`. `usd_high` is with nothing cached and every answer as long as it may be, `usd_low` with
    answers half as long as usual. `minutes` is at the given limits, None without any.
    """

    requests: int
    answered: int
    input: int
    cached: int
    output: int
    usd: float | None = None
    usd_low: float | None = None
    usd_high: float | None = None
    minutes: float | None = None


def estimate(
    sizes: Iterable[tuple[int, int]],
    learned: Learned,
    prices: Prices | None = None,
    *,
    answered: int = 0,
    calls: float = 1.0,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
) -> CostEstimate:
    """Estimate what samples will need, from their characters and what answers have taught.

    Parameters
    ----------
    sizes : iterable of (int, int)
        Characters and output limit of the next request of every sample that has no verdict yet.
    learned : Learned
        What earlier answers of the judge taught, as `Budget.learned`.
    prices : Prices, optional
        Without them there are tokens only.
    answered : int, optional
        How many requests have their answer already.
    calls : float, optional
        Requests a sample, with those of later calls and of re-asks.
    requests_per_minute, tokens_per_minute : float, optional
        The limits of the endpoint.

    Examples
    --------
    >>> found = estimate([(3500, 400)] * 10, Learned(), Prices(input=1.0, output=10.0))
    >>> found.input, found.output, found.usd
    (10000, 1000, 0.02)
    """
    samples, characters, limit, expected = 0, 0, 0, 0.0
    for size, most in sizes:
        samples += 1
        characters += size
        limit += most
        expected += learned.output(most)
    tokens_in = characters * learned.tokens_per_character * calls
    tokens_out = expected * calls
    cached = tokens_in * learned.cached_share
    usd: list[float | None] = [None, None, None]
    if prices is not None:
        usd = [
            prices.cost(Tokens(input=round(tokens_in), output=round(out), cached=round(stored)))
            for out, stored in ((tokens_out, cached), (tokens_out / 2, cached), (limit * calls, 0))
        ]
    n = round(samples * calls)
    rates = ((n, requests_per_minute), (tokens_in + tokens_out, tokens_per_minute))
    times = [amount / rate for amount, rate in rates if rate]
    return CostEstimate(
        requests=n,
        answered=answered,
        input=round(tokens_in),
        cached=round(cached),
        output=round(tokens_out),
        usd=usd[0],
        usd_low=usd[1],
        usd_high=usd[2],
        minutes=max(times) if times else None,
    )


def tokens_of(body: str) -> Tokens | None:
    """Return the tokens that an answer counts, None if it counts none or only some.

    Providers count reasoning within the output or beside it; only then is the total larger than
    input and output.

    Examples
    --------
    >>> tokens_of('{"usage": {"prompt_tokens": 90, "completion_tokens": 10}}').total
    100
    >>> tokens_of('{"usage": {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 140}}')
    Tokens(input=90, output=50, cached=0, written=0)
    >>> tokens_of('{"usage": {"prompt_tokens": 90}}') is None
    True
    """
    try:
        usage = json.loads(body)["usage"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    tokens_in = _count(usage, "prompt_tokens", "input_tokens")
    output = _count(usage, "completion_tokens", "output_tokens")
    if not tokens_in or not output:
        return None
    output = max(output, (_count(usage, "total_tokens") or 0) - tokens_in)
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    cached = _count(details, "cached_tokens") or _count(usage, "cache_read_input_tokens") or 0
    written = (
        _count(details, "cache_write_tokens", "cache_creation_tokens")
        or _count(usage, "cache_creation_input_tokens")
        or 0
    )
    if cached + written > tokens_in:  # counted beside the input
        tokens_in += cached + written
    return Tokens(input=tokens_in, output=output, cached=cached, written=written)


def _count(counts: object, *names: str) -> int | None:
    """Return the first of these fields that is a number of tokens."""
    if isinstance(counts, Mapping):
        found: Any
        for name in names:
            found = counts.get(name)
            if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
                return found
    return None
