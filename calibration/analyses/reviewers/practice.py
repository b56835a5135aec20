"""Practice: the canonical label of a trace, once the reviewer has given theirs."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from calibration.analyses.reviewers.examinations import (
    PRACTICE_FORM,
    exams_under_this_tree,
    seed_of,
)
from calibration.errors import InputError
from calibration.reviewers import practice
from calibration.store import Batch, Store
from calibration.store.batches import PracticeRound
from calibration.store.certification import FAILED, PASSED
from reference_dataset.loader import ReferenceSet, load_reference
from reference_dataset.records import CanonicalLabel

EVERYBODY = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One's own answers beside the canonical label."""

    label: CanonicalLabel
    yours: dict[str, str]
    your_outcome: str


def lesson(
    store: Store, dataset: ReferenceSet, *, reviewer_id: str, batch_id: str
) -> Lesson | None:
    """Return the lesson of the trace that this reviewer labelled last in a practice batch.

    None before the first label, after a skip, for a trace that has no canonical label, and
    in every batch that is not for practice: nothing canonical leaves the dataset before the
    reviewer's own label is stored. None also while an examination of theirs is open: it may hold
    traces that others practise on.
    """
    purpose = {batch.batch_id: batch.purpose for batch in store.batches()}.get(batch_id)
    last = store.last_label(reviewer_id, batch_id)
    if purpose != "practice" or last is None or last[1] is None:
        return None
    label = dataset.labels.get(last[0])
    if label is None or any(
        exam.ended_at is None for exam in exams_under_this_tree(store, reviewer_id)
    ):
        return None
    return Lesson(label=label, yours=store.taxonomy().answers_for(last[1]), your_outcome=last[1])


@cache
def published() -> ReferenceSet:
    """Return the dataset that comes with the package, read once."""
    return load_reference()


def add_practice(store: Store, dataset: ReferenceSet, *, form: str = "practice") -> Batch:
    """Put a form of the dataset into the store as a batch that everybody may practise on.

    A store holds a form once: asking again returns the batch that is there.

    Raises
    ------
    InputError
        If the dataset has no such form.
    """
    trace_ids = dataset.forms.get(form, ())
    if not trace_ids:
        raise InputError(f"the dataset has no form {form!r}; there are {sorted(dataset.forms)}")
    for batch in store.batches():
        everybodys = batch.purpose == "practice" and batch.reviewer_id is None
        if everybodys and batch.design.get("form") == form:
            return batch
    store.ingest([dataset.traces[trace_id] for trace_id in trace_ids])
    return store.add_batch(
        purpose="practice",
        trace_ids=trace_ids,
        labels_wanted=EVERYBODY,
        design={"kind": "form of the reference dataset", "form": form},
    )


def start_practice(store: Store, dataset: ReferenceSet, reviewer_id: str) -> PracticeRound:
    """Start a practice round aimed at where this reviewer errs, or return the open one.

    `dataset` holds what may be shown: private labels are not in it.
    """
    for found in store.practice_rounds(reviewer_id):
        if found.finished_at is None:
            return found
    seen = store.seen_traces(reviewer_id)
    names = [n for n in dataset.forms if n.endswith(PRACTICE_FORM)]
    ids = [i for name in names for i in dataset.forms[name] if i in dataset.labels]
    pool = [
        practice.PracticeTrace(
            trace_id=i,
            outcome=dataset.labels[i].outcome,
            nearest_wrong=dataset.labels[i].nearest_wrong,
            seen=seen[i].timestamp() if i in seen else None,
        )
        for i in ids
    ]
    number = len(store.practice_rounds(reviewer_id))
    seed = seed_of("practice", reviewer_id, store.taxonomy().version, number)
    chosen = practice.practice_round(
        store.taxonomy(), pool, _own_answers(store, dataset, reviewer_id),
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    return store.start_practice(
        reviewer_id=reviewer_id,
        trace_ids=chosen,
        traces=[dataset.traces[i] for i in chosen],
        design={"kind": "practice round", "form": PRACTICE_FORM, "seed": seed},
    )


def weak_nodes(
    store: Store, dataset: ReferenceSet, reviewer_id: str
) -> tuple[practice.NodeWeakness, ...]:
    """Return how often a reviewer erred at each question so far, the weakest first."""
    return practice.weaknesses(store.taxonomy(), _own_answers(store, dataset, reviewer_id))


def _own_answers(store: Store, dataset: ReferenceSet, reviewer_id: str) -> list[tuple[str, str]]:
    """Return canonical and given class of what was practised, and of examinations that are over."""
    going_on = {e.batch_id for e in store.exams_of(reviewer_id) if e.status not in (PASSED, FAILED)}
    return [
        (dataset.labels[given.trace_id].outcome, given.outcome)
        for given in store.first_labels(reviewer_id)
        if given.trace_id in dataset.labels and given.batch_id not in going_on
    ]
