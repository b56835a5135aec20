"""A labelled batch joined with the verdicts of one judge: the input of the judge's diagnostics."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.analyses.judge import choose_judge, refuse_mixture
from calibration.analyses.judged_population import (
    JudgedPopulation,
    judged_population,
    labelled_sample,
)
from calibration.analyses.labelled_batch import LabelledBatch, choose_batch, load_batch
from calibration.correction.calibrate import Design, LabelledSample
from calibration.errors import CalibrationError
from calibration.records import OUTCOMES
from calibration.store import Store


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
