"""Read JSON files piece by piece, with the line where each piece starts."""

import json
import os
import re
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from calibration.errors import InputError, TraceFormatError
from calibration.files import MOST_PARTS, RepeatedKeyError, crowded, parse_json, unique_keys
from calibration.trace_formats.base import MAX_TRACE_BYTES
from calibration.trace_formats.compressed import open_text
from calibration.trace_formats.fields import FieldError, storable

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"

MAX_ELEMENTS = 5_000_000

# Escapes that decode to NUL or to characters that UTF-8 cannot hold.
_SUSPECT = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")

_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)
_CUT = "the file ends in the middle of it: it was not written to the end"
_TOO_LONG = f"is longer than {MAX_TRACE_BYTES // 1_000_000} MB"
_TOO_MANY = f"has more than {MOST_PARTS:,} lists and objects"
_CHUNK = 1_000_000
_SMALLEST = 1_024
# What the end of a window cuts is found wrong at most so many characters before it.
_EDGE = 16

# Of JSON text that ends early.
_TOKEN = re.compile(r'\s+|"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s"{}\[\],:]+|"', re.DOTALL)
_SCALAR = re.compile(r'".*"|true|false|null|-?[0-9.eE+-]+', re.DOTALL)
_HALF_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?|\\u[dD][89abAB]..)$")
_HALF_SCALARS = "true false null"
_MOST_COMPLETED, _DEEPEST = 2_000_000, 100


def numbered_lines(
    path: Path, content: BinaryIO | None = None
) -> Iterator[tuple[int, bytes | None]]:
    """Yield line numbers and lines without end or byte order mark; None above 20 MB, never held.

    `content` is that of the file where it lies elsewhere.
    """
    with _opened(path) if content is None else content as file:
        line = 0
        while chunk := file.readline(MAX_TRACE_BYTES + 3):
            line += 1
            if len(chunk) > MAX_TRACE_BYTES and not chunk.endswith(b"\n"):
                yield line, None
                # Passed when the next line is asked for: who wants only the first reads no more.
                while chunk and not chunk.endswith(b"\n"):
                    chunk = file.readline(MAX_TRACE_BYTES)
            else:
                yield line, (chunk.removeprefix(_BOM) if line == 1 else chunk).rstrip(b"\r\n")


# The file that was opened last under a path, as long as it is read.
_OPEN: weakref.WeakValueDictionary[Path, BinaryIO] = weakref.WeakValueDictionary()


def _opened(path: Path) -> BinaryIO:
    file = open_text(path)
    _OPEN[path] = file
    return file


def share_read(path: Path) -> float:
    """Return how much of a file has been read, from 0 to 1; 0 where it is not open."""
    file = _OPEN.get(path)
    if file is None or file.closed:
        return 0.0
    return min(1.0, file.tell() / max(1, os.fstat(file.fileno()).st_size))


def decode_line(line: bytes) -> object:
    """Decode one line of JSON; raise FieldError if it is not UTF-8 or not JSON."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FieldError(f"is not UTF-8 (byte {error.start + 1} of the line)") from error
    return decode_text(text)


def decode_text(text: str) -> object:
    """Decode JSON text as `decode_line` does."""
    try:
        value = parse_json(text)
        return storable(value) if _SUSPECT.search(text) else value
    except InputError as error:
        raise FieldError(str(error)) from error
    except RecursionError as error:
        raise FieldError("is not usable JSON: nested too deeply") from error


class CutJson(NamedTuple):
    """JSON text that ends early, completed; `open` containers were not closed.

    `in_text` says whether it ended within a text.
    """

    value: object
    open: int
    in_text: bool


def cut_json(text: str) -> CutJson | None:
    """Return the value of JSON text that ends early, as far as it goes.

    None where it is whole or no JSON, or above 2,000,000 characters.

    Examples
    --------
    >>> cut_json('[{"role": "user", "content": "Hel')
    CutJson(value=[{'role': 'user', 'content': 'Hel'}], open=2, in_text=True)
    >>> cut_json("[1]") is None
    True
    """
    text = text.strip()
    without_dots = text.removesuffix("...").removesuffix("…").rstrip()  # of who cut it
    for body in dict.fromkeys((text, without_dots)):
        if len(body) <= _MOST_COMPLETED and (completed := _completed(body)) is not None:
            return completed
    return None


def _completed(text: str) -> CutJson | None:
    ends: list[str] = []  # of what is open, the innermost last
    expected, kept, last, in_text = "value", 0, "", False
    for token in _TOKEN.finditer(text):
        mark, end = token[0], token.end()
        if mark.isspace():
            continue
        if kept and not ends:
            return None  # text behind a whole value
        if mark == '"':  # a text without its end
            if expected.startswith("value"):
                body = text[end:]
                half = _HALF_ESCAPE.search(body)
                last = f'"{body[: half.start(1)] if half else body}"'
                kept, in_text = token.start(), True
            break
        if end == len(text) and expected.startswith("value") and mark not in "{[]}":
            if not mark.startswith('"') and (_SCALAR.fullmatch(mark) or mark in _HALF_SCALARS):
                break  # 12 may be the beginning of 123
        after = _after(mark, expected, ends)
        if after is None:
            return None
        expected, kept = after, kept if after in ("key", "value", "colon") else end
    if not ends:
        return None
    try:
        value = decode_text(text[:kept] + last + "".join(reversed(ends)))
    except FieldError:
        return None
    return CutJson(value, len(ends), in_text)


def _after(mark: str, expected: str, ends: list[str]) -> str | None:
    """Return what may follow a token, None where it cannot stand; `ends` opens and closes."""
    if mark in ("{", "["):
        if not expected.startswith("value") or len(ends) == _DEEPEST:
            return None
        ends.append("}" if mark == "{" else "]")
        return "key or end" if mark == "{" else "value or end"
    if mark in ("}", "]"):
        closes = ends and ends.pop() == mark and expected not in ("key", "value", "colon")
        return "comma" if closes else None
    if mark == ",":
        return None if expected != "comma" else "key" if ends[-1] == "}" else "value"
    if mark == ":":
        return "value" if expected == "colon" else None
    if expected.startswith("key"):
        return "colon" if mark.startswith('"') else None
    return "comma" if expected.startswith("value") and _SCALAR.fullmatch(mark) else None


class JsonText:
    """A JSON file whose values are decoded one at a time; a position is a number of bytes.

    No more than one value is held, of at most 20 MB. `file` is its content where it lies elsewhere.
    Raises TraceFormatError if the file cannot be read, is not UTF-8, not JSON, or has anything
    after the end of its document; the message names the line.
    """

    def __init__(self, path: Path, file: BinaryIO | None = None) -> None:
        self.path = path
        self._file = _opened(path) if file is None else file
        weakref.finalize(self, self._file.close)
        self._size = self._file.seek(0, 2)
        self._window = _SMALLEST
        self._at, self._line = 0, 1
        self._passed: tuple[int, int] = -1, -1  # the value that was read last, and its end
        self.start = self.blank(len(_BOM) if self._bytes(0, len(_BOM)) == _BOM else 0)

    def _bytes(self, position: int, size: int) -> bytes:
        self._file.seek(position)
        try:
            return self._file.read(size)
        except OSError as error:
            raise TraceFormatError(f"{self.path}: cannot be read ({error.strerror})") from error

    def _text(self, position: int, size: int) -> str:
        """Return so many bytes as text, without a character that the end cuts."""
        raw = self._bytes(position, size)
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data" and position + size < self._size:
                return raw[: error.start].decode()
            raise self.error(position + error.start, "is not UTF-8 text") from error

    def line(self, position: int) -> int:
        """Return the line of a position; fast for ascending positions."""
        if position < self._at:
            self._at, self._line = 0, 1
        while self._at < position:
            chunk = self._bytes(self._at, min(_CHUNK, position - self._at))
            self._line += chunk.count(b"\n")
            self._at += len(chunk)
        return self._line

    def error(self, position: int, what: str) -> TraceFormatError:
        """Build the error at a position."""
        return TraceFormatError(f"{self.path}, line {self.line(position)}: {what}")

    def blank(self, position: int) -> int:
        """Return the position of the next character that is not blank."""
        size = 16
        while chunk := self._bytes(position, size):
            rest = chunk.lstrip(_BLANK)
            position += len(chunk) - len(rest)
            if rest:
                break
            size = _CHUNK
        return position

    def mark(self, position: int) -> str:
        """Return the character at a position; empty at the end of the file."""
        return self._bytes(position, 1).decode("latin-1")

    def finish(self, position: int) -> None:
        """Raise TraceFormatError if anything follows the document that ends at a position."""
        rest = self.blank(position)
        if rest < self._size:
            raise self.error(
                rest, "text follows the JSON document; a file holds one, or one a line"
            )

    def search(self, pattern: re.Pattern[str]) -> str | None:
        """Return the first text of at most 1,000 bytes that a pattern finds."""
        for position in range(0, self._size, _CHUNK):
            chunk = self._bytes(position, _CHUNK + 1_000).decode("utf-8", "replace")
            found = pattern.search(chunk)
            if found:
                return found[0]
        return None

    def decode(self, position: int) -> tuple[object, int]:
        """Return the value at `position` and its end."""
        size = self._window
        while True:
            text = self._text(position, size)
            whole = position + size >= self._size
            if size > _CHUNK and crowded(text):
                raise self.error(position, f"a value starts here and {_TOO_MANY}")
            try:
                value, end = _DECODER.raw_decode(text)
                if _SUSPECT.search(text, 0, end):
                    value = storable(value)
            except json.JSONDecodeError as error:
                unclosed = error.msg.startswith("Unterminated")
                if whole and (unclosed or error.pos >= len(text.rstrip())):
                    raise self.error(position, f"a value starts here and {_CUT}") from error
                if whole or not (unclosed or error.pos >= len(text) - _EDGE):
                    at = position + _width(text, error.pos)
                    raise self.error(at, f"is not JSON ({error.msg})") from error
            except RecursionError as error:
                raise self.error(position, "is not usable JSON: nested too deeply") from error
            except RepeatedKeyError as error:
                raise self.error(position, f"a value starts here in which {error}") from error
            except ValueError as error:
                raise self.error(position, "is not usable JSON: too many digits") from error
            else:
                if whole or end < len(text):
                    width = _width(text, end)
                    self._window = max(_SMALLEST, min(2 * width, MAX_TRACE_BYTES))
                    self._passed = position, position + width
                    return value, position + width
            if size >= MAX_TRACE_BYTES:
                raise self.error(position, f"a value starts here and {_TOO_LONG}")
            size = min(4 * size, MAX_TRACE_BYTES)

    def elements(self, position: int) -> Iterator[tuple[object, int]]:
        """Yield each element of the array at `position` with the line where it starts."""
        for at in self.places(position):
            yield self.decode(at)[0], self.line(at)

    def places(self, position: int) -> Iterator[int]:
        """Yield the position of each element of the array at `position`.

        One that was read in between, whole or by its `members`, is not read again.
        """
        at, count = self.blank(position + 1), 0
        if self.mark(at) == "]":
            self._close(position, at)
            return
        while True:
            yield at
            count += 1
            at = self.blank(self._end(at))
            mark = self.mark(at)
            if mark == "]":
                self._close(position, at)
                return
            if count == MAX_ELEMENTS:
                raise self.error(at, f"the list has more than {MAX_ELEMENTS:,} elements")
            at = self._after_comma(mark, at, "the list")

    def members(self, position: int) -> Iterator[tuple[str, int]]:
        """Yield each key of the object at `position` with the position of its value.

        A value that was read in between is not read again.
        """
        at, keys = self.blank(position + 1), set()
        if self.mark(at) == "}":
            self._close(position, at)
            return
        while True:
            start = at
            key, end = self.decode(at)
            at = self.blank(end)
            if not isinstance(key, str) or self.mark(at) != ":":
                raise self.error(at, "is not JSON (a key and ':' were expected)")
            if key in keys:
                raise self.error(start, f"the key {key!r:.80} occurs twice in one object")
            keys.add(key)
            at = self.blank(at + 1)
            yield key, at
            at = self.blank(self._end(at))
            mark = self.mark(at)
            if mark == "}":
                self._close(position, at)
                return
            at = self._after_comma(mark, at, "the object")

    def _close(self, position: int, end: int) -> None:
        """Note the end of a list or object; nothing follows that of the document."""
        self._passed = position, end + 1
        if position == self.start:
            self.finish(end + 1)

    def _end(self, position: int) -> int:
        """Return the end of a value; a list is passed element by element."""
        if self._passed[0] != position:
            if self.mark(position) != "[":
                return self.decode(position)[1]
            for _ in self.places(position):
                pass
        return self._passed[1]

    def _after_comma(self, mark: str, at: int, what: str) -> int:
        if mark == ",":
            return self.blank(at + 1)
        if mark:
            raise self.error(at, f"is not JSON (',' was expected, got {mark!r})")
        raise self.error(at, f"{what} is not closed: the file was not written to the end")


def _width(text: str, end: int) -> int:
    """Return the bytes of the first characters of a text."""
    return end if text.isascii() else len(text[:end].encode())
