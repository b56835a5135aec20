"""Where a report on a store comes from, what it leaves out, and what its reader must know."""

from collections import Counter
from collections.abc import Iterator

from calibration.analyses.asr_report import LeftOut, Origin
from calibration.analyses.fingerprint import fingerprint, package_version
from calibration.analyses.judged_population import INPUT_COLUMNS, drawn_frame, human_frame
from calibration.analyses.store_rates import StoreRates
from calibration.correction.results import HEADLINE
from calibration.estimates import Estimate
from calibration.records import REFERENCE_SOURCE
from calibration.store import Store

BASIS = "human labels alone"
# Half-widths that differ by more than this are a warning.
APART = 0.20


def left_out(store: Store, rates: StoreRates) -> Iterator[LeftOut]:
    """Yield what the labelled sample or the window leaves out, and why."""
    loaded = rates.loaded
    frame = store.trace_frame()
    for n, reason in (
        (loaded.unlabelled, "traces of the batch that are not labelled yet"),
        (loaded.skipped, "traces that were skipped by everybody who saw them"),
        (loaded.exposed, "labels that were given after seeing what others said of the trace"),
        (loaded.undated, "traces that do not say when they were started: in no window"),
        (loaded.later_traces, "traces that came after the draw"),
        (
            int((frame["source"] == REFERENCE_SOURCE).sum()),
            "traces of the reference set: calibration material that ranks no agent",
        ),
    ):
        if n:
            yield LeftOut(reason=reason, n=n)


def notes(rates: StoreRates, agents_left_out: int) -> Iterator[str]:
    """Yield what helps to know."""
    if rates.loaded.open_disagreements:
        yield f"{rates.loaded.open_disagreements:,} disagreements are open: provisional."
    yield (
        f"Weeks, changes, groups and work lists rest on {BASIS}; cost and latency are those of "
        "all traces."
    )
    if rates.raw is not None:
        yield (
            "Judge-raw takes every verdict as true: its interval holds the sampling of "
            "traces, not the errors of the judge."
        )
    if agents_left_out:
        yield f"{agents_left_out:,} further agents with repeated trials are left out."
    yield from _other_estimators(rates)


def _other_estimators(rates: StoreRates) -> Iterator[str]:
    """Say in a line what is refused that nothing in the report rests on."""
    if rates.judge is None:
        return
    refused = Counter(
        notice.estimator
        for notice in rates.judge.calibration.refusals
        if notice.estimator not in _used(rates)
    )
    if refused:
        listed = ", ".join(f"{name} ({n} reason{'s' * (n != 1)})" for name, n in refused.items())
        yield f"Other estimators were refused, see asr calibrate: {listed}."


def _used(rates: StoreRates) -> tuple[str, ...]:
    return HEADLINE[rates.design], "bootstrap"


def warnings(rates: StoreRates, two_source: Estimate | None) -> Iterator[str]:
    """Yield what a reader must know: of the estimator of the headline and its check alone."""
    if rates.judge is not None:
        calibration = rates.judge.calibration
        for kind, notices in (
            ("Refused", calibration.refusals),
            ("Warning", calibration.warnings),
        ):
            for notice in notices:
                if notice.estimator in _used(rates):
                    yield f"{kind} ({notice.estimator}): {notice.why}; {notice.mend}."
    one = rates.corrected.half_width
    other = None if two_source is None else two_source.half_width
    if one and other and abs(one - other) > APART * max(one, other):
        yield (
            f"Warning: the interval of the corrected rate (± {one:.3f}) and that of the two-source "
            f"bootstrap (± {other:.3f}) differ by more than {100 * APART:.0f} %: neither is to "
            "be relied on without a look at the calibration (asr calibrate)."
        )


def origin(rates: StoreRates, workflow: str | None) -> Origin:
    """Return all that it takes to make the report again."""
    loaded, options = rates.loaded, rates.options
    kind = loaded.batch.design.get("kind", "unknown design")
    settings = {
        "batch": loaded.batch.batch_id,
        "judge": rates.judge_id,
        "design": rates.design,
        "workflow": workflow,
        "from": options.since,
        "to": options.until,
        "timezone": options.timezone,
        "compare_to": options.compare_to,
        "strict_cost": options.strict_cost,
        "pooled": options.pooled,
        "targets": dict(options.targets),
        "seed": options.seed,
        "resamples": options.n_resamples,
        "confidence_level": options.confidence_level,
        "interval": options.interval,
    }
    return Origin(
        sources=(),
        settings=settings,
        sampling=(
            f"{len(loaded.labelled):,} labelled of {len(loaded.traces):,} traces, {kind}, "
            f"batch {loaded.batch.batch_id}"
        ),
        judge=rates.judge_id or "none",
        taxonomy_version=loaded.taxonomy.version,
        taxonomy_fingerprint=loaded.taxonomy.fingerprint,
        seed=options.seed,
        n_resamples=options.n_resamples,
        confidence_level=options.confidence_level,
        package_version=package_version(),
        fingerprint=fingerprint(
            taxonomy=loaded.taxonomy.fingerprint,
            settings={
                "kind": "asr",
                **settings,
                "calibration": rates.judge.fingerprint if rates.judge else "",
            },
            human=human_frame(loaded),
            drawn=drawn_frame(loaded),
            labels=loaded.labels[["trace_id", "reviewer_id", "outcome", "tags"]],
            traces=loaded.traces[
                [*INPUT_COLUMNS, "started_at", "model", "agent_version", "latency_s"]
            ],
        ),
    )
