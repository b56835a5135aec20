"""What the report says of operation: rates of trouble, latency and cost, the judge's verdicts."""

from collections.abc import Iterator, Sequence

from calibration.analyses.asr_report import ProductionReport, Signal, VerdictMix, VerdictWeek
from calibration.estimates import Estimate
from calibration.reporting.asr_words import (
    count,
    mark,
    money,
    p_value,
    scale_of,
    share,
    statuses,
)
from calibration.reporting.document import Block, Listing, Row, Table, Words
from calibration.reporting.text import usd

SHOWN_WEEKS = 8
KINDS = ("latency", "cost")
SHIFT = (
    "Distance: what part of the runs would have to be of another class for the week to look like "
    "all weeks before it; by chance: what it would be with nothing changed. Flagged above 2 pp "
    "where a test that keeps the runs of a task together holds at .05 after Benjamini-Hochberg "
    "over the weeks. A shift says that runs or judge have changed, not which of them."
)


def signals(report: ProductionReport) -> Iterator[Block]:
    """Yield the rates, the percentiles, the verdicts, and what was not recorded."""
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
        yield from _mix(mix)
    yield from _missing(report)


def _table(title: str, shown: Sequence[Signal]) -> Iterator[Block]:
    shares = [s for s in shown if s.unit == "share"]
    marks = {s.key: mark(s.over_all) for s in shares}
    low, high = scale_of(marks.values(), from_zero=True)
    weeks = min(len(_weeks(shown)), SHOWN_WEEKS)
    yield Table(
        title=title,
        head=("signal", "over all", "n", f"last {weeks} weeks" if weeks > 1 else "by week"),
        rows=tuple(
            Row(
                cells=(
                    s.name,
                    _value(s.over_all, s.unit),
                    count(s.over_all.n),
                    _last(s),
                ),
                mark=marks.get(s.key),
            )
            for s in shown
        ),
        scale=(low, high) if shares else None,
        scale_labels=(f"{100 * low:.0f} %", f"{100 * high:.0f} %"),
        notes=(
            *statuses((s.name, s.over_all) for s in shown),
            *(f"Of shares: {m}." for m in dict.fromkeys(s.over_all.method for s in shares)),
        ),
    )


def _last(signal: Signal) -> str:
    found = [_short(e, signal.unit) for _, e in signal.by_week[-SHOWN_WEEKS:]]
    # Units once, so that the numbers of weeks stand together.
    sign = {"share": " %", "s": " s"}.get(signal.unit, "")
    return ", ".join(text.removesuffix(sign) for text in found) + sign if found else "-"


def _by_week(title: str, shown: Sequence[Signal]) -> Iterator[Block]:
    weeks = _weeks(shown)
    if len(weeks) < 2:
        return
    by_week = [dict(s.by_week) for s in shown]
    yield Table(
        title=f"{title}: {len(weeks)} weeks",
        head=("week", *(s.name for s in shown)),
        rows=tuple(
            Row(
                cells=(
                    week,
                    *(
                        _value(found.get(week), s.unit)
                        for s, found in zip(shown, by_week, strict=True)
                    ),
                )
            )
            for week in weeks
        ),
        notes=tuple(statuses((f"{week} ({s.name})", e) for s in shown for week, e in s.by_week)),
        folded=True,
        most_in_text=0,
    )


def _weeks(shown: Sequence[Signal]) -> list[str]:
    return sorted({week for s in shown for week, _ in s.by_week})


def _mix(mix: VerdictMix) -> Iterator[Block]:
    names = [
        name
        for name, _ in mix.weeks[0].shares
        if any(dict(w.shares)[name].value for w in mix.weeks)
    ]
    yield Table(
        title="The judge's verdicts, each week against the weeks before",
        head=("week", *names, "n", "distance", "by chance", "adjusted p", "flag"),
        rows=tuple(_mix_row(week, names) for week in mix.weeks[-SHOWN_WEEKS:]),
        notes=tuple(
            f"+ {week.week}: {week.shift.status.replace('_', ' ', 1)}"
            for week in mix.weeks[-SHOWN_WEEKS:]
            if week.shift.status.startswith("not_estimable")
        ),
    )
    if len(mix.weeks) > SHOWN_WEEKS:
        yield Words(
            text=f"{len(mix.weeks) - SHOWN_WEEKS} earlier weeks stand in the JSON report.",
            kind="small",
        )
    yield Words(text=SHIFT, kind="small")


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


def _missing(report: ProductionReport) -> Iterator[Block]:
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


def _value(result: Estimate | None, unit: str) -> str:
    """Return a value with its limits."""
    if result is None or result.value is None:
        return "-"
    if unit == "share":
        return share(result)
    if unit == "usd":
        return money(result) + ("" if result.status == "ok" else " +")
    said, limits = _number(result.value, unit), ""
    if result.interval is not None:
        limits = f" [{', '.join(_bare(end, unit) for end in result.interval)}]"
    return f"{said}{limits}{'' if result.status == 'ok' else ' +'}"


def _short(result: Estimate, unit: str) -> str:
    if result.value is None:
        return "-"
    if unit == "share":
        return f"{100 * result.value:.1f} %"
    return usd(result.value) if unit == "usd" else _number(result.value, unit)


def _number(value: float, unit: str) -> str:
    return f"{_bare(value, unit)}{'' if unit == 'score' else f' {unit}'}"


def _bare(value: float, unit: str) -> str:
    return (
        f"{value:+.2f}" if unit == "score" else f"{value:,.1f}" if value >= 10 else f"{value:.2f}"
    )
