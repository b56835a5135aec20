"""Rows of a Parquet file as JSON values, a few at a time."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from calibration.errors import InputError, TraceFormatError
from calibration.files import open_file
from calibration.trace_formats.compressed import Meter

PARQUET = b"PAR1"
MAX_ROWS = 5_000_000
MAX_DEPTH = 100
_BATCH, _BATCH_BYTES = 256, 256_000_000


def parquet_columns(path: Path) -> frozenset[str]:
    """Return the columns of a Parquet file; TraceFormatError if it is damaged or holds too much."""
    with _opened(path) as file:
        names = file.schema_arrow.names
        chunks = [size for group in _sizes(file) for size in group]
        rows = file.metadata.num_rows
    Meter(path, path.stat().st_size).count(sum(chunks))
    if rows > MAX_ROWS:
        raise TraceFormatError(f"{path}: holds {rows:,} rows; at most {MAX_ROWS:,} are read")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TraceFormatError(f"{path}: column {twice!r:.80} occurs twice")
    return frozenset(names)


def parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield number (from 1) and fields of each row, as JSON would hold them, without empty ones."""
    parquet_columns(path)
    line = 0
    with _opened(path) as file:
        # A cell is at most as large as its column: so many rows of such cells are held.
        largest = max((size for group in _sizes(file) for size in group), default=1)
        batch = max(1, min(_BATCH, _BATCH_BYTES // max(1, largest)))
        for rows in file.iter_batches(batch_size=batch):
            for row in rows.to_pylist():
                line += 1
                yield line, {str(k): _plain(v) for k, v in row.items() if v is not None}


def _sizes(file: pq.ParquetFile) -> Iterator[list[int]]:
    """Yield the sizes of the columns of each row group, unpacked."""
    for group in range(file.num_row_groups):
        found = file.metadata.row_group(group)
        yield [found.column(k).total_uncompressed_size for k in range(found.num_columns)]


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file, whose damage may show as late as in its last batch."""
    try:
        with open_file(path) as stream, pq.ParquetFile(stream, buffer_size=1_000_000) as file:
            yield file
    except InputError as error:
        raise TraceFormatError(str(error)) from error
    # A time beyond year 9999 is a ValueError or an OverflowError.
    except (OSError, pa.ArrowException, ValueError, OverflowError) as error:
        raise TraceFormatError(f"{path}: cannot be read as Parquet ({error!s:.200})") from error


def _plain(value: object, depth: int = MAX_DEPTH) -> object:
    """Return a value as JSON holds it; a struct has no empty fields, which its schema gives it."""
    if depth == 0:
        return "…"
    if isinstance(value, dict):
        return {str(k): _plain(v, depth - 1) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_plain(item, depth - 1) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if value is None or isinstance(value, str | int) else str(value)
