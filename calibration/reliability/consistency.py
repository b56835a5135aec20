"""Consistency: whether an agent does the same again when a task is repeated.

`outcome_scores`, `action_divergence`, `action_similarity` and `stability` are the definitions, each
for one task or one pair of runs; `task_consistency` computes them for all tasks, and `consistency`
is their mean over tasks with intervals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.statistics.estimate import OK, BoolArray, FloatArray, IntArray
from calibration.statistics.resampling import Statistic, TaskEstimate, TaskResamples, ratio

# Pairs of successful runs that are compared: of a task, and of all tasks together.
MOST_PAIRS, ALL_PAIRS = 300, 2_000_000

# Cells of all edit distances together, some seconds of work; fewer pairs are compared above it.
ALL_CELLS = 500_000_000
FEWER_PAIRS = (MOST_PAIRS, 100, 30, 10, 3, 1)
BLOCK = 2_000_000

# A resource that may be zero; a zero of another one means that it was not recorded.
ERRORS = "errors"

# A divergence below this is rounding error.
NO_DIVERGENCE = 1e-12

# Parts of the score; those of the trajectory together are one third.
PARTS = ("outcome", "trajectory_distribution", "trajectory_sequence", "resource")

ONE_RUN = "no task has two runs without perturbation: repeat tasks"
NO_PAIR = "no task has two successful runs with actions: record actions, or repeat tasks"
NO_SEQUENCES = "the action lists are too long to compare: shorten them"
NO_CONFIDENCE = "no task has two runs with a confidence above 0: record the agent's confidence"
NO_RESOURCE = "no task has two runs with a resource: record cost_usd, latency_s or api_calls"
NO_PART = "neither outcomes, actions nor resources of two runs of a task are known: repeat tasks"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActionLists:
    """The actions of every run, one after the other.

    `codes` : number of the action's name, of all runs
    `start` : where the actions of a run begin, shape (n_runs + 1,)
    `known` : whether the actions of a run were recorded
    """

    codes: IntArray
    start: IntArray
    known: BoolArray

    @property
    def lengths(self) -> IntArray:
        """Number of actions of each run."""
        return np.diff(self.start)

    def of(self, run: int) -> IntArray:
        """Return the actions of a run."""
        return self.codes[self.start[run] : self.start[run + 1]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskConsistency:
    """The consistency of each task, shape (n_tasks,), NaN where it is not defined.

    `pairs` : most pairs of runs of one task that were compared, None if all were
    """

    outcome: FloatArray
    outcome_unanimous: FloatArray
    outcome_pairwise: FloatArray
    outcome_unbiased: FloatArray
    trajectory_distribution: FloatArray
    trajectory_sequence: FloatArray
    confidence: FloatArray
    resource: FloatArray
    pairs: int | None = None
    too_long: bool = False

    @property
    def score(self) -> FloatArray:
        """The score of each task: mean of outcome, trajectory and resource, as far as defined."""
        trajectory = _mean_of_known([self.trajectory_distribution, self.trajectory_sequence])
        return _mean_of_known([self.outcome, trajectory, self.resource])

    def within(self, tasks: BoolArray) -> "TaskConsistency":
        """Return it without the other tasks."""
        kept: dict[str, Any] = {
            name: np.where(tasks, getattr(self, name), np.nan)
            for name in self.__slots__
            if name not in ("pairs", "too_long")
        }
        return replace(self, **kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """Consistency over tasks; `missing` names the parts that the score does without."""

    score: TaskEstimate
    outcome: TaskEstimate
    outcome_unanimous: TaskEstimate
    outcome_pairwise: TaskEstimate
    outcome_unbiased: TaskEstimate
    trajectory_distribution: TaskEstimate
    trajectory_sequence: TaskEstimate
    confidence: TaskEstimate
    resource: TaskEstimate
    missing: tuple[str, ...]


def outcome_scores(rate: ArrayLike, runs: ArrayLike) -> dict[str, FloatArray]:
    """Return four scores of how alike the outcomes of the runs of a task are.

    With success rate p of K runs, c = pK of them successful:

    * ``outcome``: (2p - 1)^2, 1 where all agree and 0 at p = 1/2. Its mean over tasks estimates
      what K runs show, and exceeds that of the agent's own chances by 4 E[p(1 - p)] / K.
    * ``outcome_unanimous``: 1 where all agree, otherwise 0. The printed formula
      1 - s^2 / (p(1 - p)), with the sample variance s^2, is -1 / (K - 1) for every other task, and
      clipped to 0.
    * ``outcome_pairwise``: the chance 1 - 2c(K - c) / (K(K - 1)) that two of the runs agree.
    * ``outcome_unbiased``: 1 - 4c(K - c) / (K(K - 1)), unbiased for (2p - 1)^2 of the agent; of one
      task it may be negative.

    Parameters
    ----------
    rate, runs : array, shape (n_tasks,)
        Success rate and number of runs of each task; NaN with fewer than two runs.

    References
    ----------
    Rabanser et al. (2026), "Towards a science of AI agent reliability".
    https://doi.org/10.48550/arXiv.2602.16666

    Examples
    --------
    Four of five: .6^2 = .36, and 1 - 2 x 4 / 20 = .6 of the pairs agree.

    >>> {name: float(of[0]) for name, of in outcome_scores([0.8], [5]).items()}
    {'outcome': 0.36, 'outcome_unanimous': 0.0, 'outcome_pairwise': 0.6, 'outcome_unbiased': 0.2}
    """
    p, k = np.asarray(rate, dtype=np.float64), np.asarray(runs, dtype=np.float64)
    p = np.where(k >= 2, p, np.nan)
    differ = ratio(p * (1 - p) * k, np.where(k >= 2, k - 1, 0.0))
    return {
        "outcome": (2 * p - 1) ** 2,
        "outcome_unanimous": np.where(np.isnan(p), np.nan, (p == 0) | (p == 1)),
        "outcome_pairwise": 1 - 2 * differ,
        "outcome_unbiased": 1 - 4 * differ,
    }


def action_divergence(first: Sequence[str], second: Sequence[str]) -> float:
    """Return the Jensen-Shannon divergence, base 2, of how often two runs use each action.

    0 where the shares are the same, 1 where no action is shared. Its square root is the distance.

    References
    ----------
    Lin (1991), "Divergence measures based on the Shannon entropy", IEEE Trans. Inf. Theory 37.
    https://doi.org/10.1109/18.61115
    Endres and Schindelin (2003), "A new metric for probability distributions", IEEE Trans. Inf.
    Theory 49. https://doi.org/10.1109/TIT.2003.813506

    Examples
    --------
    H(3/4, 1/4) - H(1/2, 1/2) / 2 = .8113 - .5:

    >>> action_divergence(["look", "book"], ["look"])
    0.31128
    """
    lists, _ = action_lists([list(first), list(second)])
    return float(_divergences(lists, np.array([[0, 1]]))[0])


def action_similarity(first: Sequence[str], second: Sequence[str]) -> float:
    """Return 1 - the edit distance of two runs' actions over the length of the longer list.

    References
    ----------
    Levenshtein (1966), "Binary codes capable of correcting deletions, insertions and reversals",
    Soviet Physics Doklady 10.

    Examples
    --------
    One insertion in three:

    >>> action_similarity(["look", "cancel"], ["look", "check", "cancel"])
    0.66667
    """
    lists, _ = action_lists([list(first), list(second)])
    return float(_similarities(lists, np.array([[0, 1]]))[0])


def stability(values: ArrayLike) -> float | None:
    """Return exp(-CV) of positive numbers; None with fewer than two, or a mean of 0 or less.

    CV is the sample standard deviation (n - 1) over the mean.

    Examples
    --------
    s = 1 and mean 2, so exp(-1/2):

    >>> stability([1, 2, 3])
    0.60653
    """
    array = np.asarray(values, dtype=np.float64)
    found = np.exp(-_variation(np.zeros(array.size, dtype=np.int64), array, 1)[0])
    return float(found) if np.isfinite(found) else None


def action_lists(runs: Sequence[Sequence[str] | None]) -> tuple[ActionLists, tuple[str, ...]]:
    """Return the actions of runs as codes, and their names; None are not recorded."""
    names: dict[str, int] = {}
    codes = [names.setdefault(name, len(names)) for run in runs if run for name in run]
    lengths = [len(run or ()) for run in runs]
    lists = ActionLists(
        codes=np.array(codes, dtype=np.int64),
        start=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
        known=np.array([run is not None for run in runs], dtype=np.bool_),
    )
    return lists, tuple(names)


def task_consistency(
    task: IntArray,
    success: BoolArray,
    *,
    n_tasks: int,
    actions: ActionLists,
    confidence: FloatArray,
    resources: Mapping[str, FloatArray],
    rng: np.random.Generator,
    divergence: bool = False,
) -> TaskConsistency:
    """Compute the consistency of each task from its runs without perturbation.

    Actions are compared over pairs of successful runs that have some. A task with more than 300
    pairs gives 300 random ones; with many tasks or long lists fewer, so that the work is bounded.
    A resource needs two runs with a value; zeros do not count, except of errors.

    Parameters
    ----------
    task : int array, shape (n_runs,)
        Number of the task of each run, from 0 to `n_tasks` - 1.
    success : bool array, shape (n_runs,)
    actions : ActionLists
    confidence : float array, shape (n_runs,)
        The agent's confidence in [0, 1], NaN where there is none.
    resources : mapping of str to float array, shape (n_runs,)
        Amounts by resource, NaN where there is none.
    divergence : bool, default False
        Score the shares of actions by 1 - divergence and not by 1 - distance.
    """
    runs = np.bincount(task, minlength=n_tasks)
    rate = ratio(np.bincount(task[success], minlength=n_tasks).astype(float), runs.astype(float))
    shares, order, pairs, too_long = _trajectories(task, success, n_tasks, actions, rng, divergence)
    variations = [
        _variation(task, amounts if name == ERRORS else _positive(amounts), n_tasks)
        for name, amounts in resources.items()
    ]
    nothing = np.full(n_tasks, np.nan)
    return TaskConsistency(
        **outcome_scores(rate, runs),
        trajectory_distribution=shares,
        trajectory_sequence=order,
        confidence=np.exp(-_variation(task, confidence, n_tasks)),
        resource=np.exp(-_mean_of_known([nothing, *variations])),
        pairs=pairs,
        too_long=too_long,
    )


def consistency(of: TaskConsistency, resamples: TaskResamples) -> Consistency:
    """Estimate consistency over tasks like these.

    The score is the mean of outcome, trajectory (the mean of distribution and sequence) and
    resource, each a mean over the tasks that have it; without one of them, the mean of the others.
    """
    mean = resamples.mean
    long = NO_SEQUENCES if of.too_long else NO_PAIR
    leaves = {
        "outcome": mean(of.outcome, nothing=ONE_RUN),
        "outcome_unanimous": mean(of.outcome_unanimous, nothing=ONE_RUN),
        "outcome_pairwise": mean(of.outcome_pairwise, nothing=ONE_RUN),
        "outcome_unbiased": mean(of.outcome_unbiased, nothing=ONE_RUN, lowest=-1.0),
        "trajectory_distribution": mean(of.trajectory_distribution, nothing=NO_PAIR),
        "trajectory_sequence": mean(of.trajectory_sequence, nothing=long),
        "confidence": mean(of.confidence, nothing=NO_CONFIDENCE),
        "resource": mean(of.resource, nothing=NO_RESOURCE),
    }
    missing = tuple(name for name in PARTS if not leaves[name].ok)
    return Consistency(score=consistency_score(of, resamples), **leaves, missing=missing)


def consistency_score(of: TaskConsistency, resamples: TaskResamples) -> TaskEstimate:
    """Estimate the score of `consistency` alone."""
    n = {name: int(np.isfinite(getattr(of, name)).sum()) for name in PARTS}
    missing = [name for name in PARTS if not n[name]]
    return resamples.estimate(
        score_statistic(of, resamples),
        np.isfinite(of.score),
        nothing=NO_PART,
        fewest=min((count for count in n.values() if count), default=0),
        status=f"provisional: without {', '.join(missing)}" if missing else OK,
    )


def score_statistic(of: TaskConsistency, resamples: TaskResamples) -> Statistic:
    """Return the score over tasks as a statistic."""
    parts = [
        [resamples.mean_of(values) for values in part if np.isfinite(values).any()]
        for part in (
            [of.outcome], [of.trajectory_distribution, of.trajectory_sequence], [of.resource],
        )
    ]  # fmt: skip
    known = [part for part in parts if part]

    def score(weights: FloatArray) -> FloatArray:
        if not known:
            return np.full(len(weights), np.nan)
        means = [np.mean([of(weights) for of in part], axis=0) for part in known]
        mean: FloatArray = np.mean(means, axis=0)
        return mean

    return score


def _positive(amounts: FloatArray) -> FloatArray:
    return np.where(amounts > 0, amounts, np.nan)


def _mean_of_known(values: Sequence[FloatArray]) -> FloatArray:
    """Return the mean of the values that are not NaN, element by element."""
    stacked = np.stack(values)
    there = np.isfinite(stacked)
    return ratio(np.where(there, stacked, 0.0).sum(axis=0), there.sum(axis=0).astype(np.float64))


def _variation(task: IntArray, values: FloatArray, n_tasks: int) -> FloatArray:
    """Return the coefficient of variation within each task, NaN where it is not defined."""
    there = np.isfinite(values)
    task, values = task[there], values[there]
    n = np.bincount(task, minlength=n_tasks).astype(np.float64)
    mean = ratio(_added(task, values, n_tasks), n)
    squares = _added(task, (values - mean[task]) ** 2, n_tasks)
    return ratio(np.sqrt(ratio(squares, n - 1)), np.nan_to_num(mean))


def _added(task: IntArray, values: FloatArray, n_tasks: int) -> FloatArray:
    """Return the sum of the values of each task."""
    return np.bincount(task, weights=values, minlength=n_tasks).astype(np.float64)


def _trajectories(
    task: IntArray,
    success: BoolArray,
    n_tasks: int,
    actions: ActionLists,
    rng: np.random.Generator,
    divergence: bool,
) -> tuple[FloatArray, FloatArray, int | None, bool]:
    """Return both scores of each task, the bound on its pairs, and whether lists were too long."""
    nothing = np.full(n_tasks, np.nan)
    runs = np.flatnonzero(success & actions.known & (actions.lengths > 0))
    runs = runs[np.argsort(task[runs], kind="stable")]
    sizes = np.bincount(task[runs], minlength=n_tasks)
    if not (sizes >= 2).any():
        return nothing, nothing, None, False
    lists, which = _distinct(actions, runs)
    for most in FEWER_PAIRS:
        if np.minimum(sizes * (sizes - 1) // 2, most).sum() > ALL_PAIRS and most > 1:
            continue
        pairs, owner = _pairs(sizes, most, rng)
        distinct, place = np.unique(np.sort(which[pairs], axis=1), axis=0, return_inverse=True)
        cells = int(lists.lengths[distinct].prod(axis=1).sum())
        if cells <= ALL_CELLS:
            break
    found = _divergences(lists, distinct)
    shares = 1 - (found if divergence else np.sqrt(found))
    n = np.bincount(owner, minlength=n_tasks).astype(np.float64)

    def of_tasks(values: FloatArray) -> FloatArray:
        return ratio(_added(owner, values[place.ravel()], n_tasks), n)

    too_long = cells > ALL_CELLS
    order = nothing if too_long else of_tasks(_similarities(lists, distinct))
    bound = most if (sizes * (sizes - 1) // 2 > most).any() else None
    return of_tasks(shares), order, bound, too_long


def _distinct(actions: ActionLists, runs: IntArray) -> tuple[ActionLists, IntArray]:
    """Return the different lists of some runs, and which of them each of these runs has."""
    known: dict[bytes, int] = {}
    which, first = np.empty(runs.size, dtype=np.int64), []
    for k, run in enumerate(runs.tolist()):
        key = actions.of(run).tobytes()
        if key not in known:
            known[key] = len(known)
            first.append(run)
        which[k] = known[key]
    lengths = actions.lengths[first]
    lists = ActionLists(
        codes=np.concatenate([actions.of(run) for run in first]),
        start=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        known=np.ones(len(first), dtype=np.bool_),
    )
    return lists, which


def _pairs(sizes: IntArray, most: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return pairs of positions of runs sorted by task, and the task of each pair."""
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    pairs, owners = [], []
    for size in np.unique(sizes[sizes >= 2]).tolist():
        tasks = np.flatnonzero(sizes == size)
        if size * (size - 1) // 2 <= most:
            one = np.stack(np.triu_indices(size, 1), axis=1)
            within = np.broadcast_to(one, (tasks.size, *one.shape))
        else:
            left = rng.integers(0, size, size=(tasks.size, most))
            right = (left + 1 + rng.integers(0, size - 1, size=left.shape)) % size
            within = np.stack([left, right], axis=2)
        pairs.append((within + first[tasks][:, None, None]).reshape(-1, 2))
        owners.append(np.repeat(tasks, within.shape[1]))
    return np.concatenate(pairs), np.concatenate(owners)


def _divergences(lists: ActionLists, pairs: IntArray) -> FloatArray:
    """Return the Jensen-Shannon divergence of pairs of lists in bits."""
    if not lists.codes.size:
        return np.zeros(len(pairs))
    n_names = int(lists.codes.max()) + 1
    owner = np.repeat(np.arange(lists.lengths.size), lists.lengths)
    cells, counts = np.unique(owner * n_names + lists.codes, return_counts=True)
    of, name = cells // n_names, cells % n_names
    share = counts / lists.lengths[of]
    begin = np.searchsorted(of, np.arange(lists.lengths.size + 1))
    kinds = np.diff(begin)[pairs[:, 0]]
    found = np.empty(len(pairs))
    for low, high in _blocks(kinds):
        n, (left, right) = kinds[low:high], pairs[low:high].T
        pair = np.repeat(np.arange(high - low), n)
        here = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n) + begin[left][pair]
        wanted = right[pair] * n_names + name[here]
        there = np.searchsorted(cells, wanted).clip(max=cells.size - 1)
        p, q = share[here], np.where(cells[there] == wanted, share[there], 0.0)
        # An action of one of the two runs only adds half of its share.
        terms = p * np.log2(2 * p / (p + q)) + q * np.log2(np.where(q > 0, 2 * q / (p + q), 1.0))
        only_right = 1 - np.bincount(pair, weights=q, minlength=n.size)
        found[low:high] = (np.bincount(pair, weights=terms, minlength=n.size) + only_right) / 2
    return np.where(found < NO_DIVERGENCE, 0.0, np.minimum(found, 1.0))


def _blocks(sizes: NDArray[np.integer]) -> Sequence[tuple[int, int]]:
    """Return ranges of items whose sizes sum to a few million each."""
    block = np.cumsum(sizes) // BLOCK
    ends = np.flatnonzero(np.diff(block)) + 1
    edges = [0, *ends.tolist(), len(sizes)]
    return list(pairwise(edges))


def _similarities(lists: ActionLists, pairs: IntArray) -> FloatArray:
    """Return 1 - edit distance / longer length of pairs of lists, many pairs at once."""
    lengths = lists.lengths[pairs]
    swapped = lengths[:, 0] > lengths[:, 1]
    pairs = np.where(swapped[:, None], pairs[:, ::-1], pairs)
    short, long = lists.lengths[pairs].T
    order = np.lexsort([short, long])
    found = np.ones(len(pairs))
    for low, high in _blocks(long[order] + 1):
        some = order[low:high]
        some = some[np.argsort(short[some], kind="stable")]
        distance = _distances(lists, pairs[some], short[some], long[some])
        found[some] = 1 - distance / np.maximum(long[some], 1)
    return found


def _distances(lists: ActionLists, pairs: IntArray, short: IntArray, long: IntArray) -> FloatArray:
    """Return the edit distances of pairs sorted by the length of their shorter, first list."""
    wide = int(long.max())
    rows = _padded(lists, pairs[:, 0], int(short.max()), -1)
    columns = _padded(lists, pairs[:, 1], wide, -2)
    # The usual table less its column number: then an insertion costs nothing.
    table = np.zeros((len(pairs), wide + 1), dtype=np.int32)
    found = np.zeros(len(pairs))
    for k in range(int(short.max()) + 1):
        done = slice(*np.searchsorted(short, [k, k + 1]).tolist())
        found[done] = table[done, :][np.arange(len(found[done])), long[done]] + long[done]
        left = slice(done.stop, None)
        if k < rows.shape[1] and done.stop < len(pairs):
            same = columns[left] == rows[left, k, None]
            before = table[left]
            after = np.empty_like(before)
            after[:, 0] = k + 1
            np.minimum(before[:, 1:] + 1, before[:, :-1] - same, out=after[:, 1:])
            table[left] = np.minimum.accumulate(after, axis=1)
    return found


def _padded(lists: ActionLists, which: IntArray, width: int, fill: int) -> NDArray[np.int32]:
    """Return the lists as rows of one table."""
    place = np.arange(width)[None, :]
    inside = place < lists.lengths[which][:, None]
    at = np.where(inside, lists.start[which][:, None] + place, 0)
    codes = lists.codes[at] if lists.codes.size else np.zeros(at.shape, dtype=np.int64)
    return np.where(inside, codes, fill).astype(np.int32)
