"""The engines that hold the traces, and the queries that they run.

A query is a file of `sql/`: one valid statement in DuckDB's dialect, translated for the other
engines. It reads relations by names of its own (``FROM "rows"``) and binds parameters (``$since``).
Three marks vary it:

``... -- if NAME``, ``... -- unless NAME``
    The line is kept if, or unless, NAME is given.
``... -- each NAME``
    The line is repeated for each item of NAME, with the parameters of the item.
``-- each NAME:`` to ``-- end``
    The lines between are repeated for each item.

``"@name"`` is the identifier of that name. Functions that differ between engines, or that many
statements share, are macros in `sql/functions*.sql`.
"""

from __future__ import annotations

import io
import math
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import quote

import duckdb
import numpy as np
import pyarrow as pa

from calibration.errors import InputError
from calibration.tables import words
from calibration.tables.columns import normalised
from calibration.text import weeks_of

if TYPE_CHECKING:
    # `asr look` goes without it: it takes longer to load than it takes to read a file.
    import pandas as pd
    from numpy.typing import NDArray

_LINE = re.compile(r"^(?P<line>.*?)\s*-- (?P<mark>if|unless|each) (?P<name>\w+)(?P<block>:?)$")
# Texts and identifiers in quotes hold no parameters.
_PARAMETER = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\$([a-z]\w*)""")
# From this share of a step on, the time that is left is told.
SURE = 0.02
_READS = re.compile(r'\b(FROM|JOIN) "(\w+)"')


PARTITIONS = "spark.sql.shuffle.partitions"

# What a column without a name is called while it is read; no one can choose it.
UNNAMED = "asr_unnamed_"

# Parts of an address that may be printed and kept; none holds a password.
SHOWN = (
    "service", "host", "hostaddr", "port", "dbname", "user", "sslmode", "sslrootcert",
    "target_session_attrs",
)  # fmt: skip

SECRET = ("password", "sslpassword", "oauth_client_secret")

UNREADABLE = (
    "PostgreSQL: the address cannot be read; it is postgresql://USER@HOST/DATABASE or "
    "'host=HOST dbname=DATABASE user=USER' or 'service=NAME', with the password in PGPASSWORD, "
    "~/.pgpass or the service file"
)


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table or view in an engine, by its quoted name."""

    quoted: str


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A statement with its parameters and the relations that it reads, by its names for them."""

    name: str
    text: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    reads: Mapping[str, Relation] = field(default_factory=dict)

    def composed(self, hint: str = "") -> tuple[str, dict[str, Any]]:
        """Return statement and parameters; `hint` precedes the bracket of each relation."""
        parts = _Parts(hint)
        text = parts.body(self)
        if parts.found:
            own = text.removeprefix("WITH ") if text.startswith("WITH ") else ""
            text = f"WITH {', '.join(parts.found)}" + (f", {own}" if own else f" {text}")
        return text, parts.parameters


Relation = Query | StoredTable


def query(name: str, **values: Any) -> Query:
    """Return a file filled in with relations, items of ``each``, flags and parameters."""
    reads = {key: value for key, value in values.items() if isinstance(value, Query | StoredTable)}
    lines, parameters = _filled(_statement(name), values, frozenset(), "")
    text = "\n".join(lines)
    wanted = set(filter(None, _PARAMETER.findall(text)))
    missing = wanted - set(parameters)
    if missing:
        raise ValueError(f"{name}.sql binds {sorted(missing)}, which was not given")
    return Query(name, text, {key: parameters[key] for key in sorted(wanted)}, reads)


@cache
def _statement(name: str) -> tuple[str, ...]:
    text = (files("calibration.runs") / "sql" / f"{name}.sql").read_text("utf-8")
    return tuple(
        line for line in text.splitlines()
        if line and (not line.lstrip().startswith("-- ") or line.startswith(("-- each", "-- end")))
    )  # fmt: skip


def _filled(
    lines: Sequence[str], values: Mapping[str, Any], own: frozenset[str], suffix: str
) -> tuple[list[str], dict[str, Any]]:
    """Return lines and parameters; those of `own` carry the suffix."""
    found: list[str] = []
    bound: dict[str, Any] = {}

    def repeated(name: str, block: Sequence[str]) -> None:
        for k, item in enumerate(values[name]):
            more, parameters = _filled(block, values | item, own | set(item), f"{suffix}_{k}")
            found.extend(more)
            bound.update(parameters)

    rest: Iterator[str] = iter(lines)
    for line in rest:
        marked = _LINE.match(line)
        if marked is None:
            filled, parameters = _bound(line, values, own, suffix)
            found.append(filled)
            bound.update(parameters)
        elif marked["mark"] == "each":
            block = [marked["line"]]
            if marked["block"]:
                block = []
                for inside in rest:
                    if inside == "-- end":
                        break
                    block.append(inside)
            repeated(marked["name"], block)
        elif bool(values.get(marked["name"])) == (marked["mark"] == "if"):
            repeated_line, parameters = _filled([marked["line"]], values, own, suffix)
            found.extend(repeated_line)
            bound.update(parameters)
    return found, bound


def _bound(
    line: str, values: Mapping[str, Any], own: frozenset[str], suffix: str
) -> tuple[str, dict[str, Any]]:
    bound: dict[str, Any] = {}

    def numbered(match: re.Match[str]) -> str:
        name = match[1]
        if name not in values:
            return match[0]
        whole = name + suffix if name in own else name
        bound[whole] = values[name]
        return f"${whole}"

    line = re.sub(r"@(\w+)", lambda m: str(values[m[1]]).replace('"', '""'), line)
    return _PARAMETER.sub(numbered, line), bound


class _Parts:
    """The relations of one statement, each once and after those that it reads."""

    def __init__(self, hint: str) -> None:
        self.hint = hint
        self.found: list[str] = []
        self.parameters: dict[str, Any] = {}
        self._names: dict[int, str] = {}

    def body(self, query: Query) -> str:
        for name, value in query.parameters.items():
            if self.parameters.setdefault(name, value) != value:
                raise ValueError(f"two queries bind ${name} to different values")
        names = {alias: self._named(relation) for alias, relation in query.reads.items()}

        def named(match: re.Match[str]) -> str:
            alias = match[2]
            return f'{match[1]} {names[alias]} AS "{alias}"' if alias in names else match[0]

        return _READS.sub(named, query.text)

    def _named(self, relation: Relation) -> str:
        if isinstance(relation, StoredTable):
            return relation.quoted
        if id(relation) not in self._names:
            body = self.body(relation)
            name = f"{relation.name}_{len(self._names) + 1}"
            self._names[id(relation)] = name
            self.found.append(f'"{name}" AS {self.hint}(\n{body}\n)')
        return f'"{self._names[id(relation)]}"'


def quoted(name: str) -> str:
    """Return an identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def macros(*names: str) -> str:
    """Return the statements that create the functions of these files, and those of words."""
    about_words = word_macros() if "functions" in names else ""
    return about_words + "\n".join("\n".join(_statement(name)) for name in names)


@cache
def word_macros() -> str:
    """Return the functions that know words, made of the lists that all readers share."""

    def among(text: str, listed: Iterable[str]) -> str:
        # As a list: of more than a few texts after IN the engine makes a join with all rows.
        names = ", ".join("'" + name.replace("'", "''") + "'" for name in sorted(listed))
        return f"place_of({text}, [chr(1), {names}]) IS NOT NULL"

    dropped = "".join(words.ZERO_WIDTH)
    # Of a text that is clean.
    fold = "regexp_replace(lower(given), '[\\s_/-]+', '_', 'g')"
    return f"""
CREATE OR REPLACE TEMP MACRO place_of(given, names) AS list_position(names, given) - 1;
CREATE OR REPLACE TEMP MACRO clean_of_any(given) AS
  trim(
    translate(given, '{words.BLANKS}{dropped}', '{" " * len(words.BLANKS)}'),
    '{words.AROUND}'
  );
CREATE OR REPLACE TEMP MACRO clean_of(given) AS clean_of_any(given);
CREATE OR REPLACE TEMP MACRO missing_word(given) AS {among("given", words.MISSING)};
CREATE OR REPLACE TEMP MACRO written_of(given) AS
  CASE
    WHEN missing_word(clean_of(given)) THEN NULL
    ELSE nullif(clean_of(given), '')
  END;
CREATE OR REPLACE TEMP MACRO present_of(given) AS written_of(given);
CREATE OR REPLACE TEMP MACRO truth_of_word(given) AS
  CASE
    WHEN {among(fold, words.PASS)} THEN TRUE
    WHEN {among(fold, words.FAIL)} THEN FALSE
  END;
CREATE OR REPLACE TEMP MACRO worth_of_word(given) AS
  CAST(CASE
    WHEN {among(fold, words.LIKED)} THEN 1
    WHEN {among(fold, words.DISLIKED)} THEN -1
    WHEN {among(fold, words.NEUTRAL)} THEN 0
  END AS DOUBLE);
"""


def feedback_worths(texts: Sequence[str]) -> dict[str, float]:
    """Return the worth of each word that is one of feedback, 1, 0 or -1, as files are read.

    Examples
    --------
    >>> feedback_worths(["Thumbs_Down", "like", "a word"])
    {'Thumbs_Down': -1.0, 'like': 1.0}
    """
    distinct = pa.table({"word": pa.array(sorted(set(texts)), pa.string())})
    with duckdb.connect() as connection:
        connection.execute(macros("functions", "functions_duckdb"))
        connection.register("words", distinct)
        rows = connection.sql('SELECT "word", worth_of_word("word") FROM "words"').fetchall()
    return {word: worth for word, worth in rows if worth is not None}


@lru_cache(1_000)
def translated(text: str, dialect: str) -> str:
    """Return a statement in another dialect, with our functions inlined."""
    import sqlglot
    from sqlglot import exp

    known = _functions(dialect)

    def written_out(node: Any) -> Any:
        if not isinstance(node, exp.Anonymous) or node.name.lower() not in known:
            return node
        parameters, body = known[node.name.lower()]
        given = dict(zip(parameters, node.expressions, strict=True))

        def replaced(inner: Any) -> Any:
            if isinstance(inner, exp.Column) and not inner.table and inner.name in given:
                return exp.paren(given[inner.name].copy())
            return inner

        return exp.paren(body.copy().transform(replaced)).transform(written_out)

    tree = sqlglot.parse_one(text, read="duckdb").transform(written_out)
    return str(tree.sql(dialect))


@cache
def _functions(dialect: str) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Return parameters and body of each function; those of the dialect take precedence."""
    import sqlglot

    made = sqlglot.parse(macros("functions"), read="duckdb")
    if dialect in ("postgres", "spark"):
        made += sqlglot.parse(macros(f"functions_{dialect}"), read=dialect)
    found = {}
    for statement in filter(None, made):
        head: Any = statement.this
        names = tuple(parameter.name for parameter in head.expressions)
        found[head.this.name.lower()] = names, statement.args["expression"]
    return found


# A percent sign outside parameters.
_PERCENT = re.compile(r"%(?!\(\w+\)s)")

Kind = Literal["number", "text", "truth", "moment", "naive", "texts", "nested", "nothing", "other"]

# By the lower-case name of a type, without its brackets.
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
    """Return the kind of values in a column type.

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


def distinct_names(columns: Sequence[str], place: str) -> list[str]:
    """Return names of columns that differ for DuckDB, to which capitals are the same.

    Of two that differ in capitals alone the one in our spelling keeps its name.
    """
    by_lower: dict[str, list[str]] = {}
    for column in columns:
        by_lower.setdefault(column.lower(), []).append(column)
    names = []
    for at, column in enumerate(columns):
        alike = by_lower[column.lower()]
        if not column:
            names.append(f"{UNNAMED}{at}")
        elif column.lower() == "asr_file" or column.lower().startswith(UNNAMED):
            raise InputError(f"{place}: the column {column!r:.80} has a name of ours: rename it")
        elif len(alike) == 1 or normalised(column) == column:
            names.append(column)
        elif not any(normalised(name) == name for name in alike):
            raise InputError(
                f"{place}: the columns {' and '.join(map(repr, alike))} have one name but for "
                "spelling: rename one of them"
            )
        else:
            names.append(f"{column}_{at + 1}")
    return names


class Engine(Protocol):
    """The operations that the counting requires of an engine.

    `fence` ends a statement whose values are made once, not wherever another one names them.
    """

    fence: str

    def run(self, query: Query) -> pd.DataFrame:
        """Return the rows of a query as a frame."""

    def rows(self, query: Query) -> list[dict[str, Any]]:
        """Return the rows of a query, for few of them."""

    def first(self, query: Query) -> list[tuple[str | None, ...]]:
        """Return the texts of the first rows by column, in the order of the source."""

    def keep(self, query: Query, name: str, *, numbered: bool = False) -> Relation:
        """Return a relation with the rows, stored if possible; `numbered` adds `row`, from 1."""

    def distinct(
        self, rows: Relation, column: str, n: int, watch: Collection[str] = ()
    ) -> tuple[int, bool]:
        """Return the number of distinct ids (none null), and whether `watch` may be among them."""


# The engines of this process that are open: what they are at is shown at a terminal.
OPEN: set[DuckDB] = set()


def step_now() -> str | None:
    """Return what DuckDB is at, in words; None where it runs no statement. For any thread."""
    return next(filter(None, (engine.words() for engine in list(OPEN))), None)


class _Tables:
    """The rows of a query as a frame or as plain values, from those that Arrow holds."""

    fence = ""

    def table(self, query: Query) -> pa.Table:
        """Return the rows of a query in columns."""
        raise NotImplementedError

    def run(self, query: Query) -> pd.DataFrame:
        """Return the rows of a query as a frame."""
        frame: pd.DataFrame = self.table(query).to_pandas()
        return frame

    def rows(self, query: Query) -> list[dict[str, Any]]:
        """Return the rows of a query, for few of them."""
        rows: list[dict[str, Any]] = self.table(query).to_pylist()
        return rows


class DuckDB(_Tables):
    """DuckDB in this process; `amount` says in words how much it reads."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, most_hashes: int) -> None:
        self.connection = connection
        self.most_hashes = most_hashes
        self.amount = ""
        self._step, self._began = 0, 0.0
        connection.execute(macros("functions", "functions_duckdb"))

    def words(self) -> str | None:
        """Return the step, its share and the seconds that are left in it; None between steps."""
        try:
            share = self.connection.query_progress() / 100
        except duckdb.Error:  # closed by now
            return None
        if not (self._step and 0 <= share < 1):
            return None
        found = [*filter(None, [self.amount]), f"step {self._step}: {share:.0%}"]
        if share > SURE:
            seconds = (time.monotonic() - self._began) * (1 - share) / share
            found.append(f"about {seconds:.0f} s left in it")
        return ", ".join(found)

    def _begin(self) -> None:
        self._step, self._began = self._step + 1, time.monotonic()

    def columns(self, table: StoredTable) -> dict[str, str]:
        """Return the columns of a table with their types."""
        rows = self.connection.sql(f"SELECT * FROM {table.quoted} LIMIT 0")
        return dict(zip(rows.columns, map(str, rows.types), strict=True))

    def table(self, query: Query) -> pa.Table:
        """Return the rows of a query in columns."""
        return self._rows(query).to_arrow_table()

    def rows(self, query: Query) -> list[dict[str, Any]]:
        """Return the rows of a query, none of them with a zone; Arrow would load pandas."""
        found = self._rows(query)
        names = found.columns
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def first(self, query: Query) -> list[tuple[str | None, ...]]:
        """Return the texts of the first rows by column, in the order of the file."""
        ((ordered,),) = self.connection.execute(
            "SELECT current_setting('preserve_insertion_order')"
        ).fetchall()
        self.connection.execute("SET preserve_insertion_order = true")
        try:
            found = self._rows(query)
            width = len(found.columns)
            return list(zip(*found.fetchall(), strict=True)) or [()] * width
        finally:
            self.connection.execute(f"SET preserve_insertion_order = {bool(ordered)}")

    def _rows(self, query: Query) -> duckdb.DuckDBPyRelation:
        text, parameters = self._composed(query)
        self._begin()
        return self.connection.sql(text, params=parameters or None)

    def _composed(self, query: Query) -> tuple[str, dict[str, Any]]:
        """Return a statement with its numbers in it: what is bound cannot be simplified.

        Bound, the numbers of a query over tasks make it three times slower.
        """
        text, parameters = query.composed("NOT MATERIALIZED ")
        numbers = {
            name: f"({value:d})" if isinstance(value, int) else f"({value:.17e})"
            for name, value in parameters.items()
            if not isinstance(value, bool)
            and isinstance(value, int | float)
            and math.isfinite(value)
        }
        text = _PARAMETER.sub(lambda match: numbers.get(match[1], match[0]), text)
        return text, {name: value for name, value in parameters.items() if name not in numbers}

    def keep(self, query: Query, name: str, *, numbered: bool = False) -> Relation:
        """Return a table in memory while it fits; numbered ones in the connection's file."""
        text, parameters = self._composed(query)
        own = quoted(name)
        self._begin()
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

    def keep_plain(self, query: Relation, name: str) -> Relation | None:
        """Return a table in memory, None where a value is not of its type."""
        try:
            return self.keep(query, name) if isinstance(query, Query) else query
        except (duckdb.ConversionException, duckdb.InvalidInputException):
            return None

    def rejected_lines(self) -> list[tuple[str, int, str]]:
        """Return file, line and text of the CSV lines that could not be parsed."""
        return self.connection.sql(
            "SELECT s.file_path AS file, e.line, any_value(e.csv_line) AS text "
            "FROM reject_errors e JOIN reject_scans s USING (scan_id, file_id) "
            "GROUP BY 1, 2 ORDER BY 1, 2"
        ).fetchall()

    def distinct(
        self, rows: Relation, column: str, n: int, watch: Collection[str] = ()
    ) -> tuple[int, bool]:
        """Count distinct hashes by sorting them in parts.

        This takes an eighth of the time of a hash table of texts. Where hashes of different texts
        are equal, the texts are compared.
        """
        parts = max(1, -(-n // self.most_hashes))
        distinct, seen = 0, False
        watched = self._hashes_of(watch)
        for part in range(parts):
            hashes = self._hashes(rows, column, n, part, parts)
            hashes.sort()
            distinct += int(np.count_nonzero(hashes[1:] != hashes[:-1])) + bool(hashes.size)
            if hashes.size and not seen:
                places = np.searchsorted(hashes, watched).clip(max=hashes.size - 1)
                seen = bool((hashes[places] == watched).any())
        return distinct, seen

    def _hashes_of(self, texts: Collection[str]) -> NDArray[np.uint64]:
        rows = self.connection.execute("SELECT hash(unnest($1::VARCHAR[]))", [list(texts)])
        return np.array([row[0] for row in rows.fetchall()], dtype=np.uint64)

    def _hashes(
        self, rows: Relation, column: str, n: int, part: int, parts: int
    ) -> NDArray[np.uint64]:
        """Return the hashes of a part of at most `n` rows, without a second copy of them."""
        some = {"parts": parts, "part": part} if parts > 1 else {}
        found = query("identities", rows=rows, column=column, **some)
        if parts == 1:
            hashes, filled = np.empty(n, np.uint64), 0
            for batch in self._batches(found):
                hashes[filled : filled + batch.size] = batch
                filled += batch.size
            return hashes[:filled]
        return np.concatenate([np.empty(0, np.uint64), *self._batches(found)])

    def _batches(self, found: Query) -> Iterator[NDArray[np.uint64]]:
        for batch in self._rows(found).to_arrow_reader(1_000_000):
            hashes: Any = np.from_dlpack(batch.column(0))  # `to_numpy` would load pandas
            yield hashes


class _Server(_Tables):
    """Common behaviour of PostgreSQL and Spark: both are only read."""

    dialect: str

    def _translated(self, query: Query) -> tuple[str, dict[str, Any]]:
        text, parameters = query.composed()
        return translated(text, self.dialect), parameters

    def first(self, query: Query) -> list[tuple[str | None, ...]]:
        """Return the texts of the first rows by column."""
        return [tuple(column.to_pylist()) for column in self.table(query).columns]

    def keep(self, query: Query, name: str, *, numbered: bool = False) -> Relation:
        """Return the query: nothing is written to another owner's database."""
        return query

    def distinct(
        self, rows: Relation, column: str, n: int, watch: Collection[str] = ()
    ) -> tuple[int, bool]:
        """Count distinct hashes: texts of many rows would be sorted on disk."""
        watched = [{"watched": text} for text in sorted(watch)]
        found = self.run(query("distinct", rows=rows, column=column, watch=watched)).iloc[0]
        return int(found["n"]), bool(found["seen"])


class Postgres(_Server):
    """A connection to PostgreSQL, in one read-only transaction."""

    dialect = "postgres"
    fence = "\nOFFSET 0"

    # Result types by number. Sums of whole numbers are numeric; ours have
    # at most 53 bits.
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

    def table(self, query: Query) -> pa.Table:
        """Return the rows of a query, read as CSV: ten times faster than Python objects."""
        from pyarrow import csv

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
            return pa.schema(list(types.items())).empty_table()
        rows.seek(0)
        return csv.read_csv(
            rows,
            read_options=csv.ReadOptions(column_names=list(types)),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=types, null_values=[""], true_values=["t"], false_values=["f"],
                strings_can_be_null=True, quoted_strings_can_be_null=False,
            ),
        )  # fmt: skip


def safe_address(dsn: str) -> str:
    """Return an address without its password, as ``key=value`` pairs; errors do not repeat it."""
    from psycopg.conninfo import make_conninfo

    parts = address_parts(dsn)
    shown: str = make_conninfo(**{key: parts[key] for key in SHOWN if parts.get(key) is not None})
    return shown


def holds_password(dsn: str) -> bool:
    """Return whether an address holds a password, which the shell's history would keep."""
    parts = address_parts(dsn)
    return any(parts.get(key) for key in SECRET)


def address_parts(dsn: str) -> Mapping[str, Any]:
    """Return the parts of an address; raises InputError if it cannot be read."""
    if find_spec("psycopg") is None or find_spec("sqlglot") is None:
        raise InputError("PostgreSQL needs the extra: pip install 'asr-calibration[postgres]'")
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts: dict[str, Any] = conninfo_to_dict(dsn)
    except (psycopg.Error, UnicodeError):
        # The message repeats the unreadable part, which may be a password.
        raise InputError(UNREADABLE) from None
    return parts


def redacted(error: Exception, parts: Mapping[str, Any]) -> str:
    """Return the message of an error without the passwords of an address."""
    message = " ".join(str(error).split())
    for secret in (str(parts[key]) for key in SECRET if parts.get(key)):
        for form in (secret, quote(secret, safe="")):
            message = message.replace(form, "***")
    return message[:300]


class Spark(_Server):
    """A Spark session; tables that several queries read are cached until `close`."""

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

    def table(self, query: Query) -> pa.Table:
        """Return the rows of a query; Spark's own conversion does not support pandas 3."""
        return self._frame(query).toArrow()

    def keep(self, query: Query, name: str, *, numbered: bool = False) -> Relation:
        """Return a cached view, in memory and on disks of the cluster, never in a table."""
        view = f"{self.prefix}_{name}"
        frame = self._frame(query).persist()
        frame.createOrReplaceTempView(view)
        if name in self._kept:
            self._kept[name].unpersist()
        self._kept[name] = frame
        return StoredTable(quoted(view))

    def close(self) -> None:
        """Drop the views and their caches."""
        for name, frame in self._kept.items():
            self.session.catalog.dropTempView(f"{self.prefix}_{name}")
            frame.unpersist()
        self._kept.clear()


def spark_session() -> Any:
    """Return the Spark session of this process; `spark-defaults.conf` names the cluster."""
    if find_spec("pyspark") is None or find_spec("sqlglot") is None:
        raise InputError("Spark needs the extra: pip install 'asr-calibration[spark]'")
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    try:
        session = (
            SparkSession.builder.appName("asr")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .getOrCreate()
        )
    except PySparkException as error:
        raise InputError(
            f"Spark does not start; it needs Java 17 or newer ({error!s:.200})"
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    if session.sparkContext.master.startswith("local") and not _was_set(session, PARTITIONS):
        # 200 by default: for one machine most of the time would go into starting tasks.
        session.conf.set(PARTITIONS, str(max(2, os.cpu_count() or 2)))
    return session


def _was_set(session: Any, name: str) -> bool:
    return bool(session.sparkContext.getConf().contains(name))


def week_labels(weeks: NDArray[np.int64]) -> list[str]:
    """Return ISO weeks from numbers of weeks since the week of 1970-01-05.

    Examples
    --------
    >>> week_labels(np.array([0, 2972]))
    ['1970-W02', '2026-W52']
    """
    import pandas as pd

    origin = np.datetime64("1970-01-05", "s")
    return weeks_of(pd.Series(origin + weeks * np.timedelta64(7, "D"))).tolist()


def week_names(weeks: pd.Series[Any]) -> pd.Series[Any]:
    """Return ISO weeks as categories, numbered like `week_labels`; missing stays missing."""
    import pandas as pd

    codes, values = pd.factorize(weeks, sort=True)
    names = pd.Index(week_labels(np.asarray(values, dtype=np.int64)), dtype=str)
    return pd.Series(pd.Categorical.from_codes(codes, names), index=weeks.index)
