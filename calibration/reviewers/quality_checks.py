"""Where silent gold and own repeats come between the traces of a batch.

A slot is one decision of a reviewer in a batch: 0 is the first. Every slot has a number in [0, 1)
that nobody without the secret of the store can compute, and that never changes: low numbers ask
for gold, high ones for a repeat.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

GOLD, REPEAT = "gold", "repeat"

GOLD_RATE = REPEAT_RATE = 0.05

FULL_POOL = 30

REPEAT_AFTER = timedelta(days=7)

# Reviewers who labelled a trace before its consensus may stand as gold.
GOLD_REVIEWERS = 2


# Traces by kind and workflow.
Pool = Mapping[tuple[str, str], int]


def gold_rate(pool: int) -> float:
    """Return the share of slots that carry gold: less from a pool that would soon be used up.

    Examples
    --------
    >>> gold_rate(30), gold_rate(400), gold_rate(15), gold_rate(0)
    (0.05, 0.05, 0.025, 0.0)
    """
    return GOLD_RATE * min(1.0, pool / FULL_POOL)


def draws(secret: str, batch_id: str, reviewer_id: str, n: int) -> NDArray[np.float64]:
    """Return the numbers of the first `n` slots; more slots leave those before as they are.

    Examples
    --------
    >>> few, many = draws("s", "b", "ann", 3), draws("s", "b", "ann", 9)
    >>> bool((few == many[:3]).all()), bool((draws("s", "b", "bob", 3) == few).any())
    (True, False)
    """
    key = _key(secret, batch_id, reviewer_id)
    numbers = np.frombuffer(hashlib.shake_256(key).digest(4 * n), dtype=">u4")
    return numbers.astype(np.float64) / 2.0**32


def kind_at(draw: float, workflow: str, pool: Pool) -> str | None:
    """Return what the slot of a number carries before a trace of a workflow, if anything.

    `pool` counts all traces that there are or were for it, the ones used in this batch among
    them: using one does not change what later slots carry.

    Examples
    --------
    >>> pool = {("gold", "research"): 30, ("repeat", "research"): 1}
    >>> [kind_at(draw, "research", pool) for draw in (0.049, 0.051, 0.949, 0.951)]
    ['gold', None, None, 'repeat']
    >>> kind_at(0.03, "research", {("gold", "research"): 15}) is None
    True
    """
    if draw < gold_rate(pool.get((GOLD, workflow), 0)):
        return GOLD
    if draw >= 1 - REPEAT_RATE and pool.get((REPEAT, workflow), 0):
        return REPEAT
    return None


def expected(
    numbers: NDArray[np.float64],
    slot: int,
    workflows: Sequence[str],
    pool: Pool,
    used: Iterable[tuple[str, str]],
) -> int:
    """Return how many inserts will come between the traces that are left.

    The progress that a reviewer sees counts them from the beginning: it does not move when one
    of them is served.

    Parameters
    ----------
    numbers : ndarray of float
        `draws` of enough slots.
    slot : int
        The next slot.
    workflows : sequence of str
        Workflow of each trace that is left, in order.
    pool : mapping
        Traces by kind and workflow, the used ones among them.
    used : iterable
        Kind and workflow of each insert of this reviewer in this batch.

    Examples
    --------
    >>> pool = {("gold", "w"): 30}
    >>> expected(np.array([0.5, 0.01, 0.5, 0.5, 0.03]), 0, ["w", "w", "w"], pool, [])
    1
    """
    free = Counter(dict(pool))
    free.subtract(Counter(used))
    unused = sum(n for n in free.values() if n > 0)
    put_in = 0
    calls = (numbers[slot:] < GOLD_RATE) | (numbers[slot:] >= 1 - REPEAT_RATE)
    for ahead in np.flatnonzero(calls).tolist():
        place = ahead - put_in
        if place >= len(workflows) or put_in == unused:
            break
        kind = kind_at(float(numbers[slot + ahead]), workflows[place], pool)
        if kind is not None and free[kind, workflows[place]] > 0:
            free[kind, workflows[place]] -= 1
            put_in += 1
    return put_in


def pick(
    secret: str, batch_id: str, reviewer_id: str, slot: int, trace_ids: Sequence[str]
) -> str | None:
    """Return the trace for a slot, None of none; the order they come in does not matter.

    Examples
    --------
    >>> pick("s", "b", "ann", 4, ["t1", "t2"]) == pick("s", "b", "ann", 4, ["t2", "t1"])
    True
    """

    def place(trace_id: str) -> bytes:
        return hashlib.sha256(_key(secret, batch_id, reviewer_id, str(slot), trace_id)).digest()

    return min(trace_ids, key=place, default=None)


def _key(*parts: str) -> bytes:
    # Lengths first: no two lists of parts give one key.
    return b"".join(f"{len(part)}:{part}".encode() for part in parts)
