"""The class shares by each estimator that is not made for them alone."""

import numpy as np

from calibration.correction.case import Case
from calibration.correction.class_shares import (
    clustered_shares,
    post_stratified_shares,
    with_enough_labels,
)
from calibration.correction.intervals import cluster_indices
from calibration.correction.lee import lee
from calibration.correction.post_stratified import PostStratified
from calibration.correction.ppi_plus_plus import ppi_shares
from calibration.correction.production import production_sums_from_counts
from calibration.correction.proxies import class_proxies
from calibration.correction.refusals import CLASS_LABELS_MIN
from calibration.correction.single_source import human_only
from calibration.estimates import Estimate


def stratified_shares(case: Case, stratified: PostStratified) -> tuple[Estimate, ...]:
    """Return the shares by post-stratification; repeated tasks are kept together."""
    labelled, level = case.labelled, case.settings.confidence_level
    if cluster_indices(labelled.clusters, labelled.verdicts.size) is None:
        return post_stratified_shares(
            labelled.human,
            labelled.verdicts,
            case.counts,
            strata=stratified.strata,
            weights=labelled.weights,
            confidence_level=level,
        )
    return clustered_shares(
        labelled.human,
        labelled.verdicts,
        case.counts,
        clusters=np.asarray(labelled.clusters),
        weights=labelled.weights,
        verdict_values=case.verdict_values,
        confidence_level=level,
    )


def human_shares(case: Case) -> tuple[Estimate, ...]:
    """Return the shares among the labelled traces."""
    return tuple(
        with_enough_labels(
            human_only(
                column,
                weights=case.labelled.weights,
                clusters=case.labelled.clusters,
                confidence_level=case.settings.confidence_level,
            ),
            float(column.sum()),
            CLASS_LABELS_MIN,
        )
        for column in case.human.T
    )


def power_tuned_shares(case: Case) -> tuple[Estimate, ...]:
    """Return the shares by PPI++."""
    counts = case.production.counts
    return ppi_shares(
        case.human,
        case.labelled.verdicts,
        counts,
        class_proxies(counts, case.human.shape[1]),
        labels_in_production=case.settings.design == "production",
        weights=case.labelled.weights,
        clusters=case.labelled.clusters,
        confidence_level=case.settings.confidence_level,
    )


def lee_shares(case: Case) -> tuple[Estimate, ...]:
    """Return the shares of both classes; the second is the rest of the first."""
    good = int(np.argmax(case.production.credit))
    first = lee(
        case.crossed.table,
        production_sums_from_counts(case.production.counts, credit=np.eye(2)[good]),
        confidence_level=case.settings.confidence_level,
    )
    ordered = (first, _rest(first)) if good == 0 else (_rest(first), first)
    labels = case.human.sum(axis=0).tolist()
    return tuple(
        with_enough_labels(share, count, CLASS_LABELS_MIN)
        for share, count in zip(ordered, labels, strict=True)
    )


def _rest(share: Estimate) -> Estimate:
    if share.value is None:
        return share
    limits = None if share.interval is None else (1 - share.interval[1], 1 - share.interval[0])
    return Estimate(
        value=1 - share.value,
        interval=limits,
        n=share.n,
        method=share.method,
        confidence_level=share.confidence_level,
        status=share.status,
        se=share.se,
    )
