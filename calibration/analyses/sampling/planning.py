"""Plan a batch: expected half-widths, reviewer hours, and savings from a judge."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.evidence.data import CalibrationData
from calibration.analyses.evidence.from_store import (
    choose_judge,
    labelled_batches,
    load_batch,
    refuse_mixture,
    trace_penalties,
    with_verdicts,
)
from calibration.analyses.sampling.draw import labels_per_trace
from calibration.errors import CalibrationError, InputError
from calibration.judge_calibration.label_planning import (
    FEWEST_LABELS,
    ScoreSpread,
    measured_spread,
    planned_human_only,
    planned_post_stratified,
    traces_needed,
    worst_spread,
)
from calibration.judge_calibration.post_stratification import Estimand
from calibration.judge_calibration.reviewer_error import (
    OVERLAP_MIN,
    planned_two_phase,
    two_phase,
)
from calibration.judge_calibration.samples import production_sums
from calibration.judge_calibration.strata import Gain, effective_gain, verdict_strata
from calibration.statistics.estimate import Estimate
from calibration.store import Store
from calibration.success_rate.runs import class_credit, credit_rows, scores
from calibration.taxonomy import Taxonomy

UNREACHABLE = "no number of labels gives that half-width: import more traces or ask for less"

# Shares of traces labelled twice for which a plan says what they give.
OVERLAPS = (0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """Traces to label for a half-width; None where no number gives it or there is no judge."""

    half_width: float
    without_judge: int | None
    with_judge: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeWorth:
    """What the verdicts of a judge save.

    A labelled trace with the judge is worth `multiplier` = 1 / (1 - R^2) without; `equivalent` are
    the traces to label without the judge for the same precision. `saved` and the rest are what that
    is more in traces, labels, hours and money; below 0 where the judge costs.
    """

    multiplier: Estimate
    r_squared: float | None
    equivalent: float | None
    saved: float | None
    saved_labels: float | None
    saved_hours: float | None
    saved_cost: float | None


def needed_for(
    half_width: float,
    spread: ScoreSpread,
    production_counts: NDArray[np.int64] | None,
    verdict_values: NDArray[np.float64],
    population: int | None,
    confidence_level: float,
) -> Needed:
    """Return the number of traces that a half-width needs; without counts there is no judge."""
    with_judge = None
    if production_counts is not None:
        with_judge = traces_needed(
            half_width,
            spread,
            production_counts,
            verdict_values=verdict_values,
            population=population,
            confidence_level=confidence_level,
        )
    return Needed(
        half_width=half_width,
        without_judge=traces_needed(
            half_width, spread, population=population, confidence_level=confidence_level
        ),
        with_judge=with_judge,
    )


def judge_worth(
    gain: Gain, n: int, n_labels: int, seconds: float | None, hourly_rate: float | None
) -> JudgeWorth:
    """Return the savings from a judge on `n` traces with the planned labels per trace."""
    times = gain.multiplier.value
    saved = None if times is None else n * (times - 1)
    labels = None if saved is None else saved * n_labels / n
    hours = None if labels is None or seconds is None else labels * seconds / 3600
    return JudgeWorth(
        multiplier=gain.multiplier,
        r_squared=gain.r_squared,
        equivalent=None if times is None else n * times,
        saved=saved,
        saved_labels=labels,
        saved_hours=hours,
        saved_cost=None if hours is None or hourly_rate is None else hours * hourly_rate,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WithReviewers:
    """The corrected rate with the errors of reviewers, at a share of traces labelled twice.

    `half_width` is expected; of the `twice` traces `adjudicated` are expected to need a lead.
    """

    overlap: float
    twice: int
    n_labels: int
    adjudicated: float
    half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What `n` labelled traces can be expected to give.

    `human_only` and `corrected` are expected half-widths of the net rate (None without a judge),
    measured on `n_basis` labelled traces of `basis`; with 0 of them the worst case is assumed.
    `hours` are what all labels take at `seconds_per_label` of active time, `cost` at `hourly_rate`;
    None where nobody knows. `with_reviewers` is empty where it is not known how reviewers err.
    `notes` say what was assumed, in sentences.
    """

    n: int
    population: int
    labels_wanted: int
    overlap: float
    n_labels: int
    human_only: float
    corrected: float | None
    judge_id: str | None
    basis: str | None
    n_basis: int
    notes: tuple[str, ...]
    seconds_per_label: float | None
    hours: float | None
    hourly_rate: float | None
    cost: float | None
    worth: JudgeWorth | None
    with_reviewers: tuple[WithReviewers, ...]
    estimand: Estimand
    needed: Needed | None
    confidence_level: float
    simulated: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Basis:
    """The data behind a plan."""

    spread: ScoreSpread
    gain: Gain | None  # from the judge; None: unknown
    counts: NDArray[np.int64]
    values: NDArray[np.float64]
    judge_id: str | None
    reviewers: "_Reviewers | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reviewers:
    """How reviewers erred: variance of a correction, and share of shared traces they differ on."""

    variance_correction: float
    differ: float


def plan_batch(
    store: Store,
    *,
    n: int | None = None,
    half_width: float | None = None,
    labels_wanted: int = 2,
    overlap: float = 1.0,
    judge_id: str | None = None,
    batch_id: str | None = None,
    loaded: CalibrationData | None = None,
    seconds_per_label: float | None = None,
    hourly_rate: float | None = None,
    estimand: Estimand = "process",
    confidence_level: float = 0.95,
) -> Plan:
    """Plan a random batch from the spread of scores in an earlier one.

    Default basis: the batches of the rate, as `pooled_id`; without labels the worst case, with a
    note. `loaded` : the basis, where it is read already. With
    a `half_width` and no `n` the plan has the traces that it needs, with the judge if there is one.
    `estimand` : the rate of runs like these (``process``) or of these runs themselves
    (``these_runs``).
    """
    _check_asked(n, half_width, seconds_per_label, hourly_rate)
    every = store.production_traces()
    loaded = loaded or earlier_batch(store, batch_id)
    basis = _basis(store, loaded, every, judge_id)
    if estimand == "these_runs":  # the two-phase rate is one of runs like these
        basis = replace(basis, reviewers=None)
    spread, level = basis.spread, confidence_level
    these = len(every) if estimand == "these_runs" else None
    needed = None
    if half_width is not None:
        needed = needed_for(
            half_width, spread, basis.counts if basis.judge_id else None, basis.values, these, level
        )
    if n is None and needed is not None:
        n = needed.without_judge if basis.judge_id is None else needed.with_judge
    if n is None:
        raise CalibrationError(UNREACHABLE)
    n_labels = int(sum(labels_per_trace(n, labels_wanted=labels_wanted, overlap=overlap)))
    if n > len(every):
        raise CalibrationError(
            f"{n} traces were asked for and there are {len(every)}; plan fewer or import more"
        )
    if seconds_per_label is None and loaded is not None:
        seconds_per_label = median_seconds(loaded.labels)
    corrected = None
    if basis.judge_id is not None:
        corrected = planned_post_stratified(
            n,
            spread,
            basis.counts,
            verdict_values=basis.values,
            estimand=estimand,
            confidence_level=level,
        )
    hours = None if seconds_per_label is None else n_labels * seconds_per_label / 3600
    worth = None
    if basis.gain is not None:
        worth = judge_worth(basis.gain, n, n_labels, seconds_per_label, hourly_rate)
    return Plan(
        n=n,
        population=len(every),
        labels_wanted=labels_wanted,
        overlap=overlap,
        n_labels=n_labels,
        human_only=planned_human_only(n, spread, population=these, confidence_level=level),
        corrected=corrected,
        judge_id=basis.judge_id,
        basis=None if loaded is None or spread.assumed else loaded.provenance.batch_id,
        n_basis=spread.n,
        notes=_notes(basis, loaded, seconds_per_label),
        estimand=estimand,
        seconds_per_label=seconds_per_label,
        hours=hours,
        hourly_rate=hourly_rate,
        cost=None if hours is None or hourly_rate is None else hours * hourly_rate,
        worth=worth,
        with_reviewers=tuple(_with_reviewers(n, overlap, corrected, basis.reviewers, level)),
        needed=needed,
        confidence_level=level,
        simulated=bool(every["simulated"].any()),
    )


def _with_reviewers(
    n: int, overlap: float, corrected: float | None, known: _Reviewers | None, level: float
) -> Iterator[WithReviewers]:
    """Yield what a quarter, half, all and the planned share of the traces labelled twice give."""
    if corrected is None or known is None:
        return
    for share in sorted({*OVERLAPS, overlap}):
        labels = labels_per_trace(n, labels_wanted=2, overlap=share)
        twice = sum(labels) - n
        if twice >= OVERLAP_MIN:
            yield WithReviewers(
                overlap=share,
                twice=twice,
                n_labels=sum(labels),
                adjudicated=twice * known.differ,
                half_width=planned_two_phase(
                    n, twice, corrected, known.variance_correction, confidence_level=level
                ),
            )


def _check_asked(
    n: int | None,
    half_width: float | None,
    seconds_per_label: float | None,
    hourly_rate: float | None,
) -> None:
    if n is None and half_width is None:
        raise InputError("say how many traces (n) or how narrow (half-width) to plan for")
    if n is not None and n < 2:
        raise InputError(f"n must be at least 2, got {n}")
    if half_width is not None:
        check_half_width(half_width)
    for name, value in (("seconds per label", seconds_per_label), ("hourly rate", hourly_rate)):
        if value is not None and not 0 < value < float("inf"):
            raise InputError(f"{name} must be positive, got {value}")


def check_half_width(half_width: float) -> None:
    """Raise InputError unless a half-width lies strictly between 0 and .5."""
    if not 0 < half_width < 0.5:
        raise InputError(f"half-width must be in (0, .5), got {half_width}")


def median_seconds(labels: pd.DataFrame) -> float | None:
    """Return the median active seconds of labels whose time is known."""
    known = labels["seconds_active"].dropna()
    return None if known.empty else float(known.median())


def expected_half_widths(
    store: Store, loaded: CalibrationData, *, judge_id: str | None
) -> Callable[[int], float]:
    """Return the half-width by number of labelled traces of a batch, with or without a judge."""
    # The same plan for every `n`: the ratio of two half-widths is the gain from more labels.
    basis = _basis_of(store, loaded, loaded.traces, judge_id)

    def expected(n: int) -> float:
        if basis.judge_id is None:
            return planned_human_only(n, basis.spread)
        return planned_post_stratified(n, basis.spread, basis.counts, verdict_values=basis.values)

    return expected


def earlier_batch(store: Store, batch_id: str | None) -> CalibrationData | None:
    """Return the batches to measure on, as `pooled_id`; None without a label of a random sample."""
    if batch_id is None and not labelled_batches(store):
        return None
    return load_batch(store, batch_id)


def _basis(
    store: Store, loaded: CalibrationData | None, every: pd.DataFrame, judge_id: str | None
) -> _Basis:
    judge = None
    if judge_id is not None or not store.judge_frame().empty:
        judge = choose_judge(store, judge_id)
    if loaded is not None and len(loaded.labelled):
        return _basis_of(store, loaded, every, judge)
    taxonomy = store.taxonomy()
    values = _credit(taxonomy, every)
    codes: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    if judge is not None:
        verdicts = store.verdict_frame(judge).set_index("trace_id")["outcome"]
        classes = every["trace_id"].map(verdicts).map(taxonomy.places)
        codes = np.asarray(classes.fillna(len(taxonomy.names)), dtype=np.int64)
    counts = np.bincount(codes, minlength=values.size).astype(np.int64)
    return _Basis(
        spread=worst_spread(counts.size), gain=None, counts=counts, values=values, judge_id=judge
    )


def _basis_of(
    store: Store, loaded: CalibrationData, every: pd.DataFrame, judge_id: str | None
) -> _Basis:
    """Measure on a labelled batch how scores vary; `every` is the population to draw from."""
    taxonomy = loaded.taxonomy
    values = _credit(taxonomy, every)
    own: NDArray[np.int64] = np.zeros(len(loaded.labelled), dtype=np.int64)
    counts: NDArray[np.int64] = np.array([len(every)], dtype=np.int64)
    if judge_id is not None:
        refuse_mixture(store, judge_id, loaded)
        verdicts = store.verdict_frame(judge_id)
        loaded = with_verdicts(loaded, verdicts)
        own = loaded.verdicts[loaded.at]
        classes = every[["trace_id"]].merge(verdicts, on="trace_id", how="left")["outcome"]
        into = classes.map(taxonomy.places).fillna(len(taxonomy.names)).to_numpy(dtype=np.int64)
        counts = np.bincount(into, minlength=values.size).astype(np.int64)
    tasks = pd.factorize(loaded.labelled["task_key"])[0]
    clusters = tasks
    penalties = trace_penalties(loaded.labelled)
    credit = loaded.credit_of(loaded.labelled)
    score = scores(loaded.human, penalties, credit=credit)
    beyond = np.zeros((*credit.shape[:-1], 1))
    promised = np.maximum(
        0.0, class_credit(np.concatenate([credit, beyond], axis=-1), own) - penalties
    )
    spread = measured_spread(
        score,
        own,
        counts,
        predicted=promised if judge_id is not None else None,
        verdict_values=values if judge_id is not None else None,
        weights=loaded.weights,
        clusters=clusters,
    )
    gain = None
    if judge_id is not None:
        strata = verdict_strata(
            own, counts.astype(np.float64), values, otherwise=float(score.mean())
        )
        gain = effective_gain(score, own, strata=strata, weights=loaded.weights, clusters=clusters)
    return _Basis(
        spread=spread,
        gain=gain,
        counts=counts,
        values=values,
        judge_id=judge_id,
        reviewers=None if judge_id is None else _reviewers(loaded),
    )


def _reviewers(data: CalibrationData) -> _Reviewers | None:
    """Measure how reviewers err on the traces with two labels; None where that is not known."""
    sample = data.sample("production")
    if sample.overlap is None or data.open_disagreements or not data.overlap_random:
        return None
    tables, table = data.tables
    production = production_sums(
        data.verdicts,
        data.penalties,
        credit=tables,
        n_verdicts=len(data.verdict_names),
        tasks=data.tasks,
        table=table,
    )
    found = two_phase(sample, production).variance_correction
    if found is None:
        return None
    of_trace = data.labels.groupby("trace_id")["code"].nunique()
    shared = data.labelled["trace_id"][sample.overlap]
    return _Reviewers(variance_correction=found, differ=float((of_trace[shared] > 1).mean()))


def _credit(taxonomy: Taxonomy, every: pd.DataFrame) -> NDArray[np.float64]:
    """Return the credit of the verdicts: the mean over traces where workflows have their own."""
    credit = credit_rows(taxonomy.credit_table, every["workflow"].tolist())
    return np.array([*(credit if credit.ndim == 1 else credit.mean(axis=0)), np.nan])


def _notes(basis: _Basis, loaded: CalibrationData | None, seconds: float | None) -> tuple[str, ...]:
    spread, notes = basis.spread, []
    if spread.assumed:
        seen = 0 if loaded is None else len(loaded.labelled)
        why = (
            f"{seen} labelled traces are too few to measure how scores vary"
            if seen < FEWEST_LABELS
            else "all labelled traces score the same"
        )
        notes.append(f"{why}: the worst case is assumed (half of them score 1 and half 0)")
        if basis.judge_id is not None:
            notes.append(
                "the judge is assumed to add nothing; once labels exist, what it adds is measured"
            )
    elif loaded is not None:
        notes.append(
            f"measured on {spread.n} labelled traces of {loaded.batch.batch_id}; "
            "the new traces are assumed to vary as those do"
        )
        if spread.design_effect > 1:
            notes.append(
                f"tasks repeat, which inflates the variance {spread.design_effect:.2f} times; "
                "the new batch is assumed to repeat them as often"
            )
    if basis.judge_id is None:
        notes.append("no judge has verdicts, so there is no corrected rate to plan")
    if seconds is None:
        notes.append("no label has a time yet, so the hours are not known")
    if basis.judge_id is not None and basis.reviewers is None:
        notes.append(
            f"the errors of reviewers are not in these half-widths: label {OVERLAP_MIN} or more "
            "traces of a batch twice and adjudicate them to plan for them"
        )
    elif basis.judge_id is None:
        notes.append("second labels measure agreement; they do not narrow the interval")
    return tuple(notes)
