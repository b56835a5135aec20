"""Where production traces lie, as data: what to open, and what a report says of it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from calibration.errors import InputError
from calibration.production.servers import open_postgres, open_spark_files, safe_address
from calibration.production.sources import DEFAULT_MEMORY, Source, open_files


class Place(Protocol):
    """What can be opened as a table of traces, as often as it takes."""

    @property
    def names(self) -> tuple[str, ...]:
        """What it is called in a report; never a password."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files of this machine that it is made of."""

    def open(self) -> AbstractContextManager[Source]:
        """Open it."""

    def settings(self) -> dict[str, Any]:
        """Return plain data that `place_of_settings` makes the place of again."""


@dataclass(frozen=True, slots=True)
class Files:
    """CSV, JSONL or Parquet files, or patterns of them, read by DuckDB in this process.

    How much memory it may hold is no setting of a report: it changes last digits at most.
    """

    patterns: tuple[str, ...]
    memory: str = DEFAULT_MEMORY

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
        return open_files(self.patterns, memory_limit=self.memory)

    def settings(self) -> dict[str, Any]:
        """Return the patterns."""
        return {"files": list(self.patterns)}


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table or view of a PostgreSQL database; ``schema.table`` names its schema."""

    dsn: str = field(repr=False)
    table: str

    @property
    def names(self) -> tuple[str, ...]:
        """The table and where it is, without the password."""
        return (f"PostgreSQL table {self.table} ({safe_address(self.dsn) or 'environment'})",)

    @property
    def files(self) -> tuple[str, ...]:
        """None."""
        return ()

    def open(self) -> AbstractContextManager[Source]:
        """Connect."""
        schema, _, table = self.table.rpartition(".")
        return open_postgres(self.dsn, table, schema=schema or None)

    def settings(self) -> dict[str, Any]:
        """Return address and table; the password comes from the environment again."""
        return {"postgres": safe_address(self.dsn), "table": self.table}


@dataclass(frozen=True, slots=True)
class SparkFiles:
    """Parquet, CSV or JSONL files that Spark reads."""

    patterns: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The patterns."""
        return tuple(f"Spark {pattern}" for pattern in self.patterns)

    @property
    def files(self) -> tuple[str, ...]:
        """None: Spark's files may lie on any machine."""
        return ()

    def open(self) -> AbstractContextManager[Source]:
        """Open the files."""
        return open_spark_files(self.patterns)

    def settings(self) -> dict[str, Any]:
        """Return the patterns."""
        return {"spark": list(self.patterns)}


@dataclass(frozen=True, slots=True)
class _Held:
    """A place that is open already."""

    place: Place
    source: Source

    @property
    def names(self) -> tuple[str, ...]:
        return self.place.names

    @property
    def files(self) -> tuple[str, ...]:
        return self.place.files

    @contextmanager
    def open(self) -> Iterator[Source]:
        yield self.source

    def settings(self) -> dict[str, Any]:
        return self.place.settings()


def place_of(given: "Place | Sequence[str]") -> Place:
    """Return a place; names of files are `Files`."""
    return Files(tuple(map(str, given))) if isinstance(given, Sequence) else given


@contextmanager
def held(place: Place) -> Iterator[Place]:
    """Keep a server open, so that all passes see one state of it.

    Files are opened anew for every pass: what DuckDB read of them is not kept.
    """
    if isinstance(place, Files):
        yield place
        return
    with place.open() as source:
        yield _Held(place, source)


def place_of_settings(settings: Mapping[str, Any], memory: str = DEFAULT_MEMORY) -> Place:
    """Return the place that a report was made from; reading files may hold so much `memory`.

    Raises
    ------
    InputError
        If the settings name none.
    """
    if "postgres" in settings:
        return PostgresTable(str(settings["postgres"]), str(settings["table"]))
    if isinstance(settings.get("files"), list):
        return Files(tuple(map(str, settings["files"])), memory)
    if isinstance(settings.get("spark"), list):
        return SparkFiles(tuple(map(str, settings["spark"])))
    raise InputError("the settings of the report name nothing to read")
