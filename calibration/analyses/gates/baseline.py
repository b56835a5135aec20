"""Baselines: a saved run, and the paired comparison of a later run with it."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.success_rate.comparison import differing_ceilings, restated_runs
from calibration.analyses.success_rate.report import DEFAULT_WEIGHTS, ReportOptions, credit_in_words
from calibration.errors import InputError
from calibration.files import read_text, unique_keys
from calibration.gates.evaluate import ONE_SIDED, BaselineChange
from calibration.statistics.estimate import not_estimable
from calibration.success_rate.comparison import Difference, difference_between
from calibration.success_rate.resampling import drawn_cells, share_feature
from calibration.success_rate.runs import (
    OTHER_SCORE,
    RunCounts,
    checked_credit,
    counts_of_frame,
    runs_of_tasks,
)
from calibration.taxonomy import Taxonomy, default_credits

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

PART = "for_comparison"
FORMAT = "asr-gate-baseline/1"
MAX_BYTES = 100_000_000
KEYS = ("task", "stratum", "outcome", "cost_known", "penalty_step", "weight", "tasks")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskRates:
    """Trials and successes, one row per task or per kind of equal tasks.

    `names` are shared between runs, None where a row stands for several tasks. `n` and `passed`
    count trials of one task, `like` the tasks in the row; `weights` are means over trials.
    """

    names: NDArray[np.str_] | None
    categories: NDArray[np.str_]
    n: NDArray[np.int64]
    passed: NDArray[np.int64]
    like: NDArray[np.int64]
    weights: NDArray[np.float64]

    def counts(self, taxonomy: Taxonomy) -> RunCounts:
        """Return one run per task, complete by its share of successes."""
        share = self.passed / self.n
        if self.names is not None:
            return runs_of_tasks(share, taxonomy=taxonomy, weights=self.weights, tasks=self.names)
        return runs_of_tasks(
            np.repeat(share, self.like),
            taxonomy=taxonomy,
            weights=np.repeat(self.weights, self.like),
        )

    def where(self, rows: NDArray[np.bool_]) -> "TaskRates":
        """Return a selection of the tasks."""
        return replace(
            self,
            names=None if self.names is None else self.names[rows],
            categories=self.categories[rows],
            n=self.n[rows],
            passed=self.passed[rows],
            like=self.like[rows],
            weights=self.weights[rows],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparable:
    """Everything of a run that another run can be compared with.

    `taxonomy`, `tree` : fingerprints of the whole taxonomy, and of the questions alone
    `ceilings` : per unit, of the workflows that occur
    `runs` : with task names where these are few enough to be paired
    `tasks` : for pass@1, or why there is none
    `failed` : gates that blocked the run
    """

    taxonomy: str
    tree: str
    ceilings: Mapping[str, float | None]
    partial_plus_passes: bool
    runs: RunCounts
    tasks: TaskRates | str
    failed: tuple[str, ...] = ()


def tree_fingerprint(taxonomy: Taxonomy) -> str:
    """Return the SHA-256 over everything that decides a class: credits and ceilings do not."""
    classes = [(c.name, c.meaning) for c in taxonomy.classes]
    text = json.dumps([classes, [asdict(node) for node in taxonomy.nodes]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def checked_rates(rates: TaskRates) -> TaskRates:
    """Return the rates; raise if a count is impossible or a task occurs twice."""
    if (rates.n < 1).any() or (rates.passed < 0).any() or (rates.passed > rates.n).any():
        raise InputError("'tasks': more trials passed than there are, or none is there")
    if (rates.like < 1).any() or not (np.isfinite(rates.weights) & (rates.weights > 0)).all():
        raise InputError("'tasks': a count is below 1, or a weight is not above 0")
    if rates.names is not None and np.unique(rates.names).size < rates.names.size:
        raise InputError("'tasks': a task is there twice")
    return rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """Changes against a baseline, overall and by category."""

    changes: Mapping[str, BaselineChange] = field(default_factory=dict)
    by_category: Mapping[str, BaselineChange] = field(default_factory=dict)


def against(
    now: Comparable, before: Comparable, *, options: ReportOptions, max_drop: float
) -> Against:
    """Compare two runs as `asr compare` does, over their common tasks where most are common.

    Different credits are replaced by the default ones; different ceilings are refused. Neither
    affects pass@1, which uses classes alone. Different questions refuse every comparison.
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
    asked = _PassAt1(
        taxonomy=now.runs.taxonomy, paired=shared is not None, max_drop=max_drop, options=options
    )
    changes["pass_at_1"] = replace(asked.change(mine, theirs, PASS_PART), note=note)
    return Against(changes=changes, by_category=asked.by_category(mine, theirs))


def _refused(why: str) -> BaselineChange:
    return BaselineChange(estimate=not_estimable(why, method="difference"))


def _shared(now: Comparable, before: Comparable) -> tuple[NDArray[np.str_] | None, str]:
    """Return the common tasks; None when fewer than half are common, or tasks have no names."""
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
        return None, f"{few}: treated as two samples"
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
) -> BaselineChange:
    which = differing_ceilings(
        before.ceilings, now.ceilings, before.ceilings.keys() & now.ceilings.keys()
    )
    if which:
        return _refused(OTHER_CEILINGS.format(which=which))
    sides = before.runs, now.runs
    notes = [note]
    if sides[0].credit_table != sides[1].credit_table:
        default = default_credits(now.runs.taxonomy)
        sides = restated_runs(before.runs, default), restated_runs(now.runs, default)
        words = credit_in_words(default)
        notes.insert(0, f"weights differ: both restated under {words}")
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


def _change(found: Difference) -> BaselineChange:
    return BaselineChange(
        estimate=found.estimate,
        lower=None if found.one_sided is None else found.one_sided[0],
        p_below=found.p_below,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PassAt1:
    """The comparison of pass@1."""

    taxonomy: Taxonomy
    paired: bool
    max_drop: float
    options: ReportOptions

    def change(self, mine: TaskRates, theirs: TaskRates, part: int) -> BaselineChange:
        try:
            found = difference_between(
                theirs.counts(self.taxonomy),
                mine.counts(self.taxonomy),
                share_feature(self.taxonomy.success),
                paired=self.paired,
                null=-self.max_drop,
                **self.options.resampling(part),
            )
        except ValueError as error:
            raise InputError(f"the runs cannot be compared with the baseline: {error}") from error
        return _change(found)

    def by_category(self, mine: TaskRates, theirs: TaskRates) -> dict[str, BaselineChange]:
        names = np.intersect1d(mine.categories, theirs.categories).tolist()
        if not 2 <= len(names) <= MOST_CATEGORIES:
            return {}
        found = {}
        for name in names:
            here, there = (side.where(side.categories == name) for side in (mine, theirs))
            if self.paired and here.names is not None and there.names is not None:
                # A task may change its category: compare tasks that have it in both runs.
                both = np.intersect1d(here.names, there.names)
                here, there = _of(here, both), _of(there, both)
            if here.n.size and there.n.size:
                found[name] = self.change(here, there, CATEGORY_PART)
        return found


SUMS = ("n", "penalty", "penalty_squared", "score", OTHER_SCORE + DEFAULT_WEIGHTS)


def baseline_data(found: Comparable) -> dict[str, Any]:
    """Return plain data that `read_baseline` reads back; trials of several models have none."""
    if isinstance(found.tasks, str):
        raise InputError(f"no baseline can be written: {found.tasks}; choose one with --model")
    rates = found.tasks
    return {
        "format": FORMAT,
        "taxonomy": found.taxonomy,
        "tree": found.tree,
        "ceilings": dict(found.ceilings),
        "partial_plus_passes": found.partial_plus_passes,
        "credit": found.runs.credit.tolist(),
        **({"own_credit": dict(own)} if (own := found.runs.own_credit) else {}),
        "runs": _columns(_frame(found.runs)),
        "tasks": {
            "names": None if rates.names is None else rates.names.tolist(),
            "categories": rates.categories.tolist(),
            "n": rates.n.tolist(),
            "passed": rates.passed.tolist(),
            "like": rates.like.tolist(),
            "weights": rates.weights.tolist(),
        },
        "failed": list(found.failed),
    }


def _frame(runs: RunCounts) -> pd.DataFrame:
    """Return the counts without week, workflow and model, one row per cell."""
    if runs.task is None:
        runs = drawn_cells(runs)
    mean = np.round(runs.penalty / runs.runs, 12)
    frame = pd.DataFrame(
        {
            "stratum": runs.stratum,
            "outcome": runs.mix,
            "cost_known": runs.known,
            "penalty_step": np.where(
                runs.penalty > 0, 1 + np.unique(mean, return_inverse=True)[1], 0
            ),
            "weight": runs.weight,
            "tasks": runs.like,
            "n": runs.runs,
            "penalty": runs.penalty,
            "penalty_squared": runs.penalty_squared,
            "score": runs.score,
        }
    )
    if DEFAULT_WEIGHTS in runs.other_scores:
        frame[OTHER_SCORE + DEFAULT_WEIGHTS] = runs.other_scores[DEFAULT_WEIGHTS]
    if runs.task is not None:
        frame["task"] = runs.task
    keys = [name for name in KEYS if name in frame]
    return frame.groupby(keys, sort=True)[[n for n in SUMS if n in frame]].sum().reset_index()


def _columns(frame: pd.DataFrame) -> dict[str, list[Any]]:
    return {str(name): frame[name].tolist() for name in frame}


def read_baseline(path: Path, taxonomy: Taxonomy) -> Comparable:
    """Read a file of `asr gate --write-baseline`; errors name the field."""
    text = read_text(path, most=MAX_BYTES, hint="; is it a baseline?")
    try:
        data = json.loads(text, parse_constant=_no_number, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: is not JSON ({error!s:.100}); write a baseline with asr gate --write-baseline"
        ) from error
    part = data.get(PART) if isinstance(data, dict) else None
    if not isinstance(part, dict) or part.get("format") != FORMAT:
        printed = isinstance(data, dict) and "exit_code" in data and part is None
        what = "is what --json printed, which holds no runs" if printed else "is not a baseline"
        raise InputError(
            f"{path}: {what} (field {PART!r} of format {FORMAT!r}); write one with asr gate "
            "--write-baseline"
        )
    try:
        return _comparable(part, taxonomy)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, InputError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else f"{error!s:.150}"
        raise InputError(f"{path}, field {PART!r}: {what}; write the baseline again") from error


def _comparable(part: Mapping[str, Any], taxonomy: Taxonomy) -> Comparable:
    if not isinstance(part["partial_plus_passes"], bool):
        raise TypeError("'partial_plus_passes' must be true or false")
    runs = counts_of_frame(pd.DataFrame(part["runs"]), taxonomy=taxonomy, credit=part["credit"])
    # Only scores are compared, which have the credit of the workflows in them.
    runs = replace(runs, own_credit=_own_credit(part.get("own_credit", {}), taxonomy))
    tasks = part["tasks"]
    sizes = {len(column) for column in tasks.values() if column is not None}
    if len(sizes) != 1 or sizes == {0}:
        raise ValueError("'tasks': the columns must be of one length and hold a task")
    return Comparable(
        taxonomy=_text(part, "taxonomy"),
        tree=_text(part, "tree"),
        ceilings={
            str(name): None if usd is None else _finite(usd, name)
            for name, usd in part["ceilings"].items()
        },
        partial_plus_passes=part["partial_plus_passes"],
        runs=runs,
        tasks=checked_rates(
            TaskRates(
                names=None if tasks["names"] is None else np.array(tasks["names"], dtype=np.str_),
                categories=np.array(tasks["categories"], dtype=np.str_),
                n=_whole(tasks, "n"),
                passed=_whole(tasks, "passed"),
                like=_whole(tasks, "like"),
                weights=np.array(tasks["weights"], dtype=np.float64),
            )
        ),
        failed=tuple(map(str, part["failed"])),
    )


def _own_credit(given: object, taxonomy: Taxonomy) -> dict[str, tuple[float, ...]]:
    if not isinstance(given, dict):
        raise TypeError(f"'own_credit' must be an object, got {given!r:.40}")
    return {
        str(name): tuple(checked_credit(table, taxonomy).tolist()) for name, table in given.items()
    }


def _whole(tasks: Mapping[str, Any], name: str) -> Any:
    found = np.array(tasks[name])
    if found.dtype != np.int64:
        raise TypeError(f"'tasks': {name!r} must be whole numbers")
    return found


def _text(part: Mapping[str, Any], name: str) -> str:
    value = part[name]
    if not isinstance(value, str):
        raise TypeError(f"{name!r} must be text")
    return value


def _finite(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name!r:.60} must be a number, got {value!r:.40}")
    return float(value)


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")
