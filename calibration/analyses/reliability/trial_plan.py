"""How many tasks, and trials of each, tell pass@1 or pass^k with a wanted precision."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from calibration.analyses.reliability.trials import chosen_trials
from calibration.errors import CalibrationError, InputError
from calibration.success_rate.pass_at_k import passes_of_tasks
from calibration.success_rate.trials import (
    MOST_TASKS_PLANNED,
    MOST_TRIALS_PLANNED,
    NARROWEST,
    TrialsCombination,
    tasks_for_half_width,
    trials_for_tasks,
)
from calibration.tables.reading import Reading, ReadingOptions
from calibration.tables.rows import Source
from calibration.tables.trials import TrialSource

ALWAYS_OR_NEVER = "every task passes always or never"
ALIKE = "all tasks alike"
ASSUMED = 0.5
MOST_NUMBERS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPlanCase:
    """One assumption on how tasks differ, and what each number of trials takes under it.

    `fewest_trials` of each task that are enough for the given tasks; None also without those.
    """

    name: str
    mean: float
    correlation: float
    combinations: tuple[TrialsCombination, ...]
    fewest_trials: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPlan:
    """Numbers of tasks x trials with which pass^k has a half-width; k = 1 is pass@1.

    `basis` says in words what is known of the tasks. `n_tasks` : the tasks there are, if given.
    """

    half_width: float
    k: int
    n_tasks: int | None
    basis: str
    confidence_level: float
    cases: tuple[TrialPlanCase, ...]
    reading: Reading | None = None


def plan_trials(
    source: Source | None = None,
    *,
    half_width: float,
    n_trials: Sequence[int] = (1, 2, 3, 5, 10, 20),
    n_tasks: int | None = None,
    p: float | None = None,
    k: int = 1,
    model: str | None = None,
    agent_version: str | None = None,
    reading: ReadingOptions | None = None,
    confidence_level: float = 0.95,
) -> TrialPlan:
    """Plan trials from earlier ones in `source`, or for two extreme cases.

    The half-width is that of the normal interval over tasks, a random sample. Earlier trials give
    the posterior mean of the chance of a pass, and of the correlation of two trials of one task.

    Raises
    ------
    InputError
        If a number is out of range, or as `chosen_trials`.
    CalibrationError
        If `source` has fewer than two tasks, or no trial.
    """
    wanted = _checked(half_width, n_trials, n_tasks, p, k)
    if source is None:
        # Of pass^k neither is the worst: its variance is largest where half of the tasks pass k.
        worst, best = ("worst case, ", "best case, ") if k == 1 else ("", "")
        known = [(f"{worst}{ALWAYS_OR_NEVER}", 1.0), (f"{best}{ALIKE}", 0.0)]
        mean = ASSUMED if p is None else p
        basis = f"no trials yet; chance of a pass {mean:g} {'assumed' if p is None else 'given'}"
    else:
        (chosen,) = chosen_trials(
            TrialSource(
                source=source,
                options=reading or ReadingOptions(),
                model=model,
                agent_version=agent_version,
            )
        )
        chosen.table.reading.check_limit("cases")
        if chosen.trials.n.size < 2:
            raise CalibrationError(
                f"{chosen.table.path}: one task does not say how much tasks differ; add tasks"
            )
        found = passes_of_tasks(chosen.trials, [1], each_task=False)[0]
        known, mean = [("as in these trials", found.correlation)], found.mean if p is None else p
        basis = (
            f"column {chosen.table.success} of {chosen.table.path}, "
            f"{chosen.trials.n.size:,} tasks, {chosen.trials.n.sum():,} trials"
        )
    return TrialPlan(
        half_width=half_width,
        k=k,
        n_tasks=n_tasks,
        basis=basis,
        confidence_level=confidence_level,
        reading=None if source is None else chosen.table.reading,
        cases=tuple(_cases(known, mean, wanted, half_width, n_tasks, k, confidence_level)),
    )


def _checked(
    half_width: float, n_trials: Sequence[int], n_tasks: int | None, p: float | None, k: int
) -> list[int]:
    """Return the numbers of trials from k up; raise InputError if a number is out of range."""
    if not NARROWEST <= half_width < 1:
        raise InputError(
            f"--half-width must be from {NARROWEST:g} up and below 1, got {half_width}"
        )
    if not n_trials or len(n_trials) > MOST_NUMBERS:
        raise InputError(f"--trials must be 1 to {MOST_NUMBERS} numbers, got {len(n_trials)}")
    if not all(1 <= n <= MOST_TRIALS_PLANNED for n in n_trials):
        raise InputError(f"--trials must be whole numbers from 1 to {MOST_TRIALS_PLANNED:,}")
    if n_tasks is not None and not 1 <= n_tasks <= MOST_TASKS_PLANNED:
        raise InputError(f"--tasks must be from 1 to {MOST_TASKS_PLANNED:,}, got {n_tasks}")
    if p is not None and not 0 < p < 1:
        raise InputError(f"--p must be above 0 and below 1, got {p}")
    if not 1 <= k <= MOST_TRIALS_PLANNED:
        raise InputError(f"-k must be from 1 to {MOST_TRIALS_PLANNED:,}, got {k}")
    return sorted({n for n in n_trials if n >= k}) or [k]


def _cases(
    known: Sequence[tuple[str, float]],
    mean: float,
    n_trials: Sequence[int],
    half_width: float,
    n_tasks: int | None,
    k: int,
    confidence_level: float,
) -> Iterator[TrialPlanCase]:
    for name, correlation in known:
        yield TrialPlanCase(
            name=name,
            mean=mean,
            correlation=correlation,
            combinations=tasks_for_half_width(
                half_width, n_trials, k=k, mean=mean, correlation=correlation, n_tasks=n_tasks,
                confidence_level=confidence_level,
            ),
            fewest_trials=None
            if n_tasks is None
            else trials_for_tasks(
                half_width, n_tasks, k=k, mean=mean, correlation=correlation,
                confidence_level=confidence_level,
            ),
        )  # fmt: skip
