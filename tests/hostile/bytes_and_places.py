"""Encodings, cut and foreign files, and what is no regular file, for every command."""

import codecs
import gzip
import io
import os
import random
import socket
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.hostile.case import REFUSED, TAKEN, TARGETS, add, add_path, nested

EVERY = tuple(TARGETS)
TABLES = ("agreement", "calibrate", "import", "labels import", "verdicts")
NOT_CALIBRATE = tuple(c for c in EVERY if c not in ("calibrate", "verify"))
Changed = Callable[[bytes], bytes]


def _changed(kind: str, commands: tuple[str, ...], change: Changed, **expected: Any) -> None:
    def made(command: str) -> bytes:
        return change(TARGETS[command].good)

    for command in commands:
        add(command, kind, partial(made, command), **expected)


def _instead(content: bytes, _: bytes) -> bytes:
    return content


def _cut(share: float) -> Changed:
    return lambda content: content[: int(len(content) * share)]


NOISE = random.Random(1).randbytes(4_000)  # no line end is missing among so many bytes

_changed("empty", EVERY, lambda _: b"", codes=(0, 1, 2))
UTF16 = ("agreement", "calibrate", "labels import", "verdicts")  # tables of text, by their mark
_changed("utf16", UTF16, lambda c: c.decode().encode("utf-16"), codes=(0,))
OTHERS = tuple(c for c in EVERY if c not in (*UTF16, "report"))
_changed("utf16", OTHERS, lambda c: c.decode().encode("utf-16"), codes=REFUSED)

TEXT = ("agreement", "calibrate", "gate", "import", "labels import", "report", "verdicts", "verify")
_changed("plain", TEXT, lambda _: b"These are only words.\nAnd a second line.\n", codes=REFUSED)
_changed("trunc0.1", TEXT, _cut(0.1))
_changed("trunc0.5", TEXT, _cut(0.5))

MOST = ("agreement", "calibrate", "gate", "import", "labels import", "verdicts", "verify")
for kind, change in {
    "trunc0.95": _cut(0.95),
    "garbage-tail": lambda c: c + NOISE,
    "blank": lambda _: b" \n\t\n \r\n",
    "random": lambda _: NOISE,
    "gzip": gzip.compress,
    "utf32": lambda c: c.decode().encode("utf-32"),
    "cr": lambda c: c.replace(b"\n", b"\r"),
}.items():  # fmt: skip
    _changed(kind, MOST, change)
_changed("bom", MOST, lambda c: codecs.BOM_UTF8 + c, codes=TAKEN)

JSON_LIKE = ("agreement", "calibrate", "gate", "labels import", "verdicts", "verify")
for kind, content in {
    "parquet-magic": b"PAR1" + b"\0" * 64,
    "array": b"[" + b'{"trace_id": "r1", "outcome": "complete"},' * 3 + b"{}]",
    "deepobj": nested(100_000, kind="{}").encode(),
    "deep990": nested(990, kind="{}").encode(),
    "num": b"12345",
}.items():
    _changed(kind, JSON_LIKE, partial(_instead, content))
    if kind != "parquet-magic":
        add("calibrate", kind, content, words=("--counts",), codes=REFUSED, name="tables.json")

HTML = b"<!DOCTYPE html><html><body><table><tr><td>1</td></tr></table></body></html>\n"
for command in ("agreement", "import"):
    add(command, "html", HTML, codes=REFUSED)


def _zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("traces.jsonl", content)
    return buffer.getvalue()


for kind, change in {
    "zip": _zipped,
    "utf16le-nobom": lambda c: c.decode().encode("utf-16-le"),
    "latin1": lambda c: c.replace(b"Book.", "Bük".encode("latin-1")),
    "nul-middle": lambda c: c.replace(b"Book", b"Bo\0ok"),
    "crlf": lambda c: c.replace(b"\n", b"\r\n"),
    "twice": lambda c: c + c,
    "bomonly": lambda _: codecs.BOM_UTF8,
}.items():  # fmt: skip
    _changed(kind, ("import",), change)


def _link(to: str) -> Callable[[Path, str], Path]:
    def made(folder: Path, name: str) -> Path:
        (folder / name).symlink_to(to)
        return folder / name

    return made


def _to_itself(folder: Path, name: str) -> Path:
    target = next(t for t in TARGETS.values() if t.name == name)
    (folder / f"real-{name}").write_bytes(target.good)
    return _link(f"real-{name}")(folder, name)


def _to_folder(folder: Path, name: str) -> Path:
    (folder / "inner").mkdir()
    return _link("inner")(folder, name)


def _loop(folder: Path, name: str) -> Path:
    _link(name)(folder, "other")
    return _link("other")(folder, name)


def _fifo(folder: Path, name: str) -> Path:
    os.mkfifo(folder / name)
    return folder / name


def _socket(folder: Path, name: str) -> str:
    # The address of a socket is short: it is bound from within its folder.
    before = Path.cwd()
    os.chdir(folder)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(name)
    finally:
        os.chdir(before)
    return str(folder / name)


def _folder(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def _named(path: str) -> Callable[[Path, str], str]:
    return lambda _folder, _name: path


# A link to a file is that file.
add_path(EVERY, "symlink", _to_itself, codes=(0, 1, 2))
add_path(EVERY, "sym-zero", _link("/dev/zero"), alone=True)
add_path(EVERY, "sym-loop", _loop)
add_path(EVERY, "sym-dangling", _link("nowhere"))
add_path(EVERY, "sym-dir", _to_folder)
add_path(EVERY, "fifo", _fifo, alone=True)
add_path(EVERY, "'/dev/null'", _named("/dev/null"))
add_path(EVERY, "'/'", _named("/"))
add_path(tuple(c for c in EVERY if c != "gate"), "''", _named(""), codes=(0, 1, 2))
add_path(NOT_CALIBRATE, "socket", _socket)
add_path(NOT_CALIBRATE, "emptydir", _folder)
for device in ("/dev/zero", "/dev/urandom", "/proc/self/mem", "/proc/self/environ"):
    add_path(NOT_CALIBRATE, f"'{device[:15]}'", _named(device), alone=True)

NOT_GATE = tuple(c for c in NOT_CALIBRATE if c != "gate")
for device in ("/proc/kmsg", "/dev/stdin"):
    add_path(NOT_GATE, f"'{device}'", _named(device), alone=True)
for path in (" ", "~", "-", "no\nline.jsonl"):
    # Standard input is empty: so is a mapping, which may be.
    empty = ("import --mapping",) if path == "-" else ()
    add_path(tuple(c for c in NOT_GATE if c not in empty), repr(path), _named(path))
    add_path(empty, repr(path), _named(path), codes=(0,))
add_path(NOT_GATE, repr("a" * 15), _named("a" * 5_000))
