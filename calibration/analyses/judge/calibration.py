"""Calibrate a judge against human labels: on a store, on files, on counted tables.

The store draws its batches itself. A file only claims that its labels are a random sample.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from calibration.agreement.coefficients import KRIPPENDORFF_ALPHA, from_features
from calibration.analyses.evidence.from_files import Ceilings, JoinedFiles, human_shares, join_files
from calibration.analyses.evidence.from_store import (
    INPUT_COLUMNS,
    VERDICT_NAMES,
    JudgedPopulation,
    LabelledBatch,
    choose_batch,
    choose_judge,
    drawn_frame,
    human_frame,
    judged_population,
    labelled_rows,
    labelled_sample,
    load_batch,
    refuse_mixture,
    standing_in,
)
from calibration.analyses.fingerprint import fingerprint
from calibration.errors import CalibrationError, InputError
from calibration.judge_calibration.calibrate import (
    Calibration,
    NetGross,
    calibrate,
    calibrate_tables,
)
from calibration.judge_calibration.refusals import Notice
from calibration.judge_calibration.samples import (
    ESTIMATORS,
    HEADLINE,
    ClassQuality,
    Design,
    JudgeQuality,
    LabelledSample,
)
from calibration.records import OUTCOMES, SetAside
from calibration.statistics.estimate import Estimate, not_estimable
from calibration.statistics.intervals import METHOD
from calibration.store import Store
from calibration.tables.labels import LabelFile, LabelRow, VerdictFile, VerdictRow
from calibration.taxonomy import default_taxonomy
from calibration.trace_formats.fields import FieldError, number, whole, wrong
from calibration.trace_formats.json_scanner import decode_text

# Above this share of skipped traces the report says what the worst of them could do.
SKIPPED_SHARE_SHOWN = 0.03


# The judge as it is rests on no label.
WITHOUT_LABELS = ("judge_raw",)

# A random sample that leaves out a verdict by chance as rarely as this is none.
TOO_UNLIKELY = 0.001

# Workflows and judges with a smaller share of either side say nothing against the other.
SHARE_THAT_COUNTS = 0.02


# Each reviewer left out is a calibration of its own.
REVIEWERS_LEFT_OUT = 12


REQUIRED = ("design", "classes", "credit", "confusion", "production_judge_counts")

OPTIONAL = ("judge_classes",)

MAX_CLASSES = 200

# Labelled traces are told apart below; nobody labels as many.
MAX_LABELS = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """How to calibrate; as the parameters of `calibrate`."""

    design: Design = "production"
    pseudo_count: float = 0.5
    confidence_level: float = 0.95
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanSide:
    """What the human side of the labelled traces is made of.

    A trace counts by its adjudicated class if it has one, else by the mean over its reviewers.

    Parameters
    ----------
    n_labels : int
        Labels behind the traces.
    reviewers : tuple of str
        Empty where they are not named.
    n_shared : int
        Traces with labels of two or more reviewers.
    n_adjudicated, n_open : int
        Traces that somebody has settled; traces on which reviewers differ and nobody has.
    skipped_by_verdict : dict of int
        Traces that reviewers were asked about and did not label, by what the judge said.
    """

    n_labels: int
    reviewers: tuple[str, ...]
    n_shared: int
    n_adjudicated: int
    n_open: int
    skipped_by_verdict: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A judge calibrated against human labels.

    Parameters
    ----------
    design : {"production", "reference"}
    classes : tuple of str
        In the order of `calibration`.
    credit : dict of float
        By class.
    verdict_names : tuple of str
        The classes first; one a column of the confusion table.
    alpha : Estimate
        Krippendorff's alpha of human against judge.
    human : HumanSide or None
        None where only a table is known.
    without_reviewer : dict of float or None
        The headline when one reviewer's labels are left out: reviewer error is shown there and is
        not part of the interval.
    skipped : int
        Traces that were asked about and not labelled.
    if_skipped : tuple of float, optional
        The headline under the worst and the best class for skipped traces, when more than 3 %
        were skipped.
    disagreements : tuple of dict
        Labelled traces on which not every human agrees with the verdict.
    notes : tuple of str
        What a reader must know that is neither refusal nor warning.
    set_aside : tuple of SetAside
        Rows that were not used, and why.
    """

    design: Design
    classes: tuple[str, ...]
    credit: dict[str, float]
    verdict_names: tuple[str, ...]
    calibration: Calibration
    alpha: Estimate
    human: HumanSide | None = None
    without_reviewer: dict[str, float | None] = field(default_factory=dict)
    skipped: int = 0
    if_skipped: tuple[float, float] | None = None
    disagreements: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    seed: int = 0
    fingerprint: str


def range_if_skipped(
    calibration: Calibration, *, skipped: int, labelled: int
) -> tuple[float, float] | None:
    """Return the headline if every skipped trace were worth nothing, and if every one were whole.

    None without a headline or when at most 3 % were skipped.
    """
    asked = skipped + labelled
    headline = calibration.headline_estimate
    if headline is None or headline.net.value is None or skipped <= SKIPPED_SHARE_SHOWN * asked:
        return None
    share = skipped / asked
    low = (1 - share) * headline.net.value
    return low, low + share


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """Why nothing may be estimated from these labels; a `Notice` once it meets an estimator."""

    code: str
    why: str
    mend: str


def refused(calibration: Calibration, objections: Iterable[Objection]) -> Calibration:
    """Refuse every estimator that rests on the labels; without objections nothing changes."""
    found = list(objections)
    if not found:
        return calibration
    against = [name for name in calibration.estimates if name not in WITHOUT_LABELS]
    notices = [
        Notice(code=one.code, estimator=name, why=one.why, mend=one.mend)
        for one in found
        for name in against
    ]
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
        refusals=(*notices, *calibration.refusals),
        # What would make a number narrower says nothing where there is none.
        warnings=tuple(w for w in calibration.warnings if w.estimator not in against),
    )


def _refused(estimate: Estimate, why: str) -> Estimate:
    if not estimate.ok:
        why = f"{why}; {estimate.status.removeprefix('not_estimable: ')}"
    return not_estimable(
        why, method=estimate.method, n=estimate.n, confidence_level=estimate.confidence_level
    )


def checked_claims(
    calibration: Calibration,
    *,
    production_counts: ArrayLike,
    verdict_names: Sequence[str],
    classes: Sequence[str],
) -> Calibration:
    """Refuse what labels of one class, or of chosen traces, cannot support.

    Parameters
    ----------
    calibration : Calibration
    production_counts : array-like of int, shape (n_verdicts,)
        Judged production traces by verdict.
    verdict_names, classes : sequence of str
        In the order of the confusion table.

    Returns
    -------
    Calibration
        With the refusals ``one_class_only`` (every label is of one class: the recall of that class
        is what can be known) and, for design ``"production"``, ``not_a_sample`` (a verdict that a
        random sample would hold has no label). Warned of ``chosen_by_verdict``: every labelled
        trace has one verdict, so that recall may be 1 by construction.
    """
    table = calibration.confusion.table
    labelled, labels = table.sum(axis=0), calibration.n_labels
    share = _shares(production_counts)
    unlikely = (labelled == 0) & ((1 - share) ** labels < TOO_UNLIKELY)
    missing = np.flatnonzero(unlikely).tolist()
    objections = []
    only = np.flatnonzero(table.sum(axis=1) > 0)
    if only.size == 1:
        objections.append(_one_class(classes[int(only[0])], labels))
        judge = _of_one_class(calibration.judge)
        calibration = replace(calibration, judge=judge)
    if calibration.design == "production" and missing:
        objections += [_not_drawn(verdict_names[k], float(share[k]), labels) for k in missing]
    seen = np.flatnonzero(labelled > 0)
    result = refused(calibration, objections)
    if seen.size == 1 and missing:
        one = verdict_names[int(seen[0])]
        warning = _chosen(one, float(share[seen[0]]), labels)
        result = replace(result, warnings=(*result.warnings, warning))
    return result


def _shares(counts: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(counts, dtype=np.float64)
    return array / max(1.0, float(array.sum()))


def _one_class(name: str, n: int) -> Objection:
    return Objection(
        code="one_class_only",
        why=f"all {n:,} labelled traces are of the human class {name}: only its recall can be "
        "known, no rate",
        mend="label traces of the other classes, best 100 drawn at random from production",
    )


def _not_drawn(name: str, share: float, n: int) -> Objection:
    return Objection(
        code="not_a_sample",
        why=f"no label on a trace with verdict {name}, {100 * share:.1f} % of production: "
        f"{n:,} traces drawn at random would hold some",
        mend="draw traces at random from all of production and label those",
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
    """Keep recall: what else there is depends on classes that have no label."""
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
) -> list[Objection]:
    """Object to a reference set that carries other workflows, or another judge, than production.

    Examples
    --------
    >>> other_side("other_workflows", "workflows", ["a"] * 9, ["a"] * 5 + ["b"] * 5)[0].why
    'workflows of production without a reference label: b (50.0 %)'
    >>> other_side("other_workflows", "workflows", ["a", "b"], ["b", "a", "a"])
    []
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
                Objection(
                    code=code,
                    why=f"{why}: {listed}",
                    mend="label 100 random production traces, or reference traces like them",
                )
            )
    return found


def judge_alpha(
    sample: LabelledSample, *, n_verdicts: int, confidence_level: float = 0.95
) -> Estimate:
    """Estimate nominal alpha of two raters, the human side and the judge.

    A trace with several reviewers counts as the mean over pairs of one reviewer and the judge.
    A verdict that is no class is a class the humans never use, as in kappa. Traces are a random
    sample and independent, or independent between clusters when given.

    Parameters
    ----------
    sample : LabelledSample
        Its weights, scaled to the effective number of traces, weigh the traces.
    n_verdicts : int
        Number of verdict codes, at least the number of classes.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        With the delete-one jackknife, a cluster at a time where there are clusters, on the Fisher
        z scale.

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
    # As `KRIPPENDORFF_ALPHA` wants them: its disagreeing pairs, its ratings, those of each class.
    features = np.column_stack([2 * apart, np.full(n, 2.0), used])
    if sample.weights is not None:
        weight = np.asarray(sample.weights, dtype=np.float64)
        features *= (weight * weight.sum() / (weight @ weight))[:, None]
    units, by = np.ones(n, dtype=np.int64), ""
    if sample.clusters is not None:
        names, index = np.unique(sample.clusters, return_inverse=True)
        summed = np.zeros((names.size, features.shape[1]))
        np.add.at(summed, index, features)
        features, units, by = summed, np.ones(names.size, dtype=np.int64), ", by cluster"
    elif sample.weights is None:
        features, units = np.unique(features, axis=0, return_counts=True)
    found = from_features(
        KRIPPENDORFF_ALPHA,
        features,
        units,
        1 - np.eye(n_verdicts),
        n=int(units.sum()),
        alike=bool(np.ptp(apart) < 1e-10),
        confidence_level=confidence_level,
    )
    return replace(found, method=found.method + by)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCalibration(Calibrated):
    """A judge calibrated on a file of human labels and one of verdicts."""

    human_file: str
    verdict_file: str
    judge_id: str | None


def calibrate_on_files(
    human: LabelFile,
    verdicts: VerdictFile,
    choices: Choices,
    *,
    classes: Sequence[str] | None = None,
    credit: Mapping[str, float] | None = None,
    ceilings: Ceilings | None = None,
) -> FileCalibration:
    """Calibrate a judge on files.

    Parameters
    ----------
    human, verdicts : LabelFile, VerdictFile
        With design ``"production"`` the labelled traces are a random sample of the verdict file;
        with ``"reference"`` they are no part of production.
    choices : Choices
    classes : sequence of str, optional
        In order. Default: ours if the files use no others, else those that occur.
    credit : mapping of str to float, optional
        Of every class. Default: the taxonomy's if the classes are ours.
    ceilings : Ceilings, optional
        Without one nothing is penalised.

    Raises
    ------
    InputError
        If an outcome is no class, or credit is missing.
    CalibrationError
        If no labelled trace has a verdict.
    """
    known = ceilings or Ceilings(by_workflow={})
    joined, set_aside = join_files(human, verdicts, classes, credit, known)
    return calibrate_joined(joined, human, verdicts, choices, known, set_aside)


def calibrate_joined(
    joined: JoinedFiles,
    human: LabelFile,
    verdicts: VerdictFile,
    choices: Choices,
    ceilings: Ceilings,
    set_aside: tuple[SetAside, ...],
) -> FileCalibration:
    """Calibrate a judge on files that are already joined."""
    shares, open_disagreements = human_shares(joined, leave_out=None)
    sample = sample_of_files(joined, shares, choices)
    result = _checked(
        joined, _calibrate_files(joined, sample, choices, open_disagreements), choices
    )
    return FileCalibration(
        human_file=str(human.path),
        verdict_file=str(verdicts.path),
        judge_id=verdicts.judge,
        design=choices.design,
        classes=joined.classes,
        credit=dict(zip(joined.classes, joined.credit, strict=True)),
        verdict_names=joined.names,
        calibration=result,
        alpha=judge_alpha(
            sample, n_verdicts=len(joined.names), confidence_level=choices.confidence_level
        ),
        human=_file_human_side(joined, human, open_disagreements),
        without_reviewer=_without_each(joined, human, choices),
        skipped=len(joined.skipped),
        if_skipped=range_if_skipped(
            result, skipped=len(joined.skipped), labelled=len(joined.labelled)
        ),
        disagreements=_file_disagreements(joined, shares),
        notes=tuple(_notes(joined, human, ceilings, choices)),
        set_aside=set_aside,
        seed=choices.seed,
        fingerprint=file_fingerprint(joined, "calibrate files", asdict(choices)),
    )


def sample_of_files(
    joined: JoinedFiles, shares: NDArray[np.float64], choices: Choices
) -> LabelledSample:
    """Return the labelled traces that `shares` has a class for."""
    kept = shares.sum(axis=1) > 0
    first = [rows[0] for rows in joined.labelled]
    clusters = np.array([row.cluster or f"\0{k}" for k, row in enumerate(first)])
    weights = _weights(joined, first, choices)
    return LabelledSample(
        human=shares[kept],
        verdicts=joined.verdicts[joined.at][kept],
        penalties=joined.penalties[joined.at][kept],
        weights=None if weights is None else weights[kept],
        clusters=clusters[kept] if len(set(clusters[kept])) < kept.sum() else None,
    )


def _weights(
    joined: JoinedFiles, first: Sequence[LabelRow], choices: Choices
) -> NDArray[np.float64] | None:
    """Return the weights of the file, raised for the skipped traces where these are production."""
    given = [row.weight for row in first]
    lacking = next((row for row in first if row.weight is None), None)
    if lacking is not None and any(weight is not None for weight in given):
        raise InputError(
            f"line {lacking.line} of the labels has no weight and others have; give each trace one"
        )
    weights = None if lacking is not None else np.array(given, dtype=np.float64)
    if choices.design == "reference" or not joined.skipped:
        return weights
    asked = [*joined.at.tolist(), *joined.skipped]
    mean = 1.0 if weights is None else float(weights.mean())
    own = np.ones(len(first)) if weights is None else weights
    return standing_in(
        joined.verdicts[asked].tolist(),
        [joined.traces[k].workflow for k in asked],
        np.arange(len(asked)) < len(first),
        np.concatenate([own, [w or mean for w in joined.skipped_weights]]),
    )


def _calibrate_files(
    joined: JoinedFiles,
    sample: LabelledSample,
    choices: Choices,
    open_disagreements: int,
    estimators: Collection[str] = ESTIMATORS,
) -> Calibration:
    counted = _counted(joined, choices)
    return calibrate(
        sample,
        production_verdicts=joined.verdicts[counted],
        production_penalties=joined.penalties[counted],
        credit=joined.credit,
        n_verdicts=len(joined.names),
        verdict_names=joined.names,
        open_disagreements=open_disagreements,
        estimators=estimators,
        **asdict(choices),
    )


def _counted(joined: JoinedFiles, choices: Choices) -> NDArray[np.bool_]:
    """Return which traces are production: reference traces with a label are not."""
    counted = np.ones(len(joined.traces), dtype=bool)
    if choices.design == "reference":
        counted[joined.at] = False
    return counted


def _checked(joined: JoinedFiles, result: Calibration, choices: Choices) -> Calibration:
    """Refuse and warn of what these files cannot support."""
    counted = _counted(joined, choices)
    result = checked_claims(
        result,
        production_counts=np.bincount(joined.verdicts[counted], minlength=len(joined.names)),
        verdict_names=joined.names,
        classes=joined.classes,
    )
    if choices.design == "production" or not counted.any():
        return result
    reference = [joined.traces[k] for k in joined.at.tolist()]
    production = [joined.traces[k] for k in np.flatnonzero(counted).tolist()]
    objections: list[Objection] = []
    for code, what, name in (
        ("other_workflows", "workflows", "workflow"), ("other_judge", "judges", "judge"),
    ):  # fmt: skip
        sides = [[getattr(row, name) for row in side] for side in (reference, production)]
        objections += other_side(code, what, *sides)
    result = refused(result, objections)
    return replace(result, warnings=(*result.warnings, *_other_period(reference, production)))


def _other_period(
    reference: Sequence[VerdictRow], production: Sequence[VerdictRow]
) -> tuple[Notice, ...]:
    """Warn when more than half of production started outside the time of the reference."""
    times: list[list[datetime]] = [
        [row.started_at for row in side if row.started_at is not None]
        for side in (reference, production)
    ]
    if not all(times):
        return ()
    first, last = min(times[0]), max(times[0])
    outside = sum(not first <= at <= last for at in times[1])
    if outside <= len(times[1]) / 2:
        return ()
    return (
        Notice(
            code="other_period",
            estimator=HEADLINE["reference"],
            why=f"{outside:,} of {len(times[1]):,} production traces started before or after the "
            f"reference traces ({first:%Y-%m-%d} to {last:%Y-%m-%d})",
            mend="label production traces of that period",
        ),
    )


def _without_each(
    joined: JoinedFiles, human: LabelFile, choices: Choices
) -> dict[str, float | None]:
    """Return the headline without each reviewer; adjudicated traces stay as they are."""
    found: dict[str, float | None] = {}
    if not 2 <= len(human.reviewers) <= REVIEWERS_LEFT_OUT:
        return found
    for reviewer in human.reviewers:
        shares, open_disagreements = human_shares(joined, leave_out=reviewer)
        sample = sample_of_files(joined, shares, choices)
        alone = (HEADLINE[choices.design],)
        found_now = _calibrate_files(joined, sample, choices, open_disagreements, alone)
        result = _checked(joined, found_now, choices)
        headline = result.headline_estimate
        found[reviewer] = None if headline is None else headline.net.value
    return found


def _file_human_side(joined: JoinedFiles, human: LabelFile, open_disagreements: int) -> HumanSide:
    labels = [[row for row in rows if not row.adjudicated] for rows in joined.labelled]
    return HumanSide(
        n_labels=sum(map(len, labels)),
        reviewers=human.reviewers,
        n_shared=sum(len(rows) >= 2 for rows in labels),
        n_adjudicated=sum(any(row.adjudicated for row in rows) for rows in joined.labelled),
        n_open=open_disagreements,
        skipped_by_verdict=dict(Counter(joined.names[joined.verdicts[k]] for k in joined.skipped)),
    )


def _file_disagreements(
    joined: JoinedFiles, shares: NDArray[np.float64]
) -> tuple[dict[str, Any], ...]:
    listed = []
    for k, (rows, at) in enumerate(zip(joined.labelled, joined.at.tolist(), strict=True)):
        verdict = int(joined.verdicts[at])
        if verdict < len(joined.classes) and shares[k, verdict] > 1 - 1e-9:
            continue
        listed.append(
            {
                "trace_id": rows[0].trace_id,
                "verdict": joined.names[verdict],
                "labels": {
                    row.reviewer or f"label {n}": row.outcome for n, row in enumerate(rows, 1)
                },
            }
        )
    return tuple(listed)


def _notes(
    joined: JoinedFiles, human: LabelFile, ceilings: Ceilings, choices: Choices
) -> list[str]:
    n = len(joined.traces)
    without_ceiling = sum(ceilings.of(row.workflow) is None for row in joined.traces)
    without_cost = sum(row.cost_usd is None for row in joined.traces)
    notes = []
    if without_ceiling == n:
        notes.append("no cost ceiling was given: nothing is penalised, net and gross are the same")
    elif without_ceiling:
        notes.append(f"{without_ceiling:,} of {n:,} traces have no ceiling and carry no penalty")
    if without_cost and without_ceiling < n:
        notes.append(f"{without_cost:,} of {n:,} traces have no cost and carry no penalty")
    unused = sorted(set(ceilings.by_workflow) - {row.workflow for row in joined.traces})
    if unused:
        notes.append(f"ceilings of workflows without a trace: {', '.join(unused):.200}")
    if not any(rows[0].cluster for rows in joined.labelled):
        notes.append("the labels name no cluster: traces are taken as independent")
    if joined.skipped and choices.design == "production":
        notes.append("labelled traces stand in for the skipped ones of their verdict and workflow")
    if len(human.reviewers) > REVIEWERS_LEFT_OUT:
        notes.append(f"{len(human.reviewers)} reviewers: not left out one by one")
    return notes


def file_fingerprint(
    joined: JoinedFiles, kind: str, settings: Mapping[str, object], **more: pd.DataFrame
) -> str:
    """Return the fingerprint of what was read, whatever the order of the rows."""
    traces = pd.DataFrame(
        {
            "trace_id": [row.trace_id for row in joined.traces],
            "verdict": joined.verdicts,
            "penalty": joined.penalties,
        }
    )
    labels = pd.DataFrame(
        [
            (r.trace_id, r.reviewer, r.outcome, r.adjudicated, r.weight or 1.0, r.cluster)
            for rows in joined.labelled
            for r in rows
        ]
    )
    return fingerprint(
        taxonomy=default_taxonomy().fingerprint,
        settings={
            "kind": kind,
            "classes": joined.classes,
            "credit": joined.credit,
            "verdict_names": joined.names,
            "skipped": sorted(joined.traces[k].trace_id for k in joined.skipped),
            **settings,
        },
        traces=traces.sort_values("trace_id"),
        labels=labels.sort_values(list(labels.columns)),
        **more,
    )


CHOSEN = Objection(
    code="chosen",
    why="the labelled traces were chosen and not drawn at random: no rate follows from them",
    mend="label at least 100 traces drawn at random from production",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAnalysis(Calibrated):
    """A judge calibrated against the human labels of one batch of a store."""

    batch_id: str
    judge_id: str
    simulated: bool


def analyse_judge(
    store: Store,
    batch_id: str | None = None,
    *,
    judge_id: str | None = None,
    design: Design = "production",
    pseudo_count: float = 0.5,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> JudgeAnalysis:
    """Calibrate a judge on the labels of one batch.

    With design ``production`` the batch is a random sample of the traces the rate speaks
    about. With ``reference`` its traces are calibration material only: they are left out of
    production and the judge's error rates are assumed to be the same in both. Traces that were
    chosen and not drawn allow no rate: every estimator is refused, and what the judge does on
    these traces stands.
    """
    batch = choose_batch(store, batch_id, sample=True)
    loaded = load_batch(store, batch.batch_id, sample=False)
    chosen = choose_judge(store, judge_id)
    refuse_mixture(store, chosen, loaded)
    return judge_of(
        loaded,
        store.verdict_frame(chosen),
        judge_id=chosen,
        design=design,
        pseudo_count=pseudo_count,
        confidence_level=confidence_level,
        seed=seed,
    )


def judge_of(
    loaded: LabelledBatch,
    verdicts: pd.DataFrame,
    *,
    judge_id: str,
    design: Design,
    pseudo_count: float = 0.5,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> JudgeAnalysis:
    """Calibrate a judge on a batch that is already read."""
    if loaded.labelled.empty:
        raise CalibrationError(
            f"batch {loaded.batch.batch_id!r} has no labels yet; label it on the Label page"
        )
    population = judged_population(loaded, verdicts)
    choices = Choices(
        design=design, pseudo_count=pseudo_count, confidence_level=confidence_level, seed=seed
    )
    sample = labelled_sample(loaded, population, loaded.human, design)
    result = _calibrate(loaded, population, sample, choices)
    names = VERDICT_NAMES[: _n_verdicts(population)]
    if not loaded.is_sample:
        counts = np.bincount(population.verdicts, minlength=len(names))
        result = refused(
            checked_claims(result, production_counts=counts, verdict_names=names, classes=OUTCOMES),
            [CHOSEN],
        )
    at = labelled_rows(loaded, population)
    return JudgeAnalysis(
        batch_id=loaded.batch.batch_id,
        judge_id=judge_id,
        design=design,
        classes=OUTCOMES,
        credit={name: loaded.taxonomy.credit[name] for name in OUTCOMES},
        verdict_names=names,
        calibration=result,
        alpha=judge_alpha(sample, n_verdicts=len(names), confidence_level=confidence_level),
        human=_human_side(loaded, population),
        disagreements=_disagreements(loaded, population.verdicts[at]),
        without_reviewer=_without_each_reviewer(loaded, population, choices)
        if loaded.is_sample
        else {},
        skipped=loaded.skipped,
        if_skipped=range_if_skipped(result, skipped=loaded.skipped, labelled=len(loaded.labelled)),
        seed=seed,
        simulated=loaded.simulated,
        fingerprint=fingerprint(
            taxonomy=loaded.taxonomy.fingerprint,
            settings={
                "kind": "judge",
                "judge": judge_id,
                **asdict(choices),
                "skipped": loaded.skipped,
            },
            labels=loaded.labels[["trace_id", "reviewer_id", "outcome"]],
            human=human_frame(loaded),
            drawn=drawn_frame(loaded),
            traces=loaded.traces[INPUT_COLUMNS],
            verdicts=verdicts[["trace_id", "outcome"]],
        ),
    )


def rate_at_credit(
    loaded: LabelledBatch,
    population: JudgedPopulation,
    judge: JudgeAnalysis,
    credit: Sequence[float],
) -> Estimate:
    """Return the headline of a calibration under another table of credit."""
    choices = Choices(
        design=judge.design,
        confidence_level=judge.calibration.confidence_level,
        seed=judge.seed,
    )
    sample = labelled_sample(loaded, population, loaded.human, judge.design)
    alone = (HEADLINE[judge.design],)
    found = _calibrate(loaded, population, sample, choices, alone, credit).headline_estimate
    if found is None:
        return not_estimable("the estimator is refused at these weights", method=alone[0])
    return found.net


def _calibrate(
    loaded: LabelledBatch,
    population: JudgedPopulation,
    sample: LabelledSample,
    choices: Choices,
    estimators: Collection[str] = ESTIMATORS,
    credit: Sequence[float] | None = None,
) -> Calibration:
    counted = np.ones(len(population.verdicts), dtype=bool)
    if choices.design == "reference":
        counted[labelled_rows(loaded, population)] = False
    return calibrate(
        sample,
        production_verdicts=population.verdicts[counted],
        production_penalties=population.penalties[counted],
        credit=credit or tuple(loaded.taxonomy.credit[name] for name in OUTCOMES),
        n_verdicts=_n_verdicts(population),
        verdict_names=VERDICT_NAMES,
        open_disagreements=loaded.open_disagreements,
        estimators=estimators,
        **asdict(choices),
    )


def _human_side(loaded: LabelledBatch, population: JudgedPopulation) -> HumanSide:
    per_trace = loaded.labels.groupby("trace_id").size()
    said = [population.verdicts[population.row[trace_id]] for trace_id in loaded.skipped_ids]
    return HumanSide(
        n_labels=len(loaded.labels),
        reviewers=tuple(loaded.reviewers),
        n_shared=int((per_trace >= 2).sum()),
        n_adjudicated=int(loaded.adjudicated.sum()),
        n_open=loaded.open_disagreements,
        skipped_by_verdict=dict(Counter(VERDICT_NAMES[code] for code in said)),
    )


def _n_verdicts(population: JudgedPopulation) -> int:
    return len(OUTCOMES) + int((population.verdicts == len(OUTCOMES)).any())


def _without_each_reviewer(
    loaded: LabelledBatch, population: JudgedPopulation, choices: Choices
) -> dict[str, float | None]:
    """Return the headline with each reviewer's labels left out; adjudicated traces stay."""
    codes = loaded.codes()
    if codes.shape[1] < 2:
        return {}
    one_hot = np.eye(len(OUTCOMES))
    found: dict[str, float | None] = {}
    for column, reviewer in enumerate(loaded.reviewers):
        others = np.delete(codes, column, axis=1)
        votes = np.where((others >= 0)[..., None], one_hot[others], 0.0).sum(axis=1)
        total = votes.sum(axis=1, keepdims=True)
        human = np.divide(votes, total, out=np.zeros_like(votes), where=total > 0)
        human[loaded.adjudicated] = loaded.human[loaded.adjudicated]
        sample = labelled_sample(loaded, population, human, choices.design)
        alone = (HEADLINE[choices.design],)
        headline = _calibrate(loaded, population, sample, choices, alone).headline_estimate
        found[reviewer] = None if headline is None else headline.net.value
    return found


def _disagreements(
    loaded: LabelledBatch, verdicts: NDArray[np.int64]
) -> tuple[dict[str, Any], ...]:
    """List the labelled traces on which not every human agrees with the verdict."""
    said: defaultdict[str, list[tuple[str, str, object]]] = defaultdict(list)
    columns = ["trace_id", "reviewer_id", "outcome", "rationale"]
    for trace_id, *label in zip(*(loaded.labels[name].tolist() for name in columns), strict=True):
        said[trace_id].append((label[0], label[1], label[2]))
    listed = []
    for row, trace_id in enumerate(loaded.labelled["trace_id"].tolist()):
        verdict = int(verdicts[row])
        if verdict < len(OUTCOMES) and loaded.human[row, verdict] == 1:
            continue
        listed.append(
            {
                "trace_id": trace_id,
                "verdict": VERDICT_NAMES[verdict],
                "labels": {reviewer: outcome for reviewer, outcome, _ in said[trace_id]},
                "rationales": {
                    reviewer: text for reviewer, _, text in said[trace_id] if isinstance(text, str)
                },
            }
        )
    return tuple(listed)


# Above it a count is no longer exact as a float.
MAX_COUNT = 2**53


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """What a file of tables says, its columns with the classes first.

    Parameters
    ----------
    confusion : int array, shape (n_classes, n_verdicts)
        Labelled traces by human class and verdict.
    production : int array, shape (n_verdicts,)
        Judged production traces by verdict; for design ``"production"`` with the labelled ones.
    unknown : tuple of str
        Fields of the file that mean nothing here.
    """

    file: str
    design: Design
    classes: tuple[str, ...]
    credit: tuple[float, ...]
    verdict_names: tuple[str, ...]
    confusion: NDArray[np.int64]
    production: NDArray[np.int64]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCalibration(Calibrated):
    """A judge calibrated on the tables of a file; without costs net and gross are equal."""

    file: str


def read_tables(path: Path) -> Tables:
    """Read a file of tables.

    Raises
    ------
    InputError
        If it cannot be read or a field is missing or not what it must be; the message names the
        file and the field.
    """
    try:
        content = decode_text(path.read_bytes().decode("utf-8-sig"))
        if not isinstance(content, dict):
            raise FieldError(f"must hold one JSON object, got {type(content).__name__}")
        return _tables(str(path), content)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 (byte {error.start})") from error
    except FieldError as error:
        raise InputError(f"{path}: {error}") from error


def _tables(file: str, content: dict[str, Any]) -> Tables:
    for name in REQUIRED:
        if content.get(name) is None:
            raise FieldError(f"field {name!r} is missing; needed are {', '.join(REQUIRED)}")
    design = content["design"]
    if not isinstance(design, str) or design not in HEADLINE:
        raise wrong("design", f"must be one of {', '.join(HEADLINE)}", design)
    classes = _names(content["classes"], "classes", at_least=2)
    columns = classes
    if content.get("judge_classes") is not None:
        columns = _names(content["judge_classes"], "judge_classes", at_least=2)
        lacking = [name for name in classes if name not in columns]
        if lacking:
            raise FieldError(
                f"field 'judge_classes': must hold all classes, {lacking[0]!r:.80} is not there"
            )
    # The same tables with columns in another order are the same tables.
    names = (*classes, *sorted(set(columns) - set(classes)))
    order = [columns.index(name) for name in names]
    confusion = _matrix(content["confusion"], classes, columns)[:, order]
    production = _counts(
        content["production_judge_counts"], columns, "production_judge_counts", "the judge"
    )[order]
    if design == "production":
        _check_included(confusion, production, names)
    return Tables(
        file=file,
        design=cast(Design, design),
        classes=classes,
        credit=_credit(content["credit"], classes),
        verdict_names=names,
        confusion=confusion,
        production=production,
        unknown=tuple(sorted(set(content) - {*REQUIRED, *OPTIONAL})),
    )


def _names(value: object, name: str, *, at_least: int) -> tuple[str, ...]:
    rule = f"must be a list of {at_least} to {MAX_CLASSES} names, each once"
    if not isinstance(value, list) or not at_least <= len(value) <= MAX_CLASSES:
        raise wrong(name, rule, value)
    for one in value:
        if not isinstance(one, str) or not one.strip() or len(one) > 200:
            raise wrong(name, rule, one)
    names = tuple(one.strip() for one in value)
    for one in names:
        if names.count(one) > 1:
            raise FieldError(f"field {name!r}: {rule}, {one!r:.80} occurs twice")
    return names


def _by_name(value: object, names: Sequence[str], name: str, whose: str) -> list[object]:
    """Return a list in the order of `names`, from such a list or from an object by name."""
    if isinstance(value, Mapping):
        for one in (*value, *names):
            if one not in names:
                raise FieldError(f"field {name!r}: {one!r:.80} is no class of {whose}")
            if one not in value:
                raise FieldError(f"field {name!r}: {one!r:.80} is missing")
        return [value[one] for one in names]
    if not isinstance(value, list) or len(value) != len(names):
        got = f"a list of {len(value)}" if isinstance(value, list) else f"{value!r:.60}"
        raise FieldError(
            f"field {name!r}: must be a list of {len(names)}, one a class of {whose}, got {got}"
        )
    return value


def _credit(value: object, classes: tuple[str, ...]) -> tuple[float, ...]:
    given = _by_name(value, classes, "credit", "the humans")
    credit = []
    for name, one in zip(classes, given, strict=True):
        found = number(one, "credit", maximum=1.0)
        if found is None:
            raise FieldError(f"field 'credit': that of {name!r:.80} is missing")
        credit.append(found)
    return tuple(credit)


def _counts(value: object, columns: Sequence[str], name: str, whose: str) -> NDArray[np.int64]:
    counts = []
    for column, one in zip(columns, _by_name(value, columns, name, whose), strict=True):
        found = whole(one, name, maximum=MAX_COUNT)
        if found is None:
            raise FieldError(f"field {name!r}: the count of {column!r:.80} is missing")
        counts.append(found)
    if sum(counts) > MAX_COUNT:
        raise FieldError(f"field {name!r}: must sum to at most {MAX_COUNT:,}, got {sum(counts):,}")
    return np.array(counts, dtype=np.int64)


def _matrix(value: object, classes: tuple[str, ...], columns: tuple[str, ...]) -> NDArray[np.int64]:
    rows = _by_name(value, classes, "confusion", "the humans")
    found = []
    for name, row in zip(classes, rows, strict=True):
        try:
            found.append(_counts(row, columns, "confusion", "the judge"))
        except FieldError as error:
            raise FieldError(f"{error} (in the row of {name!r:.80})") from error
    table = np.array(found)
    if table.sum() > MAX_LABELS:
        raise FieldError(
            f"field 'confusion': must sum to at most {MAX_LABELS:,} labels, got {table.sum():,}"
        )
    return table


def _check_included(
    confusion: NDArray[np.int64], production: NDArray[np.int64], names: Sequence[str]
) -> None:
    labelled = confusion.sum(axis=0)
    for k in np.flatnonzero(labelled > production).tolist():
        raise FieldError(
            f"field 'production_judge_counts': for design 'production' it includes the labelled "
            f"traces, but {names[k]!r:.80} has {production[k]:,} and {labelled[k]:,} are labelled"
        )


def sample_of_tables(tables: Tables) -> LabelledSample:
    """Return a labelled trace for every count."""
    rows, columns = np.divmod(
        np.repeat(np.arange(tables.confusion.size), tables.confusion.ravel()),
        len(tables.verdict_names),
    )
    return LabelledSample(human=np.eye(len(tables.classes))[rows], verdicts=columns)


def calibrate_on_tables(tables: Tables, choices: Choices) -> TableCalibration:
    """Calibrate on tables; the design is theirs."""
    result = calibrate_tables(
        tables.confusion,
        tables.production,
        credit=tables.credit,
        design=tables.design,
        verdict_names=tables.verdict_names,
        pseudo_count=choices.pseudo_count,
        confidence_level=choices.confidence_level,
        seed=choices.seed,
    )
    n_verdicts = len(tables.verdict_names)
    said = {
        "design": tables.design,
        "classes": tables.classes,
        "credit": tables.credit,
        "verdict_names": tables.verdict_names,
        "confusion": tables.confusion.tolist(),
        "production": tables.production.tolist(),
        "pseudo_count": choices.pseudo_count,
        "confidence_level": choices.confidence_level,
        "seed": choices.seed,
    }
    notes = ["no costs are known: nothing is penalised, net and gross are the same"]
    if tables.unknown:
        notes.append(f"fields that mean nothing here: {', '.join(tables.unknown):.200}")
    return TableCalibration(
        file=tables.file,
        design=tables.design,
        classes=tables.classes,
        credit=dict(zip(tables.classes, tables.credit, strict=True)),
        verdict_names=tables.verdict_names,
        calibration=checked_claims(
            result, production_counts=tables.production, verdict_names=tables.verdict_names,
            classes=tables.classes,
        ),
        alpha=judge_alpha(
            sample_of_tables(tables), n_verdicts=n_verdicts,
            confidence_level=choices.confidence_level,
        ),
        notes=tuple(notes),
        seed=choices.seed,
        fingerprint=fingerprint(
            taxonomy=json.dumps(tables.classes), settings={"kind": "calibrate tables", **said}
        ),
    )  # fmt: skip
