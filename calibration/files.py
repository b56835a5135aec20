"""Files that a user names, read within a limit; private files, written whole or not at all.

Text may be UTF-8, UTF-16 with its mark, or of an encoding that the user names; `csv_shape` says how
the cells of a table are parted. ``-`` is standard input where a command allows it.
"""

import codecs
import csv
import gzip
import io
import json
import os
import pickle
import re
import shutil
import stat
import sys
import tempfile
import tomllib
import weakref
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar, overload

from calibration.errors import InputError

T = TypeVar("T")

MOST_TOML_BYTES = 1_000_000
MOST_NESTED = 50  # tables and lists within each other, and parts of one key
MOST_BITS = 64  # of an integer of TOML
MOST_PARTS = 2_000_000  # lists and objects of JSON: an empty one takes 30 times its two characters

STANDARD_INPUT = "-"
MOST_STANDARD_INPUT = 2_000_000_000
CHUNK = 1_000_000

DELIMITERS = (",", ";", "\t", "|")
SHAPE_ROWS = 50  # rows by which the delimiter is found
SHAPE_BYTES = 1_000_000  # of the beginning of a file in which they are
MOST_COLUMNS = 10_000
MOST_NAME = 10_000  # characters of a column
MOST_CELL = 20_000_000  # bytes of a cell

# By their names in Python's codecs. Others of them change more than bytes, or take long.
ENCODINGS = frozenset((
    "ascii", "big5", "cp437", "cp850", "cp852", "cp866", "cp874", "cp932", "cp949", "euc_jp",
    "euc_kr", "gb18030", "gb2312", "gbk", "iso2022_jp", "koi8-r", "koi8-u", "mac-cyrillic",
    "mac-greek", "mac-latin2", "mac-roman", "shift_jis", "utf-16", "utf-16-be", "utf-16-le",
    "utf-32", "utf-32-be", "utf-32-le", "utf-8",
    *(f"cp125{k}" for k in range(9)), *(f"iso8859-{k}" for k in range(1, 17) if k != 12),
))  # fmt: skip
# What a text begins with; that of UTF-32 begins with one of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"), (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip

_WORKBOOK = "is a workbook: save its sheet as CSV (UTF-8) and name that"
_PICKLED = "is a file of a program: write the table as CSV or Parquet there, and name that"
_PACKED = "is packed: unpack it first"
_NO_TABLE = "is no table of CSV, JSON or Parquet: save the table as CSV (UTF-8) and name that"
_BY_ENDING = {
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers", ".gsheet"), _WORKBOOK),
    **dict.fromkeys((
        ".pkl", ".pickle", ".joblib", ".npy", ".npz", ".feather", ".arrow", ".h5", ".hdf5", ".orc",
        ".avro", ".sav", ".dta", ".rds", ".rda", ".rdata", ".sqlite", ".sqlite3", ".db", ".duckdb",
    ), _PICKLED),
    **dict.fromkeys((".zip", ".tar", ".tgz", ".bz2", ".xz", ".7z", ".rar"), _PACKED),
    **dict.fromkeys((".pdf", ".doc", ".docx", ".odt", ".rtf", ".html", ".htm"), _NO_TABLE),
}  # fmt: skip
_BY_CONTENT = {
    b"PK\x03\x04": "is a workbook or a zip archive: save its sheet as CSV (UTF-8), or unpack it",
    b"\xd0\xcf\x11\xe0": _WORKBOOK,
    b"SQLite format 3": _PICKLED,
    b"ARROW1": _PICKLED,
    b"\x89HDF": _PICKLED,
    b"%PDF": _NO_TABLE,
    b"BZh": _PACKED,
    b"\xfd7zXZ": _PACKED,
    b"7z\xbc\xaf": _PACKED,
}
_SEPARATOR = re.compile(r'"?sep=([^\w"\r\n])"?\s*', re.IGNORECASE)

_SPECIAL = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# Where brackets and dots of TOML have no meaning. An unclosed text ends with its line or the file,
# so that one look at every character suffices.
_TEXT = re.compile(
    r'"""[\s\S]*?(?:"""|\Z)|' r"'''[\s\S]*?(?:'''|\Z)|"
    r'"(?:[^"\\\n]|\\.)*+"?|' r"'[^'\n]*+'?|#[^\n]*+"
)  # fmt: skip


def open_file(path: Path, *, most: int | None = None, hint: str = "") -> BinaryIO:
    """Open a regular file of at most `most` bytes; `hint` says what to do with a larger one.

    A pipe could block the process and a device never end: neither is opened, nor is a file that
    the system makes up while it is read, as those of /proc.

    Raises InputError if it cannot be read, is no regular file or too large.
    """
    path = real_path(path)
    try:
        found = path.stat()
        special = _SPECIAL.get(stat.S_IFMT(found.st_mode))
        if special is not None:
            raise InputError(f"{path}: is {special}; write its content to a file and name that")
        if most is not None and found.st_size > most:
            raise InputError(f"{path}: is larger than {most:,} bytes{hint}")
        if not found.st_size and _made_up(path):
            raise InputError(f"{path}: has no size; write its content to a file and name that")
        return path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:  # a name with NUL
        raise InputError(f"{path}: cannot be read ({error})") from error


def _made_up(path: Path) -> bool:
    """Return whether a file without a size has content, or might block."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return bool(os.read(number, 1))
    except OSError:
        return True
    finally:
        os.close(number)


def unreadable(path: Path, error: OSError) -> InputError:
    """Return the error of a file that the system does not give."""
    return InputError(f"{path}: cannot be read ({error.strerror or error})")


class _StandardInput:
    """Standard input, which a command may read as a file: written to one when it is named."""

    def __init__(self) -> None:
        self.stream: BinaryIO | None = None
        self.path: Path | None = None

    def spooled(self) -> Path | None:
        """Return the file with the content; None where no command allows it."""
        if self.stream is not None and self.path is None:
            if self.stream.isatty():
                raise InputError("-: standard input is the terminal; pipe a table into the command")
            number, name = tempfile.mkstemp(prefix="asr-standard-input-")
            self.path, size = Path(name), 0
            with os.fdopen(number, "wb") as file:
                while chunk := self.stream.read(CHUNK):
                    size += len(chunk)
                    if size > MOST_STANDARD_INPUT:
                        raise InputError(
                            f"-: standard input is longer than {MOST_STANDARD_INPUT:,} bytes; "
                            "write it to a file and name that"
                        )
                    file.write(chunk)
        return self.path

    def forget(self) -> None:
        """Remove the file."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
        self.stream = self.path = None


_INPUT = _StandardInput()


@contextmanager
def standard_input(stream: BinaryIO) -> Iterator[None]:
    """Let ``-`` be this stream as a file to read, which is kept on the disk until the end."""
    _INPUT.stream = stream
    try:
        yield
    finally:
        _INPUT.forget()


def real_path(path: Path) -> Path:
    """Return where the content of a file lies: that of ``-`` in a file of its own, if allowed."""
    return (_INPUT.spooled() or path) if str(path) == STANDARD_INPUT else path


def check_kind(path: Path, begins: bytes = b"") -> None:
    """Raise InputError for a folder, and for a file of a known kind that is no table of ours.

    Examples
    --------
    >>> check_kind(Path("a.zip"))
    Traceback (most recent call last):
    calibration.errors.InputError: a.zip: is packed: unpack it first
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name the file in it")
    for magic, why in _BY_CONTENT.items():
        if begins.startswith(magic):
            raise InputError(f"{path}: {why}")
    if path.suffix.lower() in _BY_ENDING:
        raise InputError(f"{path}: {_BY_ENDING[path.suffix.lower()]}")


def encoding_of(begins: bytes, encoding: str | None = None) -> tuple[str, int]:
    """Return the codec of a text by its first bytes, and how many of these are its mark.

    A mark decides; without one, the encoding that the user named, else UTF-8.

    Raises
    ------
    InputError
        If no encoding has that name.

    Examples
    --------
    >>> encoding_of("a".encode("utf-16")), encoding_of(b"a"), encoding_of(b"a", "Windows-1252")
    (('utf-16-le', 2), ('utf-8', 0), ('cp1252', 0))
    """
    codec = "utf-8" if encoding is None else _codec(encoding)
    for mark, name in MARKS:
        if begins.startswith(mark):
            return name, len(mark)
    # Without a mark the bytes of these are in the order of Windows, which leaves it out.
    return {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(codec, codec), 0


def _codec(encoding: str) -> str:
    try:
        codec = codecs.lookup(encoding).name
    except (LookupError, ValueError, UnicodeError):  # a name with NUL
        codec = ""
    codec = "utf-8" if codec == "utf-8-sig" else codec
    if codec not in ENCODINGS:
        raise InputError(
            f"--encoding: {encoding!r:.80} is not known; there are cp1252, latin-1, utf-8, utf-16, "
            "mac-roman, cp437, gb18030, shift_jis and others"
        )
    return codec


def utf8_chunks(path: Path, file: BinaryIO, codec: str, start: int = 0) -> Iterator[bytes]:
    """Yield a text as UTF-8, in pieces of about 1 MB that do not part a line end.

    Raises InputError with line and byte where the text is not of its encoding.
    """
    decoder = codecs.getincrementaldecoder(codec)("strict")
    file.seek(start)
    plain, held = codec == "utf-8", ""
    try:
        while chunk := file.read(CHUNK):
            if plain and chunk.isascii() and not decoder.getstate()[0]:
                while chunk.endswith(b"\r") and (more := file.read(1)):
                    chunk += more
                if chunk.isascii():
                    yield chunk
                    continue
            text = held + decoder.decode(chunk)
            held = "\r" if text.endswith("\r") else ""
            yield text.removesuffix(held).encode() if held else text.encode()
        yield (held + decoder.decode(b"", final=True)).encode()
    except UnicodeDecodeError as error:
        raise undecodable(path, file, codec, start) from error
    except UnicodeEncodeError as error:  # a lone surrogate of UTF-16
        raise InputError(f"{path}: is not {_title(codec)}") from error


def undecodable(path: Path, file: BinaryIO, codec: str, start: int = 0) -> InputError:
    """Return the error of a text that is not of its encoding, with the line and its byte."""
    decoder = codecs.getincrementaldecoder(codec)("strict")
    file.seek(start)
    line, column, ended = 1, 0, False
    while not ended:
        chunk = file.read(CHUNK)
        ended = not chunk
        try:
            text, bad = decoder.decode(chunk, final=ended), False
        except UnicodeDecodeError as error:
            text, bad = error.object[: error.start].decode(codec), True
        line += text.count("\n") + text.count("\r") - text.count("\r\n")
        last = max(text.rfind("\n"), text.rfind("\r"))
        column = (column if last < 0 else 0) + len(text[last + 1 :].encode(codec, "replace"))
        if bad:
            other = "cp1252" if codec.startswith("utf-") else "NAME"
            return InputError(
                f"{path}, line {line}: is not {_title(codec)} (byte {column + 1}); "
                f"--encoding {other} reads another encoding"
            )
    return InputError(f"{path}: is not {_title(codec)}")


def _title(codec: str) -> str:
    return codec.upper() if codec.startswith("utf-") else codec


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvShape:
    """How a table of text is written: its delimiter, its header, and the lines before that."""

    delimiter: str
    cells: tuple[str, ...]
    skipped: int = 0


def csv_shape(text: str, *, is_whole: bool = True) -> CsvShape | None:
    r"""Return how a table is written, by its beginning; None if it has no header.

    The delimiter is the one by which the header and the first 50 rows have equally many cells, in
    the end the one with most; a first line ``sep=;`` decides. Without any, the table has one
    column. `is_whole` : whether `text` is all of the table, so that its last row is whole too.

    Examples
    --------
    >>> csv_shape("id;cost\na;0,5\n"), csv_shape("sep=|\nid|x\n").skipped
    (CsvShape(delimiter=';', cells=('id', 'cost'), skipped=0), 1)
    """
    lines = io.StringIO(text.removeprefix("\ufeff"), newline="")
    skipped, chosen, start = 0, None, 0
    for line in lines:
        found = _SEPARATOR.fullmatch(line) if chosen is None else None
        if found is not None:
            chosen = found[1]
        elif line.strip():
            break
        skipped += 1
        start += len(line)
    body = text.removeprefix("\ufeff")[start:]
    candidates = DELIMITERS if chosen is None else (chosen,)
    tried = [
        (mark, rows)
        for mark in candidates
        if (rows := _first_rows(body, mark, is_whole=is_whole)) and (chosen or len(rows[0]) > 1)
    ]
    if not tried:
        tried = [(",", rows) for rows in [_first_rows(body, ",", is_whole=is_whole)] if rows]
    if not tried:
        return None

    def fits(one: tuple[str, list[list[str]]]) -> tuple[float, int]:
        header, *rows = one[1]
        equal = sum(len(row) == len(header) for row in rows)
        return (equal / len(rows) if rows else 1.0), len(header)

    delimiter, rows = max(tried, key=fits)
    return CsvShape(delimiter=delimiter, cells=tuple(rows[0]), skipped=skipped)


def _first_rows(text: str, delimiter: str, *, is_whole: bool) -> list[list[str]]:
    """Return the header and up to 50 rows that are not blank, as far as they are CSV."""
    rows: list[list[str]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if any(cells) or not rows:
                rows.append(cells)
            if len(rows) > SHAPE_ROWS:
                return rows
    except csv.Error:
        return rows
    return rows if is_whole or len(rows) < 2 else rows[:-1]


def checked_shape(place: str, shape: CsvShape | None) -> CsvShape:
    """Return how a table is written, unless it has no header that can be read.

    Raises InputError if there is none, or it holds NUL or too many columns.
    """
    if shape is None or not any(shape.cells):
        raise InputError(f"{place}: has no header; the first line names the columns")
    if any("\x00" in cell for cell in shape.cells):
        order = "be" if shape.cells[0].startswith("\x00") else "le"
        raise InputError(
            f"{place}: the header holds NUL; is it UTF-16 without a mark? --encoding utf-16-{order}"
        )
    longest = max(map(len, shape.cells))
    if longest > MOST_NAME:
        raise InputError(
            f"{place}: the header has a name of {longest:,} characters; is it a table?"
        )
    if len(shape.cells) > MOST_COLUMNS:
        n = len(shape.cells)
        raise InputError(f"{place}: has {n:,} columns; at most {MOST_COLUMNS:,} are read")
    return shape


@contextmanager
def unpacked(path: str) -> Iterator[BinaryIO]:
    """Open a text file, one that is packed as its content; it can be read from the start again."""
    import pyarrow as pa

    opened = open_file(Path(path))
    with opened as file:
        try:
            magic = file.read(4)
            file.seek(0)
            if path.lower().endswith(".gz"):
                with gzip.GzipFile(fileobj=file) as content:
                    yield content  # type: ignore[misc]
            elif path.lower().endswith(".zst"):
                with closing(_Zstandard(Path(path))) as content:
                    yield content  # type: ignore[misc]
            elif magic.startswith(b"\x1f\x8b") or magic == b"\x28\xb5\x2f\xfd":
                raise InputError(f"{path}: is packed; its name must end in .gz or .zst")
            else:
                yield file
        except (EOFError, OSError, zlib.error, pa.ArrowException) as error:
            raise InputError(f"{path}: cannot be read ({error!s:.200})") from error


class _Zstandard:
    """The content of a Zstandard file, which is unpacked anew where it is read again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content = self._opened()

    def _opened(self) -> Any:
        import pyarrow as pa

        # Closed with the stream around it.
        return pa.CompressedInputStream(pa.PythonFile(open_file(self._path), mode="r"), "zstd")

    def seek(self, position: int) -> int:
        """Go to a position, by reading what stands before it."""
        self._content.close()
        self._content = self._opened()
        return len(self._content.read(position))

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        return bytes(self._content.read(size))

    def close(self) -> None:
        """Close the file."""
        self._content.close()


@dataclass(slots=True)
class CsvContent:
    """What was seen in a file of CSV, and how DuckDB reads it."""

    has_nul: bool = False
    has_blank_rows: bool = False
    mixed_ends: bool = False

    def changed(self, chunk: bytes) -> bytes:
        """Return text as DuckDB reads it."""
        if self.mixed_ends:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return chunk.replace(b"\0", "\ufffd".encode()) if self.has_nul else chunk


def look_through(path: str, stream: BinaryIO, codec: str, mark: int, shape: CsvShape) -> CsvContent:
    """Read a file of CSV once; raises InputError for a quote that is not closed."""
    seen, quotes, tail = CsvContent(), 0, b""
    ends = [0, 0, 0]
    blank = shape.delimiter.encode() * (len(shape.cells) - 1)
    for chunk in utf8_chunks(Path(path), stream, codec, mark):
        if b'"' in chunk:  # a tenth of the time of counting none
            quotes += chunk.count(b'"')
        seen.has_nul |= b"\0" in chunk
        if b"\r" in chunk:
            ends = [n + more for n, more in zip(ends, _line_ends(chunk), strict=True)]
        elif not ends[1]:
            ends[1] += b"\n" in chunk
        if not seen.has_blank_rows:
            edge = tail + chunk[: len(blank) + 3]
            seen.has_blank_rows = _has_row(chunk, blank) or _has_row(edge, blank)
            tail = chunk[-len(blank) - 3 :]
    seen.has_blank_rows |= tail.rstrip(b"\r\n").endswith((b"\n" + blank, b"\r" + blank))
    if sum(map(bool, ends)) > 1:
        seen.mixed_ends = _is_mixed(utf8_chunks(Path(path), stream, codec, mark))
    if quotes % 2:
        _check_quotes(path, utf8_chunks(Path(path), stream, codec, mark), shape)
    return seen


def _has_row(chunk: bytes, row: bytes) -> bool:
    if b"\r" not in chunk:
        return b"\n" + row + b"\n" in chunk
    return any(
        before + row + after in chunk
        for before, after in ((b"\n", b"\n"), (b"\n", b"\r"), (b"\r", b"\r"))
    )


def _line_ends(text: bytes) -> tuple[int, int, int]:
    """Return how many lines end with CRLF, LF and CR."""
    both = text.count(b"\r\n")
    return both, text.count(b"\n") - both, text.count(b"\r") - both


def _is_mixed(chunks: Iterator[bytes]) -> bool:
    """Return whether lines end in different ways, but for those inside of quotes."""
    ends, inside = [0, 0, 0], 0
    for chunk in chunks:
        parts = chunk.split(b'"')
        outside = b'"'.join(parts[inside::2])
        ends = [n + more for n, more in zip(ends, _line_ends(outside), strict=True)]
        if sum(map(bool, ends)) > 1:
            return True
        inside = (inside + len(parts) - 1) % 2
    return False


def _check_quotes(path: str, chunks: Iterator[bytes], shape: CsvShape) -> None:
    """Raise InputError if a quote is not closed; one within a cell needs none."""
    csv.field_size_limit(max(csv.field_size_limit(), MOST_CELL))
    rows = csv.reader(_lines(chunks), delimiter=shape.delimiter, strict=True)
    line = 1
    while True:
        try:
            line = rows.line_num + 1
            next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end" in str(error) or "field larger" in str(error):
                raise not_closed(path, line) from error


def _lines(chunks: Iterator[bytes]) -> Iterator[str]:
    held = b""
    for chunk in chunks:
        *lines, held = (held + chunk).splitlines(keepends=True) or [b""]
        yield from (line.decode() for line in lines)
        if len(held) > MOST_CELL:
            break
    yield held.decode("utf-8", "replace")


def not_closed(path: str, line: int) -> InputError:
    """Return the error of a quote that is not closed, with its line."""
    return InputError(f"{path}, line {line}: is not CSV (a quote that opens here is not closed)")


def read_text(path: Path, *, most: int, hint: str = "") -> str:
    """Return the UTF-8 text of a file without byte order mark; errors as `open_file`."""
    with open_file(path, most=most, hint=hint) as file:
        try:
            content = file.read(most)
        except OSError as error:
            raise unreadable(path, error) from error
    try:
        return str(content, "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 (byte {error.start})") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file of at most 1 MB; errors as `parse_toml`, with the file."""
    text = read_text(path, most=MOST_TOML_BYTES, hint="; is it TOML?")
    try:
        return parse_toml(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text.

    Raises InputError if it is not TOML, has tables and lists within each other or parts of a key
    beyond 50, or an integer of more than 64 bits, which TOML does not have.

    Examples
    --------
    >>> parse_toml("a.b = [1]")
    {'a': {'b': [1]}}
    >>> parse_toml("a = " + "[" * 51)
    Traceback (most recent call last):
    calibration.errors.InputError: is not TOML (line 1: nested deeper than 50)
    """
    bare = _TEXT.sub(lambda found: "\n" * found[0].count("\n"), text)
    depth = 0
    for number, line in enumerate(bare.split("\n"), 1):
        if max(part.count(".") for part in re.split("[={,]", line)) >= MOST_NESTED:
            raise _unusable(f"line {number}: a key of more than {MOST_NESTED} parts")
        for mark in re.findall(r"[][{}]", line):
            depth += 1 if mark in "[{" else -1
            if depth > MOST_NESTED:
                raise _unusable(f"line {number}: nested deeper than {MOST_NESTED}")
    try:
        data = tomllib.loads(text)
    except RecursionError as error:
        raise _unusable("nested too deeply") from error
    except tomllib.TOMLDecodeError as error:
        raise _unusable(f"{error!s:.200}") from error
    except ValueError as error:  # Python reads up to 4,300 digits
        raise _unusable(f"an integer of more than {MOST_BITS} bits") from error
    _check_integers(data)
    return data


def _check_integers(value: object, key: str = "") -> None:
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise _unusable(f"{key!r:.80}: an integer of more than {MOST_BITS} bits")
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_integers(inner, name)
    elif isinstance(value, list):
        for inner in value:
            _check_integers(inner, key)


def _unusable(what: str) -> InputError:
    return InputError(f"is not TOML ({what})")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs, as `json` asks for it; ValueError if a key occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names: set[str] = set()
        for name, _ in pairs:
            if name in names:
                raise RepeatedKeyError(f"the key {name!r:.80} occurs twice in one object")
            names.add(name)
    return found


class RepeatedKeyError(ValueError):
    """A JSON object has two values under one key, one of which would be lost in silence."""


_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


def crowded(text: str) -> bool:
    """Return whether JSON text may have more lists and objects than are held."""
    return len(text) > MOST_PARTS and text.count("[") + text.count("{") > MOST_PARTS


def parse_json(text: str) -> object:
    """Return the value of a JSON text.

    Raises InputError if it is not JSON, or has a key twice in one object, more than 2,000,000
    lists and objects, too deep ones, or a number of more than 4,300 digits.

    Examples
    --------
    >>> parse_json('{"a": [1]}')
    {'a': [1]}
    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    calibration.errors.InputError: is not usable JSON: the key 'a' occurs twice in one object
    """
    if crowded(text):
        raise InputError(f"has more than {MOST_PARTS:,} lists and objects")
    try:
        value: object = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        where = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}"
        raise InputError(
            f"is not JSON: {'it ends in the middle' if cut else f'{error.msg} at {where}'}"
        ) from error
    except RecursionError as error:
        raise InputError("is not usable JSON: nested too deeply") from error
    except RepeatedKeyError as error:
        raise InputError(f"is not usable JSON: {error}") from error
    except ValueError as error:
        raise InputError("is not usable JSON: a number has too many digits") from error
    return value


def private_folder(path: Path) -> Path:
    """Return a folder that only the owner may enter; make it if it is missing."""
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def check_free(path: Path, *, replace: bool = False) -> None:
    """Raise InputError if a file is there already and is not to be replaced; a folder never is."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder that is there already; name another place")
    if path.exists() and not replace:
        raise InputError(f"{path}: exists already; name another file, or replace it with --force")


@contextmanager
def written_whole(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield where to write a file that is to appear whole or not at all, or a new folder.

    Raises InputError as `check_free`.
    """
    check_free(path, replace=replace)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        if not temporary.is_dir():
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
        put_in_place(temporary, path)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        temporary.unlink(missing_ok=True)


def hold(path: Path) -> int | None:
    """Hold a file until the process ends or the number is closed; None if another one holds it."""
    number = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        return None
    return number


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


def sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut; Windows has no such call and needs none."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class Spool(Sequence[T], Generic[T]):
    """A sequence that is read in order and held on the disk, in a file without a name.

    Only what this process appended is read back.
    """

    _IN_MEMORY = 8_000_000

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=self._IN_MEMORY, prefix="asr-spool-")
        weakref.finalize(self, self._file.close)
        self._places = array("Q")

    def append(self, item: T) -> None:
        """Add an item at the end."""
        self._places.append(self._file.seek(0, os.SEEK_END))
        pickle.dump(item, self._file, protocol=pickle.HIGHEST_PROTOCOL)

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[T]:
        return (self[place] for place in range(len(self)))

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...
    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        if isinstance(place, slice):
            return [self[k] for k in range(*place.indices(len(self)))]
        self._file.seek(self._places[place])
        item: T = pickle.load(self._file)
        return item
