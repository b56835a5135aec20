"""Shares of the classes in production, from labels post-stratified by verdict."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from calibration.correction.confusion import validated_human
from calibration.correction.intervals import (
    FloatArray,
    IntArray,
    check_confidence_level,
    validated_codes,
    validated_weights,
)
from calibration.correction.post_stratified import post_stratified
from calibration.correction.strata import UNUSED, Strata
from calibration.estimates import OK, Estimate, not_estimable

METHOD = "post-stratified by verdict, Dirichlet posterior"


def post_stratified_shares(
    human: ArrayLike,
    verdicts: IntArray,
    production_counts: ArrayLike,
    *,
    strata: Strata,
    weights: FloatArray | None = None,
    prior: float = 0.2,
    minimum_labels: int = 10,
    confidence_level: float = 0.95,
) -> tuple[Estimate, ...]:
    """Estimate the share of each class in production.

    The labelled traces must be a probability sample of production. Within a stratum the class
    shares have a Dirichlet posterior; the verdict shares of production add their own variance.

    Parameters
    ----------
    human : array-like of float, shape (n, n_classes)
        Class shares of each labelled trace, rows summing to one.
    verdicts : int array, shape (n,)
        Verdict codes of the labelled traces.
    production_counts : array-like of int, shape (n_verdicts,)
        All judged production traces by verdict.
    strata : Strata
        The grouping that `post_stratified` used.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities.
    prior : float, default 0.2
        Dirichlet parameter of each class in each stratum, for the interval; the value is the
        plain post-stratified share.
    minimum_labels : int, default 10
        A class with fewer labels gets no interval.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    tuple of Estimate, length n_classes
        Values sum to one.

    Raises
    ------
    ValueError
        If shapes differ, a row does not sum to one, or `prior` is not positive.

    Notes
    -----
    The posterior of a share is a weighted sum of beta variables. Its mean and variance are exact;
    the interval is that of the beta distribution with these two moments, so no draws are needed.

    References
    ----------
    Gelman et al. (2013), Bayesian Data Analysis, section 3.4.
    https://doi.org/10.1201/b16018

    Examples
    --------
    >>> shares = post_stratified_shares(
    ...     np.eye(2)[[0] * 9 + [1] + [0] + [1] * 9], np.repeat([0, 1], 10), [800, 200],
    ...     strata=Strata(groups=(0, 1), merged=()),
    ... )
    >>> shares[0].value, shares[1].value
    (0.74, 0.26)
    """
    check_confidence_level(confidence_level)
    if not prior > 0:
        raise ValueError(f"prior must be positive, got {prior!r}")
    shares = validated_human(human)
    n, n_classes = int(shares.shape[0]), int(shares.shape[1])
    counts = np.asarray(production_counts, dtype=np.float64)
    codes = validated_codes(verdicts, n_codes=counts.size, name="verdicts")
    if strata.n_strata == 0 or n == 0 or counts.sum() == 0:
        why = "no labelled traces or no verdicts: label a random sample of production"
        refused = not_estimable(why, method=METHOD, confidence_level=confidence_level)
        return tuple(refused for _ in range(n_classes))
    weight = validated_weights(weights, n)
    group = np.array(strata.groups)
    used = group != UNUSED
    share = np.bincount(group[used], weights=counts[used], minlength=strata.n_strata)
    share = share / counts.sum()
    table = np.zeros((strata.n_strata, n_classes))
    np.add.at(table, group[codes], shares * weight[:, None])
    totals = table.sum(axis=1)
    squares = np.bincount(group[codes], weights=weight**2, minlength=strata.n_strata)
    given = table / totals[:, None]
    effective = given * (totals**2 / squares)[:, None] + prior
    mass = effective.sum(axis=1, keepdims=True)
    mean_given = effective / mass
    mean = share @ mean_given
    variance = share**2 @ (mean_given * (1 - mean_given) / (mass + 1))
    variance = variance + share @ (mean_given - mean) ** 2 / counts.sum()
    size = mean * (1 - mean) / variance - 1
    tails = np.array([(1 - confidence_level) / 2, (1 + confidence_level) / 2])
    limits = stats.beta.ppf(tails[:, None], mean * size, (1 - mean) * size)
    values, labels = share @ given, shares.sum(axis=0)
    return tuple(
        _share(values[k], limits[:, k], labels[k], n, minimum_labels, confidence_level)
        for k in range(n_classes)
    )


def _share(
    value: float,
    limits: FloatArray,
    labels: float,
    n: int,
    minimum_labels: int,
    confidence_level: float,
) -> Estimate:
    enough = labels >= minimum_labels
    # The prior moves the posterior off a share of exactly 0 or 1; the value stays inside.
    interval = min(float(limits[0]), float(value)), max(float(limits[1]), float(value))
    return Estimate(
        value=float(value),
        interval=interval if enough else None,
        n=n,
        method=METHOD,
        confidence_level=confidence_level,
        status=OK if enough else f"no interval: fewer than {minimum_labels} labels of this class",
    )


def clustered_shares(
    human: ArrayLike,
    verdicts: IntArray,
    production_counts: ArrayLike,
    *,
    clusters: NDArray[np.generic],
    weights: FloatArray | None = None,
    verdict_values: FloatArray | None = None,
    minimum_labels: int = 10,
    confidence_level: float = 0.95,
) -> tuple[Estimate, ...]:
    """Estimate the share of each class when tasks repeat among the labelled traces.

    Each class is a score of 0 or 1 in `post_stratified`, whose standard error is that of the task
    totals; the Dirichlet posterior would take repeated trials for independent.

    Raises
    ------
    ValueError
        As `post_stratified`.
    """
    shares = validated_human(human)
    results = []
    for column in shares.T:
        estimate = post_stratified(
            column,
            verdicts,
            production_counts,
            verdict_values=verdict_values,
            weights=weights,
            clusters=clusters,
            confidence_level=confidence_level,
        ).estimate
        results.append(with_enough_labels(estimate, float(column.sum()), minimum_labels))
    return tuple(results)


def with_enough_labels(estimate: Estimate, labels: float, minimum_labels: int) -> Estimate:
    """Return the share of a class without its interval when the class has too few labels."""
    if not estimate.ok or labels >= minimum_labels:
        return estimate
    few = f"no interval: fewer than {minimum_labels} labels of this class"
    return replace(estimate, interval=None, se=None, status=few)
