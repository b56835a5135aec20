import numpy as np
import pytest

from calibration.judge_calibration.strata import Strata, class_probabilities

TWO = Strata(groups=(0, 1), merged=())


def test_a_cell_with_ten_labels_speaks_for_itself_and_a_smaller_one_for_its_verdict() -> None:
    # Verdict 0: segment 0 has 10 labels, 8 of class 0; segment 1 has 5, none of class 0.
    human = np.eye(2)[[0] * 8 + [1] * 2 + [1] * 5]
    verdicts, segments = np.zeros(15, dtype=np.int64), np.repeat([0, 1], [10, 5])
    found = class_probabilities(human, verdicts, segments, n_segments=2, strata=TWO)
    assert found.given[0, 0] == pytest.approx([8.2 / 10.4, 2.2 / 10.4])
    assert found.given[0, 1] == pytest.approx([8.2 / 15.4, 7.2 / 15.4])
    assert found.by_segment[0].tolist() == [True, False]
    assert found.labels[0].tolist() == [10, 15]
    # A verdict without labels: nothing but the prior.
    assert found.given[1, 0] == pytest.approx([0.5, 0.5])


def test_a_merged_verdict_takes_the_labels_of_its_stratum() -> None:
    human, verdicts = np.eye(2)[[0] * 10 + [1]], np.array([0] * 10 + [1])
    merged = Strata(groups=(0, 0, -1), merged=((1, 0),))
    found = class_probabilities(
        human, verdicts, np.zeros(11, dtype=np.int64), n_segments=1, strata=merged
    )
    assert found.given[1, 0] == pytest.approx([10.2 / 11.4, 1.2 / 11.4])
    assert np.isnan(found.given[2, 0]).all()


def test_weights_count_as_their_effective_number() -> None:
    human, weights = np.eye(2)[[0] * 10 + [1] * 10], np.repeat([1.0, 3.0], 10)
    zeros = np.zeros(20, dtype=np.int64)
    found = class_probabilities(
        human, zeros, zeros, n_segments=1, strata=Strata(groups=(0,), merged=()), weights=weights
    )
    # 40^2 / (10 + 90) = 16 labels' worth, a quarter of them of class 0.
    assert found.given[0, 0] == pytest.approx([4.2 / 16.4, 12.2 / 16.4])


def test_a_prior_that_is_none_is_refused() -> None:
    zeros = np.zeros(1, dtype=np.int64)
    with pytest.raises(ValueError, match="prior must be positive"):
        class_probabilities(np.eye(2)[[0]], zeros, zeros, n_segments=1, strata=TWO, prior=0)
