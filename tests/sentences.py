"""Every text that a user can meet: ``python -m tests.sentences`` prints the list, to be read."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = ("app", "calibration/cli", "calibration/reporting", "calibration/analyses")
SCRIPTS = ("app/desk/js",)
# Two words or more, or one that begins like a label: not a key, a name or a piece of code.
SENTENCE = re.compile(r"[A-Za-z][^\s]* +\S|^[A-Z][a-z]+$")
IN_SCRIPT = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')


def sentences() -> Iterator[tuple[str, int, str]]:
    """Return file, line and text; f-strings have {} where a value comes in."""
    for folder in PYTHON:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            yield from ((name, line, text) for line, text in _of_module(path) if is_shown(text))
    for folder in SCRIPTS:
        for path in sorted((ROOT / folder).glob("*.js")):
            name = path.relative_to(ROOT).as_posix()
            code = path.read_text(encoding="utf-8")
            for found in IN_SCRIPT.finditer(code):
                text = re.sub(r"\$\{[^}]*\}", "{}", found[1] or found[2] or "")
                if is_shown(text):
                    yield name, code.count("\n", 0, found.start()) + 1, text


def is_shown(text: str) -> bool:
    """Return whether a text is for people: not a key, a name, SQL or a style."""
    return bool(SENTENCE.search(text)) and not re.search(
        r"\bSELECT\b|\bFROM\b|\bWHERE\b|\bINSERT INTO\b|[{;]\s*$|^\s*[.#\[<]", text
    )


def _of_module(path: Path) -> Iterator[tuple[int, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    commands = {f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.decorator_list}
    # The docstring of a command is its help; others are for developers.
    helps = {f.body[0] for f in commands}
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
