"""Queries: the files of `sql/`, filled in, put together and translated.

A file is one statement in DuckDB's dialect, valid SQL as it stands. It reads relations by names of
its own (``FROM "rows"``) and binds parameters (``$since``). Three marks say what varies:

``... -- if NAME``, ``... -- unless NAME``
    The line is there if, or unless, NAME is given.
``... -- each NAME``
    The line is there once for each item of NAME, with the parameters of the item.
``-- each NAME:`` to ``-- end``
    The lines between are there once for each item.

``"@name"`` is the identifier of that name. Functions that differ between engines, or that many
statements share, are macros in `sql/functions*.sql`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

_LINE = re.compile(r"^(?P<line>.*?)\s*-- (?P<mark>if|unless|each) (?P<name>\w+)(?P<block>:?)$")

_PARAMETER = re.compile(r"\$([a-z]\w*)")

_READS = re.compile(r'\b(FROM|JOIN) "(\w+)"')


class Identifier(str):
    """A name of a column that a query is filled in with."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table or view that an engine has, by its quoted name."""

    quoted: str


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A statement, what it binds, and the relations that it reads, by its names for them."""

    name: str
    text: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    reads: Mapping[str, "Relation"] = field(default_factory=dict)

    def composed(self, hint: str = "") -> tuple[str, dict[str, Any]]:
        """Return one statement, what it reads in front of it, and all that it binds.

        `hint` stands before the bracket of each relation: ``NOT MATERIALIZED`` where the engine
        knows it.
        """
        parts = _Parts(hint)
        text = parts.body(self)
        if parts.found:
            own = text.removeprefix("WITH ") if text.startswith("WITH ") else ""
            text = f"WITH {', '.join(parts.found)}" + (f", {own}" if own else f" {text}")
        return text, parts.parameters


Relation = Query | StoredTable


def query(name: str, **values: Any) -> Query:
    """Return a file filled in: relations that it reads, items of ``each``, flags and parameters."""
    reads = {key: value for key, value in values.items() if isinstance(value, Query | StoredTable)}
    lines, parameters = _filled(_statement(name), values, frozenset(), "")
    text = "\n".join(lines)
    wanted = set(_PARAMETER.findall(text))
    missing = wanted - set(parameters)
    if missing:
        raise ValueError(f"{name}.sql binds {sorted(missing)}, which was not given")
    return Query(name, text, {key: parameters[key] for key in sorted(wanted)}, reads)


@cache
def _statement(name: str) -> tuple[str, ...]:
    text = (files("calibration.runs") / "sql" / f"{name}.sql").read_text("utf-8")
    return tuple(
        line for line in text.splitlines()
        if line and (not line.lstrip().startswith("-- ") or line.startswith(("-- each", "-- end")))
    )  # fmt: skip


def _filled(
    lines: Sequence[str], values: Mapping[str, Any], own: frozenset[str], suffix: str
) -> tuple[list[str], dict[str, Any]]:
    """Return the lines, and the parameters; those of `own` carry the suffix."""
    found: list[str] = []
    bound: dict[str, Any] = {}

    def repeated(name: str, block: Sequence[str]) -> None:
        for k, item in enumerate(values[name]):
            more, parameters = _filled(block, values | item, own | set(item), f"{suffix}_{k}")
            found.extend(more)
            bound.update(parameters)

    rest: Iterator[str] = iter(lines)
    for line in rest:
        marked = _LINE.match(line)
        if marked is None:
            filled, parameters = _bound(line, values, own, suffix)
            found.append(filled)
            bound.update(parameters)
        elif marked["mark"] == "each":
            block = [marked["line"]]
            if marked["block"]:
                block = []
                for inside in rest:
                    if inside == "-- end":
                        break
                    block.append(inside)
            repeated(marked["name"], block)
        elif bool(values.get(marked["name"])) == (marked["mark"] == "if"):
            repeated_line, parameters = _filled([marked["line"]], values, own, suffix)
            found.extend(repeated_line)
            bound.update(parameters)
    return found, bound


def _bound(
    line: str, values: Mapping[str, Any], own: frozenset[str], suffix: str
) -> tuple[str, dict[str, Any]]:
    bound: dict[str, Any] = {}

    def numbered(match: re.Match[str]) -> str:
        name = match[1]
        if name not in values:
            return match[0]
        whole = name + suffix if name in own else name
        bound[whole] = values[name]
        return f"${whole}"

    line = re.sub(r"@(\w+)", lambda m: str(values[m[1]]).replace('"', '""'), line)
    return _PARAMETER.sub(numbered, line), bound


class _Parts:
    """The relations of one statement, each once and after those that it reads."""

    def __init__(self, hint: str) -> None:
        self.hint = hint
        self.found: list[str] = []
        self.parameters: dict[str, Any] = {}
        self._names: dict[int, str] = {}

    def body(self, query: Query) -> str:
        for name, value in query.parameters.items():
            if self.parameters.setdefault(name, value) != value:
                raise ValueError(f"two queries bind ${name} to different values")
        names = {alias: self._named(relation) for alias, relation in query.reads.items()}

        def named(match: re.Match[str]) -> str:
            alias = match[2]
            return f'{match[1]} {names[alias]} AS "{alias}"' if alias in names else match[0]

        return _READS.sub(named, query.text)

    def _named(self, relation: Relation) -> str:
        if isinstance(relation, StoredTable):
            return relation.quoted
        if id(relation) not in self._names:
            body = self.body(relation)
            name = f"{relation.name}_{len(self._names) + 1}"
            self._names[id(relation)] = name
            self.found.append(f'"{name}" AS {self.hint}(\n{body}\n)')
        return f'"{self._names[id(relation)]}"'


def quoted(name: str) -> str:
    """Return an identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def macros(*names: str) -> str:
    """Return the statements that make the functions of these files."""
    return "\n".join("\n".join(_statement(name)) for name in names)


@lru_cache(1_000)
def translated(text: str, dialect: str) -> str:
    """Return a statement in another dialect, with our functions written out."""
    import sqlglot
    from sqlglot import exp

    known = _functions(dialect)

    def written_out(node: Any) -> Any:
        if not isinstance(node, exp.Anonymous) or node.name.lower() not in known:
            return node
        parameters, body = known[node.name.lower()]
        given = dict(zip(parameters, node.expressions, strict=True))

        def replaced(inner: Any) -> Any:
            if isinstance(inner, exp.Column) and not inner.table and inner.name in given:
                return exp.paren(given[inner.name].copy())
            return inner

        return exp.paren(body.copy().transform(replaced)).transform(written_out)

    tree = sqlglot.parse_one(text, read="duckdb").transform(written_out)
    return str(tree.sql(dialect))


@cache
def _functions(dialect: str) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Return parameters and body of each function; those of the dialect take the first place."""
    import sqlglot

    made = sqlglot.parse(macros("functions"), read="duckdb")
    if dialect in ("postgres", "spark"):
        made += sqlglot.parse(macros(f"functions_{dialect}"), read=dialect)
    found = {}
    for statement in filter(None, made):
        head: Any = statement.this
        names = tuple(parameter.name for parameter in head.expressions)
        found[head.this.name.lower()] = names, statement.args["expression"]
    return found
