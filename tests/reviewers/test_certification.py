"""The pass rule: agreement as a whole, then each class, topped up once."""

import numpy as np
import pytest
from scipy.stats import beta

from calibration.reviewers.certification import (
    ClassCount,
    PassRule,
    decide,
    hits_needed,
    recall_chance,
)

FULL = [ClassCount(outcome=name, hits=7, n=7) for name in "abcde"]


def with_class(hits: int, n: int) -> list[ClassCount]:
    return [ClassCount(outcome="weak", hits=hits, n=n), *FULL]


@pytest.mark.parametrize(
    ("hits", "n"), [(0, 0), (0, 5), (4, 7), (7, 7), (9, 15), (20, 27), (60, 70)]
)
@pytest.mark.parametrize("recall", [0.3, 0.6, 0.9])
def test_the_chance_is_the_tail_of_the_beta(hits: int, n: int, recall: float) -> None:
    tail = beta.sf(recall, 1 + hits, 1 + n - hits)
    assert recall_chance(hits, n, recall=recall) == pytest.approx(tail, abs=1e-12)


@pytest.mark.parametrize("given", [(-1, 5, 0.6), (6, 5, 0.6), (1, 5, 0), (1, 5, 1)])
def test_counts_and_rules_that_are_none(given: tuple[int, int, float]) -> None:
    with pytest.raises(ValueError, match="must be in"):
        recall_chance(*given[:2], recall=given[2])
    for name, value in (("ac1", 1.0), ("recall", 0.0), ("chance", 1.5), ("top_up", 0.0)):
        with pytest.raises(ValueError, match="must be"):
            PassRule(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [3, 7, 10, 11, 15, 27])
def test_the_fewest_hits_of_each_class_of_the_shipped_exams(n: int) -> None:
    tails = beta.sf(0.6, 1 + np.arange(n + 1), 1 + n - np.arange(n + 1))
    assert hits_needed(n, PassRule()) == int(np.argmax(tails >= 0.8))
    assert hits_needed(2, PassRule()) == 3  # 1 - .6^3 = .784: not even both will do


def test_passed_at_the_limit_and_failed_below_it() -> None:
    assert decide(0.70, FULL).status == "passed"
    failed = decide(0.6999, FULL)
    assert failed.status == "failed"
    assert "0.70 is asked for" in failed.reasons[0]
    assert decide(None, FULL).status == "failed"


def test_every_class_that_is_not_shown_is_named() -> None:
    found = decide(0.5, with_class(0, 7))
    assert (found.status, found.short) == ("failed", ("weak",))  # and nothing is topped up
    assert "too few to show it by" in decide(0.8, with_class(2, 2)).reasons[0]
    found = decide(0.8, [ClassCount(outcome=c, hits=2, n=7) for c in "xy"])
    assert (found.short, len(found.reasons)) == (("x", "y"), 2)


def test_a_class_not_shown_is_topped_up_and_fails_only_then() -> None:
    assert decide(0.8, with_class(6, 7)).status == "passed"
    asked = decide(0.8, with_class(5, 7))
    assert (asked.status, asked.short) == ("top_up", ("weak",))
    assert "weak is not shown: 5 of 7 found, 6 are asked for" in asked.reasons[0]
    # On all 15 traces: 11 are asked for.
    assert decide(0.8, with_class(11, 15), topped_up={"weak"}).status == "passed"
    assert decide(0.8, with_class(10, 15), topped_up={"weak"}).status == "failed"
