"""Agreement of the second pass with the canonical labels, before anything was settled."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from calibration.agreement.coefficients import (
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    PERCENT_AGREEMENT,
    estimate,
)
from calibration.agreement.ratings import answers_at, count_patterns, one_against_rest
from calibration.statistics.estimate import Estimate, IntArray
from calibration.taxonomy import Taxonomy
from reference_dataset.loader import ReferenceSet
from reference_dataset.records import DECISIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatAgreement:
    """Agreement of two readings: of the class, of one class against the rest, or at a node."""

    percent_agreement: Estimate
    alpha: Estimate
    ac1: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A trace on which the second reading differed, and how that was settled."""

    trace_id: str
    before: str
    second: str
    decision: str
    now: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatPass:
    """Agreement of the second pass with the labels of that time, and what became of the rest.

    `table` has the canonical class of that time in its rows, the second reading in its
    columns. `settled` counts the disagreements by decision; `repaired_agreed` are traces
    that were repaired although the classes agreed.
    """

    n_traces: int
    overall: RepeatAgreement
    classes: dict[str, RepeatAgreement]
    nodes: dict[str, RepeatAgreement]
    table: tuple[tuple[int, ...], ...]
    disagreements: tuple[Disagreement, ...]
    settled: dict[str, int]
    repaired_agreed: int


def repeat_pass(dataset: ReferenceSet, taxonomy: Taxonomy) -> RepeatPass | None:
    """Measure how far the second pass agreed with the labels it had not seen.

    The labels are taken as they were at the time: what was changed later because of the
    second pass counts as a disagreement. Both readings come from the authors, so this is an
    upper bound on what strangers will reach.

    Returns
    -------
    RepeatPass or None
        None for a set without a second pass.
    """
    ids = sorted(dataset.second_pass.keys() & dataset.labels.keys())
    if not ids:
        return None
    before = {
        trace_id: dataset.settlements[trace_id].before
        if trace_id in dataset.settlements
        else dataset.labels[trace_id].outcome
        for trace_id in ids
    }
    second = {trace_id: dataset.second_pass[trace_id].outcome for trace_id in ids}
    place, q = taxonomy.places, len(taxonomy.names)
    paths = taxonomy.paths(taxonomy.names)
    codes = np.array([[place[before[i]], place[second[i]]] for i in ids], dtype=np.int64)
    table = np.zeros((q, q), dtype=np.int64)
    np.add.at(table, (codes[:, 0], codes[:, 1]), 1)
    disagreements = tuple(
        _disagreement(dataset, trace_id, before[trace_id], second[trace_id])
        for trace_id in ids
        if before[trace_id] != second[trace_id]
    )
    decided = Counter(found.decision for found in disagreements)
    return RepeatPass(
        n_traces=len(ids),
        overall=_agreement(codes, q),
        classes={
            name: _agreement(one_against_rest(codes, class_code=k, n_classes=q), 2)
            for name, k in place.items()
        },
        nodes={
            node.id: _agreement(answers_at(codes, node=node.id, paths=paths), 2)
            for node in taxonomy.nodes
        },
        table=tuple(tuple(row) for row in table.tolist()),
        disagreements=disagreements,
        settled={name: decided[name] for name in (*DECISIONS, "open") if decided[name]},
        repaired_agreed=sum(
            dataset.settlements[trace_id].decision == "trace_repaired"
            for trace_id in ids
            if trace_id in dataset.settlements and before[trace_id] == second[trace_id]
        ),
    )


def _disagreement(dataset: ReferenceSet, trace_id: str, before: str, second: str) -> Disagreement:
    settlement = dataset.settlements.get(trace_id)
    return Disagreement(
        trace_id=trace_id,
        before=before,
        second=second,
        decision="open" if settlement is None else settlement.decision,
        now=dataset.labels[trace_id].outcome,
        why="" if settlement is None else settlement.why,
    )


def _agreement(codes: IntArray, n_classes: int) -> RepeatAgreement:
    patterns = count_patterns(codes, n_classes=n_classes)
    return RepeatAgreement(
        percent_agreement=estimate(PERCENT_AGREEMENT, patterns),
        alpha=estimate(KRIPPENDORFF_ALPHA, patterns),
        ac1=estimate(GWET_AC, patterns),
    )
