"""What the report says of cost, and of runs to look at."""

from collections.abc import Iterator
from math import ceil

from calibration.analyses.asr_report import CostPanel, ProductionReport, WorkItem, WorkList
from calibration.estimates import Estimate
from calibration.reporting.asr_document_signals import SHOWN_WEEKS
from calibration.reporting.asr_words import count, money, resting, share, statuses
from calibration.reporting.document import Block, Facts, Mark, Name, Row, Table, Words
from calibration.reporting.plain import shown
from calibration.reporting.text import percent, usd

MOST_IN_TEXT = 3
# Multiples of the ceiling that are drawn; what lies beyond is drawn at the end.
LEAST_TIMES, MOST_TIMES = 2, 20
# A cell holds 200 characters, and evidence must not be cut off for a long reason.
MOST_WHY, MOST_QUOTED = 110, 80


def missing_cost(report: ProductionReport) -> Iterator[Block]:
    """Yield what missing costs may do to the rate."""
    cost = report.cost
    missing = cost.n - cost.n_known
    if missing:
        whose = "ASR" if report.judged is None else "human-only ASR"
        yield Words(
            text=(
                f"{missing:,} of {cost.n:,} runs have no cost and carry no penalty: the {whose} "
                f"lies between {report.asr_range[0]:.3f}, if each of them cost twice its ceiling, "
                f"and {report.asr_range[1]:.3f}, if none went over."
            )
        )


def cost(report: ProductionReport) -> Iterator[Block]:
    """Yield the cost panel."""
    whole = report.cost
    yield Words(
        text=(
            f"The cost of {whole.n_known:,} of {whole.n:,} runs is known "
            f"({percent(whole.coverage)})."
        )
    )
    if not whole.n_known:
        return
    above = whole.share_above_ceiling
    yield Facts(
        items=(
            ("mean cost of a run", usd(whole.mean)),
            ("P50, P90, P99", f"{usd(whole.p50)}, {usd(whole.p90)}, {usd(whole.p99)}"),
            ("above the ceiling", "-" if above is None else share(above)),
            (resting("cost of a completed run", report.basis), _success(whole.per_success)),
        )
    )
    rows = [
        (g.name or "(no workflow)", g.ceiling_usd, g.unit, g.cost)
        for g in report.by_workflow
        if g.cost is not None
    ]
    if rows:
        highest = max((p.of_ceiling[2] for *_, p in rows if p.of_ceiling), default=0.0)
        top = float(min(max(LEAST_TIMES, ceil(highest)), MOST_TIMES))
        yield Table(
            title=(
                "Cost by workflow (USD a run; drawn as multiples of the ceiling: P50 to P99, "
                "dot at P90)"
            ),
            head=("workflow", "P50", "P90", "P99", "mean", "ceiling", "above it", "a success",
                  "known"),
            rows=tuple(
                Row(cells=(Name(name), *_cells(panel, ceiling, unit)), mark=_spread(panel))
                for name, ceiling, unit, panel in rows
            ),
            scale=(0.0, top),
            scale_labels=("0", f"{top:g} x"),
            notes=tuple(statuses((Name(name), p.share_above_ceiling) for name, _, _, p in rows)),
        )  # fmt: skip
    if whole.n_without_ceiling:
        yield Words(
            text=f"{whole.n_without_ceiling:,} runs are of a workflow without a ceiling.",
            kind="small",
        )


def _cells(panel: CostPanel, ceiling: float | None, unit: str | None) -> tuple[str, ...]:
    above = panel.share_above_ceiling
    return (
        usd(panel.p50),
        usd(panel.p90),
        usd(panel.p99),
        usd(panel.mean),
        "none set" if ceiling is None else f"{usd(ceiling)} a {unit or 'task'}",
        "-" if above is None else percent(above.value),
        money(panel.per_success),
        percent(panel.coverage),
    )


def _spread(panel: CostPanel) -> Mark | None:
    if panel.of_ceiling is None:
        return None
    p50, p90, p99 = panel.of_ceiling
    return Mark(value=p90, low=p50, high=p99, target=1.0)


def work(report: ProductionReport) -> Iterator[Block]:
    """Yield the runs that somebody should look at."""
    lists = report.work_lists
    if not lists:
        yield Words(text="No work lists: the classes of single runs are not known here.")
        return
    yield Table(
        title="Whose work it is",
        head=("class", "goes to", "runs", "a week", "last weeks, oldest first"),
        rows=tuple(
            Row(cells=(item.outcome, item.goes_to, count(item.n), _a_week(item), _last(item)))
            for item in lists
        ),
    )
    for item in lists:
        if item.first:
            # A file says what class a run is of, and not why.
            why = any(run.reasons or run.evidence for run in item.first)
            yield Table(
                title=f"{item.outcome}: the first {len(item.first)} of {item.n:,}",
                head=("trace", "workflow", "week", "cost", *(("why",) if why else ())),
                rows=tuple(
                    Row(
                        cells=(
                            Name(run.trace_id),
                            Name(run.workflow),
                            run.week or "-",
                            usd(run.cost_usd),
                            *((Name(reason(run) or "-"),) if why else ()),
                        )
                    )
                    for run in item.first
                ),
                folded=True,
                most_in_text=MOST_IN_TEXT,
            )


def reason(run: WorkItem) -> str:
    """Return why a run is of its class, and where that shows.

    Examples
    --------
    >>> reason(WorkItem(trace_id="t", workflow="w", reasons=("No.",), evidence=("s2: 12 USD",)))
    'No. [s2: 12 USD]'
    """
    said = shown(" / ".join(run.reasons), most=MOST_WHY)
    quoted = shown("; ".join(run.evidence), most=MOST_QUOTED)
    return f"{said} [{quoted}]".strip() if quoted else said


def _a_week(item: WorkList) -> str:
    dated = sum(n for _, n in item.by_week)
    if not dated:
        return "-"
    said = f"{dated / len(item.by_week):.1f}"
    return said if dated == item.n else f"{said} ({dated:,} dated)"


def _last(item: WorkList) -> str:
    return ", ".join(str(n) for _, n in item.by_week[-SHOWN_WEEKS:]) or "-"


def _success(cost: Estimate) -> str:
    """Return what a completed run costs, or why that is not known."""
    return money(cost) if cost.value is not None else cost.status
