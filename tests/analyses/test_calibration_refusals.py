"""What files of labels and verdicts do not allow, and what is none."""

from pathlib import Path
from typing import Any

import pytest

from calibration.errors import InputError
from calibration.tables.labels import read_ceilings
from tests.analyses.calibration_inputs import (
    COUNTS,
    TWO,
    Write,
    calibrated,
    of_two,
    rows,
    spread,
    two_files,
    write,
)

__all__ = ["write"]


def test_labels_of_one_class_allow_its_recall_and_no_rate() -> None:
    """As in AgentRx: rewards for every run, human annotations of the failed ones only."""
    fixtures = Path(__file__).parents[1] / "fixtures"
    human, said = (fixtures / f"failures_only_{name}.csv" for name in ("labels", "verdicts"))
    for design in ("production", "reference"):
        result = calibrated(human, said, design, credit={"success": 1.0, "failure": 0.0})
        calibration = result.calibration
        assert calibration.headline is None
        for name, e in calibration.estimates.items():
            assert (e.net.value is None) == (name != "judge_raw"), name
            if name != "judge_raw":
                codes = {n.code for n in calibration.refusals if n.estimator == name}
                assert "one_class_only" in codes
                assert ("not_a_sample" in codes) == (design == "production")
        failure, success = calibration.judge.per_class
        assert failure.recall.value == 1
        # Wilson: 12 / (12 + 1.96^2)
        assert failure.recall.interval == pytest.approx((12 / (12 + 1.959964**2), 1.0), abs=1e-6)
        assert failure.precision.value is None
        assert success.recall.value is None
        assert calibration.judge.accuracy.value is None
        assert [w.code for w in calibration.warnings] == ["chosen_by_verdict"]
        assert len(result.set_aside) == 2


def test_a_verdict_that_a_random_sample_would_hold_refuses_the_rate(write: Write) -> None:
    labelled = spread([[30, 0], [10, 0]], ["pass", "fail"], ["pass", "fail"])
    refused = calibrated(
        *two_files(write, labelled, {"pass": 60, "fail": 40}), classes=["pass", "fail"], credit=TWO
    )
    assert "not_a_sample" in {n.code for n in refused.calibration.refusals}
    # 3 of 103: .971^40 = .31, as chance would have it.
    fine = calibrated(
        *two_files(write, labelled, {"pass": 60, "fail": 3}), classes=["pass", "fail"], credit=TWO
    )
    assert fine.calibration.headline == "post_stratified"


@pytest.mark.parametrize(
    ("column", "code"), [("workflow", "other_workflows"), ("judge", "other_judge")]
)
def test_a_reference_of_something_else_is_refused(write: Write, column: str, code: str) -> None:
    labelled = spread(COUNTS, ["pass", "fail"], ["pass", "fail"])
    human, _ = two_files(write, labelled, {})
    said = [f"{trace},{verdict},old" for trace, _, verdict in labelled]
    said += [f"u{k},{'pass' if k % 2 else 'fail'},{'new' if k < 60 else 'old'}" for k in range(100)]
    verdicts = write("v.csv", rows(f"trace_id,outcome,{column}", *said))
    result = calibrated(human, verdicts, "reference", classes=["pass", "fail"], credit=TWO)
    assert result.calibration.headline is None
    why = {n.why for n in result.calibration.refusals if n.code == code}
    assert len(why) == 1
    assert "new (60.0 %)" in why.pop()
    sampled = calibrated(human, verdicts, "production", classes=["pass", "fail"], credit=TWO)
    assert sampled.calibration.headline == "post_stratified"


def test_another_period_is_a_warning(write: Write) -> None:
    labelled = spread(COUNTS, ["pass", "fail"], ["pass", "fail"])
    human, _ = two_files(write, labelled, {})
    said = [f"{t},{v},2026-03-0{1 + k % 9}" for k, (t, _, v) in enumerate(labelled)]
    said += [f"u{k},{'pass' if k % 2 else 'fail'},2026-04-01T10:00:00Z" for k in range(99)]
    verdicts = write("v.csv", rows("trace_id,outcome,started_at", *said))
    result = calibrated(human, verdicts, "reference", classes=["pass", "fail"], credit=TWO)
    assert result.calibration.headline == "inversion"
    (warning,) = [w for w in result.calibration.warnings if w.code == "other_period"]
    assert "99 of 99" in warning.why
    assert "2026-03-01 to 2026-03-09" in warning.why


# Bad input


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("trace_id\nt0\n", "must be a header with the columns"),
        ("trace_id,label\nt0,pass\n", "line 2: field 'outcome' is missing"),
        ("trace_id,outcome\n,pass\n", "line 2: field 'trace_id' is missing"),
        ("trace_id,outcome\nt0,\n", "holds no labels"),
        ("trace_id,outcome\nt0,maybe\n", "line 2, field 'outcome': 'maybe' is none of pass, fail"),
        ("trace_id,outcome\nt0,no_verdict\n", "'no_verdict' is none of"),
        ("trace_id,outcome,weight\nt0,pass,x\n", "field 'weight': must be a number, got 'x'"),
        (
            "trace_id,outcome,weight\nt0,pass,1\nt1,pass,\n",
            "line 3, field 'weight': is missing and",
        ),
        ("trace_id,outcome,weight\nt0,pass,1\nt0,pass,2\n", "line 3, field 'weight': is 2.0 and"),
        ("trace_id,outcome,cluster\nt0,pass,a\nt0,pass,b\n", "line 3, field 'cluster': is 'b'"),
        (
            "trace_id,outcome,reviewer\nt0,pass,a\nt0,fail,a\n",
            "a second label of 'a', after line 2",
        ),
        (
            "trace_id,outcome,adjudicated\nt0,pass,yes\nt0,fail,yes\n",
            "line 3, field 'outcome': the trace was adjudicated 'pass' in line 2",
        ),
    ],
)
def test_labels_that_are_none_are_refused(write: Write, text: str, says: str) -> None:
    verdicts = write("v.csv", rows("trace_id,outcome", "t0,pass", "t1,fail"))
    with pytest.raises(InputError) as refused:
        calibrated(write("h.csv", text), verdicts, classes=["pass", "fail"], credit=TWO)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("trace_id,outcome\n", "holds no verdicts"),
        ("trace_id,outcome\nt0,pass\nt0,pass\n", "line 3, field 'trace_id': 't0' has a verdict in"),
        ("trace_id,outcome\nt0,great\n", "line 2, field 'outcome': 'great' is none of pass, fail"),
        ("trace_id,outcome,cost_usd\nt0,pass,-1\n", "line 2, field 'cost_usd': must be a number"),
        ('{"trace_id": "t0"}\n', "line 1: field 'outcome' is missing"),
        ('{"trace_id": "t0", "outcome": "pass", "cost_usd": true}\n', "field 'cost_usd'"),
    ],
)
def test_verdicts_that_are_none_are_refused(write: Write, text: str, says: str) -> None:
    human = write("h.csv", rows("trace_id,outcome", "t0,pass"))
    with pytest.raises(InputError) as refused:
        calibrated(human, write("v.csv", text), classes=["pass", "fail"], credit=TWO)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"classes": ["pass"]}, "two classes or more"),
        ({"classes": ["pass", "pass"]}, "each once"),
        ({"classes": ["pass", ""]}, "each once"),
        ({"credit": {"pass": 1.0}}, "that of 'fail' is missing"),
        ({"credit": TWO | {"x": 1.0}}, "'x' is none of pass, fail"),
    ],
)
def test_classes_and_credit_must_fit(write: Write, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        of_two(write, **options)


def test_ceilings_must_be_amounts(write: Write) -> None:
    for lines, says in (
        (["a,0"], "line 2, field 'ceiling_usd': must be a number > 0"),
        (["a,x"], "field 'ceiling_usd': must be a number"),
        (["a,1", "a,2"], "line 3, field 'workflow': 'a' occurs twice"),
    ):
        with pytest.raises(InputError) as refused:
            read_ceilings(write("c.csv", rows("workflow,ceiling_usd", *lines)))
        assert says in str(refused.value)
