"""Every number of the methodology that can be recomputed, with our reading of its text."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.success_rate.comparison import compare_runs
from calibration.success_rate.runs import cost_penalties
from calibration.taxonomy import default_taxonomy
from reference_dataset.loader import load_reference
from tests.classes import CREDIT, OUTCOMES, count_runs
from tests.success_rate.rates import rate

ITEMS = json.loads((Path(__file__).parents[1] / "golden" / "asr.json").read_text(encoding="utf-8"))
GOLDEN = {item["item"]: item for item in ITEMS}
PENALTIES = [name for name in GOLDEN if name.startswith("cost_penalty")]
FIXTURES = [name for name in GOLDEN if name.startswith("ASR fixture")]

# 1,000 runs with the mix of the default report.
REPORT = np.repeat(np.arange(5), [580, 120, 80, 40, 180])
Z = 1.959963985
TESTED = {*PENALTIES, *FIXTURES}


def golden(start: str) -> dict[str, Any]:
    name = next(name for name in GOLDEN if name.startswith(start))
    TESTED.add(name)
    return dict(GOLDEN[name])


@pytest.mark.parametrize("name", PENALTIES)
def test_penalty(name: str) -> None:
    given = GOLDEN[name]["inputs"]
    found = cost_penalties([given["cost"]], given["ceiling"])
    assert found.tolist() == [GOLDEN[name]["recomputed"]]


@pytest.mark.parametrize("name", FIXTURES)
def test_fixture_with_the_floor_per_task_and_literally(name: str) -> None:
    rows = GOLDEN[name]["inputs"]["rows_outcome_cost_ceiling"]
    outcomes, costs, ceilings = zip(*rows, strict=True)
    result = rate([OUTCOMES.index(o) for o in outcomes], costs=costs, ceilings=ceilings)
    assert result.asr.value == pytest.approx(GOLDEN[name]["recomputed"]["task_floor"])
    assert result.asr_literal == pytest.approx(GOLDEN[name]["recomputed"]["literal"])


def test_classes_and_gross_rate_of_the_default_report() -> None:
    shares = golden("class distribution sums to 100%")
    result = rate(REPORT)
    assert [s.value for s in result.class_shares] == list(shares["inputs"].values())
    assert sum(s.value or 0 for s in result.class_shares) == pytest.approx(shares["recomputed"])
    gross = golden("default report: gross credit before penalty")["recomputed"]
    assert result.asr_gross.value == pytest.approx(gross)


def test_a_headline_of_62_needs_a_mean_penalty_of_a_tenth_among_the_runs_above() -> None:
    """Eighty complete runs at 1.1 times their ceiling: .628 - .08 x .1 = .62."""
    item = golden("default report: implied mean penalty")
    result = rate(REPORT, costs=np.where(np.arange(1000) < 80, 1.1, 1.0), ceilings=1.0)
    assert result.asr.value == pytest.approx(item["inputs"]["asr"])
    assert result.share_over_ceiling.value == pytest.approx(item["inputs"]["share_over"])
    assert result.mean_effective_penalty / 0.08 == pytest.approx(item["recomputed"]["point"])
    ends = [(item["inputs"]["gross"] - asr) / 0.08 for asr in (0.625, 0.615)]
    assert ends == pytest.approx(item["recomputed"]["range"])


def test_half_width_at_a_thousand_runs_is_not_four_points() -> None:
    """Ours divides by n - 1: the golden standard error times sqrt(1000 / 999)."""
    item = golden("±0.04 (95% CI)")["recomputed"]
    exact = (rate(REPORT).asr.se or 0) * np.sqrt(999 / 1000)
    assert exact == pytest.approx(item["se"])
    assert exact * np.sqrt(1000) == pytest.approx(item["sd"])
    assert exact * Z == pytest.approx(item["half_width_95"])
    widest = rate([0] * 500 + [2] * 500).asr.se or 0
    assert widest * np.sqrt(999 / 1000) * Z == pytest.approx(item["max_half_width_any_[0,1]_score"])
    needed = 1000 * (exact * Z / 0.04) ** 2
    assert needed == pytest.approx(item["n_for_0.04"])
    assert 1000 / needed == pytest.approx(item["design_effect_needed"])
    assert 4 * needed == pytest.approx(item["n_if_0.04_is_full_width"])


def test_what_a_difference_of_four_points_needs() -> None:
    item, weeks = golden("4-point delta")["recomputed"], golden("WoW unreliable")["recomputed"]
    found = compare_runs(count_runs(REPORT), count_runs(REPORT), rng=np.random.default_rng(1))
    se, alone = found.asr.estimate.se or 0, found.before.asr.se or 0
    n, half_width = 999 / 1000, Z * alone * np.sqrt(999 / 1000)
    assert Z * se * np.sqrt(n) == pytest.approx(item["delta_significant_at_5pct_n1000_each"])
    assert Z * se * np.sqrt(n) == pytest.approx(weeks["diff_half_width_n1000"])
    assert 2 * half_width == pytest.approx(item["delta_needed_at_recomputed_hw"])
    assert 1000 * (half_width / item["half_width_needed_for_4pt"]) ** 2 == pytest.approx(
        item["n_needed_for_4pt"]
    )
    printed = 0.04
    assert 2 * printed == item["delta_needed_at_0.04"]
    assert np.sqrt(2) * printed == pytest.approx(weeks["diff_half_width_if_0.04"])


def test_the_bare_two_point_rule_fires_without_a_change() -> None:
    """By simulation; `tests/simulation/test_two_runs.py` shows that our flag does not.

    With 200 runs many shares move by two points exactly, which the printed figures count in part.
    """
    item = golden("flag any class above 2% WoW")
    rng, mix = np.random.default_rng(20300), list(item["inputs"]["dist"].values())
    for n, share in item["recomputed"].items():
        one, other = (rng.multinomial(int(n), mix, size=40_000) / int(n) for _ in range(2))
        moved = np.abs(one - other)
        more, at_least = ((moved > 0.02 + eps).any(axis=1).mean() for eps in (1e-9, -1e-9))
        assert more - 0.01 < share < at_least + 0.01, n


def test_families_of_the_reference_dataset() -> None:
    item = golden("reference dataset size")
    families = Counter(trace.workflow for trace in load_reference().traces.values())
    assert sorted(families.values()) == sorted(item["inputs"].values())
    assert families.total() == item["recomputed"]


def test_median_cost_is_within_the_ceiling_of_every_family() -> None:
    item = golden("median cost / ceiling per family")
    ceilings = {w.name: w.ceiling_usd for w in default_taxonomy().workflows}
    names = {"triage": "support_triage", "extraction": "data_extraction"}
    names |= {"drafting": "content_drafting"}
    for family, (ceiling, median) in item["inputs"].items():
        ours = ceilings[names.get(family, family)]
        assert ours == ceiling
        assert median / ours == pytest.approx(item["recomputed"][family])


def test_asr_need_not_exceed_the_pass_rate() -> None:
    item = golden("ASR > pass-rate by design")["recomputed"]
    a = rate([0] * 58 + [2] * 42)
    assert (a.pass_rate.value, a.asr.value) == (item["a_passrate"], item["a_asr"])
    b = rate([0] * 58 + [2] * 42, costs=[2.0] * 8 + [1.0] * 92, ceilings=1.0)
    assert (b.pass_rate.value, b.asr.value) == (item["b_passrate"], item["b_asr"])
    c = rate(REPORT, costs=np.where(np.arange(1000) < 80, 1.1, 1.0), ceilings=1.0)
    assert c.pass_rate.value == item["c_passrate"]
    assert c.asr.value == pytest.approx(item["c_asr"])
    worst = rate(REPORT, costs=np.where(np.arange(1000) < 80, 2.0, 1.0), ceilings=1.0)
    assert worst.asr.value == pytest.approx(item["c_min_asr_with_8pct_over"])


def test_credit_of_the_classes_that_grades_propose() -> None:
    item = golden("judge 1-5 mapping")["recomputed"]
    proposed = {"5": "complete", "4": "partial_plus"}
    for grade, credit in item.items():
        outcome = proposed.get(grade, "partial_minus")
        assert CREDIT[OUTCOMES.index(outcome)] == credit


def test_nothing_is_left_out() -> None:
    """Runs last in this file: every item was asked for by a test above."""
    assert set(GOLDEN) == TESTED
