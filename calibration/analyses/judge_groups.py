"""The corrected rate by agent, workflow, model or week: direct where labels allow, or synthetic."""

from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.judge import INPUT_COLUMNS, VERDICT_NAMES, human_frame
from calibration.analyses.judged import BY, UNKNOWN, Judged, group_names, read_judged
from calibration.correction.comparisons import (
    Comparison,
    compare_groups,
    independent_difference,
)
from calibration.correction.confusion import confusion
from calibration.correction.group_rates import RatesTest, compare_rates
from calibration.correction.groups import Group, GroupEstimate, estimate_group
from calibration.correction.means import MeanAgainstZero, mean_against_zero
from calibration.correction.production import production_sums
from calibration.correction.results import Design
from calibration.errors import InputError
from calibration.estimates import Estimate
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

    net: Comparison
    gross: Comparison
    leniency_difference: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeGroups:
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

    batch_id: str
    judge_id: str
    design: Design
    by: str
    groups: tuple[GroupRow, ...]
    rates: RatesTest
    pairs: tuple[GroupPair, ...]
    simulated: bool
    seed: int
    fingerprint: str


def analyse_groups(
    store: Store,
    batch_id: str | None = None,
    *,
    by: str = "workflow",
    judge_id: str | None = None,
    design: Design = "production",
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
    if by not in BY:
        raise InputError(f"by must be one of {', '.join(BY)}, got {by!r}")
    judged = read_judged(store, batch_id, judge_id)
    loaded, level = judged.loaded, confidence_level
    table = confusion(loaded.human, judged.verdicts, n_verdicts=judged.n_verdicts).table
    of_trace = group_names(loaded.traces, by)
    of_label = of_trace[judged.at]
    names = _in_order(of_trace, by)
    net, gross = (
        {name: _group(judged, name, of_trace, design, net=kind) for name in names}
        for kind in (True, False)
    )
    rows = tuple(
        GroupRow(
            name=name,
            net=estimate_group(
                net[name], table, names=VERDICT_NAMES, design=design, confidence_level=level
            ),
            gross=estimate_group(
                gross[name], table, names=VERDICT_NAMES, design=design, confidence_level=level
            ),
            leniency=_leniency(judged, of_label == name, level),
        )
        for name in names
    )
    leniency = {row.name: row.leniency.estimate for row in rows}
    return JudgeGroups(
        batch_id=loaded.batch.batch_id,
        judge_id=judged.judge_id,
        design=design,
        by=by,
        groups=rows,
        rates=compare_rates(
            loaded.human,
            judged.verdicts,
            np.unique(of_label, return_inverse=True)[1].astype(np.int64),
            n_verdicts=judged.n_verdicts,
            rng=np.random.default_rng(seed),
        ),
        pairs=tuple(
            GroupPair(
                net=compare_groups(
                    net[one], net[other], table, names=VERDICT_NAMES, design=design,
                    confidence_level=level,
                ),
                gross=compare_groups(
                    gross[one], gross[other], table, names=VERDICT_NAMES, design=design,
                    confidence_level=level,
                ),
                leniency_difference=independent_difference(
                    leniency[one], leniency[other], method=GAP_DIFFERENCE, furthest=2.0
                ),
            )
            for one, other in _pairs(names, by)
        ),
        simulated=loaded.simulated,
        seed=seed,
        fingerprint=fingerprint(
            taxonomy=loaded.taxonomy.fingerprint,
            settings={
                "kind": "judge groups", "judge": judged.judge_id, "by": by, "design": design,
                "confidence_level": level, "seed": seed,
            },
            human=human_frame(loaded),
            traces=loaded.traces[INPUT_COLUMNS].assign(
                group=of_trace, verdict=judged.population.verdicts
            ),
        ),
    )  # fmt: skip


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
    judged: Judged, name: str, of_trace: NDArray[np.str_], design: Design, *, net: bool
) -> Group:
    penalties = judged.population.penalties if net else np.zeros(of_trace.size)
    counted = of_trace == name
    labels = counted[judged.at]
    if design == "reference":
        counted = counted.copy()
        counted[judged.at] = False
    kept = np.maximum(0.0, judged.credit - penalties[judged.at][labels][:, None])
    return Group(
        name=name,
        scores=(judged.loaded.human[labels] * kept).sum(axis=1),
        verdicts=judged.verdicts[labels],
        production=production_sums(
            judged.population.verdicts[counted],
            penalties[counted],
            credit=judged.credit,
            n_verdicts=judged.n_verdicts,
        ),
        clusters=judged.tasks[labels],
    )


def _leniency(judged: Judged, rows: NDArray[np.bool_], confidence_level: float) -> MeanAgainstZero:
    of = rows[judged.has_class]
    return mean_against_zero(
        judged.gaps()[of],
        nothing=NO_LABELS,
        clusters=judged.tasks[judged.has_class][of],
        confidence_level=confidence_level,
    )
