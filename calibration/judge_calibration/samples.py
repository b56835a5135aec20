"""Labelled samples and production: their sums, the confusion of a judge, and their composition."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from calibration.statistics.contingency import holm, quality_against_key
from calibration.statistics.estimate import (
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    cluster_indices,
    not_estimable,
    validated_codes,
    validated_weights,
)
from calibration.statistics.means import df_of_tasks, variance_of_tasks

NO_LABELS = "no labelled traces with a verdict: label some"

# With fewer labels of a class, estimators by the normal approximation give its share no interval.
CLASS_LABELS_MIN = 10

# Fewest labels of a probability sample for a rate from them.
PROBABILITY_SAMPLE_MIN = 30

ESTIMATORS = (
    "two_phase",
    "post_stratified",
    "ppi_plus_plus",
    "inversion",
    "bayesian",
    "bootstrap",
    "lee",
    "human_only",
    "judge_raw",
)


# Adjusted p-value below which a column is warned of.
WARNED = 0.01

# A level of at least this share of production, none of which was asked about, is refused if a
# random sample would miss it with a smaller probability than this.
SHARE_MISSED, CHANCE_MISSED = 0.05, 1e-4

# Levels with fewer expected traces are pooled.
EXPECTED_MIN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A refusal or a warning, with the cause and its number in `why`, the remedy in `mend`."""

    code: str
    estimator: str
    why: str
    mend: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Confusion:
    """Human classes (rows) by judge verdicts (columns).

    `table` : effective number of labelled traces. The first n_classes verdicts are the classes,
    others are verdicts like `no_verdict` or `split`.
    `n` : labelled traces; with weights more than the sum of the table.
    `squares` : sums of squared weights, scaled as the table; None where the weights are equal.
    """

    table: FloatArray
    n: int
    squares: FloatArray | None = None


def validated_human(human: ArrayLike) -> FloatArray:
    """Return the human class shares, shape (n, n_classes), rows summing to one.

    ValueError if the array is not two-dimensional, a value is outside [0, 1], or a row does not sum
    to one.
    """
    array = np.asarray(human, dtype=np.float64)
    if array.ndim != 2:
        raise ValueError(f"human must have shape (n, n_classes), got {array.shape!r}")
    if array.size and not (np.isfinite(array).all() and array.min() >= 0):
        raise ValueError(f"human must be in [0, 1], got {array.min()!r}")
    sums = array.sum(axis=1)
    if array.size and np.abs(sums - 1).max() > 1e-6:
        worst = float(sums[np.abs(sums - 1).argmax()])
        raise ValueError(f"human rows must sum to 1, got {worst!r}")
    return array


def confusion(
    human: ArrayLike,
    verdicts: IntArray,
    *,
    n_verdicts: int | None = None,
    weights: FloatArray | None = None,
) -> Confusion:
    """Cross the human classes with the judge's verdicts.

    A trace with m reviewers counts 1/m for each of their classes, which keeps disagreement among
    the humans. `human`, `verdicts` and `weights` are those of `LabelledSample`; with weights the
    table is scaled to the effective number (sum w)^2 / sum w^2, so that intervals are not too
    short. `n_verdicts` is by default the larger of n_classes and the largest code + 1.

    ValueError if shapes differ, a row does not sum to one, or a code is outside [0, n_verdicts).

    Examples
    --------
    The second trace has two reviewers who disagree:

    >>> confusion([[1, 0], [0.5, 0.5]], np.array([0, 1]), n_verdicts=3).table.tolist()
    [[1.0, 0.5, 0.0], [0.0, 0.5, 0.0]]
    """
    shares = validated_human(human)
    n, n_classes = shares.shape
    codes = validated_codes(verdicts, n_codes=n_verdicts, name="verdicts")
    if codes.shape != (n,):
        raise ValueError(f"verdicts must have shape ({n},), got {codes.shape!r}")
    if n_verdicts is None:
        n_verdicts = max(n_classes, int(codes.max(initial=-1)) + 1)
    if n_verdicts < n_classes:
        raise ValueError(f"n_verdicts must be at least n_classes={n_classes}, got {n_verdicts!r}")
    weight = validated_weights(weights, n)
    if n:
        weight = weight * weight.sum() / (weight @ weight)
    table, squares = np.zeros((n_verdicts, n_classes)), np.zeros((n_verdicts, n_classes))
    np.add.at(table, codes, shares * weight[:, None])
    np.add.at(squares, codes, shares * weight[:, None] ** 2)
    return Confusion(
        table=np.ascontiguousarray(table.T),
        n=n,
        squares=squares.T if weights is not None and np.ptp(weight) > 0 else None,
    )


def confusion_from_table(table: ArrayLike) -> Confusion:
    """Return the confusion of a table of counts, human classes in rows and verdicts in columns.

    ValueError if the table has fewer columns than rows or a negative entry.
    """
    array = np.asarray(table, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] < array.shape[0]:
        raise ValueError(
            f"table must have shape (n_classes, n_verdicts) with n_verdicts >= n_classes, "
            f"got {array.shape!r}"
        )
    if not (np.isfinite(array).all() and array.min(initial=0) >= 0):
        raise ValueError(f"table must not hold negative counts, got {array.min()!r}")
    return Confusion(table=array, n=round(float(array.sum())))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductionRuns:
    """Judged production runs, equal ones together.

    `verdicts`, `penalties` : shape (n_rows,); penalties are 0 without costs.
    `times` : number of equal runs in each row.
    `tasks` : task of each row; None where none is known to repeat.
    `table` : credit table of each row; None where there is one.
    """

    verdicts: IntArray
    penalties: FloatArray
    times: FloatArray
    tasks: NDArray[np.generic] | None = None
    table: IntArray | None = None

    def by_verdict(self) -> "ProductionRuns":
        """Return the runs without penalties: those of one verdict and task are equal.

        Examples
        --------
        >>> runs = ProductionRuns(
        ...     verdicts=np.array([0, 2, 0]), penalties=np.array([0.1, 0.0, 0.3]), times=np.ones(3)
        ... )
        >>> runs.by_verdict().times.tolist()
        [2.0, 1.0]
        """
        tasks = None if self.tasks is None else np.unique(self.tasks, return_inverse=True)
        width = int(self.verdicts.max(initial=0)) + 1
        keys = self.verdicts if tasks is None else tasks[1].ravel() * width + self.verdicts
        kinds, of = np.unique(keys, return_inverse=True)
        return ProductionRuns(
            verdicts=kinds % width,
            penalties=np.zeros(kinds.size),
            times=np.bincount(of.ravel(), weights=self.times, minlength=kinds.size).astype(float),
            tasks=None if tasks is None else tasks[0][kinds // width],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RepeatedTasks:
    """Codes of the tasks of labels and of production rows; None where no task repeats.

    `times` : number of equal runs in each production row.
    `shared` : whether the labels are of production, so that a task of both counts once. The tasks
    of a reference set are others.
    """

    labels: IntArray | None
    runs: IntArray | None
    times: FloatArray
    shared: bool = True

    @property
    def repeat(self) -> bool:
        """Whether a task of either source repeats."""
        return self.labels is not None or self.runs is not None

    @property
    def units(self) -> int | None:
        """Number of tasks of the source with fewest; None where no task repeats."""
        counts = [np.unique(of).size for of in (self.labels, self.runs) if of is not None]
        return min(counts, default=None)

    @property
    def of_production(self) -> FloatArray:
        """Share of each task in the runs of production; empty where none is known."""
        if self.runs is None:
            return np.zeros(0)
        shares = self.times / self.times.sum()
        return np.bincount(self.runs, weights=shares).astype(np.float64)

    def of_labels(self, shares: FloatArray | None = None) -> FloatArray:
        """Share of each labelled task, the labels having `shares`, or equal ones."""
        if self.labels is None:
            return np.zeros(0)
        own = np.full(self.labels.size, 1 / self.labels.size) if shares is None else shares
        return np.bincount(self.labels, weights=own).astype(np.float64)

    def df(self, shares: FloatArray | None = None) -> float:
        """Return the df of a variance by task, of the source with fewer; infinite without tasks.

        `shares` : of the labels in the mean, equal ones by default.
        """
        known = (self.of_labels(shares), self.of_production)
        return max(1.0, min((df_of_tasks(one) for one in known if one.size), default=np.inf))

    def variance(
        self, in_labels: FloatArray, in_production: FloatArray, shares: FloatArray | None = None
    ) -> tuple[float, float]:
        """Return the variance of a mean by its influences, and the part due to production.

        `in_labels` are influences of the labels, `in_production` N times those of the runs;
        `shares` as in `df`. Each task counts as in `variance_of_tasks`.
        """
        n = float(self.times.sum())
        in_runs = self.times * in_production / n
        of_production = self.of_production
        if self.shared and self.labels is not None and self.runs is not None:
            n_tasks = int(max(self.labels.max(initial=-1), self.runs.max())) + 1
            of_runs = np.bincount(self.runs, weights=in_runs, minlength=n_tasks).astype(np.float64)
            of_labels = np.bincount(self.labels, weights=in_labels, minlength=n_tasks)
            sizes = np.append(of_production, np.zeros(n_tasks - of_production.size))
            return (
                variance_of_tasks(of_labels + of_runs, sizes),
                variance_of_tasks(of_runs, sizes),
            )
        if self.runs is None:
            between = float(self.times @ in_production**2) / n**2
        else:
            by_task = np.bincount(self.runs, weights=in_runs).astype(np.float64)
            between = variance_of_tasks(by_task, of_production)
        if self.labels is None:
            return float(in_labels @ in_labels) + between, between
        by_task = np.bincount(self.labels, weights=in_labels).astype(np.float64)
        return variance_of_tasks(by_task, self.of_labels(shares)) + between, between


def tasks_of(
    clusters: NDArray[np.generic] | None, n: int, runs: ProductionRuns, *, shared: bool = True
) -> RepeatedTasks:
    """Return common codes of the tasks of n labels and of production rows.

    ValueError if the labels are of production, tasks repeat there, and the labels name none.

    Examples
    --------
    Both labels are of the second task of production:

    >>> runs = ProductionRuns(
    ...     verdicts=np.array([0, 0, 1]), penalties=np.zeros(3), times=np.ones(3),
    ...     tasks=np.array(["a", "b", "b"]),
    ... )
    >>> tasks_of(np.array(["b", "b"]), 2, runs).labels.tolist()
    [1, 1]
    """
    if runs.tasks is None:
        return RepeatedTasks(labels=cluster_indices(clusters, n), runs=None, times=runs.times)
    if not shared:
        codes = np.unique(np.asarray(runs.tasks), return_inverse=True)[1].astype(np.int64)
        own = cluster_indices(clusters, n)
        return RepeatedTasks(labels=own, runs=codes, times=runs.times, shared=False)
    if clusters is None:
        raise ValueError("clusters of the labelled traces are needed: tasks of production repeat")
    both = np.concatenate([np.asarray(clusters), np.asarray(runs.tasks)])
    codes = np.unique(both, return_inverse=True)[1].astype(np.int64)
    return RepeatedTasks(labels=codes[:n], runs=codes[n:], times=runs.times)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductionSums:
    """Verdicts and penalties of production, and their sufficient statistics.

    `runs` : the runs themselves.
    `tables` : credit of each class, shape (n_tables, n_classes): workflows may have their own.
    `credit` : mean credit of each class over the runs, shape (n_classes,).
    `of_level` : which classes have which level, shape (n_classes, n_levels): those with the same
    credit in every table, not all zero, share one.
    `levels` : mean credit s of each level. The score of a trace with penalty p is one of
    f_s(p) = max(0, own s - p), or 0.
    `counts` : traces with each verdict, shape (n_verdicts,).
    `sums` : sum of f_s over the traces with each verdict, shape (n_levels, n_verdicts).
    `products` : sum of f_s f_u, shape (n_levels, n_levels, n_verdicts).
    `raw_sum`, `raw_n` : sum of scores if every class verdict were right, and number of these
    traces.
    """

    runs: ProductionRuns
    tables: FloatArray
    credit: FloatArray
    of_level: BoolArray
    levels: FloatArray
    counts: FloatArray
    sums: FloatArray
    products: FloatArray
    raw_sum: float
    raw_n: int

    @property
    def n(self) -> int:
        """Number of judged production traces."""
        return round(float(self.counts.sum()))

    @property
    def verdict_values(self) -> FloatArray:
        """The credit each verdict would mean, NaN for verdicts that are no class."""
        values = np.full(self.counts.size, np.nan)
        values[: self.credit.size] = self.credit
        return values

    @property
    def has_costs(self) -> bool:
        """Whether any trace has a penalty."""
        return bool((self.runs.penalties > 0).any())

    @property
    def varies(self) -> bool:
        """Whether runs with one verdict may have several scores, by cost or by credit."""
        return self.has_costs or len(self.tables) > 1

    @property
    def of_tables(self) -> FloatArray:
        """The levels in each table, shape (n_tables, n_levels)."""
        found: FloatArray = self.tables[:, self.of_level.argmax(axis=0)]
        return found

    def kept(self, penalties: FloatArray, table: IntArray | None) -> FloatArray:
        """Return f_s of each trace, shape (n_levels, n)."""
        found: FloatArray = np.maximum(0.0, own_rows(self.of_tables, table).T - penalties)
        return found


def own_rows(tables: FloatArray, table: IntArray | None) -> FloatArray:
    """Return the row of the table of each trace, shape (n, n_columns); (1, n_columns) of one table.

    ValueError if there are several tables and it is not known which are meant.

    Examples
    --------
    >>> own_rows(np.array([[1.0, 0.4], [1.0, 0.3]]), np.array([0, 1, 1])).tolist()
    [[1.0, 0.4], [1.0, 0.3], [1.0, 0.3]]
    """
    if len(tables) == 1:
        return tables
    if table is None:
        raise ValueError(f"table of each trace is needed: there are {len(tables)} tables of credit")
    found: FloatArray = tables[table]
    return found


def validated_credit(credit: ArrayLike) -> FloatArray:
    """Return the credits of the classes, shape (n_tables, n_classes).

    ValueError for fewer than two classes or a credit outside [0, 1].
    """
    array = np.atleast_2d(np.asarray(credit, dtype=np.float64))
    if array.ndim != 2 or array.shape[1] < 2 or not len(array):
        shape = np.shape(credit)
        raise ValueError(f"credit must name at least two classes, got shape {shape!r}")
    if not (array.min() >= 0 and array.max() <= 1):
        raise ValueError(f"credit must be in [0, 1], got {array.min()!r} to {array.max()!r}")
    return array


def _levels(tables: FloatArray) -> BoolArray:
    columns = np.unique(tables, axis=1)
    columns = columns[:, (columns > 0).any(axis=0)]
    found: BoolArray = (tables[:, :, None] == columns[:, None, :]).all(axis=0)
    return found


def production_sums(
    verdicts: IntArray,
    penalties: FloatArray | None,
    *,
    credit: ArrayLike,
    n_verdicts: int,
    tasks: NDArray[np.generic] | None = None,
    table: IntArray | None = None,
) -> ProductionSums:
    """Return the sums per verdict of judged production traces, the labelled ones included.

    `penalties` in [0, 1] are per trace, None for scores without cost (gross); `credit` is per
    class, or has one row per table of credit, with the `table` of each trace; `tasks` names the
    task of each trace, None where no task repeats.

    ValueError if shapes differ, a code is out of range, or a penalty is outside [0, 1].

    Examples
    --------
    >>> sums = production_sums(
    ...     np.array([0, 0, 1]), np.array([0.0, 0.5, 0.0]), credit=[1.0, 0.4], n_verdicts=2
    ... )
    >>> sums.levels.tolist(), sums.sums.tolist(), sums.raw_sum
    ([0.4, 1.0], [[0.4, 0.4], [1.5, 1.0]], 1.9)
    """
    tables = validated_credit(credit)
    n_classes = tables.shape[1]
    if n_verdicts < n_classes:
        raise ValueError(f"n_verdicts must be at least {n_classes}, got {n_verdicts!r}")
    codes = validated_codes(verdicts, n_codes=n_verdicts, name="verdicts")
    if cluster_indices(tasks, codes.size) is None:
        tasks = None
    if len(tables) == 1:
        table = None
    elif table is None or table.shape != codes.shape:
        got = None if table is None else table.shape
        raise ValueError(f"table must have shape {codes.shape!r}, got {got!r}")
    if penalties is None and table is None:
        found = production_sums_from_counts(
            np.bincount(codes, minlength=n_verdicts), credit=tables[0]
        )
        if tasks is None:
            return found
        alone = np.ones(codes.size)
        runs = ProductionRuns(
            verdicts=codes, penalties=np.zeros(codes.size), times=alone, tasks=tasks
        )
        return replace(found, runs=runs)
    penalty = np.zeros(codes.size) if penalties is None else np.asarray(penalties, np.float64)
    if penalty.shape != codes.shape:
        raise ValueError(f"penalties must have shape {codes.shape!r}, got {penalty.shape!r}")
    if penalty.size and not (penalty.min() >= 0 and penalty.max() <= 1):
        raise ValueError(f"penalties must be in [0, 1], got {penalty.min()!r} to {penalty.max()!r}")
    of_level, mean = _levels(tables), tables[0]
    if table is not None:
        mean = np.bincount(table, minlength=len(tables)) @ tables / max(1, table.size)
    of_tables = tables[:, of_level.argmax(axis=0)]
    n_levels = of_level.shape[1]
    counts = np.bincount(codes, minlength=n_verdicts)
    sums = np.zeros((n_levels, n_verdicts))
    products = np.zeros((n_levels, n_levels, n_verdicts))
    for k in np.flatnonzero(counts).tolist():
        of = codes == k
        own = own_rows(of_tables, None if table is None else table[of])
        kept = np.maximum(0.0, own.T - penalty[of])
        sums[:, k] = kept.sum(axis=1)
        products[:, :, k] = kept @ kept.T
    of_class = sums[:, :n_classes]
    return ProductionSums(
        runs=ProductionRuns(
            verdicts=codes, penalties=penalty, times=np.ones(codes.size), tasks=tasks, table=table
        ),
        tables=tables,
        credit=mean,
        of_level=of_level,
        levels=mean[of_level.argmax(axis=0)],
        counts=counts.astype(np.float64),
        sums=sums,
        products=products,
        raw_sum=float(of_class[of_level.T].sum()),
        raw_n=int(counts[:n_classes].sum()),
    )


def production_sums_from_counts(counts: ArrayLike, *, credit: ArrayLike) -> ProductionSums:
    """Return the sums of production without penalties from its verdict counts.

    ValueError if there are fewer verdicts than classes or a count is negative.

    Examples
    --------
    >>> production_sums_from_counts([7, 3, 1], credit=[1.0, 0.0]).sums.tolist()
    [[7.0, 3.0, 1.0]]
    """
    tables = validated_credit(credit)
    if len(tables) > 1:
        raise ValueError(f"credit must be one table, got {len(tables)}")
    credits = tables[0]
    array = np.asarray(counts, dtype=np.float64)
    if array.ndim != 1 or array.size < credits.size:
        raise ValueError(
            f"counts must have at least {credits.size} entries, got shape {array.shape!r}"
        )
    if not (np.isfinite(array).all() and array.min() >= 0):
        raise ValueError(f"counts must not be negative, got {array.min()!r}")
    of_level = _levels(tables)
    levels = credits[of_level.argmax(axis=0)]
    occurring = np.flatnonzero(array)
    return ProductionSums(
        runs=ProductionRuns(
            verdicts=occurring, penalties=np.zeros(occurring.size), times=array[occurring]
        ),
        tables=tables,
        credit=credits,
        of_level=of_level,
        levels=levels,
        counts=array,
        sums=levels[:, None] * array,
        products=levels[:, None, None] * levels[None, :, None] * array,
        raw_sum=float(credits @ array[: credits.size]),
        raw_n=round(float(array[: credits.size].sum())),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassQuality:
    """Quality of the judge on one class.

    `recall` : share of the traces of this human class that got this verdict.
    `precision` : share of the traces with this verdict that are of this human class.
    `n_human`, `n_judge` : effective traces of the class and with the verdict.
    """

    recall: Estimate
    precision: Estimate
    n_human: float
    n_judge: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeQuality:
    """Accuracy, kappa, and recall and precision by class of a judge."""

    accuracy: Estimate
    kappa: Estimate
    per_class: tuple[ClassQuality, ...]
    n: int


def judge_quality(confusion: Confusion, *, confidence_level: float = 0.95) -> JudgeQuality:
    """Estimate accuracy, kappa, and recall and precision of every class.

    Traces are independent. A verdict that is no class counts as wrong. With several reviewers the
    accuracy is the chance of agreeing with one of them drawn at random. Precision also depends on
    the class mix of the labels. Under weights every share has its own effective number of traces. A
    class without labels or verdicts is ``not_estimable``.

    Examples
    --------
    >>> judge_quality(confusion_from_table([[8, 2], [1, 9]])).per_class[0].recall.value
    0.8
    """
    found = quality_against_key(
        confusion.table,
        n=confusion.n,
        squares=confusion.squares,
        nothing=NO_LABELS,
        no_key="no labelled trace of this class: label more",
        not_given="no labelled trace with this verdict: label more",
        confidence_level=confidence_level,
    )
    return JudgeQuality(
        accuracy=found.accuracy,
        kappa=found.kappa,
        per_class=tuple(
            ClassQuality(
                recall=one.recall,
                precision=one.precision,
                n_human=one.n_key,
                n_judge=one.n_given,
            )
            for one in found.per_class
        ),
        n=found.n,
    )


Design = Literal["production", "reference"]
HEADLINE: Mapping[str, str] = {"production": "post_stratified", "reference": "inversion"}

# The estimators among which the headline is, whatever the design.
HEADLINES = ("two_phase", *HEADLINE.values())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledSample:
    """Traces that have both a human label and a verdict.

    Parameters
    ----------
    human : float array, shape (n, n_classes)
        Class shares, rows summing to one: one-hot for an adjudicated or single label, else the mean
        over the reviewers.
    verdicts : int array, shape (n,)
        Verdict codes; codes from n_classes up are verdicts that are no class.
    penalties : float array, shape (n,), optional
        Cost penalty of each trace in [0, 1]; None scores without cost.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities.
    clusters : array, shape (n,), optional
        Task of each trace, when tasks repeat.
    first_human : float array, shape (n, n_classes), optional
        Class shares before adjudication, of a reviewer or of the mixture of reviewers.
    overlap : bool array, shape (n,), optional
        Traces with two labels.
    strata : array, shape (n,), optional
        Stratum that each trace was drawn from at random, where inclusion probabilities differ.
    table : int array, shape (n,), optional
        Table of credit of each trace, where workflows have their own.
    """

    human: FloatArray
    verdicts: IntArray
    penalties: FloatArray | None = None
    weights: FloatArray | None = None
    clusters: NDArray[np.generic] | None = None
    first_human: FloatArray | None = None
    overlap: BoolArray | None = None
    strata: NDArray[np.generic] | None = None
    table: IntArray | None = None

    def where(self, rows: BoolArray) -> "LabelledSample":
        """Return the sample of some of the traces: within strata their number is random."""
        columns = {of.name: getattr(self, of.name) for of in fields(self)}
        given = {name: values[rows] for name, values in columns.items() if values is not None}
        if not rows.all():
            given["strata"] = None
        return replace(self, **given)

    def scores(self, credit: FloatArray, *, net: bool = True) -> FloatArray:
        """Return the score of each trace, with its own cost when `net`.

        `credit` is of the classes, or has one row per table. ValueError if the penalties have
        another shape or one is outside [0, 1], or as `own_rows`.
        """
        human = np.asarray(self.human, dtype=np.float64)
        credit = own_rows(np.atleast_2d(credit), self.table)
        if not net or self.penalties is None:
            gross: FloatArray = human @ credit[0] if len(credit) == 1 else (human * credit).sum(1)
            return gross
        penalty = np.asarray(self.penalties, dtype=np.float64)
        if penalty.shape != (len(human),):
            raise ValueError(f"penalties must have shape ({len(human)},), got {penalty.shape!r}")
        if penalty.size and not (penalty.min() >= 0 and penalty.max() <= 1):
            raise ValueError(
                f"penalties must be in [0, 1], got {penalty.min()!r} to {penalty.max()!r}"
            )
        kept: FloatArray = (human * np.maximum(0.0, credit - penalty[:, None])).sum(axis=1)
        return kept


def judge_raw(production: ProductionSums, *, confidence_level: float = 0.95) -> Estimate:
    """Return the mean score if every verdict were right: a diagnostic, never with an interval.

    Traces whose verdict is no class do not count. The error of this rate is bias, which no sampling
    interval covers.

    Examples
    --------
    >>> judge_raw(production_sums_from_counts([70, 30], credit=[1.0, 0.0])).value
    0.7
    """
    if production.raw_n == 0:
        why = "no production trace has a verdict: run the judge"
        return not_estimable(why, method="uncorrected judge", confidence_level=confidence_level)
    return Estimate(
        value=production.raw_sum / production.raw_n,
        interval=None,
        n=production.raw_n,
        method="uncorrected judge",
        confidence_level=confidence_level,
    )


def judge_shares(production: ProductionSums) -> tuple[Estimate, ...]:
    """Return the shares of the class verdicts, uncorrected: a diagnostic, never with an interval.

    Examples
    --------
    >>> found = judge_shares(production_sums_from_counts([70, 30, 9], credit=[1.0, 0.0]))
    >>> found[0].value, found[1].value
    (0.7, 0.3)
    """
    method = "uncorrected judge"
    counts = production.counts[: production.credit.size]
    if counts.sum() <= 0:
        why = "no production trace has a verdict: run the judge"
        return (not_estimable(why, method=method),) * counts.size
    n = round(float(counts.sum()))
    return tuple(
        Estimate(value=float(count / counts.sum()), interval=None, n=n, method=method)
        for count in counts
    )


def with_enough_labels(
    shares: Iterable[Estimate], human: FloatArray, minimum_labels: int = CLASS_LABELS_MIN
) -> tuple[Estimate, ...]:
    """Return class shares without the intervals of classes with too few labels in `human`."""
    few = f"no interval: fewer than {minimum_labels} labels of this class"
    return tuple(
        share
        if not share.ok or labels >= minimum_labels
        else replace(share, interval=None, se=None, status=few)
        for share, labels in zip(shares, human.sum(axis=0).tolist(), strict=True)
    )


def verdict_rates(table: FloatArray, *, pseudo_count: float) -> FloatArray:
    """Return P(verdict | human class), shape (..., n_classes, n_verdicts).

    Each row gets `pseudo_count` in total, spread evenly; ValueError if it is negative or not
    finite.

    Examples
    --------
    >>> verdict_rates(np.array([[8.0, 2.0], [1.0, 9.0]]), pseudo_count=0).tolist()
    [[0.8, 0.2], [0.1, 0.9]]
    """
    if not 0 <= pseudo_count < np.inf:
        raise ValueError(f"pseudo_count must be in [0, inf), got {pseudo_count!r}")
    smoothed = table + pseudo_count / table.shape[-1]
    rates: FloatArray = smoothed / smoothed.sum(axis=-1, keepdims=True)
    return rates


def right_inverse(rates: FloatArray) -> FloatArray:
    """Return A with rates @ A = 1, shape (..., n_verdicts, n_classes).

    With as many verdicts as classes it is the inverse; with more, the generalised least squares one
    under equal class shares: the right inverse with the smallest variance there. Its class shares
    sum to one for any mix of verdicts.

    Examples
    --------
    >>> wide = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1]])
    >>> (wide @ right_inverse(wide)).round(9).tolist(), right_inverse(wide).sum(axis=1).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0, 1.0])
    """
    if rates.shape[-2] == rates.shape[-1]:
        return np.linalg.inv(rates).astype(np.float64)
    mix = np.broadcast_to(rates.mean(axis=-2, keepdims=True), rates.shape)
    scaled = np.divide(rates, mix, out=np.zeros_like(rates), where=mix > 0)
    found = np.linalg.solve(scaled @ np.swapaxes(rates, -1, -2), scaled)
    return np.swapaxes(found, -1, -2).astype(np.float64)


# The levels of a column, and traces by stratum, level, and whether they were asked about.
LevelCounts = tuple[Sequence[str], FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """Tests that the traces asked about are a random part of production, by column.

    `p`, `p_holm` : p-value of each column with two levels or more, and adjusted for their number.
    `warned` : columns with an adjusted p-value below .01.
    `refused` : levels that a random sample would hold, each with its column.
    `strata` : number of strata of the draw within which the two were compared.
    `checked` : false where the draw was uneven and its strata are not known: only levels that
    nobody was asked about are.
    """

    p: Mapping[str, float] = field(default_factory=dict)
    p_holm: Mapping[str, float] = field(default_factory=dict)
    warned: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    strata: int = 1
    checked: bool = True


def composition(
    columns: Mapping[str, NDArray[np.str_]], asked: BoolArray, strata: IntArray | None = None
) -> Composition:
    """Test each column for a difference between traces asked about and the others.

    Parameters
    ----------
    columns : mapping of str to array, shape (n_traces,)
        Levels by column, for instance the agent of each trace.
    asked : bool array, shape (n_traces,)
        Traces that were labelled or skipped; within a stratum the draw gave all the same chance.
    strata : int array, shape (n_traces,), optional
        Stratum of the draw, from 0; None where all traces had the same chance.

    Returns
    -------
    Composition
        As `composition_of_counts`.

    Examples
    --------
    All three traces asked about are of agent a, as 1 of the 20 choices of three of six would be,
    and 1 would all be of b:

    >>> agents = np.array(["a", "a", "a", "b", "b", "b"])
    >>> found = composition({"agent": agents}, np.arange(6) < 3)
    >>> round(found.p["agent"], 9), found.warned, found.refused
    (0.1, (), ())
    """
    stratum = np.zeros(asked.size, dtype=np.int64) if strata is None else strata
    n_strata = int(stratum.max(initial=0)) + 1
    counts: dict[str, LevelCounts] = {}
    for name, levels in columns.items():
        names, level = np.unique(levels, return_inverse=True)
        cells = (stratum * names.size + level) * 2 + ~asked
        table = np.bincount(cells, minlength=n_strata * names.size * 2)
        counts[name] = names.tolist(), table.reshape(n_strata, names.size, 2).astype(np.float64)
    return composition_of_counts(counts)


def missed_levels(
    columns: Mapping[str, NDArray[np.str_]], asked: BoolArray, weights: FloatArray
) -> Composition:
    """Refuse levels that nobody was asked about, where the strata of the draw are not known.

    The chance of a trace to be asked about is taken for at least the smallest among those asked
    about, p = sum of weights / (largest weight x traces). A draw misses a level of k traces with at
    most (1 - p)^k. No column is compared.

    Parameters
    ----------
    columns, asked
        As in `composition`.
    weights : float array
        Of the traces asked about, inversely proportional to their chances.

    Examples
    --------
    Of 50 traces, 25 of agent a are asked about and none of the 25 of b, with equal weights: p is
    25 / 50, and (1 / 2)^25 is below .0001.

    >>> agents = np.repeat(["a", "b"], 25)
    >>> missed_levels({"agent": agents}, agents == "a", np.full(25, 2.0)).refused
    (('agent', 'b'),)
    """
    chance = min(1.0, float(weights.sum() / (weights.max() * asked.size)))
    refused = []
    for column, levels in columns.items():
        names, of = np.unique(levels, return_inverse=True)
        for name, k in zip(names.tolist(), np.bincount(of).tolist(), strict=True):
            missed = not asked[levels == name].any() and k >= SHARE_MISSED * asked.size
            if missed and (1 - chance) ** k < CHANCE_MISSED:
                refused.append((column, name))
    return Composition(refused=tuple(refused), checked=False)


def composition_of_counts(counts: Mapping[str, LevelCounts]) -> Composition:
    """Test each column for a difference between traces asked about and the others, from counts.

    In each stratum of the draw the traces asked about are a random part of all, given the number of
    each level. The counts by level are added over the strata. Two levels: the exact test, the sum
    of the probabilities of all sums no likelier than the given one; in one stratum it is Fisher's.
    More: levels with fewer than 5 expected traces in the smaller of the two groups are pooled,
    smallest first, then the generalised Cochran-Mantel-Haenszel chi-square; in one stratum
    Pearson's. Holm over the columns.

    A level with 5 % of production or more that nobody was asked about, although random draws within
    the strata would miss it with a probability below .0001, is refused.

    Parameters
    ----------
    counts : mapping of str to (levels, float array of shape (n_strata, n_levels, 2))
        By column: traces asked about and others.

    References
    ----------
    Fisher (1922), J. R. Stat. Soc. 85. https://doi.org/10.2307/2340521
    Mantel and Haenszel (1959), J. Natl. Cancer Inst. 22. https://doi.org/10.1093/jnci/22.4.719
    Landis, Heyman and Koch (1978), Int. Stat. Rev. 46: more than two levels.
    https://doi.org/10.2307/1402373
    Holm (1979), Scand. J. Stat. 6: adjusted p-values. https://www.jstor.org/stable/4615733

    Examples
    --------
    Two strata of two traces, one asked about in each, both times that of agent a: 1 of 4 choices,
    and 1 of 4 would take b twice.

    >>> both = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
    >>> round(composition_of_counts({"agent": (["a", "b"], both)}).p["agent"], 9)
    0.5
    """
    p: dict[str, float] = {}
    refused: list[tuple[str, str]] = []
    n_strata = 1
    for name, (levels, table) in counts.items():
        n_strata = max(n_strata, len(table))
        if len(levels) < 2:
            continue
        found = _p_value(table)
        if found is not None:
            p[name] = found
        total, asked = table.sum(axis=2), table[:, :, 0].sum(axis=0)
        missed = (asked == 0) & (total.sum(axis=0) >= SHARE_MISSED * total.sum())
        for k in np.flatnonzero(missed).tolist():
            if (
                _chance_missed(total[:, k], table[:, :, 0].sum(axis=1), total.sum(axis=1))
                < CHANCE_MISSED
            ):
                refused.append((name, str(levels[k])))
    adjusted = holm(p)
    return Composition(
        p=p,
        p_holm=adjusted,
        warned=tuple(name for name, value in adjusted.items() if value < WARNED),
        refused=tuple(refused),
        strata=n_strata,
    )


def _p_value(table: FloatArray) -> float | None:
    """Return the p-value of strata x levels x (asked, others); None if nothing is random."""
    # A stratum of which all were asked about, or none, says nothing.
    table = table[(table.sum(axis=1) > 0).all(axis=1)]
    table = table[:, table.sum(axis=(0, 2)) > 0]
    if len(table) == 0 or table.shape[1] < 2:
        return None
    if table.shape[1] == 2:
        return _exact(table)
    groups = table.sum(axis=1)
    smaller = int(groups.sum(axis=0).argmin())
    least = groups[:, smaller] / groups.sum(axis=1)
    rows = [table[:, k] for k in range(table.shape[1])]
    while len(rows) > 1 and min(float(least @ row.sum(axis=1)) for row in rows) < EXPECTED_MIN:
        rows.sort(key=lambda row: float(row.sum()))
        rows = [rows[0] + rows[1], *rows[2:]]
    if len(rows) < 2:
        return None
    return _chi_square(np.stack(rows, axis=1))


def _chi_square(table: FloatArray) -> float | None:
    """Return the p-value of the sums over strata of the traces asked about, by level."""
    total, groups = table.sum(axis=2), table.sum(axis=1)
    size = groups.sum(axis=1)
    expected = total * (groups[:, 0] / size)[:, None]
    # One stratum: Pearson's statistic divides by its size.
    scale = groups.prod(axis=1) / (size**2 * (size if len(table) == 1 else size - 1))
    products = np.einsum("s,sk,sl->kl", scale, total, total)
    covariance = np.diag((scale * size) @ total) - products
    apart = (table[:, :, 0] - expected).sum(axis=0)
    rank = int(np.linalg.matrix_rank(covariance, hermitian=True))
    if rank == 0:
        return None
    statistic = float(apart @ np.linalg.pinv(covariance, hermitian=True) @ apart)
    return float(special.chdtrc(rank, statistic))


def _log_choose(n: FloatArray | float, k: FloatArray | float) -> FloatArray:
    return np.asarray(special.gammaln(np.add(n, 1)) - special.gammaln(np.add(k, 1))
        - special.gammaln(np.subtract(n, k) + 1), dtype=np.float64)  # fmt: skip


def _exact(table: FloatArray) -> float | None:
    """Return the sum of the probabilities of all sums over strata no likelier than the given."""
    chance, start = np.ones(1), 0.0
    for (first, second), n in zip(table.sum(axis=2), table[:, :, 0].sum(axis=1), strict=True):
        inside = np.arange(max(0.0, n - second), min(first, n) + 1)
        log = _log_choose(first, inside) + _log_choose(second, n - inside)
        chance = np.convolve(chance, np.exp(log - _log_choose(first + second, n)))
        start += float(inside[0])
    if chance.size == 1:
        return None
    own = chance[int(table[:, 0, 0].sum() - start)]
    # Sums of equal probability differ by rounding.
    return min(1.0, float(chance[chance <= own * (1 + 1e-7)].sum()))


def _chance_missed(level: FloatArray, n: FloatArray, whole: FloatArray) -> float:
    """Return the probability that n of the whole of each stratum hold none of a level."""
    if (n > whole - level).any():
        return 0.0
    return float(np.exp((_log_choose(whole - level, n) - _log_choose(whole, n)).sum()))
