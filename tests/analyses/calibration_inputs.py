"""Files of labels and verdicts of two classes, and what they come to."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.evidence.from_files import load_tables
from calibration.analyses.judge.calibration import (
    CalibrationOptions,
    JudgeCalibration,
    calibrate_judge,
)
from calibration.judge_calibration.samples import Design
from calibration.tables.labels import Source

TWO = {"pass": 1.0, "fail": 0.0}

COUNTS = [[24, 6], [2, 18]]

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return written


def rows(head: str, *lines: str) -> str:
    return "\n".join([head, *lines]) + "\n"


def spread(
    table: Sequence[Sequence[int]], classes: Sequence[str], verdicts: Sequence[str]
) -> list[tuple[str, str, str]]:
    """Return trace, human class and verdict of every labelled trace of a table."""
    cells = [
        (classes[j], verdicts[k])
        for j, row in enumerate(table)
        for k, n in enumerate(row)
        for _ in range(n)
    ]
    return [(f"t{n}", *cell) for n, cell in enumerate(cells)]


def two_files(
    write: Write,
    labelled: Sequence[tuple[str, str, str]],
    others: Mapping[str, int],
    columns: Mapping[str, Sequence[object]] | None = None,
) -> tuple[Path, Path]:
    """Write labels and verdicts; `others` counts unlabelled traces by verdict."""
    more = columns or {}
    head = ",".join(["trace_id,outcome", *more])
    labels = [
        ",".join([trace, human, *(str(values[k]) for values in more.values())])
        for k, (trace, human, _) in enumerate(labelled)
    ]
    said = [f"{trace},{verdict}" for trace, _, verdict in labelled]
    said += [f"u-{name}-{k},{name}" for name, n in others.items() for k in range(n)]
    return write("human.csv", rows(head, *labels)), write(
        "verdicts.csv", rows("trace_id,outcome", *said)
    )


def calibrated(
    human: Source,
    verdicts: Source,
    design: Design = "production",
    pseudo_count: float = 0.5,
    **options: Any,
) -> JudgeCalibration:
    data = load_tables(human, verdicts, design=design, **options)
    return calibrate_judge(data, CalibrationOptions(design=design, pseudo_count=pseudo_count))


def of_two(
    write: Write, design: Design = "production", columns: Any = None, **options: Any
) -> JudgeCalibration:
    labelled = spread(COUNTS, ["pass", "fail"], ["pass", "fail"])
    files = two_files(write, labelled, {"pass": 474, "fail": 476}, columns)
    given = {"classes": ["pass", "fail"], "credit": TWO} | options
    return calibrated(*files, design, **given)
