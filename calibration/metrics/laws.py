"""Quantiles and chances of the normal and of Student's t.

`scipy.stats` has them too, and takes longer to load than a report takes to make.
"""

from scipy import special


def normal_quantile(share: float) -> float:
    """Return the point below which a share of the standard normal lies.

    Examples
    --------
    >>> normal_quantile(0.975)
    1.95996
    """
    return float(special.ndtri(share))


def normal_chance(point: float) -> float:
    """Return the chance of the standard normal to be below a point."""
    return float(special.ndtr(point))


def t_quantile(share: float, freedom: float) -> float:
    """Return the point below which a share of Student's t lies.

    Examples
    --------
    >>> t_quantile(0.975, 4)
    2.77645
    """
    return float(special.stdtrit(freedom, share))


def t_chance(point: float, freedom: float) -> float:
    """Return the chance of Student's t to be below a point."""
    return float(special.stdtr(freedom, point))
