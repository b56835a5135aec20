"""Inter-annotator agreement of one batch, as a whole and by reviewer."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.annotators import AgainstKey, BesideOthers, against_key, leave_one_out
from calibration.agreement.coefficients import (
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    KRIPPENDORFF_ORDINAL,
    PERCENT_AGREEMENT,
    estimate,
    sums_of,
)
from calibration.agreement.dawid_skene import LatentTruth, dawid_skene
from calibration.agreement.inference import (
    clusters_of,
    difference,
    estimate_weighted,
)
from calibration.agreement.ratings import count_patterns, partial_order_weights, patterns_of_items
from calibration.agreement.study import Options, Study, study
from calibration.analyses.evidence.data import CalibrationData, ReviewedTrace, ReviewerLabel
from calibration.analyses.evidence.from_store import load_batch
from calibration.analyses.fingerprint import fingerprint
from calibration.errors import InputError
from calibration.statistics.estimate import Estimate, FloatArray
from calibration.taxonomy import Taxonomy
from calibration.text import week_of

if TYPE_CHECKING:
    from calibration.store import Store

CLUSTERS = ("trace", "task")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerProfile:
    """One reviewer of a batch.

    `n_labels` : labels of the batch that count
    `consensus` : against the adjudicated classes of the batch; None where nothing is adjudicated
    `canonical` : against the canonical labels of practice traces, before any of them was shown;
        None without practice. The reference mix of classes is not that of production: compare
        reviewers by it, not with the batch.
    """

    reviewer_id: str
    n_labels: int
    beside: BesideOthers
    consensus: AgainstKey | None
    canonical: AgainstKey | None


def agreement_with_others(store: "Store", *, confidence_level: float = 0.95) -> dict[str, Estimate]:
    """Estimate the agreement of each reviewer with the others, over all production batches.

    As in `leave_one_out`: the mean over shared traces of the share of the others who gave the same
    class. A reviewer's first label of a trace counts. Of a batch planned with an overlap only that
    part counts. Labels of the demo are compared only with each other.
    """
    labels = _planned_labels(store)
    found: dict[str, Estimate] = {}
    for _, given in labels.groupby("simulated"):
        wide = given.pivot(index="trace_id", columns="reviewer_id", values="code")
        beside = leave_one_out(
            wide.fillna(-1).to_numpy(dtype=np.int64),
            n_classes=len(store.taxonomy().names),
            confidence_level=confidence_level,
        )
        found |= {
            str(wide.columns[of.rater]): of.agreement_with_others for of in beside.raters
        }  # fmt: skip
    return found


def _planned_labels(store: "Store") -> pd.DataFrame:
    """Return the blind labels of all production batches that enter agreement, oldest first."""
    places = store.taxonomy().places
    frames = [pd.DataFrame(columns=["trace_id", "reviewer_id", "code", "simulated"])]
    for batch in store.batches():
        if batch.purpose != "production":
            continue
        labels = store.label_frame(batch.batch_id)
        labels = labels[(labels["kind"] == "label") & ~labels["exposed"].astype(bool)]
        items = store.batch_items(batch.batch_id)
        planned = items.loc[items["labels_wanted"] >= 2, "trace_id"]
        if len(planned):
            labels = labels[labels["trace_id"].isin(planned)]
        if not labels.empty:
            frames.append(labels.assign(code=labels["outcome"].map(places)))
    every = pd.concat(frames[1:] or frames)
    every = every[~every["trace_id"].isin(store.perturbed_traces()["trace_id"])]
    if len(frames) > 1:
        every = every.sort_values("created_at", kind="stable")
    return every.drop_duplicates(["trace_id", "reviewer_id"])


def settled_codes(loaded: CalibrationData, traces: pd.DataFrame) -> NDArray[np.int64]:
    """Return the adjudicated class of each trace, -1 where there is none."""
    done = dict(zip(loaded.labelled["trace_id"], loaded.adjudicated, strict=True))
    found = dict(zip(loaded.labelled["trace_id"], loaded.human.argmax(axis=1), strict=True))
    return np.array([found[t] if done[t] else -1 for t in traces["trace_id"]], dtype=np.int64)


def reviewer_profiles(
    store: "Store",
    loaded: CalibrationData,
    codes: NDArray[np.int64],
    settled: NDArray[np.int64],
    beside: Sequence[BesideOthers],
    *,
    confidence_level: float,
) -> tuple[ReviewerProfile, ...]:
    """Describe each reviewer of a batch, from the traces and classes that enter agreement."""
    reviewers, q = loaded.reviewers, len(loaded.classes)
    consensus = _profiles(codes, settled, q, confidence_level)
    practised, canonical_key = _practice(store, loaded)
    canonical = _profiles(practised, canonical_key, q, confidence_level)
    return tuple(
        ReviewerProfile(
            reviewer_id=reviewer,
            n_labels=int((codes[:, k] >= 0).sum()),
            beside=beside[k],
            consensus=consensus.get(k),
            canonical=canonical.get(k),
        )
        for k, reviewer in enumerate(reviewers)
    )


def _profiles(
    codes: NDArray[np.int64], key: NDArray[np.int64], n_classes: int, confidence_level: float
) -> dict[int, AgainstKey]:
    if not (key >= 0).any():
        return {}
    found = against_key(codes, key, n_classes=n_classes, confidence_level=confidence_level)
    return {of.rater: of for of in found if of.n}


def _practice(
    store: "Store", loaded: CalibrationData
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return blind labels on reference traces, traces x reviewers, and their canonical classes."""
    from calibration.analyses.reference_traces import published_set

    reviewers, places = loaded.reviewers, loaded.taxonomy.places
    frames = [
        store.label_frame(batch.batch_id)
        for batch in store.batches()
        if batch.purpose == "practice"
    ]
    given = pd.concat(frames) if frames else pd.DataFrame()
    if given.empty:
        return np.zeros((0, len(reviewers)), dtype=np.int64), np.zeros(0, dtype=np.int64)
    given = given[(given["kind"] == "label") & ~given["exposed"]]
    canonical = {trace_id: label.outcome for trace_id, label in published_set().labels.items()}
    given = given[given["trace_id"].isin(list(canonical))]
    wide = given.assign(code=given["outcome"].map(places)).pivot_table(
        index="trace_id", columns="reviewer_id", values="code", aggfunc="first"
    )
    codes = wide.reindex(columns=list(reviewers)).fillna(-1).to_numpy(dtype=np.int64)
    key = np.array([places[canonical[str(t)]] for t in wide.index], dtype=np.int64)
    return codes, key


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgreementAnalysis:
    """Agreement of the reviewers of a batch: over all, and where, who, and on which traces.

    `codes` (n_traces, n_reviewers) and `settled` (adjudicated class, n_traces) are places in
    `classes`, -1 where there is none; rows follow `trace_ids`, columns `reviewers`.

    `weeks` : ISO week of the last label of each trace
    `near`, `near_misses` : alpha that counts classes of close credit as close; that less plain
        alpha
    `by_task` : alpha with the task as the unit, where a task has several labelled traces
    `weighted` : agreement in production, traces weighted by inverse inclusion probability; empty
        where all were equally probable. Everything else is about the traces of the batch.
    `truth` : Dawid-Skene, for the order of adjudication only, never the reliability of the labels
    `unplanned`, `exposed` : traces left out that were planned for one label and got more; labels
        left out that were not blind
    """

    batch_id: str
    reviewers: tuple[str, ...]
    classes: tuple[str, ...]
    trace_ids: tuple[str, ...]
    codes: NDArray[np.int64]
    settled: NDArray[np.int64]
    weeks: tuple[str, ...]
    study: Study
    near: Estimate
    near_misses: Estimate
    by_task: Estimate | None
    weighted: dict[str, Estimate]
    profiles: tuple[ReviewerProfile, ...]
    truth: LatentTruth
    reviewed: tuple[ReviewedTrace, ...]
    unplanned: int
    exposed: int
    perturbed: int
    simulated: bool
    is_sample: bool
    cluster: str
    taxonomy: Taxonomy
    taxonomy_version: str
    taxonomy_fingerprint: str
    fingerprint: str

    @property
    def disputed(self) -> tuple[ReviewedTrace, ...]:
        """The traces on which reviewers differ, in the order of adjudication."""
        found = (of for of in self.reviewed if of.differs)
        return tuple(sorted(found, key=lambda d: (d.adjudicated, -d.entropy, -(d.cost or 0.0))))


def analyse_agreement(
    store: "Store",
    batch_id: str | None = None,
    *,
    options: Options | None = None,
    cluster: str = "trace",
) -> AgreementAnalysis:
    """Measure agreement on the traces planned for two or more reviewers.

    Inference is to traces like these; the reviewers are fixed. A batch drawn by filters represents
    only its own traces (`is_sample` is False). InputError if `cluster` is not in `CLUSTERS`, or as
    `load_batch`.
    """
    if cluster not in CLUSTERS:
        raise InputError(f"cluster must be one of {', '.join(CLUSTERS)}, got {cluster!r}")
    loaded = load_batch(store, batch_id, sample=False)
    return _agreement_of(store, loaded, options=options or Options(), cluster=cluster)


def planned_codes(loaded: CalibrationData) -> tuple[pd.DataFrame, NDArray[np.int64], int]:
    """Return the traces planned for two or more labels, their classes, and the number left out.

    A trace planned for one label has a second because somebody flagged it or was late: such
    traces are no random part of the batch. Without an overlap in the plan all traces enter.
    """
    planned = (loaded.labelled["labels_wanted"] >= 2).to_numpy(dtype=bool)
    codes = loaded.codes()
    if not planned.any():
        return loaded.labelled, codes, 0
    left_out = int(((codes[~planned] >= 0).sum(axis=1) >= 2).sum())
    return loaded.labelled[planned], codes[planned], left_out


def _agreement_of(
    store: "Store", loaded: CalibrationData, *, options: Options, cluster: str
) -> AgreementAnalysis:
    traces, codes, unplanned = planned_codes(loaded)
    level, taxonomy = options.confidence_level, loaded.taxonomy
    tasks = traces["task_key"].fillna(traces["trace_id"]).to_numpy(dtype=str)
    by_credit = credit_weights(taxonomy)
    q = len(taxonomy.names)
    patterns = count_patterns(codes, n_classes=q)
    weeks = _weeks(traces, loaded.labels)
    settled = settled_codes(loaded, traces)
    found = study(
        codes,
        n_classes=q,
        options=options,
        paths=taxonomy.paths(taxonomy.names),
        cluster=tasks if cluster == "task" else None,
        group=weeks,
        costly=len(codes),
    )
    truth = dawid_skene(codes, n_classes=q)
    return AgreementAnalysis(
        batch_id=loaded.provenance.batch_id,
        reviewers=loaded.reviewers,
        classes=taxonomy.names,
        trace_ids=tuple(traces["trace_id"]),
        codes=codes,
        settled=settled,
        weeks=tuple(weeks),
        study=found,
        near=estimate(KRIPPENDORFF_ALPHA, patterns, weights=by_credit, confidence_level=level),
        near_misses=difference(
            sums_of(KRIPPENDORFF_ALPHA, patterns, weights=by_credit),
            sums_of(KRIPPENDORFF_ALPHA, patterns),
            confidence_level=level,
        ),
        by_task=_by_task(codes, tasks, q, options),
        weighted=_weighted(loaded, traces, codes, tasks if cluster == "task" else None, options),
        profiles=reviewer_profiles(
            store, loaded, codes, settled, found.beside, confidence_level=level
        ),
        truth=truth,
        reviewed=tuple(_reviewed(traces, codes, settled, loaded, found, truth)),
        unplanned=unplanned,
        exposed=loaded.exposed,
        perturbed=loaded.perturbed,
        simulated=loaded.simulated,
        is_sample=loaded.is_sample,
        cluster=cluster,
        taxonomy=taxonomy,
        taxonomy_version=taxonomy.version,
        taxonomy_fingerprint=taxonomy.fingerprint,
        fingerprint=fingerprint(
            taxonomy=taxonomy.fingerprint,
            settings={"kind": "agreement", "cluster": cluster, **_plain(options)},
            labels=loaded.labels[["trace_id", "reviewer_id", "outcome"]],
            drawn=traces[["trace_id", "inclusion_probability"]],
        ),
    )  # fmt: skip


def credit_weights(taxonomy: Taxonomy) -> FloatArray:
    """Return partial-order weights in which a class is above those with less credit.

    Classes of equal credit cannot be compared: a disagreement between them counts fully. The order
    is that of workflows without credit of their own.
    """
    credits = taxonomy.credits
    above = [[k for k, other in enumerate(credits) if other > mine] for mine in credits]
    return partial_order_weights(above)


def _plain(options: Options) -> dict[str, object]:
    weights = None if options.weights is None else options.weights.tolist()
    return asdict(replace(options, weights=None)) | {"weights": weights}


def _weeks(traces: pd.DataFrame, labels: pd.DataFrame) -> list[str]:
    """Return the ISO week of the last label of each trace, when its agreement becomes known."""
    last = labels.groupby("trace_id")["created_at"].max().reindex(traces["trace_id"])
    return [week_of(when) for when in last]


def _by_task(
    codes: NDArray[np.int64], tasks: NDArray[np.str_], n_classes: int, options: Options
) -> Estimate | None:
    twice = (codes >= 0).sum(axis=1) >= 2
    if np.unique(tasks[twice]).size == twice.sum():
        return None
    patterns, of_item = patterns_of_items(codes, n_classes=n_classes)
    return estimate(
        KRIPPENDORFF_ALPHA,
        patterns,
        clusters=clusters_of(of_item, tasks, n_patterns=len(patterns.counts)),
        weights=options.weights,
        confidence_level=options.confidence_level,
    )


def _weighted(
    loaded: CalibrationData,
    traces: pd.DataFrame,
    codes: NDArray[np.int64],
    tasks: NDArray[np.str_] | None,
    options: Options,
) -> dict[str, Estimate]:
    if loaded.weights is None:
        return {}
    alpha = KRIPPENDORFF_ORDINAL if options.ordinal else KRIPPENDORFF_ALPHA
    return {
        coefficient.name: estimate_weighted(
            coefficient,
            codes,
            1 / traces["inclusion_probability"].to_numpy(dtype=np.float64),
            n_classes=len(loaded.classes),
            weights=options.weights,
            cluster=tasks,
            confidence_level=options.confidence_level,
        )
        for coefficient in (PERCENT_AGREEMENT, alpha, GWET_AC)
    }


def _reviewed(
    traces: pd.DataFrame,
    codes: NDArray[np.int64],
    settled: NDArray[np.int64],
    data: CalibrationData,
    found: Study,
    truth: LatentTruth,
) -> Iterator[ReviewedTrace]:
    cost = {item.item: item.cost for item in found.costly}
    weeks = _weeks(traces, data.labels)
    human = dict(zip(data.labelled["trace_id"], data.human, strict=True))
    for row, (trace_id, given) in enumerate(zip(traces["trace_id"], codes.tolist(), strict=True)):
        classes = sorted({code for code in given if code >= 0})
        differs = len(classes) > 1
        shares = zip(data.classes, human[trace_id].tolist(), strict=True)
        yield ReviewedTrace(
            trace_id=trace_id,
            week=weeks[row],
            labels=tuple(
                ReviewerLabel(reviewer=reviewer, outcome=data.classes[code])
                for reviewer, code in zip(data.reviewers, given, strict=True)
                if code >= 0
            ),
            human={name: share for name, share in shares if share > 0},
            adjudicated=bool(settled[row] >= 0),
            differs=differs,
            question=data.taxonomy.first_parting(data.classes[code] for code in classes)
            if differs
            else None,
            entropy=float(truth.entropy[row]),
            cost=cost.get(row, 0.0) if differs else None,
        )
