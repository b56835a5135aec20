"""Tables of verdicts and labels that people hand in with the browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from app.components.table_reading import as_menus, reading_menus
from app.components.uploaded import MAX_NAME, TABLES, as_uploaded, on_disk
from calibration.analyses.imports import TableImport, import_labels, import_verdicts
from calibration.analyses.look import LABELS, VERDICTS
from calibration.errors import CalibrationError
from calibration.store import Store

IMPORTED = "file_import_done"

# Unknown ids that are named; enough to see what is wrong with them.
NAMED = 3


@st.fragment
def verdict_file(store: Store) -> None:
    """Offer to store a file of a judge's verdicts."""
    file, name = st.columns([3, 2], vertical_alignment="top")
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
    options = reading_menus("verdict", upload, VERDICTS, store.taxonomy())
    pressed = st.button("Import verdicts", key="verdict_import")
    if pressed and not judge.strip():
        st.text("Name the judge, with its version.")
    elif pressed:
        _take_in(
            "verdicts",
            upload,
            lambda path: import_verdicts(store, path, judge_id=judge, options=options),
        )


@st.fragment
def label_file(store: Store, batch_id: str) -> None:
    """Offer to store labels that were made elsewhere."""
    upload = st.file_uploader(
        f"Labels made elsewhere, of batch {batch_id} (.csv, .jsonl, .parquet)", type=TABLES,
        key="label_upload", help="Columns: trace_id, reviewer, outcome (the class)",
    )  # fmt: skip
    options = reading_menus("label", upload, LABELS, store.taxonomy())
    if st.button("Import labels", key="label_import"):
        _take_in(
            "labels",
            upload,
            lambda path: import_labels(store, path, batch_id=batch_id, options=options),
        )


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
            st.text(f"Nothing was imported: {as_menus(as_uploaded(str(error), folder))}")
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
