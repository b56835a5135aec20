"""What the report says of cost, and of runs to look at."""

from collections.abc import Iterator

from calibration.analyses.asr_report import CostPanel, ProductionReport, WorkList
from calibration.reporting.asr_words import count, money, share, statuses
from calibration.reporting.document import Block, Facts, Mark, Name, Row, Table, Words
from calibration.reporting.text import percent, usd

SHOWN_WEEKS, MOST_IN_TEXT = 8, 3


def missing_cost(report: ProductionReport) -> Iterator[Block]:
    """Yield what missing costs may do to the rate."""
    cost = report.cost
    missing = cost.n - cost.n_known
    if missing:
        yield Words(
            text=(
                f"{missing:,} of {cost.n:,} runs have no cost and carry no penalty: the ASR lies "
                f"between {report.asr_range[0]:.3f}, if each of them cost twice its ceiling, and "
                f"{report.asr_range[1]:.3f}, if none went over."
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
            *(
                ()
                if whole.per_success is None
                else (("cost of a completed run", money(whole.per_success)),)
            ),
        )
    )
    rows = [
        (g.name or "(no workflow)", g.ceiling_usd, g.unit, g.cost)
        for g in report.by_workflow
        if g.cost is not None
    ]
    if rows:
        yield Table(
            title="Cost by workflow (USD a run; drawn: P50 to P99 as a multiple of the ceiling)",
            head=("workflow", "P50", "P90", "P99", "mean", "ceiling", "above it", "a success",
                  "known"),
            rows=tuple(
                Row(cells=(Name(name), *_cells(panel, ceiling, unit)), mark=_spread(panel, ceiling))
                for name, ceiling, unit, panel in rows
            ),
            scale=(0.0, 3.0),
            scale_labels=("0", "3 x"),
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


def _spread(panel: CostPanel, ceiling: float | None) -> Mark | None:
    if ceiling is None or panel.p50 is None or panel.p90 is None or panel.p99 is None:
        return None
    return Mark(
        value=panel.p90 / ceiling, low=panel.p50 / ceiling, high=panel.p99 / ceiling, target=1.0
    )


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
            yield Table(
                title=f"{item.outcome}: the first {len(item.first)} of {item.n:,}",
                head=("trace", "workflow", "week", "cost"),
                rows=tuple(
                    Row(
                        cells=(
                            Name(run.trace_id),
                            Name(run.workflow),
                            run.week or "-",
                            usd(run.cost_usd),
                        )
                    )
                    for run in item.first
                ),
                folded=True,
                most_in_text=MOST_IN_TEXT,
            )


def _a_week(item: WorkList) -> str:
    return f"{sum(n for _, n in item.by_week) / len(item.by_week):.1f}" if item.by_week else "-"


def _last(item: WorkList) -> str:
    return ", ".join(str(n) for _, n in item.by_week[-SHOWN_WEEKS:]) or "-"
