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
    weight with their own density: proposals do not get rarer as production grows.
    """
    found: list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]] = []
    proposed, size = 0, 0.0
    while len(found) < most_batches and size < wanted:
        found.append(_batch(table, counts, rng, prior, 2 * wanted))
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
    table: FloatArray, counts: FloatArray, rng: np.random.Generator, prior: float, size: int
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
        odds, further, kept = _solve_odds(table, prior, odds, behind, mix, share, kept)
        mass = 1 + odds.sum(axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = logs + further + np.log(mass).sum(axis=1)
        rates = np.concatenate([within, odds], axis=-1) / mass[..., None]
        behind = behind * mass * share[:, None]
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
    """Replace the odds of one class in each draw by those that give the drawn verdict shares.

    Returns the odds, the log weight of the replaced ones, and which draws are still possible. The
    class is the one whose odds move the shares most. It is chosen by the class shares of the draw:
    solving for the odds of a class that is nearly absent would give weights without bound.
    """
    k, further = table.shape[0], odds.shape[-1]
    parameters = table + prior
    inside = parameters[:, :k].sum(axis=1)
    reach = np.sqrt(parameters[:, k:].sum(axis=1)) / inside
    solved = np.argmax(np.where(kept[:, None], behind, 1.0) * reach, axis=1)
    row = np.arange(solved.size)
    own = behind[row, solved]
    wanted = mix[:, k:] / share[:, None]
    others = np.einsum("dj,dje->de", behind, odds) - own[:, None] * odds[row, solved]
    constants = (
        gammaln(parameters.sum(axis=1)) - gammaln(inside) - gammaln(parameters[:, k:]).sum(axis=1)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        replaced = (wanted - others) / own[:, None]
        possible: BoolArray = kept & np.asarray((replaced > 0).all(axis=1))
        logs = (
            constants[solved]
            + (np.log(replaced) * (parameters[solved, k:] - 1)).sum(axis=1)
            - parameters.sum(axis=1)[solved] * np.log1p(replaced.sum(axis=1))
            - further * np.log(own * share)
        )
    result = odds.copy()
    result[row, solved] = replaced
    return result, logs, possible
