"""Trace formats: `tau_bench`, `tau2_bench`, `inspect_ai`, `swe_agent`, `openai_chat` and our own.

Ours are in `own_files` with `own_records`. All yield the items of `base`; `detection` recognises a
file by its content. `json_scanner` reads piece by piece, `compressed` unpacks within limits,
`parquet` gives rows, `fields` checks one value, `reliability_fields` those that reliability needs,
`said` says what is shown of what an agent said, `messages` turns a chat into steps.

The runs of `langfuse`, `langsmith` and `openinference` are trees of `spans`: `span_shelf` collects
them over files, `span_trees` makes a run of them, `message_shapes` reads what frameworks write.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from calibration.trace_formats.detection import (
        FORMATS,
        SUFFIXES,
        FieldShare,
        FirstTrace,
        Preview,
        Summary,
        detect,
        preview,
    )
    from calibration.trace_formats.span_shelf import SpanShelf

__all__ = [
    "FORMATS",
    "SUFFIXES",
    "FieldShare",
    "FirstTrace",
    "ImportSettings",
    "Importer",
    "Item",
    "Parsed",
    "Preview",
    "SpanShelf",
    "Summary",
    "WorkflowRule",
    "detect",
    "load_settings",
    "preview",
    "read_traces",
]


MAX_SET_ASIDE = 1_000_000  # rows of one file

# A table of labels needs the fields of this package and none of its formats.
_LOADED_ON_USE = {
    "SpanShelf": "span_shelf",
    **dict.fromkeys(
        (
            "FORMATS", "SUFFIXES", "FieldShare", "FirstTrace", "Preview", "Summary", "detect",
            "preview",
        ),
        "detection",
    ),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load the formats when they are asked for."""
    if name not in _LOADED_ON_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LOADED_ON_USE[name]}"), name)


def read_traces(
    path: Path, settings: ImportSettings | None = None, *, shelf: "SpanShelf | None" = None
) -> Iterator[Item]:
    """Read the runs of one file or run directory.

    With a `shelf`, the runs of a platform of spans wait there for the spans of other files.

    The format is recognised by content at once; runs are read on demand. A truncated file yields
    its complete runs before the error: read to the end before storing anything. A second occurrence
    of a run in the file is set aside. Raises TraceFormatError if the format is not recognised, or
    the file is truncated or holds no run.
    """
    from calibration.trace_formats.detection import SPAN_FORMATS, detect

    importer = detect(path)
    if shelf is not None and importer.name in SPAN_FORMATS:
        return shelf.take(SPAN_FORMATS[importer.name], path)
    return _once(path, importer.read(path, settings or ImportSettings()))


def _once(path: Path, items: Iterator[Item]) -> Iterator[Item]:
    seen: dict[str, int | None] = {}
    empty, aside = True, 0
    for item in items:
        empty = False
        if isinstance(item, Parsed):
            trace_id = item.trace.trace_id
            if trace_id in seen:
                reason = f"the same run as on line {seen[trace_id]} (trace_id {trace_id!r})"
                item = SetAside(file=item.file, line=item.line, reason=reason)
            else:
                seen[trace_id] = item.line
        if isinstance(item, SetAside):
            aside += 1
            if aside > MAX_SET_ASIDE:
                what = f"more than {MAX_SET_ASIDE:,} rows would be skipped, the last one because it"
                raise TraceFormatError(f"{path}: {what} {item.reason:.200}")
        yield item
    if empty:
        raise TraceFormatError(f"{path}: the file holds no run")
