"""The success-rate report as an object, its options, and the parts shared by all sources."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from calibration.analyses.fingerprint import package_version
from calibration.analyses.success_rate.evaluation import EvaluationCheck
from calibration.errors import InputError
from calibration.files import read_text, real_path, unique_keys
from calibration.judge_calibration.post_stratification import Estimand
from calibration.judge_calibration.samples import Design
from calibration.statistics.estimate import Estimate
from calibration.success_rate.comparison import ClassChange, Difference
from calibration.success_rate.pass_at_k import PassAtK
from calibration.success_rate.rate import ASR
from calibration.success_rate.resampling import Interval
from calibration.success_rate.trend import MixShift, WeeklySeries
from calibration.success_rate.trials import SuccessByLength
from calibration.tables.reading import (
    MissingOutcome,
    Reading,
    ReadingOptions,
    reading_from_settings,
)
from calibration.taxonomy import CreditTable, Taxonomy, default_credits
from calibration.text import first_day

PREVIOUS = "previous"
NO_END = "a window without --to has no length, so none before it is compared"
NONE_BEFORE = "the window before, from {} to {}, holds no {} to compare with"

# Where the outcomes behind a rate come from.
Outcomes = Literal["taken as given", "corrected for judge error", "human labels"]

# Settings that are locations; they do not change a report.
PLACES = ("files", "postgres", "table", "spark", "taxonomy")

SHOWN_RUNS = 20
DEFAULT_WEIGHTS = "default_weights"
# Of a larger file, the size and the counts are its identity.
MOST_HASHED = 16_000_000

PARTIAL = {"partial_30": 0.3, "partial_40": 0.4, "partial_50": 0.5}

# Multiples of each ceiling at which the rate is shown beside the reported one.
CEILING_FACTORS = (0.5, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeShare:
    """One class: its share of the runs, what a run of it earns, and the share aimed at."""

    outcome: str
    title: str
    credit: float
    share: Estimate
    target: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalLine:
    """What the rate, or the share of a class, should reach, and how far it is from that.

    `gap` is the estimate less the target. `chance` of being at or above the target: the share of
    the resamples behind the interval, or what the reference distribution of the interval implies,
    as `method` says; `status` says why there is none.
    """

    name: str
    title: str
    target: float
    estimate: Estimate
    gap: float | None
    reached: bool | None
    chance: float | None
    method: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The rate and the classes of two sets of runs, `later` against `earlier` (both in words)."""

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

    `per_success` is all known costs over the complete runs with a cost; `of_ceiling` are
    P50, P90 and P99 of the cost as a multiple of the ceiling of the run, all units together.
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
    """One workflow, model, agent version, harness or tag; `name` is None for runs without one."""

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
class AtOtherCeilings:
    """The rate with every ceiling multiplied by a factor; `workflow` is None for all together."""

    factor: float
    workflow: str | None
    asr: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItem:
    """One run to review, with the rationales and the quotes of its reviewers."""

    trace_id: str
    workflow: str
    week: str | None = None
    model: str | None = None
    cost_usd: float | None = None
    reasons: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkList:
    """The runs of one class to review: how many, in each ISO week, the first of them."""

    outcome: str
    goes_to: str
    n: int
    by_week: tuple[tuple[str, int], ...] = ()
    first: tuple[WorkItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One monitoring signal, over all runs and for each ISO week.

    `unit` is ``share``, ``score`` (-1 to 1), ``usd`` or ``s``.
    """

    key: str
    name: str
    unit: str
    over_all: Estimate
    by_week: tuple[tuple[str, Estimate], ...] = ()

    @property
    def recorded(self) -> bool:
        """Whether any run records the signal."""
        return self.over_all.value is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictWeek:
    """One week's verdicts of a judge, and their distance to the weeks before."""

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
    """Repeated trials of the tasks of one agent (model and version); agents are never pooled.

    `source` says what the figures are from: the labels, the verdicts of a judge after correction,
    or the outcomes that files give; it is one of them. `n_tasks` and `most_trials` count trials
    without label or verdict too; each k rests on tasks with k trials.
    """

    agent: str
    source: str
    n_tasks: int
    most_trials: int
    points: tuple[PassAtK, ...]


OF_REFERENCE = "traces of the reference set: for practice and examinations only"
UNDATED = "traces that do not say when they were started: in no window"
PERTURBED_ARMS = "runs of perturbed arms, with or without labels"
LATER = "traces that came after the draw"
# What may be left out without a word before the rate: it does not depend on the outcome.
HARMLESS = frozenset({OF_REFERENCE, UNDATED, PERTURBED_ARMS, LATER})


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRows:
    """Rows that are not in the numbers, why, and the first of them."""

    reason: str
    n: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRates:
    """The rates of a store: uncorrected, human-only, corrected, and its check by two bootstraps.

    `one_phase` is the corrected rate without the errors of reviewers, where `corrected` carries
    them.
    """

    judge_raw: Estimate | None
    human_only: Estimate
    corrected: Estimate
    corrected_gross: Estimate
    two_source: Estimate | None = None
    one_phase: Estimate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One input: a file with its size and SHA-256, or a store."""

    name: str
    size: int | None = None
    sha256: str | None = None


def source_file(path: Path) -> SourceFile:
    """Return the name, size and SHA-256 of a file; of one above 16 MB no SHA-256."""
    content = real_path(path)
    size = content.stat().st_size
    if size > MOST_HASHED:
        return SourceFile(name=str(path), size=size)
    with content.open("rb") as stream:
        return SourceFile(
            name=str(path), size=size, sha256=hashlib.file_digest(stream, "sha256").hexdigest()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """All that it takes to make the report again.

    `fingerprint` covers inputs, taxonomy, settings and version together.
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
class SuccessRateReport:
    """Everything the report says about one set of runs.

    Parameters
    ----------
    kind, target : str
        What the headline is, in words, and what it estimates, in one sentence.
    estimand : {"process", "these_runs"}
        Whether the rate is one of runs like these, or of these runs themselves.
    first, last : str or None
        ISO weeks that the runs lie in.
    asr_range : tuple of float
        ASR with every missing cost at twice the ceiling, and with every one within it.
    marks : tuple of str
        Printed before everything else: simulated data, reference traces by force.
    own_credit : mapping of str to mapping of str to float
        Workflows whose runs earn other credit, with the classes in question.
    outcomes : {"taken as given", "corrected for judge error", "human labels"}
        Where the outcomes behind the headline come from.
    given_by : str
        The judge of a store whose outcomes are taken as given; empty elsewhere.
    why_no_change : str
        Why a window has no `change` since the one before it; empty elsewhere.
    basis : str
        What identity, weeks, changes, groups and work lists rest on, if on less than the headline.
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
    classes: tuple[OutcomeShare, ...]
    cost: CostPanel
    weekly: WeeklySeries | None
    by_workflow: tuple[RateGroup, ...]
    by_model: tuple[RateGroup, ...]
    by_version: tuple[RateGroup, ...]
    by_harness: tuple[RateGroup, ...]
    goals: tuple[GoalLine, ...]
    by_length: tuple[SuccessByLength, ...]
    sensitivity: tuple[AtOtherWeights, ...]
    at_ceilings: tuple[AtOtherCeilings, ...]
    signals: tuple[Signal, ...]
    latency: Latency | None
    origin: Origin
    change: Change | None = None
    why_no_change: str = ""
    by_tag: tuple[RateGroup, ...] = ()
    work_lists: tuple[WorkList, ...] = ()
    set_aside: tuple[LeftOutRows, ...] = ()
    verdict_mix: VerdictMix | None = None
    tags_left_out: int = 0
    tag_meanings: Mapping[str, str] = field(default_factory=dict)
    judged: JudgedRates | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    basis: str = ""
    passes: tuple[Passes, ...] = ()
    estimand: Estimand = "process"
    evaluation: tuple[EvaluationCheck, ...] = ()
    own_credit: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    outcomes: Outcomes = "taken as given"
    given_by: str = ""
    details: Mapping[str, object] = field(default_factory=dict)
    reading: Reading | None = None
    missing_outcome: MissingOutcome | None = None


# Settings that a report on a store lacks.
OF_FILES_ALONE: Mapping[str, Any] = {
    "columns": {},
    "ceilings": {},
    "any_workflow": True,
    "stratify": False,
    "force": False,
}

# Settings that a report on files lacks, and options with another name in settings.
OF_STORES_ALONE = ("batch_id", "judge_id", "as_given", "design", "estimand", "workflow")

# Options that are no setting unless they are given.
UNSAID: tuple[tuple[str, Any], ...] = (
    ("context_window", None),
    ("credit", {}),
    ("as_given", False),
)

SETTING = {
    "since": "from", "until": "to", "n_resamples": "resamples", "batch_id": "batch",
    "judge_id": "judge",
}  # fmt: skip

# Numbers of a saved report that are verified; sums in another order may differ in their last
# digits.
VERIFIED = ("asr", "asr_gross", "asr_literal", "asr_without_abandoned", "pass_rate")

TOLERANCE = 1e-9

# The way in which runs of files are counted and drawn; 1 is that of reports without a number.
COUNTING, COUNTED_BY = "counting", 4
SHORTEST, MOST_FILE = 8, 50_000_000
_WEEK = re.compile(r"\d{4}-W\d{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """Options of a report: which runs, how they are read, and how they are resampled.

    `since`, `until` : first and last day (``2026-11-02``), ISO week (``2026-W45``) or moment.
    `reading` : what the user said of the tables: columns, words, scales, limits.
    `compare_to` : ``"previous"``, a file, or None for no comparison.
    `ceilings`, `credit` : ceilings per unit in USD, and credit of classes, instead of those of the
    taxonomy.
    `any_workflow` : count workflows that the taxonomy does not list, without a ceiling.
    `strict_cost` : refuse runs without a cost. `force` : include reference traces, with a mark.
    `stratify` : resample within workflows. `pooled` : weight the weeks of a rolling mean by runs.
    `targets` : target of the rate (``asr``) and of the shares of classes.
    `context_window` : tokens that the context of a run may hold, for runs that state none.
    `batch_id`, `judge_id`, `workflow` : None: newest probability sample, only judge, all workflows.
    `as_given` : take the outcomes of `judge_id`, which came with the runs of a store, as given.
    `design`, `estimand` : of the labelled traces in a store, as in `calibrate`.
    """

    since: str | None = None
    until: str | None = None
    timezone: str = "UTC"
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    compare_to: str | None = PREVIOUS
    ceilings: Mapping[str, float] = field(default_factory=dict)
    credit: Mapping[str, float] = field(default_factory=dict)
    any_workflow: bool = True
    strict_cost: bool = False
    stratify: bool = False
    pooled: bool = False
    targets: Mapping[str, float] = field(default_factory=dict)
    context_window: int | None = None
    force: bool = False
    batch_id: str | None = None
    judge_id: str | None = None
    as_given: bool = False
    design: Design = "production"
    estimand: Estimand = "process"
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
        """First moment, and the one just after the last, in UTC; InputError if there is none."""
        zone = _zone(self.timezone)
        since = None if self.since is None else _moments(self.since, "--from", zone)[0]
        until = None if self.until is None else _moments(self.until, "--to", zone)[1]
        if since is not None and until is not None and since >= until:
            raise InputError(f"--from {self.since} is not before --to {self.until}")
        return since, until

    @property
    def window_before(self) -> tuple[datetime, datetime] | None:
        """The preceding window of equal length; None for runs without a start or an end."""
        since, until = self.window
        if since is None or until is None:
            return None
        return since - (until - since), since

    def none_before(self, what: str) -> str:
        """Say why a window is compared with none before it, which has no `what`; or nothing."""
        if self.compare_to != PREVIOUS or self.since is None:
            return ""
        before = self.window_before
        if before is None:
            return NO_END
        zone = _zone(self.timezone)
        first, end = (moment.astimezone(zone) for moment in before)
        last = end - timedelta(microseconds=1)
        return NONE_BEFORE.format(f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}", what)

    @property
    def window_words(self) -> str:
        """The requested runs, in words."""
        if self.since is None and self.until is None:
            return "these runs"
        if self.since == self.until:
            return str(self.since)
        return f"{self.since or 'the start'} to {self.until or 'the end'}"

    def resampling(self, part: int) -> dict[str, Any]:
        """Return the resampling options of one part; each part has its own random generator."""
        return {
            "rng": np.random.default_rng([self.seed, part]),
            "n_resamples": self.n_resamples,
            "confidence_level": self.confidence_level,
            "interval": self.interval,
        }

    def settings(self, place: Mapping[str, Any], taxonomy: Path | None) -> dict[str, Any]:
        """Return all options as plain data; `place` is the source that was read."""
        own = {
            SETTING.get(one.name, one.name): getattr(self, one.name)
            for one in fields(self)
            if one.name not in OF_STORES_ALONE and (one.name, getattr(self, one.name)) not in UNSAID
        }
        del own["reading"]
        own |= self.reading.settings()
        named = {k: dict(v) if isinstance(v, Mapping) else v for k, v in own.items()}
        return {**place, "taxonomy": None if taxonomy is None else str(taxonomy), **named}

    def check_targets(self, taxonomy: Taxonomy) -> None:
        """Refuse a target for an unknown class by an InputError that names it."""
        known = (ASR, *taxonomy.names)
        for name in self.targets:
            if name not in known:
                raise InputError(f"--target: {name!r:.80} is not one of {', '.join(known)}")

    def given_settings(self) -> dict[str, Any]:
        """Return the options that only a report on given outcomes of a store has."""
        return {SETTING.get(name, name): getattr(self, name) for name in OF_STORES_ALONE}

    def store_settings(self, batch_id: str, judge_id: str | None) -> dict[str, Any]:
        """Return all options that apply to a store as plain data."""
        common = self.settings({}, None)
        left_out = (*OF_FILES_ALONE, "taxonomy")
        return {
            "batch": batch_id,
            "judge": judge_id,
            "design": self.design,
            "estimand": self.estimand,
            "workflow": self.workflow,
            **{name: value for name, value in common.items() if name not in left_out},
        }


def origin_of(
    options: ReportOptions,
    *taxonomies: Taxonomy,
    settings: Mapping[str, object],
    sampling: str,
    judge: str,
    fingerprint: str,
    sources: tuple[SourceFile, ...] = (),
) -> Origin:
    """Return the origin of a report; differing taxonomies of two sides are both named."""
    return Origin(
        sources=sources,
        settings=settings,
        sampling=sampling,
        judge=judge,
        taxonomy_version=" and ".join(dict.fromkeys(one.version for one in taxonomies)),
        taxonomy_fingerprint=" ".join(dict.fromkeys(one.fingerprint for one in taxonomies)),
        seed=options.seed,
        n_resamples=options.n_resamples,
        confidence_level=options.confidence_level,
        package_version=package_version(),
        fingerprint=fingerprint,
    )


def repetition(origin: Origin) -> str:
    """Return what a report is made again by, in words."""
    return f"seed {origin.seed} and the fingerprint below"


def options_of(settings: Mapping[str, Any]) -> ReportOptions:
    """Return the options of a saved report, refusing settings that lack one."""
    of_store = "batch" in settings
    known = {**dict(UNSAID), **(OF_FILES_ALONE if of_store else {}), **settings}
    asked = [one.name for one in fields(ReportOptions)]
    try:
        return ReportOptions(
            reading=reading_from_settings(known),
            **{
                name: known[SETTING.get(name, name)]
                for name in asked
                if (of_store or name not in OF_STORES_ALONE) and name != "reading"
            },
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"the settings of the report lack {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedReport:
    """A report as printed by `asr report --json`, with the options to make it again."""

    path: Path
    data: Mapping[str, Any]
    options: ReportOptions

    @property
    def settings(self) -> Mapping[str, Any]:
        """The options and the source, as plain data."""
        found: Mapping[str, Any] = self.data["origin"]["settings"]
        return found

    @property
    def of_store(self) -> bool:
        """Whether it was made from a store."""
        return "batch" in self.settings

    @property
    def taxonomy(self) -> Path | None:
        """Its taxonomy file; None for that of the package."""
        named = self.settings.get("taxonomy")
        return None if named is None else Path(named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Fingerprints of a saved report and of its repetition, and their differences, in words."""

    path: Path
    saved: str
    recomputed: str
    differences: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether fingerprint and numbers agree."""
        return not self.differences


def saved_report(named: str, folder: Path) -> SavedReport:
    """Read a saved report by its JSON file, or by its fingerprint in a folder.

    InputError if there is no such report, several differ, or it lacks data to make it again.
    """
    path = Path(named) if Path(named).is_file() else _by_fingerprint(named.lower(), folder)
    data = _json_of(path)
    try:
        for name in VERIFIED:
            for value in (data[name]["value"], *(data[name]["interval"] or ())):
                if isinstance(value, bool) or not isinstance(value, int | float | None):
                    raise TypeError(f"a number, got {value!r:.40}")
        options = options_of(data["origin"]["settings"])
        str(data["fingerprint"])
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: is not a report that can be recomputed; {error}") from error
    return SavedReport(path=path, data=data, options=options)


def _by_fingerprint(given: str, folder: Path) -> Path:
    if len(given) < SHORTEST or set(given) - set("0123456789abcdef"):
        raise InputError(
            f"{given!r:.80} is neither a report nor a fingerprint of {SHORTEST} digits or more"
        )
    found = {}
    for path in sorted(folder.glob("*.json")):
        fingerprint = str(_json_of(path, strict=False).get("fingerprint", ""))
        if fingerprint.startswith(given):
            found[path] = fingerprint
    if not found:
        raise InputError(
            f"no report with the fingerprint {given} in {folder}: save one with "
            "asr report FILE --json > report.json, and pass it"
        )
    if len(set(found.values())) > 1:
        raise InputError(
            f"several reports begin with {given}: {', '.join(map(str, list(found)[:5]))}"
        )
    return next(iter(found))


def _json_of(path: Path, *, strict: bool = True) -> dict[str, Any]:
    try:
        data = json.loads(read_text(path, most=MOST_FILE), object_pairs_hook=unique_keys)
    except (InputError, ValueError, RecursionError) as error:
        if not strict:
            return {}
        what = (
            error
            if isinstance(error, InputError)
            else f"{path}: is not a JSON report ({error!s:.200})"
        )
        raise InputError(str(what)) from error
    if isinstance(data, dict):
        return data
    if strict:
        raise InputError(f"{path}: is not a report")
    return {}


def verify_report(saved: SavedReport, now: SuccessRateReport) -> Verification:
    """Compare a saved report with its repetition."""
    before, after = str(saved.data["fingerprint"]), now.origin.fingerprint
    differences = tuple(_differences(saved.data, now))
    if not differences and before != after:
        differences = ("the settings in the report do not belong to its fingerprint",)
    return Verification(path=saved.path, saved=before, recomputed=after, differences=differences)


def _differences(saved: Mapping[str, Any], now: SuccessRateReport) -> Iterator[str]:
    origin, version = saved["origin"], now.origin.package_version
    if origin.get("version") != version:
        yield f"version: {origin.get('version')!s:.40} then, {version} now"
    taxonomy = origin.get("taxonomy") or {}
    if taxonomy.get("fingerprint") != now.origin.taxonomy_fingerprint:
        yield (
            f"taxonomy: {taxonomy.get('version')!s:.40} ({taxonomy.get('fingerprint')!s:.16}) "
            f"then, {now.origin.taxonomy_version} ({now.origin.taxonomy_fingerprint[:16]}) now"
        )
    sources = {s.get("name"): s for s in origin.get("sources") or []}
    for source in now.origin.sources:
        old = sources.get(source.name)
        if old is not None and (old.get("size"), old.get("sha256")) != (source.size, source.sha256):
            yield f"inputs: {source.name} has changed"
    details = saved.get("details") or {}
    inputs = [
        f"inputs: {what} are not the same ({saved.get('n')} then, {now.n} now)"
        for key, what in (
            ("inputs", "the runs"),
            ("earlier_inputs", "the runs it is compared with"),
        )
        if details.get(key) != now.details.get(key)
    ]
    numbers = [
        line
        for name in VERIFIED
        for line in _differing_numbers(name, saved[name], getattr(now, name))
    ]
    then, made = details.get(COUNTING, 1), now.details.get(COUNTING, 1)
    if then != made and (inputs or numbers):
        # Digests of counts made in different ways are no evidence on the runs.
        yield (
            f"counting: way {then!s:.20} of counting and drawing runs then, {made} now: "
            "values stay, limits move within their simulation error; verify it with the release "
            "that made it, or make the report again"
        )
    else:
        yield from inputs
    yield from numbers


def _differing_numbers(name: str, then: Mapping[str, Any], now: Estimate) -> Iterator[str]:
    ends, limits = then.get("interval") or (None, None), now.interval or (None, None)
    for what, old, new in (
        (name, then.get("value"), now.value),
        (f"{name}, lower limit", ends[0], limits[0]),
        (f"{name}, upper limit", ends[1], limits[1]),
    ):
        if old is not None and new is not None and abs(old - new) <= TOLERANCE:
            continue
        if old != new:
            yield f"{what}: {old!s:.24} then, {new!s:.24} now"


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(
            f"--timezone: {name!r:.80} is not a time zone such as Europe/Berlin"
        ) from error


def _moments(text: str, option: str, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return the first moment of the named period, and the one after its last."""
    try:
        if _WEEK.fullmatch(text):
            day, days = first_day(text), 7
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
            f"{option}: {text!r:.80} is not a day (2026-11-02), ISO week (2026-W45) or time"
        ) from error
    return first, after


def other_tables(taxonomy: Taxonomy) -> dict[str, CreditTable]:
    """Return the credit tables of the sensitivity analysis, each for all workflows."""
    own, places = taxonomy.credit_table, [taxonomy.place(n) for n in taxonomy.acceptable[1:]]
    tables = {}
    if len(places) == 1:  # what several partial classes would be worth is not one number
        for name, worth in PARTIAL.items():
            tables[name] = own.mapped(partial(_with_credit, places, worth))
    default = CreditTable(credit=default_credits(taxonomy))
    if default != own:
        tables[DEFAULT_WEIGHTS] = default
    return tables


def _with_credit(
    places: Sequence[int], worth: float, table: tuple[float, ...]
) -> tuple[float, ...]:
    return tuple(worth if place in places else own for place, own in enumerate(table))


def table_in_words(name: str, table: CreditTable) -> str:
    """Return the name of a credit table for a reader."""
    if name in PARTIAL:
        return f"partial credit {PARTIAL[name]:g}"
    return f"default weights ({credit_in_words(table.credit)})"


def credit_in_words(credit: Sequence[float]) -> str:
    """Return a credit table as text."""
    return " / ".join(f"{c:g}" for c in credit)
