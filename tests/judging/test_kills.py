"""A worker that is killed at any moment pays for nothing twice and says what is in doubt."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from calibration.judging.journal import JOURNAL_FILE, read_progress
from calibration.judging.pace import Rates
from tests.judging.fake_judge import content, traces
from tests.judging.runs import judged, planned
from tests.judging.scripted_server import Asked, ScriptedServer

# Runs of a judge from end to end: commands and workers at a server with real sockets.
pytestmark = pytest.mark.long
KILLS = 25

ROOT = Path(__file__).parents[2]
CONCURRENCY = 4
# Real verdicts of every sort; none that would leave a trace pending.
PASSING = ("429 ms", "500", "503 loading")
MIXED = (*PASSING, "length", "fences", "usage absent", "refusal")


def rule(asked: Asked) -> str:
    number = int(asked.trace[1:])
    kind = MIXED[number % 7] if number % 5 == 1 else "good"
    return "good" if kind in PASSING and asked.attempt > 1 else kind


def lines(folder: Path) -> list[dict[str, Any]]:
    text = (folder / JOURNAL_FILE).read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    return [json.loads(line) for line in whole.splitlines()]


def answered(folder: Path) -> set[str]:
    return {line["key"] for line in lines(folder) if line["kind"] == "answered"}


def kill_at_random(folder: Path, server: ScriptedServer, n: int, rng: random.Random) -> bool:
    """Start a worker and kill it after some requests; return whether it was still at work."""
    words = [sys.executable, "-m", "tests.judging.worker", str(folder), server.url, str(n)]
    target = server.ledger.total("received") + rng.randint(1, 9)
    worker = subprocess.Popen(words, cwd=ROOT)
    while worker.poll() is None and server.ledger.total("received") < target:
        time.sleep(0.002)
    time.sleep(rng.uniform(0.0, 0.06))
    alive = worker.poll() is None
    worker.kill()
    worker.wait()
    return alive


def test_kills(tmp_path: Path) -> None:
    n, rng = 230, random.Random(KILLS)
    folder = planned(tmp_path)
    (tmp_path / "calm").mkdir()
    before: dict[str, int] = {}
    with ScriptedServer(content, rule, latency=lambda asked: rng.uniform(0.005, 0.05)) as server:
        for _ in range(KILLS):
            assert kill_at_random(folder, server, n, rng)
            for key in answered(folder):
                before.setdefault(key, server.ledger.entries[key].received)
        progress, verdicts = judged(folder, server.url, traces(n), rates=Rates(most=CONCURRENCY))
    assert (progress.state, len(verdicts)) == ("finished", n)

    again = [key for key, count in before.items() if server.ledger.entries[key].received > count]
    assert again == []
    journal = lines(folder)
    keys = [line["key"] for line in journal if line["kind"] == "answered"]
    assert len(keys) == len(set(keys))
    started = [line["cut_off"] for line in journal if line.get("what") == "started"]
    assert len(started) == KILLS + 1
    assert max(started) <= CONCURRENCY
    assert sum(started) == progress.in_doubt
    # Each of them was asked again at most once: as often as it was sent, it was answered, failed
    # or cut off.
    for key, entry in server.ledger.entries.items():
        ended = [line["kind"] for line in journal if line.get("key") == key]
        assert ended.count("sent") == len(ended) / 2
        assert entry.received <= ended.count("sent")
    assert server.ledger.bill <= (progress.spent_usd or 0) + (progress.possible_usd or 0) + 1e-9

    with ScriptedServer(content, rule) as server:
        _, undisturbed = judged(planned(tmp_path / "calm"), server.url, traces(n))
    assert {key: (v.outcome, v.cause, v.reason) for key, v in verdicts.items()} == {
        key: (v.outcome, v.cause, v.reason) for key, v in undisturbed.items()
    }


def test_a_second_worker_is_refused(tmp_path: Path) -> None:
    folder = planned(tmp_path)
    with ScriptedServer(content, latency=lambda asked: 0.2) as server:
        words = [sys.executable, "-m", "tests.judging.worker", str(folder), server.url, "5000"]
        with subprocess.Popen(words, cwd=ROOT) as worker:
            while server.ledger.total("received") < 1:
                time.sleep(0.01)
            second = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
            other = planned(tmp_path, "other")
            words[3] = str(other)
            third = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
            worker.terminate()
            worker.wait()
    assert "another worker is at run one" in second.stderr
    assert "another worker is at judge fake-judge" in third.stderr
    progress = read_progress(folder)
    assert progress is not None
    assert (progress.state, progress.in_doubt) == ("stopped", 0)
