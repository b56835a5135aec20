"""Whether a judge has moved: two judges of a store, or two versions of one, on the same traces."""

from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from calibration.analyses.drift import Drift, SameTraces, drift_of
from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.judge import choose_judge, refuse_mixture
from calibration.analyses.judged_population import VERDICT_NAMES, drawn_frame, human_frame
from calibration.analyses.labelled_batch import LabelledBatch, load_batch
from calibration.analyses.sampling import production_traces
from calibration.errors import CalibrationError, InputError, MixedDataError
from calibration.records import OUTCOMES, SOURCE_JUDGE
from calibration.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeDrift(Drift):
    """Two judges of a store on the same traces."""

    simulated: bool


def compare_judges(
    store: Store,
    before: str,
    after: str,
    *,
    batch_id: str | None = None,
    confidence_level: float = 0.95,
) -> JudgeDrift:
    """Compare the first verdicts of two judges on the production traces that both judged.

    Errors against the humans are those on a batch: the one named, or the newest production batch
    if there is one.

    Raises
    ------
    InputError
        If one of the judges is not known, or both are the same.
    MixedDataError
        If one is simulated and the other is not.
    CalibrationError
        If they have no trace in common.
    """
    if before == after:
        raise InputError(f"the two judges must differ, got {before!r} twice")
    _check(store, before, after)
    frame = _both(store, before, after)
    loaded = _labels(store, batch_id)
    if loaded is not None:
        refuse_mixture(store, before, loaded)
        refuse_mixture(store, after, loaded)
    credits = store.taxonomy().credit
    found = drift_of(
        _with_labels(frame, loaded),
        before=before,
        after=after,
        verdict_names=VERDICT_NAMES,
        credit=np.array([credits[name] for name in OUTCOMES]),
        fingerprint=fingerprint(
            taxonomy=store.taxonomy().fingerprint,
            settings={
                "kind": "judge drift",
                "judges": [before, after],
                "confidence_level": confidence_level,
            },
            verdicts=frame[["trace_id", "task_key", "before", "after"]],
            **({} if loaded is None else _labels_as_frames(loaded)),
        ),
        confidence_level=confidence_level,
    )
    return JudgeDrift(
        **{field.name: getattr(found, field.name) for field in fields(found)},
        simulated=bool(frame["simulated"].any()),
    )


def _check(store: Store, *judges: str) -> None:
    frame = store.judge_frame()
    simulated = set()
    for judge in judges:
        choose_judge(store, judge)
        # The grades of the files are one judge, whatever their format.
        own = frame["judge_id"] == judge
        pooled = frame["judge_id"].str.startswith(SOURCE_JUDGE) & (judge == SOURCE_JUDGE)
        simulated |= set(frame.loc[own | pooled, "simulated"])
    if len(simulated) > 1:
        raise MixedDataError("one of the two judges is simulated and the other is not")


def _both(store: Store, before: str, after: str) -> pd.DataFrame:
    """Return the production traces that both judged, with both verdict codes."""
    code = {name: k for k, name in enumerate(VERDICT_NAMES)}
    frame = production_traces(store)[["trace_id", "task_key", "simulated"]]
    for name, judge in (("before", before), ("after", after)):
        verdicts = store.verdict_frame(judge)
        said = pd.DataFrame({"trace_id": verdicts["trace_id"], name: verdicts["outcome"].map(code)})
        frame = frame.merge(said, on="trace_id")
    if frame.empty:
        raise CalibrationError(
            f"judges {before!r} and {after!r} have no trace in common; let both judge the same ones"
        )
    return frame.sort_values("trace_id").reset_index(drop=True)


def _labels(store: Store, batch_id: str | None) -> LabelledBatch | None:
    if batch_id is None and not any(b.purpose == "production" for b in store.batches()):
        return None
    loaded = load_batch(store, batch_id, sample=False)
    return None if loaded.labelled.empty else loaded


def _with_labels(frame: pd.DataFrame, loaded: LabelledBatch | None) -> SameTraces:
    codes = frame[["before", "after"]].to_numpy(dtype=np.int64)
    tasks = frame["task_key"].to_numpy(dtype=str)
    if loaded is None:
        return SameTraces(codes=codes, tasks=tasks)
    place = {name: k for k, name in enumerate(loaded.labelled["trace_id"])}
    at = frame["trace_id"].map(place)
    labelled = np.flatnonzero(at.notna())
    rows = at.iloc[labelled].to_numpy(dtype=np.int64)
    return SameTraces(
        codes=codes,
        tasks=tasks,
        human=loaded.human[rows],
        labelled=labelled,
        weights=None if loaded.weights is None else loaded.weights[rows],
    )


def _labels_as_frames(loaded: LabelledBatch) -> dict[str, pd.DataFrame]:
    return {"human": human_frame(loaded), "drawn": drawn_frame(loaded)}
