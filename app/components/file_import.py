"""Files that people hand in with the browser: a place to read them in, and verdicts or labels."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

import streamlit as st

from calibration.analyses.imports import TableImport, import_labels, import_verdicts
from calibration.errors import CalibrationError
from calibration.store import Store

IMPORTED = "file_import_done"
MAX_NAME = 120
TABLES = ["csv", "jsonl", "parquet"]

# Unknown ids that are named; enough to see what is wrong with them.
NAMED = 3


@contextmanager
def on_disk(uploads: list[Any], path: str = "") -> Iterator[tuple[list[Path], Path]]:
    """Give the files a place for as long as they are read; names matter to some formats."""
    with tempfile.TemporaryDirectory(prefix="asr-import-") as directory:
        folder = Path(directory)
        paths = []
        for number, upload in enumerate(uploads):
            name = PurePath(upload.name.replace("\\", "/")).name[-MAX_NAME:].lstrip(".") or "file"
            (folder / str(number)).mkdir()
            place = folder / str(number) / name
            place.write_bytes(upload.getbuffer())
            paths.append(place)
        if path:
            paths.append(Path(path).expanduser())
        yield paths, folder


def as_uploaded(message: str, folder: Path) -> str:
    """Name an upload as the person does, without the place where it lay."""
    parts = message.split(f"{folder}/")
    return parts[0] + "".join(part.partition("/")[2] for part in parts[1:])


def verdict_file(store: Store) -> None:
    """Offer to store a file of a judge's verdicts."""
    with st.form("verdict_file", border=False):
        file, name, button = st.columns([3, 2, 1], vertical_alignment="bottom")
        upload = file.file_uploader(
            "Verdicts of a judge (.csv, .jsonl, .parquet)", type=TABLES, key="verdict_upload",
            help="Columns: trace_id, outcome (the class); optional: "
            "reason, evidence_step, evidence_quote, sample (1, 2, ... when asked again), grade "
            "(1 to 5)",
        )  # fmt: skip
        judge = name.text_input(
            "Name of the judge, with its version", max_chars=MAX_NAME, key="verdict_judge",
            placeholder="model-x-prompt-3",
        )  # fmt: skip
        pressed = button.form_submit_button("Import verdicts")
    if pressed and not judge.strip():
        st.text("Name the judge, with its version.")
    elif pressed:
        _take_in("verdicts", upload, lambda path: import_verdicts(store, path, judge_id=judge))


def label_file(store: Store, batch_id: str) -> None:
    """Offer to store labels that were made elsewhere."""
    with st.form("label_file", border=False):
        file, button = st.columns([4, 1], vertical_alignment="bottom")
        upload = file.file_uploader(
            f"Labels made elsewhere, of batch {batch_id} (.csv, .jsonl, .parquet)", type=TABLES,
            key="label_upload", help="Columns: trace_id, reviewer, outcome (the class)",
        )  # fmt: skip
        pressed = button.form_submit_button("Import labels")
    if pressed:
        _take_in("labels", upload, lambda path: import_labels(store, path, batch_id=batch_id))


def told() -> None:
    """Say once what the last file brought in; the page may not ask for a file any more."""
    if message := st.session_state.pop(IMPORTED, ""):
        st.text(message)


def _take_in(what: str, upload: Any, store_file: Callable[[Path], TableImport[Any]]) -> None:
    """Store one uploaded file and draw the page again, or say why not."""
    if upload is None:
        st.text("Choose a file first.")
        return
    with st.spinner("Importing"), on_disk([upload]) as ((path,), folder):
        try:
            imported = store_file(path)
        except CalibrationError as error:
            st.text(f"Nothing was imported: {as_uploaded(str(error), folder)}")
            return
    done = imported.stored
    parts = [f"{len(done.imported):,} {what} imported"]
    unknown = ", ".join(done.unknown[:NAMED]) + ", …" * (len(done.unknown) > NAMED)
    for n, kind in (
        (len(done.already_there), "already there"),
        (len(done.changed), "differ from stored ones (kept)"),
        (len(done.unknown), f"for traces that are not in the store ({unknown})"),
        (len(done.settled), "final labels of adjudication imported"),
        (len(done.settled_before), "final labels differ from those in force (kept)"),
        (len(done.replaced), "replaced by a later one"),
    ):
        if n:
            parts.append(f"{n:,} {kind}")
    reading = (*imported.reading.lines, imported.reading.folded_line)
    lines = [line if line.endswith(".") else f"{line}." for line in reading if line]
    st.session_state[IMPORTED] = " ".join([*lines, "; ".join(parts) + "."])
    st.rerun()
