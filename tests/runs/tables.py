"""Tables of production traces for tests, and the frames that counts are compared by."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from calibration.runs.columns import OF_GATES, RunTable, open_runs
from calibration.runs.counts import production_counts
from calibration.runs.recognition import RunOptions
from calibration.runs.results import LengthSums, ProductionCounts
from calibration.runs.sources import Source, open_files, open_frame
from calibration.tables.reading import ReadingOptions
from tests.classes import TAXONOMY

WORKFLOWS = ("research", "support_triage", "code_review", "Ärztebrief ✓", "予約")
SQL = """
SELECT
  't-' || i || CASE i % 5 WHEN 0 THEN 'é' WHEN 1 THEN '日本' ELSE '' END AS trace_id,
  ['research', 'support_triage', 'code_review', 'Ärztebrief ✓', '予約'][1 + (h % 5)::INT]
    AS workflow,
  ['complete', 'partial_plus', 'partial_minus', 'hallucinated', 'abandoned']
    [1 + least(4, (h // 7 % 9 / 2)::INT)] AS outcome,
  CASE WHEN h // 3 % 20 = 0 THEN NULL ELSE {cost} END AS cost_usd,
  1.0 + (h // 11 % 3)::DOUBLE AS units,
  TIMESTAMPTZ '2026-01-01 00:00:00+00' + to_seconds((i * 7919 % 9676800)::DOUBLE) AS started_at,
  CASE WHEN i % 500 = 0 THEN NULL ELSE 'task ' || (h // 13 % {tasks}) END AS task_id,
  (i % 4)::INT AS trial,
  CASE WHEN h // 17 % 4 = 0 THEN 2.5::DOUBLE ELSE 1.0::DOUBLE END AS weight,
  CASE WHEN h // 19 % 3 = 0 THEN 'straße' ELSE 'b' END AS stratum,
  CASE WHEN i % 30 = 0 THEN NULL ELSE exp((h // 23 % 1000)::DOUBLE / 200) END AS latency_s,
  CASE WHEN h // 29 % 8 = 0 THEN NULL ELSE 'modèle-' || (h // 29 % 3) END AS model,
  ['ok', 'error', 'timeout'][1 + (h // 31 % 3)::INT] AS status
FROM (SELECT i, hash(i) AS h FROM range({n}) t(i))
"""
FEW, MANY = "(h // 5 % 200)::DOUBLE / 64", "exp((h // 5 % 1000003)::DOUBLE / 200000 - 3)"


def write_table(path: Path, n: int, *, many_costs: bool, tasks: int = 500) -> Path:
    """Write n traces, the same in every run, as Parquet."""
    sql = SQL.format(n=n, cost=MANY if many_costs else FEW, tasks=tasks)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet)")
    return path


OF_READING = ("taxonomy", "known_workflows_only", "timezone", "since", "until")


def opened(source: Source, **given: Any) -> RunTable:
    """Open runs by a rubric that is chosen, of known workflows unless others are wanted."""
    known: dict[str, Any] = {name: given[name] for name in OF_READING if name in given}
    options = RunOptions(
        **{"taxonomy": TAXONOMY, "known_workflows_only": True, **known},
        reading=ReadingOptions(columns=given.get("columns") or {}, max_left_out=1.0),
        is_named=True,
        further=OF_GATES if given.get("gates") is not None else (),
    )
    return open_runs(source, options)


def counts_of_source(source: Source, **given: Any) -> ProductionCounts:
    """Count the runs of an open source."""
    asked = {k: v for k, v in given.items() if k not in (*OF_READING, "columns")}
    return production_counts(opened(source, **given), **asked)


def count(of: Path | str | pd.DataFrame, **given: Any) -> ProductionCounts:
    """Count the runs of files or of a frame, by the default taxonomy unless another is given."""
    with open_frame(of) if isinstance(of, pd.DataFrame) else open_files([of]) as source:
        return counts_of_source(source, **given)


def assert_same_counts(one: ProductionCounts, other: ProductionCounts) -> None:
    """Compare to the last row; sums may differ by the order of adding."""
    for a, b in ((one.cells, other.cells), (one.tasks, other.tasks)):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            assert_same_frame(a, b, atol=1e-9)
    for a, b in (
        (one.cost.table, other.cost.table),
        (one.latency.table, other.latency.table),
        (signals_by_week(one), signals_by_week(other)),
    ):
        assert_same_frame(a, b)
    assert [of.key for of in one.lengths] == [of.key for of in other.lengths]
    for mine, theirs in zip(one.lengths, other.lengths, strict=True):
        assert_same_frame(by_place(mine), by_place(theirs))
    assert one.signals is not None
    assert other.signals is not None
    assert (one.signals.bad, one.signals.n_units) == (other.signals.bad, other.signals.n_units)
    assert [(s.reason, s.n) for s in one.set_aside] == [(s.reason, s.n) for s in other.set_aside]
    # Only files have an order of their own.
    assert [sorted(str(e.trace_id) for e in s.examples) for s in one.set_aside] == [
        sorted(str(e.trace_id) for e in s.examples) for s in other.set_aside
    ]
    assert one.notes == other.notes
    assert (one.n_read, one.n_kept, one.n_tasks, one.first, one.last) == (
        other.n_read, other.n_kept, other.n_tasks, other.first, other.last,
    )  # fmt: skip


def by_place(sums: LengthSums) -> pd.DataFrame:
    """Return the sums of each bin of lengths, whatever its units."""
    totals = sums.table.groupby(["place", "stratum"])
    return totals.agg({**dict.fromkeys(("n", "of", "hits", "total"), "sum"), "low": "min"})


def assert_same_frame(one: pd.DataFrame, other: pd.DataFrame, *, atol: float = 0.0) -> None:
    """Compare columns as arrays: pandas takes half a minute for a million rows."""
    pd.testing.assert_frame_equal(one.head(1_000), other.head(1_000), check_exact=False, atol=1e-9)
    assert one.columns.equals(other.columns)
    assert one.index.equals(other.index)
    for name, column in one.items():
        if column.dtype.kind == "f":
            np.testing.assert_allclose(column, other[name], rtol=1e-9, atol=atol, err_msg=str(name))
        else:
            assert column.equals(other[name]), name


def signals_by_week(counts: ProductionCounts) -> pd.DataFrame:
    """Return the sums of signals; which units share a random group is the engine's affair."""
    assert counts.signals is not None
    sums = counts.signals.table.drop(columns=["unit", "stratum"])
    return sums.groupby("week", observed=True, dropna=False).sum()
