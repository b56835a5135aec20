"""What was measured, as the gates take it: no path, no store, nothing of how it was read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scipy import stats

from calibration.estimates import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Runs in which something happened that must not.

    Parameters
    ----------
    count, n : int
        Runs with it, and runs in which it was looked for.
    n_tasks : int
        Tasks of those runs; n when no task repeats.
    """

    count: int
    n: int
    n_tasks: int

    def interval(self, confidence_level: float) -> tuple[float, float]:
        """Return the exact interval of the share; of no event at all its one-sided upper bound.

        Runs are independent.

        References
        ----------
        Clopper and Pearson (1934), Biometrika 26. https://doi.org/10.1093/biomet/26.4.404

        Examples
        --------
        None of 500: 1 - .05^(1/500).

        >>> Events(count=0, n=500, n_tasks=500).interval(0.95)
        (0.0, 0.0059736)
        """
        tail = 1 - confidence_level if self.count == 0 else (1 - confidence_level) / 2
        low = 0.0 if self.count == 0 else _quantile(self.count, self.n - self.count + 1, tail)
        if self.count == self.n:
            return low, 1.0
        return low, _quantile(self.count + 1, self.n - self.count, 1 - tail)

    def bound_by_task(self, confidence_level: float) -> float:
        """Return the upper bound when the runs of a task count once, after no event at all."""
        return float(1 - (1 - confidence_level) ** (1 / self.n_tasks))


def _quantile(a: float, b: float, q: float) -> float:
    return float(stats.beta.ppf(q, a, b))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A rate now less that of the baseline, in [-1, 1].

    Parameters
    ----------
    estimate : Estimate
        The difference, as a fraction; n counts tasks (or runs when none repeats).
    lower : float or None
        One-sided 95 % lower limit.
    p_below : float or None
        One-sided p-value of "the change is not below the drop that the gate allows".
    note : str
        What a reader must know: tasks left out, weights restated.
    """

    estimate: Estimate
    lower: float | None = None
    p_below: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeMeasured:
    """A judge against the human labels: agreement, kappa, and recall of each class with its n."""

    agreement: Estimate
    kappa: Estimate
    recall: Mapping[str, Estimate]
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowCost:
    """What a workflow costs per unit, beside its ceiling; USD.

    `n` counts its runs, `n_known` those whose cost is known.
    """

    name: str
    ceiling: float | None
    mean_per_unit: Estimate
    n: int
    n_known: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CostMeasured:
    """Every workflow, and the share of runs above their ceiling."""

    workflows: tuple[WorkflowCost, ...]
    share_over: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """Everything the gates may ask for; what is missing was not recorded.

    Parameters
    ----------
    rates : mapping of str to Estimate
        By gate: ``pass_at_1[core]`` and its like, ``asr``, ``latency_p95``.
    events : mapping of str to Events
        ``loops`` and ``data_corruption``.
    review : Estimate, optional
        Share of acceptable transcripts among those drawn at random and reviewed.
    judge : JudgeMeasured, optional
        The judge against the labels.
    changes : mapping of str to Change
        ``asr`` and ``pass_at_1`` against the baseline.
    by_category : mapping of str to Change
        pass@1 of every category against the baseline.
    cost : CostMeasured, optional
        What runs cost.
    why_not : mapping of str to str
        By gate: why it was not measured, and what would help.
    """

    rates: Mapping[str, Estimate] = field(default_factory=dict)
    events: Mapping[str, Events] = field(default_factory=dict)
    review: Estimate | None = None
    judge: JudgeMeasured | None = None
    changes: Mapping[str, Change] = field(default_factory=dict)
    by_category: Mapping[str, Change] = field(default_factory=dict)
    cost: CostMeasured | None = None
    why_not: Mapping[str, str] = field(default_factory=dict)
