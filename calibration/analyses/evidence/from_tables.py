"""Calibration data of a JSON file of counted tables: human class x verdict, and production."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.evidence.data import CalibrationData, Provenance
from calibration.analyses.evidence.from_files import LABEL_COLUMNS
from calibration.errors import InputError
from calibration.judge_calibration.samples import HEADLINE, Design
from calibration.taxonomy import default_taxonomy
from calibration.trace_formats.fields import FieldError, number, whole, wrong
from calibration.trace_formats.json_scanner import decode_text

REQUIRED = ("design", "classes", "credit", "confusion", "production_judge_counts")

OPTIONAL = ("judge_classes",)

MAX_CLASSES = 200

# Labelled traces become rows; nobody labels as many.
MAX_LABELS = 10_000_000

# Above it a count is no longer exact as a float.
MAX_COUNT = 2**53


def read_tables(path: Path) -> tuple[CalibrationData, Design]:
    """Read a file of tables, in reduced form: no single trace is known, nor any cost.

    Raises
    ------
    InputError
        If it cannot be read or a field is missing or not what it must be; the message names the
        file and the field.
    """
    try:
        content = decode_text(path.read_bytes().decode("utf-8-sig"))
        if not isinstance(content, dict):
            raise FieldError(f"must hold one JSON object, got {type(content).__name__}")
        return _tables(str(path), content)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 (byte {error.start})") from error
    except FieldError as error:
        raise InputError(f"{path}: {error}") from error


def _tables(file: str, content: dict[str, Any]) -> tuple[CalibrationData, Design]:
    for name in REQUIRED:
        if content.get(name) is None:
            raise FieldError(f"field {name!r} is missing; needed are {', '.join(REQUIRED)}")
    design = content["design"]
    if not isinstance(design, str) or design not in HEADLINE:
        raise wrong("design", f"must be one of {', '.join(HEADLINE)}", design)
    classes = _names(content["classes"], "classes", at_least=2)
    columns = classes
    if content.get("judge_classes") is not None:
        columns = _names(content["judge_classes"], "judge_classes", at_least=2)
        lacking = [name for name in classes if name not in columns]
        if lacking:
            raise FieldError(
                f"field 'judge_classes': must hold all classes, {lacking[0]!r:.80} is not there"
            )
    # The same tables with columns in another order are the same tables.
    names = (*classes, *sorted(set(columns) - set(classes)))
    order = [columns.index(name) for name in names]
    confusion = _matrix(content["confusion"], classes, columns)[:, order]
    production = _counts(
        content["production_judge_counts"], columns, "production_judge_counts", "the judge"
    )[order]
    if design == "production":
        _check_included(confusion, production, names)
    credit = _credit(content["credit"], classes)
    notes = ["no costs are known: nothing is penalised, net and gross are the same"]
    if unknown := sorted(set(content) - {*REQUIRED, *OPTIONAL}):
        notes.append(f"fields that mean nothing here: {', '.join(unknown):.200}")
    data = _reduced(file, classes, credit, names, confusion, production, tuple(notes))
    return data, cast(Design, design)


def _reduced(
    file: str,
    classes: tuple[str, ...],
    credit: Sequence[float],
    names: tuple[str, ...],
    confusion: NDArray[np.int64],
    production: NDArray[np.int64],
    notes: tuple[str, ...],
) -> CalibrationData:
    """Return a labelled trace for every count of the table."""
    cells = np.repeat(np.arange(confusion.size), confusion.ravel())
    rows, verdicts = np.divmod(cells, len(names))
    n = cells.size
    nothing = pd.DataFrame({"trace_id": [], "workflow": [], "task_key": []}, dtype=object)
    return CalibrationData(
        provenance=Provenance(source="tables", verdicts=file),
        taxonomy=default_taxonomy(),
        classes=classes,
        credit=np.array(credit),
        sampling="claimed",
        traces=nothing,
        verdict_names=names,
        verdicts=verdicts,
        penalties=np.zeros(n),
        counts=production,
        labels=pd.DataFrame(columns=list(LABEL_COLUMNS)),
        labelled=nothing,
        at=np.arange(n),
        human=np.eye(len(classes))[rows],
        adjudicated=np.zeros(n, dtype=bool),
        tasks=np.arange(n),
        notes=notes,
    )


def _names(value: object, name: str, *, at_least: int) -> tuple[str, ...]:
    rule = f"must be a list of {at_least} to {MAX_CLASSES} names, each once"
    if not isinstance(value, list) or not at_least <= len(value) <= MAX_CLASSES:
        raise wrong(name, rule, value)
    for one in value:
        if not isinstance(one, str) or not one.strip() or len(one) > 200:
            raise wrong(name, rule, one)
    names = tuple(one.strip() for one in value)
    for one in names:
        if names.count(one) > 1:
            raise FieldError(f"field {name!r}: {rule}, {one!r:.80} occurs twice")
    return names


def _by_name(value: object, names: Sequence[str], name: str, whose: str) -> list[object]:
    """Return a list in the order of `names`, from such a list or from an object by name."""
    if isinstance(value, Mapping):
        for one in (*value, *names):
            if one not in names:
                raise FieldError(f"field {name!r}: {one!r:.80} is no class of {whose}")
            if one not in value:
                raise FieldError(f"field {name!r}: {one!r:.80} is missing")
        return [value[one] for one in names]
    if not isinstance(value, list) or len(value) != len(names):
        got = f"a list of {len(value)}" if isinstance(value, list) else f"{value!r:.60}"
        raise FieldError(
            f"field {name!r}: must be a list of {len(names)}, one a class of {whose}, got {got}"
        )
    return value


def _credit(value: object, classes: tuple[str, ...]) -> list[float]:
    given = _by_name(value, classes, "credit", "the humans")
    credit = []
    for name, one in zip(classes, given, strict=True):
        found = number(one, "credit", maximum=1.0)
        if found is None:
            raise FieldError(f"field 'credit': that of {name!r:.80} is missing")
        credit.append(found)
    return credit


def _counts(value: object, columns: Sequence[str], name: str, whose: str) -> NDArray[np.int64]:
    counts = []
    for column, one in zip(columns, _by_name(value, columns, name, whose), strict=True):
        found = whole(one, name, maximum=MAX_COUNT)
        if found is None:
            raise FieldError(f"field {name!r}: the count of {column!r:.80} is missing")
        counts.append(found)
    if sum(counts) > MAX_COUNT:
        raise FieldError(f"field {name!r}: must sum to at most {MAX_COUNT:,}, got {sum(counts):,}")
    return np.array(counts, dtype=np.int64)


def _matrix(value: object, classes: tuple[str, ...], columns: tuple[str, ...]) -> NDArray[np.int64]:
    rows = _by_name(value, classes, "confusion", "the humans")
    found = []
    for name, row in zip(classes, rows, strict=True):
        try:
            found.append(_counts(row, columns, "confusion", "the judge"))
        except FieldError as error:
            raise FieldError(f"{error} (in the row of {name!r:.80})") from error
    table = np.array(found)
    if table.sum() > MAX_LABELS:
        raise FieldError(
            f"field 'confusion': must sum to at most {MAX_LABELS:,} labels, got {table.sum():,}"
        )
    return table


def _check_included(
    confusion: NDArray[np.int64], production: NDArray[np.int64], names: Sequence[str]
) -> None:
    labelled = confusion.sum(axis=0)
    for k in np.flatnonzero(labelled > production).tolist():
        raise FieldError(
            f"field 'production_judge_counts': for design 'production' it includes the labelled "
            f"traces, but {names[k]!r:.80} has {production[k]:,} and {labelled[k]:,} are labelled"
        )
