"""Which layer of evaluation caught which failures: of a table, or of a store."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from calibration.analyses.fingerprint import package_version, settings_digest
from calibration.analyses.success_rate.report import LeftOutRows
from calibration.errors import CalibrationError, InputError
from calibration.records import SOURCE_JUDGE
from calibration.runs.engines import feedback_worths
from calibration.runs.results import FAILED, TIMED_OUT
from calibration.statistics.estimate import Estimate
from calibration.statistics.means import clustered_share
from calibration.store import Store
from calibration.tables.columns import Columns, named_columns
from calibration.tables.reading import Reading, ReadingOptions, reading_of
from calibration.tables.rows import OpenTable, Row, Source, open_table
from calibration.tables.words import cell, fold, is_missing, truth
from calibration.taxonomy import Taxonomy
from calibration.text import counted, names_there
from calibration.trace_formats.fields import FieldError, wrong

GATE, REVIEW, SIGNAL, USER = LAYERS = ("ci_gate", "weekly_review", "production_signal", "user")
OF_FAILURES = ("trace_id", "failure_type", "task_id", "layer")
NOT_LABELLED = "not labelled"
MOST_LAYERS, MOST_TYPES, MOST_NAME, MOST_FAILURES = 10, 200, 100, 1_000_000
EXAMPLES = 5

NOT_HERE = (
    "A failure that no layer caught and nobody wrote down is in no row: the shares are of the "
    "failures that are known, not of all failures."
)
BY_CONSTRUCTION = (
    "In a store a failure is known by its label, by negative feedback or by a failed grade. Review "
    "therefore catches every labelled failure, and more of all of them the more runs are read; "
    "what it alone caught is what no check, signal or user showed."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtBy:
    """What one layer caught of the failures of one type.

    `share` : of all these failures; `alone` : caught by this layer and by no other
    """

    layer: str
    n: int
    n_alone: int
    share: Estimate
    alone: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureType:
    """The failing runs of one type: a class or a tag, or all types together.

    `n_nowhere` : known failures that none of the layers caught
    """

    name: str
    n: int
    n_nowhere: int
    caught: tuple[CaughtBy, ...]

    def by(self, layer: str) -> CaughtBy:
        """Return what a layer caught."""
        return next(of for of in self.caught if of.layer == layer)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersAnalysis:
    """The matrix of failure types by layers.

    `all_types` : each run once, caught by a layer that caught any of its failures
    `types` : the most frequent first
    `layers` : those recorded, in the order in which they could have caught a failure
    `of_users` : the last of them, if it is that of users: what it alone caught escaped the others.
        None where users are not recorded
    `n_tasks` : independent units of the intervals, which are runs where no task repeats
    """

    source: str
    layers: tuple[str, ...]
    of_users: str | None
    all_types: FailureType
    types: tuple[FailureType, ...]
    n_tasks: int
    confidence_level: float
    notes: tuple[str, ...]
    set_aside: tuple[LeftOutRows, ...]
    reading: Reading | None
    simulated: bool
    fingerprint: str


@dataclass(frozen=True, slots=True)
class _Failures:
    """The layers that caught each failure, by run and type, and the task of each run.

    `layers` : those recorded; `of_users` : the one of users among them.
    """

    caught: Mapping[tuple[str, str], frozenset[str]]
    tasks: Mapping[str, str]
    layers: tuple[str, ...]
    of_users: str | None


def layers_of_table(
    path: Source,
    *,
    layers: Sequence[str] = (),
    options: ReadingOptions | None = None,
    confidence_level: float = 0.95,
) -> LayersAnalysis:
    """Read which layer caught which failure, and estimate the share that each layer catches.

    Each share is of the known failures of that type. Failures of different tasks are independent
    draws of failures like them; those of one task may depend on each other in any way. Limits are
    exact at the effective number of runs (`clustered_share`); none below 5 tasks.

    Parameters
    ----------
    path : Path or DataFrame
        CSV, JSONL or Parquet: trace_id, failure_type (a class or a tag), optionally task_id; and
        either `layer`, one row a catch (empty: caught by none), or one column a layer that is yes
        or no. Rows of one run and type are one failure.
    layers : sequence of str, optional
        In order, the user last; by default ``ci_gate``, ``weekly_review``, ``production_signal``
        and ``user``, those of them that there are columns of.

    Raises
    ------
    InputError
        If the file cannot be read, or lacks a column, or has too many types or failures.
    CalibrationError
        If no failure is left.

    Examples
    --------
    The gate caught 3 of 5 invented citations, a user alone the other 2: .6, and .4 escaped.

    >>> frame = pd.DataFrame({
    ...     "trace_id": list("abcde"),
    ...     "failure_type": "citation",
    ...     "ci_gate": [1, 1, 1, 0, 0],
    ...     "user": [0, 0, 0, 1, 1],
    ... })
    >>> found = layers_of_table(frame).all_types
    >>> found.by("ci_gate").share.value, found.by("user").alone.value
    (0.6, 0.4)
    """
    asked, options = _checked_layers(layers), options or ReadingOptions()
    table = open_table(path, options)
    name = table.place
    found = _columns(table, asked, options)
    columns, by_role = found.layers, found.columns.by_role
    aside: Counter[str] = Counter()
    first: dict[str, list[str]] = {}
    caught: dict[tuple[str, str], set[str]] = {}
    tasks: dict[str, str] = {}
    for line, row in table.rows:
        later = [layer for layer in LAYERS if layer in row and layer not in table.columns]
        if later and not (found.by_row or asked):
            raise InputError(
                f"{name}, line {line}: has {later[0]!r}, which the first rows lack; give every row "
                "the same fields"
            )
        ours = {role: row.get(column) for role, column in by_role.items()}
        try:
            key, by = _failure(ours, columns, found.by_row)
        except FieldError as error:
            reason, _, value = str(error).partition(", got ")
            is_unnamed = reason.startswith("field 'trace_id'")
            table.left_out.add("missing_trace_id" if is_unnamed else "bad_value", line, value)
            aside[reason] += 1
            if aside[reason] <= EXAMPLES:
                first.setdefault(reason, []).append(f"line {line}: {error}")
            continue
        caught.setdefault(key, set()).update(by)
        task = cell(ours.get("task_id"))
        if not is_missing(task):
            tasks.setdefault(key[0], task)
        if len(caught) > MOST_FAILURES:
            raise InputError(f"{name}: more than {MOST_FAILURES:,} failures; split the file")
    if not caught:
        why = "; ".join(f"{n:,}: {reason}" for reason, n in aside.items())
        raise CalibrationError(f"{name}: holds no failure{f' ({why:.400})' if why else ''}")
    n_left_out = sum(table.left_out.counts.values())
    missing = [] if asked else [layer for layer in LAYERS if layer not in columns]
    users = columns[-1] if asked or USER in columns else None
    return _analysis(
        _Failures({key: frozenset(by) for key, by in caught.items()}, tasks, columns, users),
        source=name,
        confidence_level=confidence_level,
        notes=[NOT_HERE, *_not_recorded(missing)],
        set_aside=[
            LeftOutRows(reason=reason, n=n, examples=tuple(first[reason]))
            for reason, n in aside.items()
        ],
        reading=reading_of(
            found.columns,
            roles=(*OF_FAILURES, *columns) if not found.by_row else OF_FAILURES,
            left_out=table.left_out.listed(),
            place=name,
            rows=table.n_rows,
            used=table.n_rows - n_left_out,
            max_left_out=None,
        ),
    )


def _not_recorded(missing: Sequence[str]) -> Iterator[str]:
    if missing:
        yield f"Not recorded, so not in the matrix: {', '.join(missing)}."


def _checked_layers(layers: Sequence[str]) -> tuple[str, ...]:
    named = [layer.strip() for layer in layers]
    if len(named) > MOST_LAYERS or len(set(named)) < len(named):
        raise InputError(f"--layer: at most {MOST_LAYERS} layers, each once, got {named!r:.200}")
    for layer in named:
        if not layer or len(layer) > MOST_NAME or not layer.isprintable():
            raise InputError(
                f"--layer: must be 1 to {MOST_NAME} printable characters: {layer!r:.120}"
            )
    if len(named) == 1:
        raise InputError("--layer: name two layers or more, in order, the user last")
    return tuple(named)


@dataclass(frozen=True, slots=True)
class _LayerColumns:
    """The layers that a table records, its columns, and whether a row is one catch."""

    layers: tuple[str, ...]
    columns: Columns
    by_row: bool


def _columns(table: OpenTable, asked: tuple[str, ...], options: ReadingOptions) -> _LayerColumns:
    """Return what a table of failures records; raise if a column is missing."""
    layers = asked or LAYERS
    columns = named_columns(
        table.columns,
        place=table.place,
        roles=(*OF_FAILURES, *layers),
        chosen=options.columns,
        sample=table.sample,
    )
    for needed in OF_FAILURES[:2]:
        if needed not in columns.by_role:
            raise InputError(
                f"{table.place}: no column is {needed}; {names_there(needed, table.columns)}: "
                f"--column {needed}=NAME"
            )
    if "layer" in columns.by_role:
        return _LayerColumns(layers, columns, True)
    present = tuple(layer for layer in layers if layer in columns.by_role)
    if len(present) < 2 or (asked and present != asked):
        raise InputError(
            f"{table.place}: needs a column 'layer', or a yes-or-no column for each of "
            f"{', '.join(layers):.300}; name others with --layer, in order"
        )
    return _LayerColumns(present, columns, False)


def _failure(
    row: Row, layers: Sequence[str], by_row: bool
) -> tuple[tuple[str, str], Sequence[str]]:
    """Return run and type of a row, and the layers that caught it."""
    trace_id, kind = (_text(row, name) for name in ("trace_id", "failure_type"))
    for name, text, most in (("trace_id", trace_id, 4_096), ("failure_type", kind, MOST_NAME)):
        if not text or len(text) > most or not text.isprintable():
            raise wrong(name, f"must be 1 to {most:,} printable characters", text)
    if not by_row:
        return (trace_id, kind), [layer for layer in layers if _is_yes(row, layer)]
    layer = _text(row, "layer")
    spelled = {fold(name): name for name in layers}
    if layer and fold(layer) not in spelled:
        raise wrong("layer", f"must be one of {', '.join(layers)} (--layer names others)", layer)
    return (trace_id, kind), [spelled[fold(layer)]] if layer else []


def _text(row: Row, name: str) -> str:
    """Return the text of a cell, empty where it is missing."""
    text = cell(row.get(name))
    return "" if is_missing(text) else text


def _is_yes(row: Row, name: str) -> bool:
    """Return a yes or no of a row; an empty cell is no."""
    text = _text(row, name)
    verdict = truth(text)
    if text and verdict is None:
        raise wrong(name, "must say yes or no", text)
    return bool(verdict)


def layers_of_store(store: Store, *, confidence_level: float = 0.95) -> LayersAnalysis:
    """Find which layer caught the known failures of a store, as `layers_of_table`.

    A failure is a production run whose consensus, or the class on which all its blind labels agree,
    is not acceptable: its types are the class and the tags of its labels. A run without a label is
    one of the type ``not labelled`` if its user said so or a grade that came with it failed.

    ========================= ==================================================================
    ``ci_gate``               a grade that came with the run is of no acceptable class
    ``weekly_review``         its label
    ``production_signal``     status error or time-out, a loop, a failed tool call, escalation
    ``user``                  feedback below 0
    ========================= ==================================================================

    CalibrationError if there is no failure.
    """
    taxonomy = store.taxonomy()
    traces = store.production_traces()
    if store.is_simulated() and not traces["simulated"].all():
        traces = traces[~traces["simulated"]]
    ids = set(traces["trace_id"])
    classes, tags, open_ = _judged(store, taxonomy, ids)
    operation = store.operation_frame()
    operation = operation[operation["trace_id"].isin(ids)]
    grades = store.verdict_frame(SOURCE_JUDGE)
    grades = grades[grades["trace_id"].isin(ids)]
    below = grades["outcome"].isin(set(taxonomy.names) - set(taxonomy.acceptable))
    other = {
        GATE: set(grades.loc[below, "trace_id"]),
        SIGNAL: _signalled(traces, operation),
        USER: set(operation.loc[_negative(operation["feedback"]), "trace_id"]),
    }
    recorded = {
        GATE: len(grades) > 0,
        REVIEW: True,
        SIGNAL: bool(traces["status"].notna().any() or operation["loops"].notna().any()),
        USER: bool(operation["feedback"].notna().any()),
    }
    caught: dict[tuple[str, str], frozenset[str]] = {}
    failed = {
        name: outcome for name, outcome in classes.items() if outcome not in taxonomy.acceptable
    }
    judged = open_.union(classes)
    unlabelled = (other[GATE] | other[USER]) - judged
    for trace_id in sorted(failed.keys() | unlabelled):
        by = {layer for layer, hit in other.items() if trace_id in hit}
        kinds = [NOT_LABELLED]
        if trace_id in failed:
            by.add(REVIEW)
            kinds = [failed[trace_id], *sorted(tags.get(trace_id, ()))]
        for kind in kinds:
            caught[trace_id, kind] = frozenset(by)
    if not caught:
        raise CalibrationError(
            f"{store.path}: no failure is known: label runs, or import their feedback or grades"
        )
    return _analysis(
        _Failures(
            caught,
            tasks=dict(zip(traces["trace_id"], traces["task_key"], strict=True)),
            layers=tuple(layer for layer in LAYERS if recorded[layer]),
            of_users=USER if recorded[USER] else None,
        ),
        source=str(store.path),
        confidence_level=confidence_level,
        notes=[
            *_store_notes(failed, unlabelled, other[SIGNAL] - judged, len(open_)),
            *_not_recorded([layer for layer in LAYERS if not recorded[layer]]),
        ],
        simulated=bool(traces["simulated"].any()),
    )


def _store_notes(
    failed: Mapping[str, str], unlabelled: set[str], signalled: set[str], n_open: int
) -> Iterator[str]:
    yield NOT_HERE
    yield BY_CONSTRUCTION
    yield (
        f"{counted(len(failed), 'labelled failure')}; {counted(len(unlabelled), 'run')} without a "
        f"label with negative feedback or a failed grade."
    )
    silent = len(signalled - unlabelled)
    if silent:
        yield (
            f"{counted(silent, 'run')} with a signal and without a label: whether they failed is "
            "not known, and they are in no row."
        )
    if n_open:
        yield f"{counted(n_open, 'run')} on which reviewers differ without a consensus: in no row."


def _judged(
    store: Store, taxonomy: Taxonomy, ids: set[str]
) -> tuple[dict[str, str], dict[str, set[str]], set[str]]:
    """Return the settled class of each labelled run, the tags of its labels, and open runs."""
    frames = [store.label_frame(b.batch_id) for b in store.batches() if b.purpose == "production"]
    settled = store.consensus_frame().set_index("trace_id")["outcome"].to_dict()
    classes = {str(name): str(outcome) for name, outcome in settled.items() if name in ids}
    tags: dict[str, set[str]] = {}
    if not frames:
        return classes, tags, set()
    labels = pd.concat(frames)
    labels = labels[(labels["kind"] == "label") & ~labels["exposed"].astype(bool)]
    labels = labels[labels["trace_id"].isin(ids)]
    given = labels.groupby("trace_id")["outcome"].agg(set)
    open_ = {str(name) for name, outcomes in given.items() if len(outcomes) > 1} - classes.keys()
    for trace_id, outcomes in given.items():
        if len(outcomes) == 1:
            classes.setdefault(str(trace_id), next(iter(outcomes)))
    spelled: dict[str, str] = {}
    for trace_id, text in zip(labels["trace_id"], labels["tags"], strict=True):
        for tag in json.loads(text) if isinstance(text, str) else ():
            # A tag that is called like a class is no second type.
            if tag.casefold() not in taxonomy.names:
                tags.setdefault(trace_id, set()).add(spelled.setdefault(tag.casefold(), tag))
    return classes, tags, open_


def _signalled(traces: pd.DataFrame, operation: pd.DataFrame) -> set[str]:
    """Return the runs on which a signal of the report fired: see `signals.sql`."""
    word = traces["status"].astype("str").str.lower()
    ended = word.str.contains(f"{FAILED}|{TIMED_OUT}", regex=True) & traces["status"].notna()
    fired = (operation["loops"] > 0) | (operation["tool_errors"] > 0)
    fired |= operation["escalated"].map(_happened)
    return set(traces.loc[ended, "trace_id"]) | set(operation.loc[fired, "trace_id"])


def _happened(value: Any) -> bool:
    word = cell(value)
    return truth(word) is True or _amount(word) > 0


def _negative(feedback: pd.Series) -> pd.Series:
    words = feedback.map(cell)
    worths = feedback_worths(words.tolist())
    return words.map(lambda word: -1 <= worths.get(word, _amount(word)) < 0).astype(bool)


def _amount(word: str) -> float:
    """Return the number that a word is, 0 for another word."""
    try:
        found = float(word)
    except ValueError:
        return 0.0
    return found if np.isfinite(found) else 0.0


def _analysis(
    failures: _Failures,
    *,
    source: str,
    confidence_level: float,
    notes: Sequence[str],
    set_aside: Sequence[LeftOutRows] = (),
    reading: Reading | None = None,
    simulated: bool = False,
) -> LayersAnalysis:
    layers = failures.layers
    of_type: dict[str, dict[str, frozenset[str]]] = {}
    whole: dict[str, frozenset[str]] = {}
    for (trace_id, kind), by in sorted(failures.caught.items()):
        of_type.setdefault(kind, {})[trace_id] = by
        whole[trace_id] = whole.get(trace_id, frozenset()) | by
    if len(of_type) > MOST_TYPES:
        raise InputError(f"{source}: more than {MOST_TYPES} failure types; use coarser ones")
    # A run without a task is a unit of its own, whatever a task is called.
    tasks = {name: f"task {failures.tasks[name]}" for name in whole if name in failures.tasks}
    n_tasks = len({tasks.get(trace_id, f"run {trace_id}") for trace_id in whole})
    made = [
        _type(kind, of, layers, tasks, confidence_level)
        for kind, of in sorted(of_type.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    rows = [[*key, *sorted(by), tasks.get(key[0], "")] for key, by in failures.caught.items()]
    return LayersAnalysis(
        source=source,
        layers=layers,
        of_users=failures.of_users,
        all_types=_type("all", whole, layers, tasks, confidence_level),
        types=tuple(made),
        n_tasks=n_tasks,
        confidence_level=confidence_level,
        notes=tuple(notes),
        set_aside=tuple(set_aside),
        reading=reading,
        simulated=simulated,
        fingerprint=settings_digest(
            {
                "kind": "layers",
                "layers": list(layers),
                "failures": sorted(rows),
                "confidence_level": confidence_level,
                "version": package_version(),
            }
        ),
    )


def _type(
    name: str,
    caught: Mapping[str, frozenset[str]],
    layers: Sequence[str],
    tasks: Mapping[str, str],
    level: float,
) -> FailureType:
    """Return what each layer caught of the failing runs of one type."""
    of_run = [tasks.get(trace_id, f"run {trace_id}") for trace_id in caught]
    index = np.unique(np.array(of_run, dtype=str), return_inverse=True)[1].ravel()
    each = np.bincount(index).astype(np.float64)
    noun = "runs" if each.size == len(caught) else "tasks"

    def share(hits: Sequence[bool]) -> tuple[int, Estimate]:
        found = clustered_share(
            np.bincount(index, weights=np.array(hits, dtype=np.float64)).astype(np.float64),
            each,
            n=len(caught),
            noun=noun,
            confidence_level=level,
        )
        return sum(hits), found

    made = []
    for layer in layers:
        n, whole = share([layer in by for by in caught.values()])
        n_alone, alone = share([by == {layer} for by in caught.values()])
        made.append(CaughtBy(layer=layer, n=n, n_alone=n_alone, share=whole, alone=alone))
    nowhere = Counter(bool(by) for by in caught.values())[False]
    return FailureType(name=name, n=len(caught), n_nowhere=nowhere, caught=tuple(made))
