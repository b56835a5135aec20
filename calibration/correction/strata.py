"""Verdict strata: which verdicts stand alone and which are merged for want of labels."""

from dataclasses import dataclass

from calibration.correction.intervals import FloatArray, IntArray

UNUSED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Strata:
    """Grouping of the verdicts.

    Parameters
    ----------
    groups : tuple of int, length n_verdicts
        Stratum number of each verdict, -1 for a verdict that occurs neither in production nor
        among the labels.
    merged : tuple of (int, int)
        Verdicts that had too few labels and the verdict whose stratum they joined.
    """

    groups: tuple[int, ...]
    merged: tuple[tuple[int, int], ...]

    @property
    def n_strata(self) -> int:
        """Number of strata."""
        return max(self.groups, default=UNUSED) + 1


def merge_small(
    labels: IntArray,
    production: FloatArray,
    values: FloatArray,
    *,
    minimum_labels: int,
) -> Strata:
    """Merge each verdict with fewer than `minimum_labels` labels with the nearest one.

    Nearest is by the score that the verdict would mean, not by the labelled scores, so the
    grouping depends on the labels only through their number; ties go to the verdict with most
    labels, then to the earlier one. Merging starts at the verdict with fewest labels.

    Parameters
    ----------
    labels : int array, shape (n_verdicts,)
        Labelled traces with each verdict.
    production : float array, shape (n_verdicts,)
        Production traces with each verdict.
    values : float array, shape (n_verdicts,)
        Score that each verdict would mean.
    minimum_labels : int
        Fewest labels a stratum may have.

    Returns
    -------
    Strata
        A single stratum when all verdicts together have fewer labels than asked for.

    Examples
    --------
    The middle verdict has two labels and is nearer to the last:

    >>> import numpy as np
    >>> labels, production = np.array([20, 2, 9]), np.array([80.0, 8.0, 12.0])
    >>> merge_small(labels, production, np.array([1.0, 0.4, 0.0]), minimum_labels=5)
    Strata(groups=(0, 1, 1), merged=((1, 2),))
    """
    members = {k: [k] for k in range(labels.size) if labels[k] > 0 or production[k] > 0}
    joined: dict[int, int] = {}
    while len(members) > 1:
        size = {k: int(labels[group].sum()) for k, group in members.items()}
        small = min(members, key=lambda k: (size[k], k))
        if size[small] >= minimum_labels:
            break
        others = [k for k in members if k != small]
        target = min(others, key=lambda k: (abs(values[k] - values[small]), -size[k], k))
        joined.update(dict.fromkeys(members[small], target))
        members[target] += members.pop(small)
    groups = [UNUSED] * labels.size
    for number, (_, group) in enumerate(sorted(members.items())):
        for k in group:
            groups[k] = number
    return Strata(groups=tuple(groups), merged=tuple(sorted(joined.items())))
