"""Rate and class shares from a reference set, by its confusion matrix and the verdicts alone.

All estimators here assume that P(verdict | human class) is the same in the reference set and in
production and does not depend on cost given the class; the class mix may differ. `table`, shape
(n_classes, n_verdicts), holds reference traces by human class and verdict; verdicts after the
first n_classes are no class. The same state of `rng` gives the same result.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from calibration.judge_calibration.samples import (
    LabelledSample,
    Notice,
    ProductionSums,
    RepeatedTasks,
    confusion_from_table,
    right_inverse,
    tasks_of,
    verdict_rates,
)
from calibration.statistics.estimate import (
    OK,
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    not_estimable,
    validated_weights,
)
from calibration.statistics.intervals import (
    MINIMUM_UNITS,
    NO_VARIANCE,
    clipped,
    percentile_estimate,
    resampled_sums,
    two_sided_t,
    two_sided_z,
)

# Design effects of labels and of production where no task repeats.
SINGLE = (1.0, 1.0)

DELTA_METHOD = "confusion matrix inverted, delta"
DELTA_BY_TASK = "confusion matrix inverted, delta by task, t"
BOOTSTRAP_METHOD = "confusion matrix inverted, two-source bootstrap"
NO_ERROR_SEEN = "no interval: no judge error seen in the reference set; use a pseudo-count"

OUTSIDE = (
    "the interval is outside [0, 1]: the judge's error rates do not carry over; label production"
)

# Smallest singular value at which the error rates of a resample are inverted.
SINGULAR = 1e-6

NO_LABELS_OF_CLASS = "no reference trace of this class: label some"
MOST_SINGULAR = 0.01
LEE_METHOD = "Rogan-Gladen, interval of Lee et al."

# Conditions on the error rates for an inversion to be used.
SIGMA_MIN, YOUDEN_MIN, REFERENCE_LABELS_MIN = 0.2, 0.3, 10

VERDICT_SHARE_THAT_COUNTS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Inversion:
    """Inverted estimate with its diagnostics.

    `unclipped` : the estimate before it was cut to [0, 1].
    `prevalence` : class shares as inverted.
    `prevalence_clipped` : negative shares set to zero, the rest rescaled to one.
    `rates` : P(verdict | human class) with the pseudo-counts, shape (n_classes, n_verdicts).
    `verdict_weights` : contribution of a trace with each verdict and no penalty.
    `level_weights` : its contribution for each unit of max(0, level - penalty), by verdict and
    level.
    `sigma_min` : smallest singular value of `rates`; near zero the judge cannot tell classes apart.
    `variance_reference`, `variance_production` : the two parts of the squared standard error.
    `effects` : factors by which repeated tasks widen the squared limits of the two parts, of the
    rate or of the class shares together, whichever is larger; the same for both parts where the
    labels are of production.
    """

    estimate: Estimate
    unclipped: float | None
    prevalence: tuple[float, ...]
    prevalence_clipped: tuple[float, ...]
    rates: tuple[tuple[float, ...], ...]
    verdict_weights: tuple[float, ...]
    level_weights: tuple[tuple[float, ...], ...]
    sigma_min: float
    variance_reference: float
    variance_production: float
    effects: tuple[float, float] = SINGLE


def invert(
    table: ArrayLike,
    production: ProductionSums,
    *,
    labelled: LabelledSample | None = None,
    of_production: bool = False,
    pseudo_count: float = 0.5,
    confidence_level: float = 0.95,
) -> Inversion:
    """Estimate the mean score and class shares by the multi-class Rogan-Gladen estimator.

    If the error rates shift, the interval does not cover. The limits of the class shares are those
    of their posterior: `bayesian.inverted_shares`.

    Parameters
    ----------
    labelled : LabelledSample, optional
        The traces of `table`, where their tasks repeat.
    of_production : bool, default False
        Whether they are runs of production: a task of both then counts once.
    pseudo_count : float, default 0.5
        Total added to each row, `pseudo_count` / n_verdicts a cell; 0 is plain inversion.

    Returns
    -------
    Inversion
        Normal interval from the closed-form delta variance of both sources; t where tasks repeat.
        ``not_estimable`` without production or with a singular matrix. No interval below 5 tasks.

    Raises
    ------
    ValueError
        If the shapes do not fit or a count is negative.

    Notes
    -----
    A class without any reference trace is left out, which assumes that production has none;
    `inversion_refusals` refuses if the class counts. With t_s[k] the sum of max(0, s - penalty)
    over production traces with verdict k, C the rates and e_s the classes of credit s:
    theta = sum_s t_s . C^-1 e_s / N. With M = sum_s (C^-T t_s / N)(C^-1 e_s)^T the reference part
    of the variance is sum_j Var_{C_j}(M_j.) / n_j. With more verdicts than classes C^-1 is
    `right_inverse`: any right inverse is unbiased and has this variance to first order.
    Where tasks repeat, a run of production has the influence (a - theta) / N, a its sum over s of
    max(0, s - penalty) x the entry of C^-1 e_s at its verdict, and a label of class j and verdict k
    -(M_jk - mean of M over the labels of the row) / n_j; influences are summed by task. What the
    pseudo-counts add to the variance is added. df: the smaller of tasks - 1 over labels and the
    effective number of tasks - 1 over production.

    References
    ----------
    Rogan and Gladen (1978), Am. J. Epidemiol. 107.
    https://doi.org/10.1093/oxfordjournals.aje.a112510

    Examples
    --------
    Sensitivity .8, specificity .9, 45 % passed: (.45 + .9 - 1) / (.8 + .9 - 1).

    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> production = production_sums_from_counts([450, 550], credit=[1.0, 0.0])
    >>> invert([[80, 20], [10, 90]], production, pseudo_count=0).estimate.value
    0.5
    """
    check_confidence_level(confidence_level)
    cells = checked_cells(table, production)
    n_classes, n_verdicts = cells.shape
    known = cells.sum(axis=1) > 0
    rates = np.zeros_like(cells)
    rates[known] = verdict_rates(cells[known], pseudo_count=pseudo_count)
    singular = np.linalg.svd(rates[known], compute_uv=False)
    sigma_min = float(singular[-1]) if singular.size else 0.0
    if production.n == 0 or sigma_min < 1e-9:
        return _refused(production.n, rates, sigma_min, confidence_level)
    # shape (n_verdicts, n_classes), a column of zeros for a class that is left out
    inverse = np.zeros((n_verdicts, n_classes))
    inverse[:, known] = right_inverse(rates[known])
    sizes = np.where(known, cells.sum(axis=1) + pseudo_count, 1.0)
    share = production.counts / production.n
    prevalence = inverse.T @ share
    level_weights = inverse @ production.of_level
    value, mixed, *alone = _score(rates, inverse, level_weights, sizes, production)
    labels = TableLabels.of(labelled, production, cells.sum(axis=1) / sizes, shared=of_production)
    parts, effects = alone, SINGLE
    if labels.tasks.repeat:
        runs = production.runs
        kept = production.kept(runs.penalties, runs.table).T
        apart = (level_weights[runs.verdicts] * kept).sum(axis=1) - value
        parts = list(labels.variances(mixed, apart, alone[0]))
        single = _share_variances(rates, inverse, sizes, production)
        by_class = zip(inverse.T, prevalence, single[0], strict=True)
        by_task = np.array([
            labels.variances(np.outer(prevalence, row), row[runs.verdicts] - of_class, reference)
            for row, of_class, reference in by_class
        ])  # fmt: skip
        of_rate = _effects(parts, alone, labels.tasks, confidence_level)
        of_shares = _effects(
            by_task.sum(axis=0), single.sum(axis=1), labels.tasks, confidence_level
        )
        effects = max(of_rate[0], of_shares[0]), max(of_rate[1], of_shares[1])
    estimate = _estimate(
        value, sum(parts), n=production.n, tasks=labels.tasks, confidence_level=confidence_level
    )
    if estimate.ok and alone[0] < NO_VARIANCE:
        estimate = replace(estimate, interval=None, se=None, status=NO_ERROR_SEEN)
    kept = np.maximum(0.0, prevalence)
    return Inversion(
        estimate=estimate,
        unclipped=value,
        prevalence=tuple(prevalence.tolist()),
        prevalence_clipped=tuple((kept / kept.sum()).tolist()),
        rates=tuple(tuple(row) for row in rates.tolist()),
        verdict_weights=tuple((level_weights @ production.levels).tolist()),
        level_weights=tuple(tuple(row) for row in level_weights.tolist()),
        sigma_min=sigma_min,
        variance_reference=parts[0],
        variance_production=parts[1],
        effects=effects,
    )


def checked_cells(table: ArrayLike, production: ProductionSums) -> FloatArray:
    """Return the table, checked against the classes and verdicts of production."""
    cells, shape = (
        confusion_from_table(table).table,
        (production.credit.size, production.counts.size),
    )
    if cells.shape != shape:
        raise ValueError(f"table must have shape {shape!r}, got {cells.shape!r}")
    return cells


def _score(
    rates: FloatArray,
    inverse: FloatArray,
    level_weights: FloatArray,
    sizes: FloatArray,
    production: ProductionSums,
) -> tuple[float, FloatArray, float, float]:
    """Return the corrected mean score, M, and the two parts of the variance of single runs."""
    n = production.n
    value = float((production.sums * level_weights.T).sum() / n)
    mixed = inverse.T @ (production.sums.T / n) @ level_weights.T
    row_variance = (rates * mixed**2).sum(axis=1) - (rates * mixed).sum(axis=1) ** 2
    reference = float((row_variance / sizes).sum())
    squares = np.einsum("suk,ks,ku->", production.products, level_weights, level_weights)
    return value, mixed, reference, max(0.0, float(squares / n - value**2)) / n


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableLabels:
    """The traces of the table, their share of its smoothed rows, and the tasks of both sources."""

    labelled: LabelledSample | None
    kept: FloatArray
    tasks: RepeatedTasks

    @classmethod
    def of(
        cls,
        labelled: LabelledSample | None,
        production: ProductionSums,
        kept: FloatArray,
        *,
        shared: bool,
    ) -> "TableLabels":
        """Return the labels with their tasks; `kept` is the share of labels in each row."""
        clusters, n = (None, 0) if labelled is None else (labelled.clusters, labelled.verdicts.size)
        tasks = tasks_of(clusters, n, production.runs, shared=shared)
        return cls(labelled=labelled, kept=kept, tasks=tasks)

    def variances(
        self, mixed: FloatArray, apart: FloatArray, reference: float
    ) -> tuple[float, float]:
        """Return the two parts of a variance by task; `reference` is the first of single labels."""
        influence = np.zeros(0)
        if self.labelled is not None:
            human = np.asarray(self.labelled.human, dtype=np.float64)
            own = human * validated_weights(self.labelled.weights, len(human))[:, None]
            share = own / np.maximum(own.sum(axis=0), np.finfo(np.float64).tiny)
            of_verdict = mixed[:, self.labelled.verdicts].T
            centred = of_verdict - (share * of_verdict).sum(axis=0)
            influence = -(share * self.kept * centred).sum(axis=1)
        whole, between = self.tasks.variance(influence, apart)
        # What the pseudo-counts and disagreement of reviewers add shows in no label.
        unseen = max(0.0, reference - float(influence @ influence))
        return whole - between + unseen, between


def _effects(
    parts: Sequence[float], alone: Sequence[float], tasks: RepeatedTasks, confidence_level: float
) -> tuple[float, float]:
    """Return design effects: variance by task over that of single runs, and t over normal."""
    if tasks.shared:
        parts, alone = (sum(parts),) * 2, (sum(alone),) * 2
    wider = (two_sided_t(confidence_level, tasks.df()) / two_sided_z(confidence_level)) ** 2
    reference, production = (
        max(1.0, wider * new / old) if old > 0 else 1.0
        for new, old in zip(parts, alone, strict=True)
    )
    return reference, production


def at_effective_size(
    cells: FloatArray, production: ProductionSums, effects: tuple[float, float]
) -> tuple[FloatArray, ProductionSums]:
    """Return table and production as so many single labels and runs as they are worth.

    Rao and Scott (1992), Biometrics 48: counts of clustered data divided by their design effect.
    https://doi.org/10.2307/2532311
    """
    fewer = replace(
        production,
        counts=production.counts / effects[1],
        sums=production.sums / effects[1],
        products=production.products / effects[1],
    )
    return cells / effects[0], fewer


def _estimate(
    value: float, variance: float, *, n: int, tasks: RepeatedTasks, confidence_level: float
) -> Estimate:
    quantile = two_sided_t(confidence_level, tasks.df())
    se = float(np.sqrt(max(0.0, variance)))  # rounding can leave -1e-18 where it is zero
    lower, upper = value - quantile * se, value + quantile * se
    method = DELTA_BY_TASK if tasks.repeat else DELTA_METHOD
    if lower >= 1 or upper <= 0:
        return not_estimable(OUTSIDE, method=method, n=n, confidence_level=confidence_level)
    found = Estimate(
        value=min(1.0, max(0.0, value)),
        interval=clipped(lower, upper),
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=OK,
        se=se,
        df=tasks.df() if tasks.repeat else None,
    )
    if tasks.units is None or tasks.units >= MINIMUM_UNITS:
        return found
    why = f"no interval: {tasks.units} tasks, at least {MINIMUM_UNITS} are needed"
    return replace(found, interval=None, se=None, status=why)


def _share_variances(
    rates: FloatArray, inverse: FloatArray, sizes: FloatArray, production: ProductionSums
) -> FloatArray:
    """Return both parts of the variance of each class share of single runs."""
    share = production.counts / production.n
    prevalence = inverse.T @ share
    row_variance = rates @ inverse**2 - (rates @ inverse) ** 2
    of_production = np.maximum(0.0, share @ inverse**2 - prevalence**2) / production.n
    return np.stack([(prevalence**2 / sizes) @ row_variance, of_production])


def _refused(n: int, rates: FloatArray, sigma_min: float, confidence_level: float) -> Inversion:
    why = (
        "no production verdicts: run the judge on production"
        if n == 0
        else "the judge cannot tell some classes apart: improve it or merge the classes"
    )
    refused = not_estimable(why, method=DELTA_METHOD, n=n, confidence_level=confidence_level)
    return Inversion(
        estimate=refused,
        unclipped=None,
        prevalence=(),
        prevalence_clipped=(),
        rates=tuple(tuple(row) for row in rates.tolist()),
        verdict_weights=(),
        level_weights=(),
        sigma_min=sigma_min,
        variance_reference=0.0,
        variance_production=0.0,
    )


def youden_index(table: FloatArray) -> FloatArray:
    """Return the judge's recall + specificity - 1 for each class, shape (n_classes,).

    NaN for a class with no labels or with all of them.

    Examples
    --------
    >>> youden_index(np.array([[8.0, 2.0], [1.0, 9.0]])).tolist()
    [0.7, 0.7]
    """
    n_classes = table.shape[0]
    rows, columns = table.sum(axis=1), table.sum(axis=0)[:n_classes]
    hits = table[np.arange(n_classes), np.arange(n_classes)]
    others = table.sum() - rows
    index = np.full(n_classes, np.nan)
    usable = (rows > 0) & (others > 0)
    index[usable] = hits[usable] / rows[usable] - (columns - hits)[usable] / others[usable]
    return index


def inversion_refusals(
    table: FloatArray,
    inversion: Inversion,
    *,
    credit: FloatArray,
    verdict_shares: FloatArray,
    names: Sequence[str],
) -> tuple[Notice, ...]:
    """Return why the inverted estimate may not be used; empty when it may.

    Codes: ``classes_not_separated`` (smallest singular value below .2), ``judge_too_weak`` (recall
    + specificity - 1 below .3 for a class) and ``few_reference_labels`` (fewer than 10 of a class
    that has credit or more than 2 % of the verdicts). `verdict_shares` are those of production;
    `names` of the verdicts begin with the classes.
    """
    found = []
    if inversion.sigma_min < SIGMA_MIN:
        found.append(
            Notice(
                code="classes_not_separated",
                estimator="inversion",
                why="its verdicts do not tell the classes apart (smallest singular value of the "
                f"error rates {inversion.sigma_min:.3f}, below {SIGMA_MIN})",
                mend="improve the judge, merge classes, or label a random sample of production",
            )
        )
    index = youden_index(table)
    for k in np.flatnonzero(index < YOUDEN_MIN).tolist():
        found.append(
            Notice(
                code="judge_too_weak",
                estimator="inversion",
                why=f"it hardly tells {names[k]} from the rest (recall + specificity - 1 is "
                f"{index[k]:.2f}, below {YOUDEN_MIN})",
                mend="improve the judge on this class, or label a random sample of production",
            )
        )
    rows, n_classes = table.sum(axis=1), table.shape[0]
    counts = (credit > 0) | (verdict_shares[:n_classes] > VERDICT_SHARE_THAT_COUNTS)
    for k in np.flatnonzero(counts & (rows < REFERENCE_LABELS_MIN)).tolist():
        found.append(
            Notice(
                code="few_reference_labels",
                estimator="inversion",
                why=f"{rows[k]:g} reference labels of {names[k]}, "
                f"fewer than {REFERENCE_LABELS_MIN}",
                mend=f"label more reference traces of {names[k]}",
            )
        )
    return tuple(found)


def share_warnings(inversion: Inversion, *, names: Sequence[str]) -> tuple[Notice, ...]:
    """Warn of inverted class shares outside [0, 1]; code ``share_outside_unit_interval``."""
    return tuple(
        Notice(
            code="share_outside_unit_interval",
            estimator="inversion",
            why=f"the share of {names[k]} comes out as {share:.3f}",
            mend="use the clipped shares beside it; check that the judge's error rates carry over",
        )
        for k, share in enumerate(inversion.prevalence)
        if share < 0 or share > 1
    )


def draw_sums(
    production: ProductionSums,
    mix: FloatArray,
    *,
    verdicts: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw t_s[k], the mean over production of max(0, s - penalty) at verdict k.

    The verdict shares are given. The means over the traces of a verdict are drawn from their normal
    approximation, with the covariance that the penalties give the levels; without costs they are
    the levels themselves.

    `mix`, shape (n_draws, n_kept), holds drawn shares of `verdicts`, shape (n_kept,); the result
    has shape (n_draws, n_levels, n_kept).

    Examples
    --------
    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> draw_sums(
    ...     production_sums_from_counts([70, 30], credit=[1.0, 0.5]), np.array([[0.6, 0.4]]),
    ...     verdicts=np.array([0, 1]), rng=np.random.default_rng(0),
    ... ).tolist()
    [[[0.3, 0.2], [0.6, 0.4]]]
    """
    traces = np.maximum(1.0, production.counts[verdicts])
    means = production.sums[:, verdicts] / traces
    if not production.varies:
        flat: FloatArray = production.levels[:, None] * mix[:, None, :]
        return flat
    spread = production.products[:, :, verdicts] / traces - means[:, None] * means[None]
    spread = np.moveaxis(spread, -1, 0) / traces[:, None, None]
    values, vectors = np.linalg.eigh(spread)
    # The symmetric root: the signs of the vectors alone differ from machine to machine.
    root = (vectors * np.sqrt(np.maximum(0.0, values))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    noise = rng.standard_normal((mix.shape[0], verdicts.size, production.levels.size))
    drawn = means + np.einsum("kst,dkt->dsk", root, noise)
    drawn = np.clip(drawn, 0.0, production.of_tables.max(axis=0)[:, None])
    # A verdict that production never had is known by its share alone: no cost is assumed.
    drawn = np.where(production.counts[verdicts] > 0, drawn, production.levels[:, None])
    result: FloatArray = drawn * mix[:, None, :]
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapInversion:
    """Values of `invert` with percentile intervals.

    `singular` : share of the resamples whose error rates could not be inverted.
    """

    estimate: Estimate
    shares: tuple[Estimate, ...]
    singular: float


def bootstrap_inversion(
    table: ArrayLike,
    production: ProductionSums,
    *,
    rng: np.random.Generator,
    labelled: LabelledSample | None = None,
    pseudo_count: float = 0.5,
    n_resamples: int = 2_000,
    confidence_level: float = 0.95,
) -> BootstrapInversion:
    """Bootstrap the inverted mean score and class shares.

    Each class of the reference set is resampled by itself, so that no resample loses a class, and
    production is resampled too, by whole tasks where they repeat: with either fixed the interval
    would be too short. The result is ``not_estimable`` where `invert` is, or when more than 1 % of
    the resamples are singular; `labelled` and errors are those of `invert`.

    Notes
    -----
    Cells are fractions when reviewers differ or labels are weighted; a row is then drawn with its
    rounded size. It is drawn from the smoothed rates: plain resamples of a row without an error
    never show one, and covered .89 for a judge of .95 with 200 labels. Where tasks
    of the reference set repeat, a row is drawn as large as its effective number of labels. Costs of
    single runs are resampled by `draw_sums`.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
    https://doi.org/10.1201/9780429246593

    Examples
    --------
    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> production = production_sums_from_counts([450, 550], credit=[1.0, 0.0])
    >>> bootstrap_inversion(
    ...     [[80, 20], [10, 90]], production, pseudo_count=0, rng=np.random.default_rng(0)
    ... ).estimate.value
    0.5
    """
    plain = invert(
        table,
        production,
        labelled=labelled,
        pseudo_count=pseudo_count,
        confidence_level=confidence_level,
    )
    if plain.unclipped is None:
        refused = not_estimable(
            plain.estimate.status.removeprefix("not_estimable: "),
            method=BOOTSTRAP_METHOD,
            n=production.n,
            confidence_level=confidence_level,
        )
        return _bootstrap_refused(refused, production, 0.0)
    cells = np.asarray(table, dtype=np.float64)
    known = cells.sum(axis=1) > 0
    rates = _drawn_rates(cells[known], pseudo_count, plain.effects[0], n_resamples, rng)
    by_task = None
    if production.runs.tasks is None:
        mix = rng.multinomial(
            production.n, production.counts / production.counts.sum(), size=n_resamples
        ) / max(1, production.n)
    else:
        mix, by_task = _drawn_tasks(production, n_resamples, rng)
    usable = np.linalg.svd(rates, compute_uv=False)[:, -1] > SINGULAR
    singular = 1 - float(usable.mean())
    if singular > MOST_SINGULAR:
        why = (
            f"{singular:.1%} of the resamples cannot be inverted: label more reference traces, or "
            "improve the judge"
        )
        refused = not_estimable(
            why, method=BOOTSTRAP_METHOD, n=production.n, confidence_level=confidence_level
        )
        return _bootstrap_refused(refused, production, singular)
    inverse = right_inverse(rates[usable])
    sums = (
        draw_sums(production, mix[usable], verdicts=np.arange(cells.shape[1]), rng=rng)
        if by_task is None
        else by_task[usable]
    )
    level = production.of_level[known]
    scores = np.einsum("dsk,dks->d", sums, inverse @ level)
    prevalence = np.zeros((len(inverse), known.size))
    prevalence[:, known] = np.einsum("dk,dkj->dj", mix[usable], inverse)
    status = plain.estimate.status if plain.variance_reference < NO_VARIANCE else OK
    return BootstrapInversion(
        estimate=percentile_estimate(
            plain.unclipped, scores, production.n, BOOTSTRAP_METHOD, confidence_level, status
        ),
        shares=tuple(
            percentile_estimate(
                plain.prevalence[k],
                prevalence[:, k],
                production.n,
                BOOTSTRAP_METHOD,
                confidence_level,
                status if known[k] else "no interval: no reference trace of this class",
            )
            for k in range(known.size)
        ),
        singular=singular,
    )


def _drawn_tasks(
    production: ProductionSums, n_resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return verdict shares and means of max(0, s - penalty) by verdict, of tasks drawn anew."""
    runs, n_verdicts = production.runs, production.counts.size
    names, task = np.unique(np.asarray(runs.tasks), return_inverse=True)
    kept = production.kept(runs.penalties, runs.table)
    units = np.zeros((names.size, 1 + len(kept), n_verdicts))
    for place, worth in enumerate([np.ones(runs.times.size), *kept]):
        np.add.at(units[:, place], (task, runs.verdicts), runs.times * worth)
    sums = resampled_sums(
        units.reshape(names.size, -1), np.ones(names.size, dtype=np.int64),
        n_resamples=n_resamples, rng=rng,
    ).reshape(n_resamples, -1, n_verdicts)  # fmt: skip
    total = sums[:, 0].sum(axis=1)
    return sums[:, 0] / total[:, None], sums[:, 1:] / total[:, None, None]


def _drawn_rates(
    cells: FloatArray,
    pseudo_count: float,
    effect: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return resampled error rates, shape (n_resamples, n_classes, n_verdicts)."""
    drawn = []
    for row in cells:
        size = max(1, round(float(row.sum()) / effect))
        # From the smoothed rates: an error that a few traces did not show can still come up.
        smoothed = row + pseudo_count / row.size
        again = rng.multinomial(size, smoothed / smoothed.sum(), size=n_resamples)
        drawn.append(again * (row.sum() / size))
    return verdict_rates(np.stack(drawn, axis=1), pseudo_count=pseudo_count)


def _bootstrap_refused(
    refused: Estimate, production: ProductionSums, singular: float
) -> BootstrapInversion:
    shares = (refused,) * production.credit.size
    return BootstrapInversion(estimate=refused, shares=shares, singular=singular)


def lee(
    table: ArrayLike,
    production: ProductionSums,
    *,
    effects: tuple[float, float] = SINGLE,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate the mean score of production when there are two classes and no costs.

    A verdict that is no class counts as one for the class with less credit. With `effects` of
    `invert`, for tasks that repeat, the limits are those of the effective numbers of labels and
    runs.

    Returns
    -------
    Estimate
        The Rogan-Gladen value and the interval, both cut to [0, 1]. ``not_estimable`` with costs,
        without labels of both classes or production, for a judge no better than guessing, and when
        both classes have the same credit.

    Raises
    ------
    ValueError
        If there are not two classes or the shapes do not fit.

    Notes
    -----
    With p the share of good verdicts among n, q1 and q0 the shares of right verdicts among m1 good
    and m0 bad reference traces: p' = (n p + z^2 / 2) / (n + z^2), q' = (m q + 1) / (m + 2),
    n' = n + z^2, m' = m + 2, theta' = (p' + q0' - 1) / (q0' + q1' - 1),
    v0 = (1 - theta')^2 q0' (1 - q0') / m0' and v1 = theta'^2 q1' (1 - q1') / m1'. The interval is
    theta' + 2 z^2 (v1 / theta' - v0 / (1 - theta')) +- z sqrt(p' (1 - p') / n' + v0 + v1) /
    (q0' + q1' - 1). A score with credits a > b is b + (a - b) theta.

    References
    ----------
    Lee, Zeng, Jeong, Sohn and Lee (2026), "How to Correctly Report LLM-as-a-Judge Evaluations".
    https://doi.org/10.48550/arXiv.2511.21140

    Examples
    --------
    Sensitivity .8, specificity .9, 45 % passed: (.45 + .9 - 1) / (.8 + .9 - 1).

    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> production = production_sums_from_counts([450, 550], credit=[1.0, 0.0])
    >>> lee([[80, 20], [10, 90]], production).value
    0.5
    """
    check_confidence_level(confidence_level)
    cells = confusion_from_table(table).table
    if cells.shape[0] != 2 or cells.shape[1] != production.counts.size:
        raise ValueError(
            f"table must have shape (2, {production.counts.size}), got {cells.shape!r}"
        )
    good = int(np.argmax(production.credit))
    high, low = float(production.credit[good]), float(production.credit[1 - good])
    n = float(production.counts.sum()) / effects[1]
    m1, m0 = cells[good].sum() / effects[0], cells[1 - good].sum() / effects[0]
    why = ""
    if production.varies:
        why = "made for shares, not for scores with costs: read inversion"
    elif high == low:
        why = "both classes have the same credit"
    elif min(n, m1, m0) <= 0:
        why = "needs production verdicts and reference labels of both classes"
    else:
        p = float(production.counts[good] / production.counts.sum())
        q1 = float(cells[good, good] / cells[good].sum())
        q0 = 1 - float(cells[1 - good, good] / cells[1 - good].sum())
        z = two_sided_z(confidence_level)
        smooth1, smooth0 = (m1 * q1 + 1) / (m1 + 2), (m0 * q0 + 1) / (m0 + 2)
        if min(q0 + q1, smooth0 + smooth1) <= 1:
            why = "the judge is no better than guessing: improve it"
    if why:
        return not_estimable(
            why, method=LEE_METHOD, n=production.n, confidence_level=confidence_level
        )
    smooth = (n * p + z**2 / 2) / (n + z**2)
    youden = smooth0 + smooth1 - 1
    theta = (smooth + smooth0 - 1) / youden
    error1 = smooth1 * (1 - smooth1) / (m1 + 2)
    error0 = smooth0 * (1 - smooth0) / (m0 + 2)
    variance = smooth * (1 - smooth) / (n + z**2) + theta**2 * error1 + (1 - theta) ** 2 * error0
    centre = theta + 2 * z**2 * (theta * error1 - (1 - theta) * error0)
    reach = z * float(np.sqrt(variance)) / youden
    if centre - reach >= 1 or centre + reach <= 0:
        return not_estimable(
            OUTSIDE, method=LEE_METHOD, n=production.n, confidence_level=confidence_level
        )
    lower, upper = clipped(centre - reach, centre + reach)
    value = min(1.0, max(0.0, (p + q0 - 1) / (q0 + q1 - 1)))
    return Estimate(
        value=low + (high - low) * value,
        interval=(low + (high - low) * lower, low + (high - low) * upper),
        n=production.n,
        method=LEE_METHOD,
        confidence_level=confidence_level,
        se=(high - low) * reach / z,
    )
