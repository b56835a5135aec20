"""Numbers of the house that are kept for good: how finely it is cut, and what a report touches."""

import ast
import json
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from calibration import taxonomy as taxonomies
from tests.stores import copy_store

ROOT = Path(__file__).parents[1]
PACKAGES = ("app", "calibration", "reference_dataset")
# A seam, not a piece: what a front (command line, server, page) or a plug-in point reads.
# With one for each trace format, annotation tools, transfers to platforms, the card of a dataset.
MOST_SINGLE_IMPORTERS = 24
# A report aside: the judge's runner, reliability and imports came later; then exports (rows,
# dataset, command), the platforms (their APIs, transfers, scores, commands), annotation tools;
# `analyses.fingerprint` is apart from the data of a calibration, which a report on files need not
# load.
# Then the front door: words, scales, columns, layout and reading of tables, their options, how runs
# are recognised, and what an agent said; the command, analysis and text of `asr look`.
MOST_MODULES = 229
# Six of them say how tables are read: words, scales, columns, reading, recognition, and options.
MOST_TOUCHED = 59
# Prints the modules of which a function runs, but for what runs while a module is loaded.
TOUCHED = """
import json, sys
from calibration.cli import main

seen = set()


def loading(frame):
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "<module>" and name.startswith("calibration"):
            return True
        frame = frame.f_back
    return False


def called(frame, event, argument):
    name, code = frame.f_globals.get("__name__", ""), frame.f_code
    if event == "call" and name.startswith("calibration") and name not in seen:
        if code.co_flags & 1 and code.co_filename != "<string>" and not loading(frame.f_back):
            seen.add(name)


sys.setprofile(called)
try:
    main(sys.argv[1:], standalone_mode=False)
finally:
    sys.setprofile(None)
    packages = {name for name in seen if hasattr(sys.modules[name], "__path__")}
    print(json.dumps(sorted(seen - packages)), file=sys.stderr)
"""


@cache
def modules() -> dict[str, Path]:
    """Return every module by its name; packages under their own name."""
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def is_package(path: Path) -> bool:
    return path.name == "__init__.py"


def importers(found: dict[str, Path]) -> dict[str, set[str]]:
    """Return who imports each module, or names a class of it in full to load it when needed.

    Packages count neither as modules nor as importers.
    """
    by: dict[str, set[str]] = {name: set() for name, path in found.items() if not is_package(path)}
    for name, path in found.items():
        if is_package(path):
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    for imported in (node.module, f"{node.module}.{alias.name}"):
                        if imported in by:
                            by[imported].add(name)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = node.value.rpartition(".")[0]
                if named in by:
                    by[named].add(name)
    return by


def test_few_modules_have_a_single_importer() -> None:
    single = sorted(
        f"{name} <- {next(iter(by))}"
        for name, by in importers(modules()).items()
        if name.startswith("calibration.") and not name.startswith("calibration.cli.")
        if len(by) == 1
    )
    assert len(single) <= MOST_SINGLE_IMPORTERS, "\n".join(single)


def test_the_library_is_not_cut_finer() -> None:
    found = [n for n, path in modules().items() if n.startswith("calibration.")]
    assert len([n for n in found if not is_package(modules()[n])]) <= MOST_MODULES


def test_a_class_name_has_one_meaning() -> None:
    names = Counter(
        node.name
        for name, path in modules().items()
        if name.startswith("calibration")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, n in names.items() if n > 1] == []


def constants(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the texts that code holds, with their line; docstrings are none."""
    said = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.lineno, node.value


def test_only_the_taxonomy_knows_its_classes_and_questions() -> None:
    taxonomy = taxonomies.default_taxonomy()
    # An ordinary word, which fields and options of other things are called too.
    questions = {node.id for node in taxonomy.nodes} - {"output"}
    known = {*taxonomy.names, *questions}
    found = []
    for name, path in modules().items():
        if name.startswith("reference_dataset") or name == "calibration.taxonomy":
            continue
        tree = tree_of(path)
        for line, text in constants(tree):
            # Also as a part of a key, such as "share:NAME".
            if known.intersection({text, *text.split(":")}):
                found.append(f"{path.relative_to(ROOT)}:{line}: {text!r}")
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "calibration.taxonomy":
                found += [
                    f"{path.relative_to(ROOT)}: imports {alias.name}"
                    for alias in node.names
                    if alias.name.isupper() and known.intersection(vars(taxonomies)[alias.name])
                ]
    assert found == [], "\n".join(found)


def test_a_report_on_a_store_touches_few_modules(built_demo: Path, tmp_path: Path) -> None:
    store = copy_store(built_demo, tmp_path / "demo.duckdb")
    done = subprocess.run(
        [sys.executable, "-c", TOUCHED, "report", "--store", str(store)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    touched = json.loads(done.stderr.splitlines()[-1])
    assert len(touched) <= MOST_TOUCHED, "\n".join(touched)


def test_each_package_names_its_modules_in_its_docstring() -> None:
    missing = []
    for path in (ROOT / "calibration").rglob("__init__.py"):
        about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        named = {file.stem for file in path.parent.glob("*.py")} - {"__init__"}
        if path.parent.name != "calibration":
            missing += [f"{path.parent}: {name}" for name in named if f"`{name}`" not in about]
    assert not missing


def test_the_distribution_holds_every_package() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    assert listed["packages"] == sorted(n for n, path in modules().items() if is_package(path))
