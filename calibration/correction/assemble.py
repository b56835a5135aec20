"""Run every estimator on one labelled sample and decide which may be used."""

from dataclasses import dataclass, replace

import numpy as np

from calibration.correction.class_shares import clustered_shares, post_stratified_shares
from calibration.correction.confusion import Confusion, confusion, validated_human
from calibration.correction.intervals import FloatArray, cluster_indices, two_sided_t
from calibration.correction.inversion import Inversion, invert
from calibration.correction.post_stratified import PostStratified, post_stratified
from calibration.correction.production import ProductionSums
from calibration.correction.quality import judge_quality
from calibration.correction.refusals import (
    PROBABILITY_SAMPLE_MIN,
    REPEATED_TASKS,
    Notice,
    class_warnings,
    inversion_refusals,
    merge_warnings,
    precision_warnings,
    sample_refusals,
    share_warnings,
)
from calibration.correction.results import (
    HEADLINE,
    Calibration,
    Design,
    LabelledSample,
    NetGross,
)
from calibration.correction.single_source import human_only, judge_raw
from calibration.estimates import OK, Estimate, not_estimable


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Choices of a calibration that every step needs."""

    design: Design
    names: tuple[str, ...]
    pseudo_count: float
    open_disagreements: int
    refusals: tuple[Notice, ...]
    confidence_level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arm:
    """All estimators of one target: the net score or the gross one."""

    stratified: PostStratified
    inverted: Inversion
    human: Estimate
    raw: Estimate


def _scores(labelled: LabelledSample, credit: FloatArray, *, net: bool) -> FloatArray:
    human = validated_human(labelled.human)
    if human.shape[1] != credit.size:
        raise ValueError(f"human must have {credit.size} columns, got {human.shape[1]}")
    if not net or labelled.penalties is None:
        return human @ credit
    penalty = np.asarray(labelled.penalties, dtype=np.float64)
    if penalty.shape != (human.shape[0],):
        raise ValueError(f"penalties must have shape ({human.shape[0]},), got {penalty.shape!r}")
    if penalty.size and not (penalty.min() >= 0 and penalty.max() <= 1):
        raise ValueError(f"penalties must be in [0, 1], got {penalty.min()!r} to {penalty.max()!r}")
    kept: FloatArray = (human * np.maximum(0.0, credit - penalty[:, None])).sum(axis=1)
    return kept


def _verdict_values(production: ProductionSums) -> FloatArray:
    """Return the credit each verdict would mean, NaN for verdicts that are no class."""
    values = np.full(production.counts.size, np.nan)
    values[: production.credit.size] = production.credit
    return values


def _counts(labelled: LabelledSample, production: ProductionSums, settings: Settings) -> FloatArray:
    """Return the production counts; labels of a reference set, no part of them, are added.

    Post-stratification is refused for a reference set, and only diagnostics are read from it.
    """
    if settings.design == "production":
        return production.counts
    added = np.bincount(labelled.verdicts, minlength=production.counts.size)
    counts: FloatArray = production.counts + added
    return counts


def _post_stratify(
    scores: FloatArray, labelled: LabelledSample, production: ProductionSums, settings: Settings
) -> PostStratified:
    return post_stratified(
        scores,
        labelled.verdicts,
        _counts(labelled, production, settings),
        verdict_values=_verdict_values(production),
        weights=labelled.weights,
        clusters=labelled.clusters,
        confidence_level=settings.confidence_level,
    )


def _class_shares(
    labelled: LabelledSample,
    production: ProductionSums,
    stratified: PostStratified,
    settings: Settings,
) -> tuple[Estimate, ...]:
    counts = _counts(labelled, production, settings)
    if cluster_indices(labelled.clusters, labelled.verdicts.size) is None:
        return post_stratified_shares(
            labelled.human,
            labelled.verdicts,
            counts,
            strata=stratified.strata,
            weights=labelled.weights,
            confidence_level=settings.confidence_level,
        )
    return clustered_shares(
        labelled.human,
        labelled.verdicts,
        counts,
        clusters=np.asarray(labelled.clusters),
        weights=labelled.weights,
        verdict_values=_verdict_values(production),
        confidence_level=settings.confidence_level,
    )


def _arm(
    labelled: LabelledSample,
    crossed: Confusion,
    production: ProductionSums,
    settings: Settings,
    *,
    net: bool,
) -> _Arm:
    level = settings.confidence_level
    scores = _scores(labelled, production.credit, net=net)
    return _Arm(
        stratified=_post_stratify(scores, labelled, production, settings),
        inverted=invert(
            crossed.table, production, pseudo_count=settings.pseudo_count, confidence_level=level
        ),
        human=human_only(
            scores,
            weights=labelled.weights,
            clusters=labelled.clusters,
            confidence_level=level,
        ),
        raw=judge_raw(production, confidence_level=level),
    )


def assemble(
    labelled: LabelledSample, net: ProductionSums, gross: ProductionSums, settings: Settings
) -> Calibration:
    """Return every estimate, net and gross, with what speaks against each."""
    level = settings.confidence_level
    crossed = confusion(
        labelled.human, labelled.verdicts, n_verdicts=net.counts.size, weights=labelled.weights
    )
    of_net = _arm(labelled, crossed, net, settings, net=True)
    of_gross = _arm(labelled, crossed, gross, settings, net=False)
    shares = _class_shares(labelled, net, of_net.stratified, settings)
    refusals = _refusals(crossed, of_net.inverted, net, settings)
    pairs = {
        "post_stratified": (of_net.stratified.estimate, of_gross.stratified.estimate),
        "inversion": (of_net.inverted.estimate, of_gross.inverted.estimate),
        "human_only": (of_net.human, of_gross.human),
        "judge_raw": (of_net.raw, of_gross.raw),
    }
    estimates = {
        name: NetGross(
            net=_decided(name, pair[0], refusals, settings),
            gross=_decided(name, pair[1], refusals, settings),
        )
        for name, pair in pairs.items()
    }
    of_class = {"post_stratified": shares, "inversion": of_net.inverted.shares}
    headline = HEADLINE[settings.design]
    return Calibration(
        design=settings.design,
        headline=headline if estimates[headline].net.ok else None,
        estimates=estimates,
        class_shares={
            name: tuple(_decided(name, share, refusals, settings) for share in several)
            for name, several in of_class.items()
        },
        judge=judge_quality(crossed, confidence_level=level),
        inversion=of_net.inverted,
        inversion_gross=of_gross.inverted,
        post_stratification=of_net.stratified,
        confusion=crossed,
        n_labels=crossed.n,
        n_production=net.n,
        refusals=refusals,
        warnings=_warnings(labelled, crossed, of_net, estimates, settings),
        confidence_level=level,
    )


def _refusals(
    crossed: Confusion, inverted: Inversion, production: ProductionSums, settings: Settings
) -> tuple[Notice, ...]:
    sampled = settings.design == "production"
    found = inversion_refusals(
        crossed.table,
        inverted,
        credit=production.credit,
        verdict_shares=production.counts / max(1, production.n),
        names=settings.names,
    )
    for estimator, least in (("post_stratified", PROBABILITY_SAMPLE_MIN), ("human_only", 2)):
        found += sample_refusals(
            crossed.n, probability_sample=sampled, estimator=estimator, minimum_labels=least
        )
    return found + settings.refusals


def _decided(
    name: str, estimate: Estimate, refusals: tuple[Notice, ...], settings: Settings
) -> Estimate:
    """Return the estimate as it may be shown: refused, provisional, or as it is."""
    against = [notice for notice in refusals if notice.estimator == name]
    if against:
        return not_estimable(
            "; ".join(f"{notice.why} ({notice.mend})" for notice in against),
            method=estimate.method,
            n=estimate.n,
            confidence_level=estimate.confidence_level,
        )
    if settings.open_disagreements and name != "judge_raw" and estimate.status == OK:
        status = f"provisional: {settings.open_disagreements} open disagreements"
        return replace(estimate, status=status)
    return estimate


def _warnings(
    labelled: LabelledSample,
    crossed: Confusion,
    arm: _Arm,
    estimates: dict[str, NetGross],
    settings: Settings,
) -> tuple[Notice, ...]:
    """Return the warnings of the estimators that are not refused."""
    names, labels = settings.names, np.asarray(labelled.human, dtype=np.float64).sum(axis=0)
    half = None
    if arm.human.se is not None:
        half = two_sided_t(settings.confidence_level, max(1, crossed.n - 1)) * arm.human.se
    found: tuple[Notice, ...] = ()
    if estimates["post_stratified"].net.ok:
        by_verdict = np.bincount(labelled.verdicts, minlength=crossed.table.shape[1]).tolist()
        found += precision_warnings(
            "post_stratified", arm.stratified.estimate, human_half_width=half
        )
        found += merge_warnings(arm.stratified.strata, by_verdict, names=names)
        found += class_warnings("post_stratified", labels, names=names)
    if estimates["inversion"].net.ok:
        found += precision_warnings("inversion", arm.inverted.estimate, human_half_width=half)
        found += share_warnings(arm.inverted, names=names)
        if cluster_indices(labelled.clusters, crossed.n) is not None:
            found += (REPEATED_TASKS,)
        found += class_warnings("inversion", crossed.table.sum(axis=1), names=names)
    return found
