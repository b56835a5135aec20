"""Draw a batch stratified by verdict and workflow, with inclusion probabilities."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.evidence.data import CalibrationData
from calibration.analyses.evidence.from_store import (
    OTHER_WORKFLOWS,
    choose_judge,
    refuse_mixture,
    trace_penalties,
)
from calibration.analyses.sampling.draw import (
    SamplingDesign,
    draw_within,
    drawn_from,
    recorded_population,
    store_batch,
)
from calibration.analyses.sampling.planning import earlier_batch
from calibration.errors import CalibrationError, InputError
from calibration.judge_calibration.label_planning import (
    FEWEST_LABELS,
    allocate,
    fewest,
    stratum_sds,
)
from calibration.records import NO_VERDICT
from calibration.store import Batch, Store
from calibration.success_rate.runs import scores
from calibration.taxonomy import Taxonomy

# From this many drawn traces on a workflow is a stratum of its own within a verdict.
ALONE = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VerdictStrata:
    """Traces grouped by verdict, and within a verdict by workflow where there are enough."""

    names: tuple[tuple[str, str | None], ...]  # verdict, workflow (None: all)
    parent: NDArray[np.int64]  # verdict of each stratum, among those that occur
    of_trace: NDArray[np.int64]  # stratum of each trace

    @property
    def counts(self) -> NDArray[np.int64]:
        """Traces in each stratum."""
        return np.bincount(self.of_trace, minlength=len(self.names)).astype(np.int64)


def verdict_codes(
    traces: pd.DataFrame, verdicts: pd.DataFrame, taxonomy: Taxonomy
) -> NDArray[np.int64]:
    """Return the code of the verdict on each trace; without a valid verdict the last code."""
    outcomes = verdicts.set_index("trace_id")["outcome"]
    codes = traces["trace_id"].map(outcomes).map(taxonomy.places)
    return np.asarray(codes.fillna(len(taxonomy.names)), dtype=np.int64)


def verdict_strata(
    verdict: NDArray[np.int64], workflow: NDArray[np.str_], taxonomy: Taxonomy, *, n: int
) -> VerdictStrata:
    """Group traces for a draw of `n`.

    Examples
    --------
    Of ten labels one workflow would get eight, the other two:

    >>> from calibration.taxonomy import default_taxonomy
    >>> workflow = np.array(["flights"] * 80 + ["hotels"] * 20)
    >>> verdict = np.zeros(100, dtype=np.int64)
    >>> verdict_strata(verdict, workflow, default_taxonomy(), n=10).names
    (('complete', 'flights'), ('complete', 'other workflows'))
    """
    flows, flow = np.unique(workflow, return_inverse=True)
    verdicts = (*taxonomy.names, NO_VERDICT)
    table = np.zeros((len(verdicts), flows.size), dtype=np.int64)
    np.add.at(table, (verdict, flow), 1)
    alone = table * n >= ALONE * verdict.size
    number = np.full(table.shape, -1, dtype=np.int64)
    names: list[tuple[str, str | None]] = []
    parents: list[int] = []
    for place, code in enumerate(np.flatnonzero(table.sum(axis=1)).tolist()):
        for at in np.flatnonzero(alone[code]).tolist():
            number[code, at] = len(names)
            names.append((verdicts[code], str(flows[at]) if flows.size > 1 else None))
        rest = (table[code] > 0) & ~alone[code]
        if rest.any():
            number[code, rest] = len(names)
            names.append((verdicts[code], OTHER_WORKFLOWS if alone[code].any() else None))
        parents += [place] * (len(names) - len(parents))
    return VerdictStrata(
        names=tuple(names),
        parent=np.array(parents, dtype=np.int64),
        of_trace=number[verdict, flow],
    )


Allocation = Literal["proportional", "neyman"]
ALLOCATIONS: tuple[Allocation, ...] = ("proportional", "neyman")


def draw_allocated(
    store: Store,
    design: SamplingDesign,
    *,
    n: int,
    allocation: Allocation,
    judge_id: str | None = None,
    basis_batch: str | None = None,
) -> Batch:
    """Draw `n` traces at random within strata of verdict x workflow.

    Every stratum gets at least two traces; the inclusion probability n_h / N_h is stored. For
    ``neyman`` the standard deviations of the scores come from the labels of `basis_batch`, by
    default those of the rate.
    """
    if allocation not in ALLOCATIONS:
        raise InputError(f"allocation must be one of {', '.join(ALLOCATIONS)}, got {allocation!r}")
    frame = drawn_from(store, design, n=n)
    judge = choose_judge(store, judge_id)
    verdicts = store.verdict_frame(judge)
    taxonomy = store.taxonomy()
    strata = verdict_strata(
        verdict_codes(frame, verdicts, taxonomy),
        frame["workflow"].to_numpy(dtype=str),
        taxonomy,
        n=n,
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
    recorded: dict[str, object] = {
        "kind": f"{allocation} allocation over verdict x workflow, weighted",
        "allocation": allocation,
        "judge": judge,
        "n": n,
        **recorded_population(frame, design),
        "overlap": design.overlap,
        "basis": None if basis is None else basis.provenance.batch_id,
        "strata": _described(strata, drawn, sds),
    }
    return store_stratified(store, design, frame, strata.of_trace, drawn, recorded)


def store_stratified(
    store: Store,
    design: SamplingDesign,
    frame: pd.DataFrame,
    of_trace: NDArray[np.int64],
    drawn: NDArray[np.int64],
    recorded: dict[str, object],
) -> Batch:
    """Draw `drawn` traces of each stratum at random and store them in random order."""
    chosen = draw_within(of_trace, drawn, seed=design.seed)
    probability = drawn / np.bincount(of_trace, minlength=drawn.size)
    strata = of_trace[chosen]
    return store_batch(
        store,
        design,
        frame["trace_id"].to_numpy(dtype=str)[chosen].tolist(),
        recorded,
        probabilities=probability[strata].tolist(),
        strata=strata.tolist(),
    )


def _basis(store: Store, batch_id: str | None, judge: str) -> CalibrationData:
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
    loaded: CalibrationData, frame: pd.DataFrame, strata: VerdictStrata, verdicts: pd.DataFrame
) -> NDArray[np.float64]:
    penalties = trace_penalties(loaded.labelled)
    score = scores(loaded.human, penalties, credit=loaded.credit_of(loaded.labelled))
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
