"""The canonical label comes after one's own, and only then."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from uuid import uuid4

import pytest

from app.desk.data import desk_data
from app.desk.events import Receipts
from calibration.analyses.reviewers.examinations import add_practice, lesson, practice_score
from calibration.errors import InputError
from calibration.records import LabelDraft, Trace
from calibration.store import Batch, Store
from reference_dataset.loader import ReferenceSet, load_reference

ME, OTHER = "anna", "ben"


@pytest.fixture(scope="module")
def dataset() -> ReferenceSet:
    return load_reference()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.duckdb", create=True) as store:
        for name in (ME, OTHER):
            store.add_reviewer(name)
        yield store


def batch_of(store: Store, traces: list[Trace], purpose: str) -> str:
    store.ingest(traces)
    ids = [trace.trace_id for trace in traces]
    return store.add_batch(purpose=purpose, trace_ids=ids, labels_wanted=2, design={}).batch_id


def label(store: Store, batch: str, outcome: str, reviewer: str = ME) -> str:
    """Label the next trace of a reviewer; return its id."""
    trace = store.queue(reviewer, batch, limit=1).items[0]
    draft = LabelDraft(
        client_token=str(uuid4()), trace_id=trace.trace_id, reviewer_id=reviewer, batch_id=batch,
        answers=store.taxonomy().answers_for(outcome),
    )  # fmt: skip
    store.record_label(draft)
    return trace.trace_id


def see(store: Store, dataset: ReferenceSet, batch: str, reviewer: str = ME) -> str | None:
    found = lesson(store, dataset, reviewer_id=reviewer, batch_id=batch)
    return None if found is None else found.label.trace_id


def test_the_lesson_follows_the_label(store: Store, dataset: ReferenceSet) -> None:
    traces = [t for t in dataset.traces.values() if t.workflow == "research"][:3]
    batch = batch_of(store, traces, "practice")
    assert see(store, dataset, batch) is None
    first = label(store, batch, "partial_plus")
    found = lesson(store, dataset, reviewer_id=ME, batch_id=batch)
    assert found is not None
    assert found.label == dataset.labels[first]
    assert found.your_outcome == "partial_plus"
    assert found.yours == {
        "output": "yes", "fabrication": "no", "all_subgoals": "no", "material_error": "no",
    }  # fmt: skip
    assert see(store, dataset, batch, OTHER) is None, "another reviewer has labelled nothing"
    assert see(store, ReferenceSet(traces={}, labels={}, forms={}), batch) is None
    # None after a skip, or for what was taken back.
    skipped = store.queue(ME, batch, limit=1).items[0].trace_id
    store.record_skip(
        client_token="skip", trace_id=skipped, reviewer_id=ME, batch_id=batch, reason="Other: x"
    )
    assert see(store, dataset, batch) is None
    store.record_undo(client_token="undo-1", reviewer_id=ME, batch_id=batch)
    assert see(store, dataset, batch) == first
    store.record_undo(client_token="undo-2", reviewer_id=ME, batch_id=batch)
    assert see(store, dataset, batch) is None


def test_no_lesson_outside_practice(store: Store, dataset: ReferenceSet) -> None:
    for purpose in ("production", "exam", "repeat"):
        batch = batch_of(store, list(dataset.traces.values())[:2], purpose)
        label(store, batch, "complete")
        assert see(store, dataset, batch) is None
    assert see(store, dataset, "practice-999") is None


def test_nothing_canonical_is_in_the_queue(store: Store, dataset: ReferenceSet) -> None:
    """Neither what the reviewer's queue holds nor what the page is sent says how to answer."""
    batch = add_practice(store, dataset)
    reviewer = next(r for r in store.reviewers() if r.reviewer_id == ME)
    seen: list[str] = []
    while queue := store.queue(ME, batch.batch_id, limit=5).items:
        page = repr(desk_data(store, reviewer, batch.batch_id, Receipts()))
        for trace in queue:
            canonical = dataset.labels[trace.trace_id]
            texts = [canonical.rationale, canonical.why_not, f"'{canonical.outcome}'"]
            texts += [item.shows for item in canonical.evidence if len(item.shows) > 30]
            for text in texts:
                assert text not in repr(trace), trace.trace_id
            for text in texts[:2]:
                assert text[:40] not in page, trace.trace_id
        seen.append(label(store, batch.batch_id, "abandoned"))
        # After the label, the page has it: the check above can fail.
        page = repr(desk_data(store, reviewer, batch.batch_id, Receipts()))
        assert repr(dataset.labels[seen[-1]].rationale) in page
        exposed = store.exposure_frame()[["reviewer_id", "trace_id", "what"]]
        assert exposed.to_numpy().tolist() == [[ME, trace_id, "canonical"] for trace_id in seen]
        if len(seen) == 6:
            break
    assert len(set(seen)) == 6


def test_a_planted_label_would_be_seen(store: Store, dataset: ReferenceSet) -> None:
    """The check for leaks finds a leak: a rationale that stands in the trace itself."""
    trace_id, canonical = next(iter(dataset.labels.items()))
    planted = Trace(
        trace_id="research-900", source="reference", source_id="1", workflow="research",
        task_id="1", task_key="1", trial=0, prompt=f"See: {canonical.rationale}",
    )  # fmt: skip
    batch = batch_of(store, [dataset.traces[trace_id], planted], "practice")
    shown = {t.trace_id: repr(t) for t in store.queue(ME, batch, limit=2).items}
    assert canonical.rationale[:40] not in shown[trace_id]
    assert canonical.rationale[:40] in shown["research-900"]


def test_the_workflows_of_practice_are_mixed_and_one_may_come_first(
    store: Store, dataset: ReferenceSet, tmp_path: Path
) -> None:
    def order(of: Store, batch: Batch) -> list[str]:
        ids = of.batch_items(batch.batch_id).sort_values("position")["trace_id"]
        return [dataset.traces[i].workflow for i in ids]

    mixed = order(store, add_practice(store, dataset))
    assert max(len(list(run)) for _, run in groupby(mixed)) < 6
    with Store.open(tmp_path / "other.duckdb", create=True) as other:
        with pytest.raises(InputError, match="no trace of 'practice' is of workflow 'sales'"):
            add_practice(other, dataset, first="sales")
        own = order(other, add_practice(other, dataset, first="research"))
    n = mixed.count("research")
    assert own[:n] == ["research"] * n
    assert sorted(own) == sorted(mixed)


def test_the_score_counts_the_first_attempt_and_is_hidden_in_an_examination(
    store: Store, dataset: ReferenceSet
) -> None:
    batch = add_practice(store, dataset).batch_id
    assert score(store, dataset, batch) == (0, 0)
    right = dataset.labels[store.queue(ME, batch).items[0].trace_id].outcome
    first = label(store, batch, right)
    assert score(store, dataset, batch) == (1, 1)
    wrong = dataset.labels[store.queue(ME, batch).items[0].trace_id].outcome
    label(store, batch, "abandoned" if wrong != "abandoned" else "complete")
    assert score(store, dataset, batch) == (1, 2)
    store.reopen(client_token="r", trace_id=first, reviewer_id=ME, batch_id=batch, reason="slip")
    label(store, batch, "abandoned" if right != "abandoned" else "complete")
    assert score(store, dataset, batch) == (1, 2)
    store.start_exam(reviewer_id=ME, form="exam_a", private=False, trace_ids=[first])
    assert score(store, dataset, batch) is None


def score(store: Store, dataset: ReferenceSet, batch: str) -> tuple[int, int] | None:
    return practice_score(store, dataset, reviewer_id=ME, batch_id=batch)


def test_a_form_is_put_into_a_store_once(store: Store, dataset: ReferenceSet) -> None:
    batch = add_practice(store, dataset)
    assert batch.purpose == "practice"
    assert batch.n_items == len(dataset.forms["practice"])
    assert add_practice(store, dataset).batch_id == batch.batch_id
    assert len(store.batches()) == 1
    with pytest.raises(InputError, match="no form 'exam_c'"):
        add_practice(store, dataset, form="exam_c")
