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


def test_who_is_steady_or_rises_is_not_marked() -> None:
    of = found(sequence((27, 30), (90, 100)))
    assert (of.status, of.marked_at, of.since) == ("steady", None, None)
    assert max(of.path) < (of.limit or 0)
    assert found(sequence((15, 30), (95, 100))).status == "steady"
    of = found([True] * 30)  # from the last check of the baseline on
    assert (of.status, of.path) == ("steady", ())
    assert of == found([True] * 30)


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
    again = found(hits + [True] * 60)  # what is marked stays marked
    assert (again.status, again.marked_at) == ("marked", of.marked_at)


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


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("baseline", 19, "must be at least 20"), ("fall", 0.0, "must be in"),
        ("fall", 0.5, "must be in"), ("false_alarms", 0.0, "must be in"),
    ],
)  # fmt: skip
def test_settings_that_make_no_test_are_refused(name: str, value: float, message: str) -> None:
    with pytest.raises(ValueError, match=f"{name} {message}"):
        found([True] * 40, **{name: value})


def test_blocks_hold_every_check_once() -> None:
    found_blocks = blocks([True] * 25)
    assert [(first, last) for first, last, _ in found_blocks] == [(1, 10), (11, 20), (21, 25)]
    assert sum(e.n for _, _, e in found_blocks) == 25
    assert blocks([]) == ()
