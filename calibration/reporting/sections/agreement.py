"""Agreement as a document: its trustworthiness, its slices, reviewers and items."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence

from calibration.agreement.annotators import MarginDifference
from calibration.agreement.ratings import RELY, TENTATIVE
from calibration.agreement.study import Study
from calibration.analyses.agreement.analysis import AgreementAnalysis
from calibration.analyses.agreement.ratings import RatingsAgreement
from calibration.analyses.agreement.recommendations import next_steps
from calibration.reporting.document import (
    CHOSEN,
    SIMULATED,
    Block,
    Document,
    Lines,
    Name,
    Section,
    Table,
    Words,
    coefficient_cell,
    exposed,
    figure,
    notes,
    number,
    percent,
    percent_cell,
    percent_number,
    reading_lines,
    table_of,
)
from calibration.statistics.estimate import Estimate
from calibration.text import arms_left_out

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
PAIR = "pair"
SHOWN_ITEMS = SHOWN_PAIRS = 10

# Adjusted p-value below which a difference is reported.
SIGNIFICANT = 0.05


def benchmark(alpha: Estimate) -> str:
    """Return the conclusion that the lower limit of alpha allows (Krippendorff's bounds).

    Examples
    --------
    >>> benchmark(Estimate(value=0.83, interval=(0.766, 0.88), n=300, method="jackknife"))
    'usable with care: agreement is 0.83 and could be as low as 0.77 (target 0.80)'
    """
    if alpha.value is None or alpha.interval is None:
        return "not known yet: agreement has no interval"
    low = max(-1.0, alpha.interval[0])
    # Rounded, a limit just below a bound would look like the bound.
    digits = 2 if f"{low:.2f}" not in (f"{RELY:.2f}", f"{TENTATIVE:.2f}") else 3
    found, least = f"agreement is {alpha.value:.{digits}f}", f"{low:.{digits}f}"
    if low >= RELY:
        return f"reliable: {found} and at least {least} (target {RELY:.2f})"
    if low >= TENTATIVE:
        return f"usable with care: {found} and could be as low as {least} (target {RELY:.2f})"
    return (
        f"not usable yet: {found} and could be as low as {least} "
        f"(at least {TENTATIVE:.2f} is needed, target {RELY:.2f})"
    )


def chance(share: float, n_resamples: int) -> str:
    """Return the share of resamples, no finer than their number allows."""
    finest = max(0.001, 1 / n_resamples)
    if share < finest:
        return f"< {finest:.3f}"
    return f"> {1 - finest:.3f}" if share > 1 - finest else f"= {share:.3f}"


def agreement(result: AgreementAnalysis, by: Collection[str] = BY) -> Document:
    """Return the agreement of a batch, with the requested slices."""
    study, titles = result.study, result.taxonomy.titles
    sections = [Section(title="", blocks=(_coefficients(study, "trace"), *_beside(result)))]
    sections += _slices(study, [titles[c] for c in result.classes], result.reviewers, by)
    if "reviewer" in by:
        sections += _against_keys(result)
    if result.disputed:
        sections.append(
            _section(
                f"Disputed traces, the most open first ({len(result.disputed)} in all)",
                ("trace", "question", "entropy", "costs alpha", "labels"),
                [
                    (
                        Name(d.trace_id),
                        d.question or "-",
                        f"{d.entropy:.2f}",
                        f"{d.cost or 0.0:.4f}",
                        Name(
                            ", ".join(f"{who} {titles.get(c, c)}" for who, c in d.classes.items())
                        ),
                    )
                    for d in result.disputed[:SHOWN_ITEMS]
                ],
            )
        )  # fmt: skip
    sections.append(Section(title="What to do", blocks=(Lines(items=tuple(_steps(result))),)))
    first = next(iter(next_steps(result, titled=True)), None)
    chosen = () if result.is_sample else (CHOSEN.strip(),)
    about = tuple(_about(study, "trace"))
    remarks = [*chosen, *about[:2]]
    if first is not None:
        remarks.append(f"{first.what.removesuffix('.')}: {first.why}")
    return Document(
        title=f"Agreement in {result.batch_id}, {len(result.reviewers)} reviewers",
        banners=(SIMULATED,) if result.simulated else (),
        about=(*chosen, *about),
        sections=tuple(sections),
        footer=f"fingerprint {result.fingerprint[:16]}, taxonomy {result.taxonomy_version}",
        brief=tuple(Words(text=line) for line in remarks),
        then="" if first is None else first.command or "status",
    )


def ratings(result: RatingsAgreement, by: Collection[str] = BY) -> Document:
    """Return the agreement on a file of ratings, with the requested slices."""
    rated, study = result.ratings, result.study
    sections = [Section(title="", blocks=(_coefficients(study, "item"),))]
    sections += _slices(study, rated.classes, rated.raters, by)
    if study.costly:
        sections.append(
            _section(
                "Items that lower alpha most (unweighted)",
                ("item", "costs alpha"),
                [(Name(rated.items[c.item]), f"{c.cost:.4f}") for c in study.costly[:SHOWN_ITEMS]],
            )
        )
    about = tuple(_about(study, "item"))
    return Document(
        title=f"classes: {', '.join(rated.classes)}; weights: {result.weights}",
        about=about,
        sections=tuple(sections),
        brief=tuple(Words(text=line) for line in about[:2]),
        reading=reading_lines(result.reading),
    )


def _section(
    title: str,
    head: tuple[str, ...],
    rows: Iterable[tuple[str, ...]],
    named: Iterable[tuple[str, Estimate]] = (),
) -> Section:
    """Return a table under a heading, with the statuses behind its `+`."""
    return Section(title=title, blocks=(_table(head, rows, notes(named)),))


def _table(
    head: tuple[str, ...], rows: Iterable[tuple[str, ...]], remarks: Iterable[str] = ()
) -> Table:
    return table_of("", head, rows, notes=remarks)


def _about(found: Study, unit: str) -> Iterator[str]:
    yield (
        f"{found.n_items:,} {unit}s with two or more ratings, {found.n_ratings:,} ratings on "
        f"{found.n_items_total:,} {unit}s by {found.n_raters} raters"
    )
    yield benchmark(found.alpha)
    reaches = [
        f"P(alpha >= {bound:g}) {chance(share, found.bootstrap.n_resamples)}"
        for bound, share in found.bootstrap.reaches.items()
        if share is not None
    ]
    if reaches:
        yield f"{', '.join(reaches)} ({found.bootstrap.n_resamples:,} resamples)"


def _coefficients(found: Study, unit: str) -> Table:
    named = [(COEFFICIENTS[name], value) for name, value in found.coefficients.items()]
    remarks = list(notes(named))
    methods = dict.fromkeys(e.method for _, e in named if e.interval is not None)
    remarks += [
        f"interval: {method}; to {unit}s like these, raters as they are" for method in methods
    ]
    if found.fleiss_of_pairs is not None:
        remarks.append(
            f"Fleiss' kappa takes the class shares from {unit}s with one rating too; from the "
            f"others alone it is {found.fleiss_of_pairs:.3f}"
        )
    use = found.prevalence
    alpha = found.alpha
    if use.status not in ("ok", alpha.status) and use.gap.ok:
        remarks.append(f"alpha differs from AC1 by {figure(use.gap)}: {use.status}")
    cells = [
        (COEFFICIENTS[name], coefficient_cell(name, e)) for name, e in found.coefficients.items()
    ]
    return _table(("coefficient", "value"), cells, remarks)


def _beside(result: AgreementAnalysis) -> Iterator[Block]:
    remarks = []
    if result.near_misses.ok:
        remarks.append(f"weighted by credit, alpha is {number(result.near)}")
        remarks.append(
            f"  that minus plain alpha (above 0: near misses): {number(result.near_misses)}"
        )
    if result.by_task is not None:
        remarks.append(f"tasks repeat; with the task as the unit alpha is {number(result.by_task)}")
    if result.weighted:
        remarks.append("drawn with unequal probabilities: the figures above are of this batch;")
        remarks.append("weighted to production they are")
        remarks += [
            f"  {COEFFICIENTS[name]:22} {coefficient_cell(name, e)}"
            for name, e in result.weighted.items()
        ]
    if result.unplanned:
        remarks.append(
            f"{result.unplanned:,} left out: planned for one label; the second came through a "
            "flag or late"
        )
    if result.perturbed:
        remarks.append(arms_left_out(result.perturbed))
    if result.exposed:
        remarks.append(exposed(result.exposed))
    yield from (Words(text=line) for line in remarks)


def _steps(result: AgreementAnalysis) -> Iterator[str]:
    for place, step in enumerate(next_steps(result, titled=True), 1):
        yield f"  {place}. {step.what}"
        yield f"     {step.why}"
        if step.command is not None:
            yield f"     asr {step.command}"


def _slices(
    found: Study, classes: Sequence[str], raters: Sequence[str], by: Collection[str]
) -> Iterator[Section]:
    if "class" in by:
        yield from _classes(found, classes)
    if "node" in by and found.nodes:
        yield _nodes(found)
    if "reviewer" in by:
        yield from _raters(found, classes, raters)
    if "reviewer" in by or PAIR in by:
        yield from pair_tables(found, classes, raters, most=None if PAIR in by else SHOWN_PAIRS)
    if "week" in by and found.groups:
        yield _weeks(found)


def _classes(found: Study, classes: Sequence[str]) -> Iterator[Section]:
    rows = list(zip(classes, found.specific, found.class_kappas, found.class_shares, strict=False))
    cells = [
        (Name(name), percent(share), percent_cell(same), figure(kappa))
        for name, same, kappa, share in rows
    ]
    remarks = [
        *notes((name, same) for name, same, _, _ in rows),
        *notes((f"kappa of {name}", kappa) for name, _, kappa, _ in rows),
    ]
    yield Section(
        title="Per class (if one rater says it, how likely does another say it too; beyond chance)",
        blocks=(_table(("class", "share", "specific agreement", "kappa"), cells, remarks),),
    )
    if found.confusions:
        pairs = [
            (Name(f"{classes[c.first]} / {classes[c.second]}"), c.share) for c in found.confusions
        ]
        yield _section(
            "Confused classes (lift: compared with chance)",
            ("classes", "share of disagreement", "lift", "items"),
            [
                (
                    pair, percent_cell(of.observed), "-" if of.lift is None else f"{of.lift:.2f}",
                    f"{of.n_items:,}",
                )
                for pair, of in pairs
            ],
            [(pair, of.observed) for pair, of in pairs],
        )  # fmt: skip


def _nodes(found: Study) -> Section:
    remarks = [
        *notes((name, node.share.observed) for name, node in found.nodes.items()),
        *notes((f"alpha of {name}", node.alpha) for name, node in found.nodes.items()),
    ]
    cells = [
        (
            Name(name), f"{node.n_items:,}", percent_cell(node.share.observed), figure(node.alpha),
            figure(node.ac1),
        )
        for name, node in found.nodes.items()
    ]  # fmt: skip
    head = ("question", "items", "disagreements start here", "alpha", "AC1")
    return Section(
        title="Per question (items with two answers to it: the deeper, the fewer, the more alike)",
        blocks=(_table(head, cells, remarks),),
    )


def _raters(found: Study, classes: Sequence[str], raters: Sequence[str]) -> Iterator[Section]:
    cells: list[tuple[str, ...]] = []
    remarks: list[str] = []
    for of in found.beside:
        who, same, without = raters[of.rater], of.agreement_with_others, of.alpha_without
        cells.append((Name(who), percent_cell(same), figure(without), figure(of.change)))
        remarks += notes(
            [
                (f"agreement of {who}", same),
                (f"alpha without {who}", without),
                (f"change without {who}", of.change),
            ]
        )
    yield Section(
        title="Each rater compared with the others (change: alpha without the rater minus alpha "
        "of all)",
        blocks=(
            _table(("rater", "agrees with others", "alpha without", "change"), cells, remarks),
        ),
    )
    p = found.margins.test.p_value
    yield Section(
        title="Use of the classes: "
        + (found.margins.test.status if p is None else f"p = {p:.2g} if all raters use them alike"),
        blocks=tuple(Words(text=Name(line)) for line in _uses(found, classes, raters)),
    )


def pair_tables(
    found: Study, classes: Sequence[str], raters: Sequence[str], *, most: int | None
) -> Iterator[Section]:
    """Yield the two-way tables of raters; of more than `most` those with the lowest alpha."""
    shared = [pair for pair in found.pairs if pair.n_shared]
    shown = shared
    if most is not None and len(shared) > most:
        shown = sorted(
            shared, key=lambda pair: math.inf if pair.alpha.value is None else pair.alpha.value
        )[:most]
        yield Section(
            title=f"Pairs of raters: the {most} with the lowest alpha of {len(shared):,}",
            blocks=(Words(text="All of them: --by pair, or --json."),),
        )
    for pair in shown:
        names = [*classes, "-"][: len(pair.table)]
        rows = zip(names, pair.table, strict=True)
        yield Section(
            title=Name(
                f"{raters[pair.first]} (rows) x {raters[pair.second]} (columns), {pair.n_shared:,}"
            ),
            blocks=(
                Words(text=f"alpha {number(pair.alpha)}, kappa {number(pair.kappa)}"),
                Words(text=f"agreement {percent_number(pair.percent_agreement)}"),
                _table(
                    ("", *map(Name, names)),
                    [(Name(name), *(f"{c:g}" for c in counts)) for name, counts in rows],
                ),
            ),
        )


def _uses(found: Study, classes: Sequence[str], raters: Sequence[str]) -> Iterator[str]:
    for d in found.margins.differences:
        if d.p_holm is not None and d.p_holm < SIGNIFICANT:
            yield other_use(d, raters[d.rater], classes[d.class_code], "items")


def other_use(d: MarginDifference, rater: str, name: str, units: str) -> str:
    """Return the difference between a rater's use of a class and that of the others."""
    low, high = (100 * end for end in d.difference.interval or (0.0, 0.0))
    return (
        f"{rater} gives {name} {100 * (d.difference.value or 0.0):+z.1f} pp "
        f"[{low:+z.1f}, {high:+z.1f}] compared with the others on the same {units} "
        f"(Holm p = {d.p_holm:.2g})"
    )


def _against_keys(result: AgreementAnalysis) -> Iterator[Section]:
    rows = [
        (Name(of.reviewer_id), name, f"{key.n:,}", percent_cell(key.accuracy), figure(key.gwet_ac))
        for of in result.profiles
        for name, key in (("consensus", of.consensus), ("canonical", of.canonical))
        if key is not None
    ]
    if rows:
        yield _section(
            "Compared with a key (consensus: adjudicated here; canonical: practice on reference "
            "traces)",
            ("reviewer", "key", "traces", "accuracy", "AC1"),
            rows,
        )


def _weeks(found: Study) -> Section:
    return _section(
        "Per week (of the last label of an item)",
        ("week", "items", "alpha", "AC1", "agreement"),
        [
            (
                name, f"{group.n_items:,}", figure(group.alpha), figure(group.ac1),
                percent_cell(group.percent_agreement),
            )
            for name, group in found.groups.items()
        ],
        [(name, group.alpha) for name, group in found.groups.items()],
    )  # fmt: skip
