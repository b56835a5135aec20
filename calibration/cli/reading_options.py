"""The options by which a command reads a table: one group, the same words in every command."""

import csv
import functools
from collections.abc import Callable, Sequence
from typing import Any

import click

from calibration.cli.terminal import Command, FiniteRange, pairs
from calibration.errors import InputError
from calibration.tables.reading import MAX_LEFT_OUT, ReadingOptions
from calibration.tables.scales import Scale, scale_from

SECTION = "Reading the file"


class FileOption(click.Option):
    """An option of the group "Reading the file"."""


class FileCommand(click.Command):
    """A command whose help lists the options for reading a file in a group of their own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the command, then those for reading the file."""
        groups: dict[str, list[tuple[str, str]]] = {"Options": [], SECTION: []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Argument):
                continue
            record = param.get_help_record(ctx)
            if record is not None:
                groups[SECTION if isinstance(param, FileOption) else "Options"].append(record)
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


OPTIONS: dict[str, dict[str, Any]] = {
    "--column": {
        "multiple": True,
        "metavar": "ROLE=NAME",
        "help": "Read ROLE from this column; with nothing after the =, ROLE is left out.",
    },
    "--map": {
        "multiple": True,
        "metavar": "WORD=CLASS,...",
        "help": "Take words as a class, as pass or fail, or with nothing after the = as missing.",
    },
    "--where": {
        "multiple": True,
        "metavar": "COLUMN=VALUE",
        "help": "Read only the rows with this value in this column.",
    },
    "--scale": {"metavar": "LOW-HIGH", "help": "Read numbers as scores on this scale, as 1-5."},
    "--pass-at": {
        "type": FiniteRange(),
        "metavar": "SCORE",
        "help": "Take this score and higher ones as a pass, lower ones as a fail.",
    },
    "--max-left-out": {
        "type": FiniteRange(0, 1),
        "metavar": "SHARE",
        "help": "Give a rate although up to this share of the runs is left out for a reason that "
        f"may depend on the outcome.  [default: {MAX_LEFT_OUT:g}]",
    },
    "--decimal": {
        "type": click.Choice(["comma", "point"]),
        "help": "Say which sign parts the decimals of numbers such as 1,234.",
    },
    "--dates": {
        "type": click.Choice(["dmy", "mdy"]),
        "help": "Say whether the day or the month comes first in dates such as 03/04/2026.",
    },
    "--encoding": {
        "metavar": "NAME",
        "help": "Read a text file in this encoding, such as cp1252.  [default: UTF-8]",
    },
    "--raters": {
        "multiple": True,
        "metavar": "COLUMN,...",
        "help": "Read the labels of one person each from these columns; a * means any characters.",
    },
    "--latest": {
        "is_flag": True,
        "help": "Where rows of one run contradict each other, let the latest count, by a column "
        "of times.",
    },
}


# For tables of labels and verdicts, which have no limit for rows left out.
OF_ANSWERS = (
    "--column",
    "--map",
    "--where",
    "--scale",
    "--pass-at",
    "--decimal",
    "--dates",
    "--encoding",
    "--raters",
)
# Those that say something of a table with an outcome in each row.
OF_OUTCOMES = (
    "--column",
    "--map",
    "--where",
    "--scale",
    "--pass-at",
    "--max-left-out",
    "--decimal",
    "--dates",
    "--encoding",
    "--latest",
)
# Those that say something of any other table.
OF_TABLES = ("--column", "--map", "--where", "--decimal", "--encoding")


def reading_params(names: Sequence[str] = tuple(OPTIONS)) -> tuple[str, ...]:
    """Return the parameters of these options, as `refuse_given` takes them.

    >>> reading_params(["--pass-at"])
    ('read_pass_at',)
    """
    return tuple(f"read_{name[2:].replace('-', '_')}" for name in names)


def with_reading_options(*names: str) -> Callable[[Command], Command]:
    """Return a decorator that adds these options; the command receives them as `reading`.

    `names` are keys of `OPTIONS`; without any, all of them are added.
    """
    listed = names or tuple(OPTIONS)

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            params = zip(listed, reading_params(listed), strict=True)
            texts = {name: kwargs.pop(param) for name, param in params}
            return command(*args, reading=reading_from(texts), **kwargs)

        decorated: Command = wrapped
        for name in reversed(listed):
            (param,) = reading_params([name])
            decorated = click.option(name, param, cls=FileOption, **OPTIONS[name])(decorated)
        return decorated

    return decorate


def reading_from(texts: dict[str, Any]) -> ReadingOptions:
    """Return the options as the library has them; those that are not in `texts` are not given."""
    scale = texts.get("--scale")
    return ReadingOptions(
        columns=columns_from(texts.get("--column") or ()),
        mapped=words_from(texts.get("--map") or ()),
        where=tuple(pairs(texts.get("--where") or (), "--where")),
        scale=None if scale is None else _scale(scale),
        pass_at=texts.get("--pass-at"),
        max_left_out=texts.get("--max-left-out"),
        decimal=texts.get("--decimal"),
        dates=texts.get("--dates"),
        encoding=texts.get("--encoding"),
        raters=raters_from(texts.get("--raters") or ()),
        latest=bool(texts.get("--latest")),
    )


def _scale(text: str) -> Scale:
    return scale_from(text)


def columns_from(texts: Sequence[str]) -> dict[str, str | None]:
    """Return the column by role of ROLE=NAME, each role and each column once."""
    columns: dict[str, str | None] = {}
    for role, name in pairs(texts, "--column"):
        if role in columns:
            raise InputError(f"--column: {role!r:.80} is given twice")
        if name and name in columns.values():
            other = next(known for known, column in columns.items() if column == name)
            raise InputError(
                f"--column: the column {name!r:.80} has two names, {other!r:.80} and {role!r:.80}"
            )
        columns[role] = name or None
    return columns


def words_from(texts: Sequence[str]) -> dict[str, str]:
    """Return what words are taken as; one that holds a comma is in double quotes."""
    mapped: dict[str, str] = {}
    for text in _cells(texts, "--map"):
        word, sign, into = text.rpartition("=")
        if not sign or not word.strip():
            raise InputError(f"--map: must be WORD=CLASS, got {text!r:.80}")
        if word.strip() in mapped:
            raise InputError(f"--map: names {word.strip()!r:.80} twice")
        mapped[word.strip()] = into.strip()
    return mapped


def raters_from(texts: Sequence[str]) -> tuple[str, ...]:
    """Return names separated by commas; one that holds a comma is in double quotes."""
    names = _cells(texts, "--raters")
    if "" in names:
        raise InputError("--raters: a name is empty")
    return tuple(names)


def _cells(texts: Sequence[str], option: str) -> list[str]:
    try:
        return [name.strip() for row in csv.reader(texts, skipinitialspace=True) for name in row]
    except csv.Error as error:
        raise InputError(f"{option}: {error}") from error
