"""Read JSON files piece by piece, with the line where each piece starts."""

import json
import re
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from calibration.errors import TraceFormatError
from calibration.trace_formats.base import MAX_TRACE_BYTES
from calibration.trace_formats.fields import FieldError, storable

MAX_FILE_BYTES = 2_000_000_000
_BOM = b"\xef\xbb\xbf"
_BLANK = re.compile(r"[ \t\r\n]*")

# Escapes that decode to NUL or to characters that UTF-8 cannot hold.
_SUSPECT = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")

_DECODER = json.JSONDecoder()
_CUT = "the file ends in the middle of it: it was not written to the end"


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Yield line numbers and lines without end or byte order mark; None above 20 MB, never held."""
    with _opened(path) as file:
        line = 0
        while chunk := file.readline(MAX_TRACE_BYTES + 3):
            line += 1
            too_long = len(chunk) > MAX_TRACE_BYTES and not chunk.endswith(b"\n")
            while too_long and chunk and not chunk.endswith(b"\n"):
                chunk = file.readline(MAX_TRACE_BYTES)
            if too_long:
                yield line, None
            else:
                yield line, (chunk.removeprefix(_BOM) if line == 1 else chunk).rstrip(b"\r\n")


def _opened(path: Path) -> BufferedReader:
    try:
        return path.open("rb")
    except OSError as error:
        raise TraceFormatError(f"{path}: cannot be read ({error.strerror})") from error


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
        value: object = json.loads(text)
        return storable(value) if _SUSPECT.search(text) else value
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        why = "it ends in the middle" if cut else f"{error.msg} at column {error.colno}"
        raise FieldError(f"is not JSON: {why}") from error
    except RecursionError as error:
        raise FieldError("is not usable JSON: nested too deeply") from error
    except ValueError as error:  # a number of more than 4,300 digits
        raise FieldError("is not usable JSON: a number has too many digits") from error


class JsonText:
    """A JSON file, held as text, whose runs are decoded one at a time.

    Raises TraceFormatError if the file cannot be read, is not UTF-8 or not JSON; the message names
    the line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = _read(path)
        self._at, self._line = 0, 1

    def line(self, position: int) -> int:
        """Return the line of a position; fast for ascending positions."""
        if position < self._at:
            self._at, self._line = 0, 1
        self._line += self.text.count("\n", self._at, position)
        self._at = position
        return self._line

    def error(self, position: int, what: str) -> TraceFormatError:
        """Build the error at a position."""
        return TraceFormatError(f"{self.path}, line {self.line(position)}: {what}")

    def blank(self, position: int) -> int:
        """Return the position of the next character that is not blank."""
        match = _BLANK.match(self.text, position)
        return match.end() if match else position

    def decode(self, position: int) -> tuple[object, int]:
        """Return the value at `position` and its end."""
        try:
            value, end = _DECODER.raw_decode(self.text, position)
            suspect = _SUSPECT.search(self.text, position, end)
            return (storable(value) if suspect else value), end
        except json.JSONDecodeError as error:
            at_end = error.pos >= len(self.text.rstrip())
            if at_end or error.msg.startswith("Unterminated"):
                raise self.error(position, f"a value starts here and {_CUT}") from error
            raise self.error(error.pos, f"is not JSON ({error.msg})") from error
        except RecursionError as error:
            raise self.error(position, "is not usable JSON: nested too deeply") from error
        except ValueError as error:
            raise self.error(position, "is not usable JSON: too many digits") from error

    def elements(self, position: int) -> Iterator[tuple[object, int]]:
        """Yield each element of the array at `position` with the line where it starts."""
        at = self.blank(position + 1)
        if self.text[at : at + 1] == "]":
            return
        while True:
            value, end = self.decode(at)
            yield value, self.line(at)
            at = self.blank(end)
            mark = self.text[at : at + 1]
            if mark == "]":
                return
            at = self._after_comma(mark, at, "the list")

    def members(self, position: int) -> Iterator[tuple[str, int]]:
        """Yield each key of the object at `position` with the position of its value."""
        at = self.blank(position + 1)
        if self.text[at : at + 1] == "}":
            return
        while True:
            key, end = self.decode(at)
            at = self.blank(end)
            if not isinstance(key, str) or self.text[at : at + 1] != ":":
                raise self.error(at, "is not JSON (a key and ':' were expected)")
            at = self.blank(at + 1)
            yield key, at
            at = self.blank(self.decode(at)[1])
            mark = self.text[at : at + 1]
            if mark == "}":
                return
            at = self._after_comma(mark, at, "the object")

    def _after_comma(self, mark: str, at: int, what: str) -> int:
        if mark == ",":
            return self.blank(at + 1)
        if mark:
            raise self.error(at, f"is not JSON (',' was expected, got {mark!r})")
        raise self.error(at, f"{what} is not closed: the file was not written to the end")


def _read(path: Path) -> str:
    with _opened(path) as file:
        raw = file.read(MAX_FILE_BYTES + 1)
    if len(raw) > MAX_FILE_BYTES:
        raise TraceFormatError(f"{path}: is larger than 2 GB; split it or export JSON Lines")
    try:
        return str(raw, "utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise TraceFormatError(f"{path}, line {line}: is not UTF-8 text") from error
