"""Rates of groups that share one calibration, and their differences."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from calibration.judge_calibration.confusion_inversion import inversion_refusals, invert
from calibration.judge_calibration.post_stratification import class_shares, post_stratified
from calibration.judge_calibration.samples import (
    PROBABILITY_SAMPLE_MIN,
    Design,
    LabelledSample,
    ProductionSums,
    confusion_from_table,
    right_inverse,
    validated_human,
    verdict_rates,
)
from calibration.statistics.estimate import (
    OK,
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    not_estimable,
    validated_codes,
)
from calibration.statistics.intervals import independent_difference, normal_chance, two_sided_z

LABELS_FOR_DIRECT = 50
VERDICTS_FOR_DIRECT = 2
SYNTHETIC = "inverted with the error rates of all groups, delta"
DIRECT_DIFFERENCE = "both post-stratified on their own labels, limits combined (MOVER)"
SYNTHETIC_DIFFERENCE = "both inverted with the same error rates, delta"
SMALL = 5.0
CHI_SQUARE = "chi-square of verdict given class over groups"
PERMUTED = "chi-square of verdict given class over groups, {n:,} permutations within class"
Kind = Literal["direct", "synthetic"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedCalibration:
    """One calibration of the judge for all groups.

    `table` : labelled traces of *all* groups by human class and verdict (n_classes, n_verdicts).
    `names` : of the verdicts, the classes first.
    `pseudo_count` : as in `invert`.

    ValueError if `confidence_level` is outside (0, 1) or the table is not one of counts.
    """

    table: ArrayLike
    names: Sequence[str]
    design: Design = "production"
    pseudo_count: float = 0.5
    confidence_level: float = 0.95

    def __post_init__(self) -> None:
        check_confidence_level(self.confidence_level)
        confusion_from_table(self.table)

    @property
    def cells(self) -> FloatArray:
        """The table as an array of floats."""
        return confusion_from_table(self.table).table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledGroup:
    """The traces of one agent, workflow, model or week.

    For design ``production`` the labelled traces are among those of `production`.
    """

    name: str
    labelled: LabelledSample
    production: ProductionSums


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEstimate:
    """The corrected mean score and class shares of one group.

    ``direct`` comes from its own labels and assumes nothing about the judge. ``synthetic`` assumes
    that the judge errs in this group as in all groups together.
    """

    name: str
    kind: Kind
    estimate: Estimate
    shares: tuple[Estimate, ...]
    n_labels: int
    n_production: int


def is_direct(group: LabelledGroup, *, design: Design, least: int = LABELS_FOR_DIRECT) -> bool:
    """Return whether a group has enough labels for an estimate of its own.

    It needs `least` labelled traces with two different verdicts, sampled from production: labels of
    a reference set do not show its class mix.
    """
    verdicts = group.labelled.verdicts
    enough = verdicts.size >= least
    return design == "production" and enough and np.unique(verdicts).size >= VERDICTS_FOR_DIRECT


def estimate_group(group: LabelledGroup, shared: SharedCalibration) -> GroupEstimate:
    """Estimate the mean score of one group, directly if it has enough labels.

    Direct is `post_stratified` on its own labels, synthetic `invert` with the common table. If
    `inversion_refusals` refuses that, the estimate is direct from 30 labels on, else
    ``not_estimable``.

    Examples
    --------
    No own labels; sensitivity .8, specificity .9, 45 % passed: (.45 + .9 - 1) / (.8 + .9 - 1).

    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> week = LabelledGroup(
    ...     name="week",
    ...     labelled=LabelledSample(human=np.zeros((0, 2)), verdicts=np.zeros(0, dtype=int)),
    ...     production=production_sums_from_counts([450, 550], credit=[1.0, 0.0]),
    ... )
    >>> shared = SharedCalibration(
    ...     table=[[80, 20], [10, 90]], names=["yes", "no"], pseudo_count=0
    ... )
    >>> found = estimate_group(week, shared)
    >>> found.kind, found.estimate.value
    ('synthetic', 0.5)
    """
    kind: Kind = "direct" if is_direct(group, design=shared.design) else "synthetic"
    estimate, shares = (_direct if kind == "direct" else _synthetic)(group, shared)
    few = is_direct(group, design=shared.design, least=PROBABILITY_SAMPLE_MIN)
    if not estimate.ok and kind == "synthetic" and few:
        kind = "direct"
        estimate, shares = _direct(group, shared)
    return GroupEstimate(
        name=group.name,
        kind=kind,
        estimate=estimate,
        shares=shares,
        n_labels=int(group.labelled.verdicts.size),
        n_production=group.production.n,
    )


def _direct(
    group: LabelledGroup, shared: SharedCalibration
) -> tuple[Estimate, tuple[Estimate, ...]]:
    """Estimate mean score and class shares of one group from its own labels."""
    level = shared.confidence_level
    found = post_stratified(group.labelled, group.production, confidence_level=level)
    shares = class_shares(group.labelled, group.production, confidence_level=level)
    return found.estimate, shares


def _synthetic(
    group: LabelledGroup, shared: SharedCalibration
) -> tuple[Estimate, tuple[Estimate, ...]]:
    """Estimate mean score and class shares of one group with the error rates of all groups."""
    cells, production, level = shared.cells, group.production, shared.confidence_level
    found = invert(cells, production, pseudo_count=shared.pseudo_count, confidence_level=level)
    estimate = replace(found.estimate, method=SYNTHETIC)
    shares = tuple(replace(share, method=SYNTHETIC) for share in found.shares)
    refusals = inversion_refusals(
        cells,
        found,
        credit=production.credit,
        verdict_shares=production.counts / max(1, production.n),
        names=shared.names,
    )
    if not (refusals and estimate.ok):
        return estimate, shares
    refused = not_estimable(
        "; ".join(f"{notice.why} ({notice.mend})" for notice in refusals),
        method=SYNTHETIC,
        n=estimate.n,
        confidence_level=level,
    )
    return refused, (refused,) * len(shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupComparison:
    """The difference of two groups, first less second.

    `kind` : ``direct`` when both are estimated from their own labels. Else both sides are
    ``synthetic``, and the difference may neither pass nor fail a gate.
    `sides` : the two estimates, of the same kind.
    `flip_chance` : chance that the true difference has the other sign if the error rates are the
    same in both; None without a standard error and for a direct difference.
    `flips_at` : the synthetic ranking is reversed if the judge gives the best verdict instead of
    the worst to this share more of one group's traces than of the other's.
    """

    first: str
    second: str
    kind: Kind
    sides: tuple[Estimate, Estimate]
    difference: Estimate
    flip_chance: float | None = None
    flips_at: float | None = None

    @property
    def may_gate(self) -> bool:
        """Whether the difference may pass or fail a gate."""
        return self.kind == "direct" and self.difference.interval is not None


def compare_groups(
    first: LabelledGroup, second: LabelledGroup, shared: SharedCalibration
) -> GroupComparison:
    """Estimate the difference of two groups without common traces, directly if both allow it.

    Direct: the limits of the two intervals combined as independent; where both ran the same tasks
    the interval is too wide. Synthetic: one calibration for both sides, so that most of the
    uncertainty about the judge cancels.

    Notes
    -----
    With M = sum_s (C^-T t_s / N)(C^-1 e_s)^T of each side (see `invert`), the synthetic variance is
    the sum of the two production parts plus sum_j Var_{C_j}(M_a,j. - M_b,j.) / n_j. Without cost
    this last part is sum_j (pi_a,j - pi_b,j)^2 Var_{C_j}(a) / n_j. The sum of the variances of the
    sides would count the calibration twice.

    References
    ----------
    Zou and Donner (2008), "Construction of confidence limits about effect measures", Stat. Med. 27.
    https://doi.org/10.1002/sim.3095
    Fiedler (2026), on comparisons that share one calibration.
    https://doi.org/10.48550/arXiv.2605.06939
    """
    sides = [estimate_group(group, shared) for group in (first, second)]
    if all(side.kind == "direct" for side in sides):
        one, other = sides[0].estimate, sides[1].estimate
        return GroupComparison(
            first=first.name,
            second=second.name,
            kind="direct",
            sides=(one, other),
            difference=independent_difference(one, other, method=DIRECT_DIFFERENCE),
        )
    one, other = (_synthetic(group, shared)[0] for group in (first, second))
    result = GroupComparison(
        first=first.name,
        second=second.name,
        kind="synthetic",
        sides=(one, other),
        difference=replace(other if one.ok else one, method=SYNTHETIC_DIFFERENCE),
    )
    if not (one.ok and other.ok):
        return result
    return _synthetic_difference(result, first, second, shared)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Side:
    """One side of a synthetic difference: value, M, production variance, reach of a verdict."""

    value: float
    mixed: FloatArray
    sampling: float
    reach: float


def _side(rates_inverse: FloatArray, production: ProductionSums) -> _Side:
    n = production.n
    weights = rates_inverse @ (production.credit[:, None] == production.levels)
    value = float((production.sums * weights.T).sum() / n)
    squares = float(np.einsum("suk,ks,ku->", production.products, weights, weights))
    a = weights @ production.levels
    return _Side(
        value=value,
        mixed=rates_inverse.T @ (production.sums.T / n) @ weights.T,
        sampling=max(0.0, squares / n - value**2) / n,
        reach=float(np.ptp(a[: production.credit.size])),
    )


def _synthetic_difference(
    compared: GroupComparison,
    first: LabelledGroup,
    second: LabelledGroup,
    shared: SharedCalibration,
) -> GroupComparison:
    cells, pseudo_count = shared.cells, shared.pseudo_count
    known = cells.sum(axis=1) > 0
    rates, inverse = np.zeros_like(cells), np.zeros(cells.shape[::-1])
    rates[known] = verdict_rates(cells[known], pseudo_count=pseudo_count)
    inverse[:, known] = right_inverse(rates[known])
    sizes = np.where(known, cells.sum(axis=1) + pseudo_count, 1.0)
    one, other = _side(inverse, first.production), _side(inverse, second.production)
    apart = one.mixed - other.mixed
    by_row = (rates * apart**2).sum(axis=1) - (rates * apart).sum(axis=1) ** 2
    variance = one.sampling + other.sampling + float((by_row / sizes).sum())
    value, se = one.value - other.value, float(np.sqrt(max(0.0, variance)))
    reach = two_sided_z(shared.confidence_level) * se
    difference = Estimate(
        value=min(1.0, max(-1.0, value)),
        interval=(max(-1.0, min(1.0, value - reach)), min(1.0, max(-1.0, value + reach))),
        n=first.production.n + second.production.n,
        method=SYNTHETIC_DIFFERENCE,
        confidence_level=shared.confidence_level,
        se=se,
    )
    return replace(
        compared,
        difference=difference,
        flip_chance=normal_chance(-abs(value) / se) if se > 0 else None,
        flips_at=abs(value) / one.reach if one.reach > 0 else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RatesTest:
    """A test that the judge's error rates are equal in all groups; empty unless `status` is ``ok``.

    `smallest_expected` : smallest expected count of a cell that is not empty by construction.
    """

    statistic: float | None
    p_value: float | None
    df: int
    n: int
    n_groups: int
    smallest_expected: float | None
    method: str
    status: str = OK


def compare_rates(
    human: ArrayLike,
    verdicts: IntArray,
    groups: IntArray,
    *,
    n_verdicts: int,
    rng: np.random.Generator,
    n_permutations: int = 2000,
) -> RatesTest:
    """Test that P(verdict | class) is the same in all groups, as `synthetic` estimates assume.

    Traces are independent. A large p-value does not show that the rates are the same: with few
    labels a group, real differences go undetected.

    Parameters
    ----------
    human : array-like of float, shape (n, n_classes)
        Class shares per trace, rows summing to one.
    verdicts, groups : int array, shape (n,)
        Codes from 0.
    n_permutations : int, default 2000
        Used when an expected count is below 5, where the chi-square approximation fails; groups are
        permuted among traces of the same (most voted) class.

    Returns
    -------
    RatesTest
        Pearson's statistic summed over classes, each with (groups - 1) x (verdicts - 1) df,
        counting what occurs within the class.

    Raises
    ------
    ValueError
        If shapes differ, a row does not sum to one, or a code is out of range.

    References
    ----------
    Pearson (1900), Philosophical Magazine 50. https://doi.org/10.1080/14786440009463897

    Examples
    --------
    One class; the judge passes 30 of 40 traces of one group and 10 of 40 of the other: all four
    expected counts are 20, so 4 x 100 / 20:

    >>> human, groups = np.ones((80, 1)), np.repeat([0, 1], 40)
    >>> verdicts = np.repeat([0, 1, 0, 1], [30, 10, 10, 30])
    >>> rng = np.random.default_rng(0)
    >>> compare_rates(human, verdicts, groups, n_verdicts=2, rng=rng).statistic
    20.0
    """
    shares = validated_human(human)
    n = shares.shape[0]
    codes = validated_codes(verdicts, n_codes=n_verdicts, name="verdicts")
    group = validated_codes(groups, n_codes=None, name="groups")
    if codes.shape != (n,) or group.shape != (n,):
        raise ValueError(
            f"verdicts and groups must have shape ({n},), got {codes.shape!r} and {group.shape!r}"
        )
    names, group = np.unique(group, return_inverse=True)
    if names.size < 2:
        return _none(n, names.size, "labels of one group only: label traces of other groups")
    cells = _Cells(shares, codes, n_verdicts, names.size)
    table = cells.table(group)
    expected, df = _expected(table)
    if df == 0:
        return _none(n, names.size, "no class has labels in two groups and two verdicts")
    statistic = _pearson(table, expected)
    smallest = float(expected[expected > 0].min())
    p_value, method = float(special.chdtrc(df, statistic)), CHI_SQUARE
    if smallest < SMALL:
        method = PERMUTED.format(n=n_permutations)
        most = shares.argmax(axis=1)
        reached = 0
        for _ in range(n_permutations):
            # One shuffle, then put in order of class: a shuffle within each class.
            order = rng.permutation(n)
            shuffled = group.copy()
            shuffled[np.argsort(most, kind="stable")] = group[
                order[np.argsort(most[order], kind="stable")]
            ]
            drawn = cells.table(shuffled)
            reached += _pearson(drawn, _expected(drawn)[0]) >= statistic - 1e-9
        p_value = (1 + reached) / (1 + n_permutations)
    return RatesTest(
        statistic=statistic, p_value=p_value, df=df, n=n, n_groups=int(names.size),
        smallest_expected=smallest, method=method,
    )  # fmt: skip


class _Cells:
    """Counts of traces by class, group and verdict, for any allocation to groups."""

    def __init__(
        self, shares: FloatArray, verdicts: IntArray, n_verdicts: int, n_groups: int
    ) -> None:
        self._rows, self._classes = np.nonzero(shares)
        self._weight = shares[self._rows, self._classes]
        self._verdict = verdicts[self._rows]
        self._shape = (shares.shape[1], n_groups, n_verdicts)

    def table(self, group: IntArray) -> FloatArray:
        """Return counts, shape (n_classes, n_groups, n_verdicts)."""
        _, n_groups, n_verdicts = self._shape
        cell = (self._classes * n_groups + group[self._rows]) * n_verdicts + self._verdict
        counts = np.bincount(cell, weights=self._weight, minlength=int(np.prod(self._shape)))
        return np.asarray(counts.reshape(self._shape), dtype=np.float64)


def _expected(table: FloatArray) -> tuple[FloatArray, int]:
    rows, columns = table.sum(axis=2), table.sum(axis=1)
    total = np.maximum(rows.sum(axis=1), np.finfo(float).tiny)
    expected = rows[:, :, None] * columns[:, None, :] / total[:, None, None]
    free = np.maximum(0, (rows > 0).sum(axis=1) - 1) * np.maximum(0, (columns > 0).sum(axis=1) - 1)
    return expected, int(free.sum())


def _pearson(table: FloatArray, expected: FloatArray) -> float:
    seen = expected > 0
    return float(((table - expected)[seen] ** 2 / expected[seen]).sum())


def _none(n: int, n_groups: int, why: str) -> RatesTest:
    return RatesTest(
        statistic=None, p_value=None, df=0, n=n, n_groups=n_groups, smallest_expected=None,
        method=CHI_SQUARE, status=f"not_estimable: {why}",
    )  # fmt: skip
