"""A labelled batch joined with the verdicts of one judge: the input of the judge's diagnostics."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.judge import (
    JudgedPopulation,
    choose_judge,
    judged_population,
    refuse_mixture,
)
from calibration.analyses.labelled_batch import LabelledBatch, choose_batch, load_batch
from calibration.errors import CalibrationError
from calibration.records import OUTCOMES
from calibration.store import Store

UNKNOWN = "unknown"
BY = ("agent", "workflow", "model", "week")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """Labels and verdicts of the same traces.

    Parameters
    ----------
    loaded : LabelledBatch
    judge_id : str
    population : JudgedPopulation
        Verdicts and penalties of every trace that the batch was drawn from.
    at : int array, shape (n_labelled,)
        Row of each labelled trace in the population.
    verdicts : int array, shape (n_labelled,)
        Verdict of each labelled trace; the code after the classes is ``no_verdict``.
    n_verdicts : int
    credit : float array, shape (n_classes,)
    """

    loaded: LabelledBatch
    judge_id: str
    population: JudgedPopulation
    at: NDArray[np.int64]
    verdicts: NDArray[np.int64]
    n_verdicts: int
    credit: NDArray[np.float64]

    @property
    def has_class(self) -> NDArray[np.bool_]:
        """Which labelled traces have a verdict that is a class."""
        return self.verdicts < len(OUTCOMES)

    @property
    def tasks(self) -> NDArray[np.int64]:
        """Number of the task of each labelled trace."""
        return np.asarray(pd.factorize(self.loaded.labelled["task_key"])[0], dtype=np.int64)

    def gaps(self) -> NDArray[np.float64]:
        """Return the verdict's credit less the human one, of the traces that have a class."""
        said = self.credit[self.verdicts[self.has_class]]
        gap: NDArray[np.float64] = said - self.loaded.human[self.has_class] @ self.credit
        return gap


def read_judged(
    store: Store, batch_id: str | None, judge_id: str | None, *, sample: bool = True
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
    at = np.asarray(loaded.labelled["trace_id"].map(population.row), dtype=np.int64)
    return Judged(
        loaded=loaded,
        judge_id=chosen,
        population=population,
        at=at,
        verdicts=population.verdicts[at],
        n_verdicts=len(OUTCOMES) + int((population.verdicts == len(OUTCOMES)).any()),
        credit=np.array([loaded.taxonomy.credit[name] for name in OUTCOMES]),
    )


def group_names(traces: pd.DataFrame, by: str) -> NDArray[np.str_]:
    """Return the group of each trace: its agent (model and version), workflow, model or ISO week.

    What the trace does not say is ``unknown``.
    """
    if by == "week":
        when = pd.to_datetime(traces["started_at"])
        names = when.dt.strftime("%G-W%V")
    elif by == "agent":
        version = traces["agent_version"].fillna("").astype(str)
        names = traces["model"].fillna(UNKNOWN).astype(str).str.cat(version, sep=" ").str.strip()
    else:
        names = traces[by]
    return names.fillna(UNKNOWN).to_numpy(dtype=str)
