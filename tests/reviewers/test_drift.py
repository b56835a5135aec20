"""The drift test on sequences that can be followed by hand."""

from typing import Any

import numpy as np
import pytest

from calibration.reviewers.quality import alarm_limit, blocks, drift, sums


def found(hits: list[bool], **options: Any) -> Any:
    return drift(hits, rng=np.random.default_rng(1), **options)


def sequence(*parts: tuple[int, int]) -> list[bool]:
    """Return hits and misses, evenly mixed: (hits, checks) of each part."""
    return [
        (k + 1) * hits // checks > k * hits // checks
        for hits, checks in parts
        for k in range(checks)
    ]


@pytest.mark.parametrize(("n", "needs"), [(0, "30 more checks"), (29, "1 more check")])
def test_before_the_baseline_nothing_is_tested(n: int, needs: str) -> None:
    of = found([True] * n)
    assert of.status == f"not_estimable: needs {needs}"
    assert (of.path, of.limit, of.marked_at, of.since) == ((), None, None, None)
    assert of.change.value is None
    assert of.overall.n == n


def test_from_the_last_check_of_the_baseline_on_it_is() -> None:
    of = found([True] * 30)
    assert (of.status, of.path) == ("steady", ())
    assert of.limit is not None


def test_a_steady_reviewer_is_steady() -> None:
    of = found(sequence((27, 30), (90, 100)))
    assert (of.status, of.marked_at, of.since) == ("steady", None, None)
    assert max(of.path) < (of.limit or 0)


def test_a_fall_is_marked_where_the_sum_passes_the_limit() -> None:
    hits = sequence((27, 30), (27, 30), (20, 50))
    of = found(hits)
    assert of.status == "marked"
    at = of.marked_at - 31
    assert of.path[at] > of.limit >= max(of.path[:at])
    assert abs(of.since - 61) <= 3
    assert of.recent.value == pytest.approx(sum(hits[-30:]) / 30)
    assert of.before.value == pytest.approx(sum(hits[:-30]) / 80)
    assert of.change.value == pytest.approx(of.recent.value - of.before.value)


def test_what_is_marked_stays_marked() -> None:
    fell = sequence((27, 30), (10, 40))
    assert found(fell).marked_at == found(fell + [True] * 60).marked_at
    assert found(fell + [True] * 60).status == "marked"


def test_a_rise_marks_nobody() -> None:
    assert found(sequence((15, 30), (95, 100))).status == "steady"


def test_the_sum_takes_the_baseline_of_all_checks_until_it_last_stood_at_zero() -> None:
    """A hit adds log(1 - .15 / p), a miss log(1 + .15 / (1 - p)); both from the same p."""
    p = (27 + 0.5) / 31
    (path,) = sums(np.array([[True, True, False, True]]), np.array([27]), 30)
    p = (29 + 0.5) / 33
    up, down = np.log(1 + 0.15 / (1 - p)), np.log(1 - 0.15 / p)
    assert path == pytest.approx([0, 0, up, up + down])


def test_an_unsure_baseline_has_a_higher_limit() -> None:
    """The same share of hits of more checks leaves less doubt about p."""
    rng = np.random.default_rng(2)
    assert alarm_limit(25, 30, rng=rng) > alarm_limit(83, 100, rng=rng)


def test_the_same_checks_have_the_same_limit() -> None:
    assert found([True] * 40) == found([True] * 40)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": 19}, "baseline must be at least 20"),
        ({"fall": 0.0}, "fall must be in"),
        ({"fall": 0.5}, "fall must be in"),
        ({"false_alarms": 0.0}, "false_alarms must be in"),
    ],
)
def test_settings_that_make_no_test_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        found([True] * 40, **options)


def test_blocks_hold_every_check_once() -> None:
    found_blocks = blocks([True] * 25)
    assert [(first, last) for first, last, _ in found_blocks] == [(1, 10), (11, 20), (21, 25)]
    assert sum(e.n for _, _, e in found_blocks) == 25
    assert blocks([]) == ()
