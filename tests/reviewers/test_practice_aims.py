"""Practice aims at the questions at which somebody errs."""

import numpy as np
import pytest

from calibration.errors import InputError
from calibration.reviewers.certification import PracticeTrace, exercised, practice_round, weaknesses
from calibration.taxonomy import default_taxonomy
from tests.classes import OUTCOMES

TREE = default_taxonomy()

# Each question is exercised by ten traces: their class, and the nearest wrong one.
KINDS = {
    "complete": "partial_plus", "partial_plus": "partial_minus", "partial_minus": "hallucinated",
    "hallucinated": "partial_minus", "abandoned": "partial_plus",
}  # fmt: skip


def pool(*, seen: dict[str, float] | None = None) -> list[PracticeTrace]:
    names = [(f"{o}-{k}", o, wrong) for o, wrong in KINDS.items() for k in range(10)]
    return [
        PracticeTrace(trace_id=i, outcome=o, nearest_wrong=wrong, seen=(seen or {}).get(i))
        for i, o, wrong in names
    ]


def chosen(labelled: list[tuple[str, str]]) -> list[str]:
    found = practice_round(TREE, pool(), labelled, rng=np.random.default_rng(1))
    return [i.rsplit("-", 1)[0] for i in found]


def test_an_error_is_born_at_the_first_question_at_which_the_paths_part() -> None:
    found = {w.node: w for w in weaknesses(TREE, [("partial_plus", "abandoned")] * 3)}
    assert (found["output"].errors, found["output"].n) == (3, 3)
    assert found["output"].weakness == pytest.approx(4 / 5)
    assert found["material_error"].n == 0


def test_what_a_trace_exercises() -> None:
    assert exercised(TREE, "complete", "partial_plus") == "all_subgoals"
    assert exercised(TREE, "partial_minus", "hallucinated") == "fabrication"
    assert exercised(TREE, "abandoned", "complete") == "output"


def test_two_thirds_of_a_round_exercise_the_weak_questions_and_every_class_is_met() -> None:
    right = [(name, name) for name in OUTCOMES] * 6
    at_errors = chosen([*right, *[("partial_plus", "partial_minus")] * 12])
    at_output = chosen([*right, *[("abandoned", "partial_plus")] * 12])
    assert at_errors.count("partial_plus") > at_output.count("partial_plus") >= 1
    assert at_output.count("abandoned") > at_errors.count("abandoned") >= 1
    assert set(chosen([])) == set(OUTCOMES)


def test_the_same_seed_gives_the_same_round() -> None:
    rounds = [practice_round(TREE, pool(), [], rng=np.random.default_rng(k)) for k in (1, 1, 2)]
    assert rounds[0] == rounds[1] != rounds[2]
    assert len(set(rounds[0])) == 12


def test_new_traces_first_then_those_seen_longest_ago() -> None:
    ids = [t.trace_id for t in pool()]
    new = ids[::10]
    seen = {i: float(k) for k, i in enumerate(ids) if i not in new}
    first = practice_round(TREE, pool(seen=seen), [], rng=np.random.default_rng(1))
    assert set(new) < set(first)
    all_seen = {i: float(int(i.rsplit("-", 1)[1])) for i in ids}
    again = practice_round(TREE, pool(seen=all_seen), [], rng=np.random.default_rng(1))
    assert max(all_seen[i] for i in again) <= 5  # of ten a class, the older ones


def test_a_small_pool_is_a_short_round_and_an_empty_one_is_refused() -> None:
    assert len(practice_round(TREE, pool()[:3], [], rng=np.random.default_rng(1))) == 3
    with pytest.raises(InputError, match="no trace to practise on"):
        practice_round(TREE, [], [], rng=np.random.default_rng(1))
    with pytest.raises(ValueError, match="size"):
        practice_round(TREE, pool(), [], rng=np.random.default_rng(1), size=0)
