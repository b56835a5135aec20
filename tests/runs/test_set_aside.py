"""Every row is counted or set aside with its reason; nothing is dropped in silence."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from calibration.errors import InputError
from calibration.runs.columns import CHECKED
from calibration.runs.results import Example, ProductionCounts
from calibration.runs.sources import open_frame
from tests.classes import TAXONOMY
from tests.runs.tables import count, counts_of_source

GOOD: dict[str, object] = {
    "trace_id": "good", "workflow": "research", "outcome": "complete", "cost_usd": "1",
    "units": "1", "weight": "1", "started_at": "2026-11-02T09:30:00Z",
}  # fmt: skip

# What is wrong, and the nearest values that are right.
BAD: dict[str, tuple[str, list[str | None], list[str | None]]] = {
    "missing_trace_id": ("trace_id", ["", None], ["=1+1", "good-2"]),
    "unknown_workflow": ("workflow", ["Research", "@SUM(A1)", None], ["code_review", " research"]),
    "missing_outcome": ("outcome", ["", None, "NA"], ["Complete", "COMPLETE "]),
    "no_verdict": ("outcome", ["no_verdict"], ["complete"]),
    "not_run": ("outcome", ["pending", "In progress", "cancelled"], ["complete"]),
    "unknown_outcome": ("outcome", ["won", "complete?"], ["abandoned", "Partial-Incorrect"]),
    "bad_weight": ("weight", ["0", "-1", "", None, "nan"], ["0.001"]),
    "unknown_perturbation": ("perturbation", ["Fault", "0", "faults"], ["none", "", None]),
    "perturbed_arm": ("perturbation", ["fault", "structure", "prompt"], ["none"]),
}
# Values that are no reason to leave a run out: cost or time is unknown, and counted.
UNKNOWN: dict[str, tuple[str, list[str]]] = {
    "bad_cost": ("cost_usd", ["=1+1", "0x1", "1_000", "--1", "-0.01", "1000000.01"]),
    "bad_time": (
        "started_at",
        ["2026-02-30", "yesterday", "2026-13-01", "1989-12-31T23:59:59Z", "9999-12-31"],
    ),
    "no_cost": ("cost_usd", ["NaN", "inf", "-Infinity", "1e400", "NA", "-", ""]),
}


def count_jsonl(folder: Path, rows: list[dict[str, object]]) -> ProductionCounts:
    path = folder / "traces.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return count(path)


@pytest.mark.parametrize("reason", BAD)
@pytest.mark.long
def test_each_reason(reason: str, tmp_path: Path) -> None:
    field, wrong, right = BAD[reason]
    rows: list[dict[str, object]] = [dict(GOOD)]
    for k, value in enumerate([*wrong, *right]):
        rows.append(GOOD | {"trace_id": f"t{k}"} | {field: value})
    if field == "trace_id":
        rows[1 + len(wrong) :] = [GOOD | {"trace_id": value} for value in right]
    counts = count_jsonl(tmp_path, rows)
    (found,) = counts.set_aside
    assert (found.reason, found.n) == (reason, len(wrong))
    assert [e.row for e in found.examples] == list(range(2, 2 + len(wrong)))[:5]
    assert counts.n_kept == 1 + len(right)
    assert counts.n_read == len(rows)


@pytest.mark.parametrize("fact", UNKNOWN)
def test_a_value_that_cannot_be_read_leaves_no_run_out(fact: str, tmp_path: Path) -> None:
    field, values = UNKNOWN[fact]
    rows = [dict(GOOD), *(GOOD | {"trace_id": f"t{k}", field: v} for k, v in enumerate(values))]
    counts = count_jsonl(tmp_path, rows)
    assert counts.set_aside == ()
    assert counts.n_kept == len(rows)
    assert getattr(counts.notes, fact) == len(values)


def test_all_reasons_are_tested() -> None:
    others = {
        "unreadable_row",
        "identical_duplicate",
        "conflicting_duplicate",
        "total_row",
        "off_scale",
        "partial_score",
        "unreadable_time",
    }
    assert set(CHECKED) | {"identical_duplicate", "conflicting_duplicate"} == set(BAD) | others


def test_a_time_that_cannot_be_read_is_in_no_window(tmp_path: Path) -> None:
    rows = [dict(GOOD), GOOD | {"trace_id": "b", "started_at": "soon"}]
    path = tmp_path / "traces.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    counts = count(path, since=datetime(2026, 1, 1, tzinfo=UTC))
    assert [(rows.reason, rows.n) for rows in counts.set_aside] == [("unreadable_time", 1)]


def test_duplicates(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        GOOD | {"trace_id": "same"}, GOOD | {"trace_id": "one"}, GOOD | {"trace_id": "same"},
        GOOD | {"trace_id": "same"}, GOOD | {"trace_id": "differs"},
        GOOD | {"trace_id": "differs", "outcome": "abandoned"},
        GOOD | {"trace_id": "one", "outcome": "nonsense"},
    ]  # fmt: skip
    counts = count_jsonl(tmp_path, rows)
    assert [(s.reason, s.n) for s in counts.set_aside] == [
        ("unknown_outcome", 1), ("identical_duplicate", 2), ("conflicting_duplicate", 2),
    ]  # fmt: skip
    assert [e.trace_id for e in counts.set_aside[2].examples] == ["differs", "differs"]
    assert [e.row for e in counts.set_aside[2].examples] == [5, 6]
    assert (counts.n_read, counts.n_kept) == (7, 2)
    assert counts.cells["n"].sum() == 2


def test_duplicates_are_found_whatever_part_of_the_hashes_they_are_in() -> None:
    ids = [f"t{k}" for k in range(5000)]
    frame = pd.DataFrame({"trace_id": ids + ids[::7], "workflow": "research",
                          "outcome": "complete", "cost_usd": 1.0})  # fmt: skip
    with open_frame(frame, most_hashes=300) as source:
        counts = counts_of_source(source, taxonomy=TAXONOMY)
    assert counts.n_kept == 5000
    assert [(s.reason, s.n) for s in counts.set_aside] == [("identical_duplicate", 715)]


def test_lines_that_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "traces.csv"
    path.write_bytes(
        b"trace_id,workflow,outcome,cost_usd\na,research,complete,1\nb,research\n"
        b"c,research,complete,1,extra\nd,research\n,,,\ne,research,complete,2\n"
    )
    counts = count(path)
    (unreadable,) = counts.set_aside  # the blank row of a spreadsheet is none
    assert (unreadable.reason, unreadable.n) == ("unreadable_row", 3)
    assert [e.row for e in unreadable.examples] == [3, 4, 5]
    assert unreadable.examples[0] == Example(file=str(path), row=3, value="b,research")
    assert (counts.n_read, counts.n_kept) == (5, 2)
    # The same of JSON lines that are no objects.
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(GOOD) + '\nnot json\n[1, 2]\n{"trace_id": "b", "cost\n{}\n')
    counts = count(path)
    assert [(s.reason, s.n) for s in counts.set_aside] == [("unreadable_row", 4)]
    assert (counts.n_read, counts.n_kept) == (5, 1)


def test_unknown_workflows_may_be_kept_without_a_ceiling() -> None:
    frame = pd.DataFrame([GOOD, GOOD | {"trace_id": "b", "workflow": "mine", "cost_usd": "99"}])
    counts = count(frame, known_workflows_only=False)
    assert counts.notes.no_ceiling == {"mine": 1}
    assert counts.cells["cost_known"].tolist() == [False, True]
    assert counts.cells["penalty"].sum() == 0


def test_nothing_but_a_header(tmp_path: Path) -> None:
    path = tmp_path / "traces.csv"
    path.write_text("trace_id,workflow,outcome,cost_usd,started_at,task_id,status\n")
    counts = count(path)
    assert (counts.n_read, counts.n_kept, counts.first, len(counts.cells)) == (0, 0, None, 0)


@pytest.mark.parametrize(
    ("name", "text", "columns", "says"),
    [
        ("a.csv", "", {}, "the file is empty"),
        ("a.csv", "trace_id,workflow,cost_usd\n", {}, "no column holds the outcome"),
        ("a.csv", "trace_id,workflow,outcome,cost_usd\n", {"cost": "x"}, "no name 'cost' is read"),
        ("a.csv", "trace_id,workflow,outcome,cost_usd\n", {"units": "u"}, r"'u' \(for units\)"),
        ("a.csv", "trace_id,workflow,outcome,cost_usd\n", {"outcome": None}, "cannot be left out"),
        ("a.xlsx", "x", {}, "is a workbook"),
        ("a.log", "x", {}, ".csv, .tsv, .jsonl"),
        ("a.parquet", "no parquet at all", {}, "cannot be read"),
    ],
)
def test_what_cannot_be_read(
    name: str, text: str, columns: dict[str, str | None], says: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=says):
        count(tmp_path / name, columns=columns)


def test_columns_of_the_wrong_kind() -> None:
    frame = pd.DataFrame([GOOD | {"started_at": 3}])
    with pytest.raises(InputError, match="'started_at' holds BIGINT"):
        count(frame)
    with pytest.raises(InputError, match="is not a time zone"):
        count(frame, timezone="Mars/North")
    with pytest.raises(InputError, match="no such file"):
        count("/nowhere/*.csv")


def test_other_names_and_a_file_without_costs() -> None:
    frame = pd.DataFrame([GOOD]).rename(columns={"trace_id": "id; DROP TABLE", "outcome": 'sa"id'})
    columns = {"trace_id": "id; DROP TABLE", "outcome": 'sa"id', "cost_usd": None}
    counts = count(frame, columns=columns)
    assert counts.notes.no_cost == 1
    assert counts.cells["cost_known"].tolist() == [False]
