"""Run the estimators on one labelled sample: for the net score and for the gross one."""

from dataclasses import dataclass

import numpy as np

from calibration.correction.bayesian import bayesian
from calibration.correction.bootstrap import bootstrap_post_stratified
from calibration.correction.bootstrap_inversion import bootstrap_inversion
from calibration.correction.case import Case, Settings
from calibration.correction.class_shares import with_enough_labels
from calibration.correction.confusion import Confusion, validated_human
from calibration.correction.effective_size import Gain, effective_gain
from calibration.correction.intervals import FloatArray
from calibration.correction.inversion import Inversion, invert
from calibration.correction.lee import lee
from calibration.correction.post_stratified import PostStratified, post_stratified
from calibration.correction.ppi_plus_plus import PowerTuned, ppi_plus_plus
from calibration.correction.production import ProductionSums
from calibration.correction.proxies import score_proxies, score_sums
from calibration.correction.refusals import CLASS_LABELS_MIN
from calibration.correction.results import ESTIMATORS, LabelledSample
from calibration.correction.shares_by_estimator import (
    human_shares,
    lee_shares,
    power_tuned_shares,
    stratified_shares,
)
from calibration.correction.single_source import human_only, judge_raw, judge_shares
from calibration.estimates import Estimate, not_estimable

NO_LABELLED_COSTS = "the labelled traces have no costs: give them, or read the gross rate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """All estimates of one target, and the class shares; by name those that were asked for."""

    stratified: PostStratified
    inverted: Inversion
    human: Estimate
    gain: Gain
    estimates: dict[str, Estimate]
    shares: dict[str, tuple[Estimate, ...]]
    power_tuning: float | None = None
    posterior_size: float | None = None


def run_arms(
    labelled: LabelledSample,
    crossed: Confusion,
    net: ProductionSums,
    gross: ProductionSums,
    settings: Settings,
) -> tuple[Arm, Arm]:
    """Return the estimates with and without cost; they are one when `net` is `gross`.

    Every estimator has its own stream of random numbers, the same for net and gross.
    """
    human = validated_human(labelled.human)
    if human.shape[1] != net.credit.size:
        raise ValueError(f"human must have {net.credit.size} columns, got {human.shape[1]}")
    arms = []
    for production in (net,) if net is gross else (net, gross):
        case = Case(
            labelled=labelled,
            human=human,
            crossed=crossed,
            production=production,
            settings=settings,
            net=production is net and (net is not gross or labelled.penalties is not None),
        )
        arms.append(_arm(case, np.random.default_rng(settings.seed)))
    return arms[0], arms[-1]


def _arm(case: Case, rng: np.random.Generator) -> Arm:
    labelled, production, settings = case.labelled, case.production, case.settings
    wanted, level = settings.estimators, settings.confidence_level
    for_posterior, for_bootstrap = rng.spawn(2)
    scores = case.scores()
    stratified = post_stratified(
        scores,
        labelled.verdicts,
        case.counts,
        verdict_values=case.verdict_values,
        weights=labelled.weights,
        clusters=labelled.clusters,
        confidence_level=level,
    )
    inverted = invert(
        case.crossed.table,
        production,
        pseudo_count=settings.pseudo_count,
        confidence_level=level,
    )
    human = human_only(
        scores, weights=labelled.weights, clusters=labelled.clusters, confidence_level=level
    )
    found = {
        "post_stratified": stratified.estimate,
        "inversion": inverted.estimate,
        "human_only": human,
        "judge_raw": judge_raw(production, confidence_level=level),
    }
    shares = {"inversion": inverted.shares, "judge_raw": judge_shares(production)}
    tuned: PowerTuned | None = None
    posterior_size: float | None = None
    if "post_stratified" in wanted:
        shares["post_stratified"] = stratified_shares(case, stratified)
    if "human_only" in wanted:
        shares["human_only"] = human_shares(case)
    if "ppi_plus_plus" in wanted:
        tuned = _power_tuned(case, scores)
        found["ppi_plus_plus"] = tuned.estimate
        shares["ppi_plus_plus"] = power_tuned_shares(case)
    if "bayesian" in wanted:
        posterior = bayesian(
            case.crossed.table,
            production,
            rng=for_posterior,
            prior=settings.prior,
            confidence_level=level,
        )
        found["bayesian"], shares["bayesian"] = posterior.estimate, posterior.shares
        posterior_size = posterior.effective_size
    if "bootstrap" in wanted:
        found["bootstrap"], shares["bootstrap"] = _bootstrap(
            case, scores, stratified, for_bootstrap
        )
    if "lee" in wanted and production.credit.size == 2:
        found["lee"] = lee(case.crossed.table, production, confidence_level=level)
        shares["lee"] = lee_shares(case)
    return Arm(
        stratified=stratified,
        inverted=inverted,
        human=human,
        gain=effective_gain(
            scores,
            labelled.verdicts,
            strata=stratified.strata,
            weights=labelled.weights,
            clusters=labelled.clusters,
            confidence_level=level,
        ),
        estimates={
            name: _scored(found[name], name, case)
            for name in ESTIMATORS
            if name in found and name in wanted
        },
        shares={name: shares[name] for name in ESTIMATORS if name in shares and name in wanted},
        power_tuning=None if tuned is None else tuned.tuning,
        posterior_size=posterior_size,
    )


def _scored(estimate: Estimate, name: str, case: Case) -> Estimate:
    """Return the estimate unless it needs costs of the labelled traces that are not there."""
    if not case.unscored or name in ("inversion", "bayesian", "lee", "judge_raw", "bootstrap"):
        return estimate
    return not_estimable(NO_LABELLED_COSTS, method=estimate.method, n=estimate.n)


def _power_tuned(case: Case, scores: FloatArray) -> PowerTuned:
    labelled = case.labelled
    penalties = labelled.penalties if case.net else None
    return ppi_plus_plus(
        scores,
        score_proxies(labelled.verdicts, penalties, case.production),
        score_sums(case.production),
        labels_in_production=case.settings.design == "production",
        weights=labelled.weights,
        clusters=labelled.clusters,
        confidence_level=case.settings.confidence_level,
    )


def _bootstrap(
    case: Case, scores: FloatArray, stratified: PostStratified, rng: np.random.Generator
) -> tuple[Estimate, tuple[Estimate, ...]]:
    """Bootstrap the default of the design: post-stratification, or inversion."""
    labelled, level = case.labelled, case.settings.confidence_level
    if case.settings.design == "reference":
        found = bootstrap_inversion(
            case.crossed.table,
            case.production,
            rng=rng,
            pseudo_count=case.settings.pseudo_count,
            confidence_level=level,
        )
        estimate, shares = found.estimate, found.shares
    else:
        estimate, *several = bootstrap_post_stratified(
            np.column_stack([scores, case.human]),
            labelled.verdicts,
            case.counts,
            strata=stratified.strata,
            rng=rng,
            weights=labelled.weights,
            clusters=labelled.clusters,
            confidence_level=level,
        )
        shares = tuple(several)
    labels = case.human.sum(axis=0).tolist()
    return estimate, tuple(
        with_enough_labels(share, count, CLASS_LABELS_MIN)
        for share, count in zip(shares, labels, strict=True)
    )
