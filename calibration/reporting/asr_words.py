"""Numbers of a report in words: digits, percent, percentage points."""

from collections.abc import Iterable, Iterator

from calibration.estimates import OK, Estimate
from calibration.metrics.differences import Difference
from calibration.reporting.document import Mark, Name
from calibration.reporting.text import usd

FEWEST_DIGITS, MOST_DIGITS = 3, 5


def digits_for(result: Estimate) -> int:
    """Return how many digits an interval of that width needs to be seen.

    Examples
    --------
    >>> digits_for(Estimate(value=0.5, interval=(0.4996, 0.5004), n=9, method="bootstrap"))
    4
    """
    digits = FEWEST_DIGITS
    while result.half_width and digits < MOST_DIGITS and result.half_width < 10.0**-digits:
        digits += 1
    return digits


def rate(result: Estimate | None) -> str:
    """Return a rate with its limits; a `+` says that its status stands below."""
    if result is None:
        return "-"
    if result.value is None:
        return "not estimable +"
    digits = digits_for(result)
    limits = "" if result.interval is None else f" {between(result.interval, digits)}"
    return f"{result.value:.{digits}f}{limits}{'' if result.status == OK else ' +'}"


def share(result: Estimate | None) -> str:
    """Return a share in percent with its limits.

    Examples
    --------
    >>> share(Estimate(value=0.62, interval=(0.588, 0.645), n=1000, method="bootstrap"))
    '62.0 % [58.8, 64.5]'
    """
    if result is None:
        return "-"
    if result.value is None:
        return "not estimable +"
    digits = digits_for(result) - 2
    limits = ""
    if result.interval is not None:
        low, high = (100 * end for end in result.interval)
        limits = f" [{low:.{digits}f}, {high:.{digits}f}]"
    return f"{100 * result.value:.{digits}f} %{limits}{'' if result.status == OK else ' +'}"


def money(result: Estimate | None) -> str:
    """Return an estimated amount in USD with its limits."""
    if result is None or result.value is None:
        return "-"
    limits = ""
    if result.interval is not None:
        limits = f" [{', '.join(usd(end) for end in result.interval)}]"
    return usd(result.value) + limits


def between(interval: tuple[float, float], digits: int = 3) -> str:
    """Return limits in brackets."""
    return f"[{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"


def points(change: Difference | None) -> str:
    """Return a difference in percentage points with its limits."""
    if change is None:
        return "-"
    result = change.estimate
    if result.value is None:
        return "not estimable +"
    limits = ""
    if result.interval is not None:
        low, high = (100 * end for end in result.interval)
        limits = f" [{low:+.1f}, {high:+.1f}]"
    return f"{100 * result.value:+.1f} pp{limits}{'' if result.status == OK else ' +'}"


def p_value(p: float | None) -> str:
    """Return a p-value, no finer than it means anything."""
    return "-" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def resting(title: str, basis: str) -> str:
    """Return a title with what its numbers rest on, where that is not what the headline does.

    Examples
    --------
    >>> resting("By model", "human labels alone"), resting("By model", "")
    ('By model (human labels alone)', 'By model')
    """
    return f"{title} ({basis})" if basis else title


def count(n: int) -> str:
    """Return a whole number with separators."""
    return f"{n:,}"


def statuses(named: Iterable[tuple[str, Estimate | None]]) -> Iterator[str]:
    """Yield what `+` stands for, each status once with the names it holds for."""
    by_status: dict[str, list[str]] = {}
    for name, result in named:
        if result is not None and result.status != OK:
            by_status.setdefault(result.status.replace("_", " ", 1), []).append(name)
    for status, names in by_status.items():
        named_ones = list(dict.fromkeys(names))
        few = ", ".join(named_ones[:6]) + (" and others" if len(named_ones) > 6 else "")
        said = f"+ {few}: {status}"
        yield Name(said) if any(isinstance(name, Name) for name in named_ones) else said


def mark(
    result: Estimate | None, *, hollow: bool = False, target: float | None = None
) -> Mark | None:
    """Return what to draw of an estimate."""
    if result is None or result.value is None:
        return None
    low, high = result.interval or (None, None)
    # A value without limits must not look as sure as one with them.
    open_dot = hollow or result.interval is None
    return Mark(value=result.value, low=low, high=high, hollow=open_dot, target=target)


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
