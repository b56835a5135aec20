"""Diagnostics of a judge: human ceiling, errors by node, leniency, groups.

On arrays: stores, files and tables all come here (`judge_diagnostics`, `file_diagnostics`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.annotators import BesidePanel, outsider_beside_panel
from calibration.agreement.ratings import answers_at, parting_questions
from calibration.analyses.agreement.analysis import planned_codes
from calibration.analyses.evidence.data import UNKNOWN, BothSides, group_names
from calibration.analyses.evidence.from_store import (
    INPUT_COLUMNS,
    VERDICT_NAMES,
    Judged,
    drawn_frame,
    human_frame,
    read_judged,
)
from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.judge.disagreements import Disagreement, disagreements, heard_in_store
from calibration.judge_calibration.bias import (
    HC3,
    MISSING,
    NodeQuality,
    OrdinalAgreement,
    Retest,
    errors_by_node,
    node_quality,
    ordinal_agreement,
    retest,
    slope_within_class,
)
from calibration.judge_calibration.samples import Confusion, Design, confusion
from calibration.records import OUTCOMES, Outcome
from calibration.statistics.contingency import holm
from calibration.statistics.estimate import not_estimable
from calibration.statistics.means import MeanAgainstZero, mean_against_zero
from calibration.store import Store
from calibration.taxonomy import Taxonomy

NO_CLASS = "no labelled trace has a verdict that is a class: run the judge on the labelled traces"

NO_FAMILY = "the model family of the judge is not known: name it with --judge-family"

ONE_CLASS = "every label is of one class; label traces of the others"

NO_MODELS = "no labelled trace says which model ran it"

WEIGHED = (
    "labelled traces weigh as much as they stand for in production, except where the humans are "
    "compared with each other and in the chi-square: there each trace counts once"
)

# A grade tells complete from partial_plus from the rest, as `CLASS_OF_GRADE` of the importers.
STEPS = ("3 or less", "4", "5")

LENIENT_BY = ("agent", "workflow")


__all__ = ["JudgeDiagnostics", "Leniency", "diagnose_judge", "diagnose_judged"]

GRADE_OF_CLASS = {Outcome.COMPLETE.value: "5", Outcome.PARTIAL_PLUS.value: "4"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Leniency:
    """The judge's mean credit less the human one in one group, above zero where it is lenient.

    `p_holm` is the p-value adjusted for the number of groups that were looked at.
    """

    group: str
    verdict_credit: float
    human_credit: float
    gap: MeanAgainstZero
    p_holm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """What a calibrated rate does not show of a judge.

    Parameters
    ----------
    ceiling : dict of str to BesidePanel
        Agreement among the humans and of the judge with them, on the same traces; empty where
        single labels are not known.
    grades : OrdinalAgreement or None
        How close the judge comes where the classes are whole numbers in a row, or where it gave
        grades from 1 to 5.
    grade_names : tuple of str
        What is compared, in order: a human class says no more than `STEPS` of a grade.
    nodes : dict of str to NodeQuality
        By question of the tree, in its order; empty where the classes are not ours.
    errors : dict of str or None to float
        Effective labelled traces by the question at which judge and humans part; None: no verdict.
    disagreements : tuple of Disagreement
        In the order of what they move.
    leniency : MeanAgainstZero
        Over all labelled traces.
    leniency_by : dict of str to tuple of Leniency
        By ``agent`` and ``workflow``, where known.
    slopes : dict of str to MeanAgainstZero
        Change of the gap, within human class, with each doubling of the ``response`` (characters)
        and of the ``steps``, where known.
    own_family : MeanAgainstZero
        Gap on agents of the judge's own model family less that on others, within human class.
    retest : Retest
    missing : tuple of str
        What the source of the labels does not say, and what would have to be given.
    notes : tuple of str
        What a reader must know of all of it.
    """

    verdict_names: tuple[str, ...]
    ceiling: dict[str, BesidePanel]
    grades: OrdinalAgreement | None
    grade_names: tuple[str, ...]
    nodes: dict[str, NodeQuality]
    errors: dict[str | None, float]
    disagreements: tuple[Disagreement, ...]
    leniency: MeanAgainstZero
    leniency_by: dict[str, tuple[Leniency, ...]]
    slopes: dict[str, MeanAgainstZero]
    own_family: MeanAgainstZero
    retest: Retest
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    fingerprint: str


def diagnose(
    sides: BothSides,
    *,
    taxonomy: Taxonomy | None,
    one_class: bool = False,
    disagreements: tuple[Disagreement, ...] = (),
    samples: NDArray[np.int64] | None = None,
    judge_family: str | None = None,
    missing: tuple[str, ...] = (),
    fingerprint: str,
    confidence_level: float = 0.95,
) -> Diagnostics:
    """Compare a judge with the humans on labelled traces.

    Parameters
    ----------
    sides : BothSides
    taxonomy : Taxonomy or None
        None where its questions say nothing about the classes.
    one_class : bool, default False
        Whether every label is of one class because such traces were picked: what averages over
        classes is then not estimable.
    disagreements, missing, fingerprint
        Passed on.
    samples : int array, shape (n_traces, n_samples), optional
        As in `retest`; of any traces, labelled or not.
    judge_family : str, optional
        A word that the names of models of the judge's own family hold, for instance ``gpt``;
        without it self-preference is left out and says so.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.
    """
    level, sample = confidence_level, sides.sample
    crossed = confusion(
        sample.human, sample.verdicts, n_verdicts=len(sides.verdict_names), weights=sample.weights
    )
    nodes, errors = questions(crossed, None if one_class else taxonomy, sides.classes, level)
    leniency = leniency_of(sides, np.ones(len(sample.verdicts), dtype=bool), NO_CLASS, level)
    if one_class:
        sides = replace(sides, groups={}, sizes={})
        refused = not_estimable(ONE_CLASS, method=leniency.estimate.method, confidence_level=level)
        leniency = MeanAgainstZero(estimate=refused, p_value=None)
    again = np.zeros((0, 1), dtype=np.int64) if samples is None else samples
    return Diagnostics(
        verdict_names=sides.verdict_names,
        ceiling=_ceiling(sides, level),
        grades=grades_of(sides, level)
        if sides.grades is not None
        else grades(crossed, sides.classes, level),
        grade_names=sides.classes if sides.grades is None else STEPS,
        nodes=nodes,
        errors=errors,
        disagreements=disagreements,
        leniency=leniency,
        leniency_by={by: _leniency_by(sides, by, level) for by in LENIENT_BY if by in sides.groups},
        slopes={
            name: _slope(sides, np.log2(np.maximum(1, size)), level)
            for name, size in sides.sizes.items()
        },
        own_family=_own_family(sides, judge_family, level),
        # Asked again it may say what it never said first.
        retest=retest(
            again,
            n_verdicts=max(len(sides.verdict_names), int(again.max(initial=0)) + 1),
            confidence_level=level,
        ),
        missing=missing,
        notes=() if sample.weights is None else (WEIGHED,),
        fingerprint=fingerprint,
    )


def grades(
    crossed: Confusion, classes: Sequence[str], confidence_level: float
) -> OrdinalAgreement | None:
    """Compare grades; None unless the classes are whole numbers in a row, as 1 to 5."""
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


def grades_of(sides: BothSides, confidence_level: float) -> OrdinalAgreement:
    """Compare grades from 1 to 5 with our classes, on as many steps as the classes tell apart."""
    step = [STEPS.index(GRADE_OF_CLASS.get(name, STEPS[0])) for name in sides.classes]
    human = sides.sample.human @ np.eye(len(STEPS))[step]
    given = np.zeros(len(human), dtype=np.int64) if sides.grades is None else sides.grades
    # What has no grade is a verdict that is none.
    codes = np.where(given == 0, len(STEPS), np.clip(given - 3, 0, len(STEPS) - 1))
    crossed = confusion(human, codes, n_verdicts=len(STEPS) + 1, weights=sides.sample.weights)
    return ordinal_agreement(crossed.table, confidence_level=confidence_level)


def questions(
    crossed: Confusion, taxonomy: Taxonomy | None, classes: Sequence[str], confidence_level: float
) -> tuple[dict[str, NodeQuality], dict[str | None, float]]:
    """Return the judge's answers at each question, and at which its errors begin."""
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


def leniency_of(
    sides: BothSides, rows: NDArray[np.bool_], nothing: str, confidence_level: float
) -> MeanAgainstZero:
    """Estimate the credit of the verdict less the human one over some labelled traces."""
    of = rows & sides.has_class
    return mean_against_zero(
        sides.gaps(of),
        nothing=nothing,
        weights=sides.weights(of),
        clusters=sides.tasks(of),
        confidence_level=confidence_level,
    )


def _ceiling(sides: BothSides, confidence_level: float) -> dict[str, BesidePanel]:
    if sides.panel is None or sides.panel_verdicts is None:
        return {}
    return outsider_beside_panel(
        sides.panel,
        sides.panel_verdicts,
        n_classes=max(len(sides.classes), int(sides.panel_verdicts.max(initial=0)) + 1),
        confidence_level=confidence_level,
    )


def _leniency_by(sides: BothSides, by: str, confidence_level: float) -> tuple[Leniency, ...]:
    of = np.where(sides.has_class, sides.groups[by], "")
    names = [str(name) for name in np.unique(sides.groups[by][sides.has_class])]
    means = {name: leniency_of(sides, of == name, NO_CLASS, confidence_level) for name in names}
    adjusted = holm({name: m.p_value for name, m in means.items() if m.p_value is not None})
    found = []
    for name, mean in means.items():
        rows = (of == name) & sides.has_class
        said = float(np.average(sides.said(rows), weights=sides.weights(rows)))
        found.append(
            Leniency(
                group=name,
                verdict_credit=said,
                human_credit=said - (mean.estimate.value or 0.0),
                gap=mean,
                p_holm=adjusted.get(name),
            )
        )
    return tuple(sorted(found, key=lambda row: (-row.gap.estimate.n, row.group)))


def _slope(sides: BothSides, size: NDArray[np.float64], confidence_level: float) -> MeanAgainstZero:
    """Estimate how the gap goes with `size`, on the traces where it is known."""
    of = sides.has_class & np.isfinite(size)
    return slope_within_class(
        sides.gaps(of),
        sides.sample.human[of],
        size[of],
        weights=sides.weights(of),
        clusters=sides.tasks(of),
        confidence_level=confidence_level,
    )


def _own_family(sides: BothSides, family: str | None, confidence_level: float) -> MeanAgainstZero:
    models = sides.groups.get("model")
    why = None
    if models is None or (models == UNKNOWN).all():
        why = NO_MODELS
    if family is None or not family.strip():
        why = NO_FAMILY
    if why is not None or models is None or family is None:
        refused = not_estimable(why or "", method=HC3, confidence_level=confidence_level)
        return MeanAgainstZero(estimate=refused, p_value=None)
    word = family.strip().casefold()
    own = np.array([float(word in name.casefold()) for name in models.tolist()])
    return _slope(sides, np.where(models == UNKNOWN, np.nan, own), confidence_level)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeDiagnostics(Diagnostics):
    """What a calibrated rate does not show of a judge of the store."""

    batch_id: str
    judge_id: str
    simulated: bool


def diagnose_judge(
    store: Store,
    batch_id: str | None = None,
    *,
    judge_id: str | None = None,
    design: Design = "production",
    judge_family: str | None = None,
    confidence_level: float = 0.95,
) -> JudgeDiagnostics:
    """Compare a judge with the humans on the labelled traces of a batch.

    `judge_family` is a word that the names of models of the judge's own family hold, for instance
    ``gpt``; without it self-preference is left out and says so.
    """
    judged = read_judged(store, batch_id, judge_id, design=design, sample=False)
    return diagnose_judged(
        store, judged, judge_family=judge_family, confidence_level=confidence_level
    )


def diagnose_judged(
    store: Store,
    judged: Judged,
    *,
    judge_family: str | None = None,
    confidence_level: float = 0.95,
) -> JudgeDiagnostics:
    """Compare a judge with the humans on a batch that is already read."""
    loaded = judged.loaded
    samples = store.verdict_samples(judged.judge_id)
    sides = sides_of_store(store, judged, samples)
    found = diagnose(
        sides,
        taxonomy=loaded.taxonomy,
        disagreements=disagreements(
            sides,
            heard_in_store(loaded, samples, sides.groups),
            judged=np.bincount(judged.population.verdicts, minlength=judged.n_verdicts),
            parting=parting_questions(loaded.taxonomy.paths(OUTCOMES)),
        ),
        samples=_samples(judged, samples),
        judge_family=judge_family,
        fingerprint=_fingerprint(judged, samples, judge_family, confidence_level),
        confidence_level=confidence_level,
    )
    return JudgeDiagnostics(
        **{field.name: getattr(found, field.name) for field in fields(found)},
        batch_id=loaded.batch.batch_id,
        judge_id=judged.judge_id,
        simulated=loaded.simulated,
    )


def sides_of_store(store: Store, judged: Judged, samples: pd.DataFrame) -> BothSides:
    """Return both sides of the labelled traces of a batch, and what the store says of them.

    Judge and humans are compared with each other on the traces that the plan gave to two or more
    reviewers.
    """
    labelled = judged.loaded.labelled
    texts = {t.trace_id: t.response or "" for t in store.for_review(labelled["trace_id"].tolist())}
    planned, codes, _ = planned_codes(judged.loaded)
    rows = planned["trace_id"].map(judged.population.row).to_numpy(dtype=np.int64)
    first = samples[samples["sample"] == 0].drop_duplicates("trace_id")
    grades = (
        labelled["trace_id"]
        .map(first.set_index("trace_id")["grade"])
        .fillna(0)
        .to_numpy(dtype=np.int64)
    )
    return BothSides(
        classes=OUTCOMES,
        verdict_names=VERDICT_NAMES[: judged.n_verdicts],
        credit=judged.credit,
        sample=judged.sample,
        groups={by: group_names(labelled, by) for by in ("agent", "workflow", "model")},
        sizes={
            "response": np.array([len(texts[n]) for n in labelled["trace_id"]], dtype=np.float64),
            "steps": labelled["n_steps"].to_numpy(dtype=np.float64),
        },
        panel=codes,
        panel_verdicts=judged.population.verdicts[rows],
        grades=grades if grades.any() else None,
    )


def _samples(judged: Judged, samples: pd.DataFrame) -> NDArray[np.int64]:
    known = samples[samples["trace_id"].isin(judged.population.row)]
    codes = known["outcome"].map({name: k for k, name in enumerate(VERDICT_NAMES)})
    wide = known.assign(code=codes).pivot_table(
        index="trace_id", columns="sample", values="code", aggfunc="first"
    )
    return wide.fillna(MISSING).to_numpy(dtype=np.int64)


def _fingerprint(
    judged: Judged, samples: pd.DataFrame, judge_family: str | None, confidence_level: float
) -> str:
    loaded = judged.loaded
    return fingerprint(
        taxonomy=loaded.taxonomy.fingerprint,
        settings={
            "kind": "judge diagnostics",
            "judge": judged.judge_id,
            "family": judge_family,
            "design": judged.design,
            "skipped": loaded.skipped,
            "confidence_level": confidence_level,
        },
        labels=loaded.labels[["trace_id", "reviewer_id", "outcome"]],
        human=human_frame(loaded),
        drawn=drawn_frame(loaded),
        traces=loaded.traces[[*INPUT_COLUMNS, "model", "agent_version", "n_steps"]],
        verdicts=samples[["trace_id", "sample", "outcome"]],
    )
