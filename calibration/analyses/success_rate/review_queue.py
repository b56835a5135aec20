"""The labelled traces of a store that somebody should look at, class by class."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from calibration.analyses.evidence.data import CalibrationData
from calibration.analyses.evidence.from_store import started
from calibration.analyses.success_rate.corrected import disputed, named
from calibration.analyses.success_rate.report import GOES_TO, SHOWN_RUNS, WorkItem, WorkList
from calibration.records import OUTCOMES
from calibration.tables.rows import Row, as_csv

COLUMNS = (
    "trace_id", "workflow", "week", "started_at", "model", "task_key", "cost_usd", "latency_s",
    "reasons", "evidence",
)  # fmt: skip


Work = Mapping[str, tuple[WorkItem, ...]]

Said = dict[tuple[str, str], tuple[list[str], list[str]]]


def work_of(loaded: CalibrationData) -> dict[str, tuple[WorkItem, ...]]:
    """Return the labelled traces of each class that somebody looks at, oldest first.

    A trace whose reviewers differ is in none until it is settled.
    """
    said = _said(loaded)
    return {
        outcome: tuple(_item(row, said, outcome) for row in rows.to_dict("records"))
        for outcome, rows in _rows(loaded)
    }


def work_lists(work: Work, weeks: Sequence[str]) -> Iterator[WorkList]:
    """Yield the work lists as the report has them; a week without a run of a class counts 0."""
    for outcome, items in work.items():
        of = Counter(item.week for item in items)
        yield WorkList(
            outcome=outcome,
            goes_to=GOES_TO[outcome],
            n=len(items),
            by_week=tuple((week, of[week]) for week in weeks),
            first=items[:SHOWN_RUNS],
        )


def work_csv(loaded: CalibrationData, outcome: str, *, models: bool = True) -> str:
    """Return the work list of a class as CSV; a text that a spreadsheet would run is guarded.

    Without `models` it does not name them.
    """
    rows = dict(_rows(loaded))[outcome]
    said = _said(loaded)
    columns = [name for name in COLUMNS if models or name != "model"]
    return as_csv(columns, (_csv_row(row, said, outcome) for row in rows.to_dict("records")))


def write_work(loaded: CalibrationData, folder: Path) -> list[Path]:
    """Write one CSV file for each class that somebody looks at.

    Returns
    -------
    list of Path
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for outcome in GOES_TO:
        file = folder / f"{outcome}.csv"
        file.write_text(work_csv(loaded, outcome), encoding="utf-8", newline="")
        written.append(file)
    return written


def _rows(loaded: CalibrationData) -> Iterator[tuple[str, pd.DataFrame]]:
    frame = loaded.labelled.assign(
        at=started(loaded.labelled), week=named(loaded.labelled, "week")
    ).astype({"model": object})
    frame = frame[~disputed(loaded)]
    codes = loaded.human.argmax(axis=1)[~disputed(loaded)]
    for outcome in GOES_TO:
        own = frame[codes == OUTCOMES.index(outcome)].sort_values(["at", "trace_id"])
        yield outcome, own.astype(object).where(own.notna(), None)


def _said(loaded: CalibrationData) -> Said:
    """Return by trace and class what those who gave it wrote and quoted."""
    found: Said = {}
    columns = (loaded.labels[n] for n in ("trace_id", "outcome", "rationale", "evidence"))
    for trace_id, outcome, rationale, evidence in zip(*columns, strict=True):
        reasons, quotes = found.setdefault((trace_id, outcome), ([], []))
        if isinstance(rationale, str) and rationale:
            reasons.append(rationale)
        for part in json.loads(evidence) if isinstance(evidence, str) else ():
            quotes.append(f"{part['step_id']}: {part['quote']}")
    return found


def _item(row: dict[Any, Any], said: Said, outcome: str) -> WorkItem:
    reasons, quotes = said.get((row["trace_id"], outcome), ([], []))
    cost = row["cost_usd"]
    return WorkItem(
        trace_id=str(row["trace_id"]),
        workflow=str(row["workflow"]),
        week=None if row["week"] is None else str(row["week"]),
        model=None if row["model"] is None else str(row["model"]),
        cost_usd=None if cost is None else float(cost),
        reasons=tuple(dict.fromkeys(reasons)),
        evidence=tuple(dict.fromkeys(quotes)),
    )


def _csv_row(row: dict[Any, Any], said: Said, outcome: str) -> Row:
    item = _item(row, said, outcome)
    at = row["at"]
    return {
        "trace_id": item.trace_id,
        "workflow": item.workflow,
        "week": item.week,
        "started_at": at.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(at, pd.Timestamp) else None,
        "model": item.model,
        "task_key": row["task_key"],
        "cost_usd": item.cost_usd,
        "latency_s": row["latency_s"],
        "reasons": "\n".join(item.reasons) or None,
        "evidence": "\n".join(item.evidence) or None,
    }
