"""The engines that hold the traces: they run the expressions and keep intermediate tables."""

from collections.abc import Collection, Iterator
from typing import Any, Protocol

import duckdb
import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
from ibis.expr import datatypes as dt
from numpy.typing import NDArray

DAY_US = 86_400_000_000


UTC = dt.Timestamp(timezone="UTC")


def _one(value: Any) -> Any:
    """Stand for a function of one value."""


def _two(first: Any, second: Any) -> Any:
    """Stand for a function of two values."""


# Functions that the engines have and Ibis has no word for.
_builtin: Any = ibis.udf.scalar.builtin

_epoch_us = _builtin(_one, name="epoch_us", signature=((UTC,), "int64"))

_epoch_us_naive = _builtin(_one, name="epoch_us", signature=(("timestamp",), "int64"))

_timezone = _builtin(_two, name="timezone", signature=(("string", "timestamp"), UTC))

_to_utc_timestamp = _builtin(
    _two, name="to_utc_timestamp", signature=(("timestamp", "string"), UTC)
)

_duckdb_hash = _builtin(_one, name="hash", signature=(("string",), "uint64"))


class Engine(Protocol):
    """What the aggregation asks of an engine besides running expressions."""

    def run(self, expression: Any) -> pd.DataFrame:
        """Return the rows of an expression."""

    def keep(self, expression: Any, name: str, *, numbered: bool = False) -> Any:
        """Return a table with the rows of an expression, stored if the engine can.

        With `numbered` its column `row` counts the rows from 1 as they came.
        """

    def view(self, expression: Any, name: str) -> Any:
        """Return a table that stands for an expression, so that it is written out once."""

    def week(self, at: Any) -> Any:
        """Return the number of the week of a time in UTC, as `week_labels` reads it."""

    def localise(self, at: Any, zone: str) -> Any:
        """Return the moment of a time without zone that was written in a zone."""

    def identity(self, text: Any) -> Any:
        """Return what stands for a text where only its being the same matters."""

    def grouped(self, identity: Any, n: int) -> Any:
        """Return one of `n` numbers from 0 up, as chance has it, the same for an identity."""

    def distinct(
        self, table: Any, column: str, n: int, watch: Collection[str] = ()
    ) -> tuple[int, bool]:
        """Return the number of distinct identities in a column of `n` rows, none of them null.

        And whether some texts may be among them.
        """


class DuckDB:
    """DuckDB in this process. Ibis writes the SQL; its own connection needs DuckDB 1.x."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, most_hashes: int) -> None:
        self.connection = connection
        self.most_hashes = most_hashes

    def table(self, name: str) -> Any:
        """Return the Ibis table of a table or view."""
        schema = self.connection.sql(f'SELECT * FROM "{name}" LIMIT 0').to_arrow_table().schema
        return ibis.table(ibis.Schema.from_pyarrow(schema), name=name)

    def run(self, expression: Any) -> pd.DataFrame:
        """Return the rows of an expression."""
        rows = self.connection.sql(_duckdb_sql(expression)).to_arrow_table()
        frame: pd.DataFrame = rows.to_pandas()
        return frame

    def keep(self, expression: Any, name: str, *, numbered: bool = False) -> Any:
        """Return a table: in memory while it fits, numbered ones in the file of the connection."""
        sql = _duckdb_sql(expression.drop("row") if numbered else expression)
        if not numbered:
            self.connection.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS {sql}')
            return self.table(name)
        self.connection.execute(f'CREATE OR REPLACE TABLE "{name}_rows" AS {sql}')
        self.connection.execute(
            f'CREATE OR REPLACE VIEW "{name}" AS SELECT *, rowid + 1 AS row FROM "{name}_rows"'
        )
        return self.table(name)

    def view(self, expression: Any, name: str) -> Any:
        """Return a view: writing the SQL of everything anew takes longer than small tables do."""
        self.connection.execute(
            f'CREATE OR REPLACE TEMP VIEW "{name}" AS {_duckdb_sql(expression)}'
        )
        return self.table(name)

    def rejected_lines(self) -> pd.DataFrame:
        """Return file, line and text of the lines of CSV files that are no rows."""
        rows = self.connection.sql(
            "SELECT s.file_path AS file, e.line, any_value(e.csv_line) AS text "
            "FROM reject_errors e JOIN reject_scans s USING (scan_id, file_id) "
            "GROUP BY ALL ORDER BY file, line"
        )
        frame: pd.DataFrame = rows.to_arrow_table().to_pandas()
        return frame

    def week(self, at: Any) -> Any:
        """Return the number of the week; cutting a time to its week costs four times as much."""
        naive = at.type().timezone is None
        microseconds = _epoch_us_naive(at) if naive else _epoch_us(at)
        # Exact in floating point for three centuries; rounds down before 1970 too.
        days = (microseconds / DAY_US).floor()
        return ((days - 4) / 7).floor().cast("int32")

    def localise(self, at: Any, zone: str) -> Any:
        """Return the moment of a time without zone."""
        return _timezone(zone, at)

    def identity(self, text: Any) -> Any:
        """Return the hash of a text."""
        return _duckdb_hash(text)

    def grouped(self, identity: Any, n: int) -> Any:
        """Return the rest of the hash."""
        return (identity % n).cast("int64")

    def distinct(
        self, table: Any, column: str, n: int, watch: Collection[str] = ()
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
            hashes = self._hashes(table, column, part, parts)
            hashes.sort()
            distinct += int(np.count_nonzero(hashes[1:] != hashes[:-1])) + bool(hashes.size)
            if hashes.size and not seen:
                places = np.searchsorted(hashes, watched).clip(max=hashes.size - 1)
                seen = bool((hashes[places] == watched).any())
        return distinct, seen

    def _hashes_of(self, texts: Collection[str]) -> NDArray[np.uint64]:
        rows = self.connection.execute("SELECT hash(unnest($1::VARCHAR[]))", [list(texts)])
        return np.array([row[0] for row in rows.fetchall()], dtype=np.uint64)

    def _hashes(self, table: Any, column: str, part: int, parts: int) -> NDArray[np.uint64]:
        rows = table.select(h=table[column])
        if parts > 1:
            rows = rows.filter(rows.h % parts == part)
        return np.concatenate([np.empty(0, np.uint64), *self._batches(rows)])

    def _batches(self, expression: Any) -> Iterator[NDArray[np.uint64]]:
        for batch in self.connection.sql(_duckdb_sql(expression)).to_arrow_reader(1_000_000):
            yield batch.column(0).to_numpy(zero_copy_only=False)


class OtherEngine:
    """An Ibis backend that holds the traces elsewhere; only read from."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def run(self, expression: Any) -> pd.DataFrame:
        """Return the rows of an expression."""
        if self.backend.name == "pyspark":
            # Spark's own way to pandas does not know pandas 3.
            sql = self.backend.compile(expression)
            return pd.DataFrame(self.backend._session.sql(sql).toArrow().to_pandas())
        # Ibis reads through cursors that end with their transaction; all of ours is one.
        rows = self.backend.con.execute(self.backend.compile(expression)).fetchall()
        kind = expression.as_table().schema().as_struct().to_pyarrow()
        batch = pa.RecordBatch.from_struct_array(pa.array(rows, type=kind))
        return pd.DataFrame(batch.to_pandas())

    def keep(self, expression: Any, name: str, *, numbered: bool = False) -> Any:
        """Return the expression: nothing is written to somebody else's database."""
        return expression

    def view(self, expression: Any, name: str) -> Any:
        """Return the expression."""
        return expression

    def week(self, at: Any) -> Any:
        """Return the number of the week."""
        return ((at.epoch_seconds().cast("float64") / 86_400 - 4) / 7).floor().cast("int32")

    def localise(self, at: Any, zone: str) -> Any:
        """Return the moment of a time without zone."""
        if self.backend.name == "pyspark":
            return _to_utc_timestamp(at, zone)
        return _timezone(zone, at)

    def identity(self, text: Any) -> Any:
        """Return the text."""
        return text

    def grouped(self, identity: Any, n: int) -> Any:
        """Return the rest of a hash."""
        return ((identity.hash() & 0x7FFFFFFF) % n).cast("int64")

    def distinct(
        self, table: Any, column: str, n: int, watch: Collection[str] = ()
    ) -> tuple[int, bool]:
        """Count distinct values."""
        asked = {"distinct": table[column].nunique()}
        if watch:
            asked["seen"] = table[column].isin(tuple(watch)).any()
        found = self.run(table.aggregate(**asked))
        return int(found["distinct"][0]), bool(watch) and bool(found["seen"][0])


def _duckdb_sql(expression: Any) -> str:
    return str(ibis.to_sql(expression, dialect="duckdb", pretty=False))


def week_labels(weeks: NDArray[np.int64]) -> list[str]:
    """Return ISO weeks ``YYYY-Www`` from what `Engine.week` returned.

    Examples
    --------
    >>> week_labels(np.array([0, 2972]))
    ['1970-W02', '2026-W52']
    """
    origin = np.datetime64("1970-01-05", "s")
    iso = pd.DatetimeIndex(origin + weeks * np.timedelta64(7, "D")).isocalendar()
    return [f"{y:04d}-W{w:02d}" for y, w in zip(iso["year"], iso["week"], strict=True)]


def week_names(weeks: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return ISO weeks as categories from a column of `Engine.week`.

    Examples
    --------
    >>> week_names(pd.Series([0, 2972, None])).tolist()
    ['1970-W02', '2026-W52', nan]
    """
    codes, values = pd.factorize(weeks, sort=True)
    names = pd.Index(week_labels(np.asarray(values, dtype=np.int64)), dtype=str)
    return pd.Series(pd.Categorical.from_codes(codes, names), index=weeks.index)
