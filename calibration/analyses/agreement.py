"""Can these labels be trusted? Agreement between the reviewers of one batch."""

from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.chance_corrected import (
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    KRIPPENDORFF_ORDINAL,
    PERCENT_AGREEMENT,
    estimate,
)
from calibration.agreement.clusters import clusters_of, estimate_by_cluster
from calibration.agreement.counts import count_patterns, patterns_of_items
from calibration.agreement.dawid_skene import LatentTruth, dawid_skene
from calibration.agreement.differences import difference
from calibration.agreement.intervals import FloatArray
from calibration.agreement.study import Options, Study, study
from calibration.agreement.weighted import estimate_weighted
from calibration.agreement.weights import partial_order_weights
from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.labelled_batch import LabelledBatch, load_batch
from calibration.analyses.reviewers import ReviewerProfile, reviewer_profiles, settled_codes
from calibration.errors import InputError
from calibration.estimates import Estimate
from calibration.records import OUTCOMES
from calibration.store import Store
from calibration.taxonomy import Taxonomy

CLUSTERS = ("trace", "task")


@dataclass(frozen=True, slots=True, kw_only=True)
class Disputed:
    """A trace on which reviewers differ.

    Parameters
    ----------
    trace_id : str
    labels : dict of str
        Class by reviewer.
    question : str or None
        Where the paths of the labels part first.
    cost : float
        What the trace costs alpha: alpha without it less alpha with it.
    entropy : float
        How open its class is given everybody's labels (Dawid-Skene), in bits.
    adjudicated : bool
        Whether it has a consensus.
    """

    trace_id: str
    labels: dict[str, str]
    question: str | None
    cost: float
    entropy: float
    adjudicated: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgreementAnalysis:
    """Agreement of the reviewers of a batch: over all, and where, who, and on which traces.

    Parameters
    ----------
    trace_ids : tuple of str
        The traces that agreement is about, in batch order.
    codes : int array, shape (n_traces, n_reviewers)
        Class that each reviewer gave, by position in `classes`; -1 where none.
    settled : int array, shape (n_traces,)
        The adjudicated class, -1 where there is none.
    weeks : tuple of str
        ISO week of the last label of each trace.
    near : Estimate
        Alpha that counts classes of close credit as close.
    near_misses : Estimate
        `near` less plain alpha: how much of the disagreement is between classes that are close.
    by_task : Estimate or None
        Alpha with the task as the unit, where a task has several labelled traces.
    weighted : dict of Estimate
        Agreement in production, each trace weighing by how improbable its draw was; empty where
        all were equally probable. Everything else is about the traces of the batch.
    profiles : tuple of ReviewerProfile
        In the order of `reviewers`.
    truth : LatentTruth
        Of Dawid and Skene, rows in the order of the traces: for the order of adjudication, never
        the reliability of the labels.
    disputed : tuple of Disputed
        In the order to adjudicate: the most open class first.
    unplanned : int
        Traces left out: they were planned for one label and got more.
    exposed : int
        Labels left out because they were not blind any more.
    """

    batch_id: str
    reviewers: tuple[str, ...]
    classes: tuple[str, ...]
    trace_ids: tuple[str, ...]
    codes: NDArray[np.int64]
    settled: NDArray[np.int64]
    weeks: tuple[str, ...]
    study: Study
    near: Estimate
    near_misses: Estimate
    by_task: Estimate | None
    weighted: dict[str, Estimate]
    profiles: tuple[ReviewerProfile, ...]
    truth: LatentTruth
    disputed: tuple[Disputed, ...]
    unplanned: int
    exposed: int
    simulated: bool
    is_sample: bool
    cluster: str
    taxonomy: Taxonomy
    taxonomy_version: str
    taxonomy_fingerprint: str
    fingerprint: str


def analyse_agreement(
    store: Store,
    batch_id: str | None = None,
    *,
    options: Options | None = None,
    cluster: str = "trace",
) -> AgreementAnalysis:
    """Measure agreement on the traces that the plan gave to two or more reviewers.

    Inference is to traces like these; the reviewers are taken as they are. A batch of traces
    that were chosen by filters speaks about those traces only (`is_sample` is False).

    Raises
    ------
    InputError
        If `cluster` is none of `CLUSTERS`, or as `load_batch`.
    """
    if cluster not in CLUSTERS:
        raise InputError(f"cluster must be one of {', '.join(CLUSTERS)}, got {cluster!r}")
    loaded = load_batch(store, batch_id, sample=False)
    return _agreement_of(store, loaded, options=options or Options(), cluster=cluster)


def planned_codes(loaded: LabelledBatch) -> tuple[pd.DataFrame, NDArray[np.int64], int]:
    """Return the traces planned for two or more labels, their classes, and how many are left out.

    A trace planned for one label has a second because somebody flagged it or was late: such
    traces are no random part of the batch. Where nothing was planned for two, all are taken.
    """
    planned = (loaded.labelled["labels_wanted"] >= 2).to_numpy(dtype=bool)
    codes = loaded.codes()
    if not planned.any():
        return loaded.labelled, codes, 0
    left_out = int(((codes[~planned] >= 0).sum(axis=1) >= 2).sum())
    return loaded.labelled[planned], codes[planned], left_out


def _agreement_of(
    store: Store, loaded: LabelledBatch, *, options: Options, cluster: str
) -> AgreementAnalysis:
    traces, codes, unplanned = planned_codes(loaded)
    level, taxonomy = options.confidence_level, loaded.taxonomy
    tasks = traces["task_key"].fillna(traces["trace_id"]).to_numpy(dtype=str)
    by_credit = credit_weights(taxonomy)
    patterns = count_patterns(codes, n_classes=len(OUTCOMES))
    weeks = _weeks(traces, loaded.labels)
    settled = settled_codes(loaded, traces)
    found = study(
        codes,
        n_classes=len(OUTCOMES),
        options=options,
        paths=taxonomy.paths(OUTCOMES),
        cluster=tasks if cluster == "task" else None,
        group=weeks,
        costly=len(codes),
    )
    truth = dawid_skene(codes, n_classes=len(OUTCOMES))
    return AgreementAnalysis(
        batch_id=loaded.batch.batch_id,
        reviewers=tuple(loaded.reviewers),
        classes=OUTCOMES,
        trace_ids=tuple(traces["trace_id"]),
        codes=codes,
        settled=settled,
        weeks=tuple(weeks),
        study=found,
        near=estimate(KRIPPENDORFF_ALPHA, patterns, weights=by_credit, confidence_level=level),
        near_misses=difference(
            KRIPPENDORFF_ALPHA, KRIPPENDORFF_ALPHA, patterns, first_weights=by_credit,
            confidence_level=level,
        ),
        by_task=_by_task(codes, tasks, options),
        weighted=_weighted(loaded, traces, codes, tasks if cluster == "task" else None, options),
        profiles=reviewer_profiles(
            store, loaded, codes, settled, found.beside, confidence_level=level
        ),
        truth=truth,
        disputed=_disputed(traces, codes, settled, loaded, found, truth),
        unplanned=unplanned,
        exposed=loaded.exposed,
        simulated=loaded.simulated,
        is_sample=loaded.is_sample,
        cluster=cluster,
        taxonomy=taxonomy,
        taxonomy_version=taxonomy.version,
        taxonomy_fingerprint=taxonomy.fingerprint,
        fingerprint=fingerprint(
            taxonomy=taxonomy.fingerprint,
            settings={"kind": "agreement", "cluster": cluster, **_plain(options)},
            labels=loaded.labels[["trace_id", "reviewer_id", "outcome"]],
            drawn=traces[["trace_id", "inclusion_probability"]],
        ),
    )  # fmt: skip


def credit_weights(taxonomy: Taxonomy) -> FloatArray:
    """Return weights under which a class stands above those that get less credit.

    Classes of equal credit cannot be compared; between them a disagreement stays a whole one.
    """
    credit = [taxonomy.credit[name] for name in OUTCOMES]
    above = [[k for k, other in enumerate(credit) if other > mine] for mine in credit]
    return partial_order_weights(above)


def _plain(options: Options) -> dict[str, object]:
    weights = None if options.weights is None else options.weights.tolist()
    return asdict(replace(options, weights=None)) | {"weights": weights}


def _weeks(traces: pd.DataFrame, labels: pd.DataFrame) -> list[str]:
    """Return the ISO week of the last label of each trace: when its agreement could be seen."""
    last = labels.groupby("trace_id")["created_at"].max().reindex(traces["trace_id"])
    return [f"{when:%G-W%V}" for when in last]


def _by_task(
    codes: NDArray[np.int64], tasks: NDArray[np.str_], options: Options
) -> Estimate | None:
    twice = (codes >= 0).sum(axis=1) >= 2
    if np.unique(tasks[twice]).size == twice.sum():
        return None
    patterns, of_item = patterns_of_items(codes, n_classes=len(OUTCOMES))
    return estimate_by_cluster(
        KRIPPENDORFF_ALPHA,
        patterns,
        clusters_of(of_item, tasks, n_patterns=len(patterns.counts)),
        weights=options.weights,
        confidence_level=options.confidence_level,
    )


def _weighted(
    loaded: LabelledBatch,
    traces: pd.DataFrame,
    codes: NDArray[np.int64],
    tasks: NDArray[np.str_] | None,
    options: Options,
) -> dict[str, Estimate]:
    if loaded.weights is None:
        return {}
    alpha = KRIPPENDORFF_ORDINAL if options.ordinal else KRIPPENDORFF_ALPHA
    return {
        coefficient.name: estimate_weighted(
            coefficient,
            codes,
            1 / traces["inclusion_probability"].to_numpy(dtype=np.float64),
            n_classes=len(OUTCOMES),
            weights=options.weights,
            cluster=tasks,
            confidence_level=options.confidence_level,
        )
        for coefficient in (PERCENT_AGREEMENT, alpha, GWET_AC)
    }


def _disputed(
    traces: pd.DataFrame,
    codes: NDArray[np.int64],
    settled: NDArray[np.int64],
    loaded: LabelledBatch,
    found: Study,
    truth: LatentTruth,
) -> tuple[Disputed, ...]:
    cost = {item.item: item.cost for item in found.costly}
    disputed = []
    for row, (trace_id, given) in enumerate(zip(traces["trace_id"], codes.tolist(), strict=True)):
        classes = sorted({code for code in given if code >= 0})
        if len(classes) < 2:
            continue
        disputed.append(
            Disputed(
                trace_id=trace_id,
                labels={
                    reviewer: OUTCOMES[code]
                    for reviewer, code in zip(loaded.reviewers, given, strict=True)
                    if code >= 0
                },
                question=loaded.taxonomy.first_parting(OUTCOMES[code] for code in classes),
                cost=cost.get(row, 0.0),
                entropy=float(truth.entropy[row]),
                adjudicated=bool(settled[row] >= 0),
            )
        )
    return tuple(sorted(disputed, key=lambda d: (d.adjudicated, -d.entropy, -d.cost)))
