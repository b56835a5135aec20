"""Texts of large tables are looked at once: the counts are those of texts cleaned row by row."""

from pathlib import Path

import duckdb
import pytest

from calibration.runs import sources
from calibration.runs.engines import DuckDB, StoredTable
from calibration.runs.recognition import _first_rows
from tests.runs.tables import assert_same_frame, count

DIRTY = ("'{0}'", "'{0} '", "' {0}'", "'\u00a0{0}'", "'{0}\t'", "'NA'", "''", "NULL", "'{0}\u200b'")


@pytest.mark.parametrize("column", ["trace_id", "workflow", "model", "task_id", "stratum"])
@pytest.mark.parametrize("dirty", DIRTY)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_one_text_that_is_not_clean_counts_as_when_each_is_cleaned(
    column: str, dirty: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = {
        "trace_id": "'t' || i", "workflow": "['research', 'support_triage'][1 + i % 2]",
        "outcome": "['complete', 'abandoned'][1 + i % 2]", "model": "'m' || i % 3",
        "task_id": "'q' || i % 4", "stratum": "'s' || i % 2", "cost_usd": "0.5::DOUBLE",
        "started_at": "'2026-11-02T09:30:00Z'",
    }  # fmt: skip
    known = {"trace_id": "t5", "workflow": "support_triage", "model": "m2", "task_id": "q1"}
    odd = dirty.format(known.get(column, "s1"))
    listed = {name: f"CASE WHEN i = 8 THEN {odd} ELSE {text} END" if name == column else text
              for name, text in plain.items()}  # fmt: skip
    path = tmp_path / f"runs.{kind}"
    fields = ", ".join(f"{text} AS {name}" for name, text in listed.items())
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {fields} FROM range(12) AS r(i)) TO '{path}'")
    each_row = count(path)
    monkeypatch.setattr(sources, "LARGE", 0)
    monkeypatch.setattr(sources, "MANY", 0)
    at_once = count(path)
    assert_same_frame(at_once.cells, each_row.cells)
    assert (at_once.n_tasks, at_once.n_read) == (each_row.n_tasks, each_row.n_read)
    assert at_once.set_aside == each_row.set_aside
    assert at_once.n_kept == each_row.n_kept
    if column == "trace_id":  # missing, or that of another run
        assert at_once.n_kept < 12


def test_names_of_an_enumeration_are_cleaned_like_texts() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (outcome ENUM ('pass ', 'fail'), cost DOUBLE)")
    connection.execute("INSERT INTO t VALUES ('pass ', 0.5), ('fail', NULL)")
    engine = DuckDB(connection, most_hashes=10)
    table = StoredTable('"t"')
    source = sources.Source(engine=engine, table=table, columns=engine.columns(table), name="t")
    texts = _first_rows(source, ["outcome", "cost"]).texts
    assert texts == {"outcome": ["pass", "fail"], "cost": ["0.5", ""]}
