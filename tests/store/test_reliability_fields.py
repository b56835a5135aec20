"""Fields that reliability is computed from, in a store: kept, hidden, and completed once."""

from dataclasses import replace

from calibration.records import ExpectedCall, Step, Violation
from calibration.store import Store
from tests.store.builders import make_trace, query

CALLS = (ExpectedCall(name="find", arguments={"q": 1}, step="s2"), ExpectedCall(name="close"))
VIOLATIONS = (Violation(constraint="no PII exposure", severity="high", step="s1"),)
RECORDED = {
    "perturbation": "fault",
    "confidence": 0.8,
    "context_tokens": 1200,
    "expected_calls": [{"name": "find", "arguments": {"q": 1}, "step": "s2"}, {"name": "close"}],
    "violations": [{"constraint": "no PII exposure", "severity": "high", "step": "s1"}],
}
TRACE = make_trace(
    1, perturbation="fault", confidence=0.8, context_tokens=1200, expected_calls=CALLS,
    violations=VIOLATIONS, steps=(Step(step_id="s1", role="assistant", agent="planner"),),
)  # fmt: skip


def stored_before(store: Store) -> None:
    """Store the trace as the release before did: the fields in the metadata, no columns."""
    old = replace(make_trace(1), metadata=RECORDED, steps=(Step(step_id="s1", role="assistant"),))
    store.ingest([old])
    query(store, "UPDATE trace SET specialists = NULL")


def test_the_fields_are_kept(store: Store) -> None:
    store.ingest([TRACE, make_trace(2)])
    facts = store.trace_facts(TRACE.trace_id)
    assert facts is not None
    assert (facts.perturbation, facts.confidence, facts.context_tokens) == ("fault", 0.8, 1200)
    assert (facts.expected_calls, facts.violations) == (CALLS, VIOLATIONS)
    plain = store.trace_facts(make_trace(2).trace_id)
    assert plain is not None
    assert (plain.perturbation, plain.confidence, plain.expected_calls) == (None, None, None)
    (shown,) = store.for_review([TRACE.trace_id])
    assert shown.steps[0].agent == "planner"


def test_perturbed_arms_are_no_production(store: Store) -> None:
    control = make_trace(3, perturbation="none")
    store.ingest([TRACE, make_trace(2), control])
    assert len(store.perturbed_traces()) == 1
    kept = store.production_traces()
    assert list(kept["trace_id"]) == [make_trace(2).trace_id, control.trace_id]
    assert len(store.trace_frame()) == 3


def test_a_trace_of_before_is_completed_once(store: Store) -> None:
    stored_before(store)
    assert len(store.perturbed_traces()) == 0
    facts = store.trace_facts(TRACE.trace_id)
    assert facts is not None
    assert facts.metadata["confidence"] == 0.8
    done = store.ingest([TRACE])
    assert (done.completed, done.already_there, done.changed) == ((TRACE.trace_id,), (), ())
    facts = store.trace_facts(TRACE.trace_id)
    assert facts is not None
    assert (facts.confidence, facts.expected_calls, facts.metadata) == (0.8, CALLS, {})
    assert len(store.perturbed_traces()) == 1
    again = store.ingest([TRACE])
    assert (again.completed, again.already_there) == ((), (TRACE.trace_id,))


def test_a_trace_without_the_fields_is_already_there(store: Store) -> None:
    stored_before(store)
    store.ingest([make_trace(2)])
    query(store, "UPDATE trace SET specialists = NULL")
    done = store.ingest([make_trace(2)])
    assert (done.completed, done.already_there) == ((), (make_trace(2).trace_id,))


def test_other_expected_calls_are_another_content(store: Store) -> None:
    store.ingest([TRACE])
    done = store.ingest([replace(TRACE, expected_calls=CALLS[:1])])
    assert done.changed == (TRACE.trace_id,)
