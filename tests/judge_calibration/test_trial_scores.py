"""pass@k and pass^k from corrected verdicts: by hand, by brute force, and where refused."""

from itertools import combinations
from math import comb, prod
from typing import Any

import numpy as np
import pytest

from calibration.judge_calibration.samples import LabelledSample
from calibration.judge_calibration.trial_scores import (
    PassFromVerdicts,
    pass_from_verdicts,
    subset_means,
)
from tests.simulation.judged import Array

# 90 of 100 passed trials are judged passed, and 20 of 100 failed ones: a = (8/7, -2/7).
LABELS = LabelledSample(
    human=np.repeat(np.eye(2), 100, axis=0), verdicts=np.repeat([0, 1, 0, 1], [90, 10, 20, 80])
)
GOOD, BAD = 8 / 7, -2 / 7


def found(
    labels: LabelledSample, verdicts: Array, tasks: Array, *ks: int, **options: Any
) -> tuple[PassFromVerdicts, ...]:
    settings: dict[str, Any] = {
        "success": [True, False], "n_verdicts": 2, "n_resamples": 300,
        "rng": np.random.default_rng(1),
    }  # fmt: skip
    return pass_from_verdicts(labels, verdicts, tasks, ks, **(settings | options))


def trials(*passed: int, n: int) -> tuple[Array, Array]:
    """Return verdicts and tasks of tasks with `n` trials, so many of them judged passed."""
    verdicts = np.concatenate([np.repeat([0, 1], [c, n - c]) for c in passed])
    return verdicts, np.repeat(np.arange(len(passed)), n)


def test_subset_means_are_those_of_all_subsets() -> None:
    rng = np.random.default_rng(3)
    sizes = np.array([7, 5, 2, 1])
    scores = rng.uniform(-0.5, 1.5, (3, 4, 7))
    means = subset_means(scores, sizes, 5)
    for draw, task, k in np.ndindex(3, 4, 6):
        own = scores[draw, task, : sizes[task]].tolist()
        subsets = [prod(chosen) for chosen in combinations(own, k)]
        expected = sum(subsets) / len(subsets) if subsets else 0.0
        assert means[k, draw, task] == pytest.approx(expected, abs=1e-12)


def test_subset_means_of_a_thousand_trials_neither_overflow_nor_cancel() -> None:
    scores = np.repeat([1.0, 0.0], [800, 200])[None]
    means = subset_means(scores, np.array([1_000]), 8)
    assert means[8, 0] == pytest.approx(comb(800, 8) / comb(1_000, 8), rel=1e-10)


def test_figures_by_hand() -> None:
    # 40 tasks with both trials judged passed, 30 with one, 30 with none; 5 tasks of one trial.
    verdicts, tasks = trials(*[2] * 40, *[1] * 30, *[0] * 30, n=2)
    verdicts, tasks = np.r_[verdicts, np.zeros(5, dtype=np.int64)], np.r_[tasks, 200:205]
    one, two, three = found(LABELS, verdicts, tasks, 1, 2, 3, pseudo_count=0.0, widest=1.0)
    assert (two.n_tasks, two.n_too_few) == (100, 5)
    both = (40 * GOOD**2 + 30 * GOOD * BAD + 30 * BAD**2) / 100
    none = (40 * (1 - GOOD) ** 2 + 30 * (1 - GOOD) * (1 - BAD) + 30 * (1 - BAD) ** 2) / 100
    assert two.pass_hat_k.value == pytest.approx(both)
    assert two.pass_at_k.value == pytest.approx(1 - none)
    # Means over tasks: 55 of 100 scores, and five tasks of one trial judged passed.
    assert one.pass_at_k.value == pytest.approx((55 * GOOD + 45 * BAD + 5 * GOOD) / 105)
    assert one.pass_hat_k.value == pytest.approx(one.pass_at_k.value)
    assert one.pass_hat_k.interval == pytest.approx(one.pass_at_k.interval)
    assert (three.n_tasks, three.n_too_few) == (0, 105)
    assert "no task has 3 trials with a verdict" in three.pass_hat_k.status
    low, high = two.pass_hat_k.interval or (1, 0)
    assert low < both < high


def test_verdicts_of_a_judge_without_errors_are_the_outcomes() -> None:
    """Unbiased figures of counts: C(c, k) / C(n, k), as in the figures from labels."""
    passed = [5] * 20 + [3] * 20 + [0] * 20
    labels = LabelledSample(human=np.repeat(np.eye(2), 50, axis=0), verdicts=np.repeat([0, 1], 50))
    (three,) = found(labels, *trials(*passed, n=5), 3, pseudo_count=0.0)
    expected = np.mean([comb(c, 3) / comb(5, 3) for c in passed])
    assert three.pass_hat_k.value == pytest.approx(expected)


def test_the_mean_over_all_outcomes_is_the_truth() -> None:
    """With C known the product is unbiased; that of P(passed | verdict) is not."""
    rates = np.array([[0.9, 0.1], [0.2, 0.8]])
    chances = np.array([0.9, 0.5, 0.2])
    at_passed = chances * rates[0, 0] + (1 - chances) * rates[1, 0]
    score = at_passed * GOOD + (1 - at_passed) * BAD
    assert score == pytest.approx(chances)
    mean = chances.mean()
    given = np.array([0.9 * mean, 0.1 * mean]) / (mean * rates[0] + (1 - mean) * rates[1])
    plug_in = at_passed * given[0] + (1 - at_passed) * given[1]
    assert np.mean(plug_in**4) < 0.65 * np.mean(chances**4)


def test_five_verdicts_and_shares_of_reviewers() -> None:
    """More verdicts than classes, and a label on which two reviewers differ."""
    human = np.r_[np.repeat(np.eye(2), 100, axis=0), [[0.5, 0.5]]]
    labels = LabelledSample(
        human=human, verdicts=np.r_[np.repeat([0, 1, 0, 1, 2], [90, 10, 20, 40, 40]), 0],
        weights=np.r_[np.ones(200), 2.0],
    )  # fmt: skip
    verdicts, tasks = trials(*[2] * 40, *[1] * 30, *[0] * 30, n=2)
    verdicts = np.where((verdicts == 1) & (np.arange(200) % 2 == 0), 2, verdicts)
    (two,) = found(labels, verdicts, tasks, 2, n_verdicts=3)
    (plain,) = found(LABELS, *trials(*[2] * 40, *[1] * 30, *[0] * 30, n=2), 2)
    assert two.pass_hat_k.value == pytest.approx(plain.pass_hat_k.value, abs=0.05)


def test_labels_of_the_trials_are_drawn_with_their_tasks() -> None:
    """Names say which task a label is of; any order of rows gives the same figures."""
    verdicts, tasks = trials(*[3] * 30, *[1] * 30, *[0] * 30, n=3)
    names = np.array([f"t{task:03d}" for task in tasks])
    labelled = np.arange(verdicts.size) % 2 == 0
    # The judge is wrong on every ninth label.
    wrong = np.arange(verdicts.size) % 9 == 0
    human = np.eye(2)[np.where(wrong, 1 - verdicts, verdicts)]
    sample = LabelledSample(
        human=human[labelled], verdicts=verdicts[labelled], clusters=names[labelled]
    )
    (two,) = found(sample, verdicts, names, 2)
    order = np.random.default_rng(2).permutation(verdicts.size)
    (again,) = found(sample, verdicts[order], names[order], 2)
    assert two == again
    (codes,) = found(
        LabelledSample(
            human=human[labelled], verdicts=verdicts[labelled], clusters=tasks[labelled]
        ),
        verdicts, tasks, 2,
    )  # fmt: skip
    assert codes.pass_hat_k.interval == two.pass_hat_k.interval
    (apart,) = found(
        LabelledSample(human=sample.human, verdicts=sample.verdicts), verdicts, names, 2
    )
    assert apart.pass_hat_k.value == pytest.approx(two.pass_hat_k.value)
    assert apart.pass_hat_k.interval != two.pass_hat_k.interval


MANY = trials(*[2] * 40, *[1] * 30, *[0] * 30, n=2)
USELESS = LabelledSample(human=np.tile(np.eye(2), (100, 1)), verdicts=np.repeat([0, 1], 100))


@pytest.mark.parametrize(
    ("labels", "data", "options", "why"),
    [
        (USELESS, MANY, {}, "the judge hardly tells the classes apart (smallest singular value"),
        (LABELS.where(np.arange(200) < 100), MANY, {}, "with a verdict has failed: label more"),
        (LABELS.where(np.arange(200) >= 100), MANY, {}, "verdict has passed: label more traces"),
        (LABELS, trials(*[2] * 9, *[0] * 40, n=2), {}, "9 tasks with 2 trials judged passed"),
        (LABELS, trials(*[1] * 40, n=2), {}, "the trials of all 40 tasks have the same verdicts"),
        (LABELS, trials(*[2] * 15, *[0] * 15, n=2), {}, "the interval of 30 tasks is ± 0.2"),
        (LABELS, MANY, {"widest": 0.01}, "wider than ± 0.01: add tasks, label more traces"),
    ],
)  # fmt: skip
def test_refusals_name_their_cause(
    labels: LabelledSample, data: tuple[Array, Array], options: dict[str, Any], why: str
) -> None:
    (two,) = found(labels, *data, 2, **options)
    assert two.pass_hat_k.value is None
    assert two.pass_hat_k.interval is None
    assert two.pass_hat_k.status.startswith("not_estimable: ")
    assert why in two.pass_hat_k.status


def test_a_judge_whose_errors_do_not_carry_over_is_seen() -> None:
    verdicts, tasks = trials(*[10] * 60, *[9] * 40, n=10)
    (three,) = found(LABELS, verdicts, tasks, 3)
    assert "the judge's error rates are not those of the labels" in three.pass_hat_k.status


def test_a_value_above_one_is_cut_and_says_so() -> None:
    few = LABELS.where(np.arange(200) % 5 == 0)
    (one,) = found(few, *trials(*[4] * 60, *[3] * 45, n=4), 1)
    assert one.pass_at_k.value == 1.0
    assert one.pass_at_k.status.startswith("provisional: 1.")
    assert (one.pass_at_k.interval or (0, 0))[1] == 1.0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tasks": MANY[1][1:]}, "tasks must have shape"),
        ({"verdicts": MANY[0] + 1}, "verdicts must be in"),
        ({"ks": [0]}, "k must be a whole number"),
        ({"ks": [True]}, "k must be a whole number"),
        ({"pseudo_count": np.nan}, "pseudo_count must be"),
        ({"success": [True] * 3}, "human must have shape"),
        ({"confidence_level": 1.0}, "confidence_level must be"),
    ],
)
def test_hostile_input_is_refused(changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"verdicts": MANY[0], "tasks": MANY[1], "ks": [2]}
    given |= {"success": [True, False], "n_verdicts": 2, "rng": np.random.default_rng(1)}
    with pytest.raises(ValueError, match=message):
        pass_from_verdicts(LABELS, **(given | changed))


def test_no_trials_and_no_labels_are_refused() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    (two,) = found(LABELS, nothing, nothing, 2)
    assert (two.n_tasks, two.pass_hat_k.value) == (0, None)
    empty = LabelledSample(human=np.zeros((0, 2)), verdicts=nothing)
    (two,) = found(empty, *MANY, 2)
    assert "no labelled trace with a verdict has passed" in two.pass_hat_k.status
