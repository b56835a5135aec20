"""Sources of runs: files, frames, PostgreSQL, Spark and a store."""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol
from uuid import uuid4

import duckdb

from calibration.errors import InputError
from calibration.files import (
    CHUNK,
    SHAPE_BYTES,
    STANDARD_INPUT,
    CsvContent,
    CsvShape,
    check_kind,
    checked_shape,
    csv_shape,
    encoding_of,
    look_through,
    not_closed,
    open_file,
    real_path,
    unpacked,
    utf8_chunks,
)
from calibration.runs.benchmark_results import COLUMNS as RESULT_COLUMNS
from calibration.runs.benchmark_results import NoResultsError, benchmark_results
from calibration.runs.engines import (
    OPEN,
    UNNAMED,
    DuckDB,
    Engine,
    Postgres,
    Relation,
    Spark,
    StoredTable,
    address_parts,
    distinct_names,
    quoted,
    redacted,
    safe_address,
    spark_session,
)
from calibration.runs.results import verdict_names
from calibration.tables.columns import clean_header
from calibration.tables.reading import to_pandas
from calibration.taxonomy import Taxonomy

if TYPE_CHECKING:
    import pandas as pd
    from narwhals.typing import IntoDataFrame

KINDS = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".psv": "csv", ".txt": "csv",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".json": "results",
}  # fmt: skip

# Columns of result files that are there even without a value.
NEEDED = ("trace_id", "workflow", "outcome", "cost_usd", "line", "asr_file")


# Of the machine or its container. Only large files need it; spilling to disk adds half the time.
DEFAULT_MEMORY = "50%"
# A small file that unpacks to gigabytes is hostile or a mistake: by default, reading takes at most
# this and so much for each byte of the files.
BASE_BYTES, BYTES_PER_BYTE = 500_000_000, 50
# Bytes of text from which a second way of reading costs less than it saves, and rows of Parquet
# from which reading a few columns anew costs less than storing all in numbers.
LARGE, MANY = 4_000_000, 1_000_000
# Rows of Parquet that repeat one value take no bytes; different traces do.
MANY_ROWS, MOST_ROWS_PER_BYTE = 10_000_000, 20

# Bytes of the memory limit for each 8-byte hash in the search for duplicates: beside DuckDB's
# memory, an eighth of it. With too little, ids are read once for each part of them.
BYTES_PER_HASH = 64


READ = (
    "trace_id", "workflow", "cost_usd", "units", "started_at", "latency_s", "model",
    "agent_version", "status", "tool_calls", "tool_errors", "loops", "loops_in_a_row",
    "escalated", "feedback",
)  # fmt: skip

# Read beside them where the outcomes are given.
OF_GIVEN = ("perturbation", "n_steps", "total_tokens", "context_tokens")

TRACES = StoredTable('"traces"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A table of traces in an engine.

    `texts` are values read once and kept; `large` if reading many rows anew costs more than
    planning a statement; `file` and `row` name the columns with the place of a row, `first_row` its
    first number; `rejects` is true if the reader keeps unparsable lines, and `null_is_unreadable`
    if it returns an empty row for them. The workflows of `results` of benchmarks, and of a store,
    are those that occur: a taxonomy need not know of them.
    """

    engine: Engine
    table: Relation
    columns: Mapping[str, str]
    name: str
    texts: bool = False
    large: bool = False
    file: str | None = None
    row: str | None = None
    first_row: int = 1
    rejects: bool = False
    null_is_unreadable: bool = False
    results: bool = False


@contextmanager
def open_files(
    patterns: Sequence[str | Path],
    *,
    memory_limit: str = DEFAULT_MEMORY,
    threads: int | None = None,
    temporary: Path | None = None,
    most_hashes: int | None = None,
    encoding: str | None = None,
) -> Iterator[Source]:
    """Open CSV, JSONL or Parquet files, or patterns such as ``traces/*.parquet``, as one table.

    Parameters
    ----------
    patterns : sequence of str or Path
        All of one kind; .csv, .tsv, .jsonl and .ndjson may be compressed (.gz, .zst). A .json file
        is a result file of a benchmark, or a list of objects.
    memory_limit : str, default "50%"
        Memory of DuckDB, as ``4GB`` or a share of this machine's; it spills to `temporary`. The
        default is also bounded by 500 MB and 50 bytes for each byte of the files.
    threads : int, optional
        All cores when None.
    temporary : Path, optional
        Directory for intermediate results; that of the system when None.
    most_hashes : int, optional
        Trace ids that are compared at a time, 8 bytes each; as `memory_limit` allows when None.
    encoding : str, optional
        Of text files without a mark; UTF-8 when None.

    Raises
    ------
    InputError
        If a file is missing, empty, of an unsupported kind, or not of its encoding.
    """
    paths, kind = _paths(patterns)
    shown = (
        str(patterns[0]) if len(patterns) == 1 else f"{patterns[0]} and {len(patterns) - 1} more"
    )
    if kind == "results":
        results, kind = _results_in(paths)
        if results:
            with _open_results(results, shown, memory_limit) as source:
                yield source
            return
    with (
        _duckdb(memory_limit, threads, temporary, most_hashes, ordered=kind != "parquet") as engine,
        tempfile.TemporaryDirectory(prefix="asr-text-", dir=temporary) as folder,
    ):
        try:
            found = _as_utf8(paths, kind, encoding, Path(folder))
            if memory_limit == DEFAULT_MEMORY:
                _bound(engine, [file.path for file in found])
            yield _read(engine, found, kind, shown)
        except duckdb.OutOfMemoryException as error:
            given = _memory(engine.connection) if memory_limit == DEFAULT_MEMORY else memory_limit
            raise InputError(
                f"{shown}: {given} of memory is not enough to read it; give more with --memory"
            ) from error
        except (duckdb.ParserException, duckdb.CatalogException):  # of our own SQL
            raise
        except duckdb.Error as error:  # damage has no class of its own
            first = str(error).splitlines()[0]
            raise InputError(f"{shown}: cannot be read ({first:.300})") from error


@contextmanager
def open_frame(
    frame: IntoDataFrame,
    *,
    name: str = "the table",
    memory_limit: str = DEFAULT_MEMORY,
    most_hashes: int | None = None,
) -> Iterator[Source]:
    """Open a frame of pandas, polars or Arrow; NaN is a missing value."""
    with _duckdb(memory_limit, None, None, most_hashes, ordered=False) as engine:
        rows = to_pandas(frame)
        numbered = rows.assign(asr_row=range(1, len(rows) + 1))
        engine.amount = f"{len(rows):,} rows"
        engine.connection.register("traces", numbered)
        yield Source(
            engine=engine, table=TRACES, columns=engine.columns(TRACES), name=name, row="asr_row"
        )


def _paths(patterns: Sequence[str | Path]) -> tuple[list[str], str]:
    paths: list[str] = []
    for pattern in map(str, patterns):
        if pattern == STANDARD_INPUT and not os.path.exists(pattern):
            paths.append(pattern)
            continue
        found = [pattern] if os.path.isfile(pattern) else sorted(glob.glob(pattern, recursive=True))
        found = [path for path in found if os.path.isfile(path)]
        paths += found or _no_file(pattern)
    if not paths:
        raise InputError("no file was named")
    kinds = {_kind(path) for path in paths}
    if len(kinds) > 1:
        raise InputError(f"files of one kind are read together, got {', '.join(sorted(kinds))}")
    for path in paths:
        if not os.path.getsize(_lies_at(path)):
            raise InputError(f"{path}: the file is empty; it needs a header or a trace")
    paths = [path if path == STANDARD_INPUT else os.path.abspath(path) for path in paths]
    return list(dict.fromkeys(paths)), kinds.pop()


def _no_file(pattern: str) -> list[str]:
    """Say why a name is that of no file."""
    if os.path.isdir(pattern):
        inside = os.path.join(pattern, "*.csv")
        raise InputError(f"{pattern}: is a folder; name the files in it, such as '{inside}'")
    if os.path.exists(pattern):
        open_file(Path(pattern)).close()  # says what it is
    if glob.has_magic(pattern):
        raise InputError(f"{pattern}: there is no such file: nothing fits this pattern")
    raise InputError(f"{pattern}: there is no such file")


def _lies_at(path: str) -> str:
    """Return where the content of a file is: standard input is written to one."""
    return str(real_path(Path(path)))


def _kind(path: str) -> str:
    if path == STANDARD_INPUT:
        return _kind_of_content(path)
    name = path.lower()
    for packed in (".gz", ".zst"):
        name = name.removesuffix(packed)
    kind = KINDS.get(Path(name).suffix)
    if kind is None:
        check_kind(Path(path))
        raise InputError(f"{path}: .csv, .tsv, .jsonl, .ndjson and .parquet files are read")
    if kind == "results" and name != path.lower():
        raise InputError(f"{path}: unpack it first; of packed files .csv and .jsonl are read")
    return kind


def _kind_of_content(path: str) -> str:
    """Return the kind of a file without a name: Parquet, JSON or CSV."""
    with open_file(Path(path)) as file:
        begins = file.read(CHUNK)
    check_kind(Path(path), begins)
    if begins.startswith(b"PAR1"):
        return "parquet"
    if begins.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        raise InputError(f"{path}: unpack it first: zcat FILE | asr ...")
    codec, mark = encoding_of(begins)
    text = begins[mark:].decode(codec, "replace").lstrip()
    return "results" if text.startswith(("[", "{")) else "csv"


def _results_in(paths: Sequence[str]) -> tuple[list[pd.DataFrame], str]:
    """Return the runs of result files of benchmarks, or none and the kind of other JSON files."""
    import pandas as pd

    results: list[pd.DataFrame] = []
    kinds: set[str] = set()
    for path in paths:
        with open_file(Path(path)) as file:
            begins = file.read(CHUNK)
        codec, mark = encoding_of(begins)
        text = begins[mark:].decode(codec, "replace").lstrip()
        if text.startswith("["):
            kinds.add("array")
            continue
        try:
            runs = benchmark_results(Path(path))
        except NoResultsError:
            first, _, rest = text.partition("\n")
            lines = first.startswith("{") and first.rstrip().endswith("}")
            if not lines or not (rest.lstrip().startswith("{") or path == STANDARD_INPUT):
                raise
            kinds.add("jsonl")
        else:
            kinds.add("results")
            frame = pd.DataFrame(runs, columns=list(RESULT_COLUMNS), dtype="string")
            results.append(frame.assign(asr_file=path))
    if len(kinds) > 1:
        raise InputError(f"files of one kind are read together, got {', '.join(sorted(kinds))}")
    return results, kinds.pop()


@contextmanager
def _open_results(parts: Sequence[pd.DataFrame], name: str, memory_limit: str) -> Iterator[Source]:
    """Open results of benchmarks; a column without a value is not there."""
    import pandas as pd

    frame = pd.concat(parts, ignore_index=True)
    if frame.empty:
        raise InputError(f"{name}: holds no runs")
    # One agent version is none to tell apart.
    gone = [c for c in frame if c not in NEEDED and frame[c].isna().all()]
    gone += ["agent_version"] * (frame["agent_version"].nunique() == 1)
    frame = frame.drop(columns=gone).astype({"line": "int64"})
    with open_frame(frame, name=name, memory_limit=memory_limit) as source:
        columns = {c: kind for c, kind in source.columns.items() if c != source.row}
        yield replace(source, columns=columns, file="asr_file", row="line", results=True)


@contextmanager
def _duckdb(
    memory_limit: str,
    threads: int | None,
    temporary: Path | None,
    most_hashes: int | None,
    *,
    ordered: bool,
) -> Iterator[_FilesEngine]:
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
            # DuckDB counts how far it is, and prints nothing.
            connection.execute(
                "SET TimeZone = 'UTC'; SET enable_progress_bar = true; "
                "SET enable_progress_bar_print = false"
            )
            most = most_hashes or int(_limit(connection) / BYTES_PER_HASH)
            engine = _FilesEngine(connection, most_hashes=most)
            OPEN.add(engine)
            try:
                yield engine
            finally:
                OPEN.discard(engine)
        finally:
            connection.close()


class _FilesEngine(DuckDB):
    """DuckDB over files; `given` is the name of a file by the name of the copy that is read."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, most_hashes: int) -> None:
        super().__init__(connection, most_hashes=most_hashes)
        self.given: dict[str, str] = {}

    def rejected_lines(self) -> list[tuple[str, int, str]]:
        """Return the lines under the names of their files.

        Raises InputError for a quote that is not closed: the lines after it are in no row, and
        count as one.
        """
        # The newline is that of a record that goes on after its quote should have been closed.
        unclosed = self.connection.execute(
            "SELECT s.file_path, min(e.line) FROM reject_errors e "
            "JOIN reject_scans s USING (scan_id, file_id) WHERE e.error_type = 'UNQUOTED VALUE' "
            "AND regexp_matches(rtrim(e.csv_line, chr(10) || chr(13)), '[\\r\\n]') "
            "GROUP BY 1 ORDER BY 1 LIMIT 1"
        ).fetchone()
        if unclosed is not None:
            raise not_closed(self.given.get(unclosed[0], unclosed[0]), unclosed[1])
        return [
            (self.given.get(file, file), line, text)
            for file, line, text in super().rejected_lines()
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _TextFile:
    """A text file: the name that DuckDB reads, a copy or not, and the name that was given.

    `has_blank_rows` : whether there are rows of delimiters alone, as spreadsheets write them.
    """

    path: str
    given: str
    shape: CsvShape | None = None
    has_blank_rows: bool = False


def _read(engine: _FilesEngine, found: Sequence[_TextFile], kind: str, name: str) -> Source:
    # DuckDB expands patterns itself: a plain name must remain one.
    paths = [file.path for file in found]
    engine.given |= {file.path: file.given for file in found if file.path != file.given}
    files = _list(paths)
    if kind == "parquet":
        rows = _checked_rows(engine, files, paths, name)
        engine.amount = f"{rows:,} rows"
        engine.connection.execute(
            f"CREATE TEMP VIEW traces AS SELECT *{_under(found)} FROM read_parquet({files}, "
            "filename='asr_file', file_row_number=true, union_by_name=true)"
        )
        return Source(
            engine=engine, table=TRACES, columns=engine.columns(TRACES), name=name,
            file="asr_file", row="file_row_number", first_row=0, large=rows >= MANY,
        )  # fmt: skip
    size = sum(map(os.path.getsize, paths))
    engine.amount = f"{size / 1e6:,.0f} MB"
    scan = _csv_scan(found) if kind == "csv" else _json_scan(engine, found, kind, name)
    engine.connection.execute(f"CREATE TEMP VIEW traces AS {scan}")
    return Source(
        engine=engine, table=TRACES, columns=engine.columns(TRACES), name=name, texts=True,
        large=size >= LARGE,
        file="asr_file", rejects=kind == "csv", null_is_unreadable=kind != "csv",
    )  # fmt: skip


def _list(paths: Sequence[str]) -> str:
    return "[" + ", ".join(_literal(glob.escape(path)) for path in paths) + "]"


def _under(files: Sequence[_TextFile]) -> str:
    """Return what puts the given names in place of those of copies."""
    copies = [file for file in files if file.path != file.given]
    if not copies:
        return ""
    cases = " ".join(f"WHEN {_literal(f.path)} THEN {_literal(f.given)}" for f in copies)
    return f" REPLACE (CASE asr_file {cases} ELSE asr_file END AS asr_file)"


def _json_scan(engine: DuckDB, found: Sequence[_TextFile], kind: str, name: str) -> str:
    """Return the scan of every field that occurs, ordered by name."""
    files = _list([file.path for file in found])
    how = (
        f"read_ndjson_objects({files}, ignore_errors=true)"
        if kind == "jsonl"
        else f"read_json_objects({files}, format='array')"
    )
    rows = engine.connection.execute(
        f"SELECT DISTINCT unnest(json_keys(json)) FROM {how} WHERE json_type(json) = 'OBJECT'"
    ).fetchall()
    if not rows and kind == "array":
        raise InputError(f"{name}: holds no runs; a .json file is a list of objects")
    form = "newline_delimited" if kind == "jsonl" else "array"
    columns = ", ".join(f"{_literal(row[0])}: 'VARCHAR'" for row in sorted(rows))
    return (
        f"SELECT *{_under(found)} FROM read_json({files}, format='{form}', records='true', "
        f"columns={{{columns}}}, ignore_errors=true, filename='asr_file')"
    )


def _csv_scan(found: Sequence[_TextFile]) -> str:
    """Return one scan per header and delimiter; columns are joined by name."""
    alike: dict[tuple[CsvShape, bool], list[_TextFile]] = {}
    for file in found:
        if file.shape is not None:
            alike.setdefault((file.shape, file.has_blank_rows), []).append(file)
    return " UNION ALL BY NAME ".join(
        _scan_of(shape, has_blank_rows, same) for (shape, has_blank_rows), same in alike.items()
    )


def _scan_of(shape: CsvShape, has_blank_rows: bool, same: Sequence[_TextFile]) -> str:
    names = distinct_names(clean_header(shape.cells, same[0].given), same[0].given)
    columns = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in names)
    unnamed = [quoted(name) for name in names if name.startswith(UNNAMED)]
    without = f" EXCLUDE ({', '.join(unnamed)})" if unnamed else ""
    empty = " AND ".join(f"{quoted(name)} IS NULL" for name in names)
    where = f" WHERE NOT ({empty})" if has_blank_rows else ""
    return (
        f"SELECT *{without}{_under(same)} FROM read_csv({_list([file.path for file in same])}, "
        f"columns={{{columns}}}, auto_detect=false, header=true, skip={shape.skipped}, "
        f"delim={_literal(shape.delimiter)}, quote='\"', escape='\"', store_rejects=true, "
        f"rejects_limit=0, filename='asr_file'){where}"
    )


def _as_utf8(
    paths: Sequence[str], kind: str, encoding: str | None, folder: Path
) -> list[_TextFile]:
    """Return files that DuckDB can read: copies of those that it would not read as we do.

    DuckDB reads UTF-8 of one kind of line ends.
    """
    if kind == "parquet":
        return [_TextFile(path=_lies_at(path), given=path) for path in paths]
    found = []
    for number, path in enumerate(paths):
        with unpacked(path) as stream:
            begins = _begins(path, stream)
            codec, mark = encoding_of(begins, encoding)
            file, change = _TextFile(path=_lies_at(path), given=path), codec != "utf-8"
            seen = CsvContent()
            if kind == "csv":
                text = begins[mark:].decode(codec, "replace")
                shape = csv_shape(text, is_whole=len(begins) < SHAPE_BYTES)
                shape = checked_shape(path, shape)
                seen = look_through(path, stream, codec, mark, shape)
                file = replace(file, shape=shape, has_blank_rows=seen.has_blank_rows)
                change |= seen.mixed_ends or seen.has_nul
            elif mark:
                change = True
            if change:
                copy = folder / f"{number}.{'csv' if kind == 'csv' else 'json'}"
                with copy.open("wb") as target:
                    for chunk in utf8_chunks(Path(path), stream, codec, mark):
                        target.write(seen.changed(chunk))
                file = replace(file, path=str(copy))
            found.append(file)
    return found


def _begins(path: str, stream: BinaryIO) -> bytes:
    begins = stream.read(SHAPE_BYTES)
    check_kind(Path(path), begins)
    return begins


def _checked_rows(engine: DuckDB, files: str, paths: list[str], name: str) -> int:
    """Return the number of rows, unless they are too many for the bytes."""
    ((rows,),) = engine.connection.execute(
        f"SELECT coalesce(sum(num_rows), 0)::BIGINT FROM parquet_file_metadata({files})"
    ).fetchall()
    size = sum(map(os.path.getsize, paths))
    if rows > max(MANY_ROWS, MOST_ROWS_PER_BYTE * size):
        raise InputError(
            f"{name}: holds {rows:,} rows in {size:,} bytes, which cannot be different traces"
        )
    return int(rows)


def _bound(engine: DuckDB, paths: list[str]) -> None:
    """Lower the memory limit to what files of this size need."""
    limit = BASE_BYTES + BYTES_PER_BYTE * sum(map(os.path.getsize, paths))
    if limit < _limit(engine.connection):
        engine.connection.execute(f"SET memory_limit = '{limit}B'")


def _limit(connection: duckdb.DuckDBPyConnection) -> float:
    """Return the memory limit in bytes."""
    number, unit = _memory(connection).split()
    return float(number) * float(1024 ** ["bytes", "KiB", "MiB", "GiB", "TiB"].index(unit))


def _memory(connection: duckdb.DuckDBPyConnection) -> str:
    ((limit,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    return str(limit)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def open_postgres(dsn: str, table: str, *, schema: str | None = None) -> Iterator[Source]:
    """Open a table or view of a PostgreSQL database, read-only, in one snapshot.

    `dsn` is ``postgresql://user@host/database``, ``host=... dbname=...`` or ``service=...``; the
    rest comes from the environment (PGPASSWORD, PGSERVICE ...) and ``~/.pgpass``. Without `schema`
    the search path of the database applies.

    Raises InputError if psycopg is not installed, or the server or table does not exist. No message
    holds a password.
    """
    parts = address_parts(dsn)
    import psycopg

    try:
        connection = psycopg.connect(
            dsn, autocommit=True, connect_timeout=int(parts.get("connect_timeout") or 10)
        )
    except (psycopg.Error, UnicodeError) as error:
        # Not chained: the traceback of a program would show the address.
        raise InputError(f"PostgreSQL: {redacted(error, parts)}") from None
    try:
        connection.execute("SET TIME ZONE 'UTC'")
        # All queries of a report read one snapshot of the table.
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        own = StoredTable(quoted(table) if schema is None else f"{quoted(schema)}.{quoted(table)}")
        engine = Postgres(connection)
        try:
            columns = engine.columns(own)
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            where = "" if schema is None else f" in the schema {schema!r:.80}"
            raise InputError(f"PostgreSQL: there is no table {table!r:.80}{where}") from None
        yield Source(engine=engine, table=own, columns=columns, name=table, large=True)
    except psycopg.Error as error:
        raise InputError(f"PostgreSQL, {table}: {redacted(error, parts)}") from None
    finally:
        connection.close()


@contextmanager
def open_spark(table: Any, *, session: Any = None) -> Iterator[Source]:
    """Open a table (by name) or a DataFrame of a Spark session; the session stays open.

    Raises InputError if pyspark is not installed, or the table does not exist.
    """
    session = session or spark_session()
    from pyspark.errors import AnalysisException

    name = f"asr_traces_{uuid4().hex}"
    try:
        frame = session.table(table) if isinstance(table, str) else table
    except AnalysisException as error:
        raise InputError(f"Spark: there is no table {table!r:.80}") from error
    frame.createOrReplaceTempView(name)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    engine, own = Spark(session, name), StoredTable(quoted(name))
    shown = table if isinstance(table, str) else name
    try:
        yield Source(engine=engine, table=own, columns=engine.columns(own), name=shown, large=True)
    finally:
        engine.close()
        session.catalog.dropTempView(name)


@contextmanager
def open_spark_files(patterns: Sequence[str]) -> Iterator[Source]:
    """Open Parquet, CSV or JSONL files, or patterns of them, that Spark can reach."""
    kinds = {_spark_kind(pattern) for pattern in patterns}
    if len(kinds) != 1:
        raise InputError(f"files of one kind are read together, got {', '.join(sorted(kinds))}")
    session = spark_session()
    from pyspark.errors import AnalysisException, PySparkException

    reader, paths = session.read, list(patterns)
    shown = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    try:
        if kinds == {"csv"}:
            frame = reader.csv(paths, header=True, multiLine=True, quote='"', escape='"')
        elif kinds == {"jsonl"}:
            frame = reader.json(paths, primitivesAsString=True)
        else:
            frame = reader.option("mergeSchema", "true").parquet(*paths)
        with open_spark(frame, session=session) as source:
            yield replace(source, name=shown)
    except AnalysisException as error:
        first = str(error).splitlines()[0]
        raise InputError(f"Spark, {shown}: {first:.300}") from error
    except PySparkException as error:
        first = str(error).splitlines()[0]
        raise InputError(f"Spark, {shown}: cannot be read ({first:.300})") from error


def _spark_kind(pattern: str) -> str:
    name = pattern.lower().rstrip("/")
    for ending, kind in (
        (".csv", "csv"), (".csv.gz", "csv"), (".jsonl", "jsonl"), (".ndjson", "jsonl"),
        (".jsonl.gz", "jsonl"), (".ndjson.gz", "jsonl"),
    ):  # fmt: skip
        if name.endswith(ending):
            return kind
    if name.endswith((".tsv", ".zip", ".xlsx", ".txt")):
        raise InputError(f"Spark, {pattern}: Parquet, CSV and JSONL are read")
    # A directory or a table of part files without an ending is Parquet, as Spark writes it.
    return "parquet"


class Place(Protocol):
    """A place that can be opened as a table of traces, repeatedly."""

    @property
    def names(self) -> tuple[str, ...]:
        """Its names in a report; never a password."""

    @property
    def files(self) -> tuple[str, ...]:
        """Its files on this machine; Spark's may be anywhere."""
        return ()

    def open(self) -> AbstractContextManager[Source]:
        """Open it."""

    def settings(self) -> dict[str, Any]:
        """Return plain data that `place_of_settings` reads back."""

    @property
    def given_by(self) -> str:
        """Who gave the outcomes; empty for a table, which does not say."""
        return ""

    @property
    def checked(self) -> str:
        """Whether reviewers have checked the outcomes, where it is known who gave them."""
        return ""


@dataclass(frozen=True, slots=True)
class Files(Place):
    """Data files, or patterns of them, read by DuckDB; memory is no setting of a report."""

    patterns: tuple[str, ...]
    memory: str = DEFAULT_MEMORY
    encoding: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The patterns."""
        return self.patterns

    @property
    def files(self) -> tuple[str, ...]:
        """The patterns."""
        return self.patterns

    def open(self) -> AbstractContextManager[Source]:
        """Open the files."""
        return open_files(self.patterns, memory_limit=self.memory, encoding=self.encoding)

    def settings(self) -> dict[str, Any]:
        """Return the patterns, and the encoding that was named."""
        named = {} if self.encoding is None else {"encoding": self.encoding}
        return {"files": list(self.patterns), **named}


@dataclass(frozen=True, slots=True)
class PostgresTable(Place):
    """A table or view of a PostgreSQL database; ``schema.table`` names its schema."""

    dsn: str = field(repr=False)
    table: str

    @property
    def names(self) -> tuple[str, ...]:
        """Table and address, without the password."""
        return (f"PostgreSQL table {self.table} ({safe_address(self.dsn) or 'environment'})",)

    def open(self) -> AbstractContextManager[Source]:
        """Connect."""
        schema, _, table = self.table.rpartition(".")
        return open_postgres(self.dsn, table, schema=schema or None)

    def settings(self) -> dict[str, Any]:
        """Return address and table; the password comes from the environment."""
        return {"postgres": safe_address(self.dsn), "table": self.table}


@dataclass(frozen=True, slots=True)
class SparkFiles(Place):
    """Parquet, CSV or JSONL files that Spark reads."""

    patterns: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The patterns."""
        return tuple(f"Spark {pattern}" for pattern in self.patterns)

    def open(self) -> AbstractContextManager[Source]:
        """Open the files."""
        return open_spark_files(self.patterns)

    def settings(self) -> dict[str, Any]:
        """Return the patterns."""
        return {"spark": list(self.patterns)}


@dataclass(frozen=True, slots=True, eq=False)
class Frame(Place):
    """A frame; a report on it names no place to reproduce it from."""

    frame: IntoDataFrame
    name: str = "the frame"

    @property
    def names(self) -> tuple[str, ...]:
        """The name."""
        return (self.name,)

    def open(self) -> AbstractContextManager[Source]:
        """Open the frame."""
        return open_frame(self.frame, name=self.name)

    def settings(self) -> dict[str, Any]:
        """Return the name."""
        return {"frame": self.name}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunsOfStore(Place):
    """Runs of a store with the outcomes that `given_by` gave them, as `from_store` takes them.

    `outcomes` has trace_id and outcome, a class or ``no_verdict``; `checked` says in words whether
    reviewers have checked them; `told` are the settings of a report.
    """

    traces: pd.DataFrame
    operation: pd.DataFrame
    outcomes: pd.DataFrame
    taxonomy: Taxonomy
    given_by: str
    checked: str
    told: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """The store, and not its path: a copy gives the same report."""
        return ("the store",)

    def open(self) -> AbstractContextManager[Source]:
        """Open the frames."""
        return from_store(
            self.traces, self.operation, taxonomy=self.taxonomy, outcomes=self.outcomes
        )

    def settings(self) -> dict[str, Any]:
        """Return the settings, by which a report on a store is made again."""
        return dict(self.told)


@dataclass(frozen=True, slots=True)
class _Opened(Place):
    """A place that is already open."""

    place: Place
    source: Source

    @property
    def names(self) -> tuple[str, ...]:
        return self.place.names

    @property
    def files(self) -> tuple[str, ...]:
        return self.place.files

    @property
    def given_by(self) -> str:
        return self.place.given_by

    @property
    def checked(self) -> str:
        return self.place.checked

    @contextmanager
    def open(self) -> Iterator[Source]:
        yield self.source

    def settings(self) -> dict[str, Any]:
        return self.place.settings()


def place_of(given: Place | Sequence[str]) -> Place:
    """Return a place; file names become `Files`."""
    return Files(tuple(map(str, given))) if isinstance(given, Sequence) else given


@contextmanager
def kept_open(place: Place) -> Iterator[Place]:
    """Keep a server open, so that all passes read one snapshot; files are reopened."""
    if isinstance(place, Files):
        yield place
        return
    with place.open() as source:
        yield _Opened(place, source)


def place_of_settings(settings: Mapping[str, Any], memory: str = DEFAULT_MEMORY) -> Place:
    """Return the place of a report; reading files may use `memory`."""
    if "postgres" in settings:
        return PostgresTable(str(settings["postgres"]), str(settings["table"]))
    if isinstance(settings.get("files"), list):
        encoding = settings.get("encoding")
        named = None if encoding is None else str(encoding)
        return Files(tuple(map(str, settings["files"])), memory, named)
    if isinstance(settings.get("spark"), list):
        return SparkFiles(tuple(map(str, settings["spark"])))
    raise InputError("the settings of the report name nothing to read")


@contextmanager
def from_store(
    traces: pd.DataFrame,
    operation: pd.DataFrame,
    verdicts: pd.DataFrame | None = None,
    *,
    taxonomy: Taxonomy,
    outcomes: pd.DataFrame | None = None,
) -> Iterator[Source]:
    """Open traces of a store as `production_counts` reads them.

    Parameters are `Store.trace_frame`, `Store.operation_frame` and a judge's `Store.verdict_frame`.
    Without `outcomes` those of this source are the first class throughout and must not be used: the
    rate of a store comes from its labels, which may be shares of several classes. `outcomes`, of
    the columns trace_id and outcome, are taken as given; perturbed arms and lengths are then read
    from the traces too.

    A column without values is left out, as is the task where each trace has its own: results then
    name it as not recorded and count runs.
    """
    import pandas as pd

    frame = traces.merge(operation, on="trace_id", how="left")
    found = frame[list(READ)].assign(outcome=taxonomy.names[0])
    if outcomes is not None:
        of_trace = outcomes.set_index("trace_id")["outcome"]
        found["outcome"] = found["trace_id"].map(of_trace).astype("string")
        found[list(OF_GIVEN)] = frame[list(OF_GIVEN)]
        found["n_steps"] = frame["n_steps"].where(frame["n_steps"] > 0)
    found["started_at"] = pd.to_datetime(frame["started_at"], utc=True)
    for name in ("escalated", "feedback"):
        found[name] = frame[name].where(frame[name].isna(), frame[name].astype("str"))
    if frame["task_key"].duplicated().any():
        found["task_id"] = frame["task_key"]
    if verdicts is not None:
        known = verdicts[verdicts["outcome"].isin(verdict_names(taxonomy))]
        found["verdict"] = found["trace_id"].map(known.set_index("trace_id")["outcome"])
    columns = [str(name) for name in found if name not in ("cost_usd", "outcome")]
    silent = [name for name in columns if found[name].isna().all()]
    if not (frame["tool_calls"] > 0).any():
        silent += ["tool_calls", "tool_errors"]
    with open_frame(found.drop(columns=sorted(set(silent))), name="the store") as source:
        # Its workflows are those of its traces; one without a ceiling has none.
        yield replace(source, results=outcomes is not None)
