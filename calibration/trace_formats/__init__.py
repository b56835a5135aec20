"""One module a trace format; each yields records.

`read_traces` is the way in: it recognises the format of a file by its content and yields one
item a run, either parsed or set aside with file, line and reason.
"""

from collections.abc import Iterator
from pathlib import Path

from calibration.errors import TraceFormatError
from calibration.records import SetAside
from calibration.trace_formats.base import (
    Importer,
    ImportSettings,
    Item,
    Parsed,
    WorkflowRule,
    load_settings,
)
from calibration.trace_formats.detection import (
    FORMATS,
    FieldShare,
    FirstTrace,
    Preview,
    detect,
    preview,
)

__all__ = [
    "FORMATS",
    "FieldShare",
    "FirstTrace",
    "ImportSettings",
    "Importer",
    "Item",
    "Parsed",
    "Preview",
    "WorkflowRule",
    "detect",
    "load_settings",
    "preview",
    "read_traces",
]


def read_traces(path: Path, settings: ImportSettings | None = None) -> Iterator[Item]:
    """Read the runs of one file or run directory.

    The format is recognised at once; the runs are read as they are asked for. A file that
    breaks off yields its whole runs before the error: read to the end before anything is
    stored.

    Parameters
    ----------
    path : Path
        A file, or a tau2-bench run directory.
    settings : ImportSettings, optional
        What the importing person says about the runs.

    Yields
    ------
    Parsed or SetAside
        A run that occurs twice in the file is set aside the second time.

    Raises
    ------
    TraceFormatError
        If the format is not recognised, or the file breaks off or holds no run.
    """
    importer = detect(path)
    return _once(path, importer.read(path, settings or ImportSettings()))


def _once(path: Path, items: Iterator[Item]) -> Iterator[Item]:
    seen: dict[str, int | None] = {}
    empty = True
    for item in items:
        empty = False
        if isinstance(item, Parsed):
            trace_id = item.trace.trace_id
            if trace_id in seen:
                reason = f"the same run as on line {seen[trace_id]} (trace_id {trace_id!r})"
                yield SetAside(file=item.file, line=item.line, reason=reason)
                continue
            seen[trace_id] = item.line
        yield item
    if empty:
        raise TraceFormatError(f"{path}: the file holds no run")
