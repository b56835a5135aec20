import csv
import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from calibration.errors import InputError
from calibration.tables.rows import (
    Row,
    cell_flag,
    cell_moment,
    cell_number,
    cell_text,
    cell_whole,
    cell_words,
    guard,
    read_rows,
    unguard,
)
from calibration.trace_formats.fields import FieldError

FIELDS = ("trace_id", "outcome")
NUMBER = partial(cell_number, name="f", maximum=100, above_zero=True)
WHOLE = partial(cell_whole, name="f", minimum=1, maximum=5)


def rows(path: Path, content: str | bytes) -> list[tuple[int, dict[str, Any]]]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_rows(path, required=FIELDS))


@given(st.text())
@example("'=1")
@example("''=1")
@example("\t=1")
@example("\r")
def test_what_is_guarded_comes_back_and_no_guarded_cell_is_a_formula(text: str) -> None:
    assert unguard(guard(text)) == text
    assert guard(text)[:1] not in ("=", "+", "-", "@", "\t", "\r")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))))
def test_any_text_survives_a_csv(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "file.csv"
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow([*FIELDS, "reason"])
    writer.writerows([["t", "o", guard(text)] for text in texts])
    found = rows(path, buffer.getvalue())
    assert [row["reason"] for _, row in found] == texts


def test_line_numbers_are_those_where_a_row_begins(tmp_path: Path) -> None:
    content = '\ufefftrace_id,outcome,reason\r\na,complete,"two\r\nlines"\r\n\r\nb,abandoned,\r\n'
    found = rows(tmp_path / "f.csv", content)
    assert [(line, row["trace_id"]) for line, row in found] == [(2, "a"), (5, "b")]
    assert found[0][1]["reason"] == "two\r\nlines"


def test_json_lines_may_hold_separators_that_are_no_line_ends(tmp_path: Path) -> None:
    text = '{"trace_id": "a", "outcome": "x", "reason": "one\u2028two\x85three"}\n\n'
    ((line, row),) = rows(tmp_path / "f.jsonl", text)
    assert (line, row["reason"]) == (1, "one\u2028two\x85three")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty; it needs the fields trace_id, outcome"),
        (b"\xff\xfe", "the file is empty"),
        (b"\xff", r"line 1: is not UTF-8 \(byte 1\)"),
        ("a,b\n1,2\n", "line 1: column 'trace_id' is missing; there are a, b"),
        ("ab\n1\n", "line 1: must be a header with the columns trace_id, outcome"),
        ("[\n 1]\n", "line 2: must be an object"),
        ('[{"trace_id": "a", "outcome": "b"}', "line 1"),
        ('[\n{"id": "a", "outcome": "b"}]', "line 2: field 'trace_id' is missing; there are id"),
        ("trace_id,verdict\na,b\n", "line 1: column 'outcome' is missing"),
        ("trace_id,outcome,outcome\n", "line 1: column 'outcome' occurs twice"),
        ("trace_id,outcome\na,b,c\n", "line 2: has 3 cells, the header has 2"),
        ('trace_id,outcome\na,"b\n', "line 2: is not CSV"),
        ("trace_id,outcome\na,b\n ,c\n", "line 3: field 'trace_id' is missing"),
        ('{"trace_id": "a", "outcome": null}', "field 'outcome' is missing"),
        ('{"trace_id": "a"\n', "line 1: is not JSON"),
        ('{"trace_id": "a", "outcome": "b"}\n[]\n', "line 2: must be an object"),
        ('{"a": ' + "[" * 100_000, "nested too deeply|is not JSON"),
        ('{"a": ' + "1" * 5000 + "}", "too many digits"),
    ],
)
def test_a_slip_is_named_with_its_line(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows(tmp_path / "f", content)


def test_a_directory_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    for path, says in ((tmp_path, "is a folder"), (tmp_path / "none.csv", "cannot be read")):
        with pytest.raises(InputError, match=says):
            list(read_rows(path, required=FIELDS))


def test_lone_surrogates_and_null_become_readable(tmp_path: Path) -> None:
    text = json.dumps({"trace_id": "a", "outcome": "b", "reason": "\ud800\x00"})
    ((_, row),) = rows(tmp_path / "f.jsonl", text)
    row["reason"].encode()
    ((_, row),) = rows(tmp_path / "f.csv", "trace_id,outcome\na\x00,b\n")
    assert row["trace_id"] == "a\ufffd"


def test_other_delimiters_and_long_cells_are_read(tmp_path: Path) -> None:
    for mark in (";", "\t"):
        ((_, row),) = rows(tmp_path / "f.csv", f"trace_id{mark}outcome\na{mark}{'x' * 300_000}\n")
        assert row == {"trace_id": "a", "outcome": "x" * 300_000}


@pytest.mark.parametrize(
    ("check", "value", "says"),
    [
        (NUMBER, "x", "must be a number, got 'x'"),
        (NUMBER, 0, "must be a number > 0"),
        (NUMBER, 101, "must be at most 100"),
        (NUMBER, True, "must be a number > 0"),
        (WHOLE, "2.5", "must be a whole number from 1 to 5, got '2.5'"),
        (WHOLE, 0, "must be a whole number from 1 to 5"),
        (lambda row: cell_flag(row, "f"), "y?", "must be yes or no, true or false, 1 or 0"),
        (lambda row: cell_moment(row, "f"), "monday", "must be an ISO 8601 time"),
        (lambda row: cell_words(row, "f"), 5, "must be text, got 5"),
    ],
)
def test_a_cell_that_is_none_names_its_field_and_the_rule(
    check: Callable[[Row], object], value: object, says: str
) -> None:
    with pytest.raises(FieldError) as refused:
        check({"f": value})
    assert str(refused.value).startswith(f"field 'f': {says}")


def test_cells_are_read_however_they_are_stored() -> None:
    for value in (3, 3.0, "3", " 3 ", "3.0"):
        assert WHOLE({"f": value}) == 3
        assert cell_text(value).startswith("3")
    for missing in (None, "", " ", float("nan"), pd.NaT, pd.NA):
        assert NUMBER({"f": missing}) is None
        assert WHOLE({"f": missing}) is None
        assert cell_text(missing) == ""
        assert not cell_flag({"f": missing}, "f")
        assert cell_moment({"f": missing}, "f") is None
        assert cell_words({"f": missing}, "f") is None
    assert cell_flag({"f": True}, "f")
    assert str(cell_moment({"f": pd.Timestamp("2026-03-01 10:00")}, "f"))[:19] == (
        "2026-03-01 10:00:00"
    )
