"""The worker of a run: asks until every sample has its verdict, the money is spent or it is told.

It never looks into an answer. `requests.Judge.next_step` says what to ask next and which verdict
follows, so that verdicts are a pure function of the journal.
"""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from calibration.errors import JudgeRunError
from calibration.judging.budget import Budget, Cap, CostEstimate, Prices, estimate, tokens_of
from calibration.judging.journal import (
    CUT_OFF,
    Answers,
    Ended,
    Journal,
    RunProgress,
    Sent,
    create_run,
    read_plan,
    take_control,
    write_progress,
)
from calibration.judging.pace import Pace, Rates, RunClock
from calibration.judging.requests import Judge, Reply, Request, SampleVerdict
from calibration.judging.transport import (
    ANSWER,
    IN_DOUBT,
    REFUSED,
    STOP,
    THROTTLED,
    NoReply,
    Ruling,
    classify,
)
from calibration.records import NO_VERDICT, TraceForReview

ATTEMPTS = 6  # of a request, when errors pass by themselves
ERRORS_IN_A_ROW = 20
LONGEST_WAIT_S = 3600.0  # that an endpoint may ask for
UNANSWERED_S = 1800.0  # of nothing but requests to wait
GRACE_S = 30.0  # for those in flight, once the run is to end
PART = 50  # verdicts that are handed over together
PART_EVERY_S = 5.0
LOOK_EVERY_S = 1.0  # at `control`, and progress is shown
RECENT = 50  # samples that the rate is of
MOST_CALLS = 100  # of one sample
MOST_CAUSES = 20
MOST_CAUSE = 100  # characters

FINISHED = "finished"
INCOMPLETE = "incomplete"
STOPPED = "stopped"
CAPPED = "capped"
FAILED = "failed"

Item = tuple[TraceForReview, str]


class Endpoint(Protocol):
    """What the runner needs of `transport.Transport`."""

    async def send(self, key: str, body: Mapping[str, object]) -> Reply | NoReply:
        """Send one request and return what came back."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """Why a run is to end before it is done."""

    state: str
    reason: str
    at: float


def plan_run(
    runs: Path,
    name: str,
    judge: Judge,
    *,
    cap: Cap,
    prices: Prices | None = None,
    expected: CostEstimate | None = None,
    about: Mapping[str, object] | None = None,
) -> Path:
    """Freeze the plan of a run in a folder of its own, and return the folder.

    Parameters
    ----------
    runs : Path
        `STORE.judge`.
    name : str
        The name of the run.
    judge : Judge
    cap : Cap
        The most that the run may cost.
    prices : Prices, optional
        Needed for a cap in money.
    expected : CostEstimate, optional
        What `dry_run` returned, kept beside the plan.
    about : mapping, optional
        Further JSON data to keep, as the version of the judge and how its traces were chosen.

    Raises
    ------
    JudgeRunError
        If the name is taken or does not fit, or a cap in money has no prices.
    """
    Budget(cap, prices)
    plan = {
        **(about or {}),
        "judge_id": judge.judge_id,
        "cap": asdict(cap),
        "prices": None if prices is None else asdict(prices),
        "estimate": None if expected is None else asdict(expected),
    }
    return create_run(runs, name, plan)


def dry_run(
    runs: Path,
    judge: Judge,
    traces: Iterable[Item],
    *,
    prices: Prices | None = None,
    rates: Rates | None = None,
) -> CostEstimate:
    """Estimate what a run would need, without sending anything.

    Parameters
    ----------
    runs : Path
        `STORE.judge`; journaled answers of the judge cost nothing and teach how long answers are.
    judge : Judge
    traces : iterable of (TraceForReview, str)
        The traces with the hash of their content.
    prices : Prices, optional
        Without them the estimate is in tokens only.
    rates : Rates, optional
        The limits of the endpoint, for the time.
    """
    budget = Budget(Cap(), prices)
    answers = Answers(budget.note)
    answers.read_runs(runs, judge.judge_id)
    calls: list[int] = []
    sizes: list[tuple[int, int]] = []
    answered = 0
    for trace, content_hash in traces:
        for sample in range(judge.samples):
            replies: list[Reply] = []
            step = judge.next_step(trace, content_hash, sample, replies)
            while isinstance(step, Request):
                reply = answers.answer(step.key(judge.judge_id))
                if reply is None:
                    sizes.append((step.input_characters, step.output_limit))
                    break
                replies.append(reply)
                step = judge.next_step(trace, content_hash, sample, replies)
            else:
                calls.append(len(replies))
            answered += len(replies)
    rates = rates or Rates()
    return estimate(
        sizes,
        budget.learned,
        prices,
        answered=answered,
        calls=sum(calls) / len(calls) if sum(calls) else 1.0,
        requests_per_minute=rates.requests_per_minute,
        tokens_per_minute=rates.tokens_per_minute,
    )


def paid(verdict: SampleVerdict, replies: Sequence[Reply]) -> SampleVerdict:
    """Return a verdict with what its replies cost and how long they took."""
    costs = [reply.cost_usd for reply in replies if reply.cost_usd is not None]
    return replace(
        verdict,
        cost_usd=sum(costs) if costs else None,
        latency_s=round(sum(reply.latency_s for reply in replies), 3),
    )


async def run(
    folder: Path,
    judge: Judge,
    traces: Iterable[Item],
    endpoint: Endpoint,
    deliver: Callable[[list[SampleVerdict]], None],
    *,
    rates: Rates | None = None,
    clock: RunClock | None = None,
    rng: random.Random | None = None,
) -> RunProgress:
    """Work on a run until it ends, and return how far it came; call it again to resume.

    Parameters
    ----------
    folder : Path
        What `plan_run` returned.
    judge : Judge
        The judge of the plan.
    traces : iterable of (TraceForReview, str)
        The traces with the hash of their content, the same ones each time.
    endpoint : Endpoint
        A `transport.Transport`, which the caller closes.
    deliver : callable
        Takes verdicts in parts of 50, or what there is each 5 seconds, in a thread of its own. A
        resumed run delivers all of them again: (judge, trace, sample) identifies a verdict.
    rates : Rates, optional
        The limits of the endpoint.
    clock, rng : optional
        Time and jitter, for tests.

    Returns
    -------
    RunProgress
        Its state is `finished`, `incomplete` (samples are pending after errors that may pass),
        `capped`, `stopped` (by a person) or `failed` (the endpoint refuses), with the reason.

    Raises
    ------
    JudgeRunError
        If the run is another judge's, another worker is at it, or the journal cannot be written.
    """
    plan = read_plan(folder)
    if plan["judge_id"] != judge.judge_id:
        raise JudgeRunError(
            f"run {folder.name} is of judge {plan['judge_id']}, not {judge.judge_id}: a changed "
            "judge is a new one; start a run of its own"
        )
    prices = plan.get("prices")
    budget = Budget(Cap(**plan.get("cap") or {}), None if prices is None else Prices(**prices))
    worker = _Worker(judge, endpoint, deliver, budget, rates, clock or RunClock(), rng)
    with Journal(folder, worker.note) as journal:
        return await worker.work(journal, traces)


class _Worker:
    """One worker at one run."""

    def __init__(
        self,
        judge: Judge,
        endpoint: Endpoint,
        deliver: Callable[[list[SampleVerdict]], None],
        budget: Budget,
        rates: Rates | None,
        clock: RunClock,
        rng: random.Random | None,
    ) -> None:
        self.judge, self.endpoint, self.deliver = judge, endpoint, deliver
        self.budget, self.clock = budget, clock
        self.rates = rates or Rates()
        self.pace = Pace(self.rates, clock, rng or random.Random())
        self.end: _End | None = None
        self.calls: set[asyncio.Task[Reply | NoReply]] = set()
        self.asking: dict[str, asyncio.Lock] = {}
        self.settled = asyncio.Event()  # some attempt has ended
        self.done = asyncio.Event()
        self.ready: list[SampleVerdict] = []
        self.delivering = asyncio.Lock()
        self.causes: Counter[str] = Counter()
        self.no_verdict: Counter[str] = Counter()
        self.recent: deque[float] = deque(maxlen=RECENT + 1)  # ends of samples that were asked for
        self.total: int | None = None
        self.verdicts = self.pending = self.asked = self.reused = self.in_doubt = 0
        self.errors = 0
        self.error_at = self.answer_at = clock.now()
        self.answer_wall: float | None = None

    def note(self, ended: Ended, own: bool) -> None:
        """Take in an attempt that has ended, as the journal reports it."""
        self.budget.note(ended, own)
        if own and ended.kind == IN_DOUBT:
            self.in_doubt += 1

    async def work(self, journal: Journal, traces: Iterable[Item]) -> RunProgress:
        """Ask for every sample; return how far it came."""
        self.journal = journal
        take_control(journal.folder)  # what an earlier worker did not live to see
        if isinstance(traces, Sized):
            self.total = len(traces) * self.judge.samples
        with self._signals():
            await journal.control("started", pid=os.getpid(), cut_off=await journal.mark_killed())
            try:
                await self._work_together(self._samples(traces))
            except BaseExceptionGroup as errors:
                await self._show(FAILED, str(errors.exceptions[0]))
                raise errors.exceptions[0] from None
            finally:
                for call in self.calls:
                    call.cancel()
                await journal.drain()
            await self._hand_over()
            state, reason = self._outcome()
            await journal.control("ended", state=state, reason=reason)
            return await self._show(state, reason)

    async def _work_together(self, samples: Iterator[tuple[TraceForReview, str, int]]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tick())
            many = range(self.rates.most)
            await asyncio.wait([group.create_task(self._take_samples(samples)) for _ in many])
            self.done.set()

    def _outcome(self) -> tuple[str, str]:
        if self.end is not None:
            return self.end.state, self.end.reason
        if self.pending:
            return INCOMPLETE, f"{self.pending:,} samples are pending after errors; resume the run"
        return FINISHED, ""

    def _samples(self, traces: Iterable[Item]) -> Iterator[tuple[TraceForReview, str, int]]:
        for trace, content_hash in traces:
            for sample in range(self.judge.samples):
                yield trace, content_hash, sample

    async def _take_samples(self, samples: Iterator[tuple[TraceForReview, str, int]]) -> None:
        while self.end is None:
            item = next(samples, None)
            if item is None:
                return
            verdict = await self._judge_sample(*item)
            if verdict is None:
                self.pending += 1
                continue
            self.verdicts += 1
            if verdict.outcome == NO_VERDICT:
                self.no_verdict[verdict.cause or "no cause"] += 1
            self.ready.append(verdict)
            if len(self.ready) >= PART:
                await self._hand_over()
            await asyncio.sleep(0)

    async def _judge_sample(
        self, trace: TraceForReview, content_hash: str, sample: int
    ) -> SampleVerdict | None:
        """Return the verdict of a sample, None if it has to be left pending."""
        replies: list[Reply] = []
        before = self.asked
        while len(replies) < MOST_CALLS:
            step = self.judge.next_step(trace, content_hash, sample, replies)
            if isinstance(step, SampleVerdict):
                if self.asked > before:
                    self.recent.append(self.clock.now())
                return paid(step, replies)
            key = step.key(self.judge.judge_id)
            if any(reply.key == key for reply in replies):
                raise JudgeRunError(f"the judge asks twice for call {step.call}.{step.reask}")
            reply = await self._answer(step, key)
            if reply is None:
                return None
            replies.append(reply)
        raise JudgeRunError(f"the judge wants more than {MOST_CALLS} calls for one sample")

    async def _answer(self, request: Request, key: str) -> Reply | None:
        """Return the answer to a request, from a journal or from the endpoint."""
        # Two traces of equal content share their requests.
        lock = self.asking.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                reply = self.journal.answer(key)
                if reply is not None:
                    self.reused += 1
                    return reply
                return await self._ask(request, key)
        finally:
            if not lock.locked():
                self.asking.pop(key, None)

    async def _ask(self, request: Request, key: str) -> Reply | None:
        """Send a request until it is answered, or its attempts are used up."""
        failures = throttled = 0
        if not self.journal.may_ask(key):
            self._count("in doubt twice, not asked again")
        while self.journal.may_ask(key):
            sent = await self._leave(request, key, failures + 1)
            if sent is None:
                return None
            left_at = self.clock.now()
            reply, ruling = await self._attempt(request, sent)
            self._take_note(ruling, left_at)
            if ruling.kind == ANSWER:
                return reply
            if ruling.kind in (STOP, REFUSED):
                return None
            if ruling.kind == THROTTLED:
                throttled += 1
                asked = ruling.wait_s
                wait = self.pace.backoff(throttled) if asked is None else self.pace.jitter(asked)
            else:
                failures += 1
                if failures >= ATTEMPTS or not ruling.again:
                    return None
                wait = max(self.pace.backoff(failures), ruling.wait_s or 0.0)
            await self.pace.rest(wait)
        return None

    async def _leave(self, request: Request, key: str, attempt: int) -> Sent | None:
        """Return what is reserved once the request may leave, None if the run is to end."""
        learned = self.budget.learned
        tokens = request.input_characters * learned.tokens_per_character
        tokens += learned.output(request.output_limit)
        while await self.pace.enter(tokens):
            sent = self.budget.reserve(request, key, attempt=attempt)
            if sent is not None:
                return sent
            self.pace.give_back()
            if not self.budget.waits:
                self._end_run(CAPPED, "the next request could cost more than the cap leaves")
                return None
            await self.clock.wait(self.settled, None)
        return None

    async def _attempt(self, request: Request, sent: Sent) -> tuple[Reply | None, Ruling]:
        """Send a request once, with its lines in the journal before and after."""
        await self.journal.sent(request, sent)
        call = asyncio.ensure_future(self.endpoint.send(sent.key, request.body))
        self.calls.add(call)
        await asyncio.wait({call})
        self.calls.discard(call)
        came = NoReply(cause=CUT_OFF, sent=True) if call.cancelled() else call.result()
        ruling = classify(came, self.clock.wall())
        reply = None
        if ruling.kind == IN_DOUBT:
            await self.journal.in_doubt(sent.key, ruling.cause)
        elif isinstance(came, NoReply):
            nothing = Reply(key=sent.key, status=0, headers={}, body="", latency_s=0.0)
            await self.journal.failed(nothing, ruling.cause, possible=ruling.possible)
        elif ruling.kind == ANSWER:
            tokens = tokens_of(came.body) if came.status < 300 else None
            reply = replace(came, cost_usd=self.budget.cost(tokens))
            await self.journal.answer_came(reply, tokens)
        else:
            await self.journal.failed(came, ruling.cause, possible=ruling.possible)
        self.pace.leave()
        self.settled.set()
        self.settled = asyncio.Event()
        return reply, ruling

    def _take_note(self, ruling: Ruling, left_at: float) -> None:
        """Adapt to what came back: pace, count of errors, and whether the run can go on."""
        now = self.clock.now()
        if ruling.kind == ANSWER:
            self.asked += 1
            self.errors = 0
            self.answer_at, self.answer_wall = now, time.time()
            self.pace.answered()
            return
        self._count(f"{ruling.kind}: {ruling.cause}")
        if ruling.kind == STOP:
            self._end_run(FAILED, f"the endpoint refuses: {ruling.cause}")
        elif ruling.kind == THROTTLED:
            self.pace.throttled(ruling.wait_s)
            if (ruling.wait_s or 0.0) > LONGEST_WAIT_S:
                self._end_run(
                    FAILED, f"the endpoint asks to wait {ruling.wait_s or 0:,.0f} s; resume then"
                )
            elif now - self.answer_at > UNANSWERED_S:
                self._end_run(FAILED, f"no answer in half an hour, only {ruling.cause}")
        else:
            self.pace.disturbed()
            if left_at >= self.error_at:  # those that fail at the same moment count once
                self.errors += 1
                self.error_at = now
            if self.errors >= ERRORS_IN_A_ROW:
                self._end_run(FAILED, f"{self.errors} errors in a row, at last {ruling.cause}")

    def _count(self, cause: str) -> None:
        cause = cause[:MOST_CAUSE]
        if cause in self.causes or len(self.causes) < MOST_CAUSES:
            self.causes[cause] += 1
        else:
            self.causes["other"] += 1

    def _end_run(self, state: str, reason: str) -> None:
        """Let no new request leave; those in flight have 30 seconds."""
        if self.end is None:
            self.end = _End(state=state, reason=reason, at=self.clock.now())
            self.pace.close()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """End the run in order when the process is asked to end, where that can be heard."""
        loop, heard = asyncio.get_running_loop(), []
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                asked = f"the worker was asked to end ({number.name})"
                loop.add_signal_handler(number, self._end_run, STOPPED, asked)
                heard.append(number)
        try:
            yield
        finally:
            for number in heard:
                loop.remove_signal_handler(number)

    async def _tick(self) -> None:
        """Look at the control and the time, show progress and hand over verdicts."""
        handed = float("-inf")
        while not self.done.is_set():
            now = self.clock.now()
            await self._obey(take_control(self.journal.folder))
            if self.end is not None and now - self.end.at > GRACE_S:
                for call in self.calls:
                    call.cancel()
            if now - handed >= PART_EVERY_S:
                handed = now
                await self._hand_over()
            await self._show()
            # In real time, however fast the clock is: people and files are at the other end.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.done.wait(), LOOK_EVERY_S)

    async def _obey(self, word: str | None) -> None:
        if word is None or self.end is not None:
            return
        if word == "stop":
            self._end_run(STOPPED, "stopped by a person; resume it to go on")
        else:
            self.pace.paused = word == "pause"
            self.answer_at = self.clock.now()
            self.pace.change()
        await self.journal.control(word)

    async def _hand_over(self) -> None:
        async with self.delivering:
            while self.ready:
                part = self.ready[:PART]
                await asyncio.to_thread(self.deliver, part)
                del self.ready[: len(part)]

    async def _show(self, state: str | None = None, reason: str = "") -> RunProgress:
        """Write the progress and return it."""
        if state is None:
            state = "running" if not self.pace.paused else "paused"
            if self.end is not None:
                state, reason = "stopping", self.end.reason
        progress = self._progress(state, reason)
        with contextlib.suppress(OSError):  # the journal is what counts
            await asyncio.to_thread(write_progress, self.journal.folder, progress)
        return progress

    def _progress(self, state: str, reason: str) -> RunProgress:
        budget, priced = self.budget, self.budget.prices is not None
        per_second = eta = None
        if len(self.recent) > 1 and self.recent[-1] > self.recent[0]:
            per_second = (len(self.recent) - 1) / (self.recent[-1] - self.recent[0])
        left = None if self.total is None else self.total - self.verdicts
        if left is not None and per_second and state == "running":
            eta = left / per_second
        return RunProgress(
            state=state,
            reason=reason,
            total=self.total,
            verdicts=self.verdicts,
            pending=self.pending if left is None else left,
            asked=self.asked,
            reused=self.reused,
            in_flight=self.pace.in_flight,
            in_doubt=self.in_doubt,
            causes=dict(self.causes),
            no_verdict=dict(self.no_verdict),
            spent_tokens=budget.spent.tokens,
            possible_tokens=budget.possible.tokens,
            spent_usd=budget.spent.usd if priced else None,
            possible_usd=budget.possible.usd if priced else None,
            concurrency=self.pace.concurrency,
            samples_per_minute=None if per_second is None else per_second * 60,
            eta_s=eta,
            last_answer_at=self.answer_wall,
            heartbeat=time.time(),
            pid=os.getpid(),
        )
