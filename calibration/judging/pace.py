"""How many requests may be in flight, and when the next one may leave.

Concurrency doubles until the endpoint first says that it is too much, then grows by one for each
clean window and shrinks by a fifth when it says so again. Waiting is never a blocking sleep.
"""

import asyncio
import random
import time
from dataclasses import dataclass

START_CONCURRENCY = 4
MOST_CONCURRENCY = 32
SHRINK = 0.8
SHRINK_EVERY_S = 15.0
WINDOW_S = 3.0
FIRST_BACKOFF_S = 0.5
MOST_BACKOFF_S = 60.0


class RunClock:
    """Time as the runner sees it; a larger `scale` makes it pass faster, for tests.

    Examples
    --------
    >>> clock = RunClock(scale=1000)
    >>> start = clock.now()
    >>> asyncio.run(clock.sleep(2.0))  # two milliseconds
    >>> clock.now() - start >= 2.0
    True
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale
        self._start, self._wall = time.monotonic(), time.time()

    def now(self) -> float:
        """Return seconds since the clock was made."""
        return (time.monotonic() - self._start) * self.scale

    def wall(self) -> float:
        """Return seconds since 1970."""
        return self._wall + self.now()

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run for so long."""
        await asyncio.sleep(seconds / self.scale)

    async def wait(self, event: asyncio.Event, seconds: float | None) -> bool:
        """Return whether an event came within so many seconds; None waits for ever."""
        try:
            async with asyncio.timeout(None if seconds is None else seconds / self.scale):
                return await event.wait()
        except TimeoutError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What an endpoint permits, None if unknown, and how many requests may be in flight."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    start: int = START_CONCURRENCY
    most: int = MOST_CONCURRENCY


class _Bucket:
    """So many units a minute, of which those of one second may be taken at once."""

    def __init__(self, per_minute: float, now: float) -> None:
        self._rate = per_minute / 60
        self._most = max(1.0, self._rate)
        self._level = self._most
        self._at = now

    def wait(self, units: float, now: float) -> float:
        """Return the seconds until so many units may be taken, or all if more do not fit."""
        self._level = min(self._most, self._level + (now - self._at) * self._rate)
        self._at = now
        return max(0.0, (min(units, self._most) - self._level) / self._rate)

    def take(self, units: float) -> None:
        """Take units, on credit if there are not enough."""
        self._level -= units


class Pace:
    """Lets requests leave, one `enter` and one `leave` each.

    Parameters
    ----------
    rates : Rates
    clock : RunClock
    rng : random.Random
        Of the jitter.
    """

    def __init__(self, rates: Rates, clock: RunClock, rng: random.Random) -> None:
        self.in_flight = 0
        self.paused = False
        self.closed = asyncio.Event()
        self._rates, self._clock, self._rng = rates, clock, rng
        self._limit = float(min(rates.start, rates.most))
        self._doubling = True
        self._clean = 0  # answers in this window
        self._window_at = clock.now()
        self._open_at = 0.0
        self._shrunk_at = float("-inf")
        self._changed = asyncio.Event()
        now = clock.now()
        limits = (rates.requests_per_minute, rates.tokens_per_minute)
        self._buckets = [None if limit is None else _Bucket(limit, now) for limit in limits]

    @property
    def concurrency(self) -> int:
        """How many requests may be in flight now."""
        return max(1, int(self._limit))

    def change(self) -> None:
        """Let those that wait look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """Let no further request leave."""
        self.closed.set()
        self.change()

    async def enter(self, tokens: float) -> bool:
        """Return True once a request of about so many tokens may leave, False if none may."""
        units = (1.0, tokens)
        while not self.closed.is_set():
            if self.paused or self.in_flight >= self.concurrency:
                await self._clock.wait(self._changed, None)
                continue
            now = self._clock.now()
            both = [(b, u) for b, u in zip(self._buckets, units, strict=True) if b is not None]
            wait = max(self._open_at - now, *(b.wait(u, now) for b, u in both), 0.0)
            if wait <= 0:
                for bucket, unit in both:
                    bucket.take(unit)
                self.in_flight += 1
                return True
            await self._clock.wait(self._changed, wait)
        return False

    def leave(self) -> None:
        """Note that a request has ended."""
        self.in_flight -= 1
        self.change()

    def give_back(self) -> None:
        """Note that a request may not leave after all; nobody need look again because of it."""
        self.in_flight -= 1

    def answered(self) -> None:
        """Note an answer: after a clean window more requests may be in flight.

        A window is as many answers as may be in flight, or three seconds if answers take longer.
        """
        self._clean += 1
        now = self._clock.now()
        if self._clean >= self._limit or now - self._window_at >= WINDOW_S:
            self._clean, self._window_at = 0, now
            more = self._limit * 2 if self._doubling else self._limit + 1
            self._limit = min(more, float(self._rates.most))
            self.change()

    def disturbed(self) -> None:
        """Note that a request failed: the window is not clean."""
        self._clean, self._window_at = 0, self._clock.now()

    def throttled(self, wait_s: float | None) -> None:
        """Fewer in flight, and all wait for as long as the endpoint asks."""
        now = self._clock.now()
        self._doubling = False
        self.disturbed()
        if wait_s is not None:
            self._open_at = max(self._open_at, now + wait_s)
        if now - self._shrunk_at >= SHRINK_EVERY_S:
            self._shrunk_at = now
            self._limit = max(1.0, self._limit * SHRINK)

    def backoff(self, failures: int) -> float:
        """Return how long to wait after so many failures: full jitter from 0.5 to 60 seconds."""
        most = min(MOST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** min(failures, 10))
        return max(FIRST_BACKOFF_S, self._rng.uniform(0.0, most))

    def jitter(self, wait_s: float) -> float:
        """Return a wait that an endpoint asked for, and up to a tenth or a second more."""
        return wait_s + self._rng.uniform(0.0, min(1.0, wait_s / 10))

    async def rest(self, seconds: float) -> None:
        """Wait, but no longer than requests may leave."""
        await self._clock.wait(self.closed, seconds)
