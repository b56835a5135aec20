"""Backups of a store: a consistent copy of everything, checked by SHA-256, and the way back.

The database is copied table by table as of one moment, so that a label which lies in the log alone
is there, also while people label. The text of the traces lies in files that never change: they are
linked where the disk is the same, else copied. A backup holds the secrets of the store (hashes of
passphrases) and only its owner may read it.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb

from calibration.errors import InputError, StoreError, StoreLockedError
from calibration.files import private_folder, put, put_in_place, sync_folder
from calibration.store.database import Database, connect
from calibration.store.files import owner_only, sha256_of, sync_file
from calibration.store.schema import check_known, check_schema, create_schema, migrations

MANIFEST = "manifest.json"
STORE_FILE = "store.duckdb"

# What other processes see of a running app, and how far pulls are, is no part of a backup.
_PASSING = (".snapshot.duckdb", ".commits", ".inbox", ".platforms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A finished backup: its folder, and what its manifest says."""

    folder: Path
    made_at: datetime
    schema: int
    n_files: int
    n_bytes: int
    removed: tuple[Path, ...] = ()


def write_backup(db: Database, folder: Path, *, keep: int | None = None) -> Backup:
    """Write a backup into a new folder below `folder`; keep the newest `keep` of this store.

    Raises
    ------
    InputError
        If the folder cannot be written, or lies within the files of the store.
    StoreError
        If a part of the traces is missing: the backup would be incomplete.
    """
    now = datetime.now(UTC)
    name = f"{db.path.stem}-{now:%Y%m%dT%H%M%S.%fZ}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with owner_only():
            work = private_folder(folder / f".{name}.{uuid4().hex[:8]}")
            try:
                manifest = _fill(db, work, now)
                _put_manifest(work, manifest)
                put_in_place(work, folder / name)
            except BaseException:
                shutil.rmtree(work, ignore_errors=True)
                raise
    except (OSError, duckdb.Error) as error:
        where = getattr(error, "filename", None) or folder
        raise InputError(
            f"{where}: the backup was not written ({_why(error)}); nothing of it is left"
        ) from error
    removed = () if keep is None else tuple(_rotate(folder, manifest["store_id"], keep))
    return _described(folder / name, manifest, removed)


def backups(folder: Path) -> list[Backup]:
    """Return the finished backups in a folder, oldest first."""
    found = []
    for manifest in sorted(folder.glob(f"*/{MANIFEST}")):
        with suppress(StoreError):
            found.append(_described(manifest.parent, read_manifest(manifest.parent)))
    return sorted(found, key=lambda one: one.made_at)


def read_manifest(backup: Path) -> dict[str, Any]:
    """Return the manifest of a backup; `StoreError` if there is none."""
    try:
        found = json.loads((backup / MANIFEST).read_text(encoding="utf-8"))
        if found["format"] == 1 and isinstance(found["files"], dict):
            return dict(found)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{backup}: is not a backup ({MANIFEST} is missing or damaged)") from error
    raise StoreError(f"{backup}: was written by a newer version; update asr-calibration")


def verify_backup(backup: Path) -> Backup:
    """Check every file of a backup; `StoreError` names those that are missing or changed."""
    manifest = read_manifest(backup)
    wrong = [
        name
        for name, known in sorted(manifest["files"].items())
        if not _is_inside(backup, name) or _digest(backup / name) != known["sha256"]
    ]
    if wrong:
        named = ", ".join(wrong[:3]) + (", ..." if len(wrong) > 3 else "")
        raise StoreError(
            f"{backup}: {len(wrong)} of {len(manifest['files'])} files are missing or changed "
            f"({named}); take another backup"
        )
    return _described(backup, manifest)


def restore_backup(backup: Path, store: Path, *, replace: bool = False) -> Path | None:
    """Put a backup in the place of a store; return where the files before it now lie.

    Raises
    ------
    StoreLockedError
        If a process has the store open.
    InputError
        If there is a store already and `replace` is false.
    StoreError
        If the backup is damaged or too new; nothing was changed.
    """
    verify_backup(backup)
    with_schema = connect(backup / STORE_FILE, read_only=True)
    try:
        check_known(backup / STORE_FILE, with_schema)
    finally:
        with_schema.close()
    before = [path for path in _everything(store) if path.exists()]
    if before and not replace:
        raise InputError(
            f"{before[0]}: exists already; --replace moves it away and restores the backup"
        )
    _check_free(store)
    try:
        return _put_back(backup, store, before)
    except OSError as error:
        raise StoreError(
            f"{error.filename or store}: the backup was not restored ({error.strerror})"
        ) from error


def _put_back(backup: Path, store: Path, before: list[Path]) -> Path | None:
    """Copy a backup beside a store, then put the store aside and the copy in its place."""
    store.parent.mkdir(parents=True, exist_ok=True)
    with owner_only():
        work = private_folder(store.with_name(f".{store.stem}.restore-{uuid4().hex[:8]}"))
        try:
            for name in read_manifest(backup)["files"]:
                (work / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(backup / name, work / name)
                sync_file(work / name)
            aside = _put_aside(store, before)
            for found in work.iterdir():
                if found.name != STORE_FILE:
                    put_in_place(found, store.with_suffix(found.suffix))
            # Last, so that a cut before it leaves no store rather than half of one.
            put_in_place(work / STORE_FILE, store)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return aside


def upgrade(path: Path, *, backup: Path | None = None) -> tuple[int, int, Path | None]:
    """Bring a store to the schema of this version, with a backup first.

    Returns
    -------
    tuple
        The schema before and after, and the backup (None: nothing was to be done).

    Raises
    ------
    StoreError
        As `check_schema`, but for a schema that is merely older.
    """
    if not path.exists():
        raise InputError(f"{path}: there is no store here")
    with owner_only():
        connection = connect(path)
        try:
            connection.execute("PRAGMA disable_checkpoint_on_shutdown")
            before, newest = check_known(path, connection), migrations()[-1].version
            connection.execute("PRAGMA enable_checkpoint_on_shutdown")
            if before == newest:
                return before, newest, None
            db = Database.over(path, connection)
            kept = write_backup(db, backup or path.with_name(f"{path.stem}-backups"))
            with connection.cursor() as cursor:
                cursor.begin()
                try:
                    create_schema(cursor, after=before)
                    check_schema(path, cursor)
                    cursor.commit()
                except BaseException:
                    with suppress(duckdb.Error):
                        cursor.rollback()
                    raise
            return before, newest, kept.folder
        except duckdb.Error as error:
            raise StoreError(
                f"{path}: was not upgraded and is as it was ({_why(error)})"
            ) from error
        finally:
            connection.close()


def _fill(db: Database, work: Path, now: datetime) -> dict[str, Any]:
    """Copy the store into a folder; return the manifest."""
    db.copy_to(work / STORE_FILE, secrets=True)
    sync_file(work / STORE_FILE)
    with db.read() as cursor:
        schema = check_known(db.path, cursor)
    connection = connect(work / STORE_FILE, read_only=True)
    try:
        used = {row[0] for row in connection.execute("SELECT part FROM trace").fetchall()}
        state = None
        if schema > 1:
            state = connection.execute("SELECT * FROM store_state").fetchone()
    finally:
        connection.close()
    for found, suffix in _beside(db.path):
        for file in [found] if found.is_file() else sorted(found.rglob("*")):
            # A part that is being written is of an import that is not finished.
            if file.is_file() and not file.name.startswith("."):
                inside = file.relative_to(found) if found.is_dir() else Path()
                _link_or_copy(file, work / f"{Path(STORE_FILE).stem}{suffix}" / inside)
    parts = work / f"{Path(STORE_FILE).stem}.traces"
    missing = sorted(used - {part.name for part in parts.glob("*")})
    if missing:
        raise StoreError(
            f"{db.path.with_suffix('.traces')}: {len(missing)} of {len(used)} parts are missing "
            f"({missing[0]}); import the runs again, or back up with what is left after "
            "`asr doctor`"
        )
    files = {
        str(file.relative_to(work).as_posix()): {
            "sha256": sha256_of(file), "bytes": file.stat().st_size,
        }
        for file in sorted(work.rglob("*"))
        if file.is_file()
    }  # fmt: skip
    return {
        "format": 1, "store": db.path.name, "made_at": now.isoformat(),
        "asr_calibration": version_of("asr-calibration"), "schema": schema,
        "store_id": None if state is None else str(state[0]),
        "commits": None if state is None else state[1], "files": files,
    }  # fmt: skip


def _put_manifest(work: Path, manifest: dict[str, Any]) -> None:
    put(work / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
    for folder in (work, *(path for path in work.rglob("*") if path.is_dir())):
        sync_folder(folder)


def _everything(store: Path) -> list[Path]:
    """Return the paths of a store: the database, its log, and what lies beside it."""
    beside = [path for path, _ in _beside(store)]
    passing = [store.with_suffix(suffix) for suffix in _PASSING]
    return [store, store.with_name(store.name + ".wal"), *passing, *beside]


def _beside(store: Path) -> Iterator[tuple[Path, str]]:
    """Yield the folders and files beside a store that belong to it, with their suffix."""
    for suffix in (".traces", ".reference", ".judge"):
        path = store.with_suffix(suffix)
        if path.exists():
            yield path, suffix


def _link_or_copy(source: Path, target: Path) -> None:
    """Link a file that never changes; copy it to another disk."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".parquet":
        with suppress(OSError):
            os.link(source, target)
            return
    shutil.copyfile(source, target)
    sync_file(target)


def _check_free(store: Path) -> None:
    """Refuse to restore over a store that a process has open."""
    if not store.exists():
        return
    try:
        connect(store, read_only=True).close()
    except StoreLockedError as locked:
        raise StoreLockedError(
            f"{store}: a process has the store open; stop the app, then restore"
        ) from locked
    except StoreError:  # damaged: that is what a backup is for
        return


def _put_aside(store: Path, before: list[Path]) -> Path | None:
    """Move the files of a store into a folder of their own; nothing is deleted."""
    if not before:
        return None
    now = datetime.now(UTC)
    aside = private_folder(store.with_name(f"{store.stem}-before-restore-{now:%Y%m%dT%H%M%S.%fZ}"))
    for path in before:
        path.replace(aside / path.name)
    return aside


def _rotate(folder: Path, store_id: str | None, keep: int) -> Iterator[Path]:
    """Remove the oldest backups of a store; others in the folder are left alone."""
    own = [b for b in backups(folder) if read_manifest(b.folder)["store_id"] == store_id]
    for old in own[:-keep] if store_id is not None else []:
        shutil.rmtree(old.folder)
        yield old.folder


def _described(folder: Path, manifest: dict[str, Any], removed: tuple[Path, ...] = ()) -> Backup:
    sizes = [known["bytes"] for known in manifest["files"].values()]
    return Backup(
        folder=folder,
        made_at=datetime.fromisoformat(manifest["made_at"]),
        schema=manifest["schema"],
        n_files=len(sizes),
        n_bytes=sum(sizes),
        removed=removed,
    )


def _why(error: Exception) -> str:
    """Return the reason in an error of the system or of DuckDB."""
    return getattr(error, "strerror", None) or str(error).splitlines()[0]


def _is_inside(backup: Path, name: str) -> bool:
    return (backup / name).resolve().is_relative_to(backup.resolve())


def _digest(path: Path) -> str | None:
    try:
        return sha256_of(path)
    except OSError:
        return None
