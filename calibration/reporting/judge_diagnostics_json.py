"""The diagnostics of a judge, its drift, and its groups, as JSON."""

from collections.abc import Sequence
from dataclasses import asdict

from calibration.analyses.diagnosing import Diagnostics
from calibration.analyses.drift import Drift
from calibration.analyses.judge_groups import GroupRates
from calibration.correction.comparisons import Comparison
from calibration.correction.means import MeanAgainstZero
from calibration.correction.nodes import NodeQuality
from calibration.correction.ordinal import OrdinalAgreement
from calibration.estimates import Estimate
from calibration.reporting.json_values import Json, estimate


def tested(found: MeanAgainstZero) -> Json:
    """Return a mean with its p-value."""
    return estimate(found.estimate) | {"p_value": found.p_value}


def diagnostics(result: Diagnostics) -> Json:
    """Return the diagnostics of a judge; disagreements all of them."""
    return {
        "ceiling": {
            name: {
                "humans": estimate(b.panel),
                "judge": estimate(b.outsider),
                "difference": estimate(b.difference),
                "within_human_disagreement": b.within,
            }
            for name, b in result.ceiling.items()
        },
        "grades": None
        if result.grades is None
        else ordinal(result.grades) | {"scale": list(result.grade_names)},
        "per_node": {
            name: _node(q) | {"errors_begin": result.errors.get(name, 0.0)}
            for name, q in result.nodes.items()
        },
        "errors_without_verdict": result.errors.get(None, 0.0),
        "disagreements": [asdict(item) for item in result.disagreements],
        "leniency": tested(result.leniency),
        "leniency_by": {
            by: {
                row.group: tested(row.gap)
                | {
                    "p_holm": row.p_holm,
                    "judge_credit": row.verdict_credit,
                    "human_credit": row.human_credit,
                }
                for row in rows
            }
            for by, rows in result.leniency_by.items()
        },
        "slopes_per_doubling": {name: tested(found) for name, found in result.slopes.items()},
        "own_family": tested(result.own_family),
        "retest": {
            "changed": estimate(result.retest.changed),
            "two_differ": estimate(result.retest.differ),
            "most_asked": result.retest.most_asked,
            "changed_by_first_verdict": _by_name(result.verdict_names, result.retest.per_verdict),
        },
        "missing": list(result.missing),
        "notes": list(result.notes),
        "fingerprint": result.fingerprint,
    }


def _by_name(names: Sequence[str], found: Sequence[Estimate]) -> Json:
    return {name: estimate(e) for name, e in zip(names, found, strict=False)}


def _node(found: NodeQuality) -> Json:
    shares = ("accuracy", "yes_recall", "yes_precision", "no_recall", "no_precision")
    return {name: estimate(getattr(found, name)) for name in shares} | {
        "table_human_by_judge_yes_no": [list(row) for row in found.table],
        "only_human": found.only_human,
        "only_judge": found.only_judge,
    }


def drift(result: Drift) -> Json:
    """Return how two judges differ."""
    humans = result.against_humans
    return {
        "before": result.before,
        "after": result.after,
        "n": result.n,
        "verdicts": list(result.verdict_names),
        "table_before_by_after": [list(row) for row in result.table],
        "classes": {
            row.name: {
                "before": row.before,
                "after": row.after,
                "only_before": row.only_before,
                "only_after": row.only_after,
                "test": asdict(row.test),
                "p_holm": row.p_holm,
            }
            for row in result.classes
        },
        "credit_change": tested(result.credit_change),
        "same": estimate(result.same),
        "alpha": estimate(result.alpha),
        "against_humans": None
        if humans is None
        else {
            "n": humans.n,
            "accuracy_before": estimate(humans.accuracy_before.estimate),
            "accuracy_after": estimate(humans.accuracy_after.estimate),
            "accuracy_change": tested(humans.accuracy_change),
            "leniency_change": tested(humans.leniency_change),
            "error_change": tested(humans.error_change),
        },
        "fingerprint": result.fingerprint,
    }


def groups(result: GroupRates) -> Json:
    """Return the corrected rate of each group and the differences."""
    return {
        "design": result.design,
        "by": result.by,
        "groups": {
            row.name: {
                "kind": row.net.kind,
                "net": estimate(row.net.estimate),
                "gross": estimate(row.gross.estimate),
                "n_labels": row.net.n_labels,
                "n_production": row.net.n_production,
                "leniency": tested(row.leniency),
            }
            for row in result.groups
        },
        "error_rates_alike": asdict(result.rates),
        "comparisons": [
            {
                "first": pair.net.first,
                "second": pair.net.second,
                "kind": pair.net.kind,
                "may_gate": pair.net.may_gate,
                "net": _comparison(pair.net),
                "gross": _comparison(pair.gross),
                "leniency_difference": estimate(pair.leniency_difference),
            }
            for pair in result.pairs
        ],
        "seed": result.seed,
        "fingerprint": result.fingerprint,
    }


def _comparison(found: Comparison) -> Json:
    return estimate(found.difference) | {
        "sides": [estimate(side) for side in found.sides],
        "flip_chance": found.flip_chance,
        "flips_at": found.flips_at,
    }


def ordinal(found: OrdinalAgreement) -> Json:
    """Return how close the judge's grades come."""
    return {
        "exact": estimate(found.exact),
        "within_one": estimate(found.within_one),
        "within_one_by_chance": found.within_one_by_chance,
        "quadratic_kappa": estimate(found.kappa),
        "bias": found.bias,
    }
