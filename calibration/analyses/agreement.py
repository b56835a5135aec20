"""Can these labels be trusted? Agreement between the reviewers of one batch."""

from dataclasses import dataclass
from typing import Any

from calibration.agreement.coefficients import Agreement, agreement
from calibration.agreement.pairs import PairAgreement, pairwise_agreement
from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.labelled_batch import LabelledBatch, load_batch
from calibration.records import OUTCOMES
from calibration.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementAnalysis:
    """Agreement of the reviewers of a batch, over all and pair by pair.

    `disputed` lists the traces on which reviewers differ, with each reviewer's class; `exposed`
    counts labels left out because they were not blind any more.
    """

    batch_id: str
    reviewers: tuple[str, ...]
    classes: tuple[str, ...]
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
