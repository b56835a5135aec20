"""What items add: the costly items, differences, shares of disagreement."""

from typing import Any

import numpy as np
import pytest

from calibration.agreement.annotators import pairwise_agreement
from calibration.agreement.coefficients import (
    KRIPPENDORFF_ALPHA,
    class_kappas,
    cohen_kappa,
    estimate,
    light_kappa,
)
from calibration.agreement.disagreement import class_pairs, disagreement_shares
from calibration.agreement.inference import change, costly_items
from calibration.agreement.ratings import count_patterns, parting_questions
from calibration.statistics.intervals import NO_ITEM_VARIATION
from tests.agreement.golden import classes_of, codes_of, entries
from tests.agreement.tables import jackknife_se, of_codes
from tests.agreement.test_resampling import ratings


def test_what_an_item_costs_is_the_coefficient_without_it() -> None:
    codes = ratings(50, seed=3)
    whole = of_codes(KRIPPENDORFF_ALPHA, codes, 4).value
    ranked = costly_items(KRIPPENDORFF_ALPHA, codes, n_classes=4, limit=50)
    costs = [item.cost for item in ranked]
    assert costs == sorted(costs, reverse=True)
    assert whole is not None
    for item in ranked[:5]:
        without = of_codes(KRIPPENDORFF_ALPHA, np.delete(codes, item.item, axis=0), 4)
        assert without.value == pytest.approx(whole + item.cost)
    agreeing = [len({c for c in row if c >= 0}) == 1 for row in codes.tolist()]
    assert not any(agreeing[item.item] for item in ranked)
    for nothing in ([[0, 0], [0, 0]], [[0, -1]], [[0, 0], [1, 1]]):
        assert costly_items(KRIPPENDORFF_ALPHA, nothing, n_classes=2) == ()


def test_a_change_on_the_same_items_beats_two_separate_samples() -> None:
    rng = np.random.default_rng(5)
    truth = rng.choice(4, size=(200, 1))
    hard = rng.random((200, 1)) < 0.3

    def once(skill: float) -> Any:
        knows = rng.random((200, 3)) < np.where(hard, 0.2, skill)
        return np.where(knows, truth, rng.choice(4, size=(200, 3)))

    before, after = once(0.9), once(0.98)
    found = change(KRIPPENDORFF_ALPHA, before, after, n_classes=4)
    first, second = (of_codes(KRIPPENDORFF_ALPHA, c, 4) for c in (before, after))
    assert found.value == pytest.approx(second.value - first.value)  # type: ignore[operator]
    assert found.se < np.hypot(first.se, second.se) * 0.95  # type: ignore[arg-type]
    assert found.interval is not None
    assert found.n == 200


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ([[0, 0], [0, 0]], [[0, 0], [1, 0]], "undefined without variation"),
        ([[0, 0], [1, 0]], [[0, -1], [1, -1]], "no item has two ratings"),
        ([[0, 0], [1, 0], [1, 1]], [[0, 0], [1, 0], [1, 1]], "no item adds more"),
    ],
)
def test_a_change_without_ground_is_a_status(before: Any, after: Any, words: str) -> None:
    found = change(KRIPPENDORFF_ALPHA, before, after, n_classes=2)
    assert words in found.status
    assert found.interval is None
    with pytest.raises(ValueError, match="same items"):
        change(KRIPPENDORFF_ALPHA, [[0, 0]], [[0, 0], [1, 1]], n_classes=2)


@pytest.mark.parametrize("entry", entries("krippendorff_alpha_lca"))
def test_shares_by_question_equal_the_outside_values(entry: dict[str, Any]) -> None:
    codes, q = codes_of(entry)
    names = classes_of(entry)
    nodes = list(entry["tree"])
    part = np.zeros((q, q), dtype=int)
    for k, (left, right) in enumerate(entry["tree"].values()):
        for one in left:
            for other in right:
                j, m = names.index(one), names.index(other)
                part[j, m] = part[m, j] = k
    patterns = count_patterns(codes, n_classes=q)
    shares = disagreement_shares(patterns, part, n_parts=len(nodes))
    mine = shares[nodes.index(entry["node"])]
    assert mine.alpha == pytest.approx(entry["expected"], abs=entry["tolerance"])
    assert mine.expected == pytest.approx(entry["expected_disagreement_share"], abs=1e-8)
    assert mine.observed.value == pytest.approx(entry["observed_disagreement_share"], abs=1e-8)
    alpha = estimate(KRIPPENDORFF_ALPHA, patterns).value
    weighed = sum(s.expected * s.alpha for s in shares)  # type: ignore[operator,misc]
    assert weighed == pytest.approx(alpha, abs=1e-12)
    assert sum(s.observed.value for s in shares) == pytest.approx(1)  # type: ignore[misc]


def test_shares_by_pair_count_the_items_and_lift() -> None:
    codes = [[0, 0], [0, 1], [0, 1], [1, 2], [2, 2], [1, 1]]
    pairs, part = class_pairs(3)
    found = disagreement_shares(count_patterns(codes, n_classes=3), part, n_parts=3)
    shares = dict(zip(pairs, found, strict=True))
    assert shares[0, 1].observed.value == pytest.approx(2 / 3)
    assert shares[0, 1].n_items == 2
    # 4 of class 0 and 5 of class 1 in 12 ratings: 2 * 4 * 5 / 11 pairs by chance, 4 seen.
    assert shares[0, 1].lift == pytest.approx(4 / (40 / 11))
    assert shares[0, 2].observed.value == 0
    assert shares[0, 2].observed.interval is not None
    assert shares[0, 2].observed.interval[1] > 0.3
    # All disagreement at one pair keeps an exact bound.
    patterns = count_patterns([[0, 1]] * 5 + [[2, 2]], n_classes=3)
    whole = disagreement_shares(patterns, part, n_parts=3)[0].observed
    assert whole.value == 1
    assert whole.status == NO_ITEM_VARIATION
    assert whole.interval is not None
    assert whole.interval[0] == pytest.approx(0.025 ** (1 / 5))


def test_nothing_to_share_out_is_a_status() -> None:
    _, part = class_pairs(2)
    (share,) = disagreement_shares(count_patterns([[0, 0], [1, 1]], n_classes=2), part, n_parts=1)
    assert share.observed.status.startswith("not_estimable: no disagreement seen")
    assert share.lift == 0


def test_parts_that_are_not_symmetric_or_not_known_and_paths_that_never_part_are_refused() -> None:
    for parts in ([[-1, 0], [1, -1]], [[-1, 2], [2, -1]]):
        with pytest.raises(ValueError, match="symmetric"):
            disagreement_shares(count_patterns([[0, 1]], n_classes=2), parts, n_parts=2)
    with pytest.raises(ValueError, match="never part"):
        parting_questions([[("a", "yes")], [("a", "yes"), ("b", "no")]])


@pytest.mark.parametrize("entry", entries("light_kappa"))
def test_lights_kappa_equals_the_outside_value(entry: dict[str, Any]) -> None:
    codes, q = codes_of(entry)
    value = light_kappa(codes, n_classes=q).value
    assert value == pytest.approx(entry["expected"], abs=entry["tolerance"])


def test_lights_kappa_is_the_mean_of_cohens_and_so_is_its_jackknife() -> None:
    codes = ratings(30, seed=6)
    codes = codes[(codes >= 0).sum(axis=1) >= 2]
    found = light_kappa(codes, n_classes=4)

    def mean_of_pairs(rows: Any) -> float:
        values = [
            cohen_kappa(rows[:, [pair.first, pair.second]], n_classes=4).value
            for pair in pairwise_agreement(rows, n_classes=4)
        ]
        return float(np.mean([v for v in values if v is not None]))

    assert found.value == pytest.approx(mean_of_pairs(codes))
    left_out = [mean_of_pairs(np.delete(codes, i, axis=0)) for i in range(len(codes))]
    assert found.se == pytest.approx(jackknife_se(left_out))
    # Pairs that share nothing are left out.
    codes = np.array([[0, 0, -1], [1, 1, -1], [0, 1, -1], [-1, -1, 1], [0, 0, -1]])
    two = cohen_kappa(codes[:, :2], n_classes=2)
    assert light_kappa(codes, n_classes=2).value == pytest.approx(two.value)
    assert light_kappa([[0, 0], [0, 0]], n_classes=2).value is None


@pytest.mark.parametrize("entry", entries("fleiss_kappa_per_category"))
def test_kappas_of_classes_equal_the_outside_values(entry: dict[str, Any]) -> None:
    codes, q = codes_of(entry)
    found = [e.value for e in class_kappas(count_patterns(codes, n_classes=q))]
    assert found == pytest.approx(entry["expected"], abs=entry["tolerance"])
