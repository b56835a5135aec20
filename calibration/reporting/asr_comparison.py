"""A comparison of two sets of runs as a document and as JSON."""

from collections.abc import Iterator

from calibration.analyses.production_comparison import ProductionComparison, Side
from calibration.metrics.comparison import Comparison
from calibration.records import OUTCOMES
from calibration.reporting.asr_document import headline, rate_table
from calibration.reporting.asr_document_change import FLAGS, asr_change, change_table
from calibration.reporting.asr_json import class_changes, difference, origin, rate
from calibration.reporting.asr_words import points
from calibration.reporting.document import (
    Block,
    Document,
    Facts,
    Headline,
    Listing,
    Name,
    Section,
    Table,
    Words,
)
from calibration.reporting.document import Row as TableRow
from calibration.reporting.json_values import Json

FORMAT = "asr-comparison/1"


def document(result: ProductionComparison) -> Document:
    """Return what a comparison says, for any renderer."""
    found = result.found
    return Document(
        title="Agent Success Rate, two sets of runs",
        headline=_headline(result),
        about=(f"The second is {found.verdict}. Rule: {found.rule}.",),
        banners=result.marks,
        sections=(
            Section(title="The rates", blocks=tuple(_rates(result))),
            Section(
                title="Outcomes",
                blocks=(
                    change_table(found.class_changes, title="Share of the runs, second less first"),
                    Words(text=FLAGS, kind="small"),
                ),
            ),
            Section(title="What was left out", blocks=tuple(_left_out(result))),
            Section(title="How it was made", blocks=(_made(result),)),
        ),
        footer=f"fingerprint {result.origin.fingerprint}",
    )


def data(result: ProductionComparison) -> Json:
    """Return a comparison as JSON; differences are percentage points, second minus first."""
    found = result.found
    return {
        "format": FORMAT,
        "a": {**_side(result.a), **rate(found.before)},
        "b": {**_side(result.b), **rate(found.after)},
        "difference": _difference(found),
        "difference_gross": difference(found.asr_gross),
        "difference_pass_rate": difference(found.pass_rate),
        "class_shares": class_changes(found.class_changes),
        "verdict": found.verdict,
        "rule": found.rule,
        "margin_pp": 100 * found.margin,
        "non_inferior": found.non_inferior,
        "calibrated": False,
        "credit": dict(zip(OUTCOMES, result.credit, strict=True)),
        "restated": result.restated,
        "warnings": list(result.warnings),
        "marks": list(result.marks),
        "origin": origin(result.origin),
        "fingerprint": result.origin.fingerprint,
    }


def _difference(found: Comparison) -> Json:
    return {**difference(found.asr), "paired": found.paired, "n_pairs": found.n_pairs}


def _side(side: Side) -> Json:
    return {
        "name": side.name,
        "n": side.n,
        "n_tasks": side.n_tasks,
        "taxonomy": {"version": side.taxonomy_version, "fingerprint": side.taxonomy_fingerprint},
        "set_aside": [
            {"reason": row.reason, "n": row.n, "examples": list(row.examples)}
            for row in side.set_aside
        ],
        "notes": list(side.notes),
    }


def _headline(result: ProductionComparison) -> Headline:
    asr = result.found.asr
    made = headline("Change of the Agent Success Rate (ASR)", asr.estimate, "")
    words = points(asr).removesuffix(" +")
    value, bracket, limits = words.partition(" [")
    half = asr.estimate.half_width
    paired = f"paired by {result.found.n_pairs:,} tasks" if result.found.paired else "not paired"
    return Headline(
        name=made.name,
        value=value,
        limits=f"[{limits}" if bracket else "",
        half_width="" if half is None else f"± {100 * half:.1f} pp",
        kind=f"{result.found.verdict}; outcomes taken as given, not calibrated",
        how=f"{made.how}, {paired}",
    )


def _rates(result: ProductionComparison) -> Iterator[Block]:
    for warning in result.warnings:
        yield Words(text=warning, kind="warning")
    found = result.found
    named = [
        (f"{place}, {what}", value)
        for what, one, other in (
            ("net of cost (the ASR)", found.before.asr, found.after.asr),
            ("gross", found.before.asr_gross, found.after.asr_gross),
            ("pass rate", found.before.pass_rate, found.after.pass_rate),
        )
        for place, value in (("first", one), ("second", other))
    ]
    yield rate_table("First and second", "rate", named)
    yield Words(text=asr_change(found.before.asr, found.after.asr, found.asr))
    if found.non_inferior is not None:
        yield Words(
            text=(
                f"A loss of {100 * found.margin:g} pp or more is "
                f"{'excluded' if found.non_inferior else 'not excluded'} by the one-sided limit."
            )
        )


def _left_out(result: ProductionComparison) -> Iterator[Block]:
    rows = [
        TableRow(cells=(place, Name(row.reason), f"{row.n:,}"))
        for place, side in (("first", result.a), ("second", result.b))
        for row in side.set_aside
    ]
    yield Table(
        title="Set aside",
        head=("side", "why", "rows"),
        rows=tuple(rows),
        empty="No row was set aside.",
    )
    notes = [
        Name(f"{place}: {note}")
        for place, side in (("first", result.a), ("second", result.b))
        for note in side.notes
    ]
    if notes:
        yield Listing(items=tuple(notes))


def _made(result: ProductionComparison) -> Facts:
    made = result.origin
    return Facts(
        items=(
            ("first", Name(f"{result.a.name} ({result.a.n:,} runs)")),
            ("second", Name(f"{result.b.name} ({result.b.n:,} runs)")),
            ("taxonomy", Name(f"{made.taxonomy_version} ({made.taxonomy_fingerprint[:16]})")),
            (
                "intervals",
                f"{100 * made.confidence_level:g} %, {made.n_resamples:,} resamples, "
                f"seed {made.seed}",
            ),
            ("software", f"asr-calibration {made.package_version}"),
            ("fingerprint", made.fingerprint),
        )
    )
