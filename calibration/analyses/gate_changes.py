"""A run against a saved one: paired by task where the tasks are the same."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from calibration.analyses.gate_comparable import Comparable, TaskRates
from calibration.analyses.production_comparison import differing_ceilings, restated_runs
from calibration.analyses.report_options import ReportOptions
from calibration.analyses.weight_tables import credit_in_words
from calibration.errors import InputError
from calibration.estimates import not_estimable
from calibration.gates.composed import ONE_SIDED
from calibration.gates.measurements import Change
from calibration.metrics.comparison import difference_between
from calibration.metrics.counts import RunCounts
from calibration.metrics.differences import Difference
from calibration.records import OUTCOMES
from calibration.taxonomy import default_taxonomy

MOST_CATEGORIES = 200
ASR_PART, PASS_PART, CATEGORY_PART = 21, 22, 23
OTHER_TREE = (
    "the baseline was labelled with other questions, so its classes mean something else: label "
    "its runs again, or take a newer baseline"
)
OTHER_PASS = "in the baseline partial_plus passes and here it does not, or the other way round"
PAIRED, NO_TASK = "paired by task", "no task is in both"
OTHER_CEILINGS = (
    "the ceilings are not those of the baseline ({which}): score both under one, or write the "
    "baseline again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """Changes against a baseline, overall and by category."""

    changes: Mapping[str, Change] = field(default_factory=dict)
    by_category: Mapping[str, Change] = field(default_factory=dict)


def against(
    now: Comparable, before: Comparable, *, options: ReportOptions, max_drop: float
) -> Against:
    """Compare two runs as `asr compare` does, over the tasks of both where most are shared.

    Other weights are restated under the default ones and other ceilings refused; pass@1 looks at
    classes alone, so both leave it as it is. Other questions refuse every comparison.
    """
    if now.tree != before.tree:
        refused = _refused(OTHER_TREE)
        return Against(changes={"asr": refused, "pass_at_1": refused})
    shared, note = _shared(now, before)
    changes = {"asr": _asr(now, before, shared, note, options)}
    if now.partial_plus_passes != before.partial_plus_passes:
        changes["pass_at_1"] = _refused(OTHER_PASS)
        return Against(changes=changes)
    if isinstance(now.tasks, str) or isinstance(before.tasks, str):
        why = now.tasks if isinstance(now.tasks, str) else str(before.tasks)
        changes["pass_at_1"] = _refused(f"{why}, which are never pooled: choose one with --model")
        return Against(changes=changes)
    mine, theirs = _of(now.tasks, shared), _of(before.tasks, shared)
    drop = _pass_at_1(mine, theirs, shared is not None, max_drop, options, PASS_PART)
    changes["pass_at_1"] = replace(drop, note=note)
    return Against(
        changes=changes,
        by_category=_by_category(mine, theirs, shared is not None, max_drop, options),
    )


def _refused(why: str) -> Change:
    return Change(estimate=not_estimable(why, method="difference"))


def _shared(now: Comparable, before: Comparable) -> tuple[NDArray[np.str_] | None, str]:
    """Return the tasks of both; None when they share less than half, or have no names."""
    names = [
        None if isinstance(side.tasks, str) or side.runs.task is None else side.tasks.names
        for side in (now, before)
    ]
    mine, theirs = names
    if mine is None or theirs is None:
        return None, ""
    shared = np.intersect1d(mine, theirs)
    if not shared.size or 2 * shared.size < max(mine.size, theirs.size):
        few = f"{shared.size:,} tasks are in both, too few to pair" if shared.size else NO_TASK
        return None, f"{few}: taken as two samples"
    new, gone = mine.size - shared.size, theirs.size - shared.size
    if not new and not gone:
        return shared, PAIRED
    return shared, (
        f"{PAIRED}, over the {shared.size:,} tasks that both have; {new:,} are new and {gone:,} "
        "are gone"
    )


def _asr(
    now: Comparable,
    before: Comparable,
    shared: NDArray[np.str_] | None,
    note: str,
    options: ReportOptions,
) -> Change:
    which = differing_ceilings(
        before.ceilings, now.ceilings, before.ceilings.keys() & now.ceilings.keys()
    )
    if which:
        return _refused(OTHER_CEILINGS.format(which=which))
    sides = before.runs, now.runs
    notes = [note]
    if not np.array_equal(sides[0].credit, sides[1].credit):
        default = tuple(default_taxonomy().credit[name] for name in OUTCOMES)
        sides = restated_runs(before.runs, default), restated_runs(now.runs, default)
        words = credit_in_words(default)
        notes.insert(0, f"weights differ: both restated under the default ones ({words})")
    found = difference_between(
        _runs_of(sides[0], shared),
        _runs_of(sides[1], shared),
        paired=shared is not None,
        **options.resampling(ASR_PART) | {"confidence_level": ONE_SIDED},
    )
    return replace(_change(found), note="; ".join(filter(None, notes)))


def _runs_of(runs: RunCounts, shared: NDArray[np.str_] | None) -> RunCounts:
    if shared is None or runs.task is None:
        return runs
    return runs.where(np.isin(np.asarray(runs.task, dtype=np.str_), shared))


def _of(tasks: TaskRates, shared: NDArray[np.str_] | None) -> TaskRates:
    if shared is None or tasks.names is None:
        return tasks
    return tasks.where(np.isin(tasks.names, shared))


def _change(found: Difference) -> Change:
    return Change(
        estimate=found.estimate,
        lower=None if found.one_sided is None else found.one_sided[0],
        p_below=found.p_below,
    )


def _pass_at_1(
    mine: TaskRates,
    theirs: TaskRates,
    paired: bool,
    max_drop: float,
    options: ReportOptions,
    part: int,
) -> Change:
    try:
        found = difference_between(
            theirs.counts(),
            mine.counts(),
            "share:complete",
            paired=paired,
            null=-max_drop,
            **options.resampling(part),
        )
    except ValueError as error:
        raise InputError(f"the runs cannot be compared with the baseline: {error}") from error
    return _change(found)


def _by_category(
    mine: TaskRates, theirs: TaskRates, paired: bool, max_drop: float, options: ReportOptions
) -> dict[str, Change]:
    names = np.intersect1d(mine.categories, theirs.categories).tolist()
    if not 2 <= len(names) <= MOST_CATEGORIES:
        return {}
    found = {}
    for name in names:
        here, there = (side.where(side.categories == name) for side in (mine, theirs))
        if paired and here.names is not None and there.names is not None:
            # A task may have changed its category; what is compared is what both call so.
            both = np.intersect1d(here.names, there.names)
            here, there = _of(here, both), _of(there, both)
        if here.n.size and there.n.size:
            found[name] = _pass_at_1(here, there, paired, max_drop, options, CATEGORY_PART)
    return found
