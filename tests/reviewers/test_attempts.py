"""Two attempts, a day and a practice round apart; then a lead decides; 90 days."""

from datetime import datetime, timedelta

from calibration.reviewers.certification import Attempt, AttemptRule, next_attempt

NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001  the store keeps UTC without zone

DAY = timedelta(days=1)

HOUR = timedelta(hours=1)


def attempt(at: datetime) -> Attempt:
    return Attempt(started_at=at, ended_at=at + HOUR)


def test_the_first_attempt_is_free() -> None:
    assert next_attempt(NOON, []).may


def test_an_open_examination_is_finished_first() -> None:
    assert next_attempt(NOON, [Attempt(started_at=NOON, ended_at=None)]).step == "go_on"


def test_a_day_must_pass_even_after_practice() -> None:
    one = attempt(NOON)
    found = next_attempt(NOON + DAY, [one], rounds=[NOON + 2 * HOUR])
    assert (found.step, found.at) == ("wait", NOON + HOUR + DAY)
    assert "practice" not in found.why
    assert next_attempt(NOON + HOUR + DAY, [one], rounds=[NOON + 2 * HOUR]).may


def test_practice_must_lie_between_two_attempts() -> None:
    one, later = attempt(NOON), NOON + 2 * DAY
    assert next_attempt(later, [one]).step == "practise"
    assert next_attempt(later, [one], rounds=[NOON]).step == "practise"  # it came before
    assert next_attempt(later, [one], rounds=[NOON + DAY]).may


def test_a_third_attempt_needs_a_lead_and_an_own_form() -> None:
    two = [attempt(NOON), attempt(NOON + 2 * DAY)]
    now = NOON + 5 * DAY
    practised = [NOON + 4 * DAY]
    refused = next_attempt(now, two, rounds=practised)
    assert (refused.step, refused.own_form) == ("lead", True)
    allowed = next_attempt(now, two, rounds=practised, allowed=[NOON + 3 * DAY])
    assert (allowed.may, allowed.own_form) == (True, True)
    assert next_attempt(now, two, allowed=[NOON + 3 * DAY]).step == "practise"


def test_a_decision_is_used_up_by_the_attempt_after_it() -> None:
    three = [attempt(NOON), attempt(NOON + 2 * DAY), attempt(NOON + 4 * DAY)]
    now, practised = NOON + 9 * DAY, [NOON + 5 * DAY]
    assert next_attempt(now, three, rounds=practised, allowed=[NOON + 3 * DAY]).step == "lead"
    again = next_attempt(now, three, rounds=practised, allowed=[NOON + 3 * DAY, NOON + 5 * DAY])
    assert again.may


def test_a_certificate_needs_no_attempt_until_it_ends_or_a_lead_says_so() -> None:
    until = NOON + 90 * DAY
    held = next_attempt(NOON + DAY, [attempt(NOON)], certified_until=until)
    assert (held.step, held.at) == ("certified", until - 14 * DAY)
    again = next_attempt(
        NOON + 3 * DAY, [attempt(NOON)], rounds=[NOON + 2 * DAY], allowed=[NOON + DAY],
        certified_until=until,
    )  # fmt: skip
    assert again.may
    assert not again.own_form


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
