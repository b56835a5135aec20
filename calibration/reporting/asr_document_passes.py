"""What the report says of repeated trials of a task: pass@k and pass^k."""

from collections.abc import Iterator, Sequence

from calibration.analyses.asr_report import Passes
from calibration.estimates import Estimate
from calibration.metrics.pass_at_k import ADVISE_BAYESIAN, PassAtK
from calibration.reporting.asr_words import count, share, statuses
from calibration.reporting.document import Block, Name, Row, Table, Words

ABOUT = (
    "pass@k: at least one of k trials of a task is complete; pass^k: all k are. Means over tasks, "
    "each the same; tasks with fewer than k labelled trials are left out and counted."
)


MOST_POINTS = 40


def passes(found: Sequence[Passes]) -> Iterator[Block]:
    """Yield pass@k and pass^k, agent by agent: trials of several are never pooled."""
    yield Words(text=ABOUT, kind="small")
    points = [(of, point) for of in found for point in _telling(of.points)]
    yield Table(
        title="Repeated trials, agent by agent",
        head=("agent", "k", "pass@k", "pass^k", "tasks", "left out"),
        rows=tuple(_row(of, point) for of, point in points[:MOST_POINTS]),
        notes=tuple(statuses(_named(points[:MOST_POINTS]))),
    )
    if len(points) > MOST_POINTS:
        more = len(points) - MOST_POINTS
        yield Words(text=f"{more} more rows stand in the JSON report.", kind="small")
    few = [point for _, point in points if point.advice and point.pass_at_k.ok]
    if few:
        yield Words(
            text=(
                f"Fewer than {ADVISE_BAYESIAN} tasks see too few kinds of task: such intervals are "
                "rather too short."
            ),
            kind="small",
        )


def _telling(points: Sequence[PassAtK]) -> Sequence[PassAtK]:
    """Return the points of an agent, of one without any labelled trial the first alone."""
    return points if any(point.n_tasks for point in points) else points[:1]


def _row(of: Passes, point: PassAtK) -> Row:
    return Row(
        cells=(
            Name(of.agent),
            str(point.k),
            share(point.pass_at_k),
            share(point.pass_hat_k),
            count(point.n_tasks),
            count(point.n_too_few),
        )
    )


def _named(points: Sequence[tuple[Passes, PassAtK]]) -> Iterator[tuple[str, Estimate]]:
    for of, point in points:
        for estimate in (point.pass_at_k, point.pass_hat_k):
            yield Name(f"{of.agent}, k = {point.k}"), estimate
