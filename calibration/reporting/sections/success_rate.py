"""The success-rate report and the comparison of two runs as documents."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any

from calibration.analyses.success_rate.report import (
    HARMLESS,
    Change,
    CostPanel,
    GoalLine,
    LeftOutRows,
    Origin,
    Passes,
    RateGroup,
    Signal,
    SuccessRateReport,
    VerdictMix,
    VerdictWeek,
    WorkItem,
    WorkList,
)
from calibration.judge_calibration.trial_scores import WIDEST
from calibration.reporting.document import (
    Block,
    Document,
    Facts,
    Headline,
    Listing,
    Mark,
    Name,
    Point,
    Row,
    Section,
    Table,
    Trend,
    Words,
    batches_read,
    notes,
    percent,
    rate_sentence,
    reading_lines,
    table_of,
    usd,
)
from calibration.statistics.estimate import OK, Estimate
from calibration.success_rate.comparison import ClassChange, Comparison, Difference
from calibration.success_rate.pass_at_k import PassAtK
from calibration.success_rate.rate import ALL_OUTPUT
from calibration.success_rate.trend import (
    CUSUM_LIMIT,
    REFERENCE_VALUE,
    WINDOW,
    LastingDrop,
    Week,
    WeeklySeries,
)
from calibration.text import counted, own_credit, shown

if TYPE_CHECKING:
    from calibration.analyses.demo import Demo
    from calibration.analyses.success_rate.comparison import ProductionComparison

FEWEST_DIGITS, MOST_DIGITS = 1, 3

FLAGS = (
    "Flagged when a share moved by more than 2 pp and a test that keeps the runs of a task "
    "together holds at .05 after Benjamini-Hochberg over the classes."
)

SHOWN_WEEKS = 8
KINDS = ("latency", "cost")

SHIFT = (
    "Distance: what part of the runs would have to be of another class for the week to look like "
    "all weeks before it; by chance: what it would be with nothing changed. Flagged above 2 pp "
    "where a test that keeps the runs of a task together holds at .05 after Benjamini-Hochberg "
    "over the weeks. A shift says that runs or judge have changed, not which of them."
)

MOST_IN_TEXT = 3

# Drawn multiples of the ceiling; larger ones are drawn at the end.
LEAST_TIMES, MOST_TIMES = 2, 20

# A cell holds 200 characters, and evidence must not be cut off for a long reason.
MOST_WHY, MOST_QUOTED = 110, 80

MOST_GROUPS = 50

# Settings with their own line.
OWN_LINE = ("files", "postgres", "table", "spark", "seed", "resamples", "confidence_level")

ABOUT = (
    "pass@k: at least one of k trials of a task succeeds; pass^k: all k do. Means over tasks "
    "of equal weight; tasks with fewer than k trials with an outcome are left out and counted."
)

CORRECTED_PASSES = (
    "From labels: the labelled trials alone. From verdicts: all trials with a verdict, corrected "
    "for the judge's errors as the labels show them, if it errs on each trial of a task by "
    f"itself; no figure where the interval would be wider than ± {100 * WIDEST:g} points."
)

MOST_POINTS = 40
TITLE = "Agent Success Rate report"

# A chance is not shown closer to 0 or 1.
LEAST_CHANCE = 0.001
CHANCE = (
    "The chance is the share of the resamples behind the interval that are at or above the target, "
    "or, for an interval that is not one of resamples, what its reference distribution puts there. "
    "It is no probability of the true rate."
)

# Sections that the ASR page treats in a way of its own.
WEEKS, QUEUE = "Week by week", "Review queue"

SKIPPED = "Skipped rows"


def digits_for(result: Estimate) -> int:
    """Return the number of digits of a percentage that the width of its interval requires.

    Examples
    --------
    >>> digits_for(Estimate(value=0.5, interval=(0.4996, 0.5004), n=9, method="bootstrap"))
    2
    """
    digits = FEWEST_DIGITS
    while result.half_width and digits < MOST_DIGITS and 100 * result.half_width < 10.0**-digits:
        digits += 1
    return digits


def figure(
    result: Estimate | None, text: Callable[[float], str], unit: str = "", none: str = "-"
) -> str:
    """Return a value with its limits; a `+` refers to its status below."""
    if result is None or result.value is None:
        return "-" if result is None else none
    limits = "" if result.interval is None else f" [{', '.join(map(text, result.interval))}]"
    return f"{text(result.value)}{unit}{limits}{'' if result.status == OK else ' +'}"


NOT_ESTIMABLE = "not estimable +"


def share(result: Estimate | None) -> str:
    """Return a rate or share in percent with its limits, with the digits that these require."""
    digits = FEWEST_DIGITS if result is None else digits_for(result)
    return figure(result, lambda value: f"{100 * value:.{digits}f}", " %", NOT_ESTIMABLE)


def money(result: Estimate | None) -> str:
    """Return an estimated amount in USD with its limits."""
    return figure(result, usd).removesuffix(" +")


def points(change: Difference | None) -> str:
    """Return a difference in percentage points with its limits."""
    found = None if change is None else change.estimate
    return figure(found, lambda value: f"{100 * value:+z.1f}", " pp", NOT_ESTIMABLE)


def between(interval: tuple[float, float], digits: int = FEWEST_DIGITS) -> str:
    """Return limits in percent in brackets."""
    low, high = (f"{100 * end:.{digits}f}" for end in interval)
    return f"[{low}, {high}]"


def p_value(p: float | None) -> str:
    """Return a p-value, no finer than is meaningful."""
    return "-" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def resting(title: str, basis: str) -> str:
    """Return a title with the basis of its numbers, if that differs from the headline's."""
    return f"{title} ({basis})" if basis else title


def count(n: int) -> str:
    """Return a whole number with separators."""
    return f"{n:,}"


def mark(
    result: Estimate | None, *, hollow: bool = False, target: float | None = None
) -> Mark | None:
    """Return the drawing of an estimate."""
    if result is None or result.value is None:
        return None
    low, high = result.interval or (None, None)
    # A value without limits must not look as certain as one with limits.
    open_dot = hollow or result.interval is None
    return Mark(value=result.value, low=low, high=high, hollow=open_dot, target=target)


def small(text: str) -> Words:
    """Return a paragraph in small print."""
    return Words(text=text, kind="small")


def scale_of(marks: Iterable[Mark | None], *, from_zero: bool = False) -> tuple[float, float]:
    """Return a scale within [0, 1] that holds all marks, in steps of .05."""
    ends = [
        end
        for m in marks
        if m is not None
        for end in (m.value, m.low, m.high, m.target)
        if end is not None
    ]
    if not ends:
        return 0.0, 1.0
    low = 0.0 if from_zero else max(0.0, (min(ends) * 20 // 1 - 1) / 20)
    high = min(1.0, (max(ends) * 20 // 1 + 1) / 20)
    return low, max(high, low + 0.05)


def scaled(marks: Iterable[Mark | None], *, from_zero: bool = False) -> dict[str, Any]:
    """Return the scale of a table with these marks, and its labels."""
    ends = scale_of(marks, from_zero=from_zero)
    return {"scale": ends, "scale_labels": tuple(f"{100 * end:.0f} %" for end in ends)}


def changes(change: Change, titles: Mapping[str, str], basis: str = "") -> Iterator[Block]:
    """Yield the changes of the classes and of the rate; `basis` names the runs."""
    title = resting(f"{change.later} against {change.earlier}", basis)
    yield change_table(change.classes, titles, title=title)
    yield small(FLAGS)
    words = asr_change(change.before, change.after, change.asr)
    yield Words(text=f"By {basis}, t{words[1:]}" if basis else words)


def change_table(classes: Sequence[ClassChange], titles: Mapping[str, str], *, title: str) -> Table:
    """Return the change of every class share; a flag needs size and evidence."""
    return Table(
        title=title,
        head=("class", "before", "after", "change", "adjusted p", "flag"),
        rows=tuple(
            Row(
                cells=(
                    titles.get(c.outcome, c.outcome),
                    percent(c.before),
                    percent(c.after),
                    points(c.change),
                    p_value(c.adjusted_p_value),
                    "moved" if c.flagged else "",
                ),
                mark=mark(c.change.estimate, target=0.0),
                flagged=c.flagged,
            )
            for c in classes
        ),
        scale=_around_zero(classes),
        scale_labels=tuple(f"{100 * end:+z.0f} pp" for end in _around_zero(classes)),
        notes=tuple(notes((titles.get(c.outcome, c.outcome), c.change.estimate) for c in classes)),
    )


def _around_zero(classes: Sequence[ClassChange]) -> tuple[float, float]:
    ends = [
        abs(end) for c in classes for end in (c.change.estimate.interval or (c.after - c.before,))
    ]
    reach = max(0.05, -(-max(ends, default=0.0) * 20 // 1) / 20)
    return -reach, reach


def asr_change(before: Estimate, after: Estimate, asr: Difference) -> str:
    """Return the change of the rate in a sentence."""
    words = f"The ASR went from {share(before)} to {share(after)}: {points(asr)}"
    if asr.p_value is not None:
        p = p_value(asr.p_value)
        words += f", p {p if p.startswith('<') else '= ' + p}"
    if asr.minimum_detectable is not None:
        seen = 100 * asr.minimum_detectable
        words += f"; a change of {seen:.1f} pp would be seen with a power of {asr.power:g}"
    if asr.estimate.status != OK:
        words += f"; {asr.estimate.status.replace('_', ' ', 1)}"
    return words + "."


def signal_blocks(report: SuccessRateReport) -> Iterator[Block]:
    """Yield the rates, the percentiles, the verdicts, and the missing signals."""
    recorded = [s for s in report.signals if s.recorded]
    rates = [s for s in recorded if s.unit in ("share", "score")]
    if rates:
        yield from _table("Rates", rates)
        # Two tables: one of all is wider than a page.
        for title, of_users in (("Rates", False), ("Feedback", True)):
            own = [s for s in rates if s.key.startswith("feedback") == of_users]
            if own:
                yield from _by_week(f"{title} week by week", own)
    amounts = [s for s in recorded if s.unit not in ("share", "score")]
    if amounts:
        yield from _table("Latency and cost of a run", amounts)
    for kind in KINDS:
        own = [s for s in amounts if s.key.startswith(kind)]
        if own:
            yield from _by_week(f"{kind.capitalize()} week by week", own)
    mix = report.verdict_mix
    if mix is not None and mix.weeks:
        yield from _mix(mix, titles_of(report))
    yield from _missing(report)


def _table(title: str, shown: Sequence[Signal]) -> Iterator[Block]:
    shares = [s for s in shown if s.unit == "share"]
    weeks = min(len(_weeks(shown)), SHOWN_WEEKS)
    options = scaled((mark(s.over_all) for s in shares), from_zero=True)
    yield table_of(
        title,
        ("signal", "over all", "n", f"last {weeks} weeks" if weeks > 1 else "by week"),
        ((s.name, _value(s.over_all, s.unit), count(s.over_all.n), _last(s)) for s in shown),
        [mark(s.over_all) if s in shares else None for s in shown],
        **(options if shares else {}),
        notes=(
            *notes((s.name, s.over_all) for s in shown),
            *(f"Of shares: {m}." for m in dict.fromkeys(s.over_all.method for s in shares)),
        ),
    )


def _last(signal: Signal) -> str:
    found = [_short(e, signal.unit) for _, e in signal.by_week[-SHOWN_WEEKS:]]
    # The unit once, after the numbers of all weeks.
    sign = WRITTEN[signal.unit][1]
    return ", ".join(text.removesuffix(sign) for text in found) + sign if found else "-"


def _by_week(title: str, shown: Sequence[Signal]) -> Iterator[Block]:
    weeks = _weeks(shown)
    if len(weeks) < 2:
        return
    by_week = [(dict(s.by_week), s.unit) for s in shown]
    yield table_of(
        f"{title}: {len(weeks)} weeks",
        ("week", *(s.name for s in shown)),
        ((w, *(_value(found.get(w), unit) for found, unit in by_week)) for w in weeks),
        notes=tuple(notes((f"{week} ({s.name})", e) for s in shown for week, e in s.by_week)),
        folded=True,
        most_in_text=0,
    )


def _weeks(shown: Sequence[Signal]) -> list[str]:
    return sorted({week for s in shown for week, _ in s.by_week})


def _mix(mix: VerdictMix, titles: Mapping[str, str]) -> Iterator[Block]:
    names = [
        name
        for name, _ in mix.weeks[0].shares
        if any(dict(w.shares)[name].value for w in mix.weeks)
    ]
    yield Table(
        title="The judge's verdicts, each week against the weeks before",
        head=(
            "week",
            *(titles.get(name, name) for name in names),
            "n",
            "distance",
            "by chance",
            "adjusted p",
            "flag",
        ),
        rows=tuple(_mix_row(week, names) for week in mix.weeks[-SHOWN_WEEKS:]),
        notes=tuple(
            f"+ {week.week}: {week.shift.status.replace('_', ' ', 1)}"
            for week in mix.weeks[-SHOWN_WEEKS:]
            if week.shift.status.startswith("not_estimable")
        ),
    )
    if len(mix.weeks) > SHOWN_WEEKS:
        yield small(f"{len(mix.weeks) - SHOWN_WEEKS} earlier weeks are in the JSON report.")
    yield small(SHIFT)


def _mix_row(week: VerdictWeek, names: Sequence[str]) -> Row:
    shares, shift = dict(week.shares), week.shift
    sign = " +" if shift.status.startswith("not_estimable") else ""
    return Row(
        cells=(
            week.week,
            *(_short(shares[name], "share") for name in names),
            count(week.n),
            "first week" if shift.distance is None else f"{100 * shift.distance:.1f} pp{sign}",
            "-" if shift.by_chance is None else f"{100 * shift.by_chance:.1f} pp",
            p_value(shift.adjusted_p_value),
            "moved" if shift.flagged else "",
        ),
        flagged=shift.flagged,
    )


def _missing(report: SuccessRateReport) -> Iterator[Block]:
    by_status: dict[str, list[str]] = {}
    named = [(s.name, s.over_all.status) for s in report.signals if not s.recorded]
    if report.verdict_mix is not None and not report.verdict_mix.weeks:
        named.append(("the judge's verdicts by week", report.verdict_mix.status))
    for name, status in named:
        by_status.setdefault(status.removeprefix("not_estimable: "), []).append(name)
    if by_status:
        yield Listing(
            items=tuple(f"{', '.join(names)}: {status}." for status, names in by_status.items())
        )


# How the values of a unit are written, and the sign after them.
WRITTEN: Mapping[str, tuple[Callable[[float], str], str]] = {
    "share": (lambda value: f"{100 * value:.1f}", " %"),
    "score": (lambda value: f"{value:+z.2f}", ""),
    "usd": (usd, ""),
    "s": (lambda value: f"{value:,.1f}" if value >= 10 else f"{value:.2f}", " s"),
}


def _value(result: Estimate | None, unit: str) -> str:
    """Return a value with its limits."""
    if unit == "share" and result is not None and result.value is not None:
        return share(result)
    return figure(result, *WRITTEN[unit])


def _short(result: Estimate, unit: str) -> str:
    text, sign = WRITTEN[unit]
    return "-" if result.value is None else text(result.value) + sign


def missing_cost(report: SuccessRateReport) -> Iterator[Block]:
    """Yield the possible effect of missing costs on the rate."""
    cost = report.cost
    missing = cost.n - cost.n_known
    if missing:
        whose = "ASR" if report.judged is None else "human-only ASR"
        yield Words(
            text=(
                f"{missing:,} of {cost.n:,} runs have no cost and carry no penalty: the {whose} "
                f"is between {percent(report.asr_range[0])}, if each of them cost twice its "
                f"ceiling, and {percent(report.asr_range[1])}, if none went over."
            )
        )


def cost(report: SuccessRateReport) -> Iterator[Block]:
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
        yield table_of(
            "Cost by workflow (USD a run; drawn as multiples of the ceiling: P50 to P99, dot at "
            "P90)",
            ("workflow", "P50", "P90", "P99", "mean", "ceiling", "above it", "a success", "known"),
            ((Name(name), *_cells(panel, ceiling, unit)) for name, ceiling, unit, panel in rows),
            [_spread(panel) for *_, panel in rows],
            scale=(0.0, top),
            scale_labels=("0", f"{top:g} x"),
            notes=tuple(notes((Name(name), p.share_above_ceiling) for name, _, _, p in rows)),
        )
    if whole.n_without_ceiling:
        yield small(f"{whole.n_without_ceiling:,} runs are of a workflow without a ceiling.")


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


def work(report: SuccessRateReport) -> Iterator[Block]:
    """Yield the runs to review, by class."""
    lists, titles = report.work_lists, titles_of(report)
    if not lists:
        yield Words(text="No review queue: the classes of single runs are not known here.")
        return
    yield table_of(
        "Runs to review, and by whom",
        ("class", "goes to", "runs", "a week", "last weeks, oldest first"),
        (
            (titles.get(w.outcome, w.outcome), w.goes_to, count(w.n), _a_week(w), _last_counts(w))
            for w in lists
        ),
    )
    for item in lists:
        if item.first:
            title = titles.get(item.outcome, item.outcome)
            # A file has the class of a run, but no rationale.
            why = any(run.reasons or run.evidence for run in item.first)
            yield table_of(
                f"{title}: the first {len(item.first)} of {item.n:,}",
                ("trace", "workflow", "week", "cost", *(("why",) if why else ())),
                (
                    (
                        Name(run.trace_id),
                        Name(run.workflow),
                        run.week or "-",
                        usd(run.cost_usd),
                        *((Name(reason(run) or "-"),) if why else ()),
                    )
                    for run in item.first
                ),
                folded=True,
                most_in_text=MOST_IN_TEXT,
            )


def reason(run: WorkItem) -> str:
    """Return the rationale for the class of a run, with its evidence."""
    reasons = shown(" / ".join(run.reasons), most=MOST_WHY)
    quoted = shown("; ".join(run.evidence), most=MOST_QUOTED)
    return f"{reasons} [{quoted}]".strip() if quoted else reasons


def _a_week(item: WorkList) -> str:
    dated = sum(n for _, n in item.by_week)
    if not dated:
        return "-"
    mean = f"{dated / len(item.by_week):.1f}"
    return mean if dated == item.n else f"{mean} ({dated:,} dated)"


def _last_counts(item: WorkList) -> str:
    return ", ".join(str(n) for _, n in item.by_week[-SHOWN_WEEKS:]) or "-"


def _success(cost: Estimate) -> str:
    """Return the cost per complete run, or the reason why it is not known."""
    return money(cost) if cost.value is not None else cost.status


def group_blocks(report: SuccessRateReport) -> Iterator[Block]:
    """Yield one table per breakdown of the runs."""
    for of, groups in (
        ("workflow", report.by_workflow),
        ("model", report.by_model),
        ("agent version", report.by_version),
        ("harness", report.by_harness),
        ("tag", report.by_tag),
    ):
        if groups:
            corrected = report.calibrated and of != "tag"
            yield from _group_table(of, groups, report.kind if corrected else report.basis)
    if report.by_tag:
        more = f" {report.tags_left_out:,} rarer tags are left out." if report.tags_left_out else ""
        yield small(
            f"A run with several tags counts under each of them: these rates overlap.{more}"
        )
    if report.tag_meanings:
        yield table_of(
            "Tags of the catalogue",
            ("tag", "what it means"),
            ((Name(tag), meaning) for tag, meaning in report.tag_meanings.items()),
            notes=("How one recognises them: `asr taxonomy show` and docs/evaluation.md.",),
        )


# What a run is long in, how a length is written, and the columns that record it.
LENGTHS: Mapping[str, tuple[str, Callable[[float], str], str]] = {
    "n_steps": ("number of steps", lambda value: f"{value:,.0f}", "steps"),
    "total_tokens": ("tokens", lambda value: f"{value:,.0f}", "tokens"),
    "context_share": ("share of the context used", lambda value: f"{100 * value:.1f} %", "used"),
}


def length_blocks(report: SuccessRateReport) -> Iterator[Block]:
    """Yield success by steps, tokens and share of the context."""
    for found in report.by_length:
        title, text, head = LENGTHS[found.key]
        steps = found.step_rate is not None
        marks = [mark(of.success, target=of.compounded) for of in found.bins]
        names = [text(of.low) if of.low == of.high else f"{text(of.low)} to {text(of.high)}"
                 for of in found.bins]  # fmt: skip
        yield table_of(
            resting(f"Pass rate, by {title}", report.basis),
            (head, "pass rate", *(["if steps compound"] if steps else []), "n"),
            (
                (name, share(of.success), *([percent(of.compounded)] if steps else []), count(of.n))
                for name, of in zip(names, found.bins, strict=True)
            ),
            marks,
            **scaled(marks),
            notes=tuple(notes((n, of.success) for n, of in zip(names, found.bins, strict=True))),
        )
        if found.step_rate is not None:
            yield small(
                f"If every step had the same chance, {100 * found.step_rate:.2f} % a step would "
                "give the share of all runs, at their mean number of steps: the line, and the "
                "column beside. Longer tasks are often harder; neither says what length does."
            )


def _group_table(of: str, groups: Sequence[RateGroup], basis: str) -> Iterator[Block]:
    kept = groups[:MOST_GROUPS]
    marks = [mark(g.asr) for g in kept]
    further = any(g.asr_gross is not None for g in kept)
    names = [f"(no {of})" if g.name is None else Name(g.name) for g in kept]
    yield table_of(
        resting(f"By {of}", basis),
        (of, "ASR", *(("before cost penalty", "pass rate") if further else ()), "n"),
        (
            (
                name,
                share(g.asr),
                *((share(g.asr_gross), share(g.pass_rate)) if further else ()),
                count(g.n),
            )
            for name, g in zip(names, kept, strict=True)
        ),
        marks,
        **scaled(marks),
        notes=tuple(notes((Name(n), g.asr) for n, g in zip(names, kept, strict=True))),
    )
    if len(groups) > MOST_GROUPS:
        yield small(f"{len(groups) - MOST_GROUPS} more {of}s are in the JSON report.")


def reading_of(report: SuccessRateReport) -> tuple[str, ...]:
    """Return what stands before the estimates: how a table was read, and what was left out."""
    if report.reading is not None:
        return reading_lines(report.reading)
    return left_out_line(row for row in report.set_aside if row.reason not in HARMLESS)


def left_out_line(rows: Iterable[LeftOutRows]) -> tuple[str, ...]:
    """Return the line on the traces of a store that are in no number; none without any."""
    reasons = "; ".join(f"{row.n:,} {row.reason}" for row in rows)
    return (f"Left out: {reasons}.",) if reasons else ()


def left_out(report: SuccessRateReport) -> Iterator[Block]:
    """Yield the rows set aside with their reasons, and the notes."""
    if report.reading is not None and report.reading.not_read:
        yield Words(text=Name(f"Columns not read: {report.reading.unread}."))
    if report.set_aside:
        total = sum(row.n for row in report.set_aside)
        if report.judged is None:
            yield Words(text=f"{total:,} rows were skipped and are in no number above.")
        shown = any(row.examples for row in report.set_aside)
        yield table_of(
            SKIPPED if report.judged is None else "Not among the human labels, and why",
            ("why", "rows", *(("for instance",) if shown else ())),
            (
                (
                    Name(row.reason),
                    count(row.n),
                    *((Name("; ".join(row.examples) or "-"),) if shown else ()),
                )
                for row in report.set_aside
            ),
        )
    else:
        yield Words(text="No row was skipped.")
    if report.notes:
        yield Listing(items=tuple(Name(note) for note in report.notes))


def made(report: SuccessRateReport) -> Iterator[Block]:
    """Yield sampling, judge, taxonomy, seed, version and fingerprint."""
    origin = report.origin
    span = "" if report.first is None else f", {report.first} to {report.last}"
    tasks = "" if report.n_tasks is None else f" of {report.n_tasks:,} tasks"
    items = [
        ("runs", f"{report.n:,}{tasks}{span}"),
        ("sampling", origin.sampling),
        ("judge", Name(origin.judge)),
        ("taxonomy", _taxonomy(origin)),
        ("intervals", _intervals(origin)),
    ]
    for source in origin.sources:
        what = source.name
        if source.size is not None:
            what += f" ({source.size:,} bytes)"
        if source.sha256 is not None:
            what += f", SHA-256 {source.sha256[:16]}"
        items.append(("read", Name(what)))
    settings = "; ".join(
        f"{name.replace('_', ' ')} {shown(_plain(value), most=120)}"
        for name, value in sorted(origin.settings.items())
        if value not in (None, "", (), [], {}, False) and name not in OWN_LINE
    )
    if settings:
        items.append(("settings", Name(settings)))
    items += [
        ("software", f"asr-calibration {origin.package_version}"),
        ("fingerprint", origin.fingerprint),
    ]
    yield Facts(items=tuple(items))


def _taxonomy(origin: Origin) -> Name:
    return Name(f"{origin.taxonomy_version} ({origin.taxonomy_fingerprint[:16]})")


def _intervals(origin: Origin) -> str:
    level = f"{100 * origin.confidence_level:g} %"
    return f"{level}, {origin.n_resamples:,} resamples, seed {origin.seed}"


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={inner}" for name, inner in value.items())
    return "yes" if value is True else str(value)


def passes(found: Sequence[Passes]) -> Iterator[Block]:
    """Yield pass@k and pass^k by agent: trials of several agents are never pooled."""
    several = len({of.source for of in found}) > 1
    yield small(f"{ABOUT} {CORRECTED_PASSES}" if several else ABOUT)
    points = [
        ((Name(of.agent), Name(of.source)) if several else (Name(of.agent),), point)
        for of in found
        for point in _telling(of.points)
    ]
    shown = points[:MOST_POINTS]
    yield table_of(
        "Repeated trials, agent by agent",
        ("agent", *["from"] * several, "k", "pass@k", "pass^k", "tasks", "left out"),
        (
            (*of, str(p.k), share(p.pass_at_k), share(p.pass_hat_k), count(p.n_tasks),
             count(p.n_too_few))
            for of, p in shown
        ),
        notes=tuple(
            notes(
                (Name(", ".join([*of, f"k = {p.k}"])), estimate)
                for of, p in shown
                for estimate in (p.pass_at_k, p.pass_hat_k)
            )
        ),
    )  # fmt: skip
    if len(points) > MOST_POINTS:
        more = len(points) - MOST_POINTS
        yield small(f"{more} more rows are in the JSON report.")


def _telling(points: Sequence[PassAtK]) -> Sequence[PassAtK]:
    """Return the points of an agent from one source; without any figure only the first."""
    return points if any(p.pass_at_k.ok or p.pass_hat_k.ok for p in points) else points[:1]


def document(report: SuccessRateReport) -> Document:
    """Return the report as a document."""
    parts: list[tuple[str, str, Iterable[Block]]] = [
        ("The rate", _rates_answer(report), _rates(report)),
        ("Outcomes", _outcomes_answer(report), _outcomes(report)),
        (
            WEEKS, _weeks_answer(report),
            () if report.weekly is None else _weekly(report.weekly, report.basis),
        ),
        ("Cost", _cost_answer(report), cost(report)),
        ("Where", _where_answer(report), (*group_blocks(report), *length_blocks(report))),
        (
            "Repeated trials", counted(len({of.agent for of in report.passes}), "agent"),
            passes(report.passes) if report.passes else (),
        ),
        ("Sensitivity", _sensitivity_answer(report), _sensitivity(report)),
        (QUEUE, _queue_answer(report), work(report)),
        ("In operation", _signals_answer(report), signal_blocks(report)),
        ("What was left out", _left_out_answer(report), left_out(report)),
        ("How it was made", f"{report.n:,} runs, seed {report.origin.seed}", made(report)),
        ("Is this an evaluation?", _evaluation_answer(report), _evaluation(report)),
    ]  # fmt: skip
    sections = (
        Section(title=title, blocks=tuple(blocks), answer=answer) for title, answer, blocks in parts
    )
    return Document(
        title=TITLE,
        reading=reading_of(report),
        source=_source(report),
        about=(report.target,),
        headline=headline(
            "Agent Success Rate (ASR)",
            report.asr,
            report.kind,
            sentence=in_a_sentence(report),
            beside=tuple(_beside(report)),
            n_runs=report.n if report.n_tasks == report.asr.n else None,
        ),
        banners=report.marks,
        sections=tuple(section for section in sections if section.blocks),
        footer=(
            f"fingerprint {report.origin.fingerprint}; recompute and compare with: asr verify "
            "REPORT.json"
        ),
        brief=(
            *(Words(text=warning, kind="warning") for warning in report.warnings),
            *(Words(text=words) for words in goal_words(report)),
        ),
        then="" if report.outcomes == "taken as given" and not report.given_by else "status",
    )


def _evaluation(report: SuccessRateReport) -> Iterator[Block]:
    """Yield the conditions of an evaluation, each met or not, by which figure, and what to do."""
    if report.evaluation:
        yield table_of(
            "",
            ("an evaluation has", "here", "figure", "what to do"),
            (
                (check.title, check.status, check.figure, check.action or "-")
                for check in report.evaluation
            ),
        )


def _evaluation_answer(report: SuccessRateReport) -> str:
    n = Counter(check.status for check in report.evaluation)
    return f"{n['met']} of {len(report.evaluation)} conditions met, {n['not known']} not known"


def demo_document(demo: "Demo", then: str = "") -> Document:
    """Return the report on a demo, with the true rate beside it."""
    made = document(demo.report)
    truth = Words(text=f"The true rate of the simulated production is {percent(demo.truth)}.")
    return replace(
        made,
        sections=(Section(title="", blocks=(truth,)), *made.sections),
        brief=(*(made.brief or ()), truth),
        then=then,
    )


def _rates_answer(report: SuccessRateReport) -> str:
    judged = report.judged
    if judged is None:
        return f"before the cost penalty {percent(report.asr_gross.value)}"
    sides = {"labels alone": judged.human_only, "judge alone": judged.judge_raw}
    return ", ".join(f"{name} {percent(e.value)}" for name, e in sides.items() if e is not None)


def _outcomes_answer(report: SuccessRateReport) -> str:
    known = [(c.share.value, c.title) for c in report.classes if c.share.value is not None]
    moved = [] if report.change is None else [c for c in report.change.classes if c.flagged]
    if not known:
        return ""
    most, title = max(known)
    return f"{title} {percent(most)}" + (f", {len(moved)} moved" if moved else "")


def _weeks_answer(report: SuccessRateReport) -> str:
    series = report.weekly
    if series is None or not series.weeks:
        return "no times"
    if series.drop is not None and series.drop.since is not None:
        return f"below its baseline since {series.drop.since}"
    odd = sum(week.anomaly for week in series.weeks)
    return f"{counted(len(series.weeks), 'week')}, {odd} anomal{'y' if odd == 1 else 'ies'}"


def _cost_answer(report: SuccessRateReport) -> str:
    whole, above = report.cost, report.cost.share_above_ceiling
    if not whole.n_known:
        return "not known"
    mean = f"mean {usd(whole.mean)} a run"
    if above is None or above.value is None:
        return mean
    return f"{mean}, {percent(above.value)} of the runs above the ceiling"


def _where_answer(report: SuccessRateReport) -> str:
    known = [(g.asr.value, g.name or "no workflow") for g in report.by_workflow
             if g.asr.value is not None]  # fmt: skip
    if len(known) < 2:
        return "by workflow, model and tag"
    (low, worst), (high, best) = min(known), max(known)
    return f"{shown(worst, most=40)} {percent(low)} to {shown(best, most=40)} {percent(high)}"


def _sensitivity_answer(report: SuccessRateReport) -> str:
    n = len(report.sensitivity)
    return f"{n} other weights" if n else "no other weights"


def _queue_answer(report: SuccessRateReport) -> str:
    if not report.work_lists:
        return "not known here"
    titles = titles_of(report)
    return ", ".join(
        f"{item.n:,} {titles.get(item.outcome, item.outcome)}" for item in report.work_lists
    )


def titles_of(report: SuccessRateReport) -> dict[str, str]:
    """Return the title of each class, by its name in files."""
    return {c.outcome: c.title for c in report.classes}


def _signals_answer(report: SuccessRateReport) -> str:
    known = [s for s in report.signals if s.recorded and s.unit == "share"]
    named = [f"{s.name} {percent(s.over_all.value)}" for s in known[:2]]
    return ", ".join(named) or "no signals recorded"


def _left_out_answer(report: SuccessRateReport) -> str:
    total = sum(row.n for row in report.set_aside)
    return counted(total, "row") if total else "nothing"


def _source(report: SuccessRateReport) -> str:
    """Return the batches of a store whose labels are behind the rate; nothing of files."""
    batch = report.origin.settings.get("batch")
    return batches_read(batch) if report.judged is not None and isinstance(batch, str) else ""


def in_a_sentence(report: SuccessRateReport) -> str:
    """Return the rate in one sentence: of which runs, its limits, and what these carry."""
    judged = report.judged
    runs = f"these {report.n:,} runs" if report.estimand == "these_runs" else "runs like these"
    return rate_sentence(
        report.asr,
        runs,
        reviewers=judged is not None and judged.one_phase is not None,
        given_by=report.given_by,
    )


def _beside(report: SuccessRateReport) -> Iterator[tuple[str, str]]:
    yield "pass rate", share(report.pass_rate)
    yield "before cost penalty", share(report.asr_gross)
    if report.change is not None:
        name = resting(f"change, {report.change.later}", report.basis)
        yield name, points(report.change.asr).removesuffix(" +")
    elif report.why_no_change:
        yield "change", f"none; {report.why_no_change}"
    if report.cost.per_success.value is not None:
        name = resting("cost of a completed run", report.basis)
        yield name, money(report.cost.per_success)


def headline(
    name: str,
    result: Estimate,
    kind: str,
    *,
    sentence: str = "",
    beside: tuple[tuple[str, str], ...] = (),
    n_runs: int | None = None,
) -> Headline:
    """Return a rate as the headline of a report."""
    digits = digits_for(result)
    level = "" if result.interval is None else f"{100 * result.confidence_level:g} % "
    n = f"n = {result.n:,}"
    if n_runs is not None and n_runs != result.n:
        n += f" tasks ({n_runs:,} runs)"
    if result.status != OK:
        n += f"; {result.status.replace('_', ' ', 1)}"
    return Headline(
        name=name,
        value="not estimable" if result.value is None else f"{100 * result.value:.{digits}f} %",
        limits="" if result.interval is None else between(result.interval, digits),
        half_width="" if result.half_width is None else f"± {100 * result.half_width:.{digits}f}",
        kind=kind,
        how=f"{level}{result.method}, {n}",
        basis=f"{level}interval, {n}" if level else n,
        sentence=sentence,
        beside=beside,
    )


def _without_abandoned(report: SuccessRateReport) -> Estimate | None:
    """Return the rate without abandoned runs; None in a rubric without such a class."""
    found = report.asr_without_abandoned
    return None if found.status.endswith(ALL_OUTPUT) else found


def goal_words(report: SuccessRateReport) -> Iterator[str]:
    """Yield each goal in a sentence: where it is, the gap, and how likely it is reached."""
    for goal in report.goals:
        if goal.gap is None:
            yield f"Goal {goal.title} {percent(goal.target)}: {NOT_ESTIMABLE.removesuffix(' +')}."
            continue
        side = "above" if goal.gap > 0 else "below"
        gap = "reached exactly" if goal.gap == 0 else f"{100 * abs(goal.gap):.1f} pp {side}"
        yield (
            f"Goal {goal.title} {percent(goal.target)}: {share(goal.estimate).removesuffix(' +')}, "
            f"{gap}; {_chance(goal)}."
        )


def _chance(goal: GoalLine) -> str:
    if goal.chance is None:
        return goal.status.removeprefix("not_estimable: ")
    return f"at or above it: {_chance_cell(goal)} ({goal.method})"


def _chance_cell(goal: GoalLine) -> str:
    if goal.chance is None:
        return "-"
    value = min(max(goal.chance, LEAST_CHANCE), 1 - LEAST_CHANCE)
    sign = "" if value == goal.chance else "< " if goal.chance < value else "> "
    return f"{sign}{percent(value)}"


def _goals(report: SuccessRateReport) -> Iterator[Block]:
    if report.goals:
        yield table_of(
            "Goals",
            ("goal", "target", "now", "gap", "chance of being at or above it", "chance by"),
            (
                (
                    goal.title,
                    percent(goal.target),
                    share(goal.estimate),
                    "-" if goal.gap is None else f"{100 * goal.gap:+z.1f} pp",
                    _chance_cell(goal),
                    goal.method if goal.chance is not None else goal.status.replace("_", " ", 1),
                )
                for goal in report.goals
            ),
            [mark(goal.estimate, target=goal.target) for goal in report.goals],
            **scaled(mark(goal.estimate, target=goal.target) for goal in report.goals),
            notes=tuple(notes((goal.title, goal.estimate) for goal in report.goals)),
        )
        yield small(CHANCE)


def _rates(report: SuccessRateReport) -> Iterator[Block]:
    for warning in report.warnings:
        yield Words(text=warning, kind="warning")
    named: list[tuple[str, Estimate | None]] = [
        ("net of cost (the ASR)", report.asr),
        ("before cost penalty", report.asr_gross),
        ("without abandoned runs", _without_abandoned(report)),
        ("pass rate (success only)", report.pass_rate),
    ]
    judged = report.judged
    if judged is not None:
        named[:2] = [
            ("corrected, net of cost", judged.corrected),
            ("corrected, before cost penalty", judged.corrected_gross),
            ("corrected, without reviewer error", judged.one_phase),
            ("two-source bootstrap, a check", judged.two_source),
            ("human-only, net of cost", judged.human_only),
            ("uncorrected judge, net of cost", judged.judge_raw),
        ]
        source = "corrected" if report.calibrated else "human-only"
        named[-2:] = [
            ("human-only, without abandoned runs", _without_abandoned(report)),
            (f"{source}, pass rate (success only)", report.pass_rate),
        ]
    shown = [(name, result) for name, result in named if result is not None]
    hollow = ("uncorrected judge, net of cost",)
    yield rate_table("Alternative estimates", "rate", shown, hollow=hollow)
    yield Words(text=report.identity)
    literal = report.asr_literal.value
    if literal is not None:
        whose = "it" if judged is None else "the human-only rate"
        yield small(
            f"By the formula without a floor for each run, {whose} would be "
            f"{percent(literal)}; failed runs over their ceiling then count less than nothing."
        )
    yield from missing_cost(report)
    yield from _goals(report)


def rate_table(
    title: str, of: str, named: Sequence[tuple[str, Estimate]], *, hollow: Sequence[str] = ()
) -> Table:
    """Return rates with their limits, drawn on one scale."""
    marks = [mark(result, hollow=name in hollow) for name, result in named]
    # A method shared by all is written once.
    methods = list(dict.fromkeys(f"{result.method}, n = {result.n:,}" for _, result in named))
    alike = len(methods) == 1
    return table_of(
        title,
        (of, "value") if alike else (of, "value", "n", "method"),
        (
            (name, share(result), *(() if alike else (count(result.n), result.method)))
            for name, result in named
        ),
        marks,
        **scaled(marks),
        notes=(*notes(named), *([f"All: {methods[0]}."] if alike else [])),
    )


def _outcomes(report: SuccessRateReport) -> Iterator[Block]:
    marks = [mark(c.share, target=c.target) for c in report.classes]
    yield table_of(
        "Share of the runs by outcome",
        ("class", "share", "credit"),
        ((f"{c.title} ({c.outcome})", share(c.share), f"{c.credit:g}") for c in report.classes),
        marks,
        **scaled(marks, from_zero=True),
        bars=True,
        notes=(
            *notes((c.title, c.share) for c in report.classes),
            *own_credit(report.own_credit),
        ),
    )
    if report.change is None:
        why = report.why_no_change
        yield small(f"No change: {why}." if why else "No earlier runs to compare with.")
    else:
        yield from changes(report.change, titles_of(report), report.basis)


def weekly_trend(series: WeeklySeries, basis: str = "") -> Trend:
    """Return a weekly series, which has weeks, with its table; `basis` names the runs."""
    marked = [w for w in series.weeks if w.anomaly]
    rolling = "pooled over 4 weeks" if series.pooled else "mean of 4 weeks"
    first, last = series.weeks[0], series.weeks[-1]
    return Trend(
        title=resting("ASR by ISO week, UTC", basis),
        describes=(
            f"ASR of {len(series.weeks)} weeks from {first.week} to {last.week}, "
            f"first {share(first.rate)}, last {share(last.rate)}; "
            f"{len(marked)} marked as anomalies"
            + (f": {', '.join(w.week for w in marked)}." if marked else ".")
        ),
        points=tuple(_point(w) for w in series.weeks),
        value_name="ASR of the week with its interval",
        smooth_name=rolling,
        mark_name="outside the range that the weeks before predict",
        table=Table(
            title=f"The numbers of {len(series.weeks)} weeks",
            head=("week", "ASR", "n", rolling, "expected", "CUSUM", "flag"),
            rows=tuple(_week_row(w) for w in series.weeks),
            folded=True,
            notes=tuple(notes((w.week, w.rate) for w in series.weeks)),
        ),
    )


def _weekly(series: WeeklySeries, basis: str) -> Iterator[Block]:
    if not series.weeks:
        yield Words(text="No run says when it was started (started_at), so there are no weeks.")
        return
    judged = [w for w in series.weeks if w.expected is not None]
    if series.drop is not None:
        yield _drop(series.drop, series.weeks[-1].week)
    yield weekly_trend(series, basis)
    alarm = series.false_alarm_rate
    rule = (
        "Anomaly: outside the 99 % prediction interval of the eight weeks before (six at least), "
        "given their standard errors."
    )
    if alarm is None:
        yield small(f"{rule} No week has enough weeks before it to be judged.")
    else:
        # The rate is simulated: a lower one cannot be told from zero.
        often = f"{100 * alarm:.1f} %" if alarm >= 0.0005 else "less than 0.1 %"
        yield small(
            f"{rule} With nothing changed this rule would mark {often} of the "
            f"{len(judged)} weeks it judged."
        )
    if series.drop is not None and series.drop.baseline is not None:
        yield small(
            "CUSUM: how far the weeks are below their baseline, in standard errors, added up; "
            f"{REFERENCE_VALUE:g} goes off each week, down to 0. Above {CUSUM_LIMIT:g} the rate is "
            f"below its baseline: the mean of {WINDOW} weeks, which holds for the {WINDOW} after "
            f"them. With nothing changed, at most 5 % of {WINDOW} weeks have an alarm, where the "
            "true rates of weeks scatter by no more than their standard errors."
        )
    if series.n_without_week:
        yield Words(text=f"{series.n_without_week:,} runs have no time and are in no week.")


def _drop(drop: LastingDrop, last: str) -> Words:
    """Say since when the rate is below its baseline, or that no lasting drop is found."""
    if drop.baseline is None:
        why = drop.status.removeprefix("not_estimable: ")
        return small(f"A lasting drop cannot be looked for yet: {why}.")
    missing = ""
    if drop.left_out:
        shown = ", ".join(drop.left_out[:SHOWN_WEEKS])
        more = len(drop.left_out) - SHOWN_WEEKS
        missing = f" Weeks without an interval are left out: {shown}"
        missing += f" and {more} more." if more > 0 else "."
    base = percent(drop.baseline)
    if drop.since is None:
        return Words(text=f"No lasting drop up to {last}: the baseline is {base}.{missing}")
    return Words(
        text=f"The ASR is below its baseline of {base} since {drop.since} (CUSUM "
        f"{drop.value:.1f}, limit {drop.limit:g}).{missing}",
        kind="warning",
    )


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
    rolling = "-" if week.rolling.value is None else share(week.rolling)
    return Row(
        cells=(
            week.week,
            share(week.rate) if week.n else "no runs",
            count(week.n),
            rolling,
            expected,
            "-" if week.cusum is None else f"{week.cusum:.1f}",
            ", ".join(["anomaly"] * week.anomaly + ["below baseline"] * week.below),
        ),
        flagged=week.anomaly or week.below,
    )


def _sensitivity(report: SuccessRateReport) -> Iterator[Block]:
    if not report.sensitivity:
        yield Words(text="No other weights were asked for.")
        return
    named = [(row.name, row.asr) for row in report.sensitivity]
    yield rate_table("The same runs at other weights", "weights", named)
    yield from _ceilings(report)


def _ceilings(report: SuccessRateReport) -> Iterator[Block]:
    """Yield the rate at multiples of each ceiling, all workflows together first."""
    if not report.at_ceilings:
        yield small("No cost with a ceiling is known: other ceilings change nothing.")
        return
    factors = sorted({row.factor for row in report.at_ceilings})
    by: dict[str | None, dict[float, Estimate]] = {}
    for row in report.at_ceilings:
        by.setdefault(row.workflow, {})[row.factor] = row.asr
    yield table_of(
        "The same runs at other ceilings: ASR if every ceiling were multiplied",
        ("workflow", *(f"x {factor:g}" for factor in factors)),
        (
            (
                "all" if workflow is None else Name(workflow),
                *(share(found[factor]) if factor in found else "-" for factor in factors),
            )
            for workflow, found in by.items()
        ),
    )


def comparison_document(result: "ProductionComparison") -> Document:
    """Return a comparison as a document."""
    found = result.found
    return Document(
        title="Agent Success Rate, two sets of runs",
        headline=_headline(result),
        about=(f"The second is {found.verdict}. Rule: {found.rule}.",),
        banners=result.marks,
        sections=(
            Section(title="The rates", blocks=tuple(_compared_rates(result))),
            Section(
                title="Outcomes",
                blocks=(
                    change_table(
                        found.class_changes,
                        result.titles,
                        title="Share of the runs, second minus first",
                    ),
                    small(FLAGS),
                ),
            ),
            Section(title="What was left out", blocks=tuple(_left_out(result))),
            Section(title="How it was made", blocks=(_made(result),)),
        ),
        footer=f"fingerprint {result.origin.fingerprint}",
        brief=tuple(Words(text=warning, kind="warning") for warning in result.warnings),
        reading=reading_lines(result.readings),
    )


def _headline(result: "ProductionComparison") -> Headline:
    asr = result.found.asr
    made = headline("Change of the Agent Success Rate (ASR)", asr.estimate, "")
    words = points(asr).removesuffix(" +")
    value, bracket, limits = words.partition(" [")
    half = asr.estimate.half_width
    return Headline(
        name=made.name,
        value=value,
        limits=f"[{limits}" if bracket else "",
        half_width="" if half is None else f"± {100 * half:.1f} pp",
        kind=f"{result.found.verdict}; outcomes taken as given, not calibrated",
        how=f"{made.how}, {_paired(result.found)}",
        basis=made.basis,
    )


def _paired(found: Comparison) -> str:
    """Return by how many tasks two sides are paired, and how many only one of them has."""
    if not found.paired:
        return "not paired"
    first, second = found.n_alone
    alone = (
        f"; {first:,} only in the first, {second:,} only in the second" if first + second else ""
    )
    return f"paired by {found.n_pairs:,} tasks{alone}"


def _compared_rates(result: "ProductionComparison") -> Iterator[Block]:
    for warning in result.warnings:
        yield Words(text=warning, kind="warning")
    found = result.found
    named = [
        (f"{place}, {what}", value)
        for what, one, other in (
            ("net of cost (the ASR)", found.before.asr, found.after.asr),
            ("before cost penalty", found.before.asr_gross, found.after.asr_gross),
            ("pass rate", found.before.pass_rate, found.after.pass_rate),
        )
        for place, value in (("first", one), ("second", other))
    ]
    yield rate_table("First and second", "rate", named)
    yield Words(text=asr_change(found.before.asr, found.after.asr, found.asr))
    if found.paired_only is not None:
        yield Words(
            text=f"Over the {found.n_pairs:,} tasks of both alone: {points(found.paired_only)}."
        )
    if found.non_inferior is not None:
        yield Words(
            text=(
                f"A loss of {100 * found.margin:g} pp or more is "
                f"{'excluded' if found.non_inferior else 'not excluded'} by the one-sided limit."
            )
        )


def _left_out(result: "ProductionComparison") -> Iterator[Block]:
    sides = (("first", result.a), ("second", result.b))
    yield table_of(
        SKIPPED,
        ("side", "why", "rows"),
        ((p, Name(row.reason), count(row.n)) for p, side in sides for row in side.set_aside),
        empty="No row was skipped.",
    )
    notes = [Name(f"{place}: {note}") for place, side in sides for note in side.notes]
    if notes:
        yield Listing(items=tuple(notes))


def _made(result: "ProductionComparison") -> Facts:
    made = result.origin
    return Facts(
        items=(
            ("first", Name(f"{result.a.name} ({result.a.n:,} runs)")),
            ("second", Name(f"{result.b.name} ({result.b.n:,} runs)")),
            ("taxonomy", _taxonomy(made)),
            ("intervals", _intervals(made)),
            ("software", f"asr-calibration {made.package_version}"),
            ("fingerprint", made.fingerprint),
        )
    )
