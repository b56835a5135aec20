"""Signals of operation, counted by hand."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from calibration.runs.results import GROUPS, SignalSums, verdict_names
from tests.analyses.production_files import alike, write
from tests.classes import TAXONOMY
from tests.runs.tables import count


def sums_of(of: str | pd.DataFrame) -> SignalSums:
    found = count(of).signals
    assert found is not None
    return found


def totals(found: SignalSums) -> dict[str, tuple[float, float]]:
    """Return hits and what they are a share of, over all weeks and units."""
    table = found.table
    return {key: (table[key].sum(), table[f"of_{key}"].sum()) for key in found.recorded}


def eight(**columns: Sequence[object]) -> list[dict[str, Any]]:
    rows = alike("t", {"complete": 8})
    for name, values in columns.items():
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    return rows


def test_every_column_by_hand(tmp_path: Path) -> None:
    rows = eight(
        status=["ok", "ERROR: x", "Timeout", "TimeoutError", "failed", "", "done", "deadline"],
        tool_calls=[4, 6, 0, 10, 5, "", 2.5, 3],
        tool_errors=[1, 0, 0, 5, 6, 1, 0, "many"],
        loop=["true", "No", "", "2", "0", "maybe", "-1", "F"],
        escalated=["yes", "n", "true", "", "false", "False", "1", "0"],
        feedback=["up", "\U0001f44e", "0.5", "-1", "neutral", "", "7", "fine"],
        verdict=[*["complete"] * 2, "no_verdict", "hallucinated", "", "", "great", "abandoned"],
    )  # fmt: skip
    assert count(write(tmp_path / "f.csv", eight())).signals is None  # without a column
    found = sums_of(write(tmp_path / "f.csv", rows))
    said = totals(found)
    # Seven statuses; "TimeoutError" timed out and is no other error.
    assert said["errors"] == (2, 7)
    assert said["timeouts"] == (3, 7)
    # 4 + 6 + 0 + 10 calls; more errors than calls, half a call and "many" are no counts.
    assert said["tool_errors"] == (6, 20)
    assert said["loops"] == (2, 5)
    assert said["escalated"] == (3, 7)
    assert said["feedback_given"] == (5, 8)
    assert said["feedback"] == (1 - 1 + 0.5 - 1 + 0, 5)
    assert said["feedback_negative"] == (2, 5)
    assert {name: said[f"verdict_{name}"] for name in verdict_names(TAXONOMY)} == {
        "complete": (2, 5), "partial_plus": (0, 5), "partial_minus": (0, 5),
        "hallucinated": (1, 5), "abandoned": (1, 5), "no_verdict": (1, 5),
    }  # fmt: skip
    bad = {why.split()[0]: n for why, n in found.bad.items()}
    assert bad == {"tool_calls": 3, "loops,": 2, "feedback": 2, "verdict": 1}


def test_repeats_make_a_loop_from_three_on(tmp_path: Path) -> None:
    repeats = [1, 2, 3, 4, "", 0, "x", 9]
    alone = sums_of(write(tmp_path / "f.csv", eight(max_repeats=repeats)))
    assert totals(alone)["loops"] == (3, 6)
    # What is said of a loop itself comes first.
    loop = ["true", "", "false", "", "", "", "", ""]
    both = sums_of(write(tmp_path / "g.csv", eight(max_repeats=repeats, loop=loop)))
    assert totals(both)["loops"] == (1 + 0 + 1 + 1, 6)


def test_typed_columns_are_read_too() -> None:
    frame = pd.DataFrame(alike("t", {"complete": 4}))
    frame["loop"] = [True, False, None, True]
    frame["escalated"] = [0, 1, 2, 0]
    frame["feedback"] = [1.0, -0.5, float("nan"), 3.0]
    found = sums_of(frame)
    assert totals(found)["loops"] == (2, 3)
    assert totals(found)["escalated"] == (2, 4)
    assert totals(found)["feedback"] == (0.5, 2)
    assert list(found.bad.values()) == [1]


def test_weights_count_in_shares_and_not_in_n(tmp_path: Path) -> None:
    rows = eight(weight=[3] * 4 + [1] * 4, escalated=[1, 0, 0, 0, 1, 1, 0, ""])
    found = sums_of(write(tmp_path / "f.csv", rows))
    assert totals(found)["escalated"] == (3 + 1 + 1, 12 + 3)
    assert found.table["n_escalated"].sum() == 7


def test_only_rows_that_count_are_in_the_sums(tmp_path: Path) -> None:
    rows = eight(escalated=[1] * 8)
    rows[0]["outcome"] = "unknown"
    rows.append(dict(rows[1]))  # the same again: one stays
    rows.append({**rows[2], "escalated": 0})  # another value: both go
    found = sums_of(write(tmp_path / "f.csv", rows))
    assert totals(found)["escalated"] == (6, 6)


def test_units_are_tasks_and_random_groups_of_many(tmp_path: Path) -> None:
    few = sums_of(write(tmp_path / "f.csv", eight(task_id=list("aabbccdd"), loop=[1] * 8)))
    assert (few.n_units, few.table["unit"].nunique(), few.by_task, few.each) == (4, 4, True, 1.0)
    rows = alike("t", {"complete": 6_000}, loop="no", started_at="2026-10-05")
    many = sums_of(write(tmp_path / "g.csv", rows))
    assert (many.n_units, many.by_task) == (6_000, False)
    groups = many.table["unit"].nunique()
    assert 0.9 * GROUPS < groups <= GROUPS
    assert many.each == pytest.approx(6_000 / groups)
    assert many.table["n"].sum() == 6_000


def test_the_json_of_a_source_of_jsonl_is_read(tmp_path: Path) -> None:
    rows = eight(
        loop=[True, False, None, 1, 0, "yes", "no", 5],
        feedback=[1, -1, 0, None, 0.5, "up", "down", True],
    )
    path = tmp_path / "f.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    found = sums_of(str(path))
    assert totals(found)["loops"] == (4, 7)
    assert totals(found)["feedback"] == (1 - 1 + 0 + 0.5 + 1 - 1 + 1, 7)
