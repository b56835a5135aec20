"""Search traces by filters, facets and saved queries."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import pandas as pd
from cattrs.errors import BaseValidationError
from cattrs.preconf.json import make_converter

from calibration.errors import InputError, StoreError
from calibration.records import NO_VERDICT, REFERENCE_SOURCE, SOURCE_JUDGE
from calibration.store.batches import NO_COMPANION
from calibration.store.database import Cursor, Database, utc_now
from calibration.store.people import LEAD, StorePart, open_to
from calibration.store.traces import parts_directory
from calibration.taxonomy import Taxonomy

DISPUTED, UNLABELLED = "disputed", "unlabelled"
FOR_LEADS = ("classes", "tags", "judge", "verdicts", "models")
MAX_OPTIONS = 500
TASK_CHARS = 160

SORTED_BY = {
    "imported": "seq",
    "started": "started_at",
    "workflow": "workflow",
    "task": "task_key",
    "status": "status",
    "steps": "n_steps",
    "latency": "latency_s",
}

_VERDICT = """
LEFT JOIN (
  SELECT trace_id, min(outcome) AS outcome FROM verdict
  WHERE sample = 0 AND (judge_id = ? OR (? = ? AND starts_with(judge_id, ?))) GROUP BY trace_id
) AS judged ON judged.trace_id = t.trace_id"""

MAX_NAME = 80


def label_states(taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return the human states of a trace: the classes, disputed, unlabelled."""
    return (*taxonomy.names, DISPUTED, UNLABELLED)


_convert = make_converter(forbid_extra_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFilter:
    """Which traces are meant: empty fields do not restrict, several names mean any of them.

    The human class is the consensus, else the class of all labels of production traces, else
    ``disputed``; ``unlabelled`` without a label. A trace without a time is in no window.
    `tool_ended` is ``error`` if a call of `tool` (None: of any tool) failed, ``ok`` if none did.
    """

    workflows: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    task_key: str | None = None
    text: str | None = None  # in the task, in any case; or the id of the trace or of its source
    tool: str | None = None
    tool_ended: Literal["ok", "error"] | None = None
    started_from: datetime | None = None  # UTC
    started_before: datetime | None = None  # exclusive
    batch_id: str | None = None
    classes: tuple[str, ...] = ()  # human ones
    judge: str | None = None
    verdicts: tuple[str, ...] = ()  # of `judge`
    models: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()  # on any label, in any case

    def __post_init__(self) -> None:
        if self.verdicts and self.judge is None:
            raise InputError("verdicts must come with the judge whose they are")

    def check(self, taxonomy: Taxonomy) -> None:
        """Raise InputError, naming the alternatives, for a class or verdict not in the taxonomy."""
        for name, known in (
            ("classes", label_states(taxonomy)),
            ("verdicts", (*taxonomy.names, NO_VERDICT)),
        ):
            for value in getattr(self, name):
                if value not in known:
                    raise InputError(f"{name} must be of {', '.join(known)}, got {value!r:.80}")

    @property
    def for_leads(self) -> bool:
        """Whether the filter reveals what a labelling reviewer must not know."""
        return any(getattr(self, name) for name in FOR_LEADS)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that restrict, as JSON values."""
        plain: dict[str, Any] = _convert.unstructure(self)
        return {name: value for name, value in plain.items() if value}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "TraceFilter":
        """Return the filter from the result of `to_dict`."""
        try:
            return _convert.structure(dict(plain), cls)
        except (BaseValidationError, ValueError) as error:
            raise StoreError(f"these filters are of another version: {plain!r:.200}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFacets:
    """Values to filter by, the most frequent of each, in order."""

    workflows: tuple[str, ...]
    statuses: tuple[str, ...]
    models: tuple[str, ...]
    tools: tuple[str, ...]
    tags: tuple[str, ...]


# Tags of current labels in production: one row each.
_TAGGED = (
    "SELECT trace_id, unnest(from_json(tags, '[\"VARCHAR\"]')) AS tag FROM label_current "
    "SEMI JOIN (FROM batch WHERE purpose IN ('production', 'repeat') "
    f"AND {NO_COMPANION}) USING (batch_id) WHERE kind = 'label'"
)


@dataclass(slots=True)
class _Query:
    """FROM and WHERE, with the values of the placeholders in order."""

    source: str
    values: list[Any]
    conditions: list[str]

    def where(self, condition: str, *values: Any) -> None:
        self.conditions.append(condition)
        self.values += values

    @property
    def sql(self) -> str:
        return f"{self.source} WHERE {' AND '.join(self.conditions)}"


# The human class of a trace under one taxonomy; labels of practice and exams do not count.
_CLASSES = f"""
LEFT JOIN (
  SELECT trace_id, CASE WHEN count(DISTINCT outcome) > 1 THEN 'disputed' ELSE min(outcome) END
    AS outcome, count(*) AS labels
  FROM label_current SEMI JOIN (
    FROM batch WHERE purpose IN ('production', 'repeat') AND {NO_COMPANION}
  ) USING (batch_id)
  WHERE kind = 'label' AND taxonomy_version = ? GROUP BY trace_id
) AS labelled ON labelled.trace_id = t.trace_id
LEFT JOIN (
  SELECT trace_id, outcome FROM consensus WHERE taxonomy_version = ?
) AS adjudicated ON adjudicated.trace_id = t.trace_id"""

_CLASS = f"coalesce(adjudicated.outcome, labelled.outcome, '{UNLABELLED}')"


def _query(
    db: Database, cursor: Cursor, chosen: TraceFilter, taxonomy: Taxonomy, *, for_leads: bool
) -> _Query:
    chosen.check(taxonomy)
    query = _Query("FROM trace t", [], [])
    if for_leads or chosen.for_leads:
        query.source += _CLASSES
        query.values += [taxonomy.version, taxonomy.version]
        if chosen.judge is not None:
            query.source += _VERDICT
            query.values += [chosen.judge, chosen.judge, SOURCE_JUDGE, SOURCE_JUDGE]
    query.where("t.source <> ?", REFERENCE_SOURCE)
    for column, names in (
        ("t.workflow", chosen.workflows),
        ("t.status", chosen.statuses),
        ("t.model", chosen.models),
        (_CLASS, chosen.classes),
        ("judged.outcome", chosen.verdicts),
    ):
        if names:
            query.where(f"list_contains(?::VARCHAR[], {column})", list(names))
    if chosen.task_key is not None:
        query.where("t.task_key = ?", chosen.task_key)
    if chosen.started_from is not None:
        query.where("t.started_at >= ?", chosen.started_from)
    if chosen.started_before is not None:
        query.where("t.started_at < ?", chosen.started_before)
    if chosen.batch_id is not None:
        query.where(
            "t.trace_id IN (SELECT trace_id FROM batch_item WHERE batch_id = ?)", chosen.batch_id
        )
    if chosen.tags:
        query.where(
            f"t.trace_id IN (SELECT trace_id FROM ({_TAGGED}) "
            "WHERE list_contains(?::VARCHAR[], lower(tag)))",
            [tag.lower() for tag in chosen.tags],
        )
    _with_tool(query, chosen)
    if chosen.text:
        _with_text(db, cursor, query, chosen.text)
    return query


def _with_tool(query: _Query, chosen: TraceFilter) -> None:
    if chosen.tool is None and chosen.tool_ended is None:
        return
    ended = {
        None: "", "error": " HAVING sum(errors) > 0", "ok": " HAVING sum(errors) = 0"
    }[chosen.tool_ended]  # fmt: skip
    named = "" if chosen.tool is None else " AND tool = ?"
    query.where(
        f"t.trace_id IN (SELECT trace_id FROM trace_tool WHERE NOT by_user{named} "
        f"GROUP BY trace_id{ended})",
        *([] if chosen.tool is None else [chosen.tool]),
    )


def _with_text(db: Database, cursor: Cursor, query: _Query, text: str) -> None:
    """Search the tasks in the parts; an older part may hold a task that was replaced."""
    parts = _part_files(db, cursor)
    if not parts:
        return
    query.where(
        "(? IN (t.trace_id, t.source_id) OR (t.trace_id, t.part) IN "
        "(SELECT trace_id, parse_filename(filename) "
        "FROM read_parquet(?, filename = true) WHERE contains(lower(task), lower(?))))",
        text.strip(),
        parts,
        text,
    )


def _part_files(db: Database, cursor: Cursor) -> list[str]:
    names = cursor.execute("SELECT DISTINCT part FROM trace ORDER BY part").fetchall()
    return [str(parts_directory(db.path) / row[0]) for row in names]


def _with_details(db: Database, cursor: Cursor, order: str) -> pd.DataFrame:
    """Return a page of rows with the columns that are looked up for these rows only."""
    names = cursor.execute("SELECT DISTINCT part FROM listed").fetchall()
    files = [str(parts_directory(db.path) / row[0]) for row in names]
    if files:
        tasks = (
            f"SELECT trace_id, parse_filename(filename) AS part, left(task, {TASK_CHARS}) AS task "
            "FROM read_parquet(?, filename = true) SEMI JOIN listed USING (trace_id)"
        )
    else:
        tasks = "SELECT NULL AS trace_id, NULL AS part, '' AS task WHERE false"
    return cursor.execute(
        "SELECT listed.* EXCLUDE (seq, part), coalesce(used.calls, 0)::INTEGER AS tool_calls, "
        "coalesce(used.errors, 0)::INTEGER AS tool_errors, tasks.task "
        f"FROM listed LEFT JOIN ({tasks}) AS tasks "
        "ON tasks.trace_id = listed.trace_id AND tasks.part = listed.part "
        "LEFT JOIN (SELECT trace_id, sum(calls) AS calls, sum(errors) AS errors FROM trace_tool "
        "SEMI JOIN listed USING (trace_id) WHERE NOT by_user GROUP BY trace_id) AS used "
        f"ON used.trace_id = listed.trace_id ORDER BY {order}",
        [files] if files else [],
    ).df()


def _append(db: Database, name: str, filters: Mapping[str, object] | None) -> None:
    with db.write() as cursor:
        cursor.execute(
            "INSERT INTO saved_query (name, filters, created_at) VALUES (?, ?, ?)",
            [name, None if filters is None else json.dumps(filters), utc_now()],
        )


class TraceSearch(StorePart):
    """Traces by filters, and saved queries."""

    @open_to(LEAD)
    def trace_facets(self) -> TraceFacets:
        """Return the values to filter by; reference traces are excluded."""
        found: dict[str, tuple[str, ...]] = {}
        with self._db.read() as cursor:
            for name, column in (
                ("workflows", "workflow"),
                ("statuses", "status"),
                ("models", "model"),
            ):
                counted = cursor.execute(
                    f"SELECT {column} FROM trace WHERE source <> ? AND {column} IS NOT NULL "
                    f"GROUP BY {column} ORDER BY count(*) DESC, {column} LIMIT {MAX_OPTIONS}",
                    [REFERENCE_SOURCE],
                ).fetchall()
                found[name] = tuple(sorted(row[0] for row in counted))
            counted = cursor.execute(
                "SELECT tool FROM trace_tool SEMI JOIN (FROM trace WHERE source <> ?) "
                "USING (trace_id) WHERE NOT by_user GROUP BY tool ORDER BY sum(calls) DESC, tool "
                f"LIMIT {MAX_OPTIONS}",
                [REFERENCE_SOURCE],
            ).fetchall()
            found["tools"] = tuple(sorted(row[0] for row in counted))
            counted = cursor.execute(
                f"SELECT min(tag) FROM ({_TAGGED}) GROUP BY lower(tag) "
                f"ORDER BY count(*) DESC, min(tag) LIMIT {MAX_OPTIONS}"
            ).fetchall()
            found["tags"] = tuple(sorted((row[0] for row in counted), key=str.lower))
        return TraceFacets(**found)

    @open_to(LEAD)
    def count_traces(self, chosen: TraceFilter) -> int:
        """Return the number of traces that a filter finds."""
        with self._db.read() as cursor:
            query = _query(self._db, cursor, chosen, self._rules(), for_leads=False)
            (found,) = cursor.execute(f"SELECT count(*) {query.sql}", query.values).fetchall()
        return int(found[0])

    @open_to(LEAD)
    def selected_ids(self, chosen: TraceFilter) -> list[str]:
        """Return the ids of the traces that a filter finds, sorted."""
        with self._db.read() as cursor:
            query = _query(self._db, cursor, chosen, self._rules(), for_leads=False)
            found = cursor.execute(
                f"SELECT t.trace_id {query.sql} ORDER BY t.trace_id", query.values
            ).fetchall()
        return [row[0] for row in found]

    @open_to(LEAD)
    def trace_list(
        self,
        chosen: TraceFilter,
        *,
        for_leads: bool,
        sort: str = "imported",
        descending: bool = False,
        limit: int | None = 100,
        offset: int = 0,
    ) -> pd.DataFrame:
        """Return the traces that a filter finds; classes, verdicts, models, costs for leads."""
        if sort not in SORTED_BY:
            raise InputError(f"sort must be one of {', '.join(SORTED_BY)}, got {sort!r:.80}")
        hidden = ""
        if for_leads:
            hidden = (
                f", {_CLASS} AS class, coalesce(labelled.labels, 0) AS labels, t.model, "
                "t.cost_usd, t.source_id"
            )
            hidden += "" if chosen.judge is None else ", judged.outcome AS verdict"
        order = f"{SORTED_BY[sort]} {'DESC' if descending else 'ASC'} NULLS LAST, seq"
        with self._db.read() as cursor:
            query = _query(self._db, cursor, chosen, self._rules(), for_leads=for_leads)
            page = (
                "SELECT t.trace_id, t.workflow, t.task_key, t.trial, t.status, t.started_at, "
                f"t.latency_s, t.n_steps, t.seq, t.part{hidden} {query.sql} "
                f"ORDER BY {order} LIMIT {'ALL' if limit is None else int(limit)} "
                f"OFFSET {int(offset)}"
            )
            cursor.execute(f"CREATE TEMP TABLE listed AS {page}", query.values)
            try:
                return _with_details(self._db, cursor, order)
            finally:
                cursor.execute("DROP TABLE listed")

    @open_to(LEAD)
    def saved_queries(self) -> dict[str, TraceFilter]:
        """Return the saved filters by name, sorted, without those of another version."""
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT name, filters FROM saved_query "
                "QUALIFY row_number() OVER (PARTITION BY name ORDER BY seq DESC) = 1 ORDER BY name"
            ).fetchall()
        queries, taxonomy = {}, self._rules()
        for name, text in found:
            if text is not None:
                try:
                    kept = TraceFilter.from_dict(json.loads(text))
                    kept.check(taxonomy)
                except (StoreError, InputError):
                    continue
                queries[name] = kept
        return queries

    @open_to(LEAD)
    def save_query(self, name: str, chosen: TraceFilter) -> str:
        """Save filters under a name, replacing earlier ones; return the name as stored."""
        chosen.check(self._rules())
        name = " ".join(name.split())
        if not any(map(str.isalnum, name)) or len(name) > MAX_NAME:
            raise InputError(
                f"the name of a query must have 1 to {MAX_NAME} letters or digits, "
                f"got {name!r:.100}"
            )
        _append(self._db, name, chosen.to_dict())
        return name

    @open_to(LEAD)
    def forget_query(self, name: str) -> None:
        """Remove a saved query from the list; it stays on record."""
        _append(self._db, name, None)
