"""What a file is for, and how it would be read: nothing is computed and nothing is changed.

`look_at` tries the kinds of files that commands read, the likeliest first, and says for the first
that can be read which column has which role, what these hold, and the command that reads the file.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.errors import CalibrationError, InputError, LeftOutError
from calibration.files import SHAPE_BYTES, check_kind, csv_shape, encoding_of
from calibration.records import SetAside
from calibration.runs.columns import (
    HeldValues,
    RunTable,
    held_values,
    open_runs,
    unreadable_lines,
)
from calibration.runs.engines import DuckDB
from calibration.runs.recognition import (
    RUN_NUMBER,
    Recognised,
    RunOptions,
    outcomes_of,
    reading_of_rows,
    reading_of_runs,
)
from calibration.runs.results import Example, SetAsideRows
from calibration.runs.sources import open_files
from calibration.tables import words
from calibration.tables.columns import ALIASES, normalised
from calibration.tables.layout import is_numbered_rater
from calibration.tables.reading import (
    FirstRow,
    LeftOut,
    Reading,
    ReadingOptions,
    left_out,
)
from calibration.tables.scales import OutcomeWords
from calibration.taxonomy import Taxonomy, default_taxonomy
from calibration.text import counted
from calibration.trace_formats.compressed import open_text
from calibration.trace_formats.parquet import PARQUET, parquet_columns

if TYPE_CHECKING:
    # Each kind of file loads what it needs: to load all takes longer than to read a large file.
    from calibration.tables.labels import LabelTable, VerdictTable, WordsRead
    from calibration.trace_formats.base import Importer

TRACES, RUNS, TRIALS = "traces", "runs", "trials"
RATINGS, LABELS, VERDICTS = "ratings", "labels", "verdicts"

FEW_ROWS = 100_000  # up to here every row is checked as a report does
MOST_TRACES = 1_000  # of which a file of traces is described
MOST_VALUES = 50  # different values of a column that are listed

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
TEXTS = {"prompt", "response", "steps", "messages", "transcript", "inputs"}  # of a trace
OF_ONE_RUN = {*ALIASES["cost_usd"], *ALIASES["latency_s"], *ALIASES["workflow"]}
OF_JUDGES = {"judge", "judge_id", "sample", "of_all", "cause", "grade", "reason"}
LISTED_ROLES = ("trace_id", "outcome", "cost_usd", "task_id")
OF_VERDICTS = ("--judge", "NAME")
# What is said of words that are no outcome.
NOT_TAKEN = {
    "missing_outcome": "missing",
    "unknown_outcome": "unknown",
    "not_run": "not finished",
}
NOT_STORED = "A store does not take all of them:"
TRIAL_ROLES = ("task_id", "trial", "outcome", "model", "agent_version", "cost_usd", "started_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordCount:
    """A word of a column, what it is taken as (empty: itself), and its rows."""

    word: str
    taken_as: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleContent:
    """What a table holds for one role.

    `column` : None where no column has the role. `known` : rows with a value. `different` : how
    many different ones, of texts. `words` : these, where they are few. `low`, `high` : the smallest
    and the largest number or time.
    """

    role: str
    column: str | None
    known: int = 0
    different: int | None = None
    words: tuple[WordCount, ...] = ()
    low: float | str | None = None
    high: float | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLook:
    """What a file is for, and how the command that reads it would read it.

    `used_for` : traces, runs, trials, ratings, labels or verdicts. `command` : to paste.
    `written` : how the file is written, in words. `roles` : what its columns hold. `reading` : what
    was read and what would be left out.
    """

    used_for: str
    command: str
    written: str
    roles: tuple[RoleContent, ...]
    reading: Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class _LookedFile:
    """A file, how it is written, and the names of its columns."""

    path: Path
    written: str
    columns: tuple[str, ...]
    options: ReadingOptions
    taxonomy: Taxonomy

    @property
    def names(self) -> set[str]:
        return set(map(normalised, self.columns))


def look_at(
    path: Path, options: ReadingOptions | None = None, *, taxonomy: Taxonomy | None = None
) -> FileLook:
    """Return what a file is for and how it would be read.

    Parameters
    ----------
    path : Path
        A file, or a folder of one run.
    options : ReadingOptions, optional
        What the user said of it.
    taxonomy : Taxonomy, optional
        The rubric in force; the published one when None.

    Raises
    ------
    InputError
        If no command can read the file: the question of the likeliest one, and what was tried.
    """
    options = options or ReadingOptions()
    file = _opened(path, options, taxonomy or default_taxonomy())
    questions: dict[str, CalibrationError] = {}
    for used_for, guess in _guesses(file):
        try:
            return guess(file)
        except CalibrationError as error:
            questions[used_for] = error
    raise InputError(_question(file, questions)) from next(iter(questions.values()))


def look_as(
    path: Path,
    used_for: str,
    options: ReadingOptions | None = None,
    *,
    taxonomy: Taxonomy | None = None,
) -> FileLook:
    """Return how a file would be read that is for one use, whatever else it may be.

    `used_for` is one of runs, trials, ratings, labels and verdicts. Raises CalibrationError with
    the question of that use.
    """
    file = _opened(path, options or ReadingOptions(), taxonomy or default_taxonomy())
    return _AS[used_for](file)


def _question(file: _LookedFile, questions: Mapping[str, CalibrationError]) -> str:
    """Return the question of the likeliest kind, and what was tried."""
    tried = list(questions)
    listed = " and ".join([", ".join(tried[:-1]), tried[-1]] if tried[1:] else tried)
    texts = {name: str(error).removeprefix(f"{file.path}: ") for name, error in questions.items()}
    text = texts[tried[0]]
    if tried[0] == RUNS and RATINGS in texts and not file.names & set(ALIASES["outcome"]):
        # Nothing in the header says that it is of runs: what was rated may be in it.
        text += f"; if it holds ratings: {texts[RATINGS]}"
    return f"{file.path}: {text} (tried as {listed})"


# --- the file, and what it may be for ------------------------------------------------------------


def _opened(path: Path, options: ReadingOptions, taxonomy: Taxonomy) -> _LookedFile:
    if path.is_dir():
        return _LookedFile(
            path=path, written="a folder", columns=(), options=options, taxonomy=taxonomy
        )
    with open_text(path) as content:
        begins = content.read(SHAPE_BYTES)
    if begins.startswith(PARQUET):
        written, columns = "Parquet", tuple(sorted(parquet_columns(path)))
    else:
        check_kind(path, begins)
        written, columns = _text_columns(path, begins, options)
    return _LookedFile(
        path=path, written=written, columns=columns, options=options, taxonomy=taxonomy
    )


def _text_columns(
    path: Path, begins: bytes, options: ReadingOptions
) -> tuple[str, tuple[str, ...]]:
    """Return how a text file is written, and its columns."""
    codec, mark = encoding_of(begins, options.encoding)
    text = begins[mark:].decode(codec, "replace")
    encoding = codec.upper() if codec.startswith("utf-") else codec
    encoding += " with a mark" if codec == "utf-8" and mark else ""
    if not text.strip():
        raise InputError(f"{path}: the file is empty")
    first = text.lstrip()[0]
    if first in "[{":
        from calibration.trace_formats.own_files import sample_rows

        rows, n_lines = sample_rows(path) if codec == "utf-8" else ([], 0)
        kind = "JSON Lines" if first == "{" and (n_lines > 1 and rows) else "JSON"
        names = dict.fromkeys(name for row in rows for name in sorted(row))
        return f"{kind}, {encoding}", tuple(names)
    shape = csv_shape(text, is_whole=len(begins) < SHAPE_BYTES)
    if shape is None:
        raise InputError(f"{path}: has no header; the first line names the columns")
    part = DELIMITERS.get(shape.delimiter, repr(shape.delimiter))
    separated = f"{part}-separated" if len(shape.cells) > 1 else "one column"
    return f"{separated}, {encoding}", tuple(map(words.clean, shape.cells))


Guess = Callable[[_LookedFile], FileLook]


def _guesses(file: _LookedFile) -> Iterator[tuple[str, Guess]]:
    """Yield what a file may be for, the likeliest first."""
    names = file.names
    has_rater = bool(names & set(ALIASES["rater"]))
    has_answer = bool(names & {*ALIASES["label"], *ALIASES["outcome"]})
    is_of_runs = bool(names & OF_ONE_RUN)
    n_numbered = sum(map(is_numbered_rater, file.columns))
    guesses: list[tuple[str, Guess]] = []
    importer = _importer(file) if names & TEXTS or not has_answer else None
    if importer is not None:
        guesses.append((TRACES, lambda file: _traces(file, importer)))
    people = {*ALIASES["rater"]} - {"judge"}
    if "trace_id" in names and names & OF_JUDGES and has_answer and not names & people:
        guesses.append((VERDICTS, _verdicts))
    elif "trace_id" in names and names & people and has_answer:
        guesses.append((LABELS, _labels))
    is_rated = file.options.raters or {"rater", "label"} & file.options.columns.keys()
    if is_rated or ((has_rater or n_numbered > 1) and not is_of_runs):
        guesses.append((RATINGS, _ratings))
    if not file.path.is_dir():
        guesses.append((RUNS, _runs))
        guesses.append((RATINGS, _ratings))
    if importer is None:
        guesses.append((TRACES, _perhaps_traces))
    done: set[str] = set()
    for used_for, guess in guesses:
        if used_for not in done:
            done.add(used_for)
            yield used_for, guess


def _importer(file: _LookedFile) -> Importer | None:
    from calibration.trace_formats.detection import detect

    try:
        return detect(file.path)
    except InputError:
        return None


def _perhaps_traces(file: _LookedFile) -> FileLook:
    """Describe a file that is nothing else as traces; raises why it is none."""
    from calibration.trace_formats.detection import detect

    return _traces(file, detect(file.path))


# --- what each kind holds ------------------------------------------------------------------------


def _traces(file: _LookedFile, importer: Importer) -> FileLook:
    """Describe the first traces of a file."""
    from calibration.trace_formats.base import ImportSettings
    from calibration.trace_formats.detection import preview

    items = list(islice(importer.read(file.path, ImportSettings()), MOST_TRACES + 1))
    is_whole = len(items) <= MOST_TRACES
    items = items[:MOST_TRACES]
    found = preview(items)
    if not found.n_traces:
        why = next((item.reason for item in items if isinstance(item, SetAside)), "is empty")
        raise InputError(f"{file.path}: no run of {importer.title} can be read: {why}")
    skipped = [item for item in items if isinstance(item, SetAside)]
    notes = [f"Traces of {importer.title}."]
    if not is_whole:
        notes.append(f"The first {MOST_TRACES:,} runs were looked at; the file holds more.")
    first = FirstRow(line=skipped[0].line, value=skipped[0].reason) if skipped else None
    reading = Reading(
        place=str(file.path),
        rows=len(items),
        used=found.n_traces,
        layout=TRACES,
        columns={one.field: one.field if one.found else None for one in found.fields},
        left_out=(left_out("unreadable_row", len(skipped), first),) if skipped else (),
        max_left_out=None,
        notes=tuple(notes),
    )
    workflows = tuple(
        WordCount(word=name, taken_as="", rows=n)
        for name, n in Counter(found.workflows).most_common(MOST_VALUES)
    )
    roles = [
        RoleContent(
            role="workflow",
            column="workflow",
            known=found.n_traces,
            different=len(found.workflows),
            words=workflows,
        ),
        *(
            RoleContent(role=one.field, column=one.field, known=one.found)
            for one in found.fields
            if one.found
        ),
    ]
    return FileLook(
        used_for=TRACES,
        command=f"asr import {shlex.quote(str(file.path))}",
        written=file.written,
        roles=tuple(roles),
        reading=reading,
    )


def _repeated(file: _LookedFile) -> FileLook:
    """Describe a table of repeated runs of tasks, also under perturbations."""
    return _runs(file, is_repeated=True)


def _runs(file: _LookedFile, *, is_repeated: bool = False) -> FileLook:
    """Describe a table of runs, or of repeated trials of tasks."""
    run_options = RunOptions(taxonomy=file.taxonomy, reading=file.options)
    with open_files([file.path], encoding=file.options.encoding) as source:
        table = open_runs(source, run_options)
        outcomes = outcomes_of([table.outcomes], run_options)
        columns = table.columns if table.typed is None else table.typed
        engine = columns.source.engine
        if not isinstance(engine, DuckDB):
            raise InputError(f"{file.path}: is no file")
        n_rows, held = held_values(columns, engine, zone=run_options.timezone)
        is_trials = is_repeated or _is_trials(table)
        if n_rows <= FEW_ROWS and is_trials:
            reading = _reading_of_trials(file, is_perturbed_read=is_repeated)
        elif n_rows <= FEW_ROWS:
            from calibration.runs.counts import production_counts

            reading = reading_of_runs(production_counts(table, outcomes))
        else:
            reading = _reading_of_many(table, outcomes, n_rows, held)
    used, columns_found = table.columns.used, table.columns.columns
    by_role = {
        role: name
        for role, name in columns_found.by_role.items()
        if not is_trials or role in TRIAL_ROLES
    }
    renamed = {role: name for role, name in by_role.items() if role != name}
    shown = [role for role in by_role if role in held or role == "outcome"]
    roles = [
        _outcome_content(used["outcome"], outcomes)
        if role == "outcome"
        else _content(role, used.get(role), held.get(role))
        for role in dict.fromkeys((*(() if is_trials else LISTED_ROLES), *shown))
    ]
    return FileLook(
        used_for=TRIALS if is_trials else RUNS,
        command=_command("trials" if is_trials else "report", file, renamed),
        written=file.written,
        roles=tuple(sorted(roles, key=lambda one: one.column is None)),
        reading=reading,
    )


def _is_trials(table: RunTable) -> bool:
    """Return whether a table holds trials of one agent, and nothing that only a report reads."""
    used = table.columns.used.keys()
    is_for_report = {"cost_usd", "workflow"} & used or table.columns.columns.arms
    return {"task_id", "trial"} <= used and not is_for_report


def _reading_of_trials(file: _LookedFile, *, is_perturbed_read: bool) -> Reading:
    """Return what is read of a table of trials, also where too much is left out."""
    from calibration.tables.trials import TrialSource, read_trials

    try:
        table = TrialSource(
            source=file.path, options=file.options, is_perturbed_read=is_perturbed_read
        )
        return read_trials(table)[0].reading
    except LeftOutError as error:
        if isinstance(error.reading, Reading):
            return error.reading
        raise


def _reading_of_many(
    table: RunTable, outcomes: OutcomeWords, n_rows: int, held: Mapping[str, HeldValues]
) -> Reading:
    """Return what is left out of a large table, by its outcomes and ids alone."""
    set_aside = unreadable_lines(table.columns.source)
    by_reason: dict[str, list[str]] = {}
    for text, reason in outcomes.left_out.items():
        by_reason.setdefault(reason, []).append(text)
    for reason, texts in by_reason.items():
        n = sum(outcomes.counts[words.clean(text)] for text in {*map(words.clean, texts)})
        value = next((text for text in texts if text), None)
        example = () if value is None else (Example(value=value),)
        set_aside.append(SetAsideRows(reason=reason, n=n, runs=n, examples=example))
    recognised = Recognised(columns=table.columns, outcomes=outcomes, options=table.options)
    n_gone = sum(rows.n for rows in set_aside)
    n_unreadable = sum(rows.n for rows in set_aside if rows.reason == "unreadable_row")
    reading = reading_of_rows(
        recognised,
        set_aside,
        n_read=n_rows + n_unreadable,
        n_kept=n_rows + n_unreadable - n_gone,
    )
    ids = held.get("trace_id")
    notes = [f"The file has more than {FEW_ROWS:,} rows: outcomes alone were checked in each."]
    if ids is not None and (again := ids.known - (ids.different or 0)):
        notes.append(f"{counted(again, 'row')} repeat the trace_id of another one.")
    if ids is not None and ids.known < n_rows:
        notes.append(f"{counted(n_rows - ids.known, 'row')} have no trace_id.")
    return replace(reading, notes=(*reading.notes, *notes))


def _content(role: str, column: str | None, held: HeldValues | None) -> RoleContent:
    if column is None or column == RUN_NUMBER or held is None:
        return RoleContent(role=role, column=None)
    return RoleContent(
        role=role,
        column=column,
        known=held.known,
        different=held.different,
        words=tuple(
            WordCount(word=word, taken_as="", rows=n)
            for word, n in islice(held.counts.items(), MOST_VALUES)
        ),
        low=_plain(held.low),
        high=_plain(held.high),
    )


def _plain(end: float | datetime | None) -> float | str | None:
    """Return an end of a range as JSON holds it: a time in the form of ISO 8601."""
    return end.isoformat() if isinstance(end, datetime) else end


def _outcome_content(column: str, outcomes: OutcomeWords) -> RoleContent:
    """Return the words of the outcome, and what each is taken as."""
    taken_as = outcomes.words
    listed = Counter(outcomes.counts).most_common()
    gone = {words.clean(text): reason for text, reason in outcomes.left_out.items()}
    return RoleContent(
        role="outcome",
        column=column,
        known=sum(n for word, n in listed if word not in gone),
        different=len(listed),
        words=tuple(
            WordCount(
                word=word,
                taken_as=NOT_TAKEN.get(gone[word], gone[word].replace("_", " "))
                if word in gone
                else taken_as.get(word, ""),
                rows=n,
            )
            for word, n in listed[:MOST_VALUES]
        ),
    )


def _ratings(file: _LookedFile) -> FileLook:
    """Describe a table of ratings as `asr agreement` reads it."""
    from calibration.analyses.agreement.ratings import read_ratings

    found = read_ratings(file.path, file.options, taxonomy=file.taxonomy)
    reading = found.reading
    per_class = [int((found.codes == code).sum()) for code in range(len(found.classes))]
    per_rater = (found.codes >= 0).sum(axis=0)
    label = RoleContent(
        role="label",
        column=reading.columns.get("label") or (reading.raters[0] if reading.raters else None),
        known=sum(per_class),
        different=len(found.classes),
        words=_counts(dict(zip(found.classes, per_class, strict=True))),
    )
    rater = RoleContent(
        role="rater",
        column=reading.columns.get("rater") or ", ".join(reading.raters),
        known=int(per_rater.sum()),
        different=len(found.raters),
        words=_counts(dict(zip(found.raters, map(int, per_rater), strict=True))),
    )
    item = RoleContent(
        role="item",
        column=" + ".join(reading.item) or None,
        known=len(found.items),
        different=len(found.items),
    )
    renamed = {
        role: name
        for role, name in reading.columns.items()
        if name is not None and name != role and role in ("item", "rater", "label")
    }
    return FileLook(
        used_for=RATINGS,
        command=_command("agreement", file, renamed if reading.layout == "long" else {}),
        written=file.written,
        roles=(item, rater, label) if reading.layout != "wide" else (item, rater),
        reading=reading,
    )


def _labels(file: _LookedFile) -> FileLook:
    """Describe a table of labels as `asr labels import` reads it."""
    from calibration.tables.labels import counted as counted_rows
    from calibration.tables.labels import latest_labels, read_labels
    from calibration.tables.vocabulary import read_words

    table = read_labels(file.path, file.options)
    taken_as = read_words(table, file.taxonomy, file.options)
    gone = counted_rows(table.left_out)
    rows = []
    for row in table.rows:
        if not taken_as.taken_as[row.outcome]:
            gone.add("skipped", row.line)
        elif row.exposed:
            gone.add("not_blind", row.line)
        else:
            rows.append(row)
    latest_labels(rows, table.place, gone)
    people = Counter(row.reviewer for row in table.rows)
    return _answers(file, table, taken_as, gone.listed(), {"reviewer": people})


def _verdicts(file: _LookedFile) -> FileLook:
    """Describe a table of verdicts as `asr verdicts import` reads it."""
    from calibration.tables.labels import counted as counted_rows
    from calibration.tables.labels import latest_verdicts, read_verdict_rows
    from calibration.tables.vocabulary import read_words

    table = read_verdict_rows(file.path, file.options, graded=True)
    taken_as = read_words(table, file.taxonomy, file.options)
    gone = counted_rows(table.left_out)
    latest_verdicts(table.rows, table.place, gone)
    judges = Counter(row.judge for row in table.rows)
    return _answers(file, table, taken_as, gone.listed(), {"judge": judges})


def _answers(
    file: _LookedFile,
    table: LabelTable | VerdictTable,
    taken_as: WordsRead,
    gone: Sequence[LeftOut],
    people: Mapping[str, Counter[str]],
) -> FileLook:
    """Describe labels of people, or verdicts of a judge."""
    from calibration.tables.labels import LabelTable, reading_of_answers
    from calibration.tables.vocabulary import check_words

    notes = []
    try:
        check_words(table, taken_as)
    except InputError as error:
        question = str(error).removeprefix(f"{file.path}, ")
        notes.append(f"{NOT_STORED} {question}. `asr calibrate` may.")
    is_labels = isinstance(table, LabelTable)
    by_role = table.columns.by_role
    traces = Counter(row.trace_id for row in table.rows)
    counts = {"trace_id": traces, **people}
    outcome = RoleContent(
        role="outcome",
        column=by_role.get("outcome"),
        known=sum(n for word, n in table.counts.items() if taken_as.taken_as[word]),
        different=len(table.counts),
        words=tuple(
            WordCount(word=word, taken_as=_as_read(word, taken_as.taken_as[word]), rows=n)
            for word, n in table.counts.most_common(MOST_VALUES)
        ),
    )
    contents = [
        _text_content(role, by_role[role], counts[role]) for role in counts if role in by_role
    ]
    renamed = {
        role: by_role[role]
        for role in (*counts, "outcome")
        if role in by_role and by_role[role] != role
    }
    command, further = ("labels import", ()) if is_labels else ("verdicts import", OF_VERDICTS)
    reading = reading_of_answers(
        table, gone, roles=(*counts, "outcome"), words=taken_as, notes=notes
    )
    return FileLook(
        used_for=LABELS if is_labels else VERDICTS,
        command=_command(
            command,
            file,
            {} if isinstance(table, LabelTable) and table.is_wide else renamed,
            further,
        ),
        written=file.written,
        roles=(*contents, outcome),
        reading=reading,
    )


def _as_read(word: str, taken_as: str) -> str:
    return ("missing" if not taken_as else taken_as) if word != taken_as else ""


def _text_content(role: str, column: str, counts: Counter[str]) -> RoleContent:
    known = {word: n for word, n in counts.most_common() if not words.is_missing(word)}
    return RoleContent(
        role=role,
        column=column,
        known=sum(known.values()),
        different=len(known),
        words=_counts(known) if len(known) <= MOST_VALUES else (),
    )


def _counts(counts: Mapping[str, int]) -> tuple[WordCount, ...]:
    listed = Counter(counts).most_common(MOST_VALUES)
    return tuple(WordCount(word=word, taken_as="", rows=n) for word, n in listed)


_AS: Mapping[str, Guess] = {
    RUNS: _runs,
    TRIALS: _repeated,
    RATINGS: _ratings,
    LABELS: _labels,
    VERDICTS: _verdicts,
}


# --- the command to paste ------------------------------------------------------------------------


def _command(
    name: str, file: _LookedFile, renamed: Mapping[str, str], further: Sequence[str] = ()
) -> str:
    """Return the command that reads a file, with the columns and options that it needs."""
    columns = {**renamed, **file.options.columns}
    words_of = option_words(replace(file.options, columns=columns))
    return "asr " + shlex.join([*name.split(), str(file.path), *further, *words_of])


def option_words(options: ReadingOptions) -> list[str]:
    """Return the options of a command that say the same.

    >>> option_words(ReadingOptions(columns={"outcome": "ok", "trial": None}, pass_at=0.5))
    ['--column', 'outcome=ok', '--column', 'trial=', '--pass-at', '0.5']
    """
    parts: list[str] = []
    for role, column in options.columns.items():
        parts += ["--column", f"{role}={column or ''}"]
    for word, into in options.mapped.items():
        text = f"{word}={into}"
        parts += ["--map", f'"{text}"' if "," in text else text]
    for column, value in options.where:
        parts += ["--where", f"{column}={value}"]
    if options.raters:
        listed = (f'"{name}"' if "," in name else name for name in options.raters)
        parts += ["--raters", ",".join(listed)]
    numbers: tuple[tuple[str, object], ...] = (
        ("--scale", options.scale),
        ("--pass-at", None if options.pass_at is None else f"{options.pass_at:g}"),
        ("--max-left-out", options.max_left_out),
        ("--decimal", options.decimal),
        ("--dates", options.dates),
        ("--encoding", options.encoding),
    )
    for option, setting in numbers:
        parts += [] if setting is None else [option, str(setting)]
    return [*parts, *(["--latest"] if options.latest else [])]
