"""Collect the spans of one import and give out run after run, over any number of files.

The spans of a run may be in several files and in any order. They wait in a temporary database on
the disk: no more than one run is in memory.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal

from calibration.errors import TraceFormatError
from calibration.records import SetAside
from calibration.trace_formats.base import (
    MAX_SCORE_NAMES,
    MAX_TRACE_BYTES,
    Head,
    Importer,
    ImportSettings,
    Item,
    Parsed,
    RunGrades,
    RunScore,
    attempt,
    stated_scale,
)
from calibration.trace_formats.compressed import first_bytes
from calibration.trace_formats.fields import FieldError, first_of, identifier, shown
from calibration.trace_formats.json_scanner import JsonText, decode_line, numbered_lines
from calibration.trace_formats.own_files import first_line, sample_rows
from calibration.trace_formats.parquet import PARQUET, parquet_rows
from calibration.trace_formats.spans import time_of

MAX_PARTS_OF_RUN = 50_000
MAX_BYTES_OF_RUN = 3 * MAX_TRACE_BYTES  # each call of a model repeats what was said before
_TOO_LONG = f"is longer than {MAX_TRACE_BYTES // 1_000_000} MB"
_BATCH = 1_000

_SCHEMA = """
CREATE TABLE part (
    id INTEGER PRIMARY KEY, format TEXT, file TEXT, line INTEGER, kind TEXT, run TEXT, span TEXT,
    parent TEXT, data TEXT
);
CREATE INDEX part_run ON part (format, run);
CREATE INDEX part_span ON part (format, span);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """One row of a platform: a span, what is known of its run as a whole, a score, or its scale.

    A scale is that of all scores of one name. `run_id` is None where the row does not name its
    run: it is that of `span_id`, or of the spans above.
    """

    kind: Literal["span", "run", "score", "scale"]
    run_id: str | None
    span_id: str | None = None
    parent_id: str | None = None
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRun:
    """All parts of one run; parts with the same id are one.

    Where values differ, those of the span that ended count, else of the longer one, else the later.
    """

    run_id: str
    about: Mapping[str, object]
    spans: Mapping[str, Mapping[str, object]]
    scores: Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanFormat:
    """The format of a platform whose runs are trees of spans.

    `streamed` names the lists that are read element by element; `parts` takes an element, a line or
    the rest of an object, with the name of its list, apart; `build` makes the trace of a run.
    """

    name: str
    title: str
    expects: str
    recognises: Callable[[Head], bool]
    streamed: frozenset[str]
    parts: Callable[[str | None, object], Iterator[RunPart]]
    build: Callable[[WholeRun, ImportSettings], Parsed]
    convert: str  # how to export a file that can be read, where this one cannot

    @property
    def importer(self) -> Importer:
        """The importer of one file of this format."""
        return Importer(
            name=self.name,
            title=self.title,
            expects=self.expects,
            recognises=self.recognises,
            read=self.read,
        )

    def read(self, path: Path, settings: ImportSettings) -> Iterator[Item]:
        """Yield the runs of one file, each when the file has been read to its end."""
        with SpanShelf() as shelf:
            yield from shelf.take(self, path)
            yield from shelf.runs(settings)


class SpanShelf:
    """The spans of an import until all files are read; a context manager."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("")  # on the disk, and gone when it is closed
        self._db.executescript(_SCHEMA)
        self._formats: dict[str, SpanFormat] = {}
        self._scales: dict[tuple[str, str], tuple[float | None, float]] = {}

    def __enter__(self) -> "SpanShelf":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()

    def take(self, form: SpanFormat, path: Path) -> Iterator[SetAside]:
        """Take the spans of a file; yield its rows that are none. Nothing of a broken file stays.

        Raises TraceFormatError if the file cannot be read or holds no span.
        """
        self._formats[form.name] = form
        file, before = str(path), (self._db.total_changes, len(self._scales))
        aside = 0
        table = first_bytes(path).startswith(PARQUET)
        if not table and not (first_line(path) or b"{").startswith((b"[", b"{")):
            raise TraceFormatError(f"{path}: is {form.title} as a table: not read. {form.convert}")
        try:
            for name, value, line in _table(path) if table else _rows(path, form.streamed):
                reason = self._put(form, file, line, name, value)
                if reason is not None:
                    aside += 1
                    yield SetAside(file=file, line=line, reason=reason)
        except TraceFormatError:
            self._db.execute("DELETE FROM part WHERE format = ? AND file = ?", (form.name, file))
            raise
        if not aside and (self._db.total_changes, len(self._scales)) == before:
            raise TraceFormatError(f"{path}: {form.title} without a span or a run. {form.convert}")

    def _put(
        self, form: SpanFormat, file: str, line: int, name: str | None, value: object
    ) -> str | None:
        """Keep the parts of a row; return why there are none."""
        if isinstance(value, FieldError):
            return str(value)
        try:
            parts = list(form.parts(name, value))
            rows = [
                (form.name, file, line, p.kind, p.run_id, p.span_id, p.parent_id, _text(p.data))
                for p in parts
                if p.kind != "scale"
            ]
        except FieldError as error:
            return str(error)
        except RecursionError:
            return "is nested too deeply"
        if not parts and name is not None:
            return f"is no span, run or score of {form.title}, got {shown(value)}"
        for part in parts:
            scale = stated_scale(part.data) if part.kind == "scale" else None
            if scale is not None and len(self._scales) < MAX_SCORE_NAMES:
                self._scales[form.name, str(part.data.get("name"))] = scale
        for row in rows:
            self._db.execute(
                "INSERT INTO part (format, file, line, kind, run, span, parent, data) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
        return None

    def runs(self, settings: ImportSettings) -> Iterator[Item]:
        """Yield every run in the order of its first span; the shelf is read once."""
        for form in self._formats.values():
            self._name_runs(form.name)
            order = self._db.execute(
                "SELECT run, coalesce(min(CASE WHEN kind <> 'score' THEN id END), min(id)), "
                "count(*), sum(length(data)) FROM part WHERE format = ? GROUP BY run ORDER BY 2",
                (form.name,),
            )
            for run_id, first, parts, size in order.fetchall():
                yield from self._run(form, settings, run_id, first, parts, size)

    def _run(
        self, form: SpanFormat, settings: ImportSettings, run_id: str, first: int, parts: int,
        size: int,
    ) -> Iterator[Item]:  # fmt: skip
        found = self._db.execute("SELECT file, line FROM part WHERE id = ?", (first,))
        file, line = found.fetchone()
        if parts > MAX_PARTS_OF_RUN or size > MAX_BYTES_OF_RUN:
            most = f"at most {MAX_PARTS_OF_RUN:,} and {MAX_BYTES_OF_RUN / 1e6:.0f} MB are taken in"
            reason = f"the run {run_id!r:.80} has {parts:,} spans of {size / 1e6:.1f} MB; {most}"
            yield SetAside(file=file, line=line, reason=reason)
            return
        rows = self._db.execute(
            "SELECT file, line, kind, span, data FROM part WHERE format = ? AND run = ? "
            "ORDER BY id",
            (form.name, run_id),
        )
        whole, again = _joined(run_id, rows.fetchall())
        for other, where in again.items():
            reason = f"the same run as in {file}, line {line} (id {run_id!r:.80})"
            yield SetAside(file=other, line=where, reason=reason)

        def build() -> Parsed:
            if not whole.spans and not whole.about:
                raise FieldError(f"is a score of the run {run_id!r:.80}, of which there is no span")
            run = form.build(whole, settings)
            return replace(run, grades=self._scaled(form, run.grades), line=line, file=file)

        yield attempt(Path(file), line, build)

    def _scaled(self, form: SpanFormat, grades: RunGrades) -> RunGrades:
        """Return the scores of a run with the scales that the platform states for their names."""
        if not self._scales:
            return grades

        def scaled(score: RunScore) -> RunScore:
            return replace(score, scale=score.scale or self._scales.get((form.name, score.name)))

        human = (replace(one, score=scaled(one.score)) for one in grades.human)
        return replace(grades, scores=tuple(map(scaled, grades.scores)), human=tuple(human))

    def _name_runs(self, form: str) -> None:
        """Give the parts without a run that of their span, or of the first span above it."""
        links: dict[str, str | None] = dict(
            self._db.execute(
                "SELECT span, parent FROM part WHERE format = ? AND run IS NULL AND kind = 'span' "
                "ORDER BY parent IS NOT NULL, id DESC",
                (form,),
            )
        )
        unnamed = self._db.execute(
            "SELECT id, span FROM part WHERE format = ? AND run IS NULL ORDER BY id", (form,)
        ).fetchall()
        known: dict[str, str] = {}
        for start in range(0, len(unnamed), _BATCH):
            self._db.executemany(
                "UPDATE part SET run = ? WHERE id = ?",
                [
                    (self._run_of(form, span, links, known), row)
                    for row, span in unnamed[start : start + _BATCH]
                ],
            )

    def _run_of(
        self, form: str, span: str, links: Mapping[str, str | None], known: dict[str, str]
    ) -> str:
        path: dict[str, None] = {}
        here = span
        while here not in known and here not in path:
            path[here] = None
            named = self._db.execute(
                "SELECT run FROM part WHERE format = ? AND span = ? AND run IS NOT NULL LIMIT 1",
                (form, here),
            ).fetchone()
            if named is not None:
                known[here] = named[0]
            elif (above := links.get(here)) is not None:
                here = above
            else:
                known[here] = here
        if here not in known:  # a circle
            known[here] = min(path)
        for step in path:
            known[step] = known[here]
        return known[span]


def part_id(value: object, name: str) -> str | None:
    """Return an id of a span or run; empty text, as in a root without a parent, is none."""
    return None if value == "" else identifier(value, name)


def _text(data: Mapping[str, object]) -> str:
    text = json.dumps(data)
    if len(text) > MAX_BYTES_OF_RUN:
        raise FieldError(_TOO_LONG)
    return text


Row = tuple[str, int, str, str | None, str]


def _joined(run_id: str, rows: list[Row]) -> tuple[WholeRun, dict[str, int]]:
    """Return the parts of a run as one, and the files in which nothing of it was new."""
    found: dict[tuple[str, str], dict[str, object]] = {}
    versions: dict[tuple[str, str], list[dict[str, object]]] = defaultdict(list)
    again: dict[str, int] = {}
    for file in dict.fromkeys(row[0] for row in rows):
        of_file = [row for row in rows if row[0] == file]
        added = False
        for _, _, kind, span, text in of_file:
            data = json.loads(text)
            own = span if kind == "span" else data.get("id") or text if kind == "score" else ""
            key = kind, str(own)
            added |= _add(found.setdefault(key, {}), data)
            if kind == "span":
                versions[key].append(data)
        if not added:
            again[file] = of_file[0][1]
    for key, data in versions.items():
        if len(data) > 1:
            found[key] = {}
            for version in sorted(data, key=_weight):
                _add(found[key], version)
    whole = WholeRun(
        run_id=run_id,
        about=found.get(("run", ""), {}),
        spans={key: data for (kind, key), data in found.items() if kind == "span"},
        scores=[data for (kind, _), data in found.items() if kind == "score"],
    )
    return whole, again


def _weight(data: Mapping[str, object]) -> tuple[bool, float]:
    """Return what decides between spans of one id: one that ended, else the longer."""
    start, end = (
        first_of(data, f"{which}Time", f"{which}_time", which) or None for which in ("start", "end")
    )
    if end is None:
        return False, float(len(json.dumps(data)))
    try:
        first, last = time_of(start, "start"), time_of(end, "end")
    except FieldError:
        return True, 0.0
    return True, 0.0 if first is None or last is None else (last - first).total_seconds()


def _add(known: dict[str, object], data: Mapping[str, object]) -> bool:
    """Take over the values that say something; return whether one is new."""
    added = False
    for key, value in data.items():
        old = known.get(key)
        if value in (None, "", [], {}) and key in known:
            continue
        added |= key not in known or (old != value and value is not None)
        known[key] = value
    return added


def _table(path: Path) -> Iterator[tuple[str | None, object, int]]:
    for line, row in parquet_rows(path):
        yield "rows", row, line


def _rows(path: Path, streamed: frozenset[str]) -> Iterator[tuple[str | None, object, int]]:
    """Yield elements, lines and the rest of an object, with the name of their list.

    The name is ``rows`` for the elements of a list and for lines, None for the rest of an object.
    """
    first = first_line(path)
    if first is not None and first.startswith(b"["):
        source = JsonText(path)
        for value, line in source.elements(source.start):
            yield "rows", value, line
    elif first is None or (sample_rows(path)[1] > 1 and isinstance(_decoded(first), dict)):
        for line, raw in numbered_lines(path):
            if raw is None:
                yield "rows", FieldError(_TOO_LONG), line
            elif raw.strip():
                yield "rows", _decoded(raw), line
    else:
        yield from _members(JsonText(path), streamed)


def _members(
    source: JsonText, streamed: frozenset[str]
) -> Iterator[tuple[str | None, object, int]]:
    rest: dict[str, object] = {}
    for key, at in source.members(source.start):
        if key in streamed and source.mark(at) == "[":
            for value, line in source.elements(at):
                yield key, value, line
        else:
            rest[key] = source.decode(at)[0]
    yield None, rest, source.line(source.start)


def _decoded(raw: bytes) -> object:
    try:
        return decode_line(raw)
    except FieldError as error:
        return error
