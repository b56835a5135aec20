"""Prices, the hard cap and the estimate: against the bill of the server."""

import random
from pathlib import Path

import pytest

from calibration.errors import JudgeRunError
from calibration.judging import requests
from calibration.judging.budget import Budget, Cap, CostEstimate, Learned, Prices, tokens_of
from calibration.judging.journal import Ended, Sent, Tokens
from calibration.judging.pace import Rates
from calibration.judging.requests import Request
from calibration.judging.runner import dry_run
from tests.judging.fake_judge import FakeJudge, content, traces
from tests.judging.runs import PRICES, judged, planned
from tests.judging.scripted_server import Asked, ScriptedServer


def request(text: str = "x" * 100, limit: int = 50) -> Request:
    body = {"messages": [{"role": "user", "content": text}]}
    return Request(trace_id="t", content_hash="c", sample=0, output_limit=limit, body=body)


def sent(input_bytes: int = 1000, characters: int = 1000) -> Sent:
    return Sent(
        key="k", trace_id="t", sample=0, attempt=1, input_bytes=input_bytes,
        input_characters=characters, output_limit=50, reserved_tokens=550, reserved_usd=0.01,
    )  # fmt: skip


def test_a_cap_in_money_without_prices_refuses_to_start(tmp_path: Path) -> None:
    with pytest.raises(JudgeRunError, match="needs prices"):
        planned(tmp_path, cap=Cap(usd=1.0), prices=None)
    assert not (tmp_path / "s.judge").exists()
    with pytest.raises(JudgeRunError, match="must be positive: 0"):
        Cap(tokens=0)
    with pytest.raises(JudgeRunError, match="price of output tokens"):
        Prices(input=1.0, output=-1.0)


def test_reserved_is_the_dearest_input() -> None:
    prices = Prices(input=1.0, output=2.0, cached=0.1, written=1.25)
    found = Budget(Cap(usd=1.0), prices).reserve(request(), "k", attempt=1)
    assert found is not None
    # 100 characters and 32 of their JSON are 132 bytes, 67 tokens at most: 67 x 1.25 + 50 x 2.
    assert found.reserved_usd == pytest.approx((67 * 1.25 + 50 * 2.0) / 1e6)


def test_a_prompt_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[object] = []
    monkeypatch.setattr(
        requests,
        "_canonical",
        lambda value: measured.append(value) or "é" * 50,  # type: ignore[func-returns-value]
    )
    one = request()
    for _ in range(2):
        sent = Budget(Cap()).reserve(one, "k", attempt=1)
        assert sent is not None
        assert (sent.input_bytes, sent.input_characters) == (100, 50)
    assert len(measured) == 1


def test_the_bound_of_the_input_is_learned_from_twenty_answers() -> None:
    learned = Learned()
    for _ in range(19):
        learned.note(Ended(sent=sent(), kind="answered", tokens=Tokens(input=200, output=9)))
    assert learned.most_input(1000) == 501
    learned.note(Ended(sent=sent(), kind="answered", tokens=Tokens(input=400, output=9)))
    # 1.25 x 0.4 tokens a byte.
    assert learned.most_input(1000) == 501
    assert learned.most_input(2000) == 1001
    # Chinese: three bytes a character, about one token a character.
    learned.note(Ended(sent=sent(3000, 1000), kind="answered", tokens=Tokens(input=2400, output=1)))
    assert learned.most_input(1000) == 1001


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ('{"prompt_tokens": 9, "completion_tokens": 3}', Tokens(input=9, output=3)),
        ('{"input_tokens": 9, "output_tokens": 3}', Tokens(input=9, output=3)),
        (
            '{"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12,'
            ' "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},'
            ' "completion_tokens_details": {"reasoning_tokens": 2}}',
            Tokens(input=9, output=3, cached=4, written=2),
        ),
        (
            '{"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 20}',
            Tokens(input=9, output=11),
        ),
        (
            '{"input_tokens": 9, "output_tokens": 3, "cache_read_input_tokens": 100}',
            Tokens(input=109, output=3, cached=100),
        ),
        ("null", None),
        ("[]", None),
        ('{"prompt_tokens": 0, "completion_tokens": 0}', None),
        ('{"prompt_tokens": 9}', None),
        ('{"prompt_tokens": -9, "completion_tokens": 3}', None),
        ('{"prompt_tokens": true, "completion_tokens": 3}', None),
        ('{"prompt_tokens": "9", "completion_tokens": 3}', None),
    ],
)
def test_usage_is_read_or_left(usage: str, expected: Tokens | None) -> None:
    assert tokens_of(f'{{"usage": {usage}}}') == expected


def test_what_may_be_on_the_bill_stays_spent() -> None:
    budget = Budget(Cap(tokens=1000))
    for ended, spent, possible in (
        (Ended(sent=sent(), kind="failed"), 0, 0),
        (Ended(sent=sent(), kind="failed", possible=True), 0, 550),
        (Ended(sent=sent(), kind="answered", tokens=Tokens(input=90, output=10)), 100, 550),
    ):
        budget.note(ended, True)
        assert (budget.spent.tokens, budget.possible.tokens) == (spent, possible)
    budget.note(Ended(sent=sent(), kind="in_doubt", possible=True), False)  # of another run
    assert budget.possible.tokens == 550
    assert budget.reserve(request("x" * 400, 200), "k", attempt=1) is None


@pytest.mark.parametrize("seed", [
    *range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 50)),
])  # fmt: skip
def test_the_bill_never_exceeds_the_cap(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    faults = ("usage absent", "usage null", "usage half", "silence", "reset", "short", "length",
              "502 html", "500", "429 ms")  # fmt: skip
    share = rng.choice((0.1, 0.3, 0.6))

    def rule(asked: Asked) -> str:
        return rng.choice(faults) if rng.random() < share else "good"

    items = traces(60)
    expected = dry_run(tmp_path / "s.judge", FakeJudge(), items, prices=PRICES)
    assert expected.usd is not None
    cap = 0.4 * expected.usd
    folder = planned(tmp_path, cap=Cap(usd=cap))
    with ScriptedServer(content, rule, scale=1000) as server:
        for _ in range(2):  # resumed once: what was spent before counts
            progress, _verdicts = judged(
                folder, server.url, items, scale=1000, deadline_s=0.3, seed=seed,
                rates=Rates(start=8),
            )  # fmt: skip
            assert server.ledger.bill <= cap
            known = (progress.spent_usd or 0.0) + (progress.possible_usd or 0.0)
            assert server.ledger.bill <= known + 1e-9 <= cap + 2e-9
    assert progress.state == "capped"


def test_a_cap_in_tokens_needs_no_prices(tmp_path: Path) -> None:
    folder = planned(tmp_path, cap=Cap(tokens=3_000), prices=None)
    with ScriptedServer(content) as server:
        progress, verdicts = judged(folder, server.url, traces(60))
    assert (progress.state, progress.spent_usd) == ("capped", None)
    assert 2_000 < progress.spent_tokens + progress.possible_tokens <= 3_000
    assert "cap" in progress.reason
    assert 0 < len(verdicts) < 60


def test_the_dry_run_is_right_once_the_ratio_is_learned(tmp_path: Path) -> None:
    judge = FakeJudge(samples=2)

    def rule(asked: Asked) -> str:
        number = int(asked.trace[1:])
        return (
            ("good", "good", "fences", "length", "good", "429 ms")[number % 6]
            if asked.attempt == 1
            else "good"
        )

    runs, items = tmp_path / "s.judge", traces(120)
    with ScriptedServer(content, rule, scale=100) as server:
        judged(planned(tmp_path, "first", judge), server.url, items[:40], judge, scale=100)
        before = server.ledger.bill
        expected = dry_run(runs, judge, items, prices=PRICES, rates=Rates(requests_per_minute=60))
        judged(planned(tmp_path, "rest", judge), server.url, items, judge, scale=100)
        bill = server.ledger.bill - before
    assert expected.usd is not None
    assert abs(expected.usd - bill) <= 0.15 * bill
    assert expected.usd_low is not None
    assert expected.usd_high is not None
    assert expected.usd_low < bill < expected.usd_high
    assert expected.minutes == pytest.approx(expected.requests / 60)
    done = dry_run(runs, judge, items, prices=PRICES)
    assert (done.requests, done.usd) == (0, 0.0)


def test_a_dry_run_before_anything_is_known(tmp_path: Path) -> None:
    found = dry_run(tmp_path / "s.judge", FakeJudge(), traces(10))
    assert isinstance(found, CostEstimate)
    assert (found.requests, found.answered, found.usd, found.minutes) == (10, 0, None, None)
    assert not (tmp_path / "s.judge").exists()
