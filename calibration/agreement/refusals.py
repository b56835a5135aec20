"""What the coefficients say when there is too little to say something."""

from calibration.agreement.counts import CountPatterns
from calibration.agreement.intervals import METHOD
from calibration.estimates import Estimate, not_estimable


def too_little(patterns: CountPatterns, confidence_level: float) -> Estimate | None:
    """Return the refusal that the coefficients share, or None when there is enough."""
    if patterns.n_ratings == 0:
        why = "no ratings: have two reviewers label the same items"
    elif not (patterns.counts.sum(axis=1) >= 2).any():
        why = "no item has two ratings: give some items to two or more reviewers"
    else:
        return None
    return not_estimable(why, method=METHOD, confidence_level=confidence_level)


def one_item(value: float, confidence_level: float) -> Estimate:
    """Return a value without interval: one item shows nothing about variation between items."""
    return Estimate(
        value=value,
        interval=None,
        n=1,
        method=METHOD,
        confidence_level=confidence_level,
        status="no interval: one item with two or more ratings, at least two are needed",
    )
