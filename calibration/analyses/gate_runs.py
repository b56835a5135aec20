"""A file of runs as arrays: all that the gates need to know of how runs are stored."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.analyses.rows import Row, any_rows, said_as_text
from calibration.errors import InputError
from calibration.importers.base import FieldError
from calibration.importers.fields import number, wrong
from calibration.records import OUTCOMES, SetAside

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAX_USD, MAX_WEIGHT, MAX_UNITS, MAX_SECONDS = 1e6, 1e9, 1e9, 1e9
YES, NO = ("true", "yes"), ("false", "no")
NO_OUTCOME = "the run has no outcome"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Runs:
    """Runs as arrays of one length, in the order of the file.

    Parameters
    ----------
    trace_ids, workflows, models : list of str
        Empty where it was not said.
    outcomes : int array
        Position in `OUTCOMES`.
    tasks : int array
        Number of the run's task, its position in `task_names`; a run of no task is its own.
    task_names : list of (str, str)
        Workflow and task id, both empty for a run of no task.
    costs, latencies : float array
        USD, seconds; NaN where it is not known.
    units : float array
        Units that the run handled.
    weights : float array or None
        Inverse inclusion probabilities; None without the column.
    strata, tiers, categories : list of str or None
        None without the column.
    loops, corrupted : float array or None
        1 where it happened, 0 where it did not, NaN where nobody looked; None without the column.
    """

    trace_ids: list[str]
    workflows: list[str]
    models: list[str]
    outcomes: IntArray
    tasks: IntArray
    task_names: list[tuple[str, str]]
    costs: FloatArray
    latencies: FloatArray
    units: FloatArray
    weights: FloatArray | None
    strata: list[str] | None
    tiers: list[str] | None
    categories: list[str] | None
    loops: FloatArray | None
    corrupted: FloatArray | None

    @property
    def n(self) -> int:
        """Number of runs."""
        return len(self.trace_ids)

    @property
    def repeat(self) -> bool:
        """Whether some task has several runs."""
        return len(self.task_names) < self.n


def read_runs(path: Path) -> tuple[Runs, tuple[SetAside, ...]]:
    """Read runs from CSV, JSONL or Parquet; also return the rows that have no outcome.

    The fields are trace_id, outcome, and optionally workflow, cost_usd, units, task_id, trial,
    weight, stratum, latency_s, model, tier, category, loops, data_corruption, tags.

    Raises
    ------
    InputError
        If a field is not what it must be, or a trace or a trial occurs twice; with file and line.
    """
    kept: list[Row] = []
    set_aside: list[SetAside] = []
    seen: dict[str, int] = {}
    trials: dict[tuple[str, ...], int] = {}
    columns: set[str] = set()
    for line, row in any_rows(path, required=("trace_id",)):
        if "outcome" not in row:
            raise InputError(f"{path}, line {line}: field 'outcome' is missing")
        columns.update(row)
        try:
            run = _run(row)
            _once(run, line, seen, trials)
        except FieldError as error:
            raise InputError(f"{path}, line {line}, {error}") from error
        if run["outcome"]:
            kept.append(run)
        else:
            set_aside.append(SetAside(file=str(path), line=line, reason=NO_OUTCOME))
    if not kept:
        raise InputError(f"{path}: holds no run with an outcome; the field is 'outcome'")
    return _arrays(kept, columns, path), tuple(set_aside)


def _run(row: Row) -> Row:
    """Return the checked fields of a row; what is missing is empty or None."""
    texts = (
        "trace_id", "outcome", "workflow", "task_id", "trial", "stratum", "model", "tier",
        "category",
    )  # fmt: skip
    run: Row = {name: said_as_text(row.get(name)) for name in texts}
    if run["outcome"] and run["outcome"] not in OUTCOMES:
        raise wrong("outcome", f"must be one of {', '.join(OUTCOMES)}", run["outcome"])
    amounts = (
        ("cost_usd", MAX_USD, False), ("units", MAX_UNITS, True), ("weight", MAX_WEIGHT, True),
        ("latency_s", MAX_SECONDS, False),
    )  # fmt: skip
    for name, maximum, above_zero in amounts:
        run[name] = _amount(row.get(name), name, maximum=maximum, above_zero=above_zero)
    run["loops"] = _happened(row.get("loops"), "loops")
    run["data_corruption"] = _happened(row.get("data_corruption"), "data_corruption")
    if run["data_corruption"] is None and row.get("tags") is not None:
        run["data_corruption"] = float("data_corruption" in _tags(row["tags"]))
    return run


def _once(run: Row, line: int, seen: dict[str, int], trials: dict[tuple[str, ...], int]) -> None:
    before = seen.setdefault(run["trace_id"], line)
    if before != line:
        raise FieldError(f"field 'trace_id': {run['trace_id']!r:.80} is in line {before} already")
    if run["task_id"] and run["trial"]:
        trial = tuple(run[name] for name in ("workflow", "task_id", "model", "trial"))
        before = trials.setdefault(trial, line)
        if before != line:
            raise FieldError(
                f"field 'trial': {run['trial']!r:.40} of task {run['task_id']!r:.80} is in line "
                f"{before} already"
            )


def _arrays(kept: list[Row], columns: set[str], path: Path) -> Runs:
    numbers: dict[tuple[str, ...], int] = {}
    tasks = []
    for k, run in enumerate(kept):
        own = (run["workflow"], run["task_id"]) if run["task_id"] else ("", "", str(k))
        tasks.append(numbers.setdefault(own, len(numbers)))

    def floats(name: str, missing: float = np.nan) -> FloatArray:
        return np.array([missing if r[name] is None else r[name] for r in kept], dtype=np.float64)

    def texts(name: str) -> list[str] | None:
        return [run[name] for run in kept] if name in columns else None

    weights = None
    if any(run["weight"] is not None for run in kept):
        weights = floats("weight")
        if np.isnan(weights).any():
            raise InputError(
                f"{path}: some rows have a weight and some have none; give all or none"
            )
    return Runs(
        trace_ids=[run["trace_id"] for run in kept],
        workflows=[run["workflow"] for run in kept],
        models=[run["model"] for run in kept],
        outcomes=np.array([OUTCOMES.index(run["outcome"]) for run in kept], dtype=np.int64),
        tasks=np.array(tasks, dtype=np.int64),
        task_names=[(name[0], name[1]) for name in numbers],
        costs=floats("cost_usd"),
        latencies=floats("latency_s"),
        units=floats("units", 1.0),
        weights=weights,
        strata=texts("stratum"),
        tiers=texts("tier"),
        categories=texts("category"),
        loops=floats("loops") if "loops" in columns else None,
        corrupted=floats("data_corruption") if columns & {"data_corruption", "tags"} else None,
    )


def _tags(value: object) -> Iterator[str]:
    """Yield tags: a list, or texts parted by commas, semicolons or bars."""
    parts = value if isinstance(value, list) else str(value).replace(";", ",").replace("|", ",")
    for part in parts if isinstance(parts, list) else parts.split(","):
        yield said_as_text(part).casefold()


def _happened(value: object, name: str) -> float | None:
    """Return 1 for true, yes or a count above zero, 0 for none, None where nobody looked."""
    if isinstance(value, bool):
        return float(value)
    said = said_as_text(value).casefold()
    if said in YES or said in NO:
        return float(said in YES)
    count = _amount(value, name, maximum=1e9, above_zero=False)
    return None if count is None else float(count > 0)


def _amount(value: object, name: str, *, maximum: float, above_zero: bool) -> float | None:
    if isinstance(value, str):
        if not value.strip():
            return None
        try:
            value = float(value)
        except ValueError as error:
            raise wrong(name, "must be a number", value) from error
    elif isinstance(value, float) and value != value:  # how Parquet may store what is missing
        return None
    return number(value, name, maximum=maximum, above_zero=above_zero)
