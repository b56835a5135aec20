"""How many labelled traces a half-width needs, with a judge and without."""

from numpy.typing import ArrayLike

from calibration.correction.intervals import FloatArray
from calibration.correction.planning import Spread, planned_human_only, planned_post_stratified

# With more labelled traces the judge is not what limits a rate.
MOST_TRACES = 10**8


def traces_needed(
    half_width: float,
    spread: Spread,
    production_counts: ArrayLike | None = None,
    *,
    verdict_values: FloatArray | None = None,
    confidence_level: float = 0.95,
) -> int | None:
    """Return the fewest labelled traces that are expected to give a half-width.

    About z^2 sd^2 (1 - R^2) / h^2; found by asking `planned_human_only`, or with
    `production_counts` `planned_post_stratified`, so that it is what a plan of as many promises.

    Parameters
    ----------
    half_width : float
        Wanted, in (0, 1/2).
    spread, production_counts, verdict_values, confidence_level
        As there.

    Returns
    -------
    int or None
        None when no number of labels gives it: the verdicts on production vary too.

    Raises
    ------
    ValueError
        If `half_width` is not in (0, 1/2), or as those functions.

    Examples
    --------
    The worst case to +-.05: 1.96^2 x .25 / .05^2 = 384.1, a little more for t.

    >>> from calibration.correction.planning import worst_spread
    >>> traces_needed(0.05, worst_spread(1))
    387
    """
    if not 0 < half_width < 0.5:
        raise ValueError(f"half_width must be in (0, 1/2), got {half_width!r}")

    def enough(n: int) -> bool:
        if production_counts is None:
            planned = planned_human_only(n, spread, confidence_level=confidence_level)
        else:
            planned = planned_post_stratified(
                n,
                spread,
                production_counts,
                verdict_values=verdict_values,
                confidence_level=confidence_level,
            )
        return planned <= half_width

    few, many = 2, 4
    if enough(few):
        return few
    while not enough(many):
        few, many = many, 2 * many
        if many > MOST_TRACES:
            return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many
