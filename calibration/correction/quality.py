"""How good the judge is against the humans: accuracy, kappa, recall and precision."""

from dataclasses import dataclass

import numpy as np

from calibration.correction.confusion import Confusion
from calibration.correction.intervals import (
    check_confidence_level,
    two_sided_z,
    unseen_share_bound,
)
from calibration.estimates import OK, Estimate, not_estimable
from calibration.two_way import WHOLE, table_kappa, wilson_interval

NO_DISAGREEMENT = "no disagreement seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassQuality:
    """How well the judge does on one class.

    Parameters
    ----------
    recall : Estimate
        Share of traces of this human class that got this verdict.
    precision : Estimate
        Share of traces with this verdict that are of this human class.
    n_human, n_judge : float
        Effective traces of the class and with the verdict.
    """

    recall: Estimate
    precision: Estimate
    n_human: float
    n_judge: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeQuality:
    """How well the judge does: accuracy, kappa, and each class."""

    accuracy: Estimate
    kappa: Estimate
    per_class: tuple[ClassQuality, ...]
    n: int


def _share(successes: float, n: float, confidence_level: float, nothing: str) -> Estimate:
    if n <= 0:
        return not_estimable(nothing, method="wilson", confidence_level=confidence_level)
    return Estimate(
        value=float(successes / n),
        interval=wilson_interval(successes, n, confidence_level=confidence_level),
        n=round(n),
        method="wilson",
        confidence_level=confidence_level,
    )


def accuracy(confusion: Confusion, *, confidence_level: float = 0.95) -> Estimate:
    """Estimate the share of labelled traces on which judge and humans give the same class.

    Traces are independent. A verdict that is no class counts as wrong. With several reviewers the
    share is the chance of agreeing with one of them drawn at random.

    Raises
    ------
    ValueError
        If `confidence_level` is outside (0, 1).

    Examples
    --------
    >>> from calibration.correction.confusion import confusion_from_table
    >>> accuracy(confusion_from_table([[8, 2], [1, 9]])).value
    0.85
    """
    check_confidence_level(confidence_level)
    nothing = "no labelled traces with a verdict: label some"
    total = float(confusion.table.sum())
    return _share(float(np.trace(confusion.table)), total, confidence_level, nothing)


def cohen_kappa(confusion: Confusion, *, confidence_level: float = 0.95) -> Estimate:
    """Estimate Cohen's kappa between the judge and the humans.

    Agreement beyond what the two class mixes alone would give: an always-pass judge gets 0
    whatever its accuracy. Traces are independent. Verdicts that are no class are classes the
    humans never use.

    Parameters
    ----------
    confusion : Confusion
        From `confusion` or `confusion_from_table`.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        Kappa with a normal interval from the Fleiss-Cohen-Everitt standard error. Without any
        disagreement the lower limit is the exact bound on the share of disagreeing traces put
        through kappa. Without variation on one side there is no interval.

    Raises
    ------
    ValueError
        If `confidence_level` is outside (0, 1).

    References
    ----------
    Fleiss, Cohen and Everitt (1969), "Large sample standard errors of kappa and weighted kappa",
    Psychol. Bull. 72. https://doi.org/10.1037/h0028106

    Examples
    --------
    Agreement 41/46; chance agreement (12 x 13 + 34 x 33) / 46^2:

    >>> from calibration.correction.confusion import confusion_from_table
    >>> cohen_kappa(confusion_from_table([[10, 2], [3, 31]])).value
    0.7255
    """
    check_confidence_level(confidence_level)
    n_classes, n_verdicts = confusion.table.shape
    total = float(confusion.table.sum())
    method = "Fleiss-Cohen-Everitt, normal"
    if total <= 0:
        why = "no labelled traces with a verdict: label some"
        return not_estimable(why, method=method, confidence_level=confidence_level)
    square = np.zeros((n_verdicts, n_verdicts))
    square[:n_classes] = confusion.table
    found = table_kappa(square)
    if found.value is None:
        why = "undefined without variation: humans and judge name one class; label other traces"
        return not_estimable(why, method=method, n=confusion.n, confidence_level=confidence_level)
    interval: tuple[float, float] | None
    status, se = OK, None
    if found.observed >= WHOLE:
        status, method = NO_DISAGREEMENT, "exact bound"
        share = unseen_share_bound(total, confidence_level=confidence_level)
        interval = max(-1.0, 1 - share / (1 - found.expected)), 1.0
    elif max(square.sum(axis=0).max(), square.sum(axis=1).max()) >= WHOLE * total:
        status = "no interval: humans or judge used a single class; label other traces"
        interval = None
    else:
        se = found.se
        reach = two_sided_z(confidence_level) * (se or 0.0)
        interval = max(-1.0, found.value - reach), min(1.0, found.value + reach)
    return Estimate(
        value=found.value,
        interval=interval,
        n=confusion.n,
        method=method,
        confidence_level=confidence_level,
        status=status,
        se=se,
    )


def judge_quality(confusion: Confusion, *, confidence_level: float = 0.95) -> JudgeQuality:
    """Estimate accuracy, kappa, and recall and precision of every class.

    Parameters
    ----------
    confusion : Confusion
        From `confusion` or `confusion_from_table`.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    JudgeQuality
        Recall describes the judge; precision also depends on the class mix of the labels. A class
        without labels or verdicts is ``not_estimable``.

    Raises
    ------
    ValueError
        If `confidence_level` is outside (0, 1).

    Examples
    --------
    >>> from calibration.correction.confusion import confusion_from_table
    >>> judge_quality(confusion_from_table([[8, 2], [1, 9]])).per_class[0].recall.value
    0.8
    """
    check_confidence_level(confidence_level)
    table = confusion.table
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    no_labels = "no labelled trace of this class: label more"
    no_verdicts = "no labelled trace with this verdict: label more"
    per_class = tuple(
        ClassQuality(
            recall=_share(float(table[k, k]), float(rows[k]), confidence_level, no_labels),
            precision=_share(float(table[k, k]), float(columns[k]), confidence_level, no_verdicts),
            n_human=float(rows[k]),
            n_judge=float(columns[k]),
        )
        for k in range(table.shape[0])
    )
    return JudgeQuality(
        accuracy=accuracy(confusion, confidence_level=confidence_level),
        kappa=cohen_kappa(confusion, confidence_level=confidence_level),
        per_class=per_class,
        n=confusion.n,
    )
