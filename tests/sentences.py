"""Every text that a user can meet: ``python -m tests.sentences`` prints the list, to be read."""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = ("app", "calibration", "reference_dataset")
SCRIPTS = ("app/desk/js",)
TABLES = ("calibration/taxonomy.toml",)
SCHEMAS = ("calibration/trace_formats",)
PAGES = ("README.md",)
# Two words or more, or one that begins like a label: not a key, a name or a piece of code.
SENTENCE = re.compile(r"[A-Za-z][^\s]* +\S|\{\} +[A-Za-z]{2}|^[A-Z][a-z]+[.:?!…]?$")
MARKUP = re.compile(r"</?[a-z][^>]*>")
CODE = re.compile(
    r"\b(SELECT|FROM|WHERE|INSERT INTO|UPDATE|DELETE|CREATE|ALTER|(ORDER|GROUP) BY|VALUES|COPY)\b"
    r"|[{;]\s*$|^\s*[.#\[][a-z-]|^-- |</?(svg|rect|line|path|circle)\b"
)
# Comments and regular expressions of a script are passed over, so that their quotes open nothing.
IN_SCRIPT = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r"|(?<=[(,=:&|!?])\s*/(?![*/])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/"
    r'|"(?P<plain>(?:[^"\\\n]|\\.)*)"|\'(?P<single>(?:[^\'\\\n]|\\.)*)\'|(?P<template>`)',
    flags=re.DOTALL,
)


def sentences() -> Iterator[tuple[str, int, str]]:
    """Return file, line and text; f-strings and templates have {} where a value comes in."""
    for path, texts in _of_files():
        name = path.relative_to(ROOT).as_posix()
        yield from ((name, line, text) for line, text in texts if is_shown(text))


def is_shown(text: str) -> bool:
    """Return whether a text is for people: not a key, a name, SQL or a style."""
    return bool(SENTENCE.search(MARKUP.sub(" ", text).strip())) and not CODE.search(text)


def _of_files() -> Iterator[tuple[Path, Iterator[tuple[int, str]]]]:
    for folder in PYTHON:
        yield from ((p, _of_module(p)) for p in sorted((ROOT / folder).rglob("*.py")))
    for folder in SCRIPTS:
        yield from ((p, _of_script(p)) for p in sorted((ROOT / folder).glob("*.js")))
    for name in TABLES:
        yield ROOT / name, _of_values(tomllib.loads((ROOT / name).read_text(encoding="utf-8")))
    for folder in SCHEMAS:
        for p in sorted((ROOT / folder).glob("*.json")):
            yield p, _of_values(json.loads(p.read_text(encoding="utf-8")), only="description")
    for name in PAGES:
        yield ROOT / name, enumerate((ROOT / name).read_text(encoding="utf-8").split("\n"), 1)


def _of_values(values: object, only: str | None = None, key: str = "") -> Iterator[tuple[int, str]]:
    if isinstance(values, dict):
        for name, value in values.items():
            yield from _of_values(value, only, name)
    elif isinstance(values, list):
        for value in values:
            yield from _of_values(value, only, key)
    elif isinstance(values, str) and only in (None, key):
        yield 0, values


def _of_script(path: Path) -> Iterator[tuple[int, str]]:
    code = path.read_text(encoding="utf-8")
    yield from ((code.count("\n", 0, at) + 1, text) for at, text in _of_code(code, 0, len(code)))


def _of_code(code: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Return place and text of every string of a script, those inside of templates too."""
    at = start
    while found := IN_SCRIPT.search(code, at, end):
        at = found.end()
        if not found["template"]:
            yield found.start(), found["plain"] or found["single"] or ""
            continue
        text = ""
        while code[at] != "`":
            if code.startswith("${", at):
                close = _end_of_value(code, at + 2)
                yield from _of_code(code, at + 2, close)
                text, at = text + "{}", close + 1
            else:
                step = 2 if code[at] == "\\" else 1
                text, at = text + code[at : at + step], at + step
        yield found.start(), text
        at += 1


def _end_of_value(code: str, at: int) -> int:
    """Return where the value of a template that begins at a place ends."""
    depth = 1
    while depth:
        if code[at] == "`":
            at += 1
            while code[at] != "`":
                at = _end_of_value(code, at + 2) + 1 if code.startswith("${", at) else at + 1
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        at += 1
    return at - 1


def _of_module(path: Path) -> Iterator[tuple[int, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    # The docstring of a command is its help; others are for developers.
    helps = {
        f.body[0]
        for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef)
        and any(re.search(r"\b(command|group)\b", ast.unparse(d)) for d in f.decorator_list)
    }
    documents = {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and node not in helps
    }
    pieces = {v for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for v in node.values}
    for node in ast.walk(tree):
        if node in documents or node in pieces:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values),
            )


def main() -> None:
    """Print the list."""
    for name, line, text in sentences():
        sys.stdout.write(f"{name}:{line}: {' '.join(text.split())}\n")


if __name__ == "__main__":
    main()
