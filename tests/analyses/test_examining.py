"""From the rule to the certificate, through the store, with the published dataset."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from calibration.analyses.reviewers.exam_report import exam_report, examined_trace
from calibration.analyses.reviewers.examinations import (
    Examiner,
    add_practice,
    lesson,
    no_own_form,
    settle,
    standing,
    start_practice,
    weak_nodes,
)
from calibration.errors import NotAllowedError
from calibration.store import Store
from calibration.store.leases import CertificateDemand
from reference_dataset.loader import ReferenceSet, load_reference
from tests.analyses.examinees import ME, Examinee, give, set_clock
from tests.classes import OUTCOMES


@pytest.fixture(scope="module")
def dataset() -> ReferenceSet:
    return load_reference()


@pytest.fixture
def anna(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dataset: ReferenceSet
) -> Iterator[Examinee]:
    clock = set_clock(monkeypatch)
    with Store.open(tmp_path / "store.duckdb", create=True) as store:
        store.add_reviewer("Anna")
        yield Examinee(store, Examiner(dataset=dataset, private=frozenset()), clock)


def with_private_set(anna: Examinee) -> Examinee:
    """Return the same with a private form of 60 traces: copies of the second exam's."""
    base = anna.by.dataset
    ids = base.forms["exam_b"][:60]
    traces = {
        f"p-{i}": replace(
            base.traces[i], trace_id=f"p-{i}", source_id=f"p-{i}", prompt=f"Ours. {i}"
        )
        for i in ids
    }
    labels = {f"p-{i}": replace(base.labels[i], trace_id=f"p-{i}") for i in ids}
    dataset = replace(
        base, traces=base.traces | traces, labels=base.labels | labels,
        forms=base.forms | {"ours/exam_a": tuple(traces)},
    )  # fmt: skip
    return replace(anna, by=Examiner(dataset=dataset, private=frozenset(traces)))


def where(anna: Examinee) -> str:
    return standing(anna.store, ME, now=anna.clock.now).next.step


def test_who_is_right_passes_with_a_certificate_on_a_public_form(anna: Examinee) -> None:
    exam = anna.start()
    assert (exam.form, exam.private, exam.n) == ("exam_a", False, 70)
    assert anna.start() == exam
    assert anna.sit(exam).status == "passed"
    found = standing(anna.store, ME, now=anna.clock.now)
    assert found.certificate is not None
    assert (found.certificate.private, found.next.step) == (False, "certified")
    with pytest.raises(NotAllowedError, match="the certificate holds"):
        anna.start()


def test_the_order_is_another_one_for_each_attempt_and_person(anna: Examinee) -> None:
    anna.store.add_reviewer("Ben")
    orders = []
    for examinee in (anna, replace(anna, who="ben")):
        items = anna.store.batch_items(examinee.start().batch_id)["trace_id"]
        orders.append(list(items))
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]
    assert orders[0] != sorted(orders[0])


def test_two_attempts_a_day_and_a_practice_round_apart(anna: Examinee) -> None:
    assert anna.fail().status == "failed"
    assert anna.store.certificate_of(ME) is None
    assert where(anna) == "wait"
    anna.later(hours=25)
    assert where(anna) == "practise"
    with pytest.raises(NotAllowedError, match="practice round must be finished"):
        anna.start()
    anna.practise()
    second = anna.start()
    assert (second.form, second.attempt) == ("exam_b", 2)
    items = anna.store.batch_items(second.batch_id)["trace_id"]
    anna.sit(second, dict.fromkeys(items, "complete"))
    anna.later(hours=25)
    anna.practise()
    with pytest.raises(NotAllowedError, match="a lead has to allow"):
        anna.start()


def own_traces(anna: Examinee, n: int) -> None:
    """Let the team adjudicate n traces of its own, the five classes in turn."""
    some = next(iter(anna.by.dataset.traces.values()))
    made = [
        replace(some, trace_id=f"own-{k}", source="team", source_id=str(k), prompt=f"Ours {k}")
        for k in range(n)
    ]
    tree = anna.store.taxonomy()
    for k, trace_id in enumerate(anna.store.ingest(made).imported):
        anna.store.adjudicate(
            trace_id=trace_id, answers=tree.answers_for(OUTCOMES[k % 5]), adjudicator="lea",
            rationale="Settled.",
        )  # fmt: skip


def test_a_third_attempt_is_on_the_teams_own_adjudicated_traces(anna: Examinee) -> None:
    for _ in range(2):
        anna.fail()
        anna.later(hours=25)
        anna.practise()
    anna.store.allow_attempt(client_token="1", reviewer_id=ME, by="lea", reason="once more")
    own_traces(anna, 20)
    with pytest.raises(NotAllowedError, match=r"needs 40 adjudicated traces.*4 Completed") as found:
        anna.start()
    # The lead is told the same before they decide.
    assert no_own_form(anna.store, anna.by, ME) == str(found.value)
    own_traces(anna, 120)
    assert no_own_form(anna.store, anna.by, ME) == ""
    third = anna.start()
    assert (third.form, third.private, third.attempt) == ("own", True, 3)
    settled = dict(anna.store.consensus_frame()[["trace_id", "outcome"]].to_numpy())
    items = list(anna.store.batch_items(third.batch_id)["trace_id"])
    assert Counter(settled[i] for i in items) == {
        "complete": 24, "partial_plus": 16, "partial_minus": 11, "hallucinated": 11, "abandoned": 6,
    }  # fmt: skip
    anna.label(third.batch_id, settled.__getitem__)
    settle(anna.store, anna.by, ME)
    held = anna.store.certificate_of(ME, private=True)
    assert held is not None
    assert held.form == "own"


def test_a_class_not_shown_is_topped_up_and_its_further_traces_decide(anna: Examinee) -> None:
    exam = anna.start()
    errors = anna.wrong(exam, "abandoned", "partial_plus", 3)
    assert anna.sit(exam, errors).status == "top_up"
    assert where(anna) == "go_on"
    further = standing(anna.store, ME, now=anna.clock.now).exam
    assert further is not None
    items = list(anna.store.batch_items(further.batch_id)["trace_id"])
    classes = Counter(anna.due(i) for i in items)
    assert classes["abandoned"] == 8
    assert sum(classes.values()) == 12
    assert len(classes) > 1  # further traces of one class would tell their answer
    assert not set(items) & set(anna.store.batch_items(exam.batch_id)["trace_id"])
    assert "abandoned" not in str(
        {b.batch_id: b.design for b in anna.store.batches()}[further.batch_id]
    )
    settle(anna.store, anna.by, ME)  # again: nothing more is given
    assert sum(e.tops_up is not None for e in anna.store.exams_of(ME)) == 1
    assert anna.sit(further).status == "passed"
    assert anna.store.certificate_of(ME) is not None
    assert standing(anna.store, ME, now=anna.clock.now).next.used == 1


def test_a_class_not_shown_on_its_further_traces_either_fails(anna: Examinee) -> None:
    exam = anna.start()
    anna.sit(exam, anna.wrong(exam, "abandoned", "partial_plus", 3))
    further = standing(anna.store, ME, now=anna.clock.now).exam
    assert further is not None
    assert anna.sit(further, anna.wrong(further, "abandoned", "complete", 4)).status == "failed"
    assert where(anna) == "wait"
    # The second form leaves out what the first attempt took of it.
    anna.later(hours=25)
    anna.practise()
    second = anna.start()
    taken = set(anna.store.batch_items(further.batch_id)["trace_id"])
    assert not taken & set(anna.store.batch_items(second.batch_id)["trace_id"])
    assert second.n == 70 - len(taken & set(anna.by.dataset.forms["exam_b"]))


def test_a_private_form_goes_first_and_can_be_demanded(anna: Examinee) -> None:
    anna.store.add_reviewer("Ben")
    ours = with_private_set(anna)
    exam = ours.start()
    assert (exam.form, exam.private, exam.n) == ("ours/exam_a", True, 60)
    anna.store.set_certificate_demand(CertificateDemand(form="private"), by="ada")
    with pytest.raises(NotAllowedError, match="asks for a private form and has none"):
        replace(anna, who="ben").start()
    assert replace(ours, who="ben").start().private


def test_a_public_certificate_keeps_nobody_from_a_private_one_that_is_demanded(
    anna: Examinee,
) -> None:
    anna.sit(anna.start())
    anna.later(hours=25)
    anna.practise()
    assert where(anna) == "certified"
    anna.store.set_certificate_demand(CertificateDemand(form="private"), by="ada")
    assert where(anna) == "start"
    exam = with_private_set(anna).start()
    assert exam.private


def test_a_public_form_is_not_topped_up_with_private_traces(anna: Examinee) -> None:
    exam = anna.start()
    ours = with_private_set(anna)
    ours.sit(exam, ours.wrong(exam, "abandoned", "partial_plus", 3))
    further = standing(anna.store, ME, now=anna.clock.now).exam
    assert further is not None
    assert not set(anna.store.batch_items(further.batch_id)["trace_id"]) & ours.by.private


def test_while_an_examination_is_open_practice_gives_no_lesson(anna: Examinee) -> None:
    dataset = anna.by.dataset
    batch = add_practice(anna.store, dataset).batch_id
    give(anna.store, ME, batch, anna.store.queue(ME, batch).items[0], "complete")
    assert lesson(anna.store, dataset, reviewer_id=ME, batch_id=batch) is not None
    exam = anna.start()
    assert lesson(anna.store, dataset, reviewer_id=ME, batch_id=batch) is None
    assert lesson(anna.store, dataset, reviewer_id=ME, batch_id=exam.batch_id) is None
    anna.sit(exam)
    assert lesson(anna.store, dataset, reviewer_id=ME, batch_id=batch) is not None


def test_practice_aims_at_what_went_wrong(anna: Examinee) -> None:
    exam = anna.start()
    errors = anna.wrong(exam, "partial_minus", "partial_plus", 11)
    assert weak_nodes(anna.store, anna.by.dataset, ME)[0].n == 0
    anna.label(exam.batch_id, lambda i: errors.get(i, anna.due(i)))
    # Before the result nothing is told of it.
    assert weak_nodes(anna.store, anna.by.dataset, ME)[0].n == 0
    settle(anna.store, anna.by, ME)
    further = standing(anna.store, ME, now=anna.clock.now).exam
    if further is not None:
        anna.sit(further, anna.wrong(further, "partial_minus", "partial_plus", 8))
    weakest = weak_nodes(anna.store, anna.by.dataset, ME)[0]
    assert (weakest.node, weakest.errors) == ("material_error", 11 if further is None else 19)
    made = start_practice(anna.store, anna.by.dataset, ME)
    assert start_practice(anna.store, anna.by.dataset, ME) == made
    items = list(anna.store.batch_items(made.batch_id)["trace_id"])
    assert len(items) == 12
    kinds = Counter(anna.due(i) for i in items)
    assert kinds["partial_minus"] + kinds["partial_plus"] >= 6
    assert set(items) <= set(anna.by.dataset.forms["practice"])


def test_everything_works_with_the_rights_of_a_reviewer(anna: Examinee) -> None:
    (person,) = anna.store.reviewers()
    bound = replace(anna, store=anna.store.acting_as(person))
    made = start_practice(bound.store, anna.by.dataset, ME)
    give(bound.store, ME, made.batch_id, bound.store.queue(ME, made.batch_id).items[0], "complete")
    assert lesson(bound.store, anna.by.dataset, reviewer_id=ME, batch_id=made.batch_id) is not None
    exam = bound.start()
    errors = anna.wrong(exam, "abandoned", "complete", 3)
    anna.label(exam.batch_id, lambda i: errors.get(i, anna.due(i)))
    settle(bound.store, anna.by, ME)
    further = standing(bound.store, ME, now=anna.clock.now).exam
    assert further is not None
    anna.label(further.batch_id, anna.due)
    settle(bound.store, anna.by, ME)
    assert bound.store.certificate_of(ME) is not None
    report = exam_report(bound.store, anna.by, ME, exam.batch_id)
    (trace_id, *_) = report.confusions[0].trace_ids
    shown = examined_trace(bound.store, anna.by, ME, exam.batch_id, trace_id)
    assert shown.canonical == "abandoned"
    assert weak_nodes(bound.store, anna.by.dataset, ME)[0].n
    with pytest.raises(NotAllowedError, match="only in one's own name"):
        bound.store.exams_of("ben")
    with pytest.raises(NotAllowedError, match="only in one's own name"):
        replace(bound, who="ben").start()


def test_a_practice_round_of_one_person_is_not_the_practice_of_all(anna: Examinee) -> None:
    made = start_practice(anna.store, anna.by.dataset, ME)
    shared = add_practice(anna.store, anna.by.dataset)
    assert shared.batch_id != made.batch_id
    assert (shared.reviewer_id, shared.n_items) == (None, 60)
