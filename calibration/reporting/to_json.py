"""Results as JSON, and the JSON Schemas of that: one converter, and one table of what it writes.

A dataclass is written field by field. `SHAPES` says where JSON has other names, another order or
less than the dataclass. An entry is a string of words, one a key:

========================== =====================================================================
``n``                      the field of that name
``p50_usd=p50``            another name
``kind=net.kind``          the field of a field; null where the first is null
``window.first=first``     a key of an inner object
``*estimate``              all keys of that field, here
``by_model[name]``         a list as an object: the keys are that attribute of its members
``weekly=by_week[]``       pairs, or a mapping, as an object; what follows is of the values
``shares[@classes]``       a list in the order of the classes as an object
``class=class_code@classes`` the name for a code, or the names for several
``value_pp=value%``        a fraction as percentage points
========================== =====================================================================

or three: a key (with its brackets), the function that returns its value, and of what type that is,
in the words of an annotation.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from calibration.errors import LeftOutError

# The classes are named below, not loaded: a command loads those that it prints, and only a schema
# needs all of them.
if TYPE_CHECKING:
    from calibration.agreement.annotators import PairAgreement
    from calibration.agreement.sample_size import ItemsNeeded
    from calibration.agreement.study import AlphaBootstrap, ConfusedPair, Study
    from calibration.analyses.agreement.analysis import AgreementAnalysis
    from calibration.analyses.agreement.ratings import RatingsAgreement
    from calibration.analyses.agreement.recommendations import Recommendation
    from calibration.analyses.agreement.sample_size import PlannedAgreement
    from calibration.analyses.evidence.data import ReviewedTrace
    from calibration.analyses.judge.diagnostics import JudgeDiagnostics
    from calibration.analyses.judge.report import JudgeReport
    from calibration.analyses.success_rate.comparison import Side
    from calibration.analyses.success_rate.report import CostPanel
    from calibration.success_rate.rate import AgentSuccessRate

Json = dict[str, Any]
Names = Mapping[str, Sequence[str]]
Entry = str | tuple[str, Callable[[Any], Any], str]


@dataclass(frozen=True, slots=True)
class _Key:
    """One key: its place in the JSON (empty: spread), and the path from the result to its value."""

    place: tuple[str, ...]
    steps: tuple[str, ...]
    made: Callable[[Any], Any] | None = None
    type: str = ""


def data(result: Any) -> Any:
    """Return a result as JSON: full precision, undefined as null with the reason in a status.

    Examples
    --------
    >>> from calibration.analyses.success_rate.report import Latency
    >>> data(Latency(n=2, p50=1.5, p90=None, p95=None, p99=None))
    {'n': 2, 'p50_s': 1.5, 'p90_s': None, 'p95_s': None, 'p99_s': None}
    >>> data({"interval": (0.25, np.float64(0.75)), 0.8: None})
    {'interval': [0.25, 0.75], '0.8': None}
    """
    return _data(result, {})


def withheld(error: LeftOutError) -> Json:
    """Return the JSON of a command that gives no figure because too many rows are left out."""
    return {
        **dict.fromkeys(error.figures),
        "status": f"not_estimable: {error}",
        "missing_outcome": data(error.missing_outcome),
        "reading": data(error.reading),
    }


def as_text(result: Json) -> str:
    """Return JSON for a file, in full precision; NaN is an error."""
    return json.dumps(result, ensure_ascii=True, allow_nan=False, indent=1) + "\n"


def _data(value: Any, names: Names) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if is_dataclass(type(value)):
        return _object(value, names)
    if isinstance(value, Mapping):
        return {"" if key is None else str(key): _data(of, names) for key, of in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_data(of, names) for of in value]
    return value


def _object(value: Any, names: Names) -> Json:
    for base in type(value).__mro__:
        read = NAMES.get(_full_name(base))
        if read is not None:
            names = {**names, **read(value)}
    found: Json = {}
    for key in _keys(value.__class__):
        whole = value if key.made is None else key.made(value)
        made = _data(_followed(whole, key.steps, names), names)
        _put(found, key.place, made)
    return found


def _put(target: Json, place: tuple[str, ...], made: Any) -> None:
    if not place:
        target |= made
        return
    for key in place[:-1]:
        target = target.setdefault(key, {})
    target[place[-1]] = made


def _followed(value: Any, steps: tuple[str, ...], names: Names) -> Any:
    if value is None or not steps:
        return value
    step, rest = steps[0], steps[1:]
    if step == "%":
        return [100 * end for end in value] if isinstance(value, tuple) else 100 * value
    if step[0] == "@":
        known = names[step[1:]]
        one = isinstance(value, int)
        return known[value] if one else [known[code] for code in value if code < len(known)]
    if step[0] != "[":
        return _followed(getattr(value, step), rest, names)
    if step[1] == "@":
        # A file that uses one class alone still has two: the other was never used.
        pairs: Any = zip(names[step[2:-1]], value, strict=False)
    elif step == "[]":
        pairs = value.items() if isinstance(value, Mapping) else value
    else:
        pairs = ((getattr(of, step[1:-1]), of) for of in value)
    return {key: _followed(of, rest, names) for key, of in pairs}


def _full_name(of: type) -> str:
    return f"{of.__module__}.{of.__qualname__}"


@cache
def _loaded() -> dict[str, Any]:
    """Load every class that has a shape; return what annotations of types may name."""
    found: dict[str, Any] = {"Json": Json, "Literal": Literal}
    for name in (*SHAPES, *(name for name, _ in ROOTS.values())):
        module, _, own = name.rpartition(".")
        found[own] = getattr(import_module(module), own)
    return found


def _hints(of: Any) -> dict[str, Any]:
    return get_type_hints(of, localns=_loaded() if of is _Rated else None)


@cache
def _keys(of: type) -> tuple[_Key, ...]:
    """Return the keys of a type: those of `SHAPES`, else one per field."""
    found_shapes = (SHAPES.get(_full_name(base)) for base in of.__mro__)
    entries = next(filter(None, found_shapes), None)
    if entries is None:
        entries = tuple(field.name for field in fields(of))
    found: list[_Key] = []
    for entry in entries:
        if isinstance(entry, str):
            found += [_key(word) for word in entry.split()]
        else:
            place, rest = re.findall(r"([\w.]+)(.*)", entry[0])[0]
            found.append(_Key(tuple(place.split(".")), _steps(rest), *entry[1:]))
    return tuple(found)


def _key(word: str) -> _Key:
    place, _, path = word.rpartition("=")
    steps = _steps(path)
    if word.startswith("*"):
        return _Key((), steps)
    return _Key(tuple((place or steps[0]).split(".")), steps)


def _steps(path: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\[@?\w*\]|@?\w+|%", path))


def schema(name: str = "report") -> Json:
    """Return the stored JSON Schema of the output of a command, by its name in `ROOTS`."""
    text = files("calibration.reporting").joinpath(f"schemas/{name}.schema.json").read_text("utf-8")
    loaded: Json = json.loads(text)
    return loaded


def schema_of(name: str) -> Json:
    """Build the JSON Schema from the types of the results and `SHAPES`."""
    root, title = ROOTS[name]
    shared: Json = {}
    made = _schema(_loaded()[root.rpartition(".")[2]], shared)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": "Rates are fractions, differences percentage points where a name ends in "
        "_pp, money USD, times seconds. Undefined is null, never NaN.",
        **made,
        "$defs": dict(sorted(shared.items())),
    }


PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}


def _schema(hint: Any, shared: Json, steps: tuple[str, ...] = ()) -> Json:
    """Return the schema of a type, or of the type at the end of the steps."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _either([_schema(of, shared, () if of is NoneType else steps) for of in args])
    if steps:
        return _schema_at(hint, args, shared, steps)
    if hint in PLAIN:
        return {"type": PLAIN[hint]}
    if origin is Literal:
        return {"enum": list(args)}
    if isinstance(hint, type) and is_dataclass(hint):
        return _shared(hint, shared)
    if origin is tuple and args[-1] is not Ellipsis:
        items = [_schema(of, shared) for of in args]
        return {"type": "array", "prefixItems": items, "minItems": len(args), "maxItems": len(args)}
    if origin is not None and issubclass(origin, Mapping):
        inner = _schema(args[1], shared)
        return {"type": "object"} | ({"additionalProperties": inner} if inner else {})
    if origin is not None and issubclass(origin, Sequence):
        return {"type": "array", "items": _schema(args[0], shared)}
    return {"type": "array"} if origin is np.ndarray else {}


def _type(words: str) -> Any:
    """Return the type that an annotation says."""
    said = type("_Said", (), {"__annotations__": {"of": words}})
    return get_type_hints(said, localns=_loaded())["of"]


def _schema_at(hint: Any, args: tuple[Any, ...], shared: Json, steps: tuple[str, ...]) -> Json:
    step, rest = steps[0], steps[1:]
    if step == "%":
        return _schema(hint, shared)
    if step[0] == "@":
        text = {"type": PLAIN[str]}
        return text if hint is int else {"type": "array", "items": text}
    if step[0] == "[":
        inner = args[0] if len(args) < 2 or args[1] is Ellipsis else args[1]
        if step == "[]" and args[-1] is Ellipsis:
            inner = get_args(inner)[1]
        return {"type": "object", "additionalProperties": _schema(inner, shared, rest)}
    of_property = getattr(hint, step, None)
    hints = _hints(of_property.fget if isinstance(of_property, property) else hint)
    return _schema(hints["return" if isinstance(of_property, property) else step], shared, rest)


def _shared(of: type, shared: Json) -> Json:
    name = of.__name__
    if name not in shared:
        shared[name] = {}  # against types that hold themselves
        about = (of.__doc__ or "").partition("\n")[0]
        shared[name] = {"description": about, **_object_schema(of, shared)}
    return {"$ref": f"#/$defs/{name}"}


def _object_schema(of: type, shared: Json) -> Json:
    whole = _closed()
    for key in _keys(of):
        known = set(shared)
        made = _schema(of if key.made is None else _type(key.type), shared, key.steps)
        if not key.place:
            if "$ref" not in made:  # a mapping, whose keys depend on the data
                whole["additionalProperties"] = made["additionalProperties"]
                continue
            spread = made["$ref"].rpartition("/")[2]
            whole["additionalProperties"] = (
                whole["additionalProperties"] or shared[spread]["additionalProperties"]
            )
            for name, inner in shared[spread]["properties"].items():
                _add(whole, name, inner)
            if spread not in known:
                del shared[spread]
            continue
        name = key.place[-1]
        if name in ("fingerprint", "sha256"):
            made |= {"pattern": "^[0-9a-f]{64}$"}
        elif made == {"type": "integer"} and re.match(r"n(_|$)", name):
            made |= {"minimum": 0}
        target = whole
        for part in key.place[:-1]:
            _add(target, part, target["properties"].get(part, _closed()))
            target = target["properties"][part]
        _add(target, name, made)
    return whole


def _closed() -> Json:
    return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def _add(target: Json, name: str, made: Json) -> None:
    target["properties"][name] = made
    if name not in target["required"]:
        target["required"].append(name)


def _either(options: list[Json]) -> Json:
    """Return a schema satisfied by any of these."""
    if all(option.keys() == {"type"} for option in options):
        return {"type": [option["type"] for option in options]}
    return {"anyOf": options}


@dataclass(frozen=True, slots=True)
class _Rated:
    """One side of a comparison with its rate."""

    side: "Side"
    rate: "AgentSuccessRate"


def _next_steps(of: "AgreementAnalysis") -> "tuple[Recommendation, ...]":
    from calibration.analyses.agreement.recommendations import next_steps

    return next_steps(of)


def _costly_items(of: "RatingsAgreement") -> list[Json]:
    items = of.ratings.items
    return [{"item": items[costly.item], "cost": costly.cost} for costly in of.study.costly]


def _coefficients(of: "Study") -> dict[str, Json]:
    counts = {"n_items": of.n_items, "n_ratings": of.n_ratings}
    return {name: data(found) | counts for name, found in of.coefficients.items()}


def _per_class(of: "Study") -> tuple[Json, ...]:
    rows = zip(of.specific, of.class_kappas, of.class_shares, strict=False)
    return tuple(
        {"specific_agreement": same, "fleiss_kappa": kappa, "share": share}
        for same, kappa, share in rows
    )


def _both(of: "PairAgreement | ConfusedPair") -> tuple[int, int]:
    return of.first, of.second


def _reaches(of: "AlphaBootstrap") -> list[Json]:
    return [{"bound": bound, "probability": share} for bound, share in of.reaches.items()]


def _needed(planned: "PlannedAgreement", part: "ItemsNeeded") -> Json:
    found: Json = data(part)
    return found | {"n_labels": planned.labels(part)}


def _why_not(of: "JudgeReport", part: str) -> Json | None:
    why = of.not_computed.get(part)
    return None if why is None else {"status": f"not_estimable: {why}"}


def _grades(of: "JudgeDiagnostics") -> Json | None:
    return None if of.grades is None else data(of.grades) | {"scale": of.grade_names}


def _disputed(of: "ReviewedTrace") -> Json:
    parts = ("question", "cost", "entropy", "adjudicated")
    named = {"trace_id": of.trace_id, "labels": of.classes}
    return named | {name: getattr(of, name) for name in parts}


def _differing(of: "ReviewedTrace") -> Json:
    reasons = {label.reviewer: label.rationale for label in of.labels if label.rationale}
    return {
        "trace_id": of.trace_id,
        "verdict": of.verdict,
        "labels": of.classes,
        "rationales": reasons,
    }


def _reviewed(of: "ReviewedTrace") -> Json:
    first = ("trace_id", "workflow", "agent", "verdict", "human", "adjudicated")
    last = ("reason", "evidence", "question", "credit_difference", "weight", "moves")
    of_label = ("reviewer", "outcome", "rationale", "evidence")
    labels = [{name: getattr(label, name) for name in of_label} for label in of.labels]
    return (
        {name: getattr(of, name) for name in first}
        | {"labels": labels}
        | {name: getattr(of, name) for name in last}
    )


def _nodes(of: "JudgeDiagnostics") -> dict[str, Json]:
    return {
        name: data(quality) | {"errors_begin": of.errors.get(name, 0.0)}
        for name, quality in of.nodes.items()
    }


def _of_ceiling(of: "CostPanel") -> dict[str, float] | None:
    if of.of_ceiling is None:
        return None
    return dict(zip(("p50", "p90", "p99"), of.of_ceiling, strict=True))


# The names for codes, which a result holds once and its parts use.
NAMES: dict[str, Callable[[Any], Names]] = {
    "calibration.analyses.agreement.analysis.AgreementAnalysis": lambda of: {
        "classes": of.classes,
        "raters": of.reviewers,
    },
    "calibration.analyses.agreement.ratings.RatingsAgreement": lambda of: {
        "classes": of.ratings.classes,
        "raters": of.ratings.raters,
    },
    "calibration.analyses.judge.calibration.JudgeCalibration": lambda of: {
        "classes": of.classes,
        "verdicts": of.verdict_names,
    },
    "calibration.analyses.judge.diagnostics.JudgeDiagnostics": lambda of: {
        "verdicts": of.verdict_names
    },
    "calibration.success_rate.rate.AgentSuccessRate": lambda of: {"classes": of.classes},
    "calibration.analyses.success_rate.report.SuccessRateReport": lambda of: {
        "classes": [c.outcome for c in of.classes]
    },
    "calibration.analyses.success_rate.comparison.ProductionComparison": lambda of: {
        "classes": [c.outcome for c in of.found.class_changes]
    },
    "calibration.analyses.success_rate.comparison.SeveralRuns": lambda of: {
        "classes": list(of.found.runs[0].rate.classes)
    },
}

_THREE = "krippendorff_alpha=alpha gwet_ac=ac1 percent_agreement"

SHAPES: dict[str, tuple[Entry, ...]] = {
    "calibration.statistics.estimate.Estimate": (
        "value interval se df n method confidence_level status any_time",
    ),
    "calibration.statistics.means.MeanAgainstZero": ("*estimate p_value",),
    "calibration.analyses.look.FileLook": ("for=used_for command written roles reading",),
    # Agreement
    "calibration.analyses.agreement.analysis.AgreementAnalysis": (
        "*study against_keys=profiles near near_misses by_task",
        ("weighted_to_production", lambda of: of.weighted or None, "dict[str, Estimate] | None"),
        "cluster",
        ("disputed", lambda of: list(map(_disputed, of.disputed)), "list[Json]"),
        ("next_steps", _next_steps, "tuple[Recommendation, ...]"),
        "latent_truth_status=truth.status unplanned exposed perturbed "
        "random_sample_of_production=is_sample "
        "batch_id simulated fingerprint",
    ),
    "calibration.analyses.agreement.ratings.RatingsAgreement": (
        "*study",
        ("costly_items", _costly_items, "list[Json]"),
        "classes=ratings.classes weights cluster reading",
    ),
    "calibration.agreement.study.Study": (
        ("coefficients", _coefficients, "dict[str, Json]"),
        "bootstrap",
        ("per_class[@classes]", _per_class, "tuple[Json, ...]"),
        "confusions per_node=nodes[] per_week=groups[] per_reviewer=beside",
        "pairwise=pairs equal_use_of_classes=margins prevalence "
        "fleiss_kappa_of_pairs=fleiss_of_pairs",
    ),
    "calibration.agreement.study.AlphaBootstrap": (
        "krippendorff_alpha.percentile=percentile krippendorff_alpha.bca=bca",
        ("krippendorff_alpha.reaches", _reaches, "list[Json]"),
        "n_resamples seed",
    ),
    "calibration.agreement.study.ConfusedPair": (
        ("classes@classes", _both, "tuple[int, int]"),
        "*share",
    ),
    "calibration.agreement.disagreement.Share": (
        "share=observed share_by_chance=expected lift alpha n_items",
    ),
    "calibration.agreement.study.NodeAgreement": (
        f"{_THREE} disagreement=share n_items n_ratings",
    ),
    "calibration.agreement.coefficients.Agreement": (f"{_THREE} n_items n_ratings",),
    "calibration.agreement.annotators.BesideOthers": (
        "reviewer=rater@raters agreement_with_others krippendorff_alpha_without=alpha_without "
        "change_without=change p_holm",
    ),
    "calibration.agreement.annotators.PairAgreement": (
        ("reviewers@raters", _both, "tuple[int, int]"),
        "n_shared table percent_agreement krippendorff_alpha=alpha cohen_kappa=kappa "
        "equal_margins=margins bias_index kappa_max",
    ),
    "calibration.agreement.annotators.EqualMargins": ("test n_differing differences",),
    "calibration.agreement.annotators.MarginDifference": (
        "reviewer=rater@raters class=class_code@classes share share_of_others difference p_value "
        "p_holm",
    ),
    "calibration.agreement.disagreement.Prevalence": (
        "status gap_alpha_less_ac1=gap prevalence_index rare_classes=rare_classes@classes "
        "unused_classes=unused_classes@classes",
    ),
    "calibration.analyses.agreement.analysis.ReviewerProfile": (
        "reviewer=reviewer_id n_labels against_consensus=consensus against_canonical=canonical",
    ),
    "calibration.agreement.annotators.AgainstKey": (
        "n accuracy gwet_ac cohen_kappa per_class=per_class[@classes] "
        "rows_key_columns_reviewer=table",
    ),
    "calibration.statistics.contingency.ClassAgainstKey": ("recall precision",),
    "calibration.analyses.agreement.recommendations.Recommendation": (
        "kind what why",
        ("traces", lambda of: () if of.traces is None else of.traces.trace_ids, "tuple[str, ...]"),
        ("command", lambda of: None if of.command is None else f"asr {of.command}", "str | None"),
    ),
    # Plans and the reference dataset
    "calibration.analyses.reviewers.progress.StoppingRule": (
        "batch_id=batch_id may_stop goal now n more confidence_level status",
    ),
    "calibration.analyses.agreement.sample_size.PlannedAgreement": (
        "*plan",
        ("typical", lambda of: _needed(of, of.plan.typical), "Json"),
        ("assured", lambda of: _needed(of, of.plan.assured), "Json"),
        "classes=basis.classes basis=basis.batch_id n_basis=basis.n_labels "
        "simulated=basis.simulated notes",
    ),
    "reference_dataset.repeat_pass.RepeatPass": (
        "n_traces coefficients=overall per_class=classes[] per_node=nodes[] table",
        ("n_disagreements", lambda of: len(of.disagreements), "int"),
        "settled repaired_agreed disagreements",
    ),
    "reference_dataset.statistics.DatasetReport": ("*counts second_pass",),
    "reference_dataset.repeat_pass.RepeatAgreement": (
        "percent_agreement krippendorff_alpha=alpha gwet_ac=ac1",
    ),
    # Batches
    "calibration.analyses.sampling.draw.DrawnBatch": (
        "batch_id=batch.batch_id n=batch.n_items",
        ("population", lambda of: of.batch.design["population"], "int"),
        (
            "inclusion_probability",
            lambda of: of.probabilities[0] if of.equal else None,
            "float | None",
        ),
        "inclusion_probabilities=probabilities strata labels_wanted=batch.labels_wanted",
        ("labels", lambda of: sum(of.labels_wanted), "int"),
        ("design", lambda of: of.batch.design, "Json"),
        "trace_ids labels_wanted_of_each=labels_wanted",
    ),
    # Judges
    "calibration.analyses.judge.report.JudgeReport": (
        "*calibration",
        (
            "diagnostics",
            lambda of: of.diagnostics or _why_not(of, "diagnostics"),
            "JudgeDiagnostics | Json | None",
        ),
        ("groups", lambda of: of.groups or _why_not(of, "groups"), "GroupRates | Json | None"),
        ("drift", lambda of: of.drift or _why_not(of, "drift"), "JudgeDrift | Json | None"),
    ),
    "calibration.analyses.judge.calibration.JudgeCalibration": (
        "*provenance.named design estimand classes credit own_credit n_labels=calibration.n_labels "
        "n_production=calibration.n_production headline=calibration.headline "
        "estimates=calibration.estimates[].net estimates_gross=calibration.estimates[].gross "
        "class_shares=calibration.class_shares[][@classes] judge.kappa=calibration.judge.kappa "
        "judge.alpha=alpha judge.accuracy=calibration.judge.accuracy "
        "judge.per_class=calibration.judge.per_class[@classes] label_worth=calibration.gain "
        "confusion.rows_human=classes confusion.columns_verdict=verdict_names "
        "confusion.counts=calibration.confusion.table human",
        ("disagreements", lambda of: list(map(_differing, of.disagreements)), "list[Json]"),
        "variance_parts=calibration.variance_parts reviewers noise_ceiling agreed_error "
        "composition two_phase=calibration.two_phase floor=calibration.post_stratification.floor "
        "floor_gross=calibration.post_stratification_gross.floor skipped skips=if_skipped "
        "refusals=calibration.refusals warnings=calibration.warnings notes reading recoded seed "
        "fingerprint",
    ),
    "calibration.judge_calibration.reviewer_error.TwoPhase": (
        "*estimate first_phase=first correction overlap",
    ),
    "calibration.judge_calibration.reviewer_error.NoiseCeiling": ("reviewer judge",),
    "calibration.judge_calibration.bias.OrdinalAgreement": (
        "exact within_one within_one_by_chance quadratic_kappa=kappa bias",
    ),
    "calibration.judge_calibration.bias.NodeQuality": (
        "accuracy yes_recall yes_precision no_recall no_precision "
        "table_human_by_judge_yes_no=table only_human only_judge",
    ),
    "calibration.analyses.judge.diagnostics.JudgeDiagnostics": (
        "ceiling",
        ("grades", _grades, "Json | None"),
        ("per_node", _nodes, "dict[str, Json]"),
        ("errors_without_verdict", lambda of: of.errors.get(None, 0.0), "float"),
        ("disagreements", lambda of: list(map(_reviewed, of.disagreements)), "list[Json]"),
        "leniency leniency_by=leniency_by[][group] slopes_per_doubling=slopes "
        "own_family retest.changed=retest.changed retest.two_differ=retest.differ "
        "retest.most_asked=retest.most_asked "
        "retest.changed_by_first_verdict=retest.per_verdict[@verdicts] over_time missing notes "
        "fingerprint",
    ),
    "calibration.agreement.annotators.BesidePanel": (
        "humans=panel judge=outsider difference within_human_disagreement=within",
    ),
    "calibration.analyses.judge.diagnostics.Leniency": (
        "*gap p_holm judge_credit=verdict_credit human_credit",
    ),
    "calibration.analyses.judge.drift.JudgeDrift": (
        "before after n verdicts=verdict_names table_before_by_after=table classes=classes[name] "
        "credit_change same alpha against_humans fingerprint",
    ),
    "calibration.analyses.judge.drift.ClassDrift": (
        "before after only_before only_after test p_holm",
    ),
    "calibration.analyses.judge.drift.AgainstHumans": (
        "n accuracy_before=accuracy_before.estimate accuracy_after=accuracy_after.estimate "
        "accuracy_change leniency_change error_change",
    ),
    "calibration.analyses.judge.groups.GroupRates": (
        "design by groups=groups[name] error_rates_alike=rates comparisons=pairs ranks seed "
        "fingerprint",
    ),
    "calibration.analyses.judge.groups.GroupRow": (
        "kind=net.kind net=net.estimate gross=gross.estimate n_labels=net.n_labels "
        "n_production=net.n_production own_weight=net.own_weight "
        "own=net.own leniency",
    ),
    "calibration.analyses.judge.groups.GroupPair": (
        "first=net.first second=net.second kind=net.kind may_gate=net.may_gate net gross "
        "leniency_difference",
    ),
    "calibration.judge_calibration.groups.GroupComparison": (
        "*difference sides p=p_value p_holm flip_chance flips_at",
    ),
    # Success rates
    "calibration.analyses.success_rate.report.SuccessRateReport": (
        ("format", lambda of: "asr-report/1", "Literal['asr-report/1']"),
        "outcomes given_by calibrated kind target n n_tasks window.first=first window.last=last "
        "asr asr_gross asr_literal asr_without_abandoned pass_rate mean_effective_penalty identity "
        "asr_range_missing_cost=asr_range class_shares=classes[outcome].share change "
        "why_no_change cost",
        ("weekly", lambda of: () if of.weekly is None else of.weekly.weeks, "tuple[Week, ...]"),
        "weekly_rule=weekly by_workflow=by_workflow[name] by_model=by_model[name] "
        "by_agent_version=by_version[name] by_harness=by_harness[name] "
        "by_tag=by_tag[name] tags_left_out tag_meanings passes sensitivity at_ceilings own_credit "
        "work_lists=work_lists[outcome] "
        "signals=signals[key] verdict_mix latency goals[name] by_length[key] set_aside judged "
        "reading missing_outcome warnings notes basis marks details evaluation[name] origin "
        "fingerprint=origin.fingerprint",
    ),
    "calibration.success_rate.trend.WeeklySeries": (
        "false_alarm_rate n_without_week lasting_drop=drop",
        ("rolling", lambda of: "pooled" if of.pooled else "mean of weeks", "str"),
    ),
    "calibration.success_rate.trend.LastingDrop": (
        "alarm since baseline cusum=value limit n_weeks left_out method status",
    ),
    "calibration.success_rate.trend.Week": (
        "week n asr=rate rolling_4_weeks=rolling expected anomaly=expected.anomaly cusum "
        "below_baseline=below",
    ),
    "calibration.success_rate.trend.Expectation": ("value interval n_weeks",),
    "calibration.success_rate.rate.AgentSuccessRate": (
        "asr asr_gross asr_literal asr_without_abandoned pass_rate mean_effective_penalty "
        "asr_range_missing_cost=asr_range cost_coverage class_shares=class_shares[@classes]",
    ),
    "calibration.analyses.success_rate.report.AtOtherWeights": (
        "name credit=credit[@classes] asr",
    ),
    "calibration.analyses.success_rate.report.Change": (
        "later earlier before after asr n_pairs class_shares=classes[outcome]",
    ),
    "calibration.success_rate.comparison.Difference": (
        "value_pp=estimate.value% interval=estimate.interval% p=p_value "
        "mde_pp=minimum_detectable% n=estimate.n method=estimate.method "
        "confidence_level=estimate.confidence_level status=estimate.status",
    ),
    "calibration.success_rate.comparison.ClassChange": (
        "*change before after p=p_value adjusted_p=adjusted_p_value flagged",
    ),
    "calibration.analyses.success_rate.report.CostPanel": (
        "n n_known coverage n_without_ceiling mean_usd=mean p50_usd=p50 p90_usd=p90 p99_usd=p99 "
        "share_above_ceiling cost_per_success_usd=per_success",
        ("of_ceiling", _of_ceiling, "dict[str, float] | None"),
    ),
    "calibration.analyses.success_rate.report.GoalLine": (
        "title target *estimate gap_pp=gap% reached chance chance_method=method "
        "chance_status=status",
    ),
    "calibration.success_rate.trials.SuccessByLength": ("step_rate bins",),
    "calibration.analyses.success_rate.evaluation.EvaluationCheck": ("title status figure action",),
    "calibration.analyses.success_rate.report.RateGroup": (
        "n asr asr_gross pass_rate cost ceiling_usd unit",
    ),
    "calibration.success_rate.pass_at_k.PassAtK": (
        "k pass_at_k pass_hat_k n_tasks n_too_few band",
    ),
    # What the numbers of a taxonomy could be
    "calibration.analyses.success_rate.suggestions.SuggestedCeilings": (
        ("format", lambda of: "asr-ceilings/1", "Literal['asr-ceilings/1']"),
        "percentile basis accepted workflows=workflows[workflow] confidence_level notes "
        "batch_id reading fingerprint",
    ),
    "calibration.analyses.success_rate.suggestions.SuggestedCeiling": (
        "unit ceiling_usd n suggested share_above",
    ),
    "calibration.analyses.success_rate.suggestions.CreditFit": (
        ("format", lambda of: "asr-fitted-credit/1", "Literal['asr-fitted-credit/1']"),
        "file measure partial=found.partial credit=found.credit present n=found.n "
        "n_tasks=found.n_tasks by_task classes=found.classes[outcome] rates=found.rates[name] "
        "reading seed n_resamples confidence_level fingerprint",
    ),
    "calibration.success_rate.fitted_credit.ClassUsefulness": ("n mean fitted",),
    "calibration.success_rate.fitted_credit.RateAtCredit": ("credit asr",),
    # Repeated trials
    "calibration.analyses.reliability.trials.TrialsAnalysis": (
        ("format", lambda of: "asr-trials/1", "Literal['asr-trials/1']"),
        "success_source model agent_version n_trials n_tasks ks pass_at_k pass_hat_k band task_set "
        "independent_trials bayesian by_difficulty by_category by_tier g_pass_at_k g_threshold "
        "retries step_compounding failure_modes baseline tasks tasks_left_out missing_outcome "
        "reading other_trials notes sources settings seed n_resamples confidence_level version "
        "fingerprint",
    ),
    "calibration.analyses.reliability.tasks.TaskAudit": (
        ("format", lambda of: "asr-tasks/1", "Literal['asr-tasks/1']"),
        "success_source n_tasks n_runs findings[name] agreement n_telling n_one_run n_unchecked "
        "tasks tasks_left_out set_aside reading notes sources confidence_level",
    ),
    "calibration.analyses.reliability.trials.PassFigure": (
        "value=estimate.value interval=estimate.interval n_tasks=estimate.n "
        "n_tasks_too_few_trials method=estimate.method status=estimate.status",
    ),
    "calibration.analyses.reliability.trials.SuccessAfterRetries": (
        "retries success expected_tries independent.success=independent_success "
        "independent.expected_tries=independent_tries expected_usd",
    ),
    "calibration.analyses.reliability.trial_changes.TrialsChange": (
        "*difference before after n_tasks p_holm evidence",
    ),
    "calibration.analyses.success_rate.report.WorkList": ("goes_to n weekly=by_week[] first",),
    "calibration.analyses.success_rate.report.Signal": ("name unit over_all weekly=by_week[]",),
    "calibration.analyses.success_rate.report.VerdictMix": ("status weekly=weeks",),
    "calibration.analyses.success_rate.report.VerdictWeek": (
        "week n shares=shares[] distance_pp=shift.distance% by_chance_pp=shift.by_chance% "
        "p=shift.p_value adjusted_p=shift.adjusted_p_value flagged=shift.flagged "
        "status=shift.status",
    ),
    "calibration.analyses.success_rate.report.Latency": (
        "n p50_s=p50 p90_s=p90 p95_s=p95 p99_s=p99",
    ),
    "calibration.analyses.success_rate.report.Origin": (
        "sources settings sampling judge taxonomy.version=taxonomy_version "
        "taxonomy.fingerprint=taxonomy_fingerprint seed n_resamples confidence_level "
        "version=package_version",
    ),
    "calibration.analyses.success_rate.comparison.ProductionComparison": (
        ("format", lambda of: "asr-comparison/1", "Literal['asr-comparison/1']"),
        ("a", lambda of: _Rated(of.a, of.found.before), "_Rated"),
        ("b", lambda of: _Rated(of.b, of.found.after), "_Rated"),
        "difference=found difference_gross=found.asr_gross difference_pass_rate=found.pass_rate "
        "class_shares=found.class_changes[outcome] verdict=found.verdict rule=found.rule "
        "margin_pp=found.margin% non_inferior=found.non_inferior",
        ("calibrated", lambda of: False, "bool"),
        "credit=credit[@classes] restated reading=readings warnings marks origin "
        "fingerprint=origin.fingerprint",
    ),
    "calibration.success_rate.comparison.Comparison": (
        "*asr paired n_pairs",
        ("n_first_only", lambda of: of.n_alone[0], "int"),
        ("n_second_only", lambda of: of.n_alone[1], "int"),
        "paired_only",
    ),
    "calibration.reporting.to_json._Rated": ("*side *rate",),
    "calibration.analyses.success_rate.comparison.SeveralRuns": (
        ("format", lambda of: "asr-ranking/1", "Literal['asr-ranking/1']"),
        "by baseline=found.baseline runs=found.runs[name] against_baseline=found.against_baseline "
        "pairs=found.pairs rule=found.rule inputs",
        ("calibrated", lambda of: False, "bool"),
        "credit=credit[@classes] restated reading=readings warnings marks origin "
        "fingerprint=origin.fingerprint",
    ),
    "calibration.analyses.success_rate.comparison.ComparedRuns": ("run *side",),
    "calibration.success_rate.ranking.RankedRuns": (
        "n=rate.n n_tasks=rate.n_clusters rank best_share *rate",
    ),
    "calibration.success_rate.ranking.RunPair": (
        "first second *difference p_holm",
        ("paired", lambda of: of.n_pairs > 0, "bool"),
        "n_pairs",
    ),
    "calibration.analyses.success_rate.comparison.Side": (
        "name n n_tasks taxonomy.version=taxonomy_version "
        "taxonomy.fingerprint=taxonomy_fingerprint set_aside notes",
    ),
    "calibration.analyses.demo.Demo": (
        "raw=report.judged.judge_raw human_only=report.judged.human_only "
        "corrected=report.judged.corrected without_reviewer_error=report.judged.one_phase truth",
        ("simulated", lambda of: True, "bool"),
        "seed fingerprint=report.origin.fingerprint",
    ),
    "calibration.analyses.status.StoreStatus": (
        "n_traces batches=rated",
        ("rate", lambda of: of.rate, "Estimate"),
        "calibrated=results.calibrated",
        ("judge", lambda of: of.results and of.results.judge_id, "str | None"),
        "trend=results.weekly.drop "
        "further=results.further stopping=results.stopping alpha=results.alpha "
        "progress[batch_id] next simulated",
    ),
    "calibration.analyses.reviewers.progress.Progress": (
        "n_items items_open labels labels_left seconds_per_label hours_left",
        ("n_in_progress", lambda of: len(of.leases), "int"),
        ("n_skipped", lambda of: len(of.skips), "int"),
        ("n_flagged", lambda of: len(of.flags), "int"),
    ),
    # Conversations and tools
    "calibration.analyses.reliability.tools.ToolAnalysis": (
        ("format", lambda of: "asr-tools/1", "Literal['asr-tools/1']"),
        "source n_interactions conversation_correctness answer_correctness interaction_correctness "
        "tool_correctness bands by_tool[name] forbidden[name] required[name] before routes loops "
        "worst "
        "conversations interactions reading set_aside settings=options",
    ),
    "calibration.analyses.reliability.tools.StoredRoutes": (
        ("format", lambda of: "asr-routes/1", "Literal['asr-routes/1']"),
        "source n_runs n_labelled correct routes",
    ),
    "calibration.analyses.reliability.tools.ConversationCorrectness": (
        "*estimate n_conversations=estimate.n n_left_out n_rows_of_none",
    ),
    "calibration.analyses.reliability.tools.ToolCorrectness": (
        "*overall selection parameters sequence utilisation share_correct n_without_expected "
        "n_without_utilisation",
    ),
    "calibration.analyses.reliability.tools.ConversationRow": (
        "conversation_id correct n_interactions n_correct n_set_aside tool_correctness "
        "interaction_pass_at_k=of_interactions.interaction_pass_at_k "
        "interaction_pass_hat_k=of_interactions.interaction_pass_hat_k "
        "identical_in_a_row=repeats.in_a_row identical_anywhere=repeats.anywhere",
    ),
    "calibration.analyses.reliability.tools.InteractionRow": (
        "conversation_id interaction answer_score answer_correct correct n_calls n_expected",
        ("tool_correctness", lambda of: of.tools and of.tools.overall, "float | None"),
        "tools_correct selection=tools.selection parameters=tools.parameters "
        "sequence=tools.sequence",
        ("utilisation", lambda of: of.tools and of.tools.utilisation, "float | None"),
        "missing=tools.missing extra=tools.extra",
    ),
    "calibration.analyses.reliability.grading.GradingAnalysis": (
        ("format", lambda of: "asr-grades/1", "Literal['asr-grades/1']"),
        "sources n_traces graders[name] grades set_aside",
    ),
    # Repeated runs
    "calibration.statistics.resampling.TaskEstimate": ("value interval n_tasks=n method status",),
    "calibration.analyses.reliability.runs.ReliabilityReport": (
        ("format", lambda of: "asr-reliability/1", "Literal['asr-reliability/1']"),
        "success_source simulated overall consistency predictability robustness safety n_runs "
        "n_tasks runs_per_task by tasks reading set_aside notes",
        (
            "trajectory_measure",
            lambda of: "divergence" if of.divergence else "distance",
            "Literal['distance', 'divergence']",
        ),
        "seed n_resamples confidence_level fingerprint",
    ),
    "calibration.reliability.predictability.Predictability": (
        "score calibration auroc risk_coverage brier_skill n_runs calibration_bins=bins "
        "risk_coverage_curve=curve",
    ),
    "calibration.analyses.reliability.runs.TaskReliability": (
        "task_id difficulty category tier n_runs n_success score outcome trajectory_distribution "
        "trajectory_sequence confidence resource success_rates worst_severity",
    ),
    # Layers
    "calibration.analyses.layers.LayersAnalysis": (
        ("format", lambda of: "asr-layers/1", "Literal['asr-layers/1']"),
        "source layers of_users all=all_types types[name] n_tasks confidence_level notes "
        "reading set_aside simulated fingerprint",
    ),
    "calibration.analyses.layers.FailureType": ("n n_nowhere caught[layer]",),
    "calibration.analyses.layers.CaughtBy": ("n share n_alone alone",),
    # Gates
    "calibration.analyses.gates.run.GateAnalysis": (
        ("passed", lambda of: not of.report.blocking, "bool"),
        "exit_code=report.exit_code marks gates=report.gates asr calibrated kind "
        "outcomes given_by rates n_runs n_tasks baseline notes set_aside reading settings "
        "taxonomy.version=taxonomy_version taxonomy.fingerprint=taxonomy_fingerprint seed "
        "fingerprint",
    ),
    "calibration.gates.evaluate.GateResult": (
        "name level status blocks value interval threshold rule n method why parts accepted",
    ),
    "calibration.gates.gate_file.GateFile": (
        "confidence_level partial_plus_passes max_left_out ceilings",
    ),
    "calibration.analyses.gates.baseline.Comparable": ("taxonomy failed",),
}

# Results with their own schema, by file name.
ROOTS: dict[str, tuple[str, str]] = {
    "agreement": (
        "calibration.analyses.agreement.analysis.AgreementAnalysis",
        "asr agreement --json",
    ),
    "agreement_file": (
        "calibration.analyses.agreement.ratings.RatingsAgreement",
        "asr agreement FILE --json",
    ),
    "audit": ("calibration.analyses.sampling.escalation.Audit", "asr audit --json"),
    "batch": ("calibration.analyses.sampling.draw.DrawnBatch", "asr sample --json"),
    "calibration": ("calibration.analyses.judge.report.JudgeReport", "asr calibrate --json"),
    "ceilings": (
        "calibration.analyses.success_rate.suggestions.SuggestedCeilings",
        "asr taxonomy suggest --json",
    ),
    "comparison": (
        "calibration.analyses.success_rate.comparison.ProductionComparison",
        "asr compare --json",
    ),
    "fitted_credit": (
        "calibration.analyses.success_rate.suggestions.CreditFit",
        "asr taxonomy fit-credit --json",
    ),
    "gates": ("calibration.analyses.gates.run.GateAnalysis", "asr gate --json"),
    "grades": ("calibration.analyses.reliability.grading.GradingAnalysis", "asr grade --json"),
    "layers": ("calibration.analyses.layers.LayersAnalysis", "asr layers --json"),
    "look": ("calibration.analyses.look.FileLook", "asr look FILE --json"),
    "plan": ("calibration.analyses.sampling.planning.Plan", "asr plan labels --json"),
    "stopping": ("calibration.analyses.reviewers.progress.StoppingRule", "asr plan stop --json"),
    "plan_trials": (
        "calibration.analyses.reliability.trial_plan.TrialPlan",
        "asr plan trials --json",
    ),
    "plan_agreement": (
        "calibration.analyses.agreement.sample_size.PlannedAgreement",
        "asr plan agreement --json",
    ),
    "ranking": (
        "calibration.analyses.success_rate.comparison.SeveralRuns",
        "asr compare --json of several sets of runs",
    ),
    "reliability": (
        "calibration.analyses.reliability.runs.ReliabilityReport",
        "asr reliability --json",
    ),
    "routes": ("calibration.analyses.reliability.tools.StoredRoutes", "asr tools --store --json"),
    "report": ("calibration.analyses.success_rate.report.SuccessRateReport", "asr report --json"),
    "status": ("calibration.analyses.status.StoreStatus", "asr status --json"),
    "tasks": ("calibration.analyses.reliability.tasks.TaskAudit", "asr tasks audit --json"),
    "tools": ("calibration.analyses.reliability.tools.ToolAnalysis", "asr tools --json"),
    "trials": ("calibration.analyses.reliability.trials.TrialsAnalysis", "asr trials --json"),
}
