"""Archives and tables that tests write: an Inspect AI log as a zip, rows as Parquet."""

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ZSTANDARD = 93


def eval_archive(log: dict[str, Any], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a log of Inspect AI as its archive, compressed by deflate or Zstandard (93)."""
    entries = {
        f"samples/{s.get('id')}_epoch_{s.get('epoch')}.json": json.dumps(s) for s in log["samples"]
    }
    header = {key: value for key, value in log.items() if key not in ("samples", "reductions")}
    start = {"version": 2, "eval": log["eval"], "plan": log["plan"]}
    entries |= {"_journal/start.json": json.dumps(start), "summaries.json": "[]"}
    return packed(entries | {"header.json": json.dumps(header)}, method=method)


def packed(entries: dict[str, str], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive; Python 3.13 writes no Zstandard, so its entries are put in by hand."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in entries.items():
            if method != ZSTANDARD:
                archive.writestr(name, text)
                continue
            data = text.encode()
            small = zstandard(data)
            info = zipfile.ZipInfo(name)
            info.header_offset, info.CRC = file.tell(), zlib.crc32(data)
            info.file_size, info.compress_size = len(data), len(small)
            info.compress_type = zipfile.ZIP_STORED
            file.write(info.FileHeader(zip64=False)[:8] + b"\x5d\x00")
            file.write(info.FileHeader(zip64=False)[10:] + small)
            info.compress_type = ZSTANDARD
            archive.filelist.append(info)
            archive.NameToInfo[name] = info
            archive.start_dir = file.tell()
            archive._didModify = True  # type: ignore[attr-defined]
    return file.getvalue()


def zstandard(content: bytes) -> bytes:
    """Return content compressed by Zstandard."""
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as a Parquet file."""
    names = dict.fromkeys(name for row in rows for name in row)
    pq.write_table(pa.table({name: [row.get(name) for row in rows] for name in names}), path)
    return path
