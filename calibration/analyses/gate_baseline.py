"""A run as a file that later runs are compared with, written and read back."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from calibration.analyses.gate_comparable import Comparable, TaskRates, checked_rates
from calibration.analyses.weight_tables import DEFAULT_WEIGHTS
from calibration.errors import InputError
from calibration.metrics.counts import RunCounts
from calibration.metrics.frames import OTHER_SCORE, counts_of_frame

PART = "for_comparison"
FORMAT = "asr-gate-baseline/1"
MAX_BYTES = 500_000_000
KEYS = ("task", "stratum", "outcome", "cost_known", "penalty_step", "weight", "tasks")
SUMS = ("n", "penalty", "score", OTHER_SCORE + DEFAULT_WEIGHTS)


def baseline_data(found: Comparable) -> dict[str, Any]:
    """Return plain data that `read_baseline` reads back.

    Raises
    ------
    InputError
        If the trials of a task are of several models: nothing can be compared with them.
    """
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
    """Return the counts without week, workflow and model, a row a cell."""
    frame = pd.DataFrame(
        {
            "stratum": runs.stratum,
            "outcome": runs.mix,
            "cost_known": runs.known,
            # Grouped as finely as the resamples are.
            "penalty_step": np.ceil(np.round(runs.penalty / runs.runs * 1024, 9)).astype(np.int64),
            "weight": runs.weight,
            "tasks": runs.like,
            "n": runs.runs,
            "penalty": runs.penalty,
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


def read_baseline(path: Path) -> Comparable:
    """Read what `asr gate --write-baseline` wrote.

    Raises
    ------
    InputError
        If it cannot be read or is no baseline; the message names the field.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: is larger than {MAX_BYTES:,} bytes; is it a baseline?")
        data = json.loads(path.read_bytes().decode("utf-8-sig"), parse_constant=_no_number)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: is not JSON ({error!s:.100}); write a baseline with asr gate --write-baseline"
        ) from error
    part = data.get(PART) if isinstance(data, dict) else None
    if not isinstance(part, dict) or part.get("format") != FORMAT:
        printed = isinstance(data, dict) and "exit_code" in data and part is None
        what = "is what --json printed, which holds no runs" if printed else "is no baseline"
        raise InputError(
            f"{path}: {what} (field {PART!r} of format {FORMAT!r}); write one with asr gate "
            "--write-baseline"
        )
    try:
        return _comparable(part)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, InputError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else f"{error!s:.150}"
        raise InputError(f"{path}, field {PART!r}: {what}; write the baseline again") from error


def _comparable(part: Mapping[str, Any]) -> Comparable:
    if not isinstance(part["partial_plus_passes"], bool):
        raise TypeError("'partial_plus_passes' must be true or false")
    runs = counts_of_frame(pd.DataFrame(part["runs"]), credit=part["credit"])
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
    raise ValueError(f"{constant} is no number")
