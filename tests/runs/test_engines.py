"""The same expression on DuckDB, Spark and PostgreSQL gives the same counts to the last row."""

import gc
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from calibration.errors import InputError
from calibration.records import Workflow
from calibration.runs.engines import Query
from calibration.runs.results import ProductionCounts, verdict_names
from calibration.runs.sources import Source, open_files, open_postgres, open_spark
from calibration.taxonomy import CreditTable, Taxonomy, default_taxonomy
from tests.classes import TAXONOMY
from tests.runs.tables import assert_same_counts, counts_of_source, write_table

N = int(os.environ.get("ASR_ENGINE_ROWS", "1000000"))
FORK = CreditTable(credit=(1, 0.3, 0.1, 0, 0), by_workflow={"予約": (0.9, 0.5, 0, 0, 0)})

# As texts and as numbers, some of them no value.
SIGNALS: dict[str, tuple[str | float, ...]] = {
    "status": ("ok", "Time-out", "ERROR", "", "timeout"), "tool_calls": (0.0, 1.0, 2.0, 3.0, 4.0),
    "tool_errors": (0.0, 1.0, 2.0), "loop": ("yes", "no", "3", "?"), "escalated": ("1", "0", ""),
    "feedback": ("up", "\U0001f44e", "0.25", "9", ""), "verdict": (*verdict_names(TAXONOMY), "?"),
    "loops_in_a_row": ("no", "yes", ""), "agent_version": ("v1", "", "v2"), "harness": ("h", "i"),
    "tier": ("edge", "Core", ""), "difficulty": ("easy", "hard", ""),
    "n_steps": (1.0, 2.0, 5.0, 9.0, -1.0, 3.0, 4.0), "context_tokens": (10.0, 400.0, 90.0),
}  # fmt: skip


def taxonomy() -> Taxonomy:
    own = (Workflow(name="Ärztebrief ✓", ceiling_usd=0.7), Workflow(name="予約"))
    base = default_taxonomy()
    return replace(base, workflows=(*base.workflows, *own))


def count(source: Source) -> ProductionCounts:
    return counts_of_source(
        source, taxonomy=taxonomy(), further={"fork": FORK}, lengths=True, context_window=1_000,
        ceiling_factors=(0.5, 2.0),
    )  # fmt: skip


# What a report on files reads, without tasks.
PLAIN = (
    "trace_id", "workflow", "outcome", "cost_usd", "started_at", "latency_s", "model",
    "agent_version", "stratum",
)  # fmt: skip


def asked_by_a_report(source: Source, patch: pytest.MonkeyPatch) -> list[str]:
    """Return the statements of a report without tasks, as the engine runs them."""
    found: list[str] = []
    engine: Any = source.engine
    translated = engine._translated

    def heard(query: Query) -> tuple[str, dict[str, Any]]:
        text, parameters = translated(query)
        found.append(text)
        return text, parameters

    patch.setattr(engine, "_translated", heard)
    follow = taxonomy().follow_up
    counts = counts_of_source(
        source, taxonomy=taxonomy(), further={"fork": FORK}, lengths=True, watch=["r1", "r2"],
        listed=follow, n_listed=3, ceiling_factors=(0.5, 2.0), most_exact=0,
    )  # fmt: skip
    assert counts.listed is not None
    assert counts.listed.groupby("outcome").size().to_dict() == dict.fromkeys(follow, 3)
    return found


EVERY_REASON = {
    "missing_outcome",
    "missing_trace_id",
    "bad_weight",
    "unknown_workflow",
    "identical_duplicate",
    "conflicting_duplicate",
}


def small(path: Path) -> pd.DataFrame:
    """Return a table with a row for every reason that typed columns can have."""
    frame = pd.read_parquet(write_table(path, 400, many_costs=True, tasks=30))
    frame.loc[1, "trace_id"] = None
    frame.loc[2, "workflow"] = "=cmd()"
    frame.loc[3, "outcome"] = "Complete"
    frame.loc[4, "outcome"] = ""
    frame.loc[5, "cost_usd"] = -0.01
    frame.loc[6, "cost_usd"] = float("inf")
    frame.loc[7, "cost_usd"] = 1e7
    frame.loc[8, "units"] = 0.0
    frame.loc[9, "weight"] = -1.0
    frame.loc[10, "latency_s"] = -3.0
    frame.loc[11, "started_at"] = None
    frame.loc[12, "workflow"] = None
    for name, values in SIGNALS.items():
        frame[name] = [values[k % len(values)] for k in range(len(frame))]
    # Twice the same row, and a trace with two outcomes.
    other = frame.loc[[20]].assign(outcome="abandoned", cost_usd=0.5)
    return pd.concat([frame, frame.loc[[30, 30, 31]], other], ignore_index=True)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ProductionCounts]:
    """Return a table of a million rows, and what DuckDB counts in it."""
    path = write_table(tmp_path_factory.mktemp("large") / "large.parquet", N, many_costs=True)
    return path, on_duckdb(path)


def on_duckdb(path: Path) -> ProductionCounts:
    with open_files([path]) as source:
        return count(source)


def load(postgres: str, frame: pd.DataFrame, name: str) -> None:
    """Make a table of PostgreSQL, through CSV: a text in quotes is no missing value there."""
    import psycopg

    kinds = {"DOUBLE": "double precision", "TIMESTAMP WITH TIME ZONE": "timestamptz"}
    with tempfile.TemporaryDirectory() as directory, duckdb.connect() as own:
        file = Path(directory, "rows.csv")
        own.execute("SET TimeZone = 'UTC'")
        own.register("rows", frame)
        own.execute(f"COPY rows TO '{file}' (HEADER false, FORCE_QUOTE *)")
        described = own.execute("DESCRIBE rows").fetchall()
        columns = ", ".join(f"{column} {kinds.get(kind, kind)}" for column, kind, *_ in described)
        with psycopg.connect(postgres) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute(f"CREATE TABLE {name} ({columns})")
            with connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT csv)") as stream:
                stream.write(file.read_bytes())


@pytest.mark.long
class TestPostgres:
    def test_small_table_with_every_reason(self, postgres: str, tmp_path: Path) -> None:
        frame = small(tmp_path / "base.parquet")
        frame.to_parquet(tmp_path / "small.parquet")
        load(postgres, frame, "small")
        with open_postgres(postgres, "small") as source:
            theirs = count(source)
        ours = on_duckdb(tmp_path / "small.parquet")
        assert {rows.reason for rows in ours.set_aside} == EVERY_REASON
        assert_same_counts(ours, theirs)

    def test_a_million_rows(self, postgres: str, large: tuple[Path, ProductionCounts]) -> None:
        path, ours = large
        load(postgres, pd.read_parquet(path), "million")
        with open_postgres(postgres, "million") as source:
            theirs = count(source)
        assert ours.n_kept == N
        assert_same_counts(ours, theirs)

    def test_seven_statements_and_no_texts_told_apart(
        self, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        frame = pd.read_parquet(write_table(tmp_path / "f.parquet", 400, many_costs=True))
        load(postgres, frame[[name for name in PLAIN if name in frame]], "plain")
        with open_postgres(postgres, "plain") as source:
            asked = asked_by_a_report(source, monkeypatch)
        assert len(asked) == 7  # with the first rows, and the values of the outcome
        assert not any("COUNT(DISTINCT" in text for text in asked)

    def test_a_table_that_is_not_there(self, postgres: str) -> None:
        with (
            pytest.raises(InputError, match="no table 'nothing'"),
            open_postgres(postgres, "nothing"),
        ):
            pass


# pyspark leaves the sockets of its answers to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.long
class TestSpark:
    def test_small_table_with_every_reason(self, spark: Any, tmp_path: Path) -> None:
        small(tmp_path / "base.parquet").to_parquet(tmp_path / "small.parquet")
        with open_spark(spark.read.parquet(str(tmp_path / "small.parquet"))) as source:
            theirs = count(source)
        gc.collect()
        ours = on_duckdb(tmp_path / "small.parquet")
        assert {rows.reason for rows in ours.set_aside} == EVERY_REASON
        assert_same_counts(ours, theirs)

    def test_a_million_rows(self, spark: Any, large: tuple[Path, ProductionCounts]) -> None:
        path, ours = large
        with open_spark(spark.read.parquet(str(path))) as source:
            theirs = count(source)
        gc.collect()
        assert_same_counts(ours, theirs)
        assert not spark.catalog.listTables()

    def test_seven_statements_and_no_texts_told_apart(
        self, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        frame = spark.read.parquet(str(write_table(tmp_path / "f.parquet", 400, many_costs=True)))
        with open_spark(frame.select(*(c for c in PLAIN if c in frame.columns))) as source:
            asked = asked_by_a_report(source, monkeypatch)
        gc.collect()
        assert len(asked) == 7  # with the first rows, and the values of the outcome
        assert not any("COUNT(DISTINCT" in text for text in asked)
