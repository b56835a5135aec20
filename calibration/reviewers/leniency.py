"""How far a reviewer's labels move the rate: credit given less credit due, in ASR points."""

from collections.abc import Mapping, Sequence

import numpy as np

from calibration.statistics.estimate import Estimate, not_estimable
from calibration.statistics.intervals import t_interval

POINTS = 100.0

METHOD, BY_CLASS = "mean, t", "mean by class, Welch-Satterthwaite t"

NO_DIFFERENCE = "provisional: every credit is the canonical one, so there is no spread to judge by"


def leniency(
    given: Sequence[float], due: Sequence[float], *, confidence_level: float = 0.95
) -> Estimate:
    """Estimate by how many ASR points a reviewer is too generous on such a mix of classes.

    Traces are independent, and the canonical labels are taken as true. Errors that cancel leave
    no trace here: it is the bias of a rate, not the quality of labels.

    Parameters
    ----------
    given, due : sequence of float, shape (n,)
        Credit in [0, 1] of the class that the reviewer gave, and of the canonical class.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        In ASR points (100 times the mean difference), above zero when too generous. The interval
        is that of the mean, t with n - 1 df. Without any difference the value is 0 and the status
        says that there is no interval; ``not_estimable`` below two traces.

    Raises
    ------
    ValueError
        If the lengths differ.

    Examples
    --------
    One of four partial answers (credit .4) is called complete: 60 / 4 points, and with
    s = 30 an error of 15: 15 -+ 3.182 x 15.

    >>> print(leniency([1.0, 0.4, 0.4, 0.4], [0.4] * 4))
    15.000 [-32.737, 62.737] (95% mean, t, n=4)
    """
    if len(given) != len(due):
        raise ValueError(f"given and due must have one length, got {len(given)} and {len(due)}")
    points = POINTS * (np.asarray(given, dtype=float) - np.asarray(due, dtype=float))
    n = len(points)
    if n < 2:
        return not_estimable(
            "two traces or more are needed", method=METHOD, n=n, confidence_level=confidence_level
        )
    se = float(points.std(ddof=1) / np.sqrt(n))
    return _around(float(points.mean()), se, n - 1, n, METHOD, confidence_level)


def leniency_on_mix(
    given: Sequence[float],
    due: Sequence[float],
    classes: Sequence[str],
    mix: Mapping[str, float],
    *,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate the same as `leniency` for another mix of classes, such as that of production.

    Within a class the traces of the examination stand for those of the mix; the mix is taken as
    known.

    Parameters
    ----------
    given, due : sequence of float, shape (n,)
        As for `leniency`.
    classes : sequence of str, shape (n,)
        Canonical class of each trace.
    mix : mapping of str to float
        Share of each class, 1 in all; classes that it lacks have none.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        The class means weighted by the mix, with an interval by Welch and Satterthwaite;
        ``not_estimable`` when a class of the mix has fewer than two traces.

    Raises
    ------
    ValueError
        If the lengths differ or the mix does not sum to 1.

    Examples
    --------
    Partial answers get 60 points too many every other time, complete ones what is due. In a mix
    that is half partial that is .5 x 30 + .5 x 0:

    >>> kinds = ["partial_plus"] * 2 + ["complete"] * 2
    >>> half = {"partial_plus": 0.5, "complete": 0.5}
    >>> leniency_on_mix([1.0, 0.4, 1.0, 1.0], [0.4, 0.4, 1.0, 1.0], kinds, half).value
    15.0
    """
    if not len(given) == len(due) == len(classes):
        raise ValueError("given, due and classes must have one length")
    if abs(sum(mix.values()) - 1) > 1e-6:
        raise ValueError(f"mix must sum to 1, got {sum(mix.values())!r}")
    points = POINTS * (np.asarray(given, dtype=float) - np.asarray(due, dtype=float))
    of, n = np.asarray(classes), len(points)
    value, parts, freedom = 0.0, 0.0, 0.0
    for name, share in mix.items():
        mine = points[of == name]
        if share > 0 and len(mine) < 2:
            return not_estimable(
                f"class {name} of the mix has {len(mine)} traces here; two or more are needed",
                method=BY_CLASS, n=n, confidence_level=confidence_level,
            )  # fmt: skip
        if share > 0:
            part = share**2 * float(mine.var(ddof=1)) / len(mine)
            value, parts = value + share * float(mine.mean()), parts + part
            freedom += part**2 / (len(mine) - 1)
    df = parts**2 / freedom if freedom > 0 else 1.0
    return _around(value, float(np.sqrt(parts)), df, n, BY_CLASS, confidence_level)


def _around(
    value: float, se: float, df: float, n: int, method: str, confidence_level: float
) -> Estimate:
    if se == 0:
        return Estimate(
            value=value, interval=None, n=n, method=method, confidence_level=confidence_level,
            status=NO_DIFFERENCE,
        )  # fmt: skip
    return Estimate(
        value=value, interval=t_interval(value, se, df=df, confidence_level=confidence_level),
        n=n, method=method, confidence_level=confidence_level, se=se,
    )  # fmt: skip
