"""A worker in a process of its own: `python -m benchmarks.judge.child WAY FOLDER URL CALLS`.

The ways are the `client` alone, the `runner` with requests built beforehand, and the runner with
the real `judge`. Prints the seconds of all calls, and the most memory in MB.
"""

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from calibration.judging.budget import Cap
from calibration.judging.journal import RUN_FILE
from calibration.judging.pace import Rates
from calibration.judging.requests import Judge, Reply, Request, SampleVerdict
from calibration.judging.runner import plan_run, run
from calibration.judging.transport import Transport
from calibration.records import TraceForReview
from tests.judging.reference_model import Item, first_request, reference_items, reference_judge
from tests.judging.runs import PRICES

CONCURRENCY = 8


def items(calls: int) -> Iterator[Item]:
    """Yield the reference traces over and over, each time as another content."""
    traces = reference_items()
    for k in range(calls):
        trace, content_hash = traces[k % len(traces)]
        yield trace, f"{content_hash}-{k}"


class Prepared:
    """A judge whose requests were built beforehand and whose answers are not read."""

    judge_id, samples = "prepared", 1

    def __init__(self, calls: int) -> None:
        judge = reference_judge(samples=1)
        self.requests = {item[1]: first_request(judge, item) for item in items(calls)}

    def next_step(
        self, trace: TraceForReview, content_hash: str, sample: int, replies: Sequence[Reply]
    ) -> Request | SampleVerdict:
        """Return the request, and a verdict after its reply."""
        if not replies:
            return self.requests[content_hash]
        return SampleVerdict(trace_id=trace.trace_id, sample=sample, outcome="complete")


def _warm_up() -> dict[str, Any]:
    """Return a request that is not timed: the client loads much of itself with the first one."""
    return dict(first_request(reference_judge(samples=1), next(items(1))).body)


async def alone(url: str, calls: int) -> float:
    """Send all requests with the client alone; return the seconds."""
    from openai import AsyncOpenAI

    bodies = iter([dict(request.body) for request in Prepared(calls).requests.values()])
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        await client.chat.completions.create(**_warm_up())

        async def send() -> None:
            for body in bodies:
                await client.chat.completions.create(**body)

        began = time.perf_counter()
        await asyncio.gather(*[send() for _ in range(CONCURRENCY)])
        return time.perf_counter() - began


async def through_runner(folder: Path, url: str, calls: int, judge: Judge) -> float:
    """Send all requests as a run, or resume it; return the seconds."""
    if not (folder / RUN_FILE).exists():
        plan_run(folder.parent, folder.name, judge, cap=Cap(usd=1e6), prices=PRICES)
    rates = Rates(start=CONCURRENCY, most=CONCURRENCY)
    transport = Transport(url, "none")
    await transport.send("warm-up", _warm_up())
    began = time.perf_counter()
    try:
        done = await run(folder, judge, items(calls), transport, lambda verdicts: None, rates=rates)
    finally:
        await transport.aclose()
    if (done.state, done.verdicts) != ("finished", calls) or done.no_verdict:
        raise RuntimeError(f"the run did not judge all: {done}")
    return time.perf_counter() - began


def most_memory() -> float:
    """Return the largest resident size of this process in MB."""
    # `ru_maxrss` begins at what the parent held when it started the process.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


async def main(way: str, folder: Path, url: str, calls: int) -> float:
    """Work in one of the ways."""
    if way == "client":
        return await alone(url, calls)
    judge = Prepared(calls) if way == "runner" else reference_judge(samples=1)
    return await through_runner(folder, url, calls, judge)


if __name__ == "__main__":
    way, folder, url, calls = sys.argv[1:]
    seconds = asyncio.run(main(way, Path(folder), url, int(calls)))
    sys.stdout.write(f"{seconds} {most_memory()}\n")
