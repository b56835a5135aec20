"""Diagnostics of a judge: human ceiling, errors by node, leniency, groups."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibration.agreement.annotators import BesidePanel, outsider_beside_panel
from calibration.agreement.ratings import answers_at, parting_questions
from calibration.analyses.agreement.analysis import planned_codes
from calibration.analyses.agreement.traces import TraceSet
from calibration.analyses.evidence.data import (
    CONTEXT,
    UNKNOWN,
    CalibrationData,
    Provenance,
    ReviewedTrace,
    by_influence,
    differing_traces,
    group_names,
    reviewed_traces,
)
from calibration.analyses.judge.calibration import CalibrationOptions, credit_gaps, leniency_of
from calibration.analyses.judge.drift import LabelDrift, labels_over_time
from calibration.judge_calibration.bias import (
    HC3,
    NodeQuality,
    OrdinalAgreement,
    Retest,
    errors_by_node,
    node_quality,
    ordinal_agreement,
    retest,
    slope_within_class,
)
from calibration.judge_calibration.samples import Confusion, Design, LabelledSample, confusion
from calibration.records import NO_VERDICT
from calibration.statistics.contingency import holm
from calibration.statistics.estimate import not_estimable
from calibration.statistics.means import MeanAgainstZero
from calibration.taxonomy import Taxonomy

if TYPE_CHECKING:
    pass

NO_CLASS = "no labelled trace has a verdict that is a class: run the judge on the labelled traces"
NO_FAMILY = "the model family of the judge is not known: name it with --judge-family"
ONE_CLASS = "every label is of one class; label traces of the others"
NO_MODELS = "no labelled trace says which model ran it"

WEIGHED = (
    "labelled traces are weighted to production, except where the humans are "
    "compared with each other and in the chi-square: there each trace counts once"
)

# A grade separates complete, partial_plus and the rest, as `class_of_grade` of the importers.
STEPS = ("3 or less", "4", "5")

LENIENT_BY = ("agent", "workflow", "prompt")

# Sizes of a trace, and their columns.
SIZES = {"response": "response_chars", "steps": "n_steps"}

OF_TABLES = (
    "a table does not know single traces: no agreement among the humans, no leniency by group, no "
    "list of disagreements",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leniency:
    """Mean credit of the judge less that of the humans; `p_holm` adjusts for the groups tested."""

    group: str
    verdict_credit: float
    human_credit: float
    gap: MeanAgainstZero
    p_holm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeDiagnostics:
    """Properties of a judge beyond the calibrated rate.

    `ceiling` : human and judge agreement on the same traces; empty where single labels are unknown
    `grades` : ordinal agreement for numeric classes or for grades from 1 to 5
    `grade_names` : the compared steps in order; a human class is known to `STEPS` of a grade
    `nodes` : quality by question of the tree, in its order; empty for other classes
    `errors` : effective labelled traces by the question at which judge and humans part (None: no
        verdict)
    `disagreements` : sorted by their influence on the rate
    `leniency_by` : leniency by ``agent``, ``workflow`` and ``prompt``, where known
    `slopes` : change of the credit gap, within human class, per doubling of ``response``
        (characters) and ``steps``
    `own_family` : credit gap on agents of the judge's own model family less that on others, within
        human class
    `over_time` : whether labels of earlier runs still hold; None for a reference set and for tables
    `missing` : facts missing in the source of the labels, with the remedy
    """

    provenance: Provenance
    verdict_names: tuple[str, ...]
    ceiling: dict[str, BesidePanel]
    grades: OrdinalAgreement | None
    grade_names: tuple[str, ...]
    nodes: dict[str, NodeQuality]
    errors: dict[str | None, float]
    disagreements: tuple[ReviewedTrace, ...]
    leniency: MeanAgainstZero
    leniency_by: dict[str, tuple[Leniency, ...]]
    slopes: dict[str, MeanAgainstZero]
    own_family: MeanAgainstZero
    retest: Retest
    over_time: LabelDrift | None = None
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    fingerprint: str


def diagnose(
    data: CalibrationData, options: CalibrationOptions, *, one_class: bool = False
) -> JudgeDiagnostics:
    """Compare a judge with the humans on labelled traces; data of a store need their context.

    `options.judge_family` is a word in the names of the judge's own model family, such as ``gpt``;
    without it, self-preference is reported as left out. With `one_class`, every label is of one
    class by choice of the traces, and averages over classes are not estimable.
    """
    level, sample = options.confidence_level, data.sample(options.design)
    crossed = confusion(
        sample.human, sample.verdicts, n_verdicts=len(data.verdict_names), weights=sample.weights
    )
    taxonomy = data.taxonomy if data.ours and not one_class else None
    nodes, errors = questions(crossed, taxonomy, data.classes, level)
    leniency = leniency_of(data, sample, np.ones(data.at.size, dtype=bool), NO_CLASS, level)
    groups, sizes = ({}, {}) if one_class else (_groups(data), _sizes(data))
    if one_class:
        refused = not_estimable(ONE_CLASS, method=leniency.estimate.method, confidence_level=level)
        leniency = MeanAgainstZero(estimate=refused, p_value=None)
    again = np.zeros((0, 1), dtype=np.int64) if data.repeats is None else data.repeats
    listed = data.counts is None
    return JudgeDiagnostics(
        provenance=data.provenance,
        verdict_names=data.verdict_names,
        ceiling=_ceiling(data, level) if listed else {},
        grades=grades(crossed, data.classes, level)
        if data.grades is None or not data.ours
        else grades_of(data, sample, data.grades, level),
        grade_names=data.classes if data.grades is None or not data.ours else STEPS,
        nodes=nodes,
        errors=errors,
        disagreements=by_influence(differing_traces(data, sample)) if listed else (),
        leniency=leniency,
        leniency_by={
            by: _leniency_by(data, sample, groups[by], level) for by in LENIENT_BY if by in groups
        },
        slopes={
            name: _slope(data, sample, np.log2(np.maximum(1, size)), level)
            for name, size in sizes.items()
        },
        own_family=_own_family(data, sample, groups.get("model"), options),
        # A repeated verdict may be absent among the first verdicts.
        retest=retest(
            again,
            n_verdicts=max(len(data.verdict_names), int(again.max(initial=0)) + 1),
            confidence_level=level,
        ),
        over_time=labels_over_time(data, sample)
        if listed and options.design == "production"
        else None,
        missing=tuple(_missing(data, groups, sizes)) if listed else OF_TABLES,
        notes=() if sample.weights is None else (WEIGHED,),
        fingerprint=data.fingerprint(
            "judge diagnostics",
            {
                "family": options.judge_family,
                "design": options.design,
                "confidence_level": level,
                "repeats": [] if data.repeats is None else sorted(data.repeats.tolist()),
            },
            CONTEXT,
        ),
    )


def _groups(data: CalibrationData) -> dict[str, NDArray[np.str_]]:
    """Return agent, workflow, model and prompt of the labelled traces, where known for any."""
    if data.counts is not None:
        return {}
    found = {by: group_names(data.labelled, by) for by in (*LENIENT_BY, "model")}
    return {by: names for by, names in found.items() if not (names == UNKNOWN).all()}


def _sizes(data: CalibrationData) -> dict[str, NDArray[np.float64]]:
    """Return the sizes of the labelled traces, NaN where unknown."""
    found = {
        name: data.labelled[column].to_numpy(dtype=np.float64)
        for name, column in SIZES.items()
        if column in data.labelled
    }
    return {name: size for name, size in found.items() if np.isfinite(size).any()}


def _missing(
    data: CalibrationData, groups: Collection[str], sizes: Collection[str]
) -> Iterator[str]:
    """Yield the facts missing in tables, each with the column that would hold it."""
    if data.provenance.source == "store":
        return
    if _panel(data) is None:
        yield "how far the humans agree (no trace has labels of two `reviewer`s)"
    if not data.ours:
        yield "at which question errors begin (the classes are not those of the taxonomy)"
    for by in ("workflow", "agent"):
        if by not in groups:
            yield f"leniency by {by} (`{by}`)"
    for name, column in (("response", "response_chars"), ("steps", "steps")):
        if name not in sizes:
            yield f"whether it follows the {name} (`{column}`)"
    if not data.labels["rationale"].notna().any():
        yield "reasons of the humans (`rationale`)"
    if not data.labelled["reason"].notna().any():
        yield "reasons of the judge (`reason`)"
    if data.repeats is None:
        yield "whether it gives the same verdict twice (`sample`)"


def grades(
    crossed: Confusion, classes: Sequence[str], confidence_level: float
) -> OrdinalAgreement | None:
    """Compare grades; None unless the classes are consecutive whole numbers, such as 1 to 5."""
    try:
        values = [int(name) for name in classes]
    except ValueError:
        return None
    order = np.argsort(values)
    if sorted(values) != list(range(min(values), min(values) + len(values))):
        return None
    beyond = np.arange(len(values), crossed.table.shape[1])
    table = crossed.table[order][:, np.concatenate([order, beyond])]
    return ordinal_agreement(table, confidence_level=confidence_level)


def grades_of(
    data: CalibrationData,
    sample: LabelledSample,
    given: NDArray[np.int64],
    confidence_level: float,
) -> OrdinalAgreement:
    """Compare grades from 1 to 5 with our classes, on the steps that the classes distinguish."""
    top, accepted = data.taxonomy.success, data.taxonomy.acceptable
    step = [2 if name == top else int(name in accepted) for name in data.classes]
    human = sample.human @ np.eye(len(STEPS))[step]
    # A trace without a grade has no verdict.
    codes = np.where(given == 0, len(STEPS), np.clip(given - 3, 0, len(STEPS) - 1))
    crossed = confusion(human, codes, n_verdicts=len(STEPS) + 1, weights=sample.weights)
    return ordinal_agreement(crossed.table, confidence_level=confidence_level)


def questions(
    crossed: Confusion, taxonomy: Taxonomy | None, classes: Sequence[str], confidence_level: float
) -> tuple[dict[str, NodeQuality], dict[str | None, float]]:
    """Return the judge's answers at each question, and the questions at which its errors begin."""
    if taxonomy is None:
        return {}, {}
    paths = taxonomy.paths(classes)
    codes = np.arange(len(classes))[:, None]
    nodes = {
        node.id: node_quality(
            crossed.table,
            answers_at(codes, node=node.id, paths=paths)[:, 0].tolist(),
            confidence_level=confidence_level,
        )
        for node in taxonomy.nodes
    }
    return nodes, errors_by_node(crossed.table, parting_questions(paths))


def _panel(data: CalibrationData) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return class codes and verdicts of the traces planned for two labels; None without any."""
    planned, codes, _ = planned_codes(data)
    if data.provenance.source != "store" and not ((codes >= 0).sum(axis=1) > 1).any():
        return None
    kept = data.labelled["trace_id"].isin(planned["trace_id"]).to_numpy()
    return codes, data.verdicts[data.at[kept]]


def _ceiling(data: CalibrationData, confidence_level: float) -> dict[str, BesidePanel]:
    panel = _panel(data)
    if panel is None:
        return {}
    codes, verdicts = panel
    return outsider_beside_panel(
        codes,
        verdicts,
        n_classes=max(len(data.classes), int(verdicts.max(initial=0)) + 1),
        confidence_level=confidence_level,
    )


def _leniency_by(
    data: CalibrationData,
    sample: LabelledSample,
    groups: NDArray[np.str_],
    confidence_level: float,
) -> tuple[Leniency, ...]:
    known = np.unique(groups[sample.verdicts < len(data.classes)])
    means = {
        str(name): leniency_of(data, sample, groups == name, NO_CLASS, confidence_level)
        for name in known
    }
    adjusted = holm({name: m.p_value for name, m in means.items() if m.p_value is not None})
    found = []
    for name, mean in means.items():
        of = credit_gaps(data, sample, groups == name)
        verdict_credit = float(np.average(of.verdict_credit, weights=of.weights))
        found.append(
            Leniency(
                group=name,
                verdict_credit=verdict_credit,
                human_credit=verdict_credit - (mean.estimate.value or 0.0),
                gap=mean,
                p_holm=adjusted.get(name),
            )
        )
    return tuple(sorted(found, key=lambda row: (-row.gap.estimate.n, row.group)))


def _slope(
    data: CalibrationData,
    sample: LabelledSample,
    size: NDArray[np.float64],
    confidence_level: float,
) -> MeanAgainstZero:
    """Estimate the change of the gap with `size`, on the traces where it is known."""
    of = credit_gaps(data, sample, np.isfinite(size))
    return slope_within_class(
        of.gap,
        np.asarray(sample.human)[of.rows],
        size[of.rows],
        weights=of.weights,
        clusters=of.tasks,
        confidence_level=confidence_level,
    )


def _own_family(
    data: CalibrationData,
    sample: LabelledSample,
    models: NDArray[np.str_] | None,
    options: CalibrationOptions,
) -> MeanAgainstZero:
    word = (options.judge_family or "").strip().casefold()
    if not word or models is None:
        refused = not_estimable(
            NO_MODELS if word else NO_FAMILY, method=HC3, confidence_level=options.confidence_level
        )
        return MeanAgainstZero(estimate=refused, p_value=None)
    own = np.array([float(word in name.casefold()) for name in models.tolist()])
    return _slope(data, sample, np.where(models == UNKNOWN, np.nan, own), options.confidence_level)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTraces:
    """Labelled traces, disagreements first by influence on the rate; traces without a verdict.

    `taxonomy` names classes and questions in descriptions of traces.
    """

    labelled: tuple[ReviewedTrace, ...]
    without_verdict: tuple[str, ...]
    taxonomy: Taxonomy

    def title(self, name: str) -> str:
        """Return the title of a class; another verdict is its own name."""
        return self.taxonomy.titles.get(name, name)


def judged_traces(data: CalibrationData, *, design: Design = "production") -> JudgedTraces:
    """Return the labelled traces of a batch with the verdicts of a judge; data have context."""
    none = np.flatnonzero(data.verdicts >= len(data.classes))
    ids = data.traces["trace_id"].to_numpy(dtype=str)[none].tolist()
    known = set(data.labelled["trace_id"])
    return JudgedTraces(
        labelled=by_influence(reviewed_traces(data, data.sample(design))),
        without_verdict=tuple(sorted(ids, key=lambda trace_id: trace_id not in known)),
        taxonomy=data.taxonomy,
    )


def differing(traces: JudgedTraces) -> TraceSet:
    """Return the traces on which a reviewer and the judge differ."""
    return _those(traces, "on which a reviewer and the judge differ", lambda t: t.differs)


def in_cell(traces: JudgedTraces, human: str, verdict: str) -> TraceSet:
    """Return the traces with this human class and this verdict."""
    what = f"that a reviewer calls {traces.title(human)} and the judge {traces.title(verdict)}"
    return _those(traces, what, lambda t: human in t.human and t.verdict == verdict)


def of_class(traces: JudgedTraces, human: str) -> TraceSet:
    """Return the traces with this human class."""
    return _those(
        traces, f"that a reviewer calls {traces.title(human)}", lambda t: human in t.human
    )


def missed(traces: JudgedTraces, human: str) -> TraceSet:
    """Return the traces with this human class and another verdict."""
    what = f"that a reviewer calls {traces.title(human)} and the judge does not"
    return _those(traces, what, lambda t: human in t.human and t.verdict != human)


def with_verdict(traces: JudgedTraces, verdict: str) -> TraceSet:
    """Return the labelled traces with this verdict."""
    what = f"that the judge calls {traces.title(verdict)}"
    return _those(traces, what, lambda t: t.verdict == verdict)


def wrongly(traces: JudgedTraces, verdict: str) -> TraceSet:
    """Return the traces with this verdict on which a human differs."""
    what = f"that the judge calls {traces.title(verdict)} and a reviewer does not"
    return _those(traces, what, lambda t: t.verdict == verdict and t.differs)


def parting_at(traces: JudgedTraces, question: str) -> TraceSet:
    """Return the traces on which judge and humans part at a question."""
    what = f"with errors of the judge that start at {traces.taxonomy.question_name(question)}"
    return _those(traces, what, lambda t: t.differs and t.question == question)


def in_group(traces: JudgedTraces, by: str, name: str) -> TraceSet:
    """Return the traces of an agent or a workflow on which a reviewer and the judge differ."""
    what = f"of {by} {name:.60} on which a reviewer and the judge differ"
    return _those(traces, what, lambda t: t.differs and name == _group(t, by))


def open_ones(traces: JudgedTraces) -> TraceSet:
    """Return the traces on which reviewers differ, not adjudicated."""
    return _those(traces, "on which reviewers differ, not adjudicated yet", lambda t: t.is_open)


def changed(traces: JudgedTraces) -> TraceSet:
    """Return the labelled traces on which the judge changed its verdict when asked again."""
    return _those(
        traces, "whose verdict changed when the judge was asked again", lambda t: t.changed
    )


def without_verdict(traces: JudgedTraces) -> TraceSet:
    """Return the production traces without a valid verdict, the labelled ones first."""
    what = f"of production without a verdict ({NO_VERDICT})"
    return TraceSet(what=what, trace_ids=traces.without_verdict)


def _group(trace: ReviewedTrace, by: str) -> str:
    return trace.agent if by == "agent" else trace.workflow


def _those(traces: JudgedTraces, what: str, belongs: Callable[[ReviewedTrace], bool]) -> TraceSet:
    return TraceSet(what=what, trace_ids=tuple(t.trace_id for t in traces.labelled if belongs(t)))
