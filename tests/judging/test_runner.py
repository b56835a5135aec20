"""A run against an endpoint that errs: what it asks, what it leaves open, and how it ends."""

import asyncio
import itertools
import json
import logging
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from calibration.errors import CalibrationError
from calibration.judging.budget import Learned, estimate
from calibration.judging.journal import RunFolder
from calibration.judging.requests import Request, SampleVerdict
from calibration.judging.runner import Limits, close_run, pending_samples
from tests.judging.fake_judge import OUTCOMES, FakeJudge, answer, traces
from tests.judging.runs import KEY, begun, fast, judged
from tests.judging.scripted_server import (
    ALL_FAULTS,
    PRICES,
    Received,
    ScriptedServer,
    mixed,
)

# The whole run ends; a person has to act first.
STOPS = {
    "401", "402", "403", "404_model", "429_quota", "unsupported_temperature",
    "unsupported_max_tokens", "unsupported_format", "unsupported_format_plain",
}  # fmt: skip
# Nothing is known of the trace: it stays pending.
PENDING = {"500", "502_html", "503_loading", "should_retry", "error_200", "detail_wrapper"}
DOUBTFUL = {"silence", "drip", "short_body", "reset", "late"}
CAUSES = {
    "429_too_large": "context_overflow", "context_openai": "context_overflow",
    "context_llama": "context_overflow", "context_vllm": "context_overflow",
    "context_tgi": "context_overflow", "filter_400": "content_filter",
    "content_filter": "content_filter", "length_half": "length", "null_content": "length",
    "endless_spaces": "length", "finish_error": "error",
}  # fmt: skip


@pytest.mark.parametrize("fault", ALL_FAULTS)
def test_every_fault_ends_in_a_verdict_pending_or_a_clean_stop(fault: str, tmp_path: Path) -> None:
    first: list[str] = []
    throttling = fault.startswith("429_") or fault == "529"

    def decide(received: Received) -> str:
        text = received.body["messages"][1]["content"]
        if not first:
            first.append(text)
        # Nobody waits for ever for a place that never comes.
        met = text == first[0] and (not throttling or received.attempt <= 2)
        return fault if met or fault in STOPS else ""

    with ScriptedServer(answer, decide, drip_s=0.1, late_s=1.0) as server:
        result, found = judged(begun(tmp_path), server.url, n=8, limits=Limits(concurrency=2))
        assert server.met[fault]
    outcomes = {v.cause or v.outcome for v in found.values()}
    if fault in STOPS:
        assert result.state == "failed"
        assert (found, result.pending) == ({}, 8)
    elif fault in PENDING | DOUBTFUL:
        assert (result.state, result.pending, len(found)) == ("incomplete", 1, 7)
        assert result.in_doubt == (2 if fault in DOUBTFUL else 0)
        assert server.met[fault] == (2 if fault in DOUBTFUL else 1 if "detail" in fault else 6)
    else:
        assert (result.state, result.pending, len(found)) == ("finished", 0, 8)
        cause = CAUSES.get(fault)
        assert outcomes - set(OUTCOMES) <= {cause or "form"}
        assert cause is None or cause in outcomes
    # What was spent is what was billed, or more where nobody knows.
    spent = round(result.spent * 1e12)
    assert spent >= server.billed - 1
    if fault not in DOUBTFUL and not fault.startswith("usage_") and fault != "error_200":
        assert spent == pytest.approx(server.billed, abs=2)


def test_a_seeded_mix_of_all_faults_gives_the_same_verdicts_twice(tmp_path: Path) -> None:
    names = tuple(name for name in ALL_FAULTS if name not in STOPS | {"429_600"})
    found = []
    for n in range(2):
        with ScriptedServer(answer, mixed(7, 0.4, names), drip_s=0.1, late_s=1.0) as server:
            limits = Limits(errors_in_row=1000)
            result, verdicts = judged(
                begun(tmp_path / str(n)), server.url, n=200, limits=limits, clock=fast(seed=n)
            )
        assert len(verdicts) + result.pending == 200
        assert result.state in ("finished", "incomplete")
        assert all(v.cause for v in verdicts.values() if v.outcome == "no_verdict")
        found.append({place: (v.outcome, v.cause) for place, v in verdicts.items()})
    assert found[0] == found[1]


def test_an_outage_stops_the_run_and_writes_no_verdict(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    with ScriptedServer(answer, lambda received: "503_loading") as server:
        result, found = judged(folder, server.url, n=40)
    assert (result.state, found) == ("failed", {})
    assert result.reason.startswith("20 errors in a row")
    with ScriptedServer(answer) as server:
        result, found = judged(folder, server.url, n=40)
    assert (result.state, len(found)) == ("finished", 40)


def test_nobody_listens(tmp_path: Path) -> None:
    result, found = judged(begun(tmp_path), "http://127.0.0.1:9/v1", n=3)
    assert (result.state, result.in_doubt, found) == ("incomplete", 0, {})
    assert result.spent == 0


def test_a_second_run_of_the_judge_asks_nothing(tmp_path: Path) -> None:
    with ScriptedServer(answer) as server:
        _, first = judged(begun(tmp_path), server.url)
        result, again = judged(begun(tmp_path, "second"), server.url)
        assert sum(entry.received for entry in server.ledger.values()) == 20
    assert (result.reused, result.answered, result.spent) == (20, 0, 0)
    assert again == first


def test_what_is_in_doubt_is_asked_again_at_most_once_over_all_runs(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    with ScriptedServer(answer, lambda received: "reset") as server:
        for run in ("a", "b", "c"):
            result, _ = judged(begun(tmp_path, run), server.url, n=1)
            assert result.pending == 1
        assert [entry.received for entry in server.ledger.values()] == [2]
    with ScriptedServer(answer) as server:
        result, found = judged(folder, server.url, n=1)
        assert (result.pending, server.ledger) == (1, {})
        # A person may allow it.
        result, found = judged(folder, server.url, n=1, limits=Limits(doubts=2))
    assert (result.state, len(found)) == ("finished", 1)


@pytest.mark.parametrize("fault", ["401", "500", "429_ms", "silence", "unsupported_temperature"])
def test_the_key_is_in_no_file_log_or_error(
    fault: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    heard: list[str] = []

    def decide(received: Received) -> str:
        heard.append(received.headers["authorization"])
        return fault if received.attempt < 3 else ""

    with ScriptedServer(answer, decide) as server:
        result, _ = judged(begun(tmp_path), server.url, n=3)
    assert heard[0] == f"Bearer {KEY}"
    said = [repr(result), caplog.text, *capfd.readouterr()]
    said += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    marked = (KEY, json.dumps(KEY)[1:-1], KEY.replace("/", "\\/"), "0123456789abcdef")
    assert not [text for text in said if any(mark in text for mark in marked)]


@pytest.mark.parametrize("unit", ["usd", "tokens"])
def test_the_cap_ends_the_run_and_a_new_run_goes_on(unit: str, tmp_path: Path) -> None:
    with ScriptedServer(answer) as server:
        whole, _ = judged(begun(tmp_path / "free"), server.url, n=30, cap=1e6, unit=unit)
    with ScriptedServer(answer) as server:
        cap = 0.4 * whole.spent
        result, found = judged(begun(tmp_path), server.url, n=30, cap=cap, unit=unit)
        billed = server.billed / 1e12 if unit == "usd" else server.billed_tokens
        assert (result.state, result.pending) == ("capped", 30 - len(found))
        assert 0 < billed <= cap
        again, _ = judged(begun(tmp_path), server.url, n=30, cap=cap, unit=unit)
        assert (again.state, again.answered) == ("capped", 0)
        rest, found = judged(begun(tmp_path, "more"), server.url, n=30, cap=1e6, unit=unit)
    assert (rest.state, len(found), rest.answered) == ("finished", 30, result.pending)


def capped(seed: int, root: Path) -> tuple[float, float]:
    """Return the bill and the cap of a run that is resumed under a cap of 40 % of its estimate."""
    judge = FakeJudge(output_limit=60)
    firsts = [judge.next_step(t, c, 0, ()) for t, c in traces(40, size=50 * (seed % 9))]
    worst = estimate([r for r in firsts if isinstance(r, Request)], prices=PRICES)
    assert worst.usd is not None
    cap = 0.4 * worst.usd
    names = ("usage_absent", "usage_null", "usage_zero", "silence", "reset", "500", "short_body")
    with ScriptedServer(answer, mixed(seed, 0.5, names), latency_s=0.002) as server:
        for _ in range(2):
            judged(
                begun(root), server.url, n=40, size=50 * (seed % 9), cap=cap, judge=judge,
                deadline_s=0.15, clock=fast(seed=seed), limits=Limits(errors_in_row=1000),
            )  # fmt: skip
        return server.billed / 1e12, cap


@pytest.mark.parametrize("seed", range(4))
def test_the_bill_never_exceeds_the_cap(seed: int, tmp_path: Path) -> None:
    billed, cap = capped(seed, tmp_path)
    assert 0 < billed <= cap


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4, 50))
def test_the_bill_never_exceeds_the_cap_in_fifty_seeds(seed: int, tmp_path: Path) -> None:
    billed, cap = capped(seed, tmp_path)
    assert 0 < billed <= cap


def test_a_dry_run_is_within_fifteen_percent_of_the_bill(tmp_path: Path) -> None:
    decide = mixed(3, 0.2, ("length_half", "fences", "content_filter"))
    with ScriptedServer(answer, decide) as server:
        first = begun(tmp_path, "first")
        judged(first, server.url, n=60, size=900)
        before = server.billed
        second = begun(tmp_path, "second")
        journal = second.journal()
        learned = Learned()
        for line in journal.replay.lines:
            learned.take_line(line)
        work = traces(200, size=900)
        steps = list(pending_samples(work, journal=journal, judge=FakeJudge()))
        journal.close()
        asked = [step for step in steps if isinstance(step, Request)]
        assert len(asked) == 140
        said = estimate(asked, prices=PRICES, learned=learned, journaled=len(steps) - len(asked))
        judged(second, server.url, n=200, size=900)
        bill = (server.billed - before) / 1e12
    assert said.usd == pytest.approx(bill, rel=0.15)
    assert said.usd_low is not None
    assert said.usd_high is not None
    assert said.usd_low <= bill <= said.usd_high


@pytest.mark.parametrize(
    ("rate", "burst", "n"),
    [(20.0, 20, 120), pytest.param(4.0, 2, 60, marks=pytest.mark.long)],
)
def test_throughput_is_at_least_eighty_percent_of_what_is_permitted(
    rate: float, burst: int, n: int, tmp_path: Path
) -> None:
    with ScriptedServer(answer, rate=rate, burst=burst, latency_s=0.02) as server:
        result, found = judged(begun(tmp_path), server.url, n=n, clock=fast(1.0), deadline_s=10)
        times = sorted(t for entry in server.ledger.values() for t in entry.times)
        assert server.met["rate"] > 0
    assert (result.state, len(found)) == ("finished", n)
    assert (n - burst) / (times[-1] - times[0]) >= 0.8 * rate


def test_a_throttled_request_delays_no_other_by_more_than_the_server_asked(tmp_path: Path) -> None:
    first: list[str] = []

    def decide(received: Received) -> str:
        first.append(received.key)
        return "429_ms" if received.key == first[0] and received.attempt == 1 else ""

    with ScriptedServer(answer, decide, wait_s=0.5) as server:
        result, _ = judged(begun(tmp_path), server.url, n=30, clock=fast(1.0))
        times = sorted(t for entry in server.ledger.values() for t in entry.times)
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert result.state == "finished"
    assert 0.4 < max(gaps) < 0.5 * 1.1 + 0.2


def test_limits_a_minute_are_kept(tmp_path: Path) -> None:
    with ScriptedServer(answer) as server:
        limits = Limits(requests_per_minute=1200)
        judged(begun(tmp_path), server.url, n=60, clock=fast(1.0), limits=limits)
        times = sorted(t for entry in server.ledger.values() for t in entry.times)
    # 20 a second, of which one second may come at once.
    assert times[-1] - times[0] >= 1.9


def test_pause_resume_and_stop(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    seen: list[int] = []

    def orders(server: ScriptedServer) -> None:
        def asked() -> int:
            return sum(entry.received for entry in server.ledger.values())

        while asked() < 5:
            time.sleep(0.01)
        folder.order("pause")
        while (folder.progress() or {}).get("state") != "paused":
            time.sleep(0.01)
        seen.append(asked())
        time.sleep(0.5)
        seen.append(asked())
        folder.order("resume")
        while asked() < seen[1] + 5:
            time.sleep(0.01)
        folder.order("stop")

    with ScriptedServer(answer, latency_s=0.1) as server:
        person = threading.Thread(target=orders, args=(server,))
        person.start()
        limits = Limits(concurrency=1, most=2)
        result, found = judged(folder, server.url, n=500, limits=limits)
        person.join()
    assert seen[0] == seen[1]
    assert result.state == "stopped"
    assert (result.in_doubt, len(found) + result.pending) == (0, 500)
    lines = [json.loads(line) for line in (folder.path / "journal.jsonl").read_text().splitlines()]
    assert [line["order"] for line in lines if line["line"] == "control"] == [
        "pause", "resume", "stop",
    ]  # fmt: skip


def test_sigterm_waits_for_those_in_flight_and_then_doubts_them(tmp_path: Path) -> None:
    def end(server: ScriptedServer) -> None:
        while len(server.ledger) < 4:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    for latency_s, doubts in ((0.5, 0), (30.0, 4)):
        with ScriptedServer(answer, latency_s=latency_s) as server:
            killer = threading.Thread(target=end, args=(server,))
            killer.start()
            limits = Limits(concurrency=4, most=4, grace_s=1.0)
            folder = begun(tmp_path / str(doubts))
            result, found = judged(folder, server.url, n=50, limits=limits, deadline_s=60)
            killer.join()
        assert result.state == "stopped"
        assert "SIGTERM" in result.reason
        assert (result.in_doubt, len(found)) == (doubts, 4 - doubts)
        assert (folder.progress() or {})["ended"] == "stopped"


def test_verdicts_come_in_parts_of_fifty(tmp_path: Path) -> None:
    parts: list[int] = []
    with ScriptedServer(answer) as server:
        judged(
            begun(tmp_path), server.url, n=60, samples=2, clock=fast(0.001),
            deliver=lambda part: parts.append(len(part)),
        )  # fmt: skip
    assert parts == [50, 50, 20]


def test_a_taker_that_refuses_ends_the_run_and_nothing_is_lost(tmp_path: Path) -> None:
    def refuse(part: list[SampleVerdict]) -> None:
        raise CalibrationError("the inbox is full")

    folder = begun(tmp_path)
    with ScriptedServer(answer) as server:
        result, _ = judged(folder, server.url, n=60, deliver=refuse)
        assert result.state == "failed"
        assert "the inbox is full" in result.reason
        again, found = judged(folder, server.url, n=60)
        assert (again.state, len(found)) == ("finished", 60)
        assert all(entry.received == 1 for entry in server.ledger.values())


def test_a_person_closes_a_run(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    with ScriptedServer(answer, mixed(1, 0.5, ("detail_wrapper",))) as server:
        result, found = judged(folder, server.url, n=20)
    assert result.pending > 0
    closed: list[SampleVerdict] = []
    with pytest.raises(CalibrationError, match="name who"):
        close_run(traces(20), folder=folder, judge=FakeJudge(), deliver=closed.extend, by=" ")
    n = close_run(traces(20), folder=folder, judge=FakeJudge(), deliver=closed.extend, by="Ada")
    assert n == len(closed) == result.pending
    assert {v.cause for v in closed} == {"outage"}
    assert not {v.trace_id for v in closed} & {trace for trace, _ in found}


def test_calls_of_a_plan_follow_each_other(tmp_path: Path) -> None:
    with ScriptedServer(answer) as server:
        result, found = judged(begun(tmp_path), server.url, n=5, judge=FakeJudge(calls=3))
        assert len(server.ledger) == 15
    assert (result.answered, {len(v.replies) for v in found.values()}) == (15, {3})


def test_a_judge_that_fails_ends_the_run_with_its_error(tmp_path: Path) -> None:
    class Broken(FakeJudge):
        def next_step(self, *args: object) -> Request | SampleVerdict:
            raise ValueError("no such node")

    with ScriptedServer(answer) as server, pytest.raises(ValueError, match="no such node"):
        judged(begun(tmp_path), server.url, judge=Broken())


def test_a_run_is_held_by_one_worker(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    with folder.lock(), pytest.raises(CalibrationError, match="under way"):
        judged(RunFolder(folder.root, folder.run), "http://127.0.0.1:9/v1")


def test_the_loop_is_not_blocked(tmp_path: Path) -> None:
    late: list[float] = []

    async def sleep(seconds: float) -> None:
        start = time.monotonic()
        await asyncio.sleep(seconds)
        late.append(time.monotonic() - start - seconds)

    clock = fast(1.0)
    watched = type(clock)(now=clock.now, sleep=sleep, rng=clock.rng)
    with ScriptedServer(answer, rate=30, burst=1) as server:
        judged(begun(tmp_path), server.url, n=40, clock=watched)
    assert sorted(late)[len(late) // 2] < 0.05
