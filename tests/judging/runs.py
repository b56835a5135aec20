"""A run of the small judge against the scripted endpoint, also as a process that may be killed."""

import asyncio
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from calibration.judging.budget import Budget, Cap
from calibration.judging.journal import RunFolder
from calibration.judging.requests import SampleVerdict
from calibration.judging.runner import Clock, Limits, RunResult, run_judge
from calibration.judging.transport import Endpoint, OpenAITransport
from tests.judging.fake_judge import FakeJudge, traces
from tests.judging.scripted_server import MODEL, PRICES

KEY = "sk-marked-0123456789abcdef/+"


def fast(times: float = 200.0, seed: int = 0) -> Clock:
    """Return a clock that runs so many times as fast."""
    return Clock(
        now=lambda: time.monotonic() * times,
        sleep=lambda seconds: asyncio.sleep(seconds / times),
        rng=random.Random(seed),
    )


def begun(root: Path, run: str = "r", **plan: Any) -> RunFolder:
    folder = RunFolder(root / "s.judge", run)
    folder.begin({"model": MODEL, "judge_id": "fake-judge", **plan})
    return folder


def judged(
    folder: RunFolder,
    url: str,
    *,
    n: int = 20,
    size: int = 200,
    cap: float = 100.0,
    unit: Any = "usd",
    deadline_s: float = 0.4,
    deliver: Callable[[list[SampleVerdict]], None] | None = None,
    judge: FakeJudge | None = None,
    limits: Limits | None = None,
    clock: Clock | None = None,
    samples: int = 1,
) -> tuple[RunResult, dict[tuple[str, int], SampleVerdict]]:
    """Run a worker to its end, and return its result with the verdicts that were delivered."""
    found: dict[tuple[str, int], SampleVerdict] = {}

    def take(part: list[SampleVerdict]) -> None:
        found.update({(v.trace_id, v.sample): v for v in part})
        if deliver is not None:
            deliver(part)

    endpoint = Endpoint(base_url=url, key=KEY, deadline_s=deadline_s)
    result = run_judge(
        traces(n, size=size),
        folder=folder,
        judge=judge or FakeJudge(),
        transport=lambda: OpenAITransport(endpoint),
        budget=Budget(Cap(amount=cap, unit=unit), PRICES),
        deliver=take,
        samples=samples,
        limits=limits,
        clock=clock or fast(),
    )
    return result, found


def main() -> None:
    """Run in this process, until it ends or is killed."""
    root, url, n = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    limits = Limits(concurrency=4, most=4)
    result, found = judged(begun(root), url, n=n, limits=limits, deadline_s=10.0)
    outcomes = {f"{t}/{s}": v.outcome for (t, s), v in found.items()}
    print(json.dumps({"state": result.state, "outcomes": outcomes}))  # noqa: T201


if __name__ == "__main__":
    main()
