"""The report on production files: from a table of runs to everything that is said about them."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from calibration.analyses.asr_report import (
    AtOtherWeights,
    Change,
    Origin,
    ProductionReport,
    WorkList,
)
from calibration.analyses.fingerprint import package_version, settings_digest
from calibration.analyses.production_groups import (
    TagGroups,
    cost_panel,
    groups,
    per_success,
    tag_groups,
    work_lists,
    workflow_groups,
)
from calibration.analyses.production_reading import (
    DIGITS,
    ProductionRead,
    left_out,
    read_production,
    said,
)
from calibration.analyses.production_signals import bad_values, latency, signals, verdict_mix
from calibration.analyses.reference_traces import marks
from calibration.analyses.report_options import PLACES, PREVIOUS, ReportOptions
from calibration.analyses.report_parts import change_of, change_of_weeks, classes, literal
from calibration.analyses.weight_tables import credit_in_words, table_in_words
from calibration.errors import InputError
from calibration.metrics.asr import AgentSuccessRate, rate_of_counts
from calibration.metrics.comparison import compare_runs
from calibration.metrics.weekly import WeeklySeries, weekly_series
from calibration.production.places import Place, held, place_of
from calibration.records import OUTCOMES
from calibration.taxonomy import Taxonomy, default_taxonomy

GIVEN = "outcomes taken as given, not calibrated"
NO_JUDGE = "none: the outcomes of the file are taken as given"


def report_on_files(
    paths: Place | Sequence[str],
    *,
    options: ReportOptions | None = None,
    taxonomy: Taxonomy | None = None,
    taxonomy_path: Path | None = None,
) -> ProductionReport:
    """Report the Agent Success Rate of the runs in production files.

    Parameters
    ----------
    paths : sequence of str, or Place
        CSV, JSONL or Parquet files, or patterns of them; or what else holds the runs.
    options : ReportOptions, optional
        Window, comparison, resampling.
    taxonomy : Taxonomy, optional
        Weights, ceilings, workflows; those of the package when None.
    taxonomy_path : Path, optional
        Where the taxonomy was read, for `asr verify`.

    Returns
    -------
    ProductionReport
        Not calibrated: the outcomes are taken as given.

    Raises
    ------
    InputError
        If a file or an option cannot be used.
    CalibrationError
        If no run is left, or a cost is missing under `strict_cost`.
    """
    options = options or ReportOptions()
    taxonomy = taxonomy or default_taxonomy()
    with held(place_of(paths)) as place:
        read = read_production(place, taxonomy=taxonomy, options=options)
        earlier = _earlier(place, taxonomy, options)
        return _Assembled(read, options, earlier).report(
            options.settings(place.settings(), taxonomy_path),
            tag_groups(place, read, options),
            work_lists(place, read),
        )


class _Assembled:
    """The parts of a report, each from the counts it needs."""

    def __init__(
        self, read: ProductionRead, options: ReportOptions, earlier: ProductionRead | None
    ) -> None:
        self.read, self.options, self.earlier = read, options, earlier
        self.inputs = read.inputs
        self.earlier_inputs = None if earlier is None else earlier.inputs

    def report(
        self,
        settings: dict[str, Any],
        tags: TagGroups,
        work_lists: tuple[WorkList, ...],
    ) -> ProductionReport:
        read, counts = self.read, self.read.counts
        # Parts draw from generators of their own: which of them is done first changes nothing.
        with ThreadPoolExecutor() as pool:
            changed = pool.submit(self._change)
            by_week = pool.submit(self._weekly)
            by_workflow = pool.submit(lambda: tuple(workflow_groups(read, self.options)))
            by_model = pool.submit(
                lambda: tuple(groups(read.by("model"), "model", self.options, 3))
            )
            rate = rate_of_counts(read.runs, **self.options.resampling(0))
        change, weekly = changed.result(), by_week.result()
        return ProductionReport(
            calibrated=False,
            kind=GIVEN,
            target=self._target(),
            n=counts.n_kept,
            n_tasks=counts.n_tasks,
            first=weekly.weeks[0].week if weekly.weeks else None,
            last=weekly.weeks[-1].week if weekly.weeks else None,
            asr=rate.asr,
            asr_gross=rate.asr_gross,
            asr_literal=literal(rate),
            asr_without_abandoned=rate.asr_without_abandoned,
            pass_rate=rate.pass_rate,
            identity=rate.identity,
            mean_effective_penalty=rate.mean_effective_penalty,
            asr_range=rate.asr_range,
            rounding=rate.rounding,
            classes=classes(rate, read.taxonomy, self.options.targets),
            change=change,
            cost=cost_panel(
                counts.cost.table.iloc[0],
                rate.share_over_ceiling,
                per_success(read),
                self._unlimited(),
            ),
            weekly=weekly,
            by_workflow=by_workflow.result(),
            by_model=by_model.result(),
            by_tag=tags.groups,
            tags_left_out=tags.left_out,
            sensitivity=tuple(self._sensitivity(rate)),
            work_lists=work_lists,
            signals=signals(counts, self.options.confidence_level),
            verdict_mix=verdict_mix(counts.signals, self.options.confidence_level),
            latency=latency(counts),
            set_aside=tuple(map(left_out, counts.set_aside)),
            origin=self._origin(settings, tags),
            warnings=tuple(self._warnings()),
            notes=(*said(counts.notes, counts.n_kept), *bad_values(counts.signals)),
            marks=marks(read.n_reference, self.earlier.n_reference if self.earlier else 0),
            details={
                "inputs": self.inputs,
                "earlier_inputs": self.earlier_inputs,
                "percentile_error": max(counts.cost.error, counts.latency.error),
                "tasks_grouped": counts.tasks_grouped,
            },
        )

    def _target(self) -> str:
        counts = self.read.counts
        sample = "weighted" if "weight" in counts.notes.columns else "unweighted"
        return (
            f"The mean score of runs like the {counts.n_kept:,} of these files, {sample}: "
            "the outcomes are taken as given, so that the interval holds sampling error and not "
            "the errors of whoever gave them."
        )

    def _weekly(self) -> WeeklySeries:
        return weekly_series(
            self.read.by("week"), pooled=self.options.pooled, **self.options.resampling(1)
        )

    def _change(self) -> Change | None:
        """Compare with the earlier runs, else the last week with the one before it."""
        runs = self.read.by("week")
        if self.earlier is not None:
            # Tasks of two files have numbers of their own here and cannot be matched.
            found = compare_runs(self.earlier.runs, self.read.runs, **self.options.resampling(4))
            return change_of(found, later=self.options.window_words, earlier=self._earlier_words())
        if self.options.compare_to != PREVIOUS:
            return None
        return change_of_weeks(runs, self.options)

    def _earlier_words(self) -> str:
        if self.options.compare_to == PREVIOUS:
            return "the window before"
        return str(self.options.compare_to)

    def _unlimited(self) -> int:
        return sum(self.read.counts.notes.no_ceiling.values())

    def _sensitivity(self, rate: AgentSuccessRate) -> Iterator[AtOtherWeights]:
        own = tuple(self.read.taxonomy.credit[name] for name in OUTCOMES)
        yield AtOtherWeights(name=f"as reported ({credit_in_words(own)})", credit=own, asr=rate.asr)
        for name, credit in self.read.tables.items():
            words = table_in_words(name, credit)
            yield AtOtherWeights(name=words, credit=credit, asr=rate.at_other_credit[name])

    def _warnings(self) -> Iterator[str]:
        set_aside, n = self.read.counts.n_set_aside, self.read.counts.n_read
        if set_aside > 0.01 * n:
            yield f"{set_aside:,} of {n:,} rows were set aside; the reasons stand below."
        if self.read.counts.tasks_grouped:
            yield (
                "Tasks are too many to be resampled one by one: random groups of tasks were, "
                "which gives the same variance."
            )

    def _origin(self, settings: dict[str, Any], tags: TagGroups) -> Origin:
        read, options = self.read, self.options
        version = package_version()
        columns = read.counts.notes.columns
        sampling = "weights of the file (inverse inclusion probabilities)"
        if "weight" not in columns:
            sampling = "every run of the files counts the same"
        if "stratum" in columns:
            sampling += ", resampled within its strata"
        if options.stratify:
            sampling += ", resampled within workflows"
        parts = {
            "inputs": self.inputs,
            "earlier": self.earlier_inputs,
            "tags": [[g.name, g.n, round(g.asr.value or 0.0, DIGITS)] for g in tags.groups],
            "taxonomy": read.taxonomy.fingerprint,
            "settings": {k: v for k, v in settings.items() if k not in PLACES},
            "version": version,
        }
        return Origin(
            sources=read.sources,
            settings=settings,
            sampling=sampling,
            judge=NO_JUDGE,
            taxonomy_version=read.taxonomy.version,
            taxonomy_fingerprint=read.taxonomy.fingerprint,
            seed=options.seed,
            n_resamples=options.n_resamples,
            confidence_level=options.confidence_level,
            package_version=version,
            fingerprint=settings_digest(parts),
        )


def _earlier(place: Place, taxonomy: Taxonomy, options: ReportOptions) -> ProductionRead | None:
    """Read the runs to compare with: another file, or the window of equal length before."""
    if options.compare_to is None:
        return None
    if options.compare_to != PREVIOUS:
        return read_production(
            [options.compare_to], taxonomy=taxonomy, options=options, window=(None, None)
        )
    since, until = options.window
    if since is None:
        return None
    if until is None:
        raise InputError("--compare-to previous needs --to with --from, to know how long before")
    return read_production(
        place, taxonomy=taxonomy, options=options, window=(since - (until - since), since)
    )
