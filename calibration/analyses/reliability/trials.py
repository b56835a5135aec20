"""Repeated trials of tasks: pass@k, pass^k and what follows from them, of one model and version."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from calibration.analyses.fingerprint import package_version, settings_digest
from calibration.analyses.reliability.trial_changes import (
    AgainstBaseline,
    against_baseline,
    groups_of,
)
from calibration.analyses.success_rate.report import LeftOutRows, SourceFile, source_file
from calibration.errors import CalibrationError, InputError
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
from calibration.tables.rows import Source, file_of
from calibration.tables.trials import (
    TAGS,
    TrialTable,
    group_notes,
    read_task_groups,
    read_trials,
)
from calibration.text import counted

MOST_K, MOST_KS, MOST_STEPS, MOST_RETRIES = 1_000, 20, 10_000, 100
MOST_NAMED, MOST_GROUPS, MOST_MODES, EXAMPLES = 8, 200, 50, 5

# Above this, the JSON holds the first tasks only.
MOST_TASKS_LISTED = 10_000

REGRESSION, IMPROVEMENT, NO_EVIDENCE = (
    "evidence of regression", "evidence of improvement", "no evidence of regression",
)  # fmt: skip
INDEPENDENT = "If trials were independent with the task's share of passes: 1 - (1 - c/n)^k, (c/n)^k"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOptions:
    """What is wanted of repeated trials.

    `ks` : trials taken together. `success` : column that says whether a trial passed; `tags` : that
    of failure modes. `model`,
    `agent_version` : whose trials. `g_threshold` : share of k trials that must pass for G-Pass@k.
    `retries` : times that a failed task is tried again. `steps` : steps of a task, if known.
    """

    ks: tuple[int, ...] = (1, 2, 3, 5)
    success: str = "success"
    tags: str = TAGS
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
    set_aside: tuple[LeftOutRows, ...]
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

    `rows` : which of the table they are; `task` : the place of the task of each.
    """

    table: TrialTable
    rows: IntArray
    task: IntArray
    trials: Trials
    cost: FloatArray
    model: str | None
    agent_version: str | None
    n_other: int

    @property
    def left_out(self) -> tuple[LeftOutRows, ...]:
        """The rows that do not count, by reason, with the lines of the first of them."""
        name = Path(self.table.path).name
        return tuple(
            LeftOutRows(
                reason=reason,
                n=len(lines),
                examples=tuple(f"{name} line {line}" for line in sorted(lines)[:EXAMPLES]),
            )
            for reason, lines in self.table.set_aside.items()
        )


def chosen_trials(
    source: Source,
    *,
    success: str,
    model: str | None,
    agent_version: str | None,
    tags: str = TAGS,
    required: bool = True,
) -> ChosenTrials:
    """Read the trials of one model and agent version, which are never pooled with others.

    Without `required` a model or version that does not occur is not asked for.

    Raises
    ------
    InputError
        As `read_trials`, or if there are several models or versions and none is named.
    CalibrationError
        If no trial is left.
    """
    table = read_trials(source, success=success, tags=tags)
    inside = np.ones(len(table.tasks), dtype=np.bool_)
    names: dict[str, str | None] = {}
    for column, wanted in (("model", model), ("agent_version", agent_version)):
        own, names[column] = _of_one(table, column, wanted, inside, required=required)
        inside &= own
    if not inside.any():
        why = "; ".join(f"{len(lines):,}: {reason}" for reason, lines in table.set_aside.items())
        raise CalibrationError(f"{table.path}: no trial is left ({why or 'it holds none'})")
    # Numbers in place of names, of which one may be long.
    rows = np.flatnonzero(inside)
    names_of = sorted({table.tasks[row] for row in rows})
    number = {name: place for place, name in enumerate(names_of)}
    places = np.array([number[table.tasks[row]] for row in rows])
    trials = count_trials(places, table.passed[inside])
    return ChosenTrials(
        table=table,
        rows=rows,
        task=places,
        trials=replace(trials, tasks=np.array(names_of, dtype=object)),
        cost=np.bincount(places, weights=table.cost_usd[inside]) / trials.n,
        model=names["model"],
        agent_version=names["agent_version"],
        n_other=int((~inside).sum()),
    )


def _of_one(
    table: TrialTable, column: str, wanted: str | None, inside: BoolArray, *, required: bool
) -> tuple[BoolArray, str | None]:
    """Return the trials of one model or version, and its name; raise if it is not clear which."""
    option = f"--{column.replace('_', '-')}"
    if column not in table.others:
        if wanted is not None and required:
            raise InputError(f"{table.path}: has no column {column!r} for {option}")
        return np.ones(inside.size, dtype=np.bool_), None
    values = np.array(table.others[column], dtype=object)
    there = sorted(set(values[inside].tolist()))
    named = ", ".join(map(repr, there[:MOST_NAMED])) + ", ..." * (len(there) > MOST_NAMED)
    if wanted in there:
        return values == wanted, wanted
    if wanted is not None and required:
        what = f"no trial of {column} {wanted!r:.80}"
        raise InputError(f"{table.path}: {what}; there are {named or 'none':.600}")
    if len(there) > 1:
        raise InputError(
            f"{table.path}: trials of {len(there)} values of {column} are never pooled: choose one "
            f"with {option} ({named:.600})"
        )
    return np.ones(inside.size, dtype=np.bool_), there[0] if there else None


def analyse_trials(
    source: Source,
    options: TrialOptions,
    *,
    tasks: Source | None = None,
    groups: Mapping[str, Mapping[str, str]] | None = None,
    baseline: Source | None = None,
) -> TrialsAnalysis:
    """Analyse repeated trials; `baseline` is an earlier run.

    `tasks` describes the tasks, or `groups` that were read by `read_task_groups`.

    Raises
    ------
    InputError
        If a file or an option is not valid, or trials are of several models or versions.
    CalibrationError
        If no trial is left.
    """
    options.check()
    chosen = chosen_trials(
        source, success=options.success, tags=options.tags, model=options.model,
        agent_version=options.agent_version,
    )  # fmt: skip
    groups = (groups or {}) if tasks is None else read_task_groups(tasks)
    of = _Of(trials=chosen.trials, options=options)
    at, hat, bands = of.passes(np.ones(chosen.trials.n.size, dtype=np.bool_))
    posteriors = _posteriors(chosen.trials, options)
    by = {name: _by_group(of, known) for name, known in groups.items()}
    against = None
    if baseline is not None:
        earlier = chosen_trials(
            baseline,
            success=options.success,
            model=options.model,
            agent_version=options.agent_version,
            required=False,
        )
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
    sources = tuple(map(source_file, named))
    return TrialsAnalysis(
        success_source=f"column {options.success} of {chosen.table.path}",
        model=chosen.model,
        agent_version=chosen.agent_version,
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
        set_aside=chosen.left_out,
        other_trials=chosen.n_other,
        notes=tuple(_notes(chosen, groups, at)),
        sources=sources,
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
    failed = np.flatnonzero(~chosen.table.passed[chosen.rows])
    tasks, n_tasks = chosen.task[failed], chosen.trials.n.size
    places: dict[str, list[int]] = {}
    spelled: dict[str, str] = {}
    tags = [chosen.table.tags[chosen.rows[k]] for k in failed]
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
    if chosen.n_other:
        yield f"Left out: {counted(chosen.n_other, 'trial')} of other models or versions."
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
