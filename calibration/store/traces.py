"""Traces (an index row each, their text in immutable Parquet parts) and the verdicts of judges."""

import json
import os
import string
import threading
from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from itertools import count, product
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from calibration.errors import InputError, StoreError
from calibration.files import Spool, private_folder, put_in_place
from calibration.records import (
    CUT,
    GRADES,
    LOOP,
    NO_VERDICT,
    REFERENCE_SOURCE,
    SIMULATED_USERS,
    SOURCE_JUDGE,
    WHOLE,
    Attachment,
    ExpectedCall,
    Step,
    SubGoal,
    Trace,
    TraceForReview,
    Verdict,
    Violation,
    Workflow,
    calls_of,
    is_perturbed,
    plain,
)
from calibration.store.database import (
    Cursor,
    Database,
    insert_table,
    put_setting,
    record_audit,
    rows,
    setting,
    utc_now,
)
from calibration.store.files import make_private, sync_file
from calibration.store.people import LEAD, REVIEWER, StorePart, open_to, put_workflow
from calibration.taxonomy import Taxonomy

K = TypeVar("K", str, tuple[str, str])

# Small row groups of sorted ids: reading one trace touches one of them.
ROW_GROUP = 64
# What is held while a part is written: three times as many bytes, about.
PART_CHARACTERS = 6_000_000
INSERTED_AT_ONCE = 5_000

REVIEW_FIELDS = ("prompt", "inputs", "sub_goals", "steps", "response")
_INDEXED = (
    "trace_id", "source", "source_id", "workflow", "task_id", "task_key", "trial", "status",
    "model", "agent_version", "started_at", "latency_s", "cost_usd", "units", "total_tokens",
    "simulated", "perturbation", "confidence", "context_tokens",
)  # fmt: skip
HIDDEN_FIELDS = ("success_criteria", "metadata", "expected_calls", "violations")
# Columns of the index that an import fills in where an older version stored the same trace.
ADDED = (
    "perturbation", "confidence", "context_tokens", "n_expected_calls", "n_violations",
    "specialists",
)  # fmt: skip

# Names come from untrusted files: cut here, whole in the transcript.
IN_USE = "judge in use"
MAX_NAME = 200

# What a judge read of a trace: told by a file, or known of a judge that we run.
_PROMPT = (
    "coalesce(detail ->> '$.prompt', CASE WHEN (detail ->> '$.cut_characters')::BIGINT > 0 "
    f"THEN '{CUT}' WHEN detail ->> '$.cut_characters' = '0' THEN '{WHOLE}' END)"
)
# A file may have several scorers: together they are its main one, whose name is the shortest.
_FIRST_OF_SOURCE = "QUALIFY rank() OVER (PARTITION BY trace_id ORDER BY judge_id) = 1"
# How far from the first of some calls in a row the last is.
_LAST = LOOP - 1
_LOOPING = f"""
WITH wanted AS (SELECT unnest(?::VARCHAR[]) AS trace_id)
, called AS (
  SELECT trace_id, parse_filename(filename) AS part, list_transform(
    list_filter(
      from_json(
        review,
        '{{"steps": [{{"tool": "VARCHAR", "arguments": "VARCHAR", "result": "VARCHAR"}}]}}'
      ).steps,
      -- A step with a result alone is the answer to a call, not one more.
      lambda step: step.tool IS NOT NULL AND (step.arguments IS NOT NULL OR step.result IS NULL)
    ),
    lambda step: [step.tool, coalesce(step.arguments, '')]
  ) AS calls
  FROM read_parquet(?, filename = true) SEMI JOIN wanted USING (trace_id)
)
, run AS (
  -- Sorted, identical calls lie in a row, wherever they were made.
  SELECT trace_id, part, calls, FALSE AS in_a_row FROM (
    SELECT trace_id, part, list_sort(calls) AS calls FROM called
  )
  UNION ALL SELECT trace_id, part, calls, TRUE FROM called
)
SELECT trace_id, part, bool_or(in_a_row) AS in_a_row FROM run WHERE len(list_filter(
  range(1, len(calls) - {_LAST} + 1),
  lambda k: {" AND ".join(f"calls[k] = calls[k + {n}]" for n in range(1, LOOP))}
)) > 0
GROUP BY trace_id, part
"""

_FEEDBACK = """
SELECT trace_id, parse_filename(filename) AS part,
  hidden::JSON ->> '$.metadata.escalated' AS escalated,
  hidden::JSON ->> '$.metadata.feedback' AS feedback
FROM read_parquet(?, filename = true)
-- Few are read as JSON.
WHERE (contains(hidden, '"escalated"') OR contains(hidden, '"feedback"'))
  AND (escalated IS NOT NULL OR feedback IS NOT NULL)
"""

# How many parts of a trace neither reviewers nor judges see, as imports count them.
_UNSEEN = """
WITH hidden AS (
  SELECT r.trace_id, r.hidden::JSON AS of_trace
  FROM read_parquet(?, filename = true) r
  JOIN trace t ON t.trace_id = r.trace_id AND t.part = parse_filename(r.filename)
  -- Few are read as JSON.
  WHERE contains(r.hidden, '"media_not_shown"') OR contains(r.hidden, '"cut_messages"')
    OR contains(r.hidden, '"unknown_parts"')
)
SELECT trace_id, coalesce(TRY_CAST(of_trace ->> '$.metadata.media_not_shown' AS INTEGER), 0)
  + coalesce(TRY_CAST(of_trace ->> '$.metadata.cut_messages' AS INTEGER), 0)
  + coalesce(TRY_CAST(of_trace ->> '$.metadata.unknown_parts' AS INTEGER), 0) AS parts
FROM hidden WHERE parts > 0
"""

# Traces with enough calls of one tool for a loop: few transcripts are left to read.
_MAY_LOOP = """
SELECT DISTINCT trace_id FROM (
  SELECT trace_id FROM trace_tool GROUP BY trace_id, tool HAVING sum(calls) >= ?
) JOIN trace USING (trace_id) WHERE list_contains(?::VARCHAR[], part)
"""

_TOOLS = """
SELECT t.trace_id, coalesce(sum(u.calls), 0)::DOUBLE AS tool_calls,
  coalesce(sum(u.errors), 0)::DOUBLE AS tool_errors
FROM trace t LEFT JOIN trace_tool u ON u.trace_id = t.trace_id AND NOT u.by_user
WHERE t.n_steps > 0 GROUP BY t.trace_id
"""


def parts_directory(store: Path) -> Path:
    """Return the directory of the Parquet parts of a store."""
    return store.with_suffix(".traces")


# Id, task, what reviewers see and what is hidden from them as JSON text, and about its length.
Text = tuple[str, str, str, str, int]


def write_part(store: Path, texts: list[Text]) -> str:
    """Write one Parquet part, named by its content, atomically."""
    ids, tasks, review, hidden, _ = map(list, zip(*sorted(texts), strict=True))
    name = _part_name(ids, review, hidden)
    directory = private_folder(parts_directory(store))
    temporary = directory / f".{name}.{os.getpid()}"
    # The task once more in a column of its own: a search reads nothing else.
    table = pa.table({"trace_id": ids, "task": tasks, "review": review, "hidden": hidden})
    try:
        # Texts that occur once gain nothing from a dictionary, which takes longer than zstd.
        pq.write_table(
            table, temporary, row_group_size=ROW_GROUP, compression="zstd", use_dictionary=False,
            write_page_checksum=True,
        )  # fmt: skip
        make_private(temporary)
        sync_file(temporary)
        put_in_place(temporary, directory / name)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoreError(f"{directory}: nothing was stored ({error})") from error
    return name


def _part_name(ids: list[str], review: list[str], hidden: list[str]) -> str:
    digest = sha256("\n".join(ids).encode())
    for text in (*review, *hidden):
        digest.update(b"\n" + text.encode())
    return digest.hexdigest()[:16] + ".parquet"


def part_is_whole(part: Path) -> bool:
    """Return whether a part holds what was written: its name is the digest of its content."""
    try:
        table = pq.read_table(part, page_checksum_verification=True, use_threads=False)
        columns = [table[name].to_pylist() for name in ("trace_id", "review", "hidden")]
        tasks = [json.loads(text)["prompt"] for text in columns[1]]
        return part.name == _part_name(*columns) and tasks == table["task"].to_pylist()
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        return False


_json = json.JSONEncoder(ensure_ascii=False, default=str).encode


def _unreadable(part: Path) -> StoreError:
    return StoreError(
        f"{part}: the text of the traces cannot be read; import the files of these runs again, or "
        "bring the part back from a backup"
    )


def read_part(part: Path, ids: Iterable[str], column: str = "review") -> dict[str, str]:
    """Return what reviewers may see of these traces, as JSON text by id; or what is hidden."""
    # Only row groups that may hold them are read: every label asks for a trace or two.
    wanted = set(ids)
    found: dict[str, str] = {}
    try:
        foot, firsts = _layout(part, part.stat().st_mtime_ns)
        # Ids are sorted; without statistics any row group may hold a trace.
        groups = {max(0, bisect_right(firsts, i) - 1) for i in wanted} if firsts else None
        with pq.ParquetFile(part, metadata=foot, page_checksum_verification=True) as file:
            for group in range(foot.num_row_groups) if groups is None else sorted(groups):
                table = file.read_row_group(group, columns=["trace_id", column], use_threads=False)
                for row, trace_id in enumerate(table["trace_id"].to_pylist()):
                    if trace_id in wanted:
                        found[trace_id] = table[column][row].as_py()
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(part) from error
    if missing := wanted - found.keys():
        raise StoreError(f"{part}: lacks the text of trace {missing.pop()!r}")
    return found


@lru_cache(maxsize=64)
def _layout(part: Path, _written: int) -> tuple[pq.FileMetaData, list[str]]:
    """Return the footer of a part and the first id of each row group.

    A part never changes, but a damaged one is written anew.
    """
    foot = pq.read_metadata(part)
    columns = [foot.row_group(group).column(0) for group in range(foot.num_row_groups)]
    if all(column.is_stats_set and column.statistics.has_min_max for column in columns):
        return foot, [column.statistics.min for column in columns]
    return foot, []


def read_tasks(cursor: Cursor, part: Path, ids: list[str], most: int) -> dict[str, str]:
    """Return the first characters of the tasks of these traces, by id."""
    try:
        found = cursor.execute(
            "SELECT trace_id, left(review::JSON ->> '$.prompt', ?) FROM read_parquet(?) "
            "WHERE list_contains(?::VARCHAR[], trace_id)",
            [most, str(part), ids],
        ).fetchall()
    except duckdb.Error as error:
        raise _unreadable(part) from error
    return {trace_id: task or "" for trace_id, task in found}


def read_signals(cursor: Cursor, parts: list[Path]) -> pd.DataFrame:
    """Return what the text of the traces of these parts tells of operation; silent ones are out.

    Columns: trace_id, part, in_a_row (of traces in a loop, as `records.repeats_of` says; a test
    keeps the two alike), escalated, feedback.
    """
    names = [str(part) for part in parts]
    ids = cursor.execute(_MAY_LOOP, [LOOP, [part.name for part in parts]]).fetchall()
    try:
        looped = cursor.execute(_LOOPING, [[trace_id for (trace_id,) in ids], names]).df()
        told = cursor.execute(_FEEDBACK, [names]).df()
    except duckdb.Error as error:
        if len(parts) > 1:  # one of them is at fault
            return pd.concat([read_signals(cursor, [part]) for part in parts])
        raise _unreadable(parts[0]) from error
    return looped.merge(told, on=["trace_id", "part"], how="outer")


SILENT = pd.DataFrame(
    columns=["trace_id", "part", "in_a_row", "escalated", "feedback"], dtype="object"
)


class Signals:
    """What `read_signals` found, by part: a part never changes."""

    def __init__(self) -> None:
        self._of: dict[str, pd.DataFrame] = {}

    def of(self, cursor: Cursor, parts: list[Path]) -> pd.DataFrame:
        """Return the signals of these parts; those that are new are read, all at once."""
        new = [part for part in parts if part.name not in self._of]
        if new:
            found = read_signals(cursor, new)
            by_part = dict(iter(found.groupby("part")))
            self._of |= {part.name: by_part.get(part.name, found.iloc[:0]) for part in new}
        return pd.concat([SILENT, *(self._of[part.name] for part in parts)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """Calls of one tool in one trace, and how many of them failed."""

    tool: str
    calls: int
    errors: int
    by_user: bool = False  # called by the simulated user, not the agent


def tool_uses(trace: Trace) -> tuple[ToolUse, ...]:
    """Count the calls of each tool in a trace, by name, the agent's before the user's."""
    failed: defaultdict[tuple[str, bool], list[bool]] = defaultdict(list)
    for call in calls_of(trace.steps):
        failed[call.tool[:MAX_NAME], call.by_user].append(call.failed)
    return tuple(
        ToolUse(tool=tool, calls=len(calls), errors=sum(calls), by_user=by_user)
        for (tool, by_user), calls in sorted(failed.items())
    )


def insert_tools(cursor: Cursor, used: Mapping[str, Sequence[ToolUse]]) -> None:
    """Add the tool calls of new traces, by trace id."""
    flat = [(trace_id, use) for trace_id, uses in used.items() for use in uses]
    table = pa.table(
        {
            "trace_id": pa.array([trace_id for trace_id, _ in flat], pa.string()),
            "tool": pa.array([use.tool for _, use in flat], pa.string()),
            "calls": pa.array([use.calls for _, use in flat], pa.int32()),
            "errors": pa.array([use.errors for _, use in flat], pa.int32()),
            "by_user": pa.array([use.by_user for _, use in flat], pa.bool_()),
        }
    )
    insert_table(cursor, "trace_tool", table)


def forget_tools(cursor: Cursor, trace_ids: list[str]) -> None:
    """Remove the tool calls of replaced traces."""
    cursor.execute(
        "DELETE FROM trace_tool WHERE list_contains(?::VARCHAR[], trace_id)", [trace_ids]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult(Generic[K]):
    """Result of one import of traces, labels (named by trace and reviewer) or verdicts."""

    imported: tuple[K, ...] = ()
    already_there: tuple[K, ...] = ()
    changed: tuple[K, ...] = ()  # stored with other content; left as it was
    unknown: tuple[str, ...] = ()  # not in the store, or not in the batch of the labels
    replaced: tuple[K, ...] = ()  # changed traces that were taken, and labels given later
    restored: tuple[str, ...] = ()  # their stored text was missing or damaged
    completed: tuple[str, ...] = ()  # an older version did not read all of their fields
    labelled: frozenset[str] = frozenset()  # changed traces with labels
    possible_duplicates: dict[str, str] = field(default_factory=dict)
    graded: tuple[str, ...] = ()  # traces whose grade is new
    other_grade: tuple[str, ...] = ()  # traces that have another grade, which stays
    settled: tuple[str, ...] = ()  # traces that got their adjudicated class
    settled_before: tuple[str, ...] = ()  # traces that had another one, which stays

    def why_kept(self, trace_id: str) -> str:
        """Return the remedy for a changed trace."""
        if trace_id in self.labelled:
            return "it carries labels, so the stored one stays"
        return "`asr import --take-changed` takes the newer one"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """The index row of a trace, with the Parquet part that holds its text."""

    trace_id: str
    source: str
    source_id: str
    trial: int
    content_hash: str
    workflow: str
    task_id: str
    task_key: str
    model: str | None
    agent_version: str | None
    status: str | None
    started_at: datetime | None
    latency_s: float | None
    cost_usd: float | None
    units: float
    total_tokens: int | None
    n_steps: int
    simulated: bool
    part: str
    tools: tuple[ToolUse, ...]
    perturbation: str | None = None
    confidence: float | None = None
    context_tokens: int | None = None
    n_expected_calls: int | None = None
    n_violations: int | None = None
    specialists: bool = False  # steps name one

    @property
    def adds(self) -> bool:
        """Whether the trace has fields that older versions did not read."""
        return any(getattr(self, name) not in (None, False) for name in ADDED)


class PreparedTraces(Sequence[IndexRow]):
    """The index rows of traces, and their text as it is stored; both lie on the disk.

    Whoever reads a file prepares its traces one by one: each is hashed and written as JSON once.
    """

    def __init__(self, traces: Iterable[Trace] = ()) -> None:
        self._index: Spool[IndexRow] = Spool()
        self._texts: Spool[Text] = Spool()
        for trace in traces:
            self.append(trace)

    def append(self, trace: Trace) -> None:
        """Add a trace at the end."""
        everything = plain(trace)
        review = _json({name: everything[name] for name in REVIEW_FIELDS})
        hidden = _json({name: everything[name] for name in HIDDEN_FIELDS})
        size = _characters(trace)
        self._texts.append((trace.trace_id, trace.prompt, review, hidden, size))
        self._index.append(_index_row(trace, everything))

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[IndexRow]:
        return iter(self._index)

    @overload
    def __getitem__(self, place: int) -> IndexRow: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[IndexRow]: ...
    def __getitem__(self, place: int | slice) -> IndexRow | Sequence[IndexRow]:
        return self._index[place]

    def write_parts(self, store: Path, places: Iterable[int]) -> dict[int, str]:
        """Write the text of the traces at some places to parts; return the part of each."""
        parts: dict[int, str] = {}
        held: dict[int, Text] = {}
        # A part holds an id once, and no more than fits in memory.
        ids: set[str] = set()
        size = 0
        for place in sorted(places):
            text = self._texts[place]
            if text[0] in ids or size > PART_CHARACTERS:
                parts |= dict.fromkeys(held, write_part(store, list(held.values())))
                held, ids, size = {}, set(), 0
            held[place] = text
            ids.add(text[0])
            size += text[-1]
        if held:
            parts |= dict.fromkeys(held, write_part(store, list(held.values())))
        return parts


def write_index(store: Path, traces: Iterable[Trace] | PreparedTraces) -> list[IndexRow]:
    """Write the text of traces to parts beside a store, without opening the store."""
    new = traces if isinstance(traces, PreparedTraces) else PreparedTraces(traces)
    parts = new.write_parts(store, range(len(new)))
    return [replace(row, part=parts[place]) for place, row in enumerate(new)]


def _characters(trace: Trace) -> int:
    """Return about how much text a trace has."""
    steps = sum(len(text or "") for s in trace.steps for text in (s.content, s.arguments, s.result))
    return len(trace.prompt) + len(trace.response or "") + steps + 500 * (1 + len(trace.steps))


def _index_row(trace: Trace, everything: dict[str, Any]) -> IndexRow:
    """Return the index row of a trace, `everything` being its fields as plain values to use up."""
    return IndexRow(
        trace_id=trace.trace_id,
        source=trace.source,
        source_id=trace.source_id,
        trial=trace.trial,
        content_hash=trace.content_hash(everything),
        workflow=trace.workflow,
        task_id=trace.task_id,
        task_key=trace.task_key,
        model=trace.model,
        agent_version=trace.agent_version,
        status=trace.status,
        started_at=_utc(trace),
        latency_s=trace.latency_s,
        cost_usd=trace.cost_usd,
        units=trace.units,
        total_tokens=trace.total_tokens,
        n_steps=len(trace.steps),
        simulated=trace.simulated,
        part="",
        tools=tool_uses(trace),
        perturbation=trace.perturbation,
        confidence=trace.confidence,
        context_tokens=trace.context_tokens,
        n_expected_calls=None if trace.expected_calls is None else len(trace.expected_calls),
        n_violations=None if trace.violations is None else len(trace.violations),
        specialists=any(step.agent for step in trace.steps),
    )


def _ingest(
    db: Database,
    index: Sequence[IndexRow],
    *,
    take_changed: bool,
    workflows: Sequence[Workflow],
    grades: Sequence[Verdict | None],
    more: Sequence[Verdict] = (),
    write: Callable[[list[int]], dict[int, str]] | None,
) -> ImportResult[str]:
    """Store all of an import or nothing; `write` writes the text of the rows at these positions."""
    # The rows may lie on the disk: what they are told apart by is read once.
    ids, hashes, adds = [], [], []
    for row in index:
        ids.append(row.trace_id)
        hashes.append(row.content_hash)
        if row.adds:
            adds.append(row.trace_id)
    with db.read() as cursor:
        known, by_hash = _known(cursor, ids)
        older = _older(cursor, [trace_id for trace_id in adds if trace_id in known])
        labelled = _labelled(cursor)
        unreadable = _without_text(db.path, cursor, list(known))
    fresh: dict[str, int] = {}
    replaced: dict[str, int] = {}
    restored: dict[str, int] = {}
    completed: dict[str, int] = {}
    already: list[str] = []
    changed: dict[int, str] = {}
    for place, (trace_id, digest) in enumerate(zip(ids, hashes, strict=True)):
        first = fresh.get(trace_id)
        stored = known.get(trace_id) or (None if first is None else hashes[first])
        if stored is None:
            fresh[trace_id] = place
        elif stored == digest and trace_id in unreadable:
            restored[trace_id] = place
        elif stored == digest and trace_id in older:
            completed[trace_id] = place
        elif stored == digest:
            already.append(trace_id)
        elif take_changed and trace_id in known and trace_id not in labelled:
            replaced[trace_id] = place
        else:
            changed[place] = trace_id
    duplicates: dict[str, str] = {}
    for trace_id, place in fresh.items():
        digest = hashes[place]
        if digest in by_hash:
            duplicates[trace_id] = by_hash[digest]
        by_hash.setdefault(digest, trace_id)
    del by_hash, known, hashes  # as large as the index of the store
    written = restored | completed
    places = [*replaced.values(), *fresh.values(), *written.values()]
    graded: ImportResult[str] = ImportResult()
    if places or workflows or any(grades) or more:
        parts = {} if write is None else write(places)
        with db.write() as cursor:
            # A label may have been stored while the part was written.
            for trace_id in _labelled(cursor) & set(replaced):
                changed[replaced.pop(trace_id)] = trace_id
                labelled.add(trace_id)
            for workflow in workflows:
                put_workflow(cursor, workflow)
            room = _make_room(cursor, list(replaced))
            taken = [*replaced.values(), *fresh.values()]
            for start in range(0, len(taken), INSERTED_AT_ONCE):
                some = taken[start : start + INSERTED_AT_ONCE]
                rows_of = [
                    replace(index[k], part=parts[k]) if k in parts else index[k] for k in some
                ]
                _insert_index(cursor, rows_of, duplicates, room)
            for place in written.values():
                row = index[place]
                _point_to(cursor, replace(row, part=parts[place]) if place in parts else row)
            record_audit(
                cursor,
                "import",
                imported=len(fresh),
                replaced=list(replaced),
                restored=list(restored),
                completed=list(completed),
            )
            # A grade belongs to the content that it rates.
            rated = [v for k, v in enumerate(grades) if v is not None and k not in changed]
            kept = set(changed.values())
            rated += [v for v in more if v.trace_id not in kept]
            graded = _put_verdicts(cursor, rated, of_source=True)
    return ImportResult(
        imported=tuple(fresh),
        already_there=tuple(already),
        changed=tuple(changed.values()),
        replaced=tuple(replaced),
        restored=tuple(restored),
        completed=tuple(completed),
        labelled=frozenset(labelled & set(changed.values())),
        possible_duplicates=duplicates,
        graded=graded.imported,
        other_grade=graded.changed,
    )


def _known(cursor: Cursor, ids: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return stored hash by id for these traces, and stored id by hash for all."""
    stored = cursor.execute("SELECT trace_id, content_hash FROM trace ORDER BY seq").fetchall()
    wanted = set(ids) if stored else set()
    by_hash: dict[str, str] = {}
    for trace_id, digest in stored:
        by_hash.setdefault(digest, trace_id)
    return {trace_id: digest for trace_id, digest in stored if trace_id in wanted}, by_hash


def _older(cursor: Cursor, trace_ids: list[str]) -> set[str]:
    """Return which of these traces were stored before all of their fields were read."""
    found = cursor.execute(
        "SELECT trace_id FROM trace WHERE specialists IS NULL "
        "AND list_contains(?::VARCHAR[], trace_id)",
        [trace_ids],
    ).fetchall()
    return {row[0] for row in found}


def _point_to(cursor: Cursor, row: IndexRow) -> None:
    """Let the index of a stored trace name the part that was written for it."""
    names = ("part", *ADDED)
    cursor.execute(
        f"UPDATE trace SET {', '.join(f'{name} = ?' for name in names)} WHERE trace_id = ?",
        [*(getattr(row, name) for name in names), row.trace_id],
    )


def _without_text(store: Path, cursor: Cursor, trace_ids: list[str]) -> set[str]:
    """Return which of the stored traces lack their text: its part is missing or was changed."""
    found = cursor.execute(
        "SELECT part, list(trace_id) FROM trace WHERE list_contains(?::VARCHAR[], trace_id) "
        "GROUP BY part",
        [trace_ids],
    ).fetchall()
    directory = parts_directory(store)
    return {t for part, ids in found if not part_is_whole(directory / part) for t in ids}


def _labelled(cursor: Cursor) -> set[str]:
    found = cursor.execute("SELECT DISTINCT trace_id FROM label_event").fetchall()
    return {row[0] for row in found}


def _make_room(cursor: Cursor, trace_ids: list[str]) -> dict[str, int]:
    """Remove the index rows and grades of replaced traces; return their positions."""
    if not trace_ids:
        return {}
    places = cursor.execute(
        "SELECT trace_id, seq FROM trace WHERE list_contains(?::VARCHAR[], trace_id)", [trace_ids]
    ).fetchall()
    cursor.execute("DELETE FROM trace WHERE list_contains(?::VARCHAR[], trace_id)", [trace_ids])
    forget_tools(cursor, trace_ids)
    cursor.execute(
        "DELETE FROM verdict WHERE list_contains(?::VARCHAR[], trace_id) "
        "AND starts_with(judge_id, ?)",
        [trace_ids, SOURCE_JUDGE],
    )
    return dict(places)


def _insert_index(
    cursor: Cursor,
    index: list[IndexRow],
    duplicates: dict[str, str],
    places: dict[str, int],
) -> None:
    tags = _agent_tags(cursor, index)
    now = utc_now()
    ((base,),) = cursor.execute("SELECT coalesce(max(seq), 0) FROM trace").fetchall()
    columns: dict[str, list[Any]] = {
        name.name: [getattr(row, name.name) for row in index]
        for name in fields(IndexRow)
        if name.name != "tools"
    }
    columns |= {
        "seq": [places.get(row.trace_id, base + k) for k, row in enumerate(index, 1)],
        "possible_duplicate_of": [duplicates.get(row.trace_id) for row in index],
        "agent_tag": [tags[_agent(row)] for row in index],
        "created_at": [now] * len(index),
    }
    types = {
        "possible_duplicate_of": pa.string(), "model": pa.string(), "status": pa.string(),
        "agent_version": pa.string(), "started_at": pa.timestamp("us"), "latency_s": pa.float64(),
        "cost_usd": pa.float64(), "total_tokens": pa.int64(), "perturbation": pa.string(),
        "confidence": pa.float64(), "context_tokens": pa.int64(),
        "n_expected_calls": pa.int32(), "n_violations": pa.int32(),
    }  # fmt: skip
    table = pa.table({name: pa.array(v, type=types.get(name)) for name, v in columns.items()})
    insert_table(cursor, "trace", table)
    insert_tools(cursor, {row.trace_id: row.tools for row in index})


def _utc(trace: Trace) -> datetime | None:
    """Return the start in UTC; a time without a zone is UTC on every machine."""
    at = trace.started_at
    if at is None or at.tzinfo is None:
        return at
    return at.astimezone(UTC).replace(tzinfo=None)


def _agent(row: IndexRow) -> tuple[str, str]:
    return row.model or "", row.agent_version or ""


def _agent_tags(cursor: Cursor, index: Iterable[IndexRow]) -> dict[tuple[str, str], str]:
    """Return a neutral tag for every model and version, the same for the life of the store."""
    tags = {
        (model, version): tag
        for model, version, tag in cursor.execute("SELECT * FROM agent").fetchall()
    }
    for agent in dict.fromkeys(map(_agent, index)):
        if agent not in tags:
            tags[agent] = _next_tag(set(tags.values()))
            cursor.execute("INSERT INTO agent VALUES (?, ?, ?)", [*agent, tags[agent]])
    return tags


def _next_tag(taken: set[str]) -> str:
    letters = (p for length in count(1) for p in product(string.ascii_lowercase, repeat=length))
    return next(tag for p in letters if (tag := "agent-" + "".join(p)) not in taken)


class Shown:
    """The traces shown last, bounded in number and text; thread-safe."""

    def __init__(self, size: int = 256, characters: int = 64_000_000) -> None:
        # Twenty reviewers with three traces each ask for sixty in turn: fewer would miss all.
        self._size, self._characters = size, characters
        self._lengths: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()

    def get(self, key: tuple[str, str]) -> dict[str, Any] | None:
        """Return a cached trace, which callers must not change."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: tuple[str, str], body: dict[str, Any], characters: int) -> None:
        """Cache a trace in place of those unused for longest."""
        with self._lock:
            self._kept[key], self._lengths[key] = body, characters
            while len(self._kept) > self._size or (
                len(self._kept) > 1 and sum(self._lengths.values()) > self._characters
            ):
                oldest, _ = self._kept.popitem(last=False)
                del self._lengths[oldest]


def _bodies(db: Database, part: str, ids: list[str]) -> dict[str, dict[str, Any]]:
    """Return the text of traces of a part, cached: the queue asks for the same few every time."""
    shown = db.held(Shown)
    found = {i: body for i in ids if (body := shown.get((part, i))) is not None}
    missing = [i for i in ids if i not in found]
    if missing:
        for trace_id, text in read_part(parts_directory(db.path) / part, missing).items():
            found[trace_id] = json.loads(text)
            shown.put((part, trace_id), found[trace_id], len(text))
    return found


def _review(head: dict[str, Any], body: dict[str, Any]) -> TraceForReview:
    return TraceForReview(
        trace_id=head["trace_id"],
        workflow=head["workflow"],
        status=head["status"],
        agent=head["agent_tag"],
        latency_s=head["latency_s"],
        simulated_user=head["source"] in SIMULATED_USERS,
        **_read(body),
    )


def _read(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `REVIEW_FIELDS` of a trace from their JSON."""
    return {
        "prompt": body["prompt"],
        "inputs": tuple(Attachment(**item) for item in body["inputs"]),
        "sub_goals": tuple(SubGoal(**item) for item in body["sub_goals"]),
        "steps": tuple(Step(**item) for item in body["steps"]),
        "response": body["response"],
    }


def _read_hidden(body: dict[str, Any]) -> dict[str, Any]:
    """Return the `HIDDEN_FIELDS` of a trace from their JSON; older parts hold fewer."""
    lists: dict[str, type[Any]] = {"expected_calls": ExpectedCall, "violations": Violation}
    return body | {
        name: tuple(of(**item) for item in body[name])
        for name, of in lists.items()
        if body.get(name) is not None
    }


def perturbed(traces: pd.DataFrame) -> "pd.Series[bool]":
    """Return whether each trace of `Store.trace_frame` is of a perturbed arm."""
    arms = traces["perturbation"]
    return arms.isin([arm for arm in arms.dropna().unique() if is_perturbed(arm)])


OPERATION = [
    "trace_id", "tool_calls", "tool_errors", "loops", "loops_in_a_row", "escalated", "feedback",
]  # fmt: skip
REPEATED = ["trace_id", "part", "actions", "n_errors", "call_latency_s", "violations"]


def _repeated(path: Path) -> Iterator[dict[str, Any]]:
    """Yield what reliability needs of each trace of a part: its calls, and its violations."""
    try:
        # One row group at a time: a part may be large.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(ROW_GROUP, columns=["trace_id", "review", "hidden"]):
                for row in batch.to_pylist():
                    steps = [Step(**step) for step in json.loads(row["review"])["steps"]]
                    calls = [call for call in calls_of(steps) if not call.by_user]
                    taken = [call.seconds for call in calls if call.seconds is not None]
                    yield {
                        "trace_id": row["trace_id"],
                        "part": path.name,
                        "actions": [call.tool[:MAX_NAME] for call in calls] if steps else None,
                        "n_errors": sum(call.failed for call in calls) if steps else None,
                        "call_latency_s": sum(taken) / len(taken) if taken else None,
                        "violations": json.loads(row["hidden"]).get("violations"),
                    }
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(path) from error


def _check_verdicts(rules: Taxonomy, new: Sequence[Verdict]) -> None:
    known_outcomes = (*rules.names, NO_VERDICT)
    for verdict in new:
        if not 1 <= len(verdict.judge_id) <= MAX_NAME:
            raise InputError(f"a judge must have a name of 1 to {MAX_NAME} characters")
        where = f"judge {verdict.judge_id!r} on trace {verdict.trace_id!r:.80}"
        if verdict.outcome not in known_outcomes:
            raise InputError(f"{where}: outcome {verdict.outcome!r} is not a class")
        if verdict.grade is not None and verdict.grade not in GRADES:
            raise InputError(
                f"{where}: grade must be a whole number from 1 to 5, got {verdict.grade!r}"
            )


def _put_verdicts(
    cursor: Cursor, new: Sequence[Verdict], *, of_source: bool = False
) -> ImportResult[str]:
    """Store verdicts within a transaction; one that is stored is never overwritten.

    `of_source` : they are scores that came with the traces. One without a class, as its scale was
    not known, gets the class that follows from it now.
    """
    traces = {row[0] for row in cursor.execute("SELECT trace_id FROM trace").fetchall()}
    known = {
        (judge, trace, sample): outcome
        for judge, trace, sample, outcome in cursor.execute(
            "SELECT judge_id, trace_id, sample, outcome FROM verdict"
        ).fetchall()
    }
    fresh: dict[tuple[str, str, int], Verdict] = {}
    settled: dict[tuple[str, str, int], Verdict] = {}
    already, changed, unknown = [], [], []
    for verdict in new:
        key = (verdict.judge_id, verdict.trace_id, verdict.sample)
        stored = known.get(key) or (fresh[key].outcome if key in fresh else None)
        if verdict.trace_id not in traces:
            unknown.append(verdict.trace_id)
        elif stored is None:
            fresh[key] = verdict
        elif stored == verdict.outcome:
            already.append(verdict.trace_id)
        elif of_source and stored == NO_VERDICT and key not in fresh and key not in settled:
            settled[key] = verdict
        else:
            changed.append(verdict.trace_id)
    _insert_verdicts(cursor, list(fresh.values()))
    _settle_verdicts(cursor, list(settled.values()))
    if fresh or settled:
        judges = sorted({v.judge_id for v in (*fresh.values(), *settled.values())})
        record_audit(cursor, "verdicts", judges=judges, stored=len(fresh), settled=len(settled))
    return ImportResult(
        imported=tuple(v.trace_id for v in (*fresh.values(), *settled.values())),
        already_there=tuple(already),
        changed=tuple(changed),
        unknown=tuple(unknown),
    )


def _settle_verdicts(cursor: Cursor, settled: list[Verdict]) -> None:
    """Give stored verdicts without a class the class that follows from their score."""
    if not settled:
        return
    columns = [
        [getattr(v, name) for v in settled]
        for name in ("judge_id", "trace_id", "sample", "outcome", "reason", "proposed", "grade")
    ]
    cursor.execute(
        "UPDATE verdict SET outcome = new.outcome, reason = new.reason, proposed = new.proposed, "
        "grade = new.grade FROM (SELECT unnest(?::VARCHAR[]) AS judge_id, "
        "unnest(?::VARCHAR[]) AS trace_id, unnest(?::INTEGER[]) AS sample, "
        "unnest(?::VARCHAR[]) AS outcome, unnest(?::VARCHAR[]) AS reason, "
        "unnest(?::BOOLEAN[]) AS proposed, unnest(?::INTEGER[]) AS grade) AS new "
        "WHERE verdict.judge_id = new.judge_id AND verdict.trace_id = new.trace_id "
        "AND verdict.sample = new.sample",
        columns,
    )


def _insert_verdicts(cursor: Cursor, fresh: list[Verdict]) -> None:
    now = utc_now()
    for judge_id, simulated in dict.fromkeys((v.judge_id, v.simulated) for v in fresh):
        cursor.execute(
            "INSERT INTO judge VALUES (?, ?, ?) ON CONFLICT (judge_id) "
            "DO UPDATE SET simulated = simulated OR excluded.simulated",
            [judge_id, simulated, now],
        )
    table = pa.table(
        {
            "judge_id": pa.array([v.judge_id for v in fresh], pa.string()),
            "trace_id": pa.array([v.trace_id for v in fresh], pa.string()),
            "sample": pa.array([v.sample for v in fresh], pa.int32()),
            "outcome": pa.array([v.outcome for v in fresh], pa.string()),
            "reason": pa.array([v.reason for v in fresh], pa.string()),
            "evidence": pa.array(
                [json.dumps([asdict(e) for e in v.evidence]) for v in fresh], pa.string()
            ),
            "proposed": pa.array([v.proposed for v in fresh], pa.bool_()),
            "grade": pa.array([v.grade for v in fresh], pa.int32()),
            "cost_usd": pa.array([v.cost_usd for v in fresh], pa.float64()),
            "cause": pa.array([v.cause for v in fresh], pa.string()),
            "detail": pa.array([v.detail for v in fresh], pa.string()),
            "created_at": pa.array([now] * len(fresh), pa.timestamp("us")),
        }
    )
    insert_table(cursor, "verdict", table)


class TraceStore(StorePart):
    """Traces, and the verdicts of judges on them."""

    @open_to(LEAD)
    def ingest(
        self,
        new: Iterable[Trace] | PreparedTraces,
        *,
        take_changed: bool = False,
        workflows: Sequence[Workflow] = (),
        grades: Sequence[Verdict | None] = (),
        more: Sequence[Verdict] = (),
    ) -> ImportResult[str]:
        """Store the traces that are new, with their workflows and grades; report the others.

        A trace with the same id and other content is `changed`: it is replaced only with
        `take_changed` and without labels. Equal content under another id is stored and marked as a
        possible duplicate. `grades` has one entry a trace, `more` the verdicts of further scorers.
        All of it is stored, or nothing. What is large comes as `PreparedTraces`, from the disk.
        """
        _check_verdicts(self._rules(), [*(v for v in grades if v is not None), *more])
        # One import at a time: the stored ids must not change before the new traces are stored.
        with self._db.importing:
            prepared = new if isinstance(new, PreparedTraces) else PreparedTraces(new)
            return _ingest(
                self._db,
                prepared,
                take_changed=take_changed,
                workflows=workflows,
                grades=grades,
                more=more,
                write=lambda places: prepared.write_parts(self._db.path, places),
            )

    @open_to(LEAD)
    def ingest_written(
        self,
        index: Sequence[IndexRow],
        *,
        take_changed: bool = False,
        workflows: Sequence[Workflow] = (),
        grades: Sequence[Verdict | None] = (),
        more: Sequence[Verdict] = (),
    ) -> ImportResult[str]:
        """Store traces whose text another process has already written to parts."""
        for part in {row.part for row in index}:
            if part != Path(part).name or not (parts_directory(self._db.path) / part).is_file():
                raise InputError(
                    f"part {part!r} of the traces is not there; import the files again"
                )
        _check_verdicts(self._rules(), [*(v for v in grades if v is not None), *more])
        with self._db.importing:
            return _ingest(
                self._db,
                index,
                take_changed=take_changed,
                workflows=workflows,
                grades=grades,
                more=more,
                write=None,
            )

    @open_to(LEAD)
    def for_review(self, trace_ids: Sequence[str]) -> list[TraceForReview]:
        """Return what a labelling reviewer may see of these traces, in the order requested."""
        if not trace_ids:
            return []
        with self._db.read() as cursor:
            heads = rows(
                cursor,
                "SELECT trace_id, source, workflow, status, agent_tag, latency_s, part FROM trace "
                "WHERE list_contains(?, trace_id)",
                [list(trace_ids)],
            )
        by_part: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for head in heads:
            by_part[head["part"]].append(head)
        bodies: dict[str, dict[str, Any]] = {}
        for part, own in by_part.items():
            bodies |= _bodies(self._db, part, [head["trace_id"] for head in own])
        found = {head["trace_id"]: _review(head, bodies[head["trace_id"]]) for head in heads}
        return [found[trace_id] for trace_id in trace_ids if trace_id in found]

    @open_to(LEAD)
    def whole_traces(self, trace_ids: Sequence[str]) -> list[Trace]:
        """Return these traces as they were imported, with what reviewers may not see.

        They are in the order requested; near in it should be near by id, as they are on the disk.
        """
        with self._db.read() as cursor:
            heads = rows(
                cursor,
                f"SELECT {', '.join(_INDEXED)}, part FROM trace "
                "WHERE list_contains(?::VARCHAR[], trace_id)",
                [list(trace_ids)],
            )
        found: dict[str, Trace] = {}
        for name in {head["part"] for head in heads}:
            own = {head["trace_id"]: head for head in heads if head["part"] == name}
            part = parts_directory(self._db.path) / name
            shown, hidden = (read_part(part, own, column) for column in ("review", "hidden"))
            for trace_id, head in own.items():
                at = head["started_at"]
                values = {column: head[column] for column in _INDEXED}
                found[trace_id] = Trace(
                    **values
                    | {"started_at": None if at is None else at.replace(tzinfo=UTC)}
                    | _read(json.loads(shown[trace_id]))
                    | _read_hidden(json.loads(hidden[trace_id]))
                )
        return [found[trace_id] for trace_id in trace_ids if trace_id in found]

    @open_to(LEAD)
    def content_hashes(self, trace_ids: Sequence[str]) -> dict[str, str]:
        """Return the hash of the content of each of these traces that is in the store."""
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT trace_id, content_hash FROM trace "
                "WHERE list_contains(?::VARCHAR[], trace_id)",
                [list(trace_ids)],
            ).fetchall()
        return dict(found)

    @open_to(LEAD)
    def trace_frame(self) -> pd.DataFrame:
        """Return the index of all traces, in the order of import.

        Columns: trace_id, seq, source, workflow, task_key, trial, model, agent_version, status,
        started_at, latency_s, n_steps, cost_usd (missing: NaN), units, ceiling_usd (missing: NaN),
        simulated, perturbation (missing: none was recorded), total_tokens, context_tokens.
        """
        return self._frame_kept(
            "SELECT trace_id, seq, source, t.workflow, task_key, trial, model, agent_version, "
            "status, started_at, latency_s, n_steps, cost_usd, units, w.ceiling_usd, simulated, "
            "perturbation, total_tokens, context_tokens "
            "FROM trace t LEFT JOIN workflow w ON w.name = t.workflow ORDER BY seq",
        )

    @open_to(LEAD)
    def unseen_parts(self) -> dict[str, int]:
        """Return how many parts of a trace neither reviewers nor judges see: pictures and others.

        Traces without any are left out, and those whose text cannot be read.
        """
        found: dict[str, int] = {}
        with self._db.read() as cursor:
            named = cursor.execute("SELECT DISTINCT part FROM trace ORDER BY part").fetchall()
            for (part,) in named:
                file = parts_directory(self._db.path) / str(part)
                try:
                    found |= dict(cursor.execute(_UNSEEN, [[str(file)]]).fetchall())
                except duckdb.Error:
                    continue
        return found

    @open_to(LEAD)
    def ids_by_source(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Return the trace ids that these ids of a source stand for; a trace id is none."""
        wanted = list(names)
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT source_id, list(trace_id ORDER BY seq) FROM trace "
                "WHERE list_contains(?::VARCHAR[], source_id) AND source <> ? "
                "AND source_id NOT IN (SELECT trace_id FROM trace) GROUP BY source_id",
                [wanted, REFERENCE_SOURCE],
            ).fetchall()
        return dict(found)

    @open_to(LEAD)
    def ids_at_source(self, source: str) -> dict[str, str]:
        """Return the ids that the traces of a source have there, by trace id."""
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT trace_id, source_id FROM trace WHERE source = ? ORDER BY seq", [source]
            ).fetchall()
        return dict(found)

    @open_to(LEAD)
    def production_traces(self, *, arms: bool = False) -> pd.DataFrame:
        """Return `trace_frame` without the reference set, and without perturbed arms.

        The traces of the one were written to be hard, those of the other were disturbed on purpose:
        neither are like the work that a rate is about. With `arms` the latter are there.
        """
        frame: pd.DataFrame = self._unbound().trace_frame()
        frame = frame[frame["source"] != REFERENCE_SOURCE]
        return frame if arms else frame[~perturbed(frame)]

    @open_to(LEAD)
    def perturbed_traces(self) -> pd.DataFrame:
        """Return the traces of `trace_frame` that are of perturbed arms."""
        frame: pd.DataFrame = self._unbound().trace_frame()
        return frame[perturbed(frame)]

    @open_to(LEAD)
    def operation_frame(self) -> pd.DataFrame:
        """Return the operational signals of every trace, in the order of import.

        Columns: trace_id, tool_calls, tool_errors (of the agent, not the simulated user), loops (1:
        identical calls three times or more, else 0), loops_in_a_row (1: in a row; these four are
        missing without steps), escalated and feedback (fields of the file; missing: none).
        """
        return self._kept(("operation",), self._operation)

    def _operation(self) -> pd.DataFrame:
        directory = parts_directory(self._db.path)
        with self._db.read() as cursor:
            index = cursor.execute("SELECT trace_id, part FROM trace ORDER BY seq").df()
            tools = cursor.execute(_TOOLS).df()
            parts = [directory / part for part in sorted(set(index["part"]))]
            signals = self._db.held(Signals).of(cursor, parts)
        # A part may still hold a replaced trace: the index names the current part.
        found = index.merge(signals, on=["trace_id", "part"], how="left")
        found = found.merge(tools, on="trace_id", how="left")
        for name, of in (
            ("loops", found["in_a_row"].notna()),
            ("loops_in_a_row", found["in_a_row"] == True),  # noqa: E712
        ):
            found[name] = of.astype("float64").where(found["tool_calls"].notna())
        return found[OPERATION]

    @open_to(LEAD)
    def repeated_frame(self) -> pd.DataFrame:
        """Return what reliability needs of every trace that is not of the reference set.

        Columns: trace_id, task_key, trial, model, agent_version, simulated, perturbation,
        confidence, cost_usd, latency_s, actions (tools that the agent called, in order; missing
        without steps), n_errors (of these calls), call_latency_s (their mean), violations (of the
        file, as a list of objects; missing: it has no list).
        """
        index = self._frame(
            "SELECT trace_id, part, task_key, trial, model, agent_version, simulated, "
            "perturbation, confidence, cost_usd, latency_s FROM trace WHERE source <> ? "
            "ORDER BY seq",
            [REFERENCE_SOURCE],
        )
        directory = parts_directory(self._db.path)
        wanted = set(zip(index["trace_id"], index["part"], strict=True))
        rows_of = (
            row
            for part in sorted(set(index["part"]))
            for row in _repeated(directory / part)
            if (row["trace_id"], row["part"]) in wanted
        )
        told = pd.DataFrame(rows_of, columns=REPEATED, dtype="object")
        return index.merge(told, on=["trace_id", "part"], how="left").drop(columns="part")

    @open_to(REVIEWER)
    def store_id(self) -> str:
        """Return the id that a store shares with its backups only."""
        with self._db.read() as cursor:
            (found,) = cursor.execute("SELECT store_id FROM store_state").fetchone() or ("",)
        return str(found)

    @open_to(REVIEWER)
    def is_simulated(self) -> bool:
        """Return whether any trace of the store is simulated."""
        with self._db.read() as cursor:
            found = cursor.execute("SELECT 1 FROM trace WHERE simulated LIMIT 1").fetchone()
        return found is not None

    @open_to(LEAD)
    def add_verdicts(self, new: Sequence[Verdict]) -> ImportResult[str]:
        """Store verdicts; a judge's verdict on a trace (and sample) is never overwritten."""
        _check_verdicts(self._rules(), new)
        with self._db.write() as cursor:
            return _put_verdicts(cursor, new)

    @open_to(LEAD)
    def verdict_samples(self, judge_id: str) -> pd.DataFrame:
        """Return every verdict of a judge, repeated samples included, by trace and sample.

        `of_all` marks the verdict of all samples together: it is not one more of them.
        """
        # grade: 1 to 5, missing NaN; evidence: JSON text.
        return self._frame(
            "SELECT trace_id, sample, outcome, grade, reason, evidence, "
            "coalesce((detail ->> '$.of_all')::BOOLEAN, false) AS of_all, cause, "
            f"{_PROMPT} AS prompt FROM verdict "
            f"WHERE judge_id = ? OR (? = ? AND starts_with(judge_id, ?)) {_FIRST_OF_SOURCE} "
            "ORDER BY trace_id, sample",
            [judge_id, judge_id, SOURCE_JUDGE, SOURCE_JUDGE],
        )

    @open_to(LEAD)
    def verdict_frame(self, judge_id: str) -> pd.DataFrame:
        """Return a judge's first verdict per trace; ``source:`` means the grades of the files.

        `cause` says why there is none, `prompt` whether the judge read the trace ``whole`` or
        ``cut``; missing where that is not known.
        """
        return self._frame_kept(
            f"SELECT trace_id, judge_id, outcome, proposed, cause, {_PROMPT} AS prompt "
            "FROM verdict "
            "WHERE sample = 0 AND (judge_id = ? OR (? = ? AND starts_with(judge_id, ?))) "
            f"{_FIRST_OF_SOURCE} ORDER BY trace_id",
            [judge_id, judge_id, SOURCE_JUDGE, SOURCE_JUDGE],
        )

    @open_to(LEAD)
    def use_judge(self, judge_id: str) -> None:
        """Let results take a judge where none is named; it must have a verdict."""
        with self._db.write() as cursor:
            if not cursor.execute("SELECT 1 FROM judge WHERE judge_id = ?", [judge_id]).fetchone():
                raise InputError(f"judge {judge_id!r:.80} has no verdict yet; run it first")
            put_setting(cursor, IN_USE, judge_id, by=self._by())

    @open_to(LEAD)
    def judge_in_use(self) -> str | None:
        """Return the judge that results take where none is named; None if nobody chose one."""
        with self._db.read() as cursor:
            found = setting(cursor, IN_USE)
        return None if found is None else str(found)

    @open_to(LEAD)
    def judge_frame(self) -> pd.DataFrame:
        """Return judge_id, number of traces with a verdict and simulated of every judge."""
        return self._frame(
            "SELECT judge_id, count(DISTINCT v.trace_id) AS n, any_value(simulated) AS simulated "
            "FROM judge LEFT JOIN verdict v USING (judge_id) GROUP BY judge_id ORDER BY judge_id",
        )
