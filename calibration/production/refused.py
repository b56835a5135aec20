"""The rows that were set aside: how many for which reason, and some of them."""

from collections.abc import Mapping
from typing import Any

import ibis
import pandas as pd

from calibration.production.checks import CODE, REASONS, SHOWN, WHY
from calibration.production.duplicates import Deduplicated
from calibration.production.engines import DuckDB
from calibration.production.results import Example, SetAsideRows
from calibration.production.sources import Source

EXAMPLES = 5


def rows_set_aside(rows: Any, source: Source, counts: Mapping[int, int]) -> list[SetAsideRows]:
    """Say how many rows have a reason, in the order of the reasons."""
    examples = _examples(rows.filter(rows.reason != 0), source, _firsts(rows, source))
    return [
        _said(REASONS[code - 1], counts[code], examples[code]) for code in sorted(counts) if code
    ]


def duplicates_set_aside(found: Deduplicated, source: Source, rows: Any) -> list[SetAsideRows]:
    """Count the rows that went because another one has their trace_id."""
    said = []
    firsts = _firsts(rows, source)
    for reason, gone in (
        ("identical_duplicate", found.identical), ("conflicting_duplicate", found.conflicting),
    ):  # fmt: skip
        counted = gone.aggregate(n=gone.count(), traces=gone.trace_id.nunique())
        n, traces = (int(v) for v in source.engine.run(counted)[["n", "traces"]].iloc[0])
        if n:
            marked = gone.mutate(reason=ibis.literal(CODE[reason], "int8"))
            examples = _examples(marked, source, firsts)[CODE[reason]]
            # One of the identical rows of a trace is kept.
            said.append(_said(reason, n - traces * (reason == "identical_duplicate"), examples))
    return said


def unreadable_lines(source: Source) -> list[SetAsideRows]:
    """Count the lines that the reader of the file refused."""
    if not source.rejects or not isinstance(source.engine, DuckDB):
        return []
    lines = source.engine.rejected_lines()
    if lines.empty:
        return []
    examples = tuple(
        Example(file=str(file), row=int(line), value=str(text)[:SHOWN])
        for file, line, text in lines.head(EXAMPLES).to_numpy().tolist()
    )
    return [_said("unreadable_row", len(lines), examples)]


def _said(reason: str, n: int, examples: tuple[Example, ...]) -> SetAsideRows:
    return SetAsideRows(reason=reason, why=WHY[reason], n=int(n), examples=examples)


def _firsts(rows: Any, source: Source) -> dict[str, int]:
    """Return the number of the first row of each file, where rows are numbered through."""
    if not source.texts:
        return {}
    found = source.engine.run(rows.group_by("file").aggregate(first=rows.row.min()))
    return dict(zip(found["file"].tolist(), found["first"].tolist(), strict=True))


def _examples(bad: Any, source: Source, firsts: dict[str, int]) -> dict[int, tuple[Example, ...]]:
    place = ibis.row_number().over(
        ibis.window(group_by=bad.reason, order_by=[bad.file, bad.row, bad.trace_id])
    )
    numbered = bad.select("reason", "trace_id", "file", "row", "value", place=place)
    frame = source.engine.run(numbered.filter(numbered.place < EXAMPLES))
    frame = frame.sort_values(["reason", "place"])
    found: dict[int, list[Example]] = {}
    for reason, trace_id, file, row, value in frame[
        ["reason", "trace_id", "file", "row", "value"]
    ].itertuples(index=False):
        found.setdefault(int(reason), []).append(
            Example(
                trace_id=None if pd.isna(trace_id) else str(trace_id)[:SHOWN],
                file=None if pd.isna(file) else str(file),
                row=None if pd.isna(row) else int(row) + 1 - firsts.get(file, source.first_row),
                value=None if pd.isna(value) else str(value),
            )
        )
    return {reason: tuple(examples) for reason, examples in found.items()}
