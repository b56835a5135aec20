"""Agreement as JSON: full precision, undefined as null with a status, never NaN."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from calibration.agreement.against_key import AgainstKey
from calibration.agreement.margins import TestResult
from calibration.agreement.pairs import PairAgreement
from calibration.agreement.prevalence import PairPrevalence
from calibration.agreement.shares import Share
from calibration.agreement.study import Study
from calibration.analyses.agreement import AgreementAnalysis
from calibration.analyses.next_steps import NextStep, next_steps
from calibration.analyses.rating_files import RatingsAgreement
from calibration.analyses.reviewers import ReviewerProfile
from calibration.reporting.json_values import Json, estimate


def agreement(result: AgreementAnalysis) -> Json:
    """Return the agreement of a batch."""
    return {
        **_study(result.study, result.classes, result.reviewers),
        "against_keys": [_profile(of, result.classes) for of in result.profiles],
        "near": estimate(result.near),
        "near_misses": estimate(result.near_misses),
        "by_task": None if result.by_task is None else estimate(result.by_task),
        "weighted_to_production": {n: estimate(e) for n, e in result.weighted.items()} or None,
        "cluster": result.cluster,
        "disputed": [asdict(disputed) for disputed in result.disputed],
        "next_steps": [_step(step) for step in next_steps(result)],
        "latent_truth_status": result.truth.status,
        "unplanned": result.unplanned,
        "exposed": result.exposed,
        "random_sample_of_production": result.is_sample,
        "batch_id": result.batch_id,
        "simulated": result.simulated,
        "fingerprint": result.fingerprint,
    }


def _step(step: NextStep) -> Json:
    return {
        "kind": step.kind,
        "what": step.what,
        "why": step.why,
        "traces": [] if step.traces is None else list(step.traces.trace_ids),
        "command": None if step.command is None else f"asr {step.command}",
    }


def ratings(result: RatingsAgreement) -> Json:
    """Return the agreement on a file of ratings."""
    items = result.ratings.items
    return {
        **_study(result.study, result.ratings.classes, result.ratings.raters),
        "costly_items": [
            {"item": items[costly.item], "cost": costly.cost} for costly in result.study.costly
        ],
        "classes": list(result.ratings.classes),
        "weights": result.weights,
        "cluster": result.cluster,
    }


def _study(found: Study, classes: Sequence[str], raters: Sequence[str]) -> Json:
    counts = {"n_items": found.overall.n_items, "n_ratings": found.overall.n_ratings}
    return {
        "coefficients": {n: estimate(e) | counts for n, e in found.coefficients.items()},
        "bootstrap": _bootstrap(found),
        # A file that uses one class alone still has two: the other was never used.
        "per_class": {
            name: {"specific_agreement": estimate(same), "fleiss_kappa": estimate(kappa)}
            | {"share": share}
            for name, same, kappa, share in zip(
                classes, found.overall.specific, found.class_kappas, found.overall.class_shares,
                strict=False,
            )
        },
        "confusions": [
            {"classes": [classes[c.first], classes[c.second]]} | _share(c.share)
            for c in found.confusions
        ],
        "per_node": {
            name: {
                "krippendorff_alpha": estimate(node.alpha),
                "gwet_ac": estimate(node.ac1),
                "percent_agreement": estimate(node.percent_agreement),
                "disagreement": _share(node.share),
                "n_items": node.n_items,
                "n_ratings": node.n_ratings,
            }
            for name, node in found.nodes.items()
        },
        "per_week": {
            name: {
                "krippendorff_alpha": estimate(group.alpha),
                "gwet_ac": estimate(group.ac1),
                "percent_agreement": estimate(group.percent_agreement),
                "n_items": group.n_items,
                "n_ratings": group.n_ratings,
            }
            for name, group in found.groups.items()
        },
        "per_reviewer": [
            {
                "reviewer": raters[of.rater],
                "agreement_with_others": estimate(of.agreement_with_others),
                "krippendorff_alpha_without": estimate(of.alpha_without),
                "change_without": estimate(of.change),
                "p_holm": of.p_holm,
            }
            for of in found.beside
        ],
        "pairwise": [
            _pair(raters, pair, bias)
            for pair, bias in zip(found.pairs, found.prevalence.pairs, strict=True)
        ],
        "equal_use_of_classes": _margins(found, classes, raters),
        "prevalence": _prevalence(found, classes),
    }  # fmt: skip


def _bootstrap(found: Study) -> Json:
    bootstrap = found.bootstrap
    return {
        "krippendorff_alpha": {
            "percentile": estimate(bootstrap.percentile),
            "bca": estimate(bootstrap.bca),
            "reaches": [
                {"bound": bound, "probability": share} for bound, share in bootstrap.reaches.items()
            ],
        },
        "n_resamples": bootstrap.n_resamples,
        "seed": bootstrap.seed,
    }


def _share(share: Share) -> Json:
    return {
        "share": estimate(share.observed),
        "share_by_chance": share.expected,
        "lift": share.lift,
        "alpha": share.alpha,
        "n_items": share.n_items,
    }


def _test(found: TestResult) -> Json:
    return {
        "statistic": found.statistic,
        "df": found.df,
        "p_value": found.p_value,
        "n": found.n,
        "method": found.method,
        "status": found.status,
    }


def _pair(raters: Sequence[str], pair: PairAgreement, use: PairPrevalence) -> Json:
    return {
        "reviewers": [raters[pair.first], raters[pair.second]],
        "n_shared": pair.n_shared,
        "table": [list(row) for row in pair.table],
        "percent_agreement": estimate(pair.percent_agreement),
        "krippendorff_alpha": estimate(pair.alpha),
        "cohen_kappa": estimate(pair.kappa),
        "equal_margins": _test(pair.margins),
        "bias_index": use.bias_index,
        "kappa_max": use.kappa_max,
    }


def _profile(of: ReviewerProfile, classes: Sequence[str]) -> Json:
    return {
        "reviewer": of.reviewer_id,
        "n_labels": of.n_labels,
        "against_consensus": _key(of.consensus, classes),
        "against_canonical": _key(of.canonical, classes),
    }


def _key(found: AgainstKey | None, classes: Sequence[str]) -> Json | None:
    if found is None:
        return None
    return {
        "n": found.n,
        "accuracy": estimate(found.accuracy),
        "gwet_ac": estimate(found.gwet_ac),
        "cohen_kappa": estimate(found.cohen_kappa),
        "per_class": {
            classes[c.class_code]: {
                "recall": estimate(c.recall),
                "precision": estimate(c.precision),
            }
            for c in found.per_class
        },
        "rows_key_columns_reviewer": [list(row) for row in found.table],
    }


def _margins(found: Study, classes: Sequence[str], raters: Sequence[str]) -> Json:
    margins = found.margins
    return {
        "test": _test(margins.test),
        "n_differing": margins.n_differing,
        "differences": [
            {
                "reviewer": raters[d.rater],
                "class": classes[d.class_code],
                "share": d.share,
                "share_of_others": d.share_of_others,
                "difference": estimate(d.difference),
                "p_value": d.p_value,
                "p_holm": d.p_holm,
            }
            for d in margins.differences
        ],
    }


def _prevalence(found: Study, classes: Sequence[str]) -> dict[str, Any]:
    use = found.prevalence
    return {
        "status": use.status,
        "gap_alpha_less_ac1": estimate(use.gap),
        "prevalence_index": use.prevalence_index,
        "rare_classes": [classes[k] for k in use.rare_classes],
        "unused_classes": [classes[k] for k in use.unused_classes if k < len(classes)],
    }
