"""Texts are read by type first: whatever a file holds, the counts are those of its texts."""

import json
from pathlib import Path
from typing import Any

import pytest

from calibration.runs import sources
from tests.runs.tables import assert_same_counts, count

PLAIN = {
    "trace_id": "a", "workflow": "research", "outcome": "complete", "cost_usd": "2.5",
    "started_at": "2026-11-02T09:30:00Z", "latency_s": "3", "model": "m", "tool_calls": "3",
    "tool_errors": "1", "n_steps": "7", "status": "ok",
}  # fmt: skip


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LARGE", 0)


def write(path: Path, **changes: str) -> Path:
    """Write three plain rows and one with changes, as CSV or as JSON lines."""
    rows = [PLAIN | {"trace_id": name} for name in "abc"] + [PLAIN | {"trace_id": "d"} | changes]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        lines = [",".join(f'"{value}"' for value in row.values()) for row in rows]
        path.write_text("\n".join([",".join(PLAIN), *lines, ""]), encoding="utf-8")
    return path


def both(path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Any, Any]:
    """Count by type where all is plain, and as texts."""
    by_type = count(path, lengths=True, **options)
    with monkeypatch.context() as patch:
        patch.setattr(sources, "LARGE", 10**9)
        return by_type, count(path, lengths=True, **options)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("column", "value", "plain"),
    [
        ("cost_usd", "1e-3", True), ("cost_usd", " 2.5 ", True), ("cost_usd", "", True),
        ("cost_usd", "1_000", False), ("cost_usd", "1e-200", False), ("cost_usd", "1e005", False),
        ("cost_usd", "nan", False), ("cost_usd", "-1", False), ("cost_usd", "two", False),
        ("latency_s", "inf", False), ("latency_s", "soon", False), ("tool_errors", "5", False),
        ("n_steps", "1.5", False), ("outcome", "Complete", True), ("outcome", "won", False),
        ("started_at", "2026-11-02 09:30:00+01:00", True), ("started_at", "", True),
        ("started_at", "2026-11-02T09:30:00", False), ("started_at", "2026-11-02", False),
        ("started_at", "2026-13-02T09:30:00Z", False), ("started_at", "infinity", False),
        ("started_at", "2026-11-02T09:30:00+23:00", False), ("trace_id", "a", False),
    ],
)  # fmt: skip
def test_counts_by_type_are_those_of_the_texts(
    kind: str, column: str, value: str, plain: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    path = write(tmp_path / f"f.{kind}", **{column: value})
    by_type, texts = both(path, monkeypatch)
    assert (by_type.by_type, texts.by_type) == (plain, False)
    assert_same_counts(by_type, texts)
    assert by_type.set_aside == texts.set_aside


def test_a_line_that_cannot_be_read_and_a_column_of_two_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "f.csv")
    path.write_text(path.read_text("utf-8") + "too,few\n", "utf-8")
    by_type, texts = both(path, monkeypatch)
    assert not by_type.by_type
    assert by_type.set_aside == texts.set_aside != ()
    # Steps as models: a text, and no number of its own.
    by_type, texts = both(write(tmp_path / "g.csv"), monkeypatch, columns={"model": "n_steps"})
    assert by_type.by_type
    assert by_type.cells["model"].tolist() == texts.cells["model"].tolist() == ["7"]


def test_runs_are_listed_by_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "f.csv", outcome="abandoned")
    for n in (1, 9):  # the weeks hold so many, or not
        by_type, texts = both(path, monkeypatch, listed=["abandoned", "complete"], n_listed=n)
        assert by_type.by_type
        assert by_type.listed is not None
        assert texts.listed is not None
        assert by_type.listed.to_dict("list") == texts.listed.to_dict("list")
        assert by_type.listed["trace_id"].tolist() == ["d", "a", "b", "c"][: 2 if n == 1 else 4]
