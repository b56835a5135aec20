"""Every coefficient on one set of ratings, side by side, with the interval asked for."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.agreement.by_rater import conger_kappa, light_kappa
from calibration.agreement.chance_corrected import (
    BRENNAN_PREDIGER,
    FLEISS_KAPPA,
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    KRIPPENDORFF_ORDINAL,
    PERCENT_AGREEMENT,
    SCOTT_PI,
    Coefficient,
    estimate,
)
from calibration.agreement.clusters import clusters_of, estimate_by_cluster
from calibration.agreement.counts import (
    MISSING,
    CountPatterns,
    patterns_of_items,
    validated_codes,
)
from calibration.agreement.intervals import METHOD
from calibration.agreement.linearised import gwet_conger, gwet_interval
from calibration.agreement.resampling import Resampled, resample, resample_conger
from calibration.agreement.two_raters import cohen_kappa
from calibration.estimates import Estimate, not_estimable

ORDINAL = "krippendorff_ordinal"
FROM_COUNTS = (PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA, GWET_AC, FLEISS_KAPPA, BRENNAN_PREDIGER)
INTERVALS = ("jackknife", "percentile", "bca", "gwet")
ONLY_ALPHA = "Krippendorff's ordinal distances are defined for alpha; take --weights ordinal"


def agreement_panel(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    ordinal: bool = False,
    interval: str = "jackknife",
    cluster: ArrayLike | None = None,
    n_resamples: int = 2000,
    rng: np.random.Generator | None = None,
    confidence_level: float = 0.95,
) -> dict[str, Estimate]:
    """Estimate every coefficient on one set of ratings.

    Parameters
    ----------
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    n_classes : int
        Declared number of classes, used or not.
    weights : array-like of float, shape (n_classes, n_classes), optional
        Agreement weights, 1 on the diagonal; default: classes agree or do not.
    ordinal : bool, default False
        Take Krippendorff's ordinal distances, which follow the use of the classes: alpha only.
    interval : str, default "jackknife"
        One of `INTERVALS`. Cohen's kappa has the error of Fleiss, Cohen and Everitt in place of
        the jackknife's and of Gwet's, Light's keeps the jackknife. Each says its method.
    cluster : array-like, shape (n_items,), optional
        What an item belongs to, for instance its task, where items of one cluster are alike. It
        is for the coefficients that count classes; those by rater are given over items.
    n_resamples : int, default 2000
        Resamples of ``percentile`` and ``bca``.
    rng : numpy.random.Generator, optional
        Source of the resamples; needed for ``percentile`` and ``bca``.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    dict of Estimate
        By name; Scott's pi and Cohen's kappa only where there are two raters, Light's where
        there are more.

    Raises
    ------
    ValueError
        As `count_patterns` and `estimate`, for an interval that is none, or without `rng`.

    Examples
    --------
    >>> panel = agreement_panel([[0, 0], [1, 1], [0, 1]], n_classes=2)
    >>> panel["percent_agreement"].value, panel["scott_pi"].value
    (0.66667, 0.33333)
    """
    if interval not in INTERVALS:
        raise ValueError(f"interval must be one of {', '.join(INTERVALS)}, got {interval!r}")
    drawn = interval in ("percentile", "bca")
    if rng is None and drawn:
        raise ValueError(f"interval {interval!r} needs rng")
    if cluster is not None and interval == "gwet":
        raise ValueError("Gwet's interval is over items; take another with cluster")
    array = validated_codes(codes, n_classes=n_classes)
    two = array.shape[1] == 2
    of_counts = [*FROM_COUNTS, SCOTT_PI] if two else list(FROM_COUNTS)
    by_rater = ["conger_kappa", "cohen_kappa" if two else "light_kappa"]
    if ordinal:
        of_counts = [KRIPPENDORFF_ORDINAL]
    patterns, of_item = patterns_of_items(array, n_classes=n_classes)
    clusters = None
    if cluster is not None:
        clusters = clusters_of(of_item, cluster, n_patterns=len(patterns.counts))
    found = _from_counts(
        of_counts, patterns, weights, clusters,
        interval=interval, n_resamples=n_resamples, rng=rng, confidence_level=confidence_level,
    )  # fmt: skip
    if ordinal:
        refused = not_estimable(ONLY_ALPHA, method=METHOD, confidence_level=confidence_level)
        names = [c.name for c in FROM_COUNTS] + (["scott_pi"] if two else []) + by_rater
        return dict.fromkeys(names, refused) | found
    for name in by_rater:
        found[name] = _by_rater(
            name, array, n_classes, weights,
            interval=interval, n_resamples=n_resamples, rng=rng, confidence_level=confidence_level,
        )  # fmt: skip
    order = [c.name for c in FROM_COUNTS] + ["conger_kappa", "scott_pi"] + by_rater[1:]
    return {name: found[name] for name in order if name in found}


def _from_counts(
    coefficients: list[Coefficient],
    patterns: CountPatterns,
    weights: ArrayLike | None,
    clusters: NDArray[np.int64] | None,
    *,
    interval: str,
    n_resamples: int,
    rng: np.random.Generator | None,
    confidence_level: float,
) -> dict[str, Estimate]:
    if interval == "gwet":
        return {
            c.name: gwet_interval(c, patterns, weights=weights, confidence_level=confidence_level)
            for c in coefficients
        }
    if interval == "jackknife" and clusters is not None:
        return {
            c.name: estimate_by_cluster(
                c, patterns, clusters, weights=weights, confidence_level=confidence_level
            )
            for c in coefficients
        }
    if interval == "jackknife" or rng is None:
        return {
            c.name: estimate(c, patterns, weights=weights, confidence_level=confidence_level)
            for c in coefficients
        }
    resampled = resample(
        coefficients, patterns, weights=weights, clusters=clusters,
        rng=rng, n_resamples=n_resamples, confidence_level=confidence_level,
    )  # fmt: skip
    return {
        c.name: _chosen(found, interval) for c, found in zip(coefficients, resampled, strict=True)
    }


def _by_rater(
    name: str,
    array: NDArray[np.int64],
    n_classes: int,
    weights: ArrayLike | None,
    *,
    interval: str,
    n_resamples: int,
    rng: np.random.Generator | None,
    confidence_level: float,
) -> Estimate:
    if interval == "gwet" and name == "conger_kappa":
        return gwet_conger(
            array, n_classes=n_classes, weights=weights, confidence_level=confidence_level
        )
    if interval in ("jackknife", "gwet") or rng is None or name == "light_kappa":
        of = {"conger_kappa": conger_kappa, "cohen_kappa": cohen_kappa, "light_kappa": light_kappa}
        return of[name](
            array, n_classes=n_classes, weights=weights, confidence_level=confidence_level
        )
    rows = array if name == "conger_kappa" else array[(array != MISSING).all(axis=1)]
    found = resample_conger(
        rows, n_classes=n_classes, weights=weights, rng=rng, n_resamples=n_resamples,
        confidence_level=confidence_level,
    )  # fmt: skip
    return _chosen(found, interval)


def _chosen(found: Resampled, interval: str) -> Estimate:
    if interval == "percentile":
        return found.percentile()
    return found.bca()
