"""The worker of a run: asks for every sample of every trace within limits, and may end anywhere.

It never looks into an answer: a judge decides from the answers so far what to ask next, and what
the verdict is. A sample without a final answer stays pending and gets no verdict.
"""

import asyncio
import json
import os
import random
import signal
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sized
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal

from calibration.errors import CalibrationError
from calibration.judging.budget import Budget, characters_of, read_usage
from calibration.judging.journal import Journal, RunFolder, in_doubt
from calibration.judging.requests import Judge, Reply, Request, SampleVerdict
from calibration.judging.transport import Exchange, Transport
from calibration.records import TraceForReview

Work = Iterable[tuple[TraceForReview, str]]
Deliver = Callable[[list[SampleVerdict]], None]
State = Literal["finished", "incomplete", "stopped", "capped", "failed"]

PART = 50
PART_EACH_S = 5.0
_TICK_S = 0.2
_PROGRESS_EACH_S = 1.0
_CUT_EACH_S = 15.0
_CUT = 0.8
_SHORT_S = 1.0
_EASED = 0.995  # of the gap, with each answer
_LAST = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How hard an endpoint may be asked, and how patiently.

    `doubts` is how often a request in doubt is asked again: it may have been answered and billed.
    """

    concurrency: int = 4
    most: int = 32
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    attempts: int = 6
    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0
    doubts: int = 1
    errors_in_row: int = 20
    grace_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Time as the worker sees it, and chance; a test may run both as it likes."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    rng: random.Random = field(default_factory=random.Random)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a worker ended; `reason` says why unless it finished.

    ``finished``: every sample has a verdict. ``incomplete``: some are pending, after errors that
    pass. ``capped``: the next request did not fit under the cap. ``stopped``: by a person or a
    signal. ``failed``: no request can succeed. Starting the run again goes on in every case.
    """

    state: State
    reason: str = ""
    verdicts: int = 0
    pending: int = 0
    answered: int = 0
    reused: int = 0
    in_doubt: int = 0
    causes: dict[str, int] = field(default_factory=dict)
    problems: dict[str, int] = field(default_factory=dict)
    models: dict[str, int] = field(default_factory=dict)
    spent: float = 0.0


class _Ending(Exception):  # noqa: N818 - no error: the worker is to end
    """No further request may be sent."""


class _Pace:
    """How many requests may be in flight, and from when on the next may go."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self.limits, self.clock = limits, clock
        self.width = float(min(limits.concurrency, limits.most))
        self.in_flight = 0
        self.until = 0.0
        self.waits = 0
        self._doubling = True
        self._clean = 0
        self._cut_at = -_CUT_EACH_S
        self._asked: dict[str, float] = {}
        # Seconds between requests, learned from a server that names the moment of the next.
        self._gap = self._next = 0.0
        self._clean_at: deque[float] = deque(maxlen=8)
        self._gaps: deque[float] = deque(maxlen=8)
        self._waiting: list[asyncio.Future[None]] = []

    def delay(self, tokens: float) -> float:
        """Return the seconds until a request may go, 0 if now, and -1 if one must end first."""
        if self.in_flight >= int(self.width):
            return -1.0
        now = self.clock.now()
        if self.until > now:
            # Not all of them at the same moment.
            return (self.until - now) * (1 + 0.1 * self.clock.rng.random())
        wait = max(self._next, *self._asked.values(), 0.0) - now
        if wait > 0:
            return wait
        self._next = now + self._gap
        self._fill("requests", 1.0, self.limits.requests_per_minute)
        self._fill("tokens", tokens, self.limits.tokens_per_minute)
        self.in_flight += 1
        return 0.0

    def _fill(self, what: str, amount: float, a_minute: float | None) -> None:
        if a_minute:
            # One second may be asked at once: answers do not come at even distances.
            start = max(self._asked.get(what, 0.0), self.clock.now() - 1.0)
            self._asked[what] = start + 60.0 * amount / a_minute

    def freed(self) -> None:
        """Take note that a request ended."""
        self.in_flight -= 1
        self._wake()

    def change(self) -> "asyncio.Future[None]":
        """Return what is done as soon as another request may fit."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        return waiting

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    def clean(self) -> None:
        """Grow after a window of answers: twofold until the first refusal, then by one."""
        self.waits = 0
        self._gap *= _EASED
        self._clean_at.append(self.clock.now())
        self._clean += 1
        if self._clean >= int(self.width):
            self._clean = 0
            grown = self.width * 2 if self._doubling else self.width + 1
            self.width = min(float(self.limits.most), grown)
            self._wake()

    def troubled(self) -> None:
        """Do not grow in this window."""
        self._clean = 0

    def _learned_gap(self, now: float, asked_s: float) -> float:
        """Return the time from the last answer to when the server takes the next, as a median.

        One refusal says little: never more than the answers were apart in fact.
        """
        if len(self._clean_at) < 2:
            return 0.0
        self._gaps.append(now - self._clean_at[-1] + asked_s)
        apart = (self._clean_at[-1] - self._clean_at[0]) / (len(self._clean_at) - 1)
        return min(apart, median(self._gaps))

    def throttled(self, asked_s: float | None) -> None:
        """Let all wait as long as the server asks, and be fewer."""
        now, self._clean, self._doubling = self.clock.now(), 0, False
        if asked_s is None:
            # Those in flight together are one refusal.
            if now >= self.until:
                self.waits += 1
            asked_s = min(self.limits.longest_wait_s, 0.5 * 2 ** min(self.waits, 10))
        elif asked_s < _SHORT_S:
            # It counts each request: asking all at once would be refused all but once.
            self._gap = self._learned_gap(now, asked_s)
        self.until = max(self.until, now + asked_s)
        if now - self._cut_at >= _CUT_EACH_S:
            self._cut_at = now
            self.width = max(1.0, self.width * _CUT)


class Worker:
    """One process of one run.

    Parameters
    ----------
    folder
        The folder of the run, begun and locked.
    judge
        Decides what is asked and what the verdict is.
    transport
        The line to the endpoint.
    budget
        The cap of the run; what the journal says is added to what it has spent.
    deliver
        Takes verdicts, at most 50 at a time; the same verdict may come again after a restart.
    samples
        Samples of each trace.
    limits, clock
        How hard the endpoint is asked; time and chance.

    Examples
    --------
    >>> Limits().concurrency, Limits().doubts
    (4, 1)
    """

    def __init__(
        self,
        *,
        folder: RunFolder,
        judge: Judge,
        transport: Transport,
        budget: Budget,
        deliver: Deliver,
        samples: int = 1,
        limits: Limits | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.folder, self.judge, self.transport = folder, judge, transport
        self.budget, self.deliver, self.samples = budget, deliver, samples
        self.limits, self.clock = limits or Limits(), clock or Clock()
        self._reason: tuple[State, str] | None = None
        self._counts: Counter[str] = Counter()
        self._causes: Counter[str] = Counter()
        self._problems: Counter[str] = Counter()
        self._models: Counter[str] = Counter()
        self._errors = 0
        self._ready: list[SampleVerdict] = []
        self._delivered_at = 0.0
        self._finished: deque[float] = deque(maxlen=_LAST)
        self._answered_at: float | None = None
        self._in_flight: dict[str, int] = {}
        self._total: int | None = None

    async def run(self, work: Work) -> RunResult:
        """Ask until every sample has a verdict, or the run is to end, and return how it ended."""
        self._total = len(work) * self.samples if isinstance(work, Sized) else None
        self._ending, self._going = asyncio.Event(), asyncio.Event()
        self._going.set()
        self._delivering = asyncio.Lock()
        self.folder.take_order()  # of an earlier worker
        self._journal = self.folder.journal()
        self._begin()
        self._pace = _Pace(self.limits, self.clock)
        queue = ((trace, hashed, n) for trace, hashed in work for n in range(self.samples))
        self._installed = self._take_signals()
        ticker = asyncio.create_task(self._tick())
        workers = [asyncio.create_task(self._work(queue)) for _ in range(self.limits.most)]
        try:
            await self._watch(workers)
            left = sum(1 for _ in queue)
            self._counts["pending"] += left
            await self._hand_over(everything=True)
        finally:
            ticker.cancel()
            await asyncio.gather(ticker, return_exceptions=True)
            self._give_signals_back()
            self._journal.close()
        result = self._result()
        self._write_progress(ended=result.state)
        return result

    def _begin(self) -> None:
        """Take from the journals what was spent and what can be learned."""
        replay = self._journal.replay
        self.budget.spent += replay.spent
        for line in replay.lines:
            self.budget.learned.take_line(line)
        self._delivered_at = self.clock.now()

    async def _watch(self, workers: list[asyncio.Task[None]]) -> None:
        """Wait for the workers; when the run is to end, no longer than the grace."""
        ending = asyncio.create_task(self._ending.wait())
        everyone = asyncio.create_task(asyncio.wait(workers))
        both: set[asyncio.Task[Any]] = {everyone, ending}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        await asyncio.wait(workers, timeout=self.limits.grace_s)
        for task in workers:
            task.cancel()
        await asyncio.wait([everyone])
        for found in await asyncio.gather(*workers, return_exceptions=True):
            if isinstance(found, Exception) and not isinstance(found, _Ending):
                raise found
        for key, reserved in list(self._in_flight.items()):
            await self._doubt(key, reserved, "the worker ended in flight")

    def stop(self, state: State = "stopped", reason: str = "stopped by a person") -> None:
        """Send no further request, and end when those in flight are answered."""
        if self._reason is None:
            self._reason = (state, reason)
        self._going.set()
        self._ending.set()

    async def _work(self, queue: Iterator[tuple[TraceForReview, str, int]]) -> None:
        """Judge samples as long as there are some; whatever is raised ends the run."""
        try:
            for trace, content_hash, sample in queue:
                verdict = None
                try:
                    verdict = await self._judge_sample(trace, content_hash, sample)
                finally:
                    self._counts["pending"] += verdict is None
                if verdict is not None:
                    await self._take(verdict)
        except _Ending:
            raise
        except Exception as error:
            self.stop("failed", f"{type(error).__name__}: {error!s:.300}")
            raise

    async def _judge_sample(
        self, trace: TraceForReview, content_hash: str, sample: int
    ) -> SampleVerdict | None:
        """Return the verdict of a sample, None if it stays pending."""
        replies: list[Reply] = []
        while True:
            step = self.judge.next_step(trace, content_hash, sample, replies)
            if isinstance(step, SampleVerdict):
                return step
            reply = await self._reply(step)
            if reply is None:
                return None
            replies.append(reply)

    async def _reply(self, request: Request) -> Reply | None:
        """Return the final answer to a request, from the journal if it is there."""
        key = request.key(self.judge.judge_id)
        known = self._journal.replay.reply(key)
        if known is not None:
            self._counts["reused"] += 1
            # Thousands of journaled answers must not keep the loop from its heartbeat.
            await asyncio.sleep(0)
            return known
        attempt = failures = 0
        while self._journal.replay.doubts.get(key, 0) <= self.limits.doubts:
            reserved = await self._admitted(request)
            attempt += 1
            exchange = await self._ask(request, key, attempt, reserved)
            if exchange.kind == "answer":
                return self._journal.replay.reply(key)
            if exchange.kind == "stop":
                self.stop("failed", exchange.problem)
            if exchange.kind == "throttled":
                continue
            failures += 1
            if exchange.kind == "refused" or failures >= self.limits.attempts:
                return None
            longest = min(
                self.limits.longest_wait_s, self.limits.first_wait_s * 2.0 ** (failures - 1)
            )
            await self._wait(max(self.clock.rng.uniform(0, longest), exchange.wait_s or 0.0))
        return None

    async def _admitted(self, request: Request) -> int:
        """Wait for a place under all limits, and return what was reserved for the request."""
        tokens = self.budget.learned.tokens(characters_of(request)) + (
            self.budget.learned.output or request.output_limit
        )
        while True:
            await self._going.wait()
            if self._ending.is_set():
                raise _Ending
            amount = self.budget.worst(request)
            if self.budget.spent + self.budget.reserved + amount > self.budget.cap.units:
                if not self._pace.in_flight:
                    # Going on with shorter traces would choose among them.
                    self.stop("capped", "the next request could exceed the cap")
                    raise _Ending
                await self._or_end(self._pace.change())
                continue
            delay = self._pace.delay(tokens)
            if delay < 0:
                await self._or_end(self._pace.change())
            elif delay > 0:
                await self._wait(delay)
            else:
                reserved = self.budget.reserve(request)
                assert reserved is not None  # noqa: S101 - nothing was awaited since
                return reserved

    async def _wait(self, seconds: float) -> None:
        await self._or_end(self.clock.sleep(seconds))

    async def _or_end(self, waited: Awaitable[None]) -> None:
        """Wait for something, and raise _Ending as soon as the run is to end."""
        ending = asyncio.ensure_future(self._ending.wait())
        other = asyncio.ensure_future(waited)
        try:
            await asyncio.wait({ending, other}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            other.cancel()
        if self._ending.is_set():
            raise _Ending

    async def _ask(self, request: Request, key: str, attempt: int, reserved: int) -> Exchange:
        """Send a request once; what is announced and what came are in the journal."""
        self._in_flight[key] = reserved
        try:
            await self._journal.append(
                {
                    "line": "sent",
                    "key": key,
                    "attempt": attempt,
                    "reserved": reserved,
                    "trace": request.trace_id,
                    "content": request.content_hash,
                    "sample": request.sample,
                    "call": request.call,
                    "reask": request.reask,
                    "bytes": request.input_bytes,
                    "characters": characters_of(request),
                }
            )
            exchange = await self.transport.send(request.body, key)
            await self._journal_exchange(request, key, reserved, exchange)
        finally:
            self._pace.freed()
        return exchange

    async def _journal_exchange(
        self, request: Request, key: str, reserved: int, exchange: Exchange
    ) -> None:
        kind = exchange.kind
        self._learn_pace(exchange)
        if kind == "in_doubt":
            await self._doubt(key, reserved, exchange.problem)
            return
        # A refusal costs nothing; a 2xx may have been billed, also one that holds an error.
        usage = read_usage(exchange.body)
        free = not 200 <= exchange.status < 300 and usage is None
        line: dict[str, Any] = {
            "key": key,
            "status": exchange.status,
            "latency_s": round(exchange.latency_s, 3),
        }
        if free:
            self.budget.release(reserved)
            line["spent"] = 0
        else:
            line["spent"] = self.budget.settle(reserved, usage)
        self._in_flight.pop(key)
        if kind != "answer":
            self._problems[exchange.problem[:120]] += 1
            line |= {"line": "failed", "kind": kind, "problem": exchange.problem}
            await self._journal.append(line)
            return
        prices = self.budget.prices
        cost = prices.usd(usage) if prices and usage else 0.0 if free else None
        line |= {
            "line": "answered",
            "headers": dict(exchange.headers),
            "body": exchange.body,
            "usage": asdict(usage) if usage else None,
            "cost_usd": cost,
        }
        await self._journal.append(line)
        self._note_answer(request, line)

    def _note_answer(self, request: Request, line: dict[str, Any]) -> None:
        self._counts["answered"] += 1
        self._answered_at = self.clock.now()
        self.budget.learned.take_line(
            {
                **line,
                "content": request.content_hash,
                "sample": request.sample,
                "bytes": request.input_bytes,
                "characters": characters_of(request),
            }
        )
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            self._models[str(json.loads(line["body"].removeprefix("\ufeff"))["model"])[:100]] += 1

    def _learn_pace(self, exchange: Exchange) -> None:
        """Change the pace by what came, and end the run after too many errors in a row."""
        if exchange.kind == "throttled":
            self._pace.throttled(exchange.wait_s)
        elif exchange.kind == "answer":
            self._errors = 0
            self._pace.clean()
        else:
            self._pace.troubled()
            self._errors += 1
            if self._errors >= self.limits.errors_in_row:
                self.stop("failed", f"{self._errors} errors in a row, last: {exchange.problem}")

    async def _doubt(self, key: str, reserved: int, problem: str) -> None:
        self._in_flight.pop(key, None)
        self.budget.settle(reserved, None)
        self._counts["in_doubt"] += 1
        self._problems[problem[:120]] += 1
        await self._journal.append(in_doubt(key, spent=reserved, problem=problem))

    async def _take(self, verdict: SampleVerdict) -> None:
        self._counts["verdicts"] += 1
        self._finished.append(self.clock.now())
        if verdict.cause:
            self._causes[verdict.cause] += 1
        self._ready.append(verdict)
        if len(self._ready) >= PART:
            await self._hand_over()

    async def _hand_over(self, *, everything: bool = False) -> None:
        """Deliver parts of 50; a refusal ends the run, and the next worker delivers again."""
        async with self._delivering:
            while len(self._ready) >= PART or (everything and self._ready):
                part, self._ready = self._ready[:PART], self._ready[PART:]
                self._delivered_at = self.clock.now()
                try:
                    await asyncio.to_thread(self.deliver, part)
                except Exception as error:  # noqa: BLE001 - whatever the taker says ends the run
                    self._ready.clear()
                    self.stop("failed", f"verdicts could not be delivered: {error!s:.300}")

    async def _tick(self) -> None:
        """Follow orders, write progress each second and deliver each five."""
        written = 0.0
        try:
            while True:
                await self._follow(self.folder.take_order())
                if time.monotonic() - written >= _PROGRESS_EACH_S:
                    written = time.monotonic()
                    self._write_progress()
                if self.clock.now() - self._delivered_at >= PART_EACH_S:
                    self._delivered_at = self.clock.now()
                    await self._hand_over(everything=True)
                await asyncio.sleep(_TICK_S)
        except (OSError, CalibrationError) as error:
            self.stop("failed", f"{type(error).__name__}: {error!s:.300}")

    async def _follow(self, order: str | None) -> None:
        if order is None:
            return
        await self._journal.append({"line": "control", "order": order})
        if order == "stop":
            self.stop()
        elif order == "pause":
            self._going.clear()
        else:
            self._going.set()

    def progress(self) -> dict[str, Any]:
        """Return how far the run is, for pages and people."""
        now = self.clock.now()
        done, budget = self._counts["verdicts"], self.budget
        rate = None
        if len(self._finished) > 1 and now > self._finished[0]:
            rate = len(self._finished) / (now - self._finished[0])
        left = None if self._total is None else self._total - done - self._counts["pending"]
        wait = max(0.0, self._pace.until - now)
        state = "running" if self._going.is_set() else "paused"
        return {
            "state": "ending" if self._ending.is_set() else state,
            "pid": os.getpid(),
            "samples": self._total,
            "verdicts": done,
            **{name: self._counts[name] for name in ("pending", "answered", "reused", "in_doubt")},
            "in_flight": len(self._in_flight),
            "concurrency": int(self._pace.width),
            "causes": dict(self._causes),
            "problems": dict(self._problems.most_common(10)),
            "models": dict(self._models),
            "unit": budget.cap.unit,
            "spent": budget.shown(budget.spent),
            "possible": budget.shown(budget.spent + budget.reserved),
            "cap": budget.cap.amount,
            "verdicts_per_minute": None if rate is None else round(60 * rate, 2),
            "eta_s": None if left is None or not rate else round(left / rate, 1),
            "last_answer_s": None if self._answered_at is None else now - self._answered_at,
            "waiting_s": round(wait, 1),
        }

    def _write_progress(self, ended: str | None = None) -> None:
        reason = self._reason[1] if self._reason else ""
        self.folder.write_progress({**self.progress(), "ended": ended, "reason": reason})

    def _result(self) -> RunResult:
        state, reason = self._reason or ("finished", "")
        if state == "finished" and self._counts["pending"]:
            state, reason = "incomplete", "some samples have no final answer"
        return RunResult(
            state=state,
            reason=reason,
            causes=dict(self._causes),
            problems=dict(self._problems),
            models=dict(self._models),
            spent=self.budget.shown(self.budget.spent),
            **{
                name: self._counts[name]
                for name in ("verdicts", "pending", "answered", "reused", "in_doubt")
            },
        )

    def _take_signals(self) -> tuple[int, ...]:
        """End on SIGTERM and SIGINT as on an order, where signals can be taken."""
        taken = []
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(RuntimeError, ValueError, NotImplementedError):
                reason = f"the process was told to end ({number.name})"
                asyncio.get_running_loop().add_signal_handler(number, self.stop, "stopped", reason)
                taken.append(int(number))
        return tuple(taken)

    def _give_signals_back(self) -> None:
        for number in self._installed:
            asyncio.get_running_loop().remove_signal_handler(number)


def run_judge(
    work: Work,
    *,
    folder: RunFolder,
    judge: Judge,
    transport: Callable[[], Transport],
    budget: Budget,
    deliver: Deliver,
    samples: int = 1,
    limits: Limits | None = None,
    clock: Clock | None = None,
) -> RunResult:
    """Run a worker in this process until it ends; the parameters are those of `Worker`.

    `transport` is called within the loop. Raises CalibrationError if another worker holds the run
    or the journal cannot be written; what was answered until then is kept.
    """

    async def whole() -> RunResult:
        line = transport()
        worker = Worker(
            folder=folder,
            judge=judge,
            transport=line,
            budget=budget,
            deliver=deliver,
            samples=samples,
            limits=limits,
            clock=clock,
        )
        try:
            return await worker.run(work)
        finally:
            await line.close()

    with folder.lock():
        return asyncio.run(whole())


def pending_samples(
    work: Work, *, journal: Journal, judge: Judge, samples: int = 1
) -> Iterator[Request | SampleVerdict]:
    """Yield for each sample its verdict, or the next request that has no journaled answer.

    A pure function of the journal: a dry run counts the requests, and a person who closes a run
    gives those samples the cause ``outage``.
    """
    for trace, content_hash in work:
        for sample in range(samples):
            replies: list[Reply] = []
            while True:
                step = judge.next_step(trace, content_hash, sample, replies)
                known = None
                if isinstance(step, Request):
                    known = journal.replay.reply(step.key(judge.judge_id))
                if known is None:
                    yield step
                    break
                replies.append(known)


def close_run(
    work: Work, *, folder: RunFolder, judge: Judge, deliver: Deliver, by: str, samples: int = 1
) -> int:
    """Give every pending sample the verdict ``no_verdict: outage``, and return their number.

    A person does this, whose name is recorded; stored verdicts are not touched. Raises
    CalibrationError if a worker holds the run, or `by` is empty.
    """
    if not by.strip():
        raise CalibrationError("name who closes the run: it is recorded")
    with folder.lock():
        journal = folder.journal()
        try:
            found = pending_samples(work, journal=journal, judge=judge, samples=samples)
            closed = [
                SampleVerdict(
                    trace_id=step.trace_id,
                    content_hash=step.content_hash,
                    sample=step.sample,
                    outcome="no_verdict",
                    cause="outage",
                )
                for step in found
                if isinstance(step, Request)
            ]
            order = {"line": "control", "order": "close", "by": by, "samples": len(closed)}
            asyncio.run(journal.append(order))
        finally:
            journal.close()
        for start in range(0, len(closed), PART):
            deliver(closed[start : start + PART])
    return len(closed)
