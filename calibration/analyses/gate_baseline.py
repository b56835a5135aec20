"""What a later run is compared with: the part of a saved result that a comparison needs."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from calibration.errors import InputError
from calibration.estimates import Estimate
from calibration.taxonomy import Taxonomy

PART = "for_comparison"
VERSION = 1
MAX_BYTES = 500_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTotals:
    """One task: its runs, those that passed, and the sums that its ASR is made of.

    `score` is under the taxonomy of the run, `score_default` under the one of the package.
    """

    workflow: str
    task: str
    category: str
    n: int
    passed: int
    weight: float
    score: float
    score_default: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparable:
    """Everything of a run that another run can be compared with.

    Parameters
    ----------
    taxonomy, tree : str
        Fingerprints of the whole taxonomy, and of the questions alone.
    partial_plus_passes : bool
        Whether partial_plus runs pass.
    asr, asr_default, pass_at_1 : Estimate
        Rates; `asr_default` under the taxonomy of the package.
    by_category : mapping of str to Estimate
        pass@1 of each category.
    tasks : tuple of TaskTotals
        Empty where the runs name no tasks, or where the file was written without them.
    failed : tuple of str
        Gates that blocked the run.
    """

    taxonomy: str
    tree: str
    partial_plus_passes: bool
    asr: Estimate
    asr_default: Estimate
    pass_at_1: Estimate
    by_category: Mapping[str, Estimate] = field(default_factory=dict)
    tasks: tuple[TaskTotals, ...] = ()
    failed: tuple[str, ...] = ()


def tree_fingerprint(taxonomy: Taxonomy) -> str:
    """Return the SHA-256 over what decides a class: weights and ceilings do not."""
    classes = [(c.name, c.meaning) for c in taxonomy.classes]
    text = json.dumps([classes, [asdict(node) for node in taxonomy.nodes]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def comparable_data(found: Comparable, *, with_tasks: bool) -> dict[str, Any]:
    """Return plain data that `read_baseline` reads back."""
    data = asdict(found) | {"version": VERSION}
    data["tasks"] = [list(asdict(task).values()) for task in found.tasks] if with_tasks else []
    data["failed"] = list(found.failed)
    return data


def read_baseline(path: Path) -> Comparable:
    """Read a saved result: what `asr gate --json` printed or `--write-baseline` wrote.

    Raises
    ------
    InputError
        If it cannot be read or is no such result; the message names the field.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: is larger than {MAX_BYTES:,} bytes; is it a baseline?")
        data = json.loads(path.read_bytes().decode("utf-8-sig"), parse_constant=_no_number)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error!s:.100})") from error
    part = data.get(PART) if isinstance(data, dict) else None
    if not isinstance(part, dict) or part.get("version") != VERSION:
        raise InputError(
            f"{path}: is no baseline of this version (field {PART!r}); write one with "
            "asr gate --write-baseline"
        )
    try:
        return _comparable(part)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else f"{error!s:.150}"
        raise InputError(f"{path}, field {PART!r}: {what}; write the baseline again") from error


def _comparable(part: Mapping[str, Any]) -> Comparable:
    flag = part["partial_plus_passes"]
    if not isinstance(flag, bool):
        raise TypeError("'partial_plus_passes' must be true or false")
    return Comparable(
        taxonomy=_text(part, "taxonomy"),
        tree=_text(part, "tree"),
        partial_plus_passes=flag,
        asr=_estimate(part, "asr"),
        asr_default=_estimate(part, "asr_default"),
        pass_at_1=_estimate(part, "pass_at_1"),
        by_category={name: _estimate(part["by_category"], name) for name in part["by_category"]},
        tasks=tuple(map(_task, part["tasks"])),
        failed=tuple(map(str, part["failed"])),
    )


def _task(row: Any) -> TaskTotals:
    workflow, task, category, n, passed, *sums = row
    weight, score, score_default = (_finite(value, "tasks") for value in sums)
    if not (isinstance(n, int) and isinstance(passed, int) and 0 <= passed <= n and n > 0):
        raise ValueError(f"'tasks': {n!r:.20} runs of which {passed!r:.20} passed cannot be")
    if not (weight > 0 and 0 <= score <= weight * 1.000001):
        raise ValueError(f"'tasks': a score of {score!r} of a weight of {weight!r} cannot be")
    return TaskTotals(
        workflow=str(workflow), task=str(task), category=str(category), n=n, passed=passed,
        weight=weight, score=score, score_default=score_default,
    )  # fmt: skip


def _estimate(part: Mapping[str, Any], name: str) -> Estimate:
    data = part[name]
    value, interval, se = data["value"], data["interval"], data["se"]
    n = data["n"]
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise ValueError(f"{name!r:.60}: n must be a whole number, got {n!r:.40}")
    limits = None
    if interval is not None:
        low, high = (_finite(limit, name) for limit in interval)
        limits = (low, high)
    level = _finite(data["confidence_level"], name)
    if not 0 < level < 1:
        raise ValueError(f"{name!r:.60}: confidence_level must be in (0, 1)")
    return Estimate(
        value=None if value is None else _finite(value, name),
        interval=limits,
        n=n,
        method=str(data["method"]),
        confidence_level=level,
        status=str(data["status"]),
        se=None if se is None else _finite(se, name),
    )


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
