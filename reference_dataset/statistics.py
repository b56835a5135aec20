"""What a dataset is made of, counted."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import quantiles

from calibration.taxonomy import Taxonomy
from reference_dataset.loader import ReferenceSet
from reference_dataset.records import FAMILIES
from reference_dataset.repeat_pass import RepeatPass
from reference_dataset.words import words


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetStats:
    """Counts of a dataset; `classes` is families x classes in the order of the taxonomy.

    `steps` and `words` are the 10th, 50th and 90th percentile over the traces.
    """

    n_traces: int
    classes: dict[str, dict[str, int]]
    difficulty: dict[str, int]
    forms: dict[str, int]
    steps: tuple[float, float, float]
    words: tuple[float, float, float]
    long_traces: int
    over_ceiling: int
    overridden: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetReport:
    """What a dataset is made of, and how far its second pass agreed; None without one.

    `titles` : what its classes are called.
    """

    counts: DatasetStats
    second_pass: RepeatPass | None
    titles: Mapping[str, str]


def dataset_stats(dataset: ReferenceSet, taxonomy: Taxonomy) -> DatasetStats:
    """Count a dataset of at least one trace; it need not keep the rules."""
    found = {trace.workflow for trace in dataset.traces.values()}
    classes = {
        family: dict.fromkeys(taxonomy.names, 0)
        for family in [*FAMILIES, *sorted(found - FAMILIES.keys())]
        if family in found
    }
    for trace_id, label in dataset.labels.items():
        if trace_id in dataset.traces and label.outcome in taxonomy.names:
            classes[dataset.traces[trace_id].workflow][label.outcome] += 1
    traces = list(dataset.traces.values())
    steps = [len(trace.steps) for trace in traces]
    return DatasetStats(
        n_traces=len(traces),
        classes=classes,
        difficulty=dict(Counter(label.difficulty for label in dataset.labels.values())),
        forms={form: len(ids) for form, ids in dataset.forms.items() if ids},
        steps=_tenths(steps),
        words=_tenths([_words(trace_id, dataset) for trace_id in dataset.traces]),
        long_traces=sum(n >= 12 for n in steps),
        over_ceiling=sum(
            (trace.cost_usd or 0.0) > FAMILIES[trace.workflow].ceiling_usd * trace.units + 1e-9
            for trace in traces
            if trace.workflow in FAMILIES
        ),
        overridden=sum(label.overridden is not None for label in dataset.labels.values()),
    )


def _words(trace_id: str, dataset: ReferenceSet) -> int:
    trace = dataset.traces[trace_id]
    texts = [trace.prompt, trace.response, *(i.text for i in trace.inputs)]
    texts += [goal.text for goal in trace.sub_goals]
    for step in trace.steps:
        texts += [step.content, step.arguments, step.result]
    return sum(len(words(text)) for text in texts)


def _tenths(values: list[int]) -> tuple[float, float, float]:
    if len(values) < 2:
        return (values[0],) * 3
    tenths = quantiles(values, n=10, method="inclusive")
    return tenths[0], tenths[4], tenths[8]
