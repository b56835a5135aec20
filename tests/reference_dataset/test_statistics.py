"""A tiny set, counted by hand."""

import pytest

from calibration.records import Attachment, Step, SubGoal, Trace
from calibration.taxonomy import default_taxonomy
from reference_dataset.loader import ReferenceSet
from reference_dataset.records import CanonicalLabel
from reference_dataset.statistics import dataset_stats
from tests.classes import TAXONOMY


def tiny_trace(
    number: int, family: str, n_steps: int, n_words: int, cost: float, units: float = 1.0
) -> Trace:
    """Return a trace of so many words: one prompt, input, goal and response, the rest in s1."""
    steps = [Step(step_id=f"s{k}", role="tool", tool="look") for k in range(2, n_steps + 1)]
    return Trace(
        trace_id=f"{family}-{number:03d}", source="reference", source_id=str(number),
        workflow=family, task_id=str(number), task_key=str(number), trial=0, prompt="One",
        inputs=(Attachment(name="not counted", text="two"),),
        sub_goals=(SubGoal(id="1", text="three"),),
        steps=(Step(step_id="s1", role="user", content="w " * (n_words - 4)), *steps),
        response="four", cost_usd=cost, units=units,
    )  # fmt: skip


def tiny_label(trace: Trace, outcome: str, difficulty: str, why: str | None) -> CanonicalLabel:
    return CanonicalLabel(
        trace_id=trace.trace_id, answers=default_taxonomy().answers_for(outcome), outcome=outcome,
        rationale="So.", evidence=(), difficulty=difficulty, nearest_wrong="complete",
        why_not="No.", overridden=why,
    )  # fmt: skip


def tiny() -> ReferenceSet:
    traces = [
        tiny_trace(1, "research", 4, 100, 2.00),
        tiny_trace(2, "research", 11, 200, 2.01),
        tiny_trace(1, "support_triage", 12, 300, 0.20, units=2.0),
        tiny_trace(2, "support_triage", 13, 400, 0.21, units=2.0),
        tiny_trace(3, "support_triage", 25, 500, 0.05),
    ]
    labels = [
        tiny_label(traces[0], "complete", "clear", None),
        tiny_label(traces[1], "abandoned", "clear", "ours"),
        tiny_label(traces[2], "complete", "boundary", None),
        tiny_label(traces[3], "complete", "judgement", None),
    ]
    return ReferenceSet(
        traces={trace.trace_id: trace for trace in traces},
        labels={label.trace_id: label for label in labels},
        forms={"practice": ("research-001",), "exam_a": ("research-002",), "exam_b": ()},
    )


def test_counts_by_hand() -> None:
    found = dataset_stats(tiny(), TAXONOMY)
    nothing = {"partial_plus": 0, "partial_minus": 0, "hallucinated": 0}
    assert found.n_traces == 5
    assert found.classes == {
        "research": {"complete": 1, "abandoned": 1} | nothing,
        "support_triage": {"complete": 2, "abandoned": 0} | nothing,
    }
    assert found.difficulty == {"clear": 2, "boundary": 1, "judgement": 1}
    assert found.forms == {"practice": 1, "exam_a": 1}
    assert found.long_traces == 3
    assert found.over_ceiling == 2
    assert found.overridden == 1
    # Five values: the 10th percentile lies 0.4 of the way from the first to the second.
    assert found.words == pytest.approx((140, 300, 460))
    assert found.steps == pytest.approx((4 + 0.4 * 7, 12, 13 + 0.6 * 12))


def test_one_trace_of_a_family_of_its_own_is_counted() -> None:
    trace = tiny_trace(1, "gardening", 5, 50, 9.0)
    alone = ReferenceSet(
        traces={trace.trace_id: trace},
        labels={trace.trace_id: tiny_label(trace, "complete", "clear", None)},
        forms={"practice": (), "exam_a": (), "exam_b": ()},
    )
    found = dataset_stats(alone, TAXONOMY)
    assert found.classes["gardening"]["complete"] == 1
    assert (found.steps, found.words, found.over_ceiling) == ((5, 5, 5), (50, 50, 50), 0)
