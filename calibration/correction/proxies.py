"""What each verdict would score, for every trace of production: sums, not traces."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration.correction.intervals import FloatArray, IntArray
from calibration.correction.production import ProductionSums


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySums:
    """Sufficient statistics of a proxy over a set of traces.

    Parameters
    ----------
    n : float
        Traces.
    total, squares : float
        Sum of the proxy and of its square.
    """

    n: float
    total: float
    squares: float

    @property
    def mean(self) -> float:
        """Mean of the proxy; 0 without traces."""
        return self.total / self.n if self.n > 0 else 0.0

    @property
    def variance(self) -> float:
        """Variance with divisor n; 0 without traces."""
        return max(0.0, self.squares / self.n - self.mean**2) if self.n > 0 else 0.0

    def plus(self, proxies: FloatArray, *, sign: int = 1) -> "ProxySums":
        """Return the sums with traces added, or taken away with `sign` -1."""
        return ProxySums(
            n=max(0.0, self.n + sign * proxies.size),
            total=self.total + sign * float(proxies.sum()),
            squares=max(0.0, self.squares + sign * float(proxies @ proxies)),
        )


def score_weights(production: ProductionSums) -> FloatArray:
    """Return what each verdict takes of each f_s, shape (n_levels, n_verdicts).

    The proxy of a trace is sum_s weight[s, verdict] max(0, s - penalty). A verdict that is a class
    takes its own credit: max(0, credit - penalty). One that is no class (`no_verdict`, `split`)
    takes what the class verdicts of production would score on average at the trace's own penalty.
    That is a function of verdict and penalty fixed by production alone: a proxy fitted to the
    labels would let them vouch for themselves.

    Examples
    --------
    Three of four class verdicts have credit 1, so no verdict stands for 0.75:

    >>> from calibration.correction.production import production_sums_from_counts
    >>> score_weights(production_sums_from_counts([3, 1, 2], credit=[1.0, 0.0])).tolist()
    [[1.0, 0.0, 0.75]]
    """
    n_classes = production.credit.size
    weights = np.zeros((production.levels.size, production.counts.size))
    weights[:, :n_classes] = production.levels[:, None] == production.credit
    of_class = production.counts[:n_classes]
    if of_class.sum() > 0:
        weights[:, n_classes:] = (weights[:, :n_classes] @ of_class / of_class.sum())[:, None]
    return weights


def score_proxies(
    verdicts: IntArray, penalties: FloatArray | None, production: ProductionSums
) -> FloatArray:
    """Return the proxy of each trace, shape (n,), with the weights of `score_weights`.

    Examples
    --------
    >>> from calibration.correction.production import production_sums_from_counts
    >>> production = production_sums_from_counts([3, 1], credit=[1.0, 0.4])
    >>> score_proxies(np.array([0, 1, 1]), np.array([0.5, 0.1, 0.5]), production).tolist()
    [0.5, 0.3, 0.0]
    """
    penalty = np.zeros(verdicts.size) if penalties is None else np.asarray(penalties, np.float64)
    kept = np.maximum(0.0, production.levels[:, None] - penalty)
    result: FloatArray = (score_weights(production)[:, verdicts] * kept).sum(axis=0)
    return result


def score_sums(production: ProductionSums) -> ProxySums:
    """Return the sums of the score proxy over production."""
    weights = score_weights(production)
    return ProxySums(
        n=float(production.counts.sum()),
        total=float((weights * production.sums).sum()),
        squares=float(np.einsum("sk,uk,suk->", weights, weights, production.products)),
    )


def class_proxies(production_counts: ArrayLike, n_classes: int) -> FloatArray:
    """Return the proxy of each class share by verdict, shape (n_classes, n_verdicts).

    1 for the verdict that is the class, 0 for the others; a verdict that is no class stands for
    the class's share of the class verdicts of production.

    Examples
    --------
    >>> class_proxies([3, 1, 2], 2).tolist()
    [[1.0, 0.0, 0.75], [0.0, 1.0, 0.25]]
    """
    counts = np.asarray(production_counts, dtype=np.float64)
    result = np.eye(n_classes, counts.size)
    of_class = counts[:n_classes]
    if of_class.sum() > 0:
        result[:, n_classes:] = (of_class / of_class.sum())[:, None]
    return result


def sums_by_verdict(proxy: FloatArray, production_counts: FloatArray) -> ProxySums:
    """Return the sums of a proxy that depends on the verdict only."""
    return ProxySums(
        n=float(production_counts.sum()),
        total=float(proxy @ production_counts),
        squares=float(proxy**2 @ production_counts),
    )
