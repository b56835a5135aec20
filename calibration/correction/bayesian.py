"""ASR and class shares from a reference set: the posterior under all judges that fit the labels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration.correction.class_shares import with_enough_labels
from calibration.correction.confusion import confusion_from_table
from calibration.correction.intervals import FloatArray, check_confidence_level, clipped
from calibration.correction.posterior import Draws, draw_posterior
from calibration.correction.production import ProductionSums
from calibration.correction.rates import right_inverse
from calibration.correction.resampled_costs import draw_sums
from calibration.estimates import OK, Estimate, not_estimable

METHOD = "confusion matrix inverted, posterior"
CLASS_VERDICTS_ONLY = METHOD + ", class verdicts only"
FEWEST_EFFECTIVE = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Bayesian:
    """Posterior of the mean score and of the class shares.

    Parameters
    ----------
    estimate : Estimate
        Posterior mean and equal-tailed interval of the mean score.
    shares : tuple of Estimate, length n_classes
        The same for the class shares.
    effective_size : float
        Number of equally weighted draws that the posterior draws are worth.
    n_draws : int
        Draws made.
    """

    estimate: Estimate
    shares: tuple[Estimate, ...]
    effective_size: float
    n_draws: int


def bayesian(
    table: ArrayLike,
    production: ProductionSums,
    *,
    rng: np.random.Generator,
    prior: float = 0.2,
    effective_size: int = 5_000,
    minimum_labels: int = 10,
    confidence_level: float = 0.95,
) -> Bayesian:
    """Estimate the mean score and the class shares of production from verdicts alone.

    As `invert`, and under the same assumptions: the judge's error rates given the human class carry
    over from the reference set and do not depend on cost given that class. The posterior
    keeps class shares inside [0, 1], so a share near zero gets an interval that `invert` cannot
    give.

    Parameters
    ----------
    table : array-like of float, shape (n_classes, n_verdicts)
        Reference traces by human class and verdict; may have more verdicts than classes.
    production : ProductionSums
        Verdicts and penalties of production.
    rng : numpy.random.Generator
        Source of the draws; the same state gives the same result.
    prior : float, default 0.2
        Dirichlet parameter of every cell of the error rates. The larger, the closer to a judge
        that guesses: with fewer than 20 labels of a class it shows.
    effective_size : int, default 5,000
        Draws are made until they are worth so many, or twenty times as many have been made.
    minimum_labels : int, default 10
        A class with fewer reference traces gets no interval for its own share.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Bayesian
        ``not_estimable`` without production or labels, or when the draws are worth fewer than 400.

    Raises
    ------
    ValueError
        If the shapes do not fit, a count is negative, or `prior` is not positive.

    Notes
    -----
    Class shares have a flat prior; the importance sampler is that of `draw_posterior` and agrees
    with NUTS on real judges. With cost, sum_s t_s . C^-1 e_s is evaluated in every draw, t_s[k]
    being the drawn share of verdict k times the mean of max(0, s - penalty) over its traces, drawn
    from its normal approximation. Where the reference hardly shows a verdict that is no class, the
    number of such verdicts in production is not used, and the method says so. A class without any
    reference trace is left out, as in `invert`.

    References
    ----------
    Ziegler and Czyz (2023), "Bayesian Quantification with Black-Box Estimators".
    https://doi.org/10.48550/arXiv.2302.09159

    Examples
    --------
    With very many labels and traces the posterior closes in on (.45 + .9 - 1) / (.8 + .9 - 1):

    >>> from calibration.correction.production import production_sums_from_counts
    >>> table = [[80_000, 20_000], [10_000, 90_000]]
    >>> production = production_sums_from_counts([450_000, 550_000], credit=[1.0, 0.0])
    >>> found = bayesian(table, production, rng=np.random.default_rng(0))
    >>> round(found.estimate.value, 2)
    0.5
    """
    check_confidence_level(confidence_level)
    if not 0 < prior < np.inf:
        raise ValueError(f"prior must be in (0, inf), got {prior!r}")
    cells = confusion_from_table(table).table
    n_classes = cells.shape[0]
    if cells.shape != (production.credit.size, production.counts.size):
        raise ValueError(
            f"table must have shape {(production.credit.size, production.counts.size)!r}, "
            f"got {cells.shape!r}"
        )
    known = cells.sum(axis=1) > 0
    if production.n == 0 or not known.any():
        why = "no production verdicts" if production.n == 0 else "no reference labels"
        return _refused(f"{why}: judge production and label a reference set", production, 0.0, 0)
    # The verdicts of the known classes first; one nobody gave has nothing to say.
    order = np.concatenate(
        [
            np.flatnonzero(known),
            [k for k in range(cells.shape[1]) if k >= n_classes or not known[k]],
        ]
    ).astype(np.int64)
    given = (cells.sum(axis=0) + production.counts)[order] > 0
    given[: known.sum()] = True
    order = order[given]
    draws, method = _draw(
        cells[known][:, order], production.counts[order], rng, prior, effective_size
    )
    size, n_draws = draws.effective_size, draws.n_proposed
    if size < FEWEST_EFFECTIVE:
        why = (
            f"{n_draws:,} draws are worth {size:.0f}, fewer than {FEWEST_EFFECTIVE}: the verdicts "
            "of production do not fit the judge's error rates, or the judge tells too little; "
            "label production"
        )
        return _refused(why, production, size, n_draws)
    scores = _scores(draws, production, order, known, rng)
    shares, column = [], 0
    for k in range(n_classes):
        if not known[k]:
            why = "no reference trace of this class: label some"
            shares.append(not_estimable(why, method=METHOD, n=production.n))
            continue
        share = _summary(draws.prevalence[:, column], draws, production.n, method, confidence_level)
        shares.append(with_enough_labels(share, float(cells[k].sum()), minimum_labels))
        column += 1
    return Bayesian(
        estimate=_summary(scores, draws, production.n, method, confidence_level),
        shares=tuple(shares),
        effective_size=size,
        n_draws=n_draws,
    )


def _scores(
    draws: Draws,
    production: ProductionSums,
    order: np.ndarray[tuple[int], np.dtype[np.int64]],
    known: np.ndarray[tuple[int], np.dtype[np.bool_]],
    rng: np.random.Generator,
) -> FloatArray:
    """Return the mean score in each draw."""
    credit = production.credit[known]
    if not production.has_costs:
        gross: FloatArray = draws.prevalence @ credit
        return gross
    per_verdict = right_inverse(draws.rates) @ (credit[:, None] == production.levels)
    sums = draw_sums(production, draws.mix, verdicts=order, rng=rng)
    net: FloatArray = np.einsum("dsk,dks->d", sums, per_verdict).clip(0.0, 1.0)
    return net


def _draw(
    table: FloatArray,
    counts: FloatArray,
    rng: np.random.Generator,
    prior: float,
    effective_size: int,
) -> tuple[Draws, str]:
    """Return draws and the method; the counts of further verdicts are given up if draws run out."""
    draws = draw_posterior(table, counts, rng=rng, prior=prior, wanted=effective_size)
    if draws.effective_size >= FEWEST_EFFECTIVE or table.shape[0] == table.shape[1]:
        return draws, METHOD
    draws = draw_posterior(
        table, counts, rng=rng, prior=prior, wanted=effective_size, count_further=False
    )
    return draws, CLASS_VERDICTS_ONLY


def _summary(
    values: FloatArray, draws: Draws, n: int, method: str, confidence_level: float
) -> Estimate:
    order = np.argsort(values)
    reached = np.cumsum(draws.weights[order]) - draws.weights[order] / 2
    tails = [(1 - confidence_level) / 2, (1 + confidence_level) / 2]
    lower, upper = np.interp(tails, reached, values[order])
    mean = float(draws.weights @ values)
    return Estimate(
        value=min(1.0, max(0.0, mean)),
        interval=clipped(float(lower), float(upper)),
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=OK,
        se=float(np.sqrt(draws.weights @ (values - mean) ** 2)),
    )


def _refused(why: str, production: ProductionSums, size: float, n_draws: int) -> Bayesian:
    refused = not_estimable(why, method=METHOD, n=production.n)
    return Bayesian(
        estimate=refused,
        shares=(refused,) * production.credit.size,
        effective_size=size,
        n_draws=n_draws,
    )
