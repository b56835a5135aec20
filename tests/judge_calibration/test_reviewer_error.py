"""Two phases, the differences of reviewers, and the ceiling of agreement: values by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from calibration.judge_calibration.calibrate import calibrate
from calibration.judge_calibration.post_stratification import class_shares, post_stratified
from calibration.judge_calibration.reviewer_error import (
    noise_ceiling,
    reviewer_effects,
    two_phase,
    two_phase_shares,
)
from calibration.judge_calibration.samples import LabelledSample, production_sums_from_counts
from tests.golden_cases import headline_2

CASES = headline_2()
CREDIT = np.array([1.0, 0.0])
TWO = np.eye(2)
PRODUCTION = production_sums_from_counts([600, 400], credit=CREDIT)


def sample(
    human: NDArray[np.int64], first: NDArray[np.int64], overlap: NDArray[np.bool_]
) -> LabelledSample:
    """Return 60 and 40 labels on the two verdicts."""
    return LabelledSample(
        human=TWO[human], verdicts=np.repeat([0, 1], [60, 40]), first_human=TWO[first],
        overlap=overlap,
    )  # fmt: skip


def half() -> LabelledSample:
    """Return labels of a lenient reviewer: of every second, adjudicated, one in five is wrong."""
    at = np.arange(100)
    truth = np.where(at < 60, at % 10 < 2, at % 10 < 8).astype(np.int64)
    wrong = (truth == 1) & (at % 10 == 0)
    return sample(truth, np.where(wrong, 0, truth), at % 2 == 0)


def test_the_estimate_and_its_parts_by_hand() -> None:
    found = two_phase(half(), PRODUCTION, net=False)
    # First labels: verdict 0 fails at digit 1 alone, .9; verdict 1 passes at 0, 8 and 9, .3.
    assert found.first == pytest.approx(0.6 * 0.9 + 0.4 * 0.3)
    # In the overlap the digits 0, 2, 4, 6, 8 count, and 0 is wrong in both verdicts.
    assert found.correction == pytest.approx(-1 / 5)
    assert found.estimate.value == pytest.approx(0.66 - 0.2)
    assert found.overlap == 50
    assert found.variance_production == pytest.approx(
        (0.6 * 0.7**2 + 0.4 * 0.1**2 - 0.46**2) / 1000
    )
    # c is -1 with probability .2: p q / (m - 1) a stratum, times 1 - m/n.
    by_overlap = 0.6**2 * 0.16 / 29 + 0.4**2 * 0.16 / 19
    assert found.variance_reviewers == pytest.approx(by_overlap / 2)
    assert found.estimate.df == 49


def test_with_full_overlap_both_estimates_agree() -> None:
    whole = replace(half(), overlap=np.ones(100, dtype=bool))
    found = two_phase(whole, PRODUCTION, net=False)
    alone = post_stratified(whole, PRODUCTION, net=False).estimate
    assert found.estimate.value == pytest.approx(alone.value)
    assert found.variance_reviewers == 0
    # Every residual has its own influence; the floor of the strata is left out.
    assert found.estimate.se == pytest.approx(alone.se, rel=0.03)


def test_strata_are_those_of_the_headline_whatever_first_labels_say() -> None:
    """Two unanswered runs join the verdict nearest to the mean of settled labels, 41/52."""
    credit = np.array([1.0, 0.7, 0.0])
    settled = np.repeat([0, 1, 2, 0], [30, 10, 10, 2])
    # Every first label says failure, so that the mean of first labels is nearest to the third.
    whole = LabelledSample(
        human=np.eye(3)[settled], verdicts=np.repeat([0, 1, 2, 3], [30, 10, 10, 2]),
        first_human=np.eye(3)[np.full(52, 2)], overlap=np.ones(52, dtype=bool),
    )  # fmt: skip
    production = production_sums_from_counts([300, 100, 100, 40], credit=credit)
    found = two_phase(whole, production, net=False)
    alone = post_stratified(whole, production, net=False)
    assert alone.strata.groups == (0, 1, 2, 1)
    assert found.estimate.value == pytest.approx(alone.estimate.value, abs=1e-12)
    assert found.estimate.value == pytest.approx((300 + 140 * (10 * 0.7 + 2) / 12) / 540)


def test_shares_sum_to_one_and_make_up_the_rate() -> None:
    found, rate = two_phase_shares(half(), PRODUCTION), two_phase(half(), PRODUCTION, net=False)
    values = np.array([share.value for share in found], dtype=np.float64)
    assert values.sum() == pytest.approx(1)
    assert values @ CREDIT == pytest.approx(rate.estimate.value)
    assert all(share.interval is not None and share.df == 49 for share in found)
    one_phase = class_shares(half(), PRODUCTION)
    assert found[0].se is not None
    assert one_phase[0].se is not None
    assert found[0].se > one_phase[0].se


def test_labels_that_never_vary_have_the_exact_bound_of_the_overlap() -> None:
    every = np.zeros(100, dtype=np.int64)
    found = two_phase(sample(every, every, np.arange(100) % 2 == 0), PRODUCTION, net=False)
    value, interval = found.estimate.value, found.estimate.interval
    assert value == 1.0
    assert interval is not None
    # 50 of 50, not 100 of 100: 1 - b with b = 1 - .025^(1/50).
    assert interval == pytest.approx((0.025 ** (1 / 50), 1.0))


def test_fewer_than_thirty_traces_give_no_rate() -> None:
    few = replace(half(), overlap=np.arange(100) < 29)
    assert two_phase(few, PRODUCTION).estimate.status.startswith(
        "not_estimable: 29 traces have two labels, fewer than 30"
    )
    assert {share.value for share in two_phase_shares(few, PRODUCTION)} == {None}
    with pytest.raises(ValueError, match="first_human and overlap"):
        two_phase(replace(few, overlap=None), PRODUCTION)


@pytest.mark.parametrize(
    ("choices", "status"),
    [
        ({"overlap_random": True}, None),
        ({}, "the traces with two labels are not known to be a random part of the labelled ones"),
        ({"overlap_random": True, "open_disagreements": 2}, "2 open disagreements"),
        ({"overlap_random": True, "estimand": "these_runs"}, "the two-phase rate is one of runs"),
    ],
)
def test_the_headline_says_whether_it_carries_reviewer_error(
    choices: dict[str, Any], status: str | None
) -> None:
    result = calibrate(
        half(), production_verdicts=np.repeat([0, 1], [600, 400]), production_penalties=None,
        credit=CREDIT, design="production", **choices,
    )  # fmt: skip
    assert result.headline_estimate is not None
    if status is None:
        assert (result.headline, result.headline_estimate.net.status) == ("two_phase", "ok")
        assert set(result.variance_parts or {}) == {"production", "labels", "reviewers"}
    else:
        assert result.headline == "post_stratified"
        assert result.headline_estimate.net.status.startswith(f"provisional: {status}")
        assert set(result.variance_parts or {}) == {"production", "labels"}
    parts, se = result.variance_parts, result.headline_estimate.net.se
    assert parts is not None
    assert se is not None
    assert sum(parts.values()) == pytest.approx(se**2)
    sources, alone = result.variance_sources, result.estimates["human_only"].net.se
    assert sources is not None
    assert alone is not None
    assert list(sources)[:3] == ["human_sampling", "judge", "production"]
    assert ("reviewers" in sources) == (status is None)
    assert sum(sources.values()) == pytest.approx(se**2)
    assert sources["human_sampling"] == pytest.approx(alone**2)
    assert sources["human_sampling"] + sources["judge"] == pytest.approx(parts["labels"])


def test_reviewers_who_never_differ_have_no_interval() -> None:
    codes = np.array([[0, 0, -1]] * 5 + [[1, 1, -1]] * 5)
    found = reviewer_effects(codes, codes[:, 0], np.tile(CREDIT, (10, 1)))
    assert [one.value for one in found] == [0.0, 0.0, None]
    assert found[0].interval is None
    assert "no reviewer differs" in found[0].status
    assert found[2].status.startswith("not_estimable")


def test_four_reviewers_are_shrunk_toward_each_other() -> None:
    """Of 300 shared traces the first calls every tenth failure a success; costs take .2.

    The three who are near the median are drawn to .01, and the first, far from it, keeps .04.
    """
    settled = np.arange(300) % 2
    first = np.where(np.arange(300) % 20 == 1, 0, settled)
    codes = np.column_stack([first, settled, settled, settled])
    scores = np.maximum(0.0, np.tile(CREDIT, (300, 1)) - 0.2)
    # 15 of 300 times .8 is .04 for the first; the mean of all is .01.
    of_three = reviewer_effects(codes[:, :3], settled, scores)
    assert [one.value for one in of_three] == pytest.approx([0.04, 0, 0])
    spread = 15 * 0.8**2 - 300 * 0.04**2
    reach = stats.t.ppf(0.975, 897) * (spread / 897 / 300) ** 0.5
    assert of_three[1].interval == pytest.approx((-reach, reach))
    found = reviewer_effects(codes, settled, scores)
    variance, between = spread / 1196 / 300, (0.03**2 + 3 * 0.01**2) / 3
    assert [one.value for one in found[1:]] == pytest.approx([0.01 * variance / between] * 3)
    assert found[0].value == pytest.approx(0.04)
    # Its own variance, 15 of 300, is four times the pooled one.
    reach = stats.t.ppf(0.975, 1196) * (spread / 299 / 300) ** 0.5
    assert found[0].interval == pytest.approx((0.04 - reach, 0.04 + reach))


def test_golden_reviewers() -> None:
    """Each labels traces of his own here: only the differences count."""
    case = CASES["reviewer_effects"]
    differences = case["inputs"]["differences"]
    n = sum(map(len, differences))
    codes, scores = np.full((n, len(differences)), -1), np.zeros((n, 2))
    owner = np.repeat(np.arange(len(differences)), list(map(len, differences)))
    codes[np.arange(n), owner], scores[:, 1] = 1, np.concatenate(differences)
    found = reviewer_effects(codes, np.zeros(n, dtype=np.int64), scores)
    limits = [one.interval or (np.nan, np.nan) for one in found]
    for name, values in (
        ("value", [one.value for one in found]),
        ("low", [low for low, _ in limits]),
        ("high", [high for _, high in limits]),
    ):
        assert values == pytest.approx(case["expected"][name], rel=1e-9)
    # The rule of before draws the first two, who differ, toward the others.
    means = np.array([np.mean(of_one) for of_one in differences])
    far = np.abs(means - np.median(means)) > 0.05
    assert far.tolist()[:1] == case["expected"]["own"][:1] == [True]


def test_the_ceiling_follows_the_share_of_single_labels() -> None:
    at = np.arange(100)
    labelled = half()
    found = noise_ceiling(labelled)
    # One in five of the overlap is wrong; the other half of the labels has the same error.
    assert [found.reviewer.value, found.judge.value] == pytest.approx([0.8, 0.9])
    assert found.reviewer.interval is not None
    assert found.judge.interval is not None
    low, high = found.reviewer.interval
    assert found.judge.interval == pytest.approx((0.5 + low / 2, 0.5 + high / 2))
    whole = noise_ceiling(replace(labelled, overlap=at >= 0))
    assert (whole.judge.value, whole.judge.interval) == (1.0, (1.0, 1.0))
