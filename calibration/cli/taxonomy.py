"""The command of the taxonomy: show it, and use your own."""

from collections.abc import Iterator
from pathlib import Path

import click

from calibration.cli.terminal import (
    EXISTING,
    Group,
    open_to_write,
    print_json,
    print_lines,
    taxonomy_in_force,
    with_json,
    with_store,
)
from calibration.taxonomy import Taxonomy, load_taxonomy
from calibration.text import own_credit


@click.group(cls=Group)
def taxonomy() -> None:
    """Show the classes, credits and questions in force, or use your own."""


@taxonomy.command()
@with_store
@with_json
def show(path: Path, as_data: bool) -> None:
    """Show the taxonomy in force: that of the store, or the published one.

    \b
    asr taxonomy show
    """
    _print_taxonomy(taxonomy_in_force(path), as_data)


@taxonomy.command()
@click.argument("file", type=EXISTING)
@with_store
@with_json
def use(file: Path, path: Path, as_data: bool) -> None:
    """Put a taxonomy of your own (TOML) in force; a store that is not there yet is made.

    \b
    asr taxonomy use my-taxonomy.toml
    """
    with open_to_write(path, create=True, taxonomy=load_taxonomy(file)) as store:
        in_force = store.taxonomy()
    _print_taxonomy(in_force, as_data)


def _print_taxonomy(shown: Taxonomy, as_data: bool) -> None:
    if as_data:
        print_json(shown.to_dict() | {"fingerprint": shown.fingerprint})
    else:
        print_lines(_taxonomy_lines(shown))


def _taxonomy_lines(shown: Taxonomy) -> Iterator[str]:
    """Yield classes and questions of a taxonomy."""
    yield f"taxonomy {shown.version} ({shown.fingerprint[:12]})"
    for item in shown.classes:
        yield f"  {item.name:<14} credit {item.credit:g}  {item.meaning}"
    for node in shown.nodes:
        yield f"  {node.id}: {node.question}  yes -> {node.yes}, no -> {node.no}"
    own = shown.credit_table.differing(shown.names, shown.own_credit)
    yield from (f"  {line}" for line in own_credit(own))
