"""The result of an examination: how well, at which class and question, and what it does to ASR."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from calibration.agreement.against_key import WILSON
from calibration.analyses.exam_forms import OWN_FORM, Examiner
from calibration.analyses.examining import Marked, marked, topped_up
from calibration.analyses.fingerprint import package_version, settings_digest
from calibration.errors import NotAllowedError
from calibration.estimates import Estimate, not_estimable
from calibration.records import OUTCOMES, TraceForReview
from calibration.reviewing.certification import (
    FAILED,
    PASSED,
    ClassShown,
    Decision,
    PassRule,
    decide,
)
from calibration.reviewing.leniency import leniency, leniency_on_mix
from calibration.store import Store
from calibration.store.certification import Exam
from calibration.taxonomy import Taxonomy
from calibration.two_way import wilson_interval
from reference_dataset.records import CanonicalLabel

NO_MIX = (
    "the class mix of production is not known: a production batch with 30 labelled traces gives it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassResult:
    """One class: recall with its interval, whether it is shown, and whether it was topped up."""

    decision: ClassShown
    recall: Estimate
    topped_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResult:
    """One question on the form, where both the canonical path and the reviewer came to it.

    `table` counts by the canonical answer (rows: yes, no) and the reviewer's; off its diagonal
    stand the errors that are born here.
    """

    node: str
    question: str
    agreement: Estimate
    table: tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """A canonical class and the class given instead, and the traces on which that happened."""

    canonical: str
    given: str
    trace_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamReport:
    """What an examination says of a reviewer; of the form but for classes topped up.

    `leniency` is in ASR points on the class mix of the form, `leniency_in_production` on the mix
    that `mix` names.
    """

    form: Exam
    exam: Exam
    decision: Decision
    n: int
    n_further: int
    ac1: Estimate
    accuracy: Estimate
    classes: tuple[ClassResult, ...]
    nodes: tuple[NodeResult, ...]
    confusions: tuple[Confusion, ...]
    leniency: Estimate
    leniency_in_production: Estimate
    mix: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedTrace:
    """A trace of an examination that is over, with one's own class and the canonical reasons."""

    trace: TraceForReview
    given: str
    canonical: str
    label: CanonicalLabel | None
    rationale: str | None


def exam_report(
    store: Store,
    by: Examiner,
    reviewer_id: str,
    batch_id: str,
    *,
    mix: Mapping[str, float] | None = None,
    rule: PassRule | None = None,
) -> ExamReport:
    """Report on an examination that is over.

    Parameters
    ----------
    store : Store
    by : Examiner
    reviewer_id, batch_id : str
        The examination, or what topped it up: both are one.
    mix : mapping of str to float, optional
        Share of each class in production; default: that of the newest production batch with 30
        labelled traces.
    rule : PassRule, optional

    Returns
    -------
    ExamReport

    Raises
    ------
    NotAllowedError
        If it is not over: nothing canonical is told before.
    """
    rule = rule or PassRule()
    form, exam = _whole(store, reviewer_id, batch_id)
    further = exam if exam.tops_up is not None else None
    pairs = marked(store, by, form, further)
    found = pairs.against_key(rule)
    more = topped_up(form)
    limit = None if found.gwet_ac.interval is None else found.gwet_ac.interval[0]
    decision = decide(limit, pairs.counts(more), topped_up=OUTCOMES, rule=rule)
    taxonomy = store.taxonomy()
    production, of = _production(store, taxonomy, pairs, mix)
    return ExamReport(
        form=form,
        exam=exam,
        decision=decision,
        n=len(pairs.form),
        n_further=len(pairs.further),
        ac1=found.gwet_ac,
        accuracy=found.accuracy,
        classes=tuple(
            ClassResult(
                decision=c,
                recall=_share(c.hits, c.n, f"no trace of {c.outcome} on the form"),
                topped_up=c.outcome in more,
            )
            for c in decision.classes
        ),
        nodes=_nodes(taxonomy, pairs),
        confusions=_confusions(pairs),
        leniency=leniency(*_credits(taxonomy, pairs)),
        leniency_in_production=production,
        mix=of,
        fingerprint=settings_digest(
            {
                "version": package_version(), "taxonomy": taxonomy.fingerprint,
                "rule": asdict(rule), "form": pairs.form, "further": pairs.further, "mix": of,
            }
        ),
    )  # fmt: skip


def _whole(store: Store, reviewer_id: str, batch_id: str) -> tuple[Exam, Exam]:
    """Return the form and what decided: itself or what topped it up."""
    exams = {e.batch_id: e for e in store.exams_of(reviewer_id)}
    asked = exams.get(batch_id)
    if asked is None or asked.taxonomy_version != store.taxonomy().version:
        raise NotAllowedError(f"{batch_id!r:.80} is no examination of yours on this decision tree")
    form = exams[asked.tops_up or batch_id]
    last = next((e for e in exams.values() if e.tops_up == form.batch_id), form)
    if last.status not in (PASSED, FAILED):
        raise NotAllowedError(f"{batch_id!r} is not over: its result comes after the last trace")
    return form, last


def _credits(taxonomy: Taxonomy, pairs: Marked) -> tuple[list[float], list[float]]:
    given = [taxonomy.credit[g] for _, g in pairs.form.values()]
    return given, [taxonomy.credit[due] for due, _ in pairs.form.values()]


def _production(
    store: Store, taxonomy: Taxonomy, pairs: Marked, mix: Mapping[str, float] | None
) -> tuple[Estimate, str]:
    of = "the mix that was given"
    if mix is None:
        found = store.production_mix()
        if found is None:
            return not_estimable(NO_MIX, method="", n=len(pairs.form)), "not known"
        mix = found.shares
        of = f"the human labels of {found.batch_id} ({found.n:,} traces)"
    due = [c for c, _ in pairs.form.values()]
    return leniency_on_mix(*_credits(taxonomy, pairs), due, mix), of


def _nodes(taxonomy: Taxonomy, pairs: Marked) -> tuple[NodeResult, ...]:
    answers = {name: taxonomy.answers_for(name) for name in OUTCOMES}
    found = []
    for node in taxonomy.nodes:
        counts = {(a, b): 0 for a in ("yes", "no") for b in ("yes", "no")}
        for due, given in pairs.form.values():
            if node.id in answers[due] and node.id in answers[given]:
                counts[answers[due][node.id], answers[given][node.id]] += 1
        same, n = counts["yes", "yes"] + counts["no", "no"], sum(counts.values())
        found.append(
            NodeResult(
                node=node.id,
                question=node.question,
                agreement=_share(same, n, "neither came to this question on any trace"),
                table=(
                    (counts["yes", "yes"], counts["yes", "no"]),
                    (counts["no", "yes"], counts["no", "no"]),
                ),
            )
        )
    return tuple(found)


def _confusions(pairs: Marked) -> tuple[Confusion, ...]:
    wrong: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for trace_id, (due, given) in (pairs.form | pairs.further).items():
        if due != given:
            wrong[due, given].append(trace_id)
    ordered = sorted(wrong.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(
        Confusion(canonical=due, given=given, trace_ids=tuple(sorted(ids)))
        for (due, given), ids in ordered
    )


def _share(hits: int, n: int, nothing: str) -> Estimate:
    if n == 0:
        return not_estimable(nothing, method=WILSON)
    return Estimate(
        value=hits / n, interval=wilson_interval(hits, n, confidence_level=0.95), n=n, method=WILSON
    )


def examined_trace(
    store: Store, by: Examiner, reviewer_id: str, batch_id: str, trace_id: str
) -> ExaminedTrace:
    """Return a trace of an examination that is over with the canonical reasons.

    That the reviewer saw them is written down first: no later label of the trace is blind.

    Raises
    ------
    NotAllowedError
        If the examination is not over or has no such trace.
    """
    form, exam = _whole(store, reviewer_id, batch_id)
    of = next((e for e in (form, exam) if trace_id in _labels(store, e)), None)
    if of is None:
        raise NotAllowedError(f"{trace_id!r:.80} is no trace of this examination")
    store.record_exposure(reviewer_id, [trace_id], "canonical")
    settled = store.exam_key(reviewer_id, of.batch_id).get(trace_id)
    label = None if form.form == OWN_FORM else by.dataset.labels.get(trace_id)
    canonical = label.outcome if label is not None else settled.outcome if settled else "withdrawn"
    (trace,) = store.exam_traces(reviewer_id, exam.batch_id, [trace_id])
    return ExaminedTrace(
        trace=trace,
        given=_labels(store, of)[trace_id],
        canonical=canonical,
        label=label,
        rationale=label.rationale if label else settled.rationale if settled else None,
    )


def _labels(store: Store, exam: Exam) -> dict[str, str]:
    return store.exam_labels(exam.reviewer_id, exam.batch_id)
