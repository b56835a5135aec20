"""Bias of a judge: by length, family and node, on ordered grades, and between runs.

Tables hold labelled traces by human class (rows) and verdict (columns), as `confusion` makes them;
columns from n_classes up are verdicts that are no class.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.judge_calibration.samples import (
    composition,
    confusion_from_table,
    validated_human,
)
from calibration.statistics.contingency import holm, kappa_of_table
from calibration.statistics.estimate import (
    OK,
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    cluster_indices,
    not_estimable,
    validated_weights,
)
from calibration.statistics.intervals import t_chance, t_interval, wilson_share
from calibration.statistics.means import MeanAgainstZero, mean_against_zero

HC3 = "least squares within human class, HC3, t"
CR3 = "least squares within human class, CR3 by task, t"
MINIMUM_TASKS = 10
MINIMUM_SPARE = 10
NO_LEVERAGE = 1e-9
NO_NOISE = 1e-14
YES, NO, NOT_ASKED = 1, 0, -1
NOTHING = "no labelled traces with a grade of the judge: label some"
MISSING = -1
NOT_ASKED_TWICE = "no trace has two verdicts of this judge: let it judge some traces twice or more"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Fit:
    """Slope, `size` less its fit by the constants, residuals, design X and (X'X)^-1."""

    coefficient: float
    free: FloatArray
    residuals: FloatArray
    design: FloatArray
    bread: FloatArray


def slope_within_class(
    gaps: ArrayLike,
    human: ArrayLike,
    size: ArrayLike,
    *,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
    confidence_level: float = 0.95,
) -> MeanAgainstZero:
    """Estimate the slope of the judge's gap in credit on `size`, within the human class.

    gap = constant of the human class + slope x size. An honest judge has slope zero: given the
    human class, its verdict does not depend on `size`. If long traces are worse, the constants show
    it, not the slope. Traces are independent, or independent between clusters.

    Parameters
    ----------
    gaps : array-like of float, shape (n,)
        Credit of the verdict less the human credit.
    human : array-like of float, shape (n, n_classes)
        Class shares, rows summing to one; a trace whose reviewers differ has the mean of their
        constants.
    size : array-like of float, shape (n,)
        An indicator, or base-2 logarithm of the length: the slope is then that of a doubling.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities, for weighted least squares.
    clusters : array, shape (n,), optional
        Task of each trace, when tasks repeat.

    Returns
    -------
    MeanAgainstZero
        Slope in credit with a t interval: n - columns df, or clusters - 1. ``not_estimable`` with
        fewer than 10 traces more than constants, with fewer than 10 clusters, or when `size` does
        not vary within a class.

    Raises
    ------
    ValueError
        If shapes differ or a value is not finite.

    Notes
    -----
    Not a rank correlation: most gaps are ties at zero, and a slope in credit shows what the bias
    costs. HC3, because the variance of the gap depends on the class; of such standard errors it
    suits few traces best, and it equals the jackknife. CR3 leaves out whole tasks instead.

    References
    ----------
    MacKinnon and White (1985), J. Econometrics 29. https://doi.org/10.1016/0304-4076(85)90158-7
    Bell and McCaffrey (2002), Survey Methodology 28(2): CR3.

    Examples
    --------
    One class, gaps that fall by .1 a unit on average:

    >>> size = np.repeat([0.0, 1.0], 6)
    >>> gaps = np.array([0.3, 0.1] * 3 + [0.2, 0.0] * 3)
    >>> slope_within_class(gaps, np.ones((12, 1)), size).estimate.value
    -0.1
    """
    check_confidence_level(confidence_level)
    shares = validated_human(human)
    gap, of_size = np.asarray(gaps, dtype=np.float64), np.asarray(size, dtype=np.float64)
    n = shares.shape[0]
    if gap.shape != (n,) or of_size.shape != (n,):
        raise ValueError(
            f"gaps and size must have shape ({n},), got {gap.shape!r} and {of_size.shape!r}"
        )
    if not (np.isfinite(gap).all() and np.isfinite(of_size).all()):
        raise ValueError("gaps and size must be finite, got a value that is not")
    index = cluster_indices(clusters, n)
    method = HC3 if index is None else CR3
    used = shares[:, shares.sum(axis=0) > 0]
    spare = n - used.shape[1] - 1
    why = _why_not(spare, index)
    # Least squares of rows times the root of their weight is weighted least squares.
    root = np.sqrt(validated_weights(weights, n) / (1.0 if weights is None else np.mean(weights)))
    fit = None if why else _fit(gap * root, used * root[:, None], of_size * root)
    if fit is None:
        why = why or "it does not vary within a human class: label traces in which it differs"
        refused = not_estimable(why, method=method, n=n, confidence_level=confidence_level)
        return MeanAgainstZero(estimate=refused, p_value=None)
    df = float(spare if index is None else index.max())
    variance = _without_traces(fit) if index is None else _without_units(fit, index)
    return _result(fit.coefficient, variance, df, n, method, confidence_level)


def _why_not(spare: int, index: IntArray | None) -> str | None:
    if spare < MINIMUM_SPARE:
        return (
            f"{max(0, spare)} labelled traces more than constants, at least {MINIMUM_SPARE} are "
            "needed: label more"
        )
    if index is not None and index.max() + 1 < MINIMUM_TASKS:
        return f"{index.max() + 1} tasks, at least {MINIMUM_TASKS} are needed: label other tasks"
    return None


def _fit(gaps: FloatArray, constants: FloatArray, size: FloatArray) -> _Fit | None:
    # Of `size` only what the constants do not explain counts (Frisch and Waugh).
    free = size - constants @ np.linalg.lstsq(constants, size, rcond=None)[0]
    if float(free @ free) <= NO_LEVERAGE * max(1.0, float(size @ size)):
        return None
    design = np.column_stack([constants, size])
    bread = np.linalg.pinv(design.T @ design, hermitian=True)
    coefficients = bread @ design.T @ gaps
    return _Fit(
        coefficient=float(coefficients[-1]),
        free=free,
        residuals=gaps - design @ coefficients,
        design=design,
        bread=np.asarray(bread, dtype=np.float64),
    )


def _without_traces(fit: _Fit) -> float:
    """Return the HC3 variance; a trace that alone determines a constant does not enter."""
    rest = 1 - np.einsum("ij,jk,ik->i", fit.design, fit.bread, fit.design, optimize=True)
    usable = rest > NO_LEVERAGE
    adjusted = np.where(usable, fit.residuals, 0.0) / np.where(usable, rest, 1.0)
    return float(((fit.free * adjusted) ** 2).sum() / float(fit.free @ fit.free) ** 2)


def _without_units(fit: _Fit, unit: IntArray) -> float:
    """Return the CR3 variance; the pseudo-inverse drops what one task alone determines."""
    pull = fit.free / float(fit.free @ fit.free)
    order = np.argsort(unit, kind="stable")
    starts = np.flatnonzero(np.diff(unit[order], prepend=-1))
    total = 0.0
    for rows in np.split(order, starts[1:]):
        own = fit.design[rows]
        rest = np.eye(rows.size) - own @ fit.bread @ own.T
        adjusted = np.linalg.pinv(rest, rcond=1e-9, hermitian=True) @ fit.residuals[rows]
        total += float(pull[rows] @ adjusted) ** 2
    return total


def _result(
    value: float, variance: float, df: float, n: int, method: str, confidence_level: float
) -> MeanAgainstZero:
    status, se, interval, p_value = OK, None, None, None
    if variance < NO_NOISE:
        status = "no interval: the gap does not vary within human classes; label more"
    else:
        se = float(np.sqrt(variance))
        interval = t_interval(value, se, df=df, confidence_level=confidence_level)
        p_value = 2 * t_chance(-abs(value) / se, df)
    return MeanAgainstZero(
        estimate=Estimate(
            value=value, interval=interval, n=n, method=method,
            confidence_level=confidence_level, status=status, se=se,
        ),
        p_value=p_value,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeQuality:
    """How well the judge answers one decision-tree node, on traces where humans and judge reach it.

    `table` : effective traces by the humans' answer (rows: yes, no) and the judge's (columns).
    `yes_recall`, `no_recall` : share of the human answers that the judge also gives.
    `yes_precision`, `no_precision` : share of the judge's answers that the humans also give.
    `only_human`, `only_judge` : effective traces on which only one side reaches the node, after an
    earlier difference or without a verdict.
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
    """Estimate how well the judge answers one decision-tree node, from classes and verdicts.

    Traces are independent. Only traces on which both sides reach the node count, so an earlier
    error of the judge is not counted again.

    `answers` are those on the path to each class: 1 yes, 0 no, -1 where the path does not reach the
    node; ValueError if there is not one for each class. Intervals are Wilson's, ``not_estimable``
    where nobody gave the answer.

    Examples
    --------
    Class 0 is yes, classes 1 and 2 are no; the judge finds 8 of 10 traces that are yes:

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
    """Return the judge's errors by the node at which its path leaves the humans' path, most first.

    `parting`, shape (n_classes, n_classes): the node at which the paths to two classes part. Errors
    are effective traces; the key None is for verdicts that are no class.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinalAgreement:
    """Agreement of the judge's grades with the human ones.

    `within_one` : share of traces whose grades differ by at most one step.
    `within_one_by_chance` : the same if judge and humans graded independently, each with their own
    grade shares. On a five-point scale it easily exceeds one half.
    `kappa` : Cohen's, with quadratic weights, over the traces that the judge graded.
    `bias` : mean of the judge's grade less the human one, in steps.
    """

    exact: Estimate
    within_one: Estimate
    within_one_by_chance: float | None
    kappa: Estimate
    bias: float | None


def ordinal_agreement(table: ArrayLike, *, confidence_level: float = 0.95) -> OrdinalAgreement:
    """Estimate the agreement of ordered grades.

    Traces are independent. Kappa and bias take the grades as evenly spaced. Rows and columns of
    `table` are grades in the same order; a verdict that is no grade is never within one step.
    Shares have Wilson intervals.

    Raises
    ------
    ValueError
        If the table has fewer columns than rows, a negative entry, or fewer than two grades.

    Examples
    --------
    Of ten traces six have the same grade, three are one step off and one two steps:

    >>> found = ordinal_agreement([[2, 1, 1], [0, 2, 1], [0, 1, 2]])
    >>> found.exact.value, found.within_one.value
    (0.6, 0.9)
    """
    check_confidence_level(confidence_level)
    cells = confusion_from_table(table).table
    k = cells.shape[0]
    if k < 2:
        raise ValueError(f"table must have at least two grades, got {k!r}")
    square, total = cells[:, :k], float(cells.sum())
    graded = float(square.sum())
    apart = np.arange(k) - np.arange(k)[:, None]
    near = np.abs(apart) <= 1
    by_chance = bias = None
    if graded > 0:
        rows, columns = square.sum(axis=1) / graded, square.sum(axis=0) / graded
        by_chance = float(rows @ near @ columns)
        bias = float((square * apart).sum() / graded)
    kappa = kappa_of_table(
        square,
        weights=1 - (apart / (k - 1)) ** 2,
        nothing=NOTHING,
        confidence_level=confidence_level,
    )
    return OrdinalAgreement(
        exact=wilson_share(
            float(np.trace(square)), total, nothing=NOTHING, confidence_level=confidence_level
        ),
        within_one=wilson_share(
            float(square[near].sum()), total, nothing=NOTHING, confidence_level=confidence_level
        ),
        within_one_by_chance=by_chance,
        kappa=replace(kappa, method=f"quadratic weights, {kappa.method}"),
        bias=bias,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Retest:
    """How often a judge changes its verdict.

    `changed` : share of the traces with two verdicts or more whose verdicts are not all the same.
    It grows with the number of verdicts.
    `differ` : chance that two verdicts on a trace differ, the mean over traces of the share of
    pairs. It does not depend on the number of verdicts.
    `per_verdict` : `changed` by first verdict.
    `most_asked` : most verdicts on one trace.
    """

    changed: Estimate
    differ: Estimate
    per_verdict: tuple[Estimate, ...]
    most_asked: int


def retest(samples: ArrayLike, *, n_verdicts: int, confidence_level: float = 0.95) -> Retest:
    """Estimate how often the verdict on a trace changes when the judge is asked again.

    Traces are independent and a random sample of those the judge could judge again. Shares of
    traces have Wilson intervals, `differ` a t interval over traces; ``not_estimable`` when no trace
    has two verdicts.

    Parameters
    ----------
    samples : array-like of int, shape (n, n_samples)
        Verdict codes of each trace in the order of the requests; -1 where there is none.

    Raises
    ------
    ValueError
        If the codes are not two-dimensional integers from -1 to n_verdicts - 1.

    Examples
    --------
    One of three traces changes, in two of its three pairs; the fourth has one verdict:

    >>> found = retest([[0, 0, 0], [0, 1, 0], [1, 1, 1], [1, -1, -1]], n_verdicts=2)
    >>> found.changed.value, found.differ.value, found.per_verdict[0].value
    (0.33333, 0.22222, 0.5)
    """
    check_confidence_level(confidence_level)
    codes = np.asarray(samples)
    if codes.ndim != 2 or (codes.size and not np.issubdtype(codes.dtype, np.integer)):
        raise ValueError(
            f"samples must be integers of shape (n, n_samples), got dtype {codes.dtype!s} and "
            f"shape {codes.shape!r}"
        )
    if codes.size and (codes.min() < MISSING or codes.max() >= n_verdicts):
        raise ValueError(
            f"samples must be in [-1, {n_verdicts - 1}], got {codes.min()} to {codes.max()}"
        )
    asked = (codes != MISSING).sum(axis=1)
    again = codes[asked >= 2].astype(np.int64)
    times = asked[asked >= 2]
    counts = (again[:, :, None] == np.arange(n_verdicts)).sum(axis=1)
    pairs = times * (times - 1)
    differing = 1 - (counts * (counts - 1)).sum(axis=1) / pairs
    changed, first = counts.max(axis=1, initial=0) < times, _first(again)

    def share(hits: float, n: float, nothing: str) -> Estimate:
        return wilson_share(hits, n, nothing=nothing, confidence_level=confidence_level)

    nothing = "no trace with this verdict was judged twice: let the judge judge some again"
    return Retest(
        changed=share(float(changed.sum()), float(changed.size), NOT_ASKED_TWICE),
        differ=mean_against_zero(
            differing, nothing=NOT_ASKED_TWICE, lowest=0.0, confidence_level=confidence_level
        ).estimate,
        per_verdict=tuple(
            share(float(changed[first == k].sum()), float((first == k).sum()), nothing)
            for k in range(n_verdicts)
        ),
        most_asked=int(asked.max(initial=0)),
    )


def _first(codes: IntArray) -> IntArray:
    """Return the first verdict of each trace."""
    if not codes.size:
        return np.zeros(0, dtype=np.int64)
    first: IntArray = codes[np.arange(len(codes)), (codes != MISSING).argmax(axis=1)]
    return first


def changed_meanings(human: ArrayLike, verdicts: IntArray, late: BoolArray) -> dict[int, float]:
    """Test for each verdict that the classes behind it are the same in two periods.

    P(class | verdict) is what labels carry over to runs of another period. Fisher's exact test or
    Pearson's chi-square of class by period, as in `composition`; traces are independent, and one
    with several labels counts under its most frequent class. `human` and `verdicts` are those of
    `LabelledSample`, `late` marks labels of the second period.

    Returns
    -------
    dict of int to float
        p-value by verdict, adjusted for their number (Holm). A verdict with one class, or with
        labels of one period, is not tested.

    Examples
    --------
    Verdict 0 was right 5 times of 5, then 0 times of 5: 2 of the 252 tables are as extreme.
    Verdict 1 has labels of one period.

    >>> human = np.eye(2)[[0] * 5 + [1] * 5 + [1, 0]]
    >>> verdicts, late = np.repeat([0, 1], [10, 2]), np.arange(12) >= 5
    >>> {k: round(p, 5) for k, p in changed_meanings(human, verdicts, late).items()}
    {0: 0.00794}
    """
    classes = validated_human(human).argmax(axis=1).astype(str)
    p_values = {}
    for verdict in np.unique(verdicts).tolist():
        rows = verdicts == verdict
        found = composition({"class": classes[rows]}, late[rows]).p
        if "class" in found:
            p_values[verdict] = found["class"]
    return holm(p_values)
