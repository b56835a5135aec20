"""Repeated trials of tasks: pass@k, pass^k and what follows from them, of one model and version."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from calibration.analyses.fingerprint import package_version, settings_digest
from calibration.analyses.reliability.trial_changes import (
    AgainstBaseline,
    against_baseline,
    groups_of,
)
from calibration.analyses.success_rate.report import SourceFile, source_file
from calibration.errors import InputError
from calibration.statistics.estimate import (
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    not_estimable,
)
from calibration.statistics.means import clustered_share
from calibration.success_rate.pass_at_k import (
    PassAtK,
    PassPosterior,
    Trials,
    advice,
    count_trials,
    extrapolated,
    kinds_of,
    no_trials,
    over_tasks,
    pass_of_one_task,
    pass_over_tasks,
    passes_of_tasks,
    shares_at,
    shares_hat,
)
from calibration.success_rate.trials import (
    compounded,
    shares_g,
    step_rate,
    tries_of_tasks,
    with_retries,
)
from calibration.tables.reading import MissingOutcome, Reading, ReadingOptions
from calibration.tables.rows import Source, file_of
from calibration.tables.trials import (
    COST,
    TrialSource,
    TrialTable,
    group_notes,
    read_task_groups,
    read_trials,
)
from calibration.text import counted

MOST_K, MOST_KS, MOST_STEPS, MOST_RETRIES = 1_000, 20, 10_000, 100
MOST_GROUPS, MOST_MODES = 200, 50
# What the JSON holds as null where too many trials are left out.
FIGURES = ("pass_at_k", "pass_hat_k", "band", "g_pass_at_k")

# Above this, the JSON holds the first tasks only.
MOST_TASKS_LISTED = 10_000

REGRESSION, IMPROVEMENT, NO_EVIDENCE = (
    "evidence of regression", "evidence of improvement", "no evidence of regression",
)  # fmt: skip
INDEPENDENT = "If trials were independent with the task's share of passes: 1 - (1 - c/n)^k, (c/n)^k"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOptions:
    """What is wanted of repeated trials.

    `ks` : trials taken together. `model`, `agent_version` : whose trials. `g_threshold` : share of
    k trials that must pass for G-Pass@k. `retries` : times that a failed task is tried again.
    `steps` : steps of a task, if known.
    """

    ks: tuple[int, ...] = (1, 2, 3, 5)
    model: str | None = None
    agent_version: str | None = None
    g_threshold: float = 0.5
    retries: int = 2
    steps: int | None = None
    seed: int = 0
    n_resamples: int = 1000
    confidence_level: float = 0.95

    def check(self) -> None:
        """Raise InputError if a value is out of range."""
        if not self.ks or len(self.ks) > MOST_KS:
            raise InputError(f"-k must be 1 to {MOST_KS} numbers, got {len(self.ks)}")
        if any(not 1 <= k <= MOST_K for k in self.ks):
            raise InputError(f"-k must be whole numbers from 1 to {MOST_K:,}, got {self.ks}")
        if not 0 < self.g_threshold <= 1:
            raise InputError(f"--g-threshold must be above 0 and at most 1, got {self.g_threshold}")
        if not 0 <= self.retries <= MOST_RETRIES:
            raise InputError(f"--retries must be from 0 to {MOST_RETRIES}, got {self.retries}")
        if self.steps is not None and not 1 <= self.steps <= MOST_STEPS:
            raise InputError(f"--steps must be from 1 to {MOST_STEPS:,}, got {self.steps}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PassFigure:
    """A mean over tasks, and how many tasks have too few trials to enter it."""

    estimate: Estimate
    n_tasks_too_few_trials: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentTrials:
    """pass@k and pass^k if trials of a task were independent."""

    label: str
    pass_at_k: Mapping[int, PassFigure]
    pass_hat_k: Mapping[int, PassFigure]


@dataclass(frozen=True, slots=True, kw_only=True)
class BayesianPasses:
    """Posterior pass@k and pass^k: of one task exact, of several by a hierarchy of Beta tasks.

    `mean` : posterior mean of the chance of a pass; `correlation` : of two trials of one task.
    """

    method: str
    pass_at_k: Mapping[int, PassFigure]
    pass_hat_k: Mapping[int, PassFigure]
    mean: float
    correlation: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialGroup:
    """The tasks of one difficulty, category or tier."""

    n_tasks: int
    n_trials: int
    pass_at_k: Mapping[int, PassFigure]
    pass_hat_k: Mapping[int, PassFigure]
    band: Mapping[int, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureMode:
    """A tag of failed trials, with the share of all failed trials that have it."""

    tag: str
    n: int
    n_tasks: int
    share: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureModes:
    """The tags of failed trials, the most frequent first; a trial may have several.

    `modes_left_out` counts rarer tags.
    """

    n_failed: int
    n_untagged: int
    modes: tuple[FailureMode, ...]
    modes_left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessAfterRetries:
    """Success and expected tries if a failed task is tried again, at most `retries` times.

    From the trials of a task without replacement, and as if trials were independent. `expected_usd`
    : mean cost of a trial of the task x expected tries, over tasks whose cost is known.
    """

    retries: int
    success: PassFigure
    expected_tries: PassFigure
    independent_success: PassFigure
    independent_tries: PassFigure
    expected_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCompounding:
    """The rate per step that pass@1 implies if all of `steps` independent steps are needed.

    `curve` : chance that the first steps all succeed, by their number.
    """

    steps: int
    step_rate: float
    interval: tuple[float, float] | None
    curve: Mapping[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveTasks:
    """The curve over k on one set of tasks: those with trials enough for the largest k.

    `same_tasks` : whether the main figures rest on these tasks at every k.
    """

    largest_k: int | None
    n_tasks: int
    same_tasks: bool
    pass_at_k: Mapping[int, float]
    pass_hat_k: Mapping[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTrials:
    """One task: its trials, passes and groups, its figures, and those shrunk to the other tasks."""

    task_id: str
    n: int
    c: int
    difficulty: str | None
    category: str | None
    tier: str | None
    pass_at_k: Mapping[int, float | None]
    pass_hat_k: Mapping[int, float | None]
    shrunk_pass_at_k: Mapping[int, Estimate]
    shrunk_pass_hat_k: Mapping[int, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialsAnalysis:
    """Repeated trials of one model and agent version.

    `success_source` names what a success is. `tasks_left_out` counts tasks that the list lacks.
    `missing_outcome` : what pass@1 is at least and at most, whatever the trials left out were;
    None where none is. `reading` : of the table, or of it and the baseline.
    """

    success_source: str
    model: str | None
    agent_version: str | None
    n_trials: int
    n_tasks: int
    ks: tuple[int, ...]
    pass_at_k: Mapping[int, PassFigure]
    pass_hat_k: Mapping[int, PassFigure]
    band: Mapping[int, str | None]
    task_set: CurveTasks
    independent_trials: IndependentTrials
    bayesian: BayesianPasses
    by_difficulty: Mapping[str, TrialGroup]
    by_category: Mapping[str, TrialGroup]
    by_tier: Mapping[str, TrialGroup]
    g_pass_at_k: Mapping[int, PassFigure]
    g_threshold: float
    retries: SuccessAfterRetries
    step_compounding: StepCompounding | None
    failure_modes: FailureModes | None
    baseline: AgainstBaseline | None
    tasks: tuple[TaskTrials, ...]
    tasks_left_out: int
    missing_outcome: MissingOutcome | None
    reading: Reading | tuple[Reading, ...]
    other_trials: int
    notes: tuple[str, ...]
    sources: tuple[SourceFile, ...]
    settings: Mapping[str, object]
    seed: int
    n_resamples: int
    confidence_level: float
    version: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChosenTrials:
    """The trials of one model and version: counts by task, and mean cost of a trial (or NaN).

    `task` : the place of the task of each trial.
    """

    table: TrialTable
    task: IntArray
    trials: Trials
    cost: FloatArray

    @property
    def with_unknown(self) -> tuple[Trials, Trials]:
        """The trials with those left out as failures, and with those as passes.

        A trial whose task is not known is one of a task of its own.
        """
        place = {name: k for k, name in enumerate(self.trials.tasks.tolist())}
        places = [
            place.setdefault(name or f"\0{k}", len(place))
            for k, name in enumerate(self.table.unknown)
        ]
        more = np.bincount(places, minlength=len(place)).astype(np.int64)
        new = len(place) - self.trials.n.size
        n = np.concatenate([self.trials.n, np.zeros(new, dtype=np.int64)]) + more
        c = np.concatenate([self.trials.c, np.zeros(new, dtype=np.int64)])
        tasks = np.array(list(place), dtype=object)
        return Trials(tasks=tasks, n=n, c=c), Trials(tasks=tasks, n=n, c=c + more)


def chosen_trials(*sources: TrialSource) -> tuple[ChosenTrials, ...]:
    """Read the trials of one model and agent version of each table.

    Raises
    ------
    InputError, CalibrationError
        As `read_trials`.
    """
    return tuple(map(_counted, read_trials(*sources)))


def _counted(table: TrialTable) -> ChosenTrials:
    # Numbers in place of names, of which one may be long.
    names = sorted(set(table.tasks))
    number = {name: place for place, name in enumerate(names)}
    places = np.array([number[name] for name in table.tasks])
    trials = count_trials(places, table.passed)
    return ChosenTrials(
        table=table,
        task=places,
        trials=replace(trials, tasks=np.array(names, dtype=object)),
        cost=np.bincount(places, weights=table.amounts[COST]) / trials.n,
    )


def analyse_trials(
    source: Source,
    options: TrialOptions,
    *,
    reading: ReadingOptions | None = None,
    tasks: Source | None = None,
    of_tasks: ReadingOptions | None = None,
    groups: Mapping[str, Mapping[str, str]] | None = None,
    baseline: Source | None = None,
    of_baseline: ReadingOptions | None = None,
) -> TrialsAnalysis:
    """Analyse repeated trials; `baseline` is an earlier run.

    `tasks` describes the tasks, or `groups` that were read by `read_task_groups`. `reading`,
    `of_tasks`, `of_baseline` : what the user said of each table.

    Raises
    ------
    InputError
        If a file or an option is not valid, or trials are of several models or versions.
    CalibrationError
        If no trial is left.
    """
    options.check()
    first = TrialSource(
        source=source,
        options=reading or ReadingOptions(),
        model=options.model,
        agent_version=options.agent_version,
    )
    sources = [first]
    if baseline is not None:
        of_baseline = of_baseline or first.options
        sources.append(replace(first, source=baseline, options=of_baseline, required=False))
    chosen, *others = chosen_trials(*sources)
    groups = (groups or {}) if tasks is None else read_task_groups(tasks, of_tasks)
    missing = [_missing_outcome(one, options) for one in (chosen, *others)]
    readings = [
        replace(one.table.reading, bounds=None if at_most is None else (at_most.low, at_most.high))
        for one, at_most in zip((chosen, *others), missing, strict=True)
    ]
    for one, at_most in zip(readings, missing, strict=True):
        one.check_limit(*FIGURES, missing_outcome=at_most)
    of = _Of(trials=chosen.trials, options=options)
    at, hat, bands = of.passes(np.ones(chosen.trials.n.size, dtype=np.bool_))
    posteriors = _posteriors(chosen.trials, options)
    by = {name: _by_group(of, known) for name, known in groups.items()}
    against = None
    for earlier in others:
        against = against_baseline(
            chosen.trials,
            earlier.trials,
            groups,
            source=earlier.table.path,
            ks=options.ks,
            seed=options.seed,
            n_resamples=options.n_resamples,
            confidence_level=options.confidence_level,
        )
    named = [file for place in (source, tasks, baseline) if (file := file_of(place))]
    settings = asdict(replace(options)) | {"ks": list(options.ks)}
    listed = tuple(_each_task(chosen.trials, groups, posteriors, options))
    return TrialsAnalysis(
        success_source=f"column {chosen.table.success} of {chosen.table.path}",
        model=chosen.table.model,
        agent_version=chosen.table.agent_version,
        n_trials=int(chosen.trials.n.sum()),
        n_tasks=chosen.trials.n.size,
        ks=options.ks,
        pass_at_k=at,
        pass_hat_k=hat,
        band=bands,
        task_set=_curve(chosen.trials, options.ks),
        independent_trials=of.independent(),
        bayesian=_bayesian(chosen.trials, posteriors, options),
        by_difficulty=by.get("difficulty", {}),
        by_category=by.get("category", {}),
        by_tier=by.get("tier", {}),
        g_pass_at_k=of.g_passes(),
        g_threshold=options.g_threshold,
        retries=of.retried(chosen.cost),
        step_compounding=_steps(at.get(1) or of.passes_at_1(), options.steps),
        failure_modes=_failure_modes(chosen, options.confidence_level),
        baseline=against,
        tasks=listed,
        tasks_left_out=chosen.trials.n.size - len(listed),
        missing_outcome=missing[0],
        reading=tuple(readings) if others else readings[0],
        other_trials=chosen.table.n_other,
        notes=tuple(_notes(chosen, groups, at)),
        sources=tuple(map(source_file, named)),
        settings=settings,
        seed=options.seed,
        n_resamples=options.n_resamples,
        confidence_level=options.confidence_level,
        version=package_version(),
        fingerprint=settings_digest(
            {
                "settings": settings,
                "version": package_version(),
                "tasks": chosen.trials.tasks.tolist(),
                "n": chosen.trials.n.tolist(),
                "c": chosen.trials.c.tolist(),
                "groups": groups,
                "baseline": None if against is None else repr(against.pass_at_1),
            }
        ),
    )


def _missing_outcome(chosen: ChosenTrials, options: TrialOptions) -> MissingOutcome | None:
    """Return what pass@1 is if all trials left out failed, and if all passed."""
    n = len(chosen.table.unknown)
    if not n:
        return None
    low, high = (
        _Of(trials=trials, options=options).passes_at_1().estimate for trials in chosen.with_unknown
    )
    limits = None
    if low.interval is not None and high.interval is not None:
        limits = (low.interval[0], high.interval[1])
    return MissingOutcome(
        share=n / (n + len(chosen.table.tasks)),
        low=low.value or 0.0,
        high=high.value or 0.0,
        limits=limits,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Of:
    """Figures of trials; tasks with equal counts are computed once."""

    trials: Trials
    options: TrialOptions

    def kinds(self, rows: BoolArray, least: int = 1) -> tuple[Trials, IntArray]:
        """Return the kinds of tasks with `least` trials or more, and how many tasks are of each."""
        kept = rows & (self.trials.n >= least)
        return kinds_of(
            Trials(tasks=self.trials.tasks[kept], n=self.trials.n[kept], c=self.trials.c[kept])
        )

    def rng(self) -> np.random.Generator:
        """Return the same stream for each figure: a further k changes no other."""
        return np.random.default_rng(self.options.seed)

    def at(self, rows: BoolArray, k: int) -> PassAtK:
        """Return pass@k and pass^k of some tasks."""
        kinds, like = self.kinds(rows)
        return pass_over_tasks(
            kinds,
            k,
            rng=self.rng(),
            like=like,
            n_resamples=self.options.n_resamples,
            confidence_level=self.options.confidence_level,
        )

    def passes(
        self, rows: BoolArray
    ) -> tuple[dict[int, PassFigure], dict[int, PassFigure], dict[int, str | None]]:
        """Return pass@k, pass^k and band by k."""
        found = {k: self.at(rows, k) for k in self.options.ks}
        both = {k: _both(one) for k, one in found.items()}
        return (
            {k: at for k, (at, _) in both.items()},
            {k: hat for k, (_, hat) in both.items()},
            {k: one.band for k, one in found.items()},
        )

    def passes_at_1(self) -> PassFigure:
        """Return pass@1."""
        return _both(self.at(np.ones(self.trials.n.size, dtype=np.bool_), 1))[0]

    def independent(self) -> IndependentTrials:
        """Return pass@k and pass^k as if trials were independent."""
        kinds, like = self.kinds(np.ones(self.trials.n.size, dtype=np.bool_))
        found = {
            k: extrapolated(
                kinds,
                k,
                rng=self.rng(),
                like=like,
                n_resamples=self.options.n_resamples,
                confidence_level=self.options.confidence_level,
            )
            for k in self.options.ks
        }
        return IndependentTrials(
            label=INDEPENDENT,
            pass_at_k={k: PassFigure(estimate=one.pass_at_k) for k, one in found.items()},
            pass_hat_k={k: PassFigure(estimate=one.pass_hat_k) for k, one in found.items()},
        )

    def mean(self, of_kind: FloatArray, like: IntArray) -> Estimate:
        """Return the mean over tasks of a figure in [0, 1]."""
        return over_tasks(
            of_kind[:, None],
            like=like,
            rng=self.rng(),
            n_resamples=self.options.n_resamples,
            confidence_level=self.options.confidence_level,
        )[0]

    def figure(self, of_kind: FloatArray, like: IntArray, why: str) -> PassFigure:
        """Return that mean as printed, or why there is none."""
        return PassFigure(
            estimate=self.mean(of_kind, like)
            if like.size
            else not_estimable(why, method="mean over tasks"),
            n_tasks_too_few_trials=self.trials.n.size - int(like.sum()),
        )

    def g_passes(self) -> dict[int, PassFigure]:
        """Return G-Pass@k by k."""
        found = {}
        for k in self.options.ks:
            kinds, like = self.kinds(np.ones(self.trials.n.size, dtype=np.bool_), k)
            of_kind = shares_g(kinds.n, kinds.c, k, self.options.g_threshold)
            found[k] = self.figure(of_kind, like, no_trials(k))
        return found

    def retried(self, cost: FloatArray) -> SuccessAfterRetries:
        """Return success and expected tries with retries."""
        r, everything = self.options.retries, np.ones(self.trials.n.size, dtype=np.bool_)
        kinds, like = self.kinds(everything, r + 1)
        all_kinds, all_like = self.kinds(everything)
        alone = [with_retries(p, r) for p in (all_kinds.c / all_kinds.n).tolist()]
        known = np.isfinite(cost) & (self.trials.n >= r + 1)
        usd = cost[known] * tries_of_tasks(self.trials.n[known], self.trials.c[known], r)
        tries = tries_of_tasks(kinds.n, kinds.c, r)
        return SuccessAfterRetries(
            retries=r,
            success=self.figure(shares_at(kinds.n, kinds.c, r + 1), like, no_trials(r + 1)),
            expected_tries=_as_tries(
                self.figure((tries - 1) / max(1, r), like, no_trials(r + 1)), r
            ),
            independent_success=self.figure(
                np.array([one.success for one in alone]), all_like, no_trials(1)
            ),
            independent_tries=_as_tries(
                self.figure(
                    np.array([(one.expected_tries - 1) / max(1, r) for one in alone]),
                    all_like,
                    no_trials(1),
                ),
                r,
            ),
            expected_usd=float(usd.mean()) if usd.size else None,
        )


def _both(found: PassAtK) -> tuple[PassFigure, PassFigure]:
    too_few = found.n_too_few
    return (
        PassFigure(estimate=found.pass_at_k, n_tasks_too_few_trials=too_few),
        PassFigure(estimate=found.pass_hat_k, n_tasks_too_few_trials=too_few),
    )


def _as_tries(share: PassFigure, retries: int) -> PassFigure:
    """Return the share of the retries that are used as tries, the first one included."""
    found = share.estimate
    if found.value is None:
        return share
    limits = found.interval
    tries = replace(
        found,
        value=1 + retries * found.value,
        interval=None if limits is None else (1 + retries * limits[0], 1 + retries * limits[1]),
    )
    return replace(share, estimate=tries)


def _curve(trials: Trials, ks: Sequence[int]) -> CurveTasks:
    """Return the curve over the tasks with trials enough for the largest k that any task has."""
    possible = [k for k in ks if k <= trials.n.max()]
    if not possible:
        return CurveTasks(largest_k=None, n_tasks=0, same_tasks=True, pass_at_k={}, pass_hat_k={})
    rows = trials.n >= max(possible)
    n, c = trials.n[rows], trials.c[rows]
    return CurveTasks(
        largest_k=max(possible),
        n_tasks=int(rows.sum()),
        same_tasks=bool((trials.n[~rows] < min(possible)).all()),
        pass_at_k={k: float(shares_at(n, c, k).mean()) for k in possible},
        pass_hat_k={k: float(shares_hat(n, c, k).mean()) for k in possible},
    )


def _posteriors(trials: Trials, options: TrialOptions) -> tuple[PassPosterior, ...]:
    """Return the posterior of several tasks; nothing for one."""
    if trials.n.size < 2:
        return ()
    first = Trials(
        tasks=trials.tasks[:MOST_TASKS_LISTED],
        n=trials.n,
        c=trials.c,
    )
    return passes_of_tasks(first, options.ks, confidence_level=options.confidence_level)


def _bayesian(
    trials: Trials, posteriors: Sequence[PassPosterior], options: TrialOptions
) -> BayesianPasses:
    if not posteriors:
        n, c = int(trials.n[0]), int(trials.c[0])
        one = [
            pass_of_one_task(n, c, k, confidence_level=options.confidence_level) for k in options.ks
        ]
        return BayesianPasses(
            method="one task: Beta(1, 1) prior, exact",
            pass_at_k={o.k: PassFigure(estimate=replace(o.pass_at_k, n=1)) for o in one},
            pass_hat_k={o.k: PassFigure(estimate=replace(o.pass_hat_k, n=1)) for o in one},
            mean=(c + 1) / (n + 2),
            correlation=None,
        )
    return BayesianPasses(
        method="hierarchy: p of a task is Beta(ms, (1 - m)s), m uniform, log s uniform on "
        "[log .2, log 300]; posterior on a grid",
        pass_at_k={p.k: PassFigure(estimate=p.pass_at_k) for p in posteriors},
        pass_hat_k={p.k: PassFigure(estimate=p.pass_hat_k) for p in posteriors},
        mean=posteriors[0].mean,
        correlation=posteriors[0].correlation,
    )


def _failure_modes(chosen: ChosenTrials, confidence_level: float) -> FailureModes | None:
    """Return the tags of failed trials; None where the table has no such column."""
    if not chosen.table.tags:
        return None
    failed = np.flatnonzero(~chosen.table.passed)
    tasks, n_tasks = chosen.task[failed], chosen.trials.n.size
    places: dict[str, list[int]] = {}
    spelled: dict[str, str] = {}
    tags = [chosen.table.tags[k] for k in failed]
    for place, own in enumerate(tags):
        for tag in own:
            places.setdefault(spelled.setdefault(tag.casefold(), tag), []).append(place)
    of = np.bincount(tasks, minlength=n_tasks).astype(np.float64)
    most = sorted(places, key=lambda tag: (-len(places[tag]), tag))
    modes = []
    for tag in most[:MOST_MODES]:
        hits = np.bincount(tasks[places[tag]], minlength=n_tasks).astype(np.float64)
        share = clustered_share(
            hits, of, n=failed.size, noun="tasks", confidence_level=confidence_level
        )
        modes.append(
            FailureMode(tag=tag, n=len(places[tag]), n_tasks=int((hits > 0).sum()), share=share)
        )
    return FailureModes(
        n_failed=failed.size,
        n_untagged=sum(not own for own in tags),
        modes=tuple(modes),
        modes_left_out=len(most) - len(modes),
    )


def _by_group(of: _Of, known: Mapping[str, str]) -> dict[str, TrialGroup]:
    """Return the figures of each difficulty, category or tier."""
    names = groups_of(of.trials, known)
    listed = sorted(set(names.tolist()) - {""})
    if len(listed) > MOST_GROUPS:
        raise InputError(f"{len(listed):,} groups of tasks; at most {MOST_GROUPS} are reported")
    found = {}
    for name in listed:
        rows = names == name
        at, hat, bands = of.passes(rows)
        found[name] = TrialGroup(
            n_tasks=int(rows.sum()),
            n_trials=int(of.trials.n[rows].sum()),
            pass_at_k=at,
            pass_hat_k=hat,
            band=bands,
        )
    return found


def _steps(at_1: PassFigure, steps: int | None) -> StepCompounding | None:
    found = at_1.estimate
    if steps is None or found.value is None:
        return None
    rate = step_rate(found.value, steps)
    shown = sorted({n for n in (1, 2, 3, 5, 10, 20, 50, 100) if n <= steps} | {steps})
    limits = found.interval
    return StepCompounding(
        steps=steps,
        step_rate=rate,
        interval=None
        if limits is None
        else (step_rate(limits[0], steps), step_rate(limits[1], steps)),
        curve={n: compounded(rate, n) for n in shown},
    )


def _each_task(
    trials: Trials,
    groups: Mapping[str, Mapping[str, str]],
    posteriors: Sequence[PassPosterior],
    options: TrialOptions,
) -> Iterator[TaskTrials]:
    names = trials.tasks.tolist()[:MOST_TASKS_LISTED]
    figures: dict[str, dict[int, list[float | None]]] = {"at": {}, "hat": {}}
    for k in options.ks:
        enough = trials.n[: len(names)] >= k
        for kind, share in (("at", shares_at), ("hat", shares_hat)):
            values = np.full(len(names), np.nan)
            values[enough] = share(
                trials.n[: len(names)][enough], trials.c[: len(names)][enough], k
            )
            figures[kind][k] = [None if np.isnan(v) else v for v in values.tolist()]
    for i, name in enumerate(names):
        own = {group: known.get(name) for group, known in groups.items()}
        yield TaskTrials(
            task_id=name,
            n=int(trials.n[i]),
            c=int(trials.c[i]),
            difficulty=own.get("difficulty"),
            category=own.get("category"),
            tier=own.get("tier"),
            pass_at_k={k: figures["at"][k][i] for k in options.ks},
            pass_hat_k={k: figures["hat"][k][i] for k in options.ks},
            shrunk_pass_at_k={p.k: p.tasks[i].pass_at_k for p in posteriors},
            shrunk_pass_hat_k={p.k: p.tasks[i].pass_hat_k for p in posteriors},
        )


def _notes(
    chosen: ChosenTrials,
    groups: Mapping[str, Mapping[str, str]],
    at: Mapping[int, PassFigure],
) -> Iterator[str]:
    if not chosen.table.numbered:
        yield "The file has no column trial: every row counts as a trial of its own."
    if chosen.table.n_other:
        others = counted(chosen.table.n_other, "trial")
        yield f"Left out: {others} of other models or versions."
    words = advice(chosen.trials.n.size)
    if words:
        yield f"{words[:1].upper()}{words[1:]}."
    few = [k for k, one in at.items() if one.n_tasks_too_few_trials and one.estimate.ok]
    if few:
        yield (
            f"From k = {min(few)} on, tasks with fewer than k trials are left out, so that the "
            "figures of several k are of different tasks; the curve is of one set of tasks."
        )
    yield from group_notes(chosen.trials.tasks.tolist(), groups)
