"""Run the estimators on one labelled sample and decide which may be used."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.judge_calibration.bayesian import bayesian, inverted_shares
from calibration.judge_calibration.confusion_inversion import (
    Inversion,
    bootstrap_inversion,
    inversion_refusals,
    invert,
    lee,
    share_warnings,
)
from calibration.judge_calibration.post_stratification import (
    FEW_LABELS,
    Estimand,
    PostStratified,
    bootstrap_post_stratified,
    class_shares,
    post_stratified,
    promised,
)
from calibration.judge_calibration.prediction_powered import (
    class_proxies,
    ppi_plus_plus,
    ppi_shares,
    score_proxies,
    score_sums,
)
from calibration.judge_calibration.reviewer_error import (
    OVERLAP_MIN,
    TwoPhase,
    two_phase,
    two_phase_shares,
)
from calibration.judge_calibration.samples import (
    ESTIMATORS,
    HEADLINE,
    PROBABILITY_SAMPLE_MIN,
    Confusion,
    Design,
    JudgeQuality,
    LabelledSample,
    Notice,
    ProductionRuns,
    ProductionSums,
    confusion,
    judge_quality,
    judge_raw,
    judge_shares,
    production_sums,
    production_sums_from_counts,
    tasks_of,
    validated_credit,
    validated_human,
    with_enough_labels,
)
from calibration.judge_calibration.strata import Gain, Strata, effective_gain
from calibration.statistics.estimate import (
    OK,
    Estimate,
    FloatArray,
    IntArray,
    cluster_indices,
    not_estimable,
    provisional,
    validated_codes,
)
from calibration.statistics.intervals import NO_VARIATION, two_sided_t, two_sided_z
from calibration.statistics.means import human_only

NO_LABELLED_COSTS = (
    "the labelled traces have no costs: give them, or read the rate before cost penalty"
)

__all__ = [
    "ESTIMATORS",
    "HEADLINE",
    "Calibration",
    "Design",
    "LabelledSample",
    "NetGross",
    "Notice",
    "calibrate",
    "calibrate_tables",
]

# The overlap of a store is drawn; that of files is so only where the user says it.
NOT_RANDOM = "the traces with two labels are not known to be a random part of the labelled ones"

METHOD = "inversion minus post-stratification"
PRODUCTION_LABELS_LEAD = 100

# Estimators that know the mean of these runs themselves.
OF_THESE_RUNS = ("post_stratified", "human_only", "judge_raw")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetGross:
    """An estimate with cost penalties (net) and without (gross)."""

    net: Estimate
    gross: Estimate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    """ASR corrected for judge error, with the diagnostics of the correction.

    `headline` : estimator of the headline, None when it is refused. Of production labels it is
    `two_phase` where a random overlap of them is adjudicated, otherwise `post_stratified`, which is
    then provisional: its interval leaves out the errors of reviewers.
    `estimates` : by name in `ESTIMATORS`; a refused one has no value unless it was forced.
    `class_shares` : of production, by the same estimators.
    `inversion`, `post_stratification` : diagnostics, present also when refused.
    `two_phase` : the rate with the errors of reviewers (net); None where no trace has two labels.
    `gain` : see `effective_gain` (net); None where the labels are no sample of production.
    `power_tuning` : factor of `ppi_plus_plus` (net), None when it was not run.
    `posterior_size` : effective number of draws of `bayesian` (net), None when it was not run.
    """

    design: Design
    headline: str | None
    estimates: Mapping[str, NetGross]
    class_shares: Mapping[str, tuple[Estimate, ...]]
    judge: JudgeQuality
    inversion: Inversion
    inversion_gross: Inversion
    post_stratification: PostStratified
    post_stratification_gross: PostStratified
    production: ProductionSums
    production_gross: ProductionSums
    two_phase: TwoPhase | None
    gain: Estimate | None
    power_tuning: float | None
    posterior_size: float | None
    confusion: Confusion
    n_labels: int
    n_production: int
    refusals: tuple[Notice, ...]
    warnings: tuple[Notice, ...]
    confidence_level: float

    @property
    def headline_estimate(self) -> NetGross | None:
        """The estimate of the headline, or None."""
        return None if self.headline is None else self.estimates[self.headline]

    @property
    def headline_warnings(self) -> tuple[Notice, ...]:
        """The warnings of the headline, and of the estimate that it corrects for reviewers."""
        of = (self.headline, HEADLINE[self.design]) if self.headline else ()
        return tuple(notice for notice in self.warnings if notice.estimator in of)

    @property
    def variance_parts(self) -> dict[str, float] | None:
        """Squared standard error of the headline (net) by source; None without one.

        ``production``: runs are a sample. ``labels``: the errors of the judge are known from the
        labelled traces alone. ``reviewers``: their errors are known from the overlap alone.
        """
        head, found = self.headline_estimate, self.two_phase
        if head is None or head.net.se is None or head.net.status == NO_VARIATION:
            return None
        whole = head.net.se**2
        if self.headline == "inversion":
            labels = min(whole, self.inversion.variance_reference)
            return {"production": whole - labels, "labels": labels}
        if self.includes_reviewers and found is not None and found.variance_reviewers is not None:
            production = found.variance_production or 0.0
            labels = max(0.0, whole - production - found.variance_reviewers)
            return {
                "production": production,
                "labels": labels,
                "reviewers": found.variance_reviewers,
            }
        labels = self.post_stratification.variance_labels or 0.0
        return {"production": max(0.0, whole - labels), "labels": labels}

    @property
    def variance_sources(self) -> dict[str, float] | None:
        """Squared standard error of the headline (net) by source, as it builds up; None without.

        ``human_sampling``: of the labels alone, which are a sample of the runs. ``judge``: what its
        verdicts take off that, below zero (or add): the labels then need to show its errors only.
        ``production`` and ``reviewers``: as in `variance_parts`. The sources add up to the square.
        With a reference set no labels are of production: ``judge`` is what its errors there leave
        open.

        Examples
        --------
        Of 20 labelled runs with each verdict 18 are as the verdict says. The labels alone have a
        variance of .25 / 39; within a verdict it is .09, so the judge takes most of it off:

        >>> from calibration.judge_calibration.samples import LabelledSample
        >>> labelled = LabelledSample(
        ...     human=np.eye(2)[[0] * 18 + [1] * 2 + [0] * 2 + [1] * 18],
        ...     verdicts=np.repeat([0, 1], 20),
        ... )
        >>> found = calibrate(
        ...     labelled, production_verdicts=np.repeat([0, 1], 500), production_penalties=None,
        ...     credit=[1.0, 0.0], design="production",
        ... )
        >>> {name: round(part, 4) for name, part in found.variance_sources.items()}
        {'human_sampling': 0.0064, 'judge': -0.004, 'production': 0.0002}
        """
        parts = self.variance_parts
        if parts is None:
            return None
        alone = self.estimates["human_only"].net.se if self.design == "production" else None
        sources = {"judge": parts["labels"] - (alone or 0.0) ** 2}
        if alone is not None:
            sources = {"human_sampling": alone**2, **sources}
        return sources | {name: part for name, part in parts.items() if name != "labels"}

    @property
    def includes_reviewers(self) -> bool:
        """Whether the interval of the headline carries the errors of reviewers."""
        return self.headline == "two_phase"


class CalibrationChoices(TypedDict, total=False):
    """Options of `calibrate` and `calibrate_tables`.

    `verdict_names` : for the notices, the classes first.
    `pseudo_count`, `prior` : as in `invert` and `bayesian`.
    `seed` : of the draws of `bayesian` and `bootstrap`; the same seed gives the same numbers.
    `open_disagreements` : labelled traces with disagreeing reviewers and no adjudication; above
    zero every estimate is provisional.
    `overlap_random` : whether the traces with two labels are a random part of the labelled ones.
    `refusals` : found by the caller, for instance a reference set judged by another judge. One that
    names ``inversion`` or ``post_stratified`` holds for all estimators that share its assumption.
    `estimators` : estimators to run; diagnostics are always present.
    `estimand` : ``"process"``, runs like these, or ``"these_runs"``, these runs themselves.
    `force` : give refused estimators their values; their status is still ``not_estimable`` and they
    are never the headline.
    """

    verdict_names: Sequence[str] | None
    pseudo_count: float
    prior: float
    seed: int
    open_disagreements: int
    overlap_random: bool
    refusals: Sequence[Notice]
    estimators: Collection[str]
    force: bool
    estimand: Estimand
    confidence_level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Options that every step needs; ValueError for an unknown design or estimator."""

    design: Design
    verdict_names: Sequence[str] | None = None
    pseudo_count: float = 0.5
    prior: float = 0.2
    seed: int = 0
    open_disagreements: int = 0
    overlap_random: bool = False
    refusals: Sequence[Notice] = ()
    estimators: Collection[str] = ESTIMATORS
    force: bool = False
    estimand: Estimand = "process"
    confidence_level: float = 0.95

    def __post_init__(self) -> None:
        if self.design not in HEADLINE:
            raise ValueError(f"design must be 'production' or 'reference', got {self.design!r}")
        if unknown := set(self.estimators) - set(ESTIMATORS):
            raise ValueError(f"estimators must be among {ESTIMATORS}, got {sorted(unknown)!r}")
        if self.estimand == "these_runs" and self.design != "production":
            raise ValueError("the mean of these runs needs labels drawn from them")

    @property
    def wanted(self) -> Collection[str]:
        """Estimators to run: most are of runs like these alone."""
        if self.estimand == "process":
            return self.estimators
        return [name for name in self.estimators if name in OF_THESE_RUNS]

    def names(self, n_verdicts: int) -> Sequence[str]:
        """Return the names of the verdicts."""
        names = self.verdict_names or [f"class {k}" for k in range(n_verdicts)]
        if len(names) < n_verdicts:
            raise ValueError(f"verdict_names must have {n_verdicts} entries, got {len(names)}")
        return names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One labelled sample and one production, net or gross."""

    labelled: LabelledSample
    human: FloatArray
    crossed: Confusion
    production: ProductionSums
    settings: Settings
    net: bool

    @property
    def population(self) -> ProductionSums:
        """Production; a reference set is added, for the diagnostics only."""
        if self.settings.design == "production":
            return self.production
        runs, added = self.production.runs, self.labelled.verdicts
        own = self.labelled.penalties if self.net else None
        return replace(
            self.production,
            counts=self.production.counts
            + np.bincount(added, minlength=self.production.counts.size),
            runs=ProductionRuns(
                verdicts=np.concatenate([runs.verdicts, added]),
                penalties=np.concatenate(
                    [runs.penalties, np.zeros(added.size) if own is None else own]
                ),
                times=np.concatenate([runs.times, np.ones(added.size)]),
            ),
        )

    @property
    def sampled(self) -> dict[str, Any]:
        """Weights, tasks and confidence level as arguments of the estimators."""
        return {
            "weights": self.labelled.weights,
            "clusters": self.labelled.clusters,
            "confidence_level": self.settings.confidence_level,
        }

    def human_only(self, scores: FloatArray) -> Estimate:
        """Return the mean of the labels alone."""
        these = self.settings.estimand == "these_runs"
        population = self.production.n if these else None
        strata = self.labelled.strata
        # Few tasks in production say as little of tasks like these as few labelled ones.
        most = np.inf if these else tasks_of(None, 0, self.population.runs, shared=False).df()
        return human_only(
            scores, strata=strata, population=population, most_df=most, **self.sampled
        )

    @property
    def unscored(self) -> bool:
        """Whether the labelled traces lack the costs that production has."""
        return self.net and self.labelled.penalties is None and self.production.has_costs


def _lee_shares(case: Case, effects: tuple[float, float]) -> tuple[Estimate, ...]:
    """Return the shares of both classes; the second is one less the first."""
    good = int(np.argmax(case.production.credit))
    share = lee(
        case.crossed.table,
        production_sums_from_counts(case.production.counts, credit=np.eye(2)[good]),
        effects=effects,
        confidence_level=case.settings.confidence_level,
    )
    rest = share
    if share.value is not None:
        limits = None if share.interval is None else (1 - share.interval[1], 1 - share.interval[0])
        rest = replace(share, value=1 - share.value, interval=limits)
    return with_enough_labels((share, rest) if good == 0 else (rest, share), case.human)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Estimates and class shares of one target by estimator, for the estimators that were run."""

    stratified: PostStratified
    inverted: Inversion
    human: Estimate
    gain: Gain
    estimates: dict[str, Estimate]
    shares: dict[str, tuple[Estimate, ...]]
    two_phase: TwoPhase | None = None
    power_tuning: float | None = None
    posterior_size: float | None = None


def run_arms(
    labelled: LabelledSample,
    crossed: Confusion,
    net: ProductionSums,
    gross: ProductionSums,
    settings: Settings,
) -> tuple[Arm, Arm]:
    """Return the estimates net and gross; an estimator has the same random stream for both."""
    human = validated_human(labelled.human)
    if human.shape[1] != net.credit.size:
        raise ValueError(f"human must have {net.credit.size} columns, got {human.shape[1]}")
    arms = []
    for production in (net,) if net is gross else (net, gross):
        case = Case(
            labelled=labelled,
            human=human,
            crossed=crossed,
            production=production,
            settings=settings,
            net=production is net and (net is not gross or labelled.penalties is not None),
        )
        arms.append(_arm(case, np.random.default_rng(settings.seed)))
    return arms[0], arms[-1]


def _arm(case: Case, rng: np.random.Generator) -> Arm:
    labelled, production, settings = case.labelled, case.production, case.settings
    wanted, level = settings.wanted, settings.confidence_level
    for_posterior, for_bootstrap = rng.spawn(2)
    scores, verdicts = labelled.scores(production.tables, net=case.net), labelled.verdicts
    stratified = post_stratified(
        labelled,
        case.population,
        net=case.net,
        estimand=settings.estimand,
        confidence_level=level,
    )
    inverted = invert(
        case.crossed.table,
        production,
        labelled=labelled,
        of_production=settings.design == "production",
        pseudo_count=settings.pseudo_count,
        confidence_level=level,
    )
    human = case.human_only(scores)
    found = {
        "post_stratified": stratified.estimate,
        "inversion": inverted.estimate,
        "human_only": human,
        "judge_raw": judge_raw(production, confidence_level=level),
    }
    shares = {"judge_raw": judge_shares(production)}
    tuning = posterior_size = phases = None
    overlap = labelled.overlap is not None and settings.design == "production"
    if "two_phase" in wanted and overlap:
        phases = two_phase(labelled, production, net=case.net, confidence_level=level)
        found["two_phase"] = phases.estimate
        shares["two_phase"] = two_phase_shares(labelled, production, confidence_level=level)
    if "post_stratified" in wanted:
        shares["post_stratified"] = class_shares(
            labelled, case.population, estimand=settings.estimand, confidence_level=level
        )
    if "human_only" in wanted:
        alone = map(case.human_only, case.human.T)
        shares["human_only"] = with_enough_labels(alone, case.human)
    if "ppi_plus_plus" in wanted:
        found["ppi_plus_plus"], tuning, shares["ppi_plus_plus"] = _power_tuned(case, scores)
    if not {"bayesian", "inversion"}.isdisjoint(wanted):
        posterior = bayesian(
            case.crossed.table,
            production,
            rng=for_posterior,
            effects=inverted.effects,
            prior=settings.prior,
            confidence_level=level,
        )
        found["bayesian"], shares["bayesian"] = posterior.estimate, posterior.shares
        shares["inversion"] = inverted_shares(inverted, posterior)
        posterior_size = posterior.effective_size
    if "bootstrap" in wanted:
        found["bootstrap"], shares["bootstrap"] = _bootstrap(
            case, scores, stratified, for_bootstrap
        )
    if "lee" in wanted and production.credit.size == 2:
        found["lee"] = lee(
            case.crossed.table, production, effects=inverted.effects, confidence_level=level
        )
        shares["lee"] = _lee_shares(case, inverted.effects)
    return Arm(
        stratified=stratified,
        inverted=inverted,
        human=human,
        gain=effective_gain(scores, verdicts, strata=stratified.strata, **case.sampled),
        estimates={
            name: _scored(found[name], name, case)
            for name in ESTIMATORS
            if name in found and name in wanted
        },
        shares={name: shares[name] for name in ESTIMATORS if name in shares and name in wanted},
        two_phase=phases,
        power_tuning=tuning,
        posterior_size=posterior_size,
    )


def _scored(estimate: Estimate, name: str, case: Case) -> Estimate:
    """Return the estimate, or a refusal when it needs costs that the labelled traces lack."""
    if not case.unscored or name in ("inversion", "bayesian", "lee", "judge_raw", "bootstrap"):
        return estimate
    return not_estimable(NO_LABELLED_COSTS, method=estimate.method, n=estimate.n)


def _power_tuned(
    case: Case, scores: FloatArray
) -> tuple[Estimate, float | None, tuple[Estimate, ...]]:
    """Return the rate by PPI++, its power-tuning factor, and the class shares."""
    verdicts = case.labelled.verdicts
    inside = case.settings.design == "production"
    found = ppi_plus_plus(
        scores,
        score_proxies(
            verdicts,
            case.labelled.penalties if case.net else None,
            case.production,
            case.labelled.table,
        ),
        score_sums(case.production),
        labels_in_production=inside,
        **case.sampled,
    )
    shares = ppi_shares(
        case.human,
        verdicts,
        case.production,
        class_proxies(case.production.counts, case.human.shape[1]),
        labels_in_production=inside,
        **case.sampled,
    )
    return found.estimate, found.tuning, shares


def _bootstrap(
    case: Case, scores: FloatArray, stratified: PostStratified, rng: np.random.Generator
) -> tuple[Estimate, tuple[Estimate, ...]]:
    """Bootstrap the default of the design: post-stratification, or inversion."""
    if case.settings.design == "reference":
        found = bootstrap_inversion(
            case.crossed.table,
            case.production,
            rng=rng,
            labelled=case.labelled,
            pseudo_count=case.settings.pseudo_count,
            confidence_level=case.settings.confidence_level,
        )
        return found.estimate, with_enough_labels(found.shares, case.human)
    of_production = None
    if stratified.estimate.ok:
        scores, of_production = promised(
            case.labelled, case.population, strata=stratified.strata, net=case.net
        )
    estimate, *shares = bootstrap_post_stratified(
        np.column_stack([scores, case.human]),
        case.labelled.verdicts,
        case.population.counts,
        strata=stratified.strata,
        promised=of_production,
        rng=rng,
        **case.sampled,
    )
    return estimate, with_enough_labels(shares, case.human)


def assemble(
    labelled: LabelledSample, net: ProductionSums, gross: ProductionSums, settings: Settings
) -> Calibration:
    """Return every estimate, net and gross, with the notices on each."""
    if labelled.overlap is not None and labelled.overlap.all():
        settings = replace(settings, overlap_random=True)
    level = settings.confidence_level
    crossed = confusion(
        labelled.human, labelled.verdicts, n_verdicts=net.counts.size, weights=labelled.weights
    )
    of_net, of_gross = run_arms(labelled, crossed, net, gross, settings)
    refusals = _refusals(crossed, of_net, net, settings)
    estimates = {
        name: NetGross(
            net=_decided(name, of_net.estimates[name], refusals, settings),
            gross=_decided(name, of_gross.estimates[name], refusals, settings),
        )
        for name in of_net.estimates
    }
    headline = _headline(estimates, refusals, settings)
    if headline == "post_stratified":
        why = without_reviewers(of_net.two_phase, settings)
        pair = estimates[headline]
        estimates[headline] = NetGross(
            net=provisional(pair.net, why), gross=provisional(pair.gross, why)
        )
    return Calibration(
        design=settings.design,
        headline=headline,
        estimates=estimates,
        class_shares={
            name: tuple(_decided(name, share, refusals, settings) for share in several)
            for name, several in of_net.shares.items()
        },
        judge=judge_quality(crossed, confidence_level=level),
        inversion=of_net.inverted,
        inversion_gross=of_gross.inverted,
        post_stratification=of_net.stratified,
        post_stratification_gross=of_gross.stratified,
        production=net,
        production_gross=gross,
        two_phase=None
        if of_net.two_phase is None
        else replace(of_net.two_phase, estimate=estimates["two_phase"].net),
        gain=_decided("post_stratified", of_net.gain.multiplier, refusals, settings)
        if settings.design == "production"
        else None,
        power_tuning=of_net.power_tuning,
        posterior_size=of_net.posterior_size,
        confusion=crossed,
        n_labels=crossed.n,
        n_production=net.n,
        refusals=refusals,
        warnings=_warnings(labelled, net, crossed, of_net, estimates, settings),
        confidence_level=level,
    )


def families(design: str, names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the estimators in `names` that share an assumption, by the one that a refusal names.

    A refusal of `inversion` for its assumption (for instance a reference set of another judge)
    holds for all that carry error rates over; one of `post_stratified` for all that need the
    probability sample. The bootstrap belongs to the default of the design.

    Examples
    --------
    >>> families("reference", ["inversion", "bootstrap", "lee"])
    {'inversion': ('inversion', 'lee', 'bootstrap'), 'post_stratified': ()}
    """
    kin = {
        "inversion": ["inversion", "bayesian", "lee"],
        "post_stratified": ["post_stratified", "two_phase", "ppi_plus_plus"],
    }
    kin["inversion" if design == "reference" else "post_stratified"].append("bootstrap")
    return {head: tuple(name for name in several if name in names) for head, several in kin.items()}


def carried_over(
    notices: Iterable[Notice], kin: Mapping[str, tuple[str, ...]]
) -> tuple[Notice, ...]:
    """Return each notice for every estimator that shares the assumption it refuses."""
    return tuple(
        replace(notice, estimator=name)
        for notice in notices
        for name in kin.get(notice.estimator, (notice.estimator,))
    )


def sample_refusals(
    n_labels: int, *, probability_sample: bool, estimator: str, minimum_labels: int
) -> tuple[Notice, ...]:
    """Return why an estimator that needs a random sample of production may not be used.

    Codes ``no_probability_sample`` and ``few_labels``.
    """
    if not probability_sample:
        return (
            Notice(
                code="no_probability_sample",
                estimator=estimator,
                why="the labelled traces are no probability sample of production",
                mend="label at least 100 traces drawn at random from production",
            ),
        )
    if n_labels < minimum_labels:
        return (
            Notice(
                code="few_labels",
                estimator=estimator,
                why=f"{n_labels} labels, fewer than {minimum_labels}",
                mend="label more traces drawn at random from production",
            ),
        )
    return ()


def precision_warnings(
    estimator: str, estimate: Estimate, *, human_half_width: float | None
) -> tuple[Notice, ...]:
    """Warn when human labels alone give a shorter interval; code ``wider_than_human_only``."""
    half = estimate.half_width
    if half is None or human_half_width is None or half <= human_half_width:
        return ()
    return (
        Notice(
            code="wider_than_human_only",
            estimator=estimator,
            why=f"half-width {half:.3f}; as many human labels of production alone would give "
            f"about {human_half_width:.3f}",
            mend="label production at random, or improve the judge",
        ),
    )


def merge_warnings(
    strata: Strata, labels: Sequence[int], *, names: Sequence[str]
) -> tuple[Notice, ...]:
    """Warn of verdicts merged for want of labels; code ``verdict_merged``."""
    return tuple(
        Notice(
            code="verdict_merged",
            estimator="post_stratified",
            why=f"verdict {names[small]} has {labels[small]} labels and is merged with "
            f"{names[target]}",
            mend=f"label more production traces with verdict {names[small]}",
        )
        for small, target in strata.merged
    )


def floor_warnings(found: PostStratified) -> tuple[Notice, ...]:
    """Warn where limits allow for errors that the labels do not show; code ``few_differing``."""
    if not found.floor:
        return ()
    return (
        Notice(
            code="few_differing",
            estimator="post_stratified",
            why="few labels differ from the verdict: the limits allow for errors not seen",
            mend="label more production traces",
        ),
    )


def _headline(
    estimates: dict[str, NetGross], refusals: tuple[Notice, ...], settings: Settings
) -> str | None:
    name = HEADLINE[settings.design]
    refused = any(notice.estimator == name for notice in refusals)
    if refused or name not in estimates or not estimates[name].net.ok:
        return None
    if settings.open_disagreements or not settings.overlap_random:
        return name
    return "two_phase" if "two_phase" in estimates and estimates["two_phase"].net.ok else name


def without_reviewers(found: TwoPhase | None, settings: Settings) -> str:
    """Return why the interval of the post-stratified rate leaves out the errors of reviewers."""
    why = "no trace is known to have two labels"
    if settings.estimand == "these_runs":
        why = "the two-phase rate is one of runs like these"
    elif found is not None:
        why = f"{found.overlap:,} traces have two labels, fewer than {OVERLAP_MIN}"
        if found.overlap >= OVERLAP_MIN:
            why = NOT_RANDOM
    if settings.open_disagreements:
        why = _still_open(settings.open_disagreements)
    return f"{why}: reviewer error is not in the interval"


def _still_open(n: int) -> str:
    return f"{n} open disagreement{'s' * (n != 1)}"


def _refusals(
    crossed: Confusion, arm: Arm, production: ProductionSums, settings: Settings
) -> tuple[Notice, ...]:
    """Return the refusals of the estimators that were run."""
    kin = families(settings.design, arm.estimates)
    against = inversion_refusals(
        crossed.table,
        arm.inverted,
        credit=production.credit,
        verdict_shares=production.counts / max(1, production.n),
        names=settings.names(production.counts.size),
    )
    found = carried_over(against, kin)
    for estimator, least in (("post_stratified", PROBABILITY_SAMPLE_MIN), ("human_only", 2)):
        against = sample_refusals(
            crossed.n,
            probability_sample=settings.design == "production",
            estimator=estimator,
            minimum_labels=least,
        )
        found += carried_over(against, kin)
    found += carried_over(settings.refusals, kin)
    return tuple(notice for notice in found if notice.estimator in arm.estimates)


def _decided(
    name: str, estimate: Estimate, refusals: tuple[Notice, ...], settings: Settings
) -> Estimate:
    """Return the estimate as it may be shown: refused, provisional, or as it is."""
    against = [notice for notice in refusals if notice.estimator == name]
    if against:
        refused = not_estimable(
            "; ".join(f"{notice.why} ({notice.mend})" for notice in against),
            method=estimate.method,
            n=estimate.n,
            confidence_level=estimate.confidence_level,
        )
        if settings.force and estimate.ok:
            return replace(estimate, status=refused.status)
        return refused
    if settings.open_disagreements and name != "judge_raw" and estimate.status == OK:
        status = f"provisional: {_still_open(settings.open_disagreements)}"
        return replace(estimate, status=status)
    if name == "two_phase" and not settings.overlap_random:
        return provisional(estimate, NOT_RANDOM)
    return estimate


def _warnings(
    labelled: LabelledSample,
    production: ProductionSums,
    crossed: Confusion,
    arm: Arm,
    estimates: dict[str, NetGross],
    settings: Settings,
) -> tuple[Notice, ...]:
    """Return the warnings of the estimators that have a value."""
    names = settings.names(crossed.table.shape[1])
    half = None
    if arm.human.se is not None and arm.human.status != NO_VARIATION:
        # On the scale of the others: its own limits are formed on the logit scale.
        tasks = cluster_indices(labelled.clusters, crossed.n)
        units = crossed.n if tasks is None else int(tasks.max()) + 1
        half = two_sided_t(settings.confidence_level, units - 1) * arm.human.se
    usable = {name for name, pair in estimates.items() if pair.net.ok}
    found: tuple[Notice, ...] = ()
    for name in estimates:
        if name in usable and name not in ("human_only", "judge_raw", "two_phase"):
            found += precision_warnings(name, estimates[name].net, human_half_width=half)
    if "post_stratified" in usable:
        by_verdict = np.bincount(labelled.verdicts, minlength=crossed.table.shape[1]).tolist()
        found += merge_warnings(arm.stratified.strata, by_verdict, names=names)
        found += floor_warnings(arm.stratified)
    if "ppi_plus_plus" in usable and crossed.n < FEW_LABELS:
        found += (
            Notice(
                code="ppi_few_labels",
                estimator="ppi_plus_plus",
                why=f"{crossed.n} labels: below {FEW_LABELS} its 95 % interval covers .91 to .94",
                mend=f"label {FEW_LABELS} traces or more, or read the post-stratified estimate",
            ),
        )
    if "inversion" in usable:
        found += share_warnings(arm.inverted, names=names)
    return found


def calibrate(
    labelled: LabelledSample,
    *,
    production_verdicts: IntArray,
    production_penalties: FloatArray | None,
    production_tasks: NDArray[np.generic] | None = None,
    production_table: IntArray | None = None,
    credit: ArrayLike,
    design: Design,
    n_verdicts: int | None = None,
    **choices: Unpack[CalibrationChoices],
) -> Calibration:
    """Estimate the ASR of production from verdicts and human labels, by every valid estimator.

    With design ``"production"`` the labels must be a probability sample of production and the
    headline is `post_stratified`; with ``"reference"`` the judge's error rates must carry over and
    the headline is `invert`. See those functions for their assumptions.

    Parameters
    ----------
    production_verdicts : int array, shape (n_production,)
        Verdict codes of all judged production traces; for design ``"production"`` the labelled ones
        are among them.
    production_penalties : float array, shape (n_production,), or None
        Cost penalties in [0, 1]; None scores without cost.
    production_tasks : array, shape (n_production,), optional
        Task of each trace where tasks repeat, named as in `labelled.clusters`.
    production_table : int array, shape (n_production,), optional
        Table of credit of each trace, where `credit` has several; `labelled.table` likewise.
    credit : array-like of float, shape (n_classes,) or (n_tables, n_classes)
        Credit of each class in [0, 1], in several tables where workflows have their own.
    design : {"production", "reference"}
        Source of the labelled traces.
    n_verdicts : int, optional
        Default: the larger of n_classes and the largest code + 1.
    **choices
        See `CalibrationChoices`.

    Raises
    ------
    ValueError
        If shapes differ, codes are out of range, an estimator is unknown, or penalties are given
        for one side only.

    Examples
    --------
    >>> labelled = LabelledSample(
    ...     human=np.eye(2)[[0] * 18 + [1] * 2 + [0] * 2 + [1] * 18], verdicts=np.repeat([0, 1], 20)
    ... )
    >>> result = calibrate(
    ...     labelled, production_verdicts=np.repeat([0, 1], [800, 200]), production_penalties=None,
    ...     credit=[1.0, 0.0], design="production",
    ... )
    >>> result.headline, result.estimates["post_stratified"].net.value
    ('post_stratified', 0.74)
    """
    credits = validated_credit(credit)
    codes = validated_codes(labelled.verdicts, n_codes=n_verdicts, name="verdicts")
    produced = validated_codes(production_verdicts, n_codes=n_verdicts, name="production_verdicts")
    if n_verdicts is None:
        largest = max(int(codes.max(initial=-1)), int(produced.max(initial=-1)))
        n_verdicts = max(credits.shape[1], largest + 1)
    if (production_penalties is None) != (labelled.penalties is None) and design == "production":
        raise ValueError("penalties must be given for both labelled and production traces, or none")
    settings = Settings(design=design, **choices)
    net, gross = (
        production_sums(
            produced,
            penalties,
            credit=credits,
            n_verdicts=n_verdicts,
            tasks=production_tasks,
            table=production_table,
        )
        for penalties in (production_penalties, None)
    )
    return assemble(labelled, gross if production_penalties is None else net, gross, settings)


def calibrate_tables(
    table: ArrayLike,
    production_counts: ArrayLike,
    *,
    credit: ArrayLike,
    design: Design,
    **choices: Unpack[CalibrationChoices],
) -> Calibration:
    """Estimate the ASR of production from two tables, without costs: net and gross are equal.

    Parameters
    ----------
    table : array-like of int, shape (n_classes, n_verdicts)
        Labelled traces by human class and verdict.
    production_counts : array-like of int, shape (n_verdicts,)
        Judged production traces; for design ``"production"`` the labelled ones are among them.
    credit, design, **choices
        As in `calibrate`.

    Raises
    ------
    ValueError
        If a table holds anything but counts or the shapes do not fit.

    Examples
    --------
    >>> result = calibrate_tables(
    ...     [[80, 20], [10, 90]], [450, 550], credit=[1.0, 0.0], design="reference", pseudo_count=0
    ... )
    >>> result.headline, result.estimates["inversion"].net.value
    ('inversion', 0.5)
    """
    cells = np.asarray(table)
    if cells.ndim != 2 or not np.issubdtype(cells.dtype, np.integer) or cells.min(initial=0) < 0:
        raise ValueError(f"table must be a two-dimensional table of counts, got {table!r}")
    n_classes, n_verdicts = int(cells.shape[0]), int(cells.shape[1])
    rows, columns = np.divmod(np.repeat(np.arange(cells.size), cells.ravel()), n_verdicts)
    production = production_sums_from_counts(production_counts, credit=credit)
    if (n_classes, n_verdicts) != (production.credit.size, production.counts.size):
        raise ValueError(
            f"table must have shape {(production.credit.size, production.counts.size)!r}, "
            f"got {cells.shape!r}"
        )
    labelled = LabelledSample(human=np.eye(n_classes)[rows], verdicts=columns)
    settings = Settings(design=design, **choices)
    return assemble(labelled, production, production, settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportGap:
    """The reference estimate less the one from production labels.

    An interval of `gap` that holds zero does not show that the rates carry over; it shows how large
    a failure the labels would have missed. `headline` is the design that leads: production from 100
    labels on. The other estimate is shown beside it.
    """

    gap: NetGross
    headline: Literal["production", "reference"]


def transport_gap(by_reference: Calibration, by_production: Calibration) -> TransportGap:
    """Estimate how far the reference set is off for this production.

    Both calibrations are of the same production with the same judge, and their labelled traces are
    distinct. If the judge's error rates given the class carry over, as `invert` assumes, the gap is
    zero. The production labels of `by_production` are part of the production of `by_reference`.

    Returns
    -------
    TransportGap
        ``not_estimable`` where one of the estimates has no standard error. A refused inversion
        still has a gap, however wide.

    Raises
    ------
    ValueError
        If the designs are not as named, or the productions differ.

    Notes
    -----
    Reference labels, production labels and verdicts of production are independent samples, and the
    verdicts enter both estimates:
    Var = Var_reference + Var_labels + Var(a_p[verdict] - m[verdict]) / N,
    with a_p the inverted score and m the mean labelled score of the verdict. The half-width is
    the root of the summed squared half-widths: t for the labels, normal for the others. Where tasks
    of production repeat, the labels and both influences of its runs are summed by task, t.

    References
    ----------
    Fiedler (2026), "Bias and Uncertainty in LLM-as-a-Judge Estimation".
    https://doi.org/10.48550/arXiv.2605.06939

    Examples
    --------
    >>> table, credit = [[80, 20], [10, 90]], [1.0, 0.0]
    >>> by_reference = calibrate_tables(
    ...     table, [450, 550], credit=credit, design="reference", pseudo_count=0,
    ...     estimators=["inversion"],
    ... )
    >>> by_production = calibrate_tables(
    ...     [[40, 8], [5, 47]], [450, 550], credit=credit, design="production",
    ...     estimators=["post_stratified"],
    ... )
    >>> found = transport_gap(by_reference, by_production)
    >>> found.gap.net.value, found.headline
    (0.02, 'production')
    """
    if (by_reference.design, by_production.design) != ("reference", "production"):
        raise ValueError(
            "by_reference and by_production must have these designs, got "
            f"{by_reference.design!r} and {by_production.design!r}"
        )
    if not np.array_equal(by_reference.production.counts, by_production.production.counts):
        raise ValueError(
            "both calibrations must be of one production, got verdict counts "
            f"{by_reference.production.counts.tolist()!r} and "
            f"{by_production.production.counts.tolist()!r}"
        )
    level = by_production.confidence_level
    return TransportGap(
        gap=NetGross(
            net=_gap(
                by_reference.inversion,
                by_production.post_stratification,
                by_production.production,
                level,
            ),
            gross=_gap(
                by_reference.inversion_gross,
                by_production.post_stratification_gross,
                by_production.production_gross,
                level,
            ),
        ),
        headline="production" if by_production.n_labels >= PRODUCTION_LABELS_LEAD else "reference",
    )


def _gap(
    inverted: Inversion,
    stratified: PostStratified,
    production: ProductionSums,
    confidence_level: float,
) -> Estimate:
    direct = stratified.estimate
    if inverted.unclipped is None or direct.value is None:
        why = "one of the two estimates has no value: label production and a reference set"
        return not_estimable(why, method=METHOD, confidence_level=confidence_level)
    value = inverted.unclipped - direct.value
    if stratified.variance_labels is None or direct.df is None:
        why = "the production labels do not vary within the verdicts: label more"
        return not_estimable(why, method=METHOD, confidence_level=confidence_level)
    from_labels, shared = stratified.variance_labels, 0.0
    tasks, residual = stratified.tasks, stratified.residual
    weights = np.array(inverted.level_weights).T
    if tasks is not None and tasks.runs is not None and residual is not None:
        runs = production.runs
        kept = production.kept(runs.penalties, runs.table)
        worth = (weights[:, runs.verdicts] * kept).sum(axis=0) - inverted.unclipped
        from_labels, _ = tasks.variance(-residual.in_labels, worth - residual.in_production)
    else:
        shared = _apart(weights, stratified, production, value)
    z, t = two_sided_z(confidence_level), two_sided_t(confidence_level, direct.df)
    normal = inverted.variance_reference + shared
    reach = float(np.sqrt(z**2 * normal + t**2 * from_labels))
    return Estimate(
        value=value,
        interval=(max(-1.0, value - reach), min(1.0, value + reach)),
        n=direct.n,
        method=METHOD,
        confidence_level=confidence_level,
        se=float(np.sqrt(normal + from_labels)),
    )


def _apart(
    weights: FloatArray, stratified: PostStratified, production: ProductionSums, value: float
) -> float:
    """Return the variance due to single runs of production, which enter both estimates."""
    means = np.array([0.0 if mean is None else mean for mean in stratified.stratum_means])
    squares = (
        np.einsum("sk,uk,suk->", weights, weights, production.products)
        - 2 * float(((weights * production.sums).sum(axis=0) * means).sum())
        + float(production.counts @ means**2)
    )
    n = float(production.counts.sum())
    return max(0.0, float(squares) / n - value**2) / n
