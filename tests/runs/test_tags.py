"""Rates by tag: texts, JSON lists and lists; the same on every engine, and a bounded number."""

import gc
import json
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pytest

from calibration.analyses.success_rate.from_runs import report_on_files
from calibration.analyses.success_rate.report import ReportOptions, SuccessRateReport
from calibration.errors import InputError
from calibration.reporting import to_json
from calibration.reporting.document import text_lines
from calibration.reporting.sections import success_rate
from calibration.runs.counts import MOST_TAGS, laid_out, production_counts
from calibration.runs.sources import Source, open_files, open_postgres, open_spark
from calibration.tables.reading import ReadingOptions
from calibration.taxonomy import default_taxonomy
from tests.analyses.production_files import alike, write
from tests.runs.tables import opened
from tests.runs.test_engines import load


def report(path: str, **options: Any) -> SuccessRateReport:
    return report_on_files([path], options=ReportOptions(n_resamples=100, **options))


def by_tag(found: SuccessRateReport) -> dict[str | None, tuple[int, float | None]]:
    return {g.name: (g.n, g.asr.value) for g in found.by_tag}


def test_the_tags_of_a_cell(tmp_path: Path) -> None:
    cells: dict[str, set[str]] = {
        "refund;angry": {"refund", "angry"}, " refund ; angry ;; refund ": {"refund", "angry"},
        "refund, angry": {"refund", "angry"}, '["one"]': {"one"}, "[]": set(), "": set(),
        '["refund", "long, one" , "angry"]': {"refund", "long, one", "angry"},
        "\U0001f44d;ärger": {"\U0001f44d", "ärger"},
    }  # fmt: skip
    for k, (tags, names) in enumerate(cells.items()):
        path = write(tmp_path / f"{k}.csv", alike("a", {"complete": 6}, tags=tags))
        with open_files([path]) as source:
            found = counted(source).groupby("model", observed=True)["n"].sum()
        assert found.to_dict() == dict.fromkeys(names, 6)
    # A report of cells without a tag has no table of them.
    assert report(write(tmp_path / "none.csv", alike("a", {"complete": 6}, tags="[]"))).by_tag == ()


def test_lists_of_parquet_and_jsonl_are_tags_and_numbers_are_none(tmp_path: Path) -> None:
    rows = alike("a", {"complete": 6, "abandoned": 6})
    for k, row in enumerate(rows):
        row["tags"] = ["all", "first"] if k < 6 else ["all"] if k < 9 else []
    pd.DataFrame(rows).to_parquet(tmp_path / "f.parquet")
    (tmp_path / "f.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    for name in ("f.parquet", "f.jsonl"):
        found = report(str(tmp_path / name))
        assert by_tag(found) == {"all": (9, pytest.approx(6 / 9)), "first": (6, 1.0)}, name
        assert found.n == 12
    pd.DataFrame(alike("a", {"complete": 6}, tags=3)).to_parquet(tmp_path / "f.parquet")
    with pytest.raises(InputError, match="column 'tags' holds"):
        report(str(tmp_path / "f.parquet"))


def test_duplicates_count_once_and_conflicts_not_at_all(tmp_path: Path) -> None:
    rows = alike("a", {"complete": 8}, tags="x;y")
    rows.append(dict(rows[0]))
    rows.append({**rows[1], "outcome": "abandoned", "tags": "z"})
    found = report(write(tmp_path / "f.csv", rows))
    assert found.n == 7
    assert by_tag(found) == {"x": (7, 1.0), "y": (7, 1.0)}


def test_a_column_of_another_name_in_a_window_by_task(tmp_path: Path) -> None:
    rows = alike("a", {"complete": 40}, started_at="2026-09-28", **{"of $n": "x"})
    rows += alike("b", {"abandoned": 40}, started_at="2026-10-05", **{"of $n": "x"})
    for k, row in enumerate(rows):
        row["task_id"] = k // 4
    path = write(tmp_path / "f.csv", rows)
    found = report(
        path, reading=ReadingOptions(columns={"tags": "of $n"}), since="2026-W41", until="2026-W41"
    )
    assert by_tag(found) == {"x": (40, 0.0)}
    # Ten tasks of four runs.
    assert found.by_tag[0].asr.n == 10


def test_a_tag_of_the_catalogue_is_explained(tmp_path: Path) -> None:
    found = report(write(tmp_path / "f.csv", alike("a", {"complete": 6}, tags="Loop;own")))
    (pattern,) = [p for p in default_taxonomy().patterns if p.tag == "loop"]
    assert found.tag_meanings == {"Loop": pattern.definition}
    text = "\n".join(text_lines(success_rate.document(found)))
    assert pattern.definition in text
    assert "docs/evaluation.md" in text
    assert to_json.data(found)["tag_meanings"] == found.tag_meanings


def test_the_number_of_tags_is_bounded_and_the_rest_counted(tmp_path: Path) -> None:
    rows = alike("a", {"complete": 300})
    for k, row in enumerate(rows):
        row["tags"] = f"often;user-{k % 60}" if k < 240 else f"user-{k % 60}"
    found = report(write(tmp_path / "f.csv", rows))
    assert len(found.by_tag) == MOST_TAGS
    assert (found.by_tag[0].name, found.by_tag[0].n) == ("often", 240)
    assert found.tags_left_out == 11
    data = to_json.data(found)
    jsonschema.validate(data, to_json.schema())
    assert data["tags_left_out"] == 11
    assert data["by_tag"]["often"]["n"] == 240
    assert "11 rarer tags are left out." in "\n".join(text_lines(success_rate.document(found)))


def counted(source: Source) -> pd.DataFrame:
    tagged = laid_out(opened(source), conflicts=True)
    assert tagged is not None
    return production_counts(tagged.table).cells


def engine_rows(tags: list[Any]) -> pd.DataFrame:
    rows = alike("t", {"complete": 30, "abandoned": 30})
    for k, row in enumerate(rows):
        row |= {"cost_usd": 1.0, "tags": tags[k % len(tags)]}
    rows.append({**rows[3], "outcome": "abandoned"})
    return pd.DataFrame(rows)


TEXTS = ["x; y", '["long, one", "x"]', "", "é"]


@pytest.mark.long
def test_postgresql_lays_out_the_same(postgres: str, tmp_path: Path) -> None:
    frame = engine_rows(TEXTS)
    frame.to_parquet(tmp_path / "f.parquet")
    load(postgres, frame, "tagged")
    with open_postgres(postgres, "tagged") as source:
        theirs = counted(source)
    with open_files([tmp_path / "f.parquet"]) as source:
        pd.testing.assert_frame_equal(counted(source), theirs)


# pyspark leaves the sockets of its answers to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.long
@pytest.mark.parametrize("tags", [TEXTS, [["x", "y"], ["long, one", "x"], [], ["é"]]])
def test_spark_lays_out_the_same(spark: Any, tmp_path: Path, tags: list[Any]) -> None:
    path = str(tmp_path / "f.parquet")
    engine_rows(tags).to_parquet(path)
    with open_spark(spark.read.parquet(path)) as source:
        theirs = counted(source)
    gc.collect()
    with open_files([path]) as source:
        pd.testing.assert_frame_equal(counted(source), theirs)
