"""Calibrated labels of production: what each verdict probably means, trace by trace."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.evidence.data import CalibrationData
from calibration.analyses.evidence.from_store import load_batch, with_judge
from calibration.analyses.judge.calibration import (
    CalibrationOptions,
    JudgeCalibration,
    calibrate_judge,
)
from calibration.errors import CalibrationError
from calibration.judge_calibration.post_stratification import (
    ClassProbabilities,
    class_probabilities,
)
from calibration.records import OUTCOMES
from calibration.statistics.estimate import Estimate
from calibration.store import Store

# The plug-in mean is said to differ from the headline above this part of its interval.
TOLERATED = 0.1

COLUMNS = (
    "trace_id", "workflow", "task_key", "judge_id", "verdict", *OUTCOMES,
    "likeliest", "probability", "entropy_bits", "basis", "basis_labels", "calibration",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalibratedLabels:
    """Class probabilities of every trace of production that a batch was drawn from.

    Parameters
    ----------
    frame : DataFrame
        One row a trace with `COLUMNS`: the probability of each class, the likeliest class and its
        probability, the entropy in bits, and whether that comes from the labels of its verdict in
        its workflow or of its verdict everywhere, and from how many. `calibration` is the
        fingerprint of the calibration.
    headline : Estimate
        The rate to report.
    plug_in : float
        The mean of sum over classes of probability x max(0, credit - penalty): not to be reported.
    note : str or None
        Why the two differ, where they do by more than a tenth of the interval.
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
    store: Store, batch_id: str | None = None, *, judge_id: str | None = None
) -> CalibratedLabels:
    """Give every trace of production its class probabilities given verdict and workflow.

    Raises
    ------
    CalibrationError
        If the labels allow no corrected rate, or as `analyse_judge`.
    """
    data = with_judge(store, load_batch(store, batch_id), judge_id)
    return labels_of(data, calibrate_judge(data, CalibrationOptions()))


def labels_of(data: CalibrationData, analysis: JudgeCalibration) -> CalibratedLabels:
    """Give the traces of a calibration their class probabilities."""
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
    worth = np.maximum(0.0, data.credit - data.penalties[:, None])
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
    frame[list(OUTCOMES)] = given
    frame["likeliest"] = np.array(OUTCOMES)[likeliest]
    frame["probability"] = given.max(axis=1)
    frame["entropy_bits"] = -(given * np.log2(given)).sum(axis=1)
    frame["basis"] = np.where(found.by_segment[verdict, flow], basis, pooled)
    frame["basis_labels"] = found.labels[verdict, flow]
    frame["calibration"] = analysis.fingerprint
    return frame[list(COLUMNS)]


def _note(plug_in: float, headline: Estimate) -> str | None:
    """Say that the mean of the labels is not the rate, where somebody could take it for one."""
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
