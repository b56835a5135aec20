"""Bringing files in: read, look, say what they are, import, see what became; Data and Set up."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from app import session
from app.components.uploaded import MAX_NAME, as_uploaded, on_disk
from calibration.analyses.trace_files import (
    FileRead,
    FilesProgress,
    FilesRead,
    ImportReport,
    preview_lines,
    read_files,
    set_aside_csv,
    store_files,
    unseen_words,
)
from calibration.errors import CalibrationError, InputError
from calibration.records import SetAside
from calibration.store import Store
from calibration.taxonomy import Taxonomy
from calibration.trace_formats import FORMATS, ImportSettings, WorkflowRule
from calibration.trace_formats.own_records import NO_WORKFLOW

WORK, UPLOAD, PATH, ZONE, ALL, SCALES, PASSES = (
    "import_work", "import_upload", "import_path", "import_zone", "import_all", "import_scales",
    "import_passes",
)  # fmt: skip

CHANGED, UNSEEN = "import_changed", "import_unseen"
IMPORT_FOLDER = "ASR_IMPORT_FOLDER"

# More rows or names than a person can look through are for the file and the mapping file.
MOST_ROWS, MOST_WORKFLOWS = 1000, 30


@dataclass(slots=True)
class Work:
    """One import from the files to the report; it lives until the page is left.

    `asked` is what was read: other files or settings have to be read again.
    """

    asked: tuple[Any, ...] = ()
    lines: tuple[str, ...] = ()
    read: FilesRead | None = None
    report: ImportReport | None = None
    trouble: str = ""


def show(store: Store) -> bool:
    """Show the form for files, what they hold, and what the import did; True once it did some."""
    if UPLOAD not in st.session_state:
        # Streamlit forgets a widget when its page is left: what was imported then is over.
        st.session_state[WORK] = Work()
    work: Work = st.session_state[WORK]
    uploads, path = _sources()
    asked = (
        tuple(u.file_id for u in uploads), path, _typed(ZONE), _typed(ALL), _listed(SCALES),
        _listed(PASSES),
    )  # fmt: skip
    read = st.button(
        "Read the files", key="import_read", disabled=not (uploads or path),
        type="secondary" if work.read is not None and work.asked == asked else "primary",
    )  # fmt: skip
    if read and (trouble := _outside(store, path)):
        work.report, work.read, work.trouble, work.asked = None, None, trouble, asked
    elif read:
        _read(work, uploads, asked)
    if work.trouble:
        st.subheader("Nothing was read", anchor=False)
        st.text(work.trouble)
    elif work.report is not None:
        _report(work.report)
    elif work.read is None:
        st.text("Nothing is stored before you have seen the contents of the files.")
    elif work.asked != asked:
        st.text("The files or the settings above have changed. Read the files again.")
    else:
        _preview(work.read, work.lines)
        _import(store, work, uploads)
    return work.report is not None and work.report.imported > 0


def _sources() -> tuple[list[Any], str]:
    files, path = st.columns(2)
    uploads = files.file_uploader(
        "Trace files (.json, .jsonl, .csv and others)", accept_multiple_files=True, key=UPLOAD,
        help=", ".join(importer.title for importer in FORMATS) + "; also compressed",
    )  # fmt: skip
    path.text_input(
        "or a file or folder on the server", key=PATH, placeholder="/data/runs",
        help="For what is too large to upload, and for run folders",
    )  # fmt: skip
    zone, workflow = path.columns(2)
    zone.text_input(
        "Time zone of times without one", key=ZONE, placeholder="UTC", help="e.g. Europe/Berlin"
    )
    workflow.text_input(
        "Workflow of every run", key=ALL, placeholder="as the files say", max_chars=MAX_NAME
    )
    scales, passes = path.columns(2)
    scales.text_input(
        "Scales of scores", key=SCALES, placeholder="correctness=1-5",
        help="Numbers other than 0 and 1 are verdicts by their scale alone; several by commas",
    )  # fmt: skip
    passes.text_input(
        "Scores that pass", key=PASSES, placeholder="correctness=0.5",
        help="The lowest number that is a success, for scores of any scale",
    )  # fmt: skip
    return list(uploads or ()), _typed(PATH)


def _outside(store: Store, path: str) -> str:
    """Return why a path of the server is not read; where people sign in, one folder is theirs."""
    if not path or not session.signs_in(store):
        return ""
    folder = os.environ.get(IMPORT_FOLDER, "")
    if not folder:
        return (
            f"No folder of the server is open to imports: start it with {IMPORT_FOLDER}=/data/runs."
        )
    if Path(path).expanduser().resolve().is_relative_to(Path(folder).resolve()):
        return ""
    return f"Imports on the server are read from {folder} only."


def _listed(key: str) -> tuple[str, ...]:
    return tuple(text for one in _typed(key).split(",") if (text := one.strip()))


def _typed(key: str) -> str:
    return (st.session_state.get(key) or "").strip()


# FilesProgress


def _read(work: Work, uploads: list[Any], asked: tuple[Any, ...]) -> None:
    work.report, work.read, work.trouble, work.asked = None, None, "", asked
    bar = st.progress(0.0, text="FilesProgress")
    with on_disk(uploads, asked[1]) as (paths, folder):
        try:
            settings = ImportSettings(timezone=asked[2] or None, workflow=asked[3] or None)
            settings = settings.scored(asked[4], asked[5])
            read = read_files(paths, settings, told=lambda reading: _tell(bar, reading))
            work.lines = tuple(as_uploaded(line, folder) for line in preview_lines(read))
            # Only what is shown is kept: the runs are read again when they are stored.
            shown = read.without_runs()
            work.read = replace(
                shown,
                files=tuple(
                    replace(f, path=Path(as_uploaded(str(f.path), folder))) for f in shown.files
                ),
                set_aside=_named(read.set_aside, folder),
            )
        except CalibrationError as error:
            work.trouble = as_uploaded(str(error), folder)
        except OSError as error:
            work.trouble = f"{error.filename or 'a file'}: {error.strerror or error}"
    bar.empty()


def _tell(bar: Any, reading: FilesProgress) -> None:
    bar.progress(reading.share, text=f"Reading: {reading.words()}")


def _named(rows: tuple[SetAside, ...], folder: Path) -> tuple[SetAside, ...]:
    return tuple(
        replace(row, file=as_uploaded(row.file, folder), reason=as_uploaded(row.reason, folder))
        for row in rows
    )


# What the files hold


def _preview(read: FilesRead, lines: tuple[str, ...]) -> None:
    st.subheader("Contents of the files", anchor=False)
    found = read.preview
    figures = {
        "Traces": found.n_traces, "Tasks": found.n_tasks, "Costs known": found.costs_known,
        "Grades": found.n_verdicts, "Skipped rows": found.n_set_aside,
    }  # fmt: skip
    for place, (name, value) in zip(st.columns(len(figures)), figures.items(), strict=True):
        place.metric(name, f"{value:,}", border=True)
    st.dataframe(
        pd.DataFrame([_file_row(file) for file in read.files[:MOST_ROWS]]),
        hide_index=True, alt="Each file with the format it was recognised as",
    )  # fmt: skip
    for line in lines:
        name, _, text = line.partition(" ")
        if name in ("Note", "Complete", "Missing", "Not", "First") and text.strip():
            st.text(line)
    if words := unseen_words(found):
        st.text(f"{words}.")
    _set_aside(read.set_aside, "preview")


def _file_row(file: FileRead) -> dict[str, Any]:
    return {
        "file": str(file.path), "format": file.format, "traces": file.traces,
        "skipped rows": file.set_aside,
    }  # fmt: skip


def _set_aside(rows: tuple[SetAside, ...], where: str) -> None:
    if not rows:
        return
    st.subheader(f"Skipped rows ({len(rows):,})", anchor=False)
    if len(rows) > MOST_ROWS:
        st.caption(f"The first {MOST_ROWS:,}; the download has all of them.")
    shown = [{"file": r.file, "line": r.line, "reason": r.reason} for r in rows[:MOST_ROWS]]
    frame = pd.DataFrame(shown).astype({"line": "Int64"})
    st.dataframe(frame, hide_index=True, alt="Rows that were not imported, with the reasons")
    st.download_button(
        "Download the skipped rows", data=lambda: set_aside_csv(rows), file_name="skipped-rows.csv",
        mime="text/csv", on_click="ignore", key=f"import_aside_{where}",
    )  # fmt: skip


# What the person says about them


def _mapping(store: Store, found: list[str], everything: str) -> dict[str, WorkflowRule]:
    """Let the person name each workflow and set its ceiling and unit."""
    st.subheader("Workflows", anchor=False)
    st.caption("A ceiling is what one unit may cost in USD. Leave it empty to keep the stored one.")
    if NO_WORKFLOW in found:
        st.text("Some runs name no workflow. Name it above under Workflow of every run.")
    known = store.workflows()
    rules = {}
    for number, name in enumerate(found[:MOST_WORKFLOWS]):
        stored = known.get(name)
        called, ceiling, unit = st.columns([3, 2, 2])
        # A label is markdown and the name is a stranger's: it goes into the field alone.
        new = called.text_input(
            f"Workflow {number + 1}, stored as", name, key=f"import_name_{number}_{name}",
            disabled=bool(everything) or name == NO_WORKFLOW, max_chars=MAX_NAME,
        )  # fmt: skip
        usd = ceiling.number_input(
            "Ceiling, USD per unit", value=None if stored is None else stored.ceiling_usd,
            min_value=0.0, step=0.01, format="%.4f", key=f"import_ceiling_{number}_{name}",
            placeholder="none",
        )  # fmt: skip
        per = unit.text_input(
            "Unit", "task" if stored is None else stored.unit, key=f"import_unit_{number}_{name}",
            max_chars=MAX_NAME,
        )  # fmt: skip
        rules[name] = WorkflowRule(name=new.strip(), ceiling_usd=usd, unit=per.strip() or None)
    if len(found) > MOST_WORKFLOWS:
        st.text(
            f"{len(found) - MOST_WORKFLOWS} more keep their names; `asr import --mapping FILE` "
            "sets ceilings for any number of workflows."
        )
    return rules


def _settings(
    asked: tuple[Any, ...], rules: dict[str, WorkflowRule], taxonomy: Taxonomy
) -> ImportSettings:
    by_name: dict[str, WorkflowRule] = {}
    for rule in rules.values():
        name = rule.name or ""
        other = by_name.setdefault(name, rule)
        if (other.ceiling_usd, other.unit) != (rule.ceiling_usd, rule.unit):
            raise InputError(f"workflow {name!r} has two ceilings or units; give it one")
    return ImportSettings(
        timezone=asked[2] or None, workflow=asked[3] or None, workflows=rules, taxonomy=taxonomy
    ).scored(asked[4], asked[5])


# Storing


def _import(store: Store, work: Work, uploads: list[Any]) -> None:
    held = work.read
    if held is None:
        return
    if not held.preview.n_traces:
        st.text("No trace could be read from these files, so there is nothing to import.")
        return
    rules = _mapping(store, list(held.preview.workflows), work.asked[3])
    take_changed = st.checkbox(
        "Replace stored runs whose content changed", key=CHANGED,
        help="Only those that nobody has labelled; otherwise the stored ones stay",
    )  # fmt: skip
    unseen = bool(held.preview.unseen_runs) and st.checkbox(
        "Leave out runs with parts that reviewers cannot see", key=UNSEEN,
        help="Pictures, sounds, files, and messages that were cut leave only a mark",
    )  # fmt: skip
    pressed = st.button(
        f"Import {held.preview.n_traces:,} traces", key="import_store", type="primary"
    )
    if not pressed:
        return
    bar = st.progress(0.0, text="FilesProgress")
    with on_disk(uploads, work.asked[1]) as (paths, folder):
        try:
            settings = _settings(work.asked, rules, store.taxonomy())
            settings = replace(settings, leave_out_unseen=unseen)
            read = read_files(paths, settings, told=lambda reading: _tell(bar, reading))
            bar.progress(1.0, text=f"Storing {read.preview.n_traces:,} traces")
            # From here on nothing of Streamlit is touched: it could break the import off.
            report = store_files(store, read, settings, take_changed=take_changed)
            work.report = replace(report, set_aside=_named(report.set_aside, folder))
        except CalibrationError as error:
            refused = as_uploaded(str(error), folder)
        else:
            refused = ""
    bar.empty()
    if refused:
        st.text(f"Nothing was imported: {refused}")
        return
    st.rerun()


def _report(report: ImportReport) -> None:
    st.subheader("Imported", anchor=False)
    figures = {
        "Imported": report.imported, "Already there": report.already_there,
        "Changed": report.changed, "Possible duplicates": report.possible_duplicates,
        "Grades kept": report.verdicts, "Skipped rows": len(report.set_aside),
    }  # fmt: skip
    for place, (name, value) in zip(st.columns(len(figures)), figures.items(), strict=True):
        place.metric(name, f"{value:,}", border=True)
    if report.possible_duplicates:
        st.text("Possible duplicates have the content of another trace; they are kept and marked.")
    _set_aside(report.set_aside, "report")
