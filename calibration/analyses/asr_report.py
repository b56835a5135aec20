"""The report on the Agent Success Rate as an object, whatever it is shown as."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from calibration.estimates import Estimate
from calibration.metrics.class_changes import ClassChange
from calibration.metrics.differences import Difference
from calibration.metrics.mix_shift import MixShift
from calibration.metrics.pass_at_k import PassAtK
from calibration.metrics.weekly import WeeklySeries


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
class Group:
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
class LeftOut:
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
class Source:
    """One input: a file with its size and SHA-256, or a store."""

    name: str
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """All that it takes to make the report again.

    Parameters
    ----------
    sources : tuple of Source
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

    sources: tuple[Source, ...]
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
    by_tag : tuple of Group
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
    change: Change | None
    cost: CostPanel
    weekly: WeeklySeries | None
    by_workflow: tuple[Group, ...]
    by_model: tuple[Group, ...]
    by_tag: tuple[Group, ...]
    sensitivity: tuple[AtOtherWeights, ...]
    work_lists: tuple[WorkList, ...]
    signals: tuple[Signal, ...]
    latency: Latency | None
    set_aside: tuple[LeftOut, ...]
    origin: Origin
    verdict_mix: VerdictMix | None = None
    tags_left_out: int = 0
    judged: JudgedRates | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    basis: str = ""
    passes: tuple[Passes, ...] = ()
    details: Mapping[str, object] = field(default_factory=dict)
