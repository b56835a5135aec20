"""A copy of the store that other processes may read while the app holds the file.

DuckDB lets no other process open a file that one writes. The text of the traces lies in
Parquet parts that everybody can read; the other tables are small and are copied beside the
store, under a temporary name and then in one rename.
"""

import os
import time
from pathlib import Path

import duckdb

from calibration.errors import StoreError, StoreLockedError
from calibration.store.database import CONFIG, Database


def snapshot_path(store: Path) -> Path:
    """Return where the snapshot of a store lies."""
    return store.with_suffix(".snapshot.duckdb")


def publish(db: Database) -> Path:
    """Copy the tables of a store as they are now and put the copy in place."""
    target = snapshot_path(db.path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    db.copy_to(temporary)
    with temporary.open("rb") as handle:
        os.fsync(handle.fileno())
    temporary.replace(target)
    return target


def age(store: Path) -> float:
    """Return the seconds since the snapshot of a store was written."""
    return max(0.0, time.time() - snapshot_path(store).stat().st_mtime)


def open_snapshot(store: Path, locked: StoreLockedError) -> Database:
    """Open the snapshot of a store that another process holds, to read.

    Raises
    ------
    StoreLockedError
        `locked`, if there is no snapshot.
    StoreError
        If the snapshot cannot be read.
    """
    path = snapshot_path(store)
    if not path.exists():
        raise locked
    try:
        connection = duckdb.connect(str(path.absolute()), read_only=True, config=CONFIG)
    except duckdb.Error as error:
        raise StoreError(
            f"{path}: the snapshot cannot be opened; the app writes a new one after the next label"
        ) from error
    return Database.on_snapshot(store, connection)
