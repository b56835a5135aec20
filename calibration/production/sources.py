"""Where the traces lie: files, or a frame."""

import glob
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from calibration.errors import InputError
from calibration.production.engines import DuckDB, Engine

KINDS = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet",
}  # fmt: skip
DELIMITERS = ",;\t|"
# Of the machine or its container. Only large files need so much; the rest goes to disk, which takes
# half as long again.
DEFAULT_MEMORY = "50%"
# Eight bytes each: what the search for duplicates holds at a time.
MOST_HASHES = 32_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A table of traces in an engine.

    Parameters
    ----------
    engine : Engine
    table : ibis Table
    name : str
        Names the source in messages.
    texts : bool
        Values are texts that are read once and kept.
    file, row : str or None
        Columns that say where a row stands.
    first_row : int
        Number of the first row in `row`.
    rejects : bool
        The reader keeps the lines that are no rows.
    null_is_unreadable : bool
        The reader gives a row without values for a line that is none.
    """

    engine: Engine
    table: Any
    name: str
    texts: bool = False
    file: str | None = None
    row: str | None = None
    first_row: int = 1
    rejects: bool = False
    null_is_unreadable: bool = False


@contextmanager
def open_files(
    patterns: Sequence[str | Path],
    *,
    memory_limit: str = DEFAULT_MEMORY,
    threads: int | None = None,
    temporary: Path | None = None,
    most_hashes: int = MOST_HASHES,
) -> Iterator[Source]:
    """Open CSV, JSONL or Parquet files, or patterns such as ``traces/*.parquet``, as one table.

    Parameters
    ----------
    patterns : sequence of str or Path
        All of one kind; .csv, .tsv, .jsonl and .ndjson may be compressed (.gz, .zst).
    memory_limit : str, default "50%"
        What DuckDB may hold, as ``4GB`` or a share of the memory of this machine; beyond that it
        writes to `temporary`.
    threads : int, optional
        All cores when None.
    temporary : Path, optional
        Directory for intermediate results, that of the system when None.
    most_hashes : int
        Trace ids that are compared at a time, 8 bytes each.

    Raises
    ------
    InputError
        If a file is not there, empty, or not of a kind that is read.
    """
    paths, kind = _paths(patterns)
    shown = (
        str(patterns[0]) if len(patterns) == 1 else f"{patterns[0]} and {len(patterns) - 1} more"
    )
    with _duckdb(
        memory_limit, threads, temporary, most_hashes, ordered=kind != "parquet"
    ) as engine:
        try:
            yield _read(engine, paths, kind, shown)
        except duckdb.OutOfMemoryException as error:
            raise InputError(
                f"{shown}: {_words(memory_limit)} is not enough to read it; give more with --memory"
            ) from error
        except (duckdb.IOException, duckdb.InvalidInputException, duckdb.BinderException) as error:
            first = str(error).splitlines()[0]
            raise InputError(f"{shown}: cannot be read ({first:.300})") from error


@contextmanager
def open_frame(
    frame: pd.DataFrame,
    *,
    name: str = "the table",
    memory_limit: str = DEFAULT_MEMORY,
    most_hashes: int = MOST_HASHES,
) -> Iterator[Source]:
    """Open a frame; NaN is a missing value in it."""
    with _duckdb(memory_limit, None, None, most_hashes, ordered=False) as engine:
        numbered = frame.assign(asr_row=range(1, len(frame) + 1))
        engine.connection.register("traces", numbered)
        yield Source(engine=engine, table=engine.table("traces"), name=name, row="asr_row")


def _paths(patterns: Sequence[str | Path]) -> tuple[list[str], str]:
    paths: list[str] = []
    for pattern in map(str, patterns):
        found = [pattern] if os.path.isfile(pattern) else sorted(glob.glob(pattern, recursive=True))
        found = [path for path in found if os.path.isfile(path)]
        if not found:
            raise InputError(f"{pattern}: there is no such file")
        paths += found
    if not paths:
        raise InputError("no file was named")
    kinds = {_kind(path) for path in paths}
    if len(kinds) > 1:
        raise InputError(f"files of one kind are read together, got {', '.join(sorted(kinds))}")
    for path in paths:
        if not os.path.getsize(path):
            raise InputError(f"{path}: the file is empty; it needs a header or a trace")
    # DuckDB reads patterns itself: what is a plain name here must stay one there.
    return [glob.escape(os.path.abspath(path)) for path in dict.fromkeys(paths)], kinds.pop()


def _kind(path: str) -> str:
    name = path.lower()
    for packed in (".gz", ".zst"):
        name = name.removesuffix(packed)
    kind = KINDS.get(Path(name).suffix)
    if kind is None:
        raise InputError(f"{path}: .csv, .tsv, .jsonl, .ndjson and .parquet files are read")
    return kind


@contextmanager
def _duckdb(
    memory_limit: str,
    threads: int | None,
    temporary: Path | None,
    most_hashes: int,
    *,
    ordered: bool,
) -> Iterator[DuckDB]:
    with tempfile.TemporaryDirectory(prefix="asr-", dir=temporary) as directory:
        connection = duckdb.connect(
            Path(directory) / "work.duckdb",
            config={
                "memory_limit": memory_limit,
                "temp_directory": directory,
                "preserve_insertion_order": ordered,
                "python_enable_replacements": False,
                **({} if threads is None else {"threads": threads}),
            },
        )
        try:
            connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
            yield DuckDB(connection, most_hashes=most_hashes)
        finally:
            connection.close()


def _read(engine: DuckDB, paths: list[str], kind: str, name: str) -> Source:
    files = "[" + ", ".join(map(_quoted, paths)) + "]"
    if kind == "parquet":
        engine.connection.execute(
            f"CREATE TEMP VIEW traces AS SELECT * FROM read_parquet({files}, "
            "filename='asr_file', file_row_number=true, union_by_name=true)"
        )
        return Source(
            engine=engine, table=engine.table("traces"), name=name, file="asr_file",
            row="file_row_number", first_row=0,
        )  # fmt: skip
    if kind == "csv":
        scan = _csv_scan(engine, paths)
    else:
        fields = _json_fields(engine, files)
        columns = ", ".join(f"{_quoted(field)}: 'VARCHAR'" for field in fields)
        scan = (
            f"SELECT * FROM read_json({files}, format='newline_delimited', columns={{{columns}}}, "
            "ignore_errors=true, filename='asr_file')"
        )
    engine.connection.execute(f"CREATE TEMP VIEW traces AS {scan}")
    return Source(
        engine=engine, table=engine.table("traces"), name=name, texts=True, file="asr_file",
        rejects=kind == "csv", null_is_unreadable=kind == "jsonl",
    )  # fmt: skip


def _json_fields(engine: DuckDB, files: str) -> list[str]:
    """Return every field that occurs, in the order of its first trace."""
    found = engine.connection.execute(
        f"SELECT DISTINCT unnest(json_keys(json)) FROM read_ndjson_objects({files}, "
        "ignore_errors=true) WHERE json_type(json) = 'OBJECT'"
    ).fetchall()
    return sorted(row[0] for row in found)


def _csv_scan(engine: DuckDB, paths: list[str]) -> str:
    """Return one scan for all files with the same header; columns are joined by name."""
    by_header: dict[str, list[str]] = {}
    for path in paths:
        by_header.setdefault(_first_line(engine, path), []).append(path)
    return " UNION ALL BY NAME ".join(
        f"SELECT * FROM read_csv([{', '.join(map(_quoted, same))}], all_varchar=true, header=true, "
        f"delim={_quoted(max(DELIMITERS, key=header.count))}, quote='\"', escape='\"', "
        "store_rejects=true, rejects_limit=0, filename='asr_file')"
        for header, same in by_header.items()
    )


def _first_line(engine: DuckDB, path: str) -> str:
    # DuckDB unpacks the file; the line is read as one text. Not strict: Python's csv module ends
    # lines with CRLF and leaves line ends inside a cell as they are.
    lines = engine.connection.execute(
        f"SELECT line FROM read_csv({_quoted(path)}, header=false, delim='\x01', quote='', "
        "escape='', columns={'line': 'VARCHAR'}, ignore_errors=true, strict_mode=false) LIMIT 1"
    ).fetchall()
    return "" if not lines else str(lines[0][0])


def _words(memory_limit: str) -> str:
    return f"{memory_limit} of {'the ' if memory_limit.endswith('%') else ''}memory"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
