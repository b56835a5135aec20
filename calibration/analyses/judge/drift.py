"""Drift of a judge: two judges, or two versions of one, on the same traces."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.coefficients import KRIPPENDORFF_ALPHA, PERCENT_AGREEMENT, estimate
from calibration.agreement.ratings import count_patterns
from calibration.analyses.evidence.from_store import (
    VERDICT_NAMES,
    LabelledBatch,
    choose_judge,
    drawn_frame,
    human_frame,
    load_batch,
    refuse_mixture,
)
from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.sampling.draw import production_traces
from calibration.errors import CalibrationError, InputError, MixedDataError
from calibration.records import OUTCOMES, SOURCE_JUDGE
from calibration.statistics.contingency import TestResult, holm, mcnemar
from calibration.statistics.estimate import Estimate
from calibration.statistics.means import MeanAgainstZero, mean_against_zero
from calibration.store import Store

NOT_LABELLED = "no labelled trace has a verdict of both: label traces that both judged"

NOT_CLASSES = "no trace has a verdict of both that is a class"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassDrift:
    """How often the two give one verdict, on the same traces.

    Parameters
    ----------
    name : str
    before, after : float
        Share of the traces with this verdict.
    only_before, only_after : int
        Traces to which one of the two gave it.
    test : TestResult
        McNemar's test that the shares are the same.
    p_holm : float or None
        Its p-value adjusted for the number of verdicts tested.
    """

    name: str
    before: float
    after: float
    only_before: int
    only_after: int
    test: TestResult
    p_holm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstHumans:
    """Whether the error against the humans changed, on labelled traces that both judged.

    Parameters
    ----------
    n : int
    accuracy_before, accuracy_after : MeanAgainstZero
        Share of traces with the human class (of the reviewers who gave it).
    accuracy_change : MeanAgainstZero
        After less before.
    leniency_change : MeanAgainstZero
        Change of the verdict's credit less the human one, where both verdicts are classes.
    error_change : MeanAgainstZero
        Change of the distance between the two credits, whichever is higher.
    """

    n: int
    accuracy_before: MeanAgainstZero
    accuracy_after: MeanAgainstZero
    accuracy_change: MeanAgainstZero
    leniency_change: MeanAgainstZero
    error_change: MeanAgainstZero


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Two judges on the same traces.

    Parameters
    ----------
    table : tuple of tuple of int, shape (n_verdicts, n_verdicts)
        Traces by the verdict of `before` (rows) and of `after` (columns).
    credit_change : MeanAgainstZero
        Mean credit by `after` less that by `before`, over traces where both are classes.
    same, alpha : Estimate
        Percent agreement and Krippendorff's alpha of the two.
    against_humans : AgainstHumans or None
        None without labels.
    """

    before: str
    after: str
    verdict_names: tuple[str, ...]
    n: int
    table: tuple[tuple[int, ...], ...]
    classes: tuple[ClassDrift, ...]
    credit_change: MeanAgainstZero
    same: Estimate
    alpha: Estimate
    against_humans: AgainstHumans | None
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SameTraces:
    """Traces that two judges judged.

    Parameters
    ----------
    codes : int array, shape (n, 2)
        Verdicts of both, the classes first.
    tasks : array, shape (n,)
    human : float array, shape (n_labelled, n_classes), or None
        Human class shares of the labelled ones; None where nothing was labelled.
    labelled : int array, shape (n_labelled,)
        Their rows.
    weights : float array, shape (n_labelled,), or None
        Inverse inclusion probabilities.
    """

    codes: NDArray[np.int64]
    tasks: NDArray[np.generic]
    human: NDArray[np.float64] | None = None
    labelled: NDArray[np.int64] | None = None
    weights: NDArray[np.float64] | None = None


def drift_of(
    same: SameTraces,
    *,
    before: str,
    after: str,
    verdict_names: Sequence[str],
    credit: NDArray[np.float64],
    fingerprint: str,
    confidence_level: float = 0.95,
) -> Drift:
    """Compare the verdicts of two judges on the same traces, and both with the humans."""
    codes, level = same.codes, confidence_level
    n_verdicts = max(credit.size, int(codes.max()) + 1)
    cells = codes[:, 0] * n_verdicts + codes[:, 1]
    table = np.bincount(cells, minlength=n_verdicts**2).reshape(n_verdicts, n_verdicts)
    patterns = count_patterns(codes, n_classes=n_verdicts)
    classes = (codes < credit.size).all(axis=1)
    of_credit = credit[codes[classes]]
    return Drift(
        before=before,
        after=after,
        verdict_names=tuple(verdict_names[:n_verdicts]),
        n=len(codes),
        table=tuple(tuple(row) for row in table.tolist()),
        classes=_classes(table.astype(np.int64), verdict_names),
        credit_change=mean_against_zero(
            of_credit[:, 1] - of_credit[:, 0],
            nothing=NOT_CLASSES,
            clusters=same.tasks[classes],
            confidence_level=level,
        ),
        same=estimate(PERCENT_AGREEMENT, patterns, confidence_level=level),
        alpha=estimate(KRIPPENDORFF_ALPHA, patterns, confidence_level=level),
        against_humans=_against(same, credit, level),
        fingerprint=fingerprint,
    )


def _classes(table: NDArray[np.int64], names: Sequence[str]) -> tuple[ClassDrift, ...]:
    n, found = int(table.sum()), []
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    for k in range(len(table)):
        both = int(table[k, k])
        only = int(rows[k]) - both, int(columns[k]) - both
        test = mcnemar([[both, only[0]], [only[1], n - both - sum(only)]])
        found.append((k, only, test))
    adjusted = holm({k: t.p_value for k, _, t in found if t.p_value is not None})
    return tuple(
        ClassDrift(
            name=names[k],
            before=float(rows[k] / n),
            after=float(columns[k] / n),
            only_before=only[0],
            only_after=only[1],
            test=test,
            p_holm=adjusted.get(k),
        )
        for k, only, test in found
    )


def _against(
    same: SameTraces, credit: NDArray[np.float64], confidence_level: float
) -> AgainstHumans | None:
    if same.human is None or same.labelled is None:
        return None
    codes, tasks, weights = same.codes[same.labelled], same.tasks[same.labelled], same.weights
    n = len(codes)
    # Columns more: a verdict that is no class is right for nobody.
    beyond = max(0, int(codes.max(initial=0)) + 1 - credit.size)
    human = np.column_stack([same.human, np.zeros((n, beyond))])
    right = np.take_along_axis(human, codes, axis=1)
    classes: NDArray[np.bool_] = np.all(codes < credit.size, axis=1)
    gaps = credit[codes[classes]] - (same.human[classes] @ credit)[:, None]
    every = np.ones(n, dtype=bool)

    def mean(values: NDArray[np.float64], rows: NDArray[np.bool_], low: float) -> MeanAgainstZero:
        return mean_against_zero(
            values,
            nothing=NOT_LABELLED,
            lowest=low,
            weights=None if weights is None else weights[rows],
            clusters=tasks[rows],
            confidence_level=confidence_level,
        )

    far = np.abs(gaps)
    return AgainstHumans(
        n=n,
        accuracy_before=mean(right[:, 0], every, 0.0),
        accuracy_after=mean(right[:, 1], every, 0.0),
        accuracy_change=mean(right[:, 1] - right[:, 0], every, -1.0),
        leniency_change=mean(gaps[:, 1] - gaps[:, 0], classes, -1.0),
        error_change=mean(far[:, 1] - far[:, 0], classes, -1.0),
    )


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
