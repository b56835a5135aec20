"""What a person sees before traces are written: counts, fields found, the first trace."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from calibration.records import Trace
from calibration.trace_formats.base import Item, Parsed
from calibration.trace_formats.fields import note

PROMPT_CHARS = 300

OPTIONAL_FIELDS = (
    "response",
    "steps",
    "inputs",
    "sub_goals",
    "status",
    "model",
    "agent_version",
    "started_at",
    "latency_s",
    "cost_usd",
    "total_tokens",
    "success_criteria",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldShare:
    """How many of the traces have a field."""

    field: str
    found: int
    of: int

    @property
    def share(self) -> float:
        """Fraction of the traces that have the field."""
        return self.found / self.of


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTrace:
    """The first trace in a few lines; its prompt is cut and holds no control characters."""

    trace_id: str
    workflow: str
    task_id: str
    prompt: str
    n_steps: int
    response: str | None
    status: str | None
    cost_usd: float | None
    started_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What an import would take in.

    `costs_known` counts traces whose file says what the run cost; the rest stay missing.
    `formats` and `workflows` count traces by source and by workflow. `fields` is empty when
    there is no trace.
    """

    n_traces: int
    n_set_aside: int
    n_tasks: int
    n_verdicts: int
    costs_known: int
    formats: dict[str, int]
    workflows: dict[str, int]
    fields: tuple[FieldShare, ...]
    first: FirstTrace | None


def preview(items: Iterable[Item]) -> Preview:
    """Summarise what was read; nothing is written.

    Parameters
    ----------
    items : iterable of Parsed or SetAside
        What `read_traces` yields, over one file or several.
    """
    traces: list[Trace] = []
    set_aside = verdicts = 0
    for item in items:
        if isinstance(item, Parsed):
            traces.append(item.trace)
            verdicts += item.verdict is not None
        else:
            set_aside += 1
    found = {name: sum(map(_has, traces, [name] * len(traces))) for name in OPTIONAL_FIELDS}
    counts = {**found, "verdict": verdicts}
    return Preview(
        n_traces=len(traces),
        n_set_aside=set_aside,
        n_tasks=len({trace.task_key for trace in traces}),
        n_verdicts=verdicts,
        costs_known=found["cost_usd"],
        formats=dict(Counter(trace.source for trace in traces)),
        workflows=dict(Counter(trace.workflow for trace in traces)),
        fields=tuple(
            FieldShare(field=name, found=count, of=len(traces)) for name, count in counts.items()
        )
        if traces
        else (),
        first=_first(traces[0]) if traces else None,
    )


def _has(trace: Trace, name: str) -> bool:
    return getattr(trace, name) not in (None, (), "")


def _first(trace: Trace) -> FirstTrace:
    return FirstTrace(
        trace_id=trace.trace_id,
        workflow=trace.workflow,
        task_id=trace.task_id,
        prompt=note(trace.prompt, limit=PROMPT_CHARS) or "",
        n_steps=len(trace.steps),
        response=note(trace.response, limit=PROMPT_CHARS),
        status=trace.status,
        cost_usd=trace.cost_usd,
        started_at=trace.started_at,
    )
