"""The demo over 20 seeds: the corrected rate covers the truth, the uncorrected judge does not."""

from dataclasses import replace
from pathlib import Path

import pytest

from calibration.analyses.demo import build_demo, run_demo
from calibration.analyses.success_rate.from_store import report_on_store
from calibration.analyses.success_rate.report import ReportOptions
from calibration.judging.baseline import Baseline, fit_baseline
from calibration.statistics.estimate import Estimate
from calibration.store import Store
from calibration.taxonomy import default_taxonomy
from tests.judging.forms import examples
from tests.simulation.judged import Judge, Tally

pytestmark = pytest.mark.slow

SEEDS = range(1, 21)


@pytest.mark.parametrize("lenient", [False, True])
def test_the_demo_over_twenty_seeds(judge: Judge, tmp_path: Path, lenient: bool) -> None:
    corrected, alone, raw = Tally(0.0), Tally(0.0), Tally(0.0)
    fewest = 17 if lenient else 18
    for seed in SEEDS:
        with Store.open(tmp_path / f"{seed}.duckdb", create=True) as store:
            demo = run_demo(store, seed=seed, lenient=lenient)
        judged = demo.report.judged
        assert judged is not None
        assert judged.one_phase is not None
        count(corrected, judged.corrected.interval, demo.truth)
        count(alone, judged.one_phase.interval, demo.truth)
        count(raw, as_if_right(judged.judge_raw), demo.truth)
    setting = f"the demo{', one reviewer of three lenient' if lenient else ''}, 20 seeds"
    corrected.give(judge, "two phases", setting, seed=1, band=(fewest / 20, 1.0))
    alone.give(judge, "control: one phase", setting, seed=1, band=(0.0, 1.0))
    raw.give(judge, "control: uncorrected judge, binomial limits", setting, seed=1, band=(0.0, 0.1))
    assert corrected.covered >= fewest
    assert raw.covered <= 2


@pytest.fixture(scope="module")
def baseline() -> Baseline:
    return fit_baseline(examples("practice"), default_taxonomy())


@pytest.mark.parametrize("lenient", [False, True])
def test_the_baseline_judges_the_demo_over_twenty_seeds(
    judge: Judge, baseline: Baseline, tmp_path: Path, lenient: bool
) -> None:
    """Corrected by the same labels, a judge that is hardly better than none covers the truth."""
    corrected, raw = Tally(0.0), Tally(0.0)
    for seed in SEEDS:
        with Store.open(tmp_path / f"{seed}.duckdb", create=True) as store:
            truth = build_demo(store, seed=seed, lenient=lenient)
            traces = store.for_review(store.production_traces()["trace_id"].tolist())
            verdicts = baseline.predict(traces)
            store.add_verdicts([replace(verdict, simulated=True) for verdict in verdicts])
            judged = report_on_store(store, ReportOptions(judge_id=baseline.judge_id)).judged
        assert judged is not None
        count(corrected, judged.corrected.interval, truth)
        count(raw, as_if_right(judged.judge_raw), truth)
    setting = f"the demo, baseline judge{', one reviewer lenient' if lenient else ''}, 20 seeds"
    corrected.give(judge, "two phases", setting, seed=1, band=(17 / 20, 1.0))
    raw.give(judge, "control: uncorrected judge, binomial limits", setting, seed=1, band=(0.0, 0.1))
    assert corrected.covered >= 17
    assert raw.covered <= 2


def count(tally: Tally, interval: tuple[float, float] | None, truth: float) -> None:
    """Count whether an interval holds the truth."""
    assert interval is not None
    low, high = interval
    tally.count(low <= truth <= high, (high - low) / 2)


def as_if_right(found: Estimate | None) -> tuple[float, float]:
    """Return the limits that the rate would have if every verdict were right."""
    assert found is not None
    assert found.value is not None
    reach = 1.96 * (found.value * (1 - found.value) / found.n) ** 0.5
    return found.value - reach, found.value + reach
