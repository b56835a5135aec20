"""What a judge is held against: the population with its verdicts, and the labelled traces of it."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.labelled_batch import CODE, LabelledBatch
from calibration.analyses.nonresponse import standing_in
from calibration.correction.calibrate import Design, LabelledSample
from calibration.metrics.score import cost_penalties
from calibration.records import NO_VERDICT, OUTCOMES

VERDICT_NAMES = (*OUTCOMES, NO_VERDICT)
# What a number depends on of each trace, beside labels and verdicts.
INPUT_COLUMNS = ["trace_id", "workflow", "task_key", "cost_usd", "units", "ceiling_usd"]


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
