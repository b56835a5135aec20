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
from calibration.tables.rows import Row, Source, any_rows, cell_number, cell_text, place_of
from calibration.taxonomy import Taxonomy, default_taxonomy
from calibration.trace_formats.fields import FieldError

NO_COST = "no acceptable run with a known cost: record costs, or outcomes"
METHOD = "percentile, limits of its rank over {over}"
ABOVE = "share of acceptable runs, exact limits over {over}"

Measure = Literal["usefulness", "feedback"]
USEFULNESS: Measure = "usefulness"
FEEDBACK: Measure = "feedback"
CLASS, TASK = ("class", "outcome"), "task"
OF_USEFUL_RUNS = (*CLASS, USEFULNESS, FEEDBACK, TASK, "task_id")
BAD: Mapping[Measure, str] = {
    USEFULNESS: "usefulness is not a number from 0 to 100",
    FEEDBACK: "feedback is neither up nor down, 1 nor 0",
}
LIKED = {"up": 1.0, "down": 0.0, "1": 1.0, "0": 0.0, "true": 1.0, "false": 0.0}
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
    return _suggested(
        found.table,
        {w.name: w for w in read.taxonomy.workflows},
        percentile,
        basis=f"runs of {', '.join(place.names)} that are {' or '.join(rules.acceptable)}",
        taxonomy=read.taxonomy,
        level=options.confidence_level,
        tasks=found.n_tasks,
        notes=notes,
    )


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
    set_aside: dict[str, int]
    by_task: bool
    seed: int
    n_resamples: int
    confidence_level: float
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Useful:
    """Rows of the table: class codes, usefulness, tasks (empty without any); others by reason."""

    measure: Measure
    codes: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    set_aside: Counter[str] = field(default_factory=Counter)


def fit_credit_of(
    source: Source,
    *,
    taxonomy: Taxonomy | None = None,
    seed: int = 0,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
) -> CreditFit:
    """Fit the partial credit to a table of runs, as `fit_credit`.

    The table has a column class (or outcome), and usefulness from 0 to 100, or feedback: up or
    down, 1 or 0. With a column task, runs of one task are resampled together; a run without a task
    is one of its own. Rows that cannot be used are set aside and counted by reason.

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
    read = _read_useful(source, rules)
    if not read.codes:
        why = "; ".join(f"{n:,}: {reason}" for reason, n in read.set_aside.items())
        raise CalibrationError(f"{place_of(source)}: no run can be used ({why or 'no rows'})")
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
        set_aside=dict(read.set_aside),
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


def _read_useful(source: Source, taxonomy: Taxonomy) -> _Useful:
    found, named = _Useful(measure=USEFULNESS), ""
    rows = any_rows(source, aside=lambda _line, why: found.set_aside.update([why]))
    for line, row in rows:
        if not named:
            named, measure = _columns(f"{place_of(source)}, line {line}", row)
            found = replace(found, measure=measure)
        outcome, value = cell_text(row.get(named)), _useful(row, found.measure)
        if outcome not in taxonomy.names:
            missing = "is missing" if not outcome else f"is not one of {', '.join(taxonomy.names)}"
            found.set_aside.update([f"the {named} {missing}"])
        elif value is None:
            found.set_aside.update([BAD[found.measure]])
        else:
            found.codes.append(taxonomy.place(outcome))
            found.values.append(value)
            found.tasks.append(cell_text(row.get(TASK, row.get("task_id"))))
    return found


def _columns(where: str, row: Row) -> tuple[str, Measure]:
    """Return the column of the class and the one of usefulness; InputError if one is missing."""
    named = next((name for name in CLASS if name in row), None)
    if named is None:
        raise InputError(f"{where}: needs a column {' or '.join(CLASS)}")
    measures = [name for name in BAD if name in row]
    if len(measures) != 1:
        got = "both are there" if measures else "neither is there"
        raise InputError(
            f"{where}: needs a column usefulness (0 to 100) or feedback (up or down), {got}"
        )
    return named, measures[0]


def _useful(row: Row, measure: Measure) -> float | None:
    """Return how useful a run was; None where it is missing or cannot be read."""
    if measure == FEEDBACK:
        return LIKED.get(cell_text(row.get(measure)).casefold())
    try:
        return cell_number(row, measure, maximum=MOST_USEFUL)
    except FieldError:
        return None
