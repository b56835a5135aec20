"""Drift of a judge: two judges on the same traces, and the meaning of its verdicts over time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.coefficients import KRIPPENDORFF_ALPHA, PERCENT_AGREEMENT, estimate
from calibration.agreement.inference import clusters_of
from calibration.agreement.ratings import patterns_of_items
from calibration.analyses.evidence.data import UNKNOWN, CalibrationData, Provenance, group_names
from calibration.analyses.evidence.from_files import outcome_code
from calibration.analyses.evidence.from_store import (
    choose_judge,
    load_batch,
    pooled_id,
    refuse_mixture,
    with_judge,
)
from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.judge.calibration import CalibrationOptions
from calibration.errors import CalibrationError, InputError, MixedDataError
from calibration.judge_calibration.bias import changed_meanings
from calibration.judge_calibration.samples import LabelledSample
from calibration.records import NO_VERDICT, SOURCE_JUDGE
from calibration.statistics.contingency import TestResult, holm, mcnemar
from calibration.statistics.estimate import OK, Estimate
from calibration.statistics.means import MeanAgainstZero, mean_against_zero
from calibration.success_rate.runs import class_credit, credit_rows, gross_scores
from calibration.tables.labels import VerdictFile, read_verdicts
from calibration.tables.vocabulary import NO_CLASS
from calibration.text import first_day

if TYPE_CHECKING:
    from calibration.store import Store

NOT_LABELLED = "no labelled trace has a verdict of both: label traces that both judged"
ONE_WEEK = "not_estimable: labelled runs of two weeks or more are needed"
STALE = 0.05
DAYS_OF_A_MONTH = 365.25 / 12
NOT_CLASSES = "no trace has a verdict of both that is a class"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassDrift:
    """Use of one verdict by two judges, on the same traces.

    `before` and `after` are shares of traces; `only_before` and `only_after` count traces to which
    one of the two gave it. `test` is McNemar's test of equal shares; `p_holm` adjusts for the
    number of verdicts tested.
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
    """Change of the error against the humans, on labelled traces that both judged.

    Accuracies are shares of traces with the human class (of the reviewers who gave it).
    `leniency_change` is of the verdict's credit less the human credit, where both verdicts are
    classes; `error_change` of the absolute distance of the two credits.
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

    `table` counts traces by the verdicts `before` (rows) and `after` (columns). `credit_change` is
    mean credit after less before, where both are classes. `same` and `alpha` are percent agreement
    and Krippendorff's alpha.
    """

    provenance: Provenance
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
class _Both:
    """Verdicts of both judges, before and after, on the traces that both judged.

    `credit` is of the classes, or of those of each trace where workflows have their own.
    """

    trace_ids: list[str]
    codes: NDArray[np.int64]
    tasks: NDArray[np.str_]
    names: tuple[str, ...]
    n_classes: int
    credit: NDArray[np.float64]

    def credit_at(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return the credit of the classes, or of those of some traces where workflows differ."""
        return self.credit if self.credit.ndim == 1 else self.credit[rows]


def _drift(
    both: _Both,
    data: CalibrationData | None,
    options: CalibrationOptions,
    provenance: Provenance,
    judges: tuple[str, str],
    taxonomy: str,
) -> JudgeDrift:
    """Compare the verdicts of two judges on the same traces, and both with the humans."""
    codes, n_classes, level = both.codes, both.n_classes, options.confidence_level
    n_verdicts = max(n_classes, int(codes.max()) + 1)
    cells = codes[:, 0] * n_verdicts + codes[:, 1]
    table = np.bincount(cells, minlength=n_verdicts**2).reshape(n_verdicts, n_verdicts)
    patterns, of_item = patterns_of_items(codes, n_classes=n_verdicts)
    repeat = np.unique(both.tasks).size < len(codes)
    clusters = clusters_of(of_item, both.tasks, n_patterns=len(patterns.counts)) if repeat else None
    classes: NDArray[np.bool_] = np.all(codes < n_classes, axis=1)
    credit = both.credit_at(classes)
    before, after = (class_credit(credit, codes[classes, side]) for side in (0, 1))
    frame = pd.DataFrame(codes, columns=["before", "after"]).assign(
        trace_id=both.trace_ids, task=both.tasks
    )
    settings = {"judges": judges, "confidence_level": level}
    of_both = frame.sort_values("trace_id")
    return JudgeDrift(
        provenance=provenance,
        before=judges[0],
        after=judges[1],
        verdict_names=both.names[:n_verdicts],
        n=len(codes),
        table=tuple(tuple(row) for row in table.tolist()),
        classes=_classes(table.astype(np.int64), both.names),
        credit_change=mean_against_zero(
            after - before,
            nothing=NOT_CLASSES,
            clusters=both.tasks[classes],
            confidence_level=level,
        ),
        same=estimate(PERCENT_AGREEMENT, patterns, clusters=clusters, confidence_level=level),
        alpha=estimate(KRIPPENDORFF_ALPHA, patterns, clusters=clusters, confidence_level=level),
        against_humans=None if data is None else _against(both, data, options),
        fingerprint=fingerprint(
            taxonomy=taxonomy, settings={"kind": "judge drift", **settings}, both=of_both
        )
        if data is None
        else data.fingerprint("judge drift", settings, both=of_both),
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
    both: _Both, data: CalibrationData, options: CalibrationOptions
) -> AgainstHumans | None:
    sample, confidence_level = data.sample(options.design), options.confidence_level
    place = {trace_id: k for k, trace_id in enumerate(both.trace_ids)}
    at = data.labelled["trace_id"].map(place)
    known = at.notna().to_numpy()
    rows = at[known].to_numpy(dtype=np.int64)
    codes, tasks = both.codes[rows], both.tasks[rows]
    shares = np.asarray(sample.human)[known]
    weights = None if sample.weights is None else np.asarray(sample.weights)[known]
    n = len(codes)
    # Zero columns: a verdict that is no class is never right.
    beyond = max(0, int(codes.max(initial=0)) + 1 - both.n_classes)
    human = np.column_stack([shares, np.zeros((n, beyond))])
    right = np.take_along_axis(human, codes, axis=1)
    classes: NDArray[np.bool_] = np.all(codes < both.n_classes, axis=1)
    credit = both.credit_at(rows[classes])
    given = gross_scores(shares[classes], credit)
    gaps = np.column_stack([class_credit(credit, codes[classes, side]) - given for side in (0, 1)])
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


def compare_judges(
    store: "Store",
    before: str,
    after: str,
    *,
    batch_id: str | None = None,
    options: CalibrationOptions | None = None,
) -> JudgeDrift:
    """Compare the first verdicts of two judges on the production traces that both judged.

    Errors against the humans are those on the named batch, or on the batches of the rate, if
    any. Raises InputError if one of the judges is not known, or both are the same; MixedDataError
    if one is simulated and the other is not; CalibrationError if they have no trace in common.
    """
    if before == after:
        raise InputError(f"the two judges must differ, got {before!r} twice")
    _check(store, before, after)
    taxonomy = store.taxonomy()
    names = (*taxonomy.names, NO_VERDICT)
    frame = _on_both(store, before, after, names)
    data = _labels(store, batch_id)
    if data is not None:
        refuse_mixture(store, before, data)
        data = with_judge(store, data, after)
    both = _Both(
        trace_ids=frame["trace_id"].tolist(),
        codes=frame[["before", "after"]].to_numpy(dtype=np.int64),
        tasks=frame["task_key"].to_numpy(dtype=str),
        names=names,
        n_classes=len(taxonomy.names),
        credit=credit_rows(taxonomy.credit_table, frame["workflow"].tolist()),
    )
    provenance = Provenance(
        source="store",
        judge_id=after,
        batch_id="" if data is None else data.provenance.batch_id,
        simulated=bool(frame["simulated"].any()),
    )
    return _drift(
        both, data, options or CalibrationOptions(), provenance, (before, after),
        taxonomy.fingerprint,
    )  # fmt: skip


def _check(store: "Store", *judges: str) -> None:
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


def _on_both(store: "Store", before: str, after: str, names: Sequence[str]) -> pd.DataFrame:
    """Return the production traces that both judged, with both verdict codes."""
    code = {name: k for k, name in enumerate(names)}
    frame = store.production_traces()[["trace_id", "workflow", "task_key", "simulated"]]
    for name, judge in (("before", before), ("after", after)):
        verdicts = store.verdict_frame(judge)
        outcomes = pd.DataFrame(
            {"trace_id": verdicts["trace_id"], name: verdicts["outcome"].map(code)}
        )
        frame = frame.merge(outcomes, on="trace_id")
    if frame.empty:
        raise CalibrationError(
            f"judges {before!r} and {after!r} have no trace in common; let both judge the same ones"
        )
    return frame.sort_values("trace_id").reset_index(drop=True)


def _labels(store: "Store", batch_id: str | None) -> CalibrationData | None:
    if batch_id is None and not any(b.purpose == "production" for b in store.batches()):
        return None
    loaded = load_batch(store, pooled_id(store, batch_id), sample=False)
    return None if loaded.labelled.empty else loaded


def compare_verdicts(
    data: CalibrationData, other: VerdictFile, options: CalibrationOptions
) -> JudgeDrift:
    """Compare the verdicts with those of another table, or of another judge of the same table.

    Raises InputError if the other table has an outcome that is no class; CalibrationError if they
    have no trace in common.
    """
    names = (*data.verdict_names, *(n for n in NO_CLASS if n not in data.verdict_names))
    trace_ids = data.traces["trace_id"].tolist()
    common = [k for k, trace_id in enumerate(trace_ids) if trace_id in other.rows]
    if not common:
        raise CalibrationError(
            f"{data.provenance.verdicts} and {other.path} have no trace in common"
        )
    theirs = [
        outcome_code(
            other, names, data.vocabulary.verdict(other.rows[trace_ids[k]].outcome) or NO_VERDICT
        )
        for k in common
    ]
    both = _Both(
        trace_ids=[trace_ids[k] for k in common],
        codes=np.column_stack([theirs, data.verdicts[common]]).astype(np.int64),
        tasks=data.traces["task_key"].to_numpy(dtype=str)[common],
        names=names,
        n_classes=len(data.classes),
        credit=data.credit_of(data.traces.iloc[common]),
    )
    mine = data.provenance.judge_id or data.provenance.verdicts, data.provenance.verdicts
    yours = other.judge or other.path, other.path
    judges = [name for name, _ in (yours, mine)]
    if judges[0] == judges[1]:
        judges = [f"{name} of {path}" for name, path in (yours, mine)]
    return _drift(
        both, data, options, data.provenance, (judges[0], judges[1]), data.taxonomy.fingerprint
    )


def other_verdicts(provenance: Provenance, against: str) -> VerdictFile:
    """Return the verdicts of another file, or judge; raise InputError if the same or unreadable."""
    if Path(against).is_file():
        return read_verdicts(Path(against))
    if against == provenance.judge_id:
        raise InputError(f"the two judges must differ, got {against!r:.80} twice")
    return read_verdicts(Path(provenance.verdicts), judge=against)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelDrift:
    """Whether labels of earlier runs still hold: P(class | verdict) in two periods.

    `first`, `middle`, `last` : weeks of the labelled runs; the later period, of about half of them,
        begins with `middle`
    `p_holm` : adjusted p-value of each verdict that can be tested
    `stale_before` : week before which labels no longer hold; None where no change is shown
    `unlabelled_since`, `n_since` : first week of production after the last labelled run, and how
        many runs there are from it on
    `a_month` : labels a month that keep the present half-width: as many as there are, from the
        period that still holds
    """

    status: str
    n: int
    first: str | None = None
    middle: str | None = None
    last: str | None = None
    p_holm: dict[str, float] = field(default_factory=dict)
    stale_before: str | None = None
    unlabelled_since: str | None = None
    n_since: int = 0
    a_month: int | None = None


def labels_over_time(data: CalibrationData, sample: LabelledSample) -> LabelDrift:
    """Compare the classes behind each verdict in the earlier and the later half of the labels.

    Halves are parted between weeks. Labels are stale where a verdict changes at .05 (Holm).
    """
    weeks = group_names(data.traces, "week")
    of_label = weeks[data.at]
    known = of_label != UNKNOWN
    names, counts = np.unique(of_label[known], return_counts=True)
    if names.size < 2:
        return LabelDrift(status=ONE_WEEK, n=int(known.sum()))
    before = counts.cumsum()[:-1]
    middle = str(names[1 + np.abs(2 * before - counts.sum()).argmin()])
    late = of_label[known] >= middle
    found = changed_meanings(sample.human[known], sample.verdicts[known], late)
    p_holm = {data.verdict_names[verdict]: p for verdict, p in found.items()}
    stale = any(p < STALE for p in p_holm.values())
    first, last = middle if stale else str(names[0]), str(names[-1])
    days = (first_day(last) - first_day(first)).days + 7
    since = weeks[(weeks > last) & (weeks != UNKNOWN)]
    return LabelDrift(
        status=OK,
        n=int(known.sum()),
        first=str(names[0]),
        middle=middle,
        last=last,
        p_holm=p_holm,
        stale_before=middle if stale else None,
        unlabelled_since=str(np.unique(since)[0]) if since.size else None,
        n_since=int(since.size),
        a_month=ceil(int(known.sum()) * DAYS_OF_A_MONTH / days),
    )
