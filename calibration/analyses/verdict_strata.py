"""Strata of production by verdict and workflow, for drawing traces to label."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.labelled_batch import CODE
from calibration.records import NO_VERDICT, OUTCOMES

OTHER_WORKFLOWS = "other workflows"
VERDICT_OF = (*OUTCOMES, NO_VERDICT)
# A workflow stands alone within a verdict when its share of the draw is as large.
ALONE = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VerdictStrata:
    """Traces grouped by verdict, and within a verdict by workflow where there are enough.

    Parameters
    ----------
    names : tuple of (str, str or None)
        Verdict and workflow of each stratum; None for a verdict whose workflows stand together,
        `OTHER_WORKFLOWS` for those that are left where some stand alone.
    parent : int array, shape (n_strata,)
        Number of the verdict of each stratum, among the verdicts that occur.
    of_trace : int array, shape (n_traces,)
        Stratum of each trace.
    """

    names: tuple[tuple[str, str | None], ...]
    parent: NDArray[np.int64]
    of_trace: NDArray[np.int64]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Traces in each stratum."""
        return np.bincount(self.of_trace, minlength=len(self.names)).astype(np.int64)


def verdict_codes(traces: pd.DataFrame, verdicts: pd.DataFrame) -> NDArray[np.int64]:
    """Return the code of the verdict on each trace; one without a valid verdict has the last."""
    said = traces["trace_id"].map(verdicts.set_index("trace_id")["outcome"]).map(CODE)
    return np.asarray(said.fillna(len(OUTCOMES)), dtype=np.int64)


def verdict_strata(
    verdict: NDArray[np.int64], workflow: NDArray[np.str_], *, n: int
) -> VerdictStrata:
    """Group traces for a draw of `n`.

    Examples
    --------
    Of ten labels one workflow would get eight, the other two:

    >>> workflow = np.array(["flights"] * 80 + ["hotels"] * 20)
    >>> verdict_strata(np.zeros(100, dtype=np.int64), workflow, n=10).names
    (('complete', 'flights'), ('complete', 'other workflows'))
    """
    flows, flow = np.unique(workflow, return_inverse=True)
    table = np.zeros((len(VERDICT_OF), flows.size), dtype=np.int64)
    np.add.at(table, (verdict, flow), 1)
    alone = table * n >= ALONE * verdict.size
    number = np.full(table.shape, -1, dtype=np.int64)
    names: list[tuple[str, str | None]] = []
    parents: list[int] = []
    for place, code in enumerate(np.flatnonzero(table.sum(axis=1)).tolist()):
        for at in np.flatnonzero(alone[code]).tolist():
            number[code, at] = len(names)
            names.append((VERDICT_OF[code], str(flows[at]) if flows.size > 1 else None))
        rest = (table[code] > 0) & ~alone[code]
        if rest.any():
            number[code, rest] = len(names)
            names.append((VERDICT_OF[code], OTHER_WORKFLOWS if alone[code].any() else None))
        parents += [place] * (len(names) - len(parents))
    return VerdictStrata(
        names=tuple(names),
        parent=np.array(parents, dtype=np.int64),
        of_trace=number[verdict, flow],
    )
