"""Comparison of two sets of production files."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibration.analyses.evidence.data import package_version, settings_digest
from calibration.analyses.reference_traces import marks
from calibration.analyses.success_rate.from_runs import (
    ProductionRead,
    left_out,
    read_production,
    reading_notes,
)
from calibration.analyses.success_rate.report import (
    DEFAULT_WEIGHTS,
    PLACES,
    LeftOutRows,
    Origin,
    ReportOptions,
    credit_in_words,
    origin_of,
)
from calibration.errors import InputError
from calibration.runs.sources import Place, place_of
from calibration.success_rate.comparison import MARGIN, Comparison, Rule, compare_runs
from calibration.success_rate.runs import RunCounts
from calibration.taxonomy import Taxonomy, default_credits, default_taxonomy
from calibration.text import own_credit

RESTATED = (
    "The two sides have other weights; both are restated under the default weights "
    "({weights}) and their own figures are not comparable."
)


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
    known = [given or default_taxonomy() for given in taxonomies]
    places = [place_of([side]) if isinstance(side, str) else side for side in (a, b)]
    one, other = (
        read_production(place, taxonomy=taxonomy, options=options, named_tasks=True)
        for place, taxonomy in zip(places, known, strict=True)
    )
    _same_ceilings(one, other)
    restated = None
    runs = one.runs, _recoded(other.runs, one.taxonomy)
    if runs[0].credit_table != runs[1].credit_table:
        default = default_credits(one.taxonomy)
        runs = restated_runs(runs[0], default), restated_runs(runs[1], default)
        restated = RESTATED.format(weights=credit_in_words(default))
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
