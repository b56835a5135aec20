"""The engines that hold the traces: they run queries and keep intermediate tables."""

import io
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from calibration.runs.queries import Query, Relation, StoredTable, macros, query, quoted, translated
from calibration.weeks import weeks_of

# What is no parameter.
_PERCENT = re.compile(r"%(?!\(\w+\)s)")

Kind = Literal["number", "text", "truth", "moment", "naive", "texts", "nested", "nothing", "other"]

# By the name of a type in lower case, without its brackets.
_KINDS: dict[Kind, tuple[str, ...]] = {
    "number": (
        "tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger",
        "ubigint", "uhugeint", "float", "double", "decimal", "int2", "int4", "int8", "float4",
        "float8", "numeric", "int", "byte", "short", "long", "real",
    ),
    "text": (
        "varchar", "text", "enum", "uuid", "json", "bpchar", "char", "name", "citext", "string",
        "jsonb", "time", "interval",
    ),
    "truth": ("boolean", "bool"),
    "moment": ("timestamp with time zone", "timestamptz"),
    "naive": (
        "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp_ntz", "date",
    ),
    "texts": ("varchar[]", "text[]", "array<string>"),
    "nested": ("struct", "map", "union", "blob", "bytea", "binary"),
    "nothing": ("null", "void"),
}  # fmt: skip


def kind_of(name: str) -> Kind:
    """Return what a column of a type holds.

    Examples
    --------
    >>> kind_of("DECIMAL(18,3)"), kind_of("TIMESTAMP WITH TIME ZONE"), kind_of("INTEGER[]")
    ('number', 'moment', 'nested')
    """
    plain = name.lower().strip('"')
    short = plain if plain.endswith("]") else plain.partition("(")[0]
    for kind, names in _KINDS.items():
        if short in names or plain in names:
            return kind
    return "nested" if short.endswith(("]", ">")) else "other"


class Engine(Protocol):
    """What the counting asks of an engine."""

    def run(self, query: Query) -> pd.DataFrame:
        """Return the rows of a query."""

    def keep(self, query: Query, name: str, *, numbered: bool = False) -> Relation:
        """Return a relation with the rows of a query, stored if the engine can.

        With `numbered` its column `row` counts the rows from 1 as they came.
        """

    def distinct(
        self, rows: Relation, column: str, n: int, watch: Collection[str] = ()
    ) -> tuple[int, bool]:
        """Return the number of distinct identities in a column of `n` rows, none of them null.

        And whether some texts may be among them.
        """


class DuckDB:
    """DuckDB in this process."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, most_hashes: int) -> None:
        self.connection = connection
        self.most_hashes = most_hashes
        connection.execute(macros("functions", "functions_duckdb"))

    def columns(self, table: StoredTable) -> dict[str, str]:
        """Return the columns of a table with their types."""
        rows = self.connection.sql(f"SELECT * FROM {table.quoted} LIMIT 0")
        return dict(zip(rows.columns, map(str, rows.types), strict=True))

    def run(self, query: Query) -> pd.DataFrame:
        """Return the rows of a query."""
        frame: pd.DataFrame = self._rows(query).to_arrow_table().to_pandas()
        return frame

    def _rows(self, query: Query) -> duckdb.DuckDBPyRelation:
        text, parameters = query.composed("NOT MATERIALIZED ")
        return self.connection.sql(text, params=parameters or None)

    def keep(self, query: Query, name: str, *, numbered: bool = False) -> Relation:
        """Return a table: in memory while it fits, numbered ones in the file of the connection."""
        text, parameters = query.composed("NOT MATERIALIZED ")
        own = quoted(name)
        if not numbered:
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {own} AS {text}", parameters)
            return StoredTable(own)
        stored = quoted(f"{name}_rows")
        self.connection.execute(
            f'CREATE OR REPLACE TABLE {stored} AS SELECT * EXCLUDE ("row") FROM ({text})',
            parameters,
        )
        self.connection.execute(
            f'CREATE OR REPLACE VIEW {own} AS SELECT *, rowid + 1 AS "row" FROM {stored}'
        )
        return StoredTable(own)

    def rejected_lines(self) -> pd.DataFrame:
        """Return file, line and text of the lines of CSV files that are no rows."""
        rows = self.connection.sql(
            "SELECT s.file_path AS file, e.line, any_value(e.csv_line) AS text "
            "FROM reject_errors e JOIN reject_scans s USING (scan_id, file_id) "
            "GROUP BY 1, 2 ORDER BY 1, 2"
        )
        frame: pd.DataFrame = rows.to_arrow_table().to_pandas()
        return frame

    def distinct(
        self, rows: Relation, column: str, n: int, watch: Collection[str] = ()
    ) -> tuple[int, bool]:
        """Count distinct hashes by sorting them, a part of them at a time.

        Sorting hashes takes an eighth of the time of a hash table of texts. Texts that differ have
        the same hash once in millions of tables; such a table only takes the longer way that
        compares the texts.
        """
        parts = max(1, -(-n // self.most_hashes))
        distinct, seen = 0, False
        watched = self._hashes_of(watch)
        for part in range(parts):
            hashes = self._hashes(rows, column, part, parts)
            hashes.sort()
            distinct += int(np.count_nonzero(hashes[1:] != hashes[:-1])) + bool(hashes.size)
            if hashes.size and not seen:
                places = np.searchsorted(hashes, watched).clip(max=hashes.size - 1)
                seen = bool((hashes[places] == watched).any())
        return distinct, seen

    def _hashes_of(self, texts: Collection[str]) -> NDArray[np.uint64]:
        rows = self.connection.execute("SELECT hash(unnest($1::VARCHAR[]))", [list(texts)])
        return np.array([row[0] for row in rows.fetchall()], dtype=np.uint64)

    def _hashes(self, rows: Relation, column: str, part: int, parts: int) -> NDArray[np.uint64]:
        some = {"parts": parts, "part": part} if parts > 1 else {}
        found = query("identities", rows=rows, column=column, **some)
        return np.concatenate([np.empty(0, np.uint64), *self._batches(found)])

    def _batches(self, found: Query) -> Iterator[NDArray[np.uint64]]:
        for batch in self._rows(found).to_arrow_reader(1_000_000):
            yield batch.column(0).to_numpy(zero_copy_only=False)


class _Server:
    """What PostgreSQL and Spark share: both are only read from."""

    dialect: str

    def _translated(self, query: Query) -> tuple[str, dict[str, Any]]:
        text, parameters = query.composed()
        return translated(text, self.dialect), parameters

    def run(self, query: Query) -> pd.DataFrame:
        """Return the rows of a query."""
        raise NotImplementedError

    def keep(self, query: Query, name: str, *, numbered: bool = False) -> Relation:
        """Return the query: nothing is written to somebody else's database."""
        return query

    def distinct(
        self, rows: Relation, column: str, n: int, watch: Collection[str] = ()
    ) -> tuple[int, bool]:
        """Count distinct values."""
        found = int(self.run(query("distinct", rows=rows, column=column))["n"][0])
        if not watch:
            return found, False
        seen = self.run(query("watched", rows=rows, column=column, watched=sorted(watch)))
        return found, bool(seen["n"][0])


class Postgres(_Server):
    """A connection to PostgreSQL, in one read-only transaction."""

    dialect = "postgres"

    # Types of answers by their number; sums of whole numbers come as numeric, and none of ours has
    # more than 53 bits.
    _TYPES: Mapping[int, pa.DataType] = {
        16: pa.bool_(), 20: pa.int64(), 21: pa.int64(), 23: pa.int64(), 700: pa.float64(),
        701: pa.float64(), 1114: pa.timestamp("us"), 1184: pa.timestamp("us", "UTC"),
        1700: pa.float64(),
    }  # fmt: skip

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def columns(self, table: StoredTable) -> dict[str, str]:
        """Return the columns of a table with their types."""
        rows = self.connection.execute(f"SELECT * FROM {table.quoted} LIMIT 0")
        return {column.name: column.type_display for column in rows.description}

    def run(self, query: Query) -> pd.DataFrame:
        """Return the rows of a query, as CSV: a tenth of the time of one Python object a value."""
        text, parameters = self._translated(query)
        text = _PERCENT.sub("%%", text)
        head = self.connection.execute(f'SELECT * FROM ({text}) AS "asked" LIMIT 0', parameters)
        types = {
            column.name: self._TYPES.get(column.type_code, pa.string())
            for column in head.description
        }
        rows = io.BytesIO()
        with self.connection.cursor().copy(
            f"COPY ({text}) TO STDOUT (FORMAT csv)", parameters
        ) as stream:
            for part in stream:
                rows.write(part)
        if not rows.tell():
            return pd.DataFrame(pa.schema(list(types.items())).empty_table().to_pandas())
        rows.seek(0)
        found = csv.read_csv(
            rows,
            read_options=csv.ReadOptions(column_names=list(types)),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=types, null_values=[""], true_values=["t"], false_values=["f"],
                strings_can_be_null=True, quoted_strings_can_be_null=False,
            ),
        )  # fmt: skip
        return pd.DataFrame(found.to_pandas())


class Spark(_Server):
    """A Spark session; tables that several queries read are cached in it until `close`."""

    dialect = "spark"

    def __init__(self, session: Any, prefix: str) -> None:
        self.session, self.prefix = session, prefix
        self._kept: dict[str, Any] = {}

    def columns(self, table: StoredTable) -> dict[str, str]:
        """Return the columns of a table with their types; Spark's timestamps are moments."""
        name = table.quoted.strip('"')
        return {
            field.name: "timestamptz" if kind == "timestamp" else kind
            for field in self.session.table(f"`{name}`").schema
            for kind in (field.dataType.simpleString(),)
        }

    def _frame(self, query: Query) -> Any:
        text, parameters = self._translated(query)
        bound = {
            name: value.replace(tzinfo=UTC)
            if isinstance(value, datetime) and value.tzinfo is None
            else value
            for name, value in parameters.items()
        }
        return self.session.sql(text, bound)

    def run(self, query: Query) -> pd.DataFrame:
        """Return the rows of a query; Spark's own way to pandas does not know pandas 3."""
        return pd.DataFrame(self._frame(query).toArrow().to_pandas())

    def keep(self, query: Query, name: str, *, numbered: bool = False) -> Relation:
        """Return a cached view: in the memory and on the disks of the cluster, never in a table."""
        view = f"{self.prefix}_{name}"
        frame = self._frame(query).persist()
        frame.createOrReplaceTempView(view)
        if name in self._kept:
            self._kept[name].unpersist()
        self._kept[name] = frame
        return StoredTable(quoted(view))

    def close(self) -> None:
        """Drop the views and what is cached for them."""
        for name, frame in self._kept.items():
            self.session.catalog.dropTempView(f"{self.prefix}_{name}")
            frame.unpersist()
        self._kept.clear()


def week_labels(weeks: NDArray[np.int64]) -> list[str]:
    """Return the ISO weeks of numbers of weeks since the one of 1970-01-05.

    Examples
    --------
    >>> week_labels(np.array([0, 2972]))
    ['1970-W02', '2026-W52']
    """
    origin = np.datetime64("1970-01-05", "s")
    return weeks_of(pd.Series(origin + weeks * np.timedelta64(7, "D"))).tolist()


def week_names(weeks: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return ISO weeks as categories from a column of numbers, as `week_labels`.

    Examples
    --------
    >>> week_names(pd.Series([0, 2972, None])).tolist()
    ['1970-W02', '2026-W52', nan]
    """
    codes, values = pd.factorize(weeks, sort=True)
    names = pd.Index(week_labels(np.asarray(values, dtype=np.int64)), dtype=str)
    return pd.Series(pd.Categorical.from_codes(codes, names), index=weeks.index)
