"""Ratings seen from one class, or from one question of the decision tree."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from calibration.agreement.counts import MISSING, IntArray, validated_codes

Path = Sequence[tuple[str, str]]


def one_against_rest(codes: ArrayLike, *, class_code: int, n_classes: int) -> IntArray:
    """Return the ratings as 1 where they name a class, 0 where another, missing kept.

    Examples
    --------
    >>> one_against_rest([[0, 2], [1, -1]], class_code=2, n_classes=3).tolist()
    [[0, 1], [0, -1]]
    """
    array = validated_codes(codes, n_classes=n_classes)
    return np.where(array == MISSING, MISSING, (array == class_code).astype(np.int64))


def answers_at(codes: ArrayLike, *, node: str, paths: Sequence[Path]) -> IntArray:
    """Return the answers that the ratings imply at one question: 1 yes, 0 no.

    A rating whose path does not come to the question is missing there, so agreement at the
    question is conditional on two raters arriving at it (Coleman 1966, Light 1971).

    Parameters
    ----------
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in `paths`, -1 where the rater gave no rating.
    node : str
        Name of the question.
    paths : sequence of sequence of (question, answer), length n_classes
        The way from the root to each class; answers are ``yes`` or ``no``.

    Returns
    -------
    int array, shape (n_items, n_raters)

    References
    ----------
    Light (1971), Psychological Bulletin 76. https://doi.org/10.1037/h0031643

    Examples
    --------
    >>> paths = [[("a", "yes")], [("a", "no"), ("b", "yes")], [("a", "no"), ("b", "no")]]
    >>> answers_at([[0, 1, 2, -1]], node="b", paths=paths).tolist()
    [[-1, 1, 0, -1]]
    """
    array = validated_codes(codes, n_classes=len(paths))
    branch = {"yes": 1, "no": 0, None: MISSING}
    # The last entry is what a missing rating, -1, picks.
    answers = [branch[dict(path).get(node)] for path in paths]
    return np.array([*answers, MISSING], dtype=np.int64)[array]


def parting_questions(paths: Sequence[Path]) -> list[list[str | None]]:
    """Return for each two classes the question at which their paths part.

    Parameters
    ----------
    paths : sequence of sequence of (question, answer), length n_classes
        The way from the root to each class.

    Returns
    -------
    list of list of str or None, shape (n_classes, n_classes)
        None on the diagonal.

    Raises
    ------
    ValueError
        If the paths of two classes never part.

    Examples
    --------
    >>> parting_questions([[("a", "yes")], [("a", "no"), ("b", "yes")], [("a", "no"), ("b", "no")]])
    [[None, 'a', 'a'], ['a', None, 'b'], ['a', 'b', None]]
    """
    return [
        [None if j == k else _parting(first, second) for k, second in enumerate(paths)]
        for j, first in enumerate(paths)
    ]


def _parting(first: Path, second: Path) -> str:
    for (question, answer), (other_question, other_answer) in zip(first, second, strict=False):
        if question == other_question and answer != other_answer:
            return question
    raise ValueError(f"the paths {list(first)!r} and {list(second)!r} never part")
