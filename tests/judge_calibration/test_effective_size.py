import numpy as np
import pytest

from calibration.judge_calibration.strata import Strata, effective_gain
from calibration.statistics.means import human_only
from tests.agreement.tables import jackknife_se
from tests.judge_calibration.test_estimators import stratified

TWO = Strata(groups=(0, 1), merged=())
SCORES = np.array([1.0] * 36 + [0.0] * 4 + [1.0] * 6 + [0.0] * 34)
VERDICTS = np.repeat([0, 1], 40)


def test_the_gain_is_the_ratio_of_the_two_variances() -> None:
    gain = effective_gain(SCORES, VERDICTS, strata=TWO)
    found = stratified(SCORES, VERDICTS, [4_000_000, 4_000_000])
    human = human_only(SCORES)
    assert human.se is not None
    assert found.estimate.se is not None
    # The stratified error pools the variance for a floor, so the two agree to a few percent.
    ratio = (human.se / found.estimate.se) ** 2
    assert gain.multiplier.value == pytest.approx(ratio, rel=0.05)
    assert gain.r_squared == pytest.approx(found.r_squared, abs=0.02)


def test_the_jackknife_is_what_leaving_each_trace_out_gives() -> None:
    rng = np.random.default_rng(3)
    weights, tasks = rng.uniform(1, 4, 80), np.repeat(np.arange(40), 2)
    for clusters, groups in ((None, np.arange(80)), (tasks, tasks)):
        found = effective_gain(SCORES, VERDICTS, strata=TWO, weights=weights, clusters=clusters)
        values = []
        for unit in np.unique(groups):
            keep = groups != unit
            w, x, k = weights[keep], SCORES[keep], VERDICTS[keep]
            centre = [np.average(x[k == g], weights=w[k == g]) for g in (0, 1)]
            within = w @ (x - np.array(centre)[k]) ** 2
            values.append(np.log(w @ (x - np.average(x, weights=w)) ** 2 / within))
        assert found.multiplier.value is not None
        assert found.multiplier.se == pytest.approx(found.multiplier.value * jackknife_se(values))


def test_a_judge_that_tells_nothing_is_worth_nothing() -> None:
    rng = np.random.default_rng(4)
    values = [
        effective_gain(
            rng.integers(0, 2, 60).astype(float),
            rng.integers(0, 5, 60),
            strata=Strata(groups=(0, 1, 2, 3, 4), merged=()),
        ).multiplier.value
        or 0
        for _ in range(400)
    ]
    assert np.mean(values) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(
    ("scores", "why"),
    [
        (SCORES[:20], "20 labelled traces are too few"),
        (np.ones(80), "no variation seen"),
        (np.repeat([1.0, 0.0], 40), "verdicts leave no variation"),
    ],
)
def test_what_says_nothing_is_refused(scores: np.ndarray, why: str) -> None:
    gain = effective_gain(scores, VERDICTS[: scores.size], strata=TWO)
    assert gain.r_squared is None
    assert why in gain.multiplier.status
    gain = effective_gain(SCORES, VERDICTS, strata=Strata(groups=(0, 0), merged=()))
    assert "one group of verdicts" in gain.multiplier.status
