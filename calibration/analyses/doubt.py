"""How doubtful a judge's verdict on each trace is, from what the judge itself or others say."""

from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.dawid_skene import dawid_skene
from calibration.analyses.calibrated_labels import calibrated_labels
from calibration.analyses.labelled_batch import CODE
from calibration.analyses.verdict_strata import verdict_codes
from calibration.errors import CalibrationError
from calibration.records import OUTCOMES
from calibration.store import Store

Signal = Literal["samples", "probability", "judges"]
SIGNALS: tuple[Signal, ...] = ("samples", "probability", "judges")
# A verdict is doubtful above: any disagreement among samples; no class with .7; half a bit.
THRESHOLD: dict[str, float] = {"samples": 0.0, "probability": 0.3, "judges": 0.5}
WORDS = {
    "samples": "disagreement among the judge's samples",
    "probability": "low calibrated probability",
    "judges": "entropy over several judges (Dawid-Skene)",
}
FEWEST_JUDGES = 3


def doubts(
    store: Store, frame: pd.DataFrame, *, signal: Signal, judge_id: str, basis_batch: str | None
) -> NDArray[np.float64]:
    """Return how doubtful the verdict on each trace is, from 0 up.

    ``samples``: share of the judge's samples that differ from the most frequent one.
    ``probability``: 1 less the probability of the likeliest class, calibrated on `basis_batch`.
    ``judges``: entropy in bits of the class given the verdicts of all judges, who are taken to err
    independently. A trace without a valid verdict of the judge has infinite doubt.

    Raises
    ------
    CalibrationError
        If the store does not hold what the signal needs.
    """
    found = {"samples": _of_samples, "judges": _of_judges}.get(signal)
    doubt = (
        _of_probability(store, frame, judge_id, basis_batch)
        if found is None
        else found(store, frame, judge_id)
    )
    none = verdict_codes(frame, store.verdict_frame(judge_id)) == len(OUTCOMES)
    return np.where(none, np.inf, doubt)


def _of_samples(store: Store, frame: pd.DataFrame, judge_id: str) -> NDArray[np.float64]:
    said = store.verdict_samples(judge_id)
    if said.empty or said["sample"].max() < 1:
        raise CalibrationError(
            f"judge {judge_id!r} has one verdict on each trace, so its samples cannot disagree; "
            "judge each trace several times, or escalate by probability"
        )
    counted = said.groupby(["trace_id", "outcome"]).size().groupby("trace_id")
    differing = 1 - counted.max() / counted.sum()
    return np.asarray(frame["trace_id"].map(differing).fillna(0.0), dtype=np.float64)


def _of_probability(
    store: Store, frame: pd.DataFrame, judge_id: str, basis_batch: str | None
) -> NDArray[np.float64]:
    labels = calibrated_labels(store, basis_batch, judge_id=judge_id).frame
    cells = labels.groupby(["verdict", "workflow"])["probability"].first()
    verdicts = store.verdict_frame(judge_id).set_index("trace_id")["outcome"]
    keys = list(zip(frame["trace_id"].map(verdicts), frame["workflow"], strict=True))
    # A verdict or workflow that the calibration never saw is as doubtful as can be.
    likeliest = cells.reindex(pd.MultiIndex.from_tuples(keys)).fillna(0.0)
    return np.asarray(1 - likeliest.to_numpy(dtype=np.float64))


def _of_judges(store: Store, frame: pd.DataFrame, judge_id: str) -> NDArray[np.float64]:
    names = [str(name) for name in store.judge_frame()["judge_id"]]
    if len(names) < FEWEST_JUDGES:
        raise CalibrationError(
            f"{len(names)} judges have verdicts and {FEWEST_JUDGES} are needed to tell who errs; "
            "bring in verdicts of others, or escalate by samples or probability"
        )
    said = [store.verdict_frame(name).set_index("trace_id")["outcome"] for name in names]
    codes = np.column_stack(
        [frame["trace_id"].map(of).map(CODE).fillna(-1).to_numpy(dtype=np.int64) for of in said]
    )
    return np.asarray(dawid_skene(codes, n_classes=len(OUTCOMES)).entropy, dtype=np.float64)
