"""From the rule to the certificate, through the store, with the published dataset."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

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
from calibration.store.certification import Exam
from calibration.store.leases import CertificateDemand
from reference_dataset.loader import ReferenceSet, load_reference
from tests.analyses.examinees import ME, Examinee, give, set_clock
from tests.analyses.worlds import known
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
    traces, labels = {}, {}
    for i in base.forms["exam_b"][:60]:
        own = f"p-{i}"
        traces[own] = replace(base.traces[i], trace_id=own, source_id=own, prompt=f"Ours. {i}")
        labels[own] = replace(base.labels[i], trace_id=own)
    dataset = replace(
        base, traces=base.traces | traces, labels=base.labels | labels,
        forms=base.forms | {"ours/exam_a": tuple(traces)},
    )  # fmt: skip
    return replace(anna, by=Examiner(dataset=dataset, private=frozenset(traces)))


def further_of(anna: Examinee) -> Exam:
    return known(standing(anna.store, ME, now=anna.clock.now).exam)


def traces_of(anna: Examinee, exam: Exam) -> list[str]:
    return list(anna.store.batch_items(exam.batch_id)["trace_id"])


def where(anna: Examinee) -> str:
    return standing(anna.store, ME, now=anna.clock.now).next.step


def test_who_is_right_passes_with_a_certificate_on_a_public_form(anna: Examinee) -> None:
    exam = anna.start()
    assert (exam.form, exam.private, exam.n) == ("exam_a", False, 70)
    assert anna.start() == exam
    assert anna.sit(exam).status == "passed"
    found = standing(anna.store, ME, now=anna.clock.now)
    assert (known(found.certificate).private, found.next.step) == (False, "certified")
    with pytest.raises(NotAllowedError, match="the certificate holds"):
        anna.start()
    # It keeps nobody from a private one that is demanded.
    anna.later(hours=25)
    anna.practise()
    assert where(anna) == "certified"
    anna.store.set_certificate_demand(CertificateDemand(form="private"), by="ada")
    assert where(anna) == "start"
    assert with_private_set(anna).start().private


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
    anna.sit(second, dict.fromkeys(traces_of(anna, second), "complete"))
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
    assert Counter(settled[i] for i in traces_of(anna, third)) == {
        "complete": 24, "partial_plus": 16, "partial_minus": 11, "hallucinated": 11, "abandoned": 6,
    }  # fmt: skip
    anna.label(third.batch_id, settled.__getitem__)
    settle(anna.store, anna.by, ME)
    assert known(anna.store.certificate_of(ME, private=True)).form == "own"


def test_a_class_not_shown_is_topped_up_and_its_further_traces_decide(anna: Examinee) -> None:
    exam = anna.start()
    errors = anna.wrong(exam, "abandoned", "partial_plus", 3)
    assert anna.sit(exam, errors).status == "top_up"
    assert where(anna) == "go_on"
    further = further_of(anna)
    items = traces_of(anna, further)
    classes = Counter(anna.due(i) for i in items)
    assert classes["abandoned"] == 8
    assert sum(classes.values()) == 12
    assert len(classes) > 1  # further traces of one class would tell their answer
    assert not set(items) & set(traces_of(anna, exam))
    designs = {b.batch_id: b.design for b in anna.store.batches()}
    assert "abandoned" not in str(designs[further.batch_id])
    settle(anna.store, anna.by, ME)  # again: nothing more is given
    assert sum(e.tops_up is not None for e in anna.store.exams_of(ME)) == 1
    assert anna.sit(further).status == "passed"
    assert anna.store.certificate_of(ME) is not None
    assert standing(anna.store, ME, now=anna.clock.now).next.used == 1


def test_a_class_not_shown_on_its_further_traces_either_fails(anna: Examinee) -> None:
    exam = anna.start()
    with_private_set(anna).sit(exam, anna.wrong(exam, "abandoned", "partial_plus", 3))
    further = further_of(anna)
    assert not set(traces_of(anna, further)) & with_private_set(anna).by.private  # a public form
    assert anna.sit(further, anna.wrong(further, "abandoned", "complete", 4)).status == "failed"
    assert where(anna) == "wait"
    # The second form leaves out what the first attempt took of it.
    anna.later(hours=25)
    anna.practise()
    second = anna.start()
    taken = set(traces_of(anna, further))
    assert not taken & set(traces_of(anna, second))
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
    assert standing(anna.store, ME, now=anna.clock.now).exam is None
    weakest = weak_nodes(anna.store, anna.by.dataset, ME)[0]
    assert (weakest.node, weakest.errors) == ("material_error", 11)
    made = start_practice(anna.store, anna.by.dataset, ME)
    assert start_practice(anna.store, anna.by.dataset, ME) == made
    items = list(anna.store.batch_items(made.batch_id)["trace_id"])
    assert len(items) == 12
    kinds = Counter(anna.due(i) for i in items)
    assert kinds["partial_minus"] + kinds["partial_plus"] >= 6
    assert set(items) <= set(anna.by.dataset.forms["practice"])
    # A round of one person is not the practice of all.
    shared = add_practice(anna.store, anna.by.dataset)
    assert shared.batch_id != made.batch_id
    assert (shared.reviewer_id, shared.n_items) == (None, 60)
