"""The worker at a real socket: every fault, its pace, and what a person asks of it."""

import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from calibration.errors import JudgeRunError
from calibration.judging import runner
from calibration.judging.journal import read_progress, write_control
from calibration.judging.pace import Rates
from calibration.judging.requests import SampleVerdict
from calibration.judging.transport import Transport
from calibration.records import NO_VERDICT
from tests.judging.fake_judge import FakeJudge, content, trace, traces
from tests.judging.runs import KEY, judged, planned
from tests.judging.scripted_server import KINDS, Asked, ScriptedServer

pytestmark = pytest.mark.long  # a server of its own, with its waits

STOP = {
    "429 quota", "402", "401", "403", "404 model", "no temperature", "no max_tokens",
    "no response_format", "no response_format, text", "detail",
}  # fmt: skip
THROTTLED = {
    "429", "429 bare", "429 ms", "429 date", "429 600 s", "429 reset", "429 negative", "529",
}  # fmt: skip
TRANSIENT = {"500", "502 html", "503 loading", "should retry", "200 html", "error in 200"}
IN_DOUBT = {"silence", "drip", "short", "reset"}
AT_ONCE = {"should not retry", "odd 400"}  # pending without a further attempt
NO_ANSWER = {
    "429 too large", "length", "reasoning only", "endless spaces", "content_filter",
    "filter as 400", "refusal", "refusal in prose", "fences", "prose", "two objects", "bad escape",
    "bom", "parts", "think", "tool", "tool object", "in reasoning", "missing node", "third answer",
    "wrong code word", "no choices", "finish error", "context openai", "context vllm",
    "context llama", "context other", "response_format ignored",
}  # fmt: skip


def of_trace(name: str, kind: str, times: float = float("inf")) -> Callable[[Asked], str]:
    """Return the rule that a trace meets a kind so many times."""
    met = [0]

    def rule(asked: Asked) -> str:
        if asked.trace != name or met[0] >= times:
            return "good"
        met[0] += 1
        return kind

    return rule


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_fault_that_passes_costs_no_verdict(kind: str, tmp_path: Path) -> None:
    with ScriptedServer(content, of_trace("t1", kind, 1), scale=1000) as server:
        progress, verdicts = judged(
            planned(tmp_path), server.url, traces(3), scale=1000, deadline_s=0.5
        )
    if kind in STOP:
        assert progress.state == "failed"
        assert progress.reason.startswith("the endpoint refuses: ")
    elif kind in AT_ONCE:
        assert (progress.state, len(verdicts)) == ("incomplete", 2)
    else:
        assert (progress.state, len(verdicts)) == ("finished", 3)
    assert not any(v.outcome == NO_VERDICT for v in verdicts.values()) or kind in NO_ANSWER


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_fault_that_stays_ends_in_a_cause_or_a_clean_stop(kind: str, tmp_path: Path) -> None:
    with ScriptedServer(content, of_trace("t1", kind), scale=1000) as server:
        progress, verdicts = judged(
            planned(tmp_path), server.url, traces(3), scale=1000, deadline_s=0.4
        )
    found = verdicts.get(("t1", 0))
    if kind in STOP | THROTTLED:
        assert (progress.state, found) == ("failed", None)
    elif kind in TRANSIENT | IN_DOUBT | AT_ONCE:
        assert (progress.state, found) == ("incomplete", None)
        attempts = max(entry.received for entry in server.ledger.entries.values())
        assert attempts == (1 if kind in AT_ONCE else 2 if kind in IN_DOUBT else 6)
    else:
        assert progress.state == "finished"
        assert found is not None
        assert (found.outcome == NO_VERDICT) == (kind in NO_ANSWER)


def test_twenty_errors_in_a_row_end_the_run(tmp_path: Path) -> None:
    with ScriptedServer(content, lambda asked: "500", scale=1000) as server:
        progress, verdicts = judged(planned(tmp_path), server.url, traces(200), scale=1000)
    assert progress.state == "failed"
    assert "20 errors in a row, at last 500" in progress.reason
    assert not verdicts
    assert server.ledger.total("received") < 20 * 32


def test_errors_at_the_same_moment_count_once(tmp_path: Path) -> None:
    with ScriptedServer(content, lambda asked: "500" if asked.attempt == 1 else "good") as server:
        progress, _ = judged(
            planned(tmp_path), server.url, traces(32), scale=20, rates=Rates(start=32)
        )
    assert progress.state == "finished"
    assert progress.causes == {"transient: 500 server_error error the server had an error": 32}


def test_no_server_at_all(tmp_path: Path) -> None:
    progress, _ = judged(planned(tmp_path), "http://127.0.0.1:9/v1", traces(2), scale=1000)
    assert (progress.state, progress.pending, progress.possible_tokens) == ("incomplete", 2, 0)
    (cause,) = progress.causes
    assert cause.startswith("transient: ConnectError")


def test_throughput_under_429s(tmp_path: Path) -> None:
    def latency(asked: Asked) -> float:
        return 0.2 + 0.4 * (int(asked.key[:4], 16) / 65536)

    n, permitted = 240, 30.0
    with ScriptedServer(content, per_second=permitted, scale=10, latency=latency) as server:
        progress, _ = judged(planned(tmp_path), server.url, traces(n), scale=10)
    first, *_, last = server.ledger.arrivals
    assert progress.state == "finished"
    assert server.ledger.kinds["limited"] > 0
    assert n / (last - first) >= 0.8 * permitted


def test_a_throttled_request_delays_no_other_by_more_than_was_asked(tmp_path: Path) -> None:
    n, slack = 60, 0.5
    rule = of_trace("t20", "429 ms", 1)
    with ScriptedServer(content, rule, latency=lambda asked: 0.02) as server:
        progress, _ = judged(planned(tmp_path), server.url, traces(n))
    gaps = [after - before for before, after in pairwise(server.ledger.arrivals)]
    assert progress.state == "finished"
    assert 0.6 < max(gaps) < 0.7 + slack
    assert sum(gap > slack for gap in gaps) == 1


def test_one_that_says_nothing_delays_nobody_else(tmp_path: Path) -> None:
    rule = of_trace("t20", "429 bare", 3)
    with ScriptedServer(content, rule, latency=lambda asked: 0.02) as server:
        judged(planned(tmp_path), server.url, traces(60))
    others = server.ledger.arrivals[:59]
    assert max(after - before for before, after in pairwise(others)) < 0.5


def test_buckets_hold_the_rate(tmp_path: Path) -> None:
    with ScriptedServer(content) as server:
        rates = Rates(requests_per_minute=600)
        judged(planned(tmp_path), server.url, traces(40), scale=2, rates=rates)
    first, *_, last = server.ledger.arrivals
    assert last - first >= 30 / 20 * 0.9  # ten at once, then 20 a second of the fast clock


def test_tokens_a_minute_hold_the_rate(tmp_path: Path) -> None:
    with ScriptedServer(content) as server:
        # About 250 tokens a request, first guessed as 240: some 4 requests a second.
        rates = Rates(tokens_per_minute=60_000)
        judged(planned(tmp_path), server.url, traces(16), scale=2, rates=rates)
    first, *_, last = server.ledger.arrivals
    assert 0.8 < last - first < 3.5


def test_the_same_seed_gives_the_same_verdicts(tmp_path: Path) -> None:
    passing = sorted(set(KINDS) - STOP - THROTTLED - TRANSIENT - IN_DOUBT - AT_ONCE)
    trouble = sorted(THROTTLED | TRANSIENT | {"short", "reset"})

    def rule(asked: Asked) -> str:
        number = int(asked.trace[1:])
        if asked.attempt == 1 and number % 4 == 1:
            return trouble[number // 4 % len(trouble)]
        return passing[number % len(passing)]

    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with ScriptedServer(content, rule, scale=1000) as server:
            progress, verdicts = judged(
                planned(tmp_path / name), server.url, traces(200), scale=1000
            )
        assert (progress.state, len(verdicts)) == ("finished", 200)
        found.append({key: (v.outcome, v.cause) for key, v in verdicts.items()})
    assert found[0] == found[1]


def test_another_run_of_the_judge_reuses_its_answers(tmp_path: Path) -> None:
    judge = FakeJudge(samples=2)
    with ScriptedServer(content) as server:
        first, before = judged(planned(tmp_path, "one", judge), server.url, traces(5), judge)
        second, after = judged(planned(tmp_path, "two", judge), server.url, traces(8), judge)
        other = FakeJudge(judge_id="other", samples=2)
        third, _ = judged(planned(tmp_path, "three", other), server.url, traces(5), other)
    assert (first.asked, second.reused, second.asked, third.asked) == (10, 10, 6, 10)
    assert {key: after[key] for key in before} == before
    assert second.spent_tokens < first.spent_tokens


def test_traces_of_equal_content_share_their_request(tmp_path: Path) -> None:
    items = [(trace(f"t{k}"), "same") for k in range(6)]
    with ScriptedServer(content) as server:
        progress, verdicts = judged(planned(tmp_path), server.url, items)
    assert (server.ledger.total("received"), progress.reused, len(verdicts)) == (1, 5, 6)


def test_verdicts_come_in_parts(tmp_path: Path) -> None:
    parts: list[int] = []
    with ScriptedServer(content) as server:
        judged(
            planned(tmp_path), server.url, traces(120), deliver=lambda part: parts.append(len(part))
        )
    assert sum(parts) == 120
    assert max(parts) <= 50


def test_a_delivery_that_fails_ends_the_run_and_loses_nothing(tmp_path: Path) -> None:
    def refuse(part: list[SampleVerdict]) -> None:
        raise OSError("no room")

    folder = planned(tmp_path)
    with ScriptedServer(content) as server:
        with pytest.raises(OSError, match="no room"):
            judged(folder, server.url, traces(60), deliver=refuse)
        progress, verdicts = judged(folder, server.url, traces(60))
    assert (progress.state, len(verdicts)) == ("finished", 60)
    assert server.ledger.total("written") - progress.in_doubt <= 60


class AsksTwice(FakeJudge):
    def next_step(self, trace, content_hash, sample, replies):  # type: ignore[no-untyped-def]
        return super().next_step(trace, content_hash, sample, [])


def test_a_judge_that_goes_in_circles_is_stopped(tmp_path: Path) -> None:
    with ScriptedServer(content) as server, pytest.raises(JudgeRunError, match="asks twice"):
        judged(planned(tmp_path), server.url, traces(2), AsksTwice())


def test_a_changed_judge_is_another_one(tmp_path: Path) -> None:
    with pytest.raises(JudgeRunError, match="is of judge fake-judge, not new"):
        judged(planned(tmp_path), "http://127.0.0.1:9/v1", traces(1), FakeJudge(judge_id="new"))


def in_background(act: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def test_pause_resume_and_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "LOOK_EVERY_S", 0.05)
    folder = planned(tmp_path)
    seen: dict[str, object] = {}

    def person() -> None:
        while server.ledger.total("received") < 10:
            time.sleep(0.01)
        write_control(folder, "pause")
        wait_for(folder, "paused")
        time.sleep(0.3)
        seen["paused at"] = server.ledger.total("received")
        time.sleep(0.3)
        seen["still at"] = server.ledger.total("received")
        write_control(folder, "resume")
        while server.ledger.total("received") < 40:
            time.sleep(0.01)
        write_control(folder, "stop")

    with ScriptedServer(content, latency=lambda asked: 0.03) as server:
        thread = in_background(person)
        progress, _ = judged(folder, server.url, traces(2000), rates=Rates(most=4))
        thread.join()
    assert seen["paused at"] == seen["still at"]
    assert progress.state == "stopped"
    assert 40 <= progress.asked < 500
    assert progress.in_doubt == 0
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    controls = [line["what"] for line in lines if line["kind"] == "control"]
    assert controls == ["started", "pause", "resume", "stop", "ended"]


def wait_for(folder: Path, state: str) -> None:
    for _ in range(500):
        progress = read_progress(folder)
        if progress is not None and progress.state == state:
            return
        time.sleep(0.01)
    raise AssertionError(read_progress(folder))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
def test_sigterm_waits_for_those_in_flight(tmp_path: Path) -> None:
    def end() -> None:
        while server.ledger.total("received") < 4:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    with ScriptedServer(content, latency=lambda asked: 0.5) as server:
        thread = in_background(end)
        progress, verdicts = judged(planned(tmp_path), server.url, traces(50))
        thread.join()
    assert (progress.state, progress.asked, progress.in_doubt) == ("stopped", 4, 0)
    assert "SIGTERM" in progress.reason
    assert (len(verdicts), progress.pending) == (4, 46)


def test_those_that_take_longer_than_the_grace_are_in_doubt_and_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(runner, "GRACE_S", 0.1)
    folder = planned(tmp_path)

    def end() -> None:
        while server.ledger.total("received") < 4:
            time.sleep(0.01)
        write_control(folder, "stop")

    with ScriptedServer(content, latency=lambda asked: 3.0) as server:
        thread = in_background(end)
        progress, _ = judged(folder, server.url, traces(8))
        thread.join()
    assert (progress.state, progress.in_doubt) == ("stopped", 4)
    assert progress.possible_tokens > 0
    with ScriptedServer(content) as server:
        progress, verdicts = judged(folder, server.url, traces(8))
    assert (progress.state, len(verdicts), progress.asked) == ("finished", 8, 8)


def test_the_key_is_in_no_file_log_error_or_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)

    def fail(part: list[SampleVerdict]) -> None:
        raise ValueError("cannot deliver")

    with ScriptedServer(content, api_key="another key") as server:
        progress, _ = judged(planned(tmp_path), server.url, traces(3))
    assert any(KEY in headers["authorization"] for headers in server.ledger.headers)
    assert "401 invalid_api_key error incorrect api key: [key]" in progress.reason
    with ScriptedServer(content, lambda asked: "reset" if asked.attempt == 1 else "good") as server:
        try:
            judged(planned(tmp_path, "two"), server.url, traces(3), deliver=fail)
        except ValueError as error:
            shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    out = capfd.readouterr()
    texts = ["".join(shown.format()), caplog.text, out.out, out.err, repr(progress)]
    texts += [p.read_text("utf-8") for p in tmp_path.rglob("*") if p.is_file()]
    assert len(texts) > 9
    found = [line for text in texts for line in text.splitlines() if KEY in line]
    # The only frames that hold it are those of the test, which were given it.
    assert {line.strip() for line in found} <= {f"api_key = '{KEY}'"}


def test_without_the_extra_a_run_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(JudgeRunError, match=r"pip install 'asr-calibration\[judge\]'"):
        Transport("https://example.org/v1", "k")


def test_a_key_that_cannot_be_sent_is_refused_and_not_shown() -> None:
    with pytest.raises(JudgeRunError, match="characters that no key has") as caught:
        Transport("https://example.org/v1", "sk-gehéim")
    assert "heim" not in str(caught.value)
