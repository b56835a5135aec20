"""A run at a scripted server, of the fake judge unless another one is given."""

import asyncio
import random
from collections.abc import Callable, Iterable
from pathlib import Path

from calibration.judging.budget import Cap, Prices
from calibration.judging.journal import RunProgress
from calibration.judging.pace import Rates, RunClock
from calibration.judging.requests import Judge, SampleVerdict
from calibration.judging.runner import plan_run, run
from calibration.judging.transport import Transport
from calibration.records import TraceForReview
from tests.judging.fake_judge import FakeJudge
from tests.judging.scripted_server import DOLLARS_IN, DOLLARS_OUT

KEY = "sk-marked-4f6d8a1c"
PRICES = Prices(input=DOLLARS_IN, output=DOLLARS_OUT)

Verdicts = dict[tuple[str, int], SampleVerdict]


def planned(
    store: Path,
    name: str = "one",
    judge: Judge | None = None,
    *,
    cap: Cap | None = None,
    prices: Prices | None = PRICES,
) -> Path:
    runs = store / "s.judge"
    return plan_run(runs, name, judge or FakeJudge(), cap=cap or Cap(), prices=prices)


def judged(
    folder: Path,
    url: str,
    items: Iterable[tuple[TraceForReview, str]],
    judge: Judge | None = None,
    *,
    scale: float = 1.0,
    deadline_s: float = 20.0,
    seed: int = 1,
    rates: Rates | None = None,
    deliver: Callable[[list[SampleVerdict]], None] | None = None,
    api_key: str = KEY,
) -> tuple[RunProgress, Verdicts]:
    """Work on a run to its end; return its progress and its verdicts."""
    verdicts: Verdicts = {}

    def take(part: list[SampleVerdict]) -> None:
        assert len(part) <= 50
        verdicts.update({(v.trace_id, v.sample): v for v in part})

    async def work() -> RunProgress:
        transport = Transport(url, api_key, deadline_s=deadline_s)
        try:
            return await run(
                folder,
                judge or FakeJudge(),
                items,
                transport,
                deliver or take,
                rates=rates,
                clock=RunClock(scale),
                rng=random.Random(seed),
            )
        finally:
            await transport.aclose()

    return asyncio.run(work()), verdicts
