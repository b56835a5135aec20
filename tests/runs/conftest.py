"""Engines that the tests start themselves, and a loud line where one is not installed."""

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.postgres_server import postgres_server, programs

NO_SPARK = "NOT RUN: spark (no java)"
NO_PYSPARK = "NOT RUN: spark (no pyspark: make engines)"
NO_POSTGRES = "NOT RUN: postgresql (not installed)"
NO_PSYCOPG = "NOT RUN: postgresql (no psycopg: make engines)"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    yield
    # From the reports, which also come in from the processes that share the tests out.
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    for reason in (NO_SPARK, NO_PYSPARK, NO_POSTGRES, NO_PSYCOPG):
        n = sum(reason in text for text in skipped)
        if n:
            terminalreporter.write_line(f"{reason}: {n} tests", red=True, bold=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Return the address of a PostgreSQL server that lives as long as the tests."""
    found = programs()
    if found is None:
        pytest.skip(NO_POSTGRES)
    if find_spec("psycopg") is None:
        pytest.skip(NO_PSYCOPG)
    with postgres_server(found) as (address, _):
        yield address


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a Spark session in this machine."""
    if shutil.which("java") is None:
        pytest.skip(NO_SPARK)
    if find_spec("pyspark") is None:
        pytest.skip(NO_PYSPARK)
    from pyspark.sql import SparkSession

    place = str(tmp_path_factory.mktemp("spark"))
    session = (
        # One processor: the other one is for the browser of another test.
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        # Most of a short session would go into compiling what runs a few times.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.warehouse.dir", place)
        .config("spark.local.dir", place)
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    yield session
    session.stop()
