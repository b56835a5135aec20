"""What must hold of the coefficients on any table of ratings."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from calibration.agreement.coefficients import (
    BRENNAN_PREDIGER,
    FLEISS_KAPPA,
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    KRIPPENDORFF_ORDINAL,
    PERCENT_AGREEMENT,
    SCOTT_PI,
    Coefficient,
    cohen_kappa,
    conger_kappa,
    estimate,
    sums_of,
)
from calibration.agreement.inference import linearised_se
from calibration.agreement.ratings import WEIGHTS, count_patterns, weight_matrix
from calibration.statistics.estimate import Estimate
from calibration.statistics.intervals import EXACT
from tests.agreement.tables import Table, of_codes, rated, tables

Matrix = NDArray[np.float64]
OfTable = Callable[[Table, Matrix | None], Estimate]
fuzzed = settings(deadline=None)


def of_counts(coefficient: Coefficient, table: Table, weights: Matrix | None) -> Estimate:
    return of_codes(coefficient, table.codes, table.n_classes, weights=weights)


def conger(table: Table, weights: Matrix | None) -> Estimate:
    return conger_kappa(table.codes, n_classes=table.n_classes, weights=weights)


def cohen(table: Table, weights: Matrix | None) -> Estimate:
    return cohen_kappa(table.codes[:, :2], n_classes=table.n_classes, weights=weights)


ALPHA = partial(of_counts, KRIPPENDORFF_ALPHA)
AC = partial(of_counts, GWET_AC)
FLEISS = partial(of_counts, FLEISS_KAPPA)
BP = partial(of_counts, BRENNAN_PREDIGER)
PERCENT = partial(of_counts, PERCENT_AGREEMENT)
SCOTT = partial(of_counts, SCOTT_PI)
ALL: tuple[OfTable, ...] = (PERCENT, ALPHA, AC, FLEISS, BP, SCOTT, conger)

# Observed and expected disagreement both grow with the distances, so that their ratio does not.
RATIOS: tuple[OfTable, ...] = (ALPHA, FLEISS, BP, SCOTT, conger, cohen)
IN_PAIRS: tuple[OfTable, ...] = (PERCENT, ALPHA, SCOTT, cohen)


def ordinal(table: Table, _: Matrix | None = None) -> Estimate:
    return of_counts(KRIPPENDORFF_ORDINAL, table, None)


def same(first: Estimate, second: Estimate, *, limits: bool = True) -> None:
    """Assert that two estimates differ by rounding only."""
    assert (first.value is None) == (second.value is None)
    if first.value is None or second.value is None:
        assert first.status == second.status
        return
    assert first.value == pytest.approx(second.value, abs=1e-9)
    if first.value <= -1 + 1e-9 or not limits:  # rounding decides whether there is an interval
        return
    assert (first.status, first.method, first.n) == (second.status, second.method, second.n)
    assert (first.se is None) == (second.se is None)
    assert (first.interval is None) == (second.interval is None)
    numbers = [(e.se or 0.0, *(e.interval or ())) for e in (first, second)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-6, abs=1e-9)


@fuzzed
@given(table=tables(), data=st.data())
def test_order_and_names_absent_raters_and_identity_weights_do_not_matter(
    table: Table, data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    q = table.n_classes
    shuffled = rng.permutation(rng.permutation(table.codes, axis=0), axis=1)
    place = rng.permutation(q)
    renamed = Table(np.append(place, -1)[table.codes], q)
    absent = Table(np.insert(table.codes, 1, -1, axis=1), q)
    for of in ALL:
        found = of(table, None)
        for other in (Table(shuffled, q), renamed, absent):
            same(found, of(other, None))
        same(found, of(table, np.eye(q)))
    same(cohen(table, None), cohen(table, np.eye(q)))
    same(ordinal(table), ordinal(Table(shuffled, q)))
    turned = Table(np.where(table.codes < 0, -1, q - 1 - table.codes), q)
    same(ordinal(table), ordinal(turned))


@fuzzed
@given(table=tables(), name=st.sampled_from(WEIGHTS), data=st.data())
def test_weights_go_with_the_classes_when_these_are_renamed(
    table: Table, name: str, data: st.DataObject
) -> None:
    place = data.draw(st.permutations(range(table.n_classes)))
    renamed = Table(np.append(place, -1)[table.codes], table.n_classes)
    weights = weight_matrix(name, table.n_classes)
    moved = np.empty_like(weights)
    moved[np.ix_(place, place)] = weights
    for of in (*ALL, cohen):
        same(of(table, weights), of(renamed, moved))


@fuzzed
@given(table=tables(), name=st.sampled_from(WEIGHTS), data=st.data())
def test_items_rated_never_or_once_change_nothing(
    table: Table, name: str, data: st.DataObject
) -> None:
    """Unrated items change no coefficient, items rated once none that is made of pairs only."""
    n, r = table.codes.shape
    weights = weight_matrix(name, table.n_classes)
    at = data.draw(st.integers(0, n))
    unrated = Table(np.insert(table.codes, at, -1, axis=0), table.n_classes)
    for of in (*ALL, cohen):
        same(of(table, weights), of(unrated, weights))
    same(ordinal(table), ordinal(unrated))
    once = np.full(r, -1)
    once[data.draw(st.integers(0, r - 1))] = data.draw(st.integers(0, table.n_classes - 1))
    more = Table(np.insert(table.codes, at, once, axis=0), table.n_classes)
    # Where no item is left to compare, the status tells one rating an item from none at all.
    for of in (*IN_PAIRS, ordinal):
        before, after = of(table, weights), of(more, weights)
        if before.value is not None or after.value is not None:
            same(before, after)


@fuzzed
@given(table=tables(), name=st.sampled_from(WEIGHTS), scale=st.floats(0.05, 1.0))
def test_the_scale_of_the_distances_does_not_matter(table: Table, name: str, scale: float) -> None:
    """Weights a + b w stay 1 on the diagonal when a = 1 - b: all distances times b.

    The exact bound is another matter: it lets unseen items lie a whole 1 apart.
    """
    weights = weight_matrix(name, table.n_classes)
    gentler = 1 - scale * (1 - weights)
    for of in RATIOS:
        found = of(table, weights)
        same(found, of(table, gentler), limits=found.method != EXACT)


def test_the_scale_of_the_distances_does_matter_to_gwet() -> None:
    """The control: the same map moves AC2, whose chance agreement is no sum of distances."""
    table = Table(np.array([[0, 0], [0, 0], [1, 1], [0, 2]]), 3)
    plain, gentler = weight_matrix("linear", 3), 0.5 + 0.5 * weight_matrix("linear", 3)
    assert abs((AC(table, plain).value or 0) - (AC(table, gentler).value or 0)) > 0.01


@fuzzed
@given(table=tables(items=12), name=st.sampled_from(WEIGHTS))
def test_gwet_is_brennan_prediger_when_all_classes_are_as_common(table: Table, name: str) -> None:
    """Every item once under each turn of the names of the classes: all shares are 1/q."""
    q = table.n_classes
    turns = [np.where(table.codes < 0, -1, (table.codes + k) % q) for k in range(q)]
    level, weights = Table(np.vstack(turns), q), weight_matrix(name, q)
    same(AC(level, weights), BP(level, weights), limits=False)


@fuzzed
@given(table=tables(raters=(2, 2)), name=st.sampled_from(WEIGHTS))
@example(table=Table(np.array([[0, 0], [0, 1], [1, -1]]), 2), name="identity")
def test_cohen_is_conger_on_two_raters_and_the_text_book_formula(table: Table, name: str) -> None:
    weights = weight_matrix(name, table.n_classes)
    both = table.codes[(table.codes >= 0).all(axis=1)]
    found = cohen(table, weights)
    of_panel = conger(Table(both, table.n_classes), weights)
    assert (found.value is None) == (of_panel.value is None)
    if found.value is not None:
        assert found.value == pytest.approx(of_panel.value, abs=1e-9)
    if len(both) == 0:
        assert found.value is None
        return
    square = np.zeros((table.n_classes, table.n_classes))
    np.add.at(square, (both[:, 0], both[:, 1]), 1 / len(both))
    observed = (weights * square).sum()
    chance = (weights * np.outer(square.sum(axis=1), square.sum(axis=0))).sum()
    if found.value is None:
        assert chance == pytest.approx(1, abs=1e-12)
    else:
        assert found.value == pytest.approx((observed - chance) / (1 - chance), abs=1e-9)


@fuzzed
@given(table=tables(), name=st.sampled_from(WEIGHTS))
def test_alpha_is_fleiss_kappa_but_for_few_ratings_where_none_is_missing(
    table: Table, name: str
) -> None:
    """With N ratings and none missing 1 - alpha = (1 - kappa) (N - 1) / N; Scott's pi is Fleiss's.

    Krippendorff (2004), Human Communication Research 30, 411-433.
    """
    full = Table(np.maximum(table.codes, 0), table.n_classes)
    weights = weight_matrix(name, table.n_classes)
    alpha, kappa, scott = (of(full, weights).value for of in (ALPHA, FLEISS, SCOTT))
    assert (alpha is None) == (kappa is None) == (scott is None)
    if alpha is not None and kappa is not None:
        assert kappa == pytest.approx(scott, abs=1e-9)
        assert 1 - alpha == pytest.approx((1 - kappa) * (1 - 1 / full.codes.size), abs=1e-9)


@fuzzed
@given(table=tables(), name=st.sampled_from(WEIGHTS))
@example(table=Table(np.array([[0, 1], [0, 1], [0, -1]]), 2), name="identity")
def test_an_interval_holds_the_value_and_stays_in_range(table: Table, name: str) -> None:
    weights = weight_matrix(name, table.n_classes)
    for found in [ordinal(table), *(of(table, weights) for of in (*ALL, cohen))]:
        if found.value is None:
            assert found.status.startswith("not_estimable: ")
            assert found.interval is None
        elif found.interval is not None:
            lower, upper = found.interval
            assert min(-1, found.value) <= lower <= found.value + 1e-9
            assert found.value - 1e-9 <= upper <= 1 + 1e-9
            assert lower < upper


def ratings_of_300() -> Table:
    return Table(rated(np.random.default_rng(5), 300, [0.7] * 4, [0.25] * 4, missing=0.2), 4)


FROM_SUMS = (
    PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA, GWET_AC, FLEISS_KAPPA, BRENNAN_PREDIGER, SCOTT_PI,
)  # fmt: skip


@pytest.mark.parametrize(
    ("coefficient", "name"),
    [
        *((c, name) for c in FROM_SUMS for name in ("identity", "quadratic")),
        (KRIPPENDORFF_ORDINAL, "identity"),
    ],
)
def test_standard_errors_equal_those_of_the_bootstrap(coefficient: Coefficient, name: str) -> None:
    """Item by item, 20,000 resamples: their SD is itself uncertain by half a per cent."""
    table, weights = ratings_of_300(), weight_matrix(name, 4)
    patterns = count_patterns(table.codes, n_classes=4)
    kept = patterns.counts.sum(axis=1) >= (2 if coefficient.pairable_only else 1)
    features = coefficient.features(patterns.counts[kept].astype(np.float64), 1 - weights)
    items = patterns.multiplicity[kept]
    draws = np.random.default_rng(6).multinomial(items.sum(), items / items.sum(), size=20_000)
    spread = coefficient.value(draws @ features, 1 - weights).std(ddof=1)
    sums = sums_of(coefficient, patterns, weights=weights)
    assert linearised_se(sums) == pytest.approx(spread, rel=0.05)
    assert estimate(coefficient, patterns, weights=weights).se == pytest.approx(spread, rel=0.05)


@pytest.mark.long
def test_the_standard_error_of_conger_equals_that_of_the_bootstrap() -> None:
    table, rng = ratings_of_300(), np.random.default_rng(7)
    resampled = [
        conger(Table(table.codes[rng.integers(0, 300, 300)], 4), None).value for _ in range(2000)
    ]
    spread = np.std(np.array(resampled, dtype=np.float64), ddof=1)
    assert conger(table, None).se == pytest.approx(spread, rel=0.05)
