"""What the report says of workflows, models and tags."""

from collections.abc import Iterator, Sequence

from calibration.analyses.asr_report import Group, ProductionReport
from calibration.reporting.asr_words import count, mark, rate, resting, scale_of, share, statuses
from calibration.reporting.document import Block, Name, Row, Table, Words

MOST_GROUPS = 50


def groups(report: ProductionReport) -> Iterator[Block]:
    """Yield a table for each way to divide the runs."""
    for of, groups in (
        ("workflow", report.by_workflow),
        ("model", report.by_model),
        ("tag", report.by_tag),
    ):
        if groups:
            yield from _group_table(of, groups, report.basis)
    if report.by_tag:
        more = f" {report.tags_left_out:,} rarer tags are left out." if report.tags_left_out else ""
        yield Words(
            text=f"A run with several tags counts under each of them: these rates overlap.{more}",
            kind="small",
        )


def _group_table(of: str, groups: Sequence[Group], basis: str) -> Iterator[Block]:
    kept = groups[:MOST_GROUPS]
    marks = [mark(g.asr) for g in kept]
    low, high = scale_of(marks)
    further = any(g.asr_gross is not None for g in kept)
    yield Table(
        title=resting(f"By {of}", basis),
        head=(of, "ASR", *(("gross", "pass rate") if further else ()), "n"),
        rows=tuple(
            Row(
                cells=(
                    f"(no {of})" if g.name is None else Name(g.name),
                    rate(g.asr),
                    *((rate(g.asr_gross), share(g.pass_rate)) if further else ()),
                    count(g.n),
                ),
                mark=drawn,
            )
            for g, drawn in zip(kept, marks, strict=True)
        ),
        scale=(low, high),
        scale_labels=(f"{low:.2f}", f"{high:.2f}"),
        notes=tuple(statuses((Name(g.name or f"(no {of})"), g.asr) for g in kept)),
    )
    if len(groups) > MOST_GROUPS:
        yield Words(
            text=f"{len(groups) - MOST_GROUPS} more {of}s stand in the JSON report.", kind="small"
        )
