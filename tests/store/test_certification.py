"""Examinations in the store: served to one person, ended once, and what a certificate opens."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from calibration.errors import (
    InputError,
    LabelRefusedError,
    NotAllowedError,
    UncertifiedReviewerError,
)
from calibration.store import Store, certification, labels, leases
from calibration.store.certification import Exam
from calibration.store.leases import CertificateDemand
from calibration.taxonomy import default_taxonomy
from tests.store.builders import ABANDONED, COMPLETE, Clock, Desk, empty_store, make_traces, token

VALID = timedelta(days=90)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (leases, certification, labels):
        monkeypatch.setattr(module, "utc_now", made)
    return made


def exam(desk: Desk, reviewer: str = "ann", **changes: Any) -> Exam:
    values: dict[str, Any] = {"form": "exam_a", "private": False, "trace_ids": desk.traces[:3]}
    return desk.store.start_exam(reviewer_id=reviewer, **values | changes)


def label_all(store: Store, batch_id: str, reviewer: str = "ann") -> None:
    desk = Desk(store=store, batch=batch_id, traces=())
    while left := desk.queue(reviewer, limit=1):
        desk.label(left[0], reviewer)


def ended(desk: Desk, status: str = "passed", reviewer: str = "ann", **changes: Any) -> Exam:
    """Take an examination to its end."""
    batch_id = exam(desk, reviewer, **changes).batch_id
    label_all(desk.store, batch_id, reviewer)
    return record(desk.store, batch_id, status, reviewer)


def record(store: Store, batch_id: str, status: str, reviewer: str = "ann") -> Exam:
    return store.record_result(
        reviewer_id=reviewer, batch_id=batch_id, status=status, body={"why": status}, valid=VALID
    )


def test_an_examination_is_served_to_one_person_and_seen_by_leads(desk: Desk) -> None:
    batch_id = exam(desk).batch_id
    assert len(desk.store.queue("ann", batch_id).items) == 3
    assert desk.store.has_open_items("ann", batch_id)
    for call in (desk.store.queue, desk.store.has_open_items):
        with pytest.raises(NotAllowedError, match="another reviewer only"):
            call("bob", batch_id)
    desk.store.add_reviewer("Lea", role="lead")
    people = {p.reviewer_id: desk.store.acting_as(p) for p in desk.store.reviewers()}
    listed = {who: batch_id in [b.batch_id for b in of.batches()] for who, of in people.items()}
    assert listed == {"ann": True, "bob": False, "lea": True}


def test_an_open_examination_is_returned_and_no_second_one_started(desk: Desk) -> None:
    first = exam(desk)
    assert exam(desk, form="exam_b", trace_ids=desk.traces[3:]) == first
    label_all(desk.store, first.batch_id)
    record(desk.store, first.batch_id, "failed")
    second = exam(desk, form="exam_b", trace_ids=desk.traces[3:])
    assert (second.attempt, second.form, second.n) == (2, "exam_b", 2)


def test_an_examination_is_of_known_traces_without_skips_or_imports(desk: Desk) -> None:
    for changes, why in (
        ({"traces": make_traces(9)[8:]}, "not in the reference dataset"),
        ({"trace_ids": ["nowhere"]}, "is not in the store"),
        ({"trace_ids": []}, "at least one trace"),
    ):
        with pytest.raises(InputError, match=why):
            exam(desk, **changes)
    of_exam = replace(desk, batch=exam(desk).batch_id)
    (trace, *_) = of_exam.queue()
    with pytest.raises(LabelRefusedError, match="no skips"):
        of_exam.skip(trace)
    with pytest.raises(InputError, match="nothing is imported"):
        desk.store.import_labels(of_exam.batch, [])
    desk.queue()
    desk.skip(desk.traces[0])  # elsewhere there are skips


def test_the_last_label_may_be_undone_until_the_last_trace_is_labelled(desk: Desk) -> None:
    of_exam = replace(desk, batch=exam(desk).batch_id)
    first, second, last = of_exam.queue()
    of_exam.label(first)
    of_exam.label(second)
    assert of_exam.undo() == second
    of_exam.label(second)
    of_exam.reopen(first)
    of_exam.label(first)
    of_exam.label(last)
    with pytest.raises(LabelRefusedError, match="has ended"):
        of_exam.undo()
    with pytest.raises(LabelRefusedError, match="has ended"):
        of_exam.reopen(first)


def test_a_result_is_recorded_once_and_only_after_the_end(desk: Desk) -> None:
    batch_id = exam(desk).batch_id
    with pytest.raises(NotAllowedError, match="3 traces are left"):
        record(desk.store, batch_id, "passed")
    label_all(desk.store, batch_id)
    assert record(desk.store, batch_id, "failed").status == "failed"
    again = record(desk.store, batch_id, "passed")
    assert (again.status, again.body) == ("failed", {"why": "failed"})
    assert desk.store.certificates() == []
    with pytest.raises(InputError, match="not an examination of"):
        record(desk.store, batch_id, "passed", "bob")
    with pytest.raises(InputError, match="passed, failed or top_up"):
        record(desk.store, batch_id, "excellent")


def test_a_pass_is_a_certificate_from_the_last_label_for_90_days(desk: Desk, clock: Clock) -> None:
    batch_id = exam(desk).batch_id
    label_all(desk.store, batch_id)
    at = clock.now
    clock.forward(hours=5)
    record(desk.store, batch_id, "passed")
    held = desk.store.certificate_of("ann")
    assert held is not None
    assert (held.issued_at, held.expires_at, held.private) == (at, at + VALID, False)
    assert desk.store.certificate_of("ann", private=True) is None
    assert desk.store.certificate_of("bob") is None
    tree = default_taxonomy()
    desk.store.set_taxonomy(replace(tree, version="2"))
    assert desk.store.certificate_of("ann") is None
    assert exam(desk).attempt == 1
    desk.store.set_taxonomy(tree)
    assert desk.store.certificate_of("ann") is not None
    clock.forward(days=91)
    assert desk.store.certificate_of("ann") is None
    assert len(desk.store.certificates_of("ann")) == 1


def test_a_form_is_topped_up_once_and_only_when_its_result_says_so(desk: Desk) -> None:
    form = ended(desk, "top_up")
    more: dict[str, Any] = {"reviewer_id": "ann", "tops_up": form.batch_id}
    more |= {"trace_ids": desk.traces[3:]}
    extra = desk.store.add_top_up(**more)
    assert (extra.attempt, extra.tops_up, extra.n) == (form.attempt, form.batch_id, 2)
    assert desk.store.add_top_up(**more).batch_id == extra.batch_id
    with pytest.raises(NotAllowedError, match="is not over"):
        desk.store.exam_traces("ann", form.batch_id, [desk.traces[0]])
    label_all(desk.store, extra.batch_id)
    with pytest.raises(InputError, match="tops up already"):
        record(desk.store, extra.batch_id, "top_up")
    record(desk.store, extra.batch_id, "passed")
    assert desk.store.certificate_of("ann") is not None
    shown = desk.store.exam_traces("ann", extra.batch_id, [*desk.traces, "elsewhere"])
    assert [t.trace_id for t in shown] == list(desk.traces)
    failed = ended(desk, "failed", "bob")
    with pytest.raises(NotAllowedError, match="asks for no further traces"):
        desk.store.add_top_up(reviewer_id="bob", tops_up=failed.batch_id, trace_ids=desk.traces[3:])


@pytest.fixture
def demanding(desk: Desk) -> dict[str | None, str]:
    """Return production batches by what they demand."""
    values: dict[str, Any] = {"purpose": "production", "trace_ids": desk.traces}
    kinds = (None, "any", "private")
    return {kind: desk.store.add_batch(certificate=kind, **values).batch_id for kind in kinds}


def test_a_batch_that_demands_a_certificate_is_served_to_those_who_have_it(
    desk: Desk, demanding: dict[str | None, str], clock: Clock
) -> None:
    ended(desk)
    ended(desk, reviewer="bob", form="own/exam_a", private=True)
    assert desk.store.queue("ann", demanding["any"]).items
    assert desk.store.queue("bob", demanding["any"]).items
    assert desk.store.queue("bob", demanding["private"]).items
    with pytest.raises(UncertifiedReviewerError, match=r"on a private form.*Certificate page"):
        desk.store.queue("ann", demanding["private"])
    desk.store.add_reviewer("Cy")
    assert desk.store.queue("cy", demanding[None]).items
    with pytest.raises(UncertifiedReviewerError, match="asks for a certificate, and"):
        desk.store.queue("cy", demanding["any"])
    assert desk.store.has_open_items("cy", demanding["any"])  # and stays blind
    clock.forward(days=91)
    with pytest.raises(UncertifiedReviewerError):
        desk.store.queue("ann", demanding["any"])


def test_a_store_can_demand_more_than_its_batches(
    desk: Desk, demanding: dict[str | None, str]
) -> None:
    ended(desk)
    desk.store.add_reviewer("Ada", role="admin")
    private = CertificateDemand(form="private")
    desk.store.set_certificate_demand(private, by="ada")
    assert desk.store.certificate_demand() == private
    assert desk.store.queue("ann", demanding[None]).items
    with pytest.raises(UncertifiedReviewerError, match="private form"):
        desk.store.queue("ann", demanding["any"])
    with pytest.raises(InputError, match="any or private"):
        desk.store.set_certificate_demand(CertificateDemand(form="secret"), by="ada")
    # A certificate for every production batch, and for no other.
    practice = desk.store.add_batch(purpose="practice", trace_ids=desk.traces).batch_id
    desk.store.set_certificate_demand(CertificateDemand(every_batch=True), by="ada")
    assert desk.store.queue("ann", demanding[None]).items
    assert desk.store.queue("bob", practice).items
    with pytest.raises(UncertifiedReviewerError):
        desk.store.queue("bob", demanding[None])


def test_a_lead_allows_an_attempt_with_a_reason_once_a_token(desk: Desk) -> None:
    allow = {"reviewer_id": "ann", "by": "lea", "client_token": "1"}
    with pytest.raises(InputError, match="needs a reason"):
        desk.store.allow_attempt(reason=" ", **allow)
    for _ in range(2):
        desk.store.allow_attempt(reason="She was ill.", **allow)
    assert [len(desk.store.attempts_allowed(who)) for who in ("ann", "bob")] == [1, 0]


def test_a_practice_round_is_finished_when_every_trace_is_labelled(desk: Desk) -> None:
    store = desk.store
    made = store.start_practice(reviewer_id="ann", trace_ids=desk.traces[:2])
    assert store.start_practice(reviewer_id="ann", trace_ids=desk.traces[2:]) == made
    practice = replace(desk, batch=made.batch_id)
    first, second = practice.queue()
    practice.label(first)
    practice.skip(second)
    assert store.practice_rounds("ann")[0].finished_at is None
    practice.undo()
    practice.label(second)
    assert isinstance(store.practice_rounds("ann")[0].finished_at, datetime)
    assert store.practice_rounds("bob") == []
    again = store.start_practice(reviewer_id="ann", trace_ids=desk.traces[:2])
    assert again.batch_id != made.batch_id


def test_the_first_label_counts_not_what_was_said_after_the_lesson(desk: Desk) -> None:
    made = desk.store.start_practice(reviewer_id="ann", trace_ids=desk.traces[:1])
    practice = replace(desk, batch=made.batch_id)
    label_all(desk.store, made.batch_id)
    practice.undo()
    practice.label(desk.traces[0], answers=ABANDONED)
    (given,) = desk.store.first_labels("ann")
    assert (given.batch_id, given.outcome) == (made.batch_id, "complete")
    assert desk.store.exam_labels("ann", made.batch_id) == {desk.traces[0]: "abandoned"}


def test_an_own_form_is_drawn_from_adjudicated_traces_that_one_has_not_seen(desk: Desk) -> None:
    store = desk.store
    for trace, answers in zip(desk.traces, (COMPLETE, COMPLETE, COMPLETE, ABANDONED), strict=False):
        store.adjudicate(trace_id=trace, answers=answers, adjudicator="lea", rationale="agreed")
    store.record_exposure("ann", [desk.traces[0]], "labels")
    wanted = {"complete": 2, "abandoned": 2}
    drawn, there = store.draw_own_form("ann", wanted, 1)
    assert set(drawn) == set(desk.traces[1:4])
    assert there == {"complete": 2, "abandoned": 1}
    assert set(store.draw_own_form("bob", {"complete": 9}, 1)[0]) == set(desk.traces[:3])
    own = exam(desk, form="own", private=True, trace_ids=drawn)
    with pytest.raises(NotAllowedError, match="has not ended"):
        store.exam_key("ann", own.batch_id)
    label_all(store, own.batch_id)
    assert {outcome for outcome, _ in store.exam_key("ann", own.batch_id).values()} == set(wanted)
    with pytest.raises(InputError, match="not an examination of"):
        store.exam_key("bob", own.batch_id)
    assert store.draw_own_form("ann", wanted, 1)[0] == []


def test_the_class_mix_of_production_weighs_by_the_design(tmp_path: Path) -> None:
    with empty_store(tmp_path / "s.duckdb") as store:
        ids = store.ingest(make_traces(40)).imported
        store.add_reviewer("Ann")
        assert store.production_mix() is None
        # Half of the labelled ones were drawn with a fifth of the chance of the others.
        batch = store.add_batch(
            purpose="production", trace_ids=ids, labels_wanted=1,
            item_probabilities=[0.1] * 20 + [0.5] * 20,
        ).batch_id  # fmt: skip
        desk = Desk(store=store, batch=batch, traces=ids)
        drafts = [
            desk.draft(trace, client_token=token(), answers=ABANDONED if k < 20 else COMPLETE)
            for k, trace in enumerate(ids)
        ]
        store.import_labels(batch, drafts[:29])
        assert store.production_mix() is None
        store.import_labels(batch, drafts)
        mix = store.production_mix()
        assert mix is not None
        assert (mix.batch_id, mix.n) == (batch, 40)
        # 20 / .1 = 200 against 20 / .5 = 40.
        assert mix.shares == pytest.approx({"abandoned": 200 / 240, "complete": 40 / 240})
