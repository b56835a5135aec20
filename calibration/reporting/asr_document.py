"""The report on the Agent Success Rate as a document: what is said, in which order."""

from collections.abc import Iterator, Sequence

from calibration.analyses.asr_report import ProductionReport
from calibration.estimates import Estimate
from calibration.metrics.weekly import Week, WeeklySeries
from calibration.reporting import (
    asr_document_change,
    asr_document_cost,
    asr_document_groups,
    asr_document_origin,
    asr_document_passes,
    asr_document_signals,
)
from calibration.reporting.asr_words import (
    between,
    count,
    digits_for,
    mark,
    money,
    points,
    rate,
    resting,
    scale_of,
    share,
    statuses,
)
from calibration.reporting.document import (
    Block,
    Document,
    Headline,
    Point,
    Row,
    Section,
    Table,
    Trend,
    Words,
)

TITLE = "Agent Success Rate report"


def document(report: ProductionReport) -> Document:
    """Return what the report says, for any renderer."""
    sections = [
        Section(title="The rate", blocks=tuple(_rates(report))),
        Section(title="Outcomes", blocks=tuple(_outcomes(report))),
    ]
    if report.weekly is not None:
        sections.append(
            Section(title="Week by week", blocks=tuple(_weekly(report.weekly, report.basis)))
        )
    sections.append(Section(title="Cost", blocks=tuple(asr_document_cost.cost(report))))
    groups = tuple(asr_document_groups.groups(report))
    if groups:
        sections.append(Section(title="Where", blocks=groups))
    if report.passes:
        trials = tuple(asr_document_passes.passes(report.passes))
        sections.append(Section(title="Repeated trials", blocks=trials))
    sections.append(Section(title="Sensitivity", blocks=tuple(_sensitivity(report))))
    sections.append(Section(title="Work lists", blocks=tuple(asr_document_cost.work(report))))
    signals = tuple(asr_document_signals.signals(report))
    if signals:
        sections.append(Section(title="In operation", blocks=signals))
    sections += [
        Section(title="What was left out", blocks=tuple(asr_document_origin.left_out(report))),
        Section(title="How it was made", blocks=tuple(asr_document_origin.made(report))),
    ]
    return Document(
        title=TITLE,
        about=(report.target,),
        headline=headline(
            "Agent Success Rate (ASR)",
            report.asr,
            report.kind,
            beside=tuple(_beside(report)),
            n_runs=report.n if report.n_tasks == report.asr.n else None,
        ),
        banners=report.marks,
        sections=tuple(sections),
        footer=(
            f"fingerprint {report.origin.fingerprint}; made again and compared by: asr verify "
            "REPORT.json"
        ),
    )


def _beside(report: ProductionReport) -> Iterator[tuple[str, str]]:
    yield "pass rate", share(report.pass_rate)
    yield "gross of cost", rate(report.asr_gross)
    if report.change is not None:
        name = resting(f"change, {report.change.later}", report.basis)
        yield name, points(report.change.asr)
    if report.cost.per_success.value is not None:
        name = resting("cost of a completed run", report.basis)
        yield name, money(report.cost.per_success)


def headline(
    name: str,
    result: Estimate,
    kind: str,
    *,
    beside: tuple[tuple[str, str], ...] = (),
    n_runs: int | None = None,
) -> Headline:
    """Return a rate as the number that a report begins with."""
    digits = digits_for(result)
    level = "" if result.interval is None else f"{100 * result.confidence_level:g} % "
    how = f"{level}{result.method}, n = {result.n:,}"
    if n_runs is not None and n_runs != result.n:
        how += f" tasks ({n_runs:,} runs)"
    if result.status != "ok":
        how += f"; {result.status.replace('_', ' ', 1)}"
    return Headline(
        name=name,
        value="not estimable" if result.value is None else f"{result.value:.{digits}f}",
        limits="" if result.interval is None else between(result.interval, digits),
        half_width="" if result.half_width is None else f"± {result.half_width:.{digits}f}",
        kind=kind,
        how=how,
        beside=beside,
    )


def _rates(report: ProductionReport) -> Iterator[Block]:
    for warning in report.warnings:
        yield Words(text=warning, kind="warning")
    named: list[tuple[str, Estimate | None]] = [
        ("net of cost (the ASR)", report.asr),
        ("gross, no penalty for cost", report.asr_gross),
        ("without abandoned runs", report.asr_without_abandoned),
        ("pass rate (complete only)", report.pass_rate),
    ]
    judged = report.judged
    if judged is not None:
        named[:2] = [
            ("corrected, net of cost", judged.corrected),
            ("corrected, gross", judged.corrected_gross),
            ("two-source bootstrap, a check", judged.two_source),
            ("human-only, net of cost", judged.human_only),
            ("judge-raw, net of cost", judged.judge_raw),
        ]
        source = "corrected" if report.calibrated else "human-only"
        named[-2:] = [
            ("human-only, without abandoned runs", report.asr_without_abandoned),
            (f"{source}, pass rate (complete only)", report.pass_rate),
        ]
    shown = [(name, result) for name, result in named if result is not None]
    hollow = ("judge-raw, net of cost",)
    yield rate_table("The rate and its relatives", "rate", shown, hollow=hollow)
    yield Words(text=report.identity)
    literal = report.asr_literal.value
    if literal is not None:
        whose = "it" if judged is None else "the human-only rate"
        yield Words(
            text=(
                f"As the formula is printed, without a floor for each run, {whose} would be "
                f"{literal:.3f}; failed runs over their ceiling then count less than nothing."
            ),
            kind="small",
        )
    yield from asr_document_cost.missing_cost(report)


def rate_table(
    title: str,
    of: str,
    named: Sequence[tuple[str, Estimate]],
    *,
    hollow: Sequence[str] = (),
) -> Table:
    """Return rates with their limits, drawn on one scale."""
    marks = [mark(result, hollow=name in hollow) for name, result in named]
    low, high = scale_of(marks)
    # One method for all is said once.
    methods = list(dict.fromkeys(f"{result.method}, n = {result.n:,}" for _, result in named))
    alike = len(methods) == 1
    return Table(
        title=title,
        head=(of, "value") if alike else (of, "value", "n", "method"),
        rows=tuple(
            Row(
                cells=(name, rate(result), *(() if alike else (count(result.n), result.method))),
                mark=drawn,
            )
            for (name, result), drawn in zip(named, marks, strict=True)
        ),
        scale=(low, high),
        scale_labels=(f"{low:.2f}", f"{high:.2f}"),
        notes=(*statuses(named), *([f"All: {methods[0]}."] if alike else [])),
    )


def _outcomes(report: ProductionReport) -> Iterator[Block]:
    marks = [mark(c.share, target=c.target) for c in report.classes]
    low, high = scale_of(marks, from_zero=True)
    yield Table(
        title="Share of the runs by outcome",
        head=("class", "share", "credit"),
        rows=tuple(
            Row(cells=(f"{c.title} ({c.outcome})", share(c.share), f"{c.credit:g}"), mark=drawn)
            for c, drawn in zip(report.classes, marks, strict=True)
        ),
        scale=(low, high),
        scale_labels=(f"{100 * low:.0f} %", f"{100 * high:.0f} %"),
        bars=True,
        notes=tuple(statuses((c.outcome, c.share) for c in report.classes)),
    )
    if report.change is None:
        yield Words(text="No earlier runs to compare with.", kind="small")
    else:
        yield from asr_document_change.changes(report.change, report.basis)


def _weekly(series: WeeklySeries, basis: str) -> Iterator[Block]:
    if not series.weeks:
        yield Words(text="No run says when it was started (started_at), so there are no weeks.")
        return
    marked = [w for w in series.weeks if w.anomaly]
    judged = [w for w in series.weeks if w.expected is not None]
    rolling = "pooled over 4 weeks" if series.pooled else "mean of 4 weeks"
    first, last = series.weeks[0], series.weeks[-1]
    yield Trend(
        title=resting("ASR by ISO week, UTC", basis),
        describes=(
            f"ASR of {len(series.weeks)} weeks from {first.week} to {last.week}, "
            f"first {rate(first.rate)}, last {rate(last.rate)}; "
            f"{len(marked)} marked as anomalies"
            + (f": {', '.join(w.week for w in marked)}." if marked else ".")
        ),
        points=tuple(_point(w) for w in series.weeks),
        value_name="ASR of the week with its interval",
        smooth_name=rolling,
        mark_name="outside what the weeks before lead one to expect",
        table=Table(
            title=f"The numbers of {len(series.weeks)} weeks",
            head=("week", "ASR", "n", rolling, "expected", "flag"),
            rows=tuple(_week_row(w) for w in series.weeks),
            folded=True,
            notes=tuple(statuses((w.week, w.rate) for w in series.weeks)),
        ),
    )
    alarm = series.false_alarm_rate
    rule = (
        "Anomaly: outside the 99 % prediction interval of the eight weeks before (six at least), "
        "given their standard errors."
    )
    if alarm is None:
        yield Words(text=f"{rule} No week has enough weeks before it to be judged.", kind="small")
    else:
        # Simulated: a rate below that is not told from none.
        often = f"{100 * alarm:.1f} %" if alarm >= 0.0005 else "less than 0.1 %"
        yield Words(
            text=(
                f"{rule} With nothing changed this rule would mark {often} of the "
                f"{len(judged)} weeks it judged."
            ),
            kind="small",
        )
    if series.n_without_week:
        yield Words(text=f"{series.n_without_week:,} runs have no time and are in no week.")


def _point(week: Week) -> Point:
    low, high = week.rate.interval or (None, None)
    return Point(
        label=week.week,
        value=week.rate.value,
        low=low,
        high=high,
        smooth=week.rolling.value,
        marked=week.anomaly,
    )


def _week_row(week: Week) -> Row:
    expected = "-" if week.expected is None else between(week.expected.interval)
    rolling = "-" if week.rolling.value is None else rate(week.rolling)
    return Row(
        cells=(
            week.week,
            rate(week.rate) if week.n else "no runs",
            count(week.n),
            rolling,
            expected,
            "anomaly" if week.anomaly else "",
        ),
        flagged=week.anomaly,
    )


def _sensitivity(report: ProductionReport) -> Iterator[Block]:
    if not report.sensitivity:
        yield Words(text="No other weights were asked for.")
        return
    named = [(row.name, row.asr) for row in report.sensitivity]
    yield rate_table("The same runs at other weights", "weights", named)
