"""Files beside a store: their rights, and that they reach the disk."""

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


def sync_file(path: Path) -> None:
    """Write the content of a file through to the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
