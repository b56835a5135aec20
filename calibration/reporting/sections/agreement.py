"""Agreement as text for a terminal: can it be trusted, where, who, and on which items."""

from collections.abc import Collection, Iterator, Sequence

from calibration.agreement.coefficients import KRIPPENDORFF_ALPHA
from calibration.agreement.study import RELY, TENTATIVE, Study
from calibration.analyses.agreement.analysis import AgreementAnalysis
from calibration.analyses.agreement.ratings import RatingsAgreement
from calibration.analyses.agreement.recommendations import next_steps
from calibration.reporting.render_text import (
    CHOSEN,
    SIMULATED,
    confusion,
    exposed,
    figure,
    notes,
    number,
    percent,
    table,
)
from calibration.statistics.estimate import Estimate

COEFFICIENTS = {
    "percent_agreement": "percent agreement",
    "krippendorff_alpha": "Krippendorff's alpha",
    "gwet_ac": "Gwet's AC",
    "fleiss_kappa": "Fleiss' kappa",
    "brennan_prediger": "Brennan-Prediger",
    "conger_kappa": "Conger's kappa",
    "scott_pi": "Scott's pi",
    "cohen_kappa": "Cohen's kappa",
    "light_kappa": "Light's kappa",
}

BY = ("class", "node", "reviewer", "week")

SHOWN_ITEMS = 10


def benchmark(alpha: Estimate) -> str:
    """Say what the lower limit of alpha allows (Krippendorff's bounds).

    Examples
    --------
    >>> benchmark(Estimate(value=0.85, interval=(0.7, 0.92), n=90, method="jackknife"))
    'tentative conclusions only: the lower limit of alpha is .700, below .8'
    """
    if alpha.value is None or alpha.interval is None:
        return "cannot be said: alpha has no interval"
    low = f"{max(-1.0, alpha.interval[0]):.3f}".replace("0.", ".", 1)
    if alpha.interval[0] >= RELY:
        return f"rely on these labels: the lower limit of alpha is {low}, at least .8"
    if alpha.interval[0] >= TENTATIVE:
        return f"tentative conclusions only: the lower limit of alpha is {low}, below .8"
    return f"do not use yet: the lower limit of alpha is {low}, below .667"


def chance(share: float, n_resamples: int) -> str:
    """Return how often something holds among resamples, no finer than they can tell.

    Examples
    --------
    >>> chance(0.837, 2000), chance(1.0, 2000), chance(0.0, 500)
    ('= 0.837', '> 0.999', '< 0.002')
    """
    finest = max(0.001, 1 / n_resamples)
    if share < finest:
        return f"< {finest:.3f}"
    return f"> {1 - finest:.3f}" if share > 1 - finest else f"= {share:.3f}"


def agreement(result: AgreementAnalysis, by: Collection[str] = BY) -> Iterator[str]:
    """Yield the agreement of a batch, with the slices asked for."""
    if result.simulated:
        yield SIMULATED
    yield f"Agreement in {result.batch_id}, {len(result.reviewers)} reviewers"
    if not result.is_sample:
        yield CHOSEN
    yield from _headline(result.study, unit="trace")
    if result.near_misses.ok:
        yield f"  weighted by credit, alpha is {number(result.near)}"
        yield f"    that less plain alpha (above 0: near misses): {number(result.near_misses)}"
    if result.by_task is not None:
        yield f"  tasks repeat; with the task as the unit alpha is {number(result.by_task)}"
    if result.weighted:
        yield "  drawn with unequal probabilities: the figures above are of this batch;"
        yield "  weighted to production they are"
        for name, found in result.weighted.items():
            yield f"    {COEFFICIENTS[name]:22} {number(found)}"
    if result.unplanned:
        yield (
            f"  {result.unplanned:,} left out: planned for one label, a second came by a flag "
            "or late"
        )
    if result.exposed:
        yield f"  {exposed(result.exposed)}"
    yield from _slices(result.study, result.classes, result.reviewers, by)
    if "reviewer" in by:
        yield from _against_keys(result)
    if result.disputed:
        yield ""
        yield f"Disputed traces, the most open first ({len(result.disputed)} in all)"
        yield from table(
            ["trace", "question", "entropy", "costs alpha", "labels"],
            [
                [
                    d.trace_id, d.question or "-", f"{d.entropy:.2f}", f"{d.cost or 0.0:.4f}",
                    ", ".join(f"{who} {what}" for who, what in d.classes.items()),
                ]
                for d in result.disputed[:SHOWN_ITEMS]
            ],
        )  # fmt: skip
    yield from _what_to_do(result)
    yield ""
    yield f"fingerprint {result.fingerprint[:16]}, taxonomy {result.taxonomy_version}"


def _what_to_do(result: AgreementAnalysis) -> Iterator[str]:
    yield ""
    yield "What to do"
    for place, step in enumerate(next_steps(result), 1):
        yield f"  {place}. {step.what}"
        yield f"     {step.why}"
        if step.command is not None:
            yield f"     asr {step.command}"


def ratings(result: RatingsAgreement, by: Collection[str] = BY) -> Iterator[str]:
    """Yield the agreement on a file of ratings, with the slices asked for."""
    given = result.ratings
    yield f"classes: {', '.join(given.classes)}; weights: {result.weights}"
    yield from _headline(result.study, unit="item")
    yield from _slices(result.study, given.classes, given.raters, by)
    if result.study.costly:
        yield ""
        yield "Items that lower alpha most (unweighted)"
        yield from table(
            ["item", "costs alpha"],
            [[given.items[c.item], f"{c.cost:.4f}"] for c in result.study.costly[:SHOWN_ITEMS]],
        )


def _headline(found: Study, *, unit: str) -> Iterator[str]:
    overall, coefficients = found.overall, found.coefficients
    alpha = coefficients[KRIPPENDORFF_ALPHA.name]
    yield (
        f"  {overall.n_items:,} {unit}s with two or more ratings, {overall.n_ratings:,} ratings on "
        f"{overall.n_items_total:,} {unit}s by {overall.n_raters} raters"
    )
    yield f"  {benchmark(alpha)}"
    reaches = [
        f"P(alpha >= {bound:g}) {chance(share, found.bootstrap.n_resamples)}"
        for bound, share in found.bootstrap.reaches.items()
        if share is not None
    ]
    if reaches:
        yield f"  {', '.join(reaches)} ({found.bootstrap.n_resamples:,} resamples)"
    yield ""
    yield from table(
        ["coefficient", "value"],
        [[COEFFICIENTS[name], figure(value)] for name, value in coefficients.items()],
    )
    yield from notes((COEFFICIENTS[name], value) for name, value in coefficients.items())
    methods = dict.fromkeys(e.method for e in coefficients.values() if e.interval is not None)
    for method in methods:
        yield f"  interval: {method}; to {unit}s like these, raters as they are"
    use = found.prevalence
    if use.status not in ("ok", alpha.status) and use.gap.ok:
        yield f"  alpha lies {figure(use.gap)} from AC1: {use.status}"


def _slices(
    found: Study, classes: Sequence[str], raters: Sequence[str], by: Collection[str]
) -> Iterator[str]:
    if "class" in by:
        yield from _classes(found, classes)
    if "node" in by and found.nodes:
        yield from _nodes(found)
    if "reviewer" in by:
        yield from _raters(found, classes, raters)
    if "week" in by and found.groups:
        yield from _weeks(found)


def _classes(found: Study, classes: Sequence[str]) -> Iterator[str]:
    overall = found.overall
    rows = list(
        zip(classes, overall.specific, found.class_kappas, overall.class_shares, strict=False)
    )
    yield ""
    yield "Per class (if one rater says it, how likely does another say it too; beyond chance)"
    yield from table(
        ["class", "share", "specific agreement", "kappa"],
        [[name, percent(share), figure(same), figure(kappa)] for name, same, kappa, share in rows],
    )
    yield from notes((name, same) for name, same, _, _ in rows)
    yield from notes((f"kappa of {name}", kappa) for name, _, kappa, _ in rows)
    if found.confusions:
        yield ""
        yield "Confused classes (lift: against what chance would give)"
        yield from table(
            ["classes", "share of disagreement", "lift", "items"],
            [
                [
                    f"{classes[c.first]} / {classes[c.second]}",
                    figure(c.share.observed),
                    "-" if c.share.lift is None else f"{c.share.lift:.2f}",
                    f"{c.share.n_items:,}",
                ]
                for c in found.confusions
            ],
        )
        yield from notes(
            (f"{classes[c.first]} / {classes[c.second]}", c.share.observed)
            for c in found.confusions
        )


def _nodes(found: Study) -> Iterator[str]:
    yield ""
    yield "Per question (ratings whose path comes to it: the deeper, the fewer and the more alike)"
    yield from table(
        ["question", "items", "disagreement born here", "alpha", "AC1"],
        [
            [
                name, f"{node.n_items:,}", figure(node.share.observed),
                figure(node.alpha), figure(node.ac1),
            ]
            for name, node in found.nodes.items()
        ],
    )  # fmt: skip
    yield from notes((name, node.share.observed) for name, node in found.nodes.items())
    yield from notes((f"alpha of {name}", node.alpha) for name, node in found.nodes.items())


def _raters(found: Study, classes: Sequence[str], raters: Sequence[str]) -> Iterator[str]:
    yield ""
    yield "Raters beside the others (change: alpha without the rater less alpha of all)"
    yield from table(
        ["rater", "agrees with others", "alpha without", "change"],
        [
            [
                raters[of.rater], figure(of.agreement_with_others), figure(of.alpha_without),
                figure(of.change),
            ]
            for of in found.beside
        ],
    )  # fmt: skip
    for of in found.beside:
        named = (
            ("agreement of", of.agreement_with_others), ("alpha without", of.alpha_without),
            ("change without", of.change),
        )  # fmt: skip
        yield from notes((f"{what} {raters[of.rater]}", value) for what, value in named)
    yield ""
    margins = found.margins
    p = margins.test.p_value
    yield "Use of the classes: " + (
        margins.test.status if p is None else f"p = {p:.2g} if all raters use them alike"
    )
    for d in margins.differences:
        if d.p_holm is not None and d.p_holm < 0.05 and d.difference.interval is not None:
            low, high = (100 * end for end in d.difference.interval)
            yield (
                f"  {raters[d.rater]} gives {classes[d.class_code]} "
                f"{100 * (d.difference.value or 0):+.1f} pp [{low:+.1f}, {high:+.1f}] "
                f"against the others on the same items (Holm p = {d.p_holm:.2g})"
            )
    for pair in found.pairs:
        if not pair.n_shared:
            continue
        yield ""
        yield f"{raters[pair.first]} (rows) x {raters[pair.second]} (columns), {pair.n_shared:,}"
        yield f"  alpha {number(pair.alpha)}, kappa {number(pair.kappa)}"
        yield f"  agreement {number(pair.percent_agreement)}"
        names = [*classes, "-"][: len(pair.table)]
        yield from confusion(names, names, pair.table)


def _against_keys(result: AgreementAnalysis) -> Iterator[str]:
    rows = [
        [of.reviewer_id, name, f"{key.n:,}", figure(key.accuracy), figure(key.gwet_ac)]
        for of in result.profiles
        for name, key in (("consensus", of.consensus), ("canonical", of.canonical))
        if key is not None
    ]
    if rows:
        yield ""
        yield "Against a key (consensus: adjudicated here; canonical: practice on reference traces)"
        yield from table(["reviewer", "key", "traces", "accuracy", "AC1"], rows)


def _weeks(found: Study) -> Iterator[str]:
    yield ""
    yield "Per week (of the last label of an item)"
    yield from table(
        ["week", "items", "alpha", "AC1", "agreement"],
        [
            [
                name, f"{group.n_items:,}", figure(group.alpha), figure(group.ac1),
                figure(group.percent_agreement),
            ]
            for name, group in found.groups.items()
        ],
    )  # fmt: skip
    yield from notes((name, group.alpha) for name, group in found.groups.items())
