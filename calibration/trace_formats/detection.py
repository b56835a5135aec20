"""Recognise a trace format by the content of a file, and preview an import."""

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Literal

from calibration.errors import InputError, TraceFormatError
from calibration.records import Trace
from calibration.tables.columns import ALIASES, Header, normalised
from calibration.trace_formats.base import Head, Importer, Item, Parsed, ScoreNames
from calibration.trace_formats.compressed import ZIP, Archive, first_bytes
from calibration.trace_formats.fields import FieldError, note
from calibration.trace_formats.inspect_ai import INSPECT
from calibration.trace_formats.json_scanner import JsonText, decode_line
from calibration.trace_formats.langfuse import LANGFUSE
from calibration.trace_formats.langsmith import LANGSMITH
from calibration.trace_formats.openai_chat import OPENAI_CHAT
from calibration.trace_formats.openinference import OTEL, PHOENIX
from calibration.trace_formats.own_files import (
    RECORDS,
    delimiter_of,
    first_line,
    has_record,
    sample_rows,
)
from calibration.trace_formats.own_records import RECORD_SOURCE, TRANSCRIPT_SOURCE
from calibration.trace_formats.parquet import PARQUET, parquet_columns
from calibration.trace_formats.reliability_fields import RELIABILITY_FIELDS
from calibration.trace_formats.said import CALLS, RESULTS, THOUGHTS, unseen_in
from calibration.trace_formats.spans import DOUBLED
from calibration.trace_formats.swe_agent import SWE_AGENT
from calibration.trace_formats.tau2_bench import FOLDER, INDEX, TAU2
from calibration.trace_formats.tau_bench import TAU_BENCH

_SAMPLE = 5
_FEW = 50  # fields of an object before its runs
_COMMON = ("data", "messages")  # lists of several formats, told apart by what follows
_LISTS = frozenset({"data", "runs", "post", "patch"})  # told apart by what they hold
_EVENT = frozenset({"type", "event", "event_type", "kind"})

_BINARY = {
    b"\x1f\x8b": "a gzip file within another (unpack it first)",
    b"\x28\xb5\x2f\xfd": "a Zstandard file within another (unpack it first)",
    b"BZh": "a bzip2 file (unpack it with bunzip2)",
    b"\xfd7zXZ": "an xz file (unpack it with unxz)",
    b"SQLite format 3": "an SQLite database (export its traces as JSON Lines)",
    b"ARROW1": "an Arrow file (save it as Parquet)",
    b"\xff\xfe": "UTF-16 text (save it as UTF-8)",
    b"\xfe\xff": "UTF-16 text (save it as UTF-8)",
}
_WORKBOOK = "xl/workbook.xml"

PROMPT_CHARS = 300

# A row with one of these is a run with what was said, and no result alone.
_TRANSCRIPT = (
    "prompt", "response", "messages", "transcript", "steps", "traj", "trajectory", "history",
    "conversation", "turns", "events", "spans", "observations", "samples", "input", "inputs",
    "output", "outputs", "tool_calls", "attributes", "context",
)  # fmt: skip
_TABLES = ("csv", "lines", "array", "parquet")

# Fields that may hold what a trace should have been made of, where a file has any fields.
_OPEN_FORMATS = (RECORD_SOURCE, TRANSCRIPT_SOURCE, OPENAI_CHAT.name)
_COSTS = frozenset({"cost", "costs", "price", "usd", "eur", "cents", "spend"})
_NO_COST = ("user_cost", "cost_note")  # of the simulated user; a note of ours
_CONTENT = frozenset(
    "answer completion output final_answer final_response reply conversation dialog dialogue turns "
    "events history chat_history question query instruction reasoning thoughts choices input text "
    "content".split()
)
_MOST_UNREAD, _UNREAD_CHARS = 1_000, 60

OPTIONAL_FIELDS = (
    "response",
    "steps",
    "inputs",
    "sub_goals",
    "status",
    "model",
    "agent_version",
    "started_at",
    "latency_s",
    "cost_usd",
    "total_tokens",
    "success_criteria",
)

# Runs of these are trees of spans, which may lie in several files.
SPAN_FORMATS = {form.name: form for form in (LANGFUSE, LANGSMITH, PHOENIX, OTEL)}

# The first that recognises a file reads it: chats are last, as other formats have messages too.
FORMATS: tuple[Importer, ...] = (
    TAU_BENCH,
    TAU2,
    INSPECT,
    SWE_AGENT,
    RECORDS,
    *(form.importer for form in SPAN_FORMATS.values()),
    OPENAI_CHAT,
)

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".eval", ".traj", ".parquet")


def detect(path: Path) -> Importer:
    """Return the importer of a file or run directory.

    Raises TraceFormatError if no importer recognises it. The message names the file, its content
    and the expected formats; for a truncated file, the line.
    """
    head, found = _look(path)
    importer = next((one for one in FORMATS if one.recognises(head)), None)
    if importer in (None, RECORDS) and (outcome := _outcome_of_results(path, head)):
        raise TraceFormatError(
            f"{path}: is a table of results, with an outcome ({outcome:.80}) and no transcript: "
            f"`asr report {quote(str(path))}` reads it"
        )
    if importer is not None:
        return importer
    known = ", ".join(importer.title for importer in FORMATS)
    raise TraceFormatError(
        f"{path}: format not recognised: {found}. Read are {known}; `asr import --formats` says "
        "what each looks like. Outcomes without steps are runs, which `asr report` reads"
    )


def _outcome_of_results(path: Path, head: Head) -> str | None:
    """Return the column of the outcome, if rows are results of runs without a transcript."""
    columns = frozenset().union(*head.keys) if head.kind in _TABLES else _columns(path)
    try:
        header = Header.of(columns, str(path), ("outcome", "rater"))
    except InputError:
        return None
    if header.there((*_TRANSCRIPT, *ALIASES["rater"])):
        return None
    # A label is as often that of a text as that of a run.
    names = [name for name in ALIASES["outcome"] if name not in ALIASES["label"][:1]]
    return next(iter(header.there(names)), None)


def _columns(path: Path) -> frozenset[str]:
    """Return the columns of a table of text, none of any other file."""
    if path.is_dir() or (first := first_line(path)) is None or first.startswith((b"[", b"{")):
        return frozenset()
    delimiter = delimiter_of(first, None)
    if delimiter is None or first_bytes(path).startswith((*_BINARY, ZIP)):
        return frozenset()
    return frozenset(next(csv.reader([first.decode("utf-8", "replace")], delimiter=delimiter)))


def _look(path: Path) -> tuple[Head, str]:
    """Return the head of a file and a sentence on its content."""
    if path.is_dir():
        if not (path / INDEX).is_file():
            return Head(kind="other", keys=()), f"it is a directory without {INDEX}"
        head, found = _look_at_object(path / INDEX)
        return Head(kind="directory", keys=head.keys), f"{INDEX} is {found}"
    begins = first_bytes(path)
    if begins.startswith(ZIP):
        return _look_at_zip(path)
    if begins.startswith(PARQUET):
        columns = parquet_columns(path)
        found = f"it is a Parquet file with the columns {_names(columns)}"
        return Head(kind="parquet", keys=(columns,)), found
    for magic, what in _BINARY.items():
        if begins.startswith(magic):
            return Head(kind="other", keys=()), f"it is {what}"
    first = first_line(path)
    if first == b"":
        raise TraceFormatError(f"{path}: the file is empty")
    if first is not None and first.startswith(b"["):
        return _look_at_array(path)
    if first is None or first.startswith(b"{"):
        lines = _look_at_lines(path)
        # The first line of a file of lines may be broken.
        if has_record(lines[0]) or (lines[0].kind == "lines" and _is_object(first)):
            return lines
        return _look_at_object(path)
    delimiter = delimiter_of(first)
    # Tables of platforms have other columns, such as 'context.trace_id'.
    any_delimiter = delimiter or delimiter_of(first, None)
    if any_delimiter is not None:
        cells = first.decode("utf-8", "replace").split(any_delimiter)
        keys = frozenset(cell.strip().strip('"').strip() for cell in cells)
        head = Head(kind="csv", keys=(keys,))
        if delimiter or any(form.recognises(head) for form in SPAN_FORMATS.values()):
            return head, f"it is a table with the columns {_names(keys)}"
    return _look_at_lines(path)


def _look_at_zip(path: Path) -> tuple[Head, str]:
    archive = Archive(path)
    archive.close()
    names = frozenset(archive.names)
    if _WORKBOOK in names:
        return Head(kind="other", keys=()), "it is an Excel workbook (save its sheet as CSV UTF-8)"
    found = f"it is a zip archive of {len(names):,} files (unpack it first)"
    return Head(kind="zip", keys=(names,)), found


def _look_at_array(path: Path) -> tuple[Head, str]:
    source = JsonText(path)
    keys: list[frozenset[str]] = []
    chat = _Chat()
    problem = ""
    try:
        for run, _ in islice(source.elements(source.start), _SAMPLE):
            if isinstance(run, dict):
                keys.append(frozenset(run))
                chat.see(run)
    except TraceFormatError as error:
        problem = str(error).removeprefix(f"{path}, ")
    what = f"of objects with the fields {_names(keys[0])}" if keys else "without objects"
    found = f"it is a JSON list {what}"
    head = Head(kind="array", keys=tuple(keys), is_spoken=chat.is_spoken)
    return head, f"{found}, and {problem}" if problem else found


def _look_at_object(path: Path) -> tuple[Head, str]:
    source = JsonText(path)
    keys: set[str] = set()
    within: dict[str, frozenset[str]] = {}
    chat = _Chat()
    problem = ""
    try:
        for key, at in source.members(source.start):
            keys.add(key)
            if len(keys) > _FEW or source.mark(at) != "[":
                continue
            if key in _LISTS:
                fields = _first_fields(source, at)
                if fields is not None:
                    within[key] = fields
            elif key == "messages":
                chat.see({key: [one for one, _ in islice(source.elements(at), _FEW)]})
            if key not in _COMMON and _known(keys, within):
                break  # the runs: what stands before them is enough
    except TraceFormatError as error:
        problem = str(error).removeprefix(f"{path}, ")
    kind = "object"
    if "tasks" in keys and FOLDER not in keys and (path.parent / FOLDER).is_dir():
        kind = "directory"
    found = f"it is a JSON object with the fields {_names(frozenset(keys))}"
    head = Head(
        kind=kind,
        keys=(frozenset(keys),) if keys else (),
        within=within,
        is_spoken=chat.is_spoken,
    )
    return head, f"{found}, and {problem}" if problem else found


def _first_fields(source: JsonText, at: int) -> frozenset[str] | None:
    """Return the fields of the first object of a list, None where it begins with no object."""
    for first, _ in source.elements(at):
        return frozenset(first) if isinstance(first, dict) else None
    return frozenset()


_ITEMS = CALLS | RESULTS | THOUGHTS


class _Chat:
    """Tells chats from logs: every message has a role, and there is no other kind of event.

    The items of an answer that are a call, a result or a thought name that as their type.
    """

    def __init__(self) -> None:
        self.is_spoken = True

    def see(self, row: Mapping[str, object]) -> None:
        """Look at a row."""
        messages = row.get("messages")
        if isinstance(messages, list):
            told = (one for one in messages if isinstance(one, dict))
            self.is_spoken &= all(
                isinstance(one.get("role"), str) or str(one.get("type")) in _ITEMS for one in told
            )
        elif messages is None and not _EVENT.isdisjoint(row):
            self.is_spoken = False


def _known(keys: set[str], within: Mapping[str, frozenset[str]]) -> bool:
    head = Head(kind="object", keys=(frozenset(keys),), within=within)
    return any(importer.recognises(head) for importer in FORMATS)


def _look_at_lines(path: Path) -> tuple[Head, str]:
    chat = _Chat()
    keys, count = sample_rows(path, chat.see)
    if not keys:
        return Head(kind="other", keys=()), "it is neither JSON nor a table with 'trace_id'"
    kind = "lines" if count > 1 else "object"
    what = "JSON lines" if kind == "lines" else "a JSON object"
    head = Head(kind=kind, keys=tuple(keys), is_spoken=chat.is_spoken)
    return head, f"it is {what} with the fields {_names(keys[0])}"


def _is_object(line: bytes | None) -> bool:
    try:
        return line is not None and isinstance(decode_line(line), dict)
    except FieldError:
        return False


def _names(keys: frozenset[str]) -> str:
    named = sorted(key if len(key) <= 40 else key[:39] + "…" for key in keys)
    listed = ", ".join(repr(name) for name in named[:8])
    return (listed + (", ..." if len(named) > 8 else "")) or "(none)"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldShare:
    """Number of traces with a field."""

    field: str
    found: int
    of: int

    @property
    def share(self) -> float:
        """Share of the traces with the field."""
        return self.found / self.of


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTrace:
    """The first trace in a few lines; its prompt is cut and holds no control characters."""

    trace_id: str
    workflow: str
    task_id: str
    prompt: str
    n_steps: int
    response: str | None
    status: str | None
    cost_usd: float | None
    started_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Summary of an import before it is stored.

    `costs_known` counts traces with a cost; `formats` and `workflows` count traces by source and
    workflow. `fields` is empty without a trace. `unread` : fields that may hold a cost, an id or
    what was said, and were kept as metadata alone. `unseen_runs` hold `unseen_parts` that reviewers
    cannot see, by kind. `doubled_costs` counts totals that held costs twice.
    """

    n_traces: int
    n_set_aside: int
    n_tasks: int
    n_verdicts: int
    n_human_scores: int
    costs_known: int
    formats: dict[str, int]
    workflows: dict[str, int]
    fields: tuple[FieldShare, ...]
    first: FirstTrace | None
    unseen_runs: int
    unseen_parts: dict[str, int]
    doubled_costs: int
    unread: tuple[FieldShare, ...] = ()


def preview(items: Iterable[Item]) -> Preview:
    """Summarise the items of `read_traces`; nothing is stored."""
    summary = Summary()
    for item in items:
        summary.add(item)
    return summary.preview()


class Summary:
    """A preview in the making, which holds no trace but the first."""

    def __init__(self) -> None:
        self._found: Counter[str] = Counter()
        self._formats: Counter[str] = Counter()
        self._workflows: Counter[str] = Counter()
        self._tasks: set[str] = set()
        self._unread: Counter[str] = Counter()
        self._first: FirstTrace | None = None
        self._unseen: Counter[str] = Counter()
        self.n_traces = self.n_set_aside = self.n_human = self.n_unseen = self.n_doubled = 0
        self.scores = ScoreNames()

    def add(self, item: Item) -> None:
        """Count one item."""
        if not isinstance(item, Parsed):
            self.n_set_aside += 1
            return
        trace = item.trace
        self.n_traces += 1
        self.n_human += len(item.grades.human)
        self.scores.add(item.grades)
        self._found.update(name for name in OPTIONAL_FIELDS if _has(trace, name))
        self._found.update(n for n in RELIABILITY_FIELDS if getattr(trace, n) is not None)
        self._found["verdict"] += item.grades.is_graded
        self._formats[trace.source] += 1
        self._workflows[trace.workflow] += 1
        self._tasks.add(trace.task_key)
        unseen = unseen_in(trace.metadata)
        self._unseen.update(unseen)
        self.n_unseen += bool(unseen)
        self.n_doubled += trace.metadata.get(DOUBLED) is True
        for name in trace.metadata:
            if _is_unread(name, trace) and (
                name in self._unread or len(self._unread) < _MOST_UNREAD
            ):
                self._unread[name] += 1
        if self._first is None:
            self._first = _first(trace)

    def merge(self, other: "Summary") -> None:
        """Add what another one counted."""
        self.n_traces += other.n_traces
        self.n_set_aside += other.n_set_aside
        self.n_human += other.n_human
        self.n_unseen += other.n_unseen
        self.n_doubled += other.n_doubled
        self._unseen.update(other._unseen)
        self._found.update(other._found)
        self._formats.update(other._formats)
        self._workflows.update(other._workflows)
        self._tasks |= other._tasks
        self._unread.update(other._unread)
        self._first = self._first or other._first
        self.scores.merge(other.scores)

    @property
    def workflows(self) -> dict[str, int]:
        """The number of traces of each workflow."""
        return dict(self._workflows)

    @property
    def n_verdicts(self) -> int:
        """The number of traces with a grade."""
        return self._found["verdict"]

    @property
    def costs_known(self) -> int:
        """The number of traces with a cost."""
        return self._found["cost_usd"]

    def preview(self) -> Preview:
        """Return what was counted."""
        # Few files have the fields for reliability: they are listed where they are.
        rare = [name for name in RELIABILITY_FIELDS if self._found[name]]
        names = (*OPTIONAL_FIELDS, *rare, "verdict") if self.n_traces else ()
        return Preview(
            n_traces=self.n_traces,
            n_set_aside=self.n_set_aside,
            n_tasks=len(self._tasks),
            n_verdicts=self.n_verdicts,
            n_human_scores=self.n_human,
            costs_known=self.costs_known,
            formats=dict(self._formats),
            workflows=self.workflows,
            fields=tuple(
                FieldShare(field=name, found=self._found[name], of=self.n_traces) for name in names
            ),
            first=self._first,
            unseen_runs=self.n_unseen,
            unseen_parts=dict(self._unseen.most_common()),
            doubled_costs=self.n_doubled,
            unread=tuple(
                FieldShare(field=note(name, limit=_UNREAD_CHARS) or "?", found=n, of=self.n_traces)
                for name, n in self._unread.most_common()
            ),
        )


def _is_unread(name: str, trace: Trace) -> bool:
    """Return whether a field of the metadata may be what a trace should have been made of."""
    kind = _kind_of_field(name)
    if kind == "cost":
        return trace.cost_usd is None
    return kind is not None and trace.source in _OPEN_FORMATS


@lru_cache(maxsize=10_000)
def _kind_of_field(name: str) -> Literal["cost", "id", "content"] | None:
    """Return what a field may hold, by its name."""
    if len(name) > _UNREAD_CHARS or name in _NO_COST:
        return None
    plain = normalised(name)
    if not _COSTS.isdisjoint(plain.split("_")):
        return "cost"
    if plain in ALIASES["trace_id"]:
        return "id"
    return "content" if plain in _CONTENT else None


def _has(trace: Trace, name: str) -> bool:
    return getattr(trace, name) not in (None, (), "")


def _first(trace: Trace) -> FirstTrace:
    return FirstTrace(
        trace_id=trace.trace_id,
        workflow=trace.workflow,
        task_id=trace.task_id,
        prompt=note(trace.prompt, limit=PROMPT_CHARS) or "",
        n_steps=len(trace.steps),
        response=note(trace.response, limit=PROMPT_CHARS),
        status=trace.status,
        cost_usd=trace.cost_usd,
        started_at=trace.started_at,
    )
