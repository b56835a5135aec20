"""The drift of a judge and the rates of groups, as text."""

from collections.abc import Iterator, Sequence

from calibration.analyses.drift import Drift
from calibration.analyses.judge_groups import GroupPair, GroupRates
from calibration.correction.group_rates import RatesTest
from calibration.estimates import Estimate
from calibration.reporting.judge_diagnostics import SHOWN, one_line, p_text, p_value_text
from calibration.reporting.text import figure, notes, number, percent, table

SYNTHETIC = {
    "production": "fewer than 50 own labels",
    "reference": "labels of a reference set say nothing of one group alone",
}


def drift(result: Drift) -> Iterator[str]:
    """Yield how two judges differ on the same traces."""
    before, after = one_line(result.before, 60), one_line(result.after, 60)
    yield f"Has the judge moved? {before} and {after} on the same {result.n:,} traces"
    yield f"  same verdict  {number(result.same)}"
    yield f"  alpha         {number(result.alpha)}"
    yield f"  mean credit, {after} less {before}: {number(result.credit_change.estimate)}"
    yield from table(
        ["verdict", before, after, f"only {before}", f"only {after}", "p", "p adjusted"],
        [
            [
                one_line(row.name, 60), percent(row.before), percent(row.after),
                f"{row.only_before:,}", f"{row.only_after:,}",
                *("-" if p is None else p_value_text(p) for p in (row.test.p_value, row.p_holm)),
            ]
            for row in result.classes
        ],
    )  # fmt: skip
    yield "  p: McNemar's test that both give the verdict as often"
    humans = result.against_humans
    if humans is None:
        yield "  no labels: whether the error changed is not known; label traces that both judged"
    else:
        yield f"  against the humans, {humans.n:,} labelled traces:"
        yield f"  accuracy of {before}  {number(humans.accuracy_before.estimate)}"
        yield f"  accuracy of {after}  {number(humans.accuracy_after.estimate)}"
        for name, found in (
            ("accuracy", humans.accuracy_change),
            ("leniency", humans.leniency_change),
            ("distance of the credit", humans.error_change),
        ):
            yield f"  change of {name}  {number(found.estimate)}{p_text(found.p_value)}"


def groups(result: GroupRates, limit: int = SHOWN) -> Iterator[str]:
    """Yield the corrected rate of each group and the differences; `~` marks a synthetic one."""
    yield f"Agent success rate by {result.by}"
    rows = result.groups[:limit]
    yield from table(
        [result.by, "labels", "judged", "net of cost", "gross", "judge lenient by"],
        [
            [
                one_line(row.name, 60) + (" ~" if row.net.kind == "synthetic" else ""),
                f"{row.net.n_labels:,}", f"{row.net.n_production:,}", figure(row.net.estimate),
                figure(row.gross.estimate), figure(row.leniency.estimate),
            ]
            for row in rows
        ],
    )  # fmt: skip
    yield from notes((one_line(row.name, 60), row.net.estimate) for row in rows)
    if len(result.groups) > limit:
        yield f"  and {len(result.groups) - limit:,} more, all of them in --json"
    if any(row.net.kind == "synthetic" for row in rows):
        yield f"  ~ synthetic, taking the judge to err as in all groups: {SYNTHETIC[result.design]}"
    yield "  " + errs_alike(result.rates)
    yield from _pairs(result.pairs)


def errs_alike(rates: RatesTest) -> str:
    """Say whether the judge errs alike in all groups."""
    if rates.statistic is None:
        return f"does the judge err alike? {rates.status.replace('_', ' ', 1)}"
    return (
        f"does the judge err alike? chi-square {rates.statistic:.1f} on {rates.df} df, "
        f"p {p_value_text(rates.p_value or 0.0)} ({rates.n_groups} groups, {rates.n:,} labels; "
        "a large p does not show it)"
    )


def _pairs(pairs: Sequence[GroupPair]) -> Iterator[str]:
    known = [pair for pair in pairs if pair.net.difference.ok]
    if pairs and not known:
        yield "  no two of them can be compared: a side has no rate"
    if not known:
        return
    yield "  Differences, net of cost (each interval is for one pair)"
    rows = [
        [
            _both(pair), *(_of_side(side) for side in pair.net.sides),
            figure(pair.net.difference), percent(pair.net.flip_chance),
            percent(pair.net.flips_at), figure(pair.leniency_difference),
        ]
        for pair in known
    ]  # fmt: skip
    head = ["", "first", "second", "difference", "wrong sign", "turns at", "judge more lenient by"]
    yield from table(head, rows)
    yield from notes((_both(pair), pair.net.difference) for pair in known)
    if len(known) < len(pairs):
        yield f"  {len(pairs) - len(known)} more pairs have a side without a rate"
    if any(pair.net.kind == "synthetic" for pair in known):
        yield "  ~ synthetic, both sides with the error rates of all groups: gates nothing"
        yield "  wrong sign: chance of it if the judge errs alike in both"
        yield "  turns at: share of one group's traces that the judge would have to pass beyond"
        yield "  what it would pass of the other's, for the ranking to turn around"


def _of_side(found: Estimate) -> str:
    return "-" if found.value is None else f"{found.value:.3f}"


def _both(pair: GroupPair) -> str:
    mark = " ~" if pair.net.kind == "synthetic" else ""
    return f"{one_line(pair.net.first, 60)} less {one_line(pair.net.second, 60)}{mark}"
