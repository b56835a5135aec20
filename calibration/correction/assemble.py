"""Run every estimator on one labelled sample and decide which may be used."""

from dataclasses import replace

import numpy as np

from calibration.correction.arms import Arm, run_arms
from calibration.correction.case import Settings
from calibration.correction.confusion import Confusion, confusion
from calibration.correction.intervals import cluster_indices, two_sided_t
from calibration.correction.inversion import Inversion
from calibration.correction.production import ProductionSums
from calibration.correction.quality import judge_quality
from calibration.correction.refusals import (
    PROBABILITY_SAMPLE_MIN,
    Notice,
    carried_over,
    class_warnings,
    families,
    inversion_refusals,
    merge_warnings,
    precision_warnings,
    repeated_tasks,
    sample_refusals,
    share_warnings,
)
from calibration.correction.results import (
    HEADLINE,
    Calibration,
    LabelledSample,
    NetGross,
)
from calibration.estimates import OK, Estimate, not_estimable


def assemble(
    labelled: LabelledSample, net: ProductionSums, gross: ProductionSums, settings: Settings
) -> Calibration:
    """Return every estimate, net and gross, with what speaks against each."""
    level = settings.confidence_level
    crossed = confusion(
        labelled.human, labelled.verdicts, n_verdicts=net.counts.size, weights=labelled.weights
    )
    of_net, of_gross = run_arms(labelled, crossed, net, gross, settings)
    refusals = _refusals(crossed, of_net, net, settings)
    estimates = {
        name: NetGross(
            net=_decided(name, of_net.estimates[name], refusals, settings),
            gross=_decided(name, of_gross.estimates[name], refusals, settings),
        )
        for name in of_net.estimates
    }
    return Calibration(
        design=settings.design,
        headline=_headline(estimates, refusals, settings),
        estimates=estimates,
        class_shares={
            name: tuple(_decided(name, share, refusals, settings) for share in several)
            for name, several in of_net.shares.items()
        },
        judge=judge_quality(crossed, confidence_level=level),
        inversion=of_net.inverted,
        inversion_gross=of_gross.inverted,
        post_stratification=of_net.stratified,
        post_stratification_gross=of_gross.stratified,
        production=net,
        production_gross=gross,
        gain=_decided("post_stratified", of_net.gain.multiplier, refusals, settings)
        if settings.design == "production"
        else None,
        power_tuning=of_net.power_tuning,
        posterior_size=of_net.posterior_size,
        confusion=crossed,
        n_labels=crossed.n,
        n_production=net.n,
        refusals=refusals,
        warnings=_warnings(labelled, crossed, of_net, estimates, settings),
        confidence_level=level,
    )


def _headline(
    estimates: dict[str, NetGross], refusals: tuple[Notice, ...], settings: Settings
) -> str | None:
    name = HEADLINE[settings.design]
    refused = any(notice.estimator == name for notice in refusals)
    if refused or name not in estimates or not estimates[name].net.ok:
        return None
    return name


def _refusals(
    crossed: Confusion, arm: Arm, production: ProductionSums, settings: Settings
) -> tuple[Notice, ...]:
    """Return what speaks against the estimators that were run."""
    kin = families(settings.design, arm.estimates)
    found = carried_over(_inversion_refusals(crossed, arm.inverted, production, settings), kin)
    for estimator, least in (("post_stratified", PROBABILITY_SAMPLE_MIN), ("human_only", 2)):
        against = sample_refusals(
            crossed.n,
            probability_sample=settings.design == "production",
            estimator=estimator,
            minimum_labels=least,
        )
        found += carried_over(against, kin)
    found += carried_over(settings.refusals, kin)
    return tuple(notice for notice in found if notice.estimator in arm.estimates)


def _inversion_refusals(
    crossed: Confusion, inverted: Inversion, production: ProductionSums, settings: Settings
) -> tuple[Notice, ...]:
    return inversion_refusals(
        crossed.table,
        inverted,
        credit=production.credit,
        verdict_shares=production.counts / max(1, production.n),
        names=settings.names,
    )


def _decided(
    name: str, estimate: Estimate, refusals: tuple[Notice, ...], settings: Settings
) -> Estimate:
    """Return the estimate as it may be shown: refused, provisional, or as it is."""
    against = [notice for notice in refusals if notice.estimator == name]
    if against:
        refused = not_estimable(
            "; ".join(f"{notice.why} ({notice.mend})" for notice in against),
            method=estimate.method,
            n=estimate.n,
            confidence_level=estimate.confidence_level,
        )
        if settings.force and estimate.ok:
            return replace(estimate, status=refused.status)
        return refused
    if settings.open_disagreements and name != "judge_raw" and estimate.status == OK:
        status = f"provisional: {settings.open_disagreements} open disagreements"
        return replace(estimate, status=status)
    return estimate


def _warnings(
    labelled: LabelledSample,
    crossed: Confusion,
    arm: Arm,
    estimates: dict[str, NetGross],
    settings: Settings,
) -> tuple[Notice, ...]:
    """Return the warnings of the estimators that have a value."""
    names, labels = settings.names, np.asarray(labelled.human, dtype=np.float64).sum(axis=0)
    half = None
    if arm.human.se is not None:
        half = two_sided_t(settings.confidence_level, max(1, crossed.n - 1)) * arm.human.se
    usable = {name for name, pair in estimates.items() if pair.net.ok}
    found: tuple[Notice, ...] = ()
    for name in estimates:
        if name in usable and name not in ("human_only", "judge_raw"):
            found += precision_warnings(name, estimates[name].net, human_half_width=half)
    if "post_stratified" in usable:
        by_verdict = np.bincount(labelled.verdicts, minlength=crossed.table.shape[1]).tolist()
        found += merge_warnings(arm.stratified.strata, by_verdict, names=names)
        found += class_warnings("post_stratified", labels, names=names)
    if "inversion" in usable:
        found += share_warnings(arm.inverted, names=names)
        found += class_warnings("inversion", crossed.table.sum(axis=1), names=names)
    if cluster_indices(labelled.clusters, crossed.n) is not None:
        taken = {"inversion", "bayesian", "lee"} & usable
        if settings.design == "reference":
            taken |= {"bootstrap"} & usable
        found += tuple(repeated_tasks(name) for name in estimates if name in taken)
    return found
