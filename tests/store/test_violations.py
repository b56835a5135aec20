"""Safety violations that reviewers mark: off by default, stored in the label event, never lost."""

import json

import pytest

from calibration.errors import LabelRefusedError
from calibration.records import CONSTRAINTS, Violation
from calibration.store import Store
from tests.store.builders import ABANDONED, Desk, query

LEAK = Violation(constraint=CONSTRAINTS[0], severity="high", step="s2")
SPAM = Violation(constraint=CONSTRAINTS[2], severity="low")


def stored(store: Store) -> list[object]:
    return [None if v is None else json.loads(v) for (v,) in query(
        store, "SELECT violations FROM label_event ORDER BY seq"
    )]  # fmt: skip


def test_nobody_asks_until_a_lead_does(desk: Desk) -> None:
    assert not desk.store.marks_violations()
    assert desk.store.queue("ann", desk.batch).constraints == ()
    desk.store.set_violation_marking(True)
    assert desk.store.queue("ann", desk.batch).constraints == CONSTRAINTS
    assert query(desk.store, "SELECT count(*) FROM audit WHERE what = 'setting'") == [(1,)]
    desk.store.set_violation_marking(False)
    assert desk.store.queue("ann", desk.batch).constraints == ()


def test_practice_and_examinations_never_ask(desk: Desk) -> None:
    desk.store.set_violation_marking(True)
    practice = desk.store.add_batch(purpose="practice", trace_ids=desk.traces[:1], design={})
    assert desk.store.queue("ann", practice.batch_id).constraints == ()


def test_they_are_stored_with_the_label_and_come_back_with_an_undo(desk: Desk) -> None:
    first, second, third = desk.queue()[:3]
    desk.label(first, violations=(LEAK, SPAM))
    desk.label(second, violations=())
    desk.label(third)
    assert stored(desk.store) == [
        [
            {"constraint": "no PII exposure", "severity": "high", "step": "s2"},
            {"constraint": "respect rate limits", "severity": "low", "step": None},
        ],
        [],
        None,
    ]  # fmt: skip
    assert desk.undo() == third
    assert desk.undo() == second
    assert desk.undo() == first
    (draft,) = [d for d in desk.drafts() if d.trace_id == first]
    assert draft.violations == (LEAK, SPAM)
    assert len(desk.store.label_frame(desk.batch)) == 0
    assert len(stored(desk.store)) == 6
    desk.label(first, violations=(SPAM,))
    (label, _), *_ = desk.store.own_labels("ann", desk.batch)
    assert label.violations == (SPAM,)


def test_a_draft_keeps_them(desk: Desk) -> None:
    here = desk.queue()[0]
    desk.save(here, violations=(LEAK,))
    (draft,) = desk.drafts()
    assert draft.violations == (LEAK,)


def test_an_adjudicator_sees_them_after_the_blind_decision(shared_desk: Desk) -> None:
    desk, store = shared_desk, shared_desk.store
    here = desk.queue()[0]
    desk.queue("bob")
    store.add_reviewer("Lea", role="lead")
    desk.label(here, violations=(LEAK,))
    desk.label(here, "bob", answers=ABANDONED)
    own = store.serve_adjudication(adjudicator="lea", batch_id=desk.batch, trace_ids=[here])
    assert own is not None
    assert store.queue("lea", own.batch_id).constraints == ()
    Desk(store=store, batch=own.batch_id, traces=(here,)).label(here, "lea")
    due = store.settlement("lea", desk.batch)
    assert due is not None
    assert {label.violations for label in due.labels} == {(LEAK,), None}


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (Violation(constraint="", severity="low"), "a constraint has 1 to 200"),
        (Violation(constraint="x" * 201, severity="low"), "a constraint has 1 to 200"),
        (Violation(constraint="a\nb", severity="low"), "on one line"),
        (Violation(constraint="\ud800", severity="low"), "on one line"),
        (Violation(constraint="c", severity="minor"), "severity must be one of low, medium"),
        (Violation(constraint="c", severity="low", step="s9"), "the trace has no step 's9'"),
    ],
)
def test_a_bad_one_is_refused(desk: Desk, bad: Violation, why: str) -> None:
    here = desk.queue()[0]
    with pytest.raises(LabelRefusedError, match=why):
        desk.label(here, violations=(bad,))
    with pytest.raises(LabelRefusedError, match="at most 50 violations"):
        desk.label(here, violations=(SPAM,) * 51)
    assert stored(desk.store) == []
