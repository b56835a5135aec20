"""Everything about one set of ratings at once: the parts fit together and the edges hold."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from calibration.agreement.inference import INTERVALS, agreement_panel
from calibration.agreement.ratings import count_patterns, weight_matrix
from calibration.agreement.study import Options, study
from calibration.reporting.sections.agreement import pair_tables
from tests.agreement.test_resampling import ratings

BEFORE = [("first", "no"), ("second", "no"), ("third", "no")]
PATHS = [*([*BEFORE[:k], (BEFORE[k][0], "yes")] for k in range(3)), BEFORE]


def test_questions_and_pairs_share_out_the_same_disagreement() -> None:
    found = study(ratings(150, seed=1), n_classes=4, paths=PATHS)
    at_questions = [node.share.observed.value for node in found.nodes.values()]
    between = [confusion.share.observed.value for confusion in found.confusions]
    assert sum(at_questions) == pytest.approx(1)  # type: ignore[arg-type]
    assert sum(between) == pytest.approx(1)  # type: ignore[arg-type]
    first = [c.share.observed.value for c in found.confusions if 0 in (c.first, c.second)]
    assert sum(first) == pytest.approx(at_questions[0])  # type: ignore[arg-type]
    assert between == sorted(between, reverse=True)  # type: ignore[type-var]
    # The deeper the question, the fewer items come to it.
    n_items = [node.n_items for node in found.nodes.values()]
    assert list(found.nodes) == ["first", "second", "third"]
    assert n_items == sorted(n_items, reverse=True)
    assert n_items[0] > n_items[2] > 0


def test_bounds_are_reached_as_often_as_the_interval_says() -> None:
    found = study(ratings(120, seed=3), n_classes=4)
    tentative, rely = found.bootstrap.reaches.values()
    assert tentative is not None
    assert rely is not None
    assert rely < tentative
    low, high = found.bootstrap.percentile.interval or (0, 0)
    assert (low >= 0.667) == (tentative >= 0.975)
    assert (high < 0.8) == (rely <= 0.025)
    same, other = (study(ratings(120, seed=3), n_classes=4, options=Options(seed=k)).bootstrap
                   for k in (0, 1))  # fmt: skip
    assert same.percentile.interval == found.bootstrap.percentile.interval
    assert other.percentile.interval != found.bootstrap.percentile.interval


def test_groups_hold_their_own_items_alone() -> None:
    codes = ratings(90, seed=4)
    group = ["w1"] * 30 + ["w2"] * 60
    found = study(codes, n_classes=4, group=group)
    alone = study(codes[30:], n_classes=4)
    assert found.groups["w2"].alpha == alone.alpha
    pairable = count_patterns(codes, n_classes=4).pairable()
    assert sum(g.n_items for g in found.groups.values()) == found.n_items == pairable.n_items
    assert found.costly[0].item in np.flatnonzero((codes >= 0).sum(axis=1) >= 2)
    with pytest.raises(ValueError, match="one entry an item"):
        study(codes, n_classes=4, group=["w1"])


def test_weights_reach_coefficients_pairs_and_bootstrap() -> None:
    codes = ratings(80, seed=5)
    plain = study(codes, n_classes=4)
    linear = study(codes, n_classes=4, options=Options(weights=weight_matrix("linear", 4)))
    for of in ("krippendorff_alpha", "gwet_ac", "fleiss_kappa", "conger_kappa", "light_kappa"):
        assert linear.coefficients[of].value != plain.coefficients[of].value
    assert linear.pairs[0].kappa.value != plain.pairs[0].kappa.value
    alpha = linear.coefficients["krippendorff_alpha"]
    assert linear.bootstrap.percentile.value == alpha.value
    assert linear.specific == plain.specific


def test_clusters_change_intervals_and_not_values() -> None:
    codes = np.repeat(ratings(50, seed=6, missing=0.0), 3, axis=0)
    cluster = np.repeat(np.arange(50), 3)
    plain = study(codes, n_classes=4)
    clustered = study(codes, n_classes=4, cluster=cluster)
    for name, found in clustered.coefficients.items():
        assert found.value == pytest.approx(plain.coefficients[name].value)
    wide, narrow = (s.coefficients["krippendorff_alpha"] for s in (clustered, plain))
    assert (wide.half_width or 0) > 1.5 * (narrow.half_width or 1)
    assert wide.method.endswith("by cluster")
    assert "of clusters" in clustered.bootstrap.percentile.method


@pytest.mark.parametrize("interval", INTERVALS)
def test_every_interval_holds_the_value_and_says_its_method(interval: str) -> None:
    found = agreement_panel(
        ratings(60, seed=7, raters=2), n_classes=4, interval=interval,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    assert list(found) == [
        "percent_agreement", "krippendorff_alpha", "gwet_ac", "fleiss_kappa",
        "brennan_prediger", "conger_kappa", "scott_pi", "cohen_kappa",
    ]  # fmt: skip
    words = {"jackknife": "jackknife", "percentile": "percentile", "bca": "BCa", "gwet": "Gwet"}
    for name, estimated in found.items():
        low, high = estimated.interval or (1, 0)
        assert low <= (estimated.value or 0) <= high, name
        drawn = interval in ("percentile", "bca")
        of_table = name == "cohen_kappa" and not drawn
        assert ("Fleiss-Cohen-Everitt" if of_table else words[interval]) in estimated.method


@pytest.mark.parametrize("interval", ["percentile", "bca"])
def test_specific_agreement_is_resampled_too(interval: str) -> None:
    codes = ratings(80, seed=9)
    drawn = study(codes, n_classes=5, options=Options(interval=interval)).specific
    plain = study(codes, n_classes=5).specific
    for one, other in zip(drawn[:4], plain[:4], strict=True):
        assert (one.value, one.n) == (other.value, other.n)
        assert "bootstrap of items" in one.method
        assert one.interval != other.interval
        assert one.se == pytest.approx(other.se, rel=0.2)
    assert drawn[4] == plain[4]
    assert drawn[4].value is None


def test_cohens_bootstrap_looks_at_shared_items_alone() -> None:
    codes = ratings(60, seed=7, raters=2)
    both = codes[(codes >= 0).all(axis=1)]
    rng = np.random.default_rng(1)
    one, other = (
        agreement_panel(c, n_classes=4, interval="percentile", rng=rng)["cohen_kappa"]
        for c in (codes, both)
    )
    assert one.value == other.value
    assert one.n == other.n == len(both)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"interval": "guess"}, "interval must be one of"),
        ({"interval": "bca"}, "needs rng"),
        ({"interval": "gwet", "cluster": [1, 2]}, "over items"),
    ],
)
def test_wrong_intervals_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        agreement_panel([[0, 0], [0, 1]], n_classes=2, **settings)


@pytest.mark.parametrize(
    "codes",
    [
        [[0, 0], [0, 0]], [[0, 1]], [[0], [1]], [[0, -1], [-1, 1]], [[-1, -1]],
        np.zeros((0, 3), dtype=int), [[0, 0], [1, 1]], [[0, 1], [0, 1]],
    ],
)  # fmt: skip
@pytest.mark.parametrize("interval", INTERVALS)
def test_degenerate_ratings_have_a_status_everywhere(codes: Any, interval: str) -> None:
    found = study(
        codes, n_classes=3, options=Options(interval=interval),
        paths=[[("a", "yes")], [("a", "no"), ("b", "yes")], [("a", "no"), ("b", "no")]],
        group=["w"] * len(codes),
    )  # fmt: skip

    def check(value: Any) -> None:
        if isinstance(value, dict):
            if "status" in value and value.get("value", 0) is None:
                assert value["status"].startswith(("not_estimable", "no ", "undefined"))
            for part in value.values():
                check(part)
        elif isinstance(value, list | tuple):
            for part in value:
                check(part)
        elif isinstance(value, float):
            assert np.isfinite(value)

    check(asdict(found))


def test_fleiss_without_items_rated_once_stands_beside_the_coefficient() -> None:
    # Of the three pairs: agreement 2/3, shares 1/2 each, so (2/3 - 1/2) / (1/2).
    twice = [[0, 0], [1, 1], [0, 1]]
    found = study([*twice, [0, -1], [0, -1]], n_classes=2)
    assert found.fleiss_of_pairs == pytest.approx(1 / 3)
    assert found.coefficients["fleiss_kappa"].value != pytest.approx(1 / 3)
    assert study(twice, n_classes=2).fleiss_of_pairs is None
    assert study([[0, -1], [1, -1]], n_classes=2).fleiss_of_pairs is None


def test_of_many_raters_the_ten_pairs_with_the_lowest_alpha_are_shown() -> None:
    codes = np.random.default_rng(4).integers(0, 2, size=(30, 12))
    codes[:, 11] = 1 - codes[:, 0]  # these two never agree
    found = study(codes, n_classes=2)
    raters = [f"r{k}" for k in range(12)]

    def tables(by: tuple[str, ...]) -> list[str]:
        shown = pair_tables(found, ["no", "yes"], raters, most=None if by else 10)
        return [str(section.title) for section in shown]

    few, every = tables(()), tables(("pair",))
    assert few[0] == "Pairs of raters: the 10 with the lowest alpha of 66"
    assert few[1].startswith("r0 (rows) x r11 (columns)")
    assert (len(few), len(every)) == (11, 66)
