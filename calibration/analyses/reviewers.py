"""Each reviewer beside the others, and against classes that somebody settled."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.against_key import AgainstKey, against_key
from calibration.agreement.leave_one_out import LeftOut, leave_one_out
from calibration.analyses.labelled_batch import CODE, LabelledBatch
from calibration.analyses.practice import published
from calibration.estimates import Estimate
from calibration.records import OUTCOMES
from calibration.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerProfile:
    """One reviewer of a batch.

    Parameters
    ----------
    reviewer_id : str
    n_labels : int
        Labels in the batch that count.
    beside : LeftOut
        Agreement with the others, and alpha without this reviewer.
    consensus : AgainstKey or None
        Against the adjudicated classes of the batch; None where nothing is adjudicated.
    canonical : AgainstKey or None
        Against the canonical labels of the reference traces that the reviewer practised on,
        before any of them was shown; None without practice. The reference mix of classes is not
        that of production: compare reviewers by it, not with the batch.
    """

    reviewer_id: str
    n_labels: int
    beside: LeftOut
    consensus: AgainstKey | None
    canonical: AgainstKey | None


def agreement_with_others(store: Store, *, confidence_level: float = 0.95) -> dict[str, Estimate]:
    """Estimate how often each reviewer agrees with the others, over all production batches.

    As in `leave_one_out`: on each trace that a reviewer shared with others the share of them who
    gave the same class, and its mean. Who was given one trace in two batches enters with the first
    label. Of a batch that was planned with an overlap only that part counts, as for its
    agreement. Labels of the demo are held against labels of the demo only.

    Parameters
    ----------
    store : Store
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    dict of Estimate
        By reviewer: everybody with a label that counts; ``not_estimable`` for who shared no
        trace. n = shared traces.

    Raises
    ------
    ValueError
        If `confidence_level` is outside (0, 1).
    """
    labels = _planned_labels(store)
    found: dict[str, Estimate] = {}
    for _, given in labels.groupby("simulated"):
        wide = given.pivot(index="trace_id", columns="reviewer_id", values="code")
        beside = leave_one_out(
            wide.fillna(-1).to_numpy(dtype=np.int64),
            n_classes=len(OUTCOMES),
            confidence_level=confidence_level,
        )
        found |= {
            str(wide.columns[of.rater]): of.agreement_with_others for of in beside.raters
        }  # fmt: skip
    return found


def _planned_labels(store: Store) -> pd.DataFrame:
    """Return the blind labels of all production batches that agreement is about, oldest first."""
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
            frames.append(labels.assign(code=labels["outcome"].map(CODE)))
    every = pd.concat(frames[1:] or frames)
    if len(frames) > 1:
        every = every.sort_values("created_at", kind="stable")
    return every.drop_duplicates(["trace_id", "reviewer_id"])


def settled_codes(loaded: LabelledBatch, traces: pd.DataFrame) -> NDArray[np.int64]:
    """Return the adjudicated class of each trace, -1 where there is none."""
    done = dict(zip(loaded.labelled["trace_id"], loaded.adjudicated, strict=True))
    found = dict(zip(loaded.labelled["trace_id"], loaded.human.argmax(axis=1), strict=True))
    return np.array([found[t] if done[t] else -1 for t in traces["trace_id"]], dtype=np.int64)


def reviewer_profiles(
    store: Store,
    loaded: LabelledBatch,
    codes: NDArray[np.int64],
    settled: NDArray[np.int64],
    beside: Sequence[LeftOut],
    *,
    confidence_level: float,
) -> tuple[ReviewerProfile, ...]:
    """Describe each reviewer of a batch from the traces and classes that agreement is about."""
    reviewers = loaded.reviewers
    consensus = _profiles(codes, settled, confidence_level)
    practised, canonical_key = _practice(store, reviewers)
    canonical = _profiles(practised, canonical_key, confidence_level)
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
    codes: NDArray[np.int64], key: NDArray[np.int64], confidence_level: float
) -> dict[int, AgainstKey]:
    if not (key >= 0).any():
        return {}
    found = against_key(codes, key, n_classes=len(OUTCOMES), confidence_level=confidence_level)
    return {of.rater: of for of in found if of.n}


def _practice(store: Store, reviewers: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return blind labels on reference traces, traces x reviewers, and their canonical classes."""
    frames = [
        store.label_frame(batch.batch_id)
        for batch in store.batches()
        if batch.purpose == "practice"
    ]
    given = pd.concat(frames) if frames else pd.DataFrame()
    if given.empty:
        return np.zeros((0, len(reviewers)), dtype=np.int64), np.zeros(0, dtype=np.int64)
    given = given[(given["kind"] == "label") & ~given["exposed"]]
    canonical = {trace_id: label.outcome for trace_id, label in published().labels.items()}
    given = given[given["trace_id"].isin(list(canonical))]
    wide = given.assign(code=given["outcome"].map(CODE)).pivot_table(
        index="trace_id", columns="reviewer_id", values="code", aggfunc="first"
    )
    codes = wide.reindex(columns=reviewers).fillna(-1).to_numpy(dtype=np.int64)
    key = np.array([CODE[canonical[str(t)]] for t in wide.index], dtype=np.int64)
    return codes, key
