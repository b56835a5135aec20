"""Dawid-Skene: against EM in plain loops, what must not matter, and what cannot be estimated."""

from math import log, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from calibration.agreement.dawid_skene import (
    MAXIMUM_LIKELIHOOD,
    WEAK_PRIOR,
    DirichletPrior,
    LatentTruth,
    dawid_skene,
    dawid_skene_from_counts,
)

PRIORS = [MAXIMUM_LIKELIHOOD, WEAK_PRIOR, DirichletPrior(diagonal=4.0, off_diagonal=0.1)]

# Two ratings of the first rater on some items, none of the second on others, a row thrice.
# A row an item, a word a rater, a digit a class.
ROWS = """
200 100 100 010
200 100 100 010
200 100 100 010
110 010 000 010
010 010 100 010
001 000 001 010
002 001 010 001
010 001 010 001
100 010 001 100
"""
COUNTS = np.array([[[*map(int, of)] for of in row.split()] for row in ROWS.split("\n")[1:-1]])


def plain_em(
    counts: NDArray[np.int64], prior: DirichletPrior, iterations: int
) -> tuple[Any, Any, Any, float]:
    """Return shares, confusions, posteriors and log likelihood, one item and one cell at a time."""
    n, raters, q = counts.shape
    posterior = [[float(row[:, k].sum() / row.sum()) for k in range(q)] for row in counts]
    for _ in range(iterations):
        shares = [sum(p[j] for p in posterior) + prior.class_share for j in range(q)]
        shares = [s / sum(shares) for s in shares]
        confusion = []
        for k in range(raters):
            rows = []
            for j in range(q):
                row = [
                    sum(posterior[i][j] * int(counts[i, k, c]) for i in range(n))
                    + (prior.diagonal if c == j else prior.off_diagonal)
                    for c in range(q)
                ]
                rows.append([r / sum(row) if sum(row) else 1 / q for r in row])
            confusion.append(rows)
        likelihood, posterior = 0.0, []
        for item in counts:
            joint = [
                shares[j] * prod(float(of[j][c]) ** int(item[k, c])
                                 for k, of in enumerate(confusion) for c in range(q))
                for j in range(q)
            ]  # fmt: skip
            likelihood += log(sum(joint))
            posterior.append([x / sum(joint) for x in joint])
    return shares, confusion, posterior, likelihood


def simulated(
    n: int, confusion: NDArray[np.float64], shares: list[float], *, missing: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return true classes and the codes that raters of known confusions give."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(len(shares), size=n, p=shares)
    upto = confusion.cumsum(axis=2)[:, truth].transpose(1, 0, 2)
    codes = (rng.random((n, len(confusion), 1)) > upto[:, :, :-1]).sum(axis=2)
    codes[rng.random(codes.shape) < missing] = -1
    return truth, codes


def rater(right: float, q: int = 3) -> NDArray[np.float64]:
    return np.where(np.eye(q) > 0, right, (1 - right) / (q - 1))


def nothing_is_nan(found: LatentTruth) -> bool:
    parts = found.posterior, found.class_shares, found.confusion, found.support, found.entropy
    numbers = np.array([found.log_likelihood, found.penalised_log_likelihood])
    return all(bool(np.isfinite(part).all()) for part in (*parts, numbers))


@pytest.mark.parametrize("prior", PRIORS)
def test_it_is_em_as_written_down_in_loops(prior: DirichletPrior) -> None:
    for iterations in (1, 2, 7):
        found = dawid_skene_from_counts(COUNTS, prior=prior, max_iterations=iterations)
        shares, confusion, posterior, likelihood = plain_em(COUNTS, prior, iterations)
        assert found.iterations == iterations
        assert ("maximum likelihood" in found.method) == prior.flat
        np.testing.assert_allclose(found.class_shares, shares, atol=1e-12)
        np.testing.assert_allclose(found.confusion, confusion, atol=1e-12)
        np.testing.assert_allclose(found.posterior, posterior, atol=1e-12)
        assert found.log_likelihood == pytest.approx(likelihood, abs=1e-10)
    # Once settled, another hundred iterations change nothing.
    settled = dawid_skene_from_counts(COUNTS, prior=prior)
    assert settled.converged
    shares, _, _, likelihood = plain_em(COUNTS, prior, settled.iterations + 100)
    np.testing.assert_allclose(settled.class_shares, shares, atol=1e-4)
    if prior.flat:  # with a prior the penalised one settles first
        assert settled.log_likelihood == pytest.approx(likelihood, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    codes=arrays.arrays(np.int64, st.tuples(st.integers(1, 9), st.integers(1, 4)),
                        elements=st.integers(-1, 2)),
    prior=st.sampled_from(PRIORS),
)  # fmt: skip
def test_the_penalised_likelihood_never_falls(
    codes: NDArray[np.int64], prior: DirichletPrior
) -> None:
    steps = [dawid_skene(codes, n_classes=3, prior=prior, max_iterations=k) for k in range(1, 12)]
    reached = np.array([step.penalised_log_likelihood for step in steps])
    assert (np.diff(reached) > -1e-9).all()
    assert all(nothing_is_nan(step) for step in steps)
    for part in (steps[-1].posterior, steps[-1].confusion, steps[-1].class_shares):
        np.testing.assert_allclose(part.sum(axis=-1), 1.0, atol=1e-9)


def test_known_confusions_are_recovered() -> None:
    confusion = np.array([rater(0.9), rater(0.7), rater(0.6), rater(0.8), rater(0.75)])
    confusion[1] = [[0.8, 0.2, 0.0], [0.1, 0.5, 0.4], [0.05, 0.05, 0.9]]
    truth, codes = simulated(20_000, confusion, [0.5, 0.3, 0.2], missing=0.2, seed=4)
    found = dawid_skene(codes, n_classes=3)
    assert found.status == "ok"
    np.testing.assert_allclose(found.class_shares, [0.5, 0.3, 0.2], atol=0.015)
    np.testing.assert_allclose(found.confusion, confusion, atol=0.03)
    assert found.support.sum() == pytest.approx((codes >= 0).sum())
    # Better than the vote, and as often right as it says.
    votes = (codes[:, :, None] == np.arange(3)).sum(axis=1)
    right = (found.posterior.argmax(axis=1) == truth).mean()
    assert right > (votes.argmax(axis=1) == truth).mean() + 0.01
    assert right == pytest.approx(found.posterior.max(axis=1).mean(), abs=0.01)


@pytest.mark.parametrize("prior", PRIORS)
def test_the_order_of_items_raters_and_classes_does_not_matter(prior: DirichletPrior) -> None:
    rng = np.random.default_rng(8)
    _, codes = simulated(120, np.array([rater(0.8)] * 4), [0.5, 0.3, 0.2], missing=0.2, seed=2)
    base = dawid_skene(codes, n_classes=3, prior=prior)
    items, raters, classes = rng.permutation(120), rng.permutation(4), rng.permutation(3)
    of_items = dawid_skene(codes[items], n_classes=3, prior=prior)
    np.testing.assert_array_equal(of_items.posterior, base.posterior[items])
    np.testing.assert_array_equal(of_items.confusion, base.confusion)
    of_raters = dawid_skene(codes[:, raters], n_classes=3, prior=prior)
    np.testing.assert_allclose(of_raters.confusion, base.confusion[raters], atol=1e-9)
    np.testing.assert_allclose(of_raters.posterior, base.posterior, atol=1e-9)
    np.testing.assert_array_equal(of_raters.order, base.order)
    renamed = dawid_skene(np.append(classes, -1)[codes], n_classes=3, prior=prior)
    np.testing.assert_allclose(renamed.posterior[:, classes], base.posterior, atol=1e-9)
    np.testing.assert_allclose(
        renamed.confusion[:, classes][:, :, classes], base.confusion, atol=1e-9
    )


def test_more_ratings_than_a_byte_holds_are_not_folded() -> None:
    counts = np.array([[[256, 0], [1, 0]], [[0, 0], [1, 0]], [[0, 300], [0, 1]]])
    found = dawid_skene_from_counts(counts)
    assert found.support.sum() == pytest.approx(559)
    assert found.entropy[0] < found.entropy[1]


def test_a_known_class_is_kept_and_teaches_the_confusions() -> None:
    confusion = np.array([rater(0.3, 2), rater(0.4, 2), rater(0.35, 2)])  # below chance
    truth, codes = simulated(400, confusion, [0.5, 0.5], missing=0.0, seed=5)
    known = np.where(np.arange(400) < 150, truth, -1)
    blind = dawid_skene(codes, n_classes=2)
    taught = dawid_skene(codes, n_classes=2, known=known)
    np.testing.assert_array_equal(taught.posterior[:150], np.eye(2)[truth[:150]])
    assert (taught.entropy[:150] == 0).all()
    rest = slice(150, None)
    right = (taught.posterior[rest].argmax(axis=1) == truth[rest]).mean()
    assert right > 0.65
    # Without them the names of the classes are swapped.
    assert (blind.posterior[rest].argmax(axis=1) == truth[rest]).mean() < 0.35
    assert set(taught.order) == set(range(150, 400))


def test_all_known_gives_the_plain_confusion_tables() -> None:
    truth, codes = simulated(300, np.array([rater(0.7)] * 2), [0.4, 0.3, 0.3], missing=0.1, seed=6)
    found = dawid_skene(codes, n_classes=3, known=truth, prior=MAXIMUM_LIKELIHOOD)
    table = np.zeros((3, 3))
    np.add.at(table, (truth[codes[:, 1] >= 0], codes[codes[:, 1] >= 0, 1]), 1)
    np.testing.assert_allclose(found.confusion[1], table / table.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(found.support[1], table.sum(axis=1))
    assert found.order.size == 0


def test_the_order_is_by_entropy_with_ties_as_given_and_without_what_nobody_rated() -> None:
    codes = [[0, 0, 0], [-1, -1, -1], [0, 1, -1], [1, 1, 1], [0, 1, -1], [0, 0, 1], [0, 0, 0]]
    found = dawid_skene(codes, n_classes=2)
    assert found.order[:2].tolist() == [2, 4]
    assert sorted(found.order.tolist()) == [0, 2, 3, 4, 5, 6]
    assert found.order.tolist().index(0) < found.order.tolist().index(6)
    assert (np.diff(found.entropy[found.order]) <= 1e-9).all()
    np.testing.assert_allclose(found.posterior[1], found.class_shares)
    # An even split of twins is one bit.
    twins = dawid_skene([[0, 0], [1, 1], [0, 1], [1, 0]], n_classes=2)
    np.testing.assert_allclose(twins.entropy[2:], 1.0, atol=1e-9)


EMPTY = ((0, 0), (0, 3), (3, 0), (4, 3))


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(
    ("codes", "status"),
    [
        *((np.full(shape, -1), "not_estimable: no ratings") for shape in EMPTY),
        (np.array([[0], [1], [2]]), "provisional: one rater only"),
        (np.array([[0, -1, -1], [1, -1, -1]]), "provisional: one rater only"),
        (np.zeros((9, 4), dtype=np.int64), "provisional: every rating names one class"),
        (np.array([[0, 1], [1, 1], [2, 2]]), "provisional: most items have fewer than 3 ratings"),
        (np.array([[0, 1, 1], [1, 1, -1]]), "ok"),
    ],
)
def test_degenerate_ratings_give_a_status_and_never_nan(
    codes: NDArray[np.int64], status: str, prior: DirichletPrior
) -> None:
    found = dawid_skene(codes, n_classes=3, prior=prior)
    assert found.status.startswith(status)
    assert nothing_is_nan(found)
    assert found.posterior.shape == (codes.shape[0], 3)
    assert found.confusion.shape == (codes.shape[1], 3, 3)
    assert found.order.size == (codes >= 0).any(axis=1).sum()


def test_a_rater_without_ratings_is_the_prior_and_a_run_cut_short_says_so() -> None:
    short = dawid_skene_from_counts(COUNTS, max_iterations=2)
    assert not short.converged
    assert short.status.startswith("provisional: not converged after 2 iterations")
    found = dawid_skene([[0, 0, 0, -1], [1, 1, 1, -1], [2, 2, 2, -1]], n_classes=3)
    np.testing.assert_allclose(found.confusion[3], (2 * np.eye(3) + 0.25 * (1 - np.eye(3))) / 2.5)
    assert found.support[3].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("counts", "options", "match"),
    [
        ([[1, 2]], {}, r"counts must have shape"), ([[[1], [2]]], {}, "two classes or more"),
        ([[[1.5, 0.0]]], {}, "counts must be integers"),
        ([[[1, -1]]], {}, "counts must not be negative, got -1"),
        ([[[1, 0]]], {"known": [0, 1]}, r"known must have shape \(1,\)"),
        ([[[1, 0]]], {"known": [2]}, r"codes must be in \[-1, 1\]"),
        ([[[1, 0]]], {"tolerance": float("nan")}, "tolerance must be positive"),
        ([[[1, 0]]], {"max_iterations": 0}, "max_iterations must be at least 1, got 0"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(counts: Any, options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        dawid_skene_from_counts(counts, **options)
    with pytest.raises(ValueError, match=r"diagonal must be in \[0, inf\)"):
        DirichletPrior(diagonal=float("inf"))
