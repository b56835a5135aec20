import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.judge_calibration.label_planning import (
    DEFENCE,
    FLOOR,
    allocate,
    fewest,
    stratum_sds,
)


def test_neyman_has_the_smallest_error_that_any_allocation_has() -> None:
    counts, sds, n = np.array([500, 300, 200]), np.array([0.2, 0.3, 0.5]), 60

    def variance(drawn: np.ndarray) -> float:
        return float(((counts * sds) ** 2 / drawn).sum())

    best = allocate(counts, n, sds=sds)
    # 500 x .2 = 100, 300 x .3 = 90, 200 x .5 = 100: of 60 that is 20.69, 18.62 and 20.69.
    assert best.tolist() == [21, 18, 21] or best.tolist() == [21, 19, 20]
    others = [(a, b, n - a - b) for a in range(1, n - 1) for b in range(1, n - a)]
    smallest = min(variance(np.array(other)) for other in others)
    assert variance(best) == pytest.approx(smallest, rel=0.001)
    assert variance(best) < variance(allocate(counts, n))


@given(
    st.lists(st.integers(1, 5000), min_size=1, max_size=12),
    st.lists(st.floats(0, 0.5), min_size=12, max_size=12),
    st.floats(0, 1),
)
def test_every_stratum_has_a_chance_and_the_labels_add_up(
    counts: list[int], spread: list[float], part: float
) -> None:
    sizes = np.array(counts)
    low = int(fewest(sizes, sizes.sum()).sum())
    n = round(low + part * (sizes.sum() - low))
    for sds in (None, np.array(spread[: sizes.size])):
        drawn = allocate(sizes, n, sds=sds)
        assert drawn.sum() == n
        assert (drawn <= sizes).all()
        assert (drawn >= np.minimum(sizes, FLOOR)).all()
        assert (drawn >= np.floor(DEFENCE * n * sizes / sizes.sum())).all()


def test_a_stratum_that_looks_certain_keeps_a_quarter_of_its_share() -> None:
    assert allocate([900, 100], 100, sds=[0.0, 0.5]).tolist() == [22, 78]
    assert allocate([900, 40], 100, sds=[0.0, 0.5]).tolist() == [60, 40]


@pytest.mark.parametrize(("counts", "n"), [([10, 0], 5), ([10, 5], 16), ([50, 50, 50], 5), ([], 1)])
def test_what_cannot_be_drawn_is_refused(counts: list[int], n: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        allocate(counts, n)


def test_a_stratum_without_labels_has_the_spread_of_its_verdict() -> None:
    scores = np.array([1.0, 0.0] * 10 + [1.0] * 20)
    sds = stratum_sds(scores, np.repeat([0, 2], 20), np.array([0, 0, 1]))
    # The variance of the verdict: (20 x .25 + 5 x .125) / 25.
    assert sds[1] ** 2 == pytest.approx(0.225)


def test_weights_undo_how_the_earlier_labels_were_drawn() -> None:
    scores = np.array([1.0] * 30 + [0.0] * 10)
    ones = np.zeros(40, dtype=np.int64)
    even = stratum_sds(np.array([1.0, 0.0] * 20), ones, np.array([0]))
    weights = np.where(scores == 1, 1.0, 3.0)
    assert stratum_sds(scores, ones, np.array([0]), weights=weights) == pytest.approx(even)
