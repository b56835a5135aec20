"""Quantiles and chances of the normal, of Student's t, of beta and of F.

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
    """Return the chance of the standard normal to be below a point.

    Examples
    --------
    >>> normal_chance(-1.95996)
    0.02500
    """
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
    """Return the chance of Student's t to be below a point.

    Examples
    --------
    >>> t_chance(-2.77645, 4)
    0.02500
    """
    return float(special.stdtr(freedom, point))


def beta_quantile(share: float, a: float, b: float) -> float:
    """Return the point below which a share of the beta distribution lies.

    Examples
    --------
    >>> beta_quantile(0.025, 7, 4)
    0.34755
    """
    return float(special.betaincinv(a, b, share))


def f_chance_above(point: float, above: float, below: float) -> float:
    """Return the chance of F to be above a point; degrees of freedom above and below the line.

    Examples
    --------
    >>> f_chance_above(3.49, 3, 12)
    0.05001
    """
    return float(special.fdtrc(above, below, point))
