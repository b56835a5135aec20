"""The labelled traces on which judge and humans differ, with the reasons of both."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from calibration.agreement.recoding import parting_questions
from calibration.analyses.judge import VERDICT_NAMES
from calibration.analyses.judged import Judged, group_names
from calibration.records import OUTCOMES


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
        What the trace stands for in the corrected rate: N_k / (N n_k) of its verdict.
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


def disagreements(judged: Judged, samples: pd.DataFrame) -> tuple[Disagreement, ...]:
    """List the traces on which not every human agrees with the verdict, what moves most first.

    `samples` are the verdicts of the judge with their reasons, from `Store.verdict_samples`.
    """
    loaded, labelled = judged.loaded, judged.loaded.labelled
    said = said_of(loaded.labels)
    first = samples.drop_duplicates("trace_id").set_index("trace_id")
    parting = parting_questions(loaded.taxonomy.paths(OUTCOMES))
    of_production = np.bincount(judged.population.verdicts, minlength=judged.n_verdicts)
    of_labels = np.bincount(judged.verdicts, minlength=judged.n_verdicts)
    agents, workflows = group_names(labelled, "agent"), group_names(labelled, "workflow")
    listed = []
    for row, trace_id in enumerate(labelled["trace_id"].tolist()):
        verdict, human = int(judged.verdicts[row]), loaded.human[row]
        is_class = verdict < len(OUTCOMES)
        if is_class and human[verdict] == 1:
            continue
        difference, question = None, None
        if is_class:
            difference = float(judged.credit[verdict] - human @ judged.credit)
            others = human.copy()
            others[verdict] = 0
            question = parting[int(others.argmax())][verdict]
        weight = float(of_production[verdict] / of_production.sum() / of_labels[verdict])
        listed.append(
            Disagreement(
                trace_id=trace_id,
                workflow=str(workflows[row]),
                agent=str(agents[row]),
                verdict=VERDICT_NAMES[verdict],
                human={name: float(s) for name, s in zip(OUTCOMES, human, strict=True) if s > 0},
                adjudicated=bool(loaded.adjudicated[row]),
                labels=tuple(said.get(trace_id, ())),
                reason=text_at(first, trace_id, "reason"),
                evidence=quotes_in(text_at(first, trace_id, "evidence")),
                question=question,
                credit_difference=difference,
                weight=weight,
                moves=None if difference is None else abs(difference) * weight,
            )
        )
    return tuple(sorted(listed, key=lambda d: -1.0 if d.moves is None else d.moves, reverse=True))


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
