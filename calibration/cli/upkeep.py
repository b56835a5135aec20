"""Commands that keep a store safe: backup, restore, upgrade, and what is wrong with it."""

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click

from calibration.analyses.judging.runs import examine_runs, runs_folder
from calibration.cli.terminal import (
    EXISTING,
    computing,
    open_to_read,
    open_to_write,
    print_json,
    print_lines,
    with_json,
    with_store,
)
from calibration.errors import CalibrationError
from calibration.reporting.csv_exports import audit_rows
from calibration.store.backup import Backup, restore_backup, verify_backup
from calibration.store.backup import upgrade as upgrade_store
from calibration.store.doctor import PROBLEM, examine
from calibration.tables.rows import as_csv

SIGNS = {"ok": "ok", "warning": "warning", "problem": "PROBLEM", "repaired": "repaired"}


@click.command()
@click.argument("folder", type=EXISTING)
@with_store
@click.option(
    "--keep", type=click.IntRange(min=1), help="Keep only the newest backups of this store there."
)
@with_json
def backup(folder: Path, path: Path, keep: int | None, as_data: bool) -> None:
    """Back up a store with everything beside it, also while the app runs.

    FOLDER gets one new folder with the database as of one moment, the text of the traces, the
    team's own reference traces and a manifest with the SHA-256 of every file. It holds the hashes
    of passphrases: keep it as safe as the store.

    \b
    asr backup /backups
    asr backup /backups --keep 7
    """
    with open_to_write(path) as store, computing("Backing up"):
        made = store.write_backup(folder.resolve(), keep)
    if as_data:
        print_json(_as_data(made) | {"removed": [str(old) for old in made.removed]})
        return
    print_lines([f"wrote {made.folder}: {made.n_files:,} files, {made.n_bytes:,} bytes"])
    print_lines(f"removed {old}" for old in made.removed)


@click.command()
@click.argument("backup_", metavar="BACKUP", type=EXISTING)
@with_store
@click.option("--replace", is_flag=True, help="Move an existing store away first.")
@click.option("--check", is_flag=True, help="Check the backup and restore nothing.")
@with_json
def restore(backup_: Path, path: Path, replace: bool, check: bool, as_data: bool) -> None:
    """Restore a store from a backup; every file is checked first.

    \b
    asr restore /backups/asr-20260706T120000.000000Z --store asr.duckdb
    """
    aside = None
    with computing("Checking every file"):
        made = verify_backup(backup_)
    if not check:
        aside = restore_backup(backup_, path, replace=replace)
    if as_data:
        moved = None if aside is None else str(aside)
        print_json(_as_data(made) | {"restored": not check, "put_aside": moved})
        return
    print_lines([f"{backup_}: {made.n_files:,} files are as they were written"])
    if not check:
        print_lines([f"restored {path} as of {made.made_at:%Y-%m-%d %H:%M:%S} UTC"])
    if aside is not None:
        print_lines([f"the previous files are in {aside}"])


@click.command()
@with_store
@click.option(
    "--backups",
    type=EXISTING,
    help="Write the backup to this folder; without it, beside the store.",
)
@with_json
def upgrade(path: Path, backups: Path | None, as_data: bool) -> None:
    """Upgrade a store of an older version; a backup is made first.

    \b
    asr upgrade --store asr.duckdb
    """
    before, after, kept = upgrade_store(path, backup=backups)
    if as_data:
        saved = None if kept is None else str(kept)
        print_json({"schema_before": before, "schema": after, "backup": saved})
    elif kept is None:
        print_lines([f"{path} has schema {after} already"])
    else:
        print_lines([f"{path}: schema {before} is now {after}; the backup is {kept}"])


@click.command()
@with_store
@click.option("--repair", is_flag=True, help="Repair what can be repaired safely.")
@with_json
def doctor(path: Path, repair: bool, as_data: bool) -> None:
    """Find what is wrong with a store and its files, and say what to do; exit 1 if anything is.

    \b
    asr doctor
    asr doctor --repair
    """
    found = examine(path, repair=repair)
    if runs_folder(path).exists():
        found = replace(found, findings=(*found.findings, *examine_runs(path)))
    if as_data:
        checks = [
            {"check": f.check, "status": f.status, "found": f.found, "mend": f.mend or None}
            for f in found.findings
        ]
        print_json({"store": str(path), "sound": found.sound, "checks": checks})
    else:
        for one in found.findings:
            print_lines([f"{SIGNS[one.status]:<8}  {one.check:<9}  {one.found}"])
            if one.mend:
                print_lines([f"{'':<21}{one.mend}"])
    if not found.sound:
        wrong = ", ".join(one.check for one in found.findings if one.status == PROBLEM)
        raise CalibrationError(f"{path}: problems with {wrong}")


@click.command("audit-log")
@with_store
@click.option("--since", type=click.DateTime(), help="Show changes from this time (UTC) on.")
@click.option("--who", help="Show changes by this person (reviewer id).")
@click.option("--what", help="Show changes of this kind.")
@click.option("--limit", type=click.IntRange(min=1), help="Show this many, the newest.")
@click.option("--csv", "as_table", is_flag=True, help="Print everything as CSV.")
@with_json
def audit_log(
    path: Path,
    since: datetime | None,
    who: str | None,
    what: str | None,
    limit: int | None,
    as_table: bool,
    as_data: bool,
) -> None:
    """Print who changed what, when, and by which command or page, newest first.

    \b
    asr audit-log --limit 20
    asr audit-log --who mara-lind --since 2026-07-01 --csv
    """
    with open_to_read(path) as store:
        found = store.audit_trail(since=since, who=who, what=what, limit=limit)
    entries = audit_rows(found)
    if as_data:
        print_json([row | {"detail": json.loads(str(row["detail"]))} for row in entries])
    elif as_table:
        click.echo(as_csv(list(found.columns), entries), nl=False)
    else:
        for row in entries:
            who_did = row["actor"] or "-"
            origin = row["origin"] or "-"
            print_lines(
                [f"{row['created_at']}  {who_did}  {origin}  {row['what']}  {row['detail']}"]
            )


def _as_data(made: Backup) -> dict[str, object]:
    return {
        "backup": str(made.folder),
        "made_at": made.made_at.isoformat(),
        "schema": made.schema,
        "files": made.n_files,
        "bytes": made.n_bytes,
    }
