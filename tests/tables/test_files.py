"""Text files of any delimiter and encoding: both ways of reading give the same rows."""

import csv
import gzip
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibration import api
from calibration.errors import InputError
from calibration.files import csv_shape, encoding_of
from calibration.runs.sources import Files, open_files, open_frame, place_of_settings
from calibration.tables.reading import ReadingOptions, to_pandas
from calibration.tables.rows import any_rows, open_table, read_rows

Read = Callable[..., list[dict[str, Any]]]

ROWS = [
    {"trace_id": "a;1", "workflow": "Zürich, 1|2", "outcome": "complete", "cost_usd": "0.5"},
    {"trace_id": "b", "workflow": 'tab\there "q"', "outcome": "abandoned", "cost_usd": "1"},
    {"trace_id": "c", "workflow": "two\nlines", "outcome": "complete", "cost_usd": "2"},
]


def written(rows: list[dict[str, str]] = ROWS, delimiter: str = ",", ends: str = "\n") -> str:
    """Return rows as CSV."""
    text = io.StringIO(newline="")
    # Python quotes a line end of another kind in all cells or in none.
    writer = csv.DictWriter(
        text,
        list(rows[0]),
        delimiter=delimiter,
        lineterminator=ends,
        quoting=csv.QUOTE_ALL if ends == "\r" else csv.QUOTE_MINIMAL,
    )
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def in_python(path: Path, encoding: str | None = None) -> list[dict[str, Any]]:
    return [row for _, row in read_rows(path, encoding=encoding)]


def in_duckdb(path: Path, encoding: str | None = None) -> list[dict[str, Any]]:
    with open_files([path], encoding=encoding) as source:
        names = [name for name in source.columns if name != "asr_file"]
        listed = ", ".join(f'"{name}"' for name in names)
        rows = source.engine.connection.execute(f"SELECT {listed} FROM traces").fetchall()  # type: ignore[attr-defined]
        if source.rejects:
            source.engine.rejected_lines()  # type: ignore[attr-defined]
    return [dict(zip(names, row, strict=True)) for row in rows]


BOTH = pytest.mark.parametrize("read", [in_python, in_duckdb])


@BOTH
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("delimiter", list(",;\t|"))
def test_every_delimiter_and_encoding_gives_the_same_rows(
    tmp_path: Path, delimiter: str, ends: str, read: Read
) -> None:
    text, path = written(delimiter=delimiter, ends=ends), tmp_path / "f.csv"
    for content, encoding in [
        (text.encode(), None),
        (text.encode("utf-8-sig"), None),
        (text.encode("utf-16"), None),
        (b"\xfe\xff" + text.encode("utf-16-be"), None),
        (text.encode("cp1252"), "cp1252"),
        (text.encode("utf-16-le"), "utf-16-le"),
        (text.encode(), "latin-1" if text.isascii() else "utf-8"),
        (f"sep={delimiter}{ends}{text}".encode(), None),
        (f"{ends}{text}{ends}{delimiter * 3}{ends}".encode(), None),
    ]:
        path.write_bytes(content)
        assert read(path, encoding) == ROWS, (content, encoding)


@BOTH
@pytest.mark.parametrize("pack", [gzip.compress, lambda b: pa.compress(b, "zstd", asbytes=True)])
def test_packed_text_has_its_encoding_too(
    tmp_path: Path, pack: Callable[[bytes], bytes], read: Read
) -> None:
    path = tmp_path / ("f.csv.gz" if pack is gzip.compress else "f.csv.zst")
    path.write_bytes(pack(written().encode("utf-16")))
    assert read(path) == ROWS
    path.write_bytes(pack(written().encode("cp1252")))
    with pytest.raises(InputError, match=r"line 2: is not UTF-8 \(byte 7\); --encoding cp1252"):
        read(path)


def test_the_delimiter_makes_equal_rows() -> None:
    for text, delimiter in {
        "id;cost\na;0,5\nb;1,5\n": ";",
        "id;name, first\na;Bo\nb;Al\n": ";",
        "id,a;b,c;d\n1,2,3\n": ",",
        '"a;b;c",d\n"1;2;3",4\n': ",",
        "a|b\n1|2,3\n": "|",
        "only\n1\n2\n": ",",
        "sep=^\na^b\n": "^",
    }.items():
        shape = csv_shape(text)
        assert shape is not None
        assert shape.delimiter == delimiter, text
    assert csv_shape("\n \n") is None


@BOTH
def test_one_column_is_a_table(tmp_path: Path, read: Read) -> None:
    (tmp_path / "f.csv").write_text("outcome\nyes\n\nno\n")
    assert read(tmp_path / "f.csv") == [{"outcome": "yes"}, {"outcome": "no"}]


@BOTH
def test_headers_are_clean_texts_and_a_column_without_a_name_is_not_read(
    tmp_path: Path, read: Read
) -> None:
    (tmp_path / "f.csv").write_text(',"cost\u00a0usd", id\u200b\n0,1,2\n', encoding="utf-8-sig")
    assert read(tmp_path / "f.csv") == [{"cost usd": "1", "id": "2"}]


@BOTH
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty"),
        (b" \n\r\n", "the file is empty|has no header"),
        (b"a,b,a\n1,2,3\n", "column 'a' occurs twice"),
        (b"a,b\n1,\xe9\n", r"line 2: is not UTF-8 \(byte 3\); --encoding cp1252"),
        ("a,b\n1,2\n".encode("utf-16-le"), "UTF-16 without a mark. --encoding utf-16-le"),
        ("a,b\n1,2\n".encode("utf-16-be"), "--encoding utf-16-be"),
        (b'a,b\n0,0\n1,"2\n' + b"x,y\n" * 300_000, "line 3: is not CSV .a quote"),
        (b"x" * 25_000_000, "is longer than|a name of"),
        (b"a," * 20_000 + b"b\n", "has 20,001 columns|'a' occurs twice"),
        (b"PK\x03\x04" + b"\0" * 99, "is a workbook or a zip archive"),
        (b"SQLite format 3\0", "is a file of a program"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, content: bytes, says: str, read: Read) -> None:
    (tmp_path / "f.csv").write_bytes(content)
    with pytest.raises(InputError, match=says):
        read(tmp_path / "f.csv")


def test_two_quotes_that_are_not_closed_lose_no_rows(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_bytes(b'a,b\n1,"2\n3,4\n5,"6\n7,8\n')
    with pytest.raises(InputError, match="line 2: is not CSV"):
        in_duckdb(tmp_path / "f.csv")


@BOTH
def test_line_ends_may_be_mixed_and_nul_is_shown(tmp_path: Path, read: Read) -> None:
    path = tmp_path / "f.csv"
    path.write_bytes(b"a,b\r\n1,2\n3,4\r5,6\r\n7,\x008\n")
    found = [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}, {"a": "5", "b": "6"}]
    assert read(path) == [*found, {"a": "7", "b": "\ufffd8"}]
    # A line end within quotes is part of its cell.
    path.write_bytes(b'a,b\r\n1,"2\n3"\r\n5" x,6\r\n')
    assert read(path) == [{"a": "1", "b": "2\n3"}, {"a": '5" x', "b": "6"}]


def test_lines_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_bytes(b"sep=;\r\n\r\na;b\r\n1;2\r\n3\r\n".decode().encode("utf-16"))
    table = open_table(path)
    assert [line for line, _ in table.rows] == [4]
    (left_out,) = table.left_out.listed()
    assert (left_out.code, left_out.first and left_out.first.line) == ("unreadable_row", 5)
    with open_files([path]) as source:
        assert source.engine.connection.execute("FROM traces").fetchall() == [  # type: ignore[attr-defined]
            ("1", "2", str(path))
        ]
        lines = source.engine.rejected_lines()  # type: ignore[attr-defined]
    assert [(file, line) for file, line, _ in lines] == [(str(path), 5)]


def test_plain_utf8_is_read_where_it_is(tmp_path: Path) -> None:
    for ends in ("\n", "\r\n", "\r"):
        (tmp_path / "f.csv").write_bytes(written(ends=ends).encode())
        with open_files([tmp_path / "f.csv"]) as source:
            assert source.engine.given == {}  # type: ignore[attr-defined]


def test_an_encoding_is_one_that_is_known(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(written())
    for name in ("nonsense", "idna", "rot13", "unicode_escape", "utf-7", "zip", "a\0b", ""):
        with pytest.raises(InputError, match=r"--encoding: .* is not known; there are cp1252"):
            in_python(path, name)
        with pytest.raises(InputError, match="--encoding"):
            in_duckdb(path, name)
    assert encoding_of(b"", "Latin-1") == ("iso8859-1", 0)
    table = open_table(path, ReadingOptions(encoding="utf8"))
    assert [row for _, row in table.rows] == ROWS
    place = Files((str(path),), encoding="cp1252")
    assert place_of_settings(place.settings()) == place


@BOTH
@pytest.mark.parametrize("name", ["f.jsonl", "f.json"])
def test_json_has_every_encoding_too(tmp_path: Path, name: str, read: Read) -> None:
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
    text = lines if name == "f.jsonl" else json.dumps(ROWS, ensure_ascii=False, indent=1)
    for codec in ("utf-8", "utf-8-sig", "utf-16"):
        (tmp_path / name).write_bytes(text.encode(codec))
        assert read(tmp_path / name) == ROWS, codec
    (tmp_path / name).write_bytes(text.encode("cp1252"))
    assert read(tmp_path / name, "cp1252") == ROWS


def test_a_json_file_of_lines_is_read_and_an_empty_list_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    assert in_duckdb(path) == ROWS
    for text, says in (("[]", "holds no runs"), ("[1, 2]", "holds no runs"), ("[{}", "be read")):
        path.write_text(text)
        with pytest.raises(InputError, match=says):
            in_duckdb(path)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("f.xlsx", "workbook: save its sheet"),
        ("f.ods", "workbook"),
        ("f.pkl", "a file of a program"),
        ("f.zip", "unpack it"),
    ],
)
def test_other_kinds_are_refused_by_name(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / name).write_bytes(b"x,y\n1,2\n")
    for read in (in_python, in_duckdb):
        with pytest.raises(InputError, match=says):
            read(tmp_path / name)


def test_folders_and_patterns_without_a_file_say_so(tmp_path: Path) -> None:
    for read in (in_python, in_duckdb):
        with pytest.raises(InputError, match="is a folder; name the file"):
            read(tmp_path)
    with pytest.raises(InputError, match="nothing fits this pattern"):
        in_duckdb(tmp_path / "*.csv")


def test_dash_is_a_name_like_any_other_in_the_library() -> None:
    for read in (in_python, in_duckdb):
        with pytest.raises(InputError, match="-: cannot be read"):
            read(Path("-"))


def _parquet(rows: list[dict[str, str]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


RUNS = [
    {"trace_id": f"t{k}", "workflow": "w", "cost_usd": "0.1",
     "outcome": "complete" if k % 3 else "abandoned"}
    for k in range(30)
]  # fmt: skip
RATINGS = [
    {
        "item": f"i{k}",
        "rater": rater,
        "label": "yes" if (k + (rater == "b" and k < 3)) % 2 else "no",
    }
    for k in range(20)
    for rater in "ab"
]


@pytest.mark.parametrize("kind", ["csv", "utf-16", "jsonl", "json", "parquet"])
def test_dash_is_standard_input(tmp_path: Path, kind: str) -> None:
    for command, rows in (
        (["report", "-", "--ceiling", "w=1"], RUNS),
        (["agreement", "-"], RATINGS),
    ):
        content = {
            "csv": lambda rows=rows: written(rows, ";").encode(),
            "utf-16": lambda rows=rows: written(rows).encode("utf-16"),
            "jsonl": lambda rows=rows: "\n".join(map(json.dumps, rows)).encode(),
            "json": lambda rows=rows: json.dumps(rows).encode(),
            "parquet": lambda rows=rows: _parquet(rows),
        }[kind]()
        asr = [sys.executable, "-m", "calibration.cli"]
        (tmp_path / "f.csv").write_text(written(rows))
        file = [str(tmp_path / "f.csv") if word == "-" else word for word in command]
        from_file = subprocess.run([*asr, *file, "--json"], capture_output=True, check=True)
        piped = subprocess.run([*asr, *command, "--json"], input=content, capture_output=True)
        assert piped.returncode == 0, piped.stderr
        assert _estimates(piped.stdout) == _estimates(from_file.stdout)


def _estimates(output: bytes) -> object:
    data = json.loads(output)
    return data.get("asr") or data["coefficients"]


def test_frames_of_other_libraries_are_read() -> None:
    table = pa.Table.from_pylist(RATINGS)
    assert [row for _, row in any_rows(table)] == RATINGS
    frame = pd.DataFrame(RATINGS)
    names = "krippendorff_alpha"
    found = [api.measure_agreement(given).estimates[names].value for given in (table, frame)]
    assert found[0] == found[1]
    runs = pa.Table.from_pylist(RUNS)
    rates = [api.agent_success_rate(given).estimates["asr"].value
             for given in (runs, runs.to_pandas())]  # fmt: skip
    assert rates[0] == rates[1]
    with open_frame(pa.table({"n": [2**53 + 1, None]})) as source:
        rows = source.engine.connection.execute("SELECT n FROM traces").fetchall()  # type: ignore[attr-defined]
    assert rows == [(2**53 + 1,), (None,)]


@pytest.mark.parametrize(
    ("given", "says"),
    [([1], r"got builtins.list"), ({"a": [1]}, "got builtins.dict"), (pd.Series([1]), "Series"),
     (pd.DataFrame([[1, 2]], columns=["a", "a"]), "'a' occurs twice"),
     (pa.table([[1], [2]], names=["a", "a"]), "occurs twice")],
)  # fmt: skip
def test_what_is_no_frame_is_refused(given: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        to_pandas(given)
