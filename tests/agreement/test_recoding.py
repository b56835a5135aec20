"""Ratings seen from one class and from one question."""

import pytest

from calibration.agreement.ratings import answers_at, one_against_rest
from calibration.taxonomy import default_taxonomy
from tests.classes import OUTCOMES

# complete, partial_plus, partial_minus, hallucinated, abandoned, missing
ALL = [[0, 1, 2, 3, 4, -1]]


@pytest.mark.parametrize(
    ("node", "answers"),
    [
        ("output", [1, 1, 1, 1, 0, -1]),
        ("fabrication", [0, 0, 0, 1, -1, -1]),
        ("all_subgoals", [1, 0, 0, -1, -1, -1]),
        ("material_error", [-1, 0, 1, -1, -1, -1]),
    ],
)
def test_a_rating_is_missing_where_its_path_does_not_come(node: str, answers: list[int]) -> None:
    found = answers_at(ALL, node=node, paths=default_taxonomy().paths(OUTCOMES))
    assert found.tolist() == [answers]


def test_a_class_against_the_rest_keeps_what_is_missing() -> None:
    assert one_against_rest(ALL, class_code=3, n_classes=5).tolist() == [[0, 0, 0, 1, 0, -1]]
    with pytest.raises(ValueError, match="codes must be in"):
        answers_at([[5]], node="output", paths=default_taxonomy().paths(OUTCOMES))
