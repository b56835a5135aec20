"""Parquet parts: the text of the traces, written once under a name made from the content."""

import json
import os
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import asdict
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from calibration.errors import StoreError
from calibration.records import Trace
from calibration.store.database import Cursor

# Small row groups of sorted ids: reading one trace touches one of them, whatever the part holds.
ROW_GROUP = 64
REVIEW_FIELDS = ("prompt", "inputs", "sub_goals", "steps", "response")


def parts_directory(store: Path) -> Path:
    """Return where the text of the traces of a store lies."""
    return store.with_suffix(".traces")


def write_part(store: Path, traces: list[Trace]) -> str:
    """Write one Parquet part under a name made from its content, atomically."""
    ordered = sorted(traces, key=lambda trace: trace.trace_id)
    review, hidden = [], []
    for trace in ordered:
        everything = asdict(trace)
        review.append(_json({name: everything[name] for name in REVIEW_FIELDS}))
        hidden.append(_json({name: everything[name] for name in ("success_criteria", "metadata")}))
    ids = [trace.trace_id for trace in ordered]
    name = sha256("\n".join([*ids, *review, *hidden]).encode()).hexdigest()[:16] + ".parquet"
    directory = parts_directory(store)
    directory.mkdir(exist_ok=True)
    temporary = directory / f".{name}.{os.getpid()}"
    # The task once more in a column of its own: a search reads nothing else.
    tasks = [trace.prompt for trace in ordered]
    table = pa.table({"trace_id": ids, "task": tasks, "review": review, "hidden": hidden})
    pq.write_table(table, temporary, row_group_size=ROW_GROUP, compression="zstd")
    with temporary.open("rb") as handle:
        os.fsync(handle.fileno())
    temporary.replace(directory / name)
    _sync_directory(directory)
    return name


def _sync_directory(directory: Path) -> None:
    """Make a rename survive a power cut; Windows has no such call and needs none."""
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def read_part(part: Path, ids: Iterable[str]) -> dict[str, str]:
    """Return what reviewers may see of these traces of a part, as JSON text by id.

    Every label asks for a trace or two: only the row groups that may hold them are read.
    """
    wanted = set(ids)
    found: dict[str, str] = {}
    try:
        foot, firsts = _layout(part)
        # Ids are sorted; without statistics any row group may hold a trace.
        groups = {max(0, bisect_right(firsts, i) - 1) for i in wanted} if firsts else None
        with pq.ParquetFile(part, metadata=foot) as file:
            for group in range(foot.num_row_groups) if groups is None else sorted(groups):
                table = file.read_row_group(
                    group, columns=["trace_id", "review"], use_threads=False
                )
                for row, trace_id in enumerate(table["trace_id"].to_pylist()):
                    if trace_id in wanted:
                        found[trace_id] = table["review"][row].as_py()
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise StoreError(
            f"{part}: the text of the traces cannot be read; bring back the file from a backup"
        ) from error
    if missing := wanted - found.keys():
        raise StoreError(f"{part}: lacks the text of trace {missing.pop()!r}")
    return found


@lru_cache(maxsize=64)
def _layout(part: Path) -> tuple[pq.FileMetaData, list[str]]:
    """Return the foot of a part, which never changes, and the first id of each row group."""
    foot = pq.read_metadata(part)
    columns = [foot.row_group(group).column(0) for group in range(foot.num_row_groups)]
    if all(column.is_stats_set and column.statistics.has_min_max for column in columns):
        return foot, [column.statistics.min for column in columns]
    return foot, []


def read_tasks(cursor: Cursor, part: Path, ids: list[str], most: int) -> dict[str, str]:
    """Return the first characters of the tasks of these traces of a part, by id."""
    try:
        found = cursor.execute(
            "SELECT trace_id, left(review::JSON ->> '$.prompt', ?) FROM read_parquet(?) "
            "WHERE list_contains(?::VARCHAR[], trace_id)",
            [most, str(part), ids],
        ).fetchall()
    except duckdb.Error as error:
        raise StoreError(
            f"{part}: the text of the traces cannot be read; bring back the file from a backup"
        ) from error
    return {trace_id: task or "" for trace_id, task in found}


def read_looping(cursor: Cursor, part: Path, ids: list[str]) -> set[str]:
    """Return which of these traces of a part made three equal calls in a row."""
    try:
        found = cursor.execute(
            """
            WITH called AS (
              SELECT trace_id, list_transform(
                list_filter(
                  from_json(
                    review::JSON -> '$.steps',
                    '[{"tool": "VARCHAR", "arguments": "VARCHAR", "result": "VARCHAR"}]'
                  ),
                  -- A step with a result alone is the answer to a call, not one more.
                  lambda step: step.tool IS NOT NULL
                    AND (step.arguments IS NOT NULL OR step.result IS NULL)
                ),
                lambda step: [step.tool, coalesce(step.arguments, '')]
              ) AS calls
              FROM read_parquet(?) WHERE list_contains(?::VARCHAR[], trace_id)
            )
            SELECT trace_id FROM called WHERE len(list_filter(
              range(1, len(calls) - 1),
              lambda k: calls[k] = calls[k + 1] AND calls[k] = calls[k + 2]
            )) > 0
            """,
            [str(part), ids],
        ).fetchall()
    except duckdb.Error as error:
        raise StoreError(
            f"{part}: the text of the traces cannot be read; bring back the file from a backup"
        ) from error
    return {trace_id for (trace_id,) in found}
