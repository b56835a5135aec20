"""Calibration data of a store: the batch, its consensus, and the verdicts of a judge."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.sampling.draw import is_sample, population, production_traces
from calibration.errors import CalibrationError, InputError, MixedDataError
from calibration.judge_calibration.samples import Design, LabelledSample
from calibration.records import NO_VERDICT, OUTCOMES, SOURCE_JUDGE
from calibration.store import Batch, Store
from calibration.success_rate.scoring import cost_penalties
from calibration.taxonomy import Taxonomy

# What a number depends on of each trace, beside labels and verdicts.
INPUT_COLUMNS = ["trace_id", "workflow", "task_key", "cost_usd", "units", "ceiling_usd"]


CODE = {name: position for position, name in enumerate(OUTCOMES)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The part of production that is looked at.

    What is left of a random sample is a random sample of what is left of production: every
    trace keeps the probability it was drawn with.

    Parameters
    ----------
    since, until : datetime or None
        First moment, and the one just after the last, in UTC. With one of them a trace that does
        not say when it was started is no part of it.
    workflow : str or None
        Traces of one workflow only.
    """

    since: datetime | None = None
    until: datetime | None = None
    workflow: str | None = None

    @property
    def dated(self) -> bool:
        """Whether the time of a trace decides."""
        return self.since is not None or self.until is not None

    def of(self, traces: pd.DataFrame) -> NDArray[np.bool_]:
        """Return which traces are part of it."""
        kept = self.of_workflow(traces)
        times = started(traces)
        if self.since is not None:
            kept = kept & (times >= self.since).to_numpy()
        if self.until is not None:
            kept = kept & (times < self.until).to_numpy()
        return kept

    def of_workflow(self, traces: pd.DataFrame) -> NDArray[np.bool_]:
        """Return which traces are of its workflow, whenever they were started."""
        if self.workflow is None:
            return np.ones(len(traces), dtype=bool)
        return np.asarray(traces["workflow"] == self.workflow, dtype=bool)


def started(traces: pd.DataFrame) -> pd.Series:
    """Return when traces were started, in UTC; NaT where they do not say."""
    return pd.to_datetime(traces["started_at"], utc=True)


WHOLE = Part()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledBatch:
    """A batch, its labels and the traces it was drawn from.

    `traces` are those of the batch itself where it is no random sample (`is_sample`): then
    nothing may be said about others.

    `human` has one row a labelled trace of the batch (`labelled`, in batch order) and one
    column a class: the adjudicated class where there is one, else the share of each class
    among its reviewers. `open_disagreements` counts traces on which reviewers differ and
    nobody has adjudicated; `skipped_ids` names traces that were skipped and never labelled;
    `exposed` counts labels that are left out because their reviewer had been shown before
    what others said of the trace. `weights` are the inverse inclusion probabilities of the
    labelled traces where these are not all equal, else None; `skipped_weights` those of the
    skipped ones. `undated` counts traces that a window of time leaves out because they do not say
    when they were started.
    """

    batch: Batch
    taxonomy: Taxonomy
    traces: pd.DataFrame
    labels: pd.DataFrame
    labelled: pd.DataFrame
    human: NDArray[np.float64]
    adjudicated: NDArray[np.bool_]
    weights: NDArray[np.float64] | None
    open_disagreements: int
    skipped_ids: tuple[str, ...]
    skipped_weights: NDArray[np.float64] | None
    unlabelled: int
    exposed: int
    later_traces: int
    simulated: bool
    undated: int = 0

    @property
    def skipped(self) -> int:
        """How many traces were skipped and never labelled."""
        return len(self.skipped_ids)

    @property
    def is_sample(self) -> bool:
        """Whether the batch was drawn at random from production."""
        return is_sample(self.batch)

    @property
    def reviewers(self) -> list[str]:
        """Everybody who labelled, in order of name."""
        return sorted(self.labels["reviewer_id"].unique())

    def weights_of_asked(self) -> NDArray[np.float64] | None:
        """Return the weights of the labelled traces and after them of the skipped ones."""
        if self.weights is None or self.skipped_weights is None:
            return None
        return np.concatenate([self.weights, self.skipped_weights])

    def codes(self) -> NDArray[np.int64]:
        """Return class codes, items x reviewers, -1 where a reviewer did not label."""
        wide = self.labels.pivot_table(
            index="trace_id", columns="reviewer_id", values="code", aggfunc="last"
        )
        wide = wide.reindex(index=list(self.labelled["trace_id"]), columns=self.reviewers)
        return wide.fillna(-1).to_numpy(dtype=np.int64)


def choose_batch(store: Store, batch_id: str | None, *, sample: bool = False) -> Batch:
    """Return the batch asked for, or the newest production batch.

    With `sample` the newest one that was drawn at random, if there is any.

    Raises
    ------
    InputError
        If there is no batch of that name.
    CalibrationError
        If nothing was asked for and there is no production batch.
    """
    batches = store.batches()
    if batch_id is not None:
        for batch in batches:
            if batch.batch_id == batch_id:
                return batch
        raise InputError(f"no batch {batch_id!r}; there are {[b.batch_id for b in batches]}")
    production = [batch for batch in batches if batch.purpose == "production"]
    drawn = [batch for batch in production if is_sample(batch)] if sample else []
    for batch in drawn or production:
        return batch
    raise CalibrationError("there is no batch yet; `asr sample --n 40 --seed 1` draws one")


def load_batch(
    store: Store, batch_id: str | None = None, *, sample: bool = True, part: Part = WHOLE
) -> LabelledBatch:
    """Read a batch with its labels, consensus and population, or a `part` of all that.

    What speaks about production needs a `sample`: a batch that was chosen otherwise is
    refused. What speaks about the traces of the batch alone does not.

    Raises
    ------
    InputError
        If there is no such batch, or no trace of the workflow of the `part`.
    MixedDataError
        If simulated and real traces or labels would enter one number.
    CalibrationError
        If it was drawn at random and does not say with what probability each trace.
    """
    batch = choose_batch(store, batch_id, sample=sample)
    if batch.purpose != "production":
        raise InputError(f"batch {batch.batch_id!r} is for {batch.purpose}, not for production")
    taxonomy = store.taxonomy()
    every = production_traces(store)
    items = store.batch_items(batch.batch_id)
    if sample or is_sample(batch):
        traces = population(batch, every)
    else:
        traces = every[every["trace_id"].isin(items["trace_id"])]
    whole, traces = traces, _kept(traces, part)
    items = items[items["trace_id"].isin(traces["trace_id"])].reset_index(drop=True)
    events = store.label_frame(batch.batch_id)
    events = events[events["trace_id"].isin(traces["trace_id"])]
    labels = events[events["kind"] == "label"]
    exposed = int(labels["exposed"].sum())
    labels = labels[~labels["exposed"]]
    labels = labels.sort_values(["trace_id", "reviewer_id"]).reset_index(drop=True)
    labels["code"] = labels["outcome"].map(CODE)
    labelled = items[items["trace_id"].isin(labels["trace_id"])].merge(
        traces.drop(columns="seq"), on="trace_id", how="left"
    )
    consensus = store.consensus_frame()
    consensus = consensus[consensus["trace_id"].isin(labelled["trace_id"])]
    human, adjudicated, open_disagreements = _human_side(labelled, labels, consensus)
    only_skipped = set(events.loc[events["kind"] == "skip", "trace_id"]) - set(labels["trace_id"])
    return LabelledBatch(
        batch=batch,
        taxonomy=taxonomy,
        traces=traces,
        labels=labels,
        labelled=labelled,
        human=human,
        open_disagreements=open_disagreements,
        adjudicated=adjudicated,
        weights=_weights(batch, items, list(labelled["trace_id"])),
        skipped_ids=tuple(sorted(only_skipped)),
        skipped_weights=_weights(batch, items, sorted(only_skipped)),
        unlabelled=len(items) - len(labelled) - len(only_skipped),
        exposed=exposed,
        later_traces=_later_traces(batch, every, part),
        simulated=_simulated(whole, labels, consensus),
        undated=int((part.of_workflow(whole) & started(whole).isna()).sum()) if part.dated else 0,
    )


def _kept(traces: pd.DataFrame, part: Part) -> pd.DataFrame:
    if part.workflow is not None and not part.of_workflow(traces).any():
        known = sorted(traces["workflow"].unique())
        raise InputError(f"no trace has the workflow {part.workflow!r:.80}; there are {known}")
    kept: pd.DataFrame = traces[part.of(traces)].reset_index(drop=True)
    return kept


def _weights(batch: Batch, items: pd.DataFrame, trace_ids: list[str]) -> NDArray[np.float64] | None:
    """Return inverse inclusion probabilities where a plain mean would be a mean of nothing."""
    if not is_sample(batch):
        return None
    drawn = items["inclusion_probability"]
    if drawn.isna().any():
        raise CalibrationError(
            f"batch {batch.batch_id!r} does not say with what probability {drawn.isna().sum()} of "
            "its traces were drawn; draw a batch with `asr sample`"
        )
    if drawn.empty or np.allclose(drawn, drawn.iloc[0], rtol=1e-9, atol=0):
        return None
    probability = items.set_index("trace_id")["inclusion_probability"].loc[trace_ids]
    return np.asarray(1 / probability.to_numpy(dtype=np.float64))


def _human_side(
    labelled: pd.DataFrame, labels: pd.DataFrame, consensus: pd.DataFrame
) -> tuple[NDArray[np.float64], NDArray[np.bool_], int]:
    """Return class shares per labelled trace, which are adjudicated, how many are open."""
    order = {trace_id: row for row, trace_id in enumerate(labelled["trace_id"])}
    counts = np.zeros((len(order), len(OUTCOMES)))
    rows = labels["trace_id"].map(order).to_numpy(dtype=np.int64)
    np.add.at(counts, (rows, labels["code"].to_numpy(dtype=np.int64)), 1.0)
    human = counts / counts.sum(axis=1, keepdims=True) if len(order) else counts
    disagree = (counts > 0).sum(axis=1) > 1
    at = consensus["trace_id"].map(order).to_numpy(dtype=np.int64)
    human[at] = 0.0
    human[at, consensus["outcome"].map(CODE).to_numpy(dtype=np.int64)] = 1.0
    adjudicated = np.zeros(len(order), dtype=bool)
    adjudicated[at] = True
    return human, adjudicated, int((disagree & ~adjudicated).sum())


def _later_traces(batch: Batch, every: pd.DataFrame, part: Part) -> int:
    """Count the traces that came in after the draw and would have been part of it."""
    if not is_sample(batch):
        return 0
    later = every[(every["seq"] > batch.design["last_seq"]) & part.of(every)]
    workflow = batch.design.get("workflow")
    return len(later) if workflow is None else int((later["workflow"] == workflow).sum())


def _simulated(*frames: pd.DataFrame) -> bool:
    found = {bool(value) for frame in frames for value in frame["simulated"]}
    if len(found) > 1:
        raise MixedDataError(
            "simulated and real rows would enter one number; keep the demo in a store of its own"
        )
    return found == {True}


def standing_in(
    verdicts: Sequence[Hashable],
    workflows: Sequence[Hashable],
    labelled: NDArray[np.bool_],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64] | None:
    """Return the weights of the labelled traces, raised for the skipped ones like them.

    Assumed: within a verdict and workflow whether a trace was skipped has nothing to do with its
    class. A cell of which nothing was labelled is stood for by the whole verdict; a verdict of
    which nothing was labelled by nobody.

    Parameters
    ----------
    verdicts, workflows : sequence, length n
        Of every trace that was asked about.
    labelled : bool array, shape (n,)
        Which of them were labelled.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities; equal ones when None.

    Returns
    -------
    float array, shape (n_labelled,), or None
        In the order of the labelled traces; `weights` as they were when none was skipped.

    Examples
    --------
    One of the two traces of workflow b was skipped:

    >>> standing_in([0, 0, 0], ["a", "b", "b"], np.array([True, True, False])).tolist()
    [1.0, 2.0]
    """
    if labelled.all():
        return weights
    weight = np.ones(labelled.size) if weights is None else np.asarray(weights, dtype=np.float64)
    cell = _numbered(list(zip(verdicts, workflows, strict=True)))
    whole = _numbered(list(verdicts))
    # First what a cell can carry itself, then the rest over its verdict.
    asked = np.bincount(cell, weights=weight)
    kept = np.bincount(cell, weights=weight * labelled)
    own = np.where(kept > 0, asked / np.where(kept > 0, kept, 1), 0.0)[cell] * labelled
    raised = weight * own
    total = np.bincount(whole, weights=weight)
    carried = np.bincount(whole, weights=raised)
    rest = np.where(carried > 0, total / np.where(carried > 0, carried, 1), 0.0)
    result: NDArray[np.float64] = (raised * rest[whole])[labelled]
    return result


def _numbered(names: list[Hashable]) -> NDArray[np.int64]:
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)


VERDICT_NAMES = (*OUTCOMES, NO_VERDICT)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPopulation:
    """Verdict codes and penalties of every trace that the estimate speaks about."""

    verdicts: NDArray[np.int64]
    penalties: NDArray[np.float64]
    row: dict[str, int]


def judged_population(loaded: LabelledBatch, verdicts: pd.DataFrame) -> JudgedPopulation:
    """Join the population with the verdicts; a trace without a valid one is `no_verdict`."""
    frame = loaded.traces.merge(verdicts[["trace_id", "outcome"]], on="trace_id", how="left")
    codes = np.asarray(frame["outcome"].map(CODE).fillna(len(OUTCOMES)), dtype=np.int64)
    return JudgedPopulation(
        verdicts=codes,
        penalties=trace_penalties(frame),
        row={trace_id: row for row, trace_id in enumerate(frame["trace_id"])},
    )


def trace_penalties(frame: pd.DataFrame) -> NDArray[np.float64]:
    """Return the penalty of each trace; without a cost or a ceiling it is zero (and counted)."""
    costs = known_costs(frame)
    ceilings = frame["ceiling_usd"].fillna(1.0).to_numpy(dtype=np.float64)
    return cost_penalties(costs, ceilings, frame["units"].to_numpy(dtype=np.float64))


def known_costs(frame: pd.DataFrame) -> NDArray[np.float64]:
    """Return the cost of each trace, NaN where it or the ceiling it is held to is missing."""
    costs = frame["cost_usd"].to_numpy(dtype=np.float64)
    return np.where(frame["ceiling_usd"].isna().to_numpy(), np.nan, costs)


def labelled_sample(
    loaded: LabelledBatch,
    population: JudgedPopulation,
    human: NDArray[np.float64],
    design: Design,
) -> LabelledSample:
    """Return the labelled traces that `human` has a class for."""
    at = labelled_rows(loaded, population)
    has_label = human.sum(axis=1) > 0
    clusters = pd.factorize(loaded.labelled["task_key"])[0]
    repeated = len(np.unique(clusters)) < len(clusters)
    weights = loaded.weights
    if design == "production":
        weights = _for_skipped(loaded, population, at)
    return LabelledSample(
        human=human[has_label],
        verdicts=population.verdicts[at][has_label],
        penalties=population.penalties[at][has_label],
        weights=None if weights is None else weights[has_label],
        clusters=clusters[has_label] if repeated else None,
    )


def _for_skipped(
    loaded: LabelledBatch, population: JudgedPopulation, at: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """Return weights by which labelled traces stand in for the skipped ones like them."""
    skipped = [population.row[trace_id] for trace_id in loaded.skipped_ids]
    asked = np.concatenate([at, np.array(skipped, dtype=np.int64)])
    workflow = dict(zip(loaded.traces["trace_id"], loaded.traces["workflow"], strict=True))
    names = [*loaded.labelled["trace_id"], *loaded.skipped_ids]
    return standing_in(
        population.verdicts[asked].tolist(),
        [workflow[trace_id] for trace_id in names],
        np.arange(asked.size) < at.size,
        loaded.weights_of_asked(),
    )


def labelled_rows(loaded: LabelledBatch, population: JudgedPopulation) -> NDArray[np.int64]:
    """Return the row in the population of each labelled trace."""
    return np.asarray(loaded.labelled["trace_id"].map(population.row), dtype=np.int64)


def human_frame(loaded: LabelledBatch) -> pd.DataFrame:
    """Return the human side of each labelled trace, for the fingerprint."""
    return pd.DataFrame(loaded.human).assign(
        trace_id=loaded.labelled["trace_id"].to_numpy(), adjudicated=loaded.adjudicated
    )


def drawn_frame(loaded: LabelledBatch) -> pd.DataFrame:
    """Return how probable the draw of each labelled trace was, for the fingerprint."""
    return loaded.labelled[["trace_id", "inclusion_probability"]]


def choose_judge(store: Store, judge_id: str | None) -> str:
    """Return the judge asked for, else the only one, else the grades of the files.

    Raises
    ------
    InputError
        If there is no such judge, or several and none was named.
    CalibrationError
        If the store holds no verdicts.
    """
    known = list(store.judge_frame()["judge_id"])
    if not known:
        raise CalibrationError(
            "the store holds no verdicts; import traces that carry a grade, or a verdict file with "
            "`asr verdicts FILE --judge NAME`"
        )
    if judge_id is not None:
        if judge_id in known or (judge_id == SOURCE_JUDGE and any(map(_is_source, known))):
            return judge_id
        raise InputError(f"no judge {judge_id!r}; there are {known}")
    if len(known) == 1:
        return str(known[0])
    if all(map(_is_source, known)):
        return SOURCE_JUDGE
    raise InputError(f"several judges have verdicts, name one with --judge: {known}")


def _is_source(judge_id: str) -> bool:
    return judge_id.startswith(SOURCE_JUDGE)


def refuse_mixture(store: Store, judge_id: str, loaded: LabelledBatch) -> None:
    """Refuse a simulated judge for real labels, and the other way round.

    Raises
    ------
    MixedDataError
        If one is simulated and the other is not.
    """
    judges = store.judge_frame()
    used = judges[
        judges["judge_id"].map(_is_source)
        if judge_id == SOURCE_JUDGE
        else judges["judge_id"] == judge_id
    ]
    if (used["simulated"] != loaded.simulated).any():
        raise MixedDataError(
            f"judge {judge_id!r} and the labels must be both simulated or both real"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """Labels and verdicts of the same traces.

    Parameters
    ----------
    loaded : LabelledBatch
    judge_id : str
    design : {"production", "reference"}
    population : JudgedPopulation
        Verdicts and penalties of every trace that the batch was drawn from.
    at : int array, shape (n_labelled,)
        Row of each labelled trace in the population.
    sample : LabelledSample
        The labelled traces as the calibration takes them; the code after the classes is
        ``no_verdict``.
    n_verdicts : int
    credit : float array, shape (n_classes,)
    """

    loaded: LabelledBatch
    judge_id: str
    design: Design
    population: JudgedPopulation
    at: NDArray[np.int64]
    sample: LabelledSample
    n_verdicts: int
    credit: NDArray[np.float64]


def read_judged(
    store: Store,
    batch_id: str | None,
    judge_id: str | None,
    *,
    design: Design = "production",
    sample: bool = True,
) -> Judged:
    """Read a batch with its labels and the first verdicts of a judge.

    What speaks about production needs a `sample`; what speaks about the labelled traces does not.

    Raises
    ------
    CalibrationError
        If nothing of the batch is labelled, or as `load_batch`.
    InputError
        As `choose_judge`.
    """
    batch = choose_batch(store, batch_id, sample=True)
    loaded = load_batch(store, batch.batch_id, sample=sample)
    chosen = choose_judge(store, judge_id)
    refuse_mixture(store, chosen, loaded)
    if loaded.labelled.empty:
        raise CalibrationError(
            f"batch {loaded.batch.batch_id!r} has no labels yet; label it on the Label page"
        )
    population = judged_population(loaded, store.verdict_frame(chosen))
    return Judged(
        loaded=loaded,
        judge_id=chosen,
        design=design,
        population=population,
        at=np.asarray(loaded.labelled["trace_id"].map(population.row), dtype=np.int64),
        sample=labelled_sample(loaded, population, loaded.human, design),
        n_verdicts=len(OUTCOMES) + int((population.verdicts == len(OUTCOMES)).any()),
        credit=np.array([loaded.taxonomy.credit[name] for name in OUTCOMES]),
    )
