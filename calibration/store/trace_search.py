"""Search traces: filters and the line they are written in, facets, and saved views."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import pandas as pd
from cattrs.errors import BaseValidationError
from cattrs.preconf.json import make_converter

from calibration.errors import InputError, StoreError
from calibration.records import (
    NO_VERDICT,
    NOT_PERTURBED,
    PERTURBATIONS,
    REFERENCE_SOURCE,
    SOURCE_JUDGE,
    YEARS,
)
from calibration.store.batches import NO_COMPANION
from calibration.store.database import Cursor, Database, utc_now
from calibration.store.people import LEAD, StorePart, open_to
from calibration.store.traces import parts_directory
from calibration.taxonomy import Taxonomy

DISPUTED, UNLABELLED = "disputed", "unlabelled"
FOR_LEADS = ("classes", "tags", "judge", "verdicts", "models", "perturbations")
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
    text: str | None = None  # words, "phrases": all in the task or beginning an id, in any case
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
    perturbations: tuple[str, ...] = ()  # none: also where nothing is recorded

    def __post_init__(self) -> None:
        if self.verdicts and self.judge is None:
            raise InputError("verdicts must come with the judge whose they are")

    def check(self, taxonomy: Taxonomy) -> None:
        """Raise InputError, naming the alternatives, for a class or verdict not in the taxonomy."""
        for name, known in (
            ("classes", label_states(taxonomy)),
            ("verdicts", (*taxonomy.names, NO_VERDICT)),
            ("perturbations", PERTURBATIONS),
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


# What a search may name: the field of the filter. Fields of several values are named in FOR_ANY.
KEYS = {
    "workflow": "workflows", "task": "task_key", "status": "statuses", "tool": "tool",
    "error": "tool_ended", "class": "classes", "tag": "tags", "judge": "judge",
    "verdict": "verdicts", "model": "models", "batch": "batch_id", "from": "started_from",
    "to": "started_before", "perturbation": "perturbations",
}  # fmt: skip
FOR_ANY = ("workflows", "statuses", "classes", "tags", "verdicts", "models", "perturbations")
ENDED = {"yes": "error", "no": "ok"}
MAX_SEARCH = 2_000

_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_TERM = re.compile(rf'(?:([^\s":]+):(?:{_QUOTED}|([^\s"]*))|{_QUOTED}|([^\s":]+))(?!\S)')
_WORD = re.compile(rf"{_QUOTED}|(\S+)")


def parse_search(line: str, taxonomy: Taxonomy) -> TraceFilter:
    """Return the filter that a search line means.

    A line has terms ``key:value`` and free words. Repeated workflow, status, class, tag, verdict,
    model and perturbation mean any of them; other keys come once. ``error:yes`` is a call (of
    `tool`) that failed, ``error:no`` none; ``from`` and ``to`` are days or times in UTC, a day of
    ``to`` included. Free words are in the task or begin an id. Values with blanks or colons, and
    phrases, are in double quotes. Raises InputError with the place of what cannot be read.

    Examples
    --------
    >>> from calibration.taxonomy import default_taxonomy
    >>> found = parse_search('tool:refund error:yes "two nights"', default_taxonomy())
    >>> found.to_dict()
    {'text': '"two nights"', 'tool': 'refund', 'tool_ended': 'error'}
    """
    if len(line) > MAX_SEARCH:
        raise InputError(f"a search has at most {MAX_SEARCH:,} characters, got {len(line):,}")
    fields: dict[str, Any] = {}
    words: list[str] = []
    for key, value, place in _terms(line):
        if key is None:
            words.append(_quoted(value))
            continue
        name = KEYS[key]
        try:
            read = _value(key, value, taxonomy)
        except ValueError as error:
            raise InputError(f"{key}:{value} at character {place}: {error}") from None
        if name in FOR_ANY:
            fields[name] = tuple(dict.fromkeys((*fields.get(name, ()), read)))
        elif name in fields:
            raise InputError(f"{key}: is there twice, again at character {place}; it comes once")
        else:
            fields[name] = read
    if fields.get("verdicts") and "judge" not in fields:
        raise InputError("verdict: needs the judge as well, for example judge:NAME")
    return TraceFilter(text=" ".join(dict.fromkeys(words)) or None, **fields)


def _terms(line: str) -> Iterator[tuple[str | None, str, int]]:
    """Yield key, value and place (from 1) of each term."""
    at = 0
    while True:
        at += len(line[at:]) - len(line[at:].lstrip())
        if at == len(line):
            return
        found = _TERM.match(line, at)
        if found is None:
            quotes = line.count('"', at) % 2
            trouble = (
                "a quotation mark without its partner" if quotes
                else "a quotation mark within a word; put the word in double quotes"
            )  # fmt: skip
            raise InputError(f"{line[at:].split()[0]:.80} at character {at + 1}: {trouble}")
        key, *given = found.groups()
        value = next(v for v in given if v is not None)
        if value is given[0] or value is given[2]:
            value = re.sub(r"\\(.)", r"\1", value)
        if key is not None and key.lower() not in KEYS:
            raise InputError(
                f"{key:.80}: at character {at + 1} is not a key; keys are {', '.join(KEYS)}. "
                "Put a word with a colon in double quotes"
            )
        if not value:
            missing = "an empty phrase" if key is None else f"{key.lower()}: without a value"
            raise InputError(f"{missing} at character {at + 1}")
        yield None if key is None else key.lower(), value, at + 1
        at = found.end()


def _value(key: str, value: str, taxonomy: Taxonomy) -> Any:
    """Return the value of a key; ValueError says what it may be."""
    if key == "error":
        if value.lower() not in ENDED:
            raise ValueError("write error:yes or error:no")
        return ENDED[value.lower()]
    if key in ("from", "to"):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"write a day like {key}:2026-07-31") from None
        if moment.tzinfo is not None:
            raise ValueError("times are in UTC, without a zone")
        if moment.year not in YEARS:
            raise ValueError(f"the year is not between {YEARS[0]} and {YEARS[-1]}")
        return moment + timedelta(days=key == "to" and len(value) == len("2026-07-31"))
    if key in ("class", "verdict"):
        more = (DISPUTED, UNLABELLED) if key == "class" else (NO_VERDICT,)
        names = {name: name for name in (*taxonomy.names, *more)}
        names |= {of.title.lower(): of.name for of in taxonomy.classes}
        if value.lower() not in names:
            raise ValueError(f"it is one of {', '.join((*taxonomy.names, *more))}")
        return names[value.lower()]
    if key == "perturbation" and value not in PERTURBATIONS:
        raise ValueError(f"it is one of {', '.join(PERTURBATIONS)}")
    return value


def search_terms(chosen: TraceFilter) -> tuple[str, ...]:
    """Return the terms of the search line that means a filter.

    Examples
    --------
    >>> search_terms(TraceFilter(workflows=("a b", "c"), tool_ended="ok", text="x y"))
    ('workflow:"a b"', 'workflow:c', 'error:no', 'x', 'y')
    """
    terms = []
    for key, name in KEYS.items():
        given = getattr(chosen, name)
        for value in given if name in FOR_ANY else [given]:
            if value is not None:
                terms.append(f"{key}:{_quoted(_written(key, value), also='')}")
    return (*terms, *(_quoted(word) for word in _words(chosen.text or "")))


def _written(key: str, value: Any) -> str:
    if key == "error":
        return next(word for word, ended in ENDED.items() if ended == value)
    if not isinstance(value, datetime):
        return str(value)
    if (value.hour, value.minute, value.second, value.microsecond) != (0, 0, 0, 0):
        return value.isoformat()
    return f"{value - timedelta(days=key == 'to'):%Y-%m-%d}"


def _quoted(value: str, also: str = ":") -> str:
    """Return a value in quotes where it needs them; a free word with a colon would be a key."""
    if re.fullmatch(rf'[^\s"{also}]+', value):
        return value
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'


def _words(text: str) -> list[str]:
    """Return the words and phrases of a text."""
    found = [m[2] or re.sub(r"\\(.)", r"\1", m[1] or "") for m in _WORD.finditer(text)]
    return [word for word in found if word]


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedView:
    """A search with the order and the columns that it is shown in."""

    chosen: TraceFilter
    sort: str = "imported"
    descending: bool = False
    columns: tuple[str, ...] = ()  # names on the page; empty: those of the page at first

    def to_dict(self) -> dict[str, Any]:
        """Return the filters, and `shown` where that is not as usual."""
        shown = {"sort": self.sort, "descending": self.descending, "columns": list(self.columns)}
        usual = self == SavedView(chosen=self.chosen)
        return self.chosen.to_dict() | ({} if usual else {"shown": shown})

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "SavedView":
        """Return the view from the result of `to_dict`."""
        filters = dict(plain)
        shown = filters.pop("shown", {})
        try:
            return _convert.structure(
                shown | {"chosen": TraceFilter.from_dict(filters).to_dict()}, cls
            )
        except (BaseValidationError, TypeError, ValueError) as error:
            raise StoreError(f"this view is of another version: {plain!r:.200}") from error

    def check(self, taxonomy: Taxonomy) -> None:
        """Raise InputError for what the taxonomy or the list of traces does not have."""
        self.chosen.check(taxonomy)
        _check_sort(self.sort)


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
    if chosen.perturbations:
        query.where(
            "list_contains(?::VARCHAR[], coalesce(t.perturbation, ?))",
            list(chosen.perturbations), NOT_PERTURBED,
        )  # fmt: skip
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
    """Search the task and the beginning of the ids; an older part may hold a replaced task."""
    parts, words = _part_files(db, cursor), _words(text)
    if not parts or not words:
        return
    # Anywhere in an id a short number would be found by chance.
    each = (
        "(contains(task, lower(?)) OR starts_with(id, lower(?)) OR starts_with(source, lower(?)))"
    )
    query.where(
        "(t.trace_id, t.part) IN (SELECT trace_id, part FROM ("
        "SELECT s.trace_id, s.part, lower(p.task) AS task, lower(s.trace_id) AS id, "
        "lower(s.source_id) AS source FROM read_parquet(?, filename = true) p "
        "JOIN trace s ON s.trace_id = p.trace_id AND s.part = parse_filename(p.filename)"
        f") WHERE {' AND '.join([each] * len(words))})",
        parts,
        *(word for word in words for _ in range(3)),
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
            f"SELECT trace_id, parse_filename(filename) AS part, left(task, {TASK_CHARS}) "
            f"|| if(length(task) > {TASK_CHARS}, '…', '') AS task "
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


def _check_sort(sort: str) -> None:
    if sort not in SORTED_BY:
        raise InputError(f"sort must be one of {', '.join(SORTED_BY)}, got {sort!r:.80}")


def _append(db: Database, name: str, filters: Mapping[str, object] | None) -> None:
    with db.write() as cursor:
        cursor.execute(
            "INSERT INTO saved_query (name, filters, created_at) VALUES (?, ?, ?)",
            [name, None if filters is None else json.dumps(filters), utc_now()],
        )


class TraceSearch(StorePart):
    """Traces by filters, and saved views."""

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
        _check_sort(sort)
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
    def saved_views(self) -> dict[str, SavedView]:
        """Return the saved views by name, sorted, without those of another version."""
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT name, filters FROM saved_query "
                "QUALIFY row_number() OVER (PARTITION BY name ORDER BY seq DESC) = 1 ORDER BY name"
            ).fetchall()
        views, taxonomy = {}, self._rules()
        for name, text in found:
            if text is not None:
                try:
                    kept = SavedView.from_dict(json.loads(text))
                    kept.check(taxonomy)
                except (StoreError, InputError):
                    continue
                views[name] = kept
        return views

    @open_to(LEAD)
    def save_view(self, name: str, view: SavedView) -> str:
        """Save a view under a name, replacing earlier ones; return the name as stored."""
        view.check(self._rules())
        name = " ".join(name.split())
        if not any(map(str.isalnum, name)) or len(name) > MAX_NAME:
            raise InputError(
                f"the name of a view must have 1 to {MAX_NAME} letters or digits, got {name!r:.100}"
            )
        _append(self._db, name, view.to_dict())
        return name

    @open_to(LEAD)
    def forget_view(self, name: str) -> None:
        """Remove a saved view from the list; it stays on record."""
        _append(self._db, name, None)
