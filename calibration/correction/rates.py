"""The judge's error rates, and their inverse."""

import numpy as np

from calibration.correction.intervals import FloatArray


def verdict_rates(table: FloatArray, *, pseudo_count: float) -> FloatArray:
    """Return P(verdict | human class), `pseudo_count` in total spread over each row.

    Shape (..., n_classes, n_verdicts); the last axis sums to one.

    Raises
    ------
    ValueError
        If `pseudo_count` is negative or not finite.

    Examples
    --------
    >>> verdict_rates(np.array([[8.0, 2.0], [1.0, 9.0]]), pseudo_count=0).tolist()
    [[0.8, 0.2], [0.1, 0.9]]
    """
    if not 0 <= pseudo_count < np.inf:
        raise ValueError(f"pseudo_count must be in [0, inf), got {pseudo_count!r}")
    smoothed = table + pseudo_count / table.shape[-1]
    rates: FloatArray = smoothed / smoothed.sum(axis=-1, keepdims=True)
    return rates


def right_inverse(rates: FloatArray) -> FloatArray:
    """Return A with rates @ A = 1, shape (..., n_verdicts, n_classes); the last two axes count.

    With as many verdicts as classes it is the inverse. With more it is the generalised least
    squares one under equal class shares: of all right inverses that with the smallest variance
    there, and its class shares sum to one for any mix of verdicts.

    Examples
    --------
    >>> wide = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1]])
    >>> (wide @ right_inverse(wide)).round(9).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> right_inverse(wide).sum(axis=1).tolist()
    [1.0, 1.0, 1.0]
    """
    if rates.shape[-2] == rates.shape[-1]:
        return np.linalg.inv(rates).astype(np.float64)
    mix = np.broadcast_to(rates.mean(axis=-2, keepdims=True), rates.shape)
    scaled = np.divide(rates, mix, out=np.zeros_like(rates), where=mix > 0)
    found = np.linalg.solve(scaled @ np.swapaxes(rates, -1, -2), scaled)
    return np.swapaxes(found, -1, -2).astype(np.float64)
