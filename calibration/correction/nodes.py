"""The judge against the humans at each question of the decision tree."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration.correction.confusion import confusion_from_table
from calibration.correction.intervals import FloatArray, check_confidence_level
from calibration.correction.means import wilson_share
from calibration.estimates import Estimate

YES, NO, NOT_ASKED = 1, 0, -1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeQuality:
    """How well the judge answers one question, where it and the humans both come to it.

    Parameters
    ----------
    table : tuple of tuple of float, shape (2, 2)
        Effective traces by the humans' answer (rows: yes, no) and the judge's (columns: yes, no).
    accuracy : Estimate
        Share of them with the same answer.
    yes_recall, yes_precision, no_recall, no_precision : Estimate
        Recall is the share of the humans' answers that the judge gives too; precision the share of
        the judge's answers that are the humans'.
    only_human, only_judge : float
        Effective traces on which one of the two comes to the question and the other does not,
        because they parted at an earlier one, or the judge gave no verdict.
    """

    table: tuple[tuple[float, float], tuple[float, float]]
    accuracy: Estimate
    yes_recall: Estimate
    yes_precision: Estimate
    no_recall: Estimate
    no_precision: Estimate
    only_human: float
    only_judge: float


def node_quality(
    table: ArrayLike, answers: Sequence[int], *, confidence_level: float = 0.95
) -> NodeQuality:
    """Compare the answers that classes and verdicts imply at one question.

    Traces are independent. The comparison is conditional on both coming to the question, so a
    judge is not blamed here for an error made earlier.

    Parameters
    ----------
    table : array-like of float, shape (n_classes, n_verdicts)
        From `confusion`; columns from n_classes up are verdicts that are no class.
    answers : sequence of int, length n_classes
        Answer on the way to each class: 1 yes, 0 no, -1 where the way does not come by.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    NodeQuality
        Shares with Wilson intervals, ``not_estimable`` where nobody gave the answer.

    Raises
    ------
    ValueError
        If there is not one answer a class.

    Examples
    --------
    Class 0 is yes, classes 1 and 2 are no; of 10 traces that are yes the judge says so of 8:

    >>> found = node_quality([[8, 1, 1], [2, 5, 0], [1, 0, 4]], [1, 0, 0])
    >>> found.table, found.yes_recall.value
    (((8.0, 2.0), (3.0, 9.0)), 0.8)
    """
    check_confidence_level(confidence_level)
    cells = confusion_from_table(table).table
    codes = np.asarray(answers, dtype=np.int64)
    if codes.shape != (cells.shape[0],):
        raise ValueError(f"answers must have length {cells.shape[0]}, got shape {codes.shape!r}")
    rows: FloatArray = np.stack([codes == YES, codes == NO, codes == NOT_ASKED]).astype(np.float64)
    columns = np.zeros((3, cells.shape[1]))
    columns[:, : codes.size] = rows
    columns[2, codes.size :] = 1.0
    crossed = rows @ cells @ columns.T
    both = crossed[:2, :2]

    def share(hits: float, n: float, who: str, answer: str) -> Estimate:
        nothing = f"no labelled trace where {who} {answer} at this question: label more"
        return wilson_share(hits, n, nothing=nothing, confidence_level=confidence_level)

    yes, no = float(both[0, 0]), float(both[1, 1])
    return NodeQuality(
        table=((yes, float(both[0, 1])), (float(both[1, 0]), no)),
        accuracy=share(yes + no, float(both.sum()), "humans and judge", "both answer"),
        yes_recall=share(yes, float(both[0].sum()), "the humans", "say yes"),
        yes_precision=share(yes, float(both[:, 0].sum()), "the judge", "says yes"),
        no_recall=share(no, float(both[1].sum()), "the humans", "say no"),
        no_precision=share(no, float(both[:, 1].sum()), "the judge", "says no"),
        only_human=float(crossed[:2, 2].sum()),
        only_judge=float(crossed[2, :2].sum()),
    )


def errors_by_node(
    table: ArrayLike, parting: Sequence[Sequence[str | None]]
) -> dict[str | None, float]:
    """Split the judge's errors by the question at which its way parts from the humans'.

    Parameters
    ----------
    table : array-like of float, shape (n_classes, n_verdicts)
        From `confusion`.
    parting : sequence of sequence of str or None, shape (n_classes, n_classes)
        The question at which the ways to two classes part; None on the diagonal.

    Returns
    -------
    dict of str or None to float
        Effective traces, most first; the sum is the number of errors. The key None stands for
        verdicts that are no class.

    Examples
    --------
    >>> parting = [[None, "a", "a"], ["a", None, "b"], ["a", "b", None]]
    >>> errors_by_node([[8, 1, 1, 0], [2, 5, 0, 1], [1, 3, 4, 0]], parting)
    {'a': 5.0, 'b': 3.0, None: 1.0}
    """
    cells = confusion_from_table(table).table
    found: dict[str | None, float] = {}
    for row, counts in enumerate(cells.tolist()):
        for column, count in enumerate(counts):
            if row == column or count == 0:
                continue
            question = parting[row][column] if column < len(cells) else None
            found[question] = found.get(question, 0.0) + count
    return dict(sorted(found.items(), key=lambda item: -item[1]))
