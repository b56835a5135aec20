"""Forms of the reference dataset as a judge sees them."""

from functools import cache

from calibration.judging.baseline import PracticeExample
from calibration.records import Trace, TraceForReview
from reference_dataset.loader import ReferenceSet, load_reference


@cache
def dataset() -> ReferenceSet:
    return load_reference()


def for_review(trace: Trace) -> TraceForReview:
    return TraceForReview(
        trace_id=trace.trace_id,
        workflow=trace.workflow,
        prompt=trace.prompt,
        inputs=trace.inputs,
        sub_goals=trace.sub_goals,
        steps=trace.steps,
        response=trace.response,
        status=trace.status,
        agent="agent A",
        latency_s=trace.latency_s,
    )


@cache
def examples(form: str) -> tuple[PracticeExample, ...]:
    data = dataset()
    return tuple(
        PracticeExample(
            trace=for_review(data.traces[i]),
            task_key=data.traces[i].task_key,
            outcome=data.labels[i].outcome,
        )
        for i in data.forms[form]
    )
