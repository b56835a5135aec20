"""Results of an examination, and the probability of passing by accuracy."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from calibration.analyses.fingerprint import package_version, settings_digest
from calibration.analyses.reviewers.examinations import (
    OWN_FORM,
    Examiner,
    Marked,
    marked,
    topped_up,
)
from calibration.errors import NotAllowedError
from calibration.records import TraceForReview
from calibration.reviewers.certification import (
    FAILED,
    PASSED,
    ClassShown,
    ExamDecision,
    PassRule,
    decide,
    hits_needed,
)
from calibration.reviewers.quality import leniency, leniency_on_mix
from calibration.statistics.estimate import Estimate, FloatArray, IntArray, not_estimable
from calibration.statistics.intervals import (
    NO_SPREAD,
    two_sided_t,
    wilson_share,
    zero_event_upper_bound,
)
from calibration.store import Store
from calibration.store.certification import Exam
from calibration.taxonomy import Taxonomy
from reference_dataset.records import CanonicalLabel

NO_MIX = (
    "the class mix of production is not known: a production batch with 30 labelled traces gives it"
)

ACCURACIES = (0.75, 0.78, 0.80, 0.82, 0.84, 0.86, 0.88, 0.90, 0.92, 0.95, 0.97)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassResult:
    """One class: whether it is shown, its recall, and whether it was topped up."""

    decision: ClassShown
    recall: Estimate
    topped_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResult:
    """One question, on traces where both the canonical path and the reviewer reached it."""

    node: str
    question: str
    agreement: Estimate
    table: tuple[tuple[int, int], tuple[int, int]]  # rows: canonical answer, yes first


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamConfusion:
    """A canonical class, the class given instead, and the traces concerned."""

    canonical: str
    given: str
    trace_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamReport:
    """Results of an examination: of the form, and of further traces for classes topped up."""

    form: Exam
    exam: Exam
    decision: ExamDecision
    n: int
    n_further: int
    ac1: Estimate
    accuracy: Estimate
    classes: tuple[ClassResult, ...]
    nodes: tuple[NodeResult, ...]
    confusions: tuple[ExamConfusion, ...]
    leniency: Estimate  # ASR points, on the class mix of the form
    leniency_in_production: Estimate  # on the mix named by `mix`
    mix: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedTrace:
    """A trace of an ended examination, with the reviewer's class and the canonical reasons."""

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
    """Report on an ended examination and its further traces; `mix` defaults to `production_mix`."""
    rule = rule or PassRule()
    form, exam = _whole(store, reviewer_id, batch_id)
    further = exam if exam.tops_up is not None else None
    pairs = marked(store, by, form, further)
    found = pairs.against_key(rule)
    more = topped_up(form)
    limit = None if found.gwet_ac.interval is None else found.gwet_ac.interval[0]
    decision = decide(limit, pairs.counts(more), topped_up=pairs.classes, rule=rule)
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
                recall=wilson_share(c.hits, c.n, nothing=f"no trace of {c.outcome} on the form"),
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
    """Return the form, and the examination that decided: the form or its further traces."""
    exams = {e.batch_id: e for e in store.exams_of(reviewer_id)}
    asked = exams.get(batch_id)
    if asked is None or asked.taxonomy_version != store.taxonomy().version:
        raise NotAllowedError(
            f"{batch_id!r:.80} is not an examination of yours on this decision tree"
        )
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
    answers = {name: taxonomy.answers_for(name) for name in taxonomy.names}
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
                agreement=wilson_share(
                    same, n, nothing="neither came to this question on any trace"
                ),
                table=(
                    (counts["yes", "yes"], counts["yes", "no"]),
                    (counts["no", "yes"], counts["no", "no"]),
                ),
            )
        )
    return tuple(found)


def _confusions(pairs: Marked) -> tuple[ExamConfusion, ...]:
    wrong: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for trace_id, (due, given) in (pairs.form | pairs.further).items():
        if due != given:
            wrong[due, given].append(trace_id)
    ordered = sorted(wrong.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(
        ExamConfusion(canonical=due, given=given, trace_ids=tuple(sorted(ids)))
        for (due, given), ids in ordered
    )


def examined_trace(
    store: Store, by: Examiner, reviewer_id: str, batch_id: str, trace_id: str
) -> ExaminedTrace:
    """Return a trace of an ended examination with the canonical reasons; record the exposure."""
    form, exam = _whole(store, reviewer_id, batch_id)
    of = next((e for e in (form, exam) if trace_id in _labels(store, e)), None)
    if of is None:
        raise NotAllowedError(f"{trace_id!r:.80} is not a trace of this examination")
    store.record_exposure(reviewer_id, [trace_id], "canonical")
    team = store.exam_key(reviewer_id, of.batch_id).get(trace_id, ("withdrawn", None))
    label = None if form.form == OWN_FORM else by.dataset.labels.get(trace_id)
    canonical, rationale = (label.outcome, label.rationale) if label is not None else team
    (trace,) = store.exam_traces(reviewer_id, exam.batch_id, [trace_id])
    return ExaminedTrace(
        trace=trace,
        given=_labels(store, of)[trace_id],
        canonical=canonical,
        label=label,
        rationale=rationale,
    )


def _labels(store: Store, exam: Exam) -> dict[str, str]:
    return store.exam_labels(exam.reviewer_id, exam.batch_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """Probabilities of passing for one accuracy."""

    accuracy: float
    agreement: float  # by AC1 alone
    with_floor: float  # and every class has at least the rule's recall
    whole: float  # by the whole rule, topping up included
    twice: float  # within two attempts


def operating_curve(
    taxonomy: Taxonomy,
    class_counts: Mapping[str, int],
    *,
    rng: np.random.Generator,
    accuracies: Sequence[float] = ACCURACIES,
    rule: PassRule | None = None,
    n_draws: int = 4_000,
) -> tuple[OperatingPoint, ...]:
    """Simulate examinations of reviewers with these accuracies, equal in every class.

    A reviewer errs at one question of the path, each equally likely, and ends in any class on its
    other side. Traces are independent; so are the two attempts.

    Parameters
    ----------
    taxonomy : Taxonomy
    class_counts : mapping of str to int
        Traces of each class on the form.
    rng : numpy.random.Generator
    accuracies : sequence of float
        In [0, 1].
    rule : PassRule, optional
    n_draws : int, default 4,000
        Examinations per accuracy; the standard error of a probability is at most .008.

    Examples
    --------
    A reviewer who never errs always passes; one who always errs never does:

    >>> from calibration.taxonomy import default_taxonomy
    >>> form = dict.fromkeys(default_taxonomy().credit, 14)
    >>> curve = operating_curve(
    ...     default_taxonomy(), form, rng=np.random.default_rng(1), accuracies=(0, 1), n_draws=9)
    >>> [point.whole for point in curve]
    [0.0, 1.0]
    """
    rule = rule or PassRule()
    names = list(taxonomy.credit)
    sizes = np.array([class_counts.get(name, 0) for name in names])
    spread = _neighbours(taxonomy, names)
    points = []
    for accuracy in accuracies:
        rates = accuracy * np.eye(len(names)) + (1 - accuracy) * spread
        tables = np.stack(
            [rng.multinomial(n, p, size=n_draws) for n, p in zip(sizes, rates, strict=True)], axis=1
        )
        points.append(_point(accuracy, tables, rule, rng))
    return tuple(points)


def _point(
    accuracy: float, tables: IntArray, rule: PassRule, rng: np.random.Generator
) -> OperatingPoint:
    agrees = ac1_lower_limits(tables, confidence_level=rule.confidence_level) >= rule.ac1
    sizes = tables[0].sum(axis=1)
    there = sizes > 0
    hits = np.diagonal(tables, axis1=1, axis2=2)[:, there]
    sizes = sizes[there]
    needed, more = (
        np.array([hits_needed(int(n) + extra, rule) for n in sizes]) for extra in (0, rule.top_up)
    )
    topped = hits + rng.binomial(rule.top_up, accuracy, size=hits.shape)
    shown = (hits >= needed) | (topped >= more)
    whole = float((agrees & shown.all(axis=1)).mean())
    return OperatingPoint(
        accuracy=accuracy,
        agreement=float(agrees.mean()),
        with_floor=float((agrees & (hits >= rule.recall * sizes).all(axis=1)).mean()),
        whole=whole,
        twice=1 - (1 - whole) ** 2,
    )


def right_needed(
    taxonomy: Taxonomy, class_counts: Mapping[str, int], rule: PassRule | None = None
) -> int:
    """Return about how many traces of a form must be right to pass, for people to aim at.

    The fewest at which the lower limit of AC1 is that of the rule when the errors are spread as
    expected: equally over the classes, and in each over the questions of the path. Other errors
    can need one or two more or fewer, and every class has to be recognised besides.

    Raises
    ------
    ValueError
        If not even all of them would be enough, or there is none.

    Examples
    --------
    >>> from calibration.taxonomy import default_taxonomy
    >>> right_needed(default_taxonomy(), dict.fromkeys(default_taxonomy().credit, 14))
    61
    """
    rule = rule or PassRule()
    names = list(taxonomy.credit)
    sizes = np.array([class_counts.get(name, 0) for name in names])
    spread, total = _neighbours(taxonomy, names), int(sizes.sum())
    if not total:
        raise ValueError("the form has no trace of these classes")
    right = np.arange(total + 1)[:, None, None] / total
    tables = sizes[:, None] * (right * np.eye(len(names)) + (1 - right) * spread)
    limits = ac1_lower_limits(tables, confidence_level=rule.confidence_level)
    enough = np.flatnonzero(limits >= rule.ac1)
    if not enough.size:
        raise ValueError(f"no number of right answers passes on {total} traces")
    return int(enough[0])


def _neighbours(taxonomy: Taxonomy, names: Sequence[str]) -> FloatArray:
    """Return the distribution of wrong classes (columns) by true class (rows)."""
    paths = dict(zip(names, taxonomy.paths(names), strict=True))
    spread = np.zeros((len(names), len(names)))
    for row, name in enumerate(names):
        for place, (node, answer) in enumerate(paths[name]):
            before = paths[name][:place]
            across = [
                column
                for column, other in enumerate(names)
                if paths[other][:place] == before and dict(paths[other]).get(node, answer) != answer
            ]
            spread[row, across] += 1 / (len(paths[name]) * len(across))
    return spread


def ac1_lower_limits(
    tables: IntArray | FloatArray, *, confidence_level: float = 0.95
) -> FloatArray:
    """Return the lower limit of AC1 for many two-way tables at once, shape (n_tables,).

    As `calibration.agreement.annotators` computes it: jackknife, Fisher z; the exact bound where
    there is no disagreement.

    Parameters
    ----------
    tables : int or float array, shape (n_tables, n_classes, n_classes)
        Items by class of the key and class given; the same number, two or more, in each table.
    confidence_level : float, default 0.95

    Examples
    --------
    Ten items in each of two classes, all agreed: 1 - .16843 / (1 - 1/2).

    >>> ac1_lower_limits(np.array([[[10, 0], [0, 10]]]))
    array([0.66313])
    """
    n_tables, q, _ = tables.shape
    cells = tables.reshape(n_tables, q * q).astype(float)
    n = float(cells[0].sum())
    used = (tables.sum(axis=1) + tables.sum(axis=2)) / 2
    differ = 1 - np.eye(q).ravel()
    apart = cells @ differ
    squares = (used**2).sum(axis=1)
    expected = 1 - (1 - squares / n**2) / (q - 1)
    value = 1 - apart / n / expected
    i, j = np.divmod(np.arange(q * q), q)
    # Without an item of cell (i, j) the uses of i and j fall by half each.
    left = squares[:, None] - used[:, i] - used[:, j] + np.where(i == j, 1.0, 0.5)
    left_expected = 1 - (1 - left / (n - 1) ** 2) / (q - 1)
    left_out = 1 - (apart[:, None] - differ) / (n - 1) / left_expected
    mean = (cells * left_out).sum(axis=1) / n
    se = np.sqrt((n - 1) / n * (cells * (left_out - mean[:, None]) ** 2).sum(axis=1))
    agreed = apart == 0
    inside = np.clip(value, -1 + NO_SPREAD, 1 - NO_SPREAD)
    reach = two_sided_t(confidence_level, n - 1) * se / (1 - inside**2)
    bound = 1 - zero_event_upper_bound(int(n), confidence_level=confidence_level) / expected
    return np.asarray(np.where(agreed, bound, np.tanh(np.arctanh(inside) - reach)))
