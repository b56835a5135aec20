"""What a taxonomy's numbers could be: ceilings from costs, partial credit from usefulness."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.evidence.data import CalibrationData
from calibration.analyses.evidence.from_store import load_batch
from calibration.analyses.fingerprint import package_version, settings_digest
from calibration.analyses.success_rate.from_runs import read_production
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import CalibrationError, InputError
from calibration.records import Workflow
from calibration.runs.sources import Place
from calibration.statistics.estimate import OK, Estimate, FloatArray, not_estimable
from calibration.statistics.intervals import exact_limits
from calibration.statistics.means import limits_of_bins, quantile_of_bins
from calibration.store import Store
from calibration.success_rate.fitted_credit import FittedCredit, fit_credit
from calibration.tables import words
from calibration.tables.columns import (
    TASKS,
    Columns,
    Header,
    answer_column,
    chosen_columns,
    normalised,
)
from calibration.tables.labels import lacking
from calibration.tables.reading import Reading, ReadingOptions, reading_of
from calibration.tables.rows import OpenTable, Source, open_table, place_of
from calibration.tables.scales import OutcomeColumn, read_outcomes
from calibration.tables.words import cell
from calibration.taxonomy import Taxonomy, default_taxonomy

NO_COST = "no acceptable run with a known cost: record costs, or outcomes"
METHOD = "percentile, limits of its rank over {over}"
ABOVE = "share of acceptable runs, exact limits over {over}"

Measure = Literal["usefulness", "feedback"]
USEFULNESS: Measure = "usefulness"
FEEDBACK: Measure = "feedback"
CLASS, TASK = "class", "task_id"
OF_USEFUL_RUNS = (CLASS, USEFULNESS, FEEDBACK, TASK)
OTHER_NAMES = {"outcome": CLASS, "task": TASK}
VALUES: Mapping[Measure, str] = {
    USEFULNESS: "usefulness is a number from 0 to 100",
    FEEDBACK: "feedback is up or down, 1 or 0",
}
MOST_USEFUL = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestedCeiling:
    """One workflow: its ceiling, and what a unit of its acceptable runs costs.

    `suggested` is the percentile, in USD per unit; `share_above` the share of these runs that cost
    more than the present ceiling, None without one or the other.
    """

    workflow: str
    unit: str
    ceiling_usd: float | None
    n: int
    suggested: Estimate
    share_above: Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestedCeilings:
    """Ceilings from the costs of acceptable runs, by workflow.

    `percentile` is the share of acceptable runs that the ceiling would cover; `basis` says in words
    which runs these are; `accepted` are their classes, `batch_id` the batches that they are of
    (None for files).
    """

    percentile: float
    basis: str
    accepted: tuple[str, ...]
    workflows: tuple[SuggestedCeiling, ...]
    confidence_level: float
    notes: tuple[str, ...]
    fingerprint: str
    batch_id: str | None = None
    reading: Reading | None = None


def ceilings_from_files(
    place: Place,
    *,
    percentile: float = 0.9,
    options: ReportOptions | None = None,
    taxonomy: Taxonomy | None = None,
) -> SuggestedCeilings:
    """Suggest ceilings from files, whose outcomes are taken as given; errors as `read_production`.

    Where tasks repeat, the limits are those of as many runs as there are tasks.
    """
    options = options or ReportOptions()
    read = read_production(place, taxonomy=taxonomy, options=options, acceptable_costs=True)
    rules = read.taxonomy
    found = read.counts.unit_costs
    if found is None:
        raise RuntimeError("the counts lack the costs that were asked for")
    notes: tuple[str, ...] = ()
    if "weight" in read.counts.notes.columns:
        notes = ("Every run counts once: the weights of the file are not used here.",)
    suggested = _suggested(
        found.table,
        {w.name: w for w in read.taxonomy.workflows},
        percentile,
        basis=f"runs of {', '.join(place.names)} that are {' or '.join(rules.acceptable)}",
        taxonomy=read.taxonomy,
        level=options.confidence_level,
        tasks=found.n_tasks,
        notes=notes,
    )
    return replace(suggested, reading=read.reading)


def ceilings_from_store(
    store: Store,
    batch_id: str | None = None,
    *,
    percentile: float = 0.9,
    confidence_level: float = 0.95,
) -> SuggestedCeilings:
    """Suggest ceilings from the labelled traces of a batch that all their reviewers accept.

    Errors as `load_batch`; CalibrationError if nothing is labelled.
    """
    data = load_batch(store, batch_id)
    if data.labelled.empty:
        raise CalibrationError(
            f"batch {data.provenance.batch_id!r} has no labels yet; label it on the Label page"
        )
    frame = data.labelled[_accepted(data) & data.labelled["cost_usd"].notna().to_numpy()]
    table = pd.DataFrame(
        {"workflow": frame["workflow"], "amount": frame["cost_usd"] / frame["units"], "n": 1}
    )
    notes: tuple[str, ...] = ()
    if data.weights is not None:
        notes = ("Every label counts once: the uneven draw of the batch is not corrected here.",)
    found = _suggested(
        table,
        store.workflows(),
        percentile,
        basis=f"labelled traces of {data.provenance.batch_id} that all their reviewers call "
        f"{' or '.join(data.taxonomy.acceptable)}",
        taxonomy=data.taxonomy,
        level=confidence_level,
        tasks={str(w): int(n) for w, n in frame.groupby("workflow")["task_key"].nunique().items()},
        notes=notes,
    )
    return replace(found, batch_id=data.provenance.batch_id)


def _accepted(data: CalibrationData) -> NDArray[np.bool_]:
    places = [data.taxonomy.place(name) for name in data.taxonomy.acceptable]
    return np.asarray(data.human[:, places].sum(axis=1) > 1 - 1e-9)


def _suggested(
    table: pd.DataFrame,
    workflows: Mapping[str, Workflow],
    percentile: float,
    *,
    basis: str,
    taxonomy: Taxonomy,
    level: float,
    tasks: Mapping[str, int] | None,
    notes: tuple[str, ...],
) -> SuggestedCeilings:
    """Return the suggestions; `table` has workflow, amount and n."""
    if not 0 < percentile < 1:
        raise InputError(f"--percentile must be in (0, 1), such as 0.9, got {percentile}")
    of = {str(name): rows for name, rows in table.groupby("workflow")}
    rows = tuple(
        _workflow(
            workflows.get(name, Workflow(name=name)),
            of.get(name),
            percentile,
            None if tasks is None else int(tasks.get(name, 0)),
            level,
        )
        for name in sorted({*of, *workflows})
    )
    found = SuggestedCeilings(
        percentile=percentile,
        basis=basis,
        accepted=taxonomy.acceptable,
        workflows=rows,
        confidence_level=level,
        notes=notes,
        fingerprint=settings_digest(
            {
                "kind": "ceilings", "version": package_version(), "basis": basis,
                "taxonomy": taxonomy.fingerprint, "percentile": percentile, "level": level,
                "workflows": [
                    [row.workflow, row.ceiling_usd, row.n, row.suggested.value] for row in rows
                ],
            }
        ),
    )  # fmt: skip
    if not any(row.n for row in rows):
        raise CalibrationError(f"{basis}: {NO_COST}")
    return found


def _workflow(
    workflow: Workflow, rows: pd.DataFrame | None, q: float, tasks: int | None, level: float
) -> SuggestedCeiling:
    named, ceiling = {"workflow": workflow.name, "unit": workflow.unit}, workflow.ceiling_usd
    if rows is None or rows.empty:
        none = not_estimable(NO_COST, method="percentile", confidence_level=level)
        return SuggestedCeiling(**named, ceiling_usd=ceiling, n=0, suggested=none, share_above=None)
    amount, n = rows["amount"].to_numpy(np.float64), rows["n"].to_numpy(np.float64)
    bins: FloatArray = np.column_stack([n, amount, amount])
    whole = int(n.sum())
    effective = whole if tasks is None else min(whole, tasks)
    over = f"{effective:,} {'runs' if tasks is None else 'tasks'}"
    limits = limits_of_bins(bins, q, effective, confidence_level=level)
    above = None
    if ceiling is not None:
        share = float(n[amount > ceiling].sum()) / whole
        above = Estimate(
            value=share, interval=exact_limits(share, effective, level), n=whole,
            method=ABOVE.format(over=over), confidence_level=level,
        )  # fmt: skip
    return SuggestedCeiling(
        **named,
        ceiling_usd=ceiling,
        n=whole,
        suggested=Estimate(
            value=quantile_of_bins(bins, q),
            interval=limits,
            n=whole,
            method=METHOD.format(over=over),
            confidence_level=level,
            status=OK if limits else f"provisional: no interval, {over} are too few",
        ),
        share_above=above,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditFit:
    """Partial credit fitted to a table of runs, and how the table was read.

    `measure` is the column that says how useful a run was; `present` the credit of the taxonomy.
    """

    file: str
    measure: Measure
    found: FittedCredit
    present: dict[str, float]
    titles: dict[str, str]
    reading: Reading
    by_task: bool
    seed: int
    n_resamples: int
    confidence_level: float
    fingerprint: str


@dataclass(slots=True, kw_only=True, eq=False)
class _Useful:
    """Rows of the table: class codes, usefulness, tasks (empty without any); what was read."""

    measure: Measure
    codes: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    reading: Reading | None = None


def fit_credit_of(
    source: Source,
    *,
    options: ReadingOptions | None = None,
    taxonomy: Taxonomy | None = None,
    seed: int = 0,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
) -> CreditFit:
    """Fit the partial credit to a table of runs, as `fit_credit`.

    The table has a column class (or outcome), and usefulness from 0 to 100, or feedback: up or
    down, 1 or 0. With a column task_id, runs of one task are resampled together; a run without a
    task is one of its own. Rows that cannot be used are left out and counted by reason.

    Raises
    ------
    InputError
        If the table cannot be read, or lacks a column.
    CalibrationError
        If no row can be used.
    """
    rules = taxonomy or default_taxonomy()
    if len(rules.acceptable) < 2:
        raise InputError("this taxonomy has no partly right class, whose credit could be fitted")
    read = _read_useful(source, rules, options or ReadingOptions())
    reading = read.reading
    if not read.codes or reading is None:
        why = "" if reading is None else reading.left_out_line or reading.folded_line
        raise CalibrationError(
            f"{place_of(source)}: no run can be used. {why or 'No rows'}; {VALUES[read.measure]}"
        )
    codes = np.array(read.codes, dtype=np.int64)
    values = np.array(read.values)
    by_task = any(read.tasks)
    # No name of a file begins with a NUL: a run without a task is one of its own.
    names = [name or f"\0{row}" for row, name in enumerate(read.tasks)]
    found = fit_credit(
        codes,
        values,
        taxonomy=rules,
        rng=np.random.default_rng(seed),
        tasks=np.unique(names, return_inverse=True)[1].ravel() if by_task else None,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
    )
    settings = {"seed": seed, "resamples": n_resamples, "level": confidence_level}
    return CreditFit(
        file=place_of(source),
        measure=read.measure,
        found=found,
        present={name: rules.credit[name] for name in found.partial},
        titles=rules.titles,
        reading=reading,
        by_task=by_task,
        seed=seed,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        fingerprint=settings_digest(
            {
                "kind": "fitted credit", "version": package_version(),
                "taxonomy": rules.fingerprint, "settings": settings,
                "rows": sorted(zip(read.codes, read.values, names, strict=True)),
            }
        ),
    )  # fmt: skip


def _read_useful(source: Source, taxonomy: Taxonomy, options: ReadingOptions) -> _Useful:
    """Read the rows of which class and usefulness are known."""
    table = open_table(source, options)
    roles = _roles_of(table, options)
    measure = USEFULNESS if USEFULNESS in roles else FEEDBACK
    decimal = (
        words.decimal_of(
            table.sample.values(roles[measure]), place=table.place, chosen=options.decimal
        )
        if measure == USEFULNESS
        else None
    )
    rows = [
        (line, cell(row.get(roles[CLASS])), cell(row.get(roles[measure])),
         cell(row.get(roles.get(TASK, ""))))
        for line, row in table.rows
    ]  # fmt: skip
    outcomes = read_outcomes(
        [
            OutcomeColumn(
                place=table.place, name=roles[CLASS], role_name=normalised(roles[CLASS]),
                counts=Counter(written for _, written, _, _ in rows),
            )
        ],
        taxonomy=taxonomy,
        options=options.outcomes(is_named=True),
    )  # fmt: skip
    useful = _Useful(measure=measure)
    for line, written, answer, task in rows:
        value = _useful(answer, measure, decimal)
        if written not in outcomes.classes:
            table.left_out.add(outcomes.left_out.get(written, "unknown_outcome"), line, written)
        elif value is None:
            table.left_out.add("bad_value", line, answer)
        else:
            useful.codes.append(taxonomy.place(outcomes.classes[written]))
            useful.values.append(value)
            useful.tasks.append(task)
    used = set(roles.values())
    useful.reading = reading_of(
        Columns(by_role=roles, not_read=tuple(name for name in table.columns if name not in used)),
        roles=OF_USEFUL_RUNS,
        left_out=table.left_out.listed(),
        place=table.place,
        rows=table.n_rows,
        used=len(useful.codes),
        words={CLASS: outcomes.words} if outcomes.words else {},
        missing_words=dict(outcomes.missing),
        rubric=taxonomy.version,
        max_left_out=None,
        notes=outcomes.notes,
    )
    return useful


def _roles_of(table: OpenTable, options: ReadingOptions) -> dict[str, str]:
    """Return the column of each role; InputError if class or usefulness has none."""
    header = Header.of(table.columns, table.place, OF_USEFUL_RUNS)
    chosen = {OTHER_NAMES.get(role, role): name for role, name in options.columns.items()}
    roles = chosen_columns(header, chosen, OF_USEFUL_RUNS)
    aliases = {CLASS: (CLASS, "outcome"), TASK: TASKS}
    for role in OF_USEFUL_RUNS:
        present = header.there(aliases.get(role, (role,)), roles.values())
        if role not in chosen and present:
            roles[role] = present[0]
    if CLASS not in roles:
        column = answer_column(header, table.sample, role=CLASS, names=(), taken=roles.values())
        if column is None:
            raise lacking(table.place, CLASS, table.columns)
        roles[CLASS] = column
    if (USEFULNESS in roles) == (FEEDBACK in roles):
        both = "both are there" if USEFULNESS in roles else "neither is there"
        raise InputError(
            f"{table.place}: needs a column usefulness (0 to 100) or feedback (up or down), {both}"
        )
    return roles


def _useful(answer: str, measure: Measure, decimal: words.Decimal | None) -> float | None:
    """Return how useful a run was; None where it is missing or cannot be read."""
    if measure == USEFULNESS:
        value = words.number_of(answer, decimal)
        return value if value is not None and 0 <= value <= MOST_USEFUL else None
    word = words.fold(answer)
    if word in words.LIKED or word in words.DISLIKED:
        return float(word in words.LIKED)
    truth = words.truth(answer)
    return None if truth is None else float(truth)
