"""Which traces to practise on: most of them where this reviewer errs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.errors import InputError
from calibration.taxonomy import Taxonomy

ROUND = 12

AIMED = 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWeakness:
    """How often a reviewer errs at a question.

    `n` are labelled traces whose canonical path and whose reviewer both came to the question,
    `errors` those at which they parted, `weakness` is (errors + 1) / (n + 2).
    """

    node: str
    errors: int
    n: int
    weakness: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PracticeTrace:
    """A trace to practise on.

    `seen` says when the reviewer labelled or read it last, in any unit that grows; None: never.
    """

    trace_id: str
    outcome: str
    nearest_wrong: str
    seen: float | None = None


def weaknesses(taxonomy: Taxonomy, labelled: Sequence[tuple[str, str]]) -> tuple[NodeWeakness, ...]:
    """Return how weak a reviewer is at each question, the weakest first.

    A wrong class is born at one question: the first that the reviewer answered otherwise than the
    canonical label. The mean of Beta(1 + errors, 1 + n - errors) lets a question that was met
    once or never count as doubtful, not as mastered.

    Parameters
    ----------
    taxonomy : Taxonomy
    labelled : sequence of tuple of str
        Canonical class and the class that the reviewer gave, one entry a label.

    Returns
    -------
    tuple of NodeWeakness

    Examples
    --------
    Both came to the first two questions and parted at the second: 1 error of 1, (1 + 1)/(1 + 2).

    >>> from calibration.taxonomy import default_taxonomy
    >>> found = weaknesses(default_taxonomy(), [("complete", "hallucinated")])
    >>> [(w.node, w.errors, w.n, round(w.weakness, 2)) for w in found[:2]]
    [('fabrication', 1, 1, 0.67), ('all_subgoals', 0, 0, 0.5)]
    """
    met = dict.fromkeys((node.id for node in taxonomy.nodes), 0)
    wrong = dict(met)
    for canonical, given in labelled:
        theirs = taxonomy.answers_for(given)
        for node, answer in taxonomy.answers_for(canonical).items():
            met[node] += 1
            if theirs[node] != answer:
                wrong[node] += 1
                break
    found = [
        NodeWeakness(node=k, errors=wrong[k], n=met[k], weakness=(wrong[k] + 1) / (met[k] + 2))
        for k in met
    ]
    return tuple(sorted(found, key=lambda w: -w.weakness))


def exercised(taxonomy: Taxonomy, outcome: str, nearest_wrong: str) -> str:
    """Return the question that a trace exercises: where its class and the nearest wrong one part.

    Examples
    --------
    >>> from calibration.taxonomy import default_taxonomy
    >>> exercised(default_taxonomy(), "partial_plus", "partial_minus")
    'material_error'
    """
    other = taxonomy.answers_for(nearest_wrong)
    path = taxonomy.answers_for(outcome)
    return next((n for n, answer in path.items() if other.get(n) != answer), list(path)[-1])


def practice_round(
    taxonomy: Taxonomy,
    pool: Sequence[PracticeTrace],
    labelled: Sequence[tuple[str, str]],
    *,
    rng: np.random.Generator,
    size: int = ROUND,
) -> tuple[str, ...]:
    """Choose the traces of a practice round, in the order in which they are practised.

    About two thirds exercise the weakest questions, each in the measure of its weakness; the
    rest is spread over the classes. Traces never seen come first, then those seen longest ago.

    Parameters
    ----------
    taxonomy : Taxonomy
    pool : sequence of PracticeTrace
    labelled : sequence of tuple of str
        As for `weaknesses`.
    rng : numpy.random.Generator
        Draws among equals, and the order.
    size : int, default 12
        Traces of a round; fewer if the pool holds fewer.

    Returns
    -------
    tuple of str

    Raises
    ------
    InputError
        If there is nothing to practise on.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size!r}")
    if not pool:
        raise InputError(
            "there is no trace to practise on: `asr reference add FOLDER --name NAME` adds some"
        )
    shuffled = [pool[k] for k in rng.permutation(len(pool))]
    new = [t for t in shuffled if t.seen is None]
    again = sorted((t for t in shuffled if t.seen is not None), key=lambda t: t.seen or 0.0)
    wanted = _shares(weaknesses(taxonomy, labelled), round(size * AIMED))
    chosen: list[PracticeTrace] = []
    # All that is new goes before anything that was seen.
    for group in (new, again):
        _take(taxonomy, group, chosen, wanted, size)
    return tuple(chosen[k].trace_id for k in rng.permutation(len(chosen)))


def _take(
    taxonomy: Taxonomy,
    group: list[PracticeTrace],
    chosen: list[PracticeTrace],
    wanted: dict[str, int],
    size: int,
) -> None:
    """Move traces from a group to those chosen: first what is wanted of each question."""
    for trace in list(group):
        node = exercised(taxonomy, trace.outcome, trace.nearest_wrong)
        if wanted.get(node, 0) > 0 and len(chosen) < size:
            wanted[node] -= 1
            chosen.append(trace)
            group.remove(trace)
    while group and len(chosen) < size:
        counts = {name: sum(t.outcome == name for t in chosen) for name in taxonomy.credit}
        rarest = min(group, key=lambda t: counts[t.outcome])
        chosen.append(rarest)
        group.remove(rarest)


def _shares(weak: Sequence[NodeWeakness], n: int) -> dict[str, int]:
    """Share out `n` traces over the weaker half of the questions, by their weakness."""
    chosen = weak[: max(1, (len(weak) + 1) // 2)]
    total = sum(w.weakness for w in chosen)
    exact = {w.node: n * w.weakness / total for w in chosen}
    shares = {node: int(share) for node, share in exact.items()}
    by_rest = sorted(exact, key=lambda node: shares[node] - exact[node])
    for node in by_rest[: n - sum(shares.values())]:
        shares[node] += 1
    return shares
