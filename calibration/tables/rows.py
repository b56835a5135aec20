"""Rows of CSV, JSON and Parquet files: reading them with their line, and writing them.

The `cell_...` functions read one field of a row: None where it is missing, FieldError where it is
not valid.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, TypeAlias, Union

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from calibration.errors import InputError, MissingColumnError
from calibration.files import (
    SHAPE_BYTES,
    check_kind,
    checked_shape,
    csv_shape,
    encoding_of,
    open_file,
    undecodable,
    utf8_chunks,
    written_whole,
)
from calibration.records import MAX_TAG, MAX_TAGS, Evidence
from calibration.tables.annotation_exports import label_rows_of
from calibration.tables.columns import LOOKED, Sample, clean_header
from calibration.tables.reading import LeftOutCounter, ReadingOptions, to_pandas
from calibration.tables.words import cell, clean, is_missing, number_of, truth
from calibration.text import names_there
from calibration.trace_formats.base import MAX_TRACE_BYTES
from calibration.trace_formats.compressed import open_text
from calibration.trace_formats.fields import (
    FieldError,
    moment,
    number,
    part,
    text,
    whole,
    wrong,
)
from calibration.trace_formats.json_scanner import (
    JsonText,
    decode_line,
    decode_text,
    numbered_lines,
)
from calibration.trace_formats.parquet import PARQUET

if TYPE_CHECKING:
    # `asr look` goes without it: it takes longer to load than it takes to read a file.
    import pandas as pd

Row = dict[str, Any]
cell_text = cell
Told = Callable[[int, str], None]
MAX_QUOTES = 20
MAX_TABLE_BYTES = 500_000_000
MAX_ROWS = 5_000_000
SPLIT = "; split it or leave columns out"
BATCH = 1_000  # rows of Parquet that are held at a time
ROW_GROUP = 10_000  # rows of Parquet that are written at a time
SEPARATOR = "; "  # of texts in one cell of CSV
FORMATS = (".csv", ".jsonl", ".parquet")
TEXT, NUMBER, WHOLE = pa.string(), pa.float64(), pa.int64()
FLAG, TIME, TEXTS = pa.bool_(), pa.timestamp("us", tz="UTC"), pa.list_(pa.string())
INFINITE = ("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity")
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")


Source: TypeAlias = Union[Path, "pd.DataFrame"]


def read_rows(
    path: Path,
    *,
    required: Sequence[str] = (),
    aside: Told | None = None,
    encoding: str | None = None,
) -> Iterator[tuple[int, Row]]:
    """Yield line number and row of a CSV, JSONL or JSON file that has the required fields.

    A JSON file is a list of objects; exports of annotation tools are rows of labels. The text is
    UTF-8 or has the mark of UTF-16, without `encoding`. Names of CSV columns are clean texts; a
    column without a name is not read.

    InputError with file, line and field if the file cannot be read, is larger than 500 MB, or a row
    lacks a field. `aside` is told line and reason of a line that is no row, which is an InputError
    without it.
    """
    content, first = _content(path, encoding)
    if not first:
        content.close()
        needs = f"; it needs the fields {', '.join(required)}" if required else ""
        raise InputError(f"{path}: the file is empty{needs}")
    if first == b"[":
        rows = _list_rows(path, content, aside)
    elif first == b"{":
        rows = label_rows_of(_json_rows(path, content, aside))
    else:
        rows = _csv_rows(path, content, required, aside)
    for line, row in rows:
        for name in required:
            if row.get(name) is None or not str(row[name]).strip():
                if name not in row:
                    raise missing(f"{path}, line {line}", name, row, what="field")
                raise InputError(f"{path}, line {line}: field {name!r} is missing")
        if line > MAX_ROWS:
            raise InputError(f"{path}: has more than {MAX_ROWS:,} lines; split it")
        yield line, row


def _content(path: Path, encoding: str | None) -> tuple[BinaryIO, bytes]:
    """Return a file as UTF-8, without its mark, and the first character that is not blank."""
    check_kind(path)
    open_file(path, most=MAX_TABLE_BYTES, hint=SPLIT).close()
    with ExitStack() as stack:
        content = stack.enter_context(open_text(path))
        begins = content.read(16)
        check_kind(path, begins)
        if content.seek(0, io.SEEK_END) > MAX_TABLE_BYTES:
            raise InputError(f"{path}: is larger than {MAX_TABLE_BYTES:,} bytes{SPLIT}")
        codec, mark = encoding_of(begins, encoding)
        if codec != "utf-8" or mark:
            given, content = content, stack.enter_context(tempfile.TemporaryFile(prefix="asr-"))
            content.writelines(utf8_chunks(path, given, codec, mark))
            given.close()
        content.seek(0)
        first = b""
        while not first and (chunk := content.read(SHAPE_BYTES)):
            first = chunk.lstrip()[:1]
        content.seek(0)
        stack.pop_all()  # whoever reads the content closes it
        return content, first


def any_rows(
    source: Source,
    *,
    required: Sequence[str] = (),
    aside: Told | None = None,
    encoding: str | None = None,
) -> Iterator[tuple[int, Row]]:
    """Yield as `read_rows` does, also from a Parquet file or a frame, with rows numbered from 1."""
    if isinstance(source, Path) and not _is_parquet(source):
        yield from read_rows(source, required=required, aside=aside, encoding=encoding)
        return
    path = place_of(source)
    if isinstance(source, Path):
        columns, rows = _parquet_rows(source)
    else:
        frame = to_pandas(source)
        columns = [str(name) for name in frame.columns]
        rows = (
            dict(zip(columns, cells, strict=True))
            for cells in frame.itertuples(index=False, name=None)
        )
    numbered = label_rows_of(enumerate(rows, 1))
    first = next(numbered, None)
    there = columns if first is None else list(first[1])
    for name in required:
        if name not in there:
            raise missing(path, name, there)
    for line, row in chain([] if first is None else [first], numbered):
        for name in required:
            if not cell(row.get(name)):
                raise InputError(f"{path}, line {line}: field {name!r} is missing")
        yield line, row


@dataclass(slots=True, kw_only=True)
class OpenTable:
    """A table that is read row by row, with its first rows known beforehand.

    `columns` : those that occur in the first rows. `sample` : these rows as texts. `rows` : all
    rows that --where chooses, with their line. `left_out` : rows that are not, counted while
    `rows` is read; `n_rows` : all rows read. `pass_over` is called with each row that --where does
    not choose: words and scales are decided on all rows.
    """

    place: str
    columns: tuple[str, ...]
    sample: Sample
    left_out: LeftOutCounter
    rows: Iterator[tuple[int, Row]]
    n_rows: int = 0
    pass_over: Callable[[Row], None] | None = None


def open_table(
    source: Source,
    options: ReadingOptions | None = None,
    *,
    place: str | None = None,
    is_strict: bool = False,
    shares_where: bool = False,
) -> OpenTable:
    """Open a table; its rows have the columns of the table, unchanged.

    A line that is no row is left out as unreadable, or refused if `is_strict`; a row that --where
    does not choose is left out as such. If it `shares_where` with other tables, a column that is
    not there chooses nothing. `place` is its name in messages, where it is not that of the file.

    Raises
    ------
    InputError
        If the table cannot be read, or has no column of --where.
    """
    options, left_out = options or ReadingOptions(), LeftOutCounter()
    place = place or place_of(source)
    table = OpenTable(place=place, columns=(), sample=Sample({}), left_out=left_out, rows=iter(()))

    def unreadable(line: int, why: str) -> None:
        left_out.add("unreadable_row", line, why)
        table.n_rows += 1

    rows = any_rows(source, aside=None if is_strict else unreadable, encoding=options.encoding)
    first = list(islice(rows, LOOKED))
    table.columns = tuple(dict.fromkeys(name for _, row in first for name in row))
    where = [one for one in options.where if not shares_where or one[0] in table.columns]
    wanted = _where(where, table.columns, place)
    # Where --where chooses later rows alone, columns are recognised by the first ones.
    chosen_rows = [row for _, row in first if _is_chosen(row, wanted)] or [r for _, r in first]
    table.sample = Sample(
        {name: [cell(row.get(name)) for row in chosen_rows] for name in table.columns}
    )

    def chosen() -> Iterator[tuple[int, Row]]:
        for line, row in chain(first, rows):
            table.n_rows += 1
            if not wanted or _is_chosen(row, wanted):
                yield line, row
            else:
                left_out.add("where", line)
                if table.pass_over is not None:
                    table.pass_over(row)

    table.rows = chosen()
    return table


def _where(
    given: Sequence[tuple[str, str]], columns: Sequence[str], place: str
) -> tuple[tuple[str, str], ...]:
    for name, _ in given:
        if name not in columns:
            raise InputError(
                f"--where: {place} has no column {name!r:.80}; {names_there(name, columns)}"
            )
    return tuple((name, clean(value)) for name, value in given)


def _is_chosen(row: Row, wanted: Sequence[tuple[str, str]]) -> bool:
    """Return whether a row has these values, compared as clean texts."""
    return all(cell(row.get(name)) == value for name, value in wanted)


def file_of(source: Source | None) -> Path | None:
    """Return the file of a table, None for a frame."""
    return source if isinstance(source, Path) else None


def place_of(source: Source) -> str:
    """Return the name of a file or a frame in errors."""
    return str(source) if isinstance(source, Path) else "the frame"


def missing(
    place: str, name: str, there: Iterable[str], *, what: str = "column"
) -> MissingColumnError:
    """Return the error of a column that a table lacks, with those that it has."""
    return MissingColumnError(
        f"{place}: {what} {name!r:.80} is missing; {names_there(name, there)}", column=name
    )


def options_of_tables(
    options: ReadingOptions, *tables: tuple[Source | None, Sequence[str]]
) -> list[ReadingOptions]:
    """Return what the user said, for each table of a command; each with the roles that it has.

    With several tables a column goes for those that have it.

    Raises
    ------
    InputError
        If no table has a role, or none that has it has the column.
    """
    present = [(table, roles) for table, roles in tables if table is not None]
    if options.columns and not present:
        raise InputError("--column is for a file; name one")
    every = list(dict.fromkeys(role for _, roles in present for role in roles))
    headers: dict[int, tuple[str, ...]] = {}
    if options.columns and len(present) > 1:
        headers = {
            k: column_names(table) for k, (table, _) in enumerate(tables) if table is not None
        }
    for role, name in options.columns.items():
        if role not in every:
            raise InputError(f"--column: no name {role!r:.80} is read; {names_there(role, every)}")
        among = [header for k, header in headers.items() if role in tables[k][1]]
        if name is not None and among and not any(name in header for header in among):
            raise InputError(
                f"{place_of(present[0][0])}: column {name!r:.80} (for {role}) is not there; "
                f"{names_there(name, dict.fromkeys(c for header in among for c in header))}"
            )
    return [
        replace(
            options,
            columns={
                role: name
                for role, name in options.columns.items()
                if role in roles and (name is None or name in headers.get(k, (name,)))
            },
        )
        for k, (_, roles) in enumerate(tables)
    ]


def column_names(table: Source, *, encoding: str | None = None) -> tuple[str, ...]:
    """Return the columns in the first rows of a table."""
    rows = islice(any_rows(table, aside=lambda _line, _why: None, encoding=encoding), LOOKED)
    return tuple(dict.fromkeys(name for _, row in rows for name in row))


def raters_among(asked: Sequence[str], there: Sequence[str], place: str) -> tuple[str, ...]:
    """Return the columns of the raters, which may be asked for by patterns with ``*``.

    Raises InputError if one is not there, or twice.

    Examples
    --------
    >>> raters_among(["r*", "Ann"], ["id", "r1", "r2", "Ann"], "a.csv")
    ('r1', 'r2', 'Ann')
    """
    found: list[str] = []
    for name in asked:
        fit = (
            [name] if name in there else [c for c in there if "*" in name and fnmatchcase(c, name)]
        )
        if not fit:
            raise InputError(
                f"{place}: column {name!r:.80} (of a rater) is not there; "
                f"{names_there(name, there)}"
            )
        found += fit
    for name in found:
        if found.count(name) > 1:
            raise InputError(f"{place}: the rater {name!r:.80} is named twice")
    return tuple(found)


def _is_parquet(path: Path) -> bool:
    """Return whether a file says by its content that it is Parquet, or by its name."""
    if path.suffix == ".parquet":
        return True
    check_kind(path)
    with open_file(path) as file:
        return file.read(len(PARQUET)) == PARQUET


def _parquet_rows(path: Path) -> tuple[list[str], Iterator[Row]]:
    with _parquet_of(path) as file:
        names = file.schema_arrow.names
        size = sum(file.metadata.row_group(k).total_byte_size for k in range(file.num_row_groups))
        if size > MAX_TABLE_BYTES or file.metadata.num_rows > MAX_ROWS:
            raise InputError(
                f"{path}: holds {file.metadata.num_rows:,} rows of {size:,} bytes; at most "
                f"{MAX_ROWS:,} rows of {MAX_TABLE_BYTES:,} bytes are read"
            )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{path}: column {twice!r:.80} occurs twice")
    return names, _parquet_batches(path)


def _parquet_batches(path: Path) -> Iterator[Row]:
    with _parquet_of(path) as file:
        for batch in file.iter_batches(batch_size=BATCH):
            yield from batch.to_pylist()


@contextmanager
def _parquet_of(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file, whose damage may show as late as in its last batch."""
    try:
        with open_file(path) as stream, pq.ParquetFile(stream) as file:
            yield file
    # A time beyond year 9999 is a ValueError or an OverflowError.
    except (OSError, pa.ArrowException, ValueError, OverflowError) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({error!s:.200})") from error


def cell_number(row: Row, name: str, *, maximum: float, above_zero: bool = False) -> float | None:
    """Return a number of a row, at most `maximum`; NaN and infinity are missing."""
    value = row.get(name)
    if isinstance(value, str):
        bare = clean(value)
        if is_missing(bare) or bare.casefold() in INFINITE:
            return None
        value = number_of(bare)
        if value is None:
            raise wrong(name, "must be a number", bare)
    elif not cell(value) or (isinstance(value, float) and math.isinf(value)):
        return None
    return number(value, name, maximum=maximum, above_zero=above_zero)


def cell_whole(row: Row, name: str, *, maximum: int, minimum: int = 0) -> int | None:
    """Return a whole number of a row, from `minimum` to `maximum`."""
    rule = f"must be a whole number from {minimum} to {maximum:,}"
    try:
        found = whole(cell_number(row, name, maximum=maximum), name, maximum=maximum)
    except FieldError as error:
        raise wrong(name, rule, row.get(name)) from error
    if found is not None and found < minimum:
        raise wrong(name, rule, row.get(name))
    return found


def cell_flag(row: Row, name: str) -> bool:
    """Return a yes or no of a row; an empty field is no."""
    value = row.get(name)
    if is_missing(cell(value)):
        return False
    answer = truth(value)
    if answer is None:
        raise wrong(name, "must be yes or no, true or false, 1 or 0", value)
    return answer


def cell_tags(row: Row, name: str) -> tuple[str, ...]:
    """Return the tags of a row, each once: a list, a JSON list as text, or text with `;` or `,`.

    Examples
    --------
    >>> cell_tags({"tags": "policy; wrong tool, Policy"}, "tags"), cell_tags({}, "tags")
    (('policy', 'wrong tool'), ())
    """
    return bounded_tags(tag_words(row, name))[0]


def tag_words(row: Row, name: str, *, split: str = "[;,]") -> list[str]:
    """Return the tags of a row as they are written."""
    value: Any = row.get(name)
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(FieldError):
            value = decode_text(value)
    if isinstance(value, np.ndarray):  # of a frame
        value = value.tolist()
    if isinstance(value, list):
        return list(map(cell_text, value))
    text = cell(value)
    return [] if is_missing(text) else re.split(split, text)


def bounded_tags(tags: Iterable[str]) -> tuple[tuple[str, ...], int]:
    """Return the tags that are kept, each once, and how many are not: too long, or too many.

    Examples
    --------
    >>> bounded_tags(["a  b", "A b", "x" * 81])
    (('a b',), 1)
    """
    kept: dict[str, str] = {}
    beyond: set[str] = set()
    for written in tags:
        tag = " ".join(written.split())
        if len(tag) > MAX_TAG or (len(kept) == MAX_TAGS and tag.casefold() not in kept):
            beyond.add(tag.casefold())
        elif tag:
            kept.setdefault(tag.casefold(), tag)
    beyond.discard("")
    return tuple(kept.values()), len(beyond)


def cell_moment(row: Row, name: str) -> datetime | None:
    """Return an ISO 8601 time of a row, in UTC."""
    value = row.get(name)
    if is_missing(cell(value)):
        return None
    return moment(value.isoformat() if isinstance(value, datetime) else value, name, UTC)


def cell_words(row: Row, name: str) -> str | None:
    """Return an optional free text of a row, None where it is empty."""
    value = row.get(name)
    return text(value if cell(value) else None, name) or None


def cell_evidence(row: Row) -> tuple[Evidence, ...]:
    """Return the quotes of a row: evidence_step and evidence_quote, or a list under `evidence`."""
    given = row.get("evidence")
    if isinstance(given, str) and given.lstrip().startswith("["):  # of CSV
        given = decode_text(given)
    if given is None or given == "":
        quote = cell_words(row, "evidence_quote")
        step = cell_words(row, "evidence_step") or ""
        return (Evidence(step_id=step, quote=quote),) if quote else ()
    found = []
    for item in given if isinstance(given, list) else [given]:
        step_id, words = (part(item, name) for name in ("step_id", "quote"))
        if not (isinstance(step_id, str) and isinstance(words, str) and words):
            raise wrong("evidence", "must be a list of objects with step_id and quote", item)
        found.append(Evidence(step_id=step_id, quote=words))
    if len(found) > MAX_QUOTES:
        raise FieldError(
            f"field 'evidence': must hold at most {MAX_QUOTES} quotes, got {len(found)}"
        )
    return tuple(found)


def none_of(name: str, value: object, known: Iterable[str]) -> FieldError:
    """Return the error of a field that must name one of the known values."""
    return FieldError(f"field {name!r}: {value!r:.80} is not one of {', '.join(known):.200}")


@contextmanager
def located(place: object, line: int) -> Iterator[None]:
    """Add the file and the line to the error of a field."""
    try:
        yield
    except FieldError as error:
        raise InputError(f"{place}, line {line}, {error}") from error


def guard(text: str) -> str:
    """Keep a spreadsheet from running a cell as a formula; `unguard` reverses it.

    A text with quotes before a formula sign gets one more, so that every text is restored exactly.

    Examples
    --------
    >>> guard("=1+1"), guard("'=1+1"), guard("it's"), unguard(guard("'=1+1"))
    ("'=1+1", "''=1+1", "it's", "'=1+1")
    """
    return "'" + text if _FORMULA.match(text) else text


def unguard(text: str) -> str:
    """Return the text that `guard` was given."""
    return text[1:] if _GUARDED.match(text) else text


def as_csv(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """Return rows as CSV, with a quote before a text that a spreadsheet would run."""
    text = io.StringIO(newline="")
    write_csv(text, columns, rows)
    return text.getvalue()


def write_csv(file: TextIO, columns: Sequence[str], rows: Iterable[Row]) -> int:
    """Write rows as `as_csv` does, one by one, and return how many they were."""
    writer, n = csv.writer(file), 0
    writer.writerow(map(guard, columns))
    for row in rows:
        cells = (row[name] for name in columns)
        writer.writerow([guard(cell) if isinstance(cell, str) else cell for cell in cells])
        n += 1
    return n


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedRows:
    """Rows to write as a file, read once; they have all columns, each of one type.

    `about` : what a reader must know of all rows, which a Parquet file carries as metadata.
    """

    columns: Mapping[str, pa.DataType]
    rows: Iterable[Row]
    about: Row = field(default_factory=dict)

    def plain(self) -> Iterator[Row]:
        """Yield the rows as cells of CSV: lists and objects as text, a flag as yes or empty."""
        columns = self.columns.items()
        return ({name: _plain(row[name], kind) for name, kind in columns} for row in self.rows)


def write_rows(found: TypedRows, target: Path, *, replace: bool = False) -> int:
    """Write rows to a CSV, JSONL or Parquet file, by its ending, and return how many they were.

    The file is there whole or not at all, and no more than 10,000 rows are held. Raises InputError
    if it has another ending, or exists and is not to be replaced.
    """
    form = target.suffix.lower()
    if form not in FORMATS:
        raise InputError(f"{target}: must end in {', '.join(FORMATS)}")
    with written_whole(target, replace=replace) as path:
        if form == ".parquet":
            return _write_parquet(found, path)
        with path.open("w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            if form == ".csv":
                return write_csv(file, list(found.columns), found.plain())
            n = 0
            for row in found.rows:
                whole = {name: _of_json(row[name]) for name in found.columns}
                file.write(json.dumps(whole, ensure_ascii=False, allow_nan=False) + "\n")
                n += 1
            return n


def _write_parquet(found: TypedRows, path: Path) -> int:
    about = {"about": json.dumps(found.about, ensure_ascii=False)} if found.about else None
    schema, n = pa.schema(found.columns.items(), metadata=about), 0
    rows = iter(found.rows)
    with pq.ParquetWriter(path, schema) as file:
        while chunk := [
            {name: _storable(row[name]) for name in found.columns}
            for row in itertools.islice(rows, ROW_GROUP)
        ]:
            file.write_table(pa.Table.from_pylist(chunk, schema=schema))
            n += len(chunk)
    return n


def _of_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _storable(value: Any) -> Any:
    """Return a value for Parquet: what JSON alone has a form for is text."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return value


def _plain(value: Any, kind: pa.DataType) -> Any:
    """Return a value as a cell of CSV."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, list) and kind == TEXTS:
        return SEPARATOR.join(value)
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return _of_json(value)


def _csv_rows(
    path: Path, content: BinaryIO, required: Sequence[str], aside: Told | None
) -> Iterator[tuple[int, Row]]:
    # The limit is global to the csv module; it is only ever raised, to what a trace may have.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_TRACE_BYTES))
    begins = content.read(SHAPE_BYTES)
    content.seek(0)
    found = csv_shape(begins.decode("utf-8", "replace"), is_whole=len(begins) < SHAPE_BYTES)
    with TextIOWrapper(content, encoding="utf-8", newline="") as text:
        shape = checked_shape(str(path), found)
        lines = _bounded_lines(path, text)
        reader = csv.reader(lines, delimiter=shape.delimiter, strict=True)
        try:
            for _ in range(shape.skipped):
                next(lines)
            line = shape.skipped + 1
            columns = _columns(path, line, next(reader), required)
            while True:
                line = shape.skipped + reader.line_num + 1
                try:
                    cells = tuple(next(reader))
                except csv.Error as error:
                    if re.search("unexpected end|field larger", str(error)):
                        why = "is not CSV (a quote that opens here is not closed)"
                        raise InputError(f"{path}, line {line}: {why}") from error
                    _refuse(path, line, f"is not CSV ({error})", aside)
                    continue
                if any(cells) and len(cells) != len(columns):
                    what = f"has {len(cells)} cells, the header has {len(columns)}"
                    _refuse(path, line, f"{what}; quote cells that hold the delimiter", aside)
                elif any(cells):
                    # Only CSV has been in a spreadsheet, where formulas need a guard.
                    kept = (unguard(cell.replace("\x00", "\ufffd")) for cell in cells)
                    yield line, {n: cell for n, cell in zip(columns, kept, strict=True) if n}
        except StopIteration:
            return
        except UnicodeDecodeError as error:
            raise undecodable(path, content, "utf-8") from error


def _bounded_lines(path: Path, text: TextIO) -> Iterator[str]:
    """Yield the lines of a text; none is held that is longer than a trace may be."""
    line = 0
    while read := text.readline(MAX_TRACE_BYTES):
        line += 1
        if len(read) == MAX_TRACE_BYTES:
            raise InputError(f"{path}, line {line}: is longer than {MAX_TRACE_BYTES:,} characters")
        yield read


def _columns(path: Path, line: int, cells: list[str], required: Sequence[str]) -> tuple[str, ...]:
    columns = clean_header(cells, f"{path}, line {line}")
    for name in required:
        if name not in columns and len(columns) == 1:
            raise InputError(
                f"{path}, line {line}: must be a header with the columns {', '.join(required)} "
                "(or the file one JSON object a line)"
            )
        if name not in columns:
            raise missing(f"{path}, line {line}", name, columns)
    return columns


def _json_rows(path: Path, content: BinaryIO, aside: Told | None) -> Iterator[tuple[int, Row]]:
    for line, raw in numbered_lines(path, content):
        if raw is None:
            _refuse(path, line, f"is longer than {MAX_TRACE_BYTES:,} bytes", aside)
        elif raw.strip():
            try:
                row = decode_line(raw)
            except FieldError as error:
                _refuse(path, line, str(error), aside)
                continue
            if isinstance(row, dict):
                yield line, row
            else:
                _refuse(path, line, "must be an object", aside)


def _list_rows(path: Path, content: BinaryIO, aside: Told | None) -> Iterator[tuple[int, Row]]:
    """Yield the objects of a JSON list with their lines."""
    text = JsonText(path, content)

    def objects() -> Iterator[tuple[int, Row]]:
        for row, line in text.elements(text.start):
            if isinstance(row, dict):
                yield line, row
            else:
                _refuse(path, line, "must be an object", aside)

    yield from label_rows_of(objects())


def _refuse(path: Path, line: int, why: str, aside: Told | None) -> None:
    """Tell of a line that is no row, or raise the error of it."""
    if aside is None:
        raise InputError(f"{path}, line {line}: {why}")
    aside(line, why)
