"""The labelled traces on which judge and humans differ, with the reasons of both."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from calibration.analyses.evidence.data import BothSides
from calibration.analyses.evidence.from_store import LabelledBatch

# Shares of the reviewers are sums of 1/m.
ALL = 1 - 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What one reviewer said of a trace."""

    reviewer: str
    outcome: str
    rationale: str | None
    evidence: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A labelled trace on which not every human agrees with the verdict, both sides.

    Parameters
    ----------
    human : dict of str to float
        Share of each class: one class where it is adjudicated.
    question : str or None
        Where the ways of the verdict and of the humans' (most voted other) class part; None for a
        verdict that is no class.
    credit_difference : float or None
        Credit of the verdict less the human one; None for a verdict that is no class.
    weight : float
        What the trace stands for in the corrected rate: N_k / (N n_k) of its verdict, with unequal
        weights N_k / N of its part in them.
    moves : float or None
        |credit difference| x weight: what the corrected rate would change were the judge right.
    """

    trace_id: str
    workflow: str
    agent: str
    verdict: str
    human: dict[str, float]
    adjudicated: bool
    labels: tuple[Said, ...]
    reason: str | None
    evidence: tuple[dict[str, str], ...]
    question: str | None
    credit_difference: float | None
    weight: float
    moves: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Where a labelled trace comes from, and what both sides said of it beside the class."""

    trace_id: str
    workflow: str
    agent: str
    adjudicated: bool
    labels: tuple[Said, ...]
    reason: str | None
    evidence: tuple[dict[str, str], ...] = ()


def disagreements(
    sides: BothSides,
    heard: Callable[[int], Heard],
    *,
    judged: ArrayLike,
    parting: Sequence[Sequence[str | None]] | None,
) -> tuple[Disagreement, ...]:
    """List the traces on which not every human agrees with the verdict, what moves most first.

    Parameters
    ----------
    sides : BothSides
    heard : callable
        Gives what was said of the labelled trace in a row.
    judged : array-like of int, shape (n_verdicts,)
        Judged traces by verdict, the labelled ones included.
    parting : sequence of sequence of str or None, shape (n_classes, n_classes), optional
        From `parting_questions`.
    """
    human, verdicts, k = sides.sample.human, sides.sample.verdicts, len(sides.classes)
    weights = np.ones(len(verdicts)) if sides.sample.weights is None else sides.sample.weights
    counts = np.asarray(judged, dtype=np.float64)
    of_labels = np.bincount(verdicts, weights=weights, minlength=counts.size)
    said_by_human = np.where(verdicts < k, human[np.arange(len(human)), verdicts % k], 0.0)
    listed = []
    for row in np.flatnonzero(said_by_human < ALL).tolist():
        verdict, shares = int(verdicts[row]), human[row]
        difference, question = None, None
        if verdict < k:
            difference = float(sides.credit[verdict] - shares @ sides.credit)
            others = shares.copy()
            others[verdict] = 0
            question = None if parting is None else parting[int(others.argmax())][verdict]
        weight = float(counts[verdict] / counts.sum() * weights[row] / of_labels[verdict])
        of = heard(row)
        listed.append(
            Disagreement(
                trace_id=of.trace_id,
                workflow=of.workflow,
                agent=of.agent,
                verdict=sides.verdict_names[verdict],
                human={n: float(s) for n, s in zip(sides.classes, shares, strict=True) if s > 0},
                adjudicated=of.adjudicated,
                labels=of.labels,
                reason=of.reason,
                evidence=of.evidence,
                question=question,
                credit_difference=difference,
                weight=weight,
                moves=None if difference is None else abs(difference) * weight,
            )
        )
    # Rounded: which of several that move the same comes first is not left to rounding errors.
    moved = {d.trace_id: 1.0 if d.moves is None else -round(d.moves, 12) for d in listed}
    return tuple(sorted(listed, key=lambda d: (moved[d.trace_id], d.trace_id)))


def heard_in_store(
    loaded: LabelledBatch, samples: pd.DataFrame, groups: Mapping[str, NDArray[np.str_]]
) -> Callable[[int], Heard]:
    """Return what was said of each labelled trace of a batch.

    `samples` are the verdicts of the judge with their reasons, from `Store.verdict_samples`.
    """
    said = said_of(loaded.labels)
    first = samples.drop_duplicates("trace_id").set_index("trace_id")
    names = loaded.labelled["trace_id"].tolist()

    def heard(row: int) -> Heard:
        trace_id = names[row]
        return Heard(
            trace_id=trace_id,
            workflow=str(groups["workflow"][row]),
            agent=str(groups["agent"][row]),
            adjudicated=bool(loaded.adjudicated[row]),
            labels=tuple(said.get(trace_id, ())),
            reason=text_at(first, trace_id, "reason"),
            evidence=quotes_in(text_at(first, trace_id, "evidence")),
        )

    return heard


def said_of(labels: pd.DataFrame) -> dict[str, list[Said]]:
    """Return what each reviewer said, by trace."""
    found: dict[str, list[Said]] = {}
    columns = ["trace_id", "reviewer_id", "outcome", "rationale", "evidence"]
    for trace_id, who, outcome, why, quotes in labels[columns].itertuples(index=False):
        found.setdefault(trace_id, []).append(
            Said(
                reviewer=who,
                outcome=outcome,
                rationale=why if isinstance(why, str) else None,
                evidence=quotes_in(quotes),
            )
        )
    return found


def text_at(frame: pd.DataFrame, trace_id: str, column: str) -> str | None:
    """Return a text of a frame whose index are traces; None where it is missing."""
    value: Any = frame[column].get(trace_id)
    return value if isinstance(value, str) else None


def quotes_in(text: Any) -> tuple[dict[str, str], ...]:
    """Return evidence from its JSON."""
    return tuple(json.loads(text)) if isinstance(text, str) else ()
