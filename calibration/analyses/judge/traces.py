"""The labelled traces behind each number of a judge, with the labels and reasons of both sides."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from calibration.agreement.ratings import parting_questions
from calibration.analyses.agreement.traces import TraceSet
from calibration.analyses.evidence.data import (
    CalibrationData,
    ReviewedTrace,
    ReviewerLabel,
    group_names,
)
from calibration.analyses.evidence.from_store import load_judged, with_context
from calibration.judge_calibration.samples import Design, LabelledSample
from calibration.records import NO_VERDICT, Evidence
from calibration.store import Store

# Shares of the reviewers are sums of 1/m.
ALL = 1 - 1e-9


def reviewed_traces(data: CalibrationData, sample: LabelledSample) -> tuple[ReviewedTrace, ...]:
    """Return each labelled trace with its labels, its verdict, and what it moves the rate by.

    `sample` are the labelled traces as the calibration weighs them.
    """
    return _traces(data, sample, range(len(data.labelled)))


def differing_traces(data: CalibrationData, sample: LabelledSample) -> tuple[ReviewedTrace, ...]:
    """Return the labelled traces on which not every human agrees with the verdict."""
    human, verdicts, k = sample.human, sample.verdicts, len(data.classes)
    agreed = np.where(verdicts < k, human[np.arange(len(human)), verdicts % k], 0.0)
    return _traces(data, sample, np.flatnonzero(agreed < ALL).tolist())


def by_influence(traces: Iterable[ReviewedTrace]) -> tuple[ReviewedTrace, ...]:
    """Return traces in the order of what they move the rate by, those that agree last."""

    # Rounded: which of several that move the same comes first is not left to rounding errors.
    def moved(of: ReviewedTrace) -> tuple[bool, float, str]:
        size = 1.0 if of.moves is None else -round(of.moves, 12)
        return not of.differs, size if of.differs else 0.0, of.trace_id if of.differs else ""

    return tuple(sorted(traces, key=moved))


def _traces(
    data: CalibrationData, sample: LabelledSample, rows: Iterable[int]
) -> tuple[ReviewedTrace, ...]:
    given = labels_by_trace(data.labels)
    labelled, k = data.labelled, len(data.classes)
    names = labelled["trace_id"].tolist()
    agents, workflows = group_names(labelled, "agent"), group_names(labelled, "workflow")
    reasons, quotes = _column(labelled, "reason"), _column(labelled, "evidence")
    changed = _column(labelled, "changed")
    parting = parting_questions(data.taxonomy.paths(data.classes)) if data.ours else None
    weights = np.ones(len(names)) if sample.weights is None else np.asarray(sample.weights)
    judged = np.bincount(data.verdicts, minlength=len(data.verdict_names))
    of_labels = np.bincount(sample.verdicts, weights=weights, minlength=judged.size)
    found = []
    for row in rows:
        verdict, shares = int(sample.verdicts[row]), np.asarray(sample.human)[row]
        differs = verdict >= k or bool(shares[verdict] < ALL)
        difference = question = None
        if verdict < k and differs:
            difference = float(data.credit[verdict] - shares @ data.credit)
            others = shares.copy()
            others[verdict] = 0
            question = None if parting is None else parting[int(others.argmax())][verdict]
        weight = float(judged[verdict] / judged.sum() * weights[row] / of_labels[verdict])
        reason = reasons[row]
        found.append(
            ReviewedTrace(
                trace_id=names[row],
                workflow=str(workflows[row]),
                agent=str(agents[row]),
                labels=given.get(names[row], ()),
                human={n: float(s) for n, s in zip(data.classes, shares, strict=True) if s > 0},
                adjudicated=bool(data.adjudicated[row]),
                verdict=data.verdict_names[verdict],
                reason=reason if isinstance(reason, str) else None,
                evidence=quotes_in(quotes[row]),
                question=question,
                differs=differs,
                credit_difference=difference,
                weight=weight,
                moves=None if difference is None else abs(difference) * weight,
                changed=changed[row] is True,
            )
        )
    return tuple(found)


def _column(frame: pd.DataFrame, name: str) -> list[Any]:
    return frame[name].tolist() if name in frame else [None] * len(frame)


def labels_by_trace(labels: pd.DataFrame) -> dict[str, tuple[ReviewerLabel, ...]]:
    """Return the labels of each trace."""
    found: dict[str, list[ReviewerLabel]] = {}
    columns = ["trace_id", "reviewer_id", "outcome", "rationale", "evidence"]
    for trace_id, who, outcome, why, quotes in labels[columns].itertuples(index=False):
        found.setdefault(trace_id, []).append(
            ReviewerLabel(
                reviewer=who,
                outcome=outcome,
                rationale=why if isinstance(why, str) else None,
                evidence=quotes_in(quotes),
            )
        )
    return {trace_id: tuple(given) for trace_id, given in found.items()}


def quotes_in(value: Any) -> tuple[Evidence, ...]:
    """Return evidence, from its JSON where it is stored as such."""
    if isinstance(value, str):
        return tuple(Evidence(**part) for part in json.loads(value))
    return value if isinstance(value, tuple) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTraces:
    """Labelled traces, in the order to look at them, and the traces without a verdict.

    Parameters
    ----------
    labelled : tuple of ReviewedTrace
        Disagreements first, what moves the corrected rate most before; then the others.
    without_verdict : tuple of str
        Traces of production that have no valid verdict, the labelled ones first.
    """

    labelled: tuple[ReviewedTrace, ...]
    without_verdict: tuple[str, ...]


def judged_traces(
    store: Store, batch_id: str, judge_id: str, *, design: Design = "production"
) -> JudgedTraces:
    """Read the labelled traces of a batch with the verdicts of a judge."""
    data = with_context(store, load_judged(store, batch_id, judge_id, sample=False))
    none = np.flatnonzero(data.verdicts >= len(data.classes))
    ids = data.traces["trace_id"].to_numpy(dtype=str)[none].tolist()
    known = set(data.labelled["trace_id"])
    return JudgedTraces(
        labelled=by_influence(reviewed_traces(data, data.sample(design))),
        without_verdict=tuple(sorted(ids, key=lambda trace_id: trace_id not in known)),
    )


def differing(traces: JudgedTraces) -> TraceSet:
    """Return the traces on which a human and the judge differ."""
    return _set(traces, "on which a human and the judge differ", lambda t: t.differs)


def in_cell(traces: JudgedTraces, human: str, verdict: str) -> TraceSet:
    """Return the traces that a human gave one class and the judge this verdict."""
    what = f"that a human calls {human} and the judge {verdict}"
    return _set(traces, what, lambda t: human in t.human and t.verdict == verdict)


def of_class(traces: JudgedTraces, human: str) -> TraceSet:
    """Return the traces to which a human gave a class."""
    return _set(traces, f"that a human calls {human}", lambda t: human in t.human)


def missed(traces: JudgedTraces, human: str) -> TraceSet:
    """Return the traces to which a human gave a class and the judge another verdict."""
    what = f"that a human calls {human} and the judge does not"
    return _set(traces, what, lambda t: human in t.human and t.verdict != human)


def with_verdict(traces: JudgedTraces, verdict: str) -> TraceSet:
    """Return the labelled traces to which the judge gave a verdict."""
    return _set(traces, f"that the judge calls {verdict}", lambda t: t.verdict == verdict)


def wrongly(traces: JudgedTraces, verdict: str) -> TraceSet:
    """Return the traces to which the judge gave a verdict that a human does not share."""
    what = f"that the judge calls {verdict} and a human does not"
    return _set(traces, what, lambda t: t.verdict == verdict and t.differs)


def parting_at(traces: JudgedTraces, question: str) -> TraceSet:
    """Return the traces on which judge and humans part at a question."""
    what = f"on which the judge's way parts from the humans' at {question}"
    return _set(traces, what, lambda t: t.differs and t.question == question)


def in_group(traces: JudgedTraces, by: str, name: str) -> TraceSet:
    """Return the traces of an agent or a workflow on which a human and the judge differ."""
    what = f"of {by} {name:.60} on which a human and the judge differ"
    return _set(traces, what, lambda t: t.differs and name == _group(t, by))


def open_ones(traces: JudgedTraces) -> TraceSet:
    """Return the traces on which reviewers differ and that nobody has settled."""
    return _set(traces, "on which reviewers differ and nobody has settled it", lambda t: t.is_open)


def changed(traces: JudgedTraces) -> TraceSet:
    """Return the labelled traces on which the judge, asked again, changed its verdict."""
    return _set(traces, "whose verdict changed when the judge was asked again", lambda t: t.changed)


def without_verdict(traces: JudgedTraces) -> TraceSet:
    """Return the traces of production that have no valid verdict, the labelled ones first."""
    what = f"of production without a verdict ({NO_VERDICT})"
    return TraceSet(what=what, trace_ids=traces.without_verdict)


def _group(trace: ReviewedTrace, by: str) -> str:
    return trace.agent if by == "agent" else trace.workflow


def _set(traces: JudgedTraces, what: str, belongs: Callable[[ReviewedTrace], bool]) -> TraceSet:
    return TraceSet(what=what, trace_ids=tuple(t.trace_id for t in traces.labelled if belongs(t)))
