"""Can these labels be trusted? Agreement between the reviewers of one batch."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.agreement.chance_corrected import GWET_AC, KRIPPENDORFF_ALPHA, estimate
from calibration.agreement.coefficients import Agreement, agreement
from calibration.agreement.counts import count_patterns
from calibration.agreement.pairs import PairAgreement, pairwise_agreement
from calibration.agreement.panel import agreement_panel
from calibration.agreement.recoding import at_node
from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.labelled_batch import LabelledBatch, load_batch
from calibration.estimates import Estimate
from calibration.records import OUTCOMES
from calibration.store import Store
from calibration.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAgreement:
    """Agreement on the answers at one question, of ratings whose path comes to it.

    `n_items` counts the traces on which two or more ratings arrive: the deeper the question,
    the fewer and the more alike they are.
    """

    alpha: Estimate
    ac1: Estimate
    n_items: int
    n_ratings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementAnalysis:
    """Agreement of the reviewers of a batch, over all and pair by pair.

    `disputed` lists the traces on which reviewers differ, with each reviewer's class; `exposed`
    counts labels left out because they were not blind any more.
    """

    batch_id: str
    reviewers: tuple[str, ...]
    classes: tuple[str, ...]
    coefficients: dict[str, Estimate]
    nodes: dict[str, NodeAgreement]
    overall: Agreement
    pairs: tuple[PairAgreement, ...]
    disputed: tuple[dict[str, Any], ...]
    exposed: int
    simulated: bool
    is_sample: bool
    taxonomy_version: str
    taxonomy_fingerprint: str
    fingerprint: str


def analyse_agreement(
    store: Store, batch_id: str | None = None, *, confidence_level: float = 0.95
) -> AgreementAnalysis:
    """Measure agreement on the traces that two or more reviewers labelled.

    Inference is to traces like these; the reviewers are taken as they are. A batch of traces
    that were chosen by filters speaks about those traces only (`is_sample` is False).
    """
    loaded = load_batch(store, batch_id, sample=False)
    return agreement_of(loaded, confidence_level=confidence_level)


def agreement_of(loaded: LabelledBatch, *, confidence_level: float = 0.95) -> AgreementAnalysis:
    """Measure agreement in a batch that is already read."""
    codes = loaded.codes()
    reviewers = loaded.reviewers
    disputed = tuple(
        {
            "trace_id": trace_id,
            "labels": {
                reviewers[column]: OUTCOMES[code] for column, code in enumerate(row) if code >= 0
            },
        }
        for trace_id, row in zip(loaded.labelled["trace_id"], codes.tolist(), strict=True)
        if len({code for code in row if code >= 0}) > 1
    )
    return AgreementAnalysis(
        batch_id=loaded.batch.batch_id,
        reviewers=tuple(reviewers),
        classes=OUTCOMES,
        coefficients=agreement_panel(
            codes, n_classes=len(OUTCOMES), confidence_level=confidence_level
        ),
        nodes=_per_node(codes, loaded.taxonomy, confidence_level),
        overall=agreement(codes, n_classes=len(OUTCOMES), confidence_level=confidence_level),
        pairs=pairwise_agreement(codes, n_classes=len(OUTCOMES), confidence_level=confidence_level),
        disputed=disputed,
        exposed=loaded.exposed,
        simulated=loaded.simulated,
        is_sample=loaded.is_sample,
        taxonomy_version=loaded.taxonomy.version,
        taxonomy_fingerprint=loaded.taxonomy.fingerprint,
        fingerprint=fingerprint(
            taxonomy=loaded.taxonomy.fingerprint,
            settings={"kind": "agreement", "confidence_level": confidence_level},
            labels=loaded.labels[["trace_id", "reviewer_id", "outcome"]],
        ),
    )


def _per_node(
    codes: NDArray[np.int64], taxonomy: Taxonomy, confidence_level: float
) -> dict[str, NodeAgreement]:
    found = {}
    for node in taxonomy.nodes:
        answers = at_node(codes, node=node.id, taxonomy=taxonomy, classes=OUTCOMES)
        patterns = count_patterns(answers, n_classes=2)
        pairable = patterns.pairable()
        found[node.id] = NodeAgreement(
            alpha=estimate(KRIPPENDORFF_ALPHA, patterns, confidence_level=confidence_level),
            ac1=estimate(GWET_AC, patterns, confidence_level=confidence_level),
            n_items=pairable.n_items,
            n_ratings=pairable.n_ratings,
        )
    return found
