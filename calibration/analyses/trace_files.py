"""Import trace files of any format into the store: read, preview, store, one transaction a file."""

import glob
import os
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from calibration.analyses.reference_traces import is_reference
from calibration.errors import InputError, TraceFormatError
from calibration.files import Spool
from calibration.records import LabelDraft, SetAside, Workflow
from calibration.store import (
    MAX_TEXT,
    ImportResult,
    PreparedTraces,
    Store,
    import_token,
    reviewer_id_of,
)
from calibration.tables.rows import as_csv
from calibration.taxonomy import Taxonomy
from calibration.text import counted
from calibration.trace_formats import (
    SUFFIXES,
    ImportSettings,
    Parsed,
    Preview,
    SpanShelf,
    Summary,
    detect,
    read_traces,
)
from calibration.trace_formats.base import HumanScore, Item, RunGrades, ScoreRules
from calibration.trace_formats.json_scanner import share_read
from calibration.trace_formats.said import unseen_in
from calibration.trace_formats.spans import SINCE
from calibration.trace_formats.tau2_bench import FOLDER, INDEX

REFERENCE = (
    "a trace of the reference dataset; those are for practice and no part of a rate: "
    "`asr reference practise` puts them in front of reviewers"
)

SUPERSEDED = "superseded: the same sample and epoch of one eval was run again"

TELL_EVERY = 500
MAX_FILES, MAX_WALKED = 100_000, 300_000
MOST_UNREAD = 8  # fields that are named

NOT_READ = "not read"
COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a file holds of a run beside its trace, and where."""

    trace_id: str
    file: str
    line: int | None
    grades: RunGrades


class RunsRead:
    """The runs of one file, ready to be stored; they lie on the disk."""

    def __init__(self) -> None:
        self.traces = PreparedTraces()
        self.beside: Spool[Beside] = Spool()

    def append(self, run: Parsed) -> None:
        """Add a run."""
        self.traces.append(run.trace)
        self.beside.append(
            Beside(
                trace_id=run.trace.trace_id,
                file=run.file,
                line=run.line,
                grades=run.grades,
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """The content of one file, and its recognised format; its `runs` lie on the disk."""

    path: Path
    format: str
    traces: int
    set_aside: int
    costs_known: int = 0
    grades: int = 0
    human_scores: int = 0
    workflows: tuple[str, ...] = ()
    runs: RunsRead | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesProgress:
    """How far a reading of files has come."""

    done: int  # files
    of: int
    bytes: int
    of_bytes: int
    runs: int  # found so far, with rows set aside

    @property
    def share(self) -> float:
        """The share of the bytes that is read, from 0 to 1."""
        return min(1.0, self.bytes / self.of_bytes) if self.of_bytes else 0.0

    def words(self) -> str:
        """Say how far it has come."""
        words = f"{self.runs:,} runs"
        if self.of > 1:
            words += f", file {min(self.done + 1, self.of):,} of {self.of:,}"
        return (
            f"{words}, {self.bytes / 1e6:,.0f} of {self.of_bytes / 1e6:,.0f} MB ({self.share:.0%})"
        )


Told = Callable[[FilesProgress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesRead:
    """The content of some files, read to the end and not yet stored.

    `rules` : what their scores are taken as, decided for each name over all files.
    """

    paths: tuple[Path, ...]
    files: tuple[FileRead, ...]
    set_aside: tuple[SetAside, ...]
    preview: Preview
    rules: ScoreRules

    def without_runs(self) -> "FilesRead":
        """Return what is shown of the files, without their runs."""
        return replace(self, files=tuple(replace(f, runs=None) for f in self.files))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileImported:
    """Results of the import of one file."""

    path: str
    format: str
    traces: int
    costs_known: int
    grades: int
    human_scores: int
    imported: int
    already_there: int
    changed: int
    set_aside: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """Results of an import; `changed` runs are also in `set_aside` with the reason.

    `human_scores` of people are in the files; `labels` were made of them, on request only. `notes`
    say what the numbers of each score name were taken as, and what they need to be verdicts.
    """

    files: int
    imported: int
    already_there: int
    changed: int
    possible_duplicates: int
    verdicts: int
    restored: int  # their stored text was missing or damaged
    completed: int  # an older version did not read all of their fields
    human_scores: int
    labels: int
    unseen_runs: int  # that hold parts which reviewers cannot see
    unseen_parts: dict[str, int]  # by kind
    doubled_costs: int
    superseded: int
    set_aside: tuple[SetAside, ...]
    by_file: tuple[FileImported, ...]
    notes: tuple[str, ...] = ()


def read_files(
    paths: Sequence[Path], settings: ImportSettings, *, told: Told | None = None
) -> FilesRead:
    """Read trace files to the end; one of several that is no trace file is passed over.

    A folder stands for its trace files, at any depth, and a pattern such as ``logs/*.eval`` for the
    files that it fits. A file that is passed over is in `set_aside` with the reason, and in `files`
    with the format ``not read``. Traces lie on the disk, so that files may be larger than the
    memory. `told` is called after every file, and every 500 runs within a file.

    What numbers of scores mean is decided for each of their names when all files are read.

    Raises InputError if a path does not exist, or a scale of the settings does not fit the scores;
    TraceFormatError if no file is a trace file.
    """
    files = list(dict.fromkeys(file for path in paths for file in _expand(path)))
    progress = _Progress(files, told)
    summary = Summary()
    set_aside: list[SetAside] = []
    read: list[FileRead] = []
    refused: list[TraceFormatError] = []
    shelf, slots = SpanShelf(), Slots()
    parts: list[tuple[FileRead, list[SetAside], Summary]] = []
    for file in files:
        own = Summary()
        try:
            found, aside = _read(file, settings, own, progress.one_more, shelf, slots)
        except TraceFormatError as error:
            # Nothing of a file that was cut off: its last run may be another one.
            reason = str(error).removeprefix(f"{file}").lstrip(":, ")
            aside = [SetAside(file=str(file), line=None, reason=f"not read: {reason}")]
            refused.append(error)
            found = FileRead(path=file, format=NOT_READ, traces=0, set_aside=1)
            own = Summary()
            own.add(aside[0])
            slots.forget(file)
        parts.append((found, aside, own))
        progress.done(file)
    repeated = slots.superseded()
    for found, aside, own in parts:
        if found.path in repeated:  # which runs count is known when all files are read
            own = Summary()
            found, aside = _read(
                found.path, settings, own, lambda _: None, shelf, Slots(), repeated[found.path]
            )
        summary.merge(own)
        read.append(found)
        set_aside.extend(aside)
    with shelf:
        read = _with_spans(read, shelf, settings, summary, set_aside)
    if refused and len(refused) == len(files):
        others = f" (and {len(files) - 1} more files)" if len(files) > 1 else ""
        raise TraceFormatError(f"{refused[0]}{others}") from refused[0]
    return FilesRead(
        paths=tuple(files),
        files=tuple(read),
        set_aside=tuple(set_aside),
        preview=summary.preview(),
        rules=_rules(read, summary, settings),
    )


def _rules(files: Sequence[FileRead], summary: Summary, settings: ImportSettings) -> ScoreRules:
    """Return what the scores of all files mean, and whether graders within a run are parted."""
    rules = ScoreRules(summary.scores, settings)
    if summary.scores.has_graders:
        every = (run for file in files if file.runs is not None for run in file.runs.beside)
        rules.graders_apart = any(rules.differ(run.grades) for run in every)
    return rules


def _with_spans(
    read: Sequence[FileRead],
    shelf: SpanShelf,
    settings: ImportSettings,
    summary: Summary,
    set_aside: list[SetAside],
) -> list[FileRead]:
    """Add the runs whose spans waited for all files; each counts for the file of its first span."""
    runs: dict[str, RunsRead] = defaultdict(RunsRead)
    of_file: dict[str, Summary] = defaultdict(Summary)
    for item in (_whole(item, settings) for item in shelf.runs(settings)):
        of_file[item.file].add(item)
        if isinstance(item, SetAside):
            set_aside.append(item)
        else:
            runs[item.file].append(item)
    files = []
    for file in read:
        own = of_file.get(str(file.path))
        if own is not None:
            summary.merge(own)
            file = _counted(file, own, runs[str(file.path)], file.set_aside + own.n_set_aside)
        elif not file.traces and not file.set_aside:
            file = replace(file, format=f"{file.format}, parts of runs in other files")
        files.append(file)
    return files


def _counted(file: FileRead, own: Summary, runs: RunsRead, set_aside: int) -> FileRead:
    """Return a file with its runs and their counts."""
    return replace(
        file,
        traces=own.n_traces,
        set_aside=set_aside,
        costs_known=own.costs_known,
        grades=own.n_verdicts,
        human_scores=own.n_human,
        workflows=tuple(own.workflows),
        runs=runs,
    )


def _read(
    file: Path,
    settings: ImportSettings,
    summary: Summary,
    one_more: Callable[[Path], None],
    shelf: SpanShelf,
    slots: "Slots",
    repeated: Container[str] = (),
) -> tuple[FileRead, list[SetAside]]:
    """Read one file to its end but for `repeated` runs; spans go to the shelf."""
    title = detect(file).title
    runs = RunsRead()
    aside: list[SetAside] = []
    for item in read_traces(file, settings, shelf=shelf):
        one_more(file)
        if isinstance(item, Parsed) and is_reference(item.trace):
            item = SetAside(file=item.file, line=item.line, reason=REFERENCE)
        if isinstance(item, Parsed) and item.trace.trace_id in repeated:
            item = SetAside(file=item.file, line=item.line, reason=SUPERSEDED)
        item = _whole(item, settings)
        slots.note(file, item)
        summary.add(item)
        if isinstance(item, SetAside):
            aside.append(item)
        else:
            runs.append(item)
    found = FileRead(path=file, format=title, traces=0, set_aside=0)
    return _counted(found, summary, runs, len(aside)), aside


def _whole(item: Item, settings: ImportSettings) -> Item:
    """Return a run, or what is left of it where runs with unseen parts are not wanted."""
    if not settings.leave_out_unseen or not isinstance(item, Parsed):
        return item
    unseen = unseen_in(item.trace.metadata)
    if not unseen:
        return item
    reason = f"holds parts that reviewers cannot see ({_parts(unseen)})"
    return SetAside(file=item.file, line=item.line, reason=reason)


def _parts(unseen: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {kind}" for kind, n in unseen.items())


class Slots:
    """Which runs were repeated because they failed, over all files of an import."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str, int], list[tuple[bool, datetime, Path, str]]] = {}

    def note(self, file: Path, item: Item) -> None:
        """Note a run that has a slot."""
        if isinstance(item, Parsed) and (slot := item.slot) is not None:
            run = not slot.failed, slot.logged or SINCE, file, item.trace.trace_id
            self._runs.setdefault(slot.key, []).append(run)

    def forget(self, file: Path) -> None:
        """Forget the runs of a file that was refused."""
        for key, runs in self._runs.items():
            self._runs[key] = [run for run in runs if run[2] != file]

    def superseded(self) -> dict[Path, set[str]]:
        """Return the runs that do not count, by file: one without an error, else the last does."""
        found: dict[Path, set[str]] = {}
        for runs in self._runs.values():
            last = max(range(len(runs)), key=lambda k: (*runs[k][:2], k), default=0)
            for _, _, file, trace_id in runs:
                if trace_id != runs[last][3]:
                    found.setdefault(file, set()).add(trace_id)
        return found


def _superseded(rows: Sequence[SetAside]) -> int:
    return sum(row.reason == SUPERSEDED for row in rows)


class _Progress:
    """Tells how far a reading has come."""

    def __init__(self, files: Sequence[Path], told: Told | None) -> None:
        self._told, self._of = told, len(files)
        self._sizes = {file: _size(file) for file in files}
        self._all = sum(self._sizes.values())
        self._done, self._bytes, self._runs = 0, 0, 0

    def one_more(self, file: Path) -> None:
        """Count a run or a row that was set aside."""
        self._runs += 1
        if self._runs % TELL_EVERY == 0:
            self._tell(int(self._sizes[file] * share_read(file)))

    def done(self, file: Path) -> None:
        """Count a file."""
        self._done += 1
        self._bytes += self._sizes[file]
        self._tell(0)

    def _tell(self, within: int) -> None:
        if self._told is not None:
            self._told(
                FilesProgress(
                    done=self._done,
                    of=self._of,
                    bytes=self._bytes + within,
                    of_bytes=self._all,
                    runs=self._runs,
                )
            )


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except (OSError, ValueError):
        return 0


def _expand(path: Path) -> list[Path]:
    """Return the files that a path stands for; a folder that is one run stays whole."""
    try:
        there = path.exists()
    except (OSError, ValueError):  # a name that the system does not take
        there = False
    if not there:
        # A link that leads nowhere, or to itself, matches its own name.
        found = sorted(
            one for one in map(Path, glob.glob(str(path), recursive=True)) if one.exists()
        )
        if not found:
            raise InputError(f"{path}: there is no such file")
        return [file for one in found for file in _expand(one)]
    if not path.is_dir() or (path / INDEX).exists():
        return [path]
    files = list(_within(path))
    if not files:
        endings = ", ".join((*SUFFIXES, *COMPRESSED))
        raise InputError(f"{path}: the folder holds no trace file ({endings})")
    return files


def _within(folder: Path) -> Iterator[Path]:
    """Yield the trace files of a folder at any depth, by their endings; links are not followed."""
    if folder.resolve().parent == folder.resolve():
        raise InputError(f"{folder}: is the whole disk; name the folder of the traces")
    count = walked = 0
    for place, inner, names in os.walk(folder):
        walked += len(names)
        if walked > MAX_WALKED:
            raise InputError(
                f"{folder}: holds more than {MAX_WALKED:,} files; name a folder further in"
            )
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        here = Path(place)
        if INDEX in names and FOLDER in inner:
            inner.clear()
            yield here
            continue
        for name in sorted(names):
            plain = name.lower()
            for ending in COMPRESSED:
                plain = plain.removesuffix(ending)
            if plain.endswith(SUFFIXES) and not name.startswith("."):
                count += 1
                if count > MAX_FILES:
                    raise InputError(f"{folder}: holds more than {MAX_FILES:,} trace files")
                yield here / name


def store_files(
    store: Store,
    read: FilesRead,
    settings: ImportSettings,
    *,
    take_changed: bool = False,
    human_batch: str | None = None,
) -> ImportReport:
    """Store runs with workflows and grades, one transaction a file.

    A grade becomes a verdict of a judge ``source:...``. With `human_batch` the scores of people
    become labels in that batch, marked as exposed.
    """
    aside = list(read.set_aside)
    of_file = [
        _store(store, file, settings, read.rules, aside, take_changed=take_changed)
        for file in read.files
    ]
    labels = 0
    if human_batch is not None:
        scored = [file.runs for file in read.files if file.human_scores and file.runs is not None]
        runs = [run for of_file in scored for run in of_file.beside if run.grades.human]
        labels = _store_labels(store, runs, human_batch, read.rules, aside)
    done = [result for _, result in of_file]
    return ImportReport(
        files=len(read.paths),
        imported=sum(len(r.imported) for r in done),
        already_there=sum(len(r.already_there) for r in done),
        restored=sum(len(r.restored) for r in done),
        completed=sum(len(r.completed) for r in done),
        changed=sum(len(r.changed) for r in done),
        possible_duplicates=sum(len(r.possible_duplicates) for r in done),
        verdicts=sum(len(r.graded) for r in done),
        human_scores=read.preview.n_human_scores,
        labels=labels,
        unseen_runs=read.preview.unseen_runs,
        unseen_parts=read.preview.unseen_parts,
        doubled_costs=read.preview.doubled_costs,
        superseded=_superseded(read.set_aside),
        set_aside=tuple(aside),
        by_file=tuple(report for report, _ in of_file),
        notes=read.rules.notes,
    )


def _store(
    store: Store,
    file: FileRead,
    settings: ImportSettings,
    rules: ScoreRules,
    aside: list[SetAside],
    *,
    take_changed: bool,
) -> tuple[FileImported, ImportResult[str]]:
    """Store the runs of one file, or nothing of it."""
    done: ImportResult[str] = ImportResult()
    if file.runs is not None and file.runs.traces:
        verdicts = [rules.verdicts(run.trace_id, run.grades) for run in file.runs.beside]
        known = store.workflows()
        # Values missing in the settings remain as stored.
        workflows = [
            (
                settings if name not in known else _with_defaults(settings, known[name])
            ).workflow_record(name)
            for name in file.workflows
        ]
        done = store.ingest(
            file.runs.traces,
            take_changed=take_changed,
            workflows=workflows,
            grades=[found[0] if found else None for found in verdicts],
            more=[verdict for found in verdicts for verdict in found[1:]],
        )
    why = [(t, f"is stored with other content; {done.why_kept(t)}") for t in done.changed]
    why += [
        (t, "is stored with another grade, which stays") for t in dict.fromkeys(done.other_grade)
    ]
    if why and file.runs is not None:
        origin = {run.trace_id: (run.file, run.line) for run in file.runs.beside}
        for trace_id, reason in why:
            place, line = origin[trace_id]
            told = f"changed: {trace_id} {reason}"
            aside.append(SetAside(file=place, line=line, reason=told))
    report = FileImported(
        path=str(file.path),
        format=file.format,
        traces=file.traces,
        costs_known=file.costs_known,
        grades=file.grades,
        human_scores=file.human_scores,
        imported=len(done.imported),
        already_there=len(done.already_there),
        changed=len(done.changed),
        set_aside=file.set_aside + len(why),
    )
    return report, done


def _with_defaults(settings: ImportSettings, stored: Workflow) -> ImportSettings:
    ceiling = stored.ceiling_usd if settings.ceiling_usd is None else settings.ceiling_usd
    return replace(settings, ceiling_usd=ceiling, unit=settings.unit or stored.unit)


def _store_labels(
    store: Store,
    runs: Sequence[Beside],
    batch_id: str,
    rules: ScoreRules,
    aside: list[SetAside],
) -> int:
    """Store the scores of people as labels of a batch; return how many are new."""
    taxonomy = store.taxonomy()
    drafts: list[LabelDraft] = []
    names: dict[str, None] = {}
    for run in runs:
        given: dict[str, list[HumanScore]] = {}
        for score in run.grades.human:
            given.setdefault(score.reviewer, []).append(score)
        for reviewer, scores in given.items():
            outcomes = {rules.outcome(score.score) for score in scores} - {None}
            if len(outcomes) != 1 or not reviewer_id_of(reviewer):
                what = "imply several classes" if outcomes else "imply no class"
                why = f"the scores of {reviewer!r} {what}: no label"
                aside.append(SetAside(file=run.file, line=run.line, reason=why))
                continue
            outcome = outcomes.pop() or ""
            drafts.append(_draft(taxonomy, batch_id, run, reviewer, outcome, scores))
            names[reviewer] = None
    done = store.import_labels(batch_id, drafts, names=list(names), exposed=True)
    origin = {run.trace_id: run for run in runs}
    told = [(t, f"is in no batch {batch_id!r}, so its scores are no labels") for t in done.unknown]
    told += [(t, f"{by!r} has another label there, which stays") for t, by in done.changed]
    for trace_id, why in told:
        run = origin[trace_id]
        aside.append(SetAside(file=run.file, line=run.line, reason=f"{trace_id} {why}"))
    return len(done.imported)


def _draft(
    taxonomy: Taxonomy,
    batch_id: str,
    run: Beside,
    reviewer: str,
    outcome: str,
    scores: Sequence[HumanScore],
) -> LabelDraft:
    by = reviewer_id_of(reviewer)
    said = "; ".join(f"{s.score.name}: {s.comment}" for s in scores if s.comment)
    return LabelDraft(
        client_token=import_token(batch_id, taxonomy.version, by, run.trace_id, outcome),
        trace_id=run.trace_id,
        reviewer_id=by,
        batch_id=batch_id,
        answers=taxonomy.answers_for(outcome),
        rationale=said[:MAX_TEXT] or None,
    )


def set_aside_csv(rows: Sequence[SetAside]) -> str:
    """Return the rows set aside as CSV that no spreadsheet runs as formulas."""
    columns = ["file", "line", "reason"]
    return as_csv(columns, ({"file": r.file, "line": r.line, "reason": r.reason} for r in rows))


def preview_lines(read: FilesRead) -> Iterator[str]:
    """Yield the preview of an import."""
    found = read.preview
    formats = ", ".join(f"{n} {name}" for name, n in found.formats.items()) or "none"
    yield f"Traces        {found.n_traces} in {counted(len(read.paths), 'file')} ({formats})"
    yield f"Tasks         {found.n_tasks}"
    yield "Workflows     " + ", ".join(f"{name} ({n})" for name, n in found.workflows.items())
    yield f"Costs known   {found.costs_known} of {found.n_traces}"
    yield f"Grades        {found.n_verdicts} (kept as verdicts, hidden from reviewers)"
    yield from (f"Note          {note}" for note in read.rules.notes)
    if found.n_human_scores:
        yield f"Human scores  {found.n_human_scores} (labels only with --human-scores BATCH)"
    missing = [f"{f.field} ({f.of - f.found} of {f.of})" for f in found.fields if f.found < f.of]
    yield "Complete      " + ", ".join(f.field for f in found.fields if f.found == f.of)
    yield "Missing       " + (", ".join(missing) or "nothing")
    if found.unread:
        named = [f"{f.field} ({f.found} of {f.of})" for f in found.unread[:MOST_UNREAD]]
        more = len(found.unread) - len(named)
        yield "Not read      " + ", ".join(named) + (f" and {more:,} more" if more else "")
    yield f"Skipped rows  {found.n_set_aside}"
    if superseded := _superseded(read.set_aside):
        yield f"Superseded    {superseded} of them (samples of an eval that were run again)"
    if found.doubled_costs:
        yield f"Doubled costs {found.doubled_costs} (totals that held costs twice were corrected)"
    if found.first is not None:
        first = found.first
        yield f"First trace   {first.trace_id}, {first.n_steps} steps: {first.prompt}"
    yield from unseen_lines(found)


def unseen_words(found: Preview) -> str:
    """Return how many runs reviewers see only a part of; empty where there are none."""
    if not found.unseen_runs:
        return ""
    runs = f"{found.unseen_runs:,} of {counted(found.n_traces, 'run')}"
    verb = "holds" if found.unseen_runs == 1 else "hold"
    return f"{runs} {verb} parts that reviewers cannot see ({_parts(found.unseen_parts)})"


def unseen_lines(found: Preview) -> Iterator[str]:
    """Yield a line on runs that reviewers see only a part of, if there are any."""
    if words := unseen_words(found):
        yield f"{words}: `--leave-out-unseen` leaves them out"
