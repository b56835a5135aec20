"""The success-rate report as an object, its options, and the parts every source shares."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from calibration.errors import InputError
from calibration.judge_calibration.samples import Design
from calibration.records import OUTCOMES
from calibration.statistics.estimate import Estimate
from calibration.success_rate.comparison import ClassChange, Comparison, Difference, compare_runs
from calibration.success_rate.pass_at_k import PassAtK
from calibration.success_rate.rate import AgentSuccessRate
from calibration.success_rate.resampling import Interval
from calibration.success_rate.runs import RunCounts
from calibration.success_rate.trend import MixShift, WeeklySeries, calendar
from calibration.taxonomy import Taxonomy, default_taxonomy

PREVIOUS = "previous"

# Settings that say where things lie; a report is the same wherever they do.
PLACES = ("files", "postgres", "table", "spark", "taxonomy")


GOES_TO = {
    "partial_minus": "prompt and guard-rail review",
    "hallucinated": "model and retrieval",
    "abandoned": "infrastructure",
}

SHOWN_RUNS = 20

LITERAL = "as printed, without a floor for each run: a diagnostic, no interval"


DEFAULT_WEIGHTS = "default_weights"

PARTIAL = {"partial_30": 0.3, "partial_40": 0.4, "partial_50": 0.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeShare:
    """One class.

    Parameters
    ----------
    outcome, title : str
        Its name in data and in words.
    credit : float
        What a run of it earns.
    share : Estimate
        Share of the runs.
    target : float or None
        The share that is aimed at.
    """

    outcome: str
    title: str
    credit: float
    share: Estimate
    target: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of the rate and of the classes.

    Parameters
    ----------
    later, earlier : str
        The two sets of runs in words, such as ISO weeks.
    before, after : Estimate
        Their rates.
    asr : Difference
        After minus before.
    classes : tuple of ClassChange
        The same for every class, with flags.
    n_pairs : int
        Tasks that both have, resampled together.
    """

    later: str
    earlier: str
    before: Estimate
    after: Estimate
    asr: Difference
    classes: tuple[ClassChange, ...]
    n_pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPanel:
    """What runs cost in USD, over the runs whose cost is known; None: not known.

    Parameters
    ----------
    n, n_known, n_without_ceiling : int
        Runs, those with a cost, and those of a workflow without a ceiling.
    mean, p50, p90, p99 : float or None
        USD a run.
    share_above_ceiling : Estimate or None
        Of the runs with a cost and a ceiling.
    per_success : Estimate
        All known costs divided by the complete runs among those with a cost, in USD.
    of_ceiling : tuple of float or None
        P50, P90 and P99 of the cost as a multiple of the ceiling of the run, all of its units
        together.
    """

    n: int
    n_known: int
    n_without_ceiling: int
    per_success: Estimate
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    share_above_ceiling: Estimate | None = None
    of_ceiling: tuple[float, float, float] | None = None

    @property
    def coverage(self) -> float | None:
        """Share of the runs whose cost is known."""
        return self.n_known / self.n if self.n else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateGroup:
    """One workflow, model or tag; `name` is None for the runs that have none."""

    name: str | None
    n: int
    asr: Estimate
    asr_gross: Estimate | None = None
    pass_rate: Estimate | None = None
    cost: CostPanel | None = None
    ceiling_usd: float | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOtherWeights:
    """The rate under another table of credit."""

    name: str
    credit: tuple[float, ...]
    asr: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItem:
    """One run that somebody should look at.

    Parameters
    ----------
    reasons : tuple of str
        What was said of it by whoever put it into its class.
    evidence : tuple of str
        What they quoted, each with its step.
    """

    trace_id: str
    workflow: str
    week: str | None = None
    model: str | None = None
    cost_usd: float | None = None
    reasons: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkList:
    """The runs of one class, and who looks at them.

    Parameters
    ----------
    outcome, goes_to : str
        The class, and whose work it is.
    n : int
        Runs of it.
    by_week : tuple of (str, int)
        Runs of it in each ISO week.
    first : tuple of WorkItem
        The first of them in time.
    """

    outcome: str
    goes_to: str
    n: int
    by_week: tuple[tuple[str, int], ...] = ()
    first: tuple[WorkItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One monitoring signal, over all and week by week.

    Parameters
    ----------
    key, name : str
        Its name in data and in words.
    unit : str
        ``share``, ``score`` (-1 to 1), ``usd`` or ``s``.
    over_all : Estimate
        Over all runs; where nothing was recorded its status says what would record it.
    by_week : tuple of (str, Estimate)
        The same for each ISO week.
    """

    key: str
    name: str
    unit: str
    over_all: Estimate
    by_week: tuple[tuple[str, Estimate], ...] = ()

    @property
    def recorded(self) -> bool:
        """Whether any run says anything."""
        return self.over_all.value is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictWeek:
    """What a judge said of one week's runs, and how far that is from the weeks before."""

    week: str
    n: int
    shares: tuple[tuple[str, Estimate], ...]
    shift: MixShift


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictMix:
    """The verdicts of a judge week by week; `status` says why where there are none."""

    status: str
    weeks: tuple[VerdictWeek, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds a run took, over the runs that say so."""

    n: int
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Repeated trials of the tasks of one agent; trials of several are never pooled.

    Parameters
    ----------
    agent : str
        Its model and version.
    n_tasks, most_trials : int
        Its tasks, and the most trials that one of them has, labelled or not.
    points : tuple of PassAtK
        pass@k and pass^k, a mean over tasks; each k on the tasks that have so many trials.
    """

    agent: str
    n_tasks: int
    most_trials: int
    points: tuple[PassAtK, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRows:
    """Rows that are not in the numbers, why, and where the first of them stand."""

    reason: str
    n: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRates:
    """What stands beside a corrected headline.

    Parameters
    ----------
    judge_raw : Estimate or None
        Every verdict taken as true.
    human_only : Estimate
        The labelled sample alone.
    corrected, corrected_gross : Estimate
        Corrected for the errors of the judge.
    two_source : Estimate or None
        The same with the bootstrap of both sources, as a check.
    """

    judge_raw: Estimate | None
    human_only: Estimate
    corrected: Estimate
    corrected_gross: Estimate
    two_source: Estimate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One input: a file with its size and SHA-256, or a store."""

    name: str
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """All that it takes to make the report again.

    Parameters
    ----------
    sources : tuple of SourceFile
        What was read.
    settings : mapping
        The options, as plain data.
    sampling, judge : str
        How the runs came to be in it, and who said what class they are.
    taxonomy_version, taxonomy_fingerprint : str
        Of the weights, ceilings and tree that were used.
    seed, n_resamples : int
        Of the resamples.
    confidence_level : float
        Of the intervals.
    package_version, fingerprint : str
        Of the software, and of inputs, taxonomy, settings and version together.
    """

    sources: tuple[SourceFile, ...]
    settings: Mapping[str, object]
    sampling: str
    judge: str
    taxonomy_version: str
    taxonomy_fingerprint: str
    seed: int
    n_resamples: int
    confidence_level: float
    package_version: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductionReport:
    """Everything the report says about one set of runs.

    Parameters
    ----------
    kind : str
        What the headline is, in words; `calibrated` says whether judge error is corrected for.
    target : str
        What the number estimates, in one sentence.
    first, last : str or None
        ISO weeks that the runs lie in.
    asr, asr_gross, asr_literal, asr_without_abandoned, pass_rate : Estimate
        The headline and what is printed next to it.
    identity : str
        What the rate is made of, in one line.
    asr_range : tuple of float
        With every missing cost at twice the ceiling, and with every one within it.
    change : Change or None
        Against the window before; None without one.
    by_tag : tuple of RateGroup
        A run counts under each of its tags; `tags_left_out` rarer tags are not there.
    warnings, notes : tuple of str
        What the reader must know, and what helps to know.
    marks : tuple of str
        Said before everything else: simulated data, reference traces by force.
    basis : str
        What identity, weeks, changes, groups and work lists rest on where that is not what the
        headline does; else empty.
    passes : tuple of Passes
        Repeated trials, agent by agent; empty where no task has several.
    """

    calibrated: bool
    kind: str
    target: str
    n: int
    n_tasks: int | None
    first: str | None
    last: str | None
    asr: Estimate
    asr_gross: Estimate
    asr_literal: Estimate
    asr_without_abandoned: Estimate
    pass_rate: Estimate
    identity: str
    mean_effective_penalty: float
    asr_range: tuple[float, float]
    rounding: float
    classes: tuple[OutcomeShare, ...]
    cost: CostPanel
    weekly: WeeklySeries | None
    by_workflow: tuple[RateGroup, ...]
    by_model: tuple[RateGroup, ...]
    sensitivity: tuple[AtOtherWeights, ...]
    signals: tuple[Signal, ...]
    latency: Latency | None
    origin: Origin
    change: Change | None = None
    by_tag: tuple[RateGroup, ...] = ()
    work_lists: tuple[WorkList, ...] = ()
    set_aside: tuple[LeftOutRows, ...] = ()
    verdict_mix: VerdictMix | None = None
    tags_left_out: int = 0
    judged: JudgedRates | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    basis: str = ""
    passes: tuple[Passes, ...] = ()
    details: Mapping[str, object] = field(default_factory=dict)


# What the settings of a report on a store do not have.
OF_FILES_ALONE: Mapping[str, Any] = {
    "columns": {},
    "ceilings": {},
    "any_workflow": False,
    "stratify": False,
    "force": False,
}

# What the settings of a report on files do not have, and options that settings name otherwise.
OF_STORES_ALONE = ("batch_id", "judge_id", "design", "workflow")

SETTING = {
    "since": "from", "until": "to", "n_resamples": "resamples", "batch_id": "batch",
    "judge_id": "judge",
}  # fmt: skip

_WEEK = re.compile(r"\d{4}-W\d{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What a report is asked for: which runs, how they are read, and how they are resampled.

    Parameters
    ----------
    since, until : str or None
        First and last day (``2026-11-02``) or ISO week (``2026-W45``) of the report; a moment
        (``2026-11-02T09:00``) counts as it is. In `timezone`.
    timezone : str
        Zone of times without one.
    columns : mapping of str to str or None
        The column that stands for each of ours; None leaves one out.
    compare_to : str or None
        ``"previous"``, a file, or None for no comparison.
    ceilings : mapping of str to float
        Ceilings per unit in USD instead of those of the taxonomy.
    any_workflow : bool
        Keep workflows that the taxonomy does not list, without a ceiling.
    strict_cost : bool
        Refuse runs without a cost.
    stratify : bool
        Resample within workflows.
    pooled : bool
        Weigh weeks by their runs in the rolling mean.
    targets : mapping of str to float
        The share of a class that is aimed at.
    force : bool
        Report on traces of the reference set, with a mark.
    batch_id, judge_id : str or None
        Of a store: the newest random sample and the only judge when None.
    design : {"production", "reference"}
        Of a store: what its labelled traces are.
    workflow : str or None
        Of a store: one workflow alone.
    seed, n_resamples, confidence_level, interval
        Of the resamples.
    """

    since: str | None = None
    until: str | None = None
    timezone: str = "UTC"
    columns: Mapping[str, str | None] = field(default_factory=dict)
    compare_to: str | None = PREVIOUS
    ceilings: Mapping[str, float] = field(default_factory=dict)
    any_workflow: bool = False
    strict_cost: bool = False
    stratify: bool = False
    pooled: bool = False
    targets: Mapping[str, float] = field(default_factory=dict)
    force: bool = False
    batch_id: str | None = None
    judge_id: str | None = None
    design: Design = "production"
    workflow: str | None = None
    seed: int = 0
    n_resamples: int = 1000
    confidence_level: float = 0.95
    interval: Interval = "percentile"

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"seed must be 0 or more, got {self.seed}")
        if self.n_resamples < 100:
            raise InputError(f"resamples must be 100 or more, got {self.n_resamples}")
        if not 0 < self.confidence_level < 1:
            raise InputError(f"confidence level must be in (0, 1), got {self.confidence_level}")

    @property
    def window(self) -> tuple[datetime | None, datetime | None]:
        """The first moment, and the one just after the last, in UTC.

        Raises
        ------
        InputError
            If a time cannot be read, or the end is not after the start.
        """
        zone = _zone(self.timezone)
        since = None if self.since is None else _moments(self.since, "--from", zone)[0]
        until = None if self.until is None else _moments(self.until, "--to", zone)[1]
        if since is not None and until is not None and since >= until:
            raise InputError(f"--from {self.since} is not before --to {self.until}")
        return since, until

    @property
    def window_words(self) -> str:
        """The runs that are asked for, in words."""
        if self.since is None and self.until is None:
            return "these runs"
        if self.since == self.until:
            return str(self.since)
        return f"{self.since or 'the start'} to {self.until or 'the end'}"

    def resampling(self, part: int) -> dict[str, Any]:
        """Return how to resample one part of a report; parts draw apart, so none moves another."""
        return {
            "rng": np.random.default_rng([self.seed, part]),
            "n_resamples": self.n_resamples,
            "confidence_level": self.confidence_level,
            "interval": self.interval,
        }

    def settings(self, place: Mapping[str, Any], taxonomy: Path | None) -> dict[str, Any]:
        """Return everything it takes to ask for the same report, as plain data.

        `place` says what was read.
        """
        own = {
            SETTING.get(one.name, one.name): getattr(self, one.name)
            for one in fields(self)
            if one.name not in OF_STORES_ALONE
        }
        named = {k: dict(v) if isinstance(v, Mapping) else v for k, v in own.items()}
        return {**place, "taxonomy": None if taxonomy is None else str(taxonomy), **named}

    def store_settings(self, batch_id: str, judge_id: str | None) -> dict[str, Any]:
        """Return everything it takes to ask a store for the same report, as plain data."""
        common = self.settings({}, None)
        left_out = (*OF_FILES_ALONE, "taxonomy")
        return {
            "batch": batch_id,
            "judge": judge_id,
            "design": self.design,
            "workflow": self.workflow,
            **{name: value for name, value in common.items() if name not in left_out},
        }


def options_of(settings: Mapping[str, Any]) -> ReportOptions:
    """Return the options that a report was made with.

    Raises
    ------
    InputError
        If the settings are not those of a report.
    """
    of_store = "batch" in settings
    known = {**OF_FILES_ALONE, **settings} if of_store else settings
    asked = [one.name for one in fields(ReportOptions)]
    try:
        return ReportOptions(
            **{
                name: known[SETTING.get(name, name)]
                for name in asked
                if of_store or name not in OF_STORES_ALONE
            }
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"the settings of the report lack {error}") from error


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(f"--timezone: {name!r:.80} is no zone such as Europe/Berlin") from error


def _moments(text: str, option: str, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return the first moment of what a text names, and the one after its last."""
    try:
        if _WEEK.fullmatch(text):
            day, days = date.fromisoformat(f"{text}-1"), 7
        elif len(text) == len("2026-11-02"):
            day, days = date.fromisoformat(text), 1
        else:
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=zone)
            return moment.astimezone(UTC), moment.astimezone(UTC)
        first, after = (
            datetime.combine(d, time(), tzinfo=zone).astimezone(UTC)
            for d in (day, day + timedelta(days=days))
        )
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{option}: {text!r:.80} is no day (2026-11-02), ISO week (2026-W45) or time"
        ) from error
    return first, after


def literal(rate: AgentSuccessRate) -> Estimate:
    """Return the formula as printed."""
    return Estimate(
        value=rate.asr_literal,
        interval=None,
        n=rate.asr.n,
        method=LITERAL,
        confidence_level=rate.asr.confidence_level,
    )


def classes(
    shares: Sequence[Estimate], taxonomy: Taxonomy, targets: Mapping[str, float]
) -> tuple[OutcomeShare, ...]:
    """Return the share of every class with its credit and its target."""
    titles = {c.name: c.title for c in taxonomy.classes}
    return tuple(
        OutcomeShare(
            outcome=name,
            title=titles[name],
            credit=taxonomy.credit[name],
            share=share,
            target=targets.get(name),
        )
        for name, share in zip(OUTCOMES, shares, strict=True)
    )


def change_of_weeks(runs: RunCounts, options: ReportOptions) -> Change | None:
    """Compare the last week with the one before it; None where that has no runs."""
    labels = runs.labels("week")
    if len(labels.seen) < 2:
        return None
    before, after = labels.seen[-2:]
    if calendar(before, after) != (before, after):
        return None
    found = compare_runs(
        runs.where(labels.of(before)),
        runs.where(labels.of(after)),
        paired=runs.task is not None,
        **options.resampling(4),
    )
    return change_of(found, later=after, earlier=before)


def change_of(found: Comparison, *, later: str, earlier: str) -> Change:
    """Return a comparison as what the report says of it."""
    return Change(
        later=later,
        earlier=earlier,
        before=found.before.asr,
        after=found.after.asr,
        asr=found.asr,
        classes=found.class_changes,
        n_pairs=found.n_pairs,
    )


def other_tables(taxonomy: Taxonomy) -> dict[str, tuple[float, ...]]:
    """Return the tables of credit for the line of sensitivity."""
    own = tuple(taxonomy.credit[name] for name in OUTCOMES)
    place = OUTCOMES.index("partial_plus")
    tables = {name: (*own[:place], partial, *own[place + 1 :]) for name, partial in PARTIAL.items()}
    default = tuple(default_taxonomy().credit[name] for name in OUTCOMES)
    if default != own:
        tables[DEFAULT_WEIGHTS] = default
    return tables


def table_in_words(name: str, credit: Sequence[float]) -> str:
    """Return what a table is, for a reader.

    Examples
    --------
    >>> table_in_words("partial_30", (1, 0.3, 0, 0, 0))
    'partial credit 0.3'
    """
    if name in PARTIAL:
        return f"partial credit {PARTIAL[name]:g}"
    return f"default weights ({credit_in_words(credit)})"


def credit_in_words(credit: Sequence[float]) -> str:
    """Return a table of credit as text."""
    return " / ".join(f"{c:g}" for c in credit)
