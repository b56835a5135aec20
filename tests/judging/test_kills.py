"""A worker that is killed at random moments: nothing that was answered is asked again."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.judging.fake_judge import OUTCOMES, answer
from tests.judging.runs import begun, judged
from tests.judging.scripted_server import ScriptedServer

ROOT = Path(__file__).parents[2]
CONCURRENCY = 4


def lines_of(root: Path) -> list[dict[str, Any]]:
    """Return the whole lines of the journal as it stands."""
    path = root / "s.judge" / "r" / "journal.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().splitlines(True) if line[-1:] == b"\n"]


def started(root: Path, url: str, n: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.judging.runs", str(root), url, str(n)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def keys(lines: list[dict[str, Any]], what: str) -> list[str]:
    return [line["key"] for line in lines if line["line"] == what]


def killed(kills: int, n: int, root: Path) -> None:
    """Kill a run so often, let it end, and hold ledger, journal and verdicts against each other."""
    rng = random.Random(kills)
    times: dict[str, int] = {}
    with ScriptedServer(answer, latency_s=0.05) as server:
        for _ in range(kills):
            before = len(keys(lines_of(root), "answered"))
            worker = started(root, server.url, n)
            # Every process gets a little further, so that the run is killed while it works.
            while len(keys(lines_of(root), "answered")) < before + 3 and worker.poll() is None:
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.3))
            worker.kill()
            worker.communicate()
            lines = lines_of(root)
            for key in keys(lines, "answered"):
                # At the moment of the kill: what was asked of it until then is all there will be.
                times.setdefault(key, server.ledger[key].received)
            in_flight = set(keys(lines, "sent")) - set(keys(lines, "answered"))
            in_flight -= set(keys(lines, "in_doubt"))
            assert len(in_flight) <= CONCURRENCY
        last = started(root, server.url, n)
        said = json.loads(last.communicate(timeout=120)[0])
        folder = begun(root)
        result, found = judged(folder, server.url, n=n, deadline_s=10.0)
        again = [key for key, count in times.items() if server.ledger[key].received > count]
        billed = server.billed / 1e12
    lines = lines_of(root)
    answered, doubted = keys(lines, "answered"), keys(lines, "in_doubt")
    assert again == []
    assert len(answered) == len(set(answered)) == n - result.pending
    assert len(doubted) <= CONCURRENCY * kills
    assert max(doubted.count(key) for key in {*doubted, ""}) <= 2
    # Only what was in doubt twice is left, and counted at its worst case.
    assert result.pending == sum(doubted.count(key) == 2 for key in set(doubted) - set(answered))
    assert result.spent >= billed - 1e-9
    assert said["state"] in ("finished", "incomplete")
    # What an undisturbed run gives: a class that depends on the trace only.
    undisturbed = {f"t-{i:04d}/0": OUTCOMES[i % 3] for i in range(n)}
    assert said["outcomes"].items() <= undisturbed.items()
    assert len(said["outcomes"]) == n - result.pending
    assert {f"{t}/{s}": v.outcome for (t, s), v in found.items()} == said["outcomes"]


def test_five_kills(tmp_path: Path) -> None:
    killed(5, 120, tmp_path)


@pytest.mark.long
def test_twenty_five_kills(tmp_path: Path) -> None:
    killed(25, 600, tmp_path)
