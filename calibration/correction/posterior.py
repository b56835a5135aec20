"""Draws of the judge's error rates and the class shares of production, given the counts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from calibration.correction.intervals import FloatArray

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draws:
    """Weighted draws from the posterior.

    Parameters
    ----------
    rates : float array, shape (n_draws, n_classes, n_verdicts)
        P(verdict | class).
    mix : float array, shape (n_draws, n_verdicts)
        Verdict shares of production; ``mix = prevalence @ rates`` in every draw.
    prevalence : float array, shape (n_draws, n_classes)
        Class shares of production, on the simplex.
    weights : float array, shape (n_draws,)
        Importance weights, summing to one.
    n_proposed : int
        Draws made, those off the simplex included.
    """

    rates: FloatArray
    mix: FloatArray
    prevalence: FloatArray
    weights: FloatArray
    n_proposed: int

    @property
    def effective_size(self) -> float:
        """Number of equally weighted draws these are worth; 0 without any."""
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
    """Draw error rates and class shares by importance sampling.

    Parameters
    ----------
    table : float array, shape (n_classes, n_verdicts)
        Reference traces; the first n_classes verdicts are those of the classes.
    counts : float array, shape (n_verdicts,)
        Production traces by verdict.
    rng : numpy.random.Generator
        Source of randomness.
    prior : float
        Dirichlet parameter of every cell of the error rates; class shares have a flat prior.
    wanted : int, default 5,000
        Effective size at which drawing stops; proposals come in batches of twice as many.
    most_batches : int, default 10
        Batches after which it stops in any case.
    count_further : bool, default True
        Whether to learn from how many production traces have verdicts that are no class.

    Returns
    -------
    Draws
        Possibly none, when no proposal lies on the simplex.

    Notes
    -----
    Square tables: rows of C and verdict shares q are drawn from their own Dirichlets, pi = C^-T q,
    and 1 / |det C| is the Jacobian that makes the prior of pi flat. With further verdicts that are
    no class, each row is a Dirichlet within the class verdicts (which gives the classes behind the
    class verdicts as before) times odds of each further verdict. The production counts fix one
    combination of these odds a verdict, so the odds of one class are solved for and enter the
    weight with their own density: proposals do not get rarer as production grows. They can still
    run out when the reference hardly shows a further verdict; without `count_further` only the
    class verdicts of production enter the likelihood and nothing needs to be solved.
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
    """Replace one odds of each further verdict by that which gives the drawn verdict share.

    Returns the odds, the log weight of the replaced ones, and which draws are still possible. The
    class is the one whose odds move the share most, in each draw anew: to solve for a class that is
    nearly absent, or whose odds were never above zero, would give weights without bound.
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
