"""What production would have scored had its traces been drawn again."""

import numpy as np

from calibration.correction.intervals import FloatArray, IntArray
from calibration.correction.production import ProductionSums


def draw_sums(
    production: ProductionSums,
    mix: FloatArray,
    *,
    verdicts: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return t_s[k], the mean over production of max(0, s - penalty) at verdict k, for each draw.

    The share of the verdict is given; the mean over its traces is drawn from its normal
    approximation, with the covariance between the levels that the penalties have. Without costs
    nothing is drawn: every trace of a level scores the level.

    Parameters
    ----------
    production : ProductionSums
        Sums and products per verdict.
    mix : float array, shape (n_draws, n_kept)
        Drawn shares of the verdicts.
    verdicts : int array, shape (n_kept,)
        The verdict that each column of `mix` is for.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    float array, shape (n_draws, n_levels, n_kept)

    Examples
    --------
    >>> from calibration.correction.production import production_sums_from_counts
    >>> draw_sums(
    ...     production_sums_from_counts([70, 30], credit=[1.0, 0.5]), np.array([[0.6, 0.4]]),
    ...     verdicts=np.array([0, 1]), rng=np.random.default_rng(0),
    ... ).tolist()
    [[[0.3, 0.2], [0.6, 0.4]]]
    """
    traces = np.maximum(1.0, production.counts[verdicts])
    means = production.sums[:, verdicts] / traces
    if not production.has_costs:
        flat: FloatArray = production.levels[:, None] * mix[:, None, :]
        return flat
    spread = production.products[:, :, verdicts] / traces - means[:, None] * means[None]
    spread = np.moveaxis(spread, -1, 0) / traces[:, None, None]
    values, vectors = np.linalg.eigh(spread)
    root = vectors * np.sqrt(np.maximum(0.0, values))[:, None, :]
    noise = rng.standard_normal((mix.shape[0], verdicts.size, production.levels.size))
    drawn = means + np.einsum("kst,dkt->dsk", root, noise)
    drawn = np.clip(drawn, 0.0, production.levels[:, None])
    # A verdict that production never had is known by its share alone: no cost is assumed.
    drawn = np.where(production.counts[verdicts] > 0, drawn, production.levels[:, None])
    result: FloatArray = drawn * mix[:, None, :]
    return result
