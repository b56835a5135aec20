"""Alpha against the PyPI package `krippendorff` on random tables; many more in `make fuzz`.

The package is GPL-3 and only a witness: the library never imports it and never ships it.
"""

import warnings
from typing import Literal

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.agreement.coefficients import KRIPPENDORFF_ALPHA, KRIPPENDORFF_ORDINAL, estimate
from calibration.agreement.ratings import count_patterns
from calibration.analyses.agreement.ratings import weights_of
from tests.agreement.conftest import Tally
from tests.agreement.tables import Table, likely_tables, tables

Metric = Literal["nominal", "ordinal", "interval", "ratio"]
TOLERANCE = 1e-10


def theirs(table: Table, values: list[int], metric: Metric) -> float | None:
    """Return their alpha, None where they raise or divide nothing by nothing."""
    named = np.array([*values, np.nan])[table.codes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            found = krippendorff.alpha(
                reliability_data=named.T, value_domain=values, level_of_measurement=metric
            )
        except ValueError:
            return None
    return None if np.isnan(found) else float(found)


def ours(table: Table, values: list[int], metric: Metric) -> float | None:
    """Return our alpha by the way that a command takes."""
    patterns = count_patterns(table.codes, n_classes=table.n_classes)
    weights = weights_of(f"krippendorff_{metric}", [str(v) for v in values])
    coefficient = KRIPPENDORFF_ALPHA if weights is not None else KRIPPENDORFF_ORDINAL
    return estimate(coefficient, patterns, weights=weights).value


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval", "ratio"])
@settings(deadline=None)
@given(table=tables() | likely_tables(), data=st.data())
def test_alpha_is_that_of_the_krippendorff_package(
    tally: Tally, metric: Metric, table: Table, data: st.DataObject
) -> None:
    count = table.n_classes
    values = sorted(
        data.draw(st.lists(st.integers(0, 100), min_size=count, max_size=count, unique=True))
    )
    mine, other, counted = ours(table, values, metric), theirs(table, values, metric), tally[metric]
    assert (mine is None) == (other is None)
    if mine is None or other is None:
        counted.refused += 1
        return
    counted.note(abs(mine - other))
    assert mine == pytest.approx(other, rel=0, abs=TOLERANCE)
