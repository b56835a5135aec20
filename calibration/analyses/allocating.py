"""Draw a batch over strata of verdict and workflow, with the probability of each trace recorded."""

from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.judge import choose_judge, refuse_mixture
from calibration.analyses.judged_population import trace_penalties
from calibration.analyses.labelled_batch import LabelledBatch
from calibration.analyses.planning import earlier_batch
from calibration.analyses.sampling import (
    design_of,
    draw_within,
    drawn_from,
    labels_per_trace,
    shuffled_labels,
    token_of,
)
from calibration.analyses.verdict_strata import VerdictStrata, verdict_codes, verdict_strata
from calibration.correction.allocation import allocate, fewest, stratum_sds
from calibration.correction.planning import FEWEST_LABELS
from calibration.errors import CalibrationError, InputError
from calibration.metrics.score import scores
from calibration.records import OUTCOMES
from calibration.store import Batch, Store

Allocation = Literal["proportional", "neyman"]
ALLOCATIONS: tuple[Allocation, ...] = ("proportional", "neyman")


def draw_allocated(
    store: Store,
    *,
    n: int,
    seed: int,
    allocation: Allocation,
    judge_id: str | None = None,
    basis_batch: str | None = None,
    workflow: str | None = None,
    labels_wanted: int = 2,
    overlap: float = 1.0,
    once: bool = False,
    certificate: str | None = None,
) -> Batch:
    """Draw `n` traces at random within strata of verdict x workflow.

    Every stratum gets at least two traces, so every trace had a chance; n_h / N_h of its stratum
    is stored with it. With ``neyman`` the standard deviations of the scores come from earlier
    labels, those of `basis_batch` or of a recent batch. The order is random over all that was
    drawn: of the first m traces each stratum holds m n_h / n on average, so when labelling stops
    early the probabilities are still in the same proportion and the weights still right.

    Raises
    ------
    InputError
        If a number is none, the allocation or the judge is unknown.
    CalibrationError
        If there are fewer traces, too few for the strata, or too few earlier labels for
        ``neyman``.
    """
    if allocation not in ALLOCATIONS:
        raise InputError(f"allocation must be one of {', '.join(ALLOCATIONS)}, got {allocation!r}")
    if n < 1:
        raise InputError(f"n must be at least 1, got {n}")
    frame = drawn_from(store, seed=seed, workflow=workflow)
    judge = choose_judge(store, judge_id)
    verdicts = store.verdict_frame(judge)
    strata = verdict_strata(
        verdict_codes(frame, verdicts), frame["workflow"].to_numpy(dtype=str), n=n
    )
    if n > len(frame):
        raise CalibrationError(
            f"{n} traces were asked for and there are {len(frame)}; draw fewer or import more"
        )
    least = int(fewest(strata.counts, n).sum())
    if n < least:
        raise CalibrationError(
            f"{n} traces are too few for {len(strata.names)} strata of verdict and workflow; "
            f"draw {least} or more, or a plain random sample without --allocate"
        )
    sds, basis = None, None
    if allocation == "neyman":
        basis = _basis(store, basis_batch, judge)
        sds = _spread(basis, frame, strata, verdicts)
    drawn = allocate(strata.counts, n, sds=sds)
    return store_stratified(
        store,
        frame,
        strata.of_trace,
        drawn,
        design={
            "kind": f"{allocation} allocation over verdict x workflow, weighted",
            "allocation": allocation,
            "judge": judge,
            "n": n,
            **design_of(frame, seed=seed, workflow=workflow),
            "overlap": overlap,
            "basis": None if basis is None else basis.batch.batch_id,
            "strata": _described(strata, drawn, sds),
        },
        seed=seed,
        labels_wanted=labels_wanted,
        overlap=overlap,
        once=once,
        certificate=certificate,
    )


def store_stratified(
    store: Store,
    frame: pd.DataFrame,
    of_trace: NDArray[np.int64],
    drawn: NDArray[np.int64],
    *,
    design: dict[str, object],
    seed: int,
    labels_wanted: int,
    overlap: float = 1.0,
    once: bool = False,
    certificate: str | None = None,
) -> Batch:
    """Draw `drawn` traces of each stratum at random and store them in random order."""
    chosen = draw_within(of_trace, drawn, seed=seed)
    probability = drawn / np.bincount(of_trace, minlength=drawn.size)
    labels = labels_per_trace(chosen.size, labels_wanted=labels_wanted, overlap=overlap)
    return store.add_batch(
        purpose="production",
        trace_ids=frame["trace_id"].to_numpy(dtype=str)[chosen].tolist(),
        item_probabilities=probability[of_trace[chosen]].tolist(),
        item_strata=of_trace[chosen].tolist(),
        labels_wanted=max(labels),
        item_labels=shuffled_labels(labels, seed=seed),
        design=design,
        token=token_of(design, labels_wanted) if once else None,
        certificate=certificate,
    )


def _basis(store: Store, batch_id: str | None, judge: str) -> LabelledBatch:
    """Return the labels that say how scores vary in each stratum."""
    loaded = earlier_batch(store, batch_id)
    seen = 0 if loaded is None else len(loaded.labelled)
    if loaded is None or seen < FEWEST_LABELS:
        raise CalibrationError(
            f"neyman needs to know how scores vary, and {seen} labelled traces of a random batch "
            f"are too few; label {FEWEST_LABELS} or more first, or draw with "
            "`--allocate proportional`"
        )
    refuse_mixture(store, judge, loaded)
    return loaded


def _spread(
    loaded: LabelledBatch, frame: pd.DataFrame, strata: VerdictStrata, verdicts: pd.DataFrame
) -> NDArray[np.float64]:
    credit = tuple(loaded.taxonomy.credit[name] for name in OUTCOMES)
    score = scores(loaded.human, trace_penalties(loaded.labelled), credit=credit)
    row = {trace_id: place for place, trace_id in enumerate(frame["trace_id"])}
    at = loaded.labelled["trace_id"].map(row)
    there = at.notna().to_numpy()
    return stratum_sds(
        score[there],
        strata.of_trace[at[there].to_numpy(dtype=np.int64)],
        strata.parent,
        weights=None if loaded.weights is None else loaded.weights[there],
    )


def _described(
    strata: VerdictStrata, drawn: NDArray[np.int64], sds: NDArray[np.float64] | None
) -> list[dict[str, object]]:
    """Return each stratum as the design records it, in the order of its numbers."""
    return [
        {
            "verdict": verdict,
            "workflow": workflow,
            "population": int(size),
            "n": int(n),
            "inclusion_probability": float(n / size),
            "sd": None if sds is None else float(sds[number]),
        }
        for number, ((verdict, workflow), size, n) in enumerate(
            zip(strata.names, strata.counts, drawn, strict=True)
        )
    ]
