"""Whether a judge has moved: the verdicts of two judges on the same traces, as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.agreement.chance_corrected import KRIPPENDORFF_ALPHA, PERCENT_AGREEMENT, estimate
from calibration.agreement.counts import count_patterns
from calibration.agreement.margins import TestResult, holm, mcnemar
from calibration.correction.means import MeanAgainstZero, mean_against_zero
from calibration.estimates import Estimate

NOT_LABELLED = "no labelled trace has a verdict of both: label traces that both judged"
NOT_CLASSES = "no trace has a verdict of both that is a class"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassDrift:
    """How often the two give one verdict, on the same traces.

    Parameters
    ----------
    name : str
    before, after : float
        Share of the traces with this verdict.
    only_before, only_after : int
        Traces to which one of the two gave it.
    test : TestResult
        McNemar's test that the shares are the same.
    p_holm : float or None
        Its p-value adjusted for the number of verdicts tested.
    """

    name: str
    before: float
    after: float
    only_before: int
    only_after: int
    test: TestResult
    p_holm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstHumans:
    """Whether the error against the humans changed, on labelled traces that both judged.

    Parameters
    ----------
    n : int
    accuracy_before, accuracy_after : MeanAgainstZero
        Share of traces with the human class (of the reviewers who gave it).
    accuracy_change : MeanAgainstZero
        After less before.
    leniency_change : MeanAgainstZero
        Change of the verdict's credit less the human one, where both verdicts are classes.
    error_change : MeanAgainstZero
        Change of the distance between the two credits, whichever is higher.
    """

    n: int
    accuracy_before: MeanAgainstZero
    accuracy_after: MeanAgainstZero
    accuracy_change: MeanAgainstZero
    leniency_change: MeanAgainstZero
    error_change: MeanAgainstZero


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Two judges on the same traces.

    Parameters
    ----------
    table : tuple of tuple of int, shape (n_verdicts, n_verdicts)
        Traces by the verdict of `before` (rows) and of `after` (columns).
    credit_change : MeanAgainstZero
        Mean credit by `after` less that by `before`, over traces where both are classes.
    same, alpha : Estimate
        Percent agreement and Krippendorff's alpha of the two.
    against_humans : AgainstHumans or None
        None without labels.
    """

    before: str
    after: str
    verdict_names: tuple[str, ...]
    n: int
    table: tuple[tuple[int, ...], ...]
    classes: tuple[ClassDrift, ...]
    credit_change: MeanAgainstZero
    same: Estimate
    alpha: Estimate
    against_humans: AgainstHumans | None
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SameTraces:
    """Traces that two judges judged.

    Parameters
    ----------
    codes : int array, shape (n, 2)
        Verdicts of both, the classes first.
    tasks : array, shape (n,)
    human : float array, shape (n_labelled, n_classes), or None
        Human class shares of the labelled ones; None where nothing was labelled.
    labelled : int array, shape (n_labelled,)
        Their rows.
    weights : float array, shape (n_labelled,), or None
        Inverse inclusion probabilities.
    """

    codes: NDArray[np.int64]
    tasks: NDArray[np.generic]
    human: NDArray[np.float64] | None = None
    labelled: NDArray[np.int64] | None = None
    weights: NDArray[np.float64] | None = None


def drift_of(
    same: SameTraces,
    *,
    before: str,
    after: str,
    verdict_names: Sequence[str],
    credit: NDArray[np.float64],
    fingerprint: str,
    confidence_level: float = 0.95,
) -> Drift:
    """Compare the verdicts of two judges on the same traces, and both with the humans."""
    codes, level = same.codes, confidence_level
    n_verdicts = max(credit.size, int(codes.max()) + 1)
    cells = codes[:, 0] * n_verdicts + codes[:, 1]
    table = np.bincount(cells, minlength=n_verdicts**2).reshape(n_verdicts, n_verdicts)
    patterns = count_patterns(codes, n_classes=n_verdicts)
    classes = (codes < credit.size).all(axis=1)
    of_credit = credit[codes[classes]]
    return Drift(
        before=before,
        after=after,
        verdict_names=tuple(verdict_names[:n_verdicts]),
        n=len(codes),
        table=tuple(tuple(row) for row in table.tolist()),
        classes=_classes(table.astype(np.int64), verdict_names),
        credit_change=mean_against_zero(
            of_credit[:, 1] - of_credit[:, 0],
            nothing=NOT_CLASSES,
            clusters=same.tasks[classes],
            confidence_level=level,
        ),
        same=estimate(PERCENT_AGREEMENT, patterns, confidence_level=level),
        alpha=estimate(KRIPPENDORFF_ALPHA, patterns, confidence_level=level),
        against_humans=_against(same, credit, level),
        fingerprint=fingerprint,
    )


def _classes(table: NDArray[np.int64], names: Sequence[str]) -> tuple[ClassDrift, ...]:
    n, found = int(table.sum()), []
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    for k in range(len(table)):
        both = int(table[k, k])
        only = int(rows[k]) - both, int(columns[k]) - both
        test = mcnemar([[both, only[0]], [only[1], n - both - sum(only)]])
        found.append((k, only, test))
    adjusted = holm({k: t.p_value for k, _, t in found if t.p_value is not None})
    return tuple(
        ClassDrift(
            name=names[k],
            before=float(rows[k] / n),
            after=float(columns[k] / n),
            only_before=only[0],
            only_after=only[1],
            test=test,
            p_holm=adjusted.get(k),
        )
        for k, only, test in found
    )


def _against(
    same: SameTraces, credit: NDArray[np.float64], confidence_level: float
) -> AgainstHumans | None:
    if same.human is None or same.labelled is None:
        return None
    codes, tasks, weights = same.codes[same.labelled], same.tasks[same.labelled], same.weights
    n = len(codes)
    # Columns more: a verdict that is no class is right for nobody.
    beyond = max(0, int(codes.max(initial=0)) + 1 - credit.size)
    human = np.column_stack([same.human, np.zeros((n, beyond))])
    right = np.take_along_axis(human, codes, axis=1)
    classes: NDArray[np.bool_] = np.all(codes < credit.size, axis=1)
    gaps = credit[codes[classes]] - (same.human[classes] @ credit)[:, None]
    every = np.ones(n, dtype=bool)

    def mean(values: NDArray[np.float64], rows: NDArray[np.bool_], low: float) -> MeanAgainstZero:
        return mean_against_zero(
            values,
            nothing=NOT_LABELLED,
            lowest=low,
            weights=None if weights is None else weights[rows],
            clusters=tasks[rows],
            confidence_level=confidence_level,
        )

    far = np.abs(gaps)
    return AgainstHumans(
        n=n,
        accuracy_before=mean(right[:, 0], every, 0.0),
        accuracy_after=mean(right[:, 1], every, 0.0),
        accuracy_change=mean(right[:, 1] - right[:, 0], every, -1.0),
        leniency_change=mean(gaps[:, 1] - gaps[:, 0], classes, -1.0),
        error_change=mean(far[:, 1] - far[:, 0], classes, -1.0),
    )
