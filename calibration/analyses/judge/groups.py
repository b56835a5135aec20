"""The corrected rate by agent, workflow, model or week; few labels borrow from other groups."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.evidence.data import (
    BY,
    UNKNOWN,
    CalibrationData,
    Provenance,
    group_names,
)
from calibration.analyses.evidence.from_store import load_judged
from calibration.analyses.judge.calibration import CalibrationOptions, leniency_of
from calibration.errors import CalibrationError, InputError
from calibration.judge_calibration.groups import (
    GroupComparison,
    GroupEstimate,
    LabelledGroup,
    RatesTest,
    SharedCalibration,
    compare_pairs,
    compare_rates,
    estimate_groups,
)
from calibration.judge_calibration.samples import (
    Design,
    confusion,
    production_sums,
)
from calibration.statistics.contingency import rank_limits
from calibration.statistics.estimate import OK, Estimate
from calibration.statistics.intervals import independent_difference
from calibration.statistics.means import MeanAgainstZero
from calibration.text import counted

if TYPE_CHECKING:
    from calibration.store import Store

COLUMN = {"agent": "agent", "workflow": "workflow", "model": "model", "week": "started_at"}
MOST_COMPARED = 10
NO_LABELS = "no labelled trace of this group has a verdict that is a class: label some"
GAP_DIFFERENCE = "difference of the judge's leniency, limits combined (MOVER)"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One group: its rate with and without cost, and the judge's leniency on its labels."""

    name: str
    net: GroupEstimate
    gross: GroupEstimate
    leniency: MeanAgainstZero


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPair:
    """Two groups compared, with cost and without.

    `leniency_difference` is the judge's leniency to the first less that to the second, which a
    synthetic comparison assumes to be zero.
    """

    net: GroupComparison
    gross: GroupComparison
    leniency_difference: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRates:
    """The corrected rate of each group.

    `groups` are sorted by size, weeks by time. `rates` tests equal error rates of the judge, given
    the human class, in groups with labels. `pairs` are those of the ten largest groups, or each
    week with the week before; each interval is for one pair, p-values are adjusted for all (Holm).
    """

    provenance: Provenance
    design: Design
    by: str
    groups: tuple[GroupRow, ...]
    rates: RatesTest
    pairs: tuple[GroupPair, ...]
    seed: int
    fingerprint: str

    @property
    def ranks(self) -> Mapping[str, tuple[int, int]] | None:
        """The ranks that the true rates of the compared groups may have; None for weeks.

        Smallest and largest, 1 being the highest rate net of cost. All hold at once with the
        confidence level: they rest on the adjusted p-values of all pairs.
        """
        if self.by == "week" or not self.pairs:
            return None
        compared = [pair.net for pair in self.pairs]
        shown = [
            (of.first, of.second) if (of.difference.value or 0.0) > 0 else (of.second, of.first)
            for of in compared
            if of.p_holm is not None and of.p_holm <= 1 - of.difference.confidence_level
        ]
        names = dict.fromkeys(name for of in compared for name in (of.first, of.second))
        return rank_limits(list(names), shown)


def check_by(by: str) -> None:
    """Raise InputError if `by` is not one of `BY`."""
    if by not in BY:
        raise InputError(f"by must be one of {', '.join(BY)}, got {by!r}")


def analyse_groups(
    store: "Store",
    batch_id: str | None = None,
    *,
    by: str = "workflow",
    judge_id: str | None = None,
    design: Design = "production",
    pseudo_count: float = 0.5,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> GroupRates:
    """Estimate rates as `group_rates`, from a store; raises as `check_by` and `load_judged`."""
    check_by(by)
    options = CalibrationOptions(
        design=design, pseudo_count=pseudo_count, confidence_level=confidence_level, seed=seed
    )
    return group_rates(load_judged(store, batch_id, judge_id), options, by=by)


def group_rows(
    data: CalibrationData,
    options: CalibrationOptions,
    *,
    by: str,
    within: NDArray[np.bool_] | None = None,
) -> tuple[GroupRow, ...]:
    """Estimate the rate of each group as `estimate_groups`: the only rate of a group.

    `data` hold all groups even if one is wanted. Open disagreements among the humans make every
    rate provisional. With `within`, the groups of these traces are returned; the judge's error is
    pooled over them and those of the other traces. Raises CalibrationError if no trace has a group.
    """
    return _rows(_Groups(data, options, by, within))


def net_rates(
    data: CalibrationData,
    options: CalibrationOptions,
    *,
    by: str,
    within: NDArray[np.bool_] | None = None,
) -> dict[str, Estimate]:
    """Return the rates net of cost of `group_rows` by name, and nothing else of them."""
    found = _Groups(data, options, by, within).estimates(net=True)
    return {name: group.estimate for name, group in found.items()}


def group_rates(data: CalibrationData, options: CalibrationOptions, *, by: str) -> GroupRates:
    """Estimate rates as `group_rows`, and compare groups; the seed is for permutation tests."""
    groups = _Groups(data, options, by)
    rows = _rows(groups)
    leniency = {row.name: row.leniency.estimate for row in rows}
    sample = groups.sample
    return GroupRates(
        provenance=data.provenance,
        design=options.design,
        by=by,
        groups=rows,
        rates=compare_rates(
            sample.human,
            sample.verdicts,
            np.unique(groups.of_trace[data.at], return_inverse=True)[1].astype(np.int64),
            n_verdicts=len(data.verdict_names),
            rng=np.random.default_rng(options.seed),
        ),
        pairs=tuple(
            GroupPair(
                net=net,
                gross=gross,
                leniency_difference=independent_difference(
                    leniency[net.first],
                    leniency[net.second],
                    method=GAP_DIFFERENCE,
                    furthest=2.0,
                ),
            )
            for net, gross in groups.compared(_pairs([row.name for row in rows], by))
        ),
        seed=options.seed,
        fingerprint=data.fingerprint(
            "judge groups",
            {"by": by, **options.estimation},
            groups=pd.DataFrame(
                {"trace_id": data.traces["trace_id"], "group": groups.of_trace}
            ).sort_values("trace_id"),
        ),
    )


def _rows(groups: "_Groups") -> tuple[GroupRow, ...]:
    data, of_label = groups.data, groups.codes[groups.data.at]
    inside = groups.inside[data.at]
    net, gross = groups.estimates(net=True), groups.estimates(net=False)
    return tuple(
        GroupRow(
            name=name,
            net=net[name],
            gross=gross[name],
            leniency=leniency_of(
                data, groups.sample, (of_label == k) & inside, NO_LABELS, groups.confidence_level
            ),
        )
        for k, name in groups.in_order(groups.inside)
    )


class _Groups:
    """The traces of each group, and estimates that borrow from all groups."""

    def __init__(
        self,
        data: CalibrationData,
        options: CalibrationOptions,
        by: str,
        within: NDArray[np.bool_] | None = None,
    ) -> None:
        self.data, self.by = data, by
        self.of_trace = group_names(data.traces, by)
        self.codes, self.names = pd.factorize(self.of_trace, sort=True)
        self.inside = np.ones(len(self.of_trace), dtype=bool) if within is None else within
        unknown = set(self.names) <= {UNKNOWN}
        if unknown and by not in COLUMN:
            raise CalibrationError(f"no groups by {by}: no trace is known to have been cut")
        if unknown and data.provenance.source == "files":
            raise CalibrationError(f"the verdict file has no column {COLUMN[by]!r}, or it is empty")
        self.sample = sample = data.sample(options.design)
        self.confidence_level = options.confidence_level
        self.counted = data.production(options.design)
        self.shared = SharedCalibration(
            table=confusion(
                sample.human,
                sample.verdicts,
                n_verdicts=len(data.verdict_names),
                weights=sample.weights,
            ).table,
            names=data.verdict_names,
            labelled=sample,
            design=options.design,
            pseudo_count=options.pseudo_count,
            seed=options.seed,
            confidence_level=options.confidence_level,
        )

        self._made: dict[bool, tuple[LabelledGroup, ...]] = {}

    def made(self, *, net: bool) -> tuple[LabelledGroup, ...]:
        """Return the groups, with cost or without."""
        if net not in self._made:
            self._made[net] = tuple(self._groups(net))
        return self._made[net]

    def in_order(self, rows: NDArray[np.bool_]) -> list[tuple[int, str]]:
        """Return code and name of the groups of some traces: weeks by time, others by size."""
        counts = np.bincount(self.codes[rows], minlength=len(self.names))
        order = np.arange(counts.size)
        if self.by != "week":
            order = np.argsort(-counts, kind="stable")
        return [(int(k), str(self.names[k])) for k in order if counts[k]]

    def _groups(self, net: bool) -> Iterator[LabelledGroup]:
        """Yield the groups inside, then the groups of the traces outside, to borrow from."""
        for inside in (True, False):
            rows = self.inside == inside
            for k, name in self.in_order(rows):
                of = (self.codes == k) & rows
                # No name has a NUL: a group outside keeps apart from one of the same name inside.
                yield self._make(name if inside else f"{name}\0", of, net)

    def _make(self, name: str, of: NDArray[np.bool_], net: bool) -> LabelledGroup:
        data = self.data
        counted, labelled = of & self.counted, self.sample.where(of[data.at])
        tables, table = data.tables
        return LabelledGroup(
            name=name,
            labelled=labelled if net else replace(labelled, penalties=None),
            production=production_sums(
                data.verdicts[counted],
                data.penalties[counted] if net else None,
                credit=tables,
                n_verdicts=len(data.verdict_names),
                tasks=data.tasks[counted],
                table=None if table is None else table[counted],
            ),
        )

    def estimates(self, *, net: bool) -> dict[str, GroupEstimate]:
        """Estimate the rate and the class shares of each group."""
        return {
            found.name: replace(
                found,
                estimate=self._provisional(found.estimate),
                shares=tuple(map(self._provisional, found.shares)),
            )
            for found in estimate_groups(self.made(net=net), self.shared)
        }

    def compared(
        self, pairs: list[tuple[str, str]]
    ) -> Iterator[tuple[GroupComparison, GroupComparison]]:
        """Compare pairs of groups, with cost and without."""
        both = (compare_pairs(self.made(net=net), pairs, self.shared) for net in (True, False))
        for sides in zip(*both, strict=True):
            net, gross = (
                replace(found, difference=self._provisional(found.difference)) for found in sides
            )
            yield net, gross

    def _provisional(self, found: Estimate) -> Estimate:
        n = self.data.open_disagreements
        if not n or found.status != OK:
            return found
        return replace(found, status=f"provisional: {counted(n, 'open disagreement')}")


def _pairs(names: list[str], by: str) -> list[tuple[str, str]]:
    if by == "week":
        weeks = [name for name in names if name != UNKNOWN]
        return [(later, earlier) for earlier, later in pairwise(weeks)]
    return list(combinations(names[:MOST_COMPARED], 2))
