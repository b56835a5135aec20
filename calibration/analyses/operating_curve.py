"""The chance to pass an examination by how often a reviewer is right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from calibration.agreement.intervals import NO_SPREAD, unseen_share_bound
from calibration.reviewing.certification import PassRule, hits_needed
from calibration.taxonomy import Taxonomy

ACCURACIES = (0.75, 0.78, 0.80, 0.82, 0.84, 0.86, 0.88, 0.90, 0.92, 0.95, 0.97)
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """Chances to pass for one accuracy.

    `agreement` by AC1 alone, `with_floor` if every class is also found with at least the recall
    of the rule, `whole` by the whole rule with topping up, `twice` within two attempts.
    """

    accuracy: float
    agreement: float
    with_floor: float
    whole: float
    twice: float


def operating_curve(
    taxonomy: Taxonomy,
    class_counts: Mapping[str, int],
    *,
    rng: np.random.Generator,
    accuracies: Sequence[float] = ACCURACIES,
    rule: PassRule | None = None,
    n_draws: int = 4_000,
) -> tuple[OperatingPoint, ...]:
    """Simulate examinations of reviewers who are right so often, in every class alike.

    A reviewer who errs does so at one question of the path, each as likely as the others, and
    ends in any class on its other side. Traces are independent; so are the two attempts.

    Parameters
    ----------
    taxonomy : Taxonomy
    class_counts : mapping of str to int
        Traces of each class on the form.
    rng : numpy.random.Generator
    accuracies : sequence of float
        In [0, 1].
    rule : PassRule, optional
    n_draws : int, default 4,000
        Examinations for each accuracy; the error of a chance is at most .008.

    Returns
    -------
    tuple of OperatingPoint

    Examples
    --------
    Who never errs always passes, and who always errs never:

    >>> from calibration.taxonomy import default_taxonomy
    >>> form = dict.fromkeys(default_taxonomy().credit, 14)
    >>> curve = operating_curve(
    ...     default_taxonomy(), form, rng=np.random.default_rng(1), accuracies=(0, 1), n_draws=9)
    >>> [point.whole for point in curve]
    [0.0, 1.0]
    """
    rule = rule or PassRule()
    names = list(taxonomy.credit)
    sizes = np.array([class_counts.get(name, 0) for name in names])
    spread = _neighbours(taxonomy, names)
    points = []
    for accuracy in accuracies:
        rates = accuracy * np.eye(len(names)) + (1 - accuracy) * spread
        tables = np.stack(
            [rng.multinomial(n, p, size=n_draws) for n, p in zip(sizes, rates, strict=True)], axis=1
        )
        points.append(_point(accuracy, tables, rule, rng))
    return tuple(points)


def _point(
    accuracy: float, tables: IntArray, rule: PassRule, rng: np.random.Generator
) -> OperatingPoint:
    agrees = ac1_lower_limits(tables, confidence_level=rule.confidence_level) >= rule.ac1
    sizes = tables[0].sum(axis=1)
    there = sizes > 0
    hits = np.diagonal(tables, axis1=1, axis2=2)[:, there]
    sizes = sizes[there]
    needed, more = (
        np.array([hits_needed(int(n) + extra, rule) for n in sizes]) for extra in (0, rule.top_up)
    )
    topped = hits + rng.binomial(rule.top_up, accuracy, size=hits.shape)
    shown = (hits >= needed) | (topped >= more)
    whole = float((agrees & shown.all(axis=1)).mean())
    return OperatingPoint(
        accuracy=accuracy,
        agreement=float(agrees.mean()),
        with_floor=float((agrees & (hits >= rule.recall * sizes).all(axis=1)).mean()),
        whole=whole,
        twice=1 - (1 - whole) ** 2,
    )


def _neighbours(taxonomy: Taxonomy, names: Sequence[str]) -> FloatArray:
    """Return where errors go, rows by the true class: a question of its path, then its far side."""
    paths = dict(zip(names, taxonomy.paths(names), strict=True))
    spread = np.zeros((len(names), len(names)))
    for row, name in enumerate(names):
        for place, (node, answer) in enumerate(paths[name]):
            before = paths[name][:place]
            across = [
                column
                for column, other in enumerate(names)
                if paths[other][:place] == before and dict(paths[other]).get(node, answer) != answer
            ]
            spread[row, across] += 1 / (len(paths[name]) * len(across))
    return spread


def ac1_lower_limits(tables: IntArray, *, confidence_level: float = 0.95) -> FloatArray:
    """Return the lower limit of AC1 for many two-way tables at once.

    Parameters
    ----------
    tables : int array, shape (n_tables, n_classes, n_classes)
        Items by the class of the key and the class given; each holds the same number, two or more.
    confidence_level : float, default 0.95

    Returns
    -------
    float array, shape (n_tables,)
        What `calibration.agreement.against_key` gives one by one: jackknife, Fisher z; where both
        never differ, the exact bound.

    Examples
    --------
    Ten items in each of two classes, all agreed: 1 - .16843 / (1 - 1/2).

    >>> ac1_lower_limits(np.array([[[10, 0], [0, 10]]]))
    array([0.66313])
    """
    n_tables, q, _ = tables.shape
    cells = tables.reshape(n_tables, q * q).astype(float)
    n = float(cells[0].sum())
    used = (tables.sum(axis=1) + tables.sum(axis=2)) / 2
    differ = 1 - np.eye(q).ravel()
    apart = cells @ differ
    squares = (used**2).sum(axis=1)
    expected = 1 - (1 - squares / n**2) / (q - 1)
    value = 1 - apart / n / expected
    i, j = np.divmod(np.arange(q * q), q)
    # Without an item of cell (i, j) the uses of i and j fall by half each.
    left = squares[:, None] - used[:, i] - used[:, j] + np.where(i == j, 1.0, 0.5)
    left_expected = 1 - (1 - left / (n - 1) ** 2) / (q - 1)
    left_out = 1 - (apart[:, None] - differ) / (n - 1) / left_expected
    mean = (cells * left_out).sum(axis=1) / n
    se = np.sqrt((n - 1) / n * (cells * (left_out - mean[:, None]) ** 2).sum(axis=1))
    agreed = apart == 0
    inside = np.clip(value, -1 + NO_SPREAD, 1 - NO_SPREAD)
    reach = special.stdtrit(n - 1, (1 + confidence_level) / 2) * se / (1 - inside**2)
    bound = 1 - unseen_share_bound(int(n), confidence_level=confidence_level) / expected
    return np.asarray(np.where(agreed, bound, np.tanh(np.arctanh(inside) - reach)))
