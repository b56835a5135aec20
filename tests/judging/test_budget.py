"""Money of a run: by hand, and as invariants."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.errors import InputError
from calibration.judging.budget import (
    Budget,
    Cap,
    Learned,
    Prices,
    Usage,
    characters_of,
    estimate,
    read_usage,
)
from calibration.judging.requests import Request

TOLD = {"prompt_tokens": 9, "completion_tokens": 2}


def request(text: str = "x" * 100, output_limit: int = 50) -> Request:
    body = {"messages": [{"role": "user", "content": text}]}
    return Request(trace_id="t", content_hash="c", sample=0, body=body, output_limit=output_limit)


def usage(**fields: Any) -> Usage | None:
    return read_usage(json.dumps({"usage": fields}))


def test_a_cap_in_money_needs_prices() -> None:
    with pytest.raises(InputError, match="needs prices"):
        Budget(Cap(amount=1, unit="usd"))
    Budget(Cap(amount=1, unit="tokens"))


@pytest.mark.parametrize("amount", [0, -1, float("nan"), float("inf")])
def test_a_cap_is_above_zero(amount: float) -> None:
    with pytest.raises(InputError, match="above 0"):
        Cap(amount=amount, unit="tokens")


def test_usage_missing_keeps_the_reservation() -> None:
    # 2 per million in, 8 out: bytes / 2 x 2 + 50 x 8, in millionths of a dollar.
    budget = Budget(Cap(amount=1, unit="usd"), Prices(input=2.0, output=8.0))
    ask = request()
    bound = -(-ask.input_bytes // 2)
    reserved = budget.reserve(ask)
    assert reserved == (bound * 2 + 50 * 8) * 10**6
    assert budget.settle(reserved, None) == reserved
    assert budget.spent == reserved
    again = budget.reserve(ask)
    assert again is not None
    # 30 plain at 2, 10 at 2 (no price of their own), 5 out at 8: 120 millionths.
    assert budget.settle(again, Usage(input=40, cached=10, output=5)) == 120 * 10**6


def test_a_cache_that_is_written_at_more_is_reserved_at_more() -> None:
    cheap = Budget(Cap(amount=1, unit="usd"), Prices(input=2.0, output=0.0, cached=0.2))
    dear = Budget(Cap(amount=1, unit="usd"), Prices(input=2.0, output=0.0, cache_write=2.5))
    assert dear.worst(request()) == 1.25 * cheap.worst(request())


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"prompt_tokens": 10}, None),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None),
        ({"prompt_tokens": -1, "completion_tokens": 2}, None),
        ({"prompt_tokens": "9", "completion_tokens": 2}, None),
        ({"prompt_tokens": True, "completion_tokens": 2}, None),
        ({**TOLD}, Usage(input=9, output=2)),
        ({**TOLD, "total_tokens": 31}, Usage(input=9, output=22)),
        (
            {**TOLD, "prompt_tokens_details": {"cached_tokens": 6}},
            Usage(input=9, output=2, cached=6),
        ),
        (
            {**TOLD, "prompt_tokens_details": {"cached_tokens": 99}},
            Usage(input=9, output=2, cached=9),
        ),
        (
            {**TOLD, "prompt_cache_hit_tokens": 3},
            Usage(input=9, output=2, cached=3),
        ),
    ],
)  # fmt: skip
def test_usage_is_read_as_servers_write_it(fields: dict[str, Any], expected: Usage | None) -> None:
    assert usage(**fields) == expected


@pytest.mark.parametrize("body", ["", "null", "[]", '{"usage": null}', "[" * 5000, '{"usage": 3}'])
def test_an_answer_without_usage_has_none(body: str) -> None:
    assert read_usage(body) is None


def test_the_bound_is_learned_after_twenty_answers() -> None:
    learned = Learned()
    for _ in range(19):
        learned.take(characters=100, size=100, usage=Usage(input=20, output=1))
    assert learned.a_byte == 0.5
    learned.take(characters=100, size=100, usage=Usage(input=24, output=1))
    assert learned.a_byte == pytest.approx(0.3)


def test_a_language_of_many_tokens_raises_the_bound_at_once() -> None:
    learned = Learned()
    learned.take(characters=100, size=300, usage=Usage(input=240, output=1))
    assert learned.a_byte == pytest.approx(1.0)


@given(
    st.lists(
        st.tuples(st.integers(1, 400), st.integers(0, 100), st.sampled_from("arm")), max_size=60
    ),
    st.integers(50, 2000),
)
def test_the_cap_holds_whatever_is_answered(calls: list[tuple[int, int, str]], cap: int) -> None:
    budget = Budget(Cap(amount=cap, unit="tokens"))
    held: list[int] = []
    for length, used, what in calls:
        ask = request("x" * length, output_limit=used)
        reserved = budget.reserve(ask)
        if reserved is None:
            continue
        held.append(reserved)
        assert budget.spent + budget.reserved <= cap
        if what == "r":
            budget.release(held.pop(0))
        elif what == "a":
            # No server used more than the bound.
            first = held.pop(0)
            budget.settle(first, Usage(input=max(1, first - used), output=min(used, first - 1)))
        else:
            budget.settle(held.pop(0), None)
        assert budget.spent + budget.reserved <= cap
    assert budget.reserved == sum(held)


def test_the_estimate_follows_what_was_learned() -> None:
    learned = Learned()
    ask = request("x" * 700)
    characters = characters_of(ask)
    for n in range(40):
        line = {
            "status": 200, "content": f"c{n // 2}", "sample": 0, "latency_s": 2.0,
            "characters": characters, "bytes": characters,
            "usage": {"input": 150, "output": 20, "cached": 75},
        }  # fmt: skip
        learned.take_line(line)
    found = estimate(
        [ask] * 100,
        prices=Prices(input=1.0, cached=0.5, output=2.0),
        learned=learned,
        concurrency=4,
    )
    # Two calls a sample: 200 x (75 x 1 + 75 x .5 + 20 x 2) millionths; 200 x 2 s / 4.
    assert found.requests == 200
    assert found.usd == pytest.approx(200 * 152.5e-6)
    assert found.seconds == 100
    assert found.usd_low is not None
    assert found.usd_high is not None
    assert found.usd_low < 200 * 152.5e-6 < found.usd_high
    limited = estimate([ask] * 100, learned=learned, requests_per_minute=60)
    assert (limited.seconds, limited.usd) == (200, None)
