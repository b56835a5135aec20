"""Compressed files, unpacked within limits: gzip and Zstandard text, and the entries of a zip.

Nothing is trusted that a file says about its own size: what comes out is counted.
"""

import atexit
import gzip
import io
import os
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

import pyarrow as pa

from calibration.errors import InputError, TraceFormatError
from calibration.files import open_file

GZIP, ZSTANDARD, ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"

MAX_UNPACKED = 20_000_000_000
MAX_RATIO = 250  # text of agents shrinks to a tenth, repeated history to a fiftieth
UNSUSPICIOUS = 100_000_000  # below, the ratio does not count
MAX_ENTRIES = 200_000
MAX_ENTRY_NAME = 1_000

_ZSTD_IN_ZIP = 93
_READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTD_IN_ZIP)
_ENCRYPTED = 0x1
_LOCAL_HEADER = 30
_CHUNK = 1_000_000
_IN_MEMORY = 8_000_000

# What unpacking damaged content raises.
_DAMAGED = (OSError, EOFError, ValueError, zlib.error, pa.ArrowException, zipfile.BadZipFile)


def open_text(path: Path) -> BinaryIO:
    """Open a file for reading; one compressed by gzip or Zstandard is unpacked, by its content.

    Raises TraceFormatError if it cannot be read, is no regular file, or holds too much.
    """
    try:
        file = open_file(path)
    except InputError as error:
        raise TraceFormatError(str(error)) from error
    try:
        magic = file.read(4)
        file.seek(0)
    except OSError as error:
        file.close()
        raise TraceFormatError(f"{path}: cannot be read ({error.strerror})") from error
    if magic.startswith(GZIP) or magic == ZSTANDARD:
        with file:
            return _LAST.unpacked(path, file, "gzip" if magic.startswith(GZIP) else "zstd")
    return file


def first_bytes(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked."""
    with open_text(path) as file:
        try:
            return file.read(16)
        except OSError as error:
            raise TraceFormatError(f"{path}: cannot be read ({error.strerror})") from error


class _Unpacked:
    """The file that was unpacked last: an import opens a file several times."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: tuple[object, ...] = ()
        self._held: tempfile._TemporaryFileWrapper[bytes] | None = None

    def unpacked(self, path: Path, file: BinaryIO, codec: str) -> BinaryIO:
        """Return the content of a compressed file, as a file that is gone once it is closed."""
        found = os.fstat(file.fileno())
        of = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        with self._lock:
            if self._held is None or self._of != of:
                self.forget()
                self._held = _unpack(path, file, codec, found.st_size)
                self._of = of
            return Path(self._held.name).open("rb")

    def forget(self) -> None:
        """Remove the file, which those who opened it can still read."""
        if self._held is not None:
            self._held.close()
        self._of, self._held = (), None


_LAST = _Unpacked()
atexit.register(_LAST.forget)


def _unpack(
    path: Path, file: BinaryIO, codec: str, size: int
) -> "tempfile._TemporaryFileWrapper[bytes]":
    what = "a gzip file" if codec == "gzip" else "a Zstandard file"
    target = tempfile.NamedTemporaryFile(prefix="asr-unpacked-")
    meter = Meter(path, size)
    try:
        stream = gzip.GzipFile(fileobj=file) if codec == "gzip" else _zstandard(file)
        for chunk in _chunks(stream):
            meter.count(len(chunk))
            target.write(chunk)
        target.flush()
    except TraceFormatError:
        target.close()
        raise
    except _DAMAGED as error:
        target.close()
        reason = f"it is {what} that cannot be unpacked ({str(error) or 'it ends too early':.200})"
        raise TraceFormatError(f"{path}: {reason}") from error
    return target


def _zstandard(file: BinaryIO) -> Any:
    return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")


def _chunks(stream: Any) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk


class Meter:
    """What has come out of a file, against what it may hold."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._size, self._out = path, size, 0

    def count(self, more: int) -> None:
        """Count unpacked bytes; raise TraceFormatError where they are too many."""
        self._out += more
        if self._out > MAX_UNPACKED:
            most = f"more than {MAX_UNPACKED // 1_000_000_000} GB"
            raise TraceFormatError(f"{self._path}: unpacks to {most}; import it in parts")
        if self._out > max(UNSUSPICIOUS, MAX_RATIO * self._size):
            raise TraceFormatError(
                f"{self._path}: unpacks to more than {MAX_RATIO} times its size, as no trace file "
                "does; unpack it yourself if you trust it"
            )


class Archive:
    """A zip file of which entries are read one at a time, never written by their name.

    Raises TraceFormatError if it is damaged or has too many entries, an entry that is encrypted,
    occurs twice or leads out of the archive, or one of another compression than deflate and
    Zstandard.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open_file(path)
        except InputError as error:
            raise TraceFormatError(str(error)) from error
        try:
            # The list of entries is held: 100 bytes or more for each.
            found = zipfile.ZipFile(self._file).infolist()
        except (*_DAMAGED, NotImplementedError) as error:
            self._file.close()
            raise self._refused(f"it is a zip archive that cannot be read ({error!s:.200})") from (
                error
            )
        self._meter = Meter(path, os.fstat(self._file.fileno()).st_size)
        self._entries: dict[str, zipfile.ZipInfo] = {}
        try:
            self._check(found)
        except TraceFormatError:
            self._file.close()
            raise

    def _check(self, found: list[zipfile.ZipInfo]) -> None:
        if len(found) > MAX_ENTRIES:
            raise self._refused(f"has {len(found):,} entries; at most {MAX_ENTRIES:,} are read")
        for entry in found:
            name, shown = entry.filename, ascii(entry.filename)[:80]
            if name in self._entries:
                raise self._refused(f"its entry {shown} occurs twice")
            climbs = name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/")
            if climbs or ":" in name[:3] or len(name) > MAX_ENTRY_NAME:
                raise self._refused(f"its entry {shown} leads out of the archive")
            if entry.flag_bits & _ENCRYPTED:
                raise self._refused(f"its entry {shown} is encrypted; decrypt it first")
            self._entries[name] = entry

    def _refused(self, what: str) -> TraceFormatError:
        return TraceFormatError(f"{self.path}: {what}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the entries, in the order of the archive."""
        return tuple(self._entries)

    def open(self, name: str) -> BinaryIO:
        """Return the content of an entry; TraceFormatError if it is damaged or too much."""
        entry = self._entries[name]
        if entry.compress_type not in _READABLE:
            raise self._refused(
                f"its entry {ascii(name)[:80]} is compressed by method {entry.compress_type}, "
                "which is not read; pack it with deflate"
            )
        target = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, prefix="asr-entry-")
        found = 0
        try:
            for chunk in _chunks(self._stream(entry)):
                self._meter.count(len(chunk))
                found = zlib.crc32(chunk, found)
                target.write(chunk)
            if found != entry.CRC:
                raise ValueError("its checksum differs")
        except TraceFormatError:
            target.close()
            raise
        except _DAMAGED as error:
            target.close()
            reason = f"its entry {ascii(name)[:80]} is damaged ({error!s:.200})"
            raise self._refused(reason) from error
        target.seek(0)
        return target  # type: ignore[return-value]

    def _stream(self, entry: zipfile.ZipInfo) -> Any:
        """Return the unpacked bytes of an entry; `zipfile` of Python 3.13 reads no Zstandard."""
        self._file.seek(entry.header_offset)
        header = self._file.read(_LOCAL_HEADER)
        if len(header) < _LOCAL_HEADER or not header.startswith(ZIP):
            raise ValueError("it is not where the archive says")
        name, extra = (int.from_bytes(header[k : k + 2], "little") for k in (26, 28))
        start = entry.header_offset + _LOCAL_HEADER + name + extra
        packed = io.BufferedReader(_Part(self._file, start, entry.compress_size))
        if entry.compress_type == _ZSTD_IN_ZIP:
            return _zstandard(packed)
        if entry.compress_type == zipfile.ZIP_DEFLATED:
            return io.BufferedReader(_Inflated(packed), _CHUNK)
        return packed

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _Part(io.RawIOBase):
    """Some bytes of a file, as a file."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file, self._at, self._end = file, start, start + size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        self._file.seek(self._at)
        found = self._file.read(min(len(buffer), self._end - self._at))
        self._at += len(found)
        buffer[: len(found)] = found
        return len(found)


class _Inflated(io.RawIOBase):
    """The content of a deflated part, without a zip around it."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed, self._engine = packed, zlib.decompressobj(-zlib.MAX_WBITS)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        while not self._engine.eof:
            packed = self._engine.unconsumed_tail or self._packed.read(65_536)
            found = self._engine.decompress(packed, len(buffer))
            if found:
                buffer[: len(found)] = found
                return len(found)
            if not packed:
                raise EOFError("it ends too early")
        return 0
