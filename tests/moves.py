"""Check that a commit only moves code: ``python -m tests.moves BASE [HEAD]``.

Every function, class and method under the packages is taken with its name inside its module and
a hash of its syntax. As often as each is there at BASE it must be there at HEAD, or in the work
tree when no HEAD is named; in which file does not matter. Statements of a module that are neither
(constants, aliases) must be the same ones, however often: of two equal aliases one is enough.

Docstrings of modules, imports anywhere, comments and layout are left out. Docstrings of functions
and classes are not. A name inside a text, such as a quoted annotation, is never renamed.

``--renamed old=new``, as often as needed, and ``--renames FILE`` with a line ``old new`` for each
say what BASE calls otherwise. `old` is an identifier, or ``module.name`` where it is used so, or
``module.*`` for whatever is used of it: ``labels.*=*`` for what no longer needs its prefix.
"""

import argparse
import ast
import hashlib
import io
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]

PACKAGES = ("calibration", "app", "reference_dataset")


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

Item = tuple[str, str]


class _Renamed(ast.NodeTransformer):
    """The same syntax with other identifiers."""

    def __init__(self, renames: Mapping[str, str]) -> None:
        self.names = renames

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field, value in ast.iter_fields(node):
            if isinstance(node, ast.Constant | ast.alias):
                continue
            if isinstance(value, str):
                setattr(node, field, self.names.get(value, value))
            elif isinstance(value, list):
                # The names of a global or nonlocal statement.
                value[:] = [self.names.get(v, v) if isinstance(v, str) else v for v in value]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        module = node.value.id if isinstance(node.value, ast.Name) else None
        for old in (f"{module}.{node.attr}", f"{module}.*"):
            if module is not None and old in self.names:
                new = self.names[old].replace("*", self.names.get(node.attr, node.attr))
                made = ast.parse(new, mode="eval").body
                if isinstance(made, ast.Name | ast.Attribute):
                    made.ctx = node.ctx
                return made
        return self.generic_visit(node)


class _WithoutImports(ast.NodeTransformer):
    """The same syntax without imports, and without blocks that held nothing else."""

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_If(self, node: ast.If) -> ast.AST | None:
        self.generic_visit(node)
        return node if node.body or node.orelse else None


def items(source: str, renames: Mapping[str, str] | None = None) -> tuple[list[Item], list[Item]]:
    """Return the definitions of a module and its other statements, each as name and hash."""
    tree = ast.parse(source)
    if ast.get_docstring(tree, clean=False) is not None:
        del tree.body[0]
    if renames:
        tree = _Renamed(renames).visit(tree)
    tree = _WithoutImports().visit(tree)
    definitions: list[Item] = []
    others: list[Item] = []
    for node in tree.body:
        if isinstance(node, Definition):
            definitions += _definitions(node, "")
        else:
            others.append((ast.unparse(node).splitlines()[0][:70], _hash(node)))
    return definitions, others


def _definitions(node: Definition, prefix: str) -> list[Item]:
    """Return a definition; of a class, its methods and what remains of it without them."""
    name = prefix + node.name
    found: list[Item] = []
    if isinstance(node, ast.ClassDef):
        for part in node.body:
            if isinstance(part, Definition):
                found += _definitions(part, f"{name}.")
        # Names of the methods stay, for their order.
        node.body = [
            ast.Expr(ast.Name(part.name)) if isinstance(part, Definition) else part
            for part in node.body
        ]
    return [(name, _hash(node)), *found]


def _hash(node: ast.AST) -> str:
    return hashlib.sha256(ast.dump(node).encode()).hexdigest()[:12]


def of_sources(
    sources: Iterable[str], renames: Mapping[str, str] | None = None
) -> tuple[Counter[Item], Counter[Item]]:
    """Return the definitions of all sources as often as they are there, and the rest once."""
    definitions: Counter[Item] = Counter()
    others: set[Item] = set()
    for source in sources:
        defined, more = items(source, renames)
        definitions.update(defined)
        others.update(more)
    return definitions, Counter(others)


def differences(
    base: Iterable[str], head: Iterable[str], renames: Mapping[str, str] | None = None
) -> list[str]:
    """Return what is not the same in two sets of sources, a line each; none: all only moved."""
    lines = []
    for before, after in zip(of_sources(base, renames), of_sources(head), strict=True):
        gone, new = before - after, after - before
        changed = {name for name, _ in gone} & {name for name, _ in new}
        lines += [f"changed  {name}" for name in sorted(changed)]
        for word, there in (("gone", gone), ("new", new)):
            names = Counter(name for name, _ in there.elements() if name not in changed)
            lines += [
                f"{word:<8} {name}" + (f" ({n} times)" if n > 1 else "")
                for name, n in sorted(names.items())
            ]
    return lines


def sources_at(revision: str, root: Path = ROOT) -> list[str]:
    """Return the modules of the packages at a revision."""
    there = subprocess.run(
        ["git", "ls-tree", "--name-only", revision, *PACKAGES],
        cwd=root, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    if not there:
        return []
    packed = subprocess.run(
        ["git", "archive", revision, *there], cwd=root, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = [archive.extractfile(m) for m in archive if m.isfile() and m.name.endswith(".py")]
        return [file.read().decode() for file in files if file is not None]


def sources_here(root: Path = ROOT) -> list[str]:
    """Return the modules of the packages in the work tree."""
    return [
        path.read_text("utf-8") for name in PACKAGES for path in sorted((root / name).rglob("*.py"))
    ]


def renames_of(pairs: Sequence[str], files: Sequence[Path]) -> dict[str, str]:
    """Return the new names by the old ones, from ``old=new`` and from files of ``old new``."""
    lines = [line for path in files for line in path.read_text("utf-8").splitlines()]
    parts = [pair.split("=") for pair in pairs]
    parts += [line.split() for line in lines if line.strip() and not line.startswith("#")]
    found: dict[str, str] = {}
    for part in parts:
        if len(part) != 2 or not all(part):
            raise SystemExit(f"no old and new name: {' '.join(part)!r}")
        old, new = part
        if found.setdefault(old, new) != new:
            raise SystemExit(f"{old} is renamed twice: {found[old]} and {new}")
    return found


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print what did not only move; return 1 if there is any."""
    parser = argparse.ArgumentParser(prog="python -m tests.moves", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("base")
    parser.add_argument("head", nargs="?", help="default: the work tree")
    parser.add_argument("--renamed", action="append", default=[], metavar="old=new")
    parser.add_argument("--renames", action="append", default=[], type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    renames = renames_of(given.renamed, given.renames)
    base = sources_at(given.base, root)
    head = sources_here(root) if given.head is None else sources_at(given.head, root)
    if not base:
        raise SystemExit(f"{given.base} has none of {', '.join(PACKAGES)}")
    found = differences(base, head, renames)
    sys.stdout.writelines(f"{line}\n" for line in found or ["Code has only moved."])
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
