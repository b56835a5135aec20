"""Ratings seen from one class, or from one question of the decision tree."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from calibration.agreement.counts import MISSING, IntArray, validated_codes
from calibration.taxonomy import Taxonomy


def one_against_rest(codes: ArrayLike, *, class_code: int, n_classes: int) -> IntArray:
    """Return the ratings as 1 where they name a class, 0 where another, missing kept.

    Examples
    --------
    >>> one_against_rest([[0, 2], [1, -1]], class_code=2, n_classes=3).tolist()
    [[0, 1], [0, -1]]
    """
    array = validated_codes(codes, n_classes=n_classes)
    return np.where(array == MISSING, MISSING, (array == class_code).astype(np.int64))


def at_node(codes: ArrayLike, *, node: str, taxonomy: Taxonomy, classes: Sequence[str]) -> IntArray:
    """Return the answers that the ratings imply at one question: 1 yes, 0 no.

    A rating whose path does not come to the question is missing there, so agreement at the
    question is conditional on two raters arriving at it (Coleman 1966, Light 1971).

    Parameters
    ----------
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in `classes`, -1 where the rater gave no rating.
    node : str
        Id of the question.
    taxonomy : Taxonomy
        The tree.
    classes : sequence of str
        Names of the classes in the order of the codes.

    Returns
    -------
    int array, shape (n_items, n_raters)

    References
    ----------
    Light (1971), Psychological Bulletin 76. https://doi.org/10.1037/h0031643

    Examples
    --------
    Complete, hallucinated and abandoned at the question about invention:

    >>> from calibration.taxonomy import default_taxonomy
    >>> from calibration.records import OUTCOMES
    >>> at_node(
    ...     [[0, 3, 4]], node="fabrication", taxonomy=default_taxonomy(), classes=OUTCOMES
    ... ).tolist()
    [[0, 1, -1]]
    """
    array = validated_codes(codes, n_classes=len(classes))
    answers = [taxonomy.answers_for(name).get(node) for name in classes]
    branch = {"yes": 1, "no": 0, None: MISSING}
    # The last entry is what a missing rating, -1, picks.
    lookup = np.array([*(branch[answer] for answer in answers), MISSING], dtype=np.int64)
    return lookup[array]
