"""Calibrate a judge against human labels, and give production traces class probabilities."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.coefficients import KRIPPENDORFF_ALPHA, UnitSums
from calibration.analyses.evidence.data import (
    BY,
    MISSING,
    CalibrationData,
    Provenance,
    ReviewedTrace,
    differing_traces,
    group_names,
)
from calibration.analyses.evidence.from_store import load_batch, load_judged, with_judge
from calibration.errors import CalibrationError
from calibration.judge_calibration.calibrate import (
    Calibration,
    NetGross,
    calibrate,
    calibrate_tables,
)
from calibration.judge_calibration.post_stratification import Estimand, IfSkipped, if_skipped
from calibration.judge_calibration.reviewer_error import (
    EFFECTS_METHOD,
    NoiseCeiling,
    noise_ceiling,
    reviewer_effects,
)
from calibration.judge_calibration.samples import (
    ESTIMATORS,
    HEADLINE,
    HEADLINES,
    ClassQuality,
    Composition,
    Design,
    JudgeQuality,
    LabelledSample,
    LevelCounts,
    Notice,
    composition,
    composition_of_counts,
    missed_levels,
)
from calibration.judge_calibration.strata import ClassProbabilities, class_probabilities
from calibration.statistics.estimate import Estimate, cluster_indices, not_estimable
from calibration.statistics.intervals import METHOD, exact_limits
from calibration.statistics.means import MeanAgainstZero, mean_against_zero
from calibration.success_rate.runs import class_credit, gross_scores
from calibration.tables.reading import Reading
from calibration.tables.vocabulary import Recoded
from calibration.text import counted

if TYPE_CHECKING:
    from calibration.store import Store

# Above this share of skipped traces, text and pages give their worst-case effect.
SKIPPED_SHARE_SHOWN = 0.03

# The uncorrected rate uses no labels.
WITHOUT_LABELS = ("judge_raw",)

# Workflows and judges with a smaller share of either side are ignored.
SHARE_THAT_COUNTS = 0.02

AUDIT_METHOD = "agreed traces labelled again, exact binomial"

# Refusals of every estimator that uses labels.
EVERY = ""

# Above this part of the interval, a difference of plug-in mean and headline is noted.
TOLERATED = 0.1

# Kappa from which on verdicts look reversed, whatever its interval.
REVERSED = -0.2

OF_TRACE = ("trace_id", "workflow", "task_key", "judge_id", "verdict")
OF_CLASSES = ("likeliest", "probability", "entropy_bits", "basis", "basis_labels", "calibration")

CHOSEN = Notice(
    code="chosen",
    estimator=EVERY,
    why="the labelled traces were chosen and not drawn at random: no rate follows from them",
    mend="label at least 100 traces drawn at random from production",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationOptions:
    """Options of a calibration and of the results beside the rate.

    `design`, `pseudo_count`, `confidence_level`, `seed`, `estimand` and `estimators` are those of
    `calibration.judge_calibration.calibrate.calibrate`, `judge_family` that of `diagnose`. `by` is
    one of `BY`. `against` is a judge to compare with; of files also another file of verdicts.
    `diagnostics` are what does not enter the rate.
    """

    design: Design = "production"
    pseudo_count: float = 0.5
    confidence_level: float = 0.95
    seed: int = 0
    estimand: Estimand = "process"
    estimators: Collection[str] = ESTIMATORS
    diagnostics: bool = True
    by: str | None = None
    against: str | None = None
    judge_family: str | None = None

    @property
    def estimation(self) -> dict[str, Any]:
        """The options of the estimators, by name."""
        return {
            "design": self.design,
            "pseudo_count": self.pseudo_count,
            "confidence_level": self.confidence_level,
            "seed": self.seed,
            "estimand": self.estimand,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanSide:
    """The human side of the labelled traces.

    A trace counts by its adjudicated class, otherwise by the mean over its reviewers. `n_shared`
    traces have labels of two or more reviewers; on `n_open` of them reviewers differ without
    adjudication. `skipped_by_verdict` counts traces that reviewers were asked about and did not
    label.
    """

    n_labels: int
    reviewers: tuple[str, ...]
    n_shared: int
    n_adjudicated: int
    n_open: int
    skipped_by_verdict: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCalibration:
    """A judge calibrated against human labels.

    `verdict_names` : the classes first; columns of the confusion table
    `alpha` : Krippendorff's alpha of human against judge
    `human` : None where only a table is known
    `reviewers` : how much higher each reviewer scores than the settled class of shared traces
    `agreed_error` : share of agreed labels that a lead, blind, would give another class; None
        without an audit
    `noise_ceiling` : how well reviewers, and a judge without error, agree with the labels
    `if_skipped` : how far skipped traces could move the headline
    `composition` : whether the labelled traces look like a random sample; None without single
        traces or for a reference set
    `disagreements` : labelled traces on which not every human agrees with the verdict
    `recoded` : outcomes of tables that were taken as others
    `reading` : what was read of the tables of labels and of verdicts, or of the labels of a store
    `titles` : of the classes, where they are those of the taxonomy
    `own_credit` : workflows with other credit, and the classes in question
    """

    provenance: Provenance
    design: Design
    classes: tuple[str, ...]
    credit: dict[str, float]
    verdict_names: tuple[str, ...]
    calibration: Calibration
    alpha: Estimate
    human: HumanSide | None = None
    reviewers: dict[str, Estimate] = field(default_factory=dict)
    noise_ceiling: NoiseCeiling | None = None
    agreed_error: Estimate | None = None
    skipped: int = 0
    if_skipped: IfSkipped | None = None
    composition: Composition | None = None
    disagreements: tuple[ReviewedTrace, ...] = ()
    notes: tuple[str, ...] = ()
    reading: tuple[Reading, ...] = ()
    recoded: tuple[Recoded, ...] = ()
    titles: dict[str, str] = field(default_factory=dict)
    own_credit: dict[str, dict[str, float]] = field(default_factory=dict)
    seed: int = 0
    estimand: Estimand = "process"
    fingerprint: str

    @property
    def many_skipped(self) -> bool:
        """Whether so many traces were skipped that their worst case is to be told."""
        return self.skipped > SKIPPED_SHARE_SHOWN * (self.skipped + self.calibration.n_labels)


def analyse_judge(
    store: "Store",
    batch_id: str | None = None,
    *,
    judge_id: str | None = None,
    design: Design = "production",
    pseudo_count: float = 0.5,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> JudgeCalibration:
    """Calibrate a judge on a batch of a store, as `calibrate_judge`; raises as `load_judged`."""
    options = CalibrationOptions(
        design=design, pseudo_count=pseudo_count, confidence_level=confidence_level, seed=seed
    )
    return calibrate_judge(load_judged(store, batch_id, judge_id, sample=False), options)


def calibrate_judge(data: CalibrationData, options: CalibrationOptions) -> JudgeCalibration:
    """Calibrate a judge against the human labels.

    With design ``production``, the labelled traces are a random sample of the traces of the rate.
    With ``reference``, they are calibration material outside production, and the judge's error
    rates are assumed to be the same in both. Traces chosen by hand allow no rate: every estimator
    is refused, and only the judge's results on these traces remain. Raises CalibrationError if
    nothing is labelled.
    """
    if not data.at.size and data.stored_batch is not None:
        raise CalibrationError(
            f"batch {data.provenance.batch_id!r} has no labels yet; label it on the Label page"
        )
    sample = data.sample(options.design)
    composed = _composition(data, options)
    result = _checked(data, _estimated(data, sample, options), options)
    result = _with_composition(data, result, composed)
    listed = data.counts is None
    found = JudgeCalibration(
        provenance=data.provenance,
        design=options.design,
        classes=data.classes,
        credit=data.credits,
        verdict_names=data.verdict_names,
        calibration=result,
        alpha=judge_alpha(
            sample,
            n_verdicts=len(data.verdict_names),
            confidence_level=options.confidence_level,
        ),
        human=_human_side(data) if listed else None,
        reviewers=_reviewers(data, sample, options) if options.diagnostics else {},
        noise_ceiling=_noise_ceiling(data, sample, options) if options.diagnostics else None,
        agreed_error=_agreed_error(data, options),
        skipped=data.skipped,
        if_skipped=_if_skipped(data, result, options),
        composition=composed,
        disagreements=differing_traces(data, sample) if listed else (),
        notes=data.notes,
        reading=data.reading,
        recoded=data.recoded,
        titles=data.taxonomy.titles if data.ours else {},
        own_credit=data.credit_table.differing(
            data.classes, sorted(data.traces["workflow"].dropna().astype(str).unique())
        ),
        seed=options.seed,
        estimand=options.estimand,
        fingerprint=data.fingerprint("judge", options.estimation),
    )
    odd = odd_verdicts(found)
    return found if odd is None else replace(found, notes=(odd, *found.notes))


def odd_verdicts(found: JudgeCalibration) -> str | None:
    """Return that the verdicts look reversed, or are all the same, in words; None otherwise.

    They look reversed where kappa of judge and people is below 0 with its whole interval, or is
    -0.2 or less: a judge that guesses has 0. The rate is corrected for either.
    """
    calibration, n_classes = found.calibration, len(found.classes)
    given = (
        calibration.production.counts[:n_classes]
        + calibration.confusion.table.sum(axis=0)[:n_classes]
    )
    (classes,) = np.nonzero(given > 0)
    check = "Check" if calibration.headline is None else "The rate is still valid; check"
    if len(classes) == 1:
        only = found.classes[int(classes[0])]
        return (
            f"The judge gives one verdict only: {found.titles.get(only, only)}. It tells no run "
            f"from another. {check} that its verdicts were read."
        )
    kappa = calibration.judge.kappa
    if kappa.value is None or kappa.value >= 0:
        return None
    limits = kappa.interval
    if kappa.value > REVERSED and (limits is None or limits[1] >= 0):
        return None
    between = "" if limits is None else f" [{limits[0]:.2f}, {limits[1]:.2f}]"
    return (
        f"The verdicts look reversed: kappa {kappa.value:.2f}{between}. {check} which word is a "
        "pass."
    )


def rate_of_other(data: CalibrationData, judge: JudgeCalibration) -> Estimate:
    """Return the headline of a calibration on its data at other credit or other penalties."""
    options = CalibrationOptions(
        design=judge.design,
        confidence_level=judge.calibration.confidence_level,
        seed=judge.seed,
        estimand=judge.estimand,
    )
    found = _estimated(data, data.sample(judge.design), options, HEADLINES).headline_estimate
    if found is None:
        why = "the estimator is refused at these weights"
        return not_estimable(why, method=HEADLINE[judge.design])
    return found.net


def _estimated(
    data: CalibrationData,
    sample: LabelledSample,
    options: CalibrationOptions,
    estimators: Collection[str] | None = None,
) -> Calibration:
    estimators = options.estimators if estimators is None else estimators
    if data.counts is not None:
        return calibrate_tables(
            confusion_counts(data), data.counts, credit=data.credit,
            verdict_names=data.verdict_names, estimators=estimators, **options.estimation,
        )  # fmt: skip
    counted = data.production(options.design)
    tables, table = data.tables
    return calibrate(
        sample,
        production_verdicts=data.verdicts[counted],
        production_penalties=data.penalties[counted],
        production_tasks=data.tasks[counted],
        production_table=None if table is None else table[counted],
        credit=tables,
        n_verdicts=len(data.verdict_names),
        verdict_names=data.verdict_names,
        open_disagreements=data.open_disagreements,
        overlap_random=data.overlap_random,
        estimators=estimators,
        **options.estimation,
    )


def confusion_counts(data: CalibrationData) -> NDArray[np.int64]:
    """Return labelled traces by human class and verdict, of data that are counted tables."""
    shape = len(data.classes), len(data.verdict_names)
    cells = data.human.argmax(axis=1) * shape[1] + data.verdicts
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)


def _checked(
    data: CalibrationData, result: Calibration, options: CalibrationOptions
) -> Calibration:
    """Refuse and warn where labels drawn elsewhere cannot support a result."""
    if data.sampling == "drawn":
        return result
    result = checked_claims(data, result, options.design)
    if data.sampling == "chosen":
        return refused(result, [CHOSEN])
    counted = data.production(options.design)
    if options.design == "production" or data.counts is not None or not counted.any():
        return result
    reference, production = data.traces.iloc[data.at], data.traces[counted]
    objections = [
        notice
        for code, what, name in (
            ("other_workflows", "workflows", "workflow"), ("other_judge", "judges", "judge"),
        )
        for notice in other_side(code, what, reference[name].tolist(), production[name].tolist())
    ]  # fmt: skip
    result = refused(result, objections)
    period = _other_period(reference["started_at"], production["started_at"])
    return replace(result, warnings=(*result.warnings, *period))


def _other_period(reference: pd.Series, production: pd.Series) -> tuple[Notice, ...]:
    """Warn when more than half of production started outside the period of the reference."""
    before, after = reference.dropna(), production.dropna()
    if before.empty or after.empty:
        return ()
    first, last = before.min(), before.max()
    outside = int((~after.between(first, last)).sum())
    if outside <= len(after) / 2:
        return ()
    return (
        Notice(
            code="other_period",
            estimator=HEADLINE["reference"],
            why=f"{outside:,} of {len(after):,} production traces started before or after the "
            f"reference traces ({first:%Y-%m-%d} to {last:%Y-%m-%d})",
            mend="label production traces of that period",
        ),
    )


def _composition(data: CalibrationData, options: CalibrationOptions) -> Composition | None:
    """Test that the traces asked about look like production; None where that is not the design."""
    if options.design != "production" or not data.is_sample:
        return None
    if data.counts is not None:
        return composition_of_counts({"verdict": _by_verdict(data, options.design)})
    asked = np.zeros(len(data.verdicts), dtype=bool)
    asked[data.at] = asked[data.skipped_at] = True
    columns = {"verdict": np.array(data.verdict_names)[data.verdicts]}
    for name in (*BY, "judge"):
        of_versions = name == "agent" and "agent_version" in data.traces
        if of_versions or name in data.traces or name == "week":
            columns[name] = group_names(data.traces, name)
    if data.weights is not None and (data.strata is None or (data.strata == MISSING).any()):
        skipped = np.zeros(0) if data.skipped_weights is None else data.skipped_weights
        return missed_levels(columns, asked, np.concatenate([data.weights, skipped]))
    return composition(columns, asked, data.strata)


def _by_verdict(data: CalibrationData, design: Design) -> LevelCounts:
    """Return labelled and other traces by verdict."""
    asked = np.bincount(data.verdicts[data.at], minlength=len(data.verdict_names))
    whole = data.production_counts("production")
    if data.counts is not None and design == "reference":
        whole = whole + asked
    return data.verdict_names, np.column_stack([asked, whole - asked])[None].astype(np.float64)


def _with_composition(
    data: CalibrationData, found: Calibration, composed: Composition | None
) -> Calibration:
    """Refuse and warn where the labelled traces are no random part of production."""
    if composed is None:
        return found
    labels = f"{found.n_labels:,} traces drawn at random would hold some"
    mend = "draw traces at random from all of production and label those"
    objections = [
        Notice(
            code="not_a_sample",
            estimator=EVERY,
            why=f"no label on a trace of {column} {level:.60}, 5 % of production or more: {labels}",
            mend=mend,
        )
        for column, level in composed.refused
    ]
    warnings = [
        Notice(
            code="composition",
            estimator=HEADLINE["production"],
            why=f"by {column} the labelled traces differ from production (p "
            f"{composed.p_holm[column]:.2g}, Holm)",
            mend=mend,
        )
        for column in composed.warned
    ]
    found = replace(found, warnings=(*found.warnings, *warnings))
    return refused(found, objections)


def _human_side(data: CalibrationData) -> HumanSide:
    per_trace = data.labels.groupby("trace_id").size()
    return HumanSide(
        n_labels=len(data.labels),
        reviewers=data.reviewers,
        n_shared=int((per_trace >= 2).sum()),
        n_adjudicated=int(data.adjudicated.sum()),
        n_open=data.open_disagreements,
        skipped_by_verdict=data.skipped_by_verdict(),
    )


def _reviewers(
    data: CalibrationData, sample: LabelledSample, options: CalibrationOptions
) -> dict[str, Estimate]:
    """Return how much higher each reviewer scores than the settled class of shared traces."""
    shared, level = sample.overlap, options.confidence_level
    if shared is None:
        return {}
    names = sorted(data.labels["reviewer_id"].unique())
    if data.open_disagreements:
        # Those settled so far are the ones on which reviewers agree.
        refused = not_estimable(
            _still_open(data), method=EFFECTS_METHOD, n=0, confidence_level=level
        )
        return dict.fromkeys(names, refused)
    credit = data.credit_of(data.labelled, shared)
    worth = np.maximum(0.0, credit - data.penalties[data.at][shared, None])
    settled = data.human[shared].argmax(axis=1)
    effects = reviewer_effects(data.codes()[shared], settled, worth, confidence_level=level)
    return dict(zip(names, effects, strict=True))


def _noise_ceiling(
    data: CalibrationData, sample: LabelledSample, options: CalibrationOptions
) -> NoiseCeiling | None:
    """Return the best agreement with the labels that a judge could show; None without overlap."""
    if sample.overlap is None:
        return None
    if data.open_disagreements:
        refused = not_estimable(_still_open(data), method="single reviewers on the overlap")
        return NoiseCeiling(reviewer=refused, judge=refused)
    return noise_ceiling(sample, confidence_level=options.confidence_level)


def _agreed_error(data: CalibrationData, options: CalibrationOptions) -> Estimate | None:
    """Return how often a lead calls an agreed trace something else; None without an audit."""
    if data.audit is None:
        return None
    n, level = len(data.audit), options.confidence_level
    if not n:
        why = "the audit of agreed labels waits for its lead on the Label page"
        return not_estimable(why, method=AUDIT_METHOD, confidence_level=level)
    share = sum(data.audit) / n
    return Estimate(
        value=share,
        interval=exact_limits(share, float(n), level),
        n=n,
        method=AUDIT_METHOD,
        confidence_level=level,
    )


def audited(error: Estimate) -> str:
    """Return what the audit of agreed labels found."""
    if error.value is None or error.interval is None:
        return error.status.removeprefix("not_estimable: ")
    low, high = (f"{100 * limit:.1f}" for limit in error.interval)
    return (
        f"audit of agreed labels: a lead, blind, gives {round(error.value * error.n)} of "
        f"{error.n:,} another class, {100 * error.value:.1f} % [{low}, {high}]; this error is not "
        "in the interval of the rate"
    )


def _still_open(data: CalibrationData) -> str:
    return f"{counted(data.open_disagreements, 'open disagreement')}: adjudicate them"


def _if_skipped(
    data: CalibrationData, found: Calibration, options: CalibrationOptions
) -> IfSkipped | None:
    """Return how far the skipped traces could move the rate; None without any, or a rate."""
    if not data.skipped or found.headline is None or options.design != "production":
        return None
    rows = np.concatenate([data.at, data.skipped_at])
    weights = None
    if data.weights is not None and data.skipped_weights is not None:
        weights = np.concatenate([data.weights, data.skipped_weights])
    anything = np.eye(len(data.classes))[np.zeros(data.skipped, dtype=np.int64)]
    table = data.tables[1]
    return if_skipped(
        LabelledSample(
            human=np.vstack([data.human, anything]),
            verdicts=data.verdicts[rows],
            penalties=data.penalties[rows],
            weights=weights,
            clusters=data.tasks[rows],
            table=None if table is None else table[rows],
        ),
        np.arange(rows.size) >= data.at.size,
        found.production,
        strata=found.post_stratification.strata,
        estimand=options.estimand,
        confidence_level=options.confidence_level,
    )


def refused(calibration: Calibration, objections: Iterable[Notice]) -> Calibration:
    """Refuse every estimator that uses the labels, if there are objections."""
    found = list(objections)
    if not found:
        return calibration
    against = [name for name in calibration.estimates if name not in WITHOUT_LABELS]
    notices = [replace(one, estimator=name) for one in found for name in against]
    why = "; ".join(f"{one.why} ({one.mend})" for one in found)
    return replace(
        calibration,
        headline=None,
        estimates={
            name: NetGross(net=_refused(e.net, why), gross=_refused(e.gross, why))
            if name in against
            else e
            for name, e in calibration.estimates.items()
        },
        class_shares={
            name: tuple(_refused(share, why) for share in shares)
            for name, shares in calibration.class_shares.items()
        },
        gain=None if calibration.gain is None else _refused(calibration.gain, why),
        two_phase=None
        if calibration.two_phase is None
        else replace(calibration.two_phase, estimate=_refused(calibration.two_phase.estimate, why)),
        refusals=(*notices, *calibration.refusals),
        # Advice on a narrower interval is useless without a number.
        warnings=tuple(w for w in calibration.warnings if w.estimator not in against),
    )


def _refused(estimate: Estimate, why: str) -> Estimate:
    if not estimate.ok:
        why = f"{why}; {estimate.status.removeprefix('not_estimable: ')}"
    return not_estimable(
        why, method=estimate.method, n=estimate.n, confidence_level=estimate.confidence_level
    )


def checked_claims(data: CalibrationData, found: Calibration, design: Design) -> Calibration:
    """Refuse and warn where labels of one class, or of one verdict, may have been chosen.

    Refusal: ``one_class_only`` (every label is of one class, and no random sample of production;
    only its recall can be known). Warning: ``chosen_by_verdict`` (all labelled traces have one
    verdict, and a random sample would hold others, so that recall may be 1 by construction).
    """
    table, labels = found.confusion.table, found.n_labels
    only, seen = (np.flatnonzero(table.sum(axis=axis) > 0) for axis in (1, 0))
    lacking = composition_of_counts({"verdict": _by_verdict(data, design)}).refused
    if only.size == 1 and (lacking or design == "reference" or not data.is_sample):
        found = replace(found, judge=_of_one_class(found.judge))
        found = refused(found, [_one_class(data.classes[int(only[0])], labels)])
    if seen.size != 1 or not lacking:
        return found
    counts = data.production_counts(design if data.is_sample else "production")
    share = float(counts[seen[0]] / max(1, counts.sum()))
    warning = _chosen(data.verdict_names[int(seen[0])], share, labels)
    return replace(found, warnings=(*found.warnings, warning))


def _one_class(name: str, n: int) -> Notice:
    return Notice(
        estimator=EVERY,
        code="one_class_only",
        why=f"all {n:,} labelled traces are of the human class {name}: only its recall can be "
        "known, no rate",
        mend="label traces of the other classes, best 100 drawn at random from production",
    )


def _chosen(name: str, share: float, n: int) -> Notice:
    return Notice(
        code="chosen_by_verdict",
        estimator="judge",
        why=f"all {n:,} labelled traces have the verdict {name}, {100 * share:.1f} % of "
        "production: if they were chosen by their verdict, recall is 1 or 0 by construction",
        mend="label traces whatever their verdict",
    )


def _of_one_class(quality: JudgeQuality) -> JudgeQuality:
    """Keep recall alone: all other results need labels of further classes."""
    why = "every label is of one class; label traces of the others"
    return replace(
        quality,
        accuracy=_refused_quality(quality.accuracy, why),
        per_class=tuple(
            ClassQuality(
                recall=one.recall,
                precision=_refused_quality(one.precision, why),
                n_human=one.n_human,
                n_judge=one.n_judge,
            )
            for one in quality.per_class
        ),
    )


def _refused_quality(estimate: Estimate, why: str) -> Estimate:
    return _refused(estimate, why) if estimate.ok else estimate


def other_side(
    code: str, what: str, reference: Sequence[str], production: Sequence[str]
) -> list[Notice]:
    """Object to a reference set with other workflows, or another judge, than production.

    Examples
    --------
    >>> other_side("other_workflows", "workflows", ["a"] * 9, ["a"] * 5 + ["b"] * 5)[0].why
    'workflows of production without a reference label: b (50.0 %)'
    """
    sides = (
        (reference, production, f"{what} of production without a reference label"),
        (production, reference, f"{what} of the reference that production does not have"),
    )
    found = []
    for known, asked, why in sides:
        names, counts = np.unique(np.array(asked, dtype=object).astype(str), return_counts=True)
        share = counts / max(1, len(asked))
        strange = [
            f"{name:.60} ({100 * part:.1f} %)"
            for name, part in zip(names.tolist(), share.tolist(), strict=True)
            if name not in set(known) and part > SHARE_THAT_COUNTS
        ]
        if strange:
            listed = ", ".join(strange[:5]) + (", ..." if len(strange) > 5 else "")
            found.append(
                Notice(
                    code=code,
                    estimator=EVERY,
                    why=f"{why}: {listed}",
                    mend="label 100 random production traces, or reference traces like them",
                )
            )
    return found


def judge_alpha(
    sample: LabelledSample, *, n_verdicts: int, confidence_level: float = 0.95
) -> Estimate:
    """Estimate nominal alpha of two raters, the human side and the judge.

    A trace with several reviewers counts as the mean over pairs of one reviewer and the judge. A
    verdict that is no class is a class that humans never use, as in kappa. Traces are a random
    sample and independent, or independent between clusters when given. The interval is the
    delete-one jackknife (by cluster where given) on the Fisher z scale.

    Parameters
    ----------
    sample : LabelledSample
        Its weights are scaled to the effective number of traces.
    n_verdicts : int
        Number of verdict codes, at least the number of classes.
    confidence_level : float, default 0.95

    Examples
    --------
    Three of four agree; of 8 ratings 5 and 3 are of each class: 1 - (1/4) / (2 x 15 / (8 x 7)).

    >>> sample = LabelledSample(human=np.eye(2)[[0, 0, 1, 1]], verdicts=np.array([0, 0, 0, 1]))
    >>> judge_alpha(sample, n_verdicts=2).value
    0.53333
    """
    human = np.asarray(sample.human, dtype=np.float64)
    n, n_classes = human.shape
    if n == 0:
        why = "no labelled traces with a verdict: label some"
        return not_estimable(why, method=METHOD, confidence_level=confidence_level)
    agreed = human[np.arange(n), np.minimum(sample.verdicts, n_classes - 1)]
    apart = np.where(sample.verdicts < n_classes, 1 - agreed, 1.0)
    used = np.eye(n_verdicts)[sample.verdicts]
    used[:, :n_classes] += human
    # In the form of `KRIPPENDORFF_ALPHA`: disagreeing pairs, ratings, ratings of each class.
    features = np.column_stack([2 * apart, np.full(n, 2.0), used])
    if sample.weights is not None:
        weight = np.asarray(sample.weights, dtype=np.float64)
        features *= (weight * weight.sum() / (weight @ weight))[:, None]
    units, unit = np.ones(n, dtype=np.int64), "items"
    index = cluster_indices(sample.clusters, n)
    if index is not None:
        summed = np.zeros((int(index.max()) + 1, features.shape[1]))
        np.add.at(summed, index, features)
        features, units, unit = summed, np.ones(len(summed), dtype=np.int64), "clusters"
    elif sample.weights is None:
        features, units = np.unique(features, axis=0, return_counts=True)
    return UnitSums(
        coefficient=KRIPPENDORFF_ALPHA,
        features=features,
        multiplicity=units,
        ratings=np.full(len(units), 2),
        distances=1 - np.eye(n_verdicts),
        alike=bool(np.ptp(apart) < 1e-10),
        unit=unit,
    ).jackknife(confidence_level=confidence_level)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalibratedLabels:
    """Class probabilities of every production trace of the population of a batch.

    `frame` has one row per trace: `OF_TRACE`, the probability of each class, the likeliest class
    and its probability, the entropy in bits, whether the labels behind it are of its verdict in its
    workflow or everywhere, their number, and the fingerprint of the calibration. `plug_in`, the
    mean of sum over classes of probability x max(0, credit - penalty), must not be reported:
    `headline` is the rate. `note` says why the two differ if by more than a tenth of the interval.
    """

    frame: pd.DataFrame
    batch_id: str
    judge_id: str
    headline: Estimate
    plug_in: float
    note: str | None
    simulated: bool
    fingerprint: str


def calibrated_labels(
    store: "Store", batch_id: str | None = None, *, judge_id: str | None = None
) -> CalibratedLabels:
    """Return the class probabilities of every production trace, given verdict and workflow.

    Raises CalibrationError if the labels allow no corrected rate, and as `analyse_judge`.
    """
    data = with_judge(store, load_batch(store, batch_id), judge_id)
    return labels_of(data, calibrate_judge(data, CalibrationOptions()))


def labels_of(data: CalibrationData, analysis: JudgeCalibration) -> CalibratedLabels:
    """Return the class probabilities of the traces of a calibration."""
    headline = analysis.calibration.headline_estimate
    if headline is None:
        why = "; ".join(f"{n.why} ({n.mend})" for n in analysis.calibration.refusals)
        raise CalibrationError(f"no calibrated labels without a corrected rate: {why}")
    flows, flow = np.unique(data.traces["workflow"].to_numpy(dtype=str), return_inverse=True)
    found = class_probabilities(
        data.human,
        data.verdicts[data.at],
        flow[data.at].astype(np.int64),
        n_segments=flows.size,
        strata=analysis.calibration.post_stratification.strata,
        weights=data.weights,
    )
    given = found.given[data.verdicts, flow]
    worth = np.maximum(0.0, data.credit_of(data.traces) - data.penalties[:, None])
    plug_in = float((given * worth).sum(axis=1).mean())
    return CalibratedLabels(
        frame=_frame(data, analysis, found, flow),
        batch_id=analysis.provenance.batch_id,
        judge_id=analysis.provenance.judge_id,
        headline=headline.net,
        plug_in=plug_in,
        note=_note(plug_in, headline.net),
        simulated=analysis.provenance.simulated,
        fingerprint=analysis.fingerprint,
    )


def _frame(
    data: CalibrationData,
    analysis: JudgeCalibration,
    found: ClassProbabilities,
    flow: NDArray[np.intp],
) -> pd.DataFrame:
    verdict = data.verdicts
    given = found.given[verdict, flow]
    likeliest = given.argmax(axis=1)
    basis = np.where(found.by_segment[verdict, flow], "verdict x workflow", "verdict")
    merged = dict(analysis.calibration.post_stratification.strata.merged)
    names = np.array(
        [
            f" (with {analysis.verdict_names[merged[k]]}: few labels)" if k in merged else ""
            for k in range(len(analysis.verdict_names))
        ]
    )
    pooled = np.char.add(basis.astype(str), names[verdict])
    frame = data.traces[["trace_id", "workflow", "task_key"]].copy()
    frame["judge_id"] = analysis.provenance.judge_id
    frame["verdict"] = np.array(analysis.verdict_names)[verdict]
    frame[list(data.classes)] = given
    frame["likeliest"] = np.array(data.classes)[likeliest]
    frame["probability"] = given.max(axis=1)
    frame["entropy_bits"] = -(given * np.log2(given)).sum(axis=1)
    frame["basis"] = np.where(found.by_segment[verdict, flow], basis, pooled)
    frame["basis_labels"] = found.labels[verdict, flow]
    frame["calibration"] = analysis.fingerprint
    return frame[[*OF_TRACE, *data.classes, *OF_CLASSES]]


def _note(plug_in: float, headline: Estimate) -> str | None:
    """Return a note if the mean of the labels could be mistaken for the rate."""
    if headline.value is None or headline.interval is None:
        return "the headline has no interval yet; the mean of these labels is not the rate"
    apart = plug_in - headline.value
    if abs(apart) <= TOLERATED * (headline.interval[1] - headline.interval[0]):
        return None
    return (
        f"the mean of these labels is {plug_in:.3f} and the rate is {headline.value:.3f}: given "
        "verdict and workflow, what a run costs goes with how it ended, and smoothing pulls small "
        "groups together; report the rate, and use the labels to look and to sample"
    )


@dataclass(frozen=True, slots=True, eq=False)
class CreditGaps:
    """Credit of the verdict less the human credit, of labelled traces whose verdict is a class."""

    rows: NDArray[np.bool_]
    verdict_credit: NDArray[np.float64]
    gap: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    tasks: NDArray[np.generic] | None


def credit_gaps(
    data: CalibrationData, sample: LabelledSample, rows: NDArray[np.bool_]
) -> CreditGaps:
    """Return the credit gaps of some labelled traces."""
    of = rows & (sample.verdicts < len(data.classes))
    worth = data.credit_of(data.labelled, of)
    credit = class_credit(worth, sample.verdicts[of])
    weights = sample.weights
    return CreditGaps(
        rows=of,
        verdict_credit=credit,
        gap=credit - gross_scores(np.asarray(sample.human)[of], worth),
        weights=None if weights is None else np.asarray(weights, dtype=np.float64)[of],
        tasks=None if sample.clusters is None else sample.clusters[of],
    )


def leniency_of(
    data: CalibrationData,
    sample: LabelledSample,
    rows: NDArray[np.bool_],
    nothing: str,
    confidence_level: float,
) -> MeanAgainstZero:
    """Estimate the credit of the verdict less the human credit over some labelled traces."""
    of = credit_gaps(data, sample, rows)
    return mean_against_zero(
        of.gap,
        nothing=nothing,
        weights=of.weights,
        clusters=of.tasks,
        confidence_level=confidence_level,
    )
