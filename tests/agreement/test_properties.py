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
)
from calibration.agreement.ratings import WEIGHTS, weight_matrix
from calibration.statistics.estimate import Estimate
from tests.agreement.tables import Table, of_codes, tables

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
IN_PAIRS: tuple[OfTable, ...] = (PERCENT, ALPHA, SCOTT, cohen)


def ordinal(table: Table, _: Matrix | None = None) -> Estimate:
    return of_counts(KRIPPENDORFF_ORDINAL, table, None)


def same(first: Estimate, second: Estimate) -> None:
    """Assert that two estimates differ by rounding only."""
    assert (first.value is None) == (second.value is None)
    if first.value is None or second.value is None:
        assert first.status == second.status
        return
    assert first.value == pytest.approx(second.value, abs=1e-9)
    if first.value <= -1 + 1e-9:  # rounding decides whether there is an interval
        return
    assert (first.status, first.method, first.n) == (second.status, second.method, second.n)
    assert (first.se is None) == (second.se is None)
    assert (first.interval is None) == (second.interval is None)
    numbers = [(e.se or 0.0, *(e.interval or ())) for e in (first, second)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-6, abs=1e-9)


@fuzzed
@given(table=tables(), name=st.sampled_from(WEIGHTS), seed=st.integers(0, 2**32))
def test_order_and_names_absent_raters_and_identity_weights_do_not_matter(
    table: Table, name: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    q = table.n_classes
    shuffled = rng.permutation(rng.permutation(table.codes, axis=0), axis=1)
    absent = Table(np.insert(table.codes, 1, -1, axis=1), q)
    place, weights = rng.permutation(q), weight_matrix(name, q)
    renamed, moved = Table(np.append(place, -1)[table.codes], q), np.empty_like(weights)
    moved[np.ix_(place, place)] = weights
    for of in ALL:
        found = of(table, None)
        for other in (Table(shuffled, q), absent):
            same(found, of(other, None))
        same(found, of(table, np.eye(q)))
        same(of(table, weights), of(renamed, moved))
    same(cohen(table, None), cohen(table, np.eye(q)))
    same(cohen(table, weights), cohen(renamed, moved))
    same(ordinal(table), ordinal(Table(shuffled, q)))
    turned = Table(np.where(table.codes < 0, -1, q - 1 - table.codes), q)
    same(ordinal(table), ordinal(turned))


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
