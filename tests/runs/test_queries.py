"""Every statement can be read, and PostgreSQL, Spark, BigQuery and Snowflake have words for it."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlglot

from calibration.errors import InputError
from calibration.runs import engines
from calibration.runs.counts import count_named, laid_out, list_runs, production_counts
from calibration.runs.engines import Query, StoredTable, query
from calibration.runs.recognition import outcomes_of
from calibration.runs.results import GateQuery
from calibration.runs.sources import open_frame
from calibration.taxonomy import CreditTable, default_taxonomy
from tests.runs.tables import counts_of_source, opened

FOLDER = Path(engines.__file__).parent / "sql"
FILES = {path.stem for path in FOLDER.glob("*.sql")} - {
    "functions", "functions_duckdb", "functions_postgres", "functions_spark",
}  # fmt: skip

# Asked by servers or of files only.
OTHERS: dict[str, dict[str, Any]] = {
    "firsts": {},
    "distinct": {"column": "id", "watch": [{"watched": "a"}]},
}  # fmt: skip
DIALECTS = ("postgres", "spark", "bigquery", "snowflake")
FORK = CreditTable(credit=(1, 0.3, 0.1, 0, 0), by_workflow={"research": (0.9, 0.4, 0, 0, 0)})


def rows() -> pd.DataFrame:
    """Return a table with every column, and rows that are there twice, in conflict and bad."""
    frame = pd.DataFrame(
        {
            "trace_id": [f"r{k}" for k in range(40)], "workflow": ["research", "scheduling"] * 20,
            "outcome": ["complete", "partial_plus", "abandoned", "complete"] * 10,
            "cost_usd": [0.5 + k for k in range(40)], "started_at": "2026-11-02T09:30:00",
            "task_id": [f"k{k // 4}" for k in range(40)], "trial": [str(k % 4) for k in range(40)],
            "latency_s": [float(k) for k in range(40)], "units": 1.0, "weight": 1.0, "stratum": "x",
            "model": "m", "status": "ok", "tags": "a; b", "tool_calls": 3, "tool_errors": "1",
            "max_repeats": 2, "loops_in_a_row": "no", "agent_version": "v1", "harness": "h",
            "difficulty": "easy", "n_steps": 3, "total_tokens": 900, "context_tokens": 50,
            "context_window": 100, "escalated": True, "feedback": "up", "tier": "core",
            "verdict": "complete", "loops": "no",
        }
    )  # fmt: skip
    frame.loc[3, "task_id"] = None
    other = frame.tail(1).assign(outcome="hallucinated")
    bad = frame.tail(1).assign(trace_id="bad", outcome="won")
    return pd.concat([frame, frame.head(1), other, bad], ignore_index=True)


def alone(asked: Query) -> Query:
    """Return a query in brackets that reads tables in place of the queries it is made of."""
    tables = {alias: StoredTable(f'"{alias}"') for alias in asked.reads}
    return replace(asked, text=f"SELECT * FROM (\n{asked.text}\n) AS part", reads=tables)


@pytest.fixture(scope="module")
def asked() -> dict[str, set[str]]:
    """Return the statements of a whole count, by file, each without those that it reads.

    Hundreds of statements are made of a hundred parts, and each part is translated by itself. The
    longest of them stands for how they are put together.
    """
    found: dict[str, set[str]] = {"whole": set()}
    composed = Query.composed

    def hear(asked: Query) -> None:
        found.setdefault(asked.name, set()).add(composed(alone(asked))[0])
        for inner in asked.reads.values():
            if isinstance(inner, Query):
                hear(inner)

    def heard(self: Query, hint: str = "") -> tuple[str, dict[str, Any]]:
        hear(self)
        found["whole"] = {max(composed(self)[0], *found["whole"], key=len)}
        return composed(self, hint)

    at = datetime(2026, 1, 1, tzinfo=UTC)
    taxonomy = default_taxonomy()
    options: dict[str, Any] = {"taxonomy": taxonomy, "further": {"fork": FORK}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Query, "composed", heard)
        with open_frame(rows(), most_hashes=10) as source:
            counts_of_source(
                source, **options, gates=GateQuery(model="m", trace_ids=("r1",)), since=at,
                timezone="Europe/Berlin", watch=["r1"], listed=["complete"], n_listed=2,
                context_window=9,
            )  # fmt: skip
            counts_of_source(
                source, **options, most_exact=0, most_tasks=2, credit=FORK, lengths=True,
                ceiling_factors=[0.5], unit_costs=["complete"],
            )  # fmt: skip
            table = opened(source, since=at)
            outcomes = outcomes_of([table.outcomes], table.options)
            list_runs(table, outcomes, classes=["complete"])
            count_named(table, [("research", "r1")])
            tagged = laid_out(table, conflicts=True)
            assert tagged is not None
            production_counts(tagged.table)
            reading = replace(table.options.reading, latest=True)
            production_counts(replace(table, options=replace(table.options, reading=reading)))
        plain = rows().drop(columns=["task_id", "trial"]).assign(category="a")
        with open_frame(plain) as source:
            counts_of_source(source, **options, gates=GateQuery())
        mixed = rows().head(40).assign(tier=["core", "core", "edge", "edge"] * 10)
        with open_frame(mixed) as source, pytest.raises(InputError, match="is both"):
            counts_of_source(source, **options, gates=GateQuery())
    for name, values in OTHERS.items():
        hear(query(name, rows=StoredTable('"coded"'), **values))
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_statement_is_translated_and_parsed(asked: dict[str, set[str]], dialect: str) -> None:
    assert sorted(FILES - set(asked)) == [], "not asked for"
    assert all(text.startswith("WITH ") for text in asked["whole"])
    for texts in asked.values():
        for text in texts:
            said = engines.translated(text, dialect)
            assert "_of(" not in said.lower()
            assert len(sqlglot.parse(said, read=dialect)) == 1


def test_files_say_what_they_are_for_quote_their_columns_and_bind_what_varies() -> None:
    for path in FOLDER.glob("*.sql"):
        text = path.read_text("utf-8")
        assert text.startswith("-- "), path
        assert "GROUP BY ALL" not in text, path
        assert "{" not in text or path.stem in ("functions", "functions_duckdb"), path


def test_lines_that_vary() -> None:
    found = query(
        "chosen", rows=StoredTable('"t"'), window=True, since=datetime(2026, 1, 1), model="m"  # noqa: DTZ001
    )  # fmt: skip
    text, bound = found.composed()
    assert "$since" in text
    assert "$until" not in text
    assert 'FROM "t" AS "rows"' in text
    assert set(bound) == {"since", "model"}
    priced = query("priced", rows=found, ceilings=[{"limited": "a", "limit": 2.0}], factors=[])
    text, bound = priced.composed("NOT MATERIALIZED ")
    assert text.startswith('WITH "chosen_1" AS NOT MATERIALIZED (')
    assert {"limited_0": "a", "limit_0": 2.0}.items() <= bound.items()


def test_what_is_missing_or_bound_twice_is_refused_and_names_are_quoted() -> None:
    with pytest.raises(ValueError, match="binds"):
        query("names", rows=StoredTable('"t"'), column="model")
    inner = query("names", rows=StoredTable('"t"'), column="model", most=1)
    with pytest.raises(ValueError, match="different values"):
        query("names", rows=inner, column="name", most=2).composed()
    text, _ = query("names", rows=StoredTable('"t"'), column='a" FROM x --', most=1).composed()
    assert '"a"" FROM x --"' in text


def test_kinds_of_columns() -> None:
    kinds = {
        "text": ["ENUM('x', 'y')", "varchar(20)"], "naive": ["TIMESTAMP", "DATE"],
        "nothing": ['"NULL"'], "moment": ["timestamptz"], "number": ["numeric(10, 2)"],
        "nested": ["STRUCT(a INTEGER)", "BLOB"], "texts": ["array<string>"],
    }  # fmt: skip
    for kind, given in kinds.items():
        assert [engines.kind_of(name) for name in given] == [kind] * len(given)
