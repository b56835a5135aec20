"""Recognising a trace format by what a file holds, never by its name."""

from itertools import islice
from pathlib import Path

from calibration.errors import TraceFormatError
from calibration.trace_formats.base import Head, Importer
from calibration.trace_formats.fields import FieldError
from calibration.trace_formats.json_scanner import JsonText, decode_line
from calibration.trace_formats.own_files import (
    RECORDS,
    delimiter_of,
    first_line,
    has_record,
    sample_rows,
)
from calibration.trace_formats.tau2_bench import FOLDER, INDEX, TAU2
from calibration.trace_formats.tau_bench import TAU_BENCH

FORMATS: tuple[Importer, ...] = (TAU_BENCH, TAU2, RECORDS)

_SAMPLE = 5

_BINARY = {
    b"PK\x03\x04": "a zip archive",
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "a gzip file (unpack it first)",
    b"\x28\xb5\x2f\xfd": "a Zstandard file (unpack it first)",
    b"\xff\xfe": "UTF-16 text (save it as UTF-8)",
    b"\xfe\xff": "UTF-16 text (save it as UTF-8)",
}


def detect(path: Path) -> Importer:
    """Return the importer of a file or run directory.

    Raises
    ------
    TraceFormatError
        If no importer recognises it. The message names the file, what it holds and what was
        expected; for a file that breaks off, the line.
    """
    head, found = _look(path)
    for importer in FORMATS:
        if importer.recognises(head):
            return importer
    expected = "; ".join(f"{importer.title} ({importer.expects})" for importer in FORMATS)
    raise TraceFormatError(f"{path}: format not recognised: {found}. Expected one of: {expected}")


def _look(path: Path) -> tuple[Head, str]:
    """Return the head of a file and a sentence on what it holds."""
    if path.is_dir():
        if not (path / INDEX).is_file():
            return Head(kind="other", keys=()), f"it is a directory without {INDEX}"
        head, found = _look_at_object(path / INDEX)
        return Head(kind="directory", keys=head.keys), f"{INDEX} is {found}"
    first = first_line(path)
    if first == b"":
        raise TraceFormatError(f"{path}: the file is empty")
    for magic, what in _BINARY.items():
        if first is not None and first.startswith(magic):
            return Head(kind="other", keys=()), f"it is {what}"
    if first is not None and first.startswith(b"["):
        return _look_at_array(path)
    if first is None or first.startswith(b"{"):
        lines = _look_at_lines(path)
        # A file of lines whose first one is broken still is a file of lines.
        if has_record(lines[0]) or (lines[0].kind == "lines" and _is_object(first)):
            return lines
        return _look_at_object(path)
    delimiter = delimiter_of(first)
    if delimiter is not None:
        cells = first.decode("utf-8", "replace").split(delimiter)
        keys = frozenset(cell.strip().strip('"').strip() for cell in cells)
        return Head(kind="csv", keys=(keys,)), f"it is a table with the columns {_names(keys)}"
    return _look_at_lines(path)


def _look_at_array(path: Path) -> tuple[Head, str]:
    source = JsonText(path)
    keys: list[frozenset[str]] = []
    problem = ""
    try:
        for run, _ in islice(source.elements(source.blank(0)), _SAMPLE):
            if isinstance(run, dict):
                keys.append(frozenset(run))
    except TraceFormatError as error:
        problem = str(error).removeprefix(f"{path}, ")
    what = f"of objects with the fields {_names(keys[0])}" if keys else "without objects"
    found = f"it is a JSON list {what}"
    return Head(kind="array", keys=tuple(keys)), f"{found}, and {problem}" if problem else found


def _look_at_object(path: Path) -> tuple[Head, str]:
    source = JsonText(path)
    keys: set[str] = set()
    problem = ""
    try:
        for key, _ in source.members(source.blank(0)):
            keys.add(key)
            if key == FOLDER and len(keys) > 1:
                break  # the runs: what stands before them is enough
    except TraceFormatError as error:
        problem = str(error).removeprefix(f"{path}, ")
    kind = "object"
    if "tasks" in keys and FOLDER not in keys and (path.parent / FOLDER).is_dir():
        kind = "directory"
    found = f"it is a JSON object with the fields {_names(frozenset(keys))}"
    head = Head(kind=kind, keys=(frozenset(keys),) if keys else ())
    return head, f"{found}, and {problem}" if problem else found


def _look_at_lines(path: Path) -> tuple[Head, str]:
    keys, count = sample_rows(path)
    if not keys:
        return Head(kind="other", keys=()), "it is neither JSON nor a table with 'trace_id'"
    kind = "lines" if count > 1 else "object"
    what = "JSON lines" if kind == "lines" else "a JSON object"
    return Head(kind=kind, keys=tuple(keys)), f"it is {what} with the fields {_names(keys[0])}"


def _is_object(line: bytes | None) -> bool:
    try:
        return line is not None and isinstance(decode_line(line), dict)
    except FieldError:
        return False


def _names(keys: frozenset[str]) -> str:
    named = sorted(key if len(key) <= 40 else key[:39] + "…" for key in keys)
    listed = ", ".join(repr(name) for name in named[:8])
    return (listed + (", ..." if len(named) > 8 else "")) or "(none)"
