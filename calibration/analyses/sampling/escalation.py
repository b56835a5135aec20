"""Escalate uncertain verdicts to reviewers, with an audit of the accepted ones."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.dawid_skene import dawid_skene
from calibration.analyses.evidence.data import CalibrationData
from calibration.analyses.evidence.from_store import (
    choose_judge,
    load_batch,
    refuse_mixture,
    with_verdicts,
)
from calibration.analyses.judge.calibration import analyse_judge, calibrated_labels
from calibration.analyses.sampling.draw import SamplingDesign, drawn_from, recorded_population
from calibration.analyses.sampling.planning import earlier_batch
from calibration.analyses.sampling.stratified import store_stratified, verdict_codes
from calibration.errors import CalibrationError, InputError
from calibration.judge_calibration.label_planning import audit_size, error_rate
from calibration.statistics.estimate import Estimate, not_estimable
from calibration.store import Batch, Store

WORDS = {
    "samples": "disagreement among the judge's samples",
    "probability": "low calibrated probability",
    "judges": "entropy over several judges (Dawid-Skene)",
}

FEWEST_JUDGES = 3
ESCALATED, ACCEPTED = 0, 1

# With fewer labels the audit is sized for the worst case.
FEWEST_EARLIER = 10

Signal = Literal["samples", "probability", "judges"]
SIGNALS: tuple[Signal, ...] = ("samples", "probability", "judges")

# Doubtful above: any disagreement among samples; no class with .7; half a bit.
THRESHOLD: dict[str, float] = {"samples": 0.0, "probability": 0.3, "judges": 0.5}


def doubts(
    store: Store, frame: pd.DataFrame, *, signal: Signal, judge_id: str, basis_batch: str | None
) -> NDArray[np.float64]:
    """Return the doubt about the verdict on each trace, from 0 up; infinite without a valid one.

    ``samples``: share of the judge's samples that differ from the most frequent one.
    ``probability``: 1 less the largest class probability, calibrated on `basis_batch`.
    ``judges``: entropy in bits of the class given all judges' verdicts; errors are taken to be
    independent.
    """
    found = {"samples": _of_samples, "judges": _of_judges}.get(signal)
    doubt = (
        _of_probability(store, frame, judge_id, basis_batch)
        if found is None
        else found(store, frame, judge_id)
    )
    taxonomy = store.taxonomy()
    codes = verdict_codes(frame, store.verdict_frame(judge_id), taxonomy)
    none = codes == len(taxonomy.names)
    return np.where(none, np.inf, doubt)


def _of_samples(store: Store, frame: pd.DataFrame, judge_id: str) -> NDArray[np.float64]:
    samples = store.verdict_samples(judge_id)
    samples = samples[~samples["of_all"]]
    if samples.empty or samples["sample"].max() < 1:
        raise CalibrationError(
            f"judge {judge_id!r} has one verdict on each trace, so its samples cannot disagree; "
            "judge each trace several times, or escalate by probability"
        )
    counted = samples.groupby(["trace_id", "outcome"]).size().groupby("trace_id")
    differing = 1 - counted.max() / counted.sum()
    return np.asarray(frame["trace_id"].map(differing).fillna(0.0), dtype=np.float64)


def _of_probability(
    store: Store, frame: pd.DataFrame, judge_id: str, basis_batch: str | None
) -> NDArray[np.float64]:
    labels = calibrated_labels(store, basis_batch, judge_id=judge_id).frame
    cells = labels.groupby(["verdict", "workflow"])["probability"].first()
    verdicts = store.verdict_frame(judge_id).set_index("trace_id")["outcome"]
    keys = list(zip(frame["trace_id"].map(verdicts), frame["workflow"], strict=True))
    # Verdicts or workflows unseen in the calibration have the greatest doubt.
    likeliest = cells.reindex(pd.MultiIndex.from_tuples(keys)).fillna(0.0)
    return np.asarray(1 - likeliest.to_numpy(dtype=np.float64))


def _of_judges(store: Store, frame: pd.DataFrame, judge_id: str) -> NDArray[np.float64]:
    names = [str(name) for name in store.judge_frame()["judge_id"]]
    if len(names) < FEWEST_JUDGES:
        raise CalibrationError(
            f"{len(names)} judges have verdicts and {FEWEST_JUDGES} are "
            "needed to tell which one is wrong; import verdicts of other judges, or escalate by "
            "samples or probability"
        )
    verdicts = [store.verdict_frame(name).set_index("trace_id")["outcome"] for name in names]
    places = store.taxonomy().places
    codes = np.column_stack(
        [
            frame["trace_id"].map(of).map(places).fillna(-1).to_numpy(dtype=np.int64)
            for of in verdicts
        ]
    )
    return np.asarray(dawid_skene(codes, n_classes=len(places)).entropy, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Error rate of the accepted verdicts of an escalation, and the rate over all traces.

    `error` is about the `n_accepted` traces only, `asked` the half-width that the audit was drawn
    for; `headline` weighs all traces, escalated and accepted, by how they were drawn.
    """

    batch_id: str
    judge_id: str
    error: Estimate
    asked: float
    headline: Estimate
    n_escalated: int
    n_accepted: int
    simulated: bool


def escalate(
    store: Store,
    design: SamplingDesign,
    *,
    signal: Signal,
    judge_id: str | None = None,
    threshold: float | None = None,
    most: int | None = None,
    audit_half_width: float = 0.05,
    basis_batch: str | None = None,
) -> Batch:
    """Make a batch of all doubtful traces and a random audit of the others.

    A trace is escalated if its doubt is above `threshold`; of more than `most`, the most doubtful.
    The audit is sized for a half-width of `audit_half_width` in the error rate of the accepted
    part: at the upper limit of that rate in earlier labels, else at a half. Escalated traces have
    inclusion probability 1, so that weighted estimates are about all traces.
    """
    if signal not in SIGNALS:
        raise InputError(f"signal must be one of {', '.join(SIGNALS)}, got {signal!r}")
    if most is not None and most < 1:
        raise InputError(f"most must be at least 1, got {most}")
    if not 0 < audit_half_width < 0.5:
        raise InputError(f"audit half-width must be in (0, .5), got {audit_half_width}")
    threshold = THRESHOLD[signal] if threshold is None else threshold
    if not 0 <= threshold < np.inf:
        raise InputError(f"threshold must be 0 or more, got {threshold}")
    frame = drawn_from(store, design)
    judge = choose_judge(store, judge_id)
    doubt = doubts(store, frame, signal=signal, judge_id=judge, basis_batch=basis_batch)
    of_trace = np.where(_escalated(doubt, threshold, most, design.seed), ESCALATED, ACCEPTED)
    sizes = np.bincount(of_trace, minlength=2)
    if not sizes.all():
        which = "no trace is" if sizes[ESCALATED] == 0 else "every trace is"
        raise CalibrationError(
            f"{which} doubtful by {WORDS[signal]} above {threshold:g}; change the threshold, or "
            "draw a random batch with `asr sample`"
        )
    expected = _expected_error(store, basis_batch, judge, frame, of_trace)
    audited = min(int(sizes[ACCEPTED]), audit_size(audit_half_width, error=expected))
    drawn = np.array([sizes[ESCALATED], audited])
    names = ("escalated", "accepted, audited")
    recorded: dict[str, object] = {
        "kind": f"escalation by {WORDS[signal]} with a random audit of the rest, weighted",
        "signal": signal,
        "threshold": threshold,
        "most": most,
        "judge": judge,
        "n": int(drawn.sum()),
        **recorded_population(frame, design),
        "audit_half_width": audit_half_width,
        "expected_error": expected,
        "strata": [
            {
                "name": name,
                "population": int(size),
                "n": int(n),
                "inclusion_probability": float(n / size),
            }
            for name, size, n in zip(names, sizes, drawn, strict=True)
        ],
    }
    return store_stratified(store, design, frame, of_trace.astype(np.int64), drawn, recorded)


def _escalated(
    doubt: NDArray[np.float64], threshold: float, most: int | None, seed: int
) -> NDArray[np.bool_]:
    """Return which traces go to reviewers; of too many, the most doubtful, ties at random."""
    chosen = doubt > threshold
    if most is None or chosen.sum() <= most:
        return chosen
    order = np.lexsort((np.random.default_rng([seed, 2]).random(doubt.size), -doubt))
    kept = np.zeros(doubt.size, dtype=bool)
    kept[order[:most]] = True
    return kept


def _expected_error(
    store: Store,
    basis_batch: str | None,
    judge: str,
    frame: pd.DataFrame,
    of_trace: NDArray[np.intp],
) -> float:
    """Return the upper limit of the accepted part's error rate in earlier labels, else a half."""
    loaded = earlier_batch(store, basis_batch)
    if loaded is None or loaded.labelled.empty:
        return 0.5
    refuse_mixture(store, judge, loaded)
    accepted = set(frame["trace_id"].to_numpy()[of_trace == ACCEPTED])
    inside = loaded.labelled["trace_id"].isin(accepted).to_numpy()
    if inside.sum() < FEWEST_EARLIER:
        return 0.5
    wrong = _wrong(store, loaded, judge)[inside]
    limits = error_rate(float(wrong.sum()), int(inside.sum())).interval
    return 0.5 if limits is None else min(0.5, limits[1])


def _wrong(store: Store, loaded: CalibrationData, judge: str) -> NDArray[np.float64]:
    """Return the share of labels that contradict the verdict on each labelled trace."""
    judged = with_verdicts(loaded, store.verdict_frame(judge))
    right = np.column_stack([loaded.human, np.zeros(len(loaded.at))])
    return np.asarray(1 - right[np.arange(len(loaded.at)), judged.verdicts[loaded.at]])


def audit(store: Store, batch_id: str) -> Audit:
    """Return the error rate of an escalation's accepted verdicts, and the rate over all traces."""
    loaded = load_batch(store, batch_id)
    design = loaded.batch.design
    if "audit_half_width" not in design:
        raise CalibrationError(
            f"batch {batch_id!r} is not an escalation and audits nothing; make one with `asr "
            "escalate`"
        )
    judge = str(design["judge"])
    inside = (loaded.labelled["stratum"] == ACCEPTED).to_numpy(dtype=bool)
    wrong = _wrong(store, loaded, judge)[inside]
    calibration = analyse_judge(store, batch_id, judge_id=judge).calibration
    rate = calibration.headline_estimate
    why = "; ".join(f"{notice.why} ({notice.mend})" for notice in calibration.refusals)
    return Audit(
        batch_id=batch_id,
        judge_id=judge,
        error=error_rate(float(wrong.sum()), int(inside.sum())),
        asked=float(design["audit_half_width"]),
        headline=not_estimable(why, method="calibration") if rate is None else rate.net,
        n_escalated=int(design["strata"][ESCALATED]["population"]),
        n_accepted=int(design["strata"][ACCEPTED]["population"]),
        simulated=loaded.simulated,
    )
