"""What is wrong with a store and what lies beside it, and what to do about it."""

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version as version_of
from pathlib import Path

import duckdb
import pyarrow as pa

from calibration.errors import StoreError, StoreLockedError
from calibration.store.database import Cursor, commits_path, connect, missing_commits
from calibration.store.files import make_private
from calibration.store.schema import check_known, migrations
from calibration.store.store import (
    REQUEST,
    SNAPSHOT_EVERY,
    age,
    inbox,
    is_attended,
    snapshot_path,
)
from calibration.store.traces import part_is_whole, parts_directory

# A request or a temporary file this old has nobody who waits for it.
ABANDONED = 3_600.0
LITTLE_DISK = 1 << 30
OK, WARNING, PROBLEM, REPAIRED = "ok", "warning", "problem", "repaired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check: what was found, and what to do (empty: nothing)."""

    check: str
    status: str
    found: str
    mend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """All checks of one store."""

    store: Path
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether no check found a problem; warnings are none."""
        return all(one.status != PROBLEM for one in self.findings)


def examine(store: Path, *, repair: bool = False) -> Examination:
    """Check a store and what lies beside it; with `repair`, mend what is safe to mend.

    Safe are: taking the rights of others from the files, removing what unfinished writes left, and
    going on without changes that are gone for good.
    """
    return Examination(store=store, findings=tuple(_findings(store, repair=repair)))


def _findings(store: Path, *, repair: bool) -> Iterator[Finding]:
    yield Finding(
        check="versions",
        status=OK,
        found=f"asr-calibration {version_of('asr-calibration')}, DuckDB {duckdb.__version__}, "
        f"pyarrow {pa.__version__}",
    )
    if not store.exists():
        yield Finding(
            check="store", status=PROBLEM, found=f"there is no file {store}",
            mend="`asr restore BACKUP`, or `asr import FILES` for a new store",
        )  # fmt: skip
        return
    yield from _database(store, repair=repair)
    yield _snapshot(store)
    yield from _requests(store)
    yield _leftovers(store, repair=repair)
    yield _rights(store, repair=repair)
    yield _disk(store)


def _database(store: Path, *, repair: bool) -> Iterator[Finding]:
    """Yield the checks that read the database, or its snapshot while the app runs."""
    attended = is_attended(store)
    try:
        connection = connect(store, read_only=True)
        yield Finding(check="lock", status=OK, found="no process has the store open")
    except StoreLockedError as locked:
        yield Finding(
            check="lock", status=OK if attended else WARNING,
            found="the app has the store open" if attended else str(locked),
            mend="" if attended else "end that process if it is not the app",
        )  # fmt: skip
        try:
            connection = connect(snapshot_path(store), read_only=True)
        except StoreError as error:
            yield Finding(
                check="store", status=WARNING, found=f"was not read: {error}",
                mend="stop the app and run this again",
            )  # fmt: skip
            return
    except StoreError as error:
        yield Finding(
            check="store", status=PROBLEM, found=str(error),
            mend=f"`asr restore BACKUP --store {store} --replace`",
        )  # fmt: skip
        return
    checks = (
        _tables(store, connection),
        _complete(store, connection, repair=repair and not attended),
        _parts(store, connection),
    )
    try:
        for check in checks:
            try:
                yield from check
            except duckdb.Error as error:
                yield Finding(
                    check="store", status=PROBLEM, found=str(error).splitlines()[0],
                    mend=f"`asr restore BACKUP --store {store} --replace`",
                )  # fmt: skip
                return
    finally:
        connection.close()


def _tables(store: Path, cursor: Cursor) -> Iterator[Finding]:
    try:
        version, newest = check_known(store, cursor), migrations()[-1].version
    except StoreError as error:
        yield Finding(check="schema", status=PROBLEM, found=str(error))
        return
    yield Finding(
        check="schema",
        status=OK if version == newest else PROBLEM,
        found=f"schema {version} of {newest}",
        mend="" if version == newest else f"`asr upgrade --store {store}`",
    )
    # Every block is read: DuckDB checks the checksum of each.
    damaged, n_rows = [], 0
    names = cursor.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal").fetchall()
    for (table,) in sorted(names):
        try:
            found = cursor.execute(f'SELECT count(COLUMNS(*)), count(*) FROM "{table}"').fetchone()
            n_rows += 0 if found is None else found[-1]
        except duckdb.Error as error:
            damaged.append(f"{table} ({str(error).splitlines()[0]})")
    yield Finding(
        check="tables",
        status=PROBLEM if damaged else OK,
        found=f"damaged: {', '.join(damaged)}" if damaged else f"{n_rows:,} rows can be read",
        mend=f"`asr restore BACKUP --store {store} --replace`" if damaged else "",
    )


def _complete(store: Path, cursor: Cursor, *, repair: bool) -> Iterator[Finding]:
    try:
        missing = missing_commits(store, cursor)
    except duckdb.CatalogException:  # an older schema has no count
        return
    status, mend = OK, ""
    if missing and repair:
        commits_path(store).unlink()
        status, mend = REPAIRED, "the store goes on without them"
    elif missing:
        status = PROBLEM
        mend = f"`asr restore BACKUP --store {store} --replace`, or --repair to go on without"
    found = f"the last {missing:,} changes are missing" if missing else "no change is missing"
    yield Finding(check="changes", status=status, found=found, mend=mend)


def _parts(store: Path, cursor: Cursor) -> Iterator[Finding]:
    """Yield whether the text of every trace is there and as it was written."""
    directory = parts_directory(store)
    found = cursor.execute("SELECT part, list(trace_id ORDER BY seq) FROM trace GROUP BY part")
    used: dict[str, list[str]] = dict(found.fetchall())
    there = {part.name: part for part in directory.glob("*.parquet")}
    bad = [name for name in used if name not in there or not part_is_whole(there[name])]
    ids = [trace_id for name in bad for trace_id in used[name]]
    shown = ", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "")
    yield Finding(
        check="traces",
        status=PROBLEM if bad else OK,
        found=f"{len(bad)} of {len(used)} parts are missing or changed; the text of {len(ids):,} "
        f"traces cannot be trusted ({shown})"
        if bad
        else f"{len(used)} parts, each as it was written",
        mend="import the files of these runs again: their text is written again" if bad else "",
    )
    orphans = [there[name] for name in sorted(there.keys() - used)]
    size = sum(part.stat().st_size for part in orphans)
    yield Finding(
        check="orphans",
        status=OK,
        found=f"{len(orphans)} parts ({size:,} bytes) that no trace uses",
    )


def _snapshot(store: Path) -> Finding:
    path = snapshot_path(store)
    if not path.exists():
        return Finding(check="snapshot", status=OK, found="none; the app writes one")
    seconds = age(store)
    # A store at rest needs no new one.
    waited = time.time() - max(p.stat().st_mtime for p in _changing(store))
    late = is_attended(store) and seconds - waited > 10 * SNAPSHOT_EVERY
    return Finding(
        check="snapshot",
        status=WARNING if late else OK,
        found=f"{seconds:,.0f} s old",
        mend="see the log of the app: it could not write a new one" if late else "",
    )


def _changing(store: Path) -> list[Path]:
    return [p for p in (store, store.with_name(store.name + ".wal")) if p.exists()]


def _requests(store: Path) -> Iterator[Finding]:
    folder = inbox(store)
    waiting = sorted(folder.glob(f"*{REQUEST}"))
    oldest = max((time.time() - path.stat().st_mtime for path in waiting), default=0.0)
    yield Finding(
        check="inbox",
        status=WARNING if oldest > ABANDONED else OK,
        found=f"{len(waiting)} requests wait"
        + (f", the oldest for {oldest:,.0f} s" if waiting else ""),
        mend="start the app, or open the store with any command" if oldest > ABANDONED else "",
    )
    refused = list((folder / "refused").glob(f"*{REQUEST}"))
    if refused:
        yield Finding(
            check="refused", status=WARNING, found=f"{len(refused)} requests were refused",
            mend=f"run their commands again; then delete {folder / 'refused'}",
        )  # fmt: skip


def _leftovers(store: Path, *, repair: bool) -> Finding:
    """Report temporary files that a cut write left."""
    folders = (parts_directory(store), inbox(store), store.parent)
    stale = [
        path
        for folder in folders
        for path in folder.glob(".*")
        if path.is_file() and time.time() - path.stat().st_mtime > ABANDONED
        and (folder != store.parent or path.name.startswith(f".{store.stem}."))
    ]  # fmt: skip
    if repair:
        for path in stale:
            path.unlink(missing_ok=True)
    return Finding(
        check="leftovers",
        status=OK if not stale else REPAIRED if repair else WARNING,
        found=f"{len(stale)} files of writes that were cut",
        mend="" if repair or not stale else "--repair removes them",
    )


def _rights(store: Path, *, repair: bool) -> Finding:
    """Report files that others may read."""
    if os.name != "posix":
        return Finding(check="rights", status=OK, found="not checked on this system")
    folders = [parts_directory(store), inbox(store)]
    folders += [store.with_suffix(suffix) for suffix in (".judge", ".platforms")]
    beside = [*folders, snapshot_path(store), commits_path(store)]
    paths = [path for path in [*_changing(store), *beside] if path.exists()]
    paths += [file for folder in folders for file in folder.rglob("*")]
    wide = [path for path in paths if path.stat().st_mode & 0o077]
    if repair:
        for path in wide:
            make_private(path)
    return Finding(
        check="rights",
        status=OK if not wide else REPAIRED if repair else WARNING,
        found=f"{len(wide)} of {len(paths)} files can be read by others",
        mend="" if repair or not wide else "--repair takes their rights",
    )


def _disk(store: Path) -> Finding:
    free = shutil.disk_usage(store.parent.resolve()).free
    size = sum(path.stat().st_size for path in _changing(store))
    least = max(LITTLE_DISK, 2 * size)
    return Finding(
        check="disk",
        status=OK if free >= least else WARNING,
        found=f"{free / 2**30:,.1f} GiB free",
        mend="" if free >= least else "make room: a full disk stops every label",
    )
