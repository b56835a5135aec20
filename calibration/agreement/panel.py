"""Every coefficient on one set of ratings, side by side."""

from numpy.typing import ArrayLike

from calibration.agreement.by_rater import cohen_kappa, conger_kappa
from calibration.agreement.chance_corrected import (
    BRENNAN_PREDIGER,
    FLEISS_KAPPA,
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    KRIPPENDORFF_ORDINAL,
    PERCENT_AGREEMENT,
    SCOTT_PI,
    estimate,
)
from calibration.agreement.counts import count_patterns, validated_codes
from calibration.agreement.intervals import METHOD
from calibration.estimates import Estimate, not_estimable

ORDINAL = "krippendorff_ordinal"
FROM_COUNTS = (PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA, GWET_AC, FLEISS_KAPPA, BRENNAN_PREDIGER)
ONLY_ALPHA = "Krippendorff's ordinal distances are defined for alpha; take --weights ordinal"


def agreement_panel(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    ordinal: bool = False,
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
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    dict of Estimate
        By name; Scott's pi and Cohen's kappa only where there are two raters.

    Raises
    ------
    ValueError
        As `count_patterns` and `estimate`.

    Examples
    --------
    >>> panel = agreement_panel([[0, 0], [1, 1], [0, 1]], n_classes=2)
    >>> panel["percent_agreement"].value, panel["scott_pi"].value
    (0.66667, 0.33333)
    """
    array = validated_codes(codes, n_classes=n_classes)
    patterns = count_patterns(array, n_classes=n_classes)
    two = array.shape[1] == 2
    names = [c.name for c in FROM_COUNTS] + ["conger_kappa"]
    names += ["scott_pi", "cohen_kappa"] if two else []
    if ordinal:
        refused = not_estimable(ONLY_ALPHA, method=METHOD, confidence_level=confidence_level)
        alpha = estimate(KRIPPENDORFF_ORDINAL, patterns, confidence_level=confidence_level)
        return dict.fromkeys(names, refused) | {KRIPPENDORFF_ORDINAL.name: alpha}
    of_counts = (*FROM_COUNTS, SCOTT_PI) if two else FROM_COUNTS
    found = {
        c.name: estimate(c, patterns, weights=weights, confidence_level=confidence_level)
        for c in of_counts
    }
    found["conger_kappa"] = conger_kappa(
        array, n_classes=n_classes, weights=weights, confidence_level=confidence_level
    )
    if two:
        found["cohen_kappa"] = cohen_kappa(
            array, n_classes=n_classes, weights=weights, confidence_level=confidence_level
        )
    return {name: found[name] for name in names}
