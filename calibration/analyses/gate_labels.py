"""Human labels of some of the runs: how good the outcomes in the file are, and how acceptable."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.analyses.asr_report import LeftOut
from calibration.analyses.verdict_files import LabelFile, LabelRow
from calibration.correction.calibrate import Design
from calibration.correction.confusion import confusion
from calibration.correction.quality import JudgeQuality, judge_quality
from calibration.errors import InputError
from calibration.estimates import Estimate
from calibration.gates.measurements import JudgeMeasured
from calibration.records import OUTCOMES
from calibration.two_way import wilson_interval

FloatArray = NDArray[np.float64]
ACCEPTABLE = ("complete", "partial_plus")
CHOSEN = "the labelled runs were chosen, not drawn at random (--design reference)"
NO_RUN = "labels of traces that are not among the runs"
EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """What the labels say: of the transcripts, and of the outcomes in the file of runs."""

    review: Estimate | None
    judge: JudgeMeasured
    set_aside: tuple[LeftOut, ...]


def hold_against_labels(
    outcomes: Mapping[str, str], labels: LabelFile, *, design: Design, confidence_level: float
) -> Labelled:
    """Cross the outcomes of runs, by trace, with human labels.

    Of several reviewers the adjudicated class counts, else each one's share. The share of
    acceptable transcripts is a figure of production only when they were drawn at random.

    Raises
    ------
    InputError
        If a label is no class, or no labelled trace is among the runs.
    """
    said: list[int] = []
    shares: list[list[float]] = []
    weights: list[float | None] = []
    missing: list[str] = []
    for trace_id, rows in labels.rows.items():
        given = [row for row in rows if row.outcome]
        for row in given:
            if row.outcome not in OUTCOMES:
                raise InputError(
                    f"{labels.path}, line {row.line}, field 'outcome': {row.outcome!r:.80} is none "
                    f"of {', '.join(OUTCOMES)}"
                )
        if trace_id not in outcomes:
            missing += [f"{labels.path.name} line {row.line}: {trace_id}" for row in rows]
        elif given:
            said.append(OUTCOMES.index(outcomes[trace_id]))
            shares.append(_shares(given))
            weights.append(given[0].weight)
    if not said:
        raise InputError(
            f"{labels.path}: no labelled trace is among the runs; the trace_id must be the same"
        )
    if any(w is None for w in weights) and any(w is not None for w in weights):
        raise InputError(f"{labels.path}: some labels have a weight and some have none")
    human = np.array(shares)
    weight = None if weights[0] is None else np.array(weights, dtype=np.float64)
    table = confusion(
        human, np.array(said, dtype=np.int64), n_verdicts=len(OUTCOMES), weights=weight
    )
    quality = judge_quality(table, confidence_level=confidence_level)
    return Labelled(
        review=(
            reviewed(human, weight, confidence_level=confidence_level)
            if design == "production"
            else None
        ),
        judge=judge_measured(quality),
        set_aside=(
            (LeftOut(reason=NO_RUN, n=len(missing), examples=tuple(missing[:EXAMPLES])),)
            if missing
            else ()
        ),
    )


def judge_measured(quality: JudgeQuality) -> JudgeMeasured:
    """Return the quality of a judge as the gates take it."""
    return JudgeMeasured(
        agreement=quality.accuracy,
        kappa=quality.kappa,
        recall={name: one.recall for name, one in zip(OUTCOMES, quality.per_class, strict=True)},
        n=quality.n,
    )


def _shares(rows: list[LabelRow]) -> list[float]:
    settled = [row.outcome for row in rows if row.adjudicated][:1]
    said = settled or [row.outcome for row in rows]
    return [said.count(name) / len(said) for name in OUTCOMES]


def reviewed(human: FloatArray, weights: FloatArray | None, *, confidence_level: float) -> Estimate:
    """Return the share of acceptable transcripts: a row of class shares each.

    With weights, over the effective number of them (Kish).
    """
    weight = np.ones(len(human)) if weights is None else weights
    acceptable = human[:, [OUTCOMES.index(name) for name in ACCEPTABLE]].sum(axis=1)
    share = float(weight @ acceptable / weight.sum())
    effective = float(weight.sum() ** 2 / (weight @ weight))
    return Estimate(
        value=share,
        interval=wilson_interval(share * effective, effective, confidence_level=confidence_level),
        n=len(human),
        method="wilson",
        confidence_level=confidence_level,
    )
