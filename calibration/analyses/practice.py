"""Practice: the canonical label of a trace, once the reviewer has given theirs."""

from dataclasses import dataclass
from functools import cache

from calibration.errors import InputError
from calibration.store import Batch, Store
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
    reviewer's own label is stored.
    """
    purpose = {batch.batch_id: batch.purpose for batch in store.batches()}.get(batch_id)
    last = store.last_label(reviewer_id, batch_id)
    if purpose != "practice" or last is None or last[1] is None:
        return None
    label = dataset.labels.get(last[0])
    if label is None:
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
        if batch.purpose == "practice" and batch.design.get("form") == form:
            return batch
    store.ingest([dataset.traces[trace_id] for trace_id in trace_ids])
    return store.add_batch(
        purpose="practice",
        trace_ids=trace_ids,
        labels_wanted=EVERYBODY,
        design={"kind": "form of the reference dataset", "form": form},
    )
