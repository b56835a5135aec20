"""A judge calibrated on tables that were counted elsewhere: one JSON file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from calibration.analyses.calibrated import Calibrated, Choices
from calibration.analyses.calibration_checks import checked_claims
from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.judge_alpha import judge_alpha
from calibration.correction.calibrate import Design, LabelledSample, calibrate_tables
from calibration.correction.results import HEADLINE
from calibration.errors import InputError
from calibration.importers.base import FieldError
from calibration.importers.fields import number, whole, wrong
from calibration.importers.scan import decode_text

REQUIRED = ("design", "classes", "credit", "confusion", "production_judge_counts")
OPTIONAL = ("judge_classes",)
MAX_CLASSES = 200
# Labelled traces are told apart below; nobody labels as many.
MAX_LABELS = 10_000_000
# Above it a count is no longer exact as a float.
MAX_COUNT = 2**53


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """What a file of tables says, its columns with the classes first.

    Parameters
    ----------
    confusion : int array, shape (n_classes, n_verdicts)
        Labelled traces by human class and verdict.
    production : int array, shape (n_verdicts,)
        Judged production traces by verdict; for design ``"production"`` with the labelled ones.
    unknown : tuple of str
        Fields of the file that mean nothing here.
    """

    file: str
    design: Design
    classes: tuple[str, ...]
    credit: tuple[float, ...]
    verdict_names: tuple[str, ...]
    confusion: NDArray[np.int64]
    production: NDArray[np.int64]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCalibration(Calibrated):
    """A judge calibrated on the tables of a file; without costs net and gross are equal."""

    file: str


def read_tables(path: Path) -> Tables:
    """Read a file of tables.

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


def _tables(file: str, content: dict[str, Any]) -> Tables:
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
    return Tables(
        file=file,
        design=cast(Design, design),
        classes=classes,
        credit=_credit(content["credit"], classes),
        verdict_names=names,
        confusion=confusion,
        production=production,
        unknown=tuple(sorted(set(content) - {*REQUIRED, *OPTIONAL})),
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


def _credit(value: object, classes: tuple[str, ...]) -> tuple[float, ...]:
    given = _by_name(value, classes, "credit", "the humans")
    credit = []
    for name, one in zip(classes, given, strict=True):
        found = number(one, "credit", maximum=1.0)
        if found is None:
            raise FieldError(f"field 'credit': that of {name!r:.80} is missing")
        credit.append(found)
    return tuple(credit)


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


def sample_of_tables(tables: Tables) -> LabelledSample:
    """Return a labelled trace for every count."""
    rows, columns = np.divmod(
        np.repeat(np.arange(tables.confusion.size), tables.confusion.ravel()),
        len(tables.verdict_names),
    )
    return LabelledSample(human=np.eye(len(tables.classes))[rows], verdicts=columns)


def calibrate_on_tables(tables: Tables, choices: Choices) -> TableCalibration:
    """Calibrate on tables; the design is theirs."""
    result = calibrate_tables(
        tables.confusion,
        tables.production,
        credit=tables.credit,
        design=tables.design,
        verdict_names=tables.verdict_names,
        pseudo_count=choices.pseudo_count,
        confidence_level=choices.confidence_level,
        seed=choices.seed,
    )
    n_verdicts = len(tables.verdict_names)
    said = {
        "design": tables.design,
        "classes": tables.classes,
        "credit": tables.credit,
        "verdict_names": tables.verdict_names,
        "confusion": tables.confusion.tolist(),
        "production": tables.production.tolist(),
        "pseudo_count": choices.pseudo_count,
        "confidence_level": choices.confidence_level,
        "seed": choices.seed,
    }
    notes = ["no costs are known: nothing is penalised, net and gross are the same"]
    if tables.unknown:
        notes.append(f"fields that mean nothing here: {', '.join(tables.unknown):.200}")
    return TableCalibration(
        file=tables.file,
        design=tables.design,
        classes=tables.classes,
        credit=dict(zip(tables.classes, tables.credit, strict=True)),
        verdict_names=tables.verdict_names,
        calibration=checked_claims(
            result, production_counts=tables.production, verdict_names=tables.verdict_names,
            classes=tables.classes,
        ),
        alpha=judge_alpha(
            sample_of_tables(tables), n_verdicts=n_verdicts,
            confidence_level=choices.confidence_level,
        ),
        notes=tuple(notes),
        seed=choices.seed,
        fingerprint=fingerprint(
            taxonomy=json.dumps(tables.classes), settings={"kind": "calibrate tables", **said}
        ),
    )  # fmt: skip
