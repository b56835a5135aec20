"""Comparison of two sets of production files, and of several or of the groups of one."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibration.analyses.fingerprint import package_version, settings_digest
from calibration.analyses.reference_traces import marks
from calibration.analyses.success_rate.from_runs import (
    ProductionRead,
    left_out,
    outcomes_of_places,
    read_production,
    reading_notes,
)
from calibration.analyses.success_rate.report import (
    DEFAULT_WEIGHTS,
    PLACES,
    LeftOutRows,
    Origin,
    ReportOptions,
    SourceFile,
    credit_in_words,
    origin_of,
)
from calibration.errors import InputError, LeftOutError
from calibration.runs.sources import Place, place_of
from calibration.success_rate.comparison import MARGIN, Comparison, Rule, compare_runs
from calibration.success_rate.ranking import MOST_RUNS, Ranking, rank_runs
from calibration.success_rate.runs import RunCounts
from calibration.tables.reading import Reading
from calibration.taxonomy import Taxonomy, default_credits, default_taxonomy
from calibration.text import own_credit

RESTATED = (
    "The two sides have other weights; both are restated under {whose} weights "
    "({weights}) and their own figures are not comparable."
)
ALL_RESTATED = (
    "The sets of runs have other weights; all are restated under the default weights ({weights}) "
    "and their own figures are not comparable."
)
MOST_NAME = 100  # characters
BY = ("workflow", "model", "week")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison: its runs, its taxonomy, and the rows left out."""

    name: str
    n: int
    n_tasks: int | None
    taxonomy_version: str
    taxonomy_fingerprint: str
    set_aside: tuple[LeftOutRows, ...]
    notes: tuple[str, ...]
    reading: Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductionComparison:
    """The difference of the Agent Success Rate between two sets of files, second minus first.

    `credit` is what both are scored with; `restated` says why, where it is not their own. `titles`
    are those of the classes.
    """

    a: Side
    b: Side
    found: Comparison
    credit: tuple[float, ...]
    restated: str | None
    origin: Origin
    titles: dict[str, str]
    warnings: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    @property
    def readings(self) -> tuple[Reading, ...]:
        """What was read of both sides."""
        return self.a.reading, self.b.reading


def compare_files(
    a: str | Place,
    b: str | Place,
    *,
    options: ReportOptions | None = None,
    taxonomies: tuple[Taxonomy | None, Taxonomy | None] = (None, None),
    taxonomy_paths: tuple[Path | None, Path | None] = (None, None),
    margin: float = MARGIN,
    rule: Rule = "difference",
    paired: bool | None = None,
) -> ProductionComparison:
    """Compare two production files or places, second against first.

    Both are read by the same options. Shared tasks are resampled together unless `paired` is False.
    Sides with other credit are restated under the default credit; other ceilings are refused, since
    their costs cannot be compared.

    Raises
    ------
    InputError
        If a file cannot be used, the classes or ceilings differ, or `paired` is asked for without
        tasks.
    CalibrationError
        If no run is left on a side.
    """
    options = options or ReportOptions()
    places = [place_of([side]) if isinstance(side, str) else side for side in (a, b)]
    one, other = read_together(places, taxonomies, options)
    _same_ceilings(one, other)
    restated = None
    runs = one.runs, _recoded(other.runs, one.taxonomy)
    if runs[0].credit_table != runs[1].credit_table:
        default = default_credits(one.taxonomy)
        runs = restated_runs(runs[0], default), restated_runs(runs[1], default)
        published = set(one.taxonomy.names) == set(default_taxonomy().names)
        whose = "the default" if published else "the first side's"
        restated = RESTATED.format(whose=whose, weights=credit_in_words(default))
    pairs, why_not = _pairing(one, other, paired)
    found = compare_runs(*runs, paired=pairs, margin=margin, rule=rule, **options.resampling(0))
    settings = {
        **options.settings(_settings(*places), taxonomy_paths[0]),
        "second_taxonomy": None if taxonomy_paths[1] is None else str(taxonomy_paths[1]),
        "margin": margin,
        "rule": rule,
        "paired": paired,
    }
    return ProductionComparison(
        a=_side(one, places[0]),
        b=_side(other, places[1]),
        found=found,
        credit=tuple(runs[0].credit.tolist()),
        restated=restated,
        origin=_origin(one, other, settings, options),
        titles=one.taxonomy.titles,
        warnings=tuple(_warnings(one, other, restated, why_not)),
        marks=marks(one.n_reference, other.n_reference),
    )


def read_together(
    places: Sequence[Place], taxonomies: Sequence[Taxonomy | None], options: ReportOptions
) -> list[ProductionRead]:
    """Read several sets of runs, whose outcomes are decided together where they share a rubric.

    Raises
    ------
    LeftOutError
        If more is left out of one of them than the limit allows.
    """
    known = {None if rules is None else rules.fingerprint for rules in taxonomies}
    outcomes = None
    if len(known) == 1:
        outcomes = outcomes_of_places(places, taxonomies[0], options)
    try:
        return [
            read_production(
                place, taxonomy=rules, options=options, outcomes=outcomes, named_tasks=True
            )
            for place, rules in zip(places, taxonomies, strict=True)
        ]
    except LeftOutError as error:
        raise LeftOutError(
            str(error), reading=[error.reading], figures=("difference", "asr_a", "asr_b")
        ) from error


def _recoded(runs: RunCounts, taxonomy: Taxonomy) -> RunCounts:
    try:
        return runs.recoded(taxonomy)
    except ValueError as error:
        raise InputError(f"the two sides cannot be compared: {error}") from error


def _same_ceilings(one: ProductionRead, other: ProductionRead) -> None:
    first, second = (
        {w.name: w.ceiling_usd for w in side.taxonomy.workflows} for side in (one, other)
    )
    seen = {n for s in (one, other) for n in s.counts.cells["workflow"].cat.categories}
    shown = differing_ceilings(first, second, seen)
    if shown:
        raise InputError(
            f"the ceilings of the two sides differ ({shown}): score both under one, "
            "with --ceilings or one --taxonomy"
        )


def differing_ceilings(
    first: Mapping[str, float | None], second: Mapping[str, float | None], seen: Collection[str]
) -> str:
    """Return, in words, the workflows whose ceilings differ between two sides; empty if none."""
    differing = [name for name in sorted(seen) if first.get(name) != second.get(name)]
    return ", ".join(f"{name} {first.get(name)} and {second.get(name)}" for name in differing[:5])


def restated_runs(runs: RunCounts, default: tuple[float, ...]) -> RunCounts:
    """Return the runs scored with the default credit, which may be their own."""
    if DEFAULT_WEIGHTS not in runs.other_scores:
        return runs
    return runs.restated(DEFAULT_WEIGHTS, credit=default)


def _pairing(
    one: ProductionRead, other: ProductionRead, paired: bool | None
) -> tuple[bool, str | None]:
    """Return whether to pair, and if not, why shared tasks are not paired."""
    named = [side.runs.task is not None and not side.counts.tasks_grouped for side in (one, other)]
    if paired is False:
        return False, None
    if all(named) and one.runs.task is not None and other.runs.task is not None:
        shared = np.intersect1d(one.runs.task, other.runs.task).size
        if shared or paired:
            return shared > 0, None if shared else "no task is on both sides"
        return False, None
    if any(side.counts.tasks_grouped for side in (one, other)):
        return False, "there are too many tasks to pair; the sides are taken as independent"
    if paired:
        raise InputError("pairing needs a column task_id on both sides")
    return False, None


def _settings(a: Place, b: Place) -> dict[str, Any]:
    """Return the locations of both sides, as lists of two."""
    both = a.settings(), b.settings()
    return {
        key: [*one, *other] if isinstance(one, list) else [one, other]
        for key, one in both[0].items()
        if (other := both[1].get(key)) is not None
    }


def _side(read: ProductionRead, place: Place) -> Side:
    seen = read.counts.cells["workflow"].dropna().unique()
    other = read.taxonomy.credit_table.differing(read.taxonomy.names, sorted(map(str, seen)))
    return Side(
        name=", ".join(place.names),
        n=read.counts.n_kept,
        n_tasks=read.counts.n_tasks,
        taxonomy_version=read.taxonomy.version,
        taxonomy_fingerprint=read.taxonomy.fingerprint,
        set_aside=tuple(map(left_out, read.counts.set_aside)),
        notes=(
            *own_credit(other),
            *reading_notes(read.counts.notes, read.counts.n_kept, read.counts.n_perturbed),
        ),
        reading=read.reading,
    )


def _warnings(
    one: ProductionRead, other: ProductionRead, restated: str | None, why_not: str | None
) -> Iterator[str]:
    if restated is not None:
        yield restated
    if why_not is not None:
        yield f"Not paired: {why_not}."
    for side in (one, other):
        missing, n = side.counts.notes.no_cost, side.counts.n_kept
        if missing:
            yield f"{missing:,} of {n:,} runs of one side have no cost and carry no penalty."


def _origin(
    one: ProductionRead,
    other: ProductionRead,
    settings: Mapping[str, Any],
    options: ReportOptions,
) -> Origin:
    fingerprints: Sequence[str] = [r.taxonomy.fingerprint for r in (one, other)]
    parts = {
        "kind": "comparison",
        "inputs": [one.inputs, other.inputs],
        "taxonomy": fingerprints,
        "settings": {k: v for k, v in settings.items() if k not in (*PLACES, "second_taxonomy")},
        "version": package_version(),
    }
    return origin_of(
        options,
        one.taxonomy,
        other.taxonomy,
        sources=(*one.sources, *other.sources),
        settings=settings,
        sampling="two sets of files, each taken as a sample of runs like it",
        judge="none: the outcomes of the files are taken as given",
        fingerprint=settings_digest(parts),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRuns:
    """One input of a comparison of several; `run` is its name, None where its groups are ranked."""

    run: str | None
    side: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralRuns:
    """The Agent Success Rates of 2 to 20 sets of files, or of the groups of one.

    `by` is the column of the groups. `credit`, `restated` and `titles` are as in
    `ProductionComparison`.
    """

    inputs: tuple[ComparedRuns, ...]
    by: str | None
    found: Ranking
    credit: tuple[float, ...]
    restated: str | None
    origin: Origin
    titles: dict[str, str]
    warnings: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    @property
    def readings(self) -> tuple[Reading, ...]:
        """What was read of each input."""
        return tuple(one.side.reading for one in self.inputs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _KeptRuns:
    """What a comparison keeps of one input, so that twenty fit into memory."""

    side: Side
    runs: RunCounts
    taxonomy: Taxonomy
    ceilings: Mapping[str, float | None]
    seen: frozenset[str]  # workflows of the runs
    inputs: str
    sources: tuple[SourceFile, ...]
    grouped: bool
    no_cost: int
    n_reference: int


def compare_several(
    places: Sequence[str | Place],
    *,
    names: Sequence[str] = (),
    baseline: str | None = None,
    options: ReportOptions | None = None,
    taxonomies: Sequence[Taxonomy | None] = (),
    taxonomy_paths: Sequence[Path | None] = (),
    paired: bool | None = None,
) -> SeveralRuns:
    """Compare 2 to 20 production files or places with a baseline and with each other.

    Differences, intervals and restating are as in `compare_files`, ranks as in `rank_runs`. Inputs
    are read one after the other.

    Parameters
    ----------
    names : sequence of str, optional
        One a place; by default the names of the files without folder and ending.
    baseline : str, optional
        One of the names; by default the first.
    taxonomies : sequence of Taxonomy or None, optional
        One for all, or one a place.

    Raises
    ------
    InputError
        If there are fewer than 2 or more than 20, two have one name, the baseline is none of them,
        and as `compare_files`.
    CalibrationError
        If no run is left of one of them.
    """
    options = options or ReportOptions()
    listed = [place_of([one]) if isinstance(one, str) else one for one in places]
    _check_number(len(listed), "sets of runs", "; --by COLUMN compares the groups of one")
    known = _run_names(listed, names)
    base = _baseline(baseline, known)
    if len(taxonomies) not in (0, 1, len(listed)):
        raise InputError(
            f"--taxonomy: give one for all or one for each of {len(listed)} sets of runs, got "
            f"{len(taxonomies)}"
        )
    each = list(taxonomies) if len(taxonomies) > 1 else [*taxonomies, None][:1] * len(listed)
    reads = read_together(listed, each, options)
    kept = [_kept(place, read) for place, read in zip(listed, reads, strict=True)]
    first = kept[0]
    for name, one in zip(known[1:], kept[1:], strict=True):
        shown = differing_ceilings(first.ceilings, one.ceilings, first.seen | one.seen)
        if shown:
            raise InputError(
                f"the ceilings of {known[0]!r:.80} and {name!r:.80} differ ({shown}): score all "
                "under one, with --ceilings or one --taxonomy"
            )
    runs = {name: _recoded(one.runs, first.taxonomy) for name, one in zip(known, kept, strict=True)}
    settings = {
        **options.settings(_settings_of(listed), None),
        "taxonomies": [None if path is None else str(path) for path in taxonomy_paths],
        "names": known,
        "baseline": base,
        "paired": paired,
    }
    return _several(
        runs,
        kept,
        base,
        inputs=tuple(
            ComparedRuns(run=name, side=one.side) for name, one in zip(known, kept, strict=True)
        ),
        by=None,
        paired=_paired(runs, kept, paired),
        settings=settings,
        options=options,
    )


def compare_groups_of(
    given: str | Place,
    by: str,
    *,
    baseline: str | None = None,
    options: ReportOptions | None = None,
    taxonomy: Taxonomy | None = None,
    taxonomy_path: Path | None = None,
    paired: bool | None = None,
) -> SeveralRuns:
    """Compare the groups of one production file: its workflows, models, weeks or another column.

    As `compare_several`; tasks that two groups share are paired. Runs without a group are left out
    and counted.
    """
    options = options or ReportOptions()
    place = place_of([given]) if isinstance(given, str) else given
    column = by if by in BY else "model"
    if column != by:
        columns = {**options.reading.columns, column: by}
        options = replace(options, reading=replace(options.reading, columns=columns))
    (read,) = read_together([place], [taxonomy], options)
    kept = _kept(place, read, by=column)
    labels = kept.runs.labels(column)
    _check_number(len(labels.seen), f"groups by {by!r:.80}", "")
    base = _baseline(baseline, labels.seen)
    runs = {name: kept.runs.where(labels.of(name)) for name in labels.seen}
    without = kept.side.n - sum(one.n for one in runs.values())
    settings = {
        **options.settings(place.settings(), taxonomy_path),
        "by": by,
        "baseline": base,
        "paired": paired,
    }
    return _several(
        runs,
        [kept],
        base,
        inputs=(ComparedRuns(run=None, side=kept.side),),
        by=by,
        paired=_paired(runs, [kept], paired),
        settings=settings,
        options=options,
        left_out=f"{without:,} runs have no {by:.80} and are in no group." if without else "",
    )


def _several(
    runs: Mapping[str, RunCounts],
    kept: Sequence[_KeptRuns],
    baseline: str,
    *,
    inputs: tuple[ComparedRuns, ...],
    by: str | None,
    paired: bool,
    settings: Mapping[str, Any],
    options: ReportOptions,
    left_out: str = "",
) -> SeveralRuns:
    first, restated = kept[0], None
    if any(one.credit_table != first.runs.credit_table for one in runs.values()):
        default = default_credits(first.taxonomy)
        runs = {name: restated_runs(one, default) for name, one in runs.items()}
        restated = ALL_RESTATED.format(weights=credit_in_words(default))
    found = rank_runs(runs, baseline=baseline, paired=paired, **options.resampling(0))
    parts = {
        "kind": "comparison of several",
        "inputs": [one.inputs for one in kept],
        "taxonomy": [one.taxonomy.fingerprint for one in kept],
        "settings": {k: v for k, v in settings.items() if k not in (*PLACES, "taxonomies")},
        "version": package_version(),
    }
    missing = sum(one.no_cost for one in kept)
    return SeveralRuns(
        inputs=inputs,
        by=by,
        found=found,
        credit=tuple(next(iter(runs.values())).credit.tolist()),
        restated=restated,
        origin=origin_of(
            options,
            *(one.taxonomy for one in kept),
            sources=tuple(source for one in kept for source in one.sources),
            settings=settings,
            sampling="sets of runs, each taken as a sample of runs like it",
            judge="none: the outcomes of the files are taken as given",
            fingerprint=settings_digest(parts),
        ),
        titles=first.taxonomy.titles,
        warnings=tuple(
            filter(
                None,
                (
                    restated,
                    left_out,
                    f"{missing:,} runs have no cost and carry no penalty." if missing else "",
                    "There are too many tasks to pair; the sets are taken as independent."
                    if any(one.grouped for one in kept)
                    else "",
                ),
            )
        ),
        marks=marks(*(one.n_reference for one in kept)),
    )


def _kept(place: Place, read: ProductionRead, *, by: str = "") -> _KeptRuns:
    """Let go of all but the runs of one input."""
    return _KeptRuns(
        side=_side(read, place),
        runs=read.by(by),
        taxonomy=read.taxonomy,
        ceilings={w.name: w.ceiling_usd for w in read.taxonomy.workflows},
        seen=frozenset(read.counts.cells["workflow"].cat.categories),
        inputs=read.inputs,
        sources=read.sources,
        grouped=read.counts.tasks_grouped,
        no_cost=read.counts.notes.no_cost,
        n_reference=read.n_reference,
    )


def _paired(runs: Mapping[str, RunCounts], kept: Sequence[_KeptRuns], asked: bool | None) -> bool:
    """Return whether shared tasks are paired; InputError where that is asked for without tasks."""
    if asked and any(one.task is None for one in runs.values()):
        raise InputError("pairing needs a column task_id in every set of runs")
    return asked is not False and not any(one.grouped for one in kept)


def _check_number(n: int, what: str, hint: str) -> None:
    if n < 2:
        raise InputError(f"2 to {MOST_RUNS} {what} are compared, got {n}{hint}")
    if n > MOST_RUNS:
        raise InputError(
            f"2 to {MOST_RUNS} {what} are compared, got {n}: leave some out, or name a coarser "
            "column; with more, hardly any difference is shown after the adjustment"
        )


def _run_names(places: Sequence[Place], given: Sequence[str]) -> list[str]:
    """Return the name of each set of runs."""
    if given and len(given) != len(places):
        raise InputError(f"--name: one for each of {len(places)} sets of runs, got {len(given)}")
    found = [name.strip() for name in given] or [_name_of(place) for place in places]
    for name in found:
        if not name or len(name) > MOST_NAME or not name.isprintable():
            raise InputError(
                f"--name: must be 1 to {MOST_NAME} characters without control characters, got "
                f"{name!r:.120}; give one for each set of runs"
            )
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            f"two sets of runs are called {twice!r:.120}: give each a --name of its own"
        )
    return found


def _name_of(place: Place) -> str:
    """Return a file's name without folder and ending, or the name of a table."""
    table = place.settings().get("table")
    if table is not None:
        return str(table)
    name = Path(place.names[0]).name
    return name.partition(".")[0] or name


def _baseline(asked: str | None, names: Sequence[str]) -> str:
    if asked is None:
        return names[0]
    if asked not in names:
        raise InputError(
            f"--baseline: there is no {asked!r:.120}; there are {', '.join(names):.400}"
        )
    return asked


def _settings_of(places: Sequence[Place]) -> dict[str, Any]:
    """Return the locations of all places, as lists."""
    found: dict[str, list[Any]] = {}
    for place in places:
        for key, value in place.settings().items():
            found.setdefault(key, []).extend(value if isinstance(value, list) else [value])
    return found
