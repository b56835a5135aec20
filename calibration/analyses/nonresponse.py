"""Traces that reviewers skipped: the labelled ones like them stand in for them."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray


def standing_in(
    verdicts: Sequence[Hashable],
    workflows: Sequence[Hashable],
    labelled: NDArray[np.bool_],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64] | None:
    """Return the weights of the labelled traces, raised for the skipped ones like them.

    Assumed: within a verdict and workflow whether a trace was skipped has nothing to do with its
    class. A cell of which nothing was labelled is stood for by the whole verdict; a verdict of
    which nothing was labelled by nobody.

    Parameters
    ----------
    verdicts, workflows : sequence, length n
        Of every trace that was asked about.
    labelled : bool array, shape (n,)
        Which of them were labelled.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities; equal ones when None.

    Returns
    -------
    float array, shape (n_labelled,), or None
        In the order of the labelled traces; `weights` as they were when none was skipped.

    Examples
    --------
    One of the two traces of workflow b was skipped:

    >>> standing_in([0, 0, 0], ["a", "b", "b"], np.array([True, True, False])).tolist()
    [1.0, 2.0]
    """
    if labelled.all():
        return weights
    weight = np.ones(labelled.size) if weights is None else np.asarray(weights, dtype=np.float64)
    cell = _numbered(list(zip(verdicts, workflows, strict=True)))
    whole = _numbered(list(verdicts))
    # First what a cell can carry itself, then the rest over its verdict.
    asked = np.bincount(cell, weights=weight)
    kept = np.bincount(cell, weights=weight * labelled)
    own = np.where(kept > 0, asked / np.where(kept > 0, kept, 1), 0.0)[cell] * labelled
    raised = weight * own
    total = np.bincount(whole, weights=weight)
    carried = np.bincount(whole, weights=raised)
    rest = np.where(carried > 0, total / np.where(carried > 0, carried, 1), 0.0)
    result: NDArray[np.float64] = (raised * rest[whole])[labelled]
    return result


def _numbered(names: list[Hashable]) -> NDArray[np.int64]:
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)
