"""pass@k and pass^k of repeated trials whose verdicts alone are known: corrected trial scores.

A trial with verdict v has the score a_v, chosen so that its mean over the verdicts is 1 for a class
that passes and 0 for one that fails: a = C^-1 1(success) with C = P(verdict | class). Products of
such scores are unbiased for products of successes; products of P(success | verdict) are not, for
they draw every trial towards the mean of all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.judge_calibration.confusion_inversion import MOST_SINGULAR, SIGMA_MIN, SINGULAR
from calibration.judge_calibration.samples import (
    LabelledSample,
    right_inverse,
    validated_human,
)
from calibration.statistics.estimate import (
    OK,
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    not_estimable,
    validated_codes,
    validated_weights,
)
from calibration.statistics.intervals import (
    CELLS,
    bca_shares,
    bias_shift,
    clipped,
    expanded_tail,
)
from calibration.text import counted

METHOD = "corrected trial scores, bias-corrected bootstrap of tasks and labels together"

# Half-width of an interval above which a figure from verdicts is not given.
WIDEST = 0.2

# Fewest tasks with k trials judged passed (pass^k) or failed (pass@k): resamples of fewer do not
# know how rare that is.
FEWEST_TASKS = 10

MORE_LABELS = "label more traces, or improve the judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassFromVerdicts:
    """pass@k and pass^k of one k, means over tasks, from corrected verdicts.

    `n_too_few` tasks have fewer than k trials and are left out.
    """

    k: int
    pass_at_k: Estimate
    pass_hat_k: Estimate
    n_tasks: int
    n_too_few: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _DrawnTogether:
    """What is drawn together: each task with labels, and each kind of the other tasks.

    `kinds`, shape (n_kinds, most_trials) : verdicts of the trials of a task of each kind, most
    trials first
    `sizes`, shape (n_kinds,) : its trials
    `kind`, `times`, shape (n_cells,) : kind of each cell, -1 without trials, and its tasks
    `tables`, shape (n_labelled, n_classes, n_verdicts) : labels of the first cells
    `shape` : number of classes and of verdicts
    """

    kinds: IntArray
    sizes: IntArray
    kind: IntArray
    times: IntArray
    tables: FloatArray


def subset_means(scores: FloatArray, sizes: IntArray, most: int) -> FloatArray:
    """Return the means over the k-subsets of products of scores, for k from 0 to `most`.

    Parameters
    ----------
    scores : float array, shape (..., n_tasks, most_trials)
        Of task t the first ``sizes[t]`` count.
    sizes : int array, shape (n_tasks,)
        Trials of each task, in descending order.

    Returns
    -------
    float array, shape (most + 1, ..., n_tasks)
        0 where a task has fewer than k trials.

    Notes
    -----
    With E_j the mean over the j-subsets of i - 1 trials, one more trial makes it
    (1 - j / i) E_j + (j / i) a_i E_(j - 1): weighted means, which neither overflow nor cancel as
    sums of products do.

    Examples
    --------
    Three trials: (.5 x 1 + .5 x .2 + 1 x .2) / 3; a task of one trial has no pair.

    >>> two = np.array([[0.5, 1.0, 0.2], [0.9, 0.0, 0.0]])
    >>> subset_means(two, np.array([3, 1]), 2)[2].round(9).tolist()
    [0.266666667, 0.0]
    """
    found = np.zeros((most + 1, *scores.shape[:-1]))
    found[0] = 1.0
    for i in range(1, int(sizes.max(initial=0)) + 1):
        n = int((sizes >= i).sum())
        own = scores[..., :n, i - 1]
        for j in range(min(i, most), 0, -1):
            found[j, ..., :n] += (j / i) * (own * found[j - 1, ..., :n] - found[j, ..., :n])
    return found


def pass_from_verdicts(
    labelled: LabelledSample,
    verdicts: IntArray,
    tasks: NDArray[np.generic],
    ks: Sequence[int],
    *,
    success: ArrayLike,
    n_verdicts: int,
    rng: np.random.Generator,
    pseudo_count: float = 0.5,
    widest: float = WIDEST,
    fewest_tasks: int = FEWEST_TASKS,
    n_resamples: int = 1_000,
    confidence_level: float = 0.95,
) -> tuple[PassFromVerdicts, ...]:
    """Estimate pass@k and pass^k of trials that a judge has seen, corrected for its errors.

    Means over tasks of the mean over the k-subsets of products of a_v (pass^k), and 1 less that of
    1 - a_v (pass@k). Give the trials of one model and agent version at a time.

    Assumptions: tasks are independent, and the trials of a task exchangeable. P(verdict | class) is
    the same for labels and trials. Given their classes, the verdicts of the trials of a task are
    independent: a judge that errs on a task as a whole, in all of its trials, is not corrected for.
    With two classes, passed and failed, the errors must not depend on how a trial failed. Labels
    are without error.

    Parameters
    ----------
    labelled : LabelledSample
        Gives P(verdict | class), with `weights`; `clusters` name tasks, those of `tasks` by the
        same names. Without clusters each label is of a task of its own.
    verdicts, tasks : arrays, shape (n_trials,)
        Verdict and task of each trial, labelled or not.
    success : bool array, shape (n_classes,)
        Classes that pass.
    pseudo_count : float, default 0.5
        Prior of the error rates of a class, in labels, spread evenly over the verdicts.
    widest : float, default 0.2
        Half-width of an interval above which there is no figure.
    fewest_tasks : int, default 10
        Tasks with k trials judged failed (pass@k) or passed (pass^k) below which there is none: the
        intervals of fewer are too short.

    Returns
    -------
    tuple of PassFromVerdicts, one for each of `ks`
        Bias-corrected percentile interval, with tails as t of tasks - 1 has them; it and the value
        are cut to [0, 1], and a value that was cut is ``provisional``. ``not_estimable``: no labels
        of passed or of failed trials; a judge that cannot tell them apart (smallest singular value
        of C below .2, or more than 1 % of the resamples singular); all tasks with the same
        verdicts; too few tasks, or too wide an interval, by the two limits above.

    Raises
    ------
    ValueError
        If shapes do not fit, a code is out of range, or a k is below 1.

    Notes
    -----
    Each task has a weight drawn from Exp(1), for its trials and its labels alike, and each cell of
    C a pseudo-count from Gamma(`pseudo_count` / n_verdicts): rows of C of labels of different tasks
    are Dirichlet. C is inverted anew. Unlike resamples, weights lose no class. With more verdicts
    than classes C^-1 is `right_inverse`. A class without labels is left out.

    References
    ----------
    Rogan and Gladen (1978), Am. J. Epidemiol. 107: inversion.
    https://doi.org/10.1093/oxfordjournals.aje.a112510
    Rubin (1981), Ann. Statist. 9: the Bayesian bootstrap. https://doi.org/10.1214/aos/1176345338
    Efron (1987), J. Am. Stat. Assoc. 82: bias correction.
    https://doi.org/10.1080/01621459.1987.10478410

    Examples
    --------
    A judge passes 9 of 10 passed trials and 2 of 10 failed ones: a = (8/7, -2/7). Of 100 tasks of
    two trials 60 have two verdicts "passed", 24 have one and 16 none:
    pass^2 = (60 (8/7)^2 - 24 (8/7)(2/7) + 16 (2/7)^2) / 100 = 35.2 / 49.

    >>> human = np.repeat([[1.0, 0.0], [0.0, 1.0]], 100, axis=0)
    >>> labels = LabelledSample(human=human, verdicts=np.repeat([0, 1, 0, 1], [90, 10, 20, 80]))
    >>> found = pass_from_verdicts(
    ...     labels, np.repeat([0, 1, 1], [144, 24, 32]), np.r_[0:60, 0:60, 60:84, 60:100, 84:100],
    ...     [2], success=[True, False], n_verdicts=2, pseudo_count=0.0,
    ...     rng=np.random.default_rng(1),
    ... )
    >>> round(found[0].pass_hat_k.value * 49, 6)
    35.2
    """
    check_confidence_level(confidence_level)
    passed = np.asarray(success, dtype=np.bool_)
    cells = _cells(labelled, verdicts, tasks, passed.size, n_verdicts)
    ks = _checked(ks, pseudo_count)
    known = cells.tables.sum(axis=(0, 2)) > 0
    at_all = _Draw(cells, passed[known], known, max(ks, default=1), pseudo_count)
    why = at_all.refused()
    values, draws = np.zeros((0, 0, 0)), np.zeros((0, 0, 0))
    if not why:
        values = at_all.values()
        draws = at_all.draws(rng, n_resamples)
        singular = 1 - len(draws) / n_resamples
        if singular > MOST_SINGULAR:
            why = f"{singular:.1%} of the resamples cannot be inverted: {MORE_LABELS}"
    # 0 for a task of labels alone, whose kind is -1.
    sizes, found = np.append(cells.sizes, 0)[cells.kind], []
    for k in ks:
        enough = sizes >= k
        n, n_all = int(cells.times[enough].sum()), int(cells.times[sizes > 0].sum())
        reasons = (why, why) if why else at_all.too_few(enough, n, k, fewest_tasks)
        at, hat = (
            not_estimable(reasons[of], method=METHOD, n=n, confidence_level=confidence_level)
            if reasons[of]
            else _estimate(float(values[0, of, k]), draws[:, of, k], n, widest, confidence_level)
            for of in (0, 1)
        )
        found.append(
            PassFromVerdicts(k=k, pass_at_k=at, pass_hat_k=hat, n_tasks=n, n_too_few=n_all - n)
        )
    return tuple(found)


def _checked(ks: Sequence[int], pseudo_count: float) -> list[int]:
    if any(isinstance(k, bool) or k != int(k) or k < 1 for k in ks):
        raise ValueError(f"k must be a whole number from 1 up, got {list(ks)!r}")
    if not 0 <= pseudo_count < np.inf:
        raise ValueError(f"pseudo_count must be in [0, inf), got {pseudo_count!r}")
    return [int(k) for k in ks]


def _cells(
    labelled: LabelledSample,
    verdicts: IntArray,
    tasks: NDArray[np.generic],
    n_classes: int,
    n_verdicts: int,
) -> _DrawnTogether:
    """Count trials and labels by what is drawn together."""
    codes = validated_codes(verdicts, n_codes=n_verdicts, name="verdicts")
    given = validated_codes(labelled.verdicts, n_codes=n_verdicts, name="verdicts of labels")
    human, names = validated_human(labelled.human), np.asarray(tasks)
    if names.shape != codes.shape:
        raise ValueError(f"tasks must have shape {codes.shape!r}, got {names.shape!r}")
    if human.shape != (given.size, n_classes):
        raise ValueError(f"human must have shape {(given.size, n_classes)!r}, got {human.shape!r}")
    weight = validated_weights(labelled.weights, given.size)
    if given.size:
        weight = weight * weight.sum() / (weight @ weight)
    unit = np.arange(given.size)
    if labelled.clusters is None:
        task = given.size + np.unique(names, return_inverse=True)[1]
    else:
        together = np.concatenate([np.asarray(labelled.clusters), names])
        unit, task = np.split(np.unique(together, return_inverse=True)[1], [given.size])
    with_trials, place = np.unique(task, return_inverse=True)
    counts = np.bincount(place * n_verdicts + codes, minlength=with_trials.size * n_verdicts)
    kinds, sizes, of_task = _kinds(counts.reshape(-1, n_verdicts))
    kind = np.full(given.size + codes.size + 1, -1)
    kind[with_trials] = of_task
    units, row = np.unique(unit, return_inverse=True)
    tables = np.zeros((units.size, n_verdicts, n_classes))
    np.add.at(tables, (row, given), human * weight[:, None])
    others = np.bincount(kind[np.setdiff1d(with_trials, units)], minlength=sizes.size)
    left = np.flatnonzero(others)
    return _DrawnTogether(
        kinds=kinds,
        sizes=sizes,
        kind=np.concatenate([kind[units], left]).astype(np.int64),
        times=np.concatenate([np.ones(units.size, dtype=np.int64), others[left]]),
        tables=np.ascontiguousarray(np.swapaxes(tables, 1, 2)),
    )


def _kinds(counts: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the trials and the size of each kind of task, and the kind of each task.

    `counts`, shape (n_tasks, n_verdicts), holds the trials of a task by verdict.
    """
    rows, of_task = np.unique(counts, axis=0, return_inverse=True)
    order = np.argsort(-rows.sum(axis=1), kind="stable")
    rows, sizes = rows[order], rows.sum(axis=1)[order]
    trials = np.zeros((sizes.size, int(sizes.max(initial=0))), dtype=np.int64)
    trials[np.arange(trials.shape[1]) < sizes[:, None]] = np.repeat(
        np.tile(np.arange(rows.shape[1]), sizes.size), rows.ravel()
    )
    return trials, sizes, np.argsort(order)[of_task.ravel()]


@dataclass(frozen=True, slots=True, eq=False)
class _Draw:
    """Figures under given weights of the tasks, for k up to `most`; `known` classes have labels."""

    cells: _DrawnTogether
    passed: BoolArray
    known: BoolArray
    most: int
    pseudo_count: float

    def refused(self) -> str:
        """Return why there are no corrected scores; empty when there are."""
        if not self.cells.sizes.size:
            return "no trial has a verdict: run the judge"
        for rows, what in ((self.passed, "passed"), (~self.passed, "failed")):
            if not rows.any():
                return f"no labelled trace with a verdict has {what}: label more traces"
        rates = self._rates(self._whole, self._prior)
        sigma = float(np.linalg.svd(rates[0], compute_uv=False)[-1])
        if sigma < SIGMA_MIN:
            return (
                "the judge hardly tells the classes apart (smallest singular value of its error "
                f"rates {sigma:.2f}, below {SIGMA_MIN}): improve it"
            )
        return ""

    def too_few(self, enough: BoolArray, n: int, k: int, fewest: int) -> tuple[str, str]:
        """Return why pass@k and pass^k have too few tasks, of the cells with k trials; or empty."""
        cells = self.cells
        if not n:
            why = f"no task has {k} trials with a verdict: run each task {k} times or more"
            return why, why
        if np.unique(cells.kind[enough]).size == 1:
            why = f"the trials of all {n} tasks have the same verdicts: add tasks"
            return why, why
        kind, times = cells.kind[enough], cells.times[enough]
        own = np.arange(cells.kinds.shape[1]) < cells.sizes[:, None]
        high = (self._scores(self._rates(self._whole, self._prior))[0] > 0.5) & own
        passed, failed = high.sum(axis=1), (own & ~high).sum(axis=1)
        found = [int(times[of[kind] >= k].sum()) for of in (failed, passed)]
        # pass@1 and pass^1 are one figure.
        found = [min(found)] * 2 if k == 1 else found
        at, hat = (
            f"{counted(m, 'task')} with {k} trials judged {what}, at least {fewest} are needed: "
            "add tasks or trials"
            if m < fewest
            else ""
            for m, what in zip(found, ("failed", "passed"), strict=True)
        )
        return at, hat

    @property
    def _whole(self) -> FloatArray:
        return np.asarray(self.cells.tables.sum(axis=0)[None])

    def _scores(self, rates: FloatArray) -> FloatArray:
        """Return the score of each trial of each kind, shape (n, n_kinds, most_trials)."""
        of_verdict = right_inverse(rates) @ self.passed.astype(np.float64)
        return np.asarray(of_verdict[:, self.cells.kinds])

    @property
    def _prior(self) -> float:
        return self.pseudo_count / int(self.cells.tables.shape[2])

    def _rates(self, tables: FloatArray, prior: FloatArray | float) -> FloatArray:
        cells = tables[:, self.known] + prior
        rates: FloatArray = cells / cells.sum(axis=-1, keepdims=True)
        return rates

    def values(self) -> FloatArray:
        """Return the figures of the data, shape (1, 2, most + 1): pass@k, then pass^k."""
        weights = self.cells.times[None].astype(np.float64)
        return self._figures(weights, self._rates(self._tables(weights), self._prior))

    def draws(self, rng: np.random.Generator, n_resamples: int) -> FloatArray:
        """Return figures of drawn weights, shape (n_usable, 2, most + 1)."""
        cells = self.cells
        shape = (int(self.known.sum()), cells.tables.shape[2])
        each = cells.times.size + cells.kinds.size + 3 * (self.most + 1) * cells.kind.size
        block = max(1, CELLS // each)
        found = []
        for start in range(0, n_resamples, block):
            n = min(block, n_resamples - start)
            others = cells.times[len(cells.tables) :]
            weights = np.hstack([
                rng.standard_exponential((n, len(cells.tables))),
                rng.standard_gamma(others, size=(n, others.size)),
            ])  # fmt: skip
            prior = rng.standard_gamma(self._prior, size=(n, *shape))
            rates = self._rates(self._tables(weights), prior)
            usable = np.linalg.svd(rates, compute_uv=False)[:, -1] > SINGULAR
            found.append(self._figures(weights[usable], rates[usable]))
        return np.concatenate(found)

    def _tables(self, weights: FloatArray) -> FloatArray:
        units, tables = len(self.cells.tables), self.cells.tables
        summed = weights[:, :units] @ tables.reshape(units, -1)
        return summed.reshape(-1, *tables.shape[1:])

    def _figures(self, weights: FloatArray, rates: FloatArray) -> FloatArray:
        cells = self.cells
        scores = self._scores(rates)
        figures = np.zeros((len(weights), 2, self.most + 1))
        trials = cells.kind >= 0
        kind, own = cells.kind[trials], weights[:, trials]
        for of, each in ((0, 1 - scores), (1, scores)):
            of_kind = subset_means(each, cells.sizes, self.most)
            for k in range(1, self.most + 1):
                enough = cells.sizes[kind] >= k
                above = (own[:, enough] * of_kind[k][:, kind[enough]]).sum(axis=1)
                below = own[:, enough].sum(axis=1)
                figures[:, of, k] = np.divide(
                    above, below, out=np.zeros_like(above), where=below > 0
                )
        figures[:, 0] = 1 - figures[:, 0]
        return figures


def _estimate(
    value: float, draws: FloatArray, n: int, widest: float, confidence_level: float
) -> Estimate:
    """Return the value with its interval, both cut to [0, 1]; refused where it is too wide."""
    tail = expanded_tail(
        (1 - confidence_level) / 2, factor=((n + 1) / (n - 1)) ** 0.5, freedom=n - 1
    )
    shares = bca_shares(np.array([tail, 1 - tail]), bias_shift(draws, value), 0.0)
    lower, upper = np.quantile(draws, shares).tolist()
    why = ""
    if lower >= 1 or upper <= 0:
        why = (
            "the interval is outside [0, 1]: the judge's error rates are not those of the "
            "labels; label trials of these tasks"
        )
    interval = clipped(lower, upper)
    half = (interval[1] - interval[0]) / 2
    if not why and half > widest:
        why = (
            f"the interval of {n} tasks is ± {half:.2f}, wider than ± {widest:g}: add tasks, "
            f"{MORE_LABELS}"
        )
    if why:
        return not_estimable(why, method=METHOD, n=n, confidence_level=confidence_level)
    outside = value < 0 or value > 1
    return Estimate(
        value=min(1.0, max(0.0, value)),
        interval=interval,
        n=n,
        method=METHOD,
        confidence_level=confidence_level,
        status=f"provisional: {value:.3f} cut to [0, 1]" if outside else OK,
        se=float(draws.std(ddof=1)),
    )
