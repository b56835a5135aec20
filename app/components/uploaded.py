"""Files that people hand in with the browser: a place to read them in, and their names."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

MAX_NAME = 120
TABLES = ["csv", "jsonl", "parquet"]


@contextmanager
def on_disk(uploads: list[Any], path: str = "") -> Iterator[tuple[list[Path], Path]]:
    """Give the files a place for as long as they are read; names matter to some formats."""
    with tempfile.TemporaryDirectory(prefix="asr-import-") as directory:
        folder = Path(directory)
        paths = []
        for number, upload in enumerate(uploads):
            name = PurePath(upload.name.replace("\\", "/")).name[-MAX_NAME:].lstrip(".") or "file"
            (folder / str(number)).mkdir()
            place = folder / str(number) / name
            place.write_bytes(upload.getbuffer())
            paths.append(place)
        if path:
            paths.append(Path(path).expanduser())
        yield paths, folder


def as_uploaded(message: str, folder: Path) -> str:
    """Name an upload as the person does, without the place where it lay."""
    parts = message.split(f"{folder}/")
    return parts[0] + "".join(part.partition("/")[2] for part in parts[1:])
