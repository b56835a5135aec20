"""Hold one estimate against one threshold: the point, or the whole interval."""

from collections.abc import Sequence
from dataclasses import dataclass

from calibration.estimates import Estimate
from calibration.gates.results import Part, Status

# A value that equals its threshold but for rounding meets it.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A result before level and `allow_skipped` are looked at."""

    status: Status
    rule: str
    why: str = ""
    value: float | None = None
    interval: tuple[float, float] | None = None
    threshold: float | None = None
    n: int = 0
    method: str = ""
    parts: tuple[Part, ...] = ()


def held(
    estimate: Estimate, threshold: float, *, at_least: bool, interval_aware: bool
) -> tuple[Status, str]:
    """Hold an estimate against a threshold, the point or the whole interval."""
    value, interval = estimate.value, estimate.interval
    if value is None or estimate.status.startswith("not_estimable"):
        return "not_estimable", estimate.status.removeprefix("not_estimable: ")
    sign = 1 if at_least else -1
    met = sign * (value - threshold) >= -ROUNDING
    if interval is None:
        if interval_aware:
            return "not_estimable", f"no interval, which interval_aware needs ({estimate.status})"
        return ("pass" if met else "fail"), estimate.status if estimate.status != "ok" else ""
    best, worst = (interval[1], interval[0]) if at_least else interval
    if met:
        sure = sign * (worst - threshold) >= -ROUNDING
        return "pass", "" if sure else "the interval reaches beyond the threshold"
    reached = sign * (best - threshold) >= -ROUNDING
    if reached and interval_aware:
        return "pass", "beyond the threshold, but its interval still holds it"
    return "fail", "the interval still holds the threshold" if reached else ""


def part_of(
    name: str, estimate: Estimate, threshold: float, interval_aware: bool, *, at_least: bool = True
) -> Part:
    """Hold one of several estimates of a gate."""
    status, why = held(estimate, threshold, at_least=at_least, interval_aware=interval_aware)
    return Part(
        name=name, status=status, value=estimate.value, interval=estimate.interval,
        rule=f"{'>=' if at_least else '<='} {threshold:g}", n=estimate.n, why=why,
    )  # fmt: skip


def together(parts: Sequence[Part]) -> tuple[Status, str]:
    """One failed part fails the gate; else one without a result leaves it without."""
    for status in ("fail", "not_estimable"):
        named = [part.name for part in parts if part.status == status]
        if named:
            shown = ", ".join(named[:5]) + (f" and {len(named) - 5} more" if named[5:] else "")
            what = "failed" if status == "fail" else "not estimable"
            return ("fail" if status == "fail" else "not_estimable"), f"{what}: {shown}"
    return "pass", ""
