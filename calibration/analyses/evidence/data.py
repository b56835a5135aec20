"""Labelled traces with the labels and the verdict of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.judge_calibration.samples import LabelledSample

UNKNOWN = "unknown"

BY = ("agent", "workflow", "model", "week")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BothSides:
    """Labelled traces with both sides of them.

    Parameters
    ----------
    classes, verdict_names : tuple of str
        The verdicts have the classes first.
    credit : float array, shape (n_classes,)
    sample : LabelledSample
        As the calibration takes it: human side, verdicts, weights and tasks of n traces.
    groups : mapping of str to str array, shape (n,)
        By kind of group; what a trace does not say is `UNKNOWN`.
    sizes : mapping of str to float array, shape (n,)
        By what is counted; NaN where it is not known.
    panel : int array, shape (n_shared, n_reviewers)
        Class that each reviewer gave, -1 for none, on the traces that are compared with the humans
        among themselves.
    panel_verdicts : int array, shape (n_shared,)
    grades : int array, shape (n,)
        From 1 to 5, 0 where the judge gave none; only beside our own classes.
    """

    classes: tuple[str, ...]
    verdict_names: tuple[str, ...]
    credit: NDArray[np.float64]
    sample: LabelledSample
    groups: Mapping[str, NDArray[np.str_]] = field(default_factory=dict)
    sizes: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    panel: NDArray[np.int64] | None = None
    panel_verdicts: NDArray[np.int64] | None = None
    grades: NDArray[np.int64] | None = None

    @property
    def has_class(self) -> NDArray[np.bool_]:
        """Which labelled traces have a verdict that is a class."""
        return self.sample.verdicts < len(self.classes)

    def gaps(self, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the verdict's credit less the human one, of traces whose verdict is a class."""
        gap: NDArray[np.float64] = self.said(rows) - self.sample.human[rows] @ self.credit
        return gap

    def said(self, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the credit of the verdict, of traces whose verdict is a class."""
        credit: NDArray[np.float64] = self.credit[self.sample.verdicts[rows]]
        return credit

    def weights(self, rows: NDArray[np.bool_]) -> NDArray[np.float64] | None:
        """Return the inverse inclusion probabilities of some traces; None: all are equal."""
        given = self.sample.weights
        return None if given is None else np.asarray(given, dtype=np.float64)[rows]

    def tasks(self, rows: NDArray[np.bool_]) -> NDArray[np.generic] | None:
        """Return the tasks of some traces; None: each has its own."""
        given = self.sample.clusters
        return None if given is None else given[rows]


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
