"""The result of an estimator: a value, its interval, and whether it may be used."""

from dataclasses import dataclass

OK = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One estimated number.

    Parameters
    ----------
    value : float or None
        Point estimate, rates as fractions; None when the data do not support one.
    interval : tuple of float or None
        Lower and upper limit at `confidence_level`; None when there is none.
    n : int
        Number of units (items, traces or clusters, as `method` says) behind the value.
    method : str
        Estimator and interval in words, for instance ``"jackknife, Fisher z"``.
    confidence_level : float, default 0.95
        Target coverage of the interval, in (0, 1).
    status : str, default "ok"
        ``"ok"``, ``"provisional: ..."``, or ``"not_estimable: <why, and what would help>"``.
    se : float or None
        Standard error on the scale of `value`, where the method has one.

    Examples
    --------
    >>> print(Estimate(value=0.62, interval=(0.59, 0.65), n=1000, method="bootstrap"))
    0.620 [0.590, 0.650] (95% bootstrap, n=1,000)
    >>> print(not_estimable("no labels: label some traces", method="bootstrap"))
    not estimable: no labels: label some traces
    """

    value: float | None
    interval: tuple[float, float] | None
    n: int
    method: str
    confidence_level: float = 0.95
    status: str = OK
    se: float | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    @property
    def half_width(self) -> float | None:
        """Half the length of the interval, or None without an interval."""
        return None if self.interval is None else (self.interval[1] - self.interval[0]) / 2

    def __str__(self) -> str:
        if self.value is None:
            return self.status.replace("_", " ", 1)
        limits = (
            "" if self.interval is None else f" [{self.interval[0]:.3f}, {self.interval[1]:.3f}]"
        )
        level = "" if self.interval is None else f"{100 * self.confidence_level:g}% "
        note = "" if self.status == OK else f" ({self.status})"
        return f"{self.value:.3f}{limits} ({level}{self.method}, n={self.n:,}){note}"


def not_estimable(why: str, *, method: str, n: int = 0, confidence_level: float = 0.95) -> Estimate:
    """Return the explicit absence of a number, with the reason and what would mend it."""
    return Estimate(
        value=None,
        interval=None,
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=f"not_estimable: {why}",
    )
