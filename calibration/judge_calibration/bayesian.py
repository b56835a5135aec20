"""Rate and class shares from a reference set, by their posterior.

Assumptions and `table` are those of `confusion_inversion`.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from calibration.judge_calibration.confusion_inversion import (
    NO_LABELS_OF_CLASS,
    SINGLE,
    Inversion,
    at_effective_size,
    checked_cells,
    draw_sums,
)
from calibration.judge_calibration.samples import ProductionSums, right_inverse
from calibration.statistics.estimate import (
    OK,
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    not_estimable,
)
from calibration.statistics.intervals import clipped

METHOD = "confusion matrix inverted, posterior"
CLASS_VERDICTS_ONLY = METHOD + ", class verdicts only"

# Smallest effective size at which the posterior is reported.
FEWEST_EFFECTIVE = 400


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draws:
    """Weighted draws from the posterior.

    `rates` : P(verdict | class), shape (n_draws, n_classes, n_verdicts).
    `mix` : verdict shares of production; ``mix = prevalence @ rates`` in every draw.
    `prevalence` : class shares of production, on the simplex.
    `weights` : importance weights, summing to one.
    `n_proposed` : all draws, those off the simplex included.
    """

    rates: FloatArray
    mix: FloatArray
    prevalence: FloatArray
    weights: FloatArray
    n_proposed: int

    @property
    def effective_size(self) -> float:
        """Number of equally weighted draws with the same precision; 0 without draws."""
        return float(1 / (self.weights @ self.weights)) if self.weights.size else 0.0


def draw_posterior(
    table: FloatArray,
    counts: FloatArray,
    *,
    rng: np.random.Generator,
    prior: float,
    wanted: int = 5_000,
    most_batches: int = 10,
    count_further: bool = True,
) -> Draws:
    """Draw error rates and class shares by importance sampling; possibly no draws at all.

    Parameters
    ----------
    counts : float array, shape (n_verdicts,)
        Production traces by verdict.
    prior : float
        Dirichlet parameter of every cell of the error rates; class shares have a flat prior.
    wanted : int, default 5,000
        Effective size at which drawing stops; a batch has twice as many proposals.
    count_further : bool, default True
        Whether the number of production verdicts that are no class enters the likelihood.

    Notes
    -----
    Square tables: rows of C and verdict shares q are drawn from their own Dirichlets, pi = C^-T q,
    and 1 / |det C| is the Jacobian that makes the prior of pi flat. With verdicts that are no
    class, each row is a Dirichlet within the class verdicts (which gives the classes behind them as
    before) times odds of each further verdict. Production fixes one combination of these odds a
    verdict, so the odds of one class are solved for and enter the weight with their own density:
    proposals do not get rarer as production grows. They can still run out when the reference hardly
    shows a further verdict; without `count_further` nothing needs to be solved.
    """
    found: list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]] = []
    proposed, size = 0, 0.0
    while len(found) < most_batches and size < wanted:
        found.append(_batch(table, counts, rng, prior, 2 * wanted, count_further))
        proposed += 2 * wanted
        logs = np.concatenate([batch[3] for batch in found])
        if logs.size:
            weights = np.exp(logs - logs.max())
            weights /= weights.sum()
            size = float(1 / (weights @ weights))
    rates, mix, prevalence, logs = (
        np.concatenate([batch[part] for batch in found]) for part in range(4)
    )
    weights = np.exp(logs - logs.max()) if logs.size else logs
    return Draws(
        rates=rates,
        mix=mix,
        prevalence=prevalence,
        weights=weights / weights.sum() if logs.size else logs,
        n_proposed=proposed,
    )


def _dirichlet(rng: np.random.Generator, parameters: FloatArray, size: int) -> FloatArray:
    gammas = rng.standard_gamma(parameters, size=(size, *parameters.shape))
    # Many parameters below one can all come out as zero; that draw is as good as uniform.
    gammas = np.maximum(gammas, np.finfo(np.float64).tiny)
    result: FloatArray = gammas / gammas.sum(axis=-1, keepdims=True)
    return result


def _batch(
    table: FloatArray,
    counts: FloatArray,
    rng: np.random.Generator,
    prior: float,
    size: int,
    count_further: bool,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return rates, verdict mix, class shares and log weights of the usable proposals."""
    k = table.shape[0]
    rates = _dirichlet(rng, table + prior, size)
    mix = _dirichlet(rng, counts + 1.0, size)
    class_mass = rates[..., :k].sum(axis=-1)
    within = rates[..., :k] / class_mass[..., None]
    determinant = np.linalg.det(within)
    usable = np.abs(determinant) > 1e-12
    rates, mix, class_mass, within = (x[usable] for x in (rates, mix, class_mass, within))
    share = mix[:, :k].sum(axis=1)
    behind = np.linalg.solve(np.swapaxes(within, 1, 2), (mix[:, :k] / share[:, None])[..., None])[
        ..., 0
    ]
    logs = -np.log(np.abs(determinant[usable]))
    kept: BoolArray = np.asarray((behind >= 0).all(axis=1))
    if table.shape[1] > k:
        odds = rates[..., k:] / class_mass[..., None]
        if count_further:
            odds, further, kept = _solve_odds(table, prior, odds, behind, mix, share, kept)
            logs = logs + further
        mass = 1 + odds.sum(axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = logs + np.log(mass).sum(axis=1)
            if not count_further:
                share = 1 / (behind * mass).sum(axis=1)
                logs = logs + k * np.log(share)
        rates = np.concatenate([within, odds], axis=-1) / mass[..., None]
        behind = behind * mass * share[:, None]
        mix = np.einsum("dj,djv->dv", behind, rates)
    return rates[kept], mix[kept], behind[kept], logs[kept]


def _solve_odds(
    table: FloatArray,
    prior: float,
    odds: FloatArray,
    behind: FloatArray,
    mix: FloatArray,
    share: FloatArray,
    kept: BoolArray,
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Replace one odds of each further verdict by the value that gives the drawn verdict share.

    Returns the odds, the log weight of the replaced ones, and the draws that remain possible. In
    each draw the class is the one whose odds move the share most: to solve for a nearly absent
    class, or for odds that were never above zero, would give weights without bound.
    """
    k = table.shape[0]
    parameters = table + prior
    inside, outside = parameters[:, :k].sum(axis=1), parameters[:, k:]
    reach = np.sqrt(outside) / inside[:, None] * np.where(outside < 1, 1e-3, 1.0)
    solved = np.argmax(np.where(kept[:, None], behind, 1.0)[:, :, None] * reach, axis=1)
    replaced = solved[:, None, :] == np.arange(k)[:, None]
    own = np.take_along_axis(behind, solved, axis=1)
    others = np.einsum("dj,dje->de", behind, np.where(replaced, 0.0, odds))
    with np.errstate(invalid="ignore", divide="ignore"):
        wanted = (mix[:, k:] / share[:, None] - others) / own
        possible: BoolArray = kept & np.asarray((wanted > 0).all(axis=1))
        result: FloatArray = np.where(replaced, wanted[:, None, :], odds)
        # Density of the replaced odds of a row given its other ones: joint over marginal. Its
        # constants differ from class to class and so from draw to draw.
        drawn = inside + np.where(replaced, 0.0, outside).sum(axis=2)
        whole = parameters.sum(axis=1)
        of_row = (
            gammaln(whole)
            - gammaln(drawn)
            - whole * np.log1p(result.sum(axis=2))
            + drawn * np.log1p(np.where(replaced, 0.0, odds).sum(axis=2))
        )
        of_odds = np.where(replaced, (outside - 1) * np.log(result) - gammaln(outside), 0.0)
        logs = of_row.sum(axis=1) + of_odds.sum(axis=(1, 2)) - np.log(own * share[:, None]).sum(1)
    return result, logs, possible


@dataclass(frozen=True, slots=True, kw_only=True)
class Bayesian:
    """Posterior means and equal-tailed intervals of the mean score and of the class shares.

    `effective_size` : number of equally weighted draws with the same precision, out of `n_draws`.
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
    effects: tuple[float, float] = SINGLE,
    prior: float = 0.2,
    effective_size: int = 5_000,
    confidence_level: float = 0.95,
) -> Bayesian:
    """Estimate the mean score and class shares by their posterior.

    The posterior keeps class shares inside [0, 1], so a share near zero gets an interval that
    `invert` cannot give.

    Parameters
    ----------
    effects : tuple of float
        Those of `invert`, for tasks that repeat: the posterior is that of the effective numbers of
        labels and runs.
    prior : float, default 0.2
        Dirichlet parameter of every cell of the error rates. A larger one pulls towards a judge
        that guesses, visibly with fewer than 20 labels of a class.
    effective_size : int, default 5,000
        Effective number of draws wanted; drawing stops at twenty times as many draws.

    Returns
    -------
    Bayesian
        ``not_estimable`` without production or labels, or with an effective size below 400.

    Raises
    ------
    ValueError
        If the shapes do not fit, a count is negative, or `prior` is not positive.

    Notes
    -----
    The sampler is `draw_posterior`; it agrees with NUTS on real judges. With cost, each draw
    evaluates sum_s t_s . C^-1 e_s, with t_s from `draw_sums`. Where the reference hardly shows a
    verdict that is no class, the number of such verdicts in production is not used, and the method
    says so. A class without reference traces is left out, as in `invert`.

    References
    ----------
    Ziegler and Czyz (2023), "Bayesian Quantification with Black-Box Estimators".
    https://doi.org/10.48550/arXiv.2302.09159

    Examples
    --------
    With many labels and traces the posterior approaches (.45 + .9 - 1) / (.8 + .9 - 1):

    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> table = [[80_000, 20_000], [10_000, 90_000]]
    >>> production = production_sums_from_counts([450_000, 550_000], credit=[1.0, 0.0])
    >>> found = bayesian(table, production, rng=np.random.default_rng(0))
    >>> round(found.estimate.value, 2)
    0.5
    """
    check_confidence_level(confidence_level)
    if not 0 < prior < np.inf:
        raise ValueError(f"prior must be in (0, inf), got {prior!r}")
    cells, fewer = at_effective_size(checked_cells(table, production), production, effects)
    n_classes = cells.shape[0]
    known = cells.sum(axis=1) > 0
    if production.n == 0 or not known.any():
        why = "no production verdicts" if production.n == 0 else "no reference labels"
        return _no_posterior(
            f"{why}: judge production and label a reference set", production, 0.0, 0
        )
    # The verdicts of the known classes first; others that never occur are left out.
    order = np.concatenate(
        [
            np.flatnonzero(known),
            [k for k in range(cells.shape[1]) if k >= n_classes or not known[k]],
        ]
    ).astype(np.int64)
    given = (cells.sum(axis=0) + production.counts)[order] > 0
    given[: known.sum()] = True
    order = order[given]
    draws, method = _draw(cells[known][:, order], fewer.counts[order], rng, prior, effective_size)
    size, n_draws = draws.effective_size, draws.n_proposed
    if size < FEWEST_EFFECTIVE:
        why = (
            f"{n_draws:,} draws are worth {size:.0f}, fewer than {FEWEST_EFFECTIVE}: the verdicts "
            "of production do not fit the judge's error rates, or the judge tells too little; "
            "label production"
        )
        return _no_posterior(why, production, size, n_draws)
    scores = _scores(draws, fewer, order, known, rng)
    shares, column = [], 0
    for k in range(n_classes):
        if not known[k]:
            shares.append(not_estimable(NO_LABELS_OF_CLASS, method=METHOD, n=production.n))
            continue
        shares.append(
            _summary(draws.prevalence[:, column], draws, production.n, method, confidence_level)
        )
        column += 1
    return Bayesian(
        estimate=_summary(scores, draws, production.n, method, confidence_level),
        shares=tuple(shares),
        effective_size=size,
        n_draws=n_draws,
    )


def inverted_shares(inversion: Inversion, posterior: Bayesian) -> tuple[Estimate, ...]:
    """Return the class shares of an inversion with the limits of their posterior.

    A share near zero has no normal approximation. Where the inverted share lies outside of the
    limits, the posterior mean takes its place. ``not_estimable`` where either of the two is.

    Examples
    --------
    The judge errs in a tenth of 30 labels a class and gives verdict 1 to 8 % of 1,000 runs: the
    inversion finds -2.5 %, which is no share.

    >>> from calibration.judge_calibration.confusion_inversion import invert
    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> table = [[27, 3], [3, 27]]
    >>> production = production_sums_from_counts([920, 80], credit=[1.0, 0.0])
    >>> inversion = invert(table, production, pseudo_count=0)
    >>> posterior = bayesian(table, production, rng=np.random.default_rng(0))
    >>> share = inverted_shares(inversion, posterior)[1]
    >>> round(inversion.prevalence[1], 3), share.value == posterior.shares[1].value
    (-0.025, True)
    """
    if inversion.unclipped is None:
        return (inversion.estimate,) * len(posterior.shares)
    return tuple(map(_inverted_share, inversion.prevalence, posterior.shares))


def _inverted_share(inverted: float, posterior: Estimate) -> Estimate:
    method = posterior.method.replace("posterior", "limits of the posterior")
    low, high = posterior.interval or (np.inf, -np.inf)
    value = inverted if low <= inverted <= high else posterior.value
    return replace(posterior, value=value, method=method)


def _scores(
    draws: Draws,
    production: ProductionSums,
    order: IntArray,
    known: BoolArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the mean score in each draw."""
    credit = production.credit[known]
    if not production.varies:
        gross: FloatArray = draws.prevalence @ credit
        return gross
    per_verdict = right_inverse(draws.rates) @ production.of_level[known]
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
    """Return draws and the method; without the counts of further verdicts if draws run out."""
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


def _no_posterior(why: str, production: ProductionSums, size: float, n_draws: int) -> Bayesian:
    refused = not_estimable(why, method=METHOD, n=production.n)
    return Bayesian(
        estimate=refused,
        shares=(refused,) * production.credit.size,
        effective_size=size,
        n_draws=n_draws,
    )
