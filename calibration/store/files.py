"""Files beside a store: private, and written whole or not at all."""

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_lock = threading.Lock()
_open, _usual = 0, 0


@contextmanager
def owner_only() -> Iterator[None]:
    """Let only the owner read what this process creates until the block ends.

    DuckDB makes its log anew at any time, so that a mode set once would not last.
    """
    global _open, _usual
    with _lock:
        if _open == 0:
            _usual = os.umask(0o077)
        _open += 1
    try:
        yield
    finally:
        with _lock:
            _open -= 1
            if _open == 0:
                os.umask(_usual)


def make_private(path: Path) -> None:
    """Take the rights of others from an existing file or folder, where that is allowed."""
    with suppress(OSError):
        path.chmod(0o700 if path.is_dir() else 0o600)


def private_folder(path: Path) -> Path:
    """Return a folder that only the owner may enter; make it if it is missing."""
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def put(path: Path, content: bytes) -> None:
    """Write a file atomically, so that it survives a power cut."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    put_in_place(temporary, path)


def put_in_place(temporary: Path, path: Path) -> None:
    """Rename a finished file to its name."""
    temporary.replace(path)
    sync_folder(path.parent)


def sync_file(path: Path) -> None:
    """Write the content of a file through to the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut; Windows has no such call and needs none."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
