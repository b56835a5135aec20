"""Tests of equal margins: outside values, what they share, and tables that show nothing."""

from typing import Any

import numpy as np
import pytest

from calibration.statistics.contingency import bhapkar, holm, mcnemar, stuart_maxwell
from tests.agreement.golden import entries

OF = {"stuart_maxwell_chi2": stuart_maxwell, "bhapkar_chi2": bhapkar, "mcnemar_chi2": mcnemar}


@pytest.mark.parametrize("entry", entries(*OF))
def test_a_statistic_equals_the_outside_value(entry: dict[str, Any]) -> None:
    found = OF[entry["coefficient"]](entry["data"])
    assert found.statistic == pytest.approx(entry["expected"], abs=entry["tolerance"])
    assert found.df == entry.get("df", found.df)
    if "p" in entry:
        assert found.p_value == pytest.approx(entry["p"], rel=1e-5)


@pytest.mark.parametrize("entry", entries("mcnemar_chi2_corrected", "mcnemar_exact_p"))
def test_mcnemar_corrected_and_exact_equal_the_outside_values(entry: dict[str, Any]) -> None:
    exact = entry["coefficient"] == "mcnemar_exact_p"
    found = mcnemar(entry["data"], exact=exact, corrected=not exact)
    value = found.p_value if exact else found.statistic
    assert value == pytest.approx(entry["expected"], abs=entry["tolerance"])
    assert mcnemar(entry["data"]).method == "McNemar chi-square"  # 30 items differ


def test_on_two_classes_all_are_mcnemar() -> None:
    table = [[40, 30], [10, 20]]
    assert mcnemar(table).statistic == pytest.approx(10.0)
    assert stuart_maxwell(table).statistic == pytest.approx(10.0)
    assert bhapkar(table).statistic == pytest.approx(10 / (1 - 10 / 100))


def test_the_order_of_raters_and_of_classes_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    table = rng.integers(0, 9, (4, 4))
    order = rng.permutation(4)
    for test in (stuart_maxwell, bhapkar):
        found = test(table)
        assert test(table.T).statistic == pytest.approx(found.statistic)
        assert test(table[np.ix_(order, order)]).statistic == pytest.approx(found.statistic)


@pytest.mark.parametrize("test", [stuart_maxwell, bhapkar, mcnemar])
def test_raters_who_never_differ_show_nothing(test: Any) -> None:
    found = test([[5, 0], [0, 3]])
    assert (found.statistic, found.p_value, found.n) == (None, None, 8)
    assert found.status == "undefined: the raters never differ"


def test_a_class_that_nobody_used_adds_no_degree_of_freedom() -> None:
    found = stuart_maxwell([[10, 6, 0], [2, 10, 0], [0, 0, 0]])
    assert found.statistic == pytest.approx(2.0)
    assert found.df == 1
    # Raters who never agree have no Bhapkar.
    found = bhapkar([[0, 7], [0, 0]])
    assert found.statistic is None
    assert found.status.startswith("undefined: the raters never agree")


@pytest.mark.parametrize("table", [[[1, 2]], [[1.0, 2.0], [0.0, 1.0]], [[1, -1], [0, 1]], [[3]]])
def test_what_is_no_table_is_refused(table: Any) -> None:
    with pytest.raises(ValueError, match="table must"):
        stuart_maxwell(table)


@pytest.mark.long
def test_the_size_of_the_tests_is_what_it_says() -> None:
    """Equal margins: 5 % of 2,000 tables are called different, within .036 to .065."""
    rng = np.random.default_rng(7)
    cells = np.array([[0.3, 0.05, 0.02], [0.05, 0.25, 0.04], [0.02, 0.04, 0.23]])
    tables = rng.multinomial(400, cells.ravel(), size=2_000).reshape(-1, 3, 3)
    for test in (stuart_maxwell, bhapkar):
        called = np.mean([(test(table).p_value or 1.0) < 0.05 for table in tables])
        assert 0.036 < called < 0.065, test.__name__


def test_holm_never_lowers_a_p_value_nor_changes_their_order() -> None:
    given = {"a": 0.2, "b": 0.001, "c": 0.04, "d": 0.04}
    found = holm(given)
    assert found == {"b": 0.004, "c": pytest.approx(0.12), "d": pytest.approx(0.12), "a": 0.2}
    assert all(found[name] >= p for name, p in given.items())
