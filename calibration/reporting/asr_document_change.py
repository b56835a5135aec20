"""What the report says of changes: of the rate, and of every class with its flag."""

from collections.abc import Iterator, Sequence

from calibration.analyses.asr_report import Change
from calibration.estimates import Estimate
from calibration.metrics.class_changes import ClassChange
from calibration.metrics.differences import Difference
from calibration.reporting.asr_words import p_value, points, rate, resting, statuses
from calibration.reporting.document import Block, Mark, Row, Table, Words
from calibration.reporting.text import percent

FLAGS = (
    "Flagged when a share moved by more than 2 pp and a test that keeps the runs of a task "
    "together holds at .05 after Benjamini-Hochberg over the five classes."
)


def changes(change: Change, basis: str = "") -> Iterator[Block]:
    """Yield what became of the classes and of the rate; `basis` says of which runs."""
    title = resting(f"{change.later} against {change.earlier}", basis)
    yield change_table(change.classes, title=title)
    yield Words(text=FLAGS, kind="small")
    said = asr_change(change.before, change.after, change.asr)
    yield Words(text=f"By {basis}, t{said[1:]}" if basis else said)


def change_table(classes: Sequence[ClassChange], *, title: str) -> Table:
    """Return what became of every class share; a flag needs size and evidence."""
    return Table(
        title=title,
        head=("class", "before", "after", "change", "adjusted p", "flag"),
        rows=tuple(
            Row(
                cells=(
                    c.outcome,
                    percent(c.before),
                    percent(c.after),
                    points(c.change),
                    p_value(c.adjusted_p_value),
                    "moved" if c.flagged else "",
                ),
                mark=_drawn(c),
                flagged=c.flagged,
            )
            for c in classes
        ),
        scale=_around_zero(classes),
        scale_labels=tuple(f"{100 * end:+.0f} pp" for end in _around_zero(classes)),
        notes=tuple(statuses((c.outcome, c.change.estimate) for c in classes)),
    )


def _around_zero(classes: Sequence[ClassChange]) -> tuple[float, float]:
    ends = [
        abs(end) for c in classes for end in (c.change.estimate.interval or (c.after - c.before,))
    ]
    reach = max(0.05, -(-max(ends, default=0.0) * 20 // 1) / 20)
    return -reach, reach


def asr_change(before: Estimate, after: Estimate, asr: Difference) -> str:
    """Return what became of the rate in a sentence."""
    words = f"The ASR went from {rate(before)} to {rate(after)}: {points(asr)}"
    if asr.p_value is not None:
        p = p_value(asr.p_value)
        words += f", p {p if p.startswith('<') else '= ' + p}"
    if asr.minimum_detectable is not None:
        seen = 100 * asr.minimum_detectable
        words += f"; a change of {seen:.1f} pp would be seen with a power of {asr.power:g}"
    if asr.estimate.status != "ok":
        words += f"; {asr.estimate.status.replace('_', ' ', 1)}"
    return words + "."


def _drawn(c: ClassChange) -> Mark:
    low, high = c.change.estimate.interval or (None, None)
    # A value without limits must not look as sure as one with them.
    open_dot = c.change.estimate.interval is None
    return Mark(value=c.after - c.before, low=low, high=high, target=0.0, hollow=open_dot)
