"""Graders written as code on trace files or a store: shares, and agreement with labels."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from calibration.analyses.evidence.from_store import agreed_traces
from calibration.analyses.success_rate.report import LeftOutRows
from calibration.errors import InputError
from calibration.records import Trace
from calibration.reliability.graders import Grade, Grader, grade_trace, rules_of_tasks
from calibration.statistics.estimate import Estimate
from calibration.statistics.intervals import wilson_share
from calibration.statistics.means import clustered_share
from calibration.store import Store
from calibration.tables.trials import REFERENCE, STATE, TaskTable
from calibration.taxonomy import Taxonomy
from calibration.trace_formats import Parsed, read_traces

MOST_GRADES, AT_ONCE, EXAMPLES = 5_000_000, 200, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedGrade:
    """What one grader proposes on one run; it is no label."""

    trace_id: str
    workflow: str
    task: str
    grader: str
    passed: bool | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderAgainstLabels:
    """A grader beside the consensus of reviewers; success is the class of full credit.

    Counts are of runs with both: pass and success, pass and none, fail and success, fail and none.
    """

    agreement: Estimate
    pass_success: int
    pass_other: int
    fail_success: int
    fail_other: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderResult:
    """The share of runs that pass a grader, of those that it is for and could grade."""

    name: str
    kind: str
    share: Estimate
    n_passed: int
    n_failed: int
    n_not_graded: int
    n_not_applicable: int
    against_labels: GraderAgainstLabels | None
    first_failed: tuple[ProposedGrade, ...]
    not_graded: tuple[LeftOutRows, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingAnalysis:
    """What `asr grade` prints: each grader, and what it proposes on each run.

    `set_aside` : runs that could not be read, by reason
    """

    sources: tuple[str, ...]
    n_traces: int
    graders: tuple[GraderResult, ...]
    grades: tuple[ProposedGrade, ...]
    set_aside: tuple[LeftOutRows, ...]


def grade_files(
    paths: Sequence[Path],
    graders: Sequence[Grader],
    *,
    tasks: TaskTable | None = None,
    confidence_level: float = 0.95,
) -> GradingAnalysis:
    """Grade the runs of trace files of any known format; InputError where one cannot be read.

    What `tasks` says of a task, its expected state and its reference text, is read as metadata of
    its runs that have none of their own; its rules of order are graders too.
    """
    aside: Counter[str] = Counter()
    first: dict[str, str] = {}

    def traces() -> Iterator[Trace]:
        for path in paths:
            for item in read_traces(path):
                if isinstance(item, Parsed):
                    yield item.trace
                else:
                    reason = item.reason.partition(", got ")[0]
                    aside[reason] += 1
                    first.setdefault(reason, f"{path.name} line {item.line}: {item.reason:.200}")

    graders = with_rules(graders, tasks)
    made = _graded(_told(traces(), tasks), graders)
    return GradingAnalysis(
        sources=tuple(map(str, paths)),
        n_traces=made.n_traces,
        graders=tuple(_results(made, graders, {}, confidence_level)),
        grades=tuple(made.grades),
        set_aside=tuple(
            LeftOutRows(reason=reason, n=n, examples=(first[reason],))
            for reason, n in aside.most_common()
        ),
    )


def grade_store(
    store: Store,
    graders: Sequence[Grader],
    *,
    tasks: TaskTable | None = None,
    confidence_level: float = 0.95,
) -> GradingAnalysis:
    """Grade the production runs of a store, and compare with its consensus; nothing is written.

    The consensus of a run is its adjudicated class, or the class that two reviewers or more gave
    without having seen other labels, and nobody another one. `tasks` as in `grade_files`.
    """
    graders = with_rules(graders, tasks)
    made = _graded(_told(stored_runs(store), tasks), graders)
    success = _successes(store, store.taxonomy())
    return GradingAnalysis(
        sources=(str(store.path),),
        n_traces=made.n_traces,
        graders=tuple(_results(made, graders, success, confidence_level)),
        grades=tuple(made.grades),
        set_aside=(),
    )


@dataclass(frozen=True, slots=True)
class _Graded:
    n_traces: int
    grades: list[ProposedGrade]
    apart: Counter[str]  # runs that a grader is not for, by its name


def _graded(traces: Iterable[Trace], graders: Sequence[Grader]) -> _Graded:
    n, apart = 0, Counter[str]()
    grades: list[ProposedGrade] = []
    for trace in traces:
        n += 1
        found = grade_trace(trace, graders)
        for grader in graders:
            grade = found.get(grader.name)
            if grade is None or not grade.applies:
                apart[grader.name] += 1
            else:
                grades.append(_proposed(trace, grader.name, grade))
        if len(grades) > MOST_GRADES:
            raise InputError(f"more than {MOST_GRADES:,} grades: name fewer files or graders")
    if not n:
        raise InputError("there is no run to grade")
    return _Graded(n, grades, apart)


def _proposed(trace: Trace, name: str, grade: Grade) -> ProposedGrade:
    return ProposedGrade(
        trace_id=trace.trace_id,
        workflow=trace.workflow,
        task=trace.task_key,
        grader=name,
        passed=grade.passed,
        reason=grade.reason,
    )


def _results(
    made: _Graded, graders: Sequence[Grader], success: Mapping[str, bool], level: float
) -> Iterator[GraderResult]:
    of_each: dict[str, list[ProposedGrade]] = {grader.name: [] for grader in graders}
    for grade in made.grades:
        of_each[grade.grader].append(grade)
    for grader in graders:
        own = of_each[grader.name]
        failed = [of for of in own if of.passed is False]
        open_ = [of for of in own if of.passed is None]
        reasons = Counter(of.reason for of in open_)
        yield GraderResult(
            name=grader.name,
            kind=grader.kind,
            share=_share(own, level),
            n_passed=len(own) - len(failed) - len(open_),
            n_failed=len(failed),
            n_not_graded=len(open_),
            n_not_applicable=made.apart[grader.name],
            against_labels=_against(own, success, level),
            first_failed=tuple(failed[:EXAMPLES]),
            not_graded=tuple(
                LeftOutRows(reason=reason, n=n) for reason, n in reasons.most_common(EXAMPLES)
            ),
        )


def _share(own: Sequence[ProposedGrade], level: float) -> Estimate:
    """Estimate the share of runs that pass; runs of one task depend on each other."""
    decided = [of for of in own if of.passed is not None]
    tasks = [of.task for of in decided]
    index = np.unique(np.array(tasks, dtype=str), return_inverse=True)[1].ravel()
    passed = np.array([of.passed for of in decided], dtype=np.float64)
    return clustered_share(
        np.bincount(index, weights=passed).astype(np.float64),
        np.bincount(index).astype(np.float64),
        n=len(decided),
        noun="tasks",
        confidence_level=level,
    )


def _against(
    own: Sequence[ProposedGrade], success: Mapping[str, bool], level: float
) -> GraderAgainstLabels | None:
    table = Counter(
        (of.passed, success[of.trace_id])
        for of in own
        if of.passed is not None and of.trace_id in success
    )
    if not table:
        return None
    return GraderAgainstLabels(
        agreement=wilson_share(
            table[True, True] + table[False, False],
            table.total(),
            nothing="no labels",
            confidence_level=level,
        ),
        pass_success=table[True, True],
        pass_other=table[True, False],
        fail_success=table[False, True],
        fail_other=table[False, False],
    )


def with_rules(graders: Sequence[Grader], tasks: TaskTable | None) -> tuple[Grader, ...]:
    """Return graders and the rules of order of a task file; InputError if there is none at all."""
    found = (*graders, *(() if tasks is None else rules_of_tasks(tasks.before)))
    if not found:
        raise InputError("there is no grader: give --graders, or --tasks with a column 'before'")
    return found


def _told(traces: Iterable[Trace], tasks: TaskTable | None) -> Iterator[Trace]:
    """Yield runs with what a task file says of their tasks as metadata."""
    for trace in traces:
        if tasks is None:
            yield trace
            continue
        told = {
            STATE: tasks.known_of(tasks.expected_state, trace.task_key, trace.task_id),
            REFERENCE: tasks.known_of(tasks.reference, trace.task_key, trace.task_id),
        }
        given = {name: value for name, value in told.items() if value is not None}
        yield replace(trace, metadata=given | trace.metadata)


def stored_runs(store: Store, wanted: Container[str] | None = None) -> Iterator[Trace]:
    """Yield the production runs of a store, or the wanted ones, a few transcripts at a time."""
    ids = sorted(store.production_traces()["trace_id"])
    ids = ids if wanted is None else [trace_id for trace_id in ids if trace_id in wanted]
    for start in range(0, len(ids), AT_ONCE):
        yield from store.whole_traces(ids[start : start + AT_ONCE])


def _successes(store: Store, taxonomy: Taxonomy) -> dict[str, bool]:
    """Return whether the consensus of each run that has one is success."""
    frames = [store.label_frame(b.batch_id) for b in store.batches() if b.purpose == "production"]
    found: dict[str, bool] = {}
    if frames:
        labels = pd.concat(frames)
        labels = labels[(labels["kind"] == "label") & ~labels["exposed"].astype(bool)]
        agreed = agreed_traces(labels.assign(code=labels["outcome"]))
        found |= {str(name): outcome == taxonomy.success for name, outcome in agreed.items()}
    consensus = store.consensus_frame()
    pairs = zip(consensus["trace_id"], consensus["outcome"], strict=True)
    return found | {str(name): outcome == taxonomy.success for name, outcome in pairs}
