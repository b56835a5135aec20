"""Two attempts, a day and a practice round apart; then a lead decides; 90 days."""

from datetime import datetime, timedelta

import pytest

from calibration.reviewers.certification import Attempt, AttemptRule, next_attempt

NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001  the store keeps UTC without zone
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


def attempt(at: datetime) -> Attempt:
    return Attempt(started_at=at, ended_at=at + HOUR)


def at(*days: float) -> list[datetime]:
    return [NOON + day * DAY for day in days]


@pytest.mark.parametrize(
    ("now", "begun", "rounds", "allowed", "step", "own_form"),
    [
        (0, [], [], [], "may", False),
        (2, [0], [], [], "practise", False),
        (2, [0], [0], [], "practise", False),  # it came before
        (2, [0], [1], [], "may", False),
        # A third attempt needs a lead and an own form.
        (5, [0, 2], [4], [], "lead", True),
        (5, [0, 2], [4], [3], "may", True),
        (5, [0, 2], [], [3], "practise", True),
        # A decision is used up by the attempt after it.
        (9, [0, 2, 4], [5], [3], "lead", True),
        (9, [0, 2, 4], [5], [3, 5], "may", True),
    ],
)
def test_two_attempts_with_practice_between_then_a_lead(
    now: float, begun: list[float], rounds: list[float], allowed: list[float], step: str,
    own_form: bool,
) -> None:  # fmt: skip
    attempts = [attempt(when) for when in at(*begun)]
    found = next_attempt(NOON + now * DAY, attempts, rounds=at(*rounds), allowed=at(*allowed))
    assert ("may" if found.may else found.step, found.own_form) == (step, own_form)


def test_a_day_must_pass_even_after_practice() -> None:
    one = attempt(NOON)
    found = next_attempt(NOON + DAY, [one], rounds=[NOON + 2 * HOUR])
    assert (found.step, found.at) == ("wait", NOON + HOUR + DAY)
    assert next_attempt(NOON, [Attempt(started_at=NOON, ended_at=None)]).step == "go_on"
    assert "practice" not in found.why
    assert next_attempt(NOON + HOUR + DAY, [one], rounds=[NOON + 2 * HOUR]).may


def test_a_certificate_needs_no_attempt_until_it_ends_or_a_lead_says_so() -> None:
    one, until = [attempt(NOON)], NOON + 90 * DAY
    held = next_attempt(NOON + DAY, one, certified_until=until)
    assert (held.step, held.at) == ("certified", until - 14 * DAY)
    again = next_attempt(NOON + 3 * DAY, one, rounds=at(2), allowed=at(1), certified_until=until)
    assert (again.may, again.own_form) == (True, False)


def test_after_a_certificate_attempts_count_anew() -> None:
    used = [attempt(NOON - 3 * DAY), attempt(NOON)]
    until = NOON + 90 * DAY
    for now in (until - 14 * DAY, until + DAY):
        found = next_attempt(now, used, certified_until=until)
        assert (found.may, found.used, found.own_form) == (True, 0, False)
    since = until - 14 * DAY
    renewed = [*used, attempt(until + DAY)]
    found = next_attempt(until + DAY + 2 * HOUR, renewed, certified_until=until)
    assert (found.step, found.used, found.counted_from) == ("wait", 1, since)


def test_the_numbers_can_be_set() -> None:
    rule = AttemptRule(attempts=1, apart=HOUR)
    assert next_attempt(NOON + DAY, [attempt(NOON)], rule=rule).step == "lead"
