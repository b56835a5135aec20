"""Recognise traces of the reference set, which are for practice and examinations only."""

from functools import cache

from calibration.errors import InputError
from calibration.records import Trace
from reference_dataset.loader import LABELS, ReferenceSet, load_reference, published, rows
from reference_dataset.records import FAMILIES

FORCED = "REFERENCE SET: {n} of these traces are calibration material; no agent is ranked by them."


@cache
def published_set() -> ReferenceSet:
    """Return the published dataset, read once."""
    return load_reference()


def is_reference(trace: Trace) -> bool:
    """Return whether a trace is one of the published dataset, by id and task."""
    family, _, number = trace.trace_id.rpartition("-")
    if family not in FAMILIES or not number.isdigit():
        return False
    found = published_set().traces.get(trace.trace_id)
    return found is not None and found.prompt == trace.prompt


def reference_names() -> set[tuple[str, str]]:
    """Return workflow and trace ids of the published set: an id alone may belong to other data."""
    ids = (row.data["trace_id"] for row in rows(published() / LABELS))
    return {(trace_id.rpartition("-")[0], trace_id) for trace_id in ids}


def refuse_reference(name: str, n: int, *, force: bool) -> None:
    """Raise InputError for a source with `n` traces of the reference set, unless forced."""
    if n and not force:
        raise InputError(
            f"{name}: {n:,} traces are of the reference set, which is material for calibration "
            "and ranks no agent; --force takes them with a mark"
        )


def marks(*numbers: int) -> tuple[str, ...]:
    """Return the notes that precede a report on forced sources with reference traces."""
    return tuple(dict.fromkeys(FORCED.format(n=n) for n in numbers if n))
