"""The comparison of several sets of runs as a document: ranks, a baseline, and all pairs."""

from collections.abc import Iterator, Sequence

from calibration.analyses.success_rate.comparison import SeveralRuns
from calibration.reporting.document import (
    Block,
    Document,
    Facts,
    Listing,
    Name,
    Row,
    Section,
    Table,
    Words,
    notes,
    percent,
    rank_words,
    reading_lines,
    table_of,
)
from calibration.reporting.sections.success_rate import (
    SKIPPED,
    count,
    mark,
    p_value,
    points,
    scaled,
    share,
    small,
)
from calibration.success_rate.ranking import RankedRuns, RunPair

MEANS = (
    "Ranks are those of the true rates, of runs like these. At the confidence level of the "
    "intervals all ranks hold at once: {rule}."
)
BEST = (
    "Highest in: share of {n:,} joint resamples in which the rate is the highest. It is no "
    "probability of being the best, and says little where rates are close."
)
ALONE = (
    "Each interval is for its pair alone, as `asr compare` gives it; p is adjusted for all pairs "
    "of the table (Holm). Shown: p is at most {alpha:.2g}."
)


def document(result: SeveralRuns) -> Document:
    """Return the comparison as a document."""
    found = result.found
    answer = Words(text=in_a_sentence(found.runs))
    ranks, against = _ranks(result), _pair_table(result, found.against_baseline, base=True)
    warnings = tuple(Words(text=warning, kind="warning") for warning in result.warnings)
    return Document(
        title=f"Agent Success Rate, {len(found.runs)} sets of runs",
        banners=result.marks,
        reading=reading_lines(result.readings),
        sections=(
            Section(
                title="Ranks",
                blocks=(
                    answer,
                    *warnings,
                    ranks,
                    small(MEANS.format(rule=found.rule)),
                    *_best(result),
                ),
            ),
            Section(
                title=f"Compared with the baseline {found.baseline:.60}",
                blocks=(against, small(_alone(result))),
            ),
            Section(
                title="All pairs",
                blocks=(_pair_table(result, found.pairs, base=False), small(_alone(result))),
            ),
            Section(title="Outcomes", blocks=(_outcomes(result),)),
            Section(title="What was left out", blocks=tuple(_left_out(result))),
            Section(title="How it was made", blocks=(_made(result),)),
        ),
        footer=f"fingerprint {result.origin.fingerprint}",
        brief=(answer, ranks, against, *warnings),
    )


def in_a_sentence(runs: Sequence[RankedRuns]) -> str:
    """Return which set of runs is shown to be the best, or which may be it."""
    first = [of.name for of in runs if of.rank[0] == 1]
    if len(first) == 1:
        return f"{first[0]} has the highest rate: it is shown to be above all others."
    listed = f"{', '.join(first[:-1])} and {first[-1]}"
    if len(first) == len(runs):
        return f"No order is shown: each of {listed} may have the highest rate."
    return f"Which rate is the highest is not shown: it may be that of {listed}."


def _ranks(result: SeveralRuns) -> Table:
    runs = result.found.runs
    marks = [mark(of.rate.asr) for of in runs]
    return table_of(
        "Ranks by the Agent Success Rate",
        ("runs", "ASR", "rank", "highest in", "n"),
        (
            (
                Name(of.name),
                share(of.rate.asr),
                rank_words(of.rank),
                percent(of.best_share),
                count(of.rate.n),
            )
            for of in runs
        ),
        marks,
        **scaled(marks),
        notes=tuple(notes((Name(of.name), of.rate.asr) for of in runs)),
    )


def _best(result: SeveralRuns) -> Iterator[Block]:
    if any(of.best_share is not None for of in result.found.runs):
        yield small(BEST.format(n=result.origin.n_resamples))


def _pair_table(result: SeveralRuns, pairs: Sequence[RunPair], *, base: bool) -> Table:
    alpha = 1 - result.origin.confidence_level
    head = ("runs",) if base else ("runs", "less")
    return Table(
        title=f"Less {result.found.baseline:.60}" if base else "Every pair of sets of runs",
        head=(*head, "difference of the ASR", "shared tasks", "p (Holm)", "shown"),
        rows=tuple(
            Row(
                cells=(
                    Name(of.second),
                    *(() if base else (Name(of.first),)),
                    points(of.difference),
                    count(of.n_pairs) if of.n_pairs else "-",
                    p_value(of.p_holm),
                    _shown(of, alpha),
                ),
            )
            for of in pairs
        ),
        notes=tuple(
            notes((Name(f"{of.second}, {of.first}"), of.difference.estimate) for of in pairs)
        ),
    )


def _shown(of: RunPair, alpha: float) -> str:
    if of.p_holm is None or of.p_holm > alpha:
        return "no"
    return "higher" if (of.difference.estimate.value or 0.0) > 0 else "lower"


def _alone(result: SeveralRuns) -> str:
    return ALONE.format(alpha=1 - result.origin.confidence_level)


def _outcomes(result: SeveralRuns) -> Table:
    runs = result.found.runs
    classes = runs[0].rate.classes
    return table_of(
        "Share of each class",
        ("runs", *(result.titles.get(name, name) for name in classes)),
        ((Name(of.name), *(percent(s.value) for s in of.rate.class_shares)) for of in runs),
    )


def _left_out(result: SeveralRuns) -> Iterator[Block]:
    named = [(of.run or of.side.name, of.side) for of in result.inputs]
    yield table_of(
        SKIPPED,
        ("runs", "why", "rows"),
        ((Name(n), Name(row.reason), count(row.n)) for n, side in named for row in side.set_aside),
        empty="No row was skipped.",
    )
    told = [Name(f"{name}: {note}") for name, side in named for note in side.notes]
    if told:
        yield Listing(items=tuple(told))


def _made(result: SeveralRuns) -> Facts:
    made = result.origin
    level = 100 * made.confidence_level
    return Facts(
        items=(
            *(
                (of.run or "runs", Name(f"{of.side.name} ({of.side.n:,} runs)"))
                for of in result.inputs
            ),
            ("taxonomy", Name(f"{made.taxonomy_version} ({made.taxonomy_fingerprint})")),
            ("intervals", f"{level:g} %, {made.n_resamples:,} resamples, seed {made.seed}"),
            ("software", f"asr-calibration {made.package_version}"),
            ("fingerprint", made.fingerprint),
        )
    )
