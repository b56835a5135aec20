"""The corrected rate by agent, workflow, model or week: direct where labels allow, or synthetic."""

from dataclasses import dataclass, fields, replace
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from calibration.analyses.evidence.data import BY, UNKNOWN, BothSides, group_names
from calibration.analyses.evidence.from_store import (
    INPUT_COLUMNS,
    VERDICT_NAMES,
    Judged,
    drawn_frame,
    human_frame,
    read_judged,
)
from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.judge.diagnostics import leniency_of
from calibration.errors import InputError
from calibration.judge_calibration.groups import (
    GroupComparison,
    GroupEstimate,
    LabelledGroup,
    RatesTest,
    compare_groups,
    compare_rates,
    estimate_group,
)
from calibration.judge_calibration.samples import Design, confusion, production_sums
from calibration.records import OUTCOMES
from calibration.statistics.estimate import OK, Estimate
from calibration.statistics.intervals import independent_difference
from calibration.statistics.means import MeanAgainstZero
from calibration.store import Store

MOST_COMPARED = 10

NO_LABELS = "no labelled trace of this group has a verdict that is a class: label some"

GAP_DIFFERENCE = "difference of the judge's leniency, limits combined (MOVER)"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One group: its rate with cost and without, and how lenient the judge is in it.

    `leniency` is the mean of the verdict's credit less the human one on its labelled traces.
    """

    name: str
    net: GroupEstimate
    gross: GroupEstimate
    leniency: MeanAgainstZero


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPair:
    """Two groups compared, with cost and without.

    `leniency_difference` is by how much more lenient the judge is to the first: what a synthetic
    comparison takes for zero.
    """

    net: GroupComparison
    gross: GroupComparison
    leniency_difference: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRates:
    """The corrected rate of each group.

    Parameters
    ----------
    by : str
        ``agent``, ``workflow``, ``model`` or ``week``.
    groups : tuple of GroupRow
        The largest first; weeks in order of time.
    rates : RatesTest
        Whether the judge errs alike in the groups that have labels, given the human class.
    pairs : tuple of GroupPair
        Every two of the ten largest groups; weeks: each with the week before. Intervals are for
        one pair each, not for all at once.
    """

    design: Design
    by: str
    groups: tuple[GroupRow, ...]
    rates: RatesTest
    pairs: tuple[GroupPair, ...]
    seed: int
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeGroups(GroupRates):
    """The corrected rate of each group of a store."""

    batch_id: str
    judge_id: str
    simulated: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grouped:
    """Every judged trace with its group.

    Parameters
    ----------
    of_trace : str array, shape (n_traces,)
    verdicts : int array, shape (n_traces,)
    penalties : float array, shape (n_traces,)
    at : int array, shape (n_labelled,)
        Place of each labelled trace in them.
    """

    of_trace: NDArray[np.str_]
    verdicts: NDArray[np.int64]
    penalties: NDArray[np.float64]
    at: NDArray[np.int64]


def check_by(by: str) -> None:
    """Refuse what nothing is grouped by.

    Raises
    ------
    InputError
        If `by` is none of `BY`.
    """
    if by not in BY:
        raise InputError(f"by must be one of {', '.join(BY)}, got {by!r}")


def analyse_groups(
    store: Store,
    batch_id: str | None = None,
    *,
    by: str = "workflow",
    judge_id: str | None = None,
    design: Design = "production",
    pseudo_count: float = 0.5,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> JudgeGroups:
    """Estimate the rate of each group and compare them, with one calibration for all.

    `seed` is for the permutations of the test of equal error rates with few labels.

    Raises
    ------
    InputError
        If `by` is none of `BY`, or as `read_judged`.
    """
    check_by(by)
    judged = read_judged(store, batch_id, judge_id, design=design)
    return groups_of_judged(
        judged, by=by, pseudo_count=pseudo_count, confidence_level=confidence_level, seed=seed
    )


def groups_of_judged(
    judged: Judged,
    *,
    by: str,
    pseudo_count: float = 0.5,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> JudgeGroups:
    """Estimate the rate of each group of a batch that is already read."""
    loaded = judged.loaded
    of_trace = group_names(loaded.traces, by)
    sides = BothSides(
        classes=OUTCOMES, verdict_names=VERDICT_NAMES[: judged.n_verdicts], credit=judged.credit,
        sample=judged.sample,
    )  # fmt: skip
    population = judged.population
    found = group_rates(
        sides,
        Grouped(
            of_trace=of_trace, verdicts=population.verdicts, penalties=population.penalties,
            at=judged.at,
        ),
        open_disagreements=loaded.open_disagreements,
        by=by, design=judged.design, pseudo_count=pseudo_count, confidence_level=confidence_level,
        seed=seed,
        fingerprint=fingerprint(
            taxonomy=loaded.taxonomy.fingerprint,
            settings={
                "kind": "judge groups", "judge": judged.judge_id, "by": by,
                "design": judged.design, "pseudo_count": pseudo_count,
                "skipped": loaded.skipped, "confidence_level": confidence_level, "seed": seed,
            },
            human=human_frame(loaded),
            drawn=drawn_frame(loaded),
            traces=loaded.traces[INPUT_COLUMNS].assign(
                group=of_trace, verdict=population.verdicts
            ),
        ),
    )  # fmt: skip
    return JudgeGroups(
        **{field.name: getattr(found, field.name) for field in fields(found)},
        batch_id=loaded.batch.batch_id,
        judge_id=judged.judge_id,
        simulated=loaded.simulated,
    )


def group_rates(
    sides: BothSides,
    grouped: Grouped,
    *,
    by: str,
    design: Design,
    pseudo_count: float,
    confidence_level: float,
    seed: int,
    open_disagreements: int,
    fingerprint: str,
) -> GroupRates:
    """Estimate the rate of each group and compare them, with one calibration for all.

    With open disagreements among the humans every rate and difference is provisional.
    """
    level, sample = confidence_level, sides.sample
    names = sides.verdict_names
    table = confusion(
        sample.human, sample.verdicts, n_verdicts=len(names), weights=sample.weights
    ).table
    of_label = grouped.of_trace[grouped.at]
    known = _in_order(grouped.of_trace, by)
    net, gross = (
        {name: _group(sides, grouped, name, design, net=kind) for name in known}
        for kind in (True, False)
    )

    def provisional(found: Estimate) -> Estimate:
        if not open_disagreements or found.status != OK:
            return found
        return replace(found, status=f"provisional: {open_disagreements} open disagreements")

    def one(group: LabelledGroup) -> GroupEstimate:
        found = estimate_group(
            group, table, names=names, design=design, pseudo_count=pseudo_count,
            confidence_level=level,
        )  # fmt: skip
        return replace(found, estimate=provisional(found.estimate))

    def two(first: LabelledGroup, second: LabelledGroup) -> GroupComparison:
        found = compare_groups(
            first, second, table, names=names, design=design, pseudo_count=pseudo_count,
            confidence_level=level,
        )  # fmt: skip
        return replace(found, difference=provisional(found.difference))

    rows = tuple(
        GroupRow(
            name=name,
            net=one(net[name]),
            gross=one(gross[name]),
            leniency=leniency_of(sides, of_label == name, NO_LABELS, level),
        )
        for name in known
    )
    leniency = {row.name: row.leniency.estimate for row in rows}
    return GroupRates(
        design=design,
        by=by,
        groups=rows,
        rates=compare_rates(
            sample.human,
            sample.verdicts,
            np.unique(of_label, return_inverse=True)[1].astype(np.int64),
            n_verdicts=len(names),
            rng=np.random.default_rng(seed),
        ),
        pairs=tuple(
            GroupPair(
                net=two(net[first], net[second]),
                gross=two(gross[first], gross[second]),
                leniency_difference=independent_difference(
                    leniency[first], leniency[second], method=GAP_DIFFERENCE, furthest=2.0
                ),
            )
            for first, second in _pairs(known, by)
        ),
        seed=seed,
        fingerprint=fingerprint,
    )


def _in_order(of_trace: NDArray[np.str_], by: str) -> list[str]:
    names, counts = np.unique(of_trace, return_counts=True)
    order = np.arange(names.size) if by == "week" else np.argsort(-counts, kind="stable")
    return [str(name) for name in names[order]]


def _pairs(names: list[str], by: str) -> list[tuple[str, str]]:
    if by == "week":
        weeks = [name for name in names if name != UNKNOWN]
        return [(later, earlier) for earlier, later in pairwise(weeks)]
    return list(combinations(names[:MOST_COMPARED], 2))


def _group(
    sides: BothSides, grouped: Grouped, name: str, design: Design, *, net: bool
) -> LabelledGroup:
    penalties = grouped.penalties if net else np.zeros(grouped.of_trace.size)
    counted = grouped.of_trace == name
    labels = counted[grouped.at]
    if design == "reference":
        counted = counted.copy()
        counted[grouped.at] = False
    kept = np.maximum(0.0, sides.credit - penalties[grouped.at][labels][:, None])
    return LabelledGroup(
        name=name,
        scores=(sides.sample.human[labels] * kept).sum(axis=1),
        verdicts=sides.sample.verdicts[labels],
        production=production_sums(
            grouped.verdicts[counted],
            penalties[counted],
            credit=sides.credit,
            n_verdicts=len(sides.verdict_names),
        ),
        weights=sides.weights(labels),
        clusters=sides.tasks(labels),
    )
