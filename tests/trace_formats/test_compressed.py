import gzip
import io
import json
import warnings
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibration.errors import TraceFormatError
from calibration.trace_formats import compressed, detect, parquet, read_traces
from tests.trace_formats import archives
from tests.trace_formats.archives import zstandard

ALL = ["lamp-1-retail.json", "tau2.json", "records.jsonl", "records.csv", "transcripts.jsonl",
       "inspect.json", "chats.jsonl", "kiosk__snacks-7.traj"]  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_a_compressed_file_is_read_as_it_is(
    fixtures: Path, tmp_path: Path, name: str, split: Any
) -> None:
    content = (fixtures / name).read_bytes()
    # The name is part of what tau-bench and SWE-agent files say.
    places = {kind: tmp_path / kind / name for kind in ("plain", "gz", "zst")}
    for kind, place in places.items():
        place.parent.mkdir()
        packed = {"gz": gzip.compress(content), "zst": zstandard(content)}
        place.write_bytes(packed.get(kind, content))
    found = {kind: split(place) for kind, place in places.items()}
    assert detect(places["gz"]) == detect(places["plain"])
    for kind in ("gz", "zst"):
        assert [run.trace for run in found[kind][0]] == [run.trace for run in found["plain"][0]]
        assert len(found[kind][1]) == len(found["plain"][1])


def _refused(path: Path, words: str) -> None:
    with pytest.raises(TraceFormatError, match=words) as caught:
        list(read_traces(path))
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 900


def test_what_does_not_unpack_is_refused(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    row = json.dumps({"trace_id": "a", "workflow": "w", "prompt": "p"}).encode()
    for pack in (gzip.compress, zstandard):
        packed = pack(row * 500)
        _refused(write("cut", packed[:-12]), "that cannot be unpacked")
        _refused(write("twice", gzip.compress(pack(row))), "within another")
    _refused(write("bad", b"\x1f\x8b" + b"x" * 40), "that cannot be unpacked")
    monkeypatch.setattr(compressed, "UNSUSPICIOUS", 10_000)
    _refused(write("bomb.gz", gzip.compress(b" " * 1_000_000)), "more than 250 times its size")
    _refused(write("bomb.zst", zstandard(b" " * 1_000_000)), "more than 250 times its size")
    monkeypatch.setattr(compressed, "MAX_UNPACKED", 100)
    _refused(write("large.gz", gzip.compress(row * 5)), "import it in parts")


def _zip(*entries: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that occur twice
        for name, content in (("header.json", b'{"eval": {}}'), *entries):
            archive.writestr(name, content)
    return file.getvalue()


def test_archives_that_are_not_to_be_trusted_are_refused(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = ("samples/1_epoch_1.json", b'{"id": 1, "epoch": 1}')
    for name in ("../up.json", "/root.json", "a/../../b", "C:/x", "..\\up"):
        _refused(write("climbs.eval", _zip(sample, (name, b"1"))), "leads out of the archive")
    _refused(write("twice.eval", _zip(sample, sample)), "occurs twice")
    good = _zip(sample)
    directory = good.rindex(b"PK\x01\x02")
    locked = bytearray(good)
    locked[directory + 8] |= 1
    _refused(write("locked.eval", bytes(locked)), "is encrypted")
    _refused(write("cut.eval", good[:-30]), "cannot be read")
    _refused(
        write("other.zip", _zip().replace(b"header.json", b"letter.text")), "is a zip archive of 1"
    )
    odd = _zip(sample, method=zipfile.ZIP_BZIP2)
    _refused(write("odd.eval", odd), "method 12, which is not read")
    monkeypatch.setattr(compressed, "UNSUSPICIOUS", 10_000)
    bomb = (sample[0], b'{"id": "' + b" " * 3_000_000 + b'"}')
    taken = list(read_traces(write("bomb.eval", _zip(bomb))))
    assert "more than 250 times" in taken[0].reason  # type: ignore[union-attr]
    monkeypatch.setattr(compressed, "MAX_ENTRIES", 1)
    _refused(write("many.eval", good), "has 2 entries")


def test_a_damaged_entry_is_set_aside_with_the_reason(write: Any, split: Any) -> None:
    sample = json.dumps({"id": 1, "epoch": 1, "messages": []}).encode()
    whole = _zip(("samples/1.json", sample), ("samples/2.json", sample), method=zipfile.ZIP_STORED)
    at = whole.index(b'"epoch"')
    taken, (aside,) = split(write("a.eval", whole[: at + 1] + b"E" + whole[at + 2 :]))
    assert (len(taken), aside.file.endswith("a.eval/samples/1.json")) == (1, True)
    assert "is damaged (its checksum differs)" in aside.reason
    workbook = _zip(("xl/workbook.xml", b"<x/>"))
    _refused(write("table.xlsx", workbook), "save its sheet as CSV")


def test_parquet_rows_are_records(fixtures: Path, tmp_path: Path, split: Any) -> None:
    rows = [json.loads(line) for line in (fixtures / "records.jsonl").read_text().splitlines()]
    rows = [row for row in rows if "trace_id" in row]
    texts = [{k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in row.items()}
             for row in rows]  # fmt: skip
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = [run.trace for run in split(path)[0]]
    found, _ = split(archives.parquet(tmp_path / "a.parquet", texts))
    assert expected
    assert [run.trace for run in found] == expected
    odd = {"trace_id": "a", "workflow": "w", "prompt": "p", "cost_usd": Decimal("0.5"),
           "steps": [{"role": "assistant", "content": "x", "tool": None}],
           "units": float("nan"), "metadata": {"raw": b"\xff", "none": None}}  # fmt: skip
    (run,), _ = split(archives.parquet(tmp_path / "b.parquet", [odd]))
    assert (run.trace.cost_usd, run.trace.units) == (0.5, 1.0)
    assert run.trace.metadata == {"raw": "\ufffd"}


def test_parquet_that_holds_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    names = ["trace_id", "prompt", "prompt"]
    pq.write_table(pa.table([["a"], ["p"], ["q"]], names=names), path)
    _refused(path, "column 'prompt' occurs twice")
    archives.parquet(path, [{"trace_id": str(k), "prompt": "p"} for k in range(3)])
    monkeypatch.setattr(parquet, "MAX_ROWS", 2)
    _refused(path, "holds 3 rows")
    large = pa.table({"trace_id": ["a"], "prompt": ["x" * 5_000_000]})
    pq.write_table(large, path, compression="zstd")
    monkeypatch.setattr(compressed, "UNSUSPICIOUS", 10_000)
    _refused(path, "more than 250 times")
