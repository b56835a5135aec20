"""What a run may cost: a hard cap by reservation, what was spent, and an estimate before the start.

Amounts are whole numbers, so that a cap is exact: tokens, or millionths of a millionth of a dollar.
"""

import json
import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

from calibration.errors import InputError
from calibration.judging.requests import Request

Unit = Literal["usd", "tokens"]

CHARACTERS_A_TOKEN = 3.5  # before anything is learned; an estimate and no bound
_PICO = 10**12
_FIRST_ANSWERS = 20
_BOUND_AT_FIRST = 0.5  # tokens a byte
_BOUND_FACTOR = 1.25
_LAST = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call; `input` includes `cached` and `cache_write`, `output` the reasoning."""

    input: int
    output: int
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Dollars per million tokens, from settings; cached ones cost as much as others unless given.

    Examples
    --------
    >>> Prices(input=1.0, output=4.0).usd(Usage(input=500_000, output=250_000))
    1.5
    >>> Prices(input=1.0, cached=0.1, output=4.0).usd(Usage(input=100, cached=100, output=0))
    1e-05
    """

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached", "cache_write"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InputError(f"price {name} must be a number from 0, got {value}")

    def picos(self, usage: Usage) -> int:
        """Return what a call costs, rounded up for each kind of token."""
        plain = max(0, usage.input - usage.cached - usage.cache_write)
        cached = self.input if self.cached is None else self.cached
        write = self.input if self.cache_write is None else self.cache_write
        parts = (
            (plain, self.input),
            (usage.cached, cached),
            (usage.cache_write, write),
            (usage.output, self.output),
        )
        return sum(tokens * _picos_a_token(price) for tokens, price in parts)

    def usd(self, usage: Usage) -> float:
        """Return what a call costs in dollars."""
        return self.picos(usage) / _PICO

    @property
    def highest_input(self) -> float:
        """The most that a token of input may cost: a cache is written at more than its price."""
        return max(self.input, self.cached or 0.0, self.cache_write or 0.0)


def _picos_a_token(price: float) -> int:
    return math.ceil(round(price * 1e6, 6))


def read_usage(body: str) -> Usage | None:
    """Return the usage that an answer states; None if there is none, or one that cannot be.

    Output is what the total leaves beside the input, where servers count reasoning only there.

    Examples
    --------
    >>> read_usage('{"usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 15}}')
    Usage(input=9, output=6, cached=0, cache_write=0, reasoning=0)
    >>> read_usage('{"usage": {"prompt_tokens": 0, "completion_tokens": 0}}') is None
    True
    """
    try:
        found = json.loads(body.removeprefix("\ufeff"))["usage"]
        told, completed = found["prompt_tokens"], found["completion_tokens"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not (_is_count(told) and _is_count(completed)) or told == 0:
        return None
    total = found.get("total_tokens")
    output = max(completed, total - told) if _is_count(total) else completed
    inside = _counts(found.get("prompt_tokens_details"))
    cached = inside.get("cached_tokens", _counts(found).get("prompt_cache_hit_tokens", 0))
    write = inside.get("cache_write_tokens", _counts(found).get("cache_creation_input_tokens", 0))
    cached = min(cached, told)
    return Usage(
        input=told,
        output=output,
        cached=cached,
        cache_write=min(write, told - cached),
        reasoning=_counts(found.get("completion_tokens_details")).get("reasoning_tokens", 0),
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9


def _counts(found: object) -> dict[str, int]:
    return {k: v for k, v in found.items() if _is_count(v)} if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """The most that a run may spend.

    Examples
    --------
    >>> Cap(amount=2.5, unit="usd").units, Cap(amount=1000, unit="tokens").units
    (2500000000000, 1000)
    """

    amount: float
    unit: Unit

    def __post_init__(self) -> None:
        if not (math.isfinite(self.amount) and self.amount > 0):
            raise InputError(f"the cap must be a number above 0, got {self.amount}")

    @property
    def units(self) -> int:
        """The cap as a whole number, rounded down."""
        return math.floor(self.amount * (_PICO if self.unit == "usd" else 1))


@dataclass(slots=True)
class Learned:
    """What the answers of a model say about its tokens.

    Examples
    --------
    >>> learned = Learned()
    >>> learned.tokens(350), learned.a_byte
    (100, 0.5)
    >>> learned.take(characters=350, size=400, usage=Usage(input=120, output=30))
    >>> learned.tokens(700), learned.output
    (240, 30.0)
    """

    answers: int = 0
    most_a_byte: float = 0.0
    inputs: deque[float] = field(default_factory=lambda: deque(maxlen=_LAST))
    outputs: deque[int] = field(default_factory=lambda: deque(maxlen=_LAST))
    cached: deque[float] = field(default_factory=lambda: deque(maxlen=_LAST))
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=_LAST))
    calls: dict[tuple[str, int], int] = field(default_factory=dict)

    def take(self, *, characters: int, size: int, usage: Usage) -> None:
        """Learn from one answer; `size` is in bytes."""
        self.answers += 1
        self.most_a_byte = max(self.most_a_byte, usage.input / max(size, 1))
        self.inputs.append(usage.input / (max(characters, 1) / CHARACTERS_A_TOKEN))
        self.outputs.append(usage.output)
        self.cached.append(usage.cached / usage.input)

    def take_line(self, line: Mapping[str, Any]) -> None:
        """Learn from one answered line of a journal."""
        if line["status"] != 200 or "bytes" not in line:
            return
        if "content" in line:
            sample = (str(line["content"]), int(line["sample"]))
            self.calls[sample] = self.calls.get(sample, 0) + 1
        self.latencies.append(float(line["latency_s"]))
        if line.get("usage"):
            usage = Usage(**line["usage"])
            self.take(characters=line["characters"], size=line["bytes"], usage=usage)

    @property
    def a_byte(self) -> float:
        """The bound of tokens for each byte of input."""
        if self.answers < _FIRST_ANSWERS:
            return max(_BOUND_AT_FIRST, _BOUND_FACTOR * self.most_a_byte)
        return _BOUND_FACTOR * self.most_a_byte

    def tokens(self, characters: int) -> int:
        """Return the tokens to expect of an input."""
        ratio = median(self.inputs) if self.inputs else 1.0
        return math.ceil(round(characters / CHARACTERS_A_TOKEN * ratio, 6))

    @property
    def output(self) -> float | None:
        """The tokens to expect of an output, None before the first."""
        return sum(self.outputs) / len(self.outputs) if self.outputs else None

    @property
    def calls_a_sample(self) -> float:
        """Calls that a sample took, with its re-asks; 1 before the first."""
        return sum(self.calls.values()) / len(self.calls) if self.calls else 1.0


def characters_of(request: Request) -> int:
    """Return the characters of a request as it is sent."""
    return len(json.dumps(dict(request.body), ensure_ascii=False))


class Budget:
    """Money or tokens of one run: nothing is sent that could exceed the cap.

    Parameters
    ----------
    cap
        The most that may be spent.
    prices
        Prices of the model; None is enough for a cap in tokens.
    spent
        What earlier processes of the run spent, in units of the cap.

    Raises
    ------
    InputError
        If the cap is in money and there are no prices.

    Examples
    --------
    >>> from calibration.judging.requests import Request
    >>> ask = Request(trace_id="t", content_hash="c", sample=0, body={"a": "b" * 90},
    ...               output_limit=50)
    >>> budget = Budget(Cap(amount=150, unit="tokens"))
    >>> budget.reserve(ask), budget.reserve(ask)
    (100, None)
    >>> budget.settle(100, Usage(input=20, output=5)), budget.spent, budget.reserved
    (25, 25, 0)
    """

    def __init__(
        self,
        cap: Cap,
        prices: Prices | None = None,
        *,
        spent: int = 0,
        learned: Learned | None = None,
    ) -> None:
        if cap.unit == "usd" and prices is None:
            raise InputError(
                "a cap in dollars needs prices: give the price of a million tokens of input and of "
                "output, or a cap in tokens"
            )
        self.cap, self.prices, self.spent = cap, prices, spent
        self.reserved = 0
        self.learned = learned or Learned()

    def worst(self, request: Request) -> int:
        """Return the most that a request may cost, in units of the cap."""
        tokens = math.ceil(request.input_bytes * self.learned.a_byte)
        if self.cap.unit == "tokens" or self.prices is None:
            return tokens + request.output_limit
        return tokens * _picos_a_token(
            self.prices.highest_input
        ) + request.output_limit * _picos_a_token(self.prices.output)

    def reserve(self, request: Request) -> int | None:
        """Take the worst case of a request from the cap; None if it does not fit now."""
        amount = self.worst(request)
        if self.spent + self.reserved + amount > self.cap.units:
            return None
        self.reserved += amount
        return amount

    def settle(self, reserved: int, usage: Usage | None) -> int:
        """Replace a reservation by what was used; without usage it stays spent."""
        amount = reserved if usage is None else self.cost(usage)
        self.reserved -= reserved
        self.spent += amount
        return amount

    def release(self, reserved: int) -> None:
        """Give back the reservation of a request that was refused unread."""
        self.reserved -= reserved

    def cost(self, usage: Usage) -> int:
        """Return what a call cost, in units of the cap."""
        if self.cap.unit == "tokens" or self.prices is None:
            return usage.input + usage.output
        return self.prices.picos(usage)

    def shown(self, amount: float) -> float:
        """Return units of the cap as dollars or tokens."""
        return amount / _PICO if self.cap.unit == "usd" else amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run will ask for, before it starts.

    `requests` and tokens are expected ones; money is None without prices. `low` to `high` spans an
    output between a quarter of the limit and the limit before outputs were seen, and the expected
    one times 0.85 to 1.15 afterwards.
    """

    samples: int
    requests: int
    journaled: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    usd_low: float | None
    usd: float | None
    usd_high: float | None
    worst_tokens: int
    seconds: float | None


def estimate(
    requests: Iterable[Request],
    *,
    prices: Prices | None = None,
    learned: Learned | None = None,
    journaled: int = 0,
    concurrency: int = 8,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
) -> Estimate:
    """Return what the first requests of samples will come to, with the calls that follow them.

    Parameters
    ----------
    requests
        The first request of each sample that is not journaled yet.
    prices
        Prices of the model.
    learned
        What earlier answers of the model say about tokens, outputs, re-asks and seconds.
    journaled
        How many samples have their first answer already.
    concurrency
        Requests at once, for the time.
    requests_per_minute, tokens_per_minute
        Limits of the endpoint, for the time.

    Examples
    --------
    >>> ask = Request(trace_id="t", content_hash="c", sample=0, body={"a": "b" * 341},
    ...               output_limit=40)
    >>> found = estimate([ask] * 10, prices=Prices(input=1.0, output=10.0))
    >>> found.input_tokens, found.output_tokens, found.usd_low, found.usd_high
    (1000, 250, 0.002, 0.005)
    """
    learned = learned or Learned()
    tokens = limits = worst = samples = 0
    for request in requests:
        samples += 1
        tokens += learned.tokens(characters_of(request))
        limits += request.output_limit
        worst += math.ceil(request.input_bytes * learned.a_byte) + request.output_limit
    calls = learned.calls_a_sample
    share = sum(learned.cached) / len(learned.cached) if learned.cached else 0.0
    known = learned.output
    outputs = (
        (0.25 * limits, 0.625 * limits, float(limits))
        if known is None
        else tuple(factor * known * samples for factor in (0.85, 1.0, 1.15))
    )
    spread = (1.0, 1.0, 1.0) if known is None else (0.85, 1.0, 1.15)

    def usd(output: float, factor: float) -> float | None:
        if prices is None:
            return None
        told = round(calls * tokens * factor)
        used = Usage(input=told, cached=round(told * share), output=round(calls * output))
        return prices.usd(used)

    money = [usd(output, factor) for output, factor in zip(outputs, spread, strict=True)]
    return Estimate(
        samples=samples + journaled,
        requests=math.ceil(calls * samples),
        journaled=journaled,
        input_tokens=round(calls * tokens),
        cached_tokens=round(calls * tokens * share),
        output_tokens=math.ceil(calls * outputs[1]),
        usd_low=money[0],
        usd=money[1],
        usd_high=money[2],
        worst_tokens=math.ceil(calls * worst),
        seconds=_seconds(
            calls * samples,
            calls * (tokens + outputs[1]),
            learned,
            concurrency,
            requests_per_minute,
            tokens_per_minute,
        ),
    )


def _seconds(
    requests: float,
    tokens: float,
    learned: Learned,
    concurrency: int,
    requests_per_minute: float | None,
    tokens_per_minute: float | None,
) -> float | None:
    """Return the longest of what answers and limits allow; None if nothing is known."""
    found = []
    if learned.latencies:
        found.append(requests * sum(learned.latencies) / len(learned.latencies) / concurrency)
    if requests_per_minute:
        found.append(60 * requests / requests_per_minute)
    if tokens_per_minute:
        found.append(60 * tokens / tokens_per_minute)
    return max(found) if found else None
