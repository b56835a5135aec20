"""Calibration data from tables: labels and verdicts row by row, or counted in a JSON file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.evidence.data import (
    MISSING,
    CalibrationData,
    Provenance,
    class_shares,
    label_codes,
    verdict_codes,
)
from calibration.errors import CalibrationError, InputError
from calibration.files import read_text
from calibration.judge_calibration.samples import HEADLINE, Design
from calibration.records import CUT, NO_VERDICT
from calibration.success_rate.runs import cost_penalties
from calibration.tables.labels import (
    LabelFile,
    LabelRow,
    LabelTable,
    VerdictFile,
    VerdictRow,
    VerdictTable,
)
from calibration.tables.reading import FirstRow, LeftOut, Reading, ReadingOptions, left_out
from calibration.tables.rows import Source, located, none_of
from calibration.tables.vocabulary import (
    NO_CLASS,
    AnswerOptions,
    AnswersRead,
    JudgedTables,
    Recoded,
    Vocabulary,
    in_order,
    of_two_tables,
    read_answers,
)
from calibration.taxonomy import CreditTable, Taxonomy, default_taxonomy
from calibration.text import arms_left_out
from calibration.trace_formats.fields import FieldError, number, whole, wrong
from calibration.trace_formats.json_scanner import decode_text

FOR_SKIPPED = "labelled traces replace the skipped ones of the same verdict and workflow"
Unjudged = Literal["no_verdict", "outside"]

# Share of the labelled traces that may lack a verdict row without being asked about.
UNJUDGED_MOST = 0.02
LABEL_COLUMNS = ("trace_id", "reviewer_id", "outcome", "code", "rationale", "evidence")

# Fields of a JSON file of counted tables.
REQUIRED = ("design", "classes", "credit", "confusion", "production_judge_counts")

OPTIONAL = ("judge_classes",)
MAX_CLASSES = 200
MOST_COUNTED = 10_000_000  # bytes

# Limit of labelled traces, which become rows; far above any real count.
MAX_LABELS = 10_000_000

# Above this, a count is no longer exact as a float.
MAX_COUNT = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """Cost ceilings per unit, by workflow and for all others."""

    by_workflow: Mapping[str, float] = field(default_factory=dict)
    otherwise: float | None = None

    def of(self, row: VerdictRow, taxonomy: Taxonomy) -> float | None:
        """Return the ceiling of a run: the given one, else its row's, else the taxonomy's."""
        given = self.by_workflow.get(row.workflow, self.otherwise)
        if given is not None or row.own_ceiling:
            return row.ceiling_usd if given is None else given
        return next((w.ceiling_usd for w in taxonomy.workflows if w.name == row.workflow), None)


def load_tables(
    labels: Source | LabelTable,
    verdicts: Source | VerdictTable,
    *,
    design: Design = "production",
    classes: Sequence[str] | None = None,
    credit: Mapping[str, float] | None = None,
    ceilings: Ceilings | None = None,
    taxonomy: Taxonomy | None = None,
    unjudged: Unjudged | None = None,
    overlap_random: bool = False,
    vocabulary: Vocabulary | None = None,
    reading: ReadingOptions | None = None,
    further: Sequence[VerdictTable] = (),
) -> CalibrationData:
    """Join labels and verdicts by trace.

    Parameters
    ----------
    labels, verdicts : Path, DataFrame, LabelTable or VerdictTable
        With the columns of `read_labels` and `read_verdict_rows`.
    design : {"production", "reference"}
        Affects the notes alone. ``"production"``: the labelled traces are a random sample of the
        verdicts; ``"reference"``: they are no part of production.
    classes : sequence of str, optional
        In order, in exactly this spelling. Default: those of the taxonomy if no others occur;
        success and failure if all outcomes say pass or fail and no taxonomy is given; else those
        that occur.
    credit : mapping of str to float, optional
        For every class. Default: the taxonomy's if the classes are its own. A merged class needs
        its own unless those that it is made of have the same.
    ceilings : Ceilings, optional
        Override those of the verdict table, which override those of the taxonomy; a run without a
        ceiling has no penalty.
    taxonomy : Taxonomy, optional
        A pass is its success then, a fail its failed check.
    unjudged : {"no_verdict", "outside"}, optional
        Labelled traces without a verdict row are runs of production that the judge did not answer,
        or no part of production. Default: they are set aside, up to 2 % of the labelled traces of a
        sample of production.
    overlap_random : bool, default False
        Whether the traces with two labels are known to be a random part of the labelled ones.
    vocabulary : Vocabulary, optional
        Words to be taken as classes, and classes to be merged.
    reading : ReadingOptions, optional
        What the user said of the tables; its `mapped` is that of the vocabulary.
    further : sequence of VerdictTable, optional
        Verdicts of other judges, to be read with the same words.

    Raises
    ------
    InputError
        If a table cannot be read, an outcome is no class, a name of the vocabulary is not known, or
        credit is missing.
    CalibrationError
        If no labelled trace has a verdict row, or too many have none.
    """
    tables = _tables_of(labels, verdicts, reading or ReadingOptions())
    read = read_answers(
        tables.labels,
        tables.verdicts,
        vocabulary or Vocabulary(mapped={} if reading is None else reading.mapped),
        AnswerOptions(
            taxonomy=taxonomy or default_taxonomy(),
            is_named=taxonomy is not None,
            classes=classes,
            credit=credit,
            reading=reading or ReadingOptions(),
        ),
        further,
    )
    human = _without_arms(read.labels, read.verdicts)
    judged = _with_unjudged(human, read.verdicts, design, unjudged)
    data = _joined(replace(read, labels=human, verdicts=judged), credit, ceilings or Ceilings())
    n_arms = len(read.verdicts.arms.union(human.arms))
    if data.skipped_ids and design == "production":
        data = replace(data, notes=(*data.notes, FOR_SKIPPED))
    return replace(
        data,
        overlap_random=overlap_random,
        notes=(*((arms_left_out(n_arms),) if n_arms else ()), *data.notes),
    )


def _joined(
    read: AnswersRead, credit: Mapping[str, float] | None, limits: Ceilings
) -> CalibrationData:
    """Join labels and verdicts that were read; CalibrationError if no trace has both."""
    human, judged, known = read.labels, read.verdicts, read.taxonomy
    named = read.vocabulary.final
    worth = _credit(read.vocabulary, credit, known)
    tasks = {t: f"\0{rows[0].cluster}" for t, rows in human.rows.items() if rows[0].cluster}
    tasks |= {t: f"\0{row.task}" for t, row in judged.rows.items() if row.task}
    traces = _traces(judged, limits, known, tasks)
    outcomes = pd.Series([row.outcome or NO_VERDICT for row in judged.rows.values()], dtype=object)
    causes = pd.Series([row.cause for row in judged.rows.values()], dtype=object)
    codes, names = verdict_codes(outcomes, named, NO_CLASS, causes=causes)
    place = {trace_id: k for k, trace_id in enumerate(judged.rows)}
    inside = {t: rows for t, rows in human.rows.items() if t in place}
    answers = {t: [row for row in rows if row.outcome] for t, rows in inside.items()}
    labelled = {t: rows for t, rows in answers.items() if rows}
    skipped = [t for t, rows in answers.items() if not rows]
    if not labelled:
        raise CalibrationError(
            f"no labelled trace of {human.path} has a row in {judged.path}; the trace_id must "
            "be the same in both"
        )
    frame, settled = _labels(labelled, named)
    at = np.array([place[trace_id] for trace_id in labelled], dtype=np.int64)
    weights = _weights(human.path, inside, [*labelled, *skipped])
    return CalibrationData(
        provenance=Provenance(
            source="files", judge_id=judged.judge or "", labels=human.path, verdicts=judged.path
        ),
        taxonomy=known,
        classes=named,
        credit=np.array(worth.credit),
        own_credit=worth.by_workflow,
        sampling="claimed",
        traces=traces,
        verdict_names=names,
        verdicts=codes,
        penalties=_penalties(traces),
        labels=frame,
        labelled=traces.iloc[at].assign(labels_wanted=0).reset_index(drop=True),
        at=at,
        human=class_shares(label_codes(frame, list(labelled)), settled, len(named)),
        adjudicated=settled != MISSING,
        tasks=pd.factorize(traces["task_key"])[0],
        weights=None if weights is None else weights[: len(labelled)],
        reviewers=human.reviewers,
        strata=None if weights is None else _strata(judged),
        skipped_ids=tuple(skipped),
        skipped_weights=None if weights is None else weights[len(labelled) :],
        grades=_grades(judged, labelled),
        repeats=_repeats(judged, (*names, *(n for n in NO_CLASS if n not in names))),
        readings=_readings(read.readings, human, judged),
        notes=(
            *map(_of_recoded, read.recoded),
            *_notes(traces, limits),
        ),
        vocabulary=read.vocabulary,
        recoded=read.recoded,
    )


def _tables_of(
    labels: Source | LabelTable, verdicts: Source | VerdictTable, options: ReadingOptions
) -> JudgedTables:
    """Return tables whose columns are found, and opened together unless they were before."""
    if isinstance(labels, LabelTable) and isinstance(verdicts, VerdictTable):
        return JudgedTables(labels=labels, verdicts=verdicts)
    if isinstance(labels, LabelTable) or isinstance(verdicts, VerdictTable):
        raise TypeError("labels and verdicts are both opened, or both not")
    return of_two_tables(labels, verdicts, options)


def _without_arms(human: LabelFile, judged: VerdictFile) -> LabelFile:
    """Leave the labels out whose run is of a perturbed arm by the verdict table."""
    arms = [row for t in human.rows.keys() & judged.arms for row in human.rows[t]]
    return replace(
        human,
        rows={t: rows for t, rows in human.rows.items() if t not in judged.arms},
        left_out=_with_rows(human.left_out, "perturbed_arm", arms),
    )


def _with_rows(
    listed: Sequence[LeftOut], code: str, rows: Sequence[LabelRow]
) -> tuple[LeftOut, ...]:
    """Return what was left out, and these rows."""
    before = next((one for one in listed if one.code == code), None)
    if not rows:
        return tuple(listed)
    line = min(row.line for row in rows)
    if before is not None and before.first is not None:
        line = min(line, before.first.line or line)
    first = FirstRow(line=line)
    n = len(rows) + (0 if before is None else before.rows)
    return (*(one for one in listed if one.code != code), left_out(code, n, first))


def _readings(
    readings: Sequence[Reading], human: LabelFile, judged: VerdictFile
) -> tuple[Reading, ...]:
    """Return the readings, with the labels whose trace has no verdict."""
    of_labels, of_verdicts = readings
    lacking = [row for t, rows in human.rows.items() if t not in judged.rows for row in rows]
    listed = _with_rows(human.left_out, "no_verdict", lacking)
    n = sum(one.rows for one in listed)
    return replace(of_labels, left_out=listed, used=max(of_labels.rows - n, 0)), of_verdicts


def _with_unjudged(
    human: LabelFile, judged: VerdictFile, design: Design, unjudged: Unjudged | None
) -> VerdictFile:
    """Add the labelled traces without a verdict row, or refuse where they are too many."""
    lacking = [rows[0] for trace_id, rows in human.rows.items() if trace_id not in judged.rows]
    if unjudged == "no_verdict":
        added = {row.trace_id: VerdictRow(line=row.line, trace_id=row.trace_id) for row in lacking}
        return replace(judged, rows={**judged.rows, **added})
    found = len(human.rows) - len(lacking)
    too_many = found and len(lacking) > UNJUDGED_MOST * len(human.rows)
    if design == "production" and unjudged is None and too_many:
        raise CalibrationError(
            f"{len(lacking):,} of {len(human.rows):,} labelled traces have no row in "
            f"{judged.path} (line {lacking[0].line} of {human.path} is the first): with "
            "--unjudged no_verdict they are runs that the judge did not answer, with --unjudged "
            "outside they are no part of production"
        )
    return judged


def _credit(
    vocabulary: Vocabulary, given: Mapping[str, float] | None, taxonomy: Taxonomy
) -> CreditTable:
    """Return the credit of the classes; that of workflows for what is not given for all."""
    classes, final = vocabulary.classes, vocabulary.final
    known = set(classes) <= set(taxonomy.names)
    for name in given or {}:
        if name not in (*final, *classes):
            raise InputError(f"--credit: {name!r:.80} is not one of {', '.join(final):.200}")
    if given is None and not known:
        shown = ",".join(f"{name}=..." for name in final)
        raise InputError(f"the credit of each class is needed: --credit {shown:.300}")

    def of(workflow: str | None) -> tuple[float, ...]:
        # Without a merged class, credit is given for every class or for none.
        ours = taxonomy.credit_in(workflow) if known and (not given or vocabulary.merged) else {}
        worth = {**ours, **(given or {})}
        return tuple(_worth(name, vocabulary, worth, given or {}) for name in final)

    own = taxonomy.credit_table.by_workflow
    return CreditTable(credit=of(None), by_workflow={name: of(name) for name in own}).mapped(tuple)


def _worth(
    name: str, vocabulary: Vocabulary, worth: Mapping[str, float], given: Mapping[str, float]
) -> float:
    """Return the credit of a class; that of a merged one is given, or alike in its parts."""
    parts = vocabulary.merged.get(name)
    if parts is None or name in given:
        if name not in worth:
            raise InputError(f"--credit: that of {name!r:.80} is missing")
        return worth[name]
    amounts = {worth.get(part) for part in parts}
    first = amounts.pop()
    if first is None or amounts:
        raise InputError(
            f"--credit: that of the merged class {name!r:.80} is needed, since "
            f"{', '.join(parts):.200} do not have one credit: --credit {name:.80}=..."
        )
    return first


def _traces(
    verdicts: VerdictFile, ceilings: Ceilings, taxonomy: Taxonomy, tasks: Mapping[str, str]
) -> pd.DataFrame:
    """Return the columns of the verdict table, None where missing."""
    rows = list(verdicts.rows.values())
    given = {
        name: [getattr(row, name) or None for row in rows]
        for name, told in (("agent", any(r.agent for r in rows)),
                           ("prompt", any(r.prompt == CUT for r in rows)))
        if told
    }  # fmt: skip
    return pd.DataFrame(
        {
            "trace_id": list(verdicts.rows),
            "workflow": [row.workflow for row in rows],
            "task_key": [tasks.get(trace_id) or trace_id for trace_id in verdicts.rows],
            "judge": [row.judge for row in rows],
            **given,
            "model": [row.model or None for row in rows],
            "started_at": pd.to_datetime(
                pd.Series([row.started_at for row in rows], dtype=object), utc=True
            ),
            "cost_usd": np.array([row.cost_usd for row in rows], dtype=np.float64),
            "units": [row.units for row in rows],
            "ceiling_usd": np.array([ceilings.of(row, taxonomy) for row in rows], dtype=np.float64),
            "n_steps": np.array([row.steps for row in rows], dtype=np.float64),
            "response_chars": np.array([row.response_chars for row in rows], dtype=np.float64),
            "reason": [row.reason for row in rows],
            "evidence": [row.evidence for row in rows],
        }
    )


def _penalties(traces: pd.DataFrame) -> NDArray[np.float64]:
    limits = traces["ceiling_usd"].to_numpy(dtype=np.float64)
    costs = np.where(np.isnan(limits), np.nan, traces["cost_usd"].to_numpy(dtype=np.float64))
    units = traces["units"].to_numpy(dtype=np.float64)
    return cost_penalties(costs, np.where(np.isnan(limits), 1.0, limits), units)


def _labels(
    found: Mapping[str, Sequence[LabelRow]], classes: tuple[str, ...]
) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Return one row per label, and the adjudicated class of each trace."""
    code = {name: k for k, name in enumerate(classes)}
    settled = np.full(len(found), MISSING, dtype=np.int64)
    labels = []
    for k, (trace_id, rows) in enumerate(found.items()):
        for n, row in enumerate(rows, 1):
            if row.adjudicated:
                settled[k] = code[row.outcome]
            else:
                who = row.reviewer or f"label {n}"
                labels.append(
                    (trace_id, who, row.outcome, code[row.outcome], row.rationale, row.evidence)
                )
    return pd.DataFrame(labels, columns=list(LABEL_COLUMNS)), settled


def _weights(
    path: str, rows: Mapping[str, Sequence[LabelRow]], trace_ids: Sequence[str]
) -> NDArray[np.float64] | None:
    """Return the weights of the traces asked about; None if equal."""
    first = [rows[trace_id][0] for trace_id in trace_ids]
    lacking = next((row for row in first if row.weight is None), None)
    if lacking is None:
        weights = np.array([row.weight for row in first], dtype=np.float64)
        return None if np.allclose(weights, weights[0], rtol=1e-9, atol=0) else weights
    if any(row.weight is not None for row in first):
        with located(path, lacking.line):
            raise FieldError(
                "field 'weight': is missing and other traces have one; give each trace one"
            )
    return None


def _strata(verdicts: VerdictFile) -> NDArray[np.int64] | None:
    """Return the stratum of the draw of each trace; None where none is named."""
    names = [row.stratum for row in verdicts.rows.values()]
    if not any(names):
        return None
    # Sums over strata have the same last digit in a store and in its exported files.
    place = {name: k for k, name in enumerate(in_order({*names} - {""}))}
    return np.array([place.get(name, MISSING) for name in names], dtype=np.int64)


def _grades(
    verdicts: VerdictFile, found: Mapping[str, Sequence[LabelRow]]
) -> NDArray[np.int64] | None:
    grades = np.array([verdicts.rows[t].grade or 0 for t in found], dtype=np.int64)
    return grades if grades.any() else None


def _repeats(verdicts: VerdictFile, names: Sequence[str]) -> NDArray[np.int64] | None:
    """Return first and repeated verdicts of the traces that the judge was asked about again."""
    if not verdicts.again:
        return None
    columns = [
        [
            outcome_code(verdicts, names, one)
            for one in (*(() if row.of_all else (row.outcome or NO_VERDICT,)), *more)
        ]
        for row in verdicts.rows.values()
        if (more := verdicts.again.get(row.trace_id))
    ]
    most = max(map(len, columns), default=1)
    rows = [[*one, *[MISSING] * (most - len(one))] for one in columns]
    return np.array(rows, dtype=np.int64).reshape(len(rows), most)


def outcome_code(file: VerdictFile, names: Sequence[str], outcome: str) -> int:
    """Return the position of a verdict in `names`; raise InputError if missing."""
    if outcome not in names:
        raise InputError(f"{file.path}, {none_of('outcome', outcome, names)}")
    return list(names).index(outcome)


def _of_recoded(recoded: Recoded) -> str:
    rows = f"{recoded.verdicts:,} verdicts"
    if recoded.option == "merge" or recoded.labels:
        rows = f"{recoded.labels:,} labels and {rows}"
    how = "merged into" if recoded.option == "merge" else "taken as"
    return f"{how} {recoded.into or 'missing'}: {rows} {recoded.outcome:.80}"


def _notes(traces: pd.DataFrame, ceilings: Ceilings) -> Iterator[str]:
    n = len(traces)
    without_ceiling = int(traces["ceiling_usd"].isna().sum())
    without_cost = int(traces["cost_usd"].isna().sum())
    if without_ceiling == n:
        yield "no cost ceiling was given: no cost penalty is taken off"
    elif without_ceiling:
        yield f"{without_ceiling:,} of {n:,} traces have no ceiling and carry no penalty"
    if without_cost and without_ceiling < n:
        yield f"{without_cost:,} of {n:,} traces have no cost and carry no penalty"
    unused = sorted(set(ceilings.by_workflow) - set(traces["workflow"]))
    if unused:
        yield f"ceilings of workflows without a trace: {', '.join(unused):.200}"
    if traces["task_key"].is_unique:
        yield "no task is named twice: traces are taken as independent"


def read_tables(path: Path) -> tuple[CalibrationData, Design]:
    """Read a file of counted tables, without single traces or costs.

    Raises InputError, naming file and field, if it cannot be read or a field is missing or invalid.
    """
    text = read_text(path, most=MOST_COUNTED, hint="; it holds counts, not traces")
    try:
        content = decode_text(text)
        if not isinstance(content, dict):
            raise FieldError(f"must hold one JSON object, got {type(content).__name__}")
        return _tables(str(path), content)
    except FieldError as error:
        raise InputError(f"{path}: {error}") from error


def _tables(file: str, content: dict[str, Any]) -> tuple[CalibrationData, Design]:
    for name in REQUIRED:
        if content.get(name) is None:
            raise FieldError(f"field {name!r} is missing; needed are {', '.join(REQUIRED)}")
    design = content["design"]
    if not isinstance(design, str) or design not in HEADLINE:
        raise wrong("design", f"must be one of {', '.join(HEADLINE)}", design)
    classes = _names(content["classes"], "classes", at_least=2)
    columns = classes
    if content.get("judge_classes") is not None:
        columns = _names(content["judge_classes"], "judge_classes", at_least=2)
        lacking = [name for name in classes if name not in columns]
        if lacking:
            raise FieldError(
                f"field 'judge_classes': must hold all classes, {lacking[0]!r:.80} is not there"
            )
    # Independent of the order of columns.
    names = (*classes, *sorted(set(columns) - set(classes)))
    order = [columns.index(name) for name in names]
    confusion = _matrix(content["confusion"], classes, columns)[:, order]
    production = _counts(
        content["production_judge_counts"], columns, "production_judge_counts", "the judge"
    )[order]
    if design == "production":
        _check_included(confusion, production, names)
    credit = _counted_credit(content["credit"], classes)
    notes = ["no costs are known: no cost penalty is taken off"]
    if unknown := sorted(set(content) - {*REQUIRED, *OPTIONAL}):
        notes.append(f"fields that mean nothing here: {', '.join(unknown):.200}")
    data = _reduced(file, classes, credit, names, confusion, production, tuple(notes))
    return data, cast(Design, design)


def _reduced(
    file: str,
    classes: tuple[str, ...],
    credit: Sequence[float],
    names: tuple[str, ...],
    confusion: NDArray[np.int64],
    production: NDArray[np.int64],
    notes: tuple[str, ...],
) -> CalibrationData:
    """Return one labelled trace for every count of the table."""
    cells = np.repeat(np.arange(confusion.size), confusion.ravel())
    rows, verdicts = np.divmod(cells, len(names))
    n = cells.size
    nothing = pd.DataFrame({"trace_id": [], "workflow": [], "task_key": []}, dtype=object)
    return CalibrationData(
        provenance=Provenance(source="tables", verdicts=file),
        taxonomy=default_taxonomy(),
        classes=classes,
        credit=np.array(credit),
        sampling="claimed",
        traces=nothing,
        verdict_names=names,
        verdicts=verdicts,
        penalties=np.zeros(n),
        counts=production,
        labels=pd.DataFrame(columns=list(LABEL_COLUMNS)),
        labelled=nothing,
        at=np.arange(n),
        human=np.eye(len(classes))[rows],
        adjudicated=np.zeros(n, dtype=bool),
        tasks=np.arange(n),
        notes=notes,
    )


def _names(value: object, name: str, *, at_least: int) -> tuple[str, ...]:
    rule = f"must be a list of {at_least} to {MAX_CLASSES} names, each once"
    if not isinstance(value, list) or not at_least <= len(value) <= MAX_CLASSES:
        raise wrong(name, rule, value)
    for one in value:
        if not isinstance(one, str) or not one.strip() or len(one) > 200:
            raise wrong(name, rule, one)
    names = tuple(one.strip() for one in value)
    for one in names:
        if names.count(one) > 1:
            raise FieldError(f"field {name!r}: {rule}, {one!r:.80} occurs twice")
    return names


def _by_name(value: object, names: Sequence[str], name: str, whose: str) -> list[object]:
    """Return a list in the order of `names`, from a list in that order or an object by name."""
    if isinstance(value, Mapping):
        for one in (*value, *names):
            if one not in names:
                raise FieldError(f"field {name!r}: {one!r:.80} is not a class of {whose}")
            if one not in value:
                raise FieldError(f"field {name!r}: {one!r:.80} is missing")
        return [value[one] for one in names]
    if not isinstance(value, list) or len(value) != len(names):
        got = f"a list of {len(value)}" if isinstance(value, list) else f"{value!r:.60}"
        raise FieldError(
            f"field {name!r}: must be a list of {len(names)}, one a class of {whose}, got {got}"
        )
    return value


def _counted_credit(value: object, classes: tuple[str, ...]) -> list[float]:
    given = _by_name(value, classes, "credit", "the humans")
    credit = []
    for name, one in zip(classes, given, strict=True):
        found = number(one, "credit", maximum=1.0)
        if found is None:
            raise FieldError(f"field 'credit': that of {name!r:.80} is missing")
        credit.append(found)
    return credit


def _counts(value: object, columns: Sequence[str], name: str, whose: str) -> NDArray[np.int64]:
    counts = []
    for column, one in zip(columns, _by_name(value, columns, name, whose), strict=True):
        found = whole(one, name, maximum=MAX_COUNT)
        if found is None:
            raise FieldError(f"field {name!r}: the count of {column!r:.80} is missing")
        counts.append(found)
    if sum(counts) > MAX_COUNT:
        raise FieldError(f"field {name!r}: must sum to at most {MAX_COUNT:,}, got {sum(counts):,}")
    return np.array(counts, dtype=np.int64)


def _matrix(value: object, classes: tuple[str, ...], columns: tuple[str, ...]) -> NDArray[np.int64]:
    rows = _by_name(value, classes, "confusion", "the humans")
    found = []
    for name, row in zip(classes, rows, strict=True):
        try:
            found.append(_counts(row, columns, "confusion", "the judge"))
        except FieldError as error:
            raise FieldError(f"{error} (in the row of {name!r:.80})") from error
    table = np.array(found)
    if table.sum() > MAX_LABELS:
        raise FieldError(
            f"field 'confusion': must sum to at most {MAX_LABELS:,} labels, got {table.sum():,}"
        )
    return table


def _check_included(
    confusion: NDArray[np.int64], production: NDArray[np.int64], names: Sequence[str]
) -> None:
    labelled = confusion.sum(axis=0)
    for k in np.flatnonzero(labelled > production).tolist():
        raise FieldError(
            f"field 'production_judge_counts': for design 'production' it includes the labelled "
            f"traces, but {names[k]!r:.80} has {production[k]:,} and {labelled[k]:,} are labelled"
        )
