"""The labelled traces behind each number of a judge's diagnostics."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibration.analyses.agreement.traces import TraceSet
from calibration.analyses.evidence.data import group_names
from calibration.analyses.evidence.from_store import VERDICT_NAMES, read_judged
from calibration.analyses.judge.diagnostics import JudgeDiagnostics
from calibration.analyses.judge.disagreements import Disagreement, Said, quotes_in, said_of, text_at
from calibration.records import NO_VERDICT, OUTCOMES
from calibration.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTrace:
    """A labelled trace with its verdict.

    Parameters
    ----------
    human : dict of str to float
        Share of each class: one class where it is adjudicated or all reviewers agree.
    adjudicated : bool
    labels : tuple of Said
    reason, evidence
        Of the judge; None and empty where it gave none.
    differs : Disagreement or None
        Where not every human agrees with the verdict.
    changed : bool
        Whether the judge, asked again, gave another verdict.
    """

    trace_id: str
    workflow: str
    agent: str
    verdict: str
    human: dict[str, float]
    adjudicated: bool
    labels: tuple[Said, ...]
    reason: str | None
    evidence: tuple[dict[str, str], ...]
    differs: Disagreement | None
    changed: bool

    @property
    def is_open(self) -> bool:
        """Whether the reviewers differ and nobody has settled it."""
        return len(self.human) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTraces:
    """Labelled traces, in the order to look at them, and the traces without a verdict.

    Parameters
    ----------
    labelled : tuple of JudgedTrace
        Disagreements first, what moves the corrected rate most before; then the others.
    without_verdict : tuple of str
        Traces of production that have no valid verdict, the labelled ones first.
    """

    labelled: tuple[JudgedTrace, ...]
    without_verdict: tuple[str, ...]


def judged_traces(store: Store, diagnosed: JudgeDiagnostics) -> JudgedTraces:
    """Read the labelled traces that diagnostics are about, with their verdicts."""
    judged = read_judged(store, diagnosed.batch_id, diagnosed.judge_id, sample=False)
    loaded, labelled = judged.loaded, judged.loaded.labelled
    differing = {found.trace_id: found for found in diagnosed.disagreements}
    place = {trace_id: k for k, trace_id in enumerate(differing)}
    samples = store.verdict_samples(diagnosed.judge_id)
    answers = samples.groupby("trace_id")["outcome"].nunique()
    changed = set(answers.index[answers > 1])
    first, said = samples.drop_duplicates("trace_id").set_index("trace_id"), said_of(loaded.labels)
    agents, workflows = group_names(labelled, "agent"), group_names(labelled, "workflow")
    rows = [
        JudgedTrace(
            trace_id=trace_id,
            workflow=str(workflows[row]),
            agent=str(agents[row]),
            verdict=VERDICT_NAMES[int(judged.sample.verdicts[row])],
            human={
                name: float(share)
                for name, share in zip(OUTCOMES, loaded.human[row], strict=True)
                if share > 0
            },
            adjudicated=bool(loaded.adjudicated[row]),
            labels=tuple(said.get(trace_id, ())),
            reason=text_at(first, trace_id, "reason"),
            evidence=quotes_in(text_at(first, trace_id, "evidence")),
            differs=differing.get(trace_id),
            changed=trace_id in changed,
        )
        for row, trace_id in enumerate(labelled["trace_id"].tolist())
    ]
    order = sorted(rows, key=lambda of: place.get(of.trace_id, len(place)))
    none = np.flatnonzero(judged.population.verdicts == len(OUTCOMES))
    ids = loaded.traces["trace_id"].to_numpy(dtype=str)[none].tolist()
    known = set(labelled["trace_id"])
    return JudgedTraces(
        labelled=tuple(order),
        without_verdict=tuple(sorted(ids, key=lambda trace_id: trace_id not in known)),
    )


def differing(traces: JudgedTraces) -> TraceSet:
    """Return the traces on which a human and the judge differ."""
    return _set(traces, "on which a human and the judge differ", lambda t: t.differs is not None)


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
    return _set(traces, what, lambda t: t.verdict == verdict and t.differs is not None)


def parting_at(traces: JudgedTraces, question: str) -> TraceSet:
    """Return the traces on which judge and humans part at a question."""
    what = f"on which the judge's way parts from the humans' at {question}"
    return _set(traces, what, lambda t: t.differs is not None and t.differs.question == question)


def in_group(traces: JudgedTraces, by: str, name: str) -> TraceSet:
    """Return the traces of an agent or a workflow on which a human and the judge differ."""
    what = f"of {by} {name:.60} on which a human and the judge differ"
    return _set(traces, what, lambda t: t.differs is not None and name == _group(t, by))


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


def _group(trace: JudgedTrace, by: str) -> str:
    return trace.agent if by == "agent" else trace.workflow


def _set(traces: JudgedTraces, what: str, belongs: Callable[[JudgedTrace], bool]) -> TraceSet:
    return TraceSet(what=what, trace_ids=tuple(t.trace_id for t in traces.labelled if belongs(t)))
