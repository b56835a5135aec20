"""ASR of groups that share one calibration: estimated directly, or marked synthetic."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.correction.confusion import confusion_from_table
from calibration.correction.intervals import (
    FloatArray,
    IntArray,
    check_confidence_level,
)
from calibration.correction.inversion import invert
from calibration.correction.post_stratified import post_stratified
from calibration.correction.production import ProductionSums
from calibration.correction.refusals import inversion_refusals
from calibration.correction.results import Design
from calibration.estimates import Estimate, not_estimable

Kind = Literal["direct", "synthetic"]
LABELS_FOR_DIRECT = 50
VERDICTS_FOR_DIRECT = 2
SYNTHETIC = "inverted with the error rates of all groups, delta"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """The traces of one agent, workflow, model or week.

    Parameters
    ----------
    name : str
    scores, verdicts : array, shape (n,)
        Its labelled traces: score in [0, 1] by the human class, and verdict code.
    production : ProductionSums
        Its judged production traces; for design ``production`` the labelled ones are among them.
    weights, clusters : array, shape (n,), optional
        As in `post_stratified`.
    """

    name: str
    scores: FloatArray
    verdicts: IntArray
    production: ProductionSums
    weights: FloatArray | None = None
    clusters: NDArray[np.generic] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEstimate:
    """The corrected mean score of one group.

    Parameters
    ----------
    name : str
    kind : str
        ``direct``: from its own labels, nothing assumed of the judge. ``synthetic``: the judge is
        assumed to err in this group as in all of them.
    estimate : Estimate
    n_labels, n_production : int
        Labelled traces and judged production traces of the group.
    """

    name: str
    kind: Kind
    estimate: Estimate
    n_labels: int
    n_production: int


def is_direct(group: Group, *, design: Design) -> bool:
    """Return whether a group has labels enough to stand on its own.

    At least 50 labelled traces with at least two different verdicts, and labels that are a sample
    of production: labels of a reference set say nothing about its class mix.
    """
    enough = group.verdicts.size >= LABELS_FOR_DIRECT
    return (
        design == "production" and enough and np.unique(group.verdicts).size >= VERDICTS_FOR_DIRECT
    )


def estimate_group(
    group: Group,
    table: ArrayLike,
    *,
    names: Sequence[str],
    design: Design = "production",
    pseudo_count: float = 0.5,
    confidence_level: float = 0.95,
) -> GroupEstimate:
    """Estimate the mean score of one group, directly if it has labels enough.

    Parameters
    ----------
    group : Group
    table : array-like of float, shape (n_classes, n_verdicts)
        Labelled traces of *all* groups by human class and verdict.
    names : sequence of str
        Names of the verdicts, the classes first.
    design : {"production", "reference"}
        Where the labels come from.
    pseudo_count : float, default 0.5
        As in `invert`.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    GroupEstimate
        Direct: `post_stratified` on its own labels. Synthetic: `invert` with the common table, and
        ``not_estimable`` for the reasons of `inversion_refusals`.

    Examples
    --------
    No own labels; sensitivity .8, specificity .9, 45 % passed: (.45 + .9 - 1) / (.8 + .9 - 1).

    >>> from calibration.correction.production import production_sums_from_counts
    >>> empty = np.zeros(0)
    >>> week = Group(
    ...     name="week", scores=empty, verdicts=empty.astype(int),
    ...     production=production_sums_from_counts([450, 550], credit=[1.0, 0.0]),
    ... )
    >>> found = estimate_group(week, [[80, 20], [10, 90]], names=["yes", "no"], pseudo_count=0)
    >>> found.kind, found.estimate.value
    ('synthetic', 0.5)
    """
    check_confidence_level(confidence_level)
    kind: Kind = "direct" if is_direct(group, design=design) else "synthetic"
    if kind == "direct":
        values = np.full(group.production.counts.size, np.nan)
        values[: group.production.credit.size] = group.production.credit
        estimate = post_stratified(
            group.scores,
            group.verdicts,
            group.production.counts,
            verdict_values=values,
            weights=group.weights,
            clusters=group.clusters,
            confidence_level=confidence_level,
        ).estimate
    else:
        estimate = synthetic_estimate(group, table, names, pseudo_count, confidence_level)
    return GroupEstimate(
        name=group.name,
        kind=kind,
        estimate=estimate,
        n_labels=int(group.verdicts.size),
        n_production=group.production.n,
    )


def synthetic_estimate(
    group: Group,
    table: ArrayLike,
    names: Sequence[str],
    pseudo_count: float,
    confidence_level: float,
) -> Estimate:
    """Estimate the mean score of one group with the error rates of all of them."""
    cells = confusion_from_table(table).table
    found = invert(
        cells, group.production, pseudo_count=pseudo_count, confidence_level=confidence_level
    )
    estimate = replace(found.estimate, method=SYNTHETIC)
    refusals = inversion_refusals(
        cells,
        found,
        credit=group.production.credit,
        verdict_shares=group.production.counts / max(1, group.production.n),
        names=names,
    )
    if not (refusals and estimate.ok):
        return estimate
    return not_estimable(
        "; ".join(f"{notice.why} ({notice.mend})" for notice in refusals),
        method=SYNTHETIC,
        n=estimate.n,
        confidence_level=confidence_level,
    )
