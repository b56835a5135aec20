"""Every gate passes, fails, is skipped and is not estimable; what blocks a run."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from calibration.gates.evaluate import (
    BaselineChange,
    CostMeasured,
    GateResult,
    JudgeMeasured,
    Measurements,
    TrendMeasured,
    WorkflowCost,
    evaluate,
)
from calibration.gates.gate_file import RULES, GateFile, setting
from calibration.judge_calibration.samples import confusion_from_table, judge_quality
from calibration.statistics.estimate import Estimate, not_estimable
from calibration.statistics.intervals import (
    Events,
    chance_to_pass,
    exact_limits,
    tasks_to_show,
)
from calibration.success_rate.pass_at_k import pass_hat_k
from tests.classes import OUTCOMES
from tests.golden_cases import headline_2
from tests.success_rate.test_pass_at_k import entries


def exact() -> Iterator[tuple[int, float, dict[str, float]]]:
    """Yield the tasks, the true rate, and the chance not to fail by each rule, at .8."""
    case = headline_2()["gates"]
    given, expected = case["inputs"], case["expected"]
    for row, n in enumerate(given["n"]):
        for column, true in enumerate(given["true"]):
            yield n, true, {rule: expected[rule][row][column] for rule in RULES}


EXACT = list(exact())
NONE = not_estimable("too little of it: add runs", method="m")


def of(value: float, half: float = 0.05, n: int = 100, **more: Any) -> Estimate:
    se = half / 1.96
    return Estimate(
        value=value, interval=(value - half, value + half), n=n, method="m", se=se, **more
    )


def change(value: float, half: float = 0.02) -> BaselineChange:
    """Return a change whose interval is normal: 1.645 of its 1.96 standard errors to one side."""
    return BaselineChange(estimate=of(value, half), lower=value - half * 1.645 / 1.96, p_below=0.5)


def judged(table: list[list[int]]) -> JudgeMeasured:
    quality = judge_quality(confusion_from_table(table))
    names = OUTCOMES[: len(table)]
    return JudgeMeasured(
        agreement=quality.accuracy,
        kappa=quality.kappa,
        recall={n: q.recall for n, q in zip(names, quality.per_class, strict=True)},
        n=quality.n,
    )


def flow(name: str, mean: Estimate, ceiling: float | None = 1.0, known: int = 100) -> WorkflowCost:
    return WorkflowCost(name=name, ceiling=ceiling, mean_per_unit=mean, n=100, n_known=known)


def costs(*flows: WorkflowCost, over: float = 0.05) -> CostMeasured:
    return CostMeasured(workflows=flows, share_over=of(over, 0.02))


def one(
    name: str,
    measured: Measurements,
    level: Any = "must",
    sided: Measurements | None = None,
    **keys: Any,
) -> GateResult:
    """Decide one gate; its limits are those of `sided`, or of `measured`."""
    flags = {k: keys.pop(k) for k in ("allow_skipped", "rule") if k in keys}
    gate = setting(name, level, keys, **flags)
    (result,) = evaluate(measured, GateFile(gates=(gate,)), sided=sided or measured).gates
    return result


THRESHOLDS = {"pass_at_1[core]": 0.8, "pass_hat_3[core]": 0.5, "pass_at_1[edge]": 0.6, "asr": 0.6}
NUMBERS = {name: {"threshold": value} for name, value in THRESHOLDS.items()}
GOOD_JUDGE, WEAK_JUDGE = [[80, 2], [3, 15]], [[60, 20], [10, 10]]
# What of each gate passes, fails and is not estimable.
NO_CHANGE = BaselineChange(estimate=NONE)
CASES: dict[str, tuple[dict[str, Any], ...]] = {
    name: tuple({"rates": {name: found}} for found in (of(0.9), of(0.3), NONE)) for name in NUMBERS
} | {
    name: tuple(
        {"events": {name: Events(count=k, n=n, n_tasks=n)}}
        for k, n in ((0, 500), (1, 500), (0, 20))
    )
    for name in ("loops", "data_corruption")
} | {
    "human_review": tuple(
        {"review": found} for found in (of(0.95, n=20), of(0.85, n=20), of(1.0, n=19))
    ),
    "judge": tuple({"judge": judged(t)} for t in (GOOD_JUDGE, WEAK_JUDGE, [[50, 0], [0, 0]])),
    "non_inferior": tuple(
        {"changes": {"asr": found}} for found in (change(-0.02), change(-0.04), NO_CHANGE)
    ),
    "regression": tuple(
        {"changes": {"pass_at_1": found}} for found in (change(-0.05), change(-0.051), NO_CHANGE)
    ),
    "trend": tuple(
        {"trend": TrendMeasured(path=found, limit=4.3, why=why)}
        for found, why in (
            (Estimate(value=4.2, interval=None, n=3, method="m"), ""),
            (Estimate(value=4.4, interval=None, n=3, method="m"), "below since"),
            (NONE, ""),
        )
    ),
    "latency_p95": tuple(
        {"rates": {"latency_p95": found}} for found in (of(29.9, 3), of(30, 0), NONE)
    ),
    "cost": tuple(
        {"cost": costs(flow("a", of(0.9)), found)}
        for found in (flow("b", of(1.0)), flow("b", of(1.1)), flow("b", NONE, known=0))
    ),
}  # fmt: skip
MEASURED = {name: [Measurements(**case) for case in cases] for name, cases in CASES.items()}


@pytest.mark.parametrize("name", list(MEASURED))
@pytest.mark.parametrize("case", ["pass", "fail", "not_estimable", "skipped"])
@pytest.mark.parametrize("level", ["must", "should"])
@pytest.mark.parametrize("allow_skipped", [True, False])
def test_every_gate_in_every_case(name: str, case: str, level: Any, allow_skipped: bool) -> None:
    cases = dict(zip(("pass", "fail", "not_estimable"), MEASURED[name], strict=True))
    # A bound that 20 runs cannot show is what makes no event not estimable.
    keys = NUMBERS.get(name, {}) | (
        {"max_upper": 0.01} if name in ("loops", "data_corruption") else {}
    )
    numbers: dict[str, Any] = {"allow_skipped": allow_skipped, **keys}
    result = one(name, cases.get(case, Measurements()), level, **numbers)
    assert result.status == case
    assert result.blocks == (
        level == "must" and (case == "fail" or (case != "pass" and not allow_skipped))
    )
    assert case == "pass" or result.why or name in (*NUMBERS, "latency_p95")
    assert result.rule
    gates = GateFile(gates=(setting(name, level, keys),))
    report = evaluate(cases.get(case, Measurements()), gates)
    assert report.exit_code == (level == "must" and case != "pass")


@pytest.mark.parametrize(("value", "threshold"), [(0.1 + 0.2, 0.3), (0.3 - 1e-15, 0.3)])
def test_a_threshold_is_met_by_what_equals_it_but_rounding(value: float, threshold: float) -> None:
    measured = Measurements(rates={"pass_at_1": of(value)})
    assert one("pass_at_1", measured, threshold=threshold).status == "pass"
    drop = Measurements(changes={"pass_at_1": change(0.75 - 0.80)})
    assert one("regression", drop).status == "pass"


@pytest.mark.parametrize(
    ("value", "rule", "status"),
    [
        (0.78, "value", "fail"), (0.82, "value", "pass"),
        (0.82, "shown_good", "fail"), (0.84, "shown_good", "pass"), (0.78, "shown_good", "fail"),
        (0.76, "not_shown_bad", "fail"), (0.78, "not_shown_bad", "open"),
        (0.80, "not_shown_bad", "pass"),
    ],
)  # fmt: skip
def test_the_rule_says_what_decides(value: float, rule: str, status: str) -> None:
    """The one-sided limits are the value -+ .03; those that are shown, -+ .05, do not decide."""
    measured = Measurements(rates={"pass_at_1": of(value)})
    sided = Measurements(rates={"pass_at_1": of(value, 0.03)})
    found = one("pass_at_1", measured, threshold=0.8, rule=rule, sided=sided)
    assert (found.status, found.blocks) == (status, status == "fail")
    assert found.interval == of(value).interval
    # Of gates from above, read the sides exchanged.
    seconds = of(60 - 50 * value, 2.5), of(60 - 50 * value, 1.5)
    above, limits = (Measurements(rates={"latency_p95": one_of}) for one_of in seconds)
    late = one("latency_p95", above, threshold=20, rule=rule, sided=limits)
    assert late.status == ("open" if value == 0.80 and rule != "value" else status)


def test_an_open_gate_does_not_fail_the_run_and_has_not_passed() -> None:
    few = replace(of(0.70, 0.12), n=50)
    found = one("pass_at_1", Measurements(rates={"pass_at_1": few}), threshold=0.8,
                rule="not_shown_bad")  # fmt: skip
    assert (found.status, found.blocks) == ("open", False)
    assert found.why == "0.70, not shown to miss 0.8 (50 tasks; 94 would show 0.90)"
    plain = one("pass_at_1", Measurements(rates={"pass_at_1": few}), threshold=0.8)
    assert "with 50 tasks an agent of 0.75 passes in 26 % of cases" in plain.why


@pytest.mark.parametrize(("n", "true", "chances"), EXACT)
def test_chances_to_pass_are_exact(n: int, true: float, chances: dict[str, float]) -> None:
    for rule, chance in chances.items():
        assert chance_to_pass(n, true, 0.8, rule=rule) == pytest.approx(chance, rel=1e-9)


def test_the_rule_of_before_passed_a_bad_agent_more_often() -> None:
    """At .70 and 50 tasks .68 passed by the two-sided interval; now .57 do not fail, .08 pass."""
    counts = np.arange(51)
    chance = stats.binom.pmf(counts, 50, 0.7)
    before = [exact_limits(x / 50, 50, 0.95)[1] >= 0.8 for x in counts]
    assert chance @ before == pytest.approx(0.6839, abs=1e-3)
    assert chance_to_pass(50, 0.7, 0.8, rule="not_shown_bad") == pytest.approx(0.5692, abs=1e-4)
    assert chance_to_pass(50, 0.7, 0.8, rule="value") == pytest.approx(0.0789, abs=1e-4)


def test_as_many_tasks_as_show_a_rate() -> None:
    plans = {(0.8, 0.85): 398, (0.8, 0.9): 94, (0.8, 0.95): 37, (0.9, 0.95): 203,
             (0.7, 0.85): 57, (0.95, 0.975): 410}  # fmt: skip
    assert {plan: tasks_to_show(*plan) for plan in plans} == plans
    assert tasks_to_show(0.8, 0.8) is tasks_to_show(0.5, 0.501) is None


def test_a_value_from_too_few_tasks_is_shown_and_does_not_pass() -> None:
    status = "not_estimable: no interval from 3 tasks"
    few = Estimate(value=1.0, interval=None, n=3, method="m", status=status)
    found = one("pass_at_1", Measurements(rates={"pass_at_1": few}), threshold=0.8)
    assert (found.status, found.value, found.blocks) == ("not_estimable", 1.0, True)
    # Other rules need limits.
    bare = Measurements(rates={"latency_p95": replace(few, status="provisional: few runs")})
    assert one("latency_p95", bare).status == "pass"
    for rule in ("shown_good", "not_shown_bad"):
        assert one("latency_p95", bare, rule=rule).status == "not_estimable"


@pytest.mark.parametrize(("given", "expected"), entries("gate: 0 occurrences in 500 runs"))
def test_no_event_has_an_exact_limit(given: dict[str, Any], expected: dict[str, float]) -> None:
    events = Events(count=0, n=given["n"], n_tasks=given["n"])
    found = one("loops", Measurements(events={"loops": events}))
    assert found.interval == pytest.approx((0, expected["upper95_exact"]), abs=1e-9)
    assert found.why == "0 of 500 runs; exact upper limit 0.6 %"
    repeated = Measurements(events={"loops": Events(count=0, n=500, n_tasks=50)})
    assert "5.8 % when the runs of a task count once" in one("loops", repeated).why


def test_events_have_exact_limits_on_both_sides() -> None:
    """Clopper-Pearson: 10 of 100 is [.0490, .1762], all of 10 is [.6915, 1]."""
    assert Events(count=10, n=100, n_tasks=100).interval(0.95) == pytest.approx(
        (0.0490047, 0.1762226), abs=1e-6
    )
    assert Events(count=10, n=10, n_tasks=10).interval(0.95) == pytest.approx((0.6915029, 1.0))
    some = Measurements(events={"loops": Events(count=3, n=500, n_tasks=500)})
    assert one("loops", some, threshold=0.005).status == "fail"
    assert one("loops", some, threshold=0.005, rule="not_shown_bad").status == "open"
    assert one("loops", some, threshold=0.005, rule="shown_good").status == "fail"
    # None of 598 is a one-sided upper limit of .005 to four digits.
    none = Measurements(events={"loops": Events(count=0, n=598, n_tasks=598)})
    assert one("loops", none, threshold=0.005, rule="shown_good").status == "pass"


@pytest.mark.parametrize(("_", "expected"), entries("judge gate"))
def test_a_judge_that_always_passes_fails(_: Any, expected: dict[str, float]) -> None:
    judge = judged([[82, 0], [18, 0]])
    assert judge.agreement.value == pytest.approx(expected["always_pass_judge_agreement"])
    assert judge.kappa.value == pytest.approx(expected["always_pass_judge_kappa"])
    found = one("judge", Measurements(judge=judge))
    assert (found.status, found.n) == ("fail", 100)
    by_name = {part.name: part.status for part in found.parts}
    assert by_name == {
        "agreement": "pass", "kappa": "fail", "lower limit of kappa": "not_estimable",
        "recall of complete": "pass", "recall of partial_plus": "fail",
    }  # fmt: skip
    assert found.why == "failed: kappa, recall of partial_plus"


def test_a_judge_whose_kappa_is_not_known_closely_enough_fails() -> None:
    found = one("judge", Measurements(judge=judged([[14, 1], [2, 5]])))
    assert found.status == "fail"
    assert [p.name for p in found.parts if p.status == "fail"] == ["lower limit of kappa"]
    assert "too few labels to check partial_plus (7)" in found.why


@pytest.mark.parametrize(("given", "expected"), entries("gate: 20 transcripts"))
def test_eighteen_of_twenty_pass_but_are_few(
    given: dict[str, int], expected: dict[str, Any]
) -> None:
    low, high = expected["wilson95"]
    review = Estimate(value=given["k"] / given["n"], interval=(low, high), n=20, method="wilson")
    found = one("human_review", Measurements(review=review))
    assert (found.status, found.why) == ("pass", "the interval reaches beyond the threshold")


@pytest.mark.parametrize(("given", "expected"), entries("gates pass@1>=0.80 and pass^3>=0.50"))
def test_pass_hat_is_the_exact_estimator(given: dict[str, int], expected: dict[str, float]) -> None:
    """A homogeneous 80 % agent fails pass^3 >= .5 by the exact ratio, not by the plug-in."""
    value = pass_hat_k(given["n"], given["c"], 3)
    assert value == pytest.approx(expected["hyper"])
    measured = Measurements(rates={"pass_hat_3[core]": of(value or 0)})
    assert one("pass_hat_3[core]", measured, threshold=0.5).status == "fail"


def test_non_inferiority_is_shown_by_the_lower_limit() -> None:
    wide = Measurements(changes={"asr": change(0.0, 0.08)})
    assert one("non_inferior", wide).status == "fail"
    assert one("non_inferior", wide, rule="shown_good").status == "fail"
    assert one("non_inferior", wide, rule="not_shown_bad").status == "open"
    worse = Measurements(changes={"asr": change(-0.2, 0.08)})
    assert one("non_inferior", worse, rule="not_shown_bad").status == "fail"
    assert one("non_inferior", wide, margin_pp=10).status == "pass"


def test_a_category_fails_only_when_it_is_shown_to_have_dropped() -> None:
    """p = .04, .02, .3 against .05: Holm asks .0167 of the smallest, so none fails."""

    def with_p(p: float) -> BaselineChange:
        return BaselineChange(estimate=of(-0.06), lower=-0.1, p_below=p)

    def run(*p_values: float) -> GateResult:
        return one(
            "regression",
            Measurements(
                changes={"pass_at_1": change(-0.01)},
                by_category={f"c{k}": with_p(p) for k, p in enumerate(p_values)},
            ),
        )

    assert run(0.04, 0.02, 0.3).status == "pass"
    found = run(0.04, 0.001, 0.02)
    assert found.status == "fail"
    assert [part.name for part in found.parts if part.status == "fail"] == ["c0", "c1", "c2"]
    assert [p.name for p in run(0.04, 0.001, 0.3).parts if p.status == "fail"] == ["c1"]
    assert "category c1 (Holm)" in run(0.04, 0.001, 0.3).why


def test_every_workflow_must_keep_its_ceiling() -> None:
    def status(*flows: WorkflowCost, over: float = 0.05) -> tuple[str, str]:
        found = one("cost", Measurements(cost=costs(*flows, over=over)))
        return found.status, found.why

    cheap = flow("a", of(0.5))
    assert status(cheap, over=0.11) == ("fail", "failed: runs above their ceiling")
    assert status(cheap, flow("b", of(0.5), None)) == ("not_estimable", "not estimable: b")
    assert status(cheap, flow("b", of(0.5), known=89)) == ("not_estimable", "not estimable: b")
    assert status(cheap, flow("b", of(1.5), known=10)) == ("fail", "failed: b")


def test_a_lasting_drop_fails_the_gate_whatever_the_rule() -> None:
    path = Estimate(value=4.4, interval=None, n=3, method="CUSUM")
    measured = Measurements(trend=TrendMeasured(path=path, limit=4.3, why="below since 2026-W31"))
    for rule in RULES:
        result = one("trend", measured, rule=rule)
        assert (result.status, result.threshold, result.n) == ("fail", 4.3, 3)
        assert result.why == "below since 2026-W31"
