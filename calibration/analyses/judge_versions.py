"""Whether a judge has moved: two judges, or two versions of one, on the same traces."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.chance_corrected import KRIPPENDORFF_ALPHA, PERCENT_AGREEMENT, estimate
from calibration.agreement.counts import count_patterns
from calibration.agreement.margins import TestResult, holm, mcnemar
from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.judge import VERDICT_NAMES, human_frame, refuse_mixture
from calibration.analyses.labelled_batch import LabelledBatch, load_batch
from calibration.analyses.sampling import production_traces
from calibration.correction.means import MeanAgainstZero, mean_against_zero
from calibration.errors import CalibrationError, InputError, MixedDataError
from calibration.estimates import Estimate
from calibration.records import OUTCOMES
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
class JudgeDrift:
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
    simulated: bool
    fingerprint: str


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
    credit = np.array([credits[name] for name in OUTCOMES])
    codes = frame[["before", "after"]].to_numpy(dtype=np.int64)
    n_verdicts = max(len(OUTCOMES), int(codes.max()) + 1)
    cells = codes[:, 0] * n_verdicts + codes[:, 1]
    table = np.bincount(cells, minlength=n_verdicts**2).reshape(n_verdicts, n_verdicts)
    patterns, level = count_patterns(codes, n_classes=n_verdicts), confidence_level
    classes = (codes < len(OUTCOMES)).all(axis=1)
    of_credit = credit[codes[classes]]
    return JudgeDrift(
        before=before,
        after=after,
        verdict_names=VERDICT_NAMES[:n_verdicts],
        n=len(frame),
        table=tuple(tuple(row) for row in table.tolist()),
        classes=_classes(table.astype(np.int64)),
        credit_change=mean_against_zero(
            of_credit[:, 1] - of_credit[:, 0],
            nothing=NOT_CLASSES,
            clusters=pd.factorize(frame["task_key"])[0][classes],
            confidence_level=level,
        ),
        same=estimate(PERCENT_AGREEMENT, patterns, confidence_level=level),
        alpha=estimate(KRIPPENDORFF_ALPHA, patterns, confidence_level=level),
        against_humans=None if loaded is None else _against(loaded, frame, credit, level),
        simulated=bool(frame["simulated"].any()),
        fingerprint=fingerprint(
            taxonomy=store.taxonomy().fingerprint,
            settings={
                "kind": "judge drift",
                "judges": [before, after],
                "confidence_level": level,
            },
            verdicts=frame[["trace_id", "task_key", "before", "after"]],
            **({} if loaded is None else {"human": human_frame(loaded)}),
        ),
    )


def _check(store: Store, *judges: str) -> None:
    frame = store.judge_frame()
    known = list(frame["judge_id"])
    for judge in judges:
        if judge not in known:
            raise InputError(f"no judge {judge!r}; there are {known}")
    if frame.loc[frame["judge_id"].isin(judges), "simulated"].nunique() > 1:
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


def _classes(table: NDArray[np.int64]) -> tuple[ClassDrift, ...]:
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
            name=VERDICT_NAMES[k],
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
    loaded: LabelledBatch, frame: pd.DataFrame, credit: NDArray[np.float64], confidence_level: float
) -> AgainstHumans:
    row = {name: k for k, name in enumerate(loaded.labelled["trace_id"])}
    shared = frame[frame["trace_id"].isin(row)]
    at = shared["trace_id"].map(row).to_numpy(dtype=np.int64)
    codes = shared[["before", "after"]].to_numpy(dtype=np.int64)
    tasks = pd.factorize(shared["task_key"])[0]
    # One column more: a verdict that is no class is right for nobody.
    human = np.column_stack([loaded.human[at], np.zeros(len(at))])
    right = np.take_along_axis(human, codes, axis=1)
    classes = (codes < len(OUTCOMES)).all(axis=1)
    gaps = credit[codes[classes]] - (loaded.human[at][classes] @ credit)[:, None]

    def mean(values: NDArray[np.float64], of: NDArray[np.int64], low: float) -> MeanAgainstZero:
        return mean_against_zero(
            values, nothing=NOT_LABELLED, lowest=low, clusters=of, confidence_level=confidence_level
        )

    far = np.abs(gaps)
    return AgainstHumans(
        n=len(at),
        accuracy_before=mean(right[:, 0], tasks, 0.0),
        accuracy_after=mean(right[:, 1], tasks, 0.0),
        accuracy_change=mean(right[:, 1] - right[:, 0], tasks, -1.0),
        leniency_change=mean(gaps[:, 1] - gaps[:, 0], tasks[classes], -1.0),
        error_change=mean(far[:, 1] - far[:, 0], tasks[classes], -1.0),
    )
