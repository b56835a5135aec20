"""Files of our own format: JSON Lines, a JSON list, one JSON object, CSV or Parquet."""

import csv
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from calibration.errors import TraceFormatError
from calibration.files import DELIMITERS
from calibration.records import SetAside
from calibration.tables import words
from calibration.trace_formats.base import (
    MAX_TRACE_BYTES,
    Head,
    Importer,
    ImportSettings,
    Item,
    Parsed,
    attempt,
)
from calibration.trace_formats.compressed import first_bytes
from calibration.trace_formats.fields import FieldError, shown, wrong
from calibration.trace_formats.json_scanner import (
    JsonText,
    decode_line,
    decode_text,
    numbered_lines,
)
from calibration.trace_formats.own_records import (
    RECORD_SOURCE,
    is_transcript,
    parse_record,
    parse_transcript,
)
from calibration.trace_formats.parquet import PARQUET, parquet_rows

# Converts a row and its line.
Parse = Callable[[object, int], Parsed]

_SAMPLE_LINES = 50
JSON_COLUMNS = (
    "inputs", "sub_goals", "steps", "metadata", "verdict", "tool_calls", "messages",
    "expected_calls", "violations",
)  # fmt: skip
_NUMBER_COLUMNS = (
    "trial", "cost_usd", "latency_s", "units", "total_tokens", "confidence", "context_tokens",
)  # fmt: skip
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf)", re.I)
_TOO_LONG = f"is longer than {MAX_TRACE_BYTES // 1_000_000} MB"


def read(path: Path, settings: ImportSettings) -> Iterator[Item]:
    """Yield the records of one file; bad rows are set aside with their line."""

    def parse(row: object, line: int) -> Parsed:
        if not isinstance(row, dict):
            raise FieldError(f"is not a record: an object was expected, got {shown(row)}")
        if is_transcript(row):
            return parse_transcript(row, settings, path, line)
        return parse_record(row, settings, path, line)

    if first_bytes(path).startswith(PARQUET):
        yield from read_parquet(path, parse)
        return
    first = first_line(path) or b""
    if not first.startswith((b"[", b"{")) and delimiter_of(first) is not None:
        yield from _read_csv(path, parse)
    else:
        yield from read_json(path, parse, has_record)


def read_json(path: Path, parse: Parse, is_row: Callable[[Head], bool]) -> Iterator[Item]:
    """Yield the rows of a JSON list, of JSON Lines, or of one object over several lines.

    `is_row` says whether lines with these fields are rows; then no object spans several lines.
    """
    first = first_line(path)
    if first is not None and first.startswith(b"["):
        source = JsonText(path)
        for row, line in source.elements(source.start):
            yield attempt(path, line, partial(parse, row, line))
        return
    rows, _ = sample_rows(path)
    one = first is not None and first.startswith(b"{")
    if not one or is_row(Head(kind="lines", keys=tuple(rows))):
        yield from _read_lines(path, parse)
        return
    source = JsonText(path)
    row, end = source.decode(source.start)
    line = source.line(source.start)
    source.finish(end)
    yield attempt(path, line, partial(parse, row, line))


def read_parquet(path: Path, parse: Parse) -> Iterator[Item]:
    """Yield the rows of a Parquet file; nested fields may be nested columns or JSON text."""
    for line, row in parquet_rows(path):
        yield attempt(path, line, partial(_parse_row, parse, row, line))


def _parse_row(parse: Parse, row: dict[str, object], line: int) -> Parsed:
    for name in JSON_COLUMNS:
        cell = row.get(name)
        if isinstance(cell, str) and cell.strip():
            row[name] = _cell(name, cell)
    return parse(row, line)


def first_line(path: Path) -> bytes | None:
    """Return the first line that is not blank, stripped; None above 20 MB."""
    lines = (raw for _, raw in numbered_lines(path))
    found = next((raw for raw in lines if raw is None or raw.strip()), b"")
    return None if found is None else found.strip()


def sample_rows(
    path: Path, see: Callable[[dict[str, object]], None] = lambda _: None
) -> tuple[list[frozenset[str]], int]:
    """Return the keys of objects in the first 50 lines, and the number of non-blank lines.

    `see` is called with each of the objects.
    """
    keys = []
    count = 0
    for _, raw in islice(numbered_lines(path), _SAMPLE_LINES):
        if raw is None or not raw.strip():
            continue
        count += 1
        try:
            row = decode_line(raw)
        except FieldError:
            continue
        if isinstance(row, dict):
            keys.append(frozenset(row))
            see(row)
    return keys, count


def has_record(head: Head) -> bool:
    """Return whether one of the first rows is a record or a transcript."""
    with_id = ("prompt", "response", "workflow", "family")
    return any(head.any_has("trace_id", name) for name in with_id) or any(
        head.any_has(spoken, name)
        for spoken in ("messages", "transcript")
        for name in ("task_id", "trial_id")
    )


def _read_lines(path: Path, parse: Parse) -> Iterator[Item]:
    header_possible = True
    for line, raw in numbered_lines(path):
        if raw is None:
            yield SetAside(file=str(path), line=line, reason=_TOO_LONG)
            continue
        if not raw.strip():
            continue
        item = attempt(path, line, partial(_parse_line, parse, raw, line))
        if header_possible and isinstance(item, SetAside) and _is_header(raw):
            header_possible = False
            continue
        header_possible = False
        yield item


def _parse_line(parse: Parse, raw: bytes, line: int) -> Parsed:
    return parse(decode_line(raw), line)


def _is_header(raw: bytes) -> bool:
    """Return whether an object is a header (canary, version, licence), not a run without its id."""
    try:
        row = decode_line(raw)
    except FieldError:
        return False
    run_fields = {"trace_id", "prompt", "response", "steps", "messages"}
    return isinstance(row, dict) and not run_fields.intersection(row)


def delimiter_of(header: bytes, column: str | None = "trace_id") -> str | None:
    """Return the delimiter of a header with this column, or with most columns if any will do."""
    line = header.decode("utf-8", "replace")
    found: dict[str, int] = {}
    for delimiter in DELIMITERS:
        try:
            cells = next(csv.reader([line], delimiter=delimiter), [])
        except csv.Error:
            continue
        if len(cells) > 1 and (column is None or column in [cell.strip() for cell in cells]):
            found[delimiter] = len(cells)
    return max(found, key=lambda delimiter: found[delimiter], default=None)


def _read_csv(path: Path, parse: Parse) -> Iterator[Item]:
    # The limit is global to the csv module; it is only raised, to the size limit of a trace.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_TRACE_BYTES))
    rows = _csv_rows(path)
    columns: list[str] = []
    for line, cells in rows:
        if isinstance(cells, csv.Error):
            yield SetAside(file=str(path), line=line, reason=f"is not CSV ({cells})")
        elif not any(cell.strip() for cell in cells):
            continue
        elif not columns:
            columns = [cell.strip() for cell in cells]
            for column in columns:
                if columns.count(column) > 1:
                    what = f"column {column!r} occurs twice"
                    raise TraceFormatError(f"{path}, line {line}: {what}")
        else:
            yield attempt(path, line, partial(_parse_cells, parse, cells, columns, line))


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str] | csv.Error]]:
    """Yield the cells of each row, or its error, with the line where it starts."""
    delimiter = delimiter_of(first_line(path) or b"") or ","
    reader = csv.reader(_csv_lines(path), delimiter=delimiter, strict=True)
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end" in str(error):
                what = "a cell of this row is not closed: the file was not written to the end"
                raise TraceFormatError(f"{path}, line {start}: {what}") from error
            yield start, error
        else:
            yield start, cells


def _csv_lines(path: Path) -> Iterator[str]:
    for line, raw in numbered_lines(path):
        if raw is None:
            raise TraceFormatError(f"{path}, line {line}: {_TOO_LONG}")
        # Bytes that are not UTF-8 become lone surrogates, which identify their row.
        yield raw.decode("utf-8", "surrogateescape") + "\n"


def _parse_cells(parse: Parse, cells: list[str], columns: list[str], line: int) -> Parsed:
    if len(cells) != len(columns):
        raise FieldError(f"has {len(cells)} cells, the header has {len(columns)}")
    row: dict[str, object] = {}
    for column, cell in zip(columns, cells, strict=True):
        if any("\ud800" <= character <= "\udfff" for character in cell):
            raise FieldError(f"field {column!r}: is not UTF-8")
        if cell.strip():
            row[column] = _cell(column, cell.replace("\x00", "\ufffd"))
    return parse(row, line)


def _cell(column: str, cell: str) -> object:
    """Return the value of a cell: JSON, number, or truth value, as the column requires."""
    stripped = cell.strip()
    if column in JSON_COLUMNS and stripped[0] in "[{":
        try:
            return decode_text(stripped)
        except FieldError as error:
            raise FieldError(f"field {column!r}: {error}") from error
    if column in _NUMBER_COLUMNS:
        return float(stripped) if _NUMBER.fullmatch(stripped) else stripped
    if column == "simulated":
        simulated = words.truth(stripped)
        if simulated is None:
            raise wrong(column, "must be true or false", stripped)
        return simulated
    return cell


def _recognises(head: Head) -> bool:
    return head.kind in ("array", "object", "lines", "csv", "parquet") and has_record(head)


RECORDS = Importer(
    name=RECORD_SOURCE,
    title="our own records",
    expects="JSON Lines, CSV or Parquet with 'trace_id', 'workflow', 'prompt' and 'response', "
    "or transcripts with 'task_id', 'trial_id' and 'messages' (docs/trace-format.md)",
    recognises=_recognises,
    read=read,
)
