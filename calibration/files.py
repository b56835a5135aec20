"""Files that a user names, read within a limit; private files, written whole or not at all."""

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
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar, overload

from calibration.errors import InputError

T = TypeVar("T")

MOST_TOML_BYTES = 1_000_000
MOST_NESTED = 50  # tables and lists within each other, and parts of one key
MOST_BITS = 64  # of an integer of TOML
MOST_PARTS = 2_000_000  # lists and objects of JSON: an empty one takes 30 times its two characters

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
