"""Runs against a saved result: paired by task where the tasks are the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from calibration.analyses.gate_baseline import Comparable, TaskTotals
from calibration.analyses.gate_rates import mixed_models, of_each_task
from calibration.analyses.gate_runs import FloatArray, Runs
from calibration.estimates import not_estimable
from calibration.gates.changes import Change, paired_change, unpaired_change
from calibration.metrics.pass_at_k import Trials

MOST_CATEGORIES = 200
OTHER_TREE = (
    "the baseline was labelled with other questions, so its classes mean something else: label "
    "its runs again, or take a newer baseline"
)
OTHER_PASS = "in the baseline partial_plus passes and here it does not, or the other way round"


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """Changes against a baseline, overall and by category."""

    changes: Mapping[str, Change] = field(default_factory=dict)
    by_category: Mapping[str, Change] = field(default_factory=dict)


def categories_of(runs: Runs) -> list[str]:
    """Return the category of every task: the column of that name, else its workflow."""
    return of_each_task(runs, runs.categories or runs.workflows, "category")


def totals(
    runs: Runs, trials: Trials, score: FloatArray, score_default: FloatArray
) -> tuple[TaskTotals, ...]:
    """Return the sums of every task; nothing where the runs do not name their tasks."""
    if not all(task for _, task in runs.task_names) or mixed_models(runs):
        return ()
    weights = np.ones(runs.n) if runs.weights is None else runs.weights
    sums = [np.bincount(runs.tasks, weights=w) for w in (weights, weights * score)]
    sums.append(np.bincount(runs.tasks, weights=weights * score_default))
    return tuple(
        TaskTotals(
            workflow=workflow, task=task, category=category, n=n, passed=c, weight=weight,
            score=of_score, score_default=of_default,
        )
        for (workflow, task), category, n, c, weight, of_score, of_default in zip(
            runs.task_names, categories_of(runs), trials.n.tolist(), trials.c.tolist(),
            *(column.tolist() for column in sums), strict=True,
        )
    )  # fmt: skip


def against(now: Comparable, before: Comparable, *, confidence_level: float) -> Against:
    """Compare two runs, restated under the default weights or refused where taxonomies differ.

    pass@1 looks at classes alone, so other weights and ceilings leave it as it is. Other questions
    refuse every comparison.
    """
    if now.tree != before.tree:
        return _refused(OTHER_TREE)
    restated = now.taxonomy != before.taxonomy
    note = "weights or ceilings differ: both restated under the default ones" if restated else ""
    shared, left_out = _shared(now.tasks, before.tasks)
    rates = {
        "asr": (now.asr_default, before.asr_default) if restated else (now.asr, before.asr),
        "pass_at_1": (now.pass_at_1, before.pass_at_1),
    }
    changes = {}
    for name, (mine, theirs) in rates.items():
        notes = [note] if name == "asr" else []
        if name == "pass_at_1" and now.partial_plus_passes != before.partial_plus_passes:
            changes[name] = Change(estimate=not_estimable(OTHER_PASS, method="difference"))
            continue
        if shared:
            both = [_columns([pair[k] for pair in shared], name, restated=restated) for k in (0, 1)]
            change = paired_change(
                both[0], both[1], confidence_level=confidence_level,
                note="; ".join(filter(None, [*notes, left_out])),
            )  # fmt: skip
        else:
            change = unpaired_change(
                mine, theirs, confidence_level=confidence_level, note="; ".join(filter(None, notes))
            )
        changes[name] = change
    by_category: Mapping[str, Change] = {}
    if now.partial_plus_passes == before.partial_plus_passes:
        by_category = _by_category(now, before, shared, confidence_level)
    return Against(changes=changes, by_category=by_category)


def _refused(why: str) -> Against:
    change = Change(estimate=not_estimable(why, method="difference"))
    return Against(changes={"asr": change, "pass_at_1": change})


Pair = tuple[TaskTotals, TaskTotals]


def _shared(now: Sequence[TaskTotals], before: Sequence[TaskTotals]) -> tuple[list[Pair], str]:
    """Pair the tasks of both; none when they share less than half of either."""
    known = {(task.workflow, task.task): task for task in before}
    pairs = [
        (task, known[task.workflow, task.task])
        for task in now
        if (task.workflow, task.task) in known
    ]
    if 2 * len(pairs) < max(len(now), len(before)):
        return [], ""
    if len(pairs) == len(now) == len(before):
        return pairs, ""
    return pairs, (
        f"over the {len(pairs)} tasks that both have; {len(now) - len(pairs)} are new and "
        f"{len(before) - len(pairs)} are gone"
    )


def _columns(
    tasks: Sequence[TaskTotals], name: str, *, restated: bool = False
) -> tuple[FloatArray, FloatArray]:
    if name == "pass_at_1":
        shares = np.array([task.passed / task.n for task in tasks])
        return shares, np.ones(len(tasks))
    tops = np.array([task.score_default if restated else task.score for task in tasks])
    return tops, np.array([task.weight for task in tasks])


def _by_category(
    now: Comparable, before: Comparable, shared: Sequence[Pair], confidence_level: float
) -> dict[str, Change]:
    names = [name for name in now.by_category if name in before.by_category]
    if len(names) < 2:
        return {}
    found = {}
    for name in names:
        pairs = [pair for pair in shared if pair[0].category == name]
        if pairs:
            mine, theirs = ([pair[k] for pair in pairs] for k in (0, 1))
            found[name] = paired_change(
                _columns(mine, "pass_at_1"),
                _columns(theirs, "pass_at_1"),
                confidence_level=confidence_level,
            )
        else:
            found[name] = unpaired_change(
                now.by_category[name], before.by_category[name], confidence_level=confidence_level
            )
    return found
