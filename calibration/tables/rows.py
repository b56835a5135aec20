"""Rows of CSV, JSONL and Parquet files: reading them with their line, and writing CSV."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from calibration.errors import InputError
from calibration.records import Evidence
from calibration.trace_formats.base import MAX_TRACE_BYTES
from calibration.trace_formats.fields import FieldError
from calibration.trace_formats.json_scanner import decode_text
from calibration.trace_formats.own_files import delimiter_of

Row = dict[str, Any]

MAX_QUOTES = 20

_FORMULA = re.compile(r"'*[=+\-@\t\r]")

_GUARDED = re.compile(r"'+[=+\-@\t\r]")


def read_rows(path: Path, *, required: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """Yield line number and row of a CSV or JSONL file that has the required fields.

    Raises
    ------
    InputError
        If the file cannot be read or a row lacks a field; the message names file, line, field.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 (byte {error.start})") from error
    if not text.strip():
        raise InputError(f"{path}: the file is empty; it needs the fields {', '.join(required)}")
    is_json = text.lstrip()[:1] == "{"
    for line, row in _json_rows(path, text) if is_json else _csv_rows(path, text, required):
        for name in required:
            if row.get(name) is None or not str(row[name]).strip():
                raise InputError(f"{path}, line {line}: field {name!r} is missing")
        yield line, row


def any_rows(path: Path, *, required: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """Yield as `read_rows`, from a Parquet file too, whose rows are numbered from 1.

    Raises
    ------
    InputError
        As `read_rows`.
    """
    if path.suffix != ".parquet":
        yield from read_rows(path, required=required)
        return
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({error!s:.200})") from error
    for name in required:
        if name not in table.column_names:
            raise InputError(f"{path}: column {name!r} is missing")
    line = 0
    for batch in table.to_batches():
        for row in batch.to_pylist():
            line += 1
            for name in required:
                if not said_as_text(row[name]):
                    raise InputError(f"{path}, line {line}: field {name!r} is missing")
            yield line, row


def said_as_text(value: Any) -> str:
    """Return a cell as text; a whole number is written as one however it was stored."""
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def text_field(row: Row, name: str, *, path: Path, line: int) -> str | None:
    """Return an optional text of a row, None where it is missing or empty."""
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise InputError(f"{path}, line {line}, field {name!r}: must be text, got {value!r:.80}")
    return value or None


def evidence_fields(row: Row, *, path: Path, line: int) -> tuple[Evidence, ...]:
    """Return what a row quotes: evidence_step and evidence_quote, or a list under `evidence`.

    Raises
    ------
    InputError
        If it is neither, or too much.
    """
    given = row.get("evidence")
    if given is None or given == "":
        at = text_field(row, "evidence_step", path=path, line=line) or ""
        said = text_field(row, "evidence_quote", path=path, line=line)
        return (Evidence(step_id=at, quote=said),) if said else ()
    found = []
    for item in given if isinstance(given, list) else [given]:
        step, quote = (
            item.get(n) if isinstance(item, dict) else None for n in ("step_id", "quote")
        )
        if not (isinstance(step, str) and isinstance(quote, str) and quote):
            raise InputError(
                f"{path}, line {line}, field 'evidence': must be a list of objects with step_id "
                f"and quote, got {item!r:.80}"
            )
        found.append(Evidence(step_id=step, quote=quote))
    if len(found) > MAX_QUOTES:
        raise InputError(
            f"{path}, line {line}, field 'evidence': must hold at most {MAX_QUOTES} quotes, got "
            f"{len(found)}"
        )
    return tuple(found)


def guard(text: str) -> str:
    """Keep a spreadsheet from running a cell as a formula; `unguard` takes it back.

    A text that already begins with quotes before a formula sign gets one more, so that every
    text comes back as it was.

    Examples
    --------
    >>> guard("=1+1"), guard("'=1+1"), guard("it's")
    ("'=1+1", "''=1+1", "it's")
    >>> unguard(guard("'=1+1"))
    "'=1+1"
    """
    return "'" + text if _FORMULA.match(text) else text


def unguard(text: str) -> str:
    """Return the text that `guard` was given."""
    return text[1:] if _GUARDED.match(text) else text


def as_csv(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """Return rows as CSV; a text that a spreadsheet would run gets a quote in front."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(map(guard, columns))
    for row in rows:
        cells = (row[name] for name in columns)
        writer.writerow([guard(cell) if isinstance(cell, str) else cell for cell in cells])
    return text.getvalue()


def _csv_rows(path: Path, text: str, required: Sequence[str]) -> Iterator[tuple[int, Row]]:
    # The limit is global to the csv module; it is only ever raised, to what a trace may have.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_TRACE_BYTES))
    header = text.lstrip().split("\n", 1)[0].encode()
    delimiter = delimiter_of(header, required[0] if required else None)
    if delimiter is None:
        needed = f"the columns {', '.join(required)}" if required else "two columns or more"
        raise InputError(
            f"{path}, line 1: must be a header with {needed} (or the file one JSON object a line)"
        )
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    columns: list[str] = []
    line = 1
    try:
        for cells in reader:
            if not columns and any(cells):
                columns = _columns(path, line, cells, required)
            elif any(cells):
                if len(cells) != len(columns):
                    what = f"has {len(cells)} cells, the header has {len(columns)}"
                    raise InputError(f"{path}, line {line}: {what}; quote cells that hold commas")
                # Only CSV has been in a spreadsheet, where formulas need a guard.
                kept = [unguard(cell.replace("\x00", "\ufffd")) for cell in cells]
                yield line, dict(zip(columns, kept, strict=True))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}, line {line}: is not CSV ({error})") from error


def _columns(path: Path, line: int, cells: list[str], required: Sequence[str]) -> list[str]:
    columns = [cell.strip() for cell in cells]
    for name in columns:
        if name and columns.count(name) > 1:
            raise InputError(f"{path}, line {line}: column {name!r} occurs twice")
    for name in required:
        if name not in columns:
            raise InputError(f"{path}, line {line}: column {name!r} is missing")
    return columns


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, Row]]:
    for line, content in enumerate(text.split("\n"), 1):
        if content.strip():
            try:
                row = decode_text(content)
            except FieldError as error:
                raise InputError(f"{path}, line {line}: {error}") from error
            if not isinstance(row, dict):
                raise InputError(f"{path}, line {line}: must be an object")
            yield line, row


def outcome_field(row: Row, known: Sequence[str], *, path: Path, line: int) -> str:
    """Return the class that a row names.

    Raises
    ------
    InputError
        If it is none of the known ones.
    """
    outcome = str(row["outcome"]).strip()
    if outcome not in known:
        raise InputError(
            f"{path}, line {line}, field 'outcome': {outcome!r:.80} is none of {list(known)}"
        )
    return outcome
