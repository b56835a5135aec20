"""Partial credit fitted to usefulness: the monotone means by hand, and against brute force."""

from itertools import product

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression  # type: ignore[import-untyped]

from calibration.statistics.estimate import OK, BoolArray, FloatArray
from calibration.success_rate.fitted_credit import (
    class_order,
    fit_credit,
    monotone_means,
)
from calibration.taxonomy import default_taxonomy

TAXONOMY = default_taxonomy()
ORDER = class_order(TAXONOMY)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def brute_force(counts: FloatArray, means: FloatArray, above: BoolArray) -> FloatArray:
    """Return the best of all partitions into blocks of equal value that keep the order."""
    best, found = np.inf, means
    n = means.size
    for blocks in product(range(n), repeat=n):
        block = np.array(blocks)
        values = np.array(
            [np.average(means[block == b], weights=counts[block == b]) for b in block]
        )
        if (above & (values[:, None] < values - 1e-12)).any():
            continue
        loss = float(counts @ (values - means) ** 2)
        if loss < best - 1e-12:
            best, found = loss, values
    return found


def test_monotone_means_are_the_least_squares_ones_of_the_partial_order() -> None:
    drawn = rng()
    for _ in range(3):
        counts, means = drawn.integers(1, 9, 5).astype(float), drawn.random(5).round(2)
        found = monotone_means(counts[None], (counts * means)[None], ORDER)[0]
        assert found == pytest.approx(brute_force(counts, means, ORDER))
    chain = np.triu(np.ones((6, 6), dtype=bool), 1)
    counts, means = drawn.integers(1, 9, 6).astype(float), drawn.random(6)
    theirs = IsotonicRegression(increasing=False).fit(np.arange(6), means, sample_weight=counts)
    found = monotone_means(counts[None], (counts * means)[None], chain)[0]
    assert found == pytest.approx(theirs.predict(np.arange(6)))


def test_a_class_without_runs_takes_no_part() -> None:
    counts = np.array([[3.0, 2.0, 0.0, 1.0, 0.0]])
    found = monotone_means(counts, counts * [0.9, 0.5, 0.0, 0.7, 0.0], ORDER)[0]
    # Partly right (2 runs at .5) and hallucinated (1 at .7) exchange places: (1 + .7) / 3.
    assert found[[0, 1, 3]] == pytest.approx([0.9, 17 / 30, 17 / 30])
    assert np.isnan(found[[2, 4]]).all()


def test_the_credit_is_where_partly_right_runs_lie_between_the_ends() -> None:
    """Complete 90; partly right 50; what earns nothing (20 x 15 + 10 x 0) / 30 = 10: 40 / 80."""
    codes = np.repeat([0, 1, 2, 4], [30, 30, 20, 10])
    values = np.repeat([90.0, 50.0, 15.0, 0.0], [30, 30, 20, 10])
    found = fit_credit(codes, values, taxonomy=TAXONOMY, rng=rng(), n_resamples=200)
    assert found.credit.value == pytest.approx(0.5)
    other = fit_credit(codes, values / 100, taxonomy=TAXONOMY, rng=rng(), n_resamples=200)
    assert other.credit.interval == pytest.approx(found.credit.interval)
    assert [c.mean for c in found.classes] == [90.0, 50.0, 15.0, None, 0.0]
    at = {row.name: row.asr.value for row in found.rates}
    assert at == {
        "fitted": pytest.approx(45 / 90), "0.3": pytest.approx(39 / 90),
        "0.4": pytest.approx(42 / 90), "0.5": pytest.approx(45 / 90),
    }  # fmt: skip
    assert found.partial == (TAXONOMY.acceptable[1],)
    tasks = np.arange(90) // 3
    clustered = fit_credit(
        codes, values, taxonomy=TAXONOMY, rng=rng(), tasks=tasks, n_resamples=200
    )
    assert (clustered.n_tasks, clustered.credit.n) == (30, 10)


@pytest.mark.parametrize(
    ("counts", "values", "value", "why"),
    [
        ((5, 0, 5, 0, 0), (1, 0, 0, 0, 0), None, "no run of partial_plus: add some"),
        ((0, 5, 5, 0, 0), (1, 1, 0, 0, 0), None, "no run of complete: add some"),
        ((5, 5, 0, 0, 0), (1, 1, 0, 0, 0), None, "no run of partial_minus or hallucinated or"),
        ((5, 5, 5, 0, 0), (0, 0, 1, 0, 0), None, "of no more use than"),
        ((4, 4, 4, 0, 0), (1, 0.5, 0, 0, 0), 0.5, "no interval from 4 tasks"),
        ((30, 30, 30, 0, 0), (1, 0, 0.5, 0, 0), 0.0, ""),
        ((30, 30, 30, 0, 0), (0.5, 1, 0, 0, 0), 1.0, ""),
    ],
)
def test_what_is_missing_is_said(
    counts: tuple[int, ...], values: tuple[float, ...], value: float | None, why: str
) -> None:
    codes, useful = np.repeat(np.arange(5), counts), np.repeat(np.array(values, float), counts)
    found = fit_credit(codes, useful, taxonomy=TAXONOMY, rng=rng(), n_resamples=200).credit
    assert found.value == (None if value is None else pytest.approx(value))
    if why:
        assert why in found.status
        assert found.interval is None
    else:
        assert found.interval is not None
        assert found.status.startswith(("no variation", OK))


def test_numbers_that_are_none_are_refused() -> None:
    for codes, values in (
        (np.array([0, 9]), np.array([1.0, 0.0])),
        (np.array([0, 1]), np.array([1.0, np.nan])),
        (np.array([0, 1]), np.array([1.0])),
        (np.zeros(0, dtype=np.int64), np.zeros(0)),
    ):
        with pytest.raises(ValueError, match="must be"):
            fit_credit(codes, values, taxonomy=TAXONOMY, rng=rng())
