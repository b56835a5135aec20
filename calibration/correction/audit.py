"""How many accepted verdicts must be checked to know how often they are wrong."""

from calibration.correction.intervals import check_confidence_level
from calibration.estimates import Estimate, not_estimable
from calibration.two_way import wilson_interval

METHOD = "share of audited traces, Wilson"
# Below this an audit says too little whatever its rate.
FEWEST = 30


def audit_size(half_width: float, *, error: float = 0.5, confidence_level: float = 0.95) -> int:
    """Return how many traces to audit for an error rate to be known to a half-width.

    Parameters
    ----------
    half_width : float
        Wanted, in (0, 1/2).
    error : float, default 0.5
        Highest error rate thought possible; a half is the worst case.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    int
        At least 30.

    Raises
    ------
    ValueError
        If `half_width` is not in (0, 1/2) or `error` not in [0, 1].

    Examples
    --------
    >>> audit_size(0.05), audit_size(0.05, error=0.1), audit_size(0.2, error=0.1)
    (381, 141, 30)
    """
    check_confidence_level(confidence_level)
    if not 0 < half_width < 0.5:
        raise ValueError(f"half_width must be in (0, 1/2), got {half_width!r}")
    if not 0 <= error <= 1:
        raise ValueError(f"error must be in [0, 1], got {error!r}")
    worst = min(error, 1 - error)

    def reach(n: int) -> float:
        low, high = wilson_interval(worst * n, n, confidence_level=confidence_level)
        return (high - low) / 2

    few, many = FEWEST, FEWEST
    while reach(many) > half_width:
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if reach(middle) > half_width else (few, middle)
    return many


def error_rate(wrong: float, n: int, *, confidence_level: float = 0.95) -> Estimate:
    """Estimate how often accepted verdicts are wrong, from a random part of them.

    `wrong` may hold fractions: a trace whose reviewers differ is wrong in part.

    Examples
    --------
    >>> print(error_rate(3, 100))
    0.030 [0.010, 0.085] (95% share of audited traces, Wilson, n=100)
    """
    if n < 2:
        why = f"{n} audited traces are labelled: label the batch"
        return not_estimable(why, method=METHOD, n=n, confidence_level=confidence_level)
    return Estimate(
        value=wrong / n,
        interval=wilson_interval(wrong, n, confidence_level=confidence_level),
        n=n,
        method=METHOD,
        confidence_level=confidence_level,
    )
