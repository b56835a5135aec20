"""Several sets of runs: pairs as they are alone, Holm over families, ranks from the tests."""

from typing import Any

import numpy as np
import pytest

from calibration.statistics.contingency import holm, rank_limits
from calibration.success_rate.comparison import compare_runs
from calibration.success_rate.ranking import RankedRuns, Ranking, rank_runs
from tests.classes import count_runs
from tests.success_rate.rates import rng, runs


def ranked(*numbers: int, **options: Any) -> Ranking:
    """Rank sets of 100 runs of which so many are complete."""
    named = {f"r{n}": runs(n, 0, 100 - n) for n in numbers}
    return rank_runs(named, rng=rng(), n_resamples=200, **options)


def by_name(found: Ranking) -> dict[str, RankedRuns]:
    return {of.name: of for of in found.runs}


def test_a_pair_has_the_figures_that_it_has_alone() -> None:
    found = ranked(60, 90, 62, baseline="r90")
    alone = compare_runs(runs(90, 0, 10), runs(62, 0, 38), rng=rng(), n_resamples=200)
    (pair,) = [of for of in found.pairs if (of.first, of.second) == ("r90", "r62")]
    assert pair.difference == alone.asr
    assert by_name(found)["r62"].rate.asr.value == alone.after.asr.value
    assert [of.name for of in found.runs] == ["r90", "r62", "r60"]
    assert [(of.first, of.second) for of in found.against_baseline] == [
        ("r90", "r60"), ("r90", "r62"),
    ]  # fmt: skip


def test_p_values_are_adjusted_within_each_family_and_go_below_those_of_the_draws() -> None:
    """60 and 62 of 100: se = sqrt(.6 x .4 / 99 + .62 x .38 / 99) = .0690, t = .29."""
    found = ranked(60, 90, 62)
    alone = {(of.first, of.second): of.difference.p_by_t for of in found.pairs}
    assert alone["r60", "r62"] == pytest.approx(0.772, abs=0.003)
    smallest = alone["r60", "r90"]
    assert smallest is not None
    assert smallest < 1e-6
    assert found.pairs[0].difference.p_value == pytest.approx(1 / 201)
    p_values = {key: p for key, p in alone.items() if p is not None}
    assert {(of.first, of.second): of.p_holm for of in found.pairs} == holm(p_values)
    family = {key: p for key, p in p_values.items() if key[0] == "r60"}
    assert {(of.first, of.second): of.p_holm for of in found.against_baseline} == holm(family)


def test_ranks_are_as_wide_as_what_is_not_shown() -> None:
    found = by_name(ranked(60, 90, 62, 92))
    assert {name: of.rank for name, of in found.items()} == {
        "r60": (3, 4), "r62": (3, 4), "r90": (1, 2), "r92": (1, 2),
    }  # fmt: skip
    assert sum(of.best_share or 0 for of in found.values()) == pytest.approx(1)
    assert (found["r92"].best_share or 0) > 0.5 > (found["r90"].best_share or 1)
    nothing = by_name(ranked(60, 61, 62))
    assert {of.rank for of in nothing.values()} == {(1, 3)}
    assert rank_limits("abc", [("a", "b"), ("b", "c"), ("a", "c")])["b"] == (2, 2)


def test_shared_tasks_are_drawn_together() -> None:
    """Two sets of the same runs on the same tasks are equal in every resample."""
    tasks = np.repeat(np.arange(40), 2)
    named = {
        name: count_runs(np.where((tasks < failed) | (tasks % 2 == 0), 2, 0), clusters=tasks)
        for name, failed in (("a", 0), ("again", 0), ("worse", 10))
    }
    found = rank_runs(named, rng=rng(), n_resamples=200)
    shares = {name: of.best_share for name, of in by_name(found).items()}
    assert shares["a"] == shares["again"]
    assert [of.n_pairs for of in found.pairs] == [40, 40, 40]
    assert [of.difference.estimate.value for of in found.pairs[:1]] == [0.0]
    apart = rank_runs(named, rng=rng(), n_resamples=200, paired=False)
    assert [of.n_pairs for of in apart.pairs] == [0, 0, 0]
    assert by_name(apart)["a"].best_share != by_name(apart)["again"].best_share


def test_few_runs_have_no_share_and_wide_ranks() -> None:
    named = {"a": runs(4), "b": runs(0, 0, 4), "c": runs(30)}
    found = by_name(rank_runs(named, rng=rng(), n_resamples=100))
    assert {of.best_share for of in found.values()} == {None}
    assert {of.rank for of in found.values()} == {(1, 3)}


def test_what_cannot_be_ranked_is_refused() -> None:
    with pytest.raises(ValueError, match="2 to 20 sets of runs, got 1"):
        ranked(60)
    with pytest.raises(ValueError, match="2 to 20 sets of runs, got 21"):
        ranked(*range(21))
    with pytest.raises(ValueError, match="baseline must be one of"):
        ranked(60, 70, baseline="r80")
    with pytest.raises(ValueError, match="one credit table"):
        rank_runs({"a": runs(9), "b": runs(9, credit=[1, 0.5, 0, 0, 0])}, rng=rng())
