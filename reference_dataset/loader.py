"""Read a folder in the form of the reference dataset."""

import json
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from calibration.errors import InputError
from calibration.records import REFERENCE_SOURCE, Trace
from calibration.trace_formats import ImportSettings, Parsed, read_traces
from reference_dataset.records import (
    FORMS,
    JUDGEMENT,
    CanonicalEvidence,
    CanonicalLabel,
    Row,
    SecondReading,
    Settlement,
)

LABELS, SECOND_PASS, SETTLEMENTS = "labels.jsonl", "second_pass.jsonl", "settlements.jsonl"
OF_TASK = "of_task"  # field of a trace: the task in production that it is a run of
Record = TypeVar("Record")


class UnreadableError(InputError):
    """A file of a dataset cannot be read; says which one and, if it is one line, where."""

    def __init__(self, path: Path, reason: str, line: int | None = None) -> None:
        place = str(path) if line is None else f"{path}, line {line}"
        super().__init__(f"{place}: {reason}")
        self.file, self.reason, self.line = path.name, reason, line


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSet:
    """Traces, canonical labels, second readings and settlements by id; the ids of each form.

    A team's own set may have no second pass.
    """

    traces: dict[str, Trace]
    labels: dict[str, CanonicalLabel]
    forms: dict[str, tuple[str, ...]]
    second_pass: dict[str, SecondReading] = field(default_factory=dict)
    settlements: dict[str, Settlement] = field(default_factory=dict)


def published() -> Path:
    """Return the folder of the dataset that comes with the package."""
    return Path(str(files("reference_dataset")))


def load_reference(folder: Path | None = None) -> ReferenceSet:
    """Read a dataset; the published one by default.

    Raises
    ------
    InputError
        If a file is missing or a line cannot be read; `validate` says more.
    """
    folder = folder or published()
    traces: dict[str, Trace] = {}
    for path in trace_files(folder):
        for item in read_traces(path, ImportSettings()):
            if not isinstance(item, Parsed):
                raise InputError(f"{item.file}, line {item.line}: {item.reason}")
            # A trace that a team took out of production remains a run of its task.
            task = item.trace.metadata.get(OF_TASK)
            traces[item.trace.trace_id] = replace(
                item.trace,
                source=REFERENCE_SOURCE,
                task_key=task if isinstance(task, str) and task else item.trace.task_key,
            )
    return ReferenceSet(
        traces=traces,
        labels=_by_id(folder / LABELS, label_from, "canonical label"),
        forms=forms(folder),
        second_pass=_by_id(
            folder / SECOND_PASS, _second_reading, "reading of the second pass", optional=True
        ),
        settlements=_by_id(folder / SETTLEMENTS, _settlement, "settlement", optional=True),
    )


def _by_id(
    path: Path, build: Callable[[dict[str, Any]], Record], what: str, *, optional: bool = False
) -> dict[str, Record]:
    """Return the records of a file by the id of their trace."""
    found: dict[str, Record] = {}
    for row in [] if optional and not path.exists() else rows(path):
        try:
            found[row.data["trace_id"]] = build(row.data)
        except (TypeError, KeyError, AttributeError) as error:
            raise UnreadableError(path, f"is no {what}", row.line) from error
    return found


def _second_reading(data: dict[str, Any]) -> SecondReading:
    return SecondReading(**data)


def _settlement(data: dict[str, Any]) -> Settlement:
    return Settlement(**data)


def trace_files(folder: Path) -> list[Path]:
    """Return the trace files of a dataset, one a family."""
    found = sorted((folder / "traces").glob("*.jsonl"))
    if not found:
        raise UnreadableError(folder, "holds no traces/*.jsonl; it is not a reference dataset")
    return found


def rows(path: Path) -> list[Row]:
    """Return the lines of a JSONL file of the dataset, without its header."""
    return [row for row in all_rows(path) if "trace_id" in row.data]


def all_rows(path: Path) -> Iterator[Row]:
    """Yield every line of a JSONL file of the dataset."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableError(path, f"cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UnreadableError(path, f"is not UTF-8 (byte {error.start})") from error
    for line, content in enumerate(text.split("\n"), 1):
        if content.strip():
            try:
                data = json.loads(content, parse_constant=_no_number)
            except json.JSONDecodeError as error:
                raise UnreadableError(path, f"is not JSON ({error.msg})", line) from error
            except (ValueError, RecursionError) as error:
                raise UnreadableError(path, f"is not JSON ({error})", line) from error
            if not isinstance(data, dict):
                raise UnreadableError(path, "must be an object", line)
            yield Row(file=path.name, line=line, data=data)


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


def label_from(data: dict[str, Any]) -> CanonicalLabel:
    """Build a canonical label from the object of one line; a team's own may lack a part of it."""
    evidence = tuple(
        CanonicalEvidence(**(item | {"absent_from": tuple(item.get("absent_from", ()))}))
        for item in data.get("evidence", ())
    )
    whole = {"difficulty": JUDGEMENT, "nearest_wrong": "", "why_not": ""} | data
    return CanonicalLabel(**(whole | {"evidence": evidence}))


def forms(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return the trace ids of the practice form and the two exams."""
    path = folder / "forms.toml"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableError(path, f"cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnreadableError(path, f"is not TOML ({error})") from error
    found: dict[str, tuple[str, ...]] = {}
    for name in FORMS:
        form = data.get(name, {})
        ids = form.get("traces", []) if isinstance(form, dict) else None
        if not isinstance(ids, list) or not all(isinstance(trace_id, str) for trace_id in ids):
            raise UnreadableError(path, f"{name} must be a table with a list of trace ids")
        found[name] = tuple(ids)
    return found
