"""A judge calibrated on two files: what the humans said and what the judge said."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.calibrated import Calibrated, Choices, HumanSide, range_if_skipped
from calibration.analyses.calibration_checks import (
    Objection,
    checked_claims,
    other_side,
    refused,
)
from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.joined_files import Ceilings, JoinedFiles, human_shares, join_files
from calibration.analyses.judge_alpha import judge_alpha
from calibration.analyses.nonresponse import standing_in
from calibration.analyses.verdict_files import LabelFile, LabelRow, VerdictFile, VerdictRow
from calibration.correction.calibrate import (
    ESTIMATORS,
    Calibration,
    LabelledSample,
    Notice,
    calibrate,
)
from calibration.correction.results import HEADLINE
from calibration.errors import InputError
from calibration.records import SetAside
from calibration.taxonomy import default_taxonomy

# Each reviewer left out is a calibration of its own.
REVIEWERS_LEFT_OUT = 12


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
    result = _checked(joined, _calibrate(joined, sample, choices, open_disagreements), choices)
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
        human=_human_side(joined, human, open_disagreements),
        without_reviewer=_without_each(joined, human, choices),
        skipped=len(joined.skipped),
        if_skipped=range_if_skipped(
            result, skipped=len(joined.skipped), labelled=len(joined.labelled)
        ),
        disagreements=_disagreements(joined, shares),
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


def _calibrate(
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
        found_now = _calibrate(joined, sample, choices, open_disagreements, alone)
        result = _checked(joined, found_now, choices)
        headline = result.headline_estimate
        found[reviewer] = None if headline is None else headline.net.value
    return found


def _human_side(joined: JoinedFiles, human: LabelFile, open_disagreements: int) -> HumanSide:
    labels = [[row for row in rows if not row.adjudicated] for rows in joined.labelled]
    return HumanSide(
        n_labels=sum(map(len, labels)),
        reviewers=human.reviewers,
        n_shared=sum(len(rows) >= 2 for rows in labels),
        n_adjudicated=sum(any(row.adjudicated for row in rows) for rows in joined.labelled),
        n_open=open_disagreements,
        skipped_by_verdict=dict(Counter(joined.names[joined.verdicts[k]] for k in joined.skipped)),
    )


def _disagreements(joined: JoinedFiles, shares: NDArray[np.float64]) -> tuple[dict[str, Any], ...]:
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
