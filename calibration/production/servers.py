"""Traces that lie with somebody else: a PostgreSQL database, or Spark; only read from."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import ibis
from ibis.expr import datatypes as dt

from calibration.errors import InputError
from calibration.production.engines import OtherEngine
from calibration.production.sources import Source

PARTITIONS = "spark.sql.shuffle.partitions"
# What may be printed and kept of an address; a password is in none of them.
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


def safe_address(dsn: str) -> str:
    """Return an address without its password, as ``key=value`` pairs that connect just as well.

    Raises
    ------
    InputError
        If psycopg is not installed or the address cannot be read; it is not repeated then.
    """
    from psycopg.conninfo import make_conninfo

    parts = _parts(dsn)
    shown: str = make_conninfo(**{key: parts[key] for key in SHOWN if parts.get(key) is not None})
    return shown


def holds_password(dsn: str) -> bool:
    """Return whether a password stands in an address, where a shell's history keeps it."""
    parts = _parts(dsn)
    return any(parts.get(key) for key in SECRET)


def _parts(dsn: str) -> Mapping[str, Any]:
    if find_spec("psycopg") is None:
        raise InputError("PostgreSQL needs the extra: pip install 'asr-calibration[postgres]'")
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts: dict[str, Any] = conninfo_to_dict(dsn)
    except (psycopg.Error, UnicodeError):
        # The message repeats what it could not read, which may be a password.
        raise InputError(UNREADABLE) from None
    return parts


def _redacted(error: Exception, parts: Mapping[str, Any]) -> str:
    said = " ".join(str(error).split())
    for secret in (str(parts[key]) for key in SECRET if parts.get(key)):
        for form in (secret, quote(secret, safe="")):
            said = said.replace(form, "***")
    return said[:300]


@contextmanager
def open_postgres(dsn: str, table: str, *, schema: str | None = None) -> Iterator[Source]:
    """Open a table or view of a PostgreSQL database: read-only, and as it is at one moment.

    Parameters
    ----------
    dsn : str
        ``postgresql://user@host/database``, ``host=... dbname=...`` or ``service=...``. What it
        leaves out comes from the environment (PGPASSWORD, PGSERVICE ...) and ``~/.pgpass``.
    table : str
        Its name.
    schema : str, optional
        The search path of the database when None.

    Raises
    ------
    InputError
        If psycopg is not installed, or there is no such server or table. No message holds a
        password.
    """
    parts = _parts(dsn)
    import psycopg
    from psycopg.types.numeric import FloatLoader

    try:
        connection = psycopg.connect(dsn, autocommit=True, connect_timeout=_patience(parts))
    except (psycopg.Error, UnicodeError) as error:
        # Not chained: the traceback of a program would show the address.
        raise InputError(f"PostgreSQL: {_redacted(error, parts)}") from None
    try:
        # Sums of whole numbers come as numeric; none of ours has more than 53 bits.
        connection.adapters.register_loader("numeric", FloatLoader)
        backend = ibis.postgres.from_connection(connection)
        # Several queries make one report: all of them see the table as it was at the first.
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            found = backend.table(table, database=schema)
        except ibis.common.exceptions.TableNotFound:
            where = "" if schema is None else f" in the schema {schema!r:.80}"
            raise InputError(f"PostgreSQL: there is no table {table!r:.80}{where}") from None
        yield Source(engine=OtherEngine(backend), table=found, name=table)
    except psycopg.Error as error:
        raise InputError(f"PostgreSQL, {table}: {_redacted(error, parts)}") from None
    finally:
        connection.close()


def _patience(parts: Mapping[str, Any]) -> int:
    return int(parts.get("connect_timeout") or 10)


@contextmanager
def open_spark(table: Any, *, session: Any = None) -> Iterator[Source]:
    """Open a table (by name) or a DataFrame of a Spark session; the session stays open.

    Raises
    ------
    InputError
        If pyspark is not installed, or there is no such table.
    """
    session = session or spark_session()
    from pyspark.sql.types import TimestampType

    name = table if isinstance(table, str) else f"asr_traces_{uuid4().hex}"
    if not isinstance(table, str):
        table.createOrReplaceTempView(name)
    backend = ibis.pyspark.connect(session)
    try:
        found = backend.table(name)
    except ibis.common.exceptions.TableNotFound as error:
        raise InputError(f"Spark: there is no table {name!r:.80}") from error
    # Ibis takes Spark's moments for times without a zone, which only TIMESTAMP_NTZ is.
    moments = [f.name for f in session.table(name).schema if isinstance(f.dataType, TimestampType)]
    utc = dt.Timestamp(timezone="UTC")
    found = found.mutate(**{column: found[column].cast(utc) for column in moments})
    yield Source(engine=OtherEngine(backend), table=found, name=name)


def spark_session() -> Any:
    """Return the Spark session of this process; `spark-defaults.conf` says which cluster.

    Raises
    ------
    InputError
        If pyspark or Java is not installed.
    """
    if find_spec("pyspark") is None:
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


@contextmanager
def open_spark_files(patterns: Sequence[str]) -> Iterator[Source]:
    """Open Parquet, CSV or JSONL files, or patterns of them, that Spark can reach.

    Raises
    ------
    InputError
        If they are not of one kind that is read, or not there.
    """
    kinds = {_kind(pattern) for pattern in patterns}
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
            yield Source(engine=source.engine, table=source.table, name=shown)
    except AnalysisException as error:
        first = str(error).splitlines()[0]
        raise InputError(f"Spark, {shown}: {first:.300}") from error
    except PySparkException as error:
        first = str(error).splitlines()[0]
        raise InputError(f"Spark, {shown}: cannot be read ({first:.300})") from error


def _kind(pattern: str) -> str:
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
