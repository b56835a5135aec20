"""Opening a store for a command: the file itself, or what the app offers while it holds it."""

from pathlib import Path

import click

from calibration.errors import StoreLockedError
from calibration.store import RemoteStore, Store
from calibration.taxonomy import Taxonomy


def open_to_read(path: Path) -> Store:
    """Open a store for questions; say so when the answer comes from a snapshot."""
    store, age = Store.open_to_read(path)
    if age is not None:
        click.echo(f"note: the app holds {path}; read from its snapshot, {age:.0f} s old", err=True)
    return store


def open_to_write(path: Path, *, create: bool = False, taxonomy: Taxonomy | None = None) -> Store:
    """Open a store for a change; while the app holds it, the change is handed over to it."""
    try:
        return Store.open(path, create=create, taxonomy=taxonomy)
    except StoreLockedError as locked:
        remote = RemoteStore(path, locked, waiting=_tell)
        if taxonomy is not None:
            remote.set_taxonomy(taxonomy)
        return remote


def _tell(seconds: float) -> None:
    if seconds > 2:
        click.echo(f"handed over to the app, waiting ({seconds:.0f} s) ...", err=True)
