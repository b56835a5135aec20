"""Krippendorff's alpha of the humans against the judge."""

from dataclasses import replace

import numpy as np

from calibration.agreement.chance_corrected import KRIPPENDORFF_ALPHA, from_features
from calibration.agreement.intervals import METHOD
from calibration.correction.calibrate import LabelledSample
from calibration.estimates import Estimate, not_estimable


def judge_alpha(
    sample: LabelledSample, *, n_verdicts: int, confidence_level: float = 0.95
) -> Estimate:
    """Estimate nominal alpha of two raters, the human side and the judge.

    A trace with several reviewers counts as the mean over pairs of one reviewer and the judge.
    A verdict that is no class is a class the humans never use, as in kappa. Traces are a random
    sample and independent, or independent between clusters when given.

    Parameters
    ----------
    sample : LabelledSample
        Its weights, scaled to the effective number of traces, weigh the traces.
    n_verdicts : int
        Number of verdict codes, at least the number of classes.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        With the delete-one jackknife, a cluster at a time where there are clusters, on the Fisher
        z scale.

    Examples
    --------
    Three of four agree; of 8 ratings 5 and 3 are of each class: 1 - (1/4) / (2 x 15 / (8 x 7)).

    >>> sample = LabelledSample(human=np.eye(2)[[0, 0, 1, 1]], verdicts=np.array([0, 0, 0, 1]))
    >>> judge_alpha(sample, n_verdicts=2).value
    0.53333
    """
    human = np.asarray(sample.human, dtype=np.float64)
    n, n_classes = human.shape
    if n == 0:
        why = "no labelled traces with a verdict: label some"
        return not_estimable(why, method=METHOD, confidence_level=confidence_level)
    agreed = human[np.arange(n), np.minimum(sample.verdicts, n_classes - 1)]
    apart = np.where(sample.verdicts < n_classes, 1 - agreed, 1.0)
    used = np.eye(n_verdicts)[sample.verdicts]
    used[:, :n_classes] += human
    # As `KRIPPENDORFF_ALPHA` wants them: its disagreeing pairs, its ratings, those of each class.
    features = np.column_stack([2 * apart, np.full(n, 2.0), used])
    if sample.weights is not None:
        weight = np.asarray(sample.weights, dtype=np.float64)
        features *= (weight * weight.sum() / (weight @ weight))[:, None]
    units, by = np.ones(n, dtype=np.int64), ""
    if sample.clusters is not None:
        names, index = np.unique(sample.clusters, return_inverse=True)
        summed = np.zeros((names.size, features.shape[1]))
        np.add.at(summed, index, features)
        features, units, by = summed, np.ones(names.size, dtype=np.int64), ", by cluster"
    elif sample.weights is None:
        features, units = np.unique(features, axis=0, return_counts=True)
    found = from_features(
        KRIPPENDORFF_ALPHA,
        features,
        units,
        1 - np.eye(n_verdicts),
        n=int(units.sum()),
        alike=bool(np.ptp(apart) < 1e-10),
        confidence_level=confidence_level,
    )
    return replace(found, method=found.method + by)
